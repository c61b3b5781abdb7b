/* SPDX-License-Identifier: MIT */
/*
 * rs_diff: which 64 KiB pages of two ranges differ, for any addresses and length.
 *
 * One block a page, any grid: pages are taken in strides of all blocks. Where the two addresses agree
 * modulo 16, a thread has eight 16-byte loads in flight, four of each range, and a block leaves a
 * page after the 16 KiB in which it saw a difference. No byte outside of the ranges is read.
 * diff.ptx is made by scripts/make-ptx.
 */
#include "tiles.h"
#include "width.cuh"

static __device__ __forceinline__ bool differ(ulonglong2 x, ulonglong2 y)
{
	return ((x.x ^ y.x) | (x.y ^ y.y)) != 0;
}

template <typename T> static __device__ __forceinline__ bool differ(T x, T y)
{
	return x != y;
}

/* The whole block comes here and leaves together, with the same answer in *ret. */
template <typename T>
static __device__ __forceinline__ void diff_page(const u8 *a, const u8 *b, u32 bytes, bool *ret)
{
	const u32 half = DEPTH(T) / 2;
	u32 head = head_of<T>(a, bytes), n = (bytes - head) / sizeof(T);
	u32 tail = head + n * sizeof(T) + threadIdx.x, i = threadIdx.x;
	const T *p = (const T *)(a + head), *q = (const T *)(b + head);
	bool seen = false;

	if (threadIdx.x < head)
		seen = a[threadIdx.x] != b[threadIdx.x];
	if (tail < bytes)
		seen |= a[tail] != b[tail];
#pragma unroll 1
	for (u32 done = 0; done < n; done += half * RS_DIFF_THREADS, i += half * RS_DIFF_THREADS) {
		if (i + (half - 1) * RS_DIFF_THREADS < n) {
			T x[half], y[half];

#pragma unroll
			for (u32 k = 0; k < half; k++) {
				x[k] = p[i + k * RS_DIFF_THREADS];
				y[k] = q[i + k * RS_DIFF_THREADS];
			}
#pragma unroll
			for (u32 k = 0; k < half; k++)
				seen |= differ(x[k], y[k]);
		} else {
#pragma unroll 1
			for (u32 k = i; k < n; k += RS_DIFF_THREADS)
				seen |= differ(p[k], q[k]);
		}
		seen = __syncthreads_or(seen);
		if (seen)
			break;
	}
	*ret = n ? seen : __syncthreads_or(seen);
}

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
