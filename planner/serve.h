/* SPDX-License-Identifier: MIT */
/*
 * The planner process: one for each user and node, serving all programs of the user that run under the library.
 *
 * planner/README.md tells what it does for them; tracker/wire.h is how they talk. Callers: replayctl planner.
 */
#ifndef RS_PLANNER_SERVE_H
#define RS_PLANNER_SERVE_H

#include <stdint.h>

struct rs_serve_options {
	const char *path;   /* of the socket */
	uint64_t budget;    /* of each device; 0: none is given */
	uint64_t linger_ns; /* without programs, until it leaves; UINT64_MAX: it stays */
};

/*
 * Be the user's planner: the directory is made and checked, the lock beside the socket taken, the socket opened. 0 and both
 * descriptors; -EBUSY: there is one already; else -errno and *ret_why, a sentence's beginning.
 */
int rs_serve_elect(const char *path, int *ret_lock, int *ret_listen, const char **ret_why);
/* Go into the background: the caller's process ends with status 0, its grandchild goes on. 0 or -errno. */
int rs_serve_detach(int lock, int listen);
/* Until a signal, a request to stop, or nobody has been there for long enough. The socket's file is removed. 0 or -errno. */
int rs_serve_run(const struct rs_serve_options *options, int lock, int listen);

#endif
