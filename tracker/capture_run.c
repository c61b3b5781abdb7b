/* SPDX-License-Identifier: MIT */
/*
 * Launches of captured graphs: their digests are copied away behind each launch, and judged by the capture's script
 * when the device has come past that.
 *
 * The graph writes its digests to the same host words at each launch. So a launch on another queue waits for
 * the copy behind the one before (rs_capture_launches), and for judging the script's words point to the copy.
 * Locks: the outer engine's, not held across device operations. The script belongs to the capture, which no longer changes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tracker/capturing.h"

/* --- what is copied ------------------------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
	const struct rs_words *const *x = a, *const *y = b;

	return (*x > *y) - (*x < *y);
}

static void add_digest(struct rs_capture *c, struct rs_words *w)
{
	struct rs_words **added;

	if (!w || !w->w || w->failed)
		return;
	added = RS_PUSH(c->digests);
	if (added)
		*added = w;
	else
		w->failed = 1; /* nobody can tell what it says */
}

void rs_capture_script_ends(struct rs_capture *c)
{
	const struct rs_replay *r;
	uint32_t i, n = 0;

	for (r = c->script; r; r = r->next)
		for (i = 0; i < r->checks.n; i++) {
			add_digest(c, r->checks.v[i].a);
			add_digest(c, r->checks.v[i].b);
		}
	if (!c->digests.n)
		return;
	qsort(c->digests.v, c->digests.n, sizeof(c->digests.v[0]), by_address);
	for (i = 0; i < c->digests.n; i++)
		if (!n || c->digests.v[n - 1] != c->digests.v[i])
			c->digests.v[n++] = c->digests.v[i];
	c->digests.n = n;
	for (i = 0; i < n; i++)
		c->nwords += c->digests.v[i]->n;
}

static struct rs_results *make_results(struct rs_capture *c, struct rs_queue q)
{
	const struct rs_devops *ops = rs_capture_ops(c->outer);
	struct rs_results *r = calloc(1, sizeof(*r));
	uint64_t at = 0;
	uint32_t i;

	if (r)
		r->move = calloc(c->digests.n, sizeof(*r->move));
	if (!r || !r->move || ops->result_alloc(ops->opaque, q, c->nwords, &r->words)) {
		if (r)
			free(r->move);
		free(r);
		return NULL;
	}
	r->ctx = q.ctx;
	for (i = 0; i < c->digests.n; i++) {
		const struct rs_words *w = c->digests.v[i];

		r->move[i] = (struct rs_move){(uintptr_t)(r->words + at), (uintptr_t)w->w,
					      w->n * sizeof(*w->w)};
		at += w->n;
	}
	return r;
}

static struct rs_results *take_results(struct rs_capture *c, struct rs_queue q)
{
	struct rs_results *r;

	pthread_mutex_lock(&c->outer->lock);
	r = c->spare;
	if (r)
		c->spare = r->next;
	pthread_mutex_unlock(&c->outer->lock);
	return r ? r : make_results(c, q);
}

void rs_capture_results_free(struct rs_capture *c)
{
	const struct rs_devops *ops = rs_capture_ops(c->outer);
	struct rs_results *r;

	while ((r = c->spare)) {
		c->spare = r->next;
		ops->result_free(ops->opaque, r->words);
		free(r->move);
		free(r);
	}
}

/* --- launches ------------------------------------------------------------------------------------- */

void rs_capture_launches(struct rs_capture *c, struct rs_queue q)
{
	const struct rs_devops *ops = rs_capture_ops(c->outer);
	struct rs_launched *l;
	int failed;

	pthread_mutex_lock(&c->outer->lock);
	l = c->last;
	if (l && (l->q.ctx != q.ctx || l->q.stream != q.stream))
		l->pins++;
	else
		l = NULL;
	pthread_mutex_unlock(&c->outer->lock);
	if (!l)
		return;
	failed = !l->event || ops->event_wait(ops->opaque, q, l->event);
	pthread_mutex_lock(&c->outer->lock);
	l->pins--;
	if (failed)
		l->flags |=
			RS_F_INTERNAL; /* its results may be overwritten before they are copied */
	pthread_mutex_unlock(&c->outer->lock);
}

/* Enqueue the copies and an event behind them. 0 or -errno. */
static int copy_results(struct rs_capture *c, struct rs_launched *l)
{
	const struct rs_devops *ops = rs_capture_ops(c->outer);
	int err = 0;

	if (c->digests.n) {
		l->results = take_results(c, l->q);
		err = l->results ? ops->move(ops->opaque, l->q, l->results->move, c->digests.n)
				 : -ENOMEM;
	}
	return err ? err : ops->event_record(ops->opaque, l->q, &l->event);
}

static uint64_t replays_of(const struct rs_capture *c)
{
	const struct rs_replay *r;
	uint64_t n = 0;

	for (r = c->script; r; r = r->next)
		n++;
	return n;
}

void rs_capture_launched(struct rs_capture *c, struct rs_queue q, int vouched, int ok)
{
	struct rs_engine *e = c->outer;
	struct rs_launched *l = ok && c->script ? calloc(1, sizeof(*l)) : NULL;
	int saved = errno;

	if (!l) {
		if (ok && c->script)
			rs_capture_embedded(
				c); /* no memory: all that can be said is that nobody knows */
		errno = saved;
		return;
	}
	l->q = q;
	l->flags = vouched && !c->foreign ? 0 : RS_F_CAPTURE;
	l->flags |= copy_results(c, l) ? RS_F_INTERNAL : 0u;
	pthread_mutex_lock(&e->lock);
	l->capture = c;
	c->refs++;
	c->last = l;
	l->step = e->step;
	e->stats.replays += replays_of(c);
	*e->launches_end = l;
	e->launches_end = &l->next;
	pthread_mutex_unlock(&e->lock);
	rs_replay_finish_ready(e, 0);
	errno = saved;
}

/* --- judging -------------------------------------------------------------------------------------- */

/* results NULL: nothing is known of the digests. Outer lock held. */
static void judge(struct rs_capture *c, const struct rs_results *results, uint64_t step,
		  uint32_t flags)
{
	const struct rs_replay *r;
	uint32_t i;

	for (i = 0; results && i < c->digests.n; i++)
		c->digests.v[i]->w = (uint64_t *)(uintptr_t)results->move[i].dst;
	for (r = c->script; r; r = r->next) {
		struct rs_replay now = *r;

		if (!results && c->digests.n)
			now.checks.n = 0; /* the flags say that nothing is known */
		now.step = step;
		now.flags |= flags;
		now.begin_ns = now.end_ns = 0; /* the host has no part in it */
		rs_replay_judge(c->outer, &now);
	}
	for (i = 0; results && i < c->digests.n; i++)
		c->digests.v[i]->w = (uint64_t *)(uintptr_t)results->move[i].src;
}

void rs_capture_embedded(struct rs_capture *c)
{
	pthread_mutex_lock(&c->outer->lock);
	c->outer->stats.replays += replays_of(c);
	judge(c, NULL, c->outer->step, RS_F_CAPTURE);
	pthread_mutex_unlock(&c->outer->lock);
}

/* The first launch of the list has ended. Outer lock held, and released. */
static void settle(struct rs_engine *e, struct rs_launched *l)
{
	struct rs_capture *c = l->capture;

	__atomic_store_n(&e->launches, l->next, __ATOMIC_RELAXED);
	if (!e->launches)
		e->launches_end = &e->launches;
	if (c->last == l)
		c->last = NULL;
	judge(c, l->flags & RS_F_INTERNAL ? NULL : l->results, l->step, l->flags);
	if (l->results) {
		l->results->next = c->spare;
		c->spare = l->results;
	}
	pthread_mutex_unlock(&e->lock);
	rs_capture_unref(c);
	free(l);
}

/* Has the device come past the copies? As for records (compare.c). */
static int passed(const struct rs_devops *ops, const struct rs_launched *l, int wait)
{
	if (!l->event)
		return 1;
	return wait ? ops->event_sync(ops->opaque, l->event) ?: 1
		    : ops->event_done(ops->opaque, l->event);
}

#define PATIENCE 50000u

/*
 * Judge the launches that have ended, oldest first. wait: block the host for those of ctx, or of every context (0); not for
 * ever for one that another thread has in hand.
 */
void rs_capture_harvest(struct rs_engine *e, int wait, uint64_t ctx)
{
	const struct rs_devops *ops = rs_capture_ops(e);
	unsigned patience = wait ? PATIENCE : 0;

	while (__atomic_load_n(&e->launches, __ATOMIC_RELAXED)) {
		struct rs_launched *l;
		uint64_t event;
		int held, done;

		pthread_mutex_lock(&e->lock);
		l = e->launches;
		held = l && (l->busy || l->pins);
		if (l && !held)
			l->busy = 1;
		pthread_mutex_unlock(&e->lock);
		if (held && patience--) {
			nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
			continue;
		}
		if (!l || held)
			return;
		done = passed(ops, l, wait && (!ctx || ctx == l->q.ctx));
		pthread_mutex_lock(&e->lock);
		l->busy = 0;
		if (!done || l->pins) {
			pthread_mutex_unlock(&e->lock);
			if (!done)
				return;
			continue;
		}
		l->flags |= done < 0 ? RS_F_INTERNAL : 0u;
		event = l->event;
		settle(e, l);
		if (event)
			ops->event_free(ops->opaque, event);
	}
}
