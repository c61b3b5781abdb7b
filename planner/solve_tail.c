/* SPDX-License-Identifier: MIT */
/*
 * The end of the timeline, listed from the back: for each mode the bytes that may be held on
 * entering it, against the time the rest then takes. See solve_priv.h.
 */
#include "planner/solve_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int rs_tail_init(struct rs_tail *tail, const struct rs_prep *prep)
{
	memset(tail, 0, sizeof(*tail));
	tail->at = prep->n;
	for (uint32_t j = 0; j < prep->modes; j++) {
		int64_t most = prep->most[(size_t)prep->n * prep->modes + j];

		if (rs_list_push(&tail->list[j], -most, 0, RS_NONE) ||
		    rs_list_hull(&tail->hull[j], &tail->list[j]))
			return -ENOMEM;
	}
	return 0;
}

void rs_tail_free(struct rs_tail *tail)
{
	for (uint32_t j = 0; j < RS_PROBLEM_MODES; j++) {
		rs_list_free(&tail->list[j]);
		rs_list_free(&tail->hull[j]);
	}
}

/* One segment further back, from `list` into `out`. */
static int extend(struct rs_search *s, const struct rs_prep *prep, const struct rs_dual *d,
		  uint64_t g, uint32_t i, struct rs_list *list, struct rs_list *out,
		  struct rs_head *head)
{
	uint32_t k = prep->first[i], end = prep->first[i + 1];

	for (uint32_t mode = 0; mode < prep->modes; mode++) {
		size_t state = (size_t)i * prep->modes + mode;
		struct rs_filter f = {.konst = -d->value[state],
				      .g = g,
				      .price = d->price[i],
				      .pmin = -RS_LOTS,
				      .pmax = -prep->least[state],
				      .scale = prep->scale,
				      .back = 1};
		uint32_t n = 0;
		int r;

		for (; k < end && prep->step[k].from == mode; k++) {
			const struct rs_step *a = &prep->step[k];
			const struct rs_list *from = &list[a->to];

			head[n++] = (struct rs_head){.v = from->v,
						     .end = rs_list_end(from),
						     .m = a->m,
						     .t = a->t,
						     .lim = a->lim,
						     .code = k};
		}
		r = rs_list_expand(s, &out[mode], head, n, &f);
		if (r)
			return r;
	}
	return 0;
}

static uint32_t most_steps(const struct rs_prep *prep, uint32_t begin, uint32_t end)
{
	uint32_t most = 0;

	for (uint32_t i = begin; i < end; i++)
		if (prep->first[i + 1] - prep->first[i] > most)
			most = prep->first[i + 1] - prep->first[i];
	return most;
}

int rs_tail_extend(struct rs_tail *tail, struct rs_search *s, const struct rs_prep *prep,
		   const struct rs_dual *d, uint64_t g, uint32_t at, uint32_t limit)
{
	uint32_t most = most_steps(prep, at, tail->at), total = 0;
	struct rs_head *head = malloc((most ? most : 1) * sizeof(*head));
	struct rs_list out[RS_PROBLEM_MODES];
	int r = head ? 0 : -ENOMEM;

	memset(out, 0, sizeof(out));
	while (!r && tail->at > at && total <= limit && !rs_search_over(s)) {
		r = extend(s, prep, d, g, tail->at - 1, tail->list, out, head);
		if (r)
			break;
		total = 0;
		for (uint32_t j = 0; j < prep->modes; j++) {
			struct rs_list swap = tail->list[j];

			tail->list[j] = out[j];
			out[j] = swap;
			total += tail->list[j].n;
		}
		tail->at--;
	}
	for (uint32_t j = 0; j < prep->modes; j++) {
		rs_list_free(&out[j]);
		if (rs_list_hull(&tail->hull[j], &tail->list[j]))
			r = -ENOMEM;
	}
	free(head);
	if (!r && total > limit)
		r = -E2BIG;
	return r;
}
