/* SPDX-License-Identifier: MIT */
/*
 * The planner's status as a table: one program a line, and below it what deserves a look. No state.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "planner/ask.h"
#include "planner/fmt.h"

static uint64_t get(const json_t *o, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(o, key));

	return n > 0 ? (uint64_t)n : 0;
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

static const char *bytes_or(const json_t *o, const char *key, const char *none, struct rs_fmt *f)
{
	uint64_t n = get(o, key);

	return n ? rs_fmt_bytes(f, n) : none;
}

static const char *state_of(const json_t *p, struct rs_fmt *f)
{
	const json_t *plan = json_object_get(p, "plan");

	if (json_is_true(json_object_get(p, "off")))
		return "off";
	if (!get(p, "budget"))
		return "no budget";
	if (json_is_true(json_object_get(plan, "infeasible")))
		return "infeasible";
	if (!get(plan, "generation"))
		return "measuring";
	if (get(plan, "taken") != get(plan, "generation"))
		return "given";
	snprintf(f->text, sizeof(f->text), "%s", text_of(plan, "state"));
	return f->text;
}

static void print_line(FILE *out, const json_t *p)
{
	struct rs_fmt f[6];
	const json_t *plan = json_object_get(p, "plan");
	char counts[64];

	snprintf(counts, sizeof(counts), "%" PRIu64 "/%" PRIu64 "/%" PRIu64, get(p, "replays"),
		 get(p, "rejections"), get(p, "divergences"));
	fprintf(out,
		"%7" PRIu64 " %4" PRIu64 " %-6.6s %8" PRIu64 " %9s %9s %9s %9s %9s %5" PRIu64
		" %-16s %-14s ",
		get(p, "pid"), get(p, "rank"), text_of(p, "device")[0] ? text_of(p, "device") : "-",
		get(p, "step"), rs_fmt_ns(&f[0], get(p, "step_ns")),
		rs_fmt_bytes(&f[1], get(p, "live_bytes")),
		rs_fmt_bytes(&f[2], get(p, "peak_bytes")),
		rs_fmt_bytes(&f[3], get(p, "arena_bytes")), bytes_or(p, "budget", "none", &f[4]),
		get(plan, "generation"), state_of(p, &f[5]), counts);
	rs_fmt_text(out, text_of(p, "program"));
	fputc('\n', out);
}

/* What is not as it should be, below the program's line. */
static void print_notes(FILE *out, const json_t *p)
{
	const json_t *lost = json_object_get(p, "lost"), *plan = json_object_get(p, "plan");
	const json_t *costs = json_object_get(p, "costs");
	uint64_t records = get(lost, "records"), threads = get(lost, "threads");
	struct rs_fmt f[2];

	if (records || threads)
		fprintf(out, "        lost: %s, %s without a ring\n",
			rs_fmt_plural(&f[0], records, "record"),
			rs_fmt_plural(&f[1], threads, "thread"));
	if (get(lost, "unbelievable"))
		fprintf(out, "        %s of numbers that cannot be\n",
			rs_fmt_plural(&f[0], get(lost, "unbelievable"), "record"));
	if (json_is_true(json_object_get(plan, "given_up")))
		fprintf(out, "        %s refused; no other is made for these segments and budget\n",
			rs_fmt_plural(&f[0], get(plan, "refusals"), "plan"));
	if (get(p, "budget") && !json_is_true(json_object_get(costs, "complete"))) {
		fputs("        no plan yet: ", out);
		rs_fmt_text(out, text_of(costs, "why"));
		fputc('\n', out);
	}
}

void rs_status_print(FILE *out, const json_t *status)
{
	const json_t *planner = json_object_get(status, "planner");
	const json_t *programs = json_object_get(status, "programs"), *p;
	struct rs_fmt f[4];
	size_t i;

	fprintf(out, "planner %" PRIu64 ", up %s, %s, %s made, device budget %s\n",
		get(planner, "pid"), rs_fmt_ns(&f[0], get(planner, "up_ns")),
		rs_fmt_plural(&f[1], json_array_size(programs), "program"),
		rs_fmt_plural(&f[2], get(planner, "plans"), "plan"),
		bytes_or(planner, "budget", "none", &f[3]));
	if (!json_array_size(programs))
		return;
	fprintf(out, "%7s %4s %-6s %8s %9s %9s %9s %9s %9s %5s %-16s %-14s %s\n", "PID", "RANK",
		"DEVICE", "STEP", "TIME", "USED", "PEAK", "ARENA", "BUDGET", "PLAN", "STATE",
		"REPLAY/REJ/DIV", "PROGRAM");
	json_array_foreach(programs, i, p)
	{
		print_line(out, p);
		print_notes(out, p);
	}
}
