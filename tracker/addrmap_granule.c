/* SPDX-License-Identifier: MIT */
/*
 * What one granule of the address map holds: the changes of its entry.
 *
 * A few is replaced by a changed copy; with its seventh start it becomes a leaf, which is changed in
 * place and stays until it is empty. At most one range covers a whole granule, and then nothing else
 * is in it. Writers only (the engine's lock); each single store leaves readers with the state before
 * or after it.
 */
#include "tracker/addrmap_priv.h"

static uint32_t offset_of(const struct node *n)
{
	return load(&n->base) & GRANULE_MASK;
}

static unsigned few_starts(const struct few *f)
{
	unsigned k = 0;

	while (k < NFEW && load(&f->start[k]) != ~0u)
		k++;
	return k;
}

/* A writer's copy of a few, with room for one start more. */
struct draft {
	uint32_t start[NFEW + 1], ref[NFEW + 2];
	unsigned n;
};

static void draft_from(struct draft *d, uintptr_t e)
{
	const struct few *f = entry_few(e);
	unsigned k;

	d->n = f ? few_starts(f) : 0;
	d->ref[0] = f ? load(&f->ref[0]) : 0;
	for (k = 0; k < d->n; k++) {
		d->start[k] = load(&f->start[k]);
		d->ref[k + 1] = load(&f->ref[k + 1]);
	}
}

/* Makes the draft the entry; the few that was there may be reused from now on. */
static void draft_publish(struct rs_addrmap *m, const struct draft *d, _Atomic uintptr_t *entry)
{
	uintptr_t old = load(entry);
	struct few *f = NULL;
	unsigned k;

	if (d->n || d->ref[0]) {
		f = rs_addrmap_take(m, &m->fews);
		store(&f->ref[0], d->ref[0]);
		for (k = 0; k < NFEW; k++) {
			store(&f->start[k], k < d->n ? d->start[k] : ~0u);
			store(&f->ref[k + 1], k < d->n ? d->ref[k + 1] : 0);
		}
	}
	store(entry, f ? (uintptr_t)f | ENTRY_FEW : 0);
	if (old)
		rs_addrmap_give(&m->fews, entry_few(old));
}

/* Links a node into the leaf. It becomes live, if it is not, when it is whole. */
static void leaf_add(struct rs_addrmap *m, struct leaf *leaf, struct node *n)
{
	uint64_t base = load(&n->base), bits;
	unsigned w = sub_of(base), i = unit_of(base);
	struct sub *sub = load(&leaf->sub[w]);
	struct node *at, *prev = NULL;

	if (!sub)
		sub = rs_addrmap_take(m, &m->subs);
	bits = load(&sub->bits);
	at = bits >> i & 1 ? load(&sub->head[i]) : NULL;
	while (at && load(&at->base) > base) {
		uint32_t next = load(&at->next);

		prev = at;
		at = next ? node_at(m, next) : NULL;
	}
	store(&n->next, at ? rs_addrmap_node_ref(m, at) : 0);
	store(&n->seq, (load(&n->seq) + 1) & ~1u);
	if (prev)
		store(&prev->next, rs_addrmap_node_ref(m, n));
	else
		store(&sub->head[i], n);
	store(&sub->bits, bits | 1ull << i);
	store(&leaf->sub[w], sub);
	store(&leaf->starts, load(&leaf->starts) | 1ull << w);
}

static void leaf_from_few(struct rs_addrmap *m, _Atomic uintptr_t *entry, struct node *n)
{
	struct few *f = entry_few(load(entry));
	struct leaf *leaf = rs_addrmap_take(m, &m->leaves);
	uint32_t carry = load(&f->ref[0]);
	unsigned k;

	store(&leaf->carry, carry ? node_at(m, carry) : NULL);
	for (k = 0; k < NFEW; k++)
		leaf_add(m, leaf, node_at(m, load(&f->ref[k + 1])));
	leaf_add(m, leaf, n);
	store(entry, (uintptr_t)leaf | ENTRY_LEAF);
	rs_addrmap_give(&m->fews, f);
}

void rs_addrmap_granule_add(struct rs_addrmap *m, _Atomic uintptr_t *entry, struct node *n)
{
	uintptr_t e = load(entry);
	uint32_t start = offset_of(n);
	struct draft d;
	unsigned k;

	if (e & ENTRY_LEAF) {
		leaf_add(m, entry_leaf(e), n);
		return;
	}
	draft_from(&d, e);
	if (d.n == NFEW) {
		leaf_from_few(m, entry, n);
		return;
	}
	store(&n->next, 0);
	store(&n->seq, load(&n->seq) + 1); /* live */
	for (k = d.n++; k && d.start[k - 1] > start; k--) {
		d.start[k] = d.start[k - 1];
		d.ref[k + 1] = d.ref[k];
	}
	d.start[k] = start;
	d.ref[k + 1] = rs_addrmap_node_ref(m, n);
	draft_publish(m, &d, entry);
}

/* n NULL: no range runs into the granule any more. */
void rs_addrmap_granule_carry(struct rs_addrmap *m, _Atomic uintptr_t *entry, struct node *n)
{
	uintptr_t e = load(entry);
	struct draft d;

	if (!(e & ENTRY_LEAF)) {
		draft_from(&d, e);
		d.ref[0] = n ? rs_addrmap_node_ref(m, n) : 0;
		draft_publish(m, &d, entry);
		return;
	}
	store(&entry_leaf(e)->carry, n);
	if (!n && !load(&entry_leaf(e)->starts)) {
		store(entry, 0);
		rs_addrmap_give(&m->leaves, entry_leaf(e));
	}
}

/* Takes a node out of its unit's chain; the sub goes back to the pool with its last start. */
static void leaf_drop(struct rs_addrmap *m, struct leaf *leaf, struct node *n)
{
	uint64_t base = load(&n->base);
	unsigned w = sub_of(base), i = unit_of(base);
	struct sub *sub = load(&leaf->sub[w]);
	struct node *at = load(&sub->head[i]);
	uint32_t next = load(&n->next);

	if (at != n) {
		uint32_t self = rs_addrmap_node_ref(m, n);

		while (load(&at->next) != self)
			at = node_at(m, load(&at->next));
		store(&at->next, next);
		return;
	}
	if (next) {
		store(&sub->head[i], node_at(m, next));
		return;
	}
	store(&sub->bits, load(&sub->bits) & ~(1ull << i));
	if (load(&sub->bits))
		return;
	store(&leaf->starts, load(&leaf->starts) & ~(1ull << w));
	store(&leaf->sub[w], NULL);
	rs_addrmap_give(&m->subs, sub);
}

void rs_addrmap_granule_drop(struct rs_addrmap *m, _Atomic uintptr_t *entry, struct node *n)
{
	uintptr_t e = load(entry);
	uint32_t start = offset_of(n);
	struct draft d;
	unsigned k = 0;

	if (e & ENTRY_LEAF) {
		leaf_drop(m, entry_leaf(e), n);
		if (!load(&entry_leaf(e)->starts) && !load(&entry_leaf(e)->carry)) {
			store(entry, 0);
			rs_addrmap_give(&m->leaves, entry_leaf(e));
		}
		return;
	}
	draft_from(&d, e);
	while (d.start[k] != start)
		k++;
	for (d.n--; k < d.n; k++) {
		d.start[k] = d.start[k + 1];
		d.ref[k + 1] = d.ref[k + 2];
	}
	draft_publish(m, &d, entry);
}

static struct node *leaf_exact(const struct rs_addrmap *m, struct leaf *leaf, uint64_t base)
{
	struct sub *sub = load(&leaf->sub[sub_of(base)]);
	struct node *n;

	if (!sub || !(load(&sub->bits) >> unit_of(base) & 1))
		return NULL;
	n = load(&sub->head[unit_of(base)]);
	while (load(&n->base) > base && load(&n->next))
		n = node_at(m, load(&n->next));
	return n;
}

struct node *rs_addrmap_granule_exact(const struct rs_addrmap *m, uintptr_t e, uint64_t base)
{
	struct node *n = NULL;
	unsigned k;

	if (e & ENTRY_LEAF) {
		n = leaf_exact(m, entry_leaf(e), base);
	} else if (e & ENTRY_FEW) {
		for (k = 0; k < NFEW; k++)
			if (load(&entry_few(e)->start[k]) == (base & GRANULE_MASK))
				n = node_at(m, load(&entry_few(e)->ref[k + 1]));
	} else {
		n = (struct node *)e;
	}
	return n && load(&n->base) == base ? n : NULL;
}

static struct node *leaf_next(const struct rs_addrmap *m, struct leaf *leaf, uint64_t from)
{
	uint64_t starts = bits_from(load(&leaf->starts), sub_of(from));
	struct node *best = NULL, *n;

	for (; starts; starts &= starts - 1) {
		unsigned w = (unsigned)__builtin_ctzll(starts);
		struct sub *sub = load(&leaf->sub[w]);
		uint64_t bits = load(&sub->bits);

		if (w == sub_of(from))
			bits = bits_from(bits, unit_of(from));
		for (; bits; bits &= bits - 1) {
			n = load(&sub->head[__builtin_ctzll(bits)]);
			while (n && load(&n->base) >= from) {
				uint32_t next = load(&n->next);

				best = n;
				n = next ? node_at(m, next) : NULL;
			}
			if (best)
				return best;
		}
	}
	return NULL;
}

struct node *rs_addrmap_granule_next(const struct rs_addrmap *m, uintptr_t e, uint64_t from)
{
	struct node *n = (struct node *)e;
	unsigned k;

	if (e & ENTRY_LEAF)
		return leaf_next(m, entry_leaf(e), from);
	if (e & ENTRY_FEW) {
		const struct few *f = entry_few(e);
		uint32_t at = from & GRANULE_MASK, ref;

		for (k = 0; k < NFEW && load(&f->start[k]) < at;)
			k++;
		ref = k < NFEW ? load(&f->ref[k + 1]) : 0;
		return ref ? node_at(m, ref) : NULL;
	}
	return n && load(&n->base) >= from ? n : NULL;
}
