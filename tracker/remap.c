/* SPDX-License-Identifier: MIT */
/*
 * Restoring by remapping: see remap.h for what it is. Where preserved bytes lie in a frame, a replay is shown them by
 * mapping the frame at the program's address; its own memory keeps P2 and comes back there when the replay ends.
 *
 * Mapping is the host's business and in no stream's order. So before it the host waits for the device: for every queue that
 * has touched the memory, and every one with calls that may reach what nobody knows (rs_remapping.opaque). Then nothing
 * may come in between: other threads' calls on the memory wait while it is closed, and while one of them is between its
 * before and its after it is not closed. It is not even tried where the waiting might be for something that this
 * thread has yet to do: a queue that stalls, host functions that may not have run, a capture; and it is not waited for ever.
 *
 * Where it cannot be done, or fails, the bytes themselves change places in stream order, as a swap does it, and the
 * model is right in either case. If that happens on the way back the frame stays mapped with the program's bytes in it,
 * and is only taken out (settled) when somebody could see that: before the program's own calls on mappings.
 *
 * While a frame is shown engine.interested counts it: no call is left out then, and so all are counted in `touches`.
 *
 * Callers: oplist.c, frame.c and the shim without engine.lock; access.c and the rest under it.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "tracker/callstate.h"
#include "tracker/costing.h"
#include "tracker/ops.h"

#define PATIENCE_NS 5000000000ull /* for the device */
#define TRIES	    50u		  /* of pause(), for other threads */
#define RETRIES	    8u		  /* of mapping what must be mapped */

/*
 * What may put work on mapped memory into a queue at any moment: calls between their before and their after, and operations
 * that are planned. Of all threads, under engine.lock; and of this one.
 */
static uint32_t flying;
static __thread uint32_t own_flying __attribute__((tls_model("initial-exec")));

static void pause_a_moment(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

/* --- for which memory, and when ----------------------------------------------------------------- */

void rs_remap_want(struct rs_engine *e)
{
	__atomic_store_n(&e->remapping.wanted, 1, __ATOMIC_RELAXED);
}

/* A mapping can only be taken away as a whole, and what else shows the same memory would show other bytes meanwhile. */
int rs_remap_fits(const struct rs_engine *e, const struct rs_alloc *a)
{
	const struct rs_mapping *m = a->mappings;

	return e->ops->remap && !e->outer &&
	       !__atomic_load_n(&e->remapping.off, __ATOMIC_RELAXED) && !a->base && !a->dead &&
	       !a->multicast && !a->fixed && a->kind == RS_ALLOC_DEVICE && !a->shared && m &&
	       !m->next && !m->off && m->bytes == a->size;
}

/* The host must not wait for what may be waiting for it. */
static int may_wait(const struct rs_engine *e)
{
	return !__atomic_load_n(&e->stalling, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&e->remapping.vain, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&e->remapping.hosted, __ATOMIC_RELAXED);
}

int rs_remap_is_lost(const struct rs_alloc *a)
{
	const struct rs_remap *r = __atomic_load_n(&a->remap, __ATOMIC_ACQUIRE);

	return r && __atomic_load_n(&r->lost, __ATOMIC_RELAXED);
}

int rs_remap_may(const struct rs_engine *e, const struct rs_alloc *a)
{
	const struct rs_remap *r = a->remap;

	return rs_remap_fits(e, a) && may_wait(e) && !e->remapping.paused &&
	       !(r && (r->busy || r->shown));
}

/* --- waiting ------------------------------------------------------------------------------------ */

static int wait_for_queue(struct rs_engine *e, uint32_t id, uint64_t ns)
{
	const struct rs_devops *ops = e->ops;
	struct rs_qstate s;
	uint64_t event;
	int err;

	pthread_mutex_lock(&e->lock);
	s = e->queues.v[id];
	pthread_mutex_unlock(&e->lock);
	if (s.dead)
		return s.final_event ? ops->event_within(ops->opaque, s.final_event, ns) : 0;
	err = ops->event_record(ops->opaque, s.q, &event);
	if (err)
		return err;
	err = ops->event_within(ops->opaque, event, ns);
	ops->event_free(ops->opaque, event);
	return err;
}

/* Block the host until the work of these queues (bits) has ended. force: also where that may be in vain. */
int rs_remap_wait(struct rs_engine *e, uint64_t mask, int force)
{
	uint32_t id, n;
	int err = 0;

	pthread_mutex_lock(&e->lock);
	n = e->queues.n;
	if (!force && !may_wait(e))
		err = -EDEADLK;
	pthread_mutex_unlock(&e->lock);
	for (id = 0; id < n && !err; id++)
		if (mask & RS_QBIT(id))
			err = wait_for_queue(e, id, PATIENCE_NS);
	if (err == -ETIMEDOUT) { /* this program lets the device wait for the host */
		__atomic_store_n(&e->remapping.off, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&e->remapping.vain, 1, __ATOMIC_RELAXED);
	}
	return err;
}

/* engine.lock held. */
static int others_fly(void)
{
	return __atomic_load_n(&flying, __ATOMIC_RELAXED) > own_flying;
}

static int wait_for_others(struct rs_engine *e)
{
	unsigned tries = 0;

	while (others_fly() && tries++ < TRIES) {
		pthread_mutex_unlock(&e->lock);
		pause_a_moment();
		pthread_mutex_lock(&e->lock);
	}
	return others_fly() ? -EBUSY : 0;
}

/*
 * Wait for all that may touch the memory, and close it. What was between before and after when the waiting began would not
 * have been waited for; what has come since shows in the counters.
 */
static int close_memory(struct rs_engine *e, struct rs_remap *r, uint64_t mask, int force)
{
	uint64_t touches, unknown;
	int err;

	pthread_mutex_lock(&e->lock);
	err = wait_for_others(e);
	touches = r->touches;
	unknown = e->remapping.unknown;
	mask |= e->remapping.opaque | __atomic_load_n(&r->alloc->touched, __ATOMIC_RELAXED) |
		e->touched_all;
	pthread_mutex_unlock(&e->lock);
	if (!err)
		err = rs_remap_wait(e, mask, force);
	if (err)
		return err;
	pthread_mutex_lock(&e->lock);
	if (others_fly() || touches != r->touches || unknown != e->remapping.unknown ||
	    r->alloc->dead || (!force && !may_wait(e))) {
		err = -EBUSY;
	} else {
		r->closed = 1;
		e->remapping.closed++;
	}
	pthread_mutex_unlock(&e->lock);
	return err;
}

/* engine.lock held. */
static void open_memory(struct rs_engine *e, struct rs_remap *r)
{
	e->remapping.closed -= r->closed;
	r->closed = 0;
}

/* --- the exchange ------------------------------------------------------------------------------- */

/* The driver may have run out of memory for its tables: ours goes first. */
static int map_again(struct rs_engine *e, struct rs_remap *r, uint64_t addr, uint64_t token)
{
	unsigned i;

	for (i = 0; i < RETRIES; i++) {
		rs_engine_trim(e);
		if (!e->ops->remap(e->ops->opaque, addr, r->alloc->size, r->home, 0, token))
			return -EIO; /* as it was */
	}
	pthread_mutex_lock(&e->lock);
	__atomic_store_n(&r->lost, 1, __ATOMIC_RELAXED);
	r->alloc->fixed = 1;
	e->stats.internal_errors++;
	pthread_mutex_unlock(&e->lock);
	return -EFAULT;
}

static int change(struct rs_engine *e, struct rs_remap *r, uint64_t addr, uint64_t from,
		  uint64_t to)
{
	int err = e->ops->remap(e->ops->opaque, addr, r->alloc->size, r->home, from, to);

	return err == -EFAULT ? map_again(e, r, addr, from) : err;
}

static int open_home(struct rs_engine *e, struct rs_remap *r, struct rs_queue q, uint64_t addr)
{
	if (r->home)
		return 0;
	return e->ops->frame_view(e->ops->opaque, q, addr, r->alloc->size, &r->home, &r->home_addr);
}

/* engine.lock held. NULL: no memory. */
static struct rs_remap *remap_of(struct rs_engine *e, struct rs_alloc *a)
{
	struct rs_remap *r = a->remap;

	if (r)
		return r;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->alloc = a;
	r->next = e->remapping.list;
	e->remapping.list = r;
	__atomic_store_n(&a->remap, r, __ATOMIC_RELEASE);
	return r;
}

/* engine.lock held. What the exchange has changed for everybody else. */
static void note_shown(struct rs_engine *e, struct rs_remap *r, struct rs_keep *k,
		       struct rs_frame *f)
{
	r->shown = f;
	r->keep = k;
	__atomic_store_n(&k->addr, r->home_addr, __ATOMIC_RELAXED);
	__atomic_fetch_add(&e->interested, 1, __ATOMIC_RELAXED);
	rs_moment_next(e);
	e->stats.remaps++;
}

/* engine.lock held. Its own memory is back, and the keep's bytes, if it has any, are in the frame. */
static void note_home(struct rs_engine *e, struct rs_remap *r)
{
	if (r->keep)
		__atomic_store_n(&r->keep->addr, rs_frame_addr(r->shown), __ATOMIC_RELAXED);
	r->shown = NULL;
	r->keep = NULL;
	__atomic_fetch_sub(&e->interested, 1, __ATOMIC_RELAXED);
}

static int enter(struct rs_engine *e, struct rs_op *op)
{
	struct rs_frame *f = rs_frame_of(op->keep->block);
	struct rs_queue q = rs_queue_of(e, op->to);
	struct rs_alloc *a = op->alloc;
	struct rs_remap *r = NULL;
	int err = 0;

	pthread_mutex_lock(&e->lock);
	if (!rs_remap_may(e, a) || a->mappings->base != op->addr)
		err = -EBUSY;
	else
		r = remap_of(e, a);
	if (r)
		r->busy = 1;
	pthread_mutex_unlock(&e->lock);
	if (!r)
		return err ? err : -ENOMEM;
	err = open_home(e, r, q, op->addr);
	if (!err)
		err = close_memory(e, r, op->mask | rs_block_users(e, op->keep->block), 0);
	if (!err) {
		rs_frame_set_shown(e, f, 1);
		err = change(e, r, op->addr, r->home, rs_frame_token(f));
		if (err)
			rs_frame_set_shown(e, f, 0);
	}
	pthread_mutex_lock(&e->lock);
	if (!err) {
		note_shown(e, r, op->keep, f);
		r->q = q;
	}
	open_memory(e, r);
	r->busy = 0;
	pthread_mutex_unlock(&e->lock);
	return err;
}

/* engine.lock held, released in between. -ENOENT: the bytes had changed places in another way, or have since. */
static int begin_leaving(struct rs_engine *e, struct rs_alloc *a, const struct rs_keep *k)
{
	struct rs_remap *r = a->remap;

	while (r && r->busy) {
		pthread_mutex_unlock(&e->lock);
		pause_a_moment();
		pthread_mutex_lock(&e->lock);
	}
	if (!r || !r->shown || r->keep != k)
		return -ENOENT;
	r->busy = 1;
	return 0;
}

/* Its own memory comes back to r's address. */
static int come_home(struct rs_engine *e, struct rs_remap *r, uint64_t mask, int force)
{
	struct rs_frame *f = r->shown;
	uint64_t addr;
	int err;

	pthread_mutex_lock(&e->lock);
	addr = r->alloc->mappings ? r->alloc->mappings->base : 0;
	pthread_mutex_unlock(&e->lock);
	mask |= rs_block_users(e, (struct rs_block *)f);
	err = addr ? close_memory(e, r, mask, force) : -ENOENT;
	if (!err)
		err = change(e, r, addr, rs_frame_token(f), r->home);
	pthread_mutex_lock(&e->lock);
	if (!err)
		note_home(e, r);
	open_memory(e, r);
	pthread_mutex_unlock(&e->lock);
	if (!err)
		rs_frame_set_shown(e, f, 0);
	return err;
}

static int leave(struct rs_engine *e, struct rs_op *op)
{
	struct rs_alloc *a = op->alloc;
	int err;

	pthread_mutex_lock(&e->lock);
	err = begin_leaving(e, a, op->keep);
	pthread_mutex_unlock(&e->lock);
	if (err)
		return err;
	err = come_home(e, a->remap, op->mask, 0);
	pthread_mutex_lock(&e->lock);
	a->remap->busy = 0;
	pthread_mutex_unlock(&e->lock);
	return err;
}

int rs_remap_run(struct rs_engine *e, struct rs_op *op)
{
	struct rs_queue q = rs_queue_of(e, op->to);
	struct rs_timing *t;
	int err;

	if (__atomic_load_n(&op->keep->state, __ATOMIC_ACQUIRE) != RS_KEEP_READY ||
	    !op->keep->block)
		return -ENODATA;
	t = e->costing ? rs_timing_op_begins(e, q, RS_RATE_REMAP, op->len) : NULL;
	err = op->back ? leave(e, op) : op->keep->framed ? enter(e, op) : -ENOENT;
	rs_timing_op_ended(e, q, t, err);
	if (!err || err == -EFAULT)
		return err;
	if (err != -ENOENT)
		__atomic_fetch_add(&e->stats.remap_failures, 1, __ATOMIC_RELAXED);
	return rs_op_exchange(e, op);
}

/* --- settling ----------------------------------------------------------------------------------- */

/* What a replay was shown is gone: it cannot be vouched for, and finds P2 live. engine.lock held. */
static void lose_shown(struct rs_engine *e, struct rs_remap *r)
{
	struct rs_window *w;
	uint32_t i;

	for (w = e->replays; w; w = w->next_replay)
		for (i = 0; i < w->holds.n; i++)
			if (w->holds.v[i].keep == r->keep)
				w->rec->flags |= RS_F_LOST;
	if (rs_extmap_set(&r->alloc->ext, r->keep->off, r->keep->len, r->keep->ver, 1))
		e->stats.internal_errors++;
	__atomic_store_n(&r->keep->state, RS_KEEP_FAILED, __ATOMIC_RELEASE);
}

static int keep_is_held(const struct rs_remap *r)
{
	return r->keep && r->keep->holds;
}

/*
 * The bytes change places once more, so that coming home leaves everybody's where they were. If they cannot, what a replay
 * is shown is lost, but not the program's: with an open replay those are home already.
 */
static int exchange_contents(struct rs_engine *e, struct rs_remap *r, uint64_t addr)
{
	const struct rs_devops *ops = e->ops;
	uint64_t event;
	int err = ops->swap(ops->opaque, r->q, addr, r->home_addr, r->alloc->size);

	if (err && !keep_is_held(r)) {
		err = ops->copy(ops->opaque, r->q, r->home_addr, addr, r->alloc->size);
		if (r->keep)
			__atomic_store_n(&r->keep->state, RS_KEEP_FAILED, __ATOMIC_RELEASE);
	}
	if (!err)
		err = ops->event_record(ops->opaque, r->q, &event);
	if (err)
		return err;
	err = ops->event_within(ops->opaque, event, PATIENCE_NS);
	ops->event_free(ops->opaque, event);
	return err;
}

/* busy; engine.lock not held. The program's address shows its own memory afterwards, with the bytes that it has there. */
static void settle(struct rs_engine *e, struct rs_remap *r)
{
	uint64_t addr, mask;
	int err;

	pthread_mutex_lock(&e->lock);
	addr = r->alloc->mappings ? r->alloc->mappings->base : 0;
	mask = e->remapping.opaque | __atomic_load_n(&r->alloc->touched, __ATOMIC_RELAXED) |
	       e->touched_all;
	pthread_mutex_unlock(&e->lock);
	err = addr ? rs_remap_wait(e, mask, 1) : -ENOENT;
	if (!err)
		err = exchange_contents(e, r, addr);
	pthread_mutex_lock(&e->lock);
	if (err && keep_is_held(r)) {
		lose_shown(e, r);
		err = 0;
	}
	pthread_mutex_unlock(&e->lock);
	if (!err)
		err = come_home(e, r, 0, 1);
	if (!err)
		return;
	pthread_mutex_lock(&e->lock);
	e->stats.internal_errors++;
	pthread_mutex_unlock(&e->lock);
}

/* busy, not shown; engine.lock not held. */
static void forget_home(struct rs_engine *e, struct rs_remap *r)
{
	if (r->home && !r->shown) {
		e->ops->frame_free(e->ops->opaque, r->home);
		r->home = r->home_addr = 0;
	}
}

/* engine.lock held; released in between. `home`: its own memory is not held any longer, either. */
static void settle_one(struct rs_engine *e, struct rs_remap *r, int home)
{
	struct rs_alloc *a = r->alloc;

	if (!a)
		return;
	a->refs++;
	while (r->busy) {
		pthread_mutex_unlock(&e->lock);
		pause_a_moment();
		pthread_mutex_lock(&e->lock);
	}
	r->busy = 1;
	pthread_mutex_unlock(&e->lock);
	if (r->shown)
		settle(e, r);
	if (home)
		forget_home(e, r);
	pthread_mutex_lock(&e->lock);
	r->busy = 0;
	rs_alloc_unref(e, a);
}

static int lies_in(const struct rs_alloc *a, uint64_t addr, uint64_t bytes)
{
	const struct rs_mapping *m;

	for (m = a ? a->mappings : NULL; m; m = m->next)
		if (m->base < addr + bytes && addr < m->base + m->bytes)
			return 1;
	return 0;
}

/* Those that lie there, or only one. A pause begins: nothing is remapped until it ends. */
static void settle_all(struct rs_engine *e, uint64_t addr, uint64_t bytes,
		       const struct rs_alloc *only)
{
	struct rs_remap *r;

	pthread_mutex_lock(&e->lock);
	e->remapping.paused++;
again:
	for (r = e->remapping.list; r; r = r->next) {
		if (!r->busy && !r->shown && !r->home)
			continue;
		if (only ? r->alloc != only : !lies_in(r->alloc, addr, bytes))
			continue;
		settle_one(e, r, 1);
		if (!r->shown) /* else it was tried */
			goto again;
	}
	pthread_mutex_unlock(&e->lock);
}

void rs_engine_remap_pause(struct rs_engine *e, uint64_t addr, uint64_t bytes)
{
	settle_all(e, addr, bytes, NULL);
}

void rs_engine_remap_pause_handle(struct rs_engine *e, uint64_t handle, int fix)
{
	struct rs_alloc *a;

	pthread_mutex_lock(&e->lock);
	a = rs_alias_backing(e, handle);
	if (a)
		a->fixed |= (uint8_t)fix;
	pthread_mutex_unlock(&e->lock);
	/* a handle that nobody knows is nobody's */
	settle_all(e, 0, 0, a);
}

void rs_engine_remap_go_on(struct rs_engine *e)
{
	struct rs_remap **at, *r, *gone = NULL;

	pthread_mutex_lock(&e->lock);
	e->remapping.paused--;
	for (at = &e->remapping.list; (r = *at);) {
		if (r->alloc) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		r->next = gone;
		gone = r;
	}
	pthread_mutex_unlock(&e->lock);
	while ((r = gone)) {
		gone = r->next;
		e->ops->frame_free(e->ops->opaque, r->home);
		free(r);
	}
	rs_frames_trim(e, 0);
}

void rs_remap_ctx_leaves(struct rs_engine *e, uint64_t ctx)
{
	struct rs_remap *r;

	pthread_mutex_lock(&e->lock);
again:
	for (r = e->remapping.list; r; r = r->next)
		if (r->alloc && r->shown && r->q.ctx == ctx) {
			settle_one(e, r, 0);
			if (!r->shown)
				goto again;
		}
	pthread_mutex_unlock(&e->lock);
}

/* --- other calls -------------------------------------------------------------------------------- */

/* May the call reach what nobody knows? */
static int is_opaque(const struct rs_callstate *c)
{
	unsigned i;

	for (i = 0; i < c->call->naccess; i++)
		if (c->call->access[i].how >= RS_HOW_REACHABLE)
			return 1;
	return c->call->everything || c->call->untracked;
}

int rs_remap_meets_closed(const struct rs_callstate *c)
{
	uint32_t i;

	if (!c->e->remapping.closed || c->call->capturing)
		return 0;
	for (i = 0; i < c->nranges; i++)
		if (c->range[i].a->remap && c->range[i].a->remap->closed)
			return 1;
	return is_opaque(c);
}

/* A call is about to be followed: not while its memory is closed, and from now on it counts. */
void rs_remap_meet(struct rs_callstate *c, struct rs_thread *t)
{
	int mapped = 0, opaque = is_opaque(c);
	uint32_t i;

	rs_locate(c, t);
	while (rs_remap_meets_closed(c)) {
		pthread_mutex_unlock(&c->e->lock);
		pause_a_moment();
		pthread_mutex_lock(&c->e->lock);
		rs_locate(c, t);
	}
	if (c->call->capturing)
		return;
	for (i = 0; i < c->nranges; i++) {
		mapped |= !c->range[i].a->base;
		if (c->range[i].a->remap)
			c->range[i].a->remap->touches++;
	}
	if (opaque) {
		c->e->remapping.opaque |= RS_QBIT(c->q);
		c->e->remapping.unknown++;
	}
	if ((mapped || opaque) && !t->flying) {
		t->flying = 1;
		own_flying++;
		__atomic_fetch_add(&flying, 1, __ATOMIC_RELAXED);
	}
}

/* The call has been made, or refused. */
void rs_remap_landed(struct rs_engine *e, struct rs_thread *t)
{
	pthread_mutex_lock(&e->lock);
	__atomic_fetch_sub(&flying, t->flying, __ATOMIC_RELAXED);
	own_flying -= t->flying;
	t->flying = 0;
	pthread_mutex_unlock(&e->lock);
}

void rs_remap_bind(struct rs_op *op, struct rs_alloc *a)
{
	op->flies = 1;
	own_flying++;
	__atomic_fetch_add(&flying, 1, __ATOMIC_RELAXED);
	if (a->remap)
		a->remap->touches++;
}

void rs_remap_unbind(struct rs_op *op)
{
	__atomic_fetch_sub(&flying, op->flies, __ATOMIC_RELAXED);
	own_flying -= op->flies;
	op->flies = 0;
}

/* Host code is put into a stream of that context: what comes after it may wait for this thread. */
void rs_remap_hosts(struct rs_engine *e, uint64_t ctx)
{
	uint64_t before;

	/* Whoever ends a wait finds one of the two: the count, which is up first, or what is there now. */
	__atomic_fetch_add(&e->stalls, 1, __ATOMIC_SEQ_CST);
	before = __atomic_load_n(&e->remapping.hosted, __ATOMIC_SEQ_CST);
	while (!__atomic_compare_exchange_n(&e->remapping.hosted, &before,
					    before && before != ctx ? UINT64_MAX : ctx, 0,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

/* The host has waited for all of the context's work that there was when e->stalls was `met`. */
void rs_remap_synced(struct rs_engine *e, uint64_t ctx, uint64_t met)
{
	uint64_t hosted = ctx;

	if (!__atomic_load_n(&e->remapping.hosted, __ATOMIC_RELAXED) || rs_engine_stalls(e) != met)
		return;
	if (__atomic_compare_exchange_n(&e->remapping.hosted, &hosted, 0, 0, __ATOMIC_SEQ_CST,
					__ATOMIC_SEQ_CST) &&
	    rs_engine_stalls(e) != met)
		rs_remap_hosts(e, ctx);
}

/* --- ends --------------------------------------------------------------------------------------- */

/* The keep is about to go. */
void rs_remap_keep_gone(struct rs_engine *e, const struct rs_keep *k)
{
	struct rs_remap *r;

	for (r = e->remapping.list; r; r = r->next)
		if (r->keep == k)
			r->keep = NULL;
}

/* Nothing refers to the allocation any more; its mapping is gone, and with it what was shown. */
void rs_remap_alloc_gone(struct rs_engine *e, struct rs_alloc *a)
{
	struct rs_remap **at, *r = a->remap;

	rs_frames_forget(e, a);
	if (!r)
		return;
	a->remap = NULL;
	r->alloc = NULL;
	if (r->shown) {
		rs_frame_set_shown(e, r->shown, 0);
		note_home(e, r);
	}
	if (r->home) /* given back when the driver may be called */
		return;
	for (at = &e->remapping.list; *at != r; at = &(*at)->next)
		;
	*at = r->next;
	free(r);
}

/* Every window is closed. */
void rs_remap_fini(struct rs_engine *e)
{
	if (!e->ops->remap)
		return;
	settle_all(e, 0, UINT64_MAX, NULL);
	rs_engine_remap_go_on(e);
}
