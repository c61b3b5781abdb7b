/* SPDX-License-Identifier: MIT */
/*
 * Blocks, dominators and natural loops of a flat kernel. See ptx_flow.h.
 *
 * Dominators: K. D. Cooper, T. J. Harvey, K. Kennedy, "A Simple, Fast Dominance Algorithm" (2001).
 * Callers: rs_ptx_analyse. No locks.
 */
#include "tracker/ptx_flow.h"

#include <string.h>

#define MAX_BLOCKS 60000

/* Block numbers by step while the blocks are still in program order. */
struct layout {
	struct rs_flow_block *b;
	uint32_t *of; /* step to block */
	uint32_t n;
};

static void mark_leaders(const struct rs_flow *f, uint8_t *leader)
{
	leader[0] = 1;
	for (uint32_t i = 0; i < f->nsteps; i++) {
		const struct rs_flow_step *s = &f->steps[i];

		if (s->kind != RS_FLOW_PLAIN && i + 1 < f->nsteps)
			leader[i + 1] = 1;
		if (s->kind == RS_FLOW_JUMP)
			leader[s->target] = 1;
		for (uint32_t t = 0; s->kind == RS_FLOW_SWITCH && s->table && t < s->table->n; t++)
			leader[s->table->target[t]] = 1;
	}
}

static void add_succ(struct rs_flow_block *b, uint32_t to)
{
	b->succ[b->nsucc++] = to;
}

static void link_block(struct rs_flow *f, struct layout *l, uint32_t at)
{
	struct rs_flow_block *b = &l->b[at];
	const struct rs_flow_step *s = &f->steps[b->last - 1];
	uint32_t room = 2 + (s->kind == RS_FLOW_SWITCH && s->table ? s->table->n : 0);

	b->succ = rs_aff_alloc(f->mem, room * sizeof(*b->succ));
	if (s->kind == RS_FLOW_JUMP)
		add_succ(b, l->of[s->target]);
	for (uint32_t t = 0; s->kind == RS_FLOW_SWITCH && s->table && t < s->table->n; t++)
		add_succ(b, l->of[s->table->target[t]]);
	if (s->kind == RS_FLOW_END)
		b->ends = 1;
	if ((s->kind == RS_FLOW_PLAIN || s->pred >= 0) && b->last < f->nsteps)
		add_succ(b, l->of[b->last]);
}

/* Cut the steps at the leaders; block 0 is the empty entry. */
static void cut(struct rs_flow *f, struct layout *l)
{
	uint8_t *leader = rs_aff_alloc(f->mem, f->nsteps + 1);
	uint32_t n = 1;

	mark_leaders(f, leader);
	for (uint32_t i = 0; i < f->nsteps; i++)
		n += leader[i];
	if (n > MAX_BLOCKS)
		longjmp(f->mem->fail, RS_AFF_TOOBIG);
	l->b = rs_aff_alloc(f->mem, n * sizeof(*l->b));
	l->of = rs_aff_alloc(f->mem, (f->nsteps + 1) * sizeof(*l->of));
	l->n = 1;
	for (uint32_t i = 0; i < f->nsteps; i++) {
		if (leader[i])
			l->b[l->n++].first = i;
		l->of[i] = l->n - 1;
		l->b[l->n - 1].last = i + 1;
	}
	l->b[0].succ = rs_aff_alloc(f->mem, sizeof(*l->b[0].succ));
	add_succ(&l->b[0], 1);
	for (uint32_t i = 1; i < l->n; i++)
		link_block(f, l, i);
}

/* Postorder by an explicit stack; returns the number of reachable blocks. */
static uint32_t postorder(struct rs_flow *f, struct layout *l, uint32_t *order)
{
	uint32_t *stack = rs_aff_alloc(f->mem, l->n * sizeof(*stack));
	uint32_t *next = rs_aff_alloc(f->mem, l->n * sizeof(*next));
	uint8_t *seen = rs_aff_alloc(f->mem, l->n);
	uint32_t depth = 1, n = 0;

	seen[0] = 1;
	while (depth) {
		uint32_t b = stack[depth - 1];

		if (next[b] == l->b[b].nsucc) {
			order[n++] = b;
			depth--;
			continue;
		}
		b = l->b[b].succ[next[b]++];
		if (!seen[b]) {
			seen[b] = 1;
			stack[depth++] = b;
		}
	}
	return n;
}

static void renumber(struct rs_flow *f, struct layout *l)
{
	uint32_t *order = rs_aff_alloc(f->mem, l->n * sizeof(*order));
	uint32_t *number = rs_aff_alloc(f->mem, l->n * sizeof(*number));
	uint32_t n = postorder(f, l, order);

	f->nblocks = n;
	f->blocks = rs_aff_alloc(f->mem, n * sizeof(*f->blocks));
	for (uint32_t i = 0; i < n; i++)
		number[order[n - 1 - i]] = i;
	for (uint32_t i = 0; i < n; i++) {
		struct rs_flow_block *b = &f->blocks[i];

		*b = l->b[order[n - 1 - i]];
		b->loop = -1;
		for (uint32_t s = 0; s < b->nsucc; s++) {
			b->succ[s] = number[b->succ[s]];
			f->blocks[b->succ[s]].npred++;
		}
	}
	/* npred was counted on blocks that may have been overwritten since: count again. */
	for (uint32_t i = 0; i < n; i++)
		f->blocks[i].npred = 0;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t s = 0; s < f->blocks[i].nsucc; s++)
			f->blocks[f->blocks[i].succ[s]].npred++;
	for (uint32_t i = 0; i < n; i++) {
		struct rs_flow_block *b = &f->blocks[i];

		b->pred = rs_aff_alloc(f->mem, (b->npred + 1) * sizeof(*b->pred));
		b->npred = 0;
	}
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t s = 0; s < f->blocks[i].nsucc; s++) {
			struct rs_flow_block *to = &f->blocks[f->blocks[i].succ[s]];

			to->pred[to->npred++] = i;
			if (f->blocks[i].succ[s] <= i)
				to->retreating = 1;
		}
}

static uint32_t meet(const struct rs_flow *f, uint32_t a, uint32_t b)
{
	while (a != b) {
		while (a > b)
			a = f->blocks[a].idom;
		while (b > a)
			b = f->blocks[b].idom;
	}
	return a;
}

static void dominators(struct rs_flow *f)
{
	int changed = 1;

	for (uint32_t i = 1; i < f->nblocks; i++)
		f->blocks[i].idom = UINT32_MAX;
	while (changed) {
		changed = 0;
		for (uint32_t i = 1; i < f->nblocks; i++) {
			struct rs_flow_block *b = &f->blocks[i];
			uint32_t d = UINT32_MAX;

			for (uint32_t p = 0; p < b->npred; p++) {
				uint32_t q = b->pred[p];

				if (q && f->blocks[q].idom == UINT32_MAX)
					continue;
				d = d == UINT32_MAX ? q : meet(f, d, q);
			}
			changed |= d != b->idom;
			b->idom = d;
		}
	}
	for (uint32_t i = f->nblocks; i-- > 1;) {
		struct rs_flow_block *d = &f->blocks[f->blocks[i].idom];

		f->blocks[i].sibling = d->child;
		d->child = i;
	}
}

int rs_flow_dominates(const struct rs_flow *f, uint32_t a, uint32_t b)
{
	while (b > a)
		b = f->blocks[b].idom;
	return a == b;
}

int rs_flow_in_loop(const struct rs_flow *f, uint32_t block, int32_t loop)
{
	int32_t l = f->blocks[block].loop;

	while (l >= 0 && l != loop)
		l = f->loops[l].parent;
	return l >= 0 && l == loop;
}

/* Put block b into loop id, or the outermost loop that b is already in; returns what to visit. */
static int32_t enter_loop(struct rs_flow *f, uint32_t b, int32_t id)
{
	int32_t l = f->blocks[b].loop;

	if (l < 0) {
		f->blocks[b].loop = id;
		return (int32_t)b;
	}
	while (l != id && f->loops[l].parent >= 0)
		l = f->loops[l].parent;
	if (l == id)
		return -1;
	f->loops[l].parent = id;
	return (int32_t)f->loops[l].header;
}

/* Inner loops have higher headers, so headers are taken from the end. */
static void natural_loops(struct rs_flow *f)
{
	uint32_t edges = 1, *stack;

	for (uint32_t i = 0; i < f->nblocks; i++)
		edges += f->blocks[i].npred;
	stack = rs_aff_alloc(f->mem, edges * sizeof(*stack));
	f->loops = rs_aff_alloc(f->mem, f->nblocks * sizeof(*f->loops));
	for (uint32_t h = f->nblocks; h-- > 1;) {
		const struct rs_flow_block *b = &f->blocks[h];
		uint32_t depth = 0;
		int32_t id = (int32_t)f->nloops;

		for (uint32_t p = 0; p < b->npred; p++)
			depth += b->pred[p] >= h && rs_flow_dominates(f, h, b->pred[p]);
		if (!depth)
			continue;
		f->nloops++;
		f->loops[id].header = h;
		f->loops[id].parent = -1;
		f->blocks[h].loop = id;
		for (uint32_t p = 0; p < b->npred; p++) {
			if (b->pred[p] < h || !rs_flow_dominates(f, h, b->pred[p]))
				continue;
			depth = 0;
			stack[depth++] = b->pred[p];
			while (depth) {
				int32_t v = enter_loop(f, stack[--depth], id);

				/* Each block enters a loop once, so the stack holds an edge once. */
				for (uint32_t q = 0; v >= 0 && q < f->blocks[v].npred; q++)
					stack[depth++] = f->blocks[v].pred[q];
			}
		}
	}
}

void rs_flow_blocks(struct rs_flow *f)
{
	struct layout l;

	cut(f, &l);
	renumber(f, &l);
	dominators(f);
	natural_loops(f);
}

void rs_flow_build(struct rs_flow *f, struct rs_aff_mem *mem, const struct rs_ptx *ptx,
		   const struct rs_ptx_func *func)
{
	memset(f, 0, sizeof(*f));
	f->mem = mem;
	f->ptx = ptx;
	rs_flow_steps(f, func);
	rs_flow_blocks(f);
	rs_flow_phis(f);
}
