/* SPDX-License-Identifier: MIT */
/*
 * What two contracts say differently of the program's segments. Times are measurements and not compared, nor is
 * how often something was seen; sizes are. Callers: cmd_diff.c. No state.
 */
#include "planner/contract.h"

#include <stdlib.h>
#include <string.h>

static void tell(json_t *out, const char *segment, const char *kind, const char *what, json_t *old,
		 json_t *new)
{
	json_t *o = json_object();

	json_object_set_new(o, "segment", json_string(segment));
	json_object_set_new(o, "kind", json_string(kind));
	json_object_set_new(o, "what", json_string(what));
	json_object_set_new(o, "old", old ? json_incref(old) : json_null());
	json_object_set_new(o, "new", new ? json_incref(new) : json_null());
	json_array_append_new(out, o);
}

static void member(json_t *out, const char *segment, const char *kind, const char *what,
		   const json_t *a, const json_t *b, const char *key)
{
	json_t *x = json_object_get(a, key), *y = json_object_get(b, key);

	if (x != y && !(x && y && json_equal(x, y)))
		tell(out, segment, kind, what, x, y);
}

json_t *rs_contract_by_name(const json_t *segment, const char *list,
			    char *(*name_of)(const json_t *))
{
	json_t *o = json_object(), *s;
	size_t i;

	json_array_foreach(json_object_get(segment, list), i, s)
	{
		char *name = name_of(s);

		if (name)
			json_object_set(o, name, s);
		free(name);
	}
	return o;
}

static void states(json_t *out, const char *segment, const json_t *a, const json_t *b)
{
	json_t *old = rs_contract_by_name(a, "state", rs_contract_state_name);
	json_t *new = rs_contract_by_name(b, "state", rs_contract_state_name), *s;
	const char *name;

	json_object_foreach(old, name, s)
	{
		json_t *other = json_object_get(new, name);

		if (!other) {
			tell(out, segment, "state removed", name, s, NULL);
			continue;
		}
		member(out, segment, "role", name, s, other, "role");
		member(out, segment, "windows", name, s, other, "windows");
		member(out, segment, "entry", name, s, other, "entry");
		member(out, segment, "reader", name, s, other, "reader");
		member(out, segment, "writer", name, s, other, "writer");
	}
	json_object_foreach(new, name, s) if (!json_object_get(old, name))
		tell(out, segment, "state added", name, NULL, s);
	json_decref(old);
	json_decref(new);
}

static void sizes(json_t *out, const char *segment, const json_t *a, const json_t *b)
{
	static const char *const of[][2] = {{"generators", "draws"},
					    {"generators", "bytes"},
					    {"products", "count"},
					    {"products", "bytes"},
					    {"measured", "state_bytes"}};

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		char what[64];

		snprintf(what, sizeof(what), "%s %s", of[i][0], of[i][1]);
		member(out, segment, "size", what, json_object_get(a, of[i][0]),
		       json_object_get(b, of[i][0]), of[i][1]);
	}
}

struct telling {
	json_t *out;
	const char *segment;
};

static void alias(void *arg, const char *kind, const char *what, json_t *old, json_t *new)
{
	const struct telling *t = arg;

	tell(t->out, t->segment, kind, what, old, new);
}

static void segment(json_t *out, const char *name, const json_t *a, const json_t *b)
{
	static const char *const plain[] = {"invocations",	"replays",	  "complete",
					    "aliases_complete", "captured",	  "host_effect",
					    "untracked",	"unknown_writer", "codes"};

	member(out, name, "calls", "calls", a, b, "calls");
	member(out, name, "verdict", "verdict", a, b, "verdict");
	member(out, name, "preserve", "preserve", a, b, "preserve");
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		member(out, name, "field", plain[i], a, b, plain[i]);
	sizes(out, name, a, b);
	states(out, name, a, b);
	rs_contract_alias_diff(a, b, alias, &(struct telling){out, name});
}

json_t *rs_contract_diff(const json_t *a, const json_t *b)
{
	json_t *out = json_array(), *s, *other;
	size_t i;

	json_array_foreach(json_object_get(a, "segments"), i, s)
	{
		const char *name = json_string_value(json_object_get(s, "name"));

		other = rs_contract_segment(b, name);
		if (other)
			segment(out, name, s, other);
		else
			tell(out, name, "segment removed", name, NULL, NULL);
	}
	json_array_foreach(json_object_get(b, "segments"), i, s)
	{
		const char *name = json_string_value(json_object_get(s, "name"));

		if (!rs_contract_segment(a, name))
			tell(out, name, "segment added", name, NULL, NULL);
	}
	return out;
}
