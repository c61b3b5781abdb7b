/* SPDX-License-Identifier: MIT */
/*
 * Copies (entry_points.def, groups C1 to C4): exact ranges of both sides.
 *
 * Strided copies give the bounding range, dense only where rows touch. In unified calls the driver says
 * which side is the host's. An array is always touched as a whole, dense if the copy covers all of it.
 * The synchronous forms that have a host side return after their end; on the device alone they do not.
 * Callers: the program, any thread. No locks here.
 */
#include "shim/arrays.h"
#include "shim/describe.h"

#include <stdlib.h>

struct copy {
	struct rs_call call;
	struct rs_access access[2];
};

enum side { DST, SRC };

static void begin(struct copy *c, struct rs_tls *t, enum rs_ep ep, CUstream stream,
		  enum rs_flavour flavour)
{
	rs_call_begin(&c->call, t, ep, RS_CALL_COPY, stream, flavour, c->access);
}

static int dir_of(enum side side)
{
	return side == DST ? RS_WRITE : RS_READ;
}

/*
 * Pinned and registered host memory is tracked, ordinary host memory is not. A call that can wait for the
 * copy does so where the host's memory takes part.
 */
static void host(struct rs_call *call, struct rs_access *a, const void *p, uint64_t bytes,
		 int dense, enum side side)
{
	call->synchronous = 1;
	if (side == DST && bytes)
		call->host_effect = 1;
	if (bytes && rs_call_known(call, (uintptr_t)p))
		rs_call_device(call, a, (uintptr_t)p, bytes, dir_of(side), dense, side);
}

static void unified(struct rs_call *call, struct rs_access *a, uint64_t addr, uint64_t bytes,
		    int dense, enum side side)
{
	CUmemorytype type = CU_MEMORYTYPE_HOST;

	/* An error: memory that the driver does not know, so the host's. */
	if (rs_real.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, addr) !=
		    CUDA_SUCCESS ||
	    type == CU_MEMORYTYPE_HOST)
		host(call, a, (const void *)(uintptr_t)addr, bytes, dense, side);
	else
		rs_call_device(call, a, addr, bytes, dir_of(side), dense, side);
}

/* The same for all forms of a copy. */
static void identify(struct rs_call *call, uint64_t width, uint64_t height, uint64_t depth)
{
	rs_call_ident(call, width);
	if (height == 1 && depth == 1)
		return;
	rs_call_ident(call, height);
	rs_call_ident(call, depth);
}

/* What of an array a copy takes, when it starts at its first byte: bytes of a row, rows, layers. */
struct part {
	uint64_t width, height, depth;
};
static const struct part no_part;

static void array(struct rs_call *call, struct rs_access *a, CUarray handle, struct part p,
		  enum side side)
{
	struct rs_array array;

	if (!rs_arrays_find(handle, &array)) {
		call->untracked = 1;
		return;
	}
	rs_call_device(call, a, array.base, array.bytes, dir_of(side),
		       p.width >= array.row && p.height >= array.rows && p.depth >= array.layers,
		       side);
}

/*
 * waits: the form without a stream; when it has returned the host may know of an end, so it is described each time. dst, src,
 * bytes: as for RS_ENTER_BYTES.
 */
#define COPY_(sym, flavour, stream, params, args, describe, waits, dst, src, bytes)                \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		struct copy c;                                                                     \
		CUresult r;                                                                        \
		RS_ENTER_BYTES(t, sym, flavour, stream, args, dst, src, (waits) ? 0 : bytes);      \
		begin(&c, t, RS_EP_##sym, stream, flavour);                                        \
		describe;                                                                          \
		c.call.synchronous &= waits;                                                       \
		RS_CALL(t, &c.call, r, sym, args);                                                 \
		rs_call_calm_keep(t, &c.call, dst, src, bytes);                                    \
		RS_LEAVE(t, r);                                                                    \
	}
#define COPY(sym, flavour, stream, params, args, describe)                                         \
	COPY_(sym, flavour, stream, params, args, describe, 0, 0, 0, 0)
#define COPY_NOW(sym, flavour, params, args, describe)                                             \
	COPY_(sym, flavour, NULL, params, args, describe, 1, 0, 0, 0)
/* Between two addresses. The forms without a stream that have a host side are never calm. */
#define COPY_1D(sym, flavour, params, args, describe, dst, src)                                    \
	COPY_(sym, flavour, hStream, params, args, describe, 0, (uintptr_t)(dst),                  \
	      (uintptr_t)(src), ByteCount)
#define COPY_1D_NOW(sym, flavour, params, args, describe, dst, src)                                \
	COPY_(sym, flavour, NULL, params, args, describe, 1, (uintptr_t)(dst), (uintptr_t)(src),   \
	      ByteCount)

/* --- one dimension ------------------------------------------------------------------------------ */

#define N		 identify(&c.call, ByteCount, 1, 1)
#define DEVICE(p, side)	 rs_call_device(&c.call, c.access, p, ByteCount, dir_of(side), 1, side)
#define HOST(p, side)	 host(&c.call, c.access, p, ByteCount, 1, side)
#define UNIFIED(p, side) unified(&c.call, c.access, p, ByteCount, 1, side)
#define ARRAY(h, offset, side)                                                                     \
	array(&c.call, c.access, h, (offset) == 0 ? (struct part){ByteCount, 1, 1} : no_part, side)

#define P_DD (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
#define A_DD (dstDevice, srcDevice, ByteCount)
#define D_DD N, DEVICE(dstDevice, DST), DEVICE(srcDevice, SRC)
COPY_1D_NOW(cuMemcpyDtoD_v2, RS_PLAIN, P_DD, A_DD, (D_DD), dstDevice, srcDevice)
COPY_1D_NOW(cuMemcpyDtoD_v2_ptds, RS_PTDS, P_DD, A_DD, (D_DD), dstDevice, srcDevice)
#define P_DDA (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
#define A_DDA (dstDevice, srcDevice, ByteCount, hStream)
COPY_1D(cuMemcpyDtoDAsync_v2, RS_PLAIN, P_DDA, A_DDA, (D_DD), dstDevice, srcDevice)
COPY_1D(cuMemcpyDtoDAsync_v2_ptsz, RS_PTSZ, P_DDA, A_DDA, (D_DD), dstDevice, srcDevice)

#define P_HD (CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
#define A_HD (dstDevice, srcHost, ByteCount)
#define D_HD N, DEVICE(dstDevice, DST), HOST(srcHost, SRC)
COPY_1D_NOW(cuMemcpyHtoD_v2, RS_PLAIN, P_HD, A_HD, (D_HD), dstDevice, srcHost)
COPY_1D_NOW(cuMemcpyHtoD_v2_ptds, RS_PTDS, P_HD, A_HD, (D_HD), dstDevice, srcHost)
#define P_HDA (CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream)
#define A_HDA (dstDevice, srcHost, ByteCount, hStream)
COPY_1D(cuMemcpyHtoDAsync_v2, RS_PLAIN, P_HDA, A_HDA, (D_HD), dstDevice, srcHost)
COPY_1D(cuMemcpyHtoDAsync_v2_ptsz, RS_PTSZ, P_HDA, A_HDA, (D_HD), dstDevice, srcHost)

#define P_DH (void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
#define A_DH (dstHost, srcDevice, ByteCount)
#define D_DH N, HOST(dstHost, DST), DEVICE(srcDevice, SRC)
COPY_1D_NOW(cuMemcpyDtoH_v2, RS_PLAIN, P_DH, A_DH, (D_DH), dstHost, srcDevice)
COPY_1D_NOW(cuMemcpyDtoH_v2_ptds, RS_PTDS, P_DH, A_DH, (D_DH), dstHost, srcDevice)
#define P_DHA (void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
#define A_DHA (dstHost, srcDevice, ByteCount, hStream)
COPY_1D(cuMemcpyDtoHAsync_v2, RS_PLAIN, P_DHA, A_DHA, (D_DH), dstHost, srcDevice)
COPY_1D(cuMemcpyDtoHAsync_v2_ptsz, RS_PTSZ, P_DHA, A_DHA, (D_DH), dstHost, srcDevice)

#define P_U (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
#define A_U (dst, src, ByteCount)
#define D_U N, UNIFIED(dst, DST), UNIFIED(src, SRC)
COPY_1D_NOW(cuMemcpy, RS_PLAIN, P_U, A_U, (D_U), dst, src)
COPY_1D_NOW(cuMemcpy_ptds, RS_PTDS, P_U, A_U, (D_U), dst, src)
#define P_UA (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
#define A_UA (dst, src, ByteCount, hStream)
COPY_1D(cuMemcpyAsync, RS_PLAIN, P_UA, A_UA, (D_U), dst, src)
COPY_1D(cuMemcpyAsync_ptsz, RS_PTSZ, P_UA, A_UA, (D_U), dst, src)

/* Such a copy comes after all that the two contexts have to do. */
static void between(CUcontext dst, CUcontext src)
{
	RS_ENGINE(rs_engine_synced_ctx(rs_state.engine, (uintptr_t)dst));
	RS_ENGINE(rs_engine_synced_ctx(rs_state.engine, (uintptr_t)src));
}

#define P_P                                                                                        \
	(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext, \
	 size_t ByteCount)
#define A_P (dstDevice, dstContext, srcDevice, srcContext, ByteCount)
COPY_NOW(cuMemcpyPeer, RS_PLAIN, P_P, A_P, (between(dstContext, srcContext), D_DD))
COPY_NOW(cuMemcpyPeer_ptds, RS_PTDS, P_P, A_P, (between(dstContext, srcContext), D_DD))
#define P_PA                                                                                       \
	(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext, \
	 size_t ByteCount, CUstream hStream)
#define A_PA (dstDevice, dstContext, srcDevice, srcContext, ByteCount, hStream)
COPY(cuMemcpyPeerAsync, RS_PLAIN, hStream, P_PA, A_PA, (D_DD))
COPY(cuMemcpyPeerAsync_ptsz, RS_PTSZ, hStream, P_PA, A_PA, (D_DD))

/* --- arrays ------------------------------------------------------------------------------------- */

#define P_AD (CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount)
#define A_AD (dstDevice, srcArray, srcOffset, ByteCount)
#define D_AD N, DEVICE(dstDevice, DST), ARRAY(srcArray, srcOffset, SRC)
COPY_NOW(cuMemcpyAtoD_v2, RS_PLAIN, P_AD, A_AD, (D_AD))
COPY_NOW(cuMemcpyAtoD_v2_ptds, RS_PTDS, P_AD, A_AD, (D_AD))

#define P_DA (CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount)
#define A_DA (dstArray, dstOffset, srcDevice, ByteCount)
#define D_DA N, ARRAY(dstArray, dstOffset, DST), DEVICE(srcDevice, SRC)
COPY_NOW(cuMemcpyDtoA_v2, RS_PLAIN, P_DA, A_DA, (D_DA))
COPY_NOW(cuMemcpyDtoA_v2_ptds, RS_PTDS, P_DA, A_DA, (D_DA))

#define P_AH (void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount)
#define A_AH (dstHost, srcArray, srcOffset, ByteCount)
#define D_AH N, HOST(dstHost, DST), ARRAY(srcArray, srcOffset, SRC)
COPY_NOW(cuMemcpyAtoH_v2, RS_PLAIN, P_AH, A_AH, (D_AH))
COPY_NOW(cuMemcpyAtoH_v2_ptds, RS_PTDS, P_AH, A_AH, (D_AH))
#define P_AHA                                                                                      \
	(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount, CUstream hStream)
#define A_AHA (dstHost, srcArray, srcOffset, ByteCount, hStream)
COPY(cuMemcpyAtoHAsync_v2, RS_PLAIN, hStream, P_AHA, A_AHA, (D_AH))
COPY(cuMemcpyAtoHAsync_v2_ptsz, RS_PTSZ, hStream, P_AHA, A_AHA, (D_AH))

#define P_HA (CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount)
#define A_HA (dstArray, dstOffset, srcHost, ByteCount)
#define D_HA N, ARRAY(dstArray, dstOffset, DST), HOST(srcHost, SRC)
COPY_NOW(cuMemcpyHtoA_v2, RS_PLAIN, P_HA, A_HA, (D_HA))
COPY_NOW(cuMemcpyHtoA_v2_ptds, RS_PTDS, P_HA, A_HA, (D_HA))
#define P_HAA                                                                                      \
	(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount,                \
	 CUstream hStream)
#define A_HAA (dstArray, dstOffset, srcHost, ByteCount, hStream)
COPY(cuMemcpyHtoAAsync_v2, RS_PLAIN, hStream, P_HAA, A_HAA, (D_HA))
COPY(cuMemcpyHtoAAsync_v2_ptsz, RS_PTSZ, hStream, P_HAA, A_HAA, (D_HA))

#define P_AA                                                                                       \
	(CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset, size_t ByteCount)
#define A_AA (dstArray, dstOffset, srcArray, srcOffset, ByteCount)
#define D_AA N, ARRAY(dstArray, dstOffset, DST), ARRAY(srcArray, srcOffset, SRC)
COPY_NOW(cuMemcpyAtoA_v2, RS_PLAIN, P_AA, A_AA, (D_AA))
COPY_NOW(cuMemcpyAtoA_v2_ptds, RS_PTDS, P_AA, A_AA, (D_AA))

/* --- two and three dimensions ------------------------------------------------------------------- */

/* One side of a strided copy: its first byte, and the distances of rows and layers. */
struct strided {
	CUmemorytype type;
	const void *host;
	uint64_t device;
	CUarray array;
	uint64_t pitch, rows; /* bytes a row, rows a layer */
	uint64_t x, y, z;
};

static void strided(struct rs_call *call, struct rs_access *a, const struct strided *s,
		    uint64_t width, uint64_t height, uint64_t depth, enum side side)
{
	uint64_t first = (s->z * s->rows + s->y) * s->pitch + s->x;
	uint64_t bytes = ((depth - 1) * s->rows + height - 1) * s->pitch + width;
	int dense = bytes == width * height * depth; /* rows never overlap */

	if (!width || !height || !depth)
		return;
	switch (s->type) {
	case CU_MEMORYTYPE_HOST:
		host(call, a, (const char *)s->host + first, bytes, dense, side);
		break;
	case CU_MEMORYTYPE_DEVICE:
		rs_call_device(call, a, s->device + first, bytes, dir_of(side), dense, side);
		break;
	case CU_MEMORYTYPE_UNIFIED:
		unified(call, a, s->device + first, bytes, dense, side);
		break;
	case CU_MEMORYTYPE_ARRAY:
		array(call, a, s->array,
		      s->x || s->y || s->z ? no_part : (struct part){width, height, depth}, side);
		break;
	}
}

/* A NULL or invalid descriptor touches nothing: the driver refuses it. */
static void describe_2d(struct copy *c, const CUDA_MEMCPY2D *p)
{
	struct strided dst, src;

	if (!p)
		return;
	dst = (struct strided){p->dstMemoryType, p->dstHost,  p->dstDevice,
			       p->dstArray,	 p->dstPitch, p->Height,
			       p->dstXInBytes,	 p->dstY,     0};
	src = (struct strided){p->srcMemoryType, p->srcHost,  p->srcDevice,
			       p->srcArray,	 p->srcPitch, p->Height,
			       p->srcXInBytes,	 p->srcY,     0};
	identify(&c->call, p->WidthInBytes, p->Height, 1);
	strided(&c->call, c->access, &dst, p->WidthInBytes, p->Height, 1, DST);
	strided(&c->call, c->access, &src, p->WidthInBytes, p->Height, 1, SRC);
}

#define P_2D  (const CUDA_MEMCPY2D *pCopy)
#define P_2DA (const CUDA_MEMCPY2D *pCopy, CUstream hStream)
COPY_NOW(cuMemcpy2D_v2, RS_PLAIN, P_2D, (pCopy), describe_2d(&c, pCopy))
COPY_NOW(cuMemcpy2D_v2_ptds, RS_PTDS, P_2D, (pCopy), describe_2d(&c, pCopy))
COPY_NOW(cuMemcpy2DUnaligned_v2, RS_PLAIN, P_2D, (pCopy), describe_2d(&c, pCopy))
COPY_NOW(cuMemcpy2DUnaligned_v2_ptds, RS_PTDS, P_2D, (pCopy), describe_2d(&c, pCopy))
COPY(cuMemcpy2DAsync_v2, RS_PLAIN, hStream, P_2DA, (pCopy, hStream), describe_2d(&c, pCopy))
COPY(cuMemcpy2DAsync_v2_ptsz, RS_PTSZ, hStream, P_2DA, (pCopy, hStream), describe_2d(&c, pCopy))

/* The peer form has the same fields, and contexts. */
#define DESCRIBE_3D(name, type)                                                                    \
	static void name(struct rs_call *c, struct rs_access *a, const type *p)                    \
	{                                                                                          \
		struct strided dst, src;                                                           \
		if (!p)                                                                            \
			return;                                                                    \
		dst = (struct strided){p->dstMemoryType, p->dstHost,  p->dstDevice,                \
				       p->dstArray,	 p->dstPitch, p->dstHeight,                \
				       p->dstXInBytes,	 p->dstY,     p->dstZ};                    \
		src = (struct strided){p->srcMemoryType, p->srcHost,  p->srcDevice,                \
				       p->srcArray,	 p->srcPitch, p->srcHeight,                \
				       p->srcXInBytes,	 p->srcY,     p->srcZ};                    \
		identify(c, p->WidthInBytes, p->Height, p->Depth);                                 \
		strided(c, a, &dst, p->WidthInBytes, p->Height, p->Depth, DST);                    \
		strided(c, a, &src, p->WidthInBytes, p->Height, p->Depth, SRC);                    \
	}
DESCRIBE_3D(describe_3d, CUDA_MEMCPY3D)
DESCRIBE_3D(describe_peer, CUDA_MEMCPY3D_PEER)

/* In a graph nobody waits for it. */
void rs_copy_describe(struct rs_call *c, struct rs_access *a, const CUDA_MEMCPY3D *p)
{
	describe_3d(c, a, p);
	c->synchronous = 0;
}

#define P_3D   (const CUDA_MEMCPY3D *pCopy)
#define P_3DA  (const CUDA_MEMCPY3D *pCopy, CUstream hStream)
#define P_3DP  (const CUDA_MEMCPY3D_PEER *pCopy)
#define P_3DPA (const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
#define A_3DA  (pCopy, hStream)
COPY_NOW(cuMemcpy3D_v2, RS_PLAIN, P_3D, (pCopy), describe_3d(&c.call, c.access, pCopy))
COPY_NOW(cuMemcpy3D_v2_ptds, RS_PTDS, P_3D, (pCopy), describe_3d(&c.call, c.access, pCopy))
COPY(cuMemcpy3DAsync_v2, RS_PLAIN, hStream, P_3DA, A_3DA, describe_3d(&c.call, c.access, pCopy))
COPY(cuMemcpy3DAsync_v2_ptsz, RS_PTSZ, hStream, P_3DA, A_3DA, describe_3d(&c.call, c.access, pCopy))
#define D_3DP                                                                                      \
	if (pCopy)                                                                                 \
		between(pCopy->dstContext, pCopy->srcContext);                                     \
	describe_peer(&c.call, c.access, pCopy)
COPY_NOW(cuMemcpy3DPeer, RS_PLAIN, P_3DP, (pCopy), D_3DP)
COPY_NOW(cuMemcpy3DPeer_ptds, RS_PTDS, P_3DP, (pCopy), D_3DP)
COPY(cuMemcpy3DPeerAsync, RS_PLAIN, hStream, P_3DPA, A_3DA, describe_peer(&c.call, c.access, pCopy))
COPY(cuMemcpy3DPeerAsync_ptsz, RS_PTSZ, hStream, P_3DPA, A_3DA,
     describe_peer(&c.call, c.access, pCopy))

/* --- batches ------------------------------------------------------------------------------------ */

struct rs_access *rs_call_scratch(struct rs_tls *t, unsigned n)
{
	struct rs_access *a;

	if (n <= t->access_cap)
		return t->access;
	a = realloc(t->access, n * sizeof(*a));
	if (!a)
		return NULL;
	t->access = a;
	t->access_cap = n;
	return a;
}

/* Apart from its callers, whose quick ends need no frame. */
__attribute__((noinline)) int rs_call_calm_anew(struct rs_tls *t, struct rs_calm *c,
						struct rs_queue q, uint64_t dst, uint64_t src)
{
	uint64_t moment;

	if (rs_unlikely(rs_state.opt.strict))
		return 0;
	moment = rs_engine_again_copy(rs_state.engine, t->thread, q, dst, src);
	if (!moment)
		return 0;
	*c = (struct rs_calm){.moment = moment, .dst = dst, .src = src, .q = q};
	return 1;
}

/* The thread's scratch for a batch; without room the call may do anything. */
static struct rs_access *batch_room(struct copy *c, struct rs_tls *t, size_t count)
{
	struct rs_access *a = NULL;

	rs_call_ident(&c->call, count);
	if (count < 1u << 24)
		RS_ENGINE(a = rs_call_scratch(t, 2 * (unsigned)count + 1));
	if (!a)
		c->call.everything = 1;
	c->call.access = a;
	return a;
}

static void describe_batch(struct copy *c, struct rs_tls *t, const CUdeviceptr *dsts,
			   const CUdeviceptr *srcs, const size_t *sizes, size_t count)
{
	struct rs_access *a = batch_room(c, t, count);

	for (size_t i = 0; a && dsts && srcs && sizes && i < count; i++) {
		unified(&c->call, a, dsts[i], sizes[i], 1, DST);
		unified(&c->call, a, srcs[i], sizes[i], 1, SRC);
	}
}

/* Bytes of an element, which only an array knows; 0: neither side is one, then it is a byte. */
static uint64_t element(const CUDA_MEMCPY3D_BATCH_OP *op)
{
	struct rs_array a = {.element = 0};

	if (op->dst.type == CU_MEMCPY_OPERAND_TYPE_ARRAY &&
	    rs_arrays_find(op->dst.op.array.array, &a))
		return a.element;
	if (op->src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY &&
	    rs_arrays_find(op->src.op.array.array, &a))
		return a.element;
	return op->dst.type == CU_MEMCPY_OPERAND_TYPE_ARRAY ||
			       op->src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY
		       ? 0
		       : 1;
}

/* Rows are counted in elements of `unit` bytes, 0: unknown. */
static void operand(struct rs_call *call, struct rs_access *a, const CUmemcpy3DOperand *o,
		    const CUextent3D *extent, uint64_t unit, enum side side)
{
	uint64_t row = o->op.ptr.rowLength ? o->op.ptr.rowLength : extent->width;
	uint64_t rows = o->op.ptr.layerHeight ? o->op.ptr.layerHeight : extent->height;
	uint64_t bytes = unit ? unit : 1;
	struct strided s = {.type = CU_MEMORYTYPE_UNIFIED,
			    .device = o->op.ptr.ptr,
			    .pitch = row * bytes,
			    .rows = rows};
	unsigned had = call->naccess;

	if (o->type == CU_MEMCPY_OPERAND_TYPE_ARRAY)
		s = (struct strided){.type = CU_MEMORYTYPE_ARRAY,
				     .array = o->op.array.array,
				     .x = o->op.array.offset.x,
				     .y = o->op.array.offset.y,
				     .z = o->op.array.offset.z};
	strided(call, a, &s, extent->width * bytes, extent->height, extent->depth, side);
	if (!unit && call->naccess > had) {
		a[had].whole = 1;
		a[had].dense = 0;
	}
}

static void describe_batch_3d(struct copy *c, struct rs_tls *t, const CUDA_MEMCPY3D_BATCH_OP *op,
			      size_t count)
{
	struct rs_access *a = batch_room(c, t, count);

	for (size_t i = 0; a && op && i < count; i++) {
		uint64_t unit = element(&op[i]);

		operand(&c->call, a, &op[i].dst, &op[i].extent, unit, DST);
		operand(&c->call, a, &op[i].src, &op[i].extent, unit, SRC);
	}
}

#define P_B                                                                                        \
	(CUdeviceptr * dsts, CUdeviceptr * srcs, size_t * sizes, size_t count,                     \
	 CUmemcpyAttributes * attrs, size_t * attrsIdxs, size_t numAttrs, size_t * failIdx,        \
	 CUstream hStream)
#define A_B (dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, failIdx, hStream)
#define D_B describe_batch(&c, t, dsts, srcs, sizes, count)
COPY(cuMemcpyBatchAsync, RS_PLAIN, hStream, P_B, A_B, D_B)
COPY(cuMemcpyBatchAsync_ptsz, RS_PTSZ, hStream, P_B, A_B, D_B)
#define P_B2                                                                                       \
	(CUdeviceptr * dsts, CUdeviceptr * srcs, size_t * sizes, size_t count,                     \
	 CUmemcpyAttributes * attrs, size_t * attrsIdxs, size_t numAttrs, CUstream hStream)
#define A_B2 (dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, hStream)
COPY(cuMemcpyBatchAsync_v2, RS_PLAIN, hStream, P_B2, A_B2, D_B)
COPY(cuMemcpyBatchAsync_v2_ptsz, RS_PTSZ, hStream, P_B2, A_B2, D_B)

#define P_3B                                                                                       \
	(size_t numOps, CUDA_MEMCPY3D_BATCH_OP * opList, size_t * failIdx,                         \
	 unsigned long long flags, CUstream hStream)
#define A_3B (numOps, opList, failIdx, flags, hStream)
#define D_3B describe_batch_3d(&c, t, opList, numOps)
COPY(cuMemcpy3DBatchAsync, RS_PLAIN, hStream, P_3B, A_3B, D_3B)
COPY(cuMemcpy3DBatchAsync_ptsz, RS_PTSZ, hStream, P_3B, A_3B, D_3B)
#define P_3B2                                                                                      \
	(size_t numOps, CUDA_MEMCPY3D_BATCH_OP * opList, unsigned long long flags, CUstream hStream)
#define A_3B2 (numOps, opList, flags, hStream)
COPY(cuMemcpy3DBatchAsync_v2, RS_PLAIN, hStream, P_3B2, A_3B2, D_3B)
COPY(cuMemcpy3DBatchAsync_v2_ptsz, RS_PTSZ, hStream, P_3B2, A_3B2, D_3B)

/* Sizes of what comes out are in device memory. */
#define P_Z                                                                                        \
	(CUmemDecompressParams * paramsArray, size_t count, unsigned int flags,                    \
	 size_t *errorIndex, CUstream stream)
#define A_Z (paramsArray, count, flags, errorIndex, stream)
COPY(cuMemBatchDecompressAsync, RS_PLAIN, stream, P_Z, A_Z, c.call.everything = 1)
COPY(cuMemBatchDecompressAsync_ptsz, RS_PTSZ, stream, P_Z, A_Z, c.call.everything = 1)
