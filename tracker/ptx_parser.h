/* SPDX-License-Identifier: MIT */
/*
 * What the files of the PTX parser share: its state, names and scopes, and the border between
 * directives (ptx_parse.c, ptx_func.c, ptx_decl.c, ptx_init.c, ptx_expr.c) and instructions
 * (ptx_insn.c, ptx_operand.c).
 *
 * Invariants: one token of look-ahead, `tok`; every function returns 0, -EINVAL with the error
 * recorded, or -ENOMEM. Recursion and nesting are bounded by RS_PTX_MAX_NEST; work and memory are
 * bounded by the length of the text (register ranges are numbered register by register as they
 * are used, initialisers are capped).
 * Callers: ptx_*.c only. No locks: a parser lives on its caller's stack.
 */
#ifndef RS_TRACKER_PTX_PARSER_H
#define RS_TRACKER_PTX_PARSER_H

#include "tracker/ptx.h"
#include "tracker/ptx_arena.h"
#include "tracker/ptx_lex.h"

#define RS_PTX_MAX_NEST	 64
#define RS_PTX_MAX_REGS	 (1u << 20)	/* declared in one function */
#define RS_PTX_MAX_VAR	 (1ull << 40)	/* bytes of a .global variable */
#define RS_PTX_MAX_LOCAL (1ull << 20)	/* bytes of any other */
#define RS_PTX_MAX_INIT	 (256ull << 20) /* bytes of all initialised variables of a module */

enum rs_ptx_bind_kind {
	RS_PTX_BIND_REG,
	RS_PTX_BIND_VREG,  /* .v2/.v4 register: `vec` consecutive registers */
	RS_PTX_BIND_RANGE, /* %r<10> */
	RS_PTX_BIND_VAR,
	RS_PTX_BIND_FUNC,
	RS_PTX_BIND_LABEL,
};

/* What a name means in one scope. */
struct rs_ptx_bind {
	uint8_t kind;
	uint8_t vec;  /* registers: 0 or 1 scalar, else elements */
	uint8_t type; /* RANGE */
	uint8_t depth;
	uint32_t count;		    /* RANGE */
	int32_t index;		    /* REG, VREG: register; LABEL: instruction */
	int32_t table;		    /* LABEL: of a .branchtargets, else -1 */
	struct rs_ptx_bind *outer;  /* the same name, further out */
	struct rs_ptx_bind *sister; /* in the same scope */
	struct rs_ptx_bind **slot;  /* head of the list this is in */
	union {
		struct rs_ptx_var *var;
		struct rs_ptx_func *func;
	};
};

/* A use of a label, resolved when the scope that holds the label ends. */
struct rs_ptx_fixup {
	struct rs_ptx_str *label;
	int32_t *slot; /* entry of a target table; NULL: operand `op` of instruction `insn` */
	uint32_t insn;
	uint32_t line;
	uint8_t op;
	uint8_t is_table; /* wants a .branchtargets label */
};

struct rs_ptx_vec {
	void *data;
	uint32_t n, cap;
};

struct rs_ptx_scope {
	struct rs_ptx_bind *binds;
	uint32_t fixups; /* first one made inside */
};

struct rs_ptx_parser {
	struct rs_ptx_lex lex;
	struct rs_ptx_tok tok;
	struct rs_ptx_arena *arena;
	struct rs_ptx *ptx;
	struct rs_ptx_error err;
	unsigned depth; /* 0: module */
	unsigned nest;	/* of expressions */
	struct rs_ptx_scope scope[RS_PTX_MAX_NEST];
	struct rs_ptx_vec vars, funcs; /* pointers; module level */
	uint64_t init_bytes;
	/* The function being read. */
	struct rs_ptx_func *func;
	uint64_t declared_regs;
	struct rs_ptx_vec regs, insns, func_vars, tables, fixups;
	struct rs_ptx_vec scratch; /* stack of struct rs_ptx_operand: the elements of {} and () */
};

/* Tokens (ptx_parse.c). */
int rs_ptx_fail(struct rs_ptx_parser *p, uint32_t line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int rs_ptx_unexpected(struct rs_ptx_parser *p, const char *wanted);
int rs_ptx_next(struct rs_ptx_parser *p);
int rs_ptx_expect(struct rs_ptx_parser *p, uint8_t punct);
struct rs_ptx_str *rs_ptx_tok_intern(struct rs_ptx_parser *p); /* NULL: out of memory */
int rs_ptx_skip_location(struct rs_ptx_parser *p);	       /* at .loc or .file */
int rs_ptx_skip_statement(struct rs_ptx_parser *p);	       /* to behind the semicolon */

static inline int rs_ptx_at(const struct rs_ptx_parser *p, uint8_t punct)
{
	return p->tok.kind == RS_PTX_TOK_PUNCT && p->tok.punct == punct;
}

int rs_ptx_at_directive(const struct rs_ptx_parser *p, const char *name);

/* A new zeroed element at the end; NULL: out of memory. */
void *rs_ptx_push(struct rs_ptx_vec *v, size_t elem);

/* Names and scopes (ptx_scope.c). */
int rs_ptx_scope_enter(struct rs_ptx_parser *p);
int rs_ptx_scope_leave(struct rs_ptx_parser *p);
int rs_ptx_bind(struct rs_ptx_parser *p, struct rs_ptx_bind **slot, unsigned depth,
		const struct rs_ptx_bind *proto, const char *name, uint32_t line);
int rs_ptx_reg_new(struct rs_ptx_parser *p, const char *name, unsigned type, unsigned vec,
		   int32_t *ret_index);
/* Register, variable or function; *ret_bind is NULL where the name means nothing. */
int rs_ptx_lookup(struct rs_ptx_parser *p, struct rs_ptx_str *name,
		  const struct rs_ptx_bind **ret_bind);
int rs_ptx_label_define(struct rs_ptx_parser *p, struct rs_ptx_str *name, uint32_t line,
			int32_t table);
int rs_ptx_label_use(struct rs_ptx_parser *p, struct rs_ptx_str *name, uint32_t line,
		     const struct rs_ptx_fixup *proto);

/* Constant expressions (ptx_expr.c). */
struct rs_ptx_const {
	uint64_t value;
	uint8_t is_unsigned;
};
int rs_ptx_expr_begins(const struct rs_ptx_parser *p);
int rs_ptx_expr(struct rs_ptx_parser *p, struct rs_ptx_const *ret);
/* The rest of `<something> + 4 - 2`, from the first sign on; 0 where there is none. */
int rs_ptx_addend(struct rs_ptx_parser *p, int64_t *ret);
/* A plain integer in [min, max], `what` for the error. */
int rs_ptx_integer(struct rs_ptx_parser *p, uint64_t min, uint64_t max, const char *what,
		   uint64_t *ret);

/* Declarations (ptx_decl.c) and initialisers (ptx_init.c). */
enum rs_ptx_type rs_ptx_type_parse(const char *text, size_t len);
enum rs_ptx_space rs_ptx_space_parse(const char *text, size_t len);
int rs_ptx_decl_regs(struct rs_ptx_parser *p);				      /* at .reg */
int rs_ptx_decl_vars(struct rs_ptx_parser *p, unsigned space, int is_extern); /* after the space */
int rs_ptx_decl_params(struct rs_ptx_parser *p, struct rs_ptx_func *f, int is_ret); /* at ( */
struct rs_ptx_init {
	struct rs_ptx_var *var;
	unsigned elem;	  /* bytes of an element */
	unsigned ndims;	  /* 0: scalar */
	uint64_t dims[8]; /* elements; dims[0] may be 0 for `[]` */
};
int rs_ptx_init_parse(struct rs_ptx_parser *p, const struct rs_ptx_init *in); /* after = */

/* Functions (ptx_func.c) and instructions (ptx_insn.c, ptx_operand.c). */
int rs_ptx_func_parse(struct rs_ptx_parser *p, int is_extern, int visible); /* at .entry, .func */

/* How an opcode's operands are read. */
enum rs_ptx_form {
	RS_PTX_FORM_PLAIN,
	RS_PTX_FORM_BRA,
	RS_PTX_FORM_BRX,
	RS_PTX_FORM_CALL,
	RS_PTX_FORM_MEM, /* loads, stores: `a[3]` is an address, elsewhere it is a value */
};
struct rs_ptx_op {
	struct rs_ptx_insn proto;
	enum rs_ptx_form form;
};
/* An instruction with its guard, or a label and its colon (then *ret_label is set). */
int rs_ptx_statement(struct rs_ptx_parser *p, struct rs_ptx_str **ret_label);
int rs_ptx_operand_parse(struct rs_ptx_parser *p, const struct rs_ptx_op *op,
			 struct rs_ptx_operand *ret);
int rs_ptx_call_parse(struct rs_ptx_parser *p, struct rs_ptx_insn *in);

#endif
