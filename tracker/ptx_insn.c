/* SPDX-License-Identifier: MIT */
/*
 * Instructions of PTX: guards, dotted opcodes, the shape of an operand list.
 *
 * Invariants: an opcode's spelling is decoded once per module and copied from then on. What an
 * opcode means is not known here, except that branches and calls name labels and functions.
 * Callers: ptx_func.c. No locks.
 */
#include "tracker/ptx_parser.h"

#include <errno.h>
#include <string.h>

static enum rs_ptx_form op_form(const char *base)
{
	static const char *const memory[] = {"ld", "ldu", "st", "atom", "red", "prefetch"};
	unsigned i;

	if (!strcmp(base, "bra"))
		return RS_PTX_FORM_BRA;
	if (!strcmp(base, "brx"))
		return RS_PTX_FORM_BRX;
	if (!strcmp(base, "call"))
		return RS_PTX_FORM_CALL;
	for (i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
		if (!strcmp(base, memory[i]))
			return RS_PTX_FORM_MEM;
	return RS_PTX_FORM_PLAIN;
}

static void op_classify(struct rs_ptx_insn *in, const char *part, size_t len)
{
	enum rs_ptx_type type = rs_ptx_type_parse(part, len);

	if (type) {
		in->type2 = in->type;
		in->type = (uint8_t)type;
	} else if (!in->space) {
		in->space = (uint8_t)rs_ptx_space_parse(part, len);
	}
	if (len == 2 && part[0] == 'v' && (part[1] == '2' || part[1] == '4' || part[1] == '8'))
		in->vec = (uint8_t)(part[1] - '0');
}

/* Split an opcode at its dots. */
static int op_decode(struct rs_ptx_parser *p, struct rs_ptx_str *name, uint32_t line)
{
	struct rs_ptx_op *op = rs_ptx_arena_alloc(p->arena, sizeof(*op));
	const char *part = name->text, *end = name->text + name->len;
	struct rs_ptx_insn *in;

	if (!op)
		return -ENOMEM;
	in = &op->proto;
	in->text = name->text;
	in->vec = 1;
	in->pred = -1;
	while (part < end) {
		const char *dot = memchr(part, '.', (size_t)(end - part));
		size_t len = (size_t)((dot ? dot : end) - part);
		struct rs_ptx_str *s = rs_ptx_intern(p->arena, part, len);

		if (!s)
			return -ENOMEM;
		if (in->nparts == RS_PTX_MAX_PARTS)
			return rs_ptx_fail(p, line, "'%.60s' has more than %d parts", name->text,
					   RS_PTX_MAX_PARTS);
		if (in->nparts)
			op_classify(in, part, len);
		in->part[in->nparts++] = s->text;
		part += len + 1;
	}
	op->form = op_form(in->part[0]);
	name->op = op;
	return 0;
}

/* The opcode at tok; its dotted parts may stand apart. */
static int parse_opcode(struct rs_ptx_parser *p, struct rs_ptx_str **ret_name)
{
	char text[256];
	size_t len;
	int rc;

	rs_ptx_lex_dotted(&p->lex, &p->tok);
	*ret_name = rs_ptx_tok_intern(p);
	rc = *ret_name ? rs_ptx_next(p) : -ENOMEM;
	if (rc || p->tok.kind != RS_PTX_TOK_DIRECTIVE)
		return rc;
	len = (*ret_name)->len;
	if (len < sizeof(text))
		memcpy(text, (*ret_name)->text, len);
	while (!rc && p->tok.kind == RS_PTX_TOK_DIRECTIVE) {
		if (len + p->tok.len > sizeof(text))
			return rs_ptx_unexpected(p, "an operand");
		memcpy(text + len, p->tok.text, p->tok.len);
		len += p->tok.len;
		rc = rs_ptx_next(p);
	}
	if (!rc)
		*ret_name = rs_ptx_intern(p->arena, text, len);
	return rc || *ret_name ? rc : -ENOMEM;
}

/* `@p` or `@!p` */
static int parse_guard(struct rs_ptx_parser *p, int32_t *ret_reg, uint8_t *ret_negate)
{
	const struct rs_ptx_bind *b = NULL;
	struct rs_ptx_str *name;
	int rc = rs_ptx_next(p);

	if (!rc && rs_ptx_at(p, '!')) {
		*ret_negate = 1;
		rc = rs_ptx_next(p);
	}
	if (!rc && p->tok.kind != RS_PTX_TOK_IDENT)
		rc = rs_ptx_unexpected(p, "a predicate");
	if (rc)
		return rc;
	name = rs_ptx_tok_intern(p);
	rc = name ? rs_ptx_lookup(p, name, &b) : -ENOMEM;
	if (rc)
		return rc;
	if (!b || b->kind != RS_PTX_BIND_REG)
		return rs_ptx_unexpected(p, "a predicate register");
	*ret_reg = b->index;
	return rs_ptx_next(p);
}

/* A label as operand number `n`. */
static int parse_target(struct rs_ptx_parser *p, struct rs_ptx_operand *o, unsigned n, int is_table)
{
	struct rs_ptx_fixup fix = {.insn = p->insns.n, .op = (uint8_t)n, .is_table = !!is_table};
	struct rs_ptx_str *name;
	int rc;

	if (p->tok.kind != RS_PTX_TOK_IDENT)
		return rs_ptx_unexpected(p, "a label");
	name = rs_ptx_tok_intern(p);
	if (!name)
		return -ENOMEM;
	o->kind = is_table ? RS_PTX_OP_SYM : RS_PTX_OP_LABEL;
	o->reg = o->reg2 = o->target = -1;
	o->name = name->text;
	rc = rs_ptx_label_use(p, name, p->tok.line, &fix);
	return rc ? rc : rs_ptx_next(p);
}

static int parse_operands(struct rs_ptx_parser *p, const struct rs_ptx_op *op,
			  struct rs_ptx_insn *in)
{
	int rc;

	if (rs_ptx_at(p, ';'))
		return 0;
	for (;;) {
		struct rs_ptx_operand *o = &in->op[in->noperands];

		if (in->noperands == RS_PTX_MAX_OPERANDS)
			return rs_ptx_fail(p, p->tok.line, "'%.60s' has more than %d operands",
					   in->text, RS_PTX_MAX_OPERANDS);
		if (op->form == RS_PTX_FORM_BRA && !in->noperands)
			rc = parse_target(p, o, 0, 0);
		else if (op->form == RS_PTX_FORM_BRX && in->noperands == 1)
			rc = parse_target(p, o, 1, 1);
		else
			rc = rs_ptx_operand_parse(p, op, o);
		in->noperands++;
		if (rc || !rs_ptx_at(p, ','))
			return rc;
		rc = rs_ptx_next(p);
		if (rc)
			return rc;
	}
}

/* The opcode's name has been read. */
static int parse_insn(struct rs_ptx_parser *p, struct rs_ptx_str *name, struct rs_ptx_insn *guard)
{
	struct rs_ptx_insn in, *slot;
	int rc = name->op ? 0 : op_decode(p, name, guard->line);

	if (rc)
		return rc;
	in = name->op->proto;
	in.pred = guard->pred;
	in.pred_negate = guard->pred_negate;
	in.line = guard->line;
	rc = name->op->form == RS_PTX_FORM_CALL ? rs_ptx_call_parse(p, &in)
						: parse_operands(p, name->op, &in);
	if (!rc)
		rc = rs_ptx_expect(p, ';');
	if (rc)
		return rc;
	slot = rs_ptx_push(&p->insns, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	*slot = in;
	return 0;
}

int rs_ptx_statement(struct rs_ptx_parser *p, struct rs_ptx_str **ret_label)
{
	struct rs_ptx_insn guard = {.pred = -1};
	struct rs_ptx_str *name = NULL;
	int guarded = rs_ptx_at(p, '@'), rc = 0;

	if (guarded)
		rc = parse_guard(p, &guard.pred, &guard.pred_negate);
	if (!rc && p->tok.kind != RS_PTX_TOK_IDENT)
		rc = rs_ptx_unexpected(p, "an instruction");
	guard.line = p->tok.line;
	if (!rc)
		rc = parse_opcode(p, &name);
	if (rc)
		return rc;
	if (rs_ptx_at(p, ':') && !guarded && !memchr(name->text, '.', name->len)) {
		*ret_label = name;
		return rs_ptx_next(p);
	}
	return parse_insn(p, name, &guard);
}
