/* SPDX-License-Identifier: MIT */
/*
 * Streams that wait for a value in memory: what is enqueued behind such a wait may only run when another stream
 * goes on, so the shim must never let that other stream wait for it. On a device that would then stand still.
 */
#include "tests/unit/engine_rig.h"

static uint32_t flag;

static void read_it(struct rig_arg *a)
{
	a[0].p[0] = a[1].p[0];
}

static void bump(struct rig_arg *a)
{
	a[0].p[0] += 1;
}

static void raise_flag(struct rig_arg *a)
{
	(void)a;
	fake.event[flag - 1].passed = 1;
}

#define ON(q, fn, ...)                                                                             \
	kernel_q(q, #fn, fn, sizeof((struct rig_arg[]){__VA_ARGS__}) / sizeof(struct rig_arg),     \
		 (struct rig_arg[]){__VA_ARGS__})

/* A wait that only raise_flag ends: an event that nobody records. */
static void wait_for_flag(unsigned q)
{
	uint64_t event;

	rs_engine_queue_stalls(eng, thr, RIG_Q(q));
	fake_event_record(NULL, RIG_Q(7), &event);
	fake_drain();
	fake.event[event - 1].passed = 0;
	flag = (uint32_t)event;
	fake_event_wait(NULL, RIG_Q(q), event);
}

/*
 * before: stream 2 reads the state ahead of its wait; behind: after it; the replay runs on stream 1, which raises
 * the flag afterwards.
 */
static void replay_beside(int before, int behind)
{
	uint32_t *x, *y, *z, *f;

	rig_start(RS_MODE_PRESERVE);
	x = words(1), y = words(1), z = words(2), f = words(1);
	*x = 5;
	STEP(1);
	PUSH("forward:s");
	ON(1, read_it, W_(y, 1), R_(x, 1));
	POP();
	ON(1, bump, RW_(x, 1));
	if (before)
		ON(2, read_it, W_(z, 1), R_(x, 1));
	fake_drain();
	wait_for_flag(2);
	if (behind)
		ON(2, read_it, {z, 1, 1, RS_WRITE, 0, 0}, R_(x, 1));
	PUSH("replay:s");
	ON(1, read_it, W_(y, 1), R_(x, 1));
	POP();
	ON(1, raise_flag, W_(f, 1));
	ok(fake_drain(), "no stream waits for ever");
	is_u64(*x, 6, "the state is what it was");
	rs_engine_finish(eng);
	if (behind) {
		ok(count(rig_read("records.jsonl"), "\"outcome\":\"match\"") == 0,
		   "a replay beside work that must see the present bytes is rejected");
	} else {
		is_u64(*y, 5, "the replay sees the forward's bytes");
		is_u64(count(rig_read("records.jsonl"), "\"outcome\":\"match\""), 1, "a match");
	}
	/* once the host has waited, all is as before */
	rs_engine_queues_go_on(eng, 1, NULL);
	PUSH("replay:s");
	ON(1, read_it, W_(y, 1), R_(x, 1));
	POP();
	ok(fake_drain(), "nor later");
	rs_engine_finish(eng);
	is_u64(*y, 5, "a later replay sees the forward's bytes");
	rig_stop();
}

/* The replay's own stream waits: nobody may have to wait for it. */
static void replay_behind(void)
{
	uint32_t *x, *y, *z;

	rig_start(RS_MODE_PRESERVE);
	x = words(1), y = words(1), z = words(1);
	*x = 5;
	STEP(1);
	PUSH("forward:s");
	ON(1, read_it, W_(y, 1), R_(x, 1));
	POP();
	ON(1, bump, RW_(x, 1));
	fake_drain();
	wait_for_flag(1);
	PUSH("replay:s");
	ON(1, read_it, W_(y, 1), R_(x, 1));
	POP();
	ON(2, read_it, W_(z, 1), R_(x, 1));
	ON(2, raise_flag, W_(z, 1));
	ok(fake_drain(), "the other stream does not wait for the replay");
	is_u64(*z, 6, "and sees the present bytes");
	rs_engine_finish(eng);
	is_u64(count(rig_read("records.jsonl"), "\"outcome\":\"match\""), 0,
	       "the replay is rejected");
	rs_engine_queue_destroy(eng, RIG_Q(1));
	rig_stop();
}

/* A wait whose write is under way is an order like any other; the last write counts, and who makes it. */
static void values(void)
{
	static const struct {
		uint64_t written, wanted;
		enum rs_value_wait how;
		unsigned bytes;
		int comes;
	} cases[] = {
		{1, 1, RS_VALUE_EQ, 4, 1},	     {1, 2, RS_VALUE_EQ, 4, 0},
		{2, 1, RS_VALUE_GEQ, 4, 1},	     {1, 2, RS_VALUE_GEQ, 8, 0},
		{0, 0xffffffff, RS_VALUE_GEQ, 4, 1}, /* signed, cyclic */
		{0, 0xffffffff, RS_VALUE_GEQ, 8, 0}, {6, 4, RS_VALUE_AND, 4, 1},
		{2, 4, RS_VALUE_AND, 4, 0},	     {1ull << 32, 1ull << 32, RS_VALUE_AND, 4, 0},
		{0xffffffff, 0, RS_VALUE_NOR, 4, 0}, {0xffffffff, 0, RS_VALUE_NOR, 8, 1},
	};
	const struct rs_engine_config config = {.mode = RS_MODE_PRESERVE, .order = 1};
	uint32_t *x, *y;

	rig_start(RS_MODE_PRESERVE);
	rs_thread_destroy(thr);
	rs_engine_destroy(eng);
	eng = rs_engine_create(&config, &fake_ops, rec);
	memset(&rig_calm, 0, sizeof(rig_calm));
	thr = rs_thread_create(eng);
	x = words(1), y = words(1);
	ok(!rs_engine_value_comes(eng, 64, 1, RS_VALUE_EQ, 4),
	   "nothing is known while nothing is pending");
	PUSH("forward:s");
	ON(1, read_it, W_(y, 1), R_(x, 1));
	POP();
	ok(!rs_engine_value_comes(eng, 64, 1, RS_VALUE_EQ, 4),
	   "a value that nobody wrote does not come");
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		rs_engine_value_written(eng, thr, RIG_Q(2), 64, cases[i].written);
		is_u64((uint64_t)rs_engine_value_comes(eng, 64, cases[i].wanted, cases[i].how,
						       cases[i].bytes),
		       (uint64_t)cases[i].comes, "a value against a wait");
	}
	rs_engine_value_written(eng, thr, RIG_Q(2), 64, 1);
	rs_engine_queue_stalls(eng, thr, RIG_Q(2));
	ok(!rs_engine_value_comes(eng, 64, 1, RS_VALUE_EQ, 4),
	   "nor one from a stream that waits itself");
	rig_stop();
}

int main(void)
{
	replay_beside(0, 0);
	replay_beside(1, 0);
	replay_beside(0, 1);
	replay_beside(1, 1);
	replay_behind();
	values();
	return tap_done();
}
