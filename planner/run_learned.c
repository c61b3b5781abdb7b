/* SPDX-License-Identifier: MIT */
/*
 * Checks of the lines that contracts are learned from ("segment" and "state" in events.jsonl), so that
 * contract_learn.c can take every field for what it should be. Callers: run_line.c. No state.
 */
#include "planner/run_priv.h"

#include <string.h>

static int is_count(const json_t *v)
{
	return json_is_integer(v) && json_integer_value(v) >= 0;
}

static const char *bad_counts(const json_t *o, const char *const *names)
{
	for (; *names; names++)
		if (!is_count(json_object_get(o, *names)))
			return *names;
	return NULL;
}

static int is_window(const json_t *w)
{
	return json_is_array(w) && json_array_size(w) == 2 && is_count(json_array_get(w, 0)) &&
	       is_count(json_array_get(w, 1)) && json_integer_value(json_array_get(w, 1)) > 0 &&
	       json_integer_value(json_array_get(w, 0)) <=
		       INT64_MAX - json_integer_value(json_array_get(w, 1));
}

static int is_call(const json_t *v)
{
	const char *s = json_string_value(v);

	return s && !strncmp(s, "0x", 2) && s[2] && strlen(s) <= 18 &&
	       strspn(s + 2, "0123456789abcdef") == strlen(s) - 2;
}

static const char *bad_segment(const json_t *o)
{
	static const char *const counts[] = {
		"forwards",	 "invocations", "longest",    "state_bytes", "products",
		"product_bytes", "draws",	"draw_bytes", "host_ns",     NULL};
	static const char *const flags[] = {"host_effect", "captured", "unknown_writer",
					    "untracked", "cut"};
	const json_t *calls = json_object_get(o, "calls"), *cut = json_object_get(o, "aliases_cut");

	/* runs of before this was told have none */
	if (cut && !json_is_boolean(cut))
		return "aliases_cut";
	if (!json_is_array(calls))
		return "calls";
	for (size_t i = 0; i < json_array_size(calls); i++)
		if (!is_call(json_array_get(calls, i)))
			return "calls";
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (!json_is_boolean(json_object_get(o, flags[i])))
			return flags[i];
	return bad_counts(o, counts);
}

static const char *bad_alias(const json_t *o)
{
	static const char *const counts[] = {"bytes", "forwards", NULL};
	static const char *const places[] = {"call",	   "slot",	  "piece", "other_call",
					     "other_slot", "other_piece", NULL};
	static const char *const texts[] = {"kernel", "other_kernel"};
	const json_t *region = json_object_get(o, "region");
	const char *bad = bad_counts(o, counts);

	bad = bad ? bad : bad_counts(o, places);
	if (bad)
		return bad;
	for (size_t i = 0; places[i]; i++)
		if (json_integer_value(json_object_get(o, places[i])) >
		    (i % 3 ? UINT16_MAX : UINT32_MAX))
			return places[i];
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (!json_is_string(json_object_get(o, texts[i])))
			return texts[i];
	return region && !json_is_string(region) ? "region" : NULL;
}

static const char *bad_state(const json_t *o)
{
	static const char *const counts[] = {"offset", "bytes", "reads", "overwrites", NULL};
	static const char *const spot[] = {"call", "slot", "piece", NULL};
	const json_t *windows = json_object_get(o, "windows"), *role = json_object_get(o, "role");
	const json_t *region = json_object_get(o, "region");
	const char *bad = bad_counts(o, counts);

	if (bad || (!region && (bad = bad_counts(o, spot))))
		return bad;
	/* as wide as the engine's own */
	for (size_t i = 0; !region && spot[i]; i++)
		if (json_integer_value(json_object_get(o, spot[i])) > (i ? UINT16_MAX : UINT32_MAX))
			return spot[i];
	if (json_integer_value(json_object_get(o, "offset")) >
	    INT64_MAX - json_integer_value(json_object_get(o, "bytes")))
		return "bytes";
	if (region && (!json_is_string(region) || !*json_string_value(region)))
		return "region";
	if (!json_integer_value(json_object_get(o, "bytes")))
		return "bytes";
	if (!json_is_string(role) || (strcmp(json_string_value(role), "state") &&
				      strcmp(json_string_value(role), "unknown")))
		return "role";
	if (!json_is_string(json_object_get(o, "reader")))
		return "reader";
	if (!json_is_string(json_object_get(o, "writer")))
		return "writer";
	if (!json_is_array(windows))
		return "windows";
	for (size_t i = 0; i < json_array_size(windows); i++)
		if (!is_window(json_array_get(windows, i)))
			return "windows";
	return NULL;
}

const char *rs_run_bad_learned(const json_t *o, enum rs_learned_line kind)
{
	const json_t *name = json_object_get(o, "segment");

	if (!json_is_string(name) || !*json_string_value(name))
		return "segment";
	return kind == RS_RUN_LEARNED_SEGMENT ? bad_segment(o)
	       : kind == RS_RUN_LEARNED_STATE ? bad_state(o)
					      : bad_alias(o);
}
