/* SPDX-License-Identifier: MIT */
/*
 * Tensor maps: opaque 128 bytes with an address inside, passed to kernels by value. What was encoded is
 * remembered by its bytes, and found again in a launch's parameters.
 */
#ifndef RS_SHIM_TENSORMAP_H
#define RS_SHIM_TENSORMAP_H

#include "shim/call.h"

extern uint64_t rs_tensormap_count;

/* Has any been encoded? If not, no launch needs to be searched. */
static inline int rs_tensormap_any(void)
{
	return __atomic_load_n(&rs_tensormap_count, __ATOMIC_RELAXED) != 0;
}

/* Ranges that a scan of so many bytes may add. */
static inline unsigned rs_tensormap_room(uint64_t bytes)
{
	return (unsigned)(bytes / 64);
}

/*
 * Adds an access, of all the allocation and either way, for each tensor map in the parameters
 * [params, params + bytes). a: the call's ranges, `room` of them; too little makes it an unknown writer.
 */
void rs_tensormap_scan(struct rs_call *call, struct rs_access *a, unsigned room,
		       const uint8_t *params, uint64_t bytes);

#endif
