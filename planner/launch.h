/* SPDX-License-Identifier: MIT */
/*
 * Starting a program under the library: where the library is, the environment, waiting as a parent
 * that is not noticed. Callers: run and audit (cmd_run.c). Single-threaded; the signal handlers of
 * rs_launch_wait are process-wide and last until it returns.
 */
#ifndef RS_PLANNER_LAUNCH_H
#define RS_PLANNER_LAUNCH_H

#include <stddef.h>
#include <sys/types.h>

/* Absolute path of libreplayshim.so: REPLAYSHIM_LIB, beside replayctl, or in ../lib. -errno. */
int rs_launch_library(char *ret_path, size_t size);

/* What the child gets on top of the environment. */
struct rs_launch_env {
	const char *library; /* goes first in LD_PRELOAD */
	const char *mode;
	const char *out;      /* REPLAYSHIM_OUT template */
	const char *contract; /* REPLAYSHIM_CONTRACT, absolute; NULL: as it is */
	const char *budget;   /* REPLAYSHIM_BUDGET; NULL: as it is */
	const char *plan;     /* REPLAYSHIM_PLAN, absolute; NULL: as it is */
	const char *run;      /* REPLAYSHIM_RUN; NULL: as it is */
	int learn;
};

int rs_launch_setenv(const struct rs_launch_env *env);

/*
 * Fork and exec. 0 and *ret_pid, or the -errno with which exec (or fork) failed in the child. After a success the signals
 * that go on to the child are blocked until rs_launch_wait.
 */
int rs_launch_spawn(char **argv, const struct rs_launch_env *env, pid_t *ret_pid);

/*
 * Wait for the child. Signals sent to this process go on to the child, except for those that the
 * terminal has sent to both.
 */
int rs_launch_wait(pid_t pid, int *ret_status);

/* End as the child ended: its exit status is returned, its fatal signal raised. */
int rs_launch_mirror(int status);

#endif
