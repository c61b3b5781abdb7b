/* SPDX-License-Identifier: MIT */
/*
 * The solver against exhaustive search on thousands of small random problems: one to three modes,
 * tight prefixes, ties, equal segments, huge numbers; each by every path the solver has.
 */
#include "tests/unit/plan_rig.h"
#include "tests/tap.h"

static int plan_is(const struct rs_problem *p, const struct rs_solve_result *s, int64_t time)
{
	struct rs_problem_error error;
	struct rs_plan_cost cost;

	if (rs_plan_check(p, s->arc, &cost, &error)) {
		tap_diag("%s", error.text);
		return 0;
	}
	return cost.time == time && cost.time == s->cost.time && cost.peak == s->cost.peak;
}

static int agrees(const struct rs_problem *p, const struct rig_best *best,
		  const struct rs_solve_options *options)
{
	struct rs_solve_result s;
	int good;

	if (rs_solve(p, options, &s))
		return 0;
	if (best->time == INT64_MAX)
		good = s.status == RS_SOLVE_INFEASIBLE && s.segment == best->segment &&
		       s.held == best->held && s.excess == best->excess;
	else
		good = s.status == RS_SOLVE_OPTIMAL && s.bound == best->time && s.gap == 0 &&
		       plan_is(p, &s, best->time);
	if (!good)
		tap_diag("%s, best %" PRId64 ", bound %" PRId64 ", segment %u; want %" PRId64
			 ", segment %u",
			 rs_solve_status_names[s.status], s.best, s.bound, s.segment, best->time,
			 best->segment);
	rs_solve_free(&s);
	return good;
}

/* With few labels, or stopped early, what is claimed must still hold. */
static int claims_hold(const struct rs_problem *p, const struct rig_best *best,
		       const struct rs_solve_options *options)
{
	struct rs_solve_result s;
	int good = 1;

	if (rs_solve(p, options, &s))
		return 0;
	if (best->time != INT64_MAX)
		good = s.bound <= best->time && s.best >= best->time && plan_is(p, &s, s.best) &&
		       (s.status == RS_SOLVE_OPTIMAL) == (s.bound == s.best);
	rs_solve_free(&s);
	return good;
}

static int ties_break(const struct rs_problem *p, const struct rig_best *best, double tie)
{
	struct rs_solve_options options = {.tie = tie};
	struct rig_best least;
	struct rs_solve_result s;
	int good;

	if (best->time == INT64_MAX)
		return 1;
	least = rig_search(p, best->time + (int64_t)((double)best->time * tie));
	/* Least peak is only the same as most slack where all caps are equal. */
	if (rs_solve(p, &options, &s))
		return 0;
	good = s.best == best->time && s.cost.peak == least.peak && s.cost.time <= least.allowed &&
	       plan_is(p, &s, s.cost.time);
	if (!good)
		tap_diag("peak %" PRId64 ", want %" PRId64 "; time %" PRId64 " of %" PRId64,
			 s.cost.peak, least.peak, s.cost.time, least.allowed);
	rs_solve_free(&s);
	return good;
}

struct tally {
	uint32_t feasible, wrong[8];
};

static void one(struct rig_random *r, const struct rig_shape *shape, struct tally *tally)
{
	static const struct rs_solve_options plain = {.tie = -1};
	static const struct rs_solve_options line = {.tie = -1, .timeline = 1};
	static const struct rs_solve_options unmerged = {.tie = -1, .unmerged = 1};
	static const struct rs_solve_options apart = {.tie = -1, .tail = 2};
	static const struct rs_solve_options prices = {.tie = -1, .tail = 1, .timeline = 1};
	static const struct rs_solve_options few = {.tie = -1, .max_labels = 6};
	static const struct rs_solve_options some = {.tie = -1, .max_labels = 120};
	static const struct rs_solve_options gap = {.tie = -1, .gap = 0.1};
	struct rs_problem_error error;
	struct rig_best best;
	struct rs_problem p;

	if (rig_problem(r, shape, &p) || rs_problem_check(&p, &error)) {
		tally->wrong[0]++;
		return;
	}
	best = rig_search(&p, INT64_MIN);
	tally->feasible += best.time != INT64_MAX;
	tally->wrong[0] += !agrees(&p, &best, &plain);
	tally->wrong[1] += !agrees(&p, &best, &line);
	tally->wrong[2] += !agrees(&p, &best, &unmerged);
	tally->wrong[6] += !agrees(&p, &best, &apart);
	tally->wrong[7] += !agrees(&p, &best, &prices);
	tally->wrong[3] += !claims_hold(&p, &best, &few);
	tally->wrong[3] += !claims_hold(&p, &best, &some);
	tally->wrong[4] += !claims_hold(&p, &best, &gap);
	if (!shape->prefixes)
		tally->wrong[5] += !ties_break(&p, &best, rig_int(r, 0, 1) ? 0 : 0.2);
	rs_problem_free(&p);
}

static void family(const char *name, struct rig_shape shape, uint32_t count, uint64_t seed)
{
	static const char *const how[8] = {"optimal",
					   "optimal on the timeline",
					   "optimal unmerged",
					   "claims hold with few labels",
					   "claims hold at a gap",
					   "least peak among ties",
					   "optimal with a short tail",
					   "optimal by prices along the timeline"};
	struct rig_random r = {seed};
	struct tally tally = {0};
	uint32_t n = shape.n;

	for (uint32_t i = 0; i < count; i++) {
		shape.n = (uint32_t)rig_int(&r, 1, n);
		shape.loose = (int)rig_int(&r, 0, 1);
		one(&r, &shape, &tally);
	}
	for (int k = 0; k < 8; k++)
		if (k != 5 || !shape.prefixes)
			ok(!tally.wrong[k], "%s: %u problems, %s", name, count, how[k]);
	ok(tally.feasible > count / 5 && tally.feasible < count, "%s: %u are feasible", name,
	   tally.feasible);
}

int main(void)
{
	const int64_t big = INT64_C(1) << 54;

	family("1 mode", (struct rig_shape){9, 1, 4, 1000, 1000, 0, 0, 0}, 800, 1);
	family("1 mode, prefixes", (struct rig_shape){9, 1, 4, 1000, 1000, 0, 1, 0}, 800, 2);
	family("2 modes", (struct rig_shape){8, 2, 5, 1000, 1000, 0, 0, 0}, 500, 3);
	family("2 modes, prefixes", (struct rig_shape){8, 2, 5, 1000, 1000, 0, 1, 0}, 500, 4);
	family("3 modes", (struct rig_shape){7, 3, 7, 1000, 1000, 0, 0, 0}, 500, 5);
	family("3 modes, prefixes", (struct rig_shape){7, 3, 7, 1000, 1000, 0, 1, 0}, 500, 6);
	family("ties", (struct rig_shape){9, 1, 4, 3, 3, 0, 0, 0}, 600, 7);
	family("ties, prefixes", (struct rig_shape){9, 1, 4, 3, 3, 0, 1, 0}, 600, 8);
	family("equal", (struct rig_shape){10, 1, 3, 20, 20, 0, 0, 1}, 800, 9);
	family("equal, prefixes", (struct rig_shape){10, 1, 3, 20, 20, 0, 1, 1}, 600, 10);
	family("a log that starts", (struct rig_shape){8, 2, 4, 1000, 1000, 0, 0, 1}, 600, 11);
	family("its prefixes", (struct rig_shape){8, 2, 4, 1000, 1000, 0, 1, 1}, 600, 12);
	family("huge", (struct rig_shape){8, 1, 4, big, big, 0, 0, 0}, 400, 13);
	family("huge, 2 modes", (struct rig_shape){7, 2, 5, big, big, 0, 1, 0}, 300, 14);
	family("bytes and seconds", (struct rig_shape){9, 1, 4, 9, big, 0, 1, 0}, 300, 15);
	return tap_done();
}
