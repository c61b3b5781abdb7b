/* SPDX-License-Identifier: MIT */
/*
 * Becoming the user's planner: one at a time, whoever holds the lock beside the socket.
 *
 * The lock is flock(2) on a file that is never removed, so the kernel gives it back when its holder dies, however; it is
 * not on data. A socket's file without a listener is what a dead planner left: only the lock's holder removes it. The
 * directory is the user's own and closed to others, else nothing is made in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "planner/serve.h"
#include "tracker/wire.h"

#define BACKLOG 256

static int make_directory(const char *path)
{
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];

	snprintf(dir, sizeof(dir), "%s", path);
	*strrchr(dir, '/') = 0;
	if (mkdir(dir, 0700) && errno != EEXIST)
		return -errno;
	return rs_wire_trust(path);
}

static int take_lock(const char *path)
{
	char file[sizeof(((struct sockaddr_un *)0)->sun_path) + 8];
	int fd, r;

	snprintf(file, sizeof(file), "%s.lock", path);
	fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (!flock(fd, LOCK_EX | LOCK_NB))
		return fd;
	r = errno == EWOULDBLOCK ? -EBUSY : -errno;
	close(fd);
	return r;
}

static int open_socket(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;
	mode_t mask;

	if (fd < 0)
		return -errno;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	unlink(path);
	mask = umask(077);
	r = bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, BACKLOG) ? -errno
											  : 0;
	umask(mask);
	if (!r)
		return fd;
	close(fd);
	return r;
}

int rs_serve_elect(const char *path, int *ret_lock, int *ret_listen, const char **ret_why)
{
	int r = make_directory(path), lock, fd;

	if (r) {
		*ret_why = r == -EACCES ? "the socket's directory is not yours alone (0700)"
					: "cannot make the socket's directory";
		return r;
	}
	lock = take_lock(path);
	if (lock < 0) {
		*ret_why = lock == -EBUSY ? "there is a planner already" : "cannot take the lock";
		return lock;
	}
	fd = open_socket(path);
	if (fd < 0) {
		*ret_why = "cannot open the socket";
		close(lock);
		return fd;
	}
	*ret_lock = lock;
	*ret_listen = fd;
	return 0;
}

/* Nothing of whoever started us: its pipes would stay open, its directory busy, its signals blocked. */
static int leave_all(int lock, int listen)
{
	int null = open("/dev/null", O_RDWR), low = lock < listen ? lock : listen;
	int high = lock < listen ? listen : lock;
	sigset_t none;

	if (null < 0 || chdir("/"))
		return -errno;
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	if (low > 3)
		close_range(3, (unsigned)low - 1, 0);
	if (high > low + 1)
		close_range((unsigned)low + 1, (unsigned)high - 1, 0);
	close_range((unsigned)high + 1, ~0u, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGHUP, SIG_IGN);
	return 0;
}

int rs_serve_detach(int lock, int listen)
{
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid)
		_exit(0);
	/* A session of its own, of which the second child is no leader: no terminal will be its. */
	setsid();
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid)
		_exit(0);
	return leave_all(lock, listen);
}
