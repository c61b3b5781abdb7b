/* SPDX-License-Identifier: MIT */
/*
 * replayctl diff: two contracts, or what two runs have learned. Exit status 0 equal, 1 different, 2 usage,
 * 3 unreadable. No state.
 */
#include <stdlib.h>
#include <string.h>

#include "planner/contract.h"
#include "planner/ctl.h"
#include "planner/fmt.h"

#define LONGEST 60

/* A value on a line: short ones as they are, of long ones the beginning. */
static void print_value(const json_t *v)
{
	char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));

	if (json_is_null(v) || !text)
		fputs("none", stdout);
	else if (strlen(text) <= LONGEST)
		fputs(text, stdout);
	else
		printf("%.*s...", LONGEST, text);
	free(text);
}

static void print(const json_t *d)
{
	const char *kind = json_string_value(json_object_get(d, "kind"));
	const char *what = json_string_value(json_object_get(d, "what"));

	rs_fmt_text(stdout, json_string_value(json_object_get(d, "segment")));
	printf(": %s", kind);
	if (!strncmp(kind, "segment", 7)) {
		putchar('\n');
		return;
	}
	if (strcmp(kind, what)) {
		putchar(' ');
		rs_fmt_text(stdout, what);
	}
	if (strncmp(kind, "state", 5)) {
		fputs(": ", stdout);
		print_value(json_object_get(d, "old"));
		fputs(" -> ", stdout);
		print_value(json_object_get(d, "new"));
	}
	putchar('\n');
}

int rs_cmd_diff(int argc, char **argv)
{
	static const struct option options[] = {{"json", no_argument, NULL, 'j'},
						{NULL, 0, NULL, 0}};
	json_t *both[2] = {NULL, NULL}, *list, *d;
	struct rs_contract_why why = {""};
	int opt, as_json = 0, r = 0;
	size_t n, i;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (opt != 'j')
			return rs_ctl_bad_option("diff", RS_EXIT_USAGE);
		as_json = 1;
	}
	if (argc - optind != 2)
		return rs_ctl_usage("diff", RS_EXIT_USAGE, "two contracts or directories");
	for (i = 0; i < 2 && !r; i++)
		r = rs_contract_open(argv[optind + i], &both[i], &why);
	if (r) {
		fprintf(stderr, "replayctl diff: %s\n", why.text[0] ? why.text : strerror(-r));
		json_decref(both[0]);
		return RS_EXIT_UNREADABLE;
	}
	list = rs_contract_diff(both[0], both[1]);
	n = json_array_size(list);
	if (as_json) {
		json_dumpf(list, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
		putchar('\n');
	} else {
		json_array_foreach(list, i, d)
		{
			print(d);
		}
	}
	json_decref(list);
	json_decref(both[0]);
	json_decref(both[1]);
	return n ? RS_EXIT_FINDINGS : RS_EXIT_CLEAN;
}
