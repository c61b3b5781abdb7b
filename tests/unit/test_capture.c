/* SPDX-License-Identifier: MIT */
/*
 * Segments inside of stream captures (tracker/capture.h), on a device whose captures are lists of operations: what is
 * preserved when their graphs are launched, what is recorded of each launch, what is rejected, and what is left behind.
 */
#include "tests/unit/capture_dev.h"

/* --- a step ---------------------------------------------------------------------------------------- */

#define N 8u

static uint32_t *s, *y, *again, *delta;

/* y = 3 s */
static void triple(struct rig_arg *a)
{
	for (unsigned i = 0; i < a[0].n; i++)
		a[1].p[i] = 3 * a[0].p[i];
}

/* s += delta */
static void add(struct rig_arg *a)
{
	for (unsigned i = 0; i < a[0].n; i++)
		a[0].p[i] += *a[1].p;
}

static void nothing(struct rig_arg *a)
{
	(void)a;
}

static void make_memory(void)
{
	s = words(N);
	y = words(N);
	again = words(N);
	delta = words(1);
	rs_engine_region(eng, (uint64_t)s, N * 4, "state:s");
	for (unsigned i = 0; i < N; i++)
		s[i] = 10 + i;
	*delta = 1;
}

static void forward(void)
{
	PUSH("forward:f");
	CAPTURED(triple, R_(s, N), W_(y, N));
	POP();
}

static void replay_on(unsigned q)
{
	PUSH("replay:f");
	CAPTURED_Q(q, triple, R_(s, N), W_(again, N));
	POP();
}

static void overwrite(void)
{
	CAPTURED(add, RW_(s, N), R_(delta, 1));
}

/* Forward, writer, replay. */
static struct rs_capture *capture_step(unsigned q)
{
	begin_capture();
	forward();
	overwrite();
	replay_on(q);
	return end_capture(1);
}

static unsigned wrong(const uint32_t *p, unsigned factor, unsigned first)
{
	unsigned bad = 0;

	for (unsigned i = 0; i < N; i++)
		bad += p[i] != factor * (first + i);
	return bad;
}

/* --- what is preserved ------------------------------------------------------------------------------ */

static void test_preserved(void)
{
	struct rs_capture *c;

	start(RS_MODE_PRESERVE);
	make_memory();
	c = capture_step(ORIGIN);
	outcomes(0, 0, 0, "nothing has run");
	launch(c, 3, 1);
	fake_drain();
	ok(!wrong(y, 3, 10) && !wrong(again, 3, 10), "the replay sees what the forward saw");
	ok(!wrong(s, 1, 11), "and what was written in between is there again");
	outcomes(1, 0, 0, "one launch");
	launch(c, 3, 1);
	launch(c, 4, 1);
	fake_drain();
	ok(!wrong(again, 3, 12) && !wrong(s, 1, 13), "each launch has its own state");
	outcomes(3, 0, 0, "three launches");
	rs_capture_unref(c);
	rig_stop();
}

/* What is put back goes where the capture began: another stream may have come to its end in it. */
static void test_origin(void)
{
	struct rs_capture *c;
	unsigned i, after, late = 0;

	start(RS_MODE_PRESERVE);
	make_memory();
	begin_capture();
	forward();
	overwrite();
	hand_over(ORIGIN, OTHER, 1);
	PUSH("replay:f");
	CAPTURED_Q(OTHER, triple, R_(s, N), W_(again, N));
	after = cap.n;
	POP();
	for (i = after; i < cap.n; i++)
		late += cap.queue[i] != ORIGIN;
	ok(cap.n > after && !late, "the end of a replay puts nothing behind another stream's");
	c = end_capture(1);
	launch(c, 3, 1);
	fake_drain();
	ok(!wrong(again, 3, 10) && !wrong(s, 1, 11), "on two streams");
	outcomes(1, 0, 0, "on two streams");
	rs_capture_unref(c);
	rig_stop();
}

/* The window is open when the capture ends; and a step ends what was pending. */
static void test_ends(void)
{
	struct rs_capture *c;
	unsigned nodes;

	start(RS_MODE_PRESERVE);
	make_memory();
	begin_capture();
	forward();
	overwrite();
	PUSH("replay:f");
	CAPTURED(triple, R_(s, N), W_(again, N));
	c = end_capture(1);
	POP();
	launch(c, 3, 1);
	fake_drain();
	ok(!wrong(again, 3, 10) && !wrong(s, 1, 11), "a replay ends with its capture");
	outcomes(1, 0, 0, "a replay ends with its capture");
	rs_capture_unref(c);

	begin_capture();
	forward();
	STEP(2);
	nodes = cap.n;
	overwrite();
	is_u64(cap.n, nodes + 1, "nothing is kept for an older step");
	replay_on(ORIGIN);
	c = end_capture(1);
	launch(c, 3, 1);
	fake_drain();
	outcomes(1, 1, 0, "what an older step has captured is over");
	ok(strstr(rig_read("records.jsonl"), "RS017") != NULL, "there is no such forward any more");
	rs_capture_unref(c);
	rig_stop();
}

/* Where others may write within the graph, what is claimed is kept before. */
static void test_foreign(void)
{
	struct rs_capture *c;
	struct rig_arg none = R_(NULL, 0);
	unsigned at, i, nodes;

	start(RS_MODE_PRESERVE);
	make_memory();
	begin_capture();
	forward();
	at = cap.n;
	captured_q(ORIGIN, "wait", nothing, 0, &none, 1);
	for (i = at, nodes = 0; i < cap.n && cap.node[i].kind != FAKE_CALL; i++)
		nodes += cap.node[i].kind == FAKE_COPY;
	is_u64(nodes, 1, "kept before others may write");
	/* as somebody else would, in its place */
	((struct rig_body *)cap.node[i].arg)->fn = add;
	((struct rig_body *)cap.node[i].arg)->a[0] = (struct rig_arg)RW_(s, N);
	((struct rig_body *)cap.node[i].arg)->a[1] = (struct rig_arg)R_(delta, 1);
	replay_on(ORIGIN);
	c = end_capture(1);
	launch(c, 3, 1);
	fake_drain();
	ok(!wrong(again, 3, 10) && !wrong(s, 1, 11), "what nobody has seen written is preserved");
	outcomes(1, 0, 0, "foreign writes");
	rs_capture_unref(c);
	rig_stop();
}

static void test_draws(void)
{
	struct rs_access out;
	struct rs_call call = {
		.name = "draw", .kind = RS_CALL_OTHER, .q = RIG_Q(ORIGIN), .capturing = 1};
	struct rs_capture *c;
	int served[2], i;

	start(RS_MODE_PRESERVE);
	make_memory();
	begin_capture();
	for (i = 0; i < 2; i++) {
		uint32_t *to = i ? again : y;

		out = (struct rs_access){
			.addr = (uint64_t)to, .bytes = N * 4, .dir = RS_WRITE, .dense = 1};
		call.access = &out;
		call.naccess = 1;
		memset(call.private_, 0, sizeof(call.private_));
		PUSH(i ? "replay:f" : "forward:f");
		rs_engine_before(eng, thr, &call);
		served[i] = rs_engine_draw(eng, thr, &call, 1, (uint64_t)i);
		if (!served[i]) {
			/* the library's kernel: what it draws at each launch is the next number */
			struct rig_body *b = malloc(sizeof(*b));

			*b = (struct rig_body){add, {RW_(to, N), R_(delta, 1)}};
			cap.node[cap.n++] =
				(struct fake_op){.kind = FAKE_CALL, .fn = rig_run, .arg = b};
			rs_engine_drawn(eng, thr, &call, 1, (uint64_t)i);
		}
		rs_engine_after(eng, thr, &call, 1);
		POP();
	}
	c = end_capture(1);
	ok(!served[0] && served[1], "a captured replay is served what its forward draws");
	launch(c, 3, 1);
	launch(c, 3, 1);
	fake_drain();
	ok(y[0] == 2 && again[0] == 2, "at each launch anew");
	outcomes(2, 0, 0, "draws");
	rs_capture_unref(c);
	rig_stop();
}

/* --- what is recorded ------------------------------------------------------------------------------- */

/* The state changes at some launches and at others not: each record is of its own launch, whatever the queue. */
static void test_each_launch(unsigned seed)
{
	struct rs_capture *c;
	unsigned i, changed = 0;

	start(RS_MODE_AUDIT);
	fake_reset(seed, 0);
	make_memory();
	c = capture_step(ORIGIN);
	for (i = 0; i < 6; i++) {

		/* the program's own order of its launches: one after the other, on two queues */
		fake_drain();
		*delta = (seed >> i) % 2;
		changed += *delta;
		launch(c, 3 + i % 2, 1);
	}
	fake_drain();
	outcomes(6 - changed, 0, changed, "launches with and without a change");
	rs_capture_unref(c);
	rig_stop();
}

/* A launch on another queue comes after the copy of the results of the one before, though the program waits for its graph only. */
static void test_results_in_order(void)
{
	unsigned seed, bad = 0;

	for (seed = 1; seed <= 200; seed++) {
		struct rs_capture *c;
		uint64_t event;
		const char *text;

		start(RS_MODE_AUDIT);
		fake_reset(seed, 0);
		fake.lazy = 3;
		make_memory();
		c = capture_step(ORIGIN);
		*delta = 0;
		rs_capture_launches(c, RIG_Q(3));
		run_nodes(3);
		fake_event_record(NULL, RIG_Q(3), &event); /* the graph's end, before our copy */
		rs_capture_launched(c, RIG_Q(3), 1, 1);
		fake_event_wait(NULL, RIG_Q(4), event);
		{
			struct rig_body *b = malloc(sizeof(*b));
			static uint32_t one[1] = {1};

			*b = (struct rig_body){add, {RW_(delta, 1), R_(one, 1)}};
			fake_call(4, rig_run, b);
		}
		launch(c, 4, 1);
		fake_run(1000); /* in any order that is allowed */
		fake_drain();
		text = rig_read("records.jsonl");
		bad += count(text, "\"outcome\":\"match\"") != 1 ||
		       count(text, "\"outcome\":\"divergence\"") != 1;
		rs_capture_unref(c);
		rig_stop();
	}
	is_u64(bad, 0, "results of one launch are not those of the next");
}

static void test_audit(void)
{
	struct rs_capture *c;
	const char *text;

	start(RS_MODE_AUDIT);
	make_memory();
	c = capture_step(ORIGIN);
	launch(c, 3, 1);
	fake_drain();
	ok(!wrong(again, 3, 11) && !wrong(s, 1, 11), "an audit changes nothing");
	outcomes(0, 0, 1, "audit");
	text = rig_read("events.jsonl");
	ok(strstr(text, "RS010") && strstr(text, "\"name\":\"add\"") &&
		   strstr(text, "\"name\":\"s\""),
	   "state and writer are named");
	rs_capture_unref(c);
	rig_stop();
}

/* --- what is rejected ------------------------------------------------------------------------------- */

static void is_refused(const char *what)
{
	const char *text;

	outcomes(0, 1, 0, what);
	text = rig_read("records.jsonl");
	ok(strstr(text, "RS030") != NULL, "%s: RS030", what);
}

static void test_refused(void)
{
	struct rs_capture *c, *d;

	start(RS_MODE_PRESERVE);
	make_memory();
	c = capture_step(ORIGIN);
	launch(c, 3, 0);
	fake_drain();
	is_refused("a graph that was changed");
	rs_capture_unref(c);
	rig_stop();

	start(RS_MODE_PRESERVE);
	make_memory();
	c = capture_step(ORIGIN);
	rs_capture_embedded(c);
	is_refused("a graph in another one");
	rs_capture_unref(c);
	rig_stop();

	start(RS_MODE_PRESERVE);
	make_memory();
	begin_capture();
	forward();
	c = end_capture(1);
	begin_capture();
	replay_on(ORIGIN);
	d = end_capture(1);
	is_refused("forward and replay in two captures");
	rs_capture_unref(c);
	rs_capture_unref(d);
	rig_stop();

	start(RS_MODE_PRESERVE);
	make_memory();
	PUSH("forward:f");
	KERNEL(triple, R_(s, N), W_(y, N));
	POP();
	begin_capture();
	replay_on(ORIGIN);
	c = end_capture(1);
	is_refused("only the replay is captured");
	ok(!c, "and nothing is in its graph");
	rig_stop();

	start(RS_MODE_PRESERVE);
	make_memory();
	begin_capture();
	forward();
	c = end_capture(1);
	PUSH("replay:f");
	KERNEL(triple, R_(s, N), W_(again, N));
	POP();
	fake_drain();
	is_refused("only the forward is captured");
	rs_capture_unref(c);
	rig_stop();
}

/* A node that no call has made. */
static void add_by_hand(void)
{
	struct rig_body *b = calloc(1, sizeof(*b));

	b->fn = nothing;
	cap.node[cap.n++] = (struct fake_op){.kind = FAKE_CALL, .fn = rig_run, .arg = b};
}

/* A node that the program has put into the graph itself, in the middle or at the end. */
static void test_by_hand(int at_end)
{
	struct rs_capture *c;

	start(RS_MODE_PRESERVE);
	make_memory();
	begin_capture();
	forward();
	if (!at_end)
		add_by_hand();
	replay_on(ORIGIN);
	if (at_end)
		add_by_hand();
	c = end_capture(1);
	launch(c, 3, 1);
	fake_drain();
	is_refused("a node that no call has made");
	rs_capture_unref(c);
	rig_stop();

	start(RS_MODE_PRESERVE);
	make_memory();
	begin_capture();
	forward();
	rs_engine_capture_unseen(eng, RIG_Q(ORIGIN), 1);
	add_by_hand();
	rs_engine_capture_unseen(eng, RIG_Q(ORIGIN), 0);
	replay_on(ORIGIN);
	c = end_capture(1);
	launch(c, 3, 1);
	fake_drain();
	outcomes(1, 0, 0, "a node that is known to write nothing");
	rs_capture_unref(c);
	rig_stop();
}

/* The forward of that name and number that counts has run since. */
static void test_run_again(void)
{
	struct rs_capture *c;

	start(RS_MODE_PRESERVE);
	make_memory();
	begin_capture();
	PUSH("forward:f#0");
	CAPTURED(triple, R_(s, N), W_(y, N));
	POP();
	PUSH("forward:f#0");
	kernel_q(5, "triple", triple, 2, (struct rig_arg[]){R_(s, N), W_(y, N)});
	POP();
	PUSH("replay:f#0");
	CAPTURED(triple, R_(s, N), W_(again, N));
	POP();
	c = end_capture(1);
	is_refused("a forward that was captured, and has run again");
	rs_capture_unref(c);
	rig_stop();
}

/* A replay of which some has run is judged as that. */
static void test_mixed(void)
{
	struct rs_capture *c;

	start(RS_MODE_PRESERVE);
	make_memory();
	begin_capture();
	forward();
	PUSH("replay:f");
	CAPTURED(triple, R_(s, N), W_(again, N));
	kernel_q(5, "triple", triple, 2, (struct rig_arg[]){R_(s, N), W_(again, N)});
	POP();
	c = end_capture(1);
	outcomes(0, 1, 0, "one record for what ran");
	launch(c, 3, 1);
	fake_drain();
	outcomes(0, 2, 0, "one for what was captured: neither is a match");
	rs_capture_unref(c);
	rig_stop();
}

/* A forward of which some has run, be it a call that touches nothing: it is not all in the graph. */
static void test_half_forward(void)
{
	struct rs_capture *c;

	start(RS_MODE_PRESERVE);
	make_memory();
	begin_capture();
	PUSH("forward:f");
	rig_calm.calls = 0; /* it is looked up */
	kernel_q(5, "nothing", nothing, 0, NULL);
	CAPTURED(triple, R_(s, N), W_(y, N));
	POP();
	overwrite();
	replay_on(ORIGIN);
	c = end_capture(1);
	is_refused("a forward of which some has run");
	rs_capture_unref(c);
	rig_stop();
}

/* --- what is left ----------------------------------------------------------------------------------- */

static void test_memory(void)
{
	struct rs_capture *c, *more[2];
	const char *text;
	unsigned i;

	start(RS_MODE_PRESERVE);
	make_memory();
	c = capture_step(ORIGIN);
	ok(fake.live_blocks > 0, "a graph's blocks live with it");
	fake.eager = 0;
	fake.lazy = 10; /* the launch has not run yet */
	rs_capture_ref(c);
	launch(c, 3, 1);
	rs_capture_unref(c);
	rs_capture_unref(c);
	ok(fake.live_blocks > 0, "and with its launches");
	fake_drain();
	outcomes(1, 0, 0, "a launch of what is gone");
	is_u64(fake.live_blocks, 0, "not longer");
	begin_capture();
	forward();
	overwrite();
	ok(!end_capture(0), "a capture that fails");
	is_u64(fake.live_blocks, 0, "leaves nothing");
	rig_stop();

	rig_snapshot_max = 1024;
	start(RS_MODE_PRESERVE);
	make_memory();
	c = capture_step(ORIGIN);
	launch(c, 3, 1);
	fake_drain();
	outcomes(1, 0, 0, "within the limit");
	for (i = 0; i < 2; i++) {
		more[i] = capture_step(ORIGIN);
		launch(more[i], 3, 1);
		fake_drain();
	}
	text = rig_read("records.jsonl");
	ok(count(text, "match") == 2 && count(text, "RS018") == 1,
	   "what is captured counts against the limit");
	rs_capture_unref(more[1]);
	rs_capture_unref(more[0]);
	rs_capture_unref(c);
	c = capture_step(ORIGIN);
	launch(c, 3, 1);
	fake_drain();
	is_u64(count(rig_read("records.jsonl"), "match"), 3, "and is given back to it");
	rs_capture_unref(c);
	rig_stop();
	rig_snapshot_max = 0;
}

/* Each operation of the tool's own fails in turn: no record is a match unless the bytes are right. */
static void test_failures(void)
{
	unsigned n, bad = 0, matches = 0, tried = 0;

	for (n = 1; n < 12; n++) {
		struct rs_capture *c;
		const char *text;
		unsigned m;

		start(RS_MODE_PRESERVE);
		make_memory();
		begin_capture();
		cap.fail_after = (int)n + 1;
		forward();
		overwrite();
		replay_on(ORIGIN);
		tried += cap.fail_after == 1;
		cap.fail_after = 0;
		c = end_capture(1);
		launch(c, 3, 1);
		fake_drain();
		text = rig_read("records.jsonl");
		m = count(text, "\"outcome\":\"match\"");
		matches += m;
		bad += m && (wrong(again, 3, 10) || wrong(s, 1, 11));
		bad += count(text, "\"t\":\"replay\"") != 1;
		rs_capture_unref(c);
		rig_stop();
	}
	is_u64(bad, 0, "no false match when operations fail");
	ok(tried > 3 && matches > 0, "%u of the tool's operations failed", tried);
}

int main(void)
{
	unsigned seed;

	test_preserved();
	test_origin();
	test_ends();
	test_foreign();
	test_draws();
	for (seed = 1; seed < 5; seed++)
		test_each_launch(seed * 13);
	test_results_in_order();
	test_audit();
	test_refused();
	test_run_again();
	test_by_hand(0);
	test_by_hand(1);
	test_mixed();
	test_half_forward();
	test_memory();
	test_failures();
	drop_nodes();
	return tap_done();
}
