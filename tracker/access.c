/* SPDX-License-Identifier: MIT */
/*
 * One driver call: which windows it belongs to, what it touches there, what must be planned before it.
 *
 * A range is classified once per window, at its first access (enum rs_class). Order inside a call:
 * every window sees the reads (claims, restores), then the writes (holds), then the model is bumped.
 *
 * Callers: follow.c, with engine.lock held.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/callstate.h"
#include "tracker/costing.h"
#include "tracker/digest.h"

static enum rs_class first_class(const struct rs_window *w, const struct rs_range *r,
				 const struct rs_region *region, const struct rs_term *term,
				 const struct rs_access *x, int read)
{
	/* module variables and registered host memory are older than the moment they became known */
	int inside = rs_range_is_new(w, r) &&
		     (r->given || r->a->kind == RS_ALLOC_DEVICE || r->a->kind == RS_ALLOC_MANAGED);

	if (region)
		return region->product ? RS_CLASS_PRODUCT : RS_CLASS_STATE;
	/* another invocation may reach state where this one reaches what it has allocated itself */
	if (term && !inside)
		return term->role == RS_ROLE_PRODUCT ? RS_CLASS_PRODUCT : RS_CLASS_STATE;
	if (inside)
		return RS_CLASS_PRODUCT;
	if (x->how >= RS_HOW_REACHABLE)
		return RS_CLASS_AMBIGUOUS;
	if (read)
		return RS_CLASS_STATE;
	return x->dense ? RS_CLASS_PRODUCT : RS_CLASS_MAYBE;
}

/* One claim in so many is digested at once, whoever may write it later: see RS_CHECK_SAMPLE. */
static int is_sampled(const struct rs_callstate *c, const struct rs_alloc *a,
		      const struct rs_ext *x)
{
	uint32_t n = c->e->config.sample;

	return n && !rs_alloc_is_volatile(a) &&
	       rs_digest_mix(c->number * RS_DIGEST_K + x->off) % n == 0;
}

/* Which call of the forward this is, and through which argument it reaches the range. */
static struct rs_spot spot_of(const struct rs_callstate *c, const struct rs_window *w,
			      const struct rs_range *r)
{
	struct rs_spot s = {.range = r, .call = UINT32_MAX, .slot = rs_access_of(c, r)->slot};

	if (w->kind == RS_WINDOW_FORWARD)
		s.call = w->seg->log.n;
	else if (w->seg && w->matched_call == c->number)
		s.call = w->matched;
	return s;
}

/* A range that a forward reads, and what is known of it. */
struct claiming {
	const struct rs_segment *s;
	const struct rs_spot *spot;
	const struct rs_profile_range *told; /* what this run has seen of it so far, or NULL */
	uint64_t at, end;		     /* in the allocation */
};

/* Is a write expected at off? A contract knows, or this run has seen it. *until: where the answer changes. */
static int is_expected(const struct claiming *k, uint64_t off, uint64_t *until)
{
	if (k->s->terms)
		return rs_terms_at(k->s->terms, k->spot, off, 1, until) != NULL;
	return rs_profile_expects(k->told, k->at, off, until);
}

/* Make the windows in which writes are expected boundaries, so that only they are preserved early. */
static int split_windows(const struct claiming *k)
{
	struct rs_alloc *a = k->spot->range->a;
	uint64_t off = k->at;
	int err = 0;

	while (k->s->policy.option == RS_OPTION_REGIONS && off < k->end && !err) {
		uint64_t until = k->end;

		is_expected(k, off, &until);
		err = until < k->end ? rs_extmap_split(&a->ext, off, until - off) : 0;
		off = until;
	}
	return err;
}

/*
 * Of a whole range: is a write expected anywhere in it? Where nobody knows of any, anywhere; but a plan has no room for all
 * that is read, and when the write comes is early enough.
 */
static int is_hazardous(const struct claiming *k)
{
	uint64_t until = k->end;

	if (k->s->terms ? !k->s->terms->windows : !k->told || !rs_profile_knows(k->told))
		return !k->s->planned;
	return is_expected(k, k->at, &until) || until < k->end;
}

/* Does the segment's policy want these bytes before anybody writes to them? */
static int is_eager(const struct rs_engine *e, const struct claiming *k, uint64_t off,
		    int hazardous)
{
	uint64_t until = UINT64_MAX;

	if (e->config.mode != RS_MODE_PRESERVE)
		return 0;
	return (k->s->policy.option == RS_OPTION_WHOLE && hazardous) ||
	       (k->s->policy.option == RS_OPTION_REGIONS && is_expected(k, off, &until));
}

static void take_eagerly(struct rs_callstate *c, struct rs_alloc *a, const struct rs_ext *x)
{
	struct rs_keep *k = rs_keep_take(c->e, c->l, c->q, a, x, &c->who, 0);

	if (k && k->state == RS_KEEP_PLANNED)
		k->eager = 1;
}

/* Forward: R must see these bytes as they are now. */
static void add_claims(struct rs_callstate *c, struct rs_window *w, struct rs_touch *t,
		       const struct rs_range *r, uint64_t off, uint64_t len, enum rs_class cls)
{
	struct rs_profile *p = rs_profile_of(c->e, w->seg->name);
	const struct rs_spot spot = spot_of(c, w, r);
	struct claiming k = {.s = w->seg, .spot = &spot, .at = off, .end = off + len};
	struct rs_profile_range *told;
	struct rs_alloc *a = t->alloc;
	uint64_t at = off, end = off + len;
	int hazardous;

	told = p ? rs_profile_read(p, &spot, off, len, cls, c->call->name) : NULL;
	k.told = told;
	hazardous = is_hazardous(&k);
	if (rs_extmap_split(&a->ext, off, len) || split_windows(&k)) {
		w->seg->flags |= RS_F_INTERNAL;
		return;
	}
	while (off < end) {
		struct rs_ext *x = &a->ext.ext[rs_extmap_at(&a->ext, off)];
		struct rs_claim *claim;

		rs_keeps_outdate(c->e, a, x);
		claim = rs_claim_add(t, x->off);
		if (!claim) {
			w->seg->flags |= RS_F_INTERNAL;
			return;
		}
		claim->off = x->off;
		claim->len = x->len;
		claim->ver = x->ver;
		claim->cls = (uint8_t)cls;
		claim->q = c->q;
		claim->tick = c->who.tick;
		x->claimed = 1;
		if (a->claimed != c->e->claim_epoch) {
			__atomic_store_n(&a->claimed, c->e->claim_epoch, __ATOMIC_RELAXED);
			rs_moment_next(c->e);
		}
		if (is_sampled(c, a, x))
			claim->sample = rs_plan_digest(c->l, c->q, a, x->off, x->len);
		claim->range = told;
		claim->range_at = at;
		/* the host may change these unseen: keep them now, there will be no write to see */
		if (rs_alloc_is_volatile(a) || is_eager(c->e, &k, x->off, hazardous))
			take_eagerly(c, a, x);
		off = x->off + x->len;
	}
}

static void upgrade_claims(struct rs_touch *t, uint64_t off, uint64_t len)
{
	uint32_t i;

	for (i = rs_claim_at(t, off); i < t->claims.n && t->claims.v[i].off < off + len; i++)
		if (t->claims.v[i].cls == RS_CLASS_MAYBE)
			t->claims.v[i].cls = RS_CLASS_AMBIGUOUS;
}

/*
 * First access of a window to a range. Bytes that are certainly overwritten before anything reads them
 * need no entry value, even when they are declared state; their P2 is held before the write.
 */
static void entered(struct rs_callstate *c, struct rs_window *w, struct rs_touch *t,
		    const struct rs_range *r, uint64_t off, uint64_t len, enum rs_class cls,
		    int read)
{
	if (cls == RS_CLASS_PRODUCT || (!read && rs_access_of(c, r)->dense))
		return;
	if (w->kind == RS_WINDOW_FORWARD) {
		if (!w->seg->kept)
			add_claims(c, w, t, r, off, len, cls);
		return;
	}
	if (cls == RS_CLASS_STATE && rs_pair_relocated(c, w, r, off, len))
		return;
	if (cls == RS_CLASS_STATE && rs_pair_taken_over(c, w, t->alloc, off, len))
		return;
	rs_window_enter_range(c->e, c->l, c->q, w, t->alloc, off, len, cls == RS_CLASS_STATE,
			      &c->who);
}

/*
 * Does the forward contradict its contract? One that names the calls names all state that is read, too; and nothing
 * older than the window is a product if it is certainly read first.
 */
static int is_broken(const struct rs_window *w, const struct rs_range *r,
		     const struct rs_term *term, const struct rs_access *x, int read)
{
	if (w->kind != RS_WINDOW_FORWARD)
		return 0;
	if (term)
		return term->role == RS_ROLE_PRODUCT && read && !rs_range_is_new(w, r) &&
		       x->how < RS_HOW_REACHABLE;
	return w->seg->terms && w->seg->terms->calls.n && (read || !x->dense);
}

static struct rs_span *insert_span(struct rs_touch *t, uint32_t at)
{
	struct rs_span *added = rs_touch_push(t);

	if (!added)
		return NULL;
	memmove(&t->spans.v[at + 1], &t->spans.v[at],
		(t->spans.n - 1 - at) * sizeof(t->spans.v[0]));
	return &t->spans.v[at];
}

/* Was the memory given out anew since the window has touched it? What was known of it was of other bytes. */
static int is_reborn(const struct rs_window *w, const struct rs_range *r, const struct rs_span *s)
{
	return r->given >= w->begin && s->cls != RS_CLASS_PRODUCT;
}

/* The range's number among the accesses of the forward, which are logged when all have been visited. */
static uint32_t place_of(const struct rs_callstate *c, const struct rs_window *w,
			 const struct rs_range *r)
{
	return w->kind == RS_WINDOW_FORWARD ? w->seg->accesses.n + (uint32_t)(r - c->range) : 0;
}

/* Classify what of the range is new to the window; a read makes MAYBE ambiguous. i: where its spans begin. */
__attribute__((noinline)) static void visit_new(struct rs_callstate *c, struct rs_window *w,
						struct rs_touch *t, const struct rs_range *r,
						int read, uint32_t i)
{
	const struct rs_spot spot = spot_of(c, w, r);
	uint64_t pos = r->off, end = r->off + r->len;

	while (pos < end) {
		const struct rs_region *region;
		const struct rs_term *term;
		struct rs_span *s;
		uint64_t until = end, region_end;
		enum rs_class cls;

		while (i < t->spans.n && t->spans.v[i].off + t->spans.v[i].len <= pos)
			i++;
		s = i < t->spans.n ? &t->spans.v[i] : NULL;
		if (s && s->off <= pos) {
			if (is_reborn(w, r, s) && !rs_region_at(r->a, pos, &region_end)) {
				i = rs_reborn_access(
					w, t, i, pos,
					rs_min64(rs_min64(end, region_end), s->off + s->len));
				s = &t->spans.v[i];
			} else if (s->loose) {
				i = rs_loose_access(c, w, t, i, r, pos,
						    rs_min64(end, s->off + s->len), read);
				s = &t->spans.v[i];
			}
			if (read && s->cls == RS_CLASS_MAYBE) {
				s->cls = RS_CLASS_AMBIGUOUS;
				upgrade_claims(t, s->off, s->len);
			}
			if (c->meeting.wanted)
				rs_places_meet(c, w, r, s, pos, rs_min64(end, s->off + s->len));
			pos = s->off + s->len;
			continue;
		}
		if (s && s->off < until)
			until = s->off;
		region = rs_region_at(r->a, pos, &region_end);
		if (region_end < until)
			until = region_end;
		term = rs_terms_at(w->seg ? w->seg->terms : NULL, &spot, pos, 0, &until);
		cls = first_class(w, r, region, term, rs_access_of(c, r), read);
		if ((cls == RS_CLASS_STATE || term) &&
		    is_broken(w, r, term, rs_access_of(c, r), read))
			rs_place_note(c->e, w, RS_CHECK_BROKEN, r->a, pos, until - pos, &c->who);
		s = insert_span(t, i);
		if (!s) {
			*(w->rec ? &w->rec->flags : &w->seg->flags) |= RS_F_INTERNAL;
			return;
		}
		*s = (struct rs_span){.off = pos,
				      .len = until - pos,
				      .cls = (uint8_t)cls,
				      .loose = read && cls == RS_CLASS_STATE && !region &&
					       rs_access_of(c, r)->whole,
				      .place = place_of(c, w, r)};
		entered(c, w, t, r, pos, until - pos, cls, read);
		pos = until;
	}
	if (c->meeting.wanted)
		rs_places_met(c, w);
}

/* Most of what a window touches it has touched before. */
static void visit(struct rs_callstate *c, struct rs_window *w, struct rs_range *r, int read)
{
	struct rs_touch *t = rs_touch_get(
		c->e, w->kind == RS_WINDOW_FORWARD ? &w->seg->touches : &w->touches, r->a);
	const struct rs_span *s;
	uint32_t i;

	if (!t) {
		*(w->rec ? &w->rec->flags : &w->seg->flags) |= RS_F_INTERNAL;
		r->cls = RS_CLASS_NONE;
		return;
	}
	i = rs_span_at(t, r->off);
	s = &t->spans.v[i];
	if (i == t->spans.n || s->off > r->off || s->len - (r->off - s->off) < r->len ||
	    (read && s->cls == RS_CLASS_MAYBE) || (s->loose && !rs_access_of(c, r)->whole) ||
	    (s->loose && rs_access_of(c, r)->dir == RS_WRITE) || is_reborn(w, r, s) ||
	    c->meeting.wanted) {
		visit_new(c, w, t, r, read, i);
		i = rs_span_at(t, r->off);
		s = &t->spans.v[i];
	}
	r->cls = i < t->spans.n && s->off <= r->off ? s->cls : RS_CLASS_NONE;
}

/* Did the forward find this write-only range ambiguous (it read it later)? */
static int forward_read_later(const struct rs_window *w, const struct rs_alloc *a, uint64_t off,
			      uint64_t len)
{
	const struct rs_touch *t = w->seg ? rs_touch_of(w->seg->touches, a) : NULL;
	uint32_t i;

	for (i = t ? rs_claim_at(t, off) : 0;
	     t && i < t->claims.n && t->claims.v[i].off < off + len; i++)
		if (t->claims.v[i].cls != RS_CLASS_MAYBE)
			return 1;
	return 0;
}

/* Has the forward had anything to do with these bytes? */
static int forward_touched(const struct rs_window *w, const struct rs_alloc *a, uint64_t off,
			   uint64_t len)
{
	const struct rs_segment *s = w->seg;
	const struct rs_touch *t = rs_touch_of(s->touches, a);
	uint32_t i = t ? rs_span_at(t, off) : 0;

	if (t && i < t->spans.n && t->spans.v[i].off < off + len)
		return 1;
	/* a spent one has given back what it knew of memory, but not its log */
	for (i = 0; s->spent && i < s->accesses.n; i++) {
		const struct rs_logged_access *la = &s->accesses.v[i];

		if (la->serial == a->serial && la->off < off + len && off < la->off + la->len)
			return 1;
	}
	return 0;
}

/*
 * State that only the replay touches may be no part of it, such as a gradient that a backward inside of the window
 * adds to: then its bytes must survive. Where it is declared state, what was asked for is done, but not vouched for. And
 * where the forward made a product by this very write, the program's own allocator has handed state's memory out again.
 */
static enum rs_hold_how how_to_hold(const struct rs_callstate *c, const struct rs_window *w,
				    const struct rs_range *r, const struct rs_span *s)
{
	const struct rs_alloc *a = r->a;
	uint64_t until;

	if (s->cls != RS_CLASS_STATE || rs_pair_made_product(c, w, r))
		return RS_HOLD_COMPARE;
	/* what a forward that is retired has touched nobody knows any more */
	if (!w->seg || w->seg->retired || forward_touched(w, a, s->off, s->len))
		return RS_HOLD_RESTORE;
	return rs_region_at(a, s->off, &until) ? RS_HOLD_BOTH : RS_HOLD_COMPARE;
}

/* A replay is about to write: what is not a product must be put back, or at least compared. */
static void hold_before_write(struct rs_callstate *c, struct rs_window *w, const struct rs_range *r)
{
	struct rs_touch *t = rs_touch_of(w->touches, r->a);
	uint64_t end = r->off + r->len;
	uint32_t i;

	/* what the host may read at any time is not taken back behind its back: RS020 says so */
	if (rs_alloc_is_volatile(r->a))
		return;
	for (i = t ? rs_span_at(t, r->off) : 0; t && i < t->spans.n && t->spans.v[i].off < end;
	     i++) {
		struct rs_span s = t->spans.v[i];
		uint64_t from = s.off > r->off ? s.off : r->off;
		uint64_t to = s.off + s.len < end ? s.off + s.len : end;

		if (from >= to || s.cls == RS_CLASS_PRODUCT)
			continue;
		if (s.cls == RS_CLASS_MAYBE && !forward_read_later(w, r->a, from, to - from))
			continue;
		rs_window_hold_range(c->e, c->l, c->q, w, r->a, from, to - from,
				     how_to_hold(c, w, r, &s), &c->who);
	}
}

static uint32_t call_flags(const struct rs_callstate *c)
{
	const struct rs_call *call = c->call;

	if (rs_call_elsewhere(c))
		return RS_F_CAPTURE;
	return (call->everything ? RS_F_UNKNOWN_WRITER : 0u) |
	       (call->untracked ? RS_F_UNTRACKED : 0u) |
	       (call->host_effect ? RS_F_HOST_EFFECT : 0u);
}

/* Does everything that was written to these bytes come before this read? */
static void check_writers(struct rs_callstate *c, struct rs_window *w, const struct rs_range *r)
{
	const struct rs_extmap *m = &r->a->ext;
	uint32_t i;

	for (i = c->who.tick ? rs_extmap_at(m, r->off) : m->n;
	     i < m->n && m->ext[i].off < r->off + r->len; i++) {
		const struct rs_ext *x = &m->ext[i];
		struct rs_writer who;

		if (!x->tick || x->q == c->q || rs_order_known(c->e, x->q, x->tick, c->q))
			continue;
		who = (struct rs_writer){.name = x->by, .kind = RS_CALL_OTHER, .window = ""};
		who.how = RS_HOW_UNKNOWN;
		who.step = c->e->step;
		who.noticed = c->number;
		rs_place_note(c->e, w, RS_CHECK_RACE, r->a, x->off, x->len, &who);
	}
}

/* Reads of one window, then what its writes need. */
static void in_window(struct rs_callstate *c, struct rs_window *w)
{
	uint32_t i;

	if (w->unresolved)
		rs_window_resolve(c, w);
	rs_where_flags(c->e, w, call_flags(c), &c->who);
	if (rs_call_elsewhere(c))
		return; /* nothing runs, so there is nothing to follow or to wait for */
	if (c->e->costing) {
		if (!w->queues)
			rs_timing_begin(c->e, c->l, w, c->q);
		else if (!(w->queues & RS_QBIT(c->q)))
			rs_lanes_begin(c->e, c->l, w, c->q);
		rs_timing_list(c->e, c->l, w);
	}
	w->queues |= RS_QBIT(c->q);
	w->last_q = c->q + 1;
	if (w->away)
		rs_view_returns(c, w);
	if (w->kind == RS_WINDOW_REPLAY && w->seg)
		rs_pair_match(c, w);
	rs_places_begin(c, w);
	for (i = 0; i < c->nranges; i++) {
		if (!(rs_access_of(c, &c->range[i])->dir & RS_READ))
			continue;
		check_writers(c, w, &c->range[i]);
		visit(c, w, &c->range[i], 1);
		rs_readers_note(c, w, &c->range[i]);
	}
	for (i = 0; i < c->nranges; i++) {
		if (!(rs_access_of(c, &c->range[i])->dir & RS_WRITE))
			continue;
		/* what is also read has been visited: all of it is classified */
		if (!(rs_access_of(c, &c->range[i])->dir & RS_READ))
			visit(c, w, &c->range[i], 0);
		if (w->kind == RS_WINDOW_REPLAY)
			hold_before_write(c, w, &c->range[i]);
	}
	if (w->kind == RS_WINDOW_FORWARD)
		rs_pair_log(c, w);
}

/* Outermost first: a forward inside a replay claims what the replay has put there. */
static void in_windows(struct rs_callstate *c, struct rs_window *w)
{
	if (!w)
		return;
	in_windows(c, rs_window_outer(w));
	in_window(c, w);
}

void rs_access_windows(struct rs_callstate *c, const struct rs_thread *t)
{
	struct rs_window *w;

	in_windows(c, rs_window_next(t->top));
	for (w = c->e->process; w; w = w->up)
		if (rs_window_is_segment(w))
			in_window(c, w);
}

/* Work of the shim's own on these bytes comes first. */
static void respect_fence(struct rs_callstate *c, struct rs_alloc *a)
{
	if (rs_must_wait(c->e, a, c->q)) {
		rs_oplist_fence(c->l, RS_QBIT(a->fence - 1), a, c->q);
		if (c->q < 63)
			__atomic_fetch_or(&a->fence_ordered, RS_QBIT(c->q), __ATOMIC_RELAXED);
	}
	if (!(__atomic_load_n(&a->touched, __ATOMIC_RELAXED) & RS_QBIT(c->q)))
		__atomic_fetch_or(&a->touched, RS_QBIT(c->q), __ATOMIC_RELAXED);
}

void rs_access_fences(struct rs_callstate *c)
{
	uint32_t i;

	for (i = 0; i < c->nranges; i++)
		respect_fence(c, c->range[i].a);
}

static void everything_of(struct rs_callstate *c, struct rs_alloc *a)
{
	if (a->dead || a->met == c->number || (a->ctx && a->ctx != c->call->q.ctx && !c->e->peers))
		return;
	a->met = c->number;
	rs_write_piecewise(c->e, c->l, c->q, a, 0, a->size, &c->who);
}

/*
 * A call that may write anything. What somebody needs gets a new version now; of all other memory it is enough
 * to know that it may have changed, and that this queue may have touched it.
 */
static void everything(struct rs_callstate *c)
{
	struct rs_engine *e = c->e;
	struct rs_segment *s;
	struct rs_touch *t;
	struct rs_window *w;
	uint32_t i;

	e->stats.unknown_writers++;
	rs_oplist_fence(c->l, __atomic_load_n(&e->fence_queues, __ATOMIC_RELAXED), NULL, c->q);
	e->touched_all |= RS_QBIT(c->q);
	e->loose_all = rs_version_next(e);
	for (s = e->pending; s; s = s->next)
		for (t = s->touches; t; t = t->hh.next)
			everything_of(c, t->alloc);
	for (w = e->replays; w; w = w->next_replay)
		for (i = 0; i < w->holds.n; i++)
			everything_of(c, w->holds.v[i].alloc);
}

void rs_access_model(struct rs_callstate *c, const struct rs_window *w)
{
	struct rs_engine *e = c->e;
	uint32_t i;

	e->ending = w && rs_window_is_last(e, w) ? w->seg : NULL;
	/* versions only mean something to pending segments, and to replays whose segment has been retired meanwhile */
	for (i = 0; (e->pending || e->replays) && i < c->nranges; i++) {
		const struct rs_range *r = &c->range[i];
		const struct rs_access *x = rs_access_of(c, r);

		if (!(x->dir & RS_WRITE))
			continue;
		rs_access_count(e, x, r->len);
		rs_write_piecewise(e, c->l, c->q, r->a, r->off, r->len, &c->who);
	}
	e->ending = NULL;
	if (c->call->everything)
		everything(c);
}
