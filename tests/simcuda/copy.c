/* SPDX-License-Identifier: MIT */
/*
 * Copies: one-dimensional, strided, peer, to and from arrays, in the plain and per-thread twins.
 *
 * What a copy does to the host follows "API synchronization behavior" of the driver manual:
 *   from pageable memory   the bytes are taken during the call; a synchronous copy first waits for its
 *                          stream, then returns before the device has them
 *   to pageable memory     returns when the bytes are there, synchronous or not
 *   pinned memory          synchronous: returns when done; asynchronous: bytes are read at its turn
 *   inside the device      never waits; arrays are inside the device
 *   host to host           returns when done
 * Addresses decide what a pointer is (unified addressing). A side that is an array is kept as the address
 * inside of its memory, so that all copies are one; handle and serial say that it is no pointer.
 * Driver lock held.
 */
#include "tests/simcuda/sim.h"

#include <stdlib.h>
#include <string.h>

static CUdeviceptr addr_of(const void *p)
{
	return (CUdeviceptr)(uintptr_t)p;
}

/* Bytes from the first to the last of a strided box. */
static bool span(size_t width, size_t height, size_t depth, size_t pitch, size_t rows, size_t *ret)
{
	unsigned __int128 last =
		((unsigned __int128)(depth - 1) * rows + (height - 1)) * pitch + width;

	*ret = (size_t)last;
	return last < (1ull << 46);
}

/* A side declared as device memory must be inside an allocation; one that happens to be ours, too. */
static bool bad_side(uint64_t addr, size_t bytes, bool must_be_ours)
{
	if (sim_mem_kind(addr) == SIM_MEM_PAGEABLE)
		return must_be_ours || !addr || addr + bytes < addr;
	return !sim_mem_covers(addr, bytes);
}

static enum sim_mem_kind kind_of(CUarray a, uint64_t addr)
{
	return a ? SIM_MEM_DEVICE : sim_mem_kind(addr);
}

static CUresult check(struct sim_copy *c, bool dst_ours, bool src_ours)
{
	enum sim_mem_kind d = kind_of(c->darray, c->dst), s = kind_of(c->sarray, c->src);
	size_t dbytes, sbytes;

	if (!c->width || !c->height || !c->depth)
		return CUDA_SUCCESS;
	if (!span(c->width, c->height, c->depth, c->dpitch, c->dheight, &dbytes) ||
	    !span(c->width, c->height, c->depth, c->spitch, c->sheight, &sbytes) ||
	    (!c->darray && bad_side(c->dst, dbytes, dst_ours)) ||
	    (!c->sarray && bad_side(c->src, sbytes, src_ours)))
		return CUDA_ERROR_INVALID_VALUE;
	c->to_host = d == SIM_MEM_PAGEABLE || d >= SIM_MEM_PINNED;
	c->from_host = s == SIM_MEM_PAGEABLE || s >= SIM_MEM_PINNED;
	return CUDA_SUCCESS;
}

static int stage(struct sim_copy *c)
{
	size_t rows = c->height * c->depth;
	char *p = malloc(c->width * rows);

	if (!p)
		return -1;
	for (size_t z = 0; z < c->depth; z++)
		for (size_t y = 0; y < c->height; y++)
			memcpy(p + (z * c->height + y) * c->width,
			       (char *)(uintptr_t)(c->src + (z * c->sheight + y) * c->spitch),
			       c->width);
	c->staged = p;
	return 0;
}

CUresult sim_copy_submit(CUstream s, struct sim_copy *c, bool async)
{
	struct sim_work w = {.kind = SIM_WORK_COPY, .copy = *c};
	enum sim_mem_kind d = kind_of(c->darray, c->dst), from = kind_of(c->sarray, c->src);
	bool wait;
	CUresult r;

	if (!c->width || !c->height || !c->depth)
		return CUDA_SUCCESS;
	if (s->cap && !async)
		return sim_capture_break(s, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	if (s->cap)
		return sim_stream_submit(s, &w, NULL);
	if (s->is_legacy && sim_capture_blocks_legacy(s->ctx))
		return sim_capture_break(s, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	wait = d == SIM_MEM_PAGEABLE || (c->to_host && c->from_host);
	if (from == SIM_MEM_PAGEABLE && !wait) {
		r = async ? CUDA_SUCCESS : sim_stream_sync(s);
		if (r)
			return r;
		if (stage(&w.copy))
			return CUDA_ERROR_OUT_OF_MEMORY;
	} else if (!async) {
		wait |= d != SIM_MEM_DEVICE || from != SIM_MEM_DEVICE;
	}
	return wait ? sim_stream_submit_wait(s, &w) : sim_stream_submit(s, &w, NULL);
}

enum side { ANY, OURS };

static CUresult copy1d(struct sim_call *call, uint64_t dst, enum side dside, uint64_t src,
		       enum side sside, size_t n, CUstream h, bool async)
{
	struct sim_copy c = {.dst = dst, .src = src, .width = n, .height = 1, .depth = 1};
	CUstream s;
	CUresult r = sim_stream_get(call, h, &s);

	if (!r)
		r = check(&c, dside == OURS, sside == OURS);
	return r ? r : sim_copy_submit(s, &c, async);
}

SIM_TWINS(cuMemcpy, _ptds, SIM_CTX, P(CUdeviceptr dst, CUdeviceptr src, size_t n), P(dst, src, n))
{
	return copy1d(call, dst, ANY, src, ANY, n, NULL, false);
}

SIM_TWINS(cuMemcpyAsync, _ptsz, SIM_CTX, P(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream h),
	  P(dst, src, n, h))
{
	return copy1d(call, dst, ANY, src, ANY, n, h, true);
}

SIM_TWINS(cuMemcpyHtoD_v2, _ptds, SIM_CTX, P(CUdeviceptr dst, const void *src, size_t n),
	  P(dst, src, n))
{
	return copy1d(call, dst, OURS, addr_of(src), ANY, n, NULL, false);
}

SIM_TWINS(cuMemcpyHtoDAsync_v2, _ptsz, SIM_CTX,
	  P(CUdeviceptr dst, const void *src, size_t n, CUstream h), P(dst, src, n, h))
{
	return copy1d(call, dst, OURS, addr_of(src), ANY, n, h, true);
}

SIM_TWINS(cuMemcpyDtoH_v2, _ptds, SIM_CTX, P(void *dst, CUdeviceptr src, size_t n), P(dst, src, n))
{
	return copy1d(call, addr_of(dst), ANY, src, OURS, n, NULL, false);
}

SIM_TWINS(cuMemcpyDtoHAsync_v2, _ptsz, SIM_CTX, P(void *dst, CUdeviceptr src, size_t n, CUstream h),
	  P(dst, src, n, h))
{
	return copy1d(call, addr_of(dst), ANY, src, OURS, n, h, true);
}

SIM_TWINS(cuMemcpyDtoD_v2, _ptds, SIM_CTX, P(CUdeviceptr dst, CUdeviceptr src, size_t n),
	  P(dst, src, n))
{
	return copy1d(call, dst, OURS, src, OURS, n, NULL, false);
}

SIM_TWINS(cuMemcpyDtoDAsync_v2, _ptsz, SIM_CTX,
	  P(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream h), P(dst, src, n, h))
{
	return copy1d(call, dst, OURS, src, OURS, n, h, true);
}

static bool contexts(CUcontext a, CUcontext b)
{
	return sim_handle_is(a, SIM_H_CTX) && sim_handle_is(b, SIM_H_CTX);
}

/* Between contexts, the forms without a stream come after all that the contexts have to do, and before what follows. */
static CUresult wait_for(CUcontext current, CUcontext dctx, CUcontext sctx)
{
	CUresult r = sim_ctx_sync(dctx);

	r = r ? r : sim_ctx_sync(sctx);
	return r ? r : sim_ctx_sync(current);
}

SIM_TWINS(cuMemcpyPeer, _ptds, SIM_CTX,
	  P(CUdeviceptr dst, CUcontext dctx, CUdeviceptr src, CUcontext sctx, size_t n),
	  P(dst, dctx, src, sctx, n))
{
	CUresult r;

	if (!contexts(dctx, sctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	r = wait_for(call->ctx, dctx, sctx);
	r = r ? r : copy1d(call, dst, OURS, src, OURS, n, NULL, false);
	return r ? r : sim_ctx_sync(call->ctx);
}

SIM_TWINS(cuMemcpyPeerAsync, _ptsz, SIM_CTX,
	  P(CUdeviceptr dst, CUcontext dctx, CUdeviceptr src, CUcontext sctx, size_t n, CUstream h),
	  P(dst, dctx, src, sctx, n, h))
{
	if (!contexts(dctx, sctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	return copy1d(call, dst, OURS, src, OURS, n, h, true);
}

/* ---- strided ---- */

/* One side of a strided copy, as given. */
struct box {
	CUmemorytype type;
	const void *host;
	CUdeviceptr device;
	CUarray array;
	size_t x, y, z, lod, pitch, rows;
};

/* The same as an address. */
struct place {
	uint64_t addr, serial;
	size_t pitch, rows;
	CUarray array;
	bool ours;
};

static CUresult place_array(const CUDA_MEMCPY3D *p, const struct box *b, struct place *ret)
{
	CUarray a = b->array;
	bool empty = !p->WidthInBytes || !p->Height || !p->Depth;

	if (!sim_handle_is(a, SIM_H_ARRAY))
		return CUDA_ERROR_INVALID_VALUE;
	if (b->x % a->elem || b->x > a->pitch || b->y > a->rows || b->z > a->slices ||
	    (!empty && (p->WidthInBytes > a->pitch - b->x || p->Height > a->rows - b->y ||
			p->Depth > a->slices - b->z)))
		return CUDA_ERROR_INVALID_VALUE;
	*ret = (struct place){.addr = addr_of(a->data),
			      .serial = a->serial,
			      .pitch = a->pitch,
			      .rows = a->rows,
			      .array = a};
	return CUDA_SUCCESS;
}

static CUresult place_pointer(const CUDA_MEMCPY3D *p, const struct box *b, struct place *ret)
{
	if (b->type != CU_MEMORYTYPE_HOST && b->type != CU_MEMORYTYPE_DEVICE &&
	    b->type != CU_MEMORYTYPE_UNIFIED)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = (struct place){.addr = b->type == CU_MEMORYTYPE_HOST ? addr_of(b->host) : b->device,
			      .ours = b->type == CU_MEMORYTYPE_DEVICE};
	/* A pitch of 0 stands for packed rows. */
	ret->pitch = b->pitch ? b->pitch : p->WidthInBytes + b->x;
	ret->rows = b->rows ? b->rows : p->Height + b->y;
	if (ret->pitch < p->WidthInBytes + b->x || (p->Depth > 1 && ret->rows < p->Height + b->y))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult place(const CUDA_MEMCPY3D *p, const struct box *b, struct place *ret)
{
	CUresult r;

	if (b->lod)
		return CUDA_ERROR_INVALID_VALUE;
	r = b->type == CU_MEMORYTYPE_ARRAY ? place_array(p, b, ret) : place_pointer(p, b, ret);
	if (!r)
		ret->addr += (b->z * ret->rows + b->y) * ret->pitch + b->x;
	return r;
}

CUresult sim_copy_prepare(const CUDA_MEMCPY3D *p, struct sim_copy *ret)
{
	struct box dst = {p->dstMemoryType, p->dstHost, p->dstDevice, p->dstArray, p->dstXInBytes,
			  p->dstY,	    p->dstZ,	p->dstLOD,    p->dstPitch, p->dstHeight};
	struct box src = {p->srcMemoryType, p->srcHost, p->srcDevice, p->srcArray, p->srcXInBytes,
			  p->srcY,	    p->srcZ,	p->srcLOD,    p->srcPitch, p->srcHeight};
	struct place d, s;
	CUresult r = place(p, &dst, &d);

	if (!r)
		r = place(p, &src, &s);
	if (r)
		return r;
	if (d.array && s.array &&
	    (d.array->elem != s.array->elem || p->WidthInBytes % d.array->elem))
		return CUDA_ERROR_INVALID_VALUE;
	*ret = (struct sim_copy){.dst = d.addr,
				 .src = s.addr,
				 .dpitch = d.pitch,
				 .spitch = s.pitch,
				 .dheight = d.rows,
				 .sheight = s.rows,
				 .width = p->WidthInBytes,
				 .height = p->Height,
				 .depth = p->Depth,
				 .darray = d.array,
				 .sarray = s.array,
				 .dserial = d.serial,
				 .sserial = s.serial};
	return check(ret, d.ours, s.ours);
}

static size_t describe(CUarray a, uint64_t addr, size_t *ret_y, size_t *ret_z)
{
	size_t at = addr - addr_of(a->data);

	*ret_z = at / a->pitch / a->rows;
	*ret_y = at / a->pitch % a->rows;
	return at % a->pitch;
}

void sim_copy_describe(const struct sim_copy *c, CUDA_MEMCPY3D *ret)
{
	*ret = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
			       .srcDevice = c->src,
			       .srcPitch = c->spitch,
			       .srcHeight = c->sheight,
			       .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
			       .dstDevice = c->dst,
			       .dstPitch = c->dpitch,
			       .dstHeight = c->dheight,
			       .WidthInBytes = c->width,
			       .Height = c->height,
			       .Depth = c->depth};
	if (c->sarray) {
		ret->srcMemoryType = CU_MEMORYTYPE_ARRAY;
		ret->srcArray = c->sarray;
		ret->srcDevice = ret->srcPitch = ret->srcHeight = 0;
		if (sim_array_live(c->sarray, c->sserial))
			ret->srcXInBytes = describe(c->sarray, c->src, &ret->srcY, &ret->srcZ);
	}
	if (c->darray) {
		ret->dstMemoryType = CU_MEMORYTYPE_ARRAY;
		ret->dstArray = c->darray;
		ret->dstDevice = ret->dstPitch = ret->dstHeight = 0;
		if (sim_array_live(c->darray, c->dserial))
			ret->dstXInBytes = describe(c->darray, c->dst, &ret->dstY, &ret->dstZ);
	}
}

static CUresult copy3d(struct sim_call *call, const CUDA_MEMCPY3D *p, CUstream h, bool async)
{
	struct sim_copy c;
	CUstream s;
	CUresult r = p ? sim_stream_get(call, h, &s) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		r = sim_copy_prepare(p, &c);
	return r ? r : sim_copy_submit(s, &c, async);
}

static CUresult copy2d(struct sim_call *call, const CUDA_MEMCPY2D *p, CUstream h, bool async)
{
	CUDA_MEMCPY3D q;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	q = (CUDA_MEMCPY3D){
		.srcXInBytes = p->srcXInBytes,
		.srcY = p->srcY,
		.srcMemoryType = p->srcMemoryType,
		.srcHost = p->srcHost,
		.srcDevice = p->srcDevice,
		.srcArray = p->srcArray,
		.srcPitch = p->srcPitch,
		.dstXInBytes = p->dstXInBytes,
		.dstY = p->dstY,
		.dstMemoryType = p->dstMemoryType,
		.dstHost = p->dstHost,
		.dstDevice = p->dstDevice,
		.dstArray = p->dstArray,
		.dstPitch = p->dstPitch,
		.WidthInBytes = p->WidthInBytes,
		.Height = p->Height,
		.Depth = 1,
	};
	return copy3d(call, &q, h, async);
}

SIM_TWINS(cuMemcpy2D_v2, _ptds, SIM_CTX, P(const CUDA_MEMCPY2D *p), P(p))
{
	return copy2d(call, p, NULL, false);
}

SIM_TWINS(cuMemcpy2DUnaligned_v2, _ptds, SIM_CTX, P(const CUDA_MEMCPY2D *p), P(p))
{
	return copy2d(call, p, NULL, false);
}

SIM_TWINS(cuMemcpy2DAsync_v2, _ptsz, SIM_CTX, P(const CUDA_MEMCPY2D *p, CUstream h), P(p, h))
{
	return copy2d(call, p, h, true);
}

SIM_TWINS(cuMemcpy3D_v2, _ptds, SIM_CTX, P(const CUDA_MEMCPY3D *p), P(p))
{
	return copy3d(call, p, NULL, false);
}

SIM_TWINS(cuMemcpy3DAsync_v2, _ptsz, SIM_CTX, P(const CUDA_MEMCPY3D *p, CUstream h), P(p, h))
{
	return copy3d(call, p, h, true);
}

static CUresult copy3d_peer(struct sim_call *call, const CUDA_MEMCPY3D_PEER *p, CUstream h,
			    bool async)
{
	CUDA_MEMCPY3D q;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	q = (CUDA_MEMCPY3D){
		.srcXInBytes = p->srcXInBytes,
		.srcY = p->srcY,
		.srcZ = p->srcZ,
		.srcLOD = p->srcLOD,
		.srcMemoryType = p->srcMemoryType,
		.srcHost = p->srcHost,
		.srcDevice = p->srcDevice,
		.srcArray = p->srcArray,
		.srcPitch = p->srcPitch,
		.srcHeight = p->srcHeight,
		.dstXInBytes = p->dstXInBytes,
		.dstY = p->dstY,
		.dstZ = p->dstZ,
		.dstLOD = p->dstLOD,
		.dstMemoryType = p->dstMemoryType,
		.dstHost = p->dstHost,
		.dstDevice = p->dstDevice,
		.dstArray = p->dstArray,
		.dstPitch = p->dstPitch,
		.dstHeight = p->dstHeight,
		.WidthInBytes = p->WidthInBytes,
		.Height = p->Height,
		.Depth = p->Depth,
	};
	return copy3d(call, &q, h, async);
}

SIM_TWINS(cuMemcpy3DPeer, _ptds, SIM_CTX, P(const CUDA_MEMCPY3D_PEER *p), P(p))
{
	CUresult r = CUDA_SUCCESS;

	if (p && contexts(p->dstContext, p->srcContext))
		r = wait_for(call->ctx, p->dstContext, p->srcContext);
	r = r ? r : copy3d_peer(call, p, NULL, false);
	return r ? r : sim_ctx_sync(call->ctx);
}

SIM_TWINS(cuMemcpy3DPeerAsync, _ptsz, SIM_CTX, P(const CUDA_MEMCPY3D_PEER *p, CUstream h), P(p, h))
{
	return copy3d_peer(call, p, h, true);
}
