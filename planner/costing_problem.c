/* SPDX-License-Identifier: MIT */
/*
 * Costs and a wish as a planning problem (problem.h). Both events of a segment become one cap: with base the bytes in use at
 * its backward, cap = budget - guard - base, and
 *
 *   w = max(most at the backward - base, most at the forward - base, and for the last one: at the turn - base)
 *
 * because what is held at the two is the same: what the segments up to this one hold. Modes are the sharing's bits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "planner/costing_priv.h"

uint64_t rs_wish_guard(const struct rs_wish *wish)
{
	const uint64_t most = UINT64_C(256) << 20;
	uint64_t part = wish->budget / 100, fixed = wish->budget / 64;

	if (wish->guard != UINT64_MAX)
		return wish->guard;
	fixed = fixed < most ? fixed : most;
	return part > fixed ? part : fixed;
}

static int is_allowed(const struct rs_wish *wish, const struct rs_cost *s, const struct rs_price *p)
{
	uint32_t bit = RS_ALLOW(p->option, p->restore);

	if (wish->only && wish->only - 1 == s->order)
		return !!(wish->only_allow & bit);
	return rs_costs_is_forced(s) || wish->allow & bit;
}

struct builder {
	const struct rs_costs *c;
	const struct rs_sharing *sharing;
	struct rs_problem *p;
	uint32_t out, room;
	uint8_t here[RS_PROBLEM_MODES], next[RS_PROBLEM_MODES]; /* modes that are reached */
	const struct rs_shared *mine[8];			/* the segment's, one of each bit */
	uint32_t nmine;
};

static void find_mine(struct builder *b, uint32_t i)
{
	b->nmine = 0;
	for (uint32_t k = 0; k < b->sharing->n; k++)
		if (rs_sharing_has(&b->sharing->v[k], i))
			b->mine[b->nmine++] = &b->sharing->v[k];
}

static int add_arc(struct builder *b, const struct rs_arc *arc)
{
	if (b->out == b->room) {
		struct rs_arc *v = realloc(b->p->arcs, 2 * (size_t)b->room * sizeof(*v));

		if (!v)
			return -ENOMEM;
		b->p->arcs = v;
		b->room *= 2;
	}
	b->p->arcs[b->out++] = *arc;
	b->next[arc->to] = 1;
	return 0;
}

/* The option in each mode that is reached: shares that nobody has paid for yet are paid now. */
static int add_option(struct builder *b, uint32_t i, uint32_t number, const struct rs_price *p,
		      int64_t w)
{
	int r = 0;

	for (uint32_t mode = 0; !r && mode < b->p->modes; mode++) {
		uint64_t held = p->program + p->tool, time = p->time;
		struct rs_arc arc = {.from = mode, .option = number, .w = w};
		uint32_t to = mode;

		if (!b->here[mode])
			continue;
		for (uint32_t k = 0; k < b->nmine; k++) {
			const struct rs_shared *s = b->mine[k];

			if (rs_price_preserves(p)) {
				if (!(mode & 1u << s->bit)) {
					held += rs_blocks(s->bytes, s->pieces);
					time += rs_costs_saving(b->c, (enum rs_option)p->option,
								s->bytes, s->pieces);
				}
				to |= 1u << s->bit;
			}
			if (s->order[s->n - 1] == i)
				to &= ~(1u << s->bit);
		}
		arc.to = to;
		arc.m = (int64_t)held;
		arc.t = (int64_t)(time < RS_MOST_PRICE ? time : RS_MOST_PRICE);
		r = add_arc(b, &arc);
	}
	return r;
}

static int64_t transient(const struct rs_costs *c, uint32_t i, const struct rs_events *e,
			 const struct rs_price *p)
{
	uint64_t most = p->backward + p->scratch;

	most = p->forward > most ? p->forward : most;
	if (i + 1 == c->n && c->usage.turn_bytes > most)
		most = c->usage.turn_bytes;
	return (int64_t)rs_less(most, e->base);
}

static int add_segment(struct builder *b, const struct rs_wish *wish, uint32_t i,
		       struct rs_price *price)
{
	const struct rs_cost *s = &b->c->segment[i];
	const struct rs_common *common = b->sharing->common ? &b->sharing->common[i] : NULL;
	unsigned n = rs_costs_prices(b->c, i, common, price);
	struct rs_events e;
	int r = 0;

	rs_costs_events(b->c, i, &e);
	b->p->cap[i] = (int64_t)wish->budget - (int64_t)rs_wish_guard(wish) - (int64_t)e.base;
	memset(b->next, 0, sizeof(b->next));
	find_mine(b, i);
	for (unsigned k = 0; !r && k < n; k++)
		if (is_allowed(wish, s, &price[k]))
			r = add_option(b, i, k, &price[k], transient(b->c, i, &e, &price[k]));
	memcpy(b->here, b->next, sizeof(b->here));
	b->p->first[i + 1] = b->out;
	return r ? r : b->p->first[i] < b->out ? 0 : -ENODATA;
}

int rs_costs_build(const struct rs_costs *c, const struct rs_wish *wish,
		   const struct rs_sharing *sharing, struct rs_problem *ret,
		   struct rs_price **ret_price, uint32_t *ret_segment)
{
	struct builder b = {.c = c, .sharing = sharing, .p = ret, .room = 8 * c->n};
	struct rs_price *price = calloc((size_t)c->n * RS_PRICES, sizeof(*price));
	int r = price ? rs_problem_alloc(ret, c->n, 1u << sharing->bits, b.room) : -ENOMEM;

	b.here[0] = 1;
	for (uint32_t i = 0; !r && i < c->n; i++) {
		r = add_segment(&b, wish, i, &price[(size_t)i * RS_PRICES]);
		*ret_segment = i;
	}
	if (r) {
		if (price)
			rs_problem_free(ret);
		free(price);
		return r;
	}
	*ret_price = price;
	return 0;
}

int rs_costs_problem(const struct rs_costs *c, const struct rs_wish *wish, struct rs_problem *ret)
{
	struct rs_problem_error error;
	struct rs_sharing sharing;
	struct rs_price *price;
	const char *why;
	uint32_t at;
	int r;

	if (!rs_costs_ready(c, &why) || wish->budget > RS_MOST_BYTES)
		return -EINVAL;
	r = rs_sharing_build(c, wish->unshared, &sharing);
	if (r)
		return r;
	r = rs_costs_build(c, wish, &sharing, ret, &price, &at);
	rs_sharing_free(&sharing);
	if (r)
		return r == -ENODATA ? -EINVAL : r;
	for (uint32_t i = 0; i < ret->n; i++)
		for (uint32_t k = ret->first[i]; k < ret->first[i + 1]; k++) {
			const struct rs_price *p =
				&price[(size_t)i * RS_PRICES + (size_t)ret->arcs[k].option];

			ret->arcs[k].option = p->option * RS_RESTORES + p->restore;
		}
	free(price);
	if (rs_problem_check(ret, &error)) {
		rs_problem_free(ret);
		return -EINVAL;
	}
	return 0;
}
