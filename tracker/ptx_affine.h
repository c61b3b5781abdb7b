/* SPDX-License-Identifier: MIT */
/*
 * Polynomials over the quantities of a launch: the abstract values of the PTX access analysis.
 *
 * A register of w bits holds, modulo 2^w, the polynomial's value over the integers. Ring operations
 * are therefore exact; whoever widens a register, compares it or divides it must show at launch that
 * the integer value lies in the type's range (an obligation, or the atom's own check).
 *
 * An atom stands for one integer of one dynamic instance: launch constants (parameter words, grid
 * and block), thread and block indices, the iteration number of a loop, results of operations that
 * are not polynomial, and values about which only a range is known. Equal atoms mean equal integers:
 * an operation is identified by its arguments, an unknown by the place that made it.
 *
 * Invariants: polynomials and atoms are immutable; terms are sorted; coefficients are reduced to
 * signed w bits. Memory hangs off one rs_aff_mem, whose failure leaves by longjmp to its owner.
 * Callers: ptx_*.c of the analysis, one thread. No locks.
 */
#ifndef RS_TRACKER_PTX_AFFINE_H
#define RS_TRACKER_PTX_AFFINE_H

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

enum { RS_AFF_NOMEM = 1, RS_AFF_TOOBIG = 2 };

/* Bump memory of one analysis; failures longjmp to `fail` with RS_AFF_*. */
struct rs_aff_mem {
	void *chunk;
	size_t left, total, limit;
	jmp_buf fail;
};

void *rs_aff_alloc(struct rs_aff_mem *mem, size_t size);
void rs_aff_release(struct rs_aff_mem *mem);

/*
 * Kinds of atoms. Up to NCTAID: launch constants. `a`, `b` and arguments:
 * PARAM a = offset, b = bytes, negative when zero-extended; NTID, NCTAID, TID, CTAID a = axis;
 * LOOP a = loop; UNKNOWN, CHOICE a = key of the place; SYMBOL a = variable;
 * FLOOR x / b (b > 0), `how` tells how the register is read; MAGIC x * a >> b, where the product is
 * read as `how`, or with RS_AFF_HIGH in b only x is and the product is wide; the rest: operands.
 */
#define RS_AFF_HIGH 256

/* clang-format off */
#define RS_AFF_KINDS(K)                                                                            \
	K(NONE)                                                                                    \
	K(PARAM)                                                                                   \
	K(NTID)                                                                                    \
	K(NCTAID)                                                                                  \
	K(TID)                                                                                     \
	K(CTAID) K(LOOP) K(UNKNOWN) K(SYMBOL) K(CHOICE) K(FLOOR) K(MAGIC) K(TRUNC) K(MIN) K(MAX)   \
		K(AND) K(OR) K(XOR) K(SHL) K(SHR) K(EXTEND) K(ABS)
/* clang-format on */

enum rs_aff_kind {
#define K(id) RS_AFF_##id,
	RS_AFF_KINDS(K)
#undef K
};

/* How an operation reads its register operands. */
enum rs_aff_how { RS_AFF_MODULAR, RS_AFF_S32, RS_AFF_U32, RS_AFF_S64, RS_AFF_U64 };

/* Where a value may come from, besides the parameter words in `words`. */
enum rs_aff_from {
	RS_AFF_MEMORY = 1,   /* loaded, or returned by something that was not followed */
	RS_AFF_ANYWORD = 2,  /* any word of the parameter block */
	RS_AFF_GLOBAL = 4,   /* address of a module variable in global memory */
	RS_AFF_CONSTANT = 8, /* the same in constant memory */
	RS_AFF_PRIVATE = 16, /* address of shared, local or parameter memory */
};

struct rs_aff_origin {
	uint64_t words; /* bit i: parameter word number i of the analysis */
	uint32_t from;	/* enum rs_aff_from */
};

#define RS_AFF_DEGREE	 6
#define RS_AFF_MAX_TERMS 20

struct rs_aff_term {
	int64_t coef;
	uint16_t atom[RS_AFF_DEGREE]; /* descending, zero padded */
};

struct rs_aff_poly {
	int64_t c;
	uint8_t width; /* 32 or 64 */
	uint8_t n;
	struct rs_aff_term t[];
};

struct rs_aff_atom {
	uint8_t kind, how;
	uint8_t narrow; /* at most 33 bits: never a pointer */
	uint8_t nargs;
	int64_t a, b;
	int64_t lo, hi; /* UNKNOWN: its range */
	int32_t block;	/* UNKNOWN, CHOICE: block that defines it; LOOP: header */
	struct rs_aff_origin origin;
	const struct rs_aff_poly *arg[];
};

struct rs_aff {
	struct rs_aff_mem *mem;
	struct rs_aff_atom **atoms; /* [0] unused */
	uint32_t natoms, cap;
	uint16_t *hash;
	uint32_t nhash;
};

#define RS_AFF_MAX_ATOMS 60000
#define RS_AFF_MAX_ARGS	 8

void rs_aff_init(struct rs_aff *s, struct rs_aff_mem *mem);

/* The atom equal to *key (with key->nargs arguments), made if new. */
uint16_t rs_aff_atom(struct rs_aff *s, const struct rs_aff_atom *key,
		     const struct rs_aff_poly *const *args);

const struct rs_aff_poly *rs_aff_const(struct rs_aff *s, unsigned width, int64_t c);
const struct rs_aff_poly *rs_aff_var(struct rs_aff *s, unsigned width, uint16_t atom);
/* a + k * b, and a * b, at a's width; NULL when the result would be too large to keep. */
const struct rs_aff_poly *rs_aff_add(struct rs_aff *s, const struct rs_aff_poly *a,
				     const struct rs_aff_poly *b, int64_t k);
const struct rs_aff_poly *rs_aff_mul(struct rs_aff *s, const struct rs_aff_poly *a,
				     const struct rs_aff_poly *b);
/* The same integer polynomial at another width: exact when narrowing, an obligation when widening. */
const struct rs_aff_poly *rs_aff_resize(struct rs_aff *s, const struct rs_aff_poly *p,
					unsigned width);
int rs_aff_equal(const struct rs_aff_poly *a, const struct rs_aff_poly *b);

/* The atom if p is exactly 1 * atom, else 0. */
uint16_t rs_aff_single(const struct rs_aff_poly *p);

#endif
