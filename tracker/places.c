/* SPDX-License-Identifier: MIT */
/*
 * Aliases of a forward: two places, each an argument of one of its calls, that reach the same bytes of memory that is
 * older than the forward: one tensor passed twice, a view and its base, weights that two layers share, two mappings of one
 * backing. Learned by a run with config.profile; where a contract names them, a run must have the same ones (RS084).
 *
 * Of a state byte the place that reached it first is remembered with its span; every later one that reaches it is the other
 * half of a pair, so that n calls on the same bytes are n - 1 pairs. Of bytes that are no state only the arguments of one
 * call are compared: pools give the same memory to product after product. An access whose bounds nobody knows proves nothing.
 * A call looks at each span that it touches once, at no more than MOST_MET other places per range; a segment has
 * MOST_ALIASES. What is beyond is cut, which is told, and then what is not known is no contradiction.
 *
 * Callers: access.c, window.c, profile.c, terms.c under engine.lock.
 */
#include "tracker/places.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/callstate.h"

#define MOST_ALIASES 4096u
#define MOST_MET     64u

struct rs_shared {
	struct rs_pair key;
	uint64_t bytes, forwards; /* most that they shared; in how many forwards */
	uint64_t last;		  /* the last of them, by its `since` */
	uint64_t call, sum;	  /* what its last call has shared */
	const char *kernel[2];	  /* immortal */
	const char *region;	  /* interned: the name of what they share, or NULL */
	uint8_t always;		  /* contract: in every forward */
	UT_hash_handle hh;
};

/* --- sets ----------------------------------------------------------------------------------------- */

static struct rs_shared *find(const struct rs_alias_set *set, const struct rs_pair *key)
{
	struct rs_shared *x;

	HASH_FIND(hh, set->all, key, sizeof(*key), x);
	return x;
}

/* NULL: no memory, or too many; then the set is cut. */
static struct rs_shared *add(struct rs_alias_set *set, const struct rs_pair *key)
{
	struct rs_shared *x = find(set, key);

	if (x)
		return x;
	x = HASH_COUNT(set->all) < MOST_ALIASES ? calloc(1, sizeof(*x)) : NULL;
	if (x) {
		x->key = *key;
		HASH_ADD(hh, set->all, key, sizeof(x->key), x);
		if (x->hh.tbl)
			return x;
		free(x);
	}
	set->cut = 1;
	return NULL;
}

void rs_places_free(struct rs_alias_set *set)
{
	struct rs_shared *x;

	while ((x = set->all)) {
		HASH_DEL(set->all, x);
		free(x);
	}
}

static int is_after(const struct rs_place *a, const struct rs_place *b)
{
	if (a->call != b->call)
		return a->call > b->call;
	return a->slot != b->slot ? a->slot > b->slot : a->piece > b->piece;
}

/* The earlier one first, so that a pair has one name. */
static struct rs_pair pair_of(struct rs_place a, struct rs_place b)
{
	return is_after(&a, &b) ? (struct rs_pair){b, a} : (struct rs_pair){a, b};
}

int rs_places_expect(struct rs_alias_set *set, const struct rs_alias *alias)
{
	const struct rs_pair key = pair_of(
		(struct rs_place){alias->call, alias->slot, alias->piece},
		(struct rs_place){alias->other_call, alias->other_slot, alias->other_piece});
	struct rs_shared *x;

	if (!is_after(&key.other, &key.first))
		return -EINVAL;
	x = add(set, &key);
	if (x)
		x->always |= alias->always;
	return x || HASH_COUNT(set->all) == MOST_ALIASES ? 0 : -ENOMEM;
}

/* --- a forward's call ----------------------------------------------------------------------------- */

/* A logged access, or one of the present call. */
struct reached {
	struct rs_place place;
	const char *kernel;
	uint8_t whole;
};

static struct reached present(const struct rs_callstate *c, const struct rs_segment *s,
			      const struct rs_range *r)
{
	const struct rs_access *x = rs_access_of(c, r);

	return (struct reached){{s->log.n, x->slot, r->piece},
				c->call->name,
				x->whole || x->how >= RS_HOW_REACHABLE};
}

static struct reached earlier(const struct rs_segment *s, uint32_t access)
{
	const struct rs_logged_access *la = &s->accesses.v[access];
	uint32_t lo = 0, hi = s->log.n;

	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (s->log.v[mid].first <= access)
			lo = mid;
		else
			hi = mid;
	}
	return (struct reached){{lo, la->slot, la->piece}, s->log.v[lo].name, la->whole};
}

static void learn(struct rs_callstate *c, const struct rs_window *w, const struct rs_pair *key,
		  const char *first, const char *other)
{
	const struct rs_meeting *m = &c->meeting;
	struct rs_shared *x = add(m->learned, key);
	const struct rs_region *region;
	uint64_t until;

	if (!x)
		return;
	region = rs_region_at(m->range->a, m->off, &until);
	x->region = region ? region->name : x->region;
	x->sum = x->call == c->number ? x->sum + m->bytes : m->bytes;
	x->call = c->number;
	x->bytes = rs_max64(x->bytes, x->sum);
	x->forwards += x->last != w->seg->since;
	x->last = w->seg->since;
	x->kernel[0] = first;
	x->kernel[1] = other;
}

/* The forward's first contradiction is told. */
static void contradict(struct rs_engine *e, struct rs_segment *s, const struct rs_pair *key,
		       const char *const kernel[2], struct rs_alloc *a, uint64_t off, uint64_t len,
		       const struct rs_writer *who, int absent)
{
	if (s->shared.alloc)
		return;
	s->pair = *key;
	s->pair_kernel[0] = kernel[0];
	s->pair_kernel[1] = kernel[1];
	s->pair_absent = (uint8_t)absent;
	rs_segment_note(e, s, RS_CHECK_ALIAS, a, off, len, who);
}

/* All that the present range shares with one earlier place is known. */
static void settle(struct rs_callstate *c, struct rs_window *w)
{
	struct rs_meeting *m = &c->meeting;
	const struct rs_segment *s = w->seg;
	struct reached now, then;
	struct rs_pair key;

	if (!m->bytes)
		return;
	now = present(c, s, m->range);
	then = m->place < s->accesses.n ? earlier(s, m->place)
					: present(c, s, &c->range[m->place - s->accesses.n]);
	key = pair_of(then.place, now.place);
	if (!now.whole && !then.whole && is_after(&key.other, &key.first)) {
		const int turned = is_after(&then.place, &now.place);
		const char *const kernel[2] = {turned ? now.kernel : then.kernel,
					       turned ? then.kernel : now.kernel};

		if (m->learned)
			learn(c, w, &key, kernel[0], kernel[1]);
		if (m->known && m->known->complete && !m->known->cut && !find(m->known, &key))
			contradict(c->e, w->seg, &key, kernel, m->range->a, m->off, m->bytes,
				   &c->who, 0);
	}
	m->bytes = 0;
}

void rs_places_begin(struct rs_callstate *c, const struct rs_window *w)
{
	struct rs_meeting *m = &c->meeting;

	*m = (struct rs_meeting){0};
	if (w->kind != RS_WINDOW_FORWARD)
		return;
	m->learned = rs_profile_aliases(c->e, w->seg->name);
	m->known = w->seg->terms ? &w->seg->terms->aliases : NULL;
	m->wanted = m->learned || (m->known && m->known->complete);
}

void rs_places_meet(struct rs_callstate *c, struct rs_window *w, const struct rs_range *r,
		    const struct rs_span *s, uint64_t off, uint64_t end)
{
	struct rs_meeting *m = &c->meeting;

	if (rs_range_is_new(w, r) || (s->cls != RS_CLASS_STATE && s->place < w->seg->accesses.n))
		return;
	if (m->range != r || m->place != s->place) {
		settle(c, w);
		m->n = m->range == r ? m->n + 1 : 0;
		m->range = r;
		m->place = s->place;
		m->off = off;
	}
	if (m->n < MOST_MET)
		m->bytes += end - off;
	else if (m->learned)
		m->learned->cut = 1;
}

void rs_places_met(struct rs_callstate *c, struct rs_window *w)
{
	settle(c, w);
	c->meeting.range = NULL;
}

/* All ranges that are read, or all others. */
static void meet_steady(struct rs_callstate *c, struct rs_window *w, int read)
{
	uint32_t i;

	for (i = 0; i < c->nranges; i++) {
		const struct rs_range *r = &c->range[i];
		const struct rs_touch *t = rs_touch_of(w->seg->touches, r->a);

		if (!!(rs_access_of(c, r)->dir & RS_READ) != read)
			continue;
		rs_places_meet(c, w, r, &t->spans.v[rs_span_at(t, r->off)], r->off,
			       r->off + r->len);
		rs_places_met(c, w);
	}
}

/* A call whose ranges lie each in one that the forward has classified before. Reads come first, as they do in access.c. */
void rs_places_steady(struct rs_callstate *c, struct rs_window *w)
{
	rs_places_begin(c, w);
	if (!c->meeting.wanted)
		return;
	meet_steady(c, w, 1);
	meet_steady(c, w, 0);
}

/* --- a forward's end ------------------------------------------------------------------------------ */

static int is_at(const struct rs_logged_access *la, const struct rs_place *p)
{
	return la->slot == p->slot && la->piece == p->piece;
}

/* Has the forward reached both places, without an access that it cannot tell, and nothing by both? *ret: what by the other. */
static int is_apart(const struct rs_segment *s, const struct rs_pair *key,
		    const struct rs_logged_access **ret)
{
	const struct rs_logged_call *first, *other;
	uint32_t i, k, n = 0;

	if (key->other.call >= s->log.n)
		return 0;
	first = &s->log.v[key->first.call];
	other = &s->log.v[key->other.call];
	if (first->refused || other->refused)
		return 0;
	for (i = first->first; i < first->first + first->n; i++) {
		const struct rs_logged_access *x = &s->accesses.v[i];

		for (k = is_at(x, &key->first) ? 0 : other->n; k < other->n; k++) {
			const struct rs_logged_access *y = &s->accesses.v[other->first + k];

			if (!is_at(y, &key->other))
				continue;
			if (x->whole || y->whole ||
			    (x->serial == y->serial && x->off < y->off + y->len &&
			     y->off < x->off + x->len))
				return 0;
			*ret = y;
			n++;
		}
	}
	return n > 0;
}

static struct rs_alloc *alloc_of(const struct rs_segment *s, uint64_t serial)
{
	struct rs_touch *t = rs_touch_find(s->touches, serial);

	return t ? t->alloc : NULL;
}

void rs_places_over(struct rs_engine *e, struct rs_segment *s)
{
	const struct rs_logged_access *la = NULL;
	const struct rs_shared *x;

	for (x = s->terms ? s->terms->aliases.all : NULL; x && !s->shared.alloc; x = x->hh.next) {
		struct rs_writer who = {.kind = RS_CALL_OTHER, .how = RS_HOW_EXACT, .window = ""};
		const char *kernel[2];
		struct rs_alloc *a;

		if (!x->always || !is_apart(s, &x->key, &la))
			continue;
		a = alloc_of(s, la->serial);
		kernel[0] = s->log.v[x->key.first.call].name;
		kernel[1] = s->log.v[x->key.other.call].name;
		who.name = kernel[1];
		who.call = s->log.v[x->key.other.call].call;
		who.step = s->step;
		who.window = s->label ? s->label : "";
		if (a)
			contradict(e, s, &x->key, kernel, a, la->off, la->len, &who, 1);
	}
}

/* --- lines ---------------------------------------------------------------------------------------- */

static void write_place(struct rs_json *j, const char *call, const char *slot, const char *piece,
			const char *kernel, const struct rs_place *p, const char *name)
{
	rs_json_u64(j, call, p->call);
	rs_json_u64(j, slot, p->slot);
	rs_json_u64(j, piece, p->piece);
	rs_json_str(j, kernel, name ? name : "");
}

void rs_places_write(struct rs_engine *e, const char *segment, const struct rs_alias_set *set)
{
	const struct rs_shared *x;
	struct rs_json j;

	for (x = set->all; x; x = x->hh.next) {
		rs_json_begin(&j);
		rs_json_str(&j, "t", "alias");
		rs_json_str(&j, "segment", segment);
		write_place(&j, "call", "slot", "piece", "kernel", &x->key.first, x->kernel[0]);
		write_place(&j, "other_call", "other_slot", "other_piece", "other_kernel",
			    &x->key.other, x->kernel[1]);
		if (x->region)
			rs_json_str(&j, "region", x->region);
		rs_json_u64(&j, "bytes", x->bytes);
		rs_json_u64(&j, "forwards", x->forwards);
		rs_records_write(e->records, RS_RECORD_EVENTS, &j);
	}
}

/* Of a finding: the two places, and whether they share memory now. In words, too. */
void rs_places_tell(struct rs_json *j, const struct rs_segment *s)
{
	const struct rs_place *const both[2] = {&s->pair.first, &s->pair.other};
	char text[400];

	snprintf(text, sizeof(text),
		 "call %u slot %u piece %u (%.100s) and call %u slot %u piece %u (%.100s) %s",
		 both[0]->call, both[0]->slot, both[0]->piece, s->pair_kernel[0], both[1]->call,
		 both[1]->slot, both[1]->piece, s->pair_kernel[1],
		 s->pair_absent ? "share no memory, as the contract says they do"
				: "share memory, of which the contract does not know");
	rs_json_str(j, "text", text);
	rs_json_bool(j, "shared", !s->pair_absent);
	rs_json_open(j, "places", '[');
	for (unsigned i = 0; i < 2; i++) {
		rs_json_open(j, NULL, '{');
		write_place(j, "call", "slot", "piece", "kernel", both[i], s->pair_kernel[i]);
		rs_json_close(j, '}');
	}
	rs_json_close(j, ']');
}
