/* SPDX-License-Identifier: MIT */
/*
 * What the planner's tests share: a random source, random problems, exhaustive search. All from a
 * seed. The search looks at every plan; it shares nothing with the solver.
 */
#ifndef RS_TESTS_UNIT_PLAN_RIG_H
#define RS_TESTS_UNIT_PLAN_RIG_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "planner/solve.h"

struct rig_random {
	uint64_t x;
};

/* splitmix64 */
static inline uint64_t rig_next(struct rig_random *r)
{
	uint64_t z = (r->x += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* low .. high, both included */
static inline int64_t rig_int(struct rig_random *r, int64_t low, int64_t high)
{
	return low + (int64_t)(rig_next(r) % ((uint64_t)(high - low) + 1));
}

struct rig_best {
	int64_t time; /* INT64_MAX: no plan is feasible */
	int64_t peak; /* least among plans within `allowed` */
	int64_t allowed;
	/* first segment that no prefix passes, least held before it, least over its cap there */
	uint32_t segment;
	int64_t held, excess;
};

struct rig_walk {
	const struct rs_problem *p;
	struct rig_best *best;
	int64_t *held, *excess; /* by segment */
	uint32_t deepest;
};

static inline void rig_visit(struct rig_walk *w, uint32_t i, uint32_t mode, int64_t held,
			     int64_t time, int64_t peak)
{
	const struct rs_problem *p = w->p;

	if (i == p->n) {
		if (time < w->best->time)
			w->best->time = time;
		if (time <= w->best->allowed && peak < w->best->peak)
			w->best->peak = peak;
		return;
	}
	w->deepest = i > w->deepest ? i : w->deepest;
	w->held[i] = held < w->held[i] ? held : w->held[i];
	for (uint32_t k = p->first[i]; k < p->first[i + 1]; k++) {
		const struct rs_arc *a = &p->arcs[k];
		int64_t live = held + a->m + a->w;

		if (a->from != mode)
			continue;
		if (live - p->cap[i] < w->excess[i])
			w->excess[i] = live - p->cap[i];
		if (live <= p->cap[i])
			rig_visit(w, i + 1, a->to, held + a->m, time + a->t,
				  live > peak ? live : peak);
	}
}

/* `allowed` for the least peak may be INT64_MIN: not wanted. */
static inline struct rig_best rig_search(const struct rs_problem *p, int64_t allowed)
{
	struct rig_best best = {.time = INT64_MAX, .peak = INT64_MAX, .allowed = allowed};
	int64_t *v = malloc(2 * p->n * sizeof(*v));
	struct rig_walk w = {.p = p, .best = &best, .held = v, .excess = v + p->n};

	for (uint32_t i = 0; i < 2 * p->n; i++)
		v[i] = INT64_MAX;
	rig_visit(&w, 0, 0, 0, 0, INT64_MIN);
	best.segment = w.deepest;
	best.held = w.held[w.deepest];
	best.excess = w.excess[w.deepest];
	free(v);
	return best;
}

struct rig_shape {
	uint32_t n, modes, arcs; /* arcs: most of one segment */
	int64_t bytes, time;	 /* largest m and t; w up to twice the bytes */
	int loose, prefixes, same;
};

static inline void rig_arc(struct rig_random *r, const struct rig_shape *shape, struct rs_arc *a)
{
	a->m = rig_int(r, 0, shape->bytes);
	a->w = rig_int(r, 0, 3) ? rig_int(r, 0, 2 * shape->bytes) : 0;
	/* Mostly what holds less takes longer, as options do. */
	a->t = rig_int(r, 0, 3) ? (int64_t)((__int128)(shape->bytes - a->m) * shape->time /
					    (shape->bytes ? shape->bytes : 1))
				: rig_int(r, 0, shape->time);
}

static inline int rig_problem(struct rig_random *r, const struct rig_shape *shape,
			      struct rs_problem *p)
{
	uint32_t out = 0;
	int64_t sum = 0;

	if (rs_problem_alloc(p, shape->n, shape->modes, shape->n * shape->arcs))
		return -1;
	for (uint32_t i = 0; i < p->n; i++) {
		uint32_t k = (uint32_t)rig_int(r, 1, shape->arcs), begin = out;
		int copy = i && shape->same && rig_int(r, 0, 3);

		for (uint32_t j = 0; j < k; j++) {
			struct rs_arc *a = &p->arcs[out++];

			a->option = (int64_t)j;
			a->from = j < p->modes ? j : (uint32_t)rig_int(r, 0, p->modes - 1);
			a->to = (uint32_t)rig_int(r, shape->same ? a->from : 0, p->modes - 1);
			rig_arc(r, shape, a);
		}
		if (copy) {
			k = p->first[i] - p->first[i - 1];
			memcpy(&p->arcs[begin], &p->arcs[p->first[i - 1]], k * sizeof(*p->arcs));
			out = begin + k;
		}
		p->first[i + 1] = out;
	}
	for (uint32_t i = 0; i < p->n; i++) {
		int64_t part = shape->bytes / 2 + 1;

		sum += part;
		if (shape->prefixes)
			p->cap[i] = rig_int(r, 0, 1) ? sum + rig_int(r, 0, 2 * shape->bytes)
						     : part * p->n + shape->bytes;
		else
			p->cap[i] = (int64_t)(part * p->n * (int64_t)rig_int(r, 1, 4) / 2) +
				    (shape->loose ? 2 * shape->bytes : 0);
	}
	for (uint32_t i = 1; !shape->prefixes && i < p->n; i++)
		p->cap[i] = p->cap[0];
	return 0;
}

#endif
