/* SPDX-License-Identifier: MIT */
/*
 * Documents in JSON, read by their levels: one function for each object, which asks for its keys and values. Where
 * the reader stands is kept as a path of names and numbers, so that what is wrong is told with its line, column and field.
 *
 * The first error stays; every function after it only passes it on. Callers: contract.c, contract_alias.c, planfile.c. No
 * state of its own.
 */
#ifndef RS_TRACKER_JDOC_H
#define RS_TRACKER_JDOC_H

#include <stddef.h>
#include <stdint.h>

#include "tracker/json.h"

#define RS_JDOC_LEVELS 8

struct rs_jdoc_error {
	unsigned line, column; /* 0: of the file as a whole */
	char field[96];	       /* as "segments[2].state[0].offset" */
	char text[160];
};

struct rs_jdoc {
	struct rs_jread j;
	struct rs_jdoc_error *error;
	void *to; /* what is being read into: the caller's */
	/* the way to here: a name, or an element's number */
	struct {
		const char *name;
		unsigned index;
	} path[RS_JDOC_LEVELS];
	unsigned depth;
	int no_memory;
};

/* `keep`: strings are passed over, not read; the text stays as it is. */
void rs_jdoc_begin(struct rs_jdoc *d, char *text, size_t size, int keep, void *to,
		   struct rs_jdoc_error *error);

/* At the last token; field NULL: the element or document itself. -EINVAL. */
int rs_jdoc_bad(struct rs_jdoc *d, const char *field, const char *why);
int rs_jdoc_no_memory(struct rs_jdoc *d); /* -ENOMEM */
/* What a function returns after the one or the other. */
int rs_jdoc_failed(const struct rs_jdoc *d);

/* All below: 0, or -EINVAL with the error told. ret_x is untouched then. */
int rs_jdoc_next(struct rs_jdoc *d);
int rs_jdoc_want(struct rs_jdoc *d, const char *field, enum rs_jtok tok, const char *what);
int rs_jdoc_text(struct rs_jdoc *d, const char *field, const char **ret);
int rs_jdoc_flag(struct rs_jdoc *d, const char *field, uint8_t *ret);
int rs_jdoc_number(struct rs_jdoc *d, const char *field, uint64_t most, uint64_t *ret);
/* "0x" and up to 16 hex digits; _is_hex: of the token that has been read, as an array's element. */
int rs_jdoc_hex(struct rs_jdoc *d, const char *field, uint64_t *ret);
int rs_jdoc_is_hex(struct rs_jdoc *d, const char *field, uint64_t *ret);
/* One of `n` names; its place. */
int rs_jdoc_name(struct rs_jdoc *d, const char *field, const char *const *names, unsigned n,
		 uint8_t *ret);
/* A value that nobody needs. */
int rs_jdoc_skip(struct rs_jdoc *d);

/* A key, or the object's end: 1, 0, or an error. *ret: which of the known ones, or n; each at most once (`seen`). */
int rs_jdoc_key(struct rs_jdoc *d, const char *const *known, unsigned n, uint32_t *seen,
		unsigned *ret);
/* Those of the `n` known ones that are in `must` have been seen. */
int rs_jdoc_seen(struct rs_jdoc *d, const char *const *known, unsigned n, uint32_t must,
		 uint32_t seen);

/* An object as a member: its fields are named as parts of it, until its end. */
int rs_jdoc_enter(struct rs_jdoc *d, const char *field);
void rs_jdoc_leave(struct rs_jdoc *d);
/* An array; fn is called with each element's first token read. */
typedef int rs_jdoc_fn(struct rs_jdoc *d, void *arg);
int rs_jdoc_each(struct rs_jdoc *d, const char *field, rs_jdoc_fn *fn, void *arg);

/*
 * A file of at most `most` bytes (which `too_large` says in words), whole. Also what the system says, with error->text. The
 * text is the caller's.
 */
int rs_jdoc_load(const char *path, size_t most, const char *too_large, char **ret_text,
		 size_t *ret_size, struct rs_jdoc_error *error);

#endif
