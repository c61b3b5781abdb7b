/* SPDX-License-Identifier: MIT */
/*
 * The descriptions of executable graphs, by handle. See graph.h.
 */
#include "shim/graph.h"
#include "shim/handles.h"

#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rs_handles graphs;
static uint32_t with_memory; /* descriptions with RS_GRAPH_MEMORY in the map; atomic */

int rs_graph_any_memory(void)
{
	return __atomic_load_n(&with_memory, __ATOMIC_RELAXED) != 0;
}

static void unref(struct rs_graph *g)
{
	uint32_t left;

	pthread_mutex_lock(&lock);
	left = --g->refs;
	pthread_mutex_unlock(&lock);
	if (left)
		return;
	pthread_mutex_destroy(&g->lock);
	rs_graph_nodes_free(&g->nodes);
	rs_graph_work_free(&g->work);
	rs_captured_list_free(&g->captured);
	free(g);
}

/* With a reference; NULL: nobody knows it. */
static struct rs_graph *referenced(CUgraphExec exec)
{
	struct rs_graph *g;

	pthread_mutex_lock(&lock);
	g = rs_handles_find(&graphs, exec);
	if (g)
		g->refs++;
	pthread_mutex_unlock(&lock);
	return g;
}

struct rs_graph *rs_graph_get(CUgraphExec exec)
{
	struct rs_graph *g = referenced(exec);

	if (g)
		pthread_mutex_lock(&g->lock);
	return g;
}

void rs_graph_put(struct rs_graph *g)
{
	pthread_mutex_unlock(&g->lock);
	unref(g);
}

/* The handle means g from now on; NULL: nothing. */
static void publish(CUgraphExec exec, struct rs_graph *g)
{
	struct rs_graph *old;
	int failed;

	pthread_mutex_lock(&lock);
	old = rs_handles_find(&graphs, exec);
	failed = rs_handles_set(&graphs, exec, g);
	if (g && !failed && g->flags & RS_GRAPH_MEMORY)
		__atomic_fetch_add(&with_memory, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
	if (failed) {
		unref(g);
		return;
	}
	if (!old)
		return;
	if (old->flags & RS_GRAPH_MEMORY)
		__atomic_fetch_sub(&with_memory, 1, __ATOMIC_RELAXED);
	unref(old);
}

static void captured(struct rs_graph *g, CUgraph graph)
{
	int altered;

	rs_captured_list_free(&g->captured);
	g->captured = rs_captured_of(graph, rs_graph_print(&g->nodes), &altered);
	/* what the device may change does not stay what it was */
	g->altered = altered || rs_graph_any_opaque(&g->nodes) || g->flags & RS_GRAPH_OPAQUE;
}

void rs_graph_instantiated(struct rs_tls *t, CUgraphExec exec, CUgraph graph, uint64_t flags)
{
	struct rs_graph *g = calloc(1, sizeof(*g));

	if (g) {
		g->refs = 1;
		g->exec = exec;
		pthread_mutex_init(&g->lock, NULL);
		g->nodes = rs_graph_walk(t, graph, &g->flags);
		captured(g, graph);
		/* The device may launch it, too, by kernels that are unknown writers, and change its nodes. */
		if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
			g->flags |= RS_GRAPH_DEVICE;
	}
	publish(exec, g);
}

static int any_disabled(const struct rs_nodes *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].disabled ||
		    (l->v[i].kind == RS_NODE_GRAPHS && any_disabled(&l->v[i].graphs)))
			return 1;
	return 0;
}

/* Which nodes run is a property of the executable graph, and asked of it. */
static void ask_enabled(CUgraphExec exec, struct rs_nodes *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct rs_node *n = &l->v[i];
		unsigned enabled = 1;

		if (rs_real.cuGraphNodeGetEnabled(exec, n->origin, &enabled) != CUDA_SUCCESS)
			n->maybe = 1;
		n->disabled = !enabled;
		if (n->kind == RS_NODE_GRAPHS)
			ask_enabled(exec, &n->graphs);
	}
}

void rs_graph_updated(struct rs_tls *t, CUgraphExec exec, CUgraph graph)
{
	struct rs_graph *g = rs_graph_get(exec);
	uint32_t flags = 0;
	int disabled;

	if (!g)
		return;
	disabled = any_disabled(&g->nodes);
	rs_graph_nodes_free(&g->nodes);
	g->nodes = rs_graph_walk(t, graph, &flags);
	captured(g, graph);
	if (flags & ~g->flags & RS_GRAPH_MEMORY)
		__atomic_fetch_add(&with_memory, 1, __ATOMIC_RELAXED);
	g->flags = (g->flags & ~(uint32_t)RS_GRAPH_OPAQUE) | flags;
	if (disabled)
		ask_enabled(exec, &g->nodes);
	rs_graph_put(g);
}

struct rs_graph *rs_graph_leaves(CUgraphExec exec)
{
	struct rs_graph *g = referenced(exec);

	if (g)
		publish(exec, NULL);
	return g;
}

void rs_graph_left(CUgraphExec exec, struct rs_graph *g, CUresult r)
{
	if (!g)
		return;
	if (r != CUDA_SUCCESS)
		publish(exec, g);
	else
		unref(g);
}

static struct rs_node *find(const struct rs_nodes *l, CUgraphNode origin)
{
	struct rs_node *found = NULL;

	for (size_t i = 0; i < l->n && !found; i++) {
		if (l->v[i].origin == origin)
			return &l->v[i];
		if (l->v[i].kind == RS_NODE_GRAPHS)
			found = find(&l->v[i].graphs, origin);
	}
	return found;
}

struct rs_node *rs_graph_node(struct rs_graph *g, CUgraphNode origin)
{
	struct rs_node *n = find(&g->nodes, origin);

	g->altered = 1;

	if (!n)
		g->flags |= RS_GRAPH_OPAQUE;
	return n;
}
