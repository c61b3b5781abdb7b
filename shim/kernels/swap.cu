/* SPDX-License-Identifier: MIT */
/*
 * rs_swap: two ranges that do not overlap exchange their bytes, for any addresses and length.
 *
 * One warp a tile of 4 KiB (tiles.h), any grid: tiles are taken in strides of all warps. Where the
 * two addresses agree modulo 16, a lane has eight 16-byte loads in flight, four of each range. No
 * byte outside of the ranges is read or written. swap.ptx is made by scripts/make-ptx.
 */
#include "tiles.h"
#include "width.cuh"

/* A lane's share of n elements. */
template <typename T>
static __device__ __forceinline__ void swap_elements(T *a, T *b, u32 n, u32 lane)
{
	const u32 half = DEPTH(T) / 2;
	u32 i = lane;

#pragma unroll 1
	for (; i + (half - 1) * WARP < n; i += half * WARP) {
		T x[half], y[half];

#pragma unroll
		for (u32 k = 0; k < half; k++) {
			x[k] = a[i + k * WARP];
			y[k] = b[i + k * WARP];
		}
#pragma unroll
		for (u32 k = 0; k < half; k++) {
			a[i + k * WARP] = y[k];
			b[i + k * WARP] = x[k];
		}
	}
#pragma unroll 1
	for (; i < n; i += WARP) {
		T x = a[i], y = b[i];

		a[i] = y;
		b[i] = x;
	}
}

static __device__ __forceinline__ void swap_byte(u8 *a, u8 *b)
{
	u8 x = *a, y = *b;

	*a = y;
	*b = x;
}

template <typename T>
static __device__ __forceinline__ void swap_tile(u8 *a, u8 *b, u32 bytes, u32 lane)
{
	u32 head = head_of<T>(a, bytes), n = (bytes - head) / sizeof(T);
	u32 tail = head + n * sizeof(T) + lane;

	if (lane < head)
		swap_byte(a + lane, b + lane);
	swap_elements((T *)(a + head), (T *)(b + head), n, lane);
	if (tail < bytes)
		swap_byte(a + tail, b + tail);
}

extern "C" __global__ void __launch_bounds__(RS_TILE_THREADS)
	rs_swap(u8 *a, u8 *b, unsigned long long bytes)
{
	u32 lane = threadIdx.x % WARP;
	u64 tile = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / WARP;
	u64 stride = (u64)gridDim.x * blockDim.x / WARP;
	u64 over = (u64)a % RS_TILE_LINE, tiles = RS_TILE_COUNT((u64)a, bytes);

	for (; tile < tiles; tile += stride) {
		u64 to = (tile + 1) * RS_TILE - over, from = tile ? to - RS_TILE : 0;

		to = to < bytes ? to : bytes;
		BY_WIDTH((u64)a ^ (u64)b, swap_tile, a + from, b + from, (u32)(to - from), lane);
	}
}
