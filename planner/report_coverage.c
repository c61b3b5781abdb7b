/* SPDX-License-Identifier: MIT */
/*
 * The coverage block of the report for people: how much was seen, and all that was not. Callers: report_text.c.
 * No state.
 */
#include "planner/report_page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "planner/fmt.h"

#define FEW_CALLS 6

struct call_count {
	const char *name;
	json_int_t n;
};

static int most_first(const void *a, const void *b)
{
	const struct call_count *x = a, *y = b;

	return x->n != y->n ? (x->n < y->n ? 1 : -1) : strcmp(x->name, y->name);
}

static void calls(const struct rs_page *p, json_t *map)
{
	size_t n = json_object_size(map), i = 0, few = FEW_CALLS;
	struct call_count *v = calloc(n + 1, sizeof(*v));
	json_int_t rest = 0;
	struct rs_fmt f;
	const char *key;
	json_t *value;

	if (!v || !n) {
		free(v);
		return;
	}
	json_object_foreach(map, key, value) v[i++] =
		(struct call_count){key, json_integer_value(value)};
	qsort(v, n, sizeof(*v), most_first);
	few = p->style->verbose || n < few ? n : few;
	fputs("          calls", p->out);
	for (i = 0; i < few; i++) {
		fputs(i ? ", " : " ", p->out);
		rs_fmt_text(p->out, v[i].name);
		fprintf(p->out, " %s", rs_fmt_count(&f, v[i].n));
	}
	for (; i < n; i++)
		rest += v[i].n;
	if (few < n)
		fprintf(p->out, ", %zu other entry points %s", n - few, rs_fmt_count(&f, rest));
	putc('\n', p->out);
	free(v);
}

/* "label N", or "label N: name, name" for the first of them. */
static void counted(const struct rs_page *p, const char *label, uint64_t n, const json_t *names)
{
	struct rs_fmt f;

	fprintf(p->out, "%s %s", label, rs_fmt_count(&f, n));
	for (size_t i = 0; i < json_array_size(names); i++) {
		fputs(i ? ", " : " (", p->out);
		rs_fmt_text(p->out, json_string_value(json_array_get(names, i)));
	}
	if (json_array_size(names))
		putc(')', p->out);
}

static void bypasses(const struct rs_page *p, const json_t *s)
{
	uint64_t all = rs_page_num(s, "bypass") + rs_page_num(s, "bypass_idle");
	size_t n = json_array_size(p->run->bypasses);

	all = all > n ? all : n;
	fputs("          ", p->out);
	counted(p, "objects past the library", all, NULL);
	fputs(n ? ":\n" : "\n", p->out);
	for (size_t i = 0; i < n; i++) {
		const json_t *o = json_array_get(p->run->bypasses, i);

		fputs("            ", p->out);
		rs_fmt_text(p->out, rs_page_str(o, "object"));
		fputs(" (", p->out);
		rs_fmt_text(p->out, rs_page_str(o, "how"));
		fputs(", ", p->out);
		rs_fmt_text(p->out, rs_page_str(o, "imports"));
		fputs(json_is_true(json_object_get(o, "matters"))
			      ? ")\n"
			      : "), with no sign that it uses the driver\n",
		      p->out);
	}
}

static void unseen(const struct rs_page *p, const json_t *s)
{
	struct rs_fmt a;

	fputs("          ", p->out);
	counted(p, "entry points unknown to the tool", rs_page_num(s, "unknown_names"),
		json_object_get(s, "unknown"));
	counted(p, ", of another library than the driver", rs_page_num(s, "foreign_names"),
		json_object_get(s, "foreign"));
	fputs("\n          ", p->out);
	counted(p, "private tables asked for", rs_page_num(s, "export_tables"),
		p->style->verbose ? json_object_get(s, "tables") : NULL);
	if (rs_page_num(s, "by_name"))
		counted(p, ", wrappers chosen by name", rs_page_num(s, "by_name"), NULL);
	if (rs_page_num(s, "draws_unfollowed"))
		counted(p, ", cuRAND draws not followed", rs_page_num(s, "draws_unfollowed"), NULL);
	if (json_object_get(s, "snapshot_bytes_peak"))
		fprintf(p->out, ", preserved at most %s",
			rs_fmt_bytes(&a, rs_page_num(s, "snapshot_bytes_peak")));
	putc('\n', p->out);
}

/* Of the calls that findings may name: how many places are known, and by what. */
static void places(const struct rs_page *p, const json_t *s)
{
	json_int_t asked = rs_page_num(s, "stacks_asked"), known = rs_page_num(s, "stacks_known");
	const char *python = rs_page_str(s, "python");
	struct rs_fmt f;

	if (!json_object_get(s, "stacks_asked"))
		return;
	if (asked > 0)
		fprintf(p->out, "          stacks %d%% of %s", (int)(100.0 * known / asked),
			rs_fmt_count(&f, asked));
	else
		fputs("          stacks: none was needed", p->out);
	if (rs_page_num(s, "stacks_refused"))
		counted(p, ", without room", rs_page_num(s, "stacks_refused"), NULL);
	fputs(", by ", p->out);
	rs_fmt_text(p->out, rs_page_str(s, "unwinder"));
	if (*python) {
		fputs("; Python ", p->out);
		rs_fmt_text(p->out, python);
	}
	putc('\n', p->out);
}

void rs_page_coverage(const struct rs_page *p)
{
	const json_t *s = p->run->stats;
	struct rs_fmt a;

	rs_page_title(p, "COVERAGE");
	if (s) {
		counted(p, "launches", rs_page_num(s, "launches"), NULL);
		counted(p, ", of them by unknown writers", rs_page_num(s, "opaque_launches"), NULL);
		counted(p, ", of kernels not seen loaded", rs_page_num(s, "unknown_kernels"), NULL);
		if (rs_page_num(s, "opaque_graphs"))
			counted(p, ", of graphs not described", rs_page_num(s, "opaque_graphs"),
				NULL);
		counted(p, "; events lost", rs_page_num(s, "lost"), NULL);
		if (rs_page_num(s, "lost_threads"))
			counted(p, ", threads among them", rs_page_num(s, "lost_threads"), NULL);
		putc('\n', p->out);
		calls(p, json_object_get(s, "calls"));
		unseen(p, s);
		places(p, s);
	} else {
		fputs("not known: no statistics were written before the run ended\n", p->out);
	}
	bypasses(p, s);
	fprintf(p->out, "          This run saw %s; paths not run were not judged.\n",
		rs_fmt_plural(&a, p->run->steps, "step"));
	for (size_t i = 0; i < p->run->nproblems; i++) {
		fputs("          ", p->out);
		rs_fmt_text(p->out, p->run->problems[i].text);
		putc('\n', p->out);
	}
	if (p->run->bad_lines > p->run->nproblems)
		fprintf(p->out, "          ... %" PRIu64 " unusable lines in all\n",
			p->run->bad_lines);
}
