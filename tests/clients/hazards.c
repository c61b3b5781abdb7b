/* SPDX-License-Identifier: MIT */
/*
 * Small training steps whose recomputation goes wrong, one per case of a public report: running
 * statistics, wrong pairing, power iteration, append cache, carrier slot, device counter, aliased
 * arguments, pooled memory. Driver API only; it knows of replayshim nothing but the marker header.
 * hazards2.c has the cases about randomness, structure, host state and lifetimes.
 *
 *	hazards CASE [VARIANT...] [--streams] [--steps=N | --seeds=N]	see hazards_rig.h
 *
 * What is right and what goes wrong is in tests/t/hazards.t.
 */
#include "tests/clients/hazards_ptx.h"

#define HAZARD_MODULES hazards_ptx
#include "tests/clients/hazards_rig.h"

/* --- cases ---------------------------------------------------------------------------------- */

/* C01: y = x * 5; S = 2 S + x. The output does not depend on the statistic. */
struct stat_inputs {
	dev s, x, y;
};

static dev stat_segment(void *inputs)
{
	struct stat_inputs *in = inputs;
	unsigned five = 5;
	dev y = in->y ? in->y : alloc(1);

	LAUNCH("scale", 1, &y, &in->x, &five);
	LAUNCH("stat", 1, &in->s, &in->x);
	return y;
}

static void c01(void)
{
	dev s = STATE("state:S", 1, 10);
	struct stat_inputs call[2] = {{s, STATE(NULL, 1, 3), 0}, {s, STATE(NULL, 1, 4), 0}};

	run_forward("block", 0, stat_segment, &call[0]);
	if (!option("one")) {
		run_forward("block", 1, stat_segment, &call[1]);
		run_replay("block", 1, stat_segment, &call[1], "y1", 1);
		probe("S_after_1", s, 1);
	}
	run_replay("block", 0, stat_segment, &call[0], "y0", 1);
	probe("S", s, 1);
}

/* C02, C05: y = x * s; s = s + 1. */
struct pair_inputs {
	dev s, x;
};

static dev pair_segment(void *inputs)
{
	struct pair_inputs *in = inputs;
	unsigned one = 1;
	dev y = alloc(1);

	LAUNCH("mul", 1, &y, &in->x, &in->s);
	LAUNCH("add", 1, &in->s, &one);
	return y;
}

static void c02(void)
{
	struct pair_inputs call = {STATE("state:ref", 1, 1), STATE(NULL, 1, 7)};
	unsigned k, n = option("0") ? 0 : option("3") ? 3 : 1;

	run_forward("block", 0, pair_segment, &call);
	for (k = 0; k < n; k++) {
		char name[8];

		snprintf(name, sizeof(name), "y%u", k);
		run_replay("block", 0, pair_segment, &call, name, 1);
	}
	probe("ref", call.s, 1);
}

static void c05(void)
{
	dev s = STATE("state:s", 1, 1);
	struct pair_inputs call[2] = {{s, STATE(NULL, 1, 10)}, {s, STATE(NULL, 1, 20)}};
	unsigned first = option("ascending") ? 0 : 1;

	run_forward("module", 0, pair_segment, &call[0]);
	if (option("missing"))
		pair_segment(&call[1]); /* no window: nothing was kept for it */
	else
		run_forward("module", 1, pair_segment, &call[1]);
	run_replay("module", first, pair_segment, &call[first], first ? "y1" : "y0", 1);
	run_replay("module", !first, pair_segment, &call[!first], first ? "y0" : "y1", 1);
	probe("s", s, 1);
}

/* C06: u = u W mod 97; y = 2 u. */
static dev power_segment(void *inputs)
{
	dev *in = inputs, y = alloc(1);
	unsigned two = 2;

	LAUNCH("power", 1, &in[0], &in[1]);
	LAUNCH("scale", 1, &y, &in[0], &two);
	return y;
}

static void c06(void)
{
	dev in[2] = {STATE("state:u", 1, 3), STATE(NULL, 1, 5)};

	run_forward("norm", 0, power_segment, in);
	if (!option("one")) {
		run_forward("norm", 1, power_segment, in);
		run_replay("norm", 1, power_segment, in, "y1", 1);
	}
	run_replay("norm", 0, power_segment, in, "y0", 1);
	probe("u", in[0], 1);
}

/* C09: K[cur..] = x; cur += n; y = sum K[0..cur). */
struct append_inputs {
	dev k, cur, x;
	unsigned n;
};

static dev append_segment(void *inputs)
{
	struct append_inputs *in = inputs;
	dev y = alloc(1);

	LAUNCH("append", in->n, &in->k, &in->cur, &in->x, &in->n);
	LAUNCH("sum", 1, &y, &in->k, &in->cur);
	return y;
}

static void c09(void)
{
	dev k = STATE("state:K", 8, 0), cur = STATE("state:cur", 1, 0);
	struct append_inputs call[2] = {{k, cur, STATE(NULL, 2, 7, 8), 2},
					{k, cur, STATE(NULL, 1, 9), 1}};

	run_forward("attention", 0, append_segment, &call[0]);
	if (option("append"))
		run_forward("attention", 1, append_segment, &call[1]);
	run_replay("attention", 0, append_segment, &call[0], "y0", 1);
	probe("cur", cur, 1);
	probe("K", k, 8);
}

/* C10: P[i] = 0; P[i] = 1 + sum P[0..i). A rewrite with equal bytes. */
struct slot_inputs {
	dev p;
	unsigned i;
};

static void slot_clear(struct slot_inputs *in)
{
	fill(in->p + in->i * 4, 0, 1);
}

static void slot_write(struct slot_inputs *in)
{
	if (option("loop"))
		LAUNCH("slot_loop", 1, &in->p, &in->i);
	else
		LAUNCH("slot", in->i + 1, &in->p, &in->i);
}

static dev slot_segment(void *inputs)
{
	slot_clear(inputs);
	slot_write(inputs);
	return 0;
}

static void c10(void)
{
	static const char *const orders[] = {"210", "012", "120"};
	dev p = STATE(option("unnamed") ? NULL : "state:P", 3, 0);
	struct slot_inputs call[3] = {{p, 0}, {p, 1}, {p, 2}};
	const char *order = orders[0];
	unsigned i;

	for (i = 0; i < 3; i++)
		if (option(orders[i]))
			order = orders[i];
	for (i = 0; i < 3; i++)
		run_forward("layer", i, slot_segment, &call[i]);
	for (i = 0; i < 3; i++)
		run_replay("layer", order[i] - '0', slot_segment, &call[order[i] - '0'], NULL, 0);
	probe("P", p, 3);
}

/*
 * The same with replay 0 stopped between its two writes, on a stream of its own, while replay 2 runs. The
 * events make this schedule the only one.
 */
static void c10_overlap(void)
{
	dev p = STATE(option("unnamed") ? NULL : "state:P", 3, 0);
	struct slot_inputs call[3] = {{p, 0}, {p, 1}, {p, 2}};
	unsigned i;

	for (i = 0; i < 3; i++)
		run_forward("layer", i, slot_segment, &call[i]);
	replay("layer", 0);
	slot_clear(&call[0]);
	hand_over(replays, outside);
	on = outside;
	replayshim_replay_begin("layer", 2);
	slot_segment(&call[2]);
	replayshim_replay_end();
	hand_over(outside, replays);
	on = replays;
	slot_write(&call[0]);
	replay_end();
	probe("P", p, 3);
}

/* C11: y = 10 C, and C belongs to code outside of the segment. */
static dev slot_reader(void *inputs)
{
	dev *c = inputs, y = alloc(1);
	unsigned ten = 10;

	LAUNCH("scale", 1, &y, c, &ten);
	return y;
}

static void c11(void)
{
	dev c = STATE("state:C", 1, 0);

	fill(c, 1, 1);
	run_forward("layer", 0, slot_reader, &c);
	fill(c, 2, 1);
	run_forward("layer", 1, slot_reader, &c);
	run_replay("layer", 0, slot_reader, &c, "yA", 1);
	probe("C_after_A", c, 1);
	run_replay("layer", 1, slot_reader, &c, "yB", 1);
	probe("C", c, 1);
}

/* C14: a generator of two device words, seed and offset. */
static dev mask_segment(void *inputs)
{
	dev *g = inputs, m = alloc(8);

	LAUNCH("mask", 8, g, &m);
	return m;
}

static void c14(void)
{
	dev g = STATE("state:generator", 2, 1, 0);

	run_forward("dropout", 0, mask_segment, &g);
	if (!option("one"))
		run_forward("dropout", 1, mask_segment, &g);
	run_replay("dropout", 0, mask_segment, &g, "mask", 8);
	probe("offset", g + 4, 1);
}

/* C26: a += 1; y = a * b, where a and b overlap: wholly, or all but one word. */
struct alias_inputs {
	dev a, b;
	unsigned n;
};

static dev alias_segment(void *inputs)
{
	struct alias_inputs *in = inputs;
	unsigned one = 1;
	dev y = alloc(in->n);

	LAUNCH("add", in->n, &in->a, &one);
	LAUNCH("mul", in->n, &y, &in->a, &in->b);
	return y;
}

static void c26(void)
{
	struct alias_inputs in;

	if (option("shifted")) {
		in.a = STATE("state:a", 5, 1, 2, 3, 4, 5);
		in.b = in.a + 4;
		in.n = 4;
	} else if (option("apart")) {
		in.a = STATE("state:a", 1, 3);
		in.b = STATE(NULL, 1, 3);
		in.n = 1;
	} else {
		in.a = in.b = STATE("state:a", 1, 3);
		in.n = 1;
	}
	run_forward("block", 0, alias_segment, &in);
	run_replay("block", 0, alias_segment, &in, "y", in.n);
	probe("a", in.a, in.n == 4 ? 5 : 1);
}

/* X1: Z[0..4) a statistic, Z[4..8) handed out as a product and recycled between forward and replay. */
static dev pool_segment(void *inputs)
{
	dev z = *(dev *)inputs, y = z + 16, x = z + 32;
	unsigned five = 5;

	LAUNCH("scale", 4, &y, &x, &five);
	LAUNCH("stat", 4, &z, &x);
	return y;
}

static void x1(void)
{
	dev z = STATE(NULL, 16, 10, 10, 10, 10, 0, 0, 0, 0, 3, 3, 3, 3);

	replayshim_region_name(z, 16, "state:S");
	if (option("declared"))
		replayshim_region_name(z + 16, 16, "output:y");
	run_forward("block", 0, pool_segment, &z);
	fill(z + 16, 0x77, 4);
	run_replay("block", 0, pool_segment, &z, NULL, 0);
	probe("S", z, 4);
	probe("y", z + 16, 4);
}

/* X2: the product lies in a buffer from before the window, and another segment has refilled it. */
static void x2(void)
{
	struct stat_inputs in = {STATE("state:S", 1, 10), STATE(NULL, 1, 3), 0};
	dev consumed = alloc(1);

	in.y = STATE(option("declared") ? "output:Y" : NULL, 1, 0);
	run_forward("block", 0, stat_segment, &in);
	MUST(cuMemcpyDtoDAsync(consumed, in.y, 4, on));
	fill(in.y, 99, 1);
	run_replay("block", 0, stat_segment, &in, NULL, 0);
	probe("Y", in.y, 1);
	probe("S", in.s, 1);
}

/* --- main ----------------------------------------------------------------------------------- */

static const struct hazard_case cases[] = {{"c01", c01},
					   {"c02", c02},
					   {"c05", c05},
					   {"c06", c06},
					   {"c09", c09},
					   {"c10", c10},
					   {"c10_overlap", c10_overlap},
					   {"c11", c11},
					   {"c14", c14},
					   {"c26", c26},
					   {"x1", x1},
					   {"x2", x2}};

HAZARD_MAIN(cases)
