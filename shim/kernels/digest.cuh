/* SPDX-License-Identifier: MIT */
/*
 * The chunk digest of tracker/digest.h by one warp: for rs_digest and rs_digest_many.
 *
 * A whole chunk (4 KiB) on a 16-byte boundary is eight 16-byte loads a lane, all in flight together, with
 * neighbouring lanes on neighbouring vectors: every request is 512 contiguous bytes. Other chunks go word by word
 * with the widest loads that their alignment allows. No byte outside of [p, p + bytes) is read.
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
