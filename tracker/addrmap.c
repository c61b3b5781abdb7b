/* SPDX-License-Identifier: MIT */
/*
 * Address map: see addrmap.h for the contract.
 *
 * Two tables of 2^18 entries lead from a 57-bit address to its 2 MiB granule. A granule that one range
 * covers has that range's node as its entry. Any other is searched by the *starts* in it, not by a
 * slot per unit, so that an insertion costs the same for 512 bytes and for 1 MiB: the range of an
 * address is the nearest start at or below it, or the `carry`, the range that runs into the granule
 * from an earlier one. Up to six starts are one cache line (few); more are a leaf: 64 subs of 64 units
 * of 512 bytes with a bit per unit. Ranges that begin in the same unit form a chain, highest base
 * first.
 *
 * Readers take no lock. What makes that sound:
 * - Nothing that a reader can reach is unmapped before rs_addrmap_destroy; what a writer has taken out
 *   is reused later.
 * - A node is odd in `seq` while it is free or being filled, so a reader notices a torn copy.
 * - A range that is found contains the address, however the reader got there: "found" needs no check.
 * - "Nothing there" can be an artefact of a removal or of reuse under the reader's feet. `epoch`
 *   advances before anything is reused, and after a removal has unlinked its node and before it marks
 *   it free. A reader that comes up empty inside a granule trusts that only if `epoch` stood still,
 *   else it looks again. Each repetition means that a writer made progress: finds are lock-free.
 * Every store a reader may see is a release, every load of a reader an acquire; fences are avoided
 * because ThreadSanitizer does not model them.
 *
 * Callers: engine. Writers hold the engine's lock; this module takes none.
 */
#include "tracker/addrmap_priv.h"

#include <errno.h>
#include <stdlib.h>

enum look {
	LOOK_FOUND,
	LOOK_NONE,   /* certainly nothing; of a chain: nothing at or below the address */
	LOOK_UNSURE, /* nothing, unless the reader was overtaken */
};

struct hit {
	uint64_t base, end;
	void *value;
};

/* Copies a node, or says that it was not a live one throughout. */
static inline int node_read(struct node *n, struct hit *ret, uint32_t *ret_next)
{
	uint32_t seq = load(&n->seq);

	ret->base = load(&n->base);
	ret->end = load(&n->end);
	ret->value = load(&n->value);
	*ret_next = load(&n->next);
	return !(seq & 1) && load(&n->seq) == seq;
}

/* The chain of a unit: the highest base at or below addr. LOOK_NONE: all of them are above. */
static inline enum look look_chain(const struct rs_addrmap *m, struct node *n, uint64_t addr,
				   struct hit *ret)
{
	uint32_t next;

	for (;;) {
		if (!node_read(n, ret, &next))
			return LOOK_UNSURE;
		if (ret->base <= addr)
			return addr < ret->end ? LOOK_FOUND : LOOK_UNSURE;
		if (!next)
			return LOOK_NONE;
		n = node_at(m, next);
	}
}

static inline enum look look_leaf(const struct rs_addrmap *m, struct leaf *leaf, uint64_t addr,
				  struct hit *ret)
{
	unsigned w = sub_of(addr), at = unit_of(addr), j;
	uint64_t mask = ~0ull >> (63 - at), bits, starts;
	struct sub *sub = load(&leaf->sub[w]);
	struct node *n;

	if (sub) {
		for (bits = load(&sub->bits) & mask; bits; bits &= ~(1ull << j)) {
			enum look look;

			j = high_bit(bits);
			look = look_chain(m, load(&sub->head[j]), addr, ret);
			if (look != LOOK_NONE)
				return look;
		}
	}
	starts = load(&leaf->starts) & ((1ull << w) - 1);
	if (starts) {
		sub = load(&leaf->sub[high_bit(starts)]);
		bits = sub ? load(&sub->bits) : 0;
		if (!bits)
			return LOOK_UNSURE;
		n = load(&sub->head[high_bit(bits)]);
	} else {
		n = load(&leaf->carry);
	}
	if (n && look_chain(m, n, addr, ret) == LOOK_FOUND)
		return LOOK_FOUND;
	return LOOK_UNSURE;
}

/* The node of an address in a granule with few starts, or NULL. */
static inline struct node *few_node(const struct rs_addrmap *m, const struct few *f, uint64_t addr)
{
	uint32_t at = addr & GRANULE_MASK, ref;
	unsigned k;
	uint64_t above = 0;

	/* No early end: six comparisons (cmp, adc) cost less than one wrong guess. */
#pragma GCC unroll 6
	for (k = 0; k < NFEW; k++)
		above += at < load(&f->start[k]);
	ref = load(&f->ref[NFEW - above]);
	return ref ? node_at(m, ref) : NULL;
}

/* The same for a leaf, but for chains: the highest base of the nearest unit with a start. */
static inline struct node *leaf_node(const struct leaf *leaf, uint64_t addr)
{
	unsigned w = sub_of(addr);
	struct sub *sub = load(&leaf->sub[w]);
	uint64_t bits = 0;

	if (sub) { /* most likely the nearest start is not far: fetch both lines at once */
		__builtin_prefetch(&sub->head[unit_of(addr)]);
		bits = load(&sub->bits) & ~0ull >> (63 - unit_of(addr));
	}
	if (!bits) {
		bits = load(&leaf->starts) & ((1ull << w) - 1);
		if (!bits)
			return load(&leaf->carry);
		sub = load(&leaf->sub[high_bit(bits)]);
		bits = sub ? load(&sub->bits) : 0;
	}
	return bits ? load(&sub->head[high_bit(bits)]) : NULL;
}

/* The granule's entry; 0 is certain. */
static inline uintptr_t entry_at(const struct rs_addrmap *m, uint64_t addr)
{
	uint64_t granule = addr >> GRANULE_BITS;
	struct table *t;

	if (addr >> ADDR_BITS)
		return 0;
	t = (struct table *)load(&m->root->entry[granule >> TABLE_BITS]);
	return t ? load(&t->entry[granule & (TABLE_SIZE - 1)]) : 0;
}

static enum look look(const struct rs_addrmap *m, uint64_t addr, struct hit *ret)
{
	uintptr_t e = entry_at(m, addr);
	struct node *n = (struct node *)e;

	if (!e)
		return LOOK_NONE;
	if (e & ENTRY_LEAF)
		return look_leaf(m, entry_leaf(e), addr, ret);
	if (e & ENTRY_FEW)
		n = few_node(m, entry_few(e), addr);
	return n && look_chain(m, n, addr, ret) == LOOK_FOUND ? LOOK_FOUND : LOOK_UNSURE;
}

/* What rs_addrmap_find does not do at once: chains, and certainty that nothing is there. */
__attribute__((noinline)) static void *find_slow(const struct rs_addrmap *m, uint64_t addr,
						 uint64_t *ret_base, uint64_t *ret_bytes)
{
	struct hit hit;
	uint64_t epoch;
	enum look l = look(m, addr, &hit);

	while (l == LOOK_UNSURE) {
		epoch = load(&m->epoch);
		l = look(m, addr, &hit);
		if (l != LOOK_FOUND && load(&m->epoch) == epoch)
			return NULL;
	}
	if (l == LOOK_NONE)
		return NULL;
	if (ret_base)
		*ret_base = hit.base;
	if (ret_bytes)
		*ret_bytes = hit.end - hit.base;
	return hit.value;
}

void *rs_addrmap_find(const struct rs_addrmap *m, uint64_t addr, uint64_t *ret_base,
		      uint64_t *ret_bytes)
{
	uintptr_t e = entry_at(m, addr);
	struct node *n = (struct node *)e;
	uint64_t base, end;
	uint32_t seq;
	void *value;

	if (!e)
		return NULL;
	if (e & ENTRY_LEAF)
		n = leaf_node(entry_leaf(e), addr);
	else if (e & ENTRY_FEW)
		n = few_node(m, entry_few(e), addr);
	if (__builtin_expect(!n, 0))
		return find_slow(m, addr, ret_base, ret_bytes);
	seq = load(&n->seq);
	base = load(&n->base);
	end = load(&n->end);
	value = load(&n->value);
	if (__builtin_expect((seq & 1) || load(&n->seq) != seq || addr - base >= end - base, 0))
		return find_slow(m, addr, ret_base, ret_bytes);
	if (ret_base)
		*ret_base = base;
	if (ret_bytes)
		*ret_bytes = end - base;
	return value;
}

/* One look's way through the map: its next step is only taken when what it needs has been asked for. */
void rs_addrmap_fetch(const struct rs_addrmap *m, const uint64_t *addr, unsigned n)
{
	uintptr_t entry[RS_ADDRMAP_FETCH];
	unsigned i;

	for (i = 0; i < n; i++) {
		entry[i] = entry_at(m, addr[i]);
		if (entry[i] & ENTRY_LEAF)
			__builtin_prefetch(&entry_leaf(entry[i])->sub[sub_of(addr[i])]);
		else
			__builtin_prefetch((void *)(entry[i] & ~(uintptr_t)ENTRY_TAGS));
	}
	for (i = 0; i < n; i++) {
		struct sub *sub;

		if (!(entry[i] & ENTRY_LEAF))
			continue;
		sub = load(&entry_leaf(entry[i])->sub[sub_of(addr[i])]);
		if (!sub)
			continue;
		__builtin_prefetch(&sub->bits);
		__builtin_prefetch(&sub->head[unit_of(addr[i])]);
	}
	for (i = 0; i < n; i++) {
		struct node *node = (struct node *)entry[i];

		if (entry[i] & ENTRY_LEAF)
			node = leaf_node(entry_leaf(entry[i]), addr[i]);
		else if (entry[i] & ENTRY_FEW)
			node = few_node(m, entry_few(entry[i]), addr[i]);
		if (node)
			__builtin_prefetch(node);
	}
}

/* --- insert, remove, iterate ---------------------------------------------------------------- */

struct rs_addrmap *rs_addrmap_create(void)
{
	struct rs_addrmap *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	rs_addrmap_pools_init(m);
	m->root = rs_addrmap_table_create(m);
	if (!m->root) {
		free(m);
		return NULL;
	}
	return m;
}

void rs_addrmap_destroy(struct rs_addrmap *m)
{
	if (!m)
		return;
	rs_addrmap_free_memory(m);
	free(m);
}

static struct table *table_of(const struct rs_addrmap *m, uint64_t granule)
{
	return (struct table *)load(&m->root->entry[granule >> TABLE_BITS]);
}

static _Atomic uintptr_t *entry_of(const struct rs_addrmap *m, uint64_t granule)
{
	return &table_of(m, granule)->entry[granule & (TABLE_SIZE - 1)];
}

int rs_addrmap_insert(struct rs_addrmap *m, uint64_t base, uint64_t bytes, void *value)
{
	uint64_t end = base + bytes, g = base >> GRANULE_BITS, last = (end - 1) >> GRANULE_BITS, at;
	struct node *n;
	struct hit hit;
	int ret;

	if (!bytes || end < base || end > 1ull << ADDR_BITS || !value)
		return -EINVAL;
	if (look(m, base, &hit) == LOOK_FOUND || (rs_addrmap_next(m, base, &at, NULL) && at < end))
		return -EEXIST;
	ret = rs_addrmap_reserve(m, base, end);
	if (ret)
		return ret;

	n = rs_addrmap_node_take(m);
	store(&n->base, base);
	store(&n->end, end);
	store(&n->value, value);
	rs_addrmap_bitmap_set(&table_of(m, g)->bases, g & (TABLE_SIZE - 1));
	if ((base & GRANULE_MASK) || bytes <= GRANULE_MASK) {
		rs_addrmap_granule_add(m, entry_of(m, g), n);
		g++;
	} else {
		store(&n->next, 0);
		store(&n->seq, load(&n->seq) + 1); /* live */
	}
	for (; g < last || (g == last && !(end & GRANULE_MASK)); g++)
		store(entry_of(m, g), (uintptr_t)n);
	if (g == last)
		rs_addrmap_granule_carry(m, entry_of(m, g), n);
	atomic_fetch_add_explicit(&m->count, 1, memory_order_relaxed);
	return 0;
}

void *rs_addrmap_remove(struct rs_addrmap *m, uint64_t base)
{
	uint64_t g = base >> GRANULE_BITS, first = g, last;
	_Atomic uintptr_t *entry;
	struct node *n;
	void *value;

	if (base >> ADDR_BITS || !table_of(m, g))
		return NULL;
	n = rs_addrmap_granule_exact(m, load(entry_of(m, g)), base);
	if (!n)
		return NULL;
	value = load(&n->value);
	last = (load(&n->end) - 1) >> GRANULE_BITS;
	for (; g <= last; g++) {
		entry = entry_of(m, g);
		if (!(load(entry) & ENTRY_TAGS))
			store(entry, 0);
		else if (g == first)
			rs_addrmap_granule_drop(m, entry, n);
		else
			rs_addrmap_granule_carry(m, entry, NULL);
	}
	if (!rs_addrmap_granule_next(m, load(entry_of(m, first)), first << GRANULE_BITS))
		rs_addrmap_bitmap_clear(&table_of(m, first)->bases, first & (TABLE_SIZE - 1));
	rs_addrmap_node_give(m, n);
	atomic_fetch_sub_explicit(&m->count, 1, memory_order_relaxed);
	return value;
}

void *rs_addrmap_next(const struct rs_addrmap *m, uint64_t from, uint64_t *ret_base,
		      uint64_t *ret_bytes)
{
	const struct bitmap *tables = &m->root->bases;
	uint64_t g = from >> GRANULE_BITS;
	unsigned top, i;

	if (from >> ADDR_BITS)
		return NULL;
	for (top = g >> TABLE_BITS; (top = rs_addrmap_bitmap_next(tables, top)) < TABLE_SIZE;
	     top++) {
		struct table *t = (struct table *)load(&m->root->entry[top]);

		i = g >> TABLE_BITS == top ? g & (TABLE_SIZE - 1) : 0;
		for (; (i = rs_addrmap_bitmap_next(&t->bases, i)) < TABLE_SIZE; i++) {
			uint64_t low = ((uint64_t)top << TABLE_BITS | i) << GRANULE_BITS;
			struct node *n = rs_addrmap_granule_next(m, load(&t->entry[i]),
								 low < from ? from : low);

			if (!n)
				continue;
			if (ret_base)
				*ret_base = load(&n->base);
			if (ret_bytes)
				*ret_bytes = load(&n->end) - load(&n->base);
			return load(&n->value);
		}
	}
	return NULL;
}

uint64_t rs_addrmap_count(const struct rs_addrmap *m)
{
	return atomic_load_explicit(&m->count, memory_order_relaxed);
}

uint64_t rs_addrmap_table_bytes(const struct rs_addrmap *m)
{
	return atomic_load_explicit(&m->table_bytes, memory_order_relaxed);
}
