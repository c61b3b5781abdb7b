/* SPDX-License-Identifier: MIT */
/*
 * Virtual memory management: reservations, handles, mappings, aliases, access, multicast.
 *
 * What breaks a context runs in a child process, which says on stderr what happened.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/clients/drv.h"

#define MB (1ull << 20)
#define G  (2 * MB)

static const CUmemAllocationProp on_device = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
};
static const CUmemAccessDesc rw = {
	.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
	.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
};

/* every_third(p, n, v): p[3 * i] = v */
static const char third_ptx[] =
	".version 7.5\n"
	".target sm_75\n"
	".address_size 64\n"
	".visible .entry every_third(.param .u64 p0, .param .u32 p1, .param .u32 p2)\n"
	"{\n" DRV_REGS "\tld.param.u64 %rd1, [p0];\n"
	"\tld.param.u32 %r1, [p1];\n"
	"\tld.param.u32 %r6, [p2];\n" DRV_INDEX "\tmul.wide.u32 %rd3, %r5, 12;\n"
	"\tadd.s64 %rd4, %rd1, %rd3;\n"
	"\tst.global.u32 [%rd4], %r6;\n"
	"DONE:\n"
	"\tret;\n"
	"}\n";

static uint64_t base; /* live bytes of the module */
static CUfunction f_inc, f_addto, f_store;

static uint64_t live(void)
{
	return simcuda_live_bytes(0) - base;
}

static CUmemGenericAllocationHandle memory(size_t size)
{
	CUmemGenericAllocationHandle h;

	must(cuMemCreate(&h, size, &on_device, 0));
	return h;
}

static CUdeviceptr reserve(size_t size)
{
	CUdeviceptr p;

	must(cuMemAddressReserve(&p, size, 0, 0, 0));
	return p;
}

static void map(CUdeviceptr p, size_t size, CUmemGenericAllocationHandle h)
{
	must(cuMemMap(p, size, 0, h, 0));
	must(cuMemSetAccess(p, size, &rw, 1));
}

static unsigned word(CUdeviceptr p)
{
	unsigned v = 0;

	must(cuMemcpyDtoH(&v, p, 4));
	return v;
}

static CUresult run_inc(CUdeviceptr p, unsigned n, CUstream s)
{
	void *params[] = {&p, &n};

	return drv_launch(f_inc, n, s, params);
}

static void reservations(void)
{
	CUdeviceptr p, q, r;

	is_cu(cuMemAddressReserve(&p, 8 * G, 0, 0, 0), CUDA_SUCCESS, "reserve");
	ok(p % G == 0, "aligned to the granularity");
	is_cu(cuMemAddressReserve(&q, 4 * G, 64 * MB, 0, 0), CUDA_SUCCESS, "aligned more");
	ok(q % (64 * MB) == 0, "as asked");
	is_cu(cuMemAddressReserve(&r, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE, "nothing");
	is_cu(cuMemAddressReserve(&r, 4097, 0, 0, 0), CUDA_ERROR_INVALID_VALUE, "an odd size");
	is_cu(cuMemAddressReserve(&r, G, 3 * G, 0, 0), CUDA_ERROR_INVALID_VALUE,
	      "an alignment that is no power of two");
	is_cu(cuMemAddressReserve(&r, G, 0, 0, 1), CUDA_ERROR_INVALID_VALUE, "unknown flags");
	is_cu(cuMemAddressReserve(NULL, G, 0, 0, 0), CUDA_ERROR_INVALID_VALUE, "nowhere");
	is_cu(cuMemAddressFree(p, 4 * G), CUDA_ERROR_INVALID_VALUE, "freed with another size");
	is_cu(cuMemAddressFree(p + G, 7 * G), CUDA_ERROR_INVALID_VALUE, "not from its start");
	is_cu(cuMemAddressFree(p, 8 * G), CUDA_SUCCESS, "freed");
	is_cu(cuMemAddressFree(p, 8 * G), CUDA_ERROR_INVALID_VALUE, "but once");
	r = reserve(8 * G);
	ok(r == p, "the addresses are used again");
	must(cuMemAddressFree(r, 8 * G));
	must(cuMemAddressReserve(&r, 8 * G, 0, p + 64 * G, 0));
	ok(r == p + 64 * G, "a hint is followed where there is room");
	must(cuMemAddressFree(r, 8 * G));
	must(cuMemAddressFree(q, 4 * G));
}

static void handles(void)
{
	CUmemAllocationProp prop = on_device, got;
	CUmemGenericAllocationHandle h, again;
	size_t g = 0;

	is_cu(cuMemGetAllocationGranularity(&g, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
	      CUDA_SUCCESS, "granularity");
	is_u64(g, G, "2 MiB");
	is_cu(cuMemGetAllocationGranularity(&g, NULL, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
	      CUDA_ERROR_INVALID_VALUE, "of nothing");
	is_cu(cuMemCreate(&h, G + 4096, &prop, 0), CUDA_ERROR_INVALID_VALUE,
	      "a size between granules");
	is_cu(cuMemCreate(&h, G, &prop, 1), CUDA_ERROR_INVALID_VALUE, "unknown flags");
	is_cu(cuMemCreate(&h, 100 * 1024 * MB, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY,
	      "more than there is");
	prop.location.id = 7;
	is_cu(cuMemCreate(&h, G, &prop, 0), CUDA_ERROR_INVALID_DEVICE, "no such device");
	prop = on_device;
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
	is_cu(cuMemCreate(&h, G, &prop, 0), CUDA_ERROR_NOT_SUPPORTED, "no fabric");
	is_u64(live(), 0, "failures take nothing");
	is_cu(cuMemCreate(&h, 3 * G, &on_device, 0), CUDA_SUCCESS, "create");
	is_u64(live(), 3 * G, "counted");
	is_cu(cuMemGetAllocationPropertiesFromHandle(&got, h), CUDA_SUCCESS, "properties");
	ok(!memcmp(&got, &on_device, sizeof(got)), "as given");
	is_cu(cuMemRelease(h), CUDA_SUCCESS, "released");
	is_u64(live(), 0, "and given back");
	is_cu(cuMemRelease(h), CUDA_ERROR_INVALID_VALUE, "but once");
	is_cu(cuMemGetAllocationPropertiesFromHandle(&got, h), CUDA_ERROR_INVALID_VALUE,
	      "it is no handle any more");
	is_cu(cuMemRetainAllocationHandle(&again, &h), CUDA_ERROR_INVALID_VALUE,
	      "the stack has no handle");
}

static void mapping_rules(void)
{
	CUmemGenericAllocationHandle h = memory(2 * G), again;
	CUdeviceptr p = reserve(8 * G);

	is_cu(cuMemMap(p, 2 * G, 0, 12345, 0), CUDA_ERROR_INVALID_VALUE, "not a handle");
	is_cu(cuMemMap(p + 4096, G, 0, h, 0), CUDA_ERROR_INVALID_VALUE, "between granules");
	is_cu(cuMemMap(p, G + 4096, 0, h, 0), CUDA_ERROR_INVALID_VALUE, "an odd size");
	is_cu(cuMemMap(p, 3 * G, 0, h, 0), CUDA_ERROR_INVALID_VALUE, "more than the handle has");
	is_cu(cuMemMap(p + 7 * G, 2 * G, 0, h, 0), CUDA_ERROR_INVALID_VALUE,
	      "past the end of the reservation");
	is_cu(cuMemMap(p + 64 * G, G, 0, h, 0), CUDA_ERROR_INVALID_VALUE, "not reserved");
	is_cu(cuMemMap(p, 2 * G, 0, h, 1), CUDA_ERROR_INVALID_VALUE, "unknown flags");
	is_cu(cuMemMap(p + G, 2 * G, 0, h, 0), CUDA_SUCCESS, "map");
	is_cu(cuMemMap(p + 2 * G, G, 0, h, 0), CUDA_ERROR_INVALID_VALUE, "over a mapping");
	is_cu(cuMemSetAccess(p + G, G, &rw, 1), CUDA_ERROR_INVALID_VALUE,
	      "access to a part of a mapping");
	is_cu(cuMemSetAccess(p, 3 * G, &rw, 1), CUDA_ERROR_INVALID_VALUE,
	      "access to what is not all mapped");
	is_cu(cuMemUnmap(p + G, G), CUDA_ERROR_INVALID_VALUE, "unmapping a part");
	is_cu(cuMemUnmap(p, 3 * G), CUDA_ERROR_INVALID_VALUE, "unmapping more");
	is_cu(cuMemAddressFree(p, 8 * G), CUDA_ERROR_INVALID_VALUE,
	      "a reservation with a mapping is not freed");
	is_cu(cuMemFree(p + G), CUDA_ERROR_INVALID_VALUE, "cuMemFree is for something else");
	must(cuMemRelease(h));
	is_u64(live(), 2 * G, "a mapping keeps the memory");
	is_cu(cuMemRelease(h), CUDA_ERROR_INVALID_VALUE, "but not the handle");
	is_cu(cuMemRetainAllocationHandle(&again, (void *)(p + G + 5)), CUDA_SUCCESS,
	      "the mapping gives it back");
	ok(again == h, "with the same value");
	is_cu(cuMemUnmap(p + G, 2 * G), CUDA_SUCCESS, "unmap");
	is_u64(live(), 2 * G, "the retained handle keeps the memory");
	must(cuMemRelease(again));
	is_u64(live(), 0, "all back");
	is_cu(cuMemUnmap(p + G, 2 * G), CUDA_ERROR_INVALID_VALUE, "unmapped once");
	must(cuMemAddressFree(p, 8 * G));
}

static void access_flags(void)
{
	CUmemAccessDesc d = rw;
	CUmemGenericAllocationHandle h = memory(G);
	CUdeviceptr p = reserve(G);
	unsigned long long flags = 9;
	unsigned type = 0;

	must(cuMemMap(p, G, 0, h, 0));
	is_cu(cuMemGetAccess(&flags, &rw.location, p), CUDA_SUCCESS, "access of a fresh mapping");
	is_u64(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE, "none");
	d.location.id = 5;
	is_cu(cuMemSetAccess(p, G, &d, 1), CUDA_ERROR_INVALID_DEVICE, "no such device");
	d = rw;
	d.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
	is_cu(cuMemSetAccess(p, G, &d, 1), CUDA_ERROR_INVALID_VALUE, "not for the host");
	d = rw;
	d.flags = (CUmemAccess_flags)2;
	is_cu(cuMemSetAccess(p, G, &d, 1), CUDA_ERROR_INVALID_VALUE, "write-only is not a way");
	is_cu(cuMemSetAccess(p, G, &rw, 0), CUDA_ERROR_INVALID_VALUE, "for nobody");
	is_cu(cuMemSetAccess(p, G, &rw, 1), CUDA_SUCCESS, "for reading and writing");
	must(cuMemGetAccess(&flags, &rw.location, p + 77));
	is_u64(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, "so it is");
	must(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
	is_u64(type, CU_MEMORYTYPE_DEVICE, "it is device memory");
	must(cuMemsetD32(p, 5, G / 4));
	must(cuMemUnmap(p, G));
	is_cu(cuMemGetAccess(&flags, &rw.location, p), CUDA_ERROR_INVALID_VALUE,
	      "no access to ask for without a mapping");
	is_cu(cuMemcpyDtoH(&type, p, 4), CUDA_ERROR_INVALID_VALUE,
	      "a copy from an unmapped address is refused");
	is_cu(cuMemcpy((CUdeviceptr)&type, p, 4), CUDA_ERROR_INVALID_VALUE,
	      "also if it need not be device memory");
	must(cuMemMap(p, G, 0, h, 0));
	must(cuMemGetAccess(&flags, &rw.location, p));
	is_u64(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE, "a new mapping has no access again");
	must(cuMemSetAccess(p, G, &rw, 1));
	is_u64(word(p + 4096), 5, "but the content");
	must(cuMemUnmap(p, G));
	must(cuMemRelease(h));
	must(cuMemAddressFree(p, G));
}

static void aliases(void)
{
	CUmemGenericAllocationHandle h = memory(2 * G);
	CUdeviceptr p = reserve(4 * G), q = reserve(2 * G), r = p + 2 * G;
	uint64_t id1 = 0, id2 = 1, s1 = 0, s2 = 0;
	unsigned n = 1000, v = 7;
	void *store[] = {&p, &n, &v}, *addto[] = {&q, &p, &n};

	map(p, 2 * G, h);
	map(q, 2 * G, h);
	must(drv_launch(f_store, n, NULL, store));
	must(cuCtxSynchronize());
	is_u64(word(q + 4 * 999), 7, "what a kernel stores at one address is at the other");
	must(run_inc(q, n, NULL));
	is_u64(word(p), 8, "and back");
	must(drv_launch(f_addto, n, NULL, addto));
	is_u64(word(p + 40), 16, "both in one kernel");
	must(cuMemsetD32(q + G, 11, 64));
	is_u64(word(p + G + 4 * 63), 11, "fills");
	must(cuMemcpyHtoD(p + G, &(unsigned){12}, 4));
	is_u64(word(q + G), 12, "copies");
	is_u64(*(unsigned *)q, 16, "the simulated host sees the same bytes");
	must(cuMemMap(r, G, G, h, 0));
	must(cuMemSetAccess(r, G, &rw, 1));
	is_u64(word(r), 12, "a mapping from the middle of the handle");
	must(cuPointerGetAttribute(&id1, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, p));
	must(cuPointerGetAttribute(&id2, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, r + 64));
	ok(id1 == id2, "one block");
	must(cuPointerGetAttribute(&s1, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
	must(cuPointerGetAttribute(&s2, CU_POINTER_ATTRIBUTE_BUFFER_ID, q));
	ok(s1 != s2, "several mappings");
	must(cuMemUnmap(p, 3 * G));
	must(cuMemRelease(h));
	is_u64(word(q + 40), 16, "the last mapping keeps the bytes");
	must(cuMemUnmap(q, 2 * G));
	is_u64(live(), 0, "all back");
	must(cuMemAddressFree(p, 4 * G));
	must(cuMemAddressFree(q, 2 * G));
}

/* One reservation, many small mappings, as an allocator with expandable segments has them. */
static void adjacent(void)
{
	enum { N = 8 };
	CUmemGenericAllocationHandle h[N];
	CUdeviceptr p = reserve(64 * G), other;
	unsigned n = N * G / 4, v = 3, *host = malloc(N * G);
	void *store[] = {&p, &n, &v};
	uint64_t sum = 0;

	for (unsigned i = 0; i < N; i++) {
		h[i] = memory(G);
		must(cuMemMap(p + i * G, G, 0, h[i], 0));
	}
	is_cu(cuMemSetAccess(p, N * G, &rw, 1), CUDA_SUCCESS, "access to several mappings at once");
	must(drv_launch(f_store, n, NULL, store));
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS, "a kernel runs across them");
	must(cuMemcpyDtoH(host, p, N * G));
	for (unsigned i = 0; i < n; i++)
		sum += host[i];
	is_u64(sum, 3ull * n, "a copy, too");
	must(cuMemAlloc(&other, 3 * G));
	must(cuMemsetD8(p + G - 8, 1, G + 16));
	must(cuMemcpyDtoD(other, p + G - 8, G + 16));
	is_u64(word(other) + word(other + G + 12), 2 * 0x01010101u, "fills and copies inside");
	must(cuMemcpyDtoD(p + 2 * G - 64, other, 128));
	is_u64(word(p + 2 * G + 60), 0x01010101u, "and to them");
	is_cu(cuMemsetD8(p + (N - 1) * G, 1, G + 1), CUDA_ERROR_INVALID_VALUE,
	      "but not past the last one");
	/* A hole in the middle, filled again with other memory. */
	must(cuMemUnmap(p + 3 * G, G));
	is_cu(cuMemsetD8(p + 2 * G, 1, 2 * G), CUDA_ERROR_INVALID_VALUE, "nor into a hole");
	must(cuMemRelease(h[3]));
	h[3] = memory(G);
	map(p + 3 * G, G, h[3]);
	ok(word(p + 3 * G) == 0x7fe5e5e5u && word(p + 4 * G) == 3, "fresh memory between old");
	is_cu(run_inc(p, n, NULL), CUDA_SUCCESS, "a kernel over all of it");
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS, "ends well");
	is_cu(cuMemUnmap(p, N * G), CUDA_SUCCESS, "several mappings are unmapped at once");
	for (unsigned i = 0; i < N; i++)
		must(cuMemRelease(h[i]));
	must(cuMemFree(other));
	must(cuMemAddressFree(p, 64 * G));
	is_u64(live(), 0, "nothing is left");
	free(host);
}

/* Unmapping waits for what is queued, in every context. */
static void unmap_waits(void)
{
	CUmemGenericAllocationHandle h = memory(G);
	CUdeviceptr p = reserve(G), q = reserve(G);
	CUstream s;

	map(p, G, h);
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	simcuda_set_schedule("lazy");
	must(cuMemsetD32Async(p, 41, 64, s));
	must(run_inc(p, 64, s));
	must(cuMemUnmap(p, G));
	is_cu(cuStreamQuery(s), CUDA_SUCCESS, "unmapping has waited for the stream");
	map(q, G, h);
	is_u64(word(q + 252), 42, "whose writes are in the memory");
	simcuda_set_schedule("eager");
	must(cuMemUnmap(q, G));
	must(cuMemRelease(h));
	must(cuMemAddressFree(p, G));
	must(cuMemAddressFree(q, G));
	must(cuStreamDestroy(s));
}

static void host_memory(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA}};
	CUmemAccessDesc d[2] = {rw,
				{.location = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA},
				 .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
	CUmemGenericAllocationHandle h;
	CUdeviceptr p = reserve(G);
	unsigned type = 0;

	is_cu(cuMemCreate(&h, G, &prop, 0), CUDA_SUCCESS, "host memory by handle");
	must(cuMemMap(p, G, 0, h, 0));
	is_cu(cuMemSetAccess(p, G, d, 2), CUDA_SUCCESS, "for device and host");
	*(unsigned *)p = 4;
	must(run_inc(p, 1, NULL));
	must(cuCtxSynchronize());
	is_u64(*(unsigned *)p, 5, "both see it");
	must(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
	is_u64(type, CU_MEMORYTYPE_HOST, "it is host memory");
	is_u64(live(), 0, "and takes nothing of the device");
	must(cuMemUnmap(p, G));
	must(cuMemRelease(h));
	must(cuMemAddressFree(p, G));
}

static void multicast(void)
{
	CUmulticastObjectProp prop = {.numDevices = 2, .size = 2 * G};
	CUmemAllocationProp there = on_device;
	CUmemAccessDesc access[2] = {rw, rw};
	CUmemGenericAllocationHandle mc, a, b;
	CUdeviceptr p = reserve(2 * G), pa = reserve(2 * G), pb = reserve(2 * G);
	unsigned n = 100, v = 21;
	void *store[] = {&p, &n, &v};
	CUmodule mod;
	size_t g = 0;

	there.location.id = access[1].location.id = 1;
	is_cu(cuMulticastGetGranularity(&g, &prop, CU_MULTICAST_GRANULARITY_MINIMUM), CUDA_SUCCESS,
	      "multicast granularity");
	is_u64(g, G, "2 MiB");
	is_cu(cuMulticastCreate(&mc, &(CUmulticastObjectProp){.numDevices = 2, .size = 4096}),
	      CUDA_ERROR_INVALID_VALUE, "an odd size");
	is_cu(cuMulticastCreate(&mc, &(CUmulticastObjectProp){.numDevices = 3, .size = G}),
	      CUDA_ERROR_INVALID_DEVICE, "more devices than there are");
	is_cu(cuMulticastCreate(&mc, &prop), CUDA_SUCCESS, "create");
	a = memory(2 * G);
	must(cuMemCreate(&b, 2 * G, &there, 0));
	is_cu(cuMulticastAddDevice(a, 0), CUDA_ERROR_INVALID_VALUE, "memory is no such object");
	is_cu(cuMulticastAddDevice(mc, 2), CUDA_ERROR_INVALID_DEVICE, "no such device");
	is_cu(cuMulticastAddDevice(mc, 0), CUDA_SUCCESS, "the first device");
	is_cu(cuMulticastAddDevice(mc, 0), CUDA_ERROR_INVALID_VALUE, "once");
	is_cu(cuMulticastBindMem(mc, 0, a, 0, G, 0), CUDA_ERROR_ILLEGAL_STATE,
	      "binding waits for the team");
	is_cu(cuMulticastAddDevice(mc, 1), CUDA_SUCCESS, "the second device");
	is_cu(cuMulticastBindMem(mc, G, a, 0, 2 * G, 0), CUDA_ERROR_INVALID_VALUE, "too much");
	is_cu(cuMulticastBindMem(mc, 0, a, 0, 2 * G, 0), CUDA_SUCCESS, "bind");
	is_cu(cuMulticastBindMem(mc, G, a, 0, G, 0), CUDA_ERROR_INVALID_VALUE,
	      "a part that this device has bound");
	map(pa, 2 * G, a);
	must(cuMemMap(pb, 2 * G, 0, b, 0));
	must(cuMemSetAccess(pb, 2 * G, access, 2));
	is_cu(cuMulticastBindAddr(mc, 0, pb + G, G, 0), CUDA_SUCCESS, "bind by address");
	must(cuMemMap(p, 2 * G, 0, mc, 0));
	must(cuMemSetAccess(p, 2 * G, access, 2));
	must(cuMemsetD32(pa, 0, G / 2));
	must(cuMemsetD32(pb, 0, G / 2));
	must(drv_launch(f_store, n, NULL, store));
	must(cuCtxSynchronize());
	ok(word(pa) == 21 && word(pa + 396) == 21 && word(pa + 400) == 0,
	   "a kernel's stores reach the first memory");
	ok(word(pb + G) == 21 && word(pb + G + 396) == 21 && word(pb + G + 400) == 0 && !word(pb),
	   "and the second");
	must(cuMemsetD32(p + 1000, 5, 2));
	must(cuMemcpyHtoD(p + 2000, &v, 4));
	must(cuMemcpyHtoD(p + G, &v, 4));
	ok(word(pa + 1004) == 5 && word(pb + G + 1004) == 5 && !word(pa + 1008), "so do fills");
	ok(word(pa + 2000) == 21 && word(pb + G + 2000) == 21, "and copies");
	ok(word(pa + G) == 21 && word(pb) == 0, "each as far as it is bound");
	v = 33;
	must(cuMemsetD32(pa, 0, 400));
	must(cuModuleLoadData(&mod, third_ptx));
	must(drv_launch(drv_function(mod, "every_third"), n, NULL, store));
	ok(word(pa) == 33 && word(pa + 4) == 0 && word(pa + 297 * 4) == 33 && word(pa + 1192) == 0,
	   "what a kernel leaves out is left alone");
	must(cuMemsetD32(pa, 21, 1));
	must(cuModuleUnload(mod));
	is_cu(cuMulticastUnbind(mc, 0, 0, G), CUDA_ERROR_INVALID_VALUE,
	      "unbinding what was not bound so");
	is_cu(cuMulticastUnbind(mc, 0, 0, 2 * G), CUDA_SUCCESS, "unbind");
	must(cuMemsetD32(p, 6, 1));
	ok(word(pa) == 21 && word(pb + G) == 6, "only what is bound gets it");
	must(cuMemUnmap(p, 2 * G));
	must(cuMemUnmap(pa, 2 * G));
	must(cuMemUnmap(pb, 2 * G));
	must(cuMemRelease(mc));
	must(cuMemRelease(a));
	must(cuMemRelease(b));
	ok(!live() && !simcuda_live_bytes(1), "nothing is left");
	must(cuMemAddressFree(p, 2 * G));
	must(cuMemAddressFree(pa, 2 * G));
	must(cuMemAddressFree(pb, 2 * G));
}

/* ---- what breaks the context ---- */

static void load(void)
{
	CUmodule mod;

	drv_context();
	must(cuModuleLoadData(&mod, drv_ptx));
	f_inc = drv_function(mod, "inc");
	f_addto = drv_function(mod, "addto");
	f_store = drv_function(mod, "store");
}

static CUresult no_access(void)
{
	CUdeviceptr p = reserve(G);

	must(cuMemMap(p, G, 0, memory(G), 0));
	must(run_inc(p, 1, NULL));
	return cuCtxSynchronize();
}

static CUresult no_access_fill(void)
{
	CUdeviceptr p = reserve(G);

	must(cuMemMap(p, G, 0, memory(G), 0));
	must(cuMemsetD8Async(p, 0, 16, NULL));
	return cuCtxSynchronize();
}

static CUresult read_only(void)
{
	CUmemAccessDesc d = rw;
	CUdeviceptr p = reserve(G), q;
	unsigned n = 4;
	void *params[] = {&q, &p, &n};

	must(cuMemAlloc(&q, 64));
	map(p, G, memory(G));
	must(run_inc(p, 4, NULL));
	d.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	must(cuMemSetAccess(p, G, &d, 1));
	must(drv_launch(f_addto, n, NULL, params));
	must(cuCtxSynchronize());
	must(run_inc(p, 4, NULL));
	return cuCtxSynchronize();
}

static CUresult another_device(void)
{
	CUmemAccessDesc d = rw;
	CUdeviceptr p = reserve(G), q;
	unsigned n = 4;
	void *params[] = {&q, &p, &n};

	d.location.id = 1;
	must(cuMemMap(p, G, 0, memory(G), 0));
	must(cuMemSetAccess(p, G, &d, 1));
	must(cuMemAlloc(&q, 64));
	must(drv_launch(f_addto, n, NULL, params));
	return cuCtxSynchronize();
}

static CUresult after_unmap(void)
{
	CUmemGenericAllocationHandle h = memory(G);
	CUdeviceptr p = reserve(G);

	map(p, G, h);
	must(run_inc(p, 1, NULL));
	must(cuMemUnmap(p, G));
	must(run_inc(p, 1, NULL));
	return cuCtxSynchronize();
}

static CUresult past_the_end(void)
{
	CUdeviceptr p = reserve(2 * G);

	map(p, G, memory(G));
	must(run_inc(p, G / 4 + 1, NULL));
	return cuCtxSynchronize();
}

static CUresult uninitialised(void)
{
	CUdeviceptr p = reserve(G);

	map(p, G, memory(G));
	must(run_inc(p, 1, NULL));
	return cuCtxSynchronize();
}

/* What was written through one address is initialised at the other, and after a remap. */
static CUresult initialised_elsewhere(void)
{
	CUmemGenericAllocationHandle h = memory(G);
	CUdeviceptr p = reserve(2 * G), q = reserve(2 * G);

	map(p, G, h);
	map(p + G, G, memory(G));
	map(q + G, G, h);
	must(cuMemsetD32(p + G - 400, 0, 200));
	must(run_inc(q + 2 * G - 400, 100, NULL));
	must(cuCtxSynchronize());
	must(cuMemUnmap(p, G));
	map(q, G, h);
	must(cuMemUnmap(q + G, G));
	must(run_inc(q + G - 400, 100, NULL));
	must(run_inc(p + G, 100, NULL));
	must(cuCtxSynchronize());
	must(run_inc(q + G - 400, 1, NULL));
	return cuCtxSynchronize();
}

/* Another process may have written what was exported. */
static CUresult exported(void)
{
	CUmemAllocationProp prop = on_device;
	CUmemGenericAllocationHandle h;
	CUdeviceptr p = reserve(G), q;
	CUipcMemHandle ipc;
	int fd;

	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	must(cuMemCreate(&h, G, &prop, 0));
	map(p, G, h);
	must(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	must(run_inc(p, 1, NULL));
	must(cuMemAlloc(&q, 4096));
	must(cuIpcGetMemHandle(&ipc, q));
	must(run_inc(q, 1, NULL));
	return cuCtxSynchronize();
}

/* A result that fits into an exit status. */
static int as_status(CUresult r)
{
	return r > 250 ? (int)r - 600 : (int)r;
}

static void in_child(CUresult (*fn)(void), const char *check, CUresult want, const char *what)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		setenv("SIMCUDA_CHECK", check, 1);
		load();
		_exit(as_status(fn()));
	}
	waitpid(pid, &status, 0);
	if (!tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == as_status(want), __FILE__, __LINE__,
		    "%s", what))
		tap_diag("  status %x", status);
}

static void faults(void)
{
	in_child(no_access, "", CUDA_ERROR_ILLEGAL_ADDRESS, "a mapping without access");
	in_child(no_access_fill, "", CUDA_ERROR_ILLEGAL_ADDRESS, "the same for a fill");
	in_child(read_only, "", CUDA_ERROR_ILLEGAL_ADDRESS, "a store to a read-only mapping");
	in_child(another_device, "", CUDA_ERROR_ILLEGAL_ADDRESS, "access for another device");
	in_child(after_unmap, "", CUDA_ERROR_ILLEGAL_ADDRESS, "an access after the unmap");
	in_child(past_the_end, "", CUDA_ERROR_ILLEGAL_ADDRESS, "past what is mapped");
	in_child(uninitialised, "uninit", CUDA_ERROR_LAUNCH_FAILED, "uninitialised memory");
	in_child(initialised_elsewhere, "uninit", CUDA_SUCCESS,
		 "initialised is the memory, not the address");
	in_child(exported, "uninit", CUDA_SUCCESS, "what is exported counts as initialised");
}

int main(void)
{
	setenv("SIMCUDA_MEMORY", "1G", 1);
	setenv("SIMCUDA_DEVICES", "2", 1);
	setenv("SIMCUDA_HANG_MS", "100", 1);
	faults();
	load();
	{
		int v = 0;

		must(cuDeviceGetAttribute(
			&v, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
		ok(v, "the device says that it can");
	}
	base = simcuda_live_bytes(0);
	reservations();
	handles();
	mapping_rules();
	access_flags();
	aliases();
	adjacent();
	unmap_waits();
	host_memory();
	multicast();
	return tap_done();
}
