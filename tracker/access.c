/* SPDX-License-Identifier: MIT */
/*
 * One driver call: which windows it belongs to, what it touches there, what must be planned before and
 * after it.
 *
 * A range is classified once per window, at its first access (enum rs_class). Order inside a call:
 * every window sees the reads (claims, restores), then the writes (holds), then the model is bumped.
 * The calls of a window are logged by its forward and paired by its replays, so that products are
 * compared with their own and an input that moved is not mistaken for another one.
 */
#include <stdlib.h>
#include <string.h>

#include "tracker/model.h"

/* How far the log is searched for a call that the replay skipped to. */
#define RESYNC 256u

struct call_state {
	struct rs_engine *e;
	struct rs_oplist *l;
	struct rs_call *call;
	uint32_t q;
	uint64_t number;
	struct rs_writer who;
	const struct rs_range *range; /* of each access; alloc NULL: not in a known allocation */
};

/* The bytes that an access means, cut to the allocation around its address. */
static struct rs_range locate(struct rs_engine *e, const struct rs_access *x)
{
	struct rs_range r = {NULL, 0, 0};
	uint64_t base, bytes;

	if (!x->whole && !x->bytes)
		return r;
	r.a = rs_addrmap_find(e->map, x->addr, &base, &bytes);
	if (!r.a)
		return r;
	r.off = x->whole ? 0 : x->addr - base;
	r.len = x->whole ? bytes : x->bytes;
	if (r.len > bytes - r.off)
		r.len = bytes - r.off;
	return r;
}

/*
 * Look every access up, once a call. engine.lock held: what was found stays alive until it is released.
 * Without memory for the list the call counts as one that may do anything.
 */
static void locate_all(struct call_state *c, struct rs_thread *t)
{
	unsigned i, n = c->call->naccess;

	if (n > t->ranges_cap) {
		struct rs_range *more = realloc(t->ranges, n * sizeof(*more));

		if (!more) {
			c->call->everything = 1;
			c->call->naccess = 0;
			return;
		}
		t->ranges = more;
		t->ranges_cap = n;
	}
	for (i = 0; i < n; i++)
		t->ranges[i] = locate(c->e, &c->call->access[i]);
	c->range = t->ranges;
}

/* Access i if it is in a known allocation and goes that way, else NULL. */
static const struct rs_range *range_of(const struct call_state *c, unsigned i, int dir)
{
	return c->call->access[i].dir & dir && c->range[i].a ? &c->range[i] : NULL;
}

static enum rs_class first_class(const struct rs_window *w, const struct rs_alloc *a,
				 const struct rs_region *region, const struct rs_access *x,
				 int read)
{
	if (region)
		return region->product ? RS_CLASS_PRODUCT : RS_CLASS_STATE;
	/* module variables and registered host memory are older than the moment they became known */
	if (a->birth >= w->begin && (a->kind == RS_ALLOC_DEVICE || a->kind == RS_ALLOC_MANAGED))
		return RS_CLASS_PRODUCT;
	if (x->how >= RS_HOW_REACHABLE)
		return RS_CLASS_AMBIGUOUS;
	if (read)
		return RS_CLASS_STATE;
	return x->dense ? RS_CLASS_PRODUCT : RS_CLASS_MAYBE;
}

/* Forward: R must see these bytes as they are now. */
static void add_claims(struct call_state *c, struct rs_window *w, struct rs_touch *t, uint64_t off,
		       uint64_t len, enum rs_class cls)
{
	struct rs_alloc *a = t->alloc;
	uint64_t end = off + len;

	if (rs_extmap_split(&a->ext, off, len)) {
		w->seg->flags |= RS_F_INTERNAL;
		return;
	}
	while (off < end) {
		struct rs_ext *x = &a->ext.ext[rs_extmap_at(&a->ext, off)];
		struct rs_claim *claim = RS_PUSH(t->claims);

		if (!claim) {
			w->seg->flags |= RS_F_INTERNAL;
			return;
		}
		claim->off = x->off;
		claim->len = x->len;
		claim->ver = x->ver;
		claim->cls = (uint8_t)cls;
		x->claimed = 1;
		/* the host may change these unseen: keep them now, there will be no write to see */
		if (rs_alloc_is_volatile(a))
			rs_keep_take(c->e, c->l, c->q, a, x, &c->who);
		off = x->off + x->len;
	}
}

static void upgrade_claims(struct rs_touch *t, uint64_t off, uint64_t len)
{
	uint32_t i;

	for (i = 0; i < t->claims.n; i++)
		if (t->claims.v[i].off < off + len &&
		    off < t->claims.v[i].off + t->claims.v[i].len &&
		    t->claims.v[i].cls == RS_CLASS_MAYBE)
			t->claims.v[i].cls = RS_CLASS_AMBIGUOUS;
}

/* What the forward read through this argument of this very call, or NULL. */
static const struct rs_logged_access *forward_read(const struct rs_window *w,
						   const struct rs_access *x, uint64_t number)
{
	const struct rs_logged_call *lc;
	uint32_t i;

	if (!w->seg || w->matched_call != number)
		return NULL;
	lc = &w->seg->log.v[w->matched];
	for (i = lc->first; i < lc->first + lc->n; i++)
		if (w->seg->accesses.v[i].slot == x->slot && w->seg->accesses.v[i].dir & RS_READ)
			return &w->seg->accesses.v[i];
	return NULL;
}

/*
 * The forward read other bytes here, of another allocation or of another place in a pool: this is not the
 * same tensor, and old bytes of its address must not be put over it. Nothing can be said about the input but that it moved, or was freed.
 */
static int relocated(struct call_state *c, struct rs_window *w, struct rs_alloc *a, uint64_t off,
		     uint64_t len, const struct rs_access *x)
{
	const struct rs_logged_access *la = forward_read(w, x, c->number);
	const struct rs_touch *then;
	struct rs_check *k;

	if (!la || (la->serial == a->serial && la->off < off + len && off < la->off + la->len))
		return 0;
	then = rs_touch_find(w->seg->touches, la->serial);
	k = rs_check_add(w->rec, RS_CHECK_ENTRY, a, off, len, NULL, NULL);
	if (k) {
		k->reason = then && then->alloc->dead ? RS_FINDING_STATE_FREED
						      : RS_FINDING_UNSEEN_INPUT;
		k->writer = c->who;
	}
	return 1;
}

/* Is any of these bytes a product of the forward? */
static int forward_product(const struct rs_segment *s, const struct rs_alloc *a, uint64_t off,
			   uint64_t len)
{
	const struct rs_touch *t = rs_touch_find(s->touches, a->serial);
	uint32_t i;

	for (i = 0; t && i < t->spans.n; i++)
		if (t->spans.v[i].cls == RS_CLASS_PRODUCT && t->spans.v[i].off < off + len &&
		    off < t->spans.v[i].off + t->spans.v[i].len)
			return 1;
	return 0;
}

/* The last write of the forward to these bytes before its call `before`, and the call of the first one after it. */
static const struct rs_logged_access *made_before(const struct rs_segment *s, uint32_t before,
						  const struct rs_range *r,
						  const struct rs_logged_call **ret_after)
{
	const struct rs_logged_access *made = NULL;
	uint32_t i, j;

	for (i = 0; i < s->log.n; i++) {
		const struct rs_logged_call *lc = &s->log.v[i];

		for (j = lc->first; j < lc->first + lc->n; j++) {
			const struct rs_logged_access *la = &s->accesses.v[j];

			if (!(la->dir & RS_WRITE) || la->serial != r->a->serial ||
			    la->off >= r->off + r->len || r->off >= la->off + la->len)
				continue;
			if (i < before)
				made = la;
			else if (!*ret_after)
				*ret_after = lc;
		}
	}
	return made;
}

/*
 * A product that the replay takes from where the forward left it, instead of making it again (a kept activation).
 * What the forward's own call read there is known by the digest of the write before it.
 */
static int taken_over(struct call_state *c, struct rs_window *w, struct rs_alloc *a, uint64_t off,
		      uint64_t len)
{
	const struct rs_logged_call *after = NULL;
	const struct rs_logged_access *made;
	struct rs_writer who = {.name = "unknown", .kind = RS_CALL_OTHER, .window = ""};

	if (!w->seg || w->matched_call != c->number || !forward_product(w->seg, a, off, len))
		return 0;
	made = made_before(w->seg, w->matched, &(struct rs_range){a, off, len}, &after);
	if (!made || made->cls != RS_CLASS_PRODUCT || made->off != off || made->len != len ||
	    !made->digest)
		return 0;
	who.how = RS_HOW_UNKNOWN;
	who.step = w->seg->step;
	if (after) {
		who.name = after->name;
		who.call = after->call;
		who.window = w->seg->label;
	}
	rs_window_compare_kept(c->l, c->q, w, a, off, len, made->digest, &who);
	return 1;
}

/*
 * First access of a window to a range. Bytes that are certainly overwritten before anything reads them
 * need no entry value, even when they are declared state; their P2 is held before the write.
 */
static void entered(struct call_state *c, struct rs_window *w, struct rs_touch *t, uint64_t off,
		    uint64_t len, enum rs_class cls, const struct rs_access *x, int read)
{
	if (cls == RS_CLASS_PRODUCT || (!read && x->dense))
		return;
	if (w->kind == RS_WINDOW_FORWARD) {
		add_claims(c, w, t, off, len, cls);
		return;
	}
	if (cls == RS_CLASS_STATE && relocated(c, w, t->alloc, off, len, x))
		return;
	if (cls == RS_CLASS_STATE && taken_over(c, w, t->alloc, off, len))
		return;
	rs_window_enter_range(c->e, c->l, c->q, w, t->alloc, off, len, cls == RS_CLASS_STATE,
			      &c->who);
}

static struct rs_span *insert_span(struct rs_touch *t, uint32_t at)
{
	struct rs_span *added = RS_PUSH(t->spans);

	if (!added)
		return NULL;
	memmove(&t->spans.v[at + 1], &t->spans.v[at],
		(t->spans.n - 1 - at) * sizeof(t->spans.v[0]));
	return &t->spans.v[at];
}

/* Classify what of the range is new to the window; a read makes MAYBE ambiguous. */
static void visit(struct call_state *c, struct rs_window *w, const struct rs_range *r,
		  const struct rs_access *x, int read)
{
	struct rs_touch *t = rs_touch_get(
		c->e, w->kind == RS_WINDOW_FORWARD ? &w->seg->touches : &w->touches, r->a);
	uint64_t pos = r->off, end = r->off + r->len;
	uint32_t i = 0;

	if (!t) {
		*(w->rec ? &w->rec->flags : &w->seg->flags) |= RS_F_INTERNAL;
		return;
	}
	while (pos < end) {
		const struct rs_region *region;
		struct rs_span *s;
		uint64_t until = end, region_end;
		enum rs_class cls;

		while (i < t->spans.n && t->spans.v[i].off + t->spans.v[i].len <= pos)
			i++;
		s = i < t->spans.n ? &t->spans.v[i] : NULL;
		if (s && s->off <= pos) {
			if (read && s->cls == RS_CLASS_MAYBE) {
				s->cls = RS_CLASS_AMBIGUOUS;
				upgrade_claims(t, s->off, s->len);
			}
			pos = s->off + s->len;
			continue;
		}
		if (s && s->off < until)
			until = s->off;
		region = rs_region_at(r->a, pos, &region_end);
		if (region_end < until)
			until = region_end;
		cls = first_class(w, r->a, region, x, read);
		s = insert_span(t, i);
		if (!s) {
			*(w->rec ? &w->rec->flags : &w->seg->flags) |= RS_F_INTERNAL;
			return;
		}
		*s = (struct rs_span){.off = pos, .len = until - pos, .cls = (uint8_t)cls};
		entered(c, w, t, pos, until - pos, cls, x, read);
		pos = until;
	}
}

/* Did the forward find this write-only range ambiguous (it read it later)? */
static int forward_read_later(const struct rs_window *w, const struct rs_alloc *a, uint64_t off,
			      uint64_t len)
{
	const struct rs_touch *t = w->seg ? rs_touch_find(w->seg->touches, a->serial) : NULL;
	uint32_t i;

	for (i = 0; t && i < t->claims.n; i++)
		if (t->claims.v[i].cls != RS_CLASS_MAYBE && t->claims.v[i].off < off + len &&
		    off < t->claims.v[i].off + t->claims.v[i].len)
			return 1;
	return 0;
}

/* Has the forward had anything to do with these bytes? */
static int forward_touched(const struct rs_window *w, const struct rs_alloc *a, uint64_t off,
			   uint64_t len)
{
	const struct rs_touch *t = rs_touch_find(w->seg->touches, a->serial);
	uint32_t i;

	for (i = 0; t && i < t->spans.n; i++)
		if (t->spans.v[i].off < off + len && off < t->spans.v[i].off + t->spans.v[i].len)
			return 1;
	return 0;
}

/*
 * State that only the replay touches may be no part of it, such as a gradient that a backward inside of the window
 * adds to: then its bytes must survive. Where it is declared state, what was asked for is done, but not vouched for.
 */
static enum rs_hold_how how_to_hold(const struct rs_window *w, const struct rs_alloc *a,
				    const struct rs_span *s)
{
	uint64_t until;

	if (s->cls != RS_CLASS_STATE)
		return RS_HOLD_COMPARE;
	if (!w->seg || forward_touched(w, a, s->off, s->len))
		return RS_HOLD_RESTORE;
	return rs_region_at(a, s->off, &until) ? RS_HOLD_BOTH : RS_HOLD_COMPARE;
}

/* A replay is about to write: what is not a product must be put back, or at least compared. */
static void hold_before_write(struct call_state *c, struct rs_window *w, const struct rs_range *r)
{
	struct rs_touch *t = rs_touch_find(w->touches, r->a->serial);
	uint64_t end = r->off + r->len;
	uint32_t i;

	/* what the host may read at any time is not taken back behind its back: RS020 says so */
	if (rs_alloc_is_volatile(r->a))
		return;
	for (i = 0; t && i < t->spans.n; i++) {
		struct rs_span s = t->spans.v[i];
		uint64_t from = s.off > r->off ? s.off : r->off;
		uint64_t to = s.off + s.len < end ? s.off + s.len : end;

		if (from >= to || s.cls == RS_CLASS_PRODUCT)
			continue;
		if (s.cls == RS_CLASS_MAYBE && !forward_read_later(w, r->a, from, to - from))
			continue;
		rs_window_hold_range(c->e, c->l, c->q, w, r->a, from, to - from,
				     how_to_hold(w, r->a, &s), &c->who);
	}
}

static enum rs_class class_at(const struct rs_window *w, const struct rs_range *r)
{
	const struct rs_touch *t = rs_touch_find(
		w->kind == RS_WINDOW_FORWARD ? w->seg->touches : w->touches, r->a->serial);
	uint32_t i;

	for (i = 0; t && i < t->spans.n; i++)
		if (r->off >= t->spans.v[i].off && r->off < t->spans.v[i].off + t->spans.v[i].len)
			return t->spans.v[i].cls;
	return RS_CLASS_NONE;
}

static void log_call(struct call_state *c, struct rs_window *w)
{
	struct rs_segment *s = w->seg;
	struct rs_logged_call *lc = RS_PUSH(s->log);
	unsigned i;

	if (!lc) {
		s->flags |= RS_F_INTERNAL;
		return;
	}
	lc->ident = c->call->ident;
	lc->name = c->call->name;
	lc->call = c->number;
	lc->first = s->accesses.n;
	for (i = 0; i < c->call->naccess; i++) {
		const struct rs_access *x = &c->call->access[i];
		const struct rs_range *r = range_of(c, i, RS_READ | RS_WRITE);
		struct rs_logged_access *la;

		if (!r)
			continue;
		la = RS_PUSH(s->accesses);
		if (!la) {
			s->flags |= RS_F_INTERNAL;
			return;
		}
		*la = (struct rs_logged_access){.serial = r->a->serial,
						.off = r->off,
						.len = r->len,
						.dir = x->dir,
						.slot = x->slot,
						.cls = (uint8_t)class_at(w, r),
						.exact = x->dense && !x->whole};
		lc->n++;
	}
}

/* Find the forward's call that this one repeats: the next one, or a later one if calls were left out. */
static void match_call(struct call_state *c, struct rs_window *w)
{
	const struct rs_segment *s = w->seg;
	uint32_t i, limit = w->log_at + RESYNC;

	for (i = w->log_at; i < s->log.n && i < limit; i++) {
		if (s->log.v[i].ident != c->call->ident)
			continue;
		if (i != w->log_at)
			w->rec->flags |= RS_F_STRUCTURE;
		w->rec->skipped += i - w->log_at;
		w->matched = i;
		w->matched_call = c->number;
		w->log_at = i + 1;
		return;
	}
	w->rec->flags |= RS_F_STRUCTURE;
	w->rec->extra++;
}

/* A call of no other kind that may do anything is the launch of a graph. */
static uint32_t call_flags(const struct rs_call *call)
{
	uint32_t opaque = call->kind == RS_CALL_OTHER ? RS_F_CAPTURE : RS_F_UNKNOWN_WRITER;

	return (call->everything ? opaque : 0u) | (call->untracked ? RS_F_UNTRACKED : 0u) |
	       (call->host_effect ? RS_F_HOST_EFFECT : 0u) | (call->capturing ? RS_F_CAPTURE : 0u);
}

/* Reads of one window, then what its writes need. */
static void in_window(struct call_state *c, struct rs_window *w)
{
	const struct rs_range *r;
	unsigned i;

	if (w->unresolved)
		rs_window_resolve(c->e, w, c->call);
	*(w->rec ? &w->rec->flags : &w->seg->flags) |= call_flags(c->call);
	if (c->call->capturing)
		return; /* nothing runs, so there is nothing to follow or to wait for */
	w->queues |= RS_QBIT(c->q);
	w->last_q = c->q + 1;
	if (w->kind == RS_WINDOW_REPLAY && w->seg)
		match_call(c, w);
	for (i = 0; i < c->call->naccess; i++) {
		r = range_of(c, i, RS_READ);
		if (r)
			visit(c, w, r, &c->call->access[i], 1);
	}
	for (i = 0; i < c->call->naccess; i++) {
		r = range_of(c, i, RS_WRITE);
		if (!r)
			continue;
		visit(c, w, r, &c->call->access[i], 0);
		if (w->kind == RS_WINDOW_REPLAY)
			hold_before_write(c, w, r);
	}
	if (w->kind == RS_WINDOW_FORWARD)
		log_call(c, w);
}

static int is_segment_window(const struct rs_window *w)
{
	return !w->closed && w->kind != RS_WINDOW_OTHER;
}

/* The first window from w outwards that is a segment's. */
static struct rs_window *next_window(struct rs_window *w)
{
	while (w && !is_segment_window(w))
		w = w->up;
	return w;
}

/*
 * Who else sees a call of window w: every enclosing window, up to and with the innermost replay. What
 * a replay does is undone at its end, so what encloses it has nothing to learn from its calls.
 */
static struct rs_window *outer_window(struct rs_window *w)
{
	return w->kind == RS_WINDOW_REPLAY ? NULL : next_window(w->up);
}

/* Outermost first: a forward inside a replay claims what the replay has put there. */
static void in_windows(struct call_state *c, struct rs_window *w)
{
	if (!w)
		return;
	in_windows(c, outer_window(w));
	in_window(c, w);
}

/* Work of the shim's own on these bytes comes first. */
static void respect_fence(struct call_state *c, struct rs_alloc *a)
{
	if (a->fence && a->fence - 1 != c->q &&
	    (c->q >= 63 || !(a->fence_ordered & RS_QBIT(c->q)))) {
		rs_oplist_order(c->l, RS_QBIT(a->fence - 1), c->q);
		a->fence_ordered |= RS_QBIT(c->q);
	}
	a->touched |= RS_QBIT(c->q);
}

/* A call that may write anything: every byte of its context gets a new version. */
static void everything(struct call_state *c)
{
	uint64_t base = 0, bytes;
	struct rs_alloc *a;

	c->e->stats.unknown_writers++;
	for (a = rs_addrmap_next(c->e->map, 0, &base, &bytes); a;
	     a = rs_addrmap_next(c->e->map, base + 1, &base, &bytes)) {
		if (a->ctx != c->call->q.ctx)
			continue;
		respect_fence(c, a);
		if (c->e->pending)
			rs_write_piecewise(c->e, c->l, c->q, a, 0, a->size, &c->who);
	}
}

static void touch_model(struct call_state *c)
{
	struct rs_engine *e = c->e;
	unsigned i;

	/* versions only mean something to pending segments */
	for (i = 0; e->pending && i < c->call->naccess; i++) {
		const struct rs_range *r = range_of(c, i, RS_WRITE);

		if (r)
			rs_write_piecewise(e, c->l, c->q, r->a, r->off, r->len, &c->who);
	}
	if (c->call->everything)
		everything(c);
}

static const char *window_label(const struct rs_engine *e, const struct rs_thread *t)
{
	const struct rs_window *w;

	for (w = t->top; w; w = w->up)
		if (is_segment_window(w))
			return w->label;
	return e->process ? e->process->label : "";
}

/*
 * Without windows, pending forwards and work of the shim's own on another stream, a call costs no lock. What
 * ran before the earliest pending forward needs no order with a replay beyond the program's own: whoever
 * changes a byte after that forward is ordered after it by the program.
 */
int rs_engine_idle(struct rs_engine *e, const struct rs_thread *t, struct rs_queue q)
{
	uint64_t fences = __atomic_load_n(&e->fence_queues, __ATOMIC_RELAXED);

	if (t->top || __atomic_load_n(&e->interested, __ATOMIC_RELAXED))
		return 0;
	if (!fences)
		return 1;
	return t->has_last && t->last_q.ctx == q.ctx && t->last_q.stream == q.stream &&
	       t->last_id < 63 &&
	       t->generation == __atomic_load_n(&e->generation, __ATOMIC_RELAXED) &&
	       fences == RS_QBIT(t->last_id);
}

void rs_engine_before(struct rs_engine *e, struct rs_thread *t, struct rs_call *call)
{
	struct rs_oplist list;
	struct call_state c = {.e = e, .l = &list, .call = call};
	struct rs_window *w;
	unsigned i;

	if (!call->capturing && rs_engine_idle(e, t, call->q)) {
		if (call->everything)
			__atomic_fetch_add(&e->idle_unknown_writers, 1, __ATOMIC_RELAXED);
		return;
	}
	rs_oplist_init(&list);
	pthread_mutex_lock(&e->lock);
	c.number = ++e->clock;
	call->private_[0] = c.number;
	e->stats.calls++;
	e->stats.untracked += call->untracked;
	c.q = rs_queue_id(e, t, call->q);
	c.who = (struct rs_writer){.name = call->name,
				   .kind = (uint8_t)call->kind,
				   .how = call->naccess ? call->access[0].how : RS_HOW_UNKNOWN,
				   .call = c.number,
				   .step = e->step,
				   .window = window_label(e, t)};
	locate_all(&c, t);
	for (i = 0; !call->capturing && i < call->naccess; i++)
		if (c.range[i].a)
			respect_fence(&c, c.range[i].a);
	in_windows(&c, next_window(t->top));
	for (w = e->process; w; w = w->up)
		if (is_segment_window(w))
			in_window(&c, w);
	if (!call->capturing)
		touch_model(&c);
	pthread_mutex_unlock(&e->lock);
	rs_oplist_run(e, &list);
}

/* Digest of a product just written: the log's in a forward, a check in a replay. */
static void digest_product(struct call_state *c, struct rs_window *w, const struct rs_access *x,
			   const struct rs_range *r)
{
	struct rs_logged_access *la = NULL;
	struct rs_op *op;
	struct rs_words *words;
	enum rs_class cls = class_at(w, r);
	const struct rs_logged_call *lc;
	uint32_t i;

	if (cls != RS_CLASS_PRODUCT && cls != RS_CLASS_MAYBE)
		return;
	lc = w->kind == RS_WINDOW_FORWARD ? &w->seg->log.v[w->seg->log.n - 1]
					  : &w->seg->log.v[w->matched];
	for (i = lc->first; i < lc->first + lc->n; i++)
		if (w->seg->accesses.v[i].slot == x->slot && w->seg->accesses.v[i].dir & RS_WRITE)
			la = &w->seg->accesses.v[i];
	if (!la || !la->digest != (w->kind == RS_WINDOW_FORWARD))
		return;
	words = rs_words_new(r->len);
	op = words ? rs_oplist_add(c->l, RS_OP_DIGEST, c->q) : NULL;
	if (!op) {
		free(words);
		return;
	}
	op->alloc = r->a;
	r->a->refs++;
	op->off = r->off;
	op->len = r->len;
	op->words = words;
	words->refs++;
	if (w->kind == RS_WINDOW_FORWARD) {
		la->digest = words;
	} else {
		struct rs_check *k = rs_check_add(w->rec, RS_CHECK_PRODUCT, r->a, r->off, r->len,
						  la->digest, words);

		if (k) {
			k->exact = la->exact && x->dense && !x->whole;
			k->writer = c->who;
			k->reason = RS_FINDING_NOT_EXACT;
		}
	}
}

static void products_in_window(struct call_state *c, struct rs_window *w)
{
	const struct rs_range *r;
	unsigned i;

	if (!w->seg || (w->kind == RS_WINDOW_FORWARD &&
			(!w->seg->log.n || w->seg->log.v[w->seg->log.n - 1].call != c->number)))
		return;
	if (w->kind == RS_WINDOW_REPLAY && w->matched_call != c->number)
		return;
	for (i = 0; i < c->call->naccess; i++) {
		r = range_of(c, i, RS_WRITE);
		if (r)
			digest_product(c, w, &c->call->access[i], r);
	}
}

void rs_engine_after(struct rs_engine *e, struct rs_thread *t, struct rs_call *call, int ok)
{
	struct rs_oplist list;
	struct call_state c = {.e = e, .l = &list, .call = call, .number = call->private_[0]};
	struct rs_window *w;

	if (!ok || call->capturing || (!e->config.verify && e->config.mode != RS_MODE_AUDIT))
		return;
	if (!t->top && !__atomic_load_n(&e->interested, __ATOMIC_RELAXED))
		return;
	rs_oplist_init(&list);
	pthread_mutex_lock(&e->lock);
	locate_all(&c, t);
	c.q = rs_queue_id(e, t, call->q);
	c.who = (struct rs_writer){.name = call->name,
				   .kind = (uint8_t)call->kind,
				   .how = call->naccess ? call->access[0].how : RS_HOW_UNKNOWN,
				   .call = c.number,
				   .step = e->step,
				   .window = window_label(e, t)};
	for (w = next_window(t->top); w; w = outer_window(w))
		products_in_window(&c, w);
	for (w = e->process; w; w = w->up)
		if (is_segment_window(w))
			products_in_window(&c, w);
	pthread_mutex_unlock(&e->lock);
	rs_oplist_run(e, &list);
}
