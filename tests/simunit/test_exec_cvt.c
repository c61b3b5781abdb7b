/* SPDX-License-Identifier: MIT */
/*
 * cvt and the half-precision formats, against an exact reference: values in 113-bit floating point,
 * rounding by search among the numbers of the target format.
 */
#include <math.h>

#include "tests/simunit/exec_kit.h"

typedef __float128 quad;

enum mode { RN, RZ, RM, RP, RNA };
enum { FTZ = 1, SAT = 2, RELU = 4 };

/* A binary format: bits of exponent and mantissa. */
struct format {
	unsigned exp, man;
};

static const struct format half = {5, 10}, bfloat = {8, 7}, single = {8, 23}, dbl = {11, 52},
			   tf32 = {8, 10};

static unsigned width(struct format t)
{
	return 1 + t.exp + t.man;
}

static uint64_t inf_of(struct format t)
{
	return ((1ull << t.exp) - 1) << t.man;
}

static quad pow2(int e)
{
	return e < -1000 ? (quad)ldexp(1, -1000) * ldexp(1, e + 1000) : (quad)ldexp(1, e);
}

/* The value of a finite magnitude. */
static quad magnitude(struct format t, uint64_t bits)
{
	int bias = (1 << (t.exp - 1)) - 1, e = (int)(bits >> t.man);
	uint64_t m = bits & ((1ull << t.man) - 1);

	if (!e)
		return (quad)m * pow2(1 - bias - (int)t.man);
	return (quad)(m | 1ull << t.man) * pow2(e - bias - (int)t.man);
}

enum kind { FINITE, INFINITE, NOT_A_NUMBER };

struct number {
	enum kind kind;
	int negative;
	quad value; /* magnitude */
};

static struct number decode(struct format t, uint64_t bits, int ftz)
{
	struct number n = {FINITE, (int)(bits >> (width(t) - 1) & 1), 0};
	uint64_t mag = bits & ((1ull << (width(t) - 1)) - 1);

	if (mag >= inf_of(t)) {
		n.kind = mag > inf_of(t) ? NOT_A_NUMBER : INFINITE;
		return n;
	}
	if (ftz && !(mag >> t.man))
		mag = 0;
	n.value = magnitude(t, mag);
	return n;
}

static uint64_t canonical_nan(struct format t)
{
	return (1ull << (width(t) - 1)) - 1;
}

/* Round to the nearest numbers of the format, found by bisection over their bit patterns. */
static uint64_t encode(struct format t, struct number n, enum mode mode)
{
	uint64_t lo = 0, hi = inf_of(t), sign = (uint64_t)n.negative << (width(t) - 1);
	quad below, above;
	int up;

	if (n.kind == NOT_A_NUMBER)
		return canonical_nan(t);
	if (n.kind == INFINITE)
		return sign | hi;
	while (hi - lo > 1) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (magnitude(t, mid) <= n.value)
			lo = mid;
		else
			hi = mid;
	}
	below = magnitude(t, lo);
	/* what stands for infinity when rounding to nearest: the number after the largest */
	above = magnitude(t, hi);
	if (below == n.value)
		return sign | lo;
	switch (mode) {
	case RN:
		up = n.value - below > above - n.value ||
		     (n.value - below == above - n.value && lo & 1);
		break;
	case RNA:
		up = n.value - below >= above - n.value;
		break;
	case RZ:
		up = 0;
		break;
	default:
		up = n.negative == (mode == RM);
	}
	return sign | (up ? hi : lo);
}

static quad floor_of(quad v)
{
	quad whole = 0;

	if (v >= pow2(112))
		return v;
	for (int e = 112; e >= 0; e--)
		if (v - whole >= pow2(e))
			whole += pow2(e);
	return whole;
}

static struct number integral(struct number n, enum mode mode)
{
	quad whole, rest;
	int up = 0;

	if (n.kind != FINITE)
		return n;
	whole = floor_of(n.value);
	rest = n.value - whole;
	if (mode == RN)
		up = rest > 0.5Q || (rest == 0.5Q && floor_of(whole / 2) * 2 != whole);
	else if (mode != RZ)
		up = rest > 0 && n.negative == (mode == RM);
	n.value = whole + up;
	return n;
}

static struct number saturate(struct number n)
{
	if (n.kind == NOT_A_NUMBER || n.negative)
		return (struct number){FINITE, 0, 0};
	if (n.kind == INFINITE || n.value > 1)
		return (struct number){FINITE, 0, 1};
	return n;
}

static uint64_t flush_bits(struct format t, uint64_t bits)
{
	uint64_t mag = bits & ((1ull << (width(t) - 1)) - 1);

	return mag >> t.man ? bits : bits & 1ull << (width(t) - 1);
}

/* float to float: `whole` rounds to an integer first */
static uint64_t ff(struct format s, struct format d, enum mode mode, int whole, int flags,
		   uint64_t a)
{
	struct number n = decode(s, a, flags & FTZ && s.man == 23 && s.exp == 8);
	uint64_t r;

	if (whole)
		n = integral(n, mode);
	if (flags & SAT)
		n = saturate(n);
	if (flags & RELU && n.negative && n.kind != NOT_A_NUMBER)
		n = (struct number){FINITE, 0, 0};
	r = encode(d, n, mode);
	return flags & FTZ && d.man == 23 ? flush_bits(d, r) : r;
}

static uint64_t fi(struct format s, unsigned bits, int is_signed, enum mode mode, int flags,
		   uint64_t a)
{
	struct number n = integral(decode(s, a, flags & FTZ), mode);
	quad hi = pow2((int)bits - is_signed) - 1, lo = is_signed ? pow2((int)bits - 1) : 0;
	uint64_t mag;

	if (n.kind == NOT_A_NUMBER)
		return s.exp == 11 || bits == 64 ? (is_signed ? ~0ull : 1ull) << (bits - 1) : 0;
	if (n.kind == INFINITE || n.value > (n.negative ? lo : hi))
		n.value = n.negative ? lo : hi;
	mag = (uint64_t)n.value;
	return n.negative ? 0 - mag : mag;
}

static struct number of_int(uint64_t a, unsigned bits, int is_signed)
{
	uint64_t v = bits == 64 ? a : a & ((1ull << bits) - 1);
	int negative = is_signed && v >> (bits - 1);

	if (negative)
		v = 0 - (v | (bits == 64 ? 0 : ~0ull << bits));
	return (struct number){FINITE, negative, (quad)v};
}

static uint64_t if_(unsigned bits, int is_signed, struct format d, enum mode mode, int flags,
		    uint64_t a)
{
	struct number n = of_int(a, bits, is_signed);

	return encode(d, flags & SAT ? saturate(n) : n, mode);
}

static uint64_t ii(unsigned sbits, int ssigned, unsigned dbits, int dsigned, int sat, uint64_t a)
{
	struct number n = of_int(a, sbits, ssigned);
	quad hi = pow2((int)dbits - dsigned) - 1, lo = dsigned ? pow2((int)dbits - 1) : 0;
	uint64_t mag;

	if (sat && n.value > (n.negative ? lo : hi))
		n.value = n.negative ? lo : hi;
	mag = (uint64_t)n.value;
	mag = n.negative ? 0 - mag : mag;
	if (dbits < 64) {
		mag &= (1ull << dbits) - 1;
		if (dsigned && mag >> (dbits - 1))
			mag |= ~0ull << dbits;
	}
	return mag;
}

/* ---- arithmetic of half and bfloat ---- */

static quad value(struct number n)
{
	return n.negative ? -n.value : n.value;
}

/* x + y; what does not fit in 113 bits becomes a last bit beyond every format of the test. */
static quad sticky_sum(quad x, quad y)
{
	quad s = x + y, part = s - x, err = (x - (s - part)) + (y - part);

	if (err == 0)
		return s;
	return (err > 0) == (s > 0) ? s + s * pow2(-110) : s - s * pow2(-110);
}

static struct number of_quad(quad v, int negative_zero)
{
	return (struct number){FINITE, v < 0 || (v == 0 && negative_zero), v < 0 ? -v : v};
}

/* a * b + c rounded once; special operands by the rules of IEEE 754. */
static uint64_t fma_in(struct format t, uint64_t a, uint64_t b, uint64_t c, int flags)
{
	struct number x = decode(t, a, flags & FTZ), y = decode(t, b, flags & FTZ),
		      z = decode(t, c, flags & FTZ), r;
	int sign = x.negative ^ y.negative;
	uint64_t bits;

	if (x.kind == NOT_A_NUMBER || y.kind == NOT_A_NUMBER || z.kind == NOT_A_NUMBER ||
	    (x.kind == INFINITE && y.kind == FINITE && y.value == 0) ||
	    (y.kind == INFINITE && x.kind == FINITE && x.value == 0))
		r.kind = NOT_A_NUMBER;
	else if (x.kind == INFINITE || y.kind == INFINITE)
		r = (struct number){z.kind == INFINITE && z.negative != sign ? NOT_A_NUMBER
									     : INFINITE,
				    sign, 0};
	else if (z.kind == INFINITE)
		r = z;
	else
		r = of_quad(sticky_sum(value(x) * value(y), value(z)),
			    sign && z.negative && (x.value == 0 || y.value == 0) && z.value == 0);
	bits = encode(t, r, RN);
	if (flags & FTZ)
		bits = flush_bits(t, bits);
	if (flags & SAT)
		bits = encode(t, saturate(decode(t, bits, 0)), RN);
	if (flags & RELU && decode(t, bits, 0).negative && r.kind != NOT_A_NUMBER)
		bits = 0;
	return bits;
}

static uint64_t add_in(struct format t, uint64_t a, uint64_t b, int flags)
{
	return fma_in(t, a, t.exp == 5 ? 0x3c00 : 0x3f80, b, flags);
}

/* The sum's zero must have the sign of the product: add a zero of that sign. */
static uint64_t mul_in(struct format t, uint64_t a, uint64_t b, int flags)
{
	uint64_t negative_zero = ((a ^ b) >> (width(t) - 1) & 1) << (width(t) - 1);

	return fma_in(t, a, b, negative_zero, flags);
}

static uint64_t sub_in(struct format t, uint64_t a, uint64_t b, int flags)
{
	int nan = decode(t, b, 0).kind == NOT_A_NUMBER;

	return add_in(t, a, nan ? b : b ^ 1ull << (width(t) - 1), flags);
}

static uint64_t minmax_in(struct format t, int is_max, int nan_wins, uint64_t a, uint64_t b)
{
	struct number x = decode(t, a, 0), y = decode(t, b, 0);
	int x_less;

	if (x.kind == NOT_A_NUMBER || y.kind == NOT_A_NUMBER) {
		if (nan_wins || x.kind == y.kind)
			return canonical_nan(t);
		return x.kind == NOT_A_NUMBER ? b : a;
	}
	if (x.kind == INFINITE)
		x.value = pow2(200);
	if (y.kind == INFINITE)
		y.value = pow2(200);
	x_less = value(x) == value(y) ? x.negative && !y.negative : value(x) < value(y);
	return x_less == !is_max ? a : b;
}

static uint64_t sign_in(struct format t, uint64_t a, int negate)
{
	uint64_t top = 1ull << (width(t) - 1);

	if (decode(t, a, 0).kind == NOT_A_NUMBER)
		return canonical_nan(t);
	return negate ? a ^ top : a & ~top;
}

static unsigned relation(struct format t, uint64_t a, uint64_t b)
{
	struct number x = decode(t, a, 0), y = decode(t, b, 0);

	if (x.kind == NOT_A_NUMBER || y.kind == NOT_A_NUMBER)
		return 8;
	if (x.kind == INFINITE)
		x.value = pow2(200);
	if (y.kind == INFINITE)
		y.value = pow2(200);
	return value(x) < value(y) ? 1 : value(x) == value(y) ? 2 : 4;
}

#define LO(x) ((x)&0xffff)
#define HI(x) ((x) >> 16 & 0xffff)

/* clang-format off */
/* integer to integer: from every register width to every type */
#define II(X, S, sl, sb, ss) \
	X("cvt.u8." S, "w" sl, NULL, ii(sb, ss, 8, 0, 0, a)) X("cvt.s8." S, "w" sl, NULL, ii(sb, ss, 8, 1, 0, a)) \
	X("cvt.u16." S, "h" sl, NULL, ii(sb, ss, 16, 0, 0, a)) X("cvt.s16." S, "w" sl, NULL, ii(sb, ss, 16, 1, 0, a)) \
	X("cvt.u32." S, "w" sl, NULL, ii(sb, ss, 32, 0, 0, a)) X("cvt.s32." S, "w" sl, NULL, ii(sb, ss, 32, 1, 0, a)) \
	X("cvt.u64." S, "d" sl, NULL, ii(sb, ss, 64, 0, 0, a)) X("cvt.s64." S, "d" sl, NULL, ii(sb, ss, 64, 1, 0, a)) \
	X("cvt.sat.u8." S, "w" sl, NULL, ii(sb, ss, 8, 0, 1, a)) X("cvt.sat.s8." S, "w" sl, NULL, ii(sb, ss, 8, 1, 1, a)) \
	X("cvt.sat.u16." S, "h" sl, NULL, ii(sb, ss, 16, 0, 1, a)) X("cvt.sat.s16." S, "h" sl, NULL, ii(sb, ss, 16, 1, 1, a)) \
	X("cvt.sat.u32." S, "w" sl, NULL, ii(sb, ss, 32, 0, 1, a)) X("cvt.sat.s32." S, "w" sl, NULL, ii(sb, ss, 32, 1, 1, a)) \
	X("cvt.sat.u64." S, "d" sl, NULL, ii(sb, ss, 64, 0, 1, a)) X("cvt.sat.s64." S, "d" sl, NULL, ii(sb, ss, 64, 1, 1, a)) \
	IF(X, "f32", "f", single, S, sl, sb, ss) IF(X, "f64", "g", dbl, S, sl, sb, ss) IF(X, "f16", "x", half, S, sl, sb, ss)
#define IF(X, D, dl, df, S, sl, sb, ss) \
	X("cvt.rn." D "." S, dl sl, NULL, if_(sb, ss, df, RN, 0, a)) X("cvt.rz." D "." S, dl sl, NULL, if_(sb, ss, df, RZ, 0, a)) \
	X("cvt.rm." D "." S, dl sl, NULL, if_(sb, ss, df, RM, 0, a)) X("cvt.rp." D "." S, dl sl, NULL, if_(sb, ss, df, RP, 0, a))
#define FI1(X, S, sl, sf, D, dl, db, ds) \
	X("cvt.rni." D "." S, dl sl, NULL, fi(sf, db, ds, RN, 0, a)) X("cvt.rzi." D "." S, dl sl, NULL, fi(sf, db, ds, RZ, 0, a)) \
	X("cvt.rmi." D "." S, dl sl, NULL, fi(sf, db, ds, RM, 0, a)) X("cvt.rpi." D "." S, dl sl, NULL, fi(sf, db, ds, RP, 0, a))
#define FI(X, S, sl, sf) \
	FI1(X, S, sl, sf, "u16", "h", 16, 0) FI1(X, S, sl, sf, "s16", "h", 16, 1) FI1(X, S, sl, sf, "u32", "w", 32, 0) \
	FI1(X, S, sl, sf, "s32", "w", 32, 1) FI1(X, S, sl, sf, "u64", "d", 64, 0) FI1(X, S, sl, sf, "s64", "d", 64, 1) \
	FI1(X, S, sl, sf, "u8", "w", 8, 0) FI1(X, S, sl, sf, "s8", "w", 8, 1)
#define WHOLE(X, T, l, t) \
	X("cvt.rni." T "." T, l l, NULL, ff(t, t, RN, 1, 0, a)) X("cvt.rzi." T "." T, l l, NULL, ff(t, t, RZ, 1, 0, a)) \
	X("cvt.rmi." T "." T, l l, NULL, ff(t, t, RM, 1, 0, a)) X("cvt.rpi." T "." T, l l, NULL, ff(t, t, RP, 1, 0, a)) \
	X("cvt." T "." T, l l, NULL, ff(t, t, RN, 0, 0, a)) X("cvt.sat." T "." T, l l, NULL, ff(t, t, RN, 0, SAT, a))
#define NARROW(X, D, dl, df, S, sl, sf) \
	X("cvt.rn." D "." S, dl sl, NULL, ff(sf, df, RN, 0, 0, a)) X("cvt.rz." D "." S, dl sl, NULL, ff(sf, df, RZ, 0, 0, a)) \
	X("cvt.rm." D "." S, dl sl, NULL, ff(sf, df, RM, 0, 0, a)) X("cvt.rp." D "." S, dl sl, NULL, ff(sf, df, RP, 0, 0, a))
#define CONVERT(X) \
	II(X, "u8", "h", 8, 0) II(X, "s8", "h", 8, 1) II(X, "u16", "h", 16, 0) II(X, "s16", "h", 16, 1) \
	II(X, "u32", "w", 32, 0) II(X, "s32", "w", 32, 1) II(X, "u64", "d", 64, 0) II(X, "s64", "d", 64, 1) \
	FI(X, "f16", "x", half) FI(X, "f32", "f", single) FI(X, "f64", "g", dbl) \
	WHOLE(X, "f16", "x", half) WHOLE(X, "f32", "f", single) WHOLE(X, "f64", "g", dbl) \
	NARROW(X, "f32", "f", single, "f64", "g", dbl) NARROW(X, "f16", "x", half, "f32", "f", single) \
	NARROW(X, "f16", "x", half, "f64", "g", dbl) NARROW(X, "bf16", "y", bfloat, "f32", "f", single) \
	X("cvt.f32.f16", "fx", NULL, ff(half, single, RN, 0, 0, a)) X("cvt.f64.f16", "gx", NULL, ff(half, dbl, RN, 0, 0, a)) \
	X("cvt.f64.f32", "gf", NULL, ff(single, dbl, RN, 0, 0, a)) X("cvt.ftz.f64.f32", "gf", NULL, ff(single, dbl, RN, 0, FTZ, a)) \
	X("cvt.f32.bf16", "fy", NULL, ff(bfloat, single, RN, 0, 0, a)) \
	X("cvt.rn.ftz.f32.f64", "fg", NULL, ff(dbl, single, RN, 0, FTZ, a)) X("cvt.rn.sat.f32.f64", "fg", NULL, ff(dbl, single, RN, 0, SAT, a)) \
	X("cvt.ftz.f32.f32", "ff", NULL, ff(single, single, RN, 0, FTZ, a)) X("cvt.ftz.sat.f32.f32", "ff", NULL, ff(single, single, RN, 0, FTZ | SAT, a)) \
	X("cvt.rmi.ftz.f32.f32", "ff", NULL, ff(single, single, RM, 1, FTZ, a)) X("cvt.rzi.ftz.s32.f32", "wf", NULL, fi(single, 32, 1, RZ, FTZ, a)) \
	X("cvt.rpi.ftz.u32.f32", "wf", NULL, fi(single, 32, 0, RP, FTZ, a)) X("cvt.rzi.sat.s32.f32", "wf", NULL, fi(single, 32, 1, RZ, 0, a)) \
	X("cvt.rn.sat.f32.s32", "fw", NULL, if_(32, 1, single, RN, SAT, a)) X("cvt.rn.relu.f16.f32", "xf", NULL, ff(single, half, RN, 0, RELU, a)) \
	X("cvt.rna.tf32.f32", "wf", NULL, ff(single, tf32, RNA, 0, 0, a) == canonical_nan(tf32) ? 0x7fffffff : ff(single, tf32, RNA, 0, 0, a) << 13) \
	X("cvt.rn.f16x2.f32", "wff", NULL, ff(single, half, RN, 0, 0, a) << 16 | ff(single, half, RN, 0, 0, b)) \
	X("cvt.rz.bf16x2.f32", "wff", NULL, ff(single, bfloat, RZ, 0, 0, a) << 16 | ff(single, bfloat, RZ, 0, 0, b)) \
	X("{ .reg .b64 %e; cvt.s8.s32 %e, %x1; mov.b64 %d, %e; }", "dw", NULL, (uint64_t)(int64_t)(int8_t)a) \
	X("{ .reg .b64 %e; cvt.u16.s64 %e, %x1; mov.b64 %d, %e; }", "dd", NULL, a & 0xffff)

#define ARITH(X, T, l, t) \
	X("add." T, l l l, NULL, add_in(t, a, b, 0)) X("add.rn." T, l l l, NULL, add_in(t, a, b, 0)) X("sub." T, l l l, NULL, sub_in(t, a, b, 0)) \
	X("mul." T, l l l, NULL, mul_in(t, a, b, 0)) X("fma.rn." T, l l l l, NULL, fma_in(t, a, b, c, 0)) X("fma.rn.relu." T, l l l l, NULL, fma_in(t, a, b, c, RELU)) \
	X("max." T, l l l, NULL, minmax_in(t, 1, 0, a, b)) X("min." T, l l l, NULL, minmax_in(t, 0, 0, a, b)) \
	X("max.NaN." T, l l l, NULL, minmax_in(t, 1, 1, a, b)) X("min.NaN." T, l l l, NULL, minmax_in(t, 0, 1, a, b)) \
	X("neg." T, l l, NULL, sign_in(t, a, 1)) X("abs." T, l l, NULL, sign_in(t, a, 0)) \
	X("setp.eq." T, "p" l l, NULL, relation(t, a, b) == 2) X("setp.ltu." T, "p" l l, NULL, (relation(t, a, b) & 9) != 0) \
	X("setp.ge." T, "p" l l, NULL, (relation(t, a, b) & 6) != 0) X("setp.nan." T, "p" l l, NULL, relation(t, a, b) == 8)
#define PAIRS(X, T, t) \
	X("add." T, "www", NULL, add_in(t, HI(a), HI(b), 0) << 16 | add_in(t, LO(a), LO(b), 0)) \
	X("sub." T, "www", NULL, sub_in(t, HI(a), HI(b), 0) << 16 | sub_in(t, LO(a), LO(b), 0)) \
	X("mul." T, "www", NULL, mul_in(t, HI(a), HI(b), 0) << 16 | mul_in(t, LO(a), LO(b), 0)) \
	X("fma.rn." T, "wwww", NULL, fma_in(t, HI(a), HI(b), HI(c), 0) << 16 | fma_in(t, LO(a), LO(b), LO(c), 0)) \
	X("max." T, "www", NULL, minmax_in(t, 1, 0, HI(a), HI(b)) << 16 | minmax_in(t, 1, 0, LO(a), LO(b))) \
	X("neg." T, "ww", NULL, sign_in(t, HI(a), 1) << 16 | sign_in(t, LO(a), 1))
#define HALVES(X) \
	ARITH(X, "f16", "x", half) ARITH(X, "bf16", "y", bfloat) PAIRS(X, "f16x2", half) PAIRS(X, "bf16x2", bfloat) \
	X("add.ftz.f16", "xxx", NULL, add_in(half, a, b, FTZ)) X("mul.sat.f16", "xxx", NULL, mul_in(half, a, b, SAT)) \
	X("fma.rn.ftz.sat.f16", "xxxx", NULL, fma_in(half, a, b, c, FTZ | SAT)) X("sub.ftz.sat.f16x2", "www", NULL, sub_in(half, HI(a), HI(b), FTZ | SAT) << 16 | sub_in(half, LO(a), LO(b), FTZ | SAT))
/* clang-format on */

#define ALL(X) CONVERT(X) HALVES(X)

#include "tests/simunit/exec_rows.h"
