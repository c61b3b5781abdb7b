/* SPDX-License-Identifier: MIT */
/* Integer arithmetic: wide products, division, bit counting and permutation. out is rows of n. */
typedef unsigned u32;
typedef unsigned long long u64;

extern "C" __global__ void words(int n, const u32 *a, const u32 *b, u32 *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	out[0 * n + i] = __umulhi(a[i], b[i]);
	out[1 * n + i] = (u32)__mulhi((int)a[i], (int)b[i]);
	out[2 * n + i] = a[i] / (b[i] | 1);
	out[3 * n + i] = a[i] % (b[i] | 1);
	out[4 * n + i] = (u32)((int)a[i] / ((int)b[i] | 1));
	out[5 * n + i] = (u32)((int)a[i] % ((int)b[i] | 1));
	out[6 * n + i] = __popc(a[i]) | __clz(a[i]) << 8 | __ffs(a[i]) << 16;
	out[7 * n + i] = __brev(a[i]);
	out[8 * n + i] = __byte_perm(a[i], b[i], 0x5274);
	out[9 * n + i] = __funnelshift_l(a[i], b[i], b[i] & 31);
	out[10 * n + i] = (u32)min((int)a[i], (int)b[i]);
	out[11 * n + i] = max(a[i], b[i]);
	out[12 * n + i] = (u32)((int)a[i] >> (b[i] & 31)) ^ a[i] >> (b[i] & 31);
	out[13 * n + i] = (u32)abs((int)a[i]);
	out[14 * n + i] =
		(u32)(short)a[i] * (u32)(unsigned char)b[i] + (u32)(signed char)(a[i] >> 8);
	out[15 * n + i] = (a[i] >> (b[i] & 7) & 0xfff) << 4 | (b[i] & 0xf000000f);
}

extern "C" __global__ void longs(int n, const u64 *a, const u64 *b, u64 *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	out[0 * n + i] = a[i] * b[i];
	out[1 * n + i] = __umul64hi(a[i], b[i]);
	out[2 * n + i] = a[i] / (b[i] | 1);
	out[3 * n + i] = a[i] % (b[i] | 1);
	out[4 * n + i] = (u64)((long long)a[i] / ((long long)b[i] | 1));
	out[5 * n + i] = __popcll(a[i]) | __clzll(a[i]) << 8;
	out[6 * n + i] = __brevll(a[i]);
	out[7 * n + i] = (u64)((long long)a[i] >> (b[i] & 63));
}
