/* SPDX-License-Identifier: MIT */
/*
 * Comparisons and selections: setp, set, selp, slct, testp.
 *
 * A predicate is ~0 or 0 in each lane. Combined forms (.and/.or/.xor with a predicate, p|q) are
 * lowered to the plain comparison and one or two predicate operations.
 */
#include <errno.h>
#include <string.h>

#include "tests/simcuda/exec_float.h"
#include "tests/simcuda/exec_priv.h"

typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef float f32;
typedef double f64;

#define P(x) ((x) ? ~0u : 0u)

/* clang-format off */
#define CMP_SIGNED(X, types, sig, id, L, T) \
	X("eq", types, sig, id##_eq, L, P((T)a == (T)b)) \
	X("ne", types, sig, id##_ne, L, P((T)a != (T)b)) \
	X("lt", types, sig, id##_lt, L, P((T)a < (T)b)) \
	X("le", types, sig, id##_le, L, P((T)a <= (T)b)) \
	X("gt", types, sig, id##_gt, L, P((T)a > (T)b)) \
	X("ge", types, sig, id##_ge, L, P((T)a >= (T)b))
#define CMP_UNSIGNED(X, types, sig, id, L, T) \
	X("eq", types, sig, id##_eq, L, P((T)a == (T)b)) \
	X("ne", types, sig, id##_ne, L, P((T)a != (T)b)) \
	X("lt|lo", types, sig, id##_lt, L, P((T)a < (T)b)) \
	X("le|ls", types, sig, id##_le, L, P((T)a <= (T)b)) \
	X("gt|hi", types, sig, id##_gt, L, P((T)a > (T)b)) \
	X("ge|hs", types, sig, id##_ge, L, P((T)a >= (T)b))
#define CMP_BITS(X, types, sig, id, L, T) \
	X("eq", types, sig, id##_eq, L, P((T)a == (T)b)) \
	X("ne", types, sig, id##_ne, L, P((T)a != (T)b))
/* F maps the raw operand to what is compared. */
#define CMP_FLOAT(X, types, sig, id, L, F) \
	X("eq", types, sig, id##_eq, L, P(F(a) == F(b))) \
	X("ne", types, sig, id##_ne, L, P(F(a) < F(b) || F(a) > F(b))) \
	X("lt", types, sig, id##_lt, L, P(F(a) < F(b))) \
	X("le", types, sig, id##_le, L, P(F(a) <= F(b))) \
	X("gt", types, sig, id##_gt, L, P(F(a) > F(b))) \
	X("ge", types, sig, id##_ge, L, P(F(a) >= F(b))) \
	X("equ", types, sig, id##_equ, L, P(!(F(a) < F(b) || F(a) > F(b)))) \
	X("neu", types, sig, id##_neu, L, P(F(a) != F(b))) \
	X("ltu", types, sig, id##_ltu, L, P(!(F(a) >= F(b)))) \
	X("leu", types, sig, id##_leu, L, P(!(F(a) > F(b)))) \
	X("gtu", types, sig, id##_gtu, L, P(!(F(a) <= F(b)))) \
	X("geu", types, sig, id##_geu, L, P(!(F(a) < F(b)))) \
	X("num", types, sig, id##_num, L, P(F(a) == F(a) && F(b) == F(b))) \
	X("nan", types, sig, id##_nan, L, P(F(a) != F(a) || F(b) != F(b)))

#define SAME(x) (x)
#define FTZ(x) sim_ftz(x)
#define HALF(x) sim_half_to_float((u16)(x))
#define BF(x) sim_bf16_to_float((u16)(x))

#define CMP_ALL(X) \
	CMP_SIGNED(X, "s32", "pww", cmp_s32, s32, s32) \
	CMP_UNSIGNED(X, "u32", "pww", cmp_u32, u32, u32) \
	CMP_BITS(X, "b32", "pww", cmp_b32, u32, u32) \
	CMP_FLOAT(X, "f32", "pff", cmp_f32, f32, SAME) \
	CMP_SIGNED(X, "s64", "pdd", cmp_s64, s64, s64) \
	CMP_UNSIGNED(X, "u64", "pdd", cmp_u64, u64, u64) \
	CMP_BITS(X, "b64", "pdd", cmp_b64, u64, u64) \
	CMP_FLOAT(X, "f64", "pgg", cmp_f64, f64, SAME) \
	CMP_SIGNED(X, "s16", "phh", cmp_s16, u32, s16) \
	CMP_UNSIGNED(X, "u16", "phh", cmp_u16, u32, u16) \
	CMP_BITS(X, "b16", "phh", cmp_b16, u32, u16) \
	CMP_FLOAT(X, "f16", "phh", cmp_f16, u32, HALF) \
	CMP_FLOAT(X, "bf16", "phh", cmp_bf16, u32, BF)
#define CMP_FTZ(X) CMP_FLOAT(X, "f32", "pff", cmp_ftz, f32, FTZ)
/* clang-format on */

#define X(cmp, types, sig, name, L, ...) SIM_LANE_FN(name, u32, L, L, L, __VA_ARGS__)
CMP_ALL(X)
CMP_FTZ(X)
#undef X

static const struct compare {
	const char *cmp, *type, *sig;
	int ftz;
	sim_fn fn[2];
} compares[] = {
#define X(cmp, types, sig, name, ...) {cmp, types, sig, 0, SIM_FN(name)},
	CMP_ALL(X)
#undef X
#define X(cmp, types, sig, name, ...) {cmp, types, sig, 1, SIM_FN(name)},
		CMP_FTZ(X)
#undef X
};

SIM_LANE_FN(pred_and, u32, u32, u32, u32, a &b)
SIM_LANE_FN(pred_or, u32, u32, u32, u32, a | b)
SIM_LANE_FN(pred_xor, u32, u32, u32, u32, a ^ b)
SIM_LANE_FN(pred_not, u32, u32, u32, u32, ~a)
SIM_LANE_FN(sel_float, u32, u32, u32, u32, a & 0x3f800000)

const sim_fn sim_fn_pred[3][2] = {SIM_FN(pred_and), SIM_FN(pred_or), SIM_FN(pred_xor)};
const sim_fn sim_fn_not_pred[2] = SIM_FN(pred_not);
static const sim_fn fn_sel_float[2] = SIM_FN(sel_float);

/* Is `s` one of the alternatives of `a|b`? */
static int one_of(const char *list, const char *s)
{
	size_t n = strlen(s);

	for (const char *p = list; p; p = strchr(p, '|') ? strchr(p, '|') + 1 : NULL)
		if (!strncmp(p, s, n) && (p[n] == '|' || !p[n]))
			return 1;
	return 0;
}

static const struct compare *find_compare(const char *cmp, const char *type, int ftz)
{
	for (unsigned i = 0; i < sizeof compares / sizeof *compares; i++)
		if (one_of(compares[i].cmp, cmp) && !strcmp(compares[i].type, type) &&
		    compares[i].ftz == ftz)
			return &compares[i];
	return NULL;
}

static int emit_op(struct sim_lower *l, const sim_fn fn[2], uint32_t d, uint32_t a, uint32_t b,
		   int nsrc)
{
	struct sim_uop *o = sim_lower_emit(l, SIM_K_ALU, fn);

	if (!o)
		return -ENOMEM;
	o->r[0] = d, o->r[1] = a, o->r[2] = b;
	o->wr |= 1;
	o->rd |= nsrc == 2 ? 2 | 4 : 2;
	o->flags |= SIM_F_PURE;
	return 0;
}

/* Steps over cmp[.bool][.ftz]; returns the index of the part after it, or -errno. */
static int parse_compare(struct sim_lower *l, const struct rs_ptx_insn *in, int *ret_combine)
{
	static const char *const combine[] = {"and", "or", "xor"};
	int p = 2;

	*ret_combine = -1;
	if (in->nparts < 3)
		return sim_lower_fail(l, "unknown instruction %s", in->text);
	for (int i = 0; i < 3; i++)
		if (!strcmp(in->part[p], combine[i]))
			*ret_combine = i;
	if (*ret_combine >= 0)
		p++;
	if (p < in->nparts && !strcmp(in->part[p], "ftz"))
		p++;
	return p; /* index of the next part */
}

static int compare_of(struct sim_lower *l, const struct rs_ptx_insn *in, const char *type,
		      unsigned next, const struct compare **ret_cmp)
{
	int ftz = !strcmp(in->part[next - 1], "ftz");

	*ret_cmp = find_compare(in->part[1], type, ftz);
	if (!*ret_cmp)
		return sim_lower_fail(l, "unknown instruction %s", in->text);
	return 0;
}

/* Emit the comparison of operands op[1], op[2] into `p`, combined with op[3] if asked. */
static int emit_compare(struct sim_lower *l, const struct rs_ptx_insn *in, const struct compare *c,
			int combine, uint32_t p, uint32_t q)
{
	uint32_t a, b, other = 0, raw = p;
	int rc = sim_lower_src(l, &in->op[1], c->sig[1], &a);

	if (!rc)
		rc = sim_lower_src(l, &in->op[2], c->sig[2], &b);
	if (!rc && combine >= 0)
		rc = sim_lower_src(l, &in->op[3], 'p', &other);
	if (rc)
		return rc;
	if (combine >= 0 || q != UINT32_MAX)
		raw = sim_lower_temp(l, 4);
	rc = emit_op(l, c->fn, raw, a, b, 2);
	if (!rc && q != UINT32_MAX) {
		uint32_t inverse = combine >= 0 ? sim_lower_temp(l, 4) : q;

		rc = emit_op(l, sim_fn_not_pred, inverse, raw, 0, 1);
		if (!rc && combine >= 0) {
			/* p may be the predicate that both halves read */
			uint32_t keep = sim_lower_temp(l, 4);

			rc = emit_op(l, sim_fn_copy[2], keep, other, 0, 1);
			other = keep;
			if (!rc)
				rc = emit_op(l, sim_fn_pred[combine], q, inverse, other, 2);
		}
	}
	if (!rc && combine >= 0)
		rc = emit_op(l, sim_fn_pred[combine], p, raw, other, 2);
	else if (!rc && raw != p)
		rc = emit_op(l, sim_fn_copy[2], p, raw, 0, 1);
	return rc;
}

static int lower_setp(struct sim_lower *l, const struct rs_ptx_insn *in,
		      const struct sim_form *form, unsigned flags)
{
	const struct compare *c = NULL;
	uint32_t p, q = UINT32_MAX;
	int combine, rc, next;

	(void)form, (void)flags;
	next = parse_compare(l, in, &combine);
	if (next < 0)
		return next;
	if (next != in->nparts - 1)
		return sim_lower_fail(l, "unknown instruction %s", in->text);
	rc = compare_of(l, in, in->part[next], (unsigned)next, &c);
	if (rc)
		return rc;
	if (in->noperands != 3u + (combine >= 0) ||
	    (in->op[0].kind != RS_PTX_OP_REG && in->op[0].kind != RS_PTX_OP_SINK))
		return sim_lower_fail(l, "wrong operands");
	rc = sim_lower_dst(l, &in->op[0], 'p', 0, &p);
	if (!rc && in->op[0].kind == RS_PTX_OP_REG && in->op[0].reg2 >= 0) {
		struct rs_ptx_operand second = in->op[0];

		second.reg = second.reg2;
		rc = sim_lower_dst(l, &second, 'p', 0, &q);
	}
	return rc ? rc : emit_compare(l, in, c, combine, p, q);
}

/* set.cmp[.bool][.ftz].dtype.stype: all ones or 1.0f. The mask is what a predicate already is. */
static int lower_set(struct sim_lower *l, const struct rs_ptx_insn *in, const struct sim_form *form,
		     unsigned flags)
{
	const struct compare *c = NULL;
	uint32_t d, p;
	int combine, rc, next, is_float;

	(void)form, (void)flags;
	next = parse_compare(l, in, &combine);
	if (next < 0)
		return next;
	if (next != in->nparts - 2)
		return sim_lower_fail(l, "unknown instruction %s", in->text);
	rc = compare_of(l, in, in->part[next + 1], (unsigned)next, &c);
	if (rc)
		return rc;
	is_float = !strcmp(in->part[next], "f32");
	if (!is_float && strcmp(in->part[next], "u32") && strcmp(in->part[next], "s32"))
		return sim_lower_fail(l, "unknown instruction %s", in->text);
	if (in->noperands != 3u + (combine >= 0))
		return sim_lower_fail(l, "wrong operands");
	rc = sim_lower_dst(l, &in->op[0], 'w', 0, &d);
	if (rc)
		return rc;
	p = sim_lower_temp(l, 4);
	rc = emit_compare(l, in, c, combine, p, UINT32_MAX);
	if (!rc)
		rc = emit_op(l, is_float ? fn_sel_float : sim_fn_copy[0], d, p, 0, 1);
	return rc ? rc : sim_lower_finish(l);
}

static inline u32 testp32(f32 x, const char kind)
{
	u32 u = sim_bits32(x), e = u & 0x7f800000, m = u & 0x7fffff;

	switch (kind) {
	case 'f':
		return P(e != 0x7f800000);
	case 'i':
		return P(e == 0x7f800000 && !m);
	case 'x':
		return P(e == 0x7f800000 && m);
	case '#':
		return P(!(e == 0x7f800000 && m));
	case 'n':
		return P(e && e != 0x7f800000);
	default:
		return P(!e && m);
	}
}

static inline u32 testp64(f64 x, const char kind)
{
	u64 u = sim_bits64(x), e = u & 0x7ff0000000000000ull, m = u & 0xfffffffffffffull;

	switch (kind) {
	case 'f':
		return P(e != 0x7ff0000000000000ull);
	case 'i':
		return P(e == 0x7ff0000000000000ull && !m);
	case 'x':
		return P(e == 0x7ff0000000000000ull && m);
	case '#':
		return P(!(e == 0x7ff0000000000000ull && m));
	case 'n':
		return P(e && e != 0x7ff0000000000000ull);
	default:
		return P(!e && m);
	}
}

/* clang-format off */
#define SEL_OPS(X) \
	X("selp b32|u32|s32", "wwwp", selp_32, u32, u32, u32, u32, c ? a : b) \
	X("selp f32", "fffp", selp_f32, u32, u32, u32, u32, c ? a : b) \
	X("selp b16|u16|s16", "hhhp", selp_16, u32, u32, u32, u32, c ? a : b) \
	X("selp b64|u64|s64", "dddp", selp_64, u64, u64, u64, u32, c ? a : b) \
	X("selp f64", "gggp", selp_f64, u64, u64, u64, u32, c ? a : b) \
	X("slct u32|s32|b32 s32", "wwww", slct_32, u32, u32, u32, s32, c >= 0 ? a : b) \
	X("slct f32 s32", "fffw", slct_f32, u32, u32, u32, s32, c >= 0 ? a : b) \
	X("slct u16|s16|b16 s32", "hhhw", slct_16, u32, u32, u32, s32, c >= 0 ? a : b) \
	X("slct u64|s64|b64 s32", "dddw", slct_64, u64, u64, u64, s32, c >= 0 ? a : b) \
	X("slct f64 s32", "gggw", slct_f64, u64, u64, u64, s32, c >= 0 ? a : b) \
	X("slct u32|s32|b32 f32", "wwwf", slct_f_32, u32, u32, u32, f32, c >= 0 ? a : b) \
	X("slct ftz u32|s32|b32 f32", "wwwf", slct_z_32, u32, u32, u32, f32, FTZ(c) >= 0 ? a : b) \
	X("slct f32 f32", "ffff", slct_f_f32, u32, u32, u32, f32, c >= 0 ? a : b) \
	X("slct ftz f32 f32", "ffff", slct_z_f32, u32, u32, u32, f32, FTZ(c) >= 0 ? a : b) \
	X("slct u16|s16|b16 f32", "hhhf", slct_f_16, u32, u32, u32, f32, c >= 0 ? a : b) \
	X("slct ftz u16|s16|b16 f32", "hhhf", slct_z_16, u32, u32, u32, f32, FTZ(c) >= 0 ? a : b) \
	X("slct u64|s64|b64 f32", "dddf", slct_f_64, u64, u64, u64, f32, c >= 0 ? a : b) \
	X("slct ftz u64|s64|b64 f32", "dddf", slct_z_64, u64, u64, u64, f32, FTZ(c) >= 0 ? a : b) \
	X("slct f64 f32", "gggf", slct_f_f64, u64, u64, u64, f32, c >= 0 ? a : b) \
	X("slct ftz f64 f32", "gggf", slct_z_f64, u64, u64, u64, f32, FTZ(c) >= 0 ? a : b) \
	X("testp finite f32", "pf", testp_fin32, u32, f32, u32, u32, testp32(a, 'f')) \
	X("testp infinite f32", "pf", testp_inf32, u32, f32, u32, u32, testp32(a, 'i')) \
	X("testp number f32", "pf", testp_num32, u32, f32, u32, u32, testp32(a, '#')) \
	X("testp notanumber f32", "pf", testp_nan32, u32, f32, u32, u32, testp32(a, 'x')) \
	X("testp normal f32", "pf", testp_nor32, u32, f32, u32, u32, testp32(a, 'n')) \
	X("testp subnormal f32", "pf", testp_sub32, u32, f32, u32, u32, testp32(a, 's')) \
	X("testp finite f64", "pg", testp_fin64, u32, f64, u32, u32, testp64(a, 'f')) \
	X("testp infinite f64", "pg", testp_inf64, u32, f64, u32, u32, testp64(a, 'i')) \
	X("testp number f64", "pg", testp_num64, u32, f64, u32, u32, testp64(a, '#')) \
	X("testp notanumber f64", "pg", testp_nan64, u32, f64, u32, u32, testp64(a, 'x')) \
	X("testp normal f64", "pg", testp_nor64, u32, f64, u32, u32, testp64(a, 'n')) \
	X("testp subnormal f64", "pg", testp_sub64, u32, f64, u32, u32, testp64(a, 's'))
/* clang-format on */

#define X(pattern, sig, name, TD, TA, TB, TC, ...) SIM_LANE_FN(name, TD, TA, TB, TC, __VA_ARGS__)
SEL_OPS(X)
#undef X

const struct sim_form sim_forms_cmp[] = {{"setp *", NULL, {NULL, NULL}, lower_setp},
					 {"set *", NULL, {NULL, NULL}, lower_set},
#define X(pattern, sig, name, ...) {pattern, sig, SIM_FN(name), NULL},
					 SEL_OPS(X)
#undef X
};
const unsigned sim_nforms_cmp = sizeof sim_forms_cmp / sizeof *sim_forms_cmp;
