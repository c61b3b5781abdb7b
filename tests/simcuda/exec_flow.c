/* SPDX-License-Identifier: MIT */
/*
 * Forms of control flow and of CTA barriers; exec_run.c executes them by kind.
 *
 * A barrier micro-op: r[1] number, r[2] thread count (constant 0: the whole CTA), r[3] predicate,
 * r[0] result of a reduction, imm says which.
 */
#include <string.h>

#include "tests/simcuda/exec_priv.h"
#include "tests/simcuda/exec_flow.h"

static int lower_trap(struct sim_lower *l, const struct rs_ptx_insn *in,
		      const struct sim_form *form, unsigned flags)
{
	(void)form, (void)flags;
	if (in->noperands)
		return sim_lower_fail(l, "wrong operands");
	return sim_lower_emit(l, SIM_K_TRAP, NULL) ? 0 : l->failed;
}

static enum sim_barrier barrier_kind(const struct rs_ptx_insn *in)
{
	if (rs_ptx_has(in, "arrive"))
		return SIM_BAR_ARRIVE;
	if (!rs_ptx_has(in, "red"))
		return SIM_BAR_SYNC;
	return rs_ptx_has(in, "popc")  ? SIM_BAR_POPC
	       : rs_ptx_has(in, "and") ? SIM_BAR_AND
				       : SIM_BAR_OR;
}

static int lower_barrier(struct sim_lower *l, const struct rs_ptx_insn *in,
			 const struct sim_form *form, unsigned flags)
{
	enum sim_barrier kind = barrier_kind(in);
	unsigned red = kind >= SIM_BAR_AND, n = in->noperands;
	unsigned has_count = n == 2 + 2 * red;
	uint32_t d = 0, id, count, p = 0;
	struct sim_uop *o;
	int rc;

	(void)form, (void)flags;
	l->k->packable = 0;
	l->k->uses_barrier = 1;
	if (!(n == 1 + 2 * red || has_count) || (kind == SIM_BAR_ARRIVE && !has_count))
		return sim_lower_fail(l, "wrong operands");
	rc = sim_lower_src(l, &in->op[red], 'w', &id);
	count = sim_lower_const(l, 0, 4);
	if (!rc && has_count)
		rc = sim_lower_src(l, &in->op[red + 1], 'w', &count);
	if (!rc && red)
		rc = sim_lower_src(l, &in->op[n - 1], 'p', &p);
	if (!rc && red)
		rc = sim_lower_dst(l, &in->op[0], kind == SIM_BAR_POPC ? 'w' : 'p', 0, &d);
	if (rc)
		return rc;
	o = sim_lower_emit(l, SIM_K_BAR, NULL);
	if (!o)
		return l->failed;
	o->r[0] = d, o->r[1] = id, o->r[2] = count, o->r[3] = p;
	o->imm = kind;
	o->rd |= (uint8_t)(2 | 4 | (red ? 8 : 0));
	o->wr |= (uint8_t)red;
	return 0;
}

const struct sim_form sim_forms_flow[] = {
	{"bra uni?", NULL, {NULL, NULL}, sim_lower_branch},
	{"brx idx uni?", NULL, {NULL, NULL}, sim_lower_brx},
	{"call uni?", NULL, {NULL, NULL}, sim_lower_call},
	{"ret uni?", NULL, {NULL, NULL}, sim_lower_return},
	{"exit", NULL, {NULL, NULL}, sim_lower_return},
	{"trap", NULL, {NULL, NULL}, lower_trap},
	{"brkpt", NULL, {NULL, NULL}, lower_trap},
	{"bar cta? sync|arrive", NULL, {NULL, NULL}, lower_barrier},
	{"bar cta? red popc u32", NULL, {NULL, NULL}, lower_barrier},
	{"bar cta? red and|or pred", NULL, {NULL, NULL}, lower_barrier},
	{"barrier cta? sync|arrive aligned?", NULL, {NULL, NULL}, lower_barrier},
	{"barrier cta? red popc aligned? u32", NULL, {NULL, NULL}, lower_barrier},
	{"barrier cta? red and|or aligned? pred", NULL, {NULL, NULL}, lower_barrier},
};
const unsigned sim_nforms_flow = sizeof sim_forms_flow / sizeof *sim_forms_flow;
