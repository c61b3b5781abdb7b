/* SPDX-License-Identifier: MIT */
/*
 * Inside the solver. How it works:
 *
 * 1. solve_prep.c folds everything later into one limit for each arc: the most bytes that may be held
 *    on entering its segment. Arcs that cannot be used, or are never better than another, are dropped.
 * 2. solve_dual.c prices bytes: `price[i]`, falling along the timeline, in 1/scale ns per byte. With
 *    them every plan costs (bound + its loss + what it leaves unused, priced), with loss >= 0 a sum
 *    over its arcs. All of this is exact in integers; a bad price makes a weak bound, not a wrong one.
 * 3. A pass with threshold g lists every plan of loss <= g, from both ends of the timeline, as lists of
 *    partial plans of which none is better than another in bytes and time (solve_list.c), and joins
 *    the two. The best one found is the optimum if it is within g of the bound; else the bound rises by
 *    g, and the next pass takes a larger one. So a search that is stopped has its certificate.
 * 4. The last segments (the tail), where transients matter, are listed once from the back before
 *    prices are set: with them as one choice the bound is far closer. Before the tail, limits rarely
 *    bind. Then segments may be taken in any order, and identical ones as one (solve_core.c);
 *    where they do bind, or with modes, the timeline is kept (solve_line.c).
 */
#ifndef RS_PLANNER_SOLVE_PRIV_H
#define RS_PLANNER_SOLVE_PRIV_H

#include "planner/solve.h"

typedef __int128 rs_wide;

#define RS_NONE UINT32_MAX
#define RS_LOTS (INT64_MAX / 4)	 /* beyond every sum of a valid problem */
#define RS_LOSS (UINT64_MAX / 4) /* losses saturate here */

/* An arc that may be used; `lim` is the most that may be held on entering the segment. */
struct rs_step {
	int64_t m, t, lim;
	uint32_t segment, orig; /* orig: number in its segment, as given */
	uint32_t from, to;
};

struct rs_prep {
	uint32_t n, modes;
	int64_t scale;	 /* prices and losses are in 1/scale ns, a power of 2 */
	uint32_t *first; /* n + 1 */
	struct rs_step *step;
	int64_t *
		least; /* [(n + 1) * modes] least held at a boundary that a feasible start can have */
	int64_t *most;	  /* [(n + 1) * modes] most held there that a feasible end allows */
	uint32_t segment; /* where it is infeasible, see rs_solve_result */
	int64_t held, excess;
};

/* A partial plan. From the front p is bytes held; from the back it is minus the bytes tolerated. */
struct rs_label {
	int64_t p, c;
	uint32_t node;
};

/* Ascending in p, descending in c. */
struct rs_list {
	struct rs_label *v;
	uint32_t n, room;
};

/* An empty one has no memory, and its end is nowhere. */
static inline struct rs_label *rs_list_end(const struct rs_list *l)
{
	return l->n ? l->v + l->n : l->v;
}

struct rs_node {
	uint32_t up, code;
};

/* Ends of the timeline that have been listed already, by mode at boundary `at`. */
struct rs_tail {
	uint32_t at;
	struct rs_list list[RS_PROBLEM_MODES];
	struct rs_list hull[RS_PROBLEM_MODES]; /* its lower convex hull */
};

struct rs_search {
	const struct rs_solve_options *opt;
	uint64_t end_ns; /* 0: no limit */
	int over, nomem; /* time is up; memory ran out */
	int64_t best;	 /* INT64_MAX: none yet */
	int64_t enough;	 /* stop at a plan this fast, or once none is proven to be; < 0: no */
	uint32_t *plan;	 /* as in rs_plan_check() */
	uint64_t labels;
	struct rs_node *node;
	uint32_t nnode, node_room, node_max;
	/*
	 * Longer lists are thinned (0: never). What is thinned proves nothing but still finds plans, and
	 * as the proof is lost anyway, lists are kept short for the rest of the pass.
	 */
	uint32_t list_max;
	int thinned;
	uint64_t
		room; /* loss that a plan faster than the best can have; what thinned lists go by */
};

struct rs_dual {
	uint32_t at;	/* boundary of the tail */
	int64_t *price; /* [n + 1] */
	rs_wide *value; /* [(n + 1) * modes] least priced cost from there on */
	uint32_t *next; /* [(n + 1) * modes] step that has it */
	rs_wide bound;	/* value at the start: no plan costs less (scaled) */
	int64_t over,
		cost; /* bytes beyond what the tail tolerates, and time, of the cheapest priced plan */
};

/* One pass's outcome. */
struct rs_found {
	int64_t c; /* INT64_MAX: none */
	uint32_t front, back;
	int cut; /* not all was listed: nothing is proven */
};

/* solve_prep.c. 0, -ENOMEM, or -ENODATA: infeasible, and prep says why. `less` lowers every cap. */
int rs_prep_build(struct rs_prep *prep, const struct rs_problem *p, int64_t less);
/* As prep of only those steps for which keep() says so, in a single mode. Same results. */
int rs_prep_single(struct rs_prep *prep, const struct rs_prep *from,
		   int (*keep)(const struct rs_step *step, void *ctx), void *ctx);
void rs_prep_free(struct rs_prep *prep);

/* solve_list.c */
struct rs_head {
	const struct rs_label *v, *end;
	int64_t m, t, lim;
	uint32_t code;
	int64_t p, c; /* of the label under v, extended */
};

struct rs_filter {
	rs_wide konst; /* loss = c * scale + price * max(p, pmin) + konst, at most g */
	uint64_t g;
	int64_t price, pmin, pmax;
	int64_t scale;
	int back; /* p is clamped from below at -lim, not limited by lim from above */
};

/* Merge of the heads, filtered, without what is dominated. -ENOMEM, or -E2BIG at the label limit. */
int rs_list_expand(struct rs_search *s, struct rs_list *out, struct rs_head *head, uint32_t n,
		   const struct rs_filter *f);
int rs_list_push(struct rs_list *list, int64_t p, int64_t c, uint32_t node);
int rs_list_copy(struct rs_list *to, const struct rs_list *from);
void rs_list_free(struct rs_list *list);
/* Fastest pair with p + p' + off <= 0. */
void rs_list_join(const struct rs_list *a, const struct rs_list *b, int64_t off,
		  struct rs_found *found);
int rs_list_hull(struct rs_list *hull, const struct rs_list *list);

/* How many losses there are of each number of bits: good enough to choose thresholds by. */
struct rs_histogram {
	uint32_t count[65];
};

static inline void rs_histogram_add(struct rs_histogram *h, uint64_t loss, uint32_t times)
{
	if (loss && loss < RS_LOSS)
		h->count[64 - __builtin_clzll(loss)] += times;
}

static inline uint64_t rs_histogram_kth(const struct rs_histogram *h, uint32_t k)
{
	uint32_t sum = 0;

	for (int bits = 1; bits < 62; bits++) {
		sum += h->count[bits];
		if (sum >= k)
			return (UINT64_C(1) << bits) - 1;
	}
	return RS_LOSS;
}

/* solve_dual.c */
int rs_dual_alloc(struct rs_dual *d, const struct rs_prep *prep);
void rs_dual_free(struct rs_dual *d);
/* Best single price, then the values for it. */
void rs_dual_single(struct rs_dual *d, const struct rs_prep *prep, const struct rs_tail *tail);
/* The values for d->price. */
void rs_dual_values(struct rs_dual *d, const struct rs_prep *prep, const struct rs_tail *tail);
/* Prices that differ along the timeline, by subgradient towards `target`; never worse than now. */
int rs_dual_ascend(struct rs_search *s, struct rs_dual *d, const struct rs_prep *prep,
		   const struct rs_tail *tail, int64_t target);
/* Loss of one step: what it costs above the best at its entry mode. */
uint64_t rs_dual_loss(const struct rs_dual *d, const struct rs_prep *prep,
		      const struct rs_step *step);

/* solve_tail.c */
int rs_tail_init(struct rs_tail *tail, const struct rs_prep *prep);
void rs_tail_free(struct rs_tail *tail);
/* Back to boundary `at`, plans of loss <= g only. 0, -ENOMEM, -E2BIG: more than `limit` labels. */
int rs_tail_extend(struct rs_tail *tail, struct rs_search *s, const struct rs_prep *prep,
		   const struct rs_dual *d, uint64_t g, uint32_t at, uint32_t limit);

/* solve_line.c, solve_core.c: passes. 0, -ENOMEM. */
struct rs_line;
struct rs_core;

int rs_line_create(struct rs_line **ret, const struct rs_prep *prep, const struct rs_dual *d,
		   const struct rs_tail *tail);
int rs_line_pass(struct rs_line *line, struct rs_search *s, uint64_t g, struct rs_found *found);
void rs_line_plan(const struct rs_line *line, const struct rs_search *s,
		  const struct rs_found *found, uint32_t *step);
void rs_line_free(struct rs_line *line);

int rs_core_create(struct rs_core **ret, const struct rs_prep *prep, const struct rs_dual *d,
		   const struct rs_tail *tail, int unmerged);
int rs_core_pass(struct rs_core *core, struct rs_search *s, uint64_t g, struct rs_found *found);
void rs_core_plan(const struct rs_core *core, const struct rs_search *s,
		  const struct rs_found *found, uint32_t *step);
void rs_core_free(struct rs_core *core);
/* A loss below which there are k of either, about; RS_LOSS if there are fewer. */
uint64_t rs_line_kth(const struct rs_line *line, uint32_t k);
uint64_t rs_core_kth(const struct rs_core *core, uint32_t k);

/* solve_one.c: search of one prepared problem. Improves s->best; *ret_bound: no plan is below it. */
int rs_solve_one(struct rs_search *s, const struct rs_prep *prep, int64_t *ret_bound);
/* The same by the number of the segment where mode 1 begins; -ENOTSUP if modes are not like that. */
int rs_solve_starts(struct rs_search *s, const struct rs_prep *prep, int64_t *ret_bound);
/* Is the time over, memory out, or the plan good enough? */
int rs_search_over(struct rs_search *s);
uint64_t rs_search_clock(void);
/* Take `step` (numbers in prep->step) if it is feasible and faster than the best. */
int rs_search_offer(struct rs_search *s, const struct rs_prep *prep, const uint32_t *step);

#endif
