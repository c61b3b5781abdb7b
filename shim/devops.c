/* SPDX-License-Identifier: MIT */
/*
 * The engine's operations on the real driver (tracker/devops.h).
 *
 * Every operation runs in its queue's context, pushed for its duration where another one is current, and in
 * relaxed capture mode where some stream is being captured. A queue of another thread's own stream is
 * served on the legacy stream, which is ordered with it.
 * Per context, made at first use: the module of the digest kernel, spare events and the pool; they go with
 * the context. An event outlives its context as "passed".
 * An array's made-up range (arrays.h) is copied and digested as a whole: it is laid out row after row in a
 * block, its digest is that of such a copy, made in memory of a pool of the shim's own.
 * Callers: the engine, any thread, from inside wrappers and markers only (depth is set), or at exit.
 * Locks: one leaf mutex around the list of contexts and the spare events, not held over driver calls.
 */
#include "shim/arrays.h"
#include "shim/guard.h"
#include "shim/kernels.h"
#include "shim/log.h"
#include "shim/queue.h"

#include <pthread.h>
#include <stdlib.h>

/* A warp a chunk. */
#define DIGEST_THREADS 128
#define DIGEST_CHUNKS  (DIGEST_THREADS / 32)
#define DIGEST_GRID    65535u

__asm__(".pushsection .rodata\n"
	".globl rs_digest_ptx\n"
	".hidden rs_digest_ptx\n"
	"rs_digest_ptx:\n"
	".incbin \"shim/kernels/digest.ptx\"\n"
	".byte 0\n"
	".popsection\n");
extern const char rs_digest_ptx[] __attribute__((visibility("hidden")));

struct event {
	CUevent handle;
	struct context *context;
	struct event *next;
};

struct context {
	uint64_t ctx; /* 0: gone */
	CUmodule module;
	CUfunction digest;
	CUmemoryPool pool;
	struct event *spare;
	struct context *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct context *contexts;
static uint64_t last_ctx;

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
	default:
		return -EIO;
	}
}

/* --- entering a context ------------------------------------------------------------------------- */

struct frame {
	int pushed, relaxed;
	CUstreamCaptureMode mode;
};

static int enter(struct frame *f, uint64_t ctx)
{
	CUcontext now = NULL;
	CUresult r = rs_real.cuCtxGetCurrent(&now);

	f->pushed = f->relaxed = 0;
	if (r != CUDA_SUCCESS)
		return error_of(r);
	if (ctx && (uintptr_t)now != ctx) {
		r = rs_real.cuCtxPushCurrent_v2((CUcontext)(uintptr_t)ctx);
		if (r != CUDA_SUCCESS)
			return error_of(r);
		f->pushed = 1;
	}
	if (rs_unlikely(__atomic_load_n(&rs_state.captures, __ATOMIC_RELAXED))) {
		f->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
		f->relaxed = rs_real.cuThreadExchangeStreamCaptureMode(&f->mode) == CUDA_SUCCESS;
	}
	if (ctx)
		__atomic_store_n(&last_ctx, ctx, __ATOMIC_RELAXED);
	return 0;
}

static int leave(const struct frame *f, CUresult r)
{
	CUstreamCaptureMode mode = f->mode;
	CUcontext popped;

	if (f->relaxed)
		rs_real.cuThreadExchangeStreamCaptureMode(&mode);
	if (f->pushed)
		rs_real.cuCtxPopCurrent_v2(&popped);
	return error_of(r);
}

static CUstream stream_of(struct rs_queue q)
{
	if (!(q.stream >> 63))
		return (CUstream)(uintptr_t)q.stream;
	return rs_tls && rs_tls->own_stream == q.stream ? CU_STREAM_PER_THREAD : NULL;
}

/* --- per context -------------------------------------------------------------------------------- */

/* The context, 0 when it is gone. */
static uint64_t live(const struct context *c)
{
	return __atomic_load_n(&c->ctx, __ATOMIC_RELAXED);
}

static struct context *context_of(uint64_t ctx)
{
	struct context *c;

	pthread_mutex_lock(&lock);
	for (c = contexts; c && c->ctx != ctx; c = c->next)
		;
	if (!c) {
		c = calloc(1, sizeof(*c));
		if (c) {
			c->ctx = ctx;
			c->next = contexts;
			contexts = c;
		}
	}
	pthread_mutex_unlock(&lock);
	return c;
}

/* In the context. Two threads may both load it; the second module is dropped. */
static CUresult load_digest(struct context *c, CUfunction *ret)
{
	CUmodule module;
	CUresult r;

	*ret = __atomic_load_n(&c->digest, __ATOMIC_ACQUIRE);
	if (*ret)
		return CUDA_SUCCESS;
	r = rs_real.cuModuleLoadData(&module, rs_digest_ptx);
	if (r == CUDA_SUCCESS)
		r = rs_real.cuModuleGetFunction(ret, module, "rs_digest");
	if (r != CUDA_SUCCESS) {
		rs_log(RS_LOG_ERROR, "the digest kernel cannot be loaded: driver error %d", (int)r);
		return r;
	}
	pthread_mutex_lock(&lock);
	if (!c->digest) {
		c->module = module;
		__atomic_store_n(&c->digest, *ret, __ATOMIC_RELEASE);
		module = NULL;
	}
	*ret = c->digest;
	pthread_mutex_unlock(&lock);
	if (module)
		rs_real.cuModuleUnload(module);
	return CUDA_SUCCESS;
}

void rs_devops_ctx_destroy(uint64_t ctx)
{
	CUmemoryPool pool = NULL;
	struct context *c;
	struct event *e;

	pthread_mutex_lock(&lock);
	for (c = contexts; c && c->ctx != ctx; c = c->next)
		;
	if (c) {
		pool = c->pool;
		__atomic_store_n(&c->ctx, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&c->digest, NULL, __ATOMIC_RELAXED);
		__atomic_store_n(&c->pool, NULL, __ATOMIC_RELAXED);
		while ((e = c->spare)) {
			c->spare = e->next;
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
	struct frame f;
	int r = enter(&f, q.ctx);

	(void)opaque;
	if (r)
		return r;
	r = leave(&f, rs_real.cuMemAlloc_v2(&addr, bytes));
	if (!r)
		*ret_addr = addr;
	return r;
}

static void op_free(void *opaque, struct rs_queue q, uint64_t addr)
{
	struct frame f;

	(void)opaque;
	if (!enter(&f, q.ctx))
		leave(&f, rs_real.cuMemFree_v2(addr));
}

/* One side of a copy, a whole array or a block of its size. 0, or -EINVAL for a part of an array. */
static int array_of(uint64_t addr, uint64_t bytes, struct rs_array *ret)
{
	return rs_arrays_at(addr, ret) && ret->bytes == bytes ? 0 : -EINVAL;
}

static int copy_array(uint64_t dst, uint64_t src, uint64_t bytes, CUstream stream)
{
	struct rs_array to, from;
	const struct rs_array *a = &from;
	CUDA_MEMCPY3D p = {.dstMemoryType = CU_MEMORYTYPE_DEVICE,
			   .srcMemoryType = CU_MEMORYTYPE_DEVICE,
			   .dstDevice = dst,
			   .srcDevice = src};

	if (rs_arrays_range(src)) {
		if (array_of(src, bytes, &from))
			return -EINVAL;
		p.srcMemoryType = CU_MEMORYTYPE_ARRAY;
		p.srcDevice = 0;
		p.srcArray = from.handle;
	}
	if (rs_arrays_range(dst)) {
		if (array_of(dst, bytes, &to))
			return -EINVAL;
		p.dstMemoryType = CU_MEMORYTYPE_ARRAY;
		p.dstDevice = 0;
		p.dstArray = to.handle;
		a = &to;
	}
	p.WidthInBytes = p.srcPitch = p.dstPitch = a->row;
	p.Height = p.srcHeight = p.dstHeight = a->rows;
	p.Depth = a->layers;
	return error_of(rs_real.cuMemcpy3DAsync_v2(&p, stream));
}

static int op_copy(void *opaque, struct rs_queue q, uint64_t dst, uint64_t src, uint64_t bytes)
{
	struct frame f;
	int r = enter(&f, q.ctx), err;

	(void)opaque;
	if (r)
		return r;
	if (rs_unlikely(rs_arrays_range(dst) || rs_arrays_range(src))) {
		err = copy_array(dst, src, bytes, stream_of(q));
		leave(&f, CUDA_SUCCESS);
		return err;
	}
	return leave(&f, rs_real.cuMemcpyDtoDAsync_v2(dst, src, bytes, stream_of(q)));
}

/* In the context. Two threads may both make one; the second is dropped. */
static CUresult pool_of(struct context *c, CUmemoryPool *ret)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemoryPool pool;
	CUdevice device;
	CUresult r;

	*ret = __atomic_load_n(&c->pool, __ATOMIC_ACQUIRE);
	if (*ret)
		return CUDA_SUCCESS;
	r = rs_real.cuCtxGetDevice(&device);
	props.location.id = device;
	if (r == CUDA_SUCCESS)
		r = rs_real.cuMemPoolCreate(&pool, &props);
	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&lock);
	if (!c->pool) {
		__atomic_store_n(&c->pool, pool, __ATOMIC_RELEASE);
		pool = NULL;
	}
	*ret = c->pool;
	pthread_mutex_unlock(&lock);
	if (pool)
		rs_real.cuMemPoolDestroy(pool);
	return CUDA_SUCCESS;
}

/* In the context: the digests of linear memory. */
static CUresult digest_block(struct context *c, CUdeviceptr addr, uint64_t bytes, uint64_t *out,
			     CUstream stream)
{
	uint64_t blocks = (rs_digest_count(bytes) + DIGEST_CHUNKS - 1) / DIGEST_CHUNKS;
	uint64_t target = (uintptr_t)out;
	void *params[] = {&addr, &bytes, &target};
	CUfunction digest = NULL;
	CUresult r = load_digest(c, &digest);

	if (r != CUDA_SUCCESS)
		return r;
	return rs_real.cuLaunchKernel(digest,
				      (unsigned)(blocks < DIGEST_GRID ? blocks : DIGEST_GRID), 1, 1,
				      DIGEST_THREADS, 1, 1, 0, stream, params, NULL);
}

static CUresult digest_array(struct context *c, uint64_t addr, uint64_t bytes, uint64_t *out,
			     CUstream stream)
{
	CUdeviceptr block = 0;
	CUmemoryPool pool;
	CUresult r = pool_of(c, &pool);

	if (r == CUDA_SUCCESS)
		r = rs_real.cuMemAllocFromPoolAsync(&block, bytes, pool, stream);
	if (r != CUDA_SUCCESS)
		return r;
	r = copy_array(block, addr, bytes, stream) ? CUDA_ERROR_INVALID_VALUE
						   : digest_block(c, block, bytes, out, stream);
	rs_real.cuMemFreeAsync(block, stream);
	return r;
}

static int op_digest(void *opaque, struct rs_queue q, uint64_t addr, uint64_t bytes, uint64_t *out)
{
	struct context *c = context_of(q.ctx);
	struct frame f;
	int r;

	(void)opaque;
	if (!c)
		return -ENOMEM;
	if (!bytes)
		return 0;
	r = enter(&f, q.ctx);
	if (r)
		return r;
	if (rs_unlikely(rs_arrays_range(addr)))
		return leave(&f, digest_array(c, addr, bytes, out, stream_of(q)));
	return leave(&f, digest_block(c, addr, bytes, out, stream_of(q)));
}

/* Unified addressing: the device uses the host's address. */
static int op_result_alloc(void *opaque, struct rs_queue q, uint64_t words, uint64_t **ret_words)
{
	void *p = NULL;
	struct frame f;
	int r = enter(&f, q.ctx);

	(void)opaque;
	if (r)
		return r;
	r = leave(&f, rs_real.cuMemHostAlloc(&p, words * sizeof(uint64_t),
					     CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
	if (!r)
		*ret_words = p;
	return r;
}

static void op_result_free(void *opaque, uint64_t *words)
{
	struct frame f;

	(void)opaque;
	if (!enter(&f, __atomic_load_n(&last_ctx, __ATOMIC_RELAXED)))
		leave(&f, rs_real.cuMemFreeHost(words));
}

/* --- order -------------------------------------------------------------------------------------- */

static struct event *take_event(struct context *c)
{
	struct event *e;

	pthread_mutex_lock(&lock);
	e = c->spare;
	if (e)
		c->spare = e->next;
	pthread_mutex_unlock(&lock);
	if (e)
		return e;
	e = calloc(1, sizeof(*e));
	if (e && rs_real.cuEventCreate(&e->handle, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
		free(e);
		return NULL;
	}
	if (e)
		e->context = c;
	return e;
}

static void op_event_free(void *opaque, uint64_t event)
{
	struct event *e = (struct event *)(uintptr_t)event;
	int gone;

	(void)opaque;
	pthread_mutex_lock(&lock);
	gone = !e->context->ctx;
	if (!gone) {
		/* Recording it again does not disturb waits that are already enqueued. */
		e->next = e->context->spare;
		e->context->spare = e;
	}
	pthread_mutex_unlock(&lock);
	if (gone)
		free(e);
}

static int op_event_record(void *opaque, struct rs_queue q, uint64_t *ret_event)
{
	struct context *c = context_of(q.ctx);
	struct event *e;
	struct frame f;
	CUresult result;
	int r;

	if (!c)
		return -ENOMEM;
	r = enter(&f, q.ctx);
	if (r)
		return r;
	e = take_event(c);
	result = e ? rs_real.cuEventRecord(e->handle, stream_of(q)) : CUDA_ERROR_OUT_OF_MEMORY;
	r = leave(&f, result);
	if (r && e)
		op_event_free(opaque, (uintptr_t)e);
	if (!r)
		*ret_event = (uintptr_t)e;
	return r;
}

static int op_event_wait(void *opaque, struct rs_queue q, uint64_t event)
{
	struct event *e = (struct event *)(uintptr_t)event;
	struct frame f;
	int r;

	(void)opaque;
	if (!live(e->context))
		return 0;
	r = enter(&f, q.ctx);
	if (r)
		return r;
	return leave(&f, rs_real.cuStreamWaitEvent(stream_of(q), e->handle, 0));
}

static int op_event_done(void *opaque, uint64_t event)
{
	struct event *e = (struct event *)(uintptr_t)event;
	uint64_t ctx = live(e->context);
	struct frame f;
	CUresult result;
	int r;

	(void)opaque;
	if (!ctx)
		return 1;
	r = enter(&f, ctx);
	if (r)
		return r;
	result = rs_real.cuEventQuery(e->handle);
	r = leave(&f, result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result);
	return r ? r : result == CUDA_SUCCESS;
}

static int op_event_sync(void *opaque, uint64_t event)
{
	struct event *e = (struct event *)(uintptr_t)event;
	uint64_t ctx = live(e->context);
	struct frame f;
	int r;

	(void)opaque;
	if (!ctx)
		return 0;
	r = enter(&f, ctx);
	if (r)
		return r;
	return leave(&f, rs_real.cuEventSynchronize(e->handle));
}

const struct rs_devops rs_devops_ops = {
	.alloc = op_alloc,
	.free = op_free,
	.copy = op_copy,
	.digest = op_digest,
	.result_alloc = op_result_alloc,
	.result_free = op_result_free,
	.event_record = op_event_record,
	.event_wait = op_event_wait,
	.event_done = op_event_done,
	.event_sync = op_event_sync,
	.event_free = op_event_free,
};
