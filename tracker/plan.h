/* SPDX-License-Identifier: MIT */
/*
 * A plan as a running program obeys it: per segment what is done, and what the memory at its events is predicted to be.
 *
 * Memory is the program's and the tool's together, the arena with all of its reserved bytes.
 */
#ifndef RS_TRACKER_PLAN_H
#define RS_TRACKER_PLAN_H

#include <stdint.h>

#define RS_PLAN_MAX 4096u /* most entries of a plan that is obeyed */

struct rs_plan_entry {
	uint64_t name; /* rs_plan_name() of the segment */
	uint32_t invocation;
	uint8_t option, restore;    /* enum rs_option, enum rs_restore */
	uint16_t order;		    /* place in the forward order */
	uint64_t forward, backward; /* most bytes at its two events */
};

struct rs_plan_head {
	uint64_t generation; /* from 1, of this channel or file; 0: none */
	uint64_t
		from_step; /* the first step for which it holds; all processes that share it begin then */
	uint64_t fingerprint;	/* of the segments that it was made for: rs_plan_print() */
	uint64_t budget, arena; /* bytes */
	uint64_t peak;		/* predicted, over the whole step */
	int64_t time, bound;	/* ns added to a step; no plan is faster than bound */
	uint32_t n;
	uint32_t flags; /* enum rs_plan_flag */
};

enum rs_plan_flag { RS_PLAN_INFEASIBLE = 1 /* there is no plan within the budget; n is 0 */ };

uint64_t rs_plan_name(const char *segment);
/* Order-dependent digest over names and invocations: continue from 0. */
uint64_t rs_plan_print(uint64_t print, uint64_t name, uint32_t invocation);

/* What became of the plan that was given last. */
enum rs_plan_state {
	RS_PLAN_NONE,
	RS_PLAN_WAITING, /* its first step has not begun */
	RS_PLAN_DRY,	 /* its first step is running: measured against the prediction */
	RS_PLAN_IN_FORCE,
	RS_PLAN_REFUSED_PEAK,	  /* the dry step took more than was predicted */
	RS_PLAN_REFUSED_MEMORY,	  /* the arena could not be reserved */
	RS_PLAN_REFUSED_SEGMENTS, /* it was made for other segments */
	RS_PLAN_REFUSED_FORM	  /* it was malformed */
};
extern const char *const rs_plan_state_names[RS_PLAN_REFUSED_FORM + 1];

struct rs_plan_status {
	uint64_t generation;
	uint32_t state; /* enum rs_plan_state */
	uint32_t
		order; /* the event that took more, as a segment's place; UINT32_MAX: outside of all */
	uint64_t predicted, measured; /* there */
};

#endif
