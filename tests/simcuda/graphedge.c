/* SPDX-License-Identifier: MIT */
/*
 * The edges of graphs: added, removed, listed, with their annotations.
 *
 * An annotation (programmatic launch) is kept and told; whoever asks without room for it gets
 * CUDA_ERROR_LOSSY_QUERY. What runs waits for the whole node. Driver lock held.
 */
#include "tests/simcuda/graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_graph(CUgraph g)
{
	return sim_handle_is(g, SIM_H_GRAPH);
}

static bool is_node(CUgraphNode n)
{
	return sim_handle_is(n, SIM_H_NODE);
}

static bool depends(CUgraphNode n, CUgraphNode on)
{
	for (size_t i = 0; i < n->ndeps; i++)
		if (n->deps[i] == on)
			return true;
	return false;
}

int sim_graph_depend(CUgraphNode n, CUgraphNode on, const CUgraphEdgeData *edge)
{
	CUgraphEdgeData *e;
	CUgraphNode *p;

	if (depends(n, on))
		return 0;
	p = realloc(n->deps, (n->ndeps + 1) * sizeof(*p));
	if (!p)
		return -ENOMEM;
	n->deps = p;
	e = realloc(n->edges, (n->ndeps + 1) * sizeof(*e));
	if (!e)
		return -ENOMEM;
	n->edges = e;
	e[n->ndeps] = edge ? *edge : (CUgraphEdgeData){0};
	p[n->ndeps++] = on;
	return 0;
}

void sim_graph_undepend(CUgraphNode n, CUgraphNode on)
{
	for (size_t i = 0; i < n->ndeps; i++)
		if (n->deps[i] == on) {
			n->ndeps--;
			n->deps[i] = n->deps[n->ndeps];
			n->edges[i] = n->edges[n->ndeps];
			return;
		}
}

static bool plain(const CUgraphEdgeData *e)
{
	static const CUgraphEdgeData zero;

	return !memcmp(e, &zero, sizeof(zero));
}

CUresult sim_graph_edges_ok(const CUgraphEdgeData *data, size_t n, const CUgraphNode *from,
			    CUgraphNodeType to)
{
	static const unsigned char zero[sizeof(data->reserved)];

	for (size_t i = 0; data && i < n; i++) {
		const CUgraphEdgeData *e = &data[i];

		if (plain(e))
			continue;
		/* Only kernels have ports, and only programmatic edges use them. */
		if (e->type != CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC || e->to_port ||
		    memcmp(e->reserved, zero, sizeof(zero)) || !e->from_port ||
		    e->from_port > CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER ||
		    to != CU_GRAPH_NODE_TYPE_KERNEL || !sim_handle_is(from[i], SIM_H_NODE) ||
		    from[i]->type != CU_GRAPH_NODE_TYPE_KERNEL)
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

/* ---- lists: with a null array the count is returned, else up to *n entries, the rest null ---- */

struct lister {
	CUgraphNode *from, *to;
	CUgraphEdgeData *edges;
	size_t cap, n;
	bool lossy; /* an annotated edge was listed without its annotation */
};

static void list(struct lister *l, CUgraphNode from, CUgraphNode to, const CUgraphEdgeData *edge)
{
	if (l->n < l->cap) {
		if (l->from)
			l->from[l->n] = from;
		if (l->to)
			l->to[l->n] = to;
		if (l->edges)
			l->edges[l->n] = *edge;
		else if (edge && !plain(edge))
			l->lossy = true;
	}
	l->n++;
}

static CUresult finish(struct lister *l, size_t *n)
{
	if (l->lossy)
		return CUDA_ERROR_LOSSY_QUERY;
	for (size_t i = l->n; i < l->cap; i++) {
		if (l->from)
			l->from[i] = NULL;
		if (l->to)
			l->to[i] = NULL;
	}
	if (!l->from && !l->to)
		*n = l->n;
	else
		*n = l->n < l->cap ? l->n : l->cap;
	return CUDA_SUCCESS;
}

static CUresult nodes(CUgraph g, CUgraphNode *ret, size_t *n, bool roots)
{
	struct lister l = {.from = ret};

	if (!is_graph(g) || !n)
		return CUDA_ERROR_INVALID_VALUE;
	l.cap = ret ? *n : 0;
	for (CUgraphNode o = g->first; o; o = o->next)
		if (!roots || !o->ndeps)
			list(&l, o, NULL, NULL);
	return finish(&l, n);
}

SIM_API(cuGraphGetNodes, SIM_INIT, P(CUgraph g, CUgraphNode *ret, size_t *n), P(g, ret, n))
{
	return nodes(g, ret, n, false);
}

SIM_API(cuGraphGetRootNodes, SIM_INIT, P(CUgraph g, CUgraphNode *ret, size_t *n), P(g, ret, n))
{
	return nodes(g, ret, n, true);
}

static CUresult edges(CUgraph g, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
		      size_t *n)
{
	struct lister l = {.from = from, .to = to, .edges = data};

	if (!is_graph(g) || !n || !from != !to || (data && !from))
		return CUDA_ERROR_INVALID_VALUE;
	l.cap = from ? *n : 0;
	for (CUgraphNode o = g->first; o; o = o->next)
		for (size_t i = 0; i < o->ndeps; i++)
			list(&l, o->deps[i], o, &o->edges[i]);
	return finish(&l, n);
}

SIM_API(cuGraphGetEdges, SIM_INIT, P(CUgraph g, CUgraphNode *from, CUgraphNode *to, size_t *n),
	P(g, from, to, n))
{
	return edges(g, from, to, NULL, n);
}

SIM_API(cuGraphGetEdges_v2, SIM_INIT,
	P(CUgraph g, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *n),
	P(g, from, to, data, n))
{
	return edges(g, from, to, data, n);
}

static CUresult neighbours(CUgraphNode node, CUgraphNode *ret, CUgraphEdgeData *data, size_t *n,
			   bool after)
{
	struct lister l = {.from = ret, .edges = data};

	if (!is_node(node) || !n || (data && !ret))
		return CUDA_ERROR_INVALID_VALUE;
	l.cap = ret ? *n : 0;
	if (after) {
		for (CUgraphNode o = node->graph->first; o; o = o->next)
			for (size_t i = 0; i < o->ndeps; i++)
				if (o->deps[i] == node)
					list(&l, o, NULL, &o->edges[i]);
	} else {
		for (size_t i = 0; i < node->ndeps; i++)
			list(&l, node->deps[i], NULL, &node->edges[i]);
	}
	return finish(&l, n);
}

SIM_API(cuGraphNodeGetDependencies, SIM_INIT, P(CUgraphNode node, CUgraphNode *ret, size_t *n),
	P(node, ret, n))
{
	return neighbours(node, ret, NULL, n, false);
}

SIM_API(cuGraphNodeGetDependencies_v2, SIM_INIT,
	P(CUgraphNode node, CUgraphNode *ret, CUgraphEdgeData *data, size_t *n),
	P(node, ret, data, n))
{
	return neighbours(node, ret, data, n, false);
}

SIM_API(cuGraphNodeGetDependentNodes, SIM_INIT, P(CUgraphNode node, CUgraphNode *ret, size_t *n),
	P(node, ret, n))
{
	return neighbours(node, ret, NULL, n, true);
}

SIM_API(cuGraphNodeGetDependentNodes_v2, SIM_INIT,
	P(CUgraphNode node, CUgraphNode *ret, CUgraphEdgeData *data, size_t *n),
	P(node, ret, data, n))
{
	return neighbours(node, ret, data, n, true);
}

/* The annotation of an edge that is there. */
static const CUgraphEdgeData *edge_of(CUgraphNode from, CUgraphNode to)
{
	for (size_t i = 0; i < to->ndeps; i++)
		if (to->deps[i] == from)
			return &to->edges[i];
	return NULL;
}

static CUresult change(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
		       const CUgraphEdgeData *data, size_t n, bool add)
{
	if (!is_graph(g) || (n && (!from || !to)))
		return CUDA_ERROR_INVALID_VALUE;
	if (!add && n && sim_graph_has(g, SIM_MEM_NODES))
		return CUDA_ERROR_NOT_SUPPORTED;
	for (size_t i = 0; i < n; i++) {
		const CUgraphEdgeData *have;

		if (!is_node(from[i]) || !is_node(to[i]) || from[i]->graph != g ||
		    to[i]->graph != g || from[i] == to[i])
			return CUDA_ERROR_INVALID_VALUE;
		have = edge_of(from[i], to[i]);
		if (add ? have || (data && sim_graph_edges_ok(&data[i], 1, &from[i], to[i]->type))
			: !have || (data && memcmp(have, &data[i], sizeof(*have))))
			return CUDA_ERROR_INVALID_VALUE;
	}
	for (size_t i = 0; i < n; i++) {
		if (!add)
			sim_graph_undepend(to[i], from[i]);
		else if (sim_graph_depend(to[i], from[i], data ? &data[i] : NULL))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

SIM_API(cuGraphAddDependencies, SIM_INIT,
	P(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n), P(g, from, to, n))
{
	return change(g, from, to, NULL, n, true);
}

SIM_API(cuGraphAddDependencies_v2, SIM_INIT,
	P(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data,
	  size_t n),
	P(g, from, to, data, n))
{
	return change(g, from, to, data, n, true);
}

SIM_API(cuGraphRemoveDependencies, SIM_INIT,
	P(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n), P(g, from, to, n))
{
	return change(g, from, to, NULL, n, false);
}

SIM_API(cuGraphRemoveDependencies_v2, SIM_INIT,
	P(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data,
	  size_t n),
	P(g, from, to, data, n))
{
	return change(g, from, to, data, n, false);
}
