/* SPDX-License-Identifier: MIT */
/*
 * Integer arithmetic: add ... mad, min/max, div/rem, shifts and logic.
 *
 * What the ISA leaves open is defined here: x / 0 = all ones and x % 0 = x (what NVIDIA's division
 * sequences give), INT_MIN / -1 = INT_MIN and INT_MIN % -1 = 0. Shift amounts clamp at the width.
 */
#include "tests/simcuda/exec_priv.h"

typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef unsigned __int128 u128;
typedef __int128 s128;

static inline s32 clamp32(s64 x)
{
	return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (s32)x;
}

#define DIVU(T, a, b) ((T)(b) ? (T)((T)(a) / (T)(b)) : (T) ~(T)0)
#define REMU(T, a, b) ((T)(b) ? (T)((T)(a) % (T)(b)) : (T)(a))
#define DIVS(T, a, b)                                                                              \
	((T)(b) == 0 ? (T)-1 : (T)(b) == -1 ? (T)(0 - (u64)(T)(a)) : (T)((T)(a) / (T)(b)))
#define REMS(T, a, b)	 ((T)(b) == 0 ? (T)(a) : (T)(b) == -1 ? (T)0 : (T)((T)(a) % (T)(b)))
#define MIN(T, a, b)	 ((T)(a) < (T)(b) ? (T)(a) : (T)(b))
#define MAX(T, a, b)	 ((T)(a) > (T)(b) ? (T)(a) : (T)(b))
#define ABS(T, U, a)	 ((T)(a) < 0 ? (T)(0 - (U)(a)) : (T)(a))
#define S24(x)		 ((s32)((u32)(x) << 8) >> 8)
#define U24(x)		 ((u32)(x)&0xffffff)
#define SHL(T, a, b, n)	 ((b) >= (n) ? 0 : (T)((T)(a) << ((b) & ((n)-1))))
#define SHRU(T, a, b, n) ((b) >= (n) ? 0 : (T)((T)(a) >> ((b) & ((n)-1))))
#define SHRS(T, a, b, n) ((T)((T)(a) >> ((b) >= (n) ? (n)-1 : (b))))
#define SADU(T, a, b)	 ((T)(a) > (T)(b) ? (T)(a) - (T)(b) : (T)(b) - (T)(a))

/* clang-format off */
/* pattern, signature, name, destination and source types, value */
#define INT_OPS(X) \
	X("add u32|s32", "www", add_32, u32, u32, u32, u32, a + b) \
	X("mad lo u32|s32", "wwww", mad_lo_32, u32, u32, u32, u32, a * b + c) \
	X("add u64|s64", "ddd", add_64, u64, u64, u64, u64, a + b) \
	X("mad lo u64|s64", "dddd", mad_lo_64, u64, u64, u64, u64, a * b + c) \
	X("add u16|s16", "hhh", add_16, u32, u32, u32, u32, a + b) \
	X("add sat s32", "www", add_sat_32, s32, s32, s32, s32, clamp32((s64)a + b)) \
	X("sub u32|s32", "www", sub_32, u32, u32, u32, u32, a - b) \
	X("sub u64|s64", "ddd", sub_64, u64, u64, u64, u64, a - b) \
	X("sub u16|s16", "hhh", sub_16, u32, u32, u32, u32, a - b) \
	X("sub sat s32", "www", sub_sat_32, s32, s32, s32, s32, clamp32((s64)a - b)) \
	X("mul lo u32|s32", "www", mul_lo_32, u32, u32, u32, u32, a * b) \
	X("mul lo u64|s64", "ddd", mul_lo_64, u64, u64, u64, u64, a * b) \
	X("mul lo u16|s16", "hhh", mul_lo_16, u32, u32, u32, u32, a * b) \
	X("mul wide u32", "dww", mul_wide_u32, u64, u32, u32, u32, (u64)a * b) \
	X("mul wide s32", "dww", mul_wide_s32, s64, s32, s32, s32, (s64)a * b) \
	X("mul wide u16", "whh", mul_wide_u16, u32, u32, u32, u32, (u32)(u16)a * (u16)b) \
	X("mul wide s16", "whh", mul_wide_s16, s32, u32, u32, u32, (s16)a * (s16)b) \
	X("mul hi u32", "www", mul_hi_u32, u32, u32, u32, u32, ((u64)a * b) >> 32) \
	X("mul hi s32", "www", mul_hi_s32, s32, s32, s32, s32, ((s64)a * b) >> 32) \
	X("mul hi u64", "ddd", mul_hi_u64, u64, u64, u64, u64, ((u128)a * b) >> 64) \
	X("mul hi s64", "ddd", mul_hi_s64, s64, s64, s64, s64, ((s128)a * b) >> 64) \
	X("mul hi u16", "hhh", mul_hi_u16, u32, u32, u32, u32, ((u32)(u16)a * (u16)b) >> 16) \
	X("mul hi s16", "hhh", mul_hi_s16, u32, u32, u32, u32, (u32)((s16)a * (s16)b) >> 16) \
	X("mad lo u16|s16", "hhhh", mad_lo_16, u32, u32, u32, u32, a * b + c) \
	X("mad wide u32", "dwwd", mad_wide_u32, u64, u32, u32, u64, (u64)a * b + c) \
	X("mad wide s32", "dwwd", mad_wide_s32, u64, s32, s32, u64, (u64)((s64)a * b) + c) \
	X("mad wide u16", "whhw", mad_wide_u16, u32, u32, u32, u32, (u32)(u16)a * (u16)b + c) \
	X("mad wide s16", "whhw", mad_wide_s16, u32, u32, u32, u32, (u32)((s16)a * (s16)b) + c) \
	X("mad hi u32", "wwww", mad_hi_u32, u32, u32, u32, u32, (u32)(((u64)a * b) >> 32) + c) \
	X("mad hi s32", "wwww", mad_hi_s32, u32, s32, s32, u32, (u32)(((s64)a * b) >> 32) + c) \
	X("mad hi sat s32", "wwww", mad_hi_sat, s32, s32, s32, s32, clamp32((((s64)a * b) >> 32) + (s64)c)) \
	X("mad hi u64", "dddd", mad_hi_u64, u64, u64, u64, u64, (u64)(((u128)a * b) >> 64) + c) \
	X("mad hi s64", "dddd", mad_hi_s64, u64, s64, s64, u64, (u64)(((s128)a * b) >> 64) + c) \
	X("mad hi u16", "hhhh", mad_hi_u16, u32, u32, u32, u32, (((u32)(u16)a * (u16)b) >> 16) + c) \
	X("mad hi s16", "hhhh", mad_hi_s16, u32, u32, u32, u32, ((u32)((s16)a * (s16)b) >> 16) + c) \
	X("mul24 lo u32", "www", mul24_lo_u, u32, u32, u32, u32, (u64)U24(a) * U24(b)) \
	X("mul24 lo s32", "www", mul24_lo_s, s32, u32, u32, u32, (s64)S24(a) * S24(b)) \
	X("mul24 hi u32", "www", mul24_hi_u, u32, u32, u32, u32, ((u64)U24(a) * U24(b)) >> 16) \
	X("mul24 hi s32", "www", mul24_hi_s, s32, u32, u32, u32, ((s64)S24(a) * S24(b)) >> 16) \
	X("mad24 lo u32", "wwww", mad24_lo_u, u32, u32, u32, u32, (u32)((u64)U24(a) * U24(b)) + c) \
	X("mad24 lo s32", "wwww", mad24_lo_s, u32, u32, u32, u32, (u32)((s64)S24(a) * S24(b)) + c) \
	X("mad24 hi u32", "wwww", mad24_hi_u, u32, u32, u32, u32, (u32)(((u64)U24(a) * U24(b)) >> 16) + c) \
	X("mad24 hi s32", "wwww", mad24_hi_s, u32, u32, u32, u32, (u32)(((s64)S24(a) * S24(b)) >> 16) + c) \
	X("mad24 hi sat s32", "wwww", mad24_hi_sat, s32, u32, u32, s32, clamp32((((s64)S24(a) * S24(b)) >> 16) + c)) \
	X("sad u16", "hhhh", sad_u16, u32, u32, u32, u32, SADU(u16, a, b) + c) \
	X("sad s16", "hhhh", sad_s16, u32, u32, u32, u32, SADU(s16, a, b) + c) \
	X("sad u32", "wwww", sad_u32, u32, u32, u32, u32, SADU(u32, a, b) + c) \
	X("sad s32", "wwww", sad_s32, u32, s32, s32, u32, (a > b ? (u32)a - (u32)b : (u32)b - (u32)a) + c) \
	X("sad u64", "dddd", sad_u64, u64, u64, u64, u64, SADU(u64, a, b) + c) \
	X("sad s64", "dddd", sad_s64, u64, s64, s64, u64, (a > b ? (u64)a - (u64)b : (u64)b - (u64)a) + c) \
	X("div u16", "hhh", div_u16, u32, u32, u32, u32, DIVU(u16, a, b)) \
	X("div s16", "hhh", div_s16, u32, u32, u32, u32, DIVS(s16, a, b)) \
	X("div u32", "www", div_u32, u32, u32, u32, u32, DIVU(u32, a, b)) \
	X("div s32", "www", div_s32, u32, u32, u32, u32, DIVS(s32, a, b)) \
	X("div u64", "ddd", div_u64, u64, u64, u64, u64, DIVU(u64, a, b)) \
	X("div s64", "ddd", div_s64, u64, u64, u64, u64, DIVS(s64, a, b)) \
	X("rem u16", "hhh", rem_u16, u32, u32, u32, u32, REMU(u16, a, b)) \
	X("rem s16", "hhh", rem_s16, u32, u32, u32, u32, REMS(s16, a, b)) \
	X("rem u32", "www", rem_u32, u32, u32, u32, u32, REMU(u32, a, b)) \
	X("rem s32", "www", rem_s32, u32, u32, u32, u32, REMS(s32, a, b)) \
	X("rem u64", "ddd", rem_u64, u64, u64, u64, u64, REMU(u64, a, b)) \
	X("rem s64", "ddd", rem_s64, u64, u64, u64, u64, REMS(s64, a, b)) \
	X("min u16", "hhh", min_u16, u32, u32, u32, u32, MIN(u16, a, b)) \
	X("min s16", "hhh", min_s16, u32, u32, u32, u32, MIN(s16, a, b)) \
	X("min u32", "www", min_u32, u32, u32, u32, u32, MIN(u32, a, b)) \
	X("min s32", "www", min_s32, s32, s32, s32, s32, MIN(s32, a, b)) \
	X("min relu s32", "www", min_relu, s32, s32, s32, s32, MAX(s32, MIN(s32, a, b), 0)) \
	X("min u64", "ddd", min_u64, u64, u64, u64, u64, MIN(u64, a, b)) \
	X("min s64", "ddd", min_s64, s64, s64, s64, s64, MIN(s64, a, b)) \
	X("max u16", "hhh", max_u16, u32, u32, u32, u32, MAX(u16, a, b)) \
	X("max s16", "hhh", max_s16, u32, u32, u32, u32, MAX(s16, a, b)) \
	X("max u32", "www", max_u32, u32, u32, u32, u32, MAX(u32, a, b)) \
	X("max s32", "www", max_s32, s32, s32, s32, s32, MAX(s32, a, b)) \
	X("max relu s32", "www", max_relu, s32, s32, s32, s32, MAX(s32, MAX(s32, a, b), 0)) \
	X("max u64", "ddd", max_u64, u64, u64, u64, u64, MAX(u64, a, b)) \
	X("max s64", "ddd", max_s64, s64, s64, s64, s64, MAX(s64, a, b)) \
	X("abs s16", "hh", abs_16, u32, u32, u32, u32, ABS(s16, u16, a)) \
	X("abs s32", "ww", abs_32, u32, u32, u32, u32, ABS(s32, u32, a)) \
	X("abs s64", "dd", abs_64, u64, u64, u64, u64, ABS(s64, u64, a)) \
	X("neg s16", "hh", neg_16, u32, u32, u32, u32, 0 - a) \
	X("neg s32", "ww", neg_32, u32, u32, u32, u32, 0 - a) \
	X("neg s64", "dd", neg_64, u64, u64, u64, u64, 0 - a) \
	X("and b32", "www", and_32, u32, u32, u32, u32, a & b) \
	X("or b32", "www", or_32, u32, u32, u32, u32, a | b) \
	X("xor b32", "www", xor_32, u32, u32, u32, u32, a ^ b) \
	X("not b32", "ww", not_32, u32, u32, u32, u32, ~a) \
	X("and b16", "hhh", and_16, u32, u32, u32, u32, a & b) \
	X("or b16", "hhh", or_16, u32, u32, u32, u32, a | b) \
	X("xor b16", "hhh", xor_16, u32, u32, u32, u32, a ^ b) \
	X("not b16", "hh", not_16, u32, u32, u32, u32, ~a) \
	X("and b64", "ddd", and_64, u64, u64, u64, u64, a & b) \
	X("or b64", "ddd", or_64, u64, u64, u64, u64, a | b) \
	X("xor b64", "ddd", xor_64, u64, u64, u64, u64, a ^ b) \
	X("not b64", "dd", not_64, u64, u64, u64, u64, ~a) \
	X("and pred", "ppp", and_p, u32, u32, u32, u32, a & b) \
	X("or pred", "ppp", or_p, u32, u32, u32, u32, a | b) \
	X("xor pred", "ppp", xor_p, u32, u32, u32, u32, a ^ b) \
	X("not pred", "pp", not_p, u32, u32, u32, u32, ~a) \
	X("cnot b16", "hh", cnot_16, u32, u32, u32, u32, !(u16)a) \
	X("cnot b32", "ww", cnot_32, u32, u32, u32, u32, !a) \
	X("cnot b64", "dd", cnot_64, u64, u64, u64, u64, !a) \
	X("shl b16", "hhw", shl_16, u32, u32, u32, u32, SHL(u16, a, b, 16)) \
	X("shl b32", "www", shl_32, u32, u32, u32, u32, SHL(u32, a, b, 32)) \
	X("shl b64", "ddw", shl_64, u64, u64, u32, u32, SHL(u64, a, b, 64)) \
	X("shr u16|b16", "hhw", shr_u16, u32, u32, u32, u32, SHRU(u16, a, b, 16)) \
	X("shr s16", "hhw", shr_s16, u32, u32, u32, u32, SHRS(s16, a, b, 16)) \
	X("shr u32|b32", "www", shr_u32, u32, u32, u32, u32, SHRU(u32, a, b, 32)) \
	X("shr s32", "www", shr_s32, s32, s32, u32, u32, SHRS(s32, a, b, 32)) \
	X("shr u64|b64", "ddw", shr_u64, u64, u64, u32, u32, SHRU(u64, a, b, 64)) \
	X("shr s64", "ddw", shr_s64, s64, s64, u32, u32, SHRS(s64, a, b, 64))
/* clang-format on */

#define X(pattern, sig, name, TD, TA, TB, TC, ...) SIM_LANE_FN(name, TD, TA, TB, TC, __VA_ARGS__)
INT_OPS(X)
#undef X

const struct sim_form sim_forms_int[] = {
#define X(pattern, sig, name, ...) {pattern, sig, SIM_FN(name), NULL},
	INT_OPS(X)
#undef X
};
const unsigned sim_nforms_int = sizeof sim_forms_int / sizeof *sim_forms_int;
