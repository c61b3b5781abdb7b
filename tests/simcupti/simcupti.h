/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the stand-in libcupti share: api.c (its functions), record.c (records and buffers), play.c (recorded ones).
 *
 * It watches the simulated device (simcuda_watch): each operation queued by a thread is a call of its own, with an external
 * correlation record for each number pushed, and has a record of its work once the virtual clock knows its times. Records are
 * as long as those of the CUPTI that it stands for.
 *
 *	SIMCUPTI_LOG=PATH             a line for each call, and one at the exit: what has not been given back
 *	SIMCUPTI_FAIL=NAME:N=CODE,..  the N-th call of cuptiNAME, and each later one, answers CODE
 *	SIMCUPTI_PLAY=PATH            not the device's records, but those of a file (play.c)
 *	SIMCUPTI_VERSION=N            what cuptiGetVersion says
 *	SIMCUPTI_SILENT=1             no record ever comes
 *	SIMCUPTI_DROP=N               N records are dropped before the first one comes
 *
 * One recursive lock; CUPTI's user is called under it, as he must expect. The driver's lock may be held meanwhile, so the driver
 * is never called.
 */
#ifndef SIMCUPTI_H
#define SIMCUPTI_H

#include <stddef.h>
#include <stdint.h>

#define SIMCUPTI_API __attribute__((visibility("default")))

typedef void simcupti_requested_fn(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void simcupti_completed_fn(void *context, uint32_t stream, uint8_t *buffer, size_t size,
				   size_t valid);

#define SIMCUPTI_KINDS	   64
#define SIMCUPTI_EXTERNALS 6
#define SIMCUPTI_DEPTH	   64

struct simcupti {
	int version;
	uint8_t enabled[SIMCUPTI_KINDS];
	unsigned calls_enabled; /* single driver and runtime functions */
	simcupti_requested_fn *requested;
	simcupti_completed_fn *completed;
	uint8_t *buffer;
	size_t size, filled;
	int out; /* buffers that we have */
	size_t dropped;
	unsigned flushes;
	uint64_t *pushed; /* all numbers but 0 that were ever pushed */
	unsigned npushed;
	int depth; /* numbers pushed and not popped, all threads */
};
extern struct simcupti simcupti;

/* What the calling thread has pushed, for each kind. */
struct simcupti_stack {
	uint64_t id[SIMCUPTI_DEPTH];
	unsigned n;
};
extern __thread struct simcupti_stack simcupti_stack[SIMCUPTI_EXTERNALS];

void simcupti_lock(void);
void simcupti_unlock(void);
__attribute__((format(printf, 1, 2))) void simcupti_log(const char *fmt, ...);

/* record.c. All under the lock. */
size_t simcupti_record_size(uint32_t kind);
void simcupti_put(const void *record, size_t size);
void simcupti_put_call(uint32_t correlation, uint32_t external_kind, uint64_t id);
void simcupti_put_work(uint32_t kind, uint32_t correlation, uint64_t start, uint64_t end);
void simcupti_complete(size_t valid);
void simcupti_watch(void);

/* play.c: what the file has for this flush. 0: there is no file. */
int simcupti_play(void);

#endif
