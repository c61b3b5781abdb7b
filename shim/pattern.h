/* SPDX-License-Identifier: MIT */
/*
 * What the ranges of the program mean: its own markers, or by rules (tracker/pattern.h). One answer for each text, kept,
 * so that a range that comes a million times is looked up and not matched; and how often each was there.
 *
 * Invariants: rules are read once, before observing starts. What an answer depends on besides its text (conditions) is
 * asked at each use. Texts beyond the first SEEN_MAX are matched anew each time.
 * Locks: one mutex, a leaf, around new texts and domains; looking up takes none.
 */
#ifndef RS_SHIM_PATTERN_H
#define RS_SHIM_PATTERN_H

#include "shim/shim.h"
#include "tracker/pattern.h"

/* An NVTX domain. The same name is the same domain. */
struct rs_domain {
	struct rs_pattern_bits bits; /* rules and conditions about it */
	uint32_t number;
	uint8_t plain;	  /* markers count as they are: the default domain, and our own */
	uint8_t followed; /* anything of it matters */
	char name[64];
	struct rs_domain *next;
};

extern struct rs_domain rs_domain_default, rs_domain_own;

static inline int rs_domain_followed(const struct rs_domain *d)
{
	return __atomic_load_n(&d->followed, __ATOMIC_RELAXED);
}

/* By name; one that nobody follows without memory, or where there are too many. */
struct rs_domain *rs_domain_get(const char *name);

/* Read the rules of REPLAYSHIM_MARKERS. Before observing starts. */
void rs_pattern_start(void);
/* Write how often each range was there. */
void rs_pattern_finish(void);

enum { RS_RULE_NONE = -1, RS_RULE_PLAIN = -2 };

struct rs_tally;

/* What a text may be: as rules say, in order, the last without a condition. */
struct rs_choice {
	int16_t rule; /* or one of the two above */
	uint8_t kind; /* enum rs_pattern_kind; never of memory */
	uint8_t builtin, count;
	int8_t inside, during, until; /* contexts, or -1 */
	struct rs_tally *tally;	      /* NULL: not counted */
	const char *marker;	      /* NULL: the text itself */
};

struct rs_reading {
	const struct rs_choice *choice;
	uint32_t contexts; /* that the text belongs to */
	const char *marker;
	struct rs_choice own; /* of a text that is not kept */
	char buffer[RS_PATTERN_MARKER];
};

/* inside: contexts of the thread's open ranges. */
void rs_pattern_read(const struct rs_domain *d, const char *text, uint32_t inside,
		     struct rs_reading *ret);
/* A region's name as a marker ("state:NAME"); buffer is where a rule's answer goes. */
const char *rs_pattern_region(const struct rs_domain *d, const char *name,
			      char buffer[RS_PATTERN_MARKER]);
/* What conditions of kind `during` ask for: ranges of a context that are open in any thread. */
void rs_pattern_opened(uint32_t contexts);
void rs_pattern_closed(uint32_t contexts);
/* The same of a range of the whole process, by its id. */
void rs_pattern_started(uint64_t id, uint32_t contexts);
void rs_pattern_ended(uint64_t id);
/* The program marks its own segments inside of what the built-in rules took for one: they hold their tongue from now on. */
void rs_pattern_quiet(void);

/* --- tally.c ------------------------------------------------------------------------------------ */

/* One for each domain, rule and shape of text (its digits left out); NULL: there are too many. Pattern.c's lock held. */
struct rs_tally *rs_tally_get(const struct rs_domain *d, const struct rs_choice *c,
			      const char *text, size_t len);
void rs_tally_count(struct rs_tally *t, const struct rs_patterns *p);
void rs_tally_write(const struct rs_patterns *p);
uint64_t rs_tally_left_out(void);

#endif
