/* SPDX-License-Identifier: MIT */
/*
 * What the planner tells people, and what they may tell it. planner/README.md lists the fields: `replayctl status`, `top`
 * and scripts read the same text. Numbers are as each program told them last, bounded only by JSON's integers.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "planner/serve_priv.h"
#include "tracker/options.h"

static const char *const states[RS_PLAN_REFUSED_FORM + 1] = {
	"none",		  "waiting",	      "dry",	     "in-force", "refused-peak",
	"refused-memory", "refused-segments", "refused-form"};

static json_t *number(uint64_t n)
{
	return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

static void put(json_t *o, const char *key, uint64_t n)
{
	json_object_set_new(o, key, number(n));
}

static void put_text(json_t *o, const char *key, const char *text)
{
	json_object_set_new(o, key, text ? json_string(text) : json_null());
}

static void put_flag(json_t *o, const char *key, int flag)
{
	json_object_set_new(o, key, json_boolean(flag));
}

/* --- programs ----------------------------------------------------------------------------------------- */

#define VIEW(field) put(o, #field, v->field)

static void put_view(json_t *o, const struct rs_serve_view *v)
{
	VIEW(rank);
	VIEW(ranks);
	VIEW(device_bytes);
	VIEW(step);
	VIEW(steps);
	VIEW(step_ns);
	VIEW(live_bytes);
	VIEW(peak_bytes);
	VIEW(arena_bytes);
	VIEW(arena_used);
	VIEW(turn_bytes);
	VIEW(outside_bytes);
	VIEW(segments);
	VIEW(replays);
	VIEW(rejections);
	VIEW(divergences);
	VIEW(wanted);
}

static void put_names(json_t *o, const struct rs_serve_client *c)
{
	const struct rs_serve_view *v = &c->view;
	char text[40];

	put_text(o, "program", c->program);
	snprintf(text, sizeof(text), "%016" PRIx64, v->job);
	put_text(o, "job", v->job ? text : NULL);
	/* The bytes of the CUuuid as they lie in memory. */
	for (unsigned i = 0; i < 16; i++)
		snprintf(text + 2 * i, 3, "%02x", ((const unsigned char *)v->device)[i]);
	put_text(o, "device", v->device[0] || v->device[1] ? text : NULL);
}

static json_t *plan_of(const struct rs_serve_client *c)
{
	const struct rs_serve_made *m = &c->made;
	const struct rs_serve_view *v = &c->view;
	json_t *o = json_object();

	put(o, "generation", m->generation);
	put(o, "agreement", m->agreement);
	put(o, "from_step", m->from_step);
	put(o, "budget", m->generation ? m->budget : 0);
	put(o, "peak", m->peak);
	put(o, "arena", m->arena);
	put(o, "time_ns", m->time < 0 ? 0 : (uint64_t)m->time);
	put_flag(o, "infeasible", m->infeasible);
	put(o, "taken", v->plan_generation);
	put_text(o, "state",
		 v->plan_state <= RS_PLAN_REFUSED_FORM ? states[v->plan_state] : "unknown");
	if (v->plan_order <= RS_PLAN_MAX)
		put(o, "order", v->plan_order);
	else
		put_text(o, "order", NULL);
	put(o, "predicted", v->plan_predicted);
	put(o, "measured", v->plan_measured);
	put(o, "refusals", c->refusals);
	put_flag(o, "given_up", c->given_up != 0);
	return o;
}

static json_t *program(const struct rs_serve_client *c, uint64_t now)
{
	json_t *o = json_object(), *lost = json_object(), *costs = json_object();
	const struct rs_serve_view *v = &c->view;

	put(o, "pid", c->pid);
	put(o, "started", c->started);
	put_names(o, c);
	if (v->heartbeat_ns && v->heartbeat_ns <= now)
		put(o, "silent_ns", now - v->heartbeat_ns);
	else
		put_text(o, "silent_ns", NULL);
	put_view(o, v);
	put(o, "budget", c->budget);
	put(o, "asked", c->ask);
	put_flag(o, "set", c->has_set);
	put_flag(o, "off", c->off);
	put(costs, "segments", c->costs.n);
	put_flag(costs, "complete", c->ready_ns != 0);
	put_text(costs, "why", c->ready_ns ? NULL : c->why);
	json_object_set_new(o, "costs", costs);
	json_object_set_new(o, "plan", plan_of(c));
	put(lost, "records", v->lost);
	put(lost, "threads", v->lost_threads);
	put(lost, "unbelievable", c->unbelievable);
	json_object_set_new(o, "lost", lost);
	return o;
}

char *rs_serve_status(const struct rs_serve *s, uint64_t now)
{
	json_t *o = json_object(), *p = json_object(), *list = json_array();
	char *text;

	put(p, "pid", (uint64_t)getpid());
	put_text(p, "version", RS_VERSION);
	put_text(p, "socket", s->options.path);
	put(p, "up_ns", now - s->started_ns);
	put(p, "budget", s->budget);
	put(p, "plans", s->plans);
	put(p, "refused", s->refused);
	put(p, "dropped", s->peers_dropped);
	for (unsigned i = 0; i < s->clients; i++)
		json_array_append_new(list, program(s->client[i], now));
	put(o, "v", 1);
	json_object_set_new(o, "planner", p);
	json_object_set_new(o, "programs", list);
	text = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	return text;
}

/* --- replayctl set ------------------------------------------------------------------------------------ */

struct setting {
	int is_budget, off;
	uint64_t budget;
};

static int parse(const char *text, struct setting *ret)
{
	if (!strncmp(text, "budget=", 7)) {
		ret->is_budget = 1;
		return rs_options_size(text + 7, &ret->budget);
	}
	if (strcmp(text, "off=0") && strcmp(text, "off=1"))
		return -EINVAL;
	ret->off = text[4] == '1';
	return 0;
}

static void apply(struct rs_serve_client *c, const struct setting *set)
{
	if (set->is_budget) {
		c->has_set = 1;
		c->set = set->budget;
		return;
	}
	c->off = set->off;
	/* Once it has been off it has no plan, however short that was. */
	rs_serve_withhold(c);
}

int rs_serve_set(struct rs_serve *s, uint64_t pid, const char *text, char *ret_say, size_t size)
{
	struct setting set = {0};
	unsigned n = 0;

	if (parse(text, &set)) {
		snprintf(ret_say, size, "budget=SIZE (48GiB, none) or off=1, off=0 can be set");
		return -EINVAL;
	}
	/* The device's budget is one number; what programs were given one by one stays theirs. */
	if (!pid && set.is_budget)
		s->budget = set.budget;
	for (unsigned i = 0; i < s->clients; i++) {
		if (pid && s->client[i]->pid != pid)
			continue;
		n++;
		if (pid || !set.is_budget)
			apply(s->client[i], &set);
	}
	if (pid && !n) {
		snprintf(ret_say, size, "no program with process number %" PRIu64 " is here", pid);
		return -ESRCH;
	}
	snprintf(ret_say, size, "%u %s", n, n == 1 ? "program" : "programs");
	return 0;
}
