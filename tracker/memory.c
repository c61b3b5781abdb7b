/* SPDX-License-Identifier: MIT */
/*
 * Host words that the device writes results of digests and comparisons to: cached, never handed back before the
 * end.
 *
 * A slot that is reused on another queue is first ordered after the queues that used it.
 * They are the memory of the context in which they were made, and go with it: what is in use then says nothing.
 * Called without engine.lock (devops are called here); memory_lock guards the lists and is a leaf.
 */
#include <errno.h>
#include <stdlib.h>

#include "tracker/ops.h"

#define WORDS_MIN     8u
#define WORDS_CLASSES 14u /* 8 << 13 words = 512 KiB, the digests of 256 MiB */
#define WORDS_DIRECT  255u
#define SLAB_WORDS    65536u
#define SLAB_SLOTS    64u
#define CAPTURE_SLAB  4096u /* words: there may be many captures */

struct rs_words *rs_words_new(uint64_t bytes)
{
	struct rs_words *w = malloc(sizeof(*w)); /* a good deal faster than calloc */
	uint64_t n = rs_digest_count(bytes);

	if (!w || n > UINT32_MAX) {
		free(w);
		return NULL;
	}
	*w = (struct rs_words){.n = (uint32_t)n, .refs = 1};
	for (w->cls = 0; w->cls < WORDS_CLASSES && (WORDS_MIN << w->cls) < n; w->cls++)
		;
	if (w->cls == WORDS_CLASSES)
		w->cls = WORDS_DIRECT;
	return w;
}

/* Carve one slab of pinned memory into slots of a class, for n of which there is a use. */
static int refill(struct rs_engine *e, struct rs_queue q, uint8_t cls, uint32_t n)
{
	uint32_t words = WORDS_MIN << cls, i;
	uint32_t slots = (e->outer ? CAPTURE_SLAB : SLAB_WORDS) / words;
	uint64_t *slab, **kept;
	int err;

	n = n > SLAB_SLOTS ? n : SLAB_SLOTS;
	slots = slots > n ? n : slots ? slots : 1;
	err = e->ops->result_alloc(e->ops->opaque, q, (uint64_t)words * slots, &slab);
	if (err)
		return err;
	pthread_mutex_lock(&e->memory_lock);
	kept = e->outer ? RS_PUSH(e->slabs) : NULL; /* without memory it is not given back */
	if (kept)
		*kept = slab;
	for (i = 0; i < slots; i++) {
		struct rs_words *w = calloc(1, sizeof(*w));

		if (!w)
			break; /* the rest of the slab stays unused */
		w->w = slab + (size_t)i * words;
		w->cls = cls;
		w->ctx = q.ctx;
		w->next = e->free_words[cls];
		e->free_words[cls] = w;
	}
	pthread_mutex_unlock(&e->memory_lock);
	return i ? 0 : -ENOMEM;
}

/* memory_lock held, here and below. */
static struct rs_words *pop_slot(struct rs_engine *e, uint8_t cls, uint64_t ctx)
{
	struct rs_words **at, *w;

	for (at = &e->free_words[cls]; (w = *at) && w->ctx != ctx; at = &w->next)
		;
	if (w)
		*at = w->next;
	return w;
}

static void use(struct rs_engine *e, struct rs_words *w, uint64_t ctx)
{
	w->ctx = ctx;
	w->prev = NULL;
	w->next = e->used_words;
	if (w->next)
		w->next->prev = w;
	e->used_words = w;
}

/* Slots that there are, for the first ones of the list; returns the rest of it. *users: of what they were before. */
static struct rs_words *give_slots(struct rs_engine *e, struct rs_words *w, uint64_t ctx,
				   uint32_t q, uint64_t *users)
{
	struct rs_words *slots = NULL, *slot, *next;

	pthread_mutex_lock(&e->memory_lock);
	for (; w && w->cls != WORDS_DIRECT && (slot = pop_slot(e, w->cls, ctx)); w = next) {
		next = w->next;
		*users |= slot->users;
		w->w = slot->w;
		w->users = slot->users | RS_QBIT(q);
		use(e, w, ctx);
		slot->next = slots;
		slots = slot;
	}
	pthread_mutex_unlock(&e->memory_lock);
	for (; slots; slots = next) {
		next = slots->next;
		free(slots);
	}
	return w;
}

/* The first of the list is too large for a slot; *ret: the rest. */
static int give_direct(struct rs_engine *e, struct rs_words *w, struct rs_queue q,
		       struct rs_words **ret)
{
	struct rs_words *next = w->next;
	int err = e->ops->result_alloc(e->ops->opaque, q, w->n, &w->w);

	if (err)
		return err;
	pthread_mutex_lock(&e->memory_lock);
	use(e, w, q.ctx);
	pthread_mutex_unlock(&e->memory_lock);
	*ret = next;
	return 0;
}

/*
 * Give n of them, linked by `next`, memory that the device may write on queue q. After an error some have it, and
 * each may be tried again.
 */
int rs_words_fill_all(struct rs_engine *e, uint32_t q, struct rs_words *list, uint32_t n)
{
	struct rs_queue queue = rs_queue_of(e, q);
	uint64_t users = 0;
	int err = 0, unordered;

	while (!err && (list = give_slots(e, list, queue.ctx, q, &users)))
		err = list->cls == WORDS_DIRECT ? give_direct(e, list, queue, &list)
						: refill(e, queue, list->cls, n);
	unordered = rs_order_now(e, users, q);
	return err ? err : unordered;
}

/* The same for one of them. */
int rs_words_fill(struct rs_engine *e, uint32_t q, struct rs_words *w)
{
	if (w->w) /* not for the first time */
		return rs_order_now(e, w->users, q);
	w->next = NULL;
	return rs_words_fill_all(e, q, w, 1);
}

static void take_off(struct rs_engine *e, struct rs_words *w)
{
	if (w->prev)
		w->prev->next = w->next;
	else
		e->used_words = w->next;
	if (w->next)
		w->next->prev = w->prev;
}

/* Drop a reference (engine.lock held). The slot goes back to its pool, the struct with it. */
void rs_words_put(struct rs_engine *e, struct rs_words *w)
{
	if (!w || --w->refs)
		return;
	if (!w->w) {
		free(w);
		return;
	}
	pthread_mutex_lock(&e->memory_lock);
	take_off(e, w);
	if (w->cls == WORDS_DIRECT) {
		/* freeing pinned memory is a driver call: collected by rs_words_reap, outside the lock */
		w->next = e->lost_words;
		e->lost_words = w;
	} else {
		w->next = e->free_words[w->cls];
		e->free_words[w->cls] = w;
	}
	pthread_mutex_unlock(&e->memory_lock);
}

/*
 * Release big result buffers that nobody refers to. A digest may still be on its way into one: only
 * after the device has been waited for, or at the end.
 */
void rs_words_reap(struct rs_engine *e)
{
	struct rs_words *w, *next;

	pthread_mutex_lock(&e->memory_lock);
	w = e->lost_words;
	e->lost_words = NULL;
	pthread_mutex_unlock(&e->memory_lock);
	for (; w; w = next) {
		next = w->next;
		e->ops->result_free(e->ops->opaque, w->w);
		free(w);
	}
}

/* Free ones of a list that were the context's. memory_lock held. */
static void drop_ctx(struct rs_words **at, uint64_t ctx)
{
	struct rs_words *w, *next;

	for (w = *at; w; w = next) {
		next = w->next;
		if (w->ctx == ctx) {
			*at = next;
			free(w);
		} else {
			at = &w->next;
		}
	}
}

void rs_words_ctx_gone(struct rs_engine *e, uint64_t ctx)
{
	struct rs_words *w, *next;
	unsigned i;

	pthread_mutex_lock(&e->memory_lock);
	for (i = 0; i < WORDS_CLASSES; i++)
		drop_ctx(&e->free_words[i], ctx);
	drop_ctx(&e->lost_words, ctx);
	e->slabs.n = 0;
	for (w = e->used_words; w; w = next) {
		next = w->next;
		if (w->ctx != ctx)
			continue;
		take_off(e, w);
		w->w = NULL;
		w->failed = 1;
	}
	pthread_mutex_unlock(&e->memory_lock);
}

void rs_memory_fini(struct rs_engine *e)
{
	struct rs_words *w;
	unsigned i;

	rs_words_reap(e);
	for (i = 0; i < WORDS_CLASSES; i++)
		while ((w = e->free_words[i])) {
			e->free_words[i] = w->next;
			free(w); /* the slabs belong to the driver's context */
		}
	for (i = 0; i < e->slabs.n; i++)
		e->ops->result_free(e->ops->opaque, e->slabs.v[i]);
	free(e->slabs.v);
}
