/* SPDX-License-Identifier: MIT */
/*
 * Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), as 65536 lanes of blocks of
 * four words: result p comes from lane p / 4 % 65536.
 *
 * A lane gives four results, then it is the next lane's turn. Words, floats and normals take one block for that,
 * doubles two. A lane keeps the number of its next block: once doubles have been drawn, the position alone does not
 * say it any more.
 */
#include "tests/simcurand/rng.h"

#define LANES 65536u

static void block(uint64_t key, uint64_t lane, uint64_t count, uint32_t ret[4])
{
	uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
	uint32_t c[4] = {(uint32_t)count, (uint32_t)(count >> 32), (uint32_t)lane,
			 (uint32_t)(lane >> 32)};

	for (unsigned i = 0; i < 10; i++) {
		uint64_t a = (uint64_t)0xd2511f53u * c[0], b = (uint64_t)0xcd9e8d57u * c[2];

		c[0] = (uint32_t)(b >> 32) ^ c[1] ^ k0;
		c[1] = (uint32_t)b;
		c[2] = (uint32_t)(a >> 32) ^ c[3] ^ k1;
		c[3] = (uint32_t)a;
		k0 += 0x9e3779b9u;
		k1 += 0xbb67ae85u;
	}
	for (unsigned i = 0; i < 4; i++)
		ret[i] = c[i];
}

static void start(struct rng *g)
{
	uint64_t first = g->offset / 4, *next = g->lanes;

	for (unsigned l = 0; l < LANES; l++)
		next[l] = first / LANES + (l < first % LANES);
}

/* Block `which` of the lane whose turn it is. */
static void block_now(const struct rng *g, unsigned which, uint32_t ret[4])
{
	uint64_t lane = g->at / 4 % LANES;

	block(g->seed, lane, ((const uint64_t *)g->lanes)[lane] + which, ret);
}

/* One result further; the lane that gave its fourth has used up so many blocks. */
static void forward(struct rng *g, unsigned blocks)
{
	if (g->at % 4 == 3)
		((uint64_t *)g->lanes)[g->at / 4 % LANES] += blocks;
	g->at++;
}

static void word(struct rng *g, uint32_t *out, size_t n)
{
	uint32_t w[4];

	for (size_t i = 0; i < n; i++, forward(g, 1)) {
		if (!i || !(g->at % 4))
			block_now(g, 0, w);
		out[i] = w[g->at % 4];
	}
}

static void uniform(struct rng *g, float *out, size_t n)
{
	uint32_t w[4];

	for (size_t i = 0; i < n; i++, forward(g, 1)) {
		if (!i || !(g->at % 4))
			block_now(g, 0, w);
		out[i] = rng_unit(w[g->at % 4]);
	}
}

static void normal(struct rng *g, float *out, size_t n)
{
	float pair[2];
	uint32_t w[4];

	for (size_t i = 0; i < n; i++, forward(g, 1)) {
		unsigned k = g->at % 4;

		if (!i || !k)
			block_now(g, 0, w);
		if (!i || !(k % 2))
			rng_box_muller(rng_unit(w[k & 2]), rng_angle(w[k | 1]), pair);
		out[i] = pair[k % 2];
	}
}

/* The pair of doubles that is due. */
static void two_doubles(const struct rng *g, double ret[2])
{
	uint32_t w[4];

	block_now(g, g->at / 2 % 2, w);
	ret[0] = rng_unit53(w[0], w[1]);
	ret[1] = rng_unit53(w[2], w[3]);
}

static void uniform_double(struct rng *g, double *out, size_t n)
{
	double pair[2];

	for (size_t i = 0; i < n; i++, forward(g, 2)) {
		if (!i || !(g->at % 2))
			two_doubles(g, pair);
		out[i] = pair[g->at % 2];
	}
}

static void normal_double(struct rng *g, double *out, size_t n)
{
	double u[2], pair[2];

	for (size_t i = 0; i < n; i++, forward(g, 2)) {
		if (!i || !(g->at % 2)) {
			two_doubles(g, u);
			rng_box_muller_double(u[0], u[1] * 2.0, pair);
		}
		out[i] = pair[g->at % 2];
	}
}

static const struct rng_lane_ops lane_ops = {
	.lanes = LANES, .bytes = sizeof(uint64_t), .start = start};

const struct rng_ops rng_philox = {.word = word,
				   .uniform = uniform,
				   .uniform_double = uniform_double,
				   .normal = normal,
				   .normal_double = normal_double,
				   .lane = &lane_ops,
				   .blocks = 1};
