/* SPDX-License-Identifier: MIT */
/*
 * Address map, private to tracker/addrmap*.c: structures, memory, and what a granule holds.
 * addrmap.c explains the whole and says what makes lock-free readers sound.
 */
#ifndef RS_TRACKER_ADDRMAP_PRIV_H
#define RS_TRACKER_ADDRMAP_PRIV_H

#include "tracker/addrmap.h"

#include <stdatomic.h>
#include <stddef.h>

#define ADDR_BITS    57
#define GRANULE_BITS 21
#define GRANULE_MASK ((1ull << GRANULE_BITS) - 1)
#define TABLE_BITS   18
#define TABLE_SIZE   (1u << TABLE_BITS)
#define UNIT_BITS    9
#define SUB_BITS     (UNIT_BITS + 6) /* bytes that a sub covers, as a power of two */

#define CHUNK0	1024u /* nodes of the first chunk; each further one doubles the whole */
#define NCHUNKS 22
#define NFEW	6

/* One range. 32 bytes, so that it never straddles a cache line. */
struct node {
	_Atomic uint64_t base; /* free list: address of the next free node */
	_Atomic uint64_t end;
	_Atomic(void *) value;
	_Atomic uint32_t next; /* chain within a unit: reference to the next lower base, 0: end */
	_Atomic uint32_t seq;  /* odd: free or being filled */
};
_Static_assert(sizeof(struct node) == 32, "a node is half a cache line");

struct link {
	struct link *next;
};

/*
 * A granule with at most NFEW starts: one cache line, never changed while it is in use. `ref[k]` is
 * the node (1 + index, 0: none) of an address with k of the starts at or below it; ref[0] the carry.
 */
struct few {
	_Atomic uint32_t start[NFEW]; /* offsets in the granule, ascending, then ~0 */
	_Atomic uint32_t ref[NFEW + 1];
	struct link link;
};
_Static_assert(sizeof(struct few) == 64, "a few is one cache line");

/* 64 units of a leaf. */
struct sub {
	struct link link; /* while free; writers only */
	_Atomic uint64_t bits;
	_Atomic(struct node *) head[64]; /* valid where bits is set */
};

struct leaf {
	struct link link;
	_Atomic uint64_t starts; /* subs with a start */
	_Atomic(struct node *) carry;
	_Atomic(struct sub *) sub[64];
};

/* A granule's entry: 0, a node that covers it, a few or a leaf. */
#define ENTRY_LEAF 1u
#define ENTRY_FEW  2u
#define ENTRY_TAGS 3u

/* Which of 2^18 entries hold a base: 64-ary, three levels. Writers only. */
struct bitmap {
	uint64_t l0[TABLE_SIZE / 64], l1[TABLE_SIZE / 4096], l2;
};

struct table {
	_Atomic uintptr_t entry[TABLE_SIZE]; /* root: tables; else granules */
	struct bitmap bases;		     /* root: tables that exist */
};

struct pool {
	struct link *free;
	struct link *slabs;
	unsigned nfree;
	unsigned size; /* bytes of an object */
	unsigned link; /* offset of its struct link */
};

struct rs_addrmap {
	struct table *root;
	_Atomic uint64_t epoch; /* see addrmap.c */
	struct pool fews, leaves, subs;
	struct node *chunk[NCHUNKS];
	uint32_t nodes_used; /* nodes handed out for the first time */
	struct node *nodes_free;
	_Atomic uint64_t count, table_bytes;
};

#define load(p)	    atomic_load_explicit(p, memory_order_acquire)
#define store(p, v) atomic_store_explicit(p, v, memory_order_release)

static inline unsigned high_bit(uint64_t x)
{
	return 63 - (unsigned)__builtin_clzll(x);
}

static inline uint64_t bits_from(uint64_t word, unsigned i)
{
	return i > 63 ? 0 : word & ~0ull << i;
}

static inline unsigned unit_of(uint64_t addr)
{
	return addr >> UNIT_BITS & 63;
}

static inline unsigned sub_of(uint64_t addr)
{
	return addr >> SUB_BITS & 63;
}

/* Chunk of a node index, and the index of the chunk's first node. */
static inline unsigned chunk_of(uint32_t index, uint32_t *ret_first)
{
	unsigned k = index < CHUNK0 ? 0 : high_bit(index / CHUNK0) + 1;

	*ret_first = k ? CHUNK0 << (k - 1) : 0;
	return k;
}

/* ref is not 0. */
static inline struct node *node_at(const struct rs_addrmap *m, uint32_t ref)
{
	uint32_t first;
	unsigned k = chunk_of(ref - 1, &first);

	return m->chunk[k] + (ref - 1 - first);
}

static inline struct leaf *entry_leaf(uintptr_t e)
{
	return (struct leaf *)(e & ~(uintptr_t)ENTRY_TAGS);
}

static inline struct few *entry_few(uintptr_t e)
{
	return (struct few *)(e & ~(uintptr_t)ENTRY_TAGS);
}

static inline void epoch_advance(struct rs_addrmap *m)
{
	store(&m->epoch, load(&m->epoch) + 1);
}

/* addrmap_mem.c. The take functions advance the epoch and cannot fail within what was reserved. */
struct table *rs_addrmap_table_create(struct rs_addrmap *m);
void rs_addrmap_pools_init(struct rs_addrmap *m);
int rs_addrmap_reserve(struct rs_addrmap *m, uint64_t base, uint64_t end);
void *rs_addrmap_take(struct rs_addrmap *m, struct pool *pool);
void rs_addrmap_give(struct pool *pool, void *object);
void rs_addrmap_free_memory(struct rs_addrmap *m);
struct node *rs_addrmap_node_take(struct rs_addrmap *m);
void rs_addrmap_node_give(struct rs_addrmap *m, struct node *n); /* unlinked before */
uint32_t rs_addrmap_node_ref(const struct rs_addrmap *m, const struct node *n);
void rs_addrmap_bitmap_set(struct bitmap *b, unsigned i);
void rs_addrmap_bitmap_clear(struct bitmap *b, unsigned i);
unsigned rs_addrmap_bitmap_next(const struct bitmap *b, unsigned i); /* TABLE_SIZE: none */

/* addrmap_granule.c. `entry` is a granule's; the node n is filled in, and live on return. */
void rs_addrmap_granule_add(struct rs_addrmap *m, _Atomic uintptr_t *entry, struct node *n);
void rs_addrmap_granule_carry(struct rs_addrmap *m, _Atomic uintptr_t *entry, struct node *n);
void rs_addrmap_granule_drop(struct rs_addrmap *m, _Atomic uintptr_t *entry, struct node *n);
struct node *rs_addrmap_granule_exact(const struct rs_addrmap *m, uintptr_t e, uint64_t base);
/* Lowest base in the granule at or after `from`, which lies in it. */
struct node *rs_addrmap_granule_next(const struct rs_addrmap *m, uintptr_t e, uint64_t from);

#endif
