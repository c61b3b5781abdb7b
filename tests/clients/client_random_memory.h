/* SPDX-License-Identifier: MIT */
/*
 * Memory of random programs: buffers of every kind, each beside its twin in the sequential model, and the order of
 * what uses them. Included by client_random.c only.
 *
 * Every choice is a hash of the seed and of what is chosen for (pick()), so that a program without one of its calls
 * makes the others as before. The program orders its work by events between calls that touch the same buffer, and by
 * nothing else; now and then the host waits instead.
 */
#ifndef TESTS_CLIENTS_CLIENT_RANDOM_MEMORY_H
#define TESTS_CLIENTS_CLIENT_RANDOM_MEMORY_H

#include <cuda.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/include/replayshim.h"

#define NSTATE	 8u
#define NSLOT	 10u
#define NSTREAM	 8u
#define PRODUCT	 96u /* words */
#define WORDS	 400u
#define NPRODUCT 1024u
#define MAXBUF	 (NSTATE + NPRODUCT)

typedef CUdeviceptr dev;

enum memory {
	M_DEVICE,
	M_PITCH,
	M_SLAB, /* a part of a large allocation, as caching allocators have them */
	M_POOL,
	M_MAPPED,
	M_ALIASED, /* mapped twice */
	M_STATES,
	/* of products only */
	M_FRESH = M_STATES, /* allocated inside of the window */
	M_ASYNC,
	M_SLOT, /* of the slab; it was there before, and is used again */
	M_KINDS
};

struct buf {
	enum memory kind;
	dev at, alias;
	unsigned words, *model;
	int declared, in_use;
	CUevent wrote, read[NSTREAM];
};

static struct buf state[NSTATE], product[NPRODUCT];
static unsigned nproduct, seed;
static CUstream streams[NSTREAM];
static dev slab;
static int slot_used[NSLOT];
static struct buf slot_order[NSLOT]; /* the events of whoever had the slot last */
static __thread int other_thread;

#define MUST(call)                                                                                 \
	do {                                                                                       \
		CUresult r_ = (call);                                                              \
		if (r_ != CUDA_SUCCESS)                                                            \
			fail(#call, r_);                                                           \
	} while (0)

__attribute__((noreturn)) static void fail(const char *what, CUresult r)
{
	const char *name = "?";

	cuGetErrorName(r, &name);
	fprintf(stderr, "client_random: program %u: %s: %s\n", seed, what, name);
	fflush(stdout);
	_Exit(3);
}

/* --- choices -------------------------------------------------------------------------------------- */

/* A number below n that depends on all of this and on nothing else. */
static unsigned pick(uint64_t a, uint64_t b, const char *what, unsigned n)
{
	uint64_t h = 0xcbf29ce484222325u ^ seed;

	h = (h ^ a) * 0x9e3779b97f4a7c15u;
	h = (h ^ h >> 29 ^ b) * 0xbf58476d1ce4e5b9u;
	while (*what)
		h = (h ^ (unsigned char)*what++) * 0x100000001b3u;
	h = (h ^ h >> 31) * 0x94d049bb133111ebu;
	return (unsigned)((h >> 33) % n);
}

/* --- order ---------------------------------------------------------------------------------------- */

static CUevent event_pool[16384];
static unsigned nevents, events_used;

/* The streams of the legacy kind, and those that wait for it, are others for each thread. */
static CUstream stream_of(unsigned q)
{
	return streams[q];
}

static CUevent record(unsigned q)
{
	CUevent e;

	if (events_used == nevents) {
		if (nevents == sizeof(event_pool) / sizeof(*event_pool))
			fail("events", CUDA_ERROR_OUT_OF_MEMORY);
		MUST(cuEventCreate(&event_pool[nevents++], CU_EVENT_DISABLE_TIMING));
	}
	e = event_pool[events_used++];
	MUST(cuEventRecord(e, stream_of(q)));
	return e;
}

static void wait_for(unsigned q, CUevent e)
{
	if (!e)
		return;
	switch (pick((uintptr_t)events_used, q, "wait", 24)) {
	case 0:
		MUST(cuEventSynchronize(e));
		break;
	case 1:
		while (cuEventQuery(e) == CUDA_ERROR_NOT_READY)
			;
		break;
	default:
		MUST(cuStreamWaitEvent(stream_of(q), e, 0));
	}
}

static void order_read(unsigned q, const struct buf *b)
{
	wait_for(q, b->wrote);
}

static void order_write(unsigned q, const struct buf *b)
{
	wait_for(q, b->wrote);
	for (unsigned i = 0; i < NSTREAM; i++)
		wait_for(q, b->read[i]);
}

static void did_read(struct buf *b, unsigned q, CUevent e)
{
	b->read[q] = e;
}

static void did_write(struct buf *b, CUevent e)
{
	b->wrote = e;
	memset(b->read, 0, sizeof(b->read));
}

/* One of its addresses. */
static dev place(const struct buf *b, unsigned id, const char *what)
{
	return b->alias && pick(id, b->words, what, 2) ? b->alias : b->at;
}

/* --- memory --------------------------------------------------------------------------------------- */

static size_t granularity(void)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
	};
	static size_t bytes;

	if (!bytes)
		MUST(cuMemGetAllocationGranularity(&bytes, &prop,
						   CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	return bytes;
}

static dev map(CUmemGenericAllocationHandle h)
{
	const CUmemAccessDesc rw = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
				    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	size_t bytes = granularity();
	dev at;

	MUST(cuMemAddressReserve(&at, bytes, 0, 0, 0));
	MUST(cuMemMap(at, bytes, 0, h, 0));
	MUST(cuMemSetAccess(at, bytes, &rw, 1));
	return at;
}

static void unmap(dev at)
{
	MUST(cuMemUnmap(at, granularity()));
	MUST(cuMemAddressFree(at, granularity()));
}

static void make_mapped(struct buf *b, int aliased)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
	};
	CUmemGenericAllocationHandle h;

	MUST(cuMemCreate(&h, granularity(), &prop, 0));
	b->at = map(h);
	if (aliased)
		b->alias = map(h);
	MUST(cuMemRelease(h));
}

static void make_state(unsigned i)
{
	struct buf *b = &state[i];
	size_t pitch;
	char name[24];

	memset(b, 0, sizeof(*b));
	b->kind = (enum memory)pick(i, 0, "kind", M_STATES);
	b->words = 128 + pick(i, 1, "words", WORDS - 128);
	b->declared = pick(i, 2, "declared", 2) == 0;
	b->model = malloc(b->words * 4);
	switch (b->kind) {
	case M_PITCH:
		MUST(cuMemAllocPitch(&b->at, &pitch, 128, (b->words * 4 + 127) / 128, 4));
		break;
	case M_SLAB:
		b->at = slab + (NSLOT * PRODUCT + i * WORDS) * 4;
		break;
	case M_POOL:
		MUST(cuMemAllocAsync(&b->at, b->words * 4, streams[0]));
		MUST(cuStreamSynchronize(streams[0]));
		break;
	case M_MAPPED:
	case M_ALIASED:
		make_mapped(b, b->kind == M_ALIASED);
		break;
	default:
		MUST(cuMemAlloc(&b->at, b->words * 4));
	}
	for (unsigned j = 0; j < b->words; j++)
		b->model[j] = pick(i, j, "bytes", 1u << 30);
	MUST(cuMemcpyHtoD(b->at, b->model, b->words * 4));
	MUST(cuCtxSynchronize());
	snprintf(name, sizeof(name), "state:s%u", i);
	if (b->declared)
		replayshim_region_name(b->at, b->words * 4, name);
}

static void drop_state(struct buf *b)
{
	if (b->declared)
		replayshim_region_drop(b->at, b->words * 4);
	switch (b->kind) {
	case M_SLAB:
		break;
	case M_POOL:
		MUST(cuMemFreeAsync(b->at, streams[1]));
		break;
	case M_MAPPED:
	case M_ALIASED:
		unmap(b->at);
		if (b->alias)
			unmap(b->alias);
		break;
	default:
		MUST(cuMemFree(b->at));
	}
	free(b->model);
}

/* --- products ------------------------------------------------------------------------------------- */

/* What a segment makes, in new memory each time; q is a stream to allocate on; alone: not beside others. */
static struct buf *make_product(unsigned id, unsigned q, int alone)
{
	static const enum memory kinds[] = {M_FRESH, M_ASYNC, M_SLOT, M_SLOT};
	struct buf *b = &product[nproduct++];
	unsigned s = pick(id, 0, "slot", NSLOT), i;

	if (nproduct == NPRODUCT)
		fail("products", CUDA_ERROR_OUT_OF_MEMORY);
	memset(b, 0, sizeof(*b));
	b->kind = kinds[pick(id, 0, "product", alone ? 2 : 4)];
	b->words = PRODUCT;
	b->model = calloc(PRODUCT, 4);
	b->in_use = 1;
	for (i = 0; b->kind == M_SLOT && i < NSLOT && slot_used[s]; i++)
		s = (s + 1) % NSLOT;
	if (b->kind == M_SLOT && slot_used[s])
		b->kind = M_FRESH;
	switch (b->kind) {
	case M_ASYNC:
		MUST(cuMemAllocAsync(&b->at, PRODUCT * 4, stream_of(q)));
		b->wrote = record(q);
		break;
	case M_SLOT:
		slot_used[s] = 1;
		b->at = slab + s * PRODUCT * 4;
		b->wrote = slot_order[s].wrote;
		memcpy(b->read, slot_order[s].read, sizeof(b->read));
		break;
	default:
		MUST(cuMemAlloc(&b->at, PRODUCT * 4));
	}
	return b;
}

/* Nobody needs it any more; what still runs may. */
static void release_product(struct buf *b, unsigned id)
{
	unsigned q = pick(id, 0, "freeing", NSTREAM), s;

	if (!b->in_use)
		return;
	b->in_use = 0;
	switch (b->kind) {
	case M_ASYNC:
		order_write(q, b);
		MUST(cuMemFreeAsync(b->at, stream_of(q)));
		break;
	case M_SLOT:
		s = (unsigned)((b->at - slab) / (PRODUCT * 4));
		slot_used[s] = 0;
		slot_order[s] = *b;
		break;
	default: /* this waits for whoever uses it */
		MUST(cuMemFree(b->at));
	}
}

#endif
