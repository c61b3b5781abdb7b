/* SPDX-License-Identifier: MIT */
/*
 * replayctl plan DATA --budget SIZE: a plan as a table for people, as JSON, as a file that REPLAYSHIM_PLAN names. See
 * cmd_plan.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "planner/cmd_plan.h"
#include "planner/ctl.h"
#include "planner/fmt.h"
#include "planner/outfile.h"
#include "tracker/contract.h"
#include "tracker/planfile.h"

int rs_plan_try(const struct rs_costs *c, const struct rs_wish *wish, struct rs_planned *ret)
{
	int r = rs_plan_make(c, wish, ret);

	if (!r)
		return 0;
	fprintf(stderr, "replayctl plan: %s\n",
		r == -EINVAL ? "the costs or the budget are larger than anything that exists"
			     : strerror(-r));
	return RS_EXIT_UNREADABLE;
}

const char *rs_plan_option(const struct rs_priced *p, char text[32])
{
	snprintf(text, 32, "%s%s%s", rs_option_names[p->option],
		 p->restore == RS_RESTORE_COPY ? "" : ", ",
		 p->restore == RS_RESTORE_COPY ? "" : rs_restore_names[p->restore]);
	return text;
}

/* --- JSON ----------------------------------------------------------------------------------------- */

/* The plan file's fields. */
static json_t *plan_json(const struct rs_costs *c, const struct rs_planned *p)
{
	json_t *segments = json_array();
	char print[24];

	for (uint32_t i = 0; i < p->head.n; i++) {
		const struct rs_plan_entry *e = &p->entry[i];

		json_array_append_new(segments, json_pack("{s:s, s:I, s:s, s:s, s:I, s:I}",
							  "segment", c->segment[i].segment,
							  "invocation", (json_int_t)e->invocation,
							  "option", rs_option_names[e->option],
							  "restore", rs_restore_names[e->restore],
							  "forward", (json_int_t)e->forward,
							  "backward", (json_int_t)e->backward));
	}
	snprintf(print, sizeof(print), "0x%016" PRIx64, p->head.fingerprint);
	return json_pack("{s:i, s:s, s:I, s:I, s:I, s:I, s:I, s:o}", "plan_version",
			 RS_PLANFILE_VERSION, "fingerprint", print, "budget",
			 (json_int_t)p->head.budget, "arena", (json_int_t)p->head.arena, "peak",
			 (json_int_t)p->head.peak, "time", (json_int_t)p->head.time, "bound",
			 (json_int_t)p->head.bound, "segments", segments);
}

/* Only what the library's own reader takes. */
static int write_plan(const char *path, const struct rs_costs *c, const struct rs_planned *p)
{
	json_t *o = plan_json(c, p);
	char *text = json_dumps(o, JSON_INDENT(1)), *copy = text ? strdup(text) : NULL;
	struct rs_plan_entry *entries = NULL;
	struct rs_jdoc_error error;
	struct rs_plan_head head;
	int r = copy ? 0 : -ENOMEM;

	if (!r)
		r = rs_planfile_parse(copy, strlen(copy), &head, &entries, &error);
	if (r == -EINVAL)
		fprintf(stderr, "replayctl plan: this plan could not be read back: %s %s\n",
			error.field, error.text);
	if (!r)
		r = rs_outfile_write(path, text, 1);
	if (r)
		fprintf(stderr, "replayctl plan: %s: %s\n", path, strerror(-r));
	free(entries);
	free(copy);
	free(text);
	json_decref(o);
	return r ? RS_EXIT_UNREADABLE : 0;
}

static void print_json(const struct rs_costs *c, const struct rs_wish *wish,
		       const struct rs_planned *p, const struct rs_priced *v)
{
	json_t *o = plan_json(c, p), *e;
	size_t i;

	json_object_set_new(o, "status", json_string(rs_solve_status_names[p->status]));
	json_object_set_new(o, "gap", json_real(p->gap));
	json_object_set_new(o, "guard", json_integer((json_int_t)rs_wish_guard(wish)));
	json_object_set_new(o, "solve_ns", json_integer((json_int_t)p->solve_ns));
	if (p->status == RS_SOLVE_INFEASIBLE) {
		json_object_set_new(o, "missing", json_integer((json_int_t)p->missing));
		json_object_set_new(o, "reason", json_string(p->why));
	}
	json_array_foreach(json_object_get(o, "segments"), i, e)
	{
		json_object_set_new(e, "held", json_integer(v[i].held));
		json_object_set_new(e, "transient", json_integer(v[i].transient));
		json_object_set_new(e, "time", json_integer(v[i].time));
		json_object_set_new(e, "shared", json_boolean(v[i].shared));
	}
	json_dumpf(o, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
	putchar('\n');
	json_decref(o);
}

/* --- text ----------------------------------------------------------------------------------------- */

static void print_name(const struct rs_cost *s, int width)
{
	int n = rs_fmt_text(stdout, s->segment);

	n += printf("#%" PRIu64, s->invocation);
	printf("%*s", n < width ? width - n : 1, "");
}

static int widest(const struct rs_costs *c)
{
	size_t most = 10;

	for (uint32_t i = 0; i < c->n; i++) {
		size_t n = strlen(c->segment[i].segment) + 6;

		most = n > most ? n : most;
	}
	return most < 48 ? (int)most : 48;
}

static void print_table(const struct rs_costs *c, const struct rs_priced *v)
{
	int width = widest(c), any_shared = 0, unsafe = 0, idle = 0;
	struct rs_fmt held, transient, time;
	char option[32];

	printf("  %-*s%-14s%12s%12s%12s\n", width, "segment", "option", "held", "transient",
	       "time");
	for (uint32_t i = 0; i < c->n; i++) {
		const struct rs_cost *s = &c->segment[i];
		int replays = !!(s->flags & RS_COST_REPLAYED);

		fputs("  ", stdout);
		print_name(s, width);
		printf("%-14s%12s%12s%12s%s%s\n", replays ? rs_plan_option(&v[i], option) : "-",
		       rs_fmt_bytes(&held, (uint64_t)v[i].held),
		       rs_fmt_bytes(&transient, (uint64_t)v[i].transient),
		       rs_fmt_ns(&time, (uint64_t)v[i].time), v[i].shared ? " *" : "",
		       s->flags & RS_COST_UNSAFE ? " !" : "");
		any_shared |= v[i].shared;
		unsafe |= !!(s->flags & RS_COST_UNSAFE);
		idle |= !replays;
	}
	if (any_shared)
		puts("  * an earlier segment keeps bytes that this one needs, too");
	if (unsafe)
		puts("  ! a replay of it was no match: it is retained, or replays in any plan if the "
		     "program does not ask");
	if (idle)
		puts("  - it was never replayed: no plan changes anything for it");
}

static void print_sums(const struct rs_wish *wish, const struct rs_planned *p)
{
	struct rs_fmt a, b, c;
	uint64_t guard = rs_wish_guard(wish);

	printf("\npeak    %s of %s", rs_fmt_bytes(&a, p->head.peak),
	       rs_fmt_bytes(&b, p->head.budget));
	printf("; guard %s, %s to spare\n", rs_fmt_bytes(&a, guard),
	       rs_fmt_bytes(&b, p->head.budget - guard - p->head.peak));
	printf("arena   %s, all through the step\n", rs_fmt_bytes(&a, p->head.arena));
	printf("time    %s added to a step; no plan adds less than %s (gap %.2g, %s); planned in %s\n",
	       rs_fmt_ns(&a, (uint64_t)p->head.time), rs_fmt_ns(&b, (uint64_t)p->head.bound),
	       p->gap, rs_solve_status_names[p->status], rs_fmt_ns(&c, p->solve_ns));
}

int rs_plan_show(const struct rs_plan_args *args, const struct rs_costs *c)
{
	struct rs_priced *v = calloc(c->n, sizeof(*v));
	struct rs_planned p;
	int status = v ? rs_plan_try(c, &args->wish, &p) : RS_EXIT_UNREADABLE;
	struct rs_fmt a;

	if (status) {
		free(v);
		return status;
	}
	if (args->lp) {
		struct rs_problem problem;
		int r = rs_costs_problem(c, &args->wish, &problem);

		status = r ? RS_EXIT_UNREADABLE : rs_plan_write_lp(args->lp, &problem);
		if (!r)
			rs_problem_free(&problem);
	}
	if (p.head.n && rs_planned_price(c, &args->wish, &p, v))
		status = RS_EXIT_UNREADABLE;
	if (!status && args->json) {
		print_json(c, &args->wish, &p, v);
	} else if (!status && p.status == RS_SOLVE_INFEASIBLE) {
		printf("no plan is possible within %s: %s\n", rs_fmt_bytes(&a, args->wish.budget),
		       p.why);
	} else if (!status) {
		print_table(c, v);
		print_sums(&args->wish, &p);
	}
	if (!status && p.status == RS_SOLVE_INFEASIBLE)
		status = RS_EXIT_INFEASIBLE;
	else if (!status && args->out)
		status = write_plan(args->out, c, &p);
	rs_planned_free(&p);
	free(v);
	return status;
}
