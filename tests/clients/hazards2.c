/* SPDX-License-Identifier: MIT */
/*
 * More small training steps whose recomputation goes wrong: host state, randomness, other calls and layouts,
 * reads that arguments do not show. Driver API only; it knows of replayshim nothing but the marker header.
 *
 *	hazards2 CASE [VARIANT...] [--streams] [--steps=N | --seeds=N]	see hazards_rig.h
 *
 * What is right and what goes wrong is in tests/t/hazards2.t.
 */
#include "tests/clients/hazards2_ptx.h"
#include "tests/clients/hazards_ptx.h"

#define HAZARD_MODULES hazards_ptx, hazards2_ptx
#include "tests/clients/hazards_rig.h"

/* --- statistics and host state -------------------------------------------------------------- */

/* C03: an observer decays its maximum and takes a new one; `idempotent` does not decay. */
static dev observer_segment(void *inputs)
{
	dev *in = inputs, y = alloc(1);
	unsigned one = 1;

	LAUNCH(option("idempotent") ? "atleast" : "decay", 1, &in[0], &in[1]);
	LAUNCH("scale", 1, &y, &in[0], &one);
	return y;
}

static void c03(void)
{
	dev in[2] = {STATE("state:A", 1, 100), STATE(NULL, 1, 40)};

	run_forward("observer", 0, observer_segment, in);
	run_replay("observer", 0, observer_segment, in, "y", 1);
	probe("A", in[0], 1);
}

/*
 * C04: a flag of the host, true in the forward only. The backward, outside of the segment, or the segment itself
 * (`inside`) updates G when the flag that the last run recorded says so. `keep` does not recompute.
 */
struct flag_inputs {
	dev x, g, nine;
	int flag, recorded;
};

static dev flag_segment(void *inputs)
{
	struct flag_inputs *in = inputs;
	dev y = alloc(1);
	unsigned five = 5;

	in->recorded = in->flag;
	LAUNCH("scale", 1, &y, &in->x, &five);
	if (option("inside") && in->recorded)
		LAUNCH("atleast", 1, &in->g, &in->nine);
	return y;
}

static void c04(void)
{
	struct flag_inputs in = {STATE(NULL, 1, 3), STATE("state:G", 1, 0), STATE(NULL, 1, 9), 1,
				 0};
	dev y;

	run_forward("layer", 0, flag_segment, &in);
	in.flag = 0;
	if (!option("keep"))
		run_replay("layer", 0, flag_segment, &in, "y", 1);
	if (!option("inside") && in.recorded)
		LAUNCH("atleast", 1, &in.g, &in.nine);
	y = in.g;
	probe("G", y, 1);
}

/* C07: the counter is created by the first forward; its replay finds it there and adds instead. */
struct load_inputs {
	dev *counter, t;
};

static dev load_segment(void *inputs)
{
	struct load_inputs *in = inputs;

	if (*in->counter) {
		LAUNCH("count", 2, in->counter, &in->t);
		return *in->counter;
	}
	*in->counter = alloc(2);
	if (!option("unnamed"))
		replayshim_region_name(*in->counter, 8, "state:L");
	copy(*in->counter, in->t, 2);
	return *in->counter;
}

static void c07(void)
{
	dev counter = 0;
	struct load_inputs call[2] = {{&counter, STATE(NULL, 2, 3, 1)},
				      {&counter, STATE(NULL, 2, 2, 2)}};

	run_forward("moe", 0, load_segment, &call[0]);
	run_forward("moe", 1, load_segment, &call[1]);
	run_replay("moe", 1, load_segment, &call[1], NULL, 0);
	probe("L_after_1", counter, 2);
	run_replay("moe", 0, load_segment, &call[0], NULL, 0);
	probe("L", counter, 2);
}

/* C08: a copy to the host, and a function of the host that counts. */
struct host_inputs {
	dev x;
	unsigned *pinned, n;
};

static void CUDA_CB count_on_host(void *user)
{
	struct host_inputs *in = user;

	in->n += in->pinned[0];
}

static dev host_segment(void *inputs)
{
	struct host_inputs *in = inputs;
	dev y = alloc(1);
	unsigned five = 5;

	LAUNCH("scale", 1, &y, &in->x, &five);
	MUST(cuMemcpyDtoHAsync(in->pinned, in->x, 4, on));
	MUST(cuLaunchHostFunc(on, count_on_host, in));
	return y;
}

static void c08(void)
{
	struct host_inputs in = {STATE(NULL, 1, 7), NULL, 0};

	MUST(cuMemAllocHost((void **)&in.pinned, 4));
	run_forward("metrics", 0, host_segment, &in);
	run_replay("metrics", 0, host_segment, &in, "y", 1);
	MUST(cuCtxSynchronize());
	tell("N", in.n);
	MUST(cuMemFreeHost(in.pinned));
}

/* --- inputs that change behind the segment's back ------------------------------------------- */

/* C12: two slots take the weights of four layers in turn; a layer keeps only its slot's address. */
static dev factor_segment(void *inputs)
{
	dev *slot = inputs, y = alloc(1);
	unsigned one = 1;

	LAUNCH("scale", 1, &y, slot, &one);
	return y;
}

static void c12(void)
{
	dev w = STATE(NULL, 4, 2, 3, 5, 7), t = STATE("state:T", 2, 0), slot[4];
	char name[8];
	unsigned i;

	for (i = 0; i < 4; i++) {
		slot[i] = t + i % 2 * 4;
		copy(slot[i], w + i * 4, 1);
		run_forward("layer", i, factor_segment, &slot[i]);
	}
	while (i--) {
		snprintf(name, sizeof(name), "w%u", i);
		run_replay("layer", i, factor_segment, &slot[i], name, 1);
	}
	probe("T", t, 2);
}

/* C13: m = 3 b, then b += 6, as the forward's last act or `outside`; the replay only needs m. */
static dev deferred_segment(void *inputs)
{
	dev view = *(dev *)inputs + 4, m = alloc(1);
	unsigned three = 3;

	LAUNCH("scale", 1, &m, &view, &three);
	return m;
}

static void c13(void)
{
	dev b = STATE("state:b", 4, 0, 4, 0, 0), word = b + 4;
	unsigned six = 6;

	replayshim_forward_begin("partition", 0);
	deferred_segment(&b);
	if (!option("outside"))
		LAUNCH("add", 1, &word, &six);
	replayshim_forward_end();
	if (option("outside"))
		LAUNCH("add", 1, &word, &six);
	run_replay("partition", 0, deferred_segment, &b, "m", 1);
	probe("b", word, 1);
}

/* --- randomness ----------------------------------------------------------------------------- */

static dev draw(dev g, unsigned n, unsigned advance)
{
	dev m = alloc(n);

	LAUNCH("draw", n, &g, &m, &advance);
	return m;
}

/* C15: two generators; the program knows of the first, and restores it around the replay. */
static dev two_draws(void *inputs)
{
	dev *g = inputs, m = alloc(16), second = m + 32;
	unsigned eight = 8;

	LAUNCH("draw", 8, &g[0], &m, &eight);
	LAUNCH("draw", 8, &g[1], &second, &eight);
	return m;
}

static void c15(void)
{
	dev g[2] = {STATE("state:G0", 2, 1, 0), STATE("state:G1", 2, 2, 0)};
	dev entry = alloc(2), present = alloc(2);

	copy(entry, g[0], 2);
	run_forward("dropout", 0, two_draws, g);
	copy(present, g[0], 2);
	copy(g[0], entry, 2);
	run_replay("dropout", 0, two_draws, g, "mask", 16);
	copy(g[0], present, 2);
	probe("offset0", g[0] + 4, 1);
	probe("offset1", g[1] + 4, 1);
}

/* C16: draws of 5 advance the generator by 8 in the forward and by 5 in the replay. */
struct pace_inputs {
	dev g;
	unsigned advance;
};

static dev paced_segment(void *inputs)
{
	struct pace_inputs *in = inputs;

	draw(in->g, 5, in->advance);
	return draw(in->g, 5, in->advance);
}

static void c16(void)
{
	struct pace_inputs in = {STATE("state:G", 2, 1, 0), 8};
	dev entry = alloc(2);

	copy(entry, in.g, 2);
	run_forward("jit", 0, paced_segment, &in);
	if (option("restored"))
		copy(in.g, entry, 2);
	in.advance = 5;
	run_replay("jit", 0, paced_segment, &in, "second", 5);
	probe("offset", in.g + 4, 1);
}

/*
 * C18: the seed comes from a sequence of the host and goes to the device by value: inside of the segment, or
 * before it (`outside`), where it is an input like any other.
 */
static const unsigned host_seeds[2] = {0x8fed32bd, 0xf0e7a43a};

struct seed_inputs {
	dev g;
	unsigned drawn;
};

static void next_seed(struct seed_inputs *in)
{
	fill(in->g, host_seeds[in->drawn++], 1);
	fill(in->g + 4, 0, 1);
}

static dev seeded_segment(void *inputs)
{
	struct seed_inputs *in = inputs;

	if (!option("outside"))
		next_seed(in);
	return draw(in->g, 8, 0);
}

static void c18(void)
{
	struct seed_inputs in = {STATE("state:seed", 2, 0), 0};

	if (option("outside"))
		next_seed(&in);
	run_forward("compiled", 0, seeded_segment, &in);
	if (option("outside"))
		next_seed(&in);
	run_replay("compiled", 0, seeded_segment, &in, "mask", 8);
	probe("seed", in.g, 1);
	tell("drawn", in.drawn);
}

/* C19: a library's buffer of 64 words, made before the step or by the first call (`lazy`). */
static dev library_segment(void *inputs)
{
	dev *d = inputs, m = alloc(64);
	unsigned i, words[64];

	if (!*d) {
		for (i = 0; i < 64; i++)
			words[i] = i;
		*d = alloc(64);
		MUST(cuMemcpyHtoDAsync(*d, words, sizeof(words), on));
		MUST(cuStreamSynchronize(on));
	}
	LAUNCH("libdrop", 64, d, &m);
	return m;
}

static void c19(void)
{
	unsigned words[64], i;
	dev d = 0;

	for (i = 0; i < 64; i++)
		words[i] = i;
	if (!option("lazy"))
		d = state(NULL, 64, words);
	run_forward("dropout", 0, library_segment, &d);
	run_forward("dropout", 1, library_segment, &d);
	run_replay("dropout", 0, library_segment, &d, "mask", 64);
	probe("D", d, 64);
}

/* C25: the same key, another partition: 2 shards of n / 2 words, or one of n. */
struct shard_inputs {
	unsigned blocks, threads, per;
};

static dev shard_segment(void *inputs)
{
	struct shard_inputs *in = inputs;
	dev m = alloc(in->blocks * in->threads);
	unsigned key = 3;

	LAUNCH_GRID("shards", in->blocks, in->threads, &m, &key, &in->per);
	return m;
}

static void c25(void)
{
	int large = option("large");
	struct shard_inputs in = {large ? 3 : 1, large ? 1024 : 8, large ? 1536 : 4};

	run_forward("rbg", 0, shard_segment, &in);
	if (!option("same"))
		in.per *= 2;
	run_replay("rbg", 0, shard_segment, &in, "mask", 8);
}

/* --- the same state, another result --------------------------------------------------------- */

/*
 * C20: a sum from the left decides a row; the replay adds in pairs, by another kernel, or by an argument of
 * the same one (`tuned`). `alone`: nothing follows the sum, so there is nothing that could be compared.
 */
static dev reduce_segment(void *inputs)
{
	struct {
		dev v;
		unsigned pairs;
	} *in = inputs;
	dev sum = alloc(1), rows = alloc(1);

	if (in->pairs && !option("tuned"))
		LAUNCH("sum4_pairwise", 1, &sum, &in->v);
	else
		LAUNCH("sum4", 1, &sum, &in->v, &in->pairs);
	if (option("alone"))
		return sum;
	LAUNCH("route", 1, &rows, &sum);
	return rows;
}

static void c20(void)
{
	struct {
		dev v;
		unsigned pairs;
	} in = {STATE(NULL, 4, 0x4cbebc20, 0x3f800000, 0xccbebc20, 0x3f800000), 0};

	run_forward("route", 0, reduce_segment, &in);
	in.pairs = 1;
	run_replay("route", 0, reduce_segment, &in, "rows", 1);
}

/*
 * C21: y = x + Z, where Z is not among the arguments: behind a pointer in memory, or (`global`) a variable of
 * the module. Somebody changes Z on the side. `fresh`: a word of a new allocation that the segment never wrote,
 * with what the program's allocator leaves there.
 */
struct hidden_inputs {
	dev x, table;
	unsigned pattern;
};

static dev hidden_segment(void *inputs)
{
	struct hidden_inputs *in = inputs;
	dev y = alloc(1), u;

	if (option("fresh")) {
		u = alloc(1);
		fill(u, in->pattern, 1);
		LAUNCH("count", 1, &u, &in->x);
		return u;
	}
	if (option("global"))
		LAUNCH("plus_global", 1, &y, &in->x);
	else
		LAUNCH("plus_pointed", 1, &y, &in->x, &in->table);
	return y;
}

static void c21(void)
{
	dev z = STATE(NULL, 1, 0);
	unsigned k, n = option("3") ? 3 : 1, words[2] = {(unsigned)z, (unsigned)(z >> 32)};
	struct hidden_inputs in = {STATE(NULL, 1, 5), state(NULL, 2, words), 0};
	char name[8];

	k = 0;
	if (option("global"))
		LAUNCH("set_global", 1, &k);
	run_forward("racy", 0, hidden_segment, &in);
	for (k = 1; k <= n; k++) {
		if (option("global"))
			LAUNCH("set_global", 1, &k);
		else
			fill(z, k, 1);
		in.pattern = 0xa5a5a5a5;
		snprintf(name, sizeof(name), "y%u", k);
		run_replay("racy", 0, hidden_segment, &in, name, 1);
	}
	if (option("global")) {
		dev y = alloc(1), zero = STATE(NULL, 1, 0);

		LAUNCH("plus_global", 1, &y, &zero);
		probe("Z", y, 1);
	} else {
		probe("Z", z, 1);
	}
}

/* C22: a library decides how many rows there are, the host reads it; `saved`: the replay is given the number. */
struct route_inputs {
	dev l, n, x;
	unsigned rows;
};

static dev route_segment(void *inputs)
{
	struct route_inputs *in = inputs;
	unsigned three = 3;
	dev rows, y;

	if (!in->rows || !option("saved")) {
		rows = alloc(1);
		LAUNCH("dispatch", 1, &in->l, &in->n, &rows);
		MUST(cuMemcpyDtoHAsync(&in->rows, rows, 4, on));
		MUST(cuStreamSynchronize(on));
	}
	y = alloc(in->rows);
	LAUNCH("scale", in->rows, &y, &in->x, &three);
	return y;
}

static void c22(void)
{
	struct route_inputs in = {STATE("state:L", 1, 0), STATE(NULL, 1, 4),
				  STATE(NULL, 8, 1, 2, 3, 4, 5, 6, 7, 8), 0};

	run_forward("dispatch", 0, route_segment, &in);
	run_replay("dispatch", 0, route_segment, &in, "y", 4);
	probe("L", in.l, 1);
	tell("rows", in.rows);
}

/* C23: a cast of the weight is cached by A's forward, used by B's, dropped, and made again by B's replay. */
struct cast_inputs {
	dev w, x, *cache;
};

static dev cast_segment(void *inputs)
{
	struct cast_inputs *in = inputs;
	dev y;

	if (!*in->cache) {
		*in->cache = alloc(1);
		LAUNCH("halve", 1, in->cache, &in->w);
	}
	y = alloc(1);
	LAUNCH("mul", 1, &y, &in->x, in->cache);
	return y;
}

static void c23(void)
{
	dev cache = 0, w = STATE("state:W", 1, 100);
	struct cast_inputs a = {w, STATE(NULL, 1, 2), &cache}, b = {w, STATE(NULL, 1, 3), &cache};

	run_forward("A", 0, cast_segment, &a);
	run_forward("B", 0, cast_segment, &b);
	release(cache);
	cache = 0;
	if (option("stepped"))
		fill(w, 120, 1);
	run_replay("B", 0, cast_segment, &b, "y", 1);
	probe("W", w, 1);
}

/* C24: a product is kept by reference, then changed in place by the next operation; the replay starts from it. */
struct keep_inputs {
	dev two, three, kept;
	unsigned k;
};

static dev keep_segment(void *inputs)
{
	struct keep_inputs *in = inputs;
	unsigned one = 1;
	dev y = alloc(1);

	if (!in->kept) {
		in->kept = alloc(1);
		LAUNCH("mul", 1, &in->kept, &in->two, &in->three);
	}
	LAUNCH("add", 1, &in->kept, &in->k);
	LAUNCH("scale", 1, &y, &in->kept, &one);
	return y;
}

static void c24(void)
{
	struct keep_inputs in = {STATE(NULL, 1, 2), STATE(NULL, 1, 3), 0, !option("equal")};

	run_forward("policy", 0, keep_segment, &in);
	run_replay("policy", 0, keep_segment, &in, "y", 1);
	probe("m", in.kept, 1);
}

/* --- main ----------------------------------------------------------------------------------- */

static const struct hazard_case cases[] = {{"c03", c03}, {"c04", c04}, {"c07", c07}, {"c08", c08},
					   {"c12", c12}, {"c13", c13}, {"c15", c15}, {"c16", c16},
					   {"c18", c18}, {"c19", c19}, {"c20", c20}, {"c21", c21},
					   {"c22", c22}, {"c23", c23}, {"c24", c24}, {"c25", c25}};

HAZARD_MAIN(cases)
