/* SPDX-License-Identifier: MIT */
/*
 * Versions of the bytes of one allocation: a sorted partition of [0, size) into extents that carry one
 * version each. Most allocations have a single extent, which lives inside the struct.
 *
 * Invariants: extents are adjacent, not empty, cover [0, size) exactly. Neighbours may carry the same
 * version: boundaries set by rs_extmap_split are kept, because preserved pieces must not straddle them.
 * Callers hold the engine's lock.
 */
#ifndef RS_TRACKER_EXTENT_H
#define RS_TRACKER_EXTENT_H

#include <stdint.h>

struct rs_ext {
	uint64_t off, len, ver;
	uint8_t claimed; /* a pending segment may need this version (a hint: it can be stale) */
	uint32_t q;	 /* who wrote it, for order.c: queue, tick (0: unknown), name */
	uint64_t tick;
	const char *by;
	uint64_t
		placed; /* a version number: when the shim put these bytes there, 0: the program did */
};

struct rs_extmap {
	struct rs_ext *ext;
	uint32_t n, cap;
	struct rs_ext one;
};

void rs_extmap_init(struct rs_extmap *m, uint64_t size, uint64_t ver);
void rs_extmap_fini(struct rs_extmap *m);
/* Index of the extent that contains off (off < size). */
uint32_t rs_extmap_at(const struct rs_extmap *m, uint64_t off);
/* Make off and off + len boundaries. -ENOMEM: nothing changed. */
int rs_extmap_split(struct rs_extmap *m, uint64_t off, uint64_t len);
/* Give [off, off + len) one version, merging what lies inside into one extent, of an unknown writer. -ENOMEM. */
int rs_extmap_set(struct rs_extmap *m, uint64_t off, uint64_t len, uint64_t ver, int claimed);

#endif
