/* SPDX-License-Identifier: MIT */
/*
 * Arenas that other processes may open: cuIpc*MemHandle, and memory pools by file descriptor.
 *
 * A device's arena has one memfd, as large as the arena and made when the first part of it is
 * exported; the pages of what is exported are then replaced by those of the file at the same offset,
 * and stay so. A real driver shares whole blocks as well: neighbours in the same page come along.
 * A handle says which descriptor of which process holds the file; the other side opens it through
 * /proc and knows it again by the nonce in its name, so a handle that outlived its process is
 * refused. Opening in the process that exported is CUDA_ERROR_INVALID_CONTEXT, as on a real driver.
 *
 * The bytes are copied while the driver lock is held: no op runs meanwhile. Driver lock held.
 */
#include "tests/simcuda/vmm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#define PAGE   4096ull
#define PREFIX "/memfd:simcuda-"

static struct shared {
	int fd; /* plus 1, so that 0 is "none yet" */
	uint64_t nonce, base, size;
	uint8_t *moved; /* a bit a page: it is the file's */
} shared[SIM_MAX_DEVICES];

int sim_share_file(const char *what, uint64_t size, uint64_t *ret_nonce)
{
	uint64_t nonce = 0;
	char name[64];
	int fd;

	while (!nonce)
		if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce))
			return -1;
	snprintf(name, sizeof(name), "simcuda-%s-%016llx", what, (unsigned long long)nonce);
	fd = memfd_create(name, MFD_CLOEXEC);
	if (fd >= 0 && ftruncate(fd, (off_t)size)) {
		close(fd);
		fd = -1;
	}
	*ret_nonce = nonce;
	return fd;
}

uint64_t sim_share_nonce(const char *link)
{
	char to[128], *dash;
	ssize_t n = readlink(link, to, sizeof(to) - 1);

	if (n < (ssize_t)strlen(PREFIX))
		return 0;
	to[n] = 0;
	dash = strrchr(to, '-');
	return strncmp(to, PREFIX, strlen(PREFIX)) || !dash ? 0 : strtoull(dash + 1, NULL, 16);
}

int sim_share_fd(int dev, uint64_t *ret_nonce)
{
	struct shared *s = &shared[dev];

	if (!s->fd) {
		int fd;

		sim_mem_arena(dev, &s->base, &s->size);
		s->moved = calloc(1, s->size / PAGE / 8 + 1);
		fd = s->moved ? sim_share_file("arena", s->size, &s->nonce) : -1;
		if (fd < 0) {
			free(s->moved);
			return -1;
		}
		s->fd = fd + 1;
	}
	*ret_nonce = s->nonce;
	return s->fd - 1;
}

/* Pages [first, last] become the file's. */
static bool move(struct shared *s, uint64_t first, uint64_t last)
{
	char *at = (char *)(uintptr_t)(s->base + first * PAGE);
	uint64_t bytes = (last - first + 1) * PAGE;
	off_t offset = (off_t)(first * PAGE);

	for (uint64_t done = 0; done < bytes;) {
		ssize_t n = pwrite(s->fd - 1, at + done, bytes - done, offset + (off_t)done);

		if (n <= 0)
			return false;
		done += (uint64_t)n;
	}
	if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, s->fd - 1, offset) ==
	    MAP_FAILED)
		return false;
	for (uint64_t i = first; i <= last; i++)
		s->moved[i / 8] |= (uint8_t)(1u << i % 8);
	return true;
}

static bool is_moved(const struct shared *s, uint64_t page)
{
	return s->moved[page / 8] >> page % 8 & 1;
}

CUresult sim_share_range(int dev, uint64_t addr, uint64_t size)
{
	struct shared *s = &shared[dev];
	uint64_t nonce, end;

	if (sim_share_fd(dev, &nonce) < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	end = (addr + size - 1 - s->base) / PAGE;
	for (uint64_t page = (addr - s->base) / PAGE; page <= end; page++) {
		uint64_t last = page;

		if (is_moved(s, page))
			continue;
		while (last < end && !is_moved(s, last + 1))
			last++;
		if (!move(s, page, last))
			return CUDA_ERROR_MAP_FAILED;
		page = last;
	}
	return CUDA_SUCCESS;
}

void sim_share_dropped(int dev, uint64_t addr, uint64_t size)
{
	struct shared *s = dev < 0 ? NULL : &shared[dev];

	if (s && s->fd && size)
		fallocate(s->fd - 1, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			  (off_t)(addr - s->base), (off_t)size);
}

/* ---- cuIpc*MemHandle ---- */

struct mem_handle {
	char magic[8];
	int32_t pid, fd, dev;
	uint64_t nonce, offset, size, serial;
};
_Static_assert(sizeof(struct mem_handle) <= sizeof(CUipcMemHandle), "it travels in one");

static const char mem_magic[8] = "simipcm", pool_magic[8] = "simpool";

/* Fill a handle for an allocation; its bytes go to the file. */
static CUresult export_range(struct sim_alloc *a, const char *magic, struct mem_handle *ret)
{
	struct mem_handle h = {.pid = getpid(), .dev = a->dev_id, .size = a->size};
	CUresult r = sim_share_range(a->dev_id, a->base, a->size);

	if (r)
		return r;
	memcpy(h.magic, magic, sizeof(h.magic));
	h.fd = sim_share_fd(a->dev_id, &h.nonce);
	h.offset = a->base - shared[a->dev_id].base;
	h.serial = a->serial;
	if (a->init)
		memset(a->init, 1, a->size);
	*ret = h;
	return CUDA_SUCCESS;
}

SIM_API(cuIpcGetMemHandle, SIM_CTX, P(CUipcMemHandle *ret, CUdeviceptr p), P(ret, p))
{
	struct sim_alloc *a = sim_mem_find(p);
	struct mem_handle h;
	CUresult r;

	/* Memory of cuMemAlloc only: pools and handles have ways of their own. */
	if (!ret || !a || a->kind != SIM_MEM_DEVICE || a->pool)
		return CUDA_ERROR_INVALID_VALUE;
	r = export_range(a, mem_magic, &h);
	if (r)
		return r;
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, &h, sizeof(h));
	return CUDA_SUCCESS;
}

struct search {
	CUcontext ctx;
	const struct mem_handle *h;
	struct sim_alloc *found;
};

static void match(void *owner, void *opaque)
{
	struct search *s = opaque;
	struct sim_alloc *a = owner;

	if (a->kind == SIM_MEM_MAPPED && a->map->origin == SIM_MAP_IPC && a->ctx == s->ctx &&
	    a->map->key[0] == s->h->nonce && a->map->key[1] == s->h->offset &&
	    a->map->key[2] == s->h->serial)
		s->found = a;
}

static CUresult open_handle(CUcontext ctx, const struct mem_handle *h, struct sim_alloc **ret)
{
	struct search s = {ctx, h, NULL};
	char link[64];
	CUresult r;
	int fd;

	snprintf(link, sizeof(link), "/proc/%d/fd/%d", h->pid, h->fd);
	if (!h->nonce || sim_share_nonce(link) != h->nonce)
		return CUDA_ERROR_INVALID_HANDLE; /* its owner is gone, or another now */
	sim_tree_walk(sim_mem_host.root, match, &s);
	if (s.found) {
		s.found->map->opens++;
		*ret = s.found;
		return CUDA_SUCCESS;
	}
	fd = open(link, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return CUDA_ERROR_MAP_FAILED;
	r = sim_window_open(ctx, SIM_MAP_IPC, fd, h->offset, h->size, ret);
	close(fd);
	if (r)
		return r;
	memcpy((*ret)->map->key, (uint64_t[3]){h->nonce, h->offset, h->serial},
	       sizeof((*ret)->map->key));
	return CUDA_SUCCESS;
}

static CUresult open_mem(struct sim_call *call, CUdeviceptr *ret, const CUipcMemHandle *handle,
			 unsigned flags)
{
	struct mem_handle h;
	struct sim_alloc *a;
	CUresult r;

	memcpy(&h, handle, sizeof(h));
	if (!ret || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
		return CUDA_ERROR_INVALID_VALUE;
	if (memcmp(h.magic, mem_magic, sizeof(h.magic)))
		return CUDA_ERROR_INVALID_HANDLE;
	if (h.pid == getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	r = open_handle(call->ctx, &h, &a);
	if (!r)
		*ret = a->base;
	return r;
}

SIM_API(cuIpcOpenMemHandle, SIM_CTX | SIM_UNSAFE,
	P(CUdeviceptr *ret, CUipcMemHandle handle, unsigned flags), P(ret, handle, flags))
{
	return open_mem(call, ret, &handle, flags);
}

SIM_API(cuIpcOpenMemHandle_v2, SIM_CTX | SIM_UNSAFE,
	P(CUdeviceptr *ret, CUipcMemHandle handle, unsigned flags), P(ret, handle, flags))
{
	return open_mem(call, ret, &handle, flags);
}

static struct sim_alloc *opened(CUdeviceptr p)
{
	struct sim_alloc *a = sim_mem_find(p);

	return a && a->base == p && a->kind == SIM_MEM_MAPPED && a->map->origin == SIM_MAP_IPC
		       ? a
		       : NULL;
}

SIM_API(cuIpcCloseMemHandle, SIM_CTX | SIM_UNSAFE, P(CUdeviceptr p), P(p))
{
	struct sim_alloc *a = opened(p);
	CUresult r;

	if (!a)
		return CUDA_ERROR_INVALID_VALUE;
	if (a->map->opens > 1) {
		a->map->opens--;
		return CUDA_SUCCESS;
	}
	r = sim_ctx_sync(a->ctx);
	a = opened(p);
	if (r || !a)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	if (!--a->map->opens)
		sim_map_drop(a);
	return CUDA_SUCCESS;
}

/* ---- pools ---- */

static CUresult posix_only(CUmemAllocationHandleType type, unsigned long long flags)
{
	if (flags || !type)
		return CUDA_ERROR_INVALID_VALUE;
	return type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ? CUDA_SUCCESS
								: CUDA_ERROR_NOT_SUPPORTED;
}

SIM_API(cuMemPoolExportToShareableHandle, SIM_INIT,
	P(void *ret, CUmemoryPool pool, CUmemAllocationHandleType type, unsigned long long flags),
	P(ret, pool, type, flags))
{
	CUresult r = ret && sim_handle_is(pool, SIM_H_POOL) ? posix_only(type, flags)
							    : CUDA_ERROR_INVALID_VALUE;
	uint64_t nonce;
	int fd;

	if (r)
		return r;
	if (!(pool->handle_types & type) || pool->fd >= 0)
		return CUDA_ERROR_INVALID_VALUE; /* not made for it, or itself imported */
	fd = sim_share_fd(pool->dev_id, &nonce);
	if (fd >= 0)
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(ret, &fd, sizeof(fd));
	return CUDA_SUCCESS;
}

static uint64_t nonce_of(int fd)
{
	char link[64];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return sim_share_nonce(link);
}

SIM_API(cuMemPoolImportFromShareableHandle, SIM_INIT,
	P(CUmemoryPool *ret, void *handle, CUmemAllocationHandleType type,
	  unsigned long long flags),
	P(ret, handle, type, flags))
{
	CUresult r = ret ? posix_only(type, flags) : CUDA_ERROR_INVALID_VALUE;
	int fd = (int)(intptr_t)handle;
	CUmemoryPool p;

	if (r)
		return r;
	if (!nonce_of(fd))
		return CUDA_ERROR_INVALID_VALUE;
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	/* Which device it is says what is imported from it. */
	p = fd < 0 ? NULL : sim_pool_new(0);
	if (!p) {
		if (fd >= 0)
			close(fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	p->fd = fd;
	*ret = p;
	return CUDA_SUCCESS;
}

SIM_API(cuMemPoolExportPointer, SIM_INIT, P(CUmemPoolPtrExportData *ret, CUdeviceptr p), P(ret, p))
{
	struct sim_alloc *a = sim_mem_find(p);
	struct mem_handle h;
	CUresult r;

	if (!ret || !a || a->base != p || !a->pool || !a->pool->handle_types)
		return CUDA_ERROR_INVALID_VALUE;
	r = export_range(a, pool_magic, &h);
	if (r)
		return r;
	_Static_assert(sizeof(h) <= sizeof(*ret), "it travels in one");
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, &h, sizeof(h));
	return CUDA_SUCCESS;
}

SIM_API(cuMemPoolImportPointer, SIM_CTX,
	P(CUdeviceptr *ret, CUmemoryPool pool, CUmemPoolPtrExportData *data), P(ret, pool, data))
{
	struct mem_handle h;
	struct sim_alloc *a;
	CUresult r;

	if (!ret || !data || !sim_handle_is(pool, SIM_H_POOL) || pool->fd < 0)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&h, data, sizeof(h));
	if (memcmp(h.magic, pool_magic, sizeof(h.magic)) || nonce_of(pool->fd) != h.nonce)
		return CUDA_ERROR_INVALID_VALUE;
	r = sim_window_open(call->ctx, SIM_MAP_POOL, pool->fd, h.offset, h.size, &a);
	if (!r)
		*ret = a->base;
	return r;
}
