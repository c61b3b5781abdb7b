/* SPDX-License-Identifier: MIT */
/*
 * Sobol's 32-bit sequences in Gray-code order, with the direction numbers of Joe and Kuo ("Constructing Sobol
 * sequences with better two-dimensional projections", 2008) for the first ten dimensions.
 *
 * A call's n results are n / dims points, one dimension after the other. Normals are left out: the real library
 * inverts the normal distribution by an approximation of its own.
 */
#include "tests/simcurand/rng.h"

static const struct {
	unsigned char degree, poly, m[5];
} joe_kuo[RNG_SOBOL_DIMS - 1] = {
	{1, 0, {1}},
	{2, 1, {1, 3}},
	{3, 1, {1, 3, 1}},
	{3, 2, {1, 1, 1}},
	{4, 1, {1, 1, 3, 3}},
	{4, 4, {1, 3, 5, 13}},
	{5, 2, {1, 1, 5, 5, 17}},
	{5, 4, {1, 1, 5, 5, 5}},
	{5, 7, {1, 1, 7, 11, 19}},
};

/* dim from 0. */
static void directions(unsigned dim, uint32_t ret[32])
{
	unsigned s;

	if (!dim) {
		for (unsigned i = 0; i < 32; i++)
			ret[i] = 1u << (31 - i);
		return;
	}
	s = joe_kuo[dim - 1].degree;
	for (unsigned i = 0; i < 32; i++) {
		if (i < s) {
			ret[i] = (uint32_t)joe_kuo[dim - 1].m[i] << (31 - i);
			continue;
		}
		ret[i] = ret[i - s] ^ ret[i - s] >> s;
		for (unsigned k = 1; k < s; k++)
			if (joe_kuo[dim - 1].poly >> (s - 1 - k) & 1)
				ret[i] ^= ret[i - k];
	}
}

/* Calls put(out, index, value) for every result. */
static void points(struct rng *g, size_t n, void (*put)(void *out, size_t i, uint32_t x), void *out)
{
	size_t each = n / g->dims;
	uint32_t v[32], x;

	for (unsigned d = 0; d < g->dims; d++) {
		directions(d, v);
		for (size_t i = 0; i < each; i++) {
			uint32_t gray = (uint32_t)(g->at + i) ^ (uint32_t)(g->at + i) >> 1;

			x = 0;
			for (unsigned b = 0; b < 32 && gray >> b; b++)
				if (gray >> b & 1)
					x ^= v[b];
			put(out, d * each + i, x);
		}
	}
	g->at += each;
}

static void put_word(void *out, size_t i, uint32_t x)
{
	((uint32_t *)out)[i] = x;
}

static void put_float(void *out, size_t i, uint32_t x)
{
	((float *)out)[i] = rng_unit(x);
}

static void put_double(void *out, size_t i, uint32_t x)
{
	((double *)out)[i] = x * 2.3283064365386963e-10 + 2.3283064365386963e-10;
}

static void word(struct rng *g, uint32_t *out, size_t n)
{
	points(g, n, put_word, out);
}

static void uniform(struct rng *g, float *out, size_t n)
{
	points(g, n, put_float, out);
}

static void uniform_double(struct rng *g, double *out, size_t n)
{
	points(g, n, put_double, out);
}

const struct rng_ops rng_sobol = {
	.word = word, .uniform = uniform, .uniform_double = uniform_double, .quasi = 1};
