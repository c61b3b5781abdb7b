/* SPDX-License-Identifier: MIT */
/*
 * Registers read and written by a step, and the blocks where definitions of one register meet.
 *
 * Phis are placed on iterated dominance frontiers for registers that some block reads before it
 * writes them, and not where a single definition dominates every such block (nearly all of nvcc's).
 * Callers: rs_flow_build, and the walk over the values. No locks.
 */
#include "tracker/ptx_flow.h"

#include <string.h>

/* Opcodes whose first operand is not a destination register. */
static const char *const no_dest[] = {
	"st",	      "red",	   "bra",      "brx",		"ret",
	"call",	      "nanosleep", "prefetch", "prefetchu",	"fence",
	"membar",     "cp",	   "pmevent",  "stmatrix",	"discard",
	"setmaxnreg", "exit",	   "trap",     "applypriority",
};

int rs_flow_has_dest(const struct rs_ptx_insn *insn)
{
	for (size_t i = 0; i < sizeof(no_dest) / sizeof(*no_dest); i++)
		if (!strcmp(insn->part[0], no_dest[i]))
			return 0;
	if (!strcmp(insn->part[0], "bar") || !strcmp(insn->part[0], "barrier"))
		return rs_ptx_has(insn, "red");
	return 1;
}

struct emit {
	rs_flow_reg_fn fn;
	void *opaque;
	uint32_t base;
};

static void emit_operand(const struct emit *e, const struct rs_ptx_operand *op, int is_def)
{
	switch (op->kind) {
	case RS_PTX_OP_REG:
	case RS_PTX_OP_ADDR:
		if (op->reg >= 0)
			e->fn(e->opaque, e->base + (uint32_t)op->reg,
			      is_def && op->kind == RS_PTX_OP_REG);
		if (op->kind == RS_PTX_OP_REG && op->reg2 >= 0)
			e->fn(e->opaque, e->base + (uint32_t)op->reg2, is_def);
		break;
	case RS_PTX_OP_VEC:
	case RS_PTX_OP_LIST:
		for (unsigned i = 0; i < op->nelems; i++)
			emit_operand(e, &op->elems[i], is_def);
		break;
	default:
		break;
	}
}

/* The caller's registers behind a parameter access; returns 0 if it is not one. */
static void emit_slots(const struct rs_flow *f, const struct rs_flow_step *step,
		       const struct emit *e, int is_def)
{
	const struct rs_ptx_insn *insn = step->insn;
	const struct rs_ptx_operand *addr = is_def ? &insn->op[0] : &insn->op[1];
	unsigned bytes = rs_ptx_type_bytes(insn->type);
	uint32_t frame = step->frame;
	int32_t reg;

	if (addr->kind != RS_PTX_OP_ADDR || !addr->var || addr->reg >= 0)
		return;
	rs_flow_param(f, addr->var, &frame, &reg);
	if (reg >= 0)
		e->fn(e->opaque, (uint32_t)reg, is_def);
	for (unsigned i = 0; i < (insn->vec ? insn->vec : 1u); i++) {
		const struct rs_flow_slot *s = rs_flow_slot(f, step, addr, bytes, i);

		if (s)
			e->fn(e->opaque, s->reg, is_def);
	}
}

void rs_flow_regs(const struct rs_flow *f, const struct rs_flow_step *step, rs_flow_reg_fn fn,
		  void *opaque)
{
	const struct rs_ptx_insn *insn = step->insn;
	struct emit e = {fn, opaque, 0};
	int dest, param;

	if (!insn)
		return;
	e.base = f->frames[step->frame].reg_base;
	dest = step->kind == RS_FLOW_PLAIN && insn->noperands && rs_flow_has_dest(insn);
	param = insn->space == RS_PTX_SPACE_PARAM && insn->noperands >= 2;
	for (unsigned i = dest ? 1 : 0; i < insn->noperands; i++)
		emit_operand(&e, &insn->op[i], 0);
	if (step->pred >= 0)
		fn(opaque, (uint32_t)step->pred, 0);
	if (param && !strcmp(insn->part[0], "ld"))
		emit_slots(f, step, &e, 0);
	if (dest && step->pred >= 0)
		emit_operand(&e, &insn->op[0], 0); /* kept when the guard is false */
	if (dest)
		emit_operand(&e, &insn->op[0], 1);
	if (param && !strcmp(insn->part[0], "st"))
		emit_slots(f, step, &e, 1);
}

/* Places of one register. */
struct place {
	uint32_t block;
	struct place *next;
};

struct placer {
	struct rs_flow *f;
	struct place **defs, **uses; /* by register; uses: read before written in that block */
	uint32_t *stamp;	     /* block + 1 that last defined the register */
	uint32_t block;
	struct place **frontier; /* by block */
};

static void push_place(struct rs_aff_mem *mem, struct place **list, uint32_t block)
{
	struct place *p;

	if (*list && (*list)->block == block)
		return;
	p = rs_aff_alloc(mem, sizeof(*p));
	p->block = block;
	p->next = *list;
	*list = p;
}

static void note_reg(void *opaque, uint32_t reg, int is_def)
{
	struct placer *pl = opaque;

	if (is_def) {
		pl->stamp[reg] = pl->block + 1;
		push_place(pl->f->mem, &pl->defs[reg], pl->block);
	} else if (pl->stamp[reg] != pl->block + 1) {
		push_place(pl->f->mem, &pl->uses[reg], pl->block);
	}
}

static void frontiers(struct placer *pl)
{
	struct rs_flow *f = pl->f;

	pl->frontier = rs_aff_alloc(f->mem, f->nblocks * sizeof(*pl->frontier));
	for (uint32_t b = 1; b < f->nblocks; b++) {
		if (f->blocks[b].npred < 2)
			continue;
		for (uint32_t p = 0; p < f->blocks[b].npred; p++)
			for (uint32_t r = f->blocks[b].pred[p]; r != f->blocks[b].idom;
			     r = f->blocks[r].idom)
				push_place(f->mem, &pl->frontier[r], b);
	}
}

static int needs_phis(const struct placer *pl, uint32_t reg)
{
	const struct place *d = pl->defs[reg];

	if (!d || !pl->uses[reg])
		return 0;
	if (d->next)
		return 1;
	for (const struct place *u = pl->uses[reg]; u; u = u->next)
		if (u->block == d->block || !rs_flow_dominates(pl->f, d->block, u->block))
			return 1;
	return 0;
}

static void place_phis(struct placer *pl, uint32_t reg, uint32_t *has, uint32_t *work)
{
	struct rs_flow *f = pl->f;
	uint32_t n = 0;

	for (const struct place *d = pl->defs[reg]; d && n < f->nblocks; d = d->next)
		work[n++] = d->block;
	while (n) {
		uint32_t b = work[--n];

		for (const struct place *p = pl->frontier[b]; p; p = p->next) {
			struct rs_flow_phi *phi;

			if (has[p->block] == reg + 1)
				continue;
			has[p->block] = reg + 1;
			phi = rs_aff_alloc(f->mem, sizeof(*phi));
			phi->reg = reg;
			phi->block = p->block;
			phi->next = f->blocks[p->block].phis;
			f->blocks[p->block].phis = phi;
			f->nphis++;
			work[n++] = p->block;
		}
	}
}

void rs_flow_phis(struct rs_flow *f)
{
	struct placer pl = {.f = f};
	uint32_t *has = rs_aff_alloc(f->mem, f->nblocks * sizeof(*has));
	uint32_t *work = rs_aff_alloc(f->mem, (2 * f->nblocks + 2) * sizeof(*work));

	pl.defs = rs_aff_alloc(f->mem, (f->nregs + 1) * sizeof(*pl.defs));
	pl.uses = rs_aff_alloc(f->mem, (f->nregs + 1) * sizeof(*pl.uses));
	pl.stamp = rs_aff_alloc(f->mem, (f->nregs + 1) * sizeof(*pl.stamp));
	for (uint32_t b = 0; b < f->nblocks; b++) {
		pl.block = b;
		for (uint32_t i = f->blocks[b].first; i < f->blocks[b].last; i++)
			rs_flow_regs(f, &f->steps[i], note_reg, &pl);
	}
	frontiers(&pl);
	for (uint32_t r = 0; r < f->nregs; r++)
		if (needs_phis(&pl, r))
			place_phis(&pl, r, has, work);
}
