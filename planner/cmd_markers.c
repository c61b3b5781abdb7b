/* SPDX-License-Identifier: MIT */
/*
 * replayctl markers: check files of marker rules, say what they make of texts, and list the ranges that runs had. Exit
 * status 0; 1: a file has errors; 2; 3: no data, or none that can be read.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "planner/ctl.h"
#include "planner/fmt.h"
#include "planner/rundir.h"
#include "tracker/mark.h"
#include "tracker/pattern.h"

struct asked {
	const char *domain;
	int json;
};

/* --- rules -------------------------------------------------------------------------------------- */

static void complain(void *arg, const char *line)
{
	(void)arg;
	fputs("replayctl markers: ", stderr);
	rs_fmt_text(stderr, line);
	fputc('\n', stderr);
}

static void condition(const struct rs_patterns *p, const char *word, int context)
{
	if (context < 0)
		return;
	printf(", %s \"", word);
	rs_fmt_text(stdout, rs_patterns_context(p, (unsigned)context)->text);
	putchar('"');
}

static void marker_line(const char *marker, const char *by, unsigned line)
{
	fputs("    ", stdout);
	rs_fmt_text(stdout, marker);
	fputs("  (", stdout);
	rs_fmt_text(stdout, by);
	if (line)
		printf(":%u", line);
}

static const char *readable(const struct rs_pattern_rule *r, const char *marker)
{
	if (r->kind == RS_PATTERN_IGNORE)
		return "nothing";
	return r->count ? "step: the next number" : marker;
}

static int is_memory(enum rs_pattern_kind kind)
{
	return kind == RS_PATTERN_STATE || kind == RS_PATTERN_OUTPUT;
}

/* In the order in which the library asks: files, markers as they stand, built-in rules. Up to the first that always holds. */
static void text_becomes(const struct rs_patterns *p, struct rs_ere_scratch *s, const char *domain,
			 const char *text)
{
	struct rs_pattern_bits fit =
		rs_patterns_match(p, rs_patterns_domain(p, domain), s, text, strlen(text));
	int is_ours = !*domain || !strcmp(domain, "replayshim");
	struct rs_mark mark = rs_mark_parse(is_ours ? text : NULL);
	int is_plain = is_ours && !mark.wrong && rs_pattern_plain(text);
	char marker[RS_PATTERN_MARKER];

	rs_fmt_text(stdout, text);
	putchar('\n');
	for (unsigned i = 0; i < rs_patterns_count(p); i++) {
		const struct rs_pattern_rule *r = rs_patterns_rule(p, i);

		if (r->builtin && is_plain)
			break;
		if (!(fit.rules >> i & 1) || rs_pattern_marker(r, s, text, strlen(text), marker))
			continue;
		marker_line(readable(r, marker), rs_pattern_file(p, r), r->builtin ? 0 : r->line);
		condition(p, "inside", r->inside);
		condition(p, "during", r->during);
		condition(p, "until", r->until);
		puts(is_memory(r->kind) ? ", as a name of memory)" : ")");
		if (r->inside < 0 && r->during < 0 && !is_memory(r->kind))
			return;
	}
	if (is_plain)
		marker_line(text, "a marker as it stands", 0);
	else
		marker_line("nothing", mark.wrong ? mark.wrong : "no rule", 0);
	puts(")");
}

static int check(const char *paths, const struct asked *a, char **texts, int n)
{
	struct rs_patterns *p = rs_patterns_create();
	struct rs_ere_scratch *s = malloc(sizeof(*s));
	unsigned errors, own;

	if (!p || !s) {
		fprintf(stderr, "replayctl markers: no memory\n");
		return RS_EXIT_UNREADABLE;
	}
	errors = rs_patterns_load(p, paths, complain, NULL);
	own = rs_patterns_count(p);
	rs_patterns_builtin(p);
	if (!n)
		printf("%u rules, %u errors, built-in rules %s\n", own, errors,
		       rs_patterns_count(p) > own ? "on" : "off");
	for (int i = 0; i < n; i++)
		text_becomes(p, s, a->domain, texts[i]);
	rs_patterns_free(p);
	free(s);
	return errors ? RS_EXIT_FINDINGS : RS_EXIT_CLEAN;
}

/* --- data --------------------------------------------------------------------------------------- */

static const char *word(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

static json_int_t times(const json_t *o)
{
	return json_integer_value(json_object_get(o, "count"));
}

/* By domain, and what was there most often first. */
static int by_count(const void *x, const void *y)
{
	const json_t *a = *(json_t *const *)x, *b = *(json_t *const *)y;
	int d = strcmp(word(a, "domain"), word(b, "domain"));

	if (d)
		return d;
	if (times(a) != times(b))
		return times(a) < times(b) ? 1 : -1;
	return strcmp(word(a, "text"), word(b, "text"));
}

static void row(const json_t *o)
{
	const char *kind = word(o, "kind"), *rule = word(o, "rule");
	struct rs_fmt f;
	int width;

	printf("%12s  %-8s ", rs_fmt_count(&f, (uint64_t)times(o)), *kind ? kind : "-");
	width = rs_fmt_text(stdout, *rule ? rule : "-");
	printf("%*s ", width < 20 ? 20 - width : 0, "");
	width = rs_fmt_text(stdout, *word(o, "domain") ? word(o, "domain") : "default");
	printf("%*s ", width < 10 ? 10 - width : 0, "");
	rs_fmt_text(stdout, word(o, "text"));
	putchar('\n');
}

static void list_run(const struct rs_run *run, const struct asked *a)
{
	size_t n = json_object_size(run->ranges), i = 0;
	json_t **rows = calloc(n + 1, sizeof(*rows)), *value;
	json_int_t left = json_integer_value(json_object_get(run->markers, "left_out"));
	const char *key;

	if (!rows)
		return;
	json_object_foreach(run->ranges, key, value) rows[i++] = value;
	qsort(rows, n, sizeof(*rows), by_count);
	if (!a->json) {
		rs_fmt_text(stdout, run->path);
		printf("%s\n%12s  %-8s %-20s %-10s %s\n",
		       run->ended ? "" : " (ended early: counts at the first sight)", "times",
		       "meaning", "rule", "domain", "text, the first with these words");
	}
	for (i = 0; i < n; i++) {
		if (a->json) {
			json_object_set_new(rows[i], "path", json_string(run->path));
			json_dumpf(rows[i], stdout, JSON_COMPACT);
			putchar('\n');
		} else {
			row(rows[i]);
		}
	}
	if (!a->json && !n)
		puts("              none were seen, or none were counted: an audit counts, and a run "
		     "with REPLAYSHIM_MARKERS");
	if (!a->json && left)
		printf("%12" JSON_INTEGER_FORMAT "  others were too many to be counted\n", left);
	free(rows);
}

static int list_data(const char *dir, const struct asked *a)
{
	struct rs_run **runs;
	size_t n;
	int r = rs_rundir_read(dir, NULL, NULL, &runs, &n);

	if (r) {
		fprintf(stderr, "replayctl markers: %s: %s\n", dir,
			r == -ENODATA ? "no run data here" : strerror(-r));
		return RS_EXIT_UNREADABLE;
	}
	for (size_t i = 0; i < n; i++)
		list_run(runs[i], a);
	rs_rundir_free(runs, n);
	return RS_EXIT_CLEAN;
}

int rs_cmd_markers(int argc, char **argv)
{
	static const struct option options[] = {{"domain", required_argument, NULL, 'd'},
						{"json", no_argument, NULL, 'j'},
						{NULL, 0, NULL, 0}};
	struct asked a = {.domain = ""};
	struct stat st;
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (opt == 'd')
			a.domain = strcmp(optarg, "default") ? optarg : "";
		else if (opt == 'j')
			a.json = 1;
		else
			return rs_ctl_bad_option("markers", RS_EXIT_USAGE);
	}
	if (optind == argc) {
		fputs(rs_patterns_builtin_text(), stdout);
		return RS_EXIT_CLEAN;
	}
	if (!stat(argv[optind], &st) && S_ISDIR(st.st_mode)) {
		if (optind + 1 < argc)
			return rs_ctl_usage("markers", RS_EXIT_USAGE, "one directory at a time");
		return list_data(argv[optind], &a);
	}
	if (a.json)
		return rs_ctl_usage("markers", RS_EXIT_USAGE, "--json is for data");
	return check(argv[optind], &a, argv + optind + 1, argc - optind - 1);
}
