/* SPDX-License-Identifier: MIT */
/*
 * A program on the planner's socket, as the library is one: it connects, tells its costs, makes steps, takes plans, and
 * connects again when the planner is gone. Nothing in a step waits. What it sees is counted in shared memory.
 */
#ifndef RS_TESTS_SERVE_CLIENT_H
#define RS_TESTS_SERVE_CLIENT_H

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/serve_rig.h"

struct sc_seen {
	_Atomic uint64_t steps, plans, torn, connected, refused, early;
	_Atomic uint64_t beats; /* times that the planner's heartbeat had advanced */
	_Atomic uint64_t slow;	/* steps whose part here took a tenth of a second of CPU time */
	_Atomic uint64_t generation, budget, from_step, digest, infeasible;
};

struct sc {
	const char *path;
	struct rig rig;
	uint64_t wanted, job, rank, device;
	useconds_t pause; /* between steps */
	int flood;	  /* tells much more than there is room for */
	struct sc_seen *seen;
	/* inside */
	int fd, told;
	struct rs_wire *w;
	uint64_t have, step, beat;
};

static struct rs_plan_entry sc_entry[RS_PLAN_MAX];

static inline void sc_leave(struct sc *c)
{
	if (c->w)
		munmap(c->w, sizeof(*c->w));
	if (c->fd >= 0)
		close(c->fd);
	c->w = NULL;
	c->fd = -1;
	c->have = c->told = 0;
}

static inline void sc_arrive(struct sc *c)
{
	struct rs_wire_ring *ring = rs_wire_claim(c->w);

	snprintf(c->w->client.program, sizeof(c->w->client.program), "client of rank %u",
		 (unsigned)c->rank);
	c->w->client.pid = getpid();
	c->w->client.wanted = c->wanted;
	c->w->client.job = c->job;
	c->w->client.rank = c->rank;
	c->w->client.device[0] = c->device;
	rig_step(c->w, &c->rig, c->step);
	for (int i = 0; i <= c->flood; i++)
		rig_tell(ring, &c->rig);
	c->seen->connected++;
}

/* One attempt at being connected: as far as it goes without waiting. */
static inline void sc_connect(struct sc *c)
{
	struct rs_wire_request q = {.ask = RS_WIRE_HELLO, .pid = (uint64_t)getpid()};
	struct rs_wire_answer a;
	const char *why;
	int area = -1, r;

	if (c->fd < 0) {
		c->fd = rs_wire_dial(c->path);
		if (c->fd < 0 || rs_wire_ask(c->fd, &q))
			sc_leave(c);
		return;
	}
	r = rs_wire_answer(c->fd, &a, &area);
	if (r == -EAGAIN)
		return;
	if (r || a.error || rs_wire_map(area, &c->w, &why)) {
		c->seen->refused++;
		sc_leave(c);
	} else {
		sc_arrive(c);
	}
	if (area >= 0)
		close(area);
}

/* Of this program's segments, in their order, within its budget? Anything else is no whole plan. */
static inline int sc_is_whole(const struct sc *c, const struct rs_plan_head *h)
{
	if (h->n != ((h->flags & RS_PLAN_INFEASIBLE) ? 0 : c->rig.n) || h->peak > h->budget)
		return 0;
	for (uint32_t i = 0; i < h->n; i++)
		if (sc_entry[i].name != rs_plan_name(c->rig.name) || sc_entry[i].invocation != i ||
		    sc_entry[i].order != i || sc_entry[i].option >= RS_OPTIONS ||
		    sc_entry[i].backward > h->peak)
			return 0;
	return 1;
}

static inline void sc_take(struct sc *c)
{
	struct rs_plan_head h;
	uint64_t digest = 7;
	int r = rs_wire_take(c->w, c->have, &h, sc_entry);

	c->seen->early += r == -EAGAIN;
	c->seen->torn += r == -EPROTO || (r == 1 && !sc_is_whole(c, &h));
	if (r != 1)
		return;
	c->have = h.generation;
	for (uint32_t i = 0; i < h.n; i++)
		digest = digest * 31 + sc_entry[i].option * 2 + sc_entry[i].restore;
	c->seen->from_step = h.from_step;
	c->seen->digest = digest;
	c->seen->infeasible = h.flags & RS_PLAN_INFEASIBLE;
	c->seen->generation = h.generation;
	c->seen->plans++;
	c->w->client.plan_generation = h.generation;
	c->w->client.plan_state = RS_PLAN_IN_FORCE;
}

static inline uint64_t sc_cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * RS_SERVE_SECOND + (uint64_t)t.tv_nsec;
}

static inline void sc_step(struct sc *c)
{
	uint64_t begin = sc_cpu(), took;
	char nothing;
	ssize_t n;

	c->step++;
	if (!c->w) {
		sc_connect(c);
	} else {
		rig_step(c->w, &c->rig, c->step);
		sc_take(c);
		c->seen->budget = c->w->budget;
		c->seen->beats += c->w->heartbeat_ns != c->beat;
		c->beat = c->w->heartbeat_ns;
		n = recv(c->fd, &nothing, 1, MSG_DONTWAIT);
		if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
			sc_leave(c);
	}
	took = sc_cpu() - begin;
	c->seen->slow += took > RS_SERVE_SECOND / 10;
	c->seen->steps++;
}

static inline struct sc_seen *sc_shared(unsigned n)
{
	return mmap(NULL, n * sizeof(struct sc_seen), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

#endif
