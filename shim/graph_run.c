/* SPDX-License-Identifier: MIT */
/*
 * One launch of a graph, told to the engine call by call: before for all nodes in their order, the driver's
 * launch, after for all.
 *
 * Between a node's end and the launch's end nothing can be enqueued, so what a node wrote is seen as later
 * nodes leave it. Writes that a later node repeats are therefore not looked at (the later one's are), and
 * those that are overwritten in part say by which (rs_access.late): such bytes are only compared with those
 * of a launch that went on alike.
 * Ranges are looked up at every launch, for memory comes and goes. Allocations enter before the nodes behind
 * them, and what is freed leaves: the driver reuses its address within the graph.
 * Callers: wrap_graph.c, with the description's lock held.
 */
#include "shim/graph.h"

#include <stdlib.h>
#include <string.h>

/* A node that takes part in this launch. */
struct rs_graph_step {
	uint8_t kind; /* enum rs_node_kind: ALLOC, FREE, or any other for a call */
	struct rs_call call;
	uint32_t first;	    /* of its ranges in work.access */
	uint64_t addr, end; /* ALLOC, FREE */
};

/* Bytes that later steps write; `tag` names these steps. */
struct rs_later {
	uint64_t lo, hi;
	uint64_t tag;
};

struct run {
	struct rs_tls *t;
	struct rs_graph_work *w;
	struct rs_queue q;
};

void rs_graph_work_free(struct rs_graph_work *w)
{
	free(w->steps);
	free(w->access);
	free(w->later);
}

/* Room for one more element (n more). 0 or -ENOMEM. */
static int room(void **v, uint32_t used, uint32_t n, uint32_t *cap, size_t size)
{
	uint32_t want = *cap ? *cap : 16;
	void *more;

	if (n > UINT32_MAX / 4 || used > UINT32_MAX / 4)
		return -ENOMEM;
	if (used + n <= *cap)
		return 0;
	while (want < used + n)
		want *= 2;
	more = realloc(*v, want * size);
	if (!more)
		return -ENOMEM;
	*v = more;
	*cap = want;
	return 0;
}

static struct rs_graph_step *new_step(struct rs_graph_work *w, enum rs_node_kind kind)
{
	struct rs_graph_step *s;

	if (room((void **)&w->steps, w->nsteps, 1, &w->steps_cap, sizeof(*s)))
		return NULL;
	s = &w->steps[w->nsteps++];
	memset(s, 0, sizeof(*s));
	s->kind = (uint8_t)kind;
	s->first = w->naccess;
	return s;
}

/* --- what a node does ----------------------------------------------------------------------------- */

static const struct {
	const char *name;
	enum rs_call_kind kind;
} call_of[] = {
	[RS_NODE_OPAQUE] = {"cuGraphLaunch (unknown node)", RS_CALL_OTHER},
	[RS_NODE_KERNEL] = {"cuGraphLaunch (kernel node)", RS_CALL_KERNEL},
	[RS_NODE_COPY] = {"cuGraphLaunch (memcpy node)", RS_CALL_COPY},
	[RS_NODE_FILL] = {"cuGraphLaunch (memset node)", RS_CALL_FILL},
	[RS_NODE_HOST] = {"cuGraphLaunch (host node)", RS_CALL_HOST},
	[RS_NODE_MEMOPS] = {"cuGraphLaunch (memory operations node)", RS_CALL_FILL},
};

static void describe_kernel(struct run *r, struct rs_call *c, const struct rs_node *n)
{
	struct rs_launch l = n->kernel.launch;
	size_t bytes = n->kernel.bytes;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, n->kernel.data,
			 CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};

	if (n->kernel.data)
		l.extra = extra;
	rs_launch_describe(c, r->t, &l);
	/* the description is locked until the launch is over */
	c->args = n->kernel.data;
	c->arg_bytes = (uint32_t)n->kernel.bytes;
}

/* The ranges lie in `two`, or in the thread's scratch. */
static void describe(struct run *r, struct rs_call *c, const struct rs_node *n,
		     struct rs_access two[2])
{
	const CUDA_MEMSET_NODE_PARAMS *f = &n->fill;

	*c = (struct rs_call){.name = call_of[n->kind].name,
			      .kind = call_of[n->kind].kind,
			      .ident = rs_digest_mix(call_of[n->kind].kind + 1),
			      .q = r->q,
			      .access = two,
			      .deferred = 1,
			      .generation = rs_engine_generation(rs_state.engine)};
	switch ((enum rs_node_kind)n->kind) {
	case RS_NODE_KERNEL:
		describe_kernel(r, c, n);
		break;
	case RS_NODE_COPY:
		rs_copy_describe(c, two, &n->copy);
		break;
	case RS_NODE_FILL:
		rs_fill_describe(c, two, f->value, f->dst, f->pitch,
				 (uint64_t)f->width * f->elementSize, f->height);
		break;
	case RS_NODE_HOST:
		c->host_effect = 1;
		break;
	case RS_NODE_MEMOPS:
		rs_memops_describe(c, r->t, n->memops.n, n->memops.op);
		break;
	default:
		c->everything = 1;
		break;
	}
}

static void call(struct run *r, const struct rs_node *n)
{
	struct rs_graph_step *s = new_step(r->w, n->kind);
	struct rs_graph_work *w = r->w;
	struct rs_call c;
	struct rs_access two[2];

	describe(r, &c, n, two);
	if (!s || room((void **)&w->access, w->naccess, c.naccess, &w->access_cap,
		       sizeof(w->access[0]))) {
		/* Without memory it may do anything, and is not followed further. */
		w->nsteps -= s != NULL;
		c.everything = 1;
		c.naccess = 0;
		rs_guard_before(r->t, &c);
		return;
	}
	for (unsigned i = 0; i < c.naccess; i++) {
		struct rs_access *a = &w->access[w->naccess + i];

		*a = c.access[i];
		if (n->maybe)
			a->dense = 0;
	}
	w->naccess += c.naccess;
	s->call = c;
	s->call.access = &w->access[s->first];
	rs_guard_before(r->t, &s->call);
}

/* --- order -------------------------------------------------------------------------------------- */

static void wait_for(struct run *r, uint64_t event)
{
	RS_ENGINE(rs_engine_event_wait(rs_state.engine, r->t->thread, r->q, event));
}

static void record(struct run *r, uint64_t event)
{
	RS_ENGINE(rs_engine_event_record(rs_state.engine, r->t->thread, r->q, event));
}

/* Memory operations as events: a wait comes before what follows it in the graph. */
static void memops_wait(struct run *r, const struct rs_node *n)
{
	for (unsigned i = 0; i < n->memops.n; i++)
		if (n->memops.op[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
		    n->memops.op[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_64)
			wait_for(r, n->memops.op[i].waitValue.address);
}

static void memops_record(struct run *r, const struct rs_node *n)
{
	for (unsigned i = 0; i < n->memops.n; i++)
		if (n->memops.op[i].operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 ||
		    n->memops.op[i].operation == CU_STREAM_MEM_OP_WRITE_VALUE_64)
			record(r, n->memops.op[i].writeValue.address);
}

/* What others may wait for, told when it is certain to come. */
static void records(struct run *r, const struct rs_nodes *l)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct rs_node *n = &l->v[i];

		if (n->disabled || n->maybe)
			continue;
		if (n->kind == RS_NODE_RECORD)
			record(r, (uintptr_t)n->event);
		else if (n->kind == RS_NODE_MEMOPS)
			memops_record(r, n);
		else if (n->kind == RS_NODE_GRAPHS)
			records(r, &n->graphs);
	}
}

/* --- memory nodes --------------------------------------------------------------------------------- */

/* What the launch before has left allocated is freed by this one (CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH). */
static void allocate(struct run *r, const struct rs_node *n)
{
	struct rs_graph_step *s = new_step(r->w, RS_NODE_ALLOC);
	uint64_t base, bytes;

	if (rs_engine_lookup(rs_state.engine, n->memory.addr, &base, &bytes))
		RS_ENGINE(rs_engine_free(rs_state.engine, r->t->thread, r->q, n->memory.addr));
	RS_ENGINE(rs_engine_alloc(rs_state.engine, r->t->thread, r->q, n->memory.addr,
				  n->memory.bytes, RS_ALLOC_DEVICE));
	if (s) {
		s->addr = n->memory.addr;
		s->end = n->memory.addr + n->memory.bytes;
	}
}

static void release(struct run *r, const struct rs_node *n)
{
	struct rs_graph_step *s = new_step(r->w, RS_NODE_FREE);
	uint64_t base = 0, bytes = 0;

	if (s && rs_engine_lookup(rs_state.engine, n->memory.addr, &base, &bytes)) {
		s->addr = base;
		s->end = base + bytes;
	}
	RS_ENGINE(rs_engine_free(rs_state.engine, r->t->thread, r->q, n->memory.addr));
}

/* The launch has failed: what it was to allocate does not exist. */
static void unallocate(struct run *r)
{
	for (uint32_t i = 0; i < r->w->nsteps; i++)
		if (r->w->steps[i].kind == RS_NODE_ALLOC)
			RS_ENGINE(rs_engine_free(rs_state.engine, r->t->thread, r->q,
						 r->w->steps[i].addr));
}

static void each(struct run *r, const struct rs_nodes *l, int idle)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct rs_node *n = &l->v[i];

		if (n->disabled)
			continue;
		switch ((enum rs_node_kind)n->kind) {
		case RS_NODE_NOTHING:
		case RS_NODE_RECORD:
			break;
		case RS_NODE_WAIT:
			if (!idle)
				wait_for(r, (uintptr_t)n->event);
			break;
		case RS_NODE_ALLOC:
			allocate(r, n);
			break;
		case RS_NODE_FREE:
			release(r, n);
			break;
		case RS_NODE_GRAPHS:
			each(r, &n->graphs, idle);
			break;
		default:
			if (idle)
				break;
			if (n->kind == RS_NODE_MEMOPS)
				memops_wait(r, n);
			call(r, n);
			break;
		}
	}
}

void rs_graph_before(struct rs_tls *t, struct rs_graph *g, struct rs_queue q, int idle)
{
	struct run r = {t, &g->work, q};

	if (!idle && g->launched && (g->last.ctx != q.ctx || g->last.stream != q.stream))
		wait_for(&r, (uintptr_t)g->exec);
	g->work.nsteps = g->work.naccess = 0;
	each(&r, &g->nodes, idle);
}

/* --- what later nodes overwrite ------------------------------------------------------------------- */

/* The first piece that ends behind lo. */
static uint32_t later_at(const struct rs_graph_work *w, uint64_t lo)
{
	uint32_t from = 0, to = w->nlater;

	while (from < to) {
		uint32_t mid = (from + to) / 2;

		if (w->later[mid].hi > lo)
			to = mid;
		else
			from = mid + 1;
	}
	return from;
}

/* Pieces that touch become one. Without memory the piece is left out, and its step's bytes are compared in vain. */
static void later_add(struct rs_graph_work *w, uint64_t lo, uint64_t hi, uint64_t tag)
{
	uint32_t at = later_at(w, lo ? lo - 1 : 0), end = at;

	for (; end < w->nlater && w->later[end].lo <= hi; end++) {
		if (w->later[end].lo < lo)
			lo = w->later[end].lo;
		if (w->later[end].hi > hi)
			hi = w->later[end].hi;
		tag = rs_digest_mix(tag + w->later[end].tag * RS_DIGEST_K);
	}
	if (at == end && room((void **)&w->later, w->nlater, 1, &w->later_cap, sizeof(w->later[0])))
		return;
	memmove(&w->later[at + 1], &w->later[end], (w->nlater - end) * sizeof(w->later[0]));
	w->nlater = w->nlater - (end - at) + 1;
	w->later[at] = (struct rs_later){lo, hi, tag};
}

/* 0 when the range is not known. */
static int bounds(const struct rs_access *a, uint64_t *lo, uint64_t *hi)
{
	uint64_t bytes;

	if (a->whole) {
		if (!rs_engine_lookup(rs_state.engine, a->addr, lo, &bytes))
			return 0;
		*hi = *lo + bytes;
		return 1;
	}
	*lo = a->addr;
	*hi = a->addr + a->bytes;
	return a->bytes != 0;
}

/* What the access wrote is seen as the launch leaves it. */
static void overwritten(const struct rs_graph_work *w, struct rs_access *a, uint64_t unknown)
{
	uint64_t lo, hi, tag = unknown;
	uint32_t at;

	if (!(a->dir & RS_WRITE) || !bounds(a, &lo, &hi))
		return;
	at = later_at(w, lo);
	if (at < w->nlater && w->later[at].lo <= lo && hi <= w->later[at].hi) {
		a->dir &= (uint8_t)~RS_WRITE;
		return;
	}
	for (; at < w->nlater && w->later[at].lo < hi; at++)
		tag = rs_digest_mix(tag + w->later[at].tag * RS_DIGEST_K);
	if (tag)
		a->late = (uint16_t)(tag | 1);
}

/* From the last step to the first. */
static void look_back(struct rs_graph_work *w)
{
	uint64_t unknown = 0;

	w->nlater = 0;
	for (uint32_t i = w->nsteps; i > 0; i--) {
		struct rs_graph_step *s = &w->steps[i - 1];
		struct rs_access *a = &w->access[s->first];
		uint64_t lo, hi;

		if (s->kind == RS_NODE_ALLOC || s->kind == RS_NODE_FREE) {
			if (s->addr < s->end)
				later_add(w, s->addr, s->end, 0);
			continue;
		}
		for (unsigned k = 0; k < s->call.naccess; k++)
			overwritten(w, &a[k], unknown);
		for (unsigned k = 0; k < s->call.naccess; k++)
			if (a[k].dir & RS_WRITE && bounds(&a[k], &lo, &hi))
				later_add(w, lo, hi, s->call.ident);
		if (s->call.everything)
			unknown = rs_digest_mix(unknown + s->call.ident * RS_DIGEST_K);
	}
}

void rs_graph_after(struct rs_tls *t, struct rs_graph *g, struct rs_queue q, CUresult result,
		    int idle)
{
	struct rs_graph_work *w = &g->work;
	struct run r = {t, w, q};

	g->last = q;
	g->launched = 1;
	if (result != CUDA_SUCCESS)
		unallocate(&r);
	if (idle)
		return;
	look_back(w);
	for (uint32_t i = 0; i < w->nsteps; i++) {
		struct rs_graph_step *s = &w->steps[i];

		if (s->kind == RS_NODE_ALLOC || s->kind == RS_NODE_FREE)
			continue;
		s->call.access = &w->access[s->first];
		rs_guard_after(t, &s->call, result);
	}
	if (result == CUDA_SUCCESS) {
		record(&r, (uintptr_t)g->exec);
		records(&r, &g->nodes);
	}
}
