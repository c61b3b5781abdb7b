/* SPDX-License-Identifier: MIT */
/*
 * The lines of a run into sums: one parser for each kind of line, and the aggregation.
 *
 * Invariants: every field is checked for its type before it is used; a line is taken whole or not at
 * all. Unknown kinds of line and unknown fields are passed over (fields are only added within v 1).
 * Callers: rundir.c, the fuzzer. Single-threaded, no locks.
 */
#include "planner/rundir.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const rs_outcome_names[3] = {"match", "rejection", "divergence"};
const char *const rs_seen_names[3] = {"equal", "different", "unknown"};

static const char *const aspect_names[3] = {"entry", "product", "after"};
static const char *const file_names[2] = {"events.jsonl", "records.jsonl"};

const struct rs_finding_info *rs_code_find(const char *code)
{
	unsigned long number;
	char *end;

	if ((code[0] | 32) == 'r' && (code[1] | 32) == 's')
		code += 2;
	if (*code < '0' || *code > '9')
		return NULL;
	number = strtoul(code, &end, 10);
	for (size_t i = 0; !*end && i < RS_FINDING_COUNT; i++)
		if (rs_findings[i].code == number)
			return &rs_findings[i];
	return NULL;
}

struct rs_run *rs_run_create(const char *path)
{
	struct rs_run *run = calloc(1, sizeof(*run));

	if (!run)
		return NULL;
	run->path = strdup(path);
	run->segment_index = json_object();
	run->finding_index = json_object();
	run->last_step = UINT64_MAX;
	if (run->path && run->segment_index && run->finding_index)
		return run;
	rs_run_free(run);
	return NULL;
}

void rs_run_free(struct rs_run *run)
{
	for (size_t i = 0; i < run->nsegments; i++) {
		free(run->segments[i].name);
		json_decref(run->segments[i].codes);
	}
	for (size_t i = 0; i < run->nfindings; i++)
		json_decref(run->findings[i].first);
	for (size_t i = 0; i < run->nproblems; i++)
		free(run->problems[i].text);
	free(run->segments);
	free(run->findings);
	free(run->problems);
	json_decref(run->segment_index);
	json_decref(run->finding_index);
	json_decref(run->begin);
	json_decref(run->stats);
	free(run->path);
	free(run);
}

__attribute__((format(printf, 2, 3))) static void problem(struct rs_run *run, const char *fmt, ...)
{
	struct rs_problem *v;
	va_list ap;
	int n;

	if (run->nproblems >= RS_RUN_PROBLEMS)
		return;
	v = realloc(run->problems, (run->nproblems + 1) * sizeof(*v));
	if (!v)
		return;
	run->problems = v;
	va_start(ap, fmt);
	n = vasprintf(&v[run->nproblems].text, fmt, ap);
	va_end(ap);
	run->nproblems += n >= 0;
}

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

static struct rs_run_segment *segment_of(struct rs_run *run, const char *name)
{
	json_t *index = json_object_get(run->segment_index, name);
	struct rs_run_segment *v, *s;

	if (index)
		return &run->segments[json_integer_value(index)];
	v = realloc(run->segments, (run->nsegments + 1) * sizeof(*v));
	if (!v)
		return NULL;
	run->segments = v;
	s = &v[run->nsegments];
	memset(s, 0, sizeof(*s));
	s->name = strdup(name);
	s->codes = json_object();
	if (!s->name || !s->codes ||
	    json_object_set_new(run->segment_index, name, json_integer(run->nsegments))) {
		free(s->name);
		json_decref(s->codes);
		return NULL;
	}
	run->nsegments++;
	return s;
}

static void add_codes(struct rs_run_segment *s, const json_t *codes)
{
	for (size_t i = 0; i < json_array_size(codes); i++) {
		const char *code = json_string_value(json_array_get(codes, i));
		json_t *count = json_object_get(s->codes, code);

		if (count)
			json_integer_set(count, json_integer_value(count) + 1);
		else
			json_object_set_new(s->codes, code, json_integer(1));
	}
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
	r->codes = json_object_get(o, "codes");
	return bad ? bad : bad_codes(r->codes);
}

static void add_replay(struct rs_run *run, const struct rs_replay *r)
{
	struct rs_run_segment *s = segment_of(run, r->segment);

	run->replays++;
	run->outcome[r->outcome]++;
	if (r->step != run->last_step)
		run->step_changes++;
	run->last_step = r->step;
	for (int a = 0; a < 3; a++)
		run->seen[a][r->seen[a]]++;
	if (!s)
		return;
	s->replays++;
	s->outcome[r->outcome]++;
	for (int a = 0; a < 3; a++)
		s->seen[a][r->seen[a]]++;
	s->bytes += r->bytes;
	s->ns += r->ns;
	if (r->invocation >= s->invocations)
		s->invocations = r->invocation + 1;
	add_codes(s, r->codes);
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
	const char *name = text(state, "name", bad);
	uint64_t serial = number(state, "serial", bad), offset = number(state, "offset", bad);
	char *key;
	int n;

	if ((state && !json_is_object(state)) || (writer && !json_is_object(writer)))
		*bad = state && !json_is_object(state) ? "state" : "writer";
	/* A named state is itself wherever the program has put it this time. */
	if (*name)
		serial = offset = 0;
	n = asprintf(&key, "%s\n%s\n%s\n%" PRIu64 "+%" PRIu64 "\n%s\n%s", code, segment, name,
		     serial, offset, text(writer, "kind", bad), text(writer, "name", bad));
	number(state, "bytes", bad);
	number(writer, "call", bad);
	number(writer, "step", bad);
	text(state, "addr", bad);
	text(writer, "how", bad);
	text(writer, "window", bad);
	text(o, "text", bad);
	return n < 0 ? NULL : key;
}

static const char *add_finding(struct rs_run *run, json_t *o)
{
	const char *bad = NULL, *code = text(o, "code", &bad), *segment = text(o, "segment", &bad);
	uint64_t step = number(o, "step", &bad);
	struct rs_run_finding *f, *v;
	enum rs_severity severity;
	json_t *index;
	char *key;

	if (bad || !*code || strlen(code) >= sizeof(f->code))
		return bad ? bad : "code";
	if (severity_of(text(o, "sev", &bad), code, &severity) || bad)
		return "sev";
	key = finding_key(o, code, segment, &bad);
	if (!key || bad) {
		free(key);
		return bad ? bad : "state";
	}
	index = json_object_get(run->finding_index, key);
	if (index) {
		f = &run->findings[json_integer_value(index)];
		f->count++;
		f->first_step = step < f->first_step ? step : f->first_step;
		f->last_step = step > f->last_step ? step : f->last_step;
	} else if ((v = realloc(run->findings, (run->nfindings + 1) * sizeof(*v)))) {
		run->findings = v;
		f = &v[run->nfindings];
		*f = (struct rs_run_finding){.first = json_incref(o),
					     .severity = severity,
					     .segment = segment,
					     .count = 1,
					     .first_step = step,
					     .last_step = step};
		strcpy(f->code, code);
		json_object_set_new(run->finding_index, key, json_integer(run->nfindings++));
	}
	free(key);
	return NULL;
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

/* Every number of a stats line is a count: integers, and the calls an object of integers. */
static const char *check_stats(json_t *o)
{
	json_t *calls = json_object_get(o, "calls"), *value;
	const char *key, *bad = NULL;

	if (calls && !json_is_object(calls))
		return "calls";
	json_object_foreach(calls, key, value) if (!json_is_integer(value) ||
						   json_integer_value(value) < 0) return "calls";
	json_object_foreach(o, key, value) if (json_is_number(value)) number(o, key, &bad);
	return bad ? "stats" : NULL;
}

static void keep(json_t **slot, json_t *o)
{
	json_decref(*slot);
	*slot = json_incref(o);
}

static const char *add_event(struct rs_run *run, json_t *o, const char *kind)
{
	const char *bad = NULL;

	if (!strcmp(kind, "finding")) {
		bad = add_finding(run, o);
	} else if (!strcmp(kind, "begin")) {
		bad = check_begin(o);
		if (!bad)
			keep(&run->begin, o);
	} else if (!strcmp(kind, "stats")) {
		bad = check_stats(o);
		/* Later numbers replace earlier ones; a short line leaves the others. */
		if (!bad && run->stats)
			json_object_update(run->stats, o);
		else if (!bad)
			keep(&run->stats, o);
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
		problem(run, "%s:%" PRIu64 ": the last line is cut off", file_names[file], lineno);
		return;
	}
	run->bad_lines++;
	problem(run, "%s:%" PRIu64 ": %s", file_names[file], lineno, why);
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
			add_replay(run, &replay);
		if (!bad && fn)
			fn(ctx, run, &replay);
	}
	if (bad) {
		snprintf(why, sizeof(why), "wrong or missing field '%s'", bad);
		unusable(run, file, lineno, 1, why);
	}
	json_decref(o);
}

/* Codes that say "nobody can know", as against "this went wrong". */
static int is_doubt(const char *code)
{
	static const unsigned doubts[] = {14, 16, 17, 18, 30, 60};
	const struct rs_finding_info *info = rs_code_find(code);

	for (size_t i = 0; info && i < sizeof(doubts) / sizeof(doubts[0]); i++)
		if (info->code == doubts[i])
			return 1;
	return 0;
}

static int worst_finding_first(const void *a, const void *b)
{
	const struct rs_run_finding *x = a, *y = b;
	int r;

	if (x->severity != y->severity)
		return x->severity < y->severity ? 1 : -1;
	r = strcmp(x->code, y->code);
	if (!r)
		r = strcmp(x->segment, y->segment);
	if (!r)
		r = (x->first_step > y->first_step) - (x->first_step < y->first_step);
	return r;
}

static int segment_by_name(const void *a, const void *b)
{
	return strverscmp(((const struct rs_run_segment *)a)->name,
			  ((const struct rs_run_segment *)b)->name);
}

void rs_run_finish(struct rs_run *run)
{
	const char *bad = NULL;
	uint64_t steps = number(run->stats, "steps", &bad);

	/* A run that was killed before its first statistics: its records tell. */
	run->steps = run->stats ? steps : run->step_changes;
	for (size_t i = 0; i < run->nfindings; i++) {
		struct rs_run_finding *f = &run->findings[i];
		struct rs_run_segment *s = *f->segment ? segment_of(run, f->segment) : NULL;

		f->doubt = is_doubt(f->code);
		if (!s || f->severity != RS_ERROR)
			continue;
		if (f->doubt)
			s->doubts += f->count;
		else
			s->errors += f->count;
	}
	if (run->nfindings)
		qsort(run->findings, run->nfindings, sizeof(*run->findings), worst_finding_first);
	if (run->nsegments)
		qsort(run->segments, run->nsegments, sizeof(*run->segments), segment_by_name);
}
