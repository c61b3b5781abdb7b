/* SPDX-License-Identifier: MIT */
/*
 * replayctl plan: solve an instance and print the plan as one JSON object, or plan with the costs of a run or a contract.
 * Exit status 0 with a plan, 2 usage, 3 unreadable or no memory, 4 no plan is possible.
 *
 * What is printed of an instance has been checked by rs_plan_check() on the instance as it was read.
 */
#include "planner/cmd_plan.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/costing_json.h"
#include "planner/ctl.h"
#include "planner/instance_json.h"
#include "planner/lpwrite.h"
#include "tracker/contract.h"
#include "tracker/options.h"

#define MOST_POINTS 1000u

/* --- arguments ------------------------------------------------------------------------------------ */

/* A number >= 0, or -1. */
static double number(const char *text)
{
	char *end;
	double x = strtod(text, &end);

	return end != text && !*end && isfinite(x) && x >= 0 ? x : -1;
}

static int take_number(int opt, const char *text, struct rs_wish *wish)
{
	double x = number(text);

	if (opt == 'g' && x >= 0)
		wish->gap = x;
	else if (opt == 't' && x >= 0)
		wish->tie = x;
	else if (opt == 'm' && x > 0 && x < 1e12)
		wish->limit_ns = (uint64_t)(x * 1e6);
	else
		return rs_ctl_usage("plan", RS_EXIT_USAGE, "not usable as a number here: '%s'",
				    text);
	return 0;
}

static int take_size(const char *text, uint64_t *ret)
{
	if (rs_options_size(text, ret) || !*ret)
		return rs_ctl_usage("plan", RS_EXIT_USAGE,
				    "'%s' is no size; 48GiB is one, for example", text);
	return 0;
}

/* "retain,undo:copy,whole" */
static int take_allow(const char *text, uint32_t *ret)
{
	uint32_t allow = 0;

	for (const char *at = text; *at;) {
		size_t n = strcspn(at, ","), name = strcspn(at, ",:");
		uint32_t restores = name == n ? (1u << RS_RESTORES) - 1 : 0, bits = 0;

		for (uint32_t r = 0; r < RS_RESTORES && name < n; r++)
			if (n - name - 1 == strlen(rs_restore_names[r]) &&
			    !strncmp(at + name + 1, rs_restore_names[r], n - name - 1))
				restores = 1u << r;
		for (uint32_t o = 0; o < RS_OPTIONS; o++)
			if (strlen(rs_option_names[o]) == name &&
			    !strncmp(at, rs_option_names[o], name))
				bits = restores << o * RS_RESTORES;
		if (!bits)
			return rs_ctl_usage(
				"plan", RS_EXIT_USAGE,
				"no such option: '%.*s'; retain, free, undo, regions and whole are, or undo:swap, undo:remap",
				(int)n, at);
		allow |= bits;
		at += n + (at[n] == ',');
	}
	*ret = allow;
	return 0;
}

/* "40GiB..72GiB:9" */
static int take_sweep(const char *text, struct rs_plan_args *args)
{
	const char *dots = strstr(text, ".."), *colon = strchr(text, ':');
	char low[32] = "", high[32] = "", *end;
	unsigned long n = colon ? strtoul(colon + 1, &end, 10) : 9;
	size_t len = dots ? (size_t)((colon ? colon : text + strlen(text)) - dots) : 0;

	if (len < 3 || (size_t)(dots - text) >= sizeof(low) || len - 2 >= sizeof(high) ||
	    (colon && (end == colon + 1 || *end)) || n < 2 || n > MOST_POINTS)
		return rs_ctl_usage("plan", RS_EXIT_USAGE,
				    "--sweep is LOW..HIGH or LOW..HIGH:POINTS, as 40GiB..72GiB:9");
	memcpy(low, text, (size_t)(dots - text));
	memcpy(high, dots + 2, len - 2);
	args->points = (unsigned)n;
	if (take_size(low, &args->low) || take_size(high, &args->high))
		return RS_EXIT_USAGE;
	if (args->low >= args->high)
		return rs_ctl_usage("plan", RS_EXIT_USAGE, "--sweep: from the lower to the higher");
	return 0;
}

static int take(int opt, struct rs_plan_args *args)
{
	switch (opt) {
	case 'i':
		args->instance = optarg;
		return 0;
	case 'l':
		args->lp = optarg;
		return 0;
	case 'o':
		args->out = optarg;
		return 0;
	case 'e':
		args->explain = optarg;
		return 0;
	case 'j':
		args->json = 1;
		return 0;
	case 'u':
		args->wish.unshared = 1;
		return 0;
	case 'b':
		args->has_budget = 1;
		return take_size(optarg, &args->wish.budget);
	case 'G':
		if (!strcmp(optarg, "0") || !strcmp(optarg, "none"))
			return (int)(args->wish.guard = 0);
		return take_size(optarg, &args->wish.guard);
	case 'a':
		return take_allow(optarg, &args->wish.allow);
	case 's':
		return take_sweep(optarg, args);
	case '?':
		return rs_ctl_bad_option("plan", RS_EXIT_USAGE);
	default:
		return take_number(opt, optarg, &args->wish);
	}
}

static int consistent(const struct rs_plan_args *args)
{
	int data_only =
		args->out || args->explain || args->json || args->has_budget || args->points;

	if (!args->instance && !args->data)
		return rs_ctl_usage(
			"plan", RS_EXIT_USAGE,
			"for what? (a run's directory or a contract; or --instance FILE)");
	if (args->instance && args->data)
		return rs_ctl_usage("plan", RS_EXIT_USAGE, "no argument '%s'", args->data);
	if (args->instance && data_only)
		return rs_ctl_usage("plan", RS_EXIT_USAGE, "an instance has a budget of its own");
	if (args->data && !args->has_budget && !args->points)
		return rs_ctl_usage("plan", RS_EXIT_USAGE,
				    "for which budget? (--budget 48GiB, or --sweep)");
	if (args->points && (args->has_budget || args->explain || args->out || args->lp))
		return rs_ctl_usage(
			"plan", RS_EXIT_USAGE,
			"--sweep makes a plan for each of many budgets, and keeps none");
	return 0;
}

static int parse(int argc, char **argv, struct rs_plan_args *args)
{
	static const struct option options[] = {{"instance", required_argument, NULL, 'i'},
						{"lp", required_argument, NULL, 'l'},
						{"gap", required_argument, NULL, 'g'},
						{"tie", required_argument, NULL, 't'},
						{"limit", required_argument, NULL, 'm'},
						{"budget", required_argument, NULL, 'b'},
						{"guard", required_argument, NULL, 'G'},
						{"out", required_argument, NULL, 'o'},
						{"allow", required_argument, NULL, 'a'},
						{"explain", required_argument, NULL, 'e'},
						{"sweep", required_argument, NULL, 's'},
						{"json", no_argument, NULL, 'j'},
						{"unshared", no_argument, NULL, 'u'},
						{NULL, 0, NULL, 0}};
	int opt, r;

	*args = (struct rs_plan_args){
		.wish = {.tie = -1, .guard = UINT64_MAX, .allow = RS_ALLOW_ALL}};
	while ((opt = getopt_long(argc, argv, "o:", options, NULL)) >= 0) {
		r = take(opt, args);
		if (r)
			return r;
	}
	args->data = optind < argc ? argv[optind++] : NULL;
	if (optind < argc)
		return rs_ctl_usage("plan", RS_EXIT_USAGE, "no argument '%s'", argv[optind]);
	return consistent(args);
}

/* --- instances ------------------------------------------------------------------------------------ */

int rs_plan_write_lp(const char *path, const struct rs_problem *p)
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

static int plan_instance(const struct rs_plan_args *args)
{
	const struct rs_solve_options options = {
		.gap = args->wish.gap, .tie = args->wish.tie, .limit_ns = args->wish.limit_ns};
	struct rs_problem_error error;
	struct rs_problem p;
	int status = 0, r;

	r = rs_instance_load(&p, args->instance, &error);
	if (r) {
		fprintf(stderr, "replayctl plan: %s: %s\n", args->instance,
			r == -EINVAL ? error.text : strerror(-r));
		return RS_EXIT_UNREADABLE;
	}
	if (args->lp)
		status = rs_plan_write_lp(args->lp, &p);
	if (!status)
		status = solve_and_print(&p, &options);
	rs_problem_free(&p);
	return status;
}

/* --- measured costs ------------------------------------------------------------------------------- */

static int plan_data(const struct rs_plan_args *args)
{
	struct rs_contract_why why = {""};
	const char *lacking;
	struct rs_costs c;
	int r = rs_costs_open("plan", args->data, &c, &why), status;

	if (r) {
		fprintf(stderr, "replayctl plan: %s\n", why.text[0] ? why.text : strerror(-r));
		return RS_EXIT_UNREADABLE;
	}
	if (!rs_costs_ready(&c, &lacking)) {
		fprintf(stderr, "replayctl plan: %s: %s\n", args->data, lacking);
		status = RS_EXIT_UNREADABLE;
	} else {
		status = args->points	 ? rs_plan_sweep(args, &c)
			 : args->explain ? rs_plan_explain(args, &c)
					 : rs_plan_show(args, &c);
	}
	rs_costs_free(&c);
	return status;
}

int rs_cmd_plan(int argc, char **argv)
{
	struct rs_plan_args args;
	int status = parse(argc, argv, &args);

	return status ? status : args.instance ? plan_instance(&args) : plan_data(&args);
}
