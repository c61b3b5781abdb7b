/* SPDX-License-Identifier: MIT */
/*
 * Address to allocation in constant time, for live ranges that do not overlap.
 *
 * A page table over the address space: a 2 MiB granule is either covered by one range (direct entry)
 * or has a leaf with one entry per minimal allocation unit. Granule and unit are the
 * module's business. Readers take no lock and may run concurrently with writers; writers exclude each
 * other (the engine's lock).
 * Memory: at most 64 bytes a live range plus the table.
 */
#ifndef RS_TRACKER_ADDRMAP_H
#define RS_TRACKER_ADDRMAP_H

#include <stdint.h>

struct rs_addrmap;

struct rs_addrmap *rs_addrmap_create(void); /* NULL without memory */
void rs_addrmap_destroy(struct rs_addrmap *m);

/*
 * value: not NULL, the caller's object. -EEXIST when it overlaps a live range, -EINVAL for an empty or
 * wrapping range, -ENOMEM.
 */
int rs_addrmap_insert(struct rs_addrmap *m, uint64_t base, uint64_t bytes, void *value);
/* By exact base: the value, or NULL when there is no such range. */
void *rs_addrmap_remove(struct rs_addrmap *m, uint64_t base);
/* The value of the range that contains addr, or NULL. Lock-free; constant time. */
void *rs_addrmap_find(const struct rs_addrmap *m, uint64_t addr, uint64_t *ret_base,
		      uint64_t *ret_bytes);
/* Before several finds: what they will read is fetched at once, not one after the other. n: at most RS_ADDRMAP_FETCH. Lock-free. */
#define RS_ADDRMAP_FETCH 16u
void rs_addrmap_fetch(const struct rs_addrmap *m, const uint64_t *addr, unsigned n);
/* First range with base >= from, in address order: value, or NULL at the end. For writers. */
void *rs_addrmap_next(const struct rs_addrmap *m, uint64_t from, uint64_t *ret_base,
		      uint64_t *ret_bytes);
uint64_t rs_addrmap_count(const struct rs_addrmap *m);
uint64_t rs_addrmap_table_bytes(const struct rs_addrmap *m);

#endif
