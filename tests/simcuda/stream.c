/* SPDX-License-Identifier: MIT */
/*
 * Streams: handles, the order between them, submission, synchronisation.
 *
 * A stream is the tail of a chain of ops. The legacy default stream (handle 0 of the plain entry points,
 * CU_STREAM_LEGACY) waits for all blocking streams of its context and they wait for it; a stream made
 * with CU_STREAM_NON_BLOCKING has nothing to do with it. The per-thread default stream (handle 0 of
 * the _ptsz/_ptds twins, CU_STREAM_PER_THREAD) is a blocking stream of the calling thread and context.
 * Destroying a stream does not wait: its queued ops still run, and the context remembers its tail.
 * Driver lock held.
 */
#include "tests/simcuda/sim.h"

#include <pthread.h>
#include <stdlib.h>

static uint64_t next_id = 1;

/* This thread's default streams, by context id. */
static __thread struct ptds {
	uint64_t ctx_id;
	CUstream stream;
} * ptds;
static __thread unsigned nptds;
static pthread_key_t ptds_key;

uint64_t sim_stream_next_id(void)
{
	return next_id;
}

CUresult sim_stream_new(CUcontext ctx, unsigned flags, int priority, CUstream *ret)
{
	CUstream s = calloc(1, sizeof(*s));

	if (!s || sim_handle_add(s, SIM_H_STREAM)) {
		free(s);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	s->ctx = ctx;
	s->id = next_id++;
	s->flags = flags;
	s->priority = priority;
	s->next = ctx->streams;
	ctx->streams = s;
	*ret = s;
	return CUDA_SUCCESS;
}

void sim_stream_detach(CUcontext c, struct sim_op *tail)
{
	struct sim_op **p;

	if (!tail || tail->state == SIM_OP_DONE)
		return;
	p = realloc(c->detached, (c->ndetached + 1) * sizeof(*p));
	if (!p) {
		sim_sched_wait(tail);
		return;
	}
	c->detached = p;
	p[c->ndetached++] = tail;
	sim_op_ref(tail);
}

void sim_stream_free(CUstream s)
{
	CUstream *at = &s->ctx->streams;

	sim_capture_drop_stream(s);
	if (!s->ctx->destroyed)
		sim_stream_detach(s->ctx, s->tail);
	sim_pool_forget_stream(s);
	sim_handle_del(s);
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	if (s->tail)
		sim_op_unref(s->tail);
	free(s->deps);
	free(s);
}

/* A thread ends: its streams go, what they have queued is still done. */
static void forget_thread(void *list)
{
	sim_api_lock();
	for (unsigned i = 0; i < nptds; i++) {
		CUstream s = ptds[i].stream;

		if (sim_handle_is(s, SIM_H_STREAM) && s->is_ptds && s->ctx->id == ptds[i].ctx_id)
			sim_stream_free(s);
	}
	sim_api_unlock();
	free(list);
	ptds = NULL;
	nptds = 0;
}

static void make_key(void)
{
	pthread_key_create(&ptds_key, forget_thread);
}

static CUresult per_thread(CUcontext ctx, CUstream *ret)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct ptds *p;
	CUresult r;

	pthread_once(&once, make_key);

	for (unsigned i = 0; i < nptds; i++)
		if (ptds[i].ctx_id == ctx->id) {
			*ret = ptds[i].stream;
			return CUDA_SUCCESS;
		}
	p = realloc(ptds, (nptds + 1) * sizeof(*p));
	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ptds = p;
	pthread_setspecific(ptds_key, p);
	r = sim_stream_new(ctx, 0, 0, ret);
	if (r)
		return r;
	(*ret)->is_ptds = true;
	ptds[nptds++] = (struct ptds){ctx->id, *ret};
	return CUDA_SUCCESS;
}

CUresult sim_stream_get(struct sim_call *call, CUstream h, CUstream *ret)
{
	if (h == CU_STREAM_PER_THREAD || (!h && call->per_thread))
		return per_thread(call->ctx, ret);
	if (!h || h == CU_STREAM_LEGACY) {
		*ret = call->ctx->legacy;
		return CUDA_SUCCESS;
	}
	if (!sim_handle_is(h, SIM_H_STREAM))
		return CUDA_ERROR_INVALID_HANDLE;
	*ret = h;
	return h->ctx->sticky;
}

static bool blocking(const struct CUstream_st *s)
{
	return !(s->flags & CU_STREAM_NON_BLOCKING);
}

static int after_detached(CUcontext ctx, struct sim_op *op)
{
	size_t kept = 0;
	int r = 0;

	for (size_t i = 0; i < ctx->ndetached; i++) {
		struct sim_op *d = ctx->detached[i];

		r |= sim_op_after(op, d);
		if (d->state == SIM_OP_DONE)
			sim_op_unref(d);
		else
			ctx->detached[kept++] = d;
	}
	ctx->ndetached = kept;
	return r;
}

CUresult sim_stream_join(CUstream s, struct sim_op *op)
{
	CUcontext c = s->ctx;
	int r = 0;

	if (s->tail)
		r = sim_op_after(op, s->tail);
	if (s == c->legacy) {
		for (CUstream o = c->streams; o; o = o->next)
			if (o != s && blocking(o) && o->tail)
				r |= sim_op_after(op, o->tail);
		r |= after_detached(c, op);
	} else if (blocking(s) && c->legacy->tail) {
		r |= sim_op_after(op, c->legacy->tail);
	}
	return r ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

void sim_stream_set_tail(CUstream s, struct sim_op *op)
{
	sim_op_ref(op);
	if (s->tail)
		sim_op_unref(s->tail);
	s->tail = op;
}

static CUgraphNodeType node_type(const struct sim_work *w)
{
	switch (w->kind) {
	case SIM_WORK_KERNEL:
		return CU_GRAPH_NODE_TYPE_KERNEL;
	case SIM_WORK_COPY:
		return CU_GRAPH_NODE_TYPE_MEMCPY;
	case SIM_WORK_FILL:
		return CU_GRAPH_NODE_TYPE_MEMSET;
	case SIM_WORK_HOST:
	case SIM_WORK_CALLBACK:
		return CU_GRAPH_NODE_TYPE_HOST;
	case SIM_WORK_SIGNAL:
		return CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL;
	case SIM_WORK_AWAIT:
		return CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT;
	default:
		return CU_GRAPH_NODE_TYPE_EMPTY;
	}
}

CUresult sim_stream_submit(CUstream s, struct sim_work *w, struct sim_op **ret_op)
{
	struct sim_op *op;
	CUresult r;

	if (s->cap)
		return sim_capture_add(s, w, node_type(w));
	if (s->is_legacy && sim_capture_blocks_legacy(s->ctx)) {
		sim_work_clear(w);
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	op = sim_op_new(s->ctx, s->id, w);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = sim_stream_join(s, op);
	sim_sched_enqueue(op);
	sim_stream_set_tail(s, op);
	if (ret_op) {
		sim_op_ref(op);
		*ret_op = op;
	}
	if (!r)
		sim_sched_kick();
	return r;
}

CUresult sim_stream_submit_wait(CUstream s, struct sim_work *w)
{
	struct sim_op *op = NULL;
	CUresult r;

	if (s->cap) {
		sim_work_clear(w);
		return sim_capture_break(s, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	}
	r = sim_stream_submit(s, w, &op);
	if (op) {
		if (!r)
			r = sim_sched_wait(op);
		sim_op_unref(op);
	}
	return r;
}

CUresult sim_stream_sync(CUstream s)
{
	CUcontext ctx = s->ctx;
	struct sim_work nop = {.kind = SIM_WORK_NOP};

	if (s->cap)
		return sim_capture_break(s, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	/* The legacy stream stands for all blocking ones. */
	if (s->is_legacy)
		return sim_stream_submit_wait(s, &nop);
	if (s->tail)
		sim_sched_wait(s->tail);
	sim_pool_trim_all(ctx->dev_id);
	return ctx->sticky;
}

static CUresult create(struct sim_call *call, CUstream *ret, unsigned flags, int priority)
{
	if (!ret || flags > CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
	return sim_stream_new(call->ctx, flags, priority, ret);
}

SIM_API(cuStreamCreate, SIM_CTX, P(CUstream *ret, unsigned flags), P(ret, flags))
{
	return create(call, ret, flags, 0);
}

SIM_API(cuStreamCreateWithPriority, SIM_CTX, P(CUstream *ret, unsigned flags, int priority),
	P(ret, flags, priority))
{
	return create(call, ret, flags, priority);
}

static CUresult destroy(CUstream s)
{
	if (!sim_handle_is(s, SIM_H_STREAM) || s->is_legacy || s->is_ptds)
		return CUDA_ERROR_INVALID_HANDLE;
	sim_stream_free(s);
	return CUDA_SUCCESS;
}

SIM_API(cuStreamDestroy, SIM_INIT, P(CUstream s), P(s))
{
	return destroy(s);
}

SIM_API(cuStreamDestroy_v2, SIM_INIT, P(CUstream s), P(s))
{
	return destroy(s);
}

SIM_TWINS(cuStreamSynchronize, _ptsz, SIM_CTX | SIM_UNSAFE, P(CUstream h), P(h))
{
	CUstream s;
	CUresult r = sim_stream_get(call, h, &s);

	return r ? r : sim_stream_sync(s);
}

SIM_TWINS(cuStreamQuery, _ptsz, SIM_CTX | SIM_UNSAFE, P(CUstream h), P(h))
{
	CUstream s;
	CUresult r = sim_stream_get(call, h, &s);

	if (r)
		return r;
	if (s->is_legacy) {
		struct sim_work nop = {.kind = SIM_WORK_NOP};

		/* Every blocking stream must be idle: ask an op that comes after them all. */
		if (!s->tail || s->tail->state == SIM_OP_DONE) {
			r = sim_stream_submit(s, &nop, NULL);
			if (r)
				return r;
		}
	}
	if (!s->tail)
		return CUDA_SUCCESS;
	sim_sched_poll(s->tail);
	if (s->ctx->sticky)
		return s->ctx->sticky;
	if (s->tail->state != SIM_OP_DONE)
		return CUDA_ERROR_NOT_READY;
	sim_clock_host_saw(s->tail);
	return CUDA_SUCCESS;
}

SIM_TWINS(cuStreamGetCtx, _ptsz, SIM_CTX, P(CUstream h, CUcontext *ret), P(h, ret))
{
	CUstream s;
	CUresult r = ret ? sim_stream_get(call, h, &s) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*ret = s->ctx;
	return r;
}

SIM_TWINS(cuStreamGetCtx_v2, _ptsz, SIM_CTX, P(CUstream h, CUcontext *ret, CUgreenCtx *ret_green),
	  P(h, ret, ret_green))
{
	CUstream s;
	CUresult r = ret ? sim_stream_get(call, h, &s) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*ret = s->ctx;
	if (!r && ret_green)
		*ret_green = s->green;
	return r;
}

SIM_TWINS(cuStreamGetDevice, _ptsz, SIM_CTX, P(CUstream h, CUdevice *ret), P(h, ret))
{
	CUstream s;
	CUresult r = ret ? sim_stream_get(call, h, &s) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*ret = s->ctx->dev_id;
	return r;
}

SIM_TWINS(cuStreamGetFlags, _ptsz, SIM_CTX, P(CUstream h, unsigned *ret), P(h, ret))
{
	CUstream s;
	CUresult r = ret ? sim_stream_get(call, h, &s) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*ret = s->flags;
	return r;
}

SIM_TWINS(cuStreamGetPriority, _ptsz, SIM_CTX, P(CUstream h, int *ret), P(h, ret))
{
	CUstream s;
	CUresult r = ret ? sim_stream_get(call, h, &s) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*ret = s->priority;
	return r;
}

SIM_TWINS(cuStreamGetId, _ptsz, SIM_CTX, P(CUstream h, unsigned long long *ret), P(h, ret))
{
	CUstream s;
	CUresult r = ret ? sim_stream_get(call, h, &s) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*ret = s->id;
	return r;
}
