/* SPDX-License-Identifier: MIT */
/*
 * Graphs of the simulated driver: the types that the graph modules share.
 *
 * graph.c, graphedge.c, graphdot.c   graphs, nodes, edges, how they look
 * graphnode.c  adding a node, reading and setting parameters; host, event, child graph nodes
 * graphkernel.c, graphcopy.c, graphmem*.c, graphcond.c, graphsem.c   kernel, copy/fill/batch, memory,
 *              conditional and semaphore nodes
 * graphparams.c  the same through CUgraphNodeParams
 * graphexec.c, graphupdate.c, graphlaunch.c   executable graphs: made, changed, launched
 *
 * What a node does is a work (sim.h), owned by the node; an executable graph has copies of its own.
 * Driver lock held everywhere.
 */
#ifndef SIM_GRAPH_H
#define SIM_GRAPH_H

#include "tests/simcuda/sim.h"

#define SIM_NODE_ATTRS 17

struct CUgraphNode_st {
	CUgraph graph;
	CUgraphNodeType type;
	struct sim_work work;
	CUcontext ctx;
	CUgraphNode *deps;
	CUgraphEdgeData *edges; /* of deps */
	size_t ndeps;
	CUgraphNode origin; /* the node it was cloned from */
	void **argv;	    /* kernel nodes: the argument pointers that GetParams gave out */
	CUlaunchAttributeValue
		*attr;	/* kernel nodes: SIM_NODE_ATTRS values, NULL before one is set */
	unsigned index; /* scratch: position while a graph is walked */
	bool seen;	/* scratch */
	CUgraphNode next, prev;
};

struct CUgraph_st {
	CUgraphNode first, last;
	size_t nnodes;
	CUgraph parent; /* of a child graph or body */
	bool is_child;	/* part of a node: not destroyed by itself */
	bool is_moved; /* given to its parent: not instantiated by itself, no further memory nodes */
	bool is_body;  /* of a conditional node */
	struct sim_capture *cap;
	CUgraphExec single; /* the one instantiation of a graph that may have only one */
	struct sim_cond **conds;
	size_t nconds;
	struct sim_user {
		CUuserObject obj;
		unsigned count;
	} * users;
	size_t nusers;
};

struct CUgraphExec_st {
	CUcontext ctx;
	uint64_t flags;
	size_t n;
	struct sim_exec_node {
		struct sim_work work;
		CUgraphNode origin; /* may be gone: compared, never followed */
		CUgraphNodeType type;
		CUcontext ctx;
		bool enabled;
		unsigned *deps;
		unsigned ndeps;
		unsigned nsucc;
		CUgraphExec *parts; /* a child graph, or the bodies of a conditional node */
		unsigned nparts;
	} * nodes;	     /* in a topological order */
	CUgraph origin;	     /* compared, never followed */
	CUgraph users;	     /* holds the references to user objects */
	struct sim_op *last; /* launches of one executable graph are in order */
	struct sim_cond **conds;
	size_t nconds;
};

/* ---- graph.c, graphedge.c ---- */

int sim_graph_depend(CUgraphNode node, CUgraphNode on, const CUgraphEdgeData *edge);
void sim_graph_undepend(CUgraphNode node, CUgraphNode on);
CUresult sim_graph_edges_ok(const CUgraphEdgeData *data, size_t n, const CUgraphNode *from,
			    CUgraphNodeType to);
bool sim_graph_has(const struct CUgraph_st *g, unsigned types); /* a mask of 1 << type, deep */
#define SIM_MEM_NODES  (1u << CU_GRAPH_NODE_TYPE_MEM_ALLOC | 1u << CU_GRAPH_NODE_TYPE_MEM_FREE)
#define SIM_COND_NODES (1u << CU_GRAPH_NODE_TYPE_CONDITIONAL)

/* ---- graphnode.c ---- */

#define SIM_ADD_PARAMS CUgraphNode *ret, CUgraph g, const CUgraphNode *deps, size_t n
#define SIM_ADD_ARGS   ret, g, deps, n

bool sim_graphnode_bad_add(SIM_ADD_PARAMS);
/* Each takes the work unless r says that there is none; r is then the result. */
CUresult sim_graphnode_add(struct sim_call *call, CUgraphNodeType type, CUresult r,
			   struct sim_work *w, CUcontext ctx, SIM_ADD_PARAMS);
CUresult sim_graphnode_set(CUgraphNode node, CUgraphNodeType type, CUresult r, struct sim_work *w);
CUresult sim_graphnode_exec_set(CUgraphExec e, CUgraphNode node, CUgraphNodeType type, CUresult r,
				struct sim_work *w);
CUresult sim_graphnode_is(CUgraphNode node, CUgraphNodeType type);

/* Parameters to works. */
CUresult sim_graphnode_host(const CUDA_HOST_NODE_PARAMS *p, struct sim_work *w);
CUresult sim_graphnode_event(CUevent e, enum sim_work_kind kind, struct sim_work *w);
CUresult sim_graphnode_child(CUgraph g, CUgraph child, CUgraphChildGraphNodeOwnership how,
			     struct sim_work *w);
CUresult sim_graphnode_kernel(struct sim_call *call, const void *params, size_t size,
			      struct sim_work *w, CUcontext *ret_ctx);
CUresult sim_graphnode_copy(const CUDA_MEMCPY3D *p, CUcontext ctx, struct sim_work *w);
CUresult sim_graphnode_fill(const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx, struct sim_work *w);
CUresult sim_graphnode_signal(const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *p, struct sim_work *w);
CUresult sim_graphnode_await(const CUDA_EXT_SEM_WAIT_NODE_PARAMS *p, struct sim_work *w);
CUresult sim_graphnode_batch(const CUDA_BATCH_MEM_OP_NODE_PARAMS *p, struct sim_work *w);
CUresult sim_graphmem_add_alloc(struct sim_call *call, SIM_ADD_PARAMS,
				CUDA_MEM_ALLOC_NODE_PARAMS *p);
CUresult sim_graphmem_add_free(struct sim_call *call, SIM_ADD_PARAMS, CUdeviceptr dptr);
CUresult sim_graphcond_add(struct sim_call *call, SIM_ADD_PARAMS, CUDA_CONDITIONAL_NODE_PARAMS *p);

/* ---- graphmem.c, graphmemrun.c ---- */

void sim_graphmem_drop_node(CUgraphNode node); /* it is about to go */
/* May e be launched, is there memory for it? */
CUresult sim_graphmem_check(CUgraphExec e);
CUresult sim_graphmem_reserve(CUgraphExec e);
/* The launch happens. Its first op, not enqueued yet, comes after the frees of what it allocates. */
int sim_graphmem_order(CUgraphExec e, struct sim_op *first);
/* Then, with the first op enqueued: *first becomes the op after which the nodes may run. */
CUresult sim_graphmem_begin(CUgraphExec e, CUstream s, struct sim_op **first);
void sim_graphmem_end(CUgraphExec e, struct sim_op *last);
void sim_graphmem_queued(struct sim_graph_mem *m); /* an op that allocates or frees it */
CUdeviceptr sim_graphmem_address(const struct sim_graph_mem *m);
size_t sim_graphmem_size(const struct sim_graph_mem *m);

/* ---- graphcond.c ---- */

void sim_cond_drop(struct sim_cond **conds, size_t n); /* references, and the array */
void sim_cond_orphan(CUgraph g);		       /* g is about to go */
bool sim_cond_unused(const struct CUgraph_st *g);      /* has a handle without a conditional node */
CUresult sim_cond_check_body(CUgraph body, CUcontext ctx, CUgraphNode *ret_bad);
int sim_cond_copy(CUgraphExec e, const struct CUgraph_st *g);
/* The work that gives all handles of e, those of its bodies included, their default values. */
int sim_cond_init_work(CUgraphExec e, struct sim_work *ret);
/* The op of a conditional node, and the one that comes after it and what it decides to run. */
struct sim_op *sim_cond_new_op(const struct sim_exec_node *x, uint64_t stream_id,
			       struct sim_op **ret_end);

/* ---- graphexec.c ---- */

struct sim_instantiation {
	CUgraphInstantiateResult result;
	CUgraphNode bad;
};
CUresult sim_graphexec_new(CUcontext ctx, CUgraph g, struct sim_instantiation *why,
			   CUgraphExec *ret);
void sim_graphexec_free(CUgraphExec e);
CUgraphExec sim_graphexec_clone(const struct CUgraphExec_st *src);
/* The user objects of `holder` go when `last`, the end of a launch, is done; or with it if it is. */
void sim_graphexec_release_later(CUgraphExec holder, struct sim_op *last);
struct sim_exec_node *sim_graphexec_find(CUgraphExec e, CUgraphNode node);

/* ---- graphupdate.c ---- */

/* May what x does become w, run in ctx? */
CUgraphExecUpdateResult sim_graphexec_compatible(const struct sim_exec_node *x,
						 const struct sim_work *w, CUcontext ctx);
CUresult sim_graphexec_set_child(CUgraphExec e, CUgraphNode node, CUgraph child);

/* ---- graphlaunch.c ---- */

/*
 * Enqueue the nodes of e after `first`; the op that comes after all of them, with a reference, or NULL
 * without memory. `inside`: the body of a conditional node, whose ops belong to no engine of the clock.
 */
struct sim_op *sim_graphlaunch_expand(CUgraphExec e, uint64_t stream_id, struct sim_op *first,
				      bool inside, unsigned mark);

#endif
