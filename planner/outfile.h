/* SPDX-License-Identifier: MIT */
/*
 * A file that a command was told to write: whole or not at all. What is no file (/dev/stdout, a pipe) is written to and
 * never replaced, a link is followed. Callers: commands; no state.
 */
#ifndef RS_PLANNER_OUTFILE_H
#define RS_PLANNER_OUTFILE_H

/* text, and a newline. replace: also where a file is already; else that is -EEXIST. 0 or -errno. */
int rs_outfile_write(const char *path, const char *text, int replace);
/* 1: a file is there, which writing would replace. */
int rs_outfile_exists(const char *path);
/* Whether it could be written now, as far as that can be told without doing so. 0 or -errno. */
int rs_outfile_check(const char *path, int replace);

#endif
