/* SPDX-License-Identifier: MIT */
/*
 * Launches of older programs: block shape, shared size and arguments as state of the function, and
 * cooperative launches over several devices.
 *
 * The state is made when it is first set and lives as long as the function. A grid of cuLaunchGrid is
 * checked as any other. Driver lock held.
 */
#include "tests/simcuda/sim.h"

#include <stdlib.h>
#include <string.h>

#define PARAM_BYTES 4096

struct sim_old_launch {
	unsigned block[3], shared;
	size_t size;
	uint8_t params[PARAM_BYTES];
};

static CUresult state(struct sim_call *call, CUfunction h, struct sim_old_launch **ret)
{
	CUfunction f;
	CUkernel kern;
	CUresult r = sim_func_resolve(call->ctx, h, &f, &kern);

	if (r)
		return r;
	if (!f->old)
		f->old = calloc(1, sizeof(*f->old));
	*ret = f->old;
	return f->old ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_API(cuFuncSetBlockShape, SIM_CTX, P(CUfunction f, int x, int y, int z), P(f, x, y, z))
{
	struct sim_old_launch *o;
	CUresult r = state(call, f, &o);

	if (r)
		return r;
	if (x <= 0 || y <= 0 || z <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(o->block, (unsigned[]){(unsigned)x, (unsigned)y, (unsigned)z}, sizeof(o->block));
	return CUDA_SUCCESS;
}

SIM_API(cuFuncSetSharedSize, SIM_CTX, P(CUfunction f, unsigned bytes), P(f, bytes))
{
	struct sim_old_launch *o;
	CUresult r = state(call, f, &o);

	if (!r)
		o->shared = bytes;
	return r;
}

SIM_API(cuParamSetSize, SIM_CTX, P(CUfunction f, unsigned bytes), P(f, bytes))
{
	struct sim_old_launch *o;
	CUresult r = state(call, f, &o);

	if (r)
		return r;
	if (bytes > PARAM_BYTES)
		return CUDA_ERROR_INVALID_VALUE;
	o->size = bytes;
	return CUDA_SUCCESS;
}

static CUresult set_param(struct sim_call *call, CUfunction f, int offset, const void *p, size_t n)
{
	struct sim_old_launch *o;
	CUresult r = state(call, f, &o);

	if (r)
		return r;
	if (!p || offset < 0 || offset > PARAM_BYTES || n > (size_t)(PARAM_BYTES - offset))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(o->params + offset, p, n);
	return CUDA_SUCCESS;
}

SIM_API(cuParamSeti, SIM_CTX, P(CUfunction f, int offset, unsigned value), P(f, offset, value))
{
	return set_param(call, f, offset, &value, sizeof(value));
}

SIM_API(cuParamSetf, SIM_CTX, P(CUfunction f, int offset, float value), P(f, offset, value))
{
	return set_param(call, f, offset, &value, sizeof(value));
}

SIM_API(cuParamSetv, SIM_CTX, P(CUfunction f, int offset, void *p, unsigned n), P(f, offset, p, n))
{
	return set_param(call, f, offset, p, n);
}

static CUresult launch(struct sim_call *call, CUfunction f, int width, int height, CUstream h)
{
	struct sim_launch_args a = {.f = f};
	struct sim_old_launch *o;
	struct sim_work w;
	void *extra[5];
	CUstream s;
	CUresult r = state(call, f, &o);

	if (!r)
		r = sim_stream_get(call, h, &s);
	if (r)
		return r;
	if (width <= 0 || height <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(a.grid, (unsigned[]){(unsigned)width, (unsigned)height, 1}, sizeof(a.grid));
	memcpy(a.block, o->block, sizeof(a.block));
	a.shared = o->shared;
	extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
	extra[1] = o->params;
	extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
	extra[3] = &o->size;
	extra[4] = CU_LAUNCH_PARAM_END;
	a.extra = extra;
	r = sim_launch_prepare(s->ctx, &a, &w);
	return r ? r : sim_stream_submit(s, &w, NULL);
}

SIM_API(cuLaunch, SIM_CTX, P(CUfunction f), P(f))
{
	return launch(call, f, 1, 1, NULL);
}

SIM_API(cuLaunchGrid, SIM_CTX, P(CUfunction f, int width, int height), P(f, width, height))
{
	return launch(call, f, width, height, NULL);
}

SIM_API(cuLaunchGridAsync, SIM_CTX, P(CUfunction f, int width, int height, CUstream h),
	P(f, width, height, h))
{
	return launch(call, f, width, height, h);
}

/* ---- cooperative launches over several devices ---- */

#define NO_PRE	CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC
#define NO_POST CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC

struct multi {
	CUstream s[SIM_MAX_DEVICES];
	struct sim_work w[SIM_MAX_DEVICES];
	struct sim_op *op[SIM_MAX_DEVICES];
	unsigned n;
};

static bool same_launch(const struct sim_kernel_work *a, const struct sim_kernel_work *b)
{
	return !memcmp(a->grid, b->grid, sizeof(a->grid)) &&
	       !memcmp(a->block, b->block, sizeof(a->block)) && a->shared == b->shared &&
	       !strcmp(sim_kernel_name(a->func->k), sim_kernel_name(b->func->k));
}

/* One part of the launch: its stream, checked against the parts before, and its work. */
static CUresult prepare(struct multi *m, const CUDA_LAUNCH_PARAMS *p)
{
	struct sim_launch_args a = {p->function,
				    {p->gridDimX, p->gridDimY, p->gridDimZ},
				    {p->blockDimX, p->blockDimY, p->blockDimZ},
				    p->sharedMemBytes,
				    p->kernelParams,
				    NULL,
				    true};
	CUstream s = p->hStream;
	CUresult r;

	if (!sim_handle_is(s, SIM_H_STREAM) || s->is_legacy || s->is_ptds)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < m->n; i++)
		if (m->s[i]->ctx->dev_id == s->ctx->dev_id)
			return CUDA_ERROR_INVALID_VALUE;
	if (s->ctx->sticky)
		return s->ctx->sticky;
	if (s->cap)
		return sim_capture_break(s, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	r = sim_launch_prepare(s->ctx, &a, &m->w[m->n]);
	if (r)
		return r;
	m->s[m->n++] = s;
	return same_launch(&m->w[0].kernel, &m->w[m->n - 1].kernel) ? CUDA_SUCCESS
								    : CUDA_ERROR_INVALID_VALUE;
}

static struct sim_op *nop_in(CUstream s)
{
	struct sim_work nop = {.kind = SIM_WORK_NOP};

	return sim_op_new(s->ctx, s->id, &nop);
}

/* The op that all kernels wait for: after the work of all streams. */
static struct sim_op *gate(struct multi *m)
{
	struct sim_op *op = nop_in(m->s[0]);
	CUresult r = CUDA_SUCCESS;

	for (unsigned i = 0; op && i < m->n && !r; i++)
		r = sim_stream_join(m->s[i], op);
	if (!op)
		return NULL;
	if (r) {
		sim_op_unref(op);
		return NULL;
	}
	sim_op_ref(op);
	sim_sched_enqueue(op);
	return op;
}

static CUresult enqueue(struct multi *m, unsigned flags)
{
	struct sim_op *first = flags & NO_PRE ? NULL : gate(m);
	struct sim_op *last = flags & NO_POST ? NULL : nop_in(m->s[0]);
	bool bad = (!first && !(flags & NO_PRE)) || (!last && !(flags & NO_POST));

	for (unsigned i = 0; i < m->n && !bad; i++) {
		struct sim_op *op = sim_op_new(m->s[i]->ctx, m->s[i]->id, &m->w[i]);

		m->w[i].kind = SIM_WORK_NOP;
		if (!op || sim_stream_join(m->s[i], op) || (first && sim_op_after(op, first)) ||
		    (last && sim_op_after(last, op))) {
			bad = true;
			if (op)
				sim_op_unref(op);
			break;
		}
		m->op[i] = op;
		sim_sched_enqueue(op);
		sim_stream_set_tail(m->s[i], op);
	}
	if (last) {
		sim_sched_enqueue(last);
		for (unsigned i = 0; i < m->n && !bad; i++)
			sim_stream_set_tail(m->s[i], last);
	}
	if (first)
		sim_op_unref(first);
	sim_sched_kick();
	return bad ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

SIM_API(cuLaunchCooperativeKernelMultiDevice, SIM_CTX,
	P(CUDA_LAUNCH_PARAMS *list, unsigned n, unsigned flags), P(list, n, flags))
{
	struct multi m = {.n = 0};
	CUresult r = CUDA_SUCCESS;

	if (!list || !n || n > sim_options.devices || (flags & ~(unsigned)(NO_PRE | NO_POST)))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < n && !r; i++)
		r = prepare(&m, &list[i]);
	if (!r)
		r = enqueue(&m, flags);
	for (unsigned i = 0; i < m.n; i++)
		sim_work_clear(&m.w[i]); /* those that became an op are empty */
	return r;
}
