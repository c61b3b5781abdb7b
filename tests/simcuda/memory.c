/* SPDX-License-Identifier: MIT */
/*
 * Memory of the simulated devices: address arenas, allocation records, the two views of them.
 *
 * A device address is a host address. Each device, and pinned host memory, has an arena: address space
 * reserved at cuInit at a fixed place (where it is free), cut into blocks of size classes, freed
 * blocks reused last in, first out; so addresses are the same from run to run, and are reused as a real
 * driver does. A red zone behind every block keeps neighbours apart.
 *
 * The host view (sim_mem_host) is what API calls check against, the device view (sim_mem_dev) what an
 * executing op may touch; they differ while a stream-ordered allocation or free is queued.
 * Device memory enters the device view filled with SIM_PATTERN and leaves it filled with SIM_POISON
 * (large blocks: unmapped pages). Driver lock held.
 */
#include "tests/simcuda/vmm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <wchar.h>

#define GRANULE	     512u
#define RED_ZONE     512u
#define CLASSES	     512
#define FIRST_ARENA  0x7e9000000000ull
#define HOST_SPACE   (1ull << 37)
#define OPEN_STEP    (4u << 20)
#define DROP_PAGES   (1u << 20) /* freed blocks from this size on give their pages back */
#define HUGE_PAGES   (8u << 20) /* blocks from this size on are asked to have large ones */
#define FREED_MEMORY 1024

struct sim_arena {
	uint64_t base, size, next,
		open; /* accessible up to `open`: tools scan what is accessible */
	struct bin {
		uint64_t *addr;
		size_t n, cap;
	} bins[CLASSES];
	uint64_t used, peak, limit;
};

static struct sim_arena arenas[SIM_MAX_DEVICES + 1]; /* the last one: pinned host memory */
static struct sim_alloc *all;
static uint64_t next_serial = 1;
struct sim_tree sim_mem_host, sim_mem_dev;
uint64_t sim_mem_top;

/* What was freed lately, so that a fault can say "use after free". */
static struct {
	uint64_t base, size, serial;
} freed[FREED_MEMORY];
static unsigned nfreed;

static struct sim_arena *arena_of(int dev)
{
	return &arenas[dev < 0 ? SIM_MAX_DEVICES : dev];
}

CUresult sim_mem_init(void)
{
	uint64_t at = FIRST_ARENA;

	for (int i = 0; i <= SIM_MAX_DEVICES; i++) {
		struct sim_arena *a = &arenas[i];
		uint64_t size =
			i == SIM_MAX_DEVICES ? HOST_SPACE : sim_options.memory * 4 + (1ull << 30);
		void *p;

		if (i < SIM_MAX_DEVICES && i >= (int)sim_options.devices)
			continue;
		p = mmap((void *)(uintptr_t)at, size, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
		if (p == MAP_FAILED)
			p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				 -1, 0);
		if (p == MAP_FAILED) {
			sim_log("cannot reserve %llu bytes of address space",
				(unsigned long long)size);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		a->base = a->next = a->open = (uint64_t)(uintptr_t)p;
		a->size = size;
		a->limit = i == SIM_MAX_DEVICES ? HOST_SPACE : sim_options.memory;
		at += (size + (1ull << 30) - 1) & ~((1ull << 30) - 1);
	}
	sim_mem_top = at;
	return CUDA_SUCCESS;
}

void sim_mem_arena(int dev, uint64_t *ret_base, uint64_t *ret_size)
{
	*ret_base = arenas[dev].base;
	*ret_size = arenas[dev].size;
}

/* Size classes: every granule up to 64 KiB, then eight a power of two. */
static unsigned class_of(uint64_t size, uint64_t *ret_bytes)
{
	uint64_t g = (size + GRANULE - 1) / GRANULE, step;
	unsigned top;

	if (g <= 128) {
		*ret_bytes = g * GRANULE;
		return (unsigned)g;
	}
	top = 63 - (unsigned)__builtin_clzll(g - 1); /* 2^top <= g - 1 */
	step = 1ull << (top - 3);
	g = (g + step - 1) / step * step;
	*ret_bytes = g * GRANULE;
	return 128 + (top - 7) * 8 + (unsigned)((g >> (top - 3)) - 8);
}

static bool open_up_to(struct sim_arena *a, uint64_t end)
{
	uint64_t step = OPEN_STEP, top = a->base + a->size;

	if (end <= a->open)
		return true;
	end = a->base + (end - a->base + step - 1) / step * step;
	if (end > top)
		end = top;
	if (mprotect((void *)(uintptr_t)a->open, end - a->open, PROT_READ | PROT_WRITE))
		return false;
	a->open = end;
	return true;
}

uint64_t sim_mem_get(int dev, size_t size, uint64_t *ret_block)
{
	struct sim_arena *a = arena_of(dev);
	uint64_t block;
	struct bin *b;

	if (size > a->size)
		return 0;
	b = &a->bins[class_of(size + RED_ZONE, &block)];
	*ret_block = block;
	if (b->n)
		return b->addr[--b->n];
	if (a->next + block > a->base + a->size || !open_up_to(a, a->next + block))
		return 0;
	if (block >= HUGE_PAGES)
		madvise((void *)(uintptr_t)((a->next + 4095) & ~4095ull), block & ~4095ull,
			MADV_HUGEPAGE); /* fewer faults; where it is refused, nothing is lost */
	a->next += block;
	return a->next - block;
}

void sim_mem_put(int dev, uint64_t addr, uint64_t block)
{
	uint64_t bytes;
	struct bin *b = &arena_of(dev)->bins[class_of(block, &bytes)];

	if (block >= DROP_PAGES) {
		uint64_t from = (addr + 4095) & ~4095ull, to = (addr + block) & ~4095ull;

		madvise((void *)(uintptr_t)from, to - from, MADV_DONTNEED);
		sim_share_dropped(dev, from, to - from);
	}
	if (b->n == b->cap) {
		size_t cap = b->cap ? b->cap * 2 : 16;
		uint64_t *p = realloc(b->addr, cap * sizeof(*p));

		if (!p)
			return; /* the addresses are lost, nothing else */
		b->addr = p;
		b->cap = cap;
	}
	b->addr[b->n++] = addr;
}

bool sim_mem_charge(int dev, uint64_t bytes)
{
	struct sim_arena *a = arena_of(dev);

	if (bytes > a->limit - a->used)
		return false;
	a->used += bytes;
	if (a->used > a->peak)
		a->peak = a->used;
	return true;
}

void sim_mem_uncharge(int dev, uint64_t bytes)
{
	arena_of(dev)->used -= bytes;
}

uint64_t sim_mem_used(int dev)
{
	return arena_of(dev)->used;
}

uint64_t sim_mem_peak(int dev)
{
	return arena_of(dev)->peak;
}

void sim_mem_restart_peak(int dev)
{
	arena_of(dev)->peak = arena_of(dev)->used;
}

static bool on_device(enum sim_mem_kind kind)
{
	return kind == SIM_MEM_DEVICE || kind == SIM_MEM_MANAGED || kind == SIM_MEM_MODULE;
}

static uint64_t charge_of(uint64_t size)
{
	return (size + GRANULE - 1) & ~(uint64_t)(GRANULE - 1);
}

void sim_mem_fill(uint64_t addr, uint64_t size, uint32_t word)
{
	wmemset((wchar_t *)(uintptr_t)addr, (wchar_t)word, size / 4);
	memcpy((void *)(uintptr_t)(addr + size / 4 * 4), &word, size % 4);
}

void sim_mem_show(struct sim_alloc *a)
{
	if (on_device(a->kind))
		sim_mem_fill(a->base, a->size, SIM_PATTERN);
	if (a->init && a->kind == SIM_MEM_DEVICE)
		memset(a->init, 0, a->size);
	sim_tree_insert(&sim_mem_dev, &a->dev, a->base, a->size, a);
	a->in_dev = true;
}

void sim_mem_hide(struct sim_alloc *a)
{
	if (!a->in_dev)
		return;
	if (on_device(a->kind) && a->size < DROP_PAGES)
		sim_mem_fill(a->base, a->size, SIM_POISON);
	sim_tree_remove(&sim_mem_dev, &a->dev);
	a->in_dev = false;
	freed[nfreed % FREED_MEMORY].base = a->base;
	freed[nfreed % FREED_MEMORY].size = a->size;
	freed[nfreed++ % FREED_MEMORY].serial = a->serial;
}

struct sim_alloc *sim_mem_record(CUcontext ctx, enum sim_mem_kind kind, uint64_t base, size_t size,
				 uint64_t block, unsigned flags)
{
	struct sim_alloc *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	/* Only device memory starts uninitialised; the host may write the other kinds unseen. */
	if (sim_options.check_uninit && kind == SIM_MEM_DEVICE) {
		a->init = calloc(1, size);
		if (!a->init) {
			free(a);
			return NULL;
		}
	}
	a->kind = kind;
	a->base = base;
	a->size = size;
	a->block = block;
	a->flags = flags;
	a->ctx = ctx;
	a->dev_id = ctx ? ctx->dev_id : 0;
	a->serial = next_serial++;
	a->next = all;
	if (all)
		all->prev = a;
	all = a;
	sim_tree_insert(&sim_mem_host, &a->host, base, size, a);
	a->in_host = true;
	return a;
}

CUresult sim_mem_alloc(CUcontext ctx, enum sim_mem_kind kind, size_t size, unsigned flags,
		       struct sim_alloc **ret)
{
	int dev = on_device(kind) ? ctx->dev_id : -1;
	uint64_t addr, block;
	struct sim_alloc *a;

	if (!size)
		return CUDA_ERROR_INVALID_VALUE;
	if (size > (1ull << 46))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!sim_mem_charge(dev, charge_of(size))) {
		if (dev >= 0)
			sim_pool_trim_all(dev);
		if (!sim_mem_charge(dev, charge_of(size)))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	addr = sim_mem_get(dev, size, &block);
	a = addr ? sim_mem_record(ctx, kind, addr, size, block, flags) : NULL;
	if (!a) {
		if (addr)
			sim_mem_put(dev, addr, block);
		sim_mem_uncharge(dev, charge_of(size));
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	sim_mem_show(a);
	*ret = a;
	return CUDA_SUCCESS;
}

void sim_mem_forget(struct sim_alloc *a)
{
	if (a->in_host)
		sim_tree_remove(&sim_mem_host, &a->host);
	sim_mem_hide(a);
	if (a->next)
		a->next->prev = a->prev;
	if (a->prev)
		a->prev->next = a->next;
	else
		all = a->next;
	if (a->kind != SIM_MEM_MAPPED)
		free(a->init);
	free(a->advice);
	free(a->map);
	free(a);
}

void sim_mem_free(struct sim_alloc *a)
{
	int dev = on_device(a->kind) ? a->dev_id : -1;
	uint64_t addr = a->base, block = a->block, size = a->size;
	bool owned = a->kind != SIM_MEM_REGISTERED;

	if (a->kind == SIM_MEM_MAPPED) {
		sim_map_drop(a);
		return;
	}
	sim_mem_forget(a);
	if (owned) {
		sim_mem_put(dev, addr, block);
		sim_mem_uncharge(dev, charge_of(size));
	}
}

void sim_mem_free_ctx(CUcontext ctx)
{
	struct sim_alloc *a = all, *next;

	for (; a; a = next) {
		next = a->next;
		if (a->ctx == ctx && !a->pool)
			sim_mem_free(a);
	}
}

struct sim_alloc *sim_mem_find(uint64_t addr)
{
	return sim_tree_find(&sim_mem_host, addr);
}

enum sim_mem_kind sim_mem_kind(uint64_t addr)
{
	struct sim_alloc *a = sim_mem_find(addr);

	if (!a)
		return sim_tree_find(&sim_resv_tree, addr) ? SIM_MEM_RESERVED : SIM_MEM_PAGEABLE;
	if (a->kind != SIM_MEM_MAPPED)
		return a->kind;
	return a->dev_id < 0 ? SIM_MEM_PINNED : SIM_MEM_DEVICE;
}

/* Neighbours in one reservation are one range. */
static struct sim_resv *resv_of(const struct sim_alloc *a)
{
	return a && a->kind == SIM_MEM_MAPPED ? a->map->resv : NULL;
}

static bool covers(const struct sim_tree *t, uint64_t addr, uint64_t size, bool to_write)
{
	const struct sim_alloc *a = sim_tree_find(t, addr);
	const struct sim_resv *resv = resv_of(a);

	for (;;) {
		uint64_t room = a ? a->size - (addr - a->base) : 0;

		if (!a || (to_write && a->kind == SIM_MEM_MAPPED && !a->map->writers))
			return false;
		if (size <= room)
			return true;
		addr += room;
		size -= room;
		a = resv ? sim_tree_find(t, addr) : NULL;
		if (resv_of(a) != resv)
			return false;
	}
}

bool sim_mem_covers(uint64_t addr, uint64_t size)
{
	return covers(&sim_mem_host, addr, size, false);
}

bool sim_mem_live(uint64_t addr, uint64_t size)
{
	return covers(&sim_mem_dev, addr, size, false);
}

bool sim_mem_writable(uint64_t addr, uint64_t size)
{
	return covers(&sim_mem_dev, addr, size, true);
}

bool sim_mem_foreign(uint64_t addr)
{
	return !sim_tree_find(&sim_mem_dev, addr) && !sim_tree_find(&sim_resv_tree, addr);
}

void sim_mem_mark_init(uint64_t addr, uint64_t size)
{
	struct sim_alloc *a = sim_options.check_uninit ? sim_tree_find(&sim_mem_dev, addr) : NULL;

	if (a && a->init)
		memset(a->init + (addr - a->base), 1, size);
}

void sim_mem_copy_init(uint64_t dst, uint64_t src, uint64_t size)
{
	struct sim_alloc *s = sim_options.check_uninit ? sim_tree_find(&sim_mem_dev, src) : NULL;
	struct sim_alloc *d = sim_options.check_uninit ? sim_tree_find(&sim_mem_dev, dst) : NULL;

	if (!d || !d->init)
		return;
	if (s && s->init)
		memmove(d->init + (dst - d->base), s->init + (src - s->base), size);
	else
		memset(d->init + (dst - d->base), 1, size);
}

const char *sim_mem_describe(uint64_t addr, char *buf, size_t len)
{
	struct sim_alloc *a = sim_tree_find(&sim_mem_dev, addr);
	unsigned n = nfreed < FREED_MEMORY ? nfreed : FREED_MEMORY;

	if (a) {
		snprintf(buf, len, "offset %llu of allocation %llu (%llu bytes)%s",
			 (unsigned long long)(addr - a->base), (unsigned long long)a->serial,
			 (unsigned long long)a->size,
			 a->kind == SIM_MEM_MAPPED && !a->map->writers ? ", for reading only" : "");
		return buf;
	}
	a = sim_mem_find(addr);
	if (a && a->kind == SIM_MEM_MAPPED) {
		snprintf(buf, len, "offset %llu of mapping %llu (%llu bytes), without access to it",
			 (unsigned long long)(addr - a->base), (unsigned long long)a->serial,
			 (unsigned long long)a->size);
		return buf;
	}
	for (unsigned i = 1; i <= n; i++) {
		unsigned k = (nfreed - i) % FREED_MEMORY;

		if (addr - freed[k].base < freed[k].size) {
			snprintf(buf, len,
				 "use after free: offset %llu of allocation %llu (%llu bytes)",
				 (unsigned long long)(addr - freed[k].base),
				 (unsigned long long)freed[k].serial,
				 (unsigned long long)freed[k].size);
			return buf;
		}
	}
	for (unsigned back = 1; back <= 4096; back *= 2) {
		a = sim_tree_find(&sim_mem_dev, addr - back);
		if (a) {
			snprintf(buf, len,
				 "%llu bytes past the end of allocation %llu (%llu bytes)",
				 (unsigned long long)(addr - a->base - a->size),
				 (unsigned long long)a->serial, (unsigned long long)a->size);
			return buf;
		}
	}
	snprintf(buf, len, "%s",
		 sim_tree_find(&sim_resv_tree, addr) ? "reserved, but nothing is mapped there"
						     : "no allocation of this device");
	return buf;
}

struct gather {
	CUcontext ctx;
	bool failed;
};

/* True if the mapping needs no range of its own: not accessible, or one with the neighbour below. */
static bool gather_mapping(CUcontext c, const struct sim_alloc *a)
{
	struct sim_range *last = c->nranges ? &c->ranges[c->nranges - 1] : NULL;
	bool read_only = !(a->map->writers >> c->dev_id & 1);

	if (!(a->map->readers >> c->dev_id & 1))
		return true;
	if (!last || last->base + last->size != a->base || last->read_only != read_only ||
	    !a->map->resv || sim_tree_find(&sim_resv_tree, last->base) != a->map->resv)
		return false;
	last->size += a->size;
	return true;
}

static void gather_range(void *owner, void *opaque)
{
	struct gather *g = opaque;
	struct sim_alloc *a = owner;
	CUcontext c = g->ctx;

	if ((a->kind == SIM_MEM_DEVICE || a->kind == SIM_MEM_MODULE) && a->dev_id != c->dev_id &&
	    !(c->peers >> a->dev_id & 1))
		return;
	if (a->kind == SIM_MEM_MAPPED && gather_mapping(c, a))
		return;
	if (c->nranges == c->cranges) {
		size_t cap = c->cranges ? c->cranges * 2 : 64;
		struct sim_range *p = realloc(c->ranges, cap * sizeof(*p));

		if (!p) {
			g->failed = true;
			return;
		}
		c->ranges = p;
		c->cranges = cap;
	}
	c->ranges[c->nranges++] = (struct sim_range){a->base, a->size, a->init,
						     a->kind == SIM_MEM_MAPPED &&
							     !(a->map->writers >> c->dev_id & 1)};
}

void sim_mem_ranges(CUcontext ctx, const struct sim_range **ret, size_t *ret_n)
{
	struct gather g = {ctx, false};

	if (ctx->ranges_generation != sim_mem_dev.generation + 1) {
		ctx->nranges = 0;
		sim_tree_walk(sim_mem_dev.root, gather_range, &g);
		/* One past the generation, so that 0 is "never built". */
		ctx->ranges_generation = g.failed ? 0 : sim_mem_dev.generation + 1;
	}
	*ret = ctx->ranges;
	*ret_n = ctx->nranges;
}
