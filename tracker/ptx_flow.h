/* SPDX-License-Identifier: MIT */
/*
 * Control flow of one PTX kernel for the access analysis: bodies of called functions in line,
 * basic blocks, dominators, natural loops, and the places where registers merge (phis).
 *
 * Registers of all inlined frames share one numbering; call parameters are registers too ("slots").
 * Invariants: block 0 is an empty entry without predecessors; blocks are numbered in reverse
 * postorder and unreachable code is dropped; a block that is the target of a retreating edge from
 * something it does not dominate makes no loop (irreducible), its phis are merely unknown.
 * Callers: the analysis, one thread, no locks. Memory: the analysis' rs_aff_mem.
 */
#ifndef RS_TRACKER_PTX_FLOW_H
#define RS_TRACKER_PTX_FLOW_H

#include "tracker/ptx.h"
#include "tracker/ptx_affine.h"

enum rs_flow_kind {
	RS_FLOW_PLAIN,
	RS_FLOW_JUMP,	/* to `target`; conditional when `pred` >= 0 */
	RS_FLOW_SWITCH, /* brx.idx through `table` */
	RS_FLOW_END,	/* the thread ends; conditional when `pred` >= 0 */
};

struct rs_flow_step {
	const struct rs_ptx_insn *insn; /* NULL: the end of the kernel */
	const struct rs_ptx_targets *table;
	uint32_t frame;
	int32_t target; /* step index */
	int32_t pred;	/* guarding register, numbered, or -1 */
	uint8_t negate;
	uint8_t kind;
};

struct rs_flow_frame {
	const struct rs_ptx_func *func;
	const struct rs_ptx_insn *call;	  /* NULL: the kernel */
	uint32_t reg_base, caller, first; /* first: step index of its body */
};

/* A parameter variable's bytes, as a register. */
struct rs_flow_slot {
	const struct rs_ptx_var *var;
	uint32_t frame, reg;
	uint64_t offset;
	uint32_t bytes;
	uint8_t mixed; /* also accessed in another size: its content is not followed */
};

struct rs_flow_phi {
	uint32_t reg, block;
	struct rs_flow_phi *next; /* of the same block */
	void *state;		  /* the analysis' */
};

struct rs_flow_block {
	uint32_t first, last; /* steps [first, last) */
	uint32_t *succ, *pred;
	uint32_t nsucc, npred; /* succ[0] is the taken side of a conditional jump */
	uint32_t idom;
	uint32_t child, sibling; /* dominator tree, children in increasing number */
	int32_t loop;		 /* innermost, or -1 */
	uint8_t ends;		 /* a thread may end here */
	uint8_t retreating;	 /* target of a retreating edge */
	struct rs_flow_phi *phis;
};

struct rs_flow_loop {
	uint32_t header;
	int32_t parent;
};

struct rs_flow {
	struct rs_aff_mem *mem;
	const struct rs_ptx *ptx;
	struct rs_flow_step *steps;
	uint32_t nsteps, cap_steps;
	struct rs_flow_frame *frames;
	uint32_t nframes;
	struct rs_flow_slot *slots;
	uint32_t nslots, cap_slots;
	uint32_t nregs;
	struct rs_flow_block *blocks;
	uint32_t nblocks;
	struct rs_flow_loop *loops;
	uint32_t nloops;
	uint32_t nphis;
	const char *why; /* structure that could not be followed */
	uint32_t why_line;
};

void rs_flow_build(struct rs_flow *f, struct rs_aff_mem *mem, const struct rs_ptx *ptx,
		   const struct rs_ptx_func *func);

/* Stages of rs_flow_build, in their own files. */
void rs_flow_steps(struct rs_flow *f, const struct rs_ptx_func *func);
void rs_flow_blocks(struct rs_flow *f);
void rs_flow_phis(struct rs_flow *f);

/* Registers of a step; `is_def` 1 for a definition. Definitions come after uses. */
typedef void (*rs_flow_reg_fn)(void *opaque, uint32_t reg, int is_def);
void rs_flow_regs(const struct rs_flow *f, const struct rs_flow_step *step, rs_flow_reg_fn fn,
		  void *opaque);

/* The parameter variable behind an address in .param space, through the frames of calls. */
const struct rs_ptx_var *rs_flow_param(const struct rs_flow *f, const struct rs_ptx_var *var,
				       uint32_t *frame, int32_t *ret_reg);
const struct rs_flow_slot *rs_flow_slot(const struct rs_flow *f, const struct rs_flow_step *step,
					const struct rs_ptx_operand *addr, unsigned bytes,
					unsigned elem);

int rs_flow_dominates(const struct rs_flow *f, uint32_t a, uint32_t b);
int rs_flow_in_loop(const struct rs_flow *f, uint32_t block, int32_t loop);

/* Does the first operand name a destination? */
int rs_flow_has_dest(const struct rs_ptx_insn *insn);

#endif
