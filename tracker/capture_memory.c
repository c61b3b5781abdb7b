/* SPDX-License-Identifier: MIT */
/*
 * Memory inside of a capture: the program's, and what the graph itself allocates.
 *
 * For each allocation that a captured call reaches the inner engine has one of its own (a shadow, by serial number), with a
 * history that begins at the capture's first segment.
 *
 * A captured allocation is a node: its memory is there at each launch from that node to its free node. Its address is
 * promised at once, so it is entered as memory of the program's from then on, by a serial of its own though the address may have
 * belonged to an earlier node of the graph; that counts for nothing, for there are no bytes yet. A free node of the same
 * graph ends that. What no node of its own graph frees stays promised when the capture is over: another capture may
 * use it, or free it, and a launch makes it real (shim/graph_run.c). With the capture's graphs the promise goes.
 *
 * Callers: the shim, locate.c. Locks: the outer engine's, then the inner one's.
 */
#include <errno.h>
#include <stdlib.h>

#include "tracker/callstate.h"
#include "tracker/capturing.h"

/* --- the program's memory ------------------------------------------------------------------------- */

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

void rs_capture_shadows_free(struct rs_capture *c)
{
	struct rs_shadow *s, *tmp;

	HASH_ITER (hh, c->shadows, s, tmp) {
		HASH_DEL(c->shadows, s);
		drop_shadow(c->inner, s->alloc);
		free(s);
	}
}

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

/* --- the graph's own ------------------------------------------------------------------------------ */

/* Outer lock held. */
static struct rs_alloc *promised_at(const struct rs_capture *c, uint64_t addr, uint32_t *ret)
{
	struct rs_alloc *a = rs_alloc_at(c->outer, addr);
	uint32_t i;

	for (i = 0; a && i < c->promises.n; i++)
		if (c->promises.v[i].serial == a->serial) {
			*ret = i;
			return a;
		}
	return NULL;
}

/* Outer lock held. */
static void break_promise(struct rs_capture *c, struct rs_alloc *a, uint32_t i)
{
	c->promises.v[i] = c->promises.v[--c->promises.n];
	rs_alloc_forget(c->outer, a);
}

void rs_capture_promises_break(struct rs_capture *c)
{
	struct rs_alloc *a;
	uint32_t i, at;

	for (i = c->promises.n; i > 0; i--) {
		a = promised_at(c, c->promises.v[i - 1].addr, &at);
		if (a && at == i - 1)
			rs_alloc_forget(c->outer, a);
	}
	free(c->promises.v);
	c->promises.v = NULL;
	c->promises.n = c->promises.cap = 0;
}

/* The windows that the call lies in allocate or free. Outer lock held. */
static void balance(struct rs_capture *c, const struct rs_thread *t, int64_t bytes)
{
	struct rs_thread *seat;

	rs_capture_enter(c, t);
	seat = c->inner && !c->ending ? rs_capture_seat_of(c, t) : NULL;
	if (!seat)
		return;
	pthread_mutex_lock(&c->inner->lock);
	rs_windows_balance(c->inner, seat, bytes);
	pthread_mutex_unlock(&c->inner->lock);
}

void rs_engine_capture_allocated(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
				 uint64_t addr, uint64_t bytes)
{
	struct rs_capture *c = rs_capture_find(e, q, 0);
	struct rs_promise *p;
	struct rs_alloc *a;

	if (!c)
		return;
	pthread_mutex_lock(&e->lock);
	if (addr && bytes) {
		balance(c, t, (int64_t)bytes);
		p = RS_PUSH(c->promises);
		a = p ? rs_alloc_promise(e, q.ctx, addr, bytes) : NULL;
		if (a)
			*p = (struct rs_promise){addr, a->serial};
		else if (p)
			c->promises.n--;
	}
	pthread_mutex_unlock(&e->lock);
	rs_capture_look(c, RS_CALL_ENDS);
	rs_capture_unref(c);
}

/* The tool's own work on it comes first. Both locks held. */
static void respect_fence(struct rs_capture *c, struct rs_oplist *l, struct rs_thread *seat,
			  struct rs_queue q, const struct rs_alloc *a)
{
	const struct rs_shadow *s;

	HASH_FIND(hh, c->shadows, &a->serial, sizeof(a->serial), s);
	if (s && s->alloc->fence)
		rs_oplist_fence(l, RS_QBIT(s->alloc->fence - 1), s->alloc,
				rs_queue_id(c->inner, seat, q));
}

void rs_engine_capture_frees(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
			     uint64_t addr)
{
	struct rs_capture *c = rs_capture_find(e, q, 0);
	struct rs_thread *seat;
	struct rs_oplist list;
	struct rs_alloc *a;

	if (!c)
		return;
	rs_capture_look(c, RS_CALL_BEGINS);
	rs_oplist_init(&list);
	pthread_mutex_lock(&e->lock);
	a = rs_alloc_at(e, addr);
	if (a)
		balance(c, t, -(int64_t)a->size);
	seat = a && c->inner && !c->ending ? rs_capture_seat_of(c, t) : NULL;
	if (seat) {
		pthread_mutex_lock(&c->inner->lock);
		respect_fence(c, &list, seat, q, a);
		pthread_mutex_unlock(&c->inner->lock);
	}
	pthread_mutex_unlock(&e->lock);
	if (seat)
		rs_oplist_run(c->inner, &list);
	rs_capture_unref(c);
}

/* What pending segments have read of it can never be read again. Both locks held. */
static void retire(struct rs_capture *c, struct rs_thread *seat, struct rs_queue q, uint64_t serial,
		   uint64_t call)
{
	struct rs_engine *inner = c->inner;
	struct rs_writer who = {.name = "free",
				.kind = RS_CALL_OTHER,
				.call = call,
				.step = inner->step,
				.window = ""};
	const struct rs_window *w;
	struct rs_shadow *s;

	HASH_FIND(hh, c->shadows, &serial, sizeof(serial), s);
	if (!s)
		return;
	for (w = seat->top; w && !*who.window; w = w->up)
		who.window = w->label;
	who.q = rs_queue_id(inner, seat, q);
	who.tick = rs_order_tick(inner, who.q);
	rs_memory_leaves(inner, s->alloc, &who);
	HASH_DEL(c->shadows, s);
	drop_shadow(inner, s->alloc);
	free(s);
}

/* Outer lock held. Returns where the call is made, for rs_where_take. */
static uint64_t freed(struct rs_capture *c, struct rs_thread *t, struct rs_queue q,
		      struct rs_alloc *a, uint64_t call)
{
	struct rs_engine *e = c->outer;
	struct rs_thread *seat = c->inner && !c->ending ? rs_capture_seat_of(c, t) : NULL;
	uint32_t i;

	e->where.wanted = 0;
	if (seat) {
		pthread_mutex_lock(&c->inner->lock);
		retire(c, seat, q, a->serial, call);
		e->where.wanted |= c->inner->where.wanted;
		c->inner->where.wanted = 0;
		pthread_mutex_unlock(&c->inner->lock);
	}
	/* what another graph has allocated is there until this one is launched */
	if (promised_at(c, a->base, &i))
		break_promise(c, a, i);
	return rs_where_reserve(e, call);
}

void rs_engine_capture_freed(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
			     uint64_t addr, int ok)
{
	struct rs_capture *c = rs_capture_find(e, q, 0);
	uint64_t call = 0, place = 0;
	struct rs_alloc *a;

	if (!c)
		return;
	pthread_mutex_lock(&e->lock);
	a = ok ? rs_alloc_at(e, addr) : NULL;
	if (a)
		place = freed(c, t, q, a, call = ++e->clock);
	pthread_mutex_unlock(&e->lock);
	rs_where_take(e, call, place);
	rs_capture_look(c, RS_CALL_ENDS);
	rs_capture_unref(c);
}
