/* SPDX-License-Identifier: MIT */
/*
 * Rules that say what ranges of a program's own mean: which text, in which NVTX domain, is a step, a segment's forward,
 * its replay, or the name of memory. docs: README.md, "Rules for other ranges"; replayctl(1), MARKER RULES.
 *
 *	[domain default|any|"NAME"] KIND "PATTERN" [name "TEMPLATE"] [number "TEMPLATE"|count]
 *		[inside "PATTERN"] [during "PATTERN"] [until "PATTERN"]
 *
 * Rules are tried in the order in which they were read; the first that fits, its conditions included, is taken. This
 * module knows the rules and what they make of a text; which ranges are open is its callers' business, who get each
 * condition as the number of a context: a pattern whose matching ranges are counted.
 * Invariants: nothing is allocated after reading; rules are not changed after it. A rule with an error is left out.
 * Callers: shim (rules are read in one thread, asked by all, a scratch each), replayctl, the fuzzer.
 */
#ifndef RS_TRACKER_PATTERN_H
#define RS_TRACKER_PATTERN_H

#include "tracker/ere.h"

#define RS_PATTERN_RULES    64
#define RS_PATTERN_CONTEXTS 32
#define RS_PATTERN_FILES    16
#define RS_PATTERN_FILE	    (256u << 10) /* bytes of a file */
#define RS_PATTERN_TEMPLATE 128
#define RS_PATTERN_MARKER   160 /* bytes of a marker that a rule makes */

/* clang-format off */
#define RS_PATTERN_KINDS(X)                                                                        \
	X(STEP, "step")                                                                            \
	X(FORWARD, "forward")                                                                      \
	X(REPLAY, "replay")                                                                        \
	X(IGNORE, "ignore")                                                                        \
	X(STATE, "state")                                                                          \
	X(OUTPUT, "output")
/* clang-format on */

enum rs_pattern_kind {
	RS_PATTERN_NONE,
#define X(KIND, word) RS_PATTERN_##KIND,
	RS_PATTERN_KINDS(X)
#undef X
};

/* Which domains a rule or a context is about. "" is the default domain. */
struct rs_pattern_domain {
	uint8_t any;
	char name[64];
};

struct rs_pattern_rule {
	enum rs_pattern_kind kind;
	uint8_t builtin, count; /* count: of steps, one more than the step before */
	struct rs_pattern_domain domain;
	struct rs_ere *ere;
	char name[RS_PATTERN_TEMPLATE], number[RS_PATTERN_TEMPLATE]; /* "": none */
	int inside, during, until;				     /* contexts, or -1 */
	unsigned file, line;					     /* file: see rs_pattern_file */
	char text[RS_ERE_PATTERN + 1];
};

struct rs_pattern_context {
	struct rs_pattern_domain domain;
	struct rs_ere *ere;
	char text[RS_ERE_PATTERN + 1];
};

struct rs_patterns;

/* "FILE:LINE:COLUMN: what is wrong", or "FILE: why it cannot be read". */
typedef void rs_pattern_report(void *arg, const char *line);

/* Without rules; NULL without memory. */
struct rs_patterns *rs_patterns_create(void);
void rs_patterns_free(struct rs_patterns *p);
/* Rules of a text, changed meanwhile. Returns the number of errors; report may be NULL. */
unsigned rs_patterns_read(struct rs_patterns *p, const char *file, char *text, size_t len,
			  rs_pattern_report *report, void *arg);
/* The same of files, separated by ':'. */
unsigned rs_patterns_load(struct rs_patterns *p, const char *paths, rs_pattern_report *report,
			  void *arg);
/* The built-in rules, behind the others, unless a file has switched them off. */
void rs_patterns_builtin(struct rs_patterns *p);
const char *rs_patterns_builtin_text(void);

unsigned rs_patterns_count(const struct rs_patterns *p); /* of rules */
const struct rs_pattern_rule *rs_patterns_rule(const struct rs_patterns *p, unsigned rule);
const char *rs_pattern_file(const struct rs_patterns *p, const struct rs_pattern_rule *r);
const struct rs_pattern_context *rs_patterns_context(const struct rs_patterns *p, unsigned context);
/* Contexts that some rule's `during` asks for. */
uint32_t rs_patterns_during(const struct rs_patterns *p);

/* The rules and contexts that are about a domain, as bits. */
struct rs_pattern_bits {
	uint64_t rules;
	uint32_t contexts;
};
struct rs_pattern_bits rs_patterns_domain(const struct rs_patterns *p, const char *domain);
/* Those of them whose pattern fits the text. */
struct rs_pattern_bits rs_patterns_match(const struct rs_patterns *p, struct rs_pattern_bits among,
					 struct rs_ere_scratch *s, const char *text, size_t len);
/*
 * What a rule that fits makes of a text: "forward:NAME#NUMBER" and so on; "step:" where steps are counted, "" for
 * ignore. 0, or -EINVAL where the text gives it no usable name or number: then it does not fit after all.
 */
int rs_pattern_marker(const struct rs_pattern_rule *r, struct rs_ere_scratch *s, const char *text,
		      size_t len, char ret_marker[RS_PATTERN_MARKER]);

const char *rs_pattern_kind_name(enum rs_pattern_kind kind);
/* Which kind of marker the text is, or looks like, by itself, in the domains where that counts: README.md, "Marking segments". */
enum rs_pattern_kind rs_pattern_plain(const char *text);

#endif
