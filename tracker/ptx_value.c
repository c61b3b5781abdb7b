/* SPDX-License-Identifier: MIT */
/*
 * The walk that gives every register its abstract value. See ptx_value.h.
 *
 * Invariant: children of the dominator tree are visited in block order, so every forward
 * predecessor of a block has been walked before it.
 * Callers: ptx_access.c, ptx_eval.c. No locks.
 */
#include "tracker/ptx_value.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ROUNDS 24
#define MAX_NEEDS  60000
#define PHI_KEY	   ((uint64_t)1 << 40)
#define UNDEF_KEY  ((uint64_t)1 << 41)

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

static struct rs_val unknown_at(struct rs_vals *v, unsigned width, uint64_t key, int64_t lo,
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
	return unknown_at(v, width, (uint64_t)v->step * 32 + slot, lo, hi, origin);
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
		r.p = unknown_at(v, width, key, width == 32 ? INT32_MIN : INT64_MIN,
				 width == 32 ? INT32_MAX : INT64_MAX, r.origin)
			      .p;
	}
	return r;
}

static const struct rs_val *keep(struct rs_vals *v, struct rs_val val)
{
	struct rs_val *p = rs_aff_alloc(v->mem, sizeof(*p));

	*p = val;
	return p;
}

const struct rs_val *rs_vals_reg(struct rs_vals *v, uint32_t reg)
{
	if (!v->cur[reg]) {
		/* Undefined on entry: any value, from anywhere. */
		v->cur[reg] =
			keep(v, (struct rs_val){.undefined = 1, .origin = {0, RS_AFF_MEMORY}});
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
	return keep(v, r);
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
		return keep(v, rs_val_unknown(v, width, slot, INT64_MIN, INT64_MAX, val->origin));
	case RS_PTX_OP_IMM:
		if (!width)
			return keep(v, (struct rs_val){0});
		return keep(v, (struct rs_val){.p = rs_aff_const(&v->aff, width, op->imm)});
	case RS_PTX_OP_SREG:
		return keep(v, special(v, op->name, width));
	case RS_PTX_OP_SYM:
		return symbol(v, op, width ? width : 64);
	default:
		return keep(v, rs_val_unknown(v, width, 24, INT64_MIN, INT64_MAX,
					      (struct rs_aff_origin){0, RS_AFF_MEMORY}));
	}
	if (op->negate && val->p) {
		struct rs_val neg = *val;

		neg.p = rs_aff_add(&v->aff, rs_aff_const(&v->aff, val->p->width, 0), val->p, -1);
		return keep(v, neg);
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
		return keep(v, (struct rs_val){.p = rs_aff_const(&v->aff, 64, op->imm)});
	base = rs_vals_reg(v, v->flow.frames[step->frame].reg_base + (uint32_t)op->reg);
	r = *base;
	if (r.p)
		r.p = rs_aff_add(&v->aff, r.p, rs_aff_const(&v->aff, r.p->width, op->imm), 1);
	return keep(v, r);
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

static struct rs_val load_word(struct rs_vals *v, unsigned width, uint32_t offset, unsigned type)
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
			return load_word(v, width,
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
	v->cur[reg] = keep(v, val);
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

static void do_step(struct rs_vals *v, const struct rs_flow_step *step)
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

static unsigned phi_width(const struct rs_vals *v, const struct rs_flow_phi *phi)
{
	/* A numbered register's type: of its frame, or of its slot. */
	for (uint32_t i = v->flow.nframes; i-- > 0;) {
		const struct rs_flow_frame *fr = &v->flow.frames[i];

		if (phi->reg >= fr->reg_base && phi->reg < fr->reg_base + fr->func->nregs)
			return rs_type_width(fr->func->regs[phi->reg - fr->reg_base].type);
	}
	return 0;
}

static struct rs_val phi_entry(struct rs_vals *v, const struct rs_flow_phi *phi)
{
	const struct rs_flow_block *b = &v->flow.blocks[phi->block];
	const struct rs_phi_state *st = phi->state;
	const struct rs_val *in[64];
	unsigned n = 0;

	for (uint32_t p = 0; p < b->npred; p++) {
		if (b->pred[p] >= phi->block)
			continue;
		if (n == 64 || !st->in[p])
			return (struct rs_val){.origin = st->origin};
		in[n++] = st->in[p];
	}
	return rs_val_choice(v, PHI_KEY + st->index * 2u, in, n);
}

static struct rs_val phi_value(struct rs_vals *v, const struct rs_flow_phi *phi)
{
	const struct rs_flow_block *b = &v->flow.blocks[phi->block];
	const struct rs_phi_state *st = phi->state;
	unsigned width = phi_width(v, phi);
	struct rs_val r;

	if (!b->retreating)
		return phi_entry(v, phi);
	if (st->is_induction) {
		struct rs_aff_atom t = {
			.kind = RS_AFF_LOOP, .a = b->loop, .block = (int32_t)phi->block};
		const struct rs_aff_poly *inc;

		r = phi_entry(v, phi);
		if (r.p) {
			inc = rs_aff_mul(
				&v->aff, st->step,
				rs_aff_var(&v->aff, r.p->width, rs_aff_atom(&v->aff, &t, NULL)));
			r.p = inc ? rs_aff_add(&v->aff, r.p, inc, 1) : NULL;
		}
		r.needs = rs_needs_join(v, r.needs, st->needs);
		r.origin = rs_origin_join(r.origin, st->origin);
		r.pred = NULL;
		if (r.p)
			return r;
	}
	return unknown_at(v, width, PHI_KEY + st->index * 2u + 1,
			  width == 32 ? INT32_MIN : INT64_MIN, width == 32 ? INT32_MAX : INT64_MAX,
			  st->origin);
}

/* Is the polynomial the same in every iteration of the loop? */
static int invariant(const struct rs_vals *v, const struct rs_aff_poly *p, int32_t loop, int depth)
{
	for (unsigned i = 0; i < p->n; i++)
		for (unsigned d = 0; d < RS_AFF_DEGREE && p->t[i].atom[d]; d++) {
			const struct rs_aff_atom *a = v->aff.atoms[p->t[i].atom[d]];

			switch (a->kind) {
			case RS_AFF_LOOP:
			case RS_AFF_UNKNOWN:
			case RS_AFF_CHOICE:
				if (rs_flow_in_loop(&v->flow, (uint32_t)a->block, loop))
					return 0;
				break;
			default:
				break;
			}
			if (a->nargs && !depth)
				return 0;
			for (unsigned j = 0; j < a->nargs; j++)
				if (!invariant(v, a->arg[j], loop, depth - 1))
					return 0;
		}
	return 1;
}

/* The amount by which one turn of the loop changes the phi, or NULL. */
static const struct rs_aff_poly *phi_step(struct rs_vals *v, const struct rs_flow_phi *phi,
					  const struct rs_val *own, const struct rs_needs **needs)
{
	const struct rs_flow_block *b = &v->flow.blocks[phi->block];
	const struct rs_phi_state *st = phi->state;
	const struct rs_aff_poly *step = NULL;

	for (uint32_t p = 0; p < b->npred; p++) {
		const struct rs_aff_poly *d;

		if (b->pred[p] < phi->block)
			continue;
		if (!st->in[p] || !st->in[p]->p || st->in[p]->p->width != own->p->width)
			return NULL;
		d = rs_aff_add(&v->aff, st->in[p]->p, own->p, -1);
		if (!d || (step && !rs_aff_equal(step, d)))
			return NULL;
		step = d;
		*needs = rs_needs_join(v, *needs, st->in[p]->needs);
	}
	/* What the step rests on must hold in every iteration, so it must not depend on them. */
	for (unsigned i = 0; *needs && i < (*needs)->n; i++)
		if (!invariant(v, v->needs[(*needs)->id[i]].p, b->loop, 8))
			return NULL;
	return step && invariant(v, step, b->loop, 8) ? step : NULL;
}

static int same_needs(const struct rs_needs *a, const struct rs_needs *b)
{
	if (!a || !b)
		return a == b;
	return a->n == b->n && !memcmp(a->id, b->id, a->n * sizeof(*a->id));
}

static void update_phi(struct rs_vals *v, struct rs_flow_phi *phi, const struct rs_val *own)
{
	const struct rs_flow_block *b = &v->flow.blocks[phi->block];
	struct rs_phi_state *st = phi->state;
	struct rs_aff_origin o = st->origin;
	const struct rs_aff_poly *step = NULL;
	const struct rs_needs *needs = NULL;

	for (uint32_t p = 0; p < b->npred; p++)
		if (st->in[p] && !st->in[p]->undefined)
			o = rs_origin_join(o, st->in[p]->origin);
	if (o.words != st->origin.words || o.from != st->origin.from) {
		st->origin = o;
		v->changed = 1;
	}
	if (!b->retreating || st->banned)
		return;
	if (b->loop >= 0 && v->flow.loops[b->loop].header == phi->block && own->p)
		step = phi_step(v, phi, own, &needs);
	if (st->is_induction
		    ? !step || !rs_aff_equal(step, st->step) || !same_needs(needs, st->needs)
		    : step != NULL) {
		if (++st->tries > 6 || (st->is_induction && !step) || v->last_resort) {
			st->banned = 1;
			st->is_induction = 0;
		} else {
			st->is_induction = 1;
			st->step = step;
			st->needs = needs;
		}
		v->changed = 1;
	}
}

struct undo {
	uint32_t reg;
	const struct rs_val *old;
};

struct walk {
	struct rs_vals *v;
	struct undo *log;
	uint32_t nlog, cap;
};

static void save_reg(void *opaque, uint32_t reg, int is_def)
{
	struct walk *w = opaque;

	if (!is_def)
		return;
	if (w->nlog == w->cap) {
		uint32_t cap = w->cap ? 2 * w->cap : 1024;
		struct undo *n = rs_aff_alloc(w->v->mem, cap * sizeof(*n));

		if (w->nlog)
			memcpy(n, w->log, w->nlog * sizeof(*n));
		w->log = n;
		w->cap = cap;
	}
	w->log[w->nlog++] = (struct undo){reg, w->v->cur[reg]};
}

static void do_block(struct walk *w, uint32_t at)
{
	struct rs_vals *v = w->v;
	struct rs_flow_block *b = &v->flow.blocks[at];

	v->block = at;
	v->step = b->first;
	for (struct rs_flow_phi *phi = b->phis; phi; phi = phi->next)
		save_reg(w, phi->reg, 1);
	for (struct rs_flow_phi *phi = b->phis; phi; phi = phi->next)
		v->cur[phi->reg] = keep(v, phi_value(v, phi));
	for (v->step = b->first; v->step < b->last; v->step++) {
		rs_flow_regs(&v->flow, &v->flow.steps[v->step], save_reg, w);
		do_step(v, &v->flow.steps[v->step]);
	}
	if (b->last > b->first)
		v->branch[at] = rs_vals_guard(v, &v->flow.steps[b->last - 1]);
	for (uint32_t s = 0; s < b->nsucc; s++) {
		const struct rs_flow_block *to = &v->flow.blocks[b->succ[s]];

		for (struct rs_flow_phi *phi = to->phis; phi; phi = phi->next)
			for (uint32_t p = 0; p < to->npred; p++)
				if (to->pred[p] == at)
					((struct rs_phi_state *)phi->state)->in[p] =
						rs_vals_reg(v, phi->reg);
	}
}

/* One round: the dominator tree in preorder, registers restored on the way up. */
static void walk_tree(struct rs_vals *v)
{
	struct walk w = {.v = v};
	uint32_t *marks = rs_aff_alloc(v->mem, v->flow.nblocks * sizeof(*marks));
	uint32_t b = 0;

	memset(v->cur, 0, v->flow.nregs * sizeof(*v->cur));
	for (;;) {
		marks[b] = w.nlog;
		do_block(&w, b);
		if (v->flow.blocks[b].child) {
			b = v->flow.blocks[b].child;
			continue;
		}
		for (;;) {
			/* Everything that b and its children defined is undone. */
			while (w.nlog > marks[b]) {
				w.nlog--;
				v->cur[w.log[w.nlog].reg] = w.log[w.nlog].old;
			}
			if (!b)
				return;
			if (v->flow.blocks[b].sibling) {
				b = v->flow.blocks[b].sibling;
				break;
			}
			b = v->flow.blocks[b].idom;
		}
	}
}

static void update_phis(struct rs_vals *v)
{
	for (uint32_t i = 0; i < v->flow.nblocks; i++)
		for (struct rs_flow_phi *phi = v->flow.blocks[i].phis; phi; phi = phi->next) {
			struct rs_val own;

			v->block = i;
			v->step = v->flow.blocks[i].first;
			own = phi_value(v, phi);
			update_phi(v, phi, &own);
		}
}

static void prepare(struct rs_vals *v)
{
	struct rs_flow *f = &v->flow;
	uint32_t index = 0;

	v->cur = rs_aff_alloc(v->mem, (f->nregs + 1) * sizeof(*v->cur));
	v->branch = rs_aff_alloc(v->mem, f->nblocks * sizeof(*v->branch));
	v->what = rs_aff_alloc(v->mem, f->nsteps);
	v->cap_needs = 64;
	v->needs = rs_aff_alloc(v->mem, v->cap_needs * sizeof(*v->needs));
	v->needs[0] = (struct rs_need){rs_aff_const(&v->aff, 64, 0), 1, 0};
	v->nneeds = 1;
	for (uint32_t i = 0; i < f->nsteps; i++)
		if (f->steps[i].insn)
			v->what[i] = (uint8_t)rs_opcode_what(f->steps[i].insn->part[0]);
	for (uint32_t i = 0; i < f->nblocks; i++)
		for (struct rs_flow_phi *phi = f->blocks[i].phis; phi; phi = phi->next) {
			struct rs_phi_state *st = rs_aff_alloc(v->mem, sizeof(*st));

			st->in = rs_aff_alloc(v->mem, (f->blocks[i].npred + 1) * sizeof(*st->in));
			st->index = index++;
			phi->state = st;
		}
}

void rs_vals_run(struct rs_vals *v, void (*on_round)(struct rs_vals *v))
{
	prepare(v);
	for (unsigned round = 0;; round++) {
		/* Origins settle by themselves: each round adds at least one or is the last. */
		v->last_resort = round >= MAX_ROUNDS;
		if (round == 4 * MAX_ROUNDS)
			longjmp(v->mem->fail, RS_AFF_TOOBIG);
		v->changed = 0;
		on_round(v);
		walk_tree(v);
		update_phis(v);
		if (!v->changed)
			return;
	}
}
