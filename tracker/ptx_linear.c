/* SPDX-License-Identifier: MIT */
/*
 * Linear forms over ranged atoms at one launch, and their extremes under linear constraints.
 *
 * sup(f) subject to d_j <= 0 is bounded by the box maximum of m * f - k * d_j (over m) for any
 * k, m > 0; the multipliers are chosen greedily so that a term cancels. Every step is a valid bound,
 * so the order of trying does not matter for soundness.
 * Callers: rs_ptx_access_eval and its parts; no locks, no memory.
 */
#include "tracker/ptx_bounds.h"

#include <string.h>

#define CLAMP ((rs_wide)1 << 100)

static rs_wide clamp(rs_wide x)
{
	return x > CLAMP ? CLAMP : x < -CLAMP ? -CLAMP : x;
}

static rs_wide times(int64_t bound, int64_t coef)
{
	if (bound >= RS_INF)
		return coef > 0 ? CLAMP : coef < 0 ? -CLAMP : 0;
	if (bound <= -RS_INF)
		return coef > 0 ? -CLAMP : coef < 0 ? CLAMP : 0;
	return clamp((rs_wide)bound * coef);
}

int64_t rs_form_coef(const struct rs_form *f, uint16_t atom)
{
	for (unsigned i = 0; i < f->n; i++)
		if (f->t[i].atom == atom)
			return f->t[i].coef;
	return 0;
}

static void add_term(struct rs_form *f, uint16_t atom, int64_t coef)
{
	for (unsigned i = 0; i < f->n; i++) {
		if (f->t[i].atom != atom)
			continue;
		if (__builtin_add_overflow(f->t[i].coef, coef, &f->t[i].coef))
			f->bad = 1;
		if (!f->t[i].coef)
			f->t[i] = f->t[--f->n];
		return;
	}
	if (!coef)
		return;
	if (f->n == RS_FORM_TERMS) {
		f->bad = 1;
		return;
	}
	f->t[f->n++] = (struct rs_form_term){atom, coef};
}

void rs_form_add(struct rs_form *f, const struct rs_form *g, int64_t k)
{
	rs_wide lo = k > 0 ? g->lo : g->hi, hi = k > 0 ? g->hi : g->lo;

	if (lo > INT64_MAX || lo < INT64_MIN || hi > INT64_MAX || hi < INT64_MIN || g->bad) {
		f->bad = 1;
		return;
	}
	f->lo = clamp(f->lo + lo * k);
	f->hi = clamp(f->hi + hi * k);
	for (unsigned i = 0; i < g->n; i++) {
		int64_t c;

		if (__builtin_mul_overflow(g->t[i].coef, k, &c))
			f->bad = 1;
		else
			add_term(f, g->t[i].atom, c);
	}
}

/* A product of two or more ranged atoms: only its interval. */
static void add_product(const struct rs_launch_eval *e, struct rs_form *f, int64_t coef,
			const uint16_t *atoms, unsigned n)
{
	rs_wide lo = coef, hi = coef;

	for (unsigned i = 0; i < n; i++) {
		const struct rs_range *r = &e->range[atoms[i]];
		rs_wide c[4];

		if (lo > INT64_MAX || lo < INT64_MIN || hi > INT64_MAX || hi < INT64_MIN) {
			f->bad = 1;
			return;
		}
		c[0] = times(r->lo, (int64_t)lo);
		c[1] = times(r->lo, (int64_t)hi);
		c[2] = times(r->hi, (int64_t)lo);
		c[3] = times(r->hi, (int64_t)hi);
		lo = hi = c[0];
		for (unsigned j = 1; j < 4; j++) {
			lo = c[j] < lo ? c[j] : lo;
			hi = c[j] > hi ? c[j] : hi;
		}
	}
	f->lo = clamp(f->lo + lo);
	f->hi = clamp(f->hi + hi);
}

void rs_form_of(const struct rs_launch_eval *e, const struct rs_aff_poly *p, struct rs_form *f)
{
	f->lo = f->hi = p->c;
	f->n = f->bad = 0;
	for (unsigned i = 0; i < p->n; i++) {
		const struct rs_aff_term *t = &p->t[i];
		uint16_t ranged[RS_AFF_DEGREE];
		int64_t coef = t->coef;
		unsigned n = 0;

		for (unsigned d = 0; d < RS_AFF_DEGREE && t->atom[d]; d++) {
			const struct rs_range *r = &e->range[t->atom[d]];

			if (r->lo != r->hi)
				ranged[n++] = t->atom[d];
			else if (__builtin_mul_overflow(coef, r->lo, &coef))
				f->bad = 1;
		}
		if (!n) {
			f->lo = clamp(f->lo + coef);
			f->hi = clamp(f->hi + coef);
		}
		if (n > 1) {
			add_product(e, f, coef, ranged, n);
		} else if (n == 1) {
			const struct rs_bound_atom *a = &e->b->atoms[ranged[0]];
			struct rs_form g;

			/* A widening that keeps the integer is that integer. */
			if (a->kind == RS_AFF_EXTEND && e->valid[ranged[0]]) {
				rs_form_of(e, a->arg[0], &g);
				rs_form_add(f, &g, coef);
			} else {
				add_term(f, ranged[0], coef);
			}
		}
	}
}

rs_wide rs_form_box(const struct rs_launch_eval *e, const struct rs_form *f, int upper)
{
	rs_wide x = upper ? f->hi : f->lo;

	if (f->bad)
		return upper ? CLAMP : -CLAMP;
	for (unsigned i = 0; i < f->n; i++) {
		const struct rs_range *r = &e->range[f->t[i].atom];

		if (e->strict && e->vague[f->t[i].atom])
			return upper ? CLAMP : -CLAMP;
		x += times((f->t[i].coef > 0) == !!upper ? r->hi : r->lo, f->t[i].coef);
	}
	return clamp(x);
}

static rs_wide floor_div(rs_wide a, rs_wide b)
{
	return a / b - (a % b < 0);
}

static int64_t gcd(int64_t a, int64_t b)
{
	a = a < 0 ? -a : a;
	b = b < 0 ? -b : b;
	while (b) {
		int64_t t = a % b;

		a = b;
		b = t;
	}
	return a;
}

/* f := m * f - k * d so that `atom` cancels; returns m, or 0 if that is not possible. */
static int64_t eliminate(struct rs_form *f, const struct rs_form *d, uint16_t atom)
{
	int64_t cf = rs_form_coef(f, atom), cd = rs_form_coef(d, atom), g, m, k;
	struct rs_form out = {0};

	if (!cf || !cd || (cf > 0) != (cd > 0) || cf == INT64_MIN || cd == INT64_MIN)
		return 0;
	g = gcd(cf, cd);
	m = (cd > 0 ? cd : -cd) / g;
	k = (cf > 0 ? cf : -cf) / g;
	if (m > 1 << 20)
		return 0;
	rs_form_add(&out, f, m);
	rs_form_add(&out, d, -k);
	if (out.bad)
		return 0;
	*f = out;
	return m;
}

static rs_wide scaled_box(const struct rs_launch_eval *e, const struct rs_form *f, int64_t m)
{
	rs_wide x = rs_form_box(e, f, 1);

	return x >= RS_WIDE_INF ? x : floor_div(x, m);
}

/* Improve the bound by one constraint after the other, best first, while it helps. */
static rs_wide greedy(struct rs_launch_eval *e, const struct rs_form *start, int64_t scale,
		      const struct rs_form_cons *cons, unsigned ncons)
{
	struct rs_form cur = *start;
	rs_wide best = scaled_box(e, &cur, scale);

	for (unsigned pass = 0; pass < 4; pass++) {
		struct rs_form next = cur;
		int64_t next_scale = 0;

		for (unsigned j = 0; j < ncons; j++)
			for (unsigned i = 0; i < cons[j].d.n; i++) {
				struct rs_form f = cur;
				int64_t m;
				rs_wide x;

				if (!rs_form_coef(&f, cons[j].d.t[i].atom))
					continue;
				if (!e->budget)
					return best;
				e->budget--;
				m = eliminate(&f, &cons[j].d, cons[j].d.t[i].atom);
				if (!m || m * scale > 1 << 20)
					continue;
				x = scaled_box(e, &f, m * scale);
				if (x < best) {
					best = x;
					next = f;
					next_scale = m * scale;
				}
			}
		if (!next_scale)
			break;
		cur = next;
		scale = next_scale;
	}
	return best;
}

/* Linear facts about the operation behind an atom of a form. */
static unsigned relations(const struct rs_launch_eval *e, uint16_t atom, struct rs_form_cons *out)
{
	const struct rs_bound_atom *a = &e->b->atoms[atom];
	struct rs_form x, q = {.n = 1};
	int64_t d = e->divisor[atom];

	if (!d && !e->valid[atom])
		return 0;
	q.t[0] = (struct rs_form_term){atom, 1};
	switch (a->kind) {
	case RS_AFF_MIN:
	case RS_AFF_MAX:
		for (unsigned i = 0; i < 2; i++) {
			int sign = a->kind == RS_AFF_MIN ? 1 : -1;

			memset(&out[i], 0, sizeof(out[i]));
			rs_form_of(e, a->arg[i], &x);
			rs_form_add(&out[i].d, &q, sign);
			rs_form_add(&out[i].d, &x, -sign);
		}
		return 2;
	default:
		break;
	}
	if (d <= 0)
		return 0;
	rs_form_of(e, a->arg[0], &x);
	memset(out, 0, 2 * sizeof(*out));
	rs_form_add(&out[0].d, &q, d); /* d * q - x <= 0 */
	rs_form_add(&out[0].d, &x, -1);
	rs_form_add(&out[1].d, &x, 1); /* x - d * q - (d - 1) <= 0 */
	rs_form_add(&out[1].d, &q, -d);
	out[1].d.lo -= d - 1;
	out[1].d.hi -= d - 1;
	return out[0].d.bad || out[1].d.bad ? 0 : 2;
}

/* The greatest value up to x that the form can take: it moves in steps of its coefficients. */
static rs_wide round_down(const struct rs_form *f, rs_wide x)
{
	int64_t g = 0;

	for (unsigned i = 0; i < f->n; i++)
		g = gcd(g, f->t[i].coef);
	return g > 1 && f->lo == f->hi && x < RS_WIDE_INF ? f->lo + floor_div(x - f->lo, g) * g : x;
}

rs_wide rs_form_sup(struct rs_launch_eval *e, const struct rs_form *f)
{
	struct rs_form_cons all[RS_FORM_CONS + 12];
	unsigned n = e->ncons, nrel = 0;
	rs_wide best;

	for (unsigned i = 0; i < f->n && nrel <= 8; i++)
		nrel += relations(e, f->t[i].atom, &all[n + nrel]);
	if (!n && !nrel)
		return rs_form_box(e, f, 1);
	memcpy(all, e->cons, n * sizeof(*all));
	best = greedy(e, f, 1, all, n + nrel);
	/* Going through an operation's argument may pay only after another step. */
	for (unsigned j = n; j < n + nrel; j++)
		for (unsigned i = 0; i < f->n; i++) {
			struct rs_form g = *f;
			int64_t m = eliminate(&g, &all[j].d, f->t[i].atom);
			rs_wide x = m ? greedy(e, &g, m, all, n + nrel) : best;

			best = x < best ? x : best;
		}
	return round_down(f, best);
}

rs_wide rs_form_inf(struct rs_launch_eval *e, const struct rs_form *f)
{
	struct rs_form neg = {0};

	rs_form_add(&neg, f, -1);
	return -rs_form_sup(e, &neg);
}
