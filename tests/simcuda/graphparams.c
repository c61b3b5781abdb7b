/* SPDX-License-Identifier: MIT */
/*
 * Nodes of any type through the one tagged union, CUgraphNodeParams. Driver lock held.
 *
 * Unused bytes of the union must be zero, as the manual asks. The older ABI of cuGraphAddNode has no
 * annotations of edges.
 */
#include "tests/simcuda/graph.h"

#include <string.h>

static const size_t used[] = {
	[CU_GRAPH_NODE_TYPE_KERNEL] = sizeof(CUDA_KERNEL_NODE_PARAMS_v3),
	[CU_GRAPH_NODE_TYPE_MEMCPY] = sizeof(CUDA_MEMCPY_NODE_PARAMS),
	[CU_GRAPH_NODE_TYPE_MEMSET] = sizeof(CUDA_MEMSET_NODE_PARAMS_v2),
	[CU_GRAPH_NODE_TYPE_HOST] = sizeof(CUDA_HOST_NODE_PARAMS_v2),
	[CU_GRAPH_NODE_TYPE_GRAPH] = sizeof(CUDA_CHILD_GRAPH_NODE_PARAMS),
	[CU_GRAPH_NODE_TYPE_EMPTY] = 0,
	[CU_GRAPH_NODE_TYPE_WAIT_EVENT] = sizeof(CUDA_EVENT_WAIT_NODE_PARAMS),
	[CU_GRAPH_NODE_TYPE_EVENT_RECORD] = sizeof(CUDA_EVENT_RECORD_NODE_PARAMS),
	[CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL] = sizeof(CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2),
	[CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT] = sizeof(CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2),
	[CU_GRAPH_NODE_TYPE_MEM_ALLOC] = sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v2),
	[CU_GRAPH_NODE_TYPE_MEM_FREE] = sizeof(CUDA_MEM_FREE_NODE_PARAMS),
	[CU_GRAPH_NODE_TYPE_BATCH_MEM_OP] = sizeof(CUDA_BATCH_MEM_OP_NODE_PARAMS_v2),
	[CU_GRAPH_NODE_TYPE_CONDITIONAL] = sizeof(CUDA_CONDITIONAL_NODE_PARAMS),
};

/* The members of the union have the layout of the structures of the older entry points. */
_Static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS_v3) == sizeof(CUDA_KERNEL_NODE_PARAMS) &&
		       offsetof(CUDA_KERNEL_NODE_PARAMS_v3, ctx) ==
			       offsetof(CUDA_KERNEL_NODE_PARAMS, ctx) &&
		       sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v2) ==
			       sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) &&
		       offsetof(CUDA_MEM_ALLOC_NODE_PARAMS_v2, dptr) ==
			       offsetof(CUDA_MEM_ALLOC_NODE_PARAMS, dptr) &&
		       sizeof(CUDA_BATCH_MEM_OP_NODE_PARAMS_v2) ==
			       sizeof(CUDA_BATCH_MEM_OP_NODE_PARAMS),
	       "node parameters of two versions");

static bool malformed(const CUgraphNodeParams *p)
{
	const char *u;

	if (!p || (unsigned)p->type >= sizeof(used) / sizeof(used[0]) || p->reserved0[0] ||
	    p->reserved0[1] || p->reserved0[2] || p->reserved2)
		return true;
	u = (const char *)p + offsetof(CUgraphNodeParams, reserved1);
	for (size_t i = used[p->type]; i < sizeof(p->reserved1); i++)
		if (u[i])
			return true;
	return false;
}

/*
 * The work of a node that can be set, and the context it names; g: the graph that the node belongs to, for
 * a child graph's sake.
 */
static CUresult work_of(struct sim_call *call, CUgraph g, const CUgraphNodeParams *p,
			struct sim_work *w, CUcontext *ret_ctx)
{
	CUDA_MEMSET_NODE_PARAMS fill;
	CUDA_HOST_NODE_PARAMS host;
	CUDA_BATCH_MEM_OP_NODE_PARAMS batch;
	union {
		CUDA_EXT_SEM_SIGNAL_NODE_PARAMS signal;
		CUDA_EXT_SEM_WAIT_NODE_PARAMS await;
	} sems;

	switch (p->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return sim_graphnode_kernel(call, &p->kernel, sizeof(p->kernel), w, ret_ctx);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		if (p->memcpy.flags || p->memcpy.reserved)
			return CUDA_ERROR_INVALID_VALUE;
		*ret_ctx = p->memcpy.copyCtx;
		return sim_graphnode_copy(&p->memcpy.copyParams, p->memcpy.copyCtx, w);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		fill = (CUDA_MEMSET_NODE_PARAMS){p->memset.dst,	  p->memset.pitch,
						 p->memset.value, p->memset.elementSize,
						 p->memset.width, p->memset.height};
		*ret_ctx = p->memset.ctx;
		return sim_graphnode_fill(&fill, p->memset.ctx, w);
	case CU_GRAPH_NODE_TYPE_HOST:
		host = (CUDA_HOST_NODE_PARAMS){p->host.fn, p->host.userData};
		return sim_graphnode_host(&host, w);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return sim_graphnode_child(g, p->graph.graph, p->graph.ownership, w);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		*w = (struct sim_work){.kind = SIM_WORK_NOP};
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return sim_graphnode_event(p->eventWait.event, SIM_WORK_EVENTWAIT, w);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return sim_graphnode_event(p->eventRecord.event, SIM_WORK_EVENT, w);
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
		memcpy(&sems.signal, &p->extSemSignal, sizeof(sems.signal));
		return sim_graphnode_signal(&sems.signal, w);
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
		memcpy(&sems.await, &p->extSemWait, sizeof(sems.await));
		return sim_graphnode_await(&sems.await, w);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		memcpy(&batch, &p->memOp, sizeof(batch));
		*ret_ctx = batch.ctx;
		return sim_graphnode_batch(&batch, w);
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

static CUresult add_any(struct sim_call *call, SIM_ADD_PARAMS, CUgraphNodeParams *p)
{
	CUDA_MEM_ALLOC_NODE_PARAMS alloc;
	CUcontext ctx = NULL;
	struct sim_work w;
	CUresult r;

	switch (p->type) {
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		memcpy(&alloc, &p->alloc, sizeof(alloc));
		r = sim_graphmem_add_alloc(call, SIM_ADD_ARGS, &alloc);
		p->alloc.dptr = alloc.dptr;
		return r;
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return sim_graphmem_add_free(call, SIM_ADD_ARGS, p->free.dptr);
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return sim_graphcond_add(call, SIM_ADD_ARGS, &p->conditional);
	default:
		r = work_of(call, g, p, &w, &ctx);
		return sim_graphnode_add(call, p->type, r, &w, ctx, SIM_ADD_ARGS);
	}
}

static CUresult add(struct sim_call *call, SIM_ADD_PARAMS, const CUgraphEdgeData *data,
		    CUgraphNodeParams *p)
{
	CUresult r = malformed(p) || sim_graphnode_bad_add(SIM_ADD_ARGS)
			     ? CUDA_ERROR_INVALID_VALUE
			     : sim_graph_edges_ok(data, n, deps, p->type);

	if (!r)
		r = add_any(call, SIM_ADD_ARGS, p);
	for (size_t i = 0; !r && data && i < n; i++)
		(*ret)->edges[i] = data[i];
	return r;
}

SIM_API(cuGraphAddNode, SIM_CTX, P(SIM_ADD_PARAMS, CUgraphNodeParams *p), P(SIM_ADD_ARGS, p))
{
	return add(call, SIM_ADD_ARGS, NULL, p);
}

SIM_API(cuGraphAddNode_v2, SIM_CTX,
	P(CUgraphNode *ret, CUgraph g, const CUgraphNode *deps, const CUgraphEdgeData *data,
	  size_t n, CUgraphNodeParams *p),
	P(ret, g, deps, data, n, p))
{
	return add(call, SIM_ADD_ARGS, data, p);
}

SIM_API(cuGraphNodeSetParams, SIM_CTX, P(CUgraphNode n, CUgraphNodeParams *p), P(n, p))
{
	CUcontext ctx = NULL;
	struct sim_work w;
	CUresult r;

	if (malformed(p) || !sim_handle_is(n, SIM_H_NODE) || n->type != p->type)
		return CUDA_ERROR_INVALID_VALUE;
	r = work_of(call, n->graph, p, &w, &ctx);
	if (!r && p->type == CU_GRAPH_NODE_TYPE_GRAPH)
		w.graph->parent = n->graph;
	r = sim_graphnode_set(n, p->type, r, &w);
	if (!r && ctx)
		n->ctx = ctx;
	return r;
}

SIM_API(cuGraphExecNodeSetParams, SIM_CTX, P(CUgraphExec e, CUgraphNode n, CUgraphNodeParams *p),
	P(e, n, p))
{
	CUcontext ctx = NULL;
	struct sim_work w;
	CUresult r;

	if (malformed(p) || !sim_handle_is(e, SIM_H_EXEC))
		return CUDA_ERROR_INVALID_VALUE;
	if (p->type == CU_GRAPH_NODE_TYPE_GRAPH)
		return sim_graphexec_set_child(e, n, p->graph.graph);
	r = work_of(call, NULL, p, &w, &ctx);
	return sim_graphnode_exec_set(e, n, p->type, r, &w);
}
