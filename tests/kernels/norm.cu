/* SPDX-License-Identifier: MIT */
/* Rows normalised by warps: softmax and its cross entropy, layer norm; batch norm with running statistics. */

static __device__ __forceinline__ float warp_sum(float v)
{
	for (int d = 16; d; d /= 2)
		v += __shfl_xor_sync(0xffffffffu, v, d);
	return v;
}

static __device__ __forceinline__ float warp_max(float v)
{
	for (int d = 16; d; d /= 2)
		v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, d));
	return v;
}

/* One warp a row. */
extern "C" __global__ void softmax(int rows, int cols, const float *x, float *y)
{
	int lane = threadIdx.x % 32, row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
	float top = -INFINITY, sum = 0;

	if (row >= rows)
		return;
	for (int i = lane; i < cols; i += 32)
		top = fmaxf(top, x[row * cols + i]);
	top = warp_max(top);
	for (int i = lane; i < cols; i += 32)
		sum += expf(x[row * cols + i] - top);
	sum = warp_sum(sum);
	for (int i = lane; i < cols; i += 32)
		y[row * cols + i] = expf(x[row * cols + i] - top) / sum;
}

extern "C" __global__ void cross_entropy(int rows, int cols, const float *p, const int *label,
					 float *loss)
{
	int row = blockIdx.x * blockDim.x + threadIdx.x;

	if (row < rows)
		loss[row] = -logf(p[row * cols + label[row]]);
}

extern "C" __global__ void layernorm(int rows, int cols, float eps, const float *x,
				     const float *gain, const float *bias, float *y)
{
	int lane = threadIdx.x % 32, row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
	float mean = 0, var = 0, scale;

	if (row >= rows)
		return;
	x += row * cols;
	y += row * cols;
	for (int i = lane; i < cols; i += 32)
		mean += x[i];
	mean = warp_sum(mean) / cols;
	for (int i = lane; i < cols; i += 32)
		var = fmaf(x[i] - mean, x[i] - mean, var);
	var = warp_sum(var) / cols;
	scale = 1.0f / sqrtf(var + eps);
	for (int i = lane; i < cols; i += 32)
		y[i] = fmaf(__fmul_rn(x[i] - mean, scale), gain[i], bias[i]);
}

/* One block of 128 a channel over an n x c x hw tensor; updates the running statistics. */
extern "C" __global__ void batchnorm(int n, int c, int hw, float eps, float momentum,
				     const float *x, float *y, float *running_mean,
				     float *running_var)
{
	__shared__ float part[128], stat[2];
	int channel = blockIdx.x, count = n * hw;
	float acc = 0;

	for (int pass = 0; pass < 2; pass++) {
		acc = 0;
		for (int i = threadIdx.x; i < count; i += blockDim.x) {
			float v = x[(i / hw * c + channel) * hw + i % hw];

			acc += pass ? __fmul_rn(v - stat[0], v - stat[0]) : v;
		}
		part[threadIdx.x] = acc;
		__syncthreads();
		for (int d = 64; d; d /= 2) {
			if (threadIdx.x < d)
				part[threadIdx.x] += part[threadIdx.x + d];
			__syncthreads();
		}
		if (!threadIdx.x)
			stat[pass] = part[0] / count;
		__syncthreads();
	}
	if (!threadIdx.x) {
		float unbiased = stat[1] * count / (count - 1);

		running_mean[channel] =
			fmaf(momentum, stat[0] - running_mean[channel], running_mean[channel]);
		running_var[channel] =
			fmaf(momentum, unbiased - running_var[channel], running_var[channel]);
	}
	for (int i = threadIdx.x; i < count; i += blockDim.x) {
		int at = (i / hw * c + channel) * hw + i % hw;

		y[at] = (x[at] - stat[0]) * rsqrtf(stat[1] + eps);
	}
}
