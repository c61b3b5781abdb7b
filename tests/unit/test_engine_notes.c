/* SPDX-License-Identifier: MIT */
/*
 * Findings that go with a verdict without deciding it: other arguments (RS003), memory freed early (RS012), another
 * balance of allocations (RS021); and who is named where nobody was seen (RS052), or where memory is freed under a
 * reader (RS031).
 */
#include "tests/unit/engine_rig.h"
#include "tracker/model.h"

static void times2(struct rig_arg *a)
{
	a[0].p[0] = a[1].p[0] * 2;
}

static void start(enum rs_mode mode)
{
	const struct rs_engine_config config = {.mode = mode, .verify = 1, .order = 1};

	rig_start(mode);
	rs_thread_destroy(thr);
	rs_engine_destroy(eng);
	eng = rs_engine_create(&config, &fake_ops, rec);
	memset(&rig_calm, 0, sizeof(rig_calm));
	thr = rs_thread_create(eng);
	for (unsigned q = 1; q < 4; q++)
		rs_engine_queue_create(eng, thr, RIG_Q(q), 0);
	STEP(1);
}

/* The kernel y = scale * x as the driver sees it. */
static void launch(uint32_t *y, uint32_t *x, const void *args, uint32_t bytes)
{
	struct rs_access a[2] = {
		{.addr = (uint64_t)y, .bytes = 4, .dir = RS_WRITE, .how = RS_HOW_PTX, .dense = 1},
		{.addr = (uint64_t)x, .bytes = 4, .dir = RS_READ, .how = RS_HOW_PTX, .slot = 1}};
	struct rs_call call = {.name = "scale",
			       .ident = 77,
			       .kind = RS_CALL_KERNEL,
			       .q = RIG_Q(1),
			       .access = a,
			       .naccess = 2,
			       .args = args,
			       .arg_bytes = bytes};
	uint32_t by;

	rs_engine_before(eng, thr, &call);
	memcpy(&by, (const char *)args + 16, 4);
	fake_drain();
	*y = *x * by;
	rs_engine_after(eng, thr, &call, 1);
}

/* What the replay gets in place of what the forward got. */
enum other { SAME, POINTER, NUMBER, NUMBER_UNUSED, LONG_NUMBER, TAIL };

static void arguments(enum other other, unsigned notes, const char *outcome)
{
	struct {
		uint64_t y, x;
		uint32_t by, unused;
		uint64_t wide;
		uint32_t tail;
	} args = {.by = 3, .unused = 1, .wide = 1ull << 40, .tail = 5};
	uint32_t *x, *y, *z;

	start(RS_MODE_AUDIT);
	x = words(1), y = words(1), z = words(1);
	*x = 4;
	args.y = (uint64_t)y;
	args.x = (uint64_t)x;
	PUSH("forward:f");
	launch(y, x, &args, 36);
	POP();
	args.by += other == NUMBER;
	args.unused += other == NUMBER_UNUSED;
	args.wide += other == LONG_NUMBER;
	args.tail += other == TAIL;
	if (other == POINTER)
		args.y = (uint64_t)z;
	PUSH("replay:f");
	launch(other == POINTER ? z : y, x, &args, 36);
	POP();
	is_u64(count(rig_read("records.jsonl"), "RS003"), notes, "arguments: a note, or none");
	ok(count(rig_read("records.jsonl"), outcome), "%d: a %s", other, outcome);
	is_u64(count(rig_read("events.jsonl"), "\"name\":\"scale\""), notes + (other == NUMBER),
	       "with the kernel's name");
	rig_stop();
}

/* The input is freed before the replay, which takes another one or none. */
static void freed(int late, int reads)
{
	uint32_t *x, *y, *other;

	start(RS_MODE_AUDIT);
	x = words(1), y = words(1);
	PUSH("forward:f");
	KERNEL(times2, W_(y, 1), R_(x, 1));
	POP();
	if (!late) {
		PUSH("forward:g");
		drop(x);
		POP();
	}
	other = late ? x : words(1);
	PUSH("replay:f");
	if (reads)
		KERNEL(times2, W_(y, 1), R_(other, 1));
	POP();
	if (late)
		drop(x);
	ok(count(rig_read("records.jsonl"), "RS012") == (unsigned)!late, "freed %s the replay",
	   late ? "after" : "before");
	is_u64(count(rig_read("records.jsonl"), "RS011"), !late && reads, "and read all the same");
	is_u64(count(rig_read("events.jsonl"), "\"name\":\"free\""), !late, "the free is named");
	is_u64(count(rig_read("events.jsonl"), "\"window\":\"forward:g#0\""), !late,
	       "and where it was");
	rig_stop();
}

/* A name that goes (its tensor has died) after the replay saw other bytes, and before anybody knows. */
static void name_gone(int renamed)
{
	uint32_t *x, *y;

	start(RS_MODE_AUDIT);
	x = words(2), y = words(1);
	*x = 1;
	fake.eager = 0, fake.lazy = 30; /* nothing runs before somebody waits */
	rs_engine_region(eng, (uint64_t)x, 8, "state:queue");
	PUSH("forward:f");
	KERNEL(times2, W_(y, 1), R_(x, 1));
	POP();
	KERNEL(times2, W_(x, 1), R_(y, 1));
	PUSH("replay:f");
	KERNEL(times2, W_(y, 1), R_(x, 1));
	POP();
	rs_engine_region_drop(eng, (uint64_t)x, 8);
	if (renamed)
		rs_engine_region(eng, (uint64_t)x, 4, "state:other");
	is_u64(count(rig_read("events.jsonl"),
		     renamed ? "\"name\":\"other\"" : "\"name\":\"queue\""),
	       1, "state whose name is gone has it in the finding, unless there is a new one");
	is_u64(count(rig_read("events.jsonl"), renamed ? "\"bytes\":4" : "\"bytes\":8"), 1,
	       "all of it");
	rig_stop();
}

/* Freed in the order of a stream that does not wait for the one that reads. */
static void freed_under_reader(int ordered)
{
	uint32_t *x, *y;

	start(RS_MODE_AUDIT);
	x = words(1), y = words(1);
	PUSH("forward:f");
	kernel_q(1, "times2", times2, 2, (struct rig_arg[]){W_(y, 1), R_(x, 1)});
	POP();
	if (ordered) {
		rs_engine_event_record(eng, thr, RIG_Q(1), 5);
		rs_engine_event_wait(eng, thr, RIG_Q(2), 5);
	}
	fake_drain();
	rs_engine_free(eng, thr, RIG_Q(2), (uint64_t)x);
	PUSH("replay:f");
	POP();
	is_u64(count(rig_read("records.jsonl"), "RS031"), !ordered,
	       ordered ? "a free that waits for the reader" : "a free under a pending reader");
	is_u64(count(rig_read("records.jsonl"), "\"rejection\""), 1, "no match without the call");
	rig_stop();
}

/* A program that replays something. */
static void replay_another(void)
{
	PUSH("forward:other");
	POP();
	PUSH("replay:other");
	POP();
}

/* Nobody replays the forward: its findings are told when it retires, or when the run ends, once, and without a record. */
static void freed_alone(int race, int at_end, int replays)
{
	uint32_t *x, *y;
	const char *events;

	start(RS_MODE_AUDIT);
	if (replays)
		replay_another();
	x = words(1), y = words(1);
	PUSH("forward:f");
	kernel_q(1, "times2", times2, 2, (struct rig_arg[]){W_(y, 1), R_(x, 1)});
	POP();
	fake_drain();
	rs_engine_free(eng, thr, RIG_Q(race ? 2 : 1), (uint64_t)x);
	is_u64(count(rig_read("events.jsonl"), "RS012"), 0, "a replay may still come");
	if (at_end)
		rs_engine_end(eng);
	STEP(2);
	rs_engine_end(eng);
	events = rig_read("events.jsonl");
	is_u64(count(events, "RS012"), (unsigned)replays, "none came: a note, where others come");
	is_u64(count(events, "RS031"), (unsigned)race, "and what is wrong all the same");
	is_u64(count(events, "\"replay\":0"), (unsigned)(replays + race), "of no replay");
	is_u64(count(rig_read("records.jsonl"), "\"segment\":\"f\""), 0, "nothing is judged");
	rig_stop();
}

/* A replay was told: the forward by itself is not. */
static void told_once(void)
{
	uint32_t *x, *y;

	start(RS_MODE_AUDIT);
	x = words(1), y = words(1);
	PUSH("forward:f");
	KERNEL(times2, W_(y, 1), R_(x, 1));
	POP();
	fake_drain();
	drop(x);
	PUSH("replay:f");
	POP();
	is_u64(count(rig_read("events.jsonl"), "RS012"), 1, "a replay is told of what was freed");
	STEP(2);
	rs_engine_end(eng);
	is_u64(count(rig_read("events.jsonl"), "RS012"), 1, "and that is enough");
	rig_stop();
}

/* A program that replays little and frees much does not fill the disk. */
static void many_alone(void)
{
	uint32_t *x, *y;

	start(RS_MODE_AUDIT);
	replay_another();
	y = words(1);
	for (int i = 0; i < 300; i++) {
		x = words(1);
		PUSH("forward:f");
		KERNEL(times2, W_(y, 1), R_(x, 1));
		POP();
		fake_drain();
		drop(x);
		rs_engine_mark(eng, thr, "step:7");
	}
	is_u64(count(rig_read("events.jsonl"), "RS012"), 256, "no more than 256 of a run");
	rig_stop();
}

/* The driver refuses the free: nothing was freed. */
static void not_freed(void)
{
	uint32_t *x, *y;

	start(RS_MODE_AUDIT);
	x = words(1), y = words(1);
	PUSH("forward:f");
	KERNEL(times2, W_(y, 1), R_(x, 1));
	POP();
	rs_engine_free_end(eng, rs_engine_free_begin(eng, thr, RIG_Q(0), (uint64_t)x), 0);
	PUSH("replay:f");
	KERNEL(times2, W_(y, 1), R_(x, 1));
	POP();
	is_u64(count(rig_read("records.jsonl"), "\"match\""), 1, "a free that was refused");
	is_u64(count(rig_read("records.jsonl"), "RS012"), 0, "is none");
	rig_stop();
}

static void balance(int forward, int replay, int given_back)
{
	uint32_t *x, *y, *p;

	start(RS_MODE_AUDIT);
	x = words(1), y = words(1);
	for (int r = 0; r < 2; r++) {
		PUSH(r ? "replay:f" : "forward:f");
		KERNEL(times2, W_(y, 1), R_(x, 1));
		for (int i = 0; i < (r ? replay : forward); i++) {
			p = words(4);
			if (given_back)
				drop(p);
		}
		POP();
	}
	ok(count(rig_read("records.jsonl"), "\"match\"") == 1, "%d and %d allocations: a match",
	   forward, replay);
	is_u64(count(rig_read("records.jsonl"), "RS021"), forward != replay,
	       "with a note, or none");
	rig_stop();
}

/* Memory that the host may change at any time. */
static void unseen(int seen, enum rs_mode mode)
{
	static uint32_t host[64];
	uint32_t *y;

	start(mode);
	y = words(1);
	host[0] = 5;
	rs_engine_alloc(eng, thr, RIG_Q(0), (uint64_t)host, sizeof(host), RS_ALLOC_HOST);
	PUSH("forward:f");
	KERNEL(times2, W_(y, 1), R_(host, 1));
	POP();
	fake_drain();
	if (seen)
		KERNEL(times2, W_(host, 1), R_(y, 1));
	else
		host[0] = 6;
	PUSH("replay:f");
	KERNEL(times2, W_(y, 1), R_(host, 1));
	POP();
	is_u64(count(rig_read("records.jsonl"), "RS052"), !seen, "nobody was seen to write: RS052");
	is_u64(count(rig_read("records.jsonl"), "RS010"), (unsigned)seen, "somebody was: RS010");
	is_u64(count(rig_read("records.jsonl"), "\"divergence\""), 1, "a divergence");
	rig_stop();
}

int main(void)
{
	arguments(SAME, 0, "match");
	arguments(POINTER, 0, "match");
	arguments(NUMBER, 1, "divergence");
	arguments(NUMBER_UNUSED, 1, "match");
	arguments(LONG_NUMBER, 1, "match");
	arguments(TAIL, 1, "match");
	name_gone(0);
	name_gone(1);
	freed(0, 0);
	freed(0, 1);
	freed(1, 1);
	freed_under_reader(0);
	freed_under_reader(1);
	freed_alone(0, 0, 1);
	freed_alone(1, 0, 1);
	freed_alone(1, 1, 1);
	freed_alone(0, 0, 0);
	freed_alone(1, 0, 0);
	told_once();
	many_alone();
	not_freed();
	balance(0, 0, 0);
	balance(2, 2, 0);
	balance(0, 1, 0);
	balance(2, 1, 1);
	unseen(0, RS_MODE_AUDIT);
	unseen(1, RS_MODE_AUDIT);
	unseen(0, RS_MODE_PRESERVE);
	return tap_done();
}
