/* SPDX-License-Identifier: MIT */
/*
 * Between the files that carry out the operations of a list: oplist.c, gather.c, thin.c, memory.c. Without engine.lock; what an
 * operation refers to is pinned.
 */
#ifndef RS_TRACKER_OPS_H
#define RS_TRACKER_OPS_H

#include "tracker/model.h"

/* oplist.c: parts of single operations; 0 or -errno */
int rs_op_room(struct rs_engine *e, struct rs_op *op);
int rs_op_copy(struct rs_engine *e, const struct rs_op *op, uint64_t dst, uint64_t src);
int rs_op_kept(struct rs_engine *e, struct rs_op *op, int err);
int rs_op_may_restore(const struct rs_op *op);
int rs_op_exchange(struct rs_engine *e, struct rs_op *op);
uint64_t rs_op_source(const struct rs_op *op);
int rs_op_digest(struct rs_engine *e, const struct rs_op *op);
/* The digest of what is kept, or was: a failure that loses the keep. */
int rs_op_digest_keep(struct rs_engine *e, const struct rs_op *op);

/* memory.c: for many at once, linked by `next` */
int rs_words_fill_all(struct rs_engine *e, uint32_t q, struct rs_words *list, uint32_t n);

/* thin.c: as rs_gather_run, for comparisons */
uint32_t rs_thin_diffs(struct rs_engine *e, struct rs_op *op, uint32_t n);

/* gather.c: how many operations from the i-th on have been carried out together; 0: none, it has to go alone */
uint32_t rs_gather_run(struct rs_engine *e, struct rs_oplist *l, uint32_t i);

#endif
