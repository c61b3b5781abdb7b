/* SPDX-License-Identifier: MIT */
/*
 * Insides of the engine (exec_*.c only): micro-ops, warps, the lowering context, tables of forms.
 *
 * A kernel is a flat array of micro-ops. One micro-op works on the 32 lanes of a warp; registers are
 * arrays of 32 lanes, 4 bytes a lane (predicates as 0 / ~0; 8- and 16-bit values in the low bits, the
 * rest is garbage that every reader cuts off) or 8 bytes a lane. A register file holds, in this
 * order, what is constant for a launch (immediates, parameters, thread ids and everything computed
 * from them: the preamble fills it once per warp), then the allocated slots.
 *
 * Modules are immutable after the load; all state of a run hangs off struct sim_run on the stack of
 * sim_exec, so that any number of threads can run kernels of one module.
 */
#ifndef SIM_EXEC_PRIV_H
#define SIM_EXEC_PRIV_H

/* Nothing here traps or sets errno; both would keep the lane loops scalar. */
#pragma GCC optimize("no-trapping-math", "no-math-errno")

#include "tests/simcuda/exec.h"
#include "tracker/ptx.h"

#define SIM_LANES	32
#define SIM_FULL	0xffffffffu
#define SIM_MAX_BARRIER 16

/* Generic windows: above every address that user space can have. */
#define SIM_SHARED_BASE	   0x5300000000000000ull
#define SIM_LOCAL_BASE	   0x4c00000000000000ull
#define SIM_PARAM_BASE	   0x5000000000000000ull
#define SIM_WINDOW_BYTES   0x0000000100000000ull
#define SIM_CALLPARAM_BASE 0x01000000u /* in .param: beyond this lie the parameters of calls */

struct sim_uop;
struct sim_warp;
struct sim_run;
struct sim_lower;
struct sim_form;

typedef void (*sim_fn)(const struct sim_uop *o, struct sim_warp *w);

enum sim_kind {
	SIM_K_ALU, /* cannot fault */
	SIM_K_MEM, /* may fault */
	SIM_K_BRA, /* r[7]: predicate, unless SIM_F_ALWAYS */
	SIM_K_BRX,
	SIM_K_EXIT,
	SIM_K_TRAP,
	SIM_K_BAR,
	SIM_K_WSYNC,   /* warp-level: waits for the lanes of the member mask in r[6] */
	SIM_K_GUARDED, /* r[7]: predicate; `sub` is the real kind */
	SIM_K_NOP,
};

/* Flags of a micro-op. The low bits come from modifiers. */
enum {
	SIM_RN = 0,
	SIM_RZ = 1,
	SIM_RM = 2,
	SIM_RP = 3,
	SIM_RMASK = 3,
	SIM_FTZ = 1 << 2,
	SIM_SAT = 1 << 3,
	SIM_RNA = 1 << 4,
	SIM_F_NEGATE = 1 << 8,	/* guard or branch predicate is inverted */
	SIM_F_ALWAYS = 1 << 9,	/* unconditional branch */
	SIM_F_PURE = 1 << 10,	/* may run in the preamble */
	SIM_F_COPY = 1 << 11,	/* r[0] = r[1], nothing else */
	SIM_F_NOMASK = 1 << 12, /* warp op without a member mask */
	SIM_F_TARGET = 1 << 13, /* some branch lands here */
	SIM_F_SIDE = 1 << 15,	/* further operands in the kernel's side list */
	SIM_F_ANYPC = 1 << 14,	/* bar.warp.sync: lanes may arrive at different instructions */
};

/*
 * Operand fields by convention: r[0] destination, r[1] r[2] r[3] sources; memory: r[1] address,
 * r[3..6] data; r[6] member mask of warp ops; r[7] guard. Vregs while lowering, byte offsets into
 * the register file afterwards.
 */
struct sim_uop {
	sim_fn fn[2]; /* [0]: every live lane is here; [1]: only w->lanes */
	int64_t imm;
	uint32_t r[8];
	const struct rs_ptx_insn *src;
	int32_t target;	 /* branches: micro-op; memory: index into the run's range cache */
	uint16_t weight; /* PTX instructions that this one stands for */
	uint16_t flags;
	uint8_t kind, sub;
	uint8_t wr, rd; /* which of r[] are written and read */
	uint8_t n;	/* vector elements, element type or width, elements of a side list */
};

/* A lane group of a diverged warp. */
struct sim_group {
	uint32_t pc;
	uint32_t mask;
	enum { SIM_G_READY, SIM_G_BARRIER, SIM_G_WSYNC } state;
	uint32_t barrier;
	uint32_t expect; /* threads, 0: the whole CTA */
};

struct sim_warp {
	uint8_t *r;		   /* register file */
	uint32_t lanes[SIM_LANES]; /* `act` as 0 / ~0 */
	uint32_t act;
	uint32_t alive;
	uint32_t exists;
	uint32_t pc;
	uint32_t join; /* lowest pc of another ready group */
	uint8_t partial;
	uint8_t done;
	uint8_t blocked;
	uint32_t ngroups;
	struct sim_group group[SIM_LANES];
	uint8_t *local;
	struct sim_run *run;
	uint32_t index;
	uint32_t starve; /* backward jumps since other lanes last ran */
	uint64_t slept;	 /* ns */
	uint32_t tid[3][SIM_LANES];
	uint32_t ctaid[3][SIM_LANES];
};

struct sim_hit {
	uint64_t base;
	int64_t size; /* 0: always take the checked path */
};

struct sim_run {
	const struct sim_launch *launch;
	const struct sim_kernel *k;
	struct sim_warp *warps;
	uint32_t nwarps;
	struct sim_hit *hit;
	uint8_t *shared;
	uint64_t shared_bytes;
	uint64_t gridid;
	struct sim_counts counts;
	struct sim_fault fault;
	uint32_t arrived[SIM_MAX_BARRIER]; /* by bar.arrive, threads */
	uint32_t barriers;		   /* at which somebody waits, as bits */
	uint64_t cta;			   /* linear index of the first CTA in the vector */
	uint32_t slice;			   /* backward jumps until the warp must yield */
};

/* What a constant slot of the register file holds. */
struct sim_const {
	uint32_t offset;
	uint8_t cls;	 /* 4 or 8 bytes a lane */
	uint8_t sreg;	 /* enum sim_sreg, or 0: value */
	uint8_t dynamic; /* value is relative to the start of dynamic shared memory */
	uint64_t value;
};

struct sim_kernel {
	const struct rs_ptx_func *func;
	const struct sim_module *module;
	struct sim_uop *code;
	uint32_t ncode;
	struct sim_uop *pre; /* preamble: launch constants */
	uint32_t npre;
	struct sim_const *consts;
	uint32_t nconsts;
	uint32_t *side; /* operand offsets of micro-ops with many operands */
	uint32_t nside;
	int32_t **tables; /* brx.idx: micro-op targets */
	uint32_t ntables;
	uint32_t file_bytes;
	uint32_t nslots;
	uint32_t nhits;
	uint64_t shared_bytes;
	uint64_t local_bytes;
	uint8_t packable; /* no barrier, no warp op, no shared memory */
	uint8_t uses_barrier;
};

struct sim_module {
	struct rs_ptx *ptx;
	struct sim_kernel *kernels;
	uint32_t nkernels;
	struct sim_placed {
		const struct rs_ptx_var *var;
		uint64_t addr;
	} * placed;
	uint32_t nplaced;
};

/* Special registers: name, bytes a lane, known before the CTA starts (1) or per CTA (0). */
/* clang-format off */
#define SIM_SREGS(S) \
	S(TID_X, "%tid.x", 1) S(TID_Y, "%tid.y", 1) S(TID_Z, "%tid.z", 1) \
	S(NTID_X, "%ntid.x", 1) S(NTID_Y, "%ntid.y", 1) S(NTID_Z, "%ntid.z", 1) \
	S(CTAID_X, "%ctaid.x", 0) S(CTAID_Y, "%ctaid.y", 0) S(CTAID_Z, "%ctaid.z", 0) \
	S(NCTAID_X, "%nctaid.x", 1) S(NCTAID_Y, "%nctaid.y", 1) S(NCTAID_Z, "%nctaid.z", 1) \
	S(LANEID, "%laneid", 1) S(WARPID, "%warpid", 1) S(NWARPID, "%nwarpid", 1) \
	S(SMID, "%smid", 1) S(NSMID, "%nsmid", 1) \
	S(LT, "%lanemask_lt", 1) S(LE, "%lanemask_le", 1) S(EQ, "%lanemask_eq", 1) \
	S(GE, "%lanemask_ge", 1) S(GT, "%lanemask_gt", 1) \
	S(DYN, "%dynamic_smem_size", 1) S(TOTAL, "%total_smem_size", 1) S(GRIDID, "%gridid", 1)
/* clang-format on */

enum sim_sreg {
	SIM_SREG_NONE,
#define S(id, name, early) SIM_SREG_##id,
	SIM_SREGS(S)
#undef S
		SIM_SREG_COUNT
};

/* A row of a table of forms. */
struct sim_form {
	/* Parts in order; `a|b` alternatives, `x?` optional: "add rn|rz? ftz? f32". */
	const char *pattern;
	/* One letter per operand, destination first: p predicate, h 16 bits, w 32, f f32, d 64, g f64. */
	const char *sig;
	sim_fn fn[2];
	/* For what a signature cannot describe; NULL: by sig. */
	int (*lower)(struct sim_lower *l, const struct rs_ptx_insn *in, const struct sim_form *form,
		     unsigned flags);
};

/* clang-format off */
#define SIM_FORM_TABLES(T)                                                                         \
	T(int) T(bits) T(carry) T(cmp) T(float) T(cvt) T(half) T(mov) T(mem) T(atom) T(warp)       \
	T(flow) T(mma) T(surf) T(tex)
/* clang-format on */

#define T(name)                                                                                    \
	extern const struct sim_form sim_forms_##name[];                                           \
	extern const unsigned sim_nforms_##name;
SIM_FORM_TABLES(T)
#undef T

/* exec_form.c */
const struct sim_form *sim_form_find(const struct rs_ptx_insn *in, unsigned *ret_flags);
int sim_form_parts(const struct rs_ptx_insn *in, const char *const *allowed);

/* exec_lower.c: the lowering context and its services */
struct sim_vreg {
	uint64_t value; /* constants */
	uint32_t ndefs;
	uint32_t alias; /* itself, or the read-only vreg that it always equals */
	uint32_t slot;	/* byte offset, at the end */
	uint8_t cls;	/* bytes a lane: 4 or 8 */
	uint8_t is_const;
	uint8_t is_static; /* known before the CTA starts */
	uint8_t sreg;
	uint8_t dynamic;
	uint8_t is_temp; /* lives within one PTX instruction */
};

struct sim_inst; /* one inlined instance of a function */

struct sim_lower {
	struct sim_module *m;
	struct sim_kernel *k;
	struct sim_uop *uop;
	uint32_t nuops, capuops;
	struct sim_vreg *vreg;
	uint32_t nvregs, capvregs;
	uint32_t *side;
	uint32_t nside, capside;
	uint32_t *const_hash;
	uint32_t nconst, capconst;
	struct sim_inst *inst;
	const struct rs_ptx_insn *in; /* being lowered: emit takes guard and source from it */
	struct {
		uint32_t reg, temp;
		int is_signed;
	} widen[8]; /* destinations that are wider than the result */
	unsigned nwiden;
	struct sim_shared_var {
		const struct rs_ptx_var *var;
		const struct sim_inst *inst;
		uint64_t offset;
	} * shared;
	uint32_t nshared;
	uint32_t cc;	/* vreg of the carry flag; UINT32_MAX: none yet */
	uint32_t guard; /* vreg of the guard, UINT32_MAX: none */
	uint32_t depth;
	char *err;
	size_t errlen;
	int failed; /* 0 or -errno */
};

/* All return 0 or -errno, the error text is set; vregs are returned through pointers. */
int sim_lower_fail(struct sim_lower *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
struct sim_uop *sim_lower_emit(struct sim_lower *l, enum sim_kind kind, const sim_fn fn[2]);
int sim_lower_src(struct sim_lower *l, const struct rs_ptx_operand *op, char letter,
		  uint32_t *ret_v);
int sim_lower_dst(struct sim_lower *l, const struct rs_ptx_operand *op, char letter, int is_signed,
		  uint32_t *ret_v);
int sim_lower_finish(struct sim_lower *l); /* emit the pending widenings */
int sim_lower_addr(struct sim_lower *l, const struct rs_ptx_operand *op, unsigned space,
		   uint32_t *ret_v, int64_t *ret_imm, unsigned *ret_space);
int sim_lower_side(struct sim_lower *l, uint32_t v); /* append to the side list */
uint32_t sim_lower_temp(struct sim_lower *l, unsigned cls);
uint32_t sim_lower_const(struct sim_lower *l, uint64_t value, unsigned cls);
unsigned sim_lower_width(const struct sim_lower *l, const struct rs_ptx_operand *op); /* 4 or 8 */
int sim_lower_by_sig(struct sim_lower *l, const struct rs_ptx_insn *in, const struct sim_form *form,
		     unsigned flags);
int sim_lower_kernel(struct sim_module *m, struct sim_kernel *k, char *err, size_t errlen);
int sim_lower_call(struct sim_lower *l, const struct rs_ptx_insn *in, const struct sim_form *form,
		   unsigned flags);
int sim_lower_branch(struct sim_lower *l, const struct rs_ptx_insn *in, const struct sim_form *form,
		     unsigned flags);
int sim_lower_return(struct sim_lower *l, const struct rs_ptx_insn *in, const struct sim_form *form,
		     unsigned flags);
int sim_lower_brx(struct sim_lower *l, const struct rs_ptx_insn *in, const struct sim_form *form,
		  unsigned flags);

/* exec_alloc.c: preamble, liveness, slots */
int sim_alloc_registers(struct sim_lower *l);

/* exec_mem.c */
uint8_t *sim_mem_check(struct sim_warp *w, const struct sim_uop *o, unsigned lane, uint64_t addr,
		       unsigned bytes, int is_write);
/* May the lane read there? Faults if not. For reads that have no range of their own to remember. */
int sim_mem_readable(struct sim_warp *w, const struct sim_uop *o, unsigned lane, uint64_t addr,
		     unsigned bytes);
void sim_mem_fault(struct sim_warp *w, const struct sim_uop *o, enum sim_fault_kind kind,
		   unsigned lane, uint64_t addr, unsigned bytes, int is_write);

/* exec_mov.c: building blocks */
extern const sim_fn sim_fn_copy[3][2]; /* [0] 4 bytes, [1] 8 bytes, [2] predicate */
extern const sim_fn sim_fn_not_pred[2];
extern const sim_fn sim_fn_trunc[2], sim_fn_zext[2], sim_fn_sext[2];
/* exec_cmp.c: combine a predicate: [and, or, xor] */
extern const sim_fn sim_fn_pred[3][2];

static inline unsigned sim_letter_class(char letter)
{
	return letter == 'd' || letter == 'g' ? 8 : 4;
}

#define SIM_REG(T, w, o, i) ((T *)__builtin_assume_aligned((w)->r + (o)->r[i], 32))

/*
 * The two loops of every lane-wise handler. The expression sees a, b, c (typed) and o. The masked
 * loop computes every lane and blends, which vectorises and is safe: nothing here can trap.
 */
#define SIM_LANE_FN(name, TD, TA, TB, TC, ...)                                                     \
	static void name##_full(const struct sim_uop *o, struct sim_warp *w)                       \
	{                                                                                          \
		TD *d_ = SIM_REG(TD, w, o, 0);                                                     \
		const TA *a_ = SIM_REG(TA, w, o, 1);                                               \
		const TB *b_ = SIM_REG(TB, w, o, 2);                                               \
		const TC *c_ = SIM_REG(TC, w, o, 3);                                               \
		_Pragma("GCC ivdep") for (int i = 0; i < SIM_LANES; i++)                           \
		{                                                                                  \
			TA a = a_[i];                                                              \
			TB b = b_[i];                                                              \
			TC c = c_[i];                                                              \
			(void)a, (void)b, (void)c;                                                 \
			d_[i] = (TD)(__VA_ARGS__);                                                 \
		}                                                                                  \
	}                                                                                          \
	static void name##_mask(const struct sim_uop *o, struct sim_warp *w)                       \
	{                                                                                          \
		TD *d_ = SIM_REG(TD, w, o, 0);                                                     \
		const TA *a_ = SIM_REG(TA, w, o, 1);                                               \
		const TB *b_ = SIM_REG(TB, w, o, 2);                                               \
		const TC *c_ = SIM_REG(TC, w, o, 3);                                               \
		const uint32_t *m_ = w->lanes;                                                     \
		_Pragma("GCC ivdep") for (int i = 0; i < SIM_LANES; i++)                           \
		{                                                                                  \
			TA a = a_[i];                                                              \
			TB b = b_[i];                                                              \
			TC c = c_[i];                                                              \
			(void)a, (void)b, (void)c;                                                 \
			TD t_ = (TD)(__VA_ARGS__);                                                 \
			d_[i] = m_[i] ? t_ : d_[i];                                                \
		}                                                                                  \
	}

#define SIM_FN(name)                                                                               \
	{                                                                                          \
		name##_full, name##_mask                                                           \
	}

#endif
