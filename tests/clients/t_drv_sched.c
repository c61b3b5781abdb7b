/* SPDX-License-Identifier: MIT */
/*
 * The scheduler: a program with a missing dependency computes wrong bytes under some seed, the correct
 * program never does; a seed repeats exactly; times do not depend on the order of execution.
 */
#include "tests/clients/drv.h"

#include <time.h>

#define N     64u
#define SEEDS 1000

static CUfunction f_addto, f_store;
static CUdeviceptr a, b;
static unsigned *pinned;

static void seed(unsigned n)
{
	char spec[32];

	snprintf(spec, sizeof(spec), "random:%u", n);
	if (simcuda_set_schedule(spec))
		printf("Bail out! schedule %s\n", spec);
}

static void store(CUdeviceptr p, unsigned v, CUstream s)
{
	unsigned n = N;
	void *params[] = {&p, &n, &v};

	must(drv_launch(f_store, n, s, params));
}

static void addto(CUdeviceptr d, CUdeviceptr from, CUstream s)
{
	unsigned n = N;
	void *params[] = {&d, &from, &n};

	must(drv_launch(f_addto, n, s, params));
}

enum variant { RIGHT, NO_WAIT, WAIT_TOO_EARLY, RIGHT_BY_LEGACY, NO_LEGACY };

/* b = 7 on one stream, a += b on the other, read a back: 12 if the order holds. */
static unsigned two_streams(enum variant v, float *ret_ms)
{
	unsigned flags = v == RIGHT_BY_LEGACY ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
	CUevent ready, start, end;
	unsigned result = 0;
	CUstream s1, s2;

	must(cuStreamCreate(&s1, flags));
	must(cuStreamCreate(&s2, flags));
	must(cuEventCreate(&ready, CU_EVENT_DISABLE_TIMING));
	must(cuEventCreate(&start, 0));
	must(cuEventCreate(&end, 0));
	must(cuMemsetD32(b, 0, N));
	must(cuMemsetD32(a, 5, N));
	must(cuCtxSynchronize());

	must(cuEventRecord(start, s1));
	if (v == WAIT_TOO_EARLY) /* of an event not recorded yet: waits for nothing */
		must(cuStreamWaitEvent(s2, ready, 0));
	store(b, 7, s1);
	must(cuEventRecord(ready, s1));
	if (v == RIGHT)
		must(cuStreamWaitEvent(s2, ready, 0));
	if (v == RIGHT_BY_LEGACY || v == NO_LEGACY)
		must(cuMemsetD32Async(a, 5, N, NULL));
	addto(a, b, s2);
	must(cuEventRecord(end, s2));
	must(cuMemcpyDtoHAsync(pinned, a, N * 4, s2));
	must(cuStreamSynchronize(s2));
	result = pinned[N - 1];
	must(cuCtxSynchronize());
	if (ret_ms)
		must(cuEventElapsedTime(ret_ms, start, end));
	must(cuEventDestroy(ready));
	must(cuEventDestroy(start));
	must(cuEventDestroy(end));
	must(cuStreamDestroy(s1));
	must(cuStreamDestroy(s2));
	return result;
}

static unsigned wrong_seeds(enum variant v, uint64_t *ret_trace)
{
	unsigned wrong = 0;

	*ret_trace = 0;
	for (unsigned i = 0; i < SEEDS; i++) {
		unsigned r;

		seed(i);
		r = two_streams(v, NULL);
		wrong += r != 12;
		*ret_trace = *ret_trace * 31 + r;
	}
	return wrong;
}

static void seeds(void)
{
	uint64_t first, second;
	struct timespec t0, t1;
	unsigned n;

	clock_gettime(CLOCK_MONOTONIC, &t0);
	is_u64(wrong_seeds(RIGHT, &first), 0, "right program: right under every seed");
	n = wrong_seeds(NO_WAIT, &first);
	ok(n > SEEDS / 20, "missing wait: wrong bytes under some seeds (%u of %u)", n, SEEDS);
	wrong_seeds(NO_WAIT, &second);
	is_u64(first, second, "the same seeds give the same bytes");
	n = wrong_seeds(WAIT_TOO_EARLY, &first);
	ok(n > SEEDS / 20, "wait before the record: wrong under some seeds (%u)", n);
	is_u64(wrong_seeds(RIGHT_BY_LEGACY, &first), 0,
	       "the default stream orders blocking streams");
	n = wrong_seeds(NO_LEGACY, &first);
	ok(n > SEEDS / 20, "but not non-blocking ones (%u)", n);
	clock_gettime(CLOCK_MONOTONIC, &t1);
	tap_diag("%u runs in %.2f s", 6 * SEEDS,
		 (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) / 1e9);
}

static void times(void)
{
	float eager, ms;
	unsigned differ = 0;

	simcuda_set_schedule("eager");
	two_streams(RIGHT, &eager);
	ok(eager > 0.004f && eager < 0.1f, "two launches take a few microseconds (%g ms)", eager);
	for (unsigned i = 0; i < 50; i++) {
		seed(i);
		two_streams(RIGHT, &ms);
		differ += ms != eager;
	}
	simcuda_set_schedule("lazy");
	two_streams(RIGHT, &ms);
	differ += ms != eager;
	is_u64(differ, 0, "event times are the same in every schedule");
}

static void lazy(void)
{
	CUstream s1, s2;

	simcuda_set_schedule("lazy");
	must(cuStreamCreate(&s1, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&s2, CU_STREAM_NON_BLOCKING));
	must(cuMemsetD32(a, 1, N));
	must(cuMemsetD32(b, 1, N));
	must(cuCtxSynchronize());
	memset(pinned, 0, N * 4);
	must(cuMemcpyDtoHAsync(pinned, a, N * 4, s1));
	is_u64(pinned[0], 0, "lazy: nothing happens before somebody waits");
	must(cuMemcpyDtoHAsync(pinned + N, b, N * 4, s2));
	pinned[N] = 0;
	must(cuStreamSynchronize(s1));
	ok(pinned[0] == 1 && pinned[N] == 0, "lazy: a wait executes what it needs and no more");
	is_cu(cuStreamQuery(s2), CUDA_SUCCESS, "lazy: a query makes progress");
	is_u64(pinned[N], 1, "lazy: and then it is there");
	must(cuStreamDestroy(s1));
	must(cuStreamDestroy(s2));
}

static void bad_specs(void)
{
	ok(simcuda_set_schedule("fast") && simcuda_set_schedule("random") &&
		   simcuda_set_schedule("random:x"),
	   "schedules that do not exist are refused");
}

int main(void)
{
	CUcontext ctx = drv_context();
	CUmodule mod;

	must(cuModuleLoadData(&mod, drv_ptx));
	f_addto = drv_function(mod, "addto");
	f_store = drv_function(mod, "store");
	must(cuMemAlloc(&a, N * 4));
	must(cuMemAlloc(&b, N * 4));
	must(cuMemHostAlloc((void **)&pinned, N * 8, 0));
	seeds();
	times();
	lazy();
	bad_specs();
	must(cuCtxDestroy(ctx));
	return tap_done();
}
