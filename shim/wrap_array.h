/* SPDX-License-Identifier: MIT */
/*
 * Arrays that come and go, told to the engine (wrap_array.c); also for arrays that belong to others
 * (wrap_ipc.c). external: others change them, unseen. `leaves` before the driver destroys, `left` after it.
 */
#ifndef RS_SHIM_WRAP_ARRAY_H
#define RS_SHIM_WRAP_ARRAY_H

#include "shim/shim.h"

void rs_array_made(struct rs_tls *t, CUarray handle, uint64_t owner, int external);
void rs_array_leaves(struct rs_tls *t, CUarray handle);
void rs_array_left(CUarray handle, CUresult r);
void rs_array_levels_made(struct rs_tls *t, CUmipmappedArray mipmap, unsigned levels, int external);
/* All arrays that were made with that owner; a mipmapped array's is its handle. */
void rs_array_owned_leave(struct rs_tls *t, uint64_t owner);
void rs_array_owned_left(uint64_t owner, CUresult r);

#endif
