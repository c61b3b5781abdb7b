/* SPDX-License-Identifier: MIT */
/*
 * The stand-in's records and buffers; see simcupti.h. Lengths and places of fields are those of cupti_activity.h and
 * cupti_activity_deprecated.h of CUDA 13.0, written down here a second time, so that cupti/abi.h is tested by them.
 */
#include "tests/simcupti/simcupti.h"
#include "tests/simcuda/simcuda.h"

#include <stdlib.h>
#include <string.h>

enum { MEMCPY = 1, MEMSET = 2, DRIVER = 4, RUNTIME = 5, KERNEL = 10, PEER = 22, EXTERNAL = 39 };

static uint32_t next_call = 1000;

size_t simcupti_record_size(uint32_t kind)
{
	int new = simcupti.version >= 130000;

	switch (kind) {
	case MEMCPY:
		return new ? 96 : 88;
	case MEMSET:
		return 88;
	case DRIVER:
	case RUNTIME:
		return 40;
	case KERNEL:
		return new ? 216 : 208;
	case PEER:
		return 96;
	case EXTERNAL:
		return 24;
	default:
		return 0;
	}
}

void simcupti_complete(size_t valid)
{
	uint8_t *b = simcupti.buffer;

	if (!b)
		return;
	simcupti.buffer = NULL;
	simcupti.out--;
	simcupti_log("completed %zu", valid);
	simcupti.completed(NULL, 0, b, simcupti.size, valid);
	simcupti.filled = 0;
}

static int make_room(size_t size)
{
	size_t most = 0;

	if (simcupti.buffer && simcupti.filled + size > simcupti.size)
		simcupti_complete(simcupti.filled);
	if (!simcupti.buffer && simcupti.requested) {
		simcupti.filled = 0;
		simcupti.requested(&simcupti.buffer, &simcupti.size, &most);
		simcupti_log("requested %zu", simcupti.buffer ? simcupti.size : 0);
		simcupti.out += simcupti.buffer != NULL;
	}
	return simcupti.buffer && simcupti.filled + size <= simcupti.size;
}

void simcupti_put(const void *record, size_t size)
{
	static int dropping = -1;
	const char *drop = getenv("SIMCUPTI_DROP");

	if (dropping < 0)
		dropping = drop ? atoi(drop) : 0;
	if (dropping || !make_room(size)) {
		dropping -= dropping > 0;
		simcupti.dropped++;
		return;
	}
	memcpy(simcupti.buffer + simcupti.filled, record, size);
	simcupti.filled += size;
}

void simcupti_put_call(uint32_t correlation, uint32_t external_kind, uint64_t id)
{
	struct {
		uint32_t kind, external;
		uint64_t id;
		uint32_t correlation, reserved;
	} r = {EXTERNAL, external_kind, id, correlation, 0};

	simcupti_put(&r, sizeof(r));
}

void simcupti_put_work(uint32_t kind, uint32_t correlation, uint64_t start, uint64_t end)
{
	uint8_t r[256];

	memset(r, 0xab, sizeof(r));
	memcpy(r, &kind, 4);
	memcpy(r + 16, &start, 8);
	memcpy(r + 24, &end, 8);
	memcpy(r + (kind == KERNEL ? 92 : kind == PEER ? 60 : 44), &correlation, 4);
	simcupti_put(r, simcupti_record_size(kind));
}

/* --- the simulated device ----------------------------------------------------------------------- */

static uint32_t kind_of(const struct simcuda_op *op)
{
	return op->kind == SIMCUDA_KERNEL ? KERNEL : op->kind == SIMCUDA_FILL ? MEMSET : MEMCPY;
}

/* The number of an operation of the device is that of its call. */
static uint32_t call_of(const struct simcuda_op *op)
{
	return next_call + (uint32_t)op->seq;
}

static void queued(const struct simcuda_op *op)
{
	uint8_t api[40] = {DRIVER};

	simcupti_lock();
	if (simcupti.enabled[DRIVER] || simcupti.calls_enabled) {
		for (uint32_t k = 0; k < SIMCUPTI_EXTERNALS && simcupti.enabled[EXTERNAL]; k++) {
			const struct simcupti_stack *s = &simcupti_stack[k];

			if (s->n)
				simcupti_put_call(call_of(op), k, s->id[s->n - 1]);
		}
		simcupti_put(api, sizeof(api));
	}
	simcupti_unlock();
}

/* Its clock begins at 0, which is no time in a record. */
static void timed(const struct simcuda_op *op)
{
	simcupti_lock();
	if (simcupti.enabled[kind_of(op)])
		simcupti_put_work(kind_of(op), call_of(op), op->start_ns + 1000000,
				  op->end_ns + 1000000);
	simcupti_unlock();
}

void simcupti_watch(void)
{
	simcuda_watch(queued, timed);
}
