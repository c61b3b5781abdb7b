/* SPDX-License-Identifier: MIT */
/*
 * Many calls in one launch, as a graph makes them: before for each, the work, after for each. What a later
 * call of the launch overwrites is not compared with what stood there at another moment.
 */
#include "tests/unit/engine_rig.h"

#define MAX_CALLS 3

struct node {
	const char *name;
	void (*fn)(struct rig_arg *a);
	unsigned n;
	struct rig_arg a[4];
	uint8_t gone;  /* its writes are repeated by a later call */
	uint16_t late; /* of its writes */
};

static void times5(struct rig_arg *a)
{
	for (unsigned i = 0; i < a[0].n; i++)
		a[0].p[a[0].first + i] = a[1].p[0] * 5;
}

static void advance(struct rig_arg *a)
{
	a[0].p[0] += 1;
}

static void enqueue(const struct node *x)
{
	struct rig_body *b = malloc(sizeof(*b));

	b->fn = x->fn;
	memcpy(b->a, x->a, sizeof(b->a));
	fake_call(0, rig_run, b);
}

static void launch(const struct node *x, unsigned n)
{
	struct rs_access access[MAX_CALLS][4];
	struct rs_call call[MAX_CALLS];
	unsigned i, k;

	for (i = 0; i < n; i++) {
		call[i] = (struct rs_call){.name = x[i].name,
					   .ident = (uint64_t)(uintptr_t)x[i].fn,
					   .kind = RS_CALL_KERNEL,
					   .q = RIG_Q(0),
					   .access = access[i],
					   .naccess = x[i].n};
		for (k = 0; k < x[i].n; k++)
			access[i][k] = (struct rs_access){
				.addr = (uint64_t)(x[i].a[k].p + x[i].a[k].first),
				.bytes = x[i].a[k].n * 4,
				.dir = (uint8_t)x[i].a[k].dir,
				.how = RS_HOW_PTX,
				.dense = 1,
				.slot = (uint16_t)k};
		rs_engine_before(eng, thr, &call[i]);
	}
	for (i = 0; i < n; i++)
		enqueue(&x[i]);
	for (i = 0; i < n; i++) {
		for (k = 0; k < x[i].n; k++) {
			if (x[i].gone)
				access[i][k].dir &= (uint8_t)~RS_WRITE;
			access[i][k].late = x[i].late;
		}
		rs_engine_after(eng, thr, &call[i], 1);
	}
}

/* One after the other, each a call of its own. */
static void one_by_one(const struct node *x, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct node alone = x[i];

		alone.gone = 0;
		alone.late = 0;
		launch(&alone, 1);
	}
}

#define ARG(p, first, n, dir)                                                                      \
	{                                                                                          \
		(p), (first), (n), (dir), 0, 0                                                     \
	}

/* y = 5 s, z = 5 y, s + 1: claims, restores and products of calls that are not the last of their launch. */
static void all_calls(enum rs_mode mode, int forward, int replay)
{
	uint32_t *s, *y, *z;
	const char *text;

	rig_start(mode);
	s = words(1);
	y = words(1);
	z = words(1);
	*s = 1;
	struct node x[] = {
		{"first", times5, 2, {ARG(y, 0, 1, RS_WRITE), ARG(s, 0, 1, RS_READ)}, 0, 0},
		{"second", times5, 2, {ARG(z, 0, 1, RS_WRITE), ARG(y, 0, 1, RS_READ)}, 0, 0},
		{"advance", advance, 1, {ARG(s, 0, 1, RS_READ | RS_WRITE)}, 0, 0},
	};
	STEP(1);
	PUSH("forward:f");
	(forward ? launch : one_by_one)(x, 3);
	POP();
	PUSH("replay:f");
	(replay ? launch : one_by_one)(x, 3);
	POP();
	text = rig_read("records.jsonl");
	fake_drain();
	if (mode == RS_MODE_PRESERVE)
		ok(*y == 5 && *z == 25 && *s == 2 && strstr(text, "\"outcome\":\"match\""),
		   "preserved: forward %s, replay %s", forward ? "one launch" : "calls",
		   replay ? "one launch" : "calls");
	else
		ok(*y == 10 && *z == 50 && *s == 3 && strstr(text, "\"product\":\"different\""),
		   "audited: forward %s, replay %s", forward ? "one launch" : "calls",
		   replay ? "one launch" : "calls");
	drop(s);
	drop(y);
	drop(z);
	rig_stop();
}

/*
 * y[0..4) = 5 s, then y[first..4) = 5 t. late: what the launch of the forward, and that of the replay, says of the
 * first write; 0: that part of it is over there, or call by call that it is not.
 */
static void overwritten(unsigned first, int forward, int replay, const uint16_t late[2],
			const char *product)
{
	uint32_t *s, *t, *y;
	const char *text;
	char want[64];

	rig_start(RS_MODE_PRESERVE);
	s = words(1);
	t = words(1);
	y = words(4);
	*s = 1;
	*t = 2;
	struct node x[] = {
		{"all",
		 times5,
		 2,
		 {ARG(y, 0, 4, RS_WRITE), ARG(s, 0, 1, RS_READ)},
		 !first,
		 late[0]},
		{"rest",
		 times5,
		 2,
		 {ARG(y, first, 4 - first, RS_WRITE), ARG(t, 0, 1, RS_READ)},
		 0,
		 0},
	};
	STEP(1);
	PUSH("forward:f");
	(forward ? launch : one_by_one)(x, 2);
	POP();
	x[0].late = late[1];
	PUSH("replay:f");
	(replay ? launch : one_by_one)(x, 2);
	POP();
	text = rig_read("records.jsonl");
	snprintf(want, sizeof(want), "\"product\":\"%s\"", product);
	ok(strstr(text, want), "from %u on, forward %s (%u), replay %s (%u): product %s", first,
	   forward ? "one launch" : "calls", late[0], replay ? "one launch" : "calls", late[1],
	   product);
	drop(s);
	drop(t);
	drop(y);
	rig_stop();
}

#define LATE(f, r) ((const uint16_t[]){(f), (r)})

int main(void)
{
	for (int how = 0; how < 4; how++) {
		all_calls(RS_MODE_AUDIT, how & 1, how >> 1);
		all_calls(RS_MODE_PRESERVE, how & 1, how >> 1);
		overwritten(0, how & 1, how >> 1, LATE(0, 0), "equal");
	}
	overwritten(2, 0, 0, LATE(0, 0), "equal");
	overwritten(2, 1, 1, LATE(5, 5), "equal");
	overwritten(2, 1, 1, LATE(5, 9), "unknown");
	overwritten(2, 0, 1, LATE(0, 5), "unknown");
	overwritten(2, 1, 0, LATE(5, 0), "unknown");
	return tap_done();
}
