/* SPDX-License-Identifier: MIT */
/*
 * What all generators share: taking turns between lanes, and from random bits to numbers.
 *
 * The order of floating-point operations is part of the result; this file is compiled without contraction.
 */
#include "tests/simcurand/rng.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define INV32 2.3283064e-10f
#define INV53 1.1102230246251565e-16
#define PI    3.1415926535897932

float rng_unit(uint32_t x)
{
	return (float)x * INV32 + INV32 / 2.0f;
}

float rng_angle(uint32_t x)
{
	return (float)x * (INV32 * 6.2831855f) + (INV32 * 6.2831855f) / 2;
}

double rng_unit53(uint32_t low, uint32_t high)
{
	uint64_t z = low ^ (uint64_t)high << 21;

	return (double)z * INV53 + INV53 / 2.0;
}

void rng_box_muller(float u, float angle, float ret[2])
{
	float s = sqrtf(-2.0f * logf(u));

	ret[0] = sinf(angle) * s;
	ret[1] = cosf(angle) * s;
}

void rng_box_muller_double(double u, double turns, double ret[2])
{
	double s = sqrt(-2.0 * log(u));

	ret[0] = sin(turns * PI) * s;
	ret[1] = cos(turns * PI) * s;
}

int rng_start(struct rng *g)
{
	const struct rng_lane_ops *lane = g->ops->lane;

	if (g->started)
		return 0;
	if (lane) {
		if (!g->lanes)
			g->lanes = malloc(lane->lanes * lane->bytes);
		if (!g->lanes)
			return -ENOMEM;
		lane->start(g);
		g->turn = (unsigned)(g->offset % lane->lanes);
	}
	g->at = g->offset;
	g->started = 1;
	return 0;
}

void rng_restart(struct rng *g)
{
	if (!g->started)
		return;
	/* The real library adds the number of turns, or of whole blocks, since the start. */
	if (g->ops->blocks)
		g->offset += (g->at - (g->offset & ~3ull)) / 4;
	else
		g->offset = g->at;
	g->started = 0;
}

static void *next_lane(struct rng *g)
{
	void *lane = (char *)g->lanes + g->turn * g->ops->lane->bytes;

	g->turn = (g->turn + 1) % g->ops->lane->lanes;
	g->at++;
	return lane;
}

void rng_lanes_word(struct rng *g, uint32_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = g->ops->lane->word(next_lane(g));
}

void rng_lanes_uniform(struct rng *g, float *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = g->ops->lane->uniform(next_lane(g));
}

void rng_lanes_uniform_double(struct rng *g, double *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = g->ops->lane->uniform_double(next_lane(g));
}

void rng_lanes_normal(struct rng *g, float *out, size_t n)
{
	for (size_t i = 0; i + 1 < n; i += 2)
		g->ops->lane->normal(next_lane(g), out + i);
}

void rng_lanes_normal_double(struct rng *g, double *out, size_t n)
{
	for (size_t i = 0; i + 1 < n; i += 2)
		g->ops->lane->normal_double(next_lane(g), out + i);
}
