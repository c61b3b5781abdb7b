/* SPDX-License-Identifier: MIT */
/*
 * What the hazard programs have in common: memory, work, probes, windows, steps, main. Included by one file a
 * program, which says HAZARD_MODULES, the PTX texts, and ends in HAZARD_MAIN(cases).
 *
 *	PROGRAM CASE [VARIANT...] [--streams] [--steps=N | --seeds=N]
 *
 * prints the resulting words of the last step as name=value lines, whatever they are, and exits 0. With --seeds
 * every step runs under a schedule of its own (the simulated device's random:1 to random:N) and prints its words
 * as N:name=value. Words are 32 bits and wrap.
 *
 * --streams: forwards and everything outside run on one stream, replays on another, ordered by events
 * and by nothing else. Results are gathered by copies on the device, so that the host never waits
 * before the step has been issued as a whole. One thread; nothing is shared.
 *
 * --mapped: each state is a mapping of its own of a handle of its own (cuMemCreate, cuMemMap), and each window begins with
 * copies of them all: they are read as wholes, so that a replay can be shown them by remapping.
 */
#ifndef TESTS_CLIENTS_HAZARDS_RIG_H
#define TESTS_CLIENTS_HAZARDS_RIG_H

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/include/replayshim.h"

#define MUST(call)                                                                                 \
	do {                                                                                       \
		CUresult r_ = (call);                                                              \
		if (r_ != CUDA_SUCCESS)                                                            \
			fail(#call, r_);                                                           \
	} while (0)

/* A program need not use everything below. */
#define RIG __attribute__((unused)) static

typedef CUdeviceptr dev;

static const char *const module_text[] = {HAZARD_MODULES};
#define MODULES (sizeof(module_text) / sizeof(module_text[0]))
static CUmodule modules[MODULES];
static CUstream outside, replays, on; /* `on`: where work goes now */
static CUevent handover;
static int nargs;
static char **args;

static dev owned[64];
static unsigned nowned;

#define PROBE_WORDS 256
static dev probes;
static unsigned nprobed;
static char probe_name[PROBE_WORDS][32];

/* What the host counts, printed behind the words. */
static struct {
	char name[32];
	unsigned value;
} told[8];
static unsigned ntold;

__attribute__((noreturn)) static void fail(const char *what, CUresult r)
{
	const char *name = "?";

	cuGetErrorName(r, &name);
	fprintf(stderr, "%s: %s: %s\n", args[0], what, name);
	exit(3);
}

RIG int option(const char *name)
{
	int i;

	for (i = 0; i < nargs; i++)
		if (!strcmp(args[i], name))
			return 1;
	return 0;
}

/* --- memory and work ------------------------------------------------------------------------ */

/* States that are mappings, and where each stream's windows copy them to. */
#define MAPPINGS 32
static dev mapping[MAPPINGS], landing[2];
static unsigned nmappings;
static size_t mapping_bytes;

static dev map_state(void)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
	};
	const CUmemAccessDesc rw = {.location = prop.location,
				    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle h;
	dev p;

	if (nmappings == MAPPINGS)
		fail("too many states", CUDA_ERROR_INVALID_VALUE);
	MUST(cuMemCreate(&h, mapping_bytes, &prop, 0));
	MUST(cuMemAddressReserve(&p, mapping_bytes, 0, 0, 0));
	MUST(cuMemMap(p, mapping_bytes, 0, h, 0));
	MUST(cuMemSetAccess(p, mapping_bytes, &rw, 1));
	MUST(cuMemRelease(h));
	MUST(cuMemsetD32(p, 0, mapping_bytes / 4));
	return mapping[nmappings++] = p;
}

static void give_back(dev p)
{
	unsigned i;

	for (i = 0; i < nmappings && mapping[i] != p; i++)
		;
	if (i == nmappings) {
		MUST(cuMemFree(p));
		return;
	}
	mapping[i] = mapping[--nmappings];
	MUST(cuCtxSynchronize());
	MUST(cuMemUnmap(p, mapping_bytes));
	MUST(cuMemAddressFree(p, mapping_bytes));
}

RIG void read_mappings(void)
{
	unsigned i;

	for (i = 0; i < nmappings; i++)
		MUST(cuMemcpyDtoDAsync(landing[on == replays], mapping[i], mapping_bytes, on));
}

#define replayshim_forward_begin(name, invocation)                                                 \
	(replayshim_forward_begin(name, invocation), read_mappings())
#define replayshim_replay_begin(name, invocation)                                                  \
	(replayshim_replay_begin(name, invocation), read_mappings())

RIG dev alloc(unsigned words)
{
	dev p;

	MUST(cuMemAlloc(&p, words * 4));
	owned[nowned++] = p;
	return p;
}

/* Before the step is over. */
RIG void release(dev p)
{
	unsigned i;

	for (i = 0; i < nowned; i++)
		if (owned[i] == p)
			owned[i] = owned[--nowned];
	give_back(p);
}

/* Made before the step: `n` words of which those not given are 0. */
#define STATE(name, n, ...) state(name, n, (const unsigned[n]){__VA_ARGS__})

RIG dev state(const char *name, unsigned n, const unsigned *words)
{
	dev p = mapping_bytes ? map_state() : alloc(n);

	if (mapping_bytes)
		owned[nowned++] = p;
	MUST(cuMemcpyHtoD(p, words, n * 4));
	MUST(cuCtxSynchronize()); /* from pageable memory: it may still be on its way */
	if (name)
		replayshim_region_name(p, mapping_bytes ? mapping_bytes : n * 4, name);
	return p;
}

#define LAUNCH(name, threads, ...) launch(name, 1, threads, (void *[]){__VA_ARGS__})
#define LAUNCH_GRID(name, blocks, threads, ...)                                                    \
	launch(name, blocks, threads, (void *[]){__VA_ARGS__})

RIG void launch(const char *name, unsigned blocks, unsigned threads, void **params)
{
	CUresult r = CUDA_ERROR_NOT_FOUND;
	CUfunction f;
	unsigned i;

	for (i = 0; i < MODULES && r == CUDA_ERROR_NOT_FOUND; i++)
		r = cuModuleGetFunction(&f, modules[i], name);
	if (r != CUDA_SUCCESS)
		fail(name, r);
	MUST(cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, 0, on, params, NULL));
}

RIG void fill(dev p, unsigned value, unsigned words)
{
	MUST(cuMemsetD32Async(p, value, words, on));
}

/* The words as they are at this point of the stream, printed when the step is over. */
RIG void probe(const char *name, dev p, unsigned words)
{
	unsigned i;

	MUST(cuMemcpyDtoDAsync(probes + nprobed * 4, p, words * 4, on));
	for (i = 0; i < words; i++)
		snprintf(probe_name[nprobed++], sizeof(probe_name[0]), words > 1 ? "%s.%u" : "%s",
			 name, i);
}

RIG void copy(dev to, dev from, unsigned words)
{
	MUST(cuMemcpyDtoDAsync(to, from, words * 4, on));
}

RIG void tell(const char *name, unsigned value)
{
	snprintf(told[ntold].name, sizeof(told[0].name), "%s", name);
	told[ntold++].value = value;
}

/* --- windows -------------------------------------------------------------------------------- */

RIG void hand_over(CUstream from, CUstream to)
{
	if (from == to)
		return;
	MUST(cuEventRecord(handover, from));
	MUST(cuStreamWaitEvent(to, handover, 0));
}

RIG void replay(const char *name, long invocation)
{
	hand_over(outside, replays);
	on = replays;
	replayshim_replay_begin(name, invocation);
}

RIG void replay_end(void)
{
	replayshim_replay_end();
	hand_over(replays, outside);
	on = outside;
}

/* Segments are functions of their inputs, as a checkpoint would call them. */
typedef dev (*segment_fn)(void *inputs);

RIG void run_forward(const char *name, long invocation, segment_fn fn, void *inputs)
{
	replayshim_forward_begin(name, invocation);
	fn(inputs);
	replayshim_forward_end();
}

/* The product is read after the window, as the backward does. */
RIG void run_replay(const char *name, long invocation, segment_fn fn, void *inputs,
		    const char *result, unsigned words)
{
	dev y;

	replay(name, invocation);
	y = fn(inputs);
	replay_end();
	if (result)
		probe(result, y, words);
}

/* --- main ----------------------------------------------------------------------------------- */

struct hazard_case {
	const char *name;
	void (*run)(void);
};

static void print_step(const unsigned *words, unsigned seed)
{
	char prefix[16] = "";
	unsigned i;

	if (seed)
		snprintf(prefix, sizeof(prefix), "%u:", seed);
	for (i = 0; i < nprobed; i++)
		printf("%s%s=%u\n", prefix, probe_name[i], words[i]);
	for (i = 0; i < ntold; i++)
		printf("%s%s=%u\n", prefix, told[i].name, told[i].value);
}

static void one_step(void (*run)(void), unsigned n, int print, unsigned seed)
{
	unsigned words[PROBE_WORDS];

	nprobed = ntold = 0;
	on = outside;
	replayshim_step(n);
	run();
	MUST(cuCtxSynchronize());
	MUST(cuMemcpyDtoH(words, probes, nprobed * 4));
	if (print)
		print_step(words, seed);
	while (nowned)
		give_back(owned[--nowned]);
}

/* The n-th schedule of the simulated device; the program is not linked to it by that name. */
static void reschedule(unsigned n)
{
	static int (*set)(const char *);
	char text[24];

	if (!set)
		*(void **)&set = dlsym(RTLD_DEFAULT, "simcuda_set_schedule");
	snprintf(text, sizeof(text), "random:%u", n);
	if (!set || set(text))
		fail("--seeds needs the simulated device", CUDA_ERROR_NOT_SUPPORTED);
}

static void prepare(int two_streams)
{
	CUdevice device;
	CUcontext ctx;
	unsigned i;

	MUST(cuInit(0));
	MUST(cuDeviceGet(&device, 0));
	MUST(cuDevicePrimaryCtxRetain(&ctx, device));
	MUST(cuCtxSetCurrent(ctx));
	for (i = 0; i < MODULES; i++)
		MUST(cuModuleLoadData(&modules[i], module_text[i]));
	MUST(cuStreamCreate(&outside, CU_STREAM_NON_BLOCKING));
	replays = outside;
	if (two_streams)
		MUST(cuStreamCreate(&replays, CU_STREAM_NON_BLOCKING));
	MUST(cuEventCreate(&handover, CU_EVENT_DISABLE_TIMING));
	MUST(cuMemAlloc(&probes, PROBE_WORDS * 4));
	if (!option("--mapped"))
		return;
	mapping_bytes = (size_t)2 << 20;
	MUST(cuMemAlloc(&landing[0], mapping_bytes));
	MUST(cuMemAlloc(&landing[1], mapping_bytes));
}

static int hazard_main(int argc, char **argv, const struct hazard_case *cases, unsigned ncases)
{
	unsigned i, n, steps = 1, seeds = 0;
	void (*run)(void) = NULL;

	for (i = 0; argc > 1 && i < ncases; i++)
		if (!strcmp(argv[1], cases[i].name))
			run = cases[i].run;
	if (!run) {
		fprintf(stderr, "usage: %s CASE [VARIANT...] [--streams] [--steps=N | --seeds=N]\n",
			argv[0]);
		return 2;
	}
	nargs = argc;
	args = argv;
	for (i = 2; i < (unsigned)argc; i++) {
		sscanf(argv[i], "--steps=%u", &steps);
		if (sscanf(argv[i], "--seeds=%u", &seeds) == 1)
			steps = seeds;
	}
	prepare(option("--streams") || strstr(argv[1], "overlap"));
	for (n = 1; n <= steps; n++) {
		if (seeds)
			reschedule(n);
		one_step(run, n, seeds || n == steps, seeds ? n : 0);
	}
	return 0;
}

#define HAZARD_MAIN(cases)                                                                         \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		return hazard_main(argc, argv, cases, sizeof(cases) / sizeof((cases)[0]));         \
	}

#endif
