/* SPDX-License-Identifier: MIT */
/*
 * Executable graphs as lists of what they do, in an order that their edges allow.
 *
 * A description is made by walking the graph when it is instantiated or updated: what was captured, added
 * by hand, cloned or nested needs no recording of its own. It owns its data, so the graph may go. What
 * cannot be described is a node (or, RS_GRAPH_OPAQUE, a launch) that may do anything.
 *
 * Files: graph.c keeps the descriptions, graph_walk.c makes them, graph_run.c tells the engine of a launch;
 * wrap_graph.c calls them all.
 * Locks: one mutex for the map of descriptions, a leaf; each description's own, held over a launch of it, in
 * which the driver is called: launches of one executable graph follow one another anyway.
 */
#ifndef RS_SHIM_GRAPH_H
#define RS_SHIM_GRAPH_H

#include "shim/capture.h"
#include "shim/describe.h"

#include <pthread.h>

enum rs_node_kind {
	RS_NODE_NOTHING,
	RS_NODE_OPAQUE,
	RS_NODE_KERNEL,
	RS_NODE_COPY,
	RS_NODE_FILL,
	RS_NODE_HOST,
	RS_NODE_MEMOPS,
	RS_NODE_ALLOC,
	RS_NODE_FREE,
	RS_NODE_RECORD, /* an event outside of the graph */
	RS_NODE_WAIT,
	RS_NODE_GRAPHS, /* a child graph, or the bodies of a conditional node */
};

struct rs_node;
struct rs_nodes {
	struct rs_node *v;
	size_t n;
	uint64_t edges; /* a print of them */
};

struct rs_node {
	CUgraphNode origin; /* by which later calls name it */
	uint8_t kind;	    /* enum rs_node_kind */
	uint8_t disabled;
	uint8_t maybe; /* nobody can tell whether it runs */
	union {
		struct {
			struct rs_launch launch; /* params and extra NULL */
			uint8_t *data;		 /* the parameter block; NULL: none, or not known */
			size_t bytes;
		} kernel;
		CUDA_MEMCPY3D copy;
		CUDA_MEMSET_NODE_PARAMS fill;
		struct {
			CUstreamBatchMemOpParams *op;
			unsigned n;
		} memops;
		struct {
			uint64_t addr, bytes;
		} memory;
		CUevent event;
		struct rs_nodes graphs;
	};
};

/* Of a launch in progress, graph_run.c. */
struct rs_graph_work {
	struct rs_graph_step *steps;
	struct rs_access *access;
	struct rs_later *later;
	uint32_t nsteps, steps_cap, naccess, access_cap, nlater, later_cap;
};

enum rs_graph_flag {
	RS_GRAPH_OPAQUE = 1, /* as it is now, a launch may do anything */
	RS_GRAPH_DEVICE = 2, /* and always: the device may launch and change it */
	RS_GRAPH_MEMORY =
		4, /* allocates or frees: told even when nobody is interested in the rest */
};

struct rs_graph {
	pthread_mutex_t lock;
	uint32_t refs; /* under the map's lock */
	uint32_t flags;
	CUgraphExec exec;
	struct rs_queue last; /* a launch comes after the launches before, whatever their streams */
	uint8_t launched;
	uint8_t altered; /* it is not what was captured */
	struct rs_captured_list captured;
	struct rs_nodes nodes;
	struct rs_graph_work work;
};

/* --- graph.c ---------------------------------------------------------------------------------- */

/* The description of an executable graph, with its lock held; NULL: not known. */
struct rs_graph *rs_graph_get(CUgraphExec exec);
void rs_graph_put(struct rs_graph *g);

/* After the driver's success. */
void rs_graph_instantiated(struct rs_tls *t, CUgraphExec exec, CUgraph graph, uint64_t flags);
void rs_graph_updated(struct rs_tls *t, CUgraphExec exec, CUgraph graph);
/* Before the driver destroys it, and after, with what it said: a refused one is known again. */
struct rs_graph *rs_graph_leaves(CUgraphExec exec);
void rs_graph_left(CUgraphExec exec, struct rs_graph *g, CUresult r);
/* Is there an executable graph with memory nodes? */
int rs_graph_any_memory(void);

/* The node that was known by that handle; without one the graph becomes opaque. */
struct rs_node *rs_graph_node(struct rs_graph *g, CUgraphNode origin);

/* --- graph_walk.c ----------------------------------------------------------------------------- */

/* What the graph does. flags: enum rs_graph_flag, added to. Without memory the list is one opaque node, or empty and
 * the graph opaque. */
struct rs_nodes rs_graph_walk(struct rs_tls *t, CUgraph graph, uint32_t *flags);
void rs_graph_nodes_free(struct rs_nodes *l);
/* What it does as a number, whatever the order of the nodes. */
uint64_t rs_graph_print(const struct rs_nodes *l);
/* Is there a node that may do anything? */
int rs_graph_any_opaque(const struct rs_nodes *l);

/* Give the node other work. */
void rs_node_set_kernel(struct rs_tls *t, struct rs_node *n, const CUDA_KERNEL_NODE_PARAMS *p);
void rs_node_set_memops(struct rs_node *n, const CUstreamBatchMemOpParams *op, unsigned count);
void rs_node_clear(struct rs_node *n, enum rs_node_kind kind);

/* The bodies of a conditional node have no getter: what cuGraphAddNode gave out is kept. */
/* Is the graph a conditional node's? */
int rs_graph_is_body(CUgraph graph);
void rs_graph_conditional(CUgraphNode node, CUgraph owner, const CUgraph *bodies, unsigned n);
/* Before the graph goes: its conditional nodes, and theirs; and after, with what the driver said. */
struct rs_conditional *rs_graph_goes(CUgraph graph);
void rs_graph_gone(struct rs_conditional *list, CUresult r);

/* --- graph_run.c ------------------------------------------------------------------------------ */

/* With the description's lock held: before, and after the driver's launch. idle: only memory is told. */
void rs_graph_before(struct rs_tls *t, struct rs_graph *g, struct rs_queue q, int idle);
void rs_graph_after(struct rs_tls *t, struct rs_graph *g, struct rs_queue q, CUresult result,
		    int idle);
void rs_graph_work_free(struct rs_graph_work *w);

#endif
