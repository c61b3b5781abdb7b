/* SPDX-License-Identifier: MIT */
/* replayctl report: a run's directory as text or JSON. Exit status: see ctl.h. No state. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "planner/ctl.h"
#include "planner/report.h"

struct args {
	enum rs_report_format format;
	struct rs_report_style style;
	int latest;
};

/* 0, or the exit status for a usage error. */
static int parse(int argc, char **argv, struct args *args)
{
	static const struct option options[] = {{"format", required_argument, NULL, 'f'},
						{"color", required_argument, NULL, 'c'},
						{"latest", no_argument, NULL, 'l'},
						{"verbose", no_argument, NULL, 'v'},
						{NULL, 0, NULL, 0}};
	const char *format = "text", *color = NULL;
	int opt;

	while ((opt = getopt_long(argc, argv, "f:v", options, NULL)) >= 0) {
		if (opt == 'f')
			format = optarg;
		else if (opt == 'c')
			color = optarg;
		else if (opt == 'l')
			args->latest = 1;
		else if (opt == 'v')
			args->style.verbose = 1;
		else
			return rs_ctl_bad_option("report", RS_EXIT_USAGE);
	}
	if (!strcmp(format, "json"))
		args->format = RS_REPORT_JSON;
	else if (!strcmp(format, "jsonl"))
		args->format = RS_REPORT_JSONL;
	else if (strcmp(format, "text"))
		return rs_ctl_usage("report", RS_EXIT_USAGE, "no format '%s'", format);
	if (rs_ctl_color(color, stdout, &args->style.color))
		return rs_ctl_usage("report", RS_EXIT_USAGE, "--color takes auto, always or never");
	if (optind == argc)
		return rs_ctl_usage(
			"report", RS_EXIT_USAGE,
			"which directory? (REPLAYSHIM_OUT, by default replayshim.data)");
	return 0;
}

/* Nothing of it can be used: damaged altogether, or written by a version to come. */
static int is_unreadable(const struct rs_run *run)
{
	return run->lines && run->lines == run->bad_lines;
}

struct collected {
	struct rs_run **runs;
	size_t n;
};

/* 0 or the exit status. */
static int collect(const char *dir, int latest, struct collected *all)
{
	struct rs_run **runs, **grown;
	size_t n;
	int r;

	r = rs_rundir_read(dir, NULL, NULL, &runs, &n);
	if (r) {
		fprintf(stderr, "replayctl report: %s: %s\n", dir,
			r == -ENODATA
				? "no run data here (events.jsonl, records.jsonl, or directories "
				  "that hold them)"
				: strerror(-r));
		return RS_EXIT_UNREADABLE;
	}
	while (latest && n > 1)
		rs_run_free(runs[--n]);
	grown = realloc(all->runs, (all->n + n) * sizeof(*grown));
	if (!grown) {
		rs_rundir_free(runs, n);
		fprintf(stderr, "replayctl report: no memory\n");
		return RS_EXIT_UNREADABLE;
	}
	memcpy(grown + all->n, runs, n * sizeof(*runs));
	all->runs = grown;
	all->n += n;
	free(runs);
	return 0;
}

int rs_cmd_report(int argc, char **argv)
{
	struct collected all = {0};
	struct args args = {0};
	int status = parse(argc, argv, &args), s;

	if (status)
		return status;
	for (; optind < argc; optind++) {
		s = collect(argv[optind], args.latest, &all);
		status = s > status ? s : status;
	}
	if (all.n &&
	    rs_report_all(stdout, all.runs, all.n, args.format, &args.style) != RS_VERDICT_CLEAN)
		status = status ? status : RS_EXIT_FINDINGS;
	for (size_t i = 0; i < all.n; i++)
		if (is_unreadable(all.runs[i]))
			status = RS_EXIT_UNREADABLE;
	rs_rundir_free(all.runs, all.n);
	return status;
}
