/* SPDX-License-Identifier: MIT */
/*
 * mov (copies, packing and unpacking, addresses), cvta, isspacep, and width changes between
 * register classes.
 *
 * Generic addresses: global memory is where it is; shared, local and parameter space lie in windows
 * that no host pointer can reach, so one compare tells them apart.
 */
#include <errno.h>
#include <string.h>

#include "tests/simcuda/exec_priv.h"

typedef uint32_t u32;
typedef uint64_t u64;

SIM_LANE_FN(copy_4, u32, u32, u32, u32, a)
SIM_LANE_FN(copy_8, u64, u64, u64, u64, a)
SIM_LANE_FN(trunc_8, u32, u64, u64, u64, a)
SIM_LANE_FN(zext_4, u64, u32, u32, u32, a)
SIM_LANE_FN(sext_4, int64_t, int32_t, u32, u32, a)
SIM_LANE_FN(pack_2x16, u32, u32, u32, u32, (a & 0xffff) | b << 16)
SIM_LANE_FN(pack_2x32, u64, u32, u32, u32, a | (u64)b << 32)
SIM_LANE_FN(shift_16, u32, u32, u32, u32, a >> 16)
SIM_LANE_FN(shift_32, u32, u64, u64, u64, a >> 32)
SIM_LANE_FN(base_add, u64, u64, u64, u64, a + (u64)o->imm)
SIM_LANE_FN(in_window, u32, u64, u64, u64, a - (u64)o->imm < SIM_WINDOW_BYTES ? ~0u : 0)
SIM_LANE_FN(in_global, u32, u64, u64, u64, a < 1ull << 47 ? ~0u : 0)

const sim_fn sim_fn_copy[3][2] = {SIM_FN(copy_4), SIM_FN(copy_8), SIM_FN(copy_4)};
const sim_fn sim_fn_trunc[2] = SIM_FN(trunc_8);
const sim_fn sim_fn_zext[2] = SIM_FN(zext_4);
const sim_fn sim_fn_sext[2] = SIM_FN(sext_4);
static const sim_fn fn_pack16[2] = SIM_FN(pack_2x16), fn_pack32[2] = SIM_FN(pack_2x32);
static const sim_fn fn_shift16[2] = SIM_FN(shift_16), fn_shift32[2] = SIM_FN(shift_32);
static const sim_fn fn_base[2] = SIM_FN(base_add);
static const sim_fn fn_window[2] = SIM_FN(in_window), fn_global[2] = SIM_FN(in_global);

static struct sim_uop *emit2(struct sim_lower *l, const sim_fn fn[2], u32 d, u32 a, u32 b)
{
	struct sim_uop *o = sim_lower_emit(l, SIM_K_ALU, fn);

	if (!o)
		return NULL;
	o->r[0] = d, o->r[1] = a, o->r[2] = b;
	o->wr |= 1, o->rd |= 2 | 4;
	o->flags |= SIM_F_PURE;
	return o;
}

static int copy(struct sim_lower *l, u32 d, u32 a, unsigned cls)
{
	struct sim_uop *o = emit2(l, sim_fn_copy[cls == 8], d, a, a);

	if (!o)
		return -ENOMEM;
	o->flags |= SIM_F_COPY;
	return 0;
}

static char type_letter(unsigned type)
{
	switch (type) {
	case RS_PTX_PRED:
		return 'p';
	case RS_PTX_F32:
		return 'f';
	case RS_PTX_F64:
		return 'g';
	default:
		break;
	}
	switch (rs_ptx_type_bytes(type)) {
	case 8:
		return 'd';
	case 4:
		return 'w';
	case 2:
		return 'h';
	default:
		return 0;
	}
}

/* Join two halves of `cls` bytes together (4 or 8). */
static int pack2(struct sim_lower *l, u32 d, u32 lo, u32 hi, unsigned cls)
{
	return emit2(l, cls == 8 ? fn_pack32 : fn_pack16, d, lo, hi) ? 0 : -ENOMEM;
}

static int lower_pack(struct sim_lower *l, const struct rs_ptx_insn *in, unsigned cls)
{
	const struct rs_ptx_operand *v = &in->op[1];
	unsigned n = v->nelems;
	u32 d, e[4], lo, hi;
	int rc;

	if (!(n == 2 || (n == 4 && cls == 8)))
		return sim_lower_fail(l, "cannot pack %u elements", n);
	rc = sim_lower_dst(l, &in->op[0], cls == 8 ? 'd' : 'w', 0, &d);
	for (unsigned i = 0; i < n && !rc; i++)
		rc = sim_lower_src(l, &v->elems[i], cls == 8 && n == 2 ? 'w' : 'h', &e[i]);
	if (rc)
		return rc;
	if (n == 2) {
		rc = pack2(l, d, e[0], e[1], cls);
	} else {
		lo = sim_lower_temp(l, 4), hi = sim_lower_temp(l, 4);
		rc = pack2(l, lo, e[0], e[1], 4);
		if (!rc)
			rc = pack2(l, hi, e[2], e[3], 4);
		if (!rc)
			rc = pack2(l, d, lo, hi, 8);
	}
	return rc ? rc : sim_lower_finish(l);
}

static int split(struct sim_lower *l, u32 lo, u32 hi, u32 a, unsigned cls)
{
	const sim_fn *low = cls == 8 ? sim_fn_trunc : sim_fn_copy[0];

	if (!emit2(l, low, lo, a, a) || !emit2(l, cls == 8 ? fn_shift32 : fn_shift16, hi, a, a))
		return -ENOMEM;
	return 0;
}

static int lower_unpack(struct sim_lower *l, const struct rs_ptx_insn *in, unsigned cls)
{
	const struct rs_ptx_operand *v = &in->op[0];
	unsigned n = v->nelems;
	u32 a, d[4], keep, lo, hi;
	int rc;

	if (!(n == 2 || (n == 4 && cls == 8)))
		return sim_lower_fail(l, "cannot unpack %u elements", n);
	rc = sim_lower_src(l, &in->op[1], cls == 8 ? 'd' : 'w', &a);
	for (unsigned i = 0; i < n && !rc; i++)
		rc = sim_lower_dst(l, &v->elems[i], cls == 8 && n == 2 ? 'w' : 'h', 0, &d[i]);
	if (rc)
		return rc;
	/* the source may be one of the destinations */
	keep = sim_lower_temp(l, cls);
	rc = copy(l, keep, a, cls);
	if (!rc && n == 2)
		rc = split(l, d[0], d[1], keep, cls);
	if (!rc && n == 4) {
		lo = sim_lower_temp(l, 4), hi = sim_lower_temp(l, 4);
		rc = split(l, lo, hi, keep, 8);
		if (!rc)
			rc = split(l, d[0], d[1], lo, 4);
		if (!rc)
			rc = split(l, d[2], d[3], hi, 4);
	}
	return rc ? rc : sim_lower_finish(l);
}

static int lower_mov(struct sim_lower *l, const struct rs_ptx_insn *in, const struct sim_form *form,
		     unsigned flags)
{
	char letter = type_letter(in->type);
	u32 d, a;
	int rc;

	(void)form, (void)flags;
	if (in->nparts != 2 || !letter)
		return sim_lower_fail(l, "unknown instruction %s", in->text);
	if (in->noperands != 2)
		return sim_lower_fail(l, "wrong operands");
	if (in->op[1].kind == RS_PTX_OP_VEC)
		return lower_pack(l, in, sim_letter_class(letter));
	if (in->op[0].kind == RS_PTX_OP_VEC)
		return lower_unpack(l, in, sim_letter_class(letter));
	rc = sim_lower_src(l, &in->op[1], letter, &a);
	if (!rc)
		rc = sim_lower_dst(l, &in->op[0], letter, 0, &d);
	if (!rc)
		rc = copy(l, d, a, sim_letter_class(letter));
	return rc ? rc : sim_lower_finish(l);
}

static int space_base(unsigned space, u64 *ret_base)
{
	switch (space) {
	case RS_PTX_SPACE_GLOBAL:
	case RS_PTX_SPACE_CONST:
		*ret_base = 0;
		return 0;
	case RS_PTX_SPACE_SHARED:
		*ret_base = SIM_SHARED_BASE;
		return 0;
	case RS_PTX_SPACE_LOCAL:
		*ret_base = SIM_LOCAL_BASE;
		return 0;
	case RS_PTX_SPACE_PARAM:
		*ret_base = SIM_PARAM_BASE;
		return 0;
	default:
		return -EINVAL;
	}
}

/* cvta[.to].space.u64: windows are offsets, so both directions are an addition. */
static int lower_cvta(struct sim_lower *l, const struct rs_ptx_insn *in,
		      const struct sim_form *form, unsigned flags)
{
	static const char *const allowed[] = {"to", NULL};
	int to = rs_ptx_has(in, "to"), rc;
	struct sim_uop *o;
	u64 base;
	u32 d, a;

	(void)form, (void)flags;
	if (sim_form_parts(in, allowed) >= 0 || in->type != RS_PTX_U64 || in->noperands != 2 ||
	    in->nparts != 3 + to || space_base(in->space, &base))
		return sim_lower_fail(l, "unknown instruction %s", in->text);
	rc = sim_lower_src(l, &in->op[1], 'd', &a);
	if (!rc)
		rc = sim_lower_dst(l, &in->op[0], 'd', 0, &d);
	if (rc)
		return rc;
	if (!base)
		return copy(l, d, a, 8);
	o = emit2(l, fn_base, d, a, a);
	if (!o)
		return -ENOMEM;
	o->imm = (int64_t)(to ? 0 - base : base);
	return 0;
}

static int lower_isspacep(struct sim_lower *l, const struct rs_ptx_insn *in,
			  const struct sim_form *form, unsigned flags)
{
	struct sim_uop *o;
	u64 base;
	u32 d, a;
	int rc;

	(void)form, (void)flags;
	if (in->nparts != 2 || in->noperands != 2 || space_base(in->space, &base))
		return sim_lower_fail(l, "unknown instruction %s", in->text);
	rc = sim_lower_src(l, &in->op[1], 'd', &a);
	if (!rc)
		rc = sim_lower_dst(l, &in->op[0], 'p', 0, &d);
	if (rc)
		return rc;
	o = emit2(l, base ? fn_window : fn_global, d, a, a);
	if (!o)
		return -ENOMEM;
	o->imm = (int64_t)base;
	return 0;
}

const struct sim_form sim_forms_mov[] = {
	{"mov *", NULL, {NULL, NULL}, lower_mov},
	{"cvta *", NULL, {NULL, NULL}, lower_cvta},
	{"isspacep *", NULL, {NULL, NULL}, lower_isspacep},
};
const unsigned sim_nforms_mov = sizeof sim_forms_mov / sizeof *sim_forms_mov;
