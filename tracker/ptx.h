/* SPDX-License-Identifier: MIT */
/*
 * PTX text to a flat program: the one PTX front end, used by the write-set analyser (tracker) and
 * by the simulated device (tests/simcuda).
 *
 * Source: "Parallel Thread Execution ISA 9.0" (NVIDIA). The parser accepts the grammar, not a list
 * of opcodes: an instruction keeps its dotted name as text, split at the dots, and whoever consumes
 * the program decides what it understands. Directives that carry no meaning for us (.file, .loc,
 * .pragma, .section, performance tuning) are skipped.
 *
 * Invariants: everything hangs off one arena and is released by rs_ptx_free; strings are interned
 * and NUL-terminated; branch targets are resolved to instruction indices (`ninsns` for a label
 * behind the last instruction, which means return); registers are numbered per function, without
 * gaps, nested scopes renamed apart. A range's registers (%r<100>) get their numbers as they are
 * first used, and unused ones none.
 * A vector register `.reg .v4 .f32 v` is four registers v.x to v.w; `v` as an operand is their VEC.
 * A parameter in a register (`.func f(.reg .u32 a)`) has space REG, and a register of its name.
 * Callers: any thread; no global state, no locks, no exit. Memory: malloc; on failure -ENOMEM.
 */
#ifndef RS_TRACKER_PTX_H
#define RS_TRACKER_PTX_H

#include <stddef.h>
#include <stdint.h>

/* Scalar types, in the ISA's spelling. NONE: no type given. */
/* clang-format off */
#define RS_PTX_TYPES(T)                                                                             \
	T(PRED, "pred", 1)                                                                          \
	T(B8, "b8", 1) T(B16, "b16", 2) T(B32, "b32", 4) T(B64, "b64", 8) T(B128, "b128", 16)       \
	T(U8, "u8", 1) T(U16, "u16", 2) T(U32, "u32", 4) T(U64, "u64", 8)                           \
	T(S8, "s8", 1) T(S16, "s16", 2) T(S32, "s32", 4) T(S64, "s64", 8)                           \
	T(F16, "f16", 2) T(F16X2, "f16x2", 4) T(BF16, "bf16", 2) T(BF16X2, "bf16x2", 4)             \
	T(TF32, "tf32", 4) T(F32, "f32", 4) T(F64, "f64", 8)
/* clang-format on */

enum rs_ptx_type {
	RS_PTX_NONE,
#define T(id, text, bytes) RS_PTX_##id,
	RS_PTX_TYPES(T)
#undef T
		RS_PTX_TYPE_COUNT
};

enum rs_ptx_space {
	RS_PTX_SPACE_NONE, /* generic */
	RS_PTX_SPACE_REG,
	RS_PTX_SPACE_PARAM,
	RS_PTX_SPACE_GLOBAL,
	RS_PTX_SPACE_SHARED,
	RS_PTX_SPACE_LOCAL,
	RS_PTX_SPACE_CONST,
};

/* A register of one function. */
struct rs_ptx_reg {
	const char *name;
	uint8_t type; /* enum rs_ptx_type */
};

/* A variable in memory: module-level (global, const, shared, extern) or function-level (param, local, shared). */
struct rs_ptx_var {
	const char *name;
	uint8_t space; /* enum rs_ptx_space */
	uint8_t type;
	uint8_t is_extern;
	uint8_t is_array;
	uint32_t align;	     /* bytes, a power of two, at least the type's own */
	uint64_t size;	     /* bytes; 0 for `x[]` */
	const uint8_t *init; /* `size` bytes, or NULL for none (zero) */
	/* Addresses of other variables inside the initialiser: patched at load. */
	struct rs_ptx_reloc {
		uint64_t offset; /* bytes into this variable */
		const char *symbol;
		int64_t addend;
		uint8_t bytes;
	} * relocs;
	uint32_t nrelocs;
	uint64_t offset; /* params only: byte offset in the parameter block (natural alignment) */
	uint32_t line;
};

enum rs_ptx_operand_kind {
	RS_PTX_OP_REG, /* reg */
	RS_PTX_OP_IMM, /* bits: integers sign- or zero-extended to 64; 0f/0d floats as their bits, `fbits` 32/64 */
	RS_PTX_OP_SREG,	 /* name: "%tid.x" */
	RS_PTX_OP_SYM,	 /* symbol + addend used as a value (mov.u64 %rd, buf+4) */
	RS_PTX_OP_ADDR,	 /* [reg + addend], [symbol + addend], [imm] */
	RS_PTX_OP_VEC,	 /* {a, b, ...}: elems/nelems */
	RS_PTX_OP_LABEL, /* target: instruction index, up to ninsns */
	RS_PTX_OP_FUNC,	 /* name of a function (call target) */
	RS_PTX_OP_LIST,	 /* (a, b, ...) of a call: elems/nelems */
	RS_PTX_OP_SINK,	 /* _ */
};

struct rs_ptx_operand {
	uint8_t kind;
	uint8_t fbits;	/* IMM: 0 integer, 32, 64 */
	uint8_t negate; /* source predicate written !%p, or -%r where the ISA allows it */
	uint8_t nelems;
	int32_t reg;  /* REG; ADDR: base register or -1 */
	int32_t reg2; /* second destination of `%p|%q` (shfl, vote, setp), also of `_|%q`; else -1 */
	int32_t target; /* LABEL; SYM of brx.idx: index into `tables`; else -1 */
	int64_t imm;	/* IMM bits; ADDR/SYM addend */
	const char *
		name; /* SREG, SYM, FUNC, LABEL; ADDR: symbol or NULL; REG: "b0" of %r.b0, or NULL */
	const struct rs_ptx_var
		*var; /* SYM/ADDR: the variable, resolved innermost first; NULL if unknown */
	struct rs_ptx_operand *elems; /* ADDR: what follows the address, [tex, {x, y}] */
};

#define RS_PTX_MAX_PARTS    16
#define RS_PTX_MAX_OPERANDS 8

struct rs_ptx_insn {
	const char *text; /* whole dotted opcode: "ld.global.v4.f32" */
	const char *part
		[RS_PTX_MAX_PARTS]; /* split at dots: "ld", "global", "v4", "f32"; "cluster::x" stays one */
	uint8_t nparts;
	uint8_t type; /* last type part, NONE if there is none (destination type is the first for cvt) */
	uint8_t type2; /* the type part before it (cvt.d.s: type = s, type2 = d), else NONE */
	uint8_t space; /* state-space part, NONE: generic */
	uint8_t vec;   /* 1, 2, 4 (8): from .v2/.v4 */
	uint8_t noperands;
	int32_t pred; /* guarding register or -1 */
	uint8_t pred_negate;
	uint32_t line; /* 1-based line of the text */
	struct rs_ptx_operand op[RS_PTX_MAX_OPERANDS];
};

struct rs_ptx_func {
	const char *name;
	uint8_t is_entry;
	uint8_t is_extern; /* declaration only: no body */
	uint8_t visible;
	uint32_t line;
	struct rs_ptx_var **params; /* in order */
	uint32_t nparams;
	uint64_t param_bytes;
	struct rs_ptx_var **rets; /* .func return parameters */
	uint32_t nrets;
	struct rs_ptx_var **vars; /* local, shared and call-scope param variables of the body */
	uint32_t nvars;
	struct rs_ptx_reg *regs;
	uint32_t nregs;
	struct rs_ptx_insn *insns;
	uint32_t ninsns;
	/* .branchtargets tables by label (brx.idx) */
	struct rs_ptx_targets {
		const char *name;
		int32_t *target;
		uint32_t n;
	} * tables;
	uint32_t ntables;
	uint32_t maxntid[3], reqntid[3]; /* 0: not given */
};

struct rs_ptx {
	unsigned version; /* major * 10 + minor */
	unsigned sm;	  /* .target sm_NN; 0 if absent */
	unsigned address_size;
	struct rs_ptx_var **vars; /* module level */
	uint32_t nvars;
	struct rs_ptx_func **funcs;
	uint32_t nfuncs;
	void *arena;
};

/* Where and why a text was refused. */
struct rs_ptx_error {
	uint32_t line; /* 1-based; 0 when the text as a whole is at fault */
	char text[160];
};

/*
 * Parse `len` bytes of PTX (a NUL inside ends it). Returns 0 and sets *ret_ptx (released with
 * rs_ptx_free), -EINVAL with *err filled in, or -ENOMEM. Never reads past len.
 */
int rs_ptx_parse(const char *text, size_t len, struct rs_ptx **ret_ptx, struct rs_ptx_error *err);
void rs_ptx_free(struct rs_ptx *ptx);

/* The function of that name, or NULL. */
const struct rs_ptx_func *rs_ptx_find(const struct rs_ptx *ptx, const char *name);

/* Bytes of a scalar type (PRED: 1), and its spelling without the dot. */
unsigned rs_ptx_type_bytes(enum rs_ptx_type type);
const char *rs_ptx_type_name(enum rs_ptx_type type);

/* Does the instruction carry this dotted part (exact, not the first)? */
int rs_ptx_has(const struct rs_ptx_insn *insn, const char *part);

#endif
