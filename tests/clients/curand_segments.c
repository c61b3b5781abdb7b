/* SPDX-License-Identifier: MIT */
/*
 * Segments that draw random masks with cuRAND, on the simulated device and its stand-in library.
 *
 *	curand_segments CASE [--type=N] [--replays=K] [--global] [--streams]
 *
 * A segment draws a mask and adds it to its input. Cases: one (a segment and its replays), two (two generators in one
 * segment), invocations (two forwards, replayed in reverse order), between (other code draws before the replay),
 * reseed (and sets seed and offset), doubles (draws after which no offset can restore an XORWOW generator), restored
 * (the program itself puts the generator back before the replay and forward again after it).
 *
 * Prints name=hash of every product and of `after`, what the generator draws when all is done. With --replays=0
 * nothing is replayed: `after` is then what it should be. --global: found through the global scope instead of a
 * handle. --streams: forwards on one stream, replays on another, ordered by an event.
 */
#include <cuda.h>

#include "shim/include/replayshim.h"
#include "tests/clients/curand_lib.h"
#include "tests/clients/drv.h"

#define WORDS	  5000u
#define MAX_ITEMS 16

static struct curand rand_;
static CUfunction addto;
static CUstream outside, replays;
static CUevent handover;
static rs_curand gen[2];
static CUdeviceptr input, mask;
static unsigned repeat = 1;
static int type = RS_CURAND_XORWOW, both, wide;

static struct {
	char name[32];
	CUdeviceptr bytes;
} item[MAX_ITEMS];
static unsigned nitems;

static void need(int status, const char *what)
{
	if (!status)
		return;
	fprintf(stderr, "curand_segments: %s: %d\n", what, status);
	exit(3);
}

/* --- work --------------------------------------------------------------------------------------- */

static void draw(unsigned g, CUdeviceptr to, CUstream s)
{
	need(rand_.curandSetStream(gen[g], s), "SetStream");
	if (wide)
		need(rand_.curandGenerateUniformDouble(gen[g], (double *)(uintptr_t)to, WORDS / 2),
		     "GenerateUniformDouble");
	else
		need(rand_.curandGenerate(gen[g], (unsigned *)(uintptr_t)to, WORDS), "Generate");
}

static void add(CUdeviceptr to, CUdeviceptr from, CUstream s)
{
	unsigned n = WORDS;
	void *params[] = {&to, &from, &n};

	must(drv_launch(addto, n, s, params));
}

/* y = input + mask (+ mask of the second generator) */
static CUdeviceptr segment(CUstream s)
{
	CUdeviceptr y;

	must(cuMemAlloc(&y, WORDS * 4));
	must(cuMemcpyDtoDAsync(y, input, WORDS * 4, s));
	for (unsigned g = 0; g < 1 + (unsigned)both; g++) {
		draw(g, mask, s);
		add(y, mask, s);
	}
	return y;
}

static void keep(CUdeviceptr y, const char *what, unsigned invocation, unsigned k)
{
	snprintf(item[nitems].name, sizeof(item[nitems].name), "%s%u.%u", what, invocation, k);
	item[nitems++].bytes = y;
}

static void go_on(CUstream from, CUstream to)
{
	if (from == to)
		return;
	must(cuEventRecord(handover, from));
	must(cuStreamWaitEvent(to, handover, 0));
}

static void forward(unsigned invocation)
{
	replayshim_forward_begin("dropout", (long)invocation);
	keep(segment(outside), "F", invocation, 0);
	replayshim_forward_end();
}

static void replay(unsigned invocation)
{
	go_on(outside, replays);
	for (unsigned k = 0; k < repeat; k++) {
		replayshim_replay_begin("dropout", (long)invocation);
		keep(segment(replays), "R", invocation, k);
		replayshim_replay_end();
	}
	go_on(replays, outside);
}

/* --- cases -------------------------------------------------------------------------------------- */

static void once(void)
{
	forward(0);
	replay(0);
}

static void two(void)
{
	both = 1;
	once();
}

static void invocations(void)
{
	forward(0);
	forward(1);
	replay(1);
	replay(0);
}

static void between(void)
{
	forward(0);
	draw(0, mask, outside);
	replay(0);
}

static void reseed(void)
{
	forward(0);
	need(rand_.curandSetPseudoRandomGeneratorSeed(gen[0], 99), "SetSeed");
	need(rand_.curandSetGeneratorOffset(gen[0], 7), "SetOffset");
	replay(0);
}

static void doubles(void)
{
	wide = 1;
	draw(0, mask, outside);
	once();
}

/* One result is one step of the offset in all types. */
static void restored(void)
{
	forward(0);
	draw(0, mask, outside);
	need(rand_.curandSetGeneratorOffset(gen[0], 0), "SetOffset");
	repeat = !!repeat;
	replay(0);
	need(rand_.curandSetGeneratorOffset(gen[0], 2 * WORDS), "SetOffset");
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {{"one", once},	    {"two", two},	{"invocations", invocations},
	     {"between", between},  {"reseed", reseed}, {"doubles", doubles},
	     {"restored", restored}};

/* --- program ------------------------------------------------------------------------------------ */

static void set_up(int global, int streams)
{
	CUmodule module;

	drv_context();
	need(global ? curand_open_global(&rand_) : curand_open_sim(&rand_), "no libcurand");
	must(cuModuleLoadData(&module, drv_ptx));
	addto = drv_function(module, "addto");
	must(cuStreamCreate(&outside, CU_STREAM_NON_BLOCKING));
	replays = outside;
	if (streams)
		must(cuStreamCreate(&replays, CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&handover, CU_EVENT_DISABLE_TIMING));
	must(cuMemAlloc(&input, WORDS * 4));
	must(cuMemAlloc(&mask, WORDS * 4));
	must(cuMemsetD32Async(input, 1000, WORDS, outside));
	must(cuMemsetD32Async(mask, 0, WORDS, outside));
	for (unsigned g = 0; g < 2; g++) {
		need(rand_.curandCreateGenerator(&gen[g], g ? RS_CURAND_MRG32K3A : type),
		     "CreateGenerator");
		if (g || type < RS_CURAND_QUASI_DEFAULT)
			need(rand_.curandSetPseudoRandomGeneratorSeed(gen[g], 1234 + g), "SetSeed");
	}
}

static void print(void)
{
	static unsigned words[WORDS];

	for (unsigned i = 0; i < nitems; i++) {
		uint64_t h = 0xcbf29ce484222325ull;

		must(cuMemcpyDtoHAsync(words, item[i].bytes, sizeof(words), outside));
		must(cuStreamSynchronize(outside));
		for (unsigned k = 0; k < WORDS; k++)
			h = (h ^ words[k]) * 0x100000001b3ull;
		printf("%s=%016llx\n", item[i].name, (unsigned long long)h);
	}
}

int main(int argc, char **argv)
{
	int global = 0, streams = 0;
	CUdeviceptr after;

	for (int i = 2; i < argc; i++) {
		global |= !strcmp(argv[i], "--global");
		streams |= !strcmp(argv[i], "--streams");
		if (!strncmp(argv[i], "--type=", 7))
			type = atoi(argv[i] + 7);
		if (!strncmp(argv[i], "--replays=", 10))
			repeat = (unsigned)atoi(argv[i] + 10) % 4;
	}
	for (unsigned c = 0; argc > 1 && c < sizeof(cases) / sizeof(*cases); c++) {
		if (strcmp(argv[1], cases[c].name))
			continue;
		set_up(global, streams);
		replayshim_step(0);
		cases[c].run();
		replayshim_step(1);
		for (unsigned g = 0; g < 2; g++) {
			must(cuMemAlloc(&after, WORDS * 4));
			draw(g, after, outside);
			keep(after, "after", g, 0);
		}
		print();
		need(rand_.curandDestroyGenerator(gen[0]), "DestroyGenerator");
		need(rand_.curandDestroyGenerator(gen[1]), "DestroyGenerator");
		return 0;
	}
	fprintf(stderr,
		"usage: curand_segments CASE [--type=N] [--replays=K] [--global] [--streams]\n");
	return 2;
}
