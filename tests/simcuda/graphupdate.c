/* SPDX-License-Identifier: MIT */
/*
 * Changing executable graphs: what may change in a node, whole graphs, child graphs.
 *
 * A whole-graph update instantiates the new graph, compares the two node by node and exchanges their
 * contents, so a refused update changes nothing. Node handles stay those of the graph that was
 * instantiated first, and what was disabled stays so. Driver lock held.
 */
#include "tests/simcuda/graph.h"

#include <stdlib.h>
#include <string.h>

static bool fill_differs(const struct sim_fill *a, const struct sim_fill *b)
{
	if (a->height > 1 || b->height > 1)
		return a->height != b->height || a->width != b->width || a->elem != b->elem ||
		       a->pitch != b->pitch;
	return false; /* one row: dimensions may change */
}

static bool batch_differs(const struct sim_batch *a, const struct sim_batch *b)
{
	if (a->n != b->n)
		return true;
	for (unsigned i = 0; i < a->n; i++) {
		const CUstreamBatchMemOpParams *p = &a->ops[i], *q = &b->ops[i];
		bool waits = p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
			     p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;

		if (p->operation != q->operation)
			return true;
		if (waits &&
		    ((p->waitValue.flags ^ q->waitValue.flags) & CU_STREAM_WAIT_VALUE_FLUSH))
			return true;
	}
	return false;
}

CUgraphExecUpdateResult sim_graphexec_compatible(const struct sim_exec_node *x,
						 const struct sim_work *w, CUcontext ctx)
{
	bool differs = x->work.kind != w->kind;

	if (differs)
		return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
	switch (w->kind) {
	case SIM_WORK_KERNEL:
		if (x->ctx != ctx)
			return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
		if (x->work.kernel.cooperative != w->kernel.cooperative)
			return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
		break;
	case SIM_WORK_COPY:
		differs = x->work.copy.from_host != w->copy.from_host ||
			  x->work.copy.to_host != w->copy.to_host ||
			  !x->work.copy.sarray != !w->copy.sarray ||
			  !x->work.copy.darray != !w->copy.darray;
		break;
	case SIM_WORK_FILL:
		differs = fill_differs(&x->work.fill, &w->fill);
		break;
	case SIM_WORK_BATCH:
		differs = batch_differs(&x->work.batch, &w->batch);
		break;
	case SIM_WORK_SIGNAL:
	case SIM_WORK_AWAIT:
		differs = x->work.sync.n != w->sync.n;
		break;
	case SIM_WORK_COND:
		differs = x->work.cond.type != w->cond.type || x->work.cond.n != w->cond.n;
		break;
	case SIM_WORK_MEMALLOC:
	case SIM_WORK_MEMFREE: /* addresses are for ever */
		if (x->work.mem != w->mem)
			return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
		break;
	default:
		break;
	}
	return differs ? CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED
		       : CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

/* Can f, a fresh instantiation, take the place of e? Nodes of both are in the same order, then. */
static CUgraphExecUpdateResult compare(const struct CUgraphExec_st *e,
				       const struct CUgraphExec_st *f,
				       CUgraphExecUpdateResultInfo *info)
{
	CUgraphExecUpdateResult r = CU_GRAPH_EXEC_UPDATE_SUCCESS;

	if (e->n != f->n)
		return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	for (size_t i = 0; i < e->n && !r; i++) {
		const struct sim_exec_node *x = &e->nodes[i], *y = &f->nodes[i];

		info->errorNode = y->origin;
		if (x->type != y->type)
			return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
		if (x->ndeps != y->ndeps)
			return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
		for (unsigned d = 0; d < x->ndeps; d++)
			if (x->deps[d] != y->deps[d]) {
				info->errorFromNode = f->nodes[y->deps[d]].origin;
				return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
			}
		r = sim_graphexec_compatible(x, &y->work, y->ctx);
		for (unsigned p = 0; p < x->nparts && !r; p++)
			r = compare(x->parts[p], y->parts[p], info);
	}
	if (!r)
		info->errorNode = NULL;
	return r;
}

/* The identity of e's nodes with the contents of f's. */
static void keep_identity(CUgraphExec e, CUgraphExec f)
{
	for (size_t i = 0; i < e->n; i++) {
		f->nodes[i].origin = e->nodes[i].origin;
		f->nodes[i].enabled = e->nodes[i].enabled;
		for (unsigned p = 0; p < e->nodes[i].nparts; p++)
			keep_identity(e->nodes[i].parts[p], f->nodes[i].parts[p]);
	}
}

#define SWAP(a, b)                                                                                 \
	do {                                                                                       \
		__typeof__(a) t_ = a;                                                              \
                                                                                                   \
		a = b;                                                                             \
		b = t_;                                                                            \
	} while (0)

static void exchange(CUgraphExec e, CUgraphExec f)
{
	keep_identity(e, f);
	SWAP(e->nodes, f->nodes);
	SWAP(e->users, f->users);
	SWAP(e->conds, f->conds);
	SWAP(e->nconds, f->nconds);
}

static CUresult update(CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo *ret)
{
	struct sim_instantiation why = {0};
	CUgraphExec f;
	CUresult r;

	*ret = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_ERROR};
	r = sim_graphexec_new(e->ctx, g, &why, &f);
	if (r == CUDA_ERROR_OUT_OF_MEMORY)
		return r;
	if (!r) {
		ret->result = compare(e, f, ret);
		if (!ret->result) {
			exchange(e, f);
			sim_graphexec_release_later(f, e->last);
		}
		sim_graphexec_free(f);
	}
	return ret->result ? CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE : CUDA_SUCCESS;
}

static CUresult exec_update(CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo *ret)
{
	*ret = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_ERROR};
	if (!sim_handle_is(e, SIM_H_EXEC) || !sim_handle_is(g, SIM_H_GRAPH) || g->is_moved)
		return CUDA_ERROR_INVALID_VALUE;
	return update(e, g, ret);
}

SIM_API(cuGraphExecUpdate, SIM_INIT,
	P(CUgraphExec e, CUgraph g, CUgraphNode *ret_bad, CUgraphExecUpdateResult *ret),
	P(e, g, ret_bad, ret))
{
	CUgraphExecUpdateResultInfo info;
	CUresult r;

	if (!ret || !ret_bad)
		return CUDA_ERROR_INVALID_VALUE;
	r = exec_update(e, g, &info);
	*ret = info.result;
	*ret_bad = info.errorNode;
	return r;
}

SIM_API(cuGraphExecUpdate_v2, SIM_INIT,
	P(CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo *ret), P(e, g, ret))
{
	return ret ? exec_update(e, g, ret) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_graphexec_set_child(CUgraphExec e, CUgraphNode n, CUgraph child)
{
	struct sim_exec_node *x = sim_handle_is(e, SIM_H_EXEC) ? sim_graphexec_find(e, n) : NULL;
	CUgraphExecUpdateResultInfo info;
	CUresult r;

	if (!x || x->type != CU_GRAPH_NODE_TYPE_GRAPH || !sim_handle_is(child, SIM_H_GRAPH))
		return CUDA_ERROR_INVALID_VALUE;
	r = update(x->parts[0], child, &info);
	return r == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE ? CUDA_ERROR_INVALID_VALUE : r;
}

SIM_API(cuGraphExecChildGraphNodeSetParams, SIM_CTX, P(CUgraphExec e, CUgraphNode n, CUgraph child),
	P(e, n, child))
{
	return sim_graphexec_set_child(e, n, child);
}
