/* SPDX-License-Identifier: MIT */
/*
 * rs_digest_many_wide: digest_many.cuh with a table that fills the larger parameter block of drivers from 12.1 on.
 * digest_many_wide.ptx is made by scripts/make-ptx.
 */
#include "digest_many.cuh"

extern "C" __global__ void __launch_bounds__(RS_TILE_THREADS)
	rs_digest_many_wide(const __grid_constant__ struct rs_move_wide_table t)
{
	DIGEST_MANY(t);
}
