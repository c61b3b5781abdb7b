/* SPDX-License-Identifier: MIT */
/*
 * Graphs: nodes and copies. What a node does is a work, copied when it is added or set.
 *
 * A node lists the nodes that it depends on; the other direction is found by looking (graphedge.c). What
 * the manual forbids for graphs with memory or conditional nodes is CUDA_ERROR_NOT_SUPPORTED.
 * Driver lock held.
 */
#include "tests/simcuda/graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

CUgraph sim_graph_new(void)
{
	CUgraph g = calloc(1, sizeof(*g));

	if (g && sim_handle_add(g, SIM_H_GRAPH)) {
		free(g);
		return NULL;
	}
	return g;
}

static void node_free(CUgraphNode n)
{
	CUgraph g = n->graph;

	if (n->prev)
		n->prev->next = n->next;
	else
		g->first = n->next;
	if (n->next)
		n->next->prev = n->prev;
	else
		g->last = n->prev;
	g->nnodes--;
	sim_handle_del(n);
	sim_graphmem_drop_node(n);
	sim_work_clear(&n->work);
	free(n->argv);
	free(n->attr);
	free(n->deps);
	free(n->edges);
	free(n);
}

void sim_graph_free(CUgraph g)
{
	sim_handle_del(g); /* first: destructors run without the lock */
	while (g->first)
		node_free(g->first);
	sim_cond_orphan(g);
	sim_userobj_release_all(g);
	free(g);
}

bool sim_graph_has(const struct CUgraph_st *g, unsigned types)
{
	for (CUgraphNode n = g->first; n; n = n->next) {
		if (types >> n->type & 1)
			return true;
		if (n->type == CU_GRAPH_NODE_TYPE_GRAPH && sim_graph_has(n->work.graph, types))
			return true;
	}
	return false;
}

CUresult sim_graph_add(CUgraph g, CUgraphNodeType type, struct sim_work *w, CUcontext ctx,
		       const CUgraphNode *deps, size_t ndeps, CUgraphNode *ret)
{
	CUgraphNode n;

	for (size_t i = 0; i < ndeps; i++) {
		bool bad = !sim_handle_is(deps[i], SIM_H_NODE) || deps[i]->graph != g;

		for (size_t j = 0; j < i && !bad; j++)
			bad = deps[j] == deps[i];
		if (bad) {
			sim_work_clear(w);
			return CUDA_ERROR_INVALID_VALUE;
		}
	}
	n = calloc(1, sizeof(*n));
	if (!n || sim_handle_add(n, SIM_H_NODE)) {
		free(n);
		sim_work_clear(w);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	n->graph = g;
	n->type = type;
	n->work = *w;
	n->ctx = ctx;
	if (w->kind == SIM_WORK_GRAPH)
		w->graph->parent = g;
	for (unsigned i = 0; w->kind == SIM_WORK_COND && i < w->cond.n; i++)
		w->cond.bodies[i]->parent = g;
	n->prev = g->last;
	if (g->last)
		g->last->next = n;
	else
		g->first = n;
	g->last = n;
	g->nnodes++;
	for (size_t i = 0; i < ndeps; i++)
		if (sim_graph_depend(n, deps[i], NULL)) {
			node_free(n);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
	*ret = n;
	return CUDA_SUCCESS;
}

int sim_graph_clone(CUgraph src, CUgraph *ret)
{
	CUgraph g = sim_graph_new();
	CUgraphNode *map = calloc(src->nnodes ? src->nnodes : 1, sizeof(*map));
	unsigned i = 0;
	bool bad = !g || !map;

	for (CUgraphNode n = src->first; n && !bad; n = n->next) {
		struct sim_work w;

		n->index = i;
		bad = sim_work_clone(&w, &n->work) ||
		      sim_graph_add(g, n->type, &w, n->ctx, NULL, 0, &map[i]);
		if (bad)
			break;
		map[i]->origin = n;
		if (n->attr) {
			map[i]->attr = calloc(SIM_NODE_ATTRS, sizeof(*n->attr));
			bad = !map[i]->attr;
			if (!bad)
				memcpy(map[i]->attr, n->attr, SIM_NODE_ATTRS * sizeof(*n->attr));
		}
		i++;
	}
	for (CUgraphNode n = src->first; n && !bad; n = n->next)
		for (size_t d = 0; d < n->ndeps && !bad; d++)
			bad = sim_graph_depend(map[n->index], map[n->deps[d]->index], &n->edges[d]);
	free(map);
	bad = bad || sim_userobj_copy(g, src);
	if (bad) {
		if (g)
			sim_graph_free(g);
		return -ENOMEM;
	}
	*ret = g;
	return 0;
}

/* Marks what comes before n, n included; iterative over the insertion order would miss added edges. */
static void mark_before(CUgraphNode n)
{
	n->seen = true;
	for (size_t i = 0; i < n->ndeps; i++)
		if (!n->deps[i]->seen)
			mark_before(n->deps[i]);
}

bool sim_graph_precedes(CUgraphNode a, CUgraphNode b)
{
	for (CUgraphNode n = a->graph->first; n; n = n->next)
		n->seen = false;
	mark_before(b);
	return a->seen;
}

SIM_API(cuGraphCreate, SIM_INIT, P(CUgraph *ret, unsigned flags), P(ret, flags))
{
	if (!ret || flags)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = sim_graph_new();
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static bool is_graph(CUgraph g)
{
	return sim_handle_is(g, SIM_H_GRAPH);
}

static bool is_node(CUgraphNode n)
{
	return sim_handle_is(n, SIM_H_NODE);
}

/* Is a stream being captured into what n owns? */
static bool node_captured(CUgraphNode n);

static bool captured(CUgraph g)
{
	if (g->cap)
		return true;
	for (CUgraphNode n = g->first; n; n = n->next)
		if (node_captured(n))
			return true;
	return false;
}

static bool node_captured(CUgraphNode n)
{
	if (n->work.kind == SIM_WORK_GRAPH)
		return captured(n->work.graph);
	for (unsigned i = 0; n->work.kind == SIM_WORK_COND && i < n->work.cond.n; i++)
		if (captured(n->work.cond.bodies[i]))
			return true;
	return false;
}

SIM_API(cuGraphDestroy, SIM_INIT, P(CUgraph g), P(g))
{
	if (!is_graph(g) || g->is_child || captured(g))
		return CUDA_ERROR_INVALID_VALUE;
	sim_graph_free(g);
	return CUDA_SUCCESS;
}

SIM_API(cuGraphClone, SIM_INIT, P(CUgraph *ret, CUgraph g), P(ret, g))
{
	if (!ret || !is_graph(g))
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_graph_has(g, SIM_MEM_NODES | SIM_COND_NODES))
		return CUDA_ERROR_NOT_SUPPORTED;
	return sim_graph_clone(g, ret) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

SIM_API(cuGraphNodeFindInClone, SIM_INIT, P(CUgraphNode *ret, CUgraphNode n, CUgraph clone),
	P(ret, n, clone))
{
	if (!ret || !is_node(n) || !is_graph(clone))
		return CUDA_ERROR_INVALID_VALUE;
	for (CUgraphNode c = clone->first; c; c = c->next)
		if (c->origin == n) {
			*ret = c;
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuGraphNodeGetType, SIM_INIT, P(CUgraphNode n, CUgraphNodeType *ret), P(n, ret))
{
	if (!ret || !is_node(n))
		return CUDA_ERROR_INVALID_VALUE;
	*ret = n->type;
	return CUDA_SUCCESS;
}

SIM_API(cuGraphDestroyNode, SIM_INIT, P(CUgraphNode n), P(n))
{
	if (!is_node(n) || node_captured(n))
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_graph_has(n->graph, SIM_MEM_NODES))
		return CUDA_ERROR_NOT_SUPPORTED;
	for (CUgraphNode o = n->graph->first; o; o = o->next)
		sim_graph_undepend(o, n);
	node_free(n);
	return CUDA_SUCCESS;
}
