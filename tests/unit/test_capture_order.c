/* SPDX-License-Identifier: MIT */
/*
 * The order of a captured graph, as its capture tells it by events: who writes without an order to those who read what a
 * forward claims is told (RS031), and nobody else is.
 */
#include "tests/unit/capture_dev.h"

#define N	8u
#define FORKED	100u /* events of the program's */
#define READ	101u
#define WRITTEN 102u

static uint32_t *s, *y, *again, *delta;

static void triple(struct rig_arg *a)
{
	for (unsigned i = 0; i < a[0].n; i++)
		a[1].p[i] = 3 * a[0].p[i];
}

static void add(struct rig_arg *a)
{
	for (unsigned i = 0; i < a[0].n; i++)
		a[0].p[i] += *a[1].p;
}

static void begin(enum rs_mode mode)
{
	start(mode);
	s = words(N);
	y = words(N);
	again = words(N);
	delta = words(1);
	rs_engine_region(eng, (uint64_t)s, N * 4, "state:s");
	*delta = 1;
	begin_capture();
	hand_over(ORIGIN, OTHER, FORKED);
}

static void forward(void)
{
	PUSH("forward:f");
	CAPTURED(triple, R_(s, N), W_(y, N));
	POP();
}

static void replay(void)
{
	PUSH("replay:f");
	CAPTURED(triple, R_(s, N), W_(again, N));
	POP();
}

static void write_aside(void)
{
	CAPTURED_Q(OTHER, add, RW_(s, N), R_(delta, 1));
}

static void is_told(int told, const char *what)
{
	struct rs_capture *c = end_capture(1);
	const char *text;

	launch(c, 3, 1);
	launch(c, 4, 1);
	fake_drain();
	text = rig_read("records.jsonl");
	is_u64(count(text, "RS031"), told ? 2 : 0, what);
	is_u64(count(text, "\"outcome\":\"match\""), told ? 0 : 2,
	       "that is no match, and the rest is");
	text = rig_read("events.jsonl");
	if (told)
		ok(strstr(text, "\"name\":\"s\"") && strstr(text, "\"name\":\"add\""),
		   "state and writer are named");
	rs_capture_unref(c);
	rig_stop();
}

/* The writer is on another stream, between forward and replay. */
static void test_between(enum rs_mode mode, int after_forward, int before_replay)
{
	begin(mode);
	forward();
	if (after_forward)
		hand_over(ORIGIN, OTHER, READ);
	write_aside();
	if (before_replay)
		hand_over(OTHER, ORIGIN, WRITTEN);
	replay();
	if (mode == RS_MODE_AUDIT) /* then it is a divergence, too */
		*delta = 0;
	is_told(!after_forward || !before_replay, "a writer between forward and replay");
}

/* What is written before the forward, or after the replay, must be ordered, too. */
static void test_beside(int before, int ordered)
{
	begin(RS_MODE_PRESERVE);
	if (before) {
		/* somebody else's forward is pending: what nobody claims is not followed */
		PUSH("forward:earlier");
		CAPTURED(triple, R_(s, N), W_(y, N));
		POP();
		hand_over(ORIGIN, OTHER, READ);
		write_aside();
		if (ordered)
			hand_over(OTHER, ORIGIN, WRITTEN);
	}
	forward();
	replay();
	if (!before) {
		if (ordered)
			hand_over(ORIGIN, OTHER, READ);
		write_aside();
	}
	is_told(!ordered, before ? "a writer before the forward" : "a writer after the replay");
}

/* Where the order is not known it is assumed. */
static void test_unknown(unsigned how)
{
	begin(RS_MODE_PRESERVE);
	if (how == 2)
		rs_engine_capture_recorded(eng, thr, RIG_Q(ORIGIN), READ);
	forward();
	switch (how) {
	case 0: /* an event that was recorded unseen */
		rs_engine_capture_waited(eng, thr, RIG_Q(OTHER), READ);
		break;
	case 1: /* dependencies set by hand */
		rs_engine_capture_reset(eng, thr, RIG_Q(OTHER), 0, 0, 1);
		break;
	default: /* the event means something else now, nobody knows what */
		rs_engine_event_destroy(eng, READ);
		rs_engine_capture_waited(eng, thr, RIG_Q(OTHER), READ);
		break;
	}
	write_aside();
	hand_over(OTHER, ORIGIN, WRITTEN);
	replay();
	is_told(0, "an order that is not known");
}

/* A free node that no order puts behind the reader. */
static void test_freed(int ordered)
{
	struct rs_capture *c;

	begin(RS_MODE_PRESERVE);
	forward();
	if (ordered)
		hand_over(ORIGIN, OTHER, READ);
	rs_engine_capture_frees(eng, thr, RIG_Q(OTHER), (uint64_t)s);
	rs_engine_capture_freed(eng, thr, RIG_Q(OTHER), (uint64_t)s, 1);
	PUSH("replay:f");
	CAPTURED(add, RW_(y, N), R_(delta, 1));
	POP();
	c = end_capture(1);
	launch(c, 3, 1);
	fake_drain();
	is_u64(count(rig_read("records.jsonl"), "RS031"), !ordered, "freed under a reader");
	rs_capture_unref(c);
	rig_stop();
}

/* Nobody replays it: it is told when the capture ends, of the forward alone. */
static void test_alone(void)
{
	struct rs_capture *c;

	begin(RS_MODE_PRESERVE);
	forward();
	write_aside();
	c = end_capture(1);
	is_u64(count(rig_read("events.jsonl"), "RS031"), 1, "a forward that nobody replays");
	is_u64(count(rig_read("records.jsonl"), "replay"), 0, "has no record");
	rs_capture_unref(c);
	rig_stop();
}

/* Dependencies that are set by hand: what the tool has captured is among them again. */
static void test_reset(void)
{
	uint64_t event;

	begin(RS_MODE_PRESERVE);
	event = rs_engine_capture_resets(eng, RIG_Q(ORIGIN));
	is_u64(event, 0, "nothing of the tool's is captured");
	forward();
	write_aside();
	event = rs_engine_capture_resets(eng, RIG_Q(ORIGIN));
	is_u64(event, CAPTURED_EVENT, "the end of what is captured so far");
	cap.waits = 0;
	rs_engine_capture_reset(eng, thr, RIG_Q(ORIGIN), event, 1, 1);
	is_u64(cap.waits, 1, "is waited for");
	event = rs_engine_capture_resets(eng, RIG_Q(ORIGIN));
	rs_engine_capture_reset(eng, thr, RIG_Q(ORIGIN), event, 1, 0);
	is_u64(cap.waits, 1, "not when the driver has refused");
	replay();
	rs_capture_unref(end_capture(1));
	rig_stop();
	start(RS_MODE_AUDIT);
	s = words(N);
	y = words(N);
	begin_capture();
	forward();
	is_u64(rs_engine_capture_resets(eng, RIG_Q(ORIGIN)), 0, "an audit orders nothing");
	rs_capture_unref(end_capture(1));
	rig_stop();
}

/* The driver fails when the tool asks it: for the capture, for an event, for a wait; or it does not. */
static void test_reset_fails(unsigned how)
{
	struct rs_capture *c;
	uint64_t event;

	begin(RS_MODE_PRESERVE);
	forward();
	cap.fail_of = how == 1 || how == 2;
	event = rs_engine_capture_resets(eng, RIG_Q(ORIGIN));
	cap.fail_of = how == 2 || how == 3;
	cap.fail_wait = how == 4;
	rs_engine_capture_reset(eng, thr, RIG_Q(ORIGIN), event, 1, 1);
	cap.fail_wait = cap.fail_of = 0;
	replay();
	c = end_capture(1);
	launch(c, 3, 1);
	fake_drain();
	is_u64(strstr(rig_read("records.jsonl"), "RS030") != NULL, how != 0,
	       "an order that could not be made is told");
	rs_capture_unref(c);
	rig_stop();
}

/* Somebody's node could not be put behind what a replay that is over has put back. */
static void test_refused(int refused)
{
	struct rs_capture *c;

	begin(RS_MODE_PRESERVE);
	forward();
	CAPTURED(add, RW_(s, N), R_(delta, 1));
	replay();
	hand_over(ORIGIN, OTHER, READ);
	cap.fail_wait = refused;
	CAPTURED_Q(OTHER, triple, R_(s, N), W_(y, N));
	cap.fail_wait = 0;
	c = end_capture(1);
	launch(c, 3, 1);
	fake_drain();
	is_u64(count(rig_read("records.jsonl"), "\"outcome\":\"match\""), !refused,
	       "who does not wait for what is put back");
	rs_capture_unref(c);
	rig_stop();
}

int main(void)
{
	unsigned i;

	for (i = 0; i < 4; i++) {
		test_between(RS_MODE_PRESERVE, i & 1, i & 2);
		test_between(RS_MODE_AUDIT, i & 1, i & 2);
		test_beside(i & 1, i & 2);
	}
	for (i = 0; i < 3; i++)
		test_unknown(i);
	test_freed(0);
	test_freed(1);
	test_alone();
	test_reset();
	for (i = 0; i < 5; i++)
		test_reset_fails(i);
	test_refused(0);
	test_refused(1);
	drop_nodes();
	return tap_done();
}
