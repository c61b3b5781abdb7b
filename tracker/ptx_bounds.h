/* SPDX-License-Identifier: MIT */
/*
 * Affine byte bounds of a kernel's accesses: what is left of the analysis for use at launches.
 *
 * An access group is one polynomial (its byte offset from a parameter word) with a set of constant
 * offsets, under one context: the comparisons that hold where the access is. At launch the
 * polynomials become linear forms over thread, block and loop indices with plain coefficients.
 *
 * Invariants: everything is immutable after the analysis and hangs off the module's memory; atoms
 * are numbered anew and `order` evaluates an atom after those it is made of (what a cycle of loops
 * leaves open counts as unbounded). Evaluation takes a fixed amount of stack and no memory.
 * Callers: ptx_access.c builds, rs_ptx_access_eval reads; no locks.
 */
#ifndef RS_TRACKER_PTX_BOUNDS_H
#define RS_TRACKER_PTX_BOUNDS_H

#include "tracker/ptx_access.h"
#include "tracker/ptx_value.h"

#define RS_BOUND_ATOMS 400 /* of one kernel */

/* A comparison that is true, resting on needs. */
struct rs_bound_cmp {
	const struct rs_aff_poly *a, *b;
	const struct rs_need *const *needs;
	uint8_t nneeds, cmp, is_unsigned;
	uint8_t chain; /* one of the conditions on which the access depends, exactly */
};

/* The condition under which a loop goes on, seen from its test. */
struct rs_bound_test {
	const struct rs_bound_cmp *cmps;
	uint8_t ncmps;
	uint8_t exact; /* the comparisons are the whole condition */
};

struct rs_bound_atom {
	uint8_t kind, how, nargs;
	uint8_t single; /* LOOP: leaves only by its one test */
	uint8_t ntests;
	int64_t a, b, lo, hi;
	const struct rs_aff_poly *arg[RS_AFF_MAX_ARGS];
	const struct rs_bound_test *tests;
};

/* A loop around an access. */
struct rs_bound_round {
	uint16_t atom;
	uint8_t after; /* the access lies behind the loop's test */
};

struct rs_bound_context {
	const struct rs_bound_cmp *cmps; /* outermost first */
	const struct rs_bound_round *rounds;
	uint8_t ncmps, nrounds;
	uint8_t exact; /* executed exactly where the chain and the loops say */
	const struct rs_bound_context *older; /* of the same kernel, and not equal to this one */
};

struct rs_bound_run {
	int64_t offset, bytes;
};

struct rs_bound_group {
	const struct rs_aff_poly *p; /* byte offset, the word's own value included as -1 * PARAM */
	const struct rs_bound_context *context;
	const struct rs_need *needs;
	const struct rs_bound_run *runs; /* sorted, disjoint, not touching */
	uint16_t nneeds, nruns;
	uint8_t no_dense;
};

struct rs_bound_side {
	const struct rs_bound_group *groups;
	const uint16_t *order; /* atoms to evaluate */
	uint32_t ngroups, norder;
	uint8_t unknown; /* an access that could not be described */
};

/* Bytes of the parameter block. */
struct rs_bound_bytes {
	uint32_t at, n;
};

struct rs_ptx_bounds {
	const struct rs_bound_atom *atoms;
	uint32_t natoms, ndecides;
	const struct rs_bound_bytes *decides; /* what the atoms read of a launch's parameters */
	struct rs_bound_side (*words)[2];     /* by word: reads, writes */
};

/* ptx_linear.c: forms at one launch. */
typedef __int128 rs_wide;

#define RS_INF	      ((int64_t)1 << 62)
#define RS_FORM_TERMS 20
#define RS_FORM_CONS  24

struct rs_range {
	int64_t lo, hi;
};

struct rs_form {
	rs_wide lo, hi; /* constant part, an interval where products of ranges were left */
	uint8_t n, bad;
	struct rs_form_term {
		uint16_t atom;
		int64_t coef;
	} t[RS_FORM_TERMS];
};

/* d <= 0 */
struct rs_form_cons {
	struct rs_form d;
	uint8_t chain;
};

struct rs_launch_eval {
	const struct rs_ptx_bounds *b;
	const struct rs_ptx_launch *launch;
	struct rs_range range[RS_BOUND_ATOMS];
	int64_t divisor[RS_BOUND_ATOMS]; /* FLOOR, TRUNC, MAGIC: proved to be x / divisor; or 0 */
	uint8_t valid[RS_BOUND_ATOMS];	 /* MIN, MAX, EXTEND: the same on the integers */
	uint8_t whole[RS_BOUND_ATOMS];	 /* LOOP: every thread makes exactly the iterations 0..hi */
	struct rs_form_cons cons[RS_FORM_CONS];
	unsigned ncons;
	uint8_t vague[RS_BOUND_ATOMS]; /* no more is known than the range of its type */
	uint32_t budget;	       /* eliminations left: work is bounded, bounds get coarser */
	uint8_t strict;		       /* vague ranges are no bounds */
	uint8_t exact;		       /* of the context's comparisons */
	uint8_t never;		       /* the context's comparisons cannot all hold */
	const struct rs_bound_context *context;
};

void rs_form_of(const struct rs_launch_eval *e, const struct rs_aff_poly *p, struct rs_form *f);
void rs_form_add(struct rs_form *f, const struct rs_form *g, int64_t k);
int64_t rs_form_coef(const struct rs_form *f, uint16_t atom);
rs_wide rs_form_box(const struct rs_launch_eval *e, const struct rs_form *f, int upper);
/* Greatest value under the constraints; at least RS_WIDE_INF when there is no bound. */
rs_wide rs_form_sup(struct rs_launch_eval *e, const struct rs_form *f);
rs_wide rs_form_inf(struct rs_launch_eval *e, const struct rs_form *f);
#define RS_WIDE_INF ((rs_wide)1 << 90)

/* ptx_launch.c */
void rs_launch_atom(struct rs_launch_eval *e, uint16_t atom);
void rs_launch_context(struct rs_launch_eval *e, const struct rs_bound_context *c);
int rs_launch_needs(struct rs_launch_eval *e, const struct rs_need *needs, unsigned n);

/* ptx_dense.c: is every byte of the union of the runs at form f written? Then its exact interval. */
int rs_dense(const struct rs_launch_eval *e, const struct rs_form *f,
	     const struct rs_bound_run *runs, unsigned nruns, int64_t *ret_lo, int64_t *ret_hi);

#endif
