/* SPDX-License-Identifier: MIT */
/*
 * Functions and kernels of PTX: headers, bodies, the directives inside them.
 *
 * Invariants: a function declared and later defined is one struct rs_ptx_func, its address
 * unchanged, so that names bound to it stay good; every label used is defined when a body ends.
 * Callers: ptx_parse.c. No locks.
 */
#include "tracker/ptx_parser.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* .maxntid 128, 2: what is not given is 1. */
static int parse_ntid(struct rs_ptx_parser *p, uint32_t ntid[3])
{
	unsigned i;
	int rc;

	ntid[0] = ntid[1] = ntid[2] = 1;
	for (i = 0; i < 3; i++) {
		uint64_t n = 0;

		rc = rs_ptx_next(p);
		if (!rc)
			rc = rs_ptx_integer(p, 1, UINT32_MAX, "number of threads", &n);
		if (rc)
			return rc;
		ntid[i] = (uint32_t)n;
		if (!rs_ptx_at(p, ','))
			return 0;
	}
	return rs_ptx_unexpected(p, "at most three dimensions");
}

/* Numbers behind a directive that only tunes. */
static int skip_numbers(struct rs_ptx_parser *p)
{
	int rc = rs_ptx_next(p);

	while (!rc && (p->tok.kind == RS_PTX_TOK_INT || rs_ptx_at(p, ',')))
		rc = rs_ptx_next(p);
	return rc;
}

/* Between the parameters and the body. */
static int parse_tuning(struct rs_ptx_parser *p, struct rs_ptx_func *f)
{
	static const char *const skipped[] = {
		".minnctapersm",   ".maxnctapersm",	    ".maxnreg",
		".noreturn",	   ".explicitcluster",	    ".reqnctapercluster",
		".maxclusterrank", ".blocksareclusters",    ".unique",
		".abi_preserve",   ".abi_preserve_control",
	};
	unsigned i;

	if (rs_ptx_at_directive(p, ".maxntid"))
		return parse_ntid(p, f->maxntid);
	if (rs_ptx_at_directive(p, ".reqntid"))
		return parse_ntid(p, f->reqntid);
	if (rs_ptx_at_directive(p, ".pragma"))
		return rs_ptx_skip_statement(p);
	for (i = 0; i < sizeof(skipped) / sizeof(skipped[0]); i++)
		if (rs_ptx_at_directive(p, skipped[i]))
			return skip_numbers(p);
	return rs_ptx_unexpected(p, "a function body");
}

static int parse_header(struct rs_ptx_parser *p, struct rs_ptx_func *f)
{
	struct rs_ptx_str *name;
	int rc = rs_ptx_next(p);

	if (!rc && !f->is_entry && rs_ptx_at(p, '('))
		rc = rs_ptx_decl_params(p, f, 1);
	if (rc)
		return rc;
	if (p->tok.kind != RS_PTX_TOK_IDENT)
		return rs_ptx_unexpected(p, "a function name");
	name = rs_ptx_tok_intern(p);
	if (!name)
		return -ENOMEM;
	f->name = name->text;
	f->line = p->tok.line;
	rc = rs_ptx_next(p);
	if (!rc && rs_ptx_at(p, '('))
		rc = rs_ptx_decl_params(p, f, 0);
	while (!rc && p->tok.kind == RS_PTX_TOK_DIRECTIVE)
		rc = parse_tuning(p, f);
	return rc;
}

/*
 * Find or make the module's record of the function. *ret_func is NULL where a declaration follows
 * what is known already.
 */
static int func_enter(struct rs_ptx_parser *p, const struct rs_ptx_func *f,
		      struct rs_ptx_func **ret_func)
{
	struct rs_ptx_str *name = rs_ptx_interned(p->arena, f->name, strlen(f->name));
	struct rs_ptx_bind proto = {.kind = RS_PTX_BIND_FUNC}, *b = name->bind;
	struct rs_ptx_func **slot;
	int rc;

	while (b && b->depth)
		b = b->outer;
	if (b && b->kind == RS_PTX_BIND_FUNC && b->func->is_entry == f->is_entry &&
	    (f->is_extern || b->func->is_extern)) {
		*ret_func = f->is_extern ? NULL : b->func;
		if (!f->is_extern)
			*b->func = *f;
		return 0;
	}
	proto.func = rs_ptx_arena_alloc(p->arena, sizeof(*proto.func));
	if (!proto.func)
		return -ENOMEM;
	*proto.func = *f;
	rc = rs_ptx_bind(p, &name->bind, 0, &proto, f->name, f->line);
	if (rc)
		return rc;
	slot = rs_ptx_push(&p->funcs, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	*slot = *ret_func = proto.func;
	return 0;
}

/* `.branchtargets A, B;` behind its label. */
static int parse_targets(struct rs_ptx_parser *p, struct rs_ptx_str *label)
{
	struct rs_ptx_targets *t = rs_ptx_push(&p->tables, sizeof(*t));
	struct rs_ptx_vec names = {NULL, 0, 0};
	struct rs_ptx_fixup fix = {NULL, NULL, 0, 0, 0, 0};
	struct rs_ptx_str **slot;
	uint32_t i, line = p->tok.line;
	int rc = t ? 0 : -ENOMEM;

	do {
		if (!rc)
			rc = rs_ptx_next(p);
		if (!rc && p->tok.kind != RS_PTX_TOK_IDENT)
			rc = rs_ptx_unexpected(p, "a label");
		if (rc)
			break;
		slot = rs_ptx_push(&names, sizeof(*slot));
		if (slot)
			*slot = rs_ptx_tok_intern(p);
		rc = slot && *slot ? rs_ptx_next(p) : -ENOMEM;
	} while (!rc && rs_ptx_at(p, ','));
	if (!rc) {
		t->name = label->text;
		t->n = names.n;
		t->target = rs_ptx_arena_alloc(p->arena, names.n * sizeof(*t->target));
		rc = t->target ? rs_ptx_expect(p, ';') : -ENOMEM;
	}
	for (i = 0; i < names.n && !rc; i++) {
		fix.slot = &t->target[i];
		rc = rs_ptx_label_use(p, ((struct rs_ptx_str **)names.data)[i], line, &fix);
	}
	free(names.data);
	return rc;
}

/* At the word behind a label's colon. */
static int parse_label(struct rs_ptx_parser *p, struct rs_ptx_str *label, uint32_t line)
{
	int32_t table = rs_ptx_at_directive(p, ".branchtargets") ? (int32_t)p->tables.n : -1;
	int rc = rs_ptx_label_define(p, label, line, table);

	if (rc)
		return rc;
	if (table >= 0)
		return parse_targets(p, label);
	if (rs_ptx_at_directive(p, ".callprototype") || rs_ptx_at_directive(p, ".calltargets"))
		return rs_ptx_skip_statement(p);
	return 0;
}

static int parse_body_directive(struct rs_ptx_parser *p)
{
	enum rs_ptx_space space;
	int rc;

	if (rs_ptx_at_directive(p, ".loc") || rs_ptx_at_directive(p, ".file"))
		return rs_ptx_skip_location(p);
	if (rs_ptx_at_directive(p, ".pragma"))
		return rs_ptx_skip_statement(p);
	space = rs_ptx_space_parse(p->tok.text + 1, p->tok.len - 1);
	if (space == RS_PTX_SPACE_NONE)
		return rs_ptx_unexpected(p, "an instruction or a declaration");
	if (space == RS_PTX_SPACE_REG)
		return rs_ptx_decl_regs(p);
	rc = rs_ptx_next(p);
	return rc ? rc : rs_ptx_decl_vars(p, space, 0);
}

static int parse_statement(struct rs_ptx_parser *p)
{
	struct rs_ptx_str *label = NULL;
	uint32_t line = p->tok.line;
	int rc;

	if (p->tok.kind == RS_PTX_TOK_DIRECTIVE)
		return parse_body_directive(p);
	if (rs_ptx_at(p, '{') || rs_ptx_at(p, '}')) {
		rc = rs_ptx_at(p, '{') ? rs_ptx_scope_enter(p) : rs_ptx_scope_leave(p);
		return rc ? rc : rs_ptx_next(p);
	}
	rc = rs_ptx_statement(p, &label);
	return rc || !label ? rc : parse_label(p, label, line);
}

/* From `{` to behind its `}`. */
static int parse_body(struct rs_ptx_parser *p)
{
	unsigned outside = p->depth;
	const struct rs_ptx_fixup *f;
	int rc = 0;

	if (!rs_ptx_at(p, '{'))
		return rs_ptx_unexpected(p, "'{' or ';'");
	do
		rc = parse_statement(p);
	while (!rc && p->depth > outside);
	if (!rc && p->fixups.n) {
		f = p->fixups.data;
		rc = rs_ptx_fail(p, f->line, "undefined label '%.60s'", f->label->text);
	}
	return rc;
}

/* Hand a list to the function: an exact copy in the arena, so that the vector can be used again. */
static int keep(struct rs_ptx_parser *p, struct rs_ptx_vec *v, size_t elem, void *ret_list,
		uint32_t *ret_n)
{
	void *copy = rs_ptx_arena_alloc(p->arena, v->n * elem);

	if (!copy)
		return -ENOMEM;
	if (v->n)
		memcpy(copy, v->data, v->n * elem);
	memcpy(ret_list, &copy, sizeof(copy));
	*ret_n = v->n;
	return 0;
}

static int func_keep(struct rs_ptx_parser *p, struct rs_ptx_func *f)
{
	int rc = keep(p, &p->regs, sizeof(struct rs_ptx_reg), &f->regs, &f->nregs);

	if (!rc)
		rc = keep(p, &p->insns, sizeof(struct rs_ptx_insn), &f->insns, &f->ninsns);
	if (!rc)
		rc = keep(p, &p->func_vars, sizeof(struct rs_ptx_var *), &f->vars, &f->nvars);
	if (!rc)
		rc = keep(p, &p->tables, sizeof(struct rs_ptx_targets), &f->tables, &f->ntables);
	return rc;
}

int rs_ptx_func_parse(struct rs_ptx_parser *p, int is_extern, int visible)
{
	struct rs_ptx_func f = {.is_entry = (uint8_t)rs_ptx_at_directive(p, ".entry"),
				.visible = (uint8_t)visible};
	struct rs_ptx_func *func = NULL;
	int rc = rs_ptx_scope_enter(p);

	p->regs.n = p->insns.n = p->func_vars.n = p->tables.n = p->fixups.n = 0;
	p->declared_regs = 0;
	if (!rc)
		rc = parse_header(p, &f);
	if (rc)
		return rc;
	f.is_extern = (uint8_t)rs_ptx_at(p, ';');
	if (is_extern && !f.is_extern)
		return rs_ptx_unexpected(p, "';' after an .extern function");
	rc = func_enter(p, &f, &func);
	if (!rc && f.is_extern)
		rc = rs_ptx_next(p);
	else if (!rc)
		rc = parse_body(p);
	if (!rc)
		rc = rs_ptx_scope_leave(p);
	return rc || !func ? rc : func_keep(p, func);
}
