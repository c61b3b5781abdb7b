/* SPDX-License-Identifier: MIT */
/* Failed writes end nobody and swallow no signal of the program. Signals keep their default action: they would kill. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/tap.h"
#include "tracker/quiet.h"

static int is_pending(int sig)
{
	sigset_t set;

	sigpending(&set);
	return sigismember(&set, sig);
}

static int is_blocked(int sig)
{
	sigset_t set;

	pthread_sigmask(SIG_BLOCK, NULL, &set);
	return sigismember(&set, sig);
}

static void closed_pipe(void)
{
	sigset_t set;
	int fd[2];

	if (pipe(fd))
		return;
	is_u64((uint64_t)rs_quiet_write(fd[1], "abc", 3), 3, "an open pipe takes it");
	close(fd[0]);
	ok(rs_quiet_write(fd[1], "abc", 3) == -1 && errno == EPIPE, "a closed pipe: an error code");
	ok(!is_blocked(SIGPIPE) && !is_blocked(SIGXFSZ), "signals are let in again");

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	rs_quiet_write(fd[1], "abc", 3);
	ok(!is_pending(SIGPIPE) && is_blocked(SIGPIPE),
	   "blocked by the program: stays blocked, none is left");
	raise(SIGPIPE);
	rs_quiet_write(fd[1], "abc", 3);
	ok(is_pending(SIGPIPE), "the program's own waiting signal still waits");
	signal(SIGPIPE, SIG_IGN); /* discards it */
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	signal(SIGPIPE, SIG_DFL);
	close(fd[1]);
}

static void limited_file(void)
{
	char name[] = "/tmp/rs_quiet_XXXXXX";
	struct rlimit was, five;
	int fd = mkstemp(name);

	getrlimit(RLIMIT_FSIZE, &was);
	five = was;
	five.rlim_cur = 5;
	setrlimit(RLIMIT_FSIZE, &five);
	is_u64((uint64_t)rs_quiet_write(fd, "abcdefgh", 8), 5, "up to the size limit");
	ok(rs_quiet_write(fd, "f", 1) == -1 && errno == EFBIG,
	   "past the size limit: an error code");
	ok(!is_pending(SIGXFSZ), "and no signal left behind");
	setrlimit(RLIMIT_FSIZE, &was);
	is_u64((uint64_t)rs_quiet_write(fd, "f", 1), 1, "without the limit again");
	close(fd);
	unlink(name);
}

int main(void)
{
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	closed_pipe();
	limited_file();
	return tap_done();
}
