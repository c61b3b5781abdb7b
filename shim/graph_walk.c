/* SPDX-License-Identifier: MIT */
/*
 * From a CUgraph to the list of what it does: see graph.h. The driver is asked for nodes, edges and
 * parameters; everything is copied.
 *
 * Order is Kahn's, taking nodes that are free to go in the order of their creation, so that two graphs built
 * alike are described alike. A cycle, or an answer that cannot be had, leaves a node that may do anything.
 * Callers: graph.c, wrap_graph.c. One mutex, a leaf, for the conditional nodes; the rest has no state.
 */
#include "shim/devops.h"
#include "shim/graph.h"
#include "tracker/digest.h"

#include <stdlib.h>
#include <string.h>

/* Deeper than any program nests graphs. */
#define MAX_DEPTH 32

struct walk {
	struct rs_tls *t;
	uint32_t flags;
	unsigned depth;
	int maybe;
};

/* A graph as it is asked for. */
struct shape {
	CUgraphNode *node; /* in the order of creation */
	size_t n, nedges;
	CUgraphNode *from, *to;
	struct {
		CUgraphNode node;
		uint32_t index;
	} * sorted;
	uint32_t *waits;	/* of a node: predecessors that are not in `order` yet */
	uint32_t *first, *next; /* edges by their beginning, index + 1 */
	uint32_t *order;
};

/* --- shape -------------------------------------------------------------------------------------- */

static CUresult edges(CUgraph g, CUgraphNode *from, CUgraphNode *to, size_t *n)
{
	CUgraphEdgeData *data = NULL;
	CUresult r;

	/* Edges with data (programmatic launches) are edges, and only told with their data. */
	if (from && *n) {
		data = calloc(*n, sizeof(*data));
		if (!data)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = rs_real.cuGraphGetEdges_v2(g, from, to, data, n);
	free(data);
	return r == CUDA_ERROR_NOT_SUPPORTED ? rs_real.cuGraphGetEdges(g, from, to, n) : r;
}

static void shape_free(struct shape *s)
{
	free(s->node);
	free(s->from);
	free(s->to);
	free(s->sorted);
	free(s->waits);
	free(s->first);
	free(s->next);
	free(s->order);
}

static int by_handle(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)((const CUgraphNode *)a)[0],
		  y = (uintptr_t)((const CUgraphNode *)b)[0];

	return (x > y) - (x < y);
}

static uint32_t index_of(const struct shape *s, CUgraphNode node)
{
	const void *at = bsearch(&node, s->sorted, s->n, sizeof(s->sorted[0]), by_handle);

	return at ? ((const __typeof__(*s->sorted) *)at)->index : UINT32_MAX;
}

/* 0, or -ENOMEM, or -EIO: the driver does not say. */
static int shape_ask(CUgraph g, struct shape *s)
{
	if (rs_real.cuGraphGetNodes(g, NULL, &s->n) != CUDA_SUCCESS ||
	    edges(g, NULL, NULL, &s->nedges) != CUDA_SUCCESS || s->n >= UINT32_MAX ||
	    s->nedges >= UINT32_MAX)
		return -EIO;
	s->node = calloc(s->n + 1, sizeof(*s->node));
	s->from = calloc(s->nedges + 1, sizeof(*s->from));
	s->to = calloc(s->nedges + 1, sizeof(*s->to));
	s->sorted = calloc(s->n + 1, sizeof(*s->sorted));
	s->waits = calloc(s->n + 1, sizeof(*s->waits));
	s->first = calloc(s->n + 1, sizeof(*s->first));
	s->next = calloc(s->nedges + 1, sizeof(*s->next));
	s->order = calloc(s->n + 1, sizeof(*s->order));
	if (!s->node || !s->from || !s->to || !s->sorted || !s->waits || !s->first || !s->next ||
	    !s->order)
		return -ENOMEM;
	if ((s->n && rs_real.cuGraphGetNodes(g, s->node, &s->n) != CUDA_SUCCESS) ||
	    (s->nedges && edges(g, s->from, s->to, &s->nedges) != CUDA_SUCCESS))
		return -EIO;
	return 0;
}

/* Fills in `order`. 0, or -EIO: there is a cycle, or an edge from nowhere. */
static int shape_sort(struct shape *s)
{
	size_t done = 0, ready = 0;

	for (size_t i = 0; i < s->n; i++) {
		s->sorted[i].node = s->node[i];
		s->sorted[i].index = (uint32_t)i;
	}
	qsort(s->sorted, s->n, sizeof(s->sorted[0]), by_handle);
	for (size_t i = s->nedges; i > 0; i--) {
		uint32_t from = index_of(s, s->from[i - 1]), to = index_of(s, s->to[i - 1]);

		if (from == UINT32_MAX || to == UINT32_MAX)
			return -EIO;
		s->waits[to]++;
		s->next[i - 1] = s->first[from];
		s->first[from] = (uint32_t)i;
	}
	for (size_t i = 0; i < s->n; i++)
		if (!s->waits[i])
			s->order[ready++] = (uint32_t)i;
	for (; done < ready; done++)
		for (uint32_t e = s->first[s->order[done]]; e; e = s->next[e - 1]) {
			uint32_t to = index_of(s, s->to[e - 1]);

			if (!--s->waits[to])
				s->order[ready++] = to;
		}
	return done == s->n ? 0 : -EIO;
}

/* --- conditional nodes -------------------------------------------------------------------------- */

struct rs_conditional {
	CUgraphNode node;
	CUgraph owner;
	struct rs_conditional *next;
	unsigned n;
	CUgraph bodies[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rs_conditional *conditionals;

void rs_graph_conditional(CUgraphNode node, CUgraph owner, const CUgraph *bodies, unsigned n)
{
	struct rs_conditional *c = malloc(sizeof(*c) + n * sizeof(c->bodies[0]));

	if (!c)
		return;
	*c = (struct rs_conditional){.node = node, .owner = owner, .n = n};
	memcpy(c->bodies, bodies, n * sizeof(c->bodies[0]));
	pthread_mutex_lock(&lock);
	c->next = conditionals; /* in front of one whose handle is in use again */
	conditionals = c;
	pthread_mutex_unlock(&lock);
}

/* Under lock. Out of the list, with those in its bodies, onto *ret. */
static void take(CUgraph owner, struct rs_conditional **ret)
{
	struct rs_conditional **at = &conditionals, *c;

	while ((c = *at)) {
		if (c->owner != owner) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		c->next = *ret;
		*ret = c;
		for (unsigned i = 0; i < c->n; i++)
			take(c->bodies[i], ret);
		at = &conditionals;
	}
}

struct rs_conditional *rs_graph_goes(CUgraph graph)
{
	struct rs_conditional *list = NULL;

	pthread_mutex_lock(&lock);
	take(graph, &list);
	pthread_mutex_unlock(&lock);
	return list;
}

void rs_graph_gone(struct rs_conditional *list, CUresult r)
{
	struct rs_conditional *c;

	while ((c = list)) {
		list = c->next;
		if (r == CUDA_SUCCESS) {
			free(c);
			continue;
		}
		pthread_mutex_lock(&lock);
		c->next = conditionals;
		conditionals = c;
		pthread_mutex_unlock(&lock);
	}
}

int rs_graph_is_body(CUgraph graph)
{
	const struct rs_conditional *c;
	int found = 0;

	pthread_mutex_lock(&lock);
	for (c = conditionals; c && !found; c = c->next)
		for (unsigned i = 0; i < c->n; i++)
			found |= c->bodies[i] == graph;
	pthread_mutex_unlock(&lock);
	return found;
}

/* The n-th body, or NULL. */
static CUgraph body_of(CUgraphNode node, unsigned n)
{
	const struct rs_conditional *c;
	CUgraph body = NULL;

	pthread_mutex_lock(&lock);
	for (c = conditionals; c && c->node != node; c = c->next)
		;
	if (c && n < c->n)
		body = c->bodies[n];
	pthread_mutex_unlock(&lock);
	return body;
}

/* --- nodes -------------------------------------------------------------------------------------- */

void rs_graph_nodes_free(struct rs_nodes *l)
{
	for (size_t i = 0; i < l->n; i++)
		rs_node_clear(&l->v[i], RS_NODE_NOTHING);
	free(l->v);
	*l = (struct rs_nodes){NULL, 0, 0};
}

void rs_node_clear(struct rs_node *n, enum rs_node_kind kind)
{
	switch ((enum rs_node_kind)n->kind) {
	case RS_NODE_KERNEL:
		free(n->kernel.data);
		break;
	case RS_NODE_MEMOPS:
		free(n->memops.op);
		break;
	case RS_NODE_GRAPHS:
		rs_graph_nodes_free(&n->graphs);
		break;
	default:
		break;
	}
	n->kind = (uint8_t)kind;
}

/* A handle that went unseen, such as a function that the driver made of a captured CUkernel. */
static const struct rs_kernel *kernel_of(CUfunction f)
{
	const struct rs_kernel *k = rs_kernels_find(f);
	const char *name = NULL;
	CUmodule module = NULL;

	if (k || !f || rs_real.cuFuncGetModule(&module, f) != CUDA_SUCCESS ||
	    rs_real.cuFuncGetName(&name, f) != CUDA_SUCCESS)
		return k;
	rs_kernels_function(module, f, name, 0);
	return rs_kernels_find(f);
}

void rs_node_set_kernel(struct rs_tls *t, struct rs_node *n, const CUDA_KERNEL_NODE_PARAMS *p)
{
	struct rs_launch l = {p->func ? p->func : (CUfunction)p->kern,
			      {p->gridDimX, p->gridDimY, p->gridDimZ},
			      {p->blockDimX, p->blockDimY, p->blockDimZ},
			      p->sharedMemBytes,
			      p->kernelParams,
			      p->extra};
	struct rs_params b = {NULL, 0};
	const struct rs_kernel *k = kernel_of(l.f);
	int known = k && !rs_launch_params(t, k, &l, &b);
	uint8_t *data = NULL;

	if (known && b.n) {
		data = malloc(b.n);
		if (data)
			memcpy(data, b.data, b.n);
		else
			known = 0;
	}
	l.params = l.extra = NULL;
	rs_node_clear(n, known ? RS_NODE_KERNEL : RS_NODE_OPAQUE);
	n->kernel.launch = l;
	n->kernel.data = data;
	n->kernel.bytes = data ? b.n : 0;
}

void rs_node_set_memops(struct rs_node *n, const CUstreamBatchMemOpParams *op, unsigned count)
{
	CUstreamBatchMemOpParams *copy = op ? malloc((count + 1) * sizeof(*copy)) : NULL;

	if (copy)
		memcpy(copy, op, count * sizeof(*copy));
	rs_node_clear(n, copy ? RS_NODE_MEMOPS : RS_NODE_OPAQUE);
	n->memops.op = copy;
	n->memops.n = count;
}

/* Between memory of the program's and what a capture has preserved: it is not the program's business. */
static int is_own_copy(const CUDA_MEMCPY3D *c)
{
	return (c->srcMemoryType == CU_MEMORYTYPE_DEVICE &&
		rs_engine_capture_owns(rs_state.engine, c->srcDevice)) ||
	       (c->dstMemoryType == CU_MEMORYTYPE_DEVICE &&
		rs_engine_capture_owns(rs_state.engine, c->dstDevice));
}

static void kernel(struct walk *w, struct rs_node *n)
{
	CUlaunchAttributeValue v = {{0}};
	CUDA_KERNEL_NODE_PARAMS p = {0};
	CUresult r;

	/* A kernel of any graph may give it other arguments. */
	if (rs_real.cuGraphKernelNodeGetAttribute(n->origin,
						  CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
						  &v) == CUDA_SUCCESS &&
	    v.deviceUpdatableKernelNode.deviceUpdatable) {
		n->kind = RS_NODE_OPAQUE;
		return;
	}
	r = rs_real.cuGraphKernelNodeGetParams_v2(n->origin, &p);
	if (r == CUDA_ERROR_NOT_SUPPORTED)
		r = rs_real.cuGraphKernelNodeGetParams(n->origin, (CUDA_KERNEL_NODE_PARAMS_v1 *)&p);
	if (r == CUDA_SUCCESS && rs_dev_is_own(p.func))
		n->kind = RS_NODE_NOTHING;
	else if (r == CUDA_SUCCESS)
		rs_node_set_kernel(w->t, n, &p);
	else
		n->kind = RS_NODE_OPAQUE;
}

static struct rs_nodes walk(struct walk *w, CUgraph g);

/* All bodies in turn, each of which may run, many times, or not. */
static void conditional(struct walk *w, struct rs_node *n)
{
	int maybe = w->maybe;
	CUgraph body = body_of(n->origin, 0);

	n->kind = body ? RS_NODE_GRAPHS : RS_NODE_OPAQUE;
	w->maybe = 1;
	for (unsigned i = 0; body; body = body_of(n->origin, ++i)) {
		struct rs_nodes l = walk(w, body), *all = &n->graphs;
		struct rs_node *more = realloc(all->v, (all->n + l.n + 1) * sizeof(*more));

		if (!more) {
			w->flags |= RS_GRAPH_OPAQUE;
			rs_graph_nodes_free(&l);
			break;
		}
		all->v = more;
		memcpy(more + all->n, l.v, l.n * sizeof(*more));
		all->n += l.n;
		free(l.v);
	}
	w->maybe = maybe;
}

static void memory(struct walk *w, struct rs_node *n, CUgraphNodeType type)
{
	CUDA_MEM_ALLOC_NODE_PARAMS p;
	CUdeviceptr addr = 0;

	w->flags |= RS_GRAPH_MEMORY;
	n->kind = RS_NODE_OPAQUE;
	if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
		if (rs_real.cuGraphMemAllocNodeGetParams(n->origin, &p) != CUDA_SUCCESS)
			return;
		n->kind = RS_NODE_ALLOC;
		n->memory.addr = p.dptr;
		n->memory.bytes = p.bytesize;
	} else if (rs_real.cuGraphMemFreeNodeGetParams(n->origin, &addr) == CUDA_SUCCESS) {
		n->kind = RS_NODE_FREE;
		n->memory.addr = addr;
	}
}

static void memops(struct rs_node *n)
{
	CUDA_BATCH_MEM_OP_NODE_PARAMS p;

	if (rs_real.cuGraphBatchMemOpNodeGetParams(n->origin, &p) == CUDA_SUCCESS)
		rs_node_set_memops(n, p.paramArray, p.count);
	else
		n->kind = RS_NODE_OPAQUE;
}

/* A description by one getter; else the node may do anything. */
static enum rs_node_kind got(CUresult r, enum rs_node_kind kind)
{
	return r == CUDA_SUCCESS ? kind : RS_NODE_OPAQUE;
}

static void describe(struct walk *w, struct rs_node *n, CUgraphNode origin)
{
	CUgraphNodeType type;
	CUgraph child;

	n->origin = origin;
	n->maybe = (uint8_t)w->maybe;
	n->kind = RS_NODE_OPAQUE;
	if (rs_real.cuGraphNodeGetType(origin, &type) != CUDA_SUCCESS)
		return;
	switch (type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		kernel(w, n);
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		n->kind = got(rs_real.cuGraphMemcpyNodeGetParams(origin, &n->copy), RS_NODE_COPY);
		if (n->kind == RS_NODE_COPY && is_own_copy(&n->copy))
			n->kind = RS_NODE_NOTHING;
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		n->kind = got(rs_real.cuGraphMemsetNodeGetParams(origin, &n->fill), RS_NODE_FILL);
		break;
	case CU_GRAPH_NODE_TYPE_HOST:
		n->kind = RS_NODE_HOST;
		break;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		if (rs_real.cuGraphChildGraphNodeGetGraph(origin, &child) == CUDA_SUCCESS) {
			n->graphs = walk(w, child);
			n->kind = RS_NODE_GRAPHS;
		}
		break;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		memory(w, n, type);
		break;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		memops(n);
		break;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		conditional(w, n);
		break;
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		n->kind = got(rs_real.cuGraphEventRecordNodeGetEvent(origin, &n->event),
			      RS_NODE_RECORD);
		break;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		n->kind =
			got(rs_real.cuGraphEventWaitNodeGetEvent(origin, &n->event), RS_NODE_WAIT);
		break;
	case CU_GRAPH_NODE_TYPE_EMPTY:
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
		n->kind = RS_NODE_NOTHING;
		break;
	}
}

static uint64_t print_of(const struct rs_node *n);

/* Which node waits for which, as a number, whatever their order. */
static uint64_t shape_print(const struct shape *s, const struct rs_nodes *l)
{
	uint32_t *at = calloc(s->n + 1, sizeof(*at)); /* of a node in the list */
	uint64_t h = s->nedges;

	for (size_t i = 0; at && i < l->n; i++)
		at[s->order[i]] = (uint32_t)i;
	for (size_t i = 0; at && l->n == s->n && i < s->nedges; i++)
		h += rs_digest_mix(print_of(&l->v[at[index_of(s, s->from[i])]]) * RS_DIGEST_K +
				   print_of(&l->v[at[index_of(s, s->to[i])]]));
	free(at);
	return h;
}

static struct rs_nodes walk(struct walk *w, CUgraph g)
{
	struct rs_nodes l = {NULL, 0, 0};
	struct shape s = {NULL};

	if (w->depth == MAX_DEPTH || shape_ask(g, &s) || shape_sort(&s)) {
		w->flags |= RS_GRAPH_OPAQUE;
		shape_free(&s);
		return l;
	}
	l.v = calloc(s.n + 1, sizeof(*l.v));
	if (!l.v)
		w->flags |= RS_GRAPH_OPAQUE;
	w->depth++;
	for (; l.v && l.n < s.n; l.n++)
		describe(w, &l.v[l.n], s.node[s.order[l.n]]);
	w->depth--;
	l.edges = shape_print(&s, &l);
	shape_free(&s);
	return l;
}

struct rs_nodes rs_graph_walk(struct rs_tls *t, CUgraph graph, uint32_t *flags)
{
	struct walk w = {.t = t};
	struct rs_nodes l;

	RS_ENGINE(l = walk(&w, graph));
	*flags |= w.flags;
	return l;
}

/* --- prints -------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, const void *data, size_t n)
{
	const uint8_t *p = data;
	uint64_t word;

	for (size_t i = 0; i < n; i += 8) {
		word = 0;
		memcpy(&word, p + i, n - i < 8 ? n - i : 8);
		h = rs_digest_mix(h * RS_DIGEST_K + word);
	}
	return h;
}

static uint64_t print_of(const struct rs_node *n)
{
	uint64_t h = rs_digest_mix(n->kind + 1);

	switch ((enum rs_node_kind)n->kind) {
	case RS_NODE_KERNEL:
		h = mix(h, &n->kernel.launch.f, sizeof(n->kernel.launch.f));
		h = mix(h, n->kernel.launch.grid, sizeof(n->kernel.launch.grid));
		h = mix(h, n->kernel.launch.block, sizeof(n->kernel.launch.block));
		return n->kernel.data ? mix(h, n->kernel.data, n->kernel.bytes) : h;
	case RS_NODE_COPY:
		return mix(h, &n->copy, sizeof(n->copy));
	case RS_NODE_FILL:
		return mix(h, &n->fill, sizeof(n->fill));
	case RS_NODE_MEMOPS:
		return mix(h, n->memops.op, n->memops.n * sizeof(n->memops.op[0]));
	case RS_NODE_ALLOC:
	case RS_NODE_FREE:
		return mix(h, &n->memory, sizeof(n->memory));
	case RS_NODE_RECORD:
	case RS_NODE_WAIT:
		return mix(h, &n->event, sizeof(n->event));
	case RS_NODE_GRAPHS:
		return h + rs_graph_print(&n->graphs);
	default:
		return h;
	}
}

/* A clone may list its nodes in another order. */
uint64_t rs_graph_print(const struct rs_nodes *l)
{
	uint64_t h = l->n + l->edges;

	for (size_t i = 0; i < l->n; i++)
		h += print_of(&l->v[i]);
	return h;
}

int rs_graph_any_opaque(const struct rs_nodes *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].kind == RS_NODE_OPAQUE ||
		    (l->v[i].kind == RS_NODE_GRAPHS && rs_graph_any_opaque(&l->v[i].graphs)))
			return 1;
	return 0;
}
