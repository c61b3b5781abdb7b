/* SPDX-License-Identifier: MIT */
/* See ownfd.h. */
#include "tracker/ownfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static int number(uint64_t at)
{
	return (int32_t)(uint32_t)at;
}

/* What follows `at` when the number is fd. */
static uint64_t after(uint64_t at, int fd)
{
	return ((at >> 32) + 1) << 32 | (uint32_t)fd;
}

/* As high as the limit on descriptors allows; never one of the first three. */
static int lift(int fd)
{
	static const int above[] = {700, 200, 40, 3};
	int up = -1, error = EMFILE;

	for (unsigned i = 0; i < sizeof(above) / sizeof(*above) && up < 0; i++)
		up = fcntl(fd, F_DUPFD_CLOEXEC, above[i]);
	if (up < 0 && fd >= 3)
		return fd;
	if (up < 0)
		error = errno;
	close(fd);
	return up < 0 ? -error : up;
}

/* 0 or -1 with errno. Some do not let a process ask for a file's birth. */
static int identify(int fd, struct rs_ownfd_file *ret)
{
	struct statx x;
	struct stat st;

	*ret = (struct rs_ownfd_file){0};
	if (!statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &x)) {
		ret->dev = makedev(x.stx_dev_major, x.stx_dev_minor);
		ret->ino = x.stx_ino;
		if (x.stx_mask & STATX_BTIME) {
			ret->born_s = x.stx_btime.tv_sec;
			ret->born_ns = x.stx_btime.tv_nsec;
		}
		return 0;
	}
	if (fstat(fd, &st))
		return -1;
	ret->dev = st.st_dev;
	ret->ino = st.st_ino;
	return 0;
}

static int is_same(const struct rs_ownfd *o, int fd)
{
	const struct rs_ownfd_file *was = &o->file;
	struct rs_ownfd_file is;

	return !identify(fd, &is) && is.dev == was->dev && is.ino == was->ino &&
	       (!is.born_s || !was->born_s ||
		(is.born_s == was->born_s && is.born_ns == was->born_ns));
}

int rs_ownfd_adopt(struct rs_ownfd *o, int fd)
{
	int error;

	fd = lift(fd);
	if (fd < 0)
		return fd;
	if (identify(fd, &o->file)) {
		error = -errno;
		close(fd);
		return error;
	}
	o->path = NULL;
	atomic_store(&o->at, after(atomic_load(&o->at), fd));
	return 0;
}

static int open_end(const char *path, int create)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | create, 0600);

	if (fd >= 0)
		fcntl(fd, F_SETFL, O_APPEND); /* not blocking was for the opening */
	return fd;
}

int rs_ownfd_open(struct rs_ownfd *o, const char *path, int is_new)
{
	int fd = open_end(path, O_CREAT | (is_new ? O_EXCL : 0)), r;

	if (fd < 0)
		return -errno;
	r = rs_ownfd_adopt(o, fd);
	/* Without a name it works as well, until somebody closes it. */
	if (!r)
		o->path = realpath(path, NULL);
	return r;
}

static int open_again(struct rs_ownfd *o, uint64_t gone)
{
	int fd = o->path ? open_end(o->path, 0) : -1;

	if (fd >= 0 && !is_same(o, fd)) {
		close(fd);
		fd = -1;
	}
	if (fd >= 0)
		fd = lift(fd);
	if (fd < 0) {
		errno = EBADF;
		return -1;
	}
	if (atomic_compare_exchange_strong(&o->at, &gone, after(gone, fd)))
		return fd;
	close(fd);
	return number(gone); /* another thread's is there */
}

int rs_ownfd_get(struct rs_ownfd *o)
{
	uint64_t at = atomic_load(&o->at);
	int fd = number(at);

	if (fd >= 0 && is_same(o, fd))
		return fd;
	return open_again(o, at);
}

void rs_ownfd_close(struct rs_ownfd *o)
{
	uint64_t at = atomic_load(&o->at);
	int fd = number(at);

	atomic_store(&o->at, after(at, -1));
	if (fd >= 0 && is_same(o, fd))
		close(fd);
	free(o->path);
	o->path = NULL;
}
