/* SPDX-License-Identifier: MIT */
/*
 * The device's time: how long windows take, and the tool's own operations.
 *
 * Two marks around the work (devops.h) and a look at them later; nobody waits. A window's time is that from before
 * its first call to after its last (on several queues: lanes.c), less the tool's own operations inside. Of operations each one is measured at
 * first, and later one in 16; of a segment's windows likewise.
 * The engine's operations go through a table that adds the marks, so that their callers need not know.
 *
 * Locks: rs_costing.lock around lists and samples; never held across device operations.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/costing.h"

#define ALL_OF	     32u /* first windows of a segment */
#define ALL_OPS	     256u
#define ONE_IN	     16u
#define MOST_RUNNING 8192u

/* What this thread's operations are part of. */
static __thread struct rs_timing *inside __attribute__((tls_model("initial-exec")));

struct rs_timing *rs_timing_inside(struct rs_timing *t)
{
	struct rs_timing *before = inside;

	inside = t;
	return before;
}

/* --- samples ------------------------------------------------------------------------------------ */

void rs_samples_add(struct rs_samples *s, uint64_t ns)
{
	s->v[s->n++ % RS_SAMPLES] = ns;
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static uint64_t median(uint64_t *v, uint32_t n)
{
	qsort(v, n, sizeof(*v), by_size);
	return n % 2 ? v[n / 2] : v[n / 2 - 1] + (v[n / 2] - v[n / 2 - 1]) / 2;
}

/*
 * Median, and its standard error as that of normal samples: 1.2533 sigma / sqrt(n), with sigma from the median
 * absolute deviation (1.4826 MAD), which single outliers do not move. Over the kept samples.
 */
void rs_samples_sum(const struct rs_samples *s, struct rs_cost_time *ret)
{
	uint32_t n = s->n < RS_SAMPLES ? (uint32_t)s->n : RS_SAMPLES, root = 1, i;
	uint64_t v[RS_SAMPLES];

	memset(ret, 0, sizeof(*ret));
	if (!n)
		return;
	memcpy(v, s->v, n * sizeof(*v));
	ret->n = s->n;
	ret->median_ns = median(v, n);
	for (i = 0; i < n; i++)
		v[i] = v[i] > ret->median_ns ? v[i] - ret->median_ns : ret->median_ns - v[i];
	while ((root + 1) * (root + 1) <= n)
		root++;
	ret->error_ns = (uint64_t)((double)median(v, n) * 1.4826 * 1.2533 / root);
}

/* Least squares over the samples for which use[] says so. */
static void fit(const struct rs_rate_samples *s, uint32_t n, const uint8_t *use, double *ret_each,
		double *ret_per_byte)
{
	double sb = 0, st = 0, sbb = 0, sbt = 0, m = 0, d;
	uint32_t i;

	for (i = 0; i < n; i++) {
		double b = (double)s->bytes[i], t = (double)s->ns[i];

		if (!use[i])
			continue;
		m++;
		sb += b;
		st += t;
		sbb += b * b;
		sbt += b * t;
	}
	d = m * sbb - sb * sb;
	if (d > 1e-9 * m * sbb) {
		*ret_per_byte = (m * sbt - sb * st) / d;
		*ret_each = (st - *ret_per_byte * sb) / m;
		if (*ret_per_byte >= 0 && *ret_each >= 0)
			return;
	}
	/* one size, or noise: all of it by bytes */
	*ret_each = 0;
	*ret_per_byte = sb > 0 ? st / sb : 0;
}

/* Twice: the second time without what lies far off the first line. */
int rs_rate_fit(const struct rs_rate_samples *s, enum rs_rate_kind kind, struct rs_cost_rate *ret)
{
	uint32_t n = s->n < RS_SAMPLES ? (uint32_t)s->n : RS_SAMPLES, i;
	uint64_t off[RS_SAMPLES], sorted[RS_SAMPLES], limit;
	uint8_t use[RS_SAMPLES];
	double each, slope, d;

	memset(ret, 0, sizeof(*ret));
	ret->kind = kind;
	if (!n)
		return 0;
	memset(use, 1, sizeof(use));
	fit(s, n, use, &each, &slope);
	for (i = 0; i < n; i++) {
		d = (double)s->ns[i] - each - slope * (double)s->bytes[i];
		off[i] = sorted[i] = (uint64_t)(d < 0 ? -d : d);
	}
	limit = 4 * median(sorted, n) + 1;
	for (i = 0; i < n; i++)
		use[i] = off[i] <= limit;
	fit(s, n, use, &each, &slope);
	ret->n = s->n;
	ret->bytes = s->total;
	ret->each_ns = (uint64_t)(each + 0.5);
	ret->gib_ns = (uint64_t)(slope * (double)(1ull << 30) + 0.5);
	return 1;
}

/* --- measurements on their way ------------------------------------------------------------------ */

/* rs_costing.lock held. */
static struct rs_timing *take_spare(struct rs_costing *c)
{
	struct rs_timing *t = c->spare;

	if (t)
		c->spare = t->next;
	else if (c->nrunning < MOST_RUNNING)
		t = malloc(sizeof(*t));
	if (!t)
		return NULL;
	memset(t, 0, sizeof(*t));
	t->refs = 1;
	c->nrunning++;
	return t;
}

/* rs_costing.lock held; marks are the caller's to free. */
static void unref(struct rs_costing *c, struct rs_timing *t)
{
	struct rs_timing *up;

	for (; t && !--t->refs; t = up) {
		up = t->up;
		t->next = c->spare;
		c->spare = t;
		c->nrunning--;
	}
}

static void free_mark(struct rs_engine *e, uint64_t *mark)
{
	const struct rs_devops *real = e->costing->real;

	if (*mark)
		real->mark_free(real->opaque, *mark);
	*mark = 0;
}

static void free_marks(struct rs_engine *e, struct rs_timing *t)
{
	uint64_t mark[2 * RS_LANES + 2];
	unsigned n;

	pthread_mutex_lock(&e->costing->lock);
	n = rs_lanes_take(t, mark);
	pthread_mutex_unlock(&e->costing->lock);
	while (n--)
		free_mark(e, &mark[n]);
}

/* Its end is enqueued: from now on somebody looks at it. Takes over the reference. */
static void run(struct rs_engine *e, struct rs_timing *t)
{
	struct rs_costing *c = e->costing;

	pthread_mutex_lock(&c->lock);
	t->next = NULL;
	*c->running_end = t;
	c->running_end = &t->next;
	pthread_mutex_unlock(&c->lock);
}

/* It cannot be measured. */
static void give_up(struct rs_engine *e, struct rs_timing *t)
{
	struct rs_costing *c = e->costing;
	struct rs_timing *up;

	free_marks(e, t);
	pthread_mutex_lock(&c->lock);
	for (up = t->up; up; up = up->up)
		up->bad = 1;
	unref(c, t);
	pthread_mutex_unlock(&c->lock);
}

static void take_rate(struct rs_costing *c, const struct rs_timing *t, uint64_t ns)
{
	struct rs_rate_samples *s = &c->rate[t->kind];

	s->bytes[s->n % RS_SAMPLES] = t->bytes;
	s->ns[s->n++ % RS_SAMPLES] = ns;
	s->total += t->bytes;
}

/* rs_costing.lock held. */
static void settle(struct rs_costing *c, struct rs_timing *t, uint64_t ns)
{
	struct rs_timing *up;

	if (t->is_op) {
		take_rate(c, t, ns);
		for (up = t->up; up; up = up->up)
			rs_lanes_inner(up, t->queue, ns);
	} else if (!t->bad && t->entry) {
		rs_samples_add(t->is_replay ? &t->entry->replay : &t->entry->forward, ns);
	}
}

/* The first of those that run; NULL: none, or somebody else is looking. */
static struct rs_timing *look_at(struct rs_costing *c)
{
	struct rs_timing *t;

	pthread_mutex_lock(&c->lock);
	t = c->polling ? NULL : c->running;
	if (t)
		c->polling = 1;
	pthread_mutex_unlock(&c->lock);
	return t;
}

void rs_timing_poll(struct rs_engine *e)
{
	struct rs_costing *c = e->costing;
	struct rs_timing *t;
	uint64_t ns = 0;
	int err = 0;

	while (err != -EAGAIN && (t = look_at(c))) {
		err = t->to ? rs_lanes_elapsed(c->real, t, &ns) : -EIO;
		if (err != -EAGAIN)
			free_marks(e, t);
		pthread_mutex_lock(&c->lock);
		if (err != -EAGAIN) {
			c->running = t->next;
			if (!c->running)
				c->running_end = &c->running;
			if (!err)
				settle(c, t, ns);
			else if (t->up)
				t->up->bad = 1;
			unref(c, t);
		}
		c->polling = 0;
		pthread_mutex_unlock(&c->lock);
	}
}

/* --- windows ------------------------------------------------------------------------------------ */

static int is_due(uint64_t n, uint64_t all)
{
	return n < all || n % ONE_IN == 0;
}

void rs_timing_begin(struct rs_engine *e, struct rs_oplist *l, struct rs_window *w, uint32_t q)
{
	struct rs_costing *c = e->costing;
	struct rs_cost_entry *entry = w->seg ? w->seg->cost : NULL;
	struct rs_window *outer;
	struct rs_timing *t;
	struct rs_op *op;
	uint64_t *seen;

	c->last_q = q + 1;
	if (!c->real->mark || !entry)
		return;
	pthread_mutex_lock(&c->lock);
	seen = w->kind == RS_WINDOW_REPLAY ? &entry->replays_seen : &entry->forwards_seen;
	t = is_due((*seen)++, ALL_OF) ? take_spare(c) : NULL;
	pthread_mutex_unlock(&c->lock);
	op = t ? rs_oplist_add(l, RS_OP_MARK, q) : NULL;
	if (!op) {
		pthread_mutex_lock(&c->lock);
		unref(c, t);
		pthread_mutex_unlock(&c->lock);
		return;
	}
	t->entry = entry;
	t->q = q;
	t->is_replay = w->kind == RS_WINDOW_REPLAY;
	for (outer = w->up; outer && !outer->timing; outer = outer->up)
		;
	pthread_mutex_lock(&c->lock);
	t->up = outer ? outer->timing : NULL;
	if (t->up)
		t->up->refs++;
	t->refs++; /* the operation's */
	pthread_mutex_unlock(&c->lock);
	op->timing = t;
	w->timing = t;
}

void rs_timing_end(struct rs_engine *e, struct rs_oplist *l, struct rs_window *w)
{
	struct rs_timing *t = w->timing;
	struct rs_op *op;

	w->timing = NULL;
	if (!t)
		return;
	rs_lanes_end(e, l, t);
	op = rs_oplist_add(l, RS_OP_MARK, t->q); /* the last one: then it is complete */
	if (op) {
		op->timing = t;
		op->back = 1;
	} else { /* its begin may still be on its way: only the reference goes */
		pthread_mutex_lock(&e->costing->lock);
		t->bad = 1;
		unref(e->costing, t);
		pthread_mutex_unlock(&e->costing->lock);
	}
}

/* Are all marks there that a measurement needs? rs_costing.lock held. */
static int is_complete(struct rs_timing *t)
{
	for (uint32_t i = 0; i < t->nlanes; i++)
		t->bad |= !t->lane[i].from || !t->lane[i].to;
	return t->from && t->to;
}

/* Its last mark is there, or could not be had. A begin that another thread is still about to enqueue comes too late. */
static void ended(struct rs_engine *e, struct rs_timing *t)
{
	struct rs_costing *c = e->costing;
	uint64_t mark[2 * RS_LANES + 2];
	unsigned n = 0;
	int complete;

	pthread_mutex_lock(&c->lock);
	t->ended = 1;
	complete = is_complete(t);
	if (!complete) {
		n = rs_lanes_take(t, mark);
		t->bad = 1;
		for (struct rs_timing *up = t->up; up; up = up->up)
			up->bad = 1;
		unref(c, t);
	}
	pthread_mutex_unlock(&c->lock);
	while (n--)
		free_mark(e, &mark[n]);
	if (complete)
		run(e, t);
}

int rs_timing_mark(struct rs_engine *e, const struct rs_op *op)
{
	const struct rs_devops *real = e->costing->real;
	struct rs_costing *c = e->costing;
	int is_last = op->back && !op->off;
	struct rs_timing *t = op->timing;
	uint64_t mark = 0, *place;

	if (real->mark(real->opaque, rs_queue_of(e, op->to), &mark))
		mark = 0;
	pthread_mutex_lock(&c->lock);
	place = t->refs > 1 || is_last ? rs_lanes_place(t, op) : NULL;
	if (place && (is_last || !t->bad)) { /* its window is still there */
		*place = mark;
		mark = 0;
	}
	if (!is_last)
		unref(c, t);
	pthread_mutex_unlock(&c->lock);
	free_mark(e, &mark);
	if (is_last)
		ended(e, t);
	return 0;
}

/* The list's operations belong to w; see rs_oplist_run. engine.lock held. */
void rs_timing_list(struct rs_engine *e, struct rs_oplist *l, const struct rs_window *w)
{
	struct rs_costing *c = e->costing;

	if (l->timing == w->timing) /* of most windows, and calls, nothing is measured */
		return;
	pthread_mutex_lock(&c->lock);
	unref(c, l->timing);
	l->timing = w->timing;
	if (l->timing)
		l->timing->refs++;
	pthread_mutex_unlock(&c->lock);
}

void rs_timing_list_done(struct rs_engine *e, struct rs_oplist *l)
{
	struct rs_costing *c = e->costing;

	pthread_mutex_lock(&c->lock);
	unref(c, l->timing);
	pthread_mutex_unlock(&c->lock);
	l->timing = NULL;
}

/* --- operations --------------------------------------------------------------------------------- */

static struct rs_timing *op_begins(struct rs_engine *e, struct rs_queue q, enum rs_rate_kind kind,
				   uint64_t bytes)
{
	struct rs_costing *c = e->costing;
	struct rs_timing *t = NULL;

	if (!c->real->mark)
		return NULL;
	pthread_mutex_lock(&c->lock);
	/* inside of a window that is measured, all of them are: its time is what is left */
	if (inside || is_due(c->ops_seen[kind]++, ALL_OPS))
		t = take_spare(c);
	if (t) {
		t->up = inside;
		if (inside)
			inside->refs++;
	} else if (inside) {
		inside->bad = 1;
	}
	pthread_mutex_unlock(&c->lock);
	if (!t)
		return NULL;
	t->is_op = 1;
	t->queue = q;
	t->kind = (uint8_t)kind;
	t->bytes = bytes;
	if (!c->real->mark(c->real->opaque, q, &t->from))
		return t;
	t->from = 0;
	give_up(e, t);
	return NULL;
}

static int op_ended(struct rs_engine *e, struct rs_queue q, struct rs_timing *t, int err)
{
	const struct rs_devops *real;

	if (!t) /* without costs, too */
		return err;
	real = e->costing->real;
	if (!err && !real->mark(real->opaque, q, &t->to)) {
		run(e, t);
		return 0;
	}
	t->to = 0;
	give_up(e, t);
	return err;
}

struct rs_timing *rs_timing_op_begins(struct rs_engine *e, struct rs_queue q,
				      enum rs_rate_kind kind, uint64_t bytes)
{
	return op_begins(e, q, kind, bytes);
}

int rs_timing_op_ended(struct rs_engine *e, struct rs_queue q, struct rs_timing *t, int err)
{
	return op_ended(e, q, t, err);
}

#define REAL ((const struct rs_devops *)((struct rs_engine *)opaque)->costing->real)

static int timed_copy(void *opaque, struct rs_queue q, uint64_t dst, uint64_t src, uint64_t bytes)
{
	struct rs_timing *t = op_begins(opaque, q, RS_RATE_COPY, bytes);

	return op_ended(opaque, q, t, REAL->copy(REAL->opaque, q, dst, src, bytes));
}

static int timed_digest(void *opaque, struct rs_queue q, uint64_t addr, uint64_t bytes,
			uint64_t *out)
{
	struct rs_timing *t = op_begins(opaque, q, RS_RATE_DIGEST, bytes);

	return op_ended(opaque, q, t, REAL->digest(REAL->opaque, q, addr, bytes, out));
}

static int timed_digest_many(void *opaque, struct rs_queue q, const struct rs_piece *list,
			     uint64_t n)
{
	struct rs_timing *t;
	uint64_t bytes = 0, i;

	for (i = 0; i < n; i++)
		bytes += list[i].bytes;
	t = op_begins(opaque, q, RS_RATE_DIGEST, bytes);
	return op_ended(opaque, q, t, REAL->digest_many(REAL->opaque, q, list, n));
}

static int timed_move(void *opaque, struct rs_queue q, const struct rs_move *list, uint64_t n)
{
	struct rs_timing *t;
	uint64_t bytes = 0, i;

	for (i = 0; i < n; i++)
		bytes += list[i].bytes;
	t = op_begins(opaque, q, RS_RATE_MOVE, bytes);
	return op_ended(opaque, q, t, REAL->move(REAL->opaque, q, list, n));
}

static int timed_swap(void *opaque, struct rs_queue q, uint64_t a, uint64_t b, uint64_t bytes)
{
	struct rs_timing *t = op_begins(opaque, q, RS_RATE_SWAP, bytes);

	return op_ended(opaque, q, t, REAL->swap(REAL->opaque, q, a, b, bytes));
}

static int timed_diff(void *opaque, struct rs_queue q, uint64_t a, uint64_t b, uint64_t bytes,
		      uint64_t *out)
{
	struct rs_timing *t = op_begins(opaque, q, RS_RATE_DIFF, bytes);

	return op_ended(opaque, q, t, REAL->diff(REAL->opaque, q, a, b, bytes, out));
}

static int timed_diff_many(void *opaque, struct rs_queue q, const struct rs_versus *list,
			   uint64_t n)
{
	struct rs_timing *t;
	uint64_t bytes = 0, i;

	for (i = 0; i < n; i++)
		bytes += list[i].bytes;
	t = op_begins(opaque, q, RS_RATE_DIFF, bytes);
	return op_ended(opaque, q, t, REAL->diff_many(REAL->opaque, q, list, n));
}

/* The others go through as they are: F(result, name, parameters after opaque, arguments). */
#define FORWARDED(F)                                                                               \
	F(int, alloc, (void *opaque, struct rs_queue q, uint64_t bytes, uint64_t *ret),            \
	  (REAL->opaque, q, bytes, ret))                                                           \
	F(void, free, (void *opaque, struct rs_queue q, uint64_t addr), (REAL->opaque, q, addr))   \
	F(int, result_alloc, (void *opaque, struct rs_queue q, uint64_t n, uint64_t **ret),        \
	  (REAL->opaque, q, n, ret))                                                               \
	F(void, result_free, (void *opaque, uint64_t *words), (REAL->opaque, words))               \
	F(int, event_record, (void *opaque, struct rs_queue q, uint64_t *ret),                     \
	  (REAL->opaque, q, ret))                                                                  \
	F(int, event_wait, (void *opaque, struct rs_queue q, uint64_t event),                      \
	  (REAL->opaque, q, event))                                                                \
	F(int, event_done, (void *opaque, uint64_t event), (REAL->opaque, event))                  \
	F(int, event_sync, (void *opaque, uint64_t event), (REAL->opaque, event))                  \
	F(void, event_free, (void *opaque, uint64_t event), (REAL->opaque, event))                 \
	F(int, frame_alloc,                                                                        \
	  (void *opaque, struct rs_queue q, uint64_t addr, uint64_t bytes, uint64_t *ret,          \
	   uint64_t *ret_addr),                                                                    \
	  (REAL->opaque, q, addr, bytes, ret, ret_addr))                                           \
	F(int, frame_view,                                                                         \
	  (void *opaque, struct rs_queue q, uint64_t addr, uint64_t bytes, uint64_t *ret,          \
	   uint64_t *ret_addr),                                                                    \
	  (REAL->opaque, q, addr, bytes, ret, ret_addr))                                           \
	F(void, frame_free, (void *opaque, uint64_t frame), (REAL->opaque, frame))                 \
	F(int, remap,                                                                              \
	  (void *opaque, uint64_t addr, uint64_t bytes, uint64_t home, uint64_t from,              \
	   uint64_t to),                                                                           \
	  (REAL->opaque, addr, bytes, home, from, to))                                             \
	F(int, event_within, (void *opaque, uint64_t event, uint64_t ns), (REAL->opaque, event, ns))

#define F(result, name, params, args)                                                              \
	static result pass_##name params                                                           \
	{                                                                                          \
		return REAL->name args;                                                            \
	}
FORWARDED(F)
#undef F

void rs_timing_init(struct rs_engine *e)
{
	struct rs_costing *c = e->costing;

	c->real = e->ops;
	c->timed = (struct rs_devops){.opaque = e,
				      .copy = timed_copy,
				      .digest = timed_digest,
				      .digest_many = e->ops->digest_many ? timed_digest_many : NULL,
				      .move = timed_move,
				      .swap = timed_swap,
				      .diff = timed_diff,
				      .diff_many = e->ops->diff_many ? timed_diff_many : NULL,
#define F(result, name, params, args) .name = pass_##name,
				      FORWARDED(F)
#undef F
	};
	if (!c->real->remap)
		c->timed.remap = NULL;
	e->ops = &c->timed;
}

void rs_timing_fini(struct rs_engine *e)
{
	struct rs_costing *c = e->costing;
	struct rs_timing *t, *next;

	for (t = c->running; t; t = next) {
		next = t->next;
		free_marks(e, t);
		pthread_mutex_lock(&c->lock);
		unref(c, t);
		pthread_mutex_unlock(&c->lock);
	}
	c->running = NULL;
	for (t = c->spare; t; t = next) {
		next = t->next;
		free(t);
	}
	e->ops = c->real;
}
