/* SPDX-License-Identifier: MIT */
/*
 * Definitions of the simulated device's floating point that hardware or libm leave open.
 *
 * The .approx functions of the ISA have error bounds only; a real GPU's bits cannot be reproduced.
 * Ours are the mathematical function evaluated in double precision by the polynomials below (error
 * of a few 1e-16) and rounded once to float, so they lie within half an ulp and a hair of the true
 * value, which is inside every bound the ISA gives:
 *   ex2   n = rint(x), Taylor of 2^(x-n) to degree 13 (exec_float.h)
 *   lg2   x = 2^e m, m in [sqrt(1/2), sqrt(2)); series of atanh((m-1)/(m+1)), 12 terms
 *   sin, cos   reduction by pi/2: three-term Cody-Waite below 2^20, Payne-Hanek above; Taylor
 *   tanh  sinh/cosh Taylor below 1/2; 1 - 2/(2^(2x log2 e) + 1) above
 *   rcp, sqrt, div (.approx, .full)   correctly rounded
 *   rsqrt   1 / sqrt(x) in double, rounded to float
 * Pure functions; no state.
 */
#include "tests/simcuda/exec_float.h"

/* One step of a magnitude towards larger (up) or smaller. */
static float step32(float x, int up)
{
	uint32_t u = sim_bits32(x);

	if (!(u << 1))
		return sim_float(up ? 1 : 0x80000001);
	return sim_float((u >> 31) == (uint32_t)!up ? u + 1 : u - 1);
}

/*
 * Keep `keep` top bits of a nonzero magnitude and round. Returns the rounded significand (it may
 * have become 1 << keep) and the exponent of its lowest bit.
 */
static uint64_t round_magnitude(uint64_t m, unsigned keep, int negative, unsigned mode,
				int *ret_shift)
{
	int width = 64 - __builtin_clzll(m), shift = width - (int)keep;
	uint64_t rest, half, q;

	if (shift <= 0) {
		*ret_shift = 0;
		return m;
	}
	q = m >> shift;
	rest = m & (((uint64_t)1 << shift) - 1);
	half = (uint64_t)1 << (shift - 1);
	if (mode == SIM_RN)
		q += rest > half || (rest == half && (q & 1));
	else if (mode == (negative ? SIM_RM : SIM_RP))
		q += rest != 0;
	*ret_shift = shift;
	return q;
}

float sim_u64_to_float(uint64_t magnitude, int negative, unsigned mode)
{
	int shift;
	float r;

	if (!magnitude)
		return 0.0f;
	magnitude = round_magnitude(magnitude, 24, negative, mode, &shift);
	r = (float)magnitude * sim_float((uint32_t)(127 + shift) << 23);
	return negative ? -r : r;
}

double sim_u64_to_double(uint64_t magnitude, int negative, unsigned mode)
{
	int shift;
	double r;

	if (!magnitude)
		return 0.0;
	magnitude = round_magnitude(magnitude, 53, negative, mode, &shift);
	r = (double)(int64_t)magnitude * sim_double((uint64_t)(1023 + shift) << 52);
	return negative ? -r : r;
}

float sim_double_to_float(double x, unsigned mode)
{
	float r = (float)x;

	if (mode == SIM_RN || x != x || (double)r == x)
		return sim_canon(r);
	switch (mode) {
	case SIM_RZ:
		return x > 0 ? (double)r > x ? step32(r, 0) : r : (double)r < x ? step32(r, 1) : r;
	case SIM_RM:
		return (double)r > x ? step32(r, 0) : r;
	default:
		return (double)r < x ? step32(r, 1) : r;
	}
}

float sim_round_odd(double x)
{
	float r = sim_double_to_float(x, SIM_RZ);

	return x == x && (double)r != x ? sim_float(sim_bits32(r) | 1) : r;
}

uint16_t sim_float_to_half(float x, unsigned mode)
{
	if (x != x)
		return SIM_NAN16;
	switch (mode & SIM_RMASK) {
	case SIM_RN:
		return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT);
	case SIM_RZ:
		return _cvtss_sh(x, _MM_FROUND_TO_ZERO);
	case SIM_RM:
		return _cvtss_sh(x, _MM_FROUND_TO_NEG_INF);
	default:
		return _cvtss_sh(x, _MM_FROUND_TO_POS_INF);
	}
}

uint16_t sim_double_to_half(double x, unsigned mode)
{
	return sim_float_to_half(sim_round_odd(x), mode);
}

uint16_t sim_float_to_bf16(float x, unsigned mode)
{
	uint32_t u = sim_bits32(x), rest = u & 0xffff, up = 0;

	if (x != x)
		return SIM_NAN16;
	switch (mode & SIM_RMASK) {
	case SIM_RN:
		up = rest > 0x8000 || (rest == 0x8000 && (u >> 16 & 1));
		break;
	case SIM_RM:
		up = rest && u >> 31;
		break;
	case SIM_RP:
		up = rest && !(u >> 31);
		break;
	default:
		break;
	}
	if ((u & 0x7f800000) == 0x7f800000)
		up = 0;
	return (uint16_t)((u >> 16) + up);
}

uint32_t sim_float_to_tf32(float x, unsigned flags)
{
	uint32_t u = sim_bits32(x), rest = u & 0x1fff;

	if (x != x)
		return SIM_NAN32;
	if ((u & 0x7f800000) == 0x7f800000)
		return u;
	if (flags & SIM_RNA ? rest >= 0x1000
			    : (flags & SIM_RMASK) == SIM_RN &&
				      (rest > 0x1000 || (rest == 0x1000 && (u >> 13 & 1))))
		u += 0x2000;
	return u & ~0x1fffu;
}

double sim_rint64(double x, unsigned mode)
{
	switch (mode & SIM_RMASK) {
	case SIM_RN:
		return __builtin_rint(x);
	case SIM_RZ:
		return __builtin_trunc(x);
	case SIM_RM:
		return __builtin_floor(x);
	default:
		return __builtin_ceil(x);
	}
}

float sim_rint32(float x, unsigned mode)
{
	return (float)sim_rint64(x, mode);
}

/*
 * The product of two halves is exact in double; the sum may not be, so its last bit is made
 * sticky from the exact error term before the one rounding to half.
 */
uint16_t sim_half_fma(uint16_t a, uint16_t b, uint16_t c)
{
	double p = (double)sim_half_to_float(a) * (double)sim_half_to_float(b);
	double z = sim_half_to_float(c), s = p + z, bv, err;
	uint64_t u;

	if (!(s - s == 0)) /* infinite or NaN */
		return sim_double_to_half(s, SIM_RN);
	bv = s - p;
	err = (p - (s - bv)) + (z - bv);
	u = sim_bits64(s);
	if (err != 0 && !(u & 1)) {
		/* towards the error, to the odd neighbour */
		u += (err > 0) == (s > 0) ? 1 : (uint64_t)-1;
		s = sim_double(u);
	}
	return sim_double_to_half(s, SIM_RN);
}

float sim_lg2(float xf)
{
	double x = xf, s, z, p, m;
	uint64_t u = sim_bits64(x);
	int64_t e;

	if (xf != xf || xf < 0)
		return sim_float(SIM_NAN32);
	if (xf == 0)
		return sim_float(0xff800000);
	if (sim_bits32(xf) == 0x7f800000)
		return xf;
	e = (int64_t)(u - 0x3fe6a09e667f3bcdull) >> 52;
	m = sim_double(u - ((uint64_t)e << 52));
	s = (m - 1) / (m + 1);
	z = s * s;
	p = 1.0 / 25;
	for (int k = 23; k > 0; k -= 2)
		p = p * z + 1.0 / k;
	return (float)((double)e + 2 * s * p * 0x1.71547652b82fep0);
}

/* 2/pi, 32 bits a word, most significant first. */
static const uint32_t two_over_pi[8] = {0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0,
					0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561};

/* x mod pi/2 in [-pi/4, pi/4], quadrant in *ret_q; |x| >= 2^20 and finite. */
static double reduce_large(float x, int *ret_q)
{
	uint32_t u = sim_bits32(x);
	int e = (int)(u >> 23 & 255) - 150; /* x = m 2^e */
	uint64_t m = (u & 0x7fffff) | 0x800000;
	unsigned __int128 window = 0, frac;
	int first = e - 2, q;
	double r;

	/*
	 * Bit i (from 1) of 2/pi weighs 2^-i. Bits up to e - 2 contribute multiples of 4 after the
	 * product with m 2^e: drop them, take the next 128 - 24 - 2 bits as an integer.
	 */
	if (first < 0)
		first = 0;
	for (int i = 0; i < 100; i++) {
		int bit = first + i;

		window = window << 1 | (two_over_pi[bit >> 5] >> (31 - (bit & 31)) & 1);
	}
	/* x 2/pi = m * window * 2^(e - first - 100) modulo 4 */
	frac = window * m;
	/* put the binary point below bit 126: two integer bits on top */
	frac <<= 126 - 100 + (e - first);
	q = (int)(frac >> 126);
	frac <<= 2;
	r = (double)(int64_t)(frac >> 64) * 0x1p-64; /* signed: past one half counts down */
	if ((int64_t)(frac >> 64) < 0)
		q++;
	if (u >> 31)
		r = -r, q = -q;
	*ret_q = q & 3;
	return r * 0x1.921fb54442d18p0;
}

static double reduce(float xf, int *ret_q)
{
	double x = xf, n, r;

	if (x >= 0x1p20 || x <= -0x1p20)
		return reduce_large(xf, ret_q);
	n = (x * 0x1.45f306dc9c883p-1 + 0x1.8p52) - 0x1.8p52;
	r = __builtin_fma(n, -0x1.921fb54442d18p0, x);
	r = __builtin_fma(n, -0x1.1a62633145c07p-54, r);
	*ret_q = (int)((int64_t)n & 3);
	return r;
}

static double poly_sin(double r)
{
	double z = r * r, p = 1.0 / 355687428096000;

	p = p * -z + 1.0 / 1307674368000;
	p = p * -z + 1.0 / 6227020800;
	p = p * -z + 1.0 / 39916800;
	p = p * -z + 1.0 / 362880;
	p = p * -z + 1.0 / 5040;
	p = p * -z + 1.0 / 120;
	p = p * -z + 1.0 / 6;
	return r - r * z * p;
}

static double poly_cos(double r)
{
	double z = r * r, p = 1.0 / 20922789888000;

	p = p * -z + 1.0 / 87178291200;
	p = p * -z + 1.0 / 479001600;
	p = p * -z + 1.0 / 3628800;
	p = p * -z + 1.0 / 40320;
	p = p * -z + 1.0 / 720;
	p = p * -z + 1.0 / 24;
	p = p * -z + 1.0 / 2;
	return 1 - z * p;
}

static float sine_at(float x, int quarter)
{
	double r, v;
	int q;

	if (!(x - x == 0))
		return sim_float(SIM_NAN32);
	if (x == 0 && !quarter)
		return x;
	r = reduce(x, &q);
	q = (q + quarter) & 3;
	v = q & 1 ? poly_cos(r) : poly_sin(r);
	return (float)(q & 2 ? -v : v);
}

float sim_sin(float x)
{
	return sine_at(x, 0);
}

float sim_cos(float x)
{
	return sine_at(x, 1);
}

float sim_tanh(float xf)
{
	double y = __builtin_fabs((double)xf), z = y * y, s, c, t;

	if (xf != xf)
		return sim_float(SIM_NAN32);
	if (y < 0.5) {
		s = 1.0 / 1307674368000;
		for (int k = 13; k >= 1; k -= 2) {
			static const double f[] = {
				1.0,	      1.0 / 6,	      1.0 / 120,       1.0 / 5040,
				1.0 / 362880, 1.0 / 39916800, 1.0 / 6227020800};

			s = s * z + f[k / 2];
		}
		c = 1.0 / 87178291200;
		for (int k = 12; k >= 0; k -= 2) {
			static const double f[] = {
				1.0,	     0.5,	    1.0 / 24,	    1.0 / 720,
				1.0 / 40320, 1.0 / 3628800, 1.0 / 479001600};

			c = c * z + f[k / 2];
		}
		t = y * s / c;
	} else {
		double e = (y > 20 ? 40 : 2 * y) * 0x1.71547652b82fep0;
		double n = (e + 0x1.8p52) - 0x1.8p52, f = (e - n) * 0x1.62e42fefa39efp-1, p = 1,
		       term = 1;

		for (int k = 1; k < 18; k++) {
			term *= f / k;
			p += term;
		}
		p *= sim_double((uint64_t)(1023 + (int64_t)n) << 52);
		t = 1 - 2 / (p + 1);
	}
	return (float)(sim_bits32(xf) >> 31 ? -t : t);
}
