/* SPDX-License-Identifier: MIT */
/*
 * Many steps of a made-up training loop that leaves nothing behind: what it takes in a step it gives back in
 * that step, and so must the library. For tests/t/leak.t and tests/t/kill.t.
 *
 *	steps [--steps=N] [--pause=MICROSECONDS]
 *
 * Each step makes and drops allocations (plain, stream-ordered, pinned), a stream, an event, a module and a
 * thread, and holds segments of every fate: replayed twice, never replayed, a replay of what was never run
 * forward (a rejection), a window left open by a thread that ends. Prints a digest of what was computed, the
 * device bytes in use after the last step, and "step N" on stderr as it goes.
 */
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

#include "shim/include/replayshim.h"
#include "tests/clients/drv.h"

#define N     64u
#define BYTES (N * sizeof(unsigned))

static CUcontext ctx;

struct step {
	CUstream s;
	CUfunction inc, addto;
	CUdeviceptr state, input, product;
};

static void segment(struct step *st)
{
	unsigned n = N;
	void *add[] = {&st->product, &st->state, &n}, *inc[] = {&st->state, &n};
	CUdeviceptr inner;

	must(cuMemAllocAsync(&inner, BYTES, st->s));
	must(cuMemcpyDtoDAsync(inner, st->input, BYTES, st->s));
	must(cuMemcpyDtoDAsync(st->product, inner, BYTES, st->s));
	must(drv_launch(st->addto, N, st->s, add));
	must(drv_launch(st->inc, N, st->s, inc));
	must(cuMemFreeAsync(inner, st->s));
}

static void *leave_open(void *arg)
{
	struct step *st = arg;

	must(cuCtxSetCurrent(ctx));
	replayshim_range_push("not a marker");
	replayshim_forward_begin("open", 0);
	segment(st);
	return NULL;
}

static void segments(struct step *st)
{
	pthread_t thread;

	for (long i = 0; i < 2; i++) {
		replayshim_forward_begin("block", i);
		segment(st);
		replayshim_forward_end();
	}
	replayshim_forward_begin("never replayed", REPLAYSHIM_NEXT);
	segment(st);
	replayshim_forward_end();
	if (pthread_create(&thread, NULL, leave_open, st) || pthread_join(thread, NULL))
		exit(3);
	for (long i = 3; i >= 0; i--) {
		replayshim_replay_begin("block", i / 2);
		segment(st);
		replayshim_replay_end();
	}
	replayshim_replay_begin("never run", 0);
	segment(st);
	replayshim_replay_end();
}

static unsigned one_step(long n)
{
	unsigned *host, sum = 0;
	CUmodule module;
	struct step st;
	CUevent e;

	replayshim_step(n);
	must(cuStreamCreate(&st.s, CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	must(cuModuleLoadData(&module, drv_ptx));
	st.inc = drv_function(module, "inc");
	st.addto = drv_function(module, "addto");
	must(cuMemAlloc(&st.state, BYTES));
	must(cuMemAlloc(&st.input, BYTES));
	must(cuMemAlloc(&st.product, BYTES));
	must(cuMemHostAlloc((void **)&host, BYTES, 0));
	replayshim_region_name(st.state, BYTES, "state:count");
	must(cuMemsetD32Async(st.state, (unsigned)n, N, st.s));
	must(cuMemsetD32Async(st.input, 1000, N, st.s));
	segments(&st);
	must(cuMemcpyDtoHAsync(host, st.product, BYTES, st.s));
	must(cuEventRecord(e, st.s));
	must(cuStreamSynchronize(st.s));
	for (unsigned i = 0; i < N; i++)
		sum = sum * 31 + host[i];
	must(cuMemFreeHost(host));
	must(cuMemFree(st.product));
	must(cuMemFree(st.input));
	must(cuMemFree(st.state));
	must(cuModuleUnload(module));
	must(cuEventDestroy(e));
	must(cuStreamDestroy(st.s));
	return sum;
}

int main(int argc, char **argv)
{
	unsigned steps = 1, pause = 0, sum = 0;
	size_t free_bytes, total;

	for (int i = 1; i < argc; i++)
		if (sscanf(argv[i], "--steps=%u", &steps) != 1 &&
		    sscanf(argv[i], "--pause=%u", &pause) != 1) {
			fprintf(stderr, "usage: steps [--steps=N] [--pause=MICROSECONDS]\n");
			return 2;
		}
	ctx = drv_context();
	for (unsigned n = 1; n <= steps; n++) {
		sum = sum * 31 + one_step(n);
		fprintf(stderr, "step %u\n", n);
		usleep(pause);
	}
	must(cuMemGetInfo(&free_bytes, &total));
	printf("sum=%u\nused=%zu\n", sum, total - free_bytes);
	return 0;
}
