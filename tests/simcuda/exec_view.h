/* SPDX-License-Identifier: MIT */
/*
 * What texture and surface instructions share: the object behind a handle, coordinates as operands.
 *
 * Operands live in the side list of the micro-op: what is written, then the handle, then the layer (if
 * any) and the coordinates, then what the instruction has besides. The low bits of the flags say how
 * many coordinates there are; the users of this header have bits 3 to 7.
 */
#ifndef SIM_EXEC_VIEW_H
#define SIM_EXEC_VIEW_H

#include "tests/simcuda/exec_run.h"

#define SIM_VIEW_DIMS	 3u
#define SIM_VIEW_LAYERED 4u

#define SIM_SIDE(T, o, w, i) ((T *)((w)->r + (w)->run->k->side[(o)->imm + (i)]))

static inline unsigned sim_view_ncoords(const struct sim_uop *o)
{
	return (o->flags & SIM_VIEW_DIMS) + !!(o->flags & SIM_VIEW_LAYERED);
}

/* The object of a lane, fit for the geometry of the instruction; NULL after a fault. */
const struct sim_view *sim_view_find(struct sim_warp *w, const struct sim_uop *o, unsigned lane,
				     uint64_t handle, int is_surface);
/* Append handle and coordinates ([%rd, {x, y}], coordinates of this letter) to the side list. */
int sim_view_lower(struct sim_lower *l, const struct rs_ptx_insn *in,
		   const struct rs_ptx_operand *op, char letter, unsigned *ret_flags);
/* A micro-op over the side list from `start` on, of which `written` entries are results. */
int sim_view_emit(struct sim_lower *l, sim_fn fn, uint32_t start, unsigned written, unsigned flags);
/* Registers of {a, b} or a: as results or as sources. */
int sim_view_data(struct sim_lower *l, const struct rs_ptx_operand *op, unsigned n, char letter,
		  int is_result);

#endif
