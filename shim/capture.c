/* SPDX-License-Identifier: MIT */
/*
 * Captured graphs with preserved replays, by handle. See capture.h.
 *
 * Callers: wrap_stream.c, wrap_graph.c, graph.c, any thread.
 */
#include "shim/capture.h"
#include "shim/graph.h"
#include "shim/guard.h"

#include <pthread.h>
#include <stdlib.h>

/* A graph may have several captures: a stream can be captured into a graph that is there already. */
struct entry {
	CUgraph graph;
	struct rs_captured captured;
	struct entry *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *entries;
static uint32_t lists; /* atomic: lists with something in them */

void rs_capture_began(struct rs_queue q)
{
	RS_ENGINE(rs_engine_capture_begin(rs_state.engine, q));
}

void rs_capture_unseen(struct rs_tls *t, CUstream stream, enum rs_flavour flavour, int begins)
{
	RS_ENGINE(
		rs_engine_capture_unseen(rs_state.engine, rs_queue_of(t, stream, flavour), begins));
}

void rs_capture_allocated(struct rs_tls *t, CUstream stream, enum rs_flavour flavour, uint64_t addr,
			  uint64_t bytes)
{
	RS_ENGINE(rs_engine_capture_allocated(rs_state.engine, t->thread,
					      rs_queue_of(t, stream, flavour), addr, bytes));
}

void rs_capture_frees(struct rs_tls *t, CUstream stream, enum rs_flavour flavour, uint64_t addr)
{
	RS_ENGINE(rs_engine_capture_frees(rs_state.engine, t->thread,
					  rs_queue_of(t, stream, flavour), addr));
}

void rs_capture_freed(struct rs_tls *t, CUstream stream, enum rs_flavour flavour, uint64_t addr,
		      CUresult r)
{
	RS_ENGINE(rs_engine_capture_freed(rs_state.engine, t->thread,
					  rs_queue_of(t, stream, flavour), addr,
					  r == CUDA_SUCCESS));
}

void rs_capture_recorded(struct rs_tls *t, CUstream stream, enum rs_flavour flavour, uint64_t event)
{
	RS_ENGINE(rs_engine_capture_recorded(rs_state.engine, t->thread,
					     rs_queue_of(t, stream, flavour), event));
}

void rs_capture_waited(struct rs_tls *t, CUstream stream, enum rs_flavour flavour, uint64_t event)
{
	RS_ENGINE(rs_engine_capture_waited(rs_state.engine, t->thread,
					   rs_queue_of(t, stream, flavour), event));
}

uint64_t rs_capture_resets(struct rs_tls *t, CUstream stream, enum rs_flavour flavour, int set)
{
	uint64_t event = 0;

	if (set)
		RS_ENGINE(event = rs_engine_capture_resets(rs_state.engine,
							   rs_queue_of(t, stream, flavour)));
	return event;
}

void rs_capture_reset(struct rs_tls *t, CUstream stream, enum rs_flavour flavour, uint64_t event,
		      int set, CUresult r)
{
	RS_ENGINE(rs_engine_capture_reset(rs_state.engine, t->thread,
					  rs_queue_of(t, stream, flavour), event, set,
					  r == CUDA_SUCCESS));
}

void rs_capture_ends(struct rs_queue q)
{
	RS_ENGINE(rs_engine_capture_ends(rs_state.engine, q));
}

/* Takes over the reference. Without memory the capture stays for ever, and nobody vouches for its launches. */
static void enter(CUgraph graph, struct rs_capture *c, uint64_t print)
{
	struct entry *e = calloc(1, sizeof(*e));

	if (!e) {
		rs_capture_embedded(c);
		return;
	}
	*e = (struct entry){.graph = graph, .captured = {c, print}};
	pthread_mutex_lock(&lock);
	e->next = entries;
	entries = e;
	pthread_mutex_unlock(&lock);
}

static void over(struct rs_tls *t, struct rs_queue q, CUgraph graph)
{
	struct rs_capture *c = rs_engine_capture_end(rs_state.engine, q, graph != NULL);
	struct rs_nodes nodes;
	uint32_t flags = 0;

	if (!c)
		return;
	nodes = rs_graph_walk(t, graph, &flags);
	enter(graph, c, rs_graph_print(&nodes));
	rs_graph_nodes_free(&nodes);
	/* the body of a conditional node, or a child */
	if (rs_graph_is_body(graph))
		rs_captured_embedded(graph);
}

void rs_capture_over(struct rs_tls *t, struct rs_queue q, CUgraph graph)
{
	RS_ENGINE(over(t, q, graph));
}

/* The i-th entry of the graph, its capture with a reference; NULL: there are no more. */
static struct rs_captured find(CUgraph graph, size_t i)
{
	struct rs_captured found = {NULL, 0};
	struct entry *e;

	pthread_mutex_lock(&lock);
	for (e = entries; e && (e->graph != graph || i--); e = e->next)
		;
	if (e) {
		found = e->captured;
		rs_capture_ref(found.capture);
	}
	pthread_mutex_unlock(&lock);
	return found;
}

static void cloned(CUgraph clone, CUgraph of)
{
	struct rs_captured c;

	for (size_t i = 0; (c = find(of, i)).capture; i++)
		enter(clone, c.capture, c.print);
}

void rs_captured_cloned(CUgraph clone, CUgraph of)
{
	RS_ENGINE(cloned(clone, of));
}

/* find's reference is never given back. */
static void embedded(CUgraph graph)
{
	struct rs_captured c;

	for (size_t i = 0; (c = find(graph, i)).capture; i++)
		rs_capture_embedded(c.capture);
}

void rs_captured_embedded(CUgraph graph)
{
	RS_ENGINE(embedded(graph));
}

void rs_captured_list_embedded(const struct rs_captured_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		RS_ENGINE(rs_capture_embedded(rs_capture_ref(l->v[i].capture)));
}

static void gone(CUgraph graph)
{
	struct entry **at, *e, *dropped = NULL;

	pthread_mutex_lock(&lock);
	for (at = &entries; (e = *at);) {
		if (e->graph != graph) {
			at = &e->next;
			continue;
		}
		*at = e->next;
		e->next = dropped;
		dropped = e;
	}
	pthread_mutex_unlock(&lock);
	while ((e = dropped)) {
		dropped = e->next;
		rs_capture_unref(e->captured.capture);
		free(e);
	}
}

void rs_captured_gone(CUgraph graph)
{
	RS_ENGINE(gone(graph));
}

int rs_captured_any(void)
{
	return rs_unlikely(__atomic_load_n(&lists, __ATOMIC_RELAXED));
}

struct rs_captured_list rs_captured_of(CUgraph graph, uint64_t print, int *ret_altered)
{
	struct rs_captured_list l = {NULL, 0};
	struct rs_captured c, *more;

	*ret_altered = 0;
	for (size_t i = 0; (c = find(graph, i)).capture; i++) {
		more = realloc(l.v, (l.n + 1) * sizeof(*more));
		if (!more) {
			rs_capture_embedded(c.capture);
			continue;
		}
		l.v = more;
		l.v[l.n++] = c;
		*ret_altered |= c.print != print;
	}
	if (l.n)
		__atomic_fetch_add(&lists, 1, __ATOMIC_RELAXED);
	return l;
}

void rs_captured_list_free(struct rs_captured_list *l)
{
	if (!l->n)
		return;
	for (size_t i = 0; i < l->n; i++)
		rs_capture_unref(l->v[i].capture);
	free(l->v);
	*l = (struct rs_captured_list){NULL, 0};
	__atomic_fetch_sub(&lists, 1, __ATOMIC_RELAXED);
}

void rs_captured_launches(const struct rs_captured_list *l, struct rs_queue q)
{
	for (size_t i = 0; i < l->n; i++)
		RS_ENGINE(rs_capture_launches(l->v[i].capture, q));
}

void rs_captured_launched(const struct rs_captured_list *l, struct rs_queue q, int vouched,
			  CUresult r)
{
	for (size_t i = 0; i < l->n; i++)
		RS_ENGINE(rs_capture_launched(l->v[i].capture, q, vouched, r == CUDA_SUCCESS));
}
