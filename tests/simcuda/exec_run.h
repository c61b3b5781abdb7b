/* SPDX-License-Identifier: MIT */
/*
 * Between exec_launch.c (grids, memory, special registers) and exec_run.c (warps).
 */
#ifndef SIM_EXEC_RUN_H
#define SIM_EXEC_RUN_H

#include "tests/simcuda/exec_flow.h"

/* Run the CTAs that the warps have been set up for. */
enum sim_fault_kind sim_run_cta(struct sim_run *run);
void sim_run_fault(struct sim_warp *w, const struct sim_uop *o, enum sim_fault_kind kind,
		   uint32_t lanes, const char *what);

#endif
