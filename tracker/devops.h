/* SPDX-License-Identifier: MIT */
/*
 * The device as the tracker sees it: a small table of operations that the shim fills with real
 * driver calls and the tests fill with a model.
 *
 * Everything is asynchronous and ordered by its queue, except event_sync. No operation may be called
 * with an engine lock held. None calls back into the engine. All return 0 or -errno unless said
 * otherwise; an operation that fails has had no effect, except that one of many things
 * may have been made in part.
 *
 * A queue may be in a stream capture: what is put into it becomes part of the graph and runs when that is
 * launched, maybe often. An event recorded there orders work of the same capture and does nothing else.
 * -EXDEV: an order across the border of a capture was asked for, or work on the legacy stream while
 * a stream that it waits for is being captured; nothing has happened, to the capture neither.
 */
#ifndef RS_TRACKER_DEVOPS_H
#define RS_TRACKER_DEVOPS_H

#include <stdint.h>

/* One stream of one context. stream 0 is the context's legacy default stream. */
struct rs_queue {
	uint64_t ctx;
	uint64_t stream;
};

/* A digest covers this many bytes; the last one of a range may cover fewer. */
#define RS_DIGEST_CHUNK 4096u

static inline uint64_t rs_digest_count(uint64_t bytes)
{
	return (bytes + RS_DIGEST_CHUNK - 1) / RS_DIGEST_CHUNK;
}

/* Preserved bytes are thinned out by pages of this size; the last one of a range may be shorter. */
#define RS_PAGE 65536u

static inline uint64_t rs_page_count(uint64_t bytes)
{
	return (bytes + RS_PAGE - 1) / RS_PAGE;
}

/* One of many copies; they do not overlap. */
struct rs_move {
	uint64_t dst, src, bytes;
};

/* One of many digests: of a range, into rs_digest_count(bytes) words from result_alloc. */
struct rs_piece {
	uint64_t addr, bytes;
	uint64_t *out;
};

/* One of many comparisons; out: rs_page_count(bytes) words from result_alloc. */
struct rs_versus {
	uint64_t a, b, bytes;
	uint64_t *out;
};

struct rs_devops {
	void *opaque;
	/* Device memory, at least 256-byte aligned. -ENOMEM when there is none. */
	int (*alloc)(void *opaque, struct rs_queue q, uint64_t bytes, uint64_t *ret_addr);
	/* The caller has made sure that no enqueued work uses it any more. */
	void (*free)(void *opaque, struct rs_queue q, uint64_t addr);
	int (*copy)(void *opaque, struct rs_queue q, uint64_t dst, uint64_t src, uint64_t bytes);
	/*
	 * One 64-bit digest (rs_digest_chunk of digest.h) per RS_DIGEST_CHUNK bytes of
	 * [addr, addr + bytes), into `out`, which came from result_alloc.
	 */
	int (*digest)(void *opaque, struct rs_queue q, uint64_t addr, uint64_t bytes,
		      uint64_t *out);
	/*
	 * Many digests in one operation; NULL: the device has none. The list is the caller's again on return. When it
	 * fails, some of them may have been made.
	 */
	int (*digest_many)(void *opaque, struct rs_queue q, const struct rs_piece *list,
			   uint64_t n);
	/*
	 * Many copies in one operation (gather, scatter). The list is the caller's again on return.
	 * Fastest where dst and src agree modulo 16.
	 */
	int (*move)(void *opaque, struct rs_queue q, const struct rs_move *list, uint64_t n);
	/* Exchange two ranges that do not overlap. */
	int (*swap)(void *opaque, struct rs_queue q, uint64_t a, uint64_t b, uint64_t bytes);
	/* out: one word per RS_PAGE of the two ranges, 0 where all bytes are equal, else 1; from result_alloc. */
	int (*diff)(void *opaque, struct rs_queue q, uint64_t a, uint64_t b, uint64_t bytes,
		    uint64_t *out);
	/* Many comparisons in one operation; as digest_many. */
	int (*diff_many)(void *opaque, struct rs_queue q, const struct rs_versus *list, uint64_t n);
	/* Host memory that the device writes and the host reads once an event has passed. */
	int (*result_alloc)(void *opaque, struct rs_queue q, uint64_t words, uint64_t **ret_words);
	void (*result_free)(void *opaque, uint64_t *words);
	/*
	 * The capture that q takes part in, a number that is not given again; 0: none. And its graph, if ret_graph is not
	 * NULL, for capture_nodes: how many nodes that has so far; UINT64_MAX: nobody knows. Both NULL: nothing is ever captured.
	 */
	int (*capture_of)(void *opaque, struct rs_queue q, uint64_t *ret_capture,
			  uint64_t *ret_graph);
	uint64_t (*capture_nodes)(void *opaque, struct rs_queue q, uint64_t graph);
	int (*event_record)(void *opaque, struct rs_queue q, uint64_t *ret_event);
	int (*event_wait)(void *opaque, struct rs_queue q, uint64_t event);
	int (*event_done)(void *opaque, uint64_t event);  /* 1 passed, 0 not yet, -errno */
	int (*event_sync)(void *opaque, uint64_t event);  /* blocks the host */
	void (*event_free)(void *opaque, uint64_t event); /* legal while work still waits on it */
	/*
	 * A moment of the queue, and the time from one to another, maybe of another queue of the context. -EAGAIN: `to` has
	 * not passed yet; any other error: it cannot be told. NULL: the device has no clock.
	 */
	int (*mark)(void *opaque, struct rs_queue q, uint64_t *ret_mark);
	int (*elapsed)(void *opaque, uint64_t from, uint64_t to, uint64_t *ret_ns);
	void (*mark_free)(void *opaque, uint64_t mark);
	/*
	 * Memory that can be mapped in another's place (remap.h); all of these or none, NULL: the device has none. They are
	 * the host's calls, ordered with nothing that is enqueued.
	 *
	 * frame_alloc: memory like that whose whole mapping is [addr, addr + bytes), or, addr 0, of the device of q.ctx, with
	 *   an address of its own in *ret_addr. -ENOTSUP: there is none of that kind.
	 * frame_view: the memory that is mapped at [addr, addr + bytes) now, and will be held, at another address.
	 * frame_free: of either.
	 * remap: map `to` at addr, where `from` is mapped (0: nothing), with the access that view `home` has found there;
	 *   nothing on the device may touch it meanwhile. -EFAULT: now nothing is mapped there; else a failure has had no effect.
	 * event_within: block the host until the event has passed, but not longer. -ETIMEDOUT; -EXDEV: some stream is captured.
	 */
	int (*frame_alloc)(void *opaque, struct rs_queue q, uint64_t addr, uint64_t bytes,
			   uint64_t *ret_frame, uint64_t *ret_addr);
	int (*frame_view)(void *opaque, struct rs_queue q, uint64_t addr, uint64_t bytes,
			  uint64_t *ret_frame, uint64_t *ret_addr);
	void (*frame_free)(void *opaque, uint64_t frame);
	int (*remap)(void *opaque, uint64_t addr, uint64_t bytes, uint64_t home, uint64_t from,
		     uint64_t to);
	int (*event_within)(void *opaque, uint64_t event, uint64_t ns);
};

#endif
