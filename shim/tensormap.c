/* SPDX-License-Identifier: MIT */
/*
 * See tensormap.h (entry_points.def, group G6).
 *
 * A map from the digest of a tensor map's bytes to the address in it; maps that differ have different
 * digests but for one pair in 2^64. Entries stay: the same tensor encoded again is the same entry. A program
 * that encodes more than MAX different ones has some that nobody remembers, and then every parameter block
 * that could hold one is an unknown writer's.
 * Callers: the program, any thread. Readers take no lock; one mutex among writers.
 */
#include "shim/tensormap.h"

#include <pthread.h>
#include <string.h>

#include "shim/handles.h"
#include "shim/memo.h"

#define BYTES 128u
#define ALIGN 64u
#define MAX   (1u << 20)

_Static_assert(sizeof(CUtensorMap) == BYTES, "the blob's size");

uint64_t rs_tensormap_count;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rs_handles known;

static const void *key_of(const uint8_t *blob)
{
	uint64_t h = 0, word;

	for (unsigned i = 0; i < BYTES; i += 8) {
		memcpy(&word, blob + i, 8);
		h = rs_digest_mix(h + word * RS_DIGEST_K);
	}
	return (const void *)(uintptr_t)(h ? h : 1);
}

static void remember(const CUtensorMap *map, void *address)
{
	const void *key = key_of((const uint8_t *)map);
	uint64_t count;

	if (!address || rs_handles_find(&known, key) == address)
		return;
	pthread_mutex_lock(&lock);
	count = rs_tensormap_count;
	if (count < MAX && rs_handles_set(&known, key, address))
		count = MAX;
	__atomic_store_n(&rs_tensormap_count, count + 1, __ATOMIC_RELEASE);
	rs_memo_void();
	pthread_mutex_unlock(&lock);
}

void rs_tensormap_scan(struct rs_call *call, struct rs_access *a, unsigned room,
		       const uint8_t *params, uint64_t bytes)
{
	int lost = __atomic_load_n(&rs_tensormap_count, __ATOMIC_ACQUIRE) > MAX;

	for (uint64_t at = 0; at + BYTES <= bytes; at += ALIGN) {
		uint64_t addr = (uintptr_t)rs_handles_find(&known, key_of(params + at));

		if (!addr) {
			call->everything |= lost;
			continue;
		}
		if (!rs_call_known(call, addr)) {
			call->untracked = 1;
			continue;
		}
		if (call->naccess >= room) {
			call->everything = 1;
			return;
		}
		a[call->naccess++] = (struct rs_access){.addr = addr,
							.dir = RS_READ | RS_WRITE,
							.how = RS_HOW_REACHABLE,
							.whole = 1,
							.slot = (uint16_t)(at / 8)};
	}
}

#define ENCODE(sym, params, args, address)                                                         \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, args);                                                            \
		r = rs_real.sym args;                                                              \
		if (r == CUDA_SUCCESS)                                                             \
			RS_ENGINE(remember(tensorMap, address));                                   \
		RS_LEAVE(t, r);                                                                    \
	}

ENCODE(cuTensorMapEncodeTiled,
       (CUtensorMap * tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
	void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
	const cuuint32_t *boxDim, const cuuint32_t *elementStrides,
	CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
	CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill),
       (tensorMap, tensorDataType, tensorRank, globalAddress, globalDim, globalStrides, boxDim,
	elementStrides, interleave, swizzle, l2Promotion, oobFill),
       globalAddress)
ENCODE(cuTensorMapEncodeIm2col,
       (CUtensorMap * tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
	void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
	const int *pixelBoxLowerCorner, const int *pixelBoxUpperCorner, cuuint32_t channelsPerPixel,
	cuuint32_t pixelsPerColumn, const cuuint32_t *elementStrides,
	CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
	CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill),
       (tensorMap, tensorDataType, tensorRank, globalAddress, globalDim, globalStrides,
	pixelBoxLowerCorner, pixelBoxUpperCorner, channelsPerPixel, pixelsPerColumn, elementStrides,
	interleave, swizzle, l2Promotion, oobFill),
       globalAddress)
ENCODE(cuTensorMapEncodeIm2colWide,
       (CUtensorMap * tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
	void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
	int pixelBoxLowerCornerWidth, int pixelBoxUpperCornerWidth, cuuint32_t channelsPerPixel,
	cuuint32_t pixelsPerColumn, const cuuint32_t *elementStrides,
	CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode mode,
	CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
	CUtensorMapFloatOOBfill oobFill),
       (tensorMap, tensorDataType, tensorRank, globalAddress, globalDim, globalStrides,
	pixelBoxLowerCornerWidth, pixelBoxUpperCornerWidth, channelsPerPixel, pixelsPerColumn,
	elementStrides, interleave, mode, swizzle, l2Promotion, oobFill),
       globalAddress)
ENCODE(cuTensorMapReplaceAddress, (CUtensorMap * tensorMap, void *globalAddress),
       (tensorMap, globalAddress), globalAddress)
