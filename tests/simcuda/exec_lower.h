/* SPDX-License-Identifier: MIT */
/*
 * Between exec_lower.c (operands, emission) and exec_inline.c (functions, calls, branches).
 *
 * Calls are inlined: one kernel is one flat program, so divergence, barriers and launch constants
 * work through calls unchanged. Recursion and indirect calls are refused when the module is loaded.
 */
#ifndef SIM_EXEC_LOWER_H
#define SIM_EXEC_LOWER_H

#include "tests/simcuda/exec_priv.h"

#define SIM_MAX_DEPTH 64
#define SIM_MAX_UOPS  (4u << 20)

struct sim_inst {
	struct sim_inst *parent;
	const struct rs_ptx_func *func;
	uint32_t reg_base;
	uint32_t *map; /* instruction to micro-op; one past the end included */
	struct sim_inst_var {
		const struct rs_ptx_var *var;
		uint64_t offset; /* in the local frame */
	} * vars;
	uint32_t nvars;
	struct sim_fixup {
		uint32_t uop;
		int32_t *slot; /* brx: entry of a table; NULL: the micro-op's target */
		uint32_t insn;
	} * fixups;
	uint32_t nfixups, capfixups;
};

/* Where a variable lives, seen from the current instance. */
struct sim_place {
	unsigned space;
	uint64_t addr; /* relative to its space */
	int dynamic;
};

int sim_lower_var(struct sim_lower *l, const struct rs_ptx_var *var, const char *name,
		  struct sim_place *ret_place);
int sim_lower_insn(struct sim_lower *l, const struct rs_ptx_insn *in);
/* A device function on its own, to find what is not supported in it. */
int sim_lower_function(struct sim_module *m, struct sim_kernel *k, char *err, size_t errlen);
uint32_t sim_lower_vreg(struct sim_lower *l, unsigned cls); /* UINT32_MAX: out of memory */
void *sim_lower_grow(void *data, uint32_t n, uint32_t *cap, size_t elem);

#endif
