/* SPDX-License-Identifier: MIT */
/*
 * What a window knows of one allocation: found by the allocation, made at its first access, given back with the window.
 *
 * A window has as many of them as it touches allocations, and the next one touches as many: they are used again, and with
 * them their small lists.
 *
 * Callers: access.c, preserve.c, restore.c, window.c, with engine.lock held.
 */
#include <stdlib.h>

#include "tracker/callstate.h"

/* How many are kept for the next window, and how long their lists may be. */
#define SPARE_MOST 1024u
#define LIST_MOST  16u
#define LIST_FIRST 4u

struct rs_touch *rs_touch_find(struct rs_touch *table, uint64_t serial)
{
	struct rs_touch *t;

	HASH_FIND(hh, table, &serial, sizeof(serial), t);
	if (t)
		t->alloc->touch = t;
	return t;
}

static struct rs_touch *take(struct rs_engine *e)
{
	struct rs_touch *t = e->spare_touches;

	if (!t) {
		t = aligned_alloc(_Alignof(struct rs_touch), sizeof(*t));
		if (t)
			*t = (struct rs_touch){.spans = {&t->one, 0, 1}};
		return t;
	}
	e->spare_touches = t->spare;
	e->nspare_touches--;
	t->spare = NULL;
	return t;
}

struct rs_span *rs_touch_push(struct rs_touch *t)
{
	struct rs_span *more;

	if (t->spans.v == &t->one && t->spans.n) {
		more = malloc(LIST_FIRST * sizeof(*more));
		if (!more)
			return NULL;
		*more = t->one;
		t->spans.v = more;
		t->spans.cap = LIST_FIRST;
	}
	return RS_PUSH(t->spans);
}

static void release(struct rs_touch *t)
{
	if (t->spans.v != &t->one)
		free(t->spans.v);
	free(t->claims.v);
	free(t);
}

/* It is in no table. */
static void give(struct rs_engine *e, struct rs_touch *t)
{
	if (e->nspare_touches == SPARE_MOST || t->spans.cap > LIST_MOST ||
	    t->claims.cap > LIST_MOST) {
		release(t);
		return;
	}
	t->spans.n = t->claims.n = 0;
	t->overwritten = 0;
	t->hh.tbl = NULL;
	t->spare = e->spare_touches;
	e->spare_touches = t;
	e->nspare_touches++;
}

struct rs_touch *rs_touch_get(struct rs_engine *e, struct rs_touch **table, struct rs_alloc *a)
{
	struct rs_touch *t = rs_touch_of(*table, a);

	if (t)
		return t;
	t = take(e);
	if (!t)
		return NULL;
	t->serial = a->serial;
	t->alloc = a;
	a->touch = NULL;
	HASH_ADD(hh, *table, serial, sizeof(t->serial), t);
	if (!t->hh.tbl) { /* no memory */
		release(t);
		return NULL;
	}
	a->refs++;
	return t;
}

void rs_touches_free(struct rs_engine *e, struct rs_touch **table)
{
	struct rs_touch *t, *tmp;
	uint32_t i;

	HASH_ITER (hh, *table, t, tmp) {
		HASH_DEL(*table, t);
		if (t->alloc->touch == t)
			t->alloc->touch = NULL;
		rs_keeps_collect(e, t->alloc);
		rs_alloc_unref(e, t->alloc);
		for (i = 0; i < t->claims.n; i++) {
			rs_words_put(e, t->claims.v[i].sample);
			rs_readers_forget(&t->claims.v[i]);
		}
		give(e, t);
	}
}

void rs_touches_fini(struct rs_engine *e)
{
	struct rs_touch *t;

	while ((t = e->spare_touches)) {
		e->spare_touches = t->spare;
		release(t);
	}
}
