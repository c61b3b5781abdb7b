/* SPDX-License-Identifier: MIT */
/*
 * sim_exec: memory for a launch, special registers, the preamble, and the CTAs in linear order.
 *
 * Everything belongs to the calling thread. MXCSR is set to IEEE defaults for the run and put back.
 * Shared memory starts as zeros in every CTA; registers and local memory start as zeros in the first.
 */
#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simcuda/exec_run.h"

struct lane_ids {
	uint32_t tid[3], ctaid[3];
};

static uint32_t sreg_value(const struct sim_run *run, const struct sim_warp *w, unsigned sreg,
			   uint32_t lane)
{
	const struct sim_launch *l = run->launch;
	uint32_t bit = 1u << lane;

	switch (sreg) {
	case SIM_SREG_TID_X:
	case SIM_SREG_TID_Y:
	case SIM_SREG_TID_Z:
		return w->tid[sreg - SIM_SREG_TID_X][lane];
	case SIM_SREG_NTID_X:
	case SIM_SREG_NTID_Y:
	case SIM_SREG_NTID_Z:
		return l->block[sreg - SIM_SREG_NTID_X];
	case SIM_SREG_CTAID_X:
	case SIM_SREG_CTAID_Y:
	case SIM_SREG_CTAID_Z:
		return w->ctaid[sreg - SIM_SREG_CTAID_X][lane];
	case SIM_SREG_NCTAID_X:
	case SIM_SREG_NCTAID_Y:
	case SIM_SREG_NCTAID_Z:
		return l->grid[sreg - SIM_SREG_NCTAID_X];
	case SIM_SREG_LANEID:
		return lane;
	case SIM_SREG_WARPID:
		return w->index;
	case SIM_SREG_NWARPID:
		return run->nwarps;
	case SIM_SREG_NSMID:
		return 1;
	case SIM_SREG_LT:
		return bit - 1;
	case SIM_SREG_LE:
		return bit | (bit - 1);
	case SIM_SREG_EQ:
		return bit;
	case SIM_SREG_GE:
		return ~(bit - 1);
	case SIM_SREG_GT:
		return ~(bit | (bit - 1));
	case SIM_SREG_DYN:
		return l->shared_dynamic;
	case SIM_SREG_TOTAL:
		return (uint32_t)run->shared_bytes;
	default:
		return 0; /* %smid, %gridid */
	}
}

static int is_late(unsigned sreg)
{
	return sreg >= SIM_SREG_CTAID_X && sreg <= SIM_SREG_CTAID_Z;
}

static void fill_consts(const struct sim_run *run, struct sim_warp *w, int late)
{
	for (uint32_t c = 0; c < run->k->nconsts; c++) {
		const struct sim_const *k = &run->k->consts[c];

		if (is_late(k->sreg) != late)
			continue;
		for (uint32_t i = 0; i < SIM_LANES; i++) {
			uint64_t v = k->sreg ? sreg_value(run, w, k->sreg, i) : k->value;

			if (k->cls == 8)
				((uint64_t *)(w->r + k->offset))[i] = v;
			else
				((uint32_t *)(w->r + k->offset))[i] = (uint32_t)v;
		}
	}
}

/* Thread indices of a warp; with packing, thread `lane % threads` of each CTA in the vector. */
static void set_tids(struct sim_warp *w, const uint32_t block[3], uint32_t threads, int packed)
{
	w->exists = 0;
	for (uint32_t i = 0; i < SIM_LANES; i++) {
		uint32_t t = packed ? i % threads : w->index * SIM_LANES + i;

		if (packed ? i / threads < SIM_LANES / threads : t < threads)
			w->exists |= 1u << i;
		w->tid[0][i] = t % block[0];
		w->tid[1][i] = t / block[0] % block[1];
		w->tid[2][i] = t / block[0] / block[1];
	}
}

static void start_warp(struct sim_run *run, struct sim_warp *w, uint32_t threads, uint64_t ncta)
{
	const uint32_t *grid = run->launch->grid;
	int packed = run->k->packable && threads <= SIM_LANES / 2;

	w->alive = w->exists;
	for (uint32_t i = 0; i < SIM_LANES; i++) {
		uint64_t cta = run->cta + (packed ? i / threads : 0);

		if (cta >= ncta)
			w->alive &= ~(1u << i);
		w->ctaid[0][i] = (uint32_t)(cta % grid[0]);
		w->ctaid[1][i] = (uint32_t)(cta / grid[0] % grid[1]);
		w->ctaid[2][i] = (uint32_t)(cta / grid[0] / grid[1]);
	}
	w->pc = 0;
	w->join = UINT32_MAX;
	w->ngroups = 0;
	w->done = w->blocked = 0;
	w->starve = 0;
	w->slept = 0;
	sim_warp_set(w, w->alive);
	fill_consts(run, w, 1);
}

static void run_preamble(struct sim_run *run, struct sim_warp *w)
{
	w->alive = SIM_FULL;
	sim_warp_set(w, SIM_FULL);
	for (uint32_t i = 0; i < run->k->npre; i++)
		run->k->pre[i].fn[0](&run->k->pre[i], w);
}

static void *zeroed(size_t bytes)
{
	size_t rounded = (bytes + 64) & ~(size_t)63;
	void *p = aligned_alloc(64, rounded);

	if (p)
		memset(p, 0, rounded);
	return p;
}

static enum sim_fault_kind run_grid(struct sim_run *run, uint32_t threads, uint32_t per)
{
	const uint32_t *grid = run->launch->grid;
	uint64_t ncta = (uint64_t)grid[0] * grid[1] * grid[2];
	enum sim_fault_kind kind = SIM_OK;

	for (uint32_t i = 0; i < run->nwarps; i++) {
		set_tids(&run->warps[i], run->launch->block, threads, per > 1);
		fill_consts(run, &run->warps[i], 0);
		run_preamble(run, &run->warps[i]);
	}
	for (run->cta = 0; run->cta < ncta && kind == SIM_OK; run->cta += per) {
		memset(run->arrived, 0, sizeof run->arrived);
		run->barriers = 0;
		if (run->shared_bytes)
			memset(run->shared, 0, run->shared_bytes);
		for (uint32_t i = 0; i < run->nwarps; i++)
			start_warp(run, &run->warps[i], threads, ncta);
		kind = sim_run_cta(run);
	}
	return kind;
}

static enum sim_fault_kind run_with_memory(struct sim_run *run, uint32_t threads, uint32_t per)
{
	const struct sim_kernel *k = run->k;
	size_t file = ((size_t)k->file_bytes + 63) & ~(size_t)63;
	uint8_t *files = zeroed(file * run->nwarps),
		*local = zeroed(k->local_bytes * SIM_LANES * run->nwarps);
	enum sim_fault_kind kind = SIM_FAULT_NOMEM;

	run->warps = zeroed(sizeof *run->warps * run->nwarps);
	run->hit = zeroed(sizeof *run->hit * (k->nhits + 1));
	run->shared = zeroed(run->shared_bytes);
	if (files && local && run->warps && run->hit && run->shared) {
		for (uint32_t i = 0; i < run->nwarps; i++) {
			run->warps[i].r = files + i * file;
			run->warps[i].local = local + (size_t)i * SIM_LANES * k->local_bytes;
			run->warps[i].run = run;
			run->warps[i].index = i;
		}
		kind = run_grid(run, threads, per);
	} else {
		run->fault.kind = kind;
		snprintf(run->fault.text, sizeof run->fault.text, "kernel %.60s: out of memory",
			 k->func->name);
	}
	free(files);
	free(local);
	free(run->warps);
	free(run->hit);
	free(run->shared);
	return kind;
}

enum sim_fault_kind sim_exec(const struct sim_launch *launch, struct sim_fault *ret_fault,
			     struct sim_counts *ret_counts)
{
	struct sim_run run = {.launch = launch, .k = launch->kernel};
	uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
	uint32_t per = 1;
	unsigned csr = _mm_getcsr();
	enum sim_fault_kind kind = SIM_OK;

	run.shared_bytes = run.k->shared_bytes + launch->shared_dynamic;
	if (threads && threads <= UINT32_MAX / 2) {
		if (run.k->packable && threads <= SIM_LANES / 2)
			per = (uint32_t)(SIM_LANES / threads);
		run.nwarps = (uint32_t)((threads + SIM_LANES - 1) / SIM_LANES);
		_mm_setcsr(0x1f80);
		kind = run_with_memory(&run, (uint32_t)threads, per);
		_mm_setcsr(csr);
	}
	if (ret_fault)
		*ret_fault = run.fault;
	if (ret_counts)
		*ret_counts = run.counts;
	return kind;
}
