/* SPDX-License-Identifier: MIT */
/*
 * The engine's operations on the real driver (tracker/devops.h): events.
 *
 * An event recorded in a stream capture orders nodes of that capture's graph and nothing else. The driver answers any
 * other use of it, and a wait of a captured stream for an event from outside, by breaking the program's capture;
 * so these are refused here, with -EXDEV, before the driver sees them.
 * Spare events are kept per context (devops.h). Callers as in devops.c; no lock is held over driver calls.
 */
#include "shim/devops.h"

#include <stdlib.h>

struct rs_dev_event *rs_dev_event_take(struct rs_dev_context *c, enum rs_dev_spare kind)
{
	unsigned flags = kind == RS_DEV_CLOCK ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
	struct rs_dev_event *e;

	rs_dev_lock();
	e = c->spare[kind];
	if (e)
		c->spare[kind] = e->next;
	rs_dev_unlock();
	if (e)
		return e;
	e = calloc(1, sizeof(*e));
	if (e && rs_real.cuEventCreate(&e->handle, flags) != CUDA_SUCCESS) {
		free(e);
		return NULL;
	}
	if (e)
		e->context = c;
	return e;
}

void rs_dev_event_put(struct rs_dev_event *e, enum rs_dev_spare kind)
{
	int gone;

	rs_dev_lock();
	gone = !e->context->ctx;
	if (!gone) {
		/* Recording it again does not disturb waits that are already enqueued. */
		e->next = e->context->spare[kind];
		e->context->spare[kind] = e;
	}
	rs_dev_unlock();
	if (gone)
		free(e);
}

void rs_dev_event_free(void *opaque, uint64_t event)
{
	(void)opaque;
	rs_dev_event_put((struct rs_dev_event *)(uintptr_t)event, RS_DEV_ORDER);
}

CUresult rs_dev_capture_of(CUstream s, uint64_t *ret)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	cuuint64_t id = 0;
	CUresult r;

	*ret = 0;
	if (rs_likely(!__atomic_load_n(&rs_state.captures, __ATOMIC_RELAXED)))
		return CUDA_SUCCESS;
	r = rs_real.cuStreamGetCaptureInfo(s, &status, &id);
	if (r != CUDA_SUCCESS || status == CU_STREAM_CAPTURE_STATUS_NONE)
		return r;
	if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	*ret = id;
	return CUDA_SUCCESS;
}

/* 0: older drivers do not say. In the context. */
static uint64_t captured_graph(CUstream s)
{
	CUstreamCaptureStatus status;
	CUgraph graph = NULL;
	cuuint64_t id;

	if (rs_real.cuStreamGetCaptureInfo_v2(s, &status, &id, &graph, NULL, NULL) !=
		    CUDA_SUCCESS ||
	    status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return 0;
	return (uintptr_t)graph;
}

int rs_dev_capture(void *opaque, struct rs_queue q, uint64_t *ret_capture, uint64_t *ret_graph)
{
	struct rs_dev_frame f;
	uint64_t capture;
	CUresult result;
	int r;

	(void)opaque;
	if (rs_likely(!__atomic_load_n(&rs_state.captures, __ATOMIC_RELAXED))) {
		*ret_capture = 0;
		return 0;
	}
	r = rs_dev_enter(&f, q.ctx);
	if (r)
		return r;
	result = rs_dev_capture_of(rs_dev_stream(q), &capture);
	if (result == CUDA_SUCCESS && capture && ret_graph)
		*ret_graph = captured_graph(rs_dev_stream(q));
	r = rs_dev_leave(&f, result);
	if (!r)
		*ret_capture = capture;
	return r;
}

uint64_t rs_dev_capture_nodes(void *opaque, struct rs_queue q, uint64_t graph)
{
	struct rs_dev_frame f;
	CUresult result;
	size_t n = 0;

	(void)opaque;
	if (!graph || rs_dev_enter(&f, q.ctx))
		return UINT64_MAX;
	result = rs_real.cuGraphGetNodes((CUgraph)(uintptr_t)graph, NULL, &n);
	return rs_dev_leave(&f, result) ? UINT64_MAX : n;
}

int rs_dev_event_record(void *opaque, struct rs_queue q, uint64_t *ret_event)
{
	struct rs_dev_context *c = rs_dev_context_of(q.ctx);
	struct rs_dev_event *e = NULL;
	struct rs_dev_frame f;
	uint64_t capture;
	CUresult result;
	int r;

	if (!c)
		return -ENOMEM;
	r = rs_dev_enter_queue(&f, q);
	if (r)
		return r;
	result = rs_dev_capture_of(rs_dev_stream(q), &capture);
	if (result == CUDA_SUCCESS) {
		e = rs_dev_event_take(c, RS_DEV_ORDER);
		result = e ? rs_real.cuEventRecord(e->handle, rs_dev_stream(q))
			   : CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = rs_dev_leave(&f, result);
	if (r && e)
		rs_dev_event_free(opaque, (uintptr_t)e);
	if (!r) {
		e->capture = capture;
		*ret_event = (uintptr_t)e;
	}
	return r;
}

int rs_dev_event_wait(void *opaque, struct rs_queue q, uint64_t event)
{
	struct rs_dev_event *e = (struct rs_dev_event *)(uintptr_t)event;
	struct rs_dev_frame f;
	uint64_t capture;
	CUresult result;
	int r;

	(void)opaque;
	if (!rs_dev_live(e->context))
		return 0;
	r = rs_dev_enter_queue(&f, q);
	if (r)
		return r;
	result = rs_dev_capture_of(rs_dev_stream(q), &capture);
	if (result == CUDA_SUCCESS)
		result = capture != e->capture
				 ? CUDA_ERROR_STREAM_CAPTURE_ISOLATION
				 : rs_real.cuStreamWaitEvent(rs_dev_stream(q), e->handle, 0);
	return rs_dev_leave(&f, result);
}

int rs_dev_event_done(void *opaque, uint64_t event)
{
	struct rs_dev_event *e = (struct rs_dev_event *)(uintptr_t)event;
	uint64_t ctx = rs_dev_live(e->context);
	struct rs_dev_frame f;
	CUresult result;
	int r;

	(void)opaque;
	if (!ctx)
		return 1;
	if (rs_dev_leaving(ctx))
		return 0;
	if (e->capture)
		return -EXDEV;
	r = rs_dev_enter(&f, ctx);
	if (r)
		return r;
	result = rs_real.cuEventQuery(e->handle);
	r = rs_dev_leave(&f, result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result);
	return r ? r : result == CUDA_SUCCESS;
}

int rs_dev_event_sync(void *opaque, uint64_t event)
{
	struct rs_dev_event *e = (struct rs_dev_event *)(uintptr_t)event;
	uint64_t ctx = rs_dev_live(e->context);
	struct rs_dev_frame f;
	int r;

	(void)opaque;
	if (!ctx)
		return 0;
	if (e->capture)
		return -EXDEV;
	r = rs_dev_enter(&f, ctx);
	if (r)
		return r;
	return rs_dev_leave(&f, rs_real.cuEventSynchronize(e->handle));
}
