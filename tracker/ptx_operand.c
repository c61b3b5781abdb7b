/* SPDX-License-Identifier: MIT */
/*
 * Operands of PTX instructions: registers, constants, symbols, addresses, vectors, call arguments.
 *
 * Invariants: a name is resolved here, innermost scope first; a name that means nothing is an
 * error, except %names, which are special registers. Elements of {} and () are collected on the
 * parser's scratch stack and copied out when their list ends.
 * Callers: ptx_insn.c. No locks.
 */
#include "tracker/ptx_parser.h"

#include <errno.h>
#include <string.h>

static int operand_any(struct rs_ptx_parser *p, const struct rs_ptx_op *op,
		       struct rs_ptx_operand *o);

static void operand_init(struct rs_ptx_operand *o, enum rs_ptx_operand_kind kind)
{
	memset(o, 0, sizeof(*o));
	o->kind = (uint8_t)kind;
	o->reg = o->reg2 = o->target = -1;
}

/* Move the scratch stack's top, from `base` on, to the operand. */
static int elems_keep(struct rs_ptx_parser *p, struct rs_ptx_operand *o, uint32_t base)
{
	const struct rs_ptx_operand *stack = p->scratch.data;
	uint32_t n = p->scratch.n - base;

	p->scratch.n = base;
	if (!n)
		return 0;
	o->elems = rs_ptx_arena_alloc(p->arena, n * sizeof(*o->elems));
	if (!o->elems)
		return -ENOMEM;
	memcpy(o->elems, stack + base, n * sizeof(*o->elems));
	o->nelems = (uint8_t)n;
	return 0;
}

/* Operands up to `close`, commas between; the opening bracket has been read. */
static int elems_parse(struct rs_ptx_parser *p, struct rs_ptx_operand *o, uint8_t close)
{
	uint32_t base = p->scratch.n;
	int rc = 0;

	if (++p->nest > RS_PTX_MAX_NEST)
		return rs_ptx_fail(p, p->tok.line, "operands nest deeper than %d", RS_PTX_MAX_NEST);
	while (!rs_ptx_at(p, close)) {
		struct rs_ptx_operand e, *slot;

		if (p->scratch.n - base == UINT8_MAX)
			return rs_ptx_unexpected(p, "at most 255 elements");
		if (close == '}' && rs_ptx_at(p, '{'))
			return rs_ptx_unexpected(p, "an element");
		rc = operand_any(p, NULL, &e);
		if (rc)
			return rc;
		slot = rs_ptx_push(&p->scratch, sizeof(*slot));
		if (!slot)
			return -ENOMEM;
		*slot = e;
		if (!rs_ptx_at(p, ','))
			break;
		rc = rs_ptx_next(p);
		if (rc)
			return rc;
		if (rs_ptx_at(p, close))
			return rs_ptx_unexpected(p, "an element");
	}
	p->nest--;
	rc = rs_ptx_expect(p, close);
	return rc ? rc : elems_keep(p, o, base);
}

/* A vector register stands for {v.x, v.y, ...}. */
static int vreg_elems(struct rs_ptx_parser *p, struct rs_ptx_operand *o,
		      const struct rs_ptx_bind *b)
{
	unsigned i;

	operand_init(o, RS_PTX_OP_VEC);
	o->elems = rs_ptx_arena_alloc(p->arena, b->vec * sizeof(*o->elems));
	if (!o->elems)
		return -ENOMEM;
	o->nelems = b->vec;
	for (i = 0; i < b->vec; i++) {
		operand_init(&o->elems[i], RS_PTX_OP_REG);
		o->elems[i].reg = b->index + (int32_t)i;
	}
	return 0;
}

/* Component of a vector register, or byte/half selector of the video instructions. */
static int reg_suffix(struct rs_ptx_parser *p, struct rs_ptx_operand *o,
		      const struct rs_ptx_bind *b, const struct rs_ptx_tok *suffix)
{
	static const char selectors[][4] = {".b0", ".b1", ".b2", ".b3", ".h0", ".h1"};
	static const char components[] = "xyzwrgba";
	const char *c = suffix->len == 2 ? memchr(components, suffix->text[1], 8) : NULL;
	struct rs_ptx_str *name;
	unsigned i;

	if (b->vec > 1 && c && (unsigned)(c - components) % 4 < b->vec) {
		operand_init(o, RS_PTX_OP_REG);
		o->reg = b->index + (int32_t)((c - components) % 4);
		return 0;
	}
	for (i = 0; i < 6 && b->vec <= 1; i++)
		if (suffix->len == 3 && !memcmp(suffix->text, selectors[i], 3)) {
			name = rs_ptx_intern(p->arena, suffix->text + 1, 2);
			o->name = name ? name->text : NULL;
			return name ? 0 : -ENOMEM;
		}
	return rs_ptx_fail(p, suffix->line, "'%.*s' selects nothing of this register",
			   suffix->len > 60 ? 60 : (int)suffix->len, suffix->text);
}

/* Behind a variable's name: `+4`, or `[2]` for an element's address. */
static int sym_rest(struct rs_ptx_parser *p, const struct rs_ptx_op *op, struct rs_ptx_operand *o)
{
	struct rs_ptx_const index = {0, 0};
	int rc;

	if (!rs_ptx_at(p, '['))
		return rs_ptx_addend(p, &o->imm);
	rc = rs_ptx_next(p);
	if (rc)
		return rc;
	if (!rs_ptx_expr_begins(p))
		return rs_ptx_unexpected(p, "a constant index");
	rc = rs_ptx_expr(p, &index);
	if (!rc)
		rc = rs_ptx_expect(p, ']');
	if (rc)
		return rc;
	o->imm = (int64_t)(index.value * (o->var ? rs_ptx_type_bytes(o->var->type) : 1));
	if (op && op->form == RS_PTX_FORM_MEM)
		o->kind = RS_PTX_OP_ADDR;
	return 0;
}

/* A name that is not declared: a special register, WARP_SZ, or a mistake. */
static int operand_undeclared(struct rs_ptx_parser *p, struct rs_ptx_operand *o,
			      const struct rs_ptx_tok *tok)
{
	struct rs_ptx_str *name = rs_ptx_intern(p->arena, tok->text, tok->len);
	int rc;

	if (!name)
		return -ENOMEM;
	if (tok->text[0] == '%') {
		operand_init(o, RS_PTX_OP_SREG);
		o->name = name->text;
		return 0;
	}
	if (!strcmp(name->text, "WARP_SZ")) {
		operand_init(o, RS_PTX_OP_IMM);
		o->imm = 32;
		rc = rs_ptx_addend(p, &o->imm);
		o->imm = (int64_t)((uint64_t)o->imm + 32);
		return rc;
	}
	return rs_ptx_fail(p, tok->line, "unknown symbol '%.60s'", name->text);
}

static int operand_name(struct rs_ptx_parser *p, const struct rs_ptx_op *op,
			struct rs_ptx_operand *o)
{
	struct rs_ptx_tok tok = p->tok, suffix;
	struct rs_ptx_str *name = rs_ptx_tok_intern(p);
	const struct rs_ptx_bind *b = NULL;
	int rc = name ? rs_ptx_lookup(p, name, &b) : -ENOMEM;

	if (rc)
		return rc;
	suffix = tok;
	rs_ptx_lex_dotted(&p->lex, &tok);
	suffix.text += suffix.len;
	suffix.len = tok.len - suffix.len;
	rc = rs_ptx_next(p);
	if (rc)
		return rc;
	if (!b && tok.len == 1 && tok.text[0] == '_') {
		operand_init(o, RS_PTX_OP_SINK);
		return 0;
	}
	if (!b)
		return operand_undeclared(p, o, &tok);
	if (b->kind == RS_PTX_BIND_REG || b->kind == RS_PTX_BIND_VREG) {
		operand_init(o, RS_PTX_OP_REG);
		o->reg = b->index;
		if (suffix.len)
			return reg_suffix(p, o, b, &suffix);
		return b->kind == RS_PTX_BIND_VREG ? vreg_elems(p, o, b) : 0;
	}
	operand_init(o, b->kind == RS_PTX_BIND_FUNC ? RS_PTX_OP_FUNC : RS_PTX_OP_SYM);
	o->name = name->text;
	o->var = b->kind == RS_PTX_BIND_VAR ? b->var : NULL;
	if (suffix.len)
		return rs_ptx_fail(p, suffix.line, "'%.60s' has no components", name->text);
	return b->kind == RS_PTX_BIND_VAR ? sym_rest(p, op, o) : 0;
}

/* [base + addend], then whatever else the bracket holds (coordinates of a texture or tensor). */
static int operand_address(struct rs_ptx_parser *p, struct rs_ptx_operand *o)
{
	struct rs_ptx_operand base;
	struct rs_ptx_const c = {0, 0};
	int64_t addend = 0;
	int rc = rs_ptx_next(p);

	operand_init(o, RS_PTX_OP_ADDR);
	if (rc)
		return rc;
	if (rs_ptx_expr_begins(p)) {
		rc = rs_ptx_expr(p, &c);
		o->imm = (int64_t)c.value;
	} else if (p->tok.kind == RS_PTX_TOK_IDENT) {
		uint32_t line = p->tok.line;

		rc = operand_name(p, NULL, &base);
		if (rc)
			return rc;
		if (base.kind != RS_PTX_OP_REG && base.kind != RS_PTX_OP_SYM &&
		    base.kind != RS_PTX_OP_FUNC)
			return rs_ptx_fail(p, line, "an address is neither register nor variable");
		o->reg = base.reg;
		o->name = base.kind == RS_PTX_OP_REG ? NULL : base.name;
		o->var = base.var;
		o->imm = base.imm;
		rc = rs_ptx_addend(p, &addend);
		o->imm = (int64_t)((uint64_t)o->imm + (uint64_t)addend);
	} else {
		return rs_ptx_unexpected(p, "an address");
	}
	if (rc || !rs_ptx_at(p, ','))
		return rc ? rc : rs_ptx_expect(p, ']');
	rc = rs_ptx_next(p);
	return rc ? rc : elems_parse(p, o, ']');
}

static int operand_number(struct rs_ptx_parser *p, struct rs_ptx_operand *o, int negative)
{
	operand_init(o, RS_PTX_OP_IMM);
	o->fbits = p->tok.fbits;
	o->imm = (int64_t)p->tok.value;
	if (negative)
		o->imm ^= o->fbits == 32 ? 1ll << 31 : INT64_MIN;
	return rs_ptx_next(p);
}

/* A sign or a negation: of a register, of a floating-point number, or of an expression. */
static int operand_signed(struct rs_ptx_parser *p, const struct rs_ptx_op *op,
			  struct rs_ptx_operand *o)
{
	struct rs_ptx_lex lex = p->lex;
	struct rs_ptx_tok tok = p->tok;
	struct rs_ptx_const c = {0, 0};
	int rc = rs_ptx_next(p);

	if (rc)
		return rc;
	if (p->tok.kind == RS_PTX_TOK_FLOAT && tok.punct == '-')
		return operand_number(p, o, 1);
	if (p->tok.kind == RS_PTX_TOK_IDENT && (tok.punct == '-' || tok.punct == '!') &&
	    !(p->tok.len == 7 && !memcmp(p->tok.text, "WARP_SZ", 7))) {
		rc = operand_name(p, op, o);
		if (!rc && o->kind != RS_PTX_OP_REG)
			return rs_ptx_fail(p, tok.line, "only a register can be negated");
		o->negate = 1;
		return rc;
	}
	p->lex = lex;
	p->tok = tok;
	rc = rs_ptx_expr(p, &c);
	operand_init(o, RS_PTX_OP_IMM);
	o->imm = (int64_t)c.value;
	return rc;
}

static int operand_any(struct rs_ptx_parser *p, const struct rs_ptx_op *op,
		       struct rs_ptx_operand *o)
{
	struct rs_ptx_const c = {0, 0};
	int rc;

	if (p->tok.kind == RS_PTX_TOK_IDENT)
		return operand_name(p, op, o);
	if (rs_ptx_at(p, '['))
		return operand_address(p, o);
	if (p->tok.kind == RS_PTX_TOK_FLOAT)
		return operand_number(p, o, 0);
	if (rs_ptx_at(p, '{')) {
		operand_init(o, RS_PTX_OP_VEC);
		rc = rs_ptx_next(p);
		return rc ? rc : elems_parse(p, o, '}');
	}
	if (rs_ptx_at(p, '-') || rs_ptx_at(p, '!') || rs_ptx_at(p, '+') || rs_ptx_at(p, '~'))
		return operand_signed(p, op, o);
	if (!rs_ptx_expr_begins(p))
		return rs_ptx_unexpected(p, "an operand");
	rc = rs_ptx_expr(p, &c);
	operand_init(o, RS_PTX_OP_IMM);
	o->imm = (int64_t)c.value;
	return rc;
}

/* `%p|%q`: the second destination. */
static int operand_second(struct rs_ptx_parser *p, struct rs_ptx_operand *o)
{
	struct rs_ptx_operand second;
	uint32_t line = p->tok.line;
	int rc = rs_ptx_next(p);

	if (!rc && p->tok.kind != RS_PTX_TOK_IDENT)
		rc = rs_ptx_unexpected(p, "a register");
	if (!rc)
		rc = operand_name(p, NULL, &second);
	if (rc)
		return rc;
	if (second.kind != RS_PTX_OP_REG && second.kind != RS_PTX_OP_SINK)
		return rs_ptx_fail(p, line, "the second destination is not a register");
	o->reg2 = second.reg;
	return 0;
}

/* Decimal and 0d numbers in an .f32 instruction, and 0f numbers in an .f64 one. */
static void imm_convert(struct rs_ptx_operand *o, unsigned type)
{
	uint32_t narrow;
	float f;
	double d;

	if (o->kind != RS_PTX_OP_IMM)
		return;
	if (o->fbits == 64 && type == RS_PTX_F32) {
		memcpy(&d, &o->imm, sizeof(d));
		f = (float)d;
		memcpy(&narrow, &f, sizeof(f));
		o->imm = narrow;
		o->fbits = 32;
	} else if (o->fbits == 32 && type == RS_PTX_F64) {
		narrow = (uint32_t)o->imm;
		memcpy(&f, &narrow, sizeof(f));
		d = f;
		memcpy(&o->imm, &d, sizeof(d));
		o->fbits = 64;
	}
}

int rs_ptx_operand_parse(struct rs_ptx_parser *p, const struct rs_ptx_op *op,
			 struct rs_ptx_operand *ret)
{
	unsigned i;
	int rc = operand_any(p, op, ret);

	if (!rc && rs_ptx_at(p, '|'))
		rc = operand_second(p, ret);
	if (rc)
		return rc;
	imm_convert(ret, op->proto.type);
	for (i = 0; i < ret->nelems; i++)
		imm_convert(&ret->elems[i], op->proto.type);
	return 0;
}

/* A function's or prototype's name, or the register that holds a function's address. */
static int call_callee(struct rs_ptx_parser *p, struct rs_ptx_operand *o)
{
	const struct rs_ptx_bind *b = NULL;
	struct rs_ptx_str *name;
	int rc;

	if (p->tok.kind != RS_PTX_TOK_IDENT)
		return rs_ptx_unexpected(p, "a function");
	name = rs_ptx_tok_intern(p);
	rc = name ? rs_ptx_lookup(p, name, &b) : -ENOMEM;
	if (rc)
		return rc;
	if (b && b->kind == RS_PTX_BIND_REG) {
		operand_init(o, RS_PTX_OP_REG);
		o->reg = b->index;
	} else if (b && b->kind != RS_PTX_BIND_FUNC) {
		return rs_ptx_unexpected(p, "a function");
	} else {
		operand_init(o, RS_PTX_OP_FUNC);
		o->name = name->text;
	}
	return rs_ptx_next(p);
}

static int call_list(struct rs_ptx_parser *p, struct rs_ptx_operand *o)
{
	int rc = rs_ptx_next(p);

	operand_init(o, RS_PTX_OP_LIST);
	return rc ? rc : elems_parse(p, o, ')');
}

/* call (ret), f, (args), prototype: all but f may be absent. */
int rs_ptx_call_parse(struct rs_ptx_parser *p, struct rs_ptx_insn *in)
{
	int rc = 0;

	if (rs_ptx_at(p, '(')) {
		rc = call_list(p, &in->op[in->noperands++]);
		if (!rc)
			rc = rs_ptx_expect(p, ',');
	}
	if (!rc)
		rc = call_callee(p, &in->op[in->noperands++]);
	if (rc || !rs_ptx_at(p, ','))
		return rc;
	rc = rs_ptx_next(p);
	if (!rc && rs_ptx_at(p, '(')) {
		rc = call_list(p, &in->op[in->noperands++]);
		if (rc || !rs_ptx_at(p, ','))
			return rc;
		rc = rs_ptx_next(p);
	}
	if (rc)
		return rc;
	if (p->tok.kind != RS_PTX_TOK_IDENT)
		return rs_ptx_unexpected(p, "a call prototype");
	rc = call_callee(p, &in->op[in->noperands]);
	in->op[in->noperands++].kind = RS_PTX_OP_SYM;
	return rc;
}
