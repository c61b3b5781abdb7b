/* SPDX-License-Identifier: MIT */
/*
 * Device operations as the engine plans them: under engine.lock into a list, enqueued after its release (oplist.c).
 * Part of model.h, which includes it. Who carries them out: ops.h.
 */
#ifndef RS_TRACKER_OPLIST_H
#define RS_TRACKER_OPLIST_H

#include <stdint.h>

#include "tracker/devops.h"

struct rs_alloc;
struct rs_engine;
struct rs_keep;
struct rs_replay;
struct rs_thin;
struct rs_timing;
struct rs_words;

enum rs_op_kind {
	RS_OP_ORDER,
	RS_OP_KEEP,
	RS_OP_RESTORE,
	RS_OP_DIGEST,
	RS_OP_SWAP, /* a keep's bytes and the live ones change places */
	RS_OP_DIFF, /* which pages a write has changed: thin.c */
	RS_OP_MOVE, /* part of a keep becomes a keep of its own */
	RS_OP_MARK, /* a moment in a window: timing.c */
	RS_OP_REMAP /* as SWAP, by what is mapped: remap.c */
};
struct rs_op {
	uint8_t kind;
	uint8_t failed;
	uint64_t mask; /* ORDER: queue bits that `to` must follow; REMAP: that must have ended */
	uint32_t to;
	struct rs_alloc *alloc;
	uint64_t addr;	       /* of the bytes [off, off + len), 0: they have none */
	struct rs_keep *keep;  /* KEEP: to take; RESTORE: source */
	struct rs_keep *guard; /* RESTORE: must be READY first (it holds what is overwritten) */
	uint64_t off, len;
	struct rs_words *words;	  /* DIGEST, or KEEP's digest */
	struct rs_replay *rec;	  /* to flag on failure */
	struct rs_thin *thin;	  /* DIFF */
	struct rs_timing *timing; /* MARK */
	uint8_t unordered;	  /* an earlier order of the list failed */
	uint8_t fence; /* ORDER: behind work of the shim's own, on alloc if that is set */
	/* SWAP, RESTORE: P2 returns; without a device that swaps, it is copied. MARK: of the window's end */
	uint8_t back;
	uint8_t flies; /* until it is settled: of mapped memory, see rs_remap_bind */
};
struct rs_oplist {
	struct rs_op *v;
	uint32_t n, cap;
	uint8_t overflow; /* an operation was lost for lack of memory */
	/* an order could not be made: nothing may be shown to a replay, and what is there may be anything */
	uint8_t unordered;
	uint8_t borrowed; /* only digests, of words and allocations that stay without a reference */
	uint64_t refused; /* queue bits of fences that could not be kept */
	struct rs_timing
		*timing; /* the window that it is part of, if that is measured; a reference */
	struct rs_op fixed[24];
};

void rs_oplist_init(struct rs_oplist *l);
struct rs_op *rs_oplist_add(struct rs_oplist *l, enum rs_op_kind kind, uint32_t to);
void rs_oplist_order(struct rs_oplist *l, uint64_t mask, uint32_t to);
/*
 * The same for the shim's own last work on the bytes of a (NULL: of any), which the program knows nothing of: whoever relies
 * on it when it cannot be made is vouched for no more.
 */
void rs_oplist_fence(struct rs_oplist *l, uint64_t mask, struct rs_alloc *a, uint32_t to);
struct rs_queue rs_queue_of(struct rs_engine *e, uint32_t id); /* takes engine.lock */
/* Now, without engine.lock: everything enqueued so far on the queues of mask comes before what follows on `to`. */
int rs_order_now(struct rs_engine *e, uint64_t mask, uint32_t to);
/* Enqueue everything; takes engine.lock afterwards to settle failures. Frees the list. */
void rs_oplist_run(struct rs_engine *e, struct rs_oplist *l);

#endif
