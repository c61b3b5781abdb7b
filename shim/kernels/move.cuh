/* SPDX-License-Identifier: MIT */
/*
 * Many copies in one launch, for any addresses and lengths: the body of rs_move and rs_move_wide.
 *
 * The table comes by value in the launch's parameters: nothing is allocated for it, it is the
 * caller's again on return, and a captured launch keeps it. One warp a tile of 4 KiB (tiles.h), any
 * grid: tiles of all rows are numbered through and taken in strides of all warps, so rows of 64 bytes
 * and of gigabytes share the device evenly; a warp finds its row by bisection, in constant memory.
 * A tile whose two addresses agree modulo 16 is eight 16-byte loads a lane, all in flight together,
 * then eight stores. No byte outside of the rows is read or written.
 */
#include "tiles.h"
#include "width.cuh"

/* A lane's share of n elements. */
template <typename T>
static __device__ __forceinline__ void move_elements(T *dst, const T *src, u32 n, u32 lane)
{
	const u32 depth = DEPTH(T);
	u32 i = lane;

#pragma unroll 1
	for (; i + (depth - 1) * WARP < n; i += depth * WARP) {
		T v[depth];

#pragma unroll
		for (u32 k = 0; k < depth; k++)
			v[k] = src[i + k * WARP];
#pragma unroll
		for (u32 k = 0; k < depth; k++)
			dst[i + k * WARP] = v[k];
	}
#pragma unroll 1
	for (; i < n; i += WARP)
		dst[i] = src[i];
}

template <typename T>
static __device__ __forceinline__ void move_tile(u8 *dst, const u8 *src, u32 bytes, u32 lane)
{
	u32 head = head_of<T>(dst, bytes), n = (bytes - head) / sizeof(T);
	u32 tail = head + n * sizeof(T) + lane;

	if (lane < head)
		dst[lane] = src[lane];
	move_elements((T *)(dst + head), (const T *)(src + head), n, lane);
	if (tail < bytes)
		dst[tail] = src[tail];
}

/* A macro: a table that is passed on to a function may be copied to local memory first. */
#define MOVE(t)                                                                                    \
	do {                                                                                       \
		u32 lane = threadIdx.x % WARP;                                                     \
		u64 tile = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / WARP;                    \
		u64 stride = (u64)gridDim.x * blockDim.x / WARP;                                   \
                                                                                                   \
		for (; tile < (t).tiles; tile += stride) {                                         \
			u32 at = 0, end = (u32)(t).rows;                                           \
                                                                                                   \
			while (end - at > 1) {                                                     \
				u32 mid = (at + end) / 2;                                          \
                                                                                                   \
				if ((t).row[mid].first <= tile)                                    \
					at = mid;                                                  \
				else                                                               \
					end = mid;                                                 \
			}                                                                          \
			u8 *dst = (u8 *)(t).row[at].dst;                                           \
			const u8 *src = (const u8 *)(t).row[at].src;                               \
			u64 bytes = (t).row[at].bytes, over = (u64)dst % RS_TILE_LINE;             \
			u64 to = (tile - (t).row[at].first + 1) * RS_TILE - over;                  \
			u64 from = tile == (t).row[at].first ? 0 : to - RS_TILE;                   \
                                                                                                   \
			to = to < bytes ? to : bytes;                                              \
			BY_WIDTH((u64)dst ^ (u64)src, move_tile, dst + from, src + from,           \
				 (u32)(to - from), lane);                                          \
		}                                                                                  \
	} while (0)
