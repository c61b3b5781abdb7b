/* SPDX-License-Identifier: MIT */
/*
 * Streams, capture and host functions (groups D1, C7, E1); what orders streams is in wrap_order.c.
 *
 * While a stream is being captured its calls are recorded by the driver, not run; rs_state.captures keeps
 * the question cheap.
 * Callers: the program, any thread. No locks here.
 */
#include "shim/call.h"

#define DESTROY(sym)                                                                               \
	RS_HOOK(sym, (CUstream hStream))                                                           \
	{                                                                                          \
		struct rs_queue q;                                                                 \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, (hStream));                                                       \
		q = rs_queue_of(t, hStream, RS_PLAIN);                                             \
		if ((uintptr_t)hStream > 2)                                                        \
			RS_ENGINE(rs_engine_queue_destroy(rs_state.engine, q));                    \
		r = rs_real.sym(hStream);                                                          \
		if (r != CUDA_SUCCESS)                                                             \
			RS_ENGINE(rs_engine_queue_stays(rs_state.engine, q));                      \
		RS_LEAVE(t, r);                                                                    \
	}
DESTROY(cuStreamDestroy)
DESTROY(cuStreamDestroy_v2)

static void created(struct rs_tls *t, CUstream stream, unsigned flags)
{
	rs_ctx_current(t);
	RS_ENGINE(rs_engine_queue_create(rs_state.engine, t->thread,
					 rs_queue_of(t, stream, RS_PLAIN),
					 !(flags & CU_STREAM_NON_BLOCKING)));
}

/* Blocking streams are ordered with the legacy stream. Here a context is met that no hooked call made. */
#define CREATE(sym, params, args, flags)                                                           \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, args);                                                            \
		r = rs_real.sym args;                                                              \
		if (r == CUDA_SUCCESS)                                                             \
			created(t, *phStream, flags);                                              \
		RS_LEAVE(t, r);                                                                    \
	}
CREATE(cuStreamCreate, (CUstream * phStream, unsigned int Flags), (phStream, Flags), Flags)
CREATE(cuStreamCreateWithPriority, (CUstream * phStream, unsigned int flags, int priority),
       (phStream, flags, priority), flags)
CREATE(cuGreenCtxStreamCreate,
       (CUstream * phStream, CUgreenCtx greenCtx, unsigned int flags, int priority),
       (phStream, greenCtx, flags, priority), flags)

/* --- host code ---------------------------------------------------------------------------------- */

/* When it runs, the host knows that all before it has ended; whoever that is, it comes after. */
static void host_may_know(struct rs_tls *t, const struct rs_call *call, CUresult r)
{
	if (r == CUDA_SUCCESS && !call->capturing)
		RS_ENGINE(rs_engine_synced_queue(rs_state.engine, t->thread, call->q));
}

#define HOST(sym, flavour, params, args)                                                           \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		struct rs_call call;                                                               \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, args);                                                            \
		rs_call_begin(&call, t, RS_EP_##sym, RS_CALL_HOST, hStream, flavour, NULL);        \
		call.host_effect = 1;                                                              \
		RS_CALL(t, &call, r, sym, args);                                                   \
		host_may_know(t, &call, r);                                                        \
		RS_LEAVE(t, r);                                                                    \
	}

#define P_H (CUstream hStream, CUhostFn fn, void *userData)
#define A_H (hStream, fn, userData)
HOST(cuLaunchHostFunc, RS_PLAIN, P_H, A_H)
HOST(cuLaunchHostFunc_ptsz, RS_PTSZ, P_H, A_H)
#define P_C (CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags)
#define A_C (hStream, callback, userData, flags)
HOST(cuStreamAddCallback, RS_PLAIN, P_C, A_C)
HOST(cuStreamAddCallback_ptsz, RS_PTSZ, P_C, A_C)

/* --- capture ------------------------------------------------------------------------------------ */

#define BEGIN(sym, params, args)                                                                   \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, args);                                                            \
		r = rs_real.sym args;                                                              \
		if (r == CUDA_SUCCESS)                                                             \
			__atomic_fetch_add(&rs_state.captures, 1, __ATOMIC_RELAXED);               \
		RS_LEAVE(t, r);                                                                    \
	}
BEGIN(cuStreamBeginCapture, (CUstream hStream), (hStream))
BEGIN(cuStreamBeginCapture_ptsz, (CUstream hStream), (hStream))
BEGIN(cuStreamBeginCapture_v2, (CUstream hStream, CUstreamCaptureMode mode), (hStream, mode))
BEGIN(cuStreamBeginCapture_v2_ptsz, (CUstream hStream, CUstreamCaptureMode mode), (hStream, mode))
#define P_T                                                                                        \
	(CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,                        \
	 const CUgraphEdgeData *dependencyData, size_t numDependencies, CUstreamCaptureMode mode)
#define A_T (hStream, hGraph, dependencies, dependencyData, numDependencies, mode)
BEGIN(cuStreamBeginCaptureToGraph, P_T, A_T)
BEGIN(cuStreamBeginCaptureToGraph_ptsz, P_T, A_T)

/* An invalidated capture ends with an error, but it ends; another error may leave it as it is. */
#define END(sym, flavour)                                                                          \
	RS_HOOK(sym, (CUstream hStream, CUgraph * phGraph))                                        \
	{                                                                                          \
		int was;                                                                           \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, (hStream, phGraph));                                              \
		was = rs_queue_capturing(hStream, flavour);                                        \
		r = rs_real.sym(hStream, phGraph);                                                 \
		if ((r == CUDA_SUCCESS || (was && !rs_queue_capturing(hStream, flavour))) &&       \
		    __atomic_load_n(&rs_state.captures, __ATOMIC_RELAXED))                         \
			__atomic_fetch_sub(&rs_state.captures, 1, __ATOMIC_RELAXED);               \
		RS_LEAVE(t, r);                                                                    \
	}
END(cuStreamEndCapture, RS_PLAIN)
END(cuStreamEndCapture_ptsz, RS_PTSZ)
