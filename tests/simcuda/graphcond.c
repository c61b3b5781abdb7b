/* SPDX-License-Identifier: MIT */
/*
 * Conditional nodes: handles, IF, WHILE and SWITCH, and how they run.
 *
 * A handle is a number that kernels set with cudaGraphSetConditional; its value belongs to the handle,
 * not to a launch. Handles made with CU_GRAPH_COND_ASSIGN_DEFAULT, those of bodies included, get their
 * default at the start of each launch of the whole graph.
 *
 * What a conditional node does is known only when its turn has come: its op then enqueues the body that
 * the value picks, from a copy that was made at the launch, and for WHILE another look at the value after
 * it. All of that comes before one op that was enqueued with the node, on which the rest of the graph
 * depends. Driver lock held.
 */
#include "tests/simcuda/graph.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_HANDLE 0x5c00000000000010ull /* no small number and no address */
#define MAX_BODIES   65536u

struct sim_cond {
	unsigned refs;
	CUgraphConditionalHandle id;
	CUgraph graph; /* NULL when it is gone */
	CUcontext ctx;
	unsigned value, initial;
	bool assign, used;
	struct sim_cond *next, *prev;
};

/* One launch of a conditional node. */
struct sim_cond_run {
	CUgraphExec *bodies;
	unsigned n;
	struct sim_op *end;
};

struct sim_cond_init {
	size_t n;
	struct {
		struct sim_cond *cond;
		unsigned value;
	} item[];
};

static struct sim_cond *all;
static CUgraphConditionalHandle next_handle = FIRST_HANDLE;

static void unref(struct sim_cond *c)
{
	if (--c->refs)
		return;
	if (c->next)
		c->next->prev = c->prev;
	if (c->prev)
		c->prev->next = c->next;
	else
		all = c->next;
	free(c);
}

static struct sim_cond *find(CUgraphConditionalHandle id)
{
	for (struct sim_cond *c = all; c; c = c->next)
		if (c->id == id)
			return c;
	return NULL;
}

int sim_cond_set(CUcontext ctx, uint64_t handle, unsigned value)
{
	struct sim_cond *c = find(handle);

	if (!c || c->ctx != ctx)
		return -1;
	c->value = value;
	return 0;
}

void sim_cond_drop(struct sim_cond **conds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		unref(conds[i]);
	free(conds);
}

void sim_cond_orphan(CUgraph g)
{
	for (size_t i = 0; i < g->nconds; i++)
		g->conds[i]->graph = NULL;
	sim_cond_drop(g->conds, g->nconds);
}

bool sim_cond_unused(const struct CUgraph_st *g)
{
	for (size_t i = 0; i < g->nconds; i++)
		if (!g->conds[i]->used)
			return true;
	return false;
}

SIM_API(cuGraphConditionalHandleCreate, SIM_INIT,
	P(CUgraphConditionalHandle *ret, CUgraph g, CUcontext ctx, unsigned value, unsigned flags),
	P(ret, g, ctx, value, flags))
{
	struct sim_cond *c, **p;

	if (!ret || !sim_handle_is(g, SIM_H_GRAPH) || flags > CU_GRAPH_COND_ASSIGN_DEFAULT)
		return CUDA_ERROR_INVALID_VALUE;
	ctx = ctx ? ctx : call->ctx;
	if (!sim_handle_is(ctx, SIM_H_CTX))
		return CUDA_ERROR_INVALID_CONTEXT;
	p = realloc(g->conds, (g->nconds + 1) * sizeof(*p));
	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	g->conds = p;
	c = calloc(1, sizeof(*c));
	if (!c)
		return CUDA_ERROR_OUT_OF_MEMORY;
	c->refs = 1;
	c->id = next_handle++;
	c->graph = g;
	c->ctx = ctx;
	c->initial = value;
	c->assign = flags & CU_GRAPH_COND_ASSIGN_DEFAULT;
	c->next = all;
	if (all)
		all->prev = c;
	all = c;
	p[g->nconds++] = c;
	*ret = c->id;
	return CUDA_SUCCESS;
}

/* ---- nodes ---- */

static bool good_size(CUgraphConditionalNodeType type, unsigned n)
{
	switch (type) {
	case CU_GRAPH_COND_TYPE_IF:
		return n == 1 || n == 2;
	case CU_GRAPH_COND_TYPE_WHILE:
		return n == 1;
	case CU_GRAPH_COND_TYPE_SWITCH:
		return n && n <= MAX_BODIES;
	default:
		return false;
	}
}

/* Is the graph of the handle g or a graph that g is a part of? */
static bool reaches(CUgraph g, const struct sim_cond *c)
{
	for (; g; g = g->parent)
		if (g == c->graph)
			return true;
	return false;
}

static CUresult cond_work(CUgraph g, const CUDA_CONDITIONAL_NODE_PARAMS *p, struct sim_cond *c,
			  struct sim_work *w)
{
	*w = (struct sim_work){.kind = SIM_WORK_COND, .cond = {.cond = c, .type = p->type}};
	c->refs++;
	w->cond.bodies = calloc(p->size, sizeof(*w->cond.bodies));
	for (; w->cond.bodies && w->cond.n < p->size; w->cond.n++) {
		CUgraph body = sim_graph_new();

		if (!body)
			break;
		body->parent = g;
		body->is_child = body->is_body = true;
		w->cond.bodies[w->cond.n] = body;
	}
	if (w->cond.bodies && w->cond.n == p->size)
		return CUDA_SUCCESS;
	sim_work_clear(w);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_graphcond_add(struct sim_call *call, SIM_ADD_PARAMS, CUDA_CONDITIONAL_NODE_PARAMS *p)
{
	struct sim_cond *c = find(p->handle);
	CUcontext ctx = p->ctx ? p->ctx : call->ctx;
	struct sim_work w;
	CUresult r;

	if (!c || c->used || !reaches(g, c) || !good_size(p->type, p->size) || ctx != c->ctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (g->is_child && !g->is_body)
		return CUDA_ERROR_NOT_SUPPORTED; /* child graphs have none */
	r = cond_work(g, p, c, &w);
	if (r)
		return r;
	r = sim_graphnode_add(call, CU_GRAPH_NODE_TYPE_CONDITIONAL, r, &w, ctx, SIM_ADD_ARGS);
	if (r)
		return r;
	c->used = true;
	p->phGraph_out = (*ret)->work.cond.bodies;
	return CUDA_SUCCESS;
}

#define BODY_NODES                                                                                 \
	(1u << CU_GRAPH_NODE_TYPE_KERNEL | 1u << CU_GRAPH_NODE_TYPE_EMPTY |                        \
	 1u << CU_GRAPH_NODE_TYPE_GRAPH | 1u << CU_GRAPH_NODE_TYPE_MEMSET |                        \
	 1u << CU_GRAPH_NODE_TYPE_MEMCPY | 1u << CU_GRAPH_NODE_TYPE_CONDITIONAL)

CUresult sim_cond_check_body(CUgraph body, CUcontext ctx, CUgraphNode *ret_bad)
{
	CUresult r = CUDA_SUCCESS;

	for (CUgraphNode n = body->first; n && !r; n = n->next) {
		*ret_bad = n;
		if (!(BODY_NODES >> n->type & 1))
			return CUDA_ERROR_NOT_SUPPORTED;
		if (n->type == CU_GRAPH_NODE_TYPE_KERNEL && n->ctx != ctx)
			return CUDA_ERROR_INVALID_VALUE;
		if (n->type == CU_GRAPH_NODE_TYPE_GRAPH)
			r = sim_cond_check_body(n->work.graph, ctx, ret_bad);
		for (unsigned i = 0; n->work.kind == SIM_WORK_COND && i < n->work.cond.n && !r; i++)
			r = sim_cond_check_body(n->work.cond.bodies[i], ctx, ret_bad);
	}
	return r;
}

/* The node itself; bodies are instantiated by themselves, runs belong to one launch. */
void sim_cond_work_clone(struct sim_cond_work *dst, const struct sim_cond_work *src)
{
	*dst = *src;
	dst->bodies = NULL;
	dst->run = NULL;
	dst->cond->refs++;
}

static void run_free(struct sim_cond_run *run)
{
	for (unsigned i = 0; i < run->n; i++)
		if (run->bodies[i])
			sim_graphexec_free(run->bodies[i]);
	if (run->end)
		sim_op_unref(run->end);
	free(run->bodies);
	free(run);
}

void sim_cond_work_clear(struct sim_work *w)
{
	if (w->kind == SIM_WORK_CONDINIT) {
		for (size_t i = 0; i < w->condinit->n; i++)
			unref(w->condinit->item[i].cond);
		free(w->condinit);
		return;
	}
	if (w->cond.run)
		run_free(w->cond.run);
	for (unsigned i = 0; w->cond.bodies && i < w->cond.n; i++)
		if (w->cond.bodies[i])
			sim_graph_free(w->cond.bodies[i]);
	free(w->cond.bodies);
	unref(w->cond.cond);
}

/* ---- executable graphs ---- */

int sim_cond_copy(CUgraphExec e, const struct CUgraph_st *g)
{
	if (!g->nconds)
		return 0;
	e->conds = malloc(g->nconds * sizeof(*e->conds));
	if (!e->conds)
		return -1;
	memcpy(e->conds, g->conds, g->nconds * sizeof(*e->conds));
	e->nconds = g->nconds;
	for (size_t i = 0; i < e->nconds; i++)
		e->conds[i]->refs++;
	return 0;
}

/* The handles with a default in e and its parts; appended to `init` where there is one. */
static size_t gather(const struct CUgraphExec_st *e, struct sim_cond_init *init)
{
	size_t n = 0;

	for (size_t i = 0; i < e->nconds; i++) {
		if (!e->conds[i]->assign)
			continue;
		n++;
		if (!init)
			continue;
		e->conds[i]->refs++;
		init->item[init->n].cond = e->conds[i];
		init->item[init->n++].value = e->conds[i]->initial;
	}
	for (size_t i = 0; i < e->n; i++)
		for (unsigned p = 0; p < e->nodes[i].nparts; p++)
			n += gather(e->nodes[i].parts[p], init);
	return n;
}

int sim_cond_init_work(CUgraphExec e, struct sim_work *ret)
{
	size_t n = gather(e, NULL);
	struct sim_cond_init *init;

	*ret = (struct sim_work){.kind = SIM_WORK_NOP};
	if (!n)
		return 0;
	init = calloc(1, sizeof(*init) + n * sizeof(init->item[0]));
	if (!init)
		return -1;
	gather(e, init);
	*ret = (struct sim_work){.kind = SIM_WORK_CONDINIT, .condinit = init};
	return 0;
}

static struct sim_cond_run *run_new(const struct sim_exec_node *x, struct sim_op *end)
{
	struct sim_cond_run *run = calloc(1, sizeof(*run));
	bool bad = !run;

	if (run) {
		run->bodies = calloc(x->nparts + 1, sizeof(*run->bodies));
		bad = !run->bodies;
	}
	for (unsigned i = 0; !bad && i < x->nparts; i++) {
		run->bodies[i] = sim_graphexec_clone(x->parts[i]);
		run->n = i + 1;
		bad = !run->bodies[i];
	}
	if (bad) {
		if (run)
			run_free(run);
		return NULL;
	}
	sim_op_ref(end);
	run->end = end;
	return run;
}

struct sim_op *sim_cond_new_op(const struct sim_exec_node *x, uint64_t stream_id,
			       struct sim_op **ret_end)
{
	struct sim_work nop = {.kind = SIM_WORK_NOP}, w = {.kind = SIM_WORK_COND};
	struct sim_op *end = sim_op_new(x->ctx, stream_id, &nop), *op;

	if (!end)
		return NULL;
	sim_cond_work_clone(&w.cond, &x->work.cond);
	w.cond.run = run_new(x, end);
	if (!w.cond.run) {
		sim_work_clear(&w);
		sim_op_unref(end);
		return NULL;
	}
	op = sim_op_new(x->ctx, stream_id, &w);
	if (!op || sim_op_after(end, op)) {
		if (op)
			sim_op_unref(op);
		sim_op_unref(end);
		return NULL;
	}
	*ret_end = end;
	return op;
}

/* After the body of a WHILE: look again. */
static CUresult again(struct sim_op *op, struct sim_op *last)
{
	struct sim_op *end = op->work.cond.run->end, *next;
	struct sim_work w = op->work;

	op->work = (struct sim_work){.kind = SIM_WORK_NOP};
	next = sim_op_new(op->ctx, op->stream_id, &w);
	if (!next)
		return CUDA_ERROR_OUT_OF_MEMORY;
	next->mark = op->mark;
	if (sim_op_after(next, last) || sim_op_after(end, next)) {
		sim_op_unref(next);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	sim_sched_enqueue(next);
	return CUDA_SUCCESS;
}

static CUresult decide(struct sim_op *op)
{
	const struct sim_cond_work *c = &op->work.cond;
	unsigned value = c->cond->value, body = value;
	struct sim_op *last;
	CUresult r;

	if (c->type != CU_GRAPH_COND_TYPE_SWITCH)
		body = value ? 0 : 1;
	if (body >= c->run->n)
		return CUDA_SUCCESS;
	last = sim_graphlaunch_expand(c->run->bodies[body], op->stream_id, op, true, op->mark);
	if (!last)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (c->type == CU_GRAPH_COND_TYPE_WHILE)
		r = again(op, last);
	else
		r = sim_op_after(c->run->end, last) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
	sim_op_unref(last);
	return r;
}

CUresult sim_cond_run(struct sim_op *op)
{
	const struct sim_cond_init *init = op->work.condinit;

	if (op->work.kind == SIM_WORK_COND)
		return decide(op);
	for (size_t i = 0; i < init->n; i++)
		init->item[i].cond->value = init->item[i].value;
	return CUDA_SUCCESS;
}
