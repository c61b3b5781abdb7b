/* SPDX-License-Identifier: MIT */
/*
 * Integer instructions of the engine against plain C written bit by bit or in 128 bits.
 */
#include "tests/simunit/exec_kit.h"

typedef unsigned __int128 u128;
typedef __int128 s128;

static int64_t sx(uint64_t v, unsigned bits)
{
	uint64_t sign = 1ull << (bits - 1);

	v &= bits == 64 ? ~0ull : (1ull << bits) - 1;
	return (int64_t)((v ^ sign) - sign);
}

static uint64_t zx(uint64_t v, unsigned bits)
{
	return bits == 64 ? v : v & ((1ull << bits) - 1);
}

/* Bit loops: slow, obvious. */
static uint64_t ref_shl(uint64_t a, uint64_t n, unsigned bits)
{
	for (uint64_t i = 0; i < n && i < bits; i++)
		a = zx(a * 2, bits);
	return a;
}

static uint64_t ref_shr(uint64_t a, uint64_t n, unsigned bits, int is_signed)
{
	uint64_t top = is_signed ? zx(a, bits) & 1ull << (bits - 1) : 0;

	a = zx(a, bits);
	for (uint64_t i = 0; i < n && i < bits; i++)
		a = a / 2 | top;
	return a;
}

static unsigned bit(uint64_t v, unsigned i)
{
	return (unsigned)(v >> i & 1);
}

static uint64_t ref_bfe(uint64_t a, uint64_t pos, uint64_t len, unsigned bits, int is_signed)
{
	uint64_t d = 0, last;
	unsigned sign;

	pos &= 255, len &= 255;
	last = pos + len - 1 < bits - 1 ? pos + len - 1 : bits - 1;
	sign = is_signed && len ? bit(a, (unsigned)last) : 0;
	for (unsigned i = 0; i < bits; i++)
		d |= (uint64_t)(i < len && pos + i < bits ? bit(a, (unsigned)(pos + i)) : sign)
		     << i;
	return d;
}

static uint64_t ref_bfi(uint64_t a, uint64_t b, uint64_t pos, uint64_t len, unsigned bits)
{
	pos &= 255, len &= 255;
	for (unsigned i = 0; i < len && pos + i < bits; i++) {
		b &= ~(1ull << (pos + i));
		b |= (uint64_t)bit(a, i) << (pos + i);
	}
	return b;
}

static uint64_t ref_bfind(uint64_t a, unsigned bits, int is_signed, int shift)
{
	unsigned sign = is_signed ? bit(a, bits - 1) : 0;

	for (int i = (int)bits - 1; i >= 0; i--)
		if (bit(a, (unsigned)i) != sign)
			return shift ? bits - 1 - (unsigned)i : (unsigned)i;
	return 0xffffffff;
}

static uint64_t ref_count(uint64_t a, unsigned bits, int leading)
{
	uint64_t n = 0;

	if (!leading) {
		for (unsigned i = 0; i < bits; i++)
			n += bit(a, i);
		return n;
	}
	while (n < bits && !bit(a, bits - 1 - (unsigned)n))
		n++;
	return n;
}

static uint64_t ref_brev(uint64_t a, unsigned bits)
{
	uint64_t d = 0;

	for (unsigned i = 0; i < bits; i++)
		d |= (uint64_t)bit(a, i) << (bits - 1 - i);
	return d;
}

static uint64_t ref_prmt(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t d = 0;

	for (unsigned i = 0; i < 4; i++) {
		unsigned sel = c >> (4 * i) & 15;
		uint64_t byte = (sel & 4 ? b : a) >> (8 * (sel & 3)) & 255;

		if (sel & 8)
			byte = byte >= 128 ? 255 : 0;
		d |= byte << (8 * i);
	}
	return d;
}

/* Special modes by their definition: which byte of {b, a} goes where. */
static uint64_t ref_prmt_mode(uint64_t a, uint64_t b, uint64_t c, const char *mode)
{
	unsigned s = c & 3;
	uint64_t d = 0, ab = (b & 0xffffffff) << 32 | (a & 0xffffffff);

	for (unsigned i = 0; i < 4; i++) {
		unsigned from;

		if (!strcmp(mode, "f4e"))
			from = i + s;
		else if (!strcmp(mode, "b4e"))
			from = (s + 8 - i) % 8;
		else if (!strcmp(mode, "rc8"))
			from = s;
		else if (!strcmp(mode, "ecl"))
			from = i > s ? i : s;
		else if (!strcmp(mode, "ecr"))
			from = i < s ? i : s;
		else
			from = (s & 1) * 2 + (i & 1);
		d |= (ab >> (8 * from) & 255) << (8 * i);
	}
	return d;
}

static uint64_t ref_lop3(uint64_t a, uint64_t b, uint64_t c, unsigned lut)
{
	uint64_t d = 0;

	for (unsigned i = 0; i < 32; i++)
		d |= (uint64_t)(lut >> (bit(a, i) * 4 + bit(b, i) * 2 + bit(c, i)) & 1) << i;
	return d;
}

static uint64_t ref_shf(uint64_t lo, uint64_t hi, uint64_t n, int left, int clamp)
{
	u128 v = (u128)((hi & 0xffffffff) << 32 | (lo & 0xffffffff));

	n = clamp ? (n > 32 ? 32 : n) : n % 32;
	return left ? (uint64_t)(v << n >> 32) : (uint64_t)(v >> n);
}

static uint64_t ref_szext(uint64_t a, uint64_t n, int is_signed, int wrap)
{
	n = wrap ? n % 32 : n > 32 ? 32 : n;
	if (!n)
		return 0;
	return is_signed ? (uint64_t)sx(a, (unsigned)n) : zx(a, (unsigned)n);
}

static uint64_t ref_bmsk(uint64_t pos, uint64_t len, int wrap)
{
	uint64_t d = 0;

	if (wrap)
		pos %= 32, len %= 32;
	for (uint64_t i = 0; i < len && pos + i < 32; i++)
		d |= 1ull << (pos + i);
	return d;
}

static uint64_t ref_div(uint64_t a, uint64_t b, unsigned bits, int is_signed, int rem)
{
	if (!zx(b, bits))
		return rem ? a : ~0ull;
	if (is_signed) {
		s128 x = sx(a, bits), y = sx(b, bits);

		return (uint64_t)(rem ? x % y : x / y);
	}
	return rem ? zx(a, bits) % zx(b, bits) : zx(a, bits) / zx(b, bits);
}

static uint64_t sat32(s128 v)
{
	return (uint64_t)(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int64_t)v);
}

static uint64_t ref_dp(uint64_t a, uint64_t b, uint64_t c, unsigned abits, int sa, int sb,
		       unsigned from)
{
	int64_t sum = (int64_t)c;

	for (unsigned i = 0; i < 32 / abits; i++) {
		uint64_t x = a >> (abits * i), y = b >> (8 * (i + from));

		sum += (sa ? sx(x, abits) : (int64_t)zx(x, abits)) *
		       (sb ? sx(y, 8) : (int64_t)zx(y, 8));
	}
	return (uint64_t)sum;
}

#define U(x, n)	   ((u128)zx(x, n))
#define S(x, n)	   ((s128)sx(x, n))
#define DIFF(a, b) ((a) > (b) ? (a) - (b) : (b) - (a))

/* clang-format off */
/* opcode, signature, extra operands, value in a, b, c, d */
#define FORMS(X) \
	X("add.u16", "hhh", NULL, a + b) X("add.s16", "hhh", NULL, a + b) \
	X("add.u32", "www", NULL, a + b) X("add.s32", "www", NULL, a + b) X("add.sat.s32", "www", NULL, sat32(S(a, 32) + S(b, 32))) \
	X("add.u64", "ddd", NULL, a + b) X("add.s64", "ddd", NULL, a + b) \
	X("sub.u16", "hhh", NULL, a - b) X("sub.s16", "hhh", NULL, a - b) \
	X("sub.u32", "www", NULL, a - b) X("sub.s32", "www", NULL, a - b) X("sub.sat.s32", "www", NULL, sat32(S(a, 32) - S(b, 32))) \
	X("sub.u64", "ddd", NULL, a - b) X("sub.s64", "ddd", NULL, a - b) \
	X("mul.lo.u16", "hhh", NULL, a * b) X("mul.lo.s16", "hhh", NULL, a * b) \
	X("mul.lo.u32", "www", NULL, a * b) X("mul.lo.s32", "www", NULL, a * b) \
	X("mul.lo.u64", "ddd", NULL, a * b) X("mul.lo.s64", "ddd", NULL, a * b) \
	X("mul.hi.u16", "hhh", NULL, U(a, 16) * U(b, 16) >> 16) X("mul.hi.s16", "hhh", NULL, S(a, 16) * S(b, 16) >> 16) \
	X("mul.hi.u32", "www", NULL, U(a, 32) * U(b, 32) >> 32) X("mul.hi.s32", "www", NULL, S(a, 32) * S(b, 32) >> 32) \
	X("mul.hi.u64", "ddd", NULL, U(a, 64) * U(b, 64) >> 64) X("mul.hi.s64", "ddd", NULL, S(a, 64) * S(b, 64) >> 64) \
	X("mul.wide.u16", "whh", NULL, U(a, 16) * U(b, 16)) X("mul.wide.s16", "whh", NULL, S(a, 16) * S(b, 16)) \
	X("mul.wide.u32", "dww", NULL, U(a, 32) * U(b, 32)) X("mul.wide.s32", "dww", NULL, S(a, 32) * S(b, 32)) \
	X("mad.lo.u16", "hhhh", NULL, a * b + c) X("mad.lo.s16", "hhhh", NULL, a * b + c) \
	X("mad.lo.u32", "wwww", NULL, a * b + c) X("mad.lo.s32", "wwww", NULL, a * b + c) \
	X("mad.lo.u64", "dddd", NULL, a * b + c) X("mad.lo.s64", "dddd", NULL, a * b + c) \
	X("mad.hi.u16", "hhhh", NULL, (U(a, 16) * U(b, 16) >> 16) + c) X("mad.hi.s16", "hhhh", NULL, (S(a, 16) * S(b, 16) >> 16) + c) \
	X("mad.hi.u32", "wwww", NULL, (U(a, 32) * U(b, 32) >> 32) + c) X("mad.hi.s32", "wwww", NULL, (S(a, 32) * S(b, 32) >> 32) + c) \
	X("mad.hi.sat.s32", "wwww", NULL, sat32((S(a, 32) * S(b, 32) >> 32) + S(c, 32))) \
	X("mad.hi.u64", "dddd", NULL, (U(a, 64) * U(b, 64) >> 64) + c) X("mad.hi.s64", "dddd", NULL, (S(a, 64) * S(b, 64) >> 64) + c) \
	X("mad.wide.u16", "whhw", NULL, U(a, 16) * U(b, 16) + c) X("mad.wide.s16", "whhw", NULL, S(a, 16) * S(b, 16) + c) \
	X("mad.wide.u32", "dwwd", NULL, U(a, 32) * U(b, 32) + c) X("mad.wide.s32", "dwwd", NULL, S(a, 32) * S(b, 32) + c) \
	X("mul24.lo.u32", "www", NULL, U(a, 24) * U(b, 24)) X("mul24.lo.s32", "www", NULL, S(a, 24) * S(b, 24)) \
	X("mul24.hi.u32", "www", NULL, U(a, 24) * U(b, 24) >> 16) X("mul24.hi.s32", "www", NULL, S(a, 24) * S(b, 24) >> 16) \
	X("mad24.lo.u32", "wwww", NULL, U(a, 24) * U(b, 24) + c) X("mad24.lo.s32", "wwww", NULL, S(a, 24) * S(b, 24) + c) \
	X("mad24.hi.u32", "wwww", NULL, (U(a, 24) * U(b, 24) >> 16) + c) X("mad24.hi.s32", "wwww", NULL, (S(a, 24) * S(b, 24) >> 16) + c) \
	X("mad24.hi.sat.s32", "wwww", NULL, sat32((S(a, 24) * S(b, 24) >> 16) + S(c, 32))) \
	X("sad.u16", "hhhh", NULL, DIFF(U(a, 16), U(b, 16)) + c) X("sad.s16", "hhhh", NULL, DIFF(S(a, 16), S(b, 16)) + c) \
	X("sad.u32", "wwww", NULL, DIFF(U(a, 32), U(b, 32)) + c) X("sad.s32", "wwww", NULL, DIFF(S(a, 32), S(b, 32)) + c) \
	X("sad.u64", "dddd", NULL, DIFF(U(a, 64), U(b, 64)) + c) X("sad.s64", "dddd", NULL, DIFF(S(a, 64), S(b, 64)) + c) \
	X("div.u16", "hhh", NULL, ref_div(a, b, 16, 0, 0)) X("div.s16", "hhh", NULL, ref_div(a, b, 16, 1, 0)) \
	X("div.u32", "www", NULL, ref_div(a, b, 32, 0, 0)) X("div.s32", "www", NULL, ref_div(a, b, 32, 1, 0)) \
	X("div.u64", "ddd", NULL, ref_div(a, b, 64, 0, 0)) X("div.s64", "ddd", NULL, ref_div(a, b, 64, 1, 0)) \
	X("rem.u16", "hhh", NULL, ref_div(a, b, 16, 0, 1)) X("rem.s16", "hhh", NULL, ref_div(a, b, 16, 1, 1)) \
	X("rem.u32", "www", NULL, ref_div(a, b, 32, 0, 1)) X("rem.s32", "www", NULL, ref_div(a, b, 32, 1, 1)) \
	X("rem.u64", "ddd", NULL, ref_div(a, b, 64, 0, 1)) X("rem.s64", "ddd", NULL, ref_div(a, b, 64, 1, 1)) \
	X("min.u16", "hhh", NULL, U(a, 16) < U(b, 16) ? a : b) X("min.s16", "hhh", NULL, S(a, 16) < S(b, 16) ? a : b) \
	X("min.u32", "www", NULL, U(a, 32) < U(b, 32) ? a : b) X("min.s32", "www", NULL, S(a, 32) < S(b, 32) ? a : b) \
	X("min.u64", "ddd", NULL, U(a, 64) < U(b, 64) ? a : b) X("min.s64", "ddd", NULL, S(a, 64) < S(b, 64) ? a : b) \
	X("max.u16", "hhh", NULL, U(a, 16) > U(b, 16) ? a : b) X("max.s16", "hhh", NULL, S(a, 16) > S(b, 16) ? a : b) \
	X("max.u32", "www", NULL, U(a, 32) > U(b, 32) ? a : b) X("max.s32", "www", NULL, S(a, 32) > S(b, 32) ? a : b) \
	X("max.u64", "ddd", NULL, U(a, 64) > U(b, 64) ? a : b) X("max.s64", "ddd", NULL, S(a, 64) > S(b, 64) ? a : b) \
	X("max.relu.s32", "www", NULL, S(a, 32) > S(b, 32) ? (S(a, 32) > 0 ? a : 0) : (S(b, 32) > 0 ? b : 0)) \
	X("min.relu.s32", "www", NULL, S(a, 32) < S(b, 32) ? (S(a, 32) > 0 ? a : 0) : (S(b, 32) > 0 ? b : 0)) \
	X("abs.s16", "hh", NULL, S(a, 16) < 0 ? -S(a, 16) : S(a, 16)) X("abs.s32", "ww", NULL, S(a, 32) < 0 ? -S(a, 32) : S(a, 32)) \
	X("abs.s64", "dd", NULL, S(a, 64) < 0 ? -S(a, 64) : S(a, 64)) \
	X("neg.s16", "hh", NULL, -S(a, 16)) X("neg.s32", "ww", NULL, -S(a, 32)) X("neg.s64", "dd", NULL, -S(a, 64)) \
	X("and.b16", "hhh", NULL, a & b) X("and.b32", "www", NULL, a & b) X("and.b64", "ddd", NULL, a & b) X("and.pred", "ppp", NULL, a & b & 1) \
	X("or.b16", "hhh", NULL, a | b) X("or.b32", "www", NULL, a | b) X("or.b64", "ddd", NULL, a | b) X("or.pred", "ppp", NULL, a | b) \
	X("xor.b16", "hhh", NULL, a ^ b) X("xor.b32", "www", NULL, a ^ b) X("xor.b64", "ddd", NULL, a ^ b) X("xor.pred", "ppp", NULL, a ^ b) \
	X("not.b16", "hh", NULL, ~a) X("not.b32", "ww", NULL, ~a) X("not.b64", "dd", NULL, ~a) X("not.pred", "pp", NULL, ~a) \
	X("cnot.b16", "hh", NULL, a == 0) X("cnot.b32", "ww", NULL, a == 0) X("cnot.b64", "dd", NULL, a == 0) \
	X("shl.b16", "hhw", NULL, ref_shl(a, b, 16)) X("shl.b32", "www", NULL, ref_shl(a, b, 32)) X("shl.b64", "ddw", NULL, ref_shl(a, b, 64)) \
	X("shr.u16", "hhw", NULL, ref_shr(a, b, 16, 0)) X("shr.u32", "www", NULL, ref_shr(a, b, 32, 0)) X("shr.u64", "ddw", NULL, ref_shr(a, b, 64, 0)) \
	X("shr.b16", "hhw", NULL, ref_shr(a, b, 16, 0)) X("shr.b32", "www", NULL, ref_shr(a, b, 32, 0)) X("shr.b64", "ddw", NULL, ref_shr(a, b, 64, 0)) \
	X("shr.s16", "hhw", NULL, ref_shr(a, b, 16, 1)) X("shr.s32", "www", NULL, ref_shr(a, b, 32, 1)) X("shr.s64", "ddw", NULL, ref_shr(a, b, 64, 1)) \
	X("shf.l.wrap.b32", "wwww", NULL, ref_shf(a, b, c, 1, 0)) X("shf.l.clamp.b32", "wwww", NULL, ref_shf(a, b, c, 1, 1)) \
	X("shf.r.wrap.b32", "wwww", NULL, ref_shf(a, b, c, 0, 0)) X("shf.r.clamp.b32", "wwww", NULL, ref_shf(a, b, c, 0, 1)) \
	X("bfe.u32", "wwww", NULL, ref_bfe(a, b, c, 32, 0)) X("bfe.s32", "wwww", NULL, ref_bfe(a, b, c, 32, 1)) \
	X("bfe.u64", "ddww", NULL, ref_bfe(a, b, c, 64, 0)) X("bfe.s64", "ddww", NULL, ref_bfe(a, b, c, 64, 1)) \
	X("bfi.b32", "wwwww", NULL, ref_bfi(a, b, c, d, 32)) X("bfi.b64", "dddww", NULL, ref_bfi(a, b, c, d, 64)) \
	X("bfind.u32", "ww", NULL, ref_bfind(a, 32, 0, 0)) X("bfind.s32", "ww", NULL, ref_bfind(a, 32, 1, 0)) \
	X("bfind.u64", "wd", NULL, ref_bfind(a, 64, 0, 0)) X("bfind.s64", "wd", NULL, ref_bfind(a, 64, 1, 0)) \
	X("bfind.shiftamt.u32", "ww", NULL, ref_bfind(a, 32, 0, 1)) X("bfind.shiftamt.s32", "ww", NULL, ref_bfind(a, 32, 1, 1)) \
	X("bfind.shiftamt.u64", "wd", NULL, ref_bfind(a, 64, 0, 1)) X("bfind.shiftamt.s64", "wd", NULL, ref_bfind(a, 64, 1, 1)) \
	X("brev.b32", "ww", NULL, ref_brev(a, 32)) X("brev.b64", "dd", NULL, ref_brev(a, 64)) \
	X("clz.b32", "ww", NULL, ref_count(a, 32, 1)) X("clz.b64", "wd", NULL, ref_count(a, 64, 1)) \
	X("popc.b32", "ww", NULL, ref_count(a, 32, 0)) X("popc.b64", "wd", NULL, ref_count(a, 64, 0)) \
	X("prmt.b32", "wwww", NULL, ref_prmt(a, b, c)) \
	X("prmt.b32.f4e", "wwww", NULL, ref_prmt_mode(a, b, c, "f4e")) X("prmt.b32.b4e", "wwww", NULL, ref_prmt_mode(a, b, c, "b4e")) \
	X("prmt.b32.rc8", "wwww", NULL, ref_prmt_mode(a, b, c, "rc8")) X("prmt.b32.ecl", "wwww", NULL, ref_prmt_mode(a, b, c, "ecl")) \
	X("prmt.b32.ecr", "wwww", NULL, ref_prmt_mode(a, b, c, "ecr")) X("prmt.b32.rc16", "wwww", NULL, ref_prmt_mode(a, b, c, "rc16")) \
	X("lop3.b32", "wwww", "0x1e", ref_lop3(a, b, c, 0x1e)) X("lop3.b32", "wwww", "0xca", ref_lop3(a, b, c, 0xca)) \
	X("lop3.b32", "wwww", "0x96", ref_lop3(a, b, c, 0x96)) X("lop3.b32", "wwww", "0xb1", ref_lop3(a, b, c, 0xb1)) \
	X("szext.wrap.u32", "www", NULL, ref_szext(a, b, 0, 1)) X("szext.wrap.s32", "www", NULL, ref_szext(a, b, 1, 1)) \
	X("szext.clamp.u32", "www", NULL, ref_szext(a, b, 0, 0)) X("szext.clamp.s32", "www", NULL, ref_szext(a, b, 1, 0)) \
	X("bmsk.wrap.b32", "www", NULL, ref_bmsk(a, b, 1)) X("bmsk.clamp.b32", "www", NULL, ref_bmsk(a, b, 0)) \
	X("dp4a.u32.u32", "wwww", NULL, ref_dp(a, b, c, 8, 0, 0, 0)) X("dp4a.s32.u32", "wwww", NULL, ref_dp(a, b, c, 8, 1, 0, 0)) \
	X("dp4a.u32.s32", "wwww", NULL, ref_dp(a, b, c, 8, 0, 1, 0)) X("dp4a.s32.s32", "wwww", NULL, ref_dp(a, b, c, 8, 1, 1, 0)) \
	X("dp2a.lo.s32.s32", "wwww", NULL, ref_dp(a, b, c, 16, 1, 1, 0)) X("dp2a.hi.s32.s32", "wwww", NULL, ref_dp(a, b, c, 16, 1, 1, 2)) \
	X("dp2a.lo.u32.u32", "wwww", NULL, ref_dp(a, b, c, 16, 0, 0, 0)) X("dp2a.hi.u32.u32", "wwww", NULL, ref_dp(a, b, c, 16, 0, 0, 2)) \
	X("dp2a.lo.u32.s32", "wwww", NULL, ref_dp(a, b, c, 16, 0, 1, 0)) X("dp2a.hi.s32.u32", "wwww", NULL, ref_dp(a, b, c, 16, 1, 0, 2)) \
	X("mov.b16", "hh", NULL, a) X("mov.b32", "ww", NULL, a) X("mov.u32", "ww", NULL, a) X("mov.b64", "dd", NULL, a) \
	X("mov.u64", "dd", NULL, a) X("mov.pred", "pp", NULL, a) X("mov.s32", "ww", NULL, a) X("mov.u16", "hh", NULL, a) \
	X("selp.b16", "hhhp", NULL, c ? a : b) X("selp.u16", "hhhp", NULL, c ? a : b) X("selp.b32", "wwwp", NULL, c ? a : b) \
	X("selp.u32", "wwwp", NULL, c ? a : b) X("selp.s32", "wwwp", NULL, c ? a : b) X("selp.b64", "dddp", NULL, c ? a : b) \
	X("slct.u32.s32", "wwww", NULL, S(c, 32) >= 0 ? a : b) X("slct.b64.s32", "dddw", NULL, S(c, 32) >= 0 ? a : b) \
	X("slct.u16.s32", "hhhw", NULL, S(c, 32) >= 0 ? a : b) \
	X("cvta.global.u64", "dd", NULL, a) X("cvta.to.global.u64", "dd", NULL, a)

#define CMP_FORMS(X, T, sig, K, n) \
	X("setp.eq." T, sig, NULL, K(a, n) == K(b, n)) X("setp.ne." T, sig, NULL, K(a, n) != K(b, n)) \
	X("setp.lt." T, sig, NULL, K(a, n) < K(b, n)) X("setp.le." T, sig, NULL, K(a, n) <= K(b, n)) \
	X("setp.gt." T, sig, NULL, K(a, n) > K(b, n)) X("setp.ge." T, sig, NULL, K(a, n) >= K(b, n))

#define COMPARES(X) \
	CMP_FORMS(X, "u16", "phh", U, 16) CMP_FORMS(X, "s16", "phh", S, 16) CMP_FORMS(X, "u32", "pww", U, 32) \
	CMP_FORMS(X, "s32", "pww", S, 32) CMP_FORMS(X, "u64", "pdd", U, 64) CMP_FORMS(X, "s64", "pdd", S, 64) \
	X("setp.eq.b16", "phh", NULL, a == b) X("setp.eq.b32", "pww", NULL, a == b) X("setp.ne.b64", "pdd", NULL, a != b) \
	X("setp.lo.u32", "pww", NULL, a < b) X("setp.ls.u32", "pww", NULL, a <= b) X("setp.hi.u32", "pww", NULL, a > b) X("setp.hs.u32", "pww", NULL, a >= b) \
	X("setp.lt.and.s32", "pwwp", NULL, S(a, 32) < S(b, 32) && c) X("setp.lt.or.u32", "pwwp", NULL, a < b || c) \
	X("setp.eq.xor.s64", "pddp", NULL, (a == b) != (c != 0)) \
	X("set.lt.u32.s32", "www", NULL, S(a, 32) < S(b, 32) ? 0xffffffff : 0) X("set.ne.s32.u16", "whh", NULL, a != b ? 0xffffffff : 0) \
	X("set.ge.f32.u32", "fww", NULL, a >= b ? 0x3f800000 : 0) X("set.gt.and.u32.u32", "wwwp", NULL, a > b && c ? 0xffffffff : 0)

/* with the carry flag set, and clear */
#define SET "{ add.cc.u32 %t, -1, 1; "
#define CLR "{ add.cc.u32 %t, 0, 1; "
#define BORROW "{ sub.cc.u32 %t, 0, 1; "
#define W2 "{ .reg .b32 %l, %h, %a0, %a1, %b0, %b1, %m; mov.b64 {%a0, %a1}, %x1; mov.b64 {%b0, %b1}, %x2; "
#define W2_END "mov.b64 %d, {%l, %h}; }"
#define CARRIES(X) \
	X(SET "addc.u32 %d, %x1, %x2; }", "www", NULL, a + b + 1) X(CLR "addc.s32 %d, %x1, %x2; }", "www", NULL, a + b) \
	X(BORROW "subc.u32 %d, %x1, %x2; }", "www", NULL, a - b - 1) X(CLR "subc.s32 %d, %x1, %x2; }", "www", NULL, a - b) \
	X(SET "madc.lo.u32 %d, %x1, %x2, %x3; }", "wwww", NULL, a * b + c + 1) \
	X(SET "madc.hi.u32 %d, %x1, %x2, %x3; }", "wwww", NULL, (U(a, 32) * U(b, 32) >> 32) + c + 1) \
	X(SET "madc.hi.s32 %d, %x1, %x2, %x3; }", "wwww", NULL, (S(a, 32) * S(b, 32) >> 32) + c + 1) \
	X(SET "addc.u64 %d, %x1, %x2; }", "ddd", NULL, a + b + 1) X(BORROW "subc.s64 %d, %x1, %x2; }", "ddd", NULL, a - b - 1) \
	X(SET "madc.lo.u64 %d, %x1, %x2, %x3; }", "dddd", NULL, a * b + c + 1) \
	X(SET "madc.hi.u64 %d, %x1, %x2, %x3; }", "dddd", NULL, (U(a, 64) * U(b, 64) >> 64) + c + 1) \
	X(W2 "add.cc.u32 %l, %a0, %b0; addc.u32 %h, %a1, %b1; " W2_END, "ddd", NULL, a + b) \
	X(W2 "sub.cc.u32 %l, %a0, %b0; subc.u32 %h, %a1, %b1; " W2_END, "ddd", NULL, a - b) \
	X(W2 "mul.lo.u32 %l, %a0, %b0; mul.hi.u32 %h, %a0, %b0; mad.lo.u32 %h, %a0, %b1, %h; mad.lo.u32 %h, %a1, %b0, %h; " W2_END, "ddd", NULL, a * b) \
	X("{ .reg .b64 %l, %h; add.cc.u64 %l, %x1, %x2; addc.cc.u64 %h, %x1, %x2; addc.u64 %d, 0, 0; add.u64 %d, %d, %h; }", "ddd", NULL, \
	  (uint64_t)(a + b + (uint64_t)(((u128)a + b) >> 64)) + (uint64_t)(((u128)a + b + (uint64_t)(((u128)a + b) >> 64)) >> 64)) \
	X("{ mad.lo.cc.u32 %d, %x1, %x2, %x3; addc.u32 %d, 0, 0; }", "wwww", NULL, (zx(a * b, 32) + c) >> 32) \
	X("{ mad.hi.cc.u32 %d, %x1, %x2, %x3; addc.u32 %d, 0, 0; }", "wwww", NULL, ((a * b >> 32) + c) >> 32)

/* Packing, unpacking, several destinations. */
#define MOVES(X) \
	X("{ .reg .b16 %l, %h; mov.b32 {%l, %h}, %x1; mov.b32 %d, {%h, %l}; }", "ww", NULL, a >> 16 | a << 16) \
	X("{ .reg .b32 %l, %h; mov.b64 {%l, %h}, %x1; mov.b64 %d, {%h, %l}; }", "dd", NULL, a >> 32 | a << 32) \
	X("{ .reg .b16 %a<4>; mov.b64 {%a0, %a1, %a2, %a3}, %x1; mov.b64 %d, {%a3, %a2, %a1, %a0}; }", "dd", NULL, \
	  a >> 48 | (a >> 32 & 0xffff) << 16 | (a >> 16 & 0xffff) << 32 | a << 48) \
	X("{ .reg .b32 %h; mov.b64 {_, %h}, %x1; mov.u32 %d, %h; }", "wd", NULL, a >> 32) \
	X("{ .reg .pred %u, %v; setp.lt.s32 %u|%v, %x1, %x2; selp.u32 %d, 1, 2, %u; @%v add.u32 %d, %d, 4; }", "www", NULL, \
	  S(a, 32) < S(b, 32) ? 1 : 6) \
	X("{ .reg .pred %u, %v; setp.eq.and.u32 %u|%v, %x1, %x2, !%x3; selp.u32 %d, 1, 0, %u; @%v add.u32 %d, %d, 2; }", "wwwp", NULL, \
	  c ? 0 : a == b ? 1 : 2) \
	X("{ .reg .pred %u; setp.ne.u32 %u, %x1, 0; mov.u32 %d, 9; @%u setp.eq.u32 %u, %x2, 0; @%u mov.u32 %d, 5; }", "www", NULL, \
	  a && !b ? 5 : 9) \
	X("{ add.s32 %d, %x1, %x1; add.s32 %d, %d, %d; }", "ww", NULL, 4 * a) \
	X("{ mov.u32 %d, WARP_SZ; add.u32 %d, %d, %x1; }", "ww", NULL, a + 32)
/* clang-format on */

#define ALL(X) FORMS(X) COMPARES(X) CARRIES(X) MOVES(X)

#include "tests/simunit/exec_rows.h"
