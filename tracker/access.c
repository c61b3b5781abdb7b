/* SPDX-License-Identifier: MIT */
/*
 * One driver call: which windows it belongs to, what it touches there, what must be planned before and
 * after it.
 *
 * A range is classified once per window, at its first access (enum rs_class). Order inside a call:
 * every window sees the reads (claims, restores), then the writes (holds), then the model is bumped.
 *
 * Callers: the shim, any thread; engine.lock is taken here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/callstate.h"
#include "tracker/costing.h"
#include "tracker/digest.h"

static enum rs_class first_class(const struct rs_window *w, const struct rs_alloc *a,
				 const struct rs_region *region, const struct rs_term *term,
				 const struct rs_access *x, int read)
{
	/* module variables and registered host memory are older than the moment they became known */
	int inside =
		a->birth >= w->begin && (a->kind == RS_ALLOC_DEVICE || a->kind == RS_ALLOC_MANAGED);

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
static int is_broken(const struct rs_window *w, const struct rs_alloc *a,
		     const struct rs_term *term, const struct rs_access *x, int read)
{
	if (w->kind != RS_WINDOW_FORWARD)
		return 0;
	if (term)
		return term->role == RS_ROLE_PRODUCT && read && a->birth < w->begin &&
		       x->how < RS_HOW_REACHABLE;
	return w->seg->terms && w->seg->terms->calls.n && (read || !x->dense);
}

static struct rs_span *insert_span(struct rs_touch *t, uint32_t at)
{
	struct rs_span *added = RS_PUSH(t->spans);

	if (!added)
		return NULL;
	memmove(&t->spans.v[at + 1], &t->spans.v[at],
		(t->spans.n - 1 - at) * sizeof(t->spans.v[0]));
	return &t->spans.v[at];
}

/* Classify what of the range is new to the window; a read makes MAYBE ambiguous. */
static void visit(struct rs_callstate *c, struct rs_window *w, const struct rs_range *r, int read)
{
	struct rs_touch *t = rs_touch_get(
		c->e, w->kind == RS_WINDOW_FORWARD ? &w->seg->touches : &w->touches, r->a);
	const struct rs_spot spot = spot_of(c, w, r);
	uint64_t pos = r->off, end = r->off + r->len;
	uint32_t i;

	if (!t) {
		*(w->rec ? &w->rec->flags : &w->seg->flags) |= RS_F_INTERNAL;
		return;
	}
	i = rs_span_at(t, pos);
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
			if (read && s->cls == RS_CLASS_MAYBE) {
				s->cls = RS_CLASS_AMBIGUOUS;
				upgrade_claims(t, s->off, s->len);
			}
			pos = s->off + s->len;
			continue;
		}
		if (s && s->off < until)
			until = s->off;
		region = rs_region_at(r->a, pos, &region_end);
		if (region_end < until)
			until = region_end;
		term = rs_terms_at(w->seg ? w->seg->terms : NULL, &spot, pos, 0, &until);
		cls = first_class(w, r->a, region, term, rs_access_of(c, r), read);
		if ((cls == RS_CLASS_STATE || term) &&
		    is_broken(w, r->a, term, rs_access_of(c, r), read))
			rs_place_note(c->e, w, RS_CHECK_BROKEN, r->a, pos, until - pos, &c->who);
		s = insert_span(t, i);
		if (!s) {
			*(w->rec ? &w->rec->flags : &w->seg->flags) |= RS_F_INTERNAL;
			return;
		}
		*s = (struct rs_span){.off = pos, .len = until - pos, .cls = (uint8_t)cls};
		entered(c, w, t, r, pos, until - pos, cls, read);
		pos = until;
	}
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
	const struct rs_touch *t = rs_touch_of(w->seg->touches, a);
	uint32_t i = t ? rs_span_at(t, off) : 0;

	return t && i < t->spans.n && t->spans.v[i].off < off + len;
}

/*
 * State that only the replay touches may be no part of it, such as a gradient that a backward inside of the window
 * adds to: then its bytes must survive. Where it is declared state, what was asked for is done, but not vouched for.
 */
static enum rs_hold_how how_to_hold(const struct rs_window *w, const struct rs_alloc *a,
				    const struct rs_span *s)
{
	uint64_t until;

	if (s->cls != RS_CLASS_STATE)
		return RS_HOLD_COMPARE;
	if (!w->seg || forward_touched(w, a, s->off, s->len))
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
				     how_to_hold(w, r->a, &s), &c->who);
	}
}

/* Nothing of a call that is being captured runs now, but for the engine inside of that capture it does. */
static int is_elsewhere(const struct rs_callstate *c)
{
	return c->call->capturing && !c->e->outer;
}

static uint32_t call_flags(const struct rs_callstate *c)
{
	const struct rs_call *call = c->call;

	if (is_elsewhere(c))
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
		struct rs_writer who = {.name = x->by, .kind = RS_CALL_OTHER, .window = ""};

		if (rs_order_known(c->e, x->q, x->tick, c->q))
			continue;
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
	if (is_elsewhere(c))
		return; /* nothing runs, so there is nothing to follow or to wait for */
	if (c->e->costing) {
		if (!w->queues)
			rs_timing_begin(c->e, c->l, w, c->q);
		rs_timing_list(c->e, c->l, w);
	}
	w->queues |= RS_QBIT(c->q);
	w->last_q = c->q + 1;
	if (w->kind == RS_WINDOW_REPLAY && w->seg)
		rs_pair_match(c, w);
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
	if (w->kind == RS_WINDOW_FORWARD) {
		rs_profile_aliases(c, w);
		rs_pair_log(c, w);
	}
}

static int is_segment_window(const struct rs_window *w)
{
	return !w->closed && w->kind != RS_WINDOW_OTHER;
}

/* The first window from w outwards that is a segment's. */
static struct rs_window *next_window(struct rs_window *w)
{
	while (w && !is_segment_window(w))
		w = w->up;
	return w;
}

/*
 * Who else sees a call of window w: every enclosing window, up to and with the innermost replay. What
 * a replay does is undone at its end, so what encloses it has nothing to learn from its calls.
 */
static struct rs_window *outer_window(struct rs_window *w)
{
	return w->kind == RS_WINDOW_REPLAY ? NULL : next_window(w->up);
}

/* Outermost first: a forward inside a replay claims what the replay has put there. */
static void in_windows(struct rs_callstate *c, struct rs_window *w)
{
	if (!w)
		return;
	in_windows(c, outer_window(w));
	in_window(c, w);
}

/* Must the call wait for work of the shim's own on the allocation, which may still be under way? */
static int must_wait(const struct rs_engine *e, const struct rs_alloc *a, uint32_t q)
{
	uint32_t fence = __atomic_load_n(&a->fence, __ATOMIC_RELAXED);

	return fence && fence - 1 != q &&
	       __atomic_load_n(&e->fence_queues, __ATOMIC_RELAXED) & RS_QBIT(fence - 1) &&
	       !(__atomic_load_n(&a->fence_ordered, __ATOMIC_RELAXED) & RS_QBIT(q));
}

/* Work of the shim's own on these bytes comes first. */
static void respect_fence(struct rs_callstate *c, struct rs_alloc *a)
{
	if (must_wait(c->e, a, c->q)) {
		rs_oplist_order(c->l, RS_QBIT(a->fence - 1), c->q);
		if (c->q < 63)
			__atomic_fetch_or(&a->fence_ordered, RS_QBIT(c->q), __ATOMIC_RELAXED);
	}
	__atomic_fetch_or(&a->touched, RS_QBIT(c->q), __ATOMIC_RELAXED);
}

/* A queue that may be waiting for memory has calls behind that wait from now on. */
static void note_use(struct rs_engine *e, uint32_t q)
{
	if (__atomic_load_n(&e->stalling, __ATOMIC_RELAXED) & RS_QBIT(q))
		__atomic_fetch_or(&e->used_since, RS_QBIT(q), __ATOMIC_RELAXED);
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
	rs_oplist_order(c->l, __atomic_load_n(&e->fence_queues, __ATOMIC_RELAXED), c->q);
	e->touched_all |= RS_QBIT(c->q);
	e->loose_all = rs_version_next(e);
	for (s = e->pending; s; s = s->next)
		for (t = s->touches; t; t = t->hh.next)
			everything_of(c, t->alloc);
	for (w = e->replays; w; w = w->next_replay)
		for (i = 0; i < w->holds.n; i++)
			everything_of(c, w->holds.v[i].alloc);
}

static void touch_model(struct rs_callstate *c, const struct rs_window *w)
{
	struct rs_engine *e = c->e;
	uint32_t i;

	e->ending = w && rs_window_is_last(e, w) ? w->seg : NULL;
	/* versions only mean something to pending segments */
	for (i = 0; e->pending && i < c->nranges; i++) {
		const struct rs_range *r = &c->range[i];
		const struct rs_access *x = rs_access_of(c, r);

		if (!(x->dir & RS_WRITE))
			continue;
		e->stats.possible_bytes += r->len;
		if (x->dense && x->how <= RS_HOW_DECLARED)
			e->stats.proven_bytes += r->len;
		rs_write_piecewise(e, c->l, c->q, r->a, r->off, r->len, &c->who);
	}
	e->ending = NULL;
	if (c->call->everything)
		everything(c);
}

static const char *window_label(const struct rs_engine *e, const struct rs_thread *t)
{
	const struct rs_window *w;

	for (w = t->top; w; w = w->up)
		if (is_segment_window(w))
			return w->label;
	return e->process ? e->process->label : "";
}

/*
 * Without windows, pending forwards and work of the shim's own on another stream, a call costs no lock. What
 * ran before the earliest pending forward needs no order with a replay beyond the program's own: whoever
 * changes a byte after that forward is ordered after it by the program.
 */
int rs_engine_idle_slow(struct rs_engine *e, const struct rs_thread *t, struct rs_queue q)
{
	uint64_t fences = __atomic_load_n(&e->fence_queues, __ATOMIC_RELAXED);
	const struct rs_known *known;

	if (next_window(t->top) || __atomic_load_n(&e->interested, __ATOMIC_RELAXED))
		return 0;
	if (!fences)
		return 1;
	known = rs_known_queue(e, t, q);
	return known && known->id < 63 && fences == RS_QBIT(known->id);
}

/* The allocation (or tagged mapping) of an access; the caller's look-up holds while no address changed. */
static struct rs_alloc *loosely(const struct rs_engine *e, const struct rs_access *x, int looked_up)
{
	uint64_t base, bytes;

	if (looked_up && x->memory)
		return (struct rs_alloc *)(uintptr_t)x->memory;
	return rs_addrmap_find(e->map, x->addr, &base, &bytes);
}

/* What is there already is not stored again: threads share these lines. */
static void leave_marks(struct rs_engine *e, const struct rs_access *x, unsigned n, uint32_t q,
			uint64_t loose, int looked_up)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		struct rs_alloc *a = loosely(e, &x[i], looked_up);

		if (!a || rs_mapping_of(a))
			continue;
		if (!(__atomic_load_n(&a->touched, __ATOMIC_RELAXED) & RS_QBIT(q)))
			__atomic_fetch_or(&a->touched, RS_QBIT(q), __ATOMIC_RELAXED);
		if (x[i].dir & RS_WRITE && __atomic_load_n(&a->loose, __ATOMIC_RELAXED) != loose)
			__atomic_store_n(&a->loose, loose, __ATOMIC_RELAXED);
	}
}

/*
 * A call of no window that writes to nothing claimed: all that is to be remembered is who touched the
 * allocations, and that they changed. No lock, so that threads do not wait for each other. Mapped memory, a
 * stream seen first and the like take the long way.
 *
 * Then the same is true of every other call on these allocations until the moment changes: each word that is looked
 * at here changes only together with the moment (rs_moment_next), or is a mark that this call has left and nothing but
 * such a change takes away. The moment is read first: if anything changes while the call is looked at, what is
 * handed out is an old moment, which never comes again.
 */
uint64_t rs_engine_again(struct rs_engine *e, struct rs_thread *t, struct rs_queue queue,
			 const struct rs_access *x, unsigned n, uint64_t generation)
{
	uint64_t moment = __atomic_load_n(&e->moment, __ATOMIC_ACQUIRE);
	uint64_t loose = __atomic_load_n(&e->version, __ATOMIC_RELAXED) + 1;
	uint32_t epoch = __atomic_load_n(&e->claim_epoch, __ATOMIC_RELAXED), q;
	int looked_up = generation == rs_engine_generation(e), unmarked = 0;
	const struct rs_known *known = rs_known_queue(e, t, queue);
	unsigned i;

	if (next_window(t->top) || __atomic_load_n(&e->process, __ATOMIC_RELAXED) || !known ||
	    known->id >= 63)
		return 0;
	q = known->id;
	for (i = 0; i < n; i++) {
		struct rs_alloc *a = loosely(e, &x[i], looked_up);

		if (!a)
			continue;
		if (rs_mapping_of(a) ||
		    (__atomic_load_n(&a->fence, __ATOMIC_RELAXED) && must_wait(e, a, q)))
			return 0;
		unmarked |= !(__atomic_load_n(&a->touched, __ATOMIC_RELAXED) & RS_QBIT(q));
		if (!(x[i].dir & RS_WRITE))
			continue;
		if (__atomic_load_n(&a->claimed, __ATOMIC_RELAXED) == epoch)
			return 0;
		unmarked |= __atomic_load_n(&a->loose, __ATOMIC_RELAXED) != loose;
	}
	note_use(e, q);
	if (unmarked)
		leave_marks(e, x, n, q, loose, looked_up);
	if (e->config.order && !queue.stream &&
	    !__atomic_load_n(&e->legacy_unseen, __ATOMIC_RELAXED))
		__atomic_store_n(&e->legacy_unseen, 1, __ATOMIC_RELAXED);
	return moment;
}

static int follow_loosely(struct rs_engine *e, struct rs_thread *t, struct rs_call *call)
{
	uint64_t moment = call->capturing || call->everything
				  ? 0
				  : rs_engine_again(e, t, call->q, call->access, call->naccess,
						    call->generation);

	if (!call->synchronous)
		call->calm = moment;
	return !!moment;
}

static void begin(struct rs_callstate *c, struct rs_thread *t)
{
	struct rs_call *call = c->call;

	c->q = rs_queue_id(c->e, t, call->q);
	c->who = (struct rs_writer){.name = call->name,
				    .kind = (uint8_t)call->kind,
				    .how = call->naccess ? call->access[0].how : RS_HOW_UNKNOWN,
				    .call = c->number,
				    .step = c->e->step,
				    .window = window_label(c->e, t),
				    .q = c->q};
	rs_locate(c, t);
}

/* What comes before the call, in every window that sees it, into c->l. engine.lock held. */
void rs_call_plan(struct rs_callstate *c, struct rs_thread *t)
{
	struct rs_engine *e = c->e;
	struct rs_window *w;
	uint32_t i;

	c->number = ++(e->outer ? e->outer : e)->clock; /* one number, whoever follows the call */
	c->call->private_[0] = c->number;
	e->stats.calls++;
	e->stats.untracked += c->call->untracked;
	begin(c, t);
	if (!is_elsewhere(c)) {
		note_use(e, c->q);
		c->who.tick = rs_order_tick(e, c->q);
	}
	for (i = 0; !is_elsewhere(c) && i < c->nranges; i++)
		respect_fence(c, c->range[i].a);
	in_windows(c, next_window(t->top));
	for (w = e->process; w; w = w->up)
		if (is_segment_window(w))
			in_window(c, w);
	if (!is_elsewhere(c))
		touch_model(c, next_window(t->top));
	c->call->private_[1] = c->follow_up;
}

/* Apart from its caller, where calls that need none of this pass: it starts by clearing a large frame. */
__attribute__((noinline)) static void follow(struct rs_engine *e, struct rs_thread *t,
					     struct rs_call *call)
{
	struct rs_oplist list;
	struct rs_callstate c = {.e = e, .l = &list, .call = call};
	int saved = errno;
	uint64_t place;

	rs_oplist_init(&list);
	pthread_mutex_lock(&e->lock);
	e->where.wanted = 0;
	rs_call_plan(&c, t);
	place = rs_where_reserve(e, c.number);
	pthread_mutex_unlock(&e->lock);
	rs_oplist_run(e, &list);
	rs_where_take(e, c.number, place);
	errno = saved;
}

void rs_engine_before(struct rs_engine *e, struct rs_thread *t, struct rs_call *call)
{
	if (!call->capturing && rs_engine_idle(e, t, call->q)) {
		if (call->everything)
			__atomic_fetch_add(&e->idle_unknown_writers, 1, __ATOMIC_RELAXED);
		return;
	}
	if (call->capturing && rs_capture_before(e, t, call))
		return;
	if (!follow_loosely(e, t, call))
		follow(e, t, call);
}

/* Pre-images that this call may have taken for more than it changed. */
static void compare_overwritten(struct rs_engine *e, const struct rs_call *call, int ok)
{
	struct rs_oplist list;

	rs_oplist_init(&list);
	pthread_mutex_lock(&e->lock);
	rs_thin_compare(e, &list, call->private_[0], ok);
	pthread_mutex_unlock(&e->lock);
	rs_oplist_run(e, &list);
}

/* What comes after the call, into c->l. engine.lock held. */
void rs_call_plan_after(struct rs_callstate *c, struct rs_thread *t, int ok)
{
	void (*pair)(struct rs_callstate *, struct rs_window *) =
		ok ? rs_pair_products : rs_pair_refused;
	struct rs_engine *e = c->e;
	struct rs_window *w;

	c->number = c->call->private_[0];
	begin(c, t);
	w = next_window(t->top) ? next_window(t->top) : e->process;
	if (e->costing && w)
		rs_timing_list(e, c->l, w);
	for (w = next_window(t->top); w; w = outer_window(w))
		pair(c, w);
	for (w = e->process; w; w = w->up)
		if (is_segment_window(w))
			pair(c, w);
}

static void follow_up(struct rs_engine *e, struct rs_thread *t, struct rs_call *call, int ok)
{
	struct rs_oplist list;
	struct rs_callstate c = {.e = e, .l = &list, .call = call};

	rs_oplist_init(&list);
	pthread_mutex_lock(&e->lock);
	rs_call_plan_after(&c, t, ok);
	pthread_mutex_unlock(&e->lock);
	rs_oplist_run(e, &list);
}

/* Apart from its caller for the same reason as follow. */
__attribute__((noinline)) static void after_followed(struct rs_engine *e, struct rs_thread *t,
						     struct rs_call *call, int ok, int in_window)
{
	int saved = errno;

	if (ok && call->synchronous)
		rs_engine_synced_queue(e, t, call->q);
	if (__atomic_load_n(&e->thins_new, __ATOMIC_RELAXED))
		compare_overwritten(e, call, ok);
	/* a call that was made and has left no product has nothing to be digested */
	if (in_window && !call->capturing && (call->private_[1] || !ok) &&
	    (e->config.verify || e->config.mode == RS_MODE_AUDIT))
		follow_up(e, t, call, ok);
	errno = saved;
}

void rs_engine_after(struct rs_engine *e, struct rs_thread *t, struct rs_call *call, int ok)
{
	int in_window = next_window(t->top) || __atomic_load_n(&e->process, __ATOMIC_RELAXED);

	if (call->capturing && rs_capture_after(e, t, call, ok))
		return;
	if (in_window || call->synchronous ||
	    (call->private_[0] && __atomic_load_n(&e->thins_new, __ATOMIC_RELAXED)))
		after_followed(e, t, call, ok, in_window);
}
