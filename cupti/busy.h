/* SPDX-License-Identifier: MIT */
/*
 * From records to the busy time of windows: the length of the union of what a window's calls kept the device busy with.
 *
 * A window is a number that was current on a thread while it made calls; each call has a correlation number. Records come
 * in any order, late, or never. A window's time is told once, when the thread has left it and everything has come; one of
 * which something may be missing is not told at all.
 *
 * Pure bookkeeping: never calls CUPTI or the driver. Memory is bounded: beyond the bounds everything is forgotten
 * and counted. Callers and lock: session.c, under its mutex; the tests.
 */
#ifndef RS_CUPTI_BUSY_H
#define RS_CUPTI_BUSY_H

#include "cupti/parse.h"

struct rs_cupti_busy;

struct rs_cupti_told {
	uint64_t window, ns;
};

struct rs_cupti_counts {
	uint64_t told;	    /* windows whose time was told */
	uint64_t missing;   /* that were left out because records were lost or had no time */
	uint64_t empty;	    /* that gave the device nothing to do */
	uint64_t unmatched; /* records of calls outside of all windows */
	uint64_t forgotten; /* times that a bound or the lack of memory made us forget everything */
};

/* NULL without memory. */
struct rs_cupti_busy *rs_cupti_busy_create(void);
void rs_cupti_busy_destroy(struct rs_cupti_busy *b);

void rs_cupti_busy_item(struct rs_cupti_busy *b, const struct rs_cupti_item *item);
/* A thread enters a window, or leaves it for now. seq: how many buffers CUPTI has asked for so far. */
void rs_cupti_busy_enter(struct rs_cupti_busy *b, uint64_t window);
void rs_cupti_busy_leave(struct rs_cupti_busy *b, uint64_t window, uint64_t seq);
/* Records were lost: what is not told yet will not be. */
void rs_cupti_busy_spoil(struct rs_cupti_busy *b);
/* After each flush. */
void rs_cupti_busy_flushed(struct rs_cupti_busy *b);
/*
 * Up to n windows that are complete, into ret; how many. oldest: number of the oldest buffer that CUPTI still holds,
 * from 1 on; UINT64_MAX: it holds none. Call until it returns less than n.
 */
unsigned rs_cupti_busy_tell(struct rs_cupti_busy *b, uint64_t oldest, struct rs_cupti_told *ret,
			    unsigned n);
void rs_cupti_busy_counts(const struct rs_cupti_busy *b, struct rs_cupti_counts *ret);

#endif
