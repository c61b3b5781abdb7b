/* SPDX-License-Identifier: MIT */
/*
 * Memory nodes, and the memory behind them: made, counted, charged, destroyed; a device's totals.
 * See graphmem.h. Driver lock held.
 */
#include "tests/simcuda/graphmem.h"

#include <stdlib.h>
#include <string.h>

static struct sim_graph_mem *mems;
static struct usage {
	uint64_t used, used_high, reserved, reserved_high;
} usage[SIM_MAX_DEVICES];

CUdeviceptr sim_graphmem_address(const struct sim_graph_mem *m)
{
	return m->alloc->base;
}

size_t sim_graphmem_size(const struct sim_graph_mem *m)
{
	return m->alloc->size;
}

/* ---- life ---- */

void sim_graphmem_set_live(struct sim_graph_mem *m, bool live)
{
	struct usage *u = &usage[m->dev];

	if (m->alloc->in_dev) {
		u->used -= m->block;
		sim_mem_hide(m->alloc);
	}
	if (!live)
		return;
	u->used += m->block;
	if (u->used > u->used_high)
		u->used_high = u->used;
	sim_mem_show(m->alloc);
}

static void uncharge(struct sim_graph_mem *m)
{
	if (!m->charged)
		return;
	m->charged = false;
	usage[m->dev].reserved -= m->block;
	sim_mem_uncharge(m->dev, m->block);
}

static void trim(int dev)
{
	for (struct sim_graph_mem *m = mems; m; m = m->next)
		if (m->dev == dev && !m->out && !m->pending && !m->alloc->in_dev)
			uncharge(m);
}

CUresult sim_graphmem_charge(struct sim_graph_mem *m)
{
	struct usage *u = &usage[m->dev];

	if (m->charged)
		return CUDA_SUCCESS;
	if (!sim_mem_charge(m->dev, m->block)) {
		trim(m->dev);
		sim_pool_trim_all(m->dev);
		if (!sim_mem_charge(m->dev, m->block))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	m->charged = true;
	u->reserved += m->block;
	if (u->reserved > u->reserved_high)
		u->reserved_high = u->reserved;
	return CUDA_SUCCESS;
}

void sim_graphmem_ref(struct sim_graph_mem *m)
{
	m->refs++;
}

void sim_graphmem_unref(struct sim_graph_mem *m)
{
	uint64_t base = m->alloc->base;

	if (--m->refs)
		return;
	sim_graphmem_set_live(m, false);
	uncharge(m);
	sim_mem_forget(m->alloc);
	sim_mem_put(m->dev, base, m->block);
	if (m->free_op)
		sim_op_unref(m->free_op);
	if (m->next)
		m->next->prev = m->prev;
	if (m->prev)
		m->prev->next = m->next;
	else
		mems = m->next;
	free((void *)m->params.accessDescs);
	free(m);
}

static CUresult check_params(const CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	const CUmemPoolProps *props = &p->poolProps;

	if (!p->bytesize || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    p->accessDescCount > sim_options.devices || (p->accessDescCount && !p->accessDescs))
		return CUDA_ERROR_INVALID_VALUE;
	if (props->handleTypes || props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (props->location.id < 0 || props->location.id >= (int)sim_options.devices)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < p->accessDescCount; i++) {
		const CUmemAccessDesc *d = &p->accessDescs[i];

		if (d->location.type != CU_MEM_LOCATION_TYPE_DEVICE || d->location.id < 0 ||
		    d->location.id >= (int)sim_options.devices)
			return CUDA_ERROR_INVALID_VALUE;
		/* As for pools: its own device always has access, others would need peer mappings. */
		if (d->location.id != props->location.id && d->flags)
			return CUDA_ERROR_NOT_SUPPORTED;
	}
	return p->bytesize > (1ull << 46) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static struct sim_graph_mem *mem_new(CUgraph g, const CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	struct sim_graph_mem *m = calloc(1, sizeof(*m));
	CUmemAccessDesc *access = malloc((p->accessDescCount + 1) * sizeof(*access));
	int dev = p->poolProps.location.id;
	uint64_t block = 0, addr = m && access ? sim_mem_get(dev, p->bytesize, &block) : 0;

	if (addr) {
		m->alloc = sim_mem_record(NULL, SIM_MEM_DEVICE, addr, p->bytesize, block, 0);
		if (!m->alloc)
			sim_mem_put(dev, addr, block);
	}
	if (!addr || !m->alloc) {
		free(access);
		free(m);
		return NULL;
	}
	m->alloc->dev_id = m->dev = dev;
	m->alloc->graph_mem = m;
	m->block = block;
	m->refs = 1;
	m->owner = g;
	m->params = *p;
	if (p->accessDescCount)
		memcpy(access, p->accessDescs, p->accessDescCount * sizeof(*access));
	m->params.accessDescs = access;
	m->params.dptr = addr;
	m->next = mems;
	if (mems)
		mems->prev = m;
	mems = m;
	return m;
}

/* ---- nodes ---- */

/* Does x come before one of the n nodes, or is it one of them? */
static bool precedes(CUgraphNode x, const CUgraphNode *deps, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (deps[i]->seen)
			continue;
		deps[i]->seen = true;
		if (deps[i] == x || precedes(x, deps[i]->deps, deps[i]->ndeps))
			return true;
	}
	return false;
}

/*
 * "CUDA may reuse memory within a graph by assigning the same virtual address range to different allocations whose lifetimes
 * do not overlap" (programming guide): so it is done wherever it may be, for an allocation of the same size. NULL: nowhere.
 */
static struct sim_graph_mem *reused(CUgraph g, const CUDA_MEM_ALLOC_NODE_PARAMS *p,
				    const CUgraphNode *deps, size_t n)
{
	struct sim_graph_mem *m;
	CUgraphNode x, last;

	for (m = mems; m; m = m->next) {
		if (m->owner != g || !m->freed_inside || m->dev != p->poolProps.location.id ||
		    m->params.bytesize != p->bytesize || m->params.accessDescCount ||
		    p->accessDescCount)
			continue;
		for (x = g->first, last = NULL; x; x = x->next) {
			x->seen = false;
			if (x->work.kind == SIM_WORK_MEMFREE && x->work.mem == m)
				last = x;
		}
		if (last && precedes(last, deps, n))
			break;
	}
	if (!m)
		return NULL;
	m->freed_inside = false;
	sim_graphmem_ref(m);
	return m;
}

static CUresult alloc_work(CUgraph g, const CUDA_MEM_ALLOC_NODE_PARAMS *p, const CUgraphNode *deps,
			   size_t n, struct sim_work *w)
{
	CUresult r = check_params(p);

	if (r)
		return r;
	if (g->is_moved || g->is_body)
		return CUDA_ERROR_NOT_SUPPORTED;
	*w = (struct sim_work){.kind = SIM_WORK_MEMALLOC, .mem = reused(g, p, deps, n)};
	if (!w->mem)
		w->mem = mem_new(g, p);
	return w->mem ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* A free node of g; the memory learns of it when the node is there (freed_by). */
static CUresult free_work(CUgraph g, CUdeviceptr dptr, struct sim_work *w)
{
	struct sim_alloc *a = sim_mem_find(dptr);
	struct sim_graph_mem *m = a && a->base == dptr ? a->graph_mem : NULL;

	if (!m || m->freed_inside || (g == m->owner && m->freed_elsewhere))
		return CUDA_ERROR_INVALID_VALUE;
	if (g->is_moved || g->is_body)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (g != m->owner)
		for (CUgraphNode n = g->first; n; n = n->next)
			if (n->work.kind == SIM_WORK_MEMFREE && n->work.mem == m)
				return CUDA_ERROR_INVALID_VALUE;
	sim_graphmem_ref(m);
	*w = (struct sim_work){.kind = SIM_WORK_MEMFREE, .mem = m};
	return CUDA_SUCCESS;
}

static void freed_by(struct sim_graph_mem *m, CUgraph g)
{
	if (g == m->owner)
		m->freed_inside = true;
	else
		m->freed_elsewhere++;
}

void sim_graphmem_drop_node(CUgraphNode n)
{
	struct sim_graph_mem *m = n->work.mem;

	/* What its own graph frees stays so for the executable graph, which may live on. */
	if (n->work.kind == SIM_WORK_MEMALLOC)
		m->owner = NULL;
	else if (n->work.kind == SIM_WORK_MEMFREE && !m->freed_inside)
		m->freed_elsewhere--;
}

CUresult sim_graphmem_add_alloc(struct sim_call *call, SIM_ADD_PARAMS,
				CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	struct sim_work w;
	CUdeviceptr addr;
	CUresult r;

	if (sim_graphnode_bad_add(SIM_ADD_ARGS) || !p)
		return CUDA_ERROR_INVALID_VALUE;
	r = alloc_work(g, p, deps, n, &w);
	if (r)
		return r;
	addr = w.mem->params.dptr;
	r = sim_graphnode_add(call, CU_GRAPH_NODE_TYPE_MEM_ALLOC, r, &w, NULL, SIM_ADD_ARGS);
	if (!r)
		p->dptr = addr;
	return r;
}

CUresult sim_graphmem_add_free(struct sim_call *call, SIM_ADD_PARAMS, CUdeviceptr dptr)
{
	struct sim_graph_mem *m;
	struct sim_work w;
	CUresult r;

	if (sim_graphnode_bad_add(SIM_ADD_ARGS))
		return CUDA_ERROR_INVALID_VALUE;
	r = free_work(g, dptr, &w);
	if (r)
		return r;
	m = w.mem;
	r = sim_graphnode_add(call, CU_GRAPH_NODE_TYPE_MEM_FREE, r, &w, NULL, SIM_ADD_ARGS);
	if (!r)
		freed_by(m, g);
	return r;
}

SIM_API(cuGraphAddMemAllocNode, SIM_CTX, P(SIM_ADD_PARAMS, CUDA_MEM_ALLOC_NODE_PARAMS *p),
	P(SIM_ADD_ARGS, p))
{
	return sim_graphmem_add_alloc(call, SIM_ADD_ARGS, p);
}

SIM_API(cuGraphMemAllocNodeGetParams, SIM_CTX, P(CUgraphNode n, CUDA_MEM_ALLOC_NODE_PARAMS *p),
	P(n, p))
{
	CUresult r =
		p ? sim_graphnode_is(n, CU_GRAPH_NODE_TYPE_MEM_ALLOC) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*p = n->work.mem->params;
	return r;
}

SIM_API(cuGraphAddMemFreeNode, SIM_CTX, P(SIM_ADD_PARAMS, CUdeviceptr dptr), P(SIM_ADD_ARGS, dptr))
{
	return sim_graphmem_add_free(call, SIM_ADD_ARGS, dptr);
}

SIM_API(cuGraphMemFreeNodeGetParams, SIM_CTX, P(CUgraphNode n, CUdeviceptr *ret), P(n, ret))
{
	CUresult r =
		ret ? sim_graphnode_is(n, CU_GRAPH_NODE_TYPE_MEM_FREE) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*ret = n->work.mem->params.dptr;
	return r;
}

CUresult sim_graphmem_capture_alloc(CUstream s, size_t size, int dev, CUdeviceptr *ret)
{
	CUDA_MEM_ALLOC_NODE_PARAMS p = {.bytesize = size};
	struct sim_work w;
	CUdeviceptr addr;
	CUresult r;

	p.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	p.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	p.poolProps.location.id = dev;
	r = alloc_work(sim_capture_graph(s), &p, s->deps, s->ndeps, &w);
	if (r)
		return sim_capture_break(s, r);
	addr = w.mem->params.dptr;
	r = sim_capture_add(s, &w, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
	if (!r)
		*ret = addr;
	return r;
}

CUresult sim_graphmem_capture_free(CUstream s, CUdeviceptr p)
{
	CUgraph g = sim_capture_graph(s);
	struct sim_graph_mem *m;
	struct sim_work w;
	CUresult r = free_work(g, p, &w);

	if (r)
		return r;
	m = w.mem;
	r = sim_capture_add(s, &w, CU_GRAPH_NODE_TYPE_MEM_FREE);
	if (!r)
		freed_by(m, g);
	return r;
}

/* ---- a device's graph memory ---- */

static bool bad_device(CUdevice dev)
{
	return dev < 0 || dev >= (int)sim_options.devices;
}

SIM_API(cuDeviceGraphMemTrim, SIM_INIT, P(CUdevice dev), P(dev))
{
	if (bad_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	trim(dev);
	return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetGraphMemAttribute, SIM_INIT,
	P(CUdevice dev, CUgraphMem_attribute attr, void *value), P(dev, attr, value))
{
	const struct usage *u;

	if (bad_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	u = &usage[dev];
	switch (attr) {
	case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
		*(cuuint64_t *)value = u->used;
		return CUDA_SUCCESS;
	case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
		*(cuuint64_t *)value = u->used_high;
		return CUDA_SUCCESS;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
		*(cuuint64_t *)value = u->reserved;
		return CUDA_SUCCESS;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
		*(cuuint64_t *)value = u->reserved_high;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

SIM_API(cuDeviceSetGraphMemAttribute, SIM_INIT,
	P(CUdevice dev, CUgraphMem_attribute attr, void *value), P(dev, attr, value))
{
	struct usage *u;

	if (bad_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	/* High watermarks can only be reset. */
	if (!value || *(cuuint64_t *)value)
		return CUDA_ERROR_INVALID_VALUE;
	u = &usage[dev];
	if (attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
		u->used_high = u->used;
	else if (attr == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
		u->reserved_high = u->reserved;
	else
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}
