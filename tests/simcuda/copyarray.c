/* SPDX-License-Identifier: MIT */
/*
 * One-dimensional copies to, from and between arrays, in the plain and per-thread twins.
 *
 * The array must be one-dimensional; offsets and, between arrays, the count are whole elements.
 * Driver lock held.
 */
#include "tests/simcuda/sim.h"

static CUresult copy(struct sim_call *call, CUDA_MEMCPY3D p, size_t n, CUstream h, bool async)
{
	const CUarray arrays[] = {p.dstArray, p.srcArray};
	struct sim_copy c;
	CUstream s;
	CUresult r = sim_stream_get(call, h, &s);

	if (r)
		return r;
	for (unsigned i = 0; i < 2; i++)
		if (sim_handle_is(arrays[i], SIM_H_ARRAY) &&
		    (arrays[i]->desc.Height || arrays[i]->desc.Depth))
			return CUDA_ERROR_INVALID_VALUE;
	p.WidthInBytes = n;
	p.Height = p.Depth = 1;
	r = sim_copy_prepare(&p, &c);
	return r ? r : sim_copy_submit(s, &c, async);
}

#define TO_ARRAY(a, at)	  .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = (a), .dstXInBytes = (at)
#define FROM_ARRAY(a, at) .srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = (a), .srcXInBytes = (at)
#define TO_DEVICE(p)	  .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = (p)
#define FROM_DEVICE(p)	  .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = (p)
#define TO_HOST(p)	  .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = (p)
#define FROM_HOST(p)	  .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = (p)

SIM_TWINS(cuMemcpyDtoA_v2, _ptds, SIM_CTX, P(CUarray dst, size_t at, CUdeviceptr src, size_t n),
	  P(dst, at, src, n))
{
	return copy(call, (CUDA_MEMCPY3D){TO_ARRAY(dst, at), FROM_DEVICE(src)}, n, NULL, false);
}

SIM_TWINS(cuMemcpyAtoD_v2, _ptds, SIM_CTX, P(CUdeviceptr dst, CUarray src, size_t at, size_t n),
	  P(dst, src, at, n))
{
	return copy(call, (CUDA_MEMCPY3D){TO_DEVICE(dst), FROM_ARRAY(src, at)}, n, NULL, false);
}

SIM_TWINS(cuMemcpyHtoA_v2, _ptds, SIM_CTX, P(CUarray dst, size_t at, const void *src, size_t n),
	  P(dst, at, src, n))
{
	return copy(call, (CUDA_MEMCPY3D){TO_ARRAY(dst, at), FROM_HOST(src)}, n, NULL, false);
}

SIM_TWINS(cuMemcpyHtoAAsync_v2, _ptsz, SIM_CTX,
	  P(CUarray dst, size_t at, const void *src, size_t n, CUstream h), P(dst, at, src, n, h))
{
	return copy(call, (CUDA_MEMCPY3D){TO_ARRAY(dst, at), FROM_HOST(src)}, n, h, true);
}

SIM_TWINS(cuMemcpyAtoH_v2, _ptds, SIM_CTX, P(void *dst, CUarray src, size_t at, size_t n),
	  P(dst, src, at, n))
{
	return copy(call, (CUDA_MEMCPY3D){TO_HOST(dst), FROM_ARRAY(src, at)}, n, NULL, false);
}

SIM_TWINS(cuMemcpyAtoHAsync_v2, _ptsz, SIM_CTX,
	  P(void *dst, CUarray src, size_t at, size_t n, CUstream h), P(dst, src, at, n, h))
{
	return copy(call, (CUDA_MEMCPY3D){TO_HOST(dst), FROM_ARRAY(src, at)}, n, h, true);
}

SIM_TWINS(cuMemcpyAtoA_v2, _ptds, SIM_CTX,
	  P(CUarray dst, size_t dat, CUarray src, size_t sat, size_t n), P(dst, dat, src, sat, n))
{
	return copy(call, (CUDA_MEMCPY3D){TO_ARRAY(dst, dat), FROM_ARRAY(src, sat)}, n, NULL,
		    false);
}
