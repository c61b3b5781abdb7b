/* SPDX-License-Identifier: MIT */
/*
 * Objects of texture and surface instructions (see exec_view.h). The handle is a 64-bit register, as
 * compilers emit it; names of references and separate samplers are refused when the module is loaded.
 */
#include <errno.h>
#include <string.h>

#include "tests/simcuda/exec_view.h"

static const struct sim_view *find(const struct sim_launch *l, uint64_t handle)
{
	size_t lo = 0, hi = l->nviews;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (l->views[mid].handle < handle)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < l->nviews && l->views[lo].handle == handle ? &l->views[lo] : NULL;
}

const struct sim_view *sim_view_find(struct sim_warp *w, const struct sim_uop *o, unsigned lane,
				     uint64_t handle, int is_surface)
{
	const struct sim_view *v = find(w->run->launch, handle);
	const char *what = NULL;

	if (!v || v->is_surface != is_surface)
		what = is_surface ? "the handle is not a surface object"
				  : "the handle is not a texture object";
	else if (!v->nlevels)
		what = "the array of the object has been destroyed";
	if (what) {
		sim_run_fault(w, o, SIM_FAULT_OUT_OF_BOUNDS, 1u << lane, what);
		w->run->fault.addr = handle;
		return NULL;
	}
	if (v->dims != (o->flags & SIM_VIEW_DIMS) || v->is_cube ||
	    v->layered != !!(o->flags & SIM_VIEW_LAYERED)) {
		sim_run_fault(w, o, SIM_FAULT_TRAP, 1u << lane,
			      "the object has another number of dimensions");
		return NULL;
	}
	return v;
}

static int geometry(const struct rs_ptx_insn *in, unsigned *ret_dims, unsigned *ret_layered)
{
	static const struct {
		const char *name;
		uint8_t dims, layered;
	} known[] = {{"1d", 1, 0}, {"2d", 2, 0}, {"3d", 3, 0}, {"a1d", 1, 1}, {"a2d", 2, 1}};

	for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
		if (rs_ptx_has(in, known[i].name)) {
			*ret_dims = known[i].dims;
			*ret_layered = known[i].layered;
			return 0;
		}
	return -EINVAL;
}

int sim_view_lower(struct sim_lower *l, const struct rs_ptx_insn *in,
		   const struct rs_ptx_operand *op, char letter, unsigned *ret_flags)
{
	struct rs_ptx_operand handle = {
		.kind = RS_PTX_OP_REG, .reg = op->reg, .reg2 = -1, .target = -1};
	const struct rs_ptx_operand *at;
	unsigned dims, layered, n;
	uint32_t v;
	int rc;

	if (geometry(in, &dims, &layered))
		return sim_lower_fail(l, "unknown instruction %s", in->text);
	if (op->kind == RS_PTX_OP_ADDR && op->name)
		return sim_lower_fail(l,
				      "%s is a reference; only texture and surface objects are "
				      "supported",
				      op->name);
	if (op->kind == RS_PTX_OP_ADDR && op->nelems > 1)
		return sim_lower_fail(l, "separate samplers are not supported");
	if (op->kind != RS_PTX_OP_ADDR || op->reg < 0 || op->imm || op->nelems != 1)
		return sim_lower_fail(l, "wrong operands");
	at = &op->elems[0];
	n = dims + layered;
	/* Three coordinates come with a fourth that means nothing. */
	if (at->kind == RS_PTX_OP_VEC ? at->nelems != (n == 3 ? 4 : n) : n != 1)
		return sim_lower_fail(l, "wrong operands");
	rc = sim_lower_src(l, &handle, 'd', &v);
	if (!rc)
		rc = sim_lower_side(l, v);
	for (unsigned i = 0; i < n && !rc; i++) {
		rc = sim_lower_src(l, at->kind == RS_PTX_OP_VEC ? &at->elems[i] : at,
				   layered && !i ? 'w' : letter, &v);
		if (!rc)
			rc = sim_lower_side(l, v);
	}
	*ret_flags |= dims | (layered ? SIM_VIEW_LAYERED : 0);
	return rc;
}

int sim_view_data(struct sim_lower *l, const struct rs_ptx_operand *op, unsigned n, char letter,
		  int is_result)
{
	int vec = op->kind == RS_PTX_OP_VEC, rc = 0;
	uint32_t v;

	if (vec ? op->nelems != n : n != 1)
		return sim_lower_fail(l, "wrong operands");
	for (unsigned i = 0; i < n && !rc; i++) {
		const struct rs_ptx_operand *e = vec ? &op->elems[i] : op;

		rc = is_result ? sim_lower_dst(l, e, letter, 0, &v)
			       : sim_lower_src(l, e, letter, &v);
		if (!rc)
			rc = sim_lower_side(l, v);
	}
	return rc;
}

int sim_view_emit(struct sim_lower *l, sim_fn fn, uint32_t start, unsigned written, unsigned flags)
{
	const sim_fn both[2] = {fn, fn};
	struct sim_uop *o = sim_lower_emit(l, SIM_K_MEM, both);

	if (!o)
		return l->failed;
	o->imm = start;
	o->n = (uint8_t)(l->nside - start);
	o->target = (int32_t)written;
	o->flags |= (uint16_t)(flags | SIM_F_SIDE);
	return 0;
}
