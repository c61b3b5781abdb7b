/* SPDX-License-Identifier: MIT */
/*
 * The NVTX memory extension: regions of device memory with names, "state:NAME" or "output:NAME".
 *
 * A region is known by its address, or by the handle that another injection library gave it. Naming comes
 * after registering; what has no name is not told to the engine.
 * Locks: one mutex around the table of regions; the engine is called without it.
 */
#include "shim/nvtx.h"
#include "shim/handles.h"
#include "shim/marker.h"
#include "shim/pattern.h"

#include <nvtx3/nvToolsExtMem.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <pthread.h>
#include <stdlib.h>

#define SLOTS 7 /* up to RegionsName */

struct region {
	uint64_t addr, bytes;
};

typedef nvtxMemHeapHandle_t NVTX_API heap_register_fn(nvtxDomainHandle_t,
						      nvtxMemHeapDesc_t const *);
typedef void NVTX_API heap_unregister_fn(nvtxDomainHandle_t, nvtxMemHeapHandle_t);
typedef void NVTX_API regions_register_fn(nvtxDomainHandle_t,
					  nvtxMemRegionsRegisterBatch_t const *);
typedef void NVTX_API regions_resize_fn(nvtxDomainHandle_t, nvtxMemRegionsResizeBatch_t const *);
typedef void NVTX_API regions_unregister_fn(nvtxDomainHandle_t,
					    nvtxMemRegionsUnregisterBatch_t const *);
typedef void NVTX_API regions_name_fn(nvtxDomainHandle_t, nvtxMemRegionsNameBatch_t const *);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rs_handles regions;
static intptr_t next[SLOTS];
#define NEXT(type, fn) ((type *)next[NVTX3EXT_CBID_nvtxMem##fn])

static void put(const void *key, uint64_t addr, uint64_t bytes)
{
	struct region *r;

	if (!key)
		return;
	pthread_mutex_lock(&lock);
	r = rs_handles_find(&regions, key);
	if (!r) {
		r = malloc(sizeof(*r));
		if (r && rs_handles_set(&regions, key, r)) {
			free(r);
			r = NULL;
		}
	}
	if (r)
		*r = (struct region){addr, bytes};
	pthread_mutex_unlock(&lock);
}

/* 1 and a copy; with take, the entry goes. */
static int get(const void *key, int take, struct region *ret)
{
	struct region *r;

	pthread_mutex_lock(&lock);
	r = rs_handles_find(&regions, key);
	if (r) {
		*ret = *r;
		if (take) {
			rs_handles_set(&regions, key, NULL);
			free(r);
		}
	}
	pthread_mutex_unlock(&lock);
	return !!r;
}

static const void *key_of(nvtxMemRegionRef_t ref, uint32_t type)
{
	return type == NVTX_MEM_REGION_REF_TYPE_HANDLE ? (const void *)ref.handle : ref.pointer;
}

/* Element i of an array whose elements may be larger than the type that we know. */
#define ELEMENT(type, array, size, i)                                                              \
	((const type *)((const char *)(array) + (i) * ((size) ? (size) : sizeof(type))))

/* --- callbacks ---------------------------------------------------------------------------------- */

static nvtxMemHeapHandle_t NVTX_API heap_register(nvtxDomainHandle_t domain,
						  nvtxMemHeapDesc_t const *desc)
{
	heap_register_fn *theirs = NEXT(heap_register_fn, HeapRegister);
	nvtxMemHeapHandle_t handle = theirs ? theirs(domain, desc) : NVTX_MEM_HEAP_HANDLE_NO_TOOL;
	const nvtxMemVirtualRangeDesc_t *range;
	char buffer[512];
	const char *name;

	if (!desc || desc->type != NVTX_MEM_TYPE_VIRTUAL_ADDRESS || !desc->typeSpecificDesc)
		return handle;
	range = desc->typeSpecificDesc;
	if (!theirs)
		handle = (nvtxMemHeapHandle_t)(uintptr_t)range->ptr;
	if (!rs_domain_followed(rs_nvtx_domain(domain)))
		return handle;
	put(handle, (uintptr_t)range->ptr, range->size);
	name = rs_nvtx_text(desc->messageType, desc->message, buffer);
	if (name[0])
		rs_marker_region(rs_nvtx_domain(domain), (uintptr_t)range->ptr, range->size, name);
	return handle;
}

static void NVTX_API heap_unregister(nvtxDomainHandle_t domain, nvtxMemHeapHandle_t heap)
{
	heap_unregister_fn *theirs = NEXT(heap_unregister_fn, HeapUnregister);
	struct region r;

	if (theirs)
		theirs(domain, heap);
	if (rs_domain_followed(rs_nvtx_domain(domain)) && get(heap, 1, &r))
		rs_marker_region_drop(r.addr, r.bytes);
}

static void NVTX_API regions_register(nvtxDomainHandle_t domain,
				      nvtxMemRegionsRegisterBatch_t const *desc)
{
	regions_register_fn *theirs = NEXT(regions_register_fn, RegionsRegister);

	if (theirs)
		theirs(domain, desc);
	if (!desc || desc->regionType != NVTX_MEM_TYPE_VIRTUAL_ADDRESS)
		return;
	for (size_t i = 0; i < desc->regionCount; i++) {
		const nvtxMemVirtualRangeDesc_t *r =
			ELEMENT(nvtxMemVirtualRangeDesc_t, desc->regionDescElements,
				desc->regionDescElementSize, i);
		nvtxMemRegionHandle_t *out = desc->regionHandleElementsOut;

		if (out && !theirs)
			out[i] = (nvtxMemRegionHandle_t)(uintptr_t)r->ptr;
		if (!rs_domain_followed(rs_nvtx_domain(domain)))
			continue;
		put(r->ptr, (uintptr_t)r->ptr, r->size);
		if (out && (const void *)out[i] != r->ptr)
			put((const void *)out[i], (uintptr_t)r->ptr, r->size);
	}
}

static void NVTX_API regions_resize(nvtxDomainHandle_t domain,
				    nvtxMemRegionsResizeBatch_t const *desc)
{
	regions_resize_fn *theirs = NEXT(regions_resize_fn, RegionsResize);

	if (theirs)
		theirs(domain, desc);
	if (!desc || desc->regionType != NVTX_MEM_TYPE_VIRTUAL_ADDRESS ||
	    !rs_domain_followed(rs_nvtx_domain(domain)))
		return;
	for (size_t i = 0; i < desc->regionDescCount; i++) {
		const nvtxMemVirtualRangeDesc_t *r =
			ELEMENT(nvtxMemVirtualRangeDesc_t, desc->regionDescElements,
				desc->regionDescElementSize, i);

		put(r->ptr, (uintptr_t)r->ptr, r->size);
	}
}

static void NVTX_API regions_unregister(nvtxDomainHandle_t domain,
					nvtxMemRegionsUnregisterBatch_t const *desc)
{
	regions_unregister_fn *theirs = NEXT(regions_unregister_fn, RegionsUnregister);
	struct region r;

	if (theirs)
		theirs(domain, desc);
	if (!desc || !rs_domain_followed(rs_nvtx_domain(domain)))
		return;
	for (size_t i = 0; i < desc->refCount; i++) {
		const nvtxMemRegionRef_t *ref =
			ELEMENT(nvtxMemRegionRef_t, desc->refElements, desc->refElementSize, i);

		if (get(key_of(*ref, desc->refType), 1, &r))
			rs_marker_region_drop(r.addr, r.bytes);
	}
}

static void NVTX_API regions_name(nvtxDomainHandle_t domain, nvtxMemRegionsNameBatch_t const *desc)
{
	regions_name_fn *theirs = NEXT(regions_name_fn, RegionsName);
	struct region r;
	char buffer[512];

	if (theirs)
		theirs(domain, desc);
	if (!desc || !rs_domain_followed(rs_nvtx_domain(domain)))
		return;
	for (size_t i = 0; i < desc->regionCount; i++) {
		const nvtxMemRegionNameDesc_t *n = ELEMENT(
			nvtxMemRegionNameDesc_t, desc->regionElements, desc->regionElementSize, i);

		if (get(key_of(n->region, n->regionRefType), 0, &r))
			rs_marker_region(rs_nvtx_domain(domain), r.addr, r.bytes,
					 rs_nvtx_text(n->nameType, n->name, buffer));
	}
}

static const intptr_t ours[SLOTS] = {
	[NVTX3EXT_CBID_nvtxMemHeapRegister] = (intptr_t)heap_register,
	[NVTX3EXT_CBID_nvtxMemHeapUnregister] = (intptr_t)heap_unregister,
	[NVTX3EXT_CBID_nvtxMemRegionsRegister] = (intptr_t)regions_register,
	[NVTX3EXT_CBID_nvtxMemRegionsResize] = (intptr_t)regions_resize,
	[NVTX3EXT_CBID_nvtxMemRegionsUnregister] = (intptr_t)regions_unregister,
	[NVTX3EXT_CBID_nvtxMemRegionsName] = (intptr_t)regions_name,
};

RS_EXPORT int NVTX_API InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *info);

int NVTX_API InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *info)
{
	NvtxExtInitializeInjectionFunc_t init =
		(NvtxExtInitializeInjectionFunc_t)rs_nvtx_next("InitializeInjectionNvtxExtension");
	intptr_t before[SLOTS] = {0}, *slots;
	int mine = info && info->moduleId == NVTX_EXT_MODULEID_MEM && info->segmentsCount == 1 &&
		   info->segments && info->segments[0].slotCount >= SLOTS;
	int chained;

	slots = mine ? info->segments[0].functionSlots : NULL;
	for (unsigned i = 0; mine && i < SLOTS; i++)
		before[i] = slots[i];
	chained = init && init(info);
	for (unsigned i = 0; mine && i < SLOTS; i++) {
		if (chained && slots[i] != before[i] && slots[i] != ours[i])
			next[i] = slots[i];
		if (ours[i])
			slots[i] = ours[i];
	}
	/*
	 * Of the payload extension we take nothing, but are attached to it: without a tool there, its
	 * nvtxDomainIsEnabled says no, and NVIDIA's Python package then emits no ranges at all.
	 */
	return mine || chained || (info && info->moduleId == NVTX_EXT_PAYLOAD_MODULEID);
}
