/* SPDX-License-Identifier: MIT */
/*
 * The kinds of graph nodes: adding one, reading and changing its parameters, in the graph or in an
 * executable graph.
 *
 * Each kind has one function that turns the caller's parameters into a work; add, set and exec-set share it.
 * Arguments are copied at that moment. Driver lock held.
 */
#include "tests/simcuda/sim.h"

#include <stdlib.h>
#include <string.h>

#define DEPS_PARAMS CUgraphNode *ret, CUgraph g, const CUgraphNode *deps, size_t n
#define DEPS	    ret, g, deps, n

static CUresult add(struct sim_call *call, CUgraphNodeType type, CUresult r, struct sim_work *w,
		    CUcontext ctx, DEPS_PARAMS)
{
	if (r)
		return r;
	return sim_graph_add(g, type, w, ctx ? ctx : call->ctx, deps, n, ret);
}

static bool bad_add(DEPS_PARAMS)
{
	return !ret || !sim_handle_is(g, SIM_H_GRAPH) || (n && !deps);
}

static CUresult node_of(CUgraphNode n, CUgraphNodeType type)
{
	return sim_handle_is(n, SIM_H_NODE) && n->type == type ? CUDA_SUCCESS
							       : CUDA_ERROR_INVALID_VALUE;
}

/* Put w in the place of a node's work. */
static CUresult set(CUgraphNode n, CUgraphNodeType type, CUresult r, struct sim_work *w)
{
	if (r)
		return r;
	r = node_of(n, type);
	if (r) {
		sim_work_clear(w);
		return r;
	}
	sim_work_clear(&n->work);
	n->work = *w;
	free(n->argv);
	n->argv = NULL;
	return CUDA_SUCCESS;
}

static CUresult exec_set(CUgraphExec e, CUgraphNode n, CUgraphNodeType type, CUresult r,
			 struct sim_work *w)
{
	struct sim_exec_node *x;

	if (r)
		return r;
	x = sim_handle_is(e, SIM_H_EXEC) && !node_of(n, type) ? sim_graph_exec_find(e, n) : NULL;
	if (!x) {
		sim_work_clear(w);
		return CUDA_ERROR_INVALID_VALUE;
	}
	sim_work_clear(&x->work);
	x->work = *w;
	return CUDA_SUCCESS;
}

/* ---- kernel nodes: two parameter structures, of which the older is a prefix of the newer ---- */

static CUresult kernel_work(struct sim_call *call, const void *params, size_t size,
			    struct sim_work *w, CUcontext *ret_ctx)
{
	CUDA_KERNEL_NODE_PARAMS p = {0};
	struct sim_launch_args a = {0};
	CUcontext ctx;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&p, params, size);
	a.f = p.func ? p.func : (CUfunction)p.kern;
	ctx = p.ctx ? p.ctx : call->ctx;
	if (p.ctx && !sim_handle_is(p.ctx, SIM_H_CTX))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (sim_handle_is(a.f, SIM_H_FUNC))
		ctx = a.f->mod->ctx;
	memcpy(a.grid, (unsigned[]){p.gridDimX, p.gridDimY, p.gridDimZ}, sizeof(a.grid));
	memcpy(a.block, (unsigned[]){p.blockDimX, p.blockDimY, p.blockDimZ}, sizeof(a.block));
	a.shared = p.sharedMemBytes;
	a.params = p.kernelParams;
	a.extra = p.extra;
	*ret_ctx = ctx;
	return ctx ? sim_launch_prepare(ctx, &a, w) : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult kernel_get(CUgraphNode n, void *params, size_t size)
{
	const struct sim_kernel_work *k;
	CUDA_KERNEL_NODE_PARAMS p = {0};
	unsigned count;
	CUresult r = params ? node_of(n, CU_GRAPH_NODE_TYPE_KERNEL) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	k = &n->work.kernel;
	count = sim_kernel_nparams(k->func->k);
	if (!n->argv) {
		n->argv = calloc(count + 1, sizeof(*n->argv));
		if (!n->argv)
			return CUDA_ERROR_OUT_OF_MEMORY;
		for (unsigned i = 0; i < count; i++) {
			size_t offset = 0, bytes;

			sim_kernel_param(k->func->k, i, &offset, &bytes);
			n->argv[i] = (char *)k->params + offset;
		}
	}
	p.func = k->kern && size > sizeof(CUDA_KERNEL_NODE_PARAMS_v1) ? NULL : k->func;
	p.kern = k->kern;
	p.ctx = n->ctx;
	p.gridDimX = k->grid[0], p.gridDimY = k->grid[1], p.gridDimZ = k->grid[2];
	p.blockDimX = k->block[0], p.blockDimY = k->block[1], p.blockDimZ = k->block[2];
	p.sharedMemBytes = k->shared;
	p.kernelParams = n->argv;
	memcpy(params, &p, size);
	return CUDA_SUCCESS;
}

_Static_assert(offsetof(CUDA_KERNEL_NODE_PARAMS, kern) == sizeof(CUDA_KERNEL_NODE_PARAMS_v1),
	       "the older kernel node parameters are a prefix of the newer");

#define KERNEL_NODES(suffix, type)                                                                 \
	SIM_API(cuGraphAddKernelNode##suffix, SIM_CTX, P(DEPS_PARAMS, const type *p), P(DEPS, p))  \
	{                                                                                          \
		struct sim_work w;                                                                 \
		CUcontext ctx = NULL;                                                              \
		CUresult r = bad_add(DEPS) ? CUDA_ERROR_INVALID_VALUE                              \
					   : kernel_work(call, p, sizeof(*p), &w, &ctx);           \
                                                                                                   \
		return add(call, CU_GRAPH_NODE_TYPE_KERNEL, r, &w, ctx, DEPS);                     \
	}                                                                                          \
	SIM_API(cuGraphKernelNodeGetParams##suffix, SIM_CTX, P(CUgraphNode n, type *p), P(n, p))   \
	{                                                                                          \
		return kernel_get(n, p, sizeof(*p));                                               \
	}                                                                                          \
	SIM_API(cuGraphKernelNodeSetParams##suffix, SIM_CTX, P(CUgraphNode n, const type *p),      \
		P(n, p))                                                                           \
	{                                                                                          \
		struct sim_work w;                                                                 \
		CUcontext ctx;                                                                     \
		CUresult r = kernel_work(call, p, sizeof(*p), &w, &ctx);                           \
                                                                                                   \
		return set(n, CU_GRAPH_NODE_TYPE_KERNEL, r, &w);                                   \
	}                                                                                          \
	SIM_API(cuGraphExecKernelNodeSetParams##suffix, SIM_CTX,                                   \
		P(CUgraphExec e, CUgraphNode n, const type *p), P(e, n, p))                        \
	{                                                                                          \
		struct sim_work w;                                                                 \
		CUcontext ctx;                                                                     \
		CUresult r = kernel_work(call, p, sizeof(*p), &w, &ctx);                           \
                                                                                                   \
		return exec_set(e, n, CU_GRAPH_NODE_TYPE_KERNEL, r, &w);                           \
	}

KERNEL_NODES(, CUDA_KERNEL_NODE_PARAMS_v1)
KERNEL_NODES(_v2, CUDA_KERNEL_NODE_PARAMS)

/* ---- copies ---- */

static CUresult copy_work(const CUDA_MEMCPY3D *p, CUcontext ctx, struct sim_work *w)
{
	CUresult r;

	if (!p || (ctx && !sim_handle_is(ctx, SIM_H_CTX)))
		return CUDA_ERROR_INVALID_VALUE;
	*w = (struct sim_work){.kind = SIM_WORK_COPY};
	r = sim_copy_prepare(p, &w->copy);
	if (r)
		return r;
	w->copy.params = malloc(sizeof(*p));
	if (!w->copy.params)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*w->copy.params = *p;
	return CUDA_SUCCESS;
}

SIM_API(cuGraphAddMemcpyNode, SIM_CTX, P(DEPS_PARAMS, const CUDA_MEMCPY3D *p, CUcontext ctx),
	P(DEPS, p, ctx))
{
	struct sim_work w;
	CUresult r = bad_add(DEPS) ? CUDA_ERROR_INVALID_VALUE : copy_work(p, ctx, &w);

	return add(call, CU_GRAPH_NODE_TYPE_MEMCPY, r, &w, ctx, DEPS);
}

SIM_API(cuGraphMemcpyNodeGetParams, SIM_CTX, P(CUgraphNode n, CUDA_MEMCPY3D *p), P(n, p))
{
	const struct sim_copy *c;
	CUresult r = p ? node_of(n, CU_GRAPH_NODE_TYPE_MEMCPY) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	c = &n->work.copy;
	if (c->params) {
		*p = *c->params;
		return CUDA_SUCCESS;
	}
	sim_copy_describe(c, p); /* a captured copy */
	return CUDA_SUCCESS;
}

SIM_API(cuGraphMemcpyNodeSetParams, SIM_CTX, P(CUgraphNode n, const CUDA_MEMCPY3D *p), P(n, p))
{
	struct sim_work w;
	CUresult r = copy_work(p, NULL, &w);

	return set(n, CU_GRAPH_NODE_TYPE_MEMCPY, r, &w);
}

SIM_API(cuGraphExecMemcpyNodeSetParams, SIM_CTX,
	P(CUgraphExec e, CUgraphNode n, const CUDA_MEMCPY3D *p, CUcontext ctx), P(e, n, p, ctx))
{
	struct sim_work w;
	CUresult r = copy_work(p, ctx, &w);

	return exec_set(e, n, CU_GRAPH_NODE_TYPE_MEMCPY, r, &w);
}

/* ---- fills ---- */

static CUresult fill_work(const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx, struct sim_work *w)
{
	if (!p || (ctx && !sim_handle_is(ctx, SIM_H_CTX)) || !p->width || !p->height)
		return CUDA_ERROR_INVALID_VALUE;
	return sim_fill_prepare(p->dst, p->pitch, p->elementSize, p->value, p->width, p->height, w);
}

SIM_API(cuGraphAddMemsetNode, SIM_CTX,
	P(DEPS_PARAMS, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx), P(DEPS, p, ctx))
{
	struct sim_work w;
	CUresult r = bad_add(DEPS) ? CUDA_ERROR_INVALID_VALUE : fill_work(p, ctx, &w);

	return add(call, CU_GRAPH_NODE_TYPE_MEMSET, r, &w, ctx, DEPS);
}

SIM_API(cuGraphMemsetNodeGetParams, SIM_CTX, P(CUgraphNode n, CUDA_MEMSET_NODE_PARAMS *p), P(n, p))
{
	const struct sim_fill *f;
	CUresult r = p ? node_of(n, CU_GRAPH_NODE_TYPE_MEMSET) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	f = &n->work.fill;
	*p = (CUDA_MEMSET_NODE_PARAMS){.dst = f->dst,
				       .pitch = f->pitch,
				       .value = f->value,
				       .elementSize = f->elem,
				       .width = f->width,
				       .height = f->height};
	return CUDA_SUCCESS;
}

SIM_API(cuGraphMemsetNodeSetParams, SIM_CTX, P(CUgraphNode n, const CUDA_MEMSET_NODE_PARAMS *p),
	P(n, p))
{
	struct sim_work w;
	CUresult r = fill_work(p, NULL, &w);

	return set(n, CU_GRAPH_NODE_TYPE_MEMSET, r, &w);
}

SIM_API(cuGraphExecMemsetNodeSetParams, SIM_CTX,
	P(CUgraphExec e, CUgraphNode n, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx),
	P(e, n, p, ctx))
{
	struct sim_work w;
	CUresult r = fill_work(p, ctx, &w);

	return exec_set(e, n, CU_GRAPH_NODE_TYPE_MEMSET, r, &w);
}

/* ---- host functions ---- */

static CUresult host_work(const CUDA_HOST_NODE_PARAMS *p, struct sim_work *w)
{
	if (!p || !p->fn)
		return CUDA_ERROR_INVALID_VALUE;
	*w = (struct sim_work){.kind = SIM_WORK_HOST, .host = {p->fn, p->userData}};
	return CUDA_SUCCESS;
}

SIM_API(cuGraphAddHostNode, SIM_CTX, P(DEPS_PARAMS, const CUDA_HOST_NODE_PARAMS *p), P(DEPS, p))
{
	struct sim_work w;
	CUresult r = bad_add(DEPS) ? CUDA_ERROR_INVALID_VALUE : host_work(p, &w);

	return add(call, CU_GRAPH_NODE_TYPE_HOST, r, &w, NULL, DEPS);
}

SIM_API(cuGraphHostNodeGetParams, SIM_CTX, P(CUgraphNode n, CUDA_HOST_NODE_PARAMS *p), P(n, p))
{
	CUresult r = p ? node_of(n, CU_GRAPH_NODE_TYPE_HOST) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*p = (CUDA_HOST_NODE_PARAMS){n->work.host.fn, n->work.host.arg};
	return r;
}

SIM_API(cuGraphHostNodeSetParams, SIM_CTX, P(CUgraphNode n, const CUDA_HOST_NODE_PARAMS *p),
	P(n, p))
{
	struct sim_work w;
	CUresult r = host_work(p, &w);

	return set(n, CU_GRAPH_NODE_TYPE_HOST, r, &w);
}

SIM_API(cuGraphExecHostNodeSetParams, SIM_CTX,
	P(CUgraphExec e, CUgraphNode n, const CUDA_HOST_NODE_PARAMS *p), P(e, n, p))
{
	struct sim_work w;
	CUresult r = host_work(p, &w);

	return exec_set(e, n, CU_GRAPH_NODE_TYPE_HOST, r, &w);
}

/* ---- empty, child graph and event nodes ---- */

SIM_API(cuGraphAddEmptyNode, SIM_CTX, P(DEPS_PARAMS), P(DEPS))
{
	struct sim_work w = {.kind = SIM_WORK_NOP};
	CUresult r = bad_add(DEPS) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;

	return add(call, CU_GRAPH_NODE_TYPE_EMPTY, r, &w, NULL, DEPS);
}

SIM_API(cuGraphAddChildGraphNode, SIM_CTX, P(DEPS_PARAMS, CUgraph child), P(DEPS, child))
{
	struct sim_work w = {.kind = SIM_WORK_GRAPH};

	if (bad_add(DEPS) || !sim_handle_is(child, SIM_H_GRAPH) || child == g)
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_graph_clone(child, &w.graph))
		return CUDA_ERROR_OUT_OF_MEMORY;
	w.graph->is_child = true;
	return add(call, CU_GRAPH_NODE_TYPE_GRAPH, CUDA_SUCCESS, &w, NULL, DEPS);
}

SIM_API(cuGraphChildGraphNodeGetGraph, SIM_CTX, P(CUgraphNode n, CUgraph *ret), P(n, ret))
{
	CUresult r = ret ? node_of(n, CU_GRAPH_NODE_TYPE_GRAPH) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*ret = n->work.graph;
	return r;
}

static CUresult event_work(CUevent e, enum sim_work_kind kind, struct sim_work *w)
{
	if (!sim_handle_is(e, SIM_H_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	*w = (struct sim_work){.kind = kind, .event = e};
	return CUDA_SUCCESS;
}

#define EVENT_NODES(name, type, kind)                                                              \
	SIM_API(cuGraphAddEvent##name##Node, SIM_CTX, P(DEPS_PARAMS, CUevent ev), P(DEPS, ev))     \
	{                                                                                          \
		struct sim_work w;                                                                 \
		CUresult r = bad_add(DEPS) ? CUDA_ERROR_INVALID_VALUE : event_work(ev, kind, &w);  \
                                                                                                   \
		return add(call, type, r, &w, NULL, DEPS);                                         \
	}                                                                                          \
	SIM_API(cuGraphEvent##name##NodeGetEvent, SIM_CTX, P(CUgraphNode n, CUevent *ev),          \
		P(n, ev))                                                                          \
	{                                                                                          \
		CUresult r = ev ? node_of(n, type) : CUDA_ERROR_INVALID_VALUE;                     \
                                                                                                   \
		if (!r)                                                                            \
			*ev = n->work.event;                                                       \
		return r;                                                                          \
	}                                                                                          \
	SIM_API(cuGraphEvent##name##NodeSetEvent, SIM_CTX, P(CUgraphNode n, CUevent ev), P(n, ev)) \
	{                                                                                          \
		struct sim_work w;                                                                 \
		CUresult r = event_work(ev, kind, &w);                                             \
                                                                                                   \
		return set(n, type, r, &w);                                                        \
	}                                                                                          \
	SIM_API(cuGraphExecEvent##name##NodeSetEvent, SIM_CTX,                                     \
		P(CUgraphExec e, CUgraphNode n, CUevent ev), P(e, n, ev))                          \
	{                                                                                          \
		struct sim_work w;                                                                 \
		CUresult r = event_work(ev, kind, &w);                                             \
                                                                                                   \
		return exec_set(e, n, type, r, &w);                                                \
	}

EVENT_NODES(Record, CU_GRAPH_NODE_TYPE_EVENT_RECORD, SIM_WORK_EVENT)
EVENT_NODES(Wait, CU_GRAPH_NODE_TYPE_WAIT_EVENT, SIM_WORK_EVENTWAIT)
