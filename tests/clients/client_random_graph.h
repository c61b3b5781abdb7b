/* SPDX-License-Identifier: MIT */
/*
 * Calls of random programs as graphs of one node: made by hand, instantiated once for each call of the program, and given other
 * parameters when it is made again. Included by client_random_calls.h only.
 */
#ifndef TESTS_CLIENTS_CLIENT_RANDOM_GRAPH_H
#define TESTS_CLIENTS_CLIENT_RANDOM_GRAPH_H

#include "tests/clients/client_random_memory.h"

#define MAXOP 4096u

struct one_node {
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;
};

static struct one_node one_node[MAXOP];

extern CUresult cuGraphLaunch_ptsz(CUgraphExec, CUstream);

static void launch_graph(struct one_node *g, int own, CUstream s)
{
	MUST(own ? cuGraphLaunch_ptsz(g->exec, s) : cuGraphLaunch(g->exec, s));
}

static void drop_graph(struct one_node *g)
{
	if (g->exec) {
		MUST(cuGraphExecDestroy(g->exec));
		MUST(cuGraphDestroy(g->graph));
	}
	g->exec = NULL;
}

static void graph_kernel(unsigned id, CUfunction f, unsigned blocks, void **params, int own,
			 CUstream s)
{
	const CUDA_KERNEL_NODE_PARAMS p = {.func = f,
					   .gridDimX = blocks,
					   .gridDimY = 1,
					   .gridDimZ = 1,
					   .blockDimX = 32,
					   .blockDimY = 1,
					   .blockDimZ = 1,
					   .kernelParams = params};
	struct one_node *g = &one_node[id];

	if (g->exec) {
		MUST(cuGraphExecKernelNodeSetParams(g->exec, g->node, &p));
	} else {
		MUST(cuGraphCreate(&g->graph, 0));
		MUST(cuGraphAddKernelNode(&g->node, g->graph, NULL, 0, &p));
		MUST(cuGraphInstantiate(&g->exec, g->graph, 0));
	}
	launch_graph(g, own, s);
}

/* Only what has one dimension can be changed. */
static void graph_copy(unsigned id, const CUDA_MEMCPY3D *p, CUcontext ctx, int own, CUstream s)
{
	struct one_node *g = &one_node[id];

	if (p->Height > 1 || p->Depth > 1)
		drop_graph(g);
	if (g->exec) {
		MUST(cuGraphExecMemcpyNodeSetParams(g->exec, g->node, p, ctx));
	} else {
		MUST(cuGraphCreate(&g->graph, 0));
		MUST(cuGraphAddMemcpyNode(&g->node, g->graph, NULL, 0, p, ctx));
		MUST(cuGraphInstantiate(&g->exec, g->graph, 0));
	}
	launch_graph(g, own, s);
}

static void graph_fill(unsigned id, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx, int own,
		       CUstream s)
{
	struct one_node *g = &one_node[id];

	if (p->height > 1)
		drop_graph(g);
	if (g->exec) {
		MUST(cuGraphExecMemsetNodeSetParams(g->exec, g->node, p, ctx));
	} else {
		MUST(cuGraphCreate(&g->graph, 0));
		MUST(cuGraphAddMemsetNode(&g->node, g->graph, NULL, 0, p, ctx));
		MUST(cuGraphInstantiate(&g->exec, g->graph, 0));
	}
	launch_graph(g, own, s);
}

static void drop_graphs(void)
{
	for (unsigned i = 0; i < MAXOP; i++)
		drop_graph(&one_node[i]);
	memset(one_node, 0, sizeof(one_node));
}

#endif
