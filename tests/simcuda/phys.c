/* SPDX-License-Identifier: MIT */
/*
 * Physical memory by handle: cuMemCreate, cuMemRelease, properties, and handing it to other processes.
 *
 * The bytes of a handle are a shared mapping, `home`, that every mapping into a reservation
 * (vmm.c) is a second view of; so is its initialisation map. A shareable handle's bytes are a memfd
 * with a trailer that says what they are; the file descriptor that is exported is that memfd.
 * Memory lives until its handle is released as often as it was created, imported or retained, and
 * nothing maps it. What other processes may write counts as initialised. Driver lock held.
 */
#include "tests/simcuda/vmm.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRAILER_BYTES 4096
#define TRAILER_MAGIC 0x53494d50485953ull

struct trailer {
	uint64_t magic, size;
	CUmemAllocationProp prop;
};

static uint64_t next_serial = 1;

struct sim_phys *sim_phys_get(CUmemGenericAllocationHandle h)
{
	void *p = (void *)(uintptr_t)h;

	return sim_handle_is(p, SIM_H_PHYS) ? p : NULL;
}

static bool host_location(CUmemLocationType type)
{
	return type == CU_MEM_LOCATION_TYPE_HOST || type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
}

static CUresult check(const CUmemAllocationProp *prop)
{
	if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->requestedHandleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
		return prop->location.id < 0 || prop->location.id >= (int)sim_options.devices
			       ? CUDA_ERROR_INVALID_DEVICE
			       : CUDA_SUCCESS;
	if (!host_location(prop->location.type))
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->location.type == CU_MEM_LOCATION_TYPE_HOST)
		return prop->requestedHandleTypes ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	return prop->location.id ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static uint8_t *map_shared(uint64_t size, int fd)
{
	int flags = MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS | MAP_NORESERVE : 0);
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void destroy(struct sim_phys *p)
{
	if (p->mc)
		sim_multicast_free(p);
	if (p->home)
		munmap(p->home, p->size);
	if (p->written)
		munmap(p->written, p->size);
	if (p->fd >= 0)
		close(p->fd);
	free(p);
}

/* The bytes: of fd if it is not negative (then owned, even on failure). */
static CUresult phys_make(const CUmemAllocationProp *prop, uint64_t size, int fd,
			  struct sim_phys **ret)
{
	struct sim_phys *p = calloc(1, sizeof(*p));

	if (!p) {
		close(fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	p->prop = *prop;
	p->dev_id = prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? prop->location.id : -1;
	p->size = size;
	p->fd = fd;
	p->handles = 1;
	p->home = map_shared(size, fd);
	if (sim_options.check_uninit)
		p->written = map_shared(size, -1);
	if (!p->home || (sim_options.check_uninit && !p->written) ||
	    sim_handle_add(p, SIM_H_PHYS)) {
		destroy(p);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	p->serial = next_serial++;
	*ret = p;
	return CUDA_SUCCESS;
}

static int shareable_file(const CUmemAllocationProp *prop, uint64_t size)
{
	struct trailer t = {TRAILER_MAGIC, size, *prop};
	uint64_t nonce;
	int fd = sim_share_file("memory", size + TRAILER_BYTES, &nonce);

	t.prop.win32HandleMetaData = NULL;
	if (fd >= 0 && pwrite(fd, &t, sizeof(t), (off_t)size) != sizeof(t)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

CUresult sim_phys_new(const CUmemAllocationProp *prop, uint64_t size, struct sim_phys **ret)
{
	int fd = -1;
	CUresult r;

	if (prop->requestedHandleTypes) {
		fd = shareable_file(prop, size);
		if (fd < 0)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = phys_make(prop, size, fd, ret);
	if (r)
		return r;
	sim_mem_fill((uint64_t)(uintptr_t)(*ret)->home, size, SIM_PATTERN);
	/* The host writes its memory unseen. */
	if ((*ret)->written && (*ret)->dev_id < 0)
		memset((*ret)->written, 1, size);
	return CUDA_SUCCESS;
}

static void maybe_destroy(struct sim_phys *p)
{
	if (p->handles || p->uses)
		return;
	if (!p->imported && !p->mc)
		sim_mem_uncharge(p->dev_id, p->size);
	destroy(p);
}

void sim_phys_use(struct sim_phys *p)
{
	p->uses++;
}

void sim_phys_unuse(struct sim_phys *p)
{
	p->uses--;
	maybe_destroy(p);
}

static bool charge(int dev, uint64_t size)
{
	if (sim_mem_charge(dev, size))
		return true;
	if (dev >= 0)
		sim_pool_trim_all(dev);
	return sim_mem_charge(dev, size);
}

SIM_API(cuMemCreate, SIM_INIT,
	P(CUmemGenericAllocationHandle *ret, size_t size, const CUmemAllocationProp *prop,
	  unsigned long long flags),
	P(ret, size, prop, flags))
{
	CUresult r = ret && !flags ? check(prop) : CUDA_ERROR_INVALID_VALUE;
	struct sim_phys *p;
	int dev;

	if (r)
		return r;
	if (!size || size % SIM_GRANULARITY)
		return CUDA_ERROR_INVALID_VALUE;
	dev = prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? prop->location.id : -1;
	if (size > (1ull << 46) || !charge(dev, size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = sim_phys_new(prop, size, &p);
	if (r) {
		sim_mem_uncharge(dev, size);
		return r;
	}
	*ret = (CUmemGenericAllocationHandle)(uintptr_t)p;
	return CUDA_SUCCESS;
}

SIM_API(cuMemRelease, SIM_INIT, P(CUmemGenericAllocationHandle h), P(h))
{
	struct sim_phys *p = sim_phys_get(h);

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	if (!--p->handles)
		sim_handle_del(p);
	maybe_destroy(p);
	return CUDA_SUCCESS;
}

SIM_API(cuMemRetainAllocationHandle, SIM_INIT, P(CUmemGenericAllocationHandle *ret, void *addr),
	P(ret, addr))
{
	struct sim_alloc *a = sim_mem_find((uint64_t)(uintptr_t)addr);
	struct sim_phys *p = a && a->kind == SIM_MEM_MAPPED ? a->map->phys : NULL;

	if (!ret || !p)
		return CUDA_ERROR_INVALID_VALUE;
	/* Memory that is only mapped gets its handle back, with the same value. */
	if (!p->handles && sim_handle_add(p, SIM_H_PHYS))
		return CUDA_ERROR_OUT_OF_MEMORY;
	p->handles++;
	*ret = (CUmemGenericAllocationHandle)(uintptr_t)p;
	return CUDA_SUCCESS;
}

SIM_API(cuMemGetAllocationGranularity, SIM_INIT,
	P(size_t *ret, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option),
	P(ret, prop, option))
{
	CUresult r = ret ? check(prop) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
	    option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = SIM_GRANULARITY;
	return CUDA_SUCCESS;
}

SIM_API(cuMemGetAllocationPropertiesFromHandle, SIM_INIT,
	P(CUmemAllocationProp *ret, CUmemGenericAllocationHandle h), P(ret, h))
{
	struct sim_phys *p = sim_phys_get(h);

	if (!ret || !p || p->mc)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = p->prop;
	return CUDA_SUCCESS;
}

/* ---- other processes ---- */

SIM_API(cuMemExportToShareableHandle, SIM_INIT,
	P(void *ret, CUmemGenericAllocationHandle h, CUmemAllocationHandleType type,
	  unsigned long long flags),
	P(ret, h, type, flags))
{
	struct sim_phys *p = sim_phys_get(h);
	int fd;

	if (!ret || !p || flags || !type || (type & (type - 1)))
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (p->fd < 0)
		return CUDA_ERROR_INVALID_VALUE; /* not asked for when it was created */
	fd = fcntl(p->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (p->written)
		memset(p->written, 1, p->size);
	memcpy(ret, &fd, sizeof(fd));
	return CUDA_SUCCESS;
}

SIM_API(cuMemImportFromShareableHandle, SIM_INIT,
	P(CUmemGenericAllocationHandle *ret, void *handle, CUmemAllocationHandleType type),
	P(ret, handle, type))
{
	int fd = (int)(intptr_t)handle;
	struct sim_phys *p;
	struct trailer t;
	struct stat st;
	CUresult r;

	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return type ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
	if (fstat(fd, &st) || st.st_size <= TRAILER_BYTES ||
	    pread(fd, &t, sizeof(t), st.st_size - TRAILER_BYTES) != sizeof(t) ||
	    t.magic != TRAILER_MAGIC || t.size != (uint64_t)st.st_size - TRAILER_BYTES)
		return CUDA_ERROR_INVALID_VALUE; /* not one of ours */
	r = check(&t.prop);
	if (r)
		return r;
	/* The descriptor stays the caller's. */
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = phys_make(&t.prop, t.size, fd, &p);
	if (r)
		return r;
	p->imported = true;
	if (p->written)
		memset(p->written, 1, p->size);
	*ret = (CUmemGenericAllocationHandle)(uintptr_t)p;
	return CUDA_SUCCESS;
}

SIM_API(cuMemGetHandleForAddressRange, SIM_CTX,
	P(void *ret, CUdeviceptr p, size_t size, CUmemRangeHandleType type,
	  unsigned long long flags),
	P(ret, p, size, type, flags))
{
	(void)type, (void)flags;
	/* There is no dma-buf of memory that is no device's. */
	return ret && size && sim_mem_covers(p, size) ? CUDA_ERROR_NOT_SUPPORTED
						      : CUDA_ERROR_INVALID_VALUE;
}
