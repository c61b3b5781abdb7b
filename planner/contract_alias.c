/* SPDX-License-Identifier: MIT */
/*
 * Aliases in contracts: pairs of places of a forward that reach the same bytes. A contract of before has arrays of
 * [call, slot, piece, the other slot, the other piece, bytes], of one call each. docs: contract.h. Callers: contract_learn.c,
 * contract_diff.c. No state.
 */
#include "planner/contract.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static json_int_t num(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

json_t *rs_contract_alias_of(const json_t *line)
{
	static const char *const of[][2] = {{"call", "other_call"},
					    {"slot", "other_slot"},
					    {"piece", "other_piece"},
					    {"kernel", "other_kernel"}};
	static const char *const more[] = {"region", "bytes", "forwards"};
	json_t *o = json_object(), *other = json_object();

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		json_object_set_new(o, of[i][0], json_copy(json_object_get(line, of[i][0])));
		json_object_set_new(other, of[i][0], json_copy(json_object_get(line, of[i][1])));
	}
	json_object_set_new(o, "other", other);
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		if (json_object_get(line, more[i]))
			json_object_set_new(o, more[i], json_copy(json_object_get(line, more[i])));
	return o;
}

char *rs_contract_alias_name(const json_t *alias)
{
	const json_t *other = json_object_get(alias, "other");
	json_int_t v[6];
	char *name;

	if (json_is_array(alias)) {
		const size_t at[6] = {0, 1, 2, 0, 3, 4};

		for (size_t i = 0; i < 6; i++)
			v[i] = json_integer_value(json_array_get(alias, at[i]));
	} else {
		v[0] = num(alias, "call"), v[1] = num(alias, "slot"), v[2] = num(alias, "piece");
		v[3] = num(other, "call"), v[4] = num(other, "slot"), v[5] = num(other, "piece");
	}
	return asprintf(&name,
			"call %" PRId64 " slot %" PRId64 " piece %" PRId64 " = call %" PRId64
			" slot %" PRId64 " piece %" PRId64,
			(int64_t)v[0], (int64_t)v[1], (int64_t)v[2], (int64_t)v[3], (int64_t)v[4],
			(int64_t)v[5]) < 0
		       ? NULL
		       : name;
}

/* The same alias of two processes: in as many forwards as both have seen. */
static void merge(json_t *to, const json_t *from)
{
	json_object_set_new(to, "forwards",
			    json_integer(num(to, "forwards") + num(from, "forwards")));
	if (num(from, "bytes") > num(to, "bytes"))
		json_object_set(to, "bytes", json_object_get(from, "bytes"));
}

void rs_contract_alias_put(json_t *all, json_t *alias)
{
	char *name = rs_contract_alias_name(alias);
	json_t *found = name ? json_object_get(all, name) : NULL;

	if (found)
		merge(found, alias);
	else if (name)
		json_object_set(all, name, alias);
	json_decref(alias);
	free(name);
}

/* Told of in every forward that was seen? */
static int is_constant(const json_t *segment, const json_t *alias)
{
	return num(alias, "forwards") && num(alias, "forwards") >= num(segment, "forwards");
}

static json_t *bytes_of(const json_t *alias)
{
	return json_is_array(alias) ? json_array_get(alias, 5) : json_object_get(alias, "bytes");
}

void rs_contract_alias_diff(const json_t *a, const json_t *b, rs_contract_alias_fn *fn, void *arg)
{
	json_t *old = rs_contract_by_name(a, "aliases", rs_contract_alias_name);
	json_t *new = rs_contract_by_name(b, "aliases", rs_contract_alias_name), *x, *other;
	const char *name;

	json_object_foreach(old, name, x)
	{
		other = json_object_get(new, name);
		if (!other)
			fn(arg, "alias removed", name, x, NULL);
		else if (!json_equal(bytes_of(x), bytes_of(other)))
			fn(arg, "alias bytes", name, bytes_of(x), bytes_of(other));
		else if (json_is_object(x) && json_is_object(other) &&
			 is_constant(a, x) != is_constant(b, other))
			fn(arg, "alias forwards", name, json_object_get(x, "forwards"),
			   json_object_get(other, "forwards"));
	}
	json_object_foreach(new, name, x)
	{
		if (!json_object_get(old, name))
			fn(arg, "alias added", name, NULL, x);
	}
	json_decref(old);
	json_decref(new);
}
