/* SPDX-License-Identifier: MIT */
/*
 * The solver: least added time under every cap, in exact integers, with a certificate.
 *
 * The result is a function of the problem and the options alone, except where a time limit ends the
 * search; then `bound` still holds. No state is kept between calls; calls in several threads are
 * independent. Memory is bounded by max_labels (some 8 bytes each) plus what the problem itself takes.
 */
#ifndef RS_PLANNER_SOLVE_H
#define RS_PLANNER_SOLVE_H

#include "planner/plan_check.h"
#include "planner/problem.h"

struct rs_solve_options {
	double gap;	     /* stop once proven within this part of the time; 0: optimal */
	double tie;	     /* least peak among plans within this part of the best; < 0: off */
	uint64_t limit_ns;   /* stop after this time with the gap that is certified; 0: none */
	uint32_t max_labels; /* most partial plans kept at once; 0: 8 million */
	int unmerged;	     /* tests: treat identical segments one by one */
	uint32_t tail; /* tests: most labels of the tail listed from the back; 0: as is good */
	int timeline;  /* tests: segments in their order only, no reordering, no split by mode */
};

enum rs_solve_status { RS_SOLVE_OPTIMAL, RS_SOLVE_FEASIBLE, RS_SOLVE_INFEASIBLE };

struct rs_solve_result {
	enum rs_solve_status status;
	struct rs_plan_cost cost; /* of the plan */
	int64_t best;		  /* least time found; cost.time is above it only by the tie rule */
	int64_t bound;		  /* no plan is faster than this */
	double gap;		  /* (best - bound) / best */
	uint32_t *arc;		  /* the plan, see rs_plan_check(); to be freed */
	uint64_t ns, labels;
	/*
	 * Infeasible: every plan that keeps the caps before `segment` holds at least `held` bytes on
	 * reaching it, and then needs at least `excess` bytes more than its cap whatever it takes there;
	 * INT64_MAX: it has no arc from the modes they reach.
	 */
	uint32_t segment;
	int64_t held, excess;
};

extern const char *const rs_solve_status_names[3];

/* The problem must have passed rs_problem_check(). 0 or -ENOMEM. */
int rs_solve(const struct rs_problem *p, const struct rs_solve_options *options,
	     struct rs_solve_result *ret);
void rs_solve_free(struct rs_solve_result *r);

#endif
