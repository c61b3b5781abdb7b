/* SPDX-License-Identifier: MIT */
/*
 * Managed memory: advice, prefetches, discards, what can be asked of a range. Both ABIs of each.
 */
#include <dlfcn.h>

#include "tests/clients/drv.h"

#define PAGES 8
#define PAGE  4096u

/* The header gives only the newer ABI of these. */
static CUresult (*advise_v1)(CUdeviceptr, size_t, CUmem_advise, CUdevice);
static CUresult (*prefetch_v1)(CUdeviceptr, size_t, CUdevice, CUstream);

static const CUmemLocation dev0 = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
static const CUmemLocation dev1 = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1};
static const CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST};

static int attribute(CUmem_range_attribute attr, CUdeviceptr p, size_t size)
{
	int v = -77;

	must(cuMemRangeGetAttribute(&v, 4, attr, p, size));
	return v;
}

static void errors(CUdeviceptr m)
{
	CUmemLocation nowhere = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 9};
	CUdeviceptr p;
	int v[3];

	must(cuMemAlloc(&p, PAGE));
	is_cu(cuMemAdvise(p, PAGE, CU_MEM_ADVISE_SET_READ_MOSTLY, dev0), CUDA_ERROR_INVALID_VALUE,
	      "advice is for managed memory");
	is_cu(cuMemPrefetchAsync(p, PAGE, dev0, 0, NULL), CUDA_ERROR_INVALID_VALUE,
	      "so are prefetches");
	is_cu(cuMemRangeGetAttribute(v, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, PAGE),
	      CUDA_ERROR_INVALID_VALUE, "and questions");
	must(cuMemFree(p));
	is_cu(cuMemAdvise(m, 0, CU_MEM_ADVISE_SET_READ_MOSTLY, dev0), CUDA_ERROR_INVALID_VALUE,
	      "about nothing");
	is_cu(cuMemAdvise(m, (PAGES + 1) * PAGE + 1, CU_MEM_ADVISE_SET_READ_MOSTLY, dev0),
	      CUDA_ERROR_INVALID_VALUE, "about too much");
	is_cu(cuMemAdvise(m, PAGE, (CUmem_advise)7, dev0), CUDA_ERROR_INVALID_VALUE,
	      "unknown advice");
	is_cu(cuMemAdvise(m, PAGE, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, nowhere),
	      CUDA_ERROR_INVALID_DEVICE, "no such device");
	is_cu(cuMemPrefetchAsync(m, PAGE, nowhere, 0, NULL), CUDA_ERROR_INVALID_DEVICE,
	      "nor to prefetch to");
	is_cu(cuMemPrefetchAsync(m, PAGE, dev0, 1, NULL), CUDA_ERROR_INVALID_VALUE,
	      "unknown flags");
	is_cu(cuMemRangeGetAttribute(v, 8, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m, PAGE),
	      CUDA_ERROR_INVALID_VALUE, "an answer has its size");
	is_cu(cuMemRangeGetAttribute(v, 6, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, m, PAGE),
	      CUDA_ERROR_INVALID_VALUE, "or a multiple");
}

static void advice(CUdeviceptr m)
{
	CUmem_range_attribute attrs[] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
					 CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY};
	int mostly = 7, by[4] = {0}, all = PAGES * PAGE;
	void *data[] = {&mostly, by};
	size_t sizes[] = {4, sizeof(by)};

	is_u64(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m, all), 0, "no advice yet");
	ok(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, m, all) == CU_DEVICE_INVALID,
	   "no place preferred");
	is_cu(advise_v1(m + 10, PAGE, CU_MEM_ADVISE_SET_READ_MOSTLY, 0), CUDA_SUCCESS,
	      "read-mostly, two pages touched");
	is_u64(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m, PAGE + 1), 1, "whole pages");
	is_u64(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m, 3 * PAGE), 0, "but not the third");
	is_cu(cuMemAdvise(m, all, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, dev1), CUDA_SUCCESS,
	      "preferred location");
	is_u64(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, m, all), 1, "device 1");
	is_u64(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, m, all),
	       CU_MEM_LOCATION_TYPE_DEVICE, "by type");
	is_u64(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, m, all), 1, "and number");
	must(advise_v1(m, PAGE, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU));
	ok(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, m, all) == CU_DEVICE_INVALID,
	   "pages that differ have none in common");
	ok(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, m, PAGE) == CU_DEVICE_CPU,
	   "the host for one");
	must(cuMemAdvise(m, all, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, dev0));
	ok(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, m, PAGE) == CU_DEVICE_INVALID,
	   "taken back");
	must(cuMemAdvise(m, all, CU_MEM_ADVISE_SET_ACCESSED_BY, dev1));
	must(cuMemAdvise(m, all, CU_MEM_ADVISE_SET_ACCESSED_BY, host));
	must(cuMemAdvise(m, PAGE, CU_MEM_ADVISE_SET_ACCESSED_BY, dev0));
	is_cu(cuMemRangeGetAttributes(data, sizes, attrs, 2, m, all), CUDA_SUCCESS,
	      "several questions");
	ok(!mostly && by[0] == 1 && by[1] == CU_DEVICE_CPU && by[2] == CU_DEVICE_INVALID &&
		   by[3] == CU_DEVICE_INVALID,
	   "who accesses all of it");
	must(cuMemRangeGetAttributes(data, sizes, attrs, 2, m, PAGE));
	ok(mostly == 1 && by[0] == 0 && by[1] == 1, "and of the first page");
	must(cuMemAdvise(m, all, CU_MEM_ADVISE_UNSET_ACCESSED_BY, dev1));
	must(cuMemRangeGetAttribute(by, 4, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, m + PAGE, PAGE));
	is_u64(by[0], CU_DEVICE_CPU, "less one");
}

static void prefetching(CUdeviceptr m, CUstream s)
{
	CUdeviceptr p[2] = {m, m + 2 * PAGE};
	CUmemLocation where[2] = {dev1, host};
	size_t sizes[2] = {PAGE, PAGE}, idx[2] = {0, 1}, bad[2] = {0, 0};
	int all = PAGES * PAGE;
	unsigned *w = (unsigned *)m;

	must(cuMemsetD32(m, 9, PAGES * PAGE / 4));
	must(cuCtxSynchronize());
	is_cu(prefetch_v1(m, all, 0, s), CUDA_SUCCESS, "prefetch, the older ABI");
	is_u64(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, m, all), 0, "to device 0");
	is_cu(cuMemPrefetchAsync(m + PAGE, 1, host, 0, s), CUDA_SUCCESS, "the newer");
	ok(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, m, all) == CU_DEVICE_INVALID &&
		   attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, m + PAGE, PAGE) ==
			   CU_DEVICE_CPU,
	   "a page to the host");
	is_cu(cuMemPrefetchBatchAsync(p, sizes, 2, where, idx, 2, 0, NULL),
	      CUDA_ERROR_INVALID_VALUE, "no batch on the legacy stream");
	is_cu(cuMemPrefetchBatchAsync(p, sizes, 2, where, bad, 2, 0, s), CUDA_ERROR_INVALID_VALUE,
	      "locations in order");
	is_cu(cuMemPrefetchBatchAsync(p, sizes, 2, where, idx, 2, 0, s), CUDA_SUCCESS, "a batch");
	is_u64(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID, m, PAGE), 1,
	       "its first");
	is_u64(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE, m + 2 * PAGE, PAGE),
	       CU_MEM_LOCATION_TYPE_HOST, "and second");
	must(cuStreamSynchronize(s));
	ok(w[0] == 9 && w[PAGES * PAGE / 4 - 1] == 9, "prefetching keeps the content");
}

static void discarding(CUdeviceptr m, CUstream s)
{
	CUdeviceptr p[2] = {m + PAGE, m + 3 * PAGE + 1};
	size_t sizes[2] = {PAGE, 7}, idx[1] = {0};
	CUmemLocation where[1] = {dev0};
	unsigned *w = (unsigned *)m;
	CUdeviceptr d;

	must(cuMemAlloc(&d, PAGE));
	is_cu(cuMemDiscardBatchAsync(&d, sizes, 1, 0, s), CUDA_ERROR_INVALID_VALUE,
	      "only managed memory is discarded");
	simcuda_set_schedule("lazy");
	is_cu(cuMemDiscardBatchAsync(p, sizes, 2, 0, s), CUDA_SUCCESS, "discard");
	is_u64(w[PAGE / 4], 9, "in stream order: not yet");
	must(cuMemsetD32Async(m + PAGE + 64, 1, 1, s));
	must(cuStreamSynchronize(s));
	simcuda_set_schedule("eager");
	ok(w[PAGE / 4] != 9 && w[PAGE / 2 - 1] != 9, "then the content is gone");
	ok(w[PAGE / 4 - 1] == 9 && w[PAGE / 2] == 9, "only there");
	is_u64(w[PAGE / 4 + 16], 1, "what is written later stays");
	ok(((unsigned char *)m)[3 * PAGE] == 9 && ((unsigned char *)m)[3 * PAGE + 4] != 9,
	   "odd ranges, too");
	is_cu(cuMemDiscardAndPrefetchBatchAsync(p, sizes, 1, where, idx, 1, 0, s), CUDA_SUCCESS,
	      "discard and prefetch");
	must(cuStreamSynchronize(s));
	is_u64(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, m + PAGE, PAGE), 0,
	       "remembers the prefetch");
	ok(w[PAGE / 4 + 16] != 1, "and loses the content");
	must(cuMemFree(d));
}

static void attaching(CUdeviceptr m, CUstream s)
{
	is_cu(cuStreamAttachMemAsync(s, m, 0, CU_MEM_ATTACH_SINGLE), CUDA_SUCCESS, "attach");
	is_cu(cuStreamAttachMemAsync(s, m + PAGE, PAGE, CU_MEM_ATTACH_SINGLE),
	      CUDA_ERROR_INVALID_VALUE, "not a part");
	is_cu(cuStreamAttachMemAsync(NULL, m, 0, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE,
	      "not to a default stream");
	is_cu(cuStreamAttachMemAsync(s, m, 0, 8), CUDA_ERROR_INVALID_VALUE, "unknown flags");
}

int main(void)
{
	CUdeviceptr m;
	CUcontext ctx;
	CUstream s;

	setenv("SIMCUDA_MEMORY", "64M", 1);
	setenv("SIMCUDA_DEVICES", "2", 1);
	advise_v1 = (CUresult(*)(CUdeviceptr, size_t, CUmem_advise, CUdevice))dlsym(RTLD_DEFAULT,
										    "cuMemAdvise");
	prefetch_v1 = (CUresult(*)(CUdeviceptr, size_t, CUdevice, CUstream))dlsym(
		RTLD_DEFAULT, "cuMemPrefetchAsync");
	ctx = drv_context();
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	/* The tests count pages: the range must begin with one. */
	must(cuMemAllocManaged(&m, (PAGES + 1) * PAGE, CU_MEM_ATTACH_GLOBAL));
	errors(m);
	m = (m + PAGE - 1) & ~(CUdeviceptr)(PAGE - 1);
	advice(m);
	prefetching(m, s);
	discarding(m, s);
	must(cuCtxDestroy(ctx));
	ctx = drv_context();
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuMemAllocManaged(&m, PAGES * PAGE, CU_MEM_ATTACH_GLOBAL));
	attaching(m, s);
	must(cuCtxDestroy(ctx));
	return tap_done();
}
