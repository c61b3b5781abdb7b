/* SPDX-License-Identifier: MIT */
/*
 * What the tool's own operations take here, measured on memory of its own, once: so that an audit, which preserves
 * nothing, can still say what preserving would cost.
 *
 * At the second step's end, in stream order behind the program's work, some 100 operations on 8 MiB of the arena; nothing
 * is waited for, but where the program maps memory that could be remapped: then some such round trips. Not done under a plan (the memory is spoken for), nor while streams are captured or wait for memory.
 *
 * Caller: window.c between two steps, no lock held.
 */
#include "tracker/costing.h"

#define LARGEST (2u << 20)
#define ROUNDS	3u
#define ROWS	64u
#define ROW	1024u

static const uint64_t sizes[] = {4096, 65536, 524288, LARGEST};

static void with_result(struct rs_engine *e, uint32_t q, uint64_t a, uint64_t b, uint64_t bytes,
			int diff)
{
	struct rs_queue queue = rs_queue_of(e, q);
	struct rs_words *w = rs_words_new(bytes);

	if (w && !rs_words_fill(e, q, w)) {
		if (diff)
			e->ops->diff(e->ops->opaque, queue, a, b, bytes, w->w);
		else
			e->ops->digest(e->ops->opaque, queue, a, bytes, w->w);
	}
	pthread_mutex_lock(&e->lock);
	rs_words_put(e, w);
	pthread_mutex_unlock(&e->lock);
}

/* Rows of one buffer to adjacent places of the other, as regions are kept. */
static void rows(struct rs_engine *e, struct rs_queue q, uint64_t a, uint64_t b, uint32_t n)
{
	struct rs_move list[ROWS];

	for (uint32_t i = 0; i < n; i++)
		list[i] = (struct rs_move){b + i * ROW, a + 4ull * i * ROW, ROW};
	e->ops->move(e->ops->opaque, q, list, n);
}

static void all_kinds(struct rs_engine *e, uint32_t q, uint64_t a, uint64_t b)
{
	struct rs_queue queue = rs_queue_of(e, q);
	const struct rs_devops *ops = e->ops;

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		ops->copy(ops->opaque, queue, b, a, sizes[i]);
		if (!__atomic_load_n(&e->no_swap, __ATOMIC_RELAXED))
			ops->swap(ops->opaque, queue, a, b, sizes[i]);
		with_result(e, q, a, b, sizes[i], 0);
		with_result(e, q, a, b, sizes[i], 1);
	}
	for (uint32_t n = ROWS; n >= 4; n /= 4)
		rows(e, queue, a, b, n);
}

/* Frames of our own, one mapped in the place of the other and back: with an idle device, as it is then. */
static void remaps(struct rs_engine *e, uint32_t q, uint64_t bytes)
{
	struct rs_queue queue = rs_queue_of(e, q);
	const struct rs_devops *ops = e->ops;
	uint64_t frame[2] = {0, 0}, addr[2];
	int err = ops->frame_alloc(ops->opaque, queue, 0, bytes, &frame[0], &addr[0]);

	if (!err)
		err = ops->frame_alloc(ops->opaque, queue, 0, bytes, &frame[1], &addr[1]);
	for (unsigned i = 0; !err && i < 2 * ROUNDS; i++) {
		struct rs_timing *t = rs_timing_op_begins(e, queue, RS_RATE_REMAP, bytes);

		err = rs_remap_wait(e, RS_QBIT(q), 0);
		if (!err)
			err = ops->remap(ops->opaque, addr[0], bytes, frame[0], frame[i % 2],
					 frame[!(i % 2)]);
		rs_timing_op_ended(e, queue, t, err);
	}
	for (unsigned i = 0; i < 2; i++)
		if (frame[i])
			ops->frame_free(ops->opaque, frame[i]);
}

void rs_timing_calibrate(struct rs_engine *e)
{
	struct rs_block *a, *b;
	struct rs_costing *c = e->costing;
	uint32_t q;

	pthread_mutex_lock(&e->lock);
	q = c->last_q;
	if (c->calibrated || c->steps < 2 || !q || c->plan || !c->real->mark ||
	    __atomic_load_n(&e->stalling, __ATOMIC_RELAXED) || e->queues.v[q - 1].dead)
		q = 0;
	c->calibrated |= q != 0;
	pthread_mutex_unlock(&e->lock);
	if (!q--)
		return;
	a = rs_block_get(e, q, LARGEST);
	b = a ? rs_block_get(e, q, LARGEST) : NULL;
	for (unsigned i = 0; b && i < ROUNDS; i++)
		all_kinds(e, q, a->addr, b->addr);
	for (unsigned i = 0;
	     e->ops->remap && i < 2 && __atomic_load_n(&e->remapping.seen, __ATOMIC_RELAXED); i++)
		remaps(e, q, i ? LARGEST : 8 * LARGEST);
	if (b)
		rs_block_put(e, b);
	if (a)
		rs_block_put(e, a);
}
