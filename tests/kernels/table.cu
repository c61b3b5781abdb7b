/* SPDX-License-Identifier: MIT */
/* Rows by index: embedding and its gradient, a queue written at a cursor in device memory. */

extern "C" __global__ void gather(int rows, int width, const int *index, const float *table,
				  float *out)
{
	int row = blockIdx.x, col = threadIdx.x;

	if (row < rows && col < width)
		out[row * width + col] = table[index[row] * width + col];
}

/* Rows met several times add up; atomics, so only sums without rounding are reproducible. */
extern "C" __global__ void scatter_add(int rows, int width, const int *index, const float *grad,
				       float *table)
{
	int row = blockIdx.x, col = threadIdx.x;

	if (row < rows && col < width)
		atomicAdd(&table[index[row] * width + col], grad[row * width + col]);
}

/* Writes a batch at *cursor of a ring of `slots` rows, as contrastive training keeps its negatives. */
extern "C" __global__ void enqueue(int batch, int width, int slots, const float *x, float *queue,
				   const int *cursor)
{
	int row = blockIdx.x, col = threadIdx.x;

	if (row < batch && col < width)
		queue[(*cursor + row) % slots * width + col] = x[row * width + col];
}

extern "C" __global__ void advance(int batch, int slots, int *cursor)
{
	*cursor = (*cursor + batch) % slots;
}
