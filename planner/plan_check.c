/* SPDX-License-Identifier: MIT */
/* Independent check of a plan: one walk along the timeline. See plan_check.h. */
#include "planner/plan_check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

int rs_plan_check(const struct rs_problem *p, const uint32_t *arc, struct rs_plan_cost *ret_cost,
		  struct rs_problem_error *error)
{
	struct rs_plan_cost cost = {.slack = INT64_MAX};
	uint32_t mode = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		const struct rs_arc *a = &p->arcs[p->first[i] + arc[i]];
		int64_t live;

		if (arc[i] >= p->first[i + 1] - p->first[i] || a->from != mode) {
			snprintf(error->text, sizeof(error->text),
				 "segment %u: arc %u cannot be taken in mode %u", i, arc[i], mode);
			return -EINVAL;
		}
		mode = a->to;
		cost.time += a->t;
		cost.turn += a->m;
		live = cost.turn + a->w;
		cost.peak = live > cost.peak ? live : cost.peak;
		if (live > p->cap[i]) {
			snprintf(error->text, sizeof(error->text),
				 "segment %u: %" PRId64 " bytes, %" PRId64 " over its cap", i, live,
				 live - p->cap[i]);
			return -EINVAL;
		}
		if (p->cap[i] - live < cost.slack) {
			cost.slack = p->cap[i] - live;
			cost.tightest = i;
		}
	}
	*ret_cost = cost;
	return 0;
}
