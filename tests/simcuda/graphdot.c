/* SPDX-License-Identifier: MIT */
/*
 * cuGraphDebugDotPrint: a graph as text for Graphviz, child graphs and bodies as clusters.
 *
 * By default topology, types and kernel names; flags add parameters and handles. Driver lock held.
 */
#include "tests/simcuda/graph.h"

#include <stdio.h>

#define ALL_FLAGS ((CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS << 1) - 1)

static const char *const type_names[] = {"KERNEL",	   "MEMCPY",	   "MEMSET",
					 "HOST",	   "GRAPH",	   "EMPTY",
					 "WAIT_EVENT",	   "EVENT_RECORD", "EXT_SEMAS_SIGNAL",
					 "EXT_SEMAS_WAIT", "MEM_ALLOC",	   "MEM_FREE",
					 "BATCH_MEM_OP",   "CONDITIONAL"};

struct dot {
	FILE *out;
	unsigned flags;
	unsigned ngraphs;
};

static bool wants(const struct dot *d, unsigned flag)
{
	return d->flags & (flag | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE);
}

static unsigned long long hex(const void *p)
{
	return (unsigned long long)(uintptr_t)p;
}

static void params(const struct dot *d, CUgraphNode n)
{
	const struct sim_work *w = &n->work;

	if (w->kind == SIM_WORK_KERNEL && wants(d, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS))
		fprintf(d->out, "\\ngrid %u,%u,%u block %u,%u,%u shared %u", w->kernel.grid[0],
			w->kernel.grid[1], w->kernel.grid[2], w->kernel.block[0],
			w->kernel.block[1], w->kernel.block[2], w->kernel.shared);
	else if (w->kind == SIM_WORK_COPY && wants(d, CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS))
		fprintf(d->out, "\\n0x%llx to 0x%llx: %zu x %zu x %zu",
			(unsigned long long)w->copy.src, (unsigned long long)w->copy.dst,
			w->copy.width, w->copy.height, w->copy.depth);
	else if (w->kind == SIM_WORK_FILL && wants(d, CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS))
		fprintf(d->out, "\\n0x%llx: %u, %zu x %zu of %u bytes",
			(unsigned long long)w->fill.dst, w->fill.value, w->fill.width,
			w->fill.height, w->fill.elem);
	else if (w->kind == SIM_WORK_MEMALLOC &&
		 wants(d, CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS))
		fprintf(d->out, "\\n0x%llx: %zu bytes",
			(unsigned long long)sim_graphmem_address(w->mem),
			sim_graphmem_size(w->mem));
	else if (w->kind == SIM_WORK_MEMFREE &&
		 wants(d, CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS))
		fprintf(d->out, "\\n0x%llx", (unsigned long long)sim_graphmem_address(w->mem));
	else if (w->kind == SIM_WORK_BATCH &&
		 wants(d, CU_GRAPH_DEBUG_DOT_FLAGS_BATCH_MEM_OP_NODE_PARAMS))
		fprintf(d->out, "\\n%u operations", w->batch.n);
	else if (w->kind == SIM_WORK_COND &&
		 wants(d, CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS))
		fprintf(d->out, "\\ntype %d, %u bodies", (int)w->cond.type, w->cond.n);
	if (wants(d, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES))
		fprintf(d->out, "\\nnode 0x%llx", hex(n));
}

static void graph(struct dot *d, CUgraph g)
{
	unsigned id = d->ngraphs++, i = 0;

	fprintf(d->out, "subgraph cluster_%u {\nlabel=\"graph_%u\" graph[style=\"dashed\"];\n", id,
		id);
	for (CUgraphNode n = g->first; n; n = n->next) {
		n->index = i++;
		fprintf(d->out, "\"graph_%u_node_%u\"[label=\"%u\\n%s", id, n->index, n->index,
			type_names[n->type]);
		if (n->work.kind == SIM_WORK_KERNEL &&
		    sim_handle_is(n->work.kernel.func, SIM_H_FUNC))
			fprintf(d->out, "\\n%s", sim_work_name(&n->work));
		params(d, n);
		fprintf(d->out, "\"];\n");
	}
	for (CUgraphNode n = g->first; n; n = n->next)
		for (size_t k = 0; k < n->ndeps; k++)
			fprintf(d->out, "\"graph_%u_node_%u\" -> \"graph_%u_node_%u\"%s;\n", id,
				n->deps[k]->index, id, n->index,
				n->edges[k].type ? " [label=\"programmatic\"]" : "");
	for (CUgraphNode n = g->first; n; n = n->next) {
		if (n->work.kind == SIM_WORK_GRAPH)
			graph(d, n->work.graph);
		for (unsigned b = 0; n->work.kind == SIM_WORK_COND && b < n->work.cond.n; b++)
			graph(d, n->work.cond.bodies[b]);
	}
	fprintf(d->out, "}\n");
}

SIM_API(cuGraphDebugDotPrint, SIM_INIT, P(CUgraph g, const char *path, unsigned flags),
	P(g, path, flags))
{
	struct dot d = {.flags = flags};
	bool failed;

	if (!path || !sim_handle_is(g, SIM_H_GRAPH) || (flags & ~(unsigned)ALL_FLAGS))
		return CUDA_ERROR_INVALID_VALUE;
	d.out = fopen(path, "w");
	if (!d.out)
		return CUDA_ERROR_OPERATING_SYSTEM;
	fprintf(d.out, "digraph dot {\n");
	graph(&d, g);
	fprintf(d.out, "}\n");
	failed = ferror(d.out);
	return fclose(d.out) || failed ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}
