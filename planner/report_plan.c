/* SPDX-License-Identifier: MIT */
/*
 * The plan block of the report for people: what was obeyed, what it was predicted to take and what it took, and
 * what became of other plans. Callers: report_text.c. No state.
 */
#include "planner/report_page.h"

#include <inttypes.h>
#include <string.h>

#include "planner/fmt.h"

static const char *phrase(const char *state)
{
	static const char *const phrases[][2] = {
		{"in-force", "in force"},
		{"none", "withdrawn by the planner"},
		{"infeasible", "none: nothing fits into the budget"},
		{"refused-peak", "refused: its first step took more memory than predicted"},
		{"refused-memory", "refused: the device had no room for what it preserves"},
		{"refused-segments", "refused: made for other segments"},
		{"refused-form", "refused: malformed"},
	};

	for (size_t i = 0; i < sizeof(phrases) / sizeof(phrases[0]); i++)
		if (!strcmp(phrases[i][0], state))
			return phrases[i][1];
	return state;
}

static uint64_t bytes_of(const json_t *plan, const char *key)
{
	return (uint64_t)rs_page_num(plan, key);
}

static void in_force(const struct rs_page *p, json_t *plan)
{
	uint64_t measured = bytes_of(plan, "measured"), budget = bytes_of(plan, "budget");
	const char *option, *comma = "";
	struct rs_fmt f[4];
	json_t *count;

	fprintf(p->out, "          peak %s predicted, %s measured, budget %s",
		rs_fmt_bytes(&f[0], bytes_of(plan, "predicted")),
		measured ? rs_fmt_bytes(&f[1], measured) : "not yet",
		budget ? rs_fmt_bytes(&f[2], budget) : "none");
	if (budget && measured > budget)
		rs_page_tinted(p, RS_TINT_RED, "   EXCEEDED");
	fprintf(p->out, "\n          %s (",
		rs_fmt_plural(&f[0], bytes_of(plan, "segments"), "segment"));
	json_object_foreach(json_object_get(plan, "options"), option, count)
	{
		fputs(comma, p->out);
		fprintf(p->out, "%" JSON_INTEGER_FORMAT " ", json_integer_value(count));
		rs_fmt_text(p->out, option);
		comma = ", ";
	}
	fprintf(p->out, "), %s preserved at most, adds %s to a step\n",
		rs_fmt_bytes(&f[1], bytes_of(plan, "arena")),
		rs_fmt_ns(&f[2], bytes_of(plan, "time_ns")));
}

static void refused(const struct rs_page *p, const json_t *plan)
{
	const char *text = rs_page_str(plan, "text");

	fprintf(p->out,
		"          last of %" PRIu64 " that were not taken: ", p->run->plans_refused);
	rs_fmt_text(p->out, phrase(rs_page_str(plan, "state")));
	fprintf(p->out, ", step %" JSON_INTEGER_FORMAT, rs_page_num(plan, "step"));
	if (*text) {
		fputs(": ", p->out);
		rs_fmt_text(p->out, text);
	}
	putc('\n', p->out);
}

void rs_page_plan(const struct rs_page *p)
{
	const struct rs_run *run = p->run;

	if (!run->plan && !run->plan_refused)
		return;
	rs_page_title(p, "PLAN");
	if (!run->plan) {
		fputs("none was taken\n", p->out);
	} else {
		fputs(phrase(rs_page_str(run->plan, "state")), p->out);
		fprintf(p->out, ", number %" JSON_INTEGER_FORMAT " of ",
			rs_page_num(run->plan, "generation"));
		rs_fmt_text(p->out, rs_page_str(run->plan, "source"));
		fprintf(p->out, ", %" PRIu64 " taken in all\n", run->plans_taken);
		in_force(p, run->plan);
	}
	if (run->plan_refused)
		refused(p, run->plan_refused);
}
