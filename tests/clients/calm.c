/* SPDX-License-Identifier: MIT */
/*
 * Calls outside of segments that are equal to earlier ones, between a forward and its replay: what needed nothing
 * before must now save what the forward saw. For tests/t/shim_calm.t.
 *
 *	calm KIND	KIND: fill, copy, launch, other (the address is of other memory by then), empty (of no bytes before),
 *			new-copy, new-launch (all are different: they go to one word after the other of the state), grid (launches
 *			that differ by their grids only, and do not reach the state before)
 *
 * In each round the state is set again and again, a segment reads it, the same call sets it to something else, and the
 * segment is replayed; prints "round product state", which are right if product is the round's number and state
 * 100 more.
 */
#include "shim/include/replayshim.h"
#include "tests/clients/drv.h"

#define ROUNDS 4u
#define BYTES  4096u

static CUdeviceptr state, product, source, other, made;
static CUfunction inc;

static void set(const char *kind, unsigned value)
{
	if (!strcmp(kind, "copy")) {
		must(cuMemsetD32Async(source, value, 1, NULL));
		must(cuMemcpyDtoDAsync(state, source, 4, NULL));
		return;
	}
	must(cuMemsetD32Async(state, value, 1, NULL));
}

static void segment(void)
{
	must(cuMemcpyDtoDAsync(product, state, 4, NULL));
}

/* Something else is pending, so that calls are followed at all. */
static void pending(void)
{
	replayshim_forward_begin("other", REPLAYSHIM_NEXT);
	must(cuMemcpyDtoDAsync(made, other, 4, NULL));
	replayshim_forward_end();
}

static void again(const char *kind, unsigned round)
{
	if (!strcmp(kind, "other")) {
		must(cuMemFree(state));
		must(cuMemAlloc(&state, BYTES));
	}
	if (!strcmp(kind, "empty"))
		must(cuMemsetD32Async(state, 0, 0, NULL));
	for (unsigned i = 0; i < 3; i++)
		set(kind, round);
}

static void launches(unsigned times)
{
	unsigned n = 1;
	void *args[] = {&state, &n};

	while (times--)
		must(drv_launch(inc, 1, NULL, args));
}

#define BEFORE 64u /* words, which are a block's */

/* The state follows what one block reaches. */
static void grid(unsigned blocks, unsigned times)
{
	CUdeviceptr from = state - 4 * BEFORE;
	unsigned n = 2 * BEFORE;
	void *args[] = {&from, &n};

	while (times--)
		must(cuLaunchKernel(inc, blocks, 1, 1, BEFORE, 1, 1, 0, NULL, args, NULL));
}

/* Copies or launches on words of the state that no call has had before, in the end also on the one that matters. */
static void anew(int launch, unsigned round, unsigned from, unsigned times)
{
	unsigned n = 1;
	CUdeviceptr at;
	void *args[] = {&at, &n};

	for (unsigned i = 0; i < times; i++) {
		at = state + 4ull * (from + 200 * (round - 1) + i);
		if (launch)
			must(drv_launch(inc, 1, NULL, args));
		else
			must(cuMemcpyDtoDAsync(at, source, 4, NULL));
		at = state;
		if (from > 1 && launch)
			must(drv_launch(inc, 1, NULL, args));
	}
	if (from > 1 && !launch) {
		must(cuMemsetD32Async(source, round + 100, 1, NULL));
		must(cuMemcpyDtoDAsync(state, source, 4, NULL));
	}
}

int main(int argc, char **argv)
{
	CUcontext ctx;
	CUmodule module;
	unsigned got[2], launch, new, grids;

	if (argc != 2)
		return 2;
	launch = !strcmp(argv[1], "launch");
	new = !strncmp(argv[1], "new-", 4);
	grids = !strcmp(argv[1], "grid");
	must(cuInit(0));
	must(cuCtxCreate(&ctx, NULL, 0, 0));
	must(cuModuleLoadData(&module, drv_ptx));
	must(cuModuleGetFunction(&inc, module, "inc"));
	must(cuMemAlloc(&state, BYTES));
	must(cuMemsetD32(state, 0, BYTES / 4));
	state += grids * 4 * BEFORE;
	must(cuMemAlloc(&product, BYTES));
	must(cuMemAlloc(&source, BYTES));
	must(cuMemAlloc(&other, BYTES));
	must(cuMemAlloc(&made, BYTES));
	must(cuMemsetD32Async(other, 0, 1, NULL));
	for (unsigned round = 1; round <= ROUNDS; round++) {
		replayshim_step((long)round);
		pending();
		again(argv[1], round - launch * 3);
		launches(launch * 3);
		grid(1, grids * 100);
		if (new)
			anew(!strcmp(argv[1], "new-launch"), round, 1, 100);
		replayshim_forward_begin("layer", REPLAYSHIM_NEXT);
		segment();
		replayshim_forward_end();
		if (launch)
			launches(100);
		else if (grids)
			grid(2, 100);
		else if (new)
			anew(!strcmp(argv[1], "new-launch"), round, 101, 100);
		else
			again(strcmp(argv[1], "other") ? argv[1] : "fill", round + 100);
		replayshim_replay_begin("layer", REPLAYSHIM_NEXT);
		segment();
		replayshim_replay_end();
		must(cuMemcpyDtoH(&got[0], product, 4));
		must(cuMemcpyDtoH(&got[1], state, 4));
		printf("%u %u %u\n", round, got[0], got[1]);
	}
	return 0;
}
