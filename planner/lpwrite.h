/* SPDX-License-Identifier: MIT */
/*
 * The problem as a mixed-integer program in CPLEX LP format, for solvers that are not ours: highs,
 * cbc, glpsol. Exact: bytes are written as GB and times as ms, decimals shifted and nothing rounded.
 *
 * Variables: x<i>_<k> binary, arc k of segment i is taken; P<i> bytes held after segment i.
 */
#ifndef RS_PLANNER_LPWRITE_H
#define RS_PLANNER_LPWRITE_H

#include <stdio.h>

#include "planner/problem.h"

/* What cannot be written shows in ferror(out). */
void rs_lp_write(FILE *out, const struct rs_problem *p);

#endif
