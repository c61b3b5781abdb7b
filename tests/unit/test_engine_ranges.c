/* SPDX-License-Identifier: MIT */
/*
 * Windows that do not end in the order of a stack: ranges of several domains that cross, and ranges that turn out not to
 * be segments.
 */
#include "tests/unit/engine_rig.h"

static void times2(struct rig_arg *a)
{
	a[0].p[0] = a[1].p[0] * 2;
}

static void set_to(struct rig_arg *a)
{
	a[0].p[0] = a[1].p[0];
}

static void cross(void)
{
	uint32_t *a, *b, *ya, *yb, *v;
	const char *text;

	rig_start(RS_MODE_PRESERVE);
	a = words(1), b = words(1), ya = words(1), yb = words(1), v = words(1);
	*a = 1, *b = 2, *v = 9;
	STEP(1);
	PUSH("forward:a");
	KERNEL(times2, W_(ya, 1), R_(a, 1));
	PUSH("forward:b");
	rs_engine_pop_at(eng, thr, 1, 0);
	KERNEL(times2, W_(yb, 1), R_(b, 1));
	POP();
	KERNEL(set_to, W_(a, 1), R_(v, 1));
	KERNEL(set_to, W_(b, 1), R_(v, 1));
	PUSH("replay:a");
	KERNEL(times2, W_(ya, 1), R_(a, 1));
	PUSH("replay:b");
	rs_engine_pop_at(eng, thr, 1, 0);
	KERNEL(times2, W_(yb, 1), R_(b, 1));
	POP();
	is_u64(*ya, 2, "the outer window's replay saw its bytes");
	is_u64(*yb, 4, "the inner one's, after the outer one's end, too");
	ok(*a == 9 && *b == 9, "and all is as it was before");
	text = rig_read("records.jsonl");
	is_u64(count(text, "\"outcome\":\"match\""), 2,
	       "both are matches: each had its own calls only");
	drop(a), drop(b), drop(ya), drop(yb), drop(v);
	rig_stop();
}

static void forgotten(void)
{
	struct rs_engine_stats stats;
	uint32_t *a, *b, *y, *v;
	const char *text;

	rig_start(RS_MODE_PRESERVE);
	a = words(1), b = words(1), y = words(1), v = words(1);
	*a = 1, *b = 2, *v = 9;
	STEP(1);
	PUSH("forward:outer");
	KERNEL(times2, W_(y, 1), R_(a, 1));
	PUSH("forward:inner");
	rs_engine_pop_at(eng, thr, 1, 1);
	KERNEL(times2, W_(y, 1), R_(b, 1));
	POP();
	KERNEL(set_to, W_(a, 1), R_(v, 1));
	rs_engine_stats(eng, &stats);
	is_u64(stats.snapshots, 0, "what only the forgotten forward read is not kept");
	KERNEL(set_to, W_(b, 1), R_(v, 1));
	PUSH("replay:inner");
	KERNEL(times2, W_(y, 1), R_(b, 1));
	POP();
	is_u64(*y, 4, "the one inside of it is as good as ever");
	PUSH("replay:outer#0");
	POP();
	text = rig_read("records.jsonl");
	is_u64(count(text, "\"outcome\":\"match\""), 1, "a match");
	is_u64(count(text, "\"outcome\":\"rejection\""), 1,
	       "and a replay of the other has no forward");
	drop(a), drop(b), drop(y), drop(v);
	rig_stop();
}

static void odd(void)
{
	struct rs_engine_stats stats;

	rig_start(RS_MODE_PRESERVE);
	STEP(1);
	POP();
	rs_engine_pop_at(eng, thr, 3, 0);
	PUSH("forward:a");
	rs_engine_pop_at(eng, thr, 1, 1);
	PUSH("replay:x");
	rs_engine_pop_at(eng, thr, 0, 1);
	POP();
	POP();
	PUSH("replay:a");
	POP();
	rs_engine_stats(eng, &stats);
	is_u64(stats.replays, 2,
	       "pops of ranges that are not there end nothing; a replay is not forgotten");
	is_u64(count(rig_read("records.jsonl"), "\n"), 2, "nor its record");
	rig_stop();
}

int main(void)
{
	cross();
	forgotten();
	odd();
	return tap_done();
}
