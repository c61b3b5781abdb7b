/* SPDX-License-Identifier: MIT */
/*
 * See planner.h, and tracker/wire.h for what goes over the socket and into the shared area.
 *
 * Invariants
 * - Nothing here blocks: the socket is non-blocking, the area is memory, the planner's side is never waited for.
 * - The area is the planner's word: it is used only when its socket's folder, its user, its seals and its size are right,
 *   because only then can it not be cut off under our feet.
 * - Programs close descriptors that are not theirs, and their own then get those numbers: the socket is recognised again
 *   before each use, and never closed when it is somebody else's.
 * - Of the state below nothing is touched without `busy`, which is tried for, never waited for.
 */
#include "shim/planner.h"

#include "shim/link.h"
#include "shim/log.h"
#include "shim/plan.h"
#include "shim/queue.h"
#include "shim/tell.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND 1000000000ull
#define COSTS_SOON                                                                                 \
	64 /* steps in which all that is new is told at once; from then on ten times a second */

int rs_planner_on, rs_planner_seeking;

static int busy, linked; /* linked: a planner is wanted at all */
static struct rs_wire_ring *ring;
static struct rs_plan_entry *entries;
static uint64_t taken; /* generation of the area's plan that was taken last */
static uint64_t steps, costs_ns;
static int off; /* the planner has asked for no plan */

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

void rs_planner_start(void)
{
	const struct rs_options *o = &rs_state.opt;

	if (rs_state.mode != RS_MODE_PRESERVE) {
		if (o->budget || o->plan[0])
			rs_log(RS_LOG_WARN,
			       "REPLAYSHIM_BUDGET and _PLAN need REPLAYSHIM_MODE=preserve");
		return;
	}
	if (o->plan[0]) {
		rs_planner_on = rs_plan_load(o->plan);
	} else if (o->budget && strcmp(o->planner, "none")) {
		entries = calloc(RS_PLAN_MAX, sizeof(*entries));
		linked = rs_planner_on = entries && !rs_link_start(clock_ns());
		__atomic_store_n(&rs_planner_seeking, linked, __ATOMIC_RELAXED);
	}
}

/* --- a step ------------------------------------------------------------------------------------- */

static int enter(void)
{
	return !__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE);
}

static void leave(void)
{
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}

static void keep_usage(void *arg, const struct rs_cost_usage *usage)
{
	*(struct rs_cost_usage *)arg = *usage;
}

static struct rs_queue queue(struct rs_tls *t)
{
	return (struct rs_queue){.ctx = rs_ctx_current(t)};
}

/* The newest plan of the area, if there is one that was not seen yet. */
static void take(struct rs_wire *area, struct rs_queue q, uint64_t step)
{
	struct rs_plan_head head;
	int r = rs_wire_take(area, taken, &head, entries);

	if (r == -EPROTO)
		rs_link_distrust("its plan is damaged");
	if (r != 1)
		return;
	taken = head.generation;
	rs_plan_give(q, step, &head, entries);
}

static void obey(struct rs_wire *area, struct rs_queue q, uint64_t step)
{
	int wants_off = atomic_load_explicit(&area->off, memory_order_relaxed) != 0;

	if (wants_off && !off)
		rs_plan_withdraw(q, step);
	if (!wants_off && off)
		taken = 0; /* and the newest is taken again */
	off = wants_off;
	if (!off && q.ctx)
		take(area, q, step);
}

/* The planner's area, if it is there; a new one is told who we are. */
static struct rs_wire *meet(uint64_t now)
{
	struct rs_wire *area;
	int is_new;

	area = rs_link_area(now, &is_new);
	if (is_new) {
		rs_tell_begin(area);
		ring = rs_wire_claim(area);
		taken = costs_ns = 0;
		off = 0;
	}
	__atomic_store_n(&rs_planner_seeking, !area && rs_link_is_hoped_for(), __ATOMIC_RELAXED);
	return area;
}

void rs_planner_glance(void)
{
	if (!enter())
		return;
	meet(clock_ns());
	leave();
}

static void converse(struct rs_tls *t, uint64_t step, const struct rs_cost_usage *usage)
{
	uint64_t now = clock_ns();
	struct rs_wire *area = meet(now);

	if (!area)
		return;
	rs_tell_numbers(area, step, usage, taken, now);
	if (steps < COSTS_SOON || now - costs_ns > SECOND / 10) {
		costs_ns = now;
		rs_tell_costs(ring);
	}
	obey(area, queue(t), step);
}

void rs_planner_before(struct rs_tls *t, uint64_t step)
{
	struct rs_queue q;

	if (linked || !enter())
		return;
	q = queue(t);
	if (q.ctx)
		rs_plan_before(q, step);
	leave();
}

void rs_planner_after(struct rs_tls *t, uint64_t step)
{
	struct rs_cost_visitor visitor = {.usage = keep_usage};
	struct rs_cost_usage usage = {0};

	if (!enter())
		return;
	steps++;
	visitor.arg = &usage;
	rs_engine_costs(rs_state.engine, &visitor);
	rs_plan_follow(queue(t), step, &usage);
	if (linked)
		converse(t, step, &usage);
	leave();
}

/* --- ends ---------------------------------------------------------------------------------------- */

void rs_planner_child(void)
{
	if (linked)
		rs_link_child();
}

void rs_planner_finish(void)
{
	if (rs_planner_on && enter())
		rs_plan_finish(); /* and nothing of it is used again */
}
