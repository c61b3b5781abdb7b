/* SPDX-License-Identifier: MIT */
/* Device memory for preserved bytes: arena.c. Part of model.h, which includes it. */
#ifndef RS_TRACKER_ARENA_H
#define RS_TRACKER_ARENA_H

#include <stdint.h>

#include "tracker/devops.h"

struct rs_engine;

/* A piece of snapshot memory on the device: see arena.c, whose lists these are. */
struct rs_chunk;
struct rs_block {
	uint64_t addr, bytes;
	uint64_t
		users; /* queue bits whose enqueued work may use it; rs_block_used, rs_block_users */
	struct rs_chunk *chunk;
	struct rs_block *prev, *next;	      /* of the chunk, by address */
	struct rs_block *bin_prev, *bin_next; /* free ones of about that size */
	uint8_t free;
	uint8_t framed; /* of no chunk, but a frame's: frame.c */
};
#define RS_BLOCK_BINS 32u

/* arena.c; no engine.lock needed */
struct rs_block *rs_block_get(struct rs_engine *e, uint32_t q, uint64_t bytes);
void rs_block_put(struct rs_engine *e, struct rs_block *b);
void rs_block_used(struct rs_engine *e, struct rs_block *b, uint32_t q);
uint64_t rs_block_users(struct rs_engine *e, const struct rs_block *b);
int rs_arena_reserve(struct rs_engine *e, struct rs_queue q, uint64_t bytes);
struct rs_block *rs_block_ready(struct rs_engine *e, struct rs_block *b, uint32_t q);
int rs_arena_charge(struct rs_engine *e, uint64_t bytes, int frame);
void rs_arena_uncharge(struct rs_engine *e, uint64_t bytes, int frame);
void rs_arena_ctx_gone(struct rs_engine *e, uint64_t ctx);
int rs_arena_has(struct rs_engine *e, uint64_t addr);
void rs_arena_fini(struct rs_engine *e);

#endif
