/* SPDX-License-Identifier: MIT */
/*
 * The search: a first plan, the tail, prices, then passes until the bound meets the best plan.
 * See solve_priv.h.
 */
#include "planner/solve_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TAIL_FIRST  4	  /* segments listed from the back at first, then twice as many */
#define TAIL_LABELS 8192  /* until there are so many labels */
#define CORE_FIRST  12	  /* losses that the first pass takes in, then twice as many */
#define LIST_FIRST  32768 /* labels of a list before it is thinned, then LIST_MORE times as many */
#define LIST_MORE   16

struct run {
	struct rs_search *s;
	const struct rs_prep *prep;
	struct rs_tail tail;
	struct rs_dual dual;
	uint32_t *step, tail_nodes;
	int64_t bound;
	int tail_full; /* the tail got too long to list */
	uint32_t list_max;
};

uint64_t rs_search_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int rs_search_over(struct rs_search *s)
{
	if (s->end_ns && !s->over && rs_search_clock() >= s->end_ns)
		s->over = 1;
	return s->over || s->best <= s->enough;
}

int rs_search_offer(struct rs_search *s, const struct rs_prep *prep, const uint32_t *step)
{
	int64_t held = 0, time = 0;
	uint32_t mode = 0;

	for (uint32_t i = 0; i < prep->n; i++) {
		const struct rs_step *a = &prep->step[step[i]];

		if (a->from != mode || held > a->lim)
			return -EINVAL;
		mode = a->to;
		held += a->m;
		time += a->t;
	}
	if (time >= s->best)
		return 0;
	s->best = time;
	for (uint32_t i = 0; i < prep->n; i++)
		s->plan[i] = prep->step[step[i]].orig;
	return 0;
}

/* Along the timeline, at each segment the cheapest step that leaves a way to the end. */
static void greedy(struct run *run, int64_t price, const rs_wide *value)
{
	const struct rs_prep *prep = run->prep;
	int64_t held = 0;
	uint32_t mode = 0;

	for (uint32_t i = 0; i < prep->n; i++) {
		rs_wide least = 0;
		uint32_t best = RS_NONE;

		for (uint32_t k = prep->first[i]; k < prep->first[i + 1]; k++) {
			const struct rs_step *a = &prep->step[k];
			rs_wide cost = (rs_wide)a->t * prep->scale + (rs_wide)a->m * price;

			if (a->from != mode || held > a->lim)
				continue;
			if (value)
				cost += value[((size_t)i + 1) * prep->modes + a->to];
			if (best == RS_NONE || cost < least) {
				least = cost;
				best = k;
			}
		}
		if (best == RS_NONE)
			return;
		run->step[i] = best;
		held += prep->step[best].m;
		mode = prep->step[best].to;
	}
	rs_search_offer(run->s, prep, run->step);
}

/* First plans: at the price of the bound, and at higher ones, which leave more room for the end. */
static void first_plans(struct run *run)
{
	static const int above[] = {0, 1, 3, 6, 10, 16};
	struct rs_dual *d = &run->dual;
	int64_t price = d->price[0];

	for (size_t k = 0; k < sizeof(above) / sizeof(*above); k++) {
		rs_wide p = price + (rs_wide)price * (k ? 1 << above[k] : 0) / 1024;

		if (p > RS_PROBLEM_SUM)
			break;
		if (run->prep->modes == 1) {
			greedy(run, (int64_t)p, NULL);
			continue;
		}
		for (uint32_t i = 0; i <= run->prep->n; i++)
			d->price[i] = (int64_t)p;
		rs_dual_values(d, run->prep, &run->tail);
		greedy(run, (int64_t)p, d->value);
	}
	for (uint32_t i = 0; run->prep->modes > 1 && i <= run->prep->n; i++)
		d->price[i] = price;
	rs_dual_values(d, run->prep, &run->tail);
}

/* Scaled time by which a better plan can be above the bound; negative: there is none. */
static rs_wide room(const struct run *run)
{
	return (rs_wide)(run->s->best - 1) * run->prep->scale - run->dual.bound;
}

/* All plans of loss <= g have been seen (g < 0: none), and none is better than the best. */
static void raise(struct run *run, rs_wide g)
{
	rs_wide sum = run->dual.bound + g, bound = 0;

	if (sum >= 0)
		bound = sum / run->prep->scale + 1;
	if (bound > run->s->best)
		bound = run->s->best;
	if ((int64_t)bound > run->bound)
		run->bound = (int64_t)bound;
}

static int done(struct run *run)
{
	struct rs_search *s = run->s;

	return run->bound >= s->best || (s->enough >= 0 && run->bound > s->enough) ||
	       (double)(s->best - run->bound) <= s->opt->gap * (double)s->best || rs_search_over(s);
}

/*
 * Does the cheapest plan at a price just above break a limit before the tail? Just above, as at the
 * price itself plans of very different bytes may cost the same.
 */
static int breaks_limits(const struct run *run)
{
	const struct rs_prep *prep = run->prep;
	const struct rs_dual *d = &run->dual;
	int64_t held = 0;

	for (uint32_t i = 0, mode = 0; i < run->tail.at; i++) {
		const struct rs_step *best = &prep->step[d->next[(size_t)i * prep->modes + mode]];
		rs_wide least = RS_LOTS;

		for (uint32_t k = prep->first[i]; prep->modes == 1 && k < prep->first[i + 1]; k++) {
			const struct rs_step *a = &prep->step[k];
			rs_wide cost = (rs_wide)a->t * prep->scale +
				       (rs_wide)a->m * ((rs_wide)d->price[0] + 1);

			if (k == prep->first[i] || cost < least) {
				least = cost;
				best = a;
			}
		}
		if (held > best->lim)
			return 1;
		held += best->m;
		mode = best->to;
	}
	return 0;
}

/* Twice as long a tail, and prices for it. */
static int longer_tail(struct run *run)
{
	uint32_t n = run->prep->n, length = 2 * (n - run->tail.at), most = run->s->opt->tail;
	rs_wide g = room(run);
	int r;

	if (!length)
		length = most ? 1 : TAIL_FIRST;
	r = rs_tail_extend(&run->tail, run->s, run->prep, &run->dual,
			   g < (rs_wide)RS_LOSS ? (uint64_t)g : RS_LOSS,
			   length < n ? n - length : 0, most ? most : TAIL_LABELS);
	run->tail_nodes = run->s->nnode;
	if (r && r != -E2BIG)
		return r;
	run->tail_full = r == -E2BIG || run->tail.at == 0;
	rs_dual_single(&run->dual, run->prep, &run->tail);
	if (run->prep->modes == 1)
		greedy(run, run->dual.price[0], NULL);
	raise(run, -1);
	return 0;
}

static int start(struct run *run)
{
	int r;

	run->step = malloc(run->prep->n * sizeof(*run->step));
	r = run->step ? rs_dual_alloc(&run->dual, run->prep) : -ENOMEM;
	if (!r)
		r = rs_tail_init(&run->tail, run->prep);
	if (r)
		return r;
	rs_dual_single(&run->dual, run->prep, &run->tail);
	if ((rs_wide)run->s->best * run->prep->scale > run->dual.bound)
		first_plans(run);
	raise(run, -1);
	while (!r && !done(run) && !run->tail_full &&
	       (run->tail.at == run->prep->n || breaks_limits(run)))
		r = longer_tail(run);
	return r;
}

/* One kind of pass; exactly one of the two is set. */
struct passes {
	struct rs_line *line;
	struct rs_core *core;
};

static int pass(struct run *run, struct passes *p, uint64_t g, struct rs_found *found)
{
	int r;

	run->s->nnode = run->tail_nodes;
	run->s->list_max = run->list_max;
	run->s->thinned = 0;
	run->s->room = room(run) < (rs_wide)RS_LOSS ? (uint64_t)room(run) : RS_LOSS;
	r = p->core ? rs_core_pass(p->core, run->s, g, found)
		    : rs_line_pass(p->line, run->s, g, found);
	found->cut |= run->s->thinned;
	run->s->list_max = 0;
	if (r || found->c >= run->s->best)
		return r;
	if (p->core)
		rs_core_plan(p->core, run->s, found, run->step);
	else
		rs_line_plan(p->line, run->s, found, run->step);
	/* Not feasible: a limit that was not looked at binds. */
	return rs_search_offer(run->s, run->prep, run->step) ? -EDOM : 0;
}

static uint64_t next_threshold(const struct passes *p, uint32_t k, uint64_t last, rs_wide most)
{
	uint64_t g = p->core ? rs_core_kth(p->core, k) : rs_line_kth(p->line, k);

	if (last && g < 2 * last)
		g = 2 * last;
	return (rs_wide)g * 2 < most ? g : most < (rs_wide)RS_LOSS ? (uint64_t)most : RS_LOSS;
}

/*
 * Passes until done, or until all that can be listed has been. A pass that was cut is tried with
 * smaller thresholds first, then with longer lists. -EDOM: see pass().
 */
static int deepen(struct run *run, struct passes *p)
{
	uint64_t last = 0, limit = RS_LOSS;
	uint32_t k = CORE_FIRST;
	int r = 0;

	run->list_max = LIST_FIRST < run->s->node_max ? LIST_FIRST : run->s->node_max;
	while (!r && !done(run)) {
		uint64_t g = next_threshold(p, k, last, room(run));
		struct rs_found found;

		if (g >= limit)
			g = last + (limit - last) / 2;
		if (limit < RS_LOSS && g - last <= limit / 8) {
			if (run->list_max >= run->s->node_max / LIST_MORE)
				break;
			run->list_max *= LIST_MORE;
			limit = RS_LOSS;
			continue;
		}
		r = pass(run, p, g, &found);
		if (r)
			break;
		if (found.cut) {
			limit = g;
			continue;
		}
		raise(run, g);
		last = g;
		k *= 2;
	}
	return r;
}

static int by_core(struct run *run)
{
	struct passes p = {0};
	int r = rs_core_create(&p.core, run->prep, &run->dual, &run->tail, run->s->opt->unmerged);

	if (!r)
		r = deepen(run, &p);
	rs_core_free(p.core);
	return r;
}

static int by_line(struct run *run)
{
	struct passes p = {0};
	int r = 0;

	if (breaks_limits(run))
		r = rs_dual_ascend(run->s, &run->dual, run->prep, &run->tail, run->s->best);
	raise(run, -1);
	if (!r && !done(run))
		r = rs_line_create(&p.line, run->prep, &run->dual, &run->tail);
	if (!r && p.line)
		r = deepen(run, &p);
	rs_line_free(p.line);
	return r;
}

static int search(struct run *run)
{
	int r = start(run);

	while (!r && !done(run)) {
		if (run->prep->modes > 1 || run->s->opt->timeline || breaks_limits(run))
			return by_line(run);
		r = by_core(run);
		if (r != -EDOM)
			return r;
		run->s->nnode = run->tail_nodes;
		if (run->tail_full)
			return by_line(run);
		r = longer_tail(run);
	}
	return r;
}

int rs_solve_one(struct rs_search *s, const struct rs_prep *prep, int64_t *ret_bound)
{
	struct run run = {.s = s, .prep = prep};
	int r;

	s->nnode = 0;
	r = search(&run);
	*ret_bound = run.bound < s->best ? run.bound : s->best;
	rs_tail_free(&run.tail);
	rs_dual_free(&run.dual);
	free(run.step);
	return r;
}
