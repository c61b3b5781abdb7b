/* SPDX-License-Identifier: MIT */
/*
 * The socket to the planner process, and the area that comes over it. Nothing here blocks.
 * Callers: planner.c, one thread at a time.
 */
#ifndef RS_SHIM_LINK_H
#define RS_SHIM_LINK_H

#include "tracker/wire.h"

/* First try; starts the planner where there is none. 0, or -errno: there is no such socket, ever. */
int rs_link_start(uint64_t now_ns);
/*
 * The area, as long as the planner lives; NULL: none now, and another try is made when it is time for it. *ret_new: it is
 * another one than last time.
 */
struct rs_wire *rs_link_area(uint64_t now_ns, int *ret_new);
/* 0: no other try will be made. */
int rs_link_is_hoped_for(void);
/* It cannot be believed: no more of it, nor of a later one. Said once. */
void rs_link_distrust(const char *why);
/* In a forked child. */
void rs_link_child(void);

#endif
