/* SPDX-License-Identifier: MIT */
/*
 * One connection to the planner: a request comes in, an answer goes out, or the connection stays as a program's.
 *
 * Invariants: a descriptor never blocks; what is read is kept in a buffer of a request's size; what is written is an
 * answer of known length, with a deadline. Whoever is not the user is gone before a byte is read. A connection ends by
 * itself: a silent one after 2 seconds, a slow reader after 5, a program's with the program.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "planner/serve_priv.h"

#define SILENT (2 * RS_SERVE_SECOND)
#define SLOW   (5 * RS_SERVE_SECOND)

struct rs_serve_peer *rs_serve_peer_new(int fd, uint64_t now)
{
	struct rs_serve_peer *p = NULL;
	struct ucred who;
	socklen_t bytes = sizeof(who);

	if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) && who.uid == geteuid())
		p = calloc(1, sizeof(*p));
	if (!p) {
		close(fd);
		return NULL;
	}
	p->fd = fd;
	p->pid = who.pid;
	p->since_ns = now;
	return p;
}

void rs_serve_peer_free(struct rs_serve *s, struct rs_serve_peer *p)
{
	if (p->client)
		rs_serve_part(s, p->client);
	close(p->fd);
	free(p->out);
	free(p);
}

short rs_serve_peer_wants(const struct rs_serve_peer *p)
{
	return p->out ? POLLOUT : POLLIN;
}

int rs_serve_peer_late(const struct rs_serve_peer *p, uint64_t now)
{
	return !p->client && now - p->since_ns > (p->out ? SLOW : SILENT);
}

/* --- answers ------------------------------------------------------------------------------------------ */

static int flush(struct rs_serve_peer *p)
{
	ssize_t n = send(p->fd, p->out + p->out_at, p->out_n - p->out_at, MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	p->out_at += (size_t)n;
	return p->out_at < p->out_n ? 0 : -ESHUTDOWN;
}

static struct rs_wire_answer header(int error, uint64_t bytes)
{
	return (struct rs_wire_answer){
		.magic = RS_WIRE_MAGIC, .major = RS_WIRE_MAJOR, .error = error, .bytes = bytes};
}

static int answer(struct rs_serve_peer *p, int error, const char *text)
{
	size_t n = strlen(text);
	struct rs_wire_answer a = header(error, n);

	p->out = malloc(sizeof(a) + n + 1);
	if (!p->out)
		return -ENOMEM;
	memcpy(p->out, &a, sizeof(a));
	memcpy(p->out + sizeof(a), text, n + 1);
	p->out_n = sizeof(a) + n;
	return flush(p);
}

static int hand_over(int fd, int area)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.bytes = {0}};
	struct rs_wire_answer a = header(0, sizeof(struct rs_wire));
	struct iovec v = {&a, sizeof(a)};
	struct msghdr m = {.msg_iov = &v,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(area));
	memcpy(CMSG_DATA(c), &area, sizeof(area));
	/* The first bytes on this connection: there is room, or nobody to read them. */
	return sendmsg(fd, &m, MSG_NOSIGNAL) == (ssize_t)sizeof(a) ? 0 : -EPIPE;
}

/* --- requests ----------------------------------------------------------------------------------------- */

static int hello(struct rs_serve *s, struct rs_serve_peer *p)
{
	struct rs_serve_client *c = NULL;
	int area = -1, r;

	r = rs_serve_admit(s, p->pid > 0 ? (uint64_t)p->pid : 0, &c, &area);
	if (r)
		return answer(p, r,
			      r == -EUSERS ? "the planner has as many programs as it can serve"
					   : "the planner has no memory to share");
	p->client = c;
	r = hand_over(p->fd, area);
	close(area);
	return r;
}

static int set(struct rs_serve *s, struct rs_serve_peer *p)
{
	char say[200];
	int r;

	p->in.request.text[sizeof(p->in.request.text) - 1] = 0;
	r = rs_serve_set(s, p->in.request.pid, p->in.request.text, say, sizeof(say));
	return answer(p, r, say);
}

static int status(struct rs_serve *s, struct rs_serve_peer *p)
{
	char *text = rs_serve_status(s, rs_serve_now());
	int r = answer(p, text ? 0 : -ENOMEM, text ? text : "");

	free(text);
	return r;
}

static int serve(struct rs_serve *s, struct rs_serve_peer *p)
{
	const struct rs_wire_request *q = &p->in.request;

	if (q->magic != RS_WIRE_MAGIC)
		return answer(p, -EPROTO, "this is no request");
	if (q->major != RS_WIRE_MAJOR)
		return answer(p, -EPROTO, "the planner speaks another version");
	switch (q->ask) {
	case RS_WIRE_HELLO:
		return hello(s, p);
	case RS_WIRE_STATUS:
		return status(s, p);
	case RS_WIRE_SET:
		return set(s, p);
	case RS_WIRE_STOP:
		p->stops = s->stop = 1;
		return 0;
	default:
		return answer(p, -EOPNOTSUPP, "the planner does not know that request");
	}
}

void rs_serve_peer_left(struct rs_serve_peer *p)
{
	if (p->stops)
		answer(p, 0, "the planner has left");
}

/* A program has nothing to say here. Whoever goes on talking is not one. */
static int hear_program(struct rs_serve_peer *p)
{
	char sink[256];
	ssize_t n = recv(p->fd, sink, sizeof(sink), 0);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return n ? -EPROTO : -EPIPE;
}

int rs_serve_peer_turn(struct rs_serve *s, struct rs_serve_peer *p, short events)
{
	ssize_t n;

	if (p->out && (events & (POLLOUT | POLLERR | POLLHUP)))
		return flush(p);
	if (!(events & (POLLIN | POLLERR | POLLHUP)) || p->out)
		return 0;
	if (p->client)
		return hear_program(p);
	n = recv(p->fd, p->in.bytes + p->in_n, sizeof(p->in) - p->in_n, 0);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (!n)
		return -EPIPE;
	p->in_n += (size_t)n;
	if (p->in_n < sizeof(p->in))
		return 0;
	p->since_ns = rs_serve_now();
	return serve(s, p);
}
