/* SPDX-License-Identifier: MIT */
/*
 * The set of live handles: an open-addressing hash table from pointer to kind.
 *
 * A handle that is not in the table is refused with CUDA_ERROR_INVALID_HANDLE instead of being
 * dereferenced, so a use after destroy is an error and not a crash. Driver lock held.
 */
#include "tests/simcuda/sim.h"

#include <errno.h>
#include <stdlib.h>

struct slot {
	const void *p; /* NULL: free, TOMB: deleted */
	enum sim_handle_kind kind;
};

static struct slot *slots;
static size_t nslots, nused;
static const char tomb;
#define TOMB ((const void *)&tomb)

static size_t hash(const void *p)
{
	return (size_t)(((uint64_t)(uintptr_t)p >> 4) * 0x9e3779b97f4a7c15ull >> 20);
}

static void place(const void *p, enum sim_handle_kind kind)
{
	size_t i = hash(p) & (nslots - 1);

	while (slots[i].p && slots[i].p != TOMB)
		i = (i + 1) & (nslots - 1);
	nused += !slots[i].p;
	slots[i] = (struct slot){p, kind};
}

static int grow(void)
{
	struct slot *old = slots;
	size_t n = nslots, live = 0;
	struct slot *fresh;

	for (size_t i = 0; i < n; i++)
		live += old[i].p && old[i].p != TOMB;
	nslots = 64;
	while (nslots < live * 4)
		nslots *= 2;
	fresh = calloc(nslots, sizeof(*fresh));
	if (!fresh) {
		nslots = n;
		return -ENOMEM;
	}
	slots = fresh;
	nused = 0;
	for (size_t i = 0; i < n; i++)
		if (old[i].p && old[i].p != TOMB)
			place(old[i].p, old[i].kind);
	free(old);
	return 0;
}

int sim_handle_add(const void *p, enum sim_handle_kind kind)
{
	if ((nused + 1) * 2 > nslots && grow())
		return -ENOMEM;
	place(p, kind);
	return 0;
}

static struct slot *find(const void *p)
{
	if (!nslots || !p)
		return NULL;
	for (size_t i = hash(p) & (nslots - 1); slots[i].p; i = (i + 1) & (nslots - 1))
		if (slots[i].p == p)
			return &slots[i];
	return NULL;
}

void sim_handle_del(const void *p)
{
	struct slot *s = find(p);

	if (s)
		*s = (struct slot){TOMB, SIM_H_NONE};
}

enum sim_handle_kind sim_handle_kind(const void *p)
{
	struct slot *s = find(p);

	return s ? s->kind : SIM_H_NONE;
}
