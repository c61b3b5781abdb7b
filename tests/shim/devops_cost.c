/* SPDX-License-Identifier: MIT */
/*
 * What the shim's operations for the engine cost. Built and run by tests/bench/devops.sh with whichever libcuda.so.1
 * the loader finds. Arguments:
 *
 *	device	virtual time of each operation on the simulated device, beside plain copies of the same bytes
 *	host	host time of each call, with a driver that does nothing
 */
#include "tests/shim/devops_rig.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define ops rs_devops_ops

static uint64_t (*virtual_ns)(void);
static __typeof__(&cuCtxSynchronize) synchronize;
static struct rs_queue queue;
static uint64_t a, b, *words;
static struct rs_move list[4096];

static void must(int r, const char *what)
{
	if (!r)
		return;
	fprintf(stderr, "%s: %d\n", what, r);
	exit(1);
}
#define MUST(call) must((int)(call), #call)

static void open_driver(uint64_t bytes)
{
	void *cu = dlopen("libcuda.so.1", RTLD_NOW);
	__typeof__(&cuCtxCreate_v2) create;
	__typeof__(&cuInit) init;
	CUcontext ctx;

	if (!cu)
		must(1, dlerror());
#define X(sym) rs_real.sym = (__typeof__(&sym))dlsym(cu, #sym);
	RIG_DRIVER(X)
#undef X
	init = (__typeof__(init))dlsym(cu, "cuInit");
	create = (__typeof__(create))dlsym(cu, "cuCtxCreate_v2");
	synchronize = (__typeof__(synchronize))dlsym(cu, "cuCtxSynchronize");
	virtual_ns = (__typeof__(virtual_ns))dlsym(cu, "simcuda_virtual_ns");
	MUST(init(0));
	MUST(create(&ctx, 0, 0));
	queue.ctx = (uintptr_t)ctx;
	MUST(ops.alloc(NULL, queue, bytes, &a));
	MUST(ops.alloc(NULL, queue, bytes, &b));
	MUST(ops.result_alloc(NULL, queue, rs_digest_count(bytes) + 1, &words));
}

/* --- virtual time -------------------------------------------------------------------------------- */

enum what { COPIES, ONE, MOVE, SWAP, DIFF, DIGEST, NWHAT };
static const char *const name[] = {"copies", "one copy", "move", "swap", "diff", "digest"};

/* n rows with gaps of their size: one move, or one call each. One copy: as many bytes in one piece. */
static void perform(enum what what, uint64_t row, uint64_t n)
{
	if (what == MOVE) {
		MUST(ops.move(NULL, queue, list, n));
		return;
	}
	if (what == ONE) {
		MUST(ops.copy(NULL, queue, b, a, row * n));
		return;
	}
	for (uint64_t i = 0; i < n; i++) {
		uint64_t at = 2 * i * row;

		MUST(what == COPIES ? ops.copy(NULL, queue, b + at, a + at, row)
		     : what == SWAP ? ops.swap(NULL, queue, b + at, a + at, row)
		     : what == DIFF ? ops.diff(NULL, queue, b + at, a + at, row, words)
				    : ops.digest(NULL, queue, a + at, row, words));
	}
}

static void device_row(uint64_t row, uint64_t n)
{
	double us[NWHAT];

	for (uint64_t i = 0; i < n; i++)
		list[i] = (struct rs_move){b + 2 * i * row, a + 2 * i * row, row};
	for (enum what what = 0; what < NWHAT; what++) {
		uint64_t start;

		MUST(synchronize());
		start = virtual_ns();
		perform(what, row, n);
		MUST(synchronize());
		us[what] = (double)(virtual_ns() - start) / 1e3;
	}
	printf("  %8lu B x %4lu", row, n);
	for (enum what what = 0; what < NWHAT; what++)
		printf(" %9.1f", us[what]);
	printf(" |");
	for (enum what what = 1; what < NWHAT; what++)
		printf(" %8.2f", us[what] / us[COPIES]);
	printf("\n");
}

static int device(void)
{
	static const struct {
		uint64_t row, n;
	} shape[] = {{4096, 1},	   {16 << 20, 1}, {64, 1000},	{4096, 100},
		     {4096, 4000}, {65536, 16},	  {65536, 256}, {65536, 1000}};

	open_driver(132 << 20);
	if (!virtual_ns)
		must(1, "not the simulated device");
	printf("  %17s %9s", "rows", name[COPIES]);
	for (enum what what = 1; what < NWHAT; what++)
		printf(" %9s", name[what]);
	printf(" | ");
	for (enum what what = 1; what < NWHAT; what++)
		printf("%8s ", name[what]);
	printf("\n");
	for (unsigned i = 0; i < sizeof(shape) / sizeof(*shape); i++)
		device_row(shape[i].row, shape[i].n);
	return 0;
}

/* --- host time ----------------------------------------------------------------------------------- */

#define LOOPS 300 /* short ones: some are not interrupted */
#define N     50

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

#define MEASURE(what, ...)                                                                         \
	do {                                                                                       \
		double best = 1e18;                                                                \
		for (int loop_ = 0; loop_ < LOOPS; loop_++) {                                      \
			double start = now();                                                      \
			for (int n_ = 0; n_ < N; n_++) {                                           \
				__VA_ARGS__;                                                       \
			}                                                                          \
			start = (now() - start) / N;                                               \
			best = start < best ? start : best;                                        \
		}                                                                                  \
		printf("  %-22s %8.1f\n", what, best);                                             \
	} while (0)

static int host(void)
{
	static const unsigned lengths[] = {1, 2, 16, 127, 128, 1022, 4000};
	uint64_t event;

	open_driver(4096);
	for (unsigned i = 0; i < sizeof(list) / sizeof(*list); i++)
		list[i] = (struct rs_move){b + 8192 * i, a + 8192 * i, 4096};
	MEASURE("copy", MUST(ops.copy(NULL, queue, b, a, 4096)));
	MEASURE("digest", MUST(ops.digest(NULL, queue, a, 4096, words)));
	MEASURE("swap", MUST(ops.swap(NULL, queue, a, b, 4096)));
	MEASURE("diff", MUST(ops.diff(NULL, queue, a, b, 4096, words)));
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		char what[32];

		snprintf(what, sizeof(what), "move of %u rows", lengths[i]);
		MEASURE(what, MUST(ops.move(NULL, queue, list, lengths[i])));
	}
	MEASURE("event: record, free", MUST(ops.event_record(NULL, queue, &event));
		ops.event_free(NULL, event));
	MUST(ops.event_record(NULL, queue, &event));
	MEASURE("event: wait", MUST(ops.event_wait(NULL, queue, event)));
	MEASURE("event: done", ops.event_done(NULL, event));
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "device"))
		return device();
	if (argc == 2 && !strcmp(argv[1], "host"))
		return host();
	fprintf(stderr, "usage: devops_cost device|host\n");
	return 2;
}
