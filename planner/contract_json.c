/* SPDX-License-Identifier: MIT */
/*
 * Contracts in files. What may be in one is judged by the library's own reader, so that what this program
 * accepts is what a run accepts. docs: contract.h. Callers: the commands. No state.
 */
#include "planner/contract.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "planner/outfile.h"
#include "tracker/contract.h"

int rs_contract_read(const char *path, json_t **ret_contract, struct rs_contract_why *why)
{
	struct rs_jdoc_error e;
	struct rs_contract *c;
	json_error_t error;
	int r = rs_contract_load(path, &c, &e);
	json_t *o;

	if (r && e.line)
		snprintf(why->text, sizeof(why->text), "%s:%u:%u: %s%s%s", path, e.line, e.column,
			 e.field, e.field[0] ? " " : "", e.text);
	else if (r)
		snprintf(why->text, sizeof(why->text), "%s: %s", path, e.text);
	if (r)
		return r;
	rs_contract_free(c);
	o = json_load_file(path, 0, &error);
	if (!o) {
		snprintf(why->text, sizeof(why->text), "%s:%d:%d: %.300s", path, error.line,
			 error.column, error.text);
		return -EINVAL;
	}
	*ret_contract = o;
	return 0;
}

int rs_contract_open(const char *path, json_t **ret_contract, struct rs_contract_why *why)
{
	struct rs_contract_times *times;
	struct rs_run **runs;
	struct stat st;
	size_t n;
	int r;

	if (stat(path, &st) || !S_ISDIR(st.st_mode))
		return rs_contract_read(path, ret_contract, why);
	times = rs_contract_times_create();
	if (!times)
		return -ENOMEM;
	r = rs_rundir_read(path, rs_contract_times_add, times, &runs, &n);
	if (r) {
		snprintf(why->text, sizeof(why->text), "%s: %s", path,
			 r == -ENODATA ? "no run data here" : strerror(-r));
	} else {
		struct rs_contract_why inner = {""};

		r = rs_contract_learn(runs, n, times, ret_contract, &inner);
		if (r)
			snprintf(why->text, sizeof(why->text), "%.200s: %.300s", path, inner.text);
		rs_rundir_free(runs, n);
	}
	rs_contract_times_free(times);
	return r;
}

json_t *rs_contract_segment(const json_t *contract, const char *name)
{
	json_t *s;
	size_t i;

	json_array_foreach(json_object_get(contract, "segments"), i, s)
	{
		const char *its = json_string_value(json_object_get(s, "name"));

		if (its && !strcmp(its, name))
			return s;
	}
	return NULL;
}

/* --- rewriting -------------------------------------------------------------------------------- */

/* Members that `to` does not have. Optional ones that are known come and go with what was learned. */
static void carry(json_t *to, json_t *from)
{
	static const char *const known[] = {"region", "call", "slot", "piece", "costs"};
	const char *key;
	json_t *v;

	json_object_foreach(json_is_object(to) ? from : NULL, key, v)
	{
		int is_known = 0;

		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			is_known |= !strcmp(key, known[i]);
		if (!is_known && !json_object_get(to, key))
			json_object_set(to, key, v);
	}
}

static void carry_states(json_t *to, json_t *from)
{
	json_t *old = json_object(), *s;
	char *name;
	size_t i;

	json_array_foreach(from, i, s)
	{
		name = rs_contract_state_name(s);
		if (name)
			json_object_set(old, name, s);
		free(name);
	}
	json_array_foreach(to, i, s)
	{
		name = rs_contract_state_name(s);
		if (name)
			carry(s, json_object_get(old, name));
		free(name);
	}
	json_decref(old);
}

static void carry_all(json_t *to, json_t *from)
{
	static const char *const parts[] = {"generators", "products", "measured", "preserve"};
	json_t *s;
	size_t i;

	carry(to, from);
	carry(json_object_get(to, "program"), json_object_get(from, "program"));
	json_array_foreach(json_object_get(to, "segments"), i, s)
	{
		json_t *old =
			rs_contract_segment(from, json_string_value(json_object_get(s, "name")));

		carry(s, old);
		for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++)
			carry(json_object_get(s, parts[k]), json_object_get(old, parts[k]));
		carry_states(json_object_get(s, "state"), json_object_get(old, "state"));
	}
}

int rs_contract_write(const char *path, json_t *contract, int force, struct rs_contract_why *why)
{
	struct rs_contract_why ignored;
	json_t *old = NULL;
	char *text;
	int r;

	if (force && rs_outfile_exists(path) && !rs_contract_read(path, &old, &ignored)) {
		carry_all(contract, old);
		json_decref(old);
	}
	text = json_dumps(contract, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
	r = text ? rs_outfile_write(path, text, force) : -ENOMEM;
	free(text);
	if (r)
		snprintf(why->text, sizeof(why->text), "%.400s: %s", path,
			 r == -EEXIST ? "exists already; --force replaces it" : strerror(-r));
	return r;
}
