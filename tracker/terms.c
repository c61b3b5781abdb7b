/* SPDX-License-Identifier: MIT */
/*
 * What a contract or a plan says of segments: how their state is preserved, which memory is state and which a
 * product, where writes are expected, which calls the forward makes.
 *
 * Which places share memory is in places.c. Terms are given before the segments run and stay until the engine goes. A forward that contradicts its
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
	if (policy.restore == RS_RESTORE_REMAP)
		rs_remap_want(e);
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

/* --- terms by place --------------------------------------------------------------------------- */

/* What terms can say something about the same bytes: those of a region, or of one argument of one call. */
struct place {
	const char *region; /* interned, or NULL */
	uint32_t call;
	uint16_t slot, piece;
	uint8_t window;
};

struct stretch {
	uint64_t off, end;
	uint32_t term; /* its number */
};

/* Of terms that overlap the first one given counts. */
struct rs_term_group {
	struct place key;
	RS_VEC(struct stretch) stretches; /* sorted, disjoint */
	UT_hash_handle hh;
};

static struct place place_of(const struct rs_term *term)
{
	struct place p;

	memset(&p, 0, sizeof(p)); /* it is hashed, padding included */
	p.region = term->region;
	p.window = term->window;
	if (!term->region) {
		p.call = term->call;
		p.slot = term->slot;
		p.piece = term->piece;
	}
	return p;
}

static struct rs_term_group *group_at(const struct rs_terms *t, const struct rs_term *term)
{
	struct place key = place_of(term);
	struct rs_term_group *g;

	HASH_FIND(hh, t->groups, &key, sizeof(key), g);
	return g;
}

/* NULL: no memory. */
static struct rs_term_group *group_of(struct rs_terms *t, const struct rs_term *term)
{
	struct rs_term_group *g = group_at(t, term);

	if (g)
		return g;
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->key = place_of(term);
	HASH_ADD(hh, t->groups, key, sizeof(g->key), g);
	if (g->hh.tbl)
		return g;
	free(g);
	return NULL;
}

/* Index of the first stretch that ends behind off. */
static uint32_t stretch_at(const struct rs_term_group *g, uint64_t off)
{
	uint32_t lo = 0, hi = g->stretches.n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (g->stretches.v[mid].end <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* What of [off, end) no earlier term has. */
static int add_stretches(struct rs_term_group *g, uint64_t off, uint64_t end, uint32_t term)
{
	uint32_t i = stretch_at(g, off);

	while (off < end) {
		struct stretch *at = i < g->stretches.n ? &g->stretches.v[i] : NULL, *added;
		uint64_t until = at ? rs_min64(end, at->off) : end;

		if (at && at->off <= off) {
			off = at->end;
			i++;
			continue;
		}
		added = RS_PUSH(g->stretches);
		if (!added)
			return -ENOMEM;
		at = &g->stretches.v[i];
		memmove(at + 1, at, (size_t)(added - at) * sizeof(*at));
		*at = (struct stretch){off, until, term};
		off = until;
		i++;
	}
	return 0;
}

int rs_engine_term(struct rs_engine *e, const char *segment, const struct rs_term *term)
{
	struct rs_term_group *g = NULL;
	struct rs_term *added = NULL;
	struct rs_terms *t;
	int err = -ENOMEM;

	if (!term->len || term->off + term->len < term->off)
		return -EINVAL;
	pthread_mutex_lock(&e->lock);
	t = terms_of(e, segment);
	if (t)
		added = RS_PUSH(t->terms);
	if (added) {
		t->windows |= term->window;
		*added = *term;
		added->region = term->region ? rs_intern(e, term->region) : NULL;
		if (added->region || !term->region)
			g = group_of(t, added);
		if (g)
			err = add_stretches(g, term->off, term->off + term->len, t->terms.n - 1);
		else
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

int rs_engine_alias(struct rs_engine *e, const char *segment, const struct rs_alias *alias)
{
	struct rs_terms *t;
	int err;

	pthread_mutex_lock(&e->lock);
	t = terms_of(e, segment);
	err = t ? rs_places_expect(&t->aliases, alias) : -ENOMEM;
	pthread_mutex_unlock(&e->lock);
	return err;
}

int rs_engine_expect_no_other_alias(struct rs_engine *e, const char *segment)
{
	struct rs_terms *t;

	pthread_mutex_lock(&e->lock);
	t = terms_of(e, segment);
	if (t)
		t->aliases.complete = 1;
	pthread_mutex_unlock(&e->lock);
	return t ? 0 : -ENOMEM;
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

/* A search for the term that contains off. */
struct search {
	const struct rs_terms *terms;
	uint64_t off;
	uint64_t until; /* where the answer changes */
	uint32_t found; /* the term's number; UINT32_MAX: none */
};

/* One group, whose offset 0 is at base in the allocation, and which ends at room. */
static void search_group(struct search *s, const struct rs_term_group *g, uint64_t base,
			 uint64_t room)
{
	uint64_t at = s->off > base ? s->off - base : 0;
	uint32_t i = g ? stretch_at(g, at) : 0;
	const struct stretch *x;

	if (!g || i == g->stretches.n || g->stretches.v[i].off >= room)
		return;
	x = &g->stretches.v[i];
	if (s->off < base + x->off) {
		s->until = rs_min64(s->until, base + x->off);
		return;
	}
	s->until = rs_min64(s->until, base + rs_min64(x->end, room));
	s->found = x->term < s->found ? x->term : s->found;
}

/* Regions that lie at off or behind it, as far as it matters. */
static void search_regions(struct search *s, const struct rs_alloc *a, int window)
{
	uint32_t lo = 0, hi = a->regions.n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (a->regions.v[mid].off + a->regions.v[mid].len <= s->off)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < a->regions.n && a->regions.v[lo].off < s->until; lo++) {
		const struct rs_region *r = &a->regions.v[lo];
		const struct rs_term of = {.region = r->name, .window = (uint8_t)window};

		search_group(s, group_at(s->terms, &of), r->off, r->len);
	}
}

/* The term of that kind that contains off, or NULL; *until: lowered to where that answer changes. */
const struct rs_term *rs_terms_at(const struct rs_terms *terms, const struct rs_spot *spot,
				  uint64_t off, int window, uint64_t *until)
{
	const struct rs_range *r = spot->range;
	const struct rs_term of = {.call = spot->call,
				   .slot = spot->slot,
				   .piece = r->piece,
				   .window = (uint8_t)window};
	struct search s = {.terms = terms, .off = off, .until = *until, .found = UINT32_MAX};

	if (!terms || !terms->groups)
		return NULL;
	search_group(&s, group_at(terms, &of), r->off, r->len);
	search_regions(&s, r->a, window);
	*until = s.until;
	return s.found == UINT32_MAX ? NULL : &terms->terms.v[s.found];
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
	struct rs_term_group *g;
	struct rs_terms *t, *tmp;

	HASH_ITER (hh, e->terms, t, tmp) {
		HASH_DEL(e->terms, t);
		while ((g = t->groups)) {
			HASH_DEL(t->groups, g);
			free(g->stretches.v);
			free(g);
		}
		rs_places_free(&t->aliases);
		free(t->terms.v);
		free(t->calls.v);
		free(t);
	}
}
