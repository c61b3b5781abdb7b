/* SPDX-License-Identifier: MIT */
/* rs_digest_many: digest_many.cuh with the table that every driver takes. digest_many.ptx is made by scripts/make-ptx. */
#include "digest_many.cuh"

extern "C" __global__ void __launch_bounds__(RS_TILE_THREADS)
	rs_digest_many(const __grid_constant__ struct rs_move_table t)
{
	DIGEST_MANY(t);
}
