/* SPDX-License-Identifier: MIT */
/*
 * A call of an open forward that touches nothing new: every range lies in one that the forward has classified, and what
 * is written is one extent that nobody claims. Then there is nothing to claim, to keep, to hold or to wait for: the
 * bytes get their new versions and the call is logged.
 *
 * All of that is found out before anything is changed. What does not fit goes the general way (access.c), which does the
 * same for any call: this one only leaves out what would have no effect.
 *
 * Callers: follow.c, with engine.lock held. Allocates nothing but the log and the thread's scratch.
 */
#include <stdlib.h>

#include "tracker/callstate.h"

/* Room for the ranges of n accesses, one each. */
static int room(struct rs_thread *t, uint32_t n)
{
	struct rs_range *more;

	if (n <= t->ranges_cap)
		return 1;
	more = realloc(t->ranges, n * sizeof(*more));
	if (!more)
		return 0;
	t->ranges = more;
	t->ranges_cap = n;
	return 1;
}

/* What the look at a call's accesses needs, in one place. */
struct look {
	const struct rs_engine *e;
	struct rs_touch *touches; /* the forward's */
	uint64_t bit;		  /* RS_QBIT(q) */
	uint64_t tick;
	uint32_t q;
	const struct rs_call *call;
	uint64_t begin; /* of the forward */
};

/* The forward's class for all of these bytes, which this access does not change; RS_CLASS_NONE: it is not so. */
static inline uint8_t class_of(const struct look *k, const struct rs_access *x,
			       const struct rs_alloc *a, uint64_t off, uint64_t len)
{
	const struct rs_touch *t = rs_touch_of(k->touches, a);
	const struct rs_span *s;
	uint32_t i = 0;

	if (!t)
		return RS_CLASS_NONE;
	if (t->spans.n != 1)
		i = rs_span_at(t, off);
	if (i == t->spans.n)
		return RS_CLASS_NONE;
	s = &t->spans.v[i];
	if (off - s->off >= s->len || s->len - (off - s->off) < len ||
	    (x->dir & RS_READ && s->cls == RS_CLASS_MAYBE) ||
	    (s->loose && (!x->whole || x->dir == RS_WRITE)))
		return RS_CLASS_NONE;
	return s->cls;
}

/* Does everything that was written from extent x to the byte `end` come before this read? */
static inline int is_ordered(const struct look *k, const struct rs_ext *x, uint64_t end)
{
	for (;; x++) {
		if (x->tick && x->q != k->q && !rs_order_known(k->e, x->q, x->tick, k->q))
			return 0;
		if (x->off + x->len >= end)
			return 1;
	}
}

/* The range of an access that is not empty, if it is steady. */
static inline int look_at(const struct look *k, const struct rs_access *x, struct rs_range *r)
{
	struct rs_alloc *a = (struct rs_alloc *)(uintptr_t)x->memory;
	struct rs_suballoc sub;
	uint64_t off = 0, len;
	struct rs_ext *ext;
	uint8_t cls;

	/* a queue that has touched it since the shim's own last work there has waited for that */
	if (!a || rs_mapping_of(a) || !(__atomic_load_n(&a->touched, __ATOMIC_RELAXED) & k->bit))
		return 0;
	sub = rs_suballoc_of(k->e, k->call, x);
	len = a->size;
	if (!x->whole && a->kind != RS_ALLOC_ARRAY) {
		off = x->addr - a->base;
		len = rs_min64(x->bytes, len - off);
	} else if (x->whole && sub.given) {
		off = sub.base - a->base;
		len = sub.bytes;
	}
	cls = class_of(k, x, a, off, len);
	if (!cls || (sub.given >= k->begin && cls != RS_CLASS_PRODUCT))
		return 0;
	ext = a->ext.ext;
	if (a->ext.n != 1)
		ext += rs_extmap_at(&a->ext, off);
	if (x->dir & RS_WRITE && (ext->off != off || ext->len != len || ext->claimed))
		return 0;
	if (x->dir & RS_READ && k->tick && !is_ordered(k, ext, off + len))
		return 0;
	r->a = a;
	r->off = off;
	r->len = len;
	r->piece = 0;
	r->given = sub.holds_all ? sub.given : 0;
	r->cls = cls;
	r->ext = ext;
	return 1;
}

/* All accesses, into the thread's ranges. How many of them there are, or UINT32_MAX. */
static uint32_t look(const struct look *k, const struct rs_call *call, struct rs_range *r)
{
	const struct rs_access *x = call->access;
	uint32_t i, n = 0;

	for (i = 0; i < call->naccess; i++, x++) {
		if (!x->whole && !x->bytes)
			continue;
		if (!look_at(k, x, &r[n]))
			return UINT32_MAX;
		r[n++].access = i;
	}
	return n;
}

/*
 * Is this window the only one that sees the call, on the queue of its last one, and does nobody ask for versions of whole
 * buffers? An engine inside of a capture follows captured calls only; what is measured of a window begins with its first call
 * on a queue; comparisons of pages are of calls that overwrite what is claimed.
 */
static int is_plain(const struct rs_callstate *c, struct rs_window *w)
{
	const struct rs_engine *e = c->e;
	const struct rs_call *call = c->call;

	return w && w->kind == RS_WINDOW_FORWARD && w->last_q == c->q + 1 && c->q < 63 &&
	       !rs_window_outer(w) && !e->process && !e->config.buffers && !call->capturing &&
	       !call->everything && call->generation == rs_engine_generation(e);
}

/* What rs_write_piecewise does where nothing has to be kept. */
static void give_versions(struct rs_callstate *c)
{
	const struct rs_range *r = c->range, *end = r + c->nranges;
	const uint64_t tick = c->who.tick;
	const char *by = tick ? c->who.name : NULL;
	uint32_t q = tick ? c->q : 0;

	for (; r < end; r++) {
		const struct rs_access *x = rs_access_of(c, r);

		if (!(x->dir & RS_WRITE))
			continue;
		rs_access_count(c->e, x, r->len);
		r->ext->ver = rs_version_next(c->e);
		r->ext->placed = 0;
		r->ext->q = q;
		r->ext->tick = tick;
		r->ext->by = by;
	}
}

static void note_readers(struct rs_callstate *c, struct rs_window *w)
{
	uint32_t i;

	for (i = 0; i < c->nranges; i++)
		if (rs_access_of(c, &c->range[i])->dir & RS_READ)
			rs_readers_note(c, w, &c->range[i]);
}

int rs_steady_follow(struct rs_callstate *c, struct rs_thread *t)
{
	struct rs_window *w = rs_window_next(t->top);
	const struct rs_call *call = c->call;
	struct look k = {
		.e = c->e, .bit = RS_QBIT(c->q), .q = c->q, .tick = c->who.tick, .call = call};
	uint32_t n;

	if (!is_plain(c, w) || !room(t, call->naccess))
		return 0;
	k.touches = w->seg->touches;
	k.begin = w->begin;
	n = look(&k, call, t->ranges);
	if (n == UINT32_MAX)
		return 0;
	c->range = t->ranges;
	c->nranges = n;
	rs_locate_found(c, t);
	rs_where_flags(c->e, w,
		       (call->untracked ? RS_F_UNTRACKED : 0u) |
			       (call->host_effect ? RS_F_HOST_EFFECT : 0u),
		       &c->who);
	if (k.tick && c->e->queues.n > 1)
		note_readers(c, w);
	rs_places_steady(c, w);
	rs_pair_log(c, w);
	give_versions(c);
	return 1;
}
