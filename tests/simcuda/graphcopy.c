/* SPDX-License-Identifier: MIT */
/*
 * Copy, fill and batch memory operation nodes. Driver lock held.
 */
#include "tests/simcuda/graph.h"

#include <stdlib.h>
#include <string.h>

/* ---- copies ---- */

CUresult sim_graphnode_copy(const CUDA_MEMCPY3D *p, CUcontext ctx, struct sim_work *w)
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

SIM_API(cuGraphAddMemcpyNode, SIM_CTX, P(SIM_ADD_PARAMS, const CUDA_MEMCPY3D *p, CUcontext ctx),
	P(SIM_ADD_ARGS, p, ctx))
{
	struct sim_work w;
	CUresult r = sim_graphnode_bad_add(SIM_ADD_ARGS) ? CUDA_ERROR_INVALID_VALUE
							 : sim_graphnode_copy(p, ctx, &w);

	return sim_graphnode_add(call, CU_GRAPH_NODE_TYPE_MEMCPY, r, &w, ctx, SIM_ADD_ARGS);
}

SIM_API(cuGraphMemcpyNodeGetParams, SIM_CTX, P(CUgraphNode n, CUDA_MEMCPY3D *p), P(n, p))
{
	const struct sim_copy *c;
	CUresult r = p ? sim_graphnode_is(n, CU_GRAPH_NODE_TYPE_MEMCPY) : CUDA_ERROR_INVALID_VALUE;

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
	CUresult r = sim_graphnode_copy(p, NULL, &w);

	return sim_graphnode_set(n, CU_GRAPH_NODE_TYPE_MEMCPY, r, &w);
}

SIM_API(cuGraphExecMemcpyNodeSetParams, SIM_CTX,
	P(CUgraphExec e, CUgraphNode n, const CUDA_MEMCPY3D *p, CUcontext ctx), P(e, n, p, ctx))
{
	struct sim_work w;
	CUresult r = sim_graphnode_copy(p, ctx, &w);

	return sim_graphnode_exec_set(e, n, CU_GRAPH_NODE_TYPE_MEMCPY, r, &w);
}

/* ---- fills ---- */

CUresult sim_graphnode_fill(const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx, struct sim_work *w)
{
	if (!p || (ctx && !sim_handle_is(ctx, SIM_H_CTX)) || !p->width || !p->height)
		return CUDA_ERROR_INVALID_VALUE;
	return sim_fill_prepare(p->dst, p->pitch, p->elementSize, p->value, p->width, p->height, w);
}

SIM_API(cuGraphAddMemsetNode, SIM_CTX,
	P(SIM_ADD_PARAMS, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx), P(SIM_ADD_ARGS, p, ctx))
{
	struct sim_work w;
	CUresult r = sim_graphnode_bad_add(SIM_ADD_ARGS) ? CUDA_ERROR_INVALID_VALUE
							 : sim_graphnode_fill(p, ctx, &w);

	return sim_graphnode_add(call, CU_GRAPH_NODE_TYPE_MEMSET, r, &w, ctx, SIM_ADD_ARGS);
}

SIM_API(cuGraphMemsetNodeGetParams, SIM_CTX, P(CUgraphNode n, CUDA_MEMSET_NODE_PARAMS *p), P(n, p))
{
	const struct sim_fill *f;
	CUresult r = p ? sim_graphnode_is(n, CU_GRAPH_NODE_TYPE_MEMSET) : CUDA_ERROR_INVALID_VALUE;

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
	CUresult r = sim_graphnode_fill(p, NULL, &w);

	return sim_graphnode_set(n, CU_GRAPH_NODE_TYPE_MEMSET, r, &w);
}

SIM_API(cuGraphExecMemsetNodeSetParams, SIM_CTX,
	P(CUgraphExec e, CUgraphNode n, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx),
	P(e, n, p, ctx))
{
	struct sim_work w;
	CUresult r = sim_graphnode_fill(p, ctx, &w);

	return sim_graphnode_exec_set(e, n, CU_GRAPH_NODE_TYPE_MEMSET, r, &w);
}

/* ---- batches of stream memory operations ---- */

CUresult sim_graphnode_batch(const CUDA_BATCH_MEM_OP_NODE_PARAMS *p, struct sim_work *w)
{
	CUresult r;

	if (!p || p->flags || (p->ctx && !sim_handle_is(p->ctx, SIM_H_CTX)))
		return CUDA_ERROR_INVALID_VALUE;
	r = sim_memop_check(p->paramArray, p->count);
	if (r)
		return r;
	if (sim_memop_batch(p->paramArray, p->count, w))
		return CUDA_ERROR_OUT_OF_MEMORY;
	w->batch.ctx = p->ctx;
	return CUDA_SUCCESS;
}

SIM_API(cuGraphAddBatchMemOpNode, SIM_CTX,
	P(SIM_ADD_PARAMS, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p), P(SIM_ADD_ARGS, p))
{
	struct sim_work w;
	CUresult r = sim_graphnode_bad_add(SIM_ADD_ARGS) ? CUDA_ERROR_INVALID_VALUE
							 : sim_graphnode_batch(p, &w);

	return sim_graphnode_add(call, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, r, &w, r ? NULL : p->ctx,
				 SIM_ADD_ARGS);
}

SIM_API(cuGraphBatchMemOpNodeGetParams, SIM_CTX, P(CUgraphNode n, CUDA_BATCH_MEM_OP_NODE_PARAMS *p),
	P(n, p))
{
	CUresult r =
		p ? sim_graphnode_is(n, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*p = (CUDA_BATCH_MEM_OP_NODE_PARAMS){
			.ctx = n->ctx, .count = n->work.batch.n, .paramArray = n->work.batch.ops};
	return r;
}

SIM_API(cuGraphBatchMemOpNodeSetParams, SIM_CTX,
	P(CUgraphNode n, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p), P(n, p))
{
	struct sim_work w;
	CUresult r = sim_graphnode_batch(p, &w);

	return sim_graphnode_set(n, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, r, &w);
}

SIM_API(cuGraphExecBatchMemOpNodeSetParams, SIM_CTX,
	P(CUgraphExec e, CUgraphNode n, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p), P(e, n, p))
{
	struct sim_work w;
	CUresult r = sim_graphnode_batch(p, &w);

	return sim_graphnode_exec_set(e, n, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, r, &w);
}
