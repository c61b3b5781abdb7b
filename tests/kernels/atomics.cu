/* SPDX-License-Identifier: MIT */
/* Atomics of every kind that training code uses, on global and shared memory. */

extern "C" __global__ void histogram(int n, const unsigned char *x, unsigned *bins)
{
	__shared__ unsigned local[256];

	local[threadIdx.x] = 0;
	__syncthreads();
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		atomicAdd(&local[x[i]], 1);
	__syncthreads();
	if (local[threadIdx.x])
		atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

static __device__ double cas_add(double *p, double v)
{
	unsigned long long *w = (unsigned long long *)p, old = *w, seen;

	do {
		seen = old;
		old = atomicCAS(w, seen, __double_as_longlong(__longlong_as_double(seen) + v));
	} while (old != seen);
	return __longlong_as_double(old);
}

/* Slots: 0 sum, 1 maximum, 2 minimum, 3 or, 4 and, 5 xor, 6 wrapping increment, 7 wrapping decrement. */
extern "C" __global__ void atomics(int n, const int *x, int *slot, float *fsum, double *dsum,
				   double *csum, unsigned long long *usum)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	atomicAdd(&slot[0], x[i]);
	atomicMax(&slot[1], x[i]);
	atomicMin(&slot[2], x[i]);
	atomicOr((unsigned *)&slot[3], 1u << (x[i] & 31));
	atomicAnd((unsigned *)&slot[4], ~(1u << (x[i] & 15)));
	atomicXor((unsigned *)&slot[5], (unsigned)x[i]);
	atomicInc((unsigned *)&slot[6], 99);
	atomicDec((unsigned *)&slot[7], 99);
	atomicAdd(fsum, (float)(x[i] % 64));
	atomicAdd(dsum, (double)x[i]);
	cas_add(csum, x[i] * 0.5);
	atomicAdd(usum, (unsigned long long)x[i] << 20);
}

/* A list by exchange: head is the last element written; next[] links all n. */
extern "C" __global__ void push_all(int n, int *head, int *next)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		next[i] = atomicExch(head, i);
}

/* The returned old values are a permutation of 0..n-1. */
extern "C" __global__ void tickets(int n, int *counter, int *ticket)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		ticket[i] = atomicAdd(counter, 1);
}
