/* SPDX-License-Identifier: MIT */
/*
 * Extended regular expressions for texts that a program gives us, such as the names of its NVTX ranges.
 *
 * Not regcomp(3): that one follows the program's locale, allocates and locks while it matches, and takes exponential
 * time or memory for some patterns. This one is linear in text and pattern, allocates when it compiles only, and knows
 * bytes. The syntax is POSIX's, without back-references, collating symbols and equivalence classes; a pattern always has
 * to match the whole text. Where several matches are possible, the earlier alternative and the longer repetition is
 * taken (POSIX may split such a text otherwise between its groups).
 * Pure functions of their arguments; any thread, a scratch each.
 */
#ifndef RS_TRACKER_ERE_H
#define RS_TRACKER_ERE_H

#include <stddef.h>
#include <stdint.h>

#define RS_ERE_PATTERN 512 /* bytes of a pattern */
#define RS_ERE_TEXT    2048u
#define RS_ERE_GROUPS  9
#define RS_ERE_CODES   512u
#define RS_ERE_REPEAT  255

struct rs_ere;

struct rs_ere_span {
	int16_t from, to; /* -1: the group took no part */
};

/* What one match needs; contents mean nothing in between. */
struct rs_ere_scratch {
	struct {
		uint16_t n, code[RS_ERE_CODES];
		struct rs_ere_span group[RS_ERE_CODES][RS_ERE_GROUPS];
	} list[2];
	uint16_t mark[RS_ERE_CODES]; /* the round in which a code was reached */
	struct {
		uint16_t code;
		int16_t old; /* to be put back into `slot` */
		uint8_t slot, restores;
	} stack[2 * RS_ERE_CODES];
};

/*
 * 0, or -EINVAL and -E2BIG with *ret_why (static text) and *ret_at, the byte of the pattern that is to blame; -ENOMEM.
 */
int rs_ere_compile(const char *pattern, size_t len, struct rs_ere **ret_ere, size_t *ret_at,
		   const char **ret_why);
void rs_ere_free(struct rs_ere *e);
unsigned rs_ere_groups(const struct rs_ere *e);

/* 1 and the groups, [0] being the whole text; 0: no match, or a text of more than RS_ERE_TEXT bytes. */
int rs_ere_match(const struct rs_ere *e, struct rs_ere_scratch *s, const char *text, size_t len,
		 struct rs_ere_span ret_group[RS_ERE_GROUPS + 1]);

#endif
