/* SPDX-License-Identifier: MIT */
/*
 * Bit fields, permutes, funnel shifts, three-input logic, packed dot products.
 *
 * Also the extended-precision chain: the carry flag is one more register per lane (r[4]), 0 or 1.
 */
#include <errno.h>
#include <string.h>

#include "tests/simcuda/exec_lower.h"

typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;
typedef unsigned __int128 u128;

static inline u64 brev64(u64 x)
{
	x = __builtin_bswap64(x);
	x = (x & 0x0f0f0f0f0f0f0f0full) << 4 | (x >> 4 & 0x0f0f0f0f0f0f0f0full);
	x = (x & 0x3333333333333333ull) << 2 | (x >> 2 & 0x3333333333333333ull);
	return (x & 0x5555555555555555ull) << 1 | (x >> 1 & 0x5555555555555555ull);
}

/* Position and length are the low 8 bits of their operands. */
static inline u64 bfe(u64 a, u32 pos, u32 len, unsigned width, int is_signed)
{
	u64 field, sign;

	pos &= 255, len &= 255;
	if (!len)
		return 0;
	sign = is_signed ? a >> (pos + len - 1 < width ? pos + len - 1 : width - 1) & 1 : 0;
	field = pos >= width ? 0 : a >> pos;
	if (pos + len > width)
		len = pos >= width ? 0 : width - pos;
	if (len < 64)
		field &= ((u64)1 << len) - 1;
	if (sign && len < 64)
		field |= ~(((u64)1 << len) - 1);
	return field;
}

static inline u64 bfi(u64 a, u64 b, u32 pos, u32 len, unsigned width)
{
	u64 mask;

	pos &= 255, len &= 255;
	if (!len || pos >= width)
		return b;
	if (pos + len > width)
		len = width - pos;
	mask = (len < 64 ? ((u64)1 << len) - 1 : ~(u64)0) << pos;
	return (b & ~mask) | (a << pos & mask);
}

static inline u32 bfind(u64 a, int is_signed, unsigned width, int shiftamt)
{
	u32 msb;

	if (width == 32)
		a = is_signed ? (u64)(s64)(s32)a : (u32)a;
	if (is_signed && (s64)a < 0)
		a = ~a;
	if (!a)
		return ~0u;
	msb = 63 - (u32)__builtin_clzll(a);
	return shiftamt ? width - 1 - msb : msb;
}

static inline u32 prmt_byte(u64 ab, u32 sel)
{
	u32 byte = ab >> ((sel & 7) * 8) & 255;

	return sel & 8 ? (byte & 128 ? 255 : 0) : byte;
}

static inline u32 prmt(u32 a, u32 b, u32 c)
{
	u64 ab = (u64)b << 32 | a;

	return prmt_byte(ab, c) | prmt_byte(ab, c >> 4) << 8 | prmt_byte(ab, c >> 8) << 16 |
	       prmt_byte(ab, c >> 12) << 24;
}

/* Selectors of the special modes by c & 3, as generic nibbles. */
static inline u32 prmt_mode(u32 a, u32 b, u32 c, const uint16_t sel[4])
{
	return prmt(a, b, sel[c & 3]);
}

static const uint16_t prmt_f4e[4] = {0x3210, 0x4321, 0x5432, 0x6543};
static const uint16_t prmt_b4e[4] = {0x5670, 0x6701, 0x7012, 0x0123};
static const uint16_t prmt_rc8[4] = {0x0000, 0x1111, 0x2222, 0x3333};
static const uint16_t prmt_ecl[4] = {0x3210, 0x3211, 0x3222, 0x3333};
static const uint16_t prmt_ecr[4] = {0x0000, 0x1110, 0x2210, 0x3210};
static const uint16_t prmt_rc16[4] = {0x1010, 0x3232, 0x1010, 0x3232};

static inline u32 lop3(u32 a, u32 b, u32 c, u32 lut)
{
	u32 d = 0;

	d |= lut & 1 ? ~a & ~b & ~c : 0;
	d |= lut & 2 ? ~a & ~b & c : 0;
	d |= lut & 4 ? ~a & b & ~c : 0;
	d |= lut & 8 ? ~a & b & c : 0;
	d |= lut & 16 ? a & ~b & ~c : 0;
	d |= lut & 32 ? a & ~b & c : 0;
	d |= lut & 64 ? a & b & ~c : 0;
	d |= lut & 128 ? a & b & c : 0;
	return d;
}

static inline u32 shf_l(u32 a, u32 b, u32 n)
{
	return n >= 32 ? a : n ? b << n | a >> (32 - n) : b;
}

static inline u32 shf_r(u32 a, u32 b, u32 n)
{
	return n >= 32 ? b : n ? b << (32 - n) | a >> n : a;
}

static inline u32 szext(u32 a, u32 b, int is_signed, int wrap)
{
	u32 n = wrap ? b & 31 : b > 32 ? 32 : b;

	if (!n)
		return 0;
	if (n >= 32)
		return a;
	return is_signed ? (u32)((s32)(a << (32 - n)) >> (32 - n)) : a & ((1u << n) - 1);
}

static inline u32 bmsk(u32 pos, u32 len, int wrap)
{
	u64 m;

	if (wrap)
		pos &= 31, len &= 31;
	if (pos >= 32)
		return 0;
	m = len >= 32 ? 0xffffffffull : ((u64)1 << len) - 1;
	return (u32)(m << pos);
}

static inline s32 dp_byte(u32 x, int i, int is_signed)
{
	return is_signed ? (int8_t)(x >> (8 * i)) : (uint8_t)(x >> (8 * i));
}

static inline u32 dp4a(u32 a, u32 b, u32 c, int sa, int sb)
{
	for (int i = 0; i < 4; i++)
		c += (u32)(dp_byte(a, i, sa) * dp_byte(b, i, sb));
	return c;
}

static inline u32 dp2a(u32 a, u32 b, u32 c, int sa, int sb, int hi)
{
	for (int i = 0; i < 2; i++) {
		s32 half = sa ? (int16_t)(a >> (16 * i)) : (uint16_t)(a >> (16 * i));

		c += (u32)(half * dp_byte(b, i + 2 * hi, sb));
	}
	return c;
}

/* clang-format off */
#define BIT_OPS(X) \
	X("shf l wrap b32", "wwww", shf_l_wrap, u32, u32, u32, u32, shf_l(a, b, c & 31)) \
	X("shf l clamp b32", "wwww", shf_l_clamp, u32, u32, u32, u32, shf_l(a, b, c)) \
	X("shf r wrap b32", "wwww", shf_r_wrap, u32, u32, u32, u32, shf_r(a, b, c & 31)) \
	X("shf r clamp b32", "wwww", shf_r_clamp, u32, u32, u32, u32, shf_r(a, b, c)) \
	X("bfe u32", "wwww", bfe_u32, u32, u32, u32, u32, bfe(a, b, c, 32, 0)) \
	X("bfe s32", "wwww", bfe_s32, u32, u32, u32, u32, bfe(a, b, c, 32, 1)) \
	X("bfe u64", "ddww", bfe_u64, u64, u64, u32, u32, bfe(a, b, c, 64, 0)) \
	X("bfe s64", "ddww", bfe_s64, u64, u64, u32, u32, bfe(a, b, c, 64, 1)) \
	X("bfind u32", "ww", bfind_u32, u32, u32, u32, u32, bfind(a, 0, 32, 0)) \
	X("bfind s32", "ww", bfind_s32, u32, u32, u32, u32, bfind(a, 1, 32, 0)) \
	X("bfind u64", "wd", bfind_u64, u32, u64, u64, u64, bfind(a, 0, 64, 0)) \
	X("bfind s64", "wd", bfind_s64, u32, u64, u64, u64, bfind(a, 1, 64, 0)) \
	X("bfind shiftamt u32", "ww", bfind_sh_u32, u32, u32, u32, u32, bfind(a, 0, 32, 1)) \
	X("bfind shiftamt s32", "ww", bfind_sh_s32, u32, u32, u32, u32, bfind(a, 1, 32, 1)) \
	X("bfind shiftamt u64", "wd", bfind_sh_u64, u32, u64, u64, u64, bfind(a, 0, 64, 1)) \
	X("bfind shiftamt s64", "wd", bfind_sh_s64, u32, u64, u64, u64, bfind(a, 1, 64, 1)) \
	X("brev b32", "ww", brev_32, u32, u32, u32, u32, brev64(a) >> 32) \
	X("brev b64", "dd", brev_64, u64, u64, u64, u64, brev64(a)) \
	X("clz b32", "ww", clz_32, u32, u32, u32, u32, a ? __builtin_clz(a) : 32) \
	X("clz b64", "wd", clz_64, u32, u64, u64, u64, a ? __builtin_clzll(a) : 64) \
	X("popc b32", "ww", popc_32, u32, u32, u32, u32, __builtin_popcount(a)) \
	X("popc b64", "wd", popc_64, u32, u64, u64, u64, __builtin_popcountll(a)) \
	X("prmt b32", "wwww", prmt_any, u32, u32, u32, u32, prmt(a, b, c)) \
	X("prmt b32 f4e", "wwww", prmt_f4e_, u32, u32, u32, u32, prmt_mode(a, b, c, prmt_f4e)) \
	X("prmt b32 b4e", "wwww", prmt_b4e_, u32, u32, u32, u32, prmt_mode(a, b, c, prmt_b4e)) \
	X("prmt b32 rc8", "wwww", prmt_rc8_, u32, u32, u32, u32, prmt_mode(a, b, c, prmt_rc8)) \
	X("prmt b32 ecl", "wwww", prmt_ecl_, u32, u32, u32, u32, prmt_mode(a, b, c, prmt_ecl)) \
	X("prmt b32 ecr", "wwww", prmt_ecr_, u32, u32, u32, u32, prmt_mode(a, b, c, prmt_ecr)) \
	X("prmt b32 rc16", "wwww", prmt_rc16_, u32, u32, u32, u32, prmt_mode(a, b, c, prmt_rc16)) \
	X("szext wrap s32", "www", szext_ws, u32, u32, u32, u32, szext(a, b, 1, 1)) \
	X("szext wrap u32", "www", szext_wu, u32, u32, u32, u32, szext(a, b, 0, 1)) \
	X("szext clamp s32", "www", szext_cs, u32, u32, u32, u32, szext(a, b, 1, 0)) \
	X("szext clamp u32", "www", szext_cu, u32, u32, u32, u32, szext(a, b, 0, 0)) \
	X("bmsk wrap b32", "www", bmsk_w, u32, u32, u32, u32, bmsk(a, b, 1)) \
	X("bmsk clamp b32", "www", bmsk_c, u32, u32, u32, u32, bmsk(a, b, 0)) \
	X("dp4a u32 u32", "wwww", dp4a_uu, u32, u32, u32, u32, dp4a(a, b, c, 0, 0)) \
	X("dp4a u32 s32", "wwww", dp4a_us, u32, u32, u32, u32, dp4a(a, b, c, 0, 1)) \
	X("dp4a s32 u32", "wwww", dp4a_su, u32, u32, u32, u32, dp4a(a, b, c, 1, 0)) \
	X("dp4a s32 s32", "wwww", dp4a_ss, u32, u32, u32, u32, dp4a(a, b, c, 1, 1)) \
	X("dp2a lo u32 u32", "wwww", dp2a_luu, u32, u32, u32, u32, dp2a(a, b, c, 0, 0, 0)) \
	X("dp2a lo u32 s32", "wwww", dp2a_lus, u32, u32, u32, u32, dp2a(a, b, c, 0, 1, 0)) \
	X("dp2a lo s32 u32", "wwww", dp2a_lsu, u32, u32, u32, u32, dp2a(a, b, c, 1, 0, 0)) \
	X("dp2a lo s32 s32", "wwww", dp2a_lss, u32, u32, u32, u32, dp2a(a, b, c, 1, 1, 0)) \
	X("dp2a hi u32 u32", "wwww", dp2a_huu, u32, u32, u32, u32, dp2a(a, b, c, 0, 0, 1)) \
	X("dp2a hi u32 s32", "wwww", dp2a_hus, u32, u32, u32, u32, dp2a(a, b, c, 0, 1, 1)) \
	X("dp2a hi s32 u32", "wwww", dp2a_hsu, u32, u32, u32, u32, dp2a(a, b, c, 1, 0, 1)) \
	X("dp2a hi s32 s32", "wwww", dp2a_hss, u32, u32, u32, u32, dp2a(a, b, c, 1, 1, 1))

/* Four operands with an immediate, or wider than the three-source loop. */
SIM_LANE_FN(lop3_b32, u32, u32, u32, u32, lop3(a, b, c, (u32)o->imm))
SIM_LANE_FN(bfi_any32, u32, u32, u32, u32, bfi(a, b, c, SIM_REG(u32, w, o, 4)[i], 32))
SIM_LANE_FN(bfi_any64, u64, u64, u64, u32, bfi(a, b, c, SIM_REG(u32, w, o, 4)[i], 64))

#define X(pattern, sig, name, TD, TA, TB, TC, ...) SIM_LANE_FN(name, TD, TA, TB, TC, __VA_ARGS__)
BIT_OPS(X)
#undef X
/* clang-format on */

static int lower_lop3(struct sim_lower *l, const struct rs_ptx_insn *in,
		      const struct sim_form *form, unsigned flags)
{
	uint32_t v[4];
	struct sim_uop *o;
	int rc = 0;

	(void)flags;
	if (in->noperands != 5 || in->op[4].kind != RS_PTX_OP_IMM)
		return sim_lower_fail(l, "wrong operands");
	rc = sim_lower_dst(l, &in->op[0], 'w', 0, &v[0]);
	for (int i = 1; i < 4 && !rc; i++)
		rc = sim_lower_src(l, &in->op[i], 'w', &v[i]);
	if (rc)
		return rc;
	o = sim_lower_emit(l, SIM_K_ALU, form->fn);
	if (!o)
		return -ENOMEM;
	memcpy(o->r, v, sizeof v);
	o->imm = in->op[4].imm & 255;
	o->wr |= 1, o->rd |= 2 | 4 | 8;
	o->flags |= SIM_F_PURE;
	return sim_lower_finish(l);
}

const struct sim_form sim_forms_bits[] = {{"lop3 b32", NULL, SIM_FN(lop3_b32), lower_lop3},
					  {"bfi b32", "wwwww", SIM_FN(bfi_any32), NULL},
					  {"bfi b64", "dddww", SIM_FN(bfi_any64), NULL},
#define X(pattern, sig, name, ...) {pattern, sig, SIM_FN(name), NULL},
					  BIT_OPS(X)
#undef X
};
const unsigned sim_nforms_bits = sizeof sim_forms_bits / sizeof *sim_forms_bits;

/*
 * Carry chains. `wide` is the exact result before the cut to the width; for subtraction the flag is
 * the borrow, as the ISA has it (bit 32 or 64 of the difference).
 */
#define CARRY_FN(name, T, W, set, ...)                                                             \
	static void name##_mask(const struct sim_uop *o, struct sim_warp *w)                       \
	{                                                                                          \
		T *d = SIM_REG(T, w, o, 0);                                                        \
		const T *a_ = SIM_REG(T, w, o, 1), *b_ = SIM_REG(T, w, o, 2),                      \
			*c_ = SIM_REG(T, w, o, 3);                                                 \
		u32 *flag = SIM_REG(u32, w, o, 4);                                                 \
		for (int i = 0; i < SIM_LANES; i++) {                                              \
			W a = a_[i], b = b_[i], c = c_[i], cc = flag[i];                           \
			W wide = (__VA_ARGS__);                                                    \
			(void)c, (void)cc;                                                         \
			if (!w->lanes[i])                                                          \
				continue;                                                          \
			d[i] = (T)wide;                                                            \
			if (set)                                                                   \
				flag[i] = (u32)(wide >> (8 * sizeof(T))) & 1;                      \
		}                                                                                  \
	}

#define HI(T, x)       ((x) >> (8 * sizeof(T)))
#define SMULHI32(a, b) ((u32)((s64)(s32)(a) * (s32)(b) >> 32))
#define SMULHI64(a, b) ((u64)((__int128)(s64)(a) * (s64)(b) >> 64))

/* clang-format off */
#define CARRY_OPS(X) \
	X("add cc u32|s32", "www", add_cc32, u32, u64, 1, a + b) \
	X("addc u32|s32", "www", addc32, u32, u64, 0, a + b + cc) \
	X("addc cc u32|s32", "www", addc_cc32, u32, u64, 1, a + b + cc) \
	X("sub cc u32|s32", "www", sub_cc32, u32, u64, 1, a - b) \
	X("subc u32|s32", "www", subc32, u32, u64, 0, a - b - cc) \
	X("subc cc u32|s32", "www", subc_cc32, u32, u64, 1, a - b - cc) \
	X("mad lo cc u32|s32", "wwww", mad_lo_cc32, u32, u64, 1, (u32)(a * b) + c) \
	X("madc lo u32|s32", "wwww", madc_lo32, u32, u64, 0, (u32)(a * b) + c + cc) \
	X("madc lo cc u32|s32", "wwww", madc_lo_cc32, u32, u64, 1, (u32)(a * b) + c + cc) \
	X("mad hi cc u32", "wwww", mad_hi_cc32, u32, u64, 1, HI(u32, a * b) + c) \
	X("madc hi u32", "wwww", madc_hi32, u32, u64, 0, HI(u32, a * b) + c + cc) \
	X("madc hi cc u32", "wwww", madc_hi_cc32, u32, u64, 1, HI(u32, a * b) + c + cc) \
	X("mad hi cc s32", "wwww", mad_hi_ccs32, u32, u64, 1, (u64)SMULHI32(a, b) + c) \
	X("madc hi s32", "wwww", madc_his32, u32, u64, 0, (u64)SMULHI32(a, b) + c + cc) \
	X("madc hi cc s32", "wwww", madc_hi_ccs32, u32, u64, 1, (u64)SMULHI32(a, b) + c + cc) \
	X("add cc u64|s64", "ddd", add_cc64, u64, u128, 1, a + b) \
	X("addc u64|s64", "ddd", addc64, u64, u128, 0, a + b + cc) \
	X("addc cc u64|s64", "ddd", addc_cc64, u64, u128, 1, a + b + cc) \
	X("sub cc u64|s64", "ddd", sub_cc64, u64, u128, 1, a - b) \
	X("subc u64|s64", "ddd", subc64, u64, u128, 0, a - b - cc) \
	X("subc cc u64|s64", "ddd", subc_cc64, u64, u128, 1, a - b - cc) \
	X("mad lo cc u64|s64", "dddd", mad_lo_cc64, u64, u128, 1, (u128)(u64)(a * b) + c) \
	X("madc lo u64|s64", "dddd", madc_lo64, u64, u128, 0, (u128)(u64)(a * b) + c + cc) \
	X("madc lo cc u64|s64", "dddd", madc_lo_cc64, u64, u128, 1, (u128)(u64)(a * b) + c + cc) \
	X("mad hi cc u64", "dddd", mad_hi_cc64, u64, u128, 1, HI(u64, a * b) + c) \
	X("madc hi u64", "dddd", madc_hi64, u64, u128, 0, HI(u64, a * b) + c + cc) \
	X("madc hi cc u64", "dddd", madc_hi_cc64, u64, u128, 1, HI(u64, a * b) + c + cc) \
	X("mad hi cc s64", "dddd", mad_hi_ccs64, u64, u128, 1, (u128)SMULHI64(a, b) + c) \
	X("madc hi s64", "dddd", madc_his64, u64, u128, 0, (u128)SMULHI64(a, b) + c + cc) \
	X("madc hi cc s64", "dddd", madc_hi_ccs64, u64, u128, 1, (u128)SMULHI64(a, b) + c + cc)
/* clang-format on */

#define X(pattern, sig, name, T, W, set, ...) CARRY_FN(name, T, W, set, __VA_ARGS__)
CARRY_OPS(X)
#undef X

/* By signature, plus the flag as an operand that is both read and written. */
static int lower_carry(struct sim_lower *l, const struct rs_ptx_insn *in,
		       const struct sim_form *form, unsigned flags)
{
	uint32_t before = l->nuops;
	int rc;

	if (l->cc == UINT32_MAX)
		l->cc = sim_lower_vreg(l, 4);
	if (l->cc == UINT32_MAX)
		return -ENOMEM;
	rc = sim_lower_by_sig(l, in, form, flags);
	for (uint32_t i = before; i < l->nuops && !rc; i++)
		if (l->uop[i].fn[0] == form->fn[0]) {
			l->uop[i].r[4] = l->cc;
			l->uop[i].rd |= 16;
			l->uop[i].wr |= 16;
			l->uop[i].flags &= (uint16_t)~SIM_F_PURE;
		}
	return rc;
}

const struct sim_form sim_forms_carry[] = {
#define X(pattern, sig, name, ...) {pattern, sig, {name##_mask, name##_mask}, lower_carry},
	CARRY_OPS(X)
#undef X
};
const unsigned sim_nforms_carry = sizeof sim_forms_carry / sizeof *sim_forms_carry;
