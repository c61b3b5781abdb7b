/* SPDX-License-Identifier: MIT */
/*
 * What the tests of graphs share: two arrays of N words, kernel node parameters, seeds.
 */
#ifndef TESTS_CLIENTS_DRV_GRAPH_H
#define TESTS_CLIENTS_DRV_GRAPH_H

#include "tests/clients/drv.h"

#define N     64u
#define SEEDS 30u

static unsigned n_elems = N;

/* The last of N words at p. */
__attribute__((unused)) static unsigned value(CUdeviceptr p)
{
	unsigned v;

	must(cuMemcpyDtoH(&v, p + 4 * (N - 1), 4));
	return v;
}

__attribute__((unused)) static CUDA_KERNEL_NODE_PARAMS kernel(CUfunction f, void **params)
{
	CUDA_KERNEL_NODE_PARAMS p = {.func = f, .kernelParams = params};

	p.gridDimX = p.gridDimY = p.gridDimZ = p.blockDimY = p.blockDimZ = 1;
	p.blockDimX = N;
	return p;
}

__attribute__((unused)) static CUDA_MEMSET_NODE_PARAMS fill(CUdeviceptr p, unsigned v)
{
	return (CUDA_MEMSET_NODE_PARAMS){
		.dst = p, .value = v, .elementSize = 4, .width = N, .height = 1};
}

__attribute__((unused)) static CUDA_MEMCPY3D copy(CUdeviceptr dst, CUdeviceptr src)
{
	return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			       .srcDevice = src,
			       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			       .dstDevice = dst,
			       .WidthInBytes = N * 4,
			       .Height = 1,
			       .Depth = 1};
}

/* Schedule number i: eager, lazy, then random seeds. */
__attribute__((unused)) static void schedule(unsigned i)
{
	char spec[32];

	snprintf(spec, sizeof(spec), "random:%u", i);
	simcuda_set_schedule(i == 0 ? "eager" : i == 1 ? "lazy" : spec);
}

#endif
