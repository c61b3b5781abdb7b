/* SPDX-License-Identifier: MIT */
/*
 * rs_digest: the chunk digests of one range (digest.cuh), for any address and length.
 *
 * One warp a chunk of 4 KiB, 128 threads a block, any grid: chunks are taken in strides of all warps.
 * digest.ptx is made by scripts/make-ptx; tests/t/kernels_ptx.t compares.
 */
#include "digest.cuh"

extern "C" __global__ void __launch_bounds__(128)
	rs_digest(const unsigned char *data, unsigned long long bytes, unsigned long long *out)
{
	unsigned lane = threadIdx.x % WARP;
	u64 chunk = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / WARP;
	u64 stride = (u64)gridDim.x * blockDim.x / WARP;

	for (; chunk * CHUNK < bytes; chunk += stride) {
		u64 left = bytes - chunk * CHUNK;
		u64 sum = digest_chunk(data + chunk * CHUNK,
				       left < CHUNK ? (unsigned)left : CHUNK, lane);

		if (!lane)
			out[chunk] = sum;
	}
}
