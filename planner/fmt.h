/* SPDX-License-Identifier: MIT */
/*
 * Numbers with units, and text of unknown origin, for people. Each rs_fmt_ function that returns a
 * string writes into the caller's buffer. No state.
 */
#ifndef RS_PLANNER_FMT_H
#define RS_PLANNER_FMT_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

struct rs_fmt {
	char text[40];
};

const char *rs_fmt_count(struct rs_fmt *f, uint64_t n);			   /* 1,204,331 */
const char *rs_fmt_bytes(struct rs_fmt *f, uint64_t n);			   /* 128 B, 1.25 GiB */
const char *rs_fmt_ns(struct rs_fmt *f, uint64_t ns);			   /* 12.3 us */
const char *rs_fmt_plural(struct rs_fmt *f, uint64_t n, const char *word); /* 1 error, 2 errors */

/* Names come from the program: what could steer a terminal is written as \xNN. Returns the width. */
int rs_fmt_text(FILE *out, const char *text);
/* A path as JSON has it: bytes that are no UTF-8 are taken for Latin-1. */
json_t *rs_fmt_json(const char *text);
/* One word, or an argv, as a shell would take it. */
void rs_fmt_shell(FILE *out, const char *word);
void rs_fmt_argv(FILE *out, const json_t *argv);

#endif
