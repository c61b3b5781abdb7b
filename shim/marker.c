/* SPDX-License-Identifier: MIT */
/*
 * See marker.h, and the exported functions of include/replayshim.h.
 * Callers: the program, any thread. No locks here.
 */
#include "shim/marker.h"
#include "shim/busy.h"
#include "shim/guard.h"
#include "shim/planner.h"
#include "shim/ranges.h"
#include "tracker/name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rs_tls *begin(void)
{
	struct rs_tls *t;

	if (!(__atomic_load_n(&rs_on, __ATOMIC_ACQUIRE) & RS_ON))
		return NULL;
	t = rs_tls_get();
	if (!t || t->depth)
		return NULL;
	t->depth = 1;
	return t;
}

static int end(struct rs_tls *t, int result)
{
	if (rs_state.opt.strict)
		rs_guard_look();
	if (rs_busy_on() || t->window)
		rs_busy_window(t);
	t->depth = 0;
	return result;
}

/* Around a marker that the engine is told of. */
static void before(struct rs_tls *t, const char *text)
{
	if (__atomic_load_n(&rs_planner_seeking, __ATOMIC_RELAXED))
		rs_planner_glance();
	if (rs_planner_on && !strncmp(text, "step:", 5))
		rs_planner_before(t, strtoull(text + 5, NULL, 10));
}

static void after(struct rs_tls *t, const char *text)
{
	rs_report_step(text);
	if (rs_planner_on && !strncmp(text, "step:", 5))
		rs_planner_after(t, strtoull(text + 5, NULL, 10));
}

/* Windows that a range of these contexts ends, innermost first. */
static void shut_until(struct rs_tls *t, uint32_t contexts)
{
	struct rs_ranges *r = t->ranges;

	for (unsigned i = r->n; i-- && r->untils;) {
		const struct rs_range *x = &r->v[i];

		if (!x->window || x->until < 0 || !(contexts >> x->until & 1))
			continue;
		rs_engine_pop_at(rs_state.engine, t->thread, rs_ranges_above(r, i), 0);
		rs_ranges_shut(r, i);
	}
}

/* The program marks a segment of its own within what a built-in rule took for one, which then was none. */
static void forget_builtins(struct rs_tls *t)
{
	struct rs_ranges *r = t->ranges;

	rs_pattern_quiet();
	for (unsigned i = r->n; i-- && r->builtins;) {
		if (!r->v[i].window || !r->v[i].builtin)
			continue;
		rs_engine_pop_at(rs_state.engine, t->thread, rs_ranges_above(r, i), 1);
		rs_ranges_shut(r, i);
	}
}

static int is_window(const struct rs_choice *c)
{
	return c->kind == RS_PATTERN_FORWARD || c->kind == RS_PATTERN_REPLAY;
}

/* "step:" of a rule that counts: the one after the last. */
static const char *counted(struct rs_reading *m)
{
	if (m->choice->count) {
		snprintf(m->buffer, sizeof(m->buffer), "step:%llu",
			 (unsigned long long)rs_report_last_step() + 1);
		m->marker = m->buffer;
	}
	return m->marker;
}

static void step(struct rs_tls *t, struct rs_reading *m)
{
	const char *text = counted(m);

	before(t, text);
	rs_engine_mark(rs_state.engine, t->thread, text);
	after(t, text);
}

static void push(struct rs_tls *t, const struct rs_domain *d, const char *text)
{
	struct rs_ranges *r = t->ranges;
	struct rs_reading m;

	rs_pattern_read(d, text, rs_ranges_contexts(r), &m);
	if (r && r->untils && m.contexts)
		shut_until(t, m.contexts);
	if (m.choice->kind == RS_PATTERN_STEP)
		step(t, &m);
	if (!rs_ranges_room(t))
		return;
	r = t->ranges;
	if (r->builtins && is_window(m.choice) && !m.choice->builtin)
		forget_builtins(t);
	r->v[r->n] = (struct rs_range){.domain = d, .contexts = m.contexts, .until = -1};
	if (is_window(m.choice)) {
		before(t, m.marker);
		rs_engine_push(rs_state.engine, t->thread, m.marker);
		r->v[r->n].window = 1;
		r->v[r->n].until = m.choice->until;
		r->v[r->n].builtin = m.choice->builtin;
		r->untils += m.choice->until >= 0;
		r->builtins += m.choice->builtin;
	}
	r->n++;
	r->tagged += m.contexts != 0;
	if (m.contexts)
		rs_pattern_opened(m.contexts);
}

int rs_marker_push(const struct rs_domain *d, const char *text)
{
	struct rs_tls *t = begin();

	if (!t)
		return -1;
	if (rs_domain_followed(d))
		RS_ENGINE(push(t, d, text ? text : ""));
	return end(t, rs_domain_followed(d) ? 0 : -1);
}

static void pop(struct rs_tls *t, const struct rs_domain *d)
{
	struct rs_ranges *r = t->ranges;
	int i;

	if (!r)
		return;
	if (r->lost) {
		r->lost--;
		return;
	}
	i = rs_ranges_innermost(r, d);
	if (i < 0)
		return;
	if (r->v[i].window)
		rs_engine_pop_at(rs_state.engine, t->thread, rs_ranges_above(r, (unsigned)i), 0);
	rs_ranges_remove(r, (unsigned)i);
}

int rs_marker_pop(const struct rs_domain *d)
{
	struct rs_tls *t = begin();

	if (!t)
		return -1;
	if (rs_domain_followed(d))
		RS_ENGINE(pop(t, d));
	return end(t, rs_domain_followed(d) ? 0 : -1);
}

static void mark(struct rs_tls *t, const struct rs_domain *d, const char *text)
{
	struct rs_reading m;

	rs_pattern_read(d, text, rs_ranges_contexts(t->ranges), &m);
	if (m.choice->kind == RS_PATTERN_STEP)
		step(t, &m);
}

int rs_marker_mark(const struct rs_domain *d, const char *text)
{
	struct rs_tls *t = begin();

	if (!t)
		return -1;
	if (rs_domain_followed(d))
		RS_ENGINE(mark(t, d, text ? text : ""));
	return end(t, rs_domain_followed(d) ? 0 : -1);
}

/*
 * Ranges of the whole process end by their id, in any thread. Those that are no windows get an id of the engine, too, so
 * that no two are the same.
 */
static uint64_t start(struct rs_tls *t, const struct rs_domain *d, const char *text)
{
	struct rs_reading m;
	const char *marker = "";
	uint64_t id;

	rs_pattern_read(d, text, rs_ranges_contexts(t->ranges), &m);
	if (m.choice->kind == RS_PATTERN_STEP)
		step(t, &m);
	if (is_window(m.choice)) {
		marker = m.marker;
		before(t, marker);
	}
	id = rs_engine_range_start(rs_state.engine, t->thread, marker);
	rs_pattern_started(id, m.contexts);
	return id;
}

int rs_marker_start(const struct rs_domain *d, const char *text, uint64_t *ret_id)
{
	struct rs_tls *t = begin();

	if (!t)
		return -1;
	if (rs_domain_followed(d))
		RS_ENGINE(*ret_id = start(t, d, text ? text : ""));
	return end(t, rs_domain_followed(d) ? 0 : -1);
}

int rs_marker_end(uint64_t id)
{
	struct rs_tls *t = begin();

	if (!t)
		return -1;
	RS_ENGINE(rs_pattern_ended(id); rs_engine_range_end(rs_state.engine, t->thread, id));
	return end(t, 0);
}

int rs_marker_region(const struct rs_domain *d, uint64_t addr, uint64_t bytes, const char *name)
{
	char buffer[RS_PATTERN_MARKER];
	struct rs_tls *t = begin();
	int r = 0;

	if (!t)
		return -1;
	if (rs_domain_followed(d))
		RS_ENGINE(name = rs_pattern_region(d, name ? name : "", buffer);
			  r = rs_engine_region(rs_state.engine, addr, bytes, name));
	return end(t, r ? -2 : 0);
}

int rs_marker_region_drop(uint64_t addr, uint64_t bytes)
{
	struct rs_tls *t = begin();

	if (!t)
		return -1;
	RS_ENGINE(rs_engine_region_drop(rs_state.engine, addr, bytes));
	return end(t, 0);
}

int rs_marker_suballoc(uint64_t addr, uint64_t bytes)
{
	struct rs_tls *t = begin();
	int r;

	if (!t)
		return -1;
	RS_ENGINE(r = rs_engine_suballoc(rs_state.engine, addr, bytes));
	return end(t, r ? -2 : 0);
}

int rs_marker_subfree(uint64_t addr)
{
	struct rs_tls *t = begin();
	int r;

	if (!t)
		return -1;
	RS_ENGINE(r = rs_engine_subfree(rs_state.engine, addr));
	return end(t, r ? -2 : 0);
}

/* --- include/replayshim.h ----------------------------------------------------------------------- */

#define API(name, params)                                                                          \
	RS_EXPORT int name params;                                                                 \
	int name params

API(replayshim_active, (void))
{
	return !!(__atomic_load_n(&rs_on, __ATOMIC_RELAXED) & RS_ON);
}

API(replayshim_range_push, (const char *text))
{
	return rs_marker_push(&rs_domain_own, text);
}

API(replayshim_range_pop, (void))
{
	return rs_marker_pop(&rs_domain_own);
}

API(replayshim_step, (long n))
{
	char text[64];

	snprintf(text, sizeof(text), "step:%ld", n);
	return rs_marker_mark(&rs_domain_own, text);
}

static int window(const char *kind, const char *name, long invocation)
{
	char fit[RS_NAME_BYTES], text[RS_NAME_BYTES + 40];

	rs_name_fit(fit, name ? name : "", name ? strlen(name) : 0);
	if (invocation < 0)
		snprintf(text, sizeof(text), "%s:%s", kind, fit);
	else
		snprintf(text, sizeof(text), "%s:%s#%ld", kind, fit, invocation);
	return rs_marker_push(&rs_domain_own, text);
}

API(replayshim_forward_begin, (const char *name, long invocation))
{
	return window("forward", name, invocation);
}

API(replayshim_forward_end, (void))
{
	return rs_marker_pop(&rs_domain_own);
}

API(replayshim_replay_begin, (const char *name, long invocation))
{
	return window("replay", name, invocation);
}

API(replayshim_replay_end, (void))
{
	return rs_marker_pop(&rs_domain_own);
}

API(replayshim_region_name, (unsigned long address, unsigned long bytes, const char *name))
{
	return rs_marker_region(&rs_domain_own, address, bytes, name);
}

API(replayshim_region_drop, (unsigned long address, unsigned long bytes))
{
	return rs_marker_region_drop(address, bytes);
}

API(replayshim_suballoc, (unsigned long address, unsigned long bytes))
{
	return rs_marker_suballoc(address, bytes);
}

API(replayshim_subfree, (unsigned long address))
{
	return rs_marker_subfree(address);
}

API(replayshim_retain, (const char *name, long invocation))
{
	struct rs_tls *t = begin();
	int r = 0;

	if (!t)
		return -1;
	RS_ENGINE(r = rs_engine_retain(rs_state.engine, t->thread, name ? name : "",
				       invocation < 0 ? -1 : invocation));
	return end(t, r > 0);
}
