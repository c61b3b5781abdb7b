/* SPDX-License-Identifier: MIT */
/*
 * Threads that are at the same bytes at once. Only one thing can be at an address, but a program may well let a thread replay
 * a segment while another one replays another segment, or just goes on, and all of them read the same state. So:
 *
 * - What is planned is in the model at once, but on the device only when it was enqueued, which is done outside of the
 *   lock. Whoever comes to memory with such operations of another thread waits until they are enqueued (rs_alloc.planned): only
 *   then an event says that they come first, and only then it is known whether they have failed.
 * - What a replay is shown is its own. A call of a thread that is not in that replay finds P2: before it P2 is put back,
 *   and what the replay has there is kept aside (step_aside); before the replay's own next call on it, it is shown that
 *   again (rs_view_returns). Its end finds P2 where it is.
 * - So nobody may change what is shown while another thread's call on it is planned, but perhaps not made yet
 *   (rs_alloc.under_way). A call from before the replay began is not counted: for that no call would do without the lock.
 *
 * Who waits holds no lock and has planned nothing; so whoever is waited for goes on. Only a launch of many calls (a graph)
 * has calls under way while it waits, and a call may wait for the device. So it is not waited for ever, and what then was not
 * in order is not vouched for. Memory with operations that were not waited for is left as it is: what would be held there may
 * not be what the program writes next, and so must not come back over it (rs_alloc.vain).
 *
 * Inside of a capture (engine.outer) nothing waits, for the outer lock is held, and nothing steps aside: launches of a graph in
 * whose capture somebody would have had to are not vouched for.
 *
 * Callers: follow.c, access.c, window.c, restore.c under engine.lock, which is released in between where it says so.
 */
#include <time.h>

#include "tracker/callstate.h"
#include "tracker/capturing.h"

#define PAUSE_NS 50000l
#define TRIES	 20000u

/* What a replay has in memory where other threads find the program's bytes meanwhile. */
struct rs_aside {
	struct rs_alloc *alloc;
	struct rs_keep *keep;
	uint64_t off, len, ver;
};

/* Of all allocations, of all engines: atomic. */
static uint32_t planned;

static const struct rs_writer self = {.name = "replayshim", .kind = RS_CALL_OTHER, .window = ""};

static void pause_a_moment(struct rs_engine *e)
{
	pthread_mutex_unlock(&e->lock);
	nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
	pthread_mutex_lock(&e->lock);
}

/* Does what the thread does belong to the window? A process' window has all threads' calls. */
static int is_in(const struct rs_engine *e, const struct rs_thread *t, const struct rs_window *w)
{
	const struct rs_window *x;

	for (x = t->top; x && x != w; x = x->up)
		;
	if (x)
		return 1;
	for (x = e->process; x && x != w; x = x->up)
		;
	return x != NULL;
}

/* Does v lie in w, on a thread's stack? */
static int encloses(const struct rs_window *w, const struct rs_window *v)
{
	const struct rs_window *x;

	for (x = v->id ? NULL : v->up; x && x != w; x = x->up)
		;
	return x != NULL;
}

static int touches(const struct rs_callstate *c, const struct rs_hold *h)
{
	uint32_t i;

	for (i = 0; i < c->nranges; i++) {
		const struct rs_range *r = &c->range[i];

		if (r->a == h->alloc && r->off < h->off + h->len && h->off < r->off + r->len)
			return 1;
	}
	return c->call->everything;
}

/* Will the replay's end put P2 there? */
static int comes_back(const struct rs_hold *h)
{
	return !h->away && h->how != RS_HOLD_COMPARE && h->how != RS_UNHOLD && !h->alloc->dead &&
	       __atomic_load_n(&h->keep->state, __ATOMIC_RELAXED) != RS_KEEP_FAILED;
}

/* Does the replay see bytes there that are not the program's? */
static int is_shown(const struct rs_hold *h)
{
	return comes_back(h) && !rs_range_is_live(h->alloc, h->off, h->len, h->keep->ver);
}

void rs_view_plans(struct rs_alloc *a)
{
	__atomic_fetch_add(&a->planned, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&planned, 1, __ATOMIC_RELAXED);
}

void rs_view_planned(struct rs_alloc *a)
{
	__atomic_fetch_sub(&a->planned, 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&planned, 1, __ATOMIC_RELAXED);
}

/* --- waiting ------------------------------------------------------------------------------------ */

/* Of other threads: calls on it, and calls that may do anything. */
static uint32_t under_way(const struct rs_engine *e, const struct rs_alloc *a,
			  const struct rs_thread *t)
{
	uint32_t i, n = a->under_way + e->all_under_way;

	for (i = 0; i < t->under_way.n; i++)
		n -= t->under_way.v[i] == a || !t->under_way.v[i];
	return n;
}

/* May this replay find other bytes in the range than those that its forward saw? */
static int may_be_shown(const struct rs_window *w, const struct rs_range *r)
{
	const struct rs_touch *t = w->seg ? rs_touch_of(w->seg->touches, r->a) : NULL;
	uint32_t i;

	if (w->unresolved) /* this may be the call that decides */
		return 1;
	for (i = t ? rs_claim_at(t, r->off) : 0; t && i < t->claims.n; i++) {
		const struct rs_claim *k = &t->claims.v[i];

		if (k->off >= r->off + r->len)
			break;
		if (!rs_range_is_live(r->a, k->off, k->len, k->ver))
			return 1;
	}
	return 0;
}

/* Will the call change what is shown of the range: to a replay that it belongs to, or to one that it does not? */
static int changes_views(const struct rs_callstate *c, const struct rs_thread *t,
			 const struct rs_range *r)
{
	struct rs_window *w;
	uint32_t i;

	for (w = c->e->replays; w; w = w->next_replay) {
		int own = is_in(c->e, t, w);

		if (own && may_be_shown(w, r))
			return 1;
		for (i = 0; i < w->holds.n; i++)
			if (w->holds.v[i].alloc == r->a &&
			    (own ? w->holds.v[i].away : is_shown(&w->holds.v[i])))
				return 1;
	}
	return 0;
}

/* A call that may do anything: is any of what somebody needs planned for? */
static int needed_is_planned(const struct rs_engine *e)
{
	const struct rs_segment *s;
	const struct rs_touch *t;
	const struct rs_window *w;
	uint32_t i;

	for (s = e->pending; s; s = s->next)
		for (t = s->touches; t; t = t->hh.next)
			if (t->alloc->planned)
				return 1;
	for (w = e->replays; w; w = w->next_replay)
		for (i = 0; i < w->holds.n; i++)
			if (w->holds.v[i].alloc->planned)
				return 1;
	return 0;
}

/* The same: will it change what is shown where others have calls under way? */
static int moves_under_way(const struct rs_callstate *c, const struct rs_thread *t)
{
	const struct rs_window *w;
	uint32_t i;

	for (w = c->e->replays; w; w = w->next_replay) {
		int own = is_in(c->e, t, w);

		for (i = 0; i < w->holds.n; i++)
			if ((own ? w->holds.v[i].away : is_shown(&w->holds.v[i])) &&
			    under_way(c->e, w->holds.v[i].alloc, t))
				return 1;
	}
	return 0;
}

static int must_wait(const struct rs_callstate *c, const struct rs_thread *t)
{
	uint32_t i;

	for (i = 0; i < c->nranges; i++) {
		const struct rs_range *r = &c->range[i];

		if (r->a->planned || (under_way(c->e, r->a, t) && changes_views(c, t, r)))
			return 1;
	}
	return c->call->everything && (needed_is_planned(c->e) || moves_under_way(c, t));
}

/*
 * It was waited for in vain: nothing that is open now is vouched for. Nor is anything of a capture: what is not in order there
 * may be a replay's that has ended, or the program's.
 */
static void give_up(struct rs_engine *e)
{
	struct rs_segment *s;
	struct rs_window *w;

	if (e->outer) {
		e->capture->foreign = 1;
		return;
	}
	for (w = e->replays; w; w = w->next_replay)
		w->rec->flags |= RS_F_LOST;
	for (s = e->pending; s; s = s->next)
		if (s->open)
			s->flags |= RS_F_LOST;
}

/* The call has waited in vain. What is planned for may be made at any moment: the call's replay neither holds nor moves it. */
static void note_vain(struct rs_callstate *c)
{
	const struct rs_window *w;
	uint32_t i;

	give_up(c->e);
	for (i = 0; i < c->nranges; i++)
		if (c->range[i].a->planned)
			c->range[i].a->vain = c->number;
	for (w = c->call->everything ? c->e->replays : NULL; w; w = w->next_replay)
		for (i = 0; i < w->holds.n; i++)
			if (w->holds.v[i].alloc->planned)
				w->holds.v[i].alloc->vain = c->number;
}

int rs_view_waits(struct rs_engine *e, const struct rs_window *w, unsigned *tries)
{
	uint32_t i;

	for (i = 0; i < w->holds.n && !w->holds.v[i].alloc->planned; i++)
		;
	if (e->outer || i == w->holds.n)
		return 0;
	if (*tries == TRIES)
		give_up(e);
	if ((*tries)++ >= TRIES)
		return 0;
	pause_a_moment(e);
	return 1;
}

/* --- one out, another one in -------------------------------------------------------------------- */

static int put_aside(struct rs_window *w, struct rs_alloc *a, struct rs_keep *k, uint64_t off,
		     uint64_t len, uint64_t ver)
{
	struct rs_aside *s = k ? RS_PUSH(w->aside) : NULL;

	if (!s)
		return 0;
	*s = (struct rs_aside){.alloc = a, .keep = k, .off = off, .len = len, .ver = ver};
	k->holds++;
	a->refs++;
	return 1;
}

/* What the replay has there is kept, whatever it is. */
static void keep_aside(struct rs_callstate *c, struct rs_window *w, const struct rs_hold *h)
{
	struct rs_alloc *a = h->alloc;
	uint64_t off = h->off, end = h->off + h->len;

	while (off < end) {
		struct rs_ext x = a->ext.ext[rs_extmap_at(&a->ext, off)];
		struct rs_keep *k = rs_keep_take(c->e, c->l, c->q, a, &x, &self, 0);

		off = x.off + x.len;
		if (!put_aside(w, a, k, x.off, x.len, x.ver))
			w->rec->flags |= RS_F_LOST;
	}
}

/* P2 comes back there by a copy. */
static void put_p2(struct rs_callstate *c, struct rs_window *w, const struct rs_hold *h)
{
	struct rs_engine *e = c->e;
	struct rs_op *op = rs_oplist_add(c->l, RS_OP_RESTORE, c->q);

	if (!op) {
		w->rec->flags |= RS_F_LOST;
		return;
	}
	rs_op_bind(op, h->alloc, h->off, h->len);
	op->back = 1;
	op->keep = h->keep;
	h->keep->pins++;
	rs_op_concerns(op, w->rec);
	if (rs_place(e, h->alloc, h->off, h->len, h->keep->ver))
		w->rec->flags |= RS_F_INTERNAL;
	rs_fence(e, h->alloc, c->q, w->rec);
}

/* The replay has found the program's own bytes in the piece, as they were those of its forward; now they are overwritten. */
static void keep_seen(struct rs_callstate *c, struct rs_window *w, struct rs_alloc *a,
		      const struct rs_ext *x)
{
	struct rs_keep *k = rs_keep_take(c->e, c->l, c->q, a, x, &self, 0);
	struct rs_hold *h = k && RS_ROOM(w->held, 1) ? RS_PUSH(w->holds) : NULL;

	if (!h || !put_aside(w, a, k, x->off, x->len, x->ver)) {
		w->holds.n -= h != NULL;
		w->rec->flags |= RS_F_LOST;
		return;
	}
	*h = (struct rs_hold){.alloc = a,
			      .keep = k,
			      .off = x->off,
			      .len = x->len,
			      .how = RS_HOLD_RESTORE,
			      .at = rs_version_next(c->e),
			      .away = 1};
	rs_window_held(w, a, x->off, x->len);
	k->holds++;
	a->refs++;
	w->away++;
}

/*
 * Is what lies there shown to another replay? Then that one holds what w has seen, and puts it back. One around w is none: what
 * is shown to that is what w has seen. *until: where the answer may change.
 */
static int is_anothers(const struct rs_engine *e, const struct rs_window *w,
		       const struct rs_alloc *a, uint64_t at, uint64_t *until)
{
	const struct rs_window *o;
	int is = 0;
	uint32_t i;

	for (o = e->replays; o; o = o->next_replay) {
		for (i = 0; o != w && !encloses(o, w) && i < o->holds.n; i++) {
			const struct rs_hold *h = &o->holds.v[i];

			if (h->alloc != a || h->off >= *until || h->off + h->len <= at ||
			    !is_shown(h))
				continue;
			is |= h->off <= at;
			*until = rs_min64(*until, h->off <= at ? h->off + h->len : h->off);
		}
	}
	return is;
}

/* All of that in bytes of one allocation, which are state to w. */
static void keep_span_seen(struct rs_callstate *c, struct rs_window *w, struct rs_alloc *a,
			   uint64_t at, uint64_t to)
{
	while (at < to) {
		struct rs_ext x;
		int held;
		uint64_t until = rs_window_held_until(w, a, at, to, &held);

		if (held || is_anothers(c->e, w, a, at, &until)) {
			at = until;
			continue;
		}
		if (rs_extmap_split(&a->ext, at, until - at)) {
			w->rec->flags |= RS_F_LOST;
			return;
		}
		x = a->ext.ext[rs_extmap_at(&a->ext, at)];
		keep_seen(c, w, a, &x);
		at = x.off + x.len;
	}
}

static void keep_all_seen(struct rs_callstate *c, struct rs_window *w, struct rs_alloc *a,
			  uint64_t off, uint64_t end)
{
	struct rs_touch *t = rs_touch_of(w->touches, a);
	uint32_t i;

	if (a->dead || rs_alloc_is_volatile(a))
		return;
	for (i = t ? rs_span_at(t, off) : 0; t && i < t->spans.n && t->spans.v[i].off < end; i++) {
		uint64_t at = rs_max64(off, t->spans.v[i].off);
		uint64_t to = rs_min64(end, t->spans.v[i].off + t->spans.v[i].len);

		if (t->spans.v[i].cls != RS_CLASS_STATE)
			continue;
		keep_span_seen(c, w, a, at, to);
	}
}

/* The i-th hold of w goes. What it holds is the caller's until let_go. */
static struct rs_hold take_hold(struct rs_window *w, uint32_t i)
{
	struct rs_hold h = w->holds.v[i];

	w->holds.v[i] = w->holds.v[--w->holds.n];
	w->away -= h.away;
	if (!rs_window_unheld(w, h.alloc, h.off, h.len))
		w->rec->flags |= RS_F_LOST;
	return h;
}

static void let_go(struct rs_engine *e, const struct rs_hold *h)
{
	h->keep->holds--;
	rs_keep_collect(e, h->alloc, h->keep);
	rs_alloc_unref(e, h->alloc);
}

static void vacate(struct rs_callstate *c, struct rs_window *w, const struct rs_alloc *a,
		   uint64_t off, uint64_t len);

/* Has w had anything but state there? Then nobody can take it away from there. */
static int has_made_there(const struct rs_window *w, const struct rs_alloc *a, uint64_t off,
			  uint64_t len)
{
	const struct rs_touch *t = rs_touch_of(w->touches, a);
	uint32_t i;

	for (i = t ? rs_span_at(t, off) : 0; t && i < t->spans.n && t->spans.v[i].off < off + len;
	     i++)
		if (t->spans.v[i].cls != RS_CLASS_STATE)
			return 1;
	return 0;
}

/* The bytes of h, one of w's, are about to leave. What replays inside of w have there leaves first: it lies on top. */
static void inner_ones_leave(struct rs_callstate *c, struct rs_window *w, const struct rs_hold *h)
{
	struct rs_window *v;

	for (v = c->e->replays; v; v = v->next_replay) {
		if (v->id && rs_touch_of(v->touches, h->alloc))
			v->rec->flags |= RS_F_LOST; /* a process' window: it sees this call, too */
		if (!encloses(w, v))
			continue;
		if (has_made_there(v, h->alloc, h->off, h->len))
			v->rec->flags |= RS_F_LOST;
		vacate(c, v, h->alloc, h->off, h->len);
		keep_all_seen(c, v, h->alloc, h->off, h->off + h->len);
	}
}

/* The program's bytes come back there. */
static void step_aside(struct rs_callstate *c, struct rs_window *w, struct rs_hold *h)
{
	int whole = h->off == h->keep->off && h->len == h->keep->len && h->keep->other_ver;
	struct rs_engine *e = c->e;

	/* the replay would have to wait for this queue's later work */
	if (__atomic_load_n(&e->stalling, __ATOMIC_RELAXED) & RS_QBIT(c->q)) {
		w->rec->flags |= RS_F_LOST;
		return;
	}
	inner_ones_leave(c, w, h);
	if (rs_extmap_split(&h->alloc->ext, h->off, h->len)) { /* only now: they put pieces there */
		w->rec->flags |= RS_F_LOST;
		return;
	}
	h->away = 1;
	w->away++;
	w->queues |= RS_QBIT(c->q); /* its record is of that, too */
	if (whole && rs_swap_aside(e, c->l, c->q, w, h->alloc, h->keep)) {
		if (!put_aside(w, h->alloc, h->keep, h->off, h->len, h->keep->ver))
			w->rec->flags |= RS_F_LOST;
		return;
	}
	rs_oplist_order(c->l, rs_touched(e, h->alloc), c->q);
	keep_aside(c, w, h);
	if (!whole || !rs_remap_back(e, c->l, c->q, w, h->alloc, h->keep))
		put_p2(c, w, h);
}

/*
 * The i-th hold of w makes room. Where w holds P2, but has changed nothing since (it was refused a call, or its bytes are the
 * program's again), the hold goes: what is written now is P2, and what another replay is shown now is not this one's. Returns
 * the next one.
 */
static uint32_t make_room(struct rs_callstate *c, struct rs_window *w, uint32_t i)
{
	struct rs_hold *h = &w->holds.v[i];

	if (comes_back(h) && !is_shown(h)) {
		struct rs_hold gone = take_hold(w, i);

		let_go(c->e, &gone);
		return i;
	}
	if (comes_back(h))
		step_aside(c, w, h);
	return i + 1;
}

static void vacate(struct rs_callstate *c, struct rs_window *w, const struct rs_alloc *a,
		   uint64_t off, uint64_t len)
{
	uint32_t i = 0;

	while (i < w->holds.n) {
		const struct rs_hold *h = &w->holds.v[i];

		if (h->alloc == a && h->off < off + len && off < h->off + h->len)
			i = make_room(c, w, i);
		else
			i++;
	}
}

static void keep_what_is_written(struct rs_callstate *c, struct rs_window *w)
{
	const struct rs_touch *t;
	uint32_t i;

	for (i = 0; i < c->nranges; i++)
		if (rs_access_of(c, &c->range[i])->dir & RS_WRITE)
			keep_all_seen(c, w, c->range[i].a, c->range[i].off,
				      c->range[i].off + c->range[i].len);
	for (t = c->call->everything ? w->touches : NULL; t; t = t->hh.next)
		keep_all_seen(c, w, t->alloc, 0, t->alloc->size);
}

/* What was kept aside is put where P2 is, which is held. */
static void put_aside_back(struct rs_callstate *c, struct rs_window *w, const struct rs_aside *s)
{
	struct rs_alloc *a = s->alloc;
	uint64_t off = s->off, end = s->off + s->len;

	if (rs_extmap_split(&a->ext, s->off, s->len)) {
		w->rec->flags |= RS_F_LOST;
		return;
	}
	while (off < end) {
		struct rs_ext x = a->ext.ext[rs_extmap_at(&a->ext, off)];
		struct rs_keep *p2 = rs_keep_find(a, x.off, x.ver);
		struct rs_op *op = p2 ? rs_oplist_add(c->l, RS_OP_RESTORE, c->q) : NULL;

		off = x.off + x.len;
		if (!op) {
			w->rec->flags |= RS_F_LOST;
			continue;
		}
		rs_op_bind(op, a, x.off, x.len);
		op->keep = s->keep;
		s->keep->pins++;
		op->guard = p2;
		p2->pins++;
		rs_op_concerns(op, w->rec);
	}
	if (rs_place(c->e, a, s->off, s->len, s->ver))
		w->rec->flags |= RS_F_INTERNAL;
}

static void forget_aside(struct rs_engine *e, struct rs_window *w, uint32_t i)
{
	struct rs_aside s = w->aside.v[i];

	w->aside.v[i] = w->aside.v[--w->aside.n];
	s.keep->holds--;
	rs_keep_collect(e, s.alloc, s.keep);
	rs_alloc_unref(e, s.alloc);
}

/* In place of the i-th hold of w, which is away, what the program has there now is held. */
static void come_back(struct rs_callstate *c, struct rs_window *w, uint32_t i)
{
	struct rs_hold h = take_hold(w, i);
	struct rs_window *o;

	/* all of it comes back, not only what the call touches */
	for (o = c->e->replays; o && !h.alloc->dead; o = o->next_replay)
		if (o != w && !encloses(o, w))
			vacate(c, o, h.alloc, h.off, h.len);
	if (!h.alloc->dead) {
		rs_oplist_order(c->l, rs_touched(c->e, h.alloc), c->q);
		rs_window_hold_range(c->e, c->l, c->q, w, h.alloc, h.off, h.len,
				     (enum rs_hold_how)h.how, &c->who);
	}
	for (i = 0; i < w->aside.n;) {
		const struct rs_aside *s = &w->aside.v[i];

		if (s->alloc != h.alloc || s->off < h.off || s->off >= h.off + h.len) {
			i++;
			continue;
		}
		if (!h.alloc->dead)
			put_aside_back(c, w, s);
		forget_aside(c->e, w, i);
	}
	rs_fence(c->e, h.alloc, c->q, w->rec);
	let_go(c->e, &h);
}

void rs_view_returns(struct rs_callstate *c, struct rs_window *w)
{
	uint32_t i;

	for (i = 0; w->away && i < w->holds.n;) {
		const struct rs_hold *h = &w->holds.v[i];

		if (h->away && touches(c, h) && !rs_view_in_vain(h->alloc, &c->who))
			come_back(c, w, i);
		else
			i++;
	}
}

void rs_view_over(struct rs_engine *e, struct rs_window *w)
{
	while (w->aside.n)
		forget_aside(e, w, w->aside.n - 1);
	free(w->aside.v);
	memset(&w->aside, 0, sizeof(w->aside));
	w->away = 0;
}

/* --- calls -------------------------------------------------------------------------------------- */

/* The replay makes room for the call. */
static void make_room_for(struct rs_callstate *c, struct rs_window *w)
{
	uint32_t i = 0;

	while (i < w->holds.n)
		i = touches(c, &w->holds.v[i]) ? make_room(c, w, i) : i + 1;
}

static void others_step_aside(struct rs_callstate *c, const struct rs_thread *t)
{
	struct rs_window *w;
	uint32_t fenced = 0;

	for (w = c->e->replays; w; w = w->next_replay) {
		if (is_in(c->e, t, w))
			continue;
		if (!fenced++) { /* what is kept must be there */
			rs_access_fences(c);
			if (c->call->everything)
				rs_oplist_fence(
					c->l,
					__atomic_load_n(&c->e->fence_queues, __ATOMIC_RELAXED),
					NULL, c->q);
		}
		make_room_for(c, w);
	}
	for (w = c->e->replays; w; w = w->next_replay)
		if (!is_in(c->e, t, w))
			keep_what_is_written(c, w);
}

/* Is anything of the range state to w, which may look at it again? */
static int has_seen(const struct rs_window *w, const struct rs_range *r)
{
	const struct rs_touch *t = rs_touch_of(w->touches, r->a);
	uint32_t i;

	for (i = t ? rs_span_at(t, r->off) : 0;
	     t && i < t->spans.n && t->spans.v[i].off < r->off + r->len; i++)
		if (t->spans.v[i].cls == RS_CLASS_STATE)
			return 1;
	return 0;
}

/* Is the call at bytes of a replay that it is not in, so that one of both would have to step aside? */
static int is_in_the_way(const struct rs_callstate *c, const struct rs_thread *t)
{
	const struct rs_window *w;
	uint32_t i;

	for (w = c->e->replays; w; w = w->next_replay) {
		if (is_in(c->e, t, w))
			continue;
		if (c->call->everything)
			return 1;
		for (i = 0; i < w->holds.n; i++)
			if (touches(c, &w->holds.v[i]) && comes_back(&w->holds.v[i]))
				return 1;
		for (i = 0; i < c->nranges; i++)
			if (rs_access_of(c, &c->range[i])->dir & RS_WRITE &&
			    has_seen(w, &c->range[i]))
				return 1;
	}
	return 0;
}

static void meet_in_capture(struct rs_callstate *c, struct rs_thread *t)
{
	rs_locate(c, t);
	if (must_wait(c, t) || (c->e->config.mode != RS_MODE_AUDIT && is_in_the_way(c, t)))
		give_up(c->e);
}

/* Is anybody else there? */
static int is_alone(const struct rs_engine *e, const struct rs_thread *t)
{
	const struct rs_window *w;

	for (w = e->replays; w; w = w->next_replay)
		if (w->away || !is_in(e, t, w) || e->under_way > t->under_way.n)
			return 0;
	return !__atomic_load_n(&planned, __ATOMIC_RELAXED) && !e->remapping.closed;
}

void rs_views_meet(struct rs_callstate *c, struct rs_thread *t)
{
	struct rs_engine *e = c->e;
	unsigned tries = 0;

	if (rs_call_elsewhere(c) || is_alone(e, t))
		return;
	if (e->outer) {
		meet_in_capture(c, t);
		return;
	}
	rs_locate(c, t);
	/* Nor is anything closed then: rs_remap_meet does not let others in after this. */
	while ((must_wait(c, t) || rs_remap_meets_closed(c)) && tries++ < TRIES) {
		pause_a_moment(e);
		rs_locate(c, t);
	}
	if (tries > TRIES)
		note_vain(c);
	if (e->config.mode != RS_MODE_AUDIT)
		others_step_aside(c, t);
}

/* a: NULL for anything. 0: no memory. */
static int is_under_way(struct rs_engine *e, struct rs_thread *t, struct rs_alloc *a)
{
	struct rs_alloc **added = RS_PUSH(t->under_way);

	if (!added)
		return 0;
	*added = a;
	e->under_way++;
	if (a) {
		a->under_way++;
		a->refs++;
	} else {
		e->all_under_way++;
	}
	return 1;
}

void rs_view_call(struct rs_callstate *c, struct rs_thread *t)
{
	int counted;
	uint32_t i;

	/* inside of a capture no call does without the lock, so those from before a replay are known */
	if ((!c->e->replays && !c->e->outer) || rs_call_elsewhere(c) ||
	    c->e->config.mode == RS_MODE_AUDIT)
		return;
	counted = !c->call->everything || is_under_way(c->e, t, NULL);
	for (i = 0; i < c->nranges && counted; i++)
		counted = is_under_way(c->e, t, c->range[i].a);
	if (!counted)
		give_up(c->e);
}

void rs_view_made(struct rs_engine *e, struct rs_thread *t)
{
	pthread_mutex_lock(&e->lock);
	while (t->under_way.n) {
		struct rs_alloc *a = t->under_way.v[--t->under_way.n];

		e->under_way--;
		if (!a) {
			e->all_under_way--;
			continue;
		}
		a->under_way--;
		rs_alloc_unref(e, a);
	}
	pthread_mutex_unlock(&e->lock);
}
