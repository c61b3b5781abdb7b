/* SPDX-License-Identifier: MIT */
/*
 * Functions and kernels: names, parameters, attributes, occupancy.
 *
 * Occupancy follows the limits of the reported device: threads, blocks, registers and shared memory of
 * a multiprocessor. Driver lock held.
 */
#include "tests/simcuda/sim.h"
#include "tests/simcuda/limits.h"

CUresult sim_func_attribute(const struct sim_kernel *k, const int *attr, CUfunction_attribute a,
			    int *ret)
{
	unsigned max = sim_kernel_max_threads(k);
	int v;

	switch (a) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		v = max && max < SIM_MAX_THREADS ? (int)max : SIM_MAX_THREADS;
		break;
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
		v = (int)sim_kernel_shared_bytes(k);
		break;
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
		v = (int)sim_kernel_local_bytes(k);
		break;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		v = (int)sim_kernel_nregs(k);
		v = v > SIM_MAX_REGS ? SIM_MAX_REGS : v;
		break;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		v = sim_options.cc;
		break;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		v = attr[a];
		if (v < 0)
			v = SIM_SHARED_DEFAULT - (int)sim_kernel_shared_bytes(k);
		break;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		v = attr[a];
		break;
	default:
		if ((unsigned)a >= CU_FUNC_ATTRIBUTE_MAX)
			return CUDA_ERROR_INVALID_VALUE;
		v = 0; /* constants are counted as module memory; clusters do not exist here */
	}
	*ret = v;
	return CUDA_SUCCESS;
}

CUresult sim_func_set(const struct sim_kernel *k, int *attr, CUfunction_attribute a, int value)
{
	switch (a) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		if (value < 0 || value + (int64_t)sim_kernel_shared_bytes(k) > SIM_SHARED_OPTIN)
			return CUDA_ERROR_INVALID_VALUE;
		break;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		if (value < -1 || value > 100)
			return CUDA_ERROR_INVALID_VALUE;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	attr[a] = value;
	return CUDA_SUCCESS;
}

static CUresult get(struct sim_call *call, CUfunction h, CUfunction *ret)
{
	CUkernel kern;

	return sim_func_resolve(call->ctx, h, ret, &kern);
}

SIM_API(cuFuncGetAttribute, SIM_CTX, P(int *ret, CUfunction_attribute a, CUfunction f),
	P(ret, a, f))
{
	CUresult r = ret ? get(call, f, &f) : CUDA_ERROR_INVALID_VALUE;

	return r ? r : sim_func_attribute(f->k, f->attr, a, ret);
}

SIM_API(cuFuncSetAttribute, SIM_CTX, P(CUfunction f, CUfunction_attribute a, int value),
	P(f, a, value))
{
	CUresult r = get(call, f, &f);

	return r ? r : sim_func_set(f->k, f->attr, a, value);
}

SIM_API(cuFuncSetCacheConfig, SIM_CTX, P(CUfunction f, CUfunc_cache config), P(f, config))
{
	CUresult r = get(call, f, &f);

	/* A hint about caches, of which there are none. */
	return r					       ? r
	       : (unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE
							       : CUDA_SUCCESS;
}

SIM_API(cuFuncSetSharedMemConfig, SIM_CTX, P(CUfunction f, CUsharedconfig config), P(f, config))
{
	CUresult r = get(call, f, &f);

	return r ? r
	       : (unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE
		       ? CUDA_ERROR_INVALID_VALUE
		       : CUDA_SUCCESS;
}

SIM_API(cuFuncGetModule, SIM_CTX, P(CUmodule *ret, CUfunction f), P(ret, f))
{
	CUresult r = ret ? get(call, f, &f) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*ret = f->mod;
	return r;
}

SIM_API(cuFuncGetName, SIM_CTX, P(const char **ret, CUfunction f), P(ret, f))
{
	CUresult r = ret ? get(call, f, &f) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*ret = sim_kernel_name(f->k);
	return r;
}

static CUresult param_info(const struct sim_kernel *k, size_t i, size_t *ret_offset,
			   size_t *ret_size)
{
	size_t offset, size;

	if (!ret_offset || i >= sim_kernel_nparams(k) ||
	    sim_kernel_param(k, (unsigned)i, &offset, &size))
		return CUDA_ERROR_INVALID_VALUE;
	*ret_offset = offset;
	if (ret_size)
		*ret_size = size;
	return CUDA_SUCCESS;
}

SIM_API(cuFuncGetParamInfo, SIM_CTX, P(CUfunction f, size_t i, size_t *offset, size_t *size),
	P(f, i, offset, size))
{
	CUresult r = get(call, f, &f);

	return r ? r : param_info(f->k, i, offset, size);
}

SIM_API(cuFuncLoad, SIM_CTX, P(CUfunction f), P(f))
{
	return get(call, f, &f);
}

SIM_API(cuFuncIsLoaded, SIM_CTX, P(CUfunctionLoadingState *ret, CUfunction f), P(ret, f))
{
	CUresult r = ret ? get(call, f, &f) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*ret = CU_FUNCTION_LOADING_STATE_LOADED;
	return r;
}

SIM_API(cuKernelGetName, SIM_INIT, P(const char **ret, CUkernel k), P(ret, k))
{
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_handle_is(k, SIM_H_KERN))
		return CUDA_ERROR_INVALID_HANDLE;
	*ret = sim_kernel_name(k->k);
	return CUDA_SUCCESS;
}

SIM_API(cuKernelGetParamInfo, SIM_INIT, P(CUkernel k, size_t i, size_t *offset, size_t *size),
	P(k, i, offset, size))
{
	if (!sim_handle_is(k, SIM_H_KERN))
		return CUDA_ERROR_INVALID_HANDLE;
	return param_info(k->k, i, offset, size);
}

SIM_API(cuKernelGetAttribute, SIM_INIT,
	P(int *ret, CUfunction_attribute a, CUkernel k, CUdevice dev), P(ret, a, k, dev))
{
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_handle_is(k, SIM_H_KERN))
		return CUDA_ERROR_INVALID_HANDLE;
	if (dev < 0 || dev >= (int)sim_options.devices)
		return CUDA_ERROR_INVALID_DEVICE;
	return sim_func_attribute(k->k, k->attr, a, ret);
}

SIM_API(cuKernelSetCacheConfig, SIM_INIT, P(CUkernel k, CUfunc_cache config, CUdevice dev),
	P(k, config, dev))
{
	if (!sim_handle_is(k, SIM_H_KERN))
		return CUDA_ERROR_INVALID_HANDLE;
	if (dev < 0 || dev >= (int)sim_options.devices)
		return CUDA_ERROR_INVALID_DEVICE;
	return (unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE
							     : CUDA_SUCCESS;
}

/* ---- occupancy ---- */

unsigned sim_occupancy_blocks(const struct sim_kernel *k, unsigned threads, size_t dynamic)
{
	unsigned warps = (threads + 31) / 32, n = SIM_MAX_THREADS_SM / (warps * 32);
	size_t shared = sim_kernel_shared_bytes(k) + dynamic;
	unsigned regs = sim_kernel_nregs(k);

	regs = regs > SIM_MAX_REGS ? SIM_MAX_REGS : regs;
	if (n > SIM_MAX_BLOCKS_SM)
		n = SIM_MAX_BLOCKS_SM;
	if (regs && n > SIM_REGS_SM / (regs * warps * 32))
		n = SIM_REGS_SM / (regs * warps * 32);
	if (shared && n > SIM_SHARED_SM / shared)
		n = (unsigned)(SIM_SHARED_SM / shared);
	return n;
}

static CUresult max_blocks(struct sim_call *call, int *ret, CUfunction f, int threads,
			   size_t dynamic)
{
	CUresult r = ret && threads > 0 ? get(call, f, &f) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*ret = threads > SIM_MAX_THREADS
			       ? 0
			       : (int)sim_occupancy_blocks(f->k, (unsigned)threads, dynamic);
	return r;
}

SIM_API(cuOccupancyMaxActiveBlocksPerMultiprocessor, SIM_CTX,
	P(int *ret, CUfunction f, int threads, size_t dynamic), P(ret, f, threads, dynamic))
{
	return max_blocks(call, ret, f, threads, dynamic);
}

SIM_API(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, SIM_CTX,
	P(int *ret, CUfunction f, int threads, size_t dynamic, unsigned flags),
	P(ret, f, threads, dynamic, flags))
{
	return flags > 1 ? CUDA_ERROR_INVALID_VALUE : max_blocks(call, ret, f, threads, dynamic);
}

static CUresult best_block(struct sim_call *call, int *ret_grid, int *ret_block, CUfunction f,
			   CUoccupancyB2DSize size, size_t dynamic, int limit)
{
	unsigned best = 0, best_threads = 0, top;
	CUresult r = ret_grid && ret_block ? get(call, f, &f) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	top = sim_kernel_max_threads(f->k);
	top = !top || top > SIM_MAX_THREADS ? SIM_MAX_THREADS : top;
	if (limit > 0 && (unsigned)limit < top)
		top = (unsigned)limit;
	for (unsigned t = top; t; t = (t - 1) / 32 * 32) {
		unsigned n = sim_occupancy_blocks(f->k, t, size ? size((int)t) : dynamic);

		if (n * t > best * best_threads) {
			best = n;
			best_threads = t;
		}
	}
	*ret_grid = (int)(best * SIM_MULTIPROCESSORS);
	*ret_block = (int)best_threads;
	return CUDA_SUCCESS;
}

SIM_API(cuOccupancyMaxPotentialBlockSize, SIM_CTX,
	P(int *grid, int *block, CUfunction f, CUoccupancyB2DSize size, size_t dynamic, int limit),
	P(grid, block, f, size, dynamic, limit))
{
	return best_block(call, grid, block, f, size, dynamic, limit);
}

SIM_API(cuOccupancyMaxPotentialBlockSizeWithFlags, SIM_CTX,
	P(int *grid, int *block, CUfunction f, CUoccupancyB2DSize size, size_t dynamic, int limit,
	  unsigned flags),
	P(grid, block, f, size, dynamic, limit, flags))
{
	return flags > 1 ? CUDA_ERROR_INVALID_VALUE
			 : best_block(call, grid, block, f, size, dynamic, limit);
}

SIM_API(cuOccupancyAvailableDynamicSMemPerBlock, SIM_CTX,
	P(size_t *ret, CUfunction f, int blocks, int threads), P(ret, f, blocks, threads))
{
	CUresult r = ret && blocks > 0 && threads > 0 ? get(call, f, &f) : CUDA_ERROR_INVALID_VALUE;
	size_t each;

	if (r)
		return r;
	each = SIM_SHARED_SM / (size_t)blocks;
	each = each > SIM_SHARED_OPTIN ? SIM_SHARED_OPTIN : each;
	*ret = each > sim_kernel_shared_bytes(f->k) ? each - sim_kernel_shared_bytes(f->k) : 0;
	return CUDA_SUCCESS;
}
