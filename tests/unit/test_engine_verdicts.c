/* SPDX-License-Identifier: MIT */
/*
 * Verdicts on what a replay does beside its forward: bytes that only it reads, state that only it touches, calls
 * that nobody can see into. On the engine alone, in audit and in preserve mode.
 */
#include "tests/unit/engine_rig.h"

static void norm(struct rig_arg *a)
{
	uint32_t x = a[1].p[0];

	a[0].p[0] = x * 5;
	a[2].p[0] = 2 * a[2].p[0] + x;
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

/*
 * C23: the replay reads what its forward did not. Unwritten since the forward began, it is what the forward would
 * have read; else, or while an older version is put back there, nobody knows.
 */
static void unread(enum rs_mode mode, int written, int shown)
{
	uint32_t *w, *x, *y, *z;
	const char *text;

	rig_start(mode);
	w = words(1), x = words(1), y = words(1), z = words(1);
	*w = 7;
	STEP(1);
	PUSH("forward:older");
	KERNEL(times10, W_(z, 1), R_(w, 1));
	POP();
	KERNEL(bump, RW_(w, 1));
	PUSH("forward:s");
	KERNEL(times10, W_(y, 1), R_(x, 1));
	POP();
	if (written)
		KERNEL(bump, RW_(w, 1));
	if (shown) {
		PUSH("replay:older");
		KERNEL(times10, W_(z, 1), R_(w, 1));
	}
	PUSH("replay:s");
	KERNEL(set_to, W_(z, 1), R_(w, 1));
	KERNEL(times10, W_(y, 1), R_(x, 1));
	POP();
	text = rig_read("records.jsonl");
	ok(!!strstr(text, "RS016") == (written || shown) && strstr(text, "RS015"),
	   "C23 other calls are noted, bytes unread so far %s",
	   written || shown ? "found" : "pass");
	is_u64(count(text, "\"outcome\":\"match\""), !written && !shown, "C23 and the outcome");
	if (shown)
		POP();
	drop(w), drop(x), drop(y), drop(z);
	rig_stop();
}

/* The same in a pool, of which another replay has had a part restored: only that part is in doubt. */
static void unread_in_pool(unsigned at, int doubt)
{
	uint32_t *pool, *x, *y, *z;

	rig_start(RS_MODE_PRESERVE);
	pool = words(64), x = words(1), y = words(1), z = words(1);
	STEP(1);
	PUSH("forward:older");
	KERNEL(times10, W_(z, 1), R_(pool, 1));
	POP();
	KERNEL(bump, RW_(pool, 1));
	PUSH("forward:s");
	KERNEL(times10, W_(y, 1), R_(x, 1));
	POP();
	PUSH("replay:older");
	KERNEL(times10, W_(z, 1), R_(pool, 1));
	POP();
	PUSH("replay:s");
	KERNEL(set_to, W_(z, 1), {pool, at, 1, RS_READ, 0, 0});
	KERNEL(times10, W_(y, 1), R_(x, 1));
	POP();
	ok(!!strstr(rig_read("records.jsonl"), "RS016") == doubt, "C23 in a pool, word %u", at);
	drop(pool), drop(x), drop(y), drop(z);
	rig_stop();
}

/* X3: a gradient that a backward inside of the window adds to; only as declared state is it put back. */
static void foreign(enum rs_mode mode, int declared)
{
	uint32_t *s, *x, *y, *g;
	const char *text;

	rig_start(mode);
	s = words(1), x = words(1), y = words(1), g = words(1);
	*s = 10, *x = 3, *g = 100;
	if (declared)
		rs_engine_region(eng, (uint64_t)g, 4, "state:grad");
	STEP(1);
	PUSH("forward:s");
	KERNEL(norm, W_(y, 1), R_(x, 1), RW_(s, 1));
	POP();
	PUSH("replay:s");
	KERNEL(norm, W_(y, 1), R_(x, 1), RW_(s, 1));
	KERNEL(bump, RW_(g, 1));
	POP();
	is_u64(*g, mode == RS_MODE_PRESERVE && declared ? 100 : 101, "X3 the gradient");
	is_u64(*s, mode == RS_MODE_PRESERVE ? 23 : 49, "X3 the statistic");
	text = rig_read("records.jsonl");
	ok(strstr(text, "RS014") && !strstr(text, "\"outcome\":\"match\""), "X3 never a match");
	drop(s), drop(x), drop(y), drop(g);
	rig_stop();
}

/* C24: the replay takes a product from where the forward left it; who changed it since is named. */
static void kept(enum rs_mode mode, int changed)
{
	uint32_t *x, *m, *y, *z;
	const char *text;

	rig_start(mode);
	x = words(1), *x = 7;
	STEP(1);
	PUSH("forward:s");
	m = words(1), y = words(1);
	KERNEL(set_to, W_(m, 1), R_(x, 1));
	KERNEL(times10, W_(y, 1), R_(m, 1));
	if (changed)
		KERNEL(bump, RW_(m, 1));
	POP();
	PUSH("replay:s");
	z = words(1);
	KERNEL(times10, W_(z, 1), R_(m, 1));
	POP();
	text = rig_read("records.jsonl");
	is_u64(count(text, "\"outcome\":\"match\""), !changed, "C24 kept unchanged is a match");
	ok(!strstr(text, "RS016") && !!strstr(text, "RS010") == changed, "C24 else overwritten");
	text = rig_read("events.jsonl");
	ok(!changed || strstr(text, "\"name\":\"bump\""), "C24 by the forward's own call");
	drop(x), drop(m), drop(y), drop(z);
	rig_stop();
}

/* A call that the engine cannot see into, or that does not run yet. */
static void opaque_call(enum rs_call_kind kind, int everything, int capturing)
{
	struct rs_call call = {.name = "opaque",
			       .ident = 1,
			       .kind = kind,
			       .q = RIG_Q(0),
			       .everything = (uint8_t)everything,
			       .capturing = (uint8_t)capturing};

	rs_engine_before(eng, thr, &call);
	rs_engine_after(eng, thr, &call, 1);
}

/* C17, C21: nothing was compared, so nothing is equal; and the code says why. */
static void opaque(enum rs_call_kind kind, int everything, int capturing, const char *code)
{
	const char *text;

	rig_start(RS_MODE_PRESERVE);
	STEP(1);
	PUSH("forward:s");
	opaque_call(kind, everything, capturing);
	POP();
	PUSH("replay:s");
	opaque_call(kind, everything, capturing);
	POP();
	text = rig_read("records.jsonl");
	ok(strstr(text, code) && strstr(text, "\"outcome\":\"rejection\",\"entry\":\"unknown\","
					      "\"product\":\"unknown\",\"after\":\"unknown\""),
	   "a rejection by %s alone, with nothing called equal", code);
	rig_stop();
}

static void overwrite(void *arg)
{
	**(uint32_t **)arg = 9;
}

/* A call that nobody can see into runs between forward and replay: what it may have written is found and undone. */
static void opaque_between(void)
{
	struct rs_call call = {.name = "opaque",
			       .ident = 1,
			       .kind = RS_CALL_KERNEL,
			       .q = RIG_Q(0),
			       .everything = 1};
	uint32_t *x, *y, **arg = malloc(sizeof(*arg));

	rig_start(RS_MODE_PRESERVE);
	x = words(1), y = words(1);
	*x = 7;
	PUSH("forward:s");
	KERNEL(times10, W_(y, 1), R_(x, 1));
	POP();
	*arg = x;
	rs_engine_before(eng, thr, &call);
	fake_call(0, overwrite, arg);
	rs_engine_after(eng, thr, &call, 1);
	PUSH("replay:s");
	KERNEL(times10, W_(y, 1), R_(x, 1));
	POP();
	fake_drain();
	is_u64(*y, 70, "the replay sees what the forward saw");
	is_u64(*x, 9, "and the unknown writer's bytes come back");
	ok(strstr(rig_read("records.jsonl"), "\"outcome\":\"match\""), "a match");
	rig_stop();
}

/* C23, where the write is followed without the lock: nobody claims anything of the allocation. */
static void unread_loosely(int written)
{
	uint32_t *w, *x, *y, *z;

	rig_start(RS_MODE_AUDIT);
	w = words(1), x = words(1), y = words(1), z = words(1);
	STEP(1);
	PUSH("forward:s");
	KERNEL(times10, W_(y, 1), R_(x, 1));
	POP();
	KERNEL(bump, RW_(z, 1));
	if (written)
		KERNEL(bump, RW_(w, 1));
	PUSH("replay:s");
	KERNEL(set_to, W_(z, 1), R_(w, 1));
	KERNEL(times10, W_(y, 1), R_(x, 1));
	POP();
	ok(!!strstr(rig_read("records.jsonl"), "RS016") == written, "C23 %s without a lock",
	   written ? "written" : "not written");
	rig_stop();
}

int main(void)
{
	unread(RS_MODE_AUDIT, 0, 0);
	unread(RS_MODE_AUDIT, 1, 0);
	unread(RS_MODE_PRESERVE, 0, 0);
	unread(RS_MODE_PRESERVE, 1, 0);
	unread(RS_MODE_PRESERVE, 0, 1);
	unread_in_pool(32, 0);
	unread_in_pool(0, 1);
	unread_loosely(0);
	unread_loosely(1);
	opaque_between();
	foreign(RS_MODE_AUDIT, 0);
	foreign(RS_MODE_AUDIT, 1);
	foreign(RS_MODE_PRESERVE, 0);
	foreign(RS_MODE_PRESERVE, 1);
	kept(RS_MODE_AUDIT, 0);
	kept(RS_MODE_AUDIT, 1);
	kept(RS_MODE_PRESERVE, 0);
	kept(RS_MODE_PRESERVE, 1);
	opaque(RS_CALL_KERNEL, 1, 0, "[\"RS050\"]");
	opaque(RS_CALL_OTHER, 1, 0, "[\"RS050\"]");
	opaque(RS_CALL_KERNEL, 0, 1, "[\"RS030\"]");
	return tap_done();
}
