/* SPDX-License-Identifier: MIT */
/*
 * uthash as a guest may use it: its default ends the process when memory runs out; here a failed
 * insertion leaves the element out (hh.tbl == NULL) and the caller reports -ENOMEM. Nobody includes
 * <uthash.h> directly.
 */
#ifndef RS_TRACKER_HASH_H
#define RS_TRACKER_HASH_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#endif
