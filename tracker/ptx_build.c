/* SPDX-License-Identifier: MIT */
/*
 * Copies of polynomials, atoms and needs out of a kernel's scratch memory. See ptx_build.h.
 *
 * Kept atom 0 is never used. A loop's tests may mention atoms that mention the loop; then the loop
 * comes after them in the order, they are evaluated with the loop unbounded, and all stays sound.
 * Callers: ptx_access.c, ptx_context.c. No locks.
 */
#include "tracker/ptx_build.h"

#include <string.h>

void rs_build_init(struct rs_build *b, struct rs_vals *v, struct rs_aff_mem *out)
{
	memset(b, 0, sizeof(*b));
	b->v = v;
	b->out = out;
	/* Contexts may still make loop atoms that no value has. */
	b->nmap = v->aff.natoms + v->flow.nloops + 256;
	b->map = rs_aff_alloc(v->mem, b->nmap * sizeof(*b->map));
	b->atoms = rs_aff_alloc(v->mem, RS_BOUND_ATOMS * sizeof(*b->atoms));
	b->order = rs_aff_alloc(v->mem, RS_BOUND_ATOMS * sizeof(*b->order));
	b->natoms = 1;
	b->context = rs_aff_alloc(v->mem, v->flow.nblocks * sizeof(*b->context));
	b->exits = rs_aff_alloc(v->mem, (v->flow.nloops + 1) * sizeof(*b->exits));
	b->stack = rs_aff_alloc(v->mem, (v->flow.nblocks + 1) * sizeof(*b->stack));
	b->seen = rs_aff_alloc(v->mem, v->flow.nblocks * sizeof(*b->seen));
	b->link = rs_aff_alloc(v->mem, v->flow.nblocks);
	b->nneeds = v->nneeds;
	b->needs = rs_aff_alloc(v->mem, v->nneeds * sizeof(*b->needs));
}

static uint16_t copy_atom(struct rs_build *b, uint16_t id)
{
	const struct rs_aff_atom *a = b->v->aff.atoms[id];
	struct rs_bound_atom *x;
	uint16_t n;

	if (id >= b->nmap)
		return 0;
	if (b->map[id])
		return b->map[id];
	if (b->natoms == RS_BOUND_ATOMS)
		return 0;
	n = (uint16_t)b->natoms++;
	b->map[id] = n;
	x = &b->atoms[n];
	x->kind = a->kind;
	x->how = a->how;
	x->a = a->kind == RS_AFF_SYMBOL ? 0 : a->a;
	x->b = a->b;
	x->lo = a->lo;
	x->hi = a->hi;
	for (unsigned i = 0; i < a->nargs; i++) {
		x->arg[i] = rs_build_poly(b, a->arg[i]);
		if (!x->arg[i]) { /* no room for what it is made of: nothing is known of it */
			x->kind = RS_AFF_NONE;
			break;
		}
		x->nargs++;
	}
	if (a->kind == RS_AFF_LOOP)
		rs_build_loop(b, (int32_t)a->a, x);
	b->order[b->norder++] = n;
	return n;
}

const struct rs_aff_poly *rs_build_poly(struct rs_build *b, const struct rs_aff_poly *p)
{
	struct rs_aff_poly *q = rs_aff_alloc(b->out, sizeof(*q) + p->n * sizeof(*p->t));

	memcpy(q, p, sizeof(*p) + p->n * sizeof(*p->t));
	for (unsigned i = 0; i < p->n; i++)
		for (unsigned d = 0; d < RS_AFF_DEGREE && p->t[i].atom[d]; d++) {
			q->t[i].atom[d] = copy_atom(b, p->t[i].atom[d]);
			if (!q->t[i].atom[d])
				return NULL;
		}
	return q;
}

const struct rs_need *rs_build_need(struct rs_build *b, uint16_t id)
{
	const struct rs_need *n = &b->v->needs[id];
	struct rs_need *copy;

	if (b->needs[id])
		return b->needs[id];
	copy = rs_aff_alloc(b->out, sizeof(*copy));
	copy->p = rs_build_poly(b, n->p);
	if (!copy->p)
		return NULL;
	copy->lo = n->lo;
	copy->hi = n->hi;
	b->needs[id] = copy;
	return copy;
}

static void mark_poly(const struct rs_build *b, uint8_t *mark, const struct rs_aff_poly *p);

static void mark_cmp(const struct rs_build *b, uint8_t *mark, const struct rs_bound_cmp *c)
{
	mark_poly(b, mark, c->a);
	mark_poly(b, mark, c->b);
	for (unsigned i = 0; i < c->nneeds; i++)
		mark_poly(b, mark, c->needs[i]->p);
}

static void mark_atom(const struct rs_build *b, uint8_t *mark, uint16_t id)
{
	const struct rs_bound_atom *a = &b->atoms[id];

	if (mark[id])
		return;
	mark[id] = 1;
	for (unsigned i = 0; i < a->nargs; i++)
		mark_poly(b, mark, a->arg[i]);
	for (unsigned i = 0; i < a->ntests; i++)
		for (unsigned j = 0; j < a->tests[i].ncmps; j++)
			mark_cmp(b, mark, &a->tests[i].cmps[j]);
}

static void mark_poly(const struct rs_build *b, uint8_t *mark, const struct rs_aff_poly *p)
{
	for (unsigned i = 0; i < p->n; i++)
		for (unsigned d = 0; d < RS_AFF_DEGREE && p->t[i].atom[d]; d++)
			mark_atom(b, mark, p->t[i].atom[d]);
}

void rs_build_order(struct rs_build *b, struct rs_bound_side *side)
{
	uint8_t mark[RS_BOUND_ATOMS] = {0};
	uint16_t *order;

	for (uint32_t i = 0; i < side->ngroups; i++) {
		const struct rs_bound_group *g = &side->groups[i];

		mark_poly(b, mark, g->p);
		for (unsigned j = 0; j < g->nneeds; j++)
			mark_poly(b, mark, g->needs[j].p);
		for (unsigned j = 0; j < g->context->ncmps; j++)
			mark_cmp(b, mark, &g->context->cmps[j]);
		for (unsigned j = 0; j < g->context->nrounds; j++)
			mark_atom(b, mark, g->context->rounds[j].atom);
	}
	order = rs_aff_alloc(b->out, (b->norder + 1) * sizeof(*order));
	for (uint32_t i = 0; i < b->norder; i++)
		if (mark[b->order[i]])
			order[side->norder++] = b->order[i];
	side->order = order;
}
