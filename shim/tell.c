/* SPDX-License-Identifier: MIT */
/*
 * See tell.h.
 *
 * Invariants: `told` holds copies of what is known to be in the ring, `now` what the engine has measured; both are in
 * forward order. A program whose segments have changed tells all of them again. Medians wander, so a time is told again only
 * when it has moved by more than its error; bytes are maxima and settle by themselves. So a steady state tells nothing.
 * No locks here.
 */
#include "shim/tell.h"

#include "shim/plan.h"
#include "shim/shim.h"
#include "tracker/plan.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An array that grows. */
struct list {
	char *item;
	uint32_t n, cap, size;
};

struct costs {
	struct list cost, share;
	struct rs_cost_rate rate[RS_RATES];
};

#define LISTS                                                                                      \
	{                                                                                          \
		.cost = {.size = sizeof(struct rs_cost)}, .share = {                               \
			.size = sizeof(struct rs_cost_share)                                       \
		}                                                                                  \
	}

static struct costs now = LISTS, told = LISTS;
static uint32_t shares_told; /* of now.share, since RS_WIRE_SHARES_BEGIN */
static int shares_open;	     /* some of them are still to be told */
static int incomplete;	     /* no memory for all that was measured */

static int add(struct list *l, const void *item)
{
	if (l->n == l->cap) {
		uint32_t cap = l->cap ? 2 * l->cap : 64;
		char *grown = realloc(l->item, (size_t)cap * l->size);

		if (!grown)
			return -1;
		l->item = grown;
		l->cap = cap;
	}
	memcpy(l->item + (size_t)l->n++ * l->size, item, l->size);
	return 0;
}

static struct rs_cost *cost_at(const struct costs *c, uint32_t i)
{
	return (struct rs_cost *)c->cost.item + i;
}

static struct rs_cost_share *share_at(const struct costs *c, uint32_t i)
{
	return (struct rs_cost_share *)c->share.item + i;
}

static void collect_cost(void *arg, const struct rs_cost *cost)
{
	(void)arg;
	incomplete |= add(&now.cost, cost);
}

static void collect_share(void *arg, const struct rs_cost_share *share)
{
	(void)arg;
	incomplete |= add(&now.share, share);
}

static void collect_rate(void *arg, const struct rs_cost_rate *rate)
{
	(void)arg;
	if (rate->kind < RS_RATES)
		now.rate[rate->kind] = *rate;
}

/* --- what has changed ---------------------------------------------------------------------------- */

static int moved(uint64_t a, uint64_t b, uint64_t noise)
{
	uint64_t d = a > b ? a - b : b - a;

	return d > noise && d > a / 50;
}

static int time_moved(const struct rs_cost_time *a, const struct rs_cost_time *b)
{
	uint64_t error = a->error_ns > b->error_ns ? a->error_ns : b->error_ns;

	return !a->n != !b->n || moved(a->median_ns, b->median_ns, 3 * error);
}

/* More samples make an estimate better until as many are known as are kept. */
static int is_surer(uint64_t a, uint64_t b)
{
	return a < 64 && b >= 2 * a && b > a;
}

static int cost_changed(const struct rs_cost *a, const struct rs_cost *b)
{
	const size_t from = offsetof(struct rs_cost, invocation); /* names are equal */
	struct rs_cost x = *a, y = *b;

	if (is_surer(x.steps, y.steps) || time_moved(&x.forward, &y.forward) ||
	    time_moved(&x.replay, &y.replay) || time_moved(&x.forward_busy, &y.forward_busy) ||
	    time_moved(&x.replay_busy, &y.replay_busy))
		return 1;
	x.steps = y.steps;
	x.forward = y.forward;
	x.replay = y.replay;
	x.forward_busy = y.forward_busy;
	x.replay_busy = y.replay_busy;
	return memcmp((char *)&x + from, (char *)&y + from, sizeof(x) - from) != 0;
}

static int rate_changed(const struct rs_cost_rate *a, const struct rs_cost_rate *b)
{
	return b->n && (is_surer(a->n, b->n) || moved(a->each_ns, b->each_ns, a->each_ns / 8) ||
			moved(a->gib_ns, b->gib_ns, a->gib_ns / 8));
}

static int same_segment(const struct rs_cost *a, const struct rs_cost *b)
{
	return a->invocation == b->invocation && a->order == b->order &&
	       !strncmp(a->segment, b->segment, sizeof(a->segment));
}

static int segments_changed(void)
{
	if (now.cost.n < told.cost.n)
		return 1;
	for (uint32_t i = 0; i < told.cost.n; i++)
		if (!same_segment(cost_at(&told, i), cost_at(&now, i)))
			return 1;
	return 0;
}

static int shares_changed(void)
{
	if (now.share.n != told.share.n)
		return 1;
	for (uint32_t i = 0; i < now.share.n; i++) {
		const struct rs_cost_share *a = share_at(&now, i), *b = share_at(&told, i);

		if (a->bytes != b->bytes || a->pieces != b->pieces || a->n != b->n ||
		    a->n > RS_COST_SHARERS || memcmp(a->order, b->order, a->n * sizeof(*a->order)))
			return 1;
	}
	return 0;
}

/* --- telling -------------------------------------------------------------------------------------- */

static void forget(void)
{
	told.cost.n = told.share.n = 0;
	memset(told.rate, 0, sizeof(told.rate));
	shares_open = 1;
	shares_told = 0;
}

/* The ring counts what it had no room for as lost, and nothing is lost here: so it is asked first. */
static int tell(struct rs_wire_ring *ring, const struct rs_wire_record *record)
{
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);

	return head - tail < RS_WIRE_RECORDS ? rs_wire_tell(ring, record) : -ENOSPC;
}

static int tell_word(struct rs_wire_ring *ring, enum rs_wire_kind kind)
{
	return tell(ring, &(struct rs_wire_record){.kind = kind});
}

static int tell_segments(struct rs_wire_ring *ring)
{
	for (uint32_t i = 0; i < now.cost.n; i++) {
		const struct rs_cost *cost = cost_at(&now, i);
		struct rs_wire_record record = {.kind = RS_WIRE_COST, .u.cost = *cost};

		if (i < told.cost.n && !cost_changed(cost_at(&told, i), cost))
			continue;
		if (tell(ring, &record))
			return -ENOSPC;
		if (i < told.cost.n)
			*cost_at(&told, i) = *cost;
		else if (add(&told.cost, cost))
			return -ENOMEM;
	}
	return 0;
}

static int tell_rates(struct rs_wire_ring *ring)
{
	for (unsigned i = 0; i < RS_RATES; i++) {
		struct rs_wire_record record = {.kind = RS_WIRE_RATE, .u.rate = now.rate[i]};

		if (!rate_changed(&told.rate[i], &now.rate[i]))
			continue;
		if (tell(ring, &record))
			return -ENOSPC;
		told.rate[i] = now.rate[i];
	}
	return 0;
}

/* A list that has changed while it was told is told from its beginning: what is told is that of one moment. */
static int tell_shares(struct rs_wire_ring *ring)
{
	if (shares_changed()) {
		shares_open = 1;
		shares_told = 0;
		told.share.n = 0;
		for (uint32_t i = 0; i < now.share.n; i++)
			if (add(&told.share, share_at(&now, i)))
				return -ENOMEM;
	}
	if (!shares_open)
		return 0;
	if (!shares_told) {
		struct rs_wire_record begin = {.kind = RS_WIRE_SHARES_BEGIN,
					       .u.share.pieces = told.share.n};

		if (tell(ring, &begin))
			return -ENOSPC;
	}
	for (; shares_told < told.share.n; shares_told++) {
		struct rs_wire_record record = {.kind = RS_WIRE_SHARE,
						.u.share = *share_at(&told, shares_told)};

		if (tell(ring, &record))
			return -ENOSPC;
	}
	shares_open = 0;
	return 0;
}

void rs_tell_costs(struct rs_wire_ring *ring)
{
	struct rs_cost_visitor visitor = {
		.segment = collect_cost, .share = collect_share, .rate = collect_rate};

	now.cost.n = now.share.n = 0;
	memset(now.rate, 0, sizeof(now.rate));
	incomplete = 0;
	if (!ring || rs_engine_costs(rs_state.engine, &visitor) || incomplete)
		return;
	if (segments_changed()) {
		if (tell_word(ring, RS_WIRE_FORGET))
			return;
		forget();
	}
	if (!tell_segments(ring) && !tell_rates(ring))
		tell_shares(ring);
}

/* --- numbers -------------------------------------------------------------------------------------- */

#define set(field, value) atomic_store_explicit(&c->field, value, memory_order_relaxed)

static uint64_t started(void)
{
	char text[1024], *p;
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	p = strrchr(text, ')'); /* the name before it may hold anything; field 3 follows */
	for (unsigned field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	return p ? strtoull(p, NULL, 10) : 0;
}

static void program(char *out, size_t size)
{
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, out, size - 1);

	if (fd >= 0)
		close(fd);
	n = n > 0 ? n : 0;
	for (ssize_t i = 0; i + 1 < n; i++)
		if (!out[i])
			out[i] = ' ';
	out[n] = '\0';
}

void rs_tell_begin(struct rs_wire *area)
{
	struct rs_wire_client *c = &area->client;
	const char *job = rs_options_job(environ);
	long ranks = rs_options_ranks(environ);

	forget();
	program(c->program, sizeof(c->program));
	set(pid, (uint64_t)getpid());
	set(started, started());
	set(job, strcmp(job, "0") ? rs_plan_name(job) : 0);
	set(rank, (uint64_t)rs_options_rank(environ));
	set(ranks, ranks > 0 ? (uint64_t)ranks : 1);
	set(wanted, rs_state.opt.budget);
}

/* Of the calling thread's current context: a program may get one late. */
static void tell_device(struct rs_wire_client *c)
{
	uint64_t id[2];
	CUdevice device;
	size_t bytes;
	CUuuid uuid;

	if (atomic_load_explicit(&c->device_bytes, memory_order_relaxed))
		return;
	if (rs_real.cuCtxGetDevice(&device) != CUDA_SUCCESS)
		return;
	if (rs_real.cuDeviceGetUuid_v2(&uuid, device) != CUDA_SUCCESS &&
	    rs_real.cuDeviceGetUuid(&uuid, device) != CUDA_SUCCESS)
		return;
	if (rs_real.cuDeviceTotalMem_v2(&bytes, device) != CUDA_SUCCESS)
		return;
	memcpy(id, &uuid, sizeof(id));
	set(device[0], id[0]);
	set(device[1], id[1]);
	set(device_bytes, bytes);
}

void rs_tell_numbers(struct rs_wire *area, uint64_t step, const struct rs_cost_usage *usage,
		     uint64_t generation, uint64_t now_ns)
{
	struct rs_wire_client *c = &area->client;
	struct rs_plan_status plan;
	struct rs_engine_stats stats;

	tell_device(c);
	rs_engine_stats(rs_state.engine, &stats);
	rs_plan_status(&plan);
	set(step, step);
	set(steps, stats.steps);
	set(step_ns, usage->step_ns);
	set(live_bytes, usage->live_bytes);
	set(peak_bytes, usage->peak_bytes);
	set(arena_bytes, usage->arena_bytes);
	set(arena_used, usage->arena_used);
	set(turn_bytes, usage->turn_bytes);
	set(outside_bytes, usage->outside_bytes);
	set(segments, usage->segments);
	set(replays, stats.replays);
	set(rejections, stats.outcome[1]);
	set(divergences, stats.outcome[2]);
	set(plan_state, generation ? plan.state : RS_PLAN_NONE);
	set(plan_order, plan.order);
	set(plan_predicted, plan.predicted);
	set(plan_measured, plan.measured);
	set(plan_generation, generation);
	atomic_store_explicit(&c->heartbeat_ns, now_ns, memory_order_release);
}
