/* SPDX-License-Identifier: MIT */
/* What compilers make of the language, integers, doubles and halves, on the device against scalar C. */
#include "tests/clients/kernels.h"

struct shape {
	int n;
	short stride;
	char kind;
	double scale;
	struct {
		CUdeviceptr x, y;
	} at;
	unsigned char pad[5];
};

static void test_structs(void)
{
	enum { N = 70, STRIDE = 3 };
	int x[N * STRIDE], got[N], want[N], base = 1000, i;
	struct shape s = {
		.n = N, .stride = STRIDE, .kind = 5, .scale = 0.75, .pad = {1, 2, 3, 4, 250}};

	for (i = 0; i < N * STRIDE; i++)
		x[i] = i * i - 500;
	for (i = 0; i < N; i++)
		want[i] = base + (int)(x[i * STRIDE] * 0.75) + 5 + s.pad[i % 5];
	s.at.x = k_in(x, sizeof(x));
	s.at.y = k_out(sizeof(got));
	K_RUN("structs", 2, 1, 64, 1, 0, &s, &base);
	k_get(got, s.at.y, sizeof(got));
	k_same_bits(got, want, N, 4, "structs by value");
}

static int gcd(int a, int b)
{
	return b ? gcd(b, a % b) : a;
}

static void test_calls(void)
{
	enum { N = 90 };
	int x[N], sum[N], wsum[N], common[N], wcommon[N], n = N, i;
	float mean[N], wmean[N];
	CUdeviceptr dx, dsum = k_out(4 * N), dmean = k_out(4 * N), dcommon = k_out(4 * N);

	for (i = 0; i < N; i++) {
		x[i] = (int)(k_random() % 100000);
		wsum[i] = x[i] + i;
		wmean[i] = fmaf(0.25f, (float)i, (float)x[i]);
		wcommon[i] = i ? i / gcd(i, 60) * 60 : gcd(x[i] | 1, 3);
	}
	dx = k_in(x, sizeof(x));
	K_RUN("calls", 3, 1, 32, 1, 0, &n, &dx, &dsum, &dmean, &dcommon);
	k_get(sum, dsum, 4 * N);
	k_get(mean, dmean, 4 * N);
	k_get(common, dcommon, 4 * N);
	k_same_bits(sum, wsum, N, 4, "calls, a struct returned");
	k_same_f32(mean, wmean, N, "calls, its second member");
	k_same_bits(common, wcommon, N, 4, "calls within calls, loops that diverge");
}

static int apply(int op, int a, int b)
{
	switch (op) {
	case 0:
		return (int)((unsigned)a + (unsigned)b);
	case 1:
		return (int)((unsigned)a - (unsigned)b);
	case 2:
		return (int)((unsigned)a * (unsigned)b);
	case 3:
		return b ? (int)((int64_t)a / b) : 0;
	case 4:
		return b ? (int)((int64_t)a % b) : 0;
	case 5:
		return a >> (b & 31);
	case 6:
	case 7:
		return a ^ b;
	default:
		return -1;
	}
}

static void test_switches(void)
{
	enum { N = 300 };
	int op[N], a[N], b[N], got[N], want[N], n = N, i;
	CUdeviceptr dop, da, db, dout = k_out(sizeof(got));

	for (i = 0; i < N; i++) {
		op[i] = (int)(k_random() % 10) - 1;
		a[i] = (int)k_random();
		b[i] = i % 7 ? (int)k_random() >> (i % 31) : 0;
		b[i] = b[i] == -1 ? 1 : b[i];
		want[i] = apply(op[i], a[i], b[i]);
	}
	dop = k_in(op, sizeof(op));
	da = k_in(a, sizeof(a));
	db = k_in(b, sizeof(b));
	K_RUN("switches", 3, 1, 128, 1, 0, &n, &dop, &da, &db, &dout);
	k_get(got, dout, sizeof(got));
	k_same_bits(got, want, N, 4, "switches");
}

static int by_value(const void *a, const void *b)
{
	return *(const int *)a < *(const int *)b ? -1 : *(const int *)a > *(const int *)b;
}

static void test_sorts(void)
{
	enum { N = 50 };
	int x[N * 16], got[N * 16], n = N, i;
	CUdeviceptr dx, dout = k_out(sizeof(got));

	for (i = 0; i < N * 16; i++)
		x[i] = (int)k_random() >> 8;
	dx = k_in(x, sizeof(x));
	K_RUN("sorts", 2, 1, 32, 1, 0, &n, &dx, &dout);
	k_get(got, dout, sizeof(got));
	for (i = 0; i < N; i++)
		qsort(x + i * 16, 16, sizeof(int), by_value);
	k_same_bits(got, x, N * 16, 4, "sorts in local memory");
}

static void test_globals(void)
{
	static const int primes[8] = {2, 3, 5, 7, 11, 13, 17, 19};
	int got[64], want[64] = {0}, i, round;
	unsigned counter;
	CUdeviceptr dout = k_out(sizeof(got)), symbol;
	size_t bytes = 0;

	for (round = 0; round < 3; round++) {
		K_RUN("globals", 1, 1, 64, 1, 0, &dout);
		k_get(got, dout, sizeof(got));
		for (i = 0; i < 64; i++)
			want[i] += primes[i % 8] * (5 + 2 * round);
		k_same_bits(got, want, 64, 4, "module variables");
	}
	MUST(cuModuleGetGlobal(&symbol, &bytes, k_module, "counter"));
	k_get(&counter, symbol, 4);
	is_u64(counter, 11, "a counter kept across launches");
	is_u64(bytes, 4, "and its size");
}

static void test_collatz(void)
{
	enum { N = 500 };
	unsigned got[N], want[N];
	int n = N, i;
	CUdeviceptr dout = k_out(sizeof(got));

	K_RUN("collatz", 4, 1, 128, 1, 0, &n, &dout);
	k_get(got, dout, sizeof(got));
	for (i = 0; i < N; i++) {
		uint64_t v = (uint64_t)i + 1;

		for (want[i] = 0; v != 1 && want[i] < 100; want[i]++)
			v = v & 1 ? 3 * v + 1 : v / 2;
	}
	k_same_bits(got, want, N, 4, "loops of different lengths, left early");
}

static uint32_t byte_perm(uint32_t a, uint32_t b, uint32_t selector)
{
	uint64_t bytes = (uint64_t)b << 32 | a;
	uint32_t r = 0;
	int k;

	for (k = 0; k < 4; k++)
		r |= (uint32_t)(bytes >> (selector >> 4 * k & 7) * 8 & 0xff) << 8 * k;
	return r;
}

static uint64_t reverse(uint64_t x, int bits)
{
	uint64_t r = 0;
	int k;

	for (k = 0; k < bits; k++)
		r |= (x >> k & 1) << (bits - 1 - k);
	return r;
}

static const uint64_t edges[] = {0,	     1,
				 2,	     31,
				 32,	     63,
				 0x7fffffff, 0x80000000,
				 0xffffffff, ~0ull,
				 1ull << 63, (1ull << 63) - 1,
				 0xff00ff,   0x8000000080000000};
#define EDGES (int)(sizeof(edges) / sizeof(edges[0]))

static void test_words(void)
{
	enum { N = 400, ROWS = 16 };
	static uint32_t a[N], b[N], got[ROWS * N], want[ROWS][N];
	static const char *const name[ROWS] = {
		"umulhi",	"mulhi", "u32 /",	 "u32 %",	 "s32 /",   "s32 %",
		"popc clz ffs", "brev",	 "prmt",	 "funnel shift", "min s32", "max u32",
		"shift right",	"abs",	 "narrow types", "bit fields"};
	int n = N, i, k;
	CUdeviceptr da, db, dout = k_out(sizeof(got));

	for (i = 0; i < N; i++) {
		uint32_t x = (uint32_t)(i < EDGES * EDGES ? edges[i / EDGES] : k_random());
		uint32_t y =
			(uint32_t)(i < EDGES * EDGES ? edges[i % EDGES] : k_random() >> i % 32);
		int32_t sx, sy;

		if (x == 0x80000000 && (y | 1) == 0xffffffff) /* the quotient does not exist */
			y = 3;
		a[i] = x;
		b[i] = y;
		sx = (int32_t)x;
		sy = (int32_t)y;
		want[0][i] = (uint32_t)((uint64_t)x * y >> 32);
		want[1][i] = (uint32_t)((int64_t)sx * sy >> 32);
		want[2][i] = x / (y | 1);
		want[3][i] = x % (y | 1);
		want[4][i] = (uint32_t)(sx / (sy | 1));
		want[5][i] = (uint32_t)(sx % (sy | 1));
		want[6][i] = (uint32_t)__builtin_popcount(x) |
			     (uint32_t)(x ? __builtin_clz(x) : 32) << 8 |
			     (uint32_t)__builtin_ffs(sx) << 16;
		want[7][i] = (uint32_t)reverse(x, 32);
		want[8][i] = byte_perm(x, y, 0x5274);
		want[9][i] = (uint32_t)(((uint64_t)y << 32 | x) << (y & 31) >> 32);
		want[10][i] = (uint32_t)(sx < sy ? sx : sy);
		want[11][i] = x > y ? x : y;
		want[12][i] = (x >> 31 ? ~(~x >> (y & 31)) : x >> (y & 31)) ^ x >> (y & 31);
		want[13][i] = sx < 0 ? 0 - x : x;
		want[14][i] = (uint32_t)(int16_t)x * (uint8_t)y + (uint32_t)(int8_t)(x >> 8);
		want[15][i] = (x >> (y & 7) & 0xfff) << 4 | (y & 0xf000000f);
	}
	da = k_in(a, sizeof(a));
	db = k_in(b, sizeof(b));
	K_RUN("words", 4, 1, 128, 1, 0, &n, &da, &db, &dout);
	k_get(got, dout, sizeof(got));
	for (k = 0; k < ROWS; k++)
		k_same_bits(got + k * N, want[k], N, 4, name[k]);
}

static void test_longs(void)
{
	enum { N = 400, ROWS = 8 };
	static uint64_t a[N], b[N], got[ROWS * N], want[ROWS][N];
	static const char *const name[ROWS] = {"u64 *", "umul64hi", "u64 /",	"u64 %",
					       "s64 /", "popc clz", "brev u64", "s64 >>"};
	int n = N, i, k;
	CUdeviceptr da, db, dout = k_out(sizeof(got));

	for (i = 0; i < N; i++) {
		uint64_t x = i < EDGES * EDGES ? edges[i / EDGES] : k_random();
		uint64_t y = i < EDGES * EDGES ? edges[i % EDGES] : k_random() >> i % 64;

		if (x == 1ull << 63 && (y | 1) == ~0ull)
			y = 3;
		a[i] = x;
		b[i] = y;
		want[0][i] = x * y;
		want[1][i] = (uint64_t)((unsigned __int128)x * y >> 64);
		want[2][i] = x / (y | 1);
		want[3][i] = x % (y | 1);
		want[4][i] = (uint64_t)((int64_t)x / ((int64_t)y | 1));
		want[5][i] = (uint64_t)__builtin_popcountll(x) |
			     (uint64_t)(x ? __builtin_clzll(x) : 64) << 8;
		want[6][i] = reverse(x, 64);
		want[7][i] = (uint64_t)((int64_t)x >> (y & 63));
	}
	da = k_in(a, sizeof(a));
	db = k_in(b, sizeof(b));
	K_RUN("longs", 4, 1, 128, 1, 0, &n, &da, &db, &dout);
	k_get(got, dout, sizeof(got));
	for (k = 0; k < ROWS; k++)
		k_same_bits(got + k * N, want[k], N, 8, name[k]);
}

/* The ISA: NaN from or to 64 bits becomes the least integer; out of range saturates. */
static int64_t to_long(double x, int nearest)
{
	if (isnan(x))
		return INT64_MIN;
	x = nearest ? rint(x) : trunc(x);
	return x >= 0x1p63 ? INT64_MAX : x <= -0x1p63 ? INT64_MIN : (int64_t)x;
}

static void test_doubles(void)
{
	static const double edge[] = {0.0,
				      -0.0,
				      1,
				      -1.5,
				      2.5,
				      INFINITY,
				      -INFINITY,
				      NAN,
				      4.9e-324,
				      1e-310,
				      0x1.fffffffffffffp1023,
				      1e300,
				      0x1p63,
				      -0x1p63,
				      0x1p53 + 2,
				      1e-45,
				      3.4028236e38};
	enum { E = sizeof(edge) / sizeof(edge[0]), N = E * E + 100, ROWS = 8 };
	static double x[N], y[N], got[ROWS * N], want[ROWS][N];
	static int64_t ints[N], wints[N];
	static const char *const name[ROWS] = {"f64 /",	       "f64 sqrt",  "f64 fma",
					       "f64 mul, add", "f64 floor", "f64 max",
					       "f64 to f32",   "f64 to s64"};
	int n = N, i, k;
	CUdeviceptr dx, dy, dout = k_out(sizeof(got)), dints = k_out(sizeof(ints));

	for (i = 0; i < N; i++) {
		x[i] = i < E * E ? edge[i / E] : ldexp(k_float(1), (int)(k_random() % 100) - 50);
		y[i] = i < E * E ? edge[i % E] : ldexp(k_float(1), (int)(k_random() % 100) - 50);
		want[0][i] = x[i] / y[i];
		want[1][i] = sqrt(fabs(x[i]));
		want[2][i] = fma(x[i], y[i], x[i]);
		want[3][i] = x[i] * y[i] + x[i];
		want[4][i] = floor(x[i]);
		want[5][i] = isnan(x[i])	      ? y[i]
			     : isnan(y[i])	      ? x[i]
			     : x[i] == 0 && y[i] == 0 ? (signbit(x[i]) ? y[i] : x[i])
						      : (x[i] > y[i] ? x[i] : y[i]);
		want[6][i] = (double)(float)x[i];
		want[7][i] = (double)to_long(x[i], 0);
		wints[i] = to_long(x[i], 1);
	}
	dx = k_in(x, sizeof(x));
	dy = k_in(y, sizeof(y));
	K_RUN("doubles", (N + 127) / 128, 1, 128, 1, 0, &n, &dx, &dy, &dout, &dints);
	k_get(got, dout, sizeof(got));
	k_get(ints, dints, sizeof(ints));
	for (k = 0; k < ROWS; k++)
		k_same_f64(got + k * N, want[k], N, name[k]);
	k_same_bits(ints, wints, N, 8, "f64 to s64, rounded");
}

/* --- half ----------------------------------------------------------------------------------- */

static double half_value(uint16_t h)
{
	int e = h >> 10 & 31, m = h & 1023;
	double v = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);

	return h >> 15 ? -v : v;
}

/* Round to nearest, ties to even; any NaN is 0x7fff. */
static uint16_t half_of(double x)
{
	uint16_t sign = signbit(x) ? 0x8000 : 0;
	double a = fabs(x), q;
	int e;

	if (isnan(x))
		return 0x7fff;
	if (a >= 65520)
		return sign | 0x7c00;
	frexp(a, &e);
	e = e - 1 < -14 ? -14 : e - 1;
	q = rint(ldexp(a, 10 - e)); /* in units of the last place: 0..2048 */
	return sign | (uint16_t)(q < 1024 ? q : (e + 14) * 1024 + q);
}

static int half_same(const uint16_t *got, const uint16_t *want, int n, const char *what)
{
	int i, bad = 0;

	for (i = 0; i < n; i++) {
		int nan = (got[i] & 0x7fff) > 0x7c00 && (want[i] & 0x7fff) > 0x7c00;

		if (!nan && got[i] != want[i] && bad++ < 3)
			tap_diag("%s [%d]: 0x%04x, not 0x%04x", what, i, got[i], want[i]);
	}
	return ok(!bad, "%s: %d values to the bit", what, n);
}

static void test_half(void)
{
	enum { N = 65536 };
	static uint16_t h[N], h2[N], got[N], want[N], want2[N];
	static float x[N], gx[N], wx[N];
	int n = N, i;
	CUdeviceptr dh, dh2, dx, dout = k_out(sizeof(got)), dout2 = k_out(sizeof(got));
	CUdeviceptr df = k_out(sizeof(gx));

	for (i = 0; i < N; i++) {
		h[i] = (uint16_t)i;
		h2[i] = (uint16_t)k_random();
		wx[i] = (float)half_value(h[i]);
		/* Values, halfway points between them and their neighbours. */
		x[i] = wx[i];
		if (i % 3 && !isnan(x[i]) && !isinf(x[i]))
			x[i] = (float)((half_value(h[i]) + half_value(h[i] + 1)) / 2);
		if (i % 3 == 2)
			x[i] = nextafterf(x[i], i % 2 ? INFINITY : 0);
		want[i] = half_of(x[i]);
	}
	dh = k_in(h, sizeof(h));
	dh2 = k_in(h2, sizeof(h2));
	dx = k_in(x, sizeof(x));
	K_RUN("to_float", N / 256, 1, 256, 1, 0, &n, &dh, &df);
	k_get(gx, df, sizeof(gx));
	k_same_f32(gx, wx, N, "all halves to f32");
	K_RUN("to_half", N / 256, 1, 256, 1, 0, &n, &dx, &dout);
	k_get(got, dout, sizeof(got));
	half_same(got, want, N, "f32 to half");
	K_RUN("half_math", N / 256, 1, 256, 1, 0, &n, &dh, &dh2, &dout, &dout2);
	for (i = 0; i < N; i++) {
		want[i] = half_of(half_value(h[i]) + half_value(h2[i]));
		want2[i] = half_of(half_value(h[i]) * half_value(h2[i]));
	}
	k_get(got, dout, sizeof(got));
	half_same(got, want, N, "half sums");
	k_get(got, dout2, sizeof(got));
	half_same(got, want2, N, "half products");
}

int main(int argc, char **argv)
{
	k_begin(argc, argv);
	k_load("language");
	test_structs();
	test_calls();
	test_switches();
	test_sorts();
	test_globals();
	test_collatz();
	k_load("integer");
	test_words();
	test_longs();
	k_load("double");
	test_doubles();
	k_load("half");
	test_half();
	return tap_done();
}
