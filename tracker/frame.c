/* SPDX-License-Identifier: MIT */
/*
 * Frames: physical memory of our own that can be mapped in the place of an allocation's (remap.h). To everybody else a
 * frame is a block of preserved bytes like those of the arena, with an address of its own.
 *
 * A frame is made for an allocation, when something of it is to be preserved, and serves it again. It goes back to the
 * driver when the allocation is gone, when the program runs out of memory, or at the end. Its bytes count as those of
 * the arena do.
 *
 * Called without engine.lock unless said otherwise; memory_lock guards the list and is not held across device operations.
 */
#include <errno.h>
#include <stdlib.h>

#include "tracker/ops.h"

struct rs_frame {
	struct rs_block block; /* the first: a block of a frame is one */
	uint64_t token;
	const struct rs_alloc *alloc; /* NULL: that is gone */
	uint8_t shown;		      /* mapped in the place of its allocation's own memory */
	struct rs_frame *next;
};

struct rs_frame *rs_frame_of(struct rs_block *b)
{
	return (struct rs_frame *)b;
}

uint64_t rs_frame_token(const struct rs_frame *f)
{
	return f->token;
}

uint64_t rs_frame_addr(const struct rs_frame *f)
{
	return f->block.addr;
}

void rs_frame_set_shown(struct rs_engine *e, struct rs_frame *f, int shown)
{
	pthread_mutex_lock(&e->memory_lock);
	f->shown = (uint8_t)shown;
	pthread_mutex_unlock(&e->memory_lock);
}

/* One that serves the allocation and is not in use. */
static struct rs_frame *take_free(struct rs_engine *e, const struct rs_alloc *a)
{
	struct rs_frame *f;

	pthread_mutex_lock(&e->memory_lock);
	for (f = e->remapping.frames; f; f = f->next)
		if (f->alloc == a && f->block.free && !f->shown)
			break;
	if (f)
		f->block.free = 0;
	pthread_mutex_unlock(&e->memory_lock);
	return f;
}

static struct rs_frame *make(struct rs_engine *e, const struct rs_op *op)
{
	struct rs_frame *f = calloc(1, sizeof(*f));
	int err = f ? rs_arena_charge(e, op->len, 1) : -ENOMEM;

	if (!err) {
		err = e->ops->frame_alloc(e->ops->opaque, rs_queue_of(e, op->to), op->addr, op->len,
					  &f->token, &f->block.addr);
		if (err)
			rs_arena_uncharge(e, op->len, 1);
		if (err == -ENOTSUP) /* not of this kind: do not ask again and again */
			__atomic_store_n(&e->remapping.off, 1, __ATOMIC_RELAXED);
	}
	if (err) {
		free(f);
		return NULL;
	}
	f->block.bytes = op->len;
	f->block.framed = 1;
	f->alloc = op->alloc;
	pthread_mutex_lock(&e->memory_lock);
	f->next = e->remapping.frames;
	e->remapping.frames = f;
	pthread_mutex_unlock(&e->memory_lock);
	return f;
}

/* Room for all of the allocation's bytes, to be filled on op->to. NULL: there is none. */
struct rs_block *rs_frame_get(struct rs_engine *e, const struct rs_op *op)
{
	struct rs_frame *f = take_free(e, op->alloc);

	if (!f)
		f = make(e, op);
	return f ? rs_block_ready(e, &f->block, op->to) : NULL;
}

/* memory_lock held. */
void rs_frame_put(struct rs_block *b)
{
	b->free = 1;
}

void rs_frames_forget(struct rs_engine *e, const struct rs_alloc *a)
{
	struct rs_frame *f;

	pthread_mutex_lock(&e->memory_lock);
	for (f = e->remapping.frames; f; f = f->next)
		if (f->alloc == a)
			f->alloc = NULL;
	pthread_mutex_unlock(&e->memory_lock);
}

/* The first in the list that nobody uses; it is taken out of it. */
static struct rs_frame *take_unused(struct rs_engine *e, int all)
{
	struct rs_frame **at, *f;

	pthread_mutex_lock(&e->memory_lock);
	for (at = &e->remapping.frames; (f = *at); at = &f->next)
		if (f->block.free && !f->shown && (all || !f->alloc)) {
			*at = f->next;
			break;
		}
	pthread_mutex_unlock(&e->memory_lock);
	return f;
}

/* What the device may still be doing with a frame is waited for: unmapping does not. */
uint64_t rs_frames_trim(struct rs_engine *e, int all)
{
	struct rs_frame *f, *stay = NULL;
	uint64_t bytes = 0;

	while (__atomic_load_n(&e->remapping.frames, __ATOMIC_RELAXED) &&
	       (f = take_unused(e, all))) {
		if (rs_remap_wait(e, f->block.users, 1)) {
			f->next = stay;
			stay = f;
			continue;
		}
		e->ops->frame_free(e->ops->opaque, f->token);
		rs_arena_uncharge(e, f->block.bytes, 1);
		bytes += f->block.bytes;
		free(f);
	}
	while ((f = stay)) {
		stay = f->next;
		pthread_mutex_lock(&e->memory_lock);
		f->next = e->remapping.frames;
		e->remapping.frames = f;
		pthread_mutex_unlock(&e->memory_lock);
	}
	return bytes;
}

/* No work in flight, no keeps. */
void rs_frames_fini(struct rs_engine *e)
{
	struct rs_frame *f;

	while ((f = e->remapping.frames)) {
		e->remapping.frames = f->next;
		e->ops->frame_free(e->ops->opaque, f->token);
		free(f);
	}
}
