/* SPDX-License-Identifier: MIT */
/*
 * What of a problem can matter: limits, infeasibility, dominance. See solve_priv.h.
 *
 * Holding fewer bytes is never worse later, so the least that can be held at each boundary decides
 * feasibility: no search is needed for it, and where it fails the numbers are the proof.
 */
#include "planner/solve_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int prep_alloc(struct rs_prep *prep, uint32_t n, uint32_t modes, size_t steps)
{
	size_t states = ((size_t)n + 1) * modes;

	memset(prep, 0, sizeof(*prep));
	prep->n = n;
	prep->modes = modes;
	prep->first = calloc((size_t)n + 1, sizeof(*prep->first));
	prep->step = malloc((steps ? steps : 1) * sizeof(*prep->step));
	prep->least = malloc(states * sizeof(*prep->least));
	prep->most = malloc(states * sizeof(*prep->most));
	if (prep->first && prep->step && prep->least && prep->most)
		return 0;
	rs_prep_free(prep);
	return -ENOMEM;
}

void rs_prep_free(struct rs_prep *prep)
{
	free(prep->first);
	free(prep->step);
	free(prep->least);
	free(prep->most);
	memset(prep, 0, sizeof(*prep));
}

/* prep->step is all steps at first, each with lim = cap - m - w. */
static int forward(struct rs_prep *prep)
{
	uint32_t modes = prep->modes;

	for (size_t k = 0; k < ((size_t)prep->n + 1) * modes; k++)
		prep->least[k] = RS_LOTS;
	prep->least[0] = 0;
	for (uint32_t i = 0; i < prep->n; i++) {
		int64_t *here = &prep->least[(size_t)i * modes], *next = here + modes;
		int64_t excess = INT64_MAX, held = RS_LOTS;
		int reached = 0;

		for (uint32_t j = 0; j < modes; j++)
			held = here[j] < held ? here[j] : held;
		for (uint32_t k = prep->first[i]; k < prep->first[i + 1]; k++) {
			const struct rs_step *a = &prep->step[k];

			if (here[a->from] == RS_LOTS)
				continue;
			if (here[a->from] - a->lim < excess)
				excess = here[a->from] - a->lim;
			if (here[a->from] > a->lim)
				continue;
			reached = 1;
			if (here[a->from] + a->m < next[a->to])
				next[a->to] = here[a->from] + a->m;
		}
		if (!reached) {
			prep->segment = i;
			prep->held = held;
			prep->excess = excess;
			return -ENODATA;
		}
	}
	return 0;
}

static void backward(struct rs_prep *prep)
{
	uint32_t modes = prep->modes;
	int64_t top = 0;

	for (uint32_t k = prep->first[prep->n - 1]; k < prep->first[prep->n]; k++)
		if (prep->step[k].lim + prep->step[k].m > top)
			top = prep->step[k].lim + prep->step[k].m;
	for (uint32_t j = 0; j < modes; j++)
		prep->most[(size_t)prep->n * modes + j] = top;
	for (uint32_t i = prep->n; i-- > 0;) {
		int64_t *here = &prep->most[(size_t)i * modes], *next = here + modes;

		for (uint32_t j = 0; j < modes; j++)
			here[j] = -RS_LOTS;
		for (uint32_t k = prep->first[i]; k < prep->first[i + 1]; k++) {
			struct rs_step *a = &prep->step[k];

			if (next[a->to] - a->m < a->lim)
				a->lim = next[a->to] - a->m;
			if (a->lim > here[a->from])
				here[a->from] = a->lim;
		}
	}
}

static int compare(const void *x, const void *y)
{
	const struct rs_step *a = x, *b = y;

	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	if (a->to != b->to)
		return a->to < b->to ? -1 : 1;
	if (a->m != b->m)
		return a->m < b->m ? -1 : 1;
	if (a->t != b->t)
		return a->t < b->t ? -1 : 1;
	if (a->lim != b->lim)
		return a->lim > b->lim ? -1 : 1;
	return a->orig < b->orig ? -1 : a->orig > b->orig;
}

static void sort_steps(struct rs_step *v, uint32_t n)
{
	if (n > 12) {
		qsort(v, n, sizeof(*v), compare);
		return;
	}
	for (uint32_t i = 1; i < n; i++) {
		struct rs_step a = v[i];
		uint32_t j = i;

		for (; j && compare(&a, &v[j - 1]) < 0; j--)
			v[j] = v[j - 1];
		v[j] = a;
	}
}

/* Something before it, from and to the same modes, is as good in all three respects. */
static int dominated(const struct rs_step *a, const struct rs_step *begin,
		     const struct rs_step *end)
{
	/* Few options are usual; with very many, missing a dominated one only costs time. */
	if (end - begin > 64)
		begin = end - 64;
	for (; end-- > begin;) {
		if (end->from != a->from || end->to != a->to)
			return 0;
		if (end->t <= a->t && end->lim >= a->lim)
			return 1;
	}
	return 0;
}

/* Drops the steps that no feasible plan takes, and the dominated ones. */
static void reduce(struct rs_prep *prep)
{
	uint32_t out = 0, begin = 0;

	for (uint32_t i = 0; i < prep->n; i++) {
		const int64_t *least = &prep->least[(size_t)i * prep->modes];
		uint32_t end = prep->first[i + 1], start = out;
		struct rs_step *v = &prep->step[begin];
		uint32_t n = 0;

		for (uint32_t k = begin; k < end; k++)
			if (least[prep->step[k].from] <= prep->step[k].lim)
				v[n++] = prep->step[k];
		sort_steps(v, n);
		prep->first[i] = start;
		for (uint32_t k = 0; k < n; k++)
			if (!dominated(&v[k], &prep->step[start], &prep->step[out]))
				prep->step[out++] = v[k];
		begin = end;
	}
	prep->first[prep->n] = out;
}

/* So that no sum of times, scaled, has more than 60 bits. */
static void set_scale(struct rs_prep *prep)
{
	int64_t sum = 1;

	for (uint32_t i = 0; i < prep->n; i++) {
		int64_t max = 0;

		for (uint32_t k = prep->first[i]; k < prep->first[i + 1]; k++)
			max = prep->step[k].t > max ? prep->step[k].t : max;
		sum += max;
	}
	prep->scale = 1;
	while (prep->scale < INT64_C(1) << 32 && sum <= RS_PROBLEM_SUM / prep->scale / 2)
		prep->scale *= 2;
}

static int finish(struct rs_prep *prep)
{
	int r = forward(prep);

	if (r)
		return r;
	backward(prep);
	reduce(prep);
	set_scale(prep);
	return 0;
}

int rs_prep_build(struct rs_prep *prep, const struct rs_problem *p, int64_t less)
{
	int r = prep_alloc(prep, p->n, p->modes, p->first[p->n]);

	if (r)
		return r;
	memcpy(prep->first, p->first, ((size_t)p->n + 1) * sizeof(*p->first));
	for (uint32_t i = 0; i < p->n; i++)
		for (uint32_t k = p->first[i]; k < p->first[i + 1]; k++) {
			const struct rs_arc *a = &p->arcs[k];

			prep->step[k] = (struct rs_step){.m = a->m,
							 .t = a->t,
							 .lim = p->cap[i] - less - a->m - a->w,
							 .segment = i,
							 .orig = k - p->first[i],
							 .from = a->from,
							 .to = a->to};
		}
	return finish(prep);
}

int rs_prep_single(struct rs_prep *prep, const struct rs_prep *from,
		   int (*keep)(const struct rs_step *step, void *ctx), void *ctx)
{
	int r = prep_alloc(prep, from->n, 1, from->first[from->n]);
	uint32_t out = 0;

	if (r)
		return r;
	for (uint32_t i = 0; i < from->n; i++) {
		for (uint32_t k = from->first[i]; k < from->first[i + 1]; k++)
			if (keep(&from->step[k], ctx)) {
				prep->step[out] = from->step[k];
				prep->step[out].from = prep->step[out].to = 0;
				out++;
			}
		prep->first[i + 1] = out;
	}
	return finish(prep);
}
