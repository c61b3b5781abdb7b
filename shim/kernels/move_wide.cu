/* SPDX-License-Identifier: MIT */
/*
 * rs_move_wide: move.cuh with a table that fills the larger parameter block of drivers from 12.1 on.
 * Long lists of small pages need it: a launch then lasts long against the gap to the next.
 * move_wide.ptx is made by scripts/make-ptx.
 */
#include "move.cuh"

extern "C" __global__ void __launch_bounds__(RS_TILE_THREADS)
	rs_move_wide(const __grid_constant__ struct rs_move_wide_table t)
{
	MOVE(t);
}
