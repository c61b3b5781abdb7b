/* SPDX-License-Identifier: MIT */
/*
 * The engine's operations on the real driver (tracker/devops.h): the device's clock.
 *
 * A mark is an event with a time. Nothing waits for it, and the hooks do not see it. It is only put where it says
 * what is asked: neither into a capture, where it would have no time, nor into another stream in the place of one that
 * this thread has no handle of, which would order the program's work anew.
 * Spare ones are kept per context. Callers and locks as in devorder.c.
 */
#include "shim/devops.h"

void rs_dev_mark_free(void *opaque, uint64_t mark)
{
	(void)opaque;
	rs_dev_event_put((struct rs_dev_event *)(uintptr_t)mark, RS_DEV_CLOCK);
}

int rs_dev_mark(void *opaque, struct rs_queue q, uint64_t *ret_mark)
{
	struct rs_dev_context *c;
	struct rs_dev_event *e = NULL;
	CUstream stream = rs_dev_stream(q);
	struct rs_dev_frame f;
	uint64_t capture;
	CUresult result;
	int r;

	if (!stream && q.stream)
		return -EINVAL;
	c = rs_dev_context_of(q.ctx);
	if (!c)
		return -ENOMEM;
	r = rs_dev_enter_queue(&f, q);
	if (r)
		return r;
	result = rs_dev_capture_of(stream, &capture);
	if (result == CUDA_SUCCESS && capture)
		result = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	if (result == CUDA_SUCCESS) {
		e = rs_dev_event_take(c, RS_DEV_CLOCK);
		result = e ? rs_real.cuEventRecord(e->handle, stream) : CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = rs_dev_leave(&f, result);
	if (r && e)
		rs_dev_mark_free(opaque, (uintptr_t)e);
	if (!r)
		*ret_mark = (uintptr_t)e;
	return r;
}

/* Both functions do the same; old drivers have one of them, and a future one may have the other. */
static CUresult elapsed_ms(CUevent from, CUevent to, float *ret_ms)
{
	CUresult r = rs_real.cuEventElapsedTime_v2(ret_ms, from, to);

	return r == CUDA_ERROR_NOT_SUPPORTED ? rs_real.cuEventElapsedTime(ret_ms, from, to) : r;
}

/*
 * The driver's figure is a float of milliseconds: good to half a microsecond, and to 2^-24 of itself.
 * -ERANGE: `to` was before `from`, on another queue.
 */
int rs_dev_elapsed(void *opaque, uint64_t from, uint64_t to, uint64_t *ret_ns)
{
	struct rs_dev_event *a = (struct rs_dev_event *)(uintptr_t)from;
	struct rs_dev_event *b = (struct rs_dev_event *)(uintptr_t)to;
	uint64_t ctx = rs_dev_live(b->context);
	struct rs_dev_frame f;
	float ms = -1;
	CUresult result;
	int r;

	(void)opaque;
	if (a->context != b->context)
		return -EINVAL;
	if (!ctx)
		return -ENODEV;
	r = rs_dev_enter(&f, ctx);
	if (r)
		return r;
	result = elapsed_ms(a->handle, b->handle, &ms);
	r = rs_dev_leave(&f, result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result);
	if (r)
		return r;
	if (result == CUDA_ERROR_NOT_READY)
		return -EAGAIN;
	if (!(ms >= 0 && ms < 1e12f))
		return -ERANGE;
	*ret_ns = (uint64_t)((double)ms * 1e6 + 0.5);
	return 0;
}
