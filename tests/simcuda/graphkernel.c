/* SPDX-License-Identifier: MIT */
/*
 * Kernel nodes: parameters in two sizes, attributes.
 *
 * Attributes are kept and given back; of them only "cooperative" changes what a launch does here, and
 * it lives in the work. Driver lock held.
 */
#include "tests/simcuda/graph.h"

#include <stdlib.h>
#include <string.h>

/* ---- parameters: two structures, of which the older is a prefix of the newer ---- */

CUresult sim_graphnode_kernel(struct sim_call *call, const void *params, size_t size,
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
	CUresult r =
		params ? sim_graphnode_is(n, CU_GRAPH_NODE_TYPE_KERNEL) : CUDA_ERROR_INVALID_VALUE;

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
	SIM_API(cuGraphAddKernelNode##suffix, SIM_CTX, P(SIM_ADD_PARAMS, const type *p),           \
		P(SIM_ADD_ARGS, p))                                                                \
	{                                                                                          \
		struct sim_work w;                                                                 \
		CUcontext ctx = NULL;                                                              \
		CUresult r = sim_graphnode_bad_add(SIM_ADD_ARGS)                                   \
				     ? CUDA_ERROR_INVALID_VALUE                                    \
				     : sim_graphnode_kernel(call, p, sizeof(*p), &w, &ctx);        \
                                                                                                   \
		return sim_graphnode_add(call, CU_GRAPH_NODE_TYPE_KERNEL, r, &w, ctx,              \
					 SIM_ADD_ARGS);                                            \
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
		CUresult r = sim_graphnode_kernel(call, p, sizeof(*p), &w, &ctx);                  \
                                                                                                   \
		return sim_graphnode_set(n, CU_GRAPH_NODE_TYPE_KERNEL, r, &w);                     \
	}                                                                                          \
	SIM_API(cuGraphExecKernelNodeSetParams##suffix, SIM_CTX,                                   \
		P(CUgraphExec e, CUgraphNode n, const type *p), P(e, n, p))                        \
	{                                                                                          \
		struct sim_work w;                                                                 \
		CUcontext ctx;                                                                     \
		CUresult r = sim_graphnode_kernel(call, p, sizeof(*p), &w, &ctx);                  \
                                                                                                   \
		return sim_graphnode_exec_set(e, n, CU_GRAPH_NODE_TYPE_KERNEL, r, &w);             \
	}

KERNEL_NODES(, CUDA_KERNEL_NODE_PARAMS_v1)
KERNEL_NODES(_v2, CUDA_KERNEL_NODE_PARAMS)

/* ---- attributes ---- */

static bool storable(CUkernelNodeAttrID id)
{
	switch (id) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		return true;
	default:
		return false;
	}
}

/* Room for the values; a node has none before one is set. */
static CUresult need_attributes(CUgraphNode n)
{
	if (n->attr)
		return CUDA_SUCCESS;
	n->attr = calloc(SIM_NODE_ATTRS, sizeof(*n->attr));
	return n->attr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_API(cuGraphKernelNodeGetAttribute, SIM_CTX,
	P(CUgraphNode n, CUkernelNodeAttrID id, CUkernelNodeAttrValue *ret), P(n, id, ret))
{
	if (!ret || sim_graphnode_is(n, CU_GRAPH_NODE_TYPE_KERNEL) || !storable(id))
		return CUDA_ERROR_INVALID_VALUE;
	memset(ret, 0, sizeof(*ret));
	if (n->attr)
		*ret = n->attr[id];
	if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
		ret->cooperative = n->work.kernel.cooperative;
	return CUDA_SUCCESS;
}

SIM_API(cuGraphKernelNodeSetAttribute, SIM_CTX,
	P(CUgraphNode n, CUkernelNodeAttrID id, const CUkernelNodeAttrValue *value),
	P(n, id, value))
{
	CUresult r;

	if (!value || sim_graphnode_is(n, CU_GRAPH_NODE_TYPE_KERNEL) || !storable(id))
		return CUDA_ERROR_INVALID_VALUE;
	if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION &&
	    (value->clusterDim.x > 1 || value->clusterDim.y > 1 || value->clusterDim.z > 1))
		return CUDA_ERROR_NOT_SUPPORTED;
	r = need_attributes(n);
	if (r)
		return r;
	n->attr[id] = *value;
	if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
		n->work.kernel.cooperative = value->cooperative != 0;
	return CUDA_SUCCESS;
}

SIM_API(cuGraphKernelNodeCopyAttributes, SIM_CTX, P(CUgraphNode dst, CUgraphNode src), P(dst, src))
{
	CUresult r;

	if (sim_graphnode_is(dst, CU_GRAPH_NODE_TYPE_KERNEL) ||
	    sim_graphnode_is(src, CU_GRAPH_NODE_TYPE_KERNEL) || dst->ctx != src->ctx)
		return CUDA_ERROR_INVALID_VALUE;
	dst->work.kernel.cooperative = src->work.kernel.cooperative;
	if (!src->attr) {
		free(dst->attr);
		dst->attr = NULL;
		return CUDA_SUCCESS;
	}
	r = need_attributes(dst);
	if (!r)
		memcpy(dst->attr, src->attr, SIM_NODE_ATTRS * sizeof(*src->attr));
	return r;
}
