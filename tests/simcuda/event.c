/* SPDX-License-Identifier: MIT */
/*
 * Events: a reference to the op that recorded last. Times come from the virtual clock (clock.c).
 *
 * Recording an event in a captured stream makes it a capture event: waiting for it pulls the waiting
 * stream into the capture, and it has no state on the device.
 *
 * An interprocess event has state that other processes see (sync.c): a record is also a ticket there, and
 * waits, queries and synchronisation ask for the last ticket, whoever recorded it. Driver lock held.
 */
#include "tests/simcuda/vmm.h"

#include <stdlib.h>

SIM_API(cuEventCreate, SIM_CTX, P(CUevent *ret, unsigned flags), P(ret, flags))
{
	CUevent e;

	if (!ret || flags > 7 ||
	    ((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING)))
		return CUDA_ERROR_INVALID_VALUE;
	e = calloc(1, sizeof(*e));
	if (e && (flags & CU_EVENT_INTERPROCESS))
		e->sync = sim_sync_event();
	if (!e || ((flags & CU_EVENT_INTERPROCESS) && !e->sync) || sim_handle_add(e, SIM_H_EVENT)) {
		if (e)
			sim_sync_unref(e->sync);
		free(e);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	e->ctx = call->ctx;
	e->flags = flags;
	*ret = e;
	return CUDA_SUCCESS;
}

static CUresult destroy(CUevent e)
{
	if (!sim_handle_is(e, SIM_H_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	sim_capture_drop_event(e);
	if (e->op)
		sim_op_unref(e->op);
	sim_handle_del(e);
	sim_sync_unref(e->sync);
	free(e);
	return CUDA_SUCCESS;
}

SIM_API(cuEventDestroy, SIM_INIT, P(CUevent e), P(e))
{
	return destroy(e);
}

SIM_API(cuEventDestroy_v2, SIM_INIT, P(CUevent e), P(e))
{
	return destroy(e);
}

CUresult sim_event_record(CUevent e, CUstream s)
{
	struct sim_work w = {.kind = SIM_WORK_EVENT, .event = e};
	struct sim_op *op = NULL;
	CUresult r;

	if (e->sync && sim_sync_work(SIM_WORK_SIGNAL, e->sync, sim_sync_record(e->sync), &w))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = sim_stream_submit(s, &w, &op);
	if (!op)
		return r;
	if (e->op)
		sim_op_unref(e->op);
	e->op = op;
	return r;
}

static CUresult record(struct sim_call *call, CUevent e, CUstream h, unsigned flags)
{
	CUstream s;
	CUresult r;

	if (flags > CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	r = sim_stream_get(call, h, &s);
	if (r)
		return r;
	if (!sim_handle_is(e, SIM_H_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	if (e->ctx->dev_id != s->ctx->dev_id)
		return CUDA_ERROR_INVALID_HANDLE;
	if (s->cap && e->sync)
		return sim_capture_break(s, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	if (s->cap && flags == CU_EVENT_RECORD_EXTERNAL) {
		struct sim_work w = {.kind = SIM_WORK_EVENT, .event = e};

		return sim_capture_add(s, &w, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
	}
	if (s->cap)
		return sim_capture_record(s, e);
	sim_capture_drop_event(e);
	return sim_event_record(e, s);
}

SIM_TWINS(cuEventRecord, _ptsz, SIM_CTX, P(CUevent e, CUstream h), P(e, h))
{
	return record(call, e, h, 0);
}

SIM_TWINS(cuEventRecordWithFlags, _ptsz, SIM_CTX, P(CUevent e, CUstream h, unsigned flags),
	  P(e, h, flags))
{
	return record(call, e, h, flags);
}

static CUresult wait_shared(CUstream s, CUevent e)
{
	uint64_t ticket = sim_sync_last(e->sync);
	struct sim_work w;

	if (s->cap)
		return sim_capture_break(s, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	if (!ticket)
		return CUDA_SUCCESS;
	if (sim_sync_work(SIM_WORK_AWAIT, e->sync, ticket, &w))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return sim_stream_submit(s, &w, NULL);
}

/* The host waits for the last record, of whatever process. */
static CUresult synchronize_shared(CUevent e)
{
	struct sim_work w;
	struct sim_op *op;
	CUresult r;

	if (!sim_handle_is(e->ctx, SIM_H_CTX))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (sim_sync_work(SIM_WORK_AWAIT, e->sync, sim_sync_last(e->sync), &w))
		return CUDA_ERROR_OUT_OF_MEMORY;
	op = sim_op_new(e->ctx, 0, &w);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	sim_op_ref(op);
	if (e->op) /* what this process recorded itself is waited for as such */
		sim_op_after(op, e->op);
	sim_sched_enqueue(op);
	sim_sched_kick();
	r = sim_sched_wait(op);
	sim_op_unref(op);
	return r;
}

static CUresult query_shared(CUevent e)
{
	if (!sim_handle_is(e->ctx, SIM_H_CTX))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (e->op)
		sim_sched_poll(e->op);
	if (e->ctx->sticky)
		return e->ctx->sticky;
	return sim_sync_done(e->sync, sim_sync_last(e->sync)) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult sim_event_wait(CUstream s, CUevent e, unsigned flags)
{
	struct sim_work nop = {.kind = SIM_WORK_NOP};
	struct sim_op *op;
	CUresult r;

	if (e->sync)
		return wait_shared(s, e);
	if (s->cap && flags == CU_EVENT_WAIT_EXTERNAL) {
		struct sim_work w = {.kind = SIM_WORK_EVENTWAIT, .event = e};

		return sim_capture_add(s, &w, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
	}
	if (e->cap || s->cap)
		return sim_capture_wait(s, e);
	if (!e->op)
		return CUDA_SUCCESS;
	op = sim_op_new(s->ctx, s->id, &nop);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = sim_op_after(op, e->op) ? CUDA_ERROR_OUT_OF_MEMORY : sim_stream_join(s, op);
	sim_sched_enqueue(op);
	sim_stream_set_tail(s, op);
	if (!r)
		sim_sched_kick();
	return r;
}

SIM_TWINS(cuStreamWaitEvent, _ptsz, SIM_CTX, P(CUstream h, CUevent e, unsigned flags),
	  P(h, e, flags))
{
	CUstream s;
	CUresult r;

	if (flags > CU_EVENT_WAIT_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	r = sim_stream_get(call, h, &s);
	if (r)
		return r;
	if (!sim_handle_is(e, SIM_H_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	return sim_event_wait(s, e, flags);
}

SIM_API(cuEventQuery, SIM_INIT | SIM_UNSAFE, P(CUevent e), P(e))
{
	if (!sim_handle_is(e, SIM_H_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	if (e->cap)
		return CUDA_ERROR_CAPTURED_EVENT;
	if (e->sync)
		return query_shared(e);
	if (!e->op)
		return CUDA_SUCCESS;
	sim_sched_poll(e->op);
	if (e->op->ctx->sticky)
		return e->op->ctx->sticky;
	if (e->op->state != SIM_OP_DONE)
		return CUDA_ERROR_NOT_READY;
	sim_clock_host_saw(e->op);
	return CUDA_SUCCESS;
}

SIM_API(cuEventSynchronize, SIM_INIT | SIM_UNSAFE, P(CUevent e), P(e))
{
	if (!sim_handle_is(e, SIM_H_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	if (e->cap)
		return CUDA_ERROR_CAPTURED_EVENT;
	if (e->sync)
		return synchronize_shared(e);
	return e->op ? sim_sched_wait(e->op) : CUDA_SUCCESS;
}

static CUresult elapsed(float *ms, CUevent a, CUevent b)
{
	if (!ms)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_handle_is(a, SIM_H_EVENT) || !sim_handle_is(b, SIM_H_EVENT) || !a->op || !b->op ||
	    ((a->flags | b->flags) & CU_EVENT_DISABLE_TIMING))
		return CUDA_ERROR_INVALID_HANDLE;
	if (a->op->ctx->sticky)
		return a->op->ctx->sticky;
	if (a->op->state != SIM_OP_DONE || b->op->state != SIM_OP_DONE)
		return CUDA_ERROR_NOT_READY;
	sim_sched_force_time(a->op);
	sim_sched_force_time(b->op);
	*ms = (float)(((double)b->op->end_ns - (double)a->op->end_ns) / 1e6);
	return CUDA_SUCCESS;
}

SIM_API(cuEventElapsedTime, SIM_INIT, P(float *ms, CUevent a, CUevent b), P(ms, a, b))
{
	return elapsed(ms, a, b);
}

SIM_API(cuEventElapsedTime_v2, SIM_INIT, P(float *ms, CUevent a, CUevent b), P(ms, a, b))
{
	return elapsed(ms, a, b);
}

/* An event that stands for everything queued in a context. */
SIM_API(cuCtxRecordEvent, SIM_INIT, P(CUcontext ctx, CUevent e), P(ctx, e))
{
	struct sim_work w = {.kind = SIM_WORK_EVENT, .event = e};
	struct sim_op *op;
	int bad = 0;

	if (!sim_handle_is(ctx, SIM_H_CTX))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!sim_handle_is(e, SIM_H_EVENT) || e->ctx != ctx)
		return CUDA_ERROR_INVALID_HANDLE;
	op = sim_op_new(ctx, 0, &w);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (CUstream s = ctx->streams; s; s = s->next)
		bad |= s->tail ? sim_op_after(op, s->tail) : 0;
	sim_op_ref(op);
	sim_sched_enqueue(op);
	sim_capture_drop_event(e);
	if (e->op)
		sim_op_unref(e->op);
	e->op = op;
	sim_sched_kick();
	return bad ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

SIM_API(cuCtxWaitEvent, SIM_INIT, P(CUcontext ctx, CUevent e), P(ctx, e))
{
	if (!sim_handle_is(ctx, SIM_H_CTX))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!sim_handle_is(e, SIM_H_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	for (CUstream s = ctx->streams; s; s = s->next) {
		CUresult r =
			s->cap ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : sim_event_wait(s, e, 0);

		if (r)
			return r;
	}
	return CUDA_SUCCESS;
}
