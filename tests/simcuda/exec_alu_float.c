/* SPDX-License-Identifier: MIT */
/*
 * f32 and f64 arithmetic.
 *
 * What compilers emit (.rn with and without .ftz) has vector loops; every other combination of
 * rounding, .ftz and .sat goes through one general loop per operation that computes in the directed
 * mode in hardware and applies the modifiers from the flags. NaN results are canonical; min and max
 * return the operand that is a number, and order -0 below +0.
 */
#include "tests/simcuda/exec_float.h"

typedef uint32_t u32;
typedef uint64_t u64;
typedef float f32;
typedef double f64;

#define C(x)	 sim_canon(x)
#define D(x)	 sim_canon64(x)
#define Z(x)	 sim_ftz(x)
#define CZ(x)	 sim_ftz(sim_canon(x))
#define SAT(x)	 sim_sat(x)
#define FMA	 __builtin_fmaf
#define SQRT	 __builtin_sqrtf
#define RSQRT(x) ((f32)(1.0 / __builtin_sqrt((double)(x))))

static inline f32 max32(f32 a, f32 b)
{
	f32 r = a > b || b != b ? a : b;

	r = a == b ? sim_float(sim_bits32(a) & sim_bits32(b)) : r;
	return C(r);
}

static inline f32 min32(f32 a, f32 b)
{
	f32 r = a < b || b != b ? a : b;

	r = a == b ? sim_float(sim_bits32(a) | sim_bits32(b)) : r;
	return C(r);
}

static inline f64 max64(f64 a, f64 b)
{
	f64 r = a > b || b != b ? a : b;

	r = a == b ? sim_double(sim_bits64(a) & sim_bits64(b)) : r;
	return D(r);
}

static inline f64 min64(f64 a, f64 b)
{
	f64 r = a < b || b != b ? a : b;

	r = a == b ? sim_double(sim_bits64(a) | sim_bits64(b)) : r;
	return D(r);
}

#define NAN_IF(a, b, x)	 ((a) != (a) || (b) != (b) ? sim_float(SIM_NAN32) : (x))
#define ABS32(x)	 C(sim_float(sim_bits32(x) & 0x7fffffff))
#define NEG32(x)	 C(sim_float(sim_bits32(x) ^ 0x80000000))
#define ABS64(x)	 D(sim_double(sim_bits64(x) & ~(1ull << 63)))
#define NEG64(x)	 D(sim_double(sim_bits64(x) ^ 1ull << 63))
#define COPYSIGN32(a, b) sim_float((sim_bits32(a) & 0x80000000) | (sim_bits32(b) & 0x7fffffff))
#define COPYSIGN64(a, b) sim_double((sim_bits64(a) & 1ull << 63) | (sim_bits64(b) & ~(1ull << 63)))
/* .approx.f64 delivers the upper word of the double only */
#define HI64(x) sim_double(sim_bits64(x) & 0xffffffff00000000ull)
#define FTZ64(x)                                                                                   \
	sim_double(sim_bits64(x) & 0x7ff0000000000000ull ? sim_bits64(x)                           \
							 : sim_bits64(x) & 1ull << 63)

/* clang-format off */
#define FLOAT_OPS(X) \
	X("fma rn f32", "ffff", fma_f32, f32, f32, f32, f32, C(FMA(a, b, c))) \
	X("fma rn ftz f32", "ffff", fma_ftz, f32, f32, f32, f32, CZ(FMA(Z(a), Z(b), Z(c)))) \
	X("fma rn f64", "gggg", fma_f64, f64, f64, f64, f64, D(__builtin_fma(a, b, c))) \
	X("mad f32", "ffff", mad_f32, f32, f32, f32, f32, C(FMA(a, b, c))) \
	X("add rn? f32", "fff", add_f32, f32, f32, f32, f32, C(a + b)) \
	X("add rn? ftz f32", "fff", add_ftz, f32, f32, f32, f32, CZ(Z(a) + Z(b))) \
	X("add rn? f64", "ggg", add_f64, f64, f64, f64, f64, D(a + b)) \
	X("sub rn? f32", "fff", sub_f32, f32, f32, f32, f32, C(a - b)) \
	X("sub rn? ftz f32", "fff", sub_ftz, f32, f32, f32, f32, CZ(Z(a) - Z(b))) \
	X("sub rn? f64", "ggg", sub_f64, f64, f64, f64, f64, D(a - b)) \
	X("mul rn? f32", "fff", mul_f32, f32, f32, f32, f32, C(a * b)) \
	X("mul rn? ftz f32", "fff", mul_ftz, f32, f32, f32, f32, CZ(Z(a) * Z(b))) \
	X("mul rn? f64", "ggg", mul_f64, f64, f64, f64, f64, D(a * b)) \
	X("div rn|approx|full f32", "fff", div_f32, f32, f32, f32, f32, C(a / b)) \
	X("div rn|approx|full ftz f32", "fff", div_ftz, f32, f32, f32, f32, CZ(Z(a) / Z(b))) \
	X("div rn f64", "ggg", div_f64, f64, f64, f64, f64, D(a / b)) \
	X("rcp rn|approx f32", "ff", rcp_f32, f32, f32, f32, f32, C(1 / a)) \
	X("rcp rn|approx ftz f32", "ff", rcp_ftz, f32, f32, f32, f32, CZ(1 / Z(a))) \
	X("rcp rn f64", "gg", rcp_f64, f64, f64, f64, f64, D(1 / a)) \
	X("rcp approx ftz f64", "gg", rcp_a64, f64, f64, f64, f64, HI64(FTZ64(D(1 / FTZ64(a))))) \
	X("sqrt rn|approx f32", "ff", sqrt_f32, f32, f32, f32, f32, C(SQRT(a))) \
	X("sqrt rn|approx ftz f32", "ff", sqrt_ftz, f32, f32, f32, f32, CZ(SQRT(Z(a)))) \
	X("sqrt rn f64", "gg", sqrt_f64, f64, f64, f64, f64, D(__builtin_sqrt(a))) \
	X("rsqrt approx f32", "ff", rsqrt_f32, f32, f32, f32, f32, C(RSQRT(a))) \
	X("rsqrt approx ftz f32", "ff", rsqrt_ftz, f32, f32, f32, f32, CZ(RSQRT(Z(a)))) \
	X("rsqrt approx f64", "gg", rsqrt_f64, f64, f64, f64, f64, D(1 / __builtin_sqrt(a))) \
	X("rsqrt approx ftz f64", "gg", rsqrt_a64, f64, f64, f64, f64, HI64(D(1 / __builtin_sqrt(FTZ64(a))))) \
	X("max f32", "fff", max_f32, f32, f32, f32, f32, max32(a, b)) \
	X("max ftz f32", "fff", max_ftz, f32, f32, f32, f32, max32(Z(a), Z(b))) \
	X("max NaN f32", "fff", max_nan, f32, f32, f32, f32, NAN_IF(a, b, max32(a, b))) \
	X("max ftz NaN f32", "fff", max_nan_ftz, f32, f32, f32, f32, NAN_IF(a, b, max32(Z(a), Z(b)))) \
	X("max f64", "ggg", max_f64, f64, f64, f64, f64, max64(a, b)) \
	X("min f32", "fff", min_f32, f32, f32, f32, f32, min32(a, b)) \
	X("min ftz f32", "fff", min_ftz, f32, f32, f32, f32, min32(Z(a), Z(b))) \
	X("min NaN f32", "fff", min_nan, f32, f32, f32, f32, NAN_IF(a, b, min32(a, b))) \
	X("min ftz NaN f32", "fff", min_nan_ftz, f32, f32, f32, f32, NAN_IF(a, b, min32(Z(a), Z(b)))) \
	X("min f64", "ggg", min_f64, f64, f64, f64, f64, min64(a, b)) \
	X("abs f32", "ff", abs_f32, f32, f32, f32, f32, ABS32(a)) \
	X("abs ftz f32", "ff", abs_ftz, f32, f32, f32, f32, ABS32(Z(a))) \
	X("abs f64", "gg", abs_f64, f64, f64, f64, f64, ABS64(a)) \
	X("neg f32", "ff", neg_f32, f32, f32, f32, f32, NEG32(a)) \
	X("neg ftz f32", "ff", neg_ftz, f32, f32, f32, f32, NEG32(Z(a))) \
	X("neg f64", "gg", neg_f64, f64, f64, f64, f64, NEG64(a)) \
	X("copysign f32", "fff", copysign_f32, f32, f32, f32, f32, COPYSIGN32(a, b)) \
	X("copysign f64", "ggg", copysign_f64, f64, f64, f64, f64, COPYSIGN64(a, b)) \
	X("ex2 approx f32", "ff", ex2_f32, f32, f32, f32, f32, sim_ex2(a)) \
	X("ex2 approx ftz f32", "ff", ex2_ftz, f32, f32, f32, f32, Z(sim_ex2(Z(a)))) \
	X("lg2 approx f32", "ff", lg2_f32, f32, f32, f32, f32, sim_lg2(a)) \
	X("lg2 approx ftz f32", "ff", lg2_ftz, f32, f32, f32, f32, Z(sim_lg2(Z(a)))) \
	X("sin approx f32", "ff", sin_f32, f32, f32, f32, f32, sim_sin(a)) \
	X("sin approx ftz f32", "ff", sin_ftz, f32, f32, f32, f32, Z(sim_sin(Z(a)))) \
	X("cos approx f32", "ff", cos_f32, f32, f32, f32, f32, sim_cos(a)) \
	X("cos approx ftz f32", "ff", cos_ftz, f32, f32, f32, f32, Z(sim_cos(Z(a)))) \
	X("tanh approx f32", "ff", tanh_f32, f32, f32, f32, f32, sim_tanh(a))
/* clang-format on */

#define X(pattern, sig, name, TD, TA, TB, TC, ...) SIM_LANE_FN(name, TD, TA, TB, TC, __VA_ARGS__)
FLOAT_OPS(X)
#undef X

/* Every rounding mode and modifier, lane by lane; `...` may use a, b, c through sim_op_*. */
#define ROUND_FN(name, T, FLUSH, CANON, SATURATE, ...)                                             \
	static void name##_any(const struct sim_uop *o, struct sim_warp *w)                        \
	{                                                                                          \
		T *d = SIM_REG(T, w, o, 0), r[SIM_LANES];                                          \
		const T *a_ = SIM_REG(T, w, o, 1), *b_ = SIM_REG(T, w, o, 2);                      \
		const T *c_ = SIM_REG(T, w, o, 3);                                                 \
		int ftz = o->flags & SIM_FTZ, sat = o->flags & SIM_SAT;                            \
		unsigned old = sim_round_begin(o->flags);                                          \
                                                                                                   \
		for (int i = 0; i < SIM_LANES; i++) {                                              \
			T a = ftz ? FLUSH(a_[i]) : a_[i], b = ftz ? FLUSH(b_[i]) : b_[i];          \
			T c = ftz ? FLUSH(c_[i]) : c_[i];                                          \
                                                                                                   \
			(void)b, (void)c;                                                          \
			r[i] = (__VA_ARGS__);                                                      \
		}                                                                                  \
		sim_round_end(old);                                                                \
		for (int i = 0; i < SIM_LANES; i++) {                                              \
			T x = CANON(r[i]);                                                         \
                                                                                                   \
			x = ftz ? FLUSH(x) : x;                                                    \
			x = sat ? SATURATE(x) : x;                                                 \
			d[i] = w->lanes[i] ? x : d[i];                                             \
		}                                                                                  \
	}

/* clang-format off */
#define ROUND_OPS(X) \
	X("add rn|rz|rm|rp? ftz? sat? f32", "fff", add32, f32, sim_ftz, sim_canon, sim_sat, sim_op_add32(a, b)) \
	X("sub rn|rz|rm|rp? ftz? sat? f32", "fff", sub32, f32, sim_ftz, sim_canon, sim_sat, sim_op_sub32(a, b)) \
	X("mul rn|rz|rm|rp? ftz? sat? f32", "fff", mul32, f32, sim_ftz, sim_canon, sim_sat, sim_op_mul32(a, b)) \
	X("fma rn|rz|rm|rp ftz? sat? f32", "ffff", fma32, f32, sim_ftz, sim_canon, sim_sat, sim_op_fma32(a, b, c)) \
	X("mad rn|rz|rm|rp? ftz? sat? f32", "ffff", mad32, f32, sim_ftz, sim_canon, sim_sat, sim_op_fma32(a, b, c)) \
	X("div rn|rz|rm|rp ftz? f32", "fff", div32, f32, sim_ftz, sim_canon, sim_sat, sim_op_div32(a, b)) \
	X("rcp rn|rz|rm|rp ftz? f32", "ff", rcp32, f32, sim_ftz, sim_canon, sim_sat, sim_op_div32(1, a)) \
	X("sqrt rn|rz|rm|rp ftz? f32", "ff", sqrt32, f32, sim_ftz, sim_canon, sim_sat, sim_op_sqrt32(a, a)) \
	X("add rn|rz|rm|rp f64", "ggg", add64, f64, FTZ64, sim_canon64, sim_sat64, sim_op_add64(a, b)) \
	X("sub rn|rz|rm|rp f64", "ggg", sub64, f64, FTZ64, sim_canon64, sim_sat64, sim_op_sub64(a, b)) \
	X("mul rn|rz|rm|rp f64", "ggg", mul64, f64, FTZ64, sim_canon64, sim_sat64, sim_op_mul64(a, b)) \
	X("fma rn|rz|rm|rp f64", "gggg", fma64, f64, FTZ64, sim_canon64, sim_sat64, sim_op_fma64(a, b, c)) \
	X("div rn|rz|rm|rp f64", "ggg", div64, f64, FTZ64, sim_canon64, sim_sat64, sim_op_div64(a, b)) \
	X("rcp rn|rz|rm|rp f64", "gg", rcp64, f64, FTZ64, sim_canon64, sim_sat64, sim_op_div64(1, a)) \
	X("sqrt rn|rz|rm|rp f64", "gg", sqrt64, f64, FTZ64, sim_canon64, sim_sat64, sim_op_sqrt64(a, a))
/* clang-format on */

#define X(pattern, sig, name, T, F, CN, S, ...) ROUND_FN(name, T, F, CN, S, __VA_ARGS__)
ROUND_OPS(X)
#undef X

const struct sim_form sim_forms_float[] = {
	{"mad rn f32", "ffff", SIM_FN(fma_f32), NULL},
	{"mad rn ftz f32", "ffff", SIM_FN(fma_ftz), NULL},
	{"mad rn f64", "gggg", SIM_FN(fma_f64), NULL},
	{"mad rz|rm|rp f64", "gggg", {fma64_any, fma64_any}, NULL},
#define X(pattern, sig, name, ...) {pattern, sig, SIM_FN(name), NULL},
	FLOAT_OPS(X)
#undef X
#define X(pattern, sig, name, ...) {pattern, sig, {name##_any, name##_any}, NULL},
		ROUND_OPS(X)
#undef X
};
const unsigned sim_nforms_float = sizeof sim_forms_float / sizeof *sim_forms_float;
