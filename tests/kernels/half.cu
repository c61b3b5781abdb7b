/* SPDX-License-Identifier: MIT */
/* Half precision: casts both ways, and arithmetic in half. */
#include <cuda_fp16.h>

extern "C" __global__ void to_half(int n, const float *x, __half *y)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		y[i] = __float2half_rn(x[i]);
}

extern "C" __global__ void to_float(int n, const __half *x, float *y)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		y[i] = __half2float(x[i]);
}

/* sum, product: rounded to half after each operation. */
extern "C" __global__ void half_math(int n, const __half *x, const __half *y, __half *sum,
				     __half *product)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	sum[i] = __hadd(x[i], y[i]);
	product[i] = __hmul(x[i], y[i]);
}
