/* SPDX-License-Identifier: MIT */
/*
 * What all graph nodes have in common: being added, and changed in the graph or in an executable graph;
 * and the plain ones: host functions, empty nodes, child graphs, events.
 *
 * Each kind has one function that turns the caller's parameters into a work; add, set and exec-set share
 * it. Arguments are copied at that moment. Driver lock held.
 */
#include "tests/simcuda/graph.h"

#include <stdlib.h>
#include <string.h>

bool sim_graphnode_bad_add(SIM_ADD_PARAMS)
{
	return !ret || !sim_handle_is(g, SIM_H_GRAPH) || (n && !deps);
}

CUresult sim_graphnode_add(struct sim_call *call, CUgraphNodeType type, CUresult r,
			   struct sim_work *w, CUcontext ctx, SIM_ADD_PARAMS)
{
	if (r)
		return r;
	return sim_graph_add(g, type, w, ctx ? ctx : call->ctx, deps, n, ret);
}

CUresult sim_graphnode_is(CUgraphNode n, CUgraphNodeType type)
{
	return sim_handle_is(n, SIM_H_NODE) && n->type == type ? CUDA_SUCCESS
							       : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_graphnode_set(CUgraphNode n, CUgraphNodeType type, CUresult r, struct sim_work *w)
{
	if (r)
		return r;
	r = sim_graphnode_is(n, type);
	if (r) {
		sim_work_clear(w);
		return r;
	}
	if (type ==
	    CU_GRAPH_NODE_TYPE_KERNEL) /* an attribute: setting parameters leaves it alone */
		w->kernel.cooperative = n->work.kernel.cooperative;
	sim_work_clear(&n->work);
	n->work = *w;
	free(n->argv);
	n->argv = NULL;
	return CUDA_SUCCESS;
}

/* Copies of more than a row cannot be changed one by one. */
static bool multidimensional(const struct sim_work *w)
{
	return w->kind == SIM_WORK_COPY && (w->copy.height > 1 || w->copy.depth > 1);
}

CUresult sim_graphnode_exec_set(CUgraphExec e, CUgraphNode n, CUgraphNodeType type, CUresult r,
				struct sim_work *w)
{
	struct sim_exec_node *x;
	CUcontext ctx;

	if (r)
		return r;
	x = sim_handle_is(e, SIM_H_EXEC) && !sim_graphnode_is(n, type) ? sim_graphexec_find(e, n)
								       : NULL;
	if (x && type == CU_GRAPH_NODE_TYPE_KERNEL)
		w->kernel.cooperative = x->work.kernel.cooperative;
	ctx = type == CU_GRAPH_NODE_TYPE_KERNEL ? w->kernel.func->mod->ctx : x ? x->ctx : NULL;
	if (!x || multidimensional(&x->work) || multidimensional(w) ||
	    sim_graphexec_compatible(x, w, ctx)) {
		sim_work_clear(w);
		return CUDA_ERROR_INVALID_VALUE;
	}
	sim_work_clear(&x->work);
	x->work = *w;
	return CUDA_SUCCESS;
}

/* ---- host functions ---- */

CUresult sim_graphnode_host(const CUDA_HOST_NODE_PARAMS *p, struct sim_work *w)
{
	if (!p || !p->fn)
		return CUDA_ERROR_INVALID_VALUE;
	*w = (struct sim_work){.kind = SIM_WORK_HOST, .host = {p->fn, p->userData}};
	return CUDA_SUCCESS;
}

SIM_API(cuGraphAddHostNode, SIM_CTX, P(SIM_ADD_PARAMS, const CUDA_HOST_NODE_PARAMS *p),
	P(SIM_ADD_ARGS, p))
{
	struct sim_work w;
	CUresult r = sim_graphnode_bad_add(SIM_ADD_ARGS) ? CUDA_ERROR_INVALID_VALUE
							 : sim_graphnode_host(p, &w);

	return sim_graphnode_add(call, CU_GRAPH_NODE_TYPE_HOST, r, &w, NULL, SIM_ADD_ARGS);
}

SIM_API(cuGraphHostNodeGetParams, SIM_CTX, P(CUgraphNode n, CUDA_HOST_NODE_PARAMS *p), P(n, p))
{
	CUresult r = p ? sim_graphnode_is(n, CU_GRAPH_NODE_TYPE_HOST) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*p = (CUDA_HOST_NODE_PARAMS){n->work.host.fn, n->work.host.arg};
	return r;
}

SIM_API(cuGraphHostNodeSetParams, SIM_CTX, P(CUgraphNode n, const CUDA_HOST_NODE_PARAMS *p),
	P(n, p))
{
	struct sim_work w;
	CUresult r = sim_graphnode_host(p, &w);

	return sim_graphnode_set(n, CU_GRAPH_NODE_TYPE_HOST, r, &w);
}

SIM_API(cuGraphExecHostNodeSetParams, SIM_CTX,
	P(CUgraphExec e, CUgraphNode n, const CUDA_HOST_NODE_PARAMS *p), P(e, n, p))
{
	struct sim_work w;
	CUresult r = sim_graphnode_host(p, &w);

	return sim_graphnode_exec_set(e, n, CU_GRAPH_NODE_TYPE_HOST, r, &w);
}

/* ---- empty, child graph and event nodes ---- */

SIM_API(cuGraphAddEmptyNode, SIM_CTX, P(SIM_ADD_PARAMS), P(SIM_ADD_ARGS))
{
	struct sim_work w = {.kind = SIM_WORK_NOP};
	CUresult r = sim_graphnode_bad_add(SIM_ADD_ARGS) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;

	return sim_graphnode_add(call, CU_GRAPH_NODE_TYPE_EMPTY, r, &w, NULL, SIM_ADD_ARGS);
}

CUresult sim_graphnode_child(CUgraph g, CUgraph child, CUgraphChildGraphNodeOwnership how,
			     struct sim_work *w)
{
	*w = (struct sim_work){.kind = SIM_WORK_GRAPH};
	if (!sim_handle_is(child, SIM_H_GRAPH) || child == g ||
	    (unsigned)how > CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_graph_has(child, SIM_COND_NODES))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (how == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) {
		/* Without memory of another node, a graph under capture, or one that is used already. */
		if (child->is_child || child->cap || child->single)
			return CUDA_ERROR_INVALID_VALUE;
		child->is_child = child->is_moved = true;
		w->graph = child;
		return CUDA_SUCCESS;
	}
	if (sim_graph_has(child, SIM_MEM_NODES))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (sim_graph_clone(child, &w->graph))
		return CUDA_ERROR_OUT_OF_MEMORY;
	w->graph->is_child = true;
	return CUDA_SUCCESS;
}

SIM_API(cuGraphAddChildGraphNode, SIM_CTX, P(SIM_ADD_PARAMS, CUgraph child), P(SIM_ADD_ARGS, child))
{
	struct sim_work w;
	CUresult r =
		sim_graphnode_bad_add(SIM_ADD_ARGS)
			? CUDA_ERROR_INVALID_VALUE
			: sim_graphnode_child(g, child, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE, &w);

	return sim_graphnode_add(call, CU_GRAPH_NODE_TYPE_GRAPH, r, &w, NULL, SIM_ADD_ARGS);
}

SIM_API(cuGraphChildGraphNodeGetGraph, SIM_CTX, P(CUgraphNode n, CUgraph *ret), P(n, ret))
{
	CUresult r = ret ? sim_graphnode_is(n, CU_GRAPH_NODE_TYPE_GRAPH) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*ret = n->work.graph;
	return r;
}

CUresult sim_graphnode_event(CUevent e, enum sim_work_kind kind, struct sim_work *w)
{
	if (!sim_handle_is(e, SIM_H_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	*w = (struct sim_work){.kind = kind, .event = e};
	return CUDA_SUCCESS;
}

#define EVENT_NODES(name, type, kind)                                                              \
	SIM_API(cuGraphAddEvent##name##Node, SIM_CTX, P(SIM_ADD_PARAMS, CUevent ev),               \
		P(SIM_ADD_ARGS, ev))                                                               \
	{                                                                                          \
		struct sim_work w;                                                                 \
		CUresult r = sim_graphnode_bad_add(SIM_ADD_ARGS)                                   \
				     ? CUDA_ERROR_INVALID_VALUE                                    \
				     : sim_graphnode_event(ev, kind, &w);                          \
                                                                                                   \
		return sim_graphnode_add(call, type, r, &w, NULL, SIM_ADD_ARGS);                   \
	}                                                                                          \
	SIM_API(cuGraphEvent##name##NodeGetEvent, SIM_CTX, P(CUgraphNode n, CUevent *ev),          \
		P(n, ev))                                                                          \
	{                                                                                          \
		CUresult r = ev ? sim_graphnode_is(n, type) : CUDA_ERROR_INVALID_VALUE;            \
                                                                                                   \
		if (!r)                                                                            \
			*ev = n->work.event;                                                       \
		return r;                                                                          \
	}                                                                                          \
	SIM_API(cuGraphEvent##name##NodeSetEvent, SIM_CTX, P(CUgraphNode n, CUevent ev), P(n, ev)) \
	{                                                                                          \
		struct sim_work w;                                                                 \
		CUresult r = sim_graphnode_event(ev, kind, &w);                                    \
                                                                                                   \
		return sim_graphnode_set(n, type, r, &w);                                          \
	}                                                                                          \
	SIM_API(cuGraphExecEvent##name##NodeSetEvent, SIM_CTX,                                     \
		P(CUgraphExec e, CUgraphNode n, CUevent ev), P(e, n, ev))                          \
	{                                                                                          \
		struct sim_work w;                                                                 \
		CUresult r = sim_graphnode_event(ev, kind, &w);                                    \
                                                                                                   \
		return sim_graphnode_exec_set(e, n, type, r, &w);                                  \
	}

EVENT_NODES(Record, CU_GRAPH_NODE_TYPE_EVENT_RECORD, SIM_WORK_EVENT)
EVENT_NODES(Wait, CU_GRAPH_NODE_TYPE_WAIT_EVENT, SIM_WORK_EVENTWAIT)
