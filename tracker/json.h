/* SPDX-License-Identifier: MIT */
/*
 * A pull reader for JSON (RFC 8259): the caller asks for one token after the other.
 *
 * Bounded: no recursion, no allocation, nesting up to RS_JREAD_DEPTH, integers of 64 bits. Strings are decoded in
 * place, so the text is changed as it is read and must outlive what was read from it; with `keep` set it is left
 * alone and strings stay as they are written. The first error ends the reading: every later token is RS_J_ERROR.
 * Any byte sequence is accepted as input. No state of its own; any thread, one reader each.
 */
#ifndef RS_TRACKER_JSON_H
#define RS_TRACKER_JSON_H

#include <stddef.h>
#include <stdint.h>

#define RS_JREAD_DEPTH 32

enum rs_jtok {
	RS_J_ERROR,
	RS_J_END, /* of the text, after its one value */
	RS_J_OBJECT,
	RS_J_OBJECT_END,
	RS_J_ARRAY,
	RS_J_ARRAY_END,
	RS_J_KEY,
	RS_J_STRING,
	RS_J_INTEGER,
	RS_J_REAL, /* checked, its value is not given */
	RS_J_BOOL,
	RS_J_NULL,
};

struct rs_jread {
	char *text;
	size_t len, pos;
	uint8_t keep;
	/* of the last token */
	enum rs_jtok tok;
	const char *str; /* KEY, STRING; ends with a zero byte unless `keep` */
	size_t str_len;
	uint64_t number; /* INTEGER: its magnitude; BOOL: 0 or 1 */
	uint8_t negative;
	unsigned line, column; /* where it begins, from 1; columns in bytes */
	const char *error;     /* static text, or NULL */
	/* private */
	size_t line_at;
	unsigned lines;
	unsigned depth;
	uint32_t in_object; /* bit d: at depth d is an object */
	uint8_t expects;
};

void rs_jread_begin(struct rs_jread *r, char *text, size_t len);
enum rs_jtok rs_jread_next(struct rs_jread *r);
/*
 * A regular file of at most `most` bytes, whole, into memory that is the caller's. 0, -ENODEV (not a regular file), -EFBIG,
 * -ENOMEM, or what the system says; errno may change.
 */
int rs_jread_file(const char *path, size_t most, char **ret_text, size_t *ret_size);
/* After a token that begins a value: to its last token. 0, or -EINVAL. */
int rs_jread_skip(struct rs_jread *r);
/* The last token is an error from now on, for a reason of the caller's. Returns -EINVAL. */
int rs_jread_fail(struct rs_jread *r, const char *why);
int rs_jread_is(const struct rs_jread *r, const char *text); /* of a KEY or STRING */

#endif
