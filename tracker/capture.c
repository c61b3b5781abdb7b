/* SPDX-License-Identifier: MIT */
/*
 * Captures as they are made: which of the program's windows and calls belong to them, and the engine inside that
 * follows them. What becomes of their launches is in capture_run.c; why all this is sound, in capture.h.
 *
 * The inner engine is an ordinary one, whose device operations are captured because its queues are. It differs in that
 * memory, names and terms are the program's (rs_engine_outer): for each allocation that a captured call reaches it has one
 * of its own, with a history that begins at the capture's first segment. Its records do not wait for an event; they are
 * the script by which launches are judged. What is put back at a replay's end goes into the stream on which the
 * capture began: a node after the last join of another stream would make the capture end in an error.
 *
 * A window of the program is mirrored inside at its first captured call, unless something of it has run already or
 * was captured elsewhere, or its forward was: those are rejected as RS030 by the program's engine.
 * Locks: the outer engine's, then the inner one's; neither is held across device operations.
 */
#include "tracker/capture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/callstate.h"
#include "tracker/capturing.h"
#include "tracker/costing.h"

const struct rs_devops *rs_capture_ops(const struct rs_engine *outer)
{
	return outer->costing ? outer->costing->real : outer->ops;
}

static uint32_t *flags_of(struct rs_window *w)
{
	return w->rec ? &w->rec->flags : &w->seg->flags;
}

/* --- life ----------------------------------------------------------------------------------------- */

void rs_engine_capture_begin(struct rs_engine *e, struct rs_queue q)
{
	const struct rs_devops *ops = rs_capture_ops(e);
	struct rs_capture *c;
	uint64_t id = 0, nodes;

	if (!e->config.capture || !ops->capture_of ||
	    ops->capture_of(ops->opaque, q, &id, &nodes) || !id)
		return;
	c = calloc(1, sizeof(*c));
	if (!c)
		return; /* what is captured is rejected */
	c->outer = e;
	c->id = id;
	c->nodes = nodes;
	c->origin = q;
	c->refs = 1;
	c->script_end = &c->script;
	pthread_mutex_lock(&e->lock);
	c->next = e->captures;
	__atomic_store_n(&e->captures, c, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&e->lock);
}

struct rs_capture *rs_capture_ref(struct rs_capture *c)
{
	pthread_mutex_lock(&c->outer->lock);
	c->refs++;
	pthread_mutex_unlock(&c->outer->lock);
	return c;
}

/* With its own copies of the program's mappings. Inner lock held. */
static void drop_shadow(struct rs_engine *inner, struct rs_alloc *a)
{
	struct rs_mapping *m;

	while ((m = a->mappings)) {
		a->mappings = m->next;
		free(m);
	}
	rs_alloc_drop(inner, a);
}

static void free_shadows(struct rs_capture *c)
{
	struct rs_shadow *s, *tmp;

	HASH_ITER (hh, c->shadows, s, tmp) {
		HASH_DEL(c->shadows, s);
		drop_shadow(c->inner, s->alloc);
		free(s);
	}
}

static void free_inner(struct rs_capture *c)
{
	struct rs_engine *inner = c->inner;
	struct rs_replay *r;
	struct rs_seat *seat;

	pthread_mutex_lock(&inner->lock);
	while ((r = c->script)) {
		c->script = r->next;
		rs_replay_free(inner, r);
	}
	free_shadows(c);
	pthread_mutex_unlock(&inner->lock);
	while ((seat = c->seats)) {
		c->seats = seat->next;
		rs_thread_destroy(seat->inner);
		free(seat);
	}
	inner->terms = NULL; /* the program's */
	rs_engine_destroy(inner);
}

void rs_capture_unref(struct rs_capture *c)
{
	struct rs_capture **at;
	struct rs_engine *e;

	if (!c)
		return;
	e = c->outer;
	pthread_mutex_lock(&e->lock);
	if (--c->refs) {
		pthread_mutex_unlock(&e->lock);
		return;
	}
	for (at = &e->captures; *at != c; at = &(*at)->next)
		;
	__atomic_store_n(at, c->next, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&e->lock);
	if (c->inner)
		free_inner(c);
	rs_capture_results_free(c);
	free(c->mirrors.v);
	free(c->digests.v);
	free(c);
}

/* Outer lock held. 0 or -ENOMEM. */
static int make_inner(struct rs_capture *c)
{
	struct rs_engine_config config = c->outer->config;
	struct rs_engine *inner;

	if (c->inner)
		return 0;
	/* costs cannot be measured, a contract not be learned; the order of nodes is the graph's own */
	config.costs = config.profile = config.order = 0;
	config.where = NULL; /* the program's engine asks */
	/* graphs of equal captures must be equal, for one may be updated to the other: all, or none */
	if (config.sample > 1)
		config.sample = 0;
	inner = rs_engine_create(&config, rs_capture_ops(c->outer), NULL);
	if (!inner)
		return -ENOMEM;
	inner->outer = c->outer;
	inner->capture = c;
	inner->terms = c->outer->terms;
	inner->policy = c->outer->policy;
	inner->step = c->outer->step;
	inner->seen_step = c->outer->seen_step;
	c->inner = inner;
	return 0;
}

/* The capture that began on q and is not over. Outer lock held. */
static struct rs_capture *begun_on(struct rs_engine *e, struct rs_queue q)
{
	struct rs_capture *c;

	for (c = e->captures;
	     c && (c->ended || c->origin.ctx != q.ctx || c->origin.stream != q.stream); c = c->next)
		;
	return c;
}

/* What a look at the capture is for: its count of nodes is compared, or taken anew, when no other call is in between. */
enum look { LOOK, CALL_BEGINS, CALL_ENDS };

/* Outer lock held. */
static void count_nodes(struct rs_capture *c, enum look why, uint64_t nodes)
{
	int known = nodes != UINT64_MAX && c->nodes != UINT64_MAX;

	if (why == CALL_ENDS)
		c->calls -= c->calls != 0;
	if (!c->calls && why == CALL_BEGINS && known && nodes != c->nodes)
		c->foreign = 1;
	if (!c->calls && why != LOOK)
		c->nodes = nodes;
	if (why == CALL_BEGINS)
		c->calls++;
}

/* With a reference; NULL: no capture that is followed. */
static struct rs_capture *captured_by(struct rs_engine *e, struct rs_queue q, enum look why)
{
	const struct rs_devops *ops = rs_capture_ops(e);
	struct rs_capture *c = __atomic_load_n(&e->captures, __ATOMIC_RELAXED);
	uint64_t id = 0, nodes;

	if (!c || ops->capture_of(ops->opaque, q, &id, &nodes) || !id)
		return NULL;
	pthread_mutex_lock(&e->lock);
	for (c = e->captures; c && (c->ended || c->id != id); c = c->next)
		;
	if (c) {
		c->refs++;
		count_nodes(c, why, nodes);
	}
	pthread_mutex_unlock(&e->lock);
	return c;
}

void rs_engine_capture_unseen(struct rs_engine *e, struct rs_queue q, int begins)
{
	rs_capture_unref(captured_by(e, q, begins ? CALL_BEGINS : CALL_ENDS));
}

/* --- memory --------------------------------------------------------------------------------------- */

/* The program's mappings of a backing, as they are now: where its bytes can be reached. */
static int copy_mappings(struct rs_alloc *to, const struct rs_alloc *from)
{
	const struct rs_mapping *m;

	for (m = from->mappings; m; m = m->next) {
		struct rs_mapping *copy = malloc(sizeof(*copy));

		if (!copy)
			return -ENOMEM;
		*copy = *m;
		copy->alloc = to;
		copy->next = to->mappings;
		to->mappings = copy;
	}
	return 0;
}

static int copy_regions(struct rs_alloc *to, const struct rs_alloc *from)
{
	uint32_t i;

	for (i = 0; i < from->regions.n; i++) {
		struct rs_region *r = RS_PUSH(to->regions);

		if (!r)
			return -ENOMEM;
		*r = from->regions.v[i];
	}
	return 0;
}

/* The program's allocation inside of the capture, from its first access on. NULL: no memory. Both locks held. */
struct rs_alloc *rs_capture_alloc(struct rs_engine *inner, struct rs_alloc *from)
{
	struct rs_capture *c = inner->capture;
	struct rs_shadow *s;
	struct rs_alloc *a;

	HASH_FIND(hh, c->shadows, &from->serial, sizeof(from->serial), s);
	if (s)
		return s->alloc;
	s = calloc(1, sizeof(*s));
	a = s ? rs_alloc_new(inner, from->size, from->kind) : NULL;
	if (!a) {
		free(s);
		return NULL;
	}
	a->serial = s->serial = from->serial;
	a->base = from->base;
	a->ctx = from->ctx;
	a->birth = from->birth; /* as the windows' beginning, by the program's clock */
	a->shared = from->shared;
	s->alloc = a;
	if (!copy_mappings(a, from) && !copy_regions(a, from))
		HASH_ADD(hh, c->shadows, serial, sizeof(s->serial), s);
	if (!s->hh.tbl) {
		drop_shadow(inner, a);
		free(s);
		return NULL;
	}
	return a;
}

/* --- windows -------------------------------------------------------------------------------------- */

/* The calling thread, inside. Outer lock held; NULL: no memory. */
static struct rs_thread *seat_of(struct rs_capture *c, const struct rs_thread *t)
{
	struct rs_seat *s;

	for (s = c->seats; s && s->outer != t; s = s->next)
		;
	if (s)
		return s->inner;
	s = calloc(1, sizeof(*s));
	if (s)
		s->inner = rs_thread_create(c->inner);
	if (!s || !s->inner) {
		free(s);
		return NULL;
	}
	s->outer = t;
	s->next = c->seats;
	c->seats = s;
	return s->inner;
}

/* Was the forward that this replay repeats captured here? One without a number finds it by its first call. */
static int has_forward(const struct rs_capture *c, const struct rs_window *w)
{
	const struct rs_segment *s;

	for (s = c->inner ? c->inner->pending : NULL; s; s = s->next)
		if (s->name == w->name && !s->open &&
		    (w->unresolved || (w->seg && s->twin == w->seg->since)))
			return 1;
	return 0;
}

static int may_mirror(struct rs_capture *c, const struct rs_window *w)
{
	if (w->capture || w->queues || c->ending || !*w->label)
		return 0;
	return w->kind == RS_WINDOW_FORWARD ? !make_inner(c) : has_forward(c, w);
}

/* Open the window inside. Outer lock held. 0: not done. */
static int mirror(struct rs_capture *c, struct rs_window *w, struct rs_thread *seat)
{
	struct rs_mirror *m = RS_PUSH(c->mirrors);
	struct rs_window **list = seat ? &seat->top : &c->inner->process;
	char text[160];

	if (!m)
		return 0;
	/* an outer replay that is not resolved has the label "replay" */
	if (w->unresolved)
		snprintf(text, sizeof(text), "replay:%s", w->name);
	pthread_mutex_lock(&c->inner->lock);
	m->inner = rs_window_open(c->inner, w->unresolved ? text : w->label);
	if (m->inner && m->inner->kind == w->kind) {
		m->outer = w;
		m->seat = seat;
		m->inner->begin = w->begin;
		if (w->kind == RS_WINDOW_FORWARD)
			m->inner->seg->twin = w->seg->since;
		m->inner->up = *list;
		*list = m->inner;
		w->capture = c;
		c->refs++;
	} else {
		free(m->inner);
		c->mirrors.n--;
	}
	pthread_mutex_unlock(&c->inner->lock);
	return w->capture == c;
}

/* A window of the program with a call in capture c. Outer lock held. */
static void enter_window(struct rs_capture *c, const struct rs_thread *t, struct rs_window *w)
{
	struct rs_thread *seat;

	if (w->closed || w->kind == RS_WINDOW_OTHER || w->capture == c)
		return;
	if (may_mirror(c, w)) {
		seat = t ? seat_of(c, t) : NULL;
		if ((seat || !t) && mirror(c, w, seat)) {
			if (w->kind == RS_WINDOW_FORWARD)
				w->seg->flags |= RS_F_CAPTURE; /* for replays elsewhere */
			return;
		}
	}
	w->mixed = 1;
	*flags_of(w) |= RS_F_CAPTURE;
}

/* Outermost first. */
static void enter_windows(struct rs_capture *c, const struct rs_thread *t, struct rs_window *w)
{
	if (!w)
		return;
	enter_windows(c, t, w->up);
	enter_window(c, t, w);
}

/* Both locks held. The window inside goes; its record is added to the script by the caller. */
static struct rs_replay *close_mirror(struct rs_capture *c, struct rs_oplist *l,
				      const struct rs_mirror *m, int aborted)
{
	struct rs_window *w = m->inner, **at = m->seat ? &m->seat->top : &c->inner->process;
	struct rs_replay *r;
	uint32_t q;

	if (m->outer->mixed || m->outer->queues)
		*flags_of(w) |= RS_F_CAPTURE;
	if (w->last_q && c->seats)
		w->last_q = 1 + rs_queue_id(c->inner, c->seats->inner, c->origin);
	r = rs_window_close(c->inner, l, w, aborted, &q);
	while (*at != w)
		at = &(*at)->up;
	*at = w->up;
	free(w);
	return r;
}

/* Close the i-th mirror. Outer lock held, and released. */
static void close_at(struct rs_capture *c, uint32_t i, int aborted)
{
	struct rs_engine *e = c->outer;
	const struct rs_mirror m = c->mirrors.v[i];
	struct rs_oplist list;
	struct rs_replay *r;

	memmove(&c->mirrors.v[i], &c->mirrors.v[i + 1],
		(--c->mirrors.n - i) * sizeof(c->mirrors.v[0]));
	rs_oplist_init(&list);
	pthread_mutex_lock(&c->inner->lock);
	r = close_mirror(c, &list, &m, aborted);
	pthread_mutex_unlock(&c->inner->lock);
	pthread_mutex_unlock(&e->lock);
	rs_capture_unref(captured_by(e, c->origin, CALL_BEGINS));
	rs_oplist_run(c->inner, &list);
	rs_capture_unref(captured_by(e, c->origin, CALL_ENDS));
	if (!r)
		return;
	pthread_mutex_lock(&e->lock);
	*c->script_end = r;
	c->script_end = &r->next;
	pthread_mutex_unlock(&e->lock);
}

/* The program's window has been closed. Without locks. */
void rs_capture_close(struct rs_engine *e, struct rs_window *w, int aborted)
{
	struct rs_capture *c = w->capture;
	uint32_t i;

	if (!c)
		return;
	w->capture = NULL;
	pthread_mutex_lock(&e->lock);
	for (i = 0; i < c->mirrors.n && c->mirrors.v[i].outer != w; i++)
		;
	if (i < c->mirrors.n)
		close_at(c, i, aborted);
	else
		pthread_mutex_unlock(&e->lock);
	rs_capture_unref(c);
}

static void retire(struct rs_engine *inner)
{
	struct rs_segment *s, *next;

	for (s = inner->pending; s; s = next) {
		next = s->next;
		if (!s->open)
			rs_segment_retire(inner, s);
	}
}

/* A step of the program begins. Outer lock held. */
void rs_capture_step(struct rs_engine *e)
{
	struct rs_capture *c;

	for (c = e->captures; c; c = c->next) {
		if (!c->inner || c->ending)
			continue;
		pthread_mutex_lock(&c->inner->lock);
		retire(c->inner);
		c->inner->step = e->step;
		c->inner->seen_step = e->seen_step;
		pthread_mutex_unlock(&c->inner->lock);
	}
}

void rs_engine_capture_ends(struct rs_engine *e, struct rs_queue q)
{
	struct rs_capture *c;

	pthread_mutex_lock(&e->lock);
	c = begun_on(e, q);
	if (!c) {
		pthread_mutex_unlock(&e->lock);
		return;
	}
	c->refs++;
	c->ending = 1;
	pthread_mutex_unlock(&e->lock);
	/* the last look at its nodes */
	rs_capture_unref(captured_by(e, q, CALL_BEGINS));
	pthread_mutex_lock(&e->lock);
	while (c->mirrors.n) {
		close_at(c, c->mirrors.n - 1, 0);
		pthread_mutex_lock(&e->lock);
	}
	if (c->inner) {
		pthread_mutex_lock(&c->inner->lock);
		retire(c->inner);
		pthread_mutex_unlock(&c->inner->lock);
	}
	pthread_mutex_unlock(&e->lock);
	rs_capture_unref(c);
}

struct rs_capture *rs_engine_capture_end(struct rs_engine *e, struct rs_queue q, int graph)
{
	struct rs_capture *c;
	int is_empty;

	pthread_mutex_lock(&e->lock);
	c = begun_on(e, q);
	if (!c) {
		pthread_mutex_unlock(&e->lock);
		return NULL;
	}
	c->ended = 1;
	is_empty = !graph || !c->inner; /* a forward that nobody replays has digests, too */
	if (!is_empty) {
		rs_capture_script_ends(c);
		e->stats.snapshots += c->inner->stats.snapshots;
	}
	pthread_mutex_unlock(&e->lock);
	if (!is_empty)
		return c;
	rs_capture_unref(c);
	return NULL;
}

void rs_capture_ctx_gone(struct rs_engine *e, uint64_t ctx)
{
	struct rs_results *r, **at;
	struct rs_capture *c;

	for (c = e->captures; c; c = c->next) {
		for (at = &c->spare; (r = *at);) {
			if (r->ctx != ctx) {
				at = &r->next;
				continue;
			}
			*at = r->next;
			free(r->move);
			free(r);
		}
		if (!c->inner)
			continue;
		pthread_mutex_lock(&c->inner->lock);
		rs_words_ctx_gone(c->inner, ctx);
		pthread_mutex_unlock(&c->inner->lock);
		rs_arena_ctx_gone(c->inner, ctx);
		c->ending = 1;
	}
}

int rs_engine_capture_owns(struct rs_engine *e, uint64_t addr)
{
	const struct rs_capture *c;

	pthread_mutex_lock(&e->lock);
	for (c = e->captures; c && !(c->inner && rs_arena_has(c->inner, addr)); c = c->next)
		;
	pthread_mutex_unlock(&e->lock);
	return c != NULL;
}

/* --- calls ---------------------------------------------------------------------------------------- */

/*
 * A call that is being captured. 0: by nobody that is followed, then the windows that it lies in are told that they cannot
 * be vouched for.
 */
int rs_capture_before(struct rs_engine *e, struct rs_thread *t, struct rs_call *call)
{
	struct rs_capture *c = captured_by(e, call->q, CALL_BEGINS);
	struct rs_oplist list;
	struct rs_callstate s = {.l = &list, .call = call};
	struct rs_thread *seat;
	uint64_t place = 0;
	int saved = errno;

	if (!c)
		return 0;
	rs_oplist_init(&list);
	pthread_mutex_lock(&e->lock);
	e->where.wanted = 0;
	enter_windows(c, t, t->top);
	enter_windows(c, NULL, e->process);
	seat = c->inner && !c->ending ? seat_of(c, t) : NULL;
	s.e = c->inner;
	if (seat) {
		pthread_mutex_lock(&c->inner->lock);
		rs_call_plan(&s, seat);
		e->where.wanted |= c->inner->where.wanted;
		c->inner->where.wanted = 0;
		pthread_mutex_unlock(&c->inner->lock);
	}
	place = rs_where_reserve(e, s.number);
	pthread_mutex_unlock(&e->lock);
	if (seat)
		rs_oplist_run(c->inner, &list);
	rs_where_take(e, s.number, place);
	rs_capture_unref(c);
	errno = saved;
	return 1;
}

int rs_capture_after(struct rs_engine *e, struct rs_thread *t, struct rs_call *call, int ok)
{
	struct rs_capture *c = captured_by(e, call->q, LOOK);
	struct rs_oplist list;
	struct rs_callstate s = {.l = &list, .call = call};
	struct rs_thread *seat = NULL;
	int saved = errno;

	if (!c)
		return 0;
	rs_oplist_init(&list);
	pthread_mutex_lock(&e->lock);
	/* a call that has left no product has nothing to be digested */
	if (c->inner && !c->ending && call->private_[0] && (call->private_[1] || !ok) &&
	    (e->config.verify || e->config.mode == RS_MODE_AUDIT))
		seat = seat_of(c, t);
	s.e = c->inner;
	if (seat) {
		pthread_mutex_lock(&c->inner->lock);
		rs_call_plan_after(&s, seat, ok);
		pthread_mutex_unlock(&c->inner->lock);
	}
	pthread_mutex_unlock(&e->lock);
	if (seat)
		rs_oplist_run(c->inner, &list);
	rs_capture_unref(c);
	rs_capture_unref(captured_by(e, call->q, CALL_ENDS));
	errno = saved;
	return 1;
}

/* For the rest of a captured call: engine and thread inside. 0: it is not followed. */
int rs_capture_seat(struct rs_engine **e, struct rs_thread **t, const struct rs_call *call)
{
	struct rs_thread *seat = NULL;
	struct rs_capture *c;

	if ((*e)->outer)
		return 1;
	c = captured_by(*e, call->q, LOOK);
	if (!c)
		return 0;
	pthread_mutex_lock(&(*e)->lock);
	if (c->inner && !c->ending)
		seat = seat_of(c, *t);
	pthread_mutex_unlock(&(*e)->lock);
	if (seat) {
		*e = c->inner; /* alive as long as the program does not end the capture */
		*t = seat;
	}
	rs_capture_unref(c);
	return seat != NULL;
}
