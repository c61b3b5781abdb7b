/* SPDX-License-Identifier: MIT */
/*
 * rs_digest: the chunk digests of one range (digest.cuh), for any address and length.
 *
 * One warp a chunk of 4 KiB, 128 threads a block, any grid: chunks are taken in strides of all warps. The four words of
 * a block lie next to each other and go out in one store of 32 bytes: they are memory of the host, and at the speed at
 * which chunks are read every word by itself would be 800 million transactions a second.
 * digest.ptx is made by scripts/make-ptx; tests/t/kernels_ptx.t compares.
 */
#include "digest.cuh"

#define WARPS 4

extern "C" __global__ void __launch_bounds__(WARPS *WARP)
	rs_digest(const unsigned char *data, unsigned long long bytes, unsigned long long *out)
{
	__shared__ u64 word[2][WARPS]; /* in turns: one barrier is enough */
	unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, turn = 0;
	u64 count = (bytes + CHUNK - 1) / CHUNK;

	for (u64 first = (u64)blockIdx.x * WARPS; first < count; first += (u64)gridDim.x * WARPS) {
		u64 chunk = first + warp;

		if (chunk < count) {
			u64 left = bytes - chunk * CHUNK;
			u64 sum = digest_chunk(data + chunk * CHUNK,
					       left < CHUNK ? (unsigned)left : CHUNK, lane);

			if (!lane)
				word[turn][warp] = sum;
		}
		__syncthreads();
		if (threadIdx.x < WARPS && first + threadIdx.x < count)
			out[first + threadIdx.x] = word[turn][threadIdx.x];
		turn ^= 1;
	}
}
