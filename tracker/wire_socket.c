/* SPDX-License-Identifier: MIT */
/*
 * The planner's socket: where it is, whether it is to be trusted, and the connecting end of it.
 *
 * Invariants: nothing waits, no signal is raised (MSG_NOSIGNAL), every descriptor is closed on exec, errno is left as
 * found. What comes from the other end is judged before it is used; only one descriptor is ever accepted, and none with
 * an error. Callers: the shim's connection, replayctl, the planner for the path; any thread. No state, no locks.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tracker/options.h"
#include "tracker/wire.h"

int rs_wire_path(const char *name, char *const *env, char *out, unsigned size)
{
	const unsigned most = sizeof(((struct sockaddr_un *)0)->sun_path);
	const char *runtime = env ? rs_options_env(env, "XDG_RUNTIME_DIR") : NULL;
	char uid[40];
	int n;

	if (!name || !*name || !strcmp(name, "auto"))
		name = "planner";
	if (strchr(name, '/'))
		return -EINVAL;
	snprintf(uid, sizeof(uid), "/tmp/replayshim-%u", (unsigned)geteuid());
	/* A relative one is to be ignored, says the XDG base directory specification. */
	if (runtime && *runtime == '/')
		n = snprintf(out, size, "%s/replayshim/%s.sock", runtime, name);
	else
		n = snprintf(out, size, "%s/%s.sock", uid, name);
	return n < 0 || (unsigned)n >= size || (unsigned)n >= most ? -ENAMETOOLONG : 0;
}

int rs_wire_trust(const char *path)
{
	struct sockaddr_un limit;
	const char *slash = strrchr(path, '/');
	char dir[sizeof(limit.sun_path)];
	int saved = errno, r = 0;
	struct stat st;

	if (!slash || slash == path)
		return -EINVAL;
	if ((size_t)(slash - path) >= sizeof(dir))
		return -ENAMETOOLONG;
	memcpy(dir, path, slash - path);
	dir[slash - path] = 0;
	/* A link would be followed to a place of its owner's choice later on. */
	if (lstat(dir, &st))
		r = -errno;
	else if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
		r = -EACCES;
	errno = saved;
	return r;
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct ucred peer;
	socklen_t bytes = sizeof(peer);
	int fd, r = 0;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes))
		r = -errno;
	else if (peer.uid != geteuid())
		r = -EACCES;
	if (!r)
		return fd;
	close(fd);
	return r;
}

int rs_wire_dial(const char *path)
{
	int saved = errno, r = rs_wire_trust(path);

	if (!r)
		r = connect_to(path);
	errno = saved;
	return r;
}

int rs_wire_ask(int fd, struct rs_wire_request *request)
{
	int saved = errno, r = 0;
	ssize_t n;

	request->magic = RS_WIRE_MAGIC;
	request->major = RS_WIRE_MAJOR;
	n = send(fd, request, sizeof(*request), MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0)
		r = -errno;
	else if (n != sizeof(*request))
		r = -EAGAIN;
	errno = saved;
	return r;
}

/* The one descriptor of a message, or -1. */
static int descriptor_of(struct msghdr *m)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	int fd = -1;

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(fd)))
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

int rs_wire_answer(int fd, struct rs_wire_answer *ret_answer, int *ret_area)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct rs_wire_answer a;
	struct iovec v = {&a, sizeof(a)};
	struct msghdr m = {.msg_iov = &v,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   /* not the space: padding would have room for another */
			   .msg_controllen = CMSG_LEN(sizeof(int))};
	int saved = errno, r = 0, area;
	ssize_t n;

	n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		r = errno == EINTR ? -EAGAIN : errno == ECONNRESET ? -EPIPE : -errno;
	errno = saved;
	if (n < 0)
		return r;
	area = descriptor_of(&m);
	if (!n)
		r = -EPIPE;
	else if (n != sizeof(a) || (m.msg_flags & MSG_CTRUNC) || a.magic != RS_WIRE_MAGIC ||
		 a.major != RS_WIRE_MAJOR)
		r = -EPROTO;
	if (area >= 0 && (r || a.error)) {
		close(area);
		area = -1;
	}
	if (r)
		return r;
	*ret_answer = a;
	*ret_area = area;
	return 0;
}

int rs_wire_map(int area, struct rs_wire **ret_wire, const char **ret_why)
{
	const int need = F_SEAL_SHRINK | F_SEAL_GROW;
	const char *why = "the shared memory cannot be mapped";
	int saved = errno, seals, r = 0;
	struct stat st;
	void *map = MAP_FAILED;

	seals = fcntl(area, F_GET_SEALS);
	if (fstat(area, &st)) {
		r = -errno;
	} else if (seals < 0 || (seals & need) != need) {
		r = -EPROTO;
		why = "the shared memory is not sealed";
	} else if ((uint64_t)st.st_size != sizeof(struct rs_wire)) {
		r = rs_wire_check(NULL, st.st_size, &why);
	} else if ((uint64_t)st.st_blocks * 512 < sizeof(struct rs_wire)) {
		r = -EPROTO;
		why = "the shared memory has holes";
	} else {
		map = mmap(NULL, sizeof(struct rs_wire), PROT_READ | PROT_WRITE, MAP_SHARED, area,
			   0);
		r = map == MAP_FAILED ? -errno : rs_wire_check(map, st.st_size, &why);
	}
	if (r && map != MAP_FAILED)
		munmap(map, sizeof(struct rs_wire));
	errno = saved;
	if (r)
		*ret_why = why;
	else
		*ret_wire = map;
	return r;
}
