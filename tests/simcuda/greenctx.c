/* SPDX-License-Identifier: MIT */
/*
 * Green contexts: a name for streams that share a part of the multiprocessors of a device.
 *
 * The simulated device does not run anything faster or slower for it: partitions are counted and told,
 * kernels take the time of a whole device. The context of a green context is the primary one, which it
 * holds; streams of a green context belong to that and remember their green context, so events can be
 * recorded for, and waited for by, them alone. Driver lock held.
 */
#include "tests/simcuda/limits.h"
#include "tests/simcuda/sim.h"

#include <stdlib.h>
#include <string.h>

#define ALIGN 8u /* multiprocessors that are scheduled together */

struct CUgreenCtx_st {
	CUcontext ctx;
	int dev;
	unsigned sms;
	uint64_t id;
};

struct CUdevResourceDesc_st {
	int dev;
	unsigned sms;
};

static uint64_t next_id = 1;

/* Which device a resource is of travels in the padding, one past it: zero is no resource of ours. */
static void fill_resource(CUdevResource *r, int dev, unsigned sms)
{
	int mark = dev + 1;

	memset(r, 0, sizeof(*r));
	r->type = CU_DEV_RESOURCE_TYPE_SM;
	memcpy(r->_internal_padding, &mark, sizeof(mark));
	r->sm = (CUdevSmResource){sms, ALIGN, ALIGN};
}

static CUresult read_resource(const CUdevResource *r, int *ret_dev)
{
	int mark;

	if (r->type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	memcpy(&mark, r->_internal_padding, sizeof(mark));
	if (mark < 1 || mark > (int)sim_options.devices || !r->sm.smCount ||
	    r->sm.smCount > SIM_MULTIPROCESSORS)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	*ret_dev = mark - 1;
	return CUDA_SUCCESS;
}

static bool bad_device(CUdevice dev)
{
	return dev < 0 || dev >= (int)sim_options.devices;
}

SIM_API(cuDeviceGetDevResource, SIM_INIT,
	P(CUdevice dev, CUdevResource *ret, CUdevResourceType type), P(dev, ret, type))
{
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (bad_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	fill_resource(ret, dev, SIM_MULTIPROCESSORS);
	return CUDA_SUCCESS;
}

SIM_API(cuCtxGetDevResource, SIM_INIT, P(CUcontext ctx, CUdevResource *ret, CUdevResourceType type),
	P(ctx, ret, type))
{
	ctx = ctx ? ctx : call->ctx;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_handle_is(ctx, SIM_H_CTX))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	fill_resource(ret, ctx->dev_id, SIM_MULTIPROCESSORS);
	return CUDA_SUCCESS;
}

SIM_API(cuGreenCtxGetDevResource, SIM_INIT,
	P(CUgreenCtx g, CUdevResource *ret, CUdevResourceType type), P(g, ret, type))
{
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_handle_is(g, SIM_H_GREEN))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	fill_resource(ret, g->dev, g->sms);
	return CUDA_SUCCESS;
}

SIM_API(cuDevSmResourceSplitByCount, SIM_INIT,
	P(CUdevResource *ret, unsigned *n, const CUdevResource *in, CUdevResource *rest,
	  unsigned flags, unsigned min),
	P(ret, n, in, rest, flags, min))
{
	unsigned each, fit;
	int dev;
	CUresult r;

	if (!n || !in || flags > 3)
		return CUDA_ERROR_INVALID_VALUE;
	r = read_resource(in, &dev);
	if (r)
		return r;
	if (min > in->sm.smCount)
		return CUDA_ERROR_INVALID_VALUE;
	each = min > ALIGN ? (min + ALIGN - 1) / ALIGN * ALIGN : ALIGN;
	fit = in->sm.smCount / each;
	if (!fit)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	if (ret && *n < fit)
		fit = *n;
	for (unsigned i = 0; ret && i < fit; i++)
		fill_resource(&ret[i], dev, each);
	*n = fit;
	if (rest) {
		unsigned left = in->sm.smCount - fit * each;

		fill_resource(rest, dev, left);
		if (!left)
			rest->type = CU_DEV_RESOURCE_TYPE_INVALID;
	}
	return CUDA_SUCCESS;
}

/* Descriptors have no destructor in the API: they live as long as the process. */
SIM_API(cuDevResourceGenerateDesc, SIM_INIT,
	P(CUdevResourceDesc *ret, CUdevResource *resources, unsigned n), P(ret, resources, n))
{
	CUdevResourceDesc d;
	unsigned sms = 0;
	int dev = -1;

	if (!ret || !resources || !n)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < n; i++) {
		int of;
		CUresult r = read_resource(&resources[i], &of);

		if (r)
			return r;
		if (dev >= 0 && of != dev)
			return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
		dev = of;
		sms += resources[i].sm.smCount;
	}
	if (sms > SIM_MULTIPROCESSORS)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	d = calloc(1, sizeof(*d));
	if (!d || sim_handle_add(d, SIM_H_RESDESC)) {
		free(d);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	d->dev = dev;
	d->sms = sms;
	*ret = d;
	return CUDA_SUCCESS;
}

SIM_API(cuGreenCtxCreate, SIM_INIT,
	P(CUgreenCtx *ret, CUdevResourceDesc d, CUdevice dev, unsigned flags),
	P(ret, d, dev, flags))
{
	CUgreenCtx g;
	CUresult r;

	if (!ret || !sim_handle_is(d, SIM_H_RESDESC) || flags != CU_GREEN_CTX_DEFAULT_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	if (bad_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (d->dev != dev)
		return CUDA_ERROR_INVALID_VALUE;
	g = calloc(1, sizeof(*g));
	if (!g || sim_handle_add(g, SIM_H_GREEN)) {
		free(g);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = sim_ctx_default(dev, &g->ctx);
	if (r) {
		sim_handle_del(g);
		free(g);
		return r;
	}
	g->ctx->primary_refs++;
	g->dev = dev;
	g->sms = d->sms;
	g->id = next_id++;
	*ret = g;
	return CUDA_SUCCESS;
}

/* Has the primary context been reset under it? */
static bool alive(CUgreenCtx g)
{
	return sim_handle_is(g, SIM_H_GREEN) && sim_ctx_primary(g->dev) == g->ctx;
}

SIM_API(cuGreenCtxDestroy, SIM_INIT, P(CUgreenCtx g), P(g))
{
	if (!sim_handle_is(g, SIM_H_GREEN))
		return CUDA_ERROR_INVALID_CONTEXT;
	for (CUstream s = alive(g) ? g->ctx->streams : NULL; s; s = s->next)
		if (s->green == g)
			s->green = NULL;
	if (alive(g))
		sim_ctx_release(g->dev);
	sim_handle_del(g);
	free(g);
	return CUDA_SUCCESS;
}

SIM_API(cuCtxFromGreenCtx, SIM_INIT, P(CUcontext *ret, CUgreenCtx g), P(ret, g))
{
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (!alive(g))
		return CUDA_ERROR_INVALID_CONTEXT;
	*ret = g->ctx;
	return CUDA_SUCCESS;
}

SIM_API(cuGreenCtxGetId, SIM_INIT, P(CUgreenCtx g, unsigned long long *ret), P(g, ret))
{
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_handle_is(g, SIM_H_GREEN))
		return CUDA_ERROR_INVALID_CONTEXT;
	*ret = g->id;
	return CUDA_SUCCESS;
}

SIM_API(cuGreenCtxStreamCreate, SIM_INIT,
	P(CUstream *ret, CUgreenCtx g, unsigned flags, int priority), P(ret, g, flags, priority))
{
	CUresult r;

	if (!ret || flags != CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	if (!alive(g))
		return CUDA_ERROR_INVALID_CONTEXT;
	priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
	r = sim_stream_new(g->ctx, flags, priority, ret);
	if (!r)
		(*ret)->green = g;
	return r;
}

/* None of its streams may be captured; those that are break. */
static CUresult uncaptured(CUgreenCtx g)
{
	CUresult r = CUDA_SUCCESS;

	for (CUstream s = g->ctx->streams; s; s = s->next)
		if (s->green == g && s->cap)
			r = sim_capture_break(s, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	return r;
}

SIM_API(cuGreenCtxRecordEvent, SIM_INIT, P(CUgreenCtx g, CUevent e), P(g, e))
{
	struct sim_work w = {.kind = SIM_WORK_EVENT, .event = e};
	struct sim_op *op;
	int bad = 0;
	CUresult r;

	if (!alive(g))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!sim_handle_is(e, SIM_H_EVENT) || e->ctx != g->ctx)
		return CUDA_ERROR_INVALID_HANDLE;
	r = uncaptured(g);
	if (r)
		return r;
	op = sim_op_new(g->ctx, 0, &w);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (CUstream s = g->ctx->streams; s; s = s->next)
		if (s->green == g && s->tail)
			bad |= sim_op_after(op, s->tail);
	sim_op_ref(op);
	sim_sched_enqueue(op);
	sim_capture_drop_event(e);
	if (e->op)
		sim_op_unref(e->op);
	e->op = op;
	sim_sched_kick();
	return bad ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

SIM_API(cuGreenCtxWaitEvent, SIM_INIT, P(CUgreenCtx g, CUevent e), P(g, e))
{
	CUresult r;

	if (!alive(g))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!sim_handle_is(e, SIM_H_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	r = e->cap ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : uncaptured(g);
	for (CUstream s = g->ctx->streams; s && !r; s = s->next)
		if (s->green == g)
			r = sim_event_wait(s, e, 0);
	return r;
}
