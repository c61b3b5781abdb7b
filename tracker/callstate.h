/* SPDX-License-Identifier: MIT */
/*
 * One driver call on its way through the engine: shared by access.c (what it means to windows), locate.c
 * (which bytes its addresses are) and pairing.c (which call of the forward it repeats). engine.lock is held.
 */
#ifndef RS_TRACKER_CALLSTATE_H
#define RS_TRACKER_CALLSTATE_H

#include "tracker/model.h"

struct rs_callstate {
	struct rs_engine *e;
	struct rs_oplist *l;
	struct rs_call *call;
	uint32_t q;
	uint64_t number;
	struct rs_writer who;
	const struct rs_range *range; /* in the order of the accesses */
	uint32_t nranges;
	uint8_t follow_up; /* a window has something to do after the call, even if it was made */
};

/* The access that a range belongs to. */
static inline const struct rs_access *rs_access_of(const struct rs_callstate *c,
						   const struct rs_range *r)
{
	return &c->call->access[r->access];
}

/* access.c: the two halves of a call; what is to be enqueued goes into c->l. engine.lock held. */
void rs_call_plan(struct rs_callstate *c, struct rs_thread *t);
void rs_call_plan_after(struct rs_callstate *c, struct rs_thread *t, int ok);

/* locate.c. Without memory for the list the call becomes one that may do anything. */
void rs_locate(struct rs_callstate *c, struct rs_thread *t);

/* window.c: is w the only open replay of a segment for which no further one is expected? */
int rs_window_is_last(const struct rs_engine *e, const struct rs_window *w);
/* window.c: which forward a replay without a number repeats; its first call decides */
void rs_window_resolve(const struct rs_callstate *c, struct rs_window *w);

/* readers.c */
void rs_readers_note(struct rs_callstate *c, struct rs_window *w, const struct rs_range *r);

/* profile.c */
void rs_profile_aliases(const struct rs_callstate *c, const struct rs_window *w);

/* pairing.c */
void rs_pair_log(struct rs_callstate *c, struct rs_window *w);
void rs_pair_match(struct rs_callstate *c, struct rs_window *w);
int rs_pair_relocated(struct rs_callstate *c, struct rs_window *w, const struct rs_range *r,
		      uint64_t off, uint64_t len);
int rs_pair_taken_over(struct rs_callstate *c, struct rs_window *w, struct rs_alloc *a,
		       uint64_t off, uint64_t len);
void rs_pair_products(struct rs_callstate *c, struct rs_window *w);
void rs_pair_refused(struct rs_callstate *c, struct rs_window *w);

#endif
