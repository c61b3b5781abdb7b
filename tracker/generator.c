/* SPDX-License-Identifier: MIT */
/*
 * Draws from generators whose state the engine cannot read: recorded by forwards, served to replays.
 *
 * A replay's n-th draw is its forward's n-th, from the same generator and of the same size. Preserve
 * copies what the forward drew into the replay's output and leaves the generator alone, so it stays at P2
 * whatever its type: exact where an offset could not be restored (pool orderings, MTGP32, values produced in
 * pairs), at the price of the output's bytes. Audit compares positions.
 *
 * Callers: the shim's cuRAND wrappers, between rs_engine_before and rs_engine_after, any thread.
 * engine.lock is taken; it is not held across devops operations.
 */
#include <stdlib.h>

#include "tracker/model.h"

/* A copy of drawn bytes; the forwards that enclose one draw share it. */
struct rs_drawn {
	struct rs_block *block; /* NULL: audit, or no memory */
	uint32_t refs;
};

static const struct rs_access *output_of(const struct rs_call *call)
{
	unsigned i;

	for (i = 0; i < call->naccess; i++)
		if (call->access[i].dir & RS_WRITE && !call->access[i].whole)
			return &call->access[i];
	return NULL;
}

/* engine.lock held. */
static void unref_drawn(struct rs_engine *e, struct rs_drawn *d)
{
	if (!d || --d->refs)
		return;
	if (d->block) {
		e->stats.snapshot_bytes -= d->block->bytes;
		rs_block_put(e, d->block);
	}
	free(d);
}

void rs_draws_free(struct rs_engine *e, struct rs_segment *s)
{
	uint32_t i;

	for (i = 0; i < s->draws.n; i++)
		unref_drawn(e, s->draws.v[i].drawn);
	free(s->draws.v);
	s->draws.v = NULL;
	s->draws.n = s->draws.cap = 0;
}

/* The innermost open replay of the thread, or of the process. */
static struct rs_window *replay_around(struct rs_engine *e, struct rs_thread *t)
{
	struct rs_window *w;

	for (w = t->top; w; w = w->up)
		if (!w->closed && w->kind == RS_WINDOW_REPLAY)
			return w;
	for (w = e->process; w; w = w->up)
		if (!w->closed && w->kind == RS_WINDOW_REPLAY)
			return w;
	return NULL;
}

/* An open forward whose replay is to be served; one that keeps its activations is not replayed. */
static int wants_draws(const struct rs_window *w)
{
	return !w->closed && w->kind == RS_WINDOW_FORWARD && !w->seg->kept;
}

/*
 * The forwards that record this draw: those inside the innermost replay, and of the process. All get a
 * reference to d. engine.lock held.
 */
static void record_in_forwards(struct rs_engine *e, struct rs_thread *t, struct rs_drawn *d,
			       uint64_t generator, uint64_t position, uint64_t bytes)
{
	struct rs_window *lists[2] = {t->top, e->process}, *w;
	unsigned i;

	for (i = 0; i < 2; i++) {
		for (w = lists[i]; w; w = w->up) {
			struct rs_draw *draw;

			if (w->closed || w->kind == RS_WINDOW_OTHER)
				continue;
			if (w->kind == RS_WINDOW_REPLAY)
				break; /* what encloses a replay learns nothing from it */
			if (!wants_draws(w))
				continue;
			draw = RS_PUSH(w->seg->draws);
			if (!draw) {
				w->seg->flags |= RS_F_INTERNAL;
				continue;
			}
			*draw = (struct rs_draw){generator, position, bytes, d};
			d->refs++;
		}
	}
}

/* Is there a forward that wants the bytes? engine.lock held. */
static int forward_open(struct rs_engine *e, const struct rs_thread *t)
{
	const struct rs_window *w;

	for (w = t->top; w && (w->closed || w->kind != RS_WINDOW_REPLAY); w = w->up)
		if (wants_draws(w))
			return 1;
	for (w = e->process; w; w = w->up)
		if (wants_draws(w))
			return 1;
	return 0;
}

/* Copy the output away on its own queue. Without engine.lock; NULL: no memory. */
static struct rs_block *save_output(struct rs_engine *e, uint32_t q, const struct rs_access *out)
{
	struct rs_block *b = rs_block_get(e, q, out->bytes);

	if (b && e->ops->copy(e->ops->opaque, rs_queue_of(e, q), b->addr, out->addr, out->bytes)) {
		rs_block_put(e, b);
		return NULL;
	}
	return b;
}

static void record(struct rs_engine *e, struct rs_thread *t, const struct rs_call *call,
		   uint64_t generator, uint64_t position)
{
	const struct rs_access *out = output_of(call);
	struct rs_drawn *d;
	uint32_t q;
	int wanted;

	if (call->capturing && !rs_capture_seat(&e, &t, call))
		return;
	pthread_mutex_lock(&e->lock);
	q = rs_queue_id(e, t, call->q);
	wanted = forward_open(e, t);
	pthread_mutex_unlock(&e->lock);
	if (!wanted || !out)
		return;
	d = calloc(1, sizeof(*d));
	if (!d)
		return; /* the replay finds no draw of its own and says so */
	d->refs = 1;
	if (e->config.mode == RS_MODE_PRESERVE)
		d->block = save_output(e, q, out);
	pthread_mutex_lock(&e->lock);
	if (d->block) {
		e->stats.snapshots++;
		e->stats.snapshot_bytes += d->block->bytes;
		if (e->stats.snapshot_bytes > e->stats.snapshot_bytes_peak)
			e->stats.snapshot_bytes_peak = e->stats.snapshot_bytes;
	}
	record_in_forwards(e, t, d, generator, position, out->bytes);
	unref_drawn(e, d);
	pthread_mutex_unlock(&e->lock);
}

void rs_engine_drawn(struct rs_engine *e, struct rs_thread *t, const struct rs_call *call,
		     uint64_t generator, uint64_t position)
{
	record(e, t, call, generator, position);
}

/* The draw is not that of the forward. */
static void blame(struct rs_engine *e, struct rs_window *w, const struct rs_call *call,
		  uint32_t flag)
{
	const struct rs_writer who = {.name = call->name,
				      .kind = (uint8_t)call->kind,
				      .how = RS_HOW_EXACT,
				      .call = call->private_[0],
				      .step = e->step,
				      .window = w->label};

	rs_where_flags(e, w, flag, &who);
}

/* The forward's draw that this one repeats, with a reference to its bytes. engine.lock held. */
static struct rs_drawn *match_draw(struct rs_engine *e, struct rs_window *w,
				   const struct rs_call *call, const struct rs_access *out,
				   uint64_t generator, uint64_t position)
{
	const struct rs_draw *d;

	if (!w->seg)
		return NULL; /* no forward: the record says so already */
	if (w->draw_at >= w->seg->draws.n)
		goto unseen;
	d = &w->seg->draws.v[w->draw_at++];
	if (d->generator != generator || d->bytes != out->bytes)
		goto unseen;
	if (e->config.mode == RS_MODE_AUDIT) {
		if (d->position != position)
			blame(e, w, call, RS_F_RANDOM);
		return NULL;
	}
	if (!d->drawn->block) {
		w->rec->flags |= RS_F_LOST;
		return NULL;
	}
	d->drawn->refs++;
	return d->drawn;
unseen:
	blame(e, w, call, RS_F_OTHER_DRAWS);
	return NULL;
}

int rs_engine_draw(struct rs_engine *e, struct rs_thread *t, const struct rs_call *call,
		   uint64_t generator, uint64_t position)
{
	const struct rs_access *out = output_of(call);
	struct rs_replay *rec = NULL;
	struct rs_drawn *d = NULL;
	struct rs_window *w;
	uint64_t place;
	uint32_t q = 0;
	int served = 0;

	if (!out || (call->capturing && !rs_capture_seat(&e, &t, call)))
		return 0;
	pthread_mutex_lock(&e->lock);
	e->where.wanted = 0;
	w = replay_around(e, t);
	if (w) {
		q = rs_queue_id(e, t, call->q);
		d = match_draw(e, w, call, out, generator, position);
	}
	if (d) { /* another thread may close a window of the process meanwhile */
		rec = w->rec;
		rec->pins++;
	}
	place = rs_where_reserve(e, call->private_[0]);
	pthread_mutex_unlock(&e->lock);
	rs_where_take(e, call->private_[0], place);
	if (!d)
		return 0;
	if (!rs_order_now(e, rs_block_users(e, d->block), q)) {
		rs_block_used(e, d->block, q);
		served = !e->ops->copy(e->ops->opaque, rs_queue_of(e, q), out->addr, d->block->addr,
				       out->bytes);
	}
	pthread_mutex_lock(&e->lock);
	if (!served)
		rec->flags |= RS_F_LOST;
	rec->pins--;
	unref_drawn(e, d);
	pthread_mutex_unlock(&e->lock);
	if (served)
		record(e, t, call, generator, position); /* for forwards inside the replay */
	return served;
}
