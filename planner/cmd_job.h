/* SPDX-License-Identifier: MIT */
/*
 * What the commands that run a program have in common (run, audit, verify): where its data goes, the library,
 * and which data is new. Single-threaded, no state.
 */
#ifndef RS_PLANNER_CMD_JOB_H
#define RS_PLANNER_CMD_JOB_H

#include <limits.h>
#include <sys/stat.h>

#include "planner/launch.h"
#include "planner/rundir.h"

struct rs_job {
	const char *name, *dir, *mode;
	char **command;
	int fail_on_warn, error_exitcode, color, verbose;
	const char *contract;	   /* audit: to be written; verify: to be kept */
	const char *budget, *plan; /* run */
	int force;
	char library[PATH_MAX], out[PATH_MAX * 2], dir_abs[PATH_MAX];
	char run[48]; /* its name: another command may use the same directory at the same time */
};

/* Process directories that were there before, and how their files looked. */
struct rs_job_before {
	char **paths;
	struct stat *stats; /* of events.jsonl and records.jsonl, in pairs */
	size_t n;
};

/* library, out, dir_abs and run. 0 or the exit status. */
int rs_job_prepare(struct rs_job *job);
/* Says so, and returns the exit status. */
int rs_job_cannot_exec(const struct rs_job *job, int error);
/* Runs the command, after a look at what is there. 0 and how it ended, as waitpid has it; or says what is wrong: the exit status. */
int rs_job_run(const struct rs_job *job, const struct rs_launch_env *env, struct rs_job_before *b,
	       int *ret_status);
/* The data that is not from before, nor of another command; none is no error. fn gets every record, old ones too. */
int rs_job_new_runs(const struct rs_job *job, const struct rs_job_before *b, rs_replay_fn *fn,
		    void *ctx, struct rs_run ***ret_runs, size_t *ret_n);

#endif
