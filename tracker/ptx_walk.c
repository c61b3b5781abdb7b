/* SPDX-License-Identifier: MIT */
/*
 * The walk that gives every register its abstract value, and the values of phis.
 * See ptx_value.h.
 *
 * Invariant: children of the dominator tree are visited in block order, so every forward
 * predecessor of a block has been walked before it.
 * Callers: ptx_access.c. No locks.
 */
#include "tracker/ptx_value.h"

#include <string.h>

#define MAX_ROUNDS 24
#define PHI_KEY	   ((uint64_t)1 << 40)

static unsigned phi_width(const struct rs_vals *v, const struct rs_flow_phi *phi)
{
	/* A numbered register's type: of its frame, or of its slot. */
	for (uint32_t i = v->flow.nframes; i-- > 0;) {
		const struct rs_flow_frame *fr = &v->flow.frames[i];

		if (phi->reg >= fr->reg_base && phi->reg < fr->reg_base + fr->func->nregs)
			return rs_type_width(fr->func->regs[phi->reg - fr->reg_base].type);
	}
	return 0;
}

static struct rs_val phi_entry(struct rs_vals *v, const struct rs_flow_phi *phi)
{
	const struct rs_flow_block *b = &v->flow.blocks[phi->block];
	const struct rs_phi_state *st = phi->state;
	const struct rs_val *in[64];
	unsigned n = 0;

	for (uint32_t p = 0; p < b->npred; p++) {
		if (b->pred[p] >= phi->block)
			continue;
		if (n == 64 || !st->in[p])
			return (struct rs_val){.origin = st->origin};
		in[n++] = st->in[p];
	}
	return rs_val_choice(v, PHI_KEY + st->index * 2u, in, n);
}

static struct rs_val phi_value(struct rs_vals *v, const struct rs_flow_phi *phi)
{
	const struct rs_flow_block *b = &v->flow.blocks[phi->block];
	const struct rs_phi_state *st = phi->state;
	unsigned width = phi_width(v, phi);
	struct rs_val r;

	if (!b->retreating)
		return phi_entry(v, phi);
	if (st->is_induction) {
		struct rs_aff_atom t = {
			.kind = RS_AFF_LOOP, .a = b->loop, .block = (int32_t)phi->block};
		const struct rs_aff_poly *inc;

		r = phi_entry(v, phi);
		if (r.p) {
			inc = rs_aff_mul(
				&v->aff, st->step,
				rs_aff_var(&v->aff, r.p->width, rs_aff_atom(&v->aff, &t, NULL)));
			r.p = inc ? rs_aff_add(&v->aff, r.p, inc, 1) : NULL;
		}
		r.needs = rs_needs_join(v, r.needs, st->needs);
		r.origin = rs_origin_join(r.origin, st->origin);
		r.pred = NULL;
		if (r.p)
			return r;
	}
	return rs_val_unknown_at(v, width, PHI_KEY + st->index * 2u + 1,
				 width == 32 ? INT32_MIN : INT64_MIN,
				 width == 32 ? INT32_MAX : INT64_MAX, st->origin);
}

/* Is the polynomial the same in every iteration of the loop? */
static int invariant(const struct rs_vals *v, const struct rs_aff_poly *p, int32_t loop,
		     unsigned *budget)
{
	for (unsigned i = 0; i < p->n; i++)
		for (unsigned d = 0; d < RS_AFF_DEGREE && p->t[i].atom[d]; d++) {
			const struct rs_aff_atom *a = v->aff.atoms[p->t[i].atom[d]];

			switch (a->kind) {
			case RS_AFF_LOOP:
			case RS_AFF_UNKNOWN:
			case RS_AFF_CHOICE:
				if (rs_flow_in_loop(&v->flow, (uint32_t)a->block, loop))
					return 0;
				break;
			default:
				break;
			}
			/* Arguments share parts, so the tree may be far larger than its nodes. */
			for (unsigned j = 0; j < a->nargs; j++) {
				if (!*budget)
					return 0;
				--*budget;
				if (!invariant(v, a->arg[j], loop, budget))
					return 0;
			}
		}
	return 1;
}

/* The amount by which one turn of the loop changes the phi, or NULL. */
static const struct rs_aff_poly *phi_step(struct rs_vals *v, const struct rs_flow_phi *phi,
					  const struct rs_val *own, const struct rs_needs **needs)
{
	const struct rs_flow_block *b = &v->flow.blocks[phi->block];
	const struct rs_phi_state *st = phi->state;
	const struct rs_aff_poly *step = NULL;
	unsigned budget = 200;

	for (uint32_t p = 0; p < b->npred; p++) {
		const struct rs_aff_poly *d;

		if (b->pred[p] < phi->block)
			continue;
		if (!st->in[p] || !st->in[p]->p || st->in[p]->p->width != own->p->width)
			return NULL;
		d = rs_aff_add(&v->aff, st->in[p]->p, own->p, -1);
		if (!d || (step && !rs_aff_equal(step, d)))
			return NULL;
		step = d;
		*needs = rs_needs_join(v, *needs, st->in[p]->needs);
	}
	/* What the step rests on must hold in every iteration, so it must not depend on them. */
	for (unsigned i = 0; *needs && i < (*needs)->n; i++)
		if (!invariant(v, v->needs[(*needs)->id[i]].p, b->loop, &budget))
			return NULL;
	return step && invariant(v, step, b->loop, &budget) ? step : NULL;
}

static int same_needs(const struct rs_needs *a, const struct rs_needs *b)
{
	if (!a || !b)
		return a == b;
	return a->n == b->n && !memcmp(a->id, b->id, a->n * sizeof(*a->id));
}

static void update_phi(struct rs_vals *v, struct rs_flow_phi *phi, const struct rs_val *own)
{
	const struct rs_flow_block *b = &v->flow.blocks[phi->block];
	struct rs_phi_state *st = phi->state;
	struct rs_aff_origin o = st->origin;
	const struct rs_aff_poly *step = NULL;
	const struct rs_needs *needs = NULL;

	for (uint32_t p = 0; p < b->npred; p++)
		if (st->in[p] && !st->in[p]->undefined)
			o = rs_origin_join(o, st->in[p]->origin);
	if (o.words != st->origin.words || o.from != st->origin.from) {
		st->origin = o;
		v->changed = 1;
	}
	if (!b->retreating || st->banned)
		return;
	if (b->loop >= 0 && v->flow.loops[b->loop].header == phi->block && own->p)
		step = phi_step(v, phi, own, &needs);
	if (st->is_induction
		    ? !step || !rs_aff_equal(step, st->step) || !same_needs(needs, st->needs)
		    : step != NULL) {
		if (++st->tries > 6 || (st->is_induction && !step) || v->last_resort) {
			st->banned = 1;
			st->is_induction = 0;
		} else {
			st->is_induction = 1;
			st->step = step;
			st->needs = needs;
		}
		v->changed = 1;
	}
}

struct undo {
	uint32_t reg;
	const struct rs_val *old;
};

struct walk {
	struct rs_vals *v;
	struct undo *log;
	uint32_t nlog, cap;
};

static void save_reg(void *opaque, uint32_t reg, int is_def)
{
	struct walk *w = opaque;

	if (!is_def)
		return;
	if (w->nlog == w->cap) {
		uint32_t cap = w->cap ? 2 * w->cap : 1024;
		struct undo *n = rs_aff_alloc(w->v->mem, cap * sizeof(*n));

		if (w->nlog)
			memcpy(n, w->log, w->nlog * sizeof(*n));
		w->log = n;
		w->cap = cap;
	}
	w->log[w->nlog++] = (struct undo){reg, w->v->cur[reg]};
}

static void do_block(struct walk *w, uint32_t at)
{
	struct rs_vals *v = w->v;
	struct rs_flow_block *b = &v->flow.blocks[at];

	v->block = at;
	v->step = b->first;
	for (struct rs_flow_phi *phi = b->phis; phi; phi = phi->next)
		save_reg(w, phi->reg, 1);
	for (struct rs_flow_phi *phi = b->phis; phi; phi = phi->next)
		v->cur[phi->reg] = rs_vals_keep(v, phi_value(v, phi));
	for (v->step = b->first; v->step < b->last; v->step++) {
		rs_flow_regs(&v->flow, &v->flow.steps[v->step], save_reg, w);
		rs_vals_step(v, &v->flow.steps[v->step]);
	}
	if (b->last > b->first)
		v->branch[at] = rs_vals_guard(v, &v->flow.steps[b->last - 1]);
	for (uint32_t s = 0; s < b->nsucc; s++) {
		const struct rs_flow_block *to = &v->flow.blocks[b->succ[s]];

		for (struct rs_flow_phi *phi = to->phis; phi; phi = phi->next)
			for (uint32_t p = 0; p < to->npred; p++)
				if (to->pred[p] == at)
					((struct rs_phi_state *)phi->state)->in[p] =
						rs_vals_reg(v, phi->reg);
	}
}

/* One round: the dominator tree in preorder, registers restored on the way up. */
static void walk_tree(struct rs_vals *v)
{
	struct walk w = {.v = v};
	uint32_t *marks = rs_aff_alloc(v->mem, v->flow.nblocks * sizeof(*marks));
	uint32_t b = 0;

	memset(v->cur, 0, v->flow.nregs * sizeof(*v->cur));
	for (;;) {
		marks[b] = w.nlog;
		do_block(&w, b);
		if (v->flow.blocks[b].child) {
			b = v->flow.blocks[b].child;
			continue;
		}
		for (;;) {
			/* Everything that b and its children defined is undone. */
			while (w.nlog > marks[b]) {
				w.nlog--;
				v->cur[w.log[w.nlog].reg] = w.log[w.nlog].old;
			}
			if (!b)
				return;
			if (v->flow.blocks[b].sibling) {
				b = v->flow.blocks[b].sibling;
				break;
			}
			b = v->flow.blocks[b].idom;
		}
	}
}

static void update_phis(struct rs_vals *v)
{
	for (uint32_t i = 0; i < v->flow.nblocks; i++)
		for (struct rs_flow_phi *phi = v->flow.blocks[i].phis; phi; phi = phi->next) {
			struct rs_val own;

			v->block = i;
			v->step = v->flow.blocks[i].first;
			own = phi_value(v, phi);
			update_phi(v, phi, &own);
		}
}

static void prepare(struct rs_vals *v)
{
	struct rs_flow *f = &v->flow;
	uint32_t index = 0;

	v->cur = rs_aff_alloc(v->mem, (f->nregs + 1) * sizeof(*v->cur));
	v->branch = rs_aff_alloc(v->mem, f->nblocks * sizeof(*v->branch));
	v->what = rs_aff_alloc(v->mem, f->nsteps);
	v->cap_needs = 64;
	v->needs = rs_aff_alloc(v->mem, v->cap_needs * sizeof(*v->needs));
	v->needs[0] = (struct rs_need){rs_aff_const(&v->aff, 64, 0), 1, 0};
	v->nneeds = 1;
	for (uint32_t i = 0; i < f->nsteps; i++)
		if (f->steps[i].insn)
			v->what[i] = (uint8_t)rs_opcode_what(f->steps[i].insn->part[0]);
	for (uint32_t i = 0; i < f->nblocks; i++)
		for (struct rs_flow_phi *phi = f->blocks[i].phis; phi; phi = phi->next) {
			struct rs_phi_state *st = rs_aff_alloc(v->mem, sizeof(*st));

			st->in = rs_aff_alloc(v->mem, (f->blocks[i].npred + 1) * sizeof(*st->in));
			st->index = index++;
			phi->state = st;
		}
}

void rs_vals_run(struct rs_vals *v, void (*on_round)(struct rs_vals *v))
{
	prepare(v);
	for (unsigned round = 0;; round++) {
		/* Origins settle by themselves: each round adds at least one or is the last. */
		v->last_resort = round >= MAX_ROUNDS;
		if (round == 4 * MAX_ROUNDS)
			longjmp(v->mem->fail, RS_AFF_TOOBIG);
		v->changed = 0;
		on_round(v);
		walk_tree(v);
		update_phis(v);
		if (!v->changed)
			return;
	}
}
