/* SPDX-License-Identifier: MIT */
/*
 * f32 and f64 instructions of the engine: bits equal to the C library's under fesetround, to long
 * double functions rounded once for what the ISA calls approximate, NaN canonical.
 */
#include <fenv.h>
#include <math.h>

#include "tests/simunit/exec_kit.h"

enum { FTZ = 1, SAT = 2 };

static float f(uint64_t bits)
{
	uint32_t u = (uint32_t)bits;
	float x;

	memcpy(&x, &u, 4);
	return x;
}

static double g(uint64_t bits)
{
	double x;

	memcpy(&x, &bits, 8);
	return x;
}

static uint64_t fb(float x)
{
	uint32_t u;

	memcpy(&u, &x, 4);
	return isnan(x) ? 0x7fffffff : u;
}

static uint64_t gb(double x)
{
	uint64_t u;

	memcpy(&u, &x, 8);
	return isnan(x) ? 0x7fffffffffffffff : u;
}

static float flush(float x, int on)
{
	return on && fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x;
}

static uint64_t finish(float x, int flags)
{
	x = flush(x, flags & FTZ);
	if (flags & SAT)
		x = isnan(x) || x <= 0 ? 0 : x > 1 ? 1 : x;
	return fb(x);
}

/* The operation is done between two fesetround calls; volatile keeps it there. */
static uint64_t arith(char op, int mode, int flags, uint64_t a, uint64_t b, uint64_t c)
{
	volatile float x = flush(f(a), flags & FTZ), y = flush(f(b), flags & FTZ),
		       z = flush(f(c), flags & FTZ), r;

	fesetround(mode);
	switch (op) {
	case '+':
		r = x + y;
		break;
	case '-':
		r = x - y;
		break;
	case '*':
		r = x * y;
		break;
	case '/':
		r = x / y;
		break;
	case 'r':
		r = 1 / x;
		break;
	case 's':
		r = sqrtf(x);
		break;
	default:
		r = fmaf(x, y, z);
	}
	fesetround(FE_TONEAREST);
	return finish(r, flags);
}

static uint64_t arith64(char op, int mode, uint64_t a, uint64_t b, uint64_t c)
{
	volatile double x = g(a), y = g(b), z = g(c), r;

	fesetround(mode);
	switch (op) {
	case '+':
		r = x + y;
		break;
	case '-':
		r = x - y;
		break;
	case '*':
		r = x * y;
		break;
	case '/':
		r = x / y;
		break;
	case 'r':
		r = 1 / x;
		break;
	case 's':
		r = sqrt(x);
		break;
	default:
		r = fma(x, y, z);
	}
	fesetround(FE_TONEAREST);
	return gb(r);
}

static uint64_t minmax(int is_max, int nan_wins, int flags, uint64_t a, uint64_t b)
{
	float x = flush(f(a), flags & FTZ), y = flush(f(b), flags & FTZ);

	if (isnan(x) || isnan(y)) {
		if (nan_wins || (isnan(x) && isnan(y)))
			return 0x7fffffff;
		return fb(isnan(x) ? y : x);
	}
	if (x == y) /* zeros: the sign decides */
		return fb((signbit(x) != 0) == is_max ? y : x);
	return fb((x > y) == is_max ? x : y);
}

static uint64_t minmax64(int is_max, uint64_t a, uint64_t b)
{
	double x = g(a), y = g(b);

	if (isnan(x) || isnan(y))
		return gb(isnan(x) ? y : x);
	if (x == y)
		return gb((signbit(x) != 0) == is_max ? y : x);
	return gb((x > y) == is_max ? x : y);
}

static uint64_t approx(long double (*fn)(long double), int flags, uint64_t a)
{
	float x = flush(f(a), flags & FTZ);

	return finish((float)fn(x), flags);
}

static long double rsqrtl(long double x)
{
	return 1 / sqrtl(x);
}

/* less, equal, greater, unordered as four bits: each comparison is a set of them. */
static unsigned relation(double x, double y)
{
	return isunordered(x, y) ? 8 : x < y ? 1 : x == y ? 2 : 4;
}

static uint64_t cmp32(unsigned set, int flags, uint64_t a, uint64_t b)
{
	return (relation((double)flush(f(a), flags), (double)flush(f(b), flags)) & set) != 0;
}

static uint64_t cmp64(unsigned set, uint64_t a, uint64_t b)
{
	return (relation(g(a), g(b)) & set) != 0;
}

static uint64_t sign_of(uint64_t a, uint64_t b, unsigned bits)
{
	uint64_t top = 1ull << (bits - 1);

	return (a & top) | (b & ~top);
}

static uint64_t upper(uint64_t x)
{
	return x & 0xffffffff00000000ull;
}

static uint64_t flush64(uint64_t x)
{
	return fpclassify(g(x)) == FP_SUBNORMAL ? x & 1ull << 63 : x;
}

#define RN FE_TONEAREST
#define RZ FE_TOWARDZERO
#define RM FE_DOWNWARD
#define RP FE_UPWARD

/* clang-format off */
#define MODES(X, name, sig, op) \
	X(name ".rn.f32", sig, NULL, arith(op, RN, 0, a, b, c)) X(name ".rz.f32", sig, NULL, arith(op, RZ, 0, a, b, c)) \
	X(name ".rm.f32", sig, NULL, arith(op, RM, 0, a, b, c)) X(name ".rp.f32", sig, NULL, arith(op, RP, 0, a, b, c)) \
	X(name ".rn.ftz.f32", sig, NULL, arith(op, RN, FTZ, a, b, c)) X(name ".rz.ftz.f32", sig, NULL, arith(op, RZ, FTZ, a, b, c)) \
	X(name ".rm.ftz.f32", sig, NULL, arith(op, RM, FTZ, a, b, c)) X(name ".rp.ftz.f32", sig, NULL, arith(op, RP, FTZ, a, b, c))
#define SATS(X, name, sig, op) \
	X(name ".rn.sat.f32", sig, NULL, arith(op, RN, SAT, a, b, c)) X(name ".rz.ftz.sat.f32", sig, NULL, arith(op, RZ, FTZ | SAT, a, b, c))
#define PLAIN(X, name, sig, op) \
	X(name ".f32", sig, NULL, arith(op, RN, 0, a, b, c)) X(name ".ftz.f32", sig, NULL, arith(op, RN, FTZ, a, b, c)) \
	X(name ".sat.f32", sig, NULL, arith(op, RN, SAT, a, b, c)) X(name ".ftz.sat.f32", sig, NULL, arith(op, RN, FTZ | SAT, a, b, c)) \
	X(name ".f64", sig[0] == 'f' && sizeof sig == 4 ? "ggg" : "gggg", NULL, arith64(op, RN, a, b, c))
#define MODES64(X, name, sig, op) \
	X(name ".rn.f64", sig, NULL, arith64(op, RN, a, b, c)) X(name ".rz.f64", sig, NULL, arith64(op, RZ, a, b, c)) \
	X(name ".rm.f64", sig, NULL, arith64(op, RM, a, b, c)) X(name ".rp.f64", sig, NULL, arith64(op, RP, a, b, c))
#define APPROX(X, name, fn) \
	X(name ".approx.f32", "ff", NULL, approx(fn, 0, a)) X(name ".approx.ftz.f32", "ff", NULL, approx(fn, FTZ, a))
#define CMPS(X, T, sig, ...) \
	X("setp.eq." T, sig, NULL, CMP(2, __VA_ARGS__)) X("setp.ne." T, sig, NULL, CMP(5, __VA_ARGS__)) \
	X("setp.lt." T, sig, NULL, CMP(1, __VA_ARGS__)) X("setp.le." T, sig, NULL, CMP(3, __VA_ARGS__)) \
	X("setp.gt." T, sig, NULL, CMP(4, __VA_ARGS__)) X("setp.ge." T, sig, NULL, CMP(6, __VA_ARGS__)) \
	X("setp.equ." T, sig, NULL, CMP(10, __VA_ARGS__)) X("setp.neu." T, sig, NULL, CMP(13, __VA_ARGS__)) \
	X("setp.ltu." T, sig, NULL, CMP(9, __VA_ARGS__)) X("setp.leu." T, sig, NULL, CMP(11, __VA_ARGS__)) \
	X("setp.gtu." T, sig, NULL, CMP(12, __VA_ARGS__)) X("setp.geu." T, sig, NULL, CMP(14, __VA_ARGS__)) \
	X("setp.num." T, sig, NULL, CMP(7, __VA_ARGS__)) X("setp.nan." T, sig, NULL, CMP(8, __VA_ARGS__))
#define CMP(set, kind) CMP_##kind(set)
#define CMP_f32(set) cmp32(set, 0, a, b)
#define CMP_ftz(set) cmp32(set, FTZ, a, b)
#define CMP_f64(set) cmp64(set, a, b)

#define ALL(X) \
	PLAIN(X, "add", "fff", '+') PLAIN(X, "sub", "fff", '-') PLAIN(X, "mul", "fff", '*') \
	MODES(X, "add", "fff", '+') MODES(X, "sub", "fff", '-') MODES(X, "mul", "fff", '*') MODES(X, "fma", "ffff", 'f') \
	MODES(X, "mad", "ffff", 'f') MODES(X, "div", "fff", '/') MODES(X, "rcp", "ff", 'r') MODES(X, "sqrt", "ff", 's') \
	SATS(X, "add", "fff", '+') SATS(X, "sub", "fff", '-') SATS(X, "mul", "fff", '*') SATS(X, "fma", "ffff", 'f') \
	MODES64(X, "add", "ggg", '+') MODES64(X, "sub", "ggg", '-') MODES64(X, "mul", "ggg", '*') MODES64(X, "fma", "gggg", 'f') \
	MODES64(X, "mad", "gggg", 'f') MODES64(X, "div", "ggg", '/') MODES64(X, "rcp", "gg", 'r') MODES64(X, "sqrt", "gg", 's') \
	X("div.approx.f32", "fff", NULL, arith('/', RN, 0, a, b, c)) X("div.approx.ftz.f32", "fff", NULL, arith('/', RN, FTZ, a, b, c)) \
	X("div.full.f32", "fff", NULL, arith('/', RN, 0, a, b, c)) X("div.full.ftz.f32", "fff", NULL, arith('/', RN, FTZ, a, b, c)) \
	X("rcp.approx.f32", "ff", NULL, arith('r', RN, 0, a, b, c)) X("rcp.approx.ftz.f32", "ff", NULL, arith('r', RN, FTZ, a, b, c)) \
	X("sqrt.approx.f32", "ff", NULL, arith('s', RN, 0, a, b, c)) X("sqrt.approx.ftz.f32", "ff", NULL, arith('s', RN, FTZ, a, b, c)) \
	X("rcp.approx.ftz.f64", "gg", NULL, upper(flush64(arith64('r', RN, flush64(a), b, c)))) \
	X("rsqrt.approx.f64", "gg", NULL, gb(1 / sqrt(g(a)))) X("rsqrt.approx.ftz.f64", "gg", NULL, upper(gb(1 / sqrt(g(flush64(a)))))) \
	APPROX(X, "rsqrt", rsqrtl) APPROX(X, "ex2", exp2l) APPROX(X, "lg2", log2l) APPROX(X, "sin", sinl) APPROX(X, "cos", cosl) \
	X("tanh.approx.f32", "ff", NULL, approx(tanhl, 0, a)) \
	X("max.f32", "fff", NULL, minmax(1, 0, 0, a, b)) X("max.ftz.f32", "fff", NULL, minmax(1, 0, FTZ, a, b)) \
	X("max.NaN.f32", "fff", NULL, minmax(1, 1, 0, a, b)) X("max.ftz.NaN.f32", "fff", NULL, minmax(1, 1, FTZ, a, b)) \
	X("min.f32", "fff", NULL, minmax(0, 0, 0, a, b)) X("min.ftz.f32", "fff", NULL, minmax(0, 0, FTZ, a, b)) \
	X("min.NaN.f32", "fff", NULL, minmax(0, 1, 0, a, b)) X("min.ftz.NaN.f32", "fff", NULL, minmax(0, 1, FTZ, a, b)) \
	X("max.f64", "ggg", NULL, minmax64(1, a, b)) X("min.f64", "ggg", NULL, minmax64(0, a, b)) \
	X("abs.f32", "ff", NULL, fb(fabsf(f(a)))) X("abs.ftz.f32", "ff", NULL, fb(fabsf(flush(f(a), 1)))) X("abs.f64", "gg", NULL, gb(fabs(g(a)))) \
	X("neg.f32", "ff", NULL, fb(-f(a))) X("neg.ftz.f32", "ff", NULL, fb(-flush(f(a), 1))) X("neg.f64", "gg", NULL, gb(-g(a))) \
	X("copysign.f32", "fff", NULL, sign_of(a, b, 32)) X("copysign.f64", "ggg", NULL, sign_of(a, b, 64)) \
	X("selp.f32", "fffp", NULL, c ? a : b) X("selp.f64", "gggp", NULL, c ? a : b) \
	X("slct.f32.s32", "fffw", NULL, (int32_t)c >= 0 ? a : b) X("slct.u32.f32", "wwwf", NULL, f(c) >= 0 ? a : b) \
	X("slct.ftz.f32.f32", "ffff", NULL, flush(f(c), 1) >= 0 ? a : b) X("slct.f64.f32", "gggf", NULL, f(c) >= 0 ? a : b) \
	X("mov.f32", "ff", NULL, a) X("mov.f64", "gg", NULL, a) \
	X("{ mov.f32 %d, 0f3FC00000; add.f32 %d, %d, %x1; }", "ff", NULL, fb(f(a) + 1.5f)) \
	X("{ mov.f32 %d, 0.1; mul.f32 %d, %d, %x1; }", "ff", NULL, fb(f(a) * 0.1f)) \
	X("{ mov.f64 %d, 0dBFE0000000000000; mul.f64 %d, %d, %x1; }", "gg", NULL, gb(g(a) * -0.5)) \
	X("testp.finite.f32", "pf", NULL, isfinite(f(a))) X("testp.infinite.f32", "pf", NULL, isinf(f(a)) != 0) \
	X("testp.number.f32", "pf", NULL, !isnan(f(a))) X("testp.notanumber.f32", "pf", NULL, isnan(f(a))) \
	X("testp.normal.f32", "pf", NULL, isnormal(f(a))) X("testp.subnormal.f32", "pf", NULL, fpclassify(f(a)) == FP_SUBNORMAL) \
	X("testp.finite.f64", "pg", NULL, isfinite(g(a))) X("testp.infinite.f64", "pg", NULL, isinf(g(a)) != 0) \
	X("testp.number.f64", "pg", NULL, !isnan(g(a))) X("testp.notanumber.f64", "pg", NULL, isnan(g(a))) \
	X("testp.normal.f64", "pg", NULL, isnormal(g(a))) X("testp.subnormal.f64", "pg", NULL, fpclassify(g(a)) == FP_SUBNORMAL) \
	CMPS(X, "f32", "pff", f32) CMPS(X, "ftz.f32", "pff", ftz) CMPS(X, "f64", "pgg", f64) \
	X("setp.lt.or.ftz.f32", "pffp", NULL, cmp32(1, FTZ, a, b) || c) X("set.neu.f32.f32", "fff", NULL, cmp32(13, 0, a, b) ? 0x3f800000 : 0) \
	X("set.le.u32.f64", "wgg", NULL, cmp64(3, a, b) ? 0xffffffff : 0)
/* clang-format on */

#include "tests/simunit/exec_rows.h"
