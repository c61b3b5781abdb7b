/* SPDX-License-Identifier: MIT */
/*
 * Calls that nobody has a use for: found without a lock, and followed by marks at the allocations that they touch.
 *
 * Callers: the shim, any thread (rs_engine_idle_slow, rs_engine_again); follow.c. No locks are taken, nothing is
 * allocated.
 */
#include "tracker/callstate.h"

/*
 * Without windows, pending forwards and work of the shim's own on another stream, a call costs no lock. What
 * ran before the earliest pending forward needs no order with a replay beyond the program's own: whoever
 * changes a byte after that forward is ordered after it by the program.
 */
int rs_engine_idle_slow(struct rs_engine *e, const struct rs_thread *t, struct rs_queue q)
{
	uint64_t fences = __atomic_load_n(&e->fence_queues, __ATOMIC_RELAXED);
	const struct rs_known *known;

	if (rs_window_next(t->top) || __atomic_load_n(&e->interested, __ATOMIC_RELAXED))
		return 0;
	if (!fences)
		return 1;
	known = rs_known_queue(e, t, q);
	return known && known->id < 63 && fences == RS_QBIT(known->id);
}

/* The allocation (or tagged mapping) of an access; the caller's look-up holds while no address changed. */
static struct rs_alloc *loosely(const struct rs_engine *e, const struct rs_access *x, int looked_up)
{
	uint64_t base, bytes;

	if (looked_up && x->memory)
		return (struct rs_alloc *)(uintptr_t)x->memory;
	return rs_addrmap_find(e->map, x->addr, &base, &bytes);
}

/* What such a look rests on: read before anything else is. */
struct look {
	struct rs_engine *e;
	uint64_t moment, loose;
	uint32_t epoch, q;
	uint8_t unmarked; /* a mark is missing */
};

static inline int begin(struct look *k, struct rs_engine *e, const struct rs_thread *t,
			struct rs_queue queue)
{
	const struct rs_known *known;

	k->e = e;
	k->moment = __atomic_load_n(&e->moment, __ATOMIC_ACQUIRE);
	k->loose = __atomic_load_n(&e->version, __ATOMIC_RELAXED) + 1;
	k->epoch = __atomic_load_n(&e->claim_epoch, __ATOMIC_RELAXED);
	k->unmarked = 0;
	known = rs_known_queue(e, t, queue);
	if (rs_window_next(t->top) || __atomic_load_n(&e->process, __ATOMIC_RELAXED) || !known ||
	    known->id >= 63)
		return 0;
	k->q = known->id;
	return 1;
}

/* Nothing of it is claimed by anybody, if it is written, and no work of the shim's own comes first. */
static inline int is_free(struct look *k, struct rs_alloc *a, int write)
{
	if (rs_mapping_of(a) ||
	    (__atomic_load_n(&a->fence, __ATOMIC_RELAXED) && rs_must_wait(k->e, a, k->q)))
		return 0;
	k->unmarked |= !(__atomic_load_n(&a->touched, __ATOMIC_RELAXED) & RS_QBIT(k->q));
	if (!write)
		return 1;
	k->unmarked |= __atomic_load_n(&a->loose, __ATOMIC_RELAXED) != k->loose;
	return __atomic_load_n(&a->claimed, __ATOMIC_RELAXED) != k->epoch;
}

/* What is there already is not stored again: threads share these lines. */
static void leave_marks(const struct look *k, struct rs_alloc *a, int write)
{
	if (!(__atomic_load_n(&a->touched, __ATOMIC_RELAXED) & RS_QBIT(k->q)))
		__atomic_fetch_or(&a->touched, RS_QBIT(k->q), __ATOMIC_RELAXED);
	if (write && __atomic_load_n(&a->loose, __ATOMIC_RELAXED) != k->loose)
		__atomic_store_n(&a->loose, k->loose, __ATOMIC_RELAXED);
}

static inline uint64_t end(const struct look *k, struct rs_queue queue)
{
	rs_note_use(k->e, k->q);
	if (k->e->config.order && !queue.stream &&
	    !__atomic_load_n(&k->e->legacy_unseen, __ATOMIC_RELAXED))
		__atomic_store_n(&k->e->legacy_unseen, 1, __ATOMIC_RELAXED);
	return k->moment;
}

/*
 * A call of no window that writes to nothing claimed: all that is to be remembered is who touched the
 * allocations, and that they changed. No lock, so that threads do not wait for each other. Mapped memory, a
 * stream seen first and the like take the long way.
 *
 * Then the same is true of every other call on these allocations until the moment changes: each word that is looked
 * at here changes only together with the moment (rs_moment_next), or is a mark that this call has left and nothing but
 * such a change takes away. The moment is read first: if anything changes while the call is looked at, what is
 * handed out is an old moment, which never comes again.
 */
uint64_t rs_engine_again(struct rs_engine *e, struct rs_thread *t, struct rs_queue queue,
			 const struct rs_access *x, unsigned n, uint64_t generation)
{
	struct look k;
	int looked_up;
	unsigned i;

	if (!begin(&k, e, t, queue))
		return 0;
	looked_up = generation == rs_engine_generation(e);
	for (i = 0; i < n; i++) {
		struct rs_alloc *a = loosely(e, &x[i], looked_up);

		if (a && !is_free(&k, a, x[i].dir & RS_WRITE))
			return 0;
	}
	for (i = 0; k.unmarked && i < n; i++) {
		struct rs_alloc *a = loosely(e, &x[i], looked_up);

		if (a && !rs_mapping_of(a))
			leave_marks(&k, a, x[i].dir & RS_WRITE);
	}
	return end(&k, queue);
}

/*
 * Marks are left along the way: if one of the words keeps the call from passing, the others are written to all the same.
 */
uint64_t rs_engine_again_words(struct rs_engine *e, struct rs_thread *t, struct rs_queue queue,
			       const void *words, unsigned n)
{
	struct look k;
	unsigned i;

	if (!begin(&k, e, t, queue))
		return 0;
	for (i = 0; i < n; i++) {
		struct rs_alloc *a;
		uint64_t word;

		memcpy(&word, (const uint8_t *)words + 8 * (size_t)i, sizeof(word));
		a = word < RS_ADDR_LEAST ? NULL : rs_addrmap_find(e->map, word, NULL, NULL);
		if (!a)
			continue;
		k.unmarked = 0;
		if (!is_free(&k, a, 1))
			return 0;
		if (k.unmarked)
			leave_marks(&k, a, 1);
	}
	return end(&k, queue);
}

int rs_follow_loosely(struct rs_engine *e, struct rs_thread *t, struct rs_call *call)
{
	uint64_t moment = call->capturing || call->everything
				  ? 0
				  : rs_engine_again(e, t, call->q, call->access, call->naccess,
						    call->generation);

	if (!call->synchronous)
		call->calm = moment;
	return !!moment;
}
