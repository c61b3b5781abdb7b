/* SPDX-License-Identifier: MIT */
/*
 * One kernel as a flat list of steps: function bodies in line, call parameters as registers.
 *
 * A call to a function with a body is replaced by the body (to a depth and size), its parameter
 * variables are resolved to the caller's, so that a value passes through a call as through a move.
 * Calls that are not expanded stay as plain steps, and the analysis takes them for opaque.
 * Callers: rs_flow_build. No locks.
 */
#include "tracker/ptx_flow.h"

#include <string.h>

#define MAX_FRAMES 200
#define MAX_DEPTH  8
#define MAX_STEPS  400000

static struct rs_flow_step *push_step(struct rs_flow *f, uint32_t frame,
				      const struct rs_ptx_insn *insn, unsigned kind)
{
	struct rs_flow_step *s;

	if (f->nsteps == MAX_STEPS)
		longjmp(f->mem->fail, RS_AFF_TOOBIG);
	if (f->nsteps == f->cap_steps) {
		uint32_t cap = f->cap_steps ? 2 * f->cap_steps : 256;
		struct rs_flow_step *n = rs_aff_alloc(f->mem, cap * sizeof(*n));

		if (f->nsteps)
			memcpy(n, f->steps, f->nsteps * sizeof(*n));
		f->steps = n;
		f->cap_steps = cap;
	}
	s = &f->steps[f->nsteps++];
	s->insn = insn;
	s->frame = frame;
	s->kind = (uint8_t)kind;
	s->target = -1;
	s->pred = -1;
	if (insn && insn->pred >= 0) {
		s->pred = (int32_t)(f->frames[frame].reg_base + (uint32_t)insn->pred);
		s->negate = insn->pred_negate;
	}
	return s;
}

static uint32_t push_frame(struct rs_flow *f, const struct rs_ptx_func *func, uint32_t caller,
			   const struct rs_ptx_insn *call)
{
	struct rs_flow_frame *fr = &f->frames[f->nframes];

	fr->func = func;
	fr->call = call;
	fr->caller = caller;
	fr->reg_base = f->nregs;
	f->nregs += func->nregs;
	return f->nframes++;
}

static int func_operand(const struct rs_ptx_insn *insn)
{
	for (unsigned i = 0; i < insn->noperands; i++)
		if (insn->op[i].kind == RS_PTX_OP_FUNC)
			return (int)i;
	return -1;
}

/* The function that a call can be expanded into, or NULL. */
static const struct rs_ptx_func *callee(const struct rs_flow *f, const struct rs_ptx_insn *insn,
					uint32_t frame)
{
	int at = func_operand(insn);
	const struct rs_ptx_func *func = at < 0 ? NULL : rs_ptx_find(f->ptx, insn->op[at].name);
	unsigned depth = 0;

	if (!func || func->is_extern || func->is_entry || f->nframes == MAX_FRAMES)
		return NULL;
	for (uint32_t up = frame;; up = f->frames[up].caller, depth++) {
		if (f->frames[up].func == func || depth == MAX_DEPTH)
			return NULL;
		if (!up)
			return func;
	}
}

static const struct rs_ptx_targets *find_table(const struct rs_ptx_func *func,
					       const struct rs_ptx_insn *insn)
{
	for (unsigned i = 0; i < insn->noperands; i++)
		for (uint32_t t = 0; insn->op[i].name && t < func->ntables; t++)
			if (!strcmp(func->tables[t].name, insn->op[i].name))
				return &func->tables[t];
	return NULL;
}

static void push_branch(struct rs_flow *f, uint32_t frame, const struct rs_ptx_insn *insn)
{
	const struct rs_ptx_func *func = f->frames[frame].func;

	if (!strcmp(insn->part[0], "brx")) {
		const struct rs_ptx_targets *table = find_table(func, insn);
		struct rs_flow_step *s = push_step(f, frame, insn, RS_FLOW_SWITCH);

		s->table = table;
		if (!table) {
			f->why = "an indirect branch";
			f->why_line = insn->line;
		}
		return;
	}
	for (unsigned i = 0; i < insn->noperands; i++)
		if (insn->op[i].kind == RS_PTX_OP_LABEL) {
			push_step(f, frame, insn, RS_FLOW_JUMP)->target = insn->op[i].target;
			return;
		}
	push_step(f, frame, insn, RS_FLOW_END);
	f->why = "a branch without a label";
	f->why_line = insn->line;
}

/* Steps of one body; jumps hold instruction indices until the end, then step indices. */
static void expand(struct rs_flow *f, uint32_t frame)
{
	const struct rs_ptx_func *func = f->frames[frame].func;
	uint32_t *map = rs_aff_alloc(f->mem, (func->ninsns + 1) * sizeof(*map));
	uint32_t begin = f->nsteps;

	for (uint32_t i = 0; i < func->ninsns; i++) {
		const struct rs_ptx_insn *insn = &func->insns[i];
		const struct rs_ptx_func *to;

		map[i] = f->nsteps;
		if (!strcmp(insn->part[0], "bra") || !strcmp(insn->part[0], "brx")) {
			push_branch(f, frame, insn);
		} else if (!strcmp(insn->part[0], "ret") && f->frames[frame].call) {
			push_step(f, frame, insn, RS_FLOW_JUMP)->target = (int32_t)func->ninsns;
		} else if (!strcmp(insn->part[0], "ret") || !strcmp(insn->part[0], "exit") ||
			   !strcmp(insn->part[0], "trap")) {
			push_step(f, frame, insn, RS_FLOW_END);
		} else if (!strcmp(insn->part[0], "call") && (to = callee(f, insn, frame))) {
			/* A guarded call: jump over the body when the guard is false. */
			if (insn->pred >= 0) {
				struct rs_flow_step *s = push_step(f, frame, insn, RS_FLOW_JUMP);

				s->negate ^= 1;
				s->target = (int32_t)i + 1;
			}
			expand(f, push_frame(f, to, frame, insn));
		} else {
			push_step(f, frame, insn, RS_FLOW_PLAIN);
		}
	}
	map[func->ninsns] = f->nsteps;
	f->frames[frame].first = begin;
	for (uint32_t i = begin; i < f->nsteps; i++)
		if (f->steps[i].frame == frame && f->steps[i].kind == RS_FLOW_JUMP)
			f->steps[i].target = (int32_t)map[f->steps[i].target];
	/* Tables are shared by all frames of a function: their targets are found through the map. */
	for (uint32_t i = begin; i < f->nsteps; i++) {
		struct rs_flow_step *s = &f->steps[i];
		struct rs_ptx_targets *own;

		if (s->frame != frame || s->kind != RS_FLOW_SWITCH || !s->table)
			continue;
		own = rs_aff_alloc(f->mem, sizeof(*own));
		own->n = s->table->n;
		own->target = rs_aff_alloc(f->mem, own->n * sizeof(*own->target));
		for (uint32_t t = 0; t < own->n; t++)
			own->target[t] = (int32_t)map[s->table->target[t]];
		s->table = own;
	}
}

/* The call's operand that stands for the callee's parameter (or return) variable. */
static const struct rs_ptx_operand *actual(const struct rs_flow_frame *fr,
					   const struct rs_ptx_var *var)
{
	const struct rs_ptx_insn *call = fr->call;
	int at = func_operand(call);

	for (int side = 0; side < 2; side++) {
		struct rs_ptx_var **formal = side ? fr->func->params : fr->func->rets;
		uint32_t n = side ? fr->func->nparams : fr->func->nrets;
		int k = side ? at + 1 : at - 1;
		const struct rs_ptx_operand *list;

		for (uint32_t i = 0; i < n; i++) {
			if (formal[i] != var)
				continue;
			if (k < 0 || k >= call->noperands)
				return NULL;
			list = &call->op[k];
			if (list->kind == RS_PTX_OP_LIST)
				return i < list->nelems ? &list->elems[i] : NULL;
			return i ? NULL : list;
		}
	}
	return NULL;
}

static int is_formal(const struct rs_ptx_func *func, const struct rs_ptx_var *var)
{
	for (uint32_t i = 0; i < func->nparams; i++)
		if (func->params[i] == var)
			return 1;
	for (uint32_t i = 0; i < func->nrets; i++)
		if (func->rets[i] == var)
			return 1;
	return 0;
}

const struct rs_ptx_var *rs_flow_param(const struct rs_flow *f, const struct rs_ptx_var *var,
				       uint32_t *frame, int32_t *ret_reg)
{
	*ret_reg = -1;
	while (var && *frame && is_formal(f->frames[*frame].func, var)) {
		const struct rs_flow_frame *fr = &f->frames[*frame];
		const struct rs_ptx_operand *op = actual(fr, var);

		if (!op)
			return NULL;
		*frame = fr->caller;
		if (op->kind == RS_PTX_OP_REG) {
			*ret_reg = (int32_t)(f->frames[fr->caller].reg_base + (uint32_t)op->reg);
			return NULL;
		}
		var = op->var;
	}
	return var;
}

/* Only call parameters are slots: the kernel's own block is read from the launch. */
static int slot_key(const struct rs_flow *f, const struct rs_flow_step *step,
		    const struct rs_ptx_operand *addr, struct rs_flow_slot *key, int32_t *reg)
{
	key->frame = step->frame;
	*reg = -1;
	if (addr->kind != RS_PTX_OP_ADDR || !addr->var || addr->reg >= 0 ||
	    addr->var->space != RS_PTX_SPACE_PARAM)
		return 0;
	key->var = rs_flow_param(f, addr->var, &key->frame, reg);
	if (*reg >= 0)
		return 1;
	return key->var && !(key->frame == 0 && is_formal(f->frames[0].func, key->var));
}

const struct rs_flow_slot *rs_flow_slot(const struct rs_flow *f, const struct rs_flow_step *step,
					const struct rs_ptx_operand *addr, unsigned bytes,
					unsigned elem)
{
	struct rs_flow_slot key;
	int32_t reg;

	if (!slot_key(f, step, addr, &key, &reg) || reg >= 0)
		return NULL;
	key.offset = (uint64_t)addr->imm + (uint64_t)elem * bytes;
	for (uint32_t i = 0; i < f->nslots; i++) {
		const struct rs_flow_slot *s = &f->slots[i];

		if (s->var == key.var && s->frame == key.frame && s->offset == key.offset &&
		    s->bytes == bytes)
			return s;
	}
	return NULL;
}

static void add_slot(struct rs_flow *f, const struct rs_flow_slot *key)
{
	struct rs_flow_slot *n;

	if (f->nslots == 4096)
		longjmp(f->mem->fail, RS_AFF_TOOBIG);
	if (f->nslots == f->cap_slots) {
		uint32_t cap = f->cap_slots ? 2 * f->cap_slots : 32;

		n = rs_aff_alloc(f->mem, cap * sizeof(*n));
		if (f->nslots)
			memcpy(n, f->slots, f->nslots * sizeof(*n));
		f->slots = n;
		f->cap_slots = cap;
	}
	n = &f->slots[f->nslots++];
	*n = *key;
	n->reg = f->nregs++;
	for (uint32_t i = 0; i + 1 < f->nslots; i++) {
		struct rs_flow_slot *s = &f->slots[i];

		if (s->var == n->var && s->frame == n->frame && s->offset < n->offset + n->bytes &&
		    n->offset < s->offset + s->bytes)
			s->mixed = n->mixed = 1;
	}
}

static void find_slots(struct rs_flow *f)
{
	for (uint32_t i = 0; i < f->nsteps; i++) {
		const struct rs_flow_step *step = &f->steps[i];
		const struct rs_ptx_insn *insn = step->insn;
		struct rs_flow_slot key = {0};
		const struct rs_ptx_operand *addr;
		int32_t reg;

		if (!insn || insn->space != RS_PTX_SPACE_PARAM || insn->noperands < 2)
			continue;
		addr = !strcmp(insn->part[0], "st") ? &insn->op[0] : &insn->op[1];
		if (!slot_key(f, step, addr, &key, &reg) || reg >= 0)
			continue;
		key.bytes = rs_ptx_type_bytes(insn->type);
		for (unsigned e = 0; e < (insn->vec ? insn->vec : 1u); e++) {
			key.offset = (uint64_t)addr->imm + (uint64_t)e * key.bytes;
			if (!rs_flow_slot(f, step, addr, key.bytes, e))
				add_slot(f, &key);
		}
	}
}

void rs_flow_steps(struct rs_flow *f, const struct rs_ptx_func *func)
{
	f->frames = rs_aff_alloc(f->mem, MAX_FRAMES * sizeof(*f->frames));
	expand(f, push_frame(f, func, 0, NULL));
	push_step(f, 0, NULL, RS_FLOW_END);
	find_slots(f);
}
