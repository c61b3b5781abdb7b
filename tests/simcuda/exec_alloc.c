/* SPDX-License-Identifier: MIT */
/*
 * What is known before the CTA starts moves to the preamble; the rest gets slots by liveness.
 *
 * A register with one unguarded, pure definition from launch constants is itself a launch constant:
 * its micro-op runs once per warp and launch. Copies of read-only values disappear. The count of PTX
 * instructions stays exact: a removed micro-op hands its weight to a neighbour in its basic block.
 *
 * Slots: linear scan over live intervals in program order. Under divergence each lane runs a
 * sequential program of its own and writes its own lanes only, so what holds for one thread holds
 * for the warp. A guarded write does not end a life, except of a temp, which is read under the same
 * guard. Intervals that touch do not share, because lanes may differ in width.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simcuda/exec_priv.h"

struct interval {
	uint32_t vreg, start, end;
};

struct alloc {
	struct sim_lower *l;
	uint32_t *dense; /* vreg to dense index, UINT32_MAX: not allocated here */
	uint32_t *vreg_of;
	uint32_t n, words;
	uint32_t *block_of; /* first micro-op of each block */
	uint32_t nblocks;
	uint64_t *in, *out, *gen, *kill;
	struct interval *iv;
	uint32_t end; /* of the file so far */
	uint32_t *free4, *free8;
	uint32_t nfree4, nfree8;
};

#define OPERANDS(o, i, mask)                                                                       \
	for (unsigned i = 0, m_ = (mask); m_; i++, m_ >>= 1)                                       \
		if (m_ & 1)

/* Side lists: o->imm is the first entry, o->n how many; the first o->target of them are written. */
static int has_side(const struct sim_uop *o)
{
	return o->flags & SIM_F_SIDE;
}

static uint32_t side_written(const struct sim_uop *o)
{
	return (uint32_t)o->target;
}

static void count_defs(struct sim_lower *l)
{
	for (uint32_t u = 0; u < l->nuops; u++) {
		struct sim_uop *o = &l->uop[u];

		OPERANDS(o, i, o->wr)
		l->vreg[o->r[i]].ndefs++;
		for (uint32_t i = 0; has_side(o) && i < side_written(o); i++)
			l->vreg[l->side[o->imm + i]].ndefs++;
	}
}

static uint32_t resolve(const struct sim_lower *l, uint32_t v)
{
	while (l->vreg[v].alias != v)
		v = l->vreg[v].alias;
	return v;
}

static void resolve_reads(struct sim_lower *l, struct sim_uop *o)
{
	OPERANDS(o, i, o->rd & ~o->wr)
	o->r[i] = resolve(l, o->r[i]);
	for (uint32_t i = side_written(o); has_side(o) && i < o->n; i++)
		l->side[o->imm + i] = resolve(l, l->side[o->imm + i]);
}

static int is_movable(const struct sim_lower *l, const struct sim_uop *o)
{
	if (o->kind != SIM_K_ALU || !(o->flags & SIM_F_PURE))
		return 0;
	OPERANDS(o, i, o->wr)
	if (l->vreg[o->r[i]].ndefs != 1)
		return 0;
	OPERANDS(o, i, o->rd)
	if (!l->vreg[o->r[i]].is_static)
		return 0;
	return 1;
}

static int is_alias(const struct sim_lower *l, const struct sim_uop *o)
{
	const struct sim_vreg *a = &l->vreg[o->r[1]];

	return o->kind == SIM_K_ALU && o->flags & SIM_F_COPY && l->vreg[o->r[0]].ndefs == 1 &&
	       (a->is_const || a->is_static) && a->cls == l->vreg[o->r[0]].cls;
}

static int hoist(struct sim_lower *l)
{
	struct sim_kernel *k = l->k;

	k->pre = calloc(l->nuops ? l->nuops : 1, sizeof *k->pre);
	if (!k->pre)
		return -ENOMEM;
	for (uint32_t u = 0; u < l->nuops; u++) {
		struct sim_uop *o = &l->uop[u];

		resolve_reads(l, o);
		if (is_alias(l, o)) {
			l->vreg[o->r[0]].alias = o->r[1];
		} else if (is_movable(l, o)) {
			k->pre[k->npre++] = *o;
			OPERANDS(o, i, o->wr)
			l->vreg[o->r[i]].is_static = 1;
		} else {
			continue;
		}
		o->kind = SIM_K_NOP;
		o->wr = o->rd = 0;
	}
	/* uses above their definition (loops) */
	for (uint32_t u = 0; u < l->nuops; u++)
		resolve_reads(l, &l->uop[u]);
	return 0;
}

static void mark_targets(struct sim_lower *l)
{
	for (uint32_t u = 0; u < l->nuops; u++)
		if (l->uop[u].kind == SIM_K_BRA)
			l->uop[l->uop[u].target].flags |= SIM_F_TARGET;
	for (uint32_t t = 0; t < l->k->ntables; t++)
		for (int32_t i = 1; i <= l->k->tables[t][0]; i++)
			l->uop[l->k->tables[t][i]].flags |= SIM_F_TARGET;
}

static int ends_block(const struct sim_uop *o)
{
	return o->kind == SIM_K_BRA || o->kind == SIM_K_BRX || o->kind == SIM_K_EXIT ||
	       o->kind == SIM_K_TRAP;
}

/* Drop NOPs; where one's weight has no taker in its block, it stays. */
static int compact(struct sim_lower *l)
{
	uint32_t *where = malloc((l->nuops + 1) * sizeof *where), n = 0, carry = 0;
	int fresh = 1; /* nothing of this block has been kept yet */

	if (!where)
		return -ENOMEM;
	for (uint32_t u = 0; u < l->nuops; u++) {
		struct sim_uop *o = &l->uop[u], *next = o + 1;
		int boundary = u + 1 == l->nuops || next->flags & SIM_F_TARGET ||
			       next->kind == SIM_K_GUARDED;

		if (o->flags & SIM_F_TARGET)
			fresh = 1;
		where[u] = n;
		if (o->kind == SIM_K_NOP) {
			carry += o->weight;
			if (!carry || !boundary)
				continue;
			if (!fresh) {
				l->uop[n - 1].weight = (uint16_t)(l->uop[n - 1].weight + carry);
				carry = 0;
				continue;
			}
			o->weight = 0;
		}
		o->weight = (uint16_t)(o->weight + carry);
		carry = 0;
		fresh = ends_block(o) || o->kind == SIM_K_GUARDED;
		l->uop[n++] = *o;
	}
	where[l->nuops] = n;
	for (uint32_t u = 0; u < n; u++)
		if (l->uop[u].kind == SIM_K_BRA)
			l->uop[u].target = (int32_t)where[l->uop[u].target];
	for (uint32_t t = 0; t < l->k->ntables; t++)
		for (int32_t i = 1; i <= l->k->tables[t][0]; i++)
			l->k->tables[t][i] = (int32_t)where[l->k->tables[t][i]];
	for (uint32_t u = 0; u < n; u++)
		l->uop[u].flags &= (uint16_t)~SIM_F_TARGET;
	l->nuops = n;
	free(where);
	mark_targets(l);
	return 0;
}

/* ---- liveness ---- */

static int needs_slot(const struct sim_lower *l, uint32_t v)
{
	return !l->vreg[v].is_const && !l->vreg[v].is_static;
}

typedef void (*visit_fn)(struct alloc *a, uint32_t dense, uint32_t at, int is_def, int kills);

static void visit(struct alloc *a, uint32_t u, visit_fn fn)
{
	const struct sim_uop *o = &a->l->uop[u];
	int guarded = o->kind == SIM_K_GUARDED;

	OPERANDS(o, i, o->rd)
	if (a->dense[o->r[i]] != UINT32_MAX)
		fn(a, a->dense[o->r[i]], u, 0, 0);
	for (uint32_t i = side_written(o); has_side(o) && i < o->n; i++)
		if (a->dense[a->l->side[o->imm + i]] != UINT32_MAX)
			fn(a, a->dense[a->l->side[o->imm + i]], u, 0, 0);
	OPERANDS(o, i, o->wr)
	if (a->dense[o->r[i]] != UINT32_MAX)
		fn(a, a->dense[o->r[i]], u, 1, !guarded || a->l->vreg[o->r[i]].is_temp);
	for (uint32_t i = 0; has_side(o) && i < side_written(o); i++)
		if (a->dense[a->l->side[o->imm + i]] != UINT32_MAX)
			fn(a, a->dense[a->l->side[o->imm + i]], u, 1, !guarded);
}

static void note_vreg(struct alloc *a, uint32_t v)
{
	if (a->dense[v] == UINT32_MAX && needs_slot(a->l, v)) {
		a->vreg_of[a->n] = v;
		a->dense[v] = a->n++;
	}
}

static int number_vregs(struct alloc *a)
{
	struct sim_lower *l = a->l;

	a->dense = malloc((l->nvregs + 1) * sizeof *a->dense);
	a->vreg_of = malloc((l->nvregs + 1) * sizeof *a->vreg_of);
	if (!a->dense || !a->vreg_of)
		return -ENOMEM;
	memset(a->dense, 0xff, (l->nvregs + 1) * sizeof *a->dense);
	for (uint32_t u = 0; u < l->nuops; u++) {
		const struct sim_uop *o = &l->uop[u];

		OPERANDS(o, i, o->rd | o->wr)
		note_vreg(a, o->r[i]);
		for (uint32_t i = 0; has_side(o) && i < o->n; i++)
			note_vreg(a, l->side[o->imm + i]);
	}
	a->words = (a->n + 63) / 64;
	return 0;
}

static uint32_t block_at(const struct alloc *a, uint32_t u)
{
	uint32_t lo = 0, hi = a->nblocks;

	while (hi - lo > 1) {
		uint32_t mid = (lo + hi) / 2;

		if (a->block_of[mid] <= u)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

static int find_blocks(struct alloc *a)
{
	struct sim_lower *l = a->l;

	a->block_of = malloc((l->nuops + 1) * sizeof *a->block_of);
	if (!a->block_of)
		return -ENOMEM;
	for (uint32_t u = 0; u < l->nuops; u++)
		if (!u || l->uop[u].flags & SIM_F_TARGET || ends_block(&l->uop[u - 1]))
			a->block_of[a->nblocks++] = u;
	a->block_of[a->nblocks] = l->nuops;
	a->in = calloc((size_t)a->nblocks * a->words * 4 + 1, sizeof *a->in);
	if (!a->in)
		return -ENOMEM;
	a->out = a->in + (size_t)a->nblocks * a->words;
	a->gen = a->out + (size_t)a->nblocks * a->words;
	a->kill = a->gen + (size_t)a->nblocks * a->words;
	return 0;
}

static void local_sets(struct alloc *a, uint32_t dense, uint32_t at, int is_def, int kills)
{
	size_t row = (size_t)block_at(a, at) * a->words + dense / 64;
	uint64_t bit = 1ull << (dense & 63);

	if (!is_def && !(a->kill[row] & bit))
		a->gen[row] |= bit;
	else if (is_def && kills)
		a->kill[row] |= bit;
	else if (is_def && !(a->kill[row] & bit))
		a->gen[row] |= bit; /* what the other lanes hold lives on */
}

static int join(struct alloc *a, uint32_t block, uint32_t successor)
{
	uint64_t *out = a->out + (size_t)block * a->words;
	const uint64_t *in = a->in + (size_t)successor * a->words;
	int changed = 0;

	for (uint32_t w = 0; w < a->words; w++) {
		changed |= (in[w] & ~out[w]) != 0;
		out[w] |= in[w];
	}
	return changed;
}

static int join_successors(struct alloc *a, uint32_t b)
{
	const struct sim_uop *last = &a->l->uop[a->block_of[b + 1] - 1];
	int changed = 0;

	if (last->kind == SIM_K_BRA)
		changed |= join(a, b, block_at(a, (uint32_t)last->target));
	if (last->kind == SIM_K_BRX) {
		const int32_t *table = a->l->k->tables[last->imm];

		for (int32_t i = 1; i <= table[0]; i++)
			changed |= join(a, b, block_at(a, (uint32_t)table[i]));
	}
	if (b + 1 < a->nblocks && last->kind != SIM_K_BRX &&
	    !(last->kind == SIM_K_BRA && last->flags & SIM_F_ALWAYS))
		changed |= join(a, b, b + 1);
	return changed;
}

static void solve(struct alloc *a)
{
	int changed = 1;

	for (uint32_t u = 0; u < a->l->nuops; u++)
		visit(a, u, local_sets);
	for (size_t i = 0; i < (size_t)a->nblocks * a->words; i++)
		a->in[i] = a->gen[i];
	while (changed) {
		changed = 0;
		for (uint32_t b = a->nblocks; b-- > 0;) {
			size_t row = (size_t)b * a->words;

			changed |= join_successors(a, b);
			for (uint32_t w = 0; w < a->words; w++)
				a->in[row + w] =
					a->gen[row + w] | (a->out[row + w] & ~a->kill[row + w]);
		}
	}
}

static void extend(struct alloc *a, uint32_t dense, uint32_t at, int is_def, int kills)
{
	struct interval *iv = &a->iv[dense];

	(void)is_def, (void)kills;
	iv->start = at < iv->start ? at : iv->start;
	iv->end = at > iv->end ? at : iv->end;
}

static int by_start(const void *x, const void *y)
{
	const struct interval *a = x, *b = y;

	return a->start != b->start ? (a->start < b->start ? -1 : 1)
				    : (a->vreg > b->vreg) - (a->vreg < b->vreg);
}

static int build_intervals(struct alloc *a)
{
	a->iv = malloc((a->n + 1) * sizeof *a->iv);
	if (!a->iv)
		return -ENOMEM;
	for (uint32_t i = 0; i < a->n; i++)
		a->iv[i] = (struct interval){a->vreg_of[i], UINT32_MAX, 0};
	for (uint32_t u = 0; u < a->l->nuops; u++)
		visit(a, u, extend);
	for (uint32_t b = 0; b < a->nblocks; b++)
		for (uint32_t i = 0; i < a->n; i++) {
			size_t row = (size_t)b * a->words + i / 64;

			if (a->in[row] >> (i & 63) & 1)
				extend(a, i, a->block_of[b], 0, 0);
			if (a->out[row] >> (i & 63) & 1)
				extend(a, i, a->block_of[b + 1] - 1, 0, 0);
		}
	qsort(a->iv, a->n, sizeof *a->iv, by_start);
	return 0;
}

/* ---- slots ---- */

static uint32_t new_slot(struct alloc *a, unsigned cls)
{
	uint32_t at = a->end;

	a->end += cls * SIM_LANES;
	return at;
}

static uint32_t take(struct alloc *a, unsigned cls)
{
	if (cls == 4 && a->nfree4)
		return a->free4[--a->nfree4];
	if (cls == 8 && a->nfree8)
		return a->free8[--a->nfree8];
	return new_slot(a, cls);
}

static int scan(struct alloc *a)
{
	struct interval *active = malloc((a->n + 1) * sizeof *active);
	uint32_t nactive = 0;

	a->free4 = malloc((a->n + 1) * sizeof *a->free4);
	a->free8 = malloc((a->n + 1) * sizeof *a->free8);
	if (!active || !a->free4 || !a->free8) {
		free(active);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < a->n; i++) {
		struct sim_vreg *v = &a->l->vreg[a->iv[i].vreg];
		uint32_t kept = 0;

		for (uint32_t j = 0; j < nactive; j++) {
			const struct sim_vreg *old = &a->l->vreg[active[j].vreg];

			if (active[j].end >= a->iv[i].start)
				active[kept++] = active[j];
			else if (old->cls == 4)
				a->free4[a->nfree4++] = old->slot;
			else
				a->free8[a->nfree8++] = old->slot;
		}
		nactive = kept;
		v->slot = take(a, v->cls);
		active[nactive++] = a->iv[i];
	}
	free(active);
	return 0;
}

/* Constants that are read, and everything that the preamble writes. */
static int place_static(struct alloc *a)
{
	struct sim_lower *l = a->l;
	struct sim_kernel *k = l->k;

	k->consts = calloc(l->nconst + 1, sizeof *k->consts);
	if (!k->consts)
		return -ENOMEM;
	k->shared_bytes = (k->shared_bytes + 15) & ~15ull;
	for (uint32_t i = 0; i < l->nconst; i++) {
		struct sim_vreg *v = &l->vreg[l->const_hash[i]];
		struct sim_const *c = &k->consts[k->nconsts++];

		v->slot = c->offset = new_slot(a, v->cls);
		c->cls = v->cls;
		c->sreg = v->sreg;
		c->dynamic = v->dynamic;
		c->value = v->value + (v->dynamic ? k->shared_bytes : 0);
	}
	for (uint32_t u = 0; u < k->npre; u++)
		OPERANDS(o, i, k->pre[u].wr)
	l->vreg[k->pre[u].r[i]].slot = new_slot(a, l->vreg[k->pre[u].r[i]].cls);
	return 0;
}

static void patch(const struct sim_lower *l, struct sim_uop *uop, uint32_t n)
{
	for (uint32_t u = 0; u < n; u++)
		for (int i = 0; i < 8; i++)
			uop[u].r[i] =
				(uop[u].wr | uop[u].rd) >> i & 1 ? l->vreg[uop[u].r[i]].slot : 0;
}

static void alloc_free(struct alloc *a)
{
	free(a->dense);
	free(a->vreg_of);
	free(a->block_of);
	free(a->in);
	free(a->iv);
	free(a->free4);
	free(a->free8);
}

static int allocate(struct alloc *a)
{
	struct sim_lower *l = a->l;
	struct sim_kernel *k = l->k;
	uint32_t fixed;
	int rc;

	a->end = 8 * SIM_LANES; /* unused operands read from here */
	rc = place_static(a);
	fixed = a->end;
	if (!rc)
		rc = number_vregs(a);
	if (!rc)
		rc = find_blocks(a);
	if (rc)
		return rc;
	solve(a);
	rc = build_intervals(a);
	if (!rc)
		rc = scan(a);
	if (rc)
		return rc;
	patch(l, l->uop, l->nuops);
	patch(l, k->pre, k->npre);
	for (uint32_t i = 0; i < l->nside; i++)
		l->side[i] = l->vreg[l->side[i]].slot;
	k->file_bytes = a->end;
	k->nslots = (a->end - fixed) / (4 * SIM_LANES);
	k->code = l->uop, k->ncode = l->nuops;
	k->side = l->side, k->nside = l->nside;
	l->uop = NULL, l->side = NULL;
	return 0;
}

int sim_alloc_registers(struct sim_lower *l)
{
	struct alloc a = {.l = l};
	int rc;

	count_defs(l);
	rc = hoist(l);
	if (rc)
		return rc;
	mark_targets(l);
	rc = compact(l);
	if (!rc)
		rc = allocate(&a);
	alloc_free(&a);
	return rc;
}
