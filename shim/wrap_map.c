/* SPDX-License-Identifier: MIT */
/*
 * Virtual memory management and multicast (entry_points.def, group B4): memory behind several addresses.
 *
 * The engine hears of handles, mappings and bindings after the driver made them, of an unmapping before
 * (it may not touch the memory afterwards); one that the driver refuses is mapped again under a handle that
 * was held meanwhile, so nothing known of the memory is lost.
 * A replay may be shown other memory at the program's addresses (RS_RESTORE_REMAP); calls that could tell pause that.
 * Handles: the driver's values, unique while held or mapped. The engine is told of one hold for each; how
 * often the program holds it is counted here. An imported handle's size shows at its first use.
 * Callers: the program, any thread. Locks: one mutex around the tables, held over the real calls, so that
 * values which the driver reuses are told in the order in which it gave them. Under it: the engine's.
 */
#include <pthread.h>
#include <string.h>

#include "shim/call.h"
#include "shim/devremap.h"
#include "shim/sorted.h"

struct handle {
	uint64_t value;
	uint64_t bytes; /* 0: imported, and nothing says yet how large */
	uint64_t held, mapped;
};

struct mapping {
	uint64_t addr;
	uint64_t bytes, offset, handle;
};

struct reservation {
	uint64_t addr, bytes;
};

/* Memory bound to a multicast object at one place, by one device or several. */
struct binding {
	uint64_t key;
	uint64_t multicast, at, bytes, times;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rs_sorted handles = {.size = sizeof(struct handle)};
static struct rs_sorted mappings = {.size = sizeof(struct mapping)};
static struct rs_sorted reservations = {.size = sizeof(struct reservation)};
static struct rs_sorted bindings = {.size = sizeof(struct binding)};

/* The real call and what is told of it, in one piece. */
#define LOCKED(sym, params, args, after)                                                           \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, args);                                                            \
		pthread_mutex_lock(&lock);                                                         \
		r = rs_real.sym args;                                                              \
		if (r == CUDA_SUCCESS)                                                             \
			RS_ENGINE(after);                                                          \
		pthread_mutex_unlock(&lock);                                                       \
		RS_LEAVE(t, r);                                                                    \
	}

/*
 * The same where nothing may be mapped in another's place meanwhile. pause is not under the lock: it may wait for the
 * device.
 */
#define PAUSED(sym, params, args, pause, after)                                                    \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, args);                                                            \
		RS_ENGINE(pause);                                                                  \
		pthread_mutex_lock(&lock);                                                         \
		r = rs_real.sym args;                                                              \
		if (r == CUDA_SUCCESS)                                                             \
			RS_ENGINE(after);                                                          \
		pthread_mutex_unlock(&lock);                                                       \
		RS_ENGINE(rs_engine_remap_go_on(rs_state.engine));                                 \
		RS_LEAVE(t, r);                                                                    \
	}

static void pause_at(uint64_t addr, uint64_t bytes)
{
	rs_engine_remap_pause(rs_state.engine, addr, bytes);
}

/* fix: from now on the handle's memory is known by more than its address. */
static void pause_handle(uint64_t handle, int fix)
{
	rs_engine_remap_pause_handle(rs_state.engine, handle, fix);
}

/* --- handles ------------------------------------------------------------------------------------ */

static struct handle *hold(uint64_t value)
{
	struct handle *h = rs_sorted_add(&handles, value);

	if (h)
		h->held++;
	return h;
}

static void created(uint64_t value, uint64_t bytes, enum rs_alloc_kind kind)
{
	struct handle *h = hold(value);

	if (h) {
		h->bytes = bytes;
		rs_engine_backing(rs_state.engine, value, bytes, kind);
	}
}

/* The first use of an imported handle says how large it is. */
static struct handle *used(uint64_t value, uint64_t bytes)
{
	struct handle *h = rs_sorted_find(&handles, value);

	if (h && !h->bytes) {
		h->bytes = bytes;
		rs_engine_backing(rs_state.engine, value, bytes, RS_ALLOC_EXTERNAL);
	}
	return h;
}

static void retained(uint64_t value, uint64_t addr)
{
	struct handle *h = hold(value);

	if (h && h->held == 1)
		rs_engine_backing_retain(rs_state.engine, value, addr);
}

static void forget_bindings(uint64_t multicast)
{
	const struct binding *b;

	for (size_t i = 0; (b = rs_sorted_at(&bindings, i));)
		if (b->multicast == multicast)
			rs_sorted_remove(&bindings, b->key);
		else
			i++;
}

static void settle(struct handle *h)
{
	if (h->held || h->mapped)
		return;
	forget_bindings(h->value);
	rs_sorted_remove(&handles, h->value);
}

static void released(uint64_t value)
{
	struct handle *h = rs_sorted_find(&handles, value);

	if (!h || !h->held)
		return;
	if (!--h->held && h->bytes)
		rs_engine_backing_release(rs_state.engine, value);
	settle(h);
}

static enum rs_alloc_kind kind_of(const CUmemAllocationProp *prop)
{
	return prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? RS_ALLOC_DEVICE : RS_ALLOC_HOST;
}

LOCKED(cuMemCreate,
       (CUmemGenericAllocationHandle * handle, size_t size, const CUmemAllocationProp *prop,
	unsigned long long flags),
       (handle, size, prop, flags), created(*handle, size, kind_of(prop)))
LOCKED(cuMemImportFromShareableHandle,
       (CUmemGenericAllocationHandle * handle, void *osHandle,
	CUmemAllocationHandleType shHandleType),
       (handle, osHandle, shHandleType), hold(*handle))
PAUSED(cuMemExportToShareableHandle,
       (void *shareableHandle, CUmemGenericAllocationHandle handle,
	CUmemAllocationHandleType handleType, unsigned long long flags),
       (shareableHandle, handle, handleType, flags), pause_handle(handle, 1),
       rs_engine_share_handle(rs_state.engine, handle))
PAUSED(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle * handle, void *addr),
       (handle, addr), pause_at((uintptr_t)addr, 1), retained(*handle, (uintptr_t)addr))
PAUSED(cuMemRelease, (CUmemGenericAllocationHandle handle), (handle), pause_at(0, 0),
       released(handle))

/* --- addresses ---------------------------------------------------------------------------------- */

static void reserved(uint64_t addr, uint64_t bytes)
{
	struct reservation *r = rs_sorted_add(&reservations, addr);

	if (r) {
		r->bytes = bytes;
		rs_engine_reserve(rs_state.engine, addr, bytes);
	}
}

LOCKED(cuMemAddressReserve,
       (CUdeviceptr * ptr, size_t size, size_t alignment, CUdeviceptr addr,
	unsigned long long flags),
       (ptr, size, alignment, addr, flags), reserved(*ptr, size))

/* A mapping inside [addr, addr + bytes), the first from *at on. */
static struct mapping *next_inside(size_t *at, uint64_t addr, uint64_t bytes)
{
	struct mapping *m = rs_sorted_at(&mappings, *at);

	return m && m->addr - addr < bytes && m->bytes <= bytes - (m->addr - addr) ? m : NULL;
}

/* Will the driver take the reservation back, as far as we know? */
static int can_unreserve(uint64_t addr, uint64_t bytes)
{
	const struct reservation *r = rs_sorted_find(&reservations, addr);
	size_t at = rs_sorted_from(&mappings, addr);

	return r && r->bytes == bytes && !next_inside(&at, addr, bytes);
}

RS_HOOK(cuMemAddressFree, (CUdeviceptr ptr, size_t size))
{
	CUresult r;
	int ours;

	RS_ENTER(t, cuMemAddressFree, (ptr, size));
	pthread_mutex_lock(&lock);
	ours = can_unreserve(ptr, size);
	if (ours)
		RS_ENGINE(rs_engine_unreserve(rs_state.engine, ptr));
	r = rs_real.cuMemAddressFree(ptr, size);
	if (ours && r == CUDA_SUCCESS)
		rs_sorted_remove(&reservations, ptr);
	else if (ours)
		RS_ENGINE(rs_engine_reserve(rs_state.engine, ptr, size));
	pthread_mutex_unlock(&lock);
	RS_LEAVE(t, r);
}

/* --- mappings ----------------------------------------------------------------------------------- */

static void mapped(uint64_t addr, uint64_t bytes, uint64_t offset, uint64_t value)
{
	struct handle *h = used(value, offset + bytes);
	struct mapping *m = rs_sorted_add(&mappings, addr);

	if (h && m)
		h->mapped++;
	if (m) {
		m->bytes = bytes;
		m->offset = offset;
		m->handle = value;
	}
	rs_engine_map(rs_state.engine, addr, bytes, value, offset);
}

PAUSED(cuMemMap,
       (CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
	unsigned long long flags),
       (ptr, size, offset, handle, flags), pause_handle(handle, 0),
       mapped(ptr, size, offset, handle))
PAUSED(cuMemSetAccess, (CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count),
       (ptr, size, desc, count), pause_at(ptr, size), rs_devremap_access(ptr, size, desc, count))

/* A handle that the driver does not give: keeps the memory mapped at addr while it is unmapped. */
static uint64_t held_for(uint64_t addr)
{
	return 1ull << 63 | addr;
}

static void leave(uint64_t addr, uint64_t bytes)
{
	const struct mapping *m;

	for (size_t i = rs_sorted_from(&mappings, addr); (m = next_inside(&i, addr, bytes)); i++)
		rs_engine_backing_retain(rs_state.engine, held_for(m->addr), m->addr);
	rs_engine_unmap(rs_state.engine, addr, bytes);
}

/* Unmapped, or refused by the driver: then it is where it was. */
static void left(uint64_t addr, uint64_t bytes, int ok)
{
	const struct mapping *m;
	struct handle *h;

	for (size_t i = rs_sorted_from(&mappings, addr); (m = next_inside(&i, addr, bytes));) {
		uint64_t held = held_for(m->addr);

		if (!ok)
			rs_engine_map(rs_state.engine, m->addr, m->bytes, held, m->offset);
		rs_engine_backing_release(rs_state.engine, held);
		if (!ok) {
			i++;
			continue;
		}
		h = rs_sorted_find(&handles, m->handle);
		rs_sorted_remove(&mappings, m->addr);
		if (h && h->mapped) {
			h->mapped--;
			settle(h);
		}
	}
}

RS_HOOK(cuMemUnmap, (CUdeviceptr ptr, size_t size))
{
	CUresult r;

	RS_ENTER(t, cuMemUnmap, (ptr, size));
	RS_ENGINE(pause_at(ptr, size));
	pthread_mutex_lock(&lock);
	RS_ENGINE(leave(ptr, size));
	r = rs_real.cuMemUnmap(ptr, size);
	RS_ENGINE(left(ptr, size, r == CUDA_SUCCESS));
	pthread_mutex_unlock(&lock);
	RS_ENGINE(rs_engine_remap_go_on(rs_state.engine));
	RS_LEAVE(t, r);
}

/* --- multicast ---------------------------------------------------------------------------------- */

static uint64_t binding_key(uint64_t multicast, uint64_t at)
{
	return rs_digest_mix(rs_digest_mix(multicast) + at);
}

/* mem 0: the memory at address `offset`. */
static void bound(uint64_t multicast, uint64_t at, uint64_t mem, uint64_t offset, uint64_t bytes)
{
	struct binding *b = rs_sorted_add(&bindings, binding_key(multicast, at));
	uint64_t times = b ? b->times : 0;

	if (b)
		*b = (struct binding){b->key, multicast, at, bytes, times + 1};
	used(multicast, at + bytes);
	if (mem)
		used(mem, offset + bytes);
	rs_engine_multicast_bind(rs_state.engine, multicast, at, mem, offset, bytes);
}

/* Each device unbinds its own memory; the engine knows the place, which is free when the last one has. */
static void unbound(uint64_t multicast, uint64_t at, uint64_t bytes)
{
	struct binding *b;

	for (size_t i = 0; (b = rs_sorted_at(&bindings, i));) {
		if (b->multicast != multicast || b->at - at >= bytes || --b->times) {
			i++;
			continue;
		}
		rs_engine_multicast_unbind(rs_state.engine, multicast, b->at, b->bytes);
		rs_sorted_remove(&bindings, b->key);
	}
}

LOCKED(cuMulticastCreate,
       (CUmemGenericAllocationHandle * mcHandle, const CUmulticastObjectProp *prop),
       (mcHandle, prop), created(*mcHandle, prop->size, RS_ALLOC_DEVICE))
PAUSED(cuMulticastBindMem,
       (CUmemGenericAllocationHandle mcHandle, size_t mcOffset,
	CUmemGenericAllocationHandle memHandle, size_t memOffset, size_t size,
	unsigned long long flags),
       (mcHandle, mcOffset, memHandle, memOffset, size, flags), pause_handle(memHandle, 1),
       bound(mcHandle, mcOffset, memHandle, memOffset, size))
PAUSED(cuMulticastBindAddr,
       (CUmemGenericAllocationHandle mcHandle, size_t mcOffset, CUdeviceptr memptr, size_t size,
	unsigned long long flags),
       (mcHandle, mcOffset, memptr, size, flags), pause_at(memptr, size),
       bound(mcHandle, mcOffset, 0, memptr, size))
LOCKED(cuMulticastUnbind,
       (CUmemGenericAllocationHandle mcHandle, CUdevice dev, size_t mcOffset, size_t size),
       (mcHandle, dev, mcOffset, size), unbound(mcHandle, mcOffset, size))

/* --- sparse arrays ------------------------------------------------------------------------------ */

/* What stands behind an array is known by more than its address. Each pause is over at once: it is fixed. */
static void fix_mapped(const CUarrayMapInfo *list, unsigned count)
{
	for (unsigned i = 0; list && i < count; i++) {
		if (list[i].memHandleType != CU_MEM_HANDLE_TYPE_GENERIC)
			continue;
		pause_handle(list[i].memHandle.memHandle, 1);
		rs_engine_remap_go_on(rs_state.engine);
	}
}

/* Other memory stands behind parts of an array from now on: nobody knows its contents. */
#define MAP_ARRAY(sym, flavour)                                                                    \
	RS_HOOK(sym, (CUarrayMapInfo * mapInfoList, unsigned int count, CUstream hStream))         \
	{                                                                                          \
		struct rs_call call;                                                               \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, (mapInfoList, count, hStream));                                   \
		RS_ENGINE(fix_mapped(mapInfoList, count));                                         \
		rs_call_begin(&call, t, RS_EP_##sym, RS_CALL_OTHER, hStream, flavour, NULL);       \
		call.untracked = 1;                                                                \
		RS_CALL(t, &call, r, sym, (mapInfoList, count, hStream));                          \
		RS_LEAVE(t, r);                                                                    \
	}
MAP_ARRAY(cuMemMapArrayAsync, RS_PLAIN)
MAP_ARRAY(cuMemMapArrayAsync_ptsz, RS_PTSZ)
