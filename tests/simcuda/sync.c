/* SPDX-License-Identifier: MIT */
/*
 * Semaphores and events that other processes see, too: external semaphores, interprocess events.
 *
 * An opaque file descriptor is a binary semaphore, an eventfd: a signal writes 1, a wait takes it. A
 * timeline, by file descriptor of either type, is a file whose first eight bytes are its value. The
 * state of an interprocess event is a page of a memfd: how often it was recorded, and which records
 * are done; each record has a ticket, and a wait is for the last ticket at the time of the call.
 *
 * Waits poll, like waits for values in memory do (sched.c), so the other side may be any process.
 * Works hold references: a semaphore may be destroyed while they are queued. Driver lock held.
 */
#include "tests/simcuda/vmm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORDS 256 /* of one event that may be outstanding at a time */
#define PAGE	4096

enum sync_kind { BINARY, TIMELINE, EVENT };

struct sim_sync {
	unsigned refs;
	enum sync_kind kind;
	int fd;
	uint64_t nonce; /* events */
	union {
		uint64_t *value;
		struct event_page {
			uint64_t recorded, done[RECORDS];
		} * event;
	};
};

struct CUextSemaphore_st {
	struct sim_sync *sync;
};

void sim_sync_unref(struct sim_sync *s)
{
	if (!s || --s->refs)
		return;
	if (s->value)
		munmap(s->value, PAGE);
	close(s->fd);
	free(s);
}

/* Takes the file, on success only. */
static struct sim_sync *sync_new(enum sync_kind kind, int fd)
{
	struct sim_sync *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	*s = (struct sim_sync){.refs = 1, .kind = kind, .fd = fd};
	if (kind == BINARY)
		return s;
	s->value = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s->value == MAP_FAILED) {
		free(s);
		return NULL;
	}
	return s;
}

/* ---- interprocess events ---- */

static uint64_t load(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static struct sim_sync *event_sync(int fd, uint64_t nonce)
{
	struct sim_sync *s = fd < 0 ? NULL : sync_new(EVENT, fd);

	if (s)
		s->nonce = nonce;
	else if (fd >= 0)
		close(fd);
	return s;
}

struct sim_sync *sim_sync_event(void)
{
	uint64_t nonce = 0;
	int fd = sim_share_file("event", PAGE, &nonce);

	return event_sync(fd, nonce);
}

uint64_t sim_sync_record(struct sim_sync *s)
{
	return __atomic_add_fetch(&s->event->recorded, 1, __ATOMIC_ACQ_REL);
}

uint64_t sim_sync_last(struct sim_sync *s)
{
	return load(&s->event->recorded);
}

bool sim_sync_done(struct sim_sync *s, uint64_t ticket)
{
	return load(&s->event->done[ticket % RECORDS]) >= ticket;
}

static void record_done(struct sim_sync *s, uint64_t ticket)
{
	uint64_t *slot = &s->event->done[ticket % RECORDS], was = load(slot);

	while (was < ticket && !__atomic_compare_exchange_n(slot, &was, ticket, false,
							    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		;
}

/* What travels: the file of a process. */
struct event_handle {
	char magic[8];
	int32_t pid, fd, dev;
	uint64_t nonce;
};
_Static_assert(sizeof(struct event_handle) <= sizeof(CUipcEventHandle), "it travels in one");

static const char event_magic[8] = "simevent";

SIM_API(cuIpcGetEventHandle, SIM_CTX, P(CUipcEventHandle *ret, CUevent e), P(ret, e))
{
	struct event_handle h = {.pid = getpid()};

	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_handle_is(e, SIM_H_EVENT) || !e->sync)
		return CUDA_ERROR_INVALID_HANDLE;
	memcpy(h.magic, event_magic, sizeof(h.magic));
	h.fd = e->sync->fd;
	h.dev = e->ctx->dev_id;
	h.nonce = e->sync->nonce;
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, &h, sizeof(h));
	return CUDA_SUCCESS;
}

SIM_API(cuIpcOpenEventHandle, SIM_CTX, P(CUevent *ret, CUipcEventHandle handle), P(ret, handle))
{
	struct event_handle h;
	char link[64];
	CUevent e;

	memcpy(&h, &handle, sizeof(h));
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (memcmp(h.magic, event_magic, sizeof(h.magic)))
		return CUDA_ERROR_INVALID_HANDLE;
	if (h.pid == getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	snprintf(link, sizeof(link), "/proc/%d/fd/%d", h.pid, h.fd);
	if (!h.nonce || sim_share_nonce(link) != h.nonce)
		return CUDA_ERROR_INVALID_HANDLE; /* its owner is gone, or another now */
	e = calloc(1, sizeof(*e));
	if (!e)
		return CUDA_ERROR_OUT_OF_MEMORY;
	e->ctx = call->ctx;
	e->flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
	e->sync = event_sync(open(link, O_RDWR | O_CLOEXEC), h.nonce);
	if (!e->sync || sim_handle_add(e, SIM_H_EVENT)) {
		sim_sync_unref(e->sync);
		free(e);
		return CUDA_ERROR_MAP_FAILED;
	}
	*ret = e;
	return CUDA_SUCCESS;
}

/* ---- works ---- */

static int work_new(enum sim_work_kind kind, unsigned n, struct sim_work *ret)
{
	*ret = (struct sim_work){.kind = kind};
	ret->sync.items = calloc(n, sizeof(*ret->sync.items));
	return ret->sync.items ? 0 : -ENOMEM;
}

static void work_add(struct sim_work *w, struct sim_sync *s, uint64_t value)
{
	s->refs++;
	w->sync.items[w->sync.n++] = (struct sim_sync_item){s, value};
}

int sim_sync_work(enum sim_work_kind kind, struct sim_sync *s, uint64_t value, struct sim_work *ret)
{
	int r = work_new(kind, 1, ret);

	if (!r)
		work_add(ret, s, value);
	return r;
}

/* Signals and waits give their values at the same place of structures of one size. */
#define SEM_PARAMS CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS
_Static_assert(sizeof(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS) == sizeof(SEM_PARAMS) &&
		       offsetof(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, params.fence.value) ==
			       offsetof(SEM_PARAMS, params.fence.value),
	       "parameters of signals and waits");

/* As given, for those who ask a graph's node. */
static int keep_params(struct sim_work *w, const CUexternalSemaphore *sems, const void *params)
{
	unsigned n = w->sync.n;

	w->sync.sems = malloc(n * sizeof(*sems));
	w->sync.params = malloc(n * sizeof(SEM_PARAMS));
	if (!w->sync.sems || !w->sync.params)
		return -ENOMEM;
	memcpy(w->sync.sems, sems, n * sizeof(*sems));
	memcpy(w->sync.params, params, n * sizeof(SEM_PARAMS));
	return 0;
}

CUresult sim_sync_sems(enum sim_work_kind kind, const CUexternalSemaphore *sems, const void *params,
		       unsigned n, struct sim_work *ret)
{
	const SEM_PARAMS *p = params;

	if (!sems || !params || !n)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < n; i++)
		if (!sim_handle_is(sems[i], SIM_H_EXTSEM))
			return CUDA_ERROR_INVALID_HANDLE;
	if (work_new(kind, n, ret))
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned i = 0; i < n; i++)
		work_add(ret, sems[i]->sync, p[i].params.fence.value);
	if (!keep_params(ret, sems, params))
		return CUDA_SUCCESS;
	sim_work_clear(ret);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

int sim_sync_clone(struct sim_work *dst, const struct sim_work *src)
{
	if (work_new(src->kind, src->sync.n, dst)) {
		dst->kind = SIM_WORK_NOP;
		return -ENOMEM;
	}
	for (unsigned i = 0; i < src->sync.n; i++)
		work_add(dst, src->sync.items[i].sync, src->sync.items[i].value);
	if (!src->sync.sems || !keep_params(dst, src->sync.sems, src->sync.params))
		return 0;
	sim_work_clear(dst);
	return -ENOMEM;
}

void sim_sync_clear(struct sim_work *w)
{
	for (unsigned i = 0; i < w->sync.n; i++)
		sim_sync_unref(w->sync.items[i].sync);
	free(w->sync.items);
	free(w->sync.sems);
	free(w->sync.params);
}

static bool blocked(struct sim_sync *s, uint64_t value)
{
	struct pollfd p = {.fd = s->fd, .events = POLLIN};

	if (s->kind == EVENT)
		return !sim_sync_done(s, value);
	if (s->kind == TIMELINE)
		return load(s->value) < value;
	return poll(&p, 1, 0) != 1;
}

bool sim_sync_blocked(const struct sim_work *w)
{
	for (unsigned i = 0; i < w->sync.n; i++)
		if (blocked(w->sync.items[i].sync, w->sync.items[i].value))
			return true;
	return false;
}

static void signal_one(struct sim_sync *s, uint64_t value)
{
	uint64_t one = 1;

	if (s->kind == EVENT)
		record_done(s, value);
	else if (s->kind == TIMELINE)
		__atomic_store_n(s->value, value, __ATOMIC_RELEASE);
	else if (write(s->fd, &one, sizeof(one)) < 0)
		sim_log("a semaphore could not be signalled: %s", strerror(errno));
}

static void take_one(const struct sim_sync *s)
{
	struct pollfd p = {.fd = s->fd, .events = POLLIN};
	uint64_t n;

	/* Never block: somebody else may have taken it since the poll. */
	if (s->kind == BINARY && poll(&p, 1, 0) == 1 && read(s->fd, &n, sizeof(n)) < 0)
		sim_log("a semaphore could not be reset: %s", strerror(errno));
}

void sim_sync_run(const struct sim_work *w)
{
	for (unsigned i = 0; i < w->sync.n; i++) {
		if (w->kind == SIM_WORK_SIGNAL)
			signal_one(w->sync.items[i].sync, w->sync.items[i].value);
		else
			take_one(w->sync.items[i].sync);
	}
}

/* ---- external semaphores ---- */

static bool is_eventfd(int fd)
{
	char link[64], to[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, to, sizeof(to) - 1);
	if (n < 0)
		return false;
	to[n] = 0;
	return strstr(to, "[eventfd]");
}

SIM_API(cuImportExternalSemaphore, SIM_CTX,
	P(CUexternalSemaphore *ret, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *d), P(ret, d))
{
	bool timeline;
	CUexternalSemaphore sem;
	struct stat st;

	if (!ret || !d || d->flags)
		return CUDA_ERROR_INVALID_VALUE;
	timeline = d->type == CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;
	if (!timeline && d->type != CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD)
		return d->type < CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD ||
				       d->type >
					       CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_WIN32
			       ? CUDA_ERROR_INVALID_VALUE
			       : CUDA_ERROR_NOT_SUPPORTED;
	if (fstat(d->handle.fd, &st))
		return CUDA_ERROR_INVALID_VALUE;
	if (timeline || !is_eventfd(d->handle.fd)) {
		timeline = true;
		if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(uint64_t))
			return CUDA_ERROR_INVALID_HANDLE;
	}
	sem = calloc(1, sizeof(*sem));
	if (!sem)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* The descriptor is the driver's from now on. */
	sem->sync = sync_new(timeline ? TIMELINE : BINARY, d->handle.fd);
	if (!sem->sync || sim_handle_add(sem, SIM_H_EXTSEM)) {
		if (sem->sync)
			sem->sync->fd = -1; /* on failure it stays the caller's */
		sim_sync_unref(sem->sync);
		free(sem);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = sem;
	return CUDA_SUCCESS;
}

SIM_API(cuDestroyExternalSemaphore, SIM_CTX, P(CUexternalSemaphore sem), P(sem))
{
	if (!sim_handle_is(sem, SIM_H_EXTSEM))
		return CUDA_ERROR_INVALID_HANDLE;
	sim_handle_del(sem);
	sim_sync_unref(sem->sync);
	free(sem);
	return CUDA_SUCCESS;
}

static CUresult submit(struct sim_call *call, struct sim_work *w, CUstream h)
{
	CUstream s;
	CUresult r = sim_stream_get(call, h, &s);

	if (!r)
		return sim_stream_submit(s, w, NULL);
	sim_work_clear(w);
	return r;
}

SIM_TWINS(cuSignalExternalSemaphoresAsync, _ptsz, SIM_CTX,
	  P(const CUexternalSemaphore *sems, const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *params,
	    unsigned n, CUstream h),
	  P(sems, params, n, h))
{
	struct sim_work w;
	CUresult r = sim_sync_sems(SIM_WORK_SIGNAL, sems, params, n, &w);

	return r ? r : submit(call, &w, h);
}

SIM_TWINS(cuWaitExternalSemaphoresAsync, _ptsz, SIM_CTX,
	  P(const CUexternalSemaphore *sems, const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *params,
	    unsigned n, CUstream h),
	  P(sems, params, n, h))
{
	struct sim_work w;
	CUresult r = sim_sync_sems(SIM_WORK_AWAIT, sems, params, n, &w);

	return r ? r : submit(call, &w, h);
}
