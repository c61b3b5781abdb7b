/* SPDX-License-Identifier: MIT */
/*
 * Abstract values as such: their ranges, origins and needs, unknowns and choices, operands.
 * See ptx_value.h.
 *
 * Callers: ptx_step.c, ptx_eval.c, ptx_walk.c, ptx_access.c. No locks.
 */
#include "tracker/ptx_value.h"

#include <stdlib.h>
#include <string.h>

#define MAX_NEEDS 60000

struct opcode {
	const char *name;
	uint8_t what;
};

static const struct opcode opcodes[] = {
#define OP(name, what) {name, RS_WHAT_##what},
#include "tracker/ptx_opcodes.def"
#undef OP
};

static int by_name(const void *key, const void *entry)
{
	return strcmp(key, ((const struct opcode *)entry)->name);
}

enum rs_opcode_what rs_opcode_what(const char *opcode)
{
	const struct opcode *hit = bsearch(opcode, opcodes, sizeof(opcodes) / sizeof(*opcodes),
					   sizeof(*opcodes), by_name);

	return hit ? hit->what : RS_WHAT_UNKNOWN;
}

struct rs_aff_origin rs_origin_join(struct rs_aff_origin a, struct rs_aff_origin b)
{
	a.words |= b.words;
	a.from |= b.from;
	return a;
}

unsigned rs_type_width(unsigned type)
{
	switch (type) {
	case RS_PTX_B32:
	case RS_PTX_U32:
	case RS_PTX_S32:
		return 32;
	case RS_PTX_B64:
	case RS_PTX_U64:
	case RS_PTX_S64:
		return 64;
	default:
		return 0;
	}
}

int64_t rs_type_lo(unsigned type)
{
	switch (type) {
	case RS_PTX_S8:
		return INT8_MIN;
	case RS_PTX_S16:
		return INT16_MIN;
	case RS_PTX_S32:
		return INT32_MIN;
	case RS_PTX_U8:
	case RS_PTX_B8:
	case RS_PTX_U16:
	case RS_PTX_B16:
	case RS_PTX_U32:
	case RS_PTX_B32:
	case RS_PTX_PRED:
		return 0;
	default:
		return INT64_MIN;
	}
}

int64_t rs_type_hi(unsigned type)
{
	switch (type) {
	case RS_PTX_PRED:
		return 1;
	case RS_PTX_S8:
		return INT8_MAX;
	case RS_PTX_U8:
	case RS_PTX_B8:
		return UINT8_MAX;
	case RS_PTX_S16:
		return INT16_MAX;
	case RS_PTX_U16:
	case RS_PTX_B16:
		return UINT16_MAX;
	case RS_PTX_S32:
		return INT32_MAX;
	case RS_PTX_U32:
	case RS_PTX_B32:
		return UINT32_MAX;
	default:
		return INT64_MAX;
	}
}

unsigned rs_reg_type(const struct rs_vals *v, const struct rs_ptx_operand *op)
{
	const struct rs_flow_frame *fr = &v->flow.frames[v->flow.steps[v->step].frame];

	return op->kind == RS_PTX_OP_REG && op->reg >= 0 ? fr->func->regs[op->reg].type
							 : RS_PTX_NONE;
}

const struct rs_needs *rs_needs_join(struct rs_vals *v, const struct rs_needs *a,
				     const struct rs_needs *b)
{
	uint16_t out[2 * RS_MAX_NEEDS];
	struct rs_needs *r;
	unsigned i = 0, j = 0, n = 0;

	if (!a || !b || a == b)
		return a ? a : b;
	while (i < a->n || j < b->n) {
		unsigned x = i < a->n ? a->id[i] : 0xffff, y = j < b->n ? b->id[j] : 0xffff;

		out[n++] = (uint16_t)(x < y ? x : y);
		i += x <= y;
		j += y <= x;
	}
	if (n == a->n)
		return a;
	if (n == b->n)
		return b;
	/* Too many to keep: need number 0 never holds. */
	if (n > RS_MAX_NEEDS) {
		n = 1;
		out[0] = 0;
	}
	r = rs_aff_alloc(v->mem, sizeof(*r) + n * sizeof(*r->id));
	r->n = (uint16_t)n;
	memcpy(r->id, out, n * sizeof(*out));
	return r;
}

const struct rs_needs *rs_needs_add(struct rs_vals *v, const struct rs_needs *set,
				    const struct rs_aff_poly *p, int64_t lo, int64_t hi)
{
	struct rs_needs *one = rs_aff_alloc(v->mem, sizeof(*one) + sizeof(*one->id));
	uint32_t i;

	if (!p->n && p->c >= lo && p->c <= hi)
		return set;
	for (i = v->nneeds; i-- > 1 && i + 64 > v->nneeds;)
		if (v->needs[i].lo == lo && v->needs[i].hi == hi && rs_aff_equal(v->needs[i].p, p))
			goto found;
	if (v->nneeds == MAX_NEEDS)
		longjmp(v->mem->fail, RS_AFF_TOOBIG);
	if (v->nneeds == v->cap_needs) {
		struct rs_need *n = rs_aff_alloc(v->mem, 2 * v->cap_needs * sizeof(*n));

		memcpy(n, v->needs, v->nneeds * sizeof(*n));
		v->needs = n;
		v->cap_needs *= 2;
	}
	i = v->nneeds++;
	v->needs[i] = (struct rs_need){p, lo, hi};
found:
	one->n = 1;
	one->id[0] = (uint16_t)i;
	return rs_needs_join(v, set, one);
}

struct rs_val rs_val_unknown_at(struct rs_vals *v, unsigned width, uint64_t key, int64_t lo,
				int64_t hi, struct rs_aff_origin origin)
{
	struct rs_aff_atom a = {
		.kind = RS_AFF_UNKNOWN,
		.a = (int64_t)key,
		.lo = lo,
		.hi = hi,
		.narrow = lo >= -((int64_t)1 << 32) && hi <= (int64_t)1 << 32,
		.block = (int32_t)v->block,
		.origin = origin,
	};
	struct rs_val r = {.origin = origin};

	a.how = (uint8_t)width;
	if (width)
		r.p = rs_aff_var(&v->aff, width, rs_aff_atom(&v->aff, &a, NULL));
	return r;
}

struct rs_val rs_val_unknown(struct rs_vals *v, unsigned width, unsigned slot, int64_t lo,
			     int64_t hi, struct rs_aff_origin origin)
{
	/* The integer behind an unknown register is its signed reading unless the range says more. */
	if (width == 32 && (lo < INT32_MIN || hi > INT32_MAX)) {
		lo = INT32_MIN;
		hi = INT32_MAX;
	}
	return rs_val_unknown_at(v, width, (uint64_t)v->step * 32 + slot, lo, hi, origin);
}

struct rs_val rs_val_choice(struct rs_vals *v, uint64_t key, const struct rs_val *const *in,
			    unsigned n)
{
	const struct rs_aff_poly *args[RS_AFF_MAX_ARGS];
	struct rs_val r = {0};
	unsigned nargs = 0, width = 0, all = 1, first = 1;

	for (unsigned i = 0; i < n; i++) {
		unsigned j = 0;

		if (in[i]->undefined)
			continue;
		r.origin = rs_origin_join(r.origin, in[i]->origin);
		r.needs = rs_needs_join(v, r.needs, in[i]->needs);
		r.pred = first || r.pred == in[i]->pred ? in[i]->pred : NULL;
		first = 0;
		all &= in[i]->p && (!width || in[i]->p->width == width);
		if (!in[i]->p)
			continue;
		width = in[i]->p->width;
		while (j < nargs && !rs_aff_equal(args[j], in[i]->p))
			j++;
		if (j == nargs && nargs < RS_AFF_MAX_ARGS)
			args[nargs++] = in[i]->p;
		else
			all &= j < nargs;
	}
	if (all && nargs == 1) {
		r.p = args[0];
	} else if (all && nargs) {
		struct rs_aff_atom a = {
			.kind = RS_AFF_CHOICE,
			.how = (uint8_t)width,
			.nargs = (uint8_t)nargs,
			.narrow = width == 32,
			.a = (int64_t)key,
			.block = (int32_t)v->block,
			.origin = r.origin,
		};

		r.p = rs_aff_var(&v->aff, width, rs_aff_atom(&v->aff, &a, args));
	} else if (width) {
		r.p = rs_val_unknown_at(v, width, key, width == 32 ? INT32_MIN : INT64_MIN,
					width == 32 ? INT32_MAX : INT64_MAX, r.origin)
			      .p;
	}
	return r;
}

const struct rs_val *rs_vals_keep(struct rs_vals *v, struct rs_val val)
{
	struct rs_val *p = rs_aff_alloc(v->mem, sizeof(*p));

	*p = val;
	return p;
}

const struct rs_val *rs_vals_reg(struct rs_vals *v, uint32_t reg)
{
	if (!v->cur[reg]) {
		/* Undefined on entry: any value, from anywhere. */
		v->cur[reg] = rs_vals_keep(
			v, (struct rs_val){.undefined = 1, .origin = {0, RS_AFF_MEMORY}});
	}
	return v->cur[reg];
}

static const struct rs_val *symbol(struct rs_vals *v, const struct rs_ptx_operand *op,
				   unsigned width)
{
	struct rs_aff_atom a = {.kind = RS_AFF_SYMBOL, .a = (int64_t)(intptr_t)op->var};
	struct rs_val r = {0};

	if (!op->var) {
		a.origin.from = RS_AFF_MEMORY;
		a.b = (int64_t)v->step;
	} else if (op->var->space == RS_PTX_SPACE_GLOBAL) {
		a.origin.from = RS_AFF_GLOBAL;
	} else if (op->var->space == RS_PTX_SPACE_CONST) {
		a.origin.from = RS_AFF_CONSTANT;
	} else {
		a.origin.from = RS_AFF_PRIVATE;
	}
	r.origin = a.origin;
	r.p = rs_aff_add(&v->aff, rs_aff_var(&v->aff, width, rs_aff_atom(&v->aff, &a, NULL)),
			 rs_aff_const(&v->aff, width, op->imm), 1);
	return rs_vals_keep(v, r);
}

static struct rs_val special(struct rs_vals *v, const char *name, unsigned width)
{
	static const struct {
		const char *name;
		uint8_t kind;
	} axes[] = {{"%tid.", RS_AFF_TID},
		    {"%ntid.", RS_AFF_NTID},
		    {"%ctaid.", RS_AFF_CTAID},
		    {"%nctaid.", RS_AFF_NCTAID}};
	struct rs_aff_origin none = {0, 0};

	for (unsigned i = 0; i < 4; i++) {
		size_t len = strlen(axes[i].name);
		struct rs_aff_atom a = {.kind = axes[i].kind, .narrow = 1};

		if (strncmp(name, axes[i].name, len) || name[len] < 'x' || name[len] > 'z')
			continue;
		a.a = name[len] - 'x';
		return (struct rs_val){.p = rs_aff_var(&v->aff, width ? width : 32,
						       rs_aff_atom(&v->aff, &a, NULL))};
	}
	if (!strcmp(name, "WARP_SZ"))
		return (struct rs_val){.p = rs_aff_const(&v->aff, width ? width : 32, 32)};
	if (!strcmp(name, "%laneid"))
		return rs_val_unknown(v, width ? width : 32, 31, 0, 31, none);
	return rs_val_unknown(v, width ? width : 32, 31, INT64_MIN, INT64_MAX, none);
}

const struct rs_val *rs_vals_operand(struct rs_vals *v, const struct rs_ptx_operand *op,
				     unsigned width)
{
	const struct rs_flow_step *step = &v->flow.steps[v->step];
	const struct rs_val *val;
	unsigned slot = 16;

	switch (op->kind) {
	case RS_PTX_OP_REG:
		val = rs_vals_reg(v, v->flow.frames[step->frame].reg_base + (uint32_t)op->reg);
		if (!width || (val->p && val->p->width == width))
			break;
		/* Each operand that is not followed is an unknown of its own. */
		for (unsigned i = 0; i < step->insn->noperands; i++)
			if (&step->insn->op[i] == op)
				slot = 16 + i;
		return rs_vals_keep(
			v, rs_val_unknown(v, width, slot, INT64_MIN, INT64_MAX, val->origin));
	case RS_PTX_OP_IMM:
		if (!width)
			return rs_vals_keep(v, (struct rs_val){0});
		return rs_vals_keep(v, (struct rs_val){.p = rs_aff_const(&v->aff, width, op->imm)});
	case RS_PTX_OP_SREG:
		return rs_vals_keep(v, special(v, op->name, width));
	case RS_PTX_OP_SYM:
		return symbol(v, op, width ? width : 64);
	default:
		return rs_vals_keep(v, rs_val_unknown(v, width, 24, INT64_MIN, INT64_MAX,
						      (struct rs_aff_origin){0, RS_AFF_MEMORY}));
	}
	if (op->negate && val->p) {
		struct rs_val neg = *val;

		neg.p = rs_aff_add(&v->aff, rs_aff_const(&v->aff, val->p->width, 0), val->p, -1);
		return rs_vals_keep(v, neg);
	}
	return val;
}

const struct rs_val *rs_vals_address(struct rs_vals *v, const struct rs_ptx_operand *op)
{
	const struct rs_flow_step *step = &v->flow.steps[v->step];
	const struct rs_val *base;
	struct rs_val r;

	if (op->kind != RS_PTX_OP_ADDR)
		return rs_vals_operand(v, op, 64);
	if (op->reg < 0 && (op->name || op->var))
		return symbol(v, op, 64);
	if (op->reg < 0)
		return rs_vals_keep(v, (struct rs_val){.p = rs_aff_const(&v->aff, 64, op->imm)});
	base = rs_vals_reg(v, v->flow.frames[step->frame].reg_base + (uint32_t)op->reg);
	r = *base;
	if (r.p)
		r.p = rs_aff_add(&v->aff, r.p, rs_aff_const(&v->aff, r.p->width, op->imm), 1);
	return rs_vals_keep(v, r);
}

const struct rs_pred *rs_vals_guard(struct rs_vals *v, const struct rs_flow_step *step)
{
	const struct rs_val *val;
	struct rs_pred *p;

	if (step->pred < 0)
		return NULL;
	val = rs_vals_reg(v, (uint32_t)step->pred);
	if (val->pred && !step->negate)
		return val->pred;
	p = rs_aff_alloc(v->mem, sizeof(*p));
	p->kind = val->pred ? RS_PRED_NOT : RS_PRED_UNKNOWN;
	p->x = val->pred;
	return p;
}

/* Number of a parameter word, entered when new; -1 when there is no more room. */
static int word_index(struct rs_vals *v, uint32_t offset)
{
	for (uint32_t i = 0; i < v->nwords; i++)
		if (v->word[i] == offset)
			return (int)i;
	if (v->nwords == RS_MAX_WORDS)
		return -1;
	v->word[v->nwords] = offset;
	return (int)v->nwords++;
}

struct rs_aff_origin rs_vals_word(struct rs_vals *v, uint32_t offset)
{
	struct rs_aff_origin o = {0, 0};
	int w = word_index(v, offset);

	if (w < 0)
		o.from = RS_AFF_ANYWORD;
	else
		o.words = (uint64_t)1 << w;
	return o;
}

struct rs_val rs_val_param(struct rs_vals *v, unsigned width, uint32_t offset, unsigned type)
{
	unsigned bytes = rs_ptx_type_bytes(type);
	struct rs_aff_atom a = {.kind = RS_AFF_PARAM, .a = offset, .b = bytes, .narrow = bytes < 8};
	struct rs_val r = {0};

	if (bytes == 8)
		a.origin = rs_vals_word(v, offset);
	else if (rs_type_lo(type) == 0 && (bytes < 4 || width == 64))
		a.b = -(int64_t)bytes;
	r.origin = a.origin;
	if (width)
		r.p = rs_aff_var(&v->aff, width, rs_aff_atom(&v->aff, &a, NULL));
	return r;
}
