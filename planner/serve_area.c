/* SPDX-License-Identifier: MIT */
/*
 * A program's shared memory on the planner's side: made, read, given back.
 *
 * Invariants: the area is sealed and filled with memory before anybody else sees it. Each word of the program is read
 * once in a round and may be anything; what is added up later has been bounded by rs_wire_hear() and rs_costs_put*().
 * In a round a program is listened to for at most ROUND records, so that none keeps the others waiting.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "planner/serve_priv.h"

#define ROUND 1024u

uint64_t rs_serve_started(uint64_t pid)
{
	char path[40], text[1024], *p;
	unsigned long long started;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%llu/stat", (unsigned long long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	/* Field 2 is a name in parentheses, which may have any characters, and more parentheses. */
	p = strrchr(text, ')');
	for (int field = 2; p && field < 22; field++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	return p && sscanf(p, "%llu", &started) == 1 ? started : 0;
}

/* --- made and given back ---------------------------------------------------------------------------- */

static int make_area(struct rs_wire **ret_wire)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	const size_t bytes = sizeof(struct rs_wire);
	int fd = memfd_create("replayshim", MFD_CLOEXEC | MFD_ALLOW_SEALING), r;
	void *map = MAP_FAILED;

	if (fd < 0)
		return -errno;
	/* Memory now, or an error now: later it would be a fault in somebody's access. */
	if (!fallocate(fd, 0, 0, bytes) && !fcntl(fd, F_ADD_SEALS, seals))
		map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map != MAP_FAILED) {
		*ret_wire = map;
		return fd;
	}
	r = -errno;
	close(fd);
	return r;
}

int rs_serve_admit(struct rs_serve *s, uint64_t pid, struct rs_serve_client **ret_client,
		   int *ret_area)
{
	struct rs_serve_client *c;
	int fd;

	if (s->clients == RS_SERVE_CLIENTS)
		return -EUSERS;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	fd = make_area(&c->w);
	if (fd < 0) {
		free(c);
		return fd;
	}
	rs_wire_init(c->w, getpid());
	c->pid = pid;
	c->started = rs_serve_started(pid);
	/* A child of the program may keep the connection open after its end; this tells of the end itself. */
	c->pidfd = pid ? (int)syscall(SYS_pidfd_open, (pid_t)pid, 0) : -1;
	c->why = "nothing has been told yet";
	s->client[s->clients++] = c;
	*ret_client = c;
	*ret_area = fd;
	return 0;
}

void rs_serve_part(struct rs_serve *s, struct rs_serve_client *c)
{
	for (unsigned i = 0; i < s->clients; i++)
		if (s->client[i] == c)
			s->client[i] = s->client[--s->clients];
	if (c->pidfd >= 0)
		close(c->pidfd);
	munmap(c->w, sizeof(*c->w));
	rs_costs_free(&c->costs);
	free(c->basis);
	free(c);
}

/* --- read -------------------------------------------------------------------------------------------- */

static uint64_t read_word(_Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_acquire);
}

#define TAKE(field) v.field = read_word(&c->w->client.field)

static void look(struct rs_serve_client *c)
{
	struct rs_serve_view v = {0};
	uint64_t rings;

	TAKE(heartbeat_ns);
	TAKE(device[0]);
	TAKE(device[1]);
	TAKE(device_bytes);
	TAKE(job);
	TAKE(rank);
	TAKE(ranks);
	TAKE(wanted);
	TAKE(step);
	TAKE(steps);
	TAKE(step_ns);
	TAKE(live_bytes);
	TAKE(peak_bytes);
	TAKE(arena_bytes);
	TAKE(arena_used);
	TAKE(turn_bytes);
	TAKE(outside_bytes);
	TAKE(segments);
	TAKE(replays);
	TAKE(rejections);
	TAKE(divergences);
	TAKE(plan_generation);
	TAKE(plan_state);
	TAKE(plan_order);
	TAKE(plan_predicted);
	TAKE(plan_measured);
	TAKE(lost_threads);
	rings = read_word(&c->w->client.rings);
	for (unsigned i = 0; i < RS_WIRE_RINGS && i < rings; i++)
		v.lost += read_word(&c->w->ring[i].lost);
	c->view = v;
	if (c->program[0] || !v.heartbeat_ns)
		return;
	memcpy(c->program, c->w->client.program, sizeof(c->program) - 1);
	for (char *p = c->program; *p; p++)
		if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
			*p = '?';
}

static void forget_shares(struct rs_serve_client *c)
{
	c->costs.nshares = 0;
	c->shares_told = c->shares_due = 0;
}

static int take(struct rs_serve_client *c, const struct rs_wire_record *r)
{
	switch (r->kind) {
	case RS_WIRE_COST:
		/* As many segments as no plan has: they are made up, or old ones were not forgotten. */
		if (c->costs.n > RS_PLAN_MAX)
			rs_costs_free(&c->costs);
		return rs_costs_put(&c->costs, &r->u.cost);
	case RS_WIRE_SHARE:
		c->shares_told++;
		return c->costs.nshares < RS_PLAN_MAX ? rs_costs_put_share(&c->costs, &r->u.share)
						      : -ENOSPC;
	case RS_WIRE_RATE:
		return rs_costs_put_rate(&c->costs, &r->u.rate);
	case RS_WIRE_SHARES_BEGIN:
		forget_shares(c);
		c->shares_due = r->u.share.pieces;
		return 0;
	default:
		rs_costs_free(&c->costs);
		forget_shares(c);
		return 0;
	}
}

/* Complete enough for a plan? Half of what it has to tell would look like a smaller program. */
static void judge(struct rs_serve_client *c, uint64_t now)
{
	struct rs_cost_usage *u = &c->costs.usage;
	const struct rs_serve_view *v = &c->view;
	int ready;

	*u = (struct rs_cost_usage){.step = v->step,
				    .steps = v->steps,
				    .step_ns = v->step_ns,
				    .live_bytes = v->live_bytes,
				    .peak_bytes = v->peak_bytes,
				    .arena_bytes = v->arena_bytes,
				    .arena_used = v->arena_used,
				    .turn_bytes = v->turn_bytes,
				    .outside_bytes = v->outside_bytes,
				    .segments = v->segments};
	ready = rs_costs_ready(&c->costs, &c->why);
	if (ready && c->costs.n < v->segments) {
		c->why = "not all of its segments have been told yet";
		ready = 0;
	} else if (ready && c->shares_told < c->shares_due) {
		c->why = "not all of what its segments share has been told yet";
		ready = 0;
	}
	if (!ready)
		c->ready_ns = 0;
	else if (!c->ready_ns)
		c->ready_ns = now;
}

int rs_serve_hear(struct rs_serve_client *c, uint64_t now)
{
	struct rs_wire_record record;
	unsigned heard = 0;

	look(c);
	for (unsigned i = 0; i < RS_WIRE_RINGS && heard < ROUND; i++)
		for (unsigned k = 0; k < RS_WIRE_RECORDS && heard < ROUND; k++) {
			if (rs_wire_hear(&c->w->ring[i], &record) != 1)
				break;
			if (take(c, &record))
				c->unbelievable++;
			heard++;
		}
	if (heard)
		c->fingerprint = rs_costs_fingerprint(&c->costs);
	judge(c, now);
	/* While it tells its costs for the first time, it is listened to more often. */
	return heard > RS_WIRE_RECORDS / 2 || (heard && !c->ready_ns);
}
