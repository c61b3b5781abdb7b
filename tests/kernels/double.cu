/* SPDX-License-Identifier: MIT */
/* Double precision: what IEEE fixes, and conversions. out is rows of n. */

extern "C" __global__ void doubles(int n, const double *x, const double *y, double *out,
				   long long *ints)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	out[0 * n + i] = x[i] / y[i];
	out[1 * n + i] = sqrt(fabs(x[i]));
	out[2 * n + i] = fma(x[i], y[i], x[i]);
	out[3 * n + i] = __dadd_rn(__dmul_rn(x[i], y[i]), x[i]);
	out[4 * n + i] = floor(x[i]);
	out[5 * n + i] = fmax(x[i], y[i]);
	out[6 * n + i] = (double)(float)x[i];
	out[7 * n + i] = (double)(long long)x[i];
	ints[i] = __double2ll_rn(x[i]);
}
