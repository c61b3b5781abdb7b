/* SPDX-License-Identifier: MIT */
/*
 * Markers from wherever they come (NVTX, the public functions) to the engine.
 *
 * Before the program's first cuInit, in a forked child and at exit they return -1 and do nothing. Ranges
 * pushed before the start stay unknown; their pops find an empty stack, which the engine ignores.
 */
#ifndef RS_SHIM_MARKER_H
#define RS_SHIM_MARKER_H

#include <stdint.h>

int rs_marker_push(const char *text);
int rs_marker_pop(void);
int rs_marker_mark(const char *text);
int rs_marker_start(const char *text, uint64_t *ret_id);
int rs_marker_end(uint64_t id);
int rs_marker_region(uint64_t addr, uint64_t bytes, const char *name);
int rs_marker_region_drop(uint64_t addr, uint64_t bytes);

#endif
