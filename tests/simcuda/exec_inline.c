/* SPDX-License-Identifier: MIT */
/*
 * A kernel with everything that it calls, as one flat list of micro-ops; its variables; branches.
 *
 * Each call becomes a fresh instance of the callee: its registers are renumbered, its local
 * variables get their own part of the local frame, its parameters are the caller's parameter
 * variables. Of functions without a body vprintf is accepted, which prints nothing and returns 0, and
 * cudaGraphSetConditional, which the launch answers. Runs at load; memory by malloc.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simcuda/exec_lower.h"
#include "tests/simcuda/exec_run.h"

/* ---- variables ---- */

static uint64_t bump(uint64_t *end, const struct rs_ptx_var *var)
{
	uint64_t at = (*end + var->align - 1) & ~(uint64_t)(var->align - 1);

	*end = at + var->size;
	return at;
}

static int bind_var(struct sim_lower *l, struct sim_inst *inst, const struct rs_ptx_var *var,
		    uint64_t offset)
{
	struct sim_inst_var *grown;

	/* grown at powers of two */
	if (!(inst->nvars & (inst->nvars - 1))) {
		grown = realloc(inst->vars, (inst->nvars ? 2 * inst->nvars : 1) * sizeof *grown);
		if (!grown)
			return l->failed = -ENOMEM;
		inst->vars = grown;
	}
	inst->vars[inst->nvars].var = var;
	inst->vars[inst->nvars++].offset = offset;
	return 0;
}

static const struct sim_inst_var *inst_var(const struct sim_inst *inst,
					   const struct rs_ptx_var *var)
{
	for (uint32_t i = 0; i < inst->nvars; i++)
		if (inst->vars[i].var == var)
			return &inst->vars[i];
	return NULL;
}

static int shared_var(struct sim_lower *l, const struct rs_ptx_var *var, struct sim_place *place)
{
	struct sim_shared_var *grown;

	place->space = RS_PTX_SPACE_SHARED;
	l->k->packable = 0;
	/* `.extern .shared x[]` is the dynamic part, behind all static variables */
	if (!var->size) {
		place->dynamic = 1;
		return 0;
	}
	for (uint32_t i = 0; i < l->nshared; i++)
		if (l->shared[i].var == var) {
			place->addr = l->shared[i].offset;
			return 0;
		}
	grown = realloc(l->shared, (l->nshared + 1) * sizeof *grown);
	if (!grown)
		return l->failed = -ENOMEM;
	l->shared = grown;
	grown[l->nshared].var = var;
	place->addr = grown[l->nshared++].offset = bump(&l->k->shared_bytes, var);
	return 0;
}

int sim_lower_var(struct sim_lower *l, const struct rs_ptx_var *var, const char *name,
		  struct sim_place *ret_place)
{
	const struct sim_inst_var *iv;

	memset(ret_place, 0, sizeof *ret_place);
	if (!var)
		return sim_lower_fail(l, "%s is not a variable", name);
	ret_place->space = var->space;
	if (var->space == RS_PTX_SPACE_SHARED)
		return shared_var(l, var, ret_place);
	iv = inst_var(l->inst, var);
	if (iv) {
		ret_place->addr = iv->offset;
		if (var->space == RS_PTX_SPACE_PARAM)
			ret_place->addr += SIM_CALLPARAM_BASE;
		return 0;
	}
	for (uint32_t i = 0; i < l->inst->func->nparams; i++)
		if (l->inst->func->params[i] == var && !l->inst->parent) {
			ret_place->addr = var->offset;
			return 0;
		}
	for (uint32_t i = 0; i < l->m->nplaced; i++)
		if (l->m->placed[i].var == var) {
			ret_place->addr = l->m->placed[i].addr;
			return 0;
		}
	return sim_lower_fail(l, "variable %s has no definition here", name);
}

/* ---- instances ---- */

static void inst_free(struct sim_inst *inst)
{
	free(inst->map);
	free(inst->vars);
	free(inst->fixups);
}

/* Registers, local and call-scope variables of the new instance. */
static int inst_begin(struct sim_lower *l, struct sim_inst *inst)
{
	const struct rs_ptx_func *f = inst->func;
	int rc = 0;

	inst->reg_base = l->nvregs;
	for (uint32_t i = 0; i < f->nregs; i++)
		if (sim_lower_vreg(l, rs_ptx_type_bytes(f->regs[i].type) == 8 ? 8 : 4) ==
		    UINT32_MAX)
			return l->failed;
	inst->map = malloc((f->ninsns + 1) * sizeof *inst->map);
	if (!inst->map)
		return l->failed = -ENOMEM;
	for (uint32_t i = 0; i < f->nvars && !rc; i++)
		if (f->vars[i]->space == RS_PTX_SPACE_LOCAL ||
		    f->vars[i]->space == RS_PTX_SPACE_PARAM)
			rc = bind_var(l, inst, f->vars[i], bump(&l->k->local_bytes, f->vars[i]));
	return rc;
}

static int add_fixup(struct sim_lower *l, uint32_t uop, int32_t *slot, uint32_t insn)
{
	struct sim_inst *inst = l->inst;
	struct sim_fixup *f;

	f = sim_lower_grow(inst->fixups, inst->nfixups, &inst->capfixups, sizeof *f);
	if (!f)
		return l->failed = -ENOMEM;
	inst->fixups = f;
	f[inst->nfixups].uop = uop;
	f[inst->nfixups].slot = slot;
	f[inst->nfixups++].insn = insn;
	return 0;
}

static int lower_body(struct sim_lower *l, struct sim_inst *inst)
{
	const struct rs_ptx_func *f = inst->func;
	int rc = 0;

	l->inst = inst;
	for (uint32_t i = 0; i < f->ninsns && !rc; i++) {
		inst->map[i] = l->nuops;
		rc = sim_lower_insn(l, &f->insns[i]);
	}
	inst->map[f->ninsns] = l->nuops;
	for (uint32_t i = 0; i < inst->nfixups && !rc; i++) {
		const struct sim_fixup *x = &inst->fixups[i];
		int32_t target = (int32_t)inst->map[x->insn];

		*(x->slot ? x->slot : &l->uop[x->uop].target) = target;
	}
	return rc;
}

/* ---- control flow ---- */

static struct sim_uop *emit_branch(struct sim_lower *l, int negate)
{
	const struct rs_ptx_insn *in = l->in;
	struct sim_uop *o = sim_lower_emit(l, SIM_K_BRA, NULL);

	if (!o)
		return NULL;
	if (l->guard == UINT32_MAX) {
		o->flags |= SIM_F_ALWAYS;
		return o;
	}
	o->r[7] = l->guard;
	o->rd |= 128;
	o->flags |= in->pred_negate != negate ? SIM_F_NEGATE : 0;
	return o;
}

int sim_lower_branch(struct sim_lower *l, const struct rs_ptx_insn *in, const struct sim_form *form,
		     unsigned flags)
{
	(void)form, (void)flags;
	if (in->noperands != 1 || in->op[0].kind != RS_PTX_OP_LABEL)
		return sim_lower_fail(l, "wrong operands");
	if (!emit_branch(l, 0))
		return l->failed;
	return add_fixup(l, l->nuops - 1, NULL, (uint32_t)in->op[0].target);
}

/* From the kernel: the thread ends. From a function: to the end of its instance. */
int sim_lower_return(struct sim_lower *l, const struct rs_ptx_insn *in, const struct sim_form *form,
		     unsigned flags)
{
	(void)form, (void)flags;
	if (in->noperands)
		return sim_lower_fail(l, "wrong operands");
	if (!l->inst->parent || !strcmp(in->part[0], "exit"))
		return sim_lower_emit(l, SIM_K_EXIT, NULL) ? 0 : l->failed;
	if (!emit_branch(l, 0))
		return l->failed;
	return add_fixup(l, l->nuops - 1, NULL, l->inst->func->ninsns);
}

static const struct rs_ptx_targets *find_table(const struct rs_ptx_func *f, const char *name)
{
	for (uint32_t i = 0; i < f->ntables; i++)
		if (!strcmp(f->tables[i].name, name))
			return &f->tables[i];
	return NULL;
}

/* brx.idx: entry 0 of the table is its length. */
int sim_lower_brx(struct sim_lower *l, const struct rs_ptx_insn *in, const struct sim_form *form,
		  unsigned flags)
{
	const struct rs_ptx_targets *t;
	struct sim_kernel *k = l->k;
	struct sim_uop *o;
	int32_t **grown, *table;
	uint32_t index;
	int rc;

	(void)form, (void)flags;
	if (in->noperands != 2 || !in->op[1].name || in->pred >= 0)
		return sim_lower_fail(l, in->pred >= 0 ? "a guard is not supported here"
						       : "wrong operands");
	t = find_table(l->inst->func, in->op[1].name);
	if (!t || !t->n)
		return sim_lower_fail(l, "no table of targets %s", in->op[1].name);
	rc = sim_lower_src(l, &in->op[0], 'w', &index);
	if (rc)
		return rc;
	table = malloc((t->n + 1) * sizeof *table);
	grown = table ? realloc(k->tables, (k->ntables + 1) * sizeof *grown) : NULL;
	if (!grown) {
		free(table);
		return l->failed = -ENOMEM;
	}
	k->tables = grown;
	grown[k->ntables++] = table;
	table[0] = (int32_t)t->n;
	o = sim_lower_emit(l, SIM_K_BRX, NULL);
	if (!o)
		return l->failed;
	o->r[1] = index;
	o->rd |= 2;
	o->imm = k->ntables - 1;
	for (uint32_t i = 0; i < t->n && !rc; i++)
		rc = add_fixup(l, l->nuops - 1, &table[i + 1], (uint32_t)t->target[i]);
	return rc;
}

/* ---- calls ---- */

/* A formal in a register (code without the ABI): its vreg in the callee. */
static int formal_reg(struct sim_lower *l, const struct sim_inst *callee, const char *name,
		      uint32_t *ret_v)
{
	for (uint32_t i = 0; i < callee->func->nregs; i++)
		if (!strcmp(callee->func->regs[i].name, name)) {
			*ret_v = callee->reg_base + i;
			return 0;
		}
	return sim_lower_fail(l, "parameter %s is not a register", name);
}

static char var_letter(const struct rs_ptx_var *var)
{
	if (var->type == RS_PTX_PRED)
		return 'p';
	switch (rs_ptx_type_bytes(var->type)) {
	case 8:
		return var->type == RS_PTX_F64 ? 'g' : 'd';
	case 4:
		return var->type == RS_PTX_F32 ? 'f' : 'w';
	default:
		return 'h';
	}
}

static int emit_copy(struct sim_lower *l, uint32_t d, uint32_t a)
{
	struct sim_uop *o = sim_lower_emit(l, SIM_K_ALU, sim_fn_copy[l->vreg[d].cls == 8]);

	if (!o)
		return l->failed;
	o->r[0] = d, o->r[1] = a;
	o->wr |= 1;
	o->rd |= 2;
	return 0;
}

/* Bind one formal to its actual: variables by name, registers by copying (in or out). */
static int bind_formal(struct sim_lower *l, struct sim_inst *callee,
		       const struct rs_ptx_var *formal, const struct rs_ptx_operand *actual,
		       int is_return)
{
	const struct sim_inst_var *iv;
	uint32_t mine = 0, theirs = 0;
	int rc;

	if (formal->space != RS_PTX_SPACE_REG) {
		iv = actual->kind == RS_PTX_OP_SYM && actual->var ? inst_var(l->inst, actual->var)
								  : NULL;
		if (!iv || iv->var->size < formal->size)
			return sim_lower_fail(l, "argument does not match parameter %s",
					      formal->name);
		return bind_var(l, callee, formal, iv->offset);
	}
	rc = formal_reg(l, callee, formal->name, &theirs);
	if (!rc && is_return)
		rc = sim_lower_dst(l, actual, var_letter(formal), 0, &mine);
	else if (!rc)
		rc = sim_lower_src(l, actual, var_letter(formal), &mine);
	if (rc)
		return rc;
	return is_return ? emit_copy(l, mine, theirs) : emit_copy(l, theirs, mine);
}

static int is_recursive(const struct sim_inst *inst, const struct rs_ptx_func *f)
{
	for (; inst; inst = inst->parent)
		if (inst->func == f)
			return 1;
	return 0;
}

struct call {
	const struct rs_ptx_func *f;
	const struct rs_ptx_operand *rets, *args;
	uint32_t nrets, nargs;
};

static int parse_call(struct sim_lower *l, const struct rs_ptx_insn *in, struct call *ret_call)
{
	unsigned i = 0;

	memset(ret_call, 0, sizeof *ret_call);
	if (i < in->noperands && in->op[i].kind == RS_PTX_OP_LIST) {
		ret_call->rets = in->op[i].elems;
		ret_call->nrets = in->op[i++].nelems;
	}
	if (i >= in->noperands || in->op[i].kind != RS_PTX_OP_FUNC)
		return sim_lower_fail(l, "indirect calls are not supported");
	ret_call->f = rs_ptx_find(l->m->ptx, in->op[i].name);
	if (!ret_call->f || ret_call->f->is_entry)
		return sim_lower_fail(l, "no function %s", in->op[i].name);
	if (++i < in->noperands && in->op[i].kind == RS_PTX_OP_LIST) {
		ret_call->args = in->op[i].elems;
		ret_call->nargs = in->op[i].nelems;
	}
	if (ret_call->nrets != ret_call->f->nrets || ret_call->nargs != ret_call->f->nparams)
		return sim_lower_fail(l, "arguments do not match function %s", ret_call->f->name);
	return 0;
}

/* Device printf: nothing is printed, the result is 0. */
static void zero_return(const struct sim_uop *o, struct sim_warp *w)
{
	for (int i = 0; i < SIM_LANES; i++)
		if (w->lanes[i])
			memset(w->local + (uint64_t)i * w->run->k->local_bytes + o->imm, 0, 4);
}

/* imm: where the handle is in local memory, and in the upper half, where the value is. */
static void set_conditional(const struct sim_uop *o, struct sim_warp *w)
{
	const struct sim_launch *l = w->run->launch;

	for (int i = 0; i < SIM_LANES; i++) {
		const uint8_t *local = w->local + (uint64_t)i * w->run->k->local_bytes;
		uint64_t handle;
		uint32_t value;

		if (!w->lanes[i])
			continue;
		memcpy(&handle, local + (uint32_t)o->imm, sizeof handle);
		memcpy(&value, local + (o->imm >> 32), sizeof value);
		if (!l->set_conditional ||
		    l->set_conditional(l->conditional_opaque, handle, value)) {
			sim_run_fault(w, o, SIM_FAULT_TRAP, 1u << i,
				      "no such conditional handle in this context");
			return;
		}
	}
}

static const struct sim_inst_var *local_operand(struct sim_lower *l,
						const struct rs_ptx_operand *op, unsigned bytes)
{
	const struct sim_inst_var *iv = op->var ? inst_var(l->inst, op->var) : NULL;

	return iv && iv->var->size == bytes ? iv : NULL;
}

static int lower_extern(struct sim_lower *l, const struct call *c)
{
	static const sim_fn zero[2] = {zero_return, zero_return};
	static const sim_fn cond[2] = {set_conditional, set_conditional};
	const struct sim_inst_var *first, *second;
	struct sim_uop *o;

	if (!strcmp(c->f->name, "vprintf")) {
		first = c->nrets == 1 ? local_operand(l, c->rets, 4) : NULL;
		second = first;
	} else if (!strcmp(c->f->name, "cudaGraphSetConditional")) {
		first = c->nargs == 2 ? local_operand(l, &c->args[0], 8) : NULL;
		second = first ? local_operand(l, &c->args[1], 4) : NULL;
	} else {
		return sim_lower_fail(l, "function %s has no body", c->f->name);
	}
	if (!first || !second)
		return sim_lower_fail(l, "wrong operands");
	o = sim_lower_emit(l, c->nrets ? SIM_K_ALU : SIM_K_MEM, c->nrets ? zero : cond);
	if (!o)
		return l->failed;
	o->imm = (int64_t)(first->offset | second->offset << 32);
	if (c->nrets)
		o->imm = (int64_t)first->offset;
	return 0;
}

static int inline_function(struct sim_lower *l, const struct call *c, struct sim_inst *callee)
{
	struct sim_inst *caller = l->inst;
	const struct rs_ptx_insn *in = l->in;
	int rc = inst_begin(l, callee);

	for (uint32_t i = 0; i < c->nargs && !rc; i++)
		rc = bind_formal(l, callee, c->f->params[i], &c->args[i], 0);
	for (uint32_t i = 0; i < c->nrets && !rc; i++)
		if (c->f->rets[i]->space != RS_PTX_SPACE_REG)
			rc = bind_formal(l, callee, c->f->rets[i], &c->rets[i], 0);
	l->depth++;
	if (!rc)
		rc = lower_body(l, callee);
	l->depth--;
	l->inst = caller;
	l->in = in;
	l->guard = UINT32_MAX;
	for (uint32_t i = 0; i < c->nrets && !rc; i++)
		if (c->f->rets[i]->space == RS_PTX_SPACE_REG)
			rc = bind_formal(l, callee, c->f->rets[i], &c->rets[i], 1);
	return rc;
}

int sim_lower_call(struct sim_lower *l, const struct rs_ptx_insn *in, const struct sim_form *form,
		   unsigned flags)
{
	struct sim_inst callee = {.parent = l->inst};
	uint32_t skip = UINT32_MAX;
	struct call c;
	int rc = parse_call(l, in, &c);

	(void)form, (void)flags;
	if (rc)
		return rc;
	if (c.f->is_extern)
		return lower_extern(l, &c);
	if (is_recursive(l->inst, c.f))
		return sim_lower_fail(l, "recursive call of %s is not supported", c.f->name);
	if (l->depth >= SIM_MAX_DEPTH)
		return sim_lower_fail(l, "calls nest deeper than %d", SIM_MAX_DEPTH);
	if (l->guard != UINT32_MAX) {
		/* around the body, when the guard says no */
		if (!emit_branch(l, 1))
			return l->failed;
		skip = l->nuops - 1;
		l->guard = UINT32_MAX;
	} else if (!sim_lower_emit(l, SIM_K_NOP, NULL)) {
		return l->failed;
	}
	callee.func = c.f;
	rc = inline_function(l, &c, &callee);
	inst_free(&callee);
	if (!rc && skip != UINT32_MAX)
		l->uop[skip].target = (int32_t)l->nuops;
	return rc;
}

/* ---- kernels ---- */

static void lower_free(struct sim_lower *l)
{
	free(l->uop);
	free(l->vreg);
	free(l->side);
	free(l->const_hash);
	free(l->shared);
}

int sim_lower_kernel(struct sim_module *m, struct sim_kernel *k, char *err, size_t errlen)
{
	struct sim_lower l = {.m = m,
			      .k = k,
			      .err = err,
			      .errlen = errlen,
			      .cc = UINT32_MAX,
			      .guard = UINT32_MAX};
	struct sim_inst root = {.func = k->func};
	int rc;

	k->packable = 1;
	rc = inst_begin(&l, &root);
	if (!rc)
		rc = lower_body(&l, &root);
	l.guard = UINT32_MAX;
	if (!rc && !sim_lower_emit(&l, SIM_K_EXIT, NULL))
		rc = l.failed;
	k->local_bytes = (k->local_bytes + 15) & ~15ull;
	if (!rc)
		rc = sim_alloc_registers(&l);
	if (rc == -ENOMEM && errlen)
		strncpy(err, "out of memory", errlen - 1);
	inst_free(&root);
	lower_free(&l);
	return rc;
}

int sim_lower_function(struct sim_module *m, struct sim_kernel *k, char *err, size_t errlen)
{
	struct sim_lower l = {.m = m,
			      .k = k,
			      .err = err,
			      .errlen = errlen,
			      .cc = UINT32_MAX,
			      .guard = UINT32_MAX};
	struct sim_inst caller = {.func = NULL}, inst = {.func = k->func, .parent = &caller};
	const struct rs_ptx_func *f = k->func;
	int rc = inst_begin(&l, &inst);

	for (uint32_t i = 0; i < f->nparams && !rc; i++)
		rc = bind_var(&l, &inst, f->params[i], bump(&k->local_bytes, f->params[i]));
	for (uint32_t i = 0; i < f->nrets && !rc; i++)
		rc = bind_var(&l, &inst, f->rets[i], bump(&k->local_bytes, f->rets[i]));
	if (!rc)
		rc = lower_body(&l, &inst);
	k->code = l.uop;
	l.uop = NULL;
	inst_free(&inst);
	lower_free(&l);
	return rc;
}
