/* SPDX-License-Identifier: MIT */
/*
 * NVIDIA's cuRAND functions: those that the program's own look-up found, else the next in load order, else those of
 * libcurand.so.10.
 *
 * Bound once, never rebound; a second copy of the library in one process is handed out untouched. No link
 * dependency, and nothing is loaded before the program calls.
 * Callers: doors.c and, through the resolvers, any wrapper. One mutex, held over dlopen and dlsym of libc only.
 */
#include "shim/curand.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static int bound, busy;

static int open_real(void);

#define CURAND(sym, action, params, args)                                                          \
	static rs_curand_status first_##sym params                                                 \
	{                                                                                          \
		if (open_real())                                                                   \
			return RS_CURAND_NOT_INITIALIZED;                                          \
		return rs_curand_real.sym args;                                                    \
	}
#include "shim/curand.def"
#undef CURAND

struct rs_curand_real rs_curand_real = {
#define CURAND(sym, action, params, args) .sym = first_##sym,
#include "shim/curand.def"
#undef CURAND
};

static const struct {
	const char *name;
	void *hook;
} hooks[RS_CURAND_COUNT] = {
#define CURAND(sym, action, params, args) {#sym, (void *)rs_curand_hook_##sym},
#include "shim/curand.def"
#undef CURAND
};

static void *bound_address(unsigned i)
{
	void *const *real = (void *const *)&rs_curand_real;

	return __atomic_load_n(real + i, __ATOMIC_RELAXED);
}

/* A function that this version of the library lacks. */
static rs_curand_status missing(void)
{
	return RS_CURAND_TYPE_ERROR;
}

/* Under lock. */
static int bind(void *handle)
{
	void **real = (void **)&rs_curand_real;
	void *addr = rs_doors_dlsym(handle, hooks[0].name);

	if (!addr || addr == hooks[0].hook)
		return -ENOENT;
	for (unsigned i = 0; i < RS_CURAND_COUNT; i++) {
		addr = rs_doors_dlsym(handle, hooks[i].name);
		__atomic_store_n(real + i, addr ? addr : (void *)missing, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&bound, 1, __ATOMIC_RELEASE);
	return 0;
}

static int open_real(void)
{
	void *handle;

	if (__atomic_load_n(&bound, __ATOMIC_ACQUIRE))
		return 0;
	pthread_mutex_lock(&lock);
	if (!bound && !busy) {
		busy = 1;
		if (bind(RTLD_NEXT)) {
			handle = dlopen("libcurand.so.10", RTLD_LAZY);
			if (handle)
				bind(handle);
		}
		busy = 0;
	}
	pthread_mutex_unlock(&lock);
	return bound ? 0 : -ENOENT;
}

static void bind_address(void *addr)
{
	void *handle;

	if (__atomic_load_n(&bound, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&lock);
	if (!bound && !busy) {
		busy = 1;
		handle = rs_doors_library_of(addr);
		if (handle)
			bind(handle);
		busy = 0;
	}
	pthread_mutex_unlock(&lock);
}

void *rs_curand_exchange(const char *name, void *addr)
{
	for (unsigned i = 0; i < RS_CURAND_COUNT; i++) {
		if (strcmp(hooks[i].name, name))
			continue;
		bind_address(addr);
		return bound_address(i) == addr ? hooks[i].hook : NULL;
	}
	return NULL;
}

int rs_curand_knows(const char *name)
{
	for (unsigned i = 0; i < RS_CURAND_COUNT; i++)
		if (!strcmp(hooks[i].name, name))
			return 1;
	return 0;
}

void rs_curand_report(struct rs_json *j)
{
	for (unsigned i = 0; i < RS_CURAND_COUNT; i++) {
		uint64_t n = __atomic_load_n(&rs_curand_count[i], __ATOMIC_RELAXED);

		if (n)
			rs_json_u64(j, hooks[i].name, n);
	}
}
