/* SPDX-License-Identifier: MIT */
/*
 * A Driver-API program that finds its functions in one of the ways that programs do. What it prints (results, bytes,
 * errno) must be the same with and without the tool.
 *
 * Built by tests/t/shim_doors.t without any CUDA header: -DVIA_LINK -lcuda, -DVIA_DLSYM, -DVIA_PROC (cuGetProcAddress with
 * versions), -DVIA_PROC -DPER_THREAD (flag 2). With an argument it prints the addresses that it was given instead.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long dptr;
typedef int (*fn)();

static const char ptx[] =
	".version 7.0\n.target sm_50\n.address_size 64\n"
	".visible .entry add1(.param .u64 p, .param .u32 n)\n"
	"{ .reg .pred %q; .reg .b32 %r<6>; .reg .b64 %rd<5>;\n"
	"ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n];\n"
	"mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
	"mad.lo.s32 %r5, %r2, %r3, %r4; setp.ge.u32 %q, %r5, %r1; @%q bra done;\n"
	"cvta.to.global.u64 %rd2, %rd1; mul.wide.u32 %rd3, %r5, 4; add.s64 %rd4, %rd2, %rd3;\n"
	"ld.global.u32 %r2, [%rd4]; add.s32 %r2, %r2, 1; st.global.u32 [%rd4], %r2;\n"
	"done: ret; }\n";

#define NAMES(X)                                                                                   \
	X(cuInit, 2000)                                                                            \
	X(cuDeviceGet, 2000)                                                                       \
	X(cuCtxCreate_v2, 3020)                                                                    \
	X(cuCtxDestroy_v2, 4000)                                                                   \
	X(cuCtxSynchronize, 2000)                                                                  \
	X(cuMemAlloc_v2, 3020)                                                                     \
	X(cuMemFree_v2, 3020)                                                                      \
	X(cuMemGetInfo_v2, 3020)                                                                   \
	X(cuMemsetD32_v2, 3020)                                                                    \
	X(cuMemsetD8Async, 3020)                                                                   \
	X(cuMemcpyHtoD_v2, 3020)                                                                   \
	X(cuMemcpyDtoH_v2, 3020)                                                                   \
	X(cuMemcpyDtoDAsync_v2, 3020)                                                              \
	X(cuModuleLoadData, 2000)                                                                  \
	X(cuModuleGetFunction, 2000)                                                               \
	X(cuModuleUnload, 2000)                                                                    \
	X(cuLaunchKernel, 4000)                                                                    \
	X(cuStreamCreate, 2000)                                                                    \
	X(cuStreamSynchronize, 2000)                                                               \
	X(cuStreamDestroy_v2, 4000)

#ifdef VIA_LINK
#define X(name, version) extern int name();
NAMES(X)
#undef X
#endif

static struct {
#define X(name, version) fn name;
	NAMES(X)
#undef X
} cu;

static void *driver;

/* "cuMemAlloc_v2" is asked for as "cuMemAlloc" of version 3020. */
static fn look_up(const char *name, int version)
{
	char base[64];
	void *pfn = NULL;
	int flags = 0;
	size_t n;

	if (!driver)
		driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!driver)
		return NULL;
#ifdef VIA_PROC
	int (*get)(const char *, void **, int, unsigned long long, int *) =
		(int (*)(const char *, void **, int, unsigned long long, int *))dlsym(
			driver, "cuGetProcAddress_v2");

	snprintf(base, sizeof(base), "%s", name);
	n = strlen(base);
	if (n > 3 && base[n - 3] == '_' && base[n - 2] == 'v')
		base[n - 3] = 0;
#ifdef PER_THREAD
	flags = 2;
	version = version < 7000 ? 7000 : version;
#endif
	if (get(base, &pfn, version, flags, NULL))
		return NULL;
	return (fn)pfn;
#else
	(void)base, (void)pfn, (void)flags, (void)n, (void)version;
	return (fn)dlsym(driver, name);
#endif
}

static void find(void)
{
#ifdef VIA_LINK
#define X(name, version) cu.name = name;
#else
#define X(name, version) cu.name = look_up(#name, version);
#endif
	NAMES(X)
#undef X
}

static void addresses(void)
{
	Dl_info info;

#define X(name, version)                                                                           \
	printf("%s %s\n", #name, dladdr((void *)cu.name, &info) ? info.dli_fname : "nowhere");
	NAMES(X)
#undef X
}

static void show(const char *what, int result)
{
	printf("%s: %d errno %d\n", what, result, errno);
}

static void launch(dptr p, unsigned n, void *stream, void *module)
{
	void *f = NULL, *params[] = {&p, &n};
	char block[12];
	size_t bytes = sizeof(block);
	void *extra[] = {(void *)1, block, (void *)2, &bytes, NULL};

	show("function", cu.cuModuleGetFunction(&f, module, "add1"));
	show("no function", cu.cuModuleGetFunction(&f, module, "absent"));
	show("launch", cu.cuLaunchKernel(f, 4, 1, 1, 64, 1, 1, 0, stream, params, NULL));
	memcpy(block, &p, 8);
	memcpy(block + 8, &n, 4);
	show("launch extra", cu.cuLaunchKernel(f, 4, 1, 1, 64, 1, 1, 0, stream, NULL, extra));
	show("launch nothing", cu.cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
	show("launch bad grid", cu.cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

static void work(void)
{
	void *ctx = NULL, *stream = NULL, *module = NULL;
	dptr a = 0, b = 0, none = 0;
	unsigned data[256], sum = 0;
	int device;

	errno = 42;
	show("free before init", cu.cuMemFree_v2((dptr)0x1000));
	show("init", cu.cuInit(0));
	show("device", cu.cuDeviceGet(&device, 0));
	show("alloc without context", cu.cuMemAlloc_v2(&none, (size_t)64));
	show("ctx", cu.cuCtxCreate_v2(&ctx, 0, device));
	show("stream", cu.cuStreamCreate(&stream, 1));
	show("alloc", cu.cuMemAlloc_v2(&a, sizeof(data)));
	show("alloc", cu.cuMemAlloc_v2(&b, sizeof(data)));
	show("alloc null", cu.cuMemAlloc_v2(NULL, (size_t)64));
	show("alloc 0", cu.cuMemAlloc_v2(&none, (size_t)0));
	printf("untouched: %llu\n", none);
	show("info null", cu.cuMemGetInfo_v2(NULL, NULL));
	for (unsigned i = 0; i < 256; i++)
		data[i] = i;
	show("fill", cu.cuMemsetD32_v2(b, 7u, (size_t)256));
	show("htod", cu.cuMemcpyHtoD_v2(a, data, sizeof(data)));
	show("module", cu.cuModuleLoadData(&module, ptx));
	show("bad module", cu.cuModuleLoadData(&driver, "not a module at all, just text........"));
	launch(a, 256, stream, module);
	show("dtod", cu.cuMemcpyDtoDAsync_v2(b, a, (size_t)512, stream));
	show("fill async", cu.cuMemsetD8Async(b, 1, (size_t)16, stream));
	show("sync", cu.cuStreamSynchronize(stream));
	show("dtoh", cu.cuMemcpyDtoH_v2(data, b, sizeof(data)));
	for (unsigned i = 0; i < 256; i++)
		sum = sum * 31 + data[i];
	printf("bytes: %u\n", sum);
	show("free unknown", cu.cuMemFree_v2(a + 8));
	show("free 0", cu.cuMemFree_v2((dptr)0));
	show("free", cu.cuMemFree_v2(a));
	show("free twice", cu.cuMemFree_v2(a));
	show("free", cu.cuMemFree_v2(b));
	show("unload", cu.cuModuleUnload(module));
	show("stream destroy", cu.cuStreamDestroy_v2(stream));
	show("ctx sync", cu.cuCtxSynchronize());
	show("ctx destroy", cu.cuCtxDestroy_v2(ctx));
}

int main(int argc, char **argv)
{
	(void)argv;
	find();
	if (argc > 1) {
		addresses();
		return 0;
	}
	work();
	fflush(stdout);
	return 3;
}
