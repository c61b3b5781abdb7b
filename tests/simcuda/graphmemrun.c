/* SPDX-License-Identifier: MIT */
/*
 * Graph memory in time: what a launch allocates and frees, and frees outside of graphs.
 * See graphmem.h. Driver lock held.
 */
#include "tests/simcuda/graphmem.h"

void sim_graphmem_queued(struct sim_graph_mem *m)
{
	m->pending++;
}

CUresult sim_graphmem_run(struct sim_op *op)
{
	struct sim_graph_mem *m = op->work.mem;
	CUresult r = CUDA_SUCCESS;
	bool alloc = op->work.kind == SIM_WORK_MEMALLOC;

	m->pending--;
	if (m->alloc->in_dev == alloc && !op->ctx->sticky) {
		sim_log("fault: graph memory at 0x%llx is %s", (unsigned long long)m->alloc->base,
			alloc ? "allocated twice" : "freed while it is not allocated");
		r = CUDA_ERROR_ILLEGAL_ADDRESS;
	}
	sim_graphmem_set_live(m, alloc);
	if (alloc)
		return r;
	/* The memory may hold this op as its last free: they must not hold each other. */
	op->work.kind = SIM_WORK_NOP;
	sim_graphmem_unref(m);
	return r;
}

typedef CUresult (*mem_fn)(const struct sim_work *w, void *opaque);

/* For each memory node of e and its child graphs; stops at the first failure. */
static CUresult each(CUgraphExec e, mem_fn fn, void *opaque)
{
	CUresult r = CUDA_SUCCESS;

	for (size_t i = 0; i < e->n && !r; i++) {
		const struct sim_exec_node *x = &e->nodes[i];

		if (x->work.kind == SIM_WORK_MEMALLOC || x->work.kind == SIM_WORK_MEMFREE)
			r = fn(&x->work, opaque);
		else if (x->type == CU_GRAPH_NODE_TYPE_GRAPH)
			r = each(x->parts[0], fn, opaque);
	}
	return r;
}

static CUresult not_here(const struct sim_work *w, void *opaque)
{
	(void)opaque;
	w->mem->here = false;
	return CUDA_SUCCESS;
}

static CUresult check_alloc(const struct sim_work *w, void *opaque)
{
	const CUgraphExec e = opaque;

	if (w->kind != SIM_WORK_MEMALLOC)
		return CUDA_SUCCESS;
	if (w->mem->out && !(e->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH))
		return CUDA_ERROR_INVALID_VALUE;
	w->mem->here = true;
	return CUDA_SUCCESS;
}

static CUresult check_free(const struct sim_work *w, void *opaque)
{
	(void)opaque;
	return w->kind == SIM_WORK_MEMFREE && !w->mem->here && !w->mem->out
		       ? CUDA_ERROR_INVALID_VALUE
		       : CUDA_SUCCESS;
}

static CUresult charge(const struct sim_work *w, void *opaque)
{
	(void)opaque;
	return w->kind == SIM_WORK_MEMALLOC ? sim_graphmem_charge(w->mem) : CUDA_SUCCESS;
}

CUresult sim_graphmem_check(CUgraphExec e)
{
	CUresult r;

	each(e, not_here, NULL);
	r = each(e, check_alloc, e);
	if (!r)
		r = each(e, check_free, NULL);
	return r ? r : sim_graphmem_reserve(e);
}

CUresult sim_graphmem_reserve(CUgraphExec e)
{
	return each(e, charge, NULL);
}

static CUresult after_free(const struct sim_work *w, void *first)
{
	return w->kind == SIM_WORK_MEMALLOC && w->mem->free_op &&
			       sim_op_after(first, w->mem->free_op)
		       ? CUDA_ERROR_OUT_OF_MEMORY
		       : CUDA_SUCCESS;
}

int sim_graphmem_order(CUgraphExec e, struct sim_op *first)
{
	return each(e, after_free, first) ? -1 : 0;
}

static void set_out(struct sim_graph_mem *m, bool out)
{
	if (m->out == out)
		return;
	m->out = out;
	if (out)
		sim_graphmem_ref(m);
	else
		sim_graphmem_unref(m);
}

static void set_free_op(struct sim_graph_mem *m, struct sim_op *op)
{
	sim_op_ref(op);
	if (m->free_op)
		sim_op_unref(m->free_op);
	m->free_op = op;
}

struct launch {
	CUstream stream;
	struct sim_op *first;
};

static struct sim_op *free_op(struct sim_graph_mem *m, CUstream s)
{
	struct sim_work w = {.kind = SIM_WORK_MEMFREE, .mem = m};
	struct sim_op *op;

	sim_graphmem_ref(m);
	op = sim_op_new(s->ctx, s->id, &w);
	if (op)
		sim_graphmem_queued(m);
	return op;
}

/* Free what an earlier launch left, as if by cuMemFreeAsync. */
static CUresult auto_free(const struct sim_work *w, void *opaque)
{
	struct launch *l = opaque;
	struct sim_op *op;
	int bad;

	if (w->kind != SIM_WORK_MEMALLOC || !w->mem->out)
		return CUDA_SUCCESS;
	op = free_op(w->mem, l->stream);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	bad = sim_op_after(op, l->first);
	sim_op_ref(op);
	sim_sched_enqueue(op);
	sim_op_unref(l->first);
	l->first = op;
	return bad ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static CUresult now_out(const struct sim_work *w, void *opaque)
{
	const struct launch *l = opaque;

	if (w->kind == SIM_WORK_MEMALLOC) {
		set_out(w->mem, true);
		w->mem->launch_ctx = l->stream->ctx;
	}
	return CUDA_SUCCESS;
}

CUresult sim_graphmem_begin(CUgraphExec e, CUstream s, struct sim_op **first)
{
	struct launch l = {s, *first};
	CUresult r = each(e, auto_free, &l);

	*first = l.first;
	each(e, now_out, &l);
	return r;
}

struct left {
	CUgraphExec exec;
	struct sim_op *last;
	struct sim_graph_mem *mem;
	int n;
};

/* Addresses are given out again within a graph: how often more is it allocated than freed? */
static CUresult count(const struct sim_work *w, void *opaque)
{
	struct left *l = opaque;

	if (w->mem == l->mem)
		l->n += w->kind == SIM_WORK_MEMALLOC ? 1 : -1;
	return CUDA_SUCCESS;
}

static CUresult freed(const struct sim_work *w, void *opaque)
{
	struct left *l = opaque;

	if (w->kind != SIM_WORK_MEMFREE)
		return CUDA_SUCCESS;
	l->mem = w->mem;
	l->n = 0;
	each(l->exec, count, l);
	set_free_op(w->mem, l->last);
	if (l->n <= 0)
		set_out(w->mem, false);
	return CUDA_SUCCESS;
}

void sim_graphmem_end(CUgraphExec e, struct sim_op *last)
{
	struct left l = {.exec = e, .last = last};

	each(e, freed, &l);
}

/* ---- freeing outside of graphs ---- */

CUresult sim_graphmem_free(struct sim_call *call, struct sim_graph_mem *m)
{
	CUresult r;

	if (m->freed_inside || !m->out)
		return CUDA_ERROR_INVALID_VALUE;
	sim_graphmem_ref(m);
	r = sim_ctx_sync(call->ctx);
	if (!r && m->launch_ctx != call->ctx && sim_handle_is(m->launch_ctx, SIM_H_CTX))
		r = sim_ctx_sync(m->launch_ctx);
	if (!r && !m->out)
		r = CUDA_ERROR_INVALID_VALUE; /* freed by another thread meanwhile */
	if (!r) {
		sim_graphmem_set_live(m, false);
		set_out(m, false);
	}
	sim_graphmem_unref(m);
	return r;
}

CUresult sim_graphmem_free_async(struct sim_graph_mem *m, CUstream s)
{
	struct sim_op *op;
	CUresult r;

	if (m->freed_inside || !m->out)
		return CUDA_ERROR_INVALID_VALUE;
	op = free_op(m, s);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = sim_stream_join(s, op);
	sim_sched_enqueue(op);
	sim_stream_set_tail(s, op);
	set_free_op(m, op);
	set_out(m, false);
	sim_sched_kick();
	return r;
}
