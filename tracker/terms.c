/* SPDX-License-Identifier: MIT */
/*
 * What a contract or a plan says of segments: how their state is preserved, which memory is state and which a
 * product, where writes are expected, which calls the forward makes.
 *
 * Terms are given before the segments run and stay until the engine goes. A forward that contradicts its
 * terms is preserved all the same, without them, and its replays are rejected (RS080, RS081).
 *
 * Callers: the shim at its start (rs_engine_*); access.c, window.c under engine.lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/model.h"

/* The terms of segments without terms of their own. No call sequence fits them. */
static const char others[] = "";

static struct rs_terms *find(struct rs_engine *e, const char *name)
{
	struct rs_terms *t;

	HASH_FIND(hh, e->terms, &name, sizeof(name), t);
	return t;
}

/* segment may be `others`. engine.lock held. NULL: no memory. */
static struct rs_terms *terms_of(struct rs_engine *e, const char *segment)
{
	const char *name = segment == others ? others : rs_intern(e, segment);
	struct rs_terms *t = name ? find(e, name) : NULL;

	if (t || !name)
		return t;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->name = name;
	t->policy = e->policy;
	HASH_ADD(hh, e->terms, name, sizeof(t->name), t);
	if (!t->hh.tbl) {
		free(t);
		return NULL;
	}
	return t;
}

struct rs_terms *rs_terms_find(struct rs_engine *e, const char *name)
{
	struct rs_terms *t = e->terms ? find(e, name) : NULL;

	return t || !e->terms ? t : find(e, others);
}

int rs_engine_policy(struct rs_engine *e, const char *segment, struct rs_policy policy)
{
	struct rs_terms *t = NULL;
	int err = 0;

	if (policy.option >= RS_OPTIONS || policy.restore >= RS_RESTORES)
		return -EINVAL;
	pthread_mutex_lock(&e->lock);
	if (!segment) {
		e->policy = policy;
	} else {
		t = terms_of(e, segment);
		if (t)
			t->policy = policy;
		else
			err = -ENOMEM;
	}
	pthread_mutex_unlock(&e->lock);
	return err;
}

int rs_engine_term(struct rs_engine *e, const char *segment, const struct rs_term *term)
{
	struct rs_terms *t;
	struct rs_term *added;
	int err = -ENOMEM;

	if (!term->len || term->off + term->len < term->off)
		return -EINVAL;
	pthread_mutex_lock(&e->lock);
	t = terms_of(e, segment);
	added = t ? RS_PUSH(t->terms) : NULL;
	if (added) {
		t->windows |= term->window;
		*added = *term;
		added->region = term->region ? rs_intern(e, term->region) : NULL;
		err = term->region && !added->region ? -ENOMEM : 0;
		if (err)
			t->terms.n--;
	}
	pthread_mutex_unlock(&e->lock);
	return err;
}

int rs_engine_expect_calls(struct rs_engine *e, const char *segment, uint64_t calls)
{
	struct rs_terms *t;
	uint64_t *added;

	pthread_mutex_lock(&e->lock);
	t = terms_of(e, segment);
	added = t ? RS_PUSH(t->calls) : NULL;
	if (added)
		*added = calls;
	pthread_mutex_unlock(&e->lock);
	return added ? 0 : -ENOMEM;
}

int rs_engine_expect_replays(struct rs_engine *e, const char *segment, uint32_t replays)
{
	struct rs_terms *t;

	pthread_mutex_lock(&e->lock);
	t = terms_of(e, segment);
	if (t)
		t->replays = replays;
	pthread_mutex_unlock(&e->lock);
	return t ? 0 : -ENOMEM;
}

int rs_engine_expect_none(struct rs_engine *e)
{
	return rs_engine_expect_calls(e, others, 0);
}

/* The bytes of r's allocation that the term is about: 1 and [*ret_off, + *ret_len), or 0. */
static int term_bytes(const struct rs_term *t, const struct rs_spot *s, uint64_t *ret_off,
		      uint64_t *ret_len)
{
	const struct rs_alloc *a = s->range->a;
	uint64_t base, room;
	uint32_t i;

	if (t->region) {
		for (i = 0; i < a->regions.n && a->regions.v[i].name != t->region; i++)
			;
		if (i == a->regions.n)
			return 0;
		base = a->regions.v[i].off;
		room = a->regions.v[i].len;
	} else {
		if (t->call != s->call || t->slot != s->slot || t->piece != s->range->piece)
			return 0;
		base = s->range->off;
		room = s->range->len;
	}
	if (t->off >= room)
		return 0;
	*ret_off = base + t->off;
	*ret_len = t->len < room - t->off ? t->len : room - t->off;
	return 1;
}

/* The term of that kind that contains off, or NULL; *until: lowered to where that answer changes. */
const struct rs_term *rs_terms_at(const struct rs_terms *terms, const struct rs_spot *spot,
				  uint64_t off, int window, uint64_t *until)
{
	const struct rs_term *found = NULL;
	uint64_t from, len;
	uint32_t i;

	for (i = 0; terms && i < terms->terms.n; i++) {
		const struct rs_term *t = &terms->terms.v[i];

		if (t->window != window || !term_bytes(t, spot, &from, &len) || off >= from + len)
			continue;
		if (off < from) {
			*until = from < *until ? from : *until;
			continue;
		}
		if (!found) {
			found = t;
			*until = from + len < *until ? from + len : *until;
		}
	}
	return found;
}

/* The forward of s is over: has it made the calls that were expected? */
int rs_terms_calls_fit(const struct rs_terms *terms, const struct rs_segment *s)
{
	uint64_t h = rs_terms_calls(s);
	uint32_t i;

	if (terms && terms->name == others)
		return 0;
	for (i = 0; terms && i < terms->calls.n; i++)
		if (terms->calls.v[i] == h)
			return 1;
	return !terms || !terms->calls.n;
}

/* The calls of a forward as a number: kernels and shapes in their order. */
uint64_t rs_terms_calls(const struct rs_segment *s)
{
	uint64_t h = s->log.n;
	uint32_t i;

	for (i = 0; i < s->log.n; i++)
		h = rs_digest_mix(h * RS_DIGEST_K + s->log.v[i].ident);
	return h;
}

void rs_terms_fini(struct rs_engine *e)
{
	struct rs_terms *t, *tmp;

	HASH_ITER (hh, e->terms, t, tmp) {
		HASH_DEL(e->terms, t);
		free(t->terms.v);
		free(t->calls.v);
		free(t);
	}
}
