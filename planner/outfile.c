/* SPDX-License-Identifier: MIT */
/* See outfile.h. The text goes into a file beside the other one, which then takes its name. */
#include "planner/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_all(int fd, const char *text, size_t n)
{
	ssize_t done;

	while (n) {
		done = write(fd, text, n);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done ? -errno : -EIO;
		text += done;
		n -= (size_t)done;
	}
	return 0;
}

/* The descriptor is closed. */
static int fill(int fd, const char *text)
{
	int r = write_all(fd, text, strlen(text));

	if (!r)
		r = write_all(fd, "\n", 1);
	/* Pipes and devices have nothing to be synchronised. */
	if (!r && fsync(fd) && errno != EINVAL && errno != EROFS)
		r = -errno;
	if (close(fd) && !r)
		r = -errno;
	return r;
}

static int into(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fill(fd, text);
}

static int take_name(const char *temp, const char *path, int replace)
{
	/* link fails where something is, rename does not. */
	if (!replace && !link(temp, path)) {
		unlink(temp);
		return 0;
	}
	/* Some file systems have no links. */
	if (!replace && errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS)
		return -errno;
	if (!replace && rs_outfile_exists(path))
		return -EEXIST;
	return rename(temp, path) ? -errno : 0;
}

static int beside(const char *path, const char *text, int replace)
{
	static const char name[] = ".replayshim.XXXXXX";
	const char *slash = strrchr(path, '/');
	size_t dir = slash ? (size_t)(slash + 1 - path) : 0;
	char temp[PATH_MAX];
	mode_t mask = umask(0);
	int fd, r;

	umask(mask);
	if (dir + sizeof(name) > sizeof(temp))
		return -ENAMETOOLONG;
	memcpy(temp, path, dir);
	strcpy(temp + dir, name);
	fd = mkostemp(temp, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	fchmod(fd, 0666 & ~mask);
	r = fill(fd, text);
	if (!r)
		r = take_name(temp, path, replace);
	if (r)
		unlink(temp);
	return r;
}

int rs_outfile_exists(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && (stat(path, &st) || S_ISREG(st.st_mode));
}

int rs_outfile_check(const char *path, int replace)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX];
	struct stat st;
	int n;

	if (!replace && rs_outfile_exists(path))
		return -EEXIST;
	if (!stat(path, &st) && !S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : access(path, W_OK) ? -errno : 0;
	n = slash ? (int)(slash + 1 - path) : 0;
	if (n >= PATH_MAX || !*path)
		return n ? -ENAMETOOLONG : -ENOENT;
	snprintf(dir, sizeof(dir), "%.*s", n, path);
	return access(n ? dir : ".", W_OK | X_OK) ? -errno : 0;
}

int rs_outfile_write(const char *path, const char *text, int replace)
{
	struct stat st;
	char *full;
	int r;

	if (stat(path, &st))
		return errno == ENOENT ? beside(path, text, replace) : -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return into(path, text);
	if (!replace)
		return -EEXIST;
	full = realpath(path, NULL);
	if (!full)
		return -errno;
	r = beside(full, text, replace);
	free(full);
	return r;
}
