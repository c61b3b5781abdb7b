/* SPDX-License-Identifier: MIT */
/*
 * A map from handles to pointers: readers take no lock, writers exclude each other (the caller's lock).
 *
 * Open addressing. A removed entry keeps its key with the value NULL and is reused by a later insertion
 * (value first, then key), so a table is replaced only when the number of live entries grows; replaced
 * tables are kept, for readers may still be in them: at most as much again as the current one.
 */
#ifndef RS_SHIM_HANDLES_H
#define RS_SHIM_HANDLES_H

#include <stddef.h>
#include <stdint.h>

struct rs_handles_table {
	uint64_t mask;
	struct rs_handles_table *older;
	struct {
		uint64_t key;
		void *value;
	} slot[];
};

struct rs_handles {
	struct rs_handles_table *table;
	uint64_t used; /* slots with a key */
};

static inline uint64_t rs_handles_hash(uint64_t key)
{
	return (key >> 4) * 0x9e3779b97f4a7c15ull >> 20;
}

static inline void *rs_handles_find(const struct rs_handles *h, const void *handle)
{
	const struct rs_handles_table *t = __atomic_load_n(&h->table, __ATOMIC_ACQUIRE);
	uint64_t key = (uintptr_t)handle, k;

	if (!t || !key)
		return NULL;
	for (uint64_t i = rs_handles_hash(key);; i++) {
		k = __atomic_load_n(&t->slot[i & t->mask].key, __ATOMIC_ACQUIRE);
		if (k == key)
			return __atomic_load_n(&t->slot[i & t->mask].value, __ATOMIC_ACQUIRE);
		if (!k)
			return NULL;
	}
}

/* value NULL removes. 0 or -ENOMEM. */
int rs_handles_set(struct rs_handles *h, const void *handle, void *value);

#endif
