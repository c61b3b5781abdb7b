/* SPDX-License-Identifier: MIT */
/*
 * The 64-bit digest of up to RS_DIGEST_CHUNK bytes: reference for the device kernel
 * (shim/kernels/digest.cu) and for tests.
 *
 * Defined for parallel evaluation: the chunk is read as little-endian 64-bit words w_0..w_{n-1}, the
 * last one zero-padded, and
 *     digest = mix(bytes) + sum_i mix(w_i + (i + 1) * K)   mod 2^64
 * with mix the finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014) and K the golden ratio.
 * The sum commutes, so lanes may add in any order; the index makes it order-sensitive; the length makes
 * padding visible. Not cryptographic. Pure functions, any thread.
 */
#ifndef RS_TRACKER_DIGEST_H
#define RS_TRACKER_DIGEST_H

#include <stdint.h>

#define RS_DIGEST_K 0x9e3779b97f4a7c15ull

static inline uint64_t rs_digest_mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ull;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* bytes <= RS_DIGEST_CHUNK. */
uint64_t rs_digest_chunk(const void *data, uint64_t bytes);
/* rs_digest_count(bytes) digests into out. */
void rs_digest_range(const void *data, uint64_t bytes, uint64_t *out);

#endif
