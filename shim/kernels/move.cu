/* SPDX-License-Identifier: MIT */
/* rs_move: move.cuh with the table that every driver takes. move.ptx is made by scripts/make-ptx. */
#include "move.cuh"

extern "C" __global__ void __launch_bounds__(RS_TILE_THREADS)
	rs_move(const __grid_constant__ struct rs_move_table t)
{
	MOVE(t);
}
