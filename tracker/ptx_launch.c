/* SPDX-License-Identifier: MIT */
/*
 * The ranges of atoms at one launch. See ptx_affine.h for the kinds.
 *
 * An operation reads its operands as its type says: if the operand's integer provably lies in that
 * type, the operation acts on the integer and the atom is `valid`; else only the type's range holds.
 * A loop's iterations are bounded by its tests as if nothing wrapped, and the bound is kept only if
 * then indeed nothing wraps up to and including the last test: the first wrap would have to come
 * after an honest test that ended the loop.
 * Callers: rs_ptx_access_eval. No locks, no memory.
 */
#include "tracker/ptx_bounds.h"

#include <string.h>

static int64_t to_bound(rs_wide x)
{
	return x >= RS_INF ? RS_INF : x <= -RS_INF ? -RS_INF : (int64_t)x;
}

static int64_t floor64(int64_t a, int64_t b)
{
	if (a >= RS_INF || a <= -RS_INF)
		return a;
	return a / b - (a % b < 0);
}

static struct rs_range type_range(unsigned how)
{
	switch (how) {
	case RS_AFF_S32:
		return (struct rs_range){INT32_MIN, INT32_MAX};
	case RS_AFF_U32:
		return (struct rs_range){0, UINT32_MAX};
	case RS_AFF_U64:
		return (struct rs_range){0, RS_INF};
	default:
		return (struct rs_range){-RS_INF, RS_INF};
	}
}

/* Range of a register's integer read as `how`; 0 if the integer may lie outside and wrap. */
static int read_as(struct rs_launch_eval *e, const struct rs_aff_poly *p, unsigned how,
		   struct rs_range *r)
{
	struct rs_range type = type_range(how);
	struct rs_form f;

	rs_form_of(e, p, &f);
	r->lo = to_bound(rs_form_inf(e, &f));
	r->hi = to_bound(rs_form_sup(e, &f));
	if (how == RS_AFF_MODULAR)
		return 1;
	if (r->lo >= type.lo && r->hi <= type.hi && r->lo > -RS_INF && r->hi < RS_INF)
		return 1;
	*r = type;
	return 0;
}

static int64_t magic_divisor(int64_t m, unsigned shift, int64_t max)
{
	rs_wide one = (rs_wide)1 << shift, d, err;

	if (m <= 0 || max < 0 || max >= RS_INF)
		return 0;
	d = (one + m - 1) / m;
	err = d * m - one;
	/* floor(x * m / 2^s) = floor(x / d) while the error stays below one part in d */
	return d < INT32_MAX && err * max < one ? (int64_t)d : 0;
}

static void eval_magic(struct rs_launch_eval *e, uint16_t id, const struct rs_bound_atom *a)
{
	unsigned shift = (unsigned)a->b & ~RS_AFF_HIGH;
	struct rs_range x, type = type_range(a->how);
	rs_wide lo, hi, one = (rs_wide)1 << shift;
	int ok;

	if (a->b & RS_AFF_HIGH) {
		ok = read_as(e, a->arg[0], a->how, &x);
	} else {
		read_as(e, a->arg[0], RS_AFF_MODULAR, &x);
		ok = x.lo > -RS_INF && x.hi < RS_INF && (rs_wide)x.lo * a->a >= type.lo &&
		     (rs_wide)x.hi * a->a <= type.hi;
	}
	lo = (rs_wide)(a->a > 0 ? x.lo : x.hi) * a->a;
	hi = (rs_wide)(a->a > 0 ? x.hi : x.lo) * a->a;
	if (!ok && !(a->b & RS_AFF_HIGH)) {
		lo = type.lo;
		hi = type.hi;
	}
	e->range[id].lo = to_bound(lo / one - (lo % one < 0));
	e->range[id].hi = to_bound(hi / one - (hi % one < 0));
	if (ok && x.lo >= 0)
		e->divisor[id] = magic_divisor(a->a, shift, x.hi);
}

static void eval_trunc(struct rs_launch_eval *e, uint16_t id, const struct rs_bound_atom *a)
{
	struct rs_range x, d, *r = &e->range[id];
	int ok = read_as(e, a->arg[0], a->how, &x) & read_as(e, a->arg[1], a->how, &d);

	*r = type_range(a->how);
	if (!ok || (d.lo <= 0 && d.hi >= 0))
		return;
	if (d.lo > 0 && x.lo >= 0) {
		r->lo = x.lo / d.hi;
		r->hi = x.hi / d.lo;
		if (d.lo == d.hi)
			e->divisor[id] = d.lo;
	} else {
		int64_t m = -x.lo > x.hi ? -x.lo : x.hi;

		r->lo = -m;
		r->hi = m;
		if (x.lo == x.hi && d.lo == d.hi)
			r->lo = r->hi = x.lo / d.lo;
	}
}

static void eval_min_max(struct rs_launch_eval *e, uint16_t id, const struct rs_bound_atom *a)
{
	struct rs_range x, y, *r = &e->range[id];
	int max = a->kind == RS_AFF_MAX;

	e->valid[id] = read_as(e, a->arg[0], a->how, &x) & read_as(e, a->arg[1], a->how, &y);
	r->lo = (x.lo < y.lo) != max ? x.lo : y.lo;
	r->hi = (x.hi < y.hi) != max ? x.hi : y.hi;
}

static void eval_bits(struct rs_launch_eval *e, uint16_t id, const struct rs_bound_atom *a)
{
	struct rs_range x, y, *r = &e->range[id];
	int64_t max;

	read_as(e, a->arg[0], a->how, &x);
	read_as(e, a->arg[1], a->how, &y);
	if (x.lo == x.hi && y.lo == y.hi) {
		r->lo = a->kind == RS_AFF_AND  ? x.lo & y.lo
			: a->kind == RS_AFF_OR ? x.lo | y.lo
					       : x.lo ^ y.lo;
		r->hi = r->lo;
		return;
	}
	r->lo = 0;
	max = x.hi > y.hi ? x.hi : y.hi;
	if (a->kind == RS_AFF_AND)
		r->hi = x.hi < y.hi ? x.hi : y.hi;
	else
		r->hi = max >= RS_INF ? RS_INF
			: max ? (int64_t)(((uint64_t)2 << (63 - __builtin_clzll((uint64_t)max))) -
					  1)
			      : 0;
}

static void eval_shift(struct rs_launch_eval *e, uint16_t id, const struct rs_bound_atom *a)
{
	unsigned width = a->how == RS_AFF_S32 || a->how == RS_AFF_U32 ? 32 : 64;
	struct rs_range x, by, *r = &e->range[id];
	int ok = read_as(e, a->arg[0], a->how, &x);

	*r = type_range(a->how);
	if (a->kind == RS_AFF_SHL && width == 32)
		*r = type_range(RS_AFF_MODULAR);
	if (!read_as(e, a->arg[1], RS_AFF_U32, &by) || by.hi >= width || x.lo < 0 || !ok)
		return;
	if (a->kind == RS_AFF_SHR) {
		r->lo = x.lo >> by.hi;
		r->hi = x.hi >= RS_INF ? RS_INF : x.hi >> by.lo;
	} else if (by.hi < 60) {
		r->lo = to_bound((rs_wide)x.lo << by.lo);
		r->hi = to_bound((rs_wide)x.hi << by.hi);
	}
}

static void eval_choice(struct rs_launch_eval *e, uint16_t id, const struct rs_bound_atom *a)
{
	for (unsigned i = 0; i < a->nargs; i++) {
		struct rs_range x;

		read_as(e, a->arg[i], RS_AFF_MODULAR, &x);
		if (!i || x.lo < e->range[id].lo)
			e->range[id].lo = x.lo;
		if (!i || x.hi > e->range[id].hi)
			e->range[id].hi = x.hi;
	}
}

static void eval_param(struct rs_launch_eval *e, uint16_t id, const struct rs_bound_atom *a)
{
	unsigned bytes = (unsigned)(a->b < 0 ? -a->b : a->b);
	uint64_t v = 0;
	int64_t s;

	if ((uint64_t)a->a + bytes > e->launch->nparams_bytes)
		return;
	for (unsigned i = 0; i < bytes; i++)
		v |= (uint64_t)e->launch->params[a->a + i] << 8 * i;
	s = (int64_t)v;
	if (a->b > 0 && bytes < 8)
		s = (int64_t)(v << (64 - 8 * bytes)) >> (64 - 8 * bytes);
	/* Numbers as large as that are not followed; device addresses are far smaller. */
	if (s < RS_INF && s > -RS_INF)
		e->range[id] = (struct rs_range){s, s};
}

/* The last iteration number, as far as one comparison of the loop's test bounds it; -1: not. */
static int64_t last_iteration(struct rs_launch_eval *e, uint16_t t, const struct rs_bound_cmp *c,
			      int *point)
{
	struct rs_form a, b, d;
	int64_t k, lo;
	int swap = c->cmp == RS_CMP_GT || c->cmp == RS_CMP_GE;

	rs_form_of(e, swap ? c->b : c->a, &a);
	rs_form_of(e, swap ? c->a : c->b, &b);
	d = a;
	rs_form_add(&d, &b, -1);
	if (c->cmp == RS_CMP_LT || c->cmp == RS_CMP_GT) {
		d.lo++;
		d.hi++;
	}
	k = rs_form_coef(&d, t);
	for (unsigned i = 0; i < d.n; i++)
		if (d.t[i].atom == t)
			d.t[i] = d.t[--d.n];
	lo = to_bound(rs_form_inf(e, &d));
	*point = !d.n && d.lo == d.hi;
	if (d.bad || lo <= -RS_INF || lo >= RS_INF || c->cmp == RS_CMP_EQ)
		return -1;
	if (c->cmp == RS_CMP_NE) {
		if (!*point || !k || lo % k || -lo / k < 0)
			return -1;
		return -lo / k;
	}
	if (k < 0 || (!k && lo <= 0))
		return -1;
	return lo > 0 ? 0 : -lo / k + 1;
}

static int within(const struct rs_launch_eval *e, const struct rs_aff_poly *p, rs_wide lo,
		  rs_wide hi)
{
	struct rs_form f;

	rs_form_of(e, p, &f);
	return rs_form_box(e, &f, 0) >= lo && rs_form_box(e, &f, 1) <= hi;
}

/* With the loop's range set: do the registers compared hold their integers? */
static int honest(const struct rs_launch_eval *e, const struct rs_bound_cmp *c)
{
	rs_wide half = c->a->width == 32 ? (rs_wide)1 << 31 : (rs_wide)RS_INF;
	int swap = c->cmp == RS_CMP_GT || c->cmp == RS_CMP_GE;
	const struct rs_aff_poly *l = swap ? c->b : c->a, *r = swap ? c->a : c->b;

	for (unsigned i = 0; i < c->nneeds; i++)
		if (!within(e, c->needs[i]->p, c->needs[i]->lo, c->needs[i]->hi))
			return 0;
	if (c->cmp == RS_CMP_NE || !c->is_unsigned)
		return within(e, c->a, -half, half - 1) && within(e, c->b, -half, half - 1);
	if (within(e, r, 0, half) && within(e, l, -half, half - 1))
		return 1;
	return c->a->width == 32 && within(e, l, 0, UINT32_MAX) && within(e, r, 0, UINT32_MAX);
}

static void eval_loop(struct rs_launch_eval *e, uint16_t id, const struct rs_bound_atom *a)
{
	int64_t best = RS_INF;
	int whole = 0;

	for (unsigned i = 0; i < a->ntests; i++)
		for (unsigned j = 0; j < a->tests[i].ncmps; j++) {
			const struct rs_bound_cmp *c = &a->tests[i].cmps[j];
			int64_t last;
			int point;

			e->range[id] = (struct rs_range){0, RS_INF};
			last = last_iteration(e, id, c, &point);
			if (last < 0 || last >= (int64_t)1 << 40)
				continue;
			/* Two values, lest the index be folded away as a constant. */
			e->range[id].hi = last ? last : 1;
			if (!honest(e, c) || last > best)
				continue;
			best = last;
			whole = point && a->single && a->ntests == 1 && a->tests[0].ncmps == 1 &&
				a->tests[0].exact;
		}
	e->range[id] = (struct rs_range){0, best};
	e->whole[id] = (uint8_t)whole;
}

/* What the launch itself says. */
static void eval_leaf(struct rs_launch_eval *e, uint16_t id, const struct rs_bound_atom *a)
{
	struct rs_range *r = &e->range[id];

	switch (a->kind) {
	case RS_AFF_PARAM:
		eval_param(e, id, a);
		break;
	case RS_AFF_NTID:
		r->lo = r->hi = e->launch->block[a->a];
		break;
	case RS_AFF_NCTAID:
		r->lo = r->hi = e->launch->grid[a->a];
		break;
	case RS_AFF_TID:
		*r = (struct rs_range){0, (int64_t)e->launch->block[a->a] - 1};
		break;
	case RS_AFF_CTAID:
		*r = (struct rs_range){0, (int64_t)e->launch->grid[a->a] - 1};
		break;
	default:
		break;
	}
}

void rs_launch_atom(struct rs_launch_eval *e, uint16_t id)
{
	const struct rs_bound_atom *a = &e->b->atoms[id];
	struct rs_range x, *r = &e->range[id];

	switch (a->kind) {
	case RS_AFF_LOOP:
		eval_loop(e, id, a);
		break;
	case RS_AFF_UNKNOWN:
		*r = (struct rs_range){to_bound(a->lo), to_bound(a->hi)};
		break;
	case RS_AFF_CHOICE:
		eval_choice(e, id, a);
		break;
	case RS_AFF_FLOOR:
		if (read_as(e, a->arg[0], a->how, &x))
			e->divisor[id] = a->b;
		*r = (struct rs_range){floor64(x.lo, a->b), floor64(x.hi, a->b)};
		break;
	case RS_AFF_MAGIC:
		eval_magic(e, id, a);
		break;
	case RS_AFF_TRUNC:
		eval_trunc(e, id, a);
		break;
	case RS_AFF_MIN:
	case RS_AFF_MAX:
		eval_min_max(e, id, a);
		break;
	case RS_AFF_AND:
	case RS_AFF_OR:
	case RS_AFF_XOR:
		eval_bits(e, id, a);
		break;
	case RS_AFF_SHL:
	case RS_AFF_SHR:
		eval_shift(e, id, a);
		break;
	case RS_AFF_EXTEND:
		e->valid[id] = (uint8_t)read_as(e, a->arg[0], a->how, r);
		break;
	case RS_AFF_ABS:
		if (read_as(e, a->arg[0], a->how, &x) && x.lo > -RS_INF)
			*r = (struct rs_range){0, -x.lo > x.hi ? -x.lo : x.hi};
		break;
	default:
		eval_leaf(e, id, a);
		break;
	}
	e->vague[id] = a->kind > RS_AFF_LOOP && (rs_wide)r->hi - r->lo >= INT32_MAX;
}
