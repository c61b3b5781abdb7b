/* SPDX-License-Identifier: MIT */
/*
 * Allocation and release (entry_points.def, groups B1 to B3).
 *
 * An allocation is told after the driver made it, a release before the driver frees: in between, the
 * address cannot be given to somebody else unseen. A release that the driver refuses is taken back.
 * Out-parameters are read after success only; frees of unknown pointers go to the driver unchanged. An
 * allocation that fails for lack of memory is tried once more if the engine could give memory back.
 * Callers: the program, any thread. No locks here.
 */
#include "shim/alloc.h"
#include "shim/capture.h"

static const struct rs_queue no_queue;

void rs_alloc_told(struct rs_tls *t, struct rs_queue q, uint64_t addr, uint64_t bytes,
		   enum rs_alloc_kind kind)
{
	if (addr && bytes)
		RS_ENGINE(rs_engine_alloc(rs_state.engine, t->thread, q, addr, bytes, kind));
}

static int can_retry(CUresult r)
{
	uint64_t released = 0;

	if (rs_likely(r != CUDA_ERROR_OUT_OF_MEMORY))
		return 0;
	RS_ENGINE(released = rs_engine_trim(rs_state.engine));
	return released > 0;
}

/* out: what the driver filled in, valid after success; q, bytes, kind: of the new allocation. */
#define ALLOC(sym, params, args, q, out, bytes, kind)                                              \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, args);                                                            \
		r = rs_real.sym args;                                                              \
		if (can_retry(r))                                                                  \
			r = rs_real.sym args;                                                      \
		if (r == CUDA_SUCCESS && (out))                                                    \
			rs_alloc_told(t, q, (uint64_t) * (out), bytes, kind);                      \
		RS_LEAVE(t, r);                                                                    \
	}

ALLOC(cuMemAlloc_v2, (CUdeviceptr * dptr, size_t bytesize), (dptr, bytesize), rs_alloc_queue(t),
      dptr, bytesize, RS_ALLOC_DEVICE)
ALLOC(cuMemAllocManaged, (CUdeviceptr * dptr, size_t bytesize, unsigned int flags),
      (dptr, bytesize, flags), rs_alloc_queue(t), dptr, bytesize, RS_ALLOC_MANAGED)
ALLOC(cuMemAllocPitch_v2,
      (CUdeviceptr * dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
       unsigned int ElementSizeBytes),
      (dptr, pPitch, WidthInBytes, Height, ElementSizeBytes), rs_alloc_queue(t), dptr,
      pPitch ? *pPitch *Height : 0, RS_ALLOC_DEVICE)
ALLOC(cuMemAllocHost_v2, (void **pp, size_t bytesize), (pp, bytesize), rs_alloc_queue(t), pp,
      bytesize, RS_ALLOC_HOST)
ALLOC(cuMemHostAlloc, (void **pp, size_t bytesize, unsigned int Flags), (pp, bytesize, Flags),
      rs_alloc_queue(t), pp, bytesize, RS_ALLOC_HOST)

/* In a capture it is a node of the graph that has been made. */
#define ALLOC_STREAM(sym, flavour, params, args)                                                   \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		CUresult r;                                                                        \
		int captured;                                                                      \
		RS_ENTER(t, sym, args);                                                            \
		captured = rs_queue_capturing(hStream, flavour);                                   \
		if (captured)                                                                      \
			rs_capture_unseen(t, hStream, flavour, 1);                                 \
		r = rs_real.sym args;                                                              \
		if (can_retry(r))                                                                  \
			r = rs_real.sym args;                                                      \
		if (captured)                                                                      \
			rs_capture_allocated(t, hStream, flavour,                                  \
					     r == CUDA_SUCCESS && dptr ? *dptr : 0, bytesize);     \
		else if (r == CUDA_SUCCESS && dptr)                                                \
			rs_alloc_told(t, rs_queue_of(t, hStream, flavour), *dptr, bytesize,        \
				      RS_ALLOC_DEVICE);                                            \
		RS_LEAVE(t, r);                                                                    \
	}
#define P_A (CUdeviceptr * dptr, size_t bytesize, CUstream hStream)
#define A_A (dptr, bytesize, hStream)
ALLOC_STREAM(cuMemAllocAsync, RS_PLAIN, P_A, A_A)
ALLOC_STREAM(cuMemAllocAsync_ptsz, RS_PTSZ, P_A, A_A)
#define P_P (CUdeviceptr * dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
#define A_P (dptr, bytesize, pool, hStream)
ALLOC_STREAM(cuMemAllocFromPoolAsync, RS_PLAIN, P_P, A_P)
ALLOC_STREAM(cuMemAllocFromPoolAsync_ptsz, RS_PTSZ, P_P, A_P)

/* --- release ------------------------------------------------------------------------------------ */

/* waits: the driver has waited for the context's work before it freed. */
#define FREE(sym, params, args, q, addr, waits)                                                    \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		struct rs_alloc *a;                                                                \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, args);                                                            \
		a = rs_alloc_leaves(t, q, (uint64_t)(addr));                                       \
		r = rs_real.sym args;                                                              \
		rs_alloc_left(a, r);                                                               \
		if (waits && r == CUDA_SUCCESS && a)                                               \
			RS_ENGINE(rs_engine_synced_ctx(rs_state.engine, rs_ctx_current(t)));       \
		RS_LEAVE(t, r);                                                                    \
	}

FREE(cuMemFree_v2, (CUdeviceptr dptr), (dptr), rs_alloc_queue(t), dptr, 1)
FREE(cuMemFreeHost, (void *p), (p), rs_alloc_queue(t), p, 1)
FREE(cuMemHostUnregister, (void *p), (p), rs_alloc_queue(t), p, 1)

/* A captured free happens when the graph runs. */
#define FREE_ASYNC(sym, flavour)                                                                   \
	RS_HOOK(sym, (CUdeviceptr dptr, CUstream hStream))                                         \
	{                                                                                          \
		struct rs_alloc *a;                                                                \
		CUresult r;                                                                        \
		int captured;                                                                      \
		RS_ENTER(t, sym, (dptr, hStream));                                                 \
		captured = rs_queue_capturing(hStream, flavour);                                   \
		if (captured)                                                                      \
			rs_capture_frees(t, hStream, flavour, dptr);                               \
		a = rs_alloc_leaves(t, rs_queue_of(t, hStream, flavour), captured ? 0 : dptr);     \
		r = rs_real.sym(dptr, hStream);                                                    \
		rs_alloc_left(a, r);                                                               \
		if (captured)                                                                      \
			rs_capture_freed(t, hStream, flavour, dptr, r);                            \
		RS_LEAVE(t, r);                                                                    \
	}
FREE_ASYNC(cuMemFreeAsync, RS_PLAIN)
FREE_ASYNC(cuMemFreeAsync_ptsz, RS_PTSZ)

/* Registered memory is reached through its device alias, the same address wherever addressing is unified. */
static void registered(struct rs_tls *t, void *p, size_t bytes)
{
	CUdeviceptr alias = 0;

	if (rs_real.cuMemHostGetDevicePointer_v2(&alias, p, 0) != CUDA_SUCCESS || !alias)
		alias = (uintptr_t)p;
	rs_alloc_told(t, no_queue, alias, bytes, RS_ALLOC_HOST);
}

#define REGISTER(sym)                                                                              \
	RS_HOOK(sym, (void *p, size_t bytesize, unsigned int Flags))                               \
	{                                                                                          \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, (p, bytesize, Flags));                                            \
		r = rs_real.sym(p, bytesize, Flags);                                               \
		if (r == CUDA_SUCCESS)                                                             \
			registered(t, p, bytesize);                                                \
		RS_LEAVE(t, r);                                                                    \
	}

REGISTER(cuMemHostRegister)
REGISTER(cuMemHostRegister_v2)
