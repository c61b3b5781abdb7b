/* SPDX-License-Identifier: MIT */
/*
 * Messages to the user: one line, one write(2), on stderr or in the log file.
 *
 * Safe in a signal handler, under any lock and in a forked child: a stack buffer, no stdio, no malloc.
 * At most RS_LOG_MAX lines in a process' life; then one line says so. errno is kept.
 * Formats: %s %c %d %u %lu %lx %%; nothing else.
 */
#ifndef RS_SHIM_LOG_H
#define RS_SHIM_LOG_H

#define RS_LOG_MAX 100

enum rs_log_level { RS_LOG_ERROR, RS_LOG_WARN, RS_LOG_INFO, RS_LOG_DEBUG };

/* Before the program runs: is there a stderr? */
void rs_log_loaded(void);
/* file: where to, NULL for stderr; level: the least important that is written; rank: for the prefix. -errno: stderr, too. */
int rs_log_setup(const char *file, enum rs_log_level level, int rank);
__attribute__((format(printf, 2, 3))) void rs_log(enum rs_log_level level, const char *fmt, ...);
/* Not counted, not filtered. */
__attribute__((format(printf, 1, 2))) void rs_log_say(const char *fmt, ...);

#endif
