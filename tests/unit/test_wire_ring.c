/* SPDX-License-Identifier: MIT */
/*
 * Rings: what is told is heard, in order, whole, or counted as lost. Both ends in turn with two changes of turn
 * between their accesses (coroutines, see step()); then hostile numbers and records at either end.
 */
#include <errno.h>
#include <stdint.h>
#include <ucontext.h>

static void step(void);
#define RS_WIRE_STEP(word) ((void)(word), step())
#include "tracker/wire.c"

#include "tests/tap.h"

#define STACK  65536
#define TOLD   2
#define HEARD  4
#define SWITCH 2 /* changes of turn */

static struct rs_wire area, *w = &area;

/* Two coroutines. At each access of the running one: is it time to change turns? */
static struct {
	ucontext_t main, side[2];
	char stack[2][STACK];
	unsigned turn, steps, next, at[SWITCH];
	int running, over[2];
} co;

static void step(void)
{
	if (!co.running)
		return;
	if (co.next < SWITCH && co.steps++ == co.at[co.next]) {
		co.next++;
		if (!co.over[!co.turn]) {
			co.turn = !co.turn;
			swapcontext(&co.side[!co.turn], &co.side[co.turn]);
		}
	}
}

static struct rs_wire_record numbered(uint64_t i)
{
	struct rs_wire_record r = {.kind = RS_WIRE_COST};

	snprintf(r.u.cost.segment, sizeof(r.u.cost.segment), "segment %" PRIu64, i);
	r.u.cost.steps = r.u.cost.replays = r.u.cost.flags = i;
	return r;
}

static int is_number(const struct rs_wire_record *r, uint64_t i)
{
	struct rs_wire_record want = numbered(i);

	return !memcmp(r, &want, sizeof(want));
}

static struct {
	uint64_t told, heard, lost;
	int bad;
} count;

static void tell(void)
{
	struct rs_wire_record r = numbered(count.told);

	if (rs_wire_tell(w->ring, &r))
		count.lost++;
	else
		count.told++;
}

static int hear(void)
{
	struct rs_wire_record r;

	if (!rs_wire_hear(w->ring, &r))
		return 0;
	count.bad |= !is_number(&r, count.heard++);
	return 1;
}

static void producer(void)
{
	for (unsigned i = 0; i < TOLD; i++)
		tell();
	co.over[0] = 1;
	co.turn = 1;
	setcontext(co.over[1] ? &co.main : &co.side[1]);
}

static void consumer(void)
{
	for (unsigned i = 0; i < HEARD; i++)
		hear();
	co.over[1] = 1;
	co.turn = 0;
	setcontext(co.over[0] ? &co.main : &co.side[0]);
}

static void prepare(unsigned i, void (*body)(void))
{
	getcontext(&co.side[i]);
	co.side[i].uc_stack.ss_sp = co.stack[i];
	co.side[i].uc_stack.ss_size = STACK;
	makecontext(&co.side[i], body, 0);
	co.over[i] = 0;
}

static void both(unsigned first)
{
	prepare(0, producer);
	prepare(1, consumer);
	co.turn = first;
	co.steps = co.next = 0;
	co.running = 1;
	swapcontext(&co.main, &co.side[first]);
	co.running = 0;
}

/* `before` records wait in the ring. Steps of one run that changes turn nowhere, or of all of them. */
static int turns(unsigned before, unsigned first, uint64_t *runs)
{
	unsigned steps = ~0u;

	for (unsigned a = 0; a < steps; a++)
		for (unsigned b = a + 1; b <= steps; b += 1 + (b > a + 8) * 11) {
			memset(&count, 0, sizeof(count));
			w->ring->head = w->ring->tail = UINT64_MAX - 100; /* it wraps, too */
			w->ring->lost = 0;
			for (unsigned i = 0; i < before; i++)
				tell();
			co.at[0] = a;
			co.at[1] = b;
			both(first);
			++*runs;
			while (hear())
				;
			if (count.bad || count.heard != count.told || w->ring->lost != count.lost ||
			    count.told + count.lost != before + TOLD)
				return 0;
			if (co.next < 1)
				return 1;
			if (co.next < 2)
				break;
		}
	return 1;
}

__attribute__((unused)) static void test_turns(void)
{
	static const unsigned before[] = {0, RS_WIRE_RECORDS - 1};
	uint64_t runs = 0;
	int good = 1;

	for (unsigned i = 0; i < 2; i++)
		for (unsigned first = 0; first < 2; first++)
			good = good && turns(before[i], first, &runs);
	ok(good && runs > 1000, "two changes of turn: %" PRIu64 " runs", runs);
}

static void test_overflow(void)
{
	memset(w, 0, sizeof(*w));
	memset(&count, 0, sizeof(count));
	for (unsigned i = 0; i < RS_WIRE_RECORDS + 7; i++)
		tell();
	is_u64(count.told, RS_WIRE_RECORDS, "a ring takes as many records as it has");
	is_u64(w->ring->lost, 7, "the others are counted");
	while (hear())
		;
	ok(!count.bad && count.heard == RS_WIRE_RECORDS, "and those told are heard");
}

static void test_claims(void)
{
	memset(w, 0, sizeof(*w));
	for (unsigned i = 0; i < RS_WIRE_RINGS; i++)
		if (rs_wire_claim(w) != &w->ring[i])
			ok(0, "ring %u", i);
	ok(!rs_wire_claim(w) && !rs_wire_claim(w), "no more rings than there are");
	is_u64(w->client.lost_threads, 2, "threads without one are counted");
	is_u64(w->client.rings, RS_WIRE_RINGS, "rings claimed");
	w->client.rings = UINT64_MAX;
	ok(!rs_wire_claim(w), "a hostile number of rings");
}

static void test_numbers(void)
{
	static const uint64_t hostile[] = {
		0, 1, 255, 256, 257, UINT64_MAX / 2, UINT64_MAX - 1, UINT64_MAX};
	struct rs_wire_record r = numbered(1);
	unsigned most = 0, full = 0;

	memset(w, 0, sizeof(*w));
	for (unsigned h = 0; h < 8; h++)
		for (unsigned t = 0; t < 8; t++) {
			unsigned n = 0;

			w->ring->head = hostile[h];
			w->ring->tail = hostile[t];
			full += rs_wire_tell(w->ring, &r) == -ENOSPC;
			w->ring->head = hostile[h];
			w->ring->tail = hostile[t];
			while (rs_wire_hear(w->ring, &r))
				n++;
			most = n > most ? n : most;
			if (w->ring->tail != w->ring->head)
				ok(0, "heard to the end: %u %u", h, t);
			r = numbered(1);
		}
	ok(most <= RS_WIRE_RECORDS, "never more than a ring's worth: %u", most);
	ok(full, "a tail before the head is a full ring: %u", full);
}

/* --- records that nobody would tell ------------------------------------------------------------------ */

static void drop(struct rs_wire_record r, const char *what)
{
	struct rs_wire_record out, good = numbered(3);

	memset(w->ring, 0, sizeof(*w->ring));
	rs_wire_tell(w->ring, &r);
	rs_wire_tell(w->ring, &good);
	ok(rs_wire_hear(w->ring, &out) == 1 && is_number(&out, 3),
	   "dropped, and the next one heard: %s", what);
}

static void keep(struct rs_wire_record r, const char *what)
{
	struct rs_wire_record out;

	memset(w->ring, 0, sizeof(*w->ring));
	rs_wire_tell(w->ring, &r);
	ok(rs_wire_hear(w->ring, &out) == 1 && !memcmp(&out, &r, sizeof(r)), "heard: %s", what);
}

static void test_costs(void)
{
	struct rs_wire_record r = numbered(1);

	keep(r, "a cost");
	memset(r.u.cost.segment, 'x', sizeof(r.u.cost.segment));
	drop(r, "a name without an end");
	r = numbered(1);
	r.u.cost.segment[0] = 0;
	drop(r, "no name");
	r = numbered(1);
	r.u.cost.order = RS_PLAN_MAX;
	drop(r, "a place beyond the last");
	r = numbered(1);
	r.u.cost.invocation = 1ull << 32;
	drop(r, "an invocation that no entry holds");
	r = numbered(1);
	r.u.cost.peak_forward = UINT64_MAX;
	drop(r, "more bytes than there are");
	r = numbered(1);
	r.u.cost.region_bytes = 1ull << 60;
	drop(r, "more bytes of regions");
	r = numbered(1);
	r.u.cost.replay.median_ns = UINT64_MAX;
	drop(r, "a time beyond all");
	r = numbered(1);
	r.kind = 77;
	drop(r, "another kind");
	r.kind = RS_WIRE_NONE;
	drop(r, "no kind");
	r.kind = RS_WIRE_FORGET;
	keep(r, "forget");
}

static void test_others(void)
{
	struct rs_wire_record r = {.kind = RS_WIRE_SHARE};

	drop(r, "a share of nobody");
	r.u.share = (struct rs_cost_share){.bytes = 5, .pieces = 1, .n = 2, .order = {3, 4}};
	keep(r, "a share");
	r.u.share.order[1] = 3;
	drop(r, "a share twice of the same");
	r.u.share.order[1] = RS_PLAN_MAX;
	drop(r, "a share of nobody's place");
	r.u.share.order[1] = 4;
	r.u.share.n = RS_COST_SHARERS + 1;
	drop(r, "more sharers than there is room for");
	r.u.share.n = 2;
	r.u.share.bytes = UINT64_MAX;
	drop(r, "a share of all bytes");
	memset(&r, 0, sizeof(r));
	r.kind = RS_WIRE_RATE;
	keep(r, "a rate");
	r.u.rate.kind = RS_RATES;
	drop(r, "a rate of another operation");
	r.u.rate.kind = 0;
	r.u.rate.gib_ns = UINT64_MAX;
	drop(r, "a rate beyond all");
	memset(&r, 0xff, sizeof(r));
	drop(r, "all ones");
}

int main(void)
{
	/* A thread sanitizer follows the stacks of threads, and is lost among coroutines. */
#ifndef __SANITIZE_THREAD__
	test_turns();
#endif
	test_overflow();
	test_claims();
	test_numbers();
	test_costs();
	test_others();
	return tap_done();
}
