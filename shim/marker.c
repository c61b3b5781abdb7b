/* SPDX-License-Identifier: MIT */
/*
 * See marker.h, and the exported functions of include/replayshim.h.
 * Callers: the program, any thread. No locks here.
 */
#include "shim/marker.h"
#include "shim/busy.h"
#include "shim/guard.h"
#include "shim/planner.h"

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

int rs_marker_push(const char *text)
{
	struct rs_tls *t = begin();

	if (!t)
		return -1;
	text = text ? text : "";
	RS_ENGINE(before(t, text); rs_engine_push(rs_state.engine, t->thread, text);
		  after(t, text));
	return end(t, 0);
}

int rs_marker_pop(void)
{
	struct rs_tls *t = begin();

	if (!t)
		return -1;
	RS_ENGINE(rs_engine_pop(rs_state.engine, t->thread));
	return end(t, 0);
}

int rs_marker_mark(const char *text)
{
	struct rs_tls *t = begin();

	if (!t)
		return -1;
	text = text ? text : "";
	RS_ENGINE(before(t, text); rs_engine_mark(rs_state.engine, t->thread, text);
		  after(t, text));
	return end(t, 0);
}

int rs_marker_start(const char *text, uint64_t *ret_id)
{
	struct rs_tls *t = begin();

	if (!t)
		return -1;
	text = text ? text : "";
	RS_ENGINE(before(t, text);
		  *ret_id = rs_engine_range_start(rs_state.engine, t->thread, text);
		  after(t, text));
	return end(t, 0);
}

int rs_marker_end(uint64_t id)
{
	struct rs_tls *t = begin();

	if (!t)
		return -1;
	RS_ENGINE(rs_engine_range_end(rs_state.engine, t->thread, id));
	return end(t, 0);
}

int rs_marker_region(uint64_t addr, uint64_t bytes, const char *name)
{
	struct rs_tls *t = begin();
	int r = 0;

	if (!t)
		return -1;
	RS_ENGINE(r = rs_engine_region(rs_state.engine, addr, bytes, name ? name : ""));
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
	return rs_marker_push(text);
}

API(replayshim_range_pop, (void))
{
	return rs_marker_pop();
}

API(replayshim_step, (long n))
{
	char text[64];

	snprintf(text, sizeof(text), "step:%ld", n);
	return rs_marker_mark(text);
}

static int window(const char *kind, const char *name, long invocation)
{
	char text[512];

	if (invocation < 0)
		snprintf(text, sizeof(text), "%s:%s", kind, name ? name : "");
	else
		snprintf(text, sizeof(text), "%s:%s#%ld", kind, name ? name : "", invocation);
	return rs_marker_push(text);
}

API(replayshim_forward_begin, (const char *name, long invocation))
{
	return window("forward", name, invocation);
}

API(replayshim_forward_end, (void))
{
	return rs_marker_pop();
}

API(replayshim_replay_begin, (const char *name, long invocation))
{
	return window("replay", name, invocation);
}

API(replayshim_replay_end, (void))
{
	return rs_marker_pop();
}

API(replayshim_region_name, (unsigned long address, unsigned long bytes, const char *name))
{
	return rs_marker_region(address, bytes, name);
}

API(replayshim_region_drop, (unsigned long address, unsigned long bytes))
{
	return rs_marker_region_drop(address, bytes);
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
