/* SPDX-License-Identifier: MIT */
/*
 * CTA barriers 0..15.
 *
 * Waiting lanes are groups in state SIM_G_BARRIER. Without a count a barrier is complete when every
 * thread of the CTA that has not exited waits at it. With a count, a warp counts as its full 32
 * threads once all its live lanes wait there (the ISA counts warps), plus what bar.arrive added.
 */
#include "tests/simcuda/exec_flow.h"

int sim_barrier_arrive(struct sim_warp *w, const struct sim_uop *o, uint32_t lanes)
{
	unsigned lane = (unsigned)__builtin_ctz(lanes);
	uint32_t id = SIM_REG(uint32_t, w, o, 1)[lane] % SIM_MAX_BARRIER;
	uint32_t expect = SIM_REG(uint32_t, w, o, 2)[lane];
	struct sim_group *g;

	if (o->imm == SIM_BAR_ARRIVE) {
		w->run->arrived[id] += SIM_LANES;
		return 0;
	}
	w->run->barriers |= 1u << id;
	g = &w->group[w->ngroups++];
	g->pc = w->pc;
	g->mask = lanes;
	g->state = SIM_G_BARRIER;
	g->barrier = id;
	g->expect = expect;
	return 1;
}

static uint32_t waiting_lanes(const struct sim_warp *w, uint32_t id)
{
	uint32_t mask = 0;

	for (uint32_t g = 0; g < w->ngroups; g++)
		if (w->group[g].state == SIM_G_BARRIER && w->group[g].barrier == id)
			mask |= w->group[g].mask;
	return mask;
}

static uint32_t expected(const struct sim_run *run, uint32_t id)
{
	for (uint32_t i = 0; i < run->nwarps; i++) {
		const struct sim_warp *w = &run->warps[i];

		for (uint32_t g = 0; g < w->ngroups; g++)
			if (w->group[g].state == SIM_G_BARRIER && w->group[g].barrier == id)
				return w->group[g].expect;
	}
	return 0;
}

static int is_complete(const struct sim_run *run, uint32_t id)
{
	uint32_t expect = expected(run, id), counted = run->arrived[id], missing = 0, any = 0;

	for (uint32_t i = 0; i < run->nwarps; i++) {
		const struct sim_warp *w = &run->warps[i];
		uint32_t waiting = waiting_lanes(w, id);

		any |= waiting;
		missing |= w->alive & ~waiting;
		if (waiting && waiting == w->alive)
			counted += SIM_LANES;
	}
	if (!any)
		return 0;
	return expect ? counted >= expect : !missing;
}

/* The reduction over the waiting lanes of the whole CTA. */
static uint32_t reduce(const struct sim_run *run, uint32_t id, int64_t *ret_kind)
{
	uint32_t count = 0, threads = 0;

	*ret_kind = SIM_BAR_SYNC;
	for (uint32_t i = 0; i < run->nwarps; i++) {
		const struct sim_warp *w = &run->warps[i];

		for (uint32_t g = 0; g < w->ngroups; g++) {
			const struct sim_group *gr = &w->group[g];
			const struct sim_uop *o = &run->k->code[gr->pc];

			if (gr->state != SIM_G_BARRIER || gr->barrier != id || o->imm < SIM_BAR_AND)
				continue;
			*ret_kind = o->imm;
			count += (uint32_t)__builtin_popcount(sim_warp_pred(w, o->r[3]) & gr->mask);
			threads += (uint32_t)__builtin_popcount(gr->mask);
		}
	}
	switch (*ret_kind) {
	case SIM_BAR_AND:
		return count == threads ? ~0u : 0;
	case SIM_BAR_OR:
		return count ? ~0u : 0;
	default:
		return count;
	}
}

static int release(struct sim_run *run, uint32_t id)
{
	int64_t kind;
	uint32_t result = reduce(run, id, &kind);
	int released = 0;

	for (uint32_t i = 0; i < run->nwarps; i++) {
		struct sim_warp *w = &run->warps[i];

		for (uint32_t g = 0; g < w->ngroups; g++) {
			struct sim_group *gr = &w->group[g];
			const struct sim_uop *o = &run->k->code[gr->pc];

			if (gr->state != SIM_G_BARRIER || gr->barrier != id)
				continue;
			for (int lane = 0; o->imm >= SIM_BAR_AND && lane < SIM_LANES; lane++)
				if (gr->mask >> lane & 1)
					SIM_REG(uint32_t, w, o, 0)[lane] = result;
			gr->state = SIM_G_READY;
			gr->pc++;
			w->blocked = 0;
			released++;
		}
	}
	run->arrived[id] = 0;
	return released;
}

int sim_barrier_release(struct sim_run *run)
{
	int released = 0;

	for (uint32_t left = run->barriers; left; left &= left - 1) {
		uint32_t id = (uint32_t)__builtin_ctz(left);

		if (!is_complete(run, id))
			continue;
		run->barriers &= ~(1u << id);
		released += release(run, id);
	}
	return released;
}
