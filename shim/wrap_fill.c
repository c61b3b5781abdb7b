/* SPDX-License-Identifier: MIT */
/*
 * Fills and stream memory operations (entry_points.def, groups C5 and C8): exact ranges.
 * Callers: the program, any thread. No locks here.
 */
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
		RS_ENTER_CALL(t, sym, flavour, stream, args);                                      \
		begin(&f, t, RS_EP_##sym, stream, flavour);                                        \
		rs_fill_describe(&f.call, f.access, value, addr, pitch, width, height);            \
		RS_CALL(t, &f.call, r, sym, args);                                                 \
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

#define WRITE_VALUE(sym, flavour, type)                                                            \
	FILL(sym, flavour, stream,                                                                 \
	     (CUstream stream, CUdeviceptr addr, type value, unsigned int flags),                  \
	     (stream, addr, value, flags), value, addr, 0, sizeof(type), 1)

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

#define BATCH(sym, flavour)                                                                        \
	RS_HOOK(sym, (CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray,   \
		      unsigned int flags))                                                         \
	{                                                                                          \
		struct fill f;                                                                     \
		CUresult r;                                                                        \
		RS_ENTER_CALL(t, sym, flavour, stream, (stream, count, paramArray, flags));        \
		begin(&f, t, RS_EP_##sym, stream, flavour);                                        \
		rs_memops_describe(&f.call, t, count, paramArray);                                 \
		RS_CALL(t, &f.call, r, sym, (stream, count, paramArray, flags));                   \
		RS_LEAVE(t, r);                                                                    \
	}

BATCH(cuStreamBatchMemOp, RS_PLAIN)
BATCH(cuStreamBatchMemOp_ptsz, RS_PTSZ)
BATCH(cuStreamBatchMemOp_v2, RS_PLAIN)
BATCH(cuStreamBatchMemOp_v2_ptsz, RS_PTSZ)
