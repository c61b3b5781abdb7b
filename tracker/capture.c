/* SPDX-License-Identifier: MIT */
/*
 * Captures as they are made: which of the program's windows and calls belong to them, and the engine inside that
 * follows them. What becomes of their launches is in capture_run.c; why all this is sound, in capture.h.
 *
 * The inner engine is an ordinary one, whose device operations are captured because its queues are. It differs in that
 * memory, names and terms are the program's (rs_engine_outer): capture_memory.c; windows are in capture_window.c. Its records
 * do not wait for an event; they are the script by which launches are judged.
 * Locks: the outer engine's, then the inner one's; neither is held across device operations.
 */
#include "tracker/capture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tracker/callstate.h"
#include "tracker/capturing.h"
#include "tracker/costing.h"

const struct rs_devops *rs_capture_ops(const struct rs_engine *outer)
{
	return outer->costing ? outer->costing->real : outer->ops;
}

/* --- life ----------------------------------------------------------------------------------------- */

void rs_engine_capture_begin(struct rs_engine *e, struct rs_queue q)
{
	const struct rs_devops *ops = rs_capture_ops(e);
	struct rs_capture *c;
	uint64_t id = 0, graph = 0;

	if (!e->config.capture || !ops->capture_of ||
	    ops->capture_of(ops->opaque, q, &id, &graph) || !id)
		return;
	c = calloc(1, sizeof(*c));
	if (!c)
		return; /* what is captured is rejected */
	c->outer = e;
	c->id = id;
	c->graph = graph;
	c->nodes = ops->capture_nodes(ops->opaque, q, graph);
	c->origin = q;
	c->refs = 1;
	c->script_end = &c->script;
	pthread_mutex_lock(&e->lock);
	__atomic_fetch_add(&e->open_captures, 1, __ATOMIC_RELAXED);
	c->next = e->captures;
	__atomic_store_n(&e->captures, c, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&e->lock);
}

struct rs_capture *rs_capture_ref(struct rs_capture *c)
{
	pthread_mutex_lock(&c->outer->lock);
	c->refs++;
	pthread_mutex_unlock(&c->outer->lock);
	return c;
}

static void free_inner(struct rs_capture *c)
{
	struct rs_engine *inner = c->inner;
	struct rs_replay *r;
	struct rs_seat *seat;

	pthread_mutex_lock(&inner->lock);
	while ((r = c->script)) {
		c->script = r->next;
		rs_replay_free(inner, r);
	}
	rs_capture_shadows_free(c);
	pthread_mutex_unlock(&inner->lock);
	while ((seat = c->seats)) {
		c->seats = seat->next;
		rs_thread_destroy(seat->inner);
		free(seat);
	}
	inner->terms = NULL; /* the program's */
	rs_engine_destroy(inner);
}

void rs_capture_unref(struct rs_capture *c)
{
	struct rs_capture **at;
	struct rs_engine *e;

	if (!c)
		return;
	e = c->outer;
	pthread_mutex_lock(&e->lock);
	if (--c->refs) {
		pthread_mutex_unlock(&e->lock);
		return;
	}
	for (at = &e->captures; *at != c; at = &(*at)->next)
		;
	__atomic_store_n(at, c->next, __ATOMIC_RELAXED);
	rs_capture_promises_break(c);
	pthread_mutex_unlock(&e->lock);
	if (c->inner)
		free_inner(c);
	rs_capture_results_free(c);
	free(c->mirrors.v);
	free(c->digests.v);
	free(c);
}

/* The capture that began on q and is not over. Outer lock held. */
static struct rs_capture *begun_on(struct rs_engine *e, struct rs_queue q)
{
	struct rs_capture *c;

	for (c = e->captures;
	     c && (c->ended || c->origin.ctx != q.ctx || c->origin.stream != q.stream); c = c->next)
		;
	return c;
}

/* Outer lock held. */
static void count_nodes(struct rs_capture *c, enum rs_look why, uint64_t nodes)
{
	int known = nodes != UINT64_MAX && c->nodes != UINT64_MAX;

	if (why == RS_CALL_ENDS)
		c->calls -= c->calls != 0;
	if (!c->calls && why == RS_CALL_BEGINS && known && nodes != c->nodes)
		c->foreign = 1;
	if (!c->calls)
		c->nodes = nodes;
	if (why == RS_CALL_BEGINS)
		c->calls++;
}

/* The graph is there as long as the driver has not been asked to end the capture, which waits for those who look. */
void rs_capture_look(struct rs_capture *c, enum rs_look why)
{
	const struct rs_devops *ops = rs_capture_ops(c->outer);
	uint64_t nodes = UINT64_MAX;
	int may_ask;

	pthread_mutex_lock(&c->outer->lock);
	may_ask = !c->ending;
	c->looking += (uint32_t)may_ask;
	pthread_mutex_unlock(&c->outer->lock);
	if (may_ask)
		nodes = ops->capture_nodes(ops->opaque, c->origin, c->graph);
	pthread_mutex_lock(&c->outer->lock);
	c->looking -= (uint32_t)may_ask;
	count_nodes(c, why, nodes);
	pthread_mutex_unlock(&c->outer->lock);
}

/* Nothing more is followed. Outer lock held, and released meanwhile. */
static void begin_to_end(struct rs_capture *c)
{
	c->ending = 1;
	while (c->looking) {
		pthread_mutex_unlock(&c->outer->lock);
		nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
		pthread_mutex_lock(&c->outer->lock);
	}
}

struct rs_capture *rs_capture_find(struct rs_engine *e, struct rs_queue q, uint64_t id)
{
	const struct rs_devops *ops = rs_capture_ops(e);
	struct rs_capture *c = __atomic_load_n(&e->captures, __ATOMIC_RELAXED);

	if (!c || (!id && (ops->capture_of(ops->opaque, q, &id, NULL) || !id)))
		return NULL;
	pthread_mutex_lock(&e->lock);
	for (c = e->captures; c && (c->ended || c->id != id); c = c->next)
		;
	if (c)
		c->refs++;
	pthread_mutex_unlock(&e->lock);
	return c;
}

void rs_engine_capture_unseen(struct rs_engine *e, struct rs_queue q, int begins)
{
	struct rs_capture *c = rs_capture_find(e, q, 0);

	if (c)
		rs_capture_look(c, begins ? RS_CALL_BEGINS : RS_CALL_ENDS);
	rs_capture_unref(c);
}

static void retire(struct rs_engine *inner)
{
	struct rs_segment *s, *next;

	for (s = inner->pending; s; s = next) {
		next = s->next;
		if (!s->open)
			rs_segment_retire(inner, s);
	}
}

struct rs_replay *rs_capture_script(const struct rs_engine *inner)
{
	return inner->capture->script;
}

/* A step of the program begins. Outer lock held. */
void rs_capture_step(struct rs_engine *e)
{
	struct rs_capture *c;

	for (c = e->captures; c; c = c->next) {
		if (!c->inner || c->ending)
			continue;
		pthread_mutex_lock(&c->inner->lock);
		retire(c->inner);
		c->inner->step = e->step;
		c->inner->seen_step = e->seen_step;
		pthread_mutex_unlock(&c->inner->lock);
	}
}

void rs_engine_capture_ends(struct rs_engine *e, struct rs_queue q)
{
	struct rs_capture *c;

	pthread_mutex_lock(&e->lock);
	c = begun_on(e, q);
	if (!c) {
		pthread_mutex_unlock(&e->lock);
		return;
	}
	c->refs++;
	pthread_mutex_unlock(&e->lock);
	rs_capture_look(c, RS_CALL_BEGINS); /* the last one */
	pthread_mutex_lock(&e->lock);
	begin_to_end(c);
	while (c->mirrors.n) {
		rs_capture_close_at(c, c->mirrors.n - 1, 0);
		pthread_mutex_lock(&e->lock);
	}
	if (c->inner) {
		pthread_mutex_lock(&c->inner->lock);
		retire(c->inner);
		pthread_mutex_unlock(&c->inner->lock);
	}
	pthread_mutex_unlock(&e->lock);
	rs_capture_unref(c);
}

/* Somebody's call did not wait for what a replay that was over had still to put back. Outer lock held. */
static void note_refusals(struct rs_capture *c)
{
	struct rs_replay *r;

	for (r = c->script; r; r = r->next)
		if (r->fenced && r->refusals != c->inner->refusals)
			r->flags |= RS_F_INTERNAL;
}

struct rs_capture *rs_engine_capture_end(struct rs_engine *e, struct rs_queue q, int graph)
{
	struct rs_capture *c;
	int is_empty;

	pthread_mutex_lock(&e->lock);
	c = begun_on(e, q);
	if (!c) {
		pthread_mutex_unlock(&e->lock);
		return NULL;
	}
	c->ended = 1;
	__atomic_fetch_sub(&e->open_captures, 1, __ATOMIC_RELAXED);
	/* a forward that nobody replays has digests, too; and others may use what it leaves allocated */
	is_empty = !graph || ((!c->inner || rs_capture_only_learns(c)) && !c->promises.n);
	if (!is_empty && c->inner) {
		note_refusals(c);
		rs_capture_script_ends(c);
		e->stats.snapshots += c->inner->stats.snapshots;
	}
	pthread_mutex_unlock(&e->lock);
	if (!is_empty)
		return c;
	rs_capture_unref(c);
	return NULL;
}

void rs_capture_ctx_gone(struct rs_engine *e, uint64_t ctx)
{
	struct rs_results *r, **at;
	struct rs_capture *c;

	for (c = e->captures; c; c = c->next) {
		for (at = &c->spare; (r = *at);) {
			if (r->ctx != ctx) {
				at = &r->next;
				continue;
			}
			*at = r->next;
			free(r->move);
			free(r);
		}
		if (!c->inner)
			continue;
		pthread_mutex_lock(&c->inner->lock);
		rs_words_ctx_gone(c->inner, ctx);
		pthread_mutex_unlock(&c->inner->lock);
		rs_arena_ctx_gone(c->inner, ctx);
		c->ending = 1;
	}
}

int rs_engine_capture_owns(struct rs_engine *e, uint64_t addr)
{
	const struct rs_capture *c;

	pthread_mutex_lock(&e->lock);
	for (c = e->captures; c && !(c->inner && rs_arena_has(c->inner, addr)); c = c->next)
		;
	pthread_mutex_unlock(&e->lock);
	return c != NULL;
}

/* --- calls ---------------------------------------------------------------------------------------- */

/*
 * A call that is being captured. 0: by nobody that is followed, or only to learn; then the windows that it lies in are told
 * that they cannot be vouched for.
 */
int rs_capture_before(struct rs_engine *e, struct rs_thread *t, struct rs_call *call)
{
	struct rs_capture *c = rs_capture_find(e, call->q, call->capture);
	struct rs_oplist list;
	struct rs_callstate s = {.l = &list, .call = call};
	struct rs_thread *seat;
	uint64_t place = 0;
	int saved = errno;

	call->private_[2] = (uintptr_t)c; /* the reference goes with it */
	if (!c)
		return 0;
	rs_capture_look(c, RS_CALL_BEGINS);
	rs_oplist_init(&list);
	pthread_mutex_lock(&e->lock);
	e->where.wanted = 0;
	rs_capture_enter(c, t);
	seat = c->inner && !c->ending ? rs_capture_seat_of(c, t) : NULL;
	s.e = c->inner;
	if (seat) {
		pthread_mutex_lock(&c->inner->lock);
		rs_call_plan(&s, seat);
		e->where.wanted |= c->inner->where.wanted;
		c->inner->where.wanted = 0;
		pthread_mutex_unlock(&c->inner->lock);
	}
	place = rs_where_reserve(e, s.number);
	pthread_mutex_unlock(&e->lock);
	if (seat)
		rs_oplist_run(c->inner, &list);
	rs_where_take(e, s.number, place);
	errno = saved;
	return !rs_capture_only_learns(c);
}

int rs_capture_after(struct rs_engine *e, struct rs_thread *t, struct rs_call *call, int ok)
{
	struct rs_capture *c = (struct rs_capture *)(uintptr_t)call->private_[2];
	struct rs_oplist list;
	struct rs_callstate s = {.l = &list, .call = call};
	struct rs_thread *seat;
	int saved = errno, digests;

	if (!c)
		return 0;
	call->private_[2] = 0;
	rs_oplist_init(&list);
	pthread_mutex_lock(&e->lock);
	seat = c->inner ? rs_capture_seat_of(c, t) : NULL;
	/* a call that has left no product has nothing to be digested */
	digests = seat && !c->ending && !rs_capture_only_learns(c) && call->private_[0] &&
		  (call->private_[1] || !ok) &&
		  (e->config.verify || e->config.mode == RS_MODE_AUDIT);
	s.e = c->inner;
	if (digests) {
		pthread_mutex_lock(&c->inner->lock);
		rs_call_plan_after(&s, seat, ok);
		pthread_mutex_unlock(&c->inner->lock);
	}
	pthread_mutex_unlock(&e->lock);
	if (digests)
		rs_oplist_run(c->inner, &list);
	if (seat && seat->under_way.n)
		rs_view_made(c->inner, seat);
	rs_capture_look(c, RS_CALL_ENDS);
	rs_capture_unref(c);
	errno = saved;
	return 1;
}

/* Engine and thread inside of c. 0: it is not followed there. */
static int take_seat(struct rs_capture *c, struct rs_engine **e, struct rs_thread **t)
{
	struct rs_thread *seat = NULL;

	pthread_mutex_lock(&c->outer->lock);
	if (c->inner && !c->ending)
		seat = rs_capture_seat_of(c, *t);
	pthread_mutex_unlock(&c->outer->lock);
	if (seat) {
		*e = c->inner;
		*t = seat;
	}
	return seat != NULL;
}

/* For the rest of a captured call: engine and thread inside. 0: it is not followed. */
int rs_capture_seat(struct rs_engine **e, struct rs_thread **t, const struct rs_call *call)
{
	struct rs_capture *c = (struct rs_capture *)(uintptr_t)call->private_[2];

	if ((*e)->outer)
		return 1;
	return c && take_seat(c, e, t);
}

/* --- order ---------------------------------------------------------------------------------------- */

void rs_engine_capture_recorded(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
				uint64_t event)
{
	struct rs_capture *c = rs_capture_find(e, q, 0);

	if (c && take_seat(c, &e, &t))
		rs_engine_event_record(e, t, q, event);
	rs_capture_unref(c);
}

void rs_engine_capture_waited(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
			      uint64_t event)
{
	struct rs_capture *c = rs_capture_find(e, q, 0);

	if (c && take_seat(c, &e, &t))
		rs_engine_event_wait(e, t, q, event);
	rs_capture_unref(c);
}

void rs_capture_event_gone(struct rs_engine *e, uint64_t event)
{
	struct rs_capture *c;

	pthread_mutex_lock(&e->lock);
	for (c = e->captures; c; c = c->next)
		if (c->inner && !c->ended)
			rs_engine_event_destroy(c->inner, event);
	pthread_mutex_unlock(&e->lock);
}

/* The tool's nodes are not among what comes first. capture NULL: of nobody knows which one; then it may be any. */
static void lost_order(struct rs_engine *e, struct rs_capture *capture)
{
	struct rs_capture *c;

	pthread_mutex_lock(&e->lock);
	for (c = e->captures; c; c = c->next)
		if (!c->ended && (!capture || c == capture))
			c->foreign = 1;
	pthread_mutex_unlock(&e->lock);
}

/* Are there nodes of the tool's that a later one must not pass? */
static int has_nodes(struct rs_engine *e, struct rs_capture *c)
{
	int has;

	pthread_mutex_lock(&e->lock);
	has = c->inner && e->config.mode == RS_MODE_PRESERVE;
	pthread_mutex_unlock(&e->lock);
	return has;
}

uint64_t rs_engine_capture_resets(struct rs_engine *e, struct rs_queue q)
{
	const struct rs_devops *ops = rs_capture_ops(e);
	struct rs_capture *c = rs_capture_find(e, q, 0);
	uint64_t event = 0;

	if (c && has_nodes(e, c) && ops->event_record(ops->opaque, q, &event))
		event = 0;
	rs_capture_unref(c);
	return event;
}

void rs_engine_capture_reset(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
			     uint64_t event, int set, int ok)
{
	const struct rs_devops *ops = rs_capture_ops(e);
	struct rs_capture *c = NULL;
	uint64_t id = 0;

	if (ok && __atomic_load_n(&e->captures, __ATOMIC_RELAXED)) {
		/* the driver has done it, so there is a capture */
		if (ops->capture_of(ops->opaque, q, &id, NULL) || !id)
			lost_order(e, NULL);
		else
			c = rs_capture_find(e, q, id);
	}
	if (c && set && has_nodes(e, c) && (!event || ops->event_wait(ops->opaque, q, event)))
		lost_order(e, c);
	if (event)
		ops->event_free(ops->opaque, event);
	rs_capture_unref(c);
	if (ok)
		rs_engine_capture_waited(e, t, q, 0);
}
