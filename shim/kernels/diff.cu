/* SPDX-License-Identifier: MIT */
/*
 * rs_diff: which 64 KiB pages of two ranges differ (diff.cuh), for any addresses and length. One block a page, any grid:
 * pages are taken in strides of all blocks. diff.ptx is made by scripts/make-ptx.
 */
#include "diff.cuh"

extern "C" __global__ void __launch_bounds__(RS_DIFF_THREADS)
	rs_diff(const u8 *a, const u8 *b, unsigned long long bytes, unsigned long long *out)
{
	for (u64 page = blockIdx.x; page * RS_DIFF_PAGE < bytes; page += gridDim.x) {
		u64 from = page * RS_DIFF_PAGE, left = bytes - from;
		bool seen;

		BY_WIDTH((u64)a ^ (u64)b, diff_page, a + from, b + from,
			 left < RS_DIFF_PAGE ? (u32)left : RS_DIFF_PAGE, &seen);
		if (!threadIdx.x)
			out[page] = seen;
	}
}
