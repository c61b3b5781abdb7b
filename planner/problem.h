/* SPDX-License-Identifier: MIT */
/*
 * The planning problem: segments in forward order, for each the options that a plan can take.
 *
 * Units: memory in bytes, time in nanoseconds added to a step; all numbers are integers and no bound
 * is ever rounded. An option holds `m` bytes from its segment's forward pass to its backward pass,
 * needs `w` more during the backward pass alone, and adds `t` to the step. `cap` of a segment is the
 * budget less what is in use there whatever the plan (parameters, gradients, the context).
 *
 * A plan takes one arc for each segment. It is feasible if the modes of neighbours agree, the first
 * is entered in mode 0, and for each k: m_1 + ... + m_k + w_k <= cap_k. Modes say what is already
 * kept (a snapshot of a buffer's version, a running undo log), so that sharing is paid for once.
 *
 * Where the numbers come from is in planner/README.md. Callers: the reader of instances, the
 * solver, the checker, the LP writer. No state, no locks.
 */
#ifndef RS_PLANNER_PROBLEM_H
#define RS_PLANNER_PROBLEM_H

#include <stddef.h>
#include <stdint.h>

#define RS_PROBLEM_SEGMENTS 65536	       /* most segments */
#define RS_PROBLEM_MODES    16		       /* most modes */
#define RS_PROBLEM_ARCS	    4096	       /* most arcs of one segment */
#define RS_PROBLEM_TOTAL    (4u << 20)	       /* most arcs together */
#define RS_PROBLEM_SUM	    (INT64_C(1) << 60) /* no sum of the largest m, w or t reaches it */

struct rs_arc {
	uint32_t from, to; /* modes */
	int64_t option;	   /* the caller's name for it, not interpreted */
	int64_t m, w, t;
};

struct rs_problem {
	uint32_t n, modes;
	int64_t *cap;	     /* n of them */
	uint32_t *first;     /* arcs of segment i: first[i] .. first[i + 1] - 1 */
	struct rs_arc *arcs; /* first[n] of them */
};

/* Sentence for people: which segment, which arc, what about it. */
struct rs_problem_error {
	char text[160];
};

/* Memory for n segments and `arcs` arcs; 0 or -ENOMEM. rs_problem_free() on a zeroed one is fine. */
int rs_problem_alloc(struct rs_problem *p, uint32_t n, uint32_t modes, uint32_t arcs);
void rs_problem_free(struct rs_problem *p);

/* -EINVAL. */
__attribute__((format(printf, 2, 3))) int rs_problem_bad(struct rs_problem_error *e,
							 const char *fmt, ...);
/* 0, or -EINVAL with the reason. Everything else here takes only what passed. */
int rs_problem_check(const struct rs_problem *p, struct rs_problem_error *error);

#endif
