/* SPDX-License-Identifier: MIT */
/*
 * Kernels of tests/clients/sparse.c: integer arithmetic in which every word of the result depends on what was read.
 * `work` stands for the arithmetic of a real layer: it takes time and does nothing.
 */
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

/* New rows from the ones that were read and the segment's input. */
extern "C" __global__ void mix(unsigned *to, const unsigned *rows, const unsigned *x, unsigned nx,
			       unsigned n)
{
	unsigned i = INDEX;

	if (i < n)
		to[i] = rows[i] * 5 + x[i % nx];
}

/* The same in place, for the rows that an array names, with a copy of the new ones. */
extern "C" __global__ void update(unsigned *bank, const unsigned *row, unsigned words,
				  const unsigned *x, unsigned nx, unsigned *to, unsigned n)
{
	unsigned i = INDEX, at;

	if (i >= n)
		return;
	at = row[i / words] * words + i % words;
	to[i] = bank[at] = bank[at] * 5 + x[i % nx];
}

/* The segment's output, from its input, what it read of the bank, and its new rows. */
extern "C" __global__ void produce(unsigned *y, const unsigned *x, const unsigned *seen,
				   unsigned nseen, const unsigned *fresh, unsigned nfresh,
				   unsigned n)
{
	unsigned i = INDEX;

	if (i < n)
		y[i] = x[i] * 3 + seen[i * 2654435761u % nseen] + fresh[i % nfresh];
}

/* What is handed on to the segment before, in place, and the gradient by the segment's parameters. */
extern "C" __global__ void back(unsigned *flow, unsigned *gradient, const unsigned *x,
				const unsigned *seen, unsigned nseen, const unsigned *fresh,
				unsigned nfresh, unsigned n)
{
	unsigned i = INDEX;

	if (i < n)
		gradient[i] = flow[i] =
			flow[i] * 7 + x[i] + seen[i * 2654435761u % nseen] + fresh[i % nfresh];
}

extern "C" __global__ void descend(unsigned *parameter, const unsigned *gradient, unsigned n)
{
	unsigned i = INDEX;

	if (i < n)
		parameter[i] = parameter[i] * 3 + gradient[i];
}

/* One instruction sleeps a millisecond at most. */
extern "C" __global__ void work(unsigned ns)
{
	for (; ns > 1000000; ns -= 1000000)
		__nanosleep(1000000);
	__nanosleep(ns);
}
