/* SPDX-License-Identifier: MIT */
/* Elementwise training kernels, tables of rows and images on the device against scalar C. */
#include "tests/clients/kernels.h"

static void test_bias_relu(void)
{
	enum { ROWS = 33, C = 20, N = ROWS * C };
	float *x = k_floats(N, 1), *bias = k_floats(C, 1), *dy = k_floats(N, 1);
	float got[N], want[N], db[C], wdb[C];
	int n = N, c = C, rows = ROWS, i, j;
	CUdeviceptr dx = k_in(x, sizeof(got)), dbias = k_in(bias, 4 * C), y = k_out(sizeof(got));
	CUdeviceptr ddy = k_in(dy, sizeof(got)), ddx = k_out(sizeof(got)), ddb = k_out(4 * C);

	K_RUN("bias_relu", (N + 127) / 128, 1, 128, 1, 0, &n, &c, &dx, &dbias, &y);
	k_get(got, y, sizeof(got));
	for (i = 0; i < N; i++)
		want[i] = x[i] + bias[i % C] > 0 ? x[i] + bias[i % C] : 0;
	k_same_f32(got, want, N, "bias_relu");
	K_RUN("bias_relu_back", 1, 1, 32, 1, 0, &rows, &c, &y, &ddy, &ddx, &ddb);
	for (j = 0; j < C; j++)
		for (wdb[j] = 0, i = j; i < N; i += C) {
			want[i] = want[i] > 0 ? dy[i] : 0;
			wdb[j] += want[i];
		}
	k_get(got, ddx, sizeof(got));
	k_get(db, ddb, sizeof(db));
	k_same_f32(got, want, N, "bias_relu_back, dx");
	k_same_f32(db, wdb, C, "bias_relu_back, db");
	free(x);
	free(bias);
	free(dy);
}

static void test_optimisers(void)
{
	enum { N = 500 };
	float *w = k_floats(N, 1), *v = k_floats(N, 1), *m = k_floats(N, 1), *g = k_floats(N, 1);
	float gw[N], gv[N], gm[N];
	float lr = 0.01f, momentum = 0.9f, decay = 1e-4f, b1 = 0.9f, b2 = 0.999f, eps = 1e-8f;
	float c1 = 1 - b1 * b1, c2 = 1 - b2 * b2;
	int n = N, i;
	CUdeviceptr dw = k_in(w, 4 * N), dv = k_in(v, 4 * N), dm, dg = k_in(g, 4 * N);

	K_RUN("sgd", 4, 1, 128, 1, 0, &n, &lr, &momentum, &decay, &dw, &dv, &dg);
	k_get(gw, dw, sizeof(gw));
	k_get(gv, dv, sizeof(gv));
	for (i = 0; i < N; i++) {
		v[i] = fmaf(momentum, v[i], fmaf(decay, w[i], g[i]));
		w[i] = fmaf(-lr, v[i], w[i]);
	}
	k_same_f32(gw, w, N, "sgd, weights");
	k_same_f32(gv, v, N, "sgd, momentum");

	for (i = 0; i < N; i++)
		v[i] = fabsf(v[i]);
	dw = k_in(w, 4 * N);
	dv = k_in(v, 4 * N);
	dm = k_in(m, 4 * N);
	K_RUN("adam", 4, 1, 128, 1, 0, &n, &lr, &b1, &b2, &eps, &c1, &c2, &dw, &dm, &dv, &dg);
	k_get(gw, dw, sizeof(gw));
	k_get(gm, dm, sizeof(gm));
	k_get(gv, dv, sizeof(gv));
	for (i = 0; i < N; i++) {
		m[i] = fmaf(b1, m[i] - g[i], g[i]);
		v[i] = fmaf(b2, v[i] - g[i] * g[i], g[i] * g[i]);
		w[i] -= lr * ((m[i] / c1) / (sqrtf(v[i] / c2) + eps));
	}
	k_same_f32(gw, w, N, "adam, weights");
	k_same_f32(gm, m, N, "adam, first moment");
	k_same_f32(gv, v, N, "adam, second moment");
	free(w);
	free(v);
	free(m);
	free(g);
}

static void test_axpy4(void)
{
	enum { N = 400 };
	float *x = k_floats(N, 1), *y = k_floats(N, 1), got[N], a = 1.7f;
	int n4 = N / 4, i;
	CUdeviceptr dx = k_in(x, 4 * N), dy = k_in(y, 4 * N);

	K_RUN("axpy4", 2, 1, 64, 1, 0, &n4, &a, &dx, &dy);
	k_get(got, dy, sizeof(got));
	for (i = 0; i < N; i++)
		y[i] = fmaf(a, x[i], y[i]);
	k_same_f32(got, y, N, "axpy4");
	free(x);
	free(y);
}

/* Error bounds: those that CUDA documents for these functions, with room for our own 1/2 ulp. */
static void test_functions(void)
{
	enum { N = 512 };
	static float x[N], got[8 * N];
	static double want[8][N];
	static const struct {
		const char *name;
		double rel, abs;
	} row[] = {{"expf", 4e-7, 1e-44}, {"logf", 3e-7, 2e-7},	  {"sinf", 4e-7, 1e-7},
		   {"cosf", 4e-7, 1e-7},  {"tanhf", 4e-7, 1e-45}, {"powf", 1e-6, 1e-44},
		   {"rsqrtf", 4e-7, 0},	  {"erff", 4e-7, 1e-45}};
	int n = N, i, k;
	CUdeviceptr dx, dout = k_out(sizeof(got));

	for (i = 0; i < N; i++)
		x[i] = i < 64 ? k_float(80) : i < 128 ? k_float(0.01f) : k_float(6);
	x[3] = 0;
	x[4] = INFINITY;
	x[5] = NAN;
	x[6] = 1;
	x[7] = 50000.0f; /* arguments that need the long reduction */
	x[8] = 1e30f;
	x[9] = -1e-30f;
	dx = k_in(x, sizeof(x));
	K_RUN("functions", 4, 1, 128, 1, 0, &n, &dx, &dout);
	k_get(got, dout, sizeof(got));
	for (i = 0; i < N; i++) {
		want[0][i] = (float)exp(x[i]);
		want[1][i] = log(fabs(x[i]));
		want[2][i] = sin(x[i]);
		want[3][i] = cos(x[i]);
		want[4][i] = tanh(x[i]);
		want[5][i] = (float)pow(fabs(x[i]), 1.5);
		want[6][i] = 1 / sqrt(fabs(x[i]));
		want[7][i] = erf(x[i]);
	}
	for (k = 0; k < 8; k++)
		k_near_f32(got + k * N, want[k], N, row[k].rel, row[k].abs, row[k].name);
}

static int to_int(float x, int nearest)
{
	if (isnan(x))
		return 0;
	x = nearest ? rintf(x) : truncf(x);
	return x >= 0x1p31f ? INT32_MAX : x <= -0x1p31f ? INT32_MIN : (int)x;
}

static void test_exact(void)
{
	static const float edge[] = {
		0.0f,	      -0.0f,	     1,		 -1,	    0.5f,
		1.5f,	      2.5f,	     -2.5f,	 INFINITY,  -INFINITY,
		NAN,	      1e-45f,	     -1e-40f,	 0x1p-126f, 0x1.fffffep127f,
		2147483648.f, -2147483648.f, 8388607.5f, 3e9f,	    1e-38f};
	enum { E = sizeof(edge) / sizeof(edge[0]), N = E * E + 200 };
	static float x[N], y[N], got[8 * N], want[8][N];
	static int ints[3 * N], wints[3][N];
	static const char *const name[] = {"x / y", "sqrtf",	 "floorf",   "rintf",
					   "fminf", "copysignf", "saturate", "f64 product to f32"};
	int n = N, i, k;
	CUdeviceptr dx, dy, dout = k_out(sizeof(got)), dints = k_out(sizeof(ints));

	for (i = 0; i < N; i++) {
		x[i] = i < E * E ? edge[i / E] : ldexpf(k_float(1), (int)(k_random() % 40) - 20);
		y[i] = i < E * E ? edge[i % E] : ldexpf(k_float(1), (int)(k_random() % 40) - 20);
		want[0][i] = x[i] / y[i];
		want[1][i] = sqrtf(fabsf(x[i]));
		want[2][i] = floorf(x[i]);
		want[3][i] = rintf(x[i]);
		want[4][i] = isnan(x[i])	      ? y[i]
			     : isnan(y[i])	      ? x[i]
			     : x[i] == 0 && y[i] == 0 ? (signbit(x[i]) ? x[i] : y[i])
						      : (x[i] < y[i] ? x[i] : y[i]);
		want[5][i] = copysignf(x[i], y[i]);
		want[6][i] = isnan(x[i]) || x[i] <= 0 ? 0 : x[i] > 1 ? 1 : x[i];
		want[7][i] = (float)((double)x[i] * (double)y[i]);
		wints[0][i] = to_int(x[i], 0);
		wints[1][i] = to_int(x[i], 1);
		wints[2][i] = x[i] < y[i] ? -1 : x[i] > y[i] ? 1 : x[i] == y[i] ? 0 : 2;
	}
	dx = k_in(x, sizeof(x));
	dy = k_in(y, sizeof(y));
	K_RUN("exact", (N + 127) / 128, 1, 128, 1, 0, &n, &dx, &dy, &dout, &dints);
	k_get(got, dout, sizeof(got));
	k_get(ints, dints, sizeof(ints));
	for (k = 0; k < 8; k++)
		k_same_f32(got + k * N, want[k], N, name[k]);
	k_same_bits(ints, wints[0], N, 4, "to int by truncation");
	k_same_bits(ints + N, wints[1], N, 4, "to int by rounding");
	k_same_bits(ints + 2 * N, wints[2], N, 4, "comparison, NaN included");
}

static void test_table(void)
{
	enum { ROWS = 24, WIDTH = 33, VOCAB = 10, SLOTS = 14, BATCH = 4 };
	int index[ROWS], rows = ROWS, width = WIDTH, i, j, cursor = 9, batch = BATCH, slots = SLOTS;
	float *table = k_floats(VOCAB * WIDTH, 4), got[ROWS * WIDTH], want[ROWS * WIDTH];
	float grad[ROWS * WIDTH], gsum[VOCAB * WIDTH], wsum[VOCAB * WIDTH] = {0};
	float queue[SLOTS * WIDTH] = {0}, gqueue[SLOTS * WIDTH];
	CUdeviceptr di, dt = k_in(table, 4 * VOCAB * WIDTH), dout = k_out(sizeof(got)), dg, dsum;
	CUdeviceptr dq = k_in(queue, sizeof(queue)), dcursor = k_in(&cursor, 4);

	for (i = 0; i < ROWS; i++)
		index[i] = (int)(k_random() % VOCAB);
	for (i = 0; i < ROWS * WIDTH; i++) {
		want[i] = table[index[i / WIDTH] * WIDTH + i % WIDTH];
		grad[i] = (float)(int)(k_random() % 2001) - 1000; /* sums are exact in any order */
		wsum[index[i / WIDTH] * WIDTH + i % WIDTH] += grad[i];
	}
	di = k_in(index, sizeof(index));
	dg = k_in(grad, sizeof(grad));
	memset(gsum, 0, sizeof(gsum));
	dsum = k_in(gsum, sizeof(gsum));
	K_RUN("gather", ROWS, 1, 64, 1, 0, &rows, &width, &di, &dt, &dout);
	k_get(got, dout, sizeof(got));
	k_same_f32(got, want, ROWS * WIDTH, "gather");
	K_RUN("scatter_add", ROWS, 1, 64, 1, 0, &rows, &width, &di, &dg, &dsum);
	k_get(gsum, dsum, sizeof(gsum));
	k_same_f32(gsum, wsum, VOCAB * WIDTH, "scatter_add");

	for (i = 0; i < 3; i++) {
		K_RUN("enqueue", BATCH, 1, 64, 1, 0, &batch, &width, &slots, &dg, &dq, &dcursor);
		K_RUN("advance", 1, 1, 1, 1, 0, &batch, &slots, &dcursor);
		for (j = 0; j < BATCH * WIDTH; j++)
			queue[(9 + i * BATCH + j / WIDTH) % SLOTS * WIDTH + j % WIDTH] = grad[j];
	}
	k_get(gqueue, dq, sizeof(gqueue));
	k_get(&cursor, dcursor, 4);
	k_same_f32(gqueue, queue, SLOTS * WIDTH, "enqueue, past the end of the ring");
	is_u64(cursor, (9 + 3 * BATCH) % SLOTS, "advance");
	free(table);
}

static void test_im2col(void)
{
	enum { C = 3, H = 9, W = 7, K = 3, N = C * K * K * H * W };
	float *x = k_floats(C * H * W, 1), got[N], want[N];
	int c = C, h = H, w = W, k = K, i;
	CUdeviceptr dx = k_in(x, 4 * C * H * W), dout = k_out(sizeof(got));

	K_RUN("im2col", (N + 255) / 256, 1, 256, 1, 0, &c, &h, &w, &k, &dx, &dout);
	k_get(got, dout, sizeof(got));
	for (i = 0; i < N; i++) {
		int p = i % (H * W), r = i / (H * W);
		int sy = p / W + r / K % K - 1, sx = p % W + r % K - 1;

		want[i] = sy < 0 || sy >= H || sx < 0 || sx >= W
				  ? 0
				  : x[(r / (K * K) * H + sy) * W + sx];
	}
	k_same_f32(got, want, N, "im2col");
	free(x);
}

static void test_maxpool(void)
{
	enum { C = 4, H = 10, W = 12, N = C * H * W / 4 };
	float *x = k_floats(C * H * W, 1), got[N], want[N];
	int where[N], wwhere[N], c = C, h = H, w = W, i, d;
	CUdeviceptr dx, dy = k_out(sizeof(got)), dwhere = k_out(sizeof(where));

	x[1] = x[0]; /* a tie: the first wins */
	dx = k_in(x, 4 * C * H * W);
	K_RUN("maxpool2", (N + 63) / 64, 1, 64, 1, 0, &c, &h, &w, &dx, &dy, &dwhere);
	k_get(got, dy, sizeof(got));
	k_get(where, dwhere, sizeof(where));
	for (i = 0; i < N; i++) {
		int at = (i / (W / 2) * 2) * W + i % (W / 2) * 2;

		wwhere[i] = at;
		for (d = 1; d < 4; d++)
			if (x[at + d / 2 * W + d % 2] > x[wwhere[i]])
				wwhere[i] = at + d / 2 * W + d % 2;
		want[i] = x[wwhere[i]];
	}
	k_same_f32(got, want, N, "maxpool2");
	k_same_bits(where, wwhere, N, 4, "maxpool2, indices");
	free(x);
}

static int clamp(int i, int n)
{
	return i < 0 ? 0 : i < n ? i : n - 1;
}

static void test_blur(void)
{
	enum { H = 19, W = 21, N = H * W };
	static const float filter[] = {1, 2, 1, 2, 4, 2, 1, 2, 1},
			   flat[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
	float *x = k_floats(N, 1), got[N], want[N];
	int h = H, w = W, i, t, round;
	CUdeviceptr dx = k_in(x, 4 * N), dy = k_out(sizeof(got)), symbol;
	size_t bytes = 0;

	MUST(cuModuleGetGlobal(&symbol, &bytes, k_module, "filter"));
	is_u64(bytes, sizeof(filter), "size of a constant array");
	for (round = 0; round < 2; round++) {
		const float *f = round ? flat : filter;

		K_RUN("blur", (W + 7) / 8, (H + 7) / 8, 8, 8, 0, &h, &w, &dx, &dy);
		k_get(got, dy, sizeof(got));
		for (i = 0; i < N; i++) {
			float sum = 0;

			for (t = 0; t < 9; t++)
				sum = fmaf(f[t],
					   x[clamp(i / W + t / 3 - 1, H) * W +
					     clamp(i % W + t % 3 - 1, W)],
					   sum);
			want[i] = sum / 16;
		}
		k_same_f32(got, want, N,
			   round ? "blur, constants overwritten" : "blur, constants as loaded");
		MUST(cuMemcpyHtoD(symbol, flat, sizeof(flat)));
	}
	free(x);
}

int main(int argc, char **argv)
{
	k_begin(argc, argv);
	k_load("pointwise");
	test_bias_relu();
	test_optimisers();
	test_axpy4();
	test_functions();
	test_exact();
	k_load("table");
	test_table();
	k_load("image");
	test_im2col();
	test_maxpool();
	test_blur();
	return tap_done();
}
