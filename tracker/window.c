/* SPDX-License-Identifier: MIT */
/*
 * Markers (mark.h) to windows: the stack of each thread, pending segments and their retirement.
 *
 * A program that never marks steps gets an implied one per name: when a name starts again after all of
 * its pending invocations were replayed, they are retired.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/callstate.h"
#include "tracker/costing.h"
#include "tracker/mark.h"

/* Claims are void from here on; keeps that only they needed go. */
void rs_segment_retire(struct rs_engine *e, struct rs_segment *s)
{
	rs_costs_retire(s);
	rs_profile_retire(e, s);
	rs_segment_tell(e, s);
	s->retired = 1;
	__atomic_fetch_sub(&e->interested, 1, __ATOMIC_RELAXED);
	if (s->prev)
		s->prev->next = s->next;
	else
		e->pending = s->next;
	if (!e->pending)
		__atomic_store_n(&e->claim_epoch, e->claim_epoch + 2, __ATOMIC_RELAXED);
	if (s->next)
		s->next->prev = s->prev;
	s->next = s->prev = NULL;
	rs_touches_free(e, &s->touches);
	rs_draws_free(e, s);
	if (s->race.alloc)
		rs_alloc_unref(e, s->race.alloc);
	if (s->broken.alloc)
		rs_alloc_unref(e, s->broken.alloc);
	if (s->freed.alloc)
		rs_alloc_unref(e, s->freed.alloc);
	if (s->shared.alloc)
		rs_alloc_unref(e, s->shared.alloc);
	s->race.alloc = s->broken.alloc = s->freed.alloc = s->shared.alloc = NULL;
	rs_segment_unref(e, s);
}

/* What was seen to be overwritten is settled as if it retired; claims made later in an open forward are not prevented. */
void rs_segment_spend(struct rs_engine *e, struct rs_segment *s)
{
	rs_costs_retire(s);
	rs_profile_retire(e, s);
	s->spent = 1;
	rs_touches_free(e, &s->touches);
	rs_draws_free(e, s);
}

/* The first place where something concerns all replays of a segment. */
void rs_segment_note(struct rs_engine *e, struct rs_segment *s, enum rs_check_kind kind,
		     struct rs_alloc *a, uint64_t off, uint64_t len, const struct rs_writer *writer)
{
	struct rs_race *r = kind == RS_CHECK_RACE    ? &s->race
			    : kind == RS_CHECK_FREED ? &s->freed
			    : kind == RS_CHECK_ALIAS ? &s->shared
						     : &s->broken;

	if (r->alloc)
		return;
	*r = (struct rs_race){a, off, len, *writer};
	a->refs++;
	rs_where_want(e);
}

static void pass_on(struct rs_engine *e, struct rs_window *w, enum rs_check_kind kind,
		    const struct rs_race *r)
{
	if (r->alloc)
		rs_place_note(e, w, kind, r->alloc, r->off, r->len, &r->writer);
}

void rs_segment_unref(struct rs_engine *e, struct rs_segment *s)
{
	uint32_t i;

	if (!s || --s->refs)
		return;
	rs_touches_free(e, &s->touches);
	rs_draws_free(e, s);
	for (i = 0; i < s->accesses.n; i++)
		if (s->accesses.v[i].digest)
			rs_words_put(e, s->accesses.v[i].digest);
	rs_log_spare(e, s);
	free(s->overwrites.v);
	free(s);
}

static struct rs_segment *find_pending(struct rs_engine *e, const char *name, int64_t invocation)
{
	struct rs_segment *s;

	for (s = e->pending; s; s = s->next)
		if (s->name == name && (int64_t)s->invocation == invocation)
			return s;
	return NULL;
}

/* Without step markers: a name that starts over after all its replays begins a new round. */
static void imply_step(struct rs_engine *e, const char *name)
{
	const struct rs_window *w;
	struct rs_segment *s, *next;

	for (s = e->pending; s; s = s->next)
		if (s->name == name && (s->open || !s->replays))
			return;
	for (w = e->replays; w; w = w->next_replay)
		if (w->name == name)
			return;
	for (s = e->pending; s; s = next) {
		next = s->next;
		if (s->name == name)
			rs_segment_retire(e, s);
	}
}

uint64_t rs_next_invocation(struct rs_engine *e, const char *name)
{
	const struct rs_segment *s;
	uint64_t n = 0;

	for (s = e->pending; s; s = s->next)
		if (s->name == name && s->invocation >= n)
			n = s->invocation + 1;
	return n;
}

static void begin_forward(struct rs_engine *e, struct rs_window *w, const struct rs_mark *m)
{
	struct rs_segment *s = calloc(1, sizeof(*s)), *old;
	const char *name = rs_intern(e, m->name);
	char label[160];

	if (!s || !name) {
		free(s);
		w->kind = RS_WINDOW_OTHER;
		e->stats.internal_errors++;
		return;
	}
	if (!e->seen_step)
		imply_step(e, name);
	rs_log_take_spare(e, s);
	s->name = name;
	s->invocation = m->number >= 0 ? (uint64_t)m->number : rs_next_invocation(e, name);
	s->step = e->step;
	s->begin_ns = rs_now_ns();
	s->terms = rs_terms_find(e, name);
	s->policy = s->terms ? s->terms->policy : e->policy;
	if (!e->pending) /* what nobody followed until now is taken as ordered */
		rs_order_forget(e);
	s->since = rs_version_next(e);
	old = find_pending(e, name, (int64_t)s->invocation);
	if (old && !old->open)
		rs_segment_retire(e,
				  old); /* the same key again: the later one is meant from now on */
	snprintf(label, sizeof(label), "forward:%s#%llu", name, (unsigned long long)s->invocation);
	s->label = rs_intern(e, label);
	s->open = 1;
	s->refs = 2; /* the list and the window */
	s->next = e->pending;
	if (s->next)
		s->next->prev = s;
	e->pending = s;
	__atomic_fetch_add(&e->interested, 1, __ATOMIC_RELAXED);
	w->seg = s;
	w->label = s->label ? s->label : "";
	e->stats.forwards++;
	if (e->costing) {
		rs_costs_forward_begin(e, s);
		rs_planned_forward(e, s);
	}
}

static void bind_replay(struct rs_engine *e, struct rs_window *w, struct rs_segment *s)
{
	char label[160];

	w->unresolved = 0;
	w->seg = s;
	if (!s) {
		w->rec->flags |= RS_F_NO_FORWARD;
		return;
	}
	w->rec->flags |= s->kept ? RS_F_KEPT : s->spent ? RS_F_SPENT : 0u;
	s->refs += 2; /* the window and its record */
	w->rec->seg = s;
	w->rec->invocation = s->invocation;
	w->rec->k = ++s->replays;
	snprintf(label, sizeof(label), "replay:%s#%llu", s->name,
		 (unsigned long long)s->invocation);
	w->label = rs_intern(e, label);
	if (!w->label)
		w->label = "";
	if (e->costing)
		rs_costs_replay_begin(e, s);
}

/*
 * What the list has to do for the record. Of a process-wide window another thread may have more in hand, and enqueue it
 * later.
 */
static uint32_t pins_of(const struct rs_oplist *l, const struct rs_replay *r)
{
	uint32_t i, n = 0;

	for (i = 0; i < l->n; i++)
		n += l->v[i].rec == r;
	return n;
}

static void begin_replay(struct rs_engine *e, struct rs_window *w, const struct rs_mark *m)
{
	const char *name = rs_intern(e, m->name);
	struct rs_segment *s, *found = NULL;
	unsigned candidates = 0;

	w->rec = calloc(1, sizeof(*w->rec));
	if (!w->rec || !name) {
		free(w->rec);
		w->rec = NULL;
		w->kind = RS_WINDOW_OTHER;
		e->stats.internal_errors++;
		return;
	}
	w->name = w->rec->name = name;
	w->rec->step = e->step;
	w->rec->begin_ns = rs_now_ns();
	w->rec->k = 1;
	w->label = "replay";
	w->rec->invocation = m->number >= 0 ? (uint64_t)m->number : 0;
	w->next_replay = e->replays;
	__atomic_store_n(&e->replays, w, __ATOMIC_RELAXED); /* calm.c looks at it */
	/* also when a step of another thread has retired all that was pending */
	__atomic_fetch_add(&e->interested, 1, __ATOMIC_RELAXED);
	e->stats.replays++;
	if (m->number >= 0) {
		s = find_pending(e, name, m->number);
		bind_replay(e, w, s && !s->open ? s : NULL);
		return;
	}
	for (s = e->pending; s; s = s->next)
		if (s->name == name && !s->open) {
			found = s;
			candidates++;
		}
	if (candidates <= 1)
		bind_replay(e, w, found);
	else
		w->unresolved = 1; /* the first call's inputs decide */
}

/* Does the first call of this forward read just what call c reads? */
static int first_call_fits(const struct rs_segment *s, const struct rs_callstate *c)
{
	const struct rs_logged_call *lc;
	unsigned reads = 0, same = 0;
	uint32_t i, j;

	if (!s->log.n || s->log.v[0].ident != c->call->ident)
		return 0;
	lc = &s->log.v[0];
	for (i = 0; i < c->nranges; i++) {
		const struct rs_range *r = &c->range[i];
		const struct rs_access *x = rs_access_of(c, r);

		if (!(x->dir & RS_READ))
			continue;
		reads++;
		for (j = lc->first; j < lc->first + lc->n; j++) {
			const struct rs_logged_access *la = &s->accesses.v[j];

			if (la->slot == x->slot && la->piece == r->piece && la->dir & RS_READ &&
			    la->serial == r->a->serial && la->off == r->off) {
				same++;
				break;
			}
		}
	}
	return reads && same == reads;
}

void rs_window_resolve(const struct rs_callstate *c, struct rs_window *w)
{
	struct rs_segment *s, *found = NULL;
	unsigned fits = 0;

	for (s = c->e->pending; s; s = s->next)
		if (s->name == w->name && !s->open && first_call_fits(s, c)) {
			found = s;
			fits++;
		}
	bind_replay(c->e, w, fits == 1 ? found : NULL);
}

/* Are no more replays expected after this one? Without a contract or a plan there may be. */
int rs_window_is_last(const struct rs_engine *e, const struct rs_window *w)
{
	const struct rs_segment *s = w->kind == RS_WINDOW_REPLAY ? w->seg : NULL;
	const struct rs_window *other;

	if (!s || s->retired || s->spent)
		return 0;
	for (other = e->replays; other; other = other->next_replay)
		if (other != w && other->seg == s)
			return 0;
	if (s->terms && s->terms->replays && s->replays >= s->terms->replays)
		return 1;
	return s->planned && rs_costs_replays(s) && s->replays >= rs_costs_replays(s);
}

static void end_replay(struct rs_engine *e, struct rs_oplist *l, struct rs_window *w)
{
	struct rs_replay *r = w->rec;
	struct rs_window **at;
	uint32_t q = w->last_q ? w->last_q - 1 : 0;
	int last;

	for (at = &e->replays; *at; at = &(*at)->next_replay)
		if (*at == w) {
			__atomic_store_n(at, w->next_replay, __ATOMIC_RELAXED);
			__atomic_fetch_sub(&e->interested, 1, __ATOMIC_RELAXED);
			break;
		}
	if (w->unresolved)
		bind_replay(e, w, NULL);
	if (e->costing) {
		rs_timing_end(e, l, w);
		rs_costs_window_closed(e, w, 1, w->seg ? w->seg->cost : NULL);
	}
	last = rs_window_is_last(e, w);
	e->ending = last ? w->seg : NULL;
	rs_window_release(e, l, w);
	e->ending = NULL;
	if (w->last_q) {
		uint32_t n = l->n;

		rs_oplist_order(l,
				w->queues | __atomic_exchange_n(&e->digest_queues, RS_QBIT(q),
								__ATOMIC_RELAXED),
				q);
		if (l->n > n)
			rs_op_concerns(&l->v[n],
				       r); /* without it nobody knows when the digests are there */
		r->covered = !l->overflow && pins_of(l, r) == r->pins;
	}
	r->end_ns = rs_now_ns();
	/* what has run of it, too, or was captured elsewhere, is judged here; what capture.c follows is judged there */
	r->captured = w->capture && !w->queues && !(r->flags & RS_F_CAPTURE);
	if (w->capture && w->queues)
		r->flags |= RS_F_CAPTURE;
	if (w->seg) {
		if (w->log_at < w->seg->log.n)
			r->skipped += w->seg->log.n - w->log_at;
		if (r->skipped)
			r->flags |= RS_F_STRUCTURE;
		r->flags |= w->seg->flags;
		rs_where_pass_on(&r->causes, &w->seg->causes);
		pass_on(e, w, RS_CHECK_RACE, &w->seg->race);
		pass_on(e, w, RS_CHECK_BROKEN, &w->seg->broken);
		pass_on(e, w, RS_CHECK_FREED, &w->seg->freed);
		pass_on(e, w, RS_CHECK_ALIAS, &w->seg->shared);
		if (w->balance.calls != w->seg->balance.calls ||
		    w->balance.bytes != w->seg->balance.bytes)
			r->flags |= RS_F_RESIDENCY;
		if (e->costing)
			rs_costs_replay_end(e, w->seg);
		if (last)
			rs_segment_spend(e, w->seg);
		rs_segment_unref(e, w->seg);
		w->seg = NULL;
	}
	rs_touches_free(e, &w->touches);
	w->rec = NULL;
}

/*
 * The window's part of the model ends. A replay's record is returned: it is queued once its operations
 * are enqueued and its event recorded, outside the lock.
 */
struct rs_replay *rs_window_close(struct rs_engine *e, struct rs_oplist *l, struct rs_window *w,
				  int aborted, uint32_t *ret_q)
{
	struct rs_replay *r = w->rec;

	*ret_q = w->last_q;
	if (w->closed)
		return NULL;
	w->closed = 1;
	if (w->kind == RS_WINDOW_FORWARD) {
		w->seg->open = 0;
		w->seg->flags |= aborted ? RS_F_ABORTED : 0u;
		w->seg->balance = w->balance;
		if (!w->capture)
			rs_profile_forward(e, w->seg);
		if (e->costing) {
			rs_timing_end(e, l, w);
			rs_costs_window_closed(e, w, 0, w->seg->cost);
			rs_costs_forward_end(e, w->seg);
		}
		if (!aborted && !rs_terms_calls_fit(w->seg->terms, w->seg))
			w->seg->flags |= RS_F_OTHER_CALLS;
		else if (!aborted)
			rs_places_over(e, w->seg);
		rs_segment_unref(e, w->seg);
		w->seg = NULL;
	} else if (w->kind == RS_WINDOW_REPLAY) {
		r->flags |= aborted ? RS_F_ABORTED : 0u;
		end_replay(e, l, w);
		return r;
	}
	return NULL;
}

/* Enqueue the end of a replay and hand its record to the flight list. Without engine.lock. */
static void launch_record(struct rs_engine *e, struct rs_oplist *l, struct rs_replay *r,
			  uint32_t last_q)
{
	struct rs_queue q = {0, 0};

	rs_oplist_run(e, l);
	if (!r)
		return;
	if (r->captured) {
		pthread_mutex_lock(&e->lock);
		e->stats.replays--;
		rs_replay_free(e, r);
		pthread_mutex_unlock(&e->lock);
		return;
	}
	if (last_q)
		q = rs_queue_of(e, last_q - 1);
	r->ctx = q.ctx;
	if (last_q && e->ops->event_record(e->ops->opaque, q, &r->event)) {
		r->event = 0;
		r->flags |= RS_F_INTERNAL;
	}
	pthread_mutex_lock(&e->lock);
	if (r->fenced && r->refusals != e->refusals)
		r->flags |= RS_F_INTERNAL;
	__atomic_store_n(e->flight_end, r, __ATOMIC_RELAXED);
	e->flight_end = &r->next;
	pthread_mutex_unlock(&e->lock);
}

static void balance(struct rs_window *w, int64_t bytes)
{
	for (; w; w = w->up) {
		w->balance.calls++;
		w->balance.bytes += bytes;
	}
}

/* Memory was allocated (bytes), or is freed (-bytes). engine.lock held. */
void rs_windows_balance(struct rs_engine *e, const struct rs_thread *t, int64_t bytes)
{
	if (t)
		balance(t->top, bytes);
	balance(e->process, bytes);
}

struct rs_window *rs_window_open(struct rs_engine *e, const char *text)
{
	struct rs_window *w = calloc(1, sizeof(*w));
	struct rs_mark m = rs_mark_parse(text);

	if (!w)
		return NULL;
	w->begin = ++e->clock;
	w->label = "";
	w->matched_call = 0;
	if (m.kind == RS_MARK_FORWARD) {
		w->kind = RS_WINDOW_FORWARD;
		begin_forward(e, w, &m);
	} else if (m.kind == RS_MARK_REPLAY) {
		w->kind = RS_WINDOW_REPLAY;
		begin_replay(e, w, &m);
	}
	if (w->kind != RS_WINDOW_OTHER)
		rs_moment_next(e);
	return w;
}

/* Close every window of a list as aborted, innermost first: their end markers did not come. */
static void abort_windows(struct rs_engine *e, struct rs_window **list)
{
	for (;;) {
		struct rs_oplist ops;
		struct rs_replay *r = NULL;
		struct rs_window *w;
		uint32_t q = 0;
		unsigned tries = 0;

		rs_oplist_init(&ops);
		pthread_mutex_lock(&e->lock);
		do {
			for (w = *list; w && (w->closed || w->kind == RS_WINDOW_OTHER); w = w->up)
				;
		} while (w && rs_view_waits(e, w, &tries));
		if (w)
			r = rs_window_close(e, &ops, w, 1, &q);
		pthread_mutex_unlock(&e->lock);
		if (!w)
			return;
		launch_record(e, &ops, r, q);
		rs_capture_close(e, w, 1);
	}
}

static void new_step(struct rs_engine *e, struct rs_thread *t, int64_t number)
{
	struct rs_segment *s, *next;

	abort_windows(e, &t->top);
	abort_windows(e, &e->process);
	pthread_mutex_lock(&e->lock);
	e->step = (uint64_t)number;
	e->seen_step = 1;
	e->stats.steps++;
	for (s = e->pending; s; s = next) {
		next = s->next;
		if (!s->open)
			rs_segment_retire(e, s);
	}
	if (e->costing)
		rs_costs_step(e);
	rs_capture_step(e);
	pthread_mutex_unlock(&e->lock);
	rs_replay_finish_ready(e, 0);
	if (e->costing) {
		rs_planned_step(e);
		rs_timing_calibrate(e);
	}
}

/* Without step markers a forward after a replay begins a new step: for costs and plans, that is. */
static void implied_step(struct rs_engine *e, const char *text)
{
	int begins;

	if (!e->costing || rs_mark_parse(text).kind != RS_MARK_FORWARD)
		return;
	pthread_mutex_lock(&e->lock);
	begins = !e->seen_step && e->costing->replayed && !e->replays;
	if (begins)
		rs_costs_step(e);
	pthread_mutex_unlock(&e->lock);
	if (begins) {
		rs_planned_step(e);
		rs_timing_calibrate(e);
	}
}

/* step: is an instant, also when it is written as a range: its pop ends nothing. */
static int step_marker(struct rs_engine *e, struct rs_thread *t, const char *text)
{
	struct rs_mark m = rs_mark_parse(text);

	if (m.kind != RS_MARK_STEP)
		return 0;
	new_step(e, t, m.number);
	return 1;
}

void rs_engine_mark(struct rs_engine *e, struct rs_thread *t, const char *text)
{
	step_marker(e, t, text);
}

void rs_engine_push(struct rs_engine *e, struct rs_thread *t, const char *text)
{
	struct rs_window *w;

	if (!step_marker(e, t, text))
		implied_step(e, text);
	pthread_mutex_lock(&e->lock);
	w = t->unmatched ? NULL : rs_window_open(e, text);
	if (w) {
		w->up = t->top;
		t->top = w;
	} else {
		t->unmatched++; /* its pop must not end somebody else's window */
		e->stats.internal_errors++;
	}
	pthread_mutex_unlock(&e->lock);
}

/* The window below `above` others goes; the pushes that failed are the last ones. */
void rs_engine_pop_at(struct rs_engine *e, struct rs_thread *t, unsigned above, int forget)
{
	struct rs_window **at = &t->top, *w;
	struct rs_segment *forgotten;
	struct rs_oplist list;
	struct rs_replay *r;
	unsigned tries = 0;
	uint32_t q;

	rs_oplist_init(&list);
	pthread_mutex_lock(&e->lock);
	if (above >= t->unmatched)
		for (above -= t->unmatched; above && *at; above--)
			at = &(*at)->up;
	else
		at = NULL;
	w = at ? *at : NULL;
	if (!w) {
		t->unmatched -= !at;
		pthread_mutex_unlock(&e->lock);
		return;
	}
	while (rs_view_waits(e, w, &tries))
		;
	*at = w->up;
	forgotten = forget && w->kind == RS_WINDOW_FORWARD ? w->seg : NULL;
	r = rs_window_close(e, &list, w, 0, &q);
	if (forgotten)
		rs_segment_retire(e, forgotten);
	pthread_mutex_unlock(&e->lock);
	launch_record(e, &list, r, q);
	rs_capture_close(e, w, 0);
	free(w);
	rs_replay_finish_ready(e, 0);
	rs_thin_ready(e);
}

uint64_t rs_engine_range_start(struct rs_engine *e, struct rs_thread *t, const char *text)
{
	struct rs_window *w;
	uint64_t id;

	if (!step_marker(e, t, text))
		implied_step(e, text);
	pthread_mutex_lock(&e->lock);
	id = ++e->range_id;
	w = rs_window_open(e, text);
	if (w && w->kind == RS_WINDOW_OTHER) {
		free(w);
	} else if (w) {
		w->id = id;
		w->up = e->process;
		e->process = w;
		__atomic_fetch_add(&e->interested, 1, __ATOMIC_RELAXED);
		rs_moment_next(e);
	}
	pthread_mutex_unlock(&e->lock);
	return id;
}

void rs_engine_range_end(struct rs_engine *e, struct rs_thread *t, uint64_t id)
{
	struct rs_oplist list;
	struct rs_window **at, *w;
	struct rs_replay *r;
	unsigned tries = 0;
	uint32_t q;

	(void)t;
	rs_oplist_init(&list);
	pthread_mutex_lock(&e->lock);
	do {
		for (at = &e->process; (w = *at) && w->id != id; at = &w->up)
			;
	} while (w && rs_view_waits(e, w, &tries));
	if (!w) {
		pthread_mutex_unlock(&e->lock);
		return;
	}
	*at = w->up;
	__atomic_fetch_sub(&e->interested, 1, __ATOMIC_RELAXED);
	r = rs_window_close(e, &list, w, 0, &q);
	pthread_mutex_unlock(&e->lock);
	launch_record(e, &list, r, q);
	rs_capture_close(e, w, 0);
	free(w);
	rs_replay_finish_ready(e, 0);
	rs_thin_ready(e);
}

struct rs_thread *rs_thread_create(struct rs_engine *e)
{
	struct rs_thread *t = calloc(1, sizeof(*t));

	if (t)
		t->engine = e;
	return t;
}

void rs_thread_destroy(struct rs_thread *t)
{
	struct rs_window *w;

	if (t->under_way.n)
		rs_view_made(t->engine, t);
	if (t->flying)
		rs_remap_landed(t->engine, t);
	abort_windows(t->engine, &t->top);
	while ((w = t->top)) {
		t->top = w->up;
		free(w);
	}
	free(t->ranges);
	free(t->posts.v);
	free(t->under_way.v);
	free(t);
}
