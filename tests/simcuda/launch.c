/* SPDX-License-Identifier: MIT */
/*
 * Kernel launches: checking, copying the arguments, running the engine when the op's turn has come.
 *
 * Arguments are copied during the call, from kernelParams or from `extra`. A fault of the kernel breaks
 * the context as on hardware; its text is written to stderr once. Driver lock held.
 */
#include "tests/simcuda/vmm.h"
#include "tests/simcuda/limits.h"

#include <stdlib.h>
#include <string.h>

/* CTAs of a grid run one after the other here: a grid-wide barrier never opens. */
#define COOPERATIVE_INSNS 4000000000ull

static CUresult check_shape(const struct sim_launch_args *a, CUfunction f)
{
	unsigned max = sim_kernel_max_threads(f->k);
	uint64_t threads = (uint64_t)a->block[0] * a->block[1] * a->block[2];
	int dynamic;

	if (!a->grid[0] || !a->grid[1] || !a->grid[2] || !threads || a->grid[0] > SIM_MAX_GRID_X ||
	    a->grid[1] > SIM_MAX_GRID_YZ || a->grid[2] > SIM_MAX_GRID_YZ ||
	    a->block[0] > SIM_MAX_THREADS || a->block[1] > SIM_MAX_THREADS ||
	    a->block[2] > SIM_MAX_BLOCK_Z || threads > SIM_MAX_THREADS || (max && threads > max))
		return CUDA_ERROR_INVALID_VALUE;
	sim_func_attribute(f->k, f->attr, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
			   &dynamic);
	if (a->shared > (unsigned)(dynamic > 0 ? dynamic : 0) ||
	    sim_kernel_shared_bytes(f->k) + a->shared > SIM_SHARED_OPTIN)
		return CUDA_ERROR_INVALID_VALUE;
	if (a->cooperative &&
	    (uint64_t)a->grid[0] * a->grid[1] * a->grid[2] >
		    (uint64_t)SIM_MULTIPROCESSORS *
			    sim_occupancy_blocks(f->k, (unsigned)threads, a->shared))
		return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	return CUDA_SUCCESS;
}

static CUresult from_extra(void **extra, void *dst, size_t want)
{
	const void *buf = NULL;
	size_t size = 0;
	bool sized = false;

	for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
			buf = extra[1];
		} else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
			size = *(size_t *)extra[1];
			sized = true;
		} else {
			return CUDA_ERROR_INVALID_VALUE;
		}
	}
	/* A buffer may be longer than the parameters: padding behind the last one. */
	if (!want)
		return CUDA_SUCCESS;
	if (!buf || !sized || size < want)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(dst, buf, want);
	return CUDA_SUCCESS;
}

static CUresult from_params(const struct sim_kernel *k, void **params, char *dst)
{
	size_t offset, size;

	for (unsigned i = 0; i < sim_kernel_nparams(k); i++) {
		if (!params[i] || sim_kernel_param(k, i, &offset, &size))
			return CUDA_ERROR_INVALID_VALUE;
		memcpy(dst + offset, params[i], size);
	}
	return CUDA_SUCCESS;
}

CUresult sim_launch_prepare(CUcontext ctx, const struct sim_launch_args *a, struct sim_work *ret)
{
	struct sim_work w = {.kind = SIM_WORK_KERNEL};
	CUfunction f;
	CUkernel kern;
	size_t bytes;
	CUresult r = sim_func_resolve(ctx, a->f, &f, &kern);

	if (r)
		return r;
	if (f->mod->ctx != ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	r = check_shape(a, f);
	if (r)
		return r;
	if (a->params && a->extra)
		return CUDA_ERROR_INVALID_VALUE;
	bytes = sim_kernel_param_bytes(f->k);
	if (bytes && !a->params && !a->extra)
		return CUDA_ERROR_INVALID_VALUE;
	w.kernel.params = calloc(1, bytes ? bytes : 1);
	if (!w.kernel.params)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (a->extra)
		r = from_extra(a->extra, w.kernel.params, bytes);
	else if (bytes)
		r = from_params(f->k, a->params, w.kernel.params);
	if (r) {
		free(w.kernel.params);
		return r;
	}
	w.kernel.bytes = bytes;
	w.kernel.func = f;
	w.kernel.kern = kern;
	memcpy(w.kernel.grid, a->grid, sizeof(a->grid));
	memcpy(w.kernel.block, a->block, sizeof(a->block));
	w.kernel.shared = a->shared;
	w.kernel.cooperative = a->cooperative;
	*ret = w;
	return CUDA_SUCCESS;
}

static CUresult fault_code(enum sim_fault_kind kind)
{
	switch (kind) {
	case SIM_FAULT_OUT_OF_BOUNDS:
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	case SIM_FAULT_MISALIGNED:
		return CUDA_ERROR_MISALIGNED_ADDRESS;
	case SIM_FAULT_DEADLOCK:
	case SIM_FAULT_TIMEOUT:
		return CUDA_ERROR_LAUNCH_TIMEOUT;
	case SIM_FAULT_NOMEM:
		return CUDA_ERROR_OUT_OF_MEMORY;
	default:
		return CUDA_ERROR_LAUNCH_FAILED;
	}
}

static int set_conditional(void *ctx, uint64_t handle, uint32_t value)
{
	return sim_cond_set(ctx, handle, value);
}

CUresult sim_kernel_run(struct sim_op *op, const struct sim_kernel_work *k)
{
	struct sim_launch l = {.kernel = k->func->k,
			       .grid = {k->grid[0], k->grid[1], k->grid[2]},
			       .block = {k->block[0], k->block[1], k->block[2]},
			       .shared_dynamic = k->shared,
			       .params = k->params,
			       .views = op->ctx->views,
			       .nviews = op->ctx->nobjects,
			       .max_insns = sim_options.max_insns};
	struct sim_fault fault = {.kind = SIM_OK};
	struct sim_write_log log = {0};
	struct sim_counts counts = {0};
	enum sim_fault_kind kind;
	char where[160];

	if (sim_multicast_live) {
		l.on_access = sim_multicast_note;
		l.opaque = &log;
	}
	if (k->cooperative && (k->grid[0] > 1 || k->grid[1] > 1 || k->grid[2] > 1) && !l.max_insns)
		l.max_insns = COOPERATIVE_INSNS;
	sim_mem_ranges(op->ctx, &l.ranges, &l.nranges);
	l.set_conditional = set_conditional;
	l.conditional_opaque = op->ctx;
	kind = sim_exec(&l, &fault, &counts);
	sim_multicast_flush(&log);
	op->cost = sim_clock_kernel_cost(&counts);
	if (kind == SIM_OK)
		return CUDA_SUCCESS;
	sim_log("fault: %s", fault.text);
	if (kind == SIM_FAULT_OUT_OF_BOUNDS || kind == SIM_FAULT_UNINITIALISED)
		sim_log("fault: 0x%llx is %s", (unsigned long long)fault.addr,
			sim_mem_describe(fault.addr, where, sizeof(where)));
	return fault_code(kind);
}

static CUresult launch(struct sim_call *call, const struct sim_launch_args *a, CUstream h)
{
	struct sim_work w;
	CUstream s;
	CUresult r = sim_stream_get(call, h, &s);

	if (!r)
		r = sim_launch_prepare(s->ctx, a, &w);
	return r ? r : sim_stream_submit(s, &w, NULL);
}

SIM_TWINS(cuLaunchKernel, _ptsz, SIM_CTX,
	  P(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
	    unsigned bz, unsigned shared, CUstream h, void **params, void **extra),
	  P(f, gx, gy, gz, bx, by, bz, shared, h, params, extra))
{
	struct sim_launch_args a = {f, {gx, gy, gz}, {bx, by, bz}, shared, params, extra, false};

	return launch(call, &a, h);
}

SIM_TWINS(cuLaunchCooperativeKernel, _ptsz, SIM_CTX,
	  P(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
	    unsigned bz, unsigned shared, CUstream h, void **params),
	  P(f, gx, gy, gz, bx, by, bz, shared, h, params))
{
	struct sim_launch_args a = {f, {gx, gy, gz}, {bx, by, bz}, shared, params, NULL, true};

	return launch(call, &a, h);
}

static CUresult read_attribute(const CUlaunchAttribute *attr, struct sim_launch_args *a)
{
	switch (attr->id) {
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
		a->cooperative = attr->value.cooperative;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
		return attr->value.clusterDim.x <= 1 && attr->value.clusterDim.y <= 1 &&
				       attr->value.clusterDim.z <= 1
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_NOT_SUPPORTED;
	case CU_LAUNCH_ATTRIBUTE_IGNORE:
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		return CUDA_SUCCESS; /* hints: running in stream order fulfils them */
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

SIM_TWINS(cuLaunchKernelEx, _ptsz, SIM_CTX,
	  P(const CUlaunchConfig *c, CUfunction f, void **params, void **extra),
	  P(c, f, params, extra))
{
	struct sim_launch_args a = {.f = f, .params = params, .extra = extra};
	CUresult r = CUDA_SUCCESS;

	if (!c || (c->numAttrs && !c->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < c->numAttrs && !r; i++)
		r = read_attribute(&c->attrs[i], &a);
	if (r)
		return r;
	memcpy(a.grid, (unsigned[]){c->gridDimX, c->gridDimY, c->gridDimZ}, sizeof(a.grid));
	memcpy(a.block, (unsigned[]){c->blockDimX, c->blockDimY, c->blockDimZ}, sizeof(a.block));
	a.shared = c->sharedMemBytes;
	return launch(call, &a, c->hStream);
}
