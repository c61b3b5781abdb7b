/* SPDX-License-Identifier: MIT */
/*
 * Nanoseconds per call for a few calls, as `name nanoseconds` lines: the best of several loops.
 * Built and run by tests/bench/call.sh. Argument: number of live allocations.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef unsigned long long dptr;

#define LOOPS 15
#define N     20000

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

#define MEASURE(name, calls)                                                                       \
	do {                                                                                       \
		double best = 1e18;                                                                \
		for (int loop = 0; loop < LOOPS; loop++) {                                         \
			double start = now(), ns;                                                  \
			for (int i = 0; i < N; i++) {                                              \
				calls;                                                             \
			}                                                                          \
			ns = (now() - start) / N;                                                  \
			best = ns < best ? ns : best;                                              \
		}                                                                                  \
		printf("%s %.2f\n", name, best);                                                   \
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

int main(int argc, char **argv)
{
	long live = argc > 1 ? atol(argv[1]) : 1000;
	void *cu = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *ctx, *module, *f8, *f64, *fp;
	dptr *p = calloc(live + 1, sizeof(*p)), t, word[64];
	void *params[64];
	int priority;

	if (!cu)
		return 1;
#define GET(ret, name, ...) ret (*name)(__VA_ARGS__) = (ret(*)(__VA_ARGS__))dlsym(cu, #name)
	GET(int, cuInit, unsigned);
	GET(int, cuCtxCreate_v2, void **, unsigned, int);
	GET(int, cuMemAlloc_v2, dptr *, size_t);
	GET(int, cuMemFree_v2, dptr);
	GET(int, cuMemcpyDtoDAsync_v2, dptr, dptr, size_t, void *);
	GET(int, cuMemsetD8Async, dptr, unsigned char, size_t, void *);
	GET(int, cuStreamGetPriority, void *, int *);
	GET(int, cuModuleLoadData, void **, const void *);
	GET(int, cuModuleGetFunction, void **, void *, const char *);
	GET(int, cuLaunchKernel, void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
	    unsigned, void *, void **, void **);

	cuInit(0);
	cuCtxCreate_v2(&ctx, 0, 0);
	for (long i = 0; i <= live; i++)
		cuMemAlloc_v2(&p[i], 1024);
	cuModuleLoadData(&module, "an image that nobody can read, so that arguments are scanned");
	cuModuleGetFunction(&f8, module, "words8");
	cuModuleGetFunction(&f64, module, "words64");
	cuModuleLoadData(&module, ptx);
	cuModuleGetFunction(&fp, module, "ptx8");
	for (int i = 0; i < 64; i++) {
		word[i] = p[i * 7919L % (live + 1)];
		params[i] = &word[i];
	}
	MEASURE("passed-through", cuStreamGetPriority(NULL, &priority));
	MEASURE("copy", cuMemcpyDtoDAsync_v2(p[1], p[0], 1024, NULL));
	MEASURE("fill", cuMemsetD8Async(p[1], 0, 1024, NULL));
	MEASURE("launch-8", cuLaunchKernel(f8, 1, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
	MEASURE("launch-64", cuLaunchKernel(f64, 1, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
	MEASURE("launch-8-ptx", cuLaunchKernel(fp, 1, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
	MEASURE("alloc-free", cuMemAlloc_v2(&t, 1024); cuMemFree_v2(t));
	return 0;
}
