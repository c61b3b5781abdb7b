/* SPDX-License-Identifier: MIT */
/*
 * Measured costs as lines of events.jsonl. Each function begins the line ("v", "t") and puts all fields in, under the names
 * that costs.h gives them; times are objects, flags are booleans. The caller ends it with rs_records_write().
 *
 * Callers: rs_engine_costs_write; planner/costing_json.c reads the same. No state, no locks.
 */
#ifndef RS_TRACKER_COSTS_JSON_H
#define RS_TRACKER_COSTS_JSON_H

#include "tracker/costs.h"
#include "tracker/records.h"

/* The fields, in the order of their lines. */
/* clang-format off */
#define RS_COST_FLAGS(X) \
	X("retains", RS_COST_RETAINS) X("unsafe", RS_COST_UNSAFE) X("replayed", RS_COST_REPLAYED) \
	X("has_retained", RS_COST_HAS_RETAINED)
#define RS_COST_TIMES(X) X(forward) X(replay) X(forward_busy) X(replay_busy)
#define RS_COST_NUMBERS(X) \
	X(invocation) X(order) X(steps) X(live_forward) X(peak_forward) X(live_replay) X(end_replay) \
	X(peak_backward) X(product_bytes) X(state_bytes) X(whole_bytes) X(whole_pieces) X(kept_bytes) \
	X(kept_pieces) X(own_bytes) X(own_pieces) X(draw_bytes) X(region_bytes) X(region_pieces) X(replays) \
	X(compared_bytes) X(compared_pieces) X(remap_bytes) X(remap_pieces)
#define RS_COST_RATE_NUMBERS(X) X(n) X(bytes) X(each_ns) X(gib_ns)
#define RS_COST_USAGE_NUMBERS(X) \
	X(step) X(steps) X(step_ns) X(live_bytes) X(peak_bytes) X(arena_bytes) X(arena_used) \
	X(turn_bytes) X(outside_bytes) X(segments)
/* clang-format on */

void rs_cost_json(struct rs_json *j, const struct rs_cost *c);		   /* "cost" */
void rs_cost_share_json(struct rs_json *j, const struct rs_cost_share *s); /* "share" */
void rs_cost_rate_json(struct rs_json *j, const struct rs_cost_rate *r);   /* "rate" */
void rs_cost_usage_json(struct rs_json *j, const struct rs_cost_usage *u); /* "usage" */

#endif
