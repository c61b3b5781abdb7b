/* SPDX-License-Identifier: MIT */
/*
 * Making plans and giving them to programs.
 *
 * A program that belongs to no job has plans of its own. Programs of one job with the same segments get one agreed plan:
 * from the larger of each of their costs, for the smallest of their budgets, to begin in the same step. That is at least
 * two steps and 20 ms after the latest step that any of them has told of, so that all have seen it by then.
 *
 * A plan is made when there was none, when costs, segments, ranks or the budget have changed (serve_basis.c), or when one was
 * refused; at most once a second, and what comes out the same is not given again. A refused plan is never repeated: what
 * it took too much is left alone in the next one. After the third refusal for the same segments and budget there is no
 * other; ranks that share it are told so, lest some obey it and others do not.
 *
 * Callers: the planner's loop. State: in the clients.
 */
#include <errno.h>
#include <string.h>

#include "planner/serve_priv.h"
#include "tracker/digest.h"

#define OFTEN	 RS_SERVE_SECOND	/* between plans of one program */
#define WAIT	 (10 * RS_SERVE_SECOND) /* for the costs of a job's other ranks */
#define AHEAD_NS (RS_SERVE_SECOND / 50)
#define AHEAD	 2u    /* steps */
#define FARTHEST 1000u /* steps */
#define STRICTER 16u   /* times 1/32 of the budget may be left alone for another plan to come out */

struct group {
	struct rs_serve_client *c[RS_SERVE_CLIENTS];
	unsigned n;
	uint64_t fingerprint, budget, extra;
};

struct rs_wish rs_serve_wish(uint64_t budget)
{
	return (struct rs_wish){.budget = budget,
				.guard = UINT64_MAX,
				.gap = 1e-4,
				.tie = 0.005,
				.limit_ns = RS_SERVE_SECOND / 5,
				.allow = RS_ALLOW_ALL};
}

/* --- who plans with whom ------------------------------------------------------------------------------ */

static int takes_plans(const struct rs_serve_client *c)
{
	return c->ready_ns && c->budget && !c->off;
}

static int belongs(const struct rs_serve_client *a, const struct rs_serve_client *b)
{
	return a == b ||
	       (a->view.job && a->view.job == b->view.job && a->fingerprint == b->fingerprint);
}

static void gather(struct rs_serve *s, struct rs_serve_client *first, struct group *g)
{
	g->n = 0;
	g->fingerprint = first->fingerprint;
	g->budget = UINT64_MAX;
	g->extra = 0;
	for (unsigned i = 0; i < s->clients; i++) {
		struct rs_serve_client *c = s->client[i];

		if (!takes_plans(c) || !belongs(first, c))
			continue;
		g->c[g->n++] = c;
		g->budget = c->budget < g->budget ? c->budget : g->budget;
		g->extra = c->extra > g->extra ? c->extra : g->extra;
	}
}

/* Somebody of the job has not told enough, and there has not been much time for it. */
static int is_awaited(const struct rs_serve *s, const struct group *g, uint64_t now)
{
	uint64_t since = now, job = g->c[0]->view.job;

	for (unsigned i = 0; i < g->n; i++)
		since = g->c[i]->ready_ns < since ? g->c[i]->ready_ns : since;
	if (!job || now - since > WAIT)
		return 0;
	for (unsigned i = 0; i < s->clients; i++)
		if (s->client[i]->view.job == job && !s->client[i]->off && !s->client[i]->ready_ns)
			return 1;
	return 0;
}

/* --- refusals ------------------------------------------------------------------------------------------ */

static void give_up(struct rs_serve_client *c)
{
	c->given_up = c->made.fingerprint;
	c->given_up_budget = c->made.budget;
}

/* What became of the plan that it was given last. */
static void judge(struct rs_serve *s, struct rs_serve_client *c)
{
	const struct rs_serve_view *v = &c->view;
	uint64_t over = 0;

	if (!c->made.generation || v->plan_generation != c->made.generation ||
	    c->judged == c->made.generation)
		return;
	if (v->plan_state == RS_PLAN_IN_FORCE) {
		c->refusals = 0;
		c->judged = c->made.generation;
	}
	if (v->plan_state < RS_PLAN_REFUSED_PEAK || v->plan_state > RS_PLAN_REFUSED_FORM)
		return;
	c->judged = c->made.generation;
	c->refusals++;
	s->refused++;
	if (v->plan_measured > v->plan_predicted)
		over = v->plan_measured - v->plan_predicted;
	if (over > c->made.budget)
		over = c->made.budget;
	if (v->plan_state == RS_PLAN_REFUSED_PEAK)
		c->extra += over + c->made.budget / 128;
	else if (v->plan_state == RS_PLAN_REFUSED_MEMORY)
		c->extra += c->made.arena / 8 + c->made.budget / 64;
	/* Another plan for these segments would fare no better. */
	if (c->refusals > RS_SERVE_REFUSALS || v->plan_state > RS_PLAN_REFUSED_MEMORY)
		give_up(c);
}

static int is_given_up(const struct group *g)
{
	for (unsigned i = 0; i < g->n; i++)
		if (g->c[i]->given_up && g->c[i]->given_up == g->fingerprint &&
		    g->c[i]->given_up_budget == g->budget)
			return 1;
	return 0;
}

static void start_anew(struct rs_serve_client *c, const struct group *g)
{
	if (c->given_up != g->fingerprint || c->given_up_budget != g->budget)
		c->given_up = c->given_up_budget = 0;
	if (c->made.fingerprint == g->fingerprint && c->made.budget == g->budget)
		return;
	c->refusals = 0;
	if (c->made.fingerprint != g->fingerprint)
		c->extra = 0;
}

/* --- is it time? ---------------------------------------------------------------------------------------- */

static int is_refused(const struct rs_serve_client *c)
{
	return c->judged == c->made.generation && c->refusals;
}

static int is_changed(const struct rs_serve_client *c, const struct group *g)
{
	const struct rs_serve_made *m = &c->made;

	/* A little more to spend is not worth another plan. */
	return !m->ns || m->fingerprint != g->fingerprint || g->budget < m->budget ||
	       g->budget - m->budget > m->budget / 64 || m->agreement != g->c[0]->made.agreement ||
	       is_refused(c) || rs_serve_drifted(c);
}

static int is_due(const struct group *g, uint64_t now)
{
	int changed = 0;

	for (unsigned i = 0; i < g->n; i++) {
		const struct rs_serve_client *c = g->c[i];

		if (c->made.ns && now - c->made.ns < OFTEN)
			return 0;
		changed |= is_changed(c, g);
	}
	return changed;
}

/* --- making and giving ----------------------------------------------------------------------------------- */

static int costs_of(const struct group *g, struct rs_costs *ret)
{
	const struct rs_costs *first = &g->c[0]->costs;
	int r = 0;

	for (uint32_t i = 0; !r && i < first->n; i++)
		r = rs_costs_put(ret, &first->segment[i]);
	for (uint32_t i = 0; !r && i < first->nshares; i++)
		r = rs_costs_put_share(ret, &first->share[i]);
	memcpy(ret->rate, first->rate, sizeof(ret->rate));
	ret->usage = first->usage;
	for (unsigned i = 1; !r && i < g->n; i++)
		r = rs_costs_merge(ret, &g->c[i]->costs);
	return r;
}

static uint64_t mix(uint64_t h, const void *words, size_t bytes)
{
	const uint64_t *w = words;

	for (size_t i = 0; i < bytes / sizeof(*w); i++)
		h = rs_digest_mix((h + RS_DIGEST_K) ^ w[i]);
	return h;
}

/* Of what a program would do: not of how good that is. */
static uint64_t digest_of(const struct rs_planned *p)
{
	const uint64_t head[] = {p->head.fingerprint, p->head.budget, p->head.arena, p->head.flags,
				 p->head.peak};

	return mix(mix(0, head, sizeof(head)), p->entry, p->head.n * sizeof(*p->entry));
}

static void tell_off(struct rs_serve_client *c)
{
	atomic_store(&c->w->off, (uint64_t)(c->off || c->withheld));
}

void rs_serve_withhold(struct rs_serve_client *c)
{
	c->withheld |= c->made.generation != 0;
	memset(&c->made, 0, sizeof(c->made));
	tell_off(c);
}

/* The words are read again: making the plan may have taken a while. */
static uint64_t first_step(const struct group *g)
{
	uint64_t latest = 0, ahead = AHEAD;

	for (unsigned i = 0; i < g->n; i++) {
		const struct rs_wire_client *w = &g->c[i]->w->client;
		uint64_t step = atomic_load(&w->step), ns = g->c[i]->view.step_ns, steps;

		if (step > latest && step < UINT64_MAX / 2)
			latest = step;
		steps = ns ? AHEAD_NS / ns + 1 : AHEAD;
		ahead = steps > ahead ? steps : ahead;
	}
	return latest + (ahead > FARTHEST ? FARTHEST : ahead);
}

static void give(struct rs_serve *s, const struct group *g, struct rs_planned *p)
{
	uint64_t from = first_step(g), agreement = ++s->agreements, digest = digest_of(p);

	p->head.from_step = from;
	for (unsigned i = 0; i < g->n; i++) {
		struct rs_serve_client *c = g->c[i];

		c->made = (struct rs_serve_made){
			.generation = rs_wire_publish(c->w, &p->head, p->entry),
			.agreement = agreement,
			.ns = c->made.ns,
			.digest = digest,
			.fingerprint = g->fingerprint,
			.budget = g->budget,
			.from_step = from,
			.peak = p->head.peak,
			.arena = p->head.arena,
			.time = p->head.time,
			.infeasible = (p->head.flags & RS_PLAN_INFEASIBLE) != 0};
		/* After the plan: whoever sees that it may have one again finds the right one. */
		c->withheld = 0;
		tell_off(c);
	}
	s->plans++;
}

static int is_same(const struct group *g, uint64_t digest)
{
	for (unsigned i = 0; i < g->n; i++)
		if (!g->c[i]->made.generation || g->c[i]->made.digest != digest ||
		    g->c[i]->made.agreement != g->c[0]->made.agreement)
			return 0;
	return 1;
}

/* What was made, or not, is the answer to costs as they are now. */
static void answered(const struct group *g)
{
	for (unsigned i = 0; i < g->n; i++) {
		g->c[i]->made.fingerprint = g->fingerprint;
		g->c[i]->made.budget = g->budget;
		/* Another budget for the same costs is no reason to look for other needs. */
		if (rs_serve_drifted(g->c[i]))
			g->c[i]->needs_known = 0;
		/* Without memory for it the same is looked at again in a second. */
		if (rs_serve_based(g->c[i]))
			g->c[i]->made.fingerprint = 0;
	}
}

/* There is none any more: whoever obeys the last one goes back to preserving without. */
static void withdraw(struct rs_serve *s, const struct group *g)
{
	struct rs_planned none = {.head = {.fingerprint = g->fingerprint,
					   .budget = g->budget,
					   .flags = RS_PLAN_INFEASIBLE}};

	if (g->n > 1 && !is_same(g, digest_of(&none)))
		give(s, g, &none);
}

static int is_any_refused(const struct group *g)
{
	for (unsigned i = 0; i < g->n; i++)
		if (is_refused(g->c[i]))
			return 1;
	return 0;
}

/* What was too much is left alone by making the budget smaller; if the refused plan comes out again, by still more. */
static int plan_anew(struct group *g, const struct rs_costs *costs, struct rs_planned *ret)
{
	struct rs_wish wish = rs_serve_wish(g->budget);
	int r;

	for (unsigned i = 0;; i++) {
		wish.budget = g->extra < g->budget ? g->budget - g->extra : 0;
		r = rs_plan_make(costs, &wish, ret);
		if (r)
			return r;
		ret->head.budget = g->budget;
		if (i == STRICTER || !is_any_refused(g) || !is_same(g, digest_of(ret)))
			return 0;
		rs_planned_free(ret);
		g->extra += g->budget / 32;
	}
}

static int make(struct rs_serve *s, struct group *g)
{
	struct rs_costs costs = {0};
	struct rs_planned p;
	int r = costs_of(g, &costs);

	if (!r)
		r = plan_anew(g, &costs, &p);
	rs_costs_free(&costs);
	if (r)
		return r;
	for (unsigned i = 0; i < g->n; i++)
		g->c[i]->extra = g->extra;
	if (!is_same(g, digest_of(&p)))
		give(s, g, &p);
	rs_planned_free(&p);
	return 0;
}

int rs_serve_plan(struct rs_serve *s, uint64_t now)
{
	static struct group g; /* large; the process has one thread */
	struct rs_serve_client *c;

	for (unsigned i = 0; i < s->clients; i++)
		judge(s, s->client[i]);
	for (unsigned i = 0; i < s->clients; i++) {
		c = s->client[i];
		if (!c->budget || c->off)
			rs_serve_withhold(c);
		if (!takes_plans(c))
			continue;
		gather(s, c, &g);
		for (unsigned k = 0; k < g.n; k++)
			start_anew(g.c[k], &g);
		/* Each group once: with its first. */
		if (g.c[0] != c || !is_due(&g, now) || is_awaited(s, &g, now))
			continue;
		for (unsigned k = 0; k < g.n; k++)
			g.c[k]->made.ns = now;
		if (is_given_up(&g))
			withdraw(s, &g);
		/* Memory ran out, or something is too large: that may change. */
		else if (make(s, &g))
			return 1;
		answered(&g);
		return 1;
	}
	return 0;
}
