/* SPDX-License-Identifier: MIT */
/*
 * Memory that others can write, too (entry_points.def, groups B3, B4, B6, G4): interprocess handles, pools'
 * pointers, external memory, graphics resources, handles for other devices, peers.
 *
 * What comes from elsewhere is an allocation of kind EXTERNAL while this process can reach it; what is
 * handed out stays what it was and is marked as shared, for good. An interprocess handle that is opened
 * twice gives the same address, and is closed as often: the first and the last count.
 * Callers: the program, any thread. Locks: one mutex around the tables, a leaf (not held over the engine).
 */
#include <pthread.h>

#include "shim/alloc.h"
#include "shim/sorted.h"
#include "shim/arrays.h"
#include "shim/wrap_array.h"

/* An opened handle's address, and how often; a mapped graphics resource. */
struct opened {
	uint64_t addr, times;
};

struct resource {
	uint64_t handle;
	uint64_t addr; /* linear, 0: not asked for */
	struct rs_alloc *leaving;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rs_sorted opened = {.size = sizeof(struct opened)};
static struct rs_sorted resources = {.size = sizeof(struct resource)};

/* After the real call succeeded. */
#define AFTER(sym, params, args, told)                                                             \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, args);                                                            \
		r = rs_real.sym args;                                                              \
		if (r == CUDA_SUCCESS)                                                             \
			told;                                                                      \
		RS_LEAVE(t, r);                                                                    \
	}

/* The same where nothing may be mapped in the place of the memory at addr meanwhile. */
#define PAUSED(sym, params, args, addr, told)                                                      \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, args);                                                            \
		RS_ENGINE(rs_engine_remap_pause(rs_state.engine, addr, 1));                        \
		r = rs_real.sym args;                                                              \
		if (r == CUDA_SUCCESS)                                                             \
			told;                                                                      \
		RS_ENGINE(rs_engine_remap_go_on(rs_state.engine));                                 \
		RS_LEAVE(t, r);                                                                    \
	}

/* --- handed out --------------------------------------------------------------------------------- */

static void shared(uint64_t addr)
{
	RS_ENGINE(rs_engine_share(rs_state.engine, addr));
}

AFTER(cuIpcGetMemHandle, (CUipcMemHandle * pHandle, CUdeviceptr dptr), (pHandle, dptr),
      shared(dptr))
AFTER(cuMemPoolExportPointer, (CUmemPoolPtrExportData * shareData_out, CUdeviceptr ptr),
      (shareData_out, ptr), shared(ptr))
PAUSED(cuMemGetHandleForAddressRange,
       (void *handle, CUdeviceptr dptr, size_t size, CUmemRangeHandleType handleType,
	unsigned long long flags),
       (handle, dptr, size, handleType, flags), dptr, shared(dptr))

/* Who wants copies to be synchronous has another device write there. */
static void attribute_set(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	if (attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS && value && *(const unsigned *)value)
		shared(ptr);
}
PAUSED(cuPointerSetAttribute, (const void *value, CUpointer_attribute attribute, CUdeviceptr ptr),
       (value, attribute, ptr), ptr, attribute_set(value, attribute, ptr))

/* --- peers -------------------------------------------------------------------------------------- */

static void peers(void)
{
	RS_ENGINE(rs_engine_peer_access(rs_state.engine));
}

AFTER(cuCtxEnablePeerAccess, (CUcontext peerContext, unsigned int Flags), (peerContext, Flags),
      peers())

/* Access of the pool's own device needs no call. */
static void access_set(const CUmemAccessDesc *map, size_t count)
{
	for (size_t i = 0; map && i < count; i++)
		if (map[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
		    map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
			peers();
}
AFTER(cuMemPoolSetAccess, (CUmemoryPool pool, const CUmemAccessDesc *map, size_t count),
      (pool, map, count), access_set(map, count))

/* --- from elsewhere ----------------------------------------------------------------------------- */

static void external(struct rs_tls *t, uint64_t addr)
{
	CUdeviceptr base = 0;
	size_t bytes = 0;

	if (rs_real.cuMemGetAddressRange_v2(&base, &bytes, addr) == CUDA_SUCCESS)
		rs_alloc_told(t, rs_alloc_queue(t), base, bytes, RS_ALLOC_EXTERNAL);
}

/* Is it the first time that the address is opened, or was it the last that it was closed? */
static int is_first(uint64_t addr)
{
	struct opened *o;
	int first;

	pthread_mutex_lock(&lock);
	o = rs_sorted_add(&opened, addr);
	first = !o || !o->times++;
	pthread_mutex_unlock(&lock);
	return first;
}

static int is_last(uint64_t addr)
{
	struct opened *o;
	int last;

	pthread_mutex_lock(&lock);
	o = rs_sorted_find(&opened, addr);
	last = o && !--o->times;
	if (last)
		rs_sorted_remove(&opened, addr);
	pthread_mutex_unlock(&lock);
	return last;
}

static void ipc_opened(struct rs_tls *t, uint64_t addr)
{
	if (is_first(addr))
		external(t, addr);
}

#define IPC_OPEN(sym)                                                                              \
	AFTER(sym, (CUdeviceptr * pdptr, CUipcMemHandle handle, unsigned int Flags),               \
	      (pdptr, handle, Flags), ipc_opened(t, *pdptr))
IPC_OPEN(cuIpcOpenMemHandle)
IPC_OPEN(cuIpcOpenMemHandle_v2)

RS_HOOK(cuIpcCloseMemHandle, (CUdeviceptr dptr))
{
	struct rs_alloc *a;
	CUresult r;
	int last;

	RS_ENTER(t, cuIpcCloseMemHandle, (dptr));
	last = is_last(dptr);
	a = rs_alloc_leaves(t, rs_alloc_queue(t), last ? dptr : 0);
	r = rs_real.cuIpcCloseMemHandle(dptr);
	if (last && r != CUDA_SUCCESS)
		is_first(dptr);
	rs_alloc_left(a, r);
	RS_LEAVE(t, r);
}

/* Freed like any other memory. */
AFTER(cuMemPoolImportPointer,
      (CUdeviceptr * ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData *shareData),
      (ptr_out, pool, shareData), external(t, *ptr_out))
AFTER(cuExternalMemoryGetMappedBuffer,
      (CUdeviceptr * devPtr, CUexternalMemory extMem,
       const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *bufferDesc),
      (devPtr, extMem, bufferDesc),
      rs_alloc_told(t, rs_alloc_queue(t), *devPtr, bufferDesc->size, RS_ALLOC_EXTERNAL))
AFTER(cuExternalMemoryGetMappedMipmappedArray,
      (CUmipmappedArray * mipmap, CUexternalMemory extMem,
       const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *mipmapDesc),
      (mipmap, extMem, mipmapDesc), rs_array_levels_made(t, *mipmap, mipmapDesc->numLevels, 1))

/* --- graphics ----------------------------------------------------------------------------------- */

/* The same pointer may be asked for again while it is mapped. */
static void got_pointer(struct rs_tls *t, CUgraphicsResource resource, uint64_t addr,
			uint64_t bytes)
{
	struct resource *r;
	int known;

	pthread_mutex_lock(&lock);
	r = rs_sorted_add(&resources, (uintptr_t)resource);
	known = r && r->addr == addr;
	if (r)
		r->addr = addr;
	pthread_mutex_unlock(&lock);
	if (!known)
		rs_alloc_told(t, rs_alloc_queue(t), addr, bytes, RS_ALLOC_EXTERNAL);
}

AFTER(cuGraphicsResourceGetMappedPointer_v2,
      (CUdeviceptr * pDevPtr, size_t *pSize, CUgraphicsResource resource),
      (pDevPtr, pSize, resource), got_pointer(t, resource, *pDevPtr, *pSize))

/* Its arrays: owned by a name that is no mipmapped array's. */
static uint64_t owner_of(CUgraphicsResource resource)
{
	return (uintptr_t)resource | 1;
}

static void got_array(struct rs_tls *t, CUgraphicsResource resource, CUarray array)
{
	struct rs_array a;

	if (!rs_arrays_find(array, &a))
		rs_array_made(t, array, owner_of(resource), 1);
}

static void got_mipmap(struct rs_tls *t, CUgraphicsResource resource, CUmipmappedArray mipmap)
{
	CUarray level;

	for (unsigned i = 0; i < 32; i++) {
		if (rs_real.cuMipmappedArrayGetLevel(&level, mipmap, i) != CUDA_SUCCESS)
			break;
		got_array(t, resource, level);
	}
}

AFTER(cuGraphicsSubResourceGetMappedArray,
      (CUarray * pArray, CUgraphicsResource resource, unsigned int arrayIndex,
       unsigned int mipLevel),
      (pArray, resource, arrayIndex, mipLevel), got_array(t, resource, *pArray))
AFTER(cuGraphicsResourceGetMappedMipmappedArray,
      (CUmipmappedArray * pMipmappedArray, CUgraphicsResource resource),
      (pMipmappedArray, resource), got_mipmap(t, resource, *pMipmappedArray))

static void resource_leaves(struct rs_tls *t, CUgraphicsResource handle)
{
	struct rs_alloc *a = NULL;
	struct resource *r;
	uint64_t addr;

	rs_array_owned_leave(t, owner_of(handle));
	pthread_mutex_lock(&lock);
	r = rs_sorted_find(&resources, (uintptr_t)handle);
	addr = r ? r->addr : 0;
	pthread_mutex_unlock(&lock);
	a = rs_alloc_leaves(t, rs_alloc_queue(t), addr);
	pthread_mutex_lock(&lock);
	r = rs_sorted_find(&resources, (uintptr_t)handle);
	if (r)
		r->leaving = a;
	pthread_mutex_unlock(&lock);
}

static void resource_left(CUgraphicsResource handle, CUresult result)
{
	struct rs_alloc *a = NULL;
	struct resource *r;

	rs_array_owned_left(owner_of(handle), result);
	pthread_mutex_lock(&lock);
	r = rs_sorted_find(&resources, (uintptr_t)handle);
	if (r) {
		a = r->leaving;
		r->leaving = NULL;
	}
	if (result == CUDA_SUCCESS)
		rs_sorted_remove(&resources, (uintptr_t)handle);
	pthread_mutex_unlock(&lock);
	rs_alloc_left(a, result);
}

#define UNMAP(sym)                                                                                 \
	RS_HOOK(sym, (unsigned int count, CUgraphicsResource *list, CUstream hStream))             \
	{                                                                                          \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, (count, list, hStream));                                          \
		for (unsigned i = 0; list && i < count; i++)                                       \
			resource_leaves(t, list[i]);                                               \
		r = rs_real.sym(count, list, hStream);                                             \
		for (unsigned i = 0; list && i < count; i++)                                       \
			resource_left(list[i], r);                                                 \
		RS_LEAVE(t, r);                                                                    \
	}
UNMAP(cuGraphicsUnmapResources)
UNMAP(cuGraphicsUnmapResources_ptsz)
