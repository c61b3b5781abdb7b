/* SPDX-License-Identifier: MIT */
/*
 * The engine's operations on the real driver (tracker/devops.h): memory that is mapped in another's place.
 *
 * A frame is a handle of ours (cuMemCreate) with an address of its own; a view is the program's handle, held by
 * cuMemRetainAllocationHandle, at an address of ours. Everything that can fail for lack of memory is done when they are
 * made; to remap is cuMemUnmap, cuMemMap, cuMemSetAccess on the program's address, and what fails of that is undone.
 *
 * Left alone, as -ENOTSUP: memory that a network card may know by its physical pages (gpuDirectRDMACapable), memory of the host,
 * compressed memory, tile pools, a mapping that is not all of its handle. Access is what cuMemGetAccess says of each device;
 * what no device may write is left alone, too: our copies could not.
 *
 * Callers: the engine, any thread, from inside wrappers and markers only, or at exit; wrap_map.c (rs_devremap_access). The
 * driver's functions here need no current context. Locks: one leaf mutex around the list, not held over driver calls but
 * those of rs_devremap_access.
 */
#include "shim/devremap.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shim/devops.h"

#define DEVICES 64 /* that are asked for their access */
#define SPINS	200

struct mapped {
	CUmemGenericAllocationHandle handle;
	CUdeviceptr addr;
	size_t bytes;
	CUdeviceptr like; /* of a frame: where the memory is mapped that it is like; 0: nowhere */
	CUmemAccessDesc access[DEVICES];
	unsigned n;
	struct mapped *next;
};

static pthread_mutex_t frames_lock = PTHREAD_MUTEX_INITIALIZER;
static struct mapped *frames; /* those with `like` */

static int remap_error(CUresult r)
{
	return r == CUDA_SUCCESS	       ? 0
	       : r == CUDA_ERROR_OUT_OF_MEMORY ? -ENOMEM
	       : r == CUDA_ERROR_NOT_SUPPORTED ? -ENOTSUP
					       : -EIO;
}

/* What each device may do at addr. 0: nobody knows, or no device may write. */
static unsigned access_of(CUdeviceptr addr, CUmemAccessDesc *desc)
{
	unsigned n = 0, writers = 0;
	int count = 0;

	if (rs_real.cuDeviceGetCount(&count) != CUDA_SUCCESS || count > DEVICES)
		return 0;
	for (int i = 0; i < count; i++) {
		CUmemLocation where = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = i};
		unsigned long long flags = 0;

		if (rs_real.cuMemGetAccess(&flags, &where, addr) != CUDA_SUCCESS)
			return 0;
		if (flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)
			continue;
		writers += flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
		desc[n++] = (CUmemAccessDesc){.location = where, .flags = (CUmemAccess_flags)flags};
	}
	return writers ? n : 0;
}

/* Whoever may touch the program's memory may be asked to copy from and to ours. */
static void allow_writes(struct mapped *m)
{
	for (unsigned i = 0; i < m->n; i++)
		m->access[i].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

static int is_plain(const CUmemAllocationProp *p)
{
	return p->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
	       p->location.type == CU_MEM_LOCATION_TYPE_DEVICE && !p->win32HandleMetaData &&
	       !p->allocFlags.gpuDirectRDMACapable && !p->allocFlags.compressionType &&
	       !p->allocFlags.usage;
}

/* The properties of what is mapped at addr; *ret_held is held. */
static int properties(CUdeviceptr addr, CUmemAllocationProp *prop,
		      CUmemGenericAllocationHandle *ret_held)
{
	CUresult r = rs_real.cuMemRetainAllocationHandle(ret_held, (void *)(uintptr_t)addr);
	int err;

	if (r != CUDA_SUCCESS)
		return remap_error(r);
	err = remap_error(rs_real.cuMemGetAllocationPropertiesFromHandle(prop, *ret_held));
	if (!err && !is_plain(prop))
		err = -ENOTSUP;
	if (err)
		rs_real.cuMemRelease(*ret_held);
	return err;
}

/* An address for m->handle, with m->access; on failure the handle stays the caller's. */
static int give_address(struct mapped *m)
{
	CUdeviceptr at = 0;
	CUresult r = rs_real.cuMemAddressReserve(&at, m->bytes, 0, 0, 0);

	if (r != CUDA_SUCCESS)
		return remap_error(r);
	r = rs_real.cuMemMap(at, m->bytes, 0, m->handle, 0);
	if (r == CUDA_SUCCESS) {
		r = rs_real.cuMemSetAccess(at, m->bytes, m->access, m->n);
		if (r != CUDA_SUCCESS)
			rs_real.cuMemUnmap(at, m->bytes);
	}
	if (r != CUDA_SUCCESS)
		rs_real.cuMemAddressFree(at, m->bytes);
	else
		m->addr = at;
	return remap_error(r);
}

static void enlist(struct mapped *m)
{
	pthread_mutex_lock(&frames_lock);
	m->next = frames;
	frames = m;
	pthread_mutex_unlock(&frames_lock);
}

static void unlist(const struct mapped *m)
{
	pthread_mutex_lock(&frames_lock);
	for (struct mapped **at = &frames; *at; at = &(*at)->next)
		if (*at == m) {
			*at = m->next;
			break;
		}
	pthread_mutex_unlock(&frames_lock);
}

/* Of the context's device, in the sizes that it is made in. */
static int own_properties(uint64_t ctx, CUmemAllocationProp *prop, size_t *bytes)
{
	struct rs_dev_frame f;
	size_t unit = 0;
	CUdevice device = 0;
	int err = rs_dev_enter(&f, ctx);

	if (err)
		return err;
	err = rs_dev_leave(&f, rs_real.cuCtxGetDevice(&device));
	memset(prop, 0, sizeof(*prop));
	prop->type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop->location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
	if (!err)
		err = remap_error(rs_real.cuMemGetAllocationGranularity(
			&unit, prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	if (err || !unit)
		return err ? err : -ENOTSUP;
	*bytes = (*bytes + unit - 1) / unit * unit;
	return 0;
}

/* The handle's properties and the access to it, as those of what is mapped at addr. */
static int like(struct mapped *m, CUdeviceptr addr, CUmemAllocationProp *prop)
{
	CUmemGenericAllocationHandle held;
	int err = properties(addr, prop, &held);

	if (err)
		return err;
	rs_real.cuMemRelease(held);
	m->n = access_of(addr, m->access);
	return m->n ? 0 : -ENOTSUP;
}

int rs_dev_frame_alloc(void *opaque, struct rs_queue q, uint64_t addr, uint64_t bytes,
		       uint64_t *ret_frame, uint64_t *ret_addr)
{
	struct mapped *m = calloc(1, sizeof(*m));
	CUmemAllocationProp prop;
	int err;

	(void)opaque;
	if (!m)
		return -ENOMEM;
	m->bytes = bytes;
	m->like = addr;
	if (addr) {
		err = like(m, addr, &prop);
	} else {
		err = own_properties(q.ctx, &prop, &m->bytes);
		m->access[0].location = prop.location;
		m->n = 1;
	}
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE; /* nobody is handed ours */
	allow_writes(m);
	if (!err)
		err = remap_error(rs_real.cuMemCreate(&m->handle, m->bytes, &prop, 0));
	if (!err) {
		err = give_address(m);
		if (err)
			rs_real.cuMemRelease(m->handle);
	}
	if (err) {
		free(m);
		return err;
	}
	if (addr)
		enlist(m);
	*ret_frame = (uintptr_t)m;
	*ret_addr = m->addr;
	return 0;
}

int rs_dev_frame_view(void *opaque, struct rs_queue q, uint64_t addr, uint64_t bytes,
		      uint64_t *ret_frame, uint64_t *ret_addr)
{
	struct mapped *m = calloc(1, sizeof(*m)), exact;
	CUmemAllocationProp prop;
	int err;

	(void)opaque;
	(void)q;
	if (!m)
		return -ENOMEM;
	m->bytes = bytes;
	err = properties(addr, &prop, &m->handle);
	if (!err) {
		m->n = access_of(addr, m->access);
		exact = *m;
		allow_writes(m);
		err = m->n ? give_address(m) : -ENOTSUP;
		if (err)
			rs_real.cuMemRelease(m->handle);
		memcpy(m->access, exact.access, sizeof(m->access)); /* what addr is given back */
	}
	if (err) {
		free(m);
		return err;
	}
	*ret_frame = (uintptr_t)m;
	*ret_addr = m->addr;
	return 0;
}

void rs_dev_frame_free(void *opaque, uint64_t frame)
{
	struct mapped *m = (struct mapped *)(uintptr_t)frame;

	(void)opaque;
	if (!m)
		return;
	if (m->like)
		unlist(m);
	if (rs_real.cuMemUnmap(m->addr, m->bytes) == CUDA_SUCCESS)
		rs_real.cuMemAddressFree(m->addr, m->bytes);
	rs_real.cuMemRelease(m->handle);
	free(m);
}

/* 0 or -errno: then nothing is mapped. */
static int map_at(CUdeviceptr at, const struct mapped *m, const struct mapped *home)
{
	CUresult r = rs_real.cuMemMap(at, m->bytes, 0, m->handle, 0);

	if (r != CUDA_SUCCESS)
		return remap_error(r);
	r = rs_real.cuMemSetAccess(at, m->bytes, home->access, home->n);
	if (r != CUDA_SUCCESS && rs_real.cuMemUnmap(at, m->bytes) != CUDA_SUCCESS)
		return -EFAULT;
	return remap_error(r);
}

int rs_dev_remap(void *opaque, uint64_t addr, uint64_t bytes, uint64_t home, uint64_t from,
		 uint64_t to)
{
	const struct mapped *was = (struct mapped *)(uintptr_t)from;
	int err;

	(void)opaque;
	if (was && rs_real.cuMemUnmap(addr, bytes) != CUDA_SUCCESS)
		return -EIO;
	err = map_at(addr, (struct mapped *)(uintptr_t)to, (struct mapped *)(uintptr_t)home);
	if (!err || err == -EFAULT)
		return err;
	if (!was || map_at(addr, was, (struct mapped *)(uintptr_t)home))
		return -EFAULT;
	return err;
}

static uint64_t host_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* It is asked for again and again: cuEventSynchronize would wait for ever. */
int rs_dev_event_within(void *opaque, uint64_t event, uint64_t ns)
{
	uint64_t end = host_ns() + ns;
	unsigned n = 0;
	int done;

	/* the driver refuses to unmap, or breaks the capture, as it likes */
	if (__atomic_load_n(&rs_state.captures, __ATOMIC_RELAXED))
		return -EXDEV;
	while (!(done = rs_dev_event_done(opaque, event))) {
		if (host_ns() >= end)
			return -ETIMEDOUT;
		if (n++ > SPINS)
			nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
	}
	return done < 0 ? done : 0;
}

/* The program has given devices access to its memory: they may have to copy what is preserved of it, too. */
void rs_devremap_access(uint64_t addr, uint64_t bytes, const CUmemAccessDesc *desc, size_t n)
{
	pthread_mutex_lock(&frames_lock);
	for (const struct mapped *m = frames; m; m = m->next) {
		if (m->like < addr || m->like - addr >= bytes)
			continue;
		for (size_t i = 0; i < n; i++) {
			CUmemAccessDesc d = desc[i];

			d.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
			if (desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
				rs_real.cuMemSetAccess(m->addr, m->bytes, &d, 1);
		}
	}
	pthread_mutex_unlock(&frames_lock);
}
