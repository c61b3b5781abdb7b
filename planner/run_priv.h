/* SPDX-License-Identifier: MIT */
/* Between run_line.c, which checks lines, and run.c, which adds them up. Nobody else's business. */
#ifndef RS_PLANNER_RUN_PRIV_H
#define RS_PLANNER_RUN_PRIV_H

#include "planner/rundir.h"

/* A checked finding event; strings belong to its object, the key to the caller. */
struct rs_finding_line {
	const char *code, *segment;
	enum rs_severity severity;
	uint64_t step;
	char *key; /* equal for what is counted together */
};

/* What is wrong with a line that contracts are learned from: a field's name, or NULL. */
const char *rs_run_bad_learned(const json_t *o, enum rs_learned_line kind);

/* A line of costs: as rs_costs_take(). */
const char *rs_run_add_costs(struct rs_run *run, const char *kind, const json_t *o);
void rs_run_forget_costs(struct rs_run *run);

void rs_run_add_replay(struct rs_run *run, const struct rs_replay *r);
void rs_run_add_finding(struct rs_run *run, json_t *o, const struct rs_finding_line *line);
__attribute__((format(printf, 2, 3))) void rs_run_problem(struct rs_run *run, const char *fmt, ...);

#endif
