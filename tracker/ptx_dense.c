/* SPDX-License-Identifier: MIT */
/*
 * Is an interval written without a hole? A mixed radix argument on exact sets.
 *
 * The access happens for exactly those values of thread, block and loop indices that satisfy the
 * chain's constraints, and the set of offsets is the image of that set under a linear form. It is
 * rewritten as a sum of independent digits s * [0, n), which tile an interval if, taken by growing
 * stride, no stride exceeds what the smaller ones fill:
 *   - a constraint on one index cuts that index;
 *   - a constraint on a combination that itself counts 0..N without holes (i = ctaid * ntid + tid
 *     < n) makes the combination one digit, if the form uses the indices only through it;
 *   - a quotient of such a combination by a constant splits it into digits.
 * Anything else: not proved.
 * Callers: rs_ptx_access_eval. No locks, no memory.
 */
#include "tracker/ptx_bounds.h"

#include <string.h>

#define MAX_CUTS   24
#define MAX_DIGITS 32

struct digit {
	int64_t stride, count;
};

struct cut {
	uint16_t atom;
	uint8_t limited; /* a constraint bounds it from above */
	uint8_t spent;	 /* now part of a digit */
	int64_t lo, hi;
};

struct dense {
	const struct rs_launch_eval *e;
	struct rs_form f;
	struct cut cut[MAX_CUTS];
	unsigned ncuts;
	struct digit digit[MAX_DIGITS];
	unsigned ndigits;
};

static struct cut *cut_of(struct dense *d, uint16_t atom)
{
	const struct rs_range *r = &d->e->range[atom];

	for (unsigned i = 0; i < d->ncuts; i++)
		if (d->cut[i].atom == atom)
			return &d->cut[i];
	if (d->ncuts == MAX_CUTS)
		return NULL;
	d->cut[d->ncuts] = (struct cut){.atom = atom, .lo = r->lo, .hi = r->hi};
	return &d->cut[d->ncuts++];
}

static int is_around(const struct dense *d, uint16_t loop)
{
	const struct rs_bound_context *c = d->e->context;

	for (unsigned i = 0; i < c->nrounds; i++)
		if (c->rounds[i].atom == loop)
			return 1;
	return 0;
}

/*
 * Does the index take every value of its range, independently of the others? A loop that is over
 * has left its last value only.
 */
static int is_index(const struct dense *d, uint16_t atom)
{
	unsigned kind = d->e->b->atoms[atom].kind;

	return kind == RS_AFF_TID || kind == RS_AFF_CTAID ||
	       (kind == RS_AFF_LOOP && is_around(d, atom));
}

/* Loops that are over, where all threads made the same number of rounds: a constant. */
static void settle_past_loops(struct dense *d)
{
	for (unsigned i = 0; i < d->f.n;) {
		uint16_t atom = d->f.t[i].atom;

		if (d->e->b->atoms[atom].kind != RS_AFF_LOOP || is_around(d, atom) ||
		    !d->e->whole[atom]) {
			i++;
			continue;
		}
		d->f.lo += (rs_wide)d->f.t[i].coef * d->e->range[atom].hi;
		d->f.t[i] = d->f.t[--d->f.n];
	}
}

static int push_digit(struct dense *d, int64_t stride, int64_t count)
{
	if (count < 1 || d->ndigits == MAX_DIGITS)
		return 0;
	if (stride < 0) { /* count downwards: start at the other end */
		int64_t low;

		if (__builtin_mul_overflow(stride, count - 1, &low))
			return 0;
		d->f.lo += low;
		stride = -stride;
	}
	if (stride && count > 1)
		d->digit[d->ndigits++] = (struct digit){stride, count};
	return 1;
}

/* Bytes (or steps) filled from 0 by digits on top of `unit`; 0 if there is a hole. */
static int64_t fill(const struct digit *digit, unsigned n, int64_t unit)
{
	uint64_t used = 0;
	int64_t s = unit;

	for (unsigned k = 0; k < n; k++) {
		unsigned best = MAX_DIGITS;
		int64_t more;

		for (unsigned i = 0; i < n; i++)
			if (!(used >> i & 1) &&
			    (best == MAX_DIGITS || digit[i].stride < digit[best].stride))
				best = i;
		used |= (uint64_t)1 << best;
		if (digit[best].stride > s ||
		    __builtin_mul_overflow(digit[best].stride, digit[best].count - 1, &more) ||
		    __builtin_add_overflow(s, more, &s))
			return 0;
	}
	return s;
}

/* Number of values of x = sum c_i * a_i (c_i > 0) if it counts 0, 1, ... without holes; else 0. */
static int64_t counts(struct dense *d, const struct rs_form *x, int64_t scale)
{
	struct digit digit[RS_FORM_TERMS];

	for (unsigned i = 0; i < x->n; i++) {
		const struct cut *c = cut_of(d, x->t[i].atom);

		if (!c || c->spent || c->lo || c->hi >= RS_INF || x->t[i].coef % scale ||
		    !is_index(d, x->t[i].atom))
			return 0;
		digit[i] = (struct digit){x->t[i].coef / scale, c->hi + 1};
		if (digit[i].stride <= 0)
			return 0;
	}
	return fill(digit, x->n, 1);
}

/* k with form = k * x / scale on x's atoms; sets *ok. The atoms then leave the form and are spent. */
static int64_t take_out(struct dense *d, const struct rs_form *x, int64_t scale, int *ok)
{
	int64_t k = 0;

	*ok = x->n > 0;
	for (unsigned i = 0; i < x->n && *ok; i++) {
		int64_t c = rs_form_coef(&d->f, x->t[i].atom), unit = x->t[i].coef / scale;

		if (c % unit || (i && c / unit != k))
			*ok = 0;
		k = c / unit;
	}
	for (unsigned i = 0; i < x->n && *ok; i++) {
		struct rs_form one = {.n = 1};
		struct cut *c = cut_of(d, x->t[i].atom);

		one.t[0] = (struct rs_form_term){x->t[i].atom, 1};
		rs_form_add(&d->f, &one, -rs_form_coef(&d->f, x->t[i].atom));
		c->spent = 1;
	}
	return k;
}

/* c * a + rest <= 0 with one atom. */
static int cut_one(struct dense *d, const struct rs_form *g)
{
	struct cut *c = cut_of(d, g->t[0].atom);
	int64_t k = g->t[0].coef;
	rs_wide lim = g->hi;

	if (!c || c->spent || g->lo != g->hi || !is_index(d, g->t[0].atom))
		return 0;
	if (k > 0) { /* a <= floor(-lim / k) */
		rs_wide v = -lim / k - (-lim % k < 0);

		c->limited = 1;
		if (v < c->hi)
			c->hi = v < -1 ? -1 : (int64_t)v;
	} else { /* a >= ceil(lim / -k) */
		rs_wide v = lim / -k + (lim % -k > 0);

		if (v > c->lo)
			c->lo = v > RS_INF ? RS_INF : (int64_t)v;
	}
	return c->lo <= c->hi;
}

static int64_t common(const struct rs_form *g)
{
	int64_t m = 0;

	for (unsigned i = 0; i < g->n; i++) {
		int64_t a = g->t[i].coef < 0 ? -g->t[i].coef : g->t[i].coef;

		while (a) {
			int64_t t = m % a;

			m = a;
			a = t;
		}
	}
	return m;
}

static int proportional(const struct rs_form *a, const struct rs_form *b, int64_t sa, int64_t sb)
{
	if (a->n != b->n)
		return 0;
	for (unsigned i = 0; i < a->n; i++)
		if (rs_form_coef(b, a->t[i].atom) / sb != a->t[i].coef / sa)
			return 0;
	return 1;
}

/*
 * A constraint on a combination, and all others on the same one: lo <= C <= hi becomes one digit.
 * `done` marks constraints that were used.
 */
static int cut_many(struct dense *d, const struct rs_form_cons *cons, unsigned n, unsigned at,
		    uint32_t *done)
{
	struct rs_form x = cons[at].d;
	int64_t scale = common(&x), count, lo = 0, hi, k;
	int ok;

	if (x.t[0].coef < 0)
		scale = -scale;
	count = counts(d, &x, scale);
	if (!count)
		return 0;
	hi = count - 1;
	for (unsigned j = 0; j < n; j++) {
		const struct rs_form *g = &cons[j].d;
		int64_t s = common(g);
		rs_wide v;

		if (*done >> j & 1 || g->n < 2)
			continue;
		if (g->t[0].coef < 0)
			s = -s;
		if (!proportional(&x, g, scale, s))
			continue;
		if (g->lo != g->hi)
			return 0;
		*done |= 1u << j;
		if (s > 0) {
			v = -g->lo / s - (-g->lo % s < 0);
			hi = v < hi ? (v < -1 ? -1 : (int64_t)v) : hi;
		} else {
			v = g->lo / -s + (g->lo % -s > 0);
			lo = v > lo ? (v > RS_INF ? RS_INF : (int64_t)v) : lo;
		}
	}
	if (lo > hi)
		return 0;
	k = take_out(d, &x, scale, &ok);
	if (!ok)
		return 0;
	d->f.lo += (rs_wide)k * lo;
	return push_digit(d, k, hi - lo + 1);
}

static int apply_constraints(struct dense *d)
{
	const struct rs_launch_eval *e = d->e;
	uint32_t done = 0;

	_Static_assert(RS_FORM_CONS <= 32, "constraints are marked in 32 bits");
	for (unsigned i = 0; i < e->ncons; i++) {
		const struct rs_form *g = &e->cons[i].d;

		/* Conditions that always hold where the access is need not be exact. */
		if (!e->cons[i].chain || rs_form_box(e, g, 1) <= 0) {
			done |= 1u << i;
			if (e->cons[i].chain && g->n == 1 && cut_of(d, g->t[0].atom) &&
			    g->t[0].coef > 0)
				cut_of(d, g->t[0].atom)->limited = 1;
			continue;
		}
		if (!g->n)
			return 0; /* never true */
		if (g->n == 1) {
			done |= 1u << i;
			if (!cut_one(d, g))
				return 0;
		}
	}
	for (unsigned i = 0; i < e->ncons; i++)
		if (!(done >> i & 1) && !cut_many(d, e->cons, e->ncons, i, &done))
			return 0;
	return 1;
}

static int same_argument(const struct dense *d, uint16_t a, uint16_t b)
{
	const struct rs_bound_atom *x = &d->e->b->atoms[a], *y = &d->e->b->atoms[b];

	return x->arg[0] == y->arg[0] || rs_aff_equal(x->arg[0], y->arg[0]);
}

/* Quotients of one combination x by d_1 | d_2 | ...: x and they are sums of the digits between. */
static int split_quotients(struct dense *d, uint16_t first)
{
	uint16_t q[8];
	int64_t div[9], beta[8], alpha, n, weight = 1;
	unsigned nq = 0;
	struct rs_form x;
	int ok;

	for (unsigned i = 0; i < d->f.n; i++) {
		uint16_t atom = d->f.t[i].atom;
		int64_t v = d->e->divisor[atom];
		unsigned j = nq;

		if (!v || !same_argument(d, atom, first))
			continue;
		if (nq == 8)
			return 0;
		for (; j && div[j - 1] > v; j--) {
			div[j] = div[j - 1];
			q[j] = q[j - 1];
			beta[j] = beta[j - 1];
		}
		div[j] = v;
		q[j] = atom;
		beta[j] = d->f.t[i].coef;
		nq++;
	}
	rs_form_of(d->e, d->e->b->atoms[first].arg[0], &x);
	if (x.bad || x.lo || x.hi || !nq)
		return 0;
	n = counts(d, &x, 1);
	if (!n || n % div[nq - 1])
		return 0;
	alpha = take_out(d, &x, 1, &ok);
	if (!ok)
		return 0;
	for (unsigned j = 0; j < nq; j++) {
		struct rs_form one = {.n = 1};

		if (div[j] % weight)
			return 0;
		weight = div[j];
		one.t[0] = (struct rs_form_term){q[j], 1};
		rs_form_add(&d->f, &one, -beta[j]);
	}
	div[nq] = n;
	weight = 1;
	for (unsigned j = 0; j <= nq; j++) { /* the digit of weight `weight` in x */
		int64_t stride = alpha * weight;

		for (unsigned k = 0; k < j; k++)
			stride += beta[k] * (weight / div[k]);
		if (!push_digit(d, stride, div[j] / weight))
			return 0;
		weight = div[j];
	}
	return 1;
}

/* Offsets of several stores as digits on top of the first one's bytes; returns its length or 0. */
static int64_t split_runs(struct dense *d, const struct rs_bound_run *r, unsigned n)
{
	unsigned block = 1; /* runs of a pattern already taken */

	for (unsigned i = 1; i < n; i++)
		if (r[i].bytes != r[0].bytes)
			return 0;
	while (block < n) {
		int64_t stride = r[block].offset - r[0].offset;
		unsigned k = 1;

		while ((k + 1) * block <= n && r[k * block].offset == r[0].offset + stride * k)
			k++;
		if (k < 2 || n % (k * block))
			return 0;
		/* Every repetition must look like the first. */
		for (unsigned i = 0; i < n; i++) {
			unsigned base = i - i % (k * block), in = i % (k * block);

			if (r[i].offset - r[base].offset != r[in].offset - r[0].offset)
				return 0;
		}
		for (unsigned i = 0; i < k * block; i++)
			if (r[i].offset != r[i % block].offset + stride * (i / block))
				return 0;
		if (!push_digit(d, stride, k))
			return 0;
		block *= k;
	}
	return r[0].bytes;
}

int rs_dense(const struct rs_launch_eval *e, const struct rs_form *f,
	     const struct rs_bound_run *runs, unsigned nruns, int64_t *ret_lo, int64_t *ret_hi)
{
	struct dense d = {.e = e, .f = *f};
	int64_t unit, size;
	rs_wide lo;

	settle_past_loops(&d);
	if (!apply_constraints(&d))
		return 0;
	for (unsigned i = 0; i < d.f.n;) {
		if (!e->divisor[d.f.t[i].atom]) {
			i++;
			continue;
		}
		if (!split_quotients(&d, d.f.t[i].atom))
			return 0;
		i = 0;
	}
	for (unsigned i = 0; i < d.f.n; i++) {
		uint16_t atom = d.f.t[i].atom;
		const struct cut *c = cut_of(&d, atom);

		if (!c || c->spent || !is_index(&d, atom) || c->hi >= RS_INF ||
		    (e->b->atoms[atom].kind == RS_AFF_LOOP && !e->whole[atom] && !c->limited))
			return 0;
		d.f.lo += (rs_wide)d.f.t[i].coef * c->lo;
		if (!push_digit(&d, d.f.t[i].coef, c->hi - c->lo + 1))
			return 0;
	}
	unit = split_runs(&d, runs, nruns);
	size = unit ? fill(d.digit, d.ndigits, unit) : 0;
	lo = d.f.lo + runs[0].offset;
	if (!size || d.f.bad || lo > RS_INF || lo < -RS_INF)
		return 0;
	*ret_lo = (int64_t)lo;
	*ret_hi = (int64_t)lo + size;
	return 1;
}
