/* SPDX-License-Identifier: MIT */
/*
 * Graph memory: what its two modules share. graphmem.c makes and destroys it, and counts; graphmemrun.c
 * says when it is there.
 *
 * The address is reserved when the allocation node is made and is an allocation for API calls until
 * the graph and its executable graph are gone; for executing ops it exists from the turn of the
 * allocation node to the turn of the free. Physical memory is charged at the first launch and kept for
 * later ones until cuDeviceGraphMemTrim. `out` is the state in the order of API calls: launched and not
 * freed yet. Frees of what is not out are refused, as is a launch that would allocate it twice.
 *
 * Within a graph an address is given out again: then several allocation nodes, one after the other, have one memory.
 *
 * A memory is counted by the nodes, the ops and by being out. Driver lock held.
 */
#ifndef SIM_GRAPHMEM_H
#define SIM_GRAPHMEM_H

#include "tests/simcuda/graph.h"

struct sim_graph_mem {
	unsigned refs;
	struct sim_alloc *alloc;
	uint64_t block;
	int dev;
	CUDA_MEM_ALLOC_NODE_PARAMS params; /* accessDescs owned */
	CUgraph owner;			   /* has the allocation node; NULL when it is gone */
	bool freed_inside;	  /* by a node of the owner, since the last allocation node */
	unsigned freed_elsewhere; /* free nodes in other graphs */
	bool charged, out, here;  /* here: scratch, allocated by the launch that is checked */
	unsigned pending;	  /* queued ops that allocate or free it */
	CUcontext launch_ctx;	  /* of the launch that allocated it: checked before use */
	struct sim_op *free_op;	  /* the last free of it */
	struct sim_graph_mem *next, *prev;
};

/* For executing ops: there, or not there. */
void sim_graphmem_set_live(struct sim_graph_mem *m, bool live);
/* Physical memory for m, if it has none. */
CUresult sim_graphmem_charge(struct sim_graph_mem *m);

#endif
