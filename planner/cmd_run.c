/* SPDX-License-Identifier: MIT */
/*
 * replayctl run and audit: a command under the library. `run` becomes the command; `audit` stays its
 * parent, and reports when it has ended.
 *
 * Invariants: nothing is written to stdout, which is the command's; the exit status or the fatal
 * signal is the command's, except for --error-exitcode after a success. Being told to gate, audit
 * fails closed: if the library left no data, that is not a success. No locks.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "planner/ctl.h"
#include "planner/launch.h"
#include "planner/report.h"

struct job {
	const char *name, *dir, *mode;
	char **command;
	int fail_on_warn, error_exitcode, color, verbose;
	char library[PATH_MAX], out[PATH_MAX * 2], dir_abs[PATH_MAX];
};

enum { OPT_MODE = 256, OPT_FAIL_ON, OPT_EXITCODE, OPT_COLOR };

static int bad_value(const struct job *job, const char *option, const char *takes)
{
	return rs_ctl_usage(job->name, RS_EXIT_TOOL, "%s takes %s, not '%s'", option, takes,
			    optarg);
}

/* 0 or the exit status. */
static int one_option(struct job *job, int opt, int audit)
{
	static const char *const modes[] = {"off", "nop", "audit", "preserve"};
	char *end;
	long n;

	switch (opt) {
	case 'o':
		job->dir = optarg;
		return 0;
	case 'v':
		job->verbose = 1;
		return 0;
	case OPT_MODE:
		for (size_t i = 0; !audit && i < sizeof(modes) / sizeof(modes[0]); i++)
			if (!strcmp(optarg, modes[i]))
				job->mode = modes[i];
		return job->mode ? 0 : bad_value(job, "--mode", "off, nop, audit or preserve");
	case OPT_FAIL_ON:
		job->fail_on_warn = !strcmp(optarg, "warn");
		if (!job->fail_on_warn && strcmp(optarg, "error"))
			return bad_value(job, "--fail-on", "error or warn");
		return 0;
	case OPT_EXITCODE:
		n = strtol(optarg, &end, 10);
		if (!*optarg || *end || n < 1 || n > 255)
			return bad_value(job, "--error-exitcode", "a number from 1 to 255");
		job->error_exitcode = n;
		return 0;
	case OPT_COLOR:
		if (rs_ctl_color(optarg, stderr, &job->color))
			return bad_value(job, "--color", "auto, always or never");
		return 0;
	default:
		fputs("Options of the command itself go after --.\n", stderr);
		return rs_ctl_bad_option(job->name, RS_EXIT_TOOL);
	}
}

static int parse(int argc, char **argv, struct job *job)
{
	static const struct option audit_options[] = {
		{"out", required_argument, NULL, 'o'},
		{"fail-on", required_argument, NULL, OPT_FAIL_ON},
		{"error-exitcode", required_argument, NULL, OPT_EXITCODE},
		{"color", required_argument, NULL, OPT_COLOR},
		{"verbose", no_argument, NULL, 'v'},
		{NULL, 0, NULL, 0}};
	static const struct option run_options[] = {{"out", required_argument, NULL, 'o'},
						    {"mode", required_argument, NULL, OPT_MODE},
						    {NULL, 0, NULL, 0}};
	int audit = !strcmp(job->name, "audit"), opt, status;

	while ((opt = getopt_long(argc, argv, audit ? "+o:v" : "+o:",
				  audit ? audit_options : run_options, NULL)) >= 0) {
		status = one_option(job, opt, audit);
		if (status)
			return status;
	}
	if (optind == argc)
		return rs_ctl_usage(job->name, RS_EXIT_TOOL, "which command? It goes after --");
	if (strcmp(argv[optind - 1], "--"))
		return rs_ctl_usage(job->name, RS_EXIT_TOOL,
				    "put -- before the command: replayctl %s -- %s ...", job->name,
				    argv[optind]);
	job->command = argv + optind;
	return 0;
}

/*
 * REPLAYSHIM_OUT: DIR made absolute, because the command may change its directory, then one
 * directory for each process. A % in DIR is doubled, as the template wants it.
 */
static int make_template(struct job *job)
{
	static const char tail[] = "/%h.r%r.%p";
	char cwd[PATH_MAX];
	size_t n = 0;

	if (job->dir[0] == '/')
		snprintf(job->dir_abs, sizeof(job->dir_abs), "%s", job->dir);
	else if (!getcwd(cwd, sizeof(cwd)))
		return -errno;
	else if (snprintf(job->dir_abs, sizeof(job->dir_abs), "%s/%s", cwd, job->dir) >= PATH_MAX)
		return -ENAMETOOLONG;
	for (const char *p = job->dir_abs; *p; p++) {
		if (n + 2 + sizeof(tail) > sizeof(job->out))
			return -ENAMETOOLONG;
		if (*p == '%')
			job->out[n++] = '%';
		job->out[n++] = *p;
	}
	strcpy(job->out + n, tail);
	return 0;
}

static int prepare(struct job *job)
{
	int r = rs_launch_library(job->library, sizeof(job->library));

	if (r)
		return rs_ctl_usage(job->name, RS_EXIT_TOOL,
				    "libreplayshim.so is neither beside replayctl nor in ../lib "
				    "(%s); REPLAYSHIM_LIB names it",
				    strerror(-r));
	/* The loader splits LD_PRELOAD at both, and has no quoting. */
	if (strpbrk(job->library, ": "))
		return rs_ctl_usage(job->name, RS_EXIT_TOOL,
				    "a path with a blank or a colon cannot be preloaded: %s",
				    job->library);
	r = make_template(job);
	if (r)
		return rs_ctl_usage(job->name, RS_EXIT_TOOL, "%s: %s", job->dir, strerror(-r));
	return 0;
}

static int cannot_exec(const struct job *job, int error)
{
	fprintf(stderr, "replayctl %s: %s: %s\n", job->name, job->command[0], strerror(error));
	return error == ENOENT ? RS_EXIT_NOT_FOUND : RS_EXIT_CANNOT_EXEC;
}

int rs_cmd_run(int argc, char **argv)
{
	struct job job = {.name = "run", .dir = "replayshim.data"};
	int status = parse(argc, argv, &job), r;

	if (!status)
		status = prepare(&job);
	if (status)
		return status;
	r = rs_launch_setenv(
		&(struct rs_launch_env){job.library, job.mode ? job.mode : "preserve", job.out});
	if (r)
		return cannot_exec(&job, -r);
	execvp(job.command[0], job.command);
	return cannot_exec(&job, errno);
}

/* --- audit ---------------------------------------------------------------------------------- */

/* Process directories that were there before, and how their files looked. */
struct before {
	char **paths;
	struct stat *stats; /* of events.jsonl and records.jsonl, in pairs */
	size_t n;
};

static void look(const char *dir, struct stat st[2])
{
	static const char *const names[] = {"events.jsonl", "records.jsonl"};
	char path[PATH_MAX + 16];

	memset(st, 0, 2 * sizeof(*st));
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		if (stat(path, &st[i]))
			memset(&st[i], 0, sizeof(st[i]));
	}
}

static void remember(const char *dir, struct before *b)
{
	if (rs_rundir_list(dir, &b->paths, &b->n))
		return;
	b->stats = calloc(2 * b->n + 1, sizeof(*b->stats));
	for (size_t i = 0; b->stats && i < b->n; i++)
		look(b->paths[i], &b->stats[2 * i]);
}

static int is_old(const struct before *b, const char *path)
{
	struct stat now[2];

	for (size_t i = 0; b->stats && i < b->n; i++) {
		const struct stat *was = &b->stats[2 * i];

		if (strcmp(b->paths[i], path))
			continue;
		look(path, now);
		return now[0].st_size == was[0].st_size && now[1].st_size == was[1].st_size &&
		       now[0].st_ino == was[0].st_ino && now[1].st_ino == was[1].st_ino;
	}
	return 0;
}

/* The findings say: do not pass. Without data nothing is known, and nothing passes. */
static int must_fail(const struct job *job, struct rs_run **runs, size_t n, enum rs_verdict worst)
{
	int fail = !n || worst != RS_VERDICT_CLEAN;

	for (size_t i = 0; i < n; i++)
		fail |= rs_verdict_count(runs[i], RS_ERROR) ||
			(job->fail_on_warn && rs_verdict_count(runs[i], RS_WARN));
	return fail;
}

/* Print the report of what this command left. Returns 1 if it must not pass. */
static int report_new(const struct job *job, const struct before *b)
{
	struct rs_report_style style = {job->color, job->verbose};
	enum rs_verdict worst = RS_VERDICT_CANNOT_TELL;
	struct rs_run **runs = NULL;
	size_t n = 0, kept = 0;
	int r, fail;

	r = rs_rundir_read(job->dir_abs, NULL, NULL, &runs, &n);
	if (r && r != -ENOENT && r != -ENODATA)
		fprintf(stderr, "==rs== %s: %s\n", job->dir_abs, strerror(-r));
	for (size_t i = 0; i < n; i++) {
		if (is_old(b, runs[i]->path))
			rs_run_free(runs[i]);
		else
			runs[kept++] = runs[i];
	}
	if (kept)
		worst = rs_report_all(stderr, runs, kept, RS_REPORT_TEXT, &style);
	else
		fprintf(stderr,
			"==rs== AUDIT SUMMARY: no data in %s; verdict cannot-tell\n"
			"==rs== The command made no CUDA call, or the library could not be loaded "
			"into it\n==rs== (a static or setuid program, or one that clears its "
			"environment).\n",
			job->dir_abs);
	fail = must_fail(job, runs, kept, worst);
	rs_rundir_free(runs, kept);
	return fail;
}

int rs_cmd_audit(int argc, char **argv)
{
	struct job job = {.name = "audit", .dir = "replayshim.data"};
	struct rs_launch_env env = {job.library, "audit", job.out};
	struct before before = {0};
	int status, r, fail;
	pid_t pid;

	rs_ctl_color(NULL, stderr, &job.color);
	status = parse(argc, argv, &job);
	if (!status)
		status = prepare(&job);
	if (status)
		return status;
	remember(job.dir_abs, &before);
	r = rs_launch_spawn(job.command, &env, &pid);
	if (r)
		return cannot_exec(&job, -r);
	r = rs_launch_wait(pid, &status);
	if (r) {
		fprintf(stderr, "replayctl audit: waiting failed: %s\n", strerror(-r));
		return RS_EXIT_TOOL;
	}
	fail = report_new(&job, &before);
	if (WIFEXITED(status) && !WEXITSTATUS(status) && fail && job.error_exitcode)
		return job.error_exitcode;
	return rs_launch_mirror(status);
}
