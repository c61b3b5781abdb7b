/* SPDX-License-Identifier: MIT */
/*
 * Stream-ordered allocation and memory pools.
 *
 * cuMemAllocAsync returns an address at once; the memory exists, for executing ops, from the turn of
 * its op to the turn of the free. A freed block may be given out again before the free has run if the
 * new allocation is on the same stream (stream order keeps the owners apart), else only when it has.
 * At a synchronisation a pool returns what exceeds its release threshold. Driver lock held.
 */
#include "tests/simcuda/vmm.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct CUmemPoolHandle_st *default_pool[SIM_MAX_DEVICES], *current_pool[SIM_MAX_DEVICES];
static CUmemoryPool *pools;
static size_t npools;

CUmemoryPool sim_pool_new(int dev)
{
	CUmemoryPool p = calloc(1, sizeof(*p));
	CUmemoryPool *list = realloc(pools, (npools + 1) * sizeof(*pools));

	if (list)
		pools = list;
	if (!p || !list || sim_handle_add(p, SIM_H_POOL)) {
		free(p);
		return NULL;
	}
	p->dev_id = dev;
	p->fd = -1;
	p->reuse_event = p->reuse_opportunistic = p->reuse_internal = true;
	pools[npools++] = p;
	return p;
}

CUmemoryPool sim_pool_default(int dev)
{
	if (!default_pool[dev]) {
		default_pool[dev] = sim_pool_new(dev);
		if (default_pool[dev])
			default_pool[dev]->is_default = true;
	}
	return default_pool[dev];
}

static CUmemoryPool pool_of_device(int dev)
{
	return current_pool[dev] ? current_pool[dev] : sim_pool_default(dev);
}

static void release(CUmemoryPool p, size_t i)
{
	struct sim_block *b = &p->blocks[i];

	sim_mem_put(p->dev_id, b->addr, b->block);
	sim_mem_uncharge(p->dev_id, b->block);
	p->reserved -= b->block;
	if (b->free_op)
		sim_op_unref(b->free_op);
	*b = p->blocks[--p->nblocks];
}

void sim_pool_trim(CUmemoryPool p, uint64_t keep)
{
	for (size_t i = p->nblocks; i-- && p->reserved > keep;)
		if (!p->blocks[i].free_op || p->blocks[i].free_op->state == SIM_OP_DONE)
			release(p, i);
}

void sim_pool_trim_all(int dev)
{
	for (size_t i = 0; i < npools; i++)
		if (pools[i]->dev_id == dev && pools[i]->nblocks)
			sim_pool_trim(pools[i], pools[i]->threshold);
}

void sim_pool_forget_stream(CUstream s)
{
	for (size_t i = 0; i < npools; i++)
		for (size_t b = 0; b < pools[i]->nblocks; b++)
			if (pools[i]->blocks[b].stream == s)
				pools[i]->blocks[b].stream = NULL;
}

static int push_block(CUmemoryPool p, struct sim_block b)
{
	if (p->nblocks == p->cblocks) {
		size_t cap = p->cblocks ? p->cblocks * 2 : 16;
		struct sim_block *q = realloc(p->blocks, cap * sizeof(*q));

		if (!q)
			return -1;
		p->blocks = q;
		p->cblocks = cap;
	}
	p->blocks[p->nblocks++] = b;
	return 0;
}

/* An allocation goes back: after op, or at once. */
void sim_pool_give(CUmemoryPool p, struct sim_alloc *a, struct sim_op *op, CUstream s)
{
	struct sim_block b = {a->base, a->block, op, s};

	p->used -= b.block;
	if (!op)
		sim_mem_forget(a);
	if (op)
		sim_op_ref(op);
	if (push_block(p, b)) {
		/* Not reusable: the address is lost, the accounting is not. */
		sim_mem_uncharge(p->dev_id, b.block);
		p->reserved -= b.block;
		if (op)
			sim_op_unref(op);
	}
}

/* A freed block of the right class that s may have now; its address, or 0. */
static uint64_t reuse(CUmemoryPool p, uint64_t block, CUstream s)
{
	for (size_t i = p->nblocks; i--;) {
		struct sim_block b = p->blocks[i];
		bool done = !b.free_op || b.free_op->state == SIM_OP_DONE;

		if (b.block != block ||
		    !((done && p->reuse_opportunistic) || !b.free_op || b.stream == s))
			continue;
		if (b.free_op)
			sim_op_unref(b.free_op);
		p->blocks[i] = p->blocks[--p->nblocks];
		return b.addr;
	}
	return 0;
}

/* Wait for the frees that are queued and give everything unused back. */
static void squeeze(int dev)
{
	for (size_t i = 0; i < npools; i++) {
		CUmemoryPool p = pools[i];

		if (p->dev_id != dev)
			continue;
		for (size_t b = 0; b < p->nblocks; b++)
			if (p->blocks[b].free_op)
				sim_sched_wait(p->blocks[b].free_op);
		sim_pool_trim(p, 0);
	}
}

static CUresult take(CUmemoryPool p, size_t size, CUstream s, uint64_t *ret_addr,
		     uint64_t *ret_block)
{
	uint64_t addr, block, was;

	addr = sim_mem_get(p->dev_id, size, &block);
	if (!addr)
		return CUDA_ERROR_OUT_OF_MEMORY;
	was = reuse(p, block, s);
	if (was) {
		sim_mem_put(p->dev_id, addr, block);
		addr = was;
	} else {
		if (p->max_size && p->reserved + block > p->max_size)
			goto full;
		if (!sim_mem_charge(p->dev_id, block)) {
			squeeze(p->dev_id);
			if (!sim_mem_charge(p->dev_id, block))
				goto full;
		}
		p->reserved += block;
		if (p->reserved > p->reserved_high)
			p->reserved_high = p->reserved;
	}
	*ret_addr = addr;
	*ret_block = block;
	return CUDA_SUCCESS;
full:
	sim_mem_put(p->dev_id, addr, block);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult alloc_async(struct sim_call *call, CUdeviceptr *ret, size_t size, CUmemoryPool p,
			    CUstream h)
{
	struct sim_work w = {.kind = SIM_WORK_ALLOC};
	uint64_t addr, block;
	struct sim_alloc *a;
	CUstream s;
	CUresult r;

	if (!ret || !size)
		return CUDA_ERROR_INVALID_VALUE;
	r = sim_stream_get(call, h, &s);
	if (r)
		return r;
	if (s->cap)
		return sim_graphmem_capture_alloc(s, size, p ? p->dev_id : s->ctx->dev_id, ret);
	if (!p)
		p = pool_of_device(s->ctx->dev_id);
	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = take(p, size, s, &addr, &block);
	if (r)
		return r;
	a = sim_mem_record(s->ctx, SIM_MEM_DEVICE, addr, size, block, 0);
	if (!a) {
		push_block(p, (struct sim_block){addr, block, NULL, NULL});
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	a->pool = p;
	a->dev_id = p->dev_id;
	p->used += block;
	if (p->used > p->used_high)
		p->used_high = p->used;
	*ret = addr;
	w.alloc = a;
	return sim_stream_submit(s, &w, NULL);
}

SIM_TWINS(cuMemAllocAsync, _ptsz, SIM_CTX, P(CUdeviceptr *ret, size_t size, CUstream h),
	  P(ret, size, h))
{
	return alloc_async(call, ret, size, NULL, h);
}

SIM_TWINS(cuMemAllocFromPoolAsync, _ptsz, SIM_CTX,
	  P(CUdeviceptr *ret, size_t size, CUmemoryPool pool, CUstream h), P(ret, size, pool, h))
{
	/* An imported pool gives nothing out: its owner does. */
	if (!sim_handle_is(pool, SIM_H_POOL) || pool->fd >= 0)
		return CUDA_ERROR_INVALID_VALUE;
	return alloc_async(call, ret, size, pool, h);
}

SIM_TWINS(cuMemFreeAsync, _ptsz, SIM_CTX, P(CUdeviceptr p, CUstream h), P(p, h))
{
	struct sim_work w = {.kind = SIM_WORK_FREE};
	struct sim_alloc *a = sim_mem_find(p);
	CUmemoryPool pool;
	struct sim_op *op;
	CUstream s;
	CUresult r = sim_stream_get(call, h, &s);

	if (r)
		return r;
	if (!a || a->base != p || (a->kind != SIM_MEM_DEVICE && !sim_map_freed(a)))
		return CUDA_ERROR_INVALID_VALUE;
	if (s->cap)
		return sim_graphmem_capture_free(s, p);
	if (a->graph_mem)
		return sim_graphmem_free_async(a->graph_mem, s);
	if (!a->pool) { /* of cuMemAlloc: allowed, and ordered by the stream as well */
		r = sim_stream_sync(s);
		if (!r)
			sim_mem_free(a);
		return r;
	}
	w.alloc = a;
	op = sim_op_new(s->ctx, s->id, &w);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	sim_tree_remove(&sim_mem_host, &a->host);
	a->in_host = false;
	pool = a->pool;
	sim_pool_give(pool, a, op, s);
	r = sim_stream_join(s, op);
	sim_sched_enqueue(op);
	sim_stream_set_tail(s, op);
	sim_sched_kick();
	return r;
}

/* ---- pools ---- */

static bool bad_device(CUdevice dev)
{
	return dev < 0 || dev >= (int)sim_options.devices;
}

SIM_API(cuMemPoolCreate, SIM_INIT, P(CUmemoryPool *ret, const CUmemPoolProps *props), P(ret, props))
{
	CUmemoryPool p;

	if (!ret || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
	    (props->handleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (bad_device(props->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	p = sim_pool_new(props->location.id);
	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	p->max_size = props->maxSize;
	p->handle_types = props->handleTypes;
	*ret = p;
	return CUDA_SUCCESS;
}

SIM_API(cuMemPoolDestroy, SIM_INIT, P(CUmemoryPool p), P(p))
{
	if (!sim_handle_is(p, SIM_H_POOL) || p->is_default)
		return CUDA_ERROR_INVALID_VALUE;
	sim_handle_del(p);
	if (p->fd >= 0)
		close(p->fd);
	if (current_pool[p->dev_id] == p)
		current_pool[p->dev_id] = NULL;
	/* Allocations still out come back to it later: the structure stays, without a threshold. */
	p->threshold = 0;
	sim_pool_trim(p, 0);
	return CUDA_SUCCESS;
}

SIM_API(cuMemPoolTrimTo, SIM_INIT, P(CUmemoryPool p, size_t keep), P(p, keep))
{
	if (!sim_handle_is(p, SIM_H_POOL))
		return CUDA_ERROR_INVALID_VALUE;
	sim_pool_trim(p, keep);
	return CUDA_SUCCESS;
}

SIM_API(cuMemPoolSetAttribute, SIM_INIT, P(CUmemoryPool p, CUmemPool_attribute attr, void *value),
	P(p, attr, value))
{
	if (!sim_handle_is(p, SIM_H_POOL) || !value)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attr) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
		p->reuse_event = *(int *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
		p->reuse_opportunistic = *(int *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		p->reuse_internal = *(int *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		p->threshold = *(cuuint64_t *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		if (*(cuuint64_t *)value)
			return CUDA_ERROR_INVALID_VALUE;
		if (attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
			p->used_high = p->used;
		else
			p->reserved_high = p->reserved;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

SIM_API(cuMemPoolGetAttribute, SIM_INIT, P(CUmemoryPool p, CUmemPool_attribute attr, void *value),
	P(p, attr, value))
{
	uint64_t v = 0;

	if (!sim_handle_is(p, SIM_H_POOL) || !value)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attr) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
		*(int *)value = p->reuse_event;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
		*(int *)value = p->reuse_opportunistic;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		*(int *)value = p->reuse_internal;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		v = p->threshold;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		v = p->reserved;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		v = p->reserved_high;
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		v = p->used;
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		v = p->used_high;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	*(cuuint64_t *)value = v;
	return CUDA_SUCCESS;
}

SIM_API(cuMemPoolSetAccess, SIM_INIT, P(CUmemoryPool p, const CUmemAccessDesc *map, size_t n),
	P(p, map, n))
{
	if (!sim_handle_is(p, SIM_H_POOL) || (n && !map))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n; i++) {
		if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
		    bad_device(map[i].location.id))
			return CUDA_ERROR_INVALID_VALUE;
		/* Its own device always has access; others would need peer mappings of pools. */
		if (map[i].location.id != p->dev_id && map[i].flags)
			return CUDA_ERROR_NOT_SUPPORTED;
	}
	return CUDA_SUCCESS;
}

SIM_API(cuMemPoolGetAccess, SIM_INIT,
	P(CUmemAccess_flags *ret, CUmemoryPool p, CUmemLocation *where), P(ret, p, where))
{
	if (!ret || !where || !sim_handle_is(p, SIM_H_POOL) ||
	    where->type != CU_MEM_LOCATION_TYPE_DEVICE || bad_device(where->id))
		return CUDA_ERROR_INVALID_VALUE;
	*ret = where->id == p->dev_id ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
				      : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetDefaultMemPool, SIM_INIT, P(CUmemoryPool *ret, CUdevice dev), P(ret, dev))
{
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (bad_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret = sim_pool_default(dev);
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_API(cuDeviceGetMemPool, SIM_INIT, P(CUmemoryPool *ret, CUdevice dev), P(ret, dev))
{
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (bad_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret = pool_of_device(dev);
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_API(cuDeviceSetMemPool, SIM_INIT, P(CUdevice dev, CUmemoryPool p), P(dev, p))
{
	if (bad_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!sim_handle_is(p, SIM_H_POOL) || p->dev_id != dev || p->fd >= 0)
		return CUDA_ERROR_INVALID_VALUE;
	current_pool[dev] = p;
	return CUDA_SUCCESS;
}

/* The same by location and type: memory of a device is what there is. */
static CUresult locate(const CUmemLocation *where, CUmemAllocationType type, CUdevice *ret)
{
	if (!where || type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (where->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	*ret = where->id;
	return bad_device(where->id) ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

SIM_API(cuMemGetDefaultMemPool, SIM_INIT,
	P(CUmemoryPool *ret, CUmemLocation *where, CUmemAllocationType type), P(ret, where, type))
{
	CUdevice dev;
	CUresult r = ret ? locate(where, type, &dev) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*ret = sim_pool_default(dev);
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_API(cuMemGetMemPool, SIM_INIT,
	P(CUmemoryPool *ret, CUmemLocation *where, CUmemAllocationType type), P(ret, where, type))
{
	CUdevice dev;
	CUresult r = ret ? locate(where, type, &dev) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*ret = pool_of_device(dev);
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_API(cuMemSetMemPool, SIM_INIT,
	P(CUmemLocation *where, CUmemAllocationType type, CUmemoryPool p), P(where, type, p))
{
	CUdevice dev;
	CUresult r = locate(where, type, &dev);

	if (r)
		return r;
	if (!sim_handle_is(p, SIM_H_POOL) || p->dev_id != dev || p->fd >= 0)
		return CUDA_ERROR_INVALID_VALUE;
	current_pool[dev] = p;
	return CUDA_SUCCESS;
}
