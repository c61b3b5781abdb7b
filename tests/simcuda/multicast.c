/* SPDX-License-Identifier: MIT */
/*
 * Multicast objects: one mapping, writes reach the memory bound to it on every device of the team.
 *
 * An object is a handle like any other (phys.c), so it is mapped and given access by vmm.c; its own
 * bytes are where stores to the mapping land. After an op those stores are copied to every binding that
 * covers them: of copies, fills and stream writes the bytes they wrote, of a kernel the bytes noted
 * while it ran. Loads through the mapping see what was stored last (a real device leaves that
 * undefined), atomics work on that, and there is no multimem.* instruction. Objects are not shareable.
 *
 * Binding and mapping wait until the team is complete, as the manual says; other threads may add
 * devices meanwhile. When nobody has for as long as any wait may hang, the call ends with
 * CUDA_ERROR_ILLEGAL_STATE. Driver lock held.
 */
#include "tests/simcuda/vmm.h"

#include <stdlib.h>
#include <string.h>

struct sim_multicast {
	unsigned ndevices; /* of the complete team */
	uint32_t team;
	struct binding {
		int dev_id;
		uint64_t at, size; /* in the object */
		struct sim_phys *phys;
		uint64_t offset;
	} * binds;
	size_t nbinds;
};

unsigned sim_multicast_live;

static struct sim_phys *object(CUmemGenericAllocationHandle h)
{
	struct sim_phys *p = sim_phys_get(h);

	return p && p->mc ? p : NULL;
}

static CUresult check(const CUmulticastObjectProp *prop)
{
	if (!prop || !prop->numDevices || prop->flags || !prop->size)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->numDevices > sim_options.devices)
		return CUDA_ERROR_INVALID_DEVICE;
	return prop->handleTypes ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

SIM_API(cuMulticastCreate, SIM_INIT,
	P(CUmemGenericAllocationHandle *ret, const CUmulticastObjectProp *prop), P(ret, prop))
{
	CUmemAllocationProp own = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
	};
	CUresult r = ret ? check(prop) : CUDA_ERROR_INVALID_VALUE;
	struct sim_phys *p;

	if (!r && prop->size % SIM_GRANULARITY)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = sim_phys_new(&own, prop->size, &p);
	if (r)
		return r;
	p->mc = calloc(1, sizeof(*p->mc));
	if (!p->mc) {
		sim_handle_del(p);
		p->imported = true; /* it has no memory of a device to give back */
		p->handles = 0;
		sim_phys_use(p);
		sim_phys_unuse(p);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (p->written)
		memset(p->written, 1, p->size);
	p->mc->ndevices = prop->numDevices;
	sim_multicast_live++;
	*ret = (CUmemGenericAllocationHandle)(uintptr_t)p;
	return CUDA_SUCCESS;
}

void sim_multicast_free(struct sim_phys *p)
{
	for (size_t i = 0; i < p->mc->nbinds; i++)
		sim_phys_unuse(p->mc->binds[i].phys);
	free(p->mc->binds);
	free(p->mc);
	sim_multicast_live--;
}

SIM_API(cuMulticastAddDevice, SIM_INIT, P(CUmemGenericAllocationHandle h, CUdevice dev), P(h, dev))
{
	struct sim_phys *p = object(h);

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	if (dev < 0 || dev >= (int)sim_options.devices)
		return CUDA_ERROR_INVALID_DEVICE;
	if (p->mc->team >> dev & 1 || (unsigned)__builtin_popcount(p->mc->team) == p->mc->ndevices)
		return CUDA_ERROR_INVALID_VALUE;
	p->mc->team |= 1u << dev;
	sim_api_wake();
	return CUDA_SUCCESS;
}

CUresult sim_multicast_wait(CUmemGenericAllocationHandle h)
{
	for (unsigned ms = 0;; ms++) {
		struct sim_phys *p = object(h);

		if (!p)
			return CUDA_ERROR_INVALID_VALUE;
		if ((unsigned)__builtin_popcount(p->mc->team) == p->mc->ndevices)
			return CUDA_SUCCESS;
		if (ms >= sim_options.hang_ms) {
			sim_log("deadlock: a multicast object waits for %u more device(s)",
				p->mc->ndevices - (unsigned)__builtin_popcount(p->mc->team));
			return CUDA_ERROR_ILLEGAL_STATE;
		}
		sim_api_wait(1);
	}
}

static CUresult bind_phys(struct sim_phys *p, uint64_t at, struct sim_phys *mem, uint64_t offset,
			  uint64_t size)
{
	struct sim_multicast *mc = p->mc;
	struct binding *b;

	if (!size || (at | offset | size) % SIM_GRANULARITY || at > p->size ||
	    size > p->size - at || offset > mem->size || size > mem->size - offset || mem->mc)
		return CUDA_ERROR_INVALID_VALUE;
	if (mem->dev_id < 0 || !(mc->team >> mem->dev_id & 1))
		return CUDA_ERROR_INVALID_DEVICE;
	for (size_t i = 0; i < mc->nbinds; i++)
		if (mc->binds[i].dev_id == mem->dev_id && mc->binds[i].at < at + size &&
		    at < mc->binds[i].at + mc->binds[i].size)
			return CUDA_ERROR_INVALID_VALUE;
	b = realloc(mc->binds, (mc->nbinds + 1) * sizeof(*b));
	if (!b)
		return CUDA_ERROR_OUT_OF_MEMORY;
	mc->binds = b;
	b[mc->nbinds++] = (struct binding){mem->dev_id, at, size, mem, offset};
	sim_phys_use(mem);
	return CUDA_SUCCESS;
}

SIM_API(cuMulticastBindMem, SIM_INIT,
	P(CUmemGenericAllocationHandle h, size_t at, CUmemGenericAllocationHandle mem,
	  size_t offset, size_t size, unsigned long long flags),
	P(h, at, mem, offset, size, flags))
{
	CUresult r = object(h) && sim_phys_get(mem) && !flags ? sim_multicast_wait(h)
							      : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	return sim_phys_get(mem) ? bind_phys(object(h), at, sim_phys_get(mem), offset, size)
				 : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuMulticastBindAddr, SIM_INIT,
	P(CUmemGenericAllocationHandle h, size_t at, CUdeviceptr addr, size_t size,
	  unsigned long long flags),
	P(h, at, addr, size, flags))
{
	CUresult r = object(h) && !flags ? sim_multicast_wait(h) : CUDA_ERROR_INVALID_VALUE;
	struct sim_alloc *a;

	if (r)
		return r;
	a = sim_mem_find(addr);
	/* Pool memory may be bound, too, but none of this device's is aligned well enough. */
	if (!a || a->kind != SIM_MEM_MAPPED || !a->map->phys || size > a->size - (addr - a->base))
		return CUDA_ERROR_INVALID_VALUE;
	return bind_phys(object(h), at, a->map->phys, a->map->offset + (addr - a->base), size);
}

SIM_API(cuMulticastUnbind, SIM_INIT,
	P(CUmemGenericAllocationHandle h, CUdevice dev, size_t at, size_t size),
	P(h, dev, at, size))
{
	struct sim_phys *p = object(h);

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	if (dev < 0 || dev >= (int)sim_options.devices)
		return CUDA_ERROR_INVALID_DEVICE;
	sim_ctx_sync_all();
	p = object(h);
	for (size_t i = 0; p && i < p->mc->nbinds; i++) {
		struct binding b = p->mc->binds[i];

		if (b.dev_id != dev || b.at != at || b.size != size)
			continue;
		p->mc->binds[i] = p->mc->binds[--p->mc->nbinds];
		sim_phys_unuse(b.phys);
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE; /* must match a bind */
}

SIM_API(cuMulticastGetGranularity, SIM_INIT,
	P(size_t *ret, const CUmulticastObjectProp *prop, CUmulticastGranularity_flags option),
	P(ret, prop, option))
{
	CUresult r = ret ? check(prop) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (option != CU_MULTICAST_GRANULARITY_MINIMUM &&
	    option != CU_MULTICAST_GRANULARITY_RECOMMENDED)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = SIM_GRANULARITY;
	return CUDA_SUCCESS;
}

/* ---- writes ---- */

static void spread(const struct sim_phys *p, uint64_t at, uint64_t size)
{
	for (size_t i = 0; i < p->mc->nbinds; i++) {
		const struct binding *b = &p->mc->binds[i];
		uint64_t from = at > b->at ? at : b->at;
		uint64_t to = at + size < b->at + b->size ? at + size : b->at + b->size;
		uint64_t in = b->offset + (from - b->at);

		if (from >= to)
			continue;
		memcpy(b->phys->home + in, p->home + from, to - from);
		if (b->phys->written)
			memset(b->phys->written + in, 1, to - from);
	}
}

void sim_multicast_written(uint64_t addr, uint64_t size)
{
	while (sim_multicast_live && size) {
		struct sim_alloc *a = sim_tree_find(&sim_mem_dev, addr);
		uint64_t n;

		if (!a || a->kind != SIM_MEM_MAPPED)
			return;
		n = a->size - (addr - a->base);
		if (n > size)
			n = size;
		if (a->map->phys && a->map->phys->mc)
			spread(a->map->phys, a->map->offset + (addr - a->base), n);
		addr += n;
		size -= n;
	}
}

void sim_multicast_note(void *opaque, uint64_t addr, unsigned bytes, int is_write)
{
	struct sim_write_log *log = opaque;
	struct sim_alloc *a = is_write ? sim_tree_find(&sim_mem_dev, addr) : NULL;
	struct sim_written *last = log->n ? &log->at[log->n - 1] : NULL;

	if (!a || a->kind != SIM_MEM_MAPPED || !a->map->phys || !a->map->phys->mc)
		return;
	if (last && last->addr + last->size == addr) {
		last->size += bytes;
		return;
	}
	if (log->n == log->cap) {
		size_t cap = log->cap ? log->cap * 2 : 256;
		struct sim_written *p = realloc(log->at, cap * sizeof(*p));

		if (!p) {
			sim_log("no memory to follow a kernel's multicast stores");
			return;
		}
		log->at = p;
		log->cap = cap;
	}
	log->at[log->n++] = (struct sim_written){addr, bytes};
}

void sim_multicast_flush(struct sim_write_log *log)
{
	for (size_t i = 0; i < log->n; i++)
		sim_multicast_written(log->at[i].addr, log->at[i].size);
	free(log->at);
}
