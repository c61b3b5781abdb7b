/* SPDX-License-Identifier: MIT */
/*
 * Between costing.c (the store), costing_price.c (what an option takes), costing_problem.c (options and sharing as a
 * problem) and costing_plan.c (from its solution to a plan). Nobody else's business.
 *
 * All bytes below are sums of numbers that rs_costs_put*() has bounded, so that nothing overflows: see RS_MOST_BYTES.
 */
#ifndef RS_PLANNER_COSTING_PRIV_H
#define RS_PLANNER_COSTING_PRIV_H

#include "planner/costing.h"

/*
 * Largest numbers that are believed. 4096 segments of a few times 2^43 bytes, or of 2^46 ns, stay below
 * RS_PROBLEM_SUM.
 */
#define RS_MOST_BYTES  (UINT64_C(1) << 43)
#define RS_MOST_PIECES (UINT64_C(1) << 32)
#define RS_MOST_NS     (UINT64_C(1) << 44)
#define RS_MOST_PRICE  (UINT64_C(1) << 46) /* no option is said to take longer */

#define RS_PRICES (RS_OPTIONS * RS_RESTORES)

/* Blocks of the arena are multiples of this (tracker/arena.c). */
#define RS_BLOCK 256u

/* Bytes in pieces, as blocks of the arena: no sum of theirs rounded up one by one is larger. */
static inline uint64_t rs_blocks(uint64_t bytes, uint64_t pieces)
{
	uint64_t most = pieces < bytes ? pieces : bytes;

	return (bytes + most * (RS_BLOCK - 1)) & ~(uint64_t)(RS_BLOCK - 1);
}

static inline uint64_t rs_less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* What the program has in use at a segment's two events if no activations are kept, and what keeping them takes. */
struct rs_events {
	uint64_t base;		   /* at its backward, before the replay */
	uint64_t replayed;	   /* most at its backward, if it replays */
	uint64_t activations;	   /* held by retain */
	uint64_t forward;	   /* most at its forward, if it replays */
	uint64_t retained_forward; /* if it is retained; its activations are in it */
	uint64_t retained_backward;
	int backward_seen; /* it has a backward event at all */
};
void rs_costs_events(const struct rs_costs *c, uint32_t i, struct rs_events *ret);

/* An option of a segment; the bytes of the tool are in blocks. */
struct rs_price {
	uint8_t option, restore;
	uint64_t program;	    /* program's bytes held */
	uint64_t forward, backward; /* program's bytes at the events: without what segments hold */
	uint64_t
		tool; /* tool's bytes held: without shared ones that are accounted for one by one */
	uint64_t scratch; /* tool's bytes at the backward alone */
	uint64_t time;	  /* without saving those shared ones */
};

/* One share that is counted on: it is paid by the first member that needs it. */
struct rs_shared {
	uint64_t bytes, pieces;
	uint32_t bit; /* of the mode, from the first member to the last */
	uint32_t n;
	uint32_t order[RS_COST_SHARERS];
};

/* Of a segment: bytes that it shares with others, and those of them that each pays for itself. */
struct rs_common {
	uint64_t bytes, pieces, loose_bytes, loose_pieces;
};

struct rs_sharing {
	struct rs_shared *v;
	uint32_t n, bits;
	struct rs_common *common; /* by segment */
};
/* 0 or -ENOMEM. unshared: none is counted on. */
int rs_sharing_build(const struct rs_costs *c, int unshared, struct rs_sharing *ret);
void rs_sharing_free(struct rs_sharing *s);
int rs_sharing_has(const struct rs_shared *s, uint32_t order);

/* Possible options of segment i, in the order of preference among equals. common NULL: nothing is shared. */
unsigned rs_costs_prices(const struct rs_costs *c, uint32_t i, const struct rs_common *common,
			 struct rs_price *ret);
/* To save bytes in pieces before they are overwritten. */
uint64_t rs_costs_saving(const struct rs_costs *c, enum rs_option option, uint64_t bytes,
			 uint64_t pieces);
int rs_costs_is_forced(const struct rs_cost *s);  /* what happens to it is no choice */
int rs_price_preserves(const struct rs_price *p); /* it may need bytes that others need, too */

/*
 * As rs_costs_problem(). An arc's option is its number in `price`, which has RS_PRICES for each segment, to be freed.
 * -ENODATA: segment *ret_segment has none of the options that are allowed.
 */
int rs_costs_build(const struct rs_costs *c, const struct rs_wish *wish,
		   const struct rs_sharing *sharing, struct rs_problem *ret,
		   struct rs_price **ret_price, uint32_t *ret_segment);

#endif
