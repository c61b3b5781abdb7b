/* SPDX-License-Identifier: MIT */
/*
 * The driver refuses to let a stream wait for what the shim itself has put into another one: a replay's put-back, which the
 * program knows nothing of. Whoever relies on that order must wait all the same, by the host if need be; if nobody can, the
 * replay and what is open are rejections, pre-images are none, and the next call is ordered again.
 */
#include "tests/unit/engine_rig.h"

#define ON(q, fn, ...)                                                                             \
	kernel_q(q, #fn, fn, sizeof((struct rig_arg[]){__VA_ARGS__}) / sizeof(struct rig_arg),     \
		 (struct rig_arg[]){__VA_ARGS__})

static uint32_t *x, *y, *z;

static void copy_first(struct rig_arg *a)
{
	a[0].p[0] = a[1].p[0];
}

/* Makes the same whatever it reads. */
static void seven(struct rig_arg *a)
{
	a[0].p[0] = 7;
}

static void bump(struct rig_arg *a)
{
	a[0].p[0]++;
}

/*
 * x is 1 for the forward of f, and 2 since. Its replay, on stream 2, is shown 1, and has come so far on the device that x is 1;
 * the put-back is enqueued. Stream 1 goes first wherever it may.
 */
static void amid_replay(int other)
{
	rig_start(RS_MODE_PRESERVE);
	x = words(1);
	y = words(1);
	z = words(4);
	x[0] = 1;
	PUSH("forward:f#0");
	ON(2, copy_first, W_(y, 1), R_(x, 1));
	POP();
	ON(2, bump, RW_(x, 1));
	if (other) {
		PUSH("forward:g#0");
		ON(2, seven, W_(y, 1), R_(x, 1));
		POP();
	}
	fake_drain();
	fake.eager = 0;
	fake.lazy = 30;
	PUSH("replay:f#0");
	ON(2, copy_first, W_(y, 1), R_(x, 1));
	POP();
	while (x[0] != 1 && fake_run_one(2))
		;
}

/* What the next order needs fails, and nothing after it. */
enum refusal { NOTHING, WAIT, RECORD, WAIT_AND_HOST, RECORD_AND_HOST, REFUSALS };
static const struct {
	const char *name;
	int record, wait, host, waits;
} refusal[] = {
	[NOTHING] = {"nothing fails", 0, 0, 0, 1},
	[WAIT] = {"the stream may not wait", 0, 1, 0, 1},
	[RECORD] = {"no event can be recorded", 1, 0, 0, 1},
	[WAIT_AND_HOST] = {"neither the stream nor the host may wait", 0, 1, 1, 0},
	[RECORD_AND_HOST] = {"no event, and the host may not wait", 1, 0, 1, 0},
};

static void refuse(enum refusal r)
{
	fake.fail_record = refusal[r].record;
	fake.fail_wait = refusal[r].wait;
	fake.fail_within = refusal[r].host;
}

static struct rs_engine_stats stats(void)
{
	struct rs_engine_stats st;

	rs_engine_stats(eng, &st);
	return st;
}

/* Everything ends; how many of so many replays are on record as matches? */
static void matches(unsigned want, unsigned of, const char *what)
{
	const char *records;

	refuse(NOTHING);
	ok(fake_drain(), "%s: nobody waits for ever", what);
	records = rig_read("records.jsonl");
	ok(count(records, "\"outcome\":\"match\"") == want, "%s: matches", what);
	ok(count(records, "\"outcome\":") == of, "%s: replays", what);
	ok(!count(records, "RS092") == !stats().internal_errors, "%s: said, if it is so", what);
	rig_stop();
}

/* Two calls on another stream read what is put back. */
static void read_by_others(enum refusal r)
{
	int waits = refusal[r].waits;

	amid_replay(0);
	refuse(r);
	ON(1, copy_first, {z, 0, 1, RS_WRITE, 0, 0}, R_(x, 1));
	refuse(NOTHING);
	ON(1, copy_first, {z + 1, 0, 1, RS_WRITE, 0, 0}, R_(x, 1));
	fake_drain();
	ok(z[0] == (waits ? 2u : 1u), "%s: what a reader sees", refusal[r].name);
	ok(z[1] == 2, "%s: what the next one sees", refusal[r].name);
	matches(waits, 1, refusal[r].name);
}

/* A forward reads it that makes the same of anything. */
static void read_by_a_forward(enum refusal r)
{
	int waits = refusal[r].waits;

	amid_replay(0);
	PUSH("forward:h#0");
	refuse(r);
	ON(1, seven, W_(z, 1), R_(x, 1));
	refuse(NOTHING);
	POP();
	fake_drain();
	PUSH("replay:h#0");
	ON(1, seven, W_(z, 1), R_(x, 1));
	POP();
	matches(waits ? 2 : 0, 2, waits ? "a forward waits" : "a forward does not wait");
}

/* It is overwritten, and another segment needs a pre-image. */
static void overwritten(enum refusal r)
{
	int waits = refusal[r].waits;

	amid_replay(1);
	refuse(r);
	ON(1, bump, RW_(x, 1));
	refuse(NOTHING);
	fake_drain();
	PUSH("replay:g#0");
	ON(1, seven, W_(y, 1), R_(x, 1));
	POP();
	if (!waits)
		ok(count(rig_read("records.jsonl"), "RS018"),
		   "a pre-image of who knows what is none");
	matches(waits ? 2 : 0, 2, waits ? "an overwriting call waits" : "it does not wait");
}

/* It is freed; a call may write anything. */
static void freed_or_unknown(enum refusal r, int unknown)
{
	struct rs_call any = {
		.name = "any", .kind = RS_CALL_KERNEL, .q = RIG_Q(1), .everything = 1};
	int waits = refusal[r].waits;

	amid_replay(0);
	refuse(r);
	if (unknown) {
		rs_engine_before(eng, thr, &any);
		rs_engine_after(eng, thr, &any, 1);
	} else {
		rs_engine_free(eng, thr, RIG_Q(1), (uint64_t)x);
	}
	matches(waits, 1, unknown ? "a call that may write anything" : "a free");
}

/* The stream with the put-back may be waiting for memory by now, and has calls behind that. */
static void stalled(void)
{
	amid_replay(0);
	rs_engine_queue_stalls(eng, thr, RIG_Q(2));
	ON(2, seven, W_(z, 1));
	ON(1, copy_first, {z + 1, 0, 1, RS_WRITE, 0, 0}, R_(x, 1));
	matches(0, 1, "a stream that stalls is not waited for");
}

/* The last work of the shim's own there is over: nothing is to be waited for, so nothing can be refused. */
static void over(void)
{
	amid_replay(0);
	fake_drain();
	rs_engine_finish(eng);
	refuse(RECORD_AND_HOST);
	rs_engine_free(eng, thr, RIG_Q(1), (uint64_t)x);
	is_u64(stats().internal_errors, 0, "what is over is not waited for");
	matches(1, 1, "a free when all is over");
}

int main(void)
{
	for (unsigned r = 0; r < REFUSALS; r++) {
		read_by_others(r);
		read_by_a_forward(r);
		overwritten(r);
		freed_or_unknown(r, 0);
		freed_or_unknown(r, 1);
	}
	stalled();
	over();
	return tap_done();
}
