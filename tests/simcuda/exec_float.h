/* SPDX-License-Identifier: MIT */
/*
 * Scalar floating point of the simulated device: bit casts, flushing, canonical NaN, half
 * precision, directed rounding, and the functions whose accuracy the ISA only bounds.
 *
 * Everything here is a pure function of its arguments under the default MXCSR (sim_exec sets it),
 * except what runs between sim_round_begin and sim_round_end. No libm: its last bits differ between
 * versions. See exec_float.c for the definitions of the .approx functions.
 */
#ifndef SIM_EXEC_FLOAT_H
#define SIM_EXEC_FLOAT_H

#include "tests/simcuda/exec_priv.h"

#include <immintrin.h>
#include <string.h>

#define SIM_NAN32 0x7fffffffu
#define SIM_NAN64 0x7fffffffffffffffull
#define SIM_NAN16 0x7fffu

static inline uint32_t sim_bits32(float x)
{
	uint32_t u;

	memcpy(&u, &x, 4);
	return u;
}

static inline float sim_float(uint32_t u)
{
	float x;

	memcpy(&x, &u, 4);
	return x;
}

static inline uint64_t sim_bits64(double x)
{
	uint64_t u;

	memcpy(&u, &x, 8);
	return u;
}

static inline double sim_double(uint64_t u)
{
	double x;

	memcpy(&x, &u, 8);
	return x;
}

/* Denormals to zero, sign kept. */
static inline float sim_ftz(float x)
{
	uint32_t u = sim_bits32(x);

	return sim_float(u & 0x7f800000 ? u : u & 0x80000000);
}

static inline float sim_canon(float x)
{
	return x == x ? x : sim_float(SIM_NAN32);
}

static inline double sim_canon64(double x)
{
	return x == x ? x : sim_double(SIM_NAN64);
}

/* To [0, 1]; NaN becomes +0. */
static inline float sim_sat(float x)
{
	return x > 0 ? x < 1 ? x : 1.0f : 0.0f;
}

static inline double sim_sat64(double x)
{
	return x > 0 ? x < 1 ? x : 1.0 : 0.0;
}

static inline float sim_half_to_float(uint16_t h)
{
	return _cvtsh_ss(h);
}

static inline float sim_bf16_to_float(uint16_t h)
{
	return sim_float((uint32_t)h << 16);
}

/* Round to the narrower format; mode is SIM_RN..SIM_RP. NaN becomes the canonical one. */
uint16_t sim_float_to_half(float x, unsigned mode);
uint16_t sim_double_to_half(double x, unsigned mode);
uint16_t sim_float_to_bf16(float x, unsigned mode);
float sim_double_to_float(double x, unsigned mode);
float sim_round_odd(double x); /* f64 to f32, last bit sticky: a second rounding stays exact */
uint32_t sim_float_to_tf32(float x, unsigned flags);

/* Integers to floating point in every mode. */
float sim_u64_to_float(uint64_t magnitude, int negative, unsigned mode);
double sim_u64_to_double(uint64_t magnitude, int negative, unsigned mode);

/* To an integral value. */
double sim_rint64(double x, unsigned mode);
float sim_rint32(float x, unsigned mode);

/* a * b + c and a + b of halves, rounded once. */
uint16_t sim_half_fma(uint16_t a, uint16_t b, uint16_t c);

/* Directed rounding in hardware: everything between begin and end must go through sim_op_*. */
static inline unsigned sim_round_begin(unsigned mode)
{
	/* MXCSR.RC: 0 nearest, 1 down, 2 up, 3 to zero */
	static const unsigned rc[4] = {0, 3, 1, 2};
	unsigned old = _mm_getcsr();

	_mm_setcsr((old & ~0x6000u) | rc[mode & SIM_RMASK] << 13);
	return old;
}

static inline void sim_round_end(unsigned old)
{
	_mm_setcsr(old);
}

#define SIM_OP2(name, T, insn)                                                                     \
	static inline T sim_op_##name(T a, T b)                                                    \
	{                                                                                          \
		T r;                                                                               \
		__asm__ volatile(insn " %2, %1, %0" : "=x"(r) : "x"(a), "x"(b));                   \
		return r;                                                                          \
	}
SIM_OP2(add32, float, "vaddss")
SIM_OP2(sub32, float, "vsubss")
SIM_OP2(mul32, float, "vmulss")
SIM_OP2(div32, float, "vdivss")
SIM_OP2(sqrt32, float, "vsqrtss")
SIM_OP2(add64, double, "vaddsd")
SIM_OP2(sub64, double, "vsubsd")
SIM_OP2(mul64, double, "vmulsd")
SIM_OP2(div64, double, "vdivsd")
SIM_OP2(sqrt64, double, "vsqrtsd")
#undef SIM_OP2

static inline float sim_op_fma32(float a, float b, float c)
{
	__asm__ volatile("vfmadd213ss %2, %1, %0" : "+x"(a) : "x"(b), "x"(c));
	return a;
}

static inline double sim_op_fma64(double a, double b, double c)
{
	__asm__ volatile("vfmadd213sd %2, %1, %0" : "+x"(a) : "x"(b), "x"(c));
	return a;
}

/* 2^x: exact at integers, error below 1e-15 relative before the rounding to float. */
static inline float sim_ex2(float xf)
{
	double x = xf, n, f, t, p, scale;

	x = x < -200 ? -200 : x;
	x = x > 200 ? 200 : x;
	n = (x + 0x1.8p52) - 0x1.8p52;
	f = x - n;
	t = f * 0x1.62e42fefa39efp-1;
	p = 1.0 / 6227020800;
	p = p * t + 1.0 / 479001600;
	p = p * t + 1.0 / 39916800;
	p = p * t + 1.0 / 3628800;
	p = p * t + 1.0 / 362880;
	p = p * t + 1.0 / 40320;
	p = p * t + 1.0 / 5040;
	p = p * t + 1.0 / 720;
	p = p * t + 1.0 / 120;
	p = p * t + 1.0 / 24;
	p = p * t + 1.0 / 6;
	p = p * t + 0.5;
	p = p * t + 1.0;
	p = p * t + 1.0;
	/* n + 1023 in the exponent field, taken from the low bits of n + magic */
	scale = sim_double((sim_bits64(n + 0x1.8p52) + 1023) << 52);
	return sim_canon(xf == xf ? (float)(p * scale) : xf);
}

float sim_lg2(float x);
float sim_sin(float x);
float sim_cos(float x);
float sim_tanh(float x);

#endif
