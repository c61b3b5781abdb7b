/* SPDX-License-Identifier: MIT */
/*
 * A treap of disjoint address ranges, nodes embedded in their owners.
 *
 * Priorities come from a hash of the base, so the shape depends on the contents only. Driver lock held.
 */
#include "tests/simcuda/sim.h"

static uint32_t prio(uint64_t base)
{
	base ^= base >> 33;
	base *= 0xff51afd7ed558ccdull;
	return (uint32_t)(base >> 29);
}

/* Split n into the nodes below base and the rest. */
static void split(struct sim_node *n, uint64_t base, struct sim_node **ret_low,
		  struct sim_node **ret_high)
{
	while (n) {
		if (n->base < base) {
			*ret_low = n;
			ret_low = &n->right;
			n = n->right;
		} else {
			*ret_high = n;
			ret_high = &n->left;
			n = n->left;
		}
	}
	*ret_low = *ret_high = NULL;
}

static struct sim_node *merge(struct sim_node *a, struct sim_node *b)
{
	struct sim_node *root = NULL, **at = &root;

	while (a && b) {
		if (a->prio > b->prio) {
			*at = a;
			at = &a->right;
			a = a->right;
		} else {
			*at = b;
			at = &b->left;
			b = b->left;
		}
	}
	*at = a ? a : b;
	return root;
}

void sim_tree_insert(struct sim_tree *t, struct sim_node *n, uint64_t base, uint64_t size,
		     void *owner)
{
	struct sim_node **at = &t->root;

	*n = (struct sim_node){base, size, prio(base), NULL, NULL, owner};
	while (*at && (*at)->prio >= n->prio)
		at = base < (*at)->base ? &(*at)->left : &(*at)->right;
	split(*at, base, &n->left, &n->right);
	*at = n;
	t->generation++;
}

void sim_tree_remove(struct sim_tree *t, struct sim_node *n)
{
	struct sim_node **at = &t->root;

	while (*at && *at != n)
		at = n->base < (*at)->base ? &(*at)->left : &(*at)->right;
	if (!*at)
		return;
	*at = merge(n->left, n->right);
	t->generation++;
}

/* The last range that starts at or below addr. */
static const struct sim_node *below(const struct sim_tree *t, uint64_t addr)
{
	const struct sim_node *n = t->root, *best = NULL;

	while (n) {
		if (n->base <= addr) {
			best = n;
			n = n->right;
		} else {
			n = n->left;
		}
	}
	return best;
}

void *sim_tree_find(const struct sim_tree *t, uint64_t addr)
{
	const struct sim_node *n = below(t, addr);

	return n && addr - n->base < n->size ? n->owner : NULL;
}

bool sim_tree_overlaps(const struct sim_tree *t, uint64_t base, uint64_t size)
{
	const struct sim_node *n = below(t, base + size - 1);

	return n && n->base + n->size > base;
}

void sim_tree_walk(const struct sim_node *n, void (*fn)(void *owner, void *opaque), void *opaque)
{
	if (!n)
		return;
	sim_tree_walk(n->left, fn, opaque);
	fn(n->owner, opaque);
	sim_tree_walk(n->right, fn, opaque);
}
