/* SPDX-License-Identifier: MIT */
/*
 * Memory of the address map: tables by mmap, fews, leaves and subs in slabs, nodes in chunks; and the
 * bitmaps of bases. Nothing is given back before rs_addrmap_free_memory, because readers may still look.
 *
 * Writers only (the engine's lock). Reuse advances the epoch first: see addrmap.c.
 */
#include "tracker/addrmap_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SLAB_OBJECTS 32

/* Zero pages on demand: only what is touched becomes resident. */
struct table *rs_addrmap_table_create(struct rs_addrmap *m)
{
	void *p = mmap(NULL, sizeof(struct table), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	atomic_fetch_add_explicit(&m->table_bytes, sizeof(struct table), memory_order_relaxed);
	return p;
}

void rs_addrmap_pools_init(struct rs_addrmap *m)
{
	m->fews.size = sizeof(struct few);
	m->fews.link = offsetof(struct few, link);
	m->leaves.size = (sizeof(struct leaf) + 63) & ~63u;
	m->leaves.link = offsetof(struct leaf, link);
	m->subs.size = (sizeof(struct sub) + 63) & ~63u;
	m->subs.link = offsetof(struct sub, link);
}

void rs_addrmap_give(struct pool *pool, void *object)
{
	struct link *l = (struct link *)((char *)object + pool->link);

	l->next = pool->free;
	pool->free = l;
	pool->nfree++;
}

void *rs_addrmap_take(struct rs_addrmap *m, struct pool *pool)
{
	struct link *l = pool->free;

	epoch_advance(m);
	pool->free = l->next;
	pool->nfree--;
	return (char *)l - pool->link;
}

static int pool_reserve(struct rs_addrmap *m, struct pool *pool, unsigned n)
{
	size_t bytes = 64 + (size_t)SLAB_OBJECTS * pool->size;
	char *slab;
	unsigned i;

	if (pool->nfree >= n)
		return 0;
	slab = aligned_alloc(64, bytes);
	if (!slab)
		return -ENOMEM;
	memset(slab, 0, bytes);
	((struct link *)slab)->next = pool->slabs;
	pool->slabs = (struct link *)slab;
	for (i = SLAB_OBJECTS; i > 0; i--)
		rs_addrmap_give(pool, slab + 64 + (i - 1) * (size_t)pool->size);
	atomic_fetch_add_explicit(&m->table_bytes, bytes, memory_order_relaxed);
	return 0;
}

static void pool_free(struct pool *pool)
{
	struct link *l, *next;

	for (l = pool->slabs; l; l = next) {
		next = l->next;
		free(l);
	}
}

void rs_addrmap_free_memory(struct rs_addrmap *m)
{
	const struct bitmap *tables = &m->root->bases;
	unsigned i;

	for (i = 0; (i = rs_addrmap_bitmap_next(tables, i)) < TABLE_SIZE; i++)
		munmap((void *)load(&m->root->entry[i]), sizeof(struct table));
	munmap(m->root, sizeof(struct table));
	pool_free(&m->fews);
	pool_free(&m->leaves);
	pool_free(&m->subs);
	for (i = 0; i < NCHUNKS; i++)
		free(m->chunk[i]);
}

uint32_t rs_addrmap_node_ref(const struct rs_addrmap *m, const struct node *n)
{
	uintptr_t at = (uintptr_t)n;
	uint32_t first = 0, size = CHUNK0;
	unsigned k;

	for (k = 0;; k++) {
		uintptr_t chunk = (uintptr_t)m->chunk[k];

		if (at >= chunk && at < chunk + size * sizeof(*n))
			return first + (uint32_t)((at - chunk) / sizeof(*n)) + 1;
		first = CHUNK0 << k;
		size = first;
	}
}

static int node_reserve(struct rs_addrmap *m)
{
	uint32_t first;
	unsigned k;

	if (m->nodes_free)
		return 0;
	if (m->nodes_used >= CHUNK0 << (NCHUNKS - 1))
		return -ENOMEM;
	k = chunk_of(m->nodes_used, &first);
	if (!m->chunk[k])
		m->chunk[k] = aligned_alloc(64, (k ? first : CHUNK0) * sizeof(struct node));
	return m->chunk[k] ? 0 : -ENOMEM;
}

struct node *rs_addrmap_node_take(struct rs_addrmap *m)
{
	struct node *n = m->nodes_free;

	epoch_advance(m);
	if (n) {
		m->nodes_free = (struct node *)(uintptr_t)load(&n->base);
		return n;
	}
	n = node_at(m, ++m->nodes_used);
	atomic_init(&n->seq, 1);
	return n;
}

void rs_addrmap_node_give(struct rs_addrmap *m, struct node *n)
{
	epoch_advance(m);
	store(&n->seq, load(&n->seq) + 1);
	store(&n->base, (uint64_t)(uintptr_t)m->nodes_free);
	m->nodes_free = n;
}

/* Everything that inserting [base, end) may take, so that the rest cannot fail. */
int rs_addrmap_reserve(struct rs_addrmap *m, uint64_t base, uint64_t end)
{
	uint64_t top = base >> (GRANULE_BITS + TABLE_BITS);
	uint64_t last = (end - 1) >> (GRANULE_BITS + TABLE_BITS);

	for (; top <= last; top++) {
		struct table *t;

		if (load(&m->root->entry[top]))
			continue;
		t = rs_addrmap_table_create(m);
		if (!t)
			return -ENOMEM;
		rs_addrmap_bitmap_set(&m->root->bases, (unsigned)top);
		store(&m->root->entry[top], (uintptr_t)t);
	}
	/*
	 * A few for the first and the last granule, and one that stays for the next removal, which
	 * needs it for a moment; a leaf with its subs where a few overflows.
	 */
	if (pool_reserve(m, &m->fews, 3) || pool_reserve(m, &m->leaves, 1) ||
	    pool_reserve(m, &m->subs, NFEW + 1))
		return -ENOMEM;
	return node_reserve(m);
}

/* --- bitmaps -------------------------------------------------------------------------------- */

void rs_addrmap_bitmap_set(struct bitmap *b, unsigned i)
{
	b->l0[i >> 6] |= 1ull << (i & 63);
	b->l1[i >> 12] |= 1ull << (i >> 6 & 63);
	b->l2 |= 1ull << (i >> 12);
}

void rs_addrmap_bitmap_clear(struct bitmap *b, unsigned i)
{
	b->l0[i >> 6] &= ~(1ull << (i & 63));
	if (!b->l0[i >> 6])
		b->l1[i >> 12] &= ~(1ull << (i >> 6 & 63));
	if (!b->l1[i >> 12])
		b->l2 &= ~(1ull << (i >> 12));
}

/* First set bit at or after i, or TABLE_SIZE. */
unsigned rs_addrmap_bitmap_next(const struct bitmap *b, unsigned i)
{
	uint64_t w;
	unsigned a;

	if (i >= TABLE_SIZE)
		return TABLE_SIZE;
	w = bits_from(b->l0[i >> 6], i & 63);
	if (w)
		return (i & ~63u) + (unsigned)__builtin_ctzll(w);
	w = bits_from(b->l1[i >> 12], (i >> 6 & 63) + 1);
	if (w) {
		a = (i >> 12 << 6) + (unsigned)__builtin_ctzll(w);
	} else {
		w = bits_from(b->l2, (i >> 12) + 1);
		if (!w)
			return TABLE_SIZE;
		a = (unsigned)__builtin_ctzll(w);
		a = (a << 6) + (unsigned)__builtin_ctzll(b->l1[a]);
	}
	return (a << 6) + (unsigned)__builtin_ctzll(b->l0[a]);
}
