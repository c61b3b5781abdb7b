/* SPDX-License-Identifier: MIT */
/* Atomics, and the tool's own digest kernel, on the device against scalar C. */
#include "tests/clients/kernels.h"

#include "tracker/digest.h"

static void test_histogram(void)
{
	enum { N = 20001 };
	static unsigned char x[N];
	unsigned got[256] = {0}, want[256] = {0};
	int n = N, i;
	CUdeviceptr dx, dbins = k_in(got, sizeof(got));

	for (i = 0; i < N; i++)
		want[x[i] = (unsigned char)(k_random() >> 56 & k_random())]++;
	dx = k_in(x, sizeof(x));
	K_RUN("histogram", 5, 1, 256, 1, 0, &n, &dx, &dbins);
	k_get(got, dbins, sizeof(got));
	k_same_bits(got, want, 256, 4, "histogram");
}

static void test_slots(void)
{
	enum { N = 777 };
	static const char *const name[] = {"add", "max s32", "min s32",	   "or",
					   "and", "xor",     "inc, wraps", "dec, wraps"};
	int x[N], slot[8] = {0, INT32_MIN, INT32_MAX, 0, -1, 0, 0, 0}, got[8], n = N, i;
	float fsum = 0, gf;
	double dsum = 0, csum = 0, gd;
	unsigned long long usum = 0, gu;
	CUdeviceptr dx, ds = k_in(slot, sizeof(slot)), df = k_in(&fsum, 4), dd = k_in(&dsum, 8);
	CUdeviceptr dc = k_in(&csum, 8), du = k_in(&usum, 8);

	for (i = 0; i < N; i++) {
		x[i] = (int)k_random() >> 12;
		slot[0] += x[i];
		slot[1] = x[i] > slot[1] ? x[i] : slot[1];
		slot[2] = x[i] < slot[2] ? x[i] : slot[2];
		slot[3] |= (int)(1u << (x[i] & 31));
		slot[4] &= (int)~(1u << (x[i] & 15));
		slot[5] ^= x[i];
		slot[6] = slot[6] >= 99 ? 0 : slot[6] + 1;
		slot[7] = slot[7] == 0 || (unsigned)slot[7] > 99 ? 99 : slot[7] - 1;
		fsum += (float)(x[i] % 64);
		dsum += x[i];
		csum += x[i] * 0.5;
		usum += (unsigned long long)x[i] << 20;
	}
	dx = k_in(x, sizeof(x));
	K_RUN("atomics", 7, 1, 128, 1, 0, &n, &dx, &ds, &df, &dd, &dc, &du);
	k_get(got, ds, sizeof(got));
	k_get(&gf, df, 4);
	k_get(&gd, dd, 8);
	for (i = 0; i < 8; i++)
		k_same_bits(&got[i], &slot[i], 1, 4, name[i]);
	k_same_f32(&gf, &fsum, 1, "add f32");
	k_same_f64(&gd, &dsum, 1, "add f64");
	k_get(&gd, dc, 8);
	k_same_f64(&gd, &csum, 1, "add f64 by compare and swap");
	k_get(&gu, du, 8);
	is_u64(gu, usum, "add u64");
}

/* What the hardware may do in any order: every thread counts exactly once. */
static void test_order(void)
{
	enum { N = 500 };
	int head = -1, next[N], ticket[N], counter = 0, n = N, i, k, bad = 0;
	char seen[N] = {0};
	CUdeviceptr dhead = k_in(&head, 4), dnext = k_out(sizeof(next)), dc = k_in(&counter, 4);
	CUdeviceptr dt = k_out(sizeof(ticket));

	K_RUN("push_all", 4, 1, 128, 1, 0, &n, &dhead, &dnext);
	k_get(&head, dhead, 4);
	k_get(next, dnext, sizeof(next));
	for (i = head, k = 0; i >= 0 && i < N && k < N && !seen[i]; i = next[i], k++)
		seen[i] = 1;
	ok(k == N && i == -1, "exch links all %d elements", N);

	memset(seen, 0, sizeof(seen));
	K_RUN("tickets", 4, 1, 128, 1, 0, &n, &dc, &dt);
	k_get(ticket, dt, sizeof(ticket));
	for (i = 0; i < N; i++)
		bad += ticket[i] < 0 || ticket[i] >= N || seen[ticket[i]]++;
	is_u64(bad, 0, "add returns every old value once");
}

/* digest.h, written out once more. */
static uint64_t digest(const unsigned char *p, uint64_t bytes)
{
	uint64_t sum = rs_digest_mix(bytes), i;

	for (i = 0; i < (bytes + 7) / 8; i++) {
		uint64_t w = 0, k;

		for (k = 0; k < 8 && i * 8 + k < bytes; k++)
			w |= (uint64_t)p[i * 8 + k] << 8 * k;
		sum += rs_digest_mix(w + (i + 1) * RS_DIGEST_K);
	}
	return sum;
}

static void test_digest(void)
{
	enum { SIZE = 3 * 4096 + 64, CHUNKS = 4 };
	static const unsigned length[] = {1,	7,    8,    9,	  255,		4095,
					  4096, 4097, 4104, 8192, 3 * 4096 + 13};
	static unsigned char x[SIZE];
	unsigned i, k, shift, grid, bad = 0, runs = 0;

	for (i = 0; i < SIZE; i++)
		x[i] = (unsigned char)k_random();
	for (k = 0; k < sizeof(length) / sizeof(length[0]); k++) {
		for (shift = 0; shift < 17; shift += shift < 4 ? 1 : 4) {
			uint64_t got[CHUNKS], bytes = length[k], n = (bytes + 4095) / 4096;
			/* The allocation ends with the data: a load beyond it is a fault. */
			CUdeviceptr dx = k_in(x, shift + bytes), at = dx + shift;
			CUdeviceptr dout = k_out(8 * n);

			grid = 1 + (k + shift) % 2;
			K_RUN("rs_digest", grid, 1, 128, 1, 0, &at, &bytes, &dout);
			k_get(got, dout, 8 * n);
			for (i = 0; i < n; i++) {
				uint64_t left = bytes - i * 4096;

				bad += got[i] !=
				       digest(x + shift + i * 4096, left < 4096 ? left : 4096);
			}
			runs++;
			MUST(cuMemFree(dx));
			MUST(cuMemFree(dout));
		}
	}
	ok(!bad, "digests of %u lengths and alignments", runs);
}

/* More chunks than warps: each warp takes several. */
static void test_digest_stride(void)
{
	enum { CHUNKS = 37 };
	static unsigned char x[CHUNKS * 4096];
	uint64_t got[CHUNKS], want[CHUNKS], bytes = sizeof(x);
	int i;
	CUdeviceptr dx, dout = k_out(sizeof(got));

	for (i = 0; i < (int)sizeof(x); i++)
		x[i] = (unsigned char)((unsigned)i * (unsigned)i >> 5);
	for (i = 0; i < CHUNKS; i++)
		want[i] = digest(x + i * 4096, 4096);
	dx = k_in(x, sizeof(x));
	K_RUN("rs_digest", 3, 1, 128, 1, 0, &dx, &bytes, &dout);
	k_get(got, dout, sizeof(got));
	k_same_bits(got, want, CHUNKS, 8, "digest of many chunks by few warps");
	x[5 * 4096 + 77] ^= 1;
	MUST(cuMemcpyHtoD(dx, x, sizeof(x)));
	K_RUN("rs_digest", 3, 1, 128, 1, 0, &dx, &bytes, &dout);
	k_get(got, dout, sizeof(got));
	ok(got[5] != want[5], "one bit changes its chunk's digest");
	got[5] = want[5];
	k_same_bits(got, want, CHUNKS, 8, "and no other");
}

int main(int argc, char **argv)
{
	k_begin(argc, argv);
	k_load("atomics");
	test_histogram();
	test_slots();
	test_order();
	k_load("shim/kernels/digest");
	test_digest();
	test_digest_stride();
	return tap_done();
}
