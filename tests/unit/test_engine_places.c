/* SPDX-License-Identifier: MIT */
/*
 * Aliases of forwards: learned across their calls, also through views and mappings, held against a byte-by-byte model for
 * random forwards; and a run that has others than its contract says is a rejection that names both places (RS084).
 */
#include "tests/unit/engine_rig.h"
#include "tracker/model.h"

static void nothing(struct rig_arg *a)
{
	(void)a;
}

static void start(enum rs_mode mode, int profile)
{
	const struct rs_engine_config config = {
		.mode = mode, .verify = 1, .profile = (uint8_t)profile};

	rig_start(mode);
	rs_thread_destroy(thr);
	rs_engine_destroy(eng);
	eng = rs_engine_create(&config, &fake_ops, rec);
	memset(&rig_calm, 0, sizeof(rig_calm));
	thr = rs_thread_create(eng);
}

/* The lines that a run of these forwards leaves. */
static const char *learned(void)
{
	rs_engine_learned(eng);
	return rig_read("events.jsonl");
}

/* "call slot piece = call slot piece (bytes, forwards)" stands among them so often. */
static unsigned tells(const char *events, unsigned call, unsigned slot, unsigned other_call,
		      unsigned other_slot, unsigned bytes, unsigned forwards)
{
	char want[2][200];
	unsigned n = 0;

	snprintf(want[0], sizeof(want[0]), "\"call\":%u,\"slot\":%u,\"piece\":0,\"kernel\":", call,
		 slot);
	snprintf(
		want[1], sizeof(want[1]),
		"\"other_call\":%u,\"other_slot\":%u,\"other_piece\":0,\"other_kernel\":\"nothing\"",
		other_call, other_slot);
	while ((events = strstr(events, "\"t\":\"alias\""))) {
		char line[600], numbers[80];
		size_t len = strcspn(events, "\n");

		snprintf(line, sizeof(line), "%.*s", (int)len, events);
		snprintf(numbers, sizeof(numbers), "\"bytes\":%u,\"forwards\":%u", bytes, forwards);
		n += strstr(line, want[0]) && strstr(line, want[1]) && strstr(line, numbers);
		events += len;
	}
	return n;
}

/* Weights that three calls share, one of them by a view; and a call that gets one tensor twice. */
static void shared_weights(void)
{
	uint32_t *w, *y, *own;
	const char *events;

	start(RS_MODE_AUDIT, 1);
	w = words(8), y = words(8), own = words(8);
	rs_engine_region(eng, (uint64_t)own, 32, "state:own");
	for (unsigned i = 0; i < 2; i++) {
		PUSH("forward:f");
		KERNEL(nothing, W_(y, 4), R_(w, 8));
		KERNEL(nothing, W_(y, 4), R_(own, 8));
		KERNEL(nothing, W_(y, 4), {w, 2, 4, RS_READ, 0, 0});
		if (!i)
			KERNEL(nothing, R_(own, 4), {own, 2, 2, RS_READ, 0, 0}, W_(y, 8));
		POP();
	}
	events = learned();
	is_u64(tells(events, 0, 1, 2, 1, 16, 2), 1, "a view that another call reads");
	is_u64(tells(events, 1, 1, 3, 0, 16, 1), 1, "what is read again");
	is_u64(tells(events, 1, 1, 3, 1, 8, 1), 1, "by two arguments, both with the first reader");
	is_u64(count(events, "\"region\":\"own\""), 2 + 1,
	       "memory that has a name gives it, as its state does");
	is_u64(count(events, "\"t\":\"alias\""), 3, "and no more");
	is_u64(count(events, "\"aliases_cut\":false"), 1, "nothing is left out");
	rig_stop();
}

/* What is not state is memory that anything may lie in; but two arguments of one call are an alias there, too. */
static void pool(void)
{
	uint32_t *p, *x;
	const char *events;

	start(RS_MODE_AUDIT, 1);
	p = words(16), x = words(4);
	PUSH("forward:f");
	KERNEL(nothing, W_(p, 8), R_(x, 4));
	KERNEL(nothing, {p, 8, 8, RS_WRITE, 0, 0}, R_(p, 8));
	KERNEL(nothing, W_(p, 8));
	KERNEL(nothing, W_(x, 4));
	POP();
	events = learned();
	is_u64(tells(events, 0, 1, 3, 0, 16, 1), 1, "a write to what was read");
	is_u64(count(events, "\"t\":\"alias\""), 1, "products that follow one another are none");
	rig_stop();
	start(RS_MODE_AUDIT, 1);
	p = words(16);
	PUSH("forward:f");
	KERNEL(nothing, W_(p, 8), {p, 4, 8, RS_WRITE, 0, 0});
	KERNEL(nothing, {p, 0, 8, RS_READ, 0, 1}, {p, 0, 8, RS_READ, 0, 1});
	POP();
	events = learned();
	is_u64(tells(events, 0, 0, 0, 1, 16, 1), 1, "two outputs of one call");
	is_u64(count(events, "\"t\":\"alias\""), 1, "an access without bounds proves nothing");
	rig_stop();
}

/* One backing at two addresses. */
static void mappings(void)
{
	static uint32_t at[2][1024] __attribute__((aligned(4096)));
	uint32_t *y;

	start(RS_MODE_AUDIT, 1);
	y = words(4);
	rs_engine_backing(eng, 9, 4096, RS_ALLOC_DEVICE);
	for (unsigned i = 0; i < 2; i++) {
		rs_engine_reserve(eng, (uint64_t)at[i], 4096);
		rs_engine_map(eng, (uint64_t)at[i], 4096, 9, 0);
	}
	PUSH("forward:f");
	KERNEL(nothing, W_(y, 4), R_(at[0], 16));
	KERNEL(nothing, {at[1], 8, 16, RS_WRITE, 0, 0});
	POP();
	is_u64(tells(learned(), 0, 1, 1, 0, 32, 1), 1, "a write through another mapping");
	rig_stop();
}

/* --- against a model --- */

#define BYTES 64u
#define CALLS 24u

static struct seen {
	unsigned call, slot, other_call, other_slot, bytes;
} model[CALLS * CALLS];
static unsigned nmodel;

static void meet(unsigned call, unsigned slot, unsigned other_call, unsigned other_slot)
{
	struct seen s = {call, slot, other_call, other_slot, 4};

	for (unsigned i = 0; i < nmodel; i++)
		if (!memcmp(&model[i], &s, offsetof(struct seen, bytes))) {
			model[i].bytes += 4;
			return;
		}
	model[nmodel++] = s;
}

/* One argument a call: reads claim what nobody had, writes (dense) make a product of it. */
static int random_forward(unsigned seed)
{
	struct {
		int is_state, call, slot;
	} first[BYTES];
	const char *events;
	unsigned good = 0;
	uint32_t *x, *y;

	fake_reset(seed, 1);
	start(RS_MODE_AUDIT, 1);
	x = words(BYTES), y = words(1);
	memset(first, -1, sizeof(first));
	nmodel = 0;
	srand(seed);
	PUSH("forward:f");
	for (unsigned call = 0; call < CALLS; call++) {
		unsigned at = (unsigned)rand() % BYTES, n = 1 + (unsigned)rand() % (BYTES - at);
		unsigned slot = (unsigned)rand() % 2, reads = (unsigned)rand() % 4 != 0;
		const struct rig_arg a = {x, at, n, reads ? RS_READ : RS_WRITE, 0, 0};
		const struct rig_arg other = W_(y, 1);

		if (n > 8)
			n = 1 + n % 8;
		for (unsigned i = at; i < at + a.n; i++) {
			if (first[i].call < 0) {
				first[i].is_state = (int)reads;
				first[i].call = (int)call;
				first[i].slot = (int)slot;
			} else if (first[i].is_state) {
				meet((unsigned)first[i].call, (unsigned)first[i].slot, call, slot);
			}
		}
		kernel_q(0, "nothing", nothing, 2,
			 slot ? (struct rig_arg[]){other, a} : (struct rig_arg[]){a, other});
	}
	POP();
	events = learned();
	for (unsigned i = 0; i < nmodel; i++)
		good += tells(events, model[i].call, model[i].slot, model[i].other_call,
			      model[i].other_slot, model[i].bytes, 1);
	if (good != nmodel || count(events, "\"t\":\"alias\"") != nmodel)
		printf("# seed %u: %u of %u, %u told\n", seed, good, nmodel,
		       count(events, "\"t\":\"alias\""));
	good = good == nmodel && count(events, "\"t\":\"alias\"") == nmodel;
	rig_stop();
	return (int)good;
}

/* --- contracts --- */

/* The forward's three calls read a, b and c; what of them is one memory? */
struct layout {
	const char *name;
	int b_is_a, c_is_a, b_is_view;
};

static void run(const struct layout *l, const struct rs_alias *alias, int complete, int shared,
		const char *names)
{
	uint32_t *a, *b, *c, *y;
	const char *events;

	start(RS_MODE_PRESERVE, 0);
	ok(!rs_engine_policy(eng, "f", (struct rs_policy){RS_OPTION_UNDO, RS_RESTORE_COPY}),
	   "a contract: %s", l->name);
	if (alias)
		ok(!rs_engine_alias(eng, "f", alias), "with an alias");
	if (complete)
		ok(!rs_engine_expect_no_other_alias(eng, "f"), "and no other one");
	a = words(16), y = words(4);
	b = l->b_is_a ? a : words(16);
	c = l->c_is_a ? a : words(16);
	for (unsigned i = 0; i < 2; i++) {
		PUSH(i ? "replay:f#0" : "forward:f");
		KERNEL(nothing, W_(y, 4), R_(a, 8));
		kernel_q(0, "second", nothing, 2,
			 (struct rig_arg[]){W_(y, 4), {b, l->b_is_view ? 4 : 0, 8, RS_READ, 0, 0}});
		kernel_q(0, "third", nothing, 1, (struct rig_arg[]){RW_(c, 8)});
		POP();
	}
	fake_drain();
	events = rig_read("records.jsonl");
	ok(count(events, "\"rejection\"") == (names != NULL) &&
		   count(events, "\"match\"") == (names == NULL) &&
		   count(events, "RS084") == (names != NULL),
	   "%s", names ? "a rejection" : "a match");
	events = rig_read("events.jsonl");
	if (names)
		ok(count(events, names) == 1 &&
			   count(events, shared ? "\"shared\":true" : "\"shared\":false") == 1,
		   "it names %s", names);
	rig_stop();
}

#define AB                                                                                         \
	{                                                                                          \
		.call = 0, .slot = 1, .other_call = 1, .other_slot = 1, .always = 1                \
	}

static void contracts(void)
{
	static const struct layout apart = {"all apart", 0, 0, 0}, b = {"b is a", 1, 0, 0},
				   view = {"b is a view of a", 1, 0, 1}, c = {"c is a", 0, 1, 0};
	const struct rs_alias ab = AB;
	struct rs_alias sometimes = AB, turned = {.call = 1, .slot = 1, .other_call = 0};

	sometimes.always = 0;
	turned.other_slot = 1;
	turned.always = 1;
	run(&apart, NULL, 1, 0, NULL);
	run(&b, &ab, 1, 0, NULL);
	run(&view, &ab, 1, 0, NULL);
	run(&b, &sometimes, 1, 0, NULL);
	run(&apart, &sometimes, 1, 0, NULL);
	run(&b, &turned, 1, 0, NULL);
	run(&apart, &ab, 0, 0,
	    "call 0 slot 1 piece 0 (nothing) and call 1 slot 1 piece 0 (second) share no memory");
	run(&apart, &turned, 0, 0,
	    "call 0 slot 1 piece 0 (nothing) and call 1 slot 1 piece 0 (second) share no memory");
	run(&b, NULL, 0, 0, NULL); /* nobody said that there are no others */
	run(&b, NULL, 1, 1,
	    "call 0 slot 1 piece 0 (nothing) and call 1 slot 1 piece 0 (second) share memory");
	run(&view, NULL, 1, 1,
	    "call 0 slot 1 piece 0 (nothing) and call 1 slot 1 piece 0 (second) share memory");
	run(&c, &sometimes, 1, 1,
	    "call 0 slot 1 piece 0 (nothing) and call 2 slot 0 piece 0 (third) share memory");
	start(RS_MODE_PRESERVE, 0);
	ok(rs_engine_alias(eng, "f", &(struct rs_alias){.call = 1, .other_call = 1}) == -EINVAL,
	   "a place is no alias of itself");
	rig_stop();
}

/* The first of two contradictions of one call is told, that of what it reads, whichever way the call takes (steady.c). */
static void of_two(int looked_up)
{
	const struct rs_alias known = {.call = 0, .slot = 1, .other_call = 2, .other_slot = 0};
	uint32_t *x, *y, *z;

	start(RS_MODE_PRESERVE, 0);
	rs_engine_policy(eng, "f", (struct rs_policy){RS_OPTION_UNDO, RS_RESTORE_COPY});
	rs_engine_alias(eng, "f", &known);
	rs_engine_expect_no_other_alias(eng, "f");
	x = words(4), y = words(4), z = words(4);
	for (unsigned i = 0; i < 2; i++) {
		PUSH(i ? "replay:f#0" : "forward:f");
		KERNEL(nothing, W_(y, 4), R_(x, 4));
		KERNEL(nothing, W_(y, 4), R_(z, 4));
		KERNEL(nothing, W_(x, 4));
		rig_calm.calls = looked_up ? 0 : 3;
		KERNEL(nothing, W_(x, 4), R_(z, 4));
		POP();
	}
	fake_drain();
	rig_read("records.jsonl");
	ok(count(rig_read("events.jsonl"),
		 "call 1 slot 1 piece 0 (nothing) and call 3 slot 1 piece 0 (nothing) share") == 1,
	   "of two contradictions the first, %s", looked_up ? "short way" : "general way");
	rig_stop();
}

/* Bounds: a forward of ten thousand calls, each of which reaches what all others reach; and one call on ten thousand places. */
static void many(void)
{
	const char *events;
	uint32_t *x, *y;

	start(RS_MODE_AUDIT, 1);
	x = words(8), y = words(1);
	PUSH("forward:f");
	for (unsigned i = 0; i < 10000; i++)
		KERNEL(nothing, W_(y, 1), R_(x, 8));
	POP();
	rs_engine_learned(eng);
	{
		char path[128], line[1024];
		unsigned aliases = 0, cut = 0;
		FILE *f;

		events = rig_read("records.jsonl");
		(void)events;
		snprintf(path, sizeof(path), "%s/events.jsonl", rig_dir);
		f = fopen(path, "r");
		while (f && fgets(line, sizeof(line), f)) {
			aliases += count(line, "\"t\":\"alias\"");
			cut += count(line, "\"aliases_cut\":true");
		}
		if (f)
			fclose(f);
		is_u64(aliases, 4096, "no more than 4096 aliases");
		is_u64(cut, 1, "and it is said that there are more");
	}
	rig_stop();
	start(RS_MODE_AUDIT, 1);
	x = words(2000), y = words(1);
	PUSH("forward:f");
	for (unsigned i = 0; i < 1000; i++)
		KERNEL(nothing, W_(y, 1), {x, 2 * i, 1, RS_READ, 0, 0});
	for (unsigned i = 0; i < 10; i++)
		KERNEL(nothing, W_(y, 1), R_(x, 2000));
	POP();
	events = learned();
	is_u64(count(events, "\"t\":\"alias\""), 64 + 9 * 33, "one range meets 64 places at most");
	is_u64(count(events, "\"aliases_cut\":true"), 1, "which is said, too");
	rig_stop();
}

int main(int argc, char **argv)
{
	unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : 200, good = 0;

	shared_weights();
	pool();
	mappings();
	for (unsigned i = 1; i <= n; i++)
		good += (unsigned)random_forward(i);
	is_u64(good, n, "random forwards: what is learned is what a walk over all bytes finds");
	contracts();
	of_two(0);
	of_two(1);
	many();
	return tap_done();
}
