/* SPDX-License-Identifier: MIT */
/*
 * See plan.h.
 *
 * Invariants: `given` is what the engine was given last, `force` what it obeys: they differ while a plan waits for its
 * first step and after it was refused. Every plan is told of once when it was decided on, and never twice.
 * No locks here.
 */
#include "shim/plan.h"

#include "shim/log.h"
#include "shim/shim.h"
#include "tracker/contract.h"
#include "tracker/planfile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct known {
	struct rs_plan_head head; /* generation 0: none */
	const char *source;
	uint64_t options[RS_OPTIONS];
	uint64_t steps, measured; /* in force: how long, and the most bytes of a step */
	int exceeded;		  /* that it took more than its budget has been told */
};

/* Words for machines; rs_plan_state_names[] is for people. */
static const char *const words[] = {
	[RS_PLAN_NONE] = "none",
	[RS_PLAN_WAITING] = "waiting",
	[RS_PLAN_DRY] = "dry",
	[RS_PLAN_IN_FORCE] = "in-force",
	[RS_PLAN_REFUSED_PEAK] = "refused-peak",
	[RS_PLAN_REFUSED_MEMORY] = "refused-memory",
	[RS_PLAN_REFUSED_SEGMENTS] = "refused-segments",
	[RS_PLAN_REFUSED_FORM] = "refused-form",
};

static struct known given, force;
static uint32_t state;	   /* of `given`, as told last */
static uint64_t last_step; /* that was followed */
static int obeyed;	   /* `given` is in force */
static int drop;	   /* nothing fits: no plan from given.head.from_step on */

static struct rs_plan_head file_head;
static struct rs_plan_entry *file_entries; /* until it is handed over */

/* --- telling ------------------------------------------------------------------------------------ */

static void line(const struct known *k, const char *word, uint64_t step, const char *text,
		 const struct rs_plan_status *at)
{
	struct rs_json j;

	if (!rs_state.records)
		return;
	rs_json_begin(&j);
	rs_json_str(&j, "t", "plan");
	rs_json_u64(&j, "step", step);
	rs_json_str(&j, "state", word);
	rs_json_str(&j, "source", k->source ? k->source : "");
	rs_json_u64(&j, "generation", k->head.generation);
	rs_json_u64(&j, "budget", k->head.budget);
	rs_json_u64(&j, "arena", k->head.arena);
	rs_json_u64(&j, "predicted", k->head.peak);
	rs_json_u64(&j, "measured", k->measured);
	rs_json_u64(&j, "steps", k->steps);
	rs_json_u64(&j, "time_ns", k->head.time > 0 ? (uint64_t)k->head.time : 0);
	rs_json_u64(&j, "bound_ns", k->head.bound > 0 ? (uint64_t)k->head.bound : 0);
	rs_json_u64(&j, "segments", k->head.n);
	rs_json_open(&j, "options", '{');
	for (unsigned i = 0; i < RS_OPTIONS; i++)
		if (k->options[i])
			rs_json_u64(&j, rs_option_names[i], k->options[i]);
	rs_json_close(&j, '}');
	if (at && at->measured > at->predicted) {
		if (at->order != UINT32_MAX)
			rs_json_u64(&j, "at_segment", at->order);
		rs_json_u64(&j, "at_predicted", at->predicted);
		rs_json_u64(&j, "at_measured", at->measured);
	}
	if (text)
		rs_json_str(&j, "text", text);
	rs_records_write(rs_state.records, RS_RECORD_EVENTS, &j);
}

static void finding(const char *code, uint64_t step, const char *text)
{
	struct rs_json j;

	if (!rs_state.records)
		return;
	rs_json_begin(&j);
	rs_json_str(&j, "t", "finding");
	rs_json_str(&j, "code", code);
	rs_json_str(&j, "sev", "warning");
	rs_json_str(&j, "segment", "");
	rs_json_u64(&j, "step", step);
	rs_json_str(&j, "text", text);
	rs_records_write(rs_state.records, RS_RECORD_EVENTS, &j);
}

static void refused(uint64_t step, uint32_t why, const char *text, const struct rs_plan_status *at)
{
	int fits_not = why == RS_PLAN_REFUSED_PEAK || why == RS_PLAN_REFUSED_MEMORY;

	rs_log(RS_LOG_WARN, "plan %lu of %s: %s; %s", (unsigned long)given.head.generation,
	       given.source, text,
	       force.head.generation ? "the one before stays in force"
				     : "the run goes on without a plan");
	line(&given, words[why], step, text, at);
	finding(fits_not ? "RS070" : "RS071", step, text);
}

/* --- handing over -------------------------------------------------------------------------------- */

static void remember(const struct rs_plan_head *head, const struct rs_plan_entry *entries,
		     const char *source)
{
	memset(&given, 0, sizeof(given));
	obeyed = 0;
	given.head = *head;
	given.source = source;
	for (uint32_t i = 0; i < head->n; i++)
		if (entries[i].option < RS_OPTIONS)
			given.options[entries[i].option]++;
}

/* What was obeyed was made for another budget; processes that share it leave it in the same step. */
static void drop_when_due(struct rs_queue q, uint64_t step)
{
	if (!drop || step + 1 < given.head.from_step)
		return;
	drop = 0;
	rs_engine_plan(rs_state.engine, q, NULL, NULL);
	memset(&force, 0, sizeof(force));
}

static void infeasible(struct rs_queue q, uint64_t step)
{
	char text[160];

	snprintf(text, sizeof(text), "there is no plan within %" PRIu64 " bytes",
		 given.head.budget);
	rs_log(RS_LOG_WARN, "%s; the run goes on without one", text);
	line(&given, "infeasible", step, text, NULL);
	finding("RS070", step, text);
	drop = 1;
	drop_when_due(q, step);
}

static void hand_over(struct rs_queue q, uint64_t step, const struct rs_plan_head *head,
		      const struct rs_plan_entry *entries, const char *source)
{
	int r;

	remember(head, entries, source);
	state = RS_PLAN_NONE;
	drop = 0;
	if (head->flags & RS_PLAN_INFEASIBLE) {
		infeasible(q, step);
		return;
	}
	r = rs_engine_plan(rs_state.engine, q, head, entries);
	if (!r) {
		state = RS_PLAN_WAITING;
		return;
	}
	state = RS_PLAN_REFUSED_FORM;
	refused(step, state, r == -EINVAL ? "it is malformed" : strerror(-r), NULL);
}

void rs_plan_give(struct rs_queue q, uint64_t step, const struct rs_plan_head *head,
		  const struct rs_plan_entry *entries)
{
	hand_over(q, step, head, entries, "planner");
}

void rs_plan_withdraw(struct rs_queue q, uint64_t step)
{
	if (!force.head.generation && !given.head.generation)
		return;
	rs_engine_plan(rs_state.engine, q, NULL, NULL);
	rs_log(RS_LOG_INFO, "the planner asks to go on without a plan");
	line(force.head.generation ? &force : &given, words[RS_PLAN_NONE], step, "withdrawn", NULL);
	memset(&given, 0, sizeof(given));
	memset(&force, 0, sizeof(force));
	state = RS_PLAN_NONE;
	drop = 0;
}

int rs_plan_load(const char *path)
{
	struct rs_jdoc_error e = {0};
	char text[512];
	int r = rs_planfile_load(path, &file_head, &file_entries, &e);

	if (!r)
		return 1;
	if (e.line)
		snprintf(text, sizeof(text), "%s:%u:%u: %s%s%s", path, e.line, e.column, e.field,
			 e.field[0] ? " " : "", e.text);
	else
		snprintf(text, sizeof(text), "%s: %s", path, e.text[0] ? e.text : strerror(-r));
	rs_log(RS_LOG_ERROR, "%s; the run goes on without a plan", text);
	given.source = path;
	line(&given, words[RS_PLAN_REFUSED_FORM], 0, text, NULL);
	finding("RS071", 0, text);
	return 0;
}

void rs_plan_before(struct rs_queue q, uint64_t step)
{
	if (!file_entries)
		return;
	hand_over(q, step, &file_head, file_entries, rs_state.opt.plan);
	free(file_entries);
	file_entries = NULL;
}

/* --- what became of it --------------------------------------------------------------------------- */

static void why_refused(const struct rs_plan_status *s, char *text, size_t size)
{
	char where[32] = "outside of all segments";

	if (s->order != UINT32_MAX)
		snprintf(where, sizeof(where), "in segment %u", s->order);
	if (s->state == RS_PLAN_REFUSED_PEAK)
		snprintf(text, size, "%" PRIu64 " bytes were in use %s, %" PRIu64 " were predicted",
			 s->measured, where, s->predicted);
	else if (s->state == RS_PLAN_REFUSED_MEMORY)
		snprintf(text, size, "the device has no %" PRIu64 " bytes for what it keeps",
			 given.head.arena);
	else if (s->state == RS_PLAN_REFUSED_SEGMENTS)
		snprintf(text, size, "it was made for other segments than those of this run");
	else
		snprintf(text, size, "it is malformed");
}

static void decided(const struct rs_plan_status *s, uint64_t step)
{
	char text[200];

	if (s->state == RS_PLAN_IN_FORCE) {
		force = given;
		obeyed = 1;
		rs_log(RS_LOG_INFO, "plan %lu of %s is in force: %lu bytes predicted, budget %lu",
		       (unsigned long)force.head.generation, force.source,
		       (unsigned long)force.head.peak, (unsigned long)force.head.budget);
		force.measured = s->measured;
		line(&force, words[s->state], step, NULL, NULL);
	} else if (s->state >= RS_PLAN_REFUSED_PEAK && s->state <= RS_PLAN_REFUSED_FORM) {
		if (obeyed)
			memset(&force, 0, sizeof(force));
		obeyed = 0;
		why_refused(s, text, sizeof(text));
		refused(step, s->state, text, s);
	}
}

static void watch(uint64_t step, const struct rs_cost_usage *usage)
{
	uint64_t bytes = usage->peak_bytes + usage->arena_bytes;
	char text[160];

	force.steps++;
	if (bytes > force.measured)
		force.measured = bytes;
	if (!force.head.budget || bytes <= force.head.budget || force.exceeded)
		return;
	force.exceeded = 1;
	snprintf(text, sizeof(text), "%" PRIu64 " bytes in use under a plan for %" PRIu64, bytes,
		 force.head.budget);
	rs_log(RS_LOG_WARN, "%s", text);
	finding("RS070", step, text);
}

void rs_plan_status(struct rs_plan_status *ret)
{
	rs_engine_plan_status(rs_state.engine, ret);
	if (ret->generation != given.head.generation || given.head.flags & RS_PLAN_INFEASIBLE)
		*ret = (struct rs_plan_status){.generation = given.head.generation,
					       .state = drop ? RS_PLAN_WAITING : RS_PLAN_NONE};
}

void rs_plan_follow(struct rs_queue q, uint64_t step, const struct rs_cost_usage *usage)
{
	struct rs_plan_status s;

	last_step = step;
	drop_when_due(q, step);
	if (force.head.generation && state != RS_PLAN_DRY)
		watch(step, usage);
	if (state == RS_PLAN_NONE)
		return;
	rs_engine_plan_status(rs_state.engine, &s);
	if (s.generation != given.head.generation || s.state == state)
		return;
	state = s.state;
	decided(&s, step);
}

void rs_plan_finish(void)
{
	if (force.head.generation)
		line(&force, words[RS_PLAN_IN_FORCE], last_step, NULL, NULL);
}
