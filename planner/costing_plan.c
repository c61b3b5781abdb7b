/* SPDX-License-Identifier: MIT */
/*
 * From costs to a plan that can be obeyed. The problem lets go of each segment's bytes when its backward is over; but the
 * tool's are reserved as one arena for the whole step. So the solution is walked through once more with all of the arena
 * in use at each event, by code that shares nothing with the problem's caps. Where that is too much, the caps there are
 * lowered by as much and the problem is solved again. Should that not end, the caps are made so low that every order
 * of events fits.
 *
 * The problem as it was is a relaxation of all of these, so its bound holds for the plan, and the gap is told from it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/costing_priv.h"

#define ROUNDS 8
#define GRANULE                                                                                    \
	(UINT64_C(64) << 10) /* of arenas; what the driver itself rounds up is the guard's */

struct maker {
	const struct rs_costs *c;
	const struct rs_wish *wish;
	struct rs_sharing sharing;
	struct rs_problem p;
	struct rs_price *price;
	uint64_t limit;
	/* of the solution that was evaluated last */
	const struct rs_price **chosen;
	uint64_t arena, peak, *forward, *backward, over;
};

/* --- evaluating --------------------------------------------------------------------------------- */

static const struct rs_price *chosen(const struct maker *m, const uint32_t *arc, uint32_t i)
{
	int64_t option = m->p.arcs[m->p.first[i] + arc[i]].option;

	return &m->price[(size_t)i * RS_PRICES + (size_t)option];
}

/* Shares that somebody needs, each once. */
static uint64_t shared_bytes(const struct maker *m)
{
	uint64_t bytes = 0;

	for (uint32_t k = 0; k < m->sharing.n; k++) {
		const struct rs_shared *s = &m->sharing.v[k];
		int needed = 0;

		for (uint32_t i = 0; i < s->n; i++)
			needed |= rs_price_preserves(m->chosen[s->order[i]]);
		bytes += needed ? rs_blocks(s->bytes, s->pieces) : 0;
	}
	return bytes;
}

static void see(struct maker *m, uint64_t bytes)
{
	m->peak = bytes > m->peak ? bytes : m->peak;
	if (bytes > m->limit && bytes - m->limit > m->over)
		m->over = bytes - m->limit;
}

/* Every event with all of the arena in use, and by how much the worst of them is over. */
static void evaluate(struct maker *m, const uint32_t *arc)
{
	uint64_t held = 0, scratch = 0;

	for (uint32_t i = 0; i < m->p.n; i++) {
		m->chosen[i] = chosen(m, arc, i);
		held += m->chosen[i]->tool;
		if (m->chosen[i]->scratch > scratch)
			scratch = m->chosen[i]->scratch;
	}
	held += shared_bytes(m) + scratch;
	m->arena = (held + GRANULE - 1) / GRANULE * GRANULE;
	m->peak = m->over = held = 0;
	for (uint32_t i = 0; i < m->p.n; i++) {
		const struct rs_price *p = m->chosen[i];

		held += p->program;
		m->forward[i] = held + p->forward + m->arena;
		m->backward[i] = p->backward ? held + p->backward + m->arena : 0;
		see(m, m->forward[i]);
		see(m, m->backward[i]);
	}
	see(m, m->c->usage.turn_bytes + held + m->arena);
	see(m, m->c->usage.outside_bytes + m->arena);
}

/* Lower each cap by what its events are over. What is over elsewhere is the last one's. */
static void lower_caps(struct maker *m)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < m->p.n; i++) {
		uint64_t event = m->forward[i] > m->backward[i] ? m->forward[i] : m->backward[i];

		most = event > most ? event : most;
		if (event > m->limit)
			m->p.cap[i] -= (int64_t)(event - m->limit);
	}
	if (m->peak > most && m->peak > m->limit)
		m->p.cap[m->p.n - 1] -= (int64_t)(m->peak - m->limit);
}

/* --- the safe end ------------------------------------------------------------------------------- */

/* All that is held, with the most of any event and the most scratch, at every event. */
static void sum_caps(struct maker *m)
{
	uint64_t event = m->c->usage.turn_bytes, scratch = 0, most;

	for (uint32_t i = 0; i < m->p.n; i++)
		for (uint32_t k = m->p.first[i]; k < m->p.first[i + 1]; k++) {
			const struct rs_price *p =
				&m->price[(size_t)i * RS_PRICES + (size_t)m->p.arcs[k].option];

			most = p->forward > p->backward ? p->forward : p->backward;
			event = most > event ? most : event;
			scratch = p->scratch > scratch ? p->scratch : scratch;
			m->p.arcs[k].w = 0;
		}
	if (m->c->usage.outside_bytes > event)
		event = m->c->usage.outside_bytes;
	for (uint32_t i = 0; i < m->p.n; i++)
		m->p.cap[i] = (int64_t)m->limit - (int64_t)(event + scratch + GRANULE);
}

/* --- solving ------------------------------------------------------------------------------------ */

static int solve(struct maker *m, struct rs_solve_result *ret)
{
	const struct rs_solve_options options = {
		.gap = m->wish->gap, .tie = m->wish->tie, .limit_ns = m->wish->limit_ns};
	int r = rs_solve(&m->p, &options, ret);

	if (!r && ret->status != RS_SOLVE_INFEASIBLE)
		evaluate(m, ret->arc);
	return r;
}

/* *s has been solved and is over: try lower caps. 0 and *s, which may be infeasible now. */
static int fit(struct maker *m, struct rs_solve_result *s, uint64_t *spent)
{
	int r = 0;

	for (int round = 0; !r && round <= ROUNDS; round++) {
		if (s->status != RS_SOLVE_INFEASIBLE && !m->over)
			return 0;
		if (s->status == RS_SOLVE_INFEASIBLE || round == ROUNDS)
			break;
		lower_caps(m);
		rs_solve_free(s);
		r = solve(m, s);
		*spent += s->ns;
	}
	if (r)
		return r;
	sum_caps(m);
	rs_solve_free(s);
	r = solve(m, s);
	*spent += s->ns;
	return r;
}

/* --- telling ------------------------------------------------------------------------------------ */

static void say_infeasible(const struct maker *m, uint32_t segment, uint64_t missing,
			   const char *how, struct rs_planned *ret)
{
	const struct rs_cost *s = segment < m->c->n ? &m->c->segment[segment] : NULL;

	ret->status = RS_SOLVE_INFEASIBLE;
	ret->segment = s ? segment : 0;
	ret->missing = missing;
	ret->head.flags = RS_PLAN_INFEASIBLE;
	ret->head.budget = m->wish->budget;
	ret->head.fingerprint = rs_costs_fingerprint(m->c);
	if (s)
		snprintf(ret->why, sizeof(ret->why), "%.60s#%" PRIu64 ": %s", s->segment,
			 s->invocation, how);
	else
		snprintf(ret->why, sizeof(ret->why), "%s", how);
}

static void say_no_plan(const struct maker *m, const struct rs_solve_result *s,
			struct rs_planned *ret)
{
	char how[128];

	if (s->excess == INT64_MAX)
		snprintf(how, sizeof(how), "none of its options can be taken");
	else
		snprintf(how, sizeof(how),
			 "whatever is done with it and those before it, %" PRId64
			 " bytes are missing",
			 s->excess);
	say_infeasible(m, s->segment, s->excess == INT64_MAX ? 0 : (uint64_t)s->excess, how, ret);
}

static int say_plan(const struct maker *m, const struct rs_solve_result *s, int64_t bound,
		    struct rs_planned *ret)
{
	ret->entry = calloc(m->p.n, sizeof(*ret->entry));
	if (!ret->entry)
		return -ENOMEM;
	ret->head = (struct rs_plan_head){.fingerprint = rs_costs_fingerprint(m->c),
					  .budget = m->wish->budget,
					  .arena = m->arena,
					  .peak = m->peak,
					  .time = s->cost.time,
					  .bound = bound,
					  .n = m->p.n};
	for (uint32_t i = 0; i < m->p.n; i++)
		ret->entry[i] =
			(struct rs_plan_entry){.name = rs_plan_name(m->c->segment[i].segment),
					       .invocation = (uint32_t)m->c->segment[i].invocation,
					       .option = m->chosen[i]->option,
					       .restore = m->chosen[i]->restore,
					       .order = (uint16_t)i,
					       .forward = m->forward[i],
					       .backward = m->backward[i]};
	ret->status = s->best > bound ? RS_SOLVE_FEASIBLE : RS_SOLVE_OPTIMAL;
	ret->gap = s->best > bound ? (double)(s->best - bound) / (double)s->best : 0;
	return 0;
}

static int make(struct maker *m, struct rs_planned *ret)
{
	struct rs_solve_result s;
	int64_t bound;
	int r = solve(m, &s);

	if (r)
		return r;
	ret->solve_ns = s.ns;
	if (s.status == RS_SOLVE_INFEASIBLE) {
		say_no_plan(m, &s, ret);
		return 0;
	}
	bound = s.bound;
	r = fit(m, &s, &ret->solve_ns);
	if (!r && (s.status == RS_SOLVE_INFEASIBLE || m->over))
		say_infeasible(
			m, s.segment, m->over,
			"no plan was found that has room for the tool's memory all through a step",
			ret);
	else if (!r)
		r = say_plan(m, &s, bound, ret);
	rs_solve_free(&s);
	return r;
}

/* --- the front ---------------------------------------------------------------------------------- */

static int begin(struct maker *m, struct rs_planned *ret)
{
	uint64_t guard = rs_wish_guard(m->wish);
	struct rs_problem_error error;
	uint32_t at = 0;
	int r = rs_sharing_build(m->c, m->wish->unshared, &m->sharing);

	m->limit = rs_less(m->wish->budget, guard);
	if (!r)
		r = rs_costs_build(m->c, m->wish, &m->sharing, &m->p, &m->price, &at);
	if (r == -ENODATA) {
		say_infeasible(m, at, 0, "none of the options that are allowed is possible for it",
			       ret);
		return -ENODATA;
	}
	if (r)
		return r;
	m->chosen = calloc(m->p.n, sizeof(*m->chosen));
	m->forward = calloc(2 * (size_t)m->p.n, sizeof(*m->forward));
	if (!m->chosen || !m->forward)
		return -ENOMEM;
	m->backward = m->forward + m->p.n;
	return rs_problem_check(&m->p, &error);
}

int rs_plan_make(const struct rs_costs *c, const struct rs_wish *wish, struct rs_planned *ret)
{
	struct maker m = {.c = c, .wish = wish};
	const char *why;
	int r;

	memset(ret, 0, sizeof(*ret));
	if (wish->budget > RS_MOST_BYTES ||
	    (wish->guard != UINT64_MAX && wish->guard > RS_MOST_BYTES))
		return -EINVAL;
	if (!rs_costs_ready(c, &why))
		return -EAGAIN;
	r = begin(&m, ret);
	if (!r && c->usage.outside_bytes > m.limit)
		say_infeasible(&m, UINT32_MAX, c->usage.outside_bytes - m.limit,
			       "the program alone has more in use outside of its segments", ret);
	else if (!r)
		r = make(&m, ret);
	rs_sharing_free(&m.sharing);
	rs_problem_free(&m.p);
	free(m.price);
	free(m.chosen);
	free(m.forward);
	return r == -ENODATA ? 0 : r;
}

void rs_planned_free(struct rs_planned *p)
{
	free(p->entry);
	p->entry = NULL;
}
