/* SPDX-License-Identifier: MIT */
/*
 * Stream capture: ops submitted to a captured stream become graph nodes.
 *
 * A capture starts on one stream; others join by waiting for an event recorded in it and must come back
 * the same way before the end. A call that a capture does not allow breaks it: the status is
 * "invalidated" until cuStreamEndCapture, which then returns no graph. In global mode any unsafe call of
 * any thread, in thread-local mode one of the capturing thread, is such a call. Driver lock held.
 */
#include "tests/simcuda/graph.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct sim_capture {
	CUgraph graph;
	uint64_t id;
	CUstreamCaptureMode mode;
	pthread_t thread;
	bool broken, own_graph;
	CUstream origin, streams;
	struct sim_capture *next;
};

static struct sim_capture *captures;
static uint64_t next_id = 1;
static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static int set_deps(CUgraphNode **deps, size_t *ndeps, const CUgraphNode *from, size_t n)
{
	CUgraphNode *p = malloc((n + 1) * sizeof(*p));

	if (!p)
		return -1;
	if (n)
		memcpy(p, from, n * sizeof(*p));
	free(*deps);
	*deps = p;
	*ndeps = n;
	return 0;
}

static int add_deps(CUgraphNode **deps, size_t *ndeps, const CUgraphNode *from, size_t n)
{
	CUgraphNode *p = realloc(*deps, (*ndeps + n + 1) * sizeof(*p));

	if (!p)
		return -1;
	*deps = p;
	for (size_t i = 0; i < n; i++) {
		bool have = false;

		for (size_t j = 0; j < *ndeps && !have; j++)
			have = p[j] == from[i];
		if (!have)
			p[(*ndeps)++] = from[i];
	}
	return 0;
}

CUresult sim_capture_break(CUstream s, CUresult r)
{
	if (s->cap)
		s->cap->broken = true;
	return r;
}

CUresult sim_capture_unsafe(void)
{
	bool refused = false;

	if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_SUCCESS;
	for (struct sim_capture *c = captures; c; c = c->next) {
		bool mine = pthread_equal(c->thread, pthread_self());

		if (c->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
			continue;
		if (mine || (c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
			     thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL)) {
			c->broken = true;
			refused = true;
		}
	}
	return refused ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

static bool blocks_legacy(CUcontext ctx, bool breaks)
{
	bool blocks = false;

	for (struct sim_capture *c = captures; c; c = c->next)
		for (CUstream s = c->streams; s; s = s->cap_next)
			if (s->ctx == ctx && !(s->flags & CU_STREAM_NON_BLOCKING)) {
				blocks = true;
				c->broken |= breaks;
			}
	return blocks;
}

bool sim_capture_blocks_legacy(CUcontext ctx)
{
	return blocks_legacy(ctx, true);
}

CUresult sim_capture_add(CUstream s, struct sim_work *w, CUgraphNodeType type)
{
	CUgraphNode n;
	CUresult r;

	if (s->cap->broken) {
		sim_work_clear(w);
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	}
	r = sim_graph_add(s->cap->graph, type, w, s->ctx, s->deps, s->ndeps, &n);
	if (!r && set_deps(&s->deps, &s->ndeps, &n, 1))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	return r ? sim_capture_break(s, r) : r;
}

void sim_capture_drop_event(CUevent e)
{
	free(e->deps);
	e->deps = NULL;
	e->ndeps = 0;
	e->cap = NULL;
}

CUresult sim_capture_record(CUstream s, CUevent e)
{
	if (s->cap->broken)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (set_deps(&e->deps, &e->ndeps, s->deps, s->ndeps))
		return CUDA_ERROR_OUT_OF_MEMORY;
	e->cap = s->cap;
	return CUDA_SUCCESS;
}

CUgraph sim_capture_graph(CUstream s)
{
	return s->cap->graph;
}

static bool is_open(const struct sim_capture *cap)
{
	for (struct sim_capture *c = captures; c; c = c->next)
		if (c == cap)
			return true;
	return false;
}

static void join(struct sim_capture *c, CUstream s)
{
	s->cap = c;
	s->ndeps = 0;
	s->cap_next = c->streams;
	c->streams = s;
}

CUresult sim_capture_wait(CUstream s, CUevent e)
{
	if (!e->cap) /* work outside the capture cannot be waited for inside */
		return sim_capture_break(s, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	if (!is_open(e->cap))
		return sim_capture_break(s, CUDA_ERROR_CAPTURED_EVENT);
	if (s->cap && s->cap != e->cap) {
		e->cap->broken = true;
		return sim_capture_break(s, CUDA_ERROR_STREAM_CAPTURE_MERGE);
	}
	if (e->cap->broken)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (s->is_legacy) {
		e->cap->broken = true;
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	if (!s->cap)
		join(e->cap, s);
	return add_deps(&s->deps, &s->ndeps, e->deps, e->ndeps) ? CUDA_ERROR_OUT_OF_MEMORY
								: CUDA_SUCCESS;
}

static void leave(CUstream s)
{
	CUstream *at = &s->cap->streams;

	while (*at != s)
		at = &(*at)->cap_next;
	*at = s->cap_next;
	s->cap = NULL;
	s->ndeps = 0;
}

static void close_capture(struct sim_capture *c)
{
	struct sim_capture **at = &captures;

	while (c->streams)
		leave(c->streams);
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	c->graph->cap = NULL;
	free(c);
}

void sim_capture_drop_stream(CUstream s)
{
	struct sim_capture *c = s->cap;

	if (!c)
		return;
	c->broken = true;
	if (c->origin != s) {
		leave(s);
		return;
	}
	if (c->own_graph)
		sim_graph_free(c->graph);
	else
		c->graph->cap = NULL;
	c->graph = &(struct CUgraph_st){0};
	close_capture(c);
}

static CUresult begin(struct sim_call *call, CUstream h, CUstreamCaptureMode mode, CUgraph g,
		      const CUgraphNode *deps, size_t n)
{
	struct sim_capture *c;
	CUstream s;
	CUresult r = sim_stream_get(call, h, &s);

	if (r)
		return r;
	if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	if (s->is_legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (s->cap)
		return sim_capture_break(s, CUDA_ERROR_ILLEGAL_STATE);
	c = calloc(1, sizeof(*c));
	if (!c)
		return CUDA_ERROR_OUT_OF_MEMORY;
	c->graph = g ? g : sim_graph_new();
	c->own_graph = !g;
	if (!c->graph || add_deps(&s->deps, &s->ndeps, NULL, 0)) {
		free(c);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	c->graph->cap = c;
	c->id = next_id++;
	c->mode = mode;
	c->thread = pthread_self();
	c->origin = s;
	c->next = captures;
	captures = c;
	join(c, s);
	return add_deps(&s->deps, &s->ndeps, deps, n) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

SIM_TWINS(cuStreamBeginCapture, _ptsz, SIM_CTX, P(CUstream h), P(h))
{
	return begin(call, h, CU_STREAM_CAPTURE_MODE_GLOBAL, NULL, NULL, 0);
}

SIM_TWINS(cuStreamBeginCapture_v2, _ptsz, SIM_CTX, P(CUstream h, CUstreamCaptureMode mode),
	  P(h, mode))
{
	return begin(call, h, mode, NULL, NULL, 0);
}

/* Programmatic edges of nodes to come are not remembered: the program shall know. */
static bool annotated(const CUgraphEdgeData *data, size_t n)
{
	static const CUgraphEdgeData zero;

	for (size_t i = 0; data && i < n; i++)
		if (memcmp(&data[i], &zero, sizeof(zero)))
			return true;
	return false;
}

SIM_TWINS(cuStreamBeginCaptureToGraph, _ptsz, SIM_CTX,
	  P(CUstream h, CUgraph g, const CUgraphNode *deps, const CUgraphEdgeData *data, size_t n,
	    CUstreamCaptureMode mode),
	  P(h, g, deps, data, n, mode))
{
	if (!sim_handle_is(g, SIM_H_GRAPH) || (n && !deps) || g->cap)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n; i++)
		if (!sim_handle_is(deps[i], SIM_H_NODE) || deps[i]->graph != g)
			return CUDA_ERROR_INVALID_VALUE;
	return annotated(data, n) ? CUDA_ERROR_NOT_SUPPORTED : begin(call, h, mode, g, deps, n);
}

/* Has all work of the other streams come back to the origin? */
static bool joined(const struct sim_capture *c)
{
	for (CUstream s = c->streams; s; s = s->cap_next)
		for (size_t i = 0; s != c->origin && i < s->ndeps; i++) {
			bool found = false;

			for (size_t j = 0; j < c->origin->ndeps && !found; j++)
				found = sim_graph_precedes(s->deps[i], c->origin->deps[j]);
			if (!found)
				return false;
		}
	return true;
}

SIM_TWINS(cuStreamEndCapture, _ptsz, SIM_CTX, P(CUstream h, CUgraph *ret), P(h, ret))
{
	struct sim_capture *c;
	CUresult result;
	CUgraph g;
	CUstream s;
	CUresult r = ret ? sim_stream_get(call, h, &s) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*ret = NULL;
	c = s->cap;
	if (!c)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (c->origin != s)
		return sim_capture_break(s, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(c->thread, pthread_self()))
		return sim_capture_break(s, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
	result = c->broken    ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
		 : !joined(c) ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
			      : CUDA_SUCCESS;
	g = c->graph;
	r = c->own_graph && result;
	close_capture(c);
	if (r)
		sim_graph_free(g);
	else if (!result)
		*ret = g;
	return result;
}

static CUstreamCaptureStatus status_of(CUstream s)
{
	return !s->cap		? CU_STREAM_CAPTURE_STATUS_NONE
	       : s->cap->broken ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
				: CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

SIM_TWINS(cuStreamIsCapturing, _ptsz, SIM_CTX, P(CUstream h, CUstreamCaptureStatus *ret), P(h, ret))
{
	CUstream s;
	CUresult r = ret ? sim_stream_get(call, h, &s) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (s->is_legacy && blocks_legacy(s->ctx, false)) /* asking breaks nothing */
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	*ret = status_of(s);
	return CUDA_SUCCESS;
}

static CUresult info(struct sim_call *call, CUstream h, CUstreamCaptureStatus *status,
		     cuuint64_t *id, CUgraph *g, const CUgraphNode **deps,
		     const CUgraphEdgeData **data, size_t *n)
{
	CUstream s;
	CUresult r = status ? sim_stream_get(call, h, &s) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (s->is_legacy && blocks_legacy(s->ctx, false))
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	*status = status_of(s);
	if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return CUDA_SUCCESS;
	if (id)
		*id = s->cap->id;
	if (g)
		*g = s->cap->graph;
	if (deps)
		*deps = s->deps;
	if (data)
		*data = NULL; /* every edge is a plain one */
	if (n)
		*n = s->ndeps;
	return CUDA_SUCCESS;
}

SIM_TWINS(cuStreamGetCaptureInfo, _ptsz, SIM_CTX,
	  P(CUstream h, CUstreamCaptureStatus *status, cuuint64_t *id), P(h, status, id))
{
	return info(call, h, status, id, NULL, NULL, NULL, NULL);
}

SIM_TWINS(cuStreamGetCaptureInfo_v2, _ptsz, SIM_CTX,
	  P(CUstream h, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *g,
	    const CUgraphNode **deps, size_t *n),
	  P(h, status, id, g, deps, n))
{
	return info(call, h, status, id, g, deps, NULL, n);
}

SIM_TWINS(cuStreamGetCaptureInfo_v3, _ptsz, SIM_CTX,
	  P(CUstream h, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *g,
	    const CUgraphNode **deps, const CUgraphEdgeData **data, size_t *n),
	  P(h, status, id, g, deps, data, n))
{
	return info(call, h, status, id, g, deps, data, n);
}

static CUresult update(struct sim_call *call, CUstream h, CUgraphNode *deps, size_t n,
		       unsigned flags)
{
	CUstream s;
	CUresult r = sim_stream_get(call, h, &s);

	if (r)
		return r;
	if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (n && !deps))
		return CUDA_ERROR_INVALID_VALUE;
	if (!s->cap)
		return CUDA_ERROR_ILLEGAL_STATE;
	for (size_t i = 0; i < n; i++)
		if (!sim_handle_is(deps[i], SIM_H_NODE) || deps[i]->graph != s->cap->graph)
			return CUDA_ERROR_INVALID_VALUE;
	if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
		s->ndeps = 0;
	return add_deps(&s->deps, &s->ndeps, deps, n) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

SIM_TWINS(cuStreamUpdateCaptureDependencies, _ptsz, SIM_CTX,
	  P(CUstream h, CUgraphNode *deps, size_t n, unsigned flags), P(h, deps, n, flags))
{
	return update(call, h, deps, n, flags);
}

SIM_TWINS(cuStreamUpdateCaptureDependencies_v2, _ptsz, SIM_CTX,
	  P(CUstream h, CUgraphNode *deps, const CUgraphEdgeData *data, size_t n, unsigned flags),
	  P(h, deps, data, n, flags))
{
	return annotated(data, n) ? CUDA_ERROR_NOT_SUPPORTED : update(call, h, deps, n, flags);
}

SIM_API(cuThreadExchangeStreamCaptureMode, SIM_INIT, P(CUstreamCaptureMode *mode), P(mode))
{
	CUstreamCaptureMode old = thread_mode;

	if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	thread_mode = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}
