/* SPDX-License-Identifier: MIT */
/* Threads that are at the same bytes at once (views.c), for the rest of the engine. model.h includes this at its end. engine.lock is held. */
#ifndef RS_TRACKER_VIEWS_H
#define RS_TRACKER_VIEWS_H

/* Queues that may have touched the allocation since the shim's last operation on it. */
static inline uint64_t rs_touched(const struct rs_engine *e, const struct rs_alloc *a)
{
	return __atomic_load_n(&a->touched, __ATOMIC_RELAXED) | e->touched_all;
}
int rs_place(struct rs_engine *e, struct rs_alloc *a, uint64_t off, uint64_t len, uint64_t ver);

/* views.c: an operation on the allocation is planned; it is enqueued, or never will be */
void rs_view_plans(struct rs_alloc *a);
void rs_view_planned(struct rs_alloc *a);
/* Is the end of w to be tried again, as something was waited for, without the lock? tries: begins with 0 */
int rs_view_waits(struct rs_engine *e, const struct rs_window *w, unsigned *tries);
void rs_view_over(struct rs_engine *e, struct rs_window *w); /* with its holds */
/* Has the call not waited for what another thread has planned there? */
static inline int rs_view_in_vain(const struct rs_alloc *a, const struct rs_writer *call)
{
	return a->vain && a->vain == call->call;
}
void rs_view_made(struct rs_engine *e, struct rs_thread *t); /* no lock: its calls have been made */

/* restore.c: which bytes a replay holds; what it was shown by an exchange leaves */
void rs_window_held(struct rs_window *w, const struct rs_alloc *a, uint64_t off, uint64_t len);
int rs_window_unheld(struct rs_window *w, const struct rs_alloc *a, uint64_t off, uint64_t len);
/* From off on, until where all of it is held, or none of it is? */
uint64_t rs_window_held_until(const struct rs_window *w, const struct rs_alloc *a, uint64_t off,
			      uint64_t end, int *ret_held);
int rs_remap_back(struct rs_engine *e, struct rs_oplist *l, uint32_t q, struct rs_window *w,
		  struct rs_alloc *a, struct rs_keep *k);
int rs_swap_aside(struct rs_engine *e, struct rs_oplist *l, uint32_t q, struct rs_window *w,
		  struct rs_alloc *a, struct rs_keep *k);

#endif
