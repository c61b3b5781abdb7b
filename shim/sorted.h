/* SPDX-License-Identifier: MIT */
/*
 * A table sorted by the first word of its elements, for what wrappers remember of rare calls.
 *
 * An element is a struct whose first member is its uint64_t key; keys are unique. Pointers into the table
 * are void after the next insertion or removal.
 * Locks: none of its own, the owner's mutex.
 */
#ifndef RS_SHIM_SORTED_H
#define RS_SHIM_SORTED_H

#include <stddef.h>
#include <stdint.h>

struct rs_sorted {
	char *v;
	size_t n, cap, size; /* size: bytes of an element */
};

/* Index of the first element whose key is not below. */
size_t rs_sorted_from(const struct rs_sorted *s, uint64_t key);
static inline void *rs_sorted_at(const struct rs_sorted *s, size_t i)
{
	return i < s->n ? s->v + i * s->size : NULL;
}
void *rs_sorted_find(const struct rs_sorted *s, uint64_t key);
/* The element of that key, a zeroed one if there was none; NULL without memory. */
void *rs_sorted_add(struct rs_sorted *s, uint64_t key);
/* A key that is not there is none of its business. */
void rs_sorted_remove(struct rs_sorted *s, uint64_t key);

#endif
