/* SPDX-License-Identifier: MIT */
/*
 * Starting and waiting; see launch.h.
 *
 * Invariants: between fork and exec the child calls nothing that could fail unseen: the errno of a
 * failed exec comes back through a close-on-exec pipe. The environment of this process itself is
 * changed only by rs_launch_setenv, which `run` calls right before its own exec.
 */
#include "planner/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const int forwarded[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT};

#define NFORWARDED (sizeof(forwarded) / sizeof(forwarded[0]))

static volatile pid_t child;
static sigset_t before; /* the mask as it was before rs_launch_spawn */

int rs_launch_library(char *ret_path, size_t size)
{
	static const char *const places[] = {"", "../lib/", "../lib/x86_64-linux-gnu/",
					     "../lib/aarch64-linux-gnu/"};
	const char *given = getenv("REPLAYSHIM_LIB");
	char self[PATH_MAX], path[PATH_MAX + 64], *slash, full[PATH_MAX];
	ssize_t n;

	if (given && *given) {
		if (!realpath(given, full) || access(full, R_OK))
			return -errno;
		return snprintf(ret_path, size, "%s", full) >= (int)size ? -ENAMETOOLONG : 0;
	}
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n < 0)
		return -errno;
	self[n] = 0;
	slash = strrchr(self, '/');
	if (slash)
		slash[1] = 0;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s%slibreplayshim.so", self, places[i]);
		if (realpath(path, full) && !access(full, R_OK))
			return snprintf(ret_path, size, "%s", full) >= (int)size ? -ENAMETOOLONG
										 : 0;
	}
	return -ENOENT;
}

int rs_launch_setenv(const struct rs_launch_env *env)
{
	const char *others = getenv("LD_PRELOAD");
	char *list;
	int r;

	if (asprintf(&list, "%s%s%s", env->library, others && *others ? ":" : "",
		     others ? others : "") < 0)
		return -ENOMEM;
	r = setenv("LD_PRELOAD", list, 1) || setenv("REPLAYSHIM_MODE", env->mode, 1) ||
	    setenv("REPLAYSHIM_OUT", env->out, 1) ||
	    (env->contract && setenv("REPLAYSHIM_CONTRACT", env->contract, 1)) ||
	    (env->budget && setenv("REPLAYSHIM_BUDGET", env->budget, 1)) ||
	    (env->plan && setenv("REPLAYSHIM_PLAN", env->plan, 1)) ||
	    (env->run && setenv("REPLAYSHIM_RUN", env->run, 1)) ||
	    (env->learn && setenv("REPLAYSHIM_LEARN", "1", 1));
	free(list);
	return r ? -errno : 0;
}

/* What comes before there is a handler goes on to the child all the same. */
static void put_off_signals(void)
{
	sigset_t all;

	sigemptyset(&all);
	for (size_t i = 0; i < NFORWARDED; i++)
		sigaddset(&all, forwarded[i]);
	sigprocmask(SIG_BLOCK, &all, &before);
}

int rs_launch_spawn(char **argv, const struct rs_launch_env *env, pid_t *ret_pid)
{
	int ends[2], error = 0;
	ssize_t n;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	put_off_signals();
	pid = fork();
	if (!pid) {
		sigprocmask(SIG_SETMASK, &before, NULL);
		error = -rs_launch_setenv(env);
		if (!error) {
			execvp(argv[0], argv);
			error = errno;
		}
		n = write(ends[1], &error, sizeof(error));
		_exit(n == sizeof(error) ? 127 : 126);
	}
	error = pid < 0 ? errno : 0;
	close(ends[1]);
	if (pid > 0) {
		do
			n = read(ends[0], &error, sizeof(error));
		while (n < 0 && errno == EINTR);
		if (n != sizeof(error))
			error = 0;
		if (error)
			waitpid(pid, NULL, 0);
	}
	close(ends[0]);
	if (error)
		sigprocmask(SIG_SETMASK, &before, NULL);
	else
		*ret_pid = pid;
	return -error;
}

/* What the kernel sends from the terminal reaches the whole foreground group by itself. */
static void forward(int sig, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)context;
	if (child > 0 && info->si_code <= 0)
		kill(child, sig);
	errno = saved;
}

int rs_launch_wait(pid_t pid, int *ret_status)
{
	/* No SA_RESTART: ThreadSanitizer runs handlers when the wait returns. */
	struct sigaction act = {.sa_sigaction = forward, .sa_flags = SA_SIGINFO};
	struct sigaction old[NFORWARDED];
	siginfo_t ended;
	int r = 0;

	child = pid;
	sigemptyset(&act.sa_mask);
	for (size_t i = 0; i < NFORWARDED; i++)
		sigaction(forwarded[i], &act, &old[i]);
	sigprocmask(SIG_SETMASK, &before, NULL);
	while (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT) < 0 && !r)
		r = errno == EINTR ? 0 : -errno;
	child = 0; /* once it has been asked for its status its number may be another's */
	if (!r && waitpid(pid, ret_status, 0) < 0)
		r = -errno;
	for (size_t i = 0; i < NFORWARDED; i++)
		sigaction(forwarded[i], &old[i], NULL);
	return r;
}

int rs_launch_mirror(int status)
{
	struct rlimit none = {0, 0};
	sigset_t set;
	int sig;

	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	sig = WTERMSIG(status);
	/* One core file is enough, and the child has left it. */
	setrlimit(RLIMIT_CORE, &none);
	signal(sig, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	fflush(NULL);
	raise(sig);
	return 128 + sig;
}
