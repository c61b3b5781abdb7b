/* SPDX-License-Identifier: MIT */
/*
 * Markers from wherever they come (NVTX, the public functions) to the engine.
 *
 * What a text means is asked of pattern.h. A range that means nothing costs a look-up there; the engine is told of
 * windows and steps only. Before the program's first cuInit, in a forked child, at exit, and for domains of which nothing
 * is followed, they return -1 and do nothing. Ranges
 * pushed before the start stay unknown; their pops find an empty stack, which the engine ignores.
 */
#ifndef RS_SHIM_MARKER_H
#define RS_SHIM_MARKER_H

#include <stdint.h>

struct rs_domain;

int rs_marker_push(const struct rs_domain *d, const char *text);
int rs_marker_pop(const struct rs_domain *d);
int rs_marker_mark(const struct rs_domain *d, const char *text);
int rs_marker_start(const struct rs_domain *d, const char *text, uint64_t *ret_id);
int rs_marker_end(uint64_t id);
int rs_marker_region(const struct rs_domain *d, uint64_t addr, uint64_t bytes, const char *name);
int rs_marker_region_drop(uint64_t addr, uint64_t bytes);
/* An allocator of the program's own gives bytes out, and takes them back. */
int rs_marker_suballoc(uint64_t addr, uint64_t bytes);
int rs_marker_subfree(uint64_t addr);

#endif
