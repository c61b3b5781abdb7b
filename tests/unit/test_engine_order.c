/* SPDX-License-Identifier: MIT */
/*
 * Order between streams (kind K15, RS031): every way to order two calls is understood, a missing one is
 * noticed, and what is not known counts as ordered.
 */
#include "tests/unit/engine_rig.h"

enum how {
	NOTHING,
	EVENT,
	TWO_EVENTS,    /* by way of a third stream */
	OTHER_EVENT,   /* recorded before the first call */
	RERECORDED,    /* the event is recorded again elsewhere before the wait */
	UNKNOWN_EVENT, /* never recorded while anything was pending */
	SYNC_QUEUE,    /* the host waits */
	SYNC_EVENT,
	SYNC_CTX,
	SYNC_OTHER,  /* for another stream */
	SYNCHRONOUS, /* a call that returns when the queue has ended */
	LEGACY,	     /* a call on the legacy stream in between */
	SAME_STREAM,
	HOWS
};

static const struct {
	const char *name;
	int ordered;
} about[HOWS] = {
	[NOTHING] = {"nothing", 0},
	[EVENT] = {"an event", 1},
	[TWO_EVENTS] = {"events over a third stream", 1},
	[OTHER_EVENT] = {"an event from before", 0},
	[RERECORDED] = {"an event recorded anew elsewhere", 0},
	[UNKNOWN_EVENT] = {"an event that nobody saw recorded", 1},
	[SYNC_QUEUE] = {"waiting for the stream", 1},
	[SYNC_EVENT] = {"waiting for an event", 1},
	[SYNC_CTX] = {"waiting for the context", 1},
	[SYNC_OTHER] = {"waiting for another stream", 0},
	[SYNCHRONOUS] = {"a synchronous call", 1},
	[LEGACY] = {"the legacy stream", 1},
	[SAME_STREAM] = {"the stream itself", 1},
};

static void read_it(struct rig_arg *a)
{
	a[0].p[0] = a[1].p[0];
}

static void set7(struct rig_arg *a)
{
	a[0].p[0] = 7;
}

#define ON(q, fn, ...)                                                                             \
	kernel_q(q, #fn, fn, sizeof((struct rig_arg[]){__VA_ARGS__}) / sizeof(struct rig_arg),     \
		 (struct rig_arg[]){__VA_ARGS__})

static void start(void)
{
	const struct rs_engine_config config = {.mode = RS_MODE_AUDIT, .verify = 1, .order = 1};

	rig_start(RS_MODE_AUDIT);
	rs_thread_destroy(thr);
	rs_engine_destroy(eng);
	eng = rs_engine_create(&config, &fake_ops, rec);
	memset(&rig_calm, 0, sizeof(rig_calm));
	thr = rs_thread_create(eng);
	for (unsigned q = 1; q < 6; q++)
		rs_engine_queue_create(eng, thr, RIG_Q(q), 0);
	rs_engine_queue_create(eng, thr, RIG_Q(6), 1);
	rs_engine_queue_create(eng, thr, RIG_Q(7), 1);
}

/* From `from`, which has just made a call, to `to`, which is about to make one. */
static void order(enum how how, unsigned from, unsigned to, uint32_t *unrelated)
{
	struct rs_call copy = {.name = "copy", .kind = RS_CALL_COPY, .synchronous = 1};

	switch (how) {
	case EVENT:
	case TWO_EVENTS:
	case RERECORDED:
	case SYNC_EVENT:
		rs_engine_event_record(eng, thr, RIG_Q(from), 100);
		break;
	case SYNC_QUEUE:
		rs_engine_synced_queue(eng, thr, RIG_Q(from));
		break;
	case SYNC_CTX:
		rs_engine_synced_ctx(eng, 1);
		break;
	case SYNC_OTHER:
		rs_engine_synced_queue(eng, thr, RIG_Q(5));
		break;
	case SYNCHRONOUS:
		copy.q = RIG_Q(from);
		rs_engine_before(eng, thr, &copy);
		rs_engine_after(eng, thr, &copy, 1);
		break;
	case LEGACY:
		ON(0, set7, W_(unrelated, 1));
		break;
	default:
		break;
	}
	if (how == EVENT || how == OTHER_EVENT || how == UNKNOWN_EVENT)
		rs_engine_event_wait(eng, thr, RIG_Q(to), how == UNKNOWN_EVENT ? 555 : 100);
	if (how == SYNC_EVENT)
		rs_engine_synced_event(eng, 100);
	if (how == RERECORDED) {
		rs_engine_event_record(eng, thr, RIG_Q(5), 100);
		rs_engine_event_wait(eng, thr, RIG_Q(to), 100);
	}
	if (how == TWO_EVENTS) {
		rs_engine_event_wait(eng, thr, RIG_Q(4), 100);
		rs_engine_event_record(eng, thr, RIG_Q(4), 101);
		rs_engine_event_wait(eng, thr, RIG_Q(to), 101);
	}
}

/* Forward reads on one stream, a write on another one, the replay reads on a third one. */
static void one(enum how how, int second)
{
	unsigned a = how == LEGACY ? 6 : 1, b = how == LEGACY ? 7 : how == SAME_STREAM ? 1 : 2;
	uint32_t *x, *y, *unrelated;
	const char *events;

	start();
	x = words(1);
	y = words(1);
	unrelated = words(1);
	PUSH("forward:f");
	rs_engine_event_record(eng, thr, RIG_Q(a), 100);
	ON(a, read_it, W_(y, 1), R_(x, 1));
	POP();
	order(second ? SYNC_CTX : how, a, b, unrelated);
	if (second)
		rs_engine_event_record(eng, thr, RIG_Q(b), 100);
	ON(b, set7, W_(x, 1));
	order(second ? how : SYNC_CTX, b, a, unrelated);
	PUSH("replay:f#0");
	ON(a, read_it, W_(y, 1), R_(x, 1));
	POP();
	fake_drain();
	ok((count(rig_read("records.jsonl"), "RS031") == 0) == about[how].ordered, "%s: %s",
	   second ? "write, then replay" : "forward, then write", about[how].name);
	events = rig_read("events.jsonl");
	if (!about[how].ordered)
		ok(count(events, "\"name\":\"set7\"") && count(events, "RS031"),
		   "and the writer is named");
	rig_stop();
}

/* What was enqueued before anything was pending is nobody's race. */
static void the_past(void)
{
	uint32_t *x, *y;

	start();
	x = words(1);
	y = words(1);
	PUSH("forward:f");
	ON(1, read_it, W_(y, 1), R_(x, 1));
	POP();
	ON(1, set7, W_(x, 1));
	STEP(1);
	ON(2, set7, W_(x, 1));
	PUSH("forward:f");
	ON(3, read_it, W_(y, 1), R_(x, 1));
	POP();
	PUSH("replay:f#0");
	ON(3, read_it, W_(y, 1), R_(x, 1));
	POP();
	fake_drain();
	is_u64(count(rig_read("records.jsonl"), "RS031"), 0, "no race with the past");
	rig_stop();
}

/* A stream that takes a destroyed one's place. */
static void reused_queue(void)
{
	uint32_t *x, *y;

	start();
	x = words(1);
	y = words(1);
	PUSH("forward:f");
	ON(1, read_it, W_(y, 1), R_(x, 1));
	POP();
	for (unsigned i = 0; i < 100; i++) {
		rs_engine_queue_create(eng, thr, RIG_Q(100 + i), 0);
		fake_drain();
		rs_engine_queue_destroy(eng, RIG_Q(100 + i));
	}
	rs_engine_queue_create(eng, thr, RIG_Q(3), 0);
	ON(3, set7, W_(x, 1));
	PUSH("replay:f#0");
	ON(1, read_it, W_(y, 1), R_(x, 1));
	POP();
	fake_drain();
	ok(count(rig_read("records.jsonl"), "RS031"),
	   "a race is found after many streams came and went");
	rig_stop();
}

int main(void)
{
	for (unsigned how = 0; how < HOWS; how++) {
		one((enum how)how, 0);
		one((enum how)how, 1);
	}
	the_past();
	reused_queue();
	return tap_done();
}
