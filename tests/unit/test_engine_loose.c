/* SPDX-License-Identifier: MIT */
/*
 * A pool of which a segment reads nobody knows how much: what it makes there stays after its replay, what is state comes
 * back, and what cannot be told is no match.
 */
#include "tests/unit/engine_rig.h"

#define WHOLE(at, dir)                                                                             \
	{                                                                                          \
		(at), 0, 1, (dir), 1, 1                                                            \
	}

static void gather(struct rig_arg *a)
{
	a[0].p[0] = a[1].p[0] * 2;
}

static void plus1(struct rig_arg *a)
{
	a[0].p[0] = a[1].p[0] + 1;
}

static void bump(struct rig_arg *a)
{
	a[0].p[0]++;
}

static void set(struct rig_arg *a)
{
	a[0].p[0] = 77;
}

static uint32_t *pool, *h;

static void begin(enum rs_mode mode)
{
	rig_start(mode);
	STEP(1);
	pool = words(32), h = words(1);
	pool[0] = 5;
}

static unsigned matches(void)
{
	const char *records = rig_read("records.jsonl");

	fake_drain();
	return count(records, "\"match\"");
}

/* h = 2 pool[0], read from anywhere in the pool; pool[at] = h + 1, and perhaps the pool's first word is counted up. */
static void segment(unsigned at, int bumps)
{
	uint32_t *new = words(1);

	KERNEL(gather, W_(new, 1), WHOLE(pool, RS_READ));
	if (bumps)
		KERNEL(bump, WHOLE(pool, RS_READ | RS_WRITE));
	KERNEL(plus1, W_(pool + at, 1), R_(new, 1));
}

static void product(enum rs_mode mode, unsigned to, int bumps, int reused, unsigned want)
{
	begin(mode);
	PUSH("forward:f");
	segment(8, bumps);
	POP();
	KERNEL(set, W_(pool, 1));
	if (reused)
		KERNEL(set, W_(pool + to, 1));
	PUSH("replay:f");
	segment(to, bumps);
	POP();
	ok(matches() == want, "place %u, bumped %d, reused %d: %u matches", to, bumps, reused,
	   want);
	is_u64(pool[to], mode == RS_MODE_PRESERVE ? 11 : 155, "the product stays");
	is_u64(pool[0], mode == RS_MODE_AUDIT && bumps ? 78 : 77, "state is what it was");
	rig_stop();
}

/* What the call writes is not known either: the pointer leads elsewhere than the forward's, or to memory that is used again. */
static void unknown_write(unsigned to)
{
	begin(RS_MODE_PRESERVE);
	PUSH("forward:f");
	KERNEL(gather, WHOLE(pool + 8, RS_WRITE), WHOLE(pool, RS_READ));
	POP();
	KERNEL(set, W_(pool + to, 1));
	PUSH("replay:f");
	KERNEL(gather, WHOLE(pool + to, RS_WRITE), WHOLE(pool, RS_READ));
	POP();
	is_u64(matches(), 0, "nobody vouches for a write of unknown reach in a pool");
	is_u64(pool[0], 5, "but nothing is overwritten");
	rig_stop();
}

/* The same place, nobody knows which bytes: a table that is looked up and changed. */
static void table(void)
{
	begin(RS_MODE_PRESERVE);
	PUSH("forward:f");
	KERNEL(gather, W_(h, 1), WHOLE(pool, RS_READ));
	KERNEL(plus1, WHOLE(pool, RS_WRITE), R_(h, 1));
	POP();
	PUSH("replay:f");
	KERNEL(gather, W_(h, 1), WHOLE(pool, RS_READ));
	KERNEL(plus1, WHOLE(pool, RS_WRITE), R_(h, 1));
	POP();
	is_u64(matches(), 1, "a table is state");
	is_u64(pool[0], 11, "its first change is the only one");
	is_u64(*h, 10, "and the replay has seen it before that");
	rig_stop();
}

/* After a read whose bounds are known there is no doubt. */
static void certain_read(void)
{
	begin(RS_MODE_PRESERVE);
	for (unsigned i = 0; i < 2; i++) {
		PUSH(i ? "replay:f" : "forward:f");
		KERNEL(gather, W_(h, 1), WHOLE(pool, RS_READ));
		KERNEL(plus1, W_(h, 1), R_(pool + 4, 1));
		KERNEL(plus1, W_(pool + 4, 1), R_(h, 1));
		POP();
		if (!i)
			KERNEL(set, W_(pool + 4, 1));
	}
	is_u64(matches(), 1, "bytes that are read for certain are state");
	is_u64(pool[4], 77, "and come back");
	is_u64(*h, 1, "the replay has read what its forward did");
	rig_stop();
}

int main(void)
{
	product(RS_MODE_PRESERVE, 12, 0, 0, 1);
	product(RS_MODE_PRESERVE, 12, 0, 1, 1);
	product(RS_MODE_PRESERVE, 12, 1, 0, 1);
	product(RS_MODE_PRESERVE, 31, 1, 1, 1);
	product(RS_MODE_PRESERVE, 8, 0, 0, 1);
	product(RS_MODE_PRESERVE, 8, 0, 1, 0);
	product(RS_MODE_AUDIT, 12, 0, 0, 0);
	product(RS_MODE_AUDIT, 12, 1, 0, 0);
	unknown_write(12);
	unknown_write(8);
	table();
	certain_read();
	return tap_done();
}
