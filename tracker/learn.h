/* SPDX-License-Identifier: MIT */
/* What a run shows of its segments (profile.c), and what a contract says of them (terms.c). Part of model.h; engine.lock. */
#ifndef RS_TRACKER_LEARN_H
#define RS_TRACKER_LEARN_H

#include "tracker/model.h"

/* profile.c */
struct rs_profile *rs_profile_of(struct rs_engine *e, const char *name);
struct rs_profile_range *rs_profile_read(struct rs_profile *p, const struct rs_spot *spot,
					 uint64_t off, uint64_t len, enum rs_class cls,
					 const char *reader);
void rs_profile_overwritten(struct rs_engine *e, const struct rs_alloc *a, const struct rs_ext *x,
			    const struct rs_writer *writer);
void rs_profile_retire(struct rs_engine *e, struct rs_segment *s);
/* Bytes and pieces of a claim where writes were seen before; added. */
void rs_profile_expected(const struct rs_claim *c, uint64_t *bytes, uint64_t *pieces);
/* Has it been seen to the end, so that what was not overwritten counts? */
int rs_profile_knows(const struct rs_profile_range *r);
/* Is a write expected at `off` of the claim's allocation? *until: lowered to where the answer changes. */
int rs_profile_expects(const struct rs_profile_range *r, uint64_t range_at, uint64_t off,
		       uint64_t *until);
/* NULL: nothing is learned. */
struct rs_alias_set *rs_profile_aliases(struct rs_engine *e, const char *name);
void rs_profile_forward(struct rs_engine *e, const struct rs_segment *s);
void rs_profile_write(struct rs_engine *e);
void rs_profile_fini(struct rs_engine *e);

/* terms.c */
struct rs_terms *rs_terms_find(struct rs_engine *e, const char *name);
const struct rs_term *rs_terms_at(const struct rs_terms *terms, const struct rs_spot *spot,
				  uint64_t off, int window, uint64_t *until);
uint64_t rs_terms_calls(const struct rs_segment *s);
int rs_terms_calls_fit(const struct rs_terms *terms, const struct rs_segment *s);
void rs_terms_fini(struct rs_engine *e);

#endif
