/* SPDX-License-Identifier: MIT */
/*
 * A program as the planner process sees it, without a device: n equal segments, told through shared memory. Kept, their
 * activations take RIG_MB each; replayed, a millisecond each.
 */
#ifndef RS_TESTS_SERVE_RIG_H
#define RS_TESTS_SERVE_RIG_H

#include <stdio.h>
#include <string.h>

#include "planner/serve_priv.h"

#define MB	 (UINT64_C(1) << 20)
#define RIG_BASE (100 * MB) /* the program without activations */
#define RIG_MB	 10	    /* of a segment */

struct rig {
	unsigned n;
	const char *name; /* of the segments */
	uint64_t ns;	  /* of a replay */
	uint64_t more;	  /* bytes at every event */
	uint64_t step_ns;
};

static inline struct rs_cost rig_cost(const struct rig *r, unsigned i)
{
	const uint64_t base = RIG_BASE + r->more, act = RIG_MB * MB;
	struct rs_cost c = {.invocation = i,
			    .order = i,
			    .steps = 3,
			    .flags = RS_COST_RETAINS | RS_COST_REPLAYED,
			    .forward = {.median_ns = r->ns, .error_ns = r->ns / 100, .n = 3},
			    .replay = {.median_ns = r->ns, .error_ns = r->ns / 100, .n = 3},
			    .live_forward = base,
			    .peak_forward = base + act,
			    .live_replay = base,
			    .end_replay = base + act,
			    .peak_backward = base + act + 2 * MB,
			    .product_bytes = act,
			    .replays = 1};

	snprintf(c.segment, sizeof(c.segment), "%s", r->name);
	return c;
}

static inline void rig_tell(struct rs_wire_ring *ring, const struct rig *r)
{
	struct rs_wire_record record = {.kind = RS_WIRE_RATE};

	record.u.rate = (struct rs_cost_rate){
		.kind = RS_RATE_COPY, .n = 3, .bytes = MB, .each_ns = 2000, .gib_ns = 1000000};
	rs_wire_tell(ring, &record);
	for (unsigned i = 0; i < r->n; i++) {
		record.kind = RS_WIRE_COST;
		record.u.cost = rig_cost(r, i);
		rs_wire_tell(ring, &record);
	}
}

/* The words of a program in its step number `step`. */
static inline void rig_step(struct rs_wire *w, const struct rig *r, uint64_t step)
{
	struct rs_wire_client *c = &w->client;

	c->heartbeat_ns = rs_serve_now();
	c->segments = r->n;
	c->step_ns = r->step_ns;
	c->live_bytes = RIG_BASE + r->more;
	c->peak_bytes = RIG_BASE + r->more + (RIG_MB + 2) * MB;
	c->turn_bytes = c->outside_bytes = RIG_BASE + r->more;
	c->steps = step;
	c->step = step;
}

#endif
