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
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "planner/cmd_job.h"
#include "planner/contract.h"
#include "planner/ctl.h"
#include "planner/outfile.h"
#include "planner/report.h"
#include "tracker/options.h"
#include "tracker/planfile.h"

enum {
	OPT_MODE = 256,
	OPT_FAIL_ON,
	OPT_EXITCODE,
	OPT_COLOR,
	OPT_CONTRACT,
	OPT_OUT,
	OPT_FORCE,
	OPT_BUDGET,
	OPT_PLAN
};

static int is_json(const char *path)
{
	size_t n = strlen(path);

	return n > 5 && !strcmp(path + n - 5, ".json");
}

static int bad_value(const struct rs_job *job, const char *option, const char *takes)
{
	return rs_ctl_usage(job->name, RS_EXIT_TOOL, "%s takes %s, not '%s'", option, takes,
			    optarg);
}

/* 0 or the exit status. */
static int one_option(struct rs_job *job, int opt, int audit)
{
	static const char *const modes[] = {"off", "nop", "audit", "preserve"};
	uint64_t bytes;
	char *end;
	long n;

	switch (opt) {
	case 'o':
		/* -o contract.json learns a contract; --out is always a directory */
		if (audit && is_json(optarg))
			job->contract = optarg;
		else
			job->dir = optarg;
		return 0;
	case OPT_CONTRACT:
		job->contract = optarg;
		return 0;
	case OPT_OUT:
		job->dir = optarg;
		return 0;
	case OPT_BUDGET:
		job->budget = optarg;
		return !rs_options_size(optarg, &bytes) && bytes
			       ? 0
			       : bad_value(job, "--budget",
					   "bytes with a unit (B KiB MiB GiB TiB)");
	case OPT_PLAN:
		job->plan = optarg;
		return 0;
	case OPT_FORCE:
		job->force = 1;
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

static int parse(int argc, char **argv, struct rs_job *job)
{
	static const struct option audit_options[] = {
		{"out", required_argument, NULL, OPT_OUT},
		{"contract", required_argument, NULL, OPT_CONTRACT},
		{"force", no_argument, NULL, OPT_FORCE},
		{"fail-on", required_argument, NULL, OPT_FAIL_ON},
		{"error-exitcode", required_argument, NULL, OPT_EXITCODE},
		{"color", required_argument, NULL, OPT_COLOR},
		{"verbose", no_argument, NULL, 'v'},
		{NULL, 0, NULL, 0}};
	static const struct option run_options[] = {{"out", required_argument, NULL, 'o'},
						    {"mode", required_argument, NULL, OPT_MODE},
						    {"budget", required_argument, NULL, OPT_BUDGET},
						    {"plan", required_argument, NULL, OPT_PLAN},
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

/* A plan is obeyed in mode preserve only, and must be one. full: its absolute path. 0 or the exit status. */
static int check_plan(const struct rs_job *job, char full[PATH_MAX])
{
	struct rs_jdoc_error e = {0};
	struct rs_plan_entry *entries;
	struct rs_plan_head head;
	int r;

	if ((job->plan || job->budget) && job->mode && strcmp(job->mode, "preserve"))
		return rs_ctl_usage("run", RS_EXIT_TOOL, "--budget and --plan need mode preserve");
	if (!job->plan)
		return 0;
	r = rs_planfile_load(job->plan, &head, &entries, &e);
	if (r && e.line)
		return rs_ctl_usage("run", RS_EXIT_TOOL, "%s:%u:%u: %s%s%s", job->plan, e.line,
				    e.column, e.field, e.field[0] ? " " : "", e.text);
	if (r || !realpath(job->plan, full))
		return rs_ctl_usage("run", RS_EXIT_TOOL, "%s: %s", job->plan,
				    e.text[0] ? e.text : strerror(r ? -r : errno));
	free(entries);
	return 0;
}

int rs_cmd_run(int argc, char **argv)
{
	struct rs_job job = {.name = "run", .dir = "replayshim.data"};
	int status = parse(argc, argv, &job), r;
	char plan[PATH_MAX];

	if (!status)
		status = check_plan(&job, plan);
	if (!status)
		status = rs_job_prepare(&job);
	if (status)
		return status;
	r = rs_launch_setenv(&(struct rs_launch_env){.library = job.library,
						     .mode = job.mode ? job.mode : "preserve",
						     .out = job.out,
						     .budget = job.budget,
						     .plan = job.plan ? plan : NULL});
	if (r)
		return rs_job_cannot_exec(&job, -r);
	execvp(job.command[0], job.command);
	return rs_job_cannot_exec(&job, errno);
}

/* --- audit ---------------------------------------------------------------------------------- */

/* The findings say: do not pass. Without data nothing is known, and nothing passes. */
static int must_fail(const struct rs_job *job, struct rs_run **runs, size_t n,
		     enum rs_verdict worst)
{
	int fail = !n || worst != RS_VERDICT_CLEAN;

	for (size_t i = 0; i < n; i++)
		fail |= rs_verdict_count(runs[i], RS_ERROR) ||
			(job->fail_on_warn && rs_verdict_count(runs[i], RS_WARN));
	return fail;
}

/* The contract, from the same data. 0, or the exit status. */
static int write_contract(const struct rs_job *job, struct rs_run **runs, size_t n,
			  const struct rs_contract_times *times)
{
	struct rs_contract_why why = {""};
	json_t *contract = NULL;
	int r;

	r = rs_contract_learn(runs, n, times, &contract, &why);
	if (!r)
		r = rs_contract_write(job->contract, contract, job->force, &why);
	if (r)
		fprintf(stderr, "replayctl audit: no contract was written: %s\n", why.text);
	else
		fprintf(stderr, "==rs== contract of %zu segments in %s\n",
			json_array_size(json_object_get(contract, "segments")), job->contract);
	json_decref(contract);
	return r ? RS_EXIT_TOOL : 0;
}

/* Print the report of what this command left. Returns 1 if it must not pass; *ret_status: of the contract. */
static int report_new(const struct rs_job *job, const struct rs_job_before *b, int *ret_status)
{
	struct rs_report_style style = {job->color, job->verbose};
	struct rs_contract_times *times = rs_contract_times_create();
	enum rs_verdict worst = RS_VERDICT_CANNOT_TELL;
	struct rs_run **runs;
	size_t n;
	int fail;

	rs_job_new_runs(job, b, times ? rs_contract_times_add : NULL, times, &runs, &n);
	if (n)
		worst = rs_report_all(stderr, runs, n, RS_REPORT_TEXT, &style);
	else
		fprintf(stderr,
			"==rs== AUDIT SUMMARY: no data in %s; verdict cannot-tell\n"
			"==rs== The command made no CUDA call, or the library could not be loaded "
			"into it\n==rs== (a static or setuid program, or one that clears its "
			"environment).\n",
			job->dir_abs);
	fail = must_fail(job, runs, n, worst);
	*ret_status = job->contract ? write_contract(job, runs, n, times) : 0;
	rs_rundir_free(runs, n);
	rs_contract_times_free(times);
	return fail;
}

/* Before the command runs, and not after hours of it. */
static int check_contract(const struct rs_job *job)
{
	int r = job->contract ? rs_outfile_check(job->contract, job->force) : 0;

	if (r == -EEXIST)
		return rs_ctl_usage("audit", RS_EXIT_TOOL, "%s exists already; --force replaces it",
				    job->contract);
	if (r)
		return rs_ctl_usage("audit", RS_EXIT_TOOL, "%s: %s", job->contract, strerror(-r));
	return 0;
}

int rs_cmd_audit(int argc, char **argv)
{
	struct rs_job job = {.name = "audit", .dir = "replayshim.data"};
	struct rs_launch_env env = {.library = job.library, .mode = "audit", .out = job.out};
	struct rs_job_before before = {0};
	int status, r, fail, learned;

	rs_ctl_color(NULL, stderr, &job.color);
	status = parse(argc, argv, &job);
	if (!status)
		status = rs_job_prepare(&job);
	if (!status)
		status = check_contract(&job);
	if (status)
		return status;
	env.learn = !!job.contract;
	env.run = job.run;
	r = rs_job_run(&job, &env, &before, &status);
	if (r)
		return r;
	fail = report_new(&job, &before, &learned);
	if (WIFEXITED(status) && !WEXITSTATUS(status) && fail && job.error_exitcode)
		return job.error_exitcode;
	if (WIFEXITED(status) && !WEXITSTATUS(status) && learned)
		return learned;
	return rs_launch_mirror(status);
}
