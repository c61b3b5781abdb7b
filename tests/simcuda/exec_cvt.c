/* SPDX-License-Identifier: MIT */
/*
 * cvt: every pair of integer and floating types.
 *
 * One scalar function converts anything to anything; what compilers emit by the thousand has vector
 * loops in front of it. NaN to integer is what the ISA says: 0 unless f64 or a 64-bit result is
 * involved, then only the top bit. Out of range saturates.
 */
#include <errno.h>
#include <string.h>

#include "tests/simcuda/exec_float.h"

typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;
typedef float f32;

enum { CVT_INTEGRAL = 1 << 5, CVT_RELU = 1 << 6 }; /* beside SIM_RN.. in the low flags */

static int is_float(unsigned t)
{
	return t == RS_PTX_F16 || t == RS_PTX_BF16 || t == RS_PTX_TF32 || t == RS_PTX_F32 ||
	       t == RS_PTX_F64;
}

static int is_signed(unsigned t)
{
	return t == RS_PTX_S8 || t == RS_PTX_S16 || t == RS_PTX_S32 || t == RS_PTX_S64;
}

static int is_int(unsigned t)
{
	return is_signed(t) || t == RS_PTX_U8 || t == RS_PTX_U16 || t == RS_PTX_U32 ||
	       t == RS_PTX_U64;
}

/* Cut to the type and extend by its sign to 64 bits. */
static u64 cut(u64 raw, unsigned type)
{
	unsigned bits = 8 * rs_ptx_type_bytes(type);

	if (bits >= 64)
		return raw;
	return is_signed(type) ? (u64)((s64)(raw << (64 - bits)) >> (64 - bits))
			       : raw & (((u64)1 << bits) - 1);
}

static u64 int_limit(unsigned type, int upper)
{
	unsigned bits = 8 * rs_ptx_type_bytes(type);

	if (is_signed(type))
		return upper ? ((u64)1 << (bits - 1)) - 1 : ~(((u64)1 << (bits - 1)) - 1);
	return upper ? ~(u64)0 >> (64 - bits) : 0;
}

static u64 int_to_int(u64 v, unsigned src, unsigned dst, unsigned flags)
{
	__int128 x = is_signed(src) ? (__int128)(s64)v : (__int128)v;

	if (flags & SIM_SAT) {
		__int128 lo = is_signed(dst) ? (__int128)(s64)int_limit(dst, 0) : 0;
		__int128 hi = (__int128)int_limit(dst, 1);

		x = x < lo ? lo : x > hi ? hi : x;
	}
	return cut((u64)x, dst);
}

static u64 float_to_int(double x, unsigned src, unsigned dst, unsigned flags)
{
	unsigned bits = 8 * rs_ptx_type_bytes(dst);
	double limit = sim_double((u64)(1023 + bits - is_signed(dst)) << 52); /* 2^n, exclusive */

	if (x != x)
		return src == RS_PTX_F64 || bits == 64 ? cut((u64)1 << (bits - 1), dst) : 0;
	x = sim_rint64(x, flags);
	if (x >= limit)
		return int_limit(dst, 1);
	if (is_signed(dst))
		return x < -limit ? int_limit(dst, 0) : (u64)(s64)x;
	return x <= 0 ? 0 : x >= 0x1p63 ? (u64)(s64)(x - 0x1p63) ^ (u64)1 << 63 : (u64)(s64)x;
}

static u64 int_to_float(u64 v, unsigned src, unsigned dst, unsigned flags)
{
	int negative = is_signed(src) && (s64)v < 0;
	u64 magnitude = negative ? 0 - v : v;
	unsigned mode = flags & SIM_RMASK;
	double exact;

	switch (dst) {
	case RS_PTX_F32: {
		f32 r = sim_u64_to_float(magnitude, negative, mode);

		return sim_bits32(flags & SIM_SAT ? sim_sat(r) : r);
	}
	case RS_PTX_F64: {
		double r = sim_u64_to_double(magnitude, negative, mode);

		return sim_bits64(flags & SIM_SAT ? sim_sat64(r) : r);
	}
	default:
		/* to 53 bits with a sticky last one, then once more */
		exact = sim_u64_to_double(magnitude, 0, SIM_RZ);
		if (exact >= 0x1p53 && (u64)exact != magnitude)
			exact = sim_double(sim_bits64(exact) | 1);
		exact = negative ? -exact : exact;
		if (flags & SIM_SAT)
			exact = sim_sat64(exact);
		return dst == RS_PTX_F16 ? sim_double_to_half(exact, mode)
					 : sim_float_to_bf16(sim_round_odd(exact), mode);
	}
}

static double widen(u64 raw, unsigned src, unsigned flags)
{
	f32 x;

	switch (src) {
	case RS_PTX_F16:
		return sim_half_to_float((u16)raw);
	case RS_PTX_BF16:
		return sim_bf16_to_float((u16)raw);
	case RS_PTX_F64:
		return sim_double(raw);
	default:
		x = sim_float((u32)raw);
		return flags & SIM_FTZ ? sim_ftz(x) : x;
	}
}

static u64 float_to_float(double x, unsigned dst, unsigned flags)
{
	unsigned mode = flags & SIM_RMASK;

	if (flags & CVT_INTEGRAL)
		x = sim_rint64(x, mode);
	if (flags & SIM_SAT)
		x = sim_sat64(x);
	if (flags & CVT_RELU)
		x = x == x && !(x > 0) ? 0 : x;
	switch (dst) {
	case RS_PTX_F16:
		return sim_double_to_half(x, mode);
	case RS_PTX_BF16:
		return sim_float_to_bf16(sim_round_odd(x), mode);
	case RS_PTX_TF32:
		return sim_float_to_tf32(sim_round_odd(x), flags);
	case RS_PTX_F64:
		return sim_bits64(sim_canon64(x));
	default: {
		f32 r = sim_double_to_float(x, mode);

		return sim_bits32(flags & SIM_FTZ ? sim_ftz(r) : r);
	}
	}
}

static u64 convert(u64 raw, unsigned src, unsigned dst, unsigned flags)
{
	if (is_float(src)) {
		double x = widen(raw, src, flags);

		return is_float(dst) ? float_to_float(x, dst, flags)
				     : float_to_int(x, src, dst, flags);
	}
	raw = cut(raw, src);
	return is_float(dst) ? int_to_float(raw, src, dst, flags)
			     : int_to_int(raw, src, dst, flags);
}

#define CVT_ANY(name, TD, TS)                                                                      \
	static void name(const struct sim_uop *o, struct sim_warp *w)                              \
	{                                                                                          \
		TD *d = SIM_REG(TD, w, o, 0);                                                      \
		const TS *a = SIM_REG(TS, w, o, 1);                                                \
		unsigned src = o->imm & 255, dst = o->imm >> 8 & 255;                              \
                                                                                                   \
		for (int i = 0; i < SIM_LANES; i++)                                                \
			if (w->lanes[i])                                                           \
				d[i] = (TD)convert(a[i], src, dst, o->flags);                      \
	}
CVT_ANY(cvt_4_4, u32, u32)
CVT_ANY(cvt_4_8, u32, u64)
CVT_ANY(cvt_8_4, u64, u32)
CVT_ANY(cvt_8_8, u64, u64)

/* Two floats to a packed pair: the first source is the upper half. */
static void cvt_pair(const struct sim_uop *o, struct sim_warp *w)
{
	u32 *d = SIM_REG(u32, w, o, 0);
	const u32 *a = SIM_REG(u32, w, o, 1), *b = SIM_REG(u32, w, o, 2);
	unsigned dst = o->imm >> 8 & 255;

	for (int i = 0; i < SIM_LANES; i++)
		if (w->lanes[i])
			d[i] = (u32)(convert(a[i], RS_PTX_F32, dst, o->flags) << 16 |
				     convert(b[i], RS_PTX_F32, dst, o->flags));
}

static inline s32 trunc_s32(f32 x)
{
	f32 lim = x >= 0x1p31f || x != x ? 0 : x;
	s32 r = (s32)(lim < -0x1p31f ? -0x1p31f : lim);

	return x >= 0x1p31f ? INT32_MAX : r;
}

/* clang-format off */
#define FAST_CVT(X) \
	X(S64, S32, 0, s64_s32, s64, s32, a) \
	X(U64, U32, 0, u64_u32, u64, u32, a) \
	X(S64, U32, 0, s64_u32, u64, u32, a) \
	X(U64, S32, 0, u64_s32, s64, s32, a) \
	X(U32, U64, 0, u32_u64, u32, u64, a) \
	X(S32, S64, 0, s32_s64, u32, u64, a) \
	X(U32, S64, 0, u32_s64, u32, u64, a) \
	X(S32, U64, 0, s32_u64, u32, u64, a) \
	X(U32, S32, 0, u32_s32, u32, u32, a) \
	X(S32, U32, 0, s32_u32, u32, u32, a) \
	X(U16, U32, 0, u16_u32, u32, u32, (u16)a) \
	X(U32, U16, 0, u32_u16, u32, u32, (u16)a) \
	X(S32, S16, 0, s32_s16, s32, u32, (int16_t)a) \
	X(U32, U8, 0, u32_u8, u32, u32, (uint8_t)a) \
	X(F32, S32, 0, f32_s32, f32, s32, (f32)a) \
	X(F32, F32, SIM_SAT, f32_sat, f32, f32, sim_sat(a)) \
	X(F32, F32, SIM_SAT | SIM_FTZ, f32_satz, f32, f32, sim_ftz(sim_sat(a))) \
	X(S32, F32, SIM_RZ | CVT_INTEGRAL, s32_f32_rz, s32, f32, trunc_s32(a)) \
	X(F32, F64, 0, f32_f64, f32, double, sim_canon((f32)a)) \
	X(F64, F32, 0, f64_f32, double, f32, sim_canon64(a)) \
	X(F32, F16, 0, f32_f16, f32, u32, sim_canon(sim_half_to_float((u16)a))) \
	X(F16, F32, 0, f16_f32, u32, f32, sim_float_to_half(a, SIM_RN))
/* clang-format on */

#define X(d, s, f, name, TD, TS, ...) SIM_LANE_FN(name, TD, TS, TS, TS, __VA_ARGS__)
FAST_CVT(X)
#undef X

static const struct {
	uint8_t dst, src;
	uint16_t flags;
	sim_fn fn[2];
} fast[] = {
#define X(d, s, f, name, ...) {RS_PTX_##d, RS_PTX_##s, f, SIM_FN(name)},
	FAST_CVT(X)
#undef X
};

static int bad(struct sim_lower *l, const struct rs_ptx_insn *in)
{
	return sim_lower_fail(l, "unknown instruction %s", in->text);
}

/* Modifiers between the name and the types; *ret_rounding: 0 none, 1 floating, 2 integral. */
static int parse_modifiers(const struct rs_ptx_insn *in, unsigned ntypes, unsigned *ret_flags,
			   int *ret_rounding)
{
	static const struct {
		const char *name;
		unsigned flag;
		int rounding;
	} mods[] = {
		{"rn", SIM_RN, 1},
		{"rz", SIM_RZ, 1},
		{"rm", SIM_RM, 1},
		{"rp", SIM_RP, 1},
		{"rna", SIM_RNA, 1},
		{"rni", SIM_RN | CVT_INTEGRAL, 2},
		{"rzi", SIM_RZ | CVT_INTEGRAL, 2},
		{"rmi", SIM_RM | CVT_INTEGRAL, 2},
		{"rpi", SIM_RP | CVT_INTEGRAL, 2},
		{"ftz", SIM_FTZ, 0},
		{"sat", SIM_SAT, 0},
		{"relu", CVT_RELU, 0},
	};
	unsigned nmods = sizeof mods / sizeof *mods;

	*ret_flags = 0, *ret_rounding = 0;
	for (unsigned p = 1; p + ntypes < in->nparts; p++) {
		unsigned m = 0;

		while (m < nmods && strcmp(mods[m].name, in->part[p]))
			m++;
		if (m == nmods || (mods[m].rounding && *ret_rounding))
			return -EINVAL;
		*ret_flags |= mods[m].flag;
		if (mods[m].rounding)
			*ret_rounding = mods[m].rounding;
	}
	return 0;
}

/* Which rounding the pair of types asks for: the ISA makes it neither optional nor superfluous. */
static int rounding_fits(unsigned dst, unsigned src, unsigned flags, int rounding)
{
	unsigned db = rs_ptx_type_bytes(dst), sb = rs_ptx_type_bytes(src);

	if (flags & SIM_RNA && dst != RS_PTX_TF32)
		return 0;
	if (dst == RS_PTX_TF32)
		return src == RS_PTX_F32 && rounding == 1;
	if (src == RS_PTX_TF32)
		return 0;
	if (flags & SIM_FTZ && dst != RS_PTX_F32 && src != RS_PTX_F32)
		return 0;
	if (is_int(src) && is_int(dst))
		return rounding == 0;
	if (is_float(src) && is_int(dst))
		return rounding == 2;
	if (is_int(src))
		return rounding == 1;
	if (dst == src)
		return rounding != 1;
	if (db < sb || (db == sb && dst != src))
		return rounding == 1;
	return rounding == 0 || (src == RS_PTX_BF16 && rounding == 1);
}

static char letter_of(unsigned type)
{
	switch (rs_ptx_type_bytes(type)) {
	case 8:
		return type == RS_PTX_F64 ? 'g' : 'd';
	case 4:
		return type == RS_PTX_F32 ? 'f' : 'w';
	default:
		return 'h';
	}
}

static int lower_pair(struct sim_lower *l, const struct rs_ptx_insn *in)
{
	static const sim_fn fn[2] = {cvt_pair, cvt_pair};
	uint32_t d, a, b;
	unsigned flags;
	struct sim_uop *o;
	int rc, rounding;

	if (in->type != RS_PTX_F32 || in->noperands != 3 ||
	    parse_modifiers(in, 2, &flags, &rounding) || rounding != 1 ||
	    flags & (SIM_FTZ | SIM_SAT | SIM_RNA))
		return bad(l, in);
	rc = sim_lower_dst(l, &in->op[0], 'w', 0, &d);
	if (!rc)
		rc = sim_lower_src(l, &in->op[1], 'f', &a);
	if (!rc)
		rc = sim_lower_src(l, &in->op[2], 'f', &b);
	if (rc)
		return rc;
	o = sim_lower_emit(l, SIM_K_ALU, fn);
	if (!o)
		return -ENOMEM;
	o->r[0] = d, o->r[1] = a, o->r[2] = b;
	o->wr |= 1, o->rd |= 2 | 4;
	o->flags |= (uint16_t)(flags | SIM_F_PURE);
	o->imm = (in->type2 == RS_PTX_F16X2 ? RS_PTX_F16 : RS_PTX_BF16) << 8;
	return sim_lower_finish(l);
}

static int lower_cvt(struct sim_lower *l, const struct rs_ptx_insn *in, const struct sim_form *form,
		     unsigned ignored)
{
	static const sim_fn any[2][2][2] = {{{cvt_4_4, cvt_4_4}, {cvt_4_8, cvt_4_8}},
					    {{cvt_8_4, cvt_8_4}, {cvt_8_8, cvt_8_8}}};
	unsigned dst = in->type2, src = in->type, flags;
	const sim_fn *fn;
	struct sim_uop *o;
	uint32_t d, a;
	int rc, rounding;

	(void)form, (void)ignored;
	if (dst == RS_PTX_F16X2 || dst == RS_PTX_BF16X2)
		return lower_pair(l, in);
	if (!(is_int(dst) || is_float(dst)) || !(is_int(src) || is_float(src)) ||
	    parse_modifiers(in, 2, &flags, &rounding) ||
	    !rounding_fits(dst, src, flags, rounding) || in->noperands != 2)
		return bad(l, in);
	rc = sim_lower_dst(l, &in->op[0], letter_of(dst), is_signed(dst), &d);
	if (!rc)
		rc = sim_lower_src(l, &in->op[1], letter_of(src), &a);
	if (rc)
		return rc;
	fn = any[rs_ptx_type_bytes(dst) == 8][rs_ptx_type_bytes(src) == 8];
	for (unsigned i = 0; i < sizeof fast / sizeof *fast; i++)
		if (fast[i].dst == dst && fast[i].src == src && fast[i].flags == flags)
			fn = fast[i].fn;
	o = sim_lower_emit(l, SIM_K_ALU, fn);
	if (!o)
		return -ENOMEM;
	o->r[0] = d, o->r[1] = a;
	o->wr |= 1, o->rd |= 2;
	o->flags |= (uint16_t)(flags | SIM_F_PURE);
	o->imm = (int64_t)(dst << 8 | src);
	return sim_lower_finish(l);
}

const struct sim_form sim_forms_cvt[] = {
	{"cvt *", NULL, {NULL, NULL}, lower_cvt},
};
const unsigned sim_nforms_cvt = sizeof sim_forms_cvt / sizeof *sim_forms_cvt;
