/* SPDX-License-Identifier: MIT */
/*
 * Segments whose busy times are known to differ from the times between their ends: for tests/t/cupti.t and
 * tests/t/cupti_gpu.t. Also a program that uses CUPTI itself.
 *
 *	busy [--steps=N] [--size=WORDS] [--user=early|late|symbol] [--fork]
 *
 * Each step, forward and replay of "chain" (kernels one after the other), "wide" (a kernel, and a copy from the host on
 * another stream at the same time) and "idle" (nothing for the device). Prints a digest of what was computed.
 * --user: calls libcupti, before cuInit or after the third step, found by dlopen or as a symbol of the process.
 * --fork: a child is forked in the third step, and ends at once.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/include/replayshim.h"
#include "tests/clients/drv.h"

#define CHAIN 4

static CUfunction inc, addto;
static CUstream stream[2];
static CUdeviceptr state, product, landing;
static unsigned *host, words = 1u << 16;

static void chain(void)
{
	void *add[] = {&product, &state, &words}, *more[] = {&product, &words};

	for (int i = 0; i < CHAIN; i++)
		must(drv_launch(i ? inc : addto, words, stream[0], i ? more : add));
}

static void wide(void)
{
	void *more[] = {&product, &words};

	must(cuMemcpyHtoDAsync(landing, host, words * sizeof(*host), stream[1]));
	must(drv_launch(inc, words, stream[0], more));
	must(cuStreamSynchronize(stream[1]));
	must(cuMemsetD32Async(landing, 1, words, stream[1]));
}

static void idle(void)
{
}

static const struct {
	const char *name;
	void (*run)(void);
} segments[] = {{"chain", chain}, {"wide", wide}, {"idle", idle}};

static void step(long n)
{
	replayshim_step(n);
	for (int i = 0; i < 3; i++) {
		replayshim_forward_begin(segments[i].name, 0);
		segments[i].run();
		replayshim_forward_end();
	}
	for (int i = 2; i >= 0; i--) {
		replayshim_replay_begin(segments[i].name, 0);
		segments[i].run();
		replayshim_replay_end();
	}
	must(cuCtxSynchronize());
}

/* --- the program's own use of CUPTI --------------------------------------------------------------- */

static unsigned theirs;

static void requested(uint8_t **buffer, size_t *size, size_t *most)
{
	*buffer = malloc(1 << 16);
	*size = *buffer ? 1 << 16 : 0;
	*most = 0;
}

static void completed(void *context, uint32_t id, uint8_t *buffer, size_t size, size_t valid)
{
	(void)context;
	(void)id;
	(void)size;
	theirs += valid > 0;
	free(buffer);
}

static void *find(const char *how, const char *name)
{
	void *f = !strcmp(how, "symbol") ? dlsym(RTLD_DEFAULT, name) : NULL;

	if (!f)
		f = dlsym(dlopen("libcupti.so.13", RTLD_LAZY), name);
	if (!f) {
		fprintf(stderr, "%s: not there\n", name);
		exit(3);
	}
	return f;
}

static void begin_use(const char *how)
{
	int (*callbacks)(void *, void *) = find(how, "cuptiActivityRegisterCallbacks");
	int (*enable)(int) = find(how, "cuptiActivityEnable");

	must(enable(10));
	must(callbacks((void *)requested, (void *)completed));
}

static void end_use(const char *how)
{
	int (*flush)(unsigned) = find(how, "cuptiActivityFlushAll");
	int (*disable)(int) = find(how, "cuptiActivityDisable");

	must(flush(1));
	must(disable(10));
	printf("their records: %s\n", theirs ? "yes" : "no");
}

/* --- ---------------------------------------------------------------------------------------------- */

static void set_up(void)
{
	CUmodule module;

	drv_context();
	must(cuModuleLoadData(&module, drv_ptx));
	inc = drv_function(module, "inc");
	addto = drv_function(module, "addto");
	for (int i = 0; i < 2; i++)
		must(cuStreamCreate(&stream[i], CU_STREAM_NON_BLOCKING));
	must(cuMemAlloc(&state, words * sizeof(*host)));
	must(cuMemAlloc(&product, words * sizeof(*host)));
	must(cuMemAlloc(&landing, words * sizeof(*host)));
	must(cuMemHostAlloc((void **)&host, words * sizeof(*host), 0));
	must(cuMemsetD32(state, 3, words));
	must(cuMemsetD32(product, 0, words));
	memset(host, 7, words * sizeof(*host));
}

static void fork_child(void)
{
	pid_t pid = fork();
	int status = 0;

	if (!pid)
		exit(0);
	waitpid(pid, &status, 0);
	printf("child: %d\n", status);
}

int main(int argc, char **argv)
{
	char user[16] = "";
	unsigned steps = 8, sum = 0;
	int forks = 0;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--fork"))
			forks = 1;
		else if (sscanf(argv[i], "--steps=%u", &steps) != 1 &&
			 sscanf(argv[i], "--size=%u", &words) != 1 &&
			 sscanf(argv[i], "--user=%15s", user) != 1) {
			fprintf(stderr,
				"usage: busy [--steps=N] [--size=WORDS] [--user=HOW] [--fork]\n");
			return 2;
		}
	}
	if (!strcmp(user, "early"))
		begin_use(user);
	set_up();
	for (unsigned n = 1; n <= steps; n++) {
		step(n);
		if (n == 3 && *user && strcmp(user, "early"))
			begin_use(user);
		if (n == 3 && forks)
			fork_child();
	}
	if (*user)
		end_use(user);
	must(cuMemcpyDtoH(host, product, words * sizeof(*host)));
	for (unsigned i = 0; i < words; i++)
		sum = sum * 31 + host[i];
	printf("sum=%u\n", sum);
	return 0;
}
