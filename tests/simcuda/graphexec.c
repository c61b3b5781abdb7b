/* SPDX-License-Identifier: MIT */
/*
 * Executable graphs: a topologically ordered copy of a graph, turned into ops at each launch.
 *
 * A launch is: a first op in the order of the stream, one op per node with the node's dependencies, a
 * last op that becomes the stream's tail. Within it the scheduler may pick any topological order.
 * Launches of one executable graph never overlap. Driver lock held.
 */
#include "tests/simcuda/sim.h"

#include <stdlib.h>
#include <string.h>

static void exec_free(CUgraphExec e)
{
	sim_handle_del(e);
	for (size_t i = 0; i < e->n; i++) {
		sim_work_clear(&e->nodes[i].work);
		free(e->nodes[i].deps);
		if (e->nodes[i].child)
			exec_free(e->nodes[i].child);
	}
	if (e->last)
		sim_op_unref(e->last);
	if (e->users)
		sim_graph_free(e->users);
	free(e->nodes);
	free(e);
}

/* Positions in a topological order into node->index; false if there is a cycle. */
static bool sort(CUgraph g, CUgraphNode *order)
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
	return done == g->nnodes;
}

static CUresult instantiate(CUcontext ctx, CUgraph g, CUgraphExec *ret);

static CUresult fill_node(CUgraphExec e, struct sim_exec_node *x, CUgraphNode n)
{
	if (sim_work_clone(&x->work, &n->work))
		return CUDA_ERROR_OUT_OF_MEMORY;
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
	return n->type == CU_GRAPH_NODE_TYPE_GRAPH ? instantiate(e->ctx, n->work.graph, &x->child)
						   : CUDA_SUCCESS;
}

static CUresult instantiate(CUcontext ctx, CUgraph g, CUgraphExec *ret)
{
	CUgraphExec e = calloc(1, sizeof(*e));
	CUgraphNode *order = calloc(g->nnodes + 1, sizeof(*order));
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (e && order) {
		e->ctx = ctx;
		e->nodes = calloc(g->nnodes + 1, sizeof(*e->nodes));
		r = !e->nodes	     ? CUDA_ERROR_OUT_OF_MEMORY
		    : sort(g, order) ? CUDA_SUCCESS
				     : CUDA_ERROR_INVALID_VALUE;
	}
	for (size_t i = 0; !r && i < g->nnodes; i++) {
		e->n = i + 1;
		r = fill_node(e, &e->nodes[i], order[i]);
	}
	if (!r && g->nusers) {
		e->users = sim_graph_new();
		if (!e->users || sim_userobj_copy(e->users, g))
			r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!r && sim_handle_add(e, SIM_H_EXEC))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	free(order);
	if (!r)
		*ret = e;
	else if (e)
		exec_free(e);
	return r;
}

static CUresult create(struct sim_call *call, CUgraphExec *ret, CUgraph g, uint64_t flags)
{
	CUresult r;

	if (!ret || !sim_handle_is(g, SIM_H_GRAPH) || flags > 15)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
		return CUDA_ERROR_NOT_SUPPORTED;
	r = instantiate(call->ctx, g, ret);
	if (!r)
		(*ret)->flags = flags;
	return r;
}

static CUresult create_logged(struct sim_call *call, CUgraphExec *ret, CUgraph g, CUgraphNode *err,
			      char *log, size_t size)
{
	if (err)
		*err = NULL;
	if (log && size)
		*log = 0;
	return create(call, ret, g, 0);
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
	return create(call, ret, g, flags);
}

SIM_TWINS(cuGraphInstantiateWithParams, _ptsz, SIM_CTX,
	  P(CUgraphExec *ret, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p), P(ret, g, p))
{
	CUresult r = p ? create(call, ret, g, p->flags) : CUDA_ERROR_INVALID_VALUE;

	if (p) {
		p->hErrNode_out = NULL;
		p->result_out = r ? CUDA_GRAPH_INSTANTIATE_ERROR : CUDA_GRAPH_INSTANTIATE_SUCCESS;
	}
	return r;
}

SIM_API(cuGraphExecDestroy, SIM_INIT, P(CUgraphExec e), P(e))
{
	if (!sim_handle_is(e, SIM_H_EXEC))
		return CUDA_ERROR_INVALID_VALUE;
	exec_free(e);
	return CUDA_SUCCESS;
}

SIM_API(cuGraphExecGetFlags, SIM_INIT, P(CUgraphExec e, cuuint64_t *ret), P(e, ret))
{
	if (!ret || !sim_handle_is(e, SIM_H_EXEC))
		return CUDA_ERROR_INVALID_VALUE;
	*ret = e->flags;
	return CUDA_SUCCESS;
}

struct sim_exec_node *sim_graph_exec_find(CUgraphExec e, CUgraphNode node)
{
	for (size_t i = 0; i < e->n; i++)
		if (e->nodes[i].origin == node)
			return &e->nodes[i];
	return NULL;
}

SIM_API(cuGraphNodeSetEnabled, SIM_INIT, P(CUgraphExec e, CUgraphNode n, unsigned on), P(e, n, on))
{
	struct sim_exec_node *x = sim_handle_is(e, SIM_H_EXEC) ? sim_graph_exec_find(e, n) : NULL;

	if (!x || (x->work.kind != SIM_WORK_KERNEL && x->work.kind != SIM_WORK_COPY &&
		   x->work.kind != SIM_WORK_FILL))
		return CUDA_ERROR_INVALID_VALUE;
	x->enabled = on != 0;
	return CUDA_SUCCESS;
}

SIM_API(cuGraphNodeGetEnabled, SIM_INIT, P(CUgraphExec e, CUgraphNode n, unsigned *ret),
	P(e, n, ret))
{
	struct sim_exec_node *x = sim_handle_is(e, SIM_H_EXEC) ? sim_graph_exec_find(e, n) : NULL;

	if (!x || !ret)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = x->enabled;
	return CUDA_SUCCESS;
}

SIM_API(cuGraphExecChildGraphNodeSetParams, SIM_CTX, P(CUgraphExec e, CUgraphNode n, CUgraph child),
	P(e, n, child))
{
	struct sim_exec_node *x = sim_handle_is(e, SIM_H_EXEC) ? sim_graph_exec_find(e, n) : NULL;
	CUgraphExec fresh;
	CUresult r;

	if (!x || !x->child || !sim_handle_is(child, SIM_H_GRAPH) || child->nnodes != x->child->n)
		return CUDA_ERROR_INVALID_VALUE;
	r = instantiate(e->ctx, child, &fresh);
	if (r)
		return r;
	exec_free(x->child);
	x->child = fresh;
	return CUDA_SUCCESS;
}

/* ---- whole-graph update: same shape, other parameters ---- */

/* Put the works of the sorted nodes into e. The shape is compared first, so a refused update changes nothing. */
static CUgraphExecUpdateResult update(CUgraphExec e, CUgraphNode *order, CUgraphNode *ret_bad)
{
	struct sim_work *works = calloc(e->n + 1, sizeof(*works));
	CUgraphExecUpdateResult r =
		works ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR;
	size_t made = 0;

	for (size_t i = 0; i < e->n && !r; i++) {
		const struct sim_exec_node *x = &e->nodes[i];

		*ret_bad = order[i];
		if (x->type != order[i]->type)
			r = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
		else if (x->ndeps != order[i]->ndeps)
			r = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
		else if (x->child)
			r = CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
		for (size_t d = 0; d < x->ndeps && !r; d++)
			if (x->deps[d] != order[i]->deps[d]->index)
				r = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
		if (!r && sim_work_clone(&works[i], &order[i]->work))
			r = CU_GRAPH_EXEC_UPDATE_ERROR;
		made = i + !r;
	}
	for (size_t i = 0; i < made; i++) {
		if (!r) {
			sim_work_clear(&e->nodes[i].work);
			e->nodes[i].work = works[i];
			e->nodes[i].origin = order[i];
		} else {
			sim_work_clear(&works[i]);
		}
	}
	free(works);
	if (!r)
		*ret_bad = NULL;
	return r;
}

static CUresult exec_update(CUgraphExec e, CUgraph g, CUgraphNode *ret_bad,
			    CUgraphExecUpdateResult *ret)
{
	CUgraphNode *order;

	if (!sim_handle_is(e, SIM_H_EXEC) || !sim_handle_is(g, SIM_H_GRAPH))
		return CUDA_ERROR_INVALID_VALUE;
	*ret_bad = NULL;
	*ret = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	order = calloc(g->nnodes + 1, sizeof(*order));
	if (!order)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (g->nnodes == e->n && sort(g, order))
		*ret = update(e, order, ret_bad);
	free(order);
	return *ret ? CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE : CUDA_SUCCESS;
}

SIM_API(cuGraphExecUpdate, SIM_INIT,
	P(CUgraphExec e, CUgraph g, CUgraphNode *ret_bad, CUgraphExecUpdateResult *ret),
	P(e, g, ret_bad, ret))
{
	return ret && ret_bad ? exec_update(e, g, ret_bad, ret) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuGraphExecUpdate_v2, SIM_INIT,
	P(CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo *ret), P(e, g, ret))
{
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	ret->errorFromNode = NULL;
	return exec_update(e, g, &ret->errorNode, &ret->result);
}

/* ---- launching ---- */

static struct sim_op *new_nop(CUcontext ctx, CUstream s)
{
	struct sim_work nop = {.kind = SIM_WORK_NOP};

	return sim_op_new(ctx, s->id, &nop);
}

static struct sim_op *node_op(const struct sim_exec_node *x, CUstream s)
{
	struct sim_work w = {.kind = SIM_WORK_NOP};

	/* A child graph's node stands for its beginning; a disabled one does nothing. */
	if (x->enabled && !x->child && sim_work_clone(&w, &x->work))
		return NULL;
	return sim_op_new(x->ctx, s->id, &w);
}

static void touch_event(const struct sim_exec_node *x, struct sim_op *op, bool *bad)
{
	CUevent e = x->work.event;

	if (!sim_handle_is(e, SIM_H_EVENT))
		return; /* destroyed since: nobody can ask for it */
	if (x->work.kind == SIM_WORK_EVENTWAIT) {
		if (e->op)
			*bad |= sim_op_after(op, e->op);
		return;
	}
	if (e->op)
		sim_op_unref(e->op);
	sim_op_ref(op);
	e->op = op;
}

/* Enqueue the nodes after `first`; the op that comes after all of them, or NULL without memory. */
static struct sim_op *expand(CUgraphExec e, CUstream s, struct sim_op *first)
{
	struct sim_op **ops = calloc(e->n + 1, sizeof(*ops));
	struct sim_op *last = new_nop(e->ctx, s);
	bool bad = !ops || !last;

	for (size_t i = 0; i < e->n && !bad; i++) {
		const struct sim_exec_node *x = &e->nodes[i];
		struct sim_op *op = node_op(x, s);

		if (!op) {
			bad = true;
			break;
		}
		if (!x->ndeps)
			bad |= sim_op_after(op, first);
		for (unsigned d = 0; d < x->ndeps; d++)
			bad |= sim_op_after(op, ops[x->deps[d]]);
		if (x->work.kind == SIM_WORK_EVENT || x->work.kind == SIM_WORK_EVENTWAIT)
			touch_event(x, op, &bad);
		sim_op_ref(op);
		sim_sched_enqueue(op);
		ops[i] = op;
		if (x->child && !bad) {
			struct sim_op *end = expand(x->child, s, op);

			bad = !end;
			if (end) {
				sim_op_unref(op);
				ops[i] = end;
			}
		}
		if (!x->nsucc && !bad)
			bad |= sim_op_after(last, ops[i]);
	}
	if (last) {
		bad |= sim_op_after(last, first);
		sim_op_ref(last);
		sim_sched_enqueue(last);
	}
	for (size_t i = 0; ops && i < e->n; i++)
		if (ops[i])
			sim_op_unref(ops[i]);
	free(ops);
	if (bad && last)
		sim_op_unref(last);
	return bad ? NULL : last;
}

/* Has the module of one of its kernels been unloaded since? */
static bool code_gone(CUgraphExec e)
{
	for (size_t i = 0; i < e->n; i++) {
		const struct sim_exec_node *x = &e->nodes[i];

		if (x->work.kind == SIM_WORK_KERNEL &&
		    !sim_handle_is(x->work.kernel.func, SIM_H_FUNC))
			return true;
		if (x->child && code_gone(x->child))
			return true;
	}
	return false;
}

static CUresult launch(CUgraphExec e, CUstream s)
{
	struct sim_op *first, *last;
	CUresult r;

	if (code_gone(e))
		return CUDA_ERROR_INVALID_HANDLE;
	first = new_nop(s->ctx, s);
	if (!first)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = sim_stream_join(s, first);
	if (e->last && sim_op_after(first, e->last))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	sim_op_ref(first);
	sim_sched_enqueue(first);
	last = expand(e, s, first);
	sim_stream_set_tail(s, last ? last : first);
	sim_op_unref(first);
	if (!last)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (e->last)
		sim_op_unref(e->last);
	e->last = last;
	sim_sched_kick();
	return r;
}

/* Launching into a captured stream adds a child graph. */
static CUresult launch_captured(CUgraphExec e, CUstream s)
{
	struct sim_work w = {.kind = SIM_WORK_GRAPH, .graph = sim_graph_new()};
	CUgraphNode *map = calloc(e->n + 1, sizeof(*map));
	bool bad = !w.graph || !map;

	for (size_t i = 0; i < e->n && !bad; i++) {
		const struct sim_exec_node *x = &e->nodes[i];
		struct sim_work copy;

		bad = sim_work_clone(&copy, &x->work) ||
		      sim_graph_add(w.graph, x->type, &copy, x->ctx, NULL, 0, &map[i]);
		for (unsigned d = 0; d < x->ndeps && !bad; d++)
			bad = sim_graph_depend(map[i], map[x->deps[d]]);
	}
	free(map);
	if (bad) {
		sim_work_clear(&w);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	w.graph->is_child = true;
	return sim_capture_add(s, &w, CU_GRAPH_NODE_TYPE_GRAPH);
}

SIM_TWINS(cuGraphLaunch, _ptsz, SIM_CTX, P(CUgraphExec e, CUstream h), P(e, h))
{
	CUstream s;
	CUresult r;

	if (!sim_handle_is(e, SIM_H_EXEC))
		return CUDA_ERROR_INVALID_VALUE;
	r = sim_stream_get(call, h, &s);
	if (r)
		return r;
	if (s->cap)
		return launch_captured(e, s);
	if (s->is_legacy && sim_capture_blocks_legacy(s->ctx))
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	return launch(e, s);
}

SIM_TWINS(cuGraphUpload, _ptsz, SIM_CTX, P(CUgraphExec e, CUstream h), P(e, h))
{
	CUstream s;

	if (!sim_handle_is(e, SIM_H_EXEC))
		return CUDA_ERROR_INVALID_VALUE;
	return sim_stream_get(call, h, &s); /* nothing has to be moved ahead of a launch */
}
