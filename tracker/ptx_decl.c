/* SPDX-License-Identifier: MIT */
/*
 * Declarations of PTX: types, registers, variables and parameters.
 *
 * Invariants: sizes are checked before anything is sized by them (RS_PTX_MAX_*); a module-level
 * variable declared .extern and defined in the same text is one variable, its address unchanged.
 * Callers: ptx_parse.c, ptx_func.c. No locks.
 */
#include "tracker/ptx_parser.h"

#include <errno.h>
#include <string.h>

static const struct {
	const char *name;
	uint8_t len, bytes;
} types[RS_PTX_TYPE_COUNT] = {[RS_PTX_NONE] = {"", 0, 0},
#define T(id, text, size) [RS_PTX_##id] = {text, sizeof(text) - 1, size},
			      RS_PTX_TYPES(T)
#undef T
};

unsigned rs_ptx_type_bytes(enum rs_ptx_type type)
{
	return (unsigned)type < RS_PTX_TYPE_COUNT ? types[type].bytes : 0;
}

const char *rs_ptx_type_name(enum rs_ptx_type type)
{
	return (unsigned)type < RS_PTX_TYPE_COUNT ? types[type].name : "";
}

enum rs_ptx_type rs_ptx_type_parse(const char *text, size_t len)
{
	unsigned i;

	for (i = RS_PTX_NONE + 1; i < RS_PTX_TYPE_COUNT; i++)
		if (types[i].len == len && !memcmp(types[i].name, text, len))
			return (enum rs_ptx_type)i;
	return RS_PTX_NONE;
}

enum rs_ptx_space rs_ptx_space_parse(const char *text, size_t len)
{
	static const struct {
		const char *name;
		enum rs_ptx_space space;
	} spaces[] = {
		{"reg", RS_PTX_SPACE_REG},	 {"param", RS_PTX_SPACE_PARAM},
		{"global", RS_PTX_SPACE_GLOBAL}, {"shared", RS_PTX_SPACE_SHARED},
		{"local", RS_PTX_SPACE_LOCAL},	 {"const", RS_PTX_SPACE_CONST},
	};
	const char *colon = memchr(text, ':', len);
	size_t i, n = colon ? (size_t)(colon - text) : len;

	for (i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
		if (strlen(spaces[i].name) == n && !memcmp(spaces[i].name, text, n))
			return spaces[i].space;
	return RS_PTX_SPACE_NONE;
}

/* What stands between the state space and the name. */
struct decl {
	uint8_t space;
	uint8_t type;
	uint8_t vec;
	uint8_t is_extern;
	uint8_t is_ptr; /* .ptr seen: alignment and space are the pointee's */
	uint32_t align;
};

static int decl_align(struct rs_ptx_parser *p, struct decl *d)
{
	uint32_t line = p->tok.line;
	uint64_t align = 0;
	int rc = rs_ptx_next(p);

	if (!rc)
		rc = rs_ptx_integer(p, 1, 1 << 16, ".align", &align);
	if (rc)
		return rc;
	if (align & (align - 1))
		return rs_ptx_fail(p, line, ".align %u is not a power of two", (unsigned)align);
	if (!d->is_ptr)
		d->align = (uint32_t)align;
	return 0;
}

/* .attribute(.managed), .attribute(.unified(1, 2)): how memory is placed is the driver's matter. */
static int decl_attribute(struct rs_ptx_parser *p)
{
	unsigned open = 0;
	int rc;

	do {
		rc = rs_ptx_next(p);
		if (rc)
			return rc;
		if (p->tok.kind == RS_PTX_TOK_END)
			return rs_ptx_unexpected(p, "')'");
		open += rs_ptx_at(p, '(');
		if (!open)
			return rs_ptx_unexpected(p, "'('");
		open -= rs_ptx_at(p, ')');
	} while (open);
	return rs_ptx_next(p);
}

static int decl_word(struct rs_ptx_parser *p, struct decl *d)
{
	const char *text = p->tok.text + 1;
	size_t len = p->tok.len - 1;
	enum rs_ptx_type type = rs_ptx_type_parse(text, len);

	if (len == 2 && text[0] == 'v' && (text[1] == '2' || text[1] == '4')) {
		d->vec = (uint8_t)(text[1] - '0');
	} else if (type || rs_ptx_at_directive(p, ".texref") ||
		   rs_ptx_at_directive(p, ".samplerref") || rs_ptx_at_directive(p, ".surfref")) {
		if (d->type)
			return rs_ptx_unexpected(p, "one type");
		d->type = (uint8_t)(type ? type : RS_PTX_B64);
	} else if (rs_ptx_at_directive(p, ".ptr") && d->space == RS_PTX_SPACE_PARAM) {
		d->is_ptr = 1;
	} else if (!d->is_ptr || !rs_ptx_space_parse(text, len)) {
		return rs_ptx_unexpected(p, "a type");
	}
	return rs_ptx_next(p);
}

static int decl_words(struct rs_ptx_parser *p, struct decl *d)
{
	int rc = 0;

	while (!rc && p->tok.kind == RS_PTX_TOK_DIRECTIVE) {
		if (rs_ptx_at_directive(p, ".align"))
			rc = decl_align(p, d);
		else if (rs_ptx_at_directive(p, ".attribute"))
			rc = decl_attribute(p);
		else
			rc = decl_word(p, d);
	}
	if (!rc && (p->tok.kind != RS_PTX_TOK_IDENT || !d->type))
		rc = rs_ptx_unexpected(p, d->type ? "a name" : "a type");
	return rc;
}

static int count_regs(struct rs_ptx_parser *p, uint64_t n)
{
	p->declared_regs += n;
	if (p->declared_regs > RS_PTX_MAX_REGS)
		return rs_ptx_fail(p, p->tok.line, "more than %u registers in a function",
				   RS_PTX_MAX_REGS);
	return 0;
}

/* `name`, or `prefix<count>`. */
static int decl_reg(struct rs_ptx_parser *p, const struct decl *d)
{
	struct rs_ptx_str *name = rs_ptx_tok_intern(p);
	struct rs_ptx_bind b = {.vec = d->vec, .type = d->type};
	uint32_t line = p->tok.line;
	uint64_t count = 0;
	int rc = name ? rs_ptx_next(p) : -ENOMEM;

	if (rc)
		return rc;
	if (!rs_ptx_at(p, '<')) {
		b.kind = d->vec > 1 ? RS_PTX_BIND_VREG : RS_PTX_BIND_REG;
		rc = count_regs(p, d->vec);
		if (!rc)
			rc = rs_ptx_reg_new(p, name->text, d->type, d->vec, &b.index);
		return rc ? rc : rs_ptx_bind(p, &name->bind, p->depth, &b, name->text, line);
	}
	rc = rs_ptx_next(p);
	if (!rc)
		rc = rs_ptx_integer(p, 0, RS_PTX_MAX_REGS, "register count", &count);
	if (!rc)
		rc = rs_ptx_expect(p, '>');
	if (!rc)
		rc = count_regs(p, count * d->vec);
	b.kind = RS_PTX_BIND_RANGE;
	b.count = (uint32_t)count;
	return rc ? rc : rs_ptx_bind(p, &name->range, p->depth, &b, name->text, line);
}

int rs_ptx_decl_regs(struct rs_ptx_parser *p)
{
	struct decl d = {.space = RS_PTX_SPACE_REG, .vec = 1};
	int rc = rs_ptx_next(p);

	if (!rc)
		rc = decl_words(p, &d);
	while (!rc) {
		if (p->tok.kind != RS_PTX_TOK_IDENT)
			return rs_ptx_unexpected(p, "a register name");
		rc = decl_reg(p, &d);
		if (rc || !rs_ptx_at(p, ','))
			break;
		rc = rs_ptx_next(p);
	}
	return rc ? rc : rs_ptx_expect(p, ';');
}

static int decl_dims(struct rs_ptx_parser *p, struct rs_ptx_init *in)
{
	const unsigned max = sizeof(in->dims) / sizeof(in->dims[0]) - 1; /* one left for .v4 */
	int rc = 0;

	while (!rc && rs_ptx_at(p, '[')) {
		uint32_t line = p->tok.line;
		uint64_t n = 0;

		if (in->ndims == max)
			return rs_ptx_fail(p, line, "more than %u dimensions", max);
		rc = rs_ptx_next(p);
		if (!rc && !(rs_ptx_at(p, ']') && !in->ndims))
			rc = rs_ptx_integer(p, 0, RS_PTX_MAX_VAR, "array size", &n);
		in->dims[in->ndims++] = n;
		if (!rc)
			rc = rs_ptx_expect(p, ']');
	}
	return rc;
}

static int decl_size(struct rs_ptx_parser *p, const struct decl *d, struct rs_ptx_init *in)
{
	uint64_t max = d->space == RS_PTX_SPACE_GLOBAL ? RS_PTX_MAX_VAR : RS_PTX_MAX_LOCAL;
	struct rs_ptx_var *var = in->var;
	unsigned i;

	var->size = in->elem;
	if (d->vec > 1)
		in->dims[in->ndims++] = d->vec;
	for (i = 0; i < in->ndims; i++) {
		uint64_t n = !i && !in->dims[i] ? 1 : in->dims[i];

		if (__builtin_mul_overflow(var->size, n, &var->size) || var->size > max)
			return rs_ptx_fail(p, var->line, "'%.60s' is larger than %llu bytes",
					   var->name, (unsigned long long)max);
	}
	if (in->ndims && !in->dims[0])
		var->size = 0;
	return 0;
}

/* A name and its dimensions; *in is set up for an initialiser. */
static int decl_var(struct rs_ptx_parser *p, const struct decl *d, struct rs_ptx_init *in)
{
	struct rs_ptx_str *name = rs_ptx_tok_intern(p);
	struct rs_ptx_var *var = rs_ptx_arena_alloc(p->arena, sizeof(*var));
	uint32_t natural;
	int rc;

	memset(in, 0, sizeof(*in));
	in->var = var;
	if (!name || !var)
		return -ENOMEM;
	if (d->type == RS_PTX_PRED && d->space != RS_PTX_SPACE_REG)
		return rs_ptx_fail(p, p->tok.line, "a .pred variable cannot be in memory");
	in->elem = rs_ptx_type_bytes(d->type);
	natural = in->elem * d->vec;
	var->name = name->text;
	var->space = d->space;
	var->type = d->type;
	var->is_extern = d->is_extern;
	var->align = d->align > natural ? d->align : natural;
	var->line = p->tok.line;
	rc = rs_ptx_next(p);
	if (!rc)
		rc = decl_dims(p, in);
	var->is_array = in->ndims > 0;
	return rc ? rc : decl_size(p, d, in);
}

static int vec_add(struct rs_ptx_vec *v, void *item)
{
	void **slot = rs_ptx_push(v, sizeof(*slot));

	if (!slot)
		return -ENOMEM;
	*slot = item;
	return 0;
}

/* Enter the variable in its scope's table and list; a declaration meets its definition here. */
static int decl_enter(struct rs_ptx_parser *p, struct rs_ptx_var **var)
{
	struct rs_ptx_str *name = rs_ptx_interned(p->arena, (*var)->name, strlen((*var)->name));
	struct rs_ptx_bind b = {.kind = RS_PTX_BIND_VAR, .var = *var};
	struct rs_ptx_bind *old = name->bind;
	int rc;

	if (!p->depth && old && old->kind == RS_PTX_BIND_VAR &&
	    (old->var->is_extern || (*var)->is_extern)) {
		if (old->var->space != (*var)->space)
			return rs_ptx_fail(p, (*var)->line, "'%.60s' changes its state space",
					   name->text);
		if (!(*var)->is_extern)
			*old->var = **var;
		*var = old->var;
		return 0;
	}
	rc = rs_ptx_bind(p, &name->bind, p->depth, &b, name->text, (*var)->line);
	return rc ? rc : vec_add(p->depth ? &p->func_vars : &p->vars, *var);
}

int rs_ptx_decl_vars(struct rs_ptx_parser *p, unsigned space, int is_extern)
{
	struct decl d = {.space = (uint8_t)space, .vec = 1, .is_extern = (uint8_t)is_extern};
	struct rs_ptx_init in;
	int rc = decl_words(p, &d);

	while (!rc) {
		if (p->tok.kind != RS_PTX_TOK_IDENT)
			return rs_ptx_unexpected(p, "a variable name");
		rc = decl_var(p, &d, &in);
		if (!rc)
			rc = decl_enter(p, &in.var);
		if (!rc && rs_ptx_at(p, '=')) {
			if (space != RS_PTX_SPACE_GLOBAL && space != RS_PTX_SPACE_CONST)
				return rs_ptx_unexpected(p, "no initialiser in this state space");
			rc = rs_ptx_next(p);
			if (!rc)
				rc = rs_ptx_init_parse(p, &in);
		}
		if (rc || !rs_ptx_at(p, ','))
			break;
		rc = rs_ptx_next(p);
	}
	return rc ? rc : rs_ptx_expect(p, ';');
}

/* A parameter in a register (.func without the ABI) is a register and a variable of that name. */
static int param_enter(struct rs_ptx_parser *p, struct rs_ptx_var *var, const struct decl *d)
{
	struct rs_ptx_str *name = rs_ptx_interned(p->arena, var->name, strlen(var->name));
	struct rs_ptx_bind b = {.kind = RS_PTX_BIND_VAR, .var = var, .type = d->type};
	int rc = 0;

	if (d->space == RS_PTX_SPACE_REG) {
		b.kind = d->vec > 1 ? RS_PTX_BIND_VREG : RS_PTX_BIND_REG;
		b.vec = d->vec;
		rc = count_regs(p, d->vec);
		if (!rc)
			rc = rs_ptx_reg_new(p, var->name, d->type, d->vec, &b.index);
	}
	/* In a prototype every parameter may be called `_`. */
	if (!rc && strcmp(var->name, "_") != 0)
		rc = rs_ptx_bind(p, &name->bind, p->depth, &b, var->name, var->line);
	return rc;
}

static int decl_param(struct rs_ptx_parser *p, struct rs_ptx_vec *list, uint64_t *bytes)
{
	struct decl d = {.vec = 1};
	struct rs_ptx_init in;
	struct rs_ptx_var *var;
	int rc;

	if (rs_ptx_at_directive(p, ".param"))
		d.space = RS_PTX_SPACE_PARAM;
	else if (rs_ptx_at_directive(p, ".reg"))
		d.space = RS_PTX_SPACE_REG;
	else
		return rs_ptx_unexpected(p, ".param");
	rc = rs_ptx_next(p);
	if (!rc)
		rc = decl_words(p, &d);
	if (!rc)
		rc = decl_var(p, &d, &in);
	if (rc)
		return rc;
	var = in.var;
	var->offset = (*bytes + var->align - 1) & ~(uint64_t)(var->align - 1);
	*bytes = var->offset + var->size;
	if (*bytes > RS_PTX_MAX_LOCAL)
		return rs_ptx_fail(p, var->line, "parameters are larger than %llu bytes",
				   RS_PTX_MAX_LOCAL);
	rc = param_enter(p, var, &d);
	return rc ? rc : vec_add(list, var);
}

int rs_ptx_decl_params(struct rs_ptx_parser *p, struct rs_ptx_func *f, int is_ret)
{
	struct rs_ptx_vec list = {NULL, 0, 0};
	uint64_t bytes = 0;
	int rc = rs_ptx_expect(p, '(');

	while (!rc && !rs_ptx_at(p, ')')) {
		rc = decl_param(p, &list, &bytes);
		if (rc || !rs_ptx_at(p, ','))
			break;
		rc = rs_ptx_next(p);
	}
	if (list.data && !rs_ptx_arena_adopt(p->arena, list.data))
		return -ENOMEM;
	if (is_ret) {
		f->rets = list.data;
		f->nrets = list.n;
	} else {
		f->params = list.data;
		f->nparams = list.n;
		f->param_bytes = bytes;
	}
	return rc ? rc : rs_ptx_expect(p, ')');
}
