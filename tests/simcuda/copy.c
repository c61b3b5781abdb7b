/* SPDX-License-Identifier: MIT */
/*
 * Copies: one-dimensional, strided, peer, in the plain and per-thread twins.
 *
 * What a copy does to the host follows "API synchronization behavior" of the driver manual:
 *   from pageable memory   the bytes are taken during the call; a synchronous copy first waits for its
 *                          stream, then returns before the device has them
 *   to pageable memory     returns when the bytes are there, synchronous or not
 *   pinned memory          synchronous: returns when done; asynchronous: bytes are read at its turn
 *   inside the device      never waits
 *   host to host           returns when done
 * Addresses decide what a pointer is (unified addressing). Driver lock held.
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

static CUresult check(struct sim_copy *c, bool dst_ours, bool src_ours)
{
	enum sim_mem_kind d = sim_mem_kind(c->dst), s = sim_mem_kind(c->src);
	size_t dbytes, sbytes;

	if (!c->width || !c->height || !c->depth)
		return CUDA_SUCCESS;
	if (!span(c->width, c->height, c->depth, c->dpitch, c->dheight, &dbytes) ||
	    !span(c->width, c->height, c->depth, c->spitch, c->sheight, &sbytes) ||
	    bad_side(c->dst, dbytes, dst_ours) || bad_side(c->src, sbytes, src_ours))
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
	enum sim_mem_kind d = sim_mem_kind(c->dst), from = sim_mem_kind(c->src);
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

SIM_TWINS(cuMemcpyPeer, _ptds, SIM_CTX,
	  P(CUdeviceptr dst, CUcontext dctx, CUdeviceptr src, CUcontext sctx, size_t n),
	  P(dst, dctx, src, sctx, n))
{
	if (!contexts(dctx, sctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	return copy1d(call, dst, OURS, src, OURS, n, NULL, false);
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

static bool base_of(CUmemorytype type, const void *host, CUdeviceptr device, uint64_t *ret,
		    bool *ret_ours)
{
	*ret_ours = type == CU_MEMORYTYPE_DEVICE;
	*ret = type == CU_MEMORYTYPE_HOST ? addr_of(host) : device;
	return type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE ||
	       type == CU_MEMORYTYPE_UNIFIED;
}

CUresult sim_copy_prepare(const CUDA_MEMCPY3D *p, struct sim_copy *ret)
{
	struct sim_copy c = {.width = p->WidthInBytes, .height = p->Height, .depth = p->Depth};
	bool dst_ours, src_ours;

	if (!base_of(p->dstMemoryType, p->dstHost, p->dstDevice, &c.dst, &dst_ours) ||
	    !base_of(p->srcMemoryType, p->srcHost, p->srcDevice, &c.src, &src_ours))
		return p->dstMemoryType == CU_MEMORYTYPE_ARRAY ||
				       p->srcMemoryType == CU_MEMORYTYPE_ARRAY
			       ? CUDA_ERROR_NOT_SUPPORTED
			       : CUDA_ERROR_INVALID_VALUE;
	/* A pitch of 0 stands for packed rows. */
	c.dpitch = p->dstPitch ? p->dstPitch : p->WidthInBytes + p->dstXInBytes;
	c.spitch = p->srcPitch ? p->srcPitch : p->WidthInBytes + p->srcXInBytes;
	c.dheight = p->dstHeight ? p->dstHeight : p->Height + p->dstY;
	c.sheight = p->srcHeight ? p->srcHeight : p->Height + p->srcY;
	if (c.dpitch < p->WidthInBytes + p->dstXInBytes ||
	    c.spitch < p->WidthInBytes + p->srcXInBytes || p->dstLOD || p->srcLOD ||
	    (p->Depth > 1 && (c.dheight < p->Height + p->dstY || c.sheight < p->Height + p->srcY)))
		return CUDA_ERROR_INVALID_VALUE;
	c.dst += (p->dstZ * c.dheight + p->dstY) * c.dpitch + p->dstXInBytes;
	c.src += (p->srcZ * c.sheight + p->srcY) * c.spitch + p->srcXInBytes;
	*ret = c;
	return check(ret, dst_ours, src_ours);
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
		.srcPitch = p->srcPitch,
		.dstXInBytes = p->dstXInBytes,
		.dstY = p->dstY,
		.dstMemoryType = p->dstMemoryType,
		.dstHost = p->dstHost,
		.dstDevice = p->dstDevice,
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
		.srcPitch = p->srcPitch,
		.srcHeight = p->srcHeight,
		.dstXInBytes = p->dstXInBytes,
		.dstY = p->dstY,
		.dstZ = p->dstZ,
		.dstLOD = p->dstLOD,
		.dstMemoryType = p->dstMemoryType,
		.dstHost = p->dstHost,
		.dstDevice = p->dstDevice,
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
	return copy3d_peer(call, p, NULL, false);
}

SIM_TWINS(cuMemcpy3DPeerAsync, _ptsz, SIM_CTX, P(const CUDA_MEMCPY3D_PEER *p, CUstream h), P(p, h))
{
	return copy3d_peer(call, p, h, true);
}
