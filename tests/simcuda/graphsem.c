/* SPDX-License-Identifier: MIT */
/*
 * Nodes that signal external semaphores or wait for them; the semaphores are sync.c's. Driver lock held.
 */
#include "tests/simcuda/graph.h"
#include "tests/simcuda/vmm.h"

#define SEM_NODES(name, Name, type, kind, given)                                                   \
	CUresult sim_graphnode_##name(const given *p, struct sim_work *w)                          \
	{                                                                                          \
		return p ? sim_sync_sems(kind, p->extSemArray, p->paramsArray, p->numExtSems, w)   \
			 : CUDA_ERROR_INVALID_VALUE;                                               \
	}                                                                                          \
	SIM_API(cuGraphAddExternalSemaphores##Name##Node, SIM_CTX,                                 \
		P(SIM_ADD_PARAMS, const given *p), P(SIM_ADD_ARGS, p))                             \
	{                                                                                          \
		struct sim_work w;                                                                 \
		CUresult r = sim_graphnode_bad_add(SIM_ADD_ARGS) ? CUDA_ERROR_INVALID_VALUE        \
								 : sim_graphnode_##name(p, &w);    \
                                                                                                   \
		return sim_graphnode_add(call, type, r, &w, NULL, SIM_ADD_ARGS);                   \
	}                                                                                          \
	SIM_API(cuGraphExternalSemaphores##Name##NodeGetParams, SIM_CTX,                           \
		P(CUgraphNode n, given *p), P(n, p))                                               \
	{                                                                                          \
		CUresult r = p ? sim_graphnode_is(n, type) : CUDA_ERROR_INVALID_VALUE;             \
                                                                                                   \
		if (!r)                                                                            \
			*p = (given){n->work.sync.sems, n->work.sync.params, n->work.sync.n};      \
		return r;                                                                          \
	}                                                                                          \
	SIM_API(cuGraphExternalSemaphores##Name##NodeSetParams, SIM_CTX,                           \
		P(CUgraphNode n, const given *p), P(n, p))                                         \
	{                                                                                          \
		struct sim_work w;                                                                 \
		CUresult r = sim_graphnode_##name(p, &w);                                          \
                                                                                                   \
		return sim_graphnode_set(n, type, r, &w);                                          \
	}                                                                                          \
	SIM_API(cuGraphExecExternalSemaphores##Name##NodeSetParams, SIM_CTX,                       \
		P(CUgraphExec e, CUgraphNode n, const given *p), P(e, n, p))                       \
	{                                                                                          \
		struct sim_work w;                                                                 \
		CUresult r = sim_graphnode_##name(p, &w);                                          \
                                                                                                   \
		return sim_graphnode_exec_set(e, n, type, r, &w);                                  \
	}

SEM_NODES(signal, Signal, CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL, SIM_WORK_SIGNAL,
	  CUDA_EXT_SEM_SIGNAL_NODE_PARAMS)
SEM_NODES(await, Wait, CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT, SIM_WORK_AWAIT,
	  CUDA_EXT_SEM_WAIT_NODE_PARAMS)
