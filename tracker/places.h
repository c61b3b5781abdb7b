/* SPDX-License-Identifier: MIT */
/* Places of a forward and the pairs of them that reach the same bytes: see places.c. engine.lock. */
#ifndef RS_TRACKER_PLACES_H
#define RS_TRACKER_PLACES_H

#include <stdint.h>

struct rs_alias;
struct rs_engine;
struct rs_json;
struct rs_segment;
struct rs_shared;

/* The n-th call of a forward, through which of its arguments, in which of several ranges. */
struct rs_place {
	uint32_t call;
	uint16_t slot, piece;
};

/* Hashed as a whole: no padding. */
struct rs_pair {
	struct rs_place first, other;
};
_Static_assert(sizeof(struct rs_pair) == 16, "struct rs_pair is a hash key");

/* Those that a run has seen, or that a contract names. */
struct rs_alias_set {
	struct rs_shared *all;
	uint8_t cut;	  /* there are more */
	uint8_t complete; /* contract: there are no others */
};

void rs_places_free(struct rs_alias_set *set);
/* What a contract says. 0, -EINVAL (one place twice), -ENOMEM. */
int rs_places_expect(struct rs_alias_set *set, const struct rs_alias *alias);
/* The forward is over, and has made the calls that its contract knows. */
void rs_places_over(struct rs_engine *e, struct rs_segment *s);
void rs_places_write(struct rs_engine *e, const char *segment, const struct rs_alias_set *set);
void rs_places_tell(struct rs_json *j, const struct rs_segment *s);

#endif
