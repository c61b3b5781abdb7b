/* SPDX-License-Identifier: MIT */
/*
 * replayctl status and set: one question to the planner process. Exit status 0, 2 usage, 3 no planner, or it said no.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "planner/ask.h"
#include "planner/ctl.h"

int rs_cmd_status(int argc, char **argv)
{
	static const struct option options[] = {
		{"name", required_argument, NULL, 'n'}, {"json", no_argument, NULL, 'j'}, {0}};
	const char *name = NULL;
	json_t *status;
	int json = 0, c;

	while ((c = getopt_long(argc, argv, "+", options, NULL)) >= 0) {
		if (c == 'n')
			name = optarg;
		else if (c == 'j')
			json = 1;
		else
			return rs_ctl_bad_option("status", RS_EXIT_USAGE);
	}
	if (optind < argc)
		return rs_ctl_usage("status", RS_EXIT_USAGE, "no argument '%s'", argv[optind]);
	status = rs_ask_status("status", name);
	if (!status)
		return RS_EXIT_UNREADABLE;
	if (json) {
		json_dumpf(status, stdout, JSON_COMPACT);
		putchar('\n');
	} else {
		rs_status_print(stdout, status);
	}
	json_decref(status);
	return RS_EXIT_CLEAN;
}

static int parse_pid(const char *text, uint64_t *ret)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (!strcmp(text, "all")) {
		*ret = 0;
		return 0;
	}
	if (*text < '1' || *text > '9' || *end)
		return -EINVAL;
	*ret = n;
	return 0;
}

int rs_cmd_set(int argc, char **argv)
{
	static const struct option options[] = {{"name", required_argument, NULL, 'n'}, {0}};
	const char *name = NULL;
	char *text = NULL;
	uint64_t pid;
	int c, r, error = 0;

	while ((c = getopt_long(argc, argv, "+", options, NULL)) >= 0) {
		if (c != 'n')
			return rs_ctl_bad_option("set", RS_EXIT_USAGE);
		name = optarg;
	}
	if (argc - optind != 2)
		return rs_ctl_usage("set", RS_EXIT_USAGE, "a process and what to set");
	if (parse_pid(argv[optind], &pid))
		return rs_ctl_usage("set", RS_EXIT_USAGE, "'%s' is no process number, and not all",
				    argv[optind]);
	r = rs_ask(name, RS_WIRE_SET, pid, argv[optind + 1], &text, &error);
	if (r == -EINVAL || error == -EINVAL) {
		r = rs_ctl_usage("set", RS_EXIT_USAGE, "%s",
				 error && text ? text : "that is too long");
	} else if (r || error) {
		fprintf(stderr, "replayctl set: %s\n", text ? text : strerror(ENOMEM));
		r = RS_EXIT_UNREADABLE;
	} else {
		printf("%s\n", text);
	}
	free(text);
	return r;
}
