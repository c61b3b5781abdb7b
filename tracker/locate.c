/* SPDX-License-Identifier: MIT */
/*
 * From the addresses of a call's accesses to bytes of allocations.
 *
 * An address in mapped memory stands for bytes of a backing, those of a multicast object for the same bytes of
 * everything that is bound to it; an access may cross mappings. One access thus gives any number of
 * ranges, in address order, numbered by `piece` so that a replay's can be told apart.
 *
 * Callers: access.c, with engine.lock held: what was found stays alive until it is released.
 */
#include <stdlib.h>

#include "tracker/callstate.h"

struct list {
	struct rs_callstate *c;
	struct rs_thread *t;
	uint32_t access;
	uint16_t piece;
	uint8_t failed;
	const struct rs_addrmap *map;
	uint8_t looked_up; /* no address has changed its memory since the call was described */
	const struct rs_engine *outer;
	struct rs_suballoc sub; /* of the access */
};

static void add(struct list *l, struct rs_alloc *a, uint64_t off, uint64_t len)
{
	struct rs_thread *t = l->t;
	struct rs_range *last = l->c->nranges ? &t->ranges[l->c->nranges - 1] : NULL;

	if (!len)
		return;
	/* neighbours that were mapped piece by piece are one range */
	if (last && last->access == l->access && last->a == a && last->off + last->len == off) {
		last->len += len;
		return;
	}
	if (l->c->nranges == t->ranges_cap) {
		uint32_t cap = t->ranges_cap ? t->ranges_cap * 2 : 32;
		struct rs_range *more = realloc(t->ranges, cap * sizeof(*more));

		if (!more) {
			l->failed = 1;
			return;
		}
		t->ranges = more;
		t->ranges_cap = cap;
	}
	t->ranges[l->c->nranges++] =
		(struct rs_range){.a = a,
				  .off = off,
				  .len = len,
				  .access = l->access,
				  .piece = l->piece++,
				  .given = l->sub.holds_all ? l->sub.given : 0};
}

/* Bytes of a backing, or of what is bound to a multicast object there. */
static void add_backing(struct list *l, struct rs_alloc *a, uint64_t off, uint64_t len)
{
	uint32_t i;

	if (!a->multicast) {
		add(l, a, off, len);
		return;
	}
	for (i = 0; i < a->binds.n; i++) {
		const struct rs_bind *b = &a->binds.v[i];
		uint64_t from = rs_max64(off, b->at), to = rs_min64(off + len, b->at + b->len);

		if (from < to)
			add(l, b->alloc, b->off + (from - b->at), to - from);
	}
}

/* Everything mapped in [lo, hi). */
static void add_mapped(struct list *l, uint64_t lo, uint64_t hi)
{
	uint64_t base, bytes, at = lo;
	void *v = rs_addrmap_find(l->map, lo, &base, &bytes);

	if (!v)
		v = rs_addrmap_next(l->map, lo, &base, &bytes);
	for (; v && base < hi; v = rs_addrmap_next(l->map, at, &base, &bytes)) {
		const struct rs_mapping *m = rs_mapping_of(v);
		uint64_t from = rs_max64(lo, base), to = rs_min64(hi, base + bytes);

		if (m)
			add_backing(l, m->alloc, m->off + (from - base), to - from);
		at = base + bytes;
	}
}

/* Of memory with an address of its own. */
static void add_direct(struct list *l, struct rs_alloc *a, const struct rs_access *x)
{
	uint64_t off = x->addr - a->base;

	if (x->whole && l->sub.given)
		add(l, a, l->sub.base - a->base, l->sub.bytes);
	else if (x->whole || a->kind == RS_ALLOC_ARRAY)
		add(l, a, 0, a->size);
	else
		add(l, a, off, rs_min64(x->bytes, a->size - off));
}

static void locate(struct list *l, const struct rs_access *x)
{
	uint64_t base, bytes;
	const struct rs_mapping *m;
	struct rs_alloc *a;
	void *v;

	if (!x->whole && !x->bytes)
		return;
	l->sub = rs_suballoc_of(l->outer, l->c->call, x);
	/* what the caller has found is still there; of mapped memory it knows the reservation only */
	a = l->looked_up && !((uintptr_t)x->memory & 1) ? (void *)(uintptr_t)x->memory : NULL;
	if (a) {
		add_direct(l, a, x);
		return;
	}
	v = rs_addrmap_find(l->map, x->addr, &base, &bytes);
	if (!v)
		return;
	m = rs_mapping_of(v);
	if (m) {
		uint64_t end = m->res_base + m->res_bytes;

		if (x->whole && l->sub.given)
			add_mapped(l, l->sub.base, l->sub.base + l->sub.bytes);
		else if (x->whole)
			add_mapped(l, m->res_base, end);
		else
			add_mapped(l, x->addr, x->bytes < end - x->addr ? x->addr + x->bytes : end);
		return;
	}
	add_direct(l, v, x);
}

/* Inside of a capture the same memory has another history. */
static void into_capture(struct list *l)
{
	uint32_t i;

	for (i = 0; i < l->c->nranges && !l->failed; i++) {
		struct rs_range *r = &l->t->ranges[i];

		r->a = rs_capture_alloc(l->c->e, r->a);
		l->failed = !r->a;
	}
}

void rs_locate(struct rs_callstate *c, struct rs_thread *t)
{
	const struct rs_engine *outer = rs_engine_outer(c->e);
	struct list l = {.c = c, .t = t, .map = outer->map, .outer = outer};

	l.looked_up = c->call->generation == rs_engine_generation(outer);
	c->nranges = 0;
	for (l.access = 0; l.access < c->call->naccess && !l.failed; l.access++) {
		l.piece = 0;
		locate(&l, &c->call->access[l.access]);
	}
	if (c->e->outer)
		into_capture(&l);
	if (l.failed) {
		c->call->everything = 1;
		c->nranges = 0;
	}
	c->range = t->ranges;
	rs_locate_found(c, t);
}

void rs_locate_again(struct rs_callstate *c, struct rs_thread *t)
{
	if (t->ranges_call != c->number || t->ranges_of != c->e ||
	    t->ranges_generation != rs_engine_generation(rs_engine_outer(c->e))) {
		rs_locate(c, t);
		return;
	}
	c->range = t->ranges;
	c->nranges = t->nranges;
}
