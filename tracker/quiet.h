/* SPDX-License-Identifier: MIT */
/*
 * Writing from inside somebody else's program: a full disk, a file size limit or a closed pipe is an
 * error code, never a signal that ends the process (SIGXFSZ and SIGPIPE do by default).
 * Callers: records, shim/log.c; any thread, signal handlers too. No locks, no state.
 */
#ifndef RS_TRACKER_QUIET_H
#define RS_TRACKER_QUIET_H

#include <stddef.h>
#include <sys/types.h>

/* As write(2), errno included, but it is not interrupted, raises no signal and swallows none of others. */
ssize_t rs_quiet_write(int fd, const void *text, size_t len);

#endif
