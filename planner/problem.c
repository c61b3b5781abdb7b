/* SPDX-License-Identifier: MIT */
/* The planning problem: memory and validation. See problem.h. */
#include "planner/problem.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int rs_problem_alloc(struct rs_problem *p, uint32_t n, uint32_t modes, uint32_t arcs)
{
	memset(p, 0, sizeof(*p));
	p->n = n;
	p->modes = modes;
	p->cap = calloc(n ? n : 1, sizeof(*p->cap));
	p->first = calloc((size_t)n + 1, sizeof(*p->first));
	p->arcs = calloc(arcs ? arcs : 1, sizeof(*p->arcs));
	if (p->cap && p->first && p->arcs)
		return 0;
	rs_problem_free(p);
	return -ENOMEM;
}

void rs_problem_free(struct rs_problem *p)
{
	free(p->cap);
	free(p->first);
	free(p->arcs);
	memset(p, 0, sizeof(*p));
}

int rs_problem_bad(struct rs_problem_error *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* The largest value of each kind in one segment; they are what sums are bounded with. */
struct largest {
	int64_t m, w, t;
};

static int check_arc(const struct rs_problem *p, uint32_t segment, uint32_t k, struct largest *max,
		     struct rs_problem_error *e)
{
	const struct rs_arc *a = &p->arcs[p->first[segment] + k];
	const struct {
		const char *name;
		int64_t value, *max;
	} field[3] = {{"m", a->m, &max->m}, {"w", a->w, &max->w}, {"t", a->t, &max->t}};

	if (a->from >= p->modes || a->to >= p->modes)
		return rs_problem_bad(e, "segment %u, arc %u: mode %u, but there are %u", segment,
				      k, a->from >= p->modes ? a->from : a->to, p->modes);
	for (int f = 0; f < 3; f++) {
		if (field[f].value < 0)
			return rs_problem_bad(e, "segment %u, arc %u: %s is negative", segment, k,
					      field[f].name);
		if (field[f].value >= RS_PROBLEM_SUM)
			return rs_problem_bad(e, "segment %u, arc %u: %s is 2^60 or more", segment,
					      k, field[f].name);
		if (field[f].value > *field[f].max)
			*field[f].max = field[f].value;
	}
	return 0;
}

static int check_segment(const struct rs_problem *p, uint32_t i, struct largest *sum,
			 struct rs_problem_error *e)
{
	uint32_t k = p->first[i + 1] - p->first[i];
	struct largest max = {0};
	int r = 0;

	if (p->first[i + 1] < p->first[i] || !k)
		return rs_problem_bad(e, "segment %u: no arcs", i);
	if (k > RS_PROBLEM_ARCS)
		return rs_problem_bad(e, "segment %u: %u arcs, more than %u", i, k,
				      RS_PROBLEM_ARCS);
	if (p->cap[i] <= -RS_PROBLEM_SUM || p->cap[i] >= RS_PROBLEM_SUM)
		return rs_problem_bad(e, "segment %u: cap is beyond 2^60", i);
	for (uint32_t j = 0; !r && j < k; j++)
		r = check_arc(p, i, j, &max, e);
	sum->m += max.m;
	sum->w = max.w > sum->w ? max.w : sum->w;
	sum->t += max.t;
	if (!r && (sum->m + sum->w >= RS_PROBLEM_SUM || sum->t >= RS_PROBLEM_SUM))
		return rs_problem_bad(e, "segment %u: the sums up to here reach 2^60", i);
	return r;
}

int rs_problem_check(const struct rs_problem *p, struct rs_problem_error *error)
{
	struct largest sum = {0};
	int r = 0;

	if (!p->n || p->n > RS_PROBLEM_SEGMENTS)
		return rs_problem_bad(error, "%u segments; 1 to %u are possible", p->n,
				      RS_PROBLEM_SEGMENTS);
	if (!p->modes || p->modes > RS_PROBLEM_MODES)
		return rs_problem_bad(error, "%u modes; 1 to %u are possible", p->modes,
				      RS_PROBLEM_MODES);
	if (p->first[0] || p->first[p->n] > RS_PROBLEM_TOTAL)
		return rs_problem_bad(error, "%u arcs together, more than %u", p->first[p->n],
				      RS_PROBLEM_TOTAL);
	for (uint32_t i = 0; !r && i < p->n; i++)
		r = check_segment(p, i, &sum, error);
	return r;
}
