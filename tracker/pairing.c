/* SPDX-License-Identifier: MIT */
/*
 * The calls of a window: logged by its forward, paired by its replays, so that products are compared with their
 * own, wherever they were allocated, and an input that moved is not mistaken for another one.
 *
 * Callers: access.c, with engine.lock held.
 */
#include <stdlib.h>
#include <string.h>

#include "tracker/callstate.h"

/* How far the log is searched for a call that the replay skipped to. */
#define RESYNC 256u

/* Forwards are as long as those before: a log that grows anew each time costs more than its entries. */
void rs_log_spare(struct rs_engine *e, struct rs_segment *s)
{
	if (e->nspare_logs == RS_LOG_ROOMS) {
		free(s->log.v);
		free(s->accesses.v);
		return;
	}
	e->spare_logs[e->nspare_logs++] = (struct rs_log_room){.log = s->log.v,
							       .log_cap = s->log.cap,
							       .accesses = s->accesses.v,
							       .accesses_cap = s->accesses.cap};
}

void rs_log_take_spare(struct rs_engine *e, struct rs_segment *s)
{
	const struct rs_log_room *r;

	if (!e->nspare_logs)
		return;
	r = &e->spare_logs[--e->nspare_logs];
	s->log.v = r->log;
	s->log.cap = r->log_cap;
	s->accesses.v = r->accesses;
	s->accesses.cap = r->accesses_cap;
}

void rs_logs_fini(struct rs_engine *e)
{
	while (e->nspare_logs) {
		e->nspare_logs--;
		free(e->spare_logs[e->nspare_logs].log);
		free(e->spare_logs[e->nspare_logs].accesses);
	}
}

static enum rs_class class_at(const struct rs_window *w, const struct rs_range *r)
{
	const struct rs_touch *t =
		rs_touch_of(w->kind == RS_WINDOW_FORWARD ? w->seg->touches : w->touches, r->a);
	uint32_t i = t ? rs_span_at(t, r->off) : 0;

	if (t && i < t->spans.n && t->spans.v[i].off <= r->off)
		return t->spans.v[i].cls;
	return RS_CLASS_NONE;
}

/*
 * A kernel's arguments but for those that point to memory; 0: they are not known. A word that is an access does point
 * there; those are in the order of the words.
 */
static uint64_t scalars_of(const struct rs_callstate *c)
{
	const struct rs_call *call = c->call;
	const struct rs_access *x = call->access, *end = x + call->naccess;
	const struct rs_addrmap *map = rs_engine_outer(c->e)->map;
	const uint8_t *args = call->args;
	uint64_t h = call->arg_bytes, word;
	uint32_t at;

	if (!args)
		return 0;
	for (at = 0; at < call->arg_bytes; at += 8) {
		while (x < end && x->slot < at / 8)
			x++;
		if (x < end && x->slot == at / 8)
			continue;
		word = 0;
		memcpy(&word, args + at, rs_min64(8, call->arg_bytes - at));
		if (word >> 32 && rs_addrmap_find(map, word, NULL, NULL))
			continue;
		h = rs_digest_mix((h + at) * RS_DIGEST_K + word); /* by its place, too */
	}
	return h | 1;
}

/* Has the forward's call been given the same numbers? */
static void compare_scalars(const struct rs_callstate *c, struct rs_window *w,
			    const struct rs_logged_call *lc)
{
	uint64_t now = lc->scalars ? scalars_of(c) : 0;

	if (!now || now == lc->scalars || w->rec->flags & RS_F_ARGUMENTS)
		return;
	rs_where_flags(c->e, w, RS_F_ARGUMENTS, &c->who);
}

/* Where in its allocation an argument points. */
static uint64_t place_in(const struct rs_alloc *a, uint64_t addr)
{
	const struct rs_mapping *m = a->mappings;

	while (m && addr - m->base >= m->bytes)
		m = m->next;
	return m ? m->off + addr - m->base : addr - a->base;
}

void rs_pair_log(struct rs_callstate *c, struct rs_window *w)
{
	struct rs_segment *s = w->seg;
	struct rs_logged_call *lc = RS_ROOM(s->accesses, c->nranges) ? RS_PUSH(s->log) : NULL;
	struct rs_logged_access *la;
	uint32_t i;

	if (!lc) {
		s->flags |= RS_F_INTERNAL;
		return;
	}
	lc->ident = c->call->ident;
	lc->name = c->call->name;
	lc->call = c->number;
	lc->scalars = scalars_of(c);
	lc->first = s->accesses.n;
	la = &s->accesses.v[s->accesses.n];
	s->accesses.n += c->nranges;
	for (i = 0; i < c->nranges; i++, la++) {
		const struct rs_range *r = &c->range[i];
		const struct rs_access *x = rs_access_of(c, r);
		uint8_t cls = x->dir & RS_WRITE ? r->cls : (uint8_t)RS_CLASS_NONE;

		*la = (struct rs_logged_access){.serial = r->a->serial,
						.off = r->off,
						.len = r->len,
						.dir = x->dir,
						.slot = x->slot,
						.piece = r->piece,
						.cls = cls,
						.at = x->whole ? place_in(r->a, x->addr) : 0,
						.exact = x->dense && !x->whole,
						.whole = x->whole || x->how >= RS_HOW_REACHABLE};
		c->follow_up |= cls == RS_CLASS_PRODUCT || cls == RS_CLASS_MAYBE;
	}
	lc->n = c->nranges;
}

int rs_pair_plan(struct rs_callstate *c, const struct rs_window *w, struct rs_thread *t)
{
	struct rs_segment *s = w->seg;
	const struct rs_logged_call *lc = s->log.n ? &s->log.v[s->log.n - 1] : NULL;
	uint32_t i;

	if (!lc || lc->call != c->number || lc->n != c->nranges)
		return 0;
	for (i = 0; i < c->nranges; i++) {
		const struct rs_range *r = &c->range[i];
		struct rs_logged_access *la = &s->accesses.v[lc->first + i];
		struct rs_words *words;
		struct rs_post *p;

		if (la->cls != RS_CLASS_PRODUCT && la->cls != RS_CLASS_MAYBE)
			continue;
		words = rs_words_new(r->len);
		p = words ? RS_PUSH(t->posts) : NULL;
		if (!p) {
			free(words);
			rs_pair_unplan(c->e, t, w);
			return 0;
		}
		la->digest = words;
		*p = (struct rs_post){.words = words,
				      .alloc = r->a,
				      .addr = rs_alloc_addr(r->a, r->off, r->len),
				      .off = r->off,
				      .len = r->len,
				      .access = r->access,
				      .logged = lc->first + i};
		c->e->stats.digests++;
		c->e->stats.digest_bytes += r->len;
	}
	return 1;
}

void rs_pair_unplan(struct rs_engine *e, struct rs_thread *t, const struct rs_window *w)
{
	uint32_t i;

	for (i = 0; i < t->posts.n; i++) {
		const struct rs_post *p = &t->posts.v[i];

		e->stats.digests--;
		e->stats.digest_bytes -= p->len;
		if (!w || w->seg != t->posts_of)
			continue;
		w->seg->accesses.v[p->logged].digest = NULL;
		rs_words_put(e, p->words);
	}
	t->posts.n = 0;
}

/* Find the forward's call that this one repeats: the next one, or a later one if calls were left out. */
void rs_pair_match(struct rs_callstate *c, struct rs_window *w)
{
	const struct rs_segment *s = w->seg;
	uint32_t i, limit = w->log_at + RESYNC;

	c->follow_up = 1;
	if (__atomic_load_n(&rs_engine_outer(c->e)->inexact, __ATOMIC_RELAXED))
		rs_where_want(c->e);
	for (i = w->log_at; i < s->log.n && i < limit; i++) {
		if (s->log.v[i].ident != c->call->ident)
			continue;
		if (i != w->log_at)
			w->rec->flags |= RS_F_STRUCTURE;
		w->rec->skipped += i - w->log_at;
		w->matched = i;
		w->seg->log.v[i].repeated = c->number;
		w->matched_call = c->number;
		w->log_at = i + 1;
		compare_scalars(c, w, &s->log.v[i]);
		return;
	}
	w->rec->flags |= RS_F_STRUCTURE;
	w->rec->extra++;
}

static int same_argument(const struct rs_logged_access *la, const struct rs_callstate *c,
			 const struct rs_range *r)
{
	return la->slot == rs_access_of(c, r)->slot && la->piece == r->piece;
}

/*
 * The access of the logged call in that direction through the argument of r, one of the call's ranges; or NULL. A call that is
 * the same has it at the same place; several variables of a module are told apart by that alone.
 */
static struct rs_logged_access *logged_access(const struct rs_callstate *c,
					      const struct rs_window *w,
					      const struct rs_logged_call *lc,
					      const struct rs_range *r, int dir)
{
	struct rs_logged_access *la;
	uint32_t i = (uint32_t)(r - c->range);

	if (!lc->n)
		return NULL;
	la = &w->seg->accesses.v[lc->first];
	if (i < lc->n && same_argument(&la[i], c, r) && la[i].dir & dir)
		return &la[i];
	for (i = 0; i < lc->n; i++)
		if (same_argument(&la[i], c, r) && la[i].dir & dir)
			return &la[i];
	return NULL;
}

/* What the forward read through this argument of this very call, or NULL. */
static const struct rs_logged_access *
forward_read(const struct rs_callstate *c, const struct rs_window *w, const struct rs_range *r)
{
	if (!w->seg || w->matched_call != c->number)
		return NULL;
	return logged_access(c, w, &w->seg->log.v[w->matched], r, RS_READ);
}

int rs_pair_also_read(const struct rs_callstate *c, const struct rs_range *r)
{
	uint32_t i;

	for (i = 0; i < c->nranges; i++) {
		const struct rs_range *o = &c->range[i];

		if (rs_access_of(c, o)->dir & RS_READ &&
		    rs_access_of(c, o)->slot == rs_access_of(c, r)->slot && o->a == r->a &&
		    o->off < r->off + r->len && r->off < o->off + o->len)
			return 1;
	}
	return 0;
}

/* Was this write the forward's first access to what it wrote, and that a product by it? */
static int has_made(const struct rs_segment *s, const struct rs_logged_access *la)
{
	const struct rs_touch *t = rs_touch_find(s->touches, la->serial);
	uint32_t i = t ? rs_span_at(t, la->off) : 0;

	if (!t || i == t->spans.n || t->spans.v[i].off > la->off)
		return 0;
	return (la->cls == RS_CLASS_PRODUCT || la->cls == RS_CLASS_MAYBE) &&
	       &s->accesses.v[t->spans.v[i].place] == la;
}

/* A write to r: has the forward made a product by it, in this very call? What is also read is changed, not made. */
int rs_pair_made_product(const struct rs_callstate *c, const struct rs_window *w,
			 const struct rs_range *r)
{
	const struct rs_logged_access *la;

	if (!w->seg || w->matched_call != c->number)
		return 0;
	la = logged_access(c, w, &w->seg->log.v[w->matched], r, RS_WRITE);
	return la && has_made(w->seg, la);
}

/*
 * The forward read other bytes here, of another allocation or of another place in a pool: this is not the
 * same tensor, and old bytes of its address must not be put over it. Nothing can be said about the input but that it moved, or was freed.
 */
int rs_pair_relocated(struct rs_callstate *c, struct rs_window *w, const struct rs_range *r,
		      uint64_t off, uint64_t len)
{
	const struct rs_logged_access *la = forward_read(c, w, r);
	struct rs_alloc *a = r->a;
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
		rs_where_want(c->e);
	}
	return 1;
}

/* Has the forward, up to its n-th call, read nobody knows how much from just there? */
static int read_from(const struct rs_segment *s, uint32_t n, const struct rs_alloc *a, uint64_t at)
{
	uint32_t i, end = s->log.v[n].first + s->log.v[n].n;

	for (i = 0; i < end; i++) {
		const struct rs_logged_access *la = &s->accesses.v[i];

		if (la->dir & RS_READ && la->whole && la->serial == a->serial && la->at == at)
			return 1;
	}
	return 0;
}

enum rs_moved rs_pair_moved(const struct rs_callstate *c, const struct rs_window *w,
			    const struct rs_range *r)
{
	const struct rs_access *x = rs_access_of(c, r);
	const struct rs_logged_access *la;

	if (!w->seg || w->matched_call != c->number)
		return RS_MOVED_UNKNOWN;
	la = logged_access(c, w, &w->seg->log.v[w->matched], r, RS_WRITE);
	if (!la)
		return RS_MOVED_UNKNOWN;
	if (la->serial != r->a->serial || la->off != r->off || la->len != r->len)
		return RS_MOVED;
	if (!x->whole)
		return RS_NOT_MOVED;
	if (la->at != place_in(r->a, x->addr))
		return RS_MOVED;
	return read_from(w->seg, w->matched, r->a, la->at) ? RS_NOT_MOVED : RS_MOVED_UNKNOWN;
}

/* Is any of these bytes a product of the forward? */
static int forward_product(const struct rs_segment *s, const struct rs_alloc *a, uint64_t off,
			   uint64_t len)
{
	const struct rs_touch *t = rs_touch_of(s->touches, a);
	uint32_t i = t ? rs_span_at(t, off) : 0;

	for (; t && i < t->spans.n && t->spans.v[i].off < off + len; i++)
		if (t->spans.v[i].cls == RS_CLASS_PRODUCT)
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
int rs_pair_taken_over(struct rs_callstate *c, struct rs_window *w, struct rs_alloc *a,
		       uint64_t off, uint64_t len)
{
	const struct rs_logged_call *after = NULL;
	const struct rs_logged_access *made;
	struct rs_writer who = {.name = "unknown", .kind = RS_CALL_OTHER, .window = ""};

	if (!w->seg || w->matched_call != c->number || !forward_product(w->seg, a, off, len))
		return 0;
	made = made_before(w->seg, w->matched, &(struct rs_range){.a = a, .off = off, .len = len},
			   &after);
	if (!made || made->cls != RS_CLASS_PRODUCT || made->off != off || made->len != len ||
	    !made->digest || made->late)
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

static uint64_t number_of(const struct rs_window *w, const struct rs_logged_call *lc)
{
	return w->kind == RS_WINDOW_FORWARD ? lc->call : lc->repeated;
}

/*
 * The log's entry of a call that has just been made in the window, or NULL. It is the last one, or, of a graph, whose calls
 * come in one piece, the one behind that of the call before (after_at).
 */
static struct rs_logged_call *logged(const struct rs_callstate *c, struct rs_window *w)
{
	const struct rs_segment *s = w->seg;
	uint32_t i = w->kind == RS_WINDOW_FORWARD ? s->log.n : w->log_at;

	if (w->after_at < i && number_of(w, &s->log.v[w->after_at]) == c->number)
		return &s->log.v[w->after_at++];
	for (; i > 0; i--) {
		uint64_t call = number_of(w, &s->log.v[i - 1]);

		if (call == c->number) {
			w->after_at = i;
			return &s->log.v[i - 1];
		}
		if (call && call < c->number)
			return NULL;
	}
	return NULL;
}

/* Digest of a product just written: the log's in a forward, a check in a replay. */
static void digest_product(struct rs_callstate *c, struct rs_window *w,
			   const struct rs_logged_call *lc, const struct rs_range *r)
{
	const struct rs_access *x = rs_access_of(c, r);
	struct rs_logged_access *la;
	struct rs_words *words;
	enum rs_class cls = class_at(w, r);

	if (w->kind == RS_WINDOW_FORWARD && cls != RS_CLASS_PRODUCT && cls != RS_CLASS_MAYBE)
		return;
	la = logged_access(c, w, lc, r, RS_WRITE);
	if (!la || !la->digest != (w->kind == RS_WINDOW_FORWARD))
		return;
	words = rs_plan_digest(c->l, c->q, r->a, r->off, r->len);
	if (!words)
		return;
	if (w->kind == RS_WINDOW_FORWARD) {
		la->digest = words;
		la->late = x->late;
	} else {
		/* bytes of different moments: cannot be told */
		struct rs_check *k = rs_check_add(w->rec, RS_CHECK_PRODUCT, r->a, r->off, r->len,
						  la->late == x->late ? la->digest : NULL, words);

		if (k) {
			k->exact = la->exact && x->dense && !x->whole;
			k->writer = c->who;
			k->reason = RS_FINDING_NOT_EXACT;
		}
	}
}

/* Of forward and replay only one has made the call: its products are there in the one and not in the other. */
static void made_once(struct rs_callstate *c, struct rs_window *w)
{
	uint32_t i;

	w->rec->flags |= RS_F_STRUCTURE;
	for (i = 0; i < c->nranges; i++) {
		const struct rs_range *r = &c->range[i];
		enum rs_class cls = class_at(w, r);
		struct rs_check *k;

		if (!(rs_access_of(c, r)->dir & RS_WRITE) ||
		    (cls != RS_CLASS_PRODUCT && cls != RS_CLASS_MAYBE))
			continue;
		k = rs_check_add(w->rec, RS_CHECK_PRODUCT, r->a, r->off, r->len, NULL, NULL);
		if (k)
			k->writer = c->who;
	}
}

/* The driver has refused the call. A replay's may be refused as its forward's was. */
void rs_pair_refused(struct rs_callstate *c, struct rs_window *w)
{
	struct rs_logged_call *lc = w->seg ? logged(c, w) : NULL;

	if (lc && w->kind == RS_WINDOW_FORWARD)
		lc->refused = 1;
	else if (lc && !lc->refused)
		made_once(c, w);
}

void rs_pair_products(struct rs_callstate *c, struct rs_window *w)
{
	const struct rs_logged_call *lc = w->seg && !w->seg->kept ? logged(c, w) : NULL;
	uint32_t i;

	if (lc && lc->refused) {
		made_once(c, w);
		return;
	}
	for (i = 0; lc && i < c->nranges; i++)
		if (rs_access_of(c, &c->range[i])->dir & RS_WRITE)
			digest_product(c, w, lc, &c->range[i]);
}
