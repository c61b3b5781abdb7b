/* SPDX-License-Identifier: MIT */
/*
 * Stream memory operations (write a value, wait for one, batches) and host functions on a stream.
 *
 * A host function runs in the thread that executes its op, without the driver lock, and must not call
 * CUDA: such calls get CUDA_ERROR_NOT_PERMITTED. It must not wait for something that the submitting
 * thread does later, either: in eager mode it runs inside the submitting call. Driver lock held.
 */
#include "tests/simcuda/sim.h"

static CUresult prepare(enum sim_work_kind kind, CUdeviceptr addr, uint64_t value, unsigned bytes,
			unsigned flags, struct sim_work *ret)
{
	unsigned known = kind == SIM_WORK_WAIT ? 3u | CU_STREAM_WAIT_VALUE_FLUSH
					       : (unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;

	if ((flags & ~known) || addr % bytes || !sim_mem_covers(addr, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	*ret = (struct sim_work){.kind = kind, .memop = {addr, value, flags, bytes}};
	return CUDA_SUCCESS;
}

static CUresult memop(struct sim_call *call, enum sim_work_kind kind, CUstream h, CUdeviceptr addr,
		      uint64_t value, unsigned bytes, unsigned flags)
{
	struct sim_work w;
	CUstream s;
	CUresult r = sim_stream_get(call, h, &s);

	if (!r)
		r = prepare(kind, addr, value, bytes, flags, &w);
	return r ? r : sim_stream_submit(s, &w, NULL);
}

#define MEMOPS(version)                                                                            \
	SIM_TWINS(cuStreamWriteValue32##version, _ptsz, SIM_CTX,                                   \
		  P(CUstream h, CUdeviceptr a, cuuint32_t v, unsigned flags), P(h, a, v, flags))   \
	{                                                                                          \
		return memop(call, SIM_WORK_WRITE, h, a, v, 4, flags);                             \
	}                                                                                          \
	SIM_TWINS(cuStreamWriteValue64##version, _ptsz, SIM_CTX,                                   \
		  P(CUstream h, CUdeviceptr a, cuuint64_t v, unsigned flags), P(h, a, v, flags))   \
	{                                                                                          \
		return memop(call, SIM_WORK_WRITE, h, a, v, 8, flags);                             \
	}                                                                                          \
	SIM_TWINS(cuStreamWaitValue32##version, _ptsz, SIM_CTX,                                    \
		  P(CUstream h, CUdeviceptr a, cuuint32_t v, unsigned flags), P(h, a, v, flags))   \
	{                                                                                          \
		return memop(call, SIM_WORK_WAIT, h, a, v, 4, flags);                              \
	}                                                                                          \
	SIM_TWINS(cuStreamWaitValue64##version, _ptsz, SIM_CTX,                                    \
		  P(CUstream h, CUdeviceptr a, cuuint64_t v, unsigned flags), P(h, a, v, flags))   \
	{                                                                                          \
		return memop(call, SIM_WORK_WAIT, h, a, v, 8, flags);                              \
	}                                                                                          \
	SIM_TWINS(cuStreamBatchMemOp##version, _ptsz, SIM_CTX,                                     \
		  P(CUstream h, unsigned n, CUstreamBatchMemOpParams *ops, unsigned flags),        \
		  P(h, n, ops, flags))                                                             \
	{                                                                                          \
		return batch(call, h, n, ops, flags);                                              \
	}

static CUresult prepare_op(const CUstreamBatchMemOpParams *p, struct sim_work *ret)
{
	switch (p->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		return prepare(SIM_WORK_WAIT, p->waitValue.address, p->waitValue.value, 4,
			       p->waitValue.flags, ret);
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		return prepare(SIM_WORK_WAIT, p->waitValue.address, p->waitValue.value64, 8,
			       p->waitValue.flags, ret);
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		return prepare(SIM_WORK_WRITE, p->writeValue.address, p->writeValue.value, 4,
			       p->writeValue.flags, ret);
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		return prepare(SIM_WORK_WRITE, p->writeValue.address, p->writeValue.value64, 8,
			       p->writeValue.flags, ret);
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
	case CU_STREAM_MEM_OP_BARRIER:
		/* Everything before it is visible anyway. */
		*ret = (struct sim_work){.kind = SIM_WORK_NOP};
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult batch(struct sim_call *call, CUstream h, unsigned n, CUstreamBatchMemOpParams *ops,
		      unsigned flags)
{
	struct sim_work w;
	CUstream s;
	CUresult r = sim_stream_get(call, h, &s);

	if (r)
		return r;
	if (!ops || !n || n > 256 || flags)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < n && !r; i++)
		r = prepare_op(&ops[i], &w);
	for (unsigned i = 0; i < n && !r; i++) {
		r = prepare_op(&ops[i], &w);
		if (!r)
			r = sim_stream_submit(s, &w, NULL);
	}
	return r;
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
