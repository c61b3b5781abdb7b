/* SPDX-License-Identifier: MIT */
/* The lines of measured costs of a process, as they come. See rundir.h, costing_json.h. Callers: run_line.c, run.c. */
#include "planner/run_priv.h"

#include <stdlib.h>

#include "planner/costing_json.h"

const char *rs_run_add_costs(struct rs_run *run, const char *kind, const json_t *o)
{
	if (!run->costs)
		run->costs = calloc(1, sizeof(*run->costs));
	return run->costs ? rs_costs_take(run->costs, kind, o) : NULL;
}

void rs_run_forget_costs(struct rs_run *run)
{
	if (run->costs)
		rs_costs_free(run->costs);
	free(run->costs);
	run->costs = NULL;
}
