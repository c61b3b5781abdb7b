/* SPDX-License-Identifier: MIT */
/*
 * A driver call's way through the engine: before it is made, and after.
 *
 * Callers: the shim, any thread; engine.lock is taken here, and never held over an operation of the device.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/callstate.h"
#include "tracker/costing.h"

static const char *window_label(const struct rs_engine *e, const struct rs_thread *t)
{
	const struct rs_window *w;

	for (w = t->top; w; w = w->up)
		if (rs_window_is_segment(w))
			return w->label;
	return e->process ? e->process->label : "";
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
}

static int wants_digests(const struct rs_engine *e)
{
	return e->config.verify || e->config.mode == RS_MODE_AUDIT;
}

/*
 * Is all that has to follow the call known now? So it is where only an open forward of this thread is concerned; then
 * the lock is not needed once more. A launch of many calls has the first of them planned.
 */
static int plan_posts(struct rs_callstate *c, struct rs_thread *t)
{
	struct rs_window *w = rs_window_next(t->top);

	if (!w || w->kind != RS_WINDOW_FORWARD || rs_window_outer(w) || c->e->process ||
	    c->e->costing || w->seg->kept || !wants_digests(c->e))
		return 0;
	if (t->posts.n && t->posts_of == w->seg)
		return 0;
	t->posts.n = 0; /* of a window that is gone */
	t->posts_of = w->seg;
	t->posts_call = c->number;
	t->posts_q = c->q;
	return rs_pair_plan(c, w, t);
}

/* What was planned, as it was planned; 0: it is not so. */
static int run_posts(struct rs_engine *e, struct rs_thread *t, const struct rs_call *call, int ok)
{
	struct rs_oplist list;
	uint32_t i;

	for (i = 0; i < t->posts.n; i++) {
		const struct rs_access *x = &call->access[t->posts.v[i].access];

		ok &= x->dir & RS_WRITE && !x->late;
	}
	if (!ok)
		return 0;
	rs_oplist_init(&list);
	list.borrowed = 1;
	for (i = 0; i < t->posts.n; i++) {
		const struct rs_post *p = &t->posts.v[i];
		struct rs_op *op = rs_oplist_add(&list, RS_OP_DIGEST, t->posts_q);

		if (!op)
			break; /* those are never filled, which says so */
		op->alloc = p->alloc;
		op->addr = p->addr;
		op->off = p->off;
		op->len = p->len;
		op->words = p->words;
	}
	t->posts.n = 0;
	rs_oplist_run(e, &list);
	return 1;
}

/* The call was not made, or is over in another way than was expected. */
static void unplan_posts(struct rs_engine *e, struct rs_thread *t)
{
	pthread_mutex_lock(&e->lock);
	rs_pair_unplan(e, t, rs_window_next(t->top));
	pthread_mutex_unlock(&e->lock);
}

/* The general way. */
static void follow_all(struct rs_callstate *c, struct rs_thread *t)
{
	rs_locate(c, t);
	if (!rs_call_elsewhere(c))
		rs_access_fences(c);
	rs_access_windows(c, t);
	if (!rs_call_elsewhere(c))
		rs_access_model(c, rs_window_next(t->top));
}

/* What comes before the call, in every window that sees it, into c->l. engine.lock held. */
void rs_call_plan(struct rs_callstate *c, struct rs_thread *t)
{
	struct rs_engine *e = c->e;

	c->number = ++(e->outer ? e->outer : e)->clock; /* one number, whoever follows the call */
	c->call->private_[0] = c->number;
	e->stats.calls++;
	e->stats.untracked += c->call->untracked;
	begin(c, t);
	rs_views_meet(c, t);
	if (__atomic_load_n(&e->remapping.wanted, __ATOMIC_RELAXED))
		rs_remap_meet(c, t);
	if (!rs_call_elsewhere(c)) {
		rs_note_use(e, c->q);
		c->who.tick = rs_order_tick(e, c->q);
	}
	if (!rs_steady_follow(c, t))
		follow_all(c, t);
	rs_view_call(c, t);
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
	if (c.follow_up && plan_posts(&c, t))
		call->private_[1] = 0;
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
	t->hosts = call->kind == RS_CALL_HOST;
	if (t->hosts)
		rs_remap_hosts(e, call->q.ctx);
	if (!rs_follow_loosely(e, t, call))
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
	rs_locate_again(c, t);
	w = rs_window_next(t->top) ? rs_window_next(t->top) : e->process;
	if (e->costing && w)
		rs_timing_list(e, c->l, w);
	for (w = rs_window_next(t->top); w; w = rs_window_outer(w))
		pair(c, w);
	for (w = e->process; w; w = w->up)
		if (rs_window_is_segment(w))
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
	if (t->posts.n && t->posts_call == call->private_[0] && !run_posts(e, t, call, ok)) {
		unplan_posts(e, t);
		call->private_[1] = 1;
	}
	/* a call that was made and has left no product has nothing to be digested */
	if (in_window && !call->capturing && (call->private_[1] || !ok) && wants_digests(e))
		follow_up(e, t, call, ok);
	errno = saved;
}

static void after(struct rs_engine *e, struct rs_thread *t, struct rs_call *call, int ok)
{
	int in_window = rs_window_next(t->top) || __atomic_load_n(&e->process, __ATOMIC_RELAXED);

	if (call->capturing && rs_capture_after(e, t, call, ok))
		return;
	if (in_window || call->synchronous ||
	    (call->private_[0] && __atomic_load_n(&e->thins_new, __ATOMIC_RELAXED)))
		after_followed(e, t, call, ok, in_window);
}

void rs_engine_after(struct rs_engine *e, struct rs_thread *t, struct rs_call *call, int ok)
{
	after(e, t, call, ok);
	/* Again: who has waited since it was described has not waited for it. */
	if (t->hosts)
		rs_remap_hosts(e, call->q.ctx);
	t->hosts = 0;
	if (t->under_way.n)
		rs_view_made(e, t);
	if (t->flying) /* with all that is enqueued behind the call */
		rs_remap_landed(e, t);
}
