/* SPDX-License-Identifier: MIT */
/*
 * Under which conditions is a block executed? Comparisons on dominating branches (for bounds), and
 * whether they are all there is to it (for density).
 *
 * A branch edge that dominates a block is a fact there: the values it compared are those of the same
 * dynamic instance. A block is executed exactly under a chain of edges if from the start of each
 * region (the edge's target, a loop's header, the entry) no path avoids the block, the next edge up
 * having the same property, out to the entry. Loops are part of that through their iteration
 * numbers, see take_round in ptx_extent.c.
 * Callers: ptx_access.c. No locks.
 */
#include "tracker/ptx_build.h"

#include <string.h>

#define MAX_FACTS 20
#define MAX_CMPS  6 /* of one condition */
#define MAX_TESTS 4
#define MAX_NEST  12
#define MAX_DEPTH 12
#define MAX_ALIKE 64 /* contexts that a new one is compared with */

static uint8_t opposite(uint8_t cmp)
{
	static const uint8_t other[] = {
		[RS_CMP_EQ] = RS_CMP_NE, [RS_CMP_NE] = RS_CMP_EQ, [RS_CMP_LT] = RS_CMP_GE,
		[RS_CMP_GE] = RS_CMP_LT, [RS_CMP_GT] = RS_CMP_LE, [RS_CMP_LE] = RS_CMP_GT,
	};

	return other[cmp];
}

static unsigned one_comparison(struct rs_build *b, const struct rs_pred *p, int truth,
			       struct rs_bound_cmp *out)
{
	unsigned n = p->needs ? p->needs->n : 0;
	const struct rs_need **needs = rs_aff_alloc(b->out, (n + 1) * sizeof(*needs));

	memset(out, 0, sizeof(*out));
	out->a = rs_build_poly(b, p->a);
	out->b = rs_build_poly(b, p->b);
	if (!out->a || !out->b)
		return 0;
	for (unsigned i = 0; i < n; i++) {
		needs[i] = rs_build_need(b, p->needs->id[i]);
		if (!needs[i])
			return 0;
	}
	out->needs = needs;
	out->nneeds = (uint8_t)n;
	out->cmp = truth ? p->cmp : opposite(p->cmp);
	out->is_unsigned = p->is_unsigned;
	return 1;
}

/* The comparisons that make up `p` being `truth`; *exact is cleared if they are not all of it. */
static unsigned comparisons(struct rs_build *b, const struct rs_pred *p, int truth,
			    struct rs_bound_cmp *out, unsigned room, int *exact, unsigned depth)
{
	unsigned n;

	/* Chains of negations and conjunctions are short; anything deeper is left unknown. */
	if (!p || !room || !depth) {
		*exact = 0;
		return 0;
	}
	switch (p->kind) {
	case RS_PRED_CONST:
		*exact &= p->cmp == !!truth;
		return 0;
	case RS_PRED_NOT:
		return comparisons(b, p->x, !truth, out, room, exact, depth - 1);
	case RS_PRED_CMP:
		n = one_comparison(b, p, truth, out);
		*exact &= n == 1;
		return n;
	case RS_PRED_AND:
	case RS_PRED_OR:
		if ((p->kind == RS_PRED_AND) != !!truth)
			break;
		n = comparisons(b, p->x, truth, out, room, exact, depth - 1);
		return n + comparisons(b, p->y, truth, out + n, room - n, exact, depth - 1);
	default:
		break;
	}
	*exact = 0;
	return 0;
}

/* Is the edge d -> s taken on a condition? Then its truth; -1: unconditional; -2: unknown. */
static int edge_truth(const struct rs_build *b, uint32_t d, uint32_t s)
{
	const struct rs_flow_block *x = &b->v->flow.blocks[d];
	const struct rs_flow_step *step;

	if (x->first == x->last)
		return -1;
	step = &b->v->flow.steps[x->last - 1];
	switch (step->kind) {
	case RS_FLOW_JUMP:
		if (step->pred < 0 || x->nsucc < 2 || x->succ[0] == x->succ[1])
			return -1;
		return s == x->succ[0];
	case RS_FLOW_END:
		return 0;
	case RS_FLOW_SWITCH:
		return -2;
	default:
		return -1;
	}
}

/*
 * The block whose edge into `b` every path to `b` takes: its only predecessor, but for those that
 * `b` itself leads to; else UINT32_MAX.
 */
static uint32_t entering(const struct rs_flow *f, uint32_t b)
{
	uint32_t from = UINT32_MAX;

	for (uint32_t p = 0; p < f->blocks[b].npred; p++) {
		uint32_t q = f->blocks[b].pred[p];

		if (q >= b && rs_flow_dominates(f, b, q))
			continue;
		if (from != UINT32_MAX)
			return UINT32_MAX;
		from = q;
	}
	return from;
}

static int has_latch(const struct rs_flow *f, uint32_t header, uint32_t x)
{
	const struct rs_flow_block *h = &f->blocks[header];

	for (uint32_t p = 0; p < h->npred; p++)
		if (h->pred[p] >= header && !rs_flow_dominates(f, x, h->pred[p]))
			return 0;
	return 1;
}

struct rs_build_exits {
	uint32_t count;
	uint32_t test[MAX_TESTS]; /* blocks */
	unsigned ntests;
};

/* Ways out of a loop, and the blocks among them that every iteration passes. */
static const struct rs_build_exits *find_exits(struct rs_build *bu, int32_t loop)
{
	const struct rs_flow *f = &bu->v->flow;
	uint32_t header = f->loops[loop].header;
	struct rs_build_exits *x;

	if (bu->exits[loop])
		return bu->exits[loop];
	x = rs_aff_alloc(bu->v->mem, sizeof(*x));
	bu->exits[loop] = x;
	for (uint32_t i = header; i < f->nblocks; i++) {
		const struct rs_flow_block *b = &f->blocks[i];
		uint32_t out = b->ends;

		if (!rs_flow_in_loop(f, i, loop))
			continue;
		for (uint32_t s = 0; s < b->nsucc; s++)
			out += !rs_flow_in_loop(f, b->succ[s], loop);
		x->count += out;
		if (out == 1 && b->loop == loop && b->nsucc + b->ends == 2 &&
		    has_latch(f, header, i) && x->ntests < MAX_TESTS)
			x->test[x->ntests++] = i;
	}
	return x;
}

void rs_build_loop(struct rs_build *b, int32_t loop, struct rs_bound_atom *a)
{
	const struct rs_flow *f = &b->v->flow;
	struct rs_bound_test *tests = rs_aff_alloc(b->out, MAX_TESTS * sizeof(*tests));
	const struct rs_build_exits *x = find_exits(b, loop);

	a->single = x->count == 1 && x->ntests == 1;
	for (unsigned i = 0; i < x->ntests; i++) {
		struct rs_bound_cmp *cmps = rs_aff_alloc(b->out, MAX_CMPS * sizeof(*cmps));
		const struct rs_flow_block *t = &f->blocks[x->test[i]];
		uint32_t stay = t->succ[0];
		int exact = 1, truth;

		if (!rs_flow_in_loop(f, stay, loop))
			stay = t->succ[1];
		truth = edge_truth(b, x->test[i], stay);
		tests[i].cmps = cmps;
		if (truth >= 0)
			tests[i].ncmps = (uint8_t)comparisons(b, b->v->branch[x->test[i]], truth,
							      cmps, MAX_CMPS, &exact, MAX_DEPTH);
		tests[i].exact = truth >= 0 && exact;
	}
	a->tests = tests;
	a->ntests = (uint8_t)x->ntests;
}

/* Can a thread that is at block s miss block b: end, leave the loop, or begin its next round? */
static int can_miss(struct rs_build *bu, uint32_t s, uint32_t b, int32_t loop)
{
	const struct rs_flow *f = &bu->v->flow;
	uint32_t *stack = bu->stack, *seen = bu->seen, depth = 0, now = ++bu->stamp;

	if (s == b)
		return 0;
	stack[depth++] = s;
	seen[s] = now;
	while (depth) {
		const struct rs_flow_block *x = &f->blocks[stack[--depth]];

		if (x->ends)
			return 1;
		for (uint32_t i = 0; i < x->nsucc; i++) {
			uint32_t to = x->succ[i];

			if (to == b ||
			    (seen[to] == now && !(loop >= 0 && to == f->loops[loop].header)))
				continue;
			if (loop >= 0 &&
			    (to == f->loops[loop].header || !rs_flow_in_loop(f, to, loop)))
				return 1;
			seen[to] = now;
			stack[depth++] = to;
		}
	}
	return 0;
}

/*
 * Mark the blocks whose incoming edge is a link of the chain of `block`; 0 if there is no exact
 * chain.
 */
static int find_chain(struct rs_build *bu, uint32_t block, uint8_t *link)
{
	const struct rs_flow *f = &bu->v->flow;
	int32_t loop = f->blocks[block].loop;
	uint32_t at = block;

	for (unsigned steps = 0; steps < 64; steps++) {
		uint32_t top = loop >= 0 ? f->loops[loop].header : 0, s = at, from = 0;
		int found = 0;

		while (s != top && !found) {
			from = f->blocks[s].idom;
			found = entering(f, s) == from && f->blocks[from].loop == loop &&
				edge_truth(bu, from, s) != -1;
			if (!found)
				s = from;
		}
		if (can_miss(bu, s, at, loop))
			return 0;
		if (found) {
			link[s] = 1;
			at = from;
			continue;
		}
		if (loop < 0)
			return 1;
		at = top;
		loop = f->loops[loop].parent;
	}
	return 0;
}

static int is_after(struct rs_build *b, uint32_t block, int32_t loop)
{
	const struct rs_build_exits *x = find_exits(b, loop);

	return x->count == 1 && x->ntests == 1 && x->test[0] != block &&
	       rs_flow_dominates(&b->v->flow, x->test[0], block);
}

static void add_rounds(struct rs_build *b, uint32_t block, struct rs_bound_context *c)
{
	const struct rs_flow *f = &b->v->flow;
	struct rs_bound_round *r = rs_aff_alloc(b->out, MAX_NEST * sizeof(*r));
	unsigned n = 0;

	for (int32_t l = f->blocks[block].loop; l >= 0; l = f->loops[l].parent) {
		struct rs_aff_atom key = {
			.kind = RS_AFF_LOOP, .a = l, .block = (int32_t)f->loops[l].header};
		const struct rs_aff_poly *p;

		if (n == MAX_NEST) {
			c->exact = 0;
			break;
		}
		p = rs_build_poly(b,
				  rs_aff_var(&b->v->aff, 64, rs_aff_atom(&b->v->aff, &key, NULL)));
		if (!p) {
			c->exact = 0;
			continue;
		}
		memmove(r + 1, r, n * sizeof(*r));
		r[0].atom = p->t[0].atom[0];
		r[0].after = (uint8_t)is_after(b, block, l);
		n++;
	}
	c->rounds = r;
	c->nrounds = (uint8_t)n;
}

static void add_condition(struct rs_build *b, struct rs_bound_context *c, struct rs_bound_cmp *cmps,
			  const struct rs_pred *pred, int truth, int chain)
{
	unsigned room = MAX_FACTS - c->ncmps, n = 0;
	int exact = 1;

	if (truth < 0)
		exact = 0;
	else
		n = comparisons(b, pred, truth, cmps + c->ncmps, room < MAX_CMPS ? room : MAX_CMPS,
				&exact, MAX_DEPTH);
	for (unsigned i = 0; i < n; i++)
		cmps[c->ncmps + i].chain = (uint8_t)chain;
	c->ncmps = (uint8_t)(c->ncmps + n);
	if (chain && !exact)
		c->exact = 0;
}

static int same_comparison(const struct rs_bound_cmp *a, const struct rs_bound_cmp *b)
{
	if (a->cmp != b->cmp || a->is_unsigned != b->is_unsigned || a->chain != b->chain ||
	    a->nneeds != b->nneeds || !rs_aff_equal(a->a, b->a) || !rs_aff_equal(a->b, b->b))
		return 0;
	for (unsigned i = 0; i < a->nneeds; i++)
		if (a->needs[i] != b->needs[i]) /* each is kept once */
			return 0;
	return 1;
}

static int same_context(const struct rs_bound_context *a, const struct rs_bound_context *b)
{
	if (a->exact != b->exact || a->ncmps != b->ncmps || a->nrounds != b->nrounds)
		return 0;
	for (unsigned i = 0; i < a->nrounds; i++)
		if (a->rounds[i].atom != b->rounds[i].atom ||
		    a->rounds[i].after != b->rounds[i].after)
			return 0;
	for (unsigned i = 0; i < a->ncmps; i++)
		if (!same_comparison(&a->cmps[i], &b->cmps[i]))
			return 0;
	return 1;
}

/*
 * The context that stands for all equal ones. Compilers guard each of several stores anew by the
 * same predicate (`if (tid == 0)` behind a reduction); only together do they leave no hole.
 */
static const struct rs_bound_context *intern(struct rs_build *b, struct rs_bound_context *c)
{
	const struct rs_bound_context *o = b->newest;

	for (unsigned i = 0; o && i < MAX_ALIKE; i++, o = o->older)
		if (same_context(o, c))
			return o;
	c->older = b->newest;
	b->newest = c;
	return c;
}

const struct rs_bound_context *rs_build_context(struct rs_build *b, uint32_t block,
						const struct rs_pred *guard)
{
	const struct rs_flow *f = &b->v->flow;
	const struct rs_bound_context *same;
	struct rs_bound_context *c;
	struct rs_bound_cmp cmps[MAX_FACTS], *kept;
	uint32_t path[MAX_FACTS];
	unsigned n = 0;
	uint8_t *link = b->link;

	if (!guard && b->context[block])
		return b->context[block];
	c = rs_aff_alloc(b->out, sizeof(*c));
	memset(link, 0, f->nblocks);
	c->exact = (uint8_t)find_chain(b, block, link);
	for (uint32_t s = block; s; s = f->blocks[s].idom) {
		if (entering(f, s) != f->blocks[s].idom ||
		    edge_truth(b, f->blocks[s].idom, s) == -1)
			continue;
		if (n < MAX_FACTS)
			path[n++] = s;
		else if (link[s])
			c->exact = 0;
	}
	while (n--) {
		uint32_t d = f->blocks[path[n]].idom;

		add_condition(b, c, cmps, b->v->branch[d], edge_truth(b, d, path[n]),
			      link[path[n]]);
	}
	if (guard)
		add_condition(b, c, cmps, guard, 1, 1);
	kept = rs_aff_alloc(b->out, (c->ncmps + 1u) * sizeof(*kept));
	memcpy(kept, cmps, c->ncmps * sizeof(*kept));
	c->cmps = kept;
	add_rounds(b, block, c);
	same = intern(b, c);
	if (!guard)
		b->context[block] = same;
	return same;
}
