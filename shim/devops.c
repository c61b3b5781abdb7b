/* SPDX-License-Identifier: MIT */
/*
 * The engine's operations on the real driver (tracker/devops.h): contexts and memory.
 *
 * Every operation runs in its queue's context, pushed for its duration where another one is current, and in
 * relaxed capture mode where some stream is being captured. A queue of another thread's own stream is
 * served on the legacy stream, which is ordered with it.
 * Per context, made at first use: modules of our kernels, spare events and a pool; they go with the
 * context. An event outlives its context as "passed".
 * Callers: the engine, any thread, from inside wrappers and markers only (depth is set), or at exit.
 * Locks: one leaf mutex around the list of contexts and the spare events, not held over driver calls.
 */
#include "shim/arrays.h"
#include "shim/busy.h"
#include "shim/devops.h"
#include "shim/guard.h"
#include "shim/kernels.h"
#include "shim/queue.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rs_dev_context *contexts;
static uint64_t last_ctx, leaving_ctx; /* atomic */

void rs_dev_lock(void)
{
	pthread_mutex_lock(&lock);
}

struct rs_dev_context *rs_dev_contexts(void)
{
	return contexts;
}

void rs_dev_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static int error_of(CUresult r)
{
	switch (r) {
	case CUDA_SUCCESS:
		return 0;
	case CUDA_ERROR_OUT_OF_MEMORY:
		return -ENOMEM;
	case CUDA_ERROR_NOT_INITIALIZED:
	case CUDA_ERROR_DEINITIALIZED:
		return -ENODEV;
	case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
	case CUDA_ERROR_STREAM_CAPTURE_ISOLATION:
	case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
		return -EXDEV;
	default:
		return -EIO;
	}
}

/* --- entering a context ------------------------------------------------------------------------- */

static int captures(void)
{
	return rs_unlikely(__atomic_load_n(&rs_state.captures, __ATOMIC_RELAXED));
}

int rs_dev_leaving(uint64_t ctx)
{
	return __atomic_load_n(&leaving_ctx, __ATOMIC_RELAXED) == ctx;
}

void rs_devops_ctx_leaves(uint64_t ctx)
{
	__atomic_store_n(&leaving_ctx, ctx, __ATOMIC_RELAXED);
}

int rs_dev_enter(struct rs_dev_frame *f, uint64_t ctx)
{
	CUcontext now = NULL;
	CUresult r = rs_real.cuCtxGetCurrent(&now);

	f->pushed = f->relaxed = f->hidden = 0;
	if (r != CUDA_SUCCESS)
		return error_of(r);
	if (rs_unlikely(ctx && rs_dev_leaving(ctx)))
		return -ENODEV;
	f->before = now;
	if (ctx && (uintptr_t)now != ctx) {
		r = rs_real.cuCtxPushCurrent_v2((CUcontext)(uintptr_t)ctx);
		if (r != CUDA_SUCCESS)
			return error_of(r);
		f->pushed = 1;
	}
	if (captures()) {
		f->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
		f->relaxed = rs_real.cuThreadExchangeStreamCaptureMode(&f->mode) == CUDA_SUCCESS;
	}
	if (ctx)
		__atomic_store_n(&last_ctx, ctx, __ATOMIC_RELAXED);
	if (rs_busy_on())
		f->hidden = rs_busy_hide();
	return 0;
}

/* The program must find its own context and mode: what fails is tried in another way. */
int rs_dev_leave(const struct rs_dev_frame *f, CUresult r)
{
	CUstreamCaptureMode mode = f->mode;
	CUcontext popped;

	if (rs_unlikely(f->hidden))
		rs_busy_show();
	if (f->relaxed && rs_real.cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS)
		rs_real.cuThreadExchangeStreamCaptureMode(&mode);
	if (f->pushed && rs_real.cuCtxPopCurrent_v2(&popped) != CUDA_SUCCESS)
		rs_real.cuCtxSetCurrent(f->before);
	return error_of(r);
}

int rs_dev_enter_queue(struct rs_dev_frame *f, struct rs_queue q)
{
	int r = rs_dev_enter(f, q.ctx);
	CUstreamCaptureStatus status;

	if (r || !captures() || rs_dev_stream(q))
		return r;
	if (rs_real.cuStreamIsCapturing(NULL, &status) != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
		return 0;
	return rs_dev_leave(f, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

CUstream rs_dev_stream(struct rs_queue q)
{
	if (!(q.stream >> 63))
		return (CUstream)(uintptr_t)q.stream;
	return rs_tls && rs_tls->own_stream == q.stream ? CU_STREAM_PER_THREAD : NULL;
}

/* --- per context -------------------------------------------------------------------------------- */

struct rs_dev_context *rs_dev_context_of(uint64_t ctx)
{
	struct rs_dev_context *c = __atomic_load_n(&contexts, __ATOMIC_ACQUIRE);

	/* the list only grows, at its head */
	for (; c && __atomic_load_n(&c->ctx, __ATOMIC_RELAXED) != ctx; c = c->next)
		;
	if (rs_likely(c))
		return c;
	pthread_mutex_lock(&lock);
	for (c = contexts; c && c->ctx != ctx; c = c->next)
		;
	if (!c) {
		c = calloc(1, sizeof(*c));
		if (c) {
			c->ctx = ctx;
			c->next = contexts;
			__atomic_store_n(&contexts, c, __ATOMIC_RELEASE);
		}
	}
	pthread_mutex_unlock(&lock);
	return c;
}

void rs_devops_ctx_destroy(uint64_t ctx)
{
	CUmemoryPool pool = NULL;
	struct rs_dev_context *c;
	struct rs_dev_event *e;
	unsigned i;

	pthread_mutex_lock(&lock);
	for (c = contexts; c && c->ctx != ctx; c = c->next)
		;
	if (c) {
		pool = c->pool;
		__atomic_store_n(&c->pool, NULL, __ATOMIC_RELAXED);
		__atomic_store_n(&c->ctx, 0, __ATOMIC_RELAXED);
		for (i = 0; i < RS_DEV_NKERNELS; i++)
			__atomic_store_n(&c->kernel[i], NULL, __ATOMIC_RELAXED);
		for (i = 0; i < RS_DEV_NSPARE; i++)
			while ((e = c->spare[i])) {
				c->spare[i] = e->next;
				free(e);
			}
	}
	if (last_ctx == ctx)
		last_ctx = 0;
	pthread_mutex_unlock(&lock);
	if (pool)
		rs_real.cuMemPoolDestroy(pool); /* it is the device's, not the context's */
}

/* --- memory ------------------------------------------------------------------------------------- */

static int op_alloc(void *opaque, struct rs_queue q, uint64_t bytes, uint64_t *ret_addr)
{
	CUdeviceptr addr = 0;
	struct rs_dev_frame f;
	int r = rs_dev_enter(&f, q.ctx);

	(void)opaque;
	if (r)
		return r;
	r = rs_dev_leave(&f, rs_real.cuMemAlloc_v2(&addr, bytes));
	if (!r)
		*ret_addr = addr;
	return r;
}

static void op_free(void *opaque, struct rs_queue q, uint64_t addr)
{
	struct rs_dev_frame f;

	(void)opaque;
	if (!rs_dev_enter(&f, q.ctx))
		rs_dev_leave(&f, rs_real.cuMemFree_v2(addr));
}

static int op_copy(void *opaque, struct rs_queue q, uint64_t dst, uint64_t src, uint64_t bytes)
{
	struct rs_dev_frame f;
	int r;

	(void)opaque;
	if (rs_unlikely(rs_arrays_range(dst) || rs_arrays_range(src)))
		return rs_dev_array_copy(q, dst, src, bytes);
	r = rs_dev_enter_queue(&f, q);
	if (r)
		return r;
	return rs_dev_leave(&f, rs_real.cuMemcpyDtoDAsync_v2(dst, src, bytes, rs_dev_stream(q)));
}

/* Unified addressing: the device uses the host's address. */
static int op_result_alloc(void *opaque, struct rs_queue q, uint64_t words, uint64_t **ret_words)
{
	void *p = NULL;
	struct rs_dev_frame f;
	int r = rs_dev_enter(&f, q.ctx);

	(void)opaque;
	if (r)
		return r;
	r = rs_dev_leave(
		&f, rs_real.cuMemHostAlloc(&p, words * sizeof(uint64_t),
					   CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
	if (!r)
		*ret_words = p;
	return r;
}

static void op_result_free(void *opaque, uint64_t *words)
{
	struct rs_dev_frame f;

	(void)opaque;
	if (!rs_dev_enter(&f, __atomic_load_n(&last_ctx, __ATOMIC_RELAXED)))
		rs_dev_leave(&f, rs_real.cuMemFreeHost(words));
}

const struct rs_devops rs_devops_ops = {
	.alloc = op_alloc,
	.free = op_free,
	.copy = op_copy,
	.digest = rs_dev_digest,
	.digest_many = rs_dev_digest_many,
	.move = rs_dev_move,
	.swap = rs_dev_swap,
	.diff = rs_dev_diff,
	.diff_many = rs_dev_diff_many,
	.result_alloc = op_result_alloc,
	.result_free = op_result_free,
	.capture_of = rs_dev_capture,
	.capture_nodes = rs_dev_capture_nodes,
	.event_record = rs_dev_event_record,
	.event_wait = rs_dev_event_wait,
	.event_done = rs_dev_event_done,
	.event_sync = rs_dev_event_sync,
	.event_free = rs_dev_event_free,
	.mark = rs_dev_mark,
	.elapsed = rs_dev_elapsed,
	.mark_free = rs_dev_mark_free,
	.frame_alloc = rs_dev_frame_alloc,
	.frame_view = rs_dev_frame_view,
	.frame_free = rs_dev_frame_free,
	.remap = rs_dev_remap,
	.event_within = rs_dev_event_within,
};
