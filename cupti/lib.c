/* SPDX-License-Identifier: MIT */
/*
 * See lib.h. Callers: session.c, once.
 */
#include "cupti/lib.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
#define NNAMES (sizeof(names) / sizeof(*names))

/* A second copy beside the one that is there would not be told of the program's work. */
static void *open_any(int driver)
{
	unsigned first = driver >= 13000 ? 0 : 1;
	void *h = NULL;

	for (unsigned i = 0; i < NNAMES && !h; i++)
		h = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
	if (!h)
		h = dlopen(names[first], RTLD_LAZY);
	for (unsigned i = 0; i < NNAMES && !h; i++)
		h = dlopen(names[i], RTLD_LAZY);
	return h;
}

int rs_cupti_lib_open(struct rs_cupti_lib *ret, void *(*symbol)(void *library, const char *name),
		      int driver, char *why, size_t size)
{
	struct rs_cupti_lib lib = {0};
	const char *missing = NULL;
	uint32_t version = 0;
	void *h = open_any(driver);
	int r;

	if (!h) {
		snprintf(why, size, "libcupti.so.12 and .13 were not found");
		return -ENOENT;
	}
#define X(name, params)                                                                            \
	lib.name = (__typeof__(lib.name))symbol(h, "cupti" #name);                                 \
	if (!lib.name)                                                                             \
		missing = "cupti" #name;
	RS_CUPTI_FUNCTIONS(X)
#undef X
#define X(name, params) lib.name = (__typeof__(lib.name))symbol(h, "cupti" #name);
	RS_CUPTI_LATER_FUNCTIONS(X)
#undef X
	if (missing) {
		snprintf(why, size, "libcupti has no %s", missing);
		return -ENOSYS;
	}
	r = lib.GetVersion(&version);
	if (r != RS_CUPTI_SUCCESS || !rs_cupti_version_known(version)) {
		snprintf(why, size, "libcupti's version %u is not known", version);
		return -ENOTSUP;
	}
	*ret = lib;
	return 0;
}
