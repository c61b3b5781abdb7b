/* SPDX-License-Identifier: MIT */
/*
 * Running a grid: warps, divergence, scheduling.
 *
 * A warp executes the group of lanes with the lowest program counter until it meets another group
 * (they merge), branches apart (they split), waits or ends. Code is laid out so that this converges
 * where compilers expect it; calls are inlined, so program order covers them too. A group that keeps
 * jumping back while others wait (a spin lock) is suspended now and then, and so is a warp.
 * CTAs run in linear order, warps round robin, lanes in ascending order: a launch is deterministic.
 * Kernels without barriers, warp operations and shared memory run several small CTAs in one vector.
 */
#include <immintrin.h>
#include <stdio.h>
#include <string.h>

#include "tests/simcuda/exec_run.h"

enum outcome { DONE, BLOCKED, YIELD, FAULT };

#define SLICE	    65536 /* backward jumps before other warps or lanes get a turn */
#define SHORT_SLICE 64

uint32_t sim_warp_pred(const struct sim_warp *w, uint32_t offset)
{
	const float *p = (const float *)(w->r + offset);
	uint32_t bits = 0;

	for (int i = 0; i < 4; i++)
		bits |= (uint32_t)_mm256_movemask_ps(_mm256_load_ps(p + 8 * i)) << (8 * i);
	return bits;
}

void sim_warp_set(struct sim_warp *w, uint32_t act)
{
	w->act = act;
	w->partial = act != w->alive;
	for (int i = 0; i < SIM_LANES; i++)
		w->lanes[i] = 0u - (act >> i & 1);
}

void sim_run_fault(struct sim_warp *w, const struct sim_uop *o, enum sim_fault_kind kind,
		   uint32_t lanes, const char *what)
{
	struct sim_fault *f = &w->run->fault;
	unsigned lane = lanes ? (unsigned)__builtin_ctz(lanes) : 0;

	if (f->kind != SIM_OK)
		return;
	f->kind = kind;
	f->line = o->src ? o->src->line : w->run->k->func->line;
	for (int i = 0; i < 3; i++) {
		f->ctaid[i] = w->ctaid[i][lane];
		f->tid[i] = w->tid[i][lane];
	}
	snprintf(f->text, sizeof f->text,
		 "kernel %.60s, line %u: %.40s: %s, block %u,%u,%u thread %u,%u,%u",
		 w->run->k->func->name, f->line, o->src ? o->src->text : "end", what, f->ctaid[0],
		 f->ctaid[1], f->ctaid[2], f->tid[0], f->tid[1], f->tid[2]);
}

/* ---- lane groups ---- */

static void push(struct sim_warp *w, uint32_t pc, uint32_t mask, int state)
{
	struct sim_group *g = &w->group[w->ngroups++];

	g->pc = pc;
	g->mask = mask;
	g->state = state;
	g->barrier = g->expect = 0;
}

/* Take the ready groups at `pc` as the current one. */
static void resume(struct sim_warp *w, uint32_t pc)
{
	uint32_t mask = 0, join = UINT32_MAX, n = 0;

	for (uint32_t i = 0; i < w->ngroups; i++) {
		const struct sim_group *g = &w->group[i];

		if (g->state == SIM_G_READY && g->pc == pc) {
			mask |= g->mask;
			continue;
		}
		if (g->state == SIM_G_READY && g->pc < join)
			join = g->pc;
		w->group[n++] = *g;
	}
	w->ngroups = n;
	w->pc = pc;
	w->join = join;
	sim_warp_set(w, mask);
}

/* bar.warp.sync releases lanes that wait at different instructions. */
static int release_warp_barriers(struct sim_warp *w)
{
	const struct sim_uop *code = w->run->k->code;
	uint32_t waiting = 0, need;
	int released = 0;

	for (uint32_t i = 0; i < w->ngroups; i++)
		if (w->group[i].state == SIM_G_WSYNC && code[w->group[i].pc].flags & SIM_F_ANYPC)
			waiting |= w->group[i].mask;
	for (uint32_t i = 0; i < w->ngroups; i++) {
		struct sim_group *g = &w->group[i];
		const struct sim_uop *o = &code[g->pc];

		if (g->state != SIM_G_WSYNC || !(o->flags & SIM_F_ANYPC))
			continue;
		need = SIM_REG(uint32_t, w, o, 6)[__builtin_ctz(g->mask)] & w->alive;
		if (need & ~waiting)
			continue;
		g->state = SIM_G_READY;
		g->pc++;
		released = 1;
	}
	return released;
}

/* The lowest ready group becomes current; 0: none is ready. */
static int pick(struct sim_warp *w)
{
	uint32_t best = UINT32_MAX;

	do {
		for (uint32_t i = 0; i < w->ngroups; i++)
			if (w->group[i].state == SIM_G_READY && w->group[i].pc < best)
				best = w->group[i].pc;
	} while (best == UINT32_MAX && release_warp_barriers(w));
	if (best == UINT32_MAX)
		return 0;
	resume(w, best);
	return 1;
}

/* Give another lane group a short turn of its own; it does not merge while it has it. */
static void rotate(struct sim_warp *w)
{
	uint32_t nready = 0, turn;

	for (uint32_t i = 0; i < w->ngroups; i++)
		nready += w->group[i].state == SIM_G_READY;
	if (!nready)
		return;
	turn = w->starve++ % nready;
	for (uint32_t i = 0; i < w->ngroups; i++) {
		struct sim_group *g = &w->group[i], mine;

		if (g->state != SIM_G_READY || turn--)
			continue;
		mine = *g;
		g->pc = w->pc;
		g->mask = w->act;
		w->pc = mine.pc;
		w->join = UINT32_MAX;
		sim_warp_set(w, mine.mask);
		w->run->slice = SHORT_SLICE;
		return;
	}
}

/* ---- one warp ---- */

/* The current group has nothing to do any more: another one, or the warp stops. */
static enum outcome next_group(struct sim_warp *w)
{
	w->act = 0;
	if (pick(w))
		return YIELD;
	return w->ngroups ? BLOCKED : DONE;
}

/* Lanes with one value of the member mask execute together, once all its live lanes are here. */
static enum outcome warp_op(struct sim_warp *w, const struct sim_uop *o)
{
	uint32_t rest = w->act, stay = 0, n = 0;
	const uint32_t *member = SIM_REG(uint32_t, w, o, 6);

	for (uint32_t i = 0; i < w->ngroups; i++) {
		if (w->group[i].state == SIM_G_WSYNC && w->group[i].pc == w->pc)
			rest |= w->group[i].mask;
		else
			w->group[n++] = w->group[i];
	}
	w->ngroups = n;
	if (o->flags & SIM_F_NOMASK) {
		sim_warp_set(w, rest);
		o->fn[w->partial](o, w);
		stay = rest, rest = 0;
	}
	while (rest) {
		uint32_t first = (uint32_t)__builtin_ctz(rest), mask = member[first],
			 same = 1u << first;

		for (uint32_t m = rest & mask; m; m &= m - 1)
			if (member[__builtin_ctz(m)] == mask)
				same |= m & -m;
		if (mask & w->alive & ~same) {
			push(w, w->pc, same, SIM_G_WSYNC);
		} else {
			sim_warp_set(w, same);
			o->fn[w->partial](o, w);
			stay |= same;
		}
		rest &= ~same;
	}
	if (!stay)
		return next_group(w);
	sim_warp_set(w, stay);
	w->pc++;
	return YIELD;
}

static enum outcome branch(struct sim_warp *w, const struct sim_uop *o)
{
	uint32_t taken = w->act, pc = w->pc, target = (uint32_t)o->target;
	struct sim_run *run = w->run;

	if (!(o->flags & SIM_F_ALWAYS)) {
		taken = sim_warp_pred(w, o->r[7]);
		taken = (o->flags & SIM_F_NEGATE ? ~taken : taken) & w->act;
	}
	if (!taken) {
		w->pc++;
		return YIELD;
	}
	if (taken != w->act) {
		push(w, target, taken, SIM_G_READY);
		push(w, pc + 1, w->act & ~taken, SIM_G_READY);
		pick(w);
	} else {
		w->pc = target;
	}
	if (target > pc || --run->slice)
		return YIELD;
	if (run->launch->max_insns && run->counts.thread_insns > run->launch->max_insns) {
		sim_run_fault(w, o, SIM_FAULT_TIMEOUT, taken, "instruction limit reached");
		return FAULT;
	}
	run->slice = run->launch->max_insns ? 1024 : SLICE;
	if (w->join == UINT32_MAX && w->ngroups) {
		/* after a turn alone: back to program order */
		push(w, w->pc, w->act, SIM_G_READY);
		pick(w);
	} else {
		rotate(w);
	}
	return BLOCKED; /* of the caller's loop: other warps run */
}

static enum outcome table_branch(struct sim_warp *w, const struct sim_uop *o)
{
	const int32_t *table = w->run->k->tables[o->imm];
	const uint32_t *index = SIM_REG(uint32_t, w, o, 1);

	for (uint32_t m = w->act; m; m &= m - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(m);

		if (index[lane] >= (uint32_t)table[0]) {
			sim_run_fault(w, o, SIM_FAULT_TRAP, 1u << lane,
				      "branch index outside its table");
			return FAULT;
		}
		push(w, (uint32_t)table[index[lane] + 1], 1u << lane, SIM_G_READY);
	}
	pick(w);
	return YIELD;
}

static enum outcome leave(struct sim_warp *w, uint32_t lanes)
{
	w->alive &= ~lanes;
	if (lanes == w->act)
		return next_group(w);
	sim_warp_set(w, w->act & ~lanes);
	w->pc++;
	return YIELD;
}

/* Kinds that change who runs; `lanes` of the current group execute it. */
static enum outcome control(struct sim_warp *w, const struct sim_uop *o, unsigned kind,
			    uint32_t lanes)
{
	if (kind == SIM_K_EXIT)
		return leave(w, lanes);
	if (kind == SIM_K_TRAP) {
		sim_run_fault(w, o, SIM_FAULT_TRAP, lanes, "trap");
		return FAULT;
	}
	if (lanes != w->act) {
		/* the others go on behind it */
		push(w, w->pc + 1, w->act & ~lanes, SIM_G_READY);
		w->join = w->pc + 1 < w->join ? w->pc + 1 : w->join;
		sim_warp_set(w, lanes);
	}
	if (kind == SIM_K_WSYNC)
		return warp_op(w, o);
	if (sim_barrier_arrive(w, o, lanes))
		return next_group(w);
	w->pc++;
	return YIELD;
}

static enum outcome guarded(struct sim_warp *w, const struct sim_uop *o)
{
	uint32_t act = w->act, lanes = sim_warp_pred(w, o->r[7]);

	lanes = (o->flags & SIM_F_NEGATE ? ~lanes : lanes) & act;
	w->run->counts.thread_insns += (uint64_t)o->weight * (uint32_t)__builtin_popcount(lanes);
	if (!lanes) {
		w->pc++;
		return YIELD;
	}
	if (o->sub != SIM_K_ALU && o->sub != SIM_K_MEM)
		return control(w, o, o->sub, lanes);
	if (lanes != act)
		sim_warp_set(w, lanes);
	o->fn[w->partial](o, w);
	if (lanes != act)
		sim_warp_set(w, act);
	w->pc++;
	return w->run->fault.kind == SIM_OK ? YIELD : FAULT;
}

static enum outcome run_warp(struct sim_warp *w)
{
	struct sim_run *run = w->run;
	const struct sim_uop *code = run->k->code;
	enum outcome out = YIELD;

	if (!w->act && !pick(w))
		return w->ngroups ? BLOCKED : DONE;
	run->slice = run->launch->max_insns ? 1024 : SLICE;
	while (out == YIELD) {
		uint32_t lanes = (uint32_t)__builtin_popcount(w->act);
		const struct sim_uop *o = code + w->pc;

		/* straight runs of lane operations */
		while (o->kind <= SIM_K_MEM) {
			run->counts.thread_insns += (uint64_t)o->weight * lanes;
			o->fn[w->partial](o, w);
			if (o->kind == SIM_K_MEM && run->fault.kind != SIM_OK)
				return FAULT;
			o++;
			if (++w->pc >= w->join)
				break;
		}
		if (w->pc >= w->join) {
			push(w, w->pc, w->act, SIM_G_READY);
			pick(w);
			continue;
		}
		if (o->kind != SIM_K_GUARDED)
			run->counts.thread_insns += (uint64_t)o->weight * lanes;
		switch (o->kind) {
		case SIM_K_BRA:
			out = branch(w, o);
			if (out == BLOCKED)
				return YIELD;
			break;
		case SIM_K_BRX:
			out = table_branch(w, o);
			break;
		case SIM_K_GUARDED:
			out = guarded(w, o);
			break;
		case SIM_K_NOP:
			w->pc++;
			break;
		default:
			out = control(w, o, o->kind, w->act);
		}
	}
	return out;
}

/* ---- one vector of CTAs ---- */

static enum sim_fault_kind deadlock(struct sim_run *run)
{
	for (uint32_t i = 0; i < run->nwarps; i++) {
		struct sim_warp *w = &run->warps[i];
		const struct sim_group *g = w->group;

		if (w->done || !w->ngroups)
			continue;
		sim_run_fault(w, &run->k->code[g->pc], SIM_FAULT_DEADLOCK, g->mask,
			      "waits for threads that never come");
		break;
	}
	return run->fault.kind;
}

enum sim_fault_kind sim_run_cta(struct sim_run *run)
{
	for (;;) {
		int left = 0, moved = 0;

		for (uint32_t i = 0; i < run->nwarps; i++) {
			struct sim_warp *w = &run->warps[i];
			enum outcome out;

			if (w->done || w->blocked) {
				left |= !w->done;
				continue;
			}
			out = run_warp(w);
			if (out == FAULT)
				return run->fault.kind;
			moved = 1;
			w->done = out == DONE;
			w->blocked = out == BLOCKED;
			left |= out != DONE;
		}
		if (!left)
			return SIM_OK;
		if (!sim_barrier_release(run) && !moved)
			return deadlock(run);
	}
}
