/* SPDX-License-Identifier: MIT */
/*
 * Allocation: limits, patterns, reuse of addresses, pointer attributes, host memory, pools.
 */
#include "tests/clients/drv.h"

static void limits(void)
{
	size_t free0, free1, total;
	CUdeviceptr p, q;

	must(cuMemGetInfo(&free0, &total));
	is_cu(cuMemAlloc(&p, 0), CUDA_ERROR_INVALID_VALUE, "nothing to allocate");
	is_cu(cuMemAlloc(NULL, 16), CUDA_ERROR_INVALID_VALUE, "nowhere to put it");
	is_cu(cuMemAlloc(&p, total + 1), CUDA_ERROR_OUT_OF_MEMORY, "more than there is");
	is_cu(cuMemAlloc(&p, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY, "all of it and more");
	is_cu(cuMemAlloc(&p, 48 << 20), CUDA_SUCCESS, "48 of 64 MiB");
	must(cuMemGetInfo(&free1, &total));
	is_u64(free0 - free1, 48 << 20, "cuMemGetInfo sees it");
	is_cu(cuMemAlloc(&q, 32 << 20), CUDA_ERROR_OUT_OF_MEMORY, "32 more do not fit");
	is_u64(simcuda_live_bytes(0), 48 << 20, "a failed allocation takes nothing");
	must(cuMemFree(p));
	is_cu(cuMemFree(0), CUDA_SUCCESS, "freeing 0 is nothing");
	is_cu(cuMemFree(p + 4), CUDA_ERROR_INVALID_VALUE, "not a base address");
	is_u64(simcuda_live_bytes(0), 0, "all back");
	is_u64(simcuda_peak_bytes(0), 48 << 20, "the peak stays");
}

static void contents(void)
{
	unsigned first[64], again[64], same = 1;
	CUdeviceptr p, q;

	must(cuMemAlloc(&p, sizeof(first)));
	must(cuMemcpyDtoH(first, p, sizeof(first)));
	for (unsigned i = 1; i < 64; i++)
		same &= first[i] == first[0];
	ok(same && first[0], "fresh memory holds a pattern that is not zero");
	must(cuMemsetD8(p, 0, sizeof(first)));
	must(cuMemFree(p));
	must(cuMemAlloc(&q, sizeof(first)));
	ok(p == q, "a freed address is used again");
	must(cuMemcpyDtoH(again, q, sizeof(again)));
	ok(!memcmp(first, again, sizeof(first)), "with the pattern, not the old bytes");
	must(cuMemFree(q));
}

static void many(void)
{
	enum { N = 20000 };
	static CUdeviceptr p[N];
	unsigned bad = 0;

	for (unsigned i = 0; i < N; i++)
		must(cuMemAlloc(&p[i], 1 + i * 7 % 3000));
	for (unsigned i = 0; i < N; i++) {
		CUdeviceptr base;
		size_t size;

		bad += cuMemGetAddressRange(&base, &size, p[i] + i * 7 % 3000) || base != p[i] ||
		       size != 1 + i * 7 % 3000;
		bad += cuMemGetAddressRange(&base, &size, p[i] + 1 + i * 7 % 3000) !=
		       CUDA_ERROR_NOT_FOUND;
	}
	is_u64(bad, 0, "20,000 allocations are told apart, each to its last byte");
	for (unsigned i = 0; i < N; i += 2)
		must(cuMemFree(p[i]));
	for (unsigned i = 1; i < N; i += 2)
		must(cuMemFree(p[i]));
	is_u64(simcuda_live_bytes(0), 0, "and freed");
}

static void attributes(CUcontext ctx)
{
	CUpointer_attribute attrs[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
				       CU_POINTER_ATTRIBUTE_RANGE_SIZE,
				       CU_POINTER_ATTRIBUTE_IS_MANAGED};
	unsigned type = 0, managed = 9;
	uint64_t size = 0, id1 = 0, id2 = 0;
	void *data[] = {&type, &size, &managed};
	CUcontext owner = NULL;
	CUdeviceptr p, m;
	int host = 0;

	must(cuMemAlloc(&p, 1000));
	must(cuMemAllocManaged(&m, 1000, CU_MEM_ATTACH_GLOBAL));
	is_cu(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, p + 999), CUDA_SUCCESS,
	      "attribute of an inner address");
	ok(owner == ctx, "its context");
	is_cu(cuPointerGetAttributes(3, attrs, data, p), CUDA_SUCCESS, "several attributes");
	ok(type == CU_MEMORYTYPE_DEVICE && size == 1000 && !(managed & 0xff), "and their values");
	must(cuPointerGetAttributes(3, attrs, data, m));
	ok(managed & 0xff, "managed memory is known as such");
	is_cu(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)&host),
	      CUDA_ERROR_INVALID_VALUE, "the stack is not ours");
	is_cu(cuPointerGetAttributes(3, attrs, data, (CUdeviceptr)&host), CUDA_SUCCESS,
	      "but the plural form does not mind");
	is_u64(type, 0, "and says nothing");
	must(cuPointerGetAttribute(&id1, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
	must(cuMemFree(p));
	must(cuMemAlloc(&p, 1000));
	must(cuPointerGetAttribute(&id2, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
	ok(id2 > id1, "a new allocation at an old address has a new identity");
	must(cuMemFree(p));
	must(cuMemFree(m));
}

static void host_memory(void)
{
	static char buf[8192];
	unsigned flags = 0;
	CUdeviceptr d;
	void *h;

	is_cu(cuMemHostAlloc(&h, 4096, CU_MEMHOSTALLOC_PORTABLE), CUDA_SUCCESS, "pinned memory");
	is_cu(cuMemHostGetDevicePointer(&d, h, 0), CUDA_SUCCESS, "its device address");
	ok(d == (CUdeviceptr)h, "is the same");
	must(cuMemHostGetFlags(&flags, h));
	ok(flags & CU_MEMHOSTALLOC_PORTABLE, "its flags");
	must(cuMemsetD8(d, 3, 4096));
	is_u64(((char *)h)[4095], 3, "a fill of pinned memory is complete at return");
	is_cu(cuMemFree((CUdeviceptr)h), CUDA_ERROR_INVALID_VALUE, "not freed as device memory");
	is_cu(cuMemFreeHost(h), CUDA_SUCCESS, "freed");
	is_cu(cuMemFreeHost(h), CUDA_ERROR_INVALID_VALUE, "but once");

	is_cu(cuMemHostGetDevicePointer(&d, buf, 0), CUDA_ERROR_INVALID_VALUE,
	      "not registered yet");
	is_cu(cuMemHostRegister(buf, sizeof(buf), 0), CUDA_SUCCESS, "register");
	is_cu(cuMemHostRegister(buf + 100, 10, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
	      "a part again");
	is_cu(cuMemHostGetDevicePointer(&d, buf + 100, 0), CUDA_SUCCESS, "now it has an address");
	is_cu(cuMemHostUnregister(buf), CUDA_SUCCESS, "unregister");
	is_cu(cuMemHostUnregister(buf), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "but once");
}

static void pool_order(void)
{
	CUdeviceptr p, q, r;
	unsigned *pinned;
	CUstream s, t;

	must(cuMemHostAlloc((void **)&pinned, 4096, 0));
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	simcuda_set_schedule("lazy");
	must(cuMemAllocAsync(&p, 4096, s));
	must(cuMemsetD32Async(p, 11, 1024, s));
	must(cuMemcpyDtoHAsync(pinned, p, 4, s));
	must(cuMemFreeAsync(p, s));
	is_cu(cuMemFreeAsync(p, s), CUDA_ERROR_INVALID_VALUE, "freed once, though nothing has run");
	must(cuMemAllocAsync(&r, 4096, t));
	ok(r != p, "another stream may not have the block yet");
	must(cuMemAllocAsync(&q, 4096, s));
	ok(p == q, "the same stream may have it at once");
	must(cuMemsetD32Async(q, 12, 1024, s));
	must(cuMemcpyDtoHAsync(pinned + 1, q, 4, s));
	must(cuMemFreeAsync(q, s));
	must(cuMemFreeAsync(r, t));
	must(cuCtxSynchronize());
	ok(pinned[0] == 11 && pinned[1] == 12, "each owner saw its own bytes");
	simcuda_set_schedule("eager");
	must(cuMemFreeHost(pinned));
	must(cuStreamDestroy(s));
	must(cuStreamDestroy(t));
}

static void pools(void)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
	cuuint64_t v = 1 << 20, used = 0, reserved = 0;
	CUmemoryPool pool, dflt;
	CUdeviceptr p;

	must(cuDeviceGetDefaultMemPool(&dflt, 0));
	is_cu(cuMemPoolCreate(&pool, &props), CUDA_SUCCESS, "a pool");
	ok(pool != dflt, "is not the default one");
	must(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &v));
	must(cuMemAllocFromPoolAsync(&p, 100000, pool, NULL));
	must(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	ok(used >= 100000, "used");
	must(cuMemFree(p));
	must(cuCtxSynchronize());
	must(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	must(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved));
	ok(!used && reserved >= 100000, "a threshold keeps the block reserved");
	must(cuMemPoolTrimTo(pool, 0));
	must(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved));
	is_u64(reserved, 0, "trimming gives it back");
	is_cu(cuMemPoolDestroy(dflt), CUDA_ERROR_INVALID_VALUE, "the default pool stays");
	is_cu(cuMemPoolDestroy(pool), CUDA_SUCCESS, "destroy");
	is_u64(simcuda_live_bytes(0), 0, "nothing is left");
}

int main(void)
{
	CUcontext ctx;

	setenv("SIMCUDA_MEMORY", "64M", 1);
	ctx = drv_context();
	limits();
	contents();
	many();
	attributes(ctx);
	host_memory();
	pool_order();
	pools();
	must(cuCtxDestroy(ctx));
	return tap_done();
}
