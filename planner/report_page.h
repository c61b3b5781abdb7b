/* SPDX-License-Identifier: MIT */
/* What the parts of the text report share. Callers: report_*.c. */
#ifndef RS_PLANNER_REPORT_PAGE_H
#define RS_PLANNER_REPORT_PAGE_H

#include "planner/report.h"

struct rs_page {
	FILE *out;
	const struct rs_report_style *style;
	const struct rs_run *run;
	json_int_t rank;
};

enum rs_tint { RS_TINT_BOLD, RS_TINT_RED, RS_TINT_YELLOW, RS_TINT_GREEN };

void rs_page_tinted(const struct rs_page *p, enum rs_tint tint, const char *text);

/* A member of an object that was checked on reading; absent is "" and 0, also of a NULL object. */
const char *rs_page_str(const json_t *o, const char *key);
json_int_t rs_page_num(const json_t *o, const char *key);

/* A block begins: an empty line, its word, up to the column of its text. */
void rs_page_title(const struct rs_page *p, const char *word);
void rs_page_finding(const struct rs_page *p, const struct rs_run_finding *f);
void rs_page_coverage(const struct rs_page *p);
void rs_page_plan(const struct rs_page *p);

#endif
