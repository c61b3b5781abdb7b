/* SPDX-License-Identifier: MIT */
/*
 * What calls of other threads do to a replay's bytes, and what they do not: calls on other memory, on what the replay has seen and
 * was never shown, on what is not put back, calls that may do anything, several calls at once, and operations that fail.
 * Every call of this file's is in the order that its streams and waits give it (fake_order.h). See test_engine_views.c for
 * overlapping replays.
 */
#include "tests/unit/engine_rig.h"

#define N 1024 /* a page */

static struct rs_thread *one, *two, *three;
static uint32_t *s, *t, *x, *y, *z;
static int restore;

static void times10(struct rig_arg *a)
{
	for (unsigned i = 0; i < a[0].n; i++)
		a[0].p[i] = 10 * a[1].p[a[1].first + i];
}

static void set9(struct rig_arg *a)
{
	for (unsigned i = 0; i < a[0].n; i++)
		a[0].p[a[0].first + i] = 9;
}

static void add100(struct rig_arg *a)
{
	for (unsigned i = 0; i < a[0].n; i++)
		a[0].p[a[0].first + i] += 100;
}

static void nothing(struct rig_arg *a)
{
	(void)a;
}

static void step_on(struct rig_arg *a)
{
	for (unsigned i = 0; i < a[0].n; i++)
		a[0].p[i] = 10 * a[1].p[i]++;
}

static unsigned stream_of(const struct rs_thread *th)
{
	return th == one ? 1 : th == two ? 2 : 3;
}

static void on(struct rs_thread *th, void (*fn)(struct rig_arg *), unsigned n,
	       const struct rig_arg *a)
{
	thr = th;
	kernel_q(stream_of(th), "kernel", fn, n, a);
	thr = one;
}
#define ON(th, fn, ...)                                                                            \
	on(th, fn, sizeof((struct rig_arg[]){__VA_ARGS__}) / sizeof(struct rig_arg),               \
	   (struct rig_arg[]){__VA_ARGS__})
#define PART(p, first, n, dir)                                                                     \
	{                                                                                          \
		(p), (first), (n), (dir), 0, 0                                                     \
	}

/* A call that may write anything, and does this. */
static void anything(struct rs_thread *th, void (*fn)(struct rig_arg *), const struct rig_arg *a)
{
	struct rs_call call = {.name = "anything",
			       .ident = 77,
			       .kind = RS_CALL_KERNEL,
			       .q = RIG_Q(stream_of(th)),
			       .everything = 1};
	struct rig_body *b = calloc(1, sizeof(*b));

	b->fn = fn;
	if (a)
		b->a[0] = *a;
	rs_engine_before(eng, th, &call);
	fake_call(stream_of(th), rig_run, b);
	if (a)
		order_touch(stream_of(th), (uint64_t)(a->p + a->first), a->n * 4, 1);
	rs_engine_after(eng, th, &call, 1);
}

static void push(struct rs_thread *th, const char *text)
{
	rs_engine_push(eng, th, text);
}

static void pop(struct rs_thread *th)
{
	rs_engine_pop(eng, th);
}

static uint32_t *mapped(uint64_t handle)
{
	uint32_t *p = fake_map(N * 4);

	rs_engine_backing(eng, handle, N * 4, RS_ALLOC_DEVICE);
	rs_engine_map(eng, (uint64_t)p, N * 4, handle, 0);
	return p;
}

/* The host has waited, and so has the engine. */
static void wait_for_all(void)
{
	fake_drain();
	order_all_seen();
	rs_engine_synced_ctx(eng, 1);
}

static void start(void)
{
	rig_ordered = 1;
	rig_start(RS_MODE_PRESERVE);
	rs_engine_policy(eng, NULL, (struct rs_policy){RS_OPTION_UNDO, (uint8_t)restore});
	one = thr;
	two = rs_thread_create(eng);
	three = rs_thread_create(eng);
	s = mapped(7);
	t = mapped(8);
	x = words(N);
	y = words(N);
	z = words(N);
	for (unsigned i = 0; i < N; i++)
		s[i] = t[i] = 3;
	STEP(1);
}

static void stop(unsigned replays, const char *what)
{
	static const char *const how[] = {"copy", "swap", "remap"};
	struct rs_engine_stats st;
	const char *records;

	wait_for_all();
	STEP(2);
	wait_for_all();
	ok(!fake_order.missing, "%s, %s: everything is ordered (%u)", how[restore], what,
	   fake_order.missing);
	records = rig_read("records.jsonl");
	ok(count(records, "\"outcome\":\"match\"") == replays, "%u replays are a match", replays);
	rs_engine_stats(eng, &st);
	is_u64(st.snapshot_bytes, 0, "and nothing is kept for ever");
	thr = one;
	rs_thread_destroy(two);
	rs_thread_destroy(three);
	rig_stop();
}

static void is_all(const uint32_t *p, unsigned n, uint32_t want, const char *what)
{
	unsigned wrong = 0;

	wait_for_all();
	for (unsigned i = 0; i < n; i++)
		wrong += p[i] != want;
	ok(!wrong, "%s (%u, not %u)", what, n ? p[0] : want, want);
}

static uint64_t operations(void)
{
	return fake.copies + fake.moves + fake.remaps;
}

/* Segment f of thread one: y and z from the first n words of s. */
static void forward(unsigned n)
{
	push(one, "forward:f");
	ON(one, times10, W_(y, n), R_(s, n));
	ON(one, times10, W_(z, n), R_(s, n));
	pop(one);
	memset(y, 0, N * 4);
	memset(z, 0, N * 4);
	wait_for_all();
	memset(y, 0, N * 4);
	memset(z, 0, N * 4);
}

/* The replay is shown half a buffer; the other half, and other buffers, are no business of its. */
static void elsewhere(void)
{
	uint64_t before;

	start();
	forward(N / 2);
	ON(one, set9, W_(s, N));
	push(one, "replay:f");
	ON(one, times10, W_(y, N / 2), R_(s, N / 2));
	before = operations();
	ON(two, add100, PART(s, N / 2, N / 2, RS_READ | RS_WRITE));
	ON(two, add100, RW_(t, N));
	is_u64(operations(), before, "calls on other memory move nothing");
	ON(one, times10, W_(z, N / 2), R_(s, N / 2));
	pop(one);
	is_all(y, N / 2, 30, "the replay sees what it saw");
	is_all(z, N / 2, 30, "twice");
	is_all(s, N / 2, 9, "what it was shown is put back");
	is_all(s + N / 2, N / 2, 109, "what was written beside it stays");
	stop(1, "elsewhere");
}

/*
 * The replay has found the program's bytes, which are those of its forward; then they are overwritten. others: in another part
 * of the buffer, and in another buffer, another thread's replay is shown its own.
 */
static void seen(int others, int whatever)
{
	start();
	forward(N / 2);
	if (others) {
		push(two, "forward:g");
		ON(two, times10, W_(x, N / 2), PART(s, N / 2, N / 2, RS_READ));
		ON(two, times10, W_(x, N), R_(t, N));
		pop(two);
		ON(two, set9, PART(s, N / 2, N / 2, RS_WRITE));
		ON(two, set9, W_(t, N));
		push(two, "replay:g");
		ON(two, times10, W_(x, N / 2), PART(s, N / 2, N / 2, RS_READ));
		ON(two, times10, W_(x, N), R_(t, N));
	}
	push(one, "replay:f");
	ON(one, times10, W_(y, N / 2), R_(s, N / 2));
	wait_for_all();
	if (whatever)
		anything(three, add100, &(struct rig_arg)R_(s, N / 2));
	else
		ON(three, add100, RW_(s, N / 2));
	is_all(s, N / 2, 103, "a write to what a replay has seen is made");
	ON(one, times10, W_(z, N / 2), R_(s, N / 2));
	pop(one);
	if (others)
		pop(two);
	is_all(y, N / 2, 30, "the replay sees what it saw");
	is_all(z, N / 2, 30, "also after the write");
	is_all(s, N / 2, 103, "which stays");
	if (others)
		is_all(s + N / 2, N / 2, 9, "so does another part of it");
	stop(1 + (unsigned)others, "seen");
}

/* Who only reads what the replay has seen moves nothing, and the replay's products are the program's. */
static void left_alone(void)
{
	uint64_t before;

	start();
	forward(N);
	push(one, "replay:f");
	ON(one, times10, W_(y, N), R_(s, N));
	wait_for_all();
	before = operations();
	ON(two, times10, W_(x, N), R_(s, N));
	wait_for_all();
	ON(two, add100, RW_(y, N));
	is_u64(operations(), before,
	       "reading what a replay has seen moves nothing, nor does changing what it makes");
	wait_for_all();
	ON(one, times10, W_(z, N), R_(y, N));
	pop(one);
	is_all(z, N, 1300, "a product is what the program has made of it");
	is_all(y, N, 130, "and stays that");
	stop(0, "left alone");
}

/* A replay that holds the program's bytes, and has them before it, need not make room for anybody. */
static void held_in_vain(void)
{
	uint64_t before;

	start();
	push(two, "forward:g");
	ON(two, step_on, W_(t, N), RW_(s, N));
	pop(two);
	wait_for_all();
	forward(N);
	push(one, "replay:f");
	ON(one, times10, W_(y, N), R_(s, N));
	wait_for_all();
	push(two, "replay:g");
	ON(two, step_on, W_(t, N), RW_(s, N));
	pop(two);
	ON(one, times10, W_(z, N), R_(s, N));
	wait_for_all();
	before = operations();
	ON(three, times10, W_(x, N), R_(s, N));
	is_u64(operations(), before, "a replay whose bytes are the program's is not moved");
	is_all(x, N, 40, "who comes finds them");
	ON(three, add100, RW_(s, N));
	wait_for_all();
	pop(one);
	is_all(z, N, 40, "the replay sees what it saw");
	is_all(s, N, 104, "and what is written then stays");
	stop(2, "held in vain");
}

/* State that only the replay touches is not put back, for another thread neither. */
static void gradient(void)
{
	start();
	forward(N);
	ON(one, set9, W_(s, N));
	push(one, "replay:f");
	ON(one, times10, W_(y, N), R_(s, N));
	ON(one, add100, RW_(t, N));
	wait_for_all();
	ON(two, times10, W_(x, N), R_(t, N));
	is_all(x, N, 1030, "a thread finds what a replay has added to a gradient");
	ON(one, times10, W_(z, N), R_(s, N));
	pop(one);
	is_all(z, N, 30, "the replay sees what it saw");
	is_all(t, N, 103, "and the gradient keeps what was added");
	stop(0, "gradient");
}

/* What a replay holds, or has seen, of memory that is gone is put nowhere. */
static void freed(int shown)
{
	uint64_t before;

	start();
	rs_engine_unmap(eng, (uint64_t)t, N * 4);
	push(one, "forward:f");
	ON(one, times10, W_(y, N), R_(x, N));
	pop(one);
	if (shown)
		ON(one, set9, W_(x, N));
	push(one, "replay:f");
	ON(one, times10, W_(y, N), R_(x, N));
	wait_for_all();
	rs_engine_free(eng, one, RIG_Q(0), (uint64_t)x);
	wait_for_all();
	before = operations();
	memset(x, 0x5a, N * 4); /* somebody else's */
	anything(two, nothing, NULL);
	is_u64(operations(), before, "nothing is copied where memory is gone");
	pop(one);
	is_all(x, N, 0x5a5a5a5a, "nor at the replay's end");
	stop(1, "freed");
}

/* The n-th copy from a call beside a replay on fails. */
static void failing(int n)
{
	const char *records;
	int right;

	start();
	forward(N);
	ON(one, set9, W_(s, N));
	push(one, "replay:f");
	ON(one, times10, W_(y, N), R_(s, N));
	wait_for_all();
	fake.fail_copy = n;
	ON(two, times10, W_(x, N), R_(s, N));
	ON(one, times10, W_(z, N), R_(s, N));
	pop(one);
	wait_for_all();
	fake.fail_copy = 0;
	right = x[0] == 90 && z[0] == 30 && s[0] == 9;
	records = rig_read("records.jsonl");
	ok(right || !count(records, "\"outcome\":\"match\""),
	   "copy %d fails: no match, or all is right (%u, %u, %u)", n, x[0], z[0], s[0]);
	thr = one;
	rs_thread_destroy(two);
	rs_thread_destroy(three);
	rig_stop();
}

/* Several calls of one launch are described before any of them is made. A thread does not wait for its own ones. */
static void many(void)
{
	struct rs_access a[2][2];
	struct rs_call c[2];
	struct rig_body *b;
	const unsigned n[2] = {N / 2, N};
	uint32_t *to[2];

	start();
	to[0] = y, to[1] = z;
	push(one, "forward:f");
	ON(one, times10, W_(y, N / 2), R_(s, N / 2));
	ON(one, times10, W_(z, N), R_(s, N));
	pop(one);
	wait_for_all();
	memset(y, 0, N * 4);
	memset(z, 0, N * 4);
	ON(one, set9, W_(s, N));
	push(two, "forward:g");
	ON(two, times10, W_(x, N), R_(t, N));
	pop(two);
	push(two, "replay:g");
	ON(two, times10, W_(x, N), R_(t, N));
	push(one, "replay:f");
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned k = 0; k < 2; k++)
			a[i][k] = (struct rs_access){.addr = (uint64_t)(k ? s : to[i]),
						     .bytes = n[i] * 4,
						     .dir = k ? RS_READ : RS_WRITE,
						     .how = RS_HOW_PTX,
						     .dense = 1,
						     .slot = (uint16_t)k};
		c[i] = (struct rs_call){.name = "kernel",
					.ident = (uint64_t)(uintptr_t)times10,
					.kind = RS_CALL_KERNEL,
					.q = RIG_Q(1),
					.access = a[i],
					.naccess = 2};
		rs_engine_before(eng, one, &c[i]);
	}
	for (unsigned i = 0; i < 2; i++) {
		b = calloc(1, sizeof(*b));
		*b = (struct rig_body){times10, {W_(to[i], n[i]), R_(s, n[i])}};
		fake_call(1, rig_run, b);
	}
	for (unsigned i = 0; i < 2; i++)
		rs_engine_after(eng, one, &c[i], 1);
	pop(one);
	pop(two);
	is_all(y, N / 2, 30, "calls that are made together see what they saw");
	is_all(z, N, 30, "all of them");
	stop(2, "many");
}

/* Thread one's call on another stream. */
#define ON_STREAM(q, fn, ...)                                                                      \
	kernel_q((q), "kernel", fn,                                                                \
		 sizeof((struct rig_arg[]){__VA_ARGS__}) / sizeof(struct rig_arg),                 \
		 (struct rig_arg[]){__VA_ARGS__})

static void on_two_streams(void)
{
	ON(one, times10, W_(y, N), R_(s, N));
	ON_STREAM(4, times10, W_(z, N), R_(s, N));
}

/* Who has only read is waited for on each stream, where the program's bytes come, and where the replay's come back. */
static void streams(void)
{
	uint32_t *v;

	start();
	v = words(N);
	push(one, "forward:f");
	on_two_streams();
	on_two_streams();
	pop(one);
	wait_for_all();
	ON(one, set9, W_(s, N));
	wait_for_all();
	push(one, "replay:f");
	on_two_streams();
	ON(two, times10, W_(x, N), R_(s, N));
	ON(three, times10, W_(v, N), R_(s, N));
	on_two_streams();
	pop(one);
	is_all(v, N, 90, "two threads find the program's bytes beside a replay");
	is_all(x, N, 90, "both of them");
	is_all(y, N, 30, "and the replay its own");
	is_all(z, N, 30, "on both of its streams");
	is_all(s, N, 9, "the state is the program's");
	stop(1, "streams");
}

/* A replay that has written its state; nobody waits for it, so the engine has to. */
static void written(unsigned n)
{
	struct rs_engine_stats then, now;
	uint64_t remaps;

	start();
	push(one, "forward:f");
	ON(one, times10, W_(z, N), R_(s, N));
	ON(one, step_on, W_(y, n), RW_(s, n));
	ON(one, times10, W_(z, N), R_(s, N));
	pop(one);
	ON(one, set9, W_(s, N));
	wait_for_all();
	memset(z, 0, N * 4);
	push(one, "replay:f");
	ON(one, times10, W_(z, N), R_(s, N));
	ON(one, step_on, W_(y, n), RW_(s, n));
	remaps = fake.remaps;
	rs_engine_stats(eng, &then);
	ON(two, times10, W_(x, N), R_(s, N));
	if (restore == RS_RESTORE_REMAP && n == N)
		ok(fake.remaps > remaps, "what was shown by remapping leaves by remapping");
	rs_engine_stats(eng, &now);
	if (restore == RS_RESTORE_SWAP && n == N)
		is_u64(now.snapshot_bytes, then.snapshot_bytes,
		       "what was exchanged leaves without more memory");
	wait_for_all();
	ON(one, times10, W_(z, N), R_(s, N));
	pop(one);
	is_all(x, N, 90, "a call beside a replay that has written finds the program's bytes");
	is_all(z, n, 40, "the replay what it wrote");
	is_all(z + n, N - n, 30, "and what it did not");
	is_all(s, N, 9, "and the state is the program's");
	stop(1, "written");
}

/* Two buffers are away; what comes back is what the replay comes to. */
static void one_of_two(void)
{
	uint64_t before;

	start();
	push(one, "forward:f");
	ON(one, times10, W_(y, N), R_(s, N));
	ON(one, times10, W_(y, N), R_(t, N));
	ON(one, times10, W_(z, N), R_(s, N));
	pop(one);
	ON(one, set9, W_(s, N));
	ON(one, set9, W_(t, N));
	wait_for_all();
	push(one, "replay:f");
	ON(one, times10, W_(y, N), R_(s, N));
	ON(one, times10, W_(y, N), R_(t, N));
	wait_for_all();
	ON(two, times10, W_(x, N), R_(s, N));
	ON(two, times10, W_(x, N), R_(t, N));
	wait_for_all();
	ON(one, times10, W_(z, N), R_(s, N));
	wait_for_all();
	before = operations();
	ON(two, times10, W_(x, N), R_(t, N));
	is_u64(operations(), before, "what the replay has not come back to is the program's");
	is_all(x, N, 90, "who comes finds that");
	is_all(z, N, 30, "the replay finds its own in the other one");
	pop(one);
	is_all(s, N, 9, "both are the program's");
	is_all(t, N, 9, "at the end");
	stop(1, "one of two");
}

/* Of three pieces that follow one another one is away, and comes back. */
static void one_of_three(unsigned which)
{
	const unsigned n = N / 4;

	start();
	push(one, "forward:f");
	for (unsigned i = 0; i < 3; i++)
		ON(one, times10, W_(y, n), PART(s, i * n, n, RS_READ));
	ON(one, times10, W_(z, n), PART(s, which * n, n, RS_READ));
	ON(one, step_on, W_(y, 3 * n), RW_(s, 3 * n));
	pop(one);
	ON(one, set9, W_(s, N));
	wait_for_all();
	push(one, "replay:f");
	for (unsigned i = 0; i < 3; i++)
		ON(one, times10, W_(y, n), PART(s, i * n, n, RS_READ));
	wait_for_all();
	ON(two, times10, W_(x, n), PART(s, which * n, n, RS_READ));
	ON(one, times10, W_(z, n), PART(s, which * n, n, RS_READ));
	ON(one, step_on, W_(y, 3 * n), RW_(s, 3 * n));
	ON(two, times10, W_(t, n), PART(s, which * n, n, RS_READ));
	pop(one);
	is_all(x, n, 90, "a call finds the program's bytes in a piece");
	is_all(t, n, 90, "and again when the replay was there");
	is_all(z, n, 30, "the replay its own");
	is_all(y, 3 * n, 30, "in all pieces");
	is_all(s, N, 9, "which are the program's at the end");
	stop(1, "one of three");
}

/* Memory that the host may change at any time is not put back under its eyes. */
static void pinned(void)
{
	uint64_t before;
	uint32_t *h;

	start();
	h = aligned_alloc(4096, N * 4);
	memset(h, 0, N * 4);
	rs_engine_alloc(eng, one, RIG_Q(0), (uint64_t)h, N * 4, RS_ALLOC_HOST);
	push(one, "forward:f");
	ON(one, times10, W_(y, N), R_(h, N));
	ON(one, times10, W_(z, N), R_(h, N));
	pop(one);
	wait_for_all();
	push(one, "replay:f");
	ON(one, times10, W_(y, N), R_(h, N));
	wait_for_all();
	before = operations();
	ON(two, set9, W_(h, N));
	is_u64(operations(), before, "nothing is kept of pinned memory that a thread overwrites");
	wait_for_all();
	ON(one, times10, W_(z, N), R_(h, N));
	pop(one);
	is_all(h, N, 9, "it is what was written");
	stop(0, "pinned");
	free(h);
}

/* A stream that waits for nobody knows what: a replay may not wait for it in turn. */
static void stalling(void)
{
	uint64_t event;

	start();
	forward(N);
	ON(one, set9, W_(s, N));
	push(one, "replay:f");
	ON(one, times10, W_(y, N), R_(s, N));
	rs_engine_queue_stalls(eng, two, RIG_Q(2));
	fake_event_record(NULL, RIG_Q(7), &event);
	fake_drain();
	fake.event[event - 1].passed = 0;
	fake_event_wait(NULL, RIG_Q(2), event);
	ON(two, times10, W_(x, N), R_(s, N));
	ON(one, times10, W_(z, N), R_(s, N));
	pop(one);
	fake_drain();
	ok(z[0] != 0, "the replay goes on");
	is_u64(s[0], 9, "and ends");
	fake.event[event - 1].passed = 1;
	fake_order.missing = 0; /* what nobody may wait for */
	stop(0, "stalling");
}

int main(void)
{
	for (restore = 0; restore < RS_RESTORES; restore++) {
		elsewhere();
		for (int i = 0; i < 4; i++)
			seen(i & 1, i & 2);
		left_alone();
		held_in_vain();
		gradient();
		freed(0);
		freed(1);
		many();
		written(N);
		written(N / 2);
		one_of_two();
		for (unsigned i = 0; i < 3; i++)
			one_of_three(i);
		pinned();
		stalling();
		streams();
		for (int n = 1; n < 8; n++)
			failing(n);
	}
	return tap_done();
}
