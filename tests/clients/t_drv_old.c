/* SPDX-License-Identifier: MIT */
/*
 * Entry points of older programs (launch state of functions, handles without a version), cooperative launches
 * over several devices, green contexts.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "tests/clients/drv_graph.h"

/* They are, and old programs call them. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static CUfunction f_inc, f_store;
static CUdeviceptr a;
static CUstream s;

static void old_launch(void)
{
	CUdeviceptr p = a;
	unsigned right = 0;

	is_cu(cuFuncSetBlockShape(f_store, 0, 1, 1), CUDA_ERROR_INVALID_VALUE, "no threads");
	is_cu(cuFuncSetBlockShape(f_store, N, 1, 1), CUDA_SUCCESS, "block shape");
	is_cu(cuFuncSetSharedSize(f_store, 0), CUDA_SUCCESS, "shared size");
	is_cu(cuParamSetv(f_store, 0, &p, sizeof(p)), CUDA_SUCCESS, "a pointer");
	is_cu(cuParamSeti(f_store, 8, N), CUDA_SUCCESS, "a number");
	is_cu(cuParamSeti(f_store, 12, 42), CUDA_SUCCESS, "another");
	is_cu(cuParamSeti(f_store, 4095, 1), CUDA_ERROR_INVALID_VALUE, "past the end");
	is_cu(cuParamSetv(f_store, -1, &p, 1), CUDA_ERROR_INVALID_VALUE, "before the beginning");
	is_cu(cuParamSetSize(f_store, 4097), CUDA_ERROR_INVALID_VALUE, "too many bytes");
	is_cu(cuLaunch(f_store), CUDA_ERROR_INVALID_VALUE, "without a size");
	must(cuParamSetSize(f_store, 16));
	is_cu(cuLaunch(f_store), CUDA_SUCCESS, "cuLaunch");
	is_u64(value(a), 42, "ran");
	must(cuParamSetf(f_store, 12, 1.0f));
	is_cu(cuLaunchGrid(f_store, 1, 1), CUDA_SUCCESS, "cuLaunchGrid");
	is_u64(value(a), 0x3f800000, "with a float");
	is_cu(cuLaunchGrid(f_store, 0, 1), CUDA_ERROR_INVALID_VALUE, "no grid");
	for (unsigned i = 0; i < SEEDS; i++) {
		schedule(i);
		must(cuParamSeti(f_store, 12, i + 1));
		must(cuLaunchGridAsync(f_store, 1, 1, s));
		must(cuParamSeti(f_store, 12, 1000));
		must(cuStreamSynchronize(s));
		right += value(a) == i + 1;
	}
	is_u64(right, SEEDS, "arguments are those of the call");
	schedule(0);
}

/* The names without a version are calls of their own for old programs; headers cannot say them. */
static void old_names(void)
{
	CUresult (*destroy_stream)(CUstream), (*destroy_event)(CUevent), (*push)(CUcontext);
	CUresult (*pop)(CUcontext *), (*destroy_ctx)(CUcontext);
	CUcontext c, popped = NULL;
	CUstream t;
	CUevent e;

	*(void **)&destroy_stream = dlsym(RTLD_DEFAULT, "cuStreamDestroy");
	*(void **)&destroy_event = dlsym(RTLD_DEFAULT, "cuEventDestroy");
	*(void **)&push = dlsym(RTLD_DEFAULT, "cuCtxPushCurrent");
	*(void **)&pop = dlsym(RTLD_DEFAULT, "cuCtxPopCurrent");
	*(void **)&destroy_ctx = dlsym(RTLD_DEFAULT, "cuCtxDestroy");
	ok(destroy_stream && destroy_event && push && pop && destroy_ctx,
	   "the old names are there");
	must(cuStreamCreate(&t, 0));
	must(cuEventCreate(&e, 0));
	is_cu(destroy_stream(t), CUDA_SUCCESS, "cuStreamDestroy");
	is_cu(destroy_stream(t), CUDA_ERROR_INVALID_HANDLE, "destroyed it");
	is_cu(destroy_event(e), CUDA_SUCCESS, "cuEventDestroy");
	is_cu(destroy_event(e), CUDA_ERROR_INVALID_HANDLE, "destroyed it");
	must(cuCtxCreate(&c, NULL, 0, 0));
	is_cu(pop(&popped), CUDA_SUCCESS, "cuCtxPopCurrent");
	ok(popped == c, "gives the context");
	is_cu(push(c), CUDA_SUCCESS, "cuCtxPushCurrent");
	is_cu(destroy_ctx(c), CUDA_SUCCESS, "cuCtxDestroy");
	is_cu(push(c), CUDA_ERROR_INVALID_CONTEXT, "destroyed it");
}

static void multi_device(void)
{
	void *args[] = {&a, &n_elems};
	CUDA_LAUNCH_PARAMS p[2] = {{f_inc, 1, 1, 1, N, 1, 1, 0, s, args}};
	unsigned right = 0;

	p[1] = p[0];
	for (unsigned i = 0; i < SEEDS; i++) {
		must(cuMemsetD32(a, 0, N));
		must(cuCtxSynchronize());
		schedule(i);
		must(cuMemsetD32Async(a, 10, N, s));
		must(cuLaunchCooperativeKernelMultiDevice(p, 1, i % 4));
		must(drv_launch(f_inc, N, s, args));
		must(cuStreamSynchronize(s));
		right += value(a) == 12;
	}
	is_u64(right, SEEDS, "a cooperative launch in the order of its stream");
	schedule(0);
	is_cu(cuLaunchCooperativeKernelMultiDevice(p, 2, 0), CUDA_ERROR_INVALID_VALUE,
	      "two on one device");
	is_cu(cuLaunchCooperativeKernelMultiDevice(p, 0, 0), CUDA_ERROR_INVALID_VALUE, "none");
	is_cu(cuLaunchCooperativeKernelMultiDevice(p, 1, 4), CUDA_ERROR_INVALID_VALUE, "flags");
	p[0].hStream = NULL;
	is_cu(cuLaunchCooperativeKernelMultiDevice(p, 1, 0), CUDA_ERROR_INVALID_VALUE,
	      "the default stream");
}

/* Both kernels wait for the work of both streams, and what comes after waits for both kernels. */
static void two_devices(void)
{
	CUcontext first, ctx;
	CUdeviceptr from, sum[2], after;
	CUmodule mod;
	CUstream t[2] = {s};
	CUfunction f[2];
	unsigned *words, right = 0;
	void *args[2][3], *last[] = {&after, &sum[1], &n_elems};
	CUDA_LAUNCH_PARAMS p[2];

	must(cuCtxGetCurrent(&first));
	must(cuMemHostAlloc((void **)&words, 4 * N * 4, CU_MEMHOSTALLOC_PORTABLE));
	from = (CUdeviceptr)(uintptr_t)words;
	after = from + N * 4;
	must(cuModuleLoadData(&mod, drv_ptx));
	f[0] = drv_function(mod, "addto");
	must(cuCtxCreate(&ctx, NULL, 0, 1));
	must(cuModuleLoadData(&mod, drv_ptx));
	f[1] = drv_function(mod, "addto");
	must(cuStreamCreate(&t[1], CU_STREAM_NON_BLOCKING));
	must(cuCtxSetCurrent(first));
	for (unsigned i = 0; i < 2; i++) {
		sum[i] = from + (2 + i) * N * 4;
		args[i][0] = &sum[i];
		args[i][1] = &from;
		args[i][2] = &n_elems;
		p[i] = (CUDA_LAUNCH_PARAMS){f[i], 1, 1, 1, N, 1, 1, 0, t[i], args[i]};
	}
	for (unsigned i = 0; i < SEEDS; i++) {
		memset(words, 0, 4 * N * 4);
		schedule(i);
		must(cuMemsetD32Async(from, 5, N, t[0]));
		must(cuLaunchCooperativeKernelMultiDevice(p, 2, 0));
		must(drv_launch(f[0], N, t[0], last));
		must(cuStreamSynchronize(t[0]));
		right += words[N] == 5 && words[2 * N] == 5 && words[3 * N] == 5;
	}
	is_u64(right, SEEDS, "a cooperative launch over two devices");
	schedule(0);
	must(cuMemFreeHost(words));
	must(cuCtxDestroy(ctx));
}

static void green(void)
{
	CUdevResource all, half[2], rest;
	CUgreenCtx g, h, of = NULL;
	CUcontext primary, ctx;
	CUdevResourceDesc d[2];
	CUstream x, y;
	unsigned n = 2, right = 0;
	CUdeviceptr p, q;
	CUevent e;

	must(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
	is_u64(all.sm.smCount, 132, "multiprocessors");
	is_cu(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_INVALID),
	      CUDA_ERROR_INVALID_RESOURCE_TYPE, "no resource");
	is_cu(cuDevSmResourceSplitByCount(half, &n, &all, &rest, 0, 60), CUDA_SUCCESS, "split");
	ok(n == 2 && half[0].sm.smCount == 64 && half[1].sm.smCount == 64 && rest.sm.smCount == 4,
	   "into parts and a rest");
	must(cuDevResourceGenerateDesc(&d[0], &half[0], 1));
	must(cuDevResourceGenerateDesc(&d[1], &half[1], 1));
	is_cu(cuGreenCtxCreate(&g, d[0], 0, 0), CUDA_ERROR_INVALID_VALUE, "flags");
	must(cuGreenCtxCreate(&g, d[0], 0, CU_GREEN_CTX_DEFAULT_STREAM));
	must(cuGreenCtxCreate(&h, d[1], 0, CU_GREEN_CTX_DEFAULT_STREAM));
	must(cuCtxFromGreenCtx(&ctx, g));
	must(cuDevicePrimaryCtxRetain(&primary, 0));
	ok(ctx == primary, "a green context's context is the primary one");
	must(cuCtxPushCurrent(ctx));
	is_cu(cuGreenCtxStreamCreate(&x, g, 0, 0), CUDA_ERROR_INVALID_VALUE, "blocking");
	must(cuGreenCtxStreamCreate(&x, g, CU_STREAM_NON_BLOCKING, 0));
	must(cuGreenCtxStreamCreate(&y, h, CU_STREAM_NON_BLOCKING, 0));
	must(cuStreamGetGreenCtx(x, &of));
	ok(of == g, "a stream knows its green context");
	must(cuMemAlloc(&p, N * 4));
	must(cuMemAlloc(&q, N * 4));
	must(cuEventCreate(&e, 0));
	for (unsigned i = 0; i < SEEDS; i++) {
		schedule(i);
		must(cuMemsetD32Async(p, i + 1, N, x));
		must(cuGreenCtxRecordEvent(g, e));
		must(cuGreenCtxWaitEvent(h, e));
		must(cuMemcpyDtoDAsync(q, p, N * 4, y));
		must(cuStreamSynchronize(y));
		right += value(q) == i + 1;
		must(cuCtxSynchronize());
	}
	is_u64(right, SEEDS, "events order green contexts");
	schedule(0);
	must(cuStreamDestroy(x));
	must(cuStreamDestroy(y));
	must(cuGreenCtxDestroy(g));
	is_cu(cuGreenCtxDestroy(g), CUDA_ERROR_INVALID_CONTEXT, "destroyed once");
	is_cu(cuCtxFromGreenCtx(&ctx, g), CUDA_ERROR_INVALID_CONTEXT, "and gone");
	must(cuGreenCtxDestroy(h));
	must(cuCtxPopCurrent(&ctx));
	must(cuDevicePrimaryCtxRelease(0));
}

int main(void)
{
	CUcontext ctx;
	CUmodule mod;

	setenv("SIMCUDA_DEVICES", "2", 1);
	ctx = drv_context();
	must(cuModuleLoadData(&mod, drv_ptx));
	f_inc = drv_function(mod, "inc");
	f_store = drv_function(mod, "store");
	must(cuMemAlloc(&a, N * 4));
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	old_launch();
	old_names();
	multi_device();
	two_devices();
	green();
	must(cuCtxDestroy(ctx));
	return tap_done();
}
