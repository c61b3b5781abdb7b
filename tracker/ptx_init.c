/* SPDX-License-Identifier: MIT */
/*
 * Initialisers of PTX variables: byte images, and the addresses inside them.
 *
 * Invariants: a list fills its dimension from the start, the rest is zero; writes stay inside the
 * variable. Images are capped per module (RS_PTX_MAX_INIT), because `x[1000000000] = {0}` is short.
 * Callers: ptx_decl.c. No locks.
 */
#include "tracker/ptx_parser.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct init {
	struct rs_ptx_parser *p;
	const struct rs_ptx_init *in;
	uint8_t *data;
	uint64_t size; /* of data */
	uint64_t pos;
	struct rs_ptx_vec relocs;
};

/* Room up to `end`. Only `x[] = {...}` grows. */
static int init_room(struct init *s, uint64_t end)
{
	uint64_t want;
	uint8_t *data;

	if (end <= s->size)
		return 0;
	if (!s->in->ndims || s->in->dims[0])
		return rs_ptx_fail(s->p, s->p->tok.line, "too many initialisers for '%.60s'",
				   s->in->var->name);
	want = s->size ? s->size * 2 : 256;
	if (want < end)
		want = end;
	if (want > RS_PTX_MAX_INIT - s->p->init_bytes)
		return rs_ptx_fail(s->p, s->p->tok.line, "initialisers exceed %llu bytes",
				   RS_PTX_MAX_INIT);
	data = realloc(s->data, want);
	if (!data)
		return -ENOMEM;
	memset(data + s->size, 0, want - s->size);
	s->data = data;
	s->size = want;
	return 0;
}

static int is_float_type(unsigned type)
{
	return type == RS_PTX_F32 || type == RS_PTX_F64;
}

static int init_float(struct init *s, int negative)
{
	const struct rs_ptx_tok *t = &s->p->tok;
	unsigned type = s->in->var->type;
	uint64_t bits = t->value;
	float f;
	double d;

	if (t->fbits == 32 && negative)
		bits ^= 1u << 31;
	else if (negative)
		bits ^= 1ull << 63;
	if (t->fbits == 64 && type == RS_PTX_F32) {
		memcpy(&d, &bits, sizeof(d));
		f = (float)d;
		bits = 0;
		memcpy(&bits, &f, sizeof(f));
	} else if (t->fbits == 32 && type == RS_PTX_F64) {
		uint32_t narrow = (uint32_t)bits;

		memcpy(&f, &narrow, sizeof(f));
		d = f;
		memcpy(&bits, &d, sizeof(d));
	} else if (t->fbits != s->in->elem * 8) {
		return rs_ptx_unexpected(s->p, "a number of the variable's type");
	}
	memcpy(s->data + s->pos, &bits, s->in->elem);
	return rs_ptx_next(s->p);
}

static int init_number(struct init *s)
{
	unsigned type = s->in->var->type;
	struct rs_ptx_const c = {0, 0};
	int negative = rs_ptx_at(s->p, '-');
	struct rs_ptx_lex lex = s->p->lex;
	struct rs_ptx_tok tok = s->p->tok;
	int rc = 0;

	if (negative)
		rc = rs_ptx_next(s->p);
	if (rc)
		return rc;
	if (s->p->tok.kind == RS_PTX_TOK_FLOAT)
		return init_float(s, negative);
	s->p->lex = lex;
	s->p->tok = tok;
	rc = rs_ptx_expr(s->p, &c);
	if (rc)
		return rc;
	if (is_float_type(type)) {
		double d = c.is_unsigned ? (double)c.value : (double)(int64_t)c.value;
		float f = (float)d;

		memcpy(s->data + s->pos, type == RS_PTX_F32 ? (void *)&f : (void *)&d, s->in->elem);
	} else {
		memcpy(s->data + s->pos, &c.value, s->in->elem < 8 ? s->in->elem : 8);
	}
	return 0;
}

/* `symbol`, `symbol+4`, `generic(symbol)`, `generic(symbol)+4`, `generic(symbol+4)`. */
static int init_symbol(struct init *s, const char **ret_symbol, int64_t *ret_addend)
{
	struct rs_ptx_parser *p = s->p;
	struct rs_ptx_str *name = rs_ptx_tok_intern(p);
	int64_t inside = 0, outside = 0;
	uint32_t line = p->tok.line;
	int generic, rc = name ? rs_ptx_next(p) : -ENOMEM;

	if (rc)
		return rc;
	generic = !strcmp(name->text, "generic") && rs_ptx_at(p, '(');
	if (generic) {
		rc = rs_ptx_next(p);
		if (rc)
			return rc;
		if (p->tok.kind != RS_PTX_TOK_IDENT)
			return rs_ptx_unexpected(p, "a variable");
		name = rs_ptx_tok_intern(p);
		rc = name ? rs_ptx_next(p) : -ENOMEM;
		if (!rc)
			rc = rs_ptx_addend(p, &inside);
		if (!rc)
			rc = rs_ptx_expect(p, ')');
	}
	if (!rc)
		rc = rs_ptx_addend(p, &outside);
	if (rc)
		return rc;
	if (!name->bind)
		return rs_ptx_fail(p, line, "unknown symbol '%.60s'", name->text);
	*ret_symbol = name->text;
	*ret_addend = (int64_t)((uint64_t)inside + (uint64_t)outside);
	return 0;
}

static int init_address(struct init *s)
{
	struct rs_ptx_reloc *r;
	const char *symbol = NULL;
	uint32_t line = s->p->tok.line;
	int64_t addend = 0;
	int rc = init_symbol(s, &symbol, &addend);

	if (rc)
		return rc;
	if (s->in->elem != 4 && s->in->elem != 8)
		return rs_ptx_fail(s->p, line, "an address does not fit an element of %u bytes",
				   s->in->elem);
	r = rs_ptx_push(&s->relocs, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->offset = s->pos;
	r->symbol = symbol;
	r->addend = addend;
	r->bytes = (uint8_t)s->in->elem;
	return 0;
}

/*
 * 0xFF00(symbol): one byte of an address. nvcc writes a pointer inside a packed struct as the run
 * 0xFF(x), 0xFF00(x), ...; the run becomes one entry.
 */
static int init_mask(struct init *s, uint64_t mask)
{
	struct rs_ptx_parser *p = s->p;
	struct rs_ptx_reloc *r;
	const char *symbol = NULL;
	uint32_t line = p->tok.line;
	unsigned byte = mask ? (unsigned)__builtin_ctzll(mask) / 8 : 0;
	int64_t addend = 0;
	int rc = rs_ptx_expect(p, '(');

	if (rc)
		return rc;
	if (p->tok.kind != RS_PTX_TOK_IDENT)
		return rs_ptx_unexpected(p, "a variable");
	rc = init_symbol(s, &symbol, &addend);
	if (!rc)
		rc = rs_ptx_expect(p, ')');
	if (rc)
		return rc;
	if (s->in->elem != 1 || mask != 0xffull << byte * 8)
		return rs_ptx_fail(p, line, "an address mask must select one byte for one byte");
	if (byte) {
		r = s->relocs.n ? (struct rs_ptx_reloc *)s->relocs.data + s->relocs.n - 1 : NULL;
		if (!r || r->symbol != symbol || r->addend != addend || r->bytes != byte ||
		    r->offset + byte != s->pos)
			return rs_ptx_fail(p, line, "an address mask must follow the byte below");
		r->bytes++;
		return 0;
	}
	r = rs_ptx_push(&s->relocs, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->offset = s->pos;
	r->symbol = symbol;
	r->addend = addend;
	r->bytes = 1;
	return 0;
}

static int init_element(struct init *s)
{
	struct rs_ptx_parser *p = s->p;
	int rc = init_room(s, s->pos + s->in->elem);

	if (rc)
		return rc;
	if (p->tok.kind == RS_PTX_TOK_INT) {
		uint64_t value = p->tok.value;
		struct rs_ptx_lex lex = p->lex;
		struct rs_ptx_tok tok = p->tok;

		rc = rs_ptx_next(p);
		if (rc)
			return rc;
		if (rs_ptx_at(p, ',') && !is_float_type(s->in->var->type)) {
			memcpy(s->data + s->pos, &value, s->in->elem < 8 ? s->in->elem : 8);
		} else if (rs_ptx_at(p, '(')) {
			rc = init_mask(s, value);
		} else {
			p->lex = lex;
			p->tok = tok;
			rc = init_number(s);
		}
	} else if (p->tok.kind == RS_PTX_TOK_IDENT) {
		rc = init_address(s);
	} else {
		rc = init_number(s);
	}
	s->pos += s->in->elem;
	return rc;
}

/* A braced list for dimension `dim`, `bytes` in all (0: open ended). */
static int init_list(struct init *s, unsigned dim, uint64_t bytes)
{
	struct rs_ptx_parser *p = s->p;
	uint64_t start = s->pos, sub = s->in->elem;
	unsigned i;
	int rc = rs_ptx_expect(p, '{');

	for (i = dim + 1; i < s->in->ndims; i++)
		sub *= s->in->dims[i];
	while (!rc && !rs_ptx_at(p, '}')) {
		if (bytes && s->pos - start >= bytes)
			return rs_ptx_fail(p, p->tok.line, "too many initialisers for '%.60s'",
					   s->in->var->name);
		if (!rs_ptx_at(p, '{'))
			rc = init_element(s);
		else if (dim + 1 < s->in->ndims && !((s->pos - start) % sub))
			rc = init_list(s, dim + 1, sub);
		else
			return rs_ptx_unexpected(p, "a number");
		if (rc || !rs_ptx_at(p, ','))
			break;
		rc = rs_ptx_next(p);
	}
	if (!rc)
		rc = rs_ptx_expect(p, '}');
	if (bytes)
		s->pos = start + bytes;
	else if ((s->pos - start) % sub)
		s->pos += sub - (s->pos - start) % sub;
	return rc;
}

static int init_keep(struct init *s)
{
	struct rs_ptx_var *var = s->in->var;
	int rc = init_room(s, s->pos); /* the last sub-array may have been left short */

	if (rc)
		return rc;
	if (s->in->ndims && !s->in->dims[0])
		var->size = s->pos;
	if (s->relocs.n) {
		if (!rs_ptx_arena_adopt(s->p->arena, s->relocs.data)) {
			s->relocs.data = NULL;
			return -ENOMEM;
		}
		var->relocs = s->relocs.data;
		var->nrelocs = s->relocs.n;
		s->relocs.data = NULL;
	}
	if (s->data && !rs_ptx_arena_adopt(s->p->arena, s->data)) {
		s->data = NULL;
		return -ENOMEM;
	}
	var->init = s->data;
	s->data = NULL;
	s->p->init_bytes += s->size;
	return 0;
}

int rs_ptx_init_parse(struct rs_ptx_parser *p, const struct rs_ptx_init *in)
{
	struct init s = {.p = p, .in = in, .size = in->var->size};
	uint64_t i, inner = 1;
	int rc = 0;

	if (in->var->is_extern)
		return rs_ptx_unexpected(p, "no initialiser of an .extern variable");
	for (i = 1; i < in->ndims; i++)
		inner *= in->dims[i];
	if (!inner)
		return rs_ptx_unexpected(p, "no initialiser of an empty array");
	if (s.size > RS_PTX_MAX_INIT - p->init_bytes)
		return rs_ptx_fail(p, in->var->line, "initialisers exceed %llu bytes",
				   RS_PTX_MAX_INIT);
	if (s.size) {
		s.data = calloc(1, s.size);
		if (!s.data)
			return -ENOMEM;
	}
	if (in->ndims)
		rc = init_list(&s, 0, in->dims[0] ? s.size : 0);
	else
		rc = init_element(&s);
	if (!rc)
		rc = init_keep(&s);
	free(s.data);
	free(s.relocs.data);
	return rc;
}
