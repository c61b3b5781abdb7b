/* SPDX-License-Identifier: MIT */
/*
 * Obeying a plan: when it is taken, what it says of a forward, whether its prediction holds.
 *
 * A plan changes between two steps only. Its arena is reserved then, and is the most that the tool takes from there on. The
 * first step under a plan is measured against its prediction, at every phase (costing.h): one that took more is
 * refused, and the plan before it comes back. Later steps are measured too, and told.
 *
 * A replay under a plan is expected as often as the program has been seen to make it: after that the segment's bytes
 * are given back, and one more replay is a rejection.
 *
 * Callers: the shim, any thread (rs_engine_*); window.c between steps and under engine.lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/costing.h"
#include "tracker/digest.h"
#include "tracker/name.h"

struct entry {
	struct rs_plan_entry plan;
	uint8_t told; /* the next forward was told to keep its activations */
};

struct plan {
	struct rs_plan_head head;
	struct rs_queue q;
	uint32_t remaps;     /* so many entries do */
	uint8_t exchanges;   /* some entries do, by swaps or what is mapped */
	uint8_t blind;	     /* its first step was this run's, or is: nothing is measured yet */
	struct entry *entry; /* by name and invocation */
	uint64_t backward[]; /* by order: most bytes there */
};

struct rs_planned_run {
	struct plan *waiting, *current, *before;
	uint8_t drop; /* waiting for the step in which no plan holds any more */
	struct rs_plan_status status;
	uint64_t print; /* of this step's forwards */
	uint32_t forwards;
};

const char *const rs_plan_state_names[RS_PLAN_REFUSED_FORM + 1] = {
	"none",
	"waiting",
	"dry step",
	"in force",
	"refused: took more memory than predicted",
	"refused: its arena could not be reserved",
	"refused: made for other segments",
	"refused: malformed",
};

static struct rs_planned_run *run_of(struct rs_engine *e)
{
	struct rs_costing *c = e->costing;

	if (c && !c->plan)
		c->plan = calloc(1, sizeof(*c->plan));
	return c ? c->plan : NULL;
}

static void free_plan(struct plan *p)
{
	if (p)
		free(p->entry);
	free(p);
}

void rs_planned_fini(struct rs_engine *e)
{
	struct rs_planned_run *r = e->costing->plan;

	if (!r)
		return;
	free_plan(r->waiting);
	free_plan(r->current);
	free_plan(r->before);
	free(r);
	e->costing->plan = NULL;
}

/* --- the plan ----------------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
	const struct rs_plan_entry *x = a, *y = b;

	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return x->invocation < y->invocation ? -1 : x->invocation > y->invocation;
}

static struct entry *find(const struct plan *p, const char *segment, uint64_t invocation)
{
	struct rs_plan_entry key = {.name = rs_plan_name(segment),
				    .invocation = (uint32_t)invocation};

	if (!p || !p->head.n || invocation > UINT32_MAX)
		return NULL;
	return bsearch(&key, p->entry, p->head.n, sizeof(*p->entry), by_key);
}

/* Copied and sorted. -EINVAL: malformed. */
static int copy_plan(struct rs_queue q, const struct rs_plan_head *head,
		     const struct rs_plan_entry *entries, struct plan **ret)
{
	struct plan *p;
	uint32_t i;

	if (head->n > RS_PLAN_MAX || head->flags & RS_PLAN_INFEASIBLE)
		return -EINVAL;
	p = calloc(1, sizeof(*p) + head->n * sizeof(p->backward[0]));
	if (p && head->n)
		p->entry = calloc(head->n, sizeof(*p->entry));
	if (!p || (head->n && !p->entry)) {
		free_plan(p);
		return -ENOMEM;
	}
	p->head = *head;
	p->q = q;
	for (i = 0; i < head->n; i++) {
		const struct rs_plan_entry *x = &entries[i];

		if (x->option >= RS_OPTIONS || x->restore >= RS_RESTORES || x->order >= head->n) {
			free_plan(p);
			return -EINVAL;
		}
		p->entry[i].plan = *x;
		p->remaps += x->restore == RS_RESTORE_REMAP;
		p->exchanges |= x->restore != RS_RESTORE_COPY;
		p->backward[x->order] = rs_max64(p->backward[x->order], x->backward);
	}
	if (head->n)
		qsort(p->entry, head->n, sizeof(*p->entry), by_key);
	*ret = p;
	return 0;
}

static void note_refused(struct rs_planned_run *r, uint64_t generation, enum rs_plan_state why)
{
	r->status.generation = generation;
	r->status.state = why;
}

int rs_engine_plan(struct rs_engine *e, struct rs_queue q, const struct rs_plan_head *head,
		   const struct rs_plan_entry *entries)
{
	struct rs_planned_run *r;
	struct plan *p = NULL, *old = NULL;
	int err = 0, drop = !head || !head->generation;

	if (!drop)
		err = copy_plan(q, head, entries, &p);
	pthread_mutex_lock(&e->lock);
	r = run_of(e);
	if (!r) {
		err = e->costing ? -ENOMEM : -EINVAL;
	} else if (err == -EINVAL) {
		note_refused(r, head->generation, RS_PLAN_REFUSED_FORM);
	} else if (!err) {
		old = r->waiting;
		r->waiting = p;
		r->drop = (uint8_t)drop;
		if (p) {
			memset(&r->status, 0, sizeof(r->status));
			note_refused(r, head->generation, RS_PLAN_WAITING);
		}
		p = NULL;
	}
	pthread_mutex_unlock(&e->lock);
	free_plan(p);
	free_plan(old);
	return err;
}

void rs_engine_plan_status(struct rs_engine *e, struct rs_plan_status *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (!e->costing)
		return;
	pthread_mutex_lock(&e->lock);
	if (e->costing->plan)
		*ret = e->costing->plan->status;
	pthread_mutex_unlock(&e->lock);
}

/* --- between steps ------------------------------------------------------------------------------ */

/*
 * Of the plan's arena: what is kept where it can be mapped in another's place. That is taken as it is needed, and what is not
 * taken there may be taken elsewhere. A run that has just begun, with a plan of another one's, does not know how much that is:
 * then all is taken as it is needed.
 */
static uint64_t frames_of(struct rs_engine *e, const struct plan *p)
{
	const struct rs_cost_entry *entry;
	uint64_t bytes = 0;
	uint32_t known = 0;

	if (!p || !p->remaps)
		return 0;
	pthread_mutex_lock(&e->lock);
	for (entry = e->costing->entries; entry; entry = entry->hh.next) {
		const struct entry *x = find(p, entry->key.name, entry->key.invocation);

		if (!x || x->plan.restore != RS_RESTORE_REMAP)
			continue;
		bytes += entry->cost.remap_bytes;
		known += entry->cost.steps > 0;
	}
	pthread_mutex_unlock(&e->lock);
	if (known < p->remaps)
		bytes = p->head.arena;
	return rs_min64(bytes, p->head.arena) & ~255ull;
}

/* Is the plan made of what another run has measured, and has this one not measured so much? */
static int is_blind(struct rs_engine *e, const struct plan *p)
{
	const struct rs_cost_entry *entry;
	uint32_t known = 0;

	pthread_mutex_lock(&e->lock);
	for (entry = e->costing->entries; entry; entry = entry->hh.next)
		known += entry->cost.steps && find(p, entry->key.name, entry->key.invocation);
	pthread_mutex_unlock(&e->lock);
	return p->exchanges && known < p->head.n;
}

/* What preserved state is to take from now on; see grow() in arena.c. */
static void limit(struct rs_engine *e, const struct plan *p)
{
	uint64_t frames = frames_of(e, p);

	if (p && p->remaps)
		rs_remap_want(e);
	pthread_mutex_lock(&e->memory_lock);
	e->planned_frames = frames;
	e->is_planned = p != NULL;
	/* blocks are of 256 bytes and their multiples */
	e->planned_bytes = e->planned_most = p ? (p->head.arena + 255) & ~255ull : 0;
	if (p && p->head.budget > p->head.peak)
		e->planned_most += p->head.budget - p->head.peak;
	pthread_mutex_unlock(&e->memory_lock);
}

/* What is free goes back first: of what was reserved for another plan nothing is in use between steps. */
static int reserve(struct rs_engine *e, const struct plan *p)
{
	uint64_t have, arena;

	rs_engine_trim(e);
	limit(e, p);
	if (!p || !p->head.arena)
		return 0;
	pthread_mutex_lock(&e->memory_lock);
	have = e->block_bytes;
	arena = p->head.arena - e->planned_frames;
	pthread_mutex_unlock(&e->memory_lock);
	return have >= arena ? 0 : rs_arena_reserve(e, p->q, arena - have);
}

/*
 * What was exchanged with a keep, and the replay writes to, was saved once more, for nobody knew yet that no replay would
 * come after it. The next step is judged; the budget has been kept in any case.
 */
static struct plan *see_again(struct rs_planned_run *r, int *ret_reserve)
{
	r->current->blind = 0;
	r->status.measured = r->status.predicted = 0;
	*ret_reserve = 1;
	return NULL;
}

/* The dry step of the current plan is over. engine.lock held. Returns the plan that is not needed any more. */
static struct plan *judge(struct rs_planned_run *r, int *ret_reserve)
{
	struct plan *gone = r->before;

	if (r->forwards != r->current->head.n || r->print != r->current->head.fingerprint)
		r->status.state = RS_PLAN_REFUSED_SEGMENTS;
	else if (r->current->blind)
		return see_again(r, ret_reserve);
	else if (r->status.measured > r->status.predicted)
		r->status.state = RS_PLAN_REFUSED_PEAK;
	else
		r->status.state = RS_PLAN_IN_FORCE;
	if (r->status.state != RS_PLAN_IN_FORCE) {
		gone = r->current;
		r->current = r->before;
		*ret_reserve = 1;
	}
	r->before = NULL;
	return gone;
}

/* The waiting plan begins now, or is refused. No lock held. */
static void take(struct rs_engine *e, struct rs_planned_run *r, struct plan *p)
{
	struct plan *gone = NULL;
	int err;

	p->blind = (uint8_t)is_blind(e, p);
	err = reserve(e, p);
	if (err)
		reserve(e, r->current);
	pthread_mutex_lock(&e->lock);
	if (err) {
		note_refused(r, p->head.generation, RS_PLAN_REFUSED_MEMORY);
		gone = p;
	} else {
		gone = r->before;
		r->before = r->current;
		r->current = p;
		memset(&r->status, 0, sizeof(r->status));
		note_refused(r, p->head.generation, RS_PLAN_DRY);
	}
	pthread_mutex_unlock(&e->lock);
	free_plan(gone);
}

void rs_planned_step(struct rs_engine *e)
{
	struct rs_planned_run *r = e->costing->plan;
	struct plan *gone = NULL, *next = NULL, *old = NULL;
	int again = 0;

	if (!r)
		return;
	pthread_mutex_lock(&e->lock);
	if (r->current && r->status.state == RS_PLAN_DRY && r->forwards)
		gone = judge(r, &again);
	if (r->waiting && (!e->seen_step || r->waiting->head.from_step <= e->step)) {
		next = r->waiting;
		r->waiting = NULL;
	} else if (r->drop) {
		old = r->current;
		r->current = NULL;
		r->drop = 0;
		again = 1;
		memset(&r->status, 0, sizeof(r->status));
	}
	r->print = r->forwards = 0;
	pthread_mutex_unlock(&e->lock);
	if (next)
		take(e, r, next);
	else if (again)
		reserve(e, r->current);
	free_plan(gone);
	free_plan(old);
}

/* --- in a step (engine.lock held) ----------------------------------------------------------------- */

/* Most bytes that the plan predicts from a replay to whatever comes next: what lies between is backward, too. */
static uint64_t between(const struct plan *p, uint64_t from, enum rs_phase next,
			const struct rs_cost_entry *next_entry)
{
	uint64_t until = 0, most = 0, i;

	if (next == RS_PHASE_REPLAY && next_entry)
		until = next_entry->cost.order + 1;
	else if (next != RS_PHASE_OUTSIDE)
		return p->head.peak;
	for (i = from; i + 1 > until && i < p->head.n; i--)
		most = rs_max64(most, p->backward[i]);
	return most ? most : p->head.peak;
}

void rs_planned_phase_ends(struct rs_engine *e, enum rs_phase phase, struct rs_cost_entry *entry,
			   enum rs_phase next, struct rs_cost_entry *next_entry, uint64_t peak)
{
	struct rs_planned_run *r = e->costing->plan;
	const struct entry *x;
	uint64_t predicted, arena;

	if (!r || !r->current)
		return;
	x = entry ? find(r->current, entry->key.name, entry->key.invocation) : NULL;
	predicted = r->current->head.peak;
	if (x && phase == RS_PHASE_FORWARD)
		predicted = x->plan.forward;
	else if (x && phase == RS_PHASE_REPLAY)
		predicted = between(r->current, x->plan.order, next, next_entry);
	pthread_mutex_lock(&e->memory_lock);
	arena = e->block_bytes;
	pthread_mutex_unlock(&e->memory_lock);
	/* the event that comes nearest to its prediction, or is farthest above it */
	if (r->status.predicted && (int64_t)(peak + arena - predicted) <=
					   (int64_t)(r->status.measured - r->status.predicted))
		return;
	r->status.predicted = predicted;
	r->status.measured = peak + arena;
	r->status.order = x ? x->plan.order : UINT32_MAX;
}

void rs_planned_forward(struct rs_engine *e, struct rs_segment *s)
{
	struct rs_planned_run *r = e->costing->plan;
	struct entry *x;

	if (!r)
		return;
	r->print = rs_plan_print(r->print, rs_plan_name(s->name), (uint32_t)s->invocation);
	r->forwards++;
	x = find(r->current, s->name, s->invocation);
	if (!x)
		return;
	s->planned = 1;
	s->policy.option = x->plan.option;
	s->policy.restore = x->plan.restore;
	s->kept = x->told;
	e->costing->retained |= s->kept;
	x->told = 0;
}

/* The open forward of that name that is nearest, of the calling thread or the process. */
static struct rs_segment *open_forward(struct rs_engine *e, struct rs_thread *t, const char *name,
				       int64_t invocation)
{
	struct rs_window *list[2] = {t ? t->top : NULL, e->process}, *w;
	unsigned i;

	for (i = 0; i < 2; i++)
		for (w = list[i]; w; w = w->up)
			if (!w->closed && w->kind == RS_WINDOW_FORWARD && w->seg &&
			    w->seg->name == name &&
			    (invocation < 0 || w->seg->invocation == (uint64_t)invocation))
				return w->seg;
	return NULL;
}

int rs_engine_retain(struct rs_engine *e, struct rs_thread *t, const char *segment,
		     int64_t invocation)
{
	struct rs_costing *c = e->costing;
	struct rs_cost_entry *cost;
	struct rs_segment *s;
	struct entry *x = NULL;
	char fit[RS_NAME_BYTES];
	const char *name;
	int keep = 0;

	if (!c || !segment)
		return 0;
	rs_name_fit(fit, segment, strlen(segment));
	pthread_mutex_lock(&e->lock);
	name = rs_intern(e, fit);
	s = name ? open_forward(e, t, name, invocation) : NULL;
	if (name && invocation < 0)
		invocation = (int64_t)(s ? s->invocation : rs_next_invocation(e, name));
	cost = name ? rs_costs_entry(e, name, (uint64_t)invocation) : NULL;
	if (cost) {
		cost->cost.flags |= RS_COST_RETAINS;
		x = c->plan ? find(c->plan->current, name, (uint64_t)invocation) : NULL;
	}
	if (x && x->plan.option == RS_OPTION_RETAIN) {
		keep = 1;
		cost->cost.flags |= RS_COST_HAS_RETAINED;
		c->retained = 1;
		if (s) {
			s->kept = 1;
			rs_segment_spend(e, s);
		} else {
			x->told = 1;
		}
	}
	pthread_mutex_unlock(&e->lock);
	return keep;
}
