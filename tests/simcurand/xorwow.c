/* SPDX-License-Identifier: MIT */
/*
 * XORWOW: Marsaglia's xorshift of 160 bits plus a Weyl counter ("Xorshift RNGs", 2003), in 4096 lanes that are 2^67
 * draws apart.
 *
 * The xorshift is linear over GF(2), so going k draws ahead is a product with the k-th power of a 160x160 bit
 * matrix. Powers are made by squaring when first needed.
 */
#include "tests/simcurand/rng.h"

#include <pthread.h>
#include <string.h>

#define LANES 4096u
#define WORDS 5
#define BITS  160
#define APART 67
#define WEYL  362437u

struct lane {
	uint32_t v[WORDS], d;
};

/* Row i: where a state with nothing but bit i set goes. */
struct matrix {
	uint32_t row[BITS][WORDS];
};

static uint32_t step(struct lane *s)
{
	uint32_t t = s->v[0] ^ s->v[0] >> 2;

	memmove(s->v, s->v + 1, 4 * sizeof(*s->v));
	s->v[4] = (s->v[3] ^ s->v[3] << 4) ^ (t ^ t << 1);
	s->d += WEYL;
	return s->v[4] + s->d;
}

static void apply(const struct matrix *m, uint32_t v[WORDS])
{
	uint32_t r[WORDS] = {0};

	for (unsigned i = 0; i < BITS; i++)
		if (v[i / 32] >> i % 32 & 1)
			for (unsigned w = 0; w < WORDS; w++)
				r[w] ^= m->row[i][w];
	memcpy(v, r, sizeof(r));
}

/* powers[i] = one draw, 2^i times. */
static struct matrix powers[APART + 1];

static void make_powers(void)
{
	for (unsigned i = 0; i < BITS; i++) {
		struct lane s = {{0}, 0};

		s.v[i / 32] = 1u << i % 32;
		step(&s);
		memcpy(powers[0].row[i], s.v, sizeof(s.v));
	}
	for (unsigned k = 1; k <= APART; k++) {
		powers[k] = powers[k - 1];
		for (unsigned i = 0; i < BITS; i++)
			apply(&powers[k - 1], powers[k].row[i]);
	}
}

static void start(struct rng *g)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	uint32_t t0 = 1099087573u * ((uint32_t)g->seed ^ 0xaad26b49u);
	uint32_t t1 = 2591861531u * ((uint32_t)(g->seed >> 32) ^ 0xf7dcefddu);
	uint64_t ahead = g->offset / LANES;
	struct lane s = {
		{123456789u + t0, 362436069u ^ t0, 521288629u + t1, 88675123u ^ t1, 5783321u + t0},
		6615241u + t1 + t0 + WEYL * (uint32_t)ahead};
	struct lane *lanes = g->lanes;

	pthread_once(&once, make_powers);
	for (unsigned i = 0; i < 64; i++)
		if (ahead >> i & 1)
			apply(&powers[i], s.v);
	/* 2^67 steps of the counter are a multiple of 2^32: it is the same in all lanes. */
	for (unsigned l = 0; l < LANES; l++) {
		lanes[l] = s;
		if (l < g->offset % LANES)
			step(&lanes[l]);
		apply(&powers[APART], s.v);
	}
}

static uint32_t word(void *lane)
{
	return step(lane);
}

static float uniform(void *lane)
{
	return rng_unit(step(lane));
}

static double uniform_double(void *lane)
{
	uint32_t low = step(lane);

	return rng_unit53(low, step(lane));
}

static void normal(void *lane, float ret[2])
{
	uint32_t x = step(lane);

	rng_box_muller(rng_unit(x), rng_angle(step(lane)), ret);
}

static void normal_double(void *lane, double ret[2])
{
	double u = uniform_double(lane);

	rng_box_muller_double(u, uniform_double(lane) * 2.0, ret);
}

static const struct rng_lane_ops lane_ops = {.lanes = LANES,
					     .bytes = sizeof(struct lane),
					     .start = start,
					     .word = word,
					     .uniform = uniform,
					     .uniform_double = uniform_double,
					     .normal = normal,
					     .normal_double = normal_double};

const struct rng_ops rng_xorwow = {.word = rng_lanes_word,
				   .uniform = rng_lanes_uniform,
				   .uniform_double = rng_lanes_uniform_double,
				   .normal = rng_lanes_normal,
				   .normal_double = rng_lanes_normal_double,
				   .lane = &lane_ops,
				   .pairs = 1};
