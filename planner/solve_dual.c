/* SPDX-License-Identifier: MIT */
/*
 * Prices of bytes, and the bound they prove. See solve_priv.h.
 *
 * At boundary i a byte held costs price[i]. Being over a step's limit is not forbidden but priced by
 * price[i] - price[i + 1] >= 0, holding more than the tail tolerates by price[at]. The cheapest plan
 * is then a shortest path over modes, and no feasible plan costs less. One price for all boundaries
 * is found exactly (the bound is concave in it); several by subgradient.
 */
#include "planner/solve_priv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIDE_MAX ((rs_wide)INT64_MAX << 62)

int rs_dual_alloc(struct rs_dual *d, const struct rs_prep *prep)
{
	size_t states = ((size_t)prep->n + 1) * prep->modes;

	memset(d, 0, sizeof(*d));
	d->at = prep->n;
	d->price = calloc((size_t)prep->n + 1, sizeof(*d->price));
	d->value = malloc(states * sizeof(*d->value));
	d->next = malloc(states * sizeof(*d->next));
	if (d->price && d->value && d->next)
		return 0;
	rs_dual_free(d);
	return -ENOMEM;
}

void rs_dual_free(struct rs_dual *d)
{
	free(d->price);
	free(d->value);
	free(d->next);
	memset(d, 0, sizeof(*d));
}

/* A plan of the priced problem: its time, and by how many bytes it breaks the one limit priced. */
struct line {
	int64_t c, d;
};

/* weight * c + price * d, ties to the fewer bytes. */
static inline rs_wide cost_of(rs_wide c, rs_wide d, int64_t weight, int64_t price)
{
	return c * weight + d * price;
}

static struct line cheapest_label(const struct rs_list *hull, int64_t weight, int64_t price,
				  rs_wide *ret_cost)
{
	struct line best = {0, 0};
	rs_wide least = WIDE_MAX;

	for (uint32_t i = 0; i < hull->n; i++) {
		const struct rs_label *v = &hull->v[i];
		rs_wide cost = (rs_wide)v->c * weight + (rs_wide)v->p * price;

		if (cost < least) {
			least = cost;
			best = (struct line){v->c, v->p};
		}
	}
	*ret_cost = least;
	return best;
}

/* With one mode nothing links the segments but the price. */
static struct line single_mode(const struct rs_prep *prep, const struct rs_tail *tail,
			       int64_t weight, int64_t price)
{
	rs_wide least;
	struct line sum = cheapest_label(&tail->hull[0], weight, price, &least);

	for (uint32_t i = 0; i < tail->at; i++) {
		const struct rs_step *a = &prep->step[prep->first[i]];
		const struct rs_step *end = &prep->step[prep->first[i + 1]], *best = a;

		/* Ascending in m: of equal ones the first is kept. */
		least = (rs_wide)a->t * weight + (rs_wide)a->m * price;
		for (a++; a < end; a++) {
			rs_wide cost = (rs_wide)a->t * weight + (rs_wide)a->m * price;

			if (cost < least) {
				least = cost;
				best = a;
			}
		}
		sum.c += best->t;
		sum.d += best->m;
	}
	return sum;
}

struct state {
	rs_wide cost;
	struct line line;
};

static struct line many_modes(const struct rs_prep *prep, const struct rs_tail *tail,
			      int64_t weight, int64_t price)
{
	struct state from[RS_PROBLEM_MODES], to[RS_PROBLEM_MODES];

	for (uint32_t j = 0; j < prep->modes; j++)
		to[j].line = cheapest_label(&tail->hull[j], weight, price, &to[j].cost);
	for (uint32_t i = tail->at; i-- > 0;) {
		for (uint32_t j = 0; j < prep->modes; j++)
			from[j] = (struct state){.cost = WIDE_MAX};
		for (uint32_t k = prep->first[i]; k < prep->first[i + 1]; k++) {
			const struct rs_step *a = &prep->step[k];
			const struct state *t = &to[a->to];
			rs_wide cost;

			if (t->cost == WIDE_MAX)
				continue;
			cost = t->cost + (rs_wide)a->t * weight + (rs_wide)a->m * price;
			if (cost < from[a->from].cost)
				from[a->from] =
					(struct state){cost, {t->line.c + a->t, t->line.d + a->m}};
		}
		memcpy(to, from, prep->modes * sizeof(*to));
	}
	if (to[0].cost == WIDE_MAX)
		return (struct line){RS_LOTS, RS_LOTS};
	return to[0].line;
}

static struct line cheapest(const struct rs_prep *prep, const struct rs_tail *tail, int64_t weight,
			    int64_t price)
{
	return prep->modes == 1 ? single_mode(prep, tail, weight, price)
				: many_modes(prep, tail, weight, price);
}

static int64_t crossing(const struct line *over, const struct line *under, int64_t scale)
{
	rs_wide price = (rs_wide)(under->c - over->c) * scale / ((rs_wide)over->d - under->d);

	/* Only with options a few bytes apart; a lower price is a bound as well. */
	return price > RS_PROBLEM_SUM ? RS_PROBLEM_SUM : (int64_t)price;
}

/*
 * The bound is the least over plans of c + price * d: from a plan that breaks the limit and one that
 * keeps it, the price at which they cost the same, until no plan is cheaper there.
 */
static int64_t best_price(const struct rs_prep *prep, const struct rs_tail *tail)
{
	struct line over = cheapest(prep, tail, prep->scale, 0), under, line;
	int64_t price = 0;

	if (over.d <= 0)
		return 0;
	under = cheapest(prep, tail, 0, 1);
	if (under.d > 0)
		return 0;
	for (int round = 0; round < 200; round++) {
		price = crossing(&over, &under, prep->scale);
		line = cheapest(prep, tail, prep->scale, price);
		if (cost_of(line.c, line.d, prep->scale, price) >=
		    cost_of(over.c, over.d, prep->scale, price))
			break;
		if (line.d > 0)
			over = line;
		else
			under = line;
	}
	return price;
}

static rs_wide step_cost(const struct rs_dual *d, const struct rs_prep *prep,
			 const struct rs_step *a)
{
	int64_t after = d->price[a->segment + 1], fall = d->price[a->segment] - after;

	return (rs_wide)a->t * prep->scale + (rs_wide)a->m * after - (rs_wide)a->lim * fall;
}

void rs_dual_values(struct rs_dual *d, const struct rs_prep *prep, const struct rs_tail *tail)
{
	uint32_t modes = prep->modes;
	struct line line;

	d->at = tail->at;
	for (uint32_t j = 0; j < modes; j++)
		cheapest_label(&tail->hull[j], prep->scale, d->price[tail->at],
			       &d->value[(size_t)tail->at * modes + j]);
	for (uint32_t i = tail->at; i-- > 0;) {
		rs_wide *here = &d->value[(size_t)i * modes], *to = here + modes;

		for (uint32_t j = 0; j < modes; j++)
			here[j] = WIDE_MAX;
		for (uint32_t k = prep->first[i]; k < prep->first[i + 1]; k++) {
			const struct rs_step *a = &prep->step[k];
			rs_wide cost;

			if (to[a->to] == WIDE_MAX)
				continue;
			cost = step_cost(d, prep, a) + to[a->to];
			if (cost < here[a->from]) {
				here[a->from] = cost;
				d->next[(size_t)i * modes + a->from] = k;
			}
		}
	}
	d->bound = d->value[0];
	d->cost = d->over = RS_LOTS;
	if (d->bound == WIDE_MAX)
		return;
	line = (struct line){0, 0};
	for (uint32_t i = 0, mode = 0; i <= tail->at; i++) {
		const struct rs_step *a = &prep->step[d->next[(size_t)i * modes + mode]];

		if (i == tail->at) {
			rs_wide cost;
			struct line end =
				cheapest_label(&tail->hull[mode], prep->scale, d->price[i], &cost);

			line.c += end.c;
			line.d += end.d;
			break;
		}
		line.c += a->t;
		line.d += a->m;
		mode = a->to;
	}
	d->cost = line.c;
	d->over = line.d;
}

void rs_dual_single(struct rs_dual *d, const struct rs_prep *prep, const struct rs_tail *tail)
{
	int64_t price = best_price(prep, tail);

	for (uint32_t i = 0; i <= prep->n; i++)
		d->price[i] = price;
	rs_dual_values(d, prep, tail);
}

/* How far the cheapest priced plan is over each limit; returns the squared length of that vector. */
static double violation(const struct rs_dual *d, const struct rs_prep *prep, const double *fall,
			double *over)
{
	double length = 0;
	int64_t held = 0;

	for (uint32_t i = 0, mode = 0; i <= d->at; i++) {
		const struct rs_step *a;

		if (i == d->at) {
			over[i] = d->over;
		} else {
			a = &prep->step[d->next[(size_t)i * prep->modes + mode]];
			over[i] = held - a->lim;
			held += a->m;
			mode = a->to;
		}
		/* Where a price is 0 already and would fall, there is nowhere to go. */
		if (fall[i] <= 0 && over[i] < 0)
			over[i] = 0;
		length += over[i] * over[i];
	}
	return length;
}

static void set_prices(struct rs_dual *d, const double *fall)
{
	double sum = 0;

	for (uint32_t i = d->at + 1; i-- > 0;) {
		sum += fall[i];
		d->price[i] = sum < 0x1p59 ? (int64_t)sum : RS_PROBLEM_SUM;
	}
}

int rs_dual_ascend(struct rs_search *s, struct rs_dual *d, const struct rs_prep *prep,
		   const struct rs_tail *tail, int64_t target)
{
	uint32_t n = tail->at + 1, since = 0;
	double *fall = calloc(n, sizeof(*fall)), *over = malloc(n * sizeof(*over)), factor = 1;
	int64_t *best = malloc(((size_t)prep->n + 1) * sizeof(*best));
	rs_wide bound = d->bound;

	if (!fall || !over || !best) {
		free(fall);
		free(over);
		free(best);
		return -ENOMEM;
	}
	memcpy(best, d->price, ((size_t)prep->n + 1) * sizeof(*best));
	fall[tail->at] = d->price[tail->at];
	for (int round = 0; round < 300 && factor > 1e-3 && !rs_search_over(s); round++) {
		double length = violation(d, prep, fall, over), step;

		if (length <= 0)
			break;
		step = factor * (double)((rs_wide)target * prep->scale - d->bound) / length;
		if (step <= 0)
			break;
		for (uint32_t i = 0; i < n; i++)
			fall[i] = fmax(0, fall[i] + step * over[i]);
		set_prices(d, fall);
		rs_dual_values(d, prep, tail);
		if (d->bound > bound) {
			bound = d->bound;
			memcpy(best, d->price, ((size_t)prep->n + 1) * sizeof(*best));
			since = 0;
		} else if (++since % 8 == 0) {
			factor /= 2;
		}
	}
	memcpy(d->price, best, ((size_t)prep->n + 1) * sizeof(*best));
	rs_dual_values(d, prep, tail);
	free(fall);
	free(over);
	free(best);
	return 0;
}

uint64_t rs_dual_loss(const struct rs_dual *d, const struct rs_prep *prep, const struct rs_step *a)
{
	const rs_wide *value = &d->value[(size_t)a->segment * prep->modes];
	rs_wide to = value[prep->modes + a->to], loss;

	if (to == WIDE_MAX)
		return RS_LOSS;
	loss = step_cost(d, prep, a) + to - value[a->from];
	return loss < (rs_wide)RS_LOSS ? (uint64_t)loss : RS_LOSS;
}
