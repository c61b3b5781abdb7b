/* SPDX-License-Identifier: MIT */
/*
 * Two modes of which the second, once entered, is kept (a log that starts and runs to the end): the
 * start is tried at every segment, each time with one mode, the most promising first.
 *
 * The priced bound of both modes together mixes plans of different starts and is far from what one
 * start can do; the bounds by start are not, and few starts survive the first plans.
 */
#include "planner/solve_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct candidate {
	uint32_t start; /* n: never */
	rs_wide bound;
};

static int kept(const struct rs_step *a, void *ctx)
{
	uint32_t start = *(uint32_t *)ctx;

	if (a->segment == start)
		return a->from == 0 && a->to == 1;
	return a->segment < start ? a->from == 0 && a->to == 0 : a->from == 1 && a->to == 1;
}

static int applies(const struct rs_prep *prep)
{
	if (prep->modes != 2)
		return 0;
	for (uint32_t k = 0; k < prep->first[prep->n]; k++)
		if (prep->step[k].from == 1 && prep->step[k].to == 0)
			return 0;
	return 1;
}

static int better(const void *x, const void *y)
{
	const struct candidate *a = x, *b = y;

	if (a->bound != b->bound)
		return a->bound < b->bound ? -1 : 1;
	return a->start < b->start ? -1 : 1;
}

/* Bounds of all starts at the one price that is best for all together. */
static uint32_t bounds(const struct rs_prep *prep, const struct rs_dual *d, struct candidate *c)
{
	int64_t price = d->price[0];
	rs_wide before = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < prep->n; i++) {
		rs_wide stay = 0, enter = 0;
		int stays = 0, enters = 0;

		for (uint32_t k = prep->first[i]; k < prep->first[i + 1]; k++) {
			const struct rs_step *a = &prep->step[k];
			rs_wide cost = (rs_wide)a->t * prep->scale + (rs_wide)a->m * price;

			if (a->from == 0 && a->to == 0) {
				stay = !stays || cost < stay ? cost : stay;
				stays = 1;
			} else if (a->from == 0 && a->to == 1) {
				enter = !enters || cost < enter ? cost : enter;
				enters = 1;
			}
		}
		if (enters)
			c[n++] = (struct candidate){i, before + enter +
							       d->value[((size_t)i + 1) * 2 + 1]};
		if (!stays)
			return n;
		before += stay;
	}
	c[n++] = (struct candidate){prep->n, before + d->value[(size_t)prep->n * 2]};
	return n;
}

static int try_start(struct rs_search *s, const struct rs_prep *prep, struct candidate *c,
		     int64_t *bound)
{
	struct rs_prep one;
	int64_t proven = s->best;
	int r = rs_prep_single(&one, prep, kept, &c->start);

	if (!r)
		r = rs_solve_one(s, &one, &proven);
	if (!r || r == -ENODATA)
		*bound = proven < *bound ? proven : *bound;
	if (r != -ENOMEM)
		rs_prep_free(&one);
	return r == -ENODATA ? 0 : r;
}

static int all_starts(struct rs_search *s, const struct rs_prep *prep, struct candidate *c,
		      uint32_t n, int64_t *bound)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < n; i++) {
		rs_wide least = c[i].bound > 0 ? (c[i].bound - 1) / prep->scale + 1 : 0;

		if (least >= s->best)
			break;
		if (rs_search_over(s)) {
			/* The rest are no better than this one may be. */
			*bound = (int64_t)least < *bound ? (int64_t)least : *bound;
			break;
		}
		r = try_start(s, prep, &c[i], bound);
	}
	return r;
}

int rs_solve_starts(struct rs_search *s, const struct rs_prep *prep, int64_t *ret_bound)
{
	struct candidate *c;
	struct rs_tail tail;
	struct rs_dual d;
	int64_t bound = INT64_MAX;
	uint32_t n;
	int r;

	if (!applies(prep))
		return -ENOTSUP;
	c = malloc(((size_t)prep->n + 1) * sizeof(*c));
	r = c ? rs_dual_alloc(&d, prep) : -ENOMEM;
	if (r) {
		free(c);
		return r;
	}
	r = rs_tail_init(&tail, prep);
	if (!r) {
		rs_dual_single(&d, prep, &tail);
		n = bounds(prep, &d, c);
		qsort(c, n, sizeof(*c), better);
		r = all_starts(s, prep, c, n, &bound);
		*ret_bound = bound < s->best ? bound : s->best;
	}
	rs_tail_free(&tail);
	rs_dual_free(&d);
	free(c);
	return r;
}
