/* SPDX-License-Identifier: MIT */
/*
 * Arrays: what stands behind a CUarray, and the made-up range that the engine knows it by.
 *
 * A range is never given twice, so an operation that is late names nothing else. An array whose layout is not
 * known here (planar and compressed formats) has none: what touches it is untracked.
 * Locks: a mutex of its own, a leaf. Called from wrappers, and from device operations.
 */
#ifndef RS_SHIM_ARRAYS_H
#define RS_SHIM_ARRAYS_H

#include "shim/shim.h"

struct rs_array {
	CUarray handle;
	uint64_t base, bytes;
	uint64_t element, row; /* bytes */
	uint64_t rows, layers;
	struct rs_alloc *leaving; /* while the driver is asked to destroy it */
};

static inline int rs_arrays_range(uint64_t addr)
{
	return addr - RS_ARRAY_BASE < RS_ARRAY_BASE;
}

/* 1 and *ret, or 0 */
int rs_arrays_find(CUarray handle, struct rs_array *ret);
int rs_arrays_at(uint64_t base, struct rs_array *ret);
/*
 * A new array, or level of the mipmapped array `owner` (0: none), of context ctx. 0, -ENOTSUP for a layout
 * that is not known, -ENOMEM.
 */
int rs_arrays_add(CUarray handle, uint64_t owner, uint64_t ctx, struct rs_array *ret);
void rs_arrays_leaving(CUarray handle, struct rs_alloc *leaving);
void rs_arrays_remove(CUarray handle);
/* The first one of that owner behind the one at base `after`; 1 and *ret, or 0. */
int rs_arrays_owned(uint64_t owner, uint64_t after, struct rs_array *ret);
/* A context has gone, and its arrays with it. */
void rs_arrays_ctx_destroy(uint64_t ctx);

#endif
