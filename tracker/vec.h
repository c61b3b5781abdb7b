/* SPDX-License-Identifier: MIT */
/* Growing arrays of the engine's. No locks: who owns one guards it. */
#ifndef RS_TRACKER_VEC_H
#define RS_TRACKER_VEC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A growing array: pointer, count, capacity. RS_PUSH gives the new zeroed element or NULL. */
#define RS_VEC(type)                                                                               \
	struct {                                                                                   \
		type *v;                                                                           \
		uint32_t n, cap;                                                                   \
	}
int rs_vec_grow(void **v, uint32_t n, uint32_t *cap, size_t size);
#define RS_PUSH(vec)                                                                               \
	((vec).n < (vec).cap ||                                                                    \
			 !rs_vec_grow((void **)&(vec).v, (vec).n, &(vec).cap, sizeof(*(vec).v))    \
		 ? memset(&(vec).v[(vec).n++], 0, sizeof(*(vec).v))                                \
		 : NULL)
/* Is there room for that many more? */
#define RS_ROOM(vec, more)                                                                         \
	((vec).n + (more) <= (vec).cap ||                                                          \
	 !rs_vec_grow((void **)&(vec).v, (vec).n + (more)-1, &(vec).cap, sizeof(*(vec).v)))

#endif
