/* SPDX-License-Identifier: MIT */
/*
 * A planner that misbehaves in one way, for tests/t/planned_peer.t:  planner_peer SOCKET MODE
 *
 *	good       hands over a right area, prints what it is told; publishes a plan that keeps everything
 *	infeasible publishes that nothing fits       off        asks to go on without plans, after the plan
 *	nonsense   a plan of options that do not exist         damaged   a plan whose digest is wrong
 *	low        a plan that predicts next to nothing        other     one for other segments
 *	deaf       never answers                     hangup     ends each connection at once
 *	garbage    answers with noise                text       with an answer, but no descriptor
 *	refuse     with an error                     cut, long  an area of another size
 *	unsealed   that can be shrunk                version, layout  that is not of this build
 *	frozen     as good, but its heart does not beat
 *
 * Lines on stdout: "hello PID", "cost NAME N STEPS FLAGS", "share N", "rate KIND", "forget", "void", "state N GENERATION",
 * "gone". Ends with the first connection that was handed an area, else is killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "tracker/engine.h"
#include "tracker/wire.h"

static const char *mode;
static struct rs_wire *area;
static struct rs_plan_entry entries[RS_PLAN_MAX];
static unsigned known;
static uint64_t print;

static int is(const char *word)
{
	return !strcmp(mode, word);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int serve(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(a.sun_path, path);
	unlink(path);
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 16))
		exit(1);
	return fd;
}

static int make_area(void)
{
	size_t size = sizeof(struct rs_wire);
	int fd = memfd_create("peer", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (is("cut"))
		size /= 2;
	if (is("long"))
		size += 4096;
	if (posix_fallocate(fd, 0, (off_t)size))
		exit(1);
	if (size >= sizeof(*area)) {
		area = mmap(NULL, sizeof(*area), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		rs_wire_init(area, (uint64_t)getpid());
		atomic_store(&area->heartbeat_ns, now());
		if (is("version"))
			area->major++;
		if (is("layout"))
			area->layout ^= 1;
	}
	if (!is("unsealed"))
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	return fd;
}

static void answer(int to, int fd)
{
	struct rs_wire_answer a = {
		.magic = RS_WIRE_MAGIC, .major = RS_WIRE_MAJOR, .bytes = sizeof(struct rs_wire)};
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec part = {&a, sizeof(a)};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};

	if (is("refuse"))
		a.error = -EPROTO;
	if (is("garbage"))
		a.magic = 1;
	if (fd >= 0) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		CMSG_FIRSTHDR(&m)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&m)->cmsg_type = SCM_RIGHTS;
		CMSG_FIRSTHDR(&m)->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &fd, sizeof(fd));
	}
	sendmsg(to, &m, MSG_NOSIGNAL);
}

/* --- what is told ---------------------------------------------------------------------------------- */

static void learn(const struct rs_cost *c)
{
	printf("cost %s %llu %llu %llu\n", c->segment, (unsigned long long)c->invocation,
	       (unsigned long long)c->steps, (unsigned long long)c->flags);
	if (c->order < RS_PLAN_MAX) {
		entries[c->order] =
			(struct rs_plan_entry){.name = rs_plan_name(c->segment),
					       .invocation = (uint32_t)c->invocation,
					       .option = is("nonsense") ? 200 : RS_OPTION_RETAIN,
					       .order = (uint16_t)c->order,
					       .forward = is("low") ? 4096 : 1ull << 40,
					       .backward = is("low") ? 4096 : 1ull << 40};
		known = c->order + 1 > known ? (unsigned)c->order + 1 : known;
	}
}

static void hear(void)
{
	struct rs_wire_record r;

	for (unsigned i = 0; i < RS_WIRE_RINGS; i++)
		while (rs_wire_hear(&area->ring[i], &r)) {
			if (r.kind == RS_WIRE_COST)
				learn(&r.u.cost);
			else if (r.kind == RS_WIRE_SHARE)
				printf("share %u\n", r.u.share.n);
			else if (r.kind == RS_WIRE_RATE)
				printf("rate %u\n", (unsigned)r.u.rate.kind);
			else
				puts(r.kind == RS_WIRE_FORGET ? "forget" : "void");
		}
}

static void publish(void)
{
	struct rs_plan_head head = {.from_step = atomic_load(&area->client.step) + 2,
				    .budget = is("over") ? 4096 : 1ull << 40,
				    .peak = 1ull << 40,
				    .n = known};

	for (unsigned i = 0; i < known; i++)
		head.fingerprint =
			rs_plan_print(head.fingerprint, entries[i].name, entries[i].invocation);
	if (is("low"))
		head.peak = 4096;
	if (is("other"))
		head.fingerprint ^= 1;
	if (is("infeasible")) {
		head.flags = RS_PLAN_INFEASIBLE;
		head.n = 0;
	}
	rs_wire_publish(area, &head, entries);
	if (is("damaged"))
		area->plan[1].digest ^= 1;
}

/* Until the other side is gone. */
static void live_with(int fd)
{
	uint64_t told = 0, step, state, seen_state = 0;
	struct pollfd p = {fd, POLLIN, 0};

	while (poll(&p, 1, 2) == 0 || !(p.revents & (POLLIN | POLLHUP))) {
		hear();
		if (!is("frozen"))
			atomic_store(&area->heartbeat_ns, now());
		step = atomic_load(&area->client.step);
		state = atomic_load(&area->client.plan_state);
		if (state != seen_state)
			printf("state %u %u\n", (unsigned)state,
			       (unsigned)atomic_load(&area->client.plan_generation));
		seen_state = state;
		if (step >= 5 && !told && known) {
			publish();
			told = step;
		}
		if (is("off") && told && step > told + 4)
			atomic_store(&area->off, 1);
		fflush(stdout);
	}
	hear();
	puts("gone");
}

int main(int argc, char **argv)
{
	struct rs_wire_request ask;
	int listener, fd;

	if (argc != 3)
		return 2;
	mode = argv[2];
	listener = serve(argv[1]);
	puts("ready");
	fflush(stdout);
	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		if (is("hangup")) {
			close(fd);
			continue;
		}
		if (recv(fd, &ask, sizeof(ask), MSG_WAITALL) != sizeof(ask))
			return 1;
		printf("hello %u\n", (unsigned)ask.pid);
		fflush(stdout);
		if (is("deaf"))
			continue;
		answer(fd, is("text") || is("refuse") || is("garbage") ? -1 : make_area());
		if (area)
			live_with(fd);
		fflush(stdout);
		if (area)
			return 0;
	}
	return 1;
}
