/* SPDX-License-Identifier: MIT */
/*
 * What preserving costs: one segment that reads a table, something that overwrites it, and the segment's replay, again
 * and again. For tests/bench/preserve.sh, which runs it under every option.
 *
 *	preserve_cost big|sparse|rows [--plain] [--steps=N]
 *
 * big: the table is overwritten by one fill. sparse: a kernel takes the rows that it writes from memory, so that it may
 * write anything. rows: every other row is overwritten by a fill of its own. --plain: the program does by itself, with
 * copies of the same bytes, what preserving has to do: before the write it saves what is overwritten; at the replay it
 * saves what is there, copies the old bytes in, and the saved ones back at the end.
 *
 * Prints, for each phase, "PHASE VIRTUAL HOST" in nanoseconds: of the simulated device's clock (0: another device), and of
 * the host while it issues the phase's calls; each the least of all steps but the first two. Driver API and the marker
 * header; one thread.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shim/include/replayshim.h"
#include "tests/simcuda/simcuda.h"

#define ROW   4096ull
#define ROWS  2048ull /* that are written; as many lie between them */
#define TABLE (2 * ROWS * ROW)
#define POKES 64u

extern __typeof__(simcuda_virtual_ns) simcuda_virtual_ns __attribute__((weak));

enum phase { FORWARD, WRITE, REPLAY, PHASES };
static const char *const phase_name[] = {"forward", "write", "replay"};

enum what { BIG, SPARSE, SCATTERED };

static CUdeviceptr table, product, old, present, indices;
static CUfunction poke;
static enum what what;
static int plain, mapped;

/* poke(table, indices, v): row indices[tid] begins with v. */
static const char ptx[] = ".version 7.5\n.target sm_75\n.address_size 64\n"
			  ".visible .entry poke(.param .u64 t, .param .u64 x, .param .u32 v)\n{\n"
			  "\t.reg .b32 %r<4>;\n\t.reg .b64 %rd<6>;\n"
			  "\tld.param.u64 %rd1, [t];\n\tld.param.u64 %rd2, [x];\n"
			  "\tld.param.u32 %r1, [v];\n\tmov.u32 %r2, %tid.x;\n"
			  "\tmul.wide.u32 %rd3, %r2, 4;\n\tadd.s64 %rd4, %rd2, %rd3;\n"
			  "\tld.global.u32 %r3, [%rd4];\n\tmul.wide.u32 %rd3, %r3, 4096;\n"
			  "\tadd.s64 %rd5, %rd1, %rd3;\n\tst.global.u32 [%rd5], %r1;\n"
			  "\tret;\n}\n";

static void must(CUresult r, const char *call)
{
	if (!r)
		return;
	fprintf(stderr, "%s: %d\n", call, (int)r);
	exit(1);
}
#define MUST(call) must(call, #call)

/* Bytes of a handle of their own, mapped once: what a replay can be shown by remapping. */
static CUdeviceptr map_table(void)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
	};
	const CUmemAccessDesc rw = {.location = prop.location,
				    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle h;
	CUdeviceptr p;

	MUST(cuMemCreate(&h, TABLE, &prop, 0));
	MUST(cuMemAddressReserve(&p, TABLE, 0, 0, 0));
	MUST(cuMemMap(p, TABLE, 0, h, 0));
	MUST(cuMemSetAccess(p, TABLE, &rw, 1));
	MUST(cuMemRelease(h));
	return p;
}

static void start(void)
{
	unsigned index[POKES], i;
	CUcontext ctx;
	CUmodule module;

	MUST(cuInit(0));
	MUST(cuCtxCreate(&ctx, NULL, 0, 0));
	MUST(cuModuleLoadData(&module, ptx));
	MUST(cuModuleGetFunction(&poke, module, "poke"));
	if (mapped)
		table = map_table();
	else
		MUST(cuMemAlloc(&table, TABLE));
	MUST(cuMemAlloc(&product, TABLE));
	MUST(cuMemAlloc(&old, TABLE));
	MUST(cuMemAlloc(&present, TABLE));
	MUST(cuMemAlloc(&indices, sizeof(index)));
	for (i = 0; i < POKES; i++)
		index[i] = i * (unsigned)(2 * ROWS / POKES);
	MUST(cuMemcpyHtoD(indices, index, sizeof(index)));
	MUST(cuMemsetD8(table, 1, TABLE));
	replayshim_region_name(table, TABLE, "table");
}

/* --- one step ------------------------------------------------------------------------------- */

/* The bytes that are overwritten, from one place to another: one copy, or one a row. */
static void copy(CUdeviceptr dst, CUdeviceptr src)
{
	uint64_t i;

	if (what != SCATTERED) {
		MUST(cuMemcpyDtoDAsync(dst, src, TABLE, 0));
		return;
	}
	for (i = 0; i < ROWS; i++)
		MUST(cuMemcpyDtoDAsync(dst + 2 * i * ROW, src + 2 * i * ROW, ROW, 0));
}

static void segment(void)
{
	MUST(cuMemcpyDtoDAsync(product, table, TABLE, 0));
}

static void overwrite(unsigned step)
{
	uint64_t i;

	if (plain)
		copy(old, table);
	if (what == BIG)
		MUST(cuMemsetD8Async(table, (unsigned char)step, TABLE, 0));
	else if (what == SPARSE)
		MUST(cuLaunchKernel(poke, 1, 1, 1, POKES, 1, 1, 0, 0,
				    (void *[]){&table, &indices, &step}, NULL));
	else
		for (i = 0; i < ROWS; i++)
			MUST(cuMemsetD8Async(table + 2 * i * ROW, (unsigned char)step, ROW, 0));
}

static void phase(enum phase p, unsigned step)
{
	if (p == WRITE) {
		overwrite(step);
		return;
	}
	if (p == FORWARD) {
		replayshim_step(step);
		replayshim_forward_begin("segment", 0);
		segment();
		replayshim_forward_end();
		return;
	}
	if (plain) {
		copy(present, table);
		copy(table, old);
	}
	replayshim_replay_begin("segment", 0);
	segment();
	replayshim_replay_end();
	if (plain)
		copy(table, present);
}

static uint64_t host_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t device_ns(void)
{
	return simcuda_virtual_ns ? simcuda_virtual_ns() : 0;
}

static void least(uint64_t *v, uint64_t with)
{
	if (!*v || with < *v)
		*v = with;
}

int main(int argc, char **argv)
{
	uint64_t virtual_ns[PHASES] = {0}, host[PHASES] = {0}, from, begun, issued;
	unsigned steps = 6, step;
	int i, p;

	what = argc < 2 ? BIG : !strcmp(argv[1], "rows") ? SCATTERED : !strcmp(argv[1], "sparse");
	for (i = 2; i < argc; i++)
		if (!strcmp(argv[i], "--plain"))
			plain = 1;
		else if (!strcmp(argv[i], "--mapped"))
			mapped = 1;
		else if (!strncmp(argv[i], "--steps=", 8))
			steps = (unsigned)atoi(argv[i] + 8);
	start();
	for (step = 1; step <= steps; step++)
		for (p = 0; p < PHASES; p++) {
			MUST(cuCtxSynchronize());
			from = device_ns();
			begun = host_ns();
			phase((enum phase)p, step);
			issued = host_ns();
			MUST(cuCtxSynchronize());
			if (step <= 2)
				continue;
			least(&virtual_ns[p], device_ns() - from);
			least(&host[p], issued - begun);
		}
	for (p = 0; p < PHASES; p++)
		printf("%s %llu %llu\n", phase_name[p], (unsigned long long)virtual_ns[p],
		       (unsigned long long)host[p]);
	return 0;
}
