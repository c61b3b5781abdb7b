/* SPDX-License-Identifier: MIT */
/*
 * The short way for calls of a forward that touch nothing new (tracker/steady.c), and what is planned before a call is
 * made (pairing.c, rs_pair_plan): everything after which a call is not like the one before. Each case repeats a call
 * until it takes the short way, changes something, and makes it again.
 */
#include "tests/unit/engine_rig.h"
#include "tracker/model.h"

static struct rs_thread *first, *second;

static void read_it(struct rig_arg *a)
{
	a[0].p[0] = a[1].p[a[1].first];
}

static void bump(struct rig_arg *a)
{
	for (unsigned i = a[0].first; i < a[0].first + a[0].n; i++)
		a[0].p[i] += 1;
}

static void set(struct rig_arg *a)
{
	for (unsigned i = a[0].first; i < a[0].first + a[0].n; i++)
		a[0].p[i] = 7;
}

static void copy(struct rig_arg *a)
{
	for (unsigned i = 0; i < a[0].n; i++)
		a[0].p[i] = a[1].p[i];
}

#define ON(q, fn, ...)                                                                             \
	kernel_q(q, #fn, fn, sizeof((struct rig_arg[]){__VA_ARGS__}) / sizeof(struct rig_arg),     \
		 (struct rig_arg[]){__VA_ARGS__})

static uint64_t matches(void)
{
	return count(rig_read("records.jsonl"), "\"outcome\":\"match\"");
}

static void start(enum rs_mode mode)
{
	rig_start(mode);
	first = thr;
	second = rs_thread_create(eng);
	STEP(1);
}

static void stop(void)
{
	thr = first;
	rs_thread_destroy(second);
	rig_stop();
}

/* Often enough that some were looked up (calm.h), and the short way was taken. */
#define OFTEN(stmt)                                                                                \
	for (unsigned often = 0; often < 5; often++)                                               \
	stmt

/* One call, which the caller has looked up: if it is steady it takes the short way, and nobody makes up for it. */
#define SHORT(...) (rig_calm.calls = 0, ON(__VA_ARGS__))

/* Another thread's forward reads what this one's writes: the next write must save what it saw. */
static void claimed(unsigned from, unsigned n)
{
	uint32_t *x, *y;

	start(RS_MODE_PRESERVE);
	x = words(8), y = words(1);
	PUSH("forward:f");
	OFTEN(ON(0, bump, RW_(x, 8)));
	thr = second;
	PUSH("forward:g");
	ON(0, read_it, W_(y, 1), {x, from, n, RS_READ, 0, 0});
	POP();
	thr = first;
	OFTEN(ON(0, bump, RW_(x, 8)));
	POP();
	thr = second;
	PUSH("replay:g");
	ON(0, read_it, W_(y, 1), {x, from, n, RS_READ, 0, 0});
	POP();
	fake_drain();
	ok(*y == 5, "bytes %u to %u, claimed by another: its replay sees what it saw", 4 * from,
	   4 * (from + n));
	is_u64(x[from], 10, "and leaves what was written since");
	is_u64(matches(), 1, "a match");
	stop();
}

/* A window inside of the window, or a process-wide one beside it: each logs all of its calls. */
static void other_windows(int process)
{
	uint32_t *x, *y;
	uint64_t id = 0;

	start(RS_MODE_AUDIT);
	x = words(1), y = words(1);
	for (unsigned replay = 0; replay < 2; replay++) {
		if (process)
			id = rs_engine_range_start(eng, thr, replay ? "replay:p" : "forward:p");
		if (!process || !replay)
			PUSH(replay ? "replay:p" : process ? "forward:f" : "forward:p");
		OFTEN(ON(0, copy, W_(y, 1), R_(x, 1)));
		if (!process && !replay)
			PUSH("forward:g");
		OFTEN(ON(0, copy, W_(y, 1), R_(x, 1)));
		if (!process && !replay)
			POP();
		if (!process || !replay)
			POP();
		if (process)
			rs_engine_range_end(eng, thr, id);
	}
	ok(matches() == 1 && !count(rig_read("records.jsonl"), "RS015"),
	   "%s: the replay finds all calls in the log",
	   process ? "a process-wide window" : "an enclosing window");
	stop();
}

/* What was written in part, and is then read, may be state: whoever overwrites it later keeps it. */
static void read_later(void)
{
	uint32_t *x, *y;

	start(RS_MODE_AUDIT);
	x = words(8), y = words(1);
	for (unsigned replay = 0; replay < 2; replay++) {
		PUSH(replay ? "replay:f" : "forward:f");
		OFTEN(ON(0, set, W_(y, 1)));
		OFTEN(ON(0, set, {x, 0, 8, RS_WRITE, 1, 0}));
		SHORT(0, read_it, W_(y, 1), R_(x, 8));
		POP();
		if (!replay)
			ON(0, bump, RW_(x, 8));
	}
	ok(count(rig_read("records.jsonl"), "RS014"),
	   "nobody can tell what it was, and that is said");
	stop();
}

/* Another thread's forward writes on another stream, without an order, to what this one reads. */
static void races(void)
{
	uint32_t *x, *y;

	rig_order = 1;
	start(RS_MODE_AUDIT);
	for (unsigned q = 1; q < 3; q++)
		rs_engine_queue_create(eng, thr, RIG_Q(q), 0);
	x = words(8), y = words(1);
	PUSH("forward:f");
	ON(1, set, W_(x, 8));
	OFTEN(ON(1, read_it, W_(y, 1), R_(x, 8)));
	thr = second;
	PUSH("forward:g");
	ON(2, set, {x, 4, 4, RS_WRITE, 0, 0});
	POP();
	thr = first;
	SHORT(1, read_it, W_(y, 1), R_(x, 8));
	POP();
	rs_engine_synced_ctx(eng, 1); /* the replay itself finds an order */
	PUSH("replay:f");
	ON(1, set, W_(x, 8));
	OFTEN(ON(1, read_it, W_(y, 1), R_(x, 8)));
	ON(1, read_it, W_(y, 1), R_(x, 8));
	POP();
	ok(count(rig_read("records.jsonl"), "RS031"), "a race is said");
	stop();
	rig_order = 0;
}

/* Another thread's replay reads what its forward has not: a match only if nobody has written to that since. */
static void written_since(int written)
{
	uint32_t *x, *y, *z;

	start(RS_MODE_AUDIT);
	x = words(1), y = words(1), z = words(1);
	PUSH("forward:f");
	OFTEN(ON(0, set, W_(y, 1)));
	thr = second;
	PUSH("forward:g");
	ON(0, copy, W_(z, 1), R_(x, 1));
	POP();
	thr = first;
	if (written)
		SHORT(0, set, W_(y, 1));
	thr = second;
	PUSH("replay:g");
	ON(0, copy, W_(z, 1), R_(x, 1), R_(y, 1));
	POP();
	thr = first;
	POP();
	ok(matches() == !written, "an input that the forward did not have, %s",
	   written ? "written since" : "and nobody has written");
	stop();
}

/* Another thread's forward reads what this one's has written last, of which it is not known to come before. */
static void raced(void)
{
	uint32_t *x, *y, *z;
	const char *events;

	rig_order = 1;
	start(RS_MODE_AUDIT);
	for (unsigned q = 1; q < 3; q++)
		rs_engine_queue_create(eng, thr, RIG_Q(q), 0);
	x = words(1), y = words(1), z = words(1);
	PUSH("forward:f");
	OFTEN(ON(1, copy, W_(y, 1), R_(x, 1)));
	rs_engine_synced_ctx(eng, 1);
	SHORT(1, set, W_(y, 1));
	thr = second;
	PUSH("forward:g");
	ON(2, copy, W_(z, 1), R_(y, 1));
	POP();
	thr = first;
	POP();
	rs_engine_synced_ctx(eng, 1);
	thr = second;
	PUSH("replay:g");
	ON(2, copy, W_(z, 1), R_(y, 1));
	POP();
	rig_read("records.jsonl");
	events = strstr(rig_read("events.jsonl"), "RS031");
	ok(events && count(events, "\"name\":\"set\"") == 1,
	   "a race with the write that came last");
	stop();
	rig_order = 0;
}

/* A call of the forward does more than its accesses tell, or does not run at all now, and else all of it is steady. */
static void flagged(struct rs_call more, const char *code)
{
	uint64_t base, bytes;
	uint32_t *x;

	start(RS_MODE_AUDIT);
	x = words(1);
	for (unsigned replay = 0; replay < 2; replay++) {
		struct rs_access a = {.addr = (uint64_t)x,
				      .bytes = 4,
				      .dir = RS_WRITE,
				      .how = RS_HOW_PTX,
				      .dense = 1};
		struct rs_call call = {0};

		if (!replay)
			call = more;
		call.name = "set";
		call.ident = 1;
		call.kind = RS_CALL_KERNEL;
		call.q = RIG_Q(0);
		call.access = &a;
		call.naccess = 1;
		PUSH(replay ? "replay:f" : "forward:f");
		OFTEN(ON(0, set, W_(x, 1)));
		call.generation = rs_engine_generation(eng);
		a.memory = rs_engine_lookup(eng, a.addr, &base, &bytes);
		rs_engine_before(eng, thr, &call);
		rs_engine_after(eng, thr, &call, 1);
		POP();
	}
	ok(count(rig_read("records.jsonl"), code), "%s", code);
	stop();
}

/* With versions of whole buffers a write to the one half is one to the other, which another thread's forward has read. */
static void whole_buffers(void)
{
	const struct rs_engine_config config = {
		.mode = RS_MODE_PRESERVE, .verify = 1, .buffers = 1};
	struct rs_engine_stats s;
	uint32_t *x, *y;

	rig_start(RS_MODE_PRESERVE);
	rs_thread_destroy(thr);
	rs_engine_destroy(eng);
	eng = rs_engine_create(&config, &fake_ops, rec);
	first = thr = rs_thread_create(eng);
	second = rs_thread_create(eng);
	STEP(1);
	x = words(8), y = words(1);
	PUSH("forward:f");
	OFTEN(ON(0, set, {x, 4, 4, RS_WRITE, 0, 0}));
	thr = second;
	PUSH("forward:g");
	ON(0, copy, W_(y, 1), R_(x, 4));
	POP();
	thr = first;
	SHORT(0, set, {x, 4, 4, RS_WRITE, 0, 0});
	rs_engine_stats(eng, &s);
	ok(s.snapshot_bytes, "the other half of a buffer is kept");
	POP();
	stop();
}

/* Between two calls of the forward another thread's replay was shown, on another stream, other bytes. */
static void fenced(uint64_t seed)
{
	uint32_t *x, *y, *z;

	start(RS_MODE_PRESERVE);
	x = words(1), y = words(1), z = words(1);
	*x = 5;
	thr = second;
	PUSH("forward:g");
	ON(1, copy, W_(y, 1), R_(x, 1));
	POP();
	thr = first;
	ON(2, bump, RW_(x, 1));
	PUSH("forward:f");
	OFTEN(ON(2, copy, W_(z, 1), R_(x, 1)));
	fake_drain();
	fake.eager = 0;
	fake.rng = seed;
	thr = second;
	PUSH("replay:g");
	ON(1, copy, W_(y, 1), R_(x, 1));
	POP();
	thr = first;
	SHORT(2, copy, W_(z, 1), R_(x, 1));
	POP();
	while (fake_run_one(2)) /* as far as it may come before all others */
		;
	fake_drain();
	ok(*y == 5 && *z == 6, "seed %d: both see what is theirs", (int)seed);
	stop();
}

/* The accesses were looked up, and then the address got other memory. */
static void looked_up_before(void)
{
	uint64_t base, bytes, version;
	struct rs_access a = {.bytes = 4, .dir = RS_WRITE, .how = RS_HOW_PTX, .dense = 1};
	struct rs_call call = {.name = "set",
			       .ident = 1,
			       .kind = RS_CALL_KERNEL,
			       .q = RIG_Q(0),
			       .access = &a,
			       .naccess = 1};
	const struct rs_alloc *now;
	uint32_t *x;

	start(RS_MODE_AUDIT);
	x = words(1);
	PUSH("forward:f");
	OFTEN(ON(0, set, W_(x, 1)));
	a.addr = (uint64_t)x;
	call.generation = rs_engine_generation(eng);
	a.memory = rs_engine_lookup(eng, a.addr, &base, &bytes);
	rs_engine_free(eng, thr, RIG_Q(0), a.addr);
	rs_engine_alloc(eng, thr, RIG_Q(0), a.addr, 4, RS_ALLOC_DEVICE);
	now = rs_engine_lookup(eng, a.addr, &base, &bytes);
	ok(now != a.memory, "other memory");
	version = now->ext.ext[0].ver;
	rs_engine_before(eng, thr, &call);
	ok(now->ext.ext[0].ver != version, "the call writes to what is there now");
	rs_engine_after(eng, thr, &call, 1);
	POP();
	stop();
}

/* The driver refuses the forward's call, and makes the replay's. */
static void refused(void)
{
	uint32_t *x, *y;

	start(RS_MODE_AUDIT);
	x = words(1), y = words(1);
	for (unsigned replay = 0; replay < 2; replay++) {
		struct rs_access a = {.addr = (uint64_t)y,
				      .bytes = 4,
				      .dir = RS_WRITE,
				      .how = RS_HOW_PTX,
				      .dense = 1};
		struct rs_call call = {.name = "set",
				       .ident = 1,
				       .kind = RS_CALL_KERNEL,
				       .q = RIG_Q(0),
				       .access = &a,
				       .naccess = 1};

		PUSH(replay ? "replay:f" : "forward:f");
		ON(0, copy, W_(y, 1), R_(x, 1));
		rs_engine_before(eng, thr, &call);
		rs_engine_after(eng, thr, &call, replay);
		POP();
	}
	is_u64(matches(), 0, "a product that only the replay has made is no match");
	stop();
}

/*
 * A launch of two calls, described before it and followed up after it, both times the one after the other. late: its first
 * call's product is seen as the second one leaves it (rs_access.late), and in the forward only.
 */
static void launch_of_two(int late, int two)
{
	uint32_t *x, *y, *z;

	start(RS_MODE_AUDIT);
	x = words(1), y = words(2), z = words(1);
	y[0] = 5, y[1] = 6;
	for (unsigned replay = 0; replay < 2; replay++) {
		struct rs_access a[2];
		struct rs_call call[2];

		PUSH(replay ? "replay:f" : "forward:f");
		ON(0, copy, W_(z, 1), R_(x, 1));
		for (unsigned i = 0; i < 2; i++) {
			a[i] = (struct rs_access){.addr = (uint64_t)(y + (two ? i : 0)),
						  .bytes = 4,
						  .dir = RS_WRITE,
						  .how = RS_HOW_PTX,
						  .dense = 1};
			call[i] = (struct rs_call){.name = "set",
						   .ident = 1 + i,
						   .kind = RS_CALL_KERNEL,
						   .q = RIG_Q(0),
						   .access = &a[i],
						   .naccess = 1};
			rs_engine_before(eng, thr, &call[i]);
		}
		if (late && !replay)
			a[0].late = 1;
		rs_engine_after(eng, thr, &call[0], 1);
		rs_engine_after(eng, thr, &call[1], 1);
		POP();
	}
	is_u64(matches(), !late,
	       late ? "digests of different moments are not compared"
		    : "each call's own product is compared");
	stop();
}

/* Products are digested once each, also those that were planned. */
static void counted(void)
{
	struct rs_engine_stats s;
	uint32_t *x, *y;

	start(RS_MODE_AUDIT);
	x = words(1), y = words(2);
	PUSH("forward:f");
	OFTEN(ON(0, copy, W_(y, 1), R_(x, 1)));
	POP();
	rs_engine_stats(eng, &s);
	is_u64(s.digests, 5, "five products, five digests");
	is_u64(s.digest_bytes, 20, "of four bytes each");
	PUSH("replay:f");
	OFTEN(ON(0, copy, W_(y, 1), R_(x, 1)));
	POP();
	is_u64(matches(), 1, "a match");
	stop();
}

int main(void)
{
	claimed(0, 8);
	claimed(0, 4);
	claimed(4, 4);
	other_windows(0);
	other_windows(1);
	read_later();
	races();
	written_since(0);
	written_since(1);
	raced();
	whole_buffers();
	flagged((struct rs_call){.untracked = 1}, "RS060");
	flagged((struct rs_call){.host_effect = 1}, "RS020");
	flagged((struct rs_call){.everything = 1}, "RS050");
	flagged((struct rs_call){.capturing = 1}, "RS030");
	for (uint64_t seed = 1; seed < 10; seed++)
		fenced(seed);
	looked_up_before();
	refused();
	launch_of_two(1, 0);
	launch_of_two(0, 0);
	launch_of_two(0, 1);
	counted();
	return tap_done();
}
