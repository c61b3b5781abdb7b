/* SPDX-License-Identifier: MIT */
/*
 * A plugin of plugin_host.c, in three kinds: by default it looks the driver up, LINKED imports the driver's functions,
 * INNOCENT uses dlsym for something else.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

#define API __attribute__((visibility("default"))) int

#if defined(LINKED)
int cuInit(unsigned), cuMemAlloc_v2(unsigned long long *, size_t),
	cuCtxCreate_v2(void **, unsigned, int);

API work(void)
{
	unsigned long long p;
	void *ctx;

	return cuInit(0) || cuCtxCreate_v2(&ctx, 0, 0) || cuMemAlloc_v2(&p, 64);
}
#elif defined(INNOCENT)
API work(void)
{
	return dlsym(RTLD_DEFAULT, "strlen") == NULL;
}
#else
API work(void)
{
	void *cu = dlopen("libcuda.so.1", RTLD_NOW);
	int (*init)(unsigned) = cu ? dlsym(cu, "cuInit") : NULL;
	int (*create)(void **, unsigned, int) = cu ? dlsym(cu, "cuCtxCreate_v2") : NULL;
	int (*alloc)(unsigned long long *, size_t) = cu ? dlsym(cu, "cuMemAlloc_v2") : NULL;
	unsigned long long p;
	void *ctx;

	return !init || !alloc || init(0) || create(&ctx, 0, 0) || alloc(&p, 64);
}
#endif
