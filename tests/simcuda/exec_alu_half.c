/* SPDX-License-Identifier: MIT */
/*
 * f16, f16x2, bf16 and bf16x2 arithmetic.
 *
 * A sum, product or quotient of halves computed in float and rounded again to half equals the
 * once-rounded result (24 >= 2 * 11 + 2 bits); fma needs sim_half_fma. bfloat16 has 8 bits, so
 * float holds its products exactly and the same argument serves sums; its fma goes through double.
 * .ftz flushes subnormal halves; .sat clamps to [0, 1].
 */
#include "tests/simcuda/exec_float.h"

typedef uint16_t u16;
typedef uint32_t u32;
typedef float f32;

enum half_op { ADD, SUB, MUL, FMA, MIN, MAX, MIN_NAN, MAX_NAN, NEG, ABS, FMA_RELU, EX2, TANH };

static inline u16 flush16(u16 h)
{
	return h & 0x7c00 ? h : h & 0x8000;
}

static inline int is_nan16(u16 h)
{
	return (h & 0x7fff) > 0x7c00;
}

static inline int is_nanbf(u16 h)
{
	return (h & 0x7fff) > 0x7f80;
}

/* IEEE order of two numbers, with -0 below +0; as the sign-magnitude integers they are. */
static inline int less16(u16 a, u16 b)
{
	int x = a & 0x8000 ? -(int)(a & 0x7fff) - 1 : a,
	    y = b & 0x8000 ? -(int)(b & 0x7fff) - 1 : b;

	return x < y;
}

static inline u16 pick16(enum half_op op, u16 a, u16 b, int nan_a, int nan_b)
{
	if (nan_a || nan_b) {
		if (op == MIN_NAN || op == MAX_NAN || (nan_a && nan_b))
			return SIM_NAN16;
		return nan_a ? b : a;
	}
	return less16(a, b) == (op == MIN || op == MIN_NAN) ? a : b;
}

static u16 half_one(enum half_op op, u16 a, u16 b, u16 c, unsigned flags)
{
	u16 r;

	if (flags & SIM_FTZ)
		a = flush16(a), b = flush16(b), c = flush16(c);
	switch (op) {
	case ADD:
		r = sim_float_to_half(sim_half_to_float(a) + sim_half_to_float(b), SIM_RN);
		break;
	case SUB:
		r = sim_float_to_half(sim_half_to_float(a) - sim_half_to_float(b), SIM_RN);
		break;
	case MUL:
		r = sim_float_to_half(sim_half_to_float(a) * sim_half_to_float(b), SIM_RN);
		break;
	case FMA:
	case FMA_RELU:
		r = sim_half_fma(a, b, c);
		break;
	case NEG:
		r = is_nan16(a) ? SIM_NAN16 : a ^ 0x8000;
		break;
	case ABS:
		r = is_nan16(a) ? SIM_NAN16 : a & 0x7fff;
		break;
	case EX2:
		r = sim_float_to_half(sim_ex2(sim_half_to_float(a)), SIM_RN);
		break;
	case TANH:
		r = sim_float_to_half(sim_tanh(sim_half_to_float(a)), SIM_RN);
		break;
	default:
		r = pick16(op, a, b, is_nan16(a), is_nan16(b));
	}
	if (flags & SIM_FTZ)
		r = flush16(r);
	if (flags & SIM_SAT)
		r = is_nan16(r) || r & 0x8000 ? 0 : r > 0x3c00 ? 0x3c00 : r;
	if (op == FMA_RELU && !is_nan16(r) && r & 0x8000)
		r = 0;
	return r;
}

/* a * b + c of bfloat16: exact product, the sum in double made sticky. */
static u16 bf_fma(u16 a, u16 b, u16 c)
{
	double p = (double)sim_bf16_to_float(a) * sim_bf16_to_float(b), z = sim_bf16_to_float(c);
	double s = p + z, bv = s - p, err = (p - (s - bv)) + (z - bv);
	uint64_t u = sim_bits64(s);

	if (s - s == 0 && err != 0 && !(u & 1))
		s = sim_double(u + ((err > 0) == (s > 0) ? 1 : (uint64_t)-1));
	return sim_float_to_bf16(sim_round_odd(s), SIM_RN);
}

static u16 bf_one(enum half_op op, u16 a, u16 b, u16 c, unsigned flags)
{
	f32 x = sim_bf16_to_float(a), y = sim_bf16_to_float(b);
	u16 r;

	(void)flags;
	switch (op) {
	case ADD:
		return sim_float_to_bf16(sim_round_odd((double)x + y), SIM_RN);
	case SUB:
		return sim_float_to_bf16(sim_round_odd((double)x - y), SIM_RN);
	case MUL:
		return sim_float_to_bf16(sim_round_odd((double)x * y), SIM_RN);
	case FMA:
		return bf_fma(a, b, c);
	case FMA_RELU:
		r = bf_fma(a, b, c);
		return !is_nanbf(r) && r & 0x8000 ? 0 : r;
	case NEG:
		return is_nanbf(a) ? SIM_NAN16 : a ^ 0x8000;
	case ABS:
		return is_nanbf(a) ? SIM_NAN16 : a & 0x7fff;
	case EX2:
		return sim_float_to_bf16(sim_ex2(x), SIM_RN);
	case TANH:
		return sim_float_to_bf16(sim_tanh(x), SIM_RN);
	default:
		return pick16(op, a, b, is_nanbf(a), is_nanbf(b));
	}
}

#define HALF_FN(name, one, op, halves)                                                             \
	static void name(const struct sim_uop *o, struct sim_warp *w)                              \
	{                                                                                          \
		u32 *d = SIM_REG(u32, w, o, 0);                                                    \
		const u32 *a = SIM_REG(u32, w, o, 1), *b = SIM_REG(u32, w, o, 2);                  \
		const u32 *c = SIM_REG(u32, w, o, 3);                                              \
                                                                                                   \
		for (int i = 0; i < SIM_LANES; i++) {                                              \
			u32 r = one(op, (u16)a[i], (u16)b[i], (u16)c[i], o->flags);                \
                                                                                                   \
			if (halves == 2)                                                           \
				r |= (u32)one(op, (u16)(a[i] >> 16), (u16)(b[i] >> 16),            \
					      (u16)(c[i] >> 16), o->flags)                         \
				     << 16;                                                        \
			d[i] = w->lanes[i] ? r : d[i];                                             \
		}                                                                                  \
	}

/* clang-format off */
#define HALF_OPS(X) \
	X("add rn? ftz? sat? f16", "hhh", ADD, half, 1) \
	X("sub rn? ftz? sat? f16", "hhh", SUB, half, 1) \
	X("mul rn? ftz? sat? f16", "hhh", MUL, half, 1) \
	X("fma rn ftz? sat? f16", "hhhh", FMA, half, 1) \
	X("fma rn ftz? relu f16", "hhhh", FMA_RELU, half, 1) \
	X("min ftz? f16", "hhh", MIN, half, 1) \
	X("max ftz? f16", "hhh", MAX, half, 1) \
	X("min ftz? NaN f16", "hhh", MIN_NAN, half, 1) \
	X("max ftz? NaN f16", "hhh", MAX_NAN, half, 1) \
	X("neg ftz? f16", "hh", NEG, half, 1) \
	X("abs ftz? f16", "hh", ABS, half, 1) \
	X("ex2 approx f16", "hh", EX2, half, 1) \
	X("tanh approx f16", "hh", TANH, half, 1) \
	X("add rn? ftz? sat? f16x2", "www", ADD, half, 2) \
	X("sub rn? ftz? sat? f16x2", "www", SUB, half, 2) \
	X("mul rn? ftz? sat? f16x2", "www", MUL, half, 2) \
	X("fma rn ftz? sat? f16x2", "wwww", FMA, half, 2) \
	X("fma rn ftz? relu f16x2", "wwww", FMA_RELU, half, 2) \
	X("min ftz? f16x2", "www", MIN, half, 2) \
	X("max ftz? f16x2", "www", MAX, half, 2) \
	X("min ftz? NaN f16x2", "www", MIN_NAN, half, 2) \
	X("max ftz? NaN f16x2", "www", MAX_NAN, half, 2) \
	X("neg ftz? f16x2", "ww", NEG, half, 2) \
	X("abs ftz? f16x2", "ww", ABS, half, 2) \
	X("ex2 approx f16x2", "ww", EX2, half, 2) \
	X("tanh approx f16x2", "ww", TANH, half, 2) \
	X("add rn? bf16", "hhh", ADD, bf, 1) \
	X("sub rn? bf16", "hhh", SUB, bf, 1) \
	X("mul rn? bf16", "hhh", MUL, bf, 1) \
	X("fma rn bf16", "hhhh", FMA, bf, 1) \
	X("fma rn relu bf16", "hhhh", FMA_RELU, bf, 1) \
	X("min bf16", "hhh", MIN, bf, 1) \
	X("max bf16", "hhh", MAX, bf, 1) \
	X("min NaN bf16", "hhh", MIN_NAN, bf, 1) \
	X("max NaN bf16", "hhh", MAX_NAN, bf, 1) \
	X("neg bf16", "hh", NEG, bf, 1) \
	X("abs bf16", "hh", ABS, bf, 1) \
	X("ex2 approx ftz bf16", "hh", EX2, bf, 1) \
	X("tanh approx bf16", "hh", TANH, bf, 1) \
	X("add rn? bf16x2", "www", ADD, bf, 2) \
	X("sub rn? bf16x2", "www", SUB, bf, 2) \
	X("mul rn? bf16x2", "www", MUL, bf, 2) \
	X("fma rn bf16x2", "wwww", FMA, bf, 2) \
	X("fma rn relu bf16x2", "wwww", FMA_RELU, bf, 2) \
	X("min bf16x2", "www", MIN, bf, 2) \
	X("max bf16x2", "www", MAX, bf, 2) \
	X("min NaN bf16x2", "www", MIN_NAN, bf, 2) \
	X("max NaN bf16x2", "www", MAX_NAN, bf, 2) \
	X("neg bf16x2", "ww", NEG, bf, 2) \
	X("abs bf16x2", "ww", ABS, bf, 2)
/* clang-format on */

#define X(pattern, sig, op, fmt, n) HALF_FN(fmt##_##op##_##n, fmt##_one, op, n)
HALF_OPS(X)
#undef X

const struct sim_form sim_forms_half[] = {
#define X(pattern, sig, op, fmt, n) {pattern, sig, {fmt##_##op##_##n, fmt##_##op##_##n}, NULL},
	HALF_OPS(X)
#undef X
};
const unsigned sim_nforms_half = sizeof sim_forms_half / sizeof *sim_forms_half;
