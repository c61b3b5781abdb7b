/* SPDX-License-Identifier: MIT */
/*
 * The integer instructions of PTX on abstract values (ptx_value.h).
 *
 * Ring operations stay polynomials. Widening adds a need (the integer lies in the type's range) in
 * the place of an operation, so that address arithmetic remains one polynomial. Shifts right and
 * masks by constants become floor divisions, remainders x - d * (x / d); a multiplication by a
 * reciprocal is recognised at launch (RS_AFF_MAGIC). What is not covered gives an unknown value.
 *
 * Callers: the walk in ptx_value.c. No locks.
 */
#include "tracker/ptx_value.h"

#include <string.h>

struct eval {
	struct rs_vals *v;
	const struct rs_ptx_insn *insn;
	unsigned width; /* of the instruction type */
	struct rs_aff_origin origin;
	const struct rs_needs *needs;
};

static struct rs_val give(const struct eval *e, const struct rs_aff_poly *p)
{
	return (struct rs_val){.p = p, .needs = e->needs, .origin = e->origin};
}

static const struct rs_aff_poly *source(struct eval *e, unsigned i, unsigned width)
{
	const struct rs_val *val = rs_vals_operand(e->v, &e->insn->op[i], width);

	e->origin = rs_origin_join(e->origin, val->origin);
	e->needs = rs_needs_join(e->v, e->needs, val->needs);
	return val->p;
}

static const struct rs_aff_poly *constant(struct eval *e, unsigned width, int64_t c)
{
	return rs_aff_const(&e->v->aff, width, c);
}

static const struct rs_aff_poly *operation(struct eval *e, unsigned kind, unsigned how,
					   unsigned width, const struct rs_aff_poly *x,
					   const struct rs_aff_poly *y, int64_t a, int64_t b)
{
	const struct rs_aff_poly *args[2] = {x, y};
	struct rs_aff_atom k = {
		.kind = (uint8_t)kind,
		.how = (uint8_t)how,
		.narrow = width == 32,
		.nargs = y ? 2 : 1,
		.a = a,
		.b = b,
		.origin = e->origin,
	};

	return rs_aff_var(&e->v->aff, width, rs_aff_atom(&e->v->aff, &k, args));
}

static unsigned how_of(unsigned type)
{
	switch (type) {
	case RS_PTX_U32:
	case RS_PTX_B32:
		return RS_AFF_U32;
	case RS_PTX_S32:
		return RS_AFF_S32;
	case RS_PTX_U64:
	case RS_PTX_B64:
		return RS_AFF_U64;
	default:
		return RS_AFF_S64;
	}
}

/* Bounds of an atom that hold at every launch. */
static void static_range(const struct rs_aff_atom *a, int64_t *lo, int64_t *hi)
{
	*lo = INT64_MIN / 4;
	*hi = INT64_MAX / 4;
	switch (a->kind) {
	case RS_AFF_TID:
		*lo = 0;
		*hi = 1023;
		break;
	case RS_AFF_NTID:
		*lo = 1;
		*hi = 1024;
		break;
	case RS_AFF_CTAID:
	case RS_AFF_NCTAID:
		*lo = 0;
		*hi = INT32_MAX;
		break;
	case RS_AFF_UNKNOWN:
		*lo = a->lo;
		*hi = a->hi;
		break;
	case RS_AFF_PARAM:
		if (a->b == 4) {
			*lo = INT32_MIN;
			*hi = INT32_MAX;
		} else if (a->b < 0) {
			*lo = 0;
			*hi = UINT32_MAX;
		}
		break;
	default:
		break;
	}
}

static int always_within(const struct rs_vals *v, const struct rs_aff_poly *p, int64_t lo,
			 int64_t hi)
{
	__int128 min = p->c, max = p->c;

	for (unsigned i = 0; i < p->n; i++) {
		int64_t l, h;

		if (p->t[i].atom[1])
			return 0;
		static_range(v->aff.atoms[p->t[i].atom[0]], &l, &h);
		min += (__int128)p->t[i].coef * (p->t[i].coef > 0 ? l : h);
		max += (__int128)p->t[i].coef * (p->t[i].coef > 0 ? h : l);
	}
	return min >= lo && max <= hi;
}

/* A 32-bit register widened by sign or zero. */
static const struct rs_aff_poly *widen(struct eval *e, const struct rs_aff_poly *p, int is_signed)
{
	int64_t lo = is_signed ? INT32_MIN : 0, hi = is_signed ? INT32_MAX : UINT32_MAX;
	const struct rs_aff_atom *a = e->v->aff.atoms[rs_aff_single(p)];
	const struct rs_aff_poly *q = rs_aff_resize(&e->v->aff, p, 64);

	if (always_within(e->v, p, lo, hi))
		return q;
	/* What is unknown to begin with is better cut to the type than doubted. */
	if (a && (a->kind == RS_AFF_UNKNOWN || a->kind == RS_AFF_PARAM || a->kind == RS_AFF_CHOICE))
		return operation(e, RS_AFF_EXTEND, is_signed ? RS_AFF_S32 : RS_AFF_U32, 64, p, NULL,
				 0, 1);
	e->needs = rs_needs_add(e->v, e->needs, p, lo, hi);
	return q;
}

static const struct rs_aff_poly *floor_div(struct eval *e, const struct rs_aff_poly *x,
					   unsigned how, int64_t d)
{
	const struct rs_aff_atom *in;
	uint16_t one = rs_aff_single(x);

	if (d == 1)
		return x;
	if (!x->n && (how == RS_AFF_MODULAR || x->c >= 0))
		return constant(e, x->width, x->c >= 0 ? x->c / d : -((-(x->c + 1)) / d) - 1);
	in = e->v->aff.atoms[one];
	/* (x / a) / b = x / (a * b), if x / a was read as the same integer. */
	if (one && in->kind == RS_AFF_FLOOR && in->how == how && in->b < ((int64_t)1 << 31) / d)
		return operation(e, RS_AFF_FLOOR, how, x->width, in->arg[0], NULL, 0, in->b * d);
	if (one && in->kind == RS_AFF_MAGIC && in->how == how && !(d & (d - 1)) &&
	    (in->b & ~RS_AFF_HIGH) + __builtin_ctzll((uint64_t)d) < 63)
		return operation(e, RS_AFF_MAGIC, how, x->width, in->arg[0], NULL, in->a,
				 in->b + __builtin_ctzll((uint64_t)d));
	return operation(e, RS_AFF_FLOOR, how, x->width, x, NULL, 0, d);
}

/* Does x have the form M * y, as a reciprocal multiplication leaves it? */
static const struct rs_aff_poly *magic(struct eval *e, const struct rs_aff_poly *x, unsigned how,
				       unsigned shift)
{
	struct rs_aff_poly *y;
	int64_t m = 0;
	size_t size = sizeof(*y) + x->n * sizeof(*y->t);

	for (unsigned i = 0; i < x->n; i++) {
		int64_t c = x->t[i].coef, g = m;

		c = c < 0 ? -c : c;
		while (c > 0) {
			int64_t r = g % c;

			g = c;
			c = r;
		}
		m = g;
	}
	if (m < 3 || x->c % m || shift < 4 || shift > 62 || m >> shift)
		return NULL;
	y = rs_aff_alloc(e->v->mem, size);
	memcpy(y, x, size);
	y->c /= m;
	for (unsigned i = 0; i < y->n; i++)
		y->t[i].coef /= m;
	return operation(e, RS_AFF_MAGIC, how, x->width, y, NULL, m, shift);
}

static const struct rs_aff_poly *shift_right(struct eval *e, const struct rs_aff_poly *x,
					     unsigned how, int64_t by)
{
	const struct rs_aff_poly *q;

	if (by < 0 || by >= x->width) /* clamps: all bits shifted out, or only the sign left */
		return how == RS_AFF_U32 || how == RS_AFF_U64 ? constant(e, x->width, 0) : NULL;
	if (!by)
		return x;
	q = x->n ? magic(e, x, how, (unsigned)by) : NULL;
	if (q)
		return q;
	return by < 62 ? floor_div(e, x, how, (int64_t)1 << by) : NULL;
}

/* x modulo 2^bits */
static const struct rs_aff_poly *low_bits(struct eval *e, const struct rs_aff_poly *x,
					  unsigned bits)
{
	const struct rs_aff_poly *q;

	if (bits >= x->width)
		return x;
	if (bits > 40)
		return NULL;
	q = floor_div(e, x, RS_AFF_MODULAR, (int64_t)1 << bits);
	return rs_aff_add(&e->v->aff, x, q, -((int64_t)1 << bits));
}

static const struct rs_aff_poly *and_mask(struct eval *e, const struct rs_aff_poly *x, int64_t mask)
{
	uint64_t m = x->width == 32 ? (uint32_t)mask : (uint64_t)mask;
	unsigned low, high;
	const struct rs_aff_poly *p, *q;

	if (!m)
		return constant(e, x->width, 0);
	low = (unsigned)__builtin_ctzll(m);
	high = 64 - (unsigned)__builtin_clzll(m);
	if (((m >> low) & ((m >> low) + 1)) || low > 40)
		return NULL; /* not one run of ones */
	p = low_bits(e, x, high);
	q = low_bits(e, x, low);
	if (!low)
		return p;
	return p && q ? rs_aff_add(&e->v->aff, p, q, -1) : NULL;
}

static unsigned trailing_zeros(const struct rs_aff_poly *p)
{
	uint64_t all = (uint64_t)p->c;

	for (unsigned i = 0; i < p->n; i++)
		all |= (uint64_t)p->t[i].coef;
	return all ? (unsigned)__builtin_ctzll(all) : p->width;
}

/* x | y without common bits is x + y: one is a multiple of 2^k, the other needs to be below it. */
static const struct rs_aff_poly *disjoint_or(struct eval *e, const struct rs_aff_poly *x,
					     const struct rs_aff_poly *y)
{
	unsigned k = trailing_zeros(x), l = trailing_zeros(y);
	const struct rs_aff_poly *low = k >= l ? y : x;

	k = k >= l ? k : l;
	if (!k || k > 40)
		return NULL;
	if (!always_within(e->v, low, 0, ((int64_t)1 << k) - 1))
		e->needs = rs_needs_add(e->v, e->needs, low, 0, ((int64_t)1 << k) - 1);
	return rs_aff_add(&e->v->aff, x, y, 1);
}

static struct rs_val bitwise(struct eval *e, unsigned kind)
{
	const struct rs_aff_poly *x = source(e, 1, e->width), *y = source(e, 2, e->width),
				 *r = NULL;

	if (!x->n && y->n) {
		const struct rs_aff_poly *t = x;

		x = y;
		y = t;
	}
	if (kind == RS_AFF_AND && !y->n)
		r = and_mask(e, x, y->c);
	else if (kind == RS_AFF_OR && !y->n && !y->c)
		r = x;
	else if (kind == RS_AFF_XOR && !y->n && y->c == -1)
		r = rs_aff_add(&e->v->aff, constant(e, e->width, -1), x, -1);
	else if (kind == RS_AFF_OR)
		r = disjoint_or(e, x, y);
	if (!r)
		r = operation(e, kind, how_of(e->insn->type), e->width, x, y, 0, 0);
	return give(e, r);
}

static struct rs_val add_sub(struct eval *e, int sign)
{
	const struct rs_aff_poly *x = source(e, 1, e->width), *y = source(e, 2, e->width);

	return give(e, rs_aff_add(&e->v->aff, x, y, sign));
}

/* mul and mad; the high half of a product is a floor division of the wide one. */
static struct rs_val multiply(struct eval *e, int with_add)
{
	const struct rs_ptx_insn *insn = e->insn;
	int is_signed = rs_type_lo(insn->type) != 0 && insn->type != RS_PTX_U64;
	const struct rs_aff_poly *x = source(e, 1, e->width), *y = source(e, 2, e->width), *r;

	if (rs_ptx_has(insn, "lo")) {
		r = rs_aff_mul(&e->v->aff, x, y);
	} else if (rs_ptx_has(insn, "wide") && e->width == 32) {
		r = rs_aff_mul(&e->v->aff, widen(e, x, is_signed), widen(e, y, is_signed));
	} else if (rs_ptx_has(insn, "hi") && e->width == 32 && (!x->n || !y->n) && !with_add) {
		int64_t m = x->n ? y->c : x->c;

		r = operation(e, RS_AFF_MAGIC, is_signed ? RS_AFF_S32 : RS_AFF_U32, 32,
			      x->n ? x : y, NULL, is_signed ? m : (int64_t)(uint32_t)m,
			      32 | RS_AFF_HIGH);
	} else {
		r = NULL;
	}
	if (with_add && r)
		r = rs_aff_add(&e->v->aff, r, source(e, 3, r->width), 1);
	return give(e, r);
}

static struct rs_val divide(struct eval *e, int want_rem)
{
	unsigned how = how_of(e->insn->type);
	const struct rs_aff_poly *x = source(e, 1, e->width), *d = source(e, 2, e->width), *q;

	if (!d->n && d->c == 0)
		return give(e, NULL);
	q = operation(e, RS_AFF_TRUNC, how, e->width, x, d, 0, 0);
	if (!want_rem)
		return give(e, q);
	q = rs_aff_mul(&e->v->aff, q, d);
	return give(e, q ? rs_aff_add(&e->v->aff, x, q, -1) : NULL);
}

static struct rs_val shift(struct eval *e, int left)
{
	const struct rs_aff_poly *x = source(e, 1, e->width), *by = source(e, 2, 32), *r = NULL;
	unsigned how = how_of(e->insn->type);

	if (left && !by->n)
		r = by->c >= 0 && by->c < e->width
			    ? rs_aff_mul(&e->v->aff, x,
					 constant(e, e->width, (int64_t)((uint64_t)1 << by->c)))
			    : constant(e, e->width, 0);
	else if (!by->n)
		r = shift_right(e, x, how, by->c);
	if (!r)
		r = operation(e, left ? RS_AFF_SHL : RS_AFF_SHR, how, e->width, x, by, 0, 0);
	return give(e, r);
}

static struct rs_val extract_field(struct eval *e)
{
	const struct rs_aff_poly *x = source(e, 1, e->width), *pos = source(e, 2, 32);
	const struct rs_aff_poly *len = source(e, 3, 32), *r = NULL;

	if (!pos->n && !len->n && rs_type_lo(e->insn->type) == 0 && pos->c >= 0 && len->c > 0 &&
	    pos->c + len->c <= e->width) {
		r = low_bits(e, x, (unsigned)(pos->c + len->c));
		r = r ? floor_div(e, r, RS_AFF_MODULAR, (int64_t)1 << pos->c) : NULL;
	}
	return give(e, r);
}

/* cvt between integers; the source type says how the register is read. */
static struct rs_val convert(struct eval *e)
{
	const struct rs_ptx_insn *insn = e->insn;
	unsigned from = rs_type_width(insn->type), to = rs_type_width(insn->type2);
	unsigned dest = rs_type_width(rs_reg_type(e->v, &insn->op[0]));
	const struct rs_aff_poly *x;

	if (insn->type2 == RS_PTX_NONE || rs_ptx_has(insn, "sat"))
		return give(e, NULL);
	if (!from) {
		const struct rs_val *val = rs_vals_operand(e->v, &insn->op[1], 0);
		int64_t lo = rs_type_lo(insn->type), hi = rs_type_hi(insn->type);
		int is_int = insn->type >= RS_PTX_B8 && insn->type <= RS_PTX_S64;

		if (!dest || !is_int || !to)
			return give(e, NULL);
		return rs_val_unknown(e->v, dest, 0, lo, hi, val->origin);
	}
	x = source(e, 1, from);
	if (!to || !dest)
		return give(e, NULL);
	if (from == 32 && to == 64 && dest == 64)
		return give(e, widen(e, x, rs_type_lo(insn->type) != 0));
	if (to != dest)
		return give(e, NULL);
	return give(e, rs_aff_resize(&e->v->aff, x, to));
}

/* mov of two halves into a 64-bit register. */
static const struct rs_aff_poly *pack(struct eval *e, const struct rs_ptx_operand *vec)
{
	const struct rs_val *lo, *hi;
	const struct rs_aff_atom *a, *b;
	struct rs_aff_atom w;

	if (vec->nelems != 2)
		return NULL;
	lo = rs_vals_operand(e->v, &vec->elems[0], 0);
	hi = rs_vals_operand(e->v, &vec->elems[1], 0);
	e->origin = rs_origin_join(e->origin, rs_origin_join(lo->origin, hi->origin));
	if (!lo->p || !hi->p || lo->p->width != 32 || hi->p->width != 32)
		return NULL;
	a = e->v->aff.atoms[rs_aff_single(lo->p)];
	b = e->v->aff.atoms[rs_aff_single(hi->p)];
	if (!hi->p->n && !hi->p->c) { /* zero above: a widening */
		e->needs = rs_needs_join(e->v, e->needs, lo->needs);
		return widen(e, lo->p, 0);
	}
	if (a && b && a->kind == RS_AFF_PARAM && b->kind == RS_AFF_PARAM && a->b == 4 &&
	    b->b == 4 && b->a == a->a + 4) {
		w = (struct rs_aff_atom){
			.kind = RS_AFF_PARAM,
			.a = a->a,
			.b = 8,
			.origin = rs_vals_word(e->v, (uint32_t)a->a),
		};
		e->origin = rs_origin_join(e->origin, w.origin);
		return rs_aff_var(&e->v->aff, 64, rs_aff_atom(&e->v->aff, &w, NULL));
	}
	return NULL;
}

static struct rs_val move(struct eval *e)
{
	const struct rs_ptx_insn *insn = e->insn;
	const struct rs_ptx_operand *src = &insn->op[1];
	unsigned dest = rs_type_width(rs_reg_type(e->v, &insn->op[0]));
	struct rs_val r;

	if (src->kind == RS_PTX_OP_VEC)
		return give(e, dest == 64 ? pack(e, src) : NULL);
	if (rs_ptx_has(insn, "pred") || insn->type == RS_PTX_PRED) {
		r = *rs_vals_operand(e->v, src, 0);
		r.undefined = 0;
		if (src->kind == RS_PTX_OP_IMM) {
			struct rs_pred *p = rs_aff_alloc(e->v->mem, sizeof(*p));

			p->kind = RS_PRED_CONST;
			p->cmp = src->imm != 0;
			r.pred = p;
		}
		return r;
	}
	if (src->kind == RS_PTX_OP_REG && !dest)
		return *rs_vals_operand(e->v, src, 0);
	return give(e, source(e, 1, dest));
}

static struct rs_pred *new_pred(struct eval *e, unsigned kind)
{
	struct rs_pred *p = rs_aff_alloc(e->v->mem, sizeof(*p));

	p->kind = (uint8_t)kind;
	return p;
}

static const struct rs_pred *negated(struct eval *e, const struct rs_pred *x)
{
	struct rs_pred *p;

	if (!x)
		return NULL;
	if (x->kind == RS_PRED_NOT)
		return x->x;
	p = new_pred(e, RS_PRED_NOT);
	p->x = x;
	return p;
}

static const struct rs_pred *pred_source(struct eval *e, unsigned i)
{
	const struct rs_ptx_operand *op = &e->insn->op[i];
	const struct rs_pred *x;

	if (op->kind == RS_PTX_OP_IMM) {
		struct rs_pred *p = new_pred(e, RS_PRED_CONST);

		p->cmp = op->imm != 0;
		return p;
	}
	x = rs_vals_operand(e->v, op, 0)->pred;
	return op->negate ? negated(e, x) : x;
}

static struct rs_val logic(struct eval *e, unsigned kind)
{
	struct rs_pred *p = new_pred(e, kind);
	struct rs_val r = {0};

	p->x = pred_source(e, 1);
	if (kind != RS_PRED_NOT)
		p->y = pred_source(e, 2);
	/* xor with a constant is a copy or a negation */
	if (kind == RS_PRED_XOR && p->x && p->y) {
		const struct rs_pred *c = p->x->kind == RS_PRED_CONST ? p->x : p->y;
		const struct rs_pred *o = c == p->x ? p->y : p->x;

		if (c->kind == RS_PRED_CONST) {
			r.pred = c->cmp ? negated(e, o) : o;
			return r;
		}
	}
	r.pred = p;
	return r;
}

static int comparison(const struct rs_ptx_insn *insn, uint8_t *cmp, uint8_t *is_unsigned)
{
	static const struct {
		const char *name;
		uint8_t cmp, is_unsigned;
	} names[] = {
		{"eq", RS_CMP_EQ, 0}, {"ne", RS_CMP_NE, 0}, {"lt", RS_CMP_LT, 0},
		{"le", RS_CMP_LE, 0}, {"gt", RS_CMP_GT, 0}, {"ge", RS_CMP_GE, 0},
		{"lo", RS_CMP_LT, 1}, {"ls", RS_CMP_LE, 1}, {"hi", RS_CMP_GT, 1},
		{"hs", RS_CMP_GE, 1},
	};

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (insn->nparts > 1 && !strcmp(insn->part[1], names[i].name)) {
			*cmp = names[i].cmp;
			*is_unsigned = names[i].is_unsigned || insn->type == RS_PTX_U32 ||
				       insn->type == RS_PTX_U64 || insn->type == RS_PTX_B32 ||
				       insn->type == RS_PTX_B64;
			return 1;
		}
	return 0;
}

static const struct rs_pred *fold(struct eval *e, struct rs_pred *p)
{
	int64_t a = p->a->c, b = p->b->c;
	uint64_t ua = p->a->width == 32 ? (uint32_t)a : (uint64_t)a;
	uint64_t ub = p->a->width == 32 ? (uint32_t)b : (uint64_t)b;
	int less = p->is_unsigned ? ua < ub : a < b;
	struct rs_pred *c;

	if (p->a->n || p->b->n)
		return p;
	c = new_pred(e, RS_PRED_CONST);
	switch (p->cmp) {
	case RS_CMP_EQ:
		c->cmp = a == b;
		break;
	case RS_CMP_NE:
		c->cmp = a != b;
		break;
	case RS_CMP_LT:
		c->cmp = (uint8_t)less;
		break;
	case RS_CMP_GE:
		c->cmp = !less;
		break;
	case RS_CMP_LE:
		c->cmp = less || a == b;
		break;
	default:
		c->cmp = !less && a != b;
		break;
	}
	return c;
}

static struct rs_val compare(struct eval *e)
{
	const struct rs_ptx_insn *insn = e->insn;
	struct rs_pred *p = new_pred(e, RS_PRED_CMP);
	struct rs_val r = {0};

	if (!comparison(insn, &p->cmp, &p->is_unsigned) || insn->noperands != 3 ||
	    insn->op[0].kind != RS_PTX_OP_REG || insn->op[0].reg2 >= 0)
		return r;
	/* Constants of narrow types (how tinygrad writes true) fold; the rest of them is unknown. */
	if (!e->width && (insn->op[1].kind != RS_PTX_OP_IMM || insn->op[2].kind != RS_PTX_OP_IMM ||
			  insn->op[1].fbits || insn->op[2].fbits))
		return r;
	p->a = source(e, 1, e->width ? e->width : 64);
	p->b = source(e, 2, e->width ? e->width : 64);
	p->needs = e->needs;
	r.pred = fold(e, p);
	return r;
}

static struct rs_val select_value(struct eval *e)
{
	const struct rs_pred *p = pred_source(e, 3);
	const struct rs_val *in[2];
	unsigned width = rs_type_width(rs_reg_type(e->v, &e->insn->op[0]));

	in[0] = rs_vals_operand(e->v, &e->insn->op[1], width);
	in[1] = rs_vals_operand(e->v, &e->insn->op[2], width);
	if (p && p->kind == RS_PRED_CONST)
		return *in[p->cmp ? 0 : 1];
	return rs_val_choice(e->v, (uint64_t)e->v->step * 32 + 7, in, 2);
}

static struct rs_val min_max(struct eval *e, unsigned kind)
{
	const struct rs_aff_poly *x = source(e, 1, e->width), *y = source(e, 2, e->width);

	return give(e, operation(e, kind, how_of(e->insn->type), e->width, x, y, 0, 0));
}

static struct rs_val integer(struct eval *e)
{
	const char *op = e->insn->part[0];
	const struct rs_aff_poly *x;

	if (rs_ptx_has(e->insn, "sat"))
		return give(e, NULL);
	if (!strcmp(op, "add"))
		return add_sub(e, 1);
	if (!strcmp(op, "sub"))
		return add_sub(e, -1);
	if (!strcmp(op, "mul"))
		return multiply(e, 0);
	if (!strcmp(op, "mad"))
		return multiply(e, 1);
	if (!strcmp(op, "div"))
		return divide(e, 0);
	if (!strcmp(op, "rem"))
		return divide(e, 1);
	if (!strcmp(op, "shl"))
		return shift(e, 1);
	if (!strcmp(op, "shr"))
		return shift(e, 0);
	if (!strcmp(op, "and"))
		return bitwise(e, RS_AFF_AND);
	if (!strcmp(op, "or"))
		return bitwise(e, RS_AFF_OR);
	if (!strcmp(op, "xor"))
		return bitwise(e, RS_AFF_XOR);
	if (!strcmp(op, "min"))
		return min_max(e, RS_AFF_MIN);
	if (!strcmp(op, "max"))
		return min_max(e, RS_AFF_MAX);
	if (!strcmp(op, "bfe"))
		return extract_field(e);
	x = source(e, 1, e->width);
	if (!strcmp(op, "neg"))
		return give(e, rs_aff_add(&e->v->aff, constant(e, e->width, 0), x, -1));
	if (!strcmp(op, "not"))
		return give(e, rs_aff_add(&e->v->aff, constant(e, e->width, -1), x, -1));
	if (!strcmp(op, "abs"))
		return give(e, operation(e, RS_AFF_ABS, how_of(e->insn->type), e->width, x, NULL, 0,
					 0));
	return give(e, NULL);
}

static struct rs_aff_origin all_sources(struct rs_vals *v, const struct rs_ptx_operand *op)
{
	struct rs_aff_origin o = {0, 0};

	if (op->kind == RS_PTX_OP_REG)
		return rs_vals_operand(v, op, 0)->origin;
	if (op->kind == RS_PTX_OP_SYM)
		return rs_vals_operand(v, op, 64)->origin;
	for (unsigned i = 0; i < op->nelems; i++)
		o = rs_origin_join(o, all_sources(v, &op->elems[i]));
	return o;
}

struct rs_val rs_eval(struct rs_vals *v, const struct rs_flow_step *step)
{
	struct eval e = {.v = v, .insn = step->insn};
	const char *op = e.insn->part[0];
	unsigned dest = rs_type_width(rs_reg_type(v, &e.insn->op[0]));
	struct rs_val r;

	e.width = rs_type_width(e.insn->type);
	if (e.insn->type == RS_PTX_PRED && !strcmp(op, "and"))
		return logic(&e, RS_PRED_AND);
	if (e.insn->type == RS_PTX_PRED && !strcmp(op, "or"))
		return logic(&e, RS_PRED_OR);
	if (e.insn->type == RS_PTX_PRED && !strcmp(op, "xor"))
		return logic(&e, RS_PRED_XOR);
	if (e.insn->type == RS_PTX_PRED && !strcmp(op, "not"))
		return logic(&e, RS_PRED_NOT);
	if (!strcmp(op, "setp"))
		return compare(&e);
	if (!strcmp(op, "mov"))
		r = move(&e);
	else if (!strcmp(op, "cvta"))
		r = give(&e, source(&e, 1, e.width));
	else if (!strcmp(op, "cvt"))
		r = convert(&e);
	else if (!strcmp(op, "selp"))
		r = select_value(&e);
	else if (e.width)
		r = integer(&e);
	else
		r = (struct rs_val){0};
	r.undefined = 0;
	if (!r.p)
		for (unsigned i = 1; i < e.insn->noperands; i++)
			r.origin = rs_origin_join(r.origin, all_sources(v, &e.insn->op[i]));
	/* A result of another width than its register, or none: only its origin is known. */
	if (dest && (!r.p || r.p->width != dest)) {
		struct rs_aff_origin origin = r.origin;

		r = rs_val_unknown(v, dest, 0, INT64_MIN, INT64_MAX, origin);
	}
	return r;
}
