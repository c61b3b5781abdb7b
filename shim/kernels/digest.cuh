/* SPDX-License-Identifier: MIT */
/*
 * The chunk digest of tracker/digest.h by one warp: for rs_digest and rs_digest_many.
 *
 * A whole chunk (4 KiB) on a 16-byte boundary is eight 16-byte loads a lane, neighbouring lanes on neighbouring vectors:
 * each request of a warp is 512 contiguous bytes, 16 whole sectors. Other chunks go word by word with the widest loads
 * that their alignment allows. No byte outside of [p, p + bytes) is read.
 *
 * Why memory is what it waits for, reckoned from the machine code of ptxas 13.0 for sm_90; nobody has measured it:
 *  - In flight: 40 registers a thread let 12 blocks, 48 warps, onto a multiprocessor. ptxas issues four of a lane's eight
 *    loads before it uses the first, so these are 96 KiB. An H100 (3.35 TB/s, 132 of them) or H200 (4.8 TB/s) needs its
 *    share of bandwidth times some 0.8 us of latency: 20 or 29 KiB.
 *  - Arithmetic: a warp's chunk takes about 480 instructions, some 275 of them on the integer pipe, which takes one a
 *    scheduler every other cycle: 550 cycles for 4 KiB, on four schedulers 30 bytes a cycle, at 1.7 GHz 6.7 TB/s on the
 *    whole device. Multiplications are on another pipe and take less.
 *  - Results: 8 bytes to the host for 4 KiB, 0.2% of what is read; see digest.cu for how many transactions these are.
 */
typedef unsigned long long u64;

#define CHUNK	4096
#define WARP	32
#define VECTORS (CHUNK / 16 / WARP) /* a lane's share */
#define K	0x9e3779b97f4a7c15ull

static __device__ __forceinline__ u64 mix(u64 x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ull;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* This lane's part of a whole aligned chunk. */
static __device__ __forceinline__ u64 sum_vectors(const ulonglong2 *p, unsigned lane)
{
	u64 index = (2 * lane + 1) * K, sum = 0;
	ulonglong2 v[VECTORS];

#pragma unroll
	for (int i = 0; i < VECTORS; i++)
		v[i] = p[i * WARP + lane];
#pragma unroll
	for (int i = 0; i < VECTORS; i++) {
		sum += mix(v[i].x + index + i * (2 * WARP * K));
		sum += mix(v[i].y + index + i * (2 * WARP * K) + K);
	}
	return sum;
}

/* Up to 8 bytes, little-endian, zero-padded; whole words by the widest load for their alignment. */
static __device__ __forceinline__ u64 load_word(const unsigned char *p, unsigned bytes)
{
	u64 at = (u64)p, w = 0;

	if (bytes == 8 && at % 8 == 0)
		return *(const u64 *)p;
	if (bytes == 8 && at % 4 == 0)
		return *(const unsigned *)p | (u64) * (const unsigned *)(p + 4) << 32;
	for (unsigned i = 0; i < bytes; i++)
		w |= (u64)p[i] << (8 * i);
	return w;
}

static __device__ __forceinline__ u64 sum_words(const unsigned char *p, unsigned bytes,
						unsigned lane)
{
	u64 sum = 0;

	for (unsigned i = lane; i * 8 < bytes; i += WARP) {
		unsigned left = bytes - i * 8;

		sum += mix(load_word(p + i * 8, left < 8 ? left : 8) + (i + 1) * K);
	}
	return sum;
}

/* The digest of up to CHUNK bytes, in every lane. The whole warp comes here. */
static __device__ __forceinline__ u64 digest_chunk(const unsigned char *p, unsigned bytes,
						   unsigned lane)
{
	u64 sum;

	if (bytes == CHUNK && (u64)p % 16 == 0)
		sum = sum_vectors((const ulonglong2 *)p, lane);
	else
		sum = sum_words(p, bytes, lane);
#pragma unroll
	for (int i = WARP / 2; i; i /= 2)
		sum += __shfl_xor_sync(0xffffffffu, sum, i);
	return sum + mix(bytes);
}
