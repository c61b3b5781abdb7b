/* SPDX-License-Identifier: MIT */
/*
 * replayctl plan: solve an instance, print the plan as one JSON object. Exit status 0 with a plan, 2
 * usage, 3 unreadable instance or no memory, 4 no plan is possible.
 *
 * What is printed has been checked by rs_plan_check() on the instance as it was read.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/ctl.h"
#include "planner/instance_json.h"
#include "planner/lpwrite.h"
#include "planner/solve.h"

struct args {
	const char *instance, *lp;
	struct rs_solve_options solve;
};

/* A number >= 0, or -1. */
static double number(const char *text)
{
	char *end;
	double x = strtod(text, &end);

	return end != text && !*end && isfinite(x) && x >= 0 ? x : -1;
}

static int take_number(int opt, const char *text, struct args *args)
{
	double x = number(text);

	if (opt == 'g' && x >= 0)
		args->solve.gap = x;
	else if (opt == 't' && x >= 0)
		args->solve.tie = x;
	else if (opt == 'm' && x > 0 && x < 1e12)
		args->solve.limit_ns = (uint64_t)(x * 1e6);
	else
		return rs_ctl_usage("plan", RS_EXIT_USAGE, "not usable as a number here: '%s'",
				    text);
	return 0;
}

static int parse(int argc, char **argv, struct args *args)
{
	static const struct option options[] = {
		{"instance", required_argument, NULL, 'i'}, {"lp", required_argument, NULL, 'l'},
		{"gap", required_argument, NULL, 'g'},	    {"tie", required_argument, NULL, 't'},
		{"limit", required_argument, NULL, 'm'},    {NULL, 0, NULL, 0}};
	int opt, r;

	*args = (struct args){.solve = {.tie = -1}};
	while ((opt = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		r = 0;
		if (opt == 'i')
			args->instance = optarg;
		else if (opt == 'l')
			args->lp = optarg;
		else if (opt == '?')
			r = rs_ctl_bad_option("plan", RS_EXIT_USAGE);
		else
			r = take_number(opt, optarg, args);
		if (r)
			return r;
	}
	if (optind < argc)
		return rs_ctl_usage("plan", RS_EXIT_USAGE, "no argument '%s'", argv[optind]);
	if (!args->instance)
		return rs_ctl_usage("plan", RS_EXIT_USAGE, "which instance? (--instance FILE)");
	return 0;
}

static int write_lp(const char *path, const struct rs_problem *p)
{
	FILE *out = fopen(path, "w");
	int bad = 1;

	if (out) {
		rs_lp_write(out, p);
		bad = ferror(out);
		bad |= fclose(out);
	}
	if (bad)
		fprintf(stderr, "replayctl plan: %s: %s\n", path, strerror(errno));
	return bad ? RS_EXIT_UNREADABLE : 0;
}

static void print_infeasible(const struct rs_solve_result *s)
{
	printf("{\"status\":\"infeasible\",\"segment\":%u,\"held\":%" PRId64, s->segment, s->held);
	if (s->excess == INT64_MAX)
		printf(",\"reason\":\"segment %u has no option in the modes in which it is "
		       "reached\"",
		       s->segment);
	else
		printf(",\"excess\":%" PRId64 ",\"reason\":\"segment %u: at least %" PRId64
		       " bytes are held "
		       "before it, and every option then exceeds its cap by %" PRId64
		       " bytes or more\"",
		       s->excess, s->segment, s->held, s->excess);
	printf(",\"ms\":%.3f}\n", (double)s->ns / 1e6);
}

static void print_plan(const struct rs_problem *p, const struct rs_solve_result *s)
{
	printf("{\"status\":\"%s\",\"time\":%" PRId64 ",\"best\":%" PRId64 ",\"bound\":%" PRId64
	       ",\"gap\":%.6g,\"peak_turn\":%" PRId64 ",\"peak\":%" PRId64 ",\"slack\":%" PRId64
	       ",\"tightest\":%u,\"choice\":[",
	       rs_solve_status_names[s->status], s->cost.time, s->best, s->bound, s->gap,
	       s->cost.turn, s->cost.peak, s->cost.slack, s->cost.tightest);
	for (uint32_t i = 0; i < p->n; i++)
		printf("%s%" PRId64, i ? "," : "", p->arcs[p->first[i] + s->arc[i]].option);
	printf("],\"ms\":%.3f}\n", (double)s->ns / 1e6);
}

static int solve_and_print(const struct rs_problem *p, const struct rs_solve_options *options)
{
	struct rs_problem_error error;
	struct rs_plan_cost cost;
	struct rs_solve_result s;
	int r = rs_solve(p, options, &s);

	if (r) {
		fprintf(stderr, "replayctl plan: %s\n", strerror(-r));
		return RS_EXIT_UNREADABLE;
	}
	if (s.status == RS_SOLVE_INFEASIBLE) {
		print_infeasible(&s);
		return RS_EXIT_INFEASIBLE;
	}
	r = rs_plan_check(p, s.arc, &cost, &error);
	if (r)
		fprintf(stderr, "replayctl plan: the plan does not hold: %s\n", error.text);
	else
		print_plan(p, &s);
	rs_solve_free(&s);
	return r ? RS_EXIT_UNREADABLE : RS_EXIT_CLEAN;
}

int rs_cmd_plan(int argc, char **argv)
{
	struct rs_problem_error error;
	struct rs_problem p;
	struct args args;
	int status = parse(argc, argv, &args), r;

	if (status)
		return status;
	r = rs_instance_load(&p, args.instance, &error);
	if (r) {
		fprintf(stderr, "replayctl plan: %s: %s\n", args.instance,
			r == -EINVAL ? error.text : strerror(-r));
		return RS_EXIT_UNREADABLE;
	}
	if (args.lp)
		status = write_lp(args.lp, &p);
	if (!status)
		status = solve_and_print(&p, &args.solve);
	rs_problem_free(&p);
	return status;
}
