/* SPDX-License-Identifier: MIT */
/*
 * Nanoseconds per call for a few calls (-new: with other addresses each time; sub-: by an allocator of the program's own), as
 * `name nanoseconds` lines: the best of several loops. Built and run by tests/bench/call.sh. With tests/shim/count_calls.c
 * preloaded (tests/t/shim_hot.t) it counts instead: `name function times` lines, for what is called during COUNTED calls
 * that have been warmed up. Arguments:
 *
 *	LIVE idle	 LIVE live allocations, nothing else
 *	LIVE pending	 and a forward pending whose memory the calls do not touch; no window is open
 *	LIVE window	 inside of an open forward window
 *	LIVE idle|pending THREADS
 *			 launches by THREADS threads at once, each on its own stream: `threads-N launches` a second, in all
 */
#define _GNU_SOURCE
#include "shim/include/replayshim.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef unsigned long long dptr;

#define LOOPS	     9
#define N	     10000
#define WINDOW_N     200 /* a forward logs its calls: few, or it is the log's growth that is measured */
#define THREAD_CALLS 30000 /* shorter than a time slice */
#define WARM_UP	     100
#define COUNTED	     1000
#define MAX_THREADS  64

static int window;
static long step;

extern int count_on __attribute__((weak));
extern unsigned long count[] __attribute__((weak));
extern const char *const count_name[] __attribute__((weak));

static double clock_of(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static double now(void)
{
	return clock_of(CLOCK_MONOTONIC);
}

/* The thread's own time: on a machine with other work a loop may be interrupted for longer than it takes. */
static double busy(void)
{
	return clock_of(CLOCK_THREAD_CPUTIME_ID);
}

static void loop_begin(void)
{
	if (!window)
		return;
	replayshim_step(++step); /* retires what is pending */
	replayshim_forward_begin("measured", REPLAYSHIM_NEXT);
}

static void loop_end(void)
{
	if (window)
		replayshim_forward_end();
}

static void count_begin(void)
{
	for (int i = 0; count_name[i]; i++)
		count[i] = 0;
	count_on = 1;
}

static void count_end(const char *name)
{
	count_on = 0;
	for (int i = 0; count_name[i]; i++)
		if (count[i])
			printf("%s %s %lu\n", name, count_name[i], count[i]);
	printf("%s calls %d\n", name, COUNTED);
}

#define MEASURE(name, calls)                                                                       \
	do {                                                                                       \
		int n = window ? WINDOW_N : N, loops = LOOPS;                                      \
		double best = 1e18;                                                                \
		if (&count_on)                                                                     \
			n = WARM_UP, loops = 2;                                                    \
		for (int loop = 0; loop < loops; loop++) {                                         \
			loop_begin();                                                              \
			double start = busy(), ns;                                                 \
			if (&count_on && loop)                                                     \
				n = COUNTED, count_begin();                                        \
			for (int i = 0; i < n; i++) {                                              \
				calls;                                                             \
			}                                                                          \
			if (&count_on && loop)                                                     \
				count_end(name);                                                   \
			ns = (busy() - start) / n;                                                 \
			loop_end();                                                                \
			best = ns < best ? ns : best;                                              \
		}                                                                                  \
		if (!&count_on)                                                                    \
			printf("%s %.2f\n", name, best);                                           \
	} while (0)

static const char ptx[] =
	".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry ptx8(\n"
	".param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d,\n"
	".param .u64 e, .param .u64 f, .param .u64 g, .param .u64 h)\n"
	"{ .reg .b32 %r<6>; .reg .f32 %f<9>; .reg .b64 %rd<20>;\n"
	"mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
	"mad.lo.s32 %r5, %r2, %r3, %r4; mul.wide.u32 %rd1, %r5, 4;\n"
#define LOAD(x, n)                                                                                 \
	"ld.param.u64 %rd2, [" x "]; cvta.to.global.u64 %rd2, %rd2; add.s64 %rd3, %rd2, %rd1;\n"   \
	"ld.global.f32 %f" n ", [%rd3]; add.f32 %f8, %f8, %f" n ";\n"
	"mov.f32 %f8, 0f00000000;\n" LOAD("a", "1") LOAD("b", "2") LOAD("c", "3") LOAD(
		"d", "4") LOAD("e", "5") LOAD("f", "6")
		LOAD("g",
		     "7") "ld.param.u64 %rd2, [h]; cvta.to.global.u64 %rd2, %rd2; add.s64 %rd3, %rd2, %rd1;\n"
			  "st.global.f32 [%rd3], %f8; ret; }\n";

#define FUNCTIONS(X)                                                                               \
	X(cuInit, unsigned)                                                                        \
	X(cuCtxCreate_v2, void **, unsigned, int)                                                  \
	X(cuMemAlloc_v2, dptr *, size_t)                                                           \
	X(cuMemFree_v2, dptr)                                                                      \
	X(cuMemcpyDtoDAsync_v2, dptr, dptr, size_t, void *)                                        \
	X(cuMemsetD8Async, dptr, unsigned char, size_t, void *)                                    \
	X(cuStreamCreate, void **, unsigned)                                                       \
	X(cuStreamGetPriority, void *, int *)                                                      \
	X(cuModuleLoadData, void **, const void *)                                                 \
	X(cuModuleGetFunction, void **, void *, const char *)                                      \
	X(cuLaunchKernel, void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,      \
	  unsigned, void *, void **, void **)
#define X(name, ...) static int (*name)(__VA_ARGS__);
FUNCTIONS(X)
#undef X

static void *f8, *f64, *fp, *params[64], *sliding[64];
static dptr word[64];

/* Addresses in an order that does not come back within a run: each call takes the next ones. */
#define NEW (LOOPS * N + 64)
static dptr *fresh;
static long at;

static void slide(int n)
{
	for (int i = 0; i < n; i++)
		sliding[i] = &fresh[at + i];
	at = (at + 1) % (NEW - 64);
}

/* A forward whose state and product nobody else touches. */
static void make_pending(void)
{
	dptr state, product;

	cuMemAlloc_v2(&state, 1024);
	cuMemAlloc_v2(&product, 1024);
	replayshim_step(++step);
	replayshim_forward_begin("pending", REPLAYSHIM_NEXT);
	cuMemcpyDtoDAsync_v2(product, state, 1024, NULL);
	replayshim_forward_end();
}

static void measure(dptr *p)
{
	int priority;
	dptr t;

	MEASURE("passed-through", cuStreamGetPriority(NULL, &priority));
	MEASURE("copy", cuMemcpyDtoDAsync_v2(p[1], p[0], 1024, NULL));
	MEASURE("fill", cuMemsetD8Async(p[1], 0, 1024, NULL));
	MEASURE("launch-8", cuLaunchKernel(f8, 1, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
	MEASURE("launch-64", cuLaunchKernel(f64, 1, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
	MEASURE("launch-8-ptx", cuLaunchKernel(fp, 1, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
	/* far apart: what one call reads is not what a later one writes */
	MEASURE("copy-new", slide(2);
		cuMemcpyDtoDAsync_v2(fresh[at], fresh[(at + NEW / 2 + 500) % NEW], 1, NULL));
	MEASURE("launch-8-new", slide(8);
		cuLaunchKernel(f8, 1, 1, 1, 128, 1, 1, 0, NULL, sliding, NULL));
	MEASURE("launch-64-new", slide(64);
		cuLaunchKernel(f64, 1, 1, 1, 128, 1, 1, 0, NULL, sliding, NULL));
	MEASURE("launch-8-ptx-new", slide(8);
		cuLaunchKernel(fp, 1, 1, 1, 128, 1, 1, 0, NULL, sliding, NULL));
	MEASURE("alloc-free", cuMemAlloc_v2(&t, 1024); cuMemFree_v2(t));
	MEASURE("sub-alloc-free", t = fresh[at++ % NEW] & ~511ull; replayshim_suballoc(t, 512);
		replayshim_subfree(t));
}

static pthread_barrier_t barrier;
static struct {
	pthread_t thread;
	void *stream;
	double from, to;
} worker[MAX_THREADS];

static void *launches(void *arg)
{
	int me = (int)(long)arg;
	void *stream = worker[me].stream;

	cuLaunchKernel(f8, 1, 1, 1, 128, 1, 1, 0, stream, params, NULL);
	pthread_barrier_wait(&barrier);
	worker[me].from = now();
	for (int i = 0; i < THREAD_CALLS; i++)
		cuLaunchKernel(f8, 1, 1, 1, 128, 1, 1, 0, stream, params, NULL);
	worker[me].to = now();
	return NULL;
}

/* From the first thread's start to the last one's end. */
static void scaling(int threads)
{
	double from = 1e18, to = 0;

	pthread_barrier_init(&barrier, NULL, threads);
	for (long i = 0; i < threads; i++) {
		cuStreamCreate(&worker[i].stream, 1);
		pthread_create(&worker[i].thread, NULL, launches, (void *)i);
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(worker[i].thread, NULL);
		from = worker[i].from < from ? worker[i].from : from;
		to = worker[i].to > to ? worker[i].to : to;
	}
	printf("threads-%d %.0f\n", threads, 1e9 * threads * THREAD_CALLS / (to - from));
}

int main(int argc, char **argv)
{
	void *cu = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *ctx, *module;
	int threads = argc > 3 ? atoi(argv[3]) : 0;
	long live = argc > 1 ? atol(argv[1]) : 0;
	dptr *p = calloc(live + 1, sizeof(*p));

	if (!cu || !p || live < 1 || argc < 3 || threads < 0 || threads > MAX_THREADS)
		return 1;
#define X(name, ...) name = (__typeof__(name))dlsym(cu, #name);
	FUNCTIONS(X)
#undef X
	cuInit(0);
	cuCtxCreate_v2(&ctx, 0, 0);
	for (long i = 0; i < live; i++)
		cuMemAlloc_v2(&p[i], 1024);
	cuModuleLoadData(&module, "an image that nobody can read, so that arguments are scanned");
	cuModuleGetFunction(&f8, module, "words8");
	cuModuleGetFunction(&f64, module, "words64");
	cuModuleLoadData(&module, ptx);
	cuModuleGetFunction(&fp, module, "ptx8");
	for (int i = 0; i < 64; i++) {
		word[i] = p[i * 7919L % live];
		params[i] = &word[i];
	}
	fresh = malloc(NEW * sizeof(*fresh));
	for (long i = 0; fresh && i < NEW; i++)
		fresh[i] = p[i * 7919L % live] + i / live % 1024;
	window = !strcmp(argv[2], "window");
	if (!strcmp(argv[2], "pending"))
		make_pending();
	if (threads)
		scaling(threads);
	else
		measure(p);
	return 0;
}
