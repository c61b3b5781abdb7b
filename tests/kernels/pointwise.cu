/* SPDX-License-Identifier: MIT */
/* Elementwise kernels: activations and their gradients, optimisers, transcendental functions, casts. */

extern "C" __global__ void bias_relu(int n, int c, const float *x, const float *bias, float *y)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		y[i] = fmaxf(x[i] + bias[i % c], 0.0f);
}

/* dx, and db by a loop over rows in one thread a column: a fixed order. */
extern "C" __global__ void bias_relu_back(int rows, int c, const float *y, const float *dy,
					  float *dx, float *db)
{
	int j = blockIdx.x * blockDim.x + threadIdx.x;
	float sum = 0;

	if (j >= c)
		return;
	for (int r = 0; r < rows; r++) {
		float g = y[r * c + j] > 0 ? dy[r * c + j] : 0;

		dx[r * c + j] = g;
		sum += g;
	}
	db[j] = sum;
}

extern "C" __global__ void sgd(int n, float lr, float momentum, float decay, float *w, float *v,
			       const float *g)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	v[i] = fmaf(momentum, v[i], fmaf(decay, w[i], g[i]));
	w[i] = fmaf(-lr, v[i], w[i]);
}

extern "C" __global__ void adam(int n, float lr, float b1, float b2, float eps, float c1, float c2,
				float *w, float *m, float *v, const float *g)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	m[i] = fmaf(b1, m[i] - g[i], g[i]);
	v[i] = fmaf(b2, v[i] - __fmul_rn(g[i], g[i]), __fmul_rn(g[i], g[i]));
	w[i] -= __fmul_rn(lr, (m[i] / c1) / (sqrtf(v[i] / c2) + eps));
}

/* Four elements a thread by 16-byte vectors. */
extern "C" __global__ void axpy4(int n4, float a, const float4 *x, float4 *y)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n4) {
		float4 u = x[i], v = y[i];

		y[i] = make_float4(fmaf(a, u.x, v.x), fmaf(a, u.y, v.y), fmaf(a, u.z, v.z),
				   fmaf(a, u.w, v.w));
	}
}

/* out is 8 rows of n. */
extern "C" __global__ void functions(int n, const float *x, float *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	out[0 * n + i] = expf(x[i]);
	out[1 * n + i] = logf(fabsf(x[i]));
	out[2 * n + i] = sinf(x[i]);
	out[3 * n + i] = cosf(x[i]);
	out[4 * n + i] = tanhf(x[i]);
	out[5 * n + i] = powf(fabsf(x[i]), 1.5f);
	out[6 * n + i] = rsqrtf(fabsf(x[i]));
	out[7 * n + i] = erff(x[i]);
}

/* What IEEE and C fix to the bit: out is 8 rows of n. */
extern "C" __global__ void exact(int n, const float *x, const float *y, float *out, int *ints)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	out[0 * n + i] = x[i] / y[i];
	out[1 * n + i] = sqrtf(fabsf(x[i]));
	out[2 * n + i] = floorf(x[i]);
	out[3 * n + i] = rintf(x[i]);
	out[4 * n + i] = fminf(x[i], y[i]);
	out[5 * n + i] = copysignf(x[i], y[i]);
	out[6 * n + i] = __saturatef(x[i]);
	out[7 * n + i] = (float)((double)x[i] * (double)y[i]);
	ints[0 * n + i] = (int)x[i];
	ints[1 * n + i] = __float2int_rn(x[i]);
	ints[2 * n + i] = x[i] < y[i] ? -1 : x[i] > y[i] ? 1 : x[i] == y[i] ? 0 : 2;
}
