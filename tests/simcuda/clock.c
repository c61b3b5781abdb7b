/* SPDX-License-Identifier: MIT */
/*
 * The virtual clock: when each op would have run on the device of the profile. Simulated time.
 *
 * Model. An op may start when all its predecessors have ended and when the host had seen what it
 * waited for before submitting it (no time passes on the host otherwise, but for calls that change mappings: map_ns,
 * access_ns of the profile). A device has three engines:
 * kernels, fills and device-side copies share one, copies up and down PCIe have one each. An engine
 * does one thing at a time; an op takes the first gap in its engine's past that fits. Gaps are given
 * in submission order. Durations:
 *
 *   kernel  launch_ns + max(thread instructions / rate, global bytes moved / memory bandwidth, longest
 *           nanosleep of a warp), as if all warps were resident
 *   copy    copy_ns + bytes / PCIe bandwidth, or 2 * bytes / memory bandwidth inside the device
 *   fill    launch_ns + bytes / memory bandwidth
 *
 * launch_ns and copy_ns are the profile's over SIMCUDA_SCALE: what is N times smaller than what it stands for, in bytes
 * and instructions, keeps the proportions of its times only if what does not depend on size is N times smaller, too.
 *
 * Events, waits, host functions and allocations take no time. Because gaps are given in submission
 * order and durations do not depend on when an op is executed, the times are the same for every
 * order that the scheduler picks. An op's times are therefore known only when it, its predecessors
 * and the ops before it on its engine have been executed (`untimed` counts those that are missing);
 * cuEventElapsedTime executes what is missing. Driver lock held.
 */
#include "tests/simcuda/sim.h"

#include <stdlib.h>
#include <string.h>

#define MAX_GAPS 32

static struct engine {
	struct sim_op *tail; /* the last op submitted to it, if not timed yet */
	uint64_t end;
	struct gap {
		uint64_t from, to;
	} gaps[MAX_GAPS];
	unsigned ngaps;
} engines[SIM_MAX_DEVICES][SIM_ENGINES];

/* What the host has seen: a time, plus an op standing for times that are not known yet. */
static uint64_t host_ns;
static struct sim_op *host_op;
static uint64_t latest_ns;

enum sim_engine sim_clock_engine(const struct sim_work *w)
{
	switch (w->kind) {
	case SIM_WORK_KERNEL:
	case SIM_WORK_FILL:
		return SIM_ENGINE_COMPUTE;
	case SIM_WORK_COPY:
		if (w->copy.from_host == w->copy.to_host)
			return w->copy.from_host ? SIM_ENGINE_NONE : SIM_ENGINE_COMPUTE;
		return w->copy.from_host ? SIM_ENGINE_H2D : SIM_ENGINE_D2H;
	default:
		return SIM_ENGINE_NONE;
	}
}

static uint64_t scale(uint64_t n, uint64_t per_us)
{
	return (uint64_t)(((unsigned __int128)n * 1000 + per_us - 1) / per_us);
}

static uint64_t latency(uint64_t ns)
{
	return ns / sim_options.scale;
}

uint64_t sim_clock_copy_cost(const struct sim_work *w, uint64_t bytes)
{
	const struct sim_profile *p = sim_options.profile;

	if (!w->copy.from_host && !w->copy.to_host)
		return latency(p->copy_ns) + scale(bytes * 2, p->mem_bytes_per_us);
	return latency(p->copy_ns) + scale(bytes, p->pcie_bytes_per_us);
}

uint64_t sim_clock_fill_cost(uint64_t bytes)
{
	const struct sim_profile *p = sim_options.profile;

	return latency(p->launch_ns) + scale(bytes, p->mem_bytes_per_us);
}

uint64_t sim_clock_kernel_cost(const struct sim_counts *c)
{
	const struct sim_profile *p = sim_options.profile;
	uint64_t run = scale(c->thread_insns, p->insns_per_us);
	uint64_t mem = scale(c->load_bytes + c->store_bytes, p->mem_bytes_per_us);

	run = run > mem ? run : mem;
	return latency(p->launch_ns) + (run > c->sleep_ns ? run : c->sleep_ns);
}

void sim_clock_after(struct sim_op *op, struct sim_op *pred)
{
	if (!pred->timed)
		op->untimed++;
	else if (pred->end_ns > op->ready_ns)
		op->ready_ns = pred->end_ns;
}

void sim_clock_enqueue(struct sim_op *op)
{
	struct engine *e = &engines[op->dev_id][op->engine];

	op->untimed++; /* until it has run */
	if (op->ready_ns < host_ns)
		op->ready_ns = host_ns;
	if (op->engine == SIM_ENGINE_NONE)
		return;
	if (e->tail) {
		e->tail->engine_next = op;
		op->untimed++;
	}
	e->tail = op;
}

static void place(struct engine *e, struct sim_op *op)
{
	uint64_t start;

	for (unsigned i = 0; i < e->ngaps; i++) {
		struct gap *g = &e->gaps[i];
		uint64_t from = g->from > op->ready_ns ? g->from : op->ready_ns;

		if (from >= g->to || g->to - from < op->cost)
			continue;
		op->start_ns = from;
		op->end_ns = from + op->cost;
		/* Keep the larger rest of the gap. */
		if (from - g->from > g->to - op->end_ns)
			g->to = from;
		else
			g->from = op->end_ns;
		return;
	}
	start = e->end > op->ready_ns ? e->end : op->ready_ns;
	if (start > e->end) {
		if (e->ngaps == MAX_GAPS) {
			memmove(e->gaps, e->gaps + 1, (MAX_GAPS - 1) * sizeof(e->gaps[0]));
			e->ngaps--;
		}
		e->gaps[e->ngaps++] = (struct gap){e->end, start};
	}
	op->start_ns = start;
	op->end_ns = e->end = start + op->cost;
}

/* One reason less for op to be untimed; ops that can be timed now are chained through *work. */
static void release(struct sim_op *op, uint64_t ready, struct sim_op ***work, size_t *n,
		    size_t *cap)
{
	if (op->ready_ns < ready)
		op->ready_ns = ready;
	if (--op->untimed)
		return;
	if (*n == *cap) {
		size_t c = *cap ? *cap * 2 : 64;
		struct sim_op **p = realloc(*work, c * sizeof(**work));

		if (!p)
			return; /* stays untimed: its time is then unknown, nothing else */
		*work = p;
		*cap = c;
	}
	(*work)[(*n)++] = op;
}

static struct sim_op **ready_ops;
static size_t nready, cready;

void sim_clock_done(struct sim_op *done)
{
	release(done, 0, &ready_ops, &nready, &cready);
	while (nready) {
		struct sim_op *op = ready_ops[--nready];
		struct engine *e = &engines[op->dev_id][op->engine];

		if (op->engine == SIM_ENGINE_NONE) {
			op->start_ns = op->ready_ns;
			op->end_ns = op->ready_ns + op->cost;
		} else {
			place(e, op);
			if (e->tail == op)
				e->tail = NULL;
		}
		op->timed = true;
		sim_watch_timed(op);
		if (op->end_ns > latest_ns)
			latest_ns = op->end_ns;
		if (op == host_op) {
			host_ns = op->end_ns > host_ns ? op->end_ns : host_ns;
			host_op = NULL;
			sim_op_unref(op);
		}
		for (unsigned i = 0; i < op->nsuccs; i++)
			release(op->succs[i], op->end_ns, &ready_ops, &nready, &cready);
		if (op->engine_next)
			release(op->engine_next, 0, &ready_ops, &nready, &cready);
		op->nsuccs = 0;
		op->engine_next = NULL;
		sim_op_unref(op); /* the scheduler's own reference */
	}
}

/* A node that ends `ns` after op and everything seen before have: submitted ops come after it. */
static void host_after(struct sim_op *op, uint64_t ns)
{
	struct sim_work nop = {.kind = SIM_WORK_NOP};
	struct sim_op *both = sim_op_new(op->ctx, 0, &nop);

	if (!both)
		return;
	if (sim_op_after(both, op)) {
		sim_op_unref(both);
		return;
	}
	sim_op_ref(both);
	if (host_op) {
		sim_op_after(both, host_op);
		sim_op_unref(host_op);
	}
	host_op = both;
	both->untimed++;
	both->state = SIM_OP_DONE;
	both->ready_ns = both->ready_ns < host_ns ? host_ns : both->ready_ns;
	both->cost = ns;
	sim_clock_done(both);
}

void sim_clock_host_saw(struct sim_op *op)
{
	if (!op->timed)
		host_after(op, 0);
	else if (op->end_ns > host_ns)
		host_ns = op->end_ns;
}

void sim_clock_host_takes(uint64_t ns)
{
	struct sim_op *before = host_op;

	if (!before) {
		host_ns += latency(ns);
		return;
	}
	sim_op_ref(before);
	host_after(before, latency(ns));
	sim_op_unref(before);
}

struct sim_op *sim_clock_host_op(void)
{
	return host_op;
}

uint64_t sim_clock_now(void)
{
	return latest_ns;
}
