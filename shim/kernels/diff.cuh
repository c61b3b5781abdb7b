/* SPDX-License-Identifier: MIT */
/*
 * Whether two pages of 64 KiB or less differ, by one block: for rs_diff and rs_diff_many.
 *
 * Where the two addresses agree modulo 16, a thread takes eight 16-byte loads at a time, four of each range, and a block
 * leaves a page after the 16 KiB in which it saw a difference. No byte outside of the pages is read.
 *
 * Reckoned, as in digest.cuh: 32 registers let all 2,048 threads onto a multiprocessor; ptxas for sm_90 keeps four of the
 * eight loads in flight, 128 KiB, where 20 to 29 are needed; a warp's requests are whole sectors; about 12 instructions
 * for 32 bytes. The barrier every 16 KiB is covered by the seven other blocks. Below some 60 MiB not every multiprocessor
 * has its eight blocks, and below 8 MiB some have none: then what counts is the time of one page, eight loads of latency.
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
