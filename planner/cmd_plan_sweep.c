/* SPDX-License-Identifier: MIT */
/* replayctl plan DATA --sweep (a plan for each of many budgets) and --explain (a segment's options). See cmd_plan.c. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "planner/cmd_plan.h"
#include "planner/ctl.h"
#include "planner/fmt.h"
#include "tracker/contract.h"

/* --- many budgets --------------------------------------------------------------------------------- */

static const uint8_t columns[] = {RS_OPTION_RETAIN, RS_OPTION_FREE, RS_OPTION_UNDO,
				  RS_OPTION_REGIONS, RS_OPTION_WHOLE};
#define COLUMNS (sizeof(columns))

static void count(const struct rs_costs *c, const struct rs_planned *p, unsigned n[RS_OPTIONS])
{
	memset(n, 0, RS_OPTIONS * sizeof(*n));
	for (uint32_t i = 0; i < p->head.n; i++)
		if (c->segment[i].flags & RS_COST_REPLAYED)
			n[p->entry[i].option]++;
}

static json_t *point_json(const struct rs_costs *c, const struct rs_planned *p, uint64_t budget)
{
	json_t *o = json_pack("{s:I, s:s}", "budget", (json_int_t)budget, "status",
			      rs_solve_status_names[p->status]);
	unsigned n[RS_OPTIONS];

	if (p->status == RS_SOLVE_INFEASIBLE) {
		json_object_set_new(o, "missing", json_integer((json_int_t)p->missing));
		json_object_set_new(o, "reason", json_string(p->why));
		return o;
	}
	json_object_set_new(o, "time", json_integer(p->head.time));
	json_object_set_new(o, "bound", json_integer(p->head.bound));
	json_object_set_new(o, "peak", json_integer((json_int_t)p->head.peak));
	json_object_set_new(o, "arena", json_integer((json_int_t)p->head.arena));
	count(c, p, n);
	for (size_t k = 0; k < COLUMNS; k++)
		json_object_set_new(o, rs_option_names[columns[k]], json_integer(n[columns[k]]));
	return o;
}

static void print_point(const struct rs_costs *c, const struct rs_planned *p, uint64_t budget)
{
	struct rs_fmt a, b, d;
	unsigned n[RS_OPTIONS];

	printf("%12s", rs_fmt_bytes(&a, budget));
	if (p->status == RS_SOLVE_INFEASIBLE) {
		printf("  infeasible: %s\n", p->why);
		return;
	}
	printf("%12s%12s%12s", rs_fmt_ns(&a, (uint64_t)p->head.time),
	       rs_fmt_bytes(&b, p->head.peak), rs_fmt_bytes(&d, p->head.arena));
	count(c, p, n);
	for (size_t k = 0; k < COLUMNS; k++)
		printf("%9u", n[columns[k]]);
	printf("%10.2g\n", p->gap);
}

int rs_plan_sweep(const struct rs_plan_args *args, const struct rs_costs *c)
{
	json_t *all = json_array();
	struct rs_wish wish = args->wish;
	int status = 0, any = 0;

	if (!args->json) {
		printf("%12s%12s%12s%12s", "budget", "added time", "peak", "arena");
		for (size_t k = 0; k < COLUMNS; k++)
			printf("%9s", rs_option_names[columns[k]]);
		printf("%10s\n", "gap");
	}
	for (unsigned i = 0; !status && i < args->points; i++) {
		unsigned __int128 part =
			(unsigned __int128)(args->high - args->low) * i / (args->points - 1);
		struct rs_planned p;

		wish.budget = args->low + (uint64_t)part;
		status = rs_plan_try(c, &wish, &p);
		if (status)
			break;
		any |= p.status != RS_SOLVE_INFEASIBLE;
		if (args->json)
			json_array_append_new(all, point_json(c, &p, wish.budget));
		else
			print_point(c, &p, wish.budget);
		rs_planned_free(&p);
	}
	if (!status && args->json) {
		json_dumpf(all, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
		putchar('\n');
	}
	json_decref(all);
	return status ? status : any ? RS_EXIT_CLEAN : RS_EXIT_INFEASIBLE;
}

/* --- one segment ---------------------------------------------------------------------------------- */

/* "NAME#N", or NAME alone if there is one of them; RS_PROBLEM_SEGMENTS: a message was given. */
static uint32_t find(const struct rs_costs *c, const char *text)
{
	uint32_t found = RS_PROBLEM_SEGMENTS, named = 0;
	char full[RS_COST_NAME + 24];

	for (uint32_t i = 0; i < c->n; i++) {
		const struct rs_cost *s = &c->segment[i];

		snprintf(full, sizeof(full), "%s#%" PRIu64, s->segment, s->invocation);
		if (!strcmp(full, text))
			return i;
		if (!strcmp(s->segment, text)) {
			found = i;
			named++;
		}
	}
	if (named == 1)
		return found;
	if (named)
		fprintf(stderr, "replayctl plan: there are %u of '%s': name one, as %s#0\n", named,
			text, text);
	else
		fprintf(stderr, "replayctl plan: there is no segment '%s'\n", text);
	return RS_PROBLEM_SEGMENTS;
}

struct choice {
	struct rs_priced price;
	struct rs_planned plan; /* the best with it */
};

static int try_choices(const struct rs_plan_args *args, const struct rs_costs *c, uint32_t i,
		       struct choice *v, unsigned *ret_n)
{
	struct rs_priced price[RS_OPTIONS * RS_RESTORES];
	int status = 0;

	*ret_n = rs_costs_price(c, i, price);
	for (unsigned k = 0; !status && k < *ret_n; k++) {
		struct rs_wish wish = args->wish;

		wish.only = i + 1;
		wish.only_allow = RS_ALLOW(price[k].option, price[k].restore);
		v[k].price = price[k];
		status = rs_plan_try(c, &wish, &v[k].plan);
	}
	return status;
}

static json_t *choice_json(const struct choice *v, int taken)
{
	json_t *o = json_pack(
		"{s:s, s:s, s:I, s:I, s:I, s:b, s:s}", "option", rs_option_names[v->price.option],
		"restore", rs_restore_names[v->price.restore], "held", (json_int_t)v->price.held,
		"transient", (json_int_t)v->price.transient, "time", (json_int_t)v->price.time,
		"taken", taken, "status", rs_solve_status_names[v->plan.status]);

	if (v->plan.status != RS_SOLVE_INFEASIBLE) {
		json_object_set_new(o, "plan_time", json_integer(v->plan.head.time));
		json_object_set_new(o, "plan_peak", json_integer((json_int_t)v->plan.head.peak));
	}
	return o;
}

static void print_choice(const struct choice *v, const struct rs_planned *best, int taken)
{
	struct rs_fmt held, transient, time, more;
	int64_t extra = v->plan.head.time - best->head.time;
	char option[32];

	printf("%s %-14s%12s%12s%12s  ", taken ? "->" : "  ", rs_plan_option(&v->price, option),
	       rs_fmt_bytes(&held, (uint64_t)v->price.held),
	       rs_fmt_bytes(&transient, (uint64_t)v->price.transient),
	       rs_fmt_ns(&time, (uint64_t)v->price.time));
	if (taken)
		puts("taken");
	else if (v->plan.status == RS_SOLVE_INFEASIBLE)
		puts("no plan has room for it");
	else if (extra > 0)
		printf("%s more than the plan\n", rs_fmt_ns(&more, (uint64_t)extra));
	else if (extra < 0)
		printf("%s less, but more memory (--tie)\n", rs_fmt_ns(&more, (uint64_t)-extra));
	else
		puts("no slower");
}

static void print_why(const struct rs_cost *s)
{
	struct rs_fmt a, b, c;

	printf("# %s overwritten before the replay in %" PRIu64 " pieces, of %s read",
	       rs_fmt_bytes(&a, s->kept_bytes), s->kept_pieces, rs_fmt_bytes(&b, s->state_bytes));
	printf("; replay %s +- ", rs_fmt_ns(&c, s->replay.median_ns));
	printf("%s (%" PRIu64 " samples)\n", rs_fmt_ns(&a, s->replay.error_ns), s->replay.n);
	if (!(s->flags & RS_COST_RETAINS))
		puts("# retain: the program does not ask whether to keep its activations");
	if (s->flags & RS_COST_UNSAFE)
		puts("# unsafe: a replay of it was no match");
	if (s->flags & RS_COST_REPLAYED)
		puts("# pages are never planned: to be thinned out, all of a buffer is kept for a moment");
	else
		puts("# it was never replayed");
}

int rs_plan_explain(const struct rs_plan_args *args, const struct rs_costs *c)
{
	struct choice v[RS_OPTIONS * RS_RESTORES] = {0};
	uint32_t i = find(c, args->explain);
	json_t *all = json_array();
	struct rs_planned best;
	unsigned n = 0;
	int status;

	if (i == RS_PROBLEM_SEGMENTS)
		return RS_EXIT_USAGE;
	status = rs_plan_try(c, &args->wish, &best);
	if (status)
		return status;
	if (best.status == RS_SOLVE_INFEASIBLE && !args->json)
		printf("no plan is possible at all: %s\n", best.why);
	status = try_choices(args, c, i, v, &n);
	if (!status && !args->json)
		printf("   %-14s%12s%12s%12s\n", "option", "held", "transient", "time");
	for (unsigned k = 0; !status && k < n; k++) {
		int taken = best.head.n && best.entry[i].option == v[k].price.option &&
			    best.entry[i].restore == v[k].price.restore;

		if (args->json)
			json_array_append_new(all, choice_json(&v[k], taken));
		else
			print_choice(&v[k], &best, taken);
	}
	if (!status && args->json) {
		json_dumpf(all, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
		putchar('\n');
	} else if (!status) {
		print_why(&c->segment[i]);
	}
	for (unsigned k = 0; k < n; k++)
		rs_planned_free(&v[k].plan);
	json_decref(all);
	if (!status && best.status == RS_SOLVE_INFEASIBLE)
		status = RS_EXIT_INFEASIBLE;
	rs_planned_free(&best);
	return status;
}
