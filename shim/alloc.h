/* SPDX-License-Identifier: MIT */
/*
 * Telling the engine of allocations and releases (wrap_alloc.c); shared by the wrappers that make memory.
 *
 * A release is told before the driver frees, for then the address may be given to somebody else. A driver
 * that refuses has freed nothing: what was told is taken back.
 */
#ifndef RS_SHIM_ALLOC_H
#define RS_SHIM_ALLOC_H

#include "shim/guard.h"
#include "shim/queue.h"

static inline struct rs_queue rs_alloc_queue(struct rs_tls *t)
{
	return (struct rs_queue){.ctx = rs_ctx_current(t), .stream = 0};
}

void rs_alloc_told(struct rs_tls *t, struct rs_queue q, uint64_t addr, uint64_t bytes,
		   enum rs_alloc_kind kind);

/* Before the driver frees at addr (0: nowhere); the answer goes into rs_alloc_left, with what it said. */
static inline struct rs_alloc *rs_alloc_leaves(struct rs_tls *t, struct rs_queue q, uint64_t addr)
{
	struct rs_alloc *a = NULL;

	if (addr)
		RS_ENGINE(a = rs_engine_free_begin(rs_state.engine, t->thread, q, addr));
	return a;
}

static inline void rs_alloc_left(struct rs_alloc *a, CUresult r)
{
	if (a)
		RS_ENGINE(rs_engine_free_end(rs_state.engine, a, r == CUDA_SUCCESS));
}

#endif
