/* SPDX-License-Identifier: MIT */
/* replayctl explain, options and version: what the tables say. No run data is read. */
#include <string.h>
#include <unistd.h>

#include "planner/ctl.h"
#include "planner/rundir.h"
#include "tracker/options.h"

static void explain(const struct rs_finding_info *f)
{
	printf("RS%03u  %s  (%s)\n\n", f->code, f->title, rs_severity_name(f->severity));
	rs_ctl_wrap(stdout, 2, f->explanation);
	printf("\n  What to do: ");
	rs_ctl_wrap(stdout, 0, f->action);
}

int rs_cmd_explain(int argc, char **argv)
{
	int status = RS_EXIT_CLEAN;

	if (argc > 1 && argv[1][0] == '-')
		return rs_ctl_usage("explain", RS_EXIT_USAGE, "no option '%s'", argv[1]);
	for (size_t i = 0; argc == 1 && i < RS_FINDING_COUNT; i++)
		printf("RS%03u  %-7s  %s\n", rs_findings[i].code,
		       rs_severity_name(rs_findings[i].severity), rs_findings[i].title);
	for (int i = 1; i < argc; i++) {
		const struct rs_finding_info *f = rs_code_find(argv[i]);

		if (i > 1)
			putchar('\n');
		if (f) {
			explain(f);
			continue;
		}
		fflush(stdout);
		fprintf(stderr,
			"replayctl explain: there is no code '%s'; "
			"replayctl explain lists them\n",
			argv[i]);
		status = RS_EXIT_USAGE;
	}
	return status;
}

static void put_line(void *out, const char *line)
{
	fprintf(out, "%s\n", line);
}

/* As the library would read them in this environment, complaints included. */
int rs_cmd_options(int argc, char **argv)
{
	struct rs_options options;

	if (argc > 1)
		return rs_ctl_usage("options", RS_EXIT_USAGE, "no argument '%s'", argv[1]);
	if (rs_options_parse(&options, environ, put_line, stderr))
		fputc('\n', stderr);
	rs_options_print(&options, put_line, stdout);
	return RS_EXIT_CLEAN;
}

int rs_cmd_version(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--json")) {
		printf("{\"product\":\"%s\",\"records\":1,\"json\":1}\n", RS_VERSION);
		return RS_EXIT_CLEAN;
	}
	if (argc > 1)
		return rs_ctl_usage("version", RS_EXIT_USAGE, "no argument '%s'", argv[1]);
	printf("replayctl %s\n", RS_VERSION);
	return RS_EXIT_CLEAN;
}
