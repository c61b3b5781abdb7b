/* SPDX-License-Identifier: MIT */
/*
 * Memory that a window has only read by accesses that reach nobody knows how far: a gather from one tensor of a pool in which
 * others lie. That all of it may have been read says of no byte that it is state, so a write without a read may still make a
 * product there, as any first write may.
 *
 * A forward's product is one if all of it is certainly written; a replay's, too, if the forward's same call wrote elsewhere.
 * Where the replay writes to the same place, or nobody knows to which bytes, it cannot be told; but a write to the same buffer
 * as the forward's, from which the forward has read in the same way, is one to state (rows of a table that are looked up).
 *
 * Nor is memory state any more that the program's own allocator has given out again inside of the window (suballoc.c).
 *
 * Callers: access.c, with engine.lock held.
 */
#include <string.h>

#include "tracker/callstate.h"

/* A boundary at off, inside of span i. 0: no memory. */
static int cut(struct rs_touch *t, uint32_t i, uint64_t off)
{
	uint64_t first = off - t->spans.v[i].off;
	struct rs_span *s;

	if (!rs_touch_push(t))
		return 0;
	s = &t->spans.v[i];
	memmove(s + 1, s, (t->spans.n - 1 - i) * sizeof(*s));
	s[0].len = first;
	s[1].off += first;
	s[1].len -= first;
	return 1;
}

/* What a write without a read makes of loosely read bytes. */
static enum rs_class written_class(struct rs_callstate *c, struct rs_window *w,
				   const struct rs_range *r)
{
	int dense = rs_access_of(c, r)->dense;

	if (w->kind == RS_WINDOW_FORWARD)
		return dense ? RS_CLASS_PRODUCT : RS_CLASS_STATE;
	switch (rs_pair_moved(c, w, r)) {
	case RS_MOVED:
		return dense ? RS_CLASS_PRODUCT : RS_CLASS_AMBIGUOUS;
	case RS_NOT_MOVED:
		return dense ? RS_CLASS_AMBIGUOUS : RS_CLASS_STATE;
	default:
		return RS_CLASS_AMBIGUOUS;
	}
}

/* Part [off, end) of span i is of another class after all. Returns the span that is the part now. */
static uint32_t become(struct rs_window *w, struct rs_touch *t, uint32_t i, uint64_t off,
		       uint64_t end, enum rs_class cls, int loose)
{
	struct rs_span *s = &t->spans.v[i];

	if (off > s->off) {
		if (!cut(t, i, off))
			goto failed;
		i++;
	}
	s = &t->spans.v[i];
	if (end < s->off + s->len && !cut(t, i, end))
		goto failed;
	s = &t->spans.v[i];
	s->loose = cls == RS_CLASS_AMBIGUOUS && loose;
	s->cls = (uint8_t)cls;
	if (w->kind == RS_WINDOW_REPLAY && cls != RS_CLASS_STATE)
		rs_window_unhold(w, t->alloc, s->off, s->len,
				 cls == RS_CLASS_PRODUCT ? RS_UNHOLD
				 : loose		 ? RS_HOLD_BOTH
							 : RS_HOLD_COMPARE);
	return i;
failed:
	*(w->rec ? &w->rec->flags : &w->seg->flags) |= RS_F_INTERNAL;
	return i;
}

/*
 * Part [off, end) of span i, which has been read loosely, is accessed again. Returns the span that is the part now, or i where
 * nothing changes.
 */
uint32_t rs_loose_access(struct rs_callstate *c, struct rs_window *w, struct rs_touch *t,
			 uint32_t i, const struct rs_range *r, uint64_t off, uint64_t end, int read)
{
	const struct rs_access *x = rs_access_of(c, r);
	const struct rs_span *s = &t->spans.v[i];
	enum rs_class cls;

	/* what the call reads through the same argument is what it writes to */
	if (x->whole && (read || rs_pair_also_read(c, r)))
		return i;
	cls = read ? RS_CLASS_STATE : written_class(c, w, r);
	if (!read && cls == RS_CLASS_STATE)
		return i;
	if (s->cls != RS_CLASS_STATE && (read || !x->dense))
		return i;
	/* where it cannot be told and nobody knows how far it went, a later call may still make products */
	return become(w, t, i, off, end, cls, !x->dense);
}

uint32_t rs_reborn_access(struct rs_window *w, struct rs_touch *t, uint32_t i, uint64_t off,
			  uint64_t end)
{
	return become(w, t, i, off, end, RS_CLASS_PRODUCT, 0);
}
