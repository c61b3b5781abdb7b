/* SPDX-License-Identifier: MIT */
/*
 * What a captured segment's contract is learned from: the lines are those of the same calls when they run, also where the
 * capture is followed for nothing else; then its graph has no node of the tool's, and its replays are rejected.
 */
#include "tests/unit/capture_dev.h"

#define N 8u

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

static void set_up(enum rs_mode mode, enum rs_captures how, int learns)
{
	cap.how = how;
	cap.learns = learns;
	start(mode);
	cap.how = RS_CAPTURES_OFF;
	cap.learns = 0;
	s = words(N);
	y = words(N);
	again = words(N);
	delta = words(1);
	rs_engine_region(eng, (uint64_t)s, N * 4, "state:s");
	*delta = 1;
}

/* Half of the state is overwritten between forward and replay; the forward has two arguments in the same memory. */
static void step(void)
{
	PUSH("forward:f");
	CAPTURED(triple, R_(s, N), W_(y, N));
	CAPTURED(add, RW_(y, N), R_(s, 1));
	POP();
	CAPTURED(add, RW_(s, N / 2), R_(delta, 1));
	PUSH("replay:f");
	CAPTURED(triple, R_(s, N), W_(again, N));
	CAPTURED(add, RW_(again, N), R_(s, 1));
	POP();
	CAPTURED(add, RW_(s, N), R_(delta, 1)); /* after the last replay: of no account */
}

/* The same, at once. */
static void run(void)
{
	PUSH("forward:f");
	KERNEL(triple, R_(s, N), W_(y, N));
	KERNEL(add, RW_(y, N), R_(s, 1));
	POP();
	KERNEL(add, RW_(s, N / 2), R_(delta, 1));
	PUSH("replay:f");
	KERNEL(triple, R_(s, N), W_(again, N));
	KERNEL(add, RW_(again, N), R_(s, 1));
	POP();
	KERNEL(add, RW_(s, N), R_(delta, 1));
}

static int is_line(const char *line, const char *what)
{
	const char *t = strstr(line, "\"t\":\"");

	return t && t < strchr(line, '\n') && !strncmp(t + 5, what, strlen(what)) &&
	       t[5 + strlen(what)] == '"';
}

/* The lines of the run, without the time. */
static void learned(char *ret, size_t size)
{
	const char *text, *line;
	size_t n = 0;

	fake_drain();
	rs_engine_learned(eng);
	text = rig_read("events.jsonl");
	for (line = text; *line; line = strchr(line, '\n') + 1) {
		const char *end = strchr(line, '\n'), *time = strstr(line, "\"host_ns\":");

		if (!is_line(line, "segment") && !is_line(line, "state") && !is_line(line, "alias"))
			continue;
		for (; line < end && n + 1 < size; line++)
			if (!time || line < time || line >= strchr(time, ','))
				ret[n++] = *line;
		ret[n++] = '\n';
	}
	ret[n] = 0;
}

static void test_same(enum rs_mode mode, enum rs_captures how)
{
	static char ran[8192], captured[8192];
	struct rs_capture *c;
	unsigned nodes;

	set_up(mode, how, 1);
	run();
	learned(ran, sizeof(ran));
	rig_stop();

	set_up(mode, how, 1);
	begin_capture();
	step();
	nodes = cap.n;
	c = end_capture(1);
	launch(c, 3, 1);
	launch(c, 3, 1);
	learned(captured, sizeof(captured));
	ok(strstr(ran, "\"region\":\"s\"") && strstr(ran, "[0,16]") && strstr(ran, "\"cut\":false"),
	   "what runs is learned");
	is_str(captured, ran, "what is captured is learned as it is");
	if (how == RS_CAPTURES_LEARN) {
		is_u64(nodes, 6, "the graph has the program's nodes only");
		outcomes(0, 1, 0, "it is told once that nobody vouches for the replay");
		ok(!c && strstr(rig_read("records.jsonl"), "RS030"), "which is captured");
	} else {
		outcomes(mode == RS_MODE_PRESERVE ? 2 : 0, 0, mode == RS_MODE_PRESERVE ? 0 : 2,
			 "each launch is judged");
	}
	rs_capture_unref(c);
	rig_stop();
}

/* Some of it runs: then there was more than can be told. */
static void test_mixed(void)
{
	static char text[8192];

	set_up(RS_MODE_AUDIT, RS_CAPTURES_LEARN, 1);
	begin_capture();
	PUSH("forward:f");
	CAPTURED(triple, R_(s, N), W_(y, N));
	kernel_q(5, "add", add, 2, (struct rig_arg[]){RW_(y, N), R_(s, 1)});
	POP();
	ok(!end_capture(1), "nothing is left of it");
	learned(text, sizeof(text));
	ok(strstr(text, "\"cut\":true") && strstr(text, "\"captured\":true"),
	   "a forward of which some ran is not told as a whole");
	rig_stop();
}

int main(void)
{
	test_same(RS_MODE_AUDIT, RS_CAPTURES_LEARN);
	test_same(RS_MODE_AUDIT, RS_CAPTURES_FOLLOW);
	test_same(RS_MODE_PRESERVE, RS_CAPTURES_FOLLOW);
	test_mixed();
	drop_nodes();
	return tap_done();
}
