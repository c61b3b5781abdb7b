/* SPDX-License-Identifier: MIT */
/* Products, normalisations and reductions on the device against scalar C. */
#include "tests/clients/kernels.h"

static void test_gemm(int n, int m, int k)
{
	float *a = k_floats((size_t)n * k, 2), *b = k_floats((size_t)k * m, 2);
	float *got = malloc(sizeof(*got) * n * m), *want = malloc(sizeof(*want) * n * m);
	CUdeviceptr da = k_in(a, 4ul * n * k), db = k_in(b, 4ul * k * m), dc = k_out(4ul * n * m);
	int i, j, t;

	K_RUN("sgemm", (m + 15) / 16, (n + 15) / 16, 16, 16, 0, &n, &m, &k, &da, &db, &dc);
	k_get(got, dc, 4ul * n * m);
	for (i = 0; i < n; i++)
		for (j = 0; j < m; j++) {
			float sum = 0;

			for (t = 0; t < (k + 15) / 16 * 16; t++)
				sum = t < k ? fmaf(a[i * k + t], b[t * m + j], sum)
					    : fmaf(0, 0, sum);
			want[i * m + j] = sum;
		}
	k_same_f32(got, want, (size_t)n * m, "sgemm");

	da = k_in(a, 4ul * n * k);
	db = k_in(b, 4ul * k);
	dc = k_out(4ul * n);
	K_RUN("sgemv", (n + 3) / 4, 1, 128, 1, 4 * k, &n, &k, &da, &db, &dc);
	k_get(got, dc, 4ul * n);
	for (i = 0; i < n; i++) {
		float lane[32] = {0};
		int d;

		for (t = 0; t < k; t++)
			lane[t % 32] = fmaf(a[i * k + t], b[t], lane[t % 32]);
		for (d = 16; d; d /= 2)
			for (j = 0; j < d; j++)
				lane[j] += lane[j + d];
		want[i] = lane[0];
	}
	k_same_f32(got, want, n, "sgemv");
	free(a);
	free(b);
	free(got);
	free(want);
}

static void test_dgemm(void)
{
	enum { N = 19, M = 23, K = 31 };
	static double a[N * K], b[K * M], got[N * M], want[N * M];
	int n = N, m = M, k = K, i, j, t;
	CUdeviceptr da, db, dc = k_out(sizeof(got));

	for (i = 0; i < N * K; i++)
		a[i] = k_float(1) + k_float(1e-9f);
	for (i = 0; i < K * M; i++)
		b[i] = k_float(1) + k_float(1e-9f);
	da = k_in(a, sizeof(a));
	db = k_in(b, sizeof(b));
	K_RUN("dgemm", 2, 3, 16, 8, 0, &n, &m, &k, &da, &db, &dc);
	k_get(got, dc, sizeof(got));
	for (i = 0; i < N; i++)
		for (j = 0; j < M; j++) {
			double sum = 0;

			for (t = 0; t < K; t++)
				sum = fma(a[i * K + t], b[t * M + j], sum);
			want[i * M + j] = sum;
		}
	k_same_f64(got, want, N * M, "dgemm");
}

#define ROWS 21
#define COLS 77

static void test_softmax(void)
{
	float *x = k_floats(ROWS * COLS, 20), got[ROWS * COLS], loss[ROWS];
	static double want[ROWS * COLS], wloss[ROWS];
	int rows = ROWS, cols = COLS, label[ROWS], i, j;
	CUdeviceptr dx, dy = k_out(sizeof(got)), dl, dloss = k_out(sizeof(loss));

	x[5] = -INFINITY;
	dx = k_in(x, sizeof(got));
	K_RUN("softmax", (ROWS + 3) / 4, 1, 128, 1, 0, &rows, &cols, &dx, &dy);
	k_get(got, dy, sizeof(got));
	for (i = 0; i < ROWS; i++) {
		double top = -INFINITY, sum = 0;

		for (j = 0; j < COLS; j++)
			top = fmax(top, x[i * COLS + j]);
		for (j = 0; j < COLS; j++)
			sum += exp(x[i * COLS + j] - top);
		for (j = 0; j < COLS; j++)
			want[i * COLS + j] = exp(x[i * COLS + j] - top) / sum;
		label[i] = i * 7 % COLS;
		wloss[i] = -log(got[i * COLS + label[i]]);
	}
	k_near_f32(got, want, ROWS * COLS, 4e-6, 1e-37, "softmax");
	dl = k_in(label, sizeof(label));
	K_RUN("cross_entropy", 1, 1, 32, 1, 0, &rows, &cols, &dy, &dl, &dloss);
	k_get(loss, dloss, sizeof(loss));
	k_near_f32(loss, wloss, ROWS, 1e-6, 1e-6, "cross_entropy");
	free(x);
}

/* The butterfly of a warp: the same for every lane, because addition commutes. */
static float warp_sum(float *lane)
{
	float next[32];
	int d, i;

	for (d = 16; d; d /= 2) {
		for (i = 0; i < 32; i++)
			next[i] = lane[i] + lane[i ^ d];
		memcpy(lane, next, sizeof(next));
	}
	return lane[0];
}

static void test_layernorm(void)
{
	float *x = k_floats(ROWS * COLS, 3), *gain = k_floats(COLS, 1), *bias = k_floats(COLS, 1);
	static float got[ROWS * COLS], want[ROWS * COLS];
	float eps = 1e-5f;
	int rows = ROWS, cols = COLS, i, j;
	CUdeviceptr dx = k_in(x, sizeof(got)), dg = k_in(gain, 4 * COLS), db = k_in(bias, 4 * COLS);
	CUdeviceptr dy = k_out(sizeof(got));

	K_RUN("layernorm", (ROWS + 1) / 2, 1, 64, 1, 0, &rows, &cols, &eps, &dx, &dg, &db, &dy);
	k_get(got, dy, sizeof(got));
	for (i = 0; i < ROWS; i++) {
		float lane[32] = {0}, mean, scale;
		const float *row = x + i * COLS;

		for (j = 0; j < COLS; j++)
			lane[j % 32] += row[j];
		mean = warp_sum(lane) / COLS;
		memset(lane, 0, sizeof(lane));
		for (j = 0; j < COLS; j++)
			lane[j % 32] = fmaf(row[j] - mean, row[j] - mean, lane[j % 32]);
		scale = 1.0f / sqrtf(warp_sum(lane) / COLS + eps);
		for (j = 0; j < COLS; j++)
			want[i * COLS + j] = fmaf((row[j] - mean) * scale, gain[j], bias[j]);
	}
	k_same_f32(got, want, ROWS * COLS, "layernorm");
	free(x);
	free(gain);
	free(bias);
}

static float tree_sum(float *part, int n)
{
	int d, i;

	for (d = n / 2; d; d /= 2)
		for (i = 0; i < d; i++)
			part[i] += part[i + d];
	return part[0];
}

static void test_batchnorm(void)
{
	enum { N = 6, C = 5, HW = 49, COUNT = N * HW };
	float *x = k_floats(N * C * HW, 2);
	static float got[N * C * HW], mean[C], var[C], want_mean[C], want_var[C], part[128];
	static double want[N * C * HW];
	float eps = 1e-5f, momentum = 0.1f;
	int n = N, c = C, hw = HW, i, ch, step;
	CUdeviceptr dx = k_in(x, sizeof(got)), dy = k_out(sizeof(got)), dm, dv;

	for (ch = 0; ch < C; ch++) {
		want_mean[ch] = (float)ch;
		want_var[ch] = 1;
	}
	dm = k_in(want_mean, sizeof(mean));
	dv = k_in(want_var, sizeof(var));
	for (step = 0; step < 2; step++)
		K_RUN("batchnorm", C, 1, 128, 1, 0, &n, &c, &hw, &eps, &momentum, &dx, &dy, &dm,
		      &dv);
	k_get(got, dy, sizeof(got));
	k_get(mean, dm, sizeof(mean));
	k_get(var, dv, sizeof(var));
	for (ch = 0; ch < C; ch++) {
		float stat[2] = {0};
		int pass;

		for (pass = 0; pass < 2; pass++) {
			memset(part, 0, sizeof(part));
			for (i = 0; i < COUNT; i++) {
				float v = x[(i / HW * C + ch) * HW + i % HW];
				float d = v - stat[0];

				part[i % 128] += pass ? d * d : v;
			}
			stat[pass] = tree_sum(part, 128) / COUNT;
		}
		for (step = 0; step < 2; step++) {
			want_mean[ch] = fmaf(momentum, stat[0] - want_mean[ch], want_mean[ch]);
			want_var[ch] = fmaf(momentum, stat[1] * COUNT / (COUNT - 1) - want_var[ch],
					    want_var[ch]);
		}
		for (i = 0; i < COUNT; i++) {
			int at = (i / HW * C + ch) * HW + i % HW;

			want[at] = ((double)x[at] - stat[0]) / sqrt((double)stat[1] + eps);
		}
	}
	k_near_f32(got, want, N * C * HW, 1e-6, 1e-6, "batchnorm");
	k_same_f32(mean, want_mean, C, "batchnorm, running mean of two steps");
	k_same_f32(var, want_var, C, "batchnorm, running variance of two steps");
	free(x);
}

static void test_block_sum(void)
{
	enum { N = 10007, BLOCKS = 7, THREADS = 256 };
	float *x = k_floats(N, 100), got[BLOCKS], want[BLOCKS];
	static float part[BLOCKS][THREADS];
	int n = N, i;
	CUdeviceptr dx = k_in(x, 4 * N), dout = k_out(sizeof(got));

	K_RUN("block_sum", BLOCKS, 1, THREADS, 1, 4 * THREADS, &n, &dx, &dout);
	k_get(got, dout, sizeof(got));
	for (i = 0; i < N; i++)
		part[i / THREADS % BLOCKS][i % THREADS] += x[i];
	for (i = 0; i < BLOCKS; i++)
		want[i] = tree_sum(part[i], THREADS);
	k_same_f32(got, want, BLOCKS, "block_sum");
	free(x);
}

static void test_grid_sum(void)
{
	enum { N = 30011, BLOCKS = 9 };
	static unsigned x[N];
	unsigned long long want = 0, got;
	unsigned ticket = 0;
	int n = N, i;
	CUdeviceptr dx, dpart = k_out(8 * BLOCKS), dticket = k_in(&ticket, 4), dout = k_out(8);

	for (i = 0; i < N; i++)
		want += x[i] = (unsigned)k_random();
	dx = k_in(x, sizeof(x));
	for (i = 0; i < 2; i++) {
		K_RUN("grid_sum", BLOCKS, 1, 128, 1, 0, &n, &dx, &dpart, &dticket, &dout);
		k_get(&got, dout, 8);
		k_get(&ticket, dticket, 4);
		is_u64(got, want, "grid_sum: the last block adds up");
		is_u64(ticket, 0, "and the ticket has wrapped to 0");
	}
}

static void test_compact(void)
{
	enum { BLOCKS = 3, THREADS = 96, N = BLOCKS * THREADS, WARPS = N / 32 };
	unsigned x[N], got[N], want[N], counts[WARPS], flags[WARPS], wcounts[WARPS] = {0};
	unsigned wflags[WARPS];
	int scan[N], total[N], wscan[N], wtotal[N], i;
	CUdeviceptr dx, dout = k_out(sizeof(got)), dc = k_out(sizeof(counts));
	CUdeviceptr df = k_out(sizeof(flags)), ds = k_out(sizeof(scan)), dt = k_out(sizeof(total));

	memset(want, 0xa5, sizeof(want));
	for (i = 0; i < N; i++)
		x[i] = (unsigned)(k_random() % (i < 64 ? 900 : 2000)) + (i / 32 % 2 ? 11 : 0);
	x[THREADS + 3] = 77;
	for (i = 0; i < N; i++)
		if (x[i] & 1)
			want[i / 32 * 32 + wcounts[i / 32]++] = x[i];
	for (i = 0; i < WARPS; i++) {
		unsigned any = 0, all = 1, seen77 = 0, thirds = 0, j;

		for (j = i * 32; j < i * 32 + 32u; j++) {
			any |= x[j] > 1000;
			all &= x[j] > 10;
		}
		for (j = i / 3 * THREADS; j < (i / 3 + 1u) * THREADS; j++) {
			seen77 |= x[j] == 77;
			thirds += x[j] % 3 == 0;
		}
		wflags[i] = any | all << 1 | seen77 << 2 | thirds << 8;
	}
	for (i = 0; i < N; i++)
		wscan[i] = (int)x[i] + (i % 32 ? wscan[i - 1] : 0);
	for (i = 0; i < N; i++)
		wtotal[i] = wscan[i | 31];
	dx = k_in(x, sizeof(x));
	K_RUN("compact", BLOCKS, 1, THREADS, 1, 0, &dx, &dout, &dc, &df);
	k_get(got, dout, sizeof(got));
	k_get(counts, dc, sizeof(counts));
	k_get(flags, df, sizeof(flags));
	k_same_bits(got, want, N, 4, "compact");
	k_same_bits(counts, wcounts, WARPS, 4, "compact, counts");
	k_same_bits(flags, wflags, WARPS, 4, "any, all, block or, block count");
	K_RUN("warp_scan", BLOCKS, 1, THREADS, 1, 0, &dx, &ds, &dt);
	k_get(scan, ds, sizeof(scan));
	k_get(total, dt, sizeof(total));
	k_same_bits(scan, wscan, N, 4, "warp_scan");
	k_same_bits(total, wtotal, N, 4, "warp_scan, total");
}

int main(int argc, char **argv)
{
	k_begin(argc, argv);
	k_load("gemm");
	test_gemm(16, 16, 16);
	test_gemm(50, 37, 71);
	test_gemm(1, 130, 5);
	test_dgemm();
	k_load("norm");
	test_softmax();
	test_layernorm();
	test_batchnorm();
	k_load("reduce");
	test_block_sum();
	test_grid_sum();
	test_compact();
	return tap_done();
}
