/* SPDX-License-Identifier: MIT */
/* Random numbers by cuRAND's device functions: Philox 4x32-10 and XORWOW. */
#include <curand_kernel.h>

/* `each` raw words a thread, of its own subsequence from `offset`. */
extern "C" __global__ void philox_raw(unsigned long long seed, unsigned long long offset, int each,
				      unsigned *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	curandStatePhilox4_32_10_t s;

	curand_init(seed, i, offset, &s);
	for (int k = 0; k < each; k++)
		out[i * each + k] = curand(&s);
}

/* Dropout as frameworks do it: four elements a thread, seed and offset as arguments. */
extern "C" __global__ void philox_dropout(int n, float keep, unsigned long long seed,
					  unsigned long long offset, const float *x, float *y,
					  unsigned char *mask)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	curandStatePhilox4_32_10_t s;
	float4 r;

	curand_init(seed, i, offset, &s);
	r = curand_uniform4(&s);
	for (int k = 0; k < 4; k++) {
		int at = i * 4 + k;
		float u = k == 0 ? r.x : k == 1 ? r.y : k == 2 ? r.z : r.w;

		if (at < n) {
			mask[at] = u <= keep;
			y[at] = u <= keep ? x[at] / keep : 0.0f;
		}
	}
}

extern "C" __global__ void philox_normal(unsigned long long seed, float *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	curandStatePhilox4_32_10_t s;
	float4 r;

	curand_init(seed, i, 0, &s);
	r = curand_normal4(&s);
	((float4 *)out)[i] = r;
}

/* States that live in device memory across launches. */
extern "C" __global__ void xorwow_init(unsigned long long seed, unsigned long long offset,
				       curandState *state)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	curand_init(seed, i, offset, &state[i]);
}

extern "C" __global__ void xorwow_draw(curandState *state, int each, unsigned *out, float *uniform)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	curandState s = state[i];

	for (int k = 0; k < each; k++)
		out[i * each + k] = curand(&s);
	uniform[i] = curand_uniform(&s);
	state[i] = s;
}
