/* SPDX-License-Identifier: MIT */
/* Descriptors that a program closes and reuses: tracker/ownfd.c, and records on top of it. */
#include "tracker/ownfd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/tap.h"
#include "tracker/records.h"

static char dir[64];

static const char *in(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static long size_of(const char *name)
{
	struct stat st;

	return stat(in(name), &st) ? -1 : (long)st.st_size;
}

/* A file of the program's own, under number fd. */
static void occupy(int fd)
{
	int own = open(in("own"), O_RDWR | O_CREAT, 0600);

	if (own < 0 || dup2(own, fd) != fd)
		exit(2);
	close(own);
}

static void numbers(void)
{
	struct rs_ownfd o = RS_OWNFD_NONE;
	int first, saved = dup(0), fd;

	ok(rs_ownfd_get(&o) < 0 && errno == EBADF, "none is none");
	close(0);
	ok(!rs_ownfd_open(&o, in("a"), 1), "a new file");
	first = rs_ownfd_get(&o);
	ok(first > 2 && fcntl(first, F_GETFD) == FD_CLOEXEC,
	   "is none of the first three, and closed on exec (%d)", first);
	ok(fcntl(0, F_GETFD) < 0, "the number that was free still is");
	dup2(saved, 0);
	close(saved);
	ok(rs_ownfd_get(&o) == first, "it is found again");
	close(first);
	fd = rs_ownfd_get(&o);
	ok(fd > 2 && write(fd, "x", 1) == 1 && size_of("a") == 1,
	   "closed by others it is opened again");
	occupy(fd);
	first = rs_ownfd_get(&o);
	ok(first > 2 && first != fd && write(first, "x", 1) == 1 && size_of("a") == 2 &&
		   !size_of("own"),
	   "taken by others it is left to them");
	rs_ownfd_close(&o);
	ok(fcntl(first, F_GETFD) < 0 && fcntl(fd, F_GETFD) >= 0, "only ours is closed");
	close(fd);
}

static uint64_t inode_of(const char *name, uint64_t *ret_born)
{
	struct statx x;

	*ret_born = 0;
	if (statx(AT_FDCWD, in(name), 0, STATX_INO | STATX_BTIME, &x))
		return 0;
	if (x.stx_mask & STATX_BTIME)
		*ret_born = (uint64_t)x.stx_btime.tv_sec * 1000000000 + x.stx_btime.tv_nsec;
	return x.stx_ino;
}

/*
 * A file of that name that is not the one that was: where file systems give an inode's number again it has that, and another
 * birth, if these are known; else another number.
 */
static void another(const char *name, uint64_t inode, uint64_t born)
{
	uint64_t is, is_born, is_known;
	char aside[16];

	for (unsigned i = 0;; i++) {
		close(open(in(name), O_RDWR | O_CREAT, 0600));
		is = inode_of(name, &is_born);
		is_known = born && is_born && born != is_born;
		if (is == inode ? is_known : !is_known || i >= 2000)
			return;
		/* Whatever has been made meanwhile keeps its number, or gives it back. */
		snprintf(aside, sizeof(aside), "aside%u", i % 64);
		rename(in(name), in(aside));
	}
}

static void gone(void)
{
	struct rs_ownfd o = RS_OWNFD_NONE;
	uint64_t inode, born;

	ok(rs_ownfd_open(&o, in("a"), 1) == -EEXIST, "a new file must be new");
	ok(!rs_ownfd_open(&o, in("a"), 0), "an old one");
	inode = inode_of("a", &born);
	close(rs_ownfd_get(&o));
	unlink(in("a"));
	occupy(3);
	ok(rs_ownfd_get(&o) < 0 && errno == EBADF, "without its name it cannot be opened again");
	another("a", inode, born);
	ok(rs_ownfd_get(&o) < 0 && !size_of("a"), "another file of that name is not taken for it");
	close(3);
	rs_ownfd_close(&o);
	ok(rs_ownfd_open(&o, "/nonexistent/x", 0) == -ENOENT, "no such place");
}

static void sockets(void)
{
	struct rs_ownfd o = RS_OWNFD_NONE;
	int pair[2], fd;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		exit(2);
	ok(!rs_ownfd_adopt(&o, pair[0]) && rs_ownfd_get(&o) != pair[1], "a socket");
	fd = rs_ownfd_get(&o);
	close(fd);
	occupy(fd);
	ok(rs_ownfd_get(&o) < 0, "is gone for good when it was closed");
	rs_ownfd_close(&o);
	ok(fcntl(fd, F_GETFD) >= 0, "and what has its number is left alone");
	close(fd);
	close(pair[1]);
}

static void scarce(void)
{
	struct rs_ownfd o = RS_OWNFD_NONE;
	struct rlimit was, few;
	int r, fd;

	getrlimit(RLIMIT_NOFILE, &was);
	few = was;
	few.rlim_cur = 16;
	setrlimit(RLIMIT_NOFILE, &few);
	r = rs_ownfd_open(&o, in("few"), 0);
	fd = rs_ownfd_get(&o);
	ok(!r && fd > 2 && fd < 16, "where few are allowed it is one of these");
	rs_ownfd_close(&o);
	for (fd = 3; open("/dev/null", O_RDONLY) >= 0; fd++)
		;
	ok(rs_ownfd_open(&o, in("few"), 0) == -EMFILE, "none left is an error");
	while (fd-- > 3)
		close(fd);
	setrlimit(RLIMIT_NOFILE, &was);
}

#define LOOKERS 4
#define LOOKS	20

static pthread_barrier_t all_there;

static void *look(void *arg)
{
	long found = 0;

	pthread_barrier_wait(&all_there);
	for (int i = 0; i < LOOKS; i++)
		found += rs_ownfd_get(arg) > 2;
	return (void *)found;
}

/*
 * Several threads open it again at once: one descriptor is left. The first gets the number that was closed, so a second
 * one that looked before must not take that number for the closed one (one round in some hundred, hence many).
 */
static void threads(void)
{
	struct rs_ownfd o = RS_OWNFD_NONE;
	pthread_t t[LOOKERS];
	long found = 0, rounds = 500;
	int open_fds = 0;
	void *one;

	pthread_barrier_init(&all_there, NULL, LOOKERS);
	rs_ownfd_open(&o, in("threads"), 1);
	for (int round = 0; round < rounds; round++) {
		close(rs_ownfd_get(&o));
		for (int i = 0; i < LOOKERS; i++)
			pthread_create(&t[i], NULL, look, &o);
		for (int i = 0; i < LOOKERS; i++) {
			pthread_join(t[i], &one);
			found += (long)one;
		}
	}
	for (int fd = 3; fd < 1024; fd++)
		open_fds += fcntl(fd, F_GETFD) >= 0;
	ok(found == rounds * LOOKERS * LOOKS && open_fds == 1,
	   "four threads, one descriptor (%ld, %d)", found, open_fds);
	rs_ownfd_close(&o);
	pthread_barrier_destroy(&all_there);
}

static void records(void)
{
	struct rs_records *rec, *other;
	struct rs_json j;

	ok(!rs_records_open(in("run"), &rec), "a run's directory");
	ok(rs_records_open(in("run"), &other) == -EEXIST, "is one process' only");
	for (int fd = 3; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			occupy(fd);
	for (int i = 0; i < 2; i++) {
		rs_json_begin(&j);
		rs_json_str(&j, "name", "caf\xe9 \xc3\xa9 \xe2\x9c");
		rs_records_write(rec, i ? RS_RECORD_EVENTS : RS_RECORD_REPLAYS, &j);
	}
	ok(!size_of("own") && size_of("run/events.jsonl") > 0 && size_of("run/records.jsonl") > 0,
	   "lines go into our files, whoever has their numbers");
	unlink(in("run/events.jsonl"));
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	rs_json_begin(&j);
	rs_records_write(rec, RS_RECORD_EVENTS, &j);
	ok(rs_records_lost(rec) == 1 && rs_records_error(rec) == -EBADF,
	   "a file that is gone loses lines, counted");
	rs_records_close(rec);
}

/* Every line is JSON, whatever its text is. */
static void utf8(void)
{
	char text[256];
	FILE *f = fopen(in("run/records.jsonl"), "r");

	ok(f && fgets(text, sizeof(text), f), "a line");
	is_str(text, "{\"v\":1,\"name\":\"caf\\u00e9 \xc3\xa9 \\u00e2\\u009c\"}\n",
	       "bytes that are no UTF-8 are escaped");
	if (f)
		fclose(f);
}

int main(void)
{
	char command[128];

	snprintf(dir, sizeof(dir), "/tmp/rs-ownfd-XXXXXX");
	if (!mkdtemp(dir))
		return 2;
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	numbers();
	gone();
	sockets();
	scarce();
	threads();
	records();
	utf8();
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return tap_done() | (system(command) != 0);
}
