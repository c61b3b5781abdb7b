/* SPDX-License-Identifier: MIT */
/* Matrix products: tiles in static and in dynamic shared memory, and in double precision. */
#define TILE 16

extern "C" __global__ void sgemm(int n, int m, int k, const float *a, const float *b, float *c)
{
	__shared__ float ta[TILE][TILE], tb[TILE][TILE];
	int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
	float sum = 0;

	for (int t = 0; t < k; t += TILE) {
		int ka = t + threadIdx.x, kb = t + threadIdx.y;

		ta[threadIdx.y][threadIdx.x] = row < n && ka < k ? a[row * k + ka] : 0;
		tb[threadIdx.y][threadIdx.x] = kb < k && col < m ? b[kb * m + col] : 0;
		__syncthreads();
#pragma unroll
		for (int i = 0; i < TILE; i++)
			sum = fmaf(ta[threadIdx.y][i], tb[i][threadIdx.x], sum);
		__syncthreads();
	}
	if (row < n && col < m)
		c[row * m + col] = sum;
}

/* y = a x: x in dynamic shared memory, one row a warp, summed by shuffles. */
extern "C" __global__ void sgemv(int n, int k, const float *a, const float *x, float *y)
{
	extern __shared__ float sx[];
	int lane = threadIdx.x % 32, row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
	float sum = 0;

	for (int i = threadIdx.x; i < k; i += blockDim.x)
		sx[i] = x[i];
	__syncthreads();
	if (row >= n)
		return;
	for (int i = lane; i < k; i += 32)
		sum = fmaf(a[row * k + i], sx[i], sum);
	for (int d = 16; d; d /= 2)
		sum += __shfl_down_sync(0xffffffffu, sum, d);
	if (!lane)
		y[row] = sum;
}

extern "C" __global__ void dgemm(int n, int m, int k, const double *a, const double *b, double *c)
{
	int row = blockIdx.y * blockDim.y + threadIdx.y,
	    col = blockIdx.x * blockDim.x + threadIdx.x;
	double sum = 0;

	if (row >= n || col >= m)
		return;
	for (int i = 0; i < k; i++)
		sum = fma(a[row * k + i], b[i * m + col], sum);
	c[row * m + col] = sum;
}
