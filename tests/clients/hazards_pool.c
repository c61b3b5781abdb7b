/* SPDX-License-Identifier: MIT */
/*
 * Tensors in one allocation, as caching allocators have them, and a kernel of which nobody knows how far it reaches: what a
 * segment makes beside its weights must survive its replay, and what is no product must not be taken for one.
 *
 *	hazards_pool CASE [VARIANT...] [--streams] [--steps=N | --seeds=N]	see hazards_rig.h
 *
 * told: the allocator says which parts it gives out.
 *
 * What is right and what goes wrong is in tests/t/hazards_pool.t.
 */
#include "tests/clients/client_random_ptx.h"

#define HAZARD_MODULES random_ptx
#include "tests/clients/hazards_rig.h"

/* The weights come first in the pool, then places for what is made. */
#define PLACE(i) (pool + 64 + (i)*64)

static dev pool, zero;
static unsigned n = 2, five = 5;

struct places {
	dev h, y; /* 0: new memory */
};

/* h = 5 w + w + i, through memory; y = 5 h + h + i */
static dev gather_segment(void *inputs)
{
	const struct places *in = inputs;
	dev h = in->h ? in->h : alloc(2), y = in->y;

	if (option("told")) { /* as an allocator does when it gives them out */
		replayshim_suballoc(y, 8);
		if (in->h)
			replayshim_suballoc(h, 8);
	}
	LAUNCH("make_loose", 2, &h, &pool, &pool, &n, &five, &zero);
	if (option("copied"))
		copy(y, h, 2);
	else
		LAUNCH("make", 2, &y, &h, &h, &n, &five);
	return y;
}

static void make_pool(void)
{
	zero = STATE(NULL, 1, 0);
	pool = STATE(NULL, 128, 1, 2);
	if (option("told"))
		replayshim_suballoc(pool, 8);
}

static void gather(void)
{
	struct places f = {0, 0}, r;

	make_pool();
	f.y = PLACE(0);
	if (option("inside"))
		f.h = PLACE(2);
	r = f;
	if (!option("same")) {
		r.y = PLACE(1);
		r.h = f.h ? PLACE(3) : 0;
	}
	run_forward("block", 0, gather_segment, &f);
	if (option("written"))
		fill(pool, 9, 1);
	if (option("reused"))
		fill(r.y, 77, 2);
	run_replay("block", 0, gather_segment, &r, "y", 2);
	probe("w", pool, 2);
	probe("f", f.y, 2);
}

/* A table of its own: y = what is looked up, then it is changed, nobody knows where. */
static dev table_segment(void *inputs)
{
	dev y = alloc(2);

	(void)inputs;
	LAUNCH("make_loose", 2, &y, &pool, &pool, &n, &five, &zero);
	LAUNCH("mix_loose", 2, &pool, &pool, &pool, &n, &five, &zero);
	return y;
}

static void table(void)
{
	make_pool();
	run_forward("block", 0, table_segment, NULL);
	run_replay("block", 0, table_segment, NULL, "y", 2);
	probe("w", pool, 2);
}

/* The same, but all of a row is written at once, where the forward has written it, too. */
static dev queue_segment(void *inputs)
{
	dev y = alloc(2);

	(void)inputs;
	LAUNCH("make_loose", 2, &y, &pool, &pool, &n, &five, &zero);
	copy(pool, y, 2);
	return y;
}

static void queue(void)
{
	make_pool();
	if (option("named"))
		replayshim_region_name(pool, 512, "state:queue");
	run_forward("block", 0, queue_segment, NULL);
	fill(pool, 9, 1);
	run_replay("block", 0, queue_segment, NULL, "y", 2);
	probe("w", pool, 2);
}

static const struct hazard_case cases[] = {{"gather", gather}, {"table", table}, {"queue", queue}};

HAZARD_MAIN(cases)
