/* SPDX-License-Identifier: MIT */
/*
 * Several threads on one context: each computes the same on its own stream, with host functions,
 * allocations, events and its default stream, under several schedules.
 */
#include <pthread.h>

#include "tests/clients/drv.h"

#define THREADS 4
#define ROUNDS	60
#define N	256u

static CUcontext ctx;
static CUfunction f_inc, f_addto;

struct worker {
	pthread_t thread;
	unsigned bad, host_calls;
};

static void count_call(void *arg)
{
	++*(unsigned *)arg;
}

static unsigned round_trip(struct worker *w, CUstream s, unsigned *pinned)
{
	unsigned n = N;
	CUdeviceptr a, b;
	void *inc[] = {&a, &n}, *add[] = {&b, &a, &n};
	CUevent e;

	must(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	must(cuMemAlloc(&b, N * 4));
	must(cuMemAllocAsync(&a, N * 4, s));
	must(cuMemsetD32Async(a, 1, N, s));
	must(cuMemsetD32Async(b, 10, N, s));
	must(drv_launch(f_inc, N, s, inc));
	must(cuLaunchHostFunc(s, count_call, &w->host_calls));
	must(drv_launch(f_addto, N, s, add));
	must(cuMemFreeAsync(a, s));
	must(cuEventRecord(e, s));
	must(cuStreamWaitEvent(CU_STREAM_PER_THREAD, e, 0));
	must(cuMemcpyDtoHAsync(pinned, b, N * 4, CU_STREAM_PER_THREAD));
	must(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	must(cuMemFree(b));
	must(cuEventDestroy(e));
	return pinned[0] != 12 || pinned[N - 1] != 12;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	unsigned *pinned;
	CUstream s;

	must(cuCtxSetCurrent(ctx));
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuMemHostAlloc((void **)&pinned, N * 4, 0));
	for (unsigned i = 0; i < ROUNDS; i++)
		w->bad += round_trip(w, s, pinned);
	must(cuMemFreeHost(pinned));
	must(cuStreamDestroy(s));
	return NULL;
}

static void schedule(const char *spec)
{
	struct worker w[THREADS] = {0};
	unsigned bad = 0, calls = 0;

	simcuda_set_schedule(spec);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&w[i].thread, NULL, work, &w[i]);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(w[i].thread, NULL);
		bad += w[i].bad;
		calls += w[i].host_calls;
	}
	is_u64(bad, 0, spec);
	is_u64(calls, THREADS * ROUNDS, "every host function ran once");
}

int main(void)
{
	CUmodule mod;

	ctx = drv_context();
	must(cuModuleLoadData(&mod, drv_ptx));
	f_inc = drv_function(mod, "inc");
	f_addto = drv_function(mod, "addto");
	schedule("eager");
	schedule("lazy");
	schedule("random:1");
	schedule("random:2");
	must(cuModuleUnload(mod));
	is_u64(simcuda_live_bytes(0), 0, "nothing is left");
	must(cuCtxDestroy(ctx));
	return tap_done();
}
