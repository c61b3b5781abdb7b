/* SPDX-License-Identifier: MIT */
/*
 * Polynomials and atoms of the PTX access analysis, hash-consed. See ptx_affine.h for the meaning.
 *
 * Invariants: an atom is entered once; its arguments exist before it, so atom numbers are a
 * topological order except through loops.
 * Callers: the analysis; one thread; no locks.
 */
#include "tracker/ptx_affine.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK (64 * 1024)

void *rs_aff_alloc(struct rs_aff_mem *mem, size_t size)
{
	char *p;

	size = (size + 15) & ~(size_t)15;
	if (size > mem->left) {
		size_t want = size + 16 > CHUNK ? size + 16 : CHUNK;
		void **chunk;

		if (mem->limit && mem->total + want > mem->limit)
			longjmp(mem->fail, RS_AFF_TOOBIG);
		chunk = calloc(1, want);
		if (!chunk)
			longjmp(mem->fail, RS_AFF_NOMEM);
		mem->total += want;
		*chunk = mem->chunk;
		mem->chunk = chunk;
		/* A large request has its chunk to itself; the rest of the old one is given up. */
		mem->left = want - 16;
	}
	/* Handed out from the end, so that the header stays at the start. */
	p = (char *)mem->chunk + 16 + (mem->left - size);
	mem->left -= size;
	return p;
}

void rs_aff_release(struct rs_aff_mem *mem)
{
	while (mem->chunk) {
		void *next = *(void **)mem->chunk;

		free(mem->chunk);
		mem->chunk = next;
	}
	mem->left = mem->total = 0;
}

void rs_aff_init(struct rs_aff *s, struct rs_aff_mem *mem)
{
	memset(s, 0, sizeof(*s));
	s->mem = mem;
	s->cap = 256;
	s->atoms = rs_aff_alloc(mem, s->cap * sizeof(*s->atoms));
	s->natoms = 1;
	s->nhash = 1024;
	s->hash = rs_aff_alloc(mem, s->nhash * sizeof(*s->hash));
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ (h >> 29);
}

static uint64_t hash_key(const struct rs_aff_atom *k, const struct rs_aff_poly *const *args)
{
	uint64_t h = mix(k->kind * 8u + k->how, (uint64_t)k->a);

	h = mix(h, (uint64_t)k->b);
	for (unsigned i = 0; i < k->nargs; i++) {
		h = mix(h, (uint64_t)args[i]->c);
		for (unsigned j = 0; j < args[i]->n; j++)
			h = mix(mix(h, (uint64_t)args[i]->t[j].coef), args[i]->t[j].atom[0]);
	}
	return h;
}

static int same_key(const struct rs_aff_atom *x, const struct rs_aff_atom *k,
		    const struct rs_aff_poly *const *args)
{
	if (x->kind != k->kind || x->how != k->how || x->a != k->a || x->b != k->b ||
	    x->nargs != k->nargs)
		return 0;
	for (unsigned i = 0; i < k->nargs; i++)
		if (!rs_aff_equal(x->arg[i], args[i]))
			return 0;
	return 1;
}

static void rehash(struct rs_aff *s)
{
	s->nhash *= 2;
	s->hash = rs_aff_alloc(s->mem, s->nhash * sizeof(*s->hash));
	for (uint32_t i = 1; i < s->natoms; i++) {
		uint64_t h = hash_key(s->atoms[i], s->atoms[i]->arg);

		while (s->hash[h & (s->nhash - 1)])
			h++;
		s->hash[h & (s->nhash - 1)] = (uint16_t)i;
	}
}

uint16_t rs_aff_atom(struct rs_aff *s, const struct rs_aff_atom *key,
		     const struct rs_aff_poly *const *args)
{
	struct rs_aff_atom *x;
	uint64_t h;

	if (s->natoms * 2 > s->nhash)
		rehash(s);
	for (h = hash_key(key, args); s->hash[h & (s->nhash - 1)]; h++) {
		uint16_t id = s->hash[h & (s->nhash - 1)];

		if (same_key(s->atoms[id], key, args)) {
			s->atoms[id]->origin.words |= key->origin.words;
			s->atoms[id]->origin.from |= key->origin.from;
			return id;
		}
	}
	if (s->natoms >= RS_AFF_MAX_ATOMS)
		longjmp(s->mem->fail, RS_AFF_TOOBIG);
	if (s->natoms == s->cap) {
		struct rs_aff_atom **old = s->atoms;

		s->atoms = rs_aff_alloc(s->mem, 2 * s->cap * sizeof(*s->atoms));
		memcpy(s->atoms, old, s->cap * sizeof(*old));
		s->cap *= 2;
	}
	x = rs_aff_alloc(s->mem, sizeof(*x) + key->nargs * sizeof(*x->arg));
	*x = *key;
	for (unsigned i = 0; i < key->nargs; i++)
		x->arg[i] = args[i];
	s->hash[h & (s->nhash - 1)] = (uint16_t)s->natoms;
	s->atoms[s->natoms] = x;
	return (uint16_t)s->natoms++;
}

static int64_t reduce(unsigned width, uint64_t v)
{
	return width == 32 ? (int64_t)(int32_t)(uint32_t)v : (int64_t)v;
}

static struct rs_aff_poly *new_poly(struct rs_aff *s, unsigned width, unsigned n)
{
	struct rs_aff_poly *p = rs_aff_alloc(s->mem, sizeof(*p) + n * sizeof(*p->t));

	p->width = (uint8_t)width;
	return p;
}

const struct rs_aff_poly *rs_aff_const(struct rs_aff *s, unsigned width, int64_t c)
{
	struct rs_aff_poly *p = new_poly(s, width, 0);

	p->c = reduce(width, (uint64_t)c);
	return p;
}

const struct rs_aff_poly *rs_aff_var(struct rs_aff *s, unsigned width, uint16_t atom)
{
	struct rs_aff_poly *p = new_poly(s, width, 1);

	p->n = 1;
	p->t[0].coef = 1;
	p->t[0].atom[0] = atom;
	return p;
}

static int cmp_term(const struct rs_aff_term *x, const struct rs_aff_term *y)
{
	for (unsigned i = 0; i < RS_AFF_DEGREE; i++)
		if (x->atom[i] != y->atom[i])
			return x->atom[i] > y->atom[i] ? -1 : 1;
	return 0;
}

const struct rs_aff_poly *rs_aff_add(struct rs_aff *s, const struct rs_aff_poly *a,
				     const struct rs_aff_poly *b, int64_t k)
{
	struct rs_aff_term out[2 * RS_AFF_MAX_TERMS];
	struct rs_aff_poly *p;
	unsigned i = 0, j = 0, n = 0;

	while (i < a->n || j < b->n) {
		int c = i >= a->n ? 1 : j >= b->n ? -1 : cmp_term(&a->t[i], &b->t[j]);
		struct rs_aff_term t = c <= 0 ? a->t[i] : b->t[j];
		uint64_t coef = c <= 0 ? (uint64_t)t.coef : 0;

		if (c >= 0)
			coef += (uint64_t)k * (uint64_t)b->t[j].coef;
		i += c <= 0;
		j += c >= 0;
		t.coef = reduce(a->width, coef);
		if (t.coef)
			out[n++] = t;
	}
	if (n > RS_AFF_MAX_TERMS)
		return NULL;
	p = new_poly(s, a->width, n);
	p->c = reduce(a->width, (uint64_t)a->c + (uint64_t)k * (uint64_t)b->c);
	p->n = (uint8_t)n;
	for (i = 0; i < n; i++)
		p->t[i] = out[i];
	return p;
}

/* The product of two monomials; 0 if its degree is too high. */
static int mul_term(const struct rs_aff_term *x, const struct rs_aff_term *y,
		    struct rs_aff_term *ret)
{
	unsigned i = 0, j = 0, n = 0;

	memset(ret, 0, sizeof(*ret));
	ret->coef = (int64_t)((uint64_t)x->coef * (uint64_t)y->coef);
	for (;;) {
		uint16_t u = i < RS_AFF_DEGREE ? x->atom[i] : 0;
		uint16_t v = j < RS_AFF_DEGREE ? y->atom[j] : 0;

		if (!u && !v)
			return 1;
		if (n == RS_AFF_DEGREE)
			return 0;
		ret->atom[n++] = u >= v ? u : v;
		if (u >= v)
			i++;
		else
			j++;
	}
}

const struct rs_aff_poly *rs_aff_mul(struct rs_aff *s, const struct rs_aff_poly *a,
				     const struct rs_aff_poly *b)
{
	const struct rs_aff_poly *sum = rs_aff_add(s, rs_aff_const(s, a->width, 0), b, a->c);

	if ((unsigned)a->n * b->n > 4 * RS_AFF_MAX_TERMS)
		return NULL;
	for (unsigned i = 0; sum && i < a->n; i++) {
		struct rs_aff_poly *one = new_poly(s, a->width, 1);

		one->n = 1;
		one->t[0] = a->t[i];
		sum = rs_aff_add(s, sum, one, b->c);
		for (unsigned j = 0; sum && j < b->n; j++) {
			struct rs_aff_poly *q = new_poly(s, a->width, 1);

			q->n = 1;
			if (!mul_term(&a->t[i], &b->t[j], &q->t[0]))
				return NULL;
			sum = rs_aff_add(s, sum, q, 1);
		}
	}
	return sum;
}

const struct rs_aff_poly *rs_aff_resize(struct rs_aff *s, const struct rs_aff_poly *p,
					unsigned width)
{
	struct rs_aff_poly *q;

	if (p->width == width)
		return p;
	q = new_poly(s, width, p->n);
	q->c = reduce(width, (uint64_t)p->c);
	for (unsigned i = 0; i < p->n; i++) {
		struct rs_aff_term t = p->t[i];

		t.coef = reduce(width, (uint64_t)t.coef);
		if (t.coef)
			q->t[q->n++] = t;
	}
	return q;
}

int rs_aff_equal(const struct rs_aff_poly *a, const struct rs_aff_poly *b)
{
	if (a == b)
		return 1;
	if (a->n != b->n || a->c != b->c || a->width != b->width)
		return 0;
	for (unsigned i = 0; i < a->n; i++)
		if (a->t[i].coef != b->t[i].coef || cmp_term(&a->t[i], &b->t[i]))
			return 0;
	return 1;
}

uint16_t rs_aff_single(const struct rs_aff_poly *p)
{
	return p->n == 1 && !p->c && p->t[0].coef == 1 && !p->t[0].atom[1] ? p->t[0].atom[0] : 0;
}
