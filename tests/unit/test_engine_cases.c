/* SPDX-License-Identifier: MIT */
/*
 * The hazard cases as small programs on the engine alone: the bytes that a replay sees and leaves, and
 * the verdict, in audit and in preserve mode.
 */
#include "tests/unit/engine_rig.h"
#include "tracker/model.h"

/* y = x * 5 ; S = 2 * S + x */
static void norm(struct rig_arg *a)
{
	uint32_t x = a[1].p[0];

	a[0].p[0] = x * 5;
	a[2].p[a[2].first] = 2 * a[2].p[a[2].first] + x;
}

/* y = x * S, S + 1 */
static void scale(struct rig_arg *a)
{
	a[0].p[0] = a[1].p[0] * a[2].p[0];
	a[2].p[0] += 1;
}

static void times10(struct rig_arg *a)
{
	a[0].p[0] = a[1].p[0] * 10;
}

static void set_to(struct rig_arg *a)
{
	a[0].p[0] = a[1].p[0];
}

static void bump(struct rig_arg *a)
{
	a[0].p[0] += 1;
}

static void keep_value(struct rig_arg *a)
{
	a[0].p[0] |= 0;
}

/* One word into the queue, wherever the cursor stands: coverage cannot be proved. */
static void enqueue(struct rig_arg *a)
{
	a[0].p[a[1].p[0] % 8] = 100 + a[1].p[0];
}

static void sum8(struct rig_arg *a)
{
	uint32_t s = 0;

	for (unsigned i = 0; i < 8; i++)
		s += a[1].p[i];
	a[0].p[0] = s;
}

/* C01: a statistic that every run advances. */
static void c01(enum rs_mode mode)
{
	uint32_t *s, *x0, *x1, *y0, *y1, *r0, *r1;
	const char *text;

	rig_start(mode);
	s = words(1), x0 = words(1), x1 = words(1);
	y0 = words(1), y1 = words(1), r0 = words(1), r1 = words(1);
	*s = 10, *x0 = 3, *x1 = 4;
	rs_engine_region(eng, (uint64_t)s, 4, "state:bn.mean");
	STEP(1);
	PUSH("forward:bn");
	KERNEL(norm, W_(y0, 1), R_(x0, 1), RW_(s, 1));
	POP();
	PUSH("forward:bn");
	KERNEL(norm, W_(y1, 1), R_(x1, 1), RW_(s, 1));
	POP();
	PUSH("replay:bn#1");
	KERNEL(norm, W_(r1, 1), R_(x1, 1), RW_(s, 1));
	POP();
	PUSH("replay:bn#0");
	KERNEL(norm, W_(r0, 1), R_(x0, 1), RW_(s, 1));
	POP();
	is_u64(*r1, 20, "C01 y1'");
	is_u64(*r0, 15, "C01 y0'");
	text = rig_read("records.jsonl");
	if (mode == RS_MODE_PRESERVE) {
		is_u64(*s, 50, "C01 preserve: one update per step");
		is_u64(count(text, "\"outcome\":\"match\""), 2, "C01 preserve: two matches");
	} else {
		is_u64(*s, 2 * (2 * 50 + 4) + 3, "C01 audit: bytes as without the tool");
		is_u64(count(text, "\"outcome\":\"divergence\""), 2, "C01 audit: two divergences");
		is_u64(count(text, "\"after\":\"different\""), 2,
		       "C01 audit: the side effect survives");
		is_u64(count(text, "\"product\":\"equal\""), 2,
		       "C01 audit: the output does not depend on S");
		text = rig_read("events.jsonl");
		ok(strstr(text, "\"code\":\"RS013\"") && strstr(text, "\"name\":\"bn.mean\""),
		   "C01 audit: RS013 names the state");
		ok(strstr(text,
			  "\"writer\":{\"kind\":\"kernel\",\"name\":\"norm\",\"how\":\"ptx\""),
		   "C01 audit: and its writer");
	}
	drop(s), drop(x0), drop(x1), drop(y0), drop(y1), drop(r0), drop(r1);
	rig_stop();
}

/* C02: the output depends on the state; k replays. */
static void c02(unsigned k)
{
	uint32_t *rf, *x, *y, *p;
	unsigned i;

	rig_start(RS_MODE_PRESERVE);
	rf = words(1), x = words(1), y = words(1), p = words(1);
	*rf = 1, *x = 7;
	STEP(1);
	PUSH("forward:s");
	KERNEL(scale, W_(y, 1), R_(x, 1), RW_(rf, 1));
	POP();
	for (i = 0; i < k; i++) {
		*p = 0;
		PUSH("replay:s");
		KERNEL(scale, W_(p, 1), R_(x, 1), RW_(rf, 1));
		POP();
		is_u64(*p, 7, "C02 replay sees the entry value");
		is_u64(*rf, 2, "C02 one increment, however many replays");
	}
	is_u64(*rf, 2, "C02 one increment in the end");
	is_u64(count(rig_read("records.jsonl"), "\"outcome\":\"match\""), k,
	       "C02 a match per replay");
	drop(rf), drop(x), drop(y), drop(p);
	rig_stop();
}

/* C11: one slot, two forwards alive; the slot is written by others. */
static void c11(enum rs_mode mode)
{
	uint32_t *c, *va, *vb, *ya, *yb;
	const char *text;

	rig_start(mode);
	c = words(1), va = words(1), vb = words(1), ya = words(1), yb = words(1);
	*va = 1, *vb = 2;
	STEP(1);
	KERNEL(set_to, W_(c, 1), R_(va, 1));
	PUSH("forward:layer");
	KERNEL(times10, W_(ya, 1), R_(c, 1));
	POP();
	KERNEL(set_to, W_(c, 1), R_(vb, 1));
	PUSH("forward:layer");
	KERNEL(times10, W_(yb, 1), R_(c, 1));
	POP();
	PUSH("replay:layer#0");
	KERNEL(times10, W_(ya, 1), R_(c, 1));
	POP();
	is_u64(*ya, mode == RS_MODE_PRESERVE ? 10 : 20, "C11 replay of A");
	is_u64(*c, 2, "C11 the slot keeps B's value");
	PUSH("replay:layer#1");
	KERNEL(times10, W_(yb, 1), R_(c, 1));
	POP();
	is_u64(*yb, 20, "C11 replay of B");
	text = rig_read("records.jsonl");
	is_u64(count(text, "\"outcome\":\"match\""), mode == RS_MODE_PRESERVE ? 2 : 1,
	       "C11 matches");
	if (mode == RS_MODE_AUDIT) {
		is_u64(count(text, "\"entry\":\"different\""), 1, "C11 audit: A's entry differs");
		is_u64(count(text, "\"product\":\"different\""), 1,
		       "C11 audit: and so does its product");
		ok(strstr(rig_read("events.jsonl"), "\"name\":\"set_to\""),
		   "C11 audit: names the overwriter");
	}
	drop(c), drop(va), drop(vb), drop(ya), drop(yb);
	rig_stop();
}

/* C03's control: a rewrite with equal bytes is no hazard. */
static void idempotent(enum rs_mode mode)
{
	uint32_t *s, *y;

	rig_start(mode);
	s = words(4), y = words(1);
	s[0] = 100;
	STEP(1);
	PUSH("forward:s");
	KERNEL(keep_value, RW_(s, 4));
	KERNEL(times10, W_(y, 1), R_(s, 4));
	POP();
	KERNEL(keep_value, RW_(s, 4));
	PUSH("replay:s");
	KERNEL(keep_value, RW_(s, 4));
	KERNEL(times10, W_(y, 1), R_(s, 4));
	POP();
	is_u64(count(rig_read("records.jsonl"), "\"outcome\":\"match\""), 1,
	       "equal bytes are no hazard");
	is_u64(count(rig_read("events.jsonl"), "\"code\""), 0, "and no finding");
	drop(s), drop(y);
	rig_stop();
}

/* C10: declared state that the segment always overwrites before it reads it. */
static void rewritten(enum rs_mode mode)
{
	uint32_t *p, *x, *y;

	rig_start(mode);
	p = words(1), x = words(1), y = words(1);
	*x = 3;
	rs_engine_region(eng, (uint64_t)p, 4, "state:P");
	STEP(1);
	PUSH("forward:s");
	KERNEL(set_to, W_(p, 1), R_(x, 1));
	KERNEL(times10, W_(y, 1), R_(p, 1));
	POP();
	KERNEL(bump, RW_(p, 1));
	PUSH("replay:s");
	KERNEL(set_to, W_(p, 1), R_(x, 1));
	KERNEL(times10, W_(y, 1), R_(p, 1));
	POP();
	is_u64(*y, 30, "C10 overwritten before it is read");
	is_u64(*p, mode == RS_MODE_PRESERVE ? 4 : 3, "C10 the state is P2 afterwards");
	ok(!strstr(rig_read("events.jsonl"), "RS010"), "C10 no alarm about bytes nobody read");
	is_u64(count(rig_read("records.jsonl"), "\"after\":\"different\""), mode == RS_MODE_AUDIT,
	       "C10 the audit sees the side effect");
	drop(p), drop(x), drop(y);
	rig_stop();
}

/* X1: state and product in one allocation. */
static void x1(void)
{
	uint32_t *z, *x;
	struct rig_arg f[3];

	rig_start(RS_MODE_PRESERVE);
	z = words(16), x = words(1);
	z[0] = 10, *x = 3;
	f[0] = (struct rig_arg){z + 4, 0, 1, RS_WRITE, 0, 0};
	f[1] = (struct rig_arg)R_(x, 1);
	f[2] = (struct rig_arg)RW_(z, 1);
	STEP(1);
	PUSH("forward:pool");
	kernel_q(0, "norm", norm, 3, f);
	POP();
	z[4] = 77; /* the range is recycled by somebody else */
	PUSH("replay:pool");
	kernel_q(0, "norm", norm, 3, f);
	POP();
	is_u64(z[0], 23, "X1 the statistic is P2");
	is_u64(z[4], 15, "X1 the product of the same allocation stays");
	is_u64(count(rig_read("records.jsonl"), "\"outcome\":\"match\""), 1, "X1 match");
	drop(z), drop(x);
	rig_stop();
}

/* A module variable that becomes known inside the window is older than the window. */
static void global_variable(void)
{
	uint32_t *s, *x, *y;

	rig_start(RS_MODE_PRESERVE);
	s = aligned_alloc(256, 256), x = words(1), y = words(1);
	*s = 10, *x = 3;
	STEP(1);
	PUSH("forward:bn");
	rs_engine_alloc(eng, thr, RIG_Q(0), (uint64_t)s, 4, RS_ALLOC_GLOBAL);
	KERNEL(norm, W_(y, 1), R_(x, 1), RW_(s, 1));
	POP();
	PUSH("replay:bn");
	KERNEL(norm, W_(y, 1), R_(x, 1), RW_(s, 1));
	POP();
	is_u64(*s, 23, "a module variable is state, not a product");
	drop(s), drop(x), drop(y);
	rig_stop();
}

/* A queue filled where coverage cannot be proved, then read: declared it is restored, else cannot tell. */
static void queue(int declared)
{
	uint32_t *bank, *cur, *y;
	const char *text;
	unsigned i;

	rig_start(RS_MODE_PRESERVE);
	bank = words(8), cur = words(1), y = words(1);
	for (i = 0; i < 8; i++)
		bank[i] = i;
	if (declared)
		rs_engine_region(eng, (uint64_t)bank, 32, "state:queue");
	STEP(1);
	PUSH("forward:q");
	KERNEL(enqueue, {bank, 0, 8, RS_WRITE, 1, 1}, R_(cur, 1));
	KERNEL(sum8, W_(y, 1), R_(bank, 8));
	POP();
	is_u64(*y, 128, "queue: forward");
	KERNEL(bump, RW_(cur, 1));
	KERNEL(enqueue, {bank, 0, 8, RS_WRITE, 1, 1}, R_(cur, 1));
	PUSH("replay:q");
	KERNEL(enqueue, {bank, 0, 8, RS_WRITE, 1, 1}, R_(cur, 1));
	KERNEL(sum8, W_(y, 1), R_(bank, 8));
	POP();
	is_u64(*y, declared ? 128 : 228,
	       "queue: the replay sees the declared queue of its forward");
	is_u64(*cur, 1, "queue: the cursor is P2");
	is_u64(bank[1], 101, "queue: what others wrote since is not lost");
	text = rig_read("records.jsonl");
	if (declared) {
		is_u64(count(text, "\"outcome\":\"match\""), 1, "queue: match");
	} else {
		is_u64(count(text, "\"outcome\":\"match\""), 0,
		       "queue: undeclared, no match is claimed");
		ok(strstr(text, "RS014"), "queue: nobody can tell, and it says so");
	}
	drop(bank), drop(cur), drop(y);
	rig_stop();
}

/* What cannot be vouched for is a rejection, with its reason. */
static void rejections(void)
{
	uint32_t *a, *b, *y;
	const char *text;

	rig_start(RS_MODE_PRESERVE);
	a = words(1), b = words(1), y = words(1);
	STEP(1);
	PUSH("replay:never");
	KERNEL(times10, W_(y, 1), R_(a, 1));
	POP();
	PUSH("forward:s");
	KERNEL(times10, W_(y, 1), R_(a, 1));
	POP();
	PUSH("replay:s");
	KERNEL(times10, W_(y, 1), R_(b, 1));
	POP();
	PUSH("replay:s");
	POP();
	STEP(2);
	PUSH("replay:s");
	POP();
	text = rig_read("records.jsonl");
	is_u64(count(text, "\"outcome\":\"rejection\""), 4,
	       "four replays that nobody can vouch for");
	is_u64(count(text, "RS017"), 2, "two without a forward");
	is_u64(count(text, "RS016"), 1, "one with another input");
	drop(a), drop(b), drop(y);
	rig_stop();
}

/* A replay without a number finds its invocation by the inputs of its first call. */
static void by_inputs(void)
{
	uint32_t *s, *x[2], *y;
	unsigned i;

	rig_start(RS_MODE_PRESERVE);
	s = words(1), x[0] = words(1), x[1] = words(1), y = words(1);
	*s = 1, *x[0] = 10, *x[1] = 20;
	STEP(1);
	for (i = 0; i < 2; i++) {
		PUSH("forward:m");
		KERNEL(scale, W_(y, 1), R_(x[i], 1), RW_(s, 1));
		POP();
	}
	PUSH("replay:m");
	KERNEL(scale, W_(y, 1), R_(x[0], 1), RW_(s, 1));
	POP();
	is_u64(*y, 10, "C05 call 0 replays with its own scale");
	PUSH("replay:m");
	KERNEL(scale, W_(y, 1), R_(x[1], 1), RW_(s, 1));
	POP();
	is_u64(*y, 40, "C05 call 1 with its own");
	is_u64(*s, 3, "C05 the scale is P2");
	is_u64(count(rig_read("records.jsonl"), "\"outcome\":\"match\""), 2, "C05 two matches");
	drop(s), drop(x[0]), drop(x[1]), drop(y);
	rig_stop();
}

/* A generator outside of the engine's reach: values follow from its position. */
static uint64_t position;

static void draw_values(struct rig_arg *a)
{
	a[0].p[0] = 1000 + (uint32_t)position;
	a[0].p[1] = 2000 + (uint32_t)position;
}

static void draw(uint32_t *out)
{
	struct rs_access x = {.addr = (uint64_t)out,
			      .bytes = 8,
			      .dir = RS_WRITE,
			      .how = RS_HOW_EXACT,
			      .dense = 1};
	struct rs_call call = {.name = "draw",
			       .ident = 77,
			       .kind = RS_CALL_OTHER,
			       .q = RIG_Q(0),
			       .access = &x,
			       .naccess = 1};
	struct rig_arg a[1] = {W_(out, 2)};

	rs_engine_before(eng, thr, &call);
	if (!rs_engine_draw(eng, thr, &call, 5, position)) {
		draw_values(a);
		rs_engine_drawn(eng, thr, &call, 5, position++);
	}
	rs_engine_after(eng, thr, &call, 1);
}

/* C14: two draws per forward, other draws in between, k replays. */
static void random_draws(enum rs_mode mode)
{
	int preserve = mode == RS_MODE_PRESERVE;
	uint32_t *m, *other;
	const char *text;

	rig_start(mode);
	m = words(4), other = words(2);
	position = 0;
	STEP(1);
	PUSH("forward:drop");
	draw(m);
	draw(m + 2);
	POP();
	draw(other);
	for (unsigned k = 0; k < 2; k++) {
		memset(m, 0, 16);
		PUSH("replay:drop");
		draw(m);
		draw(m + 2);
		POP();
		is_u64(m[0], preserve ? 1000 : 1003 + 2 * k, "C14 the first mask of a replay");
		is_u64(m[3], preserve ? 2001 : 2004 + 2 * k, "C14 the second");
	}
	is_u64(position, preserve ? 3 : 7, "C14 the generator's position afterwards");
	text = rig_read("records.jsonl");
	is_u64(count(text, preserve ? "\"outcome\":\"match\"" : "RS002"), 2, "C14 the verdicts");
	if (preserve) {
		PUSH("replay:drop");
		draw(m);
		draw(m + 2);
		draw(other);
		POP();
		ok(strstr(rig_read("records.jsonl"), "RS016"), "C16 a draw too many is not served");
	}
	drop(m), drop(other);
	rig_stop();
}

/* A window that its end marker never reaches: the next step puts the state back all the same. */
static void aborted(void)
{
	uint32_t *s, *x, *y;
	const char *text;

	rig_start(RS_MODE_PRESERVE);
	s = words(1), x = words(1), y = words(1);
	*s = 10, *x = 3;
	STEP(1);
	PUSH("forward:bn");
	KERNEL(norm, W_(y, 1), R_(x, 1), RW_(s, 1));
	POP();
	PUSH("replay:bn");
	KERNEL(norm, W_(y, 1), R_(x, 1), RW_(s, 1));
	STEP(2);
	is_u64(*s, 23, "an aborted replay leaves P2");
	POP(); /* the late end marker ends nothing */
	PUSH("forward:bn");
	KERNEL(norm, W_(y, 1), R_(x, 1), RW_(s, 1));
	POP();
	is_u64(*s, 49, "and the next step goes on from there");
	text = rig_read("records.jsonl");
	is_u64(count(text, "\n"), 1, "one record");
	ok(strstr(text, "RS019"), "it says that the window was not closed");
	drop(s), drop(x), drop(y);
	rig_stop();
}

/* No memory for a snapshot, or a failed copy: bytes as without the tool, and no match. */
static void faults(void)
{
	for (int which = 0; which < 2; which++) {
		uint32_t *s, *x, *y;
		const char *text;

		rig_start(RS_MODE_PRESERVE);
		s = words(1), x = words(1), y = words(1);
		*s = 1, *x = 7;
		STEP(1);
		if (which)
			fake.fail_copy = 1;
		else
			fake.fail_alloc = -1;
		PUSH("forward:s");
		KERNEL(scale, W_(y, 1), R_(x, 1), RW_(s, 1));
		POP();
		is_u64(*s, 2, "the forward is not disturbed");
		PUSH("replay:s");
		KERNEL(scale, W_(y, 1), R_(x, 1), RW_(s, 1));
		POP();
		is_u64(*y, 14, "the replay runs as without the tool");
		text = rig_read("records.jsonl");
		is_u64(count(text, "\"outcome\":\"match\""), 0, "no match is claimed");
		ok(strstr(text, "RS018"), which ? "failed copy: RS018" : "no memory: RS018");
		drop(s), drop(x), drop(y);
		rig_stop();
	}
}

/* P2 does not come back: whatever else is right, that is no match. */
static void failed_put_back(void)
{
	uint32_t *c, *va, *vb, *y;

	rig_start(RS_MODE_PRESERVE);
	c = words(1), va = words(1), vb = words(1), y = words(1);
	*va = 1, *vb = 2;
	STEP(1);
	KERNEL(set_to, W_(c, 1), R_(va, 1));
	PUSH("forward:layer");
	KERNEL(times10, W_(y, 1), R_(c, 1));
	POP();
	KERNEL(set_to, W_(c, 1), R_(vb, 1));
	PUSH("replay:layer");
	KERNEL(times10, W_(y, 1), R_(c, 1));
	fake.fail_copy = 1;
	POP();
	is_u64(*c, 1, "P2 did not come back");
	is_u64(count(rig_read("records.jsonl"), "match"), 0, "P2 does not come back: no match");
	ok(count(rig_read("records.jsonl"), "RS018"), "and the record says so");
	rig_stop();
}

/* P2 cannot be held: then P0 is not put over it, and the program goes on as without the tool. */
static void no_room_for_p2(void)
{
	uint32_t *c, *va, *vb, *y;

	rig_snapshot_max = 256; /* one block */
	rig_start(RS_MODE_PRESERVE);
	rig_snapshot_max = 0;
	c = words(1), va = words(1), vb = words(1), y = words(1);
	*va = 1, *vb = 2;
	STEP(1);
	KERNEL(set_to, W_(c, 1), R_(va, 1));
	PUSH("forward:layer");
	KERNEL(times10, W_(y, 1), R_(c, 1));
	POP();
	KERNEL(set_to, W_(c, 1), R_(vb, 1));
	PUSH("replay:layer");
	KERNEL(times10, W_(y, 1), R_(c, 1));
	POP();
	is_u64(*c, 2, "no room for P2: it is not overwritten");
	is_u64(*y, 20, "no room for P2: the replay runs as without the tool");
	is_u64(count(rig_read("records.jsonl"), "match"), 0, "no room for P2: no match");
	drop(c), drop(va), drop(vb), drop(y);
	rig_stop();
}

/* Without digests the bytes are right all the same, but nobody can vouch for the products. */
static void unverified(void)
{
	uint32_t *s, *x, *y;

	rig_verify = 0;
	rig_start(RS_MODE_PRESERVE);
	s = words(1), x = words(1), y = words(1);
	*s = 1, *x = 7;
	STEP(1);
	PUSH("forward:s");
	KERNEL(scale, W_(y, 1), R_(x, 1), RW_(s, 1));
	POP();
	PUSH("replay:s");
	KERNEL(scale, W_(y, 1), R_(x, 1), RW_(s, 1));
	POP();
	is_u64(*y, 7, "unverified: the replay sees the entry value");
	is_u64(*s, 2, "unverified: the state is P2");
	is_u64(count(rig_read("records.jsonl"), "\"product\":\"unknown\""), 1,
	       "unverified: products are unknown");
	is_u64(count(rig_read("records.jsonl"), "\"outcome\":\"rejection\""), 1,
	       "unverified: a rejection");
	drop(s), drop(x), drop(y);
	rig_stop();
	rig_verify = 1;
}

/* The stream of the pre-image is gone when the replay needs it: its last event still orders the two. */
static void destroyed_stream(void)
{
	struct rig_arg set[2], mul[2];
	uint32_t *c, *va, *vb, *y;

	rig_start(RS_MODE_PRESERVE);
	c = words(1), va = words(1), vb = words(1), y = words(1);
	*va = 1, *vb = 2;
	set[0] = (struct rig_arg)W_(c, 1), set[1] = (struct rig_arg)R_(vb, 1);
	mul[0] = (struct rig_arg)W_(y, 1), mul[1] = (struct rig_arg)R_(c, 1);
	STEP(1);
	KERNEL(set_to, W_(c, 1), R_(va, 1));
	PUSH("forward:layer");
	kernel_q(0, "times10", times10, 2, mul);
	POP();
	fake.eager = 0, fake.lazy = 30; /* from here on nothing runs before it must */
	kernel_q(1, "set_to", set_to, 2, set);
	rs_engine_queue_destroy(eng, RIG_Q(1));
	PUSH("replay:layer");
	/* the program itself would wait for the write; the tool must not depend on it */
	kernel_q(2, "times10", times10, 2, mul);
	POP();
	fake_drain();
	is_u64(*y, 10, "destroyed stream: the replay sees the pre-image");
	is_u64(*c, 2, "destroyed stream: the later write is not lost");
	is_u64(count(rig_read("records.jsonl"), "\"outcome\":\"match\""), 1,
	       "destroyed stream: match");
	drop(c), drop(va), drop(vb), drop(y);
	rig_stop();
}

/* A stream for each step: ids come back, and order holds although they stand in old masks and fences. */
static void streams_come_and_go(void)
{
	struct rig_arg add[1], mul[2];
	uint32_t *c, *y;
	unsigned i, right = 0;

	rig_start(RS_MODE_PRESERVE);
	c = words(1), y = words(1);
	add[0] = (struct rig_arg)RW_(c, 1);
	mul[0] = (struct rig_arg)W_(y, 1), mul[1] = (struct rig_arg)R_(c, 1);
	fake.eager = 0, fake.lazy = 30;
	for (i = 0; i < 100; i++) {
		uint32_t before = *c;

		rs_engine_mark(eng, thr, i & 1 ? "step:1" : "step:2");
		PUSH("forward:layer");
		kernel_q(2 * i, "times10", times10, 2, mul);
		kernel_q(2 * i, "bump", bump, 1, add);
		POP();
		rs_engine_queue_destroy(eng, RIG_Q(2 * i));
		PUSH("replay:layer");
		kernel_q(2 * i + 1, "times10", times10, 2, mul);
		kernel_q(2 * i + 1, "bump", bump, 1, add);
		POP();
		rs_engine_queue_destroy(eng, RIG_Q(2 * i + 1));
		fake_drain();
		right += *y == 10 * before && *c == before + 1;
	}
	is_u64(right, 100, "a stream for each step: every replay sees its state, once");
	ok(eng->queues.n < 20, "a stream for each step: ids are given out again (%u)",
	   eng->queues.n);
	drop(c), drop(y);
	rig_stop();
}

/*
 * A pool: the forward read tensor A of it, and B by another call. B's place holds another tensor when the
 * replay reads it where it read A: B's old bytes are not put over it.
 */
static void moved_in_pool(void)
{
	uint32_t *pool, *y;
	struct rig_arg a[2], b[2];

	rig_start(RS_MODE_PRESERVE);
	pool = words(128), y = words(2);
	pool[0] = 3, pool[64] = 5;
	a[0] = (struct rig_arg)W_(y, 1);
	a[1] = (struct rig_arg){pool, 0, 1, RS_READ, 0, 0};
	b[0] = (struct rig_arg)W_(y + 1, 1);
	b[1] = (struct rig_arg){pool + 64, 0, 1, RS_READ, 0, 0};
	STEP(1);
	PUSH("forward:p");
	kernel_q(0, "times10", times10, 2, a);
	kernel_q(0, "set_to", set_to, 2, b);
	POP();
	KERNEL(set_to, W_(pool + 64, 1), R_(pool, 1)); /* A moves to where B was */
	a[1] = b[1];
	PUSH("replay:p");
	kernel_q(0, "times10", times10, 2, a);
	POP();
	is_u64(*y, 30,
	       "moved in a pool: the replay sees the moved tensor, not what was there before");
	is_u64(pool[64], 3, "moved in a pool: which stays");
	ok(strstr(rig_read("records.jsonl"), "RS016"), "moved in a pool: nobody vouches for it");
	drop(pool), drop(y);
	rig_stop();
}

/* State freed and its address reused: the new owner's bytes are not touched. */
static void freed(void)
{
	uint32_t *s, *t, *y;

	rig_start(RS_MODE_PRESERVE);
	s = words(4), y = words(1);
	s[0] = 5;
	STEP(1);
	PUSH("forward:s");
	KERNEL(times10, W_(y, 1), R_(s, 4));
	POP();
	rs_engine_free(eng, thr, RIG_Q(0), (uint64_t)s);
	rs_engine_alloc(eng, thr, RIG_Q(0), (uint64_t)s, 16, RS_ALLOC_DEVICE);
	t = s;
	t[0] = 9;
	PUSH("replay:s");
	KERNEL(times10, W_(y, 1), R_(t, 4));
	POP();
	is_u64(t[0], 9, "address reuse: the new owner keeps its bytes");
	is_u64(*y, 90, "address reuse: no old bytes are put over it");
	ok(strstr(rig_read("records.jsonl"), "RS011"), "address reuse: the input was freed");
	drop(s), drop(y);
	rig_stop();
}

int main(void)
{
	c01(RS_MODE_AUDIT);
	c01(RS_MODE_PRESERVE);
	c02(0);
	c02(1);
	c02(3);
	c11(RS_MODE_AUDIT);
	c11(RS_MODE_PRESERVE);
	idempotent(RS_MODE_AUDIT);
	idempotent(RS_MODE_PRESERVE);
	rewritten(RS_MODE_AUDIT);
	rewritten(RS_MODE_PRESERVE);
	x1();
	global_variable();
	queue(1);
	queue(0);
	rejections();
	by_inputs();
	random_draws(RS_MODE_AUDIT);
	random_draws(RS_MODE_PRESERVE);
	aborted();
	faults();
	no_room_for_p2();
	failed_put_back();
	unverified();
	destroyed_stream();
	streams_come_and_go();
	freed();
	moved_in_pool();
	return tap_done();
}
