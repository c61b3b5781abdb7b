/* SPDX-License-Identifier: MIT */
/*
 * Contexts: creation, the per-thread stack of current ones, primary contexts, limits, synchronisation.
 *
 * A context with a sticky error (a kernel fault, a deadlock) refuses every call that needs it and
 * completes what is queued without effect, until it is destroyed; a primary context can be reset.
 * Destroying a context waits for its work and frees everything that belongs to it. Driver lock held.
 */
#include "tests/simcuda/sim.h"

#include <stdlib.h>
#include <string.h>

#define STACK_DEPTH 64

static __thread struct {
	CUcontext at[STACK_DEPTH];
	int depth;
} stack;

static CUcontext contexts;
static CUcontext primary[SIM_MAX_DEVICES];
static unsigned primary_flags[SIM_MAX_DEVICES];
static uint64_t next_id = 1;

static const uint64_t default_limits[16] = {
	[CU_LIMIT_STACK_SIZE] = 1024,
	[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20,
	[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20,
	[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2,
	[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
	[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64,
	[CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = 0,
};

CUcontext sim_ctx_current(void)
{
	CUcontext c = stack.depth ? stack.at[stack.depth - 1] : NULL;

	/* Another thread may have destroyed it. */
	return c && !sim_handle_is(c, SIM_H_CTX) ? NULL : c;
}

CUcontext sim_ctx_primary(int dev)
{
	return primary[dev];
}

void sim_ctx_fail(CUcontext ctx, CUresult r)
{
	if (!ctx->sticky)
		ctx->sticky = r;
}

static CUresult context_new(int dev, unsigned flags, CUcontext *ret)
{
	CUcontext c = calloc(1, sizeof(*c));
	CUresult r;

	if (!c)
		return CUDA_ERROR_OUT_OF_MEMORY;
	c->id = next_id++;
	c->dev_id = dev;
	c->flags = flags;
	c->api_version = 3020;
	memcpy(c->limits, default_limits, sizeof(c->limits));
	r = sim_handle_add(c, SIM_H_CTX) ? CUDA_ERROR_OUT_OF_MEMORY
					 : sim_stream_new(c, 0, 0, &c->legacy);
	if (r) {
		sim_handle_del(c);
		free(c);
		return r;
	}
	c->legacy->is_legacy = true;
	c->next = contexts;
	contexts = c;
	*ret = c;
	return CUDA_SUCCESS;
}

/* The tails to wait for are those of now: other threads may go on submitting meanwhile. */
static size_t collect_tails(CUcontext ctx, struct sim_op **tails, size_t room)
{
	size_t n = 0;

	for (CUstream s = ctx->streams; s; s = s->next) {
		if (!s->tail)
			continue;
		if (n < room) {
			tails[n] = s->tail;
			sim_op_ref(s->tail);
		}
		n++;
	}
	for (size_t i = 0; i < ctx->ndetached; i++, n++)
		if (n < room) {
			tails[n] = ctx->detached[i];
			sim_op_ref(tails[n]);
		}
	return n;
}

/* Forget the tails of destroyed streams that are done. */
static void prune_detached(CUcontext ctx)
{
	size_t kept = 0;

	for (size_t i = 0; i < ctx->ndetached; i++) {
		if (ctx->detached[i]->state == SIM_OP_DONE)
			sim_op_unref(ctx->detached[i]);
		else
			ctx->detached[kept++] = ctx->detached[i];
	}
	ctx->ndetached = kept;
}

CUresult sim_ctx_sync(CUcontext ctx)
{
	struct sim_op *few[16], **tails = few;
	size_t n = collect_tails(ctx, NULL, 0);

	if (n > sizeof(few) / sizeof(few[0])) {
		tails = malloc(n * sizeof(*tails));
		if (!tails)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	collect_tails(ctx, tails, n);
	for (size_t i = 0; i < n; i++) {
		sim_sched_wait(tails[i]);
		sim_op_unref(tails[i]);
	}
	if (tails != few)
		free(tails);
	prune_detached(ctx);
	sim_pool_trim_all(ctx->dev_id);
	return ctx->sticky;
}

/* In the order of their creation: others may come and go whenever the lock is dropped. */
void sim_ctx_sync_all(void)
{
	uint64_t done = 0;

	for (;;) {
		CUcontext next = NULL;

		for (CUcontext c = contexts; c; c = c->next)
			if (c->id > done && !c->destroyed && (!next || c->id < next->id))
				next = c;
		if (!next)
			return;
		done = next->id;
		sim_ctx_sync(next);
	}
}

static void context_free(CUcontext ctx)
{
	CUcontext *at = &contexts;

	ctx->destroyed = true;
	sim_ctx_sync(ctx);
	sim_handle_del(ctx);
	while (ctx->modules)
		sim_module_delete(ctx->modules);
	while (ctx->streams)
		sim_stream_free(ctx->streams);
	while (ctx->ndetached)
		sim_op_unref(ctx->detached[--ctx->ndetached]);
	sim_object_free_ctx(ctx);
	sim_array_free_ctx(ctx);
	sim_mem_free_ctx(ctx);
	while (*at != ctx)
		at = &(*at)->next;
	*at = ctx->next;
	free(ctx->detached);
	free(ctx->ranges);
	free(ctx);
}

static CUresult push(CUcontext ctx)
{
	if (stack.depth == STACK_DEPTH)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stack.at[stack.depth++] = ctx;
	return CUDA_SUCCESS;
}

static bool bad_device(CUdevice dev)
{
	return dev < 0 || dev >= (int)sim_options.devices;
}

static bool bad_flags(unsigned flags)
{
	unsigned sched = flags & CU_CTX_SCHED_MASK;

	return (flags & ~(unsigned)CU_CTX_FLAGS_MASK) ||
	       (sched != 0 && sched != 1 && sched != 2 && sched != 4);
}

static CUresult create(CUcontext *ret, unsigned flags, CUdevice dev)
{
	CUcontext c;
	CUresult r;

	if (!ret || bad_flags(flags))
		return CUDA_ERROR_INVALID_VALUE;
	if (bad_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (stack.depth == STACK_DEPTH)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = context_new(dev, flags, &c);
	if (r)
		return r;
	push(c);
	*ret = c;
	return CUDA_SUCCESS;
}

SIM_API(cuCtxCreate_v2, SIM_INIT, P(CUcontext *ret, unsigned flags, CUdevice dev),
	P(ret, flags, dev))
{
	return create(ret, flags, dev);
}

SIM_API(cuCtxCreate_v3, SIM_INIT,
	P(CUcontext *ret, CUexecAffinityParam *affinity, int n, unsigned flags, CUdevice dev),
	P(ret, affinity, n, flags, dev))
{
	if (n < 0 || (n && !affinity))
		return CUDA_ERROR_INVALID_VALUE;
	return n ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : create(ret, flags, dev);
}

SIM_API(cuCtxCreate_v4, SIM_INIT,
	P(CUcontext *ret, CUctxCreateParams *p, unsigned flags, CUdevice dev),
	P(ret, p, flags, dev))
{
	if (p && p->numExecAffinityParams)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	return p && p->cigParams ? CUDA_ERROR_NOT_SUPPORTED : create(ret, flags, dev);
}

static CUresult destroy(CUcontext ctx)
{
	if (!sim_handle_is(ctx, SIM_H_CTX) || ctx->is_primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	context_free(ctx);
	if (stack.depth && stack.at[stack.depth - 1] == ctx)
		stack.depth--;
	return CUDA_SUCCESS;
}

SIM_API(cuCtxDestroy, SIM_INIT, P(CUcontext ctx), P(ctx))
{
	return destroy(ctx);
}

SIM_API(cuCtxDestroy_v2, SIM_INIT, P(CUcontext ctx), P(ctx))
{
	return destroy(ctx);
}

SIM_API(cuCtxAttach, SIM_CTX, P(CUcontext *ret, unsigned flags), P(ret, flags))
{
	if (!ret || flags)
		return CUDA_ERROR_INVALID_VALUE;
	call->ctx->attached++;
	*ret = call->ctx;
	return CUDA_SUCCESS;
}

SIM_API(cuCtxDetach, SIM_INIT, P(CUcontext ctx), P(ctx))
{
	if (!sim_handle_is(ctx, SIM_H_CTX) || ctx != call->ctx || ctx->is_primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (ctx->attached) {
		ctx->attached--;
		return CUDA_SUCCESS;
	}
	context_free(ctx);
	stack.depth--;
	return CUDA_SUCCESS;
}

static CUresult push_current(CUcontext ctx)
{
	return sim_handle_is(ctx, SIM_H_CTX) ? push(ctx) : CUDA_ERROR_INVALID_CONTEXT;
}

SIM_API(cuCtxPushCurrent, SIM_INIT, P(CUcontext ctx), P(ctx))
{
	return push_current(ctx);
}

SIM_API(cuCtxPushCurrent_v2, SIM_INIT, P(CUcontext ctx), P(ctx))
{
	return push_current(ctx);
}

static CUresult pop_current(CUcontext *ret)
{
	if (!stack.depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	stack.depth--;
	if (ret)
		*ret = stack.at[stack.depth];
	return CUDA_SUCCESS;
}

SIM_API(cuCtxPopCurrent, SIM_INIT, P(CUcontext *ret), P(ret))
{
	return pop_current(ret);
}

SIM_API(cuCtxPopCurrent_v2, SIM_INIT, P(CUcontext *ret), P(ret))
{
	return pop_current(ret);
}

SIM_API(cuCtxSetCurrent, SIM_INIT, P(CUcontext ctx), P(ctx))
{
	if (ctx && !sim_handle_is(ctx, SIM_H_CTX))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (stack.depth)
		stack.depth--;
	return ctx ? push(ctx) : CUDA_SUCCESS;
}

SIM_API(cuCtxGetCurrent, SIM_INIT, P(CUcontext *ret), P(ret))
{
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = call->ctx;
	return CUDA_SUCCESS;
}

static CUresult ctx_or_current(struct sim_call *call, CUcontext ctx, CUcontext *ret)
{
	if (ctx && !sim_handle_is(ctx, SIM_H_CTX))
		return CUDA_ERROR_INVALID_CONTEXT;
	*ret = ctx ? ctx : call->ctx;
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

SIM_API(cuCtxGetDevice, SIM_INIT, P(CUdevice *dev), P(dev))
{
	if (!dev)
		return CUDA_ERROR_INVALID_VALUE;
	if (!call->ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	*dev = call->ctx->dev_id;
	return CUDA_SUCCESS;
}

SIM_API(cuCtxGetDevice_v2, SIM_INIT, P(CUdevice *dev, CUcontext ctx), P(dev, ctx))
{
	CUresult r = dev ? ctx_or_current(call, ctx, &ctx) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*dev = ctx->dev_id;
	return r;
}

SIM_API(cuCtxGetId, SIM_INIT, P(CUcontext ctx, unsigned long long *id), P(ctx, id))
{
	CUresult r = id ? ctx_or_current(call, ctx, &ctx) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*id = ctx->id;
	return r;
}

SIM_API(cuCtxGetFlags, SIM_CTX, P(unsigned *flags), P(flags))
{
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = call->ctx->flags;
	return CUDA_SUCCESS;
}

SIM_API(cuCtxSetFlags, SIM_CTX, P(unsigned flags), P(flags))
{
	if (bad_flags(flags))
		return CUDA_ERROR_INVALID_VALUE;
	call->ctx->flags = flags;
	return CUDA_SUCCESS;
}

SIM_API(cuCtxGetApiVersion, SIM_INIT, P(CUcontext ctx, unsigned *version), P(ctx, version))
{
	CUresult r = version ? ctx_or_current(call, ctx, &ctx) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*version = ctx->api_version;
	return r;
}

SIM_API(cuCtxSetLimit, SIM_CTX, P(CUlimit limit, size_t value), P(limit, value))
{
	if ((unsigned)limit >= 16 || limit >= CU_LIMIT_MAX)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	call->ctx->limits[limit] = value;
	return CUDA_SUCCESS;
}

SIM_API(cuCtxGetLimit, SIM_CTX, P(size_t *value, CUlimit limit), P(value, limit))
{
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if ((unsigned)limit >= 16 || limit >= CU_LIMIT_MAX)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	*value = call->ctx->limits[limit];
	return CUDA_SUCCESS;
}

SIM_API(cuCtxGetStreamPriorityRange, SIM_CTX, P(int *least, int *greatest), P(least, greatest))
{
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return CUDA_SUCCESS;
}

SIM_API(cuCtxGetCacheConfig, SIM_CTX, P(CUfunc_cache *config), P(config))
{
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	*config = CU_FUNC_CACHE_PREFER_NONE;
	return CUDA_SUCCESS;
}

SIM_API(cuCtxSetCacheConfig, SIM_CTX, P(CUfunc_cache config), P(config))
{
	return (unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE
							     : CUDA_SUCCESS;
}

/* Banks do not exist here; the size is fixed as on every device since compute capability 5. */
SIM_API(cuCtxGetSharedMemConfig, SIM_CTX, P(CUsharedconfig *config), P(config))
{
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	*config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
	return CUDA_SUCCESS;
}

SIM_API(cuCtxSetSharedMemConfig, SIM_CTX, P(CUsharedconfig config), P(config))
{
	return (unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE
		       ? CUDA_ERROR_INVALID_VALUE
		       : CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
	struct sim_call call;
	CUresult r = sim_api_enter(&call, SIM_ID_cuCtxSynchronize, SIM_CTX | SIM_UNSAFE);

	return r ? r : sim_api_leave(&call, sim_ctx_sync(call.ctx));
}

SIM_API(cuCtxSynchronize_v2, SIM_INIT | SIM_UNSAFE, P(CUcontext ctx), P(ctx))
{
	CUresult r = ctx_or_current(call, ctx, &ctx);

	return r ? r : ctx->sticky ? ctx->sticky : sim_ctx_sync(ctx);
}

SIM_API(cuCtxEnablePeerAccess, SIM_CTX, P(CUcontext peer, unsigned flags), P(peer, flags))
{
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_handle_is(peer, SIM_H_CTX))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (peer->dev_id == call->ctx->dev_id)
		return CUDA_ERROR_INVALID_DEVICE;
	if (call->ctx->peers >> peer->dev_id & 1)
		return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	call->ctx->peers |= 1u << peer->dev_id;
	call->ctx->ranges_generation = 0;
	return CUDA_SUCCESS;
}

SIM_API(cuCtxDisablePeerAccess, SIM_CTX, P(CUcontext peer), P(peer))
{
	if (!sim_handle_is(peer, SIM_H_CTX))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!(call->ctx->peers >> peer->dev_id & 1))
		return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	call->ctx->peers &= ~(1u << peer->dev_id);
	call->ctx->ranges_generation = 0;
	return CUDA_SUCCESS;
}

/* ---- primary contexts ---- */

CUresult sim_ctx_default(int dev, CUcontext *ret)
{
	CUresult r = CUDA_SUCCESS;

	if (!primary[dev]) {
		r = context_new(dev, primary_flags[dev], &primary[dev]);
		if (!r)
			primary[dev]->is_primary = true;
	}
	*ret = primary[dev];
	return r;
}

SIM_API(cuDevicePrimaryCtxRetain, SIM_INIT, P(CUcontext *ret, CUdevice dev), P(ret, dev))
{
	CUresult r;

	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (bad_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	r = sim_ctx_default(dev, ret);
	if (!r)
		primary[dev]->primary_refs++;
	return r;
}

static CUresult primary_drop(CUdevice dev, bool all)
{
	CUcontext c;

	if (bad_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	c = primary[dev];
	if (!c)
		return all ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
	if (!all && --c->primary_refs)
		return CUDA_SUCCESS;
	primary[dev] = NULL;
	context_free(c);
	return CUDA_SUCCESS;
}

CUresult sim_ctx_release(int dev)
{
	return primary_drop(dev, false);
}

SIM_API(cuDevicePrimaryCtxRelease, SIM_INIT, P(CUdevice dev), P(dev))
{
	return primary_drop(dev, false);
}

SIM_API(cuDevicePrimaryCtxRelease_v2, SIM_INIT, P(CUdevice dev), P(dev))
{
	return primary_drop(dev, false);
}

SIM_API(cuDevicePrimaryCtxReset, SIM_INIT, P(CUdevice dev), P(dev))
{
	return primary_drop(dev, true);
}

SIM_API(cuDevicePrimaryCtxReset_v2, SIM_INIT, P(CUdevice dev), P(dev))
{
	return primary_drop(dev, true);
}

static CUresult primary_set_flags(CUdevice dev, unsigned flags)
{
	if (bad_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (bad_flags(flags))
		return CUDA_ERROR_INVALID_VALUE;
	primary_flags[dev] = flags;
	if (primary[dev])
		primary[dev]->flags = flags;
	return CUDA_SUCCESS;
}

SIM_API(cuDevicePrimaryCtxSetFlags, SIM_INIT, P(CUdevice dev, unsigned flags), P(dev, flags))
{
	return primary_set_flags(dev, flags);
}

SIM_API(cuDevicePrimaryCtxSetFlags_v2, SIM_INIT, P(CUdevice dev, unsigned flags), P(dev, flags))
{
	return primary_set_flags(dev, flags);
}

SIM_API(cuDevicePrimaryCtxGetState, SIM_INIT, P(CUdevice dev, unsigned *flags, int *active),
	P(dev, flags, active))
{
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	if (bad_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	*flags = primary_flags[dev];
	*active = primary[dev] != NULL;
	return CUDA_SUCCESS;
}
