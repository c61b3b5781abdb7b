/* SPDX-License-Identifier: MIT */
/*
 * Fills of 8, 16 and 32 bit elements, linear and pitched, in the plain and per-thread twins.
 *
 * The synchronous forms wait only if the target is host or managed memory, as the manual says.
 * Driver lock held.
 */
#include "tests/simcuda/sim.h"

CUresult sim_fill_prepare(uint64_t dst, size_t pitch, unsigned elem, unsigned value, size_t width,
			  size_t height, struct sim_work *ret)
{
	unsigned __int128 bytes;

	if (elem != 1 && elem != 2 && elem != 4)
		return CUDA_ERROR_INVALID_VALUE;
	if (height <= 1)
		pitch = width * elem;
	bytes = (unsigned __int128)(height ? height - 1 : 0) * pitch +
		(unsigned __int128)width * elem;
	if (dst % elem || pitch % elem || bytes > (1ull << 46) || pitch < width * elem ||
	    (width && height && !sim_mem_covers(dst, (uint64_t)bytes)))
		return CUDA_ERROR_INVALID_VALUE;
	*ret = (struct sim_work){.kind = SIM_WORK_FILL,
				 .fill = {.dst = dst,
					  .pitch = pitch,
					  .width = width,
					  .height = height,
					  .elem = elem,
					  .value = value}};
	return CUDA_SUCCESS;
}

static CUresult fill(struct sim_call *call, uint64_t dst, size_t pitch, unsigned elem,
		     unsigned value, size_t width, size_t height, CUstream h, bool async)
{
	struct sim_work w;
	CUstream s;
	CUresult r = sim_stream_get(call, h, &s);

	if (!r)
		r = sim_fill_prepare(dst, pitch, elem, value, width, height, &w);
	if (r || !width || !height)
		return r;
	if (s->cap && !async)
		return sim_capture_break(s, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	if (!async && sim_mem_kind(dst) != SIM_MEM_DEVICE)
		return sim_stream_submit_wait(s, &w);
	return sim_stream_submit(s, &w, NULL);
}

#define FILLS(bits, type)                                                                          \
	SIM_TWINS(cuMemsetD##bits##_v2, _ptds, SIM_CTX, P(CUdeviceptr d, type v, size_t n),        \
		  P(d, v, n))                                                                      \
	{                                                                                          \
		return fill(call, d, 0, (bits) / 8, v, n, 1, NULL, false);                         \
	}                                                                                          \
	SIM_TWINS(cuMemsetD##bits##Async, _ptsz, SIM_CTX,                                          \
		  P(CUdeviceptr d, type v, size_t n, CUstream h), P(d, v, n, h))                   \
	{                                                                                          \
		return fill(call, d, 0, (bits) / 8, v, n, 1, h, true);                             \
	}                                                                                          \
	SIM_TWINS(cuMemsetD2D##bits##_v2, _ptds, SIM_CTX,                                          \
		  P(CUdeviceptr d, size_t pitch, type v, size_t w, size_t rows),                   \
		  P(d, pitch, v, w, rows))                                                         \
	{                                                                                          \
		return fill(call, d, pitch, (bits) / 8, v, w, rows, NULL, false);                  \
	}                                                                                          \
	SIM_TWINS(cuMemsetD2D##bits##Async, _ptsz, SIM_CTX,                                        \
		  P(CUdeviceptr d, size_t pitch, type v, size_t w, size_t rows, CUstream h),       \
		  P(d, pitch, v, w, rows, h))                                                      \
	{                                                                                          \
		return fill(call, d, pitch, (bits) / 8, v, w, rows, h, true);                      \
	}

FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned int)
