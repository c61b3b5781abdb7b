/* SPDX-License-Identifier: MIT */
/*
 * Windows: parts of files as device memory. Memory of another process (share.c), external memory.
 *
 * A file's bytes may begin anywhere in a page, so the window is the pages around them. What is in a
 * file others may write unseen, so it always counts as initialised. External memory is a file
 * descriptor of anything that can be mapped shared, a memfd usually; importing it takes the
 * descriptor, and buffers live until cuMemFree, even if the object is destroyed before.
 * Driver lock held.
 */
#include "tests/simcuda/vmm.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096u

CUresult sim_window_open(CUcontext ctx, enum sim_origin origin, int fd, uint64_t offset,
			 uint64_t size, struct sim_alloc **ret)
{
	uint64_t in = offset % PAGE, bytes = (in + size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	struct sim_mapping *m = calloc(1, sizeof(*m));
	struct sim_alloc *a = NULL;

	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*m = (struct sim_mapping){
		.origin = origin, .readers = ~SIM_HOST_BIT, .writers = ~SIM_HOST_BIT, .opens = 1};
	m->va_size = bytes;
	m->va = sim_va_get(bytes, SIM_GRANULARITY, 0);
	if (!m->va) {
		free(m);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (mmap((void *)(uintptr_t)m->va, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 fd, (off_t)(offset - in)) != MAP_FAILED)
		a = sim_mem_record(ctx, SIM_MEM_MAPPED, m->va + in, size, 0, 0);
	if (!a) {
		sim_va_close(m->va, bytes);
		sim_va_put(m->va, bytes);
		free(m);
		return CUDA_ERROR_MAP_FAILED;
	}
	a->map = m;
	sim_mem_show(a);
	*ret = a;
	return CUDA_SUCCESS;
}

bool sim_map_freed(const struct sim_alloc *a)
{
	return a->kind == SIM_MEM_MAPPED &&
	       (a->map->origin == SIM_MAP_EXTERNAL || a->map->origin == SIM_MAP_POOL);
}

struct CUextMemory_st {
	int fd;
	uint64_t size;
};

SIM_API(cuImportExternalMemory, SIM_CTX,
	P(CUexternalMemory *ret, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *d), P(ret, d))
{
	CUexternalMemory m;
	struct stat st;

	if (!ret || !d || !d->size || (d->flags & ~(unsigned)CUDA_EXTERNAL_MEMORY_DEDICATED) ||
	    d->type < CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD ||
	    d->type > CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD)
		return CUDA_ERROR_INVALID_VALUE;
	if (d->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (fstat(d->handle.fd, &st))
		return CUDA_ERROR_INVALID_VALUE;
	if (!S_ISREG(st.st_mode))
		return CUDA_ERROR_INVALID_HANDLE;
	if (d->size > (uint64_t)st.st_size)
		return CUDA_ERROR_INVALID_VALUE;
	m = calloc(1, sizeof(*m));
	if (!m || sim_handle_add(m, SIM_H_EXTMEM)) {
		free(m);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	m->fd = d->handle.fd;
	m->size = d->size;
	*ret = m;
	return CUDA_SUCCESS;
}

SIM_API(cuExternalMemoryGetMappedBuffer, SIM_CTX,
	P(CUdeviceptr *ret, CUexternalMemory m, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *d),
	P(ret, m, d))
{
	struct sim_alloc *a;
	CUresult r;

	if (!sim_handle_is(m, SIM_H_EXTMEM))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!ret || !d || d->flags || !d->size || d->offset > m->size ||
	    d->size > m->size - d->offset)
		return CUDA_ERROR_INVALID_VALUE;
	r = sim_window_open(call->ctx, SIM_MAP_EXTERNAL, m->fd, d->offset, d->size, &a);
	if (!r)
		*ret = a->base;
	return r;
}

SIM_API(cuExternalMemoryGetMappedMipmappedArray, SIM_CTX,
	P(CUmipmappedArray *ret, CUexternalMemory m,
	  const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *d),
	P(ret, m, d))
{
	if (!sim_handle_is(m, SIM_H_EXTMEM))
		return CUDA_ERROR_INVALID_HANDLE;
	return ret && d ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuDestroyExternalMemory, SIM_CTX, P(CUexternalMemory m), P(m))
{
	if (!sim_handle_is(m, SIM_H_EXTMEM))
		return CUDA_ERROR_INVALID_HANDLE;
	sim_handle_del(m);
	close(m->fd);
	free(m);
	return CUDA_SUCCESS;
}
