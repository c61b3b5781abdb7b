/* SPDX-License-Identifier: MIT */
/*
 * Plans for made-up programs, run step by step: no event may take more than was predicted there, nothing more than the
 * budget. Time and bound against all choices that there are.
 */
#include "tests/unit/costing_rig.h"
#include "tests/tap.h"

#define GUARD 4096u

static uint64_t seed = 1;

static struct rs_wish wish_of(uint64_t budget)
{
	return (struct rs_wish){.budget = budget, .guard = GUARD, .tie = -1, .allow = RS_ALLOW_ALL};
}

static uint64_t keeps_of(const struct rig_program *p, const struct rig_choice *c)
{
	uint64_t keeps = 0;

	for (uint32_t i = 0; i < p->n; i++)
		keeps |= c[i].option == RS_OPTION_RETAIN ? 1u << i : 0;
	return keeps;
}

/* Does a step under the plan stay within what the plan says of it? */
static int step_holds(const struct rig_program *p, const struct rs_planned *plan,
		      const struct rig_choice *c)
{
	uint64_t limit = plan->head.budget - GUARD, arena = plan->head.arena, at[MOST_SEGMENTS];
	struct rig_step t = rig_run(p, (uint32_t)keeps_of(p, c));
	int good = rig_tool(p, c, at) <= arena && plan->head.peak <= limit &&
		   t.turn + arena <= plan->head.peak && t.outside + arena <= plan->head.peak;

	for (uint32_t i = 0; i < p->n; i++) {
		good &= t.forward[i] + arena <= plan->entry[i].forward;
		good &= t.backward[i] + arena <= plan->entry[i].backward;
		good &= plan->entry[i].forward <= plan->head.peak &&
			plan->entry[i].backward <= plan->head.peak;
	}
	return good;
}

/* What is told of each segment adds up. */
static int prices_add_up(const struct rs_costs *c, const struct rs_wish *wish,
			 const struct rs_planned *plan)
{
	struct rs_priced v[MOST_SEGMENTS];
	int64_t time = 0;

	if (rs_planned_price(c, wish, plan, v))
		return 0;
	for (uint32_t i = 0; i < c->n; i++)
		time += v[i].time;
	return time == plan->head.time;
}

static int entries_are_right(const struct rs_costs *c, const struct rs_planned *plan)
{
	int good = plan->head.n == c->n && plan->head.fingerprint == rs_costs_fingerprint(c);

	for (uint32_t i = 0; good && i < c->n; i++)
		good = plan->entry[i].order == i &&
		       plan->entry[i].invocation == c->segment[i].invocation &&
		       plan->entry[i].name == rs_plan_name(c->segment[i].segment);
	return good;
}

/* --- all choices ---------------------------------------------------------------------------------- */

struct all {
	const struct rig_program *p;
	struct rs_priced priced[MOST_SEGMENTS][RS_OPTIONS * RS_RESTORES];
	unsigned n[MOST_SEGMENTS];
	struct rig_choice c[MOST_SEGMENTS];
	uint64_t limit;
	uint64_t loose, tight; /* least time, the arena as it is used and as it is reserved */
};

static void look(struct all *a)
{
	const struct rig_program *p = a->p;
	struct rig_step t = rig_run(p, (uint32_t)keeps_of(p, a->c));
	uint64_t at[MOST_SEGMENTS], most = rig_tool(p, a->c, at), time = rig_time(p, a->c);
	int loose = t.turn + at[p->n - 1] <= a->limit && t.outside <= a->limit;
	int tight = t.turn + most <= a->limit && t.outside + most <= a->limit;

	for (uint32_t i = 0; i < p->n; i++) {
		loose &= t.backward[i] + at[i] <= a->limit;
		tight &= t.backward[i] + most <= a->limit && t.forward[i] + most <= a->limit;
	}
	if (loose && time < a->loose)
		a->loose = time;
	if (tight && time < a->tight)
		a->tight = time;
}

static void all_choices(struct all *a, uint32_t i)
{
	if (i == a->p->n) {
		look(a);
		return;
	}
	for (unsigned k = 0; k < a->n[i]; k++) {
		a->c[i] = (struct rig_choice){a->priced[i][k].option, a->priced[i][k].restore};
		all_choices(a, i + 1);
	}
}

/* --- one program ---------------------------------------------------------------------------------- */

struct sums {
	unsigned plans, infeasible, missed, optimal, best, tight, shared;
};

/* The model may ask for a little more than a step takes, never for less. */
static int infeasible_is_right(const struct rs_planned *plan, const struct all *a,
			       struct sums *sums)
{
	sums->infeasible++;
	sums->missed += a->tight != UINT64_MAX;
	return plan->why[0] && plan->head.flags & RS_PLAN_INFEASIBLE && !plan->head.n &&
	       !plan->entry;
}

static int plan_is_right(const struct rig_program *p, const struct rs_costs *c,
			 const struct rs_planned *plan, const struct all *a, struct sums *sums)
{
	struct rig_choice choice[MOST_SEGMENTS];
	uint64_t time;

	for (uint32_t i = 0; i < p->n; i++)
		choice[i] = (struct rig_choice){plan->entry[i].option, plan->entry[i].restore};
	time = rig_time(p, choice);
	sums->best += time == a->tight;
	sums->tight += a->tight != UINT64_MAX;
	sums->optimal += plan->status == RS_SOLVE_OPTIMAL;
	return step_holds(p, plan, choice) && entries_are_right(c, plan) &&
	       (uint64_t)plan->head.time == time && plan->head.bound <= plan->head.time &&
	       a->loose <= (uint64_t)plan->head.time &&
	       (plan->status == RS_SOLVE_OPTIMAL) == (plan->head.bound == plan->head.time);
}

/* The bound is the least time of the problem, by exhaustive search in it. */
static int bound_is_right(const struct rs_costs *c, const struct rs_wish *wish,
			  const struct rs_planned *plan)
{
	struct rs_problem problem;
	struct rig_best best;

	if (rs_costs_problem(c, wish, &problem))
		return 0;
	best = rig_search(&problem, INT64_MIN);
	rs_problem_free(&problem);
	if (plan->status == RS_SOLVE_INFEASIBLE)
		return 1;
	return best.time == plan->head.bound;
}

static int try_one(struct rig_random *r, struct sums *sums)
{
	struct rig_program p;
	struct rs_planned plan;
	struct rs_costs c;
	struct rs_wish wish;
	struct all a;
	uint64_t least, most;
	int good;

	rig_make(r, &p, (uint32_t)rig_int(r, 1, 4));
	if (rig_costs(&p, &c))
		return 0;
	least = rig_run(&p, 0).outside;
	most = rig_run(&p, (1u << p.n) - 1).turn + (8u << 20);
	wish = wish_of((uint64_t)rig_int(r, (int64_t)least, (int64_t)most));
	memset(&a, 0, sizeof(a));
	a.p = &p;
	a.limit = wish.budget - GUARD;
	a.loose = a.tight = UINT64_MAX;
	for (uint32_t i = 0; i < p.n; i++)
		a.n[i] = rs_costs_price(&c, i, a.priced[i]);
	all_choices(&a, 0);
	good = !rs_plan_make(&c, &wish, &plan) && bound_is_right(&c, &wish, &plan);
	sums->plans++;
	if (good && plan.status == RS_SOLVE_INFEASIBLE) {
		good = infeasible_is_right(&plan, &a, sums);
	} else if (good) {
		good = plan_is_right(&p, &c, &plan, &a, sums) && prices_add_up(&c, &wish, &plan);
	}
	sums->shared += c.nshares > 0;
	if (!good)
		tap_diag("seed %" PRIu64 ": %s, %s, time %" PRId64 ", bound %" PRId64
			 ", loose %" PRIu64 ", tight %" PRIu64,
			 seed, rs_solve_status_names[plan.status], plan.why, plan.head.time,
			 plan.head.bound, a.loose, a.tight);
	rs_planned_free(&plan);
	rs_costs_free(&c);
	return good;
}

static void programs(unsigned n)
{
	struct rig_random r;
	struct sums sums = {0};
	int good = 1;

	for (unsigned i = 0; good && i < n; i++) {
		r.x = seed = 1000 + i;
		good = try_one(&r, &sums);
	}
	ok(good, "%u programs: no event over its prediction, none over the budget; time and bound",
	   n);
	tap_diag("%u infeasible (%u of them not in a step's own terms), %u optimal, %u of %u the "
		 "best there is, %u share",
		 sums.infeasible, sums.missed, sums.optimal, sums.best, sums.tight, sums.shared);
	ok(sums.infeasible > n / 20 && sums.infeasible < n / 2 && sums.missed < n / 20,
	   "some budgets are too small, few only by the model's caution");
	ok(sums.optimal > n / 3 && sums.best > sums.tight * 3 / 4,
	   "most plans are the best there are");
}

int main(void)
{
	programs(600);
	return tap_done();
}
