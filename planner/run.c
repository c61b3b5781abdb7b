/* SPDX-License-Identifier: MIT */
/*
 * The sums of a run: replays by segment, findings by what repeats of them.
 *
 * Invariants: what comes in has been checked by run_line.c. The indices map names to places in the
 * arrays; rs_run_finish sorts these and thereby ends their use.
 * Callers: run_line.c, rundir.c, the fuzzer. Single-threaded, no locks.
 */
#include "planner/place.h"
#include "planner/run_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const rs_outcome_names[3] = {"match", "rejection", "divergence"};
const char *const rs_seen_names[3] = {"equal", "different", "unknown"};

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
	run->bypasses = json_array();
	run->ranges = json_object();
	run->markers = json_object();
	for (int i = 0; i < RS_RUN_LEARNED; i++)
		run->learned[i] = json_array();
	run->last_step = UINT64_MAX;
	if (run->path && run->segment_index && run->finding_index && run->bypasses && run->ranges &&
	    run->markers && run->learned[0] && run->learned[1] && run->learned[2])
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
	json_decref(run->bypasses);
	json_decref(run->ranges);
	json_decref(run->markers);
	json_decref(run->contract);
	json_decref(run->plan);
	json_decref(run->plan_refused);
	for (int i = 0; i < RS_RUN_LEARNED; i++)
		json_decref(run->learned[i]);
	rs_place_forget(run);
	rs_run_forget_costs(run);
	free(run->path);
	free(run);
}

void rs_run_problem(struct rs_run *run, const char *fmt, ...)
{
	struct rs_run_fault *v;
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

void rs_run_add_replay(struct rs_run *run, const struct rs_replay *r)
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

void rs_run_add_finding(struct rs_run *run, json_t *o, const struct rs_finding_line *line)
{
	json_t *index = json_object_get(run->finding_index, line->key);
	struct rs_run_finding *f, *v;

	if (index) {
		f = &run->findings[json_integer_value(index)];
		f->count++;
		f->first_step = line->step < f->first_step ? line->step : f->first_step;
		f->last_step = line->step > f->last_step ? line->step : f->last_step;
		/* the place may have been looked at only after it had happened once */
		if (!rs_place_of(json_object_get(f->first, "writer")) &&
		    rs_place_of(json_object_get(o, "writer")))
			json_object_set(f->first, "writer", json_object_get(o, "writer"));
		return;
	}
	v = realloc(run->findings, (run->nfindings + 1) * sizeof(*v));
	if (!v)
		return;
	run->findings = v;
	f = &v[run->nfindings];
	*f = (struct rs_run_finding){.first = json_incref(o),
				     .severity = line->severity,
				     .segment = line->segment,
				     .count = 1,
				     .first_step = line->step,
				     .last_step = line->step};
	strcpy(f->code, line->code);
	json_object_set_new(run->finding_index, line->key, json_integer(run->nfindings++));
}

/* Codes that say "nobody can know", as against "this went wrong". */
static int is_doubt(const char *code)
{
	static const unsigned doubts[] = {14, 16, 17, 18, 30, 60, 61, 80, 81, 84};
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
	/* A run that was killed before its first statistics: its records tell. */
	run->steps = run->stats ? (uint64_t)json_integer_value(json_object_get(run->stats, "steps"))
				: run->step_changes;
	for (size_t i = 0; i < run->nfindings; i++) {
		struct rs_run_finding *f = &run->findings[i];
		struct rs_run_segment *s;

		f->doubt = is_doubt(f->code);
		/* a note alone makes no segment that would have to be judged */
		s = *f->segment && f->severity == RS_ERROR ? segment_of(run, f->segment) : NULL;
		if (!s)
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
