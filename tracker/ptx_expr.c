/* SPDX-License-Identifier: MIT */
/*
 * Constant expressions of PTX: 64-bit integers, C's operators and precedences, .s64/.u64 casts.
 *
 * Invariants: unsigned as soon as one side is (ISA 4.5.6); no host trap or undefined behaviour
 * whatever the text says (division by zero is an error, shifts are masked like the hardware's).
 * Callers: ptx_*.c. No locks.
 */
#include "tracker/ptx_parser.h"

#include <errno.h>
#include <string.h>

static int expr_ternary(struct rs_ptx_parser *p, struct rs_ptx_const *ret);

int rs_ptx_expr_begins(const struct rs_ptx_parser *p)
{
	return p->tok.kind == RS_PTX_TOK_INT || rs_ptx_at(p, '-') || rs_ptx_at(p, '+') ||
	       rs_ptx_at(p, '~') || rs_ptx_at(p, '!') || rs_ptx_at(p, '(');
}

/* Behind an opening parenthesis: `.s64)` and `.u64)` are casts. */
static int expr_cast(struct rs_ptx_parser *p, uint8_t *ret_unsigned)
{
	int rc;

	if (rs_ptx_at_directive(p, ".u64"))
		*ret_unsigned = 1;
	else if (rs_ptx_at_directive(p, ".s64"))
		*ret_unsigned = 0;
	else
		return rs_ptx_unexpected(p, ".s64 or .u64");
	rc = rs_ptx_next(p);
	return rc ? rc : rs_ptx_expect(p, ')');
}

static int expr_unary(struct rs_ptx_parser *p, struct rs_ptx_const *ret);

static int expr_paren(struct rs_ptx_parser *p, struct rs_ptx_const *ret)
{
	int rc = rs_ptx_next(p);

	if (rc)
		return rc;
	if (p->tok.kind == RS_PTX_TOK_DIRECTIVE) {
		uint8_t is_unsigned = 0;

		rc = expr_cast(p, &is_unsigned);
		if (!rc)
			rc = expr_unary(p, ret);
		ret->is_unsigned = is_unsigned;
		return rc;
	}
	rc = expr_ternary(p, ret);
	return rc ? rc : rs_ptx_expect(p, ')');
}

static int expr_operator(struct rs_ptx_parser *p, struct rs_ptx_const *ret)
{
	uint8_t op = p->tok.punct;
	int rc = rs_ptx_next(p);

	if (!rc)
		rc = expr_unary(p, ret);
	if (rc)
		return rc;
	if (op == '-') {
		ret->value = -ret->value;
	} else if (op == '~') {
		ret->value = ~ret->value;
	} else if (op == '!') {
		ret->value = !ret->value;
		ret->is_unsigned = 0;
	}
	return 0;
}

static int expr_unary(struct rs_ptx_parser *p, struct rs_ptx_const *ret)
{
	int rc;

	if (p->tok.kind == RS_PTX_TOK_INT) {
		ret->value = p->tok.value;
		ret->is_unsigned = p->tok.is_unsigned;
		return rs_ptx_next(p);
	}
	if (p->tok.kind == RS_PTX_TOK_IDENT && p->tok.len == 7 &&
	    !memcmp(p->tok.text, "WARP_SZ", 7)) {
		ret->value = 32;
		ret->is_unsigned = 0;
		return rs_ptx_next(p);
	}
	if (!rs_ptx_expr_begins(p))
		return rs_ptx_unexpected(p, "a constant");
	if (++p->nest > RS_PTX_MAX_NEST)
		return rs_ptx_fail(p, p->tok.line, "expression nests deeper than %d",
				   RS_PTX_MAX_NEST);
	rc = rs_ptx_at(p, '(') ? expr_paren(p, ret) : expr_operator(p, ret);
	p->nest--;
	return rc;
}

/* 0: not a binary operator. */
static int precedence(const struct rs_ptx_parser *p)
{
	if (p->tok.kind != RS_PTX_TOK_PUNCT)
		return 0;
	switch (p->tok.punct) {
	case '*':
	case '/':
	case '%':
		return 10;
	case '+':
	case '-':
		return 9;
	case RS_PTX_SHL:
	case RS_PTX_SHR:
		return 8;
	case '<':
	case '>':
	case RS_PTX_LE:
	case RS_PTX_GE:
		return 7;
	case RS_PTX_EQ:
	case RS_PTX_NE:
		return 6;
	case '&':
		return 5;
	case '^':
		return 4;
	case '|':
		return 3;
	case RS_PTX_ANDAND:
		return 2;
	case RS_PTX_OROR:
		return 1;
	default:
		return 0;
	}
}

static uint64_t divide(uint8_t op, uint64_t a, uint64_t b, int is_unsigned)
{
	if (is_unsigned)
		return op == '/' ? a / b : a % b;
	if ((int64_t)b == -1)
		return op == '/' ? -a : 0;
	return (uint64_t)(op == '/' ? (int64_t)a / (int64_t)b : (int64_t)a % (int64_t)b);
}

static uint64_t compare(uint8_t op, uint64_t a, uint64_t b, int is_unsigned)
{
	int less = is_unsigned ? a < b : (int64_t)a < (int64_t)b;

	switch (op) {
	case '<':
		return (uint64_t)less;
	case '>':
		return !less && a != b;
	case RS_PTX_LE:
		return less || a == b;
	case RS_PTX_GE:
		return !less;
	case RS_PTX_EQ:
		return a == b;
	default:
		return a != b;
	}
}

static uint64_t binary(uint8_t op, uint64_t a, uint64_t b, int is_unsigned)
{
	switch (op) {
	case '*':
		return a * b;
	case '+':
		return a + b;
	case '-':
		return a - b;
	case '/':
	case '%':
		return divide(op, a, b, is_unsigned);
	case RS_PTX_SHL:
		return a << (b & 63);
	case RS_PTX_SHR:
		return is_unsigned ? a >> (b & 63) : (uint64_t)((int64_t)a >> (b & 63));
	case '&':
		return a & b;
	case '^':
		return a ^ b;
	case '|':
		return a | b;
	case RS_PTX_ANDAND:
		return a && b;
	case RS_PTX_OROR:
		return a || b;
	default:
		return compare(op, a, b, is_unsigned);
	}
}

static int is_logical(uint8_t op)
{
	return op == '<' || op == '>' || op >= RS_PTX_LE;
}

/* Operators that bind at least as tightly as `min`, after the operand already in *ret. */
static int expr_rest(struct rs_ptx_parser *p, int min, struct rs_ptx_const *ret)
{
	int prec, rc;

	while ((prec = precedence(p)) && prec >= min) {
		struct rs_ptx_const rhs = {0, 0};
		uint8_t op = p->tok.punct;
		uint32_t line = p->tok.line;
		int is_unsigned;

		rc = rs_ptx_next(p);
		if (!rc)
			rc = expr_unary(p, &rhs);
		if (!rc)
			rc = expr_rest(p, prec + 1, &rhs);
		if (rc)
			return rc;
		if ((op == '/' || op == '%') && !rhs.value)
			return rs_ptx_fail(p, line, "division by zero in a constant expression");
		is_unsigned = op == RS_PTX_SHL || op == RS_PTX_SHR
				      ? ret->is_unsigned
				      : ret->is_unsigned || rhs.is_unsigned;
		ret->value = binary(op, ret->value, rhs.value, is_unsigned);
		ret->is_unsigned = !is_logical(op) && is_unsigned;
	}
	return 0;
}

static int expr_ternary(struct rs_ptx_parser *p, struct rs_ptx_const *ret)
{
	struct rs_ptx_const yes = {0, 0}, no = {0, 0};
	int rc = expr_unary(p, ret);

	if (!rc)
		rc = expr_rest(p, 1, ret);
	if (rc || !rs_ptx_at(p, '?'))
		return rc;
	if (++p->nest > RS_PTX_MAX_NEST)
		return rs_ptx_fail(p, p->tok.line, "expression nests deeper than %d",
				   RS_PTX_MAX_NEST);
	rc = rs_ptx_next(p);
	if (!rc)
		rc = expr_ternary(p, &yes);
	if (!rc)
		rc = rs_ptx_expect(p, ':');
	if (!rc)
		rc = expr_ternary(p, &no);
	p->nest--;
	if (!rc)
		*ret = ret->value ? yes : no;
	return rc;
}

int rs_ptx_expr(struct rs_ptx_parser *p, struct rs_ptx_const *ret)
{
	return expr_ternary(p, ret);
}

int rs_ptx_addend(struct rs_ptx_parser *p, int64_t *ret)
{
	struct rs_ptx_const sum = {0, 0};
	int rc = 0;

	if (rs_ptx_at(p, '+') || rs_ptx_at(p, '-'))
		rc = expr_rest(p, 9, &sum);
	if (!rc)
		*ret = (int64_t)sum.value;
	return rc;
}

int rs_ptx_integer(struct rs_ptx_parser *p, uint64_t min, uint64_t max, const char *what,
		   uint64_t *ret)
{
	struct rs_ptx_const c = {0, 0};
	uint32_t line = p->tok.line;
	int rc = expr_unary(p, &c);

	if (!rc)
		rc = expr_rest(p, 8, &c);
	if (rc)
		return rc;
	if (c.value < min || c.value > max)
		return rs_ptx_fail(p, line, "%s is %lld, outside %llu to %llu", what,
				   (long long)c.value, (unsigned long long)min,
				   (unsigned long long)max);
	*ret = c.value;
	return 0;
}
