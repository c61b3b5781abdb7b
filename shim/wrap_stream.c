/* SPDX-License-Identifier: MIT */
/*
 * Streams, capture and host functions (groups D1, C7, E1); what orders streams is in wrap_order.c.
 *
 * While a stream is being captured its calls are recorded by the driver, not run; rs_state.captures keeps
 * the question cheap.
 * Callers: the program, any thread. No locks here.
 */
#include "shim/call.h"
#include "shim/capture.h"

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

static void began(struct rs_tls *t, CUstream stream, enum rs_flavour flavour)
{
	__atomic_fetch_add(&rs_state.captures, 1, __ATOMIC_RELAXED);
	rs_capture_began(rs_queue_of(t, stream, flavour));
}

#define BEGIN(sym, flavour, params, args)                                                          \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, args);                                                            \
		r = rs_real.sym args;                                                              \
		if (r == CUDA_SUCCESS)                                                             \
			began(t, hStream, flavour);                                                \
		RS_LEAVE(t, r);                                                                    \
	}
#define P_B (CUstream hStream, CUstreamCaptureMode mode)
BEGIN(cuStreamBeginCapture, RS_PLAIN, (CUstream hStream), (hStream))
BEGIN(cuStreamBeginCapture_ptsz, RS_PTSZ, (CUstream hStream), (hStream))
BEGIN(cuStreamBeginCapture_v2, RS_PLAIN, P_B, (hStream, mode))
BEGIN(cuStreamBeginCapture_v2_ptsz, RS_PTSZ, P_B, (hStream, mode))
#define P_T                                                                                        \
	(CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,                        \
	 const CUgraphEdgeData *dependencyData, size_t numDependencies, CUstreamCaptureMode mode)
#define A_T (hStream, hGraph, dependencies, dependencyData, numDependencies, mode)
BEGIN(cuStreamBeginCaptureToGraph, RS_PLAIN, P_T, A_T)
BEGIN(cuStreamBeginCaptureToGraph_ptsz, RS_PTSZ, P_T, A_T)

/* What the stream's next node comes after is said by hand. */
#define DEPENDENCIES(sym, flavour, params, args)                                                   \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		const int set = flags & CU_STREAM_SET_CAPTURE_DEPENDENCIES;                        \
		uint64_t event;                                                                    \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, args);                                                            \
		event = rs_capture_resets(t, hStream, flavour, set);                               \
		r = rs_real.sym args;                                                              \
		rs_capture_reset(t, hStream, flavour, event, set, r);                              \
		RS_LEAVE(t, r);                                                                    \
	}
#define P_D                                                                                        \
	(CUstream hStream, CUgraphNode * dependencies, size_t numDependencies, unsigned int flags)
#define A_D (hStream, dependencies, numDependencies, flags)
DEPENDENCIES(cuStreamUpdateCaptureDependencies, RS_PLAIN, P_D, A_D)
DEPENDENCIES(cuStreamUpdateCaptureDependencies_ptsz, RS_PTSZ, P_D, A_D)
#define P_E                                                                                        \
	(CUstream hStream, CUgraphNode * dependencies, const CUgraphEdgeData *dependencyData,      \
	 size_t numDependencies, unsigned int flags)
#define A_E (hStream, dependencies, dependencyData, numDependencies, flags)
DEPENDENCIES(cuStreamUpdateCaptureDependencies_v2, RS_PLAIN, P_E, A_E)
DEPENDENCIES(cuStreamUpdateCaptureDependencies_v2_ptsz, RS_PTSZ, P_E, A_E)

static void ended(struct rs_tls *t, struct rs_queue q, CUgraph graph)
{
	if (__atomic_load_n(&rs_state.captures, __ATOMIC_RELAXED))
		__atomic_fetch_sub(&rs_state.captures, 1, __ATOMIC_RELAXED);
	rs_capture_over(t, q, graph);
}

/* An invalidated capture ends with an error, but it ends; another error may leave it as it is. */
#define END(sym, flavour)                                                                          \
	RS_HOOK(sym, (CUstream hStream, CUgraph * phGraph))                                        \
	{                                                                                          \
		struct rs_queue q;                                                                 \
		int was;                                                                           \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, (hStream, phGraph));                                              \
		q = rs_queue_of(t, hStream, flavour);                                              \
		was = rs_queue_capturing(hStream, flavour);                                        \
		if (was)                                                                           \
			rs_capture_ends(q);                                                        \
		r = rs_real.sym(hStream, phGraph);                                                 \
		if (r == CUDA_SUCCESS || (was && !rs_queue_capturing(hStream, flavour)))           \
			ended(t, q, r == CUDA_SUCCESS ? *phGraph : NULL);                          \
		RS_LEAVE(t, r);                                                                    \
	}
END(cuStreamEndCapture, RS_PLAIN)
END(cuStreamEndCapture_ptsz, RS_PTSZ)
