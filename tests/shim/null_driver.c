/* SPDX-License-Identifier: MIT */
/*
 * A libcuda.so.1 whose functions do nothing but answer: what is left of a call's time is the tool's.
 * Built by tests/bench/call.sh.
 */
#include <stddef.h>
#include <string.h>

#define API   __attribute__((visibility("default"))) int
#define SLOTS (1u << 18)
#define UNIT  (1ull << 12)

typedef unsigned long long dptr;

static void *current;
static unsigned ring[SLOTS], head, tail;
static char functions[3], modules[16];
static unsigned nmodules;

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
	*f = !strcmp(name, "words8")	? &functions[0]
	     : !strcmp(name, "words64") ? &functions[1]
					: &functions[2];
	return 0;
}
API cuFuncGetParamInfo(void *f, size_t i, size_t *offset, size_t *size)
{
	if (i >= (f == &functions[1] ? 64 : 8))
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
