/* SPDX-License-Identifier: MIT */
/*
 * Device operations: planned under engine.lock, enqueued after it was released.
 *
 * Between planning and enqueueing the plan's effect is in the model (a keep that is PLANNED, a version already set back), but
 * not on the device. Another thread that comes to such memory waits for the enqueueing: views.c.
 * What an operation refers to is pinned; failures are settled under the lock at the end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/costing.h"
#include "tracker/ops.h"

void rs_oplist_init(struct rs_oplist *l)
{
	l->v = l->fixed;
	l->n = 0;
	l->cap = sizeof(l->fixed) / sizeof(l->fixed[0]);
	l->overflow = 0;
	l->unordered = l->borrowed = 0;
	l->refused = 0;
	l->timing = NULL;
}

/* NULL when there is no memory: the caller marks what it wanted as lost. */
struct rs_op *rs_oplist_add(struct rs_oplist *l, enum rs_op_kind kind, uint32_t to)
{
	struct rs_op *op;

	if (l->n == l->cap) {
		struct rs_op *v = malloc(l->cap * 2 * sizeof(*v));

		if (!v) {
			l->overflow = 1;
			return NULL;
		}
		memcpy(v, l->v, l->n * sizeof(*v));
		if (l->v != l->fixed)
			free(l->v);
		l->v = v;
		l->cap *= 2;
	}
	op = &l->v[l->n++];
	memset(op, 0, sizeof(*op));
	op->kind = (uint8_t)kind;
	op->to = to;
	return op;
}

void rs_oplist_order(struct rs_oplist *l, uint64_t mask, uint32_t to)
{
	struct rs_op *op;

	if (to < 63)
		mask &= ~RS_QBIT(to);
	if (!mask)
		return;
	op = rs_oplist_add(l, RS_OP_ORDER, to);
	if (op)
		op->mask = mask;
	else
		l->unordered = 1;
}

void rs_oplist_fence(struct rs_oplist *l, uint64_t mask, struct rs_alloc *a, uint32_t to)
{
	uint32_t n = l->n;

	rs_oplist_order(l, mask, to);
	if (l->n == n) {
		l->refused |= l->unordered ? mask : 0;
		return;
	}
	l->v[n].fence = 1;
	l->v[n].alloc = a;
	if (a)
		a->refs++;
}

struct rs_queue rs_queue_of(struct rs_engine *e, uint32_t id)
{
	struct rs_queue q;

	if (id < RS_CLOCKS) { /* whoever has its id knows that it is there */
		q.ctx = __atomic_load_n(&e->handle[id].ctx, __ATOMIC_RELAXED);
		q.stream = __atomic_load_n(&e->handle[id].stream, __ATOMIC_RELAXED);
		return q;
	}
	pthread_mutex_lock(&e->lock);
	q = e->queues.v[id].q;
	pthread_mutex_unlock(&e->lock);
	return q;
}

static int order_one(struct rs_engine *e, uint32_t from, struct rs_queue to)
{
	const struct rs_devops *ops = e->ops;
	struct rs_qstate state;
	uint64_t event;
	int err;

	pthread_mutex_lock(&e->lock);
	state = e->queues.v[from];
	pthread_mutex_unlock(&e->lock);
	if (__atomic_load_n(&e->stalling, __ATOMIC_RELAXED) & RS_QBIT(from) && !state.dead) {
		if (__atomic_load_n(&e->used_since, __ATOMIC_RELAXED) & RS_QBIT(from))
			return -EDEADLK;
		return state.safe_event ? ops->event_wait(ops->opaque, to, state.safe_event) : -EIO;
	}
	if (state.dead)
		return state.final_event ? ops->event_wait(ops->opaque, to, state.final_event) : 0;
	err = ops->event_record(ops->opaque, state.q, &event);
	if (err)
		return err;
	err = ops->event_wait(ops->opaque, to, event);
	ops->event_free(ops->opaque, event);
	return err;
}

int rs_order_now(struct rs_engine *e, uint64_t mask, uint32_t to)
{
	struct rs_queue q;
	uint32_t id, n;
	int err = 0;

	if (to < 63)
		mask &= ~RS_QBIT(to);
	if (!mask)
		return 0;
	q = rs_queue_of(e, to);
	pthread_mutex_lock(&e->lock);
	n = e->queues.n;
	pthread_mutex_unlock(&e->lock);
	for (id = 0; id < n && !err; id++)
		if (id != to && mask & RS_QBIT(id))
			err = order_one(e, id, q);
	/* the driver has refused: then the host does the waiting, where it can */
	if (err && err != -EXDEV && err != -EDEADLK && !e->outer && e->ops->event_within)
		err = rs_remap_wait(e, mask, 0);
	return err;
}

int rs_op_digest(struct rs_engine *e, const struct rs_op *op)
{
	int err = rs_words_fill(e, op->to, op->words);

	if (!err)
		err = e->ops->digest(e->ops->opaque, rs_queue_of(e, op->to), op->addr, op->len,
				     op->words->w);
	return err;
}

int rs_op_digest_keep(struct rs_engine *e, const struct rs_op *op)
{
	if (!op->words || !rs_op_digest(e, op))
		return 0;
	op->words->failed = 1;
	/* it is a second opinion in preserve mode: its failure does not lose the bytes */
	return e->config.mode == RS_MODE_PRESERVE ? 0 : -EIO;
}

/* Room for the bytes [op->addr, + op->len) in the arena, where wide accesses can copy them. */
int rs_op_room(struct rs_engine *e, struct rs_op *op)
{
	uint64_t phase = op->addr % 16;

	op->keep->block = op->keep->framed ? rs_frame_get(e, op) : NULL;
	op->keep->framed = op->keep->block != NULL;
	if (!op->keep->block)
		op->keep->block = rs_block_get(e, op->to, op->len + phase);
	if (!op->keep->block)
		return -ENOMEM;
	op->keep->addr = op->keep->block->addr + phase;
	return 0;
}

int rs_op_copy(struct rs_engine *e, const struct rs_op *op, uint64_t dst, uint64_t src)
{
	return e->ops->copy(e->ops->opaque, rs_queue_of(e, op->to), dst, src, op->len);
}

/* A keep's bytes are there, or err says why not. */
int rs_op_kept(struct rs_engine *e, struct rs_op *op, int err)
{
	struct rs_keep *k = op->keep;

	if (err && k->block) {
		rs_block_put(e, k->block);
		k->block = NULL;
	}
	__atomic_store_n(&k->state, err ? RS_KEEP_FAILED : RS_KEEP_READY, __ATOMIC_RELEASE);
	return err;
}

static int take_keep(struct rs_engine *e, struct rs_op *op)
{
	int err = 0;

	if (e->config.mode == RS_MODE_PRESERVE) {
		err = rs_op_room(e, op);
		if (!err)
			err = rs_op_copy(e, op, op->keep->addr, op->addr);
	}
	return rs_op_kept(e, op, err ? err : rs_op_digest_keep(e, op));
}

uint64_t rs_op_source(const struct rs_op *op)
{
	return op->keep->addr + (op->off - op->keep->off);
}

/* May bytes be put over the live ones? */
int rs_op_may_restore(const struct rs_op *op)
{
	struct rs_keep *k = op->keep;

	if (__atomic_load_n(&k->state, __ATOMIC_ACQUIRE) != RS_KEEP_READY || !k->block)
		return -ENODATA;
	if (op->guard && __atomic_load_n(&op->guard->state, __ATOMIC_ACQUIRE) != RS_KEEP_READY)
		return -ENODATA; /* what would be overwritten has no copy: leave it alone */
	return 0;
}

static int restore(struct rs_engine *e, struct rs_op *op)
{
	struct rs_block *b = op->keep->block;
	int err = rs_op_may_restore(op);

	if (!err)
		err = rs_order_now(e, rs_block_users(e, b), op->to);
	if (err)
		return err;
	rs_block_used(e, b, op->to);
	return rs_op_copy(e, op, op->addr, rs_op_source(op));
}

/*
 * A keep's bytes and the live ones change places. On the way back P2 must arrive: if the device cannot swap, it is
 * copied, and the other bytes are lost.
 */
int rs_op_exchange(struct rs_engine *e, struct rs_op *op)
{
	struct rs_queue q = rs_queue_of(e, op->to);
	struct rs_keep *k = op->keep;
	int err;

	if (__atomic_load_n(&k->state, __ATOMIC_ACQUIRE) != RS_KEEP_READY || !k->block)
		return -ENODATA;
	err = rs_order_now(e, rs_block_users(e, k->block), op->to);
	if (err)
		return err;
	rs_block_used(e, k->block, op->to);
	err = e->ops->swap(e->ops->opaque, q, op->addr, k->addr, op->len);
	if (!err)
		return 0;
	__atomic_store_n(&k->state, RS_KEEP_FAILED, __ATOMIC_RELEASE);
	__atomic_store_n(&e->no_swap, 1, __ATOMIC_RELAXED); /* from now on by copies */
	return op->back ? rs_op_copy(e, op, op->addr, k->addr) : err;
}

static int run_one(struct rs_engine *e, struct rs_op *op)
{
	if (op->alloc && !op->fence && (!op->addr || rs_remap_is_lost(op->alloc)))
		return -EFAULT; /* unmapped, or in pieces */
	switch ((enum rs_op_kind)op->kind) {
	case RS_OP_ORDER:
		return rs_order_now(e, op->mask, op->to);
	case RS_OP_KEEP:
		return take_keep(e, op);
	case RS_OP_RESTORE:
		return restore(e, op);
	case RS_OP_DIGEST:
		return rs_op_digest(e, op);
	case RS_OP_SWAP:
		return rs_op_exchange(e, op);
	case RS_OP_REMAP:
		return rs_remap_run(e, op);
	case RS_OP_DIFF:
		return rs_thin_diff(e, op);
	case RS_OP_MOVE:
		return rs_thin_move(e, op);
	case RS_OP_MARK:
		return rs_timing_mark(e, op);
	}
	return -EINVAL;
}

/* The next record waits for it. */
static void note_digest(struct rs_engine *e, uint32_t q)
{
	if (!(__atomic_load_n(&e->digest_queues, __ATOMIC_RELAXED) & RS_QBIT(q)))
		__atomic_fetch_or(&e->digest_queues, RS_QBIT(q), __ATOMIC_RELAXED);
}

/* Does it put kept bytes in the place of live ones? */
static int shows_or_restores(const struct rs_op *op)
{
	return op->kind == RS_OP_RESTORE || op->kind == RS_OP_SWAP || op->kind == RS_OP_REMAP;
}

/*
 * Somebody's call has not waited for what the shim itself has put behind these queues (bits): it may see, or write into, the
 * bytes of a replay that is over. Neither that replay nor what is open now can be vouched for; the next call tries again.
 */
static void fences_refused(struct rs_engine *e, uint64_t mask)
{
	struct rs_segment *s;
	struct rs_replay *r;
	struct rs_window *w;

	e->stats.internal_errors++;
	e->refusals++;
	for (s = e->pending; s; s = s->next)
		s->flags |= s->open ? RS_F_INTERNAL : 0u;
	for (w = e->replays; w; w = w->next_replay)
		w->rec->flags |= RS_F_INTERNAL;
	for (r = e->flight; r; r = r->next)
		r->flags |= r->fenced & mask ? RS_F_INTERNAL : 0u;
}

static int has_been_at(struct rs_touch *of, const struct rs_op *op)
{
	const struct rs_touch *t = rs_touch_of(of, op->alloc);
	uint32_t i = t ? rs_span_at(t, op->off) : 0;

	return t && i < t->spans.n && t->spans.v[i].off < op->off + op->len;
}

/* Nobody knows what lies there now, which is not what those have seen who have been there before. */
static void lose(struct rs_engine *e, const struct rs_op *op)
{
	struct rs_segment *s;
	struct rs_window *w;

	if (op->rec)
		op->rec->flags |= RS_F_LOST;
	for (w = e->replays; w; w = w->next_replay)
		w->rec->flags |= has_been_at(w->touches, op) ? RS_F_LOST : 0u;
	for (s = e->pending; s; s = s->next)
		s->flags |= s->open && has_been_at(s->touches, op) ? RS_F_LOST : 0u;
}

/* Account for one operation and undo in the model what the device did not do. engine.lock is held. */
static void settle(struct rs_engine *e, struct rs_op *op)
{
	struct rs_alloc *a = op->alloc;
	uint32_t i;

	if (op->failed && op->words)
		op->words->failed = 1;
	if (op->failed && op->kind == RS_OP_KEEP)
		__atomic_store_n(&op->keep->state, RS_KEEP_FAILED, __ATOMIC_RELEASE);
	if (op->kind == RS_OP_MOVE && op->guard->replaced)
		e->stats.thinned_bytes -= op->len;
	if (op->failed && op->kind == RS_OP_MOVE)
		op->guard->replaced = 0;
	if (op->failed && op->fence && a)
		__atomic_fetch_and(&a->fence_ordered, ~RS_QBIT(op->to), __ATOMIC_RELAXED);
	if (op->failed && shows_or_restores(op)) {
		lose(e, op);
		if (!a->dead)
			rs_extmap_set(&a->ext, op->off, op->len, rs_version_next(e), 0);
	} else if (!op->failed && shows_or_restores(op)) {
		e->stats.restored_bytes += op->len;
	} else if (!op->failed && (op->kind == RS_OP_KEEP || op->kind == RS_OP_MOVE) &&
		   op->keep->block) {
		e->stats.snapshots++;
		e->stats.snapshot_bytes += op->keep->block->bytes;
		if (e->stats.snapshot_bytes > e->stats.snapshot_bytes_peak)
			e->stats.snapshot_bytes_peak = e->stats.snapshot_bytes;
	}
	if (!op->failed && op->words) {
		e->stats.digests++;
		e->stats.digest_bytes += op->len;
		note_digest(e, op->to);
	}
	if (op->unordered) {
		op->rec->flags |= RS_F_LOST;
		op->rec->covered = 0;
	}
	for (i = 0; op->unordered && op->kind == RS_OP_ORDER && i < op->rec->checks.n; i++)
		if (op->rec->checks.v[i].b)
			op->rec->checks.v[i].b->failed = 1;
	rs_remap_unbind(op);
	if (op->rec)
		op->rec->pins--;
	if (op->keep)
		op->keep->pins--;
	if (op->guard)
		op->guard->pins--;
	rs_words_put(e, op->words);
	if (op->keep)
		rs_keep_collect(e, a, op->keep);
	if (op->guard)
		rs_keep_collect(e, a, op->guard);
	if (a && !op->fence)
		rs_view_planned(a);
	if (a)
		rs_alloc_unref(e, a);
}

/* Digests that somebody else holds on to, and that were counted when they were planned. */
static void settle_borrowed(struct rs_engine *e, const struct rs_oplist *l)
{
	uint32_t i, failed = 0;

	for (i = 0; i < l->n; i++) {
		failed += l->v[i].failed;
		if (!l->v[i].failed)
			note_digest(e, l->v[i].to);
	}
	if (!failed)
		return;
	pthread_mutex_lock(&e->lock);
	for (i = 0; i < l->n; i++) {
		if (!l->v[i].failed)
			continue;
		l->v[i].words->failed = 1;
		e->stats.digests--;
		e->stats.digest_bytes -= l->v[i].len;
	}
	pthread_mutex_unlock(&e->lock);
}

/*
 * Behind an order that could not be made nothing may be shown, and what is there is nobody's to keep. What is put back must
 * come back; its record knows that it came in no order.
 */
static int is_forbidden(const struct rs_oplist *l, const struct rs_op *op)
{
	return l->unordered && ((!op->back && shows_or_restores(op)) || op->kind == RS_OP_KEEP ||
				op->kind == RS_OP_DIGEST);
}

void rs_oplist_run(struct rs_engine *e, struct rs_oplist *l)
{
	struct rs_timing *before = NULL;
	uint32_t i, gathered = 0;

	if (l->timing)
		before = rs_timing_inside(l->timing);
	for (i = 0; i < l->n; i++) {
		struct rs_op *op = &l->v[i];

		if (i >= gathered)
			gathered = i + rs_gather_run(e, l, i);
		if (i >= gathered)
			op->failed = is_forbidden(l, op) || run_one(e, op);
		l->unordered |= op->failed && op->kind == RS_OP_ORDER;
		l->refused |= op->failed && op->fence ? op->mask : 0;
		if (l->unordered && op->rec)
			op->unordered = 1;
	}
	if (l->timing) {
		rs_timing_inside(before);
		rs_timing_list_done(e, l);
	}
	if (l->borrowed) {
		settle_borrowed(e, l);
	} else if (l->n) {
		pthread_mutex_lock(&e->lock);
		for (i = 0; i < l->n; i++)
			settle(e, &l->v[i]);
		if (l->refused)
			fences_refused(e, l->refused);
		pthread_mutex_unlock(&e->lock);
	}
	if (l->v != l->fixed)
		free(l->v);
	rs_oplist_init(l);
}
