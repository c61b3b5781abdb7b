/* SPDX-License-Identifier: MIT */
/*
 * What is read of CUPTI, declared by hand: the library is looked up at run time, and its headers need not be there.
 *
 * Rests on cupti_activity.h, cupti_activity_deprecated.h, cupti_result.h and cupti_version.h of CUDA 13.0, which
 * carry every layout since CUDA 5: the fields below have not moved since CUpti_ActivityKernel3 (5.5), CUpti_ActivityMemcpy,
 * CUpti_ActivityMemcpyPtoP and CUpti_ActivityMemset (the first ones); new fields come behind them. CUPTI 12 (versions 19 to 28)
 * writes ActivityKernel9, Memcpy5, MemcpyPtoP4 and Memset4, CUPTI 13 Kernel10, Memcpy6, MemcpyPtoP4 and Memset4. Records of
 * other major versions are not read (rs_cupti_version_known). tests/unit/test_cupti_abi.c compares with the headers where
 * there are any.
 */
#ifndef RS_CUPTI_ABI_H
#define RS_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

/* CUptiResult */
enum {
	RS_CUPTI_SUCCESS = 0,
	RS_CUPTI_MAX_LIMIT_REACHED = 12, /* no more records */
	RS_CUPTI_NOT_INITIALIZED = 15,
	RS_CUPTI_MULTIPLE_USERS = 39,
};

/* CUpti_ActivityKind */
enum {
	RS_CUPTI_KIND_MEMCPY = 1,
	RS_CUPTI_KIND_MEMSET = 2,
	RS_CUPTI_KIND_DRIVER = 4,
	RS_CUPTI_KIND_RUNTIME = 5,
	RS_CUPTI_KIND_CONCURRENT_KERNEL = 10,
	RS_CUPTI_KIND_MEMCPY2 = 22, /* from device to device */
	RS_CUPTI_KIND_EXTERNAL = 39,
};

/* CUpti_ExternalCorrelationKind: the last of the three that are left to tools. */
#define RS_CUPTI_EXTERNAL_OURS 5

/* CUpti_ActivityFlag */
#define RS_CUPTI_FLUSH_FORCED 1u

/* CUpti_ActivityExternalCorrelation: which call was made while which number was pushed. */
struct rs_cupti_external {
	uint32_t kind, external_kind;
	uint64_t external_id;
	uint32_t correlation, reserved;
};

/* Where the fields of the other kinds are: enum value, start, end, correlation; all end before the last one does. */
#define RS_CUPTI_LAYOUTS(X)                                                                        \
	X(CONCURRENT_KERNEL, 16, 24, 92)                                                           \
	X(MEMCPY, 16, 24, 44)                                                                      \
	X(MEMSET, 16, 24, 44)                                                                      \
	X(MEMCPY2, 16, 24, 60)

/* The functions that are used: name in cuptiX, result, parameters. Contexts are pointers here. */
typedef void rs_cupti_requested_fn(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void rs_cupti_completed_fn(void *context, uint32_t stream, uint8_t *buffer, size_t size,
				   size_t valid);
typedef int rs_cupti_next_fn(uint8_t *buffer, size_t valid, void **record);

#define RS_CUPTI_FUNCTIONS(X)                                                                      \
	X(GetVersion, (uint32_t * version))                                                        \
	X(ActivityRegisterCallbacks,                                                               \
	  (rs_cupti_requested_fn * requested, rs_cupti_completed_fn * completed))                  \
	X(ActivityEnable, (int kind))                                                              \
	X(ActivityDisable, (int kind))                                                             \
	X(ActivityFlushAll, (uint32_t flag))                                                       \
	X(ActivityGetNextRecord, (uint8_t * buffer, size_t valid, void **record))                  \
	X(ActivityGetNumDroppedRecords, (void *context, uint32_t stream, size_t *dropped))         \
	X(ActivityPushExternalCorrelationId, (int kind, uint64_t id))                              \
	X(ActivityPopExternalCorrelationId, (int kind, uint64_t *last))

/* Those that older versions lack. */
#define RS_CUPTI_LATER_FUNCTIONS(X)                                                                \
	X(ActivityEnableDriverApi, (uint32_t number, uint8_t enable))                              \
	X(ActivityEnableRuntimeApi, (uint32_t number, uint8_t enable))

struct rs_cupti_lib {
#define X(name, params) int(*name) params;
	RS_CUPTI_FUNCTIONS(X)
	RS_CUPTI_LATER_FUNCTIONS(X)
#undef X
};

/* 12.0 is 19, 12.9 is 28; from 13.0 on it is major, minor and update: 130000. */
static inline int rs_cupti_version_known(uint32_t version)
{
	return (version >= 19 && version < 100) || version / 10000 == 13;
}

#endif
