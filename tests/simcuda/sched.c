/* SPDX-License-Identifier: MIT */
/*
 * The scheduler: which queued op is executed next, and when.
 *
 * Ops form a graph whose edges are fixed when an op is submitted (stream order, events, default-stream
 * rules); any op without an unfinished predecessor may be executed, so every topological order is
 * legal. The mode says which of them happen:
 *
 *   eager   everything that can run, at submission
 *   lazy    nothing until somebody waits; then only what that wait needs
 *   random  at each submission and wait some ops of a seeded choice; some streams are made slow, and
 *           some waits execute only what they need, so that orders far from submission order occur
 *
 * For a client with one thread a run repeats exactly from its seed. Ops are executed by the thread
 * that submits or waits, with the driver lock held; the lock is dropped around host functions, so a
 * waiter may find its op running in another thread and then sleeps. There is no thread of our own:
 * a program that polls memory without calling the driver sees no progress in lazy and random mode.
 *
 * A wait that cannot progress (a stream waits for a value that nobody writes) is given hang_ms for
 * other threads to help (16 times that for other processes, if one waits for them), then ends with
 * CUDA_ERROR_LAUNCH_TIMEOUT and the context is broken.
 */
#include "tests/simcuda/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct sim_op **ready;
static unsigned nready, cready, nlive, ndispatched;
static uint64_t next_seq = 1, rng_state, stream_base;
static unsigned mark_epoch;

static uint64_t rng(void)
{
	uint64_t z = rng_state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

void sim_sched_reset(enum sim_sched_mode mode, uint64_t seed)
{
	sim_options.sched = mode;
	sim_options.seed = seed;
	rng_state = seed * 0x2545f4914f6cdd1dull + 1;
	stream_base = sim_stream_next_id();
}

/* Room in the ready list for every live op, so that becoming ready cannot fail. */
static int reserve_ready(void)
{
	unsigned cap = cready ? cready * 2 : 64;
	struct sim_op **p;

	if (nlive < cready)
		return 0;
	p = realloc(ready, cap * sizeof(*p));
	if (!p)
		return -ENOMEM;
	ready = p;
	cready = cap;
	return 0;
}

struct sim_op *sim_op_new(CUcontext ctx, uint64_t stream_id, struct sim_work *work)
{
	struct sim_op *op = reserve_ready() ? NULL : calloc(1, sizeof(*op));

	if (!op) {
		sim_work_clear(work);
		return NULL;
	}
	nlive++;
	op->work = *work;
	op->ctx = ctx;
	op->dev_id = ctx->dev_id;
	op->stream_id = stream_id;
	op->refs = 1; /* the scheduler's, until the op has run and its times are known */
	op->engine = sim_clock_engine(work);
	return op;
}

void sim_op_ref(struct sim_op *op)
{
	op->refs++;
}

void sim_op_unref(struct sim_op *op)
{
	if (--op->refs)
		return;
	for (unsigned i = 0; i < op->npreds; i++)
		sim_op_unref(op->preds[i]);
	nlive--;
	sim_work_clear(&op->work);
	free(op->preds);
	free(op->succs);
	free(op);
}

static int push(struct sim_op ***list, unsigned *n, struct sim_op *op)
{
	if (!(*n & (*n - 1))) { /* a power of two (or none): full */
		struct sim_op **p = realloc(*list, (*n ? *n * 2 : 1) * sizeof(*p));

		if (!p)
			return -ENOMEM;
		*list = p;
	}
	(*list)[(*n)++] = op;
	return 0;
}

int sim_op_after(struct sim_op *op, struct sim_op *pred)
{
	if (pred->state == SIM_OP_DONE && pred->timed) {
		sim_clock_after(op, pred);
		return 0;
	}
	if (push(&pred->succs, &pred->nsuccs, op))
		return -ENOMEM;
	if (pred->state != SIM_OP_DONE) {
		if (push(&op->preds, &op->npreds, pred)) {
			pred->nsuccs--;
			return -ENOMEM;
		}
		sim_op_ref(pred);
		op->pending++;
	}
	sim_clock_after(op, pred);
	return 0;
}

static void make_ready(struct sim_op *op)
{
	ready[nready++] = op; /* sim_op_new made room */
	op->ready_at = nready;
}

static void unready(struct sim_op *op)
{
	unsigned i = op->ready_at - 1;

	/* Keep the order: eager mode runs the oldest first. */
	memmove(ready + i, ready + i + 1, (nready - i - 1) * sizeof(*ready));
	nready--;
	for (; i < nready; i++)
		ready[i]->ready_at = i + 1;
	op->ready_at = 0;
}

void sim_sched_enqueue(struct sim_op *op)
{
	struct sim_op *host = sim_clock_host_op();

	op->seq = next_seq++;
	sim_watch_queued(op);
	if (host)
		sim_op_after(op, host);
	sim_clock_enqueue(op);
	if (!op->pending)
		make_ready(op);
}

static void trace(struct sim_op *op)
{
	sim_log("trace seq=%llu ctx=%llu stream=%llu %s", (unsigned long long)op->seq,
		(unsigned long long)op->ctx->id, (unsigned long long)op->stream_id,
		sim_work_name(&op->work));
}

static void dispatch(struct sim_op *op)
{
	CUresult r;

	unready(op);
	ndispatched++;
	op->state = SIM_OP_RUNNING;
	sim_op_ref(op);
	if (sim_options.trace)
		trace(op);
	r = sim_work_run(op);
	if (r)
		sim_ctx_fail(op->ctx, r);
	op->state = SIM_OP_DONE;
	for (unsigned i = 0; i < op->nsuccs; i++) {
		struct sim_op *s = op->succs[i];

		/* A successor that was added after this op was done does not wait for it. */
		if (s->state == SIM_OP_QUEUED && s->pending && !--s->pending)
			make_ready(s);
	}
	for (unsigned i = 0; i < op->npreds; i++)
		sim_op_unref(op->preds[i]);
	op->npreds = 0;
	sim_clock_done(op);
	sim_op_unref(op);
	sim_api_wake();
}

static bool runnable(const struct sim_op *op)
{
	return !sim_work_blocked(&op->work) || op->ctx->sticky;
}

/* The oldest runnable op, only among the marked ones if `marked`. */
static struct sim_op *pick_first(bool marked)
{
	for (unsigned i = 0; i < nready; i++)
		if ((!marked || ready[i]->mark == mark_epoch) && runnable(ready[i]))
			return ready[i];
	return NULL;
}

/* In a quarter of the streams of a seed ops tend to run late. */
static bool slow_stream(uint64_t id)
{
	/* Streams made since the seed was set are counted from there, so that a seed repeats. */
	uint64_t n = id < stream_base ? id : id - stream_base + 1000000;
	uint64_t z = (n + 1) * 0x9e3779b97f4a7c15ull ^ sim_options.seed * 0xff51afd7ed558ccdull;

	z ^= z >> 29;
	z *= 0xbf58476d1ce4e5b9ull;
	return (z >> 60) < 4;
}

static struct sim_op *pick_random(bool marked)
{
	for (unsigned tries = 0; nready && tries < 8; tries++) {
		struct sim_op *op = ready[rng() % nready];

		if ((marked && op->mark != mark_epoch) || !runnable(op))
			continue;
		if (slow_stream(op->stream_id) && rng() % 8)
			continue;
		return op;
	}
	return pick_first(marked);
}

static bool step(bool marked)
{
	struct sim_op *op =
		sim_options.sched == SIM_SCHED_RANDOM ? pick_random(marked) : pick_first(marked);

	if (op)
		dispatch(op);
	return op;
}

void sim_sched_kick(void)
{
	if (sim_options.sched == SIM_SCHED_EAGER) {
		while (step(false))
			;
	} else if (sim_options.sched == SIM_SCHED_RANDOM && rng() % 2) {
		for (unsigned n = rng() % 4; n; n--)
			step(false);
	}
}

/* Mark op and its unfinished predecessors; true if the marking is complete. */
static bool mark_needed(struct sim_op *op)
{
	struct sim_op **stack = NULL;
	unsigned n = 0;
	bool complete = !push(&stack, &n, op);

	op->mark = ++mark_epoch;
	while (n && complete) {
		struct sim_op *o = stack[--n];

		for (unsigned i = 0; i < o->npreds && complete; i++) {
			struct sim_op *p = o->preds[i];

			if (p->mark == mark_epoch || p->state == SIM_OP_DONE)
				continue;
			p->mark = mark_epoch;
			complete = !push(&stack, &n, p);
		}
	}
	free(stack);
	return complete;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Other processes may take longer than threads of this one. */
static uint64_t patience(void)
{
	for (unsigned i = 0; i < nready; i++)
		if (ready[i]->work.kind == SIM_WORK_AWAIT)
			return sim_options.hang_ms * 16ull;
	return sim_options.hang_ms;
}

/* What a nap of 1 ms counts for: while the machine stood still nobody else has had that time either. */
static uint64_t nap(uint64_t ms)
{
	return ms < 2 ? ms : 2;
}

static void break_deadlock(void)
{
	for (unsigned i = 0; i < nready; i++) {
		if (ready[i]->ctx->sticky)
			continue;
		sim_log("deadlock: stream %llu waits for a value that nobody writes",
			(unsigned long long)ready[i]->stream_id);
		sim_ctx_fail(ready[i]->ctx, CUDA_ERROR_LAUNCH_TIMEOUT);
	}
}

CUresult sim_sched_wait(struct sim_op *op)
{
	bool only_needed = sim_options.sched == SIM_SCHED_LAZY ||
			   (sim_options.sched == SIM_SCHED_RANDOM && rng() % 2);
	CUcontext ctx = op->ctx;
	uint64_t waited = 0, before;
	unsigned seen;

	sim_op_ref(op);
	if (only_needed && op->state != SIM_OP_DONE)
		only_needed = mark_needed(op);
	while (op->state != SIM_OP_DONE) {
		if (step(only_needed) || (only_needed && step(false))) {
			waited = 0;
			continue;
		}
		seen = ndispatched;
		before = now_ms();
		sim_api_wait(1);
		waited += nap(now_ms() - before);
		if (seen != ndispatched || op->state == SIM_OP_RUNNING) {
			waited = 0;
		} else if (waited > patience()) {
			break_deadlock();
			waited = 0;
		}
	}
	sim_clock_host_saw(op);
	sim_op_unref(op);
	return ctx->sticky;
}

void sim_sched_poll(struct sim_op *op)
{
	if (op->state == SIM_OP_DONE)
		return;
	if (sim_options.sched == SIM_SCHED_LAZY) {
		if (!mark_needed(op) || !step(true))
			step(false);
	} else if (sim_options.sched == SIM_SCHED_RANDOM) {
		for (unsigned n = rng() % 4; n; n--)
			step(false);
	} else {
		step(false);
	}
}

/* Execute what the times of op depend on: ops submitted before it. */
void sim_sched_force_time(struct sim_op *op)
{
	sim_op_ref(op);
	for (unsigned i = 0; i < nready && !op->timed;) {
		if (ready[i]->seq < op->seq && runnable(ready[i])) {
			dispatch(ready[i]);
			i = 0;
		} else {
			i++;
		}
	}
	sim_op_unref(op);
}
