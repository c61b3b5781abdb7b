/* SPDX-License-Identifier: MIT */
/*
 * The open push/pop ranges of a thread: each domain's are a stack of their own, as NVTX has it; all of them together
 * are kept in the order in which they were pushed. Only those that are windows are known to the engine.
 *
 * Invariant: the entries with `window` are, in order, what the engine's stack of that thread holds.
 * Callers: marker.c, in the thread itself; tls.c at its end. No locks.
 */
#ifndef RS_SHIM_RANGES_H
#define RS_SHIM_RANGES_H

#include "shim/pattern.h"

struct rs_range {
	const struct rs_domain *domain;
	uint32_t contexts;
	int8_t until; /* the context whose next range ends the window; -1: none */
	uint8_t window, builtin;
};

struct rs_ranges {
	unsigned n, cap;
	unsigned untils;   /* open windows that may end before their range */
	unsigned builtins; /* open windows of built-in rules */
	unsigned tagged;   /* that belong to a context */
	unsigned lost;	   /* pushed without memory for an entry */
	struct rs_range v[];
};

/* Room for one more; 0: there is no memory, and the range is counted as lost. */
int rs_ranges_room(struct rs_tls *t);
/* Contexts of all open ranges. */
uint32_t rs_ranges_contexts(const struct rs_ranges *r);
/* The innermost range of a domain: its index, or -1. */
int rs_ranges_innermost(const struct rs_ranges *r, const struct rs_domain *d);
/* How many windows were pushed after range i. */
unsigned rs_ranges_above(const struct rs_ranges *r, unsigned i);
/* Range i is no window any more. */
void rs_ranges_shut(struct rs_ranges *r, unsigned i);
void rs_ranges_remove(struct rs_ranges *r, unsigned i);
void rs_ranges_drop(struct rs_tls *t);

#endif
