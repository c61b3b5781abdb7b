/* SPDX-License-Identifier: MIT */
/*
 * The places of calls, by their numbers; see where.h.
 *
 * Invariant: an entry is written under engine.lock when it is reserved, and once more by whoever has reserved it, if it
 * is still theirs; so a place never gets to another call.
 */
#include "tracker/where.h"

#include <stdlib.h>

#include "tracker/model.h"

/* Threads that look at their calls at the same time reserve in another order than they were numbered. */
#define DISORDER 64u

#define PLACE_MASK ((1ull << RS_WHERE_BITS) - 1)

void rs_where_init(struct rs_engine *e)
{
	if (e->config.where)
		e->where.ring = calloc(RS_WHERE_RING, sizeof(*e->where.ring));
}

void rs_where_fini(struct rs_engine *e)
{
	free(e->where.ring);
}

void rs_where_want(struct rs_engine *e)
{
	e->where.wanted = 1;
}

static const struct {
	uint32_t flag;
	enum rs_cause cause;
} blame[] = {{RS_F_UNKNOWN_WRITER, RS_CAUSE_UNKNOWN_WRITER},
	     {RS_F_UNTRACKED, RS_CAUSE_UNTRACKED},
	     {RS_F_HOST_EFFECT, RS_CAUSE_HOST_EFFECT},
	     {RS_F_RANDOM, RS_CAUSE_DRAW},
	     {RS_F_OTHER_DRAWS, RS_CAUSE_DRAW},
	     {RS_F_ARGUMENTS, RS_CAUSE_ARGUMENTS}};

enum rs_cause rs_where_blame(uint32_t flag)
{
	unsigned i;

	for (i = 0; i < sizeof(blame) / sizeof(blame[0]); i++)
		if (flag == blame[i].flag)
			return blame[i].cause;
	return RS_CAUSE_NONE;
}

static void take_down(struct rs_engine *e, struct rs_causes *causes, enum rs_cause cause,
		      const struct rs_writer *who)
{
	if (causes->by[cause].name)
		return;
	causes->by[cause] = *who;
	rs_where_want(e);
}

void rs_where_flags(struct rs_engine *e, struct rs_window *w, uint32_t flags,
		    const struct rs_writer *who)
{
	uint32_t *now = w->rec ? &w->rec->flags : &w->seg->flags, more = flags & ~*now;
	unsigned i;

	*now |= more;
	for (i = 0; more && i < sizeof(blame) / sizeof(blame[0]); i++)
		if (more & blame[i].flag)
			take_down(e, w->rec ? &w->rec->causes : &w->seg->causes, blame[i].cause,
				  who);
}

void rs_where_pass_on(struct rs_causes *to, const struct rs_causes *from)
{
	unsigned i;

	for (i = 0; i < RS_CAUSES; i++)
		if (!to->by[i].name)
			to->by[i] = from->by[i];
}

uint64_t rs_where_reserve(struct rs_engine *e, uint64_t call)
{
	int wanted = e->where.wanted;

	e->where.wanted = 0;
	if (!wanted || !call || !e->where.ring || call >> (64 - RS_WHERE_BITS))
		return 0;
	__atomic_store_n(&e->where.ring[e->where.n % RS_WHERE_RING], call << RS_WHERE_BITS,
			 __ATOMIC_RELAXED);
	return ++e->where.n;
}

void rs_where_take(struct rs_engine *e, uint64_t call, uint64_t entry)
{
	uint64_t mine = call << RS_WHERE_BITS;
	uint32_t place;

	if (!entry)
		return;
	place = e->config.where();
	if (place <= PLACE_MASK)
		__atomic_compare_exchange_n(&e->where.ring[(entry - 1) % RS_WHERE_RING], &mine,
					    mine | place, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static uint64_t entry_at(const struct rs_engine *e, uint64_t i)
{
	return __atomic_load_n(&e->where.ring[i % RS_WHERE_RING], __ATOMIC_ACQUIRE);
}

uint32_t rs_where_of(struct rs_engine *e, uint64_t call)
{
	uint64_t end = e->where.n, lo, hi, oldest, i;
	uint32_t place;

	if (!call || !e->where.ring)
		return 0;
	lo = oldest = end > RS_WHERE_RING ? end - RS_WHERE_RING : 0;
	hi = end;
	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (entry_at(e, mid) >> RS_WHERE_BITS < call)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (i = lo - oldest > DISORDER ? lo - DISORDER : oldest; i < end && i < lo + DISORDER;
	     i++) {
		if (entry_at(e, i) >> RS_WHERE_BITS != call)
			continue;
		place = (uint32_t)(entry_at(e, i) & PLACE_MASK);
		if (place && e->config.where_told)
			e->config.where_told(place);
		return place;
	}
	return 0;
}
