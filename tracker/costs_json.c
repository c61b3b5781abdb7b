/* SPDX-License-Identifier: MIT */
/* Measured costs as lines; see costs_json.h. */
#include "tracker/costs_json.h"

const char *const rs_rate_names[RS_RATES] = {"copy", "digest", "swap", "diff", "move", "remap"};

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

#define PUT(field)	    rs_json_u64(j, #field, p->field);
#define PUT_FLAG(name, bit) rs_json_bool(j, name, !!(p->flags & (bit)));
#define PUT_TIME(field)	    put_time(j, #field, &p->field);

void rs_cost_json(struct rs_json *j, const struct rs_cost *p)
{
	begin(j, "cost");
	rs_json_str(j, "segment", p->segment);
	RS_COST_FLAGS(PUT_FLAG)
	RS_COST_TIMES(PUT_TIME)
	RS_COST_NUMBERS(PUT)
}

void rs_cost_share_json(struct rs_json *j, const struct rs_cost_share *p)
{
	uint32_t n = p->n < RS_COST_SHARERS ? p->n : RS_COST_SHARERS;

	begin(j, "share");
	rs_json_u64(j, "bytes", p->bytes);
	rs_json_u64(j, "pieces", p->pieces);
	rs_json_open(j, "order", '[');
	for (uint32_t i = 0; i < n; i++)
		rs_json_u64(j, NULL, p->order[i]);
	rs_json_close(j, ']');
}

void rs_cost_rate_json(struct rs_json *j, const struct rs_cost_rate *p)
{
	begin(j, "rate");
	rs_json_str(j, "kind", p->kind < RS_RATES ? rs_rate_names[p->kind] : "");
	RS_COST_RATE_NUMBERS(PUT)
}

void rs_cost_usage_json(struct rs_json *j, const struct rs_cost_usage *p)
{
	begin(j, "usage");
	RS_COST_USAGE_NUMBERS(PUT)
}
