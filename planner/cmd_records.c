/* SPDX-License-Identifier: MIT */
/*
 * replayctl records: the execution records, filtered, as they stand in the files. They are streamed:
 * a run of any length needs no memory. Exit status 0, 2 or 3; damaged lines are told on stderr.
 */
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "planner/ctl.h"
#include "planner/fmt.h"
#include "planner/place.h"
#include "planner/rundir.h"

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_CSV };

struct listing {
	enum format format;
	const char *outcome, *segment;
	int headed;
	uint64_t shown;
};

static int parse(int argc, char **argv, struct listing *l)
{
	static const struct option options[] = {{"outcome", required_argument, NULL, 'o'},
						{"segment", required_argument, NULL, 's'},
						{"format", required_argument, NULL, 'f'},
						{NULL, 0, NULL, 0}};
	const char *format = "text";
	int opt, known = 0;

	while ((opt = getopt_long(argc, argv, "f:", options, NULL)) >= 0) {
		if (opt == 'o')
			l->outcome = optarg;
		else if (opt == 's')
			l->segment = optarg;
		else if (opt == 'f')
			format = optarg;
		else
			return rs_ctl_bad_option("records", RS_EXIT_USAGE);
	}
	for (int i = 0; l->outcome && i < 3; i++)
		known |= !strcmp(l->outcome, rs_outcome_names[i]);
	if (l->outcome && !known)
		return rs_ctl_usage("records", RS_EXIT_USAGE,
				    "--outcome takes match, rejection or divergence");
	if (!strcmp(format, "json"))
		l->format = FORMAT_JSON;
	else if (!strcmp(format, "csv"))
		l->format = FORMAT_CSV;
	else if (strcmp(format, "text"))
		return rs_ctl_usage("records", RS_EXIT_USAGE, "no format '%s'", format);
	if (optind == argc)
		return rs_ctl_usage("records", RS_EXIT_USAGE, "which directory?");
	return 0;
}

/* RFC 4180: quotes around what needs them, doubled inside. */
static void csv_text(const char *text)
{
	if (!text[strcspn(text, "\",\r\n")]) {
		fputs(text, stdout);
		return;
	}
	putchar('"');
	for (; *text; text++) {
		if (*text == '"')
			putchar('"');
		putchar(*text);
	}
	putchar('"');
}

static void codes(const json_t *list, char separator)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		if (i)
			putchar(separator);
		rs_fmt_text(stdout, json_string_value(json_array_get(list, i)));
	}
}

/* Where what its first finding blames was called; to be freed. */
static char *place_of(const struct rs_run *run, const struct rs_replay *r)
{
	char *text = r->stack ? rs_place_text(run, (json_int_t)r->stack) : NULL;

	return text ? text : strdup("");
}

static void row_text(const struct rs_run *run, const struct rs_replay *r)
{
	char *place = place_of(run, r);
	struct rs_fmt bytes, ns;
	int width;

	printf("%6" PRIu64 "  ", r->step);
	width = rs_fmt_text(stdout, r->segment);
	printf("%*s", width < 24 ? 24 - width : 0, "");
	printf(" #%-4" PRIu64 " %4" PRIu64 "  %-10s %-9s %-9s %-9s %10s %9s  ", r->invocation,
	       r->replay, rs_outcome_names[r->outcome], rs_seen_names[r->seen[RS_RUN_ENTRY]],
	       rs_seen_names[r->seen[RS_RUN_PRODUCT]], rs_seen_names[r->seen[RS_RUN_AFTER]],
	       rs_fmt_bytes(&bytes, r->bytes), rs_fmt_ns(&ns, r->ns));
	codes(r->codes, ' ');
	if (place && *place) {
		fputs("  at ", stdout);
		rs_fmt_text(stdout, place);
	}
	putchar('\n');
	free(place);
}

static void row_csv(const struct rs_run *run, const struct rs_replay *r)
{
	char *place = place_of(run, r);

	csv_text(run->path);
	printf(",%" PRIu64 ",", r->step);
	csv_text(r->segment);
	printf(",%" PRIu64 ",%" PRIu64 ",%s,%s,%s,%s,", r->invocation, r->replay,
	       rs_outcome_names[r->outcome], rs_seen_names[r->seen[RS_RUN_ENTRY]],
	       rs_seen_names[r->seen[RS_RUN_PRODUCT]], rs_seen_names[r->seen[RS_RUN_AFTER]]);
	codes(r->codes, ' ');
	printf(",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", r->ranges, r->bytes, r->ns);
	csv_text(place ? place : "");
	putchar('\n');
	free(place);
}

static void row_json(const struct rs_run *run, const struct rs_replay *r, int first)
{
	json_t *o = json_pack(
		"{s:o, s:I, s:s, s:I, s:I, s:s, s:s, s:s, s:s, s:I, s:I, s:I}", "path",
		rs_fmt_json(run->path), "step", (json_int_t)r->step, "segment", r->segment,
		"invocation", (json_int_t)r->invocation, "replay", (json_int_t)r->replay, "outcome",
		rs_outcome_names[r->outcome], "entry", rs_seen_names[r->seen[RS_RUN_ENTRY]],
		"product", rs_seen_names[r->seen[RS_RUN_PRODUCT]], "after",
		rs_seen_names[r->seen[RS_RUN_AFTER]], "ranges", (json_int_t)r->ranges, "bytes",
		(json_int_t)r->bytes, "ns", (json_int_t)r->ns);
	char *place = place_of(run, r);

	json_object_set_new(o, "codes", r->codes ? json_incref(r->codes) : json_array());
	if (r->stack)
		json_object_set_new(o, "where", rs_fmt_json(place ? place : ""));
	fputs(first ? "\n" : ",\n", stdout);
	json_dumpf(o, stdout, JSON_COMPACT);
	json_decref(o);
	free(place);
}

/* Before the first row; a directory that cannot be read leaves stdout empty. */
static void heading(struct listing *l)
{
	if (l->headed)
		return;
	l->headed = 1;
	if (l->format == FORMAT_TEXT)
		printf("%6s  %-24s %-5s %4s  %-10s %-9s %-9s %-9s %10s %9s  %s\n", "step",
		       "segment", "inv", "rep", "outcome", "entry", "product", "after", "bytes",
		       "time", "codes");
	else if (l->format == FORMAT_CSV)
		puts("path,step,segment,invocation,replay,outcome,entry,product,after,codes,ranges,"
		     "bytes,ns,where");
	else
		putchar('[');
}

static void show(void *ctx, const struct rs_run *run, const struct rs_replay *r)
{
	struct listing *l = ctx;

	if (l->outcome && strcmp(l->outcome, rs_outcome_names[r->outcome]))
		return;
	if (l->segment && fnmatch(l->segment, r->segment, 0))
		return;
	heading(l);
	if (l->format == FORMAT_TEXT)
		row_text(run, r);
	else if (l->format == FORMAT_CSV)
		row_csv(run, r);
	else
		row_json(run, r, !l->shown);
	l->shown++;
}

static int list_dir(const char *dir, struct listing *l)
{
	struct rs_run **runs;
	size_t n;
	int r = rs_rundir_read(dir, show, l, &runs, &n);

	if (r) {
		fprintf(stderr, "replayctl records: %s: %s\n", dir,
			r == -ENODATA ? "no run data here" : strerror(-r));
		return RS_EXIT_UNREADABLE;
	}
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < runs[i]->nproblems; k++)
			fprintf(stderr, "replayctl records: %s/%s\n", runs[i]->path,
				runs[i]->problems[k].text);
	rs_rundir_free(runs, n);
	return RS_EXIT_CLEAN;
}

int rs_cmd_records(int argc, char **argv)
{
	struct listing l = {0};
	int status = parse(argc, argv, &l);

	if (status)
		return status;
	for (; optind < argc; optind++) {
		int s = list_dir(argv[optind], &l);

		status = s > status ? s : status;
	}
	if (status == RS_EXIT_CLEAN)
		heading(&l);
	if (l.format == FORMAT_JSON && l.headed)
		puts("\n]");
	return status;
}
