/* SPDX-License-Identifier: MIT */
/*
 * The report for people: verdict first, then segments, findings, coverage, what to do next, and a
 * last line to grep for. Every number has a unit, what could not be told is printed, no safety is
 * claimed. Callers: report and audit. No state.
 */
#include "planner/report_page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "planner/fmt.h"

#define FEW_FINDINGS 12

static enum rs_tint tint_of(enum rs_verdict v)
{
	return v == RS_VERDICT_HAZARD	     ? RS_TINT_RED
	       : v == RS_VERDICT_CANNOT_TELL ? RS_TINT_YELLOW
					     : RS_TINT_GREEN;
}

void rs_page_title(const struct rs_page *p, const char *word)
{
	putc('\n', p->out);
	rs_page_tinted(p, RS_TINT_BOLD, word);
	fprintf(p->out, "%*s", (int)(10 - strlen(word)), "");
}

/* A field of the head line, if it is known. */
static void head_field(const struct rs_page *p, const char *label, const char *value)
{
	if (!*value)
		return;
	fprintf(p->out, "   %s%s", label, *label ? " " : "");
	rs_fmt_text(p->out, value);
}

static void head(const struct rs_page *p)
{
	const json_t *b = p->run->begin;
	json_int_t driver = rs_page_num(b, "driver");
	struct rs_fmt f;

	fprintf(p->out, "==rs r%" JSON_INTEGER_FORMAT "== replayshim %s %s", p->rank,
		rs_page_str(b, "tool"), b ? rs_page_str(b, "mode") : "(no begin event)");
	head_field(p, "host", rs_page_str(b, "host"));
	if (b)
		fprintf(p->out, "   pid %" JSON_INTEGER_FORMAT, rs_page_num(b, "pid"));
	if (json_array_size(json_object_get(b, "argv"))) {
		fputs("   ", p->out);
		rs_fmt_argv(p->out, json_object_get(b, "argv"));
	}
	fprintf(p->out, "\n==rs r%" JSON_INTEGER_FORMAT "== data ", p->rank);
	rs_fmt_text(p->out, p->run->path);
	head_field(p, "device", rs_page_str(b, "device"));
	if (driver)
		fprintf(p->out, "   driver %" JSON_INTEGER_FORMAT ".%" JSON_INTEGER_FORMAT,
			driver / 1000, driver % 1000 / 10);
	fprintf(p->out, "   %s", rs_fmt_plural(&f, p->run->steps, "step"));
	fputs(p->run->ended ? "\n" : "   ENDED EARLY\n", p->out);
	if (!p->run->contract)
		return;
	fprintf(p->out, "==rs r%" JSON_INTEGER_FORMAT "== contract ", p->rank);
	rs_fmt_text(p->out, rs_page_str(p->run->contract, "file"));
	head_field(p, "", rs_page_str(p->run->contract, "status"));
	fprintf(p->out, "   %s\n",
		rs_fmt_plural(&f, (uint64_t)rs_page_num(p->run->contract, "segments"), "segment"));
}

static void verdict(const struct rs_page *p, enum rs_verdict v, const json_t *reasons)
{
	rs_page_title(p, "VERDICT");
	rs_page_tinted(p, tint_of(v), rs_verdict_phrase(v));
	putc('\n', p->out);
	for (size_t i = 0; i < json_array_size(reasons); i++)
		fprintf(p->out, "          %s\n", json_string_value(json_array_get(reasons, i)));
	if (p->run->ended)
		return;
	fprintf(p->out,
		"          The run ended early: there is no end event, so the process was killed, "
		"left by _exit,\n          or still runs. What follows is what it had written%s.\n",
		p->run->cut ? "; its last line is cut off" : "");
}

/* "equal", or the worst with its share: "different 3/24". */
static void seen_cell(char cell[64], const uint64_t n[3])
{
	int worst = n[RS_RUN_DIFFERENT] ? RS_RUN_DIFFERENT
		    : n[RS_RUN_UNKNOWN] ? RS_RUN_UNKNOWN
					: RS_RUN_EQUAL;
	uint64_t all = n[0] + n[1] + n[2];

	if (!all)
		strcpy(cell, "-");
	else if (n[worst] == all)
		strcpy(cell, rs_seen_names[worst]);
	else
		snprintf(cell, 64, "%s %" PRIu64 "/%" PRIu64, rs_seen_names[worst], n[worst], all);
}

static void segment_row(const struct rs_page *p, const struct rs_run_segment *s, int width)
{
	enum rs_verdict v = rs_verdict_segment(s);
	char cells[3][64];
	const char *code;
	json_t *count;
	int n;

	for (int a = 0; a < 3; a++)
		seen_cell(cells[a], s->seen[a]);
	fputs("  ", p->out);
	n = rs_fmt_text(p->out, s->name);
	fprintf(p->out, "%*s %4" PRIu64 " %7" PRIu64 " %6" PRIu64 " %6" PRIu64 " %7" PRIu64 "  ",
		n < width ? width - n : 0, "", s->invocations, s->replays, s->outcome[RS_RUN_MATCH],
		s->outcome[RS_RUN_REJECTION], s->outcome[RS_RUN_DIVERGENCE]);
	fprintf(p->out, "%-15s %-15s %-15s ", cells[0], cells[1], cells[2]);
	rs_page_tinted(p, tint_of(v), rs_verdict_word(v));
	json_object_foreach(s->codes, code, count)
	{
		putc(' ', p->out);
		rs_fmt_text(p->out, code);
	}
	putc('\n', p->out);
}

static void segments(const struct rs_page *p)
{
	uint64_t n[3] = {0};
	int width = 8;

	for (size_t i = 0; i < p->run->nsegments; i++) {
		int len = strlen(p->run->segments[i].name);

		n[rs_verdict_segment(&p->run->segments[i])]++;
		width = len > width ? len : width;
	}
	rs_page_title(p, "SEGMENTS");
	fprintf(p->out,
		"%zu replayed: %" PRIu64 " clean, %" PRIu64 " hazard, %" PRIu64 " cannot tell\n",
		p->run->nsegments, n[RS_VERDICT_CLEAN], n[RS_VERDICT_HAZARD],
		n[RS_VERDICT_CANNOT_TELL]);
	if (!p->run->nsegments)
		return;
	width = width > 40 ? 40 : width;
	fprintf(p->out, "  %-*s %4s %7s %6s %6s %7s  %-15s %-15s %-15s %s\n", width, "name", "inv",
		"replays", "match", "reject", "diverge", "entry", "product", "after", "verdict");
	for (size_t i = 0; i < p->run->nsegments; i++)
		segment_row(p, &p->run->segments[i], width);
}

static void findings(const struct rs_page *p)
{
	size_t n = p->run->nfindings;
	struct rs_fmt e, w, o;

	rs_page_title(p, "FINDINGS");
	fprintf(p->out, "%s, %s, %s\n",
		rs_fmt_plural(&e, rs_verdict_count(p->run, RS_ERROR), "error"),
		rs_fmt_plural(&w, rs_verdict_count(p->run, RS_WARN), "warning"),
		rs_fmt_plural(&o, rs_verdict_count(p->run, RS_NOTE), "note"));
	if (!p->style->verbose && n > FEW_FINDINGS)
		n = FEW_FINDINGS;
	for (size_t i = 0; i < n; i++)
		rs_page_finding(p, &p->run->findings[i]);
	if (n < p->run->nfindings)
		fprintf(p->out, "  ... %zu more: -v\n", p->run->nfindings - n);
}

static void next_steps(const struct rs_page *p, enum rs_verdict v)
{
	const json_t *argv = json_object_get(p->run->begin, "argv");
	int preserving = !strcmp(rs_page_str(p->run->begin, "mode"), "preserve");
	const char *last = "";

	rs_page_title(p, "NEXT");
	if (!p->run->replays)
		fputs("mark the segments (README.md, \"Marking segments\"), then run again\n",
		      p->out);
	else if (v != RS_VERDICT_CLEAN && !preserving && json_array_size(argv)) {
		fputs("replayctl run --mode=preserve -- ", p->out);
		rs_fmt_argv(p->out, argv);
		putc('\n', p->out);
	} else if (v == RS_VERDICT_CLEAN || !p->run->nfindings) {
		fputs("nothing needs to be done\n", p->out);
	} else {
		fputs("see what each finding says to do\n", p->out);
	}
	fputs("          replayctl records ", p->out);
	if (p->run->outcome[RS_RUN_DIVERGENCE])
		fputs("--outcome=divergence ", p->out);
	rs_fmt_shell(p->out, p->run->path);
	putc('\n', p->out);
	for (size_t i = 0; i < p->run->nfindings; i++) {
		const struct rs_run_finding *f = &p->run->findings[i];

		if (!strcmp(f->code, last) || !rs_code_find(f->code))
			continue;
		fputs(*last ? " " : "          replayctl explain ", p->out);
		fputs(f->code, p->out);
		last = f->code;
	}
	if (*last)
		putc('\n', p->out);
}

void rs_report_text(FILE *out, const struct rs_run *run, const struct rs_report_style *style)
{
	struct rs_page page = {out, style, run, rs_page_num(run->begin, "rank")};
	struct rs_fmt e, w, n, r;
	enum rs_verdict v;
	json_t *reasons;

	v = rs_verdict_run(run, &reasons);
	head(&page);
	verdict(&page, v, reasons);
	json_decref(reasons);
	rs_page_plan(&page);
	segments(&page);
	findings(&page);
	rs_page_coverage(&page);
	next_steps(&page, v);
	fprintf(out, "==rs== AUDIT SUMMARY: %s, %s, %s; %s: ",
		rs_fmt_plural(&e, rs_verdict_count(run, RS_ERROR), "error"),
		rs_fmt_plural(&w, rs_verdict_count(run, RS_WARN), "warning"),
		rs_fmt_plural(&n, rs_verdict_count(run, RS_NOTE), "note"),
		rs_fmt_plural(&r, run->replays, "replay"));
	fprintf(out,
		"%" PRIu64 " match, %" PRIu64 " rejection, %" PRIu64 " divergence; verdict %s\n",
		run->outcome[0], run->outcome[1], run->outcome[2], rs_verdict_word(v));
}
