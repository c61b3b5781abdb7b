/* SPDX-License-Identifier: MIT */
/* Between cmd_plan.c (arguments, instances) and cmd_plan_data.c, cmd_plan_sweep.c (measured costs). */
#ifndef RS_PLANNER_CMD_PLAN_H
#define RS_PLANNER_CMD_PLAN_H

#include "planner/costing.h"

struct rs_plan_args {
	const char *instance, *lp, *data, *out, *explain;
	struct rs_wish wish;
	uint64_t low, high; /* --sweep */
	unsigned points;
	int json, has_budget;
};

/* The costs are ready. Exit status. */
int rs_plan_show(const struct rs_plan_args *args, const struct rs_costs *c);
int rs_plan_sweep(const struct rs_plan_args *args, const struct rs_costs *c);
int rs_plan_explain(const struct rs_plan_args *args, const struct rs_costs *c);

int rs_plan_write_lp(const char *path, const struct rs_problem *p);
/* 0, or an exit status after a message. *ret: to be freed with rs_planned_free. */
int rs_plan_try(const struct rs_costs *c, const struct rs_wish *wish, struct rs_planned *ret);
/* "undo", or "undo, swap". */
const char *rs_plan_option(const struct rs_priced *p, char text[32]);

#endif
