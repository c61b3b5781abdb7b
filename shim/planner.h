/* SPDX-License-Identifier: MIT */
/*
 * This process and the planner process: being linked to it, telling it costs, taking its plans.
 *
 * The program never waits for it. It is looked at when a step begins, without blocking; whatever is odd about it is said
 * once, and the run goes on with the plan that it has, or without. Callers: rs_init_start, step markers on any thread (of
 * two at once one finds it busy and leaves), fork, the exit handler.
 */
#ifndef RS_SHIM_PLANNER_H
#define RS_SHIM_PLANNER_H

#include "shim/shim.h"

/* Set at the start and never again: a plan is obeyed or costs are told. */
extern int rs_planner_on;

/* A planner is wanted and not there: it is looked for wherever the program stops anyway, for a step may take minutes. */
extern int rs_planner_seeking;

void rs_planner_start(void);
void rs_planner_glance(void);
/* Before, and after the engine sees the marker of a new step. */
void rs_planner_before(struct rs_tls *t, uint64_t step);
void rs_planner_after(struct rs_tls *t, uint64_t step);
/* In a forked child, which is not the process that the planner knows. */
void rs_planner_child(void);
/* At the end of the run, before its last lines. */
void rs_planner_finish(void);

#endif
