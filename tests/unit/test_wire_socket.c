/* SPDX-License-Identifier: MIT */
/*
 * The connecting end of the planner's socket: where it is, whom it trusts, and what it makes of answers and areas that no
 * planner would send. Whatever comes, no descriptor is left open and errno is as it was.
 */
#include "tracker/wire.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/tap.h"

static char dir[64];

static unsigned descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* --- the path ---------------------------------------------------------------------------------------- */

static void test_path(void)
{
	char home[] = "XDG_RUNTIME_DIR=/run/user/7", relative[] = "XDG_RUNTIME_DIR=run",
	     nothing[] = "XDG_RUNTIME_DIR=";
	char *env[][2] = {{home, NULL}, {relative, NULL}, {nothing, NULL}, {NULL, NULL}};
	char out[108], own[64], name[120];

	snprintf(own, sizeof(own), "/tmp/replayshim-%u/planner.sock", (unsigned)geteuid());
	ok(!rs_wire_path(NULL, env[0], out, sizeof(out)), "a path");
	is_str(out, "/run/user/7/replayshim/planner.sock", "in the runtime directory");
	for (unsigned i = 1; i < 4; i++) {
		rs_wire_path("auto", env[i], out, sizeof(out));
		is_str(out, own, "none, or none that counts: in /tmp");
	}
	rs_wire_path("two", env[0], out, sizeof(out));
	is_str(out, "/run/user/7/replayshim/two.sock", "by name");
	ok(rs_wire_path("a/b", env[0], out, sizeof(out)) == -EINVAL, "no slash");
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = 0;
	ok(rs_wire_path(name, env[0], out, sizeof(out)) == -ENAMETOOLONG, "too long");
	ok(rs_wire_path(NULL, env[0], out, 20) == -ENAMETOOLONG, "too long for who asks");
	ok(!rs_wire_path(NULL, NULL, out, sizeof(out)), "without an environment");
}

static void test_trust(void)
{
	char path[100], link_path[100];

	snprintf(path, sizeof(path), "%s/in/planner.sock", dir);
	errno = 77;
	ok(rs_wire_trust(path) == -ENOENT && errno == 77, "no directory");
	ok(rs_wire_dial(path) == -ENOENT && errno == 77, "no planner");
	*strrchr(path, '/') = 0;
	mkdir(path, 0700);
	path[strlen(path)] = '/';
	ok(!rs_wire_trust(path), "a directory of our own");
	ok(rs_wire_dial(path) == -ENOENT, "without a socket");
	*strrchr(path, '/') = 0;
	chmod(path, 0710);
	path[strlen(path)] = '/';
	ok(rs_wire_trust(path) == -EACCES && rs_wire_dial(path) == -EACCES, "open to a group");
	snprintf(link_path, sizeof(link_path), "%s/link", dir);
	ok(!symlink("/tmp", link_path), "a link");
	snprintf(link_path, sizeof(link_path), "%s/link/planner.sock", dir);
	ok(rs_wire_trust(link_path) == -EACCES, "is not followed");
	ok(rs_wire_trust("planner.sock") == -EINVAL && rs_wire_trust("/x") == -EINVAL,
	   "no directory in it");
	snprintf(link_path, sizeof(link_path), "%s/link", dir);
	unlink(link_path);
	*strrchr(path, '/') = 0;
	rmdir(path);
}

/* --- answers ------------------------------------------------------------------------------------------- */

static void send_answer(int fd, const void *bytes, size_t n, const int *fds, unsigned nfds)
{
	char control[CMSG_SPACE(4 * sizeof(int))] __attribute__((aligned(8))) = {0};
	struct iovec v = {(void *)bytes, n};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};

	if (nfds) {
		struct cmsghdr *c = (struct cmsghdr *)control;

		m.msg_control = control;
		m.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
	}
	if (sendmsg(fd, &m, 0) != (ssize_t)n)
		ok(0, "sent");
}

static int answered(const void *bytes, size_t n, unsigned nfds, int *ret_area)
{
	int pair[2], fds[4] = {0, 1, 2, 0}, r;
	struct rs_wire_answer a;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return -EIO;
	if (n)
		send_answer(pair[0], bytes, n, fds, nfds);
	else
		shutdown(pair[0], SHUT_WR);
	*ret_area = -7;
	errno = 77;
	r = rs_wire_answer(pair[1], &a, ret_area);
	ok(errno == 77, "errno is as it was");
	close(pair[0]);
	close(pair[1]);
	return r;
}

static void test_answers(void)
{
	struct rs_wire_answer a = {.magic = RS_WIRE_MAGIC, .major = RS_WIRE_MAJOR};
	unsigned before = descriptors();
	int area, pair[2];

	ok(!answered(&a, sizeof(a), 1, &area) && area >= 0, "an answer with a descriptor");
	ok((fcntl(area, F_GETFD) & FD_CLOEXEC) != 0, "which no program started later gets");
	close(area);
	ok(!answered(&a, sizeof(a), 0, &area) && area == -1, "one without");
	ok(answered(&a, sizeof(a), 2, &area) == -EPROTO && area == -7, "one with two");
	ok(answered(&a, sizeof(a), 4, &area) == -EPROTO && area == -7, "one with four");
	a.error = -ENOMEM;
	ok(!answered(&a, sizeof(a), 1, &area) && area == -1, "an error does not have one");
	a.major++;
	ok(answered(&a, sizeof(a), 1, &area) == -EPROTO && area == -7, "another version");
	a.major--;
	a.magic++;
	ok(answered(&a, sizeof(a), 1, &area) == -EPROTO, "no planner");
	a.magic--;
	ok(answered(&a, 5, 1, &area) == -EPROTO, "a piece");
	ok(answered(NULL, 0, 0, &area) == -EPIPE, "the end");
	if (!socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) {
		ok(rs_wire_answer(pair[0], &a, &area) == -EAGAIN, "nothing yet");
		close(pair[1]);
		ok(rs_wire_ask(pair[0], &(struct rs_wire_request){.ask = RS_WIRE_HELLO}) == -EPIPE,
		   "asked of nobody: no signal");
		close(pair[0]);
	}
	is_u64(descriptors(), before, "no descriptor is left");
}

/* --- areas -------------------------------------------------------------------------------------------- */

static int make(uint64_t bytes, int fill, int seals, int init)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct rs_wire *w;

	if (ftruncate(fd, (off_t)bytes) || (fill && fallocate(fd, 0, 0, (off_t)bytes)))
		ok(0, "memory");
	if (init) {
		w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		rs_wire_init(w, 1);
		w->layout += init > 1;
		munmap(w, sizeof(*w));
	}
	fcntl(fd, F_ADD_SEALS, seals);
	return fd;
}

static void refused(int fd, const char *what)
{
	struct rs_wire *w = (void *)&w;
	const char *why = NULL;
	int r;

	errno = 77;
	r = rs_wire_map(fd, &w, &why);
	ok(r < 0 && why && *why && w == (void *)&w && errno == 77, "refused: %s (%s)", what,
	   why ? why : "?");
	close(fd);
}

static void test_areas(void)
{
	const int sealed = F_SEAL_SHRINK | F_SEAL_GROW;
	const uint64_t bytes = sizeof(struct rs_wire);
	unsigned before = descriptors();
	struct rs_wire *w = NULL;
	const char *why;
	int fd, pipes[2];

	fd = make(bytes, 1, sealed | F_SEAL_SEAL, 1);
	ok(!rs_wire_map(fd, &w, &why) && w && w->planner_pid == 1, "an area");
	close(fd);
	ok(ftruncate(fd, 0) < 0 && w->magic == RS_WIRE_MAGIC, "lives without its descriptor");
	munmap(w, sizeof(*w));
	refused(make(bytes, 1, 0, 1), "one that can be cut off");
	refused(make(bytes, 1, F_SEAL_GROW, 1), "or so");
	refused(make(bytes - 1, 1, sealed, 0), "a byte less");
	refused(make(bytes + 4096, 1, sealed, 1), "a page more");
	refused(make(bytes, 0, sealed, 1), "one without its memory");
	refused(make(bytes, 1, sealed, 0), "an empty one");
	refused(make(bytes, 1, sealed, 2), "another layout");
	if (!pipe(pipes)) {
		refused(pipes[0], "a pipe");
		close(pipes[1]);
	}
	refused(open("/dev/null", O_RDWR), "a device");
	refused(-1, "nothing");
	is_u64(descriptors(), before, "no descriptor is left");
}

int main(void)
{
	snprintf(dir, sizeof(dir), "/tmp/replayshim-test-XXXXXX");
	if (!mkdtemp(dir))
		return 1;
	test_path();
	test_trust();
	test_answers();
	test_areas();
	rmdir(dir);
	return tap_done();
}
