/* SPDX-License-Identifier: MIT */
/*
 * The program's windows inside of a capture.
 *
 * A window of the program is mirrored inside at its first captured call, unless something of it has run already or
 * was captured elsewhere, or its forward was: those are rejected as RS030 by the program's engine. What is put back at a
 * replay's end goes into the stream on which the capture began: a node after the last join of another stream would make the
 * capture end in an error.
 *
 * Callers: capture.c, capture_memory.c, window.c. Locks: as there.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/callstate.h"
#include "tracker/capturing.h"

static uint32_t *flags_of(struct rs_window *w)
{
	return w->rec ? &w->rec->flags : &w->seg->flags;
}

/* --- nothing but learning -------------------------------------------------------------------------- */

static int no_alloc(void *o, struct rs_queue q, uint64_t bytes, uint64_t *ret)
{
	(void)o, (void)q, (void)bytes, (void)ret;
	return -ENOMEM;
}

static void no_free(void *o, struct rs_queue q, uint64_t addr)
{
	(void)o, (void)q, (void)addr;
}

static int no_copy(void *o, struct rs_queue q, uint64_t dst, uint64_t src, uint64_t bytes)
{
	(void)o, (void)q, (void)dst, (void)src, (void)bytes;
	return -EIO;
}

static int no_digest(void *o, struct rs_queue q, uint64_t addr, uint64_t bytes, uint64_t *out)
{
	(void)o, (void)q, (void)addr, (void)bytes, (void)out;
	return -EIO;
}

static int no_move(void *o, struct rs_queue q, const struct rs_move *list, uint64_t n)
{
	(void)o, (void)q, (void)list, (void)n;
	return -EIO;
}

static int no_words(void *o, struct rs_queue q, uint64_t words, uint64_t **ret)
{
	(void)o, (void)q, (void)words, (void)ret;
	return -ENOMEM;
}

static void no_words_free(void *o, uint64_t *words)
{
	(void)o, (void)words;
}

static int no_record(void *o, struct rs_queue q, uint64_t *ret)
{
	(void)o, (void)q, (void)ret;
	return -EIO;
}

static int no_wait(void *o, struct rs_queue q, uint64_t event)
{
	(void)o, (void)q, (void)event;
	return -EIO;
}

static int no_event(void *o, uint64_t event)
{
	(void)o, (void)event;
	return -EIO;
}

static void no_event_free(void *o, uint64_t event)
{
	(void)o, (void)event;
}

/* A device that does nothing: what is learned is how calls follow each other, and no node is added to the graph. */
static const struct rs_devops no_device = {
	.alloc = no_alloc,
	.free = no_free,
	.copy = no_copy,
	.digest = no_digest,
	.move = no_move,
	.swap = no_copy,
	.result_alloc = no_words,
	.result_free = no_words_free,
	.event_record = no_record,
	.event_wait = no_wait,
	.event_done = no_event,
	.event_sync = no_event,
	.event_free = no_event_free,
};

/* --- windows --------------------------------------------------------------------------------------- */

/* Outer lock held. 0 or -ENOMEM. */
static int make_inner(struct rs_capture *c)
{
	struct rs_engine_config config = c->outer->config;
	struct rs_engine *inner;

	if (c->inner)
		return 0;
	config.costs = 0;    /* nothing can be measured */
	config.where = NULL; /* the program's engine asks */
	/* graphs of equal captures must be equal, for one may be updated to the other: all, or none */
	if (config.sample > 1)
		config.sample = 0;
	if (config.capture == RS_CAPTURES_LEARN)
		config.sample = config.verify = 0;
	inner = rs_engine_create(
		&config,
		config.capture == RS_CAPTURES_LEARN ? &no_device : rs_capture_ops(c->outer), NULL);
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

struct rs_thread *rs_capture_seat_of(struct rs_capture *c, const struct rs_thread *t)
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
		c->foreign = 1; /* nobody follows what it does */
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
		seat = t ? rs_capture_seat_of(c, t) : NULL;
		if ((seat || !t) && mirror(c, w, seat)) {
			/* for replays elsewhere; and where it is only learned from, nobody vouches for it */
			if (w->kind == RS_WINDOW_FORWARD || rs_capture_only_learns(c))
				*flags_of(w) |= RS_F_CAPTURE;
			return;
		}
	}
	w->mixed = 1;
	*flags_of(w) |= RS_F_CAPTURE;
}

/* Outermost first. */
static void enter_list(struct rs_capture *c, const struct rs_thread *t, struct rs_window *w)
{
	if (!w)
		return;
	enter_list(c, t, w->up);
	enter_window(c, t, w);
}

void rs_capture_enter(struct rs_capture *c, const struct rs_thread *t)
{
	enter_list(c, t, t->top);
	enter_list(c, NULL, c->outer->process);
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

void rs_capture_close_at(struct rs_capture *c, uint32_t i, int aborted)
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
	rs_capture_look(c, RS_CALL_BEGINS);
	rs_oplist_run(c->inner, &list);
	rs_capture_look(c, RS_CALL_ENDS);
	if (!r)
		return;
	pthread_mutex_lock(&e->lock);
	if (rs_capture_only_learns(c)) {
		pthread_mutex_lock(&c->inner->lock);
		rs_replay_free(c->inner, r);
		pthread_mutex_unlock(&c->inner->lock);
	} else {
		*c->script_end = r;
		c->script_end = &r->next;
	}
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
		rs_capture_close_at(c, i, aborted);
	else
		pthread_mutex_unlock(&e->lock);
	rs_capture_unref(c);
}
