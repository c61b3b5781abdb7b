/* SPDX-License-Identifier: MIT */
/*
 * A hash table from numbers to numbers, open addressing, for busy.c: key 0 is not one. Entries are taken out by
 * building the table anew (rs_cupti_table_sweep). No locks.
 */
#ifndef RS_CUPTI_TABLE_H
#define RS_CUPTI_TABLE_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

struct rs_cupti_slot {
	uint64_t key, value;
};

struct rs_cupti_table {
	struct rs_cupti_slot *slot;
	uint32_t n, cap; /* cap: 0 or a power of two */
};

static inline uint32_t rs_cupti_table_home(uint64_t key, uint32_t cap)
{
	return (uint32_t)((key * 0x9e3779b97f4a7c15ull) >> 32) & (cap - 1);
}

static inline struct rs_cupti_slot *rs_cupti_table_find(const struct rs_cupti_table *t,
							uint64_t key)
{
	uint32_t i;

	if (!t->cap || !key)
		return NULL;
	for (i = rs_cupti_table_home(key, t->cap); t->slot[i].key; i = (i + 1) & (t->cap - 1))
		if (t->slot[i].key == key)
			return &t->slot[i];
	return NULL;
}

static inline void rs_cupti_table_store(struct rs_cupti_slot *slot, uint32_t cap, uint64_t key,
					uint64_t value)
{
	uint32_t i = rs_cupti_table_home(key, cap);

	while (slot[i].key && slot[i].key != key)
		i = (i + 1) & (cap - 1);
	slot[i] = (struct rs_cupti_slot){key, value};
}

static inline int rs_cupti_table_resize(struct rs_cupti_table *t, uint32_t cap)
{
	struct rs_cupti_slot *slot = calloc(cap, sizeof(*slot));

	if (!slot)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->cap; i++)
		if (t->slot[i].key)
			rs_cupti_table_store(slot, cap, t->slot[i].key, t->slot[i].value);
	free(t->slot);
	t->slot = slot;
	t->cap = cap;
	return 0;
}

/* 0, -EINVAL, -ENOMEM; -ENOSPC at `most` entries. A key that is there gets the value. */
static inline int rs_cupti_table_put(struct rs_cupti_table *t, uint64_t key, uint64_t value,
				     uint32_t most)
{
	struct rs_cupti_slot *there = rs_cupti_table_find(t, key);

	if (there) {
		there->value = value;
		return 0;
	}
	if (!key)
		return -EINVAL;
	if (t->n >= most)
		return -ENOSPC;
	if (2 * (t->n + 1) > t->cap && rs_cupti_table_resize(t, t->cap ? 2 * t->cap : 256))
		return -ENOMEM;
	rs_cupti_table_store(t->slot, t->cap, key, value);
	t->n++;
	return 0;
}

/* Only the entries that `keep` wants stay. Where there is no memory, all stay. */
static inline void rs_cupti_table_sweep(struct rs_cupti_table *t,
					int (*keep)(void *arg, const struct rs_cupti_slot *s),
					void *arg)
{
	struct rs_cupti_slot *slot = t->cap ? calloc(t->cap, sizeof(*slot)) : NULL;
	uint32_t n = 0;

	if (!slot)
		return;
	for (uint32_t i = 0; i < t->cap; i++) {
		if (!t->slot[i].key || !keep(arg, &t->slot[i]))
			continue;
		rs_cupti_table_store(slot, t->cap, t->slot[i].key, t->slot[i].value);
		n++;
	}
	free(t->slot);
	t->slot = slot;
	t->n = n;
}

#endif
