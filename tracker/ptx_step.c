/* SPDX-License-Identifier: MIT */
/*
 * One step of the walk: what its destinations hold afterwards, and what it leaves in memory that
 * the kernel keeps for itself (shared, local, call parameters). See ptx_value.h.
 *
 * Callers: ptx_walk.c. No locks.
 */
#include "tracker/ptx_value.h"

#include <string.h>

/* One destination register of a load; `elem` of a vector. */
static struct rs_val load_value(struct rs_vals *v, const struct rs_flow_step *step,
				const struct rs_ptx_operand *dest, unsigned elem)
{
	const struct rs_ptx_insn *insn = step->insn;
	const struct rs_ptx_operand *addr = &insn->op[1];
	unsigned width = rs_type_width(rs_reg_type(v, dest)), type = insn->type;
	unsigned bytes = rs_ptx_type_bytes(type);
	struct rs_aff_origin origin = {0, RS_AFF_MEMORY};

	if (insn->space == RS_PTX_SPACE_PARAM) {
		const struct rs_flow_slot *slot = rs_flow_slot(&v->flow, step, addr, bytes, elem);
		uint32_t frame = step->frame;
		int32_t reg = -1;
		const struct rs_ptx_var *var =
			addr->kind == RS_PTX_OP_ADDR && addr->var && addr->reg < 0
				? rs_flow_param(&v->flow, addr->var, &frame, &reg)
				: NULL;

		if (slot && !slot->mixed && rs_vals_reg(v, slot->reg)->p &&
		    rs_vals_reg(v, slot->reg)->p->width == width)
			return *rs_vals_reg(v, slot->reg);
		if (slot && !slot->mixed)
			return rs_val_unknown(v, width, elem, INT64_MIN, INT64_MAX,
					      rs_vals_reg(v, slot->reg)->origin);
		if (reg >= 0 && !addr->imm && rs_vals_reg(v, (uint32_t)reg)->p &&
		    rs_vals_reg(v, (uint32_t)reg)->p->width == width)
			return *rs_vals_reg(v, (uint32_t)reg);
		if (var && frame == 0 && !slot)
			return rs_val_param(v, width,
					    (uint32_t)(var->offset + (uint64_t)addr->imm +
						       (uint64_t)elem * bytes),
					    type);
		/* Without calls only the kernel's own block can be indexed: words, not loads. */
		origin.from = RS_AFF_ANYWORD | (v->flow.nslots ? RS_AFF_MEMORY : 0u);
	} else if (insn->space == RS_PTX_SPACE_LOCAL || insn->space == RS_PTX_SPACE_SHARED) {
		origin = v->stored; /* what the kernel itself put there */
	} else if (insn->space == RS_PTX_SPACE_NONE) {
		/* It may be private memory or the parameter block. */
		origin = rs_origin_join(origin, v->stored);
		if (rs_vals_address(v, addr)->origin.from & RS_AFF_PRIVATE)
			origin.from |= RS_AFF_ANYWORD;
	}
	return rs_val_unknown(v, width, elem, rs_type_lo(type), rs_type_hi(type), origin);
}

struct gather {
	struct rs_vals *v;
	struct rs_aff_origin origin;
};

static void gather_origin(void *opaque, uint32_t reg, int is_def)
{
	struct gather *g = opaque;

	if (!is_def)
		g->origin = rs_origin_join(g->origin, rs_vals_reg(g->v, reg)->origin);
}

static void gather_operand(struct gather *g, const struct rs_flow_step *step,
			   const struct rs_ptx_operand *op)
{
	uint32_t base = g->v->flow.frames[step->frame].reg_base;

	if (op->kind == RS_PTX_OP_SYM)
		g->origin = rs_origin_join(g->origin, rs_vals_operand(g->v, op, 64)->origin);
	if (op->kind == RS_PTX_OP_REG && op->reg >= 0)
		gather_origin(g, base + (uint32_t)op->reg, 0);
	for (unsigned i = 0; i < op->nelems; i++)
		gather_operand(g, step, &op->elems[i]);
}

static void define(struct rs_vals *v, const struct rs_flow_step *step, uint32_t reg,
		   struct rs_val val, unsigned slot)
{
	if (step->pred >= 0) {
		const struct rs_val *in[2] = {&val, rs_vals_reg(v, reg)};

		val = rs_val_choice(v, (uint64_t)v->step * 32 + 8 + slot, in, 2);
	}
	v->cur[reg] = rs_vals_keep(v, val);
}

static void define_operand(struct rs_vals *v, const struct rs_flow_step *step,
			   const struct rs_ptx_operand *op, const struct rs_val *val,
			   struct rs_aff_origin origin, unsigned *slot)
{
	uint32_t base = v->flow.frames[step->frame].reg_base;

	if (op->kind == RS_PTX_OP_VEC) {
		for (unsigned i = 0; i < op->nelems; i++)
			define_operand(v, step, &op->elems[i], NULL, origin, slot);
		return;
	}
	if (op->kind != RS_PTX_OP_REG || op->reg < 0) {
		(*slot)++;
		return;
	}
	for (int second = 0; second < 2; second++) {
		int32_t reg = second ? op->reg2 : op->reg;
		unsigned type, s = second ? 6 : *slot < 7 ? (*slot)++ : 7;
		struct rs_val u;

		if (reg < 0)
			continue;
		type = v->flow.frames[step->frame].func->regs[reg].type;
		if (v->what[v->step] == RS_WHAT_LOAD)
			u = load_value(v, step, op, s);
		else if (val && !second)
			u = *val;
		else if (s < 7)
			u = rs_val_unknown(v, rs_type_width(type), s, INT64_MIN, INT64_MAX, origin);
		else
			u = (struct rs_val){.origin = origin};
		define(v, step, base + (uint32_t)reg, u, s);
	}
}

/* st.param of a call: the slot takes the value. */
static void define_slots(struct rs_vals *v, const struct rs_flow_step *step)
{
	const struct rs_ptx_insn *insn = step->insn;
	unsigned bytes = rs_ptx_type_bytes(insn->type);
	uint32_t frame = step->frame;
	int32_t reg = -1;

	if (insn->op[0].kind == RS_PTX_OP_ADDR && insn->op[0].var && insn->op[0].reg < 0)
		rs_flow_param(&v->flow, insn->op[0].var, &frame, &reg);
	if (reg >= 0)
		define(v, step, (uint32_t)reg, *rs_vals_operand(v, &insn->op[1], 0), 0);
	for (unsigned i = 0; i < (insn->vec ? insn->vec : 1u); i++) {
		const struct rs_flow_slot *s = rs_flow_slot(&v->flow, step, &insn->op[0], bytes, i);
		const struct rs_ptx_operand *op = &insn->op[1];

		if (op->kind == RS_PTX_OP_VEC)
			op = i < op->nelems ? &op->elems[i] : op;
		if (s)
			define(v, step, s->reg, *rs_vals_operand(v, op, rs_type_width(insn->type)),
			       i);
	}
}

/* Values that may lie in shared or local memory. */
static void note_stored(struct rs_vals *v, const struct rs_flow_step *step)
{
	struct gather g = {.v = v, .origin = v->stored};

	switch (v->what[v->step]) {
	case RS_WHAT_STORE:
	case RS_WHAT_ATOM:
	case RS_WHAT_RED:
		if (step->insn->space == RS_PTX_SPACE_GLOBAL ||
		    step->insn->space == RS_PTX_SPACE_PARAM)
			return;
		for (unsigned i = 1; i < step->insn->noperands; i++)
			gather_operand(&g, step, &step->insn->op[i]);
		break;
	case RS_WHAT_QUIET:
	case RS_WHAT_VALUE:
	case RS_WHAT_LOAD:
		return;
	default:
		g.origin.from |= RS_AFF_MEMORY;
	}
	if (g.origin.words != v->stored.words || g.origin.from != v->stored.from) {
		v->stored = g.origin;
		v->changed = 1;
	}
}

void rs_vals_step(struct rs_vals *v, const struct rs_flow_step *step)
{
	const struct rs_ptx_insn *insn = step->insn;
	struct gather g = {.v = v};
	struct rs_val val;
	unsigned slot = 0;

	if (!insn)
		return;
	if (v->on_step)
		v->on_step(v, step);
	note_stored(v, step);
	if (v->what[v->step] == RS_WHAT_STORE && insn->space == RS_PTX_SPACE_PARAM)
		define_slots(v, step);
	if (step->kind != RS_FLOW_PLAIN || !insn->noperands || !rs_flow_has_dest(insn))
		return;
	rs_flow_regs(&v->flow, step, gather_origin, &g);
	switch (v->what[v->step]) {
	case RS_WHAT_VALUE:
		val = rs_eval(v, step);
		define_operand(v, step, &insn->op[0], &val, g.origin, &slot);
		return;
	case RS_WHAT_LOAD:
		break;
	case RS_WHAT_QUIET:
		break;
	default:
		g.origin.from |= RS_AFF_MEMORY;
	}
	define_operand(v, step, &insn->op[0], NULL, g.origin, &slot);
}
