/* SPDX-License-Identifier: MIT */
/*
 * What a run has measured: the time and memory of segments, and what the tool's own operations take. It is what
 * plans are made from; planner/README.md says how.
 *
 * Times are those of the device (event pairs, see devops.h), in nanoseconds, as medians with their standard error.
 * Memory is in bytes, and always the largest value seen: a plan must not exceed its budget. Bytes of the program and of
 * the tool (its arena) are counted apart.
 *
 * These are plain values: they travel through shared memory (wire.h) and as lines of events.jsonl ("cost", "share",
 * "rate", "usage"), and in contracts ("costs"). Fields are only added within a version of the wire.
 */
#ifndef RS_TRACKER_COSTS_H
#define RS_TRACKER_COSTS_H

#include <stdint.h>

#include "tracker/name.h"

#define RS_COST_NAME RS_NAME_BYTES /* with its NUL */

struct rs_cost_time {
	uint64_t median_ns;
	uint64_t error_ns; /* standard error of the median */
	uint64_t n;	   /* samples, of which the latest 64 are kept; 0: never measured */
};

enum rs_cost_flag {
	RS_COST_RETAINS = 1, /* the program asks, and keeps activations when it is told so */
	RS_COST_UNSAFE =
		2, /* a replay of it was no match, or something kept it from being vouched for */
	RS_COST_REPLAYED = 4,	  /* it has been replayed */
	RS_COST_HAS_RETAINED = 8, /* the program kept its activations in some step */
};

/*
 * A segment, as what an invocation of it in a step takes. Memory: what the program had in use when the forward began, most
 * while it ran; when the replay began and ended, most from there to the next replay's begin (or, of the last one, the
 * step's end). Only steps in which the program kept no activations count for live_replay and peak_backward.
 */
struct rs_cost {
	char segment[RS_COST_NAME];
	uint64_t invocation;
	uint64_t order;			     /* place in the forward order of its step, from 0 */
	uint64_t steps;			     /* in which it was measured */
	uint64_t flags;			     /* enum rs_cost_flag */
	struct rs_cost_time forward, replay; /* without the tool's own operations */
	struct rs_cost_time forward_busy,
		replay_busy; /* what the device's units were busy with; by CUPTI only */
	uint64_t live_forward, peak_forward;
	uint64_t live_replay, end_replay, peak_backward;
	uint64_t
		product_bytes; /* that the forward makes; what it keeps where allocations do not show it */
	uint64_t state_bytes; /* that it reads */
	/* Of that: all bytes of buffers in which anything was overwritten before the replay; the bytes overwritten. */
	uint64_t whole_bytes, whole_pieces;
	uint64_t kept_bytes, kept_pieces;
	uint64_t own_bytes,
		own_pieces; /* of kept_bytes: what no other segment needs (see rs_cost_share) */
	uint64_t draw_bytes;
	/* What REGIONS would keep when the forward reads it: what is known to be overwritten, of any step so far. */
	uint64_t region_bytes, region_pieces;
	uint64_t replays; /* most of one forward; times are of one of them, bytes serve all */
	/* Of products, to compare them: what is digested in the forward, and in each replay again. */
	uint64_t compared_bytes, compared_pieces;
	/* Of kept_bytes: whole mappings, which can be shown to a replay by remapping. */
	uint64_t remap_bytes, remap_pieces;
};

/* Overwritten bytes that several segments need in the same version: one copy serves all. */
#define RS_COST_SHARERS 32u
struct rs_cost_share {
	uint64_t bytes, pieces;
	uint32_t n;
	uint32_t order
		[RS_COST_SHARERS]; /* rs_cost.order of each, ascending; more than that many are not told */
};

/* The tool's own operations. A copy moves 2 * bytes. */
enum rs_rate_kind {
	RS_RATE_COPY,
	RS_RATE_DIGEST,
	RS_RATE_SWAP,
	RS_RATE_DIFF,
	RS_RATE_MOVE,
	RS_RATE_REMAP, /* one of the two of a replay, with the host's wait for an idle device */
	RS_RATES
};
extern const char *const rs_rate_names[RS_RATES];

/* ns = each_ns + bytes * gib_ns / 2^30, fitted over n operations. */
struct rs_cost_rate {
	uint64_t kind; /* enum rs_rate_kind */
	uint64_t n, bytes;
	uint64_t each_ns, gib_ns;
};

/* The process as a whole, over the last step and over all. */
struct rs_cost_usage {
	uint64_t step, steps;
	uint64_t step_ns;		 /* the last step, of the host's clock */
	uint64_t live_bytes, peak_bytes; /* the program's: now; most in the last step */
	uint64_t arena_bytes,
		arena_used; /* the tool's: taken from the driver; most in use in the last step */
	/* Most that the program had outside of all segments: between the last forward and the first replay; elsewhere. */
	uint64_t turn_bytes, outside_bytes;
	uint64_t segments; /* that have been measured */
};

#endif
