/* SPDX-License-Identifier: MIT */
/* Measured costs in JSON; see costing_json.h. */
#include "planner/costing_json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "planner/rundir.h"
#include "tracker/costs_json.h"

/* --- one line ----------------------------------------------------------------------------------- */

/* A number that is not there is 0: fields are added within a version. */
static int take_number(const json_t *o, const char *key, uint64_t *ret)
{
	const json_t *v = json_object_get(o, key);

	if (v && (!json_is_integer(v) || json_integer_value(v) < 0))
		return -EINVAL;
	*ret = v ? (uint64_t)json_integer_value(v) : 0;
	return 0;
}

static int take_time(const json_t *o, const char *key, struct rs_cost_time *ret)
{
	const json_t *v = json_object_get(o, key);

	if (v && !json_is_object(v))
		return -EINVAL;
	return take_number(v, "median_ns", &ret->median_ns) ||
			       take_number(v, "error_ns", &ret->error_ns) ||
			       take_number(v, "n", &ret->n)
		       ? -EINVAL
		       : 0;
}

#define TAKE(field)                                                                                \
	if (take_number(o, #field, &to->field))                                                    \
		return #field;

static const char *take_cost(const json_t *o, struct rs_cost *to)
{
	const char *name = json_string_value(json_object_get(o, "segment"));

	if (!name || !*name || strlen(name) >= sizeof(to->segment))
		return "segment";
	strcpy(to->segment, name);
#define TAKE_FLAG(key, bit)                                                                        \
	if (json_object_get(o, key) && !json_is_boolean(json_object_get(o, key)))                  \
		return key;                                                                        \
	to->flags |= json_is_true(json_object_get(o, key)) ? (bit) : 0;
	RS_COST_FLAGS(TAKE_FLAG)
#define TAKE_TIME(field)                                                                           \
	if (take_time(o, #field, &to->field))                                                      \
		return #field;
	RS_COST_TIMES(TAKE_TIME)
	RS_COST_NUMBERS(TAKE)
	return NULL;
}

static const char *take_share(const json_t *o, struct rs_cost_share *to)
{
	const json_t *order = json_object_get(o, "order"), *v;
	size_t i;

	TAKE(bytes)
	TAKE(pieces)
	if (!json_is_array(order) || json_array_size(order) > RS_COST_SHARERS)
		return "order";
	json_array_foreach(order, i, v)
	{
		if (!json_is_integer(v) || json_integer_value(v) < 0 ||
		    json_integer_value(v) >= RS_PROBLEM_SEGMENTS)
			return "order";
		to->order[to->n++] = (uint32_t)json_integer_value(v);
	}
	return NULL;
}

static const char *take_rate(const json_t *o, struct rs_cost_rate *to)
{
	const char *name = json_string_value(json_object_get(o, "kind"));

	for (to->kind = 0; to->kind < RS_RATES; to->kind++)
		if (name && !strcmp(name, rs_rate_names[to->kind]))
			break;
	if (to->kind == RS_RATES)
		return "kind";
	RS_COST_RATE_NUMBERS(TAKE)
	return NULL;
}

static const char *take_usage(const json_t *o, struct rs_cost_usage *to)
{
	RS_COST_USAGE_NUMBERS(TAKE)
	return NULL;
}

const char *rs_costs_take(struct rs_costs *c, const char *kind, const json_t *o)
{
	struct rs_cost_usage usage = {0};
	struct rs_cost_share share = {0};
	struct rs_cost_rate rate = {0};
	struct rs_cost cost = {0};
	const char *bad = NULL;

	if (!strcmp(kind, "cost")) {
		bad = take_cost(o, &cost);
		return bad ? bad : rs_costs_put(c, &cost) == -EINVAL ? "bytes or ns" : NULL;
	}
	if (!strcmp(kind, "share")) {
		bad = take_share(o, &share);
		return bad ? bad : rs_costs_put_share(c, &share) == -EINVAL ? "order" : NULL;
	}
	if (!strcmp(kind, "rate")) {
		bad = take_rate(o, &rate);
		return bad ? bad : rs_costs_put_rate(c, &rate) == -EINVAL ? "each_ns" : NULL;
	}
	if (!strcmp(kind, "usage")) {
		bad = take_usage(o, &usage);
		if (!bad)
			c->usage = usage;
	}
	return bad;
}

/* --- all of them -------------------------------------------------------------------------------- */

static void put(json_t *o, const char *key, uint64_t n)
{
	json_object_set_new(o, key, json_integer(n < INT64_MAX ? (json_int_t)n : INT64_MAX));
}

#define PUT(field) put(o, #field, from->field);

static json_t *time_json(const struct rs_cost_time *from)
{
	json_t *o = json_object();

	PUT(median_ns)
	PUT(error_ns)
	PUT(n)
	return o;
}

static json_t *cost_json(const struct rs_cost *from)
{
	json_t *o = json_object();

	json_object_set_new(o, "segment", json_string(from->segment));
#define PUT_FLAG(key, bit) json_object_set_new(o, key, json_boolean(from->flags &(bit)));
	RS_COST_FLAGS(PUT_FLAG)
#define PUT_TIME(field) json_object_set_new(o, #field, time_json(&from->field));
	RS_COST_TIMES(PUT_TIME)
	RS_COST_NUMBERS(PUT)
	return o;
}

static json_t *share_json(const struct rs_cost_share *from)
{
	json_t *o = json_object(), *order = json_array();

	PUT(bytes)
	PUT(pieces)
	for (uint32_t i = 0; i < from->n; i++)
		json_array_append_new(order, json_integer(from->order[i]));
	json_object_set_new(o, "order", order);
	return o;
}

static json_t *rate_json(const struct rs_cost_rate *from)
{
	json_t *o = json_object();

	json_object_set_new(o, "kind", json_string(rs_rate_names[from->kind]));
	RS_COST_RATE_NUMBERS(PUT)
	return o;
}

static json_t *usage_json(const struct rs_cost_usage *from)
{
	json_t *o = json_object();

	RS_COST_USAGE_NUMBERS(PUT)
	return o;
}

json_t *rs_costs_to_json(const struct rs_costs *c)
{
	json_t *segments = json_array(), *shares = json_array(), *rates = json_array();

	for (uint32_t i = 0; i < c->n; i++)
		json_array_append_new(segments, cost_json(&c->segment[i]));
	for (uint32_t i = 0; i < c->nshares; i++)
		json_array_append_new(shares, share_json(&c->share[i]));
	for (int i = 0; i < RS_RATES; i++)
		if (c->rate[i].n)
			json_array_append_new(rates, rate_json(&c->rate[i]));
	return json_pack("{s:o, s:o, s:o, s:o}", "segments", segments, "shares", shares, "rates",
			 rates, "usage", usage_json(&c->usage));
}

static int from_list(struct rs_costs *c, const json_t *costs, const char *list, const char *kind,
		     char *bad, size_t size)
{
	const json_t *v = json_object_get(costs, list), *o;
	size_t i;

	if (!json_is_array(v)) {
		snprintf(bad, size, "%s", list);
		return -EINVAL;
	}
	json_array_foreach(v, i, o)
	{
		const char *field = json_is_object(o) ? rs_costs_take(c, kind, o) : "an object";

		if (!field)
			continue;
		snprintf(bad, size, "%s[%zu].%s", list, i, field);
		return -EINVAL;
	}
	return 0;
}

int rs_costs_from_json(struct rs_costs *c, const json_t *costs, char *bad, size_t size)
{
	const json_t *usage = json_object_get(costs, "usage");
	const char *field = json_is_object(usage) ? NULL : "usage";
	int r = 0;

	if (!field)
		field = rs_costs_take(c, "usage", usage);
	if (field) {
		snprintf(bad, size, "%s", field);
		return -EINVAL;
	}
	r = from_list(c, costs, "segments", "cost", bad, size);
	if (!r)
		r = from_list(c, costs, "shares", "share", bad, size);
	return r ? r : from_list(c, costs, "rates", "rate", bad, size);
}

/* --- where they come from ----------------------------------------------------------------------- */

static int copy_of(struct rs_costs *to, const struct rs_costs *from)
{
	int r = 0;

	memset(to, 0, sizeof(*to));
	for (uint32_t i = 0; !r && i < from->n; i++)
		r = rs_costs_put(to, &from->segment[i]);
	for (uint32_t i = 0; !r && i < from->nshares; i++)
		r = rs_costs_put_share(to, &from->share[i]);
	memcpy(to->rate, from->rate, sizeof(to->rate));
	to->usage = from->usage;
	return r;
}

int rs_costs_of_runs(struct rs_run *const *runs, size_t n, struct rs_costs *c)
{
	int r = 0, any = 0;

	for (size_t i = 0; !r && i < n; i++) {
		const struct rs_costs *its = runs[i]->costs;

		if (!its || !its->n)
			continue;
		r = any ? rs_costs_merge(c, its) : copy_of(c, its);
		any = 1;
	}
	if (r)
		rs_costs_free(c);
	return r ? r : any ? 0 : -ENODATA;
}

static int open_dir(const char *command, const char *path, struct rs_costs *c,
		    struct rs_contract_why *why)
{
	struct rs_run **runs;
	size_t n;
	int r = rs_rundir_read(path, NULL, NULL, &runs, &n);

	if (r) {
		snprintf(why->text, sizeof(why->text), "%.400s: %s", path,
			 r == -ENODATA ? "no run data here" : strerror(-r));
		return r;
	}
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < runs[i]->nproblems; k++)
			fprintf(stderr, "replayctl %s: %s/%s\n", command, runs[i]->path,
				runs[i]->problems[k].text);
	r = rs_costs_of_runs(runs, n, c);
	rs_rundir_free(runs, n);
	if (r)
		snprintf(why->text, sizeof(why->text), "%.400s: %s", path,
			 r == -ENODATA
				 ? "no costs were measured here: the run needs REPLAYSHIM_COSTS=1, "
				   "and must have ended by itself"
			 : r == -EINVAL ? "its processes ran different segments: name one of them"
					: strerror(-r));
	return r;
}

static int open_contract(const char *path, struct rs_costs *c, struct rs_contract_why *why)
{
	json_t *contract, *costs;
	char bad[96];
	int r = rs_contract_read(path, &contract, why);

	if (r)
		return r;
	costs = json_object_get(contract, "costs");
	if (!costs) {
		snprintf(
			why->text, sizeof(why->text),
			"%.400s: this contract has no costs: learn it again from a run that preserves",
			path);
		r = -ENODATA;
	} else if (rs_costs_from_json(c, costs, bad, sizeof(bad))) {
		snprintf(why->text, sizeof(why->text), "%.300s: wrong or missing: costs.%s", path,
			 bad);
		rs_costs_free(c);
		r = -EINVAL;
	}
	json_decref(contract);
	return r;
}

int rs_costs_open(const char *command, const char *path, struct rs_costs *c,
		  struct rs_contract_why *why)
{
	struct stat st;

	memset(c, 0, sizeof(*c));
	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return open_dir(command, path, c, why);
	return open_contract(path, c, why);
}
