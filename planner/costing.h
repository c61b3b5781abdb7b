/* SPDX-License-Identifier: MIT */
/*
 * The cost model: from what a run has measured to a planning problem, and from its solution to a plan that can be obeyed.
 * planner/README.md has the formulas and the source of each number.
 *
 * Callers: replayctl plan and map, on costs from a run directory or a contract; the planner process, on costs from
 * shared memory; benches. No state, no locks; a struct rs_costs belongs to one thread at a time.
 */
#ifndef RS_PLANNER_COSTING_H
#define RS_PLANNER_COSTING_H

#include <stddef.h>
#include <stdint.h>

#include "planner/problem.h"
#include "planner/solve.h"
#include "tracker/costs.h"
#include "tracker/engine.h" /* enum rs_option, enum rs_restore */
#include "tracker/plan.h"

/* Segments in forward order (rs_cost.order ascending, without gaps once rs_costs_ready() says 1). */
struct rs_costs {
	struct rs_cost *segment;
	uint32_t n, cap;
	struct rs_cost_share *share;
	uint32_t nshares, shares_cap;
	struct rs_cost_rate rate[RS_RATES]; /* n 0: never measured */
	struct rs_cost_usage usage;
};

void rs_costs_free(struct rs_costs *c); /* zeroed is fine, and is what it leaves */
/* What was told of that segment (name and invocation) before is replaced. 0, -EINVAL (not sane), -ENOMEM. */
int rs_costs_put(struct rs_costs *c, const struct rs_cost *cost);
int rs_costs_put_share(struct rs_costs *c, const struct rs_cost_share *share);
int rs_costs_put_rate(struct rs_costs *c, const struct rs_cost_rate *rate);
/* 1: complete enough to plan with; 0: not yet, and why. */
int rs_costs_ready(const struct rs_costs *c, const char **ret_why);
uint64_t rs_costs_fingerprint(const struct rs_costs *c);
/*
 * Another process of the same job (same segments: the fingerprint): of each number the larger one, so that one plan is good for
 * both. A segment that one of them cannot retain, or not replay, cannot be by both. -EINVAL: other segments.
 */
int rs_costs_merge(struct rs_costs *c, const struct rs_costs *other);

/* --- making plans ------------------------------------------------------------------------------ */

/* Bit of an option with its restore in rs_wish.allow. */
#define RS_ALLOW(option, restore) (1u << ((option)*RS_RESTORES + (restore)))
#define RS_ALLOW_ALL		  (~0u)

struct rs_wish {
	uint64_t budget; /* bytes, program and tool together */
	uint64_t
		guard; /* bytes of it that are left alone; UINT64_MAX: the larger of 1% and 256 MiB, scaled down for small devices */
	double gap;    /* as rs_solve_options */
	double tie;    /* < 0: off */
	uint64_t limit_ns;
	uint32_t allow; /* RS_ALLOW bits; RETAIN and FREE by copy are their only bits */
	int unshared;	/* baseline: private copies, sharing is not counted on */
	/* What if: of that segment (its place, from 1; 0: of none) only these options. */
	uint32_t only, only_allow;
};

/* Bytes that are left alone. */
uint64_t rs_wish_guard(const struct rs_wish *wish);

struct rs_planned {
	enum rs_solve_status status;
	struct rs_plan_head head;    /* generation and from_step are the publisher's */
	struct rs_plan_entry *entry; /* head.n */
	double gap;
	uint64_t solve_ns;
	/* infeasible: the segment at which nothing fits, and bytes that are missing there at least */
	uint32_t segment;
	uint64_t missing;
	char why[200]; /* infeasible: a sentence for people */
};

/* One option of one segment with its price, for --explain, maps and tests. */
struct rs_priced {
	uint8_t option, restore;
	uint8_t shared;		       /* see rs_planned_price() */
	int64_t held, transient, time; /* m, w, t of problem.h */
};
/* All options of segment i, allowed or not but possible; at most RS_OPTIONS * RS_RESTORES. Returns how many. */
unsigned rs_costs_price(const struct rs_costs *c, uint32_t i, struct rs_priced *ret);

/* The problem itself, for --lp and tests; option ids are option * RS_RESTORES + restore. 0, -EINVAL, -ENOMEM. */
int rs_costs_problem(const struct rs_costs *c, const struct rs_wish *wish, struct rs_problem *ret);

/*
 * 0 (see status), -EAGAIN (costs are not ready), -EINVAL (a budget beyond anything that exists), -ENOMEM. The plan holds
 * with its whole arena in use from the first event on (that is how it is reserved): predicted bytes are never more than
 * budget - guard.
 */
int rs_plan_make(const struct rs_costs *c, const struct rs_wish *wish, struct rs_planned *ret);
void rs_planned_free(struct rs_planned *p);
/*
 * What the plan's choices take, one for each entry, as they share: the times add up to head.time. `shared`: an earlier
 * segment keeps bytes that this one needs, too. -ENOMEM.
 */
int rs_planned_price(const struct rs_costs *c, const struct rs_wish *wish,
		     const struct rs_planned *p, struct rs_priced *ret);

#endif
