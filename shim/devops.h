/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the engine's operations on the real driver share: devops.c (contexts, memory),
 * devorder.c (events), devclock.c (marks), devkernels.c (kernels), devmany.c (lists), devarrays.c
 * (arrays), devremap.c (what is mapped where).
 */
#ifndef RS_SHIM_DEVOPS_H
#define RS_SHIM_DEVOPS_H

#include "shim/shim.h"

/* Our kernels, each a PTX file of its own name in shim/kernels. */
#define RS_DEV_KERNELS(X)                                                                          \
	X(digest)                                                                                  \
	X(digest_many)                                                                             \
	X(digest_many_wide)                                                                        \
	X(move)                                                                                    \
	X(move_wide)                                                                               \
	X(swap)                                                                                    \
	X(diff)                                                                                    \
	X(diff_many)

enum rs_dev_kernel {
#define X(name) RS_DEV_##name,
	RS_DEV_KERNELS(X)
#undef X
		RS_DEV_NKERNELS
};

/* Kinds of events, each with its own spare ones. */
enum rs_dev_spare { RS_DEV_ORDER, RS_DEV_CLOCK, RS_DEV_NSPARE };

struct rs_dev_event {
	CUevent handle;
	uint64_t capture; /* the stream capture that it was recorded in last; 0: none */
	struct rs_dev_context *context;
	struct rs_dev_event *next;
};

/* Never freed: events refer to it. */
struct rs_dev_context {
	uint64_t ctx;			    /* 0: gone */
	CUfunction kernel[RS_DEV_NKERNELS]; /* loaded at first use */
	uint32_t refused;		    /* bit of each kernel that this driver does not take */
	CUmemoryPool pool;		    /* made at first use */
	struct rs_dev_event *spare[RS_DEV_NSPARE];
	struct rs_dev_context *next;
};

/* The context's entry, made at first use; NULL without memory. */
struct rs_dev_context *rs_dev_context_of(uint64_t ctx);
/* The context, 0 when it is gone. */
static inline uint64_t rs_dev_live(const struct rs_dev_context *c)
{
	return __atomic_load_n(&c->ctx, __ATOMIC_RELAXED);
}

/* All contexts, under the lock. */
struct rs_dev_context *rs_dev_contexts(void);
void rs_dev_lock(void);
void rs_dev_unlock(void);

struct rs_dev_frame {
	int pushed, relaxed, hidden;
	CUcontext before;
	CUstreamCaptureMode mode;
};

/* Is the driver being asked to destroy it? */
int rs_dev_leaving(uint64_t ctx);
/* Make ctx current, and the capture mode relaxed where some stream is being captured. */
int rs_dev_enter(struct rs_dev_frame *f, uint64_t ctx);
/*
 * The same, to put work into q. -EXDEV when q is the legacy stream and a stream that is ordered with it is being
 * captured: the driver would refuse the work and break the capture.
 */
int rs_dev_enter_queue(struct rs_dev_frame *f, struct rs_queue q);
/* Undo it, and r as an error number. */
int rs_dev_leave(const struct rs_dev_frame *f, CUresult r);
CUstream rs_dev_stream(struct rs_queue q);

/* devkernels.c */
/* Is it one of our kernels, in whatever context? */
int rs_dev_is_own(CUfunction f);
/* In the context, both. */
CUresult rs_dev_load(struct rs_dev_context *c, enum rs_dev_kernel k, CUfunction *ret);
CUresult rs_dev_launch(CUfunction f, struct rs_queue q, uint64_t blocks, unsigned threads,
		       void **params);
int rs_dev_digest(void *opaque, struct rs_queue q, uint64_t addr, uint64_t bytes, uint64_t *out);
int rs_dev_swap(void *opaque, struct rs_queue q, uint64_t a, uint64_t b, uint64_t bytes);
int rs_dev_diff(void *opaque, struct rs_queue q, uint64_t a, uint64_t b, uint64_t bytes,
		uint64_t *out);

/* devmany.c */
int rs_dev_move(void *opaque, struct rs_queue q, const struct rs_move *list, uint64_t n);
int rs_dev_digest_many(void *opaque, struct rs_queue q, const struct rs_piece *list, uint64_t n);
int rs_dev_diff_many(void *opaque, struct rs_queue q, const struct rs_versus *list, uint64_t n);

/* devarrays.c: one of the two, or some of the list, is an array's range. */
int rs_dev_array_copy(struct rs_queue q, uint64_t dst, uint64_t src, uint64_t bytes);
int rs_dev_array_digest(struct rs_queue q, uint64_t addr, uint64_t bytes, uint64_t *out);
int rs_dev_array_swap(struct rs_queue q, uint64_t a, uint64_t b, uint64_t bytes);
int rs_dev_array_diff(struct rs_queue q, uint64_t a, uint64_t b, uint64_t bytes, uint64_t *out);
int rs_dev_array_move(struct rs_queue q, const struct rs_move *list, uint64_t n);

/* devorder.c */
/* A spare event, or a new one; NULL: the driver makes none. In the context. */
struct rs_dev_event *rs_dev_event_take(struct rs_dev_context *c, enum rs_dev_spare kind);
void rs_dev_event_put(struct rs_dev_event *e, enum rs_dev_spare kind);
/* The capture that the stream takes part in, 0: none. In the context. */
CUresult rs_dev_capture_of(CUstream s, uint64_t *ret);
int rs_dev_capture(void *opaque, struct rs_queue q, uint64_t *ret_capture, uint64_t *ret_graph);
uint64_t rs_dev_capture_nodes(void *opaque, struct rs_queue q, uint64_t graph);
int rs_dev_event_record(void *opaque, struct rs_queue q, uint64_t *ret_event);
int rs_dev_event_wait(void *opaque, struct rs_queue q, uint64_t event);
int rs_dev_event_done(void *opaque, uint64_t event);
int rs_dev_event_sync(void *opaque, uint64_t event);
void rs_dev_event_free(void *opaque, uint64_t event);

/* devclock.c */
int rs_dev_mark(void *opaque, struct rs_queue q, uint64_t *ret_mark);
int rs_dev_elapsed(void *opaque, uint64_t from, uint64_t to, uint64_t *ret_ns);
void rs_dev_mark_free(void *opaque, uint64_t mark);

/* devremap.c */
int rs_dev_frame_alloc(void *opaque, struct rs_queue q, uint64_t addr, uint64_t bytes,
		       uint64_t *ret_frame, uint64_t *ret_addr);
int rs_dev_frame_view(void *opaque, struct rs_queue q, uint64_t addr, uint64_t bytes,
		      uint64_t *ret_frame, uint64_t *ret_addr);
void rs_dev_frame_free(void *opaque, uint64_t frame);
int rs_dev_remap(void *opaque, uint64_t addr, uint64_t bytes, uint64_t home, uint64_t from,
		 uint64_t to);
int rs_dev_event_within(void *opaque, uint64_t event, uint64_t ns);

#endif
