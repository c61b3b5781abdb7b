/* SPDX-License-Identifier: MIT */
/*
 * A run as text, or as JSON. Both are made from struct rs_run and the verdict rules, so that they
 * cannot disagree. Callers: report and audit. No state.
 */
#ifndef RS_PLANNER_REPORT_H
#define RS_PLANNER_REPORT_H

#include "planner/rundir.h"
#include "planner/verdict.h"

struct rs_report_style {
	int color;
	int verbose; /* every finding and entry point, not the first few */
};

enum rs_report_format { RS_REPORT_TEXT, RS_REPORT_JSON, RS_REPORT_JSONL };

/* All runs, newest first, and a sum if there are several. Returns the worst verdict. */
enum rs_verdict rs_report_all(FILE *out, struct rs_run **runs, size_t n,
			      enum rs_report_format format, const struct rs_report_style *style);

void rs_report_text(FILE *out, const struct rs_run *run, const struct rs_report_style *style);

/* New references. The second is one flat object a line: run, segment..., finding..., summary. */
json_t *rs_report_json(const struct rs_run *run);
void rs_report_jsonl(FILE *out, const struct rs_run *run);

#endif
