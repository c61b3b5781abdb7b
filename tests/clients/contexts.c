/* SPDX-License-Identifier: MIT */
/*
 * One context after the other: forward and replay in each, then it is destroyed, every second time without having
 * waited. The words are those of tests/t/faults.t.
 */
#include "shim/include/replayshim.h"
#include "tests/clients/drv.h"

#define N 64u

static void step(CUfunction addto, CUfunction inc, CUdeviceptr y, CUdeviceptr s, CUstream q)
{
	unsigned n = N;
	void *add[] = {&y, &s, &n}, *next[] = {&s, &n};

	must(cuMemsetD32Async(y, 5, N, q));
	must(drv_launch(addto, N, q, add));
	must(drv_launch(inc, N, q, next));
}

static void life(unsigned i)
{
	CUcontext ctx = drv_context();
	CUfunction addto, inc;
	CUdeviceptr y, s;
	CUmodule module;
	unsigned v[2];
	CUstream q;

	must(cuModuleLoadData(&module, drv_ptx));
	addto = drv_function(module, "addto");
	inc = drv_function(module, "inc");
	must(cuMemAlloc(&y, N * 4));
	must(cuMemAlloc(&s, N * 4));
	must(cuMemsetD32(s, 3, N));
	must(cuStreamCreate(&q, CU_STREAM_NON_BLOCKING));
	must(cuCtxSynchronize());
	replayshim_forward_begin("life", i);
	step(addto, inc, y, s, q);
	replayshim_forward_end();
	replayshim_replay_begin("life", i);
	step(addto, inc, y, s, q);
	replayshim_replay_end();
	if (i % 2) {
		must(cuStreamSynchronize(q));
		must(cuMemcpyDtoH(&v[0], y, 4));
		must(cuMemcpyDtoH(&v[1], s, 4));
		printf("y%u=%u\ns%u=%u\n", i, v[0], i, v[1]);
	}
	must(cuCtxDestroy(ctx));
}

int main(void)
{
	must(cuInit(0));
	replayshim_step(1);
	for (unsigned i = 0; i < 6; i++)
		life(i);
	return 0;
}
