/* SPDX-License-Identifier: MIT */
/*
 * The report for machines. Sizes are integer bytes, times integer ns, addresses hex strings; fields
 * are only added within v 1. Callers: cmd_report.c. No state.
 */
#include "planner/fmt.h"
#include "planner/place.h"
#include "planner/report.h"

#include <inttypes.h>
#include <stdio.h>

static void set_u64(json_t *o, const char *key, uint64_t n)
{
	json_object_set_new(o, key, json_integer((json_int_t)n));
}

static json_t *three(const uint64_t n[3], const char *const names[3])
{
	json_t *o = json_object();

	for (int i = 0; i < 3; i++)
		set_u64(o, names[i], n[i]);
	return o;
}

static json_t *segment_json(const struct rs_run_segment *s)
{
	json_t *o = json_object();

	json_object_set_new(o, "name", json_string(s->name));
	json_object_set_new(o, "verdict", json_string(rs_verdict_word(rs_verdict_segment(s))));
	set_u64(o, "invocations", s->invocations);
	set_u64(o, "replays", s->replays);
	json_object_set_new(o, "outcomes", three(s->outcome, rs_outcome_names));
	json_object_set_new(o, "entry", three(s->seen[RS_RUN_ENTRY], rs_seen_names));
	json_object_set_new(o, "product", three(s->seen[RS_RUN_PRODUCT], rs_seen_names));
	json_object_set_new(o, "after", three(s->seen[RS_RUN_AFTER], rs_seen_names));
	set_u64(o, "bytes", s->bytes);
	set_u64(o, "ns", s->ns);
	json_object_set(o, "codes", s->codes);
	return o;
}

static json_t *finding_json(const struct rs_run *run, const struct rs_run_finding *f)
{
	static const char *const copied[] = {"state", "writer",	    "noticed",
					     "text",  "invocation", "replay"};
	const struct rs_finding_info *info = rs_code_find(f->code);
	json_t *o = json_object(), *where;

	json_object_set_new(o, "code", json_string(f->code));
	json_object_set_new(o, "severity", json_string(rs_severity_name(f->severity)));
	json_object_set_new(o, "title", json_string(info ? info->title : ""));
	json_object_set_new(o, "action", json_string(info ? info->action : ""));
	json_object_set_new(o, "segment", json_string(f->segment));
	set_u64(o, "count", f->count);
	set_u64(o, "first_step", f->first_step);
	set_u64(o, "last_step", f->last_step);
	for (size_t i = 0; i < sizeof(copied) / sizeof(copied[0]); i++) {
		json_t *value = json_object_get(f->first, copied[i]);

		if (value)
			json_object_set(o, copied[i], value);
	}
	where = rs_place_json(run, rs_place_of(json_object_get(f->first, "writer")));
	if (where)
		json_object_set_new(o, "where", where);
	where = rs_place_json(run, rs_place_of(json_object_get(f->first, "noticed")));
	if (where)
		json_object_set_new(o, "noticed_where", where);
	return o;
}

static json_t *summary_json(const struct rs_run *run)
{
	json_t *o = json_object(), *reasons, *problems = json_array();
	enum rs_verdict v = rs_verdict_run(run, &reasons);

	json_object_set_new(o, "verdict", json_string(rs_verdict_word(v)));
	json_object_set_new(o, "reasons", reasons);
	set_u64(o, "errors", rs_verdict_count(run, RS_ERROR));
	set_u64(o, "warnings", rs_verdict_count(run, RS_WARN));
	set_u64(o, "notes", rs_verdict_count(run, RS_NOTE));
	set_u64(o, "steps", run->steps);
	set_u64(o, "replays", run->replays);
	json_object_set_new(o, "outcomes", three(run->outcome, rs_outcome_names));
	json_object_set_new(o, "ended", json_boolean(run->ended));
	json_object_set_new(o, "cut", json_boolean(run->cut));
	set_u64(o, "bad_lines", run->bad_lines);
	for (size_t i = 0; i < run->nproblems; i++)
		json_array_append_new(problems, rs_fmt_json(run->problems[i].text));
	json_object_set_new(o, "problems", problems);
	return o;
}

static json_t *head_json(const struct rs_run *run)
{
	json_t *o = json_object();

	json_object_set_new(o, "path", rs_fmt_json(run->path));
	json_object_set_new(o, "begin", run->begin ? json_incref(run->begin) : json_null());
	if (run->contract)
		json_object_set(o, "contract", run->contract);
	if (run->plan)
		json_object_set(o, "plan", run->plan);
	if (run->plan_refused)
		json_object_set(o, "plan_refused", run->plan_refused);
	return o;
}

json_t *rs_report_json(const struct rs_run *run)
{
	json_t *o = head_json(run), *segments = json_array(), *findings = json_array();

	json_object_update_new(o, summary_json(run));
	for (size_t i = 0; i < run->nsegments; i++)
		json_array_append_new(segments, segment_json(&run->segments[i]));
	for (size_t i = 0; i < run->nfindings; i++)
		json_array_append_new(findings, finding_json(run, &run->findings[i]));
	json_object_set_new(o, "segments", segments);
	json_object_set_new(o, "findings", findings);
	json_object_set_new(o, "coverage", run->stats ? json_incref(run->stats) : json_null());
	json_object_set(o, "bypasses", run->bypasses);
	return o;
}

static void line(FILE *out, const char *kind, json_t *o)
{
	json_t *head = json_pack("{s:i, s:s}", "v", 1, "t", kind);

	json_object_update_new(head, o);
	json_dumpf(head, out, JSON_COMPACT);
	putc('\n', out);
	json_decref(head);
}

void rs_report_jsonl(FILE *out, const struct rs_run *run)
{
	line(out, "run", head_json(run));
	for (size_t i = 0; i < run->nsegments; i++)
		line(out, "segment", segment_json(&run->segments[i]));
	for (size_t i = 0; i < run->nfindings; i++)
		line(out, "finding", finding_json(run, &run->findings[i]));
	if (run->stats)
		line(out, "coverage", json_pack("{s:O}", "stats", run->stats));
	for (size_t i = 0; i < json_array_size(run->bypasses); i++)
		line(out, "bypass", json_copy(json_array_get(run->bypasses, i)));
	line(out, "summary", summary_json(run));
}
