/* SPDX-License-Identifier: MIT */
/*
 * Where calls are made: the engine asks about those that a finding may name, about no others, and with no lock held; the
 * finding gives the answer, after it has been told of.
 */
#include "tests/unit/engine_rig.h"
#include "tracker/model.h"

static unsigned asked, told, told_late;
static uint32_t answer = 7;

/* Takes the engine's lock: if it were held, the test would hang. */
static uint32_t where(void)
{
	struct rs_engine_stats stats;

	rs_engine_stats(eng, &stats);
	asked++;
	return answer;
}

/* Before any line gives the number. */
static void where_told(uint32_t id)
{
	static char text[1 << 16];
	char path[128];
	FILE *f;

	told += id == answer;
	snprintf(path, sizeof(path), "%s/events.jsonl", rig_dir);
	f = fopen(path, "r");
	text[f ? fread(text, 1, sizeof(text) - 1, f) : 0] = '\0';
	if (f)
		fclose(f);
	told_late += told == 1 && count(text, "\"stack\"");
}

static void start(enum rs_mode mode)
{
	const struct rs_engine_config config = {
		.mode = mode, .verify = 1, .order = 1, .where = where, .where_told = where_told};

	rig_start(mode);
	rs_thread_destroy(thr);
	rs_engine_destroy(eng);
	eng = rs_engine_create(&config, &fake_ops, rec);
	memset(&rig_calm, 0, sizeof(rig_calm));
	thr = rs_thread_create(eng);
	for (unsigned q = 1; q < 4; q++)
		rs_engine_queue_create(eng, thr, RIG_Q(q), 0);
	asked = told = told_late = 0;
	STEP(1);
}

static void copy(struct rig_arg *a)
{
	a[0].p[0] = a[1].p[0];
}

static void set(struct rig_arg *a)
{
	a[0].p[0]++;
}

static void forward(uint32_t *y, uint32_t *x)
{
	PUSH("forward:f");
	KERNEL(copy, W_(y, 1), R_(x, 1));
	POP();
}

static void replay(uint32_t *y, uint32_t *x)
{
	PUSH("replay:f");
	KERNEL(copy, W_(y, 1), R_(x, 1));
	POP();
}

/* Stands in how many findings of that code, and is it the record's? */
static void expect(const char *code, unsigned n, const char *what)
{
	const char *text = rig_read("events.jsonl"), *line;
	unsigned with = 0;
	char key[32];

	snprintf(key, sizeof(key), "\"code\":\"%s\"", code);
	for (line = strstr(text, key); line; line = strstr(line + 1, key)) {
		const char *end = strchr(line, '\n');
		const char *stack = strstr(line, "\"stack\":7");

		with += stack && end && stack < end;
	}
	is_u64(with, n, what);
	is_u64(told > 0, n > 0, "told of");
	is_u64(told_late, 0, "before it is given");
	ok(!n || count(rig_read("records.jsonl"), "\"stack\":7}"), "%s: in the record", what);
}

static void nothing_to_ask(void)
{
	uint32_t *x, *y, *z;

	start(RS_MODE_AUDIT);
	x = words(1), y = words(1), z = words(1);
	for (unsigned i = 0; i < 3; i++) {
		rs_engine_mark(eng, thr, i == 1 ? "step:2" : "step:3");
		KERNEL(set, RW_(z, 1));
		forward(y, x);
		KERNEL(set, RW_(z, 1));
		KERNEL(set, RW_(y, 1));
		replay(y, x);
	}
	is_u64(count(rig_read("records.jsonl"), "match"), 3, "nothing is wrong");
	is_u64(asked, 0, "nobody is asked");
	rig_stop();
}

static void overwritten(enum rs_mode mode)
{
	uint32_t *x, *y;

	start(mode);
	x = words(1), y = words(1);
	forward(y, x);
	KERNEL(set, RW_(x, 1));
	is_u64(asked, 1, "an overwriting call is asked about");
	KERNEL(set, RW_(x, 1));
	is_u64(asked, 1, "what comes after it is not");
	replay(y, x);
	expect("RS010", mode == RS_MODE_AUDIT, "overwritten");
	rig_stop();
}

/* State that the replay writes: audit compares what it was, and names the replay's call. */
static void side_effect(void)
{
	uint32_t *x;

	start(RS_MODE_AUDIT);
	x = words(1);
	for (unsigned i = 0; i < 2; i++) {
		PUSH(i ? "replay:f" : "forward:f");
		KERNEL(set, RW_(x, 1));
		POP();
	}
	expect("RS013", 1, "a side effect");
	rig_stop();
}

static void one_call(struct rs_call *call)
{
	rs_engine_before(eng, thr, call);
	fake_drain();
	rs_engine_after(eng, thr, call, 1);
}

/* What keeps a window from vouching for itself: the first such call, of the forward or of the replay. */
static void blamed(const char *code, int unknown, int host, int in_forward)
{
	struct rs_call plain = {.name = "plain", .kind = RS_CALL_KERNEL, .q = RIG_Q(1)};
	struct rs_call call = {.name = "culprit",
			       .kind = RS_CALL_KERNEL,
			       .q = RIG_Q(1),
			       .everything = (uint8_t)unknown,
			       .host_effect = (uint8_t)host,
			       .untracked = (uint8_t)(!unknown && !host)};

	start(RS_MODE_AUDIT);
	for (unsigned i = 0; i < 2; i++) {
		PUSH(i ? "replay:f" : "forward:f");
		one_call(&plain);
		if (i != (unsigned)in_forward) {
			one_call(&call);
			one_call(&call);
		}
		POP();
	}
	is_u64(asked, 1, "the first call that is to blame is asked about");
	expect(code, 1, code);
	ok(count(rig_read("events.jsonl"), "culprit"), "%s: named", code);
	rig_stop();
}

static void draws(void)
{
	uint32_t *x;
	struct rs_access a = {.bytes = 4, .dir = RS_WRITE, .how = RS_HOW_EXACT, .dense = 1};
	struct rs_call call = {.name = "curandGenerate",
			       .kind = RS_CALL_OTHER,
			       .q = RIG_Q(1),
			       .access = &a,
			       .naccess = 1};

	start(RS_MODE_AUDIT);
	x = words(1);
	a.addr = (uint64_t)x;
	for (unsigned i = 0; i < 2; i++) {
		PUSH(i ? "replay:f" : "forward:f");
		rs_engine_before(eng, thr, &call);
		if (!rs_engine_draw(eng, thr, &call, 5, i * 4))
			rs_engine_drawn(eng, thr, &call, 5, i * 4);
		rs_engine_after(eng, thr, &call, 1);
		POP();
	}
	is_u64(asked, 1, "a draw elsewhere is asked about");
	expect("RS002", 1, "a draw elsewhere");
	rig_stop();
}

/* The reader is where the race is noticed; of the writer only the name is known. */
static void race(void)
{
	uint32_t *x, *y;

	start(RS_MODE_AUDIT);
	x = words(1), y = words(1);
	PUSH("forward:e");
	kernel_q(2, "copy", copy, 2, (struct rig_arg[]){W_(y, 1), R_(x, 1)});
	POP();
	kernel_q(2, "set", set, 1, (struct rig_arg[]){RW_(x, 1)});
	asked = 0;
	PUSH("forward:f");
	kernel_q(1, "copy", copy, 2, (struct rig_arg[]){W_(y, 1), R_(x, 1)});
	POP();
	is_u64(asked > 0, 1, "the reader of unordered bytes is asked about");
	fake_drain();
	PUSH("replay:f");
	POP();
	ok(count(rig_read("events.jsonl"), "\"noticed\":{\"call\":"),
	   "it is where the race was noticed");
	expect("RS031", 1, "a race");
	rig_stop();
}

static void freed(void)
{
	uint32_t *x, *y;

	start(RS_MODE_AUDIT);
	x = words(1), y = words(1);
	forward(y, x);
	drop(x);
	is_u64(asked, 1, "a free is asked about");
	PUSH("replay:f");
	POP();
	expect("RS012", 1, "freed early");
	rig_stop();
}

/* Nobody knows: nothing is said, and it is no number of somebody else's. */
static void unknown(void)
{
	uint32_t *x, *y;

	start(RS_MODE_AUDIT);
	answer = 0;
	x = words(1), y = words(1);
	forward(y, x);
	KERNEL(set, RW_(x, 1));
	replay(y, x);
	is_u64(asked, 1, "asked");
	is_u64(count(rig_read("events.jsonl"), "\"stack\""), 0, "an answer of 0 is none");
	answer = 1u << RS_WHERE_BITS;
	forward(y, x);
	KERNEL(set, RW_(x, 1));
	replay(y, x);
	is_u64(count(rig_read("events.jsonl"), "\"stack\""), 0, "nor is one that does not fit");
	answer = 7;
	rig_stop();
}

/* The ring by itself: so many others came after a call that its place is forgotten. Numbers may be a little out of order. */
static void forgotten(void)
{
	static struct rs_engine e;
	uint64_t entry[2];

	start(RS_MODE_AUDIT);
	e.config.where = where;
	rs_where_init(&e);
	rs_where_want(&e);
	entry[0] = rs_where_reserve(&e, 11);
	is_u64(rs_where_reserve(&e, 12), 0, "what nobody wants gets no entry");
	rs_where_want(&e);
	entry[1] = rs_where_reserve(&e, 10);
	rs_where_take(&e, 10, entry[1]);
	is_u64(rs_where_of(&e, 11), 0, "not answered yet");
	rs_where_take(&e, 11, entry[0]);
	is_u64(rs_where_of(&e, 10) + rs_where_of(&e, 11), 2 * answer, "found out of order");
	is_u64(rs_where_of(&e, 9) + rs_where_of(&e, 12), 0, "others are not");
	for (uint64_t call = 20; e.where.n < RS_WHERE_RING; call++) {
		rs_where_want(&e);
		entry[1] = rs_where_reserve(&e, call);
	}
	is_u64(rs_where_of(&e, 11), answer, "the last moment");
	rs_where_want(&e);
	entry[1] = rs_where_reserve(&e, 1u << 20);
	is_u64(rs_where_of(&e, 11), 0, "forgotten");
	rs_where_take(&e, 1u << 20, entry[1]);
	rs_where_take(&e, 11, entry[0]);
	is_u64(rs_where_of(&e, 1u << 20), answer, "an answer that comes too late does no harm");
	is_u64(rs_where_of(&e, 10), answer, "the next one is still there");
	rs_where_fini(&e);
	rig_stop();
}

int main(void)
{
	nothing_to_ask();
	overwritten(RS_MODE_AUDIT);
	overwritten(RS_MODE_PRESERVE);
	side_effect();
	blamed("RS050", 1, 0, 0);
	blamed("RS050", 1, 0, 1);
	blamed("RS060", 0, 0, 0);
	blamed("RS020", 0, 1, 1);
	draws();
	race();
	freed();
	unknown();
	forgotten();
	return tap_done();
}
