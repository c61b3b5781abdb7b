/* SPDX-License-Identifier: MIT */
/*
 * A program that uses the driver in the usual way, with a segment that replays exactly, and opens a plugin in between:
 *
 *	plugin_host deepbind|plain|lazy|dlmopen|none PLUGIN [leave]
 *
 * lazy: RTLD_DEEPBIND, and the plugin's function is called only after a step. leave: ends by _exit.
 */
#define _GNU_SOURCE
#include "shim/include/replayshim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long long dptr;

static int (*copy)(dptr, dptr, size_t);
static dptr state, out;

static void segment(void)
{
	replayshim_forward_begin("a", 0);
	copy(out, state, 256);
	replayshim_forward_end();
	replayshim_replay_begin("a", 0);
	copy(out, state, 256);
	replayshim_replay_end();
}

int main(int argc, char **argv)
{
	const char *how = argv[1];
	void *cu = dlopen("libcuda.so.1", RTLD_NOW), *ctx, *plugin;
	int (*init)(unsigned) = dlsym(cu, "cuInit"), (*work)(void) = NULL;
	int (*create)(void **, unsigned, int) = dlsym(cu, "cuCtxCreate_v2");
	int (*alloc)(dptr *, size_t) = dlsym(cu, "cuMemAlloc_v2");

	copy = dlsym(cu, "cuMemcpyDtoD_v2");
	printf("%d ", init(0));
	printf("%d ", create(&ctx, 0, 0));
	printf("%d ", alloc(&state, 256));
	printf("%d\n", alloc(&out, 256));
	replayshim_step(1);
	segment();
	plugin = !strcmp(how, "none")	   ? NULL
		 : !strcmp(how, "dlmopen") ? dlmopen(LM_ID_NEWLM, argv[2], RTLD_NOW)
		 : !strcmp(how, "plain")   ? dlopen(argv[2], RTLD_NOW)
		 : !strcmp(how, "lazy")	   ? dlopen(argv[2], RTLD_LAZY | RTLD_DEEPBIND)
					   : dlopen(argv[2], RTLD_NOW | RTLD_DEEPBIND);
	if (plugin)
		work = dlsym(plugin, "work");
	else if (strcmp(how, "none"))
		printf("%s\n", dlerror());
	replayshim_step(2);
	printf("worked %d\n", work ? work() : -1);
	segment();
	replayshim_step(3);
	fflush(stdout);
	if (argc > 3)
		_exit(0);
	return 0;
}
