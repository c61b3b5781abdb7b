/* SPDX-License-Identifier: MIT */
/*
 * What the planner process is told of this one: numbers in the area, and measured costs through one of its rings.
 * Callers: planner.c, one thread at a time, so that the ring has one producer whichever thread marks the step.
 */
#ifndef RS_SHIM_TELL_H
#define RS_SHIM_TELL_H

#include "tracker/wire.h"

/* A new area: who we are, before anything else. From then on all that is told is told again. */
void rs_tell_begin(struct rs_wire *area);
/* The step's numbers, and the heartbeat. generation: of the area's plan that was given to the engine last; 0: none of it. */
void rs_tell_numbers(struct rs_wire *area, uint64_t step, const struct rs_cost_usage *usage,
		     uint64_t generation, uint64_t now_ns);
/* Costs that are new, or have changed beyond noise. What does not fit into the ring is told at a later step. */
void rs_tell_costs(struct rs_wire_ring *ring);

#endif
