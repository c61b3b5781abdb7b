/* SPDX-License-Identifier: MIT */
/*
 * Device memory for preserved bytes: chunks from the driver, carved into blocks, so that a row of a table costs
 * what it is long and no call of the driver.
 *
 * A chunk's blocks are a list in address order, free and used ones; neighbours that are free are merged. Free
 * ones are also in a bin by size. A free block remembers the queues whose enqueued work may still use it,
 * and is ordered after them when it is used again: freeing needs no event and no waiting.
 * Chunks go back to the driver when the program itself runs out of memory (rs_engine_trim), or at the end.
 *
 * Called without engine.lock; memory_lock guards everything here and is not held across device operations.
 */
#include <errno.h>
#include <stdlib.h>

#include "tracker/model.h"

#define UNIT	     256u
#define CHUNK_BYTES  (8ull << 20)
#define BEYOND_BYTES (64u << 10) /* of a chunk that no plan has foreseen */

/* A chunk; its first block has prev NULL and chunk set like all others. */
struct rs_chunk {
	uint64_t addr, bytes, ctx;
	struct rs_block *first;
	struct rs_chunk *next;
};

/* Blocks of [2^n, 2^(n+1)) units; the last bin has everything larger. */
static unsigned bin_of(uint64_t bytes)
{
	unsigned n = 63 - (unsigned)__builtin_clzll(bytes / UNIT);

	return n < RS_BLOCK_BINS ? n : RS_BLOCK_BINS - 1;
}

static void bin_add(struct rs_engine *e, struct rs_block *b)
{
	struct rs_block **bin = &e->block_bins[bin_of(b->bytes)];

	b->free = 1;
	b->bin_prev = NULL;
	b->bin_next = *bin;
	if (*bin)
		(*bin)->bin_prev = b;
	*bin = b;
}

static void bin_remove(struct rs_engine *e, struct rs_block *b)
{
	if (b->bin_prev)
		b->bin_prev->bin_next = b->bin_next;
	else
		e->block_bins[bin_of(b->bytes)] = b->bin_next;
	if (b->bin_next)
		b->bin_next->bin_prev = b->bin_prev;
	b->free = 0;
}

/*
 * The smallest of the first bin that has one large enough; in that bin the fit may be loose. Rows of a table are all of one
 * size: the first that fits exactly will do.
 */
static struct rs_block *find_free(struct rs_engine *e, uint64_t ctx, uint64_t bytes)
{
	struct rs_block *b, *best = NULL;
	unsigned n;

	for (n = bin_of(bytes); n < RS_BLOCK_BINS && !best; n++)
		for (b = e->block_bins[n]; b; b = b->bin_next)
			if (b->chunk->ctx == ctx && b->bytes >= bytes &&
			    (!best || b->bytes < best->bytes)) {
				best = b;
				if (b->bytes == bytes)
					break;
			}
	return best;
}

/* Cut a block that is in no bin down to bytes; without memory for the rest it stays whole. */
static void split(struct rs_engine *e, struct rs_block *b, uint64_t bytes)
{
	struct rs_block *rest;

	if (b->bytes - bytes < UNIT)
		return;
	rest = calloc(1, sizeof(*rest));
	if (!rest)
		return;
	rest->addr = b->addr + bytes;
	rest->bytes = b->bytes - bytes;
	rest->chunk = b->chunk;
	rest->users = b->users;
	rest->prev = b;
	rest->next = b->next;
	if (b->next)
		b->next->prev = rest;
	b->next = rest;
	b->bytes = bytes;
	bin_add(e, rest);
}

/* b swallows its successor, which is in no bin. */
static void merge_next(struct rs_block *b)
{
	struct rs_block *n = b->next;

	b->bytes += n->bytes;
	b->users |= n->users;
	b->next = n->next;
	if (n->next)
		n->next->prev = b;
	free(n);
}

/*
 * Count bytes that are about to be taken from the driver; -EDQUOT: that would be too many. What captures hold counts as the
 * program's engine's: it has the limits.
 */
int rs_arena_charge(struct rs_engine *inner, uint64_t bytes, int frame)
{
	struct rs_engine *e = inner->outer ? inner->outer : inner;
	int over;

	pthread_mutex_lock(&e->memory_lock);
	over = (e->config.snapshot_max && e->block_bytes + bytes > e->config.snapshot_max) ||
	       (e->is_planned && e->block_bytes + bytes > e->planned_most);
	if (!over) {
		e->block_bytes += bytes;
		e->frame_bytes += frame ? bytes : 0;
	}
	if (e->block_bytes > e->stats.arena_bytes_peak)
		e->stats.arena_bytes_peak = e->block_bytes;
	pthread_mutex_unlock(&e->memory_lock);
	return over ? -EDQUOT : 0;
}

void rs_arena_uncharge(struct rs_engine *inner, uint64_t bytes, int frame)
{
	struct rs_engine *e = inner->outer ? inner->outer : inner;

	pthread_mutex_lock(&e->memory_lock);
	e->block_bytes -= bytes;
	e->frame_bytes -= frame ? bytes : 0;
	pthread_mutex_unlock(&e->memory_lock);
}

/* A chunk whose only block is the caller's. NULL: the device has no memory, or the limit is reached. */
static struct rs_block *new_chunk(struct rs_engine *e, struct rs_queue q, uint64_t bytes)
{
	struct rs_chunk *c = calloc(1, sizeof(*c));
	struct rs_block *b = calloc(1, sizeof(*b));
	int over = rs_arena_charge(e, bytes, 0);

	if (!over && c && b && !e->ops->alloc(e->ops->opaque, q, bytes, &c->addr)) {
		c->bytes = bytes;
		c->ctx = q.ctx;
		c->first = b;
		b->addr = c->addr;
		b->bytes = bytes;
		b->chunk = c;
		pthread_mutex_lock(&e->memory_lock);
		c->next = e->chunks;
		e->chunks = c;
		pthread_mutex_unlock(&e->memory_lock);
		return b;
	}
	if (!over)
		rs_arena_uncharge(e, bytes, 0);
	free(c);
	free(b);
	return NULL;
}

/*
 * Small blocks come in chunks; a large one, or one for which a chunk is too much, gets one of its own. What a plan has
 * reserved is all that it takes as long as its prediction holds. If the program overwrites more than that, what its budget
 * leaves is taken bit by bit, and whoever watches the plan sees it.
 */
static struct rs_block *grow(struct rs_engine *e, struct rs_queue q, uint64_t bytes)
{
	uint64_t chunk = CHUNK_BYTES, most = e->config.snapshot_max, used;
	struct rs_block *b = NULL;

	pthread_mutex_lock(&e->memory_lock);
	used = e->block_bytes;
	if (e->is_planned) {
		uint64_t rest = e->planned_bytes - rs_min64(e->planned_bytes, e->planned_frames);
		uint64_t have = used - e->frame_bytes;

		chunk = have < rest ? rest - have : BEYOND_BYTES;
	}
	pthread_mutex_unlock(&e->memory_lock);
	if (e->outer) { /* its graph may live as long as the program: no more than it needs */
		chunk = BEYOND_BYTES;
		most = 0;
	}
	if (most && chunk > most - used)
		chunk = (most - used) & ~(uint64_t)(UNIT - 1);
	if (bytes < chunk)
		b = new_chunk(e, q, chunk);
	if (!b)
		b = new_chunk(e, q, bytes);
	return b;
}

struct rs_block *rs_block_get(struct rs_engine *e, uint32_t q, uint64_t bytes)
{
	struct rs_queue queue = rs_queue_of(e, q);
	struct rs_block *b;

	bytes = (bytes + UNIT - 1) & ~(uint64_t)(UNIT - 1);
	pthread_mutex_lock(&e->memory_lock);
	b = find_free(e, queue.ctx, bytes);
	if (b)
		bin_remove(e, b);
	pthread_mutex_unlock(&e->memory_lock);
	if (!b)
		b = grow(e, queue, bytes);
	if (!b)
		return NULL;
	pthread_mutex_lock(&e->memory_lock);
	split(e, b, bytes);
	pthread_mutex_unlock(&e->memory_lock);
	return rs_block_ready(e, b, q);
}

/* The caller's block will be used on q: whoever used it before comes first. NULL: that cannot be; the block is put back. */
struct rs_block *rs_block_ready(struct rs_engine *e, struct rs_block *b, uint32_t q)
{
	uint64_t users;

	pthread_mutex_lock(&e->memory_lock);
	users = b->users;
	b->users |= RS_QBIT(q);
	pthread_mutex_unlock(&e->memory_lock);
	if (rs_order_now(e, users, q)) {
		rs_block_put(e, b);
		return NULL;
	}
	pthread_mutex_lock(&e->memory_lock);
	b->users = RS_QBIT(q); /* everybody else comes first */
	pthread_mutex_unlock(&e->memory_lock);
	return b;
}

/* Work on queue q uses the block from now on. */
void rs_block_used(struct rs_engine *e, struct rs_block *b, uint32_t q)
{
	pthread_mutex_lock(&e->memory_lock);
	b->users |= RS_QBIT(q);
	pthread_mutex_unlock(&e->memory_lock);
}

uint64_t rs_block_users(struct rs_engine *e, const struct rs_block *b)
{
	uint64_t users;

	pthread_mutex_lock(&e->memory_lock);
	users = b->users;
	pthread_mutex_unlock(&e->memory_lock);
	return users;
}

void rs_block_put(struct rs_engine *e, struct rs_block *b)
{
	pthread_mutex_lock(&e->memory_lock);
	if (b->framed) {
		rs_frame_put(b);
		pthread_mutex_unlock(&e->memory_lock);
		return;
	}
	if (b->next && b->next->free) {
		bin_remove(e, b->next);
		merge_next(b);
	}
	if (b->prev && b->prev->free) {
		b = b->prev;
		bin_remove(e, b);
		merge_next(b);
	}
	bin_add(e, b);
	pthread_mutex_unlock(&e->memory_lock);
}

/* Set so much aside before it is needed. 0, or -ENOMEM. */
int rs_arena_reserve(struct rs_engine *e, struct rs_queue q, uint64_t bytes)
{
	struct rs_block *b;

	bytes = (bytes + UNIT - 1) & ~(uint64_t)(UNIT - 1);
	b = bytes ? new_chunk(e, q, bytes) : NULL;
	if (b)
		rs_block_put(e, b);
	return b || !bytes ? 0 : -ENOMEM;
}

/* Take chunks out of the list: those of a context, or (0) those of which nothing is in use. */
static struct rs_chunk *take_chunks(struct rs_engine *e, uint64_t ctx, uint64_t *ret_bytes)
{
	struct rs_chunk **at, *c, *taken = NULL;
	struct rs_block *b;

	for (at = &e->chunks; (c = *at);) {
		if (ctx ? c->ctx != ctx : !c->first->free || c->first->next) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		*ret_bytes += c->bytes;
		for (b = c->first; b; b = b->next)
			if (b->free)
				bin_remove(e, b);
		c->next = taken;
		taken = c;
	}
	return taken;
}

/*
 * Give every unused chunk back. The driver's own free waits for work in flight (cuMemFree does), so
 * `users` need no event here.
 */
uint64_t rs_engine_trim(struct rs_engine *e)
{
	struct rs_chunk *c, *next;
	uint64_t frames = rs_frames_trim(e, 1), bytes = 0;

	pthread_mutex_lock(&e->memory_lock);
	c = take_chunks(e, 0, &bytes);
	pthread_mutex_unlock(&e->memory_lock);
	rs_arena_uncharge(e, bytes, 0);
	for (; c; c = next) {
		next = c->next;
		e->ops->free(e->ops->opaque, (struct rs_queue){.ctx = c->ctx}, c->addr);
		free(c->first);
		free(c);
	}
	return frames + bytes;
}

/*
 * A context is gone, and its memory with it: forget without calling the driver. Blocks in use stay with their
 * owners as memory that nobody may touch: their chunk is only taken out of the list.
 */
void rs_arena_ctx_gone(struct rs_engine *e, uint64_t ctx)
{
	struct rs_chunk *c, *next;
	struct rs_block *b, *after;
	uint64_t bytes = 0;
	int used;

	pthread_mutex_lock(&e->memory_lock);
	for (c = take_chunks(e, ctx, &bytes); c; c = next) {
		next = c->next;
		used = 0;
		for (b = c->first; b; b = b->next)
			used |= !b->free;
		if (used) { /* its blocks come back one by one */
			c->next = e->lost_chunks;
			e->lost_chunks = c;
			c->ctx = 0;
			continue;
		}
		for (b = c->first; b; b = after) {
			after = b->next;
			free(b);
		}
		free(c);
	}
	pthread_mutex_unlock(&e->memory_lock);
	rs_arena_uncharge(e, bytes, 0);
}

/* Does some chunk contain the address? */
int rs_arena_has(struct rs_engine *e, uint64_t addr)
{
	const struct rs_chunk *c;

	pthread_mutex_lock(&e->memory_lock);
	for (c = e->chunks; c && (addr < c->addr || addr - c->addr >= c->bytes); c = c->next)
		;
	pthread_mutex_unlock(&e->memory_lock);
	return c != NULL;
}

static void free_chunks(struct rs_chunk *c)
{
	struct rs_chunk *next;
	struct rs_block *b, *after;

	for (; c; c = next) {
		next = c->next;
		for (b = c->first; b; b = after) {
			after = b->next;
			free(b);
		}
		free(c);
	}
}

void rs_arena_fini(struct rs_engine *e)
{
	rs_engine_trim(e);
	free_chunks(e->chunks);
	free_chunks(e->lost_chunks);
}
