/* SPDX-License-Identifier: MIT */
/*
 * Stream memory operations (write a value, wait for one, batches) and host functions on a stream.
 *
 * A host function runs in the thread that executes its op, without the driver lock, and must not call
 * CUDA: such calls get CUDA_ERROR_NOT_PERMITTED. It must not wait for something that the submitting
 * thread does later, either: in eager mode it runs inside the submitting call. Driver lock held.
 */
#include "tests/simcuda/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static CUresult check(CUdeviceptr addr, unsigned bytes, unsigned flags, unsigned known)
{
	return (flags & ~known) || addr % bytes || !sim_mem_covers(addr, bytes)
		       ? CUDA_ERROR_INVALID_VALUE
		       : CUDA_SUCCESS;
}

static CUresult check_op(const CUstreamBatchMemOpParams *p)
{
	const unsigned wait = 3u | CU_STREAM_WAIT_VALUE_FLUSH;
	const unsigned write = CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;

	switch (p->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		return check(p->waitValue.address, 4, p->waitValue.flags, wait);
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		return check(p->waitValue.address, 8, p->waitValue.flags, wait);
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		return check(p->writeValue.address, 4, p->writeValue.flags, write);
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		return check(p->writeValue.address, 8, p->writeValue.flags, write);
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
		return p->flushRemoteWrites.flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	case CU_STREAM_MEM_OP_BARRIER:
		return p->memoryBarrier.flags > CU_STREAM_MEMORY_BARRIER_TYPE_GPU
			       ? CUDA_ERROR_INVALID_VALUE
			       : CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult sim_memop_check(const CUstreamBatchMemOpParams *ops, unsigned n)
{
	CUresult r = ops && n && n <= 256 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

	for (unsigned i = 0; i < n && !r; i++)
		r = check_op(&ops[i]);
	return r;
}

struct sim_work sim_memop_work(const CUstreamBatchMemOpParams *p)
{
	struct sim_work w = {.kind = SIM_WORK_NOP};

	switch (p->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		w.memop = (struct sim_memop){p->waitValue.address, p->waitValue.value,
					     p->waitValue.flags, 4};
		break;
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		w.memop = (struct sim_memop){p->waitValue.address, p->waitValue.value64,
					     p->waitValue.flags, 8};
		break;
	default: /* barriers and flushes: everything before them is visible anyway */
		return w;
	}
	w.kind = p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
				 p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64
			 ? SIM_WORK_WAIT
			 : SIM_WORK_WRITE;
	return w;
}

_Static_assert(offsetof(CUstreamBatchMemOpParams, waitValue.address) ==
			       offsetof(CUstreamBatchMemOpParams, writeValue.address) &&
		       offsetof(CUstreamBatchMemOpParams, waitValue.value64) ==
			       offsetof(CUstreamBatchMemOpParams, writeValue.value64) &&
		       offsetof(CUstreamBatchMemOpParams, waitValue.flags) ==
			       offsetof(CUstreamBatchMemOpParams, writeValue.flags),
	       "waits and writes are read through the same member");

int sim_memop_batch(const CUstreamBatchMemOpParams *ops, unsigned n, struct sim_work *ret)
{
	*ret = (struct sim_work){.kind = SIM_WORK_BATCH, .batch = {.n = n}};
	ret->batch.ops = malloc(n * sizeof(*ops));
	if (!ret->batch.ops)
		return -ENOMEM;
	memcpy(ret->batch.ops, ops, n * sizeof(*ops));
	return 0;
}

/* Queue the operations one after the other; in a capture they are one node. */
static CUresult batch(struct sim_call *call, CUstream h, unsigned n,
		      const CUstreamBatchMemOpParams *ops, unsigned flags)
{
	struct sim_work w;
	CUstream s;
	CUresult r = sim_stream_get(call, h, &s);

	if (!r)
		r = flags ? CUDA_ERROR_INVALID_VALUE : sim_memop_check(ops, n);
	if (r)
		return r;
	if (s->cap) {
		if (sim_memop_batch(ops, n, &w))
			return CUDA_ERROR_OUT_OF_MEMORY;
		return sim_capture_add(s, &w, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
	}
	for (unsigned i = 0; i < n && !r; i++) {
		w = sim_memop_work(&ops[i]);
		r = sim_stream_submit(s, &w, NULL);
	}
	return r;
}

static CUresult one(struct sim_call *call, CUstreamBatchMemOpType operation, CUstream h,
		    CUdeviceptr addr, uint64_t value, unsigned flags)
{
	CUstreamBatchMemOpParams p = {.operation = operation};

	p.waitValue.address = addr;
	p.waitValue.value64 = value;
	p.waitValue.flags = flags;
	return batch(call, h, 1, &p, 0);
}

#define MEMOPS(version)                                                                            \
	SIM_TWINS(cuStreamWriteValue32##version, _ptsz, SIM_CTX,                                   \
		  P(CUstream h, CUdeviceptr a, cuuint32_t v, unsigned flags), P(h, a, v, flags))   \
	{                                                                                          \
		return one(call, CU_STREAM_MEM_OP_WRITE_VALUE_32, h, a, v, flags);                 \
	}                                                                                          \
	SIM_TWINS(cuStreamWriteValue64##version, _ptsz, SIM_CTX,                                   \
		  P(CUstream h, CUdeviceptr a, cuuint64_t v, unsigned flags), P(h, a, v, flags))   \
	{                                                                                          \
		return one(call, CU_STREAM_MEM_OP_WRITE_VALUE_64, h, a, v, flags);                 \
	}                                                                                          \
	SIM_TWINS(cuStreamWaitValue32##version, _ptsz, SIM_CTX,                                    \
		  P(CUstream h, CUdeviceptr a, cuuint32_t v, unsigned flags), P(h, a, v, flags))   \
	{                                                                                          \
		return one(call, CU_STREAM_MEM_OP_WAIT_VALUE_32, h, a, v, flags);                  \
	}                                                                                          \
	SIM_TWINS(cuStreamWaitValue64##version, _ptsz, SIM_CTX,                                    \
		  P(CUstream h, CUdeviceptr a, cuuint64_t v, unsigned flags), P(h, a, v, flags))   \
	{                                                                                          \
		return one(call, CU_STREAM_MEM_OP_WAIT_VALUE_64, h, a, v, flags);                  \
	}                                                                                          \
	SIM_TWINS(cuStreamBatchMemOp##version, _ptsz, SIM_CTX,                                     \
		  P(CUstream h, unsigned n, CUstreamBatchMemOpParams *ops, unsigned flags),        \
		  P(h, n, ops, flags))                                                             \
	{                                                                                          \
		return batch(call, h, n, ops, flags);                                              \
	}

MEMOPS()
MEMOPS(_v2)

SIM_API(cuFlushGPUDirectRDMAWrites, SIM_CTX,
	P(CUflushGPUDirectRDMAWritesTarget target, CUflushGPUDirectRDMAWritesScope scope),
	P(target, scope))
{
	(void)target, (void)scope;
	return CUDA_ERROR_NOT_SUPPORTED; /* no GPUDirect RDMA on a simulated device */
}

SIM_TWINS(cuLaunchHostFunc, _ptsz, SIM_CTX, P(CUstream h, CUhostFn fn, void *arg), P(h, fn, arg))
{
	struct sim_work w = {.kind = SIM_WORK_HOST, .host = {fn, arg}};
	CUstream s;
	CUresult r = fn ? sim_stream_get(call, h, &s) : CUDA_ERROR_INVALID_VALUE;

	return r ? r : sim_stream_submit(s, &w, NULL);
}

SIM_TWINS(cuStreamAddCallback, _ptsz, SIM_CTX,
	  P(CUstream h, CUstreamCallback fn, void *arg, unsigned flags), P(h, fn, arg, flags))
{
	struct sim_work w = {.kind = SIM_WORK_CALLBACK, .callback = {fn, arg, h}};
	CUstream s;
	CUresult r = fn && !flags ? sim_stream_get(call, h, &s) : CUDA_ERROR_INVALID_VALUE;

	if (!r && s->cap)
		return sim_capture_break(s, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	return r ? r : sim_stream_submit(s, &w, NULL);
}
