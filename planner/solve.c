/* SPDX-License-Identifier: MIT */
/* The solver's front: preparation, search, tie rule, certificate. See solve.h and solve_priv.h. */
#include "planner/solve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "planner/solve_priv.h"

#define MAX_LABELS (8u << 20)
#define TIE_SOLVES 64
#define TIE_FINE   20 /* bits: a part of the cap */
#define TIE_LESS   64

const char *const rs_solve_status_names[3] = {"optimal", "feasible", "infeasible"};

static int search_prep(struct rs_search *s, const struct rs_prep *prep, int64_t *ret_bound)
{
	int r = s->opt->timeline ? -ENOTSUP : rs_solve_starts(s, prep, ret_bound);

	return r == -ENOTSUP ? rs_solve_one(s, prep, ret_bound) : r;
}

static int search_begin(struct rs_search *s, const struct rs_problem *p,
			const struct rs_solve_options *options, uint64_t begin)
{
	uint32_t most = options->max_labels ? options->max_labels : MAX_LABELS;

	memset(s, 0, sizeof(*s));
	s->opt = options;
	s->end_ns = options->limit_ns ? begin + options->limit_ns : 0;
	s->best = INT64_MAX;
	s->enough = -1;
	/* Numbers of nodes share a word with a flag. */
	s->node_max = most < INT32_MAX ? most : INT32_MAX;
	s->plan = malloc(p->n * sizeof(*s->plan));
	return s->plan ? 0 : -ENOMEM;
}

/*
 * Is there a plan within `enough` that does with `less` bytes less everywhere? 1 and the plan in
 * `arc`, 0: there is none or it was not found, -ENOMEM.
 */
static int fits(struct rs_search *s, const struct rs_problem *p, int64_t less, int64_t enough,
		uint32_t *arc)
{
	struct rs_prep prep;
	int64_t bound;
	int r = rs_prep_build(&prep, p, less);

	if (r)
		goto out;
	/* As if a plan were known that is just not good enough: what cannot be better need not be looked at. */
	s->best = enough < INT64_MAX ? enough + 1 : enough;
	s->enough = enough;
	r = search_prep(s, &prep, &bound);
	if (!r && s->best <= enough) {
		memcpy(arc, s->plan, p->n * sizeof(*arc));
		r = 1;
	}
out:
	if (r != -ENOMEM)
		rs_prep_free(&prep);
	return r == -ENODATA ? 0 : r;
}

/* Bisection on the budget; a plan found moves it to what that plan leaves free. */
static int least_peak(struct rs_search *s, const struct rs_problem *p,
		      const struct rs_solve_options *options, struct rs_solve_result *ret)
{
	double extra = (double)ret->best * options->tie;
	int64_t enough = ret->best;
	int64_t low = ret->cost.slack, high = RS_PROBLEM_SUM, fine;
	uint32_t most = s->node_max;
	struct rs_problem_error error;
	int r = 0;

	enough += extra < (double)RS_PROBLEM_SUM ? (int64_t)extra : RS_PROBLEM_SUM;
	for (uint32_t i = 0; i < p->n; i++)
		high = p->cap[i] + 1 < high ? p->cap[i] + 1 : high;
	fine = high >> TIE_FINE;
	for (int round = 0; round < TIE_SOLVES && high - low > 1 && r >= 0; round++) {
		int64_t less = low + (high - low) / 2;

		if (s->end_ns && rs_search_clock() >= s->end_ns)
			break;
		/* The last few bytes are worth a look, and not one that takes seconds. */
		s->node_max = high - low > fine ? most : most / TIE_LESS;
		r = fits(s, p, less, enough, ret->arc);
		if (r == 1) {
			rs_plan_check(p, ret->arc, &ret->cost, &error);
			low = ret->cost.slack;
		} else {
			high = less;
		}
	}
	return r < 0 ? r : 0;
}

static int certify(struct rs_search *s, const struct rs_problem *p, struct rs_solve_result *ret)
{
	struct rs_problem_error error;

	ret->arc = s->plan;
	s->plan = NULL;
	ret->best = s->best;
	ret->gap = s->best ? (double)(s->best - ret->bound) / (double)s->best : 0;
	ret->status = ret->bound >= s->best ? RS_SOLVE_OPTIMAL : RS_SOLVE_FEASIBLE;
	return rs_plan_check(p, ret->arc, &ret->cost, &error);
}

int rs_solve(const struct rs_problem *p, const struct rs_solve_options *options,
	     struct rs_solve_result *ret)
{
	uint64_t begin = rs_search_clock();
	struct rs_search s;
	struct rs_prep prep = {0};
	int r;

	memset(ret, 0, sizeof(*ret));
	r = search_begin(&s, p, options, begin);
	if (!r)
		r = rs_prep_build(&prep, p, 0);
	if (r == -ENODATA) {
		ret->status = RS_SOLVE_INFEASIBLE;
		ret->segment = prep.segment;
		ret->held = prep.held;
		ret->excess = prep.excess;
		rs_prep_free(&prep);
		r = 0;
	} else if (!r) {
		r = search_prep(&s, &prep, &ret->bound);
		rs_prep_free(&prep);
		if (!r)
			r = certify(&s, p, ret);
		if (!r && options->tie >= 0) {
			s.plan = malloc(p->n * sizeof(*s.plan));
			r = s.plan ? least_peak(&s, p, options, ret) : -ENOMEM;
		}
	}
	ret->labels = s.labels;
	ret->ns = rs_search_clock() - begin;
	free(s.plan);
	free(s.node);
	if (r)
		rs_solve_free(ret);
	return r;
}

void rs_solve_free(struct rs_solve_result *r)
{
	free(r->arc);
	r->arc = NULL;
}
