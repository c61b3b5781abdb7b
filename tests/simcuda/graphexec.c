/* SPDX-License-Identifier: MIT */
/*
 * Executable graphs: a topologically ordered copy of a graph.
 *
 * It shares nothing with the graph: the graph may be changed or destroyed. Child graphs and the bodies of
 * conditional nodes are executable graphs in turn, without a handle of their own. Of a graph with
 * memory or conditional nodes there is at most one at a time. Driver lock held.
 */
#include "tests/simcuda/graph.h"

#include <stdlib.h>
#include <string.h>

static void node_clear(struct sim_exec_node *x)
{
	sim_work_clear(&x->work);
	free(x->deps);
	for (unsigned p = 0; p < x->nparts; p++)
		if (x->parts[p])
			sim_graphexec_free(x->parts[p]);
	free(x->parts);
}

void sim_graphexec_free(CUgraphExec e)
{
	sim_handle_del(e);
	if (sim_handle_is(e->origin, SIM_H_GRAPH) && e->origin->single == e)
		e->origin->single = NULL;
	for (size_t i = 0; i < e->n; i++)
		node_clear(&e->nodes[i]);
	sim_cond_drop(e->conds, e->nconds);
	if (e->last)
		sim_op_unref(e->last);
	if (e->users)
		sim_graph_free(e->users);
	free(e->nodes);
	free(e);
}

/* Positions in a topological order into node->index; a node of a cycle, or NULL if there is none. */
static CUgraphNode sort(CUgraph g, CUgraphNode *order)
{
	size_t done = 0;
	bool progress = true;

	for (CUgraphNode n = g->first; n; n = n->next)
		n->seen = false;
	while (done < g->nnodes && progress) {
		progress = false;
		for (CUgraphNode n = g->first; n; n = n->next) {
			bool ready = !n->seen;

			for (size_t i = 0; i < n->ndeps && ready; i++)
				ready = n->deps[i]->seen;
			if (!ready)
				continue;
			n->seen = progress = true;
			n->index = (unsigned)done;
			order[done++] = n;
		}
	}
	for (CUgraphNode n = g->first; n; n = n->next)
		if (!n->seen)
			return n;
	return NULL;
}

/* The child graph or the bodies of n. */
static CUresult fill_parts(CUgraphExec e, struct sim_exec_node *x, CUgraphNode n,
			   struct sim_instantiation *why)
{
	bool cond = n->type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
	unsigned count = cond ? n->work.cond.n : 1;
	CUresult r = CUDA_SUCCESS;

	x->parts = calloc(count, sizeof(*x->parts));
	if (!x->parts)
		return CUDA_ERROR_OUT_OF_MEMORY;
	x->nparts = count;
	for (unsigned p = 0; p < count && !r; p++) {
		CUgraph part = cond ? n->work.cond.bodies[p] : n->work.graph;
		CUgraphNode bad;

		if (cond)
			r = sim_cond_check_body(part, n->ctx, &bad);
		if (!r)
			r = sim_graphexec_new(e->ctx, part, why, &x->parts[p]);
		else
			*why = (struct sim_instantiation){CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE,
							  bad};
	}
	return r;
}

static CUresult fill_node(CUgraphExec e, struct sim_exec_node *x, CUgraphNode n,
			  struct sim_instantiation *why)
{
	x->origin = n;
	x->type = n->type;
	x->ctx = n->ctx ? n->ctx : e->ctx;
	x->enabled = true;
	x->deps = calloc(n->ndeps + 1, sizeof(*x->deps));
	if (!x->deps)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < n->ndeps; i++) {
		x->deps[x->ndeps++] = n->deps[i]->index;
		e->nodes[n->deps[i]->index].nsucc++;
	}
	if (n->type == CU_GRAPH_NODE_TYPE_GRAPH)
		x->work.kind = SIM_WORK_GRAPH; /* the graph itself stays with the node */
	else if (sim_work_clone(&x->work, &n->work))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return n->type == CU_GRAPH_NODE_TYPE_GRAPH || n->type == CU_GRAPH_NODE_TYPE_CONDITIONAL
		       ? fill_parts(e, x, n, why)
		       : CUDA_SUCCESS;
}

/* What must hold before anything is copied; the order of the nodes. */
static CUresult validate(CUgraph g, CUgraphNode *order, struct sim_instantiation *why)
{
	if (sim_cond_unused(g)) {
		why->result = CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
		return CUDA_ERROR_INVALID_VALUE;
	}
	why->bad = sort(g, order);
	if (why->bad) {
		why->result = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
		return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult sim_graphexec_new(CUcontext ctx, CUgraph g, struct sim_instantiation *why,
			   CUgraphExec *ret)
{
	CUgraphExec e = calloc(1, sizeof(*e));
	CUgraphNode *order = calloc(g->nnodes + 1, sizeof(*order));
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (e && order) {
		e->ctx = ctx;
		e->nodes = calloc(g->nnodes + 1, sizeof(*e->nodes));
		r = e->nodes ? validate(g, order, why) : CUDA_ERROR_OUT_OF_MEMORY;
	}
	for (size_t i = 0; !r && i < g->nnodes; i++) {
		e->n = i + 1;
		r = fill_node(e, &e->nodes[i], order[i], why);
	}
	if (!r && sim_cond_copy(e, g))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (!r && g->nusers) {
		e->users = sim_graph_new();
		if (!e->users || sim_userobj_copy(e->users, g))
			r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	free(order);
	if (!r)
		*ret = e;
	else if (e)
		sim_graphexec_free(e);
	return r;
}

static int clone_node(struct sim_exec_node *dst, const struct sim_exec_node *src)
{
	*dst = *src;
	dst->parts = calloc(src->nparts + 1, sizeof(*dst->parts));
	dst->deps = malloc((src->ndeps + 1) * sizeof(*dst->deps));
	if (sim_work_clone(&dst->work, &src->work) || !dst->parts || !dst->deps) {
		dst->nparts = 0;
		return -1;
	}
	memcpy(dst->deps, src->deps, src->ndeps * sizeof(*dst->deps));
	for (unsigned p = 0; p < src->nparts; p++) {
		dst->parts[p] = sim_graphexec_clone(src->parts[p]);
		if (!dst->parts[p])
			return -1;
	}
	return 0;
}

/* For a body about to be launched: without handles, which were set when the launch began. */
CUgraphExec sim_graphexec_clone(const struct CUgraphExec_st *src)
{
	CUgraphExec e = calloc(1, sizeof(*e));
	bool bad = !e;

	if (e) {
		e->ctx = src->ctx;
		e->nodes = calloc(src->n + 1, sizeof(*e->nodes));
		bad = !e->nodes;
	}
	for (size_t i = 0; !bad && i < src->n; i++) {
		e->n = i + 1;
		bad = clone_node(&e->nodes[i], &src->nodes[i]);
	}
	if (bad && e)
		sim_graphexec_free(e);
	return bad ? NULL : e;
}

#define HOST_FLAGS                                                                                 \
	(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |                                         \
	 CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)

static CUresult create(struct sim_call *call, CUgraphExec *ret, CUgraph g, uint64_t flags,
		       struct sim_instantiation *why)
{
	CUgraphExec e;
	bool single;
	CUresult r;

	*why = (struct sim_instantiation){.result = CUDA_GRAPH_INSTANTIATE_ERROR};
	if (!ret || !sim_handle_is(g, SIM_H_GRAPH) || g->is_moved || g->is_body)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
		return flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH
			       ? CUDA_ERROR_INVALID_VALUE
			       : CUDA_ERROR_NOT_SUPPORTED;
	if (flags & ~(uint64_t)HOST_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	single = sim_graph_has(g, SIM_MEM_NODES | SIM_COND_NODES);
	if (single && g->single)
		return CUDA_ERROR_INVALID_VALUE;
	r = sim_graphexec_new(call->ctx, g, why, &e);
	if (r)
		return r;
	if (sim_handle_add(e, SIM_H_EXEC)) {
		sim_graphexec_free(e);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	e->flags = flags;
	e->origin = g;
	if (single)
		g->single = e;
	*why = (struct sim_instantiation){.result = CUDA_GRAPH_INSTANTIATE_SUCCESS};
	*ret = e;
	return CUDA_SUCCESS;
}

static CUresult create_logged(struct sim_call *call, CUgraphExec *ret, CUgraph g, CUgraphNode *err,
			      char *log, size_t size)
{
	struct sim_instantiation why;
	CUresult r = create(call, ret, g, 0, &why);

	if (err)
		*err = why.bad;
	if (log && size)
		*log = 0;
	return r;
}

SIM_API(cuGraphInstantiate, SIM_CTX,
	P(CUgraphExec *ret, CUgraph g, CUgraphNode *err, char *log, size_t size),
	P(ret, g, err, log, size))
{
	return create_logged(call, ret, g, err, log, size);
}

SIM_API(cuGraphInstantiate_v2, SIM_CTX,
	P(CUgraphExec *ret, CUgraph g, CUgraphNode *err, char *log, size_t size),
	P(ret, g, err, log, size))
{
	return create_logged(call, ret, g, err, log, size);
}

SIM_API(cuGraphInstantiateWithFlags, SIM_CTX,
	P(CUgraphExec *ret, CUgraph g, unsigned long long flags), P(ret, g, flags))
{
	struct sim_instantiation why;

	return create(call, ret, g, flags, &why);
}

SIM_TWINS(cuGraphInstantiateWithParams, _ptsz, SIM_CTX,
	  P(CUgraphExec *ret, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p), P(ret, g, p))
{
	const uint64_t upload = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
	struct sim_instantiation why = {.result = CUDA_GRAPH_INSTANTIATE_ERROR};
	CUresult r = CUDA_SUCCESS;
	CUstream s;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	if (p->flags & upload)
		r = sim_stream_get(call, p->hUploadStream, &s);
	if (!r)
		r = create(call, ret, g, p->flags & ~upload, &why);
	p->hErrNode_out = why.bad;
	p->result_out = why.result;
	/* An upload that finds no memory is no failed instantiation: the launch will tell. */
	if (!r && p->flags & upload)
		sim_graphmem_reserve(*ret);
	return r;
}

/* What a launch in flight may need, the program's objects, stays until it is done. */
void sim_graphexec_release_later(CUgraphExec holder, struct sim_op *last)
{
	struct sim_work w = {.kind = SIM_WORK_RELEASE, .graph = holder->users};
	struct sim_op *op;

	if (!holder->users || !last || last->state == SIM_OP_DONE)
		return;
	holder->users = NULL;
	op = sim_op_new(last->ctx, last->stream_id, &w);
	if (!op)
		return;
	if (sim_op_after(op, last)) {
		sim_op_unref(op);
		return;
	}
	sim_sched_enqueue(op);
	sim_stream_detach(last->ctx, op);
}

SIM_API(cuGraphExecDestroy, SIM_INIT, P(CUgraphExec e), P(e))
{
	if (!sim_handle_is(e, SIM_H_EXEC))
		return CUDA_ERROR_INVALID_VALUE;
	sim_graphexec_release_later(e, e->last);
	sim_graphexec_free(e);
	return CUDA_SUCCESS;
}

SIM_API(cuGraphExecGetFlags, SIM_INIT, P(CUgraphExec e, cuuint64_t *ret), P(e, ret))
{
	if (!ret || !sim_handle_is(e, SIM_H_EXEC))
		return CUDA_ERROR_INVALID_VALUE;
	*ret = e->flags;
	return CUDA_SUCCESS;
}

struct sim_exec_node *sim_graphexec_find(CUgraphExec e, CUgraphNode node)
{
	struct sim_exec_node *found = NULL;

	for (size_t i = 0; i < e->n && !found; i++) {
		struct sim_exec_node *x = &e->nodes[i];

		if (x->origin == node)
			return x;
		for (unsigned p = 0; p < x->nparts && !found; p++)
			found = sim_graphexec_find(x->parts[p], node);
	}
	return found;
}

static struct sim_exec_node *switchable(CUgraphExec e, CUgraphNode n)
{
	struct sim_exec_node *x = sim_handle_is(e, SIM_H_EXEC) ? sim_graphexec_find(e, n) : NULL;

	return x && (x->type == CU_GRAPH_NODE_TYPE_KERNEL || x->type == CU_GRAPH_NODE_TYPE_MEMCPY ||
		     x->type == CU_GRAPH_NODE_TYPE_MEMSET)
		       ? x
		       : NULL;
}

SIM_API(cuGraphNodeSetEnabled, SIM_INIT, P(CUgraphExec e, CUgraphNode n, unsigned on), P(e, n, on))
{
	struct sim_exec_node *x = switchable(e, n);

	if (!x)
		return CUDA_ERROR_INVALID_VALUE;
	x->enabled = on != 0;
	return CUDA_SUCCESS;
}

SIM_API(cuGraphNodeGetEnabled, SIM_INIT, P(CUgraphExec e, CUgraphNode n, unsigned *ret),
	P(e, n, ret))
{
	struct sim_exec_node *x = switchable(e, n);

	if (!x || !ret)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = x->enabled;
	return CUDA_SUCCESS;
}
