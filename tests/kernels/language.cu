/* SPDX-License-Identifier: MIT */
/* What compilers make of the language: structs as arguments, calls, switch, locals, module variables. */

struct shape {
	int n;
	short stride;
	char kind;
	double scale;
	struct {
		const int *x;
		int *y;
	} at;
	unsigned char pad[5];
};

extern "C" __global__ void structs(struct shape s, int base)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < s.n)
		s.at.y[i] = base + (int)(s.at.x[i * s.stride] * s.scale) + s.kind + s.pad[i % 5];
}

struct pair {
	int sum;
	float mean;
};

/* Not static: the name of an internal function carries a hash of the path that nvcc was called with. */
__device__ __noinline__ struct pair combine(int a, int b, float w)
{
	struct pair p;

	p.sum = a + b;
	p.mean = fmaf(w, (float)b, (float)a);
	return p;
}

__device__ __noinline__ int gcd(int a, int b)
{
	while (b) {
		int r = a % b;

		a = b;
		b = r;
	}
	return a;
}

__device__ __noinline__ int lcm(int a, int b)
{
	return a / gcd(a, b) * b;
}

extern "C" __global__ void calls(int n, const int *x, int *sum, float *mean, int *common)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	struct pair p = combine(x[i], i, 0.25f);

	sum[i] = p.sum;
	mean[i] = p.mean;
	common[i] = i ? lcm(i, 60) : gcd(x[i] | 1, 3);
}

extern "C" __global__ void switches(int n, const int *op, const int *a, const int *b, int *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x, r;

	if (i >= n)
		return;
	switch (op[i]) {
	case 0:
		r = a[i] + b[i];
		break;
	case 1:
		r = a[i] - b[i];
		break;
	case 2:
		r = a[i] * b[i];
		break;
	case 3:
		r = b[i] ? a[i] / b[i] : 0;
		break;
	case 4:
		r = b[i] ? a[i] % b[i] : 0;
		break;
	case 5:
		r = a[i] >> (b[i] & 31);
		break;
	case 6:
		r = (int)((unsigned)a[i] << (b[i] & 31));
		/* fall through */
	case 7:
		r = a[i] ^ b[i];
		break;
	default:
		r = -1;
	}
	out[i] = r;
}

/* An array indexed by data stays in local memory: insertion sort of 16 words a thread. */
extern "C" __global__ void sorts(int n, const int *x, int *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x, v[16];

	if (i >= n)
		return;
#pragma unroll 1
	for (int k = 0; k < 16; k++) {
		int key = x[i * 16 + k], j = k;

		for (; j && v[j - 1] > key; j--)
			v[j] = v[j - 1];
		v[j] = key;
	}
#pragma unroll 1
	for (int k = 0; k < 16; k++)
		out[i * 16 + k] = v[k];
}

__device__ unsigned counter = 5;
__device__ int history[64];
__constant__ int primes[8] = {2, 3, 5, 7, 11, 13, 17, 19};

/* Module variables: a counter that lives across launches, and a table read by a varying index. */
extern "C" __global__ void globals(int *out)
{
	int i = threadIdx.x;

	out[i] = primes[i % 8] * (int)counter + history[i];
	history[i] = out[i];
	__syncthreads();
	if (!i)
		counter += 2;
}

/* Loops of a length that differs by thread, left early from the inside: divergence and reconvergence. */
extern "C" __global__ void collatz(int n, unsigned *steps)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned long long v = i + 1;
	unsigned k = 0;

	if (i >= n)
		return;
	while (v != 1) {
		v = v & 1 ? 3 * v + 1 : v / 2;
		if (++k == 100)
			break;
	}
	steps[i] = k;
}
