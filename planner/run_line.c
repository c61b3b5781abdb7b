/* SPDX-License-Identifier: MIT */
/*
 * One line of a run's files: from bytes to a checked replay, finding or event.
 *
 * Invariants: every field is checked for its type before it is used; a line is taken whole or not at
 * all. Unknown kinds of line and unknown fields are passed over (fields are only added within v 1).
 * Callers: rundir.c, the fuzzer. Single-threaded, no locks.
 */
#include "planner/place.h"
#include "planner/run_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const aspect_names[3] = {"entry", "product", "after"};
static const char *const file_names[2] = {"events.jsonl", "records.jsonl"};

/* Number of `value` among three names; -1: none of them. */
static int name_of(const json_t *value, const char *const names[3])
{
	for (int i = 0; json_is_string(value) && i < 3; i++)
		if (!strcmp(json_string_value(value), names[i]))
			return i;
	return -1;
}

/* An absent number is 0; a wrong one names its field in *ret_bad. */
static uint64_t number(const json_t *o, const char *key, const char **ret_bad)
{
	const json_t *value = json_object_get(o, key);

	if (value && (!json_is_integer(value) || json_integer_value(value) < 0))
		*ret_bad = key;
	return value ? (uint64_t)json_integer_value(value) : 0;
}

static const char *text(const json_t *o, const char *key, const char **ret_bad)
{
	const json_t *value = json_object_get(o, key);

	if (value && !json_is_string(value))
		*ret_bad = key;
	return json_is_string(value) ? json_string_value(value) : "";
}

static const char *bad_codes(const json_t *codes)
{
	if (codes && !json_is_array(codes))
		return "codes";
	for (size_t i = 0; i < json_array_size(codes); i++)
		if (!json_is_string(json_array_get(codes, i)))
			return "codes";
	return NULL;
}

/* Returns the name of the field that is wrong, or NULL. */
static const char *parse_replay(const json_t *o, struct rs_replay *r)
{
	const json_t *name = json_object_get(o, "segment");
	const char *bad = NULL;
	int value;

	if (!json_is_string(name))
		return "segment";
	r->segment = json_string_value(name);
	value = name_of(json_object_get(o, "outcome"), rs_outcome_names);
	if (value < 0)
		return "outcome";
	r->outcome = value;
	for (int a = 0; a < 3; a++) {
		value = name_of(json_object_get(o, aspect_names[a]), rs_seen_names);
		if (value < 0)
			return aspect_names[a];
		r->seen[a] = value;
	}
	r->step = number(o, "step", &bad);
	r->invocation = number(o, "invocation", &bad);
	r->replay = number(o, "replay", &bad);
	r->ranges = number(o, "ranges", &bad);
	r->bytes = number(o, "bytes", &bad);
	r->ns = number(o, "ns", &bad);
	r->stack = number(o, "stack", &bad);
	r->codes = json_object_get(o, "codes");
	return bad ? bad : bad_codes(r->codes);
}

/* The code's own severity counts if the line has none. */
static int severity_of(const char *word, const char *code, enum rs_severity *ret)
{
	const struct rs_finding_info *info = rs_code_find(code);

	if (!*word)
		*ret = info ? info->severity : RS_WARN;
	else if (!strcmp(word, "error"))
		*ret = RS_ERROR;
	else if (!strcmp(word, "warning") || !strcmp(word, "warn"))
		*ret = RS_WARN;
	else if (!strcmp(word, "note"))
		*ret = RS_NOTE;
	else
		return -EINVAL;
	return 0;
}

static char *finding_key(const json_t *o, const char *code, const char *segment, const char **bad)
{
	const json_t *state = json_object_get(o, "state"), *writer = json_object_get(o, "writer");
	const json_t *noticed = json_object_get(o, "noticed");
	const char *name = text(state, "name", bad);
	uint64_t serial = number(state, "serial", bad), offset = number(state, "offset", bad);
	char *key;
	int n;

	if ((state && !json_is_object(state)) || (writer && !json_is_object(writer)))
		*bad = state && !json_is_object(state) ? "state" : "writer";
	if (noticed && !json_is_object(noticed))
		*bad = "noticed";
	/* A named state is itself wherever the program has put it this time. */
	if (*name)
		serial = offset = 0;
	n = asprintf(&key, "%s\n%s\n%s\n%" PRIu64 "+%" PRIu64 "\n%s\n%s", code, segment, name,
		     serial, offset, text(writer, "kind", bad), text(writer, "name", bad));
	number(state, "bytes", bad);
	number(writer, "call", bad);
	number(writer, "step", bad);
	number(writer, "stack", bad);
	number(noticed, "call", bad);
	number(noticed, "stack", bad);
	text(state, "addr", bad);
	text(writer, "how", bad);
	text(writer, "window", bad);
	text(o, "text", bad);
	return n < 0 ? NULL : key;
}

static const char *add_finding(struct rs_run *run, json_t *o)
{
	const char *bad = NULL;
	struct rs_finding_line line = {.code = text(o, "code", &bad),
				       .segment = text(o, "segment", &bad),
				       .step = number(o, "step", &bad)};

	if (bad || !*line.code || strlen(line.code) >= RS_CODE_SIZE)
		return bad ? bad : "code";
	if (severity_of(text(o, "sev", &bad), line.code, &line.severity) || bad)
		return "sev";
	line.key = finding_key(o, line.code, line.segment, &bad);
	if (line.key && !bad)
		rs_run_add_finding(run, o, &line);
	else if (!bad)
		bad = "state";
	free(line.key);
	return bad;
}

static const char *check_begin(const json_t *o)
{
	const json_t *argv = json_object_get(o, "argv");
	const char *bad = NULL;

	text(o, "host", &bad);
	text(o, "tool", &bad);
	text(o, "mode", &bad);
	text(o, "device", &bad);
	number(o, "pid", &bad);
	number(o, "rank", &bad);
	number(o, "driver", &bad);
	if (argv && !json_is_array(argv))
		bad = "argv";
	for (size_t i = 0; i < json_array_size(argv); i++)
		if (!json_is_string(json_array_get(argv, i)))
			bad = "argv";
	return bad;
}

/* Strings or nothing. */
static const char *bad_names(const json_t *o, const char *key)
{
	const json_t *names = json_object_get(o, key);

	if (names && !json_is_array(names))
		return key;
	for (size_t i = 0; i < json_array_size(names); i++)
		if (!json_is_string(json_array_get(names, i)))
			return key;
	return NULL;
}

/* Every number of a stats line is a count: integers, and the calls an object of integers. */
static const char *check_stats(json_t *o)
{
	static const char *const lists[] = {"unknown", "foreign", "tables"};
	json_t *calls = json_object_get(o, "calls"), *value;
	const char *key, *bad = NULL;

	if (calls && !json_is_object(calls))
		return "calls";
	json_object_foreach(calls, key, value) if (!json_is_integer(value) ||
						   json_integer_value(value) < 0) return "calls";
	json_object_foreach(o, key, value) if (json_is_number(value)) number(o, key, &bad);
	text(o, "unwinder", &bad);
	text(o, "python", &bad);
	for (size_t i = 0; !bad && i < sizeof(lists) / sizeof(lists[0]); i++)
		bad = bad_names(o, lists[i]);
	return bad ? "stats" : NULL;
}

static const char *check_bypass(const json_t *o)
{
	const json_t *matters = json_object_get(o, "matters");
	const char *bad = NULL;

	text(o, "object", &bad);
	text(o, "how", &bad);
	text(o, "imports", &bad);
	number(o, "step", &bad);
	return !bad && matters && !json_is_boolean(matters) ? "matters" : bad;
}

/* Later numbers replace earlier ones; a short line leaves the others. Calls may come in several lines. */
static void add_stats(struct rs_run *run, json_t *o)
{
	json_t *calls;

	if (!run->stats) {
		run->stats = json_incref(o);
		return;
	}
	calls = json_incref(json_object_get(run->stats, "calls"));
	if (calls)
		json_object_update(calls, json_object_get(o, "calls"));
	json_object_update(run->stats, o);
	if (calls)
		json_object_set_new(run->stats, "calls", calls);
}

static void keep(json_t **slot, json_t *o)
{
	json_decref(*slot);
	*slot = json_incref(o);
}

static const char *check_plan(const json_t *o)
{
	static const char *const texts[] = {"state", "source", "text"};
	static const char *const numbers[] = {
		"step",	      "generation",   "budget",	    "arena",	"predicted",
		"measured",   "steps",	      "time_ns",    "bound_ns", "segments",
		"at_segment", "at_predicted", "at_measured"};
	json_t *options = json_object_get(o, "options"), *value;
	const char *key, *bad = NULL;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		text(o, texts[i], &bad);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		number(o, numbers[i], &bad);
	if (options && !json_is_object(options))
		return "options";
	json_object_foreach(options, key, value)
	{
		number(options, key, &bad);
	}
	return bad;
}

/* A plan in force is told of again at the end, with what was measured until then. */
static void add_plan(struct rs_run *run, json_t *o)
{
	const char *bad = NULL, *state = text(o, "state", &bad);
	int taken = !strcmp(state, "in-force");

	if (taken || !strcmp(state, "none")) {
		run->plans_taken += taken && !number(o, "steps", &bad);
		keep(&run->plan, o);
	} else {
		run->plans_refused++;
		keep(&run->plan_refused, o);
	}
}

static void drop_plans(struct rs_run *run)
{
	json_decref(run->plan);
	json_decref(run->plan_refused);
	run->plan = run->plan_refused = NULL;
	run->plans_taken = run->plans_refused = 0;
}

static int is_cost(const char *kind)
{
	static const char *const kinds[] = {"cost", "share", "rate", "usage"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kind, kinds[i]))
			return 1;
	return 0;
}

/* A range is told of when it is met first, and at the end. */
static const char *add_range(struct rs_run *run, json_t *o)
{
	static const char *const texts[] = {"domain", "text", "kind", "rule"};
	const char *bad = NULL;
	char *key;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (!json_is_string(json_object_get(o, texts[i])))
			return texts[i];
	number(o, "count", &bad);
	if (bad || asprintf(&key, "%s\n%s\n%s\n%s", text(o, "domain", &bad), text(o, "rule", &bad),
			    text(o, "kind", &bad), text(o, "text", &bad)) < 0)
		return bad;
	json_object_set(run->ranges, key, o);
	free(key);
	return NULL;
}

static const char *add_markers(struct rs_run *run, json_t *o)
{
	const char *bad = NULL;

	text(o, "files", &bad);
	text(o, "text", &bad);
	number(o, "rules", &bad);
	number(o, "errors", &bad);
	number(o, "left_out", &bad);
	text(o, "wrong", &bad);
	text(o, "why", &bad);
	if (bad)
		return bad;
	json_object_update(run->markers, o);
	if (json_object_get(o, "wrong"))
		json_object_set_new(run->markers, "wrongs",
				    json_integer(1 + json_integer_value(json_object_get(
							     run->markers, "wrongs"))));
	return NULL;
}

static const char *add_event(struct rs_run *run, json_t *o, const char *kind)
{
	const char *bad = NULL;

	if (!strcmp(kind, "finding")) {
		bad = add_finding(run, o);
	} else if (!strcmp(kind, "begin")) {
		bad = check_begin(o);
		if (!bad) {
			keep(&run->begin, o);
			drop_plans(run);
			json_array_clear(run->learned[0]); /* those of a process before this one */
			json_array_clear(run->learned[1]);
			json_array_clear(run->learned[2]);
			rs_place_forget(run);
			json_object_clear(run->ranges);
			json_object_clear(run->markers);
			rs_run_forget_costs(run);
		}
	} else if (!strcmp(kind, "stats")) {
		bad = check_stats(o);
		if (!bad)
			add_stats(run, o);
	} else if (!strcmp(kind, "bypass")) {
		bad = check_bypass(o);
		if (!bad)
			json_array_append(run->bypasses, o);
	} else if (!strcmp(kind, "contract")) {
		text(o, "status", &bad);
		text(o, "file", &bad);
		text(o, "text", &bad);
		if (!bad)
			keep(&run->contract, o);
	} else if (!strcmp(kind, "range")) {
		bad = add_range(run, o);
	} else if (!strcmp(kind, "markers")) {
		bad = add_markers(run, o);
	} else if (!strcmp(kind, "plan")) {
		bad = check_plan(o);
		if (!bad)
			add_plan(run, o);
	} else if (!strcmp(kind, "segment") || !strcmp(kind, "state") || !strcmp(kind, "alias")) {
		enum rs_learned_line line = !strcmp(kind, "segment") ? RS_RUN_LEARNED_SEGMENT
					    : !strcmp(kind, "state") ? RS_RUN_LEARNED_STATE
								     : RS_RUN_LEARNED_ALIAS;

		bad = rs_run_bad_learned(o, line);
		if (!bad)
			json_array_append(run->learned[line], o);
	} else if (!strcmp(kind, "module")) {
		bad = rs_place_add_module(run, o);
	} else if (!strcmp(kind, "stack")) {
		bad = rs_place_add_stack(run, o);
	} else if (is_cost(kind)) {
		bad = rs_run_add_costs(run, kind, o);
	} else if (!strcmp(kind, "end")) {
		run->ended = 1;
	}
	return bad;
}

/* argv and names may hold bytes that are no UTF-8; they must not cost the whole line. */
static json_t *load(const char *line, size_t len, json_error_t *error)
{
	json_t *o = json_loadb(line, len, 0, error);
	char *ascii;

	if (o || json_error_code(error) != json_error_invalid_utf8)
		return o;
	ascii = malloc(len);
	if (!ascii)
		return NULL;
	for (size_t i = 0; i < len; i++)
		ascii[i] = (unsigned char)line[i] < 0x80 ? line[i] : '?';
	o = json_loadb(ascii, len, 0, error);
	free(ascii);
	return o;
}

static void unusable(struct rs_run *run, enum rs_run_file file, uint64_t lineno, int whole,
		     const char *why)
{
	if (!whole) {
		run->cut = 1;
		rs_run_problem(run, "%s:%" PRIu64 ": the last line is cut off", file_names[file],
			       lineno);
		return;
	}
	run->bad_lines++;
	rs_run_problem(run, "%s:%" PRIu64 ": %s", file_names[file], lineno, why);
}

void rs_run_unreadable(struct rs_run *run, enum rs_run_file file, int error)
{
	run->lines++;
	run->bad_lines++;
	rs_run_problem(run, "%s: %s", file_names[file], strerror(error));
}

void rs_run_feed(struct rs_run *run, enum rs_run_file file, uint64_t lineno, const char *line,
		 size_t len, int whole, rs_replay_fn *fn, void *ctx)
{
	const char *bad = NULL, *kind;
	struct rs_replay replay;
	json_error_t error;
	uint64_t version;
	char why[200];
	json_t *o;

	run->lines++;
	o = load(line, len, &error);
	if (!json_is_object(o)) {
		snprintf(why, sizeof(why), "not a JSON object: %s",
			 o ? "another value" : error.text);
		unusable(run, file, lineno, whole, why);
		json_decref(o);
		return;
	}
	kind = text(o, "t", &bad);
	version = number(o, "v", &bad);
	if (!bad && version > 1) {
		run->newer_lines++;
		unusable(run, file, lineno, 1, "written by a newer replayshim (v is not 1)");
		json_decref(o);
		return;
	}
	if (!bad && version != 1)
		bad = "v";
	if (!bad && file == RS_RUN_EVENTS)
		bad = add_event(run, o, kind);
	if (!bad && file == RS_RUN_RECORDS && !strcmp(kind, "replay")) {
		bad = parse_replay(o, &replay);
		if (!bad)
			rs_run_add_replay(run, &replay);
		if (!bad && fn)
			fn(ctx, run, &replay);
	}
	if (bad) {
		snprintf(why, sizeof(why), "wrong or missing field '%s'", bad);
		unusable(run, file, lineno, 1, why);
	}
	json_decref(o);
}
