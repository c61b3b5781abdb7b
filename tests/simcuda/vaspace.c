/* SPDX-License-Identifier: MIT */
/*
 * Address space apart from the arenas: for reservations (vmm.c) and windows on files (window.c).
 *
 * Handed out upwards from the end of the arenas, so that addresses repeat from run to run; what is
 * given back is handed out again, last in, first out, as drivers do. A gap behind each piece keeps an
 * access past its end from landing in the next one. Driver lock held.
 */
#include "tests/simcuda/vmm.h"

#include <stdlib.h>
#include <sys/mman.h>

#define GAP   SIM_GRANULARITY
#define TRIES 64

struct sim_tree sim_resv_tree;

static struct piece {
	uint64_t base, size;
} * spare;
static size_t nspare, cspare;
static uint64_t next;

static void *ptr(uint64_t addr)
{
	return (void *)(uintptr_t)addr;
}

static uint64_t reserve_at(uint64_t at, uint64_t size)
{
	void *p = mmap(ptr(at), size, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (p == MAP_FAILED)
		return 0;
	if (p == ptr(at))
		return at;
	munmap(p, size); /* a kernel that does not know the flag takes it for a hint */
	return 0;
}

static uint64_t reserve_anywhere(uint64_t size, uint64_t align)
{
	char *p = mmap(NULL, size + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		       -1, 0);

	/* What is too much stays reserved: it separates this piece from others. */
	return p == MAP_FAILED ? 0 : ((uint64_t)(uintptr_t)p + align - 1) & ~(align - 1);
}

static uint64_t take_spare(uint64_t size, uint64_t align, uint64_t hint)
{
	for (size_t i = nspare; i--;) {
		uint64_t base = spare[i].base;

		if (spare[i].size != size || base & (align - 1) || (hint && base != hint))
			continue;
		for (nspare--; i < nspare; i++)
			spare[i] = spare[i + 1];
		return base;
	}
	return 0;
}

uint64_t sim_va_get(uint64_t size, uint64_t align, uint64_t hint)
{
	uint64_t at = hint && !(hint & (align - 1)) ? take_spare(size, align, hint) : 0;

	if (!at && hint && !(hint & (align - 1)))
		at = reserve_at(hint, size);
	if (!at)
		at = take_spare(size, align, 0);
	if (!next)
		next = sim_mem_top;
	for (unsigned i = 0; !at && i < TRIES; i++) {
		next = (next + align - 1) & ~(align - 1);
		at = reserve_at(next, size);
		next += at ? size + GAP : align > GAP ? align : GAP;
	}
	return at ? at : reserve_anywhere(size, align);
}

void sim_va_close(uint64_t base, uint64_t size)
{
	mmap(ptr(base), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
	     -1, 0);
}

void sim_va_put(uint64_t base, uint64_t size)
{
	if (nspare == cspare) {
		size_t cap = cspare ? cspare * 2 : 16;
		struct piece *p = realloc(spare, cap * sizeof(*p));

		if (!p)
			return; /* these addresses are not used again, nothing else */
		spare = p;
		cspare = cap;
	}
	spare[nspare++] = (struct piece){base, size};
}
