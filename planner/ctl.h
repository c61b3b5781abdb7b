/* SPDX-License-Identifier: MIT */
/*
 * What the sub-commands of replayctl share: the command table, exit statuses, option helpers.
 *
 * Each command is one function, named in commands.def. It gets argv[0] = its own name, and returns
 * the exit status. replayctl is a short-lived, single-threaded process; what it allocates for its
 * whole life is not freed.
 */
#ifndef RS_PLANNER_CTL_H
#define RS_PLANNER_CTL_H

#include <getopt.h>
#include <stdio.h>

enum rs_ctl_exit {
	RS_EXIT_CLEAN = 0,
	RS_EXIT_FINDINGS = 1,
	RS_EXIT_USAGE = 2,
	RS_EXIT_UNREADABLE = 3,
	RS_EXIT_INFEASIBLE = 4, /* plan */
	/* run and audit, as env(1) and timeout(1) */
	RS_EXIT_TOOL = 125,
	RS_EXIT_CANNOT_EXEC = 126,
	RS_EXIT_NOT_FOUND = 127,
};

struct rs_ctl_command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *args;
	const char *help;
};

#define C(name, fn, args, help) int fn(int argc, char **argv);
#include "planner/commands.def"
#undef C

const struct rs_ctl_command *rs_ctl_find(const char *name);

/* "replayctl NAME: text" on stderr, with a pointer to the help. Returns `status`. */
__attribute__((format(printf, 3, 4))) int rs_ctl_usage(const char *command, int status,
						       const char *fmt, ...);

/* Getopt's own message has been printed already; this adds the usage line. Returns `status`. */
int rs_ctl_bad_option(const char *command, int status);

/* The name nearest to `word` by edit distance, or NULL if none is near. */
struct rs_ctl_nearest {
	const char *name;
	unsigned distance;
};
void rs_ctl_consider(struct rs_ctl_nearest *best, const char *word, const char *candidate);

/* --color=auto|always|never: 0 and *ret_color, or -EINVAL. NULL means auto, for `out`. */
int rs_ctl_color(const char *arg, FILE *out, int *ret_color);

/* Print `text` wrapped at 80 columns, each line after `indent` blanks. */
void rs_ctl_wrap(FILE *out, unsigned indent, const char *text);

#endif
