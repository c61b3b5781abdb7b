/* SPDX-License-Identifier: MIT */
/*
 * Which context a call belongs to, and the calls that change it.
 *
 * Invariants: rs_state.ctx_sole is the process's only context as long as only one has been seen, so
 * that the usual program never asks. With several, a thread keeps its current one until it calls
 * something that may change it, or any context goes (ctx_gen).
 * Locks: none.
 */
#include "shim/arrays.h"
#include "shim/queue.h"
#include "shim/guard.h"
#include "shim/kernels.h"

static uint64_t first_seen; /* 0: none yet; UINT64_MAX: several */

static void note(CUcontext ctx)
{
	uint64_t c = (uintptr_t)ctx, expected = 0;

	if (!c)
		return;
	if (__atomic_compare_exchange_n(&first_seen, &expected, c, 0, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED)) {
		__atomic_store_n(&rs_state.ctx_sole, c, __ATOMIC_RELAXED);
	} else if (expected != c && expected != UINT64_MAX) {
		__atomic_store_n(&rs_state.ctx_sole, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&first_seen, UINT64_MAX, __ATOMIC_RELAXED);
	}
}

/* The context is about to go: a new one may get its handle. */
static void forget(struct rs_tls *t, CUcontext ctx)
{
	uint64_t c = (uintptr_t)ctx;

	if (!c)
		return;
	RS_ENGINE(rs_engine_ctx_destroy(rs_state.engine, c));
	RS_ENGINE(rs_kernels_ctx_destroy(c));
	rs_devops_ctx_destroy(c);
	rs_arrays_ctx_destroy(c);
	__atomic_compare_exchange_n(&rs_state.ctx_sole, &c, 0, 0, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
	c = (uintptr_t)ctx;
	__atomic_compare_exchange_n(&first_seen, &c, 0, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	__atomic_fetch_add(&rs_state.ctx_gen, 1, __ATOMIC_RELAXED);
	t->ctx_gen = UINT32_MAX;
}

uint64_t rs_ctx_current_slow(struct rs_tls *t)
{
	uint32_t gen = __atomic_load_n(&rs_state.ctx_gen, __ATOMIC_RELAXED);
	CUcontext ctx = NULL;

	if (rs_real.cuCtxGetCurrent(&ctx) != CUDA_SUCCESS)
		return 0;
	note(ctx);
	t->ctx = (uintptr_t)ctx;
	t->ctx_gen = gen;
	return t->ctx;
}

uint64_t rs_ctx_of_stream(struct rs_tls *t, CUstream stream)
{
	CUcontext ctx = NULL;

	if (rs_real.cuStreamGetCtx(stream, &ctx) == CUDA_SUCCESS && ctx)
		return (uintptr_t)ctx;
	return rs_ctx_current(t);
}

int rs_queue_capturing_slow(CUstream stream)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	return rs_real.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* --- calls that make a context or make it current ------------------------------------------------ */

#define CREATE(sym, params, args)                                                                  \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, args);                                                            \
		r = rs_real.sym args;                                                              \
		t->ctx_gen = UINT32_MAX;                                                           \
		if (r == CUDA_SUCCESS && pctx)                                                     \
			note(*pctx);                                                               \
		RS_LEAVE(t, r);                                                                    \
	}

CREATE(cuCtxCreate_v2, (CUcontext * pctx, unsigned int flags, CUdevice dev), (pctx, flags, dev))
CREATE(cuCtxCreate_v3,
       (CUcontext * pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags,
	CUdevice dev),
       (pctx, paramsArray, numParams, flags, dev))
CREATE(cuCtxCreate_v4,
       (CUcontext * pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev),
       (pctx, ctxCreateParams, flags, dev))
CREATE(cuCtxAttach, (CUcontext * pctx, unsigned int flags), (pctx, flags))
CREATE(cuDevicePrimaryCtxRetain, (CUcontext * pctx, CUdevice dev), (pctx, dev))

/* What a pop puts into *pctx is no longer current; the one below it is asked for when needed. */
CREATE(cuCtxPopCurrent, (CUcontext * pctx), (pctx))
CREATE(cuCtxPopCurrent_v2, (CUcontext * pctx), (pctx))

#define SET(sym)                                                                                   \
	RS_HOOK(sym, (CUcontext ctx))                                                              \
	{                                                                                          \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, (ctx));                                                           \
		r = rs_real.sym(ctx);                                                              \
		t->ctx_gen = UINT32_MAX;                                                           \
		if (r == CUDA_SUCCESS)                                                             \
			note(ctx);                                                                 \
		RS_LEAVE(t, r);                                                                    \
	}

SET(cuCtxSetCurrent)
SET(cuCtxPushCurrent)
SET(cuCtxPushCurrent_v2)

/* --- calls that end one ------------------------------------------------------------------------- */

#define DESTROY(sym)                                                                               \
	RS_HOOK(sym, (CUcontext ctx))                                                              \
	{                                                                                          \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, (ctx));                                                           \
		forget(t, ctx);                                                                    \
		r = rs_real.sym(ctx);                                                              \
		RS_LEAVE(t, r);                                                                    \
	}

DESTROY(cuCtxDestroy)
DESTROY(cuCtxDestroy_v2)

/* Attach and detach count uses of a context; the last detach destroys it. */
RS_HOOK(cuCtxDetach, (CUcontext ctx))
{
	unsigned version;
	CUresult r;

	RS_ENTER(t, cuCtxDetach, (ctx));
	r = rs_real.cuCtxDetach(ctx);
	t->ctx_gen = UINT32_MAX;
	if (r == CUDA_SUCCESS && rs_real.cuCtxGetApiVersion(ctx, &version) != CUDA_SUCCESS)
		forget(t, ctx);
	RS_LEAVE(t, r);
}

/* The primary context of a device, without retaining it for longer than the question takes. */
static CUcontext primary(CUdevice dev)
{
	CUcontext ctx = NULL;
	unsigned flags;
	int active = 0;

	if (rs_real.cuDevicePrimaryCtxGetState(dev, &flags, &active) != CUDA_SUCCESS || !active)
		return NULL;
	if (rs_real.cuDevicePrimaryCtxRetain(&ctx, dev) != CUDA_SUCCESS)
		return NULL;
	rs_real.cuDevicePrimaryCtxRelease_v2(dev);
	return ctx;
}

#define RESET(sym)                                                                                 \
	RS_HOOK(sym, (CUdevice dev))                                                               \
	{                                                                                          \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, (dev));                                                           \
		forget(t, primary(dev));                                                           \
		r = rs_real.sym(dev);                                                              \
		RS_LEAVE(t, r);                                                                    \
	}

RESET(cuDevicePrimaryCtxReset)
RESET(cuDevicePrimaryCtxReset_v2)

/* The last release destroys; whether it was the last shows afterwards. */
#define RELEASE(sym)                                                                               \
	RS_HOOK(sym, (CUdevice dev))                                                               \
	{                                                                                          \
		unsigned flags;                                                                    \
		CUcontext ctx;                                                                     \
		int active = 1;                                                                    \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, (dev));                                                           \
		ctx = primary(dev);                                                                \
		r = rs_real.sym(dev);                                                              \
		if (r == CUDA_SUCCESS &&                                                           \
		    rs_real.cuDevicePrimaryCtxGetState(dev, &flags, &active) == CUDA_SUCCESS &&    \
		    !active)                                                                       \
			forget(t, ctx);                                                            \
		RS_LEAVE(t, r);                                                                    \
	}

RELEASE(cuDevicePrimaryCtxRelease)
RELEASE(cuDevicePrimaryCtxRelease_v2)
