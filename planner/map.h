/* SPDX-License-Identifier: MIT */
/*
 * The crossover map: where keeping only the overwritten bytes (regions) beats keeping whole buffers, over the part of a buffer
 * that is written, activations per byte of buffer, and budget. A made-up program of equal segments, each with a buffer of
 * its own; its options are those of planner/README.md, its plans are solved, not estimated.
 *
 * Callers: cmd_map.c, tests. No state.
 */
#ifndef RS_PLANNER_MAP_H
#define RS_PLANNER_MAP_H

#include <stdio.h>

#include "planner/costing.h"

struct rs_map_model {
	uint32_t n;
	double activations, inputs, scratch; /* bytes of a segment: a, c, g */
	double replay_ns, other_ns;	     /* f; of a step besides n (f + 2f) */
	double row, row_more;		     /* bytes; metadata of each */
	double copy, gather, digest;	     /* ns a byte */
	double launch_ns;
	/* Where the program is that was measured: rho, density (0: none was), budget in bytes above its base. */
	double rho, density, budget;
};

#define RS_MAP_RHOS	 6
#define RS_MAP_BETAS	 6
#define RS_MAP_DENSITIES 10
extern const double rs_map_rhos[RS_MAP_RHOS], rs_map_betas[RS_MAP_BETAS],
	rs_map_densities[RS_MAP_DENSITIES];

enum rs_map_state { RS_MAP_BOTH, RS_MAP_ONLY_JOINT, RS_MAP_NEITHER };

struct rs_map_cell {
	enum rs_map_state state;
	int64_t budget;		 /* bytes */
	int64_t joint_ns, ew_ns; /* steps, where there is a plan */
	double gain;		 /* part of the eager/whole step that joint saves */
};

struct rs_map {
	struct rs_map_cell cell[RS_MAP_RHOS][RS_MAP_BETAS][RS_MAP_DENSITIES];
};

extern const struct rs_map_model
	rs_map_reference; /* H100, bfloat16 layers; see planner/README.md */
/* Medians of what was measured, in the place of the reference's numbers. 0, or -ENODATA: nothing is replayed. */
int rs_map_measured(const struct rs_costs *c, uint64_t budget, struct rs_map_model *ret);

/* beta < 0: the model's own budget. 0 or -ENOMEM. */
int rs_map_cell(const struct rs_map_model *m, double rho, double beta, double density,
		struct rs_map_cell *ret);
int rs_map_make(const struct rs_map_model *m, struct rs_map *ret);
/* Below the one density regions hold less than whole buffers, below the other they take less time. */
double rs_map_less_memory(const struct rs_map_model *m);
double rs_map_less_time(const struct rs_map_model *m);

/* "X", "-", "." or the gain in %. */
const char *rs_map_mark(const struct rs_map_cell *c, char text[16]);
void rs_map_text(FILE *out, const struct rs_map_model *m, const struct rs_map *map);
void rs_map_csv(FILE *out, const struct rs_map_model *m, const struct rs_map *map);
void rs_map_svg(FILE *out, const struct rs_map_model *m, const struct rs_map *map);

#endif
