/* SPDX-License-Identifier: MIT */
/*
 * Happens-before between the program's streams: vector clocks, so that a reader and a writer without any
 * order between them are noticed (hazard kind K15, finding RS031).
 *
 * A queue's clock counts its followed calls; component i says how many of queue i's calls certainly
 * come before whatever is enqueued next. Events carry clocks, the host has one (what any thread has
 * waited for counts as known to all of them), the legacy stream joins all blocking streams of its
 * context and they join it.
 *
 * Where knowledge is missing, order is assumed: an event that nobody recorded while something was
 * pending, a queue beyond the 63rd, what happened before the earliest pending forward. A race
 * may be missed, none is invented.
 *
 * Callers: access.c, preserve.c under engine.lock; the shim (rs_engine_*), which take it.
 */
#include <stdlib.h>
#include <string.h>

#include "tracker/model.h"

struct rs_event {
	uint64_t id; /* key */
	struct rs_clock clock;
	uint64_t value; /* of a stream memory operation: what it writes, and on which queue */
	uint32_t q;
	uint8_t has_value;
	UT_hash_handle hh;
};

/* Of queues that have not been met nobody knows anything. */
static void join(const struct rs_engine *e, struct rs_clock *to, const struct rs_clock *from)
{
	uint32_t i, n = e->queues.n < RS_CLOCKS ? e->queues.n : RS_CLOCKS;

	for (i = 0; i < n; i++)
		if (to->t[i] < from->t[i])
			to->t[i] = from->t[i];
}

/* NULL: no memory, or too many queues; then everything counts as ordered. */
static struct rs_clock *clock_of(struct rs_engine *e, uint32_t q)
{
	struct rs_qstate *s = &e->queues.v[q];

	if (q >= RS_CLOCKS)
		return NULL;
	if (!s->clock) {
		s->clock = calloc(1, sizeof(*s->clock));
		if (s->clock) /* ticks go on where another stream of that id ended */
			s->clock->t[q] = e->everything_known.t[q];
	}
	return s->clock;
}

static void join_all(struct rs_engine *e, struct rs_clock *to, uint64_t ctx)
{
	uint32_t i;

	for (i = 0; i < e->queues.n && i < RS_CLOCKS; i++)
		if (e->queues.v[i].clock && (!ctx || e->queues.v[i].q.ctx == ctx))
			join(e, to, e->queues.v[i].clock);
}

/* The legacy stream waits for the blocking streams of its context. */
static void enter_legacy(struct rs_engine *e, uint32_t legacy)
{
	struct rs_clock *c = clock_of(e, legacy);
	uint32_t i;

	for (i = 0; c && i < e->queues.n && i < RS_CLOCKS; i++) {
		const struct rs_qstate *s = &e->queues.v[i];

		if (i != legacy && s->clock && !s->free_running &&
		    s->q.ctx == e->queues.v[legacy].q.ctx)
			join(e, c, s->clock);
	}
}

static int is_legacy(const struct rs_qstate *s)
{
	return !s->q.stream;
}

/* A blocking stream waits for the legacy stream. */
static void enter_blocking(struct rs_engine *e, uint32_t q)
{
	const struct rs_qstate *s = &e->queues.v[q];
	uint32_t i;

	for (i = 0; i < e->queues.n && i < RS_CLOCKS; i++) {
		struct rs_qstate *other = &e->queues.v[i];

		if (!is_legacy(other) || other->dead || other->q.ctx != s->q.ctx)
			continue;
		if (other->clock)
			join(e, s->clock, other->clock);
	}
}

/* Calls on a legacy stream that nobody described: as if they came now. */
static void catch_up(struct rs_engine *e)
{
	uint32_t i;

	if (!__atomic_load_n(&e->legacy_unseen, __ATOMIC_RELAXED) ||
	    !__atomic_exchange_n(&e->legacy_unseen, 0, __ATOMIC_RELAXED))
		return;
	rs_moment_next(e);
	for (i = 0; i < e->queues.n && i < RS_CLOCKS; i++)
		if (is_legacy(&e->queues.v[i]) && !e->queues.v[i].dead)
			enter_legacy(e, i);
}

static struct rs_clock *enter(struct rs_engine *e, uint32_t q)
{
	struct rs_clock *c = clock_of(e, q);

	if (!c)
		return NULL;
	catch_up(e);
	join(e, c, &e->host);
	if (is_legacy(&e->queues.v[q]))
		enter_legacy(e, q);
	else if (!e->queues.v[q].free_running)
		enter_blocking(e, q);
	return c;
}

uint64_t rs_order_tick(struct rs_engine *e, uint32_t q)
{
	struct rs_clock *c = e->config.order ? enter(e, q) : NULL;

	if (!c)
		return 0;
	e->everything_known.t[q] = ++c->t[q];
	return c->t[q];
}

int rs_order_known(const struct rs_engine *e, uint32_t from, uint64_t tick, uint32_t q)
{
	const struct rs_clock *c;

	if (!tick || from >= RS_CLOCKS || q >= RS_CLOCKS || from == q)
		return 1;
	c = e->queues.v[q].clock;
	return !c || c->t[from] >= tick;
}

/* rs_engine_event_destroy looks without the lock. */
static void count_events(struct rs_engine *e)
{
	__atomic_store_n(&e->nevents, HASH_COUNT(e->events), __ATOMIC_RELAXED);
}

static void drop_event(struct rs_engine *e, struct rs_event *ev)
{
	HASH_DEL(e->events, ev);
	free(ev);
	count_events(e);
}

void rs_order_forget(struct rs_engine *e)
{
	struct rs_event *ev;

	while ((ev = e->events))
		drop_event(e, ev);
	e->host = e->everything_known;
}

/* A queue id is about to be used for another stream. */
void rs_order_reuse(struct rs_engine *e, uint32_t q)
{
	free(e->queues.v[q].clock);
	e->queues.v[q].clock = NULL;
}

void rs_order_fini(struct rs_engine *e)
{
	uint32_t i;

	rs_order_forget(e);
	for (i = 0; i < e->queues.n; i++)
		rs_order_reuse(e, i);
}

/* --- what the shim tells ---------------------------------------------------------------------- */

/* Nothing is pending: nobody will ask. */
static int unasked(const struct rs_engine *e)
{
	return !e->config.order || !__atomic_load_n(&e->interested, __ATOMIC_RELAXED);
}

void rs_engine_queue_create(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
			    int blocking)
{
	uint32_t id;

	if (!e->config.order)
		return;
	pthread_mutex_lock(&e->lock);
	id = rs_queue_id(e, t, q); /* it may move the array */
	e->queues.v[id].free_running = !blocking;
	pthread_mutex_unlock(&e->lock);
}

static struct rs_event *find_event(struct rs_engine *e, uint64_t id)
{
	struct rs_event *ev;

	HASH_FIND(hh, e->events, &id, sizeof(id), ev);
	return ev;
}

void rs_engine_event_record(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
			    uint64_t event)
{
	const struct rs_clock *c;
	struct rs_event *ev;

	if (unasked(e))
		return;
	pthread_mutex_lock(&e->lock);
	c = enter(e, rs_queue_id(e, t, q));
	ev = find_event(e, event);
	if (!ev && c) {
		ev = calloc(1, sizeof(*ev));
		if (ev) {
			ev->id = event;
			HASH_ADD(hh, e->events, id, sizeof(ev->id), ev);
			if (!ev->hh.tbl) {
				free(ev);
				ev = NULL;
			}
			count_events(e);
		}
	}
	if (ev)
		ev->has_value = 0;
	if (ev && c)
		ev->clock = *c;
	else if (ev)
		drop_event(e, ev);
	pthread_mutex_unlock(&e->lock);
}

void rs_engine_value_written(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
			     uint64_t addr, uint64_t value)
{
	struct rs_event *ev;
	uint32_t id;

	rs_engine_event_record(e, t, q, addr);
	if (unasked(e))
		return;
	pthread_mutex_lock(&e->lock);
	id = rs_queue_id(e, t, q);
	ev = find_event(e, addr);
	if (ev) {
		ev->value = value;
		ev->q = id;
		ev->has_value = 1;
	}
	pthread_mutex_unlock(&e->lock);
}

/* In the width of the operation; the manual of cuStreamWaitValue32 and 64. */
static int satisfies(uint64_t have, uint64_t want, enum rs_value_wait how, unsigned bytes)
{
	int64_t difference =
		bytes == 4 ? (int32_t)((uint32_t)have - (uint32_t)want) : (int64_t)(have - want);
	uint64_t mask = bytes == 4 ? UINT32_MAX : UINT64_MAX;

	switch (how) {
	case RS_VALUE_GEQ:
		return difference >= 0;
	case RS_VALUE_EQ:
		return !difference;
	case RS_VALUE_AND:
		return !!(have & want & mask);
	case RS_VALUE_NOR:
		return !!(~(have | want) & mask);
	}
	return 0;
}

int rs_engine_value_comes(struct rs_engine *e, uint64_t addr, uint64_t value,
			  enum rs_value_wait how, unsigned bytes)
{
	const struct rs_event *ev;
	int comes;

	if (unasked(e))
		return 0;
	pthread_mutex_lock(&e->lock);
	ev = find_event(e, addr);
	comes = ev && ev->has_value && satisfies(ev->value, value, how, bytes) &&
		!(__atomic_load_n(&e->stalling, __ATOMIC_RELAXED) & RS_QBIT(ev->q));
	pthread_mutex_unlock(&e->lock);
	return comes;
}

void rs_engine_event_wait(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
			  uint64_t event)
{
	const struct rs_event *ev;
	struct rs_clock *c;

	if (unasked(e))
		return;
	pthread_mutex_lock(&e->lock);
	c = enter(e, rs_queue_id(e, t, q));
	ev = find_event(e, event);
	if (c)
		join(e, c, ev ? &ev->clock : &e->everything_known);
	pthread_mutex_unlock(&e->lock);
}

void rs_engine_event_destroy(struct rs_engine *e, uint64_t event)
{
	struct rs_event *ev;

	if (__atomic_load_n(&e->open_captures, __ATOMIC_RELAXED))
		rs_capture_event_gone(e, event);
	if (!e->config.order || !__atomic_load_n(&e->nevents, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&e->lock);
	ev = find_event(e, event);
	if (ev)
		drop_event(e, ev);
	pthread_mutex_unlock(&e->lock);
}

void rs_engine_synced_queue(struct rs_engine *e, struct rs_thread *t, struct rs_queue q)
{
	const struct rs_clock *c;

	if (unasked(e))
		return;
	pthread_mutex_lock(&e->lock);
	c = enter(e, rs_queue_id(e, t, q));
	join(e, &e->host, c ? c : &e->everything_known);
	pthread_mutex_unlock(&e->lock);
}

void rs_engine_synced_event(struct rs_engine *e, uint64_t event)
{
	const struct rs_event *ev;

	if (unasked(e))
		return;
	pthread_mutex_lock(&e->lock);
	ev = find_event(e, event);
	join(e, &e->host, ev ? &ev->clock : &e->everything_known);
	pthread_mutex_unlock(&e->lock);
}

void rs_engine_synced_ctx(struct rs_engine *e, uint64_t ctx)
{
	if (unasked(e))
		return;
	pthread_mutex_lock(&e->lock);
	join_all(e, &e->host, ctx);
	pthread_mutex_unlock(&e->lock);
}
