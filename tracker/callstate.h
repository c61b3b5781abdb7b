/* SPDX-License-Identifier: MIT */
/*
 * One driver call on its way through the engine: shared by follow.c (the way), calm.c (calls that need none),
 * locate.c (which bytes its addresses are), access.c (what they mean to windows) and pairing.c (which call of the
 * forward it repeats). engine.lock is held, but in calm.c.
 */
#ifndef RS_TRACKER_CALLSTATE_H
#define RS_TRACKER_CALLSTATE_H

#include "tracker/model.h"

/* What of a forward's range an earlier place of it has reached: places.c. */
struct rs_meeting {
	struct rs_alias_set *learned;	  /* NULL: nothing is learned */
	const struct rs_alias_set *known; /* NULL: no contract */
	const struct rs_range *range;
	uint32_t place, n; /* of how many places */
	uint64_t off, bytes;
	uint8_t wanted;
};

struct rs_callstate {
	struct rs_engine *e;
	struct rs_oplist *l;
	struct rs_call *call;
	uint32_t q;
	uint64_t number;
	struct rs_writer who;
	struct rs_range *range; /* in the order of the accesses */
	uint32_t nranges;
	struct rs_meeting meeting;
	uint8_t follow_up; /* a window has something to do after the call, even if it was made */
};

/* The access that a range belongs to. */
static inline const struct rs_access *rs_access_of(const struct rs_callstate *c,
						   const struct rs_range *r)
{
	return &c->call->access[r->access];
}

/* follow.c: the two halves of a call; what is to be enqueued goes into c->l. engine.lock held. */
void rs_call_plan(struct rs_callstate *c, struct rs_thread *t);
void rs_call_plan_after(struct rs_callstate *c, struct rs_thread *t, int ok);

/* Nothing of a call that is being captured runs now, but for the engine inside of that capture it does. */
static inline int rs_call_elsewhere(const struct rs_callstate *c)
{
	return c->call->capturing && !c->e->outer;
}

static inline int rs_window_is_segment(const struct rs_window *w)
{
	return !w->closed && w->kind != RS_WINDOW_OTHER;
}

/* The first window from w outwards that is a segment's. */
static inline struct rs_window *rs_window_next(struct rs_window *w)
{
	while (w && !rs_window_is_segment(w))
		w = w->up;
	return w;
}

/*
 * Who else sees a call of window w: every enclosing window, up to and with the innermost replay. What
 * a replay does is undone at its end, so what encloses it has nothing to learn from its calls.
 */
static inline struct rs_window *rs_window_outer(struct rs_window *w)
{
	return w->kind == RS_WINDOW_REPLAY ? NULL : rs_window_next(w->up);
}

/* Must the call wait for work of the shim's own on the allocation, which may still be under way? */
static inline int rs_must_wait(const struct rs_engine *e, const struct rs_alloc *a, uint32_t q)
{
	uint32_t fence = __atomic_load_n(&a->fence, __ATOMIC_RELAXED);

	return fence && fence - 1 != q &&
	       __atomic_load_n(&e->fence_queues, __ATOMIC_RELAXED) & RS_QBIT(fence - 1) &&
	       !(__atomic_load_n(&a->fence_ordered, __ATOMIC_RELAXED) & RS_QBIT(q));
}

/* A queue that may be waiting for memory has calls behind that wait from now on. */
static inline void rs_note_use(struct rs_engine *e, uint32_t q)
{
	if (__atomic_load_n(&e->stalling, __ATOMIC_RELAXED) & RS_QBIT(q))
		__atomic_fetch_or(&e->used_since, RS_QBIT(q), __ATOMIC_RELAXED);
}

/* locate.c. Without memory for the list the call becomes one that may do anything. */
void rs_locate(struct rs_callstate *c, struct rs_thread *t);
/* The ranges were found in another way: they are those of the call. */
static inline void rs_locate_found(const struct rs_callstate *c, struct rs_thread *t)
{
	t->nranges = c->nranges;
	t->ranges_call = c->number;
	t->ranges_of = c->e;
	t->ranges_generation = rs_engine_generation(rs_engine_outer(c->e));
}
/* Once more for the same call: what was found is taken where no address has changed its memory since. */
void rs_locate_again(struct rs_callstate *c, struct rs_thread *t);

/* suballoc.c: what the program's own allocator has given out around the address of an access */
struct rs_suballoc {
	uint64_t given; /* when; 0: that is not known, or the access was made for another one */
	uint64_t base, bytes;
	uint8_t holds_all; /* of the access */
};
/* Constant time. */
struct rs_suballoc rs_suballoc_of(const struct rs_engine *outer, const struct rs_call *call,
				  const struct rs_access *x);
/* Was the memory given out, by the driver or by the program's own allocator, inside of the window? */
static inline int rs_range_is_new(const struct rs_window *w, const struct rs_range *r)
{
	return r->a->birth >= w->begin || r->given >= w->begin;
}

/* calm.c: a call that needs no lock is followed; 0: it does need it */
int rs_follow_loosely(struct rs_engine *e, struct rs_thread *t, struct rs_call *call);

/* A followed write of so many bytes. */
static inline void rs_access_count(struct rs_engine *e, const struct rs_access *x, uint64_t len)
{
	e->stats.possible_bytes += len;
	if (x->dense && x->how <= RS_HOW_DECLARED)
		e->stats.proven_bytes += len;
}

/* steady.c: the call touches nothing new, and has been followed; 0: nothing has been done */
int rs_steady_follow(struct rs_callstate *c, struct rs_thread *t);

/* access.c, in this order: work of the shim's own comes first; what the windows learn; what the call overwrites. */
void rs_access_fences(struct rs_callstate *c);
void rs_access_windows(struct rs_callstate *c, const struct rs_thread *t);
void rs_access_model(struct rs_callstate *c, const struct rs_window *w);

/* window.c: is w the only open replay of a segment for which no further one is expected? */
int rs_window_is_last(const struct rs_engine *e, const struct rs_window *w);
/* window.c: which forward a replay without a number repeats; its first call decides */
void rs_window_resolve(const struct rs_callstate *c, struct rs_window *w);

/* loose.c */
uint32_t rs_loose_access(struct rs_callstate *c, struct rs_window *w, struct rs_touch *t,
			 uint32_t i, const struct rs_range *r, uint64_t off, uint64_t end,
			 int read);
uint32_t rs_reborn_access(struct rs_window *w, struct rs_touch *t, uint32_t i, uint64_t off,
			  uint64_t end);

/* readers.c */
void rs_readers_note(struct rs_callstate *c, struct rs_window *w, const struct rs_range *r);

/* places.c: of one call in one forward */
void rs_places_begin(struct rs_callstate *c, const struct rs_window *w);
void rs_places_meet(struct rs_callstate *c, struct rs_window *w, const struct rs_range *r,
		    const struct rs_span *s, uint64_t off, uint64_t end);
void rs_places_met(struct rs_callstate *c, struct rs_window *w);
void rs_places_steady(struct rs_callstate *c, struct rs_window *w);

/* views.c: other threads at the same memory. A call is about to be followed; of a replay's, what it has comes back; it was */
void rs_views_meet(struct rs_callstate *c, struct rs_thread *t);
void rs_view_returns(struct rs_callstate *c, struct rs_window *w);
void rs_view_call(struct rs_callstate *c, struct rs_thread *t);

/* pairing.c */
void rs_pair_log(struct rs_callstate *c, struct rs_window *w);
void rs_pair_match(struct rs_callstate *c, struct rs_window *w);
/* Does the call read what it writes to r, through the same argument? */
int rs_pair_also_read(const struct rs_callstate *c, const struct rs_range *r);
int rs_pair_made_product(const struct rs_callstate *c, const struct rs_window *w,
			 const struct rs_range *r);
int rs_pair_relocated(struct rs_callstate *c, struct rs_window *w, const struct rs_range *r,
		      uint64_t off, uint64_t len);
/*
 * Does the call write through this argument to another place than the forward's same call? Where nobody knows how far it
 * reaches, it is the same one only if the forward has read from there, too.
 */
enum rs_moved { RS_NOT_MOVED, RS_MOVED, RS_MOVED_UNKNOWN };
enum rs_moved rs_pair_moved(const struct rs_callstate *c, const struct rs_window *w,
			    const struct rs_range *r);
int rs_pair_taken_over(struct rs_callstate *c, struct rs_window *w, struct rs_alloc *a,
		       uint64_t off, uint64_t len);
void rs_pair_products(struct rs_callstate *c, struct rs_window *w);
/* The same found before the call is made, into thread.posts. 0: it has to be found afterwards. */
int rs_pair_plan(struct rs_callstate *c, const struct rs_window *w, struct rs_thread *t);
/* Those are not to be made after all. */
void rs_pair_unplan(struct rs_engine *e, struct rs_thread *t, const struct rs_window *w);
void rs_pair_refused(struct rs_callstate *c, struct rs_window *w);

#endif
