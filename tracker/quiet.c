/* SPDX-License-Identifier: MIT */
/* See quiet.h. The signal of a failed write goes to the writing thread, so that thread can take it back. */
#include "tracker/quiet.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static void take_back(int sig)
{
	static const struct timespec now;
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, sig);
	while (sigtimedwait(&one, NULL, &now) < 0 && errno == EINTR)
		;
}

ssize_t rs_quiet_write(int fd, const void *text, size_t len)
{
	sigset_t ours, was, pending;
	int error, sig;
	ssize_t n;

	sigemptyset(&ours);
	sigaddset(&ours, SIGPIPE);
	sigaddset(&ours, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &ours, &was);
	/* One that waits already is the program's, and covers ours: signals of a kind do not add up. */
	sigpending(&pending);
	do
		n = write(fd, text, len);
	while (n < 0 && errno == EINTR);
	error = errno;
	sig = n >= 0 ? 0 : error == EPIPE ? SIGPIPE : error == EFBIG ? SIGXFSZ : 0;
	if (sig && !sigismember(&pending, sig))
		take_back(sig);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	errno = error;
	return n;
}
