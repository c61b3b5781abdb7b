/* SPDX-License-Identifier: MIT */
/*
 * Passes that keep the order of the timeline: any number of modes, every limit checked where it is.
 *
 * The front list starts at the first segment, the back list at the tail; the shorter one moves, and
 * where they meet they are joined. See solve_priv.h.
 */
#include "planner/solve_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct rs_line {
	const struct rs_prep *prep;
	const struct rs_dual *dual;
	const struct rs_tail *tail;
	uint64_t *loss; /* of each step before the tail */
	struct rs_histogram losses;
	uint64_t *start; /* [(at + 1) * modes] least loss on the way there */
	struct rs_head *head;
	uint32_t *by_to; /* steps of each segment by (to, number) */
	struct rs_list front[RS_PROBLEM_MODES], back[RS_PROBLEM_MODES], next[RS_PROBLEM_MODES];
};

static void by_exit(struct rs_line *line)
{
	const struct rs_prep *prep = line->prep;
	uint32_t out = 0;

	for (uint32_t i = 0; i < line->tail->at; i++)
		for (uint32_t mode = 0; mode < prep->modes; mode++)
			for (uint32_t k = prep->first[i]; k < prep->first[i + 1]; k++)
				if (prep->step[k].to == mode)
					line->by_to[out++] = k;
}

static void least_losses(struct rs_line *line)
{
	const struct rs_prep *prep = line->prep;
	uint32_t modes = prep->modes;

	for (size_t k = 0; k < ((size_t)line->tail->at + 1) * modes; k++)
		line->start[k] = RS_LOSS;
	line->start[0] = 0;
	for (uint32_t k = 0; k < prep->first[line->tail->at]; k++) {
		const struct rs_step *a = &prep->step[k];
		uint64_t *here = &line->start[(size_t)a->segment * modes];

		line->loss[k] = rs_dual_loss(line->dual, prep, a);
		rs_histogram_add(&line->losses, line->loss[k], 1);
		if (here[a->from] + line->loss[k] < here[modes + a->to])
			here[modes + a->to] = here[a->from] + line->loss[k];
	}
}

int rs_line_create(struct rs_line **ret, const struct rs_prep *prep, const struct rs_dual *d,
		   const struct rs_tail *tail)
{
	struct rs_line *line = calloc(1, sizeof(*line));
	size_t steps = prep->first[tail->at] + 1, most = 1;

	if (!line)
		return -ENOMEM;
	for (uint32_t i = 0; i < tail->at; i++)
		if (prep->first[i + 1] - prep->first[i] > most)
			most = prep->first[i + 1] - prep->first[i];
	line->prep = prep;
	line->dual = d;
	line->tail = tail;
	line->loss = malloc(steps * sizeof(*line->loss));
	line->by_to = malloc(steps * sizeof(*line->by_to));
	line->start = malloc(((size_t)tail->at + 1) * prep->modes * sizeof(*line->start));
	line->head = malloc(most * sizeof(*line->head));
	if (!line->loss || !line->by_to || !line->start || !line->head) {
		rs_line_free(line);
		return -ENOMEM;
	}
	by_exit(line);
	least_losses(line);
	*ret = line;
	return 0;
}

void rs_line_free(struct rs_line *line)
{
	if (!line)
		return;
	for (uint32_t j = 0; j < RS_PROBLEM_MODES; j++) {
		rs_list_free(&line->front[j]);
		rs_list_free(&line->back[j]);
		rs_list_free(&line->next[j]);
	}
	free(line->loss);
	free(line->by_to);
	free(line->start);
	free(line->head);
	free(line);
}

uint64_t rs_line_kth(const struct rs_line *line, uint32_t k)
{
	return rs_histogram_kth(&line->losses, k);
}

/* The step's loss on top of the least loss with which its entry is reached. */
static int in_pass(const struct rs_line *line, uint32_t k, uint64_t g)
{
	const struct rs_step *a = &line->prep->step[k];

	return line->start[(size_t)a->segment * line->prep->modes + a->from] + line->loss[k] <= g;
}

static int move_front(struct rs_line *line, struct rs_search *s, uint32_t i, uint64_t g)
{
	const struct rs_prep *prep = line->prep;
	uint32_t k = prep->first[i], end = prep->first[i + 1];
	const struct rs_dual *d = line->dual;

	for (uint32_t mode = 0; mode < prep->modes; mode++) {
		size_t state = ((size_t)i + 1) * prep->modes + mode;
		struct rs_filter f = {.konst = d->value[state] - d->bound,
				      .g = g,
				      .price = d->price[i + 1],
				      .pmin = -RS_LOTS,
				      .pmax = prep->most[state],
				      .scale = prep->scale};
		uint32_t n = 0;
		int r;

		for (; k < end && prep->step[line->by_to[k]].to == mode; k++) {
			const struct rs_step *a = &prep->step[line->by_to[k]];
			const struct rs_list *from = &line->front[a->from];

			if (in_pass(line, line->by_to[k], g))
				line->head[n++] = (struct rs_head){.v = from->v,
								   .end = rs_list_end(from),
								   .m = a->m,
								   .t = a->t,
								   .lim = a->lim,
								   .code = line->by_to[k]};
		}
		r = rs_list_expand(s, &line->next[mode], line->head, n, &f);
		if (r)
			return r;
	}
	return 0;
}

static int move_back(struct rs_line *line, struct rs_search *s, uint32_t i, uint64_t g)
{
	const struct rs_prep *prep = line->prep;
	uint32_t k = prep->first[i], end = prep->first[i + 1];
	const struct rs_dual *d = line->dual;

	for (uint32_t mode = 0; mode < prep->modes; mode++) {
		size_t state = (size_t)i * prep->modes + mode;
		struct rs_filter f = {.konst = -d->value[state],
				      .price = d->price[i],
				      .pmin = -RS_LOTS,
				      .pmax = -prep->least[state],
				      .scale = prep->scale,
				      .back = 1};
		uint32_t n = 0;
		int r;

		if (line->start[state] <= g)
			f.g = g - line->start[state];
		for (; k < end && prep->step[k].from == mode; k++) {
			const struct rs_step *a = &prep->step[k];
			const struct rs_list *to = &line->back[a->to];

			if (in_pass(line, k, g))
				line->head[n++] = (struct rs_head){.v = to->v,
								   .end = rs_list_end(to),
								   .m = a->m,
								   .t = a->t,
								   .lim = a->lim,
								   .code = k};
		}
		r = rs_list_expand(s, &line->next[mode], line->head, n, &f);
		if (r)
			return r;
	}
	return 0;
}

static uint32_t take_next(struct rs_list *list, struct rs_list *next, uint32_t modes)
{
	uint32_t total = 0;

	for (uint32_t j = 0; j < modes; j++) {
		struct rs_list swap = list[j];

		list[j] = next[j];
		next[j] = swap;
		total += list[j].n;
	}
	return total;
}

/* Both ends as they are before anything moved. Returns the length of the tail. */
static int begin(struct rs_line *line, uint32_t *ret_total)
{
	*ret_total = 0;
	for (uint32_t j = 0; j < line->prep->modes; j++) {
		line->front[j].n = 0;
		if (rs_list_copy(&line->back[j], &line->tail->list[j]))
			return -ENOMEM;
		*ret_total += line->back[j].n;
	}
	return rs_list_push(&line->front[0], 0, 0, RS_NONE);
}

int rs_line_pass(struct rs_line *line, struct rs_search *s, uint64_t g, struct rs_found *found)
{
	uint32_t front = 0, back = line->tail->at, nfront = 1, nback;
	uint32_t modes = line->prep->modes;
	int r = begin(line, &nback);

	*found = (struct rs_found){.c = INT64_MAX};
	while (!r && front < back && nfront && nback) {
		if (rs_search_over(s)) {
			found->cut = 1;
			return 0;
		}
		if (nfront <= nback) {
			r = move_front(line, s, front++, g);
			nfront = r ? 0 : take_next(line->front, line->next, modes);
		} else {
			r = move_back(line, s, --back, g);
			nback = r ? 0 : take_next(line->back, line->next, modes);
		}
	}
	if (r == -E2BIG)
		found->cut = 1;
	else if (!r && front == back)
		for (uint32_t j = 0; j < modes; j++)
			rs_list_join(&line->front[j], &line->back[j], 0, found);
	return r == -E2BIG ? 0 : r;
}

void rs_line_plan(const struct rs_line *line, const struct rs_search *s,
		  const struct rs_found *found, uint32_t *step)
{
	(void)line;
	for (int side = 0; side < 2; side++)
		for (uint32_t k = side ? found->back : found->front; k != RS_NONE;
		     k = s->node[k].up)
			step[line->prep->step[s->node[k].code].segment] = s->node[k].code;
}
