/* SPDX-License-Identifier: MIT */
/*
 * Fills, stream memory operations and discards (entry_points.def, groups C5, C8, B8): exact ranges.
 * Callers: the program, any thread. No locks here.
 */
#include "shim/capture.h"
#include "shim/describe.h"

struct fill {
	struct rs_call call;
	struct rs_access access[1];
};

static void begin(struct fill *f, struct rs_tls *t, enum rs_ep ep, CUstream stream,
		  enum rs_flavour flavour)
{
	rs_call_begin(&f->call, t, ep, RS_CALL_FILL, stream, flavour, f->access);
}

void rs_fill_describe(struct rs_call *c, struct rs_access *a, uint64_t value, uint64_t addr,
		      uint64_t pitch, uint64_t width, uint64_t height)
{
	uint64_t bytes = width && height ? (height - 1) * pitch + width : 0;

	rs_call_ident(c, value);
	rs_call_ident(c, width);
	rs_call_ident(c, height);
	rs_call_device(c, a, addr, bytes, RS_WRITE, height == 1 || pitch == width, 0);
}

#define FILL(sym, flavour, stream, params, args, value, addr, pitch, width, height)                \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		struct fill f;                                                                     \
		CUresult r;                                                                        \
		RS_ENTER_BYTES(t, sym, flavour, stream, args, addr, 0,                             \
			       (width) != 0 && (height) != 0);                                     \
		begin(&f, t, RS_EP_##sym, stream, flavour);                                        \
		rs_fill_describe(&f.call, f.access, value, addr, pitch, width, height);            \
		RS_CALL(t, &f.call, r, sym, args);                                                 \
		rs_call_calm_keep(t, &f.call, addr, 0, (width) != 0 && (height) != 0);             \
		RS_LEAVE(t, r);                                                                    \
	}

#define FILL_1D(sym, flavour, type, v)                                                             \
	FILL(sym, flavour, NULL, (CUdeviceptr dstDevice, type v, size_t N), (dstDevice, v, N), v,  \
	     dstDevice, 0, N * sizeof(type), 1)
#define FILL_1DA(sym, flavour, type, v)                                                            \
	FILL(sym, flavour, hStream, (CUdeviceptr dstDevice, type v, size_t N, CUstream hStream),   \
	     (dstDevice, v, N, hStream), v, dstDevice, 0, N * sizeof(type), 1)
#define FILL_2D(sym, flavour, type, v)                                                             \
	FILL(sym, flavour, NULL,                                                                   \
	     (CUdeviceptr dstDevice, size_t dstPitch, type v, size_t Width, size_t Height),        \
	     (dstDevice, dstPitch, v, Width, Height), v, dstDevice, dstPitch,                      \
	     Width * sizeof(type), Height)
#define FILL_2DA(sym, flavour, type, v)                                                            \
	FILL(sym, flavour, hStream,                                                                \
	     (CUdeviceptr dstDevice, size_t dstPitch, type v, size_t Width, size_t Height,         \
	      CUstream hStream),                                                                   \
	     (dstDevice, dstPitch, v, Width, Height, hStream), v, dstDevice, dstPitch,             \
	     Width * sizeof(type), Height)

FILL_1D(cuMemsetD8_v2, RS_PLAIN, unsigned char, uc)
FILL_1D(cuMemsetD8_v2_ptds, RS_PTDS, unsigned char, uc)
FILL_1D(cuMemsetD16_v2, RS_PLAIN, unsigned short, us)
FILL_1D(cuMemsetD16_v2_ptds, RS_PTDS, unsigned short, us)
FILL_1D(cuMemsetD32_v2, RS_PLAIN, unsigned int, ui)
FILL_1D(cuMemsetD32_v2_ptds, RS_PTDS, unsigned int, ui)
FILL_1DA(cuMemsetD8Async, RS_PLAIN, unsigned char, uc)
FILL_1DA(cuMemsetD8Async_ptsz, RS_PTSZ, unsigned char, uc)
FILL_1DA(cuMemsetD16Async, RS_PLAIN, unsigned short, us)
FILL_1DA(cuMemsetD16Async_ptsz, RS_PTSZ, unsigned short, us)
FILL_1DA(cuMemsetD32Async, RS_PLAIN, unsigned int, ui)
FILL_1DA(cuMemsetD32Async_ptsz, RS_PTSZ, unsigned int, ui)
FILL_2D(cuMemsetD2D8_v2, RS_PLAIN, unsigned char, uc)
FILL_2D(cuMemsetD2D8_v2_ptds, RS_PTDS, unsigned char, uc)
FILL_2D(cuMemsetD2D16_v2, RS_PLAIN, unsigned short, us)
FILL_2D(cuMemsetD2D16_v2_ptds, RS_PTDS, unsigned short, us)
FILL_2D(cuMemsetD2D32_v2, RS_PLAIN, unsigned int, ui)
FILL_2D(cuMemsetD2D32_v2_ptds, RS_PTDS, unsigned int, ui)
FILL_2DA(cuMemsetD2D8Async, RS_PLAIN, unsigned char, uc)
FILL_2DA(cuMemsetD2D8Async_ptsz, RS_PTSZ, unsigned char, uc)
FILL_2DA(cuMemsetD2D16Async, RS_PLAIN, unsigned short, us)
FILL_2DA(cuMemsetD2D16Async_ptsz, RS_PTSZ, unsigned short, us)
FILL_2DA(cuMemsetD2D32Async, RS_PLAIN, unsigned int, ui)
FILL_2DA(cuMemsetD2D32Async_ptsz, RS_PTSZ, unsigned int, ui)

/* --- stream memory operations ------------------------------------------------------------------- */

/*
 * Who waits for the value, waits for what came before it (wrap_order.c). In the host's memory the host may
 * see it.
 */
static void signalled(struct rs_tls *t, const struct rs_call *call, CUresult r, uint64_t addr,
		      uint64_t value)
{
	CUmemorytype type = CU_MEMORYTYPE_HOST;
	unsigned managed = 0;

	if (r != CUDA_SUCCESS || call->capturing)
		return;
	RS_ENGINE(rs_engine_value_written(rs_state.engine, t->thread, call->q, addr, value));
	if (rs_real.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, addr) !=
		    CUDA_SUCCESS ||
	    rs_real.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, addr) !=
		    CUDA_SUCCESS ||
	    type == CU_MEMORYTYPE_HOST || managed)
		RS_ENGINE(rs_engine_synced_queue(rs_state.engine, t->thread, call->q));
}

#define WRITE_VALUE(sym, flavour, type)                                                            \
	RS_HOOK(sym, (CUstream stream, CUdeviceptr addr, type value, unsigned int flags))          \
	{                                                                                          \
		struct fill f;                                                                     \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, (stream, addr, value, flags));                                    \
		begin(&f, t, RS_EP_##sym, stream, flavour);                                        \
		rs_fill_describe(&f.call, f.access, value, addr, 0, sizeof(type), 1);              \
		f.call.everything |= f.call.capturing; /* others may go on from here */            \
		RS_CALL(t, &f.call, r, sym, (stream, addr, value, flags));                         \
		signalled(t, &f.call, r, addr, value);                                             \
		RS_LEAVE(t, r);                                                                    \
	}

WRITE_VALUE(cuStreamWriteValue32, RS_PLAIN, cuuint32_t)
WRITE_VALUE(cuStreamWriteValue32_ptsz, RS_PTSZ, cuuint32_t)
WRITE_VALUE(cuStreamWriteValue32_v2, RS_PLAIN, cuuint32_t)
WRITE_VALUE(cuStreamWriteValue32_v2_ptsz, RS_PTSZ, cuuint32_t)
WRITE_VALUE(cuStreamWriteValue64, RS_PLAIN, cuuint64_t)
WRITE_VALUE(cuStreamWriteValue64_ptsz, RS_PTSZ, cuuint64_t)
WRITE_VALUE(cuStreamWriteValue64_v2, RS_PLAIN, cuuint64_t)
WRITE_VALUE(cuStreamWriteValue64_v2_ptsz, RS_PTSZ, cuuint64_t)

/* Waits only read; a wait's address is polled, not consumed. */
void rs_memops_describe(struct rs_call *c, struct rs_tls *t, unsigned count,
			const CUstreamBatchMemOpParams *op)
{
	struct rs_access *a = NULL;

	rs_call_ident(c, count);
	if (count < 1u << 20)
		RS_ENGINE(a = rs_call_scratch(t, count + 1));
	c->access = a;
	c->everything = !a;
	for (unsigned i = 0; a && op && i < count; i++) {
		uint64_t bytes = op[i].operation == CU_STREAM_MEM_OP_WRITE_VALUE_64   ? 8
				 : op[i].operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 ? 4
										      : 0;

		rs_call_device(c, a, bytes ? op[i].writeValue.address : 0, bytes, RS_WRITE, 1, 0);
	}
}

/* In their order: each write is an event of its address, each wait one for it. */
static void order_batch(struct rs_tls *t, const struct rs_call *call, CUresult r, unsigned count,
			const CUstreamBatchMemOpParams *op)
{
	if (r == CUDA_SUCCESS && call->capturing) /* a wait of the graph for whatever comes */
		RS_ENGINE(rs_engine_capture_waited(rs_state.engine, t->thread, call->q, 0));
	for (unsigned i = 0; r == CUDA_SUCCESS && !call->capturing && op && i < count; i++)
		switch (op[i].operation) {
		case CU_STREAM_MEM_OP_WRITE_VALUE_32:
			signalled(t, call, r, op[i].writeValue.address, op[i].writeValue.value);
			break;
		case CU_STREAM_MEM_OP_WRITE_VALUE_64:
			signalled(t, call, r, op[i].writeValue.address, op[i].writeValue.value64);
			break;
		case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		case CU_STREAM_MEM_OP_WAIT_VALUE_64:
			RS_ENGINE(rs_engine_event_wait(rs_state.engine, t->thread, call->q,
						       op[i].waitValue.address));
			break;
		default:
			break;
		}
}

void rs_wait_stalls(struct rs_tls *t, struct rs_queue q, uint64_t addr, uint64_t value,
		    unsigned flags, unsigned bytes)
{
	int comes;

	RS_ENGINE(comes = rs_engine_value_comes(rs_state.engine, addr, value,
						(enum rs_value_wait)(flags & 3), bytes));
	if (!comes)
		RS_ENGINE(rs_engine_queue_stalls(rs_state.engine, t->thread, q));
}

/* Before the call: does it wait for a value? */
static void stall_batch(struct rs_tls *t, const struct rs_call *call, unsigned count,
			const CUstreamBatchMemOpParams *op)
{
	for (unsigned i = 0; !call->capturing && op && i < count; i++)
		if (op[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_32)
			rs_wait_stalls(t, call->q, op[i].waitValue.address, op[i].waitValue.value,
				       op[i].waitValue.flags, 4);
		else if (op[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_64)
			rs_wait_stalls(t, call->q, op[i].waitValue.address, op[i].waitValue.value64,
				       op[i].waitValue.flags, 8);
}

#define BATCH(sym, flavour)                                                                        \
	RS_HOOK(sym, (CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray,   \
		      unsigned int flags))                                                         \
	{                                                                                          \
		struct fill f;                                                                     \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, (stream, count, paramArray, flags));                              \
		begin(&f, t, RS_EP_##sym, stream, flavour);                                        \
		rs_memops_describe(&f.call, t, count, paramArray);                                 \
		f.call.everything |= f.call.capturing;                                             \
		stall_batch(t, &f.call, count, paramArray);                                        \
		RS_CALL(t, &f.call, r, sym, (stream, count, paramArray, flags));                   \
		order_batch(t, &f.call, r, count, paramArray);                                     \
		RS_LEAVE(t, r);                                                                    \
	}

BATCH(cuStreamBatchMemOp, RS_PLAIN)
BATCH(cuStreamBatchMemOp_ptsz, RS_PTSZ)
BATCH(cuStreamBatchMemOp_v2, RS_PLAIN)
BATCH(cuStreamBatchMemOp_v2_ptsz, RS_PTSZ)

/* --- discards ----------------------------------------------------------------------------------- */

/* What was there is gone, what is there instead nobody knows: a write of all of it. */
static void describe_discard(struct rs_call *c, struct rs_tls *t, const CUdeviceptr *addr,
			     const size_t *bytes, size_t count)
{
	struct rs_access *a = NULL;

	rs_call_ident(c, count);
	if (count < 1u << 20)
		RS_ENGINE(a = rs_call_scratch(t, (unsigned)count + 1));
	c->access = a;
	c->everything = !a;
	for (size_t i = 0; a && addr && bytes && i < count; i++)
		rs_call_device(c, a, addr[i], bytes[i], RS_WRITE, 1, 0);
}

#define DISCARD(sym, flavour, params, args)                                                        \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		struct fill f;                                                                     \
		CUresult r;                                                                        \
		RS_ENTER_CALL(t, sym, flavour, hStream, args);                                     \
		begin(&f, t, RS_EP_##sym, hStream, flavour);                                       \
		describe_discard(&f.call, t, dptrs, sizes, count);                                 \
		RS_CALL(t, &f.call, r, sym, args);                                                 \
		RS_LEAVE(t, r);                                                                    \
	}

#define P_D                                                                                        \
	(CUdeviceptr * dptrs, size_t * sizes, size_t count, unsigned long long flags,              \
	 CUstream hStream)
#define A_D (dptrs, sizes, count, flags, hStream)
DISCARD(cuMemDiscardBatchAsync, RS_PLAIN, P_D, A_D)
DISCARD(cuMemDiscardBatchAsync_ptsz, RS_PTSZ, P_D, A_D)
#define P_DP                                                                                       \
	(CUdeviceptr * dptrs, size_t * sizes, size_t count, CUmemLocation * prefetchLocs,          \
	 size_t * prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags,               \
	 CUstream hStream)
#define A_DP (dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, hStream)
DISCARD(cuMemDiscardAndPrefetchBatchAsync, RS_PLAIN, P_DP, A_DP)
DISCARD(cuMemDiscardAndPrefetchBatchAsync_ptsz, RS_PTSZ, P_DP, A_DP)
