/* SPDX-License-Identifier: MIT */
/*
 * A thread's memory of evaluated launches: the bounds that PTX analysis gave for a kernel, a grid and
 * parameters. Direct mapped, RS_MEMOS entries, each with room of its own; compared in full, so a
 * collision costs an evaluation, never a wrong answer.
 * Callers: wrap_launch.c, the owning thread only. No locks.
 */
#ifndef RS_SHIM_MEMO_H
#define RS_SHIM_MEMO_H

#include "shim/shim.h"
#include "tracker/digest.h"
#include "tracker/ptx_access.h"

#include <string.h>

#define RS_MEMOS 512u

struct rs_memo_key {
	const struct rs_ptx_kernel *kernel; /* lives as long as the process */
	unsigned grid[3], block[3];
	uint64_t bytes; /* of the parameters */
};

struct rs_memo {
	struct rs_memo_key key;
	uint8_t valid;
	uint32_t params_cap, extents_cap;
	uint8_t *params;
	struct rs_ptx_extent *extents;
};

/* The entry for that launch, valid if it is the same one; else to be filled in. NULL without memory. */
struct rs_memo *rs_memo_find(struct rs_tls *t, const struct rs_memo_key *key,
			     const uint8_t *params);
/* Room for n extents in the entry, which takes the key over; NULL without memory. */
struct rs_ptx_extent *rs_memo_room(struct rs_memo *m, const struct rs_memo_key *key,
				   const uint8_t *params, uint32_t n);
/* At the thread's end. */
void rs_memo_drop(struct rs_tls *t);

#endif
