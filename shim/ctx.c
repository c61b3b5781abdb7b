/* SPDX-License-Identifier: MIT */
/*
 * Which context a call belongs to, and the calls that change it.
 *
 * Invariants: rs_state.ctx_sole is the process's only context as long as only one has been seen, so
 * that the usual program never asks. With several, a thread keeps its current one until it calls
 * something that may change it, or any context goes (ctx_gen).
 * A context is forgotten after the driver has destroyed it, for the driver may refuse. Meanwhile the tool does
 * nothing in it, and nobody gets its handle.
 * Locks: one mutex over the real calls that make contexts or end them.
 */
#include "shim/arrays.h"
#include "shim/queue.h"
#include "shim/guard.h"
#include "shim/kernels.h"

#include <pthread.h>

#define DEVICES 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext primaries[DEVICES]; /* as far as the program has retained them */
static uint64_t first_seen;	     /* 0: none yet; UINT64_MAX: several */

static void note(CUcontext ctx)
{
	uint64_t c = (uintptr_t)ctx, expected = 0;

	if (!c)
		return;
	/* Who sees a second one says so first; who has seen the first looks again: whichever comes last knows of both. */
	if (__atomic_compare_exchange_n(&first_seen, &expected, c, 0, __ATOMIC_SEQ_CST,
					__ATOMIC_SEQ_CST)) {
		__atomic_store_n(&rs_state.ctx_sole, c, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&first_seen, __ATOMIC_SEQ_CST) != c)
			__atomic_store_n(&rs_state.ctx_sole, 0, __ATOMIC_SEQ_CST);
	} else if (expected != c && expected != UINT64_MAX) {
		__atomic_store_n(&first_seen, UINT64_MAX, __ATOMIC_SEQ_CST);
		__atomic_store_n(&rs_state.ctx_sole, 0, __ATOMIC_SEQ_CST);
	}
}

/* The context is gone: a new one may get its handle. */
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

int rs_queue_capturing_slow(CUstream stream, uint64_t *ret_capture)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	cuuint64_t id = 0;

	*ret_capture = 0;
	if (rs_real.cuStreamGetCaptureInfo(stream, &status, &id) != CUDA_SUCCESS)
		return 0;
	if (status == CU_STREAM_CAPTURE_STATUS_ACTIVE)
		*ret_capture = id;
	return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* --- calls that make a context or make it current ------------------------------------------------ */

#define MAKE(sym, params, args, made)                                                              \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, args);                                                            \
		pthread_mutex_lock(&lock);                                                         \
		r = rs_real.sym args;                                                              \
		t->ctx_gen = UINT32_MAX;                                                           \
		if (r == CUDA_SUCCESS && pctx) {                                                   \
			note(*pctx);                                                               \
			made;                                                                      \
		}                                                                                  \
		pthread_mutex_unlock(&lock);                                                       \
		RS_LEAVE(t, r);                                                                    \
	}

static void primary_of(CUdevice dev, CUcontext ctx)
{
	if (dev >= 0 && dev < DEVICES)
		primaries[dev] = ctx;
}

MAKE(cuCtxCreate_v2, (CUcontext * pctx, unsigned int flags, CUdevice dev), (pctx, flags, dev), )
MAKE(cuCtxCreate_v3,
     (CUcontext * pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags,
      CUdevice dev),
     (pctx, paramsArray, numParams, flags, dev), )
MAKE(cuCtxCreate_v4,
     (CUcontext * pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev),
     (pctx, ctxCreateParams, flags, dev), )
MAKE(cuCtxAttach, (CUcontext * pctx, unsigned int flags), (pctx, flags), )
MAKE(cuDevicePrimaryCtxRetain, (CUcontext * pctx, CUdevice dev), (pctx, dev),
     primary_of(dev, *pctx))

#define POP(sym)                                                                                   \
	RS_HOOK(sym, (CUcontext * pctx))                                                           \
	{                                                                                          \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, (pctx));                                                          \
		r = rs_real.sym(pctx);                                                             \
		t->ctx_gen = UINT32_MAX;                                                           \
		if (r == CUDA_SUCCESS && pctx)                                                     \
			note(*pctx);                                                               \
		RS_LEAVE(t, r);                                                                    \
	}

/* What a pop puts into *pctx is no longer current; the one below it is asked for when needed. */
POP(cuCtxPopCurrent)
POP(cuCtxPopCurrent_v2)

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

/* gone: whether it has gone, asked after the call succeeded. */
#define END(sym, params, args, ctx, gone)                                                          \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		CUcontext leaving;                                                                 \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, args);                                                            \
		pthread_mutex_lock(&lock);                                                         \
		leaving = ctx;                                                                     \
		RS_ENGINE(rs_engine_ctx_leaves(rs_state.engine, (uintptr_t)leaving));              \
		rs_devops_ctx_leaves((uintptr_t)leaving);                                          \
		r = rs_real.sym args;                                                              \
		t->ctx_gen = UINT32_MAX;                                                           \
		if (r == CUDA_SUCCESS && (gone))                                                   \
			forget(t, leaving);                                                        \
		rs_devops_ctx_leaves(0);                                                           \
		pthread_mutex_unlock(&lock);                                                       \
		RS_LEAVE(t, r);                                                                    \
	}

END(cuCtxDestroy, (CUcontext ctx), (ctx), ctx, 1)
END(cuCtxDestroy_v2, (CUcontext ctx), (ctx), ctx, 1)

/* Attach and detach count uses of a context; the last detach destroys it. */
static int detached(CUcontext ctx)
{
	unsigned version;

	return rs_real.cuCtxGetApiVersion(ctx, &version) != CUDA_SUCCESS;
}

END(cuCtxDetach, (CUcontext ctx), (ctx), ctx, detached(ctx))

static CUcontext primary(CUdevice dev)
{
	return dev >= 0 && dev < DEVICES ? primaries[dev] : NULL;
}

END(cuDevicePrimaryCtxReset, (CUdevice dev), (dev), primary(dev), 1)
END(cuDevicePrimaryCtxReset_v2, (CUdevice dev), (dev), primary(dev), 1)

/* The last release destroys; whether it was the last shows afterwards. */
static int released(CUdevice dev)
{
	unsigned flags;
	int active = 1;

	return rs_real.cuDevicePrimaryCtxGetState(dev, &flags, &active) == CUDA_SUCCESS && !active;
}

END(cuDevicePrimaryCtxRelease, (CUdevice dev), (dev), primary(dev), released(dev))
END(cuDevicePrimaryCtxRelease_v2, (CUdevice dev), (dev), primary(dev), released(dev))
