/* SPDX-License-Identifier: MIT */
/*
 * Where a library's random generator stands, as one number: equal numbers mean equal future draws.
 *
 * There is no getter for a generator's state, so every call that changes it is followed here. As far as the draws
 * since the last explicit offset are ones that an offset can express, two ways to the same place give the same
 * number; beyond that only the same calls do. An error is therefore always on the side of "different".
 *
 * The laws are measured on the host generators of cuRAND 10.4. A generator is a row of lanes that take turns; an
 * offset counts turns. Draws that take more than one value in a turn (doubles, normals) leave the lanes unequal until
 * all have had as many turns: only then is there an offset again. A new start (another seed or order, GenerateSeeds)
 * begins at the count of turns, which then is another place than where the draws had led.
 *
 * No locks: a generator's position belongs to its owner. Callers: the shim's cuRAND wrappers.
 */
#ifndef RS_TRACKER_RNGPOS_H
#define RS_TRACKER_RNGPOS_H

#include <stdint.h>

/* What a draw makes; the numbers mean nothing outside. */
enum rs_rngpos_draw {
	RS_RNGPOS_WORD, /* 32 bits */
	RS_RNGPOS_WORD64,
	RS_RNGPOS_UNIFORM,
	RS_RNGPOS_UNIFORM_DOUBLE,
	RS_RNGPOS_NORMAL, /* log-normal too */
	RS_RNGPOS_NORMAL_DOUBLE,
	RS_RNGPOS_POISSON,
};

struct rs_rngpos {
	int type, order; /* numbers of curandRngType, curandOrdering */
	uint32_t dims;
	uint64_t seed, offset;
	uint64_t start, at; /* the last explicit offset; that plus the turns since */
	uint8_t lawless;    /* has drawn what no turns are known for */
	/* Draws since that an offset does not express: the latest kind with its turns, all before it as a hash. */
	uint64_t cost, turns, past;
};

void rs_rngpos_init(struct rs_rngpos *p, int type);
void rs_rngpos_draw(struct rs_rngpos *p, enum rs_rngpos_draw draw, uint64_t n, double shape);
void rs_rngpos_seed(struct rs_rngpos *p, uint64_t seed);
void rs_rngpos_offset(struct rs_rngpos *p, uint64_t offset);
void rs_rngpos_order(struct rs_rngpos *p, int order);
void rs_rngpos_dims(struct rs_rngpos *p, uint32_t dims);
/* The library sets up the states of its lanes. */
void rs_rngpos_seeds(struct rs_rngpos *p);
uint64_t rs_rngpos_value(const struct rs_rngpos *p);

#endif
