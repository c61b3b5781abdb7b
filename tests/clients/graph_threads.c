/* SPDX-License-Identifier: MIT */
/*
 * Two threads launch one executable graph, each on a stream of its own and in windows of its own. Prints the
 * product.
 */
#include <cuda.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "shim/include/replayshim.h"

#define ROUNDS 20

#define MUST(call)                                                                                 \
	do {                                                                                       \
		CUresult r_ = (call);                                                              \
		if (r_ != CUDA_SUCCESS) {                                                          \
			fprintf(stderr, "%s: %d\n", #call, (int)r_);                               \
			exit(3);                                                                   \
		}                                                                                  \
	} while (0)

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry scale(.param .u64 y, .param .u64 x, .param .u32 k)\n"
			  "{\n"
			  "    .reg .b32 %r<4>;\n"
			  "    .reg .b64 %rd<4>;\n"
			  "    ld.param.u64 %rd1, [y];\n"
			  "    ld.param.u64 %rd2, [x];\n"
			  "    ld.param.u32 %r1, [k];\n"
			  "    cvta.to.global.u64 %rd1, %rd1;\n"
			  "    cvta.to.global.u64 %rd2, %rd2;\n"
			  "    ld.global.u32 %r2, [%rd2];\n"
			  "    mul.lo.u32 %r2, %r2, %r1;\n"
			  "    st.global.u32 [%rd1], %r2;\n"
			  "    ret;\n"
			  "}\n";

static CUcontext ctx;
static CUgraphExec exec;

static void *work(void *name)
{
	CUstream s;

	MUST(cuCtxSetCurrent(ctx));
	MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	for (long i = 0; i < ROUNDS; i++) {
		replayshim_forward_begin(name, i);
		MUST(cuGraphLaunch(exec, s));
		replayshim_forward_end();
		replayshim_replay_begin(name, i);
		MUST(cuGraphLaunch(exec, s));
		replayshim_replay_end();
	}
	MUST(cuStreamSynchronize(s));
	MUST(cuStreamDestroy(s));
	return NULL;
}

int main(void)
{
	unsigned five = 5, y = 0, seven = 7;
	CUDA_KERNEL_NODE_PARAMS p = {.gridDimX = 1,
				     .gridDimY = 1,
				     .gridDimZ = 1,
				     .blockDimX = 1,
				     .blockDimY = 1,
				     .blockDimZ = 1};
	pthread_t thread[2];
	CUgraphNode node;
	CUdeviceptr at[2];
	CUmodule module;
	CUdevice device;
	CUgraph graph;

	MUST(cuInit(0));
	MUST(cuDeviceGet(&device, 0));
	MUST(cuDevicePrimaryCtxRetain(&ctx, device));
	MUST(cuCtxSetCurrent(ctx));
	MUST(cuModuleLoadData(&module, ptx));
	MUST(cuModuleGetFunction(&p.func, module, "scale"));
	MUST(cuMemAlloc(&at[0], 4));
	MUST(cuMemAlloc(&at[1], 4));
	MUST(cuMemcpyHtoD(at[1], &seven, 4));
	MUST(cuCtxSynchronize());
	p.kernelParams = (void *[]){&at[0], &at[1], &five};
	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphAddKernelNode(&node, graph, NULL, 0, &p));
	MUST(cuGraphInstantiate(&exec, graph, 0));
	replayshim_step(1);
	pthread_create(&thread[0], NULL, work, (void *)(uintptr_t) "one");
	pthread_create(&thread[1], NULL, work, (void *)(uintptr_t) "two");
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
	MUST(cuMemcpyDtoH(&y, at[0], 4));
	printf("y=%u\n", y);
	MUST(cuGraphExecDestroy(exec));
	MUST(cuGraphDestroy(graph));
	return 0;
}
