/* SPDX-License-Identifier: MIT */
/*
 * The PTX parser's entry points, its tokens and errors, and the module level of the grammar.
 *
 * Invariants and callers: ptx.h, ptx_parser.h. The first error wins; errno is left as it was.
 */
#include "tracker/ptx_parser.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT (1ull << 30)

int rs_ptx_fail(struct rs_ptx_parser *p, uint32_t line, const char *fmt, ...)
{
	va_list ap;

	if (p->err.text[0])
		return -EINVAL;
	p->err.line = line;
	va_start(ap, fmt);
	vsnprintf(p->err.text, sizeof(p->err.text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int rs_ptx_unexpected(struct rs_ptx_parser *p, const char *wanted)
{
	const struct rs_ptx_tok *t = &p->tok;

	if (t->kind == RS_PTX_TOK_END)
		return rs_ptx_fail(p, t->line, "the text ends where %s is expected", wanted);
	return rs_ptx_fail(p, t->line, "'%.*s' found where %s is expected",
			   t->len > 60 ? 60 : (int)t->len, t->text, wanted);
}

int rs_ptx_next(struct rs_ptx_parser *p)
{
	const char *why = rs_ptx_lex_next(&p->lex, &p->tok);

	return why ? rs_ptx_fail(p, p->tok.line, "%s", why) : 0;
}

int rs_ptx_expect(struct rs_ptx_parser *p, uint8_t punct)
{
	char wanted[] = "' '";

	wanted[1] = (char)punct;
	if (!rs_ptx_at(p, punct))
		return rs_ptx_unexpected(p, wanted);
	return rs_ptx_next(p);
}

int rs_ptx_at_directive(const struct rs_ptx_parser *p, const char *name)
{
	return p->tok.kind == RS_PTX_TOK_DIRECTIVE && p->tok.len == strlen(name) &&
	       !memcmp(p->tok.text, name, p->tok.len);
}

struct rs_ptx_str *rs_ptx_tok_intern(struct rs_ptx_parser *p)
{
	return rs_ptx_intern(p->arena, p->tok.text, p->tok.len);
}

void *rs_ptx_push(struct rs_ptx_vec *v, size_t elem)
{
	void *item;

	if (v->n == v->cap) {
		uint32_t cap = v->cap ? v->cap * 2 : 16;
		void *data;

		if (cap < v->cap || cap > INT32_MAX)
			return NULL;
		data = realloc(v->data, cap * elem);
		if (!data)
			return NULL;
		v->data = data;
		v->cap = cap;
	}
	item = (char *)v->data + v->n++ * elem;
	memset(item, 0, elem);
	return item;
}

/* Neither directive ends in a semicolon, so what belongs to it is told by its form. */
int rs_ptx_skip_location(struct rs_ptx_parser *p)
{
	int rc = rs_ptx_next(p);

	while (!rc && p->tok.kind == RS_PTX_TOK_INT)
		rc = rs_ptx_next(p);
	if (!rc && p->tok.kind == RS_PTX_TOK_STRING)
		rc = rs_ptx_next(p);
	while (!rc && rs_ptx_at(p, ',')) {
		int words = 0;

		rc = rs_ptx_next(p);
		/* `function_name label+4`, `inlined_at 1 2 3`, or a number (.file) */
		while (!rc && p->tok.kind == RS_PTX_TOK_IDENT && words++ < 2) {
			int inlined = p->tok.len == 10 && !memcmp(p->tok.text, "inlined_at", 10);

			rc = rs_ptx_next(p);
			if (inlined)
				break;
		}
		if (!rc && rs_ptx_at(p, '+'))
			rc = rs_ptx_next(p);
		while (!rc && p->tok.kind == RS_PTX_TOK_INT)
			rc = rs_ptx_next(p);
	}
	return rc;
}

int rs_ptx_skip_statement(struct rs_ptx_parser *p)
{
	int rc = 0;

	while (!rc && !rs_ptx_at(p, ';')) {
		if (p->tok.kind == RS_PTX_TOK_END || rs_ptx_at(p, '{') || rs_ptx_at(p, '}'))
			return rs_ptx_unexpected(p, "';'");
		rc = rs_ptx_next(p);
	}
	return rc ? rc : rs_ptx_next(p);
}

/* .section name { data } */
static int skip_section(struct rs_ptx_parser *p)
{
	int rc = 0;

	while (!rc && !rs_ptx_at(p, '{')) {
		if (p->tok.kind != RS_PTX_TOK_DIRECTIVE && p->tok.kind != RS_PTX_TOK_IDENT &&
		    p->tok.kind != RS_PTX_TOK_STRING && !rs_ptx_at(p, ','))
			return rs_ptx_unexpected(p, "'{'");
		rc = rs_ptx_next(p);
	}
	while (!rc && !rs_ptx_at(p, '}')) {
		if (p->tok.kind == RS_PTX_TOK_END)
			return rs_ptx_unexpected(p, "'}'");
		rc = rs_ptx_next(p);
	}
	return rc ? rc : rs_ptx_next(p);
}

/* .version 9.0 */
static int parse_version(struct rs_ptx_parser *p)
{
	const char *c, *end;
	unsigned part[2] = {0, 0}, n = 0;
	int rc;

	if (!rs_ptx_at_directive(p, ".version"))
		return rs_ptx_unexpected(p, ".version");
	rc = rs_ptx_next(p);
	if (rc)
		return rc;
	end = p->tok.text + p->tok.len;
	for (c = p->tok.text; p->tok.kind == RS_PTX_TOK_FLOAT && c < end; c++) {
		if (*c == '.' && !n)
			n = 1;
		else if (*c >= '0' && *c <= '9' && part[n] < 100)
			part[n] = part[n] * 10 + (unsigned)(*c - '0');
		else
			break;
	}
	if (!n || c < end || part[1] > 9)
		return rs_ptx_unexpected(p, "a version such as 9.0");
	p->ptx->version = part[0] * 10 + part[1];
	return rs_ptx_next(p);
}

/* .target sm_90a, debug */
static int parse_target(struct rs_ptx_parser *p)
{
	int rc = rs_ptx_next(p);

	while (!rc) {
		const char *c = p->tok.text, *end = c + p->tok.len;
		unsigned sm = 0;

		if (p->tok.kind != RS_PTX_TOK_IDENT)
			return rs_ptx_unexpected(p, "a target");
		if (p->tok.len > 3 && !memcmp(c, "sm_", 3)) {
			for (c += 3; c < end && *c >= '0' && *c <= '9' && sm < 10000; c++)
				sm = sm * 10 + (unsigned)(*c - '0');
			if (!sm || end - c > 1)
				return rs_ptx_unexpected(p, "a target such as sm_90");
			p->ptx->sm = sm;
		}
		rc = rs_ptx_next(p);
		if (rc || !rs_ptx_at(p, ','))
			break;
		rc = rs_ptx_next(p);
	}
	return rc;
}

static int parse_address_size(struct rs_ptx_parser *p)
{
	uint64_t bits = 0;
	int rc = rs_ptx_next(p);

	if (!rc)
		rc = rs_ptx_integer(p, 32, 64, ".address_size", &bits);
	if (!rc && bits != 32 && bits != 64)
		rc = rs_ptx_fail(p, p->tok.line, ".address_size is neither 32 nor 64");
	p->ptx->address_size = (unsigned)bits;
	return rc;
}

/* Linkage, then a function or a variable. */
static int parse_declaration(struct rs_ptx_parser *p)
{
	int is_extern = 0, visible = 0, rc = 0;
	enum rs_ptx_space space;

	for (; !rc; rc = rs_ptx_next(p)) {
		if (rs_ptx_at_directive(p, ".extern"))
			is_extern = 1;
		else if (rs_ptx_at_directive(p, ".visible") || rs_ptx_at_directive(p, ".weak") ||
			 rs_ptx_at_directive(p, ".common"))
			visible = 1;
		else
			break;
	}
	if (rc)
		return rc;
	if (rs_ptx_at_directive(p, ".entry") || rs_ptx_at_directive(p, ".func"))
		return rs_ptx_func_parse(p, is_extern, visible);
	if (p->tok.kind != RS_PTX_TOK_DIRECTIVE)
		return rs_ptx_unexpected(p, "a directive");
	space = rs_ptx_space_parse(p->tok.text + 1, p->tok.len - 1);
	if (space != RS_PTX_SPACE_GLOBAL && space != RS_PTX_SPACE_CONST &&
	    space != RS_PTX_SPACE_SHARED)
		return rs_ptx_unexpected(p, "a function or a variable");
	rc = rs_ptx_next(p);
	return rc ? rc : rs_ptx_decl_vars(p, space, is_extern);
}

static int parse_directive(struct rs_ptx_parser *p)
{
	if (rs_ptx_at_directive(p, ".target"))
		return parse_target(p);
	if (rs_ptx_at_directive(p, ".address_size"))
		return parse_address_size(p);
	if (rs_ptx_at_directive(p, ".file") || rs_ptx_at_directive(p, ".loc"))
		return rs_ptx_skip_location(p);
	if (rs_ptx_at_directive(p, ".pragma"))
		return rs_ptx_skip_statement(p);
	if (rs_ptx_at_directive(p, ".section"))
		return skip_section(p);
	if (rs_ptx_at_directive(p, ".alias"))
		return rs_ptx_fail(p, p->tok.line, ".alias is not supported");
	return parse_declaration(p);
}

static int parse_module(struct rs_ptx_parser *p)
{
	int rc = rs_ptx_next(p);

	if (!rc)
		rc = parse_version(p);
	while (!rc && p->tok.kind != RS_PTX_TOK_END)
		rc = parse_directive(p);
	return rc;
}

static int keep_list(struct rs_ptx_arena *a, struct rs_ptx_vec *v)
{
	void *data = v->data;

	v->data = NULL;
	return data && !rs_ptx_arena_adopt(a, data) ? -ENOMEM : 0;
}

static int parse_all(struct rs_ptx_parser *p)
{
	int rc = parse_module(p);

	if (!rc) {
		p->ptx->vars = p->vars.data;
		p->ptx->nvars = p->vars.n;
		p->ptx->funcs = p->funcs.data;
		p->ptx->nfuncs = p->funcs.n;
		rc = keep_list(p->arena, &p->vars);
	}
	if (!rc)
		rc = keep_list(p->arena, &p->funcs);
	free(p->vars.data);
	free(p->funcs.data);
	free(p->regs.data);
	free(p->insns.data);
	free(p->func_vars.data);
	free(p->tables.data);
	free(p->fixups.data);
	free(p->scratch.data);
	return rc;
}

int rs_ptx_parse(const char *text, size_t len, struct rs_ptx **ret_ptx, struct rs_ptx_error *err)
{
	struct rs_ptx_parser p;
	int saved = errno, rc = -ENOMEM;

	memset(&p, 0, sizeof(p));
	len = strnlen(text, len);
	p.arena = rs_ptx_arena_new();
	p.ptx = p.arena ? rs_ptx_arena_alloc(p.arena, sizeof(*p.ptx)) : NULL;
	if (p.ptx) {
		p.ptx->arena = p.arena;
		p.ptx->address_size = 64;
		p.lex.cur = text;
		p.lex.end = text + len;
		p.lex.line = 1;
		rc = len > MAX_TEXT ? rs_ptx_fail(&p, 0, "the text is larger than 1 GiB")
				    : parse_all(&p);
	}
	if (rc) {
		rs_ptx_arena_free(p.arena);
		if (rc == -EINVAL && err)
			*err = p.err;
	} else {
		*ret_ptx = p.ptx;
	}
	errno = saved;
	return rc;
}

void rs_ptx_free(struct rs_ptx *ptx)
{
	if (ptx)
		rs_ptx_arena_free(ptx->arena);
}

const struct rs_ptx_func *rs_ptx_find(const struct rs_ptx *ptx, const char *name)
{
	const struct rs_ptx_str *s = rs_ptx_interned(ptx->arena, name, strlen(name));

	return s && s->bind && s->bind->kind == RS_PTX_BIND_FUNC ? s->bind->func : NULL;
}

int rs_ptx_has(const struct rs_ptx_insn *insn, const char *part)
{
	unsigned i;

	for (i = 1; i < insn->nparts; i++)
		if (!strcmp(insn->part[i], part))
			return 1;
	return 0;
}
