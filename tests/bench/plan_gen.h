/* SPDX-License-Identifier: MIT */
/*
 * Realistic planning problems from a seed, for bench and tests: heterogeneous segments with the
 * options and the costs that planner/README.md describes, and a budget between the least peak that
 * any plan has and the peak with everything retained. 40% of the segments have no hazard.
 */
#ifndef RS_TESTS_BENCH_PLAN_GEN_H
#define RS_TESTS_BENCH_PLAN_GEN_H

#include <math.h>

#include "planner/problem.h"
#include "tests/unit/plan_rig.h"

enum gen_option { GEN_RETAIN, GEN_COPY, GEN_SWAP, GEN_ROWS, GEN_PAGES, GEN_OPTIONS };

/* Bytes, ns, bytes per ns. */
struct gen_segment {
	double activation, input, scratch, forward;
	double buffer, written, row; /* buffer 0: no hazard */
};

static inline double gen_real(struct rig_random *r, double low, double high)
{
	return low + (high - low) * (double)(rig_next(r) >> 11) * 0x1p-53;
}

static inline double gen_one_of(struct rig_random *r, const double *v, int n)
{
	return v[rig_int(r, 0, n - 1)];
}

static inline struct gen_segment gen_draw(struct rig_random *r, double mean)
{
	static const double forward[] = {1.75, 1.75, 2.9, 2.9, 5.2, 5.2};
	static const double buffer[] = {0.1, 0.3, 1, 1.5}, row[] = {256, 512, 1024, 4096};
	static const double written[] = {0.001, 0.01, 0.05, 0.2, 0.6};
	struct gen_segment s = {.activation = mean * gen_real(r, 0.44, 1.82)};

	s.input = s.scratch = s.activation / 17;
	s.forward = s.activation * 1e-3 * gen_one_of(r, forward, 6) * gen_real(r, 0.97, 1.06) + 3e4;
	if (rig_int(r, 0, 9) >= 4)
		s.buffer = s.activation * gen_one_of(r, buffer, 4) * gen_real(r, 0.9, 1.1);
	s.written = gen_one_of(r, written, 5);
	s.row = gen_one_of(r, row, 4);
	return s;
}

static inline void gen_set(struct rs_arc *a, enum gen_option option, double m, double w, double t)
{
	*a = (struct rs_arc){.option = option, .m = (int64_t)m, .w = (int64_t)w, .t = (int64_t)t};
}

/* Returns the number of arcs. 3.35 TB/s, 0.9 of it for copies, 0.6 for gathers, 6 us a launch. */
static inline uint32_t gen_options(const struct gen_segment *s, struct rs_arc *a)
{
	const double copy = 0.9 * 3350, gather = 0.6 * 3350, digest = 0.9 * 3350, launch = 6000;
	double b = s->buffer, w = s->activation + s->scratch, rows, row, pages;

	gen_set(&a[0], GEN_RETAIN, s->activation, s->scratch, 0);
	if (b <= 0) {
		gen_set(&a[1], GEN_COPY, s->input, w, s->forward);
		return 2;
	}
	rows = s->written * b / s->row;
	row = s->row + 16;
	pages = b * (1 - pow(1 - s->written, 65536 / s->row));
	gen_set(&a[1], GEN_COPY, s->input + b, w + b,
		s->forward + 8 * b / copy + 2 * b / digest + 4 * launch);
	gen_set(&a[2], GEN_SWAP, s->input + b, w,
		s->forward + 10 * b / copy + 2 * b / digest + 4 * launch);
	gen_set(&a[3], GEN_ROWS, s->input + rows * row, w + rows * row,
		s->forward + 8 * rows * s->row / gather + 2 * rows * s->row / digest + 6 * launch);
	gen_set(&a[4], GEN_PAGES, s->input + pages, w + pages,
		s->forward + 8 * pages / copy + 2 * pages / digest + 4 * launch);
	return 5;
}

/* Peak of the plan that takes in each segment the arc of least m; or with the first of each. */
static inline int64_t gen_peak(const struct rs_problem *p, int least)
{
	int64_t held = 0, peak = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		const struct rs_arc *best = &p->arcs[p->first[i]];

		for (uint32_t k = p->first[i]; least && k < p->first[i + 1]; k++)
			if (p->arcs[k].m < best->m)
				best = &p->arcs[k];
		held += best->m;
		peak = held + best->w > peak ? held + best->w : peak;
	}
	return peak;
}

static inline void gen_caps(struct rs_problem *p, double fraction)
{
	int64_t low = gen_peak(p, 1), high = gen_peak(p, 0);

	for (uint32_t i = 0; i < p->n; i++)
		p->cap[i] = low + (int64_t)(fraction * (double)(high - low));
}

/* `same`: all segments are like the first. */
static inline int gen_problem(struct rs_problem *p, uint32_t n, uint64_t seed, double fraction,
			      int same)
{
	struct rig_random r = {seed};
	struct gen_segment s;
	uint32_t out = 0;

	if (rs_problem_alloc(p, n, 1, n * GEN_OPTIONS))
		return -1;
	for (uint32_t i = 0; i < n; i++) {
		if (!i || !same)
			s = gen_draw(&r, 67 * 0x1p30 / n);
		out += gen_options(&s, &p->arcs[out]);
		p->first[i + 1] = out;
	}
	gen_caps(p, fraction);
	return 0;
}

#endif
