/* SPDX-License-Identifier: MIT */
/*
 * Graphs: nodes, edges, copies. What a node does is a work, copied when it is added or set.
 *
 * A node lists the nodes that it depends on; the other direction is found by looking. An edge may carry
 * the annotations of programmatic launch: they are kept and told, the whole node is waited for. What
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

static void undepend(CUgraphNode n, CUgraphNode on)
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
		undepend(o, n);
	node_free(n);
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
			undepend(to[i], from[i]);
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
