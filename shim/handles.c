/* SPDX-License-Identifier: MIT */
/*
 * Writers of handles.h. Callers: kernels.c, under its lock.
 */
#include "shim/handles.h"

#include <errno.h>
#include <stdlib.h>

static struct rs_handles_table *new_table(uint64_t size)
{
	struct rs_handles_table *t = calloc(1, sizeof(*t) + size * sizeof(t->slot[0]));

	if (t)
		t->mask = size - 1;
	return t;
}

/* The key's slot, else a removed one on the way, else the free one at the end. */
static uint64_t slot_for(const struct rs_handles_table *t, uint64_t key)
{
	uint64_t removed = UINT64_MAX;

	for (uint64_t i = rs_handles_hash(key) & t->mask;; i = (i + 1) & t->mask) {
		if (t->slot[i].key == key)
			return i;
		if (!t->slot[i].key)
			return removed != UINT64_MAX ? removed : i;
		if (!t->slot[i].value && removed == UINT64_MAX)
			removed = i;
	}
}

/* Live entries only; at least twice as many slots as will be used. */
static int rebuild(struct rs_handles *h)
{
	struct rs_handles_table *old = h->table, *t;
	uint64_t live = 0, size = 64;

	for (uint64_t i = 0; old && i <= old->mask; i++)
		live += old->slot[i].value != NULL;
	while (size < 4 * live)
		size *= 2;
	t = new_table(size);
	if (!t)
		return -ENOMEM;
	for (uint64_t i = 0; old && i <= old->mask; i++)
		if (old->slot[i].value)
			t->slot[slot_for(t, old->slot[i].key)] = old->slot[i];
	t->older = old;
	h->used = live;
	__atomic_store_n(&h->table, t, __ATOMIC_RELEASE);
	return 0;
}

/*
 * Removed slots at the end of a run become free: nothing lies behind them that a reader could miss. Without
 * this a program that makes and drops handles for ever would fill table after table with removed ones.
 */
static void free_removed(struct rs_handles *h, uint64_t i)
{
	struct rs_handles_table *t = h->table;

	if (t->slot[(i + 1) & t->mask].key)
		return;
	for (; t->slot[i].key && !t->slot[i].value; i = (i - 1) & t->mask) {
		__atomic_store_n(&t->slot[i].key, 0, __ATOMIC_RELEASE);
		h->used--;
	}
}

int rs_handles_set(struct rs_handles *h, const void *handle, void *value)
{
	uint64_t key = (uintptr_t)handle, i;

	if (!key || (!value && !rs_handles_find(h, handle)))
		return 0;
	if (value && (!h->table || 2 * (h->used + 1) > h->table->mask) && rebuild(h))
		return -ENOMEM;
	i = slot_for(h->table, key);
	h->used += !h->table->slot[i].key;
	__atomic_store_n(&h->table->slot[i].value, value, __ATOMIC_RELEASE);
	__atomic_store_n(&h->table->slot[i].key, key, __ATOMIC_RELEASE);
	if (!value)
		free_removed(h, i);
	return 0;
}
