/* SPDX-License-Identifier: MIT */
/*
 * From a stream handle to the engine's queue.
 *
 * Handle 0 is the context's legacy stream, or in the _ptsz and _ptds twins the calling thread's own;
 * 1 and 2 say which by value. A thread's own stream is a stream of its own per thread: its queue is
 * t->own_stream (bit 63 set, no handle looks like that). Every other handle belongs to the context
 * that it was created in.
 */
#ifndef RS_SHIM_QUEUE_H
#define RS_SHIM_QUEUE_H

#include "shim/shim.h"

/* ctx.c */
uint64_t rs_ctx_current_slow(struct rs_tls *t);
uint64_t rs_ctx_of_stream(struct rs_tls *t, CUstream stream);
int rs_queue_capturing_slow(CUstream stream, uint64_t *ret_capture);

static inline uint64_t rs_ctx_current(struct rs_tls *t)
{
	uint64_t sole = __atomic_load_n(&rs_state.ctx_sole, __ATOMIC_RELAXED);

	if (rs_likely(sole))
		return sole;
	if (t->ctx_gen == __atomic_load_n(&rs_state.ctx_gen, __ATOMIC_RELAXED))
		return t->ctx;
	return rs_ctx_current_slow(t);
}

static inline struct rs_queue rs_queue_of(struct rs_tls *t, CUstream stream,
					  enum rs_flavour flavour)
{
	uint64_t h = (uintptr_t)stream;
	struct rs_queue q;

	if (h <= 2) {
		q.stream = h == 2 || (!h && flavour != RS_PLAIN) ? t->own_stream : 0;
		q.ctx = rs_ctx_current(t);
	} else {
		q.stream = h;
		q.ctx = __atomic_load_n(&rs_state.ctx_sole, __ATOMIC_RELAXED);
		if (rs_unlikely(!q.ctx))
			q.ctx = rs_ctx_of_stream(t, stream);
	}
	return q;
}

/* Nearly always no stream at all is being captured. *ret_capture: the capture's number; 0: it is broken, or there is none. */
static inline int rs_queue_capture(CUstream stream, enum rs_flavour flavour, uint64_t *ret_capture)
{
	*ret_capture = 0;
	if (rs_likely(!__atomic_load_n(&rs_state.captures, __ATOMIC_RELAXED)))
		return 0;
	if (!stream && flavour != RS_PLAIN)
		stream = CU_STREAM_PER_THREAD;
	return rs_queue_capturing_slow(stream, ret_capture);
}

static inline int rs_queue_capturing(CUstream stream, enum rs_flavour flavour)
{
	uint64_t capture;

	return rs_queue_capture(stream, flavour, &capture);
}

#endif
