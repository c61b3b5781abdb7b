/* SPDX-License-Identifier: MIT */
/*
 * Source lines by elfutils' libdw, if the machine has it: it is looked up at run time, so that neither building nor
 * running replayctl needs it. Its functions are declared here as its manual has them.
 * Callers: symbols.c. Single-threaded; the library is loaded once.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

#include "planner/symbols.h"

struct callbacks {
	void *find_elf, *find_debuginfo, *section_address;
	char **debuginfo_path;
};

static struct {
	void *(*begin)(const struct callbacks *);
	void *(*report_offline)(void *dwfl, const char *name, const char *file, int fd);
	int (*report_end)(void *dwfl, void *removed, void *arg);
	void *(*getelf)(void *module, uint64_t *ret_bias);
	void *(*getsrc)(void *module, uint64_t address);
	const char *(*lineinfo)(void *line, uint64_t *address, int *ret_line, int *column,
				uint64_t *mtime, uint64_t *length);
	struct callbacks callbacks;
} dw;

struct rs_debuglines {
	void *module;
	uint64_t bias;
};

/* 1: it is there. */
static int load(void)
{
	static const struct {
		void *slot;
		const char *name;
	} functions[] = {
		{&dw.begin, "dwfl_begin"},
		{&dw.report_offline, "dwfl_report_offline"},
		{&dw.report_end, "dwfl_report_end"},
		{&dw.getelf, "dwfl_module_getelf"},
		{&dw.getsrc, "dwfl_module_getsrc"},
		{&dw.lineinfo, "dwfl_lineinfo"},
		{&dw.callbacks.find_elf, "dwfl_build_id_find_elf"},
		{&dw.callbacks.find_debuginfo, "dwfl_standard_find_debuginfo"},
		{&dw.callbacks.section_address, "dwfl_offline_section_address"},
	};
	static int state; /* 1: there, -1: not */
	void *lib = state ? NULL : dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);

	if (state)
		return state > 0;
	state = lib ? 1 : -1;
	for (size_t i = 0; lib && i < sizeof(functions) / sizeof(functions[0]); i++) {
		*(void **)functions[i].slot = dlsym(lib, functions[i].name);
		if (!*(void **)functions[i].slot)
			state = -1;
	}
	return state > 0;
}

struct rs_debuglines *rs_debuglines_open(const char *path)
{
	struct rs_debuglines *d;
	void *dwfl, *module;

	dwfl = load() ? dw.begin(&dw.callbacks) : NULL;
	module = dwfl ? dw.report_offline(dwfl, path, path, -1) : NULL;
	if (!module || dw.report_end(dwfl, NULL, NULL))
		return NULL;
	d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->module = module;
	if (dw.getelf(module, &d->bias))
		return d;
	free(d);
	return NULL;
}

const char *rs_debuglines_find(struct rs_debuglines *d, uint64_t address, unsigned *ret_line)
{
	void *found = dw.getsrc(d->module, address + d->bias);
	int line = 0;
	const char *file = found ? dw.lineinfo(found, NULL, &line, NULL, NULL, NULL) : NULL;

	if (!file || line <= 0)
		return NULL;
	*ret_line = (unsigned)line;
	return file;
}
