/* SPDX-License-Identifier: MIT */
/*
 * The asking end of the planner's socket. The answer is judged like a stranger's: its length is bounded, and it must come
 * in time. No state.
 */
#include "planner/ask.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LONGEST	   (64u << 20)
#define PATIENCE_S 10

extern char **environ;

static int64_t ms_left(const struct timespec *until)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (until->tv_sec - t.tv_sec) * 1000 + (until->tv_nsec - t.tv_nsec) / 1000000;
}

/* Until there is something to read: 0, -ETIMEDOUT, -errno. */
static int wait_for(int fd, const struct timespec *until)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int64_t left = ms_left(until);
	int n;

	if (left <= 0)
		return -ETIMEDOUT;
	n = poll(&p, 1, (int)left);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	return n ? 0 : -ETIMEDOUT;
}

static int read_all(int fd, char *to, size_t n, const struct timespec *until)
{
	size_t at = 0;
	ssize_t got;
	int r;

	while (at < n) {
		got = recv(fd, to + at, n - at, 0);
		if (got > 0) {
			at += (size_t)got;
			continue;
		}
		if (!got)
			return -EPIPE;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		r = wait_for(fd, until);
		if (r)
			return r;
	}
	return 0;
}

static int read_answer(int fd, const struct timespec *until, char **ret_text, int *ret_error)
{
	struct rs_wire_answer a;
	int r = -EAGAIN, area = -1;
	char *text;

	while (r == -EAGAIN) {
		r = rs_wire_answer(fd, &a, &area);
		if (r == -EAGAIN && wait_for(fd, until))
			return -ETIMEDOUT;
	}
	if (r)
		return r;
	if (area >= 0)
		close(area);
	if (a.bytes > LONGEST)
		return -EPROTO;
	text = malloc(a.bytes + 1);
	if (!text)
		return -ENOMEM;
	r = read_all(fd, text, a.bytes, until);
	text[r ? 0 : a.bytes] = 0;
	if (r) {
		free(text);
		return r;
	}
	*ret_text = text;
	*ret_error = a.error;
	return 0;
}

/* While its backlog is full, the planner is busy with others. */
static int dial(const char *path, const struct timespec *until)
{
	const struct timespec moment = {.tv_nsec = 20000000};
	int fd;

	while ((fd = rs_wire_dial(path)) == -EAGAIN && ms_left(until) > 0)
		nanosleep(&moment, NULL);
	return fd;
}

static const char *sentence(int error)
{
	switch (error) {
	case -ENOENT:
	case -ECONNREFUSED:
		return "no planner is running";
	case -EACCES:
		return "the directory of the planner's socket is not yours alone";
	case -EPROTO:
		return "what answers is no planner of this version";
	case -EPIPE:
		return "the planner has gone away";
	case -ETIMEDOUT:
	case -EAGAIN:
		return "the planner does not answer";
	default:
		return strerror(-error);
	}
}

int rs_ask(const char *name, enum rs_wire_ask ask, uint64_t pid, const char *text, char **ret_text,
	   int *ret_error)
{
	struct rs_wire_request q = {.ask = ask, .pid = pid};
	struct timespec until;
	char path[RS_ASK_PATH];
	int r = rs_wire_path(name, environ, path, sizeof(path)), fd = -1;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PATIENCE_S;
	if (text && strlen(text) >= sizeof(q.text))
		r = -EINVAL;
	if (!r) {
		fd = dial(path, &until);
		r = fd < 0 ? fd : 0;
	}
	if (text && !r)
		strcpy(q.text, text);
	if (!r)
		r = rs_wire_ask(fd, &q);
	if (!r)
		r = read_answer(fd, &until, ret_text, ret_error);
	if (fd >= 0)
		close(fd);
	if (r)
		*ret_text = strdup(sentence(r));
	return r;
}

json_t *rs_ask_status(const char *command, const char *name)
{
	json_t *status = NULL;
	char *text = NULL;
	int error = 0, r = rs_ask(name, RS_WIRE_STATUS, 0, NULL, &text, &error);

	if (!r && !error)
		status = json_loads(text, 0, NULL);
	if (status && (json_integer_value(json_object_get(status, "v")) != 1 ||
		       !json_is_array(json_object_get(status, "programs")))) {
		json_decref(status);
		status = NULL;
	}
	if (!status)
		fprintf(stderr, "replayctl %s: %s\n", command,
			r && text ? text : "the planner's answer cannot be understood");
	free(text);
	return status;
}
