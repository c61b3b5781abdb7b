/* SPDX-License-Identifier: MIT */
/*
 * Entering and leaving the simulated driver; start-up, fork, resolution of entry points.
 *
 * One lock covers the whole driver. sim_api_enter takes it, sim_api_leave gives it back; a failed
 * enter has nothing to give back. The order of the checks: forked child, host function (which must
 * not call CUDA), not initialised, injected fault, no context, sticky error, stream capture.
 *
 * cuGetProcAddress answers from api.def: of the entries of a base name, the newest whose version does
 * not exceed the requested one; with the per-thread flag, that version's _ptsz/_ptds twin if it has
 * one. cuGetExportTable never gives a table: NVIDIA's private tables are not ours to imitate.
 */
#include "tests/simcuda/sim.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

__thread int sim_api_in_callback;

static pthread_mutex_t api_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t api_cond = PTHREAD_COND_INITIALIZER;
static bool api_initialised, api_forked;

/* cudaProfiler.h is not in every header package; CUoutput_mode is an enumeration. */
#pragma GCC visibility push(default)
CUresult cuProfilerInitialize(const char *config, const char *output, int mode);
CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);
#pragma GCC visibility pop

static const struct api_entry {
	const char *symbol, *base;
	int version;
	int twin; /* 0 plain, 1 per-thread */
	void *fn;
} api_table[] = {
#define API(symbol, base, version, twin) {#symbol, #base, version, twin, (void *)symbol},
#include "tests/simcuda/api.def"
#undef API
};

const char *sim_api_name(enum sim_api_id id)
{
	return api_table[id].symbol;
}

void sim_api_lock(void)
{
	pthread_mutex_lock(&api_mutex);
}

void sim_api_unlock(void)
{
	pthread_mutex_unlock(&api_mutex);
}

void sim_api_wait(unsigned ms)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += (long)ms * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&api_cond, &api_mutex, &t);
}

void sim_api_wake(void)
{
	pthread_cond_broadcast(&api_cond);
}

static void fork_child(void)
{
	pthread_mutex_init(&api_mutex, NULL);
	pthread_cond_init(&api_cond, NULL);
	if (api_initialised)
		api_forked = true;
}

static void api_setup(void)
{
	sim_options_load();
	pthread_atfork(sim_api_lock, sim_api_unlock, fork_child);
}

static CUresult enter_context(struct sim_call *call, unsigned need)
{
	call->ctx = sim_ctx_current();
	if ((need & SIM_CTX) == SIM_CTX) {
		if (!call->ctx || call->ctx->destroyed)
			return call->ctx ? CUDA_ERROR_CONTEXT_IS_DESTROYED
					 : CUDA_ERROR_INVALID_CONTEXT;
		if (call->ctx->sticky)
			return call->ctx->sticky;
	}
	return need & SIM_UNSAFE ? sim_capture_unsafe() : CUDA_SUCCESS;
}

void sim_api_prepare(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, api_setup);
}

CUresult sim_api_enter(struct sim_call *call, enum sim_api_id id, unsigned need)
{
	CUresult r;

	sim_api_prepare();
	call->id = id;
	call->per_thread = api_table[id].twin;
	call->ctx = NULL;
	if (api_forked && (need || id == SIM_ID_cuInit))
		return CUDA_ERROR_NOT_INITIALIZED;
	if (need && sim_api_in_callback)
		return CUDA_ERROR_NOT_PERMITTED;
	sim_api_lock();
	if (need && !api_initialised)
		r = CUDA_ERROR_NOT_INITIALIZED;
	else
		r = sim_options_fault(id);
	if (!r && need)
		r = enter_context(call, need);
	if (r)
		sim_api_unlock();
	return r;
}

CUresult sim_api_leave(struct sim_call *call, CUresult r)
{
	(void)call;
	sim_api_unlock();
	return r;
}

SIM_API(cuInit, SIM_ANY, P(unsigned int flags), P(flags))
{
	CUresult r;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (api_initialised)
		return CUDA_SUCCESS;
	if (!sim_options.devices)
		return CUDA_ERROR_NO_DEVICE;
	r = sim_mem_init();
	if (!r)
		api_initialised = true;
	return r;
}

SIM_API(cuDriverGetVersion, SIM_ANY, P(int *version), P(version))
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = 13000;
	return CUDA_SUCCESS;
}

SIM_API(cuGetExportTable, SIM_ANY, P(const void **table, const CUuuid *id), P(table, id))
{
	if (table)
		*table = NULL;
	return id ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

/* The best entry for (base, version, per_thread); *ret_known tells whether the base exists at all. */
static const struct api_entry *api_find(const char *base, int version, bool per_thread,
					bool *ret_known)
{
	const struct api_entry *best = NULL;

	*ret_known = false;
	for (unsigned i = 0; i < SIM_API_COUNT; i++) {
		const struct api_entry *e = &api_table[i];

		if (strcmp(e->base, base))
			continue;
		*ret_known = true;
		if (e->version > version || (e->twin && !per_thread))
			continue;
		if (!best || e->version > best->version ||
		    (e->version == best->version && e->twin > best->twin))
			best = e;
	}
	return best;
}

static CUresult proc_address(const char *symbol, void **pfn, int version, cuuint64_t flags,
			     CUdriverProcAddressQueryResult *ret_status)
{
	const struct api_entry *e;
	bool known;

	if (!symbol || !pfn || version > 13000 || flags > 2 || version < 0)
		return CUDA_ERROR_INVALID_VALUE;
	e = api_find(symbol, version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
		     &known);
	*pfn = e ? e->fn : NULL;
	*ret_status = e	      ? CU_GET_PROC_ADDRESS_SUCCESS
		      : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
			      : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return CUDA_SUCCESS;
}

SIM_API(cuGetProcAddress, SIM_ANY, P(const char *symbol, void **pfn, int version, cuuint64_t flags),
	P(symbol, pfn, version, flags))
{
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
	CUresult r = proc_address(symbol, pfn, version, flags, &status);

	/* This ABI has no status to tell: a missing symbol is an error. */
	return r ? r : status ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

SIM_API(cuGetProcAddress_v2, SIM_ANY,
	P(const char *symbol, void **pfn, int version, cuuint64_t flags,
	  CUdriverProcAddressQueryResult *status),
	P(symbol, pfn, version, flags, status))
{
	CUdriverProcAddressQueryResult s = CU_GET_PROC_ADDRESS_SUCCESS;
	CUresult r = proc_address(symbol, pfn, version, flags, &s);

	if (!r && status)
		*status = s;
	return r;
}

/* There is no profiler behind these; starting and stopping one that is not attached succeeds. */
SIM_API(cuProfilerInitialize, SIM_INIT, P(const char *config, const char *output, int mode),
	P(config, output, mode))
{
	(void)config, (void)output, (void)mode;
	return CUDA_ERROR_NOT_SUPPORTED;
}

#define SIM_API0(name, need)                                                                       \
	CUresult name(void)                                                                        \
	{                                                                                          \
		struct sim_call call;                                                              \
		CUresult r = sim_api_enter(&call, SIM_ID_##name, need);                            \
                                                                                                   \
		return r ? r : sim_api_leave(&call, CUDA_SUCCESS);                                 \
	}
SIM_API0(cuProfilerStart, SIM_CTX)
SIM_API0(cuProfilerStop, SIM_CTX)
