/* SPDX-License-Identifier: MIT */
/*
 * From the values of one kernel (scratch) to its bounds (kept): copies what groups need, and works
 * out under which conditions a block is executed.
 *
 * Callers: ptx_access.c. One thread, no locks.
 */
#ifndef RS_TRACKER_PTX_BUILD_H
#define RS_TRACKER_PTX_BUILD_H

#include "tracker/ptx_bounds.h"

struct rs_build {
	struct rs_vals *v;
	struct rs_aff_mem *out;
	uint16_t *map; /* atom to kept atom */
	struct rs_bound_atom *atoms;
	uint16_t *order; /* kept atoms, arguments first */
	uint32_t natoms, norder, nmap;
	const struct rs_bound_context **context; /* by block */
	const struct rs_bound_context *newest;	 /* of all contexts */
	const struct rs_need **needs;		 /* by need */
	uint32_t nneeds;
	const struct rs_build_exits **exits; /* by loop */
	uint32_t *stack, *seen, stamp;	     /* of searches over the blocks */
	uint8_t *link;			     /* by block, scratch of one context */
};

void rs_build_init(struct rs_build *b, struct rs_vals *v, struct rs_aff_mem *out);

/* Kept copies; NULL when the kernel's room for atoms is used up. */
const struct rs_aff_poly *rs_build_poly(struct rs_build *b, const struct rs_aff_poly *p);
const struct rs_need *rs_build_need(struct rs_build *b, uint16_t id);

/* Context of an access in a block under an instruction's own guard (NULL: none). */
const struct rs_bound_context *rs_build_context(struct rs_build *b, uint32_t block,
						const struct rs_pred *guard);

/* Kept atoms that these groups need, in order of evaluation. */
void rs_build_order(struct rs_build *b, struct rs_bound_side *side);

/* Tests of a loop (ptx_context.c). */
void rs_build_loop(struct rs_build *b, int32_t loop, struct rs_bound_atom *a);

#endif
