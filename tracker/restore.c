/* SPDX-License-Identifier: MIT */
/*
 * Replays and bytes: showing a replay what its forward saw, holding what it changes, putting the world back; in
 * audit, comparing instead. See model.h for the life of a byte.
 *
 * All functions run under engine.lock and only plan operations; rs_oplist_run enqueues them.
 */
#include "tracker/model.h"

/*
 * Something that needs no digest to be wrong: an access of the window without order to another one (RACE), or
 * one that the contract does not know (BROKEN). A forward's concerns all of its replays.
 */
void rs_place_note(struct rs_engine *e, struct rs_window *w, enum rs_check_kind kind,
		   struct rs_alloc *a, uint64_t off, uint64_t len, const struct rs_writer *writer)
{
	struct rs_check *c;

	if (w->kind == RS_WINDOW_FORWARD) {
		rs_segment_note(e, w->seg, kind, a, off, len, writer);
		return;
	}
	if (rs_check_has(w->rec, kind, a, off))
		return;
	c = rs_check_add(w->rec, kind, a, off, len, NULL, NULL);
	if (!c)
		return;
	c->writer = *writer;
	rs_where_want(e);
}

/* The shim puts bytes of an older version there. */
int rs_place(struct rs_engine *e, struct rs_alloc *a, uint64_t off, uint64_t len, uint64_t ver)
{
	int err = rs_extmap_set(&a->ext, off, len, ver, 1);

	if (!err)
		a->ext.ext[rs_extmap_at(&a->ext, off)].placed = rs_version_next(e);
	return err;
}

/* Index of the first of the window's held spans that ends behind off, or belongs to an allocation that comes later. */
static uint32_t held_at(const struct rs_window *w, const struct rs_alloc *a, uint64_t off)
{
	uint32_t lo = 0, hi = w->held.n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct rs_held *h = &w->held.v[mid];

		if (h->serial == a->serial ? h->end <= off : h->serial < a->serial)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

uint64_t rs_window_held_until(const struct rs_window *w, const struct rs_alloc *a, uint64_t off,
			      uint64_t end, int *ret_held)
{
	uint32_t i = held_at(w, a, off);
	const struct rs_held *h = &w->held.v[i];

	*ret_held = 0;
	if (i == w->held.n || h->serial != a->serial)
		return end;
	*ret_held = h->off <= off;
	return rs_min64(end, *ret_held ? h->end : h->off);
}

/* [off, off + len), none of which is held yet, is from now on. There is room for one more span. */
void rs_window_held(struct rs_window *w, const struct rs_alloc *a, uint64_t off, uint64_t len)
{
	uint32_t i = held_at(w, a, off);
	struct rs_held *h = &w->held.v[i], *last = i ? h - 1 : NULL;

	if (last && last->serial == a->serial && last->end == off) {
		last->end = off + len;
		return;
	}
	memmove(h + 1, h, (w->held.n++ - i) * sizeof(*h));
	*h = (struct rs_held){a->serial, off, off + len};
}

/* What rs_window_held said is so no more. 0: there is no memory to say it. */
int rs_window_unheld(struct rs_window *w, const struct rs_alloc *a, uint64_t off, uint64_t len)
{
	int room = RS_ROOM(w->held, 1);
	uint32_t i = held_at(w, a, off);
	struct rs_held *h = &w->held.v[i];

	if (!room)
		return 0;
	if (h->off < off && off + len < h->end) {
		memmove(h + 1, h, (w->held.n++ - i) * sizeof(*h));
		h[0].end = off;
		h[1].off = off + len;
	} else if (h->off < off) {
		h->end = off;
	} else if (off + len < h->end) {
		h->off = off + len;
	} else {
		memmove(h, h + 1, (--w->held.n - i) * sizeof(*h));
	}
	return 1;
}

/* The replay w is about to change [off, off + len): hold the present bytes (P2) until its end. */
void rs_window_hold_range(struct rs_engine *e, struct rs_oplist *l, uint32_t q, struct rs_window *w,
			  struct rs_alloc *a, uint64_t off, uint64_t len, enum rs_hold_how how,
			  const struct rs_writer *writer)
{
	/* what is compared as a whole must be kept as that */
	int exact = e->config.mode == RS_MODE_AUDIT || how != RS_HOLD_RESTORE;
	uint64_t end = off + len;

	if (rs_view_in_vain(a, writer)) { /* what is there now may not be P2 */
		w->rec->flags |= RS_F_LOST;
		return;
	}
	while (off < end) {
		struct rs_ext piece;
		struct rs_hold *h;
		struct rs_keep *k;
		int held;

		len = rs_window_held_until(w, a, off, end, &held) - off;
		if (held) {
			off += len;
			continue;
		}
		/* one write may have gone over what is held and what is not */
		if (rs_extmap_split(&a->ext, off, len)) {
			w->rec->flags |= RS_F_INTERNAL;
			return;
		}
		piece = a->ext.ext[rs_extmap_at(&a->ext, off)];
		off = piece.off + piece.len;
		k = RS_ROOM(w->held, 1) ? rs_keep_take(e, l, q, a, &piece, writer, exact) : NULL;
		if (k && exact && k->killer.call == writer->call)
			rs_where_want(e);
		h = k ? RS_PUSH(w->holds) : NULL;
		if (!h) {
			w->rec->flags |= RS_F_LOST;
			continue;
		}
		h->alloc = a;
		h->keep = k;
		h->off = piece.off;
		h->len = piece.len;
		h->how = (uint8_t)how;
		h->at = rs_version_next(e);
		rs_window_held(w, a, piece.off, piece.len);
		a->refs++;
		k->holds++;
		w->rec->ranges++;
		w->rec->bytes += piece.len;
	}
}

/* Bytes [off, end) of a hold become one of their own. 0: no memory. */
static int part_hold(struct rs_window *w, const struct rs_hold *of, uint64_t off, uint64_t end)
{
	struct rs_hold copy = *of, *h;

	if (off >= end)
		return 1;
	h = RS_PUSH(w->holds);
	if (!h)
		return 0;
	*h = copy;
	h->off = off;
	h->len = end - off;
	h->alloc->refs++;
	h->keep->holds++;
	return 1;
}

void rs_window_unhold(struct rs_window *w, struct rs_alloc *a, uint64_t off, uint64_t len,
		      enum rs_hold_how how)
{
	uint32_t i, n = w->holds.n;

	for (i = 0; i < n; i++) {
		struct rs_hold *h = &w->holds.v[i];
		uint64_t from = rs_max64(off, h->off), to = rs_min64(off + len, h->off + h->len);

		if (h->alloc != a || from >= to || h->away || h->how == RS_UNHOLD)
			continue;
		if (h->keep->other_ver) { /* exchanged, which is taken back as a whole */
			h->how = RS_HOLD_BOTH;
			continue;
		}
		if (!part_hold(w, h, h->off, from) ||
		    !part_hold(w, &w->holds.v[i], to, w->holds.v[i].off + w->holds.v[i].len)) {
			w->rec->flags |= RS_F_INTERNAL;
			return;
		}
		h = &w->holds.v[i];
		h->off = from;
		h->len = to - from;
		h->how = (uint8_t)how;
	}
}

static void missing(struct rs_engine *e, struct rs_replay *r, struct rs_alloc *a, uint64_t off,
		    uint64_t len, enum rs_finding reason, const struct rs_writer *writer)
{
	struct rs_check *c;

	if (rs_check_has(r, RS_CHECK_ENTRY, a, off))
		return;
	c = rs_check_add(r, RS_CHECK_ENTRY, a, off, len, NULL, NULL);
	if (!c)
		return;
	c->reason = (uint8_t)reason;
	c->writer = *writer;
	rs_where_want(e);
}

/*
 * What the replay is about to read against what the forward read. ambiguous: a difference may be
 * harmless (the window may overwrite it first), so it is unknown rather than wrong.
 */
static void compare_entry(struct rs_oplist *l, uint32_t q, struct rs_window *w, struct rs_alloc *a,
			  struct rs_keep *k, int ambiguous, int unseen)
{
	struct rs_words *now;
	struct rs_check *c;

	if (rs_check_has(w->rec, RS_CHECK_ENTRY, a, k->off))
		return;
	/* no order is added: the digest sees what the program's own read is about to see */
	now = rs_plan_digest(l, q, a, k->off, k->len);
	c = rs_check_add(w->rec, RS_CHECK_ENTRY, a, k->off, k->len, k->digest, now);
	if (c) {
		c->exact = !ambiguous;
		c->unseen = (uint8_t)unseen;
		c->reason = RS_FINDING_SNAPSHOT_LOST;
		c->writer = k->killer;
	}
	w->rec->ranges++;
	w->rec->bytes += k->len;
}

/* What the replay is about to read against a digest of what it should be; there are no bytes to put there. */
void rs_window_compare_kept(struct rs_oplist *l, uint32_t q, struct rs_window *w,
			    struct rs_alloc *a, uint64_t off, uint64_t len, struct rs_words *then,
			    const struct rs_writer *writer)
{
	struct rs_check *c = rs_check_add(w->rec, RS_CHECK_ENTRY, a, off, len, then,
					  rs_plan_digest(l, q, a, off, len));

	if (!c)
		return;
	c->exact = 1;
	c->reason = RS_FINDING_SNAPSHOT_LOST;
	c->writer = *writer;
}

/* Everything about the keep's bytes that is exchanged with them. */
static void exchange_names(struct rs_keep *k, uint64_t ver, struct rs_words *digest)
{
	struct rs_words *old = k->digest;

	k->other_ver = k->ver;
	k->ver = ver;
	k->digest = digest;
	k->other_digest = old;
}

/* kind: RS_OP_SWAP or RS_OP_REMAP, which falls back on it. */
static struct rs_op *plan_swap(struct rs_engine *e, struct rs_oplist *l, uint32_t q,
			       struct rs_window *w, struct rs_alloc *a, struct rs_keep *k,
			       enum rs_op_kind kind)
{
	uint64_t users = rs_touched(e, a) | w->queues | RS_QBIT(q);
	struct rs_op *op;

	rs_oplist_order(l, rs_touched(e, a), q);
	op = rs_oplist_add(l, kind, q);
	if (!op)
		return NULL;
	op->mask = users;
	rs_op_bind(op, a, k->off, k->len);
	op->keep = k;
	k->pins++;
	rs_op_concerns(op, w->rec);
	return op;
}

/*
 * Does the segment want the keep's bytes to change places with the live ones, and may that be done by what is mapped? Where it
 * may not just now they change places all the same: a plan has no room for the present ones.
 */
static int wants_swap(const struct rs_engine *e, const struct rs_segment *s,
		      const struct rs_alloc *a, const struct rs_keep *k, enum rs_op_kind *ret)
{
	int remap = s->policy.restore == RS_RESTORE_REMAP && k->framed;

	*ret = remap && rs_remap_may(e, a) ? RS_OP_REMAP : RS_OP_SWAP;
	return remap || s->policy.restore == RS_RESTORE_SWAP;
}

/* One version of all the keep's bytes, nobody else about to use the keep, nowhere else kept: they can change places. */
static int can_swap(const struct rs_engine *e, struct rs_alloc *a, const struct rs_keep *k,
		    uint64_t off, uint64_t len)
{
	const struct rs_ext *x = &a->ext.ext[rs_extmap_at(&a->ext, off)];

	return !__atomic_load_n(&e->no_swap, __ATOMIC_RELAXED) && off == k->off && len == k->len &&
	       x->off == off && x->len == len && !k->holds && !k->pins && !k->replaced &&
	       !k->other_ver && k->state == RS_KEEP_READY && k->block &&
	       a->kind != RS_ALLOC_ARRAY && !rs_keep_find(a, off, x->ver);
}

static void check_shown(struct rs_oplist *l, uint32_t q, struct rs_window *w, struct rs_alloc *a,
			const struct rs_keep *k, struct rs_words *then)
{
	struct rs_check *c;

	if (!then)
		return;
	c = rs_check_add(w->rec, RS_CHECK_RESTORE, a, k->off, k->len, then,
			 rs_plan_digest(l, q, a, k->off, k->len));
	if (c) {
		c->exact = 1;
		c->reason = RS_FINDING_SNAPSHOT_LOST;
		c->writer = k->killer;
	}
}

/* Preserve without memory for P2: the kept bytes and the present ones change places. 0: not done. */
static int show_by_swap(struct rs_engine *e, struct rs_oplist *l, uint32_t q, struct rs_window *w,
			struct rs_alloc *a, struct rs_keep *k, enum rs_op_kind kind)
{
	uint64_t p2 = a->ext.ext[rs_extmap_at(&a->ext, k->off)].ver;
	struct rs_words *p2_digest =
		e->config.verify ? rs_plan_digest(l, q, a, k->off, k->len) : NULL;
	struct rs_hold *h = RS_ROOM(w->held, 1) ? RS_PUSH(w->holds) : NULL;
	struct rs_op *op = h ? plan_swap(e, l, q, w, a, k, kind) : NULL;

	if (!op || rs_place(e, a, k->off, k->len, k->ver)) {
		if (h)
			w->holds.n--;
		if (op) {
			op->kind = RS_OP_ORDER; /* of nothing */
			op->mask = 0;
		}
		rs_words_put(e, p2_digest);
		return 0;
	}
	exchange_names(k, p2, p2_digest);
	k->remapped = kind == RS_OP_REMAP;
	*h = (struct rs_hold){.alloc = a,
			      .keep = k,
			      .off = k->off,
			      .len = k->len,
			      .how = RS_HOLD_RESTORE,
			      .at = rs_version_next(e)};
	rs_window_held(w, a, k->off, k->len);
	a->refs++;
	k->holds++;
	w->rec->ranges++;
	w->rec->bytes += k->len;
	rs_fence(e, a, q, w->rec);
	check_shown(l, q, w, a, k, k->other_digest);
	return 1;
}

/* The replay has left the swapped bytes alone and somebody still needs them: change places again. 0: not done. */
static int swap_back(struct rs_engine *e, struct rs_oplist *l, uint32_t q, struct rs_window *w,
		     struct rs_alloc *a, struct rs_keep *k)
{
	const struct rs_ext *x = &a->ext.ext[rs_extmap_at(&a->ext, k->off)];
	uint64_t shown = k->other_ver;
	struct rs_op *op;

	if (x->off != k->off || x->len != k->len || x->ver != shown || k->holds != 1 ||
	    !rs_claimed(e, a, k->off, k->len, shown) || rs_keep_find(a, k->off, shown))
		return 0;
	op = plan_swap(e, l, q, w, a, k, k->remapped ? RS_OP_REMAP : RS_OP_SWAP);
	if (!op)
		return 0;
	op->back = 1;
	if (rs_place(e, a, k->off, k->len, k->ver))
		w->rec->flags |= RS_F_INTERNAL;
	exchange_names(k, shown, k->other_digest);
	rs_words_put(e, k->other_digest);
	k->other_ver = 0;
	k->other_digest = NULL;
	rs_fence(e, a, q, w->rec);
	return 1;
}

/*
 * The replay has these bytes by an exchange and is to leave them for a while (views.c): they change places, and the keep has
 * what the replay had there, as one version. 0: not done.
 */
int rs_swap_aside(struct rs_engine *e, struct rs_oplist *l, uint32_t q, struct rs_window *w,
		  struct rs_alloc *a, struct rs_keep *k)
{
	const struct rs_ext x = a->ext.ext[rs_extmap_at(&a->ext, k->off)];
	uint64_t p2 = k->ver;
	int shown = x.ver == k->other_ver;
	struct rs_op *op;

	if (!k->other_ver || k->holds != 1 || x.off != k->off || x.len != k->len ||
	    rs_keep_find(a, k->off, x.ver))
		return 0;
	op = plan_swap(e, l, q, w, a, k, k->remapped ? RS_OP_REMAP : RS_OP_SWAP);
	if (!op)
		return 0;
	op->back = 1;
	if (rs_place(e, a, k->off, k->len, p2))
		w->rec->flags |= RS_F_INTERNAL;
	rs_words_put(e, k->digest);
	if (!shown)
		rs_words_put(e, k->other_digest);
	k->digest = shown ? k->other_digest : NULL;
	k->other_digest = NULL;
	k->other_ver = 0;
	k->ver = x.ver;
	rs_fence(e, a, q, w->rec);
	return 1;
}

/*
 * The replay has been shown these bytes by remapping and has written to them, or nobody needs them any more: what is mapped
 * changes places all the same, and what leaves is nobody's. 0: not done.
 */
int rs_remap_back(struct rs_engine *e, struct rs_oplist *l, uint32_t q, struct rs_window *w,
		  struct rs_alloc *a, struct rs_keep *k)
{
	static const struct rs_writer self = {
		.name = "replayshim", .kind = RS_CALL_OTHER, .window = ""};
	uint64_t p2 = k->ver;
	struct rs_op *op;

	if (!k->remapped || k->holds != 1)
		return 0;
	rs_oplist_order(l, rs_touched(e, a), q); /* what is kept of it, too */
	rs_write_piecewise(e, l, q, a, k->off, k->len, &self);
	op = plan_swap(e, l, q, w, a, k, RS_OP_REMAP);
	if (!op)
		return 0;
	op->back = 1;
	if (rs_place(e, a, k->off, k->len, p2))
		w->rec->flags |= RS_F_INTERNAL;
	k->ver = rs_version_next(e);
	k->other_ver = 0;
	rs_words_put(e, k->other_digest);
	k->other_digest = NULL;
	rs_fence(e, a, q, w->rec);
	return 1;
}

/* Preserve: hold P2 of [off, off + len), put the kept bytes there. All of it is inside keep k. */
static void show_entry(struct rs_engine *e, struct rs_oplist *l, uint32_t q, struct rs_window *w,
		       struct rs_alloc *a, struct rs_keep *k, uint64_t off, uint64_t len,
		       const struct rs_writer *reader)
{
	enum rs_op_kind kind;
	struct rs_op *op;
	struct rs_keep *p2;

	/* others would have to wait for this queue's later work, or this one has not waited for theirs */
	if (__atomic_load_n(&e->stalling, __ATOMIC_RELAXED) & RS_QBIT(q) ||
	    rs_view_in_vain(a, reader)) {
		w->rec->flags |= RS_F_LOST;
		return;
	}
	if (wants_swap(e, w->seg, a, k, &kind) && can_swap(e, a, k, off, len) &&
	    show_by_swap(e, l, q, w, a, k, kind))
		return;
	rs_oplist_order(l, rs_touched(e, a), q);
	k->pins++; /* holding P2 may collect keeps */
	rs_window_hold_range(e, l, q, w, a, off, len, RS_HOLD_RESTORE, reader);
	k->pins--;
	p2 = rs_keep_find(a, off, a->ext.ext[rs_extmap_at(&a->ext, off)].ver);
	op = p2 ? rs_oplist_add(l, RS_OP_RESTORE, q) : NULL;
	if (!op || rs_place(e, a, off, len, k->ver)) {
		w->rec->flags |= RS_F_LOST;
		if (op)
			l->n--;
		return;
	}
	rs_op_bind(op, a, off, len);
	op->keep = k;
	k->pins++;
	op->guard = p2;
	p2->pins++;
	rs_op_concerns(op, w->rec);
	rs_fence(e, a, q, w->rec);
	if (off == k->off && len == k->len)
		check_shown(l, q, w, a, k, k->digest);
}

/* Nobody was seen to write these bytes since the forward read them: is that true? */
static void compare_sample(struct rs_engine *e, struct rs_oplist *l, uint32_t q,
			   struct rs_window *w, struct rs_alloc *a, const struct rs_claim *claim,
			   const struct rs_writer *reader)
{
	struct rs_check *c;

	if (rs_check_has(w->rec, RS_CHECK_SAMPLE, a, claim->off))
		return;
	c = rs_check_add(w->rec, RS_CHECK_SAMPLE, a, claim->off, claim->len, claim->sample,
			 rs_plan_digest(l, q, a, claim->off, claim->len));
	if (c)
		c->writer = *reader;
	e->stats.sampled_bytes += claim->len;
}

/* What the forward found where it then made a product: whether anybody has read it cannot be told (loose.c). */
static int made_there(const struct rs_window *w, const struct rs_alloc *a, uint64_t off)
{
	const struct rs_touch *t = rs_touch_of(w->seg->touches, a);
	uint32_t i = t ? rs_span_at(t, off) : 0;

	return t && i < t->spans.n && t->spans.v[i].off <= off &&
	       t->spans.v[i].cls == RS_CLASS_PRODUCT;
}

/* One claim against the live bytes [off, end). */
static void enter_claim(struct rs_engine *e, struct rs_oplist *l, uint32_t q, struct rs_window *w,
			struct rs_alloc *a, const struct rs_claim *c, uint64_t off, uint64_t end,
			int ambiguous, const struct rs_writer *reader)
{
	while (off < end) {
		struct rs_ext piece = a->ext.ext[rs_extmap_at(&a->ext, off)];
		uint64_t until = rs_min64(end, piece.off + piece.len);
		struct rs_keep *k;

		if (piece.ver == c->ver && !rs_alloc_is_volatile(a)) {
			if (c->sample && off == c->off && until - off == c->len)
				compare_sample(e, l, q, w, a, c, reader);
			off = until;
			continue;
		}
		k = rs_keep_find(a, off, c->ver);
		if (!k) {
			missing(e, w->rec, a, off, until - off, RS_FINDING_SNAPSHOT_LOST, reader);
			w->rec->flags |= RS_F_LOST;
			off = until;
			continue;
		}
		until = rs_min64(until, k->off + k->len);
		/*
		 * Where nobody can tell state from product, putting P0 there would lose P2: leave the
		 * bytes alone. Host memory is not changed behind the host's back either.
		 */
		if (e->config.mode == RS_MODE_AUDIT || ambiguous || rs_alloc_is_volatile(a))
			compare_entry(l, q, w, a, k, ambiguous || made_there(w, a, off),
				      piece.ver == c->ver);
		else
			show_entry(e, l, q, w, a, k, off, until - off, reader);
		off = until;
	}
}

/*
 * Bytes that the forward did not read, and that nobody has written since it began: it would have read the same.
 * Versions tell, where the shim has not put older ones back in the meantime.
 */
static int unchanged_since(const struct rs_engine *e, const struct rs_segment *s,
			   const struct rs_alloc *a, const struct rs_touch *t, uint64_t off,
			   uint64_t len)
{
	uint32_t i, j;

	if (rs_alloc_is_volatile(a) || e->loose_all > s->since ||
	    __atomic_load_n(&a->loose, __ATOMIC_RELAXED) > s->since)
		return 0;
	for (i = rs_extmap_at(&a->ext, off); i < a->ext.n && a->ext.ext[i].off < off + len; i++) {
		const struct rs_ext *x = &a->ext.ext[i];
		int same = x->ver <= s->since && x->placed <= s->since;

		if (same)
			continue;
		j = t ? rs_claim_at(t, x->off) : 0;
		if (!t || j == t->claims.n || t->claims.v[j].off > x->off ||
		    x->off + x->len > t->claims.v[j].off + t->claims.v[j].len)
			return 0; /* not read before either, else it would be judged as that */
	}
	return 1;
}

/*
 * The replay w touches [off, off + len) for the first time, reading it: see to it that it sees the
 * forward's bytes, or compare. must_know: it is certainly state, so bytes that the forward did not
 * read are a finding; else it may be a product, and is only compared.
 */
void rs_window_enter_range(struct rs_engine *e, struct rs_oplist *l, uint32_t q,
			   struct rs_window *w, struct rs_alloc *a, uint64_t off, uint64_t len,
			   int must_know, const struct rs_writer *reader)
{
	struct rs_touch *t = w->seg ? rs_touch_of(w->seg->touches, a) : NULL;
	uint64_t known = 0;
	uint32_t i;

	if (!w->seg)
		return;
	if (rs_extmap_split(&a->ext, off, len)) {
		w->rec->flags |= RS_F_INTERNAL;
		return;
	}
	for (i = t ? rs_claim_at(t, off) : 0; t && i < t->claims.n; i++) {
		const struct rs_claim *c = &t->claims.v[i];
		uint64_t from = rs_max64(off, c->off), to = rs_min64(off + len, c->off + c->len);

		if (from >= to)
			break;
		known += to - from;
		if (c->cls == RS_CLASS_MAYBE)
			continue; /* F never read it */
		enter_claim(e, l, q, w, a, c, from, to, !must_know, reader);
	}
	if (must_know && known < len && !unchanged_since(e, w->seg, a, t, off, len))
		missing(e, w->rec, a, off, len, RS_FINDING_UNSEEN_INPUT, reader);
}

/*
 * A replay that came to these bytes after w and has not ended (overlapping replays of two threads) holds what w
 * showed it as its P2. The true P2 is w's: hand it over, the last one to end puts it back.
 */
static int hand_over(struct rs_engine *e, struct rs_window *w, struct rs_hold *h)
{
	struct rs_hold *next = NULL; /* the first one after h */
	struct rs_window *other;
	uint32_t i;

	for (other = e->replays; other; other = other->next_replay)
		for (i = 0; other != w && i < other->holds.n; i++) {
			struct rs_hold *o = &other->holds.v[i];

			if (!o->away && o->how != RS_UNHOLD && o->alloc == h->alloc &&
			    o->off == h->off && o->len == h->len && o->at > h->at &&
			    (!next || o->at < next->at))
				next = o;
		}
	if (!next)
		return 0;
	next->keep->holds--;
	rs_keep_collect(e, next->alloc, next->keep);
	next->keep = h->keep;
	next->at = h->at;
	next->keep->holds++;
	return 1;
}

static void put_back(struct rs_engine *e, struct rs_oplist *l, uint32_t q, struct rs_window *w,
		     struct rs_hold *h)
{
	static const struct rs_writer self = {
		.name = "replayshim", .kind = RS_CALL_OTHER, .window = ""};
	struct rs_alloc *a = h->alloc;
	struct rs_keep *k = h->keep;
	struct rs_op *op;

	if (rs_range_is_live(a, h->off, h->len, k->ver) || hand_over(e, w, h))
		return;
	if (k->other_ver && h->off == k->off && h->len == k->len &&
	    (swap_back(e, l, q, w, a, k) || rs_remap_back(e, l, q, w, a, k)))
		return;
	rs_oplist_order(l, rs_touched(e, a), q);
	rs_write_piecewise(e, l, q, a, h->off, h->len, &self);
	op = rs_oplist_add(l, RS_OP_RESTORE, q);
	if (!op) {
		w->rec->flags |= RS_F_LOST;
		return;
	}
	rs_op_bind(op, a, h->off, h->len);
	op->back = 1;
	op->keep = k;
	k->pins++;
	rs_op_concerns(op, w->rec);
	if (rs_place(e, a, h->off, h->len, k->ver))
		w->rec->flags |= RS_F_INTERNAL;
	rs_fence(e, a, q, w->rec);
}

static void compare_after(struct rs_engine *e, struct rs_oplist *l, uint32_t q, struct rs_window *w,
			  struct rs_hold *h)
{
	struct rs_alloc *a = h->alloc;
	struct rs_keep *k = h->keep;
	struct rs_check *c;

	rs_oplist_order(l, rs_touched(e, a) & w->queues, q);
	c = rs_check_add(w->rec, h->how ? RS_CHECK_AMBIGUOUS : RS_CHECK_AFTER, a, k->off, k->len,
			 k->digest, rs_plan_digest(l, q, a, k->off, k->len));
	if (c) {
		c->exact = 1;
		c->reason = RS_FINDING_SNAPSHOT_LOST;
		c->writer = k->killer;
	}
	rs_fence(e, a, q, w->rec);
}

/* The replay is over: P2 comes back (preserve), or is compared with what is there (audit). */
void rs_window_release(struct rs_engine *e, struct rs_oplist *l, struct rs_window *w)
{
	uint32_t q = w->last_q ? w->last_q - 1 : 0, i;

	for (i = 0; i < w->holds.n; i++) {
		struct rs_hold *h = &w->holds.v[i];

		if (h->away) {
			/* P2 is there */
		} else if (!h->alloc->dead && h->keep->state != RS_KEEP_FAILED) {
			if (e->config.mode == RS_MODE_AUDIT
				    ? h->how != RS_UNHOLD
				    : h->how == RS_HOLD_COMPARE || h->how == RS_HOLD_BOTH)
				compare_after(e, l, q, w, h);
			if (e->config.mode != RS_MODE_AUDIT &&
			    (h->how == RS_HOLD_RESTORE || h->how == RS_HOLD_BOTH))
				put_back(e, l, q, w, h);
		} else if (!h->alloc->dead) {
			w->rec->flags |= RS_F_LOST;
		}
		h->keep->holds--;
		rs_keep_collect(e, h->alloc, h->keep);
		rs_alloc_unref(e, h->alloc);
	}
	rs_view_over(e, w);
	free(w->holds.v);
	w->holds.v = NULL;
	w->holds.n = w->holds.cap = 0;
	free(w->held.v);
	w->held.v = NULL;
	w->held.n = w->held.cap = 0;
}
