/* SPDX-License-Identifier: MIT */
/*
 * Allocating and freeing: device, managed, pinned and registered host memory; what is known of a pointer.
 *
 * Frees wait for the work queued in the allocation's context, as a real driver's do. Driver lock held.
 */
#include "tests/simcuda/vmm.h"

#include <string.h>

static CUdeviceptr addr_of(const void *p)
{
	return (CUdeviceptr)(uintptr_t)p;
}

SIM_API(cuMemAlloc_v2, SIM_CTX | SIM_UNSAFE, P(CUdeviceptr *ret, size_t size), P(ret, size))
{
	struct sim_alloc *a;
	CUresult r = ret ? sim_mem_alloc(call->ctx, SIM_MEM_DEVICE, size, 0, &a)
			 : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*ret = a->base;
	return r;
}

SIM_API(cuMemAllocPitch_v2, SIM_CTX | SIM_UNSAFE,
	P(CUdeviceptr *ret, size_t *ret_pitch, size_t width, size_t height, unsigned elem),
	P(ret, ret_pitch, width, height, elem))
{
	size_t pitch = (width + 511) & ~(size_t)511;
	struct sim_alloc *a;
	CUresult r;

	if (!ret || !ret_pitch || !width || !height || (elem != 4 && elem != 8 && elem != 16) ||
	    width > INT32_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (height > SIZE_MAX / pitch)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = sim_mem_alloc(call->ctx, SIM_MEM_DEVICE, pitch * height, 0, &a);
	if (r)
		return r;
	*ret = a->base;
	*ret_pitch = pitch;
	return CUDA_SUCCESS;
}

SIM_API(cuMemAllocManaged, SIM_CTX | SIM_UNSAFE, P(CUdeviceptr *ret, size_t size, unsigned flags),
	P(ret, size, flags))
{
	struct sim_alloc *a;
	CUresult r;

	if (!ret || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	r = sim_mem_alloc(call->ctx, SIM_MEM_MANAGED, size, flags, &a);
	if (!r)
		*ret = a->base;
	return r;
}

SIM_API(cuMemFree_v2, SIM_CTX | SIM_UNSAFE, P(CUdeviceptr p), P(p))
{
	struct sim_alloc *a;
	CUresult r;

	if (!p)
		return CUDA_SUCCESS;
	a = sim_mem_find(p);
	if (!a || a->base != p ||
	    (a->kind != SIM_MEM_DEVICE && a->kind != SIM_MEM_MANAGED && !sim_map_freed(a)))
		return CUDA_ERROR_INVALID_VALUE;
	if (a->graph_mem)
		return sim_graphmem_free(call, a->graph_mem);
	r = sim_ctx_sync(a->ctx);
	if (r)
		return r;
	a = sim_mem_find(p);
	if (!a || a->base != p)
		return CUDA_ERROR_INVALID_VALUE; /* freed by another thread meanwhile */
	if (a->pool)
		sim_pool_give(a->pool, a, NULL, NULL);
	else
		sim_mem_free(a);
	return CUDA_SUCCESS;
}

static CUresult host_alloc(struct sim_call *call, void **ret, size_t size, unsigned flags)
{
	struct sim_alloc *a;
	CUresult r;

	if (!ret || flags > 7)
		return CUDA_ERROR_INVALID_VALUE;
	r = sim_mem_alloc(call->ctx, SIM_MEM_PINNED, size, flags, &a);
	if (!r) {
		*ret = (void *)(uintptr_t)a->base;
		memset(*ret, 0, size); /* a reused block must not show another owner's bytes */
	}
	return r;
}

SIM_API(cuMemAllocHost_v2, SIM_CTX | SIM_UNSAFE, P(void **ret, size_t size), P(ret, size))
{
	return host_alloc(call, ret, size, 0);
}

SIM_API(cuMemHostAlloc, SIM_CTX | SIM_UNSAFE, P(void **ret, size_t size, unsigned flags),
	P(ret, size, flags))
{
	return host_alloc(call, ret, size, flags);
}

SIM_API(cuMemFreeHost, SIM_CTX | SIM_UNSAFE, P(void *p), P(p))
{
	struct sim_alloc *a = sim_mem_find(addr_of(p));
	CUresult r;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	if (!a || a->base != addr_of(p) || a->kind != SIM_MEM_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	r = sim_ctx_sync(a->ctx);
	if (!r)
		sim_mem_free(a);
	return r;
}

static CUresult host_register(struct sim_call *call, void *p, size_t size, unsigned flags)
{
	struct sim_alloc *a;

	if (!p || !size || flags > 15 || addr_of(p) + size < addr_of(p))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_MEMHOSTREGISTER_IOMEMORY)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (sim_tree_overlaps(&sim_mem_host, addr_of(p), size))
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	a = sim_mem_record(call->ctx, SIM_MEM_REGISTERED, addr_of(p), size, 0, flags);
	if (!a)
		return CUDA_ERROR_OUT_OF_MEMORY;
	sim_mem_show(a);
	return CUDA_SUCCESS;
}

SIM_API(cuMemHostRegister, SIM_CTX | SIM_UNSAFE, P(void *p, size_t size, unsigned flags),
	P(p, size, flags))
{
	return host_register(call, p, size, flags);
}

SIM_API(cuMemHostRegister_v2, SIM_CTX | SIM_UNSAFE, P(void *p, size_t size, unsigned flags),
	P(p, size, flags))
{
	return host_register(call, p, size, flags);
}

SIM_API(cuMemHostUnregister, SIM_CTX | SIM_UNSAFE, P(void *p), P(p))
{
	struct sim_alloc *a = sim_mem_find(addr_of(p));
	CUresult r;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	if (!a || a->base != addr_of(p) || a->kind != SIM_MEM_REGISTERED)
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	r = sim_ctx_sync(a->ctx);
	if (!r)
		sim_mem_free(a);
	return r;
}

static bool host_kind(const struct sim_alloc *a)
{
	return a && (a->kind == SIM_MEM_PINNED || a->kind == SIM_MEM_REGISTERED);
}

SIM_API(cuMemHostGetDevicePointer_v2, SIM_CTX, P(CUdeviceptr *ret, void *p, unsigned flags),
	P(ret, p, flags))
{
	if (!ret || !p || flags || !host_kind(sim_mem_find(addr_of(p))))
		return CUDA_ERROR_INVALID_VALUE;
	*ret = addr_of(p);
	return CUDA_SUCCESS;
}

SIM_API(cuMemHostGetFlags, SIM_CTX, P(unsigned *ret, void *p), P(ret, p))
{
	struct sim_alloc *a = sim_mem_find(addr_of(p));

	if (!ret || !host_kind(a))
		return CUDA_ERROR_INVALID_VALUE;
	/* With unified addresses every host allocation is portable and mapped. */
	*ret = a->flags | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE;
	return CUDA_SUCCESS;
}

SIM_API(cuMemGetInfo_v2, SIM_CTX, P(size_t *ret_free, size_t *ret_total), P(ret_free, ret_total))
{
	if (!ret_free || !ret_total)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_total = sim_options.memory;
	*ret_free = sim_options.memory - sim_mem_used(call->ctx->dev_id);
	return CUDA_SUCCESS;
}

SIM_API(cuMemGetAddressRange_v2, SIM_CTX, P(CUdeviceptr *ret_base, size_t *ret_size, CUdeviceptr p),
	P(ret_base, ret_size, p))
{
	struct sim_alloc *a = sim_mem_find(p);

	if (!a || a->kind == SIM_MEM_REGISTERED)
		return CUDA_ERROR_NOT_FOUND;
	if (ret_base)
		*ret_base = a->base;
	if (ret_size)
		*ret_size = a->size;
	return CUDA_SUCCESS;
}

/* ---- pointer attributes ---- */

static size_t attribute_size(CUpointer_attribute attr)
{
	switch (attr) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		return 8;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		return 4;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_MAPPED:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
		return 1;
	default:
		return 0;
	}
}

/* What differs for a mapping; *ret_known tells whether it does. */
static uint64_t mapping_value(const struct sim_alloc *a, CUpointer_attribute attr, bool *ret_known)
{
	const struct sim_mapping *m = a->map;
	int dev = sim_ctx_current()->dev_id;

	*ret_known = true;
	switch (attr) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		return a->dev_id < 0 ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		return a->dev_id < 0 ? (uint64_t)CU_DEVICE_CPU : (uint64_t)a->dev_id;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		return m->resv ? m->resv->base : a->base;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		return m->resv ? m->resv->size : a->size;
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		/* Apart from the serials of allocations. */
		return m->phys ? m->phys->serial | 1ull << 62 : a->serial;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		return m->phys ? (uint64_t)m->phys->prop.requestedHandleTypes : 0;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		return m->writers >> dev & 1   ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
		       : m->readers >> dev & 1 ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ
					       : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
	default:
		*ret_known = false;
		return 0;
	}
}

static uint64_t attribute_value(const struct sim_alloc *a, CUdeviceptr p, CUpointer_attribute attr)
{
	bool known = false;
	uint64_t v = a->kind == SIM_MEM_MAPPED ? mapping_value(a, attr, &known) : 0;

	if (known)
		return v;
	switch (attr) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		return addr_of(a->ctx);
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		return host_kind(a) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		return p;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		return host_kind(a) || a->kind == SIM_MEM_MANAGED ? p : 0;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		return a->sync_memops;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		return a->serial;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		return a->kind == SIM_MEM_MANAGED;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		return (uint64_t)a->dev_id;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		return a->base;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		return a->size;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		return 1;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		return CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		return addr_of(a->pool);
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		return a->pool ? a->pool->handle_types : 0;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		return a->kind == SIM_MEM_DEVICE && !a->pool;
	default: /* no RDMA or decompression here */
		return 0;
	}
}

static void store(void *data, uint64_t v, size_t size)
{
	if (size == 8)
		memcpy(data, &v, 8);
	else if (size == 4)
		memcpy(data, &(uint32_t){(uint32_t)v}, 4);
	else
		*(uint8_t *)data = (uint8_t)v;
}

SIM_API(cuPointerGetAttribute, SIM_CTX, P(void *data, CUpointer_attribute attr, CUdeviceptr p),
	P(data, attr, p))
{
	struct sim_alloc *a = sim_mem_find(p);
	size_t size = attribute_size(attr);

	if (!data || !a || !size)
		return attr == CU_POINTER_ATTRIBUTE_P2P_TOKENS ? CUDA_ERROR_NOT_SUPPORTED
							       : CUDA_ERROR_INVALID_VALUE;
	/* Managed memory and plain device memory have no host pointer of their own. */
	if (attr == CU_POINTER_ATTRIBUTE_HOST_POINTER && !attribute_value(a, p, attr))
		return CUDA_ERROR_INVALID_VALUE;
	store(data, attribute_value(a, p, attr), size);
	return CUDA_SUCCESS;
}

SIM_API(cuPointerGetAttributes, SIM_CTX,
	P(unsigned n, CUpointer_attribute *attrs, void **data, CUdeviceptr p), P(n, attrs, data, p))
{
	struct sim_alloc *a = sim_mem_find(p);

	if (!n || !attrs || !data)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < n; i++)
		if (!attribute_size(attrs[i]) || !data[i])
			return CUDA_ERROR_INVALID_VALUE;
	/* Of a pointer that is not ours every attribute is zero; only the ordinal says "none". */
	for (unsigned i = 0; i < n; i++) {
		uint64_t v = a ? attribute_value(a, p, attrs[i]) : 0;

		if (!a && attrs[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
			v = (uint64_t)CU_DEVICE_INVALID;
		store(data[i], v, attribute_size(attrs[i]));
	}
	return CUDA_SUCCESS;
}

SIM_API(cuPointerSetAttribute, SIM_CTX,
	P(const void *value, CUpointer_attribute attr, CUdeviceptr p), P(value, attr, p))
{
	struct sim_alloc *a = sim_mem_find(p);

	if (!value || !a || attr != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
		return CUDA_ERROR_INVALID_VALUE;
	a->sync_memops = *(const unsigned *)value != 0;
	return CUDA_SUCCESS;
}
