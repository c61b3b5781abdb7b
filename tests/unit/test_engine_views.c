/* SPDX-License-Identifier: MIT */
/*
 * Threads at the same bytes: replays of two threads that overlap, and calls of a thread while another one replays. Each must
 * find its own bytes, whatever the order of the calls. One thread of the test's plays them all; see test_engine_threads.c for
 * several.
 */
#include "tests/unit/engine_rig.h"

#define N 1024 /* a page */

static struct rs_thread *one, *two;
static uint32_t *s, *x, *y, *z;
static int restore;

static void times10(struct rig_arg *a)
{
	for (unsigned i = 0; i < a[0].n; i++)
		a[0].p[i] = 10 * a[1].p[i];
}

/* The product is what it found; the state moves on. */
static void step_on(struct rig_arg *a)
{
	for (unsigned i = 0; i < a[0].n; i++) {
		a[0].p[i] = 10 * a[1].p[i];
		a[1].p[i]++;
	}
}

static void set9(struct rig_arg *a)
{
	for (unsigned i = 0; i < a[0].n; i++)
		a[0].p[i] = 9;
}

static void add100(struct rig_arg *a)
{
	for (unsigned i = 0; i < a[0].n; i++)
		a[0].p[i] += 100;
}

/* Each thread has a stream of its own. */
static void on(struct rs_thread *t, void (*fn)(struct rig_arg *), unsigned n,
	       const struct rig_arg *a)
{
	thr = t;
	kernel_q(t == one ? 1 : 2, "kernel", fn, n, a);
	thr = one;
}
#define ON(t, fn, ...)                                                                             \
	on(t, fn, sizeof((struct rig_arg[]){__VA_ARGS__}) / sizeof(struct rig_arg),                \
	   (struct rig_arg[]){__VA_ARGS__})

static void push(struct rs_thread *t, const char *text)
{
	rs_engine_push(eng, t, text);
}

static void pop(struct rs_thread *t)
{
	rs_engine_pop(eng, t);
}

/* A page that is a mapping of its own. */
static uint32_t *mapped(uint64_t handle)
{
	uint32_t *p = fake_map(N * 4);

	rs_engine_backing(eng, handle, N * 4, RS_ALLOC_DEVICE);
	rs_engine_map(eng, (uint64_t)p, N * 4, handle, 0);
	return p;
}

static void start(void)
{
	rig_start(RS_MODE_PRESERVE);
	rs_engine_policy(eng, NULL, (struct rs_policy){RS_OPTION_UNDO, (uint8_t)restore});
	one = thr;
	two = rs_thread_create(eng);
	s = mapped(7);
	x = words(N);
	y = words(N);
	z = words(N);
	for (unsigned i = 0; i < N; i++)
		s[i] = 3;
	STEP(1);
}

static void all_match(unsigned replays, const char *what)
{
	static const char *const how[] = {"copy", "swap", "remap"};
	const char *records;

	fake_drain();
	records = rig_read("records.jsonl");
	ok(count(records, "\"outcome\":\"match\"") == replays, "%s, %s: every replay is a match",
	   how[restore], what);
	if (count(records, "\"t\":\"replay\"") != count(records, "\"outcome\":\"match\""))
		tap_diag("%s", records);
	thr = one;
	rs_thread_destroy(two);
	rig_stop();
}

static void is_all(const uint32_t *p, uint32_t want, const char *what)
{
	unsigned wrong = 0;

	fake_drain();
	for (unsigned i = 0; i < N; i++)
		wrong += p[i] != want;
	ok(!wrong, "%s (%u, not %u)", what, p[0], want);
}

/* Segments a (of thread one: x from s) and b (of thread two: y and z from s), and then s is overwritten. */
static void forwards(void)
{
	push(one, "forward:a");
	ON(one, times10, W_(x, N), R_(s, N));
	pop(one);
	push(two, "forward:b");
	ON(two, times10, W_(y, N), R_(s, N));
	ON(two, times10, W_(z, N), R_(s, N));
	pop(two);
	ON(one, set9, W_(s, N));
	memset(x, 0, N * 4);
	memset(y, 0, N * 4);
	memset(z, 0, N * 4);
}

/* The first to come is the first to end, while the other one has still to read. */
static void overlapping(int first_ends)
{
	start();
	forwards();
	push(one, "replay:a");
	ON(one, times10, W_(x, N), R_(s, N));
	push(two, "replay:b");
	ON(two, times10, W_(y, N), R_(s, N));
	if (first_ends)
		pop(one);
	ON(two, times10, W_(z, N), R_(s, N));
	pop(two);
	if (!first_ends)
		pop(one);
	is_all(x, 30, "the first sees what it saw");
	is_all(y, 30, "so does the other one");
	is_all(z, 30, "in each of its calls");
	is_all(s, 9, "and the state is what it was");
	all_match(2, "overlapping replays");
}

/* The other thread goes on: it reads, has a forward of its own, and writes. */
static void beside(void)
{
	start();
	forwards();
	push(two, "replay:b");
	ON(two, times10, W_(y, N), R_(s, N));
	ON(one, times10, W_(x, N), R_(s, N));
	is_all(x, 90, "a call beside a replay finds the program's bytes");
	ON(two, times10, W_(z, N), R_(s, N));
	is_all(z, 30, "the replay its own again");
	push(one, "forward:c");
	ON(one, times10, W_(x, N), R_(s, N));
	pop(one);
	is_all(x, 90, "and a forward those of the program");
	ON(one, add100, RW_(s, N / 2));
	pop(two);
	fake_drain();
	ok(s[0] == 109 && s[N - 1] == 9, "what was written beside it stays (%u, %u)", s[0],
	   s[N - 1]);
	memset(x, 0, N * 4);
	push(one, "replay:c");
	ON(one, times10, W_(x, N), R_(s, N));
	pop(one);
	is_all(x, 90, "that forward's replay sees what it saw");
	push(two, "replay:b");
	ON(two, times10, W_(y, N), R_(s, N));
	ON(one, add100, RW_(s, N));
	ON(two, times10, W_(z, N), R_(s, N));
	pop(two);
	is_all(z, 30, "so does another replay, while all is overwritten");
	ok(s[0] == 209 && s[N - 1] == 109, "which stays (%u, %u)", s[0], s[N - 1]);
	all_match(3, "calls beside a replay");
}

/* A replay that writes its state finds what it wrote, and nobody else does. */
static void written(void)
{
	start();
	push(two, "forward:b");
	ON(two, step_on, W_(y, N), RW_(s, N));
	ON(two, step_on, W_(z, N), RW_(s, N));
	pop(two);
	ON(one, add100, RW_(s, N)); /* 105 */
	for (unsigned k = 0; k < 2; k++) {
		memset(y, 0, N * 4);
		memset(z, 0, N * 4);
		push(two, "replay:b");
		ON(two, step_on, W_(y, N), RW_(s, N));
		ON(one, times10, W_(x, N), R_(s, N));
		is_all(x, 1050, "a call beside a replay that has written");
		ON(two, step_on, W_(z, N), RW_(s, N));
		if (k)
			ON(one, times10, W_(x, N), R_(s, N));
		pop(two);
		is_all(y, 30, "the replay's first call");
		is_all(z, 40, "and the second one");
		is_all(s, 105, "leave the state");
	}
	all_match(2, "state that the replay writes");
}

/* It is not there when its replay ends, or is given up; and memory that goes meanwhile. */
static void away(int aborted)
{
	start();
	forwards();
	push(two, "replay:b");
	ON(two, times10, W_(y, N), R_(s, N));
	ON(two, times10, W_(z, N), R_(s, N));
	ON(one, add100, RW_(s, N));
	if (aborted)
		rs_engine_mark(eng, two, "step:2");
	pop(two);
	is_all(s, 109, "the end of a replay that was not shown it any more leaves it alone");
	all_match(1, "away at the end");
}

static void no_memory(void)
{
	start();
	forwards();
	push(two, "replay:b");
	ON(two, times10, W_(y, N), R_(s, N));
	fake.fail_alloc = -1;
	fake.fail_frame = -1;
	ON(one, times10, W_(x, N), R_(s, N));
	fake.fail_alloc = fake.fail_frame = 0;
	ON(two, times10, W_(z, N), R_(s, N));
	pop(two);
	is_all(x, 90, "the program's bytes come first");
	is_all(s, 9, "and stay");
	ok(z[0] == 30 || count(rig_read("records.jsonl"), "RS018"),
	   "a replay that has lost its own is no match");
	thr = one;
	rs_thread_destroy(two);
	rig_stop();
}

/* Segment b reads s and counts it up; then a, which reads it twice, finds what b has left. */
static uint32_t *start_seen(void)
{
	uint32_t *w;

	start();
	w = words(N);
	push(two, "forward:b");
	ON(two, times10, W_(z, N), R_(s, N));
	ON(two, step_on, W_(y, N), RW_(s, N));
	pop(two);
	push(one, "forward:a");
	ON(one, times10, W_(x, N), R_(s, N));
	ON(one, times10, W_(w, N), R_(s, N));
	pop(one);
	fake_drain();
	memset(w, 0, N * 4);
	push(one, "replay:a");
	ON(one, times10, W_(x, N), R_(s, N));
	return w;
}

/* What a replay has seen are the program's bytes; what another one is shown there, and writes to, are not. */
static void seen_under_another(void)
{
	uint32_t *w = start_seen();

	push(two, "replay:b");
	ON(two, times10, W_(z, N), R_(s, N));
	ON(two, step_on, W_(y, N), RW_(s, N));
	pop(two);
	ON(one, times10, W_(w, N), R_(s, N));
	pop(one);
	is_all(w, 40, "a replay finds what it has seen before, not what another one was shown");
	is_all(z, 30, "which has found its own");
	is_all(s, 4, "and the state is the program's");
	all_match(2, "seen under another one");
}

/*
 * The same, but when it comes back to them, or the other one ends first, the n-th copy fails that puts them there. Nothing but
 * that tells.
 */
static void seen_and_lost(int n, int ends)
{
	uint32_t *w;
	int right;

	rig_verify = 0;
	w = start_seen();
	push(two, "replay:b");
	ON(two, times10, W_(z, N), R_(s, N));
	fake_drain();
	fake.fail_copy = n;
	if (ends)
		pop(two);
	ON(one, times10, W_(w, N), R_(s, N));
	fake.fail_copy = 0;
	pop(one);
	if (!ends)
		pop(two);
	fake_drain();
	right = w[0] == 40 && s[0] == 4;
	ok(right || count(rig_read("records.jsonl"), "RS018") == 2,
	   "copy %d of what a replay has seen fails: both know it, or all is right (%u, %u)", n,
	   w[0], s[0]);
	thr = one;
	rs_thread_destroy(two);
	rig_stop();
	rig_verify = 1;
}

/* A replay holds the program's bytes, and they are there: what the program writes then is what stays. */
static void held_and_there(void)
{
	uint32_t *w = start_seen();

	push(two, "replay:b");
	ON(two, step_on, W_(y, N), RW_(s, N));
	pop(two);
	ON(one, times10, W_(w, N), R_(s, N));
	ON(two, set9, W_(s, N));
	pop(one);
	is_all(w, 40, "a replay finds what it has seen before");
	is_all(s, 9, "a write to state that a replay holds without a need stays");
	fake_drain();
	ok(!count(rig_read("records.jsonl"), "RS018"), "nothing is lost");
	thr = one;
	rs_thread_destroy(two);
	rig_stop();
}

/* The same, but another replay is shown its own bytes there. */
static void held_and_another_shown(void)
{
	uint32_t *w = start_seen();

	for (int i = 0; i < 2; i++) {
		push(two, "replay:b#0");
		if (i)
			ON(two, times10, W_(z, N), R_(s, N));
		ON(two, step_on, W_(y, N), RW_(s, N));
		pop(two);
		if (!i)
			ON(one, times10, W_(w, N), R_(s, N));
	}
	pop(one);
	is_all(w, 40, "a replay finds what it has seen before");
	is_all(y, 30, "what another one is shown is not the first one's to take away");
	is_all(s, 4, "and the state is the program's");
	thr = one;
	rs_thread_destroy(two);
	rig_stop();
}

/* All that a replay holds comes back to it at once, also where its next call touches a part and another one is shown the rest. */
static void part_comes_back(void)
{
	start();
	push(one, "forward:a");
	ON(one, times10, W_(x, N), R_(s, N));
	pop(one);
	ON(one, set9, W_(s, N));
	push(two, "forward:b");
	ON(two, step_on, W_(y, N / 2), RW_(s + N / 2, N / 2));
	ON(two, step_on, W_(z, 64), RW_(s + N / 2, 64));
	pop(two);
	ON(one, add100, RW_(s, N)); /* 109, 111, 110 */
	push(one, "replay:a");
	ON(one, times10, W_(x, N), R_(s, N));
	push(two, "replay:b");
	ON(two, step_on, W_(y, N / 2), RW_(s + N / 2, N / 2));
	ON(two, step_on, W_(z, 64), RW_(s + N / 2, 64));
	ON(one, times10, W_(x, 16), R_(s, 16));
	pop(two);
	memset(x, 0, N * 4);
	ON(one, times10, W_(x, N), R_(s, N));
	pop(one);
	is_all(x, 30, "a replay keeps what came back to it when another one ends");
	ok(y[0] == 90 && z[0] == 100, "which has found its own (%u, %u)", y[0], z[0]);
	ok(s[0] == 109 && s[N / 2] == 111 && s[N - 1] == 110, "and the state is the program's");
	thr = one;
	rs_thread_destroy(two);
	rig_stop();
}

/* Replays inside of another one: what the outer one is shown is what the inner one has seen, or lies under what it is shown. */
static void inside_of_another(int writes)
{
	start();
	push(two, "forward:a");
	ON(two, times10, W_(x, N), R_(s, N));
	pop(two);
	push(two, "forward:b");
	ON(two, times10, W_(y, N), R_(s, N));
	pop(two);
	ON(one, add100, RW_(s, N)); /* 103 */
	push(two, "forward:c");
	ON(two, times10, W_(z, 64), R_(s + 512, 64));
	pop(two);
	ON(one, set9, W_(s, N));
	push(two, "replay:a");
	ON(two, times10, W_(x, N), R_(s, N));
	push(two, "replay:b");
	ON(two, times10, W_(y, N), R_(s, N));
	ON(one, writes ? add100 : times10, W_(writes ? s : x, 64), R_(s, 64));
	memset(y, 0, N * 4);
	ON(two, times10, W_(y, N), R_(s, N));
	pop(two);
	is_all(y, 30, "an inner replay finds what it has seen in the outer one");
	ON(two, times10, W_(y, N), R_(s, N));
	push(two, "replay:c");
	ON(two, times10, W_(z, 64), R_(s + 512, 64));
	ON(one, times10, W_(x, 64), R_(s, 64));
	is_u64(x[0], writes ? 1090 : 90, "a call beside both finds the program's bytes");
	ON(two, times10, W_(z, 64), R_(s + 512, 64));
	pop(two);
	is_u64(z[0], 1030, "an inner replay is shown its own on top of the outer one's");
	ON(two, times10, W_(y, N), R_(s, N));
	pop(two);
	is_all(y, 30, "and the outer one its own again");
	fake_drain();
	ok(s[0] == (writes ? 109 : 9) && s[N - 1] == 9, "the state is the program's (%u, %u)", s[0],
	   s[N - 1]);
	thr = one;
	rs_thread_destroy(two);
	rig_stop();
}

/* Versions of whole buffers: one write goes over what a replay holds, and what it does not hold yet. */
static void whole_buffers(void)
{
	rig_buffers = 1;
	start();
	push(one, "forward:a");
	ON(one, times10, W_(x, N), R_(s, N));
	pop(one);
	push(one, "replay:a");
	ON(one, times10, W_(x, N), R_(s, N));
	ON(one, step_on, W_(y, 64), RW_(s, 64));
	ON(one, step_on, W_(y, 64), RW_(s + 512, 64));
	ON(one, step_on, W_(z, N), RW_(s, N));
	pop(one);
	is_all(s, 3, "versions of buffers: all that a replay writes comes back");
	rig_buffers = 0;
	thr = one;
	rs_thread_destroy(two);
	rig_stop();
}

/* Another thread's step begins while a replay is open: its segment is retired, but what it does is still followed. */
static void step_meanwhile(void)
{
	for (int shown = 0; shown < 2; shown++) {
		rig_verify = 0; /* nothing but its entry tells */
		start();
		push(one, "forward:a");
		ON(one, times10, W_(x, N), R_(s, N));
		pop(one);
		if (shown)
			ON(one, set9, W_(s, N));
		push(one, "replay:a");
		if (shown)
			ON(one, times10, W_(x, N), R_(s, N));
		rs_engine_mark(eng, two, "step:2");
		ON(two, shown ? times10 : set9, W_(shown ? y : s, N), R_(shown ? s : y, N));
		if (shown)
			is_all(y, 90, "a call of the new step finds the program's bytes");
		ON(one, times10, W_(x, N), R_(s, N));
		ON(one, step_on, W_(z, N), RW_(s, N));
		pop(one);
		is_all(s, 9, "what a replay writes whose step is over is put back");
		ok(x[0] == 30 || !count(rig_read("records.jsonl"), "\"match\""),
		   "nor is it a match where it has found other bytes (%u)", x[0]);
		thr = one;
		rs_thread_destroy(two);
		rig_stop();
		rig_verify = 1;
	}
}

/* Without step markers a forward of the same name begins a new step, but not while a replay of the old one goes on. */
static void implied_step(void)
{
	rig_start(RS_MODE_PRESERVE);
	one = thr;
	two = rs_thread_create(eng);
	s = words(N), x = words(N), y = words(N);
	push(one, "forward:a");
	ON(one, times10, W_(x, N), R_(s, N));
	pop(one);
	ON(one, set9, W_(s, N));
	push(one, "replay:a");
	push(two, "forward:a");
	ON(two, times10, W_(y, N), R_(s, N));
	pop(two);
	ON(one, times10, W_(x, N), R_(s, N));
	pop(one);
	is_all(x, 0, "a replay is shown its own though another thread begins the same forward");
	is_all(y, 90, "which finds the program's bytes");
	all_match(1, "a forward of the same name meanwhile");
}

int main(void)
{
	for (restore = 0; restore < RS_RESTORES; restore++) {
		overlapping(1);
		overlapping(0);
		beside();
		written();
		away(0);
		away(1);
		no_memory();
		seen_under_another();
		for (int n = 1; n < 4; n++) {
			seen_and_lost(n, 0);
			seen_and_lost(n, 1);
		}
		held_and_there();
		held_and_another_shown();
		part_comes_back();
		inside_of_another(0);
		inside_of_another(1);
		whole_buffers();
		step_meanwhile();
		implied_step();
	}
	return tap_done();
}
