/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: the reader of planner instances, and on what it accepts, the solver with few labels.
 * Its plan must hold, and the LP must come out. Large instances are only read.
 */
#include <stdio.h>
#include <stdlib.h>

#include "planner/instance_json.h"
#include "planner/lpwrite.h"
#include "planner/solve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
	if (!condition)
		abort();
}

static void solve(const struct rs_problem *p, const struct rs_solve_options *options)
{
	struct rs_problem_error error;
	struct rs_plan_cost cost;
	struct rs_solve_result s;

	must(!rs_solve(p, options, &s));
	if (s.status == RS_SOLVE_INFEASIBLE) {
		must(s.segment < p->n && s.excess > 0);
	} else {
		must(!rs_plan_check(p, s.arc, &cost, &error));
		must(cost.time == s.cost.time && s.bound <= s.best && s.best <= cost.time);
	}
	rs_solve_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rs_solve_options options = {.tie = -1, .max_labels = 5000};
	struct rs_problem_error error;
	struct rs_problem p;
	char *text = NULL;
	size_t n = 0;
	FILE *out;

	if (rs_instance_parse(&p, (const char *)data, size, &error))
		return 0;
	if (p.n <= 200 && p.first[p.n] <= 2000) {
		solve(&p, &options);
		options.timeline = 1;
		options.tie = 0.01;
		solve(&p, &options);
	}
	out = open_memstream(&text, &n);
	rs_lp_write(out, &p);
	must(!ferror(out));
	fclose(out);
	free(text);
	rs_problem_free(&p);
	return 0;
}
