/* SPDX-License-Identifier: MIT */
/*
 * Measured costs as lines of events.jsonl. Each function begins the line ("v", "t") and puts all fields in, under the names
 * that costs.h gives them; times are objects, flags are booleans. The caller ends it with rs_records_write().
 *
 * Callers: rs_engine_costs_write; planner/costs_read.c reads the same. No state, no locks.
 */
#ifndef RS_TRACKER_COSTS_JSON_H
#define RS_TRACKER_COSTS_JSON_H

#include "tracker/costs.h"
#include "tracker/records.h"

void rs_cost_json(struct rs_json *j, const struct rs_cost *c);		   /* "cost" */
void rs_cost_share_json(struct rs_json *j, const struct rs_cost_share *s); /* "share" */
void rs_cost_rate_json(struct rs_json *j, const struct rs_cost_rate *r);   /* "rate" */
void rs_cost_usage_json(struct rs_json *j, const struct rs_cost_usage *u); /* "usage" */

#endif
