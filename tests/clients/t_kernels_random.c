/* SPDX-License-Identifier: MIT */
/*
 * cuRAND's device generators against our own scalar code, word for word.
 *
 * Philox 4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
 * XORWOW: Marsaglia, "Xorshift RNGs" (2003); subsequences are 2^67 steps apart, reached here by
 * squaring the step's 160 x 160 matrix over GF(2).
 */
#include "tests/clients/kernels.h"

/* --- Philox --------------------------------------------------------------------------------- */

static void philox_block(uint64_t seed, uint64_t subsequence, uint64_t block, uint32_t out[4])
{
	uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
	uint32_t c[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)subsequence,
			 (uint32_t)(subsequence >> 32)};
	int round;

	for (round = 0; round < 10; round++) {
		uint64_t p0 = 0xd2511f53ull * c[0], p1 = 0xcd9e8d57ull * c[2];
		uint32_t next[4] = {(uint32_t)(p1 >> 32) ^ c[1] ^ key[0], (uint32_t)p1,
				    (uint32_t)(p0 >> 32) ^ c[3] ^ key[1], (uint32_t)p0};

		memcpy(c, next, sizeof(c));
		key[0] += 0x9e3779b9;
		key[1] += 0xbb67ae85;
	}
	memcpy(out, c, sizeof(c));
}

static uint32_t philox_word(uint64_t seed, uint64_t subsequence, uint64_t n)
{
	uint32_t out[4];

	philox_block(seed, subsequence, n / 4, out);
	return out[n % 4];
}

static float uniform(uint32_t x)
{
	return fmaf((float)x, 0x1p-32f, 0x1p-33f);
}

static void test_philox_reference(void)
{
	/* From the authors' known-answer tests (Random123, kat_vectors): all-ones key and counter. */
	static const uint32_t want[4] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
	uint32_t got[4];

	philox_block(~0ull, ~0ull, ~0ull, got);
	k_same_bits(got, want, 4, 4, "our Philox against the published vector");
}

static void test_philox_raw(uint64_t seed, uint64_t offset)
{
	enum { THREADS = 96, EACH = 13, N = THREADS * EACH };
	static uint32_t got[N], want[N];
	int each = EACH, i;
	CUdeviceptr dout = k_out(sizeof(got));

	K_RUN("philox_raw", 3, 1, 32, 1, 0, &seed, &offset, &each, &dout);
	k_get(got, dout, sizeof(got));
	for (i = 0; i < N; i++)
		want[i] = philox_word(seed, i / EACH, offset + i % EACH);
	k_same_bits(got, want, N, 4, "philox_raw");
}

static void test_philox_dropout(void)
{
	enum { N = 1001 };
	float *x = k_floats(N, 2), got[N], want[N], keep = 0.7f;
	unsigned char mask[N], wmask[N];
	uint64_t seed = 20241129, offset = 12;
	int n = N, i, kept = 0;
	CUdeviceptr dx = k_in(x, 4 * N), dy = k_out(4 * N), dm = k_out(N);

	K_RUN("philox_dropout", 4, 1, 64, 1, 0, &n, &keep, &seed, &offset, &dx, &dy, &dm);
	k_get(got, dy, sizeof(got));
	k_get(mask, dm, sizeof(mask));
	for (i = 0; i < N; i++) {
		wmask[i] = uniform(philox_word(seed, i / 4, offset + i % 4)) <= keep;
		want[i] = wmask[i] ? x[i] / keep : 0;
		kept += wmask[i];
	}
	k_same_bits(mask, wmask, N, 1, "philox_dropout, mask");
	k_same_f32(got, want, N, "philox_dropout");
	ok(kept > 0.65 * N && kept < 0.75 * N, "%d of %d kept", kept, N);
	free(x);
}

static void test_philox_normal(void)
{
	enum { THREADS = 64, N = THREADS * 4 };
	static float got[N];
	static double want[N];
	uint64_t seed = 7;
	int i;
	CUdeviceptr dout = k_out(sizeof(got));

	K_RUN("philox_normal", 2, 1, 32, 1, 0, &seed, &dout);
	k_get(got, dout, sizeof(got));
	for (i = 0; i < N; i += 2) {
		/* Box and Muller's pair from neighbouring words. */
		double u = uniform(philox_word(seed, i / 4, i % 4));
		double v =
			philox_word(seed, i / 4, i % 4 + 1) * 0x1p-32 * 2 * M_PI + 0x1p-32 * M_PI;

		want[i] = sqrt(-2 * log(u)) * sin(v);
		want[i + 1] = sqrt(-2 * log(u)) * cos(v);
	}
	k_near_f32(got, want, N, 2e-6, 4e-6, "philox_normal");
}

/* --- XORWOW --------------------------------------------------------------------------------- */

struct xorwow {
	uint32_t v[5], d;
};

static void xorwow_shift(uint32_t v[5])
{
	uint32_t t = v[0] ^ v[0] >> 2;

	memmove(v, v + 1, 4 * sizeof(*v));
	v[4] = (v[4] ^ v[4] << 4) ^ (t ^ t << 1);
}

static uint32_t xorwow_next(struct xorwow *s)
{
	xorwow_shift(s->v);
	s->d += 362437;
	return s->v[4] + s->d;
}

/* Row i: where bit i of the state goes. */
struct matrix {
	uint32_t row[160][5];
};

static void matrix_apply(const struct matrix *m, uint32_t v[5])
{
	uint32_t out[5] = {0};
	int i, k;

	for (i = 0; i < 160; i++)
		if (v[i / 32] >> i % 32 & 1)
			for (k = 0; k < 5; k++)
				out[k] ^= m->row[i][k];
	memcpy(v, out, sizeof(out));
}

/* The map of 2^67 steps. d advances by 362437 * 2^67 = 0 (mod 2^32). */
static const struct matrix *xorwow_jump(void)
{
	static struct matrix m, square;
	int i, k;

	for (i = 0; i < 160; i++) {
		memset(m.row[i], 0, sizeof(m.row[i]));
		m.row[i][i / 32] = 1u << i % 32;
		xorwow_shift(m.row[i]);
	}
	for (k = 0; k < 67; k++) {
		square = m;
		for (i = 0; i < 160; i++)
			matrix_apply(&m, square.row[i]);
		m = square;
	}
	return &m;
}

static struct xorwow xorwow_seed(uint64_t seed)
{
	uint32_t s0 = (uint32_t)seed ^ 0xaad26b49, s1 = (uint32_t)(seed >> 32) ^ 0xf7dcefdd;
	uint32_t t0 = 1099087573u * s0, t1 = 2591861531u * s1;
	struct xorwow s = {
		{123456789u + t0, 362436069u ^ t0, 521288629u + t1, 88675123u ^ t1, 5783321u + t0},
		6615241u + t1 + t0};

	return s;
}

static void test_xorwow(uint64_t seed, uint64_t offset)
{
	enum { THREADS = 48, EACH = 9, N = THREADS * EACH, STATE = 48 };
	static uint32_t got[N], want[2][N];
	float uni[THREADS], wuni[2][THREADS];
	const struct matrix *jump = xorwow_jump();
	struct xorwow s, base = xorwow_seed(seed);
	int each = EACH, i, k, round;
	CUdeviceptr ds = k_out(THREADS * STATE), dout = k_out(sizeof(got)), du = k_out(sizeof(uni));

	for (i = 0; i < THREADS; i++) {
		uint64_t j;

		s = base;
		for (j = 0; j < offset; j++)
			xorwow_next(&s);
		for (round = 0; round < 2; round++) {
			for (k = 0; k < EACH; k++)
				want[round][i * EACH + k] = xorwow_next(&s);
			wuni[round][i] = uniform(xorwow_next(&s));
		}
		matrix_apply(jump, base.v);
	}
	K_RUN("xorwow_init", 3, 1, 16, 1, 0, &seed, &offset, &ds);
	for (round = 0; round < 2; round++) {
		K_RUN("xorwow_draw", 3, 1, 16, 1, 0, &ds, &each, &dout, &du);
		k_get(got, dout, sizeof(got));
		k_get(uni, du, sizeof(uni));
		k_same_bits(got, want[round], N, 4,
			    round ? "xorwow, going on from the state in memory" : "xorwow");
		k_same_f32(uni, wuni[round], THREADS, "xorwow, uniform");
	}
}

int main(int argc, char **argv)
{
	k_begin(argc, argv);
	k_load("random");
	test_philox_reference();
	test_philox_raw(0, 0);
	test_philox_raw(0x123456789abcdef0, 5);
	test_philox_raw(42, 0x3fffffffeull); /* across a carry into the counter's second word */
	test_philox_dropout();
	test_philox_normal();
	test_xorwow(1234, 0);
	test_xorwow(0xfeedfacecafebeef, 100003);
	return tap_done();
}
