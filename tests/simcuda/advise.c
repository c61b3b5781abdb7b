/* SPDX-License-Identifier: MIT */
/*
 * Managed memory: advice, prefetching, discarding, what a range was told, attaching to streams.
 *
 * There is one copy of every byte, so advice and prefetches move nothing; they are remembered for each
 * page and can be asked for. A prefetch takes its place in the stream and keeps the content; a discard
 * fills the range with the pattern of fresh memory, at its turn. Driver lock held.
 */
#include "tests/simcuda/sim.h"

#include <stdlib.h>
#include <string.h>

#define PAGE 4096u

/* Of one page. A location of type INVALID is none. */
struct sim_advice {
	CUmemLocation preferred, prefetched;
	uint32_t accessed_by; /* bit i: device i; the last bit: the host */
	bool read_mostly;
};
#define HOST_BIT (1u << 31)

struct pages {
	struct sim_advice *first;
	size_t n;
};

/* The pages of a range of managed memory; their advice is made if need be. */
static CUresult pages_of(CUdeviceptr p, size_t size, struct pages *ret)
{
	struct sim_alloc *a = sim_mem_find(p);
	uint64_t from;

	if (!size || !a || a->kind != SIM_MEM_MANAGED || size > a->size - (p - a->base))
		return CUDA_ERROR_INVALID_VALUE;
	from = a->base / PAGE;
	if (!a->advice)
		a->advice = calloc((a->base + a->size - 1) / PAGE - from + 1, sizeof(*a->advice));
	if (!a->advice)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ret->first = a->advice + (p / PAGE - from);
	ret->n = (p + size - 1) / PAGE - p / PAGE + 1;
	return CUDA_SUCCESS;
}

/* Bring a location to the form that is remembered. */
static CUresult locate(CUmemLocation where, bool numa, CUmemLocation *ret)
{
	switch (where.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		if (where.id < 0 || where.id >= (int)sim_options.devices)
			return CUDA_ERROR_INVALID_DEVICE;
		*ret = where;
		return CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_HOST:
		*ret = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST, .id = 0};
		return CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		if (!numa || (where.type == CU_MEM_LOCATION_TYPE_HOST_NUMA && where.id))
			return CUDA_ERROR_INVALID_VALUE;
		*ret = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 0};
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUmemLocation old_style(CUdevice dev)
{
	return dev == CU_DEVICE_CPU
		       ? (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST, .id = 0}
		       : (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev};
}

static uint32_t bit_of(CUmemLocation where)
{
	return where.type == CU_MEM_LOCATION_TYPE_DEVICE ? 1u << where.id : HOST_BIT;
}

static void advise_page(struct sim_advice *a, CUmem_advise advice, CUmemLocation where)
{
	switch (advice) {
	case CU_MEM_ADVISE_SET_READ_MOSTLY:
	case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
		a->read_mostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
		break;
	case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
		a->preferred = where;
		break;
	case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
		a->preferred = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_INVALID};
		break;
	case CU_MEM_ADVISE_SET_ACCESSED_BY:
		a->accessed_by |= bit_of(where);
		break;
	default:
		a->accessed_by &= ~bit_of(where);
		break;
	}
}

static CUresult advise(CUdeviceptr p, size_t size, CUmem_advise advice, CUmemLocation where)
{
	bool located = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ||
		       advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
		       advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
	struct pages pages;
	CUresult r;

	if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
		return CUDA_ERROR_INVALID_VALUE;
	r = located ? locate(where, advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION, &where)
		    : CUDA_SUCCESS;
	if (!r)
		r = pages_of(p, size, &pages);
	for (size_t i = 0; !r && i < pages.n; i++)
		advise_page(&pages.first[i], advice, where);
	return r;
}

SIM_API(cuMemAdvise, SIM_CTX, P(CUdeviceptr p, size_t size, CUmem_advise advice, CUdevice dev),
	P(p, size, advice, dev))
{
	return advise(p, size, advice, old_style(dev));
}

SIM_API(cuMemAdvise_v2, SIM_CTX,
	P(CUdeviceptr p, size_t size, CUmem_advise advice, CUmemLocation where),
	P(p, size, advice, where))
{
	return advise(p, size, advice, where);
}

/* ---- prefetching and discarding ---- */

static CUresult prefetch(CUstream s, CUdeviceptr p, size_t size, CUmemLocation where)
{
	struct sim_work nop = {.kind = SIM_WORK_NOP};
	struct pages pages;
	CUresult r = pages_of(p, size, &pages);

	for (size_t i = 0; !r && i < pages.n; i++)
		pages.first[i].prefetched = where;
	return r ? r : sim_stream_submit(s, &nop, NULL);
}

static CUresult prefetch_call(struct sim_call *call, CUdeviceptr p, size_t size,
			      CUmemLocation where, unsigned flags, CUstream h)
{
	CUstream s;
	CUresult r = flags ? CUDA_ERROR_INVALID_VALUE : sim_stream_get(call, h, &s);

	if (!r)
		r = locate(where, true, &where);
	if (!r && s->cap)
		r = sim_capture_break(s, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	return r ? r : prefetch(s, p, size, where);
}

SIM_TWINS(cuMemPrefetchAsync, _ptsz, SIM_CTX,
	  P(CUdeviceptr p, size_t size, CUdevice dev, CUstream h), P(p, size, dev, h))
{
	return prefetch_call(call, p, size, old_style(dev), 0, h);
}

SIM_TWINS(cuMemPrefetchAsync_v2, _ptsz, SIM_CTX,
	  P(CUdeviceptr p, size_t size, CUmemLocation where, unsigned flags, CUstream h),
	  P(p, size, where, flags, h))
{
	return prefetch_call(call, p, size, where, flags, h);
}

static CUresult discard(CUstream s, CUdeviceptr p, size_t size)
{
	unsigned elem = (p | size) % 4 ? 1 : 4;
	struct sim_work w;
	CUresult r = sim_fill_prepare(p, 0, elem, SIM_PATTERN, size / elem, 1, &w);

	return r ? r : sim_stream_submit(s, &w, NULL);
}

struct batch {
	CUdeviceptr *p;
	size_t *sizes, count;
	CUmemLocation *where; /* NULL: no prefetch */
	size_t *idx, nwhere;
	bool discards;
};

static CUresult check_batch(const struct batch *b)
{
	struct pages pages;
	CUmemLocation where;
	CUresult r = CUDA_SUCCESS;

	if (!b->p || !b->sizes || !b->count)
		return CUDA_ERROR_INVALID_VALUE;
	if (b->where && (!b->idx || !b->nwhere || b->nwhere > b->count || b->idx[0]))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; b->where && i < b->nwhere && !r; i++) {
		r = locate(b->where[i], true, &where);
		if ((i && b->idx[i] <= b->idx[i - 1]) || b->idx[i] >= b->count)
			r = CUDA_ERROR_INVALID_VALUE;
	}
	for (size_t i = 0; i < b->count && !r; i++)
		r = pages_of(b->p[i], b->sizes[i], &pages);
	return r;
}

/* All is checked before the first is queued. */
static CUresult run_batch(struct sim_call *call, const struct batch *b, unsigned long long flags,
			  CUstream h)
{
	CUstream s;
	CUresult r = sim_stream_get(call, h, &s);
	size_t k = 0;

	if (!r)
		r = flags || s->is_legacy ? CUDA_ERROR_INVALID_VALUE : check_batch(b);
	if (!r && s->cap)
		r = sim_capture_break(s, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	for (size_t i = 0; b->discards && i < b->count && !r; i++)
		r = discard(s, b->p[i], b->sizes[i]);
	for (size_t i = 0; b->where && i < b->count && !r; i++) {
		CUmemLocation where;

		if (k + 1 < b->nwhere && b->idx[k + 1] == i)
			k++;
		r = locate(b->where[k], true, &where);
		if (!r)
			r = prefetch(s, b->p[i], b->sizes[i], where);
	}
	return r;
}

SIM_TWINS(cuMemPrefetchBatchAsync, _ptsz, SIM_CTX,
	  P(CUdeviceptr *p, size_t *sizes, size_t count, CUmemLocation *where, size_t *idx,
	    size_t nwhere, unsigned long long flags, CUstream h),
	  P(p, sizes, count, where, idx, nwhere, flags, h))
{
	struct batch b = {p, sizes, count, where, idx, nwhere, false};

	return where ? run_batch(call, &b, flags, h) : CUDA_ERROR_INVALID_VALUE;
}

SIM_TWINS(cuMemDiscardBatchAsync, _ptsz, SIM_CTX,
	  P(CUdeviceptr *p, size_t *sizes, size_t count, unsigned long long flags, CUstream h),
	  P(p, sizes, count, flags, h))
{
	struct batch b = {.p = p, .sizes = sizes, .count = count, .discards = true};

	return run_batch(call, &b, flags, h);
}

SIM_TWINS(cuMemDiscardAndPrefetchBatchAsync, _ptsz, SIM_CTX,
	  P(CUdeviceptr *p, size_t *sizes, size_t count, CUmemLocation *where, size_t *idx,
	    size_t nwhere, unsigned long long flags, CUstream h),
	  P(p, sizes, count, where, idx, nwhere, flags, h))
{
	struct batch b = {p, sizes, count, where, idx, nwhere, true};

	return where ? run_batch(call, &b, flags, h) : CUDA_ERROR_INVALID_VALUE;
}

SIM_TWINS(cuStreamAttachMemAsync, _ptsz, SIM_CTX,
	  P(CUstream h, CUdeviceptr p, size_t size, unsigned flags), P(h, p, size, flags))
{
	struct sim_work nop = {.kind = SIM_WORK_NOP};
	struct sim_alloc *a = sim_mem_find(p);
	CUstream s;
	CUresult r = sim_stream_get(call, h, &s);

	if (r)
		return r;
	if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
	    flags != CU_MEM_ATTACH_SINGLE)
		return CUDA_ERROR_INVALID_VALUE;
	/* All of an allocation, or "length 0" for the same; the default streams are nobody's own. */
	if (!a || a->kind != SIM_MEM_MANAGED || a->base != p || (size && size != a->size) ||
	    (flags == CU_MEM_ATTACH_SINGLE && (s->is_legacy || s->is_ptds)))
		return CUDA_ERROR_INVALID_VALUE;
	return sim_stream_submit(s, &nop, NULL);
}

/* ---- what a range was told ---- */

static bool same(CUmemLocation a, CUmemLocation b)
{
	return a.type == b.type && a.id == b.id;
}

/* The location that all pages have in common, or an invalid one. */
static CUmemLocation common(const struct pages *pages, bool preferred)
{
	CUmemLocation all = preferred ? pages->first->preferred : pages->first->prefetched;

	for (size_t i = 1; i < pages->n; i++)
		if (!same(all, preferred ? pages->first[i].preferred : pages->first[i].prefetched))
			return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_INVALID};
	return all;
}

static int device_of(CUmemLocation where)
{
	if (where.type == CU_MEM_LOCATION_TYPE_INVALID)
		return CU_DEVICE_INVALID;
	return where.type == CU_MEM_LOCATION_TYPE_DEVICE ? where.id : CU_DEVICE_CPU;
}

static void accessed_by(const struct pages *pages, int *data, size_t n)
{
	uint32_t all = ~0u;
	size_t k = 0;

	for (size_t i = 0; i < pages->n; i++)
		all &= pages->first[i].accessed_by;
	for (int dev = 0; dev < SIM_MAX_DEVICES && k < n; dev++)
		if (all >> dev & 1)
			data[k++] = dev;
	if (all & HOST_BIT && k < n)
		data[k++] = CU_DEVICE_CPU;
	while (k < n)
		data[k++] = CU_DEVICE_INVALID;
}

static CUresult range_attribute(void *data, size_t size, CUmem_range_attribute attr, CUdeviceptr p,
				size_t bytes)
{
	struct pages pages;
	CUresult r;
	int v = 1;

	if (!data || !size || size % 4 || (attr != CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY && size != 4))
		return CUDA_ERROR_INVALID_VALUE;
	r = pages_of(p, bytes, &pages);
	if (r)
		return r;
	switch (attr) {
	case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
		for (size_t i = 0; i < pages.n; i++)
			v &= pages.first[i].read_mostly;
		break;
	case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
		accessed_by(&pages, data, size / 4);
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
		v = device_of(common(&pages, attr == CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION));
		break;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
		v = (int)common(&pages, attr == CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE)
			    .type;
		break;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
		v = common(&pages, attr == CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID).id;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	memcpy(data, &v, sizeof(v));
	return CUDA_SUCCESS;
}

SIM_API(cuMemRangeGetAttribute, SIM_CTX,
	P(void *data, size_t size, CUmem_range_attribute attr, CUdeviceptr p, size_t bytes),
	P(data, size, attr, p, bytes))
{
	return range_attribute(data, size, attr, p, bytes);
}

SIM_API(cuMemRangeGetAttributes, SIM_CTX,
	P(void **data, size_t *sizes, CUmem_range_attribute *attrs, size_t n, CUdeviceptr p,
	  size_t bytes),
	P(data, sizes, attrs, n, p, bytes))
{
	CUresult r = data && sizes && attrs && n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

	for (size_t i = 0; i < n && !r; i++)
		r = range_attribute(data[i], sizes[i], attrs[i], p, bytes);
	return r;
}
