/* SPDX-License-Identifier: MIT */
/*
 * The random number generators behind the stand-in libcurand: sequences only, no device.
 *
 * A generator is a row of lanes. Results go round the lanes: the next result, or the next pair of normally
 * distributed ones, is drawn from the next lane. A lane is the published algorithm, started at its own far-off place
 * of the one sequence that the seed selects. Lanes that have been drawn from unequally stay so: that is why an
 * offset alone does not always say where a generator stands.
 *
 * Callers: api.c, one thread per generator.
 */
#ifndef TESTS_SIMCURAND_RNG_H
#define TESTS_SIMCURAND_RNG_H

#include <stddef.h>
#include <stdint.h>

struct rng;

/* One lane's draws; those that a generator makes by itself may be missing. */
struct rng_lane_ops {
	unsigned lanes;
	size_t bytes;
	/* Fill all lanes: lane l stands `offset / lanes` draws (one more if l < offset % lanes) into its part. */
	void (*start)(struct rng *g);
	uint32_t (*word)(void *lane);
	float (*uniform)(void *lane);
	double (*uniform_double)(void *lane);
	void (*normal)(void *lane, float ret[2]);
	void (*normal_double)(void *lane, double ret[2]);
};

/* n results; normals have mean 0 and deviation 1. NULL: the generator does not offer it. */
struct rng_ops {
	void (*word)(struct rng *g, uint32_t *out, size_t n);
	void (*uniform)(struct rng *g, float *out, size_t n);
	void (*uniform_double)(struct rng *g, double *out, size_t n);
	void (*normal)(struct rng *g, float *out, size_t n);
	void (*normal_double)(struct rng *g, double *out, size_t n);
	const struct rng_lane_ops *lane;
	unsigned char pairs;  /* normals are made in pairs: an odd number is refused */
	unsigned char blocks; /* counts results in blocks of four when it starts anew */
	unsigned char quasi;  /* dimensions instead of a seed */
};

struct rng {
	const struct rng_ops *ops;
	uint64_t seed;
	uint64_t offset; /* where the next start begins */
	uint64_t at;	 /* results since the start, offset included */
	unsigned dims;
	unsigned char started;
	unsigned turn; /* the lane that draws next */
	void *lanes;
};

#define RNG_SOBOL_DIMS 10
extern const struct rng_ops rng_xorwow, rng_mrg, rng_mrg_legacy, rng_philox, rng_sobol;

/* Callable before every draw. 0, or -ENOMEM. */
int rng_start(struct rng *g);
/* After seed or ordering have changed: the next draw starts anew, where the real library would. */
void rng_restart(struct rng *g);

/* For generators that consist of lanes. */
void rng_lanes_word(struct rng *g, uint32_t *out, size_t n);
void rng_lanes_uniform(struct rng *g, float *out, size_t n);
void rng_lanes_uniform_double(struct rng *g, double *out, size_t n);
void rng_lanes_normal(struct rng *g, float *out, size_t n);
void rng_lanes_normal_double(struct rng *g, double *out, size_t n);

/* Box and Muller, in the order of operations that fixes the last bits; u in (0, 1], angle in radians. */
void rng_box_muller(float u, float angle, float ret[2]);
/* turns: angle in half turns. */
void rng_box_muller_double(double u, double turns, double ret[2]);

/* From 32 random bits to (0, 1], from 53 to (0, 1). */
float rng_unit(uint32_t x);
double rng_unit53(uint32_t low, uint32_t high);
/* From 32 random bits to an angle in (0, 2 pi]. */
float rng_angle(uint32_t x);

#endif
