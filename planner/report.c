/* SPDX-License-Identifier: MIT */
/* Several runs in one report, in any format. Callers: report and audit. No state. */
#include "planner/report.h"

#include <inttypes.h>

#include "planner/fmt.h"

struct sum {
	enum rs_verdict worst;
	uint64_t findings[3], replays, outcome[3];
};

static void add(struct sum *sum, const struct rs_run *run)
{
	enum rs_verdict v = rs_verdict_run(run, NULL);

	sum->worst = v > sum->worst ? v : sum->worst;
	sum->replays += run->replays;
	for (int i = 0; i < 3; i++) {
		sum->findings[i] += rs_verdict_count(run, i);
		sum->outcome[i] += run->outcome[i];
	}
}

static void all_text(FILE *out, struct rs_run **runs, size_t n, const struct sum *sum,
		     const struct rs_report_style *style)
{
	struct rs_fmt e, w, o, r;

	if (n > 1)
		fprintf(out, "==rs== %zu processes, newest first; the worst verdict is %s\n\n", n,
			rs_verdict_phrase(sum->worst));
	for (size_t i = 0; i < n; i++) {
		rs_report_text(out, runs[i], style);
		if (n > 1)
			putc('\n', out);
	}
	if (n < 2)
		return;
	fprintf(out, "==rs== AUDIT SUMMARY: %zu processes: %s, %s, %s; %s: ", n,
		rs_fmt_plural(&e, sum->findings[RS_ERROR], "error"),
		rs_fmt_plural(&w, sum->findings[RS_WARN], "warning"),
		rs_fmt_plural(&o, sum->findings[RS_NOTE], "note"),
		rs_fmt_plural(&r, sum->replays, "replay"));
	fprintf(out,
		"%" PRIu64 " match, %" PRIu64 " rejection, %" PRIu64 " divergence; verdict %s\n",
		sum->outcome[0], sum->outcome[1], sum->outcome[2], rs_verdict_word(sum->worst));
}

static void all_json(FILE *out, struct rs_run **runs, size_t n, const struct sum *sum)
{
	json_t *list = json_array(), *o;

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, rs_report_json(runs[i]));
	o = json_pack("{s:i, s:s, s:s, s:o}", "v", 1, "tool", RS_VERSION, "verdict",
		      rs_verdict_word(sum->worst), "runs", list);
	json_dumpf(o, out, JSON_INDENT(2));
	putc('\n', out);
	json_decref(o);
}

enum rs_verdict rs_report_all(FILE *out, struct rs_run **runs, size_t n,
			      enum rs_report_format format, const struct rs_report_style *style)
{
	struct sum sum = {0};

	for (size_t i = 0; i < n; i++)
		add(&sum, runs[i]);
	if (format == RS_REPORT_TEXT)
		all_text(out, runs, n, &sum, style);
	else if (format == RS_REPORT_JSON)
		all_json(out, runs, n, &sum);
	for (size_t i = 0; format == RS_REPORT_JSONL && i < n; i++)
		rs_report_jsonl(out, runs[i]);
	return sum.worst;
}
