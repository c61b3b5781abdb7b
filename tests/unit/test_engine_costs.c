/* SPDX-License-Identifier: MIT */
/*
 * What the engine measures: device times of windows without the tool's own operations, memory by phases, what is
 * overwritten before a replay and by whom it is shared. And plans: when they are taken, refused, obeyed.
 *
 * The fake device's clock is exact, so the figures are asserted as numbers.
 */
#include "tests/unit/engine_rig.h"

#define N   1024u /* words of a state: 4 KiB */
#define ACT 65536u

static struct rs_cost cost[8];
static unsigned ncosts, nshares;
static struct rs_cost_share share[8];
static struct rs_cost_rate rate[RS_RATES];
static struct rs_cost_usage usage;

static void take_cost(void *arg, const struct rs_cost *c)
{
	(void)arg;
	if (ncosts < 8)
		cost[ncosts++] = *c;
}

static void take_share(void *arg, const struct rs_cost_share *s)
{
	(void)arg;
	if (nshares < 8)
		share[nshares++] = *s;
}

static void take_rate(void *arg, const struct rs_cost_rate *r)
{
	(void)arg;
	rate[r->kind] = *r;
}

static void take_usage(void *arg, const struct rs_cost_usage *u)
{
	(void)arg;
	usage = *u;
}

static void measure(void)
{
	const struct rs_cost_visitor v = {NULL, take_cost, take_share, take_rate, take_usage};

	ncosts = nshares = 0;
	memset(rate, 0, sizeof(rate));
	fake_drain();
	rs_engine_poll(eng);
	rs_engine_finish(eng);
	ok(!rs_engine_costs(eng, &v), "costs are told");
}

static uint32_t *state[2], *out;

/* y = x */
static void copy(struct rig_arg *a)
{
	a[0].p[0] = a[1].p[0];
}

static void bump(struct rig_arg *a)
{
	a[0].p[0]++;
}

static void step(unsigned n)
{
	char text[32];

	snprintf(text, sizeof(text), "step:%u", n);
	rs_engine_mark(eng, thr, text);
}

static void body(unsigned i, uint64_t ns)
{
	fake.call_ns = ns;
	KERNEL(copy, W_(out + i * 256, 1), R_(state[i], N));
	KERNEL(bump, RW_(state[i], N));
	fake.call_ns = 0;
}

/* Two segments; each reads a state and then overwrites it. Activations of segment 0: ACT words, of 1: twice that. */
static void one_step(unsigned n, const uint8_t *keep)
{
	static const char *const forward[] = {"forward:a#0", "forward:b#0"}, *const replay[] = {
										     "replay:a#0",
										     "replay:b#0"};
	uint32_t *act[2] = {NULL, NULL}, *scratch;

	step(n);
	for (unsigned i = 0; i < 2; i++) {
		PUSH(forward[i]);
		act[i] = words(ACT * (i + 1));
		body(i, 1000 * (i + 1));
		POP();
		if (!keep || !keep[i]) {
			drop(act[i]);
			act[i] = NULL;
		}
	}
	for (int i = 1; i >= 0; i--) {
		if (!act[i]) {
			PUSH(replay[i]);
			act[i] = words(ACT * ((unsigned)i + 1));
			body((unsigned)i, 5000);
			POP();
		}
		scratch = words(ACT / 2);
		drop(scratch);
		drop(act[i]);
	}
}

static void start(enum rs_mode mode)
{
	rig_costs = 1;
	rig_start(mode);
	rig_costs = 0;
	state[0] = words(N), state[1] = words(N), out = words(512);
}

static void test_measured(enum rs_mode mode)
{
	const uint64_t a = ACT * 4, base = 2 * N * 4 + 2048;

	start(mode);
	for (unsigned n = 0; n < 4; n++)
		one_step(n, NULL);
	step(4);
	measure();
	is_u64(ncosts, 2, "two segments");
	is_str(cost[0].segment, "a", "in forward order");
	is_u64(cost[1].order, 1, "the second one");
	is_u64(cost[0].steps, 4, "all whole steps count");
	is_u64(cost[0].forward.median_ns, 2000, "forward: both kernels, nothing of the tool's");
	is_u64(cost[1].forward.median_ns, 4000, "forward of the other");
	is_u64(cost[1].replay.median_ns, 10000, "replay");
	is_u64(cost[1].replay.n, 4, "samples");
	is_u64(cost[1].replay.error_ns, 0, "which do not differ");
	is_u64(cost[0].live_forward, base, "in use at the forward");
	is_u64(cost[1].peak_forward, base + 2 * a, "most in the forward");
	is_u64(cost[1].live_replay, base, "in use at the replay");
	is_u64(cost[1].end_replay, base + 2 * a, "activations are held after it");
	is_u64(cost[1].peak_backward, base + 2 * a + a / 2, "scratch of the backward");
	is_u64(cost[0].kept_bytes, N * 4, "overwritten before the replay");
	is_u64(cost[0].own_bytes, N * 4, "of nobody else");
	is_u64(cost[0].whole_bytes, N * 4, "the buffer");
	is_u64(cost[0].replays, 1, "one replay");
	ok(cost[0].flags & RS_COST_REPLAYED && !(cost[0].flags & RS_COST_RETAINS), "flags");
	is_u64(usage.outside_bytes, base, "outside of segments");
	is_u64(usage.turn_bytes, base, "at the turn");
	is_u64(usage.steps, 5, "steps, with the part before the first marker");
	if (mode == RS_MODE_PRESERVE) {
		ok(rate[RS_RATE_COPY].n > 0, "copies were measured");
		is_u64(rate[RS_RATE_COPY].gib_ns, (uint64_t)FAKE_BYTE_NS << 30,
		       "and what a byte takes");
	}
	rig_stop();
}

/* An audit preserves nothing, and knows all the same what that would take. */
static void test_calibrated(int mapped)
{
	start(RS_MODE_AUDIT);
	if (mapped) { /* memory that could be remapped */
		rs_engine_backing(eng, 5, 4096, RS_ALLOC_DEVICE);
		rs_engine_map(eng, 1ull << 44, 4096, 5, 0);
	}
	for (unsigned n = 0; n < 3; n++)
		one_step(n, NULL);
	step(3);
	measure();
	is_u64(rate[RS_RATE_REMAP].n, mapped ? 12 : 0, "remapping is, where it may be needed");
	for (unsigned i = 0; i < RS_RATE_REMAP; i++) {
		ok(rate[i].n >= 9, "%s was measured", rs_rate_names[i]);
		/* its moves are a copy for each row */
		is_u64(rate[i].each_ns, i == RS_RATE_MOVE ? 0 : FAKE_OP_NS, "what each takes");
		is_u64(rate[i].gib_ns,
		       i == RS_RATE_MOVE ? (FAKE_OP_NS + 1024ull) * (1u << 20)
					 : (uint64_t)FAKE_BYTE_NS << 30,
		       "and what a byte takes");
	}
	rig_stop();
}

/* What is overwritten after the last replay needs no keeping: an optimizer's write. */
static void test_optimizer(void)
{
	start(RS_MODE_PRESERVE);
	for (unsigned n = 0; n < 3; n++) {
		step(n);
		PUSH("forward:a#0");
		KERNEL(copy, W_(out, 1), R_(state[0], N));
		POP();
		PUSH("replay:a#0");
		KERNEL(copy, W_(out, 1), R_(state[0], N));
		POP();
		KERNEL(bump, RW_(state[0], N));
	}
	step(3);
	measure();
	is_u64(cost[0].kept_bytes, 0, "an optimizer's write is no cost");
	is_u64(cost[0].whole_bytes, 0, "nor of a whole snapshot");
	rig_stop();
}

static void test_shared(void)
{
	start(RS_MODE_PRESERVE);
	for (unsigned n = 0; n < 3; n++) {
		step(n);
		PUSH("forward:a#0");
		KERNEL(copy, W_(out, 1), R_(state[0], N));
		POP();
		PUSH("forward:b#0");
		KERNEL(copy, W_(out, 1), R_(state[0], N));
		POP();
		KERNEL(bump, RW_(state[0], N));
		PUSH("replay:b#0");
		KERNEL(copy, W_(out, 1), R_(state[0], N));
		POP();
		PUSH("replay:a#0");
		KERNEL(copy, W_(out, 1), R_(state[0], N));
		POP();
	}
	step(3);
	measure();
	is_u64(nshares, 1, "one share");
	is_u64(share[0].n, 2, "of two segments");
	is_u64(share[0].bytes, N * 4, "its bytes");
	is_u64(share[0].order[0] + 10 * share[0].order[1], 10, "their places");
	is_u64(cost[0].own_bytes + cost[1].own_bytes, 0, "nothing is of one alone");
	is_u64(cost[1].kept_bytes, N * 4, "each needs it");
	rig_stop();
}

/* --- plans ------------------------------------------------------------------------------------------ */

static struct rs_plan_entry entry[2];
static struct rs_plan_head head;

static void make_plan(enum rs_option a, enum rs_option b, uint64_t arena, uint64_t peak)
{
	head = (struct rs_plan_head){.generation = 1, .arena = arena, .peak = peak, .n = 2};
	entry[0] = (struct rs_plan_entry){
		.name = rs_plan_name("a"), .option = (uint8_t)a, .forward = peak, .backward = peak};
	entry[1] = (struct rs_plan_entry){.name = rs_plan_name("b"),
					  .option = (uint8_t)b,
					  .order = 1,
					  .forward = peak,
					  .backward = peak};
	for (unsigned i = 0; i < 2; i++)
		head.fingerprint = rs_plan_print(head.fingerprint, entry[i].name, 0);
}

static struct rs_plan_status status(void)
{
	struct rs_plan_status s;

	rs_engine_plan_status(eng, &s);
	return s;
}

static void give(void)
{
	ok(!rs_engine_plan(eng, RIG_Q(0), &head, entry), "a plan is given");
}

static void test_taken(void)
{
	struct rs_engine_stats stats;

	start(RS_MODE_PRESERVE);
	one_step(0, NULL);
	make_plan(RS_OPTION_UNDO, RS_OPTION_UNDO, 65536, 1u << 24);
	head.from_step = 2;
	give();
	is_u64(status().state, RS_PLAN_WAITING, "it waits");
	one_step(1, NULL);
	is_u64(status().state, RS_PLAN_WAITING, "not its step yet");
	one_step(2, NULL);
	is_u64(status().state, RS_PLAN_DRY, "its first step");
	one_step(3, NULL);
	is_u64(status().state, RS_PLAN_IN_FORCE, "held what it promised");
	measure();
	is_u64(usage.arena_bytes, 65536, "its arena, and no more");
	rs_engine_stats(eng, &stats);
	is_u64(stats.outcome[0], 8, "all replays match");
	ok(!rs_engine_plan(eng, RIG_Q(0), NULL, NULL), "no plan from the next step on");
	one_step(4, NULL);
	is_u64(status().state, RS_PLAN_NONE, "none");
	rig_stop();
}

static void test_refused(void)
{
	start(RS_MODE_PRESERVE);
	one_step(0, NULL);
	make_plan(RS_OPTION_UNDO, RS_OPTION_UNDO, 65536, ACT * 4); /* less than it takes */
	give();
	one_step(1, NULL);
	one_step(2, NULL);
	is_u64(status().state, RS_PLAN_REFUSED_PEAK, "it took more than was promised");
	ok(status().measured > status().predicted, "which is told");
	make_plan(RS_OPTION_UNDO, RS_OPTION_UNDO, 65536, 1u << 24);
	head.fingerprint ^= 1;
	give();
	one_step(3, NULL);
	one_step(4, NULL);
	is_u64(status().state, RS_PLAN_REFUSED_SEGMENTS, "made for other segments");
	fake.fail_alloc = -1;
	make_plan(RS_OPTION_UNDO, RS_OPTION_UNDO, 65536, 1u << 24);
	give();
	step(5);
	is_u64(status().state, RS_PLAN_REFUSED_MEMORY, "no memory for its arena");
	fake.fail_alloc = 0;
	entry[1].option = RS_OPTIONS;
	is_u64(rs_engine_plan(eng, RIG_Q(0), &head, entry) == -EINVAL, 1, "malformed");
	is_u64(status().state, RS_PLAN_REFUSED_FORM, "which is told, too");
	rig_stop();
}

/* Too small an arena: what does not fit is no match, never wrong bytes, and the budget holds. */
static void test_small_arena(void)
{
	struct rs_engine_stats stats;

	start(RS_MODE_PRESERVE);
	one_step(0, NULL);
	make_plan(RS_OPTION_UNDO, RS_OPTION_UNDO, 4096, 1u << 24);
	give();
	one_step(1, NULL);
	measure();
	rs_engine_stats(eng, &stats);
	ok(usage.arena_bytes <= 4096, "never more than the arena");
	is_u64(stats.outcome[0], 2, "what did not fit is no match");
	rig_stop();
}

/* By exchange there is room for what is kept alone: also where the replay writes what it was shown. */
static void test_swapped(void)
{
	struct rs_engine_stats stats;

	start(RS_MODE_PRESERVE);
	one_step(0, NULL);
	one_step(1, NULL);
	make_plan(RS_OPTION_UNDO, RS_OPTION_WHOLE, 8192, 1u << 24);
	head.budget = head.peak + (1u << 20); /* more could be had */
	entry[0].restore = entry[1].restore = RS_RESTORE_SWAP;
	give();
	one_step(2, NULL);
	one_step(3, NULL);
	step(4);
	measure();
	rs_engine_stats(eng, &stats);
	is_u64(stats.outcome[0], 8, "all replays match");
	is_u64(usage.arena_bytes, 8192, "in an arena of two states");
	rig_stop();
}

static void test_retained(void)
{
	static const uint8_t keep[2] = {1, 0};
	struct rs_engine_stats stats;
	struct rs_engine_stats before;

	start(RS_MODE_PRESERVE);
	is_u64((uint64_t)rs_engine_retain(eng, thr, "a", 0), 0, "without a plan it replays");
	one_step(0, NULL);
	one_step(1, NULL);
	make_plan(RS_OPTION_RETAIN, RS_OPTION_WHOLE, 65536, 1u << 24);
	give();
	step(2);
	is_u64((uint64_t)rs_engine_retain(eng, thr, "a", -1), 1, "the plan says: keep");
	is_u64((uint64_t)rs_engine_retain(eng, thr, "b", 0), 0, "and: replay");
	is_u64((uint64_t)rs_engine_retain(eng, thr, "c", 0), 0, "a segment that it does not have");
	measure();
	rs_engine_stats(eng, &before);
	one_step(2, keep);
	rs_engine_stats(eng, &stats);
	is_u64(stats.outcome[0] - before.outcome[0], 1, "one replay, a match");
	is_u64(stats.snapshots - before.snapshots, 2, "P0 and P2 of b alone are preserved");
	/* it asks in the middle of the forward, and then replays all the same */
	step(3);
	PUSH("forward:a#0");
	KERNEL(copy, W_(out, 1), R_(state[0], N));
	is_u64((uint64_t)rs_engine_retain(eng, thr, "a", -1), 1, "asked inside");
	KERNEL(bump, RW_(state[0], N));
	POP();
	PUSH("replay:a#0");
	KERNEL(copy, W_(out, 1), R_(state[0], N));
	POP();
	measure();
	ok(strstr(rig_read("records.jsonl"), "\"RS082\"") != NULL, "a rejection that says why");
	ok(cost[0].flags & RS_COST_RETAINS && cost[0].flags & RS_COST_HAS_RETAINED, "flags");
	is_u64(cost[0].steps, 2, "steps with kept activations are not measured");
	rig_stop();
}

/* Under a plan the bytes are given back after the replay that is the last one, and one more is refused. */
static void test_spent(void)
{
	struct rs_engine_stats stats;
	uint32_t was, gradient;

	start(RS_MODE_PRESERVE);
	one_step(0, NULL);
	one_step(1, NULL);
	make_plan(RS_OPTION_UNDO, RS_OPTION_UNDO, 65536, 1u << 24);
	give();
	one_step(2, NULL);
	fake_drain();
	rs_engine_finish(eng);
	rs_engine_stats(eng, &stats);
	is_u64(stats.snapshot_bytes, 0, "nothing is preserved after the last replay");
	was = state[0][0];
	gradient = state[1][0];
	PUSH("replay:a#0");
	KERNEL(copy, W_(out, 1), R_(state[0], N));
	KERNEL(bump, RW_(state[0], N));
	KERNEL(bump, RW_(state[1], N));
	POP();
	measure();
	is_u64(state[0][0], was, "what it writes to state is put back all the same");
	is_u64(state[1][0], gradient + 1, "but not what its forward has not touched");
	ok(strstr(rig_read("records.jsonl"), "\"RS083\"") != NULL, "one more is a rejection");
	rig_stop();
}

/* A replay inside of a replay of the same forward: the outer one is not over when the last one of all has ended. */
static void test_nested(void)
{
	struct rs_engine_stats stats;

	start(RS_MODE_PRESERVE);
	for (unsigned n = 0; n < 4; n++) {
		if (n == 2) {
			make_plan(RS_OPTION_UNDO, RS_OPTION_UNDO, 65536, 1u << 24);
			give();
		}
		step(n);
		PUSH("forward:a#0");
		KERNEL(copy, W_(out, 1), R_(state[0], N));
		POP();
		KERNEL(bump, RW_(state[0], N));
		PUSH("replay:a#0");
		PUSH("replay:a#0");
		KERNEL(copy, W_(out, 1), R_(state[0], N));
		POP();
		KERNEL(copy, W_(out, 1), R_(state[0], N));
		POP();
		fake_drain();
		is_u64(out[0], n, "the outer replay sees what its forward saw");
	}
	measure();
	rs_engine_stats(eng, &stats);
	is_u64(stats.outcome[0], 8, "all replays match");
	is_u64(cost[0].replays, 2, "two of a forward");
	rig_stop();
}

/* Queue `behind` goes on when `first` is where it is now. */
static void wait_for(unsigned first, unsigned behind)
{
	uint64_t event;

	fake_event_record(NULL, RIG_Q(first), &event);
	fake_event_wait(NULL, RIG_Q(behind), event);
}

static void nothing(void *arg)
{
	(void)arg;
}

static void on(unsigned q, uint64_t ns)
{
	struct rig_arg a[] = {W_(out + q * 64, 1), R_(state[q & 1], N)};

	fake.call_ns = ns;
	kernel_q(q, "copy", copy, 2, a);
	fake.call_ns = 0;
}

/* Work on several queues: side by side, one behind the other, one long before the other. */
static void lanes(unsigned queues)
{
	wait_for(1, 0);
	for (unsigned q = 1; q < queues; q++)
		wait_for(0, q);
	PUSH("forward:side#0");
	for (unsigned q = 0; q < queues; q++)
		on(q, q == 1 ? 7000 : 1000);
	POP();
	wait_for(1, 0);
	PUSH("forward:behind#0");
	on(1, 3000);
	wait_for(1, 0);
	on(0, 2000);
	POP();
	wait_for(0, 1);
	fake.call_ns = 100000;
	fake_call(0, nothing, NULL);
	PUSH("forward:ahead#0");
	on(0, 2000);
	on(1, 4000);
	POP();
	wait_for(0, 1);
	PUSH("replay:side#0");
	on(0, 2000);
	on(1, 9000);
	POP();
	wait_for(1, 0);
}

/* One step: in later ones operations of the tool wait for each other across the queues. */
static void test_lanes(unsigned queues)
{
	static const uint64_t expected[] = {7000, 5000, 6000};

	start(RS_MODE_AUDIT);
	step(0);
	lanes(queues);
	step(1);
	fake_drain();
	measure();
	is_u64(ncosts, 3, "work on several queues: three segments");
	for (unsigned i = 0; i < 3; i++)
		is_u64(cost[i].forward.median_ns, expected[i],
		       "what runs side by side counts once, gaps do not");
	is_u64(cost[0].forward.n, 1, "it was measured");
	is_u64(cost[0].replay.median_ns, 9000, "its replay, too");
	rig_stop();
	is_u64(fake.live_marks, 0, "no mark is left behind");
}

/* On one of the queues it fails: then there is no sample, and never a wrong one. */
static void test_lanes_no_clock(void)
{
	unsigned wrong = 0, measured = 0, left = 0;

	for (int k = 1; k <= 24; k++) {
		start(RS_MODE_AUDIT);
		step(0);
		fake.fail_mark = k;
		lanes(3);
		fake.fail_mark = 0;
		step(1);
		fake_drain();
		measure();
		measured += cost[0].forward.n == 1;
		wrong += cost[0].forward.n && cost[0].forward.median_ns != 7000;
		wrong += cost[0].replay.n && cost[0].replay.median_ns != 9000;
		rig_stop();
		left += fake.live_marks != 0;
	}
	ok(!wrong && !left && measured > 5 && measured < 24,
	   "a clock that fails on one queue (%u measured)", measured);
}

/* The clock fails now and then: fewer samples, nothing else. */
static void test_no_clock(void)
{
	struct rs_engine_stats stats;

	start(RS_MODE_PRESERVE);
	for (unsigned n = 0; n < 12; n++) {
		fake.fail_mark = 1 + (int)n;
		one_step(n, NULL);
	}
	fake.fail_mark = 0;
	step(12);
	measure();
	rs_engine_stats(eng, &stats);
	is_u64(stats.outcome[0], 24, "all replays match");
	ok(cost[0].forward.n < 12 && cost[0].forward.n > 3, "some samples are missing");
	is_u64(cost[0].forward.median_ns, 2000, "none is wrong");
	rig_stop();
	is_u64(fake.live_marks, 0, "no mark is left behind");
}

int main(void)
{
	test_measured(RS_MODE_AUDIT);
	test_measured(RS_MODE_PRESERVE);
	test_calibrated(0);
	test_calibrated(1);
	test_optimizer();
	test_shared();
	test_taken();
	test_refused();
	test_small_arena();
	test_retained();
	test_spent();
	test_swapped();
	test_nested();
	test_no_clock();
	test_lanes(2);
	test_lanes(FAKE_QUEUES);
	test_lanes_no_clock();
	return tap_done();
}
