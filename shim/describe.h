/* SPDX-License-Identifier: MIT */
/*
 * What a launch, a copy, a fill does to memory: one description for the call itself (wrap_*.c) and for a
 * graph's node that does the same (graph_run.c). The call has been begun; ranges are looked up now.
 *
 * Identities are those of the work, not of the entry point: a segment whose forward runs as a graph and whose
 * replay does not is still compared call by call.
 */
#ifndef RS_SHIM_DESCRIBE_H
#define RS_SHIM_DESCRIBE_H

#include "shim/call.h"
#include "shim/kernels.h"

struct rs_launch {
	CUfunction f; /* or a CUkernel */
	unsigned grid[3], block[3], shared;
	void **params, **extra;
};

struct rs_params {
	const uint8_t *data;
	uint64_t n;
};

/*
 * The launch's parameter block, in the thread's scratch or in the caller's `extra`. 0, or -ENOENT when it
 * cannot be had.
 */
int rs_launch_params(struct rs_tls *t, const struct rs_kernel *k, const struct rs_launch *l,
		     struct rs_params *ret);
/* Sets name, identity and ranges; these lie in the thread's scratch. */
void rs_launch_describe(struct rs_call *c, struct rs_tls *t, const struct rs_launch *l);

/* a has room for two. p may be NULL: the driver refuses the call. */
void rs_copy_describe(struct rs_call *c, struct rs_access *a, const CUDA_MEMCPY3D *p);

/* a has room for one; width in bytes. */
void rs_fill_describe(struct rs_call *c, struct rs_access *a, uint64_t value, uint64_t addr,
		      uint64_t pitch, uint64_t width, uint64_t height);

/* The ranges lie in the thread's scratch. */
void rs_memops_describe(struct rs_call *c, struct rs_tls *t, unsigned count,
			const CUstreamBatchMemOpParams *op);
/* Before a wait for a value: tells the engine, unless the write that ends it is under way (wrap_fill.c). */
void rs_wait_stalls(struct rs_tls *t, struct rs_queue q, uint64_t addr, uint64_t value,
		    unsigned flags, unsigned bytes);

#endif
