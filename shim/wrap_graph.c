/* SPDX-License-Identifier: MIT */
/*
 * Graphs (entry_points.def, groups E2 to E4): what becomes of an executable graph, and its launch.
 *
 * A description changes after the driver has accepted the change. A launch of a graph that cannot be
 * described, and one into a stream that is being captured, is one call that may do anything.
 * Callers: the program, any thread. Locks: graph.h.
 */
#include "shim/graph.h"
#include "shim/where.h"

#include <string.h>

/* --- life ----------------------------------------------------------------------------------------- */

#define INSTANTIATE(sym, params, args, flags)                                                      \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, args);                                                            \
		r = rs_real.sym args;                                                              \
		if (r == CUDA_SUCCESS)                                                             \
			RS_ENGINE(rs_graph_instantiated(t, *exec, graph, flags));                  \
		RS_LEAVE(t, r);                                                                    \
	}

#define P_I                                                                                        \
	(CUgraphExec * exec, CUgraph graph, CUgraphNode * phErrorNode, char *logBuffer,            \
	 size_t bufferSize)
#define A_I (exec, graph, phErrorNode, logBuffer, bufferSize)
INSTANTIATE(cuGraphInstantiate, P_I, A_I, 0)
INSTANTIATE(cuGraphInstantiate_v2, P_I, A_I, 0)
INSTANTIATE(cuGraphInstantiateWithFlags,
	    (CUgraphExec * exec, CUgraph graph, unsigned long long flags), (exec, graph, flags),
	    flags)
#define P_P (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS * params)
#define A_P (exec, graph, params)
INSTANTIATE(cuGraphInstantiateWithParams, P_P, A_P, params->flags)
INSTANTIATE(cuGraphInstantiateWithParams_ptsz, P_P, A_P, params->flags)

#define UPDATE(sym, params, args)                                                                  \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, args);                                                            \
		r = rs_real.sym args;                                                              \
		if (r == CUDA_SUCCESS)                                                             \
			RS_ENGINE(rs_graph_updated(t, exec, graph));                               \
		RS_LEAVE(t, r);                                                                    \
	}
UPDATE(cuGraphExecUpdate,
       (CUgraphExec exec, CUgraph graph, CUgraphNode *errorNode, CUgraphExecUpdateResult *result),
       (exec, graph, errorNode, result))
UPDATE(cuGraphExecUpdate_v2,
       (CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *resultInfo),
       (exec, graph, resultInfo))

RS_HOOK(cuGraphExecDestroy, (CUgraphExec exec))
{
	struct rs_graph *g;
	CUresult r;

	RS_ENTER(t, cuGraphExecDestroy, (exec));
	RS_ENGINE(g = rs_graph_leaves(exec));
	r = rs_real.cuGraphExecDestroy(exec);
	RS_ENGINE(rs_graph_left(exec, g, r));
	if (r == CUDA_SUCCESS)
		RS_ENGINE(rs_engine_event_destroy(rs_state.engine, (uintptr_t)exec));
	RS_LEAVE(t, r);
}

RS_HOOK(cuGraphDestroy, (CUgraph graph))
{
	struct rs_conditional *c;
	CUresult r;

	RS_ENTER(t, cuGraphDestroy, (graph));
	RS_ENGINE(c = rs_graph_goes(graph));
	r = rs_real.cuGraphDestroy(graph);
	RS_ENGINE(rs_graph_gone(c, r));
	if (r == CUDA_SUCCESS)
		rs_captured_gone(graph);
	RS_LEAVE(t, r);
}

RS_HOOK(cuGraphClone, (CUgraph * clone, CUgraph original))
{
	CUresult r;

	RS_ENTER(t, cuGraphClone, (clone, original));
	r = rs_real.cuGraphClone(clone, original);
	if (r == CUDA_SUCCESS)
		rs_captured_cloned(*clone, original);
	RS_LEAVE(t, r);
}

RS_HOOK(cuGraphAddChildGraphNode,
	(CUgraphNode * node, CUgraph graph, const CUgraphNode *deps, size_t n, CUgraph child))
{
	CUresult r;

	RS_ENTER(t, cuGraphAddChildGraphNode, (node, graph, deps, n, child));
	r = rs_real.cuGraphAddChildGraphNode(node, graph, deps, n, child);
	if (r == CUDA_SUCCESS)
		rs_captured_embedded(child);
	RS_LEAVE(t, r);
}

/* What a node of any kind brings with it. */
static void added(CUgraphNode node, CUgraph graph, const CUgraphNodeParams *p)
{
	if (p->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		RS_ENGINE(rs_graph_conditional(node, graph, p->conditional.phGraph_out,
					       p->conditional.size));
	else if (p->type == CU_GRAPH_NODE_TYPE_GRAPH)
		rs_captured_embedded(p->graph.graph);
}

#define ADD(sym, params, args)                                                                     \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, args);                                                            \
		r = rs_real.sym args;                                                              \
		if (r == CUDA_SUCCESS)                                                             \
			added(*node, graph, p);                                                    \
		RS_LEAVE(t, r);                                                                    \
	}
ADD(cuGraphAddNode,
    (CUgraphNode * node, CUgraph graph, const CUgraphNode *deps, size_t n, CUgraphNodeParams *p),
    (node, graph, deps, n, p))
ADD(cuGraphAddNode_v2,
    (CUgraphNode * node, CUgraph graph, const CUgraphNode *deps, const CUgraphEdgeData *data,
     size_t n, CUgraphNodeParams *p),
    (node, graph, deps, data, n, p))

/* --- changes of one node -------------------------------------------------------------------------- */

static void set_kernel(struct rs_tls *t, struct rs_node *n, const CUDA_KERNEL_NODE_PARAMS *p)
{
	rs_node_set_kernel(t, n, p);
}

/* Of the older parameters the newer ones are a continuation. */
static void set_kernel_v1(struct rs_tls *t, struct rs_node *n, const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	CUDA_KERNEL_NODE_PARAMS newer = {0};

	memcpy(&newer, p, sizeof(*p));
	rs_node_set_kernel(t, n, &newer);
}

static void set_copy(struct rs_node *n, const CUDA_MEMCPY3D *p)
{
	rs_node_clear(n, RS_NODE_COPY);
	n->copy = *p;
}

static void set_fill(struct rs_node *n, const CUDA_MEMSET_NODE_PARAMS *p)
{
	rs_node_clear(n, RS_NODE_FILL);
	n->fill = *p;
}

/* The same, with the context named beside. */
static void set_fill_v2(struct rs_node *n, const CUDA_MEMSET_NODE_PARAMS_v2 *p)
{
	const CUDA_MEMSET_NODE_PARAMS fill = {
		.dst = p->dst,
		.pitch = p->pitch,
		.value = p->value,
		.elementSize = p->elementSize,
		.width = p->width,
		.height = p->height,
	};

	set_fill(n, &fill);
}

static void set_event(struct rs_node *n, enum rs_node_kind kind, CUevent event)
{
	rs_node_clear(n, kind);
	n->event = event;
}

static void set_child(struct rs_tls *t, struct rs_graph *g, struct rs_node *n, CUgraph child)
{
	struct rs_nodes nodes = rs_graph_walk(t, child, &g->flags);

	rs_node_clear(n, RS_NODE_GRAPHS);
	n->graphs = nodes;
	rs_captured_embedded(child);
}

/* Parameters of any kind: those of its own call. Semaphores and host functions write nothing. */
static void set_any(struct rs_tls *t, struct rs_graph *g, struct rs_node *n,
		    const CUgraphNodeParams *p)
{
	CUDA_KERNEL_NODE_PARAMS kernel = {0};

	switch (p->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		memcpy(&kernel, &p->kernel, sizeof(kernel));
		set_kernel(t, n, &kernel);
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		set_copy(n, &p->memcpy.copyParams);
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		set_fill_v2(n, &p->memset);
		break;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		rs_node_set_memops(n, p->memOp.paramArray, p->memOp.count);
		break;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		set_child(t, g, n, p->graph.graph);
		break;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		set_event(n, RS_NODE_WAIT, p->eventWait.event);
		break;
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		set_event(n, RS_NODE_RECORD, p->eventRecord.event);
		break;
	case CU_GRAPH_NODE_TYPE_HOST:
	case CU_GRAPH_NODE_TYPE_EMPTY:
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
		break;
	default:
		rs_node_clear(n, RS_NODE_OPAQUE);
		break;
	}
}

_Static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS_v3) == sizeof(CUDA_KERNEL_NODE_PARAMS),
	       "the third version of kernel node parameters is the second one");

/* `set` uses t, g (the description) and n (its node). */
#define CHANGE(sym, params, args, set)                                                             \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		struct rs_graph *g;                                                                \
		struct rs_node *n;                                                                 \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, args);                                                            \
		r = rs_real.sym args;                                                              \
		g = r == CUDA_SUCCESS ? rs_graph_get(exec) : NULL;                                 \
		n = g ? rs_graph_node(g, node) : NULL;                                             \
		if (n)                                                                             \
			RS_ENGINE(set);                                                            \
		if (g)                                                                             \
			rs_graph_put(g);                                                           \
		RS_LEAVE(t, r);                                                                    \
	}
CHANGE(cuGraphExecKernelNodeSetParams,
       (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p), (exec, node, p),
       set_kernel_v1(t, n, p))
CHANGE(cuGraphExecKernelNodeSetParams_v2,
       (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p), (exec, node, p),
       set_kernel(t, n, p))
CHANGE(cuGraphExecMemcpyNodeSetParams,
       (CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *p, CUcontext ctx),
       (exec, node, p, ctx), set_copy(n, p))
CHANGE(cuGraphExecMemsetNodeSetParams,
       (CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx),
       (exec, node, p, ctx), set_fill(n, p))
CHANGE(cuGraphExecBatchMemOpNodeSetParams,
       (CUgraphExec exec, CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p),
       (exec, node, p), rs_node_set_memops(n, p->paramArray, p->count))
CHANGE(cuGraphExecChildGraphNodeSetParams, (CUgraphExec exec, CUgraphNode node, CUgraph child),
       (exec, node, child), set_child(t, g, n, child))
#define P_E (CUgraphExec exec, CUgraphNode node, CUevent event)
#define A_E (exec, node, event)
CHANGE(cuGraphExecEventRecordNodeSetEvent, P_E, A_E, set_event(n, RS_NODE_RECORD, event))
CHANGE(cuGraphExecEventWaitNodeSetEvent, P_E, A_E, set_event(n, RS_NODE_WAIT, event))
CHANGE(cuGraphExecNodeSetParams, (CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *p),
       (exec, node, p), set_any(t, g, n, p))
CHANGE(cuGraphNodeSetEnabled, (CUgraphExec exec, CUgraphNode node, unsigned int on),
       (exec, node, on), n->disabled = !on)

/* --- launch --------------------------------------------------------------------------------------- */

/* The description to follow a launch by, locked; NULL: it may do anything. */
static struct rs_graph *followed(CUgraphExec exec, int capturing)
{
	struct rs_graph *g = capturing ? NULL : rs_graph_get(exec);

	if (g && g->flags & (RS_GRAPH_OPAQUE | RS_GRAPH_DEVICE)) {
		rs_graph_put(g);
		g = NULL;
	}
	if (!g && !capturing)
		rs_count(opaque_graphs);
	return g;
}

/* One that is not followed may have captures in it all the same: then its description, locked, else NULL. */
static struct rs_graph *launches(CUgraphExec exec, const struct rs_call *call)
{
	struct rs_graph *g = rs_captured_any() ? rs_graph_get(exec) : NULL;

	if (g && !call->capturing)
		rs_captured_launches(&g->captured, call->q);
	return g;
}

static void launched(struct rs_graph *g, const struct rs_call *call, CUresult r)
{
	if (!g)
		return;
	if (!call->capturing)
		rs_captured_launched(&g->captured, call->q, !g->altered, r);
	else if (r == CUDA_SUCCESS)
		rs_captured_list_embedded(&g->captured);
	rs_graph_put(g);
}

#define LAUNCH(sym, flavour)                                                                       \
	RS_HOOK(sym, (CUgraphExec exec, CUstream hStream))                                         \
	{                                                                                          \
		struct rs_graph *g;                                                                \
		struct rs_call call;                                                               \
		CUresult r;                                                                        \
		int idle;                                                                          \
		RS_ENTER(t, sym, (exec, hStream));                                                 \
		idle = rs_call_idle(t, hStream, flavour);                                          \
		if (idle && !rs_graph_any_memory() && !rs_captured_any()) {                        \
			r = rs_real.sym(exec, hStream);                                            \
			RS_LEAVE(t, r);                                                            \
		}                                                                                  \
		rs_call_begin(&call, t, RS_EP_##sym, RS_CALL_OTHER, hStream, flavour, NULL);       \
		if (!idle)                                                                         \
			rs_where_hold(t);                                                          \
		g = followed(exec, call.capturing);                                                \
		if (!g) {                                                                          \
			call.everything = 1;                                                       \
			g = launches(exec, &call);                                                 \
			RS_CALL(t, &call, r, sym, (exec, hStream));                                \
			launched(g, &call, r);                                                     \
			rs_where_release(t);                                                       \
			RS_LEAVE(t, r);                                                            \
		}                                                                                  \
		rs_graph_before(t, g, call.q, idle);                                               \
		rs_captured_launches(&g->captured, call.q);                                        \
		r = rs_real.sym(exec, hStream);                                                    \
		rs_captured_launched(&g->captured, call.q, !g->altered, r);                        \
		rs_graph_after(t, g, call.q, r, idle);                                             \
		rs_graph_put(g);                                                                   \
		rs_where_release(t);                                                               \
		RS_LEAVE(t, r);                                                                    \
	}
LAUNCH(cuGraphLaunch, RS_PLAIN)
LAUNCH(cuGraphLaunch_ptsz, RS_PTSZ)
