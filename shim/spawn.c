/* SPDX-License-Identifier: MIT */
/*
 * See spawn.h.
 *
 * Two steps, each as vfork does it but by clone(2), on stacks of their own. The first one ends with no signal, and wait()
 * passes children over that end with another than SIGCHLD. It only makes the second one, which executes the program: exec
 * would set that signal back to SIGCHLD, so its parent must be somebody else, and must be gone by then.
 * While they share our memory all signals are blocked, for their handlers are the user's; the thread's other state (errno,
 * cancellation) is put back. No locks.
 */
#include "shim/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK (64u << 10)

struct start {
	const char *path;
	char *const *argv, *const *env;
	char *stack; /* of the second process: its top */
	int error;
};

static void close_all(void)
{
	struct rlimit limit = {0};
	unsigned most;

	if (!syscall(SYS_close_range, 3u, ~0u, 0u))
		return;
	getrlimit(RLIMIT_NOFILE, &limit);
	most = limit.rlim_cur < 65536 ? (unsigned)limit.rlim_cur : 65536;
	for (unsigned fd = 3; fd < most; fd++)
		close((int)fd);
}

/* A sanitizer would keep book of stacks that are gone when it looks again. */
#define UNWATCHED __attribute__((no_sanitize("address", "thread", "undefined")))

UNWATCHED static int become(void *arg)
{
	struct sigaction plain = {.sa_handler = SIG_DFL};
	struct start *s = arg;
	sigset_t none;
	int null = open("/dev/null", O_RDWR);

	for (int sig = 1; sig < NSIG; sig++)
		sigaction(sig, &plain, NULL);
	sigemptyset(&none);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 || chdir("/")) {
		s->error = errno;
		return 1;
	}
	close_all();
	sigprocmask(SIG_SETMASK, &none, NULL);
	execve(s->path, s->argv, s->env);
	s->error = errno;
	return 1;
}

UNWATCHED static int step_between(void *arg)
{
	struct start *s = arg;
	pid_t pid = clone(become, s->stack, CLONE_VM | CLONE_VFORK | SIGCHLD, s);

	if (pid < 0)
		s->error = errno;
	else if (s->error)
		waitpid(pid, NULL, __WALL);
	return 0;
}

/* What loses its parent becomes a child of the nearest process like that. */
static int adopts_orphans(void)
{
	int is = 0;

	return getpid() == 1 || (!prctl(PR_GET_CHILD_SUBREAPER, &is, 0, 0, 0) && is);
}

int rs_spawn_orphan(const char *path, char *const *argv, char *const *env, pid_t *ret_helper)
{
	struct start s = {.path = path, .argv = argv, .env = env};
	int saved = errno, cancel, error;
	sigset_t all, before;
	char *stacks;
	pid_t pid;

	*ret_helper = 0;
	if (adopts_orphans())
		return -EBUSY;
	stacks = mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stacks == MAP_FAILED)
		return -ENOMEM;
	s.stack = stacks + 2 * STACK;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	pid = clone(step_between, stacks + STACK, CLONE_VM | CLONE_VFORK, &s);
	error = pid < 0 ? errno : s.error;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_setcancelstate(cancel, NULL);
	munmap(stacks, 2 * STACK);
	errno = saved;
	if (pid > 0)
		*ret_helper = pid;
	return -error;
}

int rs_spawn_reap(pid_t helper)
{
	int saved = errno, r = waitpid(helper, NULL, __WCLONE | WNOHANG);

	errno = saved;
	return r != 0;
}
