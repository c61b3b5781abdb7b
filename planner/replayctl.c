/* SPDX-License-Identifier: MIT */
/*
 * replayctl: the command line. Finds the sub-command and hands over; holds what all of them share.
 *
 * Invariants: the program's stdout is never used by run and audit; everything said about the use of
 * the tool itself goes to stderr. No CUDA here: reports are made on machines without one.
 */
#include "planner/ctl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct rs_ctl_command commands[] = {
#define C(name, fn, args, help) {name, fn, args, help},
#include "planner/commands.def"
#undef C
};

#define NCOMMANDS (sizeof(commands) / sizeof(commands[0]))

const struct rs_ctl_command *rs_ctl_find(const char *name)
{
	for (size_t i = 0; i < NCOMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

int rs_ctl_bad_option(const char *command, int status)
{
	const struct rs_ctl_command *c = rs_ctl_find(command);

	fprintf(stderr, "usage: replayctl %s%s%s\n", command, c && *c->args ? " " : "",
		c ? c->args : "");
	return status;
}

int rs_ctl_usage(const char *command, int status, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "replayctl %s: ", command);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return rs_ctl_bad_option(command, status);
}

/* Levenshtein distance; words longer than the row are as far as can be. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[40], n = strlen(b);

	if (n >= sizeof(row) / sizeof(row[0]))
		return ~0u;
	for (unsigned j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned i = 1; *a; a++, i++) {
		unsigned diagonal = row[0];

		row[0] = i;
		for (unsigned j = 1; j <= n; j++) {
			unsigned replace = diagonal + (*a != b[j - 1]), best = row[j];

			diagonal = row[j];
			best = (row[j - 1] < best ? row[j - 1] : best) + 1;
			row[j] = replace < best ? replace : best;
		}
	}
	return row[n];
}

void rs_ctl_consider(struct rs_ctl_nearest *best, const char *word, const char *candidate)
{
	size_t n = strlen(word);
	unsigned d = distance(word, candidate);

	/* An abbreviation is meant, whatever its distance. */
	if (n >= 2 && !strncmp(word, candidate, n))
		d = 0;
	if (d <= (n + 2) / 3 && (!best->name || d < best->distance)) {
		best->name = candidate;
		best->distance = d;
	}
}

int rs_ctl_color(const char *arg, FILE *out, int *ret_color)
{
	const char *term = getenv("TERM"), *force = getenv("CLICOLOR_FORCE");
	const char *no = getenv("NO_COLOR");

	if (arg && !strcmp(arg, "always"))
		*ret_color = 1;
	else if (arg && !strcmp(arg, "never"))
		*ret_color = 0;
	else if (arg && strcmp(arg, "auto"))
		return -EINVAL;
	else if (no && *no)
		*ret_color = 0;
	else if (force && *force && strcmp(force, "0"))
		*ret_color = 1;
	else
		*ret_color = isatty(fileno(out)) && term && strcmp(term, "dumb");
	return 0;
}

void rs_ctl_wrap(FILE *out, unsigned indent, const char *text)
{
	unsigned column = 0;

	while (*text) {
		unsigned n = strcspn(text, " ");

		if (column && column + 1 + n > 80) {
			fputc('\n', out);
			column = 0;
		}
		fprintf(out, "%*s%.*s", column ? 1 : (int)indent, "", (int)n, text);
		column = (column ? column + 1 : indent) + n;
		text += n;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

static void help_all(FILE *out)
{
	fputs("usage: replayctl COMMAND [ARGUMENTS]\n\n", out);
	for (size_t i = 0; i < NCOMMANDS; i++)
		fprintf(out, "  %-11s %s\n", commands[i].name, commands[i].help);
	fputs("\nreplayctl help COMMAND prints the usage of one. Options go before --; after it "
	      "all belongs\nto the command that is run. Without replayctl: "
	      "LD_PRELOAD=libreplayshim.so COMMAND...\n\n"
	      "Exit status of report: 0 clean in what was observed, 1 findings or cannot tell, "
	      "2 usage,\n3 unreadable data; of audit and run: that of the command, 125 to 127 "
	      "as env(1).\n",
	      out);
}

static int unknown(const char *word)
{
	struct rs_ctl_nearest best = {0};

	for (size_t i = 0; i < NCOMMANDS; i++)
		rs_ctl_consider(&best, word, commands[i].name);
	fprintf(stderr, "replayctl: there is no command '%s'", word);
	if (best.name)
		fprintf(stderr, "; is '%s' meant?", best.name);
	fputs("\nreplayctl help lists the commands.\n", stderr);
	return RS_EXIT_USAGE;
}

int rs_cmd_help(int argc, char **argv)
{
	const struct rs_ctl_command *c;

	if (argc > 2)
		return rs_ctl_usage(argv[0], RS_EXIT_USAGE, "one command at most");
	if (argc == 1) {
		help_all(stdout);
		return RS_EXIT_CLEAN;
	}
	c = rs_ctl_find(argv[1]);
	if (!c)
		return unknown(argv[1]);
	printf("usage: replayctl %s %s\n\n%s\n", c->name, c->args, c->help);
	return RS_EXIT_CLEAN;
}

/*
 * Descriptors 0 to 2 are taken, so that no file of ours becomes one of them and gets what is printed. Where the caller gave
 * none, reading or writing fails as it would have; a command that is run finds it closed.
 */
static void take_stdio(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", O_CLOEXEC | (fd ? O_RDONLY : O_WRONLY));
}

int main(int argc, char **argv)
{
	const struct rs_ctl_command *c;
	int status;

	take_stdio();
	if (argc < 2) {
		help_all(stderr);
		return RS_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))
		argv[1] = (char *)"help";
	else if (!strcmp(argv[1], "--version"))
		argv[1] = (char *)"version";
	c = rs_ctl_find(argv[1]);
	if (!c)
		return unknown(argv[1]);
	if (argc == 3 && (!strcmp(argv[2], "-h") || !strcmp(argv[2], "--help"))) {
		char *words[] = {(char *)"help", argv[1], NULL};

		return rs_cmd_help(2, words);
	}
	status = c->run(argc - 1, argv + 1);
	/* A full disk must not look like a clean report. */
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "replayctl: cannot write: %s\n", strerror(errno));
		return status == RS_EXIT_CLEAN ? RS_EXIT_UNREADABLE : status;
	}
	return status;
}
