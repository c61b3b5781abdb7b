/* SPDX-License-Identifier: MIT */
/*
 * rs_diff_many: the same of many pairs of ranges in one launch: pages of all rows are numbered through, a block finds
 * its row by bisection in the table, which is the launch's parameter, by value. diff_many.ptx is made by scripts/make-ptx.
 */
#include "diff.cuh"

extern "C" __global__ void __launch_bounds__(RS_DIFF_THREADS)
	rs_diff_many(const __grid_constant__ struct rs_diff_table t)
{
	for (u64 page = blockIdx.x; page < t.pages; page += gridDim.x) {
		u32 at = 0, end = (u32)t.rows;

		while (end - at > 1) {
			u32 mid = (at + end) / 2;

			if (t.row[mid].first <= page)
				at = mid;
			else
				end = mid;
		}
		const u8 *a = (const u8 *)t.row[at].a, *b = (const u8 *)t.row[at].b;
		u64 i = page - t.row[at].first, from = i * RS_DIFF_PAGE;
		u64 left = t.row[at].bytes - from;
		bool seen;

		BY_WIDTH((u64)a ^ (u64)b, diff_page, a + from, b + from,
			 left < RS_DIFF_PAGE ? (u32)left : RS_DIFF_PAGE, &seen);
		if (!threadIdx.x)
			((u64 *)t.row[at].out)[i] = seen;
	}
}
