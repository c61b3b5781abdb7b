/* SPDX-License-Identifier: MIT */
/*
 * The engine's operations on the real driver (tracker/devops.h): those that are kernels of ours.
 *
 * Each kernel is a module of its own, loaded into a context at its first launch there: who needs none pays for
 * none. A kernel's arguments, tables included (devmany.c), travel in the launch by value. So a launch allocates
 * nothing, waits for nothing and is captured into a graph like any other.
 * A kernel that the driver refuses is asked for once a context.
 * Callers and locks as in devops.c.
 */
#include "shim/arrays.h"
#include "shim/devops.h"
#include "shim/kernels/tiles.h"
#include "shim/log.h"

/* A warp a chunk. */
#define DIGEST_THREADS 128
#define DIGEST_CHUNKS  (DIGEST_THREADS / 32)

/* Blocks, at most: every kernel takes its pieces in strides of all of them. */
#define GRID 65535u

_Static_assert(RS_DIFF_PAGE == RS_PAGE, "the kernel's pages are the engine's");

#define X(name)                                                                                    \
	__asm__(".pushsection .rodata\n"                                                           \
		".globl rs_ptx_" #name "\n"                                                        \
		".hidden rs_ptx_" #name "\n"                                                       \
		"rs_ptx_" #name ":\n"                                                              \
		".incbin \"shim/kernels/" #name ".ptx\"\n"                                         \
		".byte 0\n"                                                                        \
		".popsection\n");                                                                  \
	extern const char rs_ptx_##name[] __attribute__((visibility("hidden")));
RS_DEV_KERNELS(X)
#undef X

static const struct {
	const char *name, *ptx;
} kernels[] = {
#define X(name) {"rs_" #name, rs_ptx_##name},
	RS_DEV_KERNELS(X)
#undef X
};

/* Another thread may have been quicker: then its module stays and ours is dropped. */
static CUfunction publish(struct rs_dev_context *c, enum rs_dev_kernel k, CUfunction f,
			  CUmodule module)
{
	rs_dev_lock();
	if (!c->kernel[k]) {
		__atomic_store_n(&c->kernel[k], f, __ATOMIC_RELEASE);
		module = NULL;
	}
	f = c->kernel[k];
	rs_dev_unlock();
	if (module)
		rs_real.cuModuleUnload(module);
	return f;
}

CUresult rs_dev_load(struct rs_dev_context *c, enum rs_dev_kernel k, CUfunction *ret)
{
	CUmodule module;
	CUfunction f;
	CUresult r;

	*ret = __atomic_load_n(&c->kernel[k], __ATOMIC_ACQUIRE);
	if (rs_likely(*ret))
		return CUDA_SUCCESS;
	if (__atomic_load_n(&c->refused, __ATOMIC_RELAXED) & 1u << k)
		return CUDA_ERROR_NOT_SUPPORTED;
	r = rs_real.cuModuleLoadData(&module, kernels[k].ptx);
	if (r == CUDA_SUCCESS) {
		r = rs_real.cuModuleGetFunction(&f, module, kernels[k].name);
		if (r == CUDA_SUCCESS)
			*ret = publish(c, k, f, module);
		else
			rs_real.cuModuleUnload(module);
	}
	if (r == CUDA_SUCCESS || r == CUDA_ERROR_OUT_OF_MEMORY)
		return r;
	__atomic_fetch_or(&c->refused, 1u << k, __ATOMIC_RELAXED);
	if (k != RS_DEV_move_wide && k != RS_DEV_digest_many_wide) /* drivers before 12.1 may */
		rs_log(RS_LOG_ERROR, "kernel %s cannot be loaded: driver error %d", kernels[k].name,
		       (int)r);
	return r;
}

int rs_dev_is_own(CUfunction f)
{
	struct rs_dev_context *c;
	int own = 0;

	rs_dev_lock();
	for (c = rs_dev_contexts(); c && !own; c = c->next)
		for (unsigned i = 0; f && i < RS_DEV_NKERNELS; i++)
			own |= __atomic_load_n(&c->kernel[i], __ATOMIC_RELAXED) == f;
	rs_dev_unlock();
	return own;
}

CUresult rs_dev_launch(CUfunction f, struct rs_queue q, uint64_t blocks, unsigned threads,
		       void **params)
{
	return rs_real.cuLaunchKernel(f, (unsigned)(blocks < GRID ? blocks : GRID), 1, 1, threads,
				      1, 1, 0, rs_dev_stream(q), params, NULL);
}

/* Load and launch as one operation. */
static int run(struct rs_queue q, enum rs_dev_kernel k, uint64_t blocks, unsigned threads,
	       void **params)
{
	struct rs_dev_context *c = rs_dev_context_of(q.ctx);
	struct rs_dev_frame frame;
	CUfunction f;
	CUresult result;
	int r;

	if (!c)
		return -ENOMEM;
	if (!blocks)
		return 0;
	r = rs_dev_enter_queue(&frame, q);
	if (r)
		return r;
	result = rs_dev_load(c, k, &f);
	if (result == CUDA_SUCCESS)
		result = rs_dev_launch(f, q, blocks, threads, params);
	return rs_dev_leave(&frame, result);
}

int rs_dev_digest(void *opaque, struct rs_queue q, uint64_t addr, uint64_t bytes, uint64_t *out)
{
	uint64_t blocks = (rs_digest_count(bytes) + DIGEST_CHUNKS - 1) / DIGEST_CHUNKS;
	uint64_t target = (uintptr_t)out;
	void *params[] = {&addr, &bytes, &target};

	(void)opaque;
	if (rs_unlikely(rs_arrays_range(addr)))
		return rs_dev_array_digest(q, addr, bytes, out);
	return run(q, RS_DEV_digest, blocks, DIGEST_THREADS, params);
}

int rs_dev_swap(void *opaque, struct rs_queue q, uint64_t a, uint64_t b, uint64_t bytes)
{
	uint64_t tiles = bytes ? RS_TILE_COUNT(a, bytes) : 0;
	void *params[] = {&a, &b, &bytes};

	(void)opaque;
	if (rs_unlikely(rs_arrays_range(a) || rs_arrays_range(b)))
		return rs_dev_array_swap(q, a, b, bytes);
	return run(q, RS_DEV_swap, RS_TILE_BLOCKS(tiles), RS_TILE_THREADS, params);
}

int rs_dev_diff(void *opaque, struct rs_queue q, uint64_t a, uint64_t b, uint64_t bytes,
		uint64_t *out)
{
	uint64_t target = (uintptr_t)out;
	void *params[] = {&a, &b, &bytes, &target};

	(void)opaque;
	if (rs_unlikely(rs_arrays_range(a) || rs_arrays_range(b)))
		return rs_dev_array_diff(q, a, b, bytes, out);
	return run(q, RS_DEV_diff, rs_page_count(bytes), RS_DIFF_THREADS, params);
}
