/* SPDX-License-Identifier: MIT */
/*
 * The run's directory: records.jsonl (one line a replay) and events.jsonl (begin, findings, stats, end).
 *
 * Every line is one write(2) on an O_APPEND descriptor, so a process that is killed leaves a valid
 * prefix and lines of several threads do not mix. Nothing is buffered. A failed write is counted,
 * never fatal (quiet.h); after one that was cut short the next line starts on a line of its own. The program may close our
 * descriptors (ownfd.h). After fork the child closes nothing and writes nothing (the shim is inert there).
 * Callers: engine (records, findings), shim (begin, stats, end); any thread; no locks.
 */
#ifndef RS_TRACKER_RECORDS_H
#define RS_TRACKER_RECORDS_H

#include <stddef.h>
#include <stdint.h>

struct rs_records;

/* Creates dir (and its parents) with mode 0700 as needed. -EEXIST: another process has written there. -errno on failure. */
int rs_records_open(const char *dir, struct rs_records **ret_records);
void rs_records_close(struct rs_records *r);
uint64_t rs_records_lost(const struct rs_records *r); /* lines that could not be written */
int rs_records_error(const struct rs_records *r);     /* -errno of the first of them, or 0 */

/* A line under construction: a fixed buffer; text that does not fit is cut at a value, never inside. */
struct rs_json {
	char text[3072];
	size_t len;
	uint8_t depth_first; /* bit d: the object or array at depth d has no member yet */
	uint8_t depth;
	uint8_t skipped; /* brackets left out for lack of room: their contents and ends are, too */
	uint8_t overflow;
};

void rs_json_begin(struct rs_json *j); /* {"v":1 */
void rs_json_str(struct rs_json *j, const char *key,
		 const char *value); /* key NULL: array element */
void rs_json_u64(struct rs_json *j, const char *key, uint64_t value);
void rs_json_bool(struct rs_json *j, const char *key, int value);
void rs_json_hex(struct rs_json *j, const char *key, uint64_t value); /* "0x..." */
void rs_json_open(struct rs_json *j, const char *key, char bracket);  /* '{' or '[' */
void rs_json_close(struct rs_json *j, char bracket);		      /* '}' or ']' */

enum rs_record_file { RS_RECORD_REPLAYS, RS_RECORD_EVENTS };
/* Closes every open bracket, adds the newline, writes. */
void rs_records_write(struct rs_records *r, enum rs_record_file file, struct rs_json *j);

#endif
