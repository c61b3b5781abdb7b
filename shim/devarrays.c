/* SPDX-License-Identifier: MIT */
/*
 * The engine's operations where a side is an array's made-up range (arrays.h).
 *
 * An array is always meant as a whole; its bytes are its rows, one after the other. What needs them linear
 * (digest, swap, diff) goes through a block of a pool of the shim's own, one for each context, allocated and
 * freed in the order of the queue. A part of an array, or one that has gone, is -EINVAL.
 * Callers: devops.c and devkernels.c, which have seen that it is an array.
 */
#include "shim/arrays.h"
#include "shim/devops.h"
#include "shim/kernels.h"

static int array_of(uint64_t addr, uint64_t bytes, struct rs_array *ret)
{
	return rs_arrays_at(addr, ret) && ret->bytes == bytes ? 0 : -EINVAL;
}

int rs_dev_array_copy(struct rs_queue q, uint64_t dst, uint64_t src, uint64_t bytes)
{
	struct rs_array to, from;
	const struct rs_array *a = &from;
	CUDA_MEMCPY3D p = {.dstMemoryType = CU_MEMORYTYPE_DEVICE,
			   .srcMemoryType = CU_MEMORYTYPE_DEVICE,
			   .dstDevice = dst,
			   .srcDevice = src};
	struct rs_dev_frame f;
	int r;

	if (rs_arrays_range(src)) {
		if (array_of(src, bytes, &from))
			return -EINVAL;
		p.srcMemoryType = CU_MEMORYTYPE_ARRAY;
		p.srcDevice = 0;
		p.srcArray = from.handle;
	}
	if (rs_arrays_range(dst)) {
		if (array_of(dst, bytes, &to))
			return -EINVAL;
		p.dstMemoryType = CU_MEMORYTYPE_ARRAY;
		p.dstDevice = 0;
		p.dstArray = to.handle;
		a = &to;
	}
	p.WidthInBytes = p.srcPitch = p.dstPitch = a->row;
	p.Height = p.srcHeight = p.dstHeight = a->rows;
	p.Depth = a->layers;
	r = rs_dev_enter_queue(&f, q);
	if (r)
		return r;
	return rs_dev_leave(&f, rs_real.cuMemcpy3DAsync_v2(&p, rs_dev_stream(q)));
}

/* --- linear blocks ------------------------------------------------------------------------------ */

/* In the context. Two threads may both make one; the second is dropped. */
static CUresult pool_of(struct rs_dev_context *c, CUmemoryPool *ret)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemoryPool pool;
	CUdevice device;
	CUresult r;

	*ret = __atomic_load_n(&c->pool, __ATOMIC_ACQUIRE);
	if (*ret)
		return CUDA_SUCCESS;
	r = rs_real.cuCtxGetDevice(&device);
	props.location.id = device;
	if (r == CUDA_SUCCESS)
		r = rs_real.cuMemPoolCreate(&pool, &props);
	if (r != CUDA_SUCCESS)
		return r;
	rs_dev_lock();
	if (!c->pool) {
		__atomic_store_n(&c->pool, pool, __ATOMIC_RELEASE);
		pool = NULL;
	}
	*ret = c->pool;
	rs_dev_unlock();
	if (pool)
		rs_real.cuMemPoolDestroy(pool);
	return CUDA_SUCCESS;
}

static void drop_block(struct rs_queue q, CUdeviceptr block)
{
	struct rs_dev_frame f;

	if (!rs_dev_enter_queue(&f, q))
		rs_dev_leave(&f, rs_real.cuMemFreeAsync(block, rs_dev_stream(q)));
}

/* The bytes of an array, in a block that the caller drops. */
static int linear(struct rs_queue q, uint64_t array, uint64_t bytes, CUdeviceptr *ret_block)
{
	struct rs_dev_context *c = rs_dev_context_of(q.ctx);
	struct rs_dev_frame f;
	CUdeviceptr block = 0;
	CUmemoryPool pool;
	CUresult result;
	int r;

	if (!c)
		return -ENOMEM;
	r = rs_dev_enter_queue(&f, q);
	if (r)
		return r;
	result = pool_of(c, &pool);
	if (result == CUDA_SUCCESS)
		result = rs_real.cuMemAllocFromPoolAsync(&block, bytes, pool, rs_dev_stream(q));
	r = rs_dev_leave(&f, result);
	if (r)
		return r;
	r = rs_dev_array_copy(q, block, array, bytes);
	if (r)
		drop_block(q, block);
	else
		*ret_block = block;
	return r;
}

int rs_dev_array_digest(struct rs_queue q, uint64_t addr, uint64_t bytes, uint64_t *out)
{
	CUdeviceptr block;
	int r = linear(q, addr, bytes, &block);

	if (r)
		return r;
	r = rs_dev_digest(NULL, q, block, bytes, out);
	drop_block(q, block);
	return r;
}

int rs_dev_array_swap(struct rs_queue q, uint64_t a, uint64_t b, uint64_t bytes)
{
	uint64_t array = rs_arrays_range(a) ? a : b, other = array == a ? b : a;
	CUdeviceptr block;
	int r = linear(q, array, bytes, &block);

	if (r)
		return r;
	r = rs_dev_array_copy(q, array, other, bytes);
	if (!r)
		r = rs_devops_ops.copy(NULL, q, other, block, bytes);
	drop_block(q, block);
	return r;
}

int rs_dev_array_diff(struct rs_queue q, uint64_t a, uint64_t b, uint64_t bytes, uint64_t *out)
{
	uint64_t array = rs_arrays_range(a) ? a : b, other = array == a ? b : a;
	CUdeviceptr block;
	int r = linear(q, array, bytes, &block);

	if (r)
		return r;
	r = rs_dev_diff(NULL, q, block, other, bytes, out);
	drop_block(q, block);
	return r;
}

int rs_dev_array_move(struct rs_queue q, const struct rs_move *list, uint64_t n)
{
	int r = 0;

	for (uint64_t i = 0; !r && i < n; i++)
		r = rs_devops_ops.copy(NULL, q, list[i].dst, list[i].src, list[i].bytes);
	return r;
}
