/* SPDX-License-Identifier: MIT */
/*
 * Batches of copies, in both ABIs of each and their per-thread twins.
 *
 * Every copy is checked before the first is queued, so a batch with a bad entry copies nothing; the
 * older ABI says which one it was. A batch is never part of a capture and never on a default stream.
 * Driver lock held.
 */
#include "tests/simcuda/sim.h"

#include <stdlib.h>

static CUresult stream_of(struct sim_call *call, CUstream h, CUstream *ret)
{
	CUresult r = sim_stream_get(call, h, ret);

	if (r)
		return r;
	if (!h || h == CU_STREAM_LEGACY || h == CU_STREAM_PER_THREAD)
		return CUDA_ERROR_INVALID_VALUE;
	return (*ret)->cap ? sim_capture_break(*ret, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
			   : CUDA_SUCCESS;
}

static bool bad_order(CUmemcpySrcAccessOrder order)
{
	return order < CU_MEMCPY_SRC_ACCESS_ORDER_STREAM || order > CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

/* Prepare all, then queue all. */
static CUresult run(CUstream s, size_t count,
		    CUresult (*prepare)(void *list, size_t i, struct sim_copy *ret), void *list,
		    size_t *fail)
{
	struct sim_copy *copies = calloc(count, sizeof(*copies));
	CUresult r = copies ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	for (size_t i = 0; i < count && !r; i++) {
		r = prepare(list, i, &copies[i]);
		if (r && fail)
			*fail = i;
	}
	for (size_t i = 0; i < count && !r; i++)
		r = sim_copy_submit(s, &copies[i], true);
	free(copies);
	return r;
}

struct linear {
	CUdeviceptr *dsts, *srcs;
	size_t *sizes;
};

static CUresult prepare_linear(void *list, size_t i, struct sim_copy *ret)
{
	const struct linear *l = list;
	CUDA_MEMCPY3D p = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
			   .srcDevice = l->srcs[i],
			   .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
			   .dstDevice = l->dsts[i],
			   .WidthInBytes = l->sizes[i],
			   .Height = 1,
			   .Depth = 1};

	return l->sizes[i] ? sim_copy_prepare(&p, ret) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult batch(struct sim_call *call, struct linear l, size_t count,
		      CUmemcpyAttributes *attrs, size_t *idx, size_t nattrs, size_t *fail,
		      CUstream h)
{
	CUstream s;
	CUresult r = stream_of(call, h, &s);

	if (fail)
		*fail = SIZE_MAX;
	if (r)
		return r;
	if (!l.dsts || !l.srcs || !l.sizes || !count || !attrs || !idx || !nattrs ||
	    nattrs > count || idx[0])
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < nattrs; i++)
		if (bad_order(attrs[i].srcAccessOrder) || (i && idx[i] <= idx[i - 1]) ||
		    idx[i] >= count)
			return CUDA_ERROR_INVALID_VALUE;
	return run(s, count, prepare_linear, &l, fail);
}

SIM_TWINS(cuMemcpyBatchAsync, _ptsz, SIM_CTX,
	  P(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
	    CUmemcpyAttributes *attrs, size_t *idx, size_t nattrs, size_t *fail, CUstream h),
	  P(dsts, srcs, sizes, count, attrs, idx, nattrs, fail, h))
{
	return batch(call, (struct linear){dsts, srcs, sizes}, count, attrs, idx, nattrs, fail, h);
}

SIM_TWINS(cuMemcpyBatchAsync_v2, _ptsz, SIM_CTX,
	  P(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
	    CUmemcpyAttributes *attrs, size_t *idx, size_t nattrs, CUstream h),
	  P(dsts, srcs, sizes, count, attrs, idx, nattrs, h))
{
	return batch(call, (struct linear){dsts, srcs, sizes}, count, attrs, idx, nattrs, NULL, h);
}

/* Positions and extents are in elements: of the array that takes part, else of one byte. */
static size_t element_of(const CUmemcpy3DOperand *o)
{
	return o->type == CU_MEMCPY_OPERAND_TYPE_ARRAY &&
			       sim_handle_is(o->op.array.array, SIM_H_ARRAY)
		       ? o->op.array.array->elem
		       : 0;
}

static bool bad_operand(const CUmemcpy3DOperand *o, const CUextent3D *e)
{
	if (o->type == CU_MEMCPY_OPERAND_TYPE_ARRAY)
		return !sim_handle_is(o->op.array.array, SIM_H_ARRAY);
	return o->type != CU_MEMCPY_OPERAND_TYPE_POINTER ||
	       (o->op.ptr.rowLength && o->op.ptr.rowLength < e->width) ||
	       (o->op.ptr.layerHeight && o->op.ptr.layerHeight < e->height);
}

static CUresult prepare_box(void *list, size_t i, struct sim_copy *ret)
{
	const CUDA_MEMCPY3D_BATCH_OP *op = (CUDA_MEMCPY3D_BATCH_OP *)list + i;
	const CUmemcpy3DOperand *s = &op->src, *d = &op->dst;
	size_t from = element_of(s), to = element_of(d), elem = to ? to : from ? from : 1;
	CUDA_MEMCPY3D p = {.WidthInBytes = op->extent.width * elem,
			   .Height = op->extent.height,
			   .Depth = op->extent.depth};

	if (bad_operand(s, &op->extent) || bad_operand(d, &op->extent) ||
	    bad_order(op->srcAccessOrder) || !op->extent.width || !op->extent.height ||
	    !op->extent.depth || (from && to && from != to) || op->extent.width > SIZE_MAX / 16)
		return CUDA_ERROR_INVALID_VALUE;
	p.srcMemoryType = from ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED;
	p.dstMemoryType = to ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED;
	if (from) {
		p.srcArray = s->op.array.array;
		p.srcXInBytes = s->op.array.offset.x * elem;
		p.srcY = s->op.array.offset.y;
		p.srcZ = s->op.array.offset.z;
	} else {
		p.srcDevice = s->op.ptr.ptr;
		p.srcPitch = s->op.ptr.rowLength * elem;
		p.srcHeight = s->op.ptr.layerHeight;
	}
	if (to) {
		p.dstArray = d->op.array.array;
		p.dstXInBytes = d->op.array.offset.x * elem;
		p.dstY = d->op.array.offset.y;
		p.dstZ = d->op.array.offset.z;
	} else {
		p.dstDevice = d->op.ptr.ptr;
		p.dstPitch = d->op.ptr.rowLength * elem;
		p.dstHeight = d->op.ptr.layerHeight;
	}
	return sim_copy_prepare(&p, ret);
}

static CUresult batch3d(struct sim_call *call, size_t count, CUDA_MEMCPY3D_BATCH_OP *ops,
			size_t *fail, unsigned long long flags, CUstream h)
{
	CUstream s;
	CUresult r = stream_of(call, h, &s);

	if (fail)
		*fail = SIZE_MAX;
	if (r)
		return r;
	return count && ops && !flags ? run(s, count, prepare_box, ops, fail)
				      : CUDA_ERROR_INVALID_VALUE;
}

SIM_TWINS(cuMemcpy3DBatchAsync, _ptsz, SIM_CTX,
	  P(size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *fail, unsigned long long flags,
	    CUstream h),
	  P(n, ops, fail, flags, h))
{
	return batch3d(call, n, ops, fail, flags, h);
}

SIM_TWINS(cuMemcpy3DBatchAsync_v2, _ptsz, SIM_CTX,
	  P(size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags, CUstream h),
	  P(n, ops, flags, h))
{
	return batch3d(call, n, ops, NULL, flags, h);
}
