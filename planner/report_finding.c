/* SPDX-License-Identifier: MIT */
/* One finding for people: what, which state, who wrote it, what to do. Callers: report_text.c. No state. */
#include "planner/report_page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "planner/fmt.h"
#include "planner/place.h"

void rs_page_tinted(const struct rs_page *p, enum rs_tint tint, const char *text)
{
	const char *const codes[] = {"1", "1;31", "1;33", "1;32"};

	if (p->style->color)
		fprintf(p->out, "\033[%sm%s\033[0m", codes[tint], text);
	else
		fputs(text, p->out);
}

const char *rs_page_str(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

json_int_t rs_page_num(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

static void state_line(const struct rs_page *p, const json_t *state)
{
	const char *name = rs_page_str(state, "name");
	struct rs_fmt f;

	if (!json_object_size(state))
		return;
	fputs("      state     ", p->out);
	if (*name) {
		rs_fmt_text(p->out, name);
		fputs("  (", p->out);
	}
	fprintf(p->out, "allocation #%" JSON_INTEGER_FORMAT ", offset %" JSON_INTEGER_FORMAT,
		rs_page_num(state, "serial"), rs_page_num(state, "offset"));
	if (rs_page_num(state, "bytes"))
		fprintf(p->out, ", %s", rs_fmt_bytes(&f, rs_page_num(state, "bytes")));
	if (*rs_page_str(state, "addr")) {
		fputs(", at ", p->out);
		rs_fmt_text(p->out, rs_page_str(state, "addr"));
	}
	fputs(*name ? ")\n" : "\n", p->out);
}

static const char *how_phrase(const char *how)
{
	static const char *const phrases[][2] = {
		{"exact", "known exactly"},
		{"ptx", "proved from its PTX"},
		{"declared", "declared"},
		{"reachable", "can reach it from its arguments"},
		{"unknown", "may have written anything"},
	};

	for (size_t i = 0; i < sizeof(phrases) / sizeof(phrases[0]); i++)
		if (!strcmp(how, phrases[i][0]))
			return phrases[i][1];
	return how;
}

static void writer_line(const struct rs_page *p, const json_t *writer)
{
	const char *kind = rs_page_str(writer, "kind");

	if (!json_object_size(writer))
		return;
	fputs("      written by ", p->out);
	rs_fmt_text(p->out, !strcmp(kind, "unknown") ? "an unknown writer" : kind);
	if (*rs_page_str(writer, "name")) {
		putc(' ', p->out);
		rs_fmt_text(p->out, rs_page_str(writer, "name"));
	}
	if (*rs_page_str(writer, "how")) {
		fputs(" (", p->out);
		rs_fmt_text(p->out, how_phrase(rs_page_str(writer, "how")));
		putc(')', p->out);
	}
	if (json_object_get(writer, "call"))
		fprintf(p->out, ", call %" JSON_INTEGER_FORMAT " of step %" JSON_INTEGER_FORMAT,
			rs_page_num(writer, "call"), rs_page_num(writer, "step"));
	if (*rs_page_str(writer, "window")) {
		fputs(", in ", p->out);
		rs_fmt_text(p->out, rs_page_str(writer, "window"));
	}
	putc('\n', p->out);
}

/* Where the call was made: in a line, or frame by frame. */
static void place_line(const struct rs_page *p, const char *label, const json_t *call)
{
	json_int_t id = rs_place_of(call);
	char *text = id ? rs_place_text(p->run, id) : NULL;

	if (text && *text)
		fprintf(p->out, "      %-10s%s\n", label, text);
	if (id && p->style->verbose)
		rs_place_print(p->out, p->run, id, "      ");
	free(text);
}

void rs_page_finding(const struct rs_page *p, const struct rs_run_finding *f)
{
	static const enum rs_tint tints[] = {RS_TINT_GREEN, RS_TINT_YELLOW, RS_TINT_RED};
	static const char *const marks[] = {"[N]", "[W]", "[E]"};
	const struct rs_finding_info *info = rs_code_find(f->code);
	const char *detail = rs_page_str(f->first, "text");
	struct rs_fmt n;

	rs_page_tinted(p, tints[f->severity], marks[f->severity]);
	putc(' ', p->out);
	rs_fmt_text(p->out, f->code);
	fprintf(p->out, " %s    ", info ? info->title : "(a code of another version)");
	rs_fmt_text(p->out, *f->segment ? f->segment : "(no segment)");
	fprintf(p->out, "    %s, ", rs_fmt_plural(&n, f->count, "time"));
	if (f->first_step == f->last_step)
		fprintf(p->out, "step %" PRIu64 "\n", f->first_step);
	else
		fprintf(p->out, "steps %" PRIu64 " to %" PRIu64 "\n", f->first_step, f->last_step);
	state_line(p, json_object_get(f->first, "state"));
	writer_line(p, json_object_get(f->first, "writer"));
	place_line(p, "at", json_object_get(f->first, "writer"));
	place_line(p, "noticed", json_object_get(f->first, "noticed"));
	if (*detail && (!info || strcmp(detail, info->title))) {
		fputs("      detail    ", p->out);
		rs_fmt_text(p->out, detail);
		putc('\n', p->out);
	}
	if (info)
		fprintf(p->out, "      do        %s\n", info->action);
}
