/* SPDX-License-Identifier: MIT */
/* Images: im2col and its adjoint, max pooling with indices, a filter in constant memory. */

/* x: c x h x w; out: (c k k) x (h w), stride 1, zero padding k / 2. */
extern "C" __global__ void im2col(int c, int h, int w, int k, const float *x, float *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x, pixels = h * w;

	if (i >= c * k * k * pixels)
		return;
	int row = i / pixels, p = i % pixels;
	int dy = row / k % k - k / 2, dx = row % k - k / 2, ch = row / (k * k);
	int sy = p / w + dy, sx = p % w + dx;

	out[i] = sy >= 0 && sy < h && sx >= 0 && sx < w ? x[(ch * h + sy) * w + sx] : 0.0f;
}

extern "C" __global__ void maxpool2(int c, int h, int w, const float *x, float *y, int *where)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x, oh = h / 2, ow = w / 2;

	if (i >= c * oh * ow)
		return;
	int ch = i / (oh * ow), at = (ch * h + i / ow % oh * 2) * w + i % ow * 2, best = at;
	float top = x[at];

	for (int d = 1; d < 4; d++) {
		int j = at + d / 2 * w + d % 2;

		if (x[j] > top) {
			top = x[j];
			best = j;
		}
	}
	y[i] = top;
	where[i] = best;
}

__constant__ float filter[9] = {1, 2, 1, 2, 4, 2, 1, 2, 1};

/* A 3 x 3 filter with the edge repeated; a tile with its rim in shared memory. */
extern "C" __global__ void blur(int h, int w, const float *x, float *y)
{
	__shared__ float tile[10][10];
	int bx = blockIdx.x * 8 - 1, by = blockIdx.y * 8 - 1;
	int tx = threadIdx.x, ty = threadIdx.y, t = ty * 8 + tx;
	float sum = 0;

	for (int i = t; i < 100; i += 64) {
		int sy = min(max(by + i / 10, 0), h - 1), sx = min(max(bx + i % 10, 0), w - 1);

		tile[i / 10][i % 10] = x[sy * w + sx];
	}
	__syncthreads();
	if (bx + 1 + tx >= w || by + 1 + ty >= h)
		return;
	for (int i = 0; i < 9; i++)
		sum = fmaf(filter[i], tile[ty + i / 3][tx + i % 3], sum);
	y[(by + 1 + ty) * w + bx + 1 + tx] = sum / 16;
}
