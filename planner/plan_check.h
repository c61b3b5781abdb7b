/* SPDX-License-Identifier: MIT */
/*
 * Independent check of a plan: it reads the problem as it was given and shares no code and no
 * derived number with the solver. Used by the tests, and before a plan is printed.
 */
#ifndef RS_PLANNER_PLAN_CHECK_H
#define RS_PLANNER_PLAN_CHECK_H

#include "planner/problem.h"

struct rs_plan_cost {
	int64_t time;	   /* sum of t */
	int64_t turn;	   /* bytes held when the forward pass ends: sum of m */
	int64_t peak;	   /* largest of held + w over all events */
	int64_t slack;	   /* least of cap - held - w: how much less budget would do */
	uint32_t tightest; /* the segment where that is */
};

/*
 * `arc` has for each segment the number of its arc, counted from the segment's first.
 * 0, or -EINVAL with the segment where the plan breaks and how.
 */
int rs_plan_check(const struct rs_problem *p, const uint32_t *arc, struct rs_plan_cost *ret_cost,
		  struct rs_problem_error *error);

#endif
