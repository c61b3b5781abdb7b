/* SPDX-License-Identifier: MIT */
/*
 * One planner and two programs' threads at full speed for a moment: plans are whole, records come whole and in order.
 * What this is for is the thread sanitizer: it reports every access that the protocol does not order.
 */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "tests/tap.h"
#include "tracker/wire.h"

#define READERS 2
#define ENTRIES 40
#define SECONDS 1.0

static struct rs_wire area, *w = &area;
static _Atomic int stop;

struct side {
	pthread_t thread;
	_Atomic uint64_t n;
	uint64_t again, bad;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void *planner(void *arg)
{
	struct rs_plan_entry entry[ENTRIES] = {{0}};
	struct side *s = arg;

	while (!stop) {
		uint64_t v = ++s->n;
		struct rs_plan_head head = {.from_step = v, .peak = v, .n = 1 + v % ENTRIES};

		for (unsigned i = 0; i < head.n; i++)
			entry[i].forward = entry[i].backward = v + i;
		if (rs_wire_publish(w, &head, entry) != v)
			s->bad++;
		for (volatile unsigned i = 0; i < 200 * (v % 16); i++)
			;
	}
	return NULL;
}

static void *program(void *arg)
{
	static _Thread_local struct rs_plan_entry entry[RS_PLAN_MAX];
	struct rs_plan_head head;
	struct side *s = arg;
	uint64_t have = 0;

	while (!stop) {
		int r = rs_wire_take(w, have, &head, entry);

		if (r != 1) {
			s->again += r == -EAGAIN;
			s->bad += r && r != -EAGAIN;
			continue;
		}
		s->n++;
		s->bad += head.generation <= have || head.from_step != head.generation ||
			  head.peak != head.generation || head.n != 1 + head.generation % ENTRIES;
		for (unsigned i = 0; i < head.n && i < ENTRIES; i++)
			s->bad += entry[i].forward != head.generation + i ||
				  entry[i].backward != head.generation + i;
		have = head.generation;
	}
	return NULL;
}

static void *teller(void *arg)
{
	struct rs_wire_record r = {.kind = RS_WIRE_RATE};
	struct rs_wire_ring *ring = rs_wire_claim(w);
	struct side *s = arg;

	while (!stop) {
		r.u.rate.n = r.u.rate.bytes = r.u.rate.each_ns = s->n;
		if (rs_wire_tell(ring, &r))
			s->again++;
		else
			s->n++;
	}
	s->bad += ring->lost != s->again;
	return NULL;
}

static void *hearer(void *arg)
{
	struct rs_wire_record r;
	struct side *s = arg;
	int last = 0;

	while (!last) {
		last = stop > 1;
		while (rs_wire_hear(&w->ring[0], &r)) {
			s->bad += r.kind != RS_WIRE_RATE || r.u.rate.n != s->n ||
				  r.u.rate.bytes != s->n || r.u.rate.each_ns != s->n;
			s->n++;
		}
	}
	return NULL;
}

/* The machine may have stood still for all of that moment. */
static int is_enough(double until, const struct side *sides[], unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!sides[i]->n)
			return 0;
	return now() >= until;
}

int main(void)
{
	struct side plan = {0}, prog[READERS] = {{0}}, tell = {0}, hear = {0};
	const struct side *sides[] = {&plan, &tell, &hear, &prog[0], &prog[1]};
	double until = now() + SECONDS;

	pthread_create(&plan.thread, NULL, planner, &plan);
	pthread_create(&tell.thread, NULL, teller, &tell);
	pthread_create(&hear.thread, NULL, hearer, &hear);
	for (unsigned i = 0; i < READERS; i++)
		pthread_create(&prog[i].thread, NULL, program, &prog[i]);
	while (!is_enough(until, sides, sizeof(sides) / sizeof(*sides)))
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	stop = 1;
	pthread_join(plan.thread, NULL);
	pthread_join(tell.thread, NULL);
	for (unsigned i = 0; i < READERS; i++)
		pthread_join(prog[i].thread, NULL);
	stop = 2;
	pthread_join(hear.thread, NULL);
	for (unsigned i = 0; i < READERS; i++)
		ok(prog[i].n && !prog[i].bad,
		   "%" PRIu64 " of %" PRIu64 " plans taken whole, %" PRIu64 " looks too early",
		   prog[i].n, plan.n, prog[i].again);
	ok(!plan.bad, "generations count up");
	ok(tell.n && !tell.bad && !hear.bad && hear.n == tell.n,
	   "%" PRIu64 " records told and heard, %" PRIu64 " lost and counted", tell.n, tell.again);
	return tap_done();
}
