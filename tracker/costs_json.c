/* SPDX-License-Identifier: MIT */
/* Measured costs as lines; see costs_json.h. */
#include "tracker/costs_json.h"

const char *const rs_rate_names[RS_RATES] = {"copy", "digest", "swap", "diff", "move"};

static void put_time(struct rs_json *j, const char *key, const struct rs_cost_time *t)
{
	rs_json_open(j, key, '{');
	rs_json_u64(j, "median_ns", t->median_ns);
	rs_json_u64(j, "error_ns", t->error_ns);
	rs_json_u64(j, "n", t->n);
	rs_json_close(j, '}');
}

static void begin(struct rs_json *j, const char *kind)
{
	rs_json_begin(j);
	rs_json_str(j, "t", kind);
}

#define PUT(field) rs_json_u64(j, #field, p->field)

void rs_cost_json(struct rs_json *j, const struct rs_cost *p)
{
	begin(j, "cost");
	rs_json_str(j, "segment", p->segment);
	PUT(invocation);
	PUT(order);
	PUT(steps);
	rs_json_bool(j, "retains", !!(p->flags & RS_COST_RETAINS));
	rs_json_bool(j, "unsafe", !!(p->flags & RS_COST_UNSAFE));
	rs_json_bool(j, "replayed", !!(p->flags & RS_COST_REPLAYED));
	rs_json_bool(j, "has_retained", !!(p->flags & RS_COST_HAS_RETAINED));
	put_time(j, "forward", &p->forward);
	put_time(j, "replay", &p->replay);
	put_time(j, "forward_busy", &p->forward_busy);
	put_time(j, "replay_busy", &p->replay_busy);
	PUT(live_forward);
	PUT(peak_forward);
	PUT(live_replay);
	PUT(end_replay);
	PUT(peak_backward);
	PUT(product_bytes);
	PUT(state_bytes);
	PUT(whole_bytes);
	PUT(whole_pieces);
	PUT(kept_bytes);
	PUT(kept_pieces);
	PUT(own_bytes);
	PUT(own_pieces);
	PUT(draw_bytes);
	PUT(region_bytes);
	PUT(region_pieces);
	PUT(replays);
}

void rs_cost_share_json(struct rs_json *j, const struct rs_cost_share *p)
{
	uint32_t n = p->n < RS_COST_SHARERS ? p->n : RS_COST_SHARERS;

	begin(j, "share");
	PUT(bytes);
	PUT(pieces);
	rs_json_open(j, "order", '[');
	for (uint32_t i = 0; i < n; i++)
		rs_json_u64(j, NULL, p->order[i]);
	rs_json_close(j, ']');
}

void rs_cost_rate_json(struct rs_json *j, const struct rs_cost_rate *p)
{
	begin(j, "rate");
	rs_json_str(j, "kind", p->kind < RS_RATES ? rs_rate_names[p->kind] : "");
	PUT(n);
	PUT(bytes);
	PUT(each_ns);
	PUT(gib_ns);
}

void rs_cost_usage_json(struct rs_json *j, const struct rs_cost_usage *p)
{
	begin(j, "usage");
	PUT(step);
	PUT(steps);
	PUT(step_ns);
	PUT(live_bytes);
	PUT(peak_bytes);
	PUT(arena_bytes);
	PUT(arena_used);
	PUT(turn_bytes);
	PUT(outside_bytes);
	PUT(segments);
}
