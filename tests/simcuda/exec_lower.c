/* SPDX-License-Identifier: MIT */
/*
 * From one PTX instruction to micro-ops: operands, constants, special registers, guards.
 *
 * Registers become virtual registers (vregs), constants and special registers too; exec_alloc.c
 * gives them places. Every mismatch of an operand with its instruction is an error that names the
 * line: nothing is guessed. Runs at load, single-threaded per module; memory by malloc.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simcuda/exec_lower.h"

int sim_lower_fail(struct sim_lower *l, const char *fmt, ...)
{
	char why[160];
	va_list ap;

	if (l->failed)
		return l->failed;
	va_start(ap, fmt);
	vsnprintf(why, sizeof why, fmt, ap);
	va_end(ap);
	if (!l->in)
		snprintf(l->err, l->errlen, "line %u: %s", l->k->func->line, why);
	else if (strstr(why, l->in->text))
		snprintf(l->err, l->errlen, "line %u: %s", l->in->line, why);
	else
		snprintf(l->err, l->errlen, "line %u: %s: %s", l->in->line, l->in->text, why);
	return l->failed = -EINVAL;
}

static int no_memory(struct sim_lower *l)
{
	if (!l->failed)
		snprintf(l->err, l->errlen, "out of memory");
	return l->failed = -ENOMEM;
}

void *sim_lower_grow(void *data, uint32_t n, uint32_t *cap, size_t elem)
{
	void *grown;

	if (n < *cap)
		return data;
	grown = realloc(data, (*cap ? *cap * 2 : 64) * elem);
	if (grown)
		*cap = *cap ? *cap * 2 : 64;
	return grown;
}

uint32_t sim_lower_vreg(struct sim_lower *l, unsigned cls)
{
	struct sim_vreg *v = sim_lower_grow(l->vreg, l->nvregs, &l->capvregs, sizeof *v);

	if (!v) {
		no_memory(l);
		return UINT32_MAX;
	}
	l->vreg = v;
	v += l->nvregs;
	memset(v, 0, sizeof *v);
	v->cls = (uint8_t)cls;
	v->alias = l->nvregs;
	return l->nvregs++;
}

/* Out of memory shows at the next emit, which every user of a temp comes to. */
uint32_t sim_lower_temp(struct sim_lower *l, unsigned cls)
{
	uint32_t v = sim_lower_vreg(l, cls);

	if (v == UINT32_MAX)
		return 0;
	l->vreg[v].is_temp = 1;
	return v;
}

static uint32_t constant(struct sim_lower *l, const struct sim_vreg *want)
{
	uint32_t v, *list;

	for (uint32_t i = 0; i < l->nconst; i++) {
		const struct sim_vreg *c = &l->vreg[l->const_hash[i]];

		if (c->value == want->value && c->cls == want->cls && c->sreg == want->sreg &&
		    c->dynamic == want->dynamic)
			return l->const_hash[i];
	}
	list = sim_lower_grow(l->const_hash, l->nconst, &l->capconst, sizeof *list);
	if (!list) {
		no_memory(l);
		return 0;
	}
	l->const_hash = list;
	v = sim_lower_vreg(l, want->cls);
	if (v == UINT32_MAX)
		return 0;
	l->vreg[v] = *want;
	l->vreg[v].alias = v;
	l->vreg[v].is_const = 1;
	list[l->nconst++] = v;
	return v;
}

uint32_t sim_lower_const(struct sim_lower *l, uint64_t value, unsigned cls)
{
	struct sim_vreg want = {
		.value = cls == 4 ? (uint32_t)value : value, .cls = (uint8_t)cls, .is_static = 1};

	return constant(l, &want);
}

struct sim_uop *sim_lower_emit(struct sim_lower *l, enum sim_kind kind, const sim_fn fn[2])
{
	struct sim_uop *o;

	if (l->failed)
		return NULL;
	if (l->nuops >= SIM_MAX_UOPS) {
		sim_lower_fail(l, "kernel %s is too long with its calls inlined", l->k->func->name);
		return NULL;
	}
	o = sim_lower_grow(l->uop, l->nuops, &l->capuops, sizeof *o);
	if (!o) {
		no_memory(l);
		return NULL;
	}
	l->uop = o;
	o += l->nuops++;
	memset(o, 0, sizeof *o);
	o->fn[0] = fn ? fn[0] : NULL;
	o->fn[1] = fn ? fn[1] : NULL;
	o->kind = (uint8_t)kind;
	o->src = l->in;
	if (l->guard != UINT32_MAX && kind != SIM_K_BRA && kind != SIM_K_NOP) {
		o->sub = o->kind;
		o->kind = SIM_K_GUARDED;
		o->r[7] = l->guard;
		o->rd |= 128;
		o->flags |= l->in->pred_negate ? SIM_F_NEGATE : 0;
	}
	return o;
}

int sim_lower_side(struct sim_lower *l, uint32_t v)
{
	uint32_t *side = l->side;

	if (l->nside == l->capside) {
		side = realloc(side, (l->capside ? 2 * l->capside : 64) * sizeof *side);
		if (!side)
			return l->failed = -ENOMEM;
		l->capside = l->capside ? 2 * l->capside : 64;
		l->side = side;
	}
	side[l->nside++] = v;
	return 0;
}

/* ---- operands ---- */

/* ld, st, cvt: registers may be wider than the type. */
static int width_is_free(const struct rs_ptx_insn *in)
{
	static const char *const bases[] = {"ld", "ldu", "st", "cvt"};

	for (unsigned i = 0; i < sizeof bases / sizeof *bases; i++)
		if (!strcmp(in->part[0], bases[i]))
			return 1;
	return 0;
}

static unsigned letter_bytes(char letter)
{
	return letter == 'd' || letter == 'g' ? 8 : letter == 'h' ? 2 : 4;
}

/* Is the register good for an operand of this letter? */
static int check_reg(struct sim_lower *l, const struct rs_ptx_reg *reg, char letter)
{
	unsigned bytes = rs_ptx_type_bytes(reg->type);

	if ((reg->type == RS_PTX_PRED) != (letter == 'p'))
		return sim_lower_fail(l,
				      letter == 'p' ? "%s is not a predicate" : "%s is a predicate",
				      reg->name);
	if (letter == 'p')
		return 0;
	if (bytes > 8)
		return sim_lower_fail(l, "128-bit registers are not supported");
	if (bytes < letter_bytes(letter) && !(bytes == 1 && letter == 'h'))
		return sim_lower_fail(l, "register %s is too narrow", reg->name);
	if (bytes > letter_bytes(letter) && !width_is_free(l->in))
		return sim_lower_fail(l, "register %s is too wide", reg->name);
	return 0;
}

unsigned sim_lower_width(const struct sim_lower *l, const struct rs_ptx_operand *op)
{
	if (op->kind != RS_PTX_OP_REG)
		return 8;
	return rs_ptx_type_bytes(l->inst->func->regs[op->reg].type) == 8 ? 8 : 4;
}

static struct sim_uop *emit_unary(struct sim_lower *l, const sim_fn fn[2], uint32_t d, uint32_t a)
{
	struct sim_uop *o = sim_lower_emit(l, SIM_K_ALU, fn);

	if (!o)
		return NULL;
	o->r[0] = d, o->r[1] = a;
	o->wr |= 1, o->rd |= 2;
	o->flags |= SIM_F_PURE;
	return o;
}

static int src_reg(struct sim_lower *l, const struct rs_ptx_operand *op, char letter,
		   uint32_t *ret_v)
{
	const struct rs_ptx_reg *reg = &l->inst->func->regs[op->reg];
	uint32_t v = l->inst->reg_base + (uint32_t)op->reg, t;
	int rc = check_reg(l, reg, letter);

	if (rc)
		return rc;
	if (op->name || op->reg2 >= 0 || (op->negate && letter != 'p'))
		return sim_lower_fail(l, "wrong operands");
	if (op->negate) {
		t = sim_lower_temp(l, 4);
		*ret_v = t;
		return emit_unary(l, sim_fn_not_pred, t, v) ? 0 : l->failed;
	}
	if (l->vreg[v].cls == 8 && sim_letter_class(letter) == 4) {
		t = sim_lower_temp(l, 4);
		*ret_v = t;
		return emit_unary(l, sim_fn_trunc, t, v) ? 0 : l->failed;
	}
	*ret_v = v;
	return 0;
}

static int src_imm(struct sim_lower *l, const struct rs_ptx_operand *op, char letter,
		   uint32_t *ret_v)
{
	uint64_t value = (uint64_t)op->imm;
	int fits;

	switch (letter) {
	case 'p':
		fits = !op->fbits;
		value = value ? ~0u : 0;
		break;
	case 'f':
		fits = op->fbits == 32;
		break;
	case 'g':
		fits = op->fbits == 64;
		break;
	case 'd':
		fits = op->fbits != 32;
		break;
	default:
		fits = op->fbits != 64;
	}
	if (!fits)
		return sim_lower_fail(l, "a constant does not have the type of the instruction");
	*ret_v = sim_lower_const(l, value, sim_letter_class(letter));
	return l->failed;
}

/* Counters: the number of thread instructions so far, the one clock that is the same every run. */
static void read_clock(const struct sim_uop *o, struct sim_warp *w)
{
	uint64_t now = w->run->counts.thread_insns;
	uint32_t *d = SIM_REG(uint32_t, w, o, 0);

	for (int i = 0; i < SIM_LANES; i++)
		d[i] = w->lanes[i] ? (uint32_t)(now >> o->imm) : d[i];
}

static void read_clock64(const struct sim_uop *o, struct sim_warp *w)
{
	uint64_t now = w->run->counts.thread_insns, *d = SIM_REG(uint64_t, w, o, 0);

	for (int i = 0; i < SIM_LANES; i++)
		d[i] = w->lanes[i] ? now : d[i];
}

static int src_clock(struct sim_lower *l, const char *name, char letter, uint32_t *ret_v)
{
	static const sim_fn fn4[2] = {read_clock, read_clock},
			    fn8[2] = {read_clock64, read_clock64};
	static const struct {
		const char *name;
		uint8_t cls, shift;
	} clocks[] = {{"%clock", 4, 0},		 {"%clock_hi", 4, 32},
		      {"%clock64", 8, 0},	 {"%globaltimer", 8, 0},
		      {"%globaltimer_lo", 4, 0}, {"%globaltimer_hi", 4, 32}};

	for (unsigned i = 0; i < sizeof clocks / sizeof *clocks; i++) {
		struct sim_uop *o;
		uint32_t t;

		if (strcmp(name, clocks[i].name) || clocks[i].cls != sim_letter_class(letter))
			continue;
		t = sim_lower_temp(l, clocks[i].cls);
		o = sim_lower_emit(l, SIM_K_ALU, clocks[i].cls == 8 ? fn8 : fn4);
		if (!o)
			return l->failed;
		o->r[0] = t;
		o->wr |= 1;
		o->imm = clocks[i].shift;
		*ret_v = t;
		return 0;
	}
	return sim_lower_fail(l, "unknown special register %s", name);
}

static int src_sreg(struct sim_lower *l, const struct rs_ptx_operand *op, char letter,
		    uint32_t *ret_v)
{
	static const struct {
		const char *name;
		int early;
	} sregs[] = {{NULL, 0},
#define S(id, name, early) {name, early},
		     SIM_SREGS(S)
#undef S
	};
	unsigned cls = sim_letter_class(letter);

	for (unsigned i = 1; i < SIM_SREG_COUNT; i++)
		if (!strcmp(sregs[i].name, op->name)) {
			struct sim_vreg want = {.cls = (uint8_t)cls,
						.sreg = (uint8_t)i,
						.is_static = (uint8_t)sregs[i].early};

			if (cls == 8 && i != SIM_SREG_GRIDID)
				return sim_lower_fail(l, "%s has 32 bits", op->name);
			if (i >= SIM_SREG_LANEID && i <= SIM_SREG_GT)
				l->k->packable = 0;
			*ret_v = constant(l, &want);
			return l->failed;
		}
	return src_clock(l, op->name, letter, ret_v);
}

/* An address as a constant; `generic` adds the window. */
static int const_address(struct sim_lower *l, const struct sim_place *place, int64_t addend,
			 unsigned cls, int generic, uint32_t *ret_v)
{
	uint64_t base = 0;
	struct sim_vreg want;

	if (generic && place->space == RS_PTX_SPACE_SHARED)
		base = SIM_SHARED_BASE;
	else if (generic && place->space == RS_PTX_SPACE_LOCAL)
		base = SIM_LOCAL_BASE;
	else if (generic && place->space == RS_PTX_SPACE_PARAM)
		base = SIM_PARAM_BASE;
	want = (struct sim_vreg){.value = base + place->addr + (uint64_t)addend,
				 .cls = (uint8_t)cls,
				 .is_static = 1,
				 .dynamic = (uint8_t)place->dynamic};
	*ret_v = constant(l, &want);
	return l->failed;
}

static int src_symbol(struct sim_lower *l, const struct rs_ptx_operand *op, char letter,
		      uint32_t *ret_v)
{
	struct sim_place place;
	int rc = sim_lower_var(l, op->var, op->name, &place);

	if (rc)
		return rc;
	if (letter != 'd' && !(letter == 'w' && (place.space == RS_PTX_SPACE_SHARED ||
						 place.space == RS_PTX_SPACE_LOCAL)))
		return sim_lower_fail(l, "the address of %s does not fit", op->name);
	return const_address(l, &place, op->imm, sim_letter_class(letter), 0, ret_v);
}

int sim_lower_src(struct sim_lower *l, const struct rs_ptx_operand *op, char letter,
		  uint32_t *ret_v)
{
	switch (op->kind) {
	case RS_PTX_OP_REG:
		return src_reg(l, op, letter, ret_v);
	case RS_PTX_OP_IMM:
		return src_imm(l, op, letter, ret_v);
	case RS_PTX_OP_SREG:
		return src_sreg(l, op, letter, ret_v);
	case RS_PTX_OP_SYM:
		return src_symbol(l, op, letter, ret_v);
	default:
		return sim_lower_fail(l, "wrong operands");
	}
}

int sim_lower_dst(struct sim_lower *l, const struct rs_ptx_operand *op, char letter, int is_signed,
		  uint32_t *ret_v)
{
	uint32_t v;
	int rc;

	if (op->kind == RS_PTX_OP_SINK) {
		*ret_v = sim_lower_temp(l, sim_letter_class(letter));
		return l->failed;
	}
	if (op->kind != RS_PTX_OP_REG || op->negate || op->name)
		return sim_lower_fail(l, "wrong operands");
	rc = check_reg(l, &l->inst->func->regs[op->reg], letter);
	if (rc)
		return rc;
	v = l->inst->reg_base + (uint32_t)op->reg;
	if (l->vreg[v].cls == 8 && sim_letter_class(letter) == 4) {
		uint32_t t = sim_lower_temp(l, 4);

		if (l->nwiden == sizeof l->widen / sizeof *l->widen)
			return sim_lower_fail(l, "wrong operands");
		l->widen[l->nwiden].reg = v;
		l->widen[l->nwiden].temp = t;
		l->widen[l->nwiden++].is_signed = is_signed;
		v = t;
	}
	*ret_v = v;
	return l->failed;
}

/* Loads and conversions have extended their result to 32 bits; here to 64. */
int sim_lower_finish(struct sim_lower *l)
{
	for (unsigned i = 0; i < l->nwiden; i++) {
		struct sim_uop *o = emit_unary(l, l->widen[i].is_signed ? sim_fn_sext : sim_fn_zext,
					       l->widen[i].reg, l->widen[i].temp);

		if (!o)
			return l->failed;
	}
	l->nwiden = 0;
	return l->failed;
}

/*
 * An address operand. *ret_space is the space to access, or RS_PTX_SPACE_REG for an entry parameter
 * at a fixed offset (*ret_imm) in the parameter block.
 */
int sim_lower_addr(struct sim_lower *l, const struct rs_ptx_operand *op, unsigned space,
		   uint32_t *ret_v, int64_t *ret_imm, unsigned *ret_space)
{
	struct sim_place place;
	int rc;

	*ret_space = space;
	*ret_imm = 0;
	if (op->nelems)
		return sim_lower_fail(l, "wrong operands");
	if (op->reg >= 0) {
		int narrow = space == RS_PTX_SPACE_SHARED || space == RS_PTX_SPACE_LOCAL;
		const struct rs_ptx_reg *reg = &l->inst->func->regs[op->reg];
		unsigned bytes = rs_ptx_type_bytes(reg->type);

		if (!(bytes == 8 || (bytes == 4 && narrow)))
			return sim_lower_fail(l, "%s cannot hold this address", reg->name);
		*ret_v = l->inst->reg_base + (uint32_t)op->reg;
		*ret_imm = op->imm;
		return 0;
	}
	if (!op->name) {
		*ret_v = sim_lower_const(l, (uint64_t)op->imm, 8);
		return l->failed;
	}
	rc = sim_lower_var(l, op->var, op->name, &place);
	if (rc)
		return rc;
	if (space == RS_PTX_SPACE_PARAM && place.space == RS_PTX_SPACE_PARAM) {
		if (place.addr >= SIM_CALLPARAM_BASE) {
			place.addr -= SIM_CALLPARAM_BASE;
			place.space = *ret_space = RS_PTX_SPACE_LOCAL;
		} else {
			*ret_space = RS_PTX_SPACE_REG;
			*ret_imm = (int64_t)place.addr + op->imm;
			*ret_v = 0;
			if (*ret_imm < 0 || (uint64_t)*ret_imm >= l->k->func->param_bytes)
				return sim_lower_fail(l, "outside the parameters");
			return 0;
		}
	} else if (space != RS_PTX_SPACE_NONE && space != place.space) {
		return sim_lower_fail(l, "%s is in another state space", op->name);
	}
	return const_address(l, &place, op->imm, 8, space == RS_PTX_SPACE_NONE, ret_v);
}

int sim_lower_by_sig(struct sim_lower *l, const struct rs_ptx_insn *in, const struct sim_form *form,
		     unsigned flags)
{
	unsigned n = (unsigned)strlen(form->sig);
	uint32_t v[5];
	struct sim_uop *o;
	int rc = 0;

	if (in->noperands != n || (in->op[0].kind == RS_PTX_OP_REG && in->op[0].reg2 >= 0))
		return sim_lower_fail(l, "wrong operands");
	for (unsigned i = 1; i < n && !rc; i++)
		rc = sim_lower_src(l, &in->op[i], form->sig[i], &v[i]);
	if (!rc)
		rc = sim_lower_dst(l, &in->op[0], form->sig[0], 0, &v[0]);
	if (rc)
		return rc;
	o = sim_lower_emit(l, SIM_K_ALU, form->fn);
	if (!o)
		return l->failed;
	memcpy(o->r, v, n * sizeof *v);
	o->wr |= 1;
	o->rd |= (uint8_t)(((1u << n) - 1) & ~1u);
	o->flags |= (uint16_t)(flags | SIM_F_PURE);
	return sim_lower_finish(l);
}

/* A guard that the instruction itself overwrites must be read first. */
static int keep_guard(struct sim_lower *l, const struct rs_ptx_insn *in)
{
	uint32_t guard = l->guard, t;

	if (in->op[0].kind != RS_PTX_OP_REG || !in->noperands ||
	    (in->op[0].reg != in->pred && in->op[0].reg2 != in->pred))
		return 0;
	l->guard = UINT32_MAX;
	t = sim_lower_temp(l, 4);
	if (!emit_unary(l, sim_fn_copy[2], t, guard))
		return l->failed;
	l->guard = t;
	return 0;
}

int sim_lower_insn(struct sim_lower *l, const struct rs_ptx_insn *in)
{
	const struct sim_form *form;
	uint32_t first = l->nuops;
	unsigned flags = 0;
	int rc = 0;

	l->in = in;
	l->nwiden = 0;
	l->guard = UINT32_MAX;
	form = sim_form_find(in, &flags);
	if (!form)
		return sim_lower_fail(l, "unknown instruction %s", in->text);
	if (in->pred >= 0) {
		rc = check_reg(l, &l->inst->func->regs[in->pred], 'p');
		l->guard = l->inst->reg_base + (uint32_t)in->pred;
		if (!rc)
			rc = keep_guard(l, in);
	}
	if (!rc)
		rc = (form->lower ? form->lower : sim_lower_by_sig)(l, in, form, flags);
	if (!rc && l->nuops == first && !sim_lower_emit(l, SIM_K_NOP, NULL))
		rc = l->failed;
	if (!rc)
		l->uop[first].weight = 1;
	return rc;
}
