/* SPDX-License-Identifier: MIT */
/*
 * The stand-in's functions: those that cupti/ uses, and those by which other users of CUPTI begin. See simcupti.h.
 */
#include "tests/simcupti/simcupti.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS, INVALID_PARAMETER = 1, NOT_READY = 13, QUEUE_EMPTY = 18, MAX_LIMIT_REACHED = 12 };

struct simcupti simcupti;
__thread struct simcupti_stack simcupti_stack[SIMCUPTI_EXTERNALS];

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static int log_fd = -1;

void simcupti_lock(void)
{
	pthread_mutex_lock(&lock);
}

void simcupti_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void simcupti_log(const char *fmt, ...)
{
	char text[200];
	va_list ap;

	if (log_fd < 0)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text) - 1, fmt, ap);
	va_end(ap);
	strcat(text, "\n");
	if (write(log_fd, text, strlen(text)) < 0)
		log_fd = -1;
}

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("SIMCUPTI_LOG"), *version = getenv("SIMCUPTI_VERSION");

	simcupti.version = version ? atoi(version) : SIMCUPTI_MAJOR == 12 ? 26 : 130000;
	if (path)
		log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	simcupti_log("loaded %d", SIMCUPTI_MAJOR);
	if (!getenv("SIMCUPTI_PLAY") && !getenv("SIMCUPTI_SILENT"))
		simcupti_watch();
}

__attribute__((destructor)) static void end(void)
{
	int kinds = 0;

	for (unsigned i = 0; i < SIMCUPTI_KINDS; i++)
		kinds += simcupti.enabled[i];
	simcupti_log("exit: %d buffers, %d kinds, %u calls, %d pushed", simcupti.out, kinds,
		     simcupti.calls_enabled, simcupti.depth);
}

/* SIMCUPTI_FAIL: the code for this call, or SUCCESS. */
static int fault(const char *name)
{
	static struct {
		char name[48];
		unsigned n;
	} seen[32];
	const char *at = getenv("SIMCUPTI_FAIL");
	size_t len = strlen(name);
	unsigned i = 0, from;
	int code;

	simcupti_log("%s", name);
	while (i < 31 && seen[i].name[0] && strcmp(seen[i].name, name))
		i++;
	snprintf(seen[i].name, sizeof(seen[i].name), "%s", name);
	seen[i].n++;
	for (; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (!strncmp(at, name, len) && sscanf(at + len, ":%u=%d", &from, &code) == 2 &&
		    seen[i].n >= from)
			return code;
	return SUCCESS;
}

#define API(name, params, ...)                                                                     \
	SIMCUPTI_API int cupti##name params;                                                       \
	int cupti##name params                                                                     \
	{                                                                                          \
		int r;                                                                             \
                                                                                                   \
		simcupti_lock();                                                                   \
		r = fault(#name);                                                                  \
		if (!r) {                                                                          \
			__VA_ARGS__;                                                               \
		}                                                                                  \
		simcupti_unlock();                                                                 \
		return r;                                                                          \
	}

API(GetVersion, (uint32_t * version), *version = (uint32_t)simcupti.version)

API(ActivityRegisterCallbacks,
    (simcupti_requested_fn * requested, simcupti_completed_fn *completed),
    simcupti.requested = requested, simcupti.completed = completed)

static int set_kind(int kind, uint8_t on)
{
	if (kind <= 0 || kind >= SIMCUPTI_KINDS)
		return INVALID_PARAMETER;
	simcupti.enabled[kind] = on;
	simcupti_log(" kind %d %s", kind, on ? "on" : "off");
	return SUCCESS;
}

API(ActivityEnable, (int kind), r = set_kind(kind, 1))
API(ActivityDisable, (int kind), r = set_kind(kind, 0))
API(ActivityEnableContext, (void *context, int kind), (void)context, r = set_kind(kind, 1))
API(ActivityEnableAndDump, (int kind), r = set_kind(kind, 1))
API(Subscribe, (void **handle, void *callback, void *data), (void)data, *handle = callback)
API(Subscribe_v2, (void **handle, void *callback, void *data, void *params), (void)data,
    (void)params, *handle = callback)
API(ProfilerInitialize, (void *params), (void)params)
API(Finalize, (void), (void)0)

#if SIMCUPTI_MAJOR > 12
API(ActivityEnableDriverApi, (uint32_t number, uint8_t enable), (void)number,
    simcupti.calls_enabled += enable ? 1u : -1u)
API(ActivityEnableRuntimeApi, (uint32_t number, uint8_t enable), (void)number,
    simcupti.calls_enabled += enable ? 1u : -1u)
#endif

static int flush(void)
{
	if (!simcupti.completed)
		return 7; /* CUPTI_ERROR_INVALID_OPERATION */
	simcupti.flushes++;
	if (!simcupti_play() && simcupti.filled)
		simcupti_complete(simcupti.filled);
	return SUCCESS;
}

API(ActivityFlushAll, (uint32_t flag), if (flag) simcupti_log(" forced"); r = flush();
    if (flag) simcupti_complete(0))

static int push(int kind, uint64_t id)
{
	struct simcupti_stack *s = &simcupti_stack[kind];
	uint64_t *p;

	if (s->n == SIMCUPTI_DEPTH)
		return NOT_READY;
	s->id[s->n++] = id;
	simcupti.depth++;
	if (!id)
		return SUCCESS;
	p = realloc(simcupti.pushed, (simcupti.npushed + 1) * sizeof(*p));
	if (!p)
		return SUCCESS;
	simcupti.pushed = p;
	p[simcupti.npushed++] = id;
	return SUCCESS;
}

static int pop(int kind, uint64_t *last)
{
	struct simcupti_stack *s = &simcupti_stack[kind];

	if (!s->n)
		return QUEUE_EMPTY;
	simcupti.depth--;
	*last = s->id[--s->n];
	return SUCCESS;
}

static int bad_kind(int kind)
{
	return kind <= 0 || kind >= SIMCUPTI_EXTERNALS;
}

API(ActivityPushExternalCorrelationId, (int kind, uint64_t id),
    r = bad_kind(kind) ? INVALID_PARAMETER : push(kind, id))
API(ActivityPopExternalCorrelationId, (int kind, uint64_t *last),
    r = bad_kind(kind) ? INVALID_PARAMETER : pop(kind, last))

API(ActivityGetNumDroppedRecords, (void *context, uint32_t stream, size_t *dropped), (void)context,
    (void)stream, *dropped = simcupti.dropped, simcupti.dropped = 0)

/* From one record to the next, by the kind; where it meets one that it does not know, it stops. */
SIMCUPTI_API int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record);
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record)
{
	uint8_t *p = *record ? *record : buffer;
	uint32_t kind;

	if (*record) {
		memcpy(&kind, p, sizeof(kind));
		/* A recorded one of another kind is 64 bytes long; kind 0x5a5a has no length. */
		p += kind == 0x5a5a		  ? 0
		     : simcupti_record_size(kind) ? simcupti_record_size(kind)
						  : 64;
	}
	if ((size_t)(p - buffer) >= valid)
		return MAX_LIMIT_REACHED;
	if (valid - (size_t)(p - buffer) >= sizeof(kind)) {
		memcpy(&kind, p, sizeof(kind));
		if (!kind)
			return 21; /* CUPTI_ERROR_INVALID_KIND */
	}
	*record = p;
	return SUCCESS;
}
