/* SPDX-License-Identifier: MIT */
/* The set of rules, between pattern_file.c, which reads it, and pattern.c, which asks it. */
#ifndef RS_TRACKER_PATTERN_PRIV_H
#define RS_TRACKER_PATTERN_PRIV_H

#include "tracker/pattern.h"

#define RS_PATTERN_SPARE 4 /* of rules and contexts, for the built-in ones */

struct rs_patterns {
	unsigned n, ncontexts, nfiles;
	uint8_t builtin_off;
	char *file[RS_PATTERN_FILES + 1]; /* and the built-in rules */
	struct rs_pattern_rule rule[RS_PATTERN_RULES];
	struct rs_pattern_context context[RS_PATTERN_CONTEXTS];
};

#endif
