/* SPDX-License-Identifier: MIT */
/*
 * Arrays and mipmapped arrays (entry_points.def, group B5): each array, and each level, is one allocation
 * with a made-up range (arrays.h). Copies name it by its handle (wrap_copy.c); kernels reach it through
 * texture and surface objects, which is why those that do are unknown writers.
 * Callers: the program, any thread. No locks here.
 */
#include "shim/alloc.h"
#include "shim/arrays.h"
#include "shim/wrap_array.h"

void rs_array_made(struct rs_tls *t, CUarray handle, uint64_t owner, int external)
{
	uint64_t ctx = rs_ctx_current(t);
	struct rs_array a;
	int err, saved = errno;

	err = rs_arrays_add(handle, owner, ctx, &a);
	errno = saved;
	if (err)
		return;
	rs_alloc_told(t, (struct rs_queue){.ctx = ctx, .stream = 0}, a.base, a.bytes,
		      RS_ALLOC_ARRAY);
	if (external)
		RS_ENGINE(rs_engine_share(rs_state.engine, a.base));
}

void rs_array_leaves(struct rs_tls *t, CUarray handle)
{
	struct rs_array a;

	if (rs_arrays_find(handle, &a))
		rs_arrays_leaving(handle, rs_alloc_leaves(t, rs_alloc_queue(t), a.base));
}

void rs_array_left(CUarray handle, CUresult r)
{
	struct rs_array a;

	if (!rs_arrays_find(handle, &a))
		return;
	rs_alloc_left(a.leaving, r);
	if (r == CUDA_SUCCESS)
		rs_arrays_remove(handle);
	else
		rs_arrays_leaving(handle, NULL);
}

void rs_array_levels_made(struct rs_tls *t, CUmipmappedArray mipmap, unsigned levels, int external)
{
	CUarray level;

	for (unsigned i = 0; i < levels; i++)
		if (rs_real.cuMipmappedArrayGetLevel(&level, mipmap, i) == CUDA_SUCCESS)
			rs_array_made(t, level, (uintptr_t)mipmap, external);
}

void rs_array_owned_leave(struct rs_tls *t, uint64_t owner)
{
	struct rs_array a = {.base = 0};

	while (rs_arrays_owned(owner, a.base, &a))
		rs_array_leaves(t, a.handle);
}

void rs_array_owned_left(uint64_t owner, CUresult r)
{
	struct rs_array a = {.base = 0};

	while (rs_arrays_owned(owner, a.base, &a))
		rs_array_left(a.handle, r);
}

#define CREATE(sym, params, args, made)                                                            \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, args);                                                            \
		r = rs_real.sym args;                                                              \
		if (r == CUDA_SUCCESS)                                                             \
			made;                                                                      \
		RS_LEAVE(t, r);                                                                    \
	}

CREATE(cuArrayCreate_v2, (CUarray * pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray),
       (pHandle, pAllocateArray), rs_array_made(t, *pHandle, 0, 0))
CREATE(cuArray3DCreate_v2, (CUarray * pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray),
       (pHandle, pAllocateArray), rs_array_made(t, *pHandle, 0, 0))
CREATE(cuMipmappedArrayCreate,
       (CUmipmappedArray * pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
	unsigned int numMipmapLevels),
       (pHandle, pMipmappedArrayDesc, numMipmapLevels),
       rs_array_levels_made(t, *pHandle, numMipmapLevels, 0))

RS_HOOK(cuArrayDestroy, (CUarray hArray))
{
	CUresult r;

	RS_ENTER(t, cuArrayDestroy, (hArray));
	rs_array_leaves(t, hArray);
	r = rs_real.cuArrayDestroy(hArray);
	rs_array_left(hArray, r);
	RS_LEAVE(t, r);
}

RS_HOOK(cuMipmappedArrayDestroy, (CUmipmappedArray hMipmappedArray))
{
	CUresult r;

	RS_ENTER(t, cuMipmappedArrayDestroy, (hMipmappedArray));
	rs_array_owned_leave(t, (uintptr_t)hMipmappedArray);
	r = rs_real.cuMipmappedArrayDestroy(hMipmappedArray);
	rs_array_owned_left((uintptr_t)hMipmappedArray, r);
	RS_LEAVE(t, r);
}
