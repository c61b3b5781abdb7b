/* SPDX-License-Identifier: MIT */
/*
 * The options of preservation and what contracts say: when bytes are preserved, how many, what contradicts a
 * contract. That the bytes are right under every option is test_engine_random's business.
 */
#include "tests/unit/engine_rig.h"

#define N 65536u /* words: four pages of 64 KiB */

static struct rs_engine_stats now(void)
{
	struct rs_engine_stats s;

	fake_drain();
	rs_engine_poll(eng);
	rs_engine_finish(eng);
	rs_engine_stats(eng, &s);
	return s;
}

/* y = first, middle and last word of x */
static void three(struct rig_arg *a)
{
	uint32_t *x = a[1].p;

	a[0].p[0] = x[0] + 10 * x[N / 2] + 100 * x[N - 1];
}

static void set_middle(struct rig_arg *a)
{
	a[0].p[N / 2] = 7;
}

static void set_all(struct rig_arg *a)
{
	for (unsigned i = 0; i < N; i++)
		a[0].p[i] = 9;
}

static void policy(enum rs_option option, enum rs_restore restore)
{
	ok(!rs_engine_policy(eng, NULL, (struct rs_policy){(uint8_t)option, (uint8_t)restore}),
	   "policy %d/%d", option, restore);
}

static void forward(uint32_t *y, uint32_t *x)
{
	PUSH("forward:f");
	KERNEL(three, W_(y, 1), R_(x, N));
	POP();
}

static void replay(uint32_t *y, uint32_t *x)
{
	PUSH("replay:f#0");
	KERNEL(three, W_(y, 1), R_(x, N));
	POP();
}

#define OPAQUE(fn, p) KERNEL(fn, {p, 0, N, RS_READ | RS_WRITE, 1, 1})

/* When the copy is made, and how much of it remains. */
static void when(enum rs_option option, uint64_t at_forward, uint64_t after_write, uint64_t later)
{
	uint32_t *x, *y;

	rig_start(RS_MODE_PRESERVE);
	policy(option, RS_RESTORE_COPY);
	x = words(N), y = words(1);
	x[0] = 1, x[N / 2] = 2, x[N - 1] = 3;
	forward(y, x);
	is_u64(now().snapshot_bytes, at_forward, "preserved after the forward");
	OPAQUE(set_middle, x);
	if (option != RS_OPTION_PAGES)
		is_u64(now().snapshot_bytes, after_write, "after a write");
	is_u64(now().snapshot_bytes, later, "once the device has answered");
	OPAQUE(set_all, x);
	replay(y, x);
	replay(y, x);
	is_u64(now().outcome[0], 2, "replays match");
	is_u64(y[0], 321, "with the bytes of the forward");
	ok(x[0] == 9 && x[N / 2] == 9, "and the present ones come back");
	rig_stop();
}

static void set_first(struct rig_arg *a)
{
	a[0].p[0] = 5;
}

/* An unchanged page is written before the device has said that it is one, or read by another forward. */
static void thinned_late(int read)
{
	uint32_t *x, *y, *z;

	rig_start(RS_MODE_PRESERVE);
	policy(RS_OPTION_PAGES, RS_RESTORE_COPY);
	x = words(N), y = words(1), z = words(1);
	x[0] = 1, x[N / 2] = 2, x[N - 1] = 3;
	forward(y, x);
	OPAQUE(set_middle, x);
	if (read) {
		PUSH("forward:g");
		KERNEL(three, W_(z, 1), R_(x, N));
		POP();
		is_u64(now().snapshot_bytes, N * 4,
		       "what another forward has read stays preserved");
	}
	KERNEL(set_first, {x, 0, 1, RS_READ | RS_WRITE, 0, 0});
	now();
	replay(y, x);
	if (read) {
		PUSH("replay:g#0");
		KERNEL(three, W_(z, 1), R_(x, N));
		POP();
	}
	is_u64(now().outcome[0], read ? 2u : 1u, "matches");
	is_u64(y[0], 321, "the replay sees its forward's bytes");
	is_u64(z[0], read ? 371u : 0u, "and the other one its own");
	ok(x[0] == 5 && x[N / 2] == 7, "the present bytes come back");
	STEP(2);
	is_u64(now().snapshot_bytes, 0, "and then nothing stays preserved");
	rig_stop();
}

/* A kernel that may have written three buffers has written one: they are compared at once. */
static void thinned_together(int fail)
{
	uint32_t *x[3], *y;

	rig_start(RS_MODE_PRESERVE);
	policy(RS_OPTION_PAGES, RS_RESTORE_COPY);
	for (int i = 0; i < 3; i++)
		x[i] = words(N);
	y = words(1);
	x[0][0] = 1, x[0][N / 2] = 2, x[0][N - 1] = 3;
	PUSH("forward:f");
	KERNEL(three, W_(y, 1), R_(x[0], N), R_(x[1], N), R_(x[2], N));
	POP();
	fake.fail_diff = fail;
	KERNEL(set_middle, {x[0], 0, N, RS_READ | RS_WRITE, 1, 1},
	       {x[1], 0, N, RS_READ | RS_WRITE, 1, 1}, {x[2], 0, N, RS_READ | RS_WRITE, 1, 1});
	is_u64(now().snapshot_bytes, 65536, "of three buffers the page that has changed stays");
	ok(fake.pairs == (fail ? 2 : 1) && fake.diffs == (fail ? 1 : 0),
	   fail ? "one by itself where together they fail, the others together"
		: "compared in one operation");
	PUSH("replay:f#0");
	KERNEL(three, W_(y, 1), R_(x[0], N), R_(x[1], N), R_(x[2], N));
	POP();
	is_u64(now().outcome[0], 1, "the replay matches");
	is_u64(y[0], 321, "with the bytes of the forward");
	ok(x[0][N / 2] == 7, "and the present ones come back");
	rig_stop();
}

/* A swap needs no room for the present bytes; a forward that is replayed twice finds its bytes again. */
static void swapped(enum rs_restore restore, uint64_t peak)
{
	uint32_t *x, *y;

	rig_start(RS_MODE_PRESERVE);
	policy(RS_OPTION_UNDO, restore);
	x = words(N), y = words(1);
	x[0] = 1, x[N / 2] = 2, x[N - 1] = 3;
	forward(y, x);
	KERNEL(set_all, W_(x, N));
	for (unsigned k = 0; k < 3; k++) {
		replay(y, x);
		fake_drain();
		is_u64(y[0], 321, "a replay sees the bytes of the forward");
		ok(x[0] == 9 && x[N - 1] == 9, "and the present ones come back");
	}
	is_u64(now().outcome[0], 3, "three matches");
	is_u64(now().snapshot_bytes_peak, peak, "peak of preserved bytes");
	rig_stop();
}

/* The device fails when P2 is to come back by a swap, or when P0 is to be shown. */
static void failing_swap(int back)
{
	uint32_t *x, *y;

	rig_start(RS_MODE_PRESERVE);
	policy(RS_OPTION_UNDO, RS_RESTORE_SWAP);
	x = words(N), y = words(1);
	x[0] = 1;
	forward(y, x);
	KERNEL(set_all, W_(x, N));
	fake_drain();
	PUSH("replay:f#0");
	fake.fail_copy = back ? 0 : 1;
	KERNEL(three, W_(y, 1), R_(x, N));
	fake.fail_copy = back ? 1 : 0;
	POP();
	fake_drain();
	ok(x[0] == 9 && x[N - 1] == 9, "a failing swap %s loses nothing of the present",
	   back ? "back" : "in");
	replay(y, x);
	fake_drain();
	ok(x[0] == 9 && x[N - 1] == 9, "nor does the next replay");
	is_u64(now().outcome[0], back ? 1u : 0u, "no match without the bytes");
	rig_stop();
}

/* A contract says where writes come: only that is preserved early. */
static void regions(int named)
{
	struct rs_term window = {.call = 0, .slot = 1, .off = N / 2 * 4, .len = 4096, .window = 1};
	uint32_t *x, *y;

	rig_start(RS_MODE_PRESERVE);
	if (named)
		window.region = "table";
	rs_engine_policy(eng, "f", (struct rs_policy){RS_OPTION_REGIONS, RS_RESTORE_COPY});
	ok(!rs_engine_term(eng, "f", &window), "a window");
	x = words(N), y = words(1);
	if (named)
		rs_engine_region(eng, (uint64_t)x, N * 4, "state:table");
	x[0] = 1, x[N / 2] = 2, x[N - 1] = 3;
	forward(y, x);
	is_u64(now().snapshot_bytes, 4096, "only the window is preserved at the forward");
	KERNEL(set_middle, {x, N / 2, 1, RS_READ | RS_WRITE, 0, 0});
	is_u64(now().snapshot_bytes, 4096, "a write inside of it needs no more");
	replay(y, x);
	KERNEL(set_all, W_(x, N));
	replay(y, x);
	is_u64(now().outcome[0], 2, "what is written outside of it is preserved all the same");
	is_u64(y[0], 321, "with the bytes of the forward");
	rig_stop();
}

static void free_replay(int overwritten)
{
	uint32_t *x, *y;

	rig_start(RS_MODE_PRESERVE);
	policy(RS_OPTION_FREE, RS_RESTORE_COPY);
	x = words(N), y = words(1);
	forward(y, x);
	if (overwritten)
		OPAQUE(set_middle, x);
	replay(y, x);
	is_u64(now().outcome[overwritten ? 1 : 0], 1,
	       overwritten ? "a free replay whose state was overwritten is rejected"
			   : "a free replay is a match");
	is_u64(count(rig_read("records.jsonl"), "RS080"), (uint64_t)overwritten, "RS080");
	is_u64(y[0], 0, "the bytes are right in any case");
	rig_stop();
}

/*
 * A forward within a replay reads what the replay is shown, which the tool takes away again at its end. The program has
 * overwritten nothing since: a free replay of it is one, and sees those bytes.
 */
static void free_within_replay(enum rs_restore restore, int overwritten)
{
	uint32_t *x, *y, *z;

	rig_start(RS_MODE_PRESERVE);
	policy(RS_OPTION_UNDO, restore);
	rs_engine_policy(eng, "f", (struct rs_policy){RS_OPTION_FREE, RS_RESTORE_COPY});
	x = words(N), y = words(1), z = words(1);
	x[0] = 1, x[N / 2] = 2, x[N - 1] = 3;
	PUSH("forward:outer");
	KERNEL(three, W_(z, 1), R_(x, N));
	POP();
	KERNEL(set_all, W_(x, N));
	PUSH("replay:outer#0");
	KERNEL(three, W_(z, 1), R_(x, N));
	forward(y, x);
	if (overwritten)
		KERNEL(set_first, W_(x, 1));
	POP();
	y[0] = 0;
	replay(y, x);
	is_u64(now().outcome[0], overwritten ? 1 : 2,
	       overwritten ? "of bytes that the program has overwritten there is no free replay"
			   : "a free replay of bytes that the tool took away is a match");
	is_u64(count(rig_read("records.jsonl"), "RS080"), (uint64_t)overwritten, "RS080");
	is_u64(y[0], 321, "it sees the bytes of its forward");
	ok(x[0] == 9 && x[N - 1] == 9, "and the present ones come back");
	rig_stop();
}

/* What the contract calls a product or state is treated as that; memory that it does not know breaks it. */
static void roles(void)
{
	struct rs_term product = {.call = 0, .slot = 0, .len = N * 4, .role = RS_ROLE_PRODUCT};
	struct rs_term state = {.call = 0, .slot = 0, .len = N * 4, .role = RS_ROLE_STATE};
	uint32_t *x;
	int as;

	for (as = 0; as < 2; as++) {
		rig_start(RS_MODE_PRESERVE);
		rs_engine_term(eng, "f", as ? &state : &product);
		x = words(N);
		PUSH("forward:f");
		OPAQUE(set_middle, x);
		POP();
		KERNEL(set_all, W_(x, N));
		PUSH("replay:f#0");
		OPAQUE(set_middle, x);
		POP();
		fake_drain();
		is_u64(x[N / 2], as ? 9 : 7, as ? "state is put back" : "a product stays");
		rig_stop();
	}
}

static void other_program(void)
{
	const char *text;
	uint32_t *x, *y;

	rig_start(RS_MODE_PRESERVE);
	rs_engine_expect_calls(eng, "f", 12345);
	x = words(N), y = words(1);
	forward(y, x);
	replay(y, x);
	is_u64(now().outcome[1], 1, "a forward with other calls is not vouched for");
	text = rig_read("records.jsonl");
	ok(count(text, "RS081"), "it is another program's contract");
	ok(count(text, "RS080"), "and names other state");
	ok(count(rig_read("events.jsonl"), "\"name\":\"three\""), "and by whom it is read");
	rig_stop();
}

/* A run tells what a contract needs; told back, it is kept. */
static void learned(void)
{
	const struct rs_engine_config config = {.mode = RS_MODE_AUDIT, .verify = 1, .profile = 1};
	struct rs_term state = {.call = 0, .slot = 1, .len = N * 4};
	unsigned long long calls = 0;
	const char *text;
	uint32_t *x, *y;

	rig_start(RS_MODE_AUDIT);
	rs_thread_destroy(thr);
	rs_engine_destroy(eng);
	eng = rs_engine_create(&config, &fake_ops, rec);
	memset(&rig_calm, 0, sizeof(rig_calm));
	thr = rs_thread_create(eng);
	x = words(N), y = words(1);
	for (unsigned step = 0; step < 3; step++) {
		forward(y, x);
		KERNEL(set_middle, {x, N / 2 + step * 100, 10, RS_READ | RS_WRITE, 0, 0});
		replay(y, x);
	}
	now();
	rs_engine_learned(eng);
	text = rig_read("events.jsonl");
	text = strstr(text, "\"t\":\"segment\"");
	ok(text && strstr(text, "\"forwards\":3"), "a segment line");
	ok(text && strstr(text, "\"product_bytes\":4"), "with what it produces");
	if (text && strstr(text, "\"calls\":[\""))
		calls = strtoull(strstr(text, "\"calls\":[\"") + 10, NULL, 16);
	ok(calls, "and its calls");
	ok(!count(text ? text : "", "\"t\":\"alias\""), "none of which names the same bytes twice");
	ok(text && strstr(text, "\"call\":0,\"slot\":1,\"piece\":0,\"offset\":0,\"bytes\":262144,"
				"\"role\":\"state\",\"reads\":3,\"reader\":\"three\""),
	   "a state line says what is read, by whom");
	ok(text && strstr(text, "\"overwrites\":3,\"writer\":\"set_middle\",\"windows\":"
				"[[131072,40],[131472,40],[131872,40]]"),
	   "and where it is overwritten");
	rig_stop();
	rig_start(RS_MODE_PRESERVE);
	rs_engine_expect_calls(eng, "f", calls);
	rs_engine_term(eng, "f", &state);
	x = words(N), y = words(1);
	forward(y, x);
	KERNEL(set_all, W_(x, N));
	replay(y, x);
	is_u64(now().outcome[0], 1, "a run under what was learned is a match");
	rig_stop();
}

/* Arguments that overlap with what another call has read first; what the window allocates itself is nobody's business. */
static void aliases(void)
{
	const struct rs_engine_config config = {.mode = RS_MODE_AUDIT, .verify = 1, .profile = 1};
	const char *text;
	uint32_t *x, *y;

	rig_start(RS_MODE_AUDIT);
	rs_thread_destroy(thr);
	rs_engine_destroy(eng);
	eng = rs_engine_create(&config, &fake_ops, rec);
	memset(&rig_calm, 0, sizeof(rig_calm));
	thr = rs_thread_create(eng);
	x = words(N);
	for (unsigned step = 0; step < 2; step++) {
		rs_engine_mark(eng, thr, step ? "step:2" : "step:1");
		PUSH("forward:f");
		KERNEL(set_first, {x, 0, 10, RS_READ | RS_WRITE, 0, 0});
		KERNEL(three, {x, 5, 10, RS_WRITE, 1, 0}, {x, 0, 8 + step, RS_READ, 0, 0},
		       {x, 100, 8, RS_READ, 0, 0});
		y = words(4);
		KERNEL(set_first, W_(y, 1), R_(y, 4));
		POP();
		drop(y);
	}
	now();
	rs_engine_learned(eng);
	text = rig_read("events.jsonl");
	ok(strstr(text,
		  "\"call\":0,\"slot\":0,\"piece\":0,\"kernel\":\"set_first\",\"other_call\":1,\"other_slot\":1,"
		  "\"other_piece\":0,\"other_kernel\":\"three\",\"bytes\":36,\"forwards\":2"),
	   "calls and arguments that name the same bytes, and how many");
	is_u64(count(text, "\"t\":\"alias\""), 2, "and those of the other argument");
	rig_stop();
}

int main(void)
{
	uint64_t all = N * 4, page = 65536;

	aliases();
	when(RS_OPTION_UNDO, 0, all, all);
	when(RS_OPTION_WHOLE, all, all, all);
	when(RS_OPTION_PAGES, 0, all, page);
	when(RS_OPTION_RETAIN, 0, all, all);
	thinned_late(0);
	thinned_late(1);
	thinned_together(0);
	thinned_together(1);
	swapped(RS_RESTORE_COPY, 2 * all);
	swapped(RS_RESTORE_SWAP, all);
	failing_swap(0);
	failing_swap(1);
	regions(0);
	regions(1);
	free_replay(0);
	free_replay(1);
	free_within_replay(RS_RESTORE_COPY, 0);
	free_within_replay(RS_RESTORE_SWAP, 0);
	free_within_replay(RS_RESTORE_COPY, 1);
	roles();
	other_program();
	learned();
	return tap_done();
}
