/* SPDX-License-Identifier: MIT */
/*
 * PTX text to tokens. A token points into the text; nothing is allocated.
 *
 * Invariants: never reads at or past `end`; `line` is the 1-based line of `cur`. A token's text
 * needs no escape handling: strings occur only in directives that are skipped.
 * Callers: ptx_*.c through struct rs_ptx_parser. No state besides the struct, no locks.
 */
#ifndef RS_TRACKER_PTX_LEX_H
#define RS_TRACKER_PTX_LEX_H

#include <stdint.h>

enum rs_ptx_tok_kind {
	RS_PTX_TOK_END,
	RS_PTX_TOK_IDENT,     /* name, %name, $name; no dots */
	RS_PTX_TOK_DIRECTIVE, /* .name, .name::name; text begins with the dot */
	RS_PTX_TOK_INT,
	RS_PTX_TOK_FLOAT, /* value: the bits, of `fbits` */
	RS_PTX_TOK_STRING,
	RS_PTX_TOK_PUNCT,
};

/* Punctuation is its character; pairs get a number of their own. */
enum rs_ptx_punct {
	RS_PTX_SHL = 128,
	RS_PTX_SHR,
	RS_PTX_LE,
	RS_PTX_GE,
	RS_PTX_EQ,
	RS_PTX_NE,
	RS_PTX_ANDAND,
	RS_PTX_OROR,
};

struct rs_ptx_tok {
	uint8_t kind;
	uint8_t punct;
	uint8_t fbits;	     /* FLOAT: 32 or 64 */
	uint8_t is_unsigned; /* INT: U suffix, or too large for a signed 64-bit number */
	uint32_t len;
	uint32_t line;
	const char *text;
	uint64_t value;
};

struct rs_ptx_lex {
	const char *cur, *end;
	uint32_t line;
};

/* The next token. Returns NULL, or what is wrong with the text (static); tok->line says where. */
const char *rs_ptx_lex_next(struct rs_ptx_lex *lex, struct rs_ptx_tok *tok);

/* Lengthen `tok`, which must be the last one read, by the dotted words that follow without a gap. */
void rs_ptx_lex_dotted(struct rs_ptx_lex *lex, struct rs_ptx_tok *tok);

#endif
