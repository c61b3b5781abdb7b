/* SPDX-License-Identifier: MIT */
/*
 * Abstract values of the registers of a kernel, by a walk of its dominator tree.
 *
 * The walk is repeated until nothing changes: which phis are induction variables is first assumed
 * (phi = start + step * iteration) and kept only if the value that comes round the loop proves it,
 * all assumptions holding at once; where values may come from (origin) grows to its fixed point.
 * The results of the last round are the ones to use.
 *
 * Registers that are read before they are written hold nothing defined; such a value as the other
 * side of a guarded definition is left out.
 * Callers: ptx_access.c. One thread, no locks. Memory: rs_aff_mem.
 */
#ifndef RS_TRACKER_PTX_VALUE_H
#define RS_TRACKER_PTX_VALUE_H

#include "tracker/ptx_flow.h"

enum rs_opcode_what {
	RS_WHAT_UNKNOWN,
	RS_WHAT_QUIET,
	RS_WHAT_VALUE,
	RS_WHAT_LOAD,
	RS_WHAT_STORE,
	RS_WHAT_ATOM,
	RS_WHAT_RED,
	RS_WHAT_COPY,
	RS_WHAT_CALL,
	RS_WHAT_MATRIX,
};

/* What must hold at launch for a value to be what its polynomial says: lo <= p <= hi. */
struct rs_need {
	const struct rs_aff_poly *p;
	int64_t lo, hi;
};

struct rs_needs {
	uint16_t n;
	uint16_t id[]; /* ascending */
};

#define RS_MAX_NEEDS 16

enum rs_cmp { RS_CMP_EQ, RS_CMP_NE, RS_CMP_LT, RS_CMP_LE, RS_CMP_GT, RS_CMP_GE };

enum rs_pred_kind {
	RS_PRED_UNKNOWN,
	RS_PRED_CONST, /* value in cmp */
	RS_PRED_CMP,
	RS_PRED_AND,
	RS_PRED_OR,
	RS_PRED_NOT,
	RS_PRED_XOR,
};

struct rs_pred {
	uint8_t kind, cmp, is_unsigned;
	const struct rs_pred *x, *y;
	const struct rs_aff_poly *a, *b;
	const struct rs_needs *needs;
};

struct rs_val {
	const struct rs_aff_poly *p; /* NULL: not an integer of 32 or 64 bits that is followed */
	const struct rs_needs *needs;
	const struct rs_pred *pred;
	struct rs_aff_origin origin;
	uint8_t undefined;
};

struct rs_phi_state {
	const struct rs_val **in; /* by predecessor */
	const struct rs_aff_poly *step;
	const struct rs_needs *needs; /* of the step, all loop-invariant */
	struct rs_aff_origin origin;
	uint8_t is_induction, banned, tries;
	uint32_t index;
};

#define RS_MAX_WORDS 63

struct rs_vals {
	struct rs_flow flow;
	struct rs_aff aff;
	struct rs_aff_mem *mem;
	uint8_t *what; /* by step: enum rs_opcode_what */
	const struct rs_val **cur;
	const struct rs_pred **branch; /* by block: predicate of its conditional end, last round */
	uint32_t word[RS_MAX_WORDS];   /* offsets of 8-byte words loaded */
	uint32_t nwords;
	struct rs_need *needs;
	uint32_t nneeds, cap_needs;
	struct rs_aff_origin stored; /* of all values put into shared or local memory */
	uint32_t block, step;	     /* where the walk is */
	uint8_t changed, last_resort;
	/* Called for every step with the values of its operands at hand. */
	void (*on_step)(struct rs_vals *v, const struct rs_flow_step *step);
	void *opaque;
};

/* Run the walk to its fixed point. on_round is called before each round. */
void rs_vals_run(struct rs_vals *v, void (*on_round)(struct rs_vals *v));

/* Value of an operand of the current step; never NULL. */
const struct rs_val *rs_vals_operand(struct rs_vals *v, const struct rs_ptx_operand *op,
				     unsigned width);
const struct rs_val *rs_vals_reg(struct rs_vals *v, uint32_t reg);
/* Address operand: base + addend. */
const struct rs_val *rs_vals_address(struct rs_vals *v, const struct rs_ptx_operand *op);
const struct rs_pred *rs_vals_guard(struct rs_vals *v, const struct rs_flow_step *step);

/* Origin of the 8-byte parameter word at an offset. */
struct rs_aff_origin rs_vals_word(struct rs_vals *v, uint32_t offset);

enum rs_opcode_what rs_opcode_what(const char *opcode);

/* ptx_eval.c: the value that a VALUE step gives its destination. */
struct rs_val rs_eval(struct rs_vals *v, const struct rs_flow_step *step);

/* ptx_step.c */
void rs_vals_step(struct rs_vals *v, const struct rs_flow_step *step);

/* Shared by the files of the walk. `key` names the place that makes an unknown. */
const struct rs_val *rs_vals_keep(struct rs_vals *v, struct rs_val val);
struct rs_val rs_val_unknown_at(struct rs_vals *v, unsigned width, uint64_t key, int64_t lo,
				int64_t hi, struct rs_aff_origin origin);
struct rs_val rs_val_param(struct rs_vals *v, unsigned width, uint32_t offset, unsigned type);
struct rs_val rs_val_unknown(struct rs_vals *v, unsigned width, unsigned slot, int64_t lo,
			     int64_t hi, struct rs_aff_origin origin);
struct rs_val rs_val_choice(struct rs_vals *v, uint64_t key, const struct rs_val *const *in,
			    unsigned n);
const struct rs_needs *rs_needs_join(struct rs_vals *v, const struct rs_needs *a,
				     const struct rs_needs *b);
const struct rs_needs *rs_needs_add(struct rs_vals *v, const struct rs_needs *set,
				    const struct rs_aff_poly *p, int64_t lo, int64_t hi);
struct rs_aff_origin rs_origin_join(struct rs_aff_origin a, struct rs_aff_origin b);
unsigned rs_type_width(unsigned type); /* 32, 64, or 0 */
unsigned rs_reg_type(const struct rs_vals *v, const struct rs_ptx_operand *op);
int64_t rs_type_lo(unsigned type);
int64_t rs_type_hi(unsigned type);

#endif
