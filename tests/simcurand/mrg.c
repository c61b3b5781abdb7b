/* SPDX-License-Identifier: MIT */
/*
 * MRG32k3a: L'Ecuyer's combined multiple recursive generator ("Good parameters and implementations for combined
 * multiple recursive random number generators", 1999), in 81920 lanes, or 4096 in the legacy order, that are 2^76
 * draws apart.
 *
 * Going ahead is a product with a power of each component's 3x3 matrix.
 */
#include "tests/simcurand/rng.h"

#include <string.h>

#define APART 76
#define M1    4294967087u
#define M2    4294944443u

struct lane {
	uint32_t s1[3], s2[3];
};

struct matrix {
	uint32_t a[3][3];
};

static const struct matrix one_1 = {{{0, 1, 0}, {0, 0, 1}, {M1 - 810728u, 1403580u, 0}}};
static const struct matrix one_2 = {{{0, 1, 0}, {0, 0, 1}, {M2 - 1370589u, 0, 527612u}}};

static uint32_t dot(const uint32_t a[3], uint32_t x, uint32_t y, uint32_t z, uint32_t mod)
{
	uint64_t r = (uint64_t)a[0] * x % mod + (uint64_t)a[1] * y % mod;

	return (uint32_t)((r + (uint64_t)a[2] * z % mod) % mod);
}

static void apply(const struct matrix *m, uint32_t s[3], uint32_t mod)
{
	uint32_t r[3];

	for (unsigned i = 0; i < 3; i++)
		r[i] = dot(m->a[i], s[0], s[1], s[2], mod);
	memcpy(s, r, sizeof(r));
}

static struct matrix square(const struct matrix *m, uint32_t mod)
{
	struct matrix r;

	for (unsigned i = 0; i < 3; i++)
		for (unsigned j = 0; j < 3; j++)
			r.a[i][j] = dot(m->a[i], m->a[0][j], m->a[1][j], m->a[2][j], mod);
	return r;
}

/* In 1 .. M1. */
static uint32_t step(struct lane *s)
{
	uint32_t p1 = dot(one_1.a[2], s->s1[0], s->s1[1], s->s1[2], M1);
	uint32_t p2 = dot(one_2.a[2], s->s2[0], s->s2[1], s->s2[2], M2);

	s->s1[0] = s->s1[1];
	s->s1[1] = s->s1[2];
	s->s1[2] = p1;
	s->s2[0] = s->s2[1];
	s->s2[1] = s->s2[2];
	s->s2[2] = p2;
	return p1 > p2 ? p1 - p2 : p1 - p2 + M1;
}

static void seeded(struct lane *s, uint64_t seed)
{
	uint32_t x1 = (uint32_t)seed ^ 0x55555555u, x2 = (uint32_t)(seed >> 32) ^ 0xaaaaaaaau;

	for (unsigned i = 0; i < 3; i++) {
		uint64_t a = i == 1 ? x2 : x1, b = i == 1 ? x1 : x2;

		s->s1[i] = seed ? (uint32_t)(a * 12345u % M1) : 12345u;
		s->s2[i] = seed ? (uint32_t)(b * 12345u % M2) : 12345u;
	}
}

static void start(struct rng *g)
{
	struct matrix p1 = one_1, p2 = one_2;
	unsigned n = g->ops->lane->lanes;
	uint64_t ahead = g->offset / n;
	struct lane s, *lanes = g->lanes;

	seeded(&s, g->seed);
	for (unsigned i = 0; i < APART; i++) {
		if (i < 64 && ahead >> i & 1) {
			apply(&p1, s.s1, M1);
			apply(&p2, s.s2, M2);
		}
		p1 = square(&p1, M1);
		p2 = square(&p2, M2);
	}
	for (unsigned l = 0; l < n; l++) {
		lanes[l] = s;
		if (l < g->offset % n)
			step(&lanes[l]);
		apply(&p1, s.s1, M1);
		apply(&p2, s.s2, M2);
	}
}

static uint32_t word(void *lane)
{
	return (uint32_t)(step(lane) * 1.000000048662);
}

static double uniform_double(void *lane)
{
	return step(lane) * 2.3283065498378288e-10;
}

static float uniform(void *lane)
{
	return (float)uniform_double(lane);
}

static void normal(void *lane, float ret[2])
{
	float u = uniform(lane);

	rng_box_muller(u, uniform(lane) * 6.2831855f, ret);
}

static void normal_double(void *lane, double ret[2])
{
	double u = uniform_double(lane);

	rng_box_muller_double(u, uniform_double(lane) * 2.0, ret);
}

#define OPS(name, n)                                                                               \
	static const struct rng_lane_ops name##_lanes = {.lanes = (n),                             \
							 .bytes = sizeof(struct lane),             \
							 .start = start,                           \
							 .word = word,                             \
							 .uniform = uniform,                       \
							 .uniform_double = uniform_double,         \
							 .normal = normal,                         \
							 .normal_double = normal_double};          \
	const struct rng_ops name = {.word = rng_lanes_word,                                       \
				     .uniform = rng_lanes_uniform,                                 \
				     .uniform_double = rng_lanes_uniform_double,                   \
				     .normal = rng_lanes_normal,                                   \
				     .normal_double = rng_lanes_normal_double,                     \
				     .lane = &name##_lanes,                                        \
				     .pairs = 1};

OPS(rng_mrg, 81920)
OPS(rng_mrg_legacy, 4096)
