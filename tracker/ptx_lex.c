/* SPDX-License-Identifier: MIT */
/*
 * PTX text to tokens: blanks and comments, names, directives, numbers, punctuation.
 *
 * Invariants and callers: ptx_lex.h. Big initialiser lists are most of a cuRAND module's text, so
 * plain decimal integers take a short path.
 */
#include "tracker/ptx_lex.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int is_alpha(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int is_word(char c)
{
	return is_alpha(c) || is_digit(c) || c == '_' || c == '$';
}

static int digit_value(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 99;
}

/* Blanks and both comment styles. */
static const char *skip_blank(struct rs_ptx_lex *lex)
{
	const char *p = lex->cur, *end = lex->end;

	for (; p < end; p++) {
		if (*p == '\n') {
			lex->line++;
		} else if (*p == '/' && end - p > 1 && p[1] == '/') {
			p = memchr(p, '\n', (size_t)(end - p));
			if (!p) {
				p = end;
				break;
			}
			lex->line++;
		} else if (*p == '/' && end - p > 1 && p[1] == '*') {
			uint32_t start = lex->line;

			for (p += 2; end - p > 1 && !(p[0] == '*' && p[1] == '/'); p++)
				lex->line += *p == '\n';
			if (end - p < 2) {
				lex->line = start;
				lex->cur = end;
				return "unterminated comment";
			}
			p++;
		} else if (*p != ' ' && *p != '\t' && *p != '\r' && *p != '\f' && *p != '\v') {
			break;
		}
	}
	lex->cur = p;
	return NULL;
}

/* One or more words joined by `::`. Returns the end, or p itself where no word begins. */
static const char *words_end(const char *p, const char *end)
{
	const char *start = p;

	for (;;) {
		const char *word = p;

		while (p < end && is_word(*p))
			p++;
		if (p == word)
			return start;
		if (end - p < 3 || p[0] != ':' || p[1] != ':' || !is_word(p[2]))
			return p;
		p += 2;
	}
}

/* 0f and 0d: exactly 8 or 16 hexadecimal digits, the bits of the number. */
static const char *lex_float_bits(struct rs_ptx_tok *tok, const char *p, const char *end,
				  int digits)
{
	int i;

	tok->kind = RS_PTX_TOK_FLOAT;
	tok->fbits = (uint8_t)(digits * 4);
	tok->value = 0;
	for (i = 0; i < digits; i++, p++) {
		if (p >= end || digit_value(*p) > 15)
			return NULL;
		tok->value = tok->value << 4 | (uint64_t)digit_value(*p);
	}
	return p;
}

/* 1.5, 1e10: always 64 bits. The C locale is asked for, since the process may run in another. */
static const char *lex_decimal_float(struct rs_ptx_tok *tok, const char *p, const char *end)
{
	char buf[128];
	size_t n = 0;
	double value;
	locale_t c;
	char *stop;

	while (p + n < end && n < sizeof(buf) - 1) {
		char ch = p[n];

		if (!is_digit(ch) && ch != '.' && ch != 'e' && ch != 'E' &&
		    !((ch == '+' || ch == '-') && n && (p[n - 1] == 'e' || p[n - 1] == 'E')))
			break;
		buf[n++] = ch;
	}
	buf[n] = '\0';
	c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	if (!c)
		return NULL;
	value = strtod_l(buf, &stop, c);
	freelocale(c);
	if (*stop || n == sizeof(buf) - 1)
		return NULL;
	tok->kind = RS_PTX_TOK_FLOAT;
	tok->fbits = 64;
	memcpy(&tok->value, &value, sizeof(value));
	return p + n;
}

static const char *lex_integer(struct rs_ptx_tok *tok, const char *p, const char *end,
			       unsigned base)
{
	const char *start = p;
	uint64_t v = 0;

	for (; p < end && (unsigned)digit_value(*p) < base; p++) {
		if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)digit_value(*p), &v))
			return NULL;
	}
	if (p == start)
		return NULL;
	tok->kind = RS_PTX_TOK_INT;
	tok->value = v;
	tok->is_unsigned = v > INT64_MAX;
	if (p < end && (*p == 'U' || *p == 'u')) {
		tok->is_unsigned = 1;
		p++;
	}
	return p;
}

/* Does a decimal point or an exponent follow the digits at p? */
static int is_decimal_float(const char *p, const char *end)
{
	while (p < end && is_digit(*p))
		p++;
	if (p < end && *p == '.')
		return end - p < 2 || !(is_alpha(p[1]) || p[1] == '_');
	return p < end && (*p == 'e' || *p == 'E');
}

static const char *lex_number(struct rs_ptx_tok *tok, const char *p, const char *end)
{
	char kind = '\0';

	if (*p == '0' && end - p > 1)
		kind = p[1];
	switch (kind) {
	case 'x':
	case 'X':
		p = lex_integer(tok, p + 2, end, 16);
		break;
	case 'b':
	case 'B':
		p = lex_integer(tok, p + 2, end, 2);
		break;
	case 'f':
	case 'F':
		p = lex_float_bits(tok, p + 2, end, 8);
		break;
	case 'd':
	case 'D':
		p = lex_float_bits(tok, p + 2, end, 16);
		break;
	default:
		if (is_decimal_float(p, end))
			p = lex_decimal_float(tok, p, end);
		else
			p = lex_integer(tok, p, end, is_digit(kind) ? 8 : 10);
	}
	return p && p < end && is_word(*p) ? NULL : p;
}

static unsigned lex_pair(char a, char b)
{
	switch ((unsigned char)a << 8 | (unsigned char)b) {
	case '<' << 8 | '<':
		return RS_PTX_SHL;
	case '>' << 8 | '>':
		return RS_PTX_SHR;
	case '<' << 8 | '=':
		return RS_PTX_LE;
	case '>' << 8 | '=':
		return RS_PTX_GE;
	case '=' << 8 | '=':
		return RS_PTX_EQ;
	case '!' << 8 | '=':
		return RS_PTX_NE;
	case '&' << 8 | '&':
		return RS_PTX_ANDAND;
	case '|' << 8 | '|':
		return RS_PTX_OROR;
	default:
		return 0;
	}
}

static const char *lex_punct(struct rs_ptx_lex *lex, struct rs_ptx_tok *tok)
{
	const char *p = lex->cur;
	unsigned pair = lex->end - p > 1 ? lex_pair(p[0], p[1]) : 0;

	if (!memchr("{}()[]<>,;:=+-*/%&|^~!?@", *p, 24))
		return "unexpected character";
	tok->kind = RS_PTX_TOK_PUNCT;
	tok->punct = pair ? (uint8_t)pair : (uint8_t)*p;
	tok->len = pair ? 2 : 1;
	lex->cur += tok->len;
	return NULL;
}

static const char *lex_string(struct rs_ptx_lex *lex, struct rs_ptx_tok *tok)
{
	const char *p = lex->cur + 1;

	for (; p < lex->end && *p != '"' && *p != '\n'; p++)
		if (*p == '\\' && lex->end - p > 1 && p[1] != '\n')
			p++;
	if (p >= lex->end || *p != '"')
		return "unterminated string";
	tok->kind = RS_PTX_TOK_STRING;
	lex->cur = p + 1;
	tok->len = (uint32_t)(lex->cur - tok->text);
	return NULL;
}

static const char *lex_word(struct rs_ptx_lex *lex, struct rs_ptx_tok *tok)
{
	const char *p = lex->cur;

	if (*p == '.') {
		tok->kind = RS_PTX_TOK_DIRECTIVE;
		lex->cur = words_end(p + 1, lex->end);
		if (lex->cur == p + 1)
			return "a name must follow the dot";
	} else {
		tok->kind = RS_PTX_TOK_IDENT;
		for (p++; p < lex->end && is_word(*p); p++)
			;
		lex->cur = p;
	}
	tok->len = (uint32_t)(lex->cur - tok->text);
	return NULL;
}

const char *rs_ptx_lex_next(struct rs_ptx_lex *lex, struct rs_ptx_tok *tok)
{
	const char *why = skip_blank(lex), *p = lex->cur;
	int percent_name;

	tok->kind = RS_PTX_TOK_END;
	tok->text = p;
	tok->len = 0;
	tok->line = lex->line;
	if (why || p >= lex->end)
		return why;
	if (is_digit(*p)) {
		lex->cur = lex_number(tok, p, lex->end);
		if (!lex->cur) {
			lex->cur = lex->end;
			return "malformed number";
		}
		tok->len = (uint32_t)(lex->cur - p);
		return NULL;
	}
	/* A percent sign begins a register's name, or is the remainder operator of an expression. */
	percent_name = *p == '%' && lex->end - p > 1 && is_word(p[1]) && !is_digit(p[1]);
	if (is_word(*p) || *p == '.' || percent_name)
		return lex_word(lex, tok);
	if (*p == '"')
		return lex_string(lex, tok);
	return lex_punct(lex, tok);
}

void rs_ptx_lex_dotted(struct rs_ptx_lex *lex, struct rs_ptx_tok *tok)
{
	while (lex->cur < lex->end && *lex->cur == '.') {
		const char *stop = words_end(lex->cur + 1, lex->end);

		if (stop == lex->cur + 1)
			break;
		lex->cur = stop;
	}
	tok->len = (uint32_t)(lex->cur - tok->text);
}
