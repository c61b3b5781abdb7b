/* SPDX-License-Identifier: MIT */
/*
 * What orders streams: events, waits, synchronisation (entry_points.def, groups C8, D1 to D3).
 *
 * Told after the real call succeeded; what a capture records is a graph's order, and told of that capture only. Where the
 * engine has no word for an order it is told of a stronger one: that may hide a race, it cannot invent one.
 * Synchronising is also the moment at which the engine looks for finished digests.
 * Callers: the program, any thread. No locks here.
 */
#include "shim/call.h"
#include "shim/capture.h"
#include "shim/describe.h"

#define AFTER(sym, params, args, told) AROUND(sym, params, args, , told)
#define AROUND(sym, params, args, before, told)                                                    \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, args);                                                            \
		before;                                                                            \
		r = rs_real.sym args;                                                              \
		if (r == CUDA_SUCCESS)                                                             \
			told;                                                                      \
		RS_LEAVE(t, r);                                                                    \
	}

/*
 * In a captured graph such a call is a node at which the graph waits for others, or lets them go on: between the nodes that come
 * before it and those behind it, they may write anything.
 */
static int others(struct rs_tls *t, enum rs_ep ep, CUstream stream, enum rs_flavour flavour)
{
	struct rs_call call;

	if (!rs_queue_capturing(stream, flavour))
		return 0;
	rs_call_begin(&call, t, ep, RS_CALL_OTHER, stream, flavour, NULL);
	call.everything = 1;
	rs_guard_before(t, &call);
	rs_guard_after(t, &call, CUDA_SUCCESS);
	rs_capture_unseen(t, stream, flavour, 1);
	return 1;
}

/* AROUND, of a call that is a node, where `is_node`. */
#define AROUND_NODE(sym, flavour, stream, is_node, params, args, before, told)                     \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		int node;                                                                          \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, args);                                                            \
		node = (is_node) && others(t, RS_EP_##sym, stream, flavour);                       \
		before;                                                                            \
		r = rs_real.sym args;                                                              \
		if (r == CUDA_SUCCESS)                                                             \
			told;                                                                      \
		if (node)                                                                          \
			rs_capture_unseen(t, stream, flavour, 0);                                  \
		RS_LEAVE(t, r);                                                                    \
	}

/* --- events ------------------------------------------------------------------------------------- */

static void recorded(struct rs_tls *t, CUevent event, CUstream stream, enum rs_flavour flavour)
{
	if (rs_queue_capturing(stream, flavour))
		rs_capture_recorded(t, stream, flavour, (uintptr_t)event);
	else
		RS_ENGINE(rs_engine_event_record(rs_state.engine, t->thread,
						 rs_queue_of(t, stream, flavour),
						 (uintptr_t)event));
}

#define RECORD(sym, flavour)                                                                       \
	AFTER(sym, (CUevent hEvent, CUstream hStream), (hEvent, hStream),                          \
	      recorded(t, hEvent, hStream, flavour))
RECORD(cuEventRecord, RS_PLAIN)
RECORD(cuEventRecord_ptsz, RS_PTSZ)
#define RECORD_FLAGS(sym, flavour)                                                                 \
	AROUND_NODE(sym, flavour, hStream, flags &CU_EVENT_RECORD_EXTERNAL,                        \
		    (CUevent hEvent, CUstream hStream, unsigned int flags),                        \
		    (hEvent, hStream, flags), , recorded(t, hEvent, hStream, flavour))
RECORD_FLAGS(cuEventRecordWithFlags, RS_PLAIN)
RECORD_FLAGS(cuEventRecordWithFlags_ptsz, RS_PTSZ)

/* external: of a captured wait, that nobody in the graph need be who is waited for. */
static void waits(struct rs_tls *t, uint64_t event, CUstream stream, enum rs_flavour flavour,
		  int external)
{
	if (rs_queue_capturing(stream, flavour))
		rs_capture_waited(t, stream, flavour, external ? 0 : event);
	else
		RS_ENGINE(rs_engine_event_wait(rs_state.engine, t->thread,
					       rs_queue_of(t, stream, flavour), event));
}

#define WAIT(sym, flavour)                                                                         \
	AROUND_NODE(sym, flavour, hStream, Flags &CU_EVENT_WAIT_EXTERNAL,                          \
		    (CUstream hStream, CUevent hEvent, unsigned int Flags),                        \
		    (hStream, hEvent, Flags), ,                                                    \
		    waits(t, (uintptr_t)hEvent, hStream, flavour, Flags &CU_EVENT_WAIT_EXTERNAL))
WAIT(cuStreamWaitEvent, RS_PLAIN)
WAIT(cuStreamWaitEvent_ptsz, RS_PTSZ)

/* An event that the engine does not know is one whose waiters come after everything. */
static void forget(CUevent event)
{
	RS_ENGINE(rs_engine_event_destroy(rs_state.engine, (uintptr_t)event));
}

AFTER(cuEventDestroy, (CUevent hEvent), (hEvent), forget(hEvent))
AFTER(cuEventDestroy_v2, (CUevent hEvent), (hEvent), forget(hEvent))
/* All streams of a context at once. */
AFTER(cuCtxRecordEvent, (CUcontext hCtx, CUevent hEvent), (hCtx, hEvent), forget(hEvent))
AFTER(cuGreenCtxRecordEvent, (CUgreenCtx hCtx, CUevent hEvent), (hCtx, hEvent), forget(hEvent))

static void passed(CUevent event)
{
	RS_ENGINE(rs_engine_synced_event(rs_state.engine, (uintptr_t)event));
}

AFTER(cuCtxWaitEvent, (CUcontext hCtx, CUevent hEvent), (hCtx, hEvent), passed(hEvent))
AFTER(cuGreenCtxWaitEvent, (CUgreenCtx hCtx, CUevent hEvent), (hCtx, hEvent), passed(hEvent))
AFTER(cuEventQuery, (CUevent hEvent), (hEvent), passed(hEvent))
static void passed_waiting(CUevent event)
{
	passed(event);
	rs_guard_poll();
}
AFTER(cuEventSynchronize, (CUevent hEvent), (hEvent), passed_waiting(hEvent))

/* --- synchronisation ---------------------------------------------------------------------------- */

/* What may hold the device up, before the wait: other threads go on meanwhile. */
static uint64_t stalls_now(void)
{
	return rs_state.engine ? rs_engine_stalls(rs_state.engine) : 0;
}

static void synced(struct rs_tls *t, CUstream stream, enum rs_flavour flavour, uint64_t met)
{
	struct rs_queue q = rs_queue_of(t, stream, flavour);

	RS_ENGINE(rs_engine_synced_queue(rs_state.engine, t->thread, q));
	RS_ENGINE(rs_engine_queues_go_on_since(rs_state.engine, q.ctx, &q, met));
	rs_guard_poll();
}

#define SYNC(sym, flavour)                                                                         \
	AROUND(sym, (CUstream hStream), (hStream), uint64_t met = stalls_now(),                    \
	       synced(t, hStream, flavour, met))
SYNC(cuStreamSynchronize, RS_PLAIN)
SYNC(cuStreamSynchronize_ptsz, RS_PTSZ)
SYNC(cuStreamQuery, RS_PLAIN)
SYNC(cuStreamQuery_ptsz, RS_PTSZ)

static void synced_ctx(uint64_t ctx, uint64_t met)
{
	RS_ENGINE(rs_engine_synced_ctx(rs_state.engine, ctx));
	RS_ENGINE(rs_engine_queues_go_on_since(rs_state.engine, ctx, NULL, met));
	rs_guard_poll();
}

AROUND(cuCtxSynchronize, (void), (), uint64_t met = stalls_now(),
       synced_ctx(rs_ctx_current(t), met))
AROUND(cuCtxSynchronize_v2, (CUcontext ctx), (ctx), uint64_t met = stalls_now(),
       synced_ctx(ctx ? (uintptr_t)ctx : rs_ctx_current(t), met))

/* What comes after this on the stream waits for something that no event tells. */
static void stalls(struct rs_tls *t, CUstream stream, enum rs_flavour flavour)
{
	if (!rs_queue_capturing(stream, flavour))
		RS_ENGINE(rs_engine_queue_stalls(rs_state.engine, t->thread,
						 rs_queue_of(t, stream, flavour)));
}

/* --- semaphores --------------------------------------------------------------------------------- */

/* Somebody outside says when to go on: after whatever there was. */
static void semaphore_waits(struct rs_tls *t, CUstream stream, enum rs_flavour flavour)
{
	if (rs_queue_capturing(stream, flavour))
		rs_capture_waited(t, stream, flavour, 0);
	else
		RS_ENGINE(
			rs_engine_synced_ctx(rs_state.engine, rs_queue_of(t, stream, flavour).ctx));
}

#define WAIT_EXTERNAL(sym, flavour)                                                                \
	AROUND_NODE(sym, flavour, stream, 1,                                                       \
		    (const CUexternalSemaphore *extSemArray,                                       \
		     const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *paramsArray,                       \
		     unsigned int numExtSems, CUstream stream),                                    \
		    (extSemArray, paramsArray, numExtSems, stream), stalls(t, stream, flavour),    \
		    semaphore_waits(t, stream, flavour))
WAIT_EXTERNAL(cuWaitExternalSemaphoresAsync, RS_PLAIN)
WAIT_EXTERNAL(cuWaitExternalSemaphoresAsync_ptsz, RS_PTSZ)

static void value_waits(struct rs_tls *t, CUstream stream, enum rs_flavour flavour, uint64_t addr,
			uint64_t value, unsigned flags, unsigned bytes)
{
	if (!rs_queue_capturing(stream, flavour))
		rs_wait_stalls(t, rs_queue_of(t, stream, flavour), addr, value, flags, bytes);
}

/* A value in memory is waited for like an event of that address (wrap_fill.c records it). */
#define WAIT_VALUE(sym, flavour, type)                                                             \
	AROUND_NODE(sym, flavour, stream, 1,                                                       \
		    (CUstream stream, CUdeviceptr addr, type value, unsigned int flags),           \
		    (stream, addr, value, flags),                                                  \
		    value_waits(t, stream, flavour, addr, value, flags, sizeof(type)),             \
		    waits(t, addr, stream, flavour, 1))
WAIT_VALUE(cuStreamWaitValue32, RS_PLAIN, cuuint32_t)
WAIT_VALUE(cuStreamWaitValue32_ptsz, RS_PTSZ, cuuint32_t)
WAIT_VALUE(cuStreamWaitValue32_v2, RS_PLAIN, cuuint32_t)
WAIT_VALUE(cuStreamWaitValue32_v2_ptsz, RS_PTSZ, cuuint32_t)
WAIT_VALUE(cuStreamWaitValue64, RS_PLAIN, cuuint64_t)
WAIT_VALUE(cuStreamWaitValue64_ptsz, RS_PTSZ, cuuint64_t)
WAIT_VALUE(cuStreamWaitValue64_v2, RS_PLAIN, cuuint64_t)
WAIT_VALUE(cuStreamWaitValue64_v2_ptsz, RS_PTSZ, cuuint64_t)
