/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: the PTX parser. Any text is refused with a reason, or gives a program whose indices
 * are all in range (what the analyser and the simulated device rely on).
 * Seeds: tests/fuzz/corpus/fuzz_ptx. No state between inputs, no locks.
 */
#include "tracker/ptx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int good)
{
	if (!good)
		abort();
}

static void check_reg(const struct rs_ptx_func *f, int32_t reg)
{
	require(reg >= -1 && reg < (int64_t)f->nregs);
}

static void check_operand(const struct rs_ptx_func *f, const struct rs_ptx_operand *o)
{
	unsigned i;

	check_reg(f, o->reg);
	check_reg(f, o->reg2);
	require(o->kind != RS_PTX_OP_REG || o->reg >= 0);
	require(o->kind != RS_PTX_OP_LABEL || (uint32_t)o->target <= f->ninsns);
	require(o->kind != RS_PTX_OP_SREG || o->name);
	require(o->kind != RS_PTX_OP_FUNC || o->name);
	for (i = 0; i < o->nelems; i++)
		check_operand(f, &o->elems[i]);
}

static void check_insn(const struct rs_ptx_func *f, const struct rs_ptx_insn *in)
{
	unsigned i;

	check_reg(f, in->pred);
	require(in->nparts && in->nparts <= RS_PTX_MAX_PARTS);
	require(in->noperands <= RS_PTX_MAX_OPERANDS);
	require(in->type < RS_PTX_TYPE_COUNT && in->type2 < RS_PTX_TYPE_COUNT);
	for (i = 0; i < in->noperands; i++)
		check_operand(f, &in->op[i]);
	if (!strcmp(in->part[0], "brx") && in->noperands > 1)
		require((uint32_t)in->op[1].target < f->ntables);
}

static void check_func(const struct rs_ptx_func *f)
{
	uint32_t i, j;

	for (i = 0; i < f->nregs; i++)
		require(f->regs[i].name && f->regs[i].type && f->regs[i].type < RS_PTX_TYPE_COUNT);
	for (i = 0; i < f->ninsns; i++)
		check_insn(f, &f->insns[i]);
	for (i = 0; i < f->ntables; i++)
		for (j = 0; j < f->tables[i].n; j++)
			require((uint32_t)f->tables[i].target[j] <= f->ninsns);
	for (i = 0; i < f->nparams; i++)
		require(f->params[i]->offset + f->params[i]->size <= f->param_bytes);
}

static void check_var(const struct rs_ptx_var *v)
{
	volatile uint8_t last;
	uint32_t i;

	require(v->align && !(v->align & (v->align - 1)));
	if (v->init && v->size)
		last = v->init[v->size - 1];
	(void)last;
	for (i = 0; i < v->nrelocs; i++)
		require(v->relocs[i].offset + v->relocs[i].bytes <= v->size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rs_ptx_error err = {0, ""};
	struct rs_ptx *ptx = NULL;
	uint32_t i;
	int rc = rs_ptx_parse((const char *)data, size, &ptx, &err);

	if (rc) {
		require(!ptx && (rc == -ENOMEM || err.text[0]));
		return 0;
	}
	for (i = 0; i < ptx->nvars; i++)
		check_var(ptx->vars[i]);
	for (i = 0; i < ptx->nfuncs; i++) {
		check_func(ptx->funcs[i]);
		require(rs_ptx_find(ptx, ptx->funcs[i]->name) == ptx->funcs[i]);
	}
	rs_ptx_free(ptx);
	return 0;
}
