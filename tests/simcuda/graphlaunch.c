/* SPDX-License-Identifier: MIT */
/*
 * Launching executable graphs.
 *
 * A launch is: a first op in the order of the stream, one or more ops per node with the node's
 * dependencies, a last op that becomes the stream's tail. Within it the scheduler may pick any
 * topological order. Launches of one executable graph never overlap. A batch of memory operations is a
 * chain of ops, a child graph is its first op to its last, a conditional node see graphcond.c.
 * Driver lock held.
 */
#include "tests/simcuda/graph.h"

#include <stdlib.h>
#include <string.h>

static struct sim_op *new_nop(CUcontext ctx, uint64_t stream_id)
{
	struct sim_work nop = {.kind = SIM_WORK_NOP};

	return sim_op_new(ctx, stream_id, &nop);
}

/* Where a launch happens: what all its ops have in common. */
struct where {
	uint64_t stream_id;
	bool inside;
	unsigned mark;
};

static void place(struct sim_op *op, const struct where *at)
{
	op->mark = at->mark;
	/* Engines are given out in submission order, and a body is submitted after what follows it. */
	if (at->inside)
		op->engine = SIM_ENGINE_NONE;
}

/* The op at which a node begins, not enqueued yet. */
static struct sim_op *node_op(const struct sim_exec_node *x, const struct where *at,
			      struct sim_op **ret_end)
{
	struct sim_work w = {.kind = SIM_WORK_NOP};
	struct sim_op *op;

	*ret_end = NULL;
	if (x->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
		op = sim_cond_new_op(x, at->stream_id, ret_end);
	} else {
		/* A child graph's node stands for its beginning; a disabled one does nothing. */
		if (x->work.kind == SIM_WORK_BATCH)
			w = sim_memop_work(&x->work.batch.ops[0]);
		else if (x->enabled && x->work.kind != SIM_WORK_GRAPH &&
			 sim_work_clone(&w, &x->work))
			return NULL;
		op = sim_op_new(x->ctx, at->stream_id, &w);
	}
	if (!op)
		return NULL;
	place(op, at);
	if (*ret_end)
		place(*ret_end, at);
	if (x->work.kind == SIM_WORK_MEMALLOC || x->work.kind == SIM_WORK_MEMFREE)
		sim_graphmem_queued(x->work.mem);
	return op;
}

/* The rest of a batch after its first op; the last op with a reference, or NULL without memory. */
static struct sim_op *chain(const struct sim_exec_node *x, struct sim_op *op,
			    const struct where *at)
{
	sim_op_ref(op);
	for (unsigned i = 1; i < x->work.batch.n; i++) {
		struct sim_work w = sim_memop_work(&x->work.batch.ops[i]);
		struct sim_op *next = sim_op_new(x->ctx, at->stream_id, &w);
		bool bad = !next || sim_op_after(next, op);

		sim_op_unref(op);
		if (bad) {
			if (next)
				sim_op_unref(next);
			return NULL;
		}
		place(next, at);
		sim_op_ref(next);
		sim_sched_enqueue(next);
		op = next;
	}
	return op;
}

/* Op, enqueued, is the beginning of x. What comes after all of it, with a reference. */
static struct sim_op *node_end(const struct sim_exec_node *x, struct sim_op *op, struct sim_op *end,
			       const struct where *at)
{
	if (x->work.kind == SIM_WORK_BATCH)
		return chain(x, op, at);
	if (x->work.kind == SIM_WORK_GRAPH)
		return sim_graphlaunch_expand(x->parts[0], at->stream_id, op, at->inside, at->mark);
	if (end)
		sim_sched_enqueue(end);
	else
		end = op;
	sim_op_ref(end);
	return end;
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

/* Enqueue x after what it depends on; ends[] of the nodes before it are there. */
static struct sim_op *enqueue_node(const struct sim_exec_node *x, struct sim_op *const *ends,
				   struct sim_op *first, const struct where *at)
{
	struct sim_op *end, *op = node_op(x, at, &end);
	bool bad = !op;

	if (bad)
		return NULL;
	if (!x->ndeps)
		bad |= sim_op_after(op, first);
	for (unsigned d = 0; d < x->ndeps; d++)
		bad |= sim_op_after(op, ends[x->deps[d]]);
	if (x->work.kind == SIM_WORK_EVENT || x->work.kind == SIM_WORK_EVENTWAIT)
		touch_event(x, op, &bad);
	sim_sched_enqueue(op);
	end = node_end(x, op, end, at);
	if (bad && end)
		sim_op_unref(end);
	return bad ? NULL : end;
}

struct sim_op *sim_graphlaunch_expand(CUgraphExec e, uint64_t stream_id, struct sim_op *first,
				      bool inside, unsigned mark)
{
	const struct where at = {stream_id, inside, mark};
	struct sim_op **ends = calloc(e->n + 1, sizeof(*ends));
	struct sim_op *last = new_nop(e->ctx, stream_id);
	bool bad = !ends || !last;

	for (size_t i = 0; i < e->n && !bad; i++) {
		ends[i] = enqueue_node(&e->nodes[i], ends, first, &at);
		bad = !ends[i] || (!e->nodes[i].nsucc && sim_op_after(last, ends[i]));
	}
	if (last) {
		place(last, &at);
		bad |= sim_op_after(last, first);
		sim_op_ref(last);
		sim_sched_enqueue(last);
	}
	for (size_t i = 0; ends && i < e->n; i++)
		if (ends[i])
			sim_op_unref(ends[i]);
	free(ends);
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
		for (unsigned p = 0; p < x->nparts; p++)
			if (code_gone(x->parts[p]))
				return true;
	}
	return false;
}

/* The first op of a launch, enqueued: after the stream, earlier launches, frees; with a reference. */
static CUresult begin(CUgraphExec e, CUstream s, struct sim_op **ret_first)
{
	struct sim_op *first;
	struct sim_work w;
	CUresult r;

	if (sim_cond_init_work(e, &w))
		return CUDA_ERROR_OUT_OF_MEMORY;
	first = sim_op_new(s->ctx, s->id, &w);
	if (!first)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = sim_stream_join(s, first);
	if ((e->last && sim_op_after(first, e->last)) || sim_graphmem_order(e, first))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	sim_op_ref(first);
	sim_sched_enqueue(first);
	*ret_first = first;
	return r;
}

static CUresult launch(CUgraphExec e, CUstream s)
{
	struct sim_op *first = NULL, *last;
	CUresult r;

	if (code_gone(e))
		return CUDA_ERROR_INVALID_HANDLE;
	r = sim_graphmem_check(e);
	if (r)
		return r;
	r = begin(e, s, &first);
	if (!first)
		return r;
	if (!r)
		r = sim_graphmem_begin(e, s, &first);
	last = r ? NULL : sim_graphlaunch_expand(e, s->id, first, false, 0);
	sim_stream_set_tail(s, last ? last : first);
	sim_op_unref(first);
	if (!last)
		return CUDA_ERROR_OUT_OF_MEMORY;
	sim_graphmem_end(e, last);
	if (e->last)
		sim_op_unref(e->last);
	e->last = last;
	sim_sched_kick();
	return CUDA_SUCCESS;
}

/* ---- launching into a captured stream adds a child graph ---- */

static bool has_restricted(const struct CUgraphExec_st *e)
{
	for (size_t i = 0; i < e->n; i++) {
		const struct sim_exec_node *x = &e->nodes[i];

		if ((SIM_MEM_NODES | SIM_COND_NODES) >> x->type & 1)
			return true;
		if (x->type == CU_GRAPH_NODE_TYPE_GRAPH && has_restricted(x->parts[0]))
			return true;
	}
	return false;
}

static CUgraph graph_of(CUgraphExec e);

static int add_copy(CUgraph g, const struct sim_exec_node *x, CUgraphNode *ret)
{
	struct sim_work w;

	if (sim_work_clone(&w, &x->work))
		return -1;
	if (x->type == CU_GRAPH_NODE_TYPE_GRAPH) {
		w.graph = graph_of(x->parts[0]);
		if (!w.graph)
			return -1;
	}
	return sim_graph_add(g, x->type, &w, x->ctx, NULL, 0, ret) ? -1 : 0;
}

static CUgraph graph_of(CUgraphExec e)
{
	CUgraph g = sim_graph_new();
	CUgraphNode *map = calloc(e->n + 1, sizeof(*map));
	bool bad = !g || !map;

	for (size_t i = 0; i < e->n && !bad; i++) {
		const struct sim_exec_node *x = &e->nodes[i];

		bad = add_copy(g, x, &map[i]);
		for (unsigned d = 0; d < x->ndeps && !bad; d++)
			bad = sim_graph_depend(map[i], map[x->deps[d]], NULL);
	}
	free(map);
	if (bad && g)
		sim_graph_free(g);
	if (bad)
		return NULL;
	g->is_child = true;
	return g;
}

static CUresult launch_captured(CUgraphExec e, CUstream s)
{
	struct sim_work w = {.kind = SIM_WORK_GRAPH};

	if (has_restricted(e))
		return sim_capture_break(s, CUDA_ERROR_NOT_SUPPORTED);
	if (code_gone(e))
		return sim_capture_break(s, CUDA_ERROR_INVALID_HANDLE);
	w.graph = graph_of(e);
	if (!w.graph)
		return CUDA_ERROR_OUT_OF_MEMORY;
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

/* Nothing has to be moved ahead of a launch; the memory of allocation nodes can be taken. */
SIM_TWINS(cuGraphUpload, _ptsz, SIM_CTX, P(CUgraphExec e, CUstream h), P(e, h))
{
	CUstream s;
	CUresult r;

	if (!sim_handle_is(e, SIM_H_EXEC))
		return CUDA_ERROR_INVALID_VALUE;
	r = sim_stream_get(call, h, &s);
	return r ? r : sim_graphmem_reserve(e);
}
