/* SPDX-License-Identifier: MIT */
/*
 * Restoring by remapping (RS_RESTORE_REMAP): nouns and border of remap.c and frame.c. Part of model.h, which includes it.
 *
 * To the model it is a swap: a keep's bytes and the live ones change places, and nobody needs room for P2. What differs
 * is how: the keep's bytes lie in a frame, physical memory of our own that is like the program's, and what is exchanged
 * is which of the two is mapped at the program's address. See remap.c for when, and what is done where it cannot be.
 */
#ifndef RS_TRACKER_REMAP_H
#define RS_TRACKER_REMAP_H

#include <stdint.h>

#include "tracker/devops.h"

struct rs_alloc;
struct rs_block;
struct rs_callstate;
struct rs_engine;
struct rs_ext;
struct rs_frame;
struct rs_keep;
struct rs_op;
struct rs_thread;

/* What is known of one allocation's exchange. Under engine.lock. */
struct rs_remap {
	struct rs_alloc *alloc; /* NULL: gone */
	/* Its own memory: the device's name for it, and an address at which it can always be reached; 0: not open. */
	uint64_t home, home_addr;
	struct rs_frame *shown; /* mapped in the place of its own memory; NULL: none */
	struct rs_keep *keep;	/* whose bytes are at home_addr meanwhile; NULL: nobody's */
	struct rs_queue q;	/* that of the last exchange */
	uint64_t touches;	/* followed calls on it so far */
	uint8_t busy;		/* a thread is about to change any of this, or what is mapped */
	uint8_t closed;		/* nothing may be mapped at the moment: calls on it wait */
	uint8_t lost;		/* nothing is mapped there any more, and nothing helped */
	struct rs_remap *next;
};

struct rs_remapping {
	struct rs_remap *list;
	struct rs_frame *frames; /* memory_lock */
	uint64_t opaque;	 /* queues with calls that may reach what nobody knows */
	uint64_t unknown;	 /* number of such calls so far */
	uint64_t
		hosted; /* atomic: context with host functions that may not have run; UINT64_MAX: several */
	uint32_t closed; /* allocations that are */
	uint32_t paused; /* the program is changing its mappings */
	uint8_t wanted;	 /* atomic: somebody has asked for it */
	uint8_t off;	 /* atomic: it does not work here */
	uint8_t vain;	 /* atomic: the host has waited in vain once */
	uint8_t seen;	 /* atomic: there was memory for which it would */
};

/* frame.c */
struct rs_block *rs_frame_get(struct rs_engine *e, const struct rs_op *op); /* no lock */
void rs_frame_put(struct rs_block *b);					    /* memory_lock held */
void rs_frame_set_shown(struct rs_engine *e, struct rs_frame *f, int shown);
uint64_t rs_frame_token(const struct rs_frame *f);
uint64_t rs_frame_addr(const struct rs_frame *f);
struct rs_frame *rs_frame_of(struct rs_block *b);
void rs_frames_forget(struct rs_engine *e, const struct rs_alloc *a); /* its frames are nobody's */
uint64_t rs_frames_trim(struct rs_engine *e,
			int all);	  /* no lock; all: those of living allocations, too */
void rs_frames_fini(struct rs_engine *e); /* no lock */

/* remap.c; engine.lock held unless said otherwise */
int rs_remap_fits(const struct rs_engine *e,
		  const struct rs_alloc *a); /* is it memory for which it can be done? */
int rs_remap_may(const struct rs_engine *e,
		 const struct rs_alloc *a);		 /* and now, as far as one can see? */
void rs_remap_want(struct rs_engine *e);		 /* no lock needed */
int rs_remap_is_lost(const struct rs_alloc *a);		 /* no lock needed */
int rs_remap_run(struct rs_engine *e, struct rs_op *op); /* no lock */
int rs_remap_wait(struct rs_engine *e, uint64_t mask, int force); /* no lock */
void rs_remap_bind(struct rs_op *op,
		   struct rs_alloc *a); /* a planned operation is on the allocation */
void rs_remap_unbind(struct rs_op *op);
/* Would that wait, with the lock released? */
int rs_remap_meets_closed(const struct rs_callstate *c);
void rs_remap_meet(struct rs_callstate *c, struct rs_thread *t);
void rs_remap_landed(struct rs_engine *e, struct rs_thread *t);	       /* no lock */
void rs_remap_hosts(struct rs_engine *e, uint64_t ctx);		       /* no lock */
void rs_remap_synced(struct rs_engine *e, uint64_t ctx, uint64_t met); /* no lock */
void rs_remap_ctx_leaves(struct rs_engine *e, uint64_t ctx);	       /* no lock */
void rs_remap_keep_gone(struct rs_engine *e, const struct rs_keep *k);
void rs_remap_alloc_gone(struct rs_engine *e, struct rs_alloc *a);
void rs_remap_fini(struct rs_engine *e); /* no lock */

#endif
