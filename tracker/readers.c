/* SPDX-License-Identifier: MIT */
/*
 * Who has read last, on each queue, what a forward claims: whoever overwrites it must come after all of them (RS031).
 *
 * A claim names one reader of all of it itself. Others are a set: those on further queues that nothing orders after it, and
 * those that have read a part. A reader that comes after others, and has read all that they have, stands for them, because
 * whoever comes after it comes after them, too. Sets are not changed but replaced, and shared by the claims that the same
 * calls have read, so that a call that reads ten thousand claims makes one. A set has at most RS_CLOCKS readers; one more,
 * or one without memory, is forgotten: a race may be missed, none is invented.
 *
 * Callers: access.c, preserve.c, window.c under engine.lock.
 */
#include <stdlib.h>
#include <string.h>

#include "tracker/callstate.h"

struct reader {
	uint64_t off, end; /* what of the claim it has read: 0 and UINT64_MAX for all of it */
	uint64_t tick;
	uint32_t q;
};

struct rs_readers {
	uint32_t refs, n;
	struct reader v[];
};

/* A set in the making. */
struct list {
	uint32_t n;
	struct reader v[RS_CLOCKS + 2];
};

static void put(struct rs_readers *r)
{
	if (r && !--r->refs)
		free(r);
}

void rs_readers_forget(struct rs_claim *c)
{
	put(c->others);
	c->others = NULL;
}

/* Is x done with when `now` reads? */
static int stands_for(const struct rs_engine *e, const struct reader *now, const struct reader *x)
{
	return now->off <= x->off && x->end <= now->end && rs_order_known(e, x->q, x->tick, now->q);
}

/* The readers of the claim beside its own one, once `now` has read it, too. */
static void others_of(const struct rs_engine *e, const struct rs_claim *c, const struct reader *now,
		      struct list *l)
{
	const struct reader own = {0, UINT64_MAX, c->tick, c->q};
	int all = now->end == UINT64_MAX;
	uint32_t i;

	l->n = 0;
	if (all && !stands_for(e, now, &own))
		l->v[l->n++] = own;
	for (i = 0; c->others && i < c->others->n; i++)
		if (!stands_for(e, now, &c->others->v[i]))
			l->v[l->n++] = c->others->v[i];
	if (!all)
		l->v[l->n++] = *now;
}

static int is_set(const struct rs_readers *r, const struct list *l)
{
	uint32_t i;

	for (i = 0; r && r->n == l->n && i < l->n; i++)
		if (r->v[i].q != l->v[i].q || r->v[i].tick != l->v[i].tick ||
		    r->v[i].off != l->v[i].off || r->v[i].end != l->v[i].end)
			return 0;
	return r && r->n == l->n;
}

/* *shared: the set that the call has made last; a reference. */
static void read_claim(const struct rs_callstate *c, struct rs_claim *claim,
		       const struct reader *now, struct rs_readers **shared)
{
	struct list l;

	others_of(c->e, claim, now, &l);
	if (l.n > RS_CLOCKS)
		return;
	if (l.n && !is_set(*shared, &l)) {
		struct rs_readers *r = malloc(sizeof(*r) + l.n * sizeof(l.v[0]));

		if (!r)
			return;
		r->refs = 1;
		r->n = l.n;
		memcpy(r->v, l.v, l.n * sizeof(l.v[0]));
		put(*shared);
		*shared = r;
	}
	put(claim->others);
	claim->others = l.n ? *shared : NULL;
	if (claim->others)
		claim->others->refs++;
	if (now->end != UINT64_MAX)
		return;
	claim->q = now->q;
	claim->tick = now->tick;
}

/*
 * The window reads the range: a forward what it claims itself, a replay what its forward claims. An access that may go
 * anywhere proves no reader.
 */
void rs_readers_note(struct rs_callstate *c, struct rs_window *w, const struct rs_range *r)
{
	const struct rs_access *x = rs_access_of(c, r);
	uint64_t end = r->off + r->len;
	struct rs_readers *shared = NULL;
	struct rs_touch *t;
	uint32_t i;

	if (!c->who.tick || c->e->queues.n < 2 || !w->seg || x->whole || x->how >= RS_HOW_REACHABLE)
		return;
	t = rs_touch_of(w->seg->touches, r->a);
	for (i = t ? rs_claim_at(t, r->off) : 0; t && i < t->claims.n; i++) {
		struct rs_claim *claim = &t->claims.v[i];
		struct reader now = {0, UINT64_MAX, c->who.tick, c->q};

		if (claim->off >= end)
			break;
		if (claim->off < r->off || claim->off + claim->len > end) {
			now.off = rs_max64(claim->off, r->off);
			now.end = rs_min64(claim->off + claim->len, end);
		}
		read_claim(c, claim, &now, &shared);
	}
	put(shared);
}

/* Do all who have read these bytes of the claim come before what is enqueued on q now, as far as is known? */
int rs_readers_done(const struct rs_engine *e, const struct rs_claim *c, uint64_t off, uint64_t len,
		    uint32_t q)
{
	uint32_t i;

	for (i = 0; c->others && i < c->others->n; i++) {
		const struct reader *x = &c->others->v[i];

		if (x->off < off + len && off < x->end && !rs_order_known(e, x->q, x->tick, q))
			return 0;
	}
	return rs_order_known(e, c->q, c->tick, q);
}

/* A writer comes that is not ordered after a reader: all replays of the segment are concerned, also those under way. */
void rs_readers_race(struct rs_engine *e, struct rs_segment *s, struct rs_alloc *a, uint64_t off,
		     uint64_t len, const struct rs_writer *writer)
{
	struct rs_replay *r;

	if (s->race.alloc)
		return;
	rs_segment_note(e, s, RS_CHECK_RACE, a, off, len, writer);
	for (r = e->outer ? rs_capture_script(e) : e->flight; r; r = r->next) {
		struct rs_check *k =
			r->seg == s ? rs_check_add(r, RS_CHECK_RACE, a, off, len, NULL, NULL)
				    : NULL;

		if (k)
			k->writer = *writer;
	}
}
