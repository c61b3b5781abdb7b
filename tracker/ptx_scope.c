/* SPDX-License-Identifier: MIT */
/*
 * Names of the PTX parser: scopes, registers and their ranges, labels.
 *
 * Invariants: a string's bindings are listed innermost first, so a look-up is the head of a list;
 * leaving a scope unlinks exactly what was bound in it. A range's register is numbered when it is
 * first used, so a declaration costs nothing and numbers have no gaps.
 * Callers: ptx_*.c. No locks.
 */
#include "tracker/ptx_parser.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int rs_ptx_scope_enter(struct rs_ptx_parser *p)
{
	struct rs_ptx_scope *s;

	if (p->depth + 1 >= RS_PTX_MAX_NEST)
		return rs_ptx_fail(p, p->tok.line, "scopes nest deeper than %d", RS_PTX_MAX_NEST);
	s = &p->scope[++p->depth];
	s->binds = NULL;
	s->fixups = p->fixups.n;
	return 0;
}

static void fixup_apply(struct rs_ptx_parser *p, const struct rs_ptx_fixup *f,
			const struct rs_ptx_bind *label)
{
	struct rs_ptx_insn *insns = p->insns.data;

	if (f->slot)
		*f->slot = label->index;
	else
		insns[f->insn].op[f->op].target = f->is_table ? label->table : label->index;
}

int rs_ptx_scope_leave(struct rs_ptx_parser *p)
{
	struct rs_ptx_scope *s = &p->scope[p->depth];
	struct rs_ptx_fixup *fix = p->fixups.data;
	uint32_t i, kept = s->fixups;
	struct rs_ptx_bind *b;

	for (i = s->fixups; i < p->fixups.n; i++) {
		b = fix[i].label->label;
		if (!b || b->depth != p->depth) {
			fix[kept++] = fix[i];
			continue;
		}
		if (fix[i].is_table && b->table < 0)
			return rs_ptx_fail(p, fix[i].line, "'%.60s' is not a .branchtargets table",
					   fix[i].label->text);
		fixup_apply(p, &fix[i], b);
	}
	p->fixups.n = kept;
	for (b = s->binds; b; b = b->sister)
		*b->slot = b->outer;
	s->binds = NULL;
	p->depth--;
	return 0;
}

int rs_ptx_bind(struct rs_ptx_parser *p, struct rs_ptx_bind **slot, unsigned depth,
		const struct rs_ptx_bind *proto, const char *name, uint32_t line)
{
	struct rs_ptx_bind *b, **head = slot;

	while (*slot && (*slot)->depth > depth)
		slot = &(*slot)->outer;
	if (*slot && (*slot)->depth == depth)
		return rs_ptx_fail(p, line, "duplicate definition of '%.60s'", name);
	b = rs_ptx_arena_alloc(p->arena, sizeof(*b));
	if (!b)
		return -ENOMEM;
	*b = *proto;
	b->depth = (uint8_t)depth;
	b->slot = head; /* where it is by the time its scope ends: the deeper ones have gone */
	b->outer = *slot;
	*slot = b;
	b->sister = p->scope[depth].binds;
	p->scope[depth].binds = b;
	return 0;
}

/* Components of a vector register are registers of their own: v.x, v.y, ... */
static const char *component_name(struct rs_ptx_parser *p, const char *name, unsigned i)
{
	size_t len = strlen(name);
	char *text = rs_ptx_arena_alloc(p->arena, len + 3);

	if (!text)
		return NULL;
	memcpy(text, name, len);
	text[len] = '.';
	text[len + 1] = "xyzw"[i];
	return text;
}

int rs_ptx_reg_new(struct rs_ptx_parser *p, const char *name, unsigned type, unsigned vec,
		   int32_t *ret_index)
{
	unsigned i, n = vec > 1 ? vec : 1;
	int32_t first = (int32_t)p->regs.n;

	for (i = 0; i < n; i++) {
		struct rs_ptx_reg *r = rs_ptx_push(&p->regs, sizeof(*r));

		if (!r)
			return -ENOMEM;
		r->name = vec > 1 ? component_name(p, name, i) : name;
		if (!r->name)
			return -ENOMEM;
		r->type = (uint8_t)type;
	}
	*ret_index = first;
	return 0;
}

/* Give a range's register its number. */
static int range_use(struct rs_ptx_parser *p, const struct rs_ptx_bind *range,
		     struct rs_ptx_str *name, const struct rs_ptx_bind **ret_bind)
{
	struct rs_ptx_bind b = {.kind = range->vec > 1 ? RS_PTX_BIND_VREG : RS_PTX_BIND_REG,
				.vec = range->vec,
				.type = range->type};
	int rc = rs_ptx_reg_new(p, name->text, range->type, range->vec, &b.index);

	if (!rc)
		rc = rs_ptx_bind(p, &name->bind, range->depth, &b, name->text, p->tok.line);
	if (!rc)
		*ret_bind = name->bind;
	return rc;
}

int rs_ptx_lookup(struct rs_ptx_parser *p, struct rs_ptx_str *name,
		  const struct rs_ptx_bind **ret_bind)
{
	const struct rs_ptx_bind *found = NULL;
	unsigned depth = name->bind ? name->bind->depth : 0;
	uint64_t index = 0, scale = 1;
	uint32_t digits;

	/* Every split of the name into a range's prefix and an index without leading zeros. */
	for (digits = 1; digits <= 7 && digits < name->len; digits++, scale *= 10) {
		const char *c = &name->text[name->len - digits];
		const struct rs_ptx_str *prefix;
		const struct rs_ptx_bind *r;

		if (*c < '0' || *c > '9')
			break;
		index += (uint64_t)(*c - '0') * scale;
		if (*c == '0' && digits > 1)
			continue;
		prefix = rs_ptx_interned(p->arena, name->text, name->len - digits);
		for (r = prefix ? prefix->range : NULL; r && r->depth > depth; r = r->outer)
			if (index < r->count) {
				found = r;
				depth = r->depth;
				break;
			}
	}
	if (found)
		return range_use(p, found, name, ret_bind);
	*ret_bind = name->bind;
	return 0;
}

int rs_ptx_label_define(struct rs_ptx_parser *p, struct rs_ptx_str *name, uint32_t line,
			int32_t table)
{
	struct rs_ptx_bind b = {
		.kind = RS_PTX_BIND_LABEL, .index = (int32_t)p->insns.n, .table = table};

	return rs_ptx_bind(p, &name->label, p->depth, &b, name->text, line);
}

int rs_ptx_label_use(struct rs_ptx_parser *p, struct rs_ptx_str *name, uint32_t line,
		     const struct rs_ptx_fixup *proto)
{
	struct rs_ptx_fixup *f = rs_ptx_push(&p->fixups, sizeof(*f));

	if (!f)
		return -ENOMEM;
	*f = *proto;
	f->label = name;
	f->line = line;
	return 0;
}
