/* SPDX-License-Identifier: MIT */
/*
 * Bounds of one word's reads or writes at one launch: rs_ptx_access_eval.
 *
 * Constraints of a context are taken outermost first, each resting on those before it: a comparison
 * counts only if the registers compared provably hold their integers.
 * Callers: the shim at launches, tests. About 60 KiB of stack, no memory, no locks.
 */
#include "tracker/ptx_bounds.h"

#include <stdlib.h>
#include <string.h>

#define MAX_RUNS   128
#define MAX_PIECES 64
#define MAX_WORK   1500 /* eliminations of one evaluation */

int rs_launch_needs(struct rs_launch_eval *e, const struct rs_need *needs, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct rs_form f;

		rs_form_of(e, needs[i].p, &f);
		if (rs_form_sup(e, &f) > needs[i].hi || rs_form_inf(e, &f) < needs[i].lo)
			return 0;
	}
	return 1;
}

static int inside(struct rs_launch_eval *e, const struct rs_form *f, rs_wide lo, rs_wide hi)
{
	return rs_form_sup(e, f) <= hi && rs_form_inf(e, f) >= lo;
}

/* a - b + c <= 0 */
static struct rs_form difference(const struct rs_form *a, const struct rs_form *b, int c)
{
	struct rs_form d = *a;

	rs_form_add(&d, b, -1);
	d.lo += c;
	d.hi += c;
	return d;
}

/*
 * A true comparison as forms that are at most 0. Returns how many; *exact is set if together they
 * say no less than the comparison.
 */
static unsigned comparison_forms(struct rs_launch_eval *e, const struct rs_bound_cmp *c,
				 struct rs_form out[2], int *exact)
{
	unsigned w = c->a->width;
	rs_wide half = w == 32 ? (rs_wide)1 << 31 : (rs_wide)RS_INF;
	rs_wide full = w == 32 ? UINT32_MAX : (rs_wide)RS_INF;
	int swap = c->cmp == RS_CMP_GT || c->cmp == RS_CMP_GE;
	int strict = c->cmp == RS_CMP_LT || c->cmp == RS_CMP_GT;
	struct rs_form l, r, zero = {0};

	*exact = 0;
	rs_form_of(e, swap ? c->b : c->a, &l);
	rs_form_of(e, swap ? c->a : c->b, &r);
	if (c->cmp == RS_CMP_EQ || c->cmp == RS_CMP_NE) {
		if (!(inside(e, &l, -half, half - 1) && inside(e, &r, -half, half - 1)) &&
		    !(inside(e, &l, 0, full) && inside(e, &r, 0, full)))
			return 0;
		out[0] = difference(&l, &r, 0);
		out[1] = difference(&r, &l, 0);
		if (c->cmp == RS_CMP_EQ) {
			*exact = 1;
			return 2;
		}
		if (rs_form_sup(e, &out[0]) < 0 || rs_form_inf(e, &out[0]) > 0) {
			*exact = 1;
			return 0;
		}
		*exact = 1;
		if (rs_form_sup(e, &out[0]) == 0) {
			out[0] = difference(&l, &r, 1);
			return 1;
		}
		if (rs_form_sup(e, &out[1]) == 0) {
			out[0] = difference(&r, &l, 1);
			return 1;
		}
		*exact = 0;
		return 0;
	}
	out[0] = difference(&l, &r, strict);
	if (!c->is_unsigned) {
		*exact = inside(e, &l, -half, half - 1) && inside(e, &r, -half, half - 1);
		return *exact ? 1 : 0;
	}
	if (inside(e, &l, 0, full) && inside(e, &r, 0, full)) {
		*exact = 1;
		return 1;
	}
	/* A negative integer is read as a large number, so the comparison also says 0 <= l. */
	if (inside(e, &r, 0, half - !strict) && inside(e, &l, -half, half - 1)) {
		*exact = 1;
		out[1] = difference(&zero, &l, 0);
		return 2;
	}
	return 0;
}

static int push_cons(struct rs_launch_eval *e, const struct rs_form *d, int chain)
{
	if (d->bad || e->ncons == RS_FORM_CONS)
		return 0;
	if (rs_form_box(e, d, 0) > 0)
		e->never = 1;
	e->cons[e->ncons].d = *d;
	e->cons[e->ncons].chain = (uint8_t)chain;
	e->ncons++;
	return 1;
}

static int needs_hold(struct rs_launch_eval *e, const struct rs_bound_cmp *c)
{
	for (unsigned i = 0; i < c->nneeds; i++)
		if (!rs_launch_needs(e, c->needs[i], 1))
			return 0;
	return 1;
}

static void take_comparison(struct rs_launch_eval *e, const struct rs_bound_cmp *c)
{
	struct rs_form f[2];
	int exact = 0;
	unsigned n = needs_hold(e, c) ? comparison_forms(e, c, f, &exact) : 0;

	for (unsigned i = 0; i < n; i++)
		exact &= push_cons(e, &f[i], c->chain);
	if (c->chain && !exact)
		e->exact = 0;
}

/*
 * An access before the loop's test: iteration t > 0 was allowed by the test of t - 1. If the same
 * holds for t = 0 (a guard before the loop says so), it holds for all t.
 */
static void take_round(struct rs_launch_eval *e, const struct rs_bound_round *r)
{
	const struct rs_bound_atom *a = &e->b->atoms[r->atom];
	struct rs_range range = e->range[r->atom];

	if (!a->single || a->ntests != 1 || !a->tests[0].exact)
		e->exact = 0;
	/* Behind the test its comparison is in the context; a single round is always made. */
	if (r->after || e->whole[r->atom] || range.lo == range.hi)
		return;
	for (unsigned i = 0; i < a->ntests; i++)
		for (unsigned j = 0; j < a->tests[i].ncmps; j++) {
			struct rs_form f[2];
			int exact = 0;
			unsigned n = 0;

			if (needs_hold(e, &a->tests[i].cmps[j]))
				n = comparison_forms(e, &a->tests[i].cmps[j], f, &exact);
			if (!exact)
				e->exact = 0;
			for (unsigned k = 0; k < n; k++) {
				int64_t c = rs_form_coef(&f[k], r->atom);
				struct rs_form first = f[k], t = {.n = 1};

				t.t[0] = (struct rs_form_term){r->atom, 1};
				rs_form_add(&first, &t, -c);
				first.lo -= c;
				first.hi -= c;
				f[k].lo -= c;
				f[k].hi -= c;
				if (c <= 0 || rs_form_sup(e, &first) > 0 || !push_cons(e, &f[k], 1))
					e->exact = 0;
			}
		}
}

void rs_launch_context(struct rs_launch_eval *e, const struct rs_bound_context *c)
{
	e->context = c;
	e->ncons = 0;
	e->never = 0;
	e->exact = c->exact;
	for (unsigned i = 0; i < c->ncmps; i++)
		take_comparison(e, &c->cmps[i]);
	for (unsigned i = 0; i < c->nrounds; i++)
		take_round(e, &c->rounds[i]);
}

struct extent {
	int64_t lo, hi;
	uint8_t any, known;
	uint64_t taken[4]; /* groups that went into a dense piece, of the first 256 */
	unsigned npieces;
	struct rs_bound_run piece[MAX_PIECES]; /* certainly written; offset, bytes */
};

static void widen(struct extent *x, int64_t lo, int64_t hi)
{
	if (!x->any || lo < x->lo)
		x->lo = lo;
	if (!x->any || hi > x->hi)
		x->hi = hi;
	x->any = 1;
}

static void push_piece(struct extent *x, int64_t lo, int64_t hi)
{
	if (x->npieces < MAX_PIECES)
		x->piece[x->npieces++] = (struct rs_bound_run){lo, hi - lo};
}

static int by_offset(const void *a, const void *b)
{
	const struct rs_bound_run *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Sort and join what overlaps or touches. */
static unsigned join_runs(struct rs_bound_run *r, unsigned n)
{
	unsigned m = 0;

	/* Short lists; qsort may allocate. */
	for (unsigned i = 1; i < n; i++)
		for (unsigned j = i; j && by_offset(&r[j - 1], &r[j]) > 0; j--) {
			struct rs_bound_run t = r[j];

			r[j] = r[j - 1];
			r[j - 1] = t;
		}
	for (unsigned i = 0; i < n; i++) {
		if (m && r[i].offset <= r[m - 1].offset + r[m - 1].bytes) {
			int64_t end = r[i].offset + r[i].bytes;

			if (end > r[m - 1].offset + r[m - 1].bytes)
				r[m - 1].bytes = end - r[m - 1].offset;
		} else {
			r[m++] = r[i];
		}
	}
	return m;
}

static int same_terms(const struct rs_form *a, const struct rs_form *b)
{
	if (a->n != b->n)
		return 0;
	for (unsigned i = 0; i < a->n; i++)
		if (rs_form_coef(b, a->t[i].atom) != a->t[i].coef)
			return 0;
	return 1;
}

/* Runs of group `at` and of all groups that differ from it only by a constant at this launch. */
static unsigned collect_runs(struct rs_launch_eval *e, const struct rs_bound_side *side,
			     unsigned at, const struct rs_form *f, struct rs_bound_run *runs,
			     uint64_t taken[4])
{
	unsigned n = 0;

	for (unsigned i = at; i < side->ngroups; i++) {
		const struct rs_bound_group *g = &side->groups[i];
		struct rs_form h;

		if (g->context != side->groups[at].context || g->no_dense)
			continue;
		rs_form_of(e, g->p, &h);
		if (h.bad || h.lo != h.hi || !same_terms(f, &h) || n + g->nruns > MAX_RUNS ||
		    !rs_launch_needs(e, g->needs, g->nneeds))
			continue;
		if (i < 256)
			taken[i / 64] |= (uint64_t)1 << i % 64;
		for (unsigned j = 0; j < g->nruns; j++) {
			rs_wide shift = h.lo - f->lo;

			if (shift > RS_INF || shift < -RS_INF)
				continue;
			runs[n] = g->runs[j];
			runs[n++].offset += (int64_t)shift;
		}
	}
	return join_runs(runs, n);
}

static int find_dense(struct rs_launch_eval *e, const struct rs_bound_side *side, unsigned at,
		      const struct rs_form *f, struct extent *x)
{
	struct rs_bound_run runs[MAX_RUNS];
	uint64_t taken[4] = {0};
	int64_t lo, hi;
	unsigned n;
	int all = 1;

	if (!e->exact || side->groups[at].no_dense || f->bad || f->lo != f->hi)
		return 0;
	n = collect_runs(e, side, at, f, runs, taken);
	if (n && rs_dense(e, f, runs, n, &lo, &hi)) {
		push_piece(x, lo, hi);
		widen(x, lo, hi);
		for (unsigned i = 0; i < 4; i++)
			x->taken[i] |= taken[i];
		return 1;
	}
	for (unsigned i = 0; n > 1 && i < n; i++) {
		all &= rs_dense(e, f, &runs[i], 1, &lo, &hi);
		if (!all)
			break;
		push_piece(x, lo, hi);
	}
	return 0;
}

static void take_group(struct rs_launch_eval *e, const struct rs_bound_side *side, unsigned at,
		       enum rs_ptx_dir dir, struct extent *x)
{
	const struct rs_bound_group *g = &side->groups[at];
	rs_wide lo, hi;
	struct rs_form f;

	if (at < 256 && x->taken[at / 64] >> at % 64 & 1)
		return;
	if (e->context != g->context)
		rs_launch_context(e, g->context);
	if (e->never)
		return;
	if (!rs_launch_needs(e, g->needs, g->nneeds)) {
		x->known = 0;
		return;
	}
	rs_form_of(e, g->p, &f);
	e->strict = 1;
	hi = rs_form_sup(e, &f);
	lo = rs_form_inf(e, &f);
	e->strict = 0;
	if (hi >= RS_INF || lo <= -RS_INF) {
		x->known = 0;
		return;
	}
	if (hi < lo) /* the conditions contradict each other: not executed */
		return;
	if (dir == RS_PTX_WRITES && find_dense(e, side, at, &f, x))
		return;
	widen(x, (int64_t)lo + g->runs[0].offset,
	      (int64_t)hi + g->runs[g->nruns - 1].offset + g->runs[g->nruns - 1].bytes);
}

static void start(struct rs_launch_eval *e, const struct rs_ptx_kernel *k,
		  const struct rs_ptx_launch *launch, const struct rs_bound_side *side)
{
	e->b = k->bounds;
	e->launch = launch;
	e->ncons = 0;
	e->strict = 0;
	e->budget = MAX_WORK;
	e->context = NULL;
	for (uint32_t i = 0; i < k->bounds->natoms; i++)
		e->range[i] = (struct rs_range){-RS_INF, RS_INF};
	memset(e->divisor, 0, k->bounds->natoms * sizeof(*e->divisor));
	memset(e->valid, 0, k->bounds->natoms);
	memset(e->whole, 0, k->bounds->natoms);
	memset(e->vague, 1, k->bounds->natoms);
	for (uint32_t i = 0; i < side->norder; i++)
		rs_launch_atom(e, side->order[i]);
}

void rs_ptx_access_eval(const struct rs_ptx_kernel *k, uint32_t word, enum rs_ptx_dir dir,
			const struct rs_ptx_launch *launch, struct rs_ptx_extent *ret_extent)
{
	const struct rs_bound_side *side;
	struct rs_launch_eval e;
	struct extent x = {.known = 1};

	*ret_extent = (struct rs_ptx_extent){0};
	if (word >= k->nwords || !k->bounds)
		return;
	side = &k->bounds->words[word][dir == RS_PTX_WRITES];
	if (side->unknown)
		return;
	ret_extent->known = 1;
	if (!side->ngroups)
		return;
	for (unsigned d = 0; d < 3; d++)
		if (!launch->grid[d] || !launch->block[d])
			return;
	start(&e, k, launch, side);
	for (uint32_t i = 0; i < side->ngroups && x.known; i++)
		take_group(&e, side, i, dir, &x);
	ret_extent->known = x.known;
	if (!x.known || !x.any)
		return;
	ret_extent->lo = x.lo;
	ret_extent->hi = x.hi;
	x.npieces = join_runs(x.piece, x.npieces);
	ret_extent->dense = x.npieces == 1 && x.piece[0].offset <= x.lo &&
			    x.piece[0].offset + x.piece[0].bytes >= x.hi;
}

int rs_ptx_access_same(const struct rs_ptx_kernel *k, const uint8_t *a, const uint8_t *b,
		       uint64_t n)
{
	for (uint32_t i = 0; k->bounds && i < k->bounds->ndecides; i++) {
		struct rs_bound_bytes d = k->bounds->decides[i];

		/* outside of both blocks it is unknown in both */
		if ((uint64_t)d.at + d.n <= n && memcmp(a + d.at, b + d.at, d.n))
			return 0;
	}
	return 1;
}
