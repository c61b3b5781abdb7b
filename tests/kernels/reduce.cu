/* SPDX-License-Identifier: MIT */
/* Reductions: a tree in shared memory, the last block finishing the sum, votes and counts. */

extern "C" __global__ void block_sum(int n, const float *x, float *out)
{
	extern __shared__ float part[];
	float sum = 0;

	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		sum += x[i];
	part[threadIdx.x] = sum;
	__syncthreads();
	for (int d = blockDim.x / 2; d; d /= 2) {
		if (threadIdx.x < d)
			part[threadIdx.x] += part[threadIdx.x + d];
		__syncthreads();
	}
	if (!threadIdx.x)
		out[blockIdx.x] = part[0];
}

/* Integers, so that the order of the blocks does not matter. ticket starts and ends at 0. */
extern "C" __global__ void grid_sum(int n, const unsigned *x, unsigned long long *part,
				    unsigned *ticket, unsigned long long *out)
{
	__shared__ unsigned long long sum;
	__shared__ bool last;

	if (!threadIdx.x)
		sum = 0;
	__syncthreads();
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		atomicAdd(&sum, (unsigned long long)x[i]);
	__syncthreads();
	if (!threadIdx.x) {
		part[blockIdx.x] = sum;
		__threadfence();
		last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
	}
	__syncthreads();
	if (last && !threadIdx.x) {
		unsigned long long total = 0;

		for (unsigned i = 0; i < gridDim.x; i++)
			total += ((volatile unsigned long long *)part)[i];
		*out = total;
	}
}

/* Keeps the elements that are odd, in order within a warp: ballot and a prefix count. out is 32 words a warp. */
extern "C" __global__ void compact(const unsigned *x, unsigned *out, unsigned *counts,
				   unsigned *flags)
{
	unsigned lane = threadIdx.x % 32, i = blockIdx.x * blockDim.x + threadIdx.x, warp = i / 32,
		 v = x[i];
	unsigned odd = __ballot_sync(0xffffffffu, v & 1);

	if (v & 1)
		out[warp * 32 + __popc(odd & ((1u << lane) - 1))] = v;
	if (!lane)
		counts[warp] = __popc(odd);
	v = __any_sync(0xffffffffu, v > 1000) | __all_sync(0xffffffffu, v > 10) << 1;
	v |= __syncthreads_or(x[i] == 77) ? 4 : 0;
	v |= __syncthreads_count(x[i] % 3 == 0) << 8;
	if (!lane)
		flags[warp] = v;
}

/* Inclusive scan of a warp's words by shuffles up, and a broadcast of the last. */
extern "C" __global__ void warp_scan(const int *x, int *scan, int *total)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, v = x[i];

	for (int d = 1; d < 32; d *= 2) {
		int up = __shfl_up_sync(0xffffffffu, v, d);

		if (lane >= d)
			v += up;
	}
	scan[i] = v;
	total[i] = __shfl_sync(0xffffffffu, v, 31);
}
