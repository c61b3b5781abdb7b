/* SPDX-License-Identifier: MIT */
/*
 * A program started from inside somebody else's process, which must not notice: no signal when it ends, nothing for a
 * wait() of its own to find, no atfork handler, no descriptor, mask, handler or variable of it left behind.
 *
 * Callers: one thread at a time. The calling thread stands still until the program has been executed.
 */
#ifndef RS_SHIM_SPAWN_H
#define RS_SHIM_SPAWN_H

#include <sys/types.h>

/*
 * Execute path (absolute) with standard streams on /dev/null. 0 or -errno; -EBUSY: orphans would become children of this
 * process, which is or acts as their init. *ret_helper: to be given to rs_spawn_reap, also after a failure; 0: nothing is.
 */
int rs_spawn_orphan(const char *path, char *const *argv, char *const *env, pid_t *ret_helper);
/* 1: it is gone for good. Never blocks. */
int rs_spawn_reap(pid_t helper);

#endif
