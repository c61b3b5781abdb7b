/* SPDX-License-Identifier: MIT */
/* Reader of planner instances. See instance_json.h. */
#include "planner/instance_json.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* n or S: present, an integer, and within its bound. */
static int header(const json_t *o, const char *key, uint32_t most, uint32_t *ret,
		  struct rs_problem_error *e)
{
	const json_t *value = json_object_get(o, key);

	if (!json_is_integer(value) || json_integer_value(value) < 1 ||
	    json_integer_value(value) > most)
		return rs_problem_bad(e, "\"%s\" must be an integer from 1 to %u", key, most);
	*ret = (uint32_t)json_integer_value(value);
	return 0;
}

static int take_arc(const json_t *v, struct rs_arc *a)
{
	int64_t x[6];

	if (json_array_size(v) != 6)
		return -EINVAL;
	for (size_t i = 0; i < 6; i++) {
		const json_t *value = json_array_get(v, i);

		if (!json_is_integer(value))
			return -EINVAL;
		x[i] = json_integer_value(value);
	}
	if (x[0] < 0 || x[0] > UINT32_MAX || x[1] < 0 || x[1] > UINT32_MAX)
		return -EINVAL;
	*a = (struct rs_arc){(uint32_t)x[0], (uint32_t)x[1], x[2], x[3], x[4], x[5]};
	return 0;
}

static int take_segment(const json_t *cap, const json_t *arcs, uint32_t i, struct rs_problem *p,
			struct rs_problem_error *e)
{
	const json_t *bytes = json_array_get(cap, i), *list = json_array_get(arcs, i);
	uint32_t begin = p->first[i];

	if (!json_is_integer(bytes))
		return rs_problem_bad(e, "cap[%u] is not an integer", i);
	p->cap[i] = json_integer_value(bytes);
	for (uint32_t k = 0; k < json_array_size(list); k++)
		if (take_arc(json_array_get(list, k), &p->arcs[begin + k]))
			return rs_problem_bad(
				e, "arcs[%u][%u] is not [from, to, option, m, w, t] in integers", i,
				k);
	p->first[i + 1] = begin + (uint32_t)json_array_size(list);
	return 0;
}

static int count_arcs(const json_t *arcs, uint32_t n, uint32_t *ret, struct rs_problem_error *e)
{
	size_t total = 0;

	for (uint32_t i = 0; i < n; i++) {
		const json_t *list = json_array_get(arcs, i);

		if (!json_is_array(list) || !json_array_size(list))
			return rs_problem_bad(e, "arcs[%u] is not a list with arcs in it", i);
		total += json_array_size(list);
		if (json_array_size(list) > RS_PROBLEM_ARCS || total > RS_PROBLEM_TOTAL)
			return rs_problem_bad(e, "arcs[%u]: too many arcs", i);
	}
	*ret = (uint32_t)total;
	return 0;
}

static int take(const json_t *o, struct rs_problem *ret, struct rs_problem_error *e)
{
	const json_t *cap, *arcs;
	struct rs_problem p;
	uint32_t n, modes, total = 0;
	int r;

	if (json_is_object(json_object_get(o, "inst")))
		o = json_object_get(o, "inst");
	if (!json_is_object(o))
		return rs_problem_bad(e, "not a JSON object");
	r = header(o, "n", RS_PROBLEM_SEGMENTS, &n, e);
	if (!r)
		r = header(o, "S", RS_PROBLEM_MODES, &modes, e);
	if (r)
		return r;
	cap = json_object_get(o, "cap");
	arcs = json_object_get(o, "arcs");
	if (json_array_size(cap) != n || json_array_size(arcs) != n)
		return rs_problem_bad(e, "\"%s\" must be a list of n = %u",
				      json_array_size(cap) != n ? "cap" : "arcs", n);
	r = count_arcs(arcs, n, &total, e);
	if (!r && rs_problem_alloc(&p, n, modes, total))
		return -ENOMEM;
	if (r)
		return r;
	for (uint32_t i = 0; !r && i < n; i++)
		r = take_segment(cap, arcs, i, &p, e);
	if (!r)
		r = rs_problem_check(&p, e);
	if (r)
		rs_problem_free(&p);
	else
		*ret = p;
	return r;
}

static int parsed(json_t *o, const json_error_t *json, struct rs_problem *ret,
		  struct rs_problem_error *error)
{
	int r;

	if (!o)
		return rs_problem_bad(error, "line %d, column %d: %.100s", json->line, json->column,
				      json->text);
	r = take(o, ret, error);
	json_decref(o);
	return r;
}

int rs_instance_parse(struct rs_problem *ret, const char *text, size_t size,
		      struct rs_problem_error *error)
{
	json_error_t json;

	return parsed(json_loadb(text, size, JSON_REJECT_DUPLICATES, &json), &json, ret, error);
}

int rs_instance_load(struct rs_problem *ret, const char *path, struct rs_problem_error *error)
{
	FILE *in = fopen(path, "r");
	json_error_t json;
	int r = -errno;

	if (!in)
		return r;
	errno = 0;
	r = parsed(json_loadf(in, JSON_REJECT_DUPLICATES, &json), &json, ret, error);
	if (r && ferror(in))
		r = errno ? -errno : -EIO;
	fclose(in);
	return r;
}
