/* SPDX-License-Identifier: MIT */
/*
 * Virtual memory management: reservations, mappings, access.
 *
 * A mapping is a second view of the pages behind a handle (phys.c), put into a reservation; a record of
 * kind SIM_MEM_MAPPED in the address trees, known to the API from cuMemMap on and to executing ops
 * while some device has access. Adjacent mappings of one reservation are one range for kernels and
 * copies (memory.c). A mapping without access is not readable by the host, either.
 *
 * cuMemUnmap, and a cuMemSetAccess that takes access away, first wait for everything queued in every
 * context; what is queued later and touches the range faults when its turn comes. An offset into the
 * handle may be given to cuMemMap (the manual: "currently must be zero"), for the sake of what
 * watches overlapping aliases. Access of single devices holds for kernels; copies and fills ask only
 * whether any device has it. Driver lock held.
 */
#include "tests/simcuda/vmm.h"

#include <stdlib.h>
#include <sys/mman.h>

#define HOST_PAGE 4096u

static void *ptr(uint64_t addr)
{
	return (void *)(uintptr_t)addr;
}

/* ---- reservations ---- */

SIM_API(cuMemAddressReserve, SIM_INIT,
	P(CUdeviceptr *ret, size_t size, size_t align, CUdeviceptr hint, unsigned long long flags),
	P(ret, size, align, hint, flags))
{
	struct sim_resv *v;

	if (!ret || !size || size % HOST_PAGE || (align & (align - 1)) || hint % HOST_PAGE || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (align < SIM_GRANULARITY)
		align = SIM_GRANULARITY;
	if (size > (1ull << 46) || align > (1ull << 46))
		return CUDA_ERROR_OUT_OF_MEMORY;
	v = calloc(1, sizeof(*v));
	if (!v)
		return CUDA_ERROR_OUT_OF_MEMORY;
	v->size = size;
	if (sim_options.check_uninit) {
		v->shadow = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				 -1, 0);
		if (v->shadow == MAP_FAILED)
			v->shadow = NULL;
	}
	if (!sim_options.check_uninit || v->shadow)
		v->base = sim_va_get(size, align, hint);
	if (!v->base) {
		if (v->shadow)
			munmap(v->shadow, size);
		free(v);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	sim_tree_insert(&sim_resv_tree, &v->node, v->base, size, v);
	*ret = v->base;
	return CUDA_SUCCESS;
}

SIM_API(cuMemAddressFree, SIM_INIT, P(CUdeviceptr p, size_t size), P(p, size))
{
	struct sim_resv *v = sim_tree_find(&sim_resv_tree, p);

	if (!v || v->base != p || v->size != size || v->mapped)
		return CUDA_ERROR_INVALID_VALUE;
	sim_tree_remove(&sim_resv_tree, &v->node);
	if (v->shadow)
		munmap(v->shadow, size);
	sim_va_put(p, size);
	free(v);
	return CUDA_SUCCESS;
}

/* ---- mappings ---- */

/* A second view of [from, from + size) at `to`, not accessible yet. */
static bool alias(uint8_t *from, uint64_t size, uint64_t to)
{
	void *p = mremap(from, 0, size, MREMAP_MAYMOVE | MREMAP_FIXED, ptr(to));

	return p != MAP_FAILED;
}

static CUresult map(struct sim_resv *v, uint64_t at, uint64_t size, struct sim_phys *p,
		    uint64_t offset)
{
	struct sim_mapping *m = calloc(1, sizeof(*m));
	struct sim_alloc *a;

	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*m = (struct sim_mapping){.origin = SIM_MAP_VMM, .phys = p, .offset = offset, .resv = v};
	if (!alias(p->home + offset, size, at) ||
	    (v->shadow &&
	     !alias(p->written + offset, size, (uint64_t)(uintptr_t)v->shadow + at - v->base)))
		goto failed;
	mprotect(ptr(at), size, PROT_NONE);
	a = sim_mem_record(NULL, SIM_MEM_MAPPED, at, size, 0, 0);
	if (!a)
		goto failed;
	a->dev_id = p->dev_id;
	a->map = m;
	if (v->shadow)
		a->init = v->shadow + (at - v->base);
	v->mapped++;
	sim_phys_use(p);
	return CUDA_SUCCESS;
failed:
	sim_va_close(at, size);
	free(m);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_API(cuMemMap, SIM_INIT,
	P(CUdeviceptr at, size_t size, size_t offset, CUmemGenericAllocationHandle h,
	  unsigned long long flags),
	P(at, size, offset, h, flags))
{
	struct sim_phys *p = sim_phys_get(h);
	struct sim_resv *v;
	CUresult r;

	if (!p || flags || !size || (at | size | offset) % SIM_GRANULARITY || offset > p->size ||
	    size > p->size - offset)
		return CUDA_ERROR_INVALID_VALUE;
	if (p->mc) {
		r = sim_multicast_wait(h);
		if (r)
			return r;
		p = sim_phys_get(h);
	}
	v = sim_tree_find(&sim_resv_tree, at);
	if (!p || !v || size > v->size - (at - v->base) ||
	    sim_tree_overlaps(&sim_mem_host, at, size))
		return CUDA_ERROR_INVALID_VALUE;
	sim_clock_host_takes(sim_options.profile->map_ns);
	return map(v, at, size, p, offset);
}

void sim_map_drop(struct sim_alloc *a)
{
	struct sim_mapping m = *a->map;
	uint64_t base = a->base, size = a->size;

	sim_mem_forget(a);
	if (!m.resv) {
		sim_va_close(m.va, m.va_size);
		sim_va_put(m.va, m.va_size);
		return;
	}
	sim_va_close(base, size);
	if (m.resv->shadow)
		sim_va_close((uint64_t)(uintptr_t)m.resv->shadow + base - m.resv->base, size);
	m.resv->mapped--;
	sim_phys_unuse(m.phys);
}

static struct sim_alloc *mapping_at(uint64_t addr)
{
	struct sim_alloc *a = sim_mem_find(addr);

	return a && a->kind == SIM_MEM_MAPPED && a->map->resv ? a : NULL;
}

/* Is [at, at + size) made of whole mappings? */
static bool whole(uint64_t at, uint64_t size)
{
	struct sim_alloc *a = mapping_at(at);

	if (!a || a->base != at)
		return false;
	for (; size; size -= a->size, at += a->size) {
		a = mapping_at(at);
		if (!a || a->size > size)
			return false;
	}
	return true;
}

SIM_API(cuMemUnmap, SIM_INIT, P(CUdeviceptr at, size_t size), P(at, size))
{
	if (!size || !whole(at, size))
		return CUDA_ERROR_INVALID_VALUE;
	sim_ctx_sync_all();
	if (!whole(at, size))
		return CUDA_ERROR_INVALID_VALUE; /* another thread was faster */
	sim_clock_host_takes(sim_options.profile->access_ns);
	for (uint64_t end = at + size; at < end;) {
		struct sim_alloc *a = mapping_at(at);

		at += a->size;
		sim_map_drop(a);
	}
	return CUDA_SUCCESS;
}

/* ---- access ---- */

static bool host_type(CUmemLocationType type)
{
	return type == CU_MEM_LOCATION_TYPE_HOST || type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
}

/* The bit of a location, for memory of device dev. */
static CUresult location_bit(const CUmemLocation *where, int dev, uint32_t *ret)
{
	if (where->type == CU_MEM_LOCATION_TYPE_DEVICE) {
		if (where->id < 0 || where->id >= (int)sim_options.devices)
			return CUDA_ERROR_INVALID_DEVICE;
		*ret = 1u << where->id;
		return CUDA_SUCCESS;
	}
	if (!host_type(where->type))
		return CUDA_ERROR_INVALID_VALUE;
	if (dev >= 0) /* the host cannot be given access to device memory */
		return where->type == CU_MEM_LOCATION_TYPE_HOST ? CUDA_ERROR_NOT_SUPPORTED
								: CUDA_ERROR_INVALID_VALUE;
	*ret = SIM_HOST_BIT;
	return CUDA_SUCCESS;
}

struct change {
	uint32_t readers, writers, all;
};

/* What desc asks for, checked against every mapping of the range. */
static CUresult changes(uint64_t at, uint64_t size, const CUmemAccessDesc *desc, size_t n,
			struct change *ret)
{
	*ret = (struct change){0};
	for (uint64_t end = at + size; at < end; at += mapping_at(at)->size) {
		for (size_t i = 0; i < n; i++) {
			unsigned flags = desc[i].flags;
			uint32_t bit;
			CUresult r = location_bit(&desc[i].location, mapping_at(at)->dev_id, &bit);

			if (r)
				return r;
			if (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
			    flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
			    flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
				return CUDA_ERROR_INVALID_VALUE;
			ret->all |= bit;
			ret->readers = (ret->readers & ~bit) | (flags & 1 ? bit : 0);
			ret->writers = (ret->writers & ~bit) | (flags & 2 ? bit : 0);
		}
	}
	return CUDA_SUCCESS;
}

static void set_access(struct sim_alloc *a, const struct change *c)
{
	struct sim_mapping *m = a->map;
	bool was = m->readers;

	m->readers = (m->readers & ~c->all) | c->readers;
	m->writers = (m->writers & ~c->all) | c->writers;
	if (m->readers && !was) {
		mprotect(ptr(a->base), a->size, PROT_READ | PROT_WRITE);
		sim_mem_show(a);
	} else if (!m->readers && was) {
		sim_tree_remove(&sim_mem_dev, &a->dev);
		a->in_dev = false;
		mprotect(ptr(a->base), a->size, PROT_NONE);
	}
	sim_mem_dev.generation++; /* contexts gather their ranges again */
}

static bool takes_away(uint64_t at, uint64_t size, const struct change *c)
{
	for (uint64_t end = at + size; at < end; at += mapping_at(at)->size) {
		const struct sim_mapping *m = mapping_at(at)->map;

		if ((m->readers & c->all & ~c->readers) || (m->writers & c->all & ~c->writers))
			return true;
	}
	return false;
}

SIM_API(cuMemSetAccess, SIM_INIT,
	P(CUdeviceptr at, size_t size, const CUmemAccessDesc *desc, size_t n), P(at, size, desc, n))
{
	struct change c;
	CUresult r;

	if (!desc || !n || !size || !whole(at, size))
		return CUDA_ERROR_INVALID_VALUE;
	r = changes(at, size, desc, n, &c);
	if (r)
		return r;
	if (takes_away(at, size, &c)) {
		sim_ctx_sync_all();
		if (!whole(at, size))
			return CUDA_ERROR_INVALID_VALUE;
	}
	sim_clock_host_takes(sim_options.profile->access_ns);
	for (uint64_t end = at + size; at < end; at += mapping_at(at)->size)
		set_access(mapping_at(at), &c);
	return CUDA_SUCCESS;
}

SIM_API(cuMemGetAccess, SIM_INIT,
	P(unsigned long long *ret, const CUmemLocation *where, CUdeviceptr p), P(ret, where, p))
{
	struct sim_alloc *a = mapping_at(p);
	uint32_t bit;
	CUresult r;

	if (!ret || !where || !a)
		return CUDA_ERROR_INVALID_VALUE;
	r = location_bit(where, a->dev_id, &bit);
	if (r)
		return r;
	*ret = a->map->writers & bit   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
	       : a->map->readers & bit ? CU_MEM_ACCESS_FLAGS_PROT_READ
				       : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return CUDA_SUCCESS;
}

SIM_TWINS(cuMemMapArrayAsync, _ptsz, SIM_CTX, P(CUarrayMapInfo *list, unsigned n, CUstream h),
	  P(list, n, h))
{
	CUstream s;
	CUresult r = list && n ? sim_stream_get(call, h, &s) : CUDA_ERROR_INVALID_VALUE;

	return r ? r : CUDA_ERROR_NOT_SUPPORTED; /* no sparse arrays */
}
