/* SPDX-License-Identifier: MIT */
/*
 * A libcuda.so.1 whose functions do nothing but answer: what is left of a call's time is the tool's.
 * Built by tests/bench/call.sh and tests/t/shim_hot.t. Allocation is for one thread.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define API   __attribute__((visibility("default"))) int
#define SLOTS (1u << 18)
#ifndef UNIT
#define UNIT (1ull << 12) /* from one allocation to the next */
#endif

typedef unsigned long long dptr;

static void *current;
static unsigned ring[SLOTS], head, tail;
/* words8, words64, rs_digest, any other. */
static char functions[4], modules[16];
static unsigned nmodules, nstreams;

API cuInit(unsigned f)
{
	for (unsigned i = 0; i < SLOTS; i++)
		ring[i] = i;
	head = 0;
	tail = SLOTS - 1;
	return 0;
}
API cuDriverGetVersion(int *v)
{
	*v = 13000;
	return 0;
}
API cuDeviceGet(int *d, int i)
{
	*d = 0;
	return 0;
}
API cuDeviceGetName(char *s, int n, int d)
{
	strncpy(s, "nothing", n);
	return 0;
}
API cuCtxCreate_v2(void **c, unsigned f, int d)
{
	*c = current = &current;
	return 0;
}
API cuCtxCreate_v4(void **c, void *params, unsigned f, int d)
{
	*c = current = &current;
	return 0;
}
API cuMemcpyHtoD_v2(dptr d, const void *s, size_t n)
{
	return 0;
}
API cuMemsetD8_v2(dptr d, unsigned char v, size_t n)
{
	return 0;
}
API cuCtxGetCurrent(void **c)
{
	*c = current;
	return 0;
}
API cuMemAlloc_v2(dptr *p, size_t n)
{
	*p = (1ull << 40) + ring[head] * UNIT;
	head = (head + 1) % SLOTS;
	return 0;
}
API cuMemFree_v2(dptr p)
{
	tail = (tail + 1) % SLOTS;
	ring[tail] = (unsigned)((p - (1ull << 40)) / UNIT);
	return 0;
}
API cuMemcpyDtoDAsync_v2(dptr d, dptr s, size_t n, void *q)
{
	return 0;
}
API cuMemsetD8Async(dptr d, unsigned char v, size_t n, void *q)
{
	return 0;
}
API cuMemHostAlloc(void **p, size_t n, unsigned f)
{
	*p = calloc(1, n);
	return *p ? 0 : 2;
}
API cuMemFreeHost(void *p)
{
	free(p);
	return 0;
}
API cuStreamCreate(void **q, unsigned f)
{
	*q = (void *)(0x10000ull + 64 * __atomic_fetch_add(&nstreams, 1, __ATOMIC_RELAXED));
	return 0;
}
API cuEventCreate(void **e, unsigned f)
{
	*e = &current;
	return 0;
}
API cuEventRecord(void *e, void *q)
{
	return 0;
}
API cuStreamWaitEvent(void *q, void *e, unsigned f)
{
	return 0;
}
API cuEventQuery(void *e)
{
	return 0;
}
API cuEventSynchronize(void *e)
{
	return 0;
}
API cuCtxSynchronize(void)
{
	return 0;
}
API cuStreamGetPriority(void *q, int *p)
{
	*p = 0;
	return 0;
}
API cuStreamSynchronize(void *q)
{
	return 0;
}
API cuModuleLoadData(void **m, const void *image)
{
	*m = &modules[nmodules++ % 16];
	return 0;
}
API cuModuleGetFunction(void **f, void *m, const char *name)
{
	*f = !strcmp(name, "words8")	  ? &functions[0]
	     : !strcmp(name, "words64")	  ? &functions[1]
	     : !strcmp(name, "rs_digest") ? &functions[2]
					  : &functions[3];
	return 0;
}
API cuFuncGetParamInfo(void *f, size_t i, size_t *offset, size_t *size)
{
	if (i >= (f == &functions[1] ? 64 : f == &functions[2] ? 3 : 8))
		return 1;
	*offset = 8 * i;
	*size = 8;
	return 0;
}
API cuLaunchKernel(void *f, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned g,
		   unsigned s, void *q, void **p, void **x)
{
	return 0;
}
/* Mapped memory: any handle, addresses one after the other. */
API cuDeviceGetCount(int *n)
{
	*n = 1;
	return 0;
}
API cuCtxGetDevice(int *d)
{
	*d = 0;
	return 0;
}
API cuMemGetAllocationGranularity(size_t *n, const void *prop, int how)
{
	*n = 1u << 21;
	return 0;
}
API cuMemCreate(unsigned long long *h, size_t n, const void *prop, unsigned long long flags)
{
	static unsigned long long last;

	*h = ++last;
	return 0;
}
API cuMemRelease(unsigned long long h)
{
	return 0;
}
API cuMemAddressReserve(dptr *p, size_t n, size_t alignment, dptr at, unsigned long long flags)
{
	static dptr next = 1ull << 46;

	*p = next;
	next += n;
	return 0;
}
API cuMemAddressFree(dptr p, size_t n)
{
	return 0;
}
API cuMemMap(dptr p, size_t n, size_t off, unsigned long long h, unsigned long long flags)
{
	return 0;
}
API cuMemUnmap(dptr p, size_t n)
{
	return 0;
}
API cuMemSetAccess(dptr p, size_t n, const void *desc, size_t count)
{
	return 0;
}
API cuMemGetAccess(unsigned long long *flags, const void *where, dptr p)
{
	*flags = 3; /* read and write */
	return 0;
}
API cuMemRetainAllocationHandle(unsigned long long *h, void *p)
{
	*h = 1;
	return 0;
}
API cuMemGetAllocationPropertiesFromHandle(void *prop, unsigned long long h)
{
	memset(prop, 0, 32);
	((int *)prop)[0] = 1; /* pinned */
	((int *)prop)[2] = 1; /* on a device */
	return 0;
}
