/* SPDX-License-Identifier: MIT */
/*
 * Reader of planner instances: one JSON object with n, S (modes), cap (n integers, bytes) and arcs
 * (for each segment a list of [from, to, option, m, w, t]). An object that has them under "inst" is
 * taken as well. Other members are passed over.
 *
 * Any byte sequence is accepted or refused with the place; integers are taken exactly, in 64 bits,
 * and a number with a fraction is refused. Callers: replayctl plan, tests, the fuzzer.
 */
#ifndef RS_PLANNER_INSTANCE_JSON_H
#define RS_PLANNER_INSTANCE_JSON_H

#include "planner/problem.h"

/* 0, -ENOMEM, -EINVAL (what was wrong is in error), or what the system said about the file. */
int rs_instance_load(struct rs_problem *ret, const char *path, struct rs_problem_error *error);
int rs_instance_parse(struct rs_problem *ret, const char *text, size_t size,
		      struct rs_problem_error *error);

#endif
