/* SPDX-License-Identifier: MIT */
/*
 * The chunk digests (digest.cuh) of many ranges in one launch: the body of rs_digest_many and rs_digest_many_wide.
 *
 * The table is a move's (tiles.h), by value in the launch's parameters, so that a captured launch keeps it: `src` is
 * digested into the words at `dst`, `first` counts chunks. One warp a chunk, any grid: chunks of all rows are numbered
 * through and taken in strides of all warps; a warp finds its row by bisection, in constant memory: ten dependent
 * loads of some 30 cycles and 90 instructions beside a chunk's 480, which other warps cover. Words of rows lie apart, so
 * each is a store of its own; a launch has at most as many rows as the table.
 */
#include "digest.cuh"
#include "tiles.h"

/* A macro: a table that is passed on to a function may be copied to local memory first. */
#define DIGEST_MANY(t)                                                                             \
	do {                                                                                       \
		unsigned lane = threadIdx.x % WARP;                                                \
		u64 chunk = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / WARP;                   \
		u64 stride = (u64)gridDim.x * blockDim.x / WARP;                                   \
                                                                                                   \
		for (; chunk < (t).tiles; chunk += stride) {                                       \
			unsigned at = 0, end = (unsigned)(t).rows;                                 \
                                                                                                   \
			while (end - at > 1) {                                                     \
				unsigned mid = (at + end) / 2;                                     \
                                                                                                   \
				if ((t).row[mid].first <= chunk)                                   \
					at = mid;                                                  \
				else                                                               \
					end = mid;                                                 \
			}                                                                          \
			u64 i = chunk - (t).row[at].first, left = (t).row[at].bytes - i * CHUNK;   \
			u64 sum = digest_chunk((const unsigned char *)(t).row[at].src + i * CHUNK, \
					       left < CHUNK ? (unsigned)left : CHUNK, lane);       \
                                                                                                   \
			if (!lane)                                                                 \
				((u64 *)(t).row[at].dst)[i] = sum;                                 \
		}                                                                                  \
	} while (0)
