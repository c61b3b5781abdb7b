/* SPDX-License-Identifier: MIT */
/*
 * What a queued operation does when its turn has come, and what it owns.
 *
 * A work in a context with a sticky error has no effect: it is only completed, so that nobody waits
 * for ever; stream callbacks are told the error, frees still free. Copies and fills check their ranges
 * again, in the executing ops' view: memory may have been freed since they were queued.
 * Driver lock held; dropped around host functions.
 */
#include "tests/simcuda/graph.h"
#include "tests/simcuda/vmm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void *ptr(uint64_t addr)
{
	return (void *)(uintptr_t)addr;
}

static void *copy_of(const void *p, size_t n)
{
	void *q = malloc(n ? n : 1);

	return q ? memcpy(q, p, n) : NULL;
}

int sim_work_clone(struct sim_work *dst, const struct sim_work *src)
{
	*dst = *src;
	if (src->kind == SIM_WORK_COPY) {
		const struct sim_copy *c = &src->copy;

		dst->copy.staged = NULL;
		dst->copy.params = NULL;
		if (c->staged)
			dst->copy.staged = copy_of(c->staged, c->width * c->height * c->depth);
		if (c->params)
			dst->copy.params = copy_of(c->params, sizeof(*c->params));
		if (!c->staged == !dst->copy.staged && !c->params == !dst->copy.params)
			return 0;
	} else if (src->kind == SIM_WORK_KERNEL) {
		dst->kernel.params = copy_of(src->kernel.params, src->kernel.bytes);
		if (dst->kernel.params)
			return 0;
	} else if (src->kind == SIM_WORK_BATCH) {
		dst->batch.ops = copy_of(src->batch.ops, src->batch.n * sizeof(*src->batch.ops));
		if (dst->batch.ops)
			return 0;
	} else if (src->kind == SIM_WORK_MEMALLOC || src->kind == SIM_WORK_MEMFREE) {
		sim_graphmem_ref(src->mem);
		return 0;
	} else if (src->kind == SIM_WORK_COND) {
		sim_cond_work_clone(&dst->cond, &src->cond);
		return 0;
	} else if (src->kind == SIM_WORK_GRAPH && src->graph) {
		dst->graph = NULL;
		if (!sim_graph_clone(src->graph, &dst->graph)) {
			dst->graph->is_child = true;
			return 0;
		}
	} else if (src->kind == SIM_WORK_SIGNAL || src->kind == SIM_WORK_AWAIT) {
		return sim_sync_clone(dst, src);
	} else {
		return 0;
	}
	sim_work_clear(dst);
	return -ENOMEM;
}

void sim_work_clear(struct sim_work *w)
{
	if (w->kind == SIM_WORK_COPY) {
		free(w->copy.staged);
		free(w->copy.params);
	} else if (w->kind == SIM_WORK_KERNEL) {
		free(w->kernel.params);
	} else if ((w->kind == SIM_WORK_GRAPH || w->kind == SIM_WORK_RELEASE) && w->graph) {
		sim_graph_free(w->graph);
	} else if (w->kind == SIM_WORK_BATCH) {
		free(w->batch.ops);
	} else if (w->kind == SIM_WORK_MEMALLOC || w->kind == SIM_WORK_MEMFREE) {
		sim_graphmem_unref(w->mem);
	} else if (w->kind == SIM_WORK_COND || w->kind == SIM_WORK_CONDINIT) {
		sim_cond_work_clear(w);
	} else if (w->kind == SIM_WORK_SIGNAL || w->kind == SIM_WORK_AWAIT) {
		sim_sync_clear(w);
	}
	w->kind = SIM_WORK_NOP;
}

const char *sim_work_name(const struct sim_work *w)
{
	static const char *const names[] = {"join",	    "copy",	   "fill",
					    "kernel",	    "host",	   "callback",
					    "event record", "event wait",  "write value",
					    "wait value",   "alloc",	   "free",
					    "graph",	    "batch",	   "graph alloc",
					    "graph free",   "conditional", "conditional defaults",
					    "release",	    "signal",	   "await"};

	if (w->kind == SIM_WORK_KERNEL)
		return sim_kernel_name(w->kernel.func->k);
	return names[w->kind];
}

static uint64_t load(const struct sim_memop *m)
{
	return m->bytes == 8 ? __atomic_load_n((uint64_t *)ptr(m->addr), __ATOMIC_ACQUIRE)
			     : __atomic_load_n((uint32_t *)ptr(m->addr), __ATOMIC_ACQUIRE);
}

bool sim_work_blocked(const struct sim_work *w)
{
	const struct sim_memop *m = &w->memop;
	uint64_t v;

	if (w->kind == SIM_WORK_AWAIT)
		return sim_sync_blocked(w);
	if (w->kind != SIM_WORK_WAIT || !sim_mem_live(m->addr, m->bytes))
		return false;
	v = load(m);
	switch (m->flags & 3) {
	case CU_STREAM_WAIT_VALUE_GEQ:
		return m->bytes == 8 ? (int64_t)(v - m->value) < 0
				     : (int32_t)((uint32_t)v - (uint32_t)m->value) < 0;
	case CU_STREAM_WAIT_VALUE_EQ:
		return v != m->value;
	case CU_STREAM_WAIT_VALUE_AND:
		return !(v & m->value);
	default: /* NOR */
		v = ~(v | m->value);
		return m->bytes == 8 ? !v : !(uint32_t)v;
	}
}

static CUresult gone(const char *what, uint64_t addr)
{
	char where[160];

	sim_log("fault: %s at 0x%llx: %s", what, (unsigned long long)addr,
		sim_mem_describe(addr, where, sizeof(where)));
	return CUDA_ERROR_ILLEGAL_ADDRESS;
}

/* Host memory that is not ours is the program's business; ours must still be there. */
static bool usable(uint64_t addr, size_t n, bool pageable, bool to_write)
{
	return (pageable && sim_mem_foreign(addr)) ||
	       (to_write ? sim_mem_writable(addr, n) : sim_mem_live(addr, n));
}

/* Arrays have no address: a handle that no longer leads to the same array says that it is gone. */
static CUresult check_arrays(const struct sim_copy *c)
{
	bool to_gone = c->darray && !sim_array_live(c->darray, c->dserial);
	bool from_gone = c->sarray && !sim_array_live(c->sarray, c->sserial);

	if (!to_gone && !from_gone)
		return CUDA_SUCCESS;
	sim_log("fault: copy %s an array that has been destroyed", to_gone ? "writes" : "reads");
	return CUDA_ERROR_ILLEGAL_ADDRESS;
}

static CUresult run_copy(struct sim_op *op)
{
	const struct sim_copy *c = &op->work.copy;
	CUresult r = check_arrays(c);

	op->cost = sim_clock_copy_cost(&op->work, c->width * c->height * c->depth);
	if (r)
		return r;
	for (size_t z = 0; z < c->depth; z++)
		for (size_t y = 0; y < c->height; y++) {
			uint64_t d = c->dst + (z * c->dheight + y) * c->dpitch;
			uint64_t s = c->src + (z * c->sheight + y) * c->spitch;
			const void *from = ptr(s);

			if (!c->darray && !usable(d, c->width, c->to_host, true))
				return gone("copy writes", d);
			if (c->staged)
				from = (char *)c->staged + (z * c->height + y) * c->width;
			else if (!c->sarray && !usable(s, c->width, c->from_host, false))
				return gone("copy reads", s);
			memmove(ptr(d), from, c->width);
			if (c->staged)
				sim_mem_mark_init(d, c->width);
			else
				sim_mem_copy_init(d, s, c->width);
			sim_multicast_written(d, c->width);
		}
	return CUDA_SUCCESS;
}

static void fill_row(const struct sim_fill *f, uint64_t at)
{
	if (f->elem == 1) {
		memset(ptr(at), (int)f->value, f->width);
		return;
	}
	for (size_t x = 0; x < f->width; x++) {
		if (f->elem == 2)
			((uint16_t *)ptr(at))[x] = (uint16_t)f->value;
		else
			((uint32_t *)ptr(at))[x] = f->value;
	}
}

static CUresult run_fill(struct sim_op *op)
{
	const struct sim_fill *f = &op->work.fill;

	op->cost = sim_clock_fill_cost((uint64_t)f->elem * f->width * f->height);
	for (size_t y = 0; y < f->height; y++) {
		uint64_t at = f->dst + y * f->pitch;

		if (!sim_mem_writable(at, f->width * f->elem))
			return gone("fill writes", at);
		sim_mem_mark_init(at, f->width * f->elem);
		fill_row(f, at);
		sim_multicast_written(at, f->width * f->elem);
	}
	return CUDA_SUCCESS;
}

static CUresult run_host(struct sim_op *op)
{
	struct sim_work w = op->work; /* the op stays RUNNING, so its data stays */
	CUresult status = op->ctx->sticky;

	if (w.kind == SIM_WORK_HOST && status)
		return CUDA_SUCCESS;
	sim_api_unlock();
	sim_api_in_callback++;
	if (w.kind == SIM_WORK_HOST)
		w.host.fn(w.host.arg);
	else
		w.callback.fn(w.callback.stream, status, w.callback.arg);
	sim_api_in_callback--;
	sim_api_lock();
	return CUDA_SUCCESS;
}

static CUresult run_write(const struct sim_memop *m)
{
	if (!sim_mem_writable(m->addr, m->bytes))
		return gone("stream write value", m->addr);
	if (m->bytes == 8)
		__atomic_store_n((uint64_t *)ptr(m->addr), m->value, __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint32_t *)ptr(m->addr), (uint32_t)m->value, __ATOMIC_RELEASE);
	sim_mem_mark_init(m->addr, m->bytes);
	sim_multicast_written(m->addr, m->bytes);
	return CUDA_SUCCESS;
}

CUresult sim_work_run(struct sim_op *op)
{
	struct sim_work *w = &op->work;

	switch (w->kind) {
	case SIM_WORK_HOST:
	case SIM_WORK_CALLBACK:
		return run_host(op);
	case SIM_WORK_ALLOC:
		sim_mem_show(w->alloc);
		return CUDA_SUCCESS;
	case SIM_WORK_FREE:
		sim_mem_forget(w->alloc);
		return CUDA_SUCCESS;
	case SIM_WORK_MEMALLOC:
	case SIM_WORK_MEMFREE:
		return sim_graphmem_run(op);
	case SIM_WORK_RELEASE:
		sim_work_clear(w);
		return CUDA_SUCCESS;
	default:
		break;
	}
	if (op->ctx->sticky)
		return CUDA_SUCCESS;
	switch (w->kind) {
	case SIM_WORK_COPY:
		return run_copy(op);
	case SIM_WORK_FILL:
		return run_fill(op);
	case SIM_WORK_KERNEL:
		return sim_kernel_run(op, &w->kernel);
	case SIM_WORK_COND:
	case SIM_WORK_CONDINIT:
		return sim_cond_run(op);
	case SIM_WORK_WRITE:
		return run_write(&w->memop);
	case SIM_WORK_SIGNAL:
	case SIM_WORK_AWAIT:
		sim_sync_run(w);
		return CUDA_SUCCESS;
	case SIM_WORK_WAIT:
		return sim_mem_live(w->memop.addr, w->memop.bytes)
			       ? CUDA_SUCCESS
			       : gone("stream wait value", w->memop.addr);
	default:
		return CUDA_SUCCESS;
	}
}
