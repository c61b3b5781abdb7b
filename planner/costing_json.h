/* SPDX-License-Identifier: MIT */
/*
 * Measured costs in JSON: as lines of a run ("cost", "share", "rate", "usage"), and all of them in a contract's "costs".
 * Both are read by the same functions, which take nothing on trust. Callers: run_line.c, contract_learn.c, the commands
 * that plan. No state.
 */
#ifndef RS_PLANNER_COSTING_JSON_H
#define RS_PLANNER_COSTING_JSON_H

#include <jansson.h>

#include "planner/contract.h"
#include "planner/costing.h"

/* One line of that kind. NULL, or the field that is wrong; what no kind of line says is passed over. */
const char *rs_costs_take(struct rs_costs *c, const char *kind, const json_t *o);

/* {"segments": [...], "shares": [...], "rates": [...], "usage": {...}}; NULL: no memory. */
json_t *rs_costs_to_json(const struct rs_costs *c);
/* Into a zeroed *c. 0, or -EINVAL and where it is wrong, as "segments[2].kept_bytes". */
int rs_costs_from_json(struct rs_costs *c, const json_t *costs, char *bad, size_t size);

/* All processes of the runs as one, into a zeroed *c. 0, -ENODATA (none has any), -EINVAL (other segments), -ENOMEM. */
int rs_costs_of_runs(struct rs_run *const *runs, size_t n, struct rs_costs *c);

/* Of a run's directory or a contract, into a zeroed *c. 0, or *why; problems of lines go to stderr, after `command`. */
int rs_costs_open(const char *command, const char *path, struct rs_costs *c,
		  struct rs_contract_why *why);

#endif
