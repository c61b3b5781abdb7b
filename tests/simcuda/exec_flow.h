/* SPDX-License-Identifier: MIT */
/*
 * What a barrier micro-op does: between exec_flow.c (lowering) and exec_barrier.c (running).
 */
#ifndef SIM_EXEC_FLOW_H
#define SIM_EXEC_FLOW_H

#include "tests/simcuda/exec_priv.h"

enum sim_barrier { SIM_BAR_SYNC, SIM_BAR_ARRIVE, SIM_BAR_AND, SIM_BAR_OR, SIM_BAR_POPC };

/* exec_run.c */
void sim_warp_set(struct sim_warp *w, uint32_t act);
uint32_t sim_warp_pred(const struct sim_warp *w, uint32_t offset);

/* exec_barrier.c: the current lanes arrive; returns 1 if they must wait. */
int sim_barrier_arrive(struct sim_warp *w, const struct sim_uop *o, uint32_t lanes);
/* Let go of every complete barrier of the CTA; returns how many warps can run again. */
int sim_barrier_release(struct sim_run *run);

#endif
