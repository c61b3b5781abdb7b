/* SPDX-License-Identifier: MIT */
/*
 * Memory of one parsed PTX text: an arena released at once, and its interned strings.
 *
 * Invariants: an interned string exists once per arena, so names compare by address; its record
 * carries the parser's innermost bindings of that name, which makes a name lookup one hash probe.
 * Callers: ptx*.c. No locks: an arena belongs to one thread until the parse is done, and is only
 * read after that. Memory: malloc; NULL on failure.
 */
#ifndef RS_TRACKER_PTX_ARENA_H
#define RS_TRACKER_PTX_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct rs_ptx_bind;
struct rs_ptx_op;

struct rs_ptx_str {
	struct rs_ptx_str *next;  /* in the hash bucket */
	struct rs_ptx_bind *bind; /* register, variable or function of that name, innermost first */
	struct rs_ptx_bind *range; /* register ranges with that prefix: `%r` of `%r<10>` */
	struct rs_ptx_bind *label;
	struct rs_ptx_op *op; /* the opcode spelled so, decoded */
	uint32_t hash;
	uint32_t len;
	char text[];
};

struct rs_ptx_block;

struct rs_ptx_arena {
	struct rs_ptx_block *blocks;
	char *cur, *end;
	struct rs_ptx_str **buckets;
	uint32_t nbuckets, nstrs;
	uint64_t seed;
};

struct rs_ptx_arena *rs_ptx_arena_new(void);
void rs_ptx_arena_free(struct rs_ptx_arena *a);

/* Zeroed memory, aligned to 16. */
void *rs_ptx_arena_alloc(struct rs_ptx_arena *a, size_t size);

/* Release `mem` (of malloc) together with the arena. On failure it is released now: NULL. */
void *rs_ptx_arena_adopt(struct rs_ptx_arena *a, void *mem);

/* The one copy of a string; made if needed. */
struct rs_ptx_str *rs_ptx_intern(struct rs_ptx_arena *a, const char *text, size_t len);

/* The same, but NULL where the string was never interned. */
struct rs_ptx_str *rs_ptx_interned(const struct rs_ptx_arena *a, const char *text, size_t len);

#endif
