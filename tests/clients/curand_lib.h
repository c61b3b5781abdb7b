/* SPDX-License-Identifier: MIT */
/*
 * A cuRAND library opened by name, as a table of its functions.
 *
 * Programs here do not link libcurand: the stand-in is found beside the build's other libraries, the real one where
 * a toolkit is.
 */
#ifndef TESTS_CLIENTS_CURAND_LIB_H
#define TESTS_CLIENTS_CURAND_LIB_H

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/curand_abi.h"

struct curand {
#define CURAND(sym, action, params, args) rs_curand_status(*sym) params;
#include "shim/curand.def"
#undef CURAND
};

/* The number of functions that are missing. */
__attribute__((unused)) static int curand_resolve(struct curand *c, void *handle)
{
	int missing = 0;

#define CURAND(sym, action, params, args)                                                          \
	c->sym = (__typeof__(c->sym))dlsym(handle, #sym);                                          \
	missing += !c->sym;
#include "shim/curand.def"
#undef CURAND
	return missing;
}

/* The same, or -1 if there is no such library. */
__attribute__((unused)) static int curand_open(struct curand *c, const char *path)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	return handle ? curand_resolve(c, handle) : -1;
}

/* build/clients/PROGRAM -> build/simcurand/libcurand.so.10 */
__attribute__((unused)) static int curand_sim_path(char path[PATH_MAX + 64])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);

	for (int up = 0; up < 2; up++) {
		while (n > 0 && path[n - 1] != '/')
			n--;
		n -= n > 0;
	}
	if (n <= 0)
		return -1;
	strcpy(path + n, "/simcurand/libcurand.so.10");
	return 0;
}

__attribute__((unused)) static int curand_open_sim(struct curand *c)
{
	char path[PATH_MAX + 64];

	return curand_sim_path(path) ? -1 : curand_open(c, path);
}

/* By the global scope, as a linked program's calls are bound: what is preloaded comes first. */
__attribute__((unused)) static int curand_open_global(struct curand *c)
{
	char path[PATH_MAX + 64];

	if (curand_sim_path(path) || !dlopen(path, RTLD_NOW | RTLD_GLOBAL))
		return -1;
	return curand_resolve(c, RTLD_DEFAULT);
}

#endif
