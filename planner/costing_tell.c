/* SPDX-License-Identifier: MIT */
/* What options and plans take, for people: --explain, tables, tests. See costing.h. */
#include <errno.h>

#include "planner/costing_priv.h"

static uint64_t max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static struct rs_priced priced(const struct rs_costs *c, uint32_t i, const struct rs_price *p)
{
	struct rs_events e;

	rs_costs_events(c, i, &e);
	return (struct rs_priced){
		.option = p->option,
		.restore = p->restore,
		.held = (int64_t)(p->program + p->tool),
		.transient = (int64_t)rs_less(max64(p->backward + p->scratch, p->forward), e.base),
		.time = (int64_t)p->time};
}

unsigned rs_costs_price(const struct rs_costs *c, uint32_t i, struct rs_priced *ret)
{
	struct rs_price price[RS_PRICES];
	unsigned n = i < c->n ? rs_costs_prices(c, i, NULL, price) : 0;

	for (unsigned k = 0; k < n; k++)
		ret[k] = priced(c, i, &price[k]);
	return n;
}

/* The segment needs these shares: pay for those that nobody has paid for. */
static void pay(const struct rs_costs *c, struct rs_sharing *sharing, uint32_t i,
		struct rs_priced *p)
{
	for (uint32_t k = 0; k < sharing->n; k++) {
		struct rs_shared *s = &sharing->v[k];

		if (!rs_sharing_has(s, i))
			continue;
		if (!s->bytes) {
			p->shared = 1;
			continue;
		}
		p->held += (int64_t)rs_blocks(s->bytes, s->pieces);
		p->time +=
			(int64_t)rs_costs_saving(c, (enum rs_option)p->option, s->bytes, s->pieces);
		s->bytes = 0;
	}
}

int rs_planned_price(const struct rs_costs *c, const struct rs_wish *wish,
		     const struct rs_planned *p, struct rs_priced *ret)
{
	struct rs_price price[RS_PRICES];
	struct rs_sharing sharing;

	if (p->head.n != c->n)
		return -EINVAL;
	if (rs_sharing_build(c, wish->unshared, &sharing))
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n; i++) {
		const struct rs_plan_entry *e = &p->entry[i];
		unsigned n = rs_costs_prices(c, i, sharing.common ? &sharing.common[i] : NULL,
					     price),
			 k = 0;

		while (k + 1 < n &&
		       (price[k].option != e->option || price[k].restore != e->restore))
			k++;
		ret[i] = priced(c, i, &price[k]);
		if (rs_price_preserves(&price[k]))
			pay(c, &sharing, i, &ret[i]);
	}
	rs_sharing_free(&sharing);
	return 0;
}
