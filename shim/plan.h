/* SPDX-License-Identifier: MIT */
/*
 * The plan that the engine is given: from a file at the start, or from the planner process; and what became of it, as
 * "plan" lines of events.jsonl, findings and messages.
 *
 * Callers: rs_init_start, then step markers, one thread at a time (planner.c sees to it), and the exit handler.
 */
#ifndef RS_SHIM_PLAN_H
#define RS_SHIM_PLAN_H

#include "tracker/engine.h"

/* REPLAYSHIM_PLAN: read now, handed over in the first context that passes a step marker. 1: there is a plan to obey. */
int rs_plan_load(const char *path);
/* Before the engine sees a step marker. */
void rs_plan_before(struct rs_queue q, uint64_t step);

/* Hand over what the planner process has published; it is said that nothing fits where that is what was published. */
void rs_plan_give(struct rs_queue q, uint64_t step, const struct rs_plan_head *head,
		  const struct rs_plan_entry *entries);
/* Preserve as without a plan from now on. */
void rs_plan_withdraw(struct rs_queue q, uint64_t step);

/* After each step marker: tells once what became of the plan. */
void rs_plan_follow(struct rs_queue q, uint64_t step, const struct rs_cost_usage *usage);
/* Of the plan that was handed over last: as the engine's, for the planner's eyes. */
void rs_plan_status(struct rs_plan_status *ret);
/* At the end of the run: the plan in force once more, with the most that was measured. */
void rs_plan_finish(void);

#endif
