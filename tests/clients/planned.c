/* SPDX-License-Identifier: MIT */
/*
 * A training loop that obeys plans: it asks for each segment whether to keep its activations. For tests/t/planned.t.
 *
 *	planned [--steps=N] [--segments=N] [--pause=MICROSECONDS] [--keep | --deaf] [--drift] [--mapped] [--children]
 *		[--hold=FILE]
 *
 * A segment's forward reads all of its state and its input, makes its activations in memory of their own, hands on an
 * output, and moves a few rows of the state on, in place. Backward adds the activations to the gradient; where they
 * were not kept, it runs the forward again. --keep keeps all (the reference), --deaf never asks and replays all.
 *
 * --drift: other rows in each step, so that no plan knows all that will be overwritten.
 *
 * --mapped: each state is a mapping of its own, which is read as a whole.
 *
 * Prints for each step: a digest of states and gradients, the most device memory that was in use (the tool's included; 0 on a
 * device that does not tell), how many segments were kept, and the microseconds of the step. Goes on after its last step for
 * as long as FILE is there (--hold). --children: has children of its own all the time, and ends with status 4 if wait()
 * finds any other, or SIGCHLD comes for any other.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shim/include/replayshim.h"
#include "tests/clients/drv.h"

#define MOST	   64
#define STATE	   (64u << 10)
#define MAPPING	   (2u << 20)
#define ACTIVATION (4u << 20)
#define OUTPUT	   (16u << 10)
#define ROW	   1024u
#define ROWS	   4u /* written in a step */
#define WORDS(b)   ((b) / (unsigned)sizeof(unsigned))

static struct segment {
	char name[16];
	CUdeviceptr state, gradient, input, activation;
	int kept;
} segments[MOST];

static CUfunction addto;
static unsigned count = 6;
static int keep_all, deaf, drift;
static unsigned state_bytes = STATE;
static uint64_t (*restart_peak)(int);
static volatile sig_atomic_t signals;

static void add(CUdeviceptr to, CUdeviceptr from, unsigned words)
{
	void *args[] = {&to, &from, &words};

	must(drv_launch(addto, words, NULL, args));
}

/* What runs in the forward, and again in a replay. */
static void compute(struct segment *s, long step, CUdeviceptr output)
{
	must(cuMemAlloc(&s->activation, ACTIVATION));
	must(cuMemsetD32(s->activation, 7, WORDS(ACTIVATION)));
	add(s->activation, s->state, WORDS(state_bytes));
	add(s->activation + state_bytes, s->input, WORDS(OUTPUT));
	must(cuMemcpyDtoD(output, s->activation + state_bytes - OUTPUT / 2, OUTPUT));
	for (unsigned i = 0; i < ROWS; i++) {
		unsigned row = ((drift ? (unsigned)step * 5 : 0) + i * 13) % (STATE / ROW);

		add(s->state + row * ROW, s->activation + i * ROW, WORDS(ROW));
	}
}

static CUdeviceptr forward(struct segment *s, long step, CUdeviceptr input)
{
	CUdeviceptr output;

	s->input = input;
	s->kept = keep_all || (!deaf && replayshim_retain(s->name, 0) == 1);
	must(cuMemAlloc(&output, OUTPUT));
	replayshim_forward_begin(s->name, 0);
	compute(s, step, output);
	replayshim_forward_end();
	if (!s->kept)
		must(cuMemFree(s->activation));
	return output;
}

static void backward(struct segment *s, long step)
{
	CUdeviceptr output;

	if (!s->kept) {
		must(cuMemAlloc(&output, OUTPUT));
		replayshim_replay_begin(s->name, 0);
		compute(s, step, output);
		replayshim_replay_end();
		must(cuMemFree(output));
	}
	add(s->gradient, s->activation, WORDS(OUTPUT));
	add(s->gradient, s->activation + STATE, WORDS(OUTPUT));
	must(cuMemFree(s->activation));
	must(cuMemFree(s->input));
}

static uint64_t digest(void)
{
	static unsigned host[WORDS(STATE)];
	uint64_t h = 0;

	for (unsigned i = 0; i < count; i++) {
		must(cuMemcpyDtoH(host, segments[i].state, STATE));
		for (unsigned k = 0; k < WORDS(STATE); k++)
			h = (h ^ host[k]) * 0x100000001b3ull;
		must(cuMemcpyDtoH(host, segments[i].gradient, OUTPUT));
		for (unsigned k = 0; k < WORDS(OUTPUT); k++)
			h = (h ^ host[k]) * 0x100000001b3ull;
	}
	return h;
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void one_step(long step)
{
	uint64_t begin = now_us(), peak, us;
	unsigned kept = 0;
	CUdeviceptr h;

	replayshim_step(step);
	if (restart_peak)
		restart_peak(0); /* what the tool has given back in the marker counts no more */
	must(cuMemAlloc(&h, OUTPUT));
	must(cuMemsetD32(h, (unsigned)step, WORDS(OUTPUT)));
	for (unsigned i = 0; i < count; i++)
		h = forward(&segments[i], step, h);
	must(cuMemFree(h));
	for (unsigned i = count; i-- > 0;)
		backward(&segments[i], step);
	must(cuCtxSynchronize());
	us = now_us() - begin;
	for (unsigned i = 0; i < count; i++)
		kept += (unsigned)segments[i].kept;
	peak = restart_peak ? restart_peak(0) : 0;
	printf("step %ld %016llx %llu %u %llu\n", step, (unsigned long long)digest(),
	       (unsigned long long)peak, kept, (unsigned long long)us);
	fflush(stdout);
}

/* --- children of its own --------------------------------------------------------------------------- */

static void on_child(int sig)
{
	signals += sig == SIGCHLD;
}

static pid_t child(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	return pid;
}

static void look_for(pid_t mine, int signals_before)
{
	pid_t found = wait(NULL);
	int nobody = wait(NULL) < 0;

#ifdef __SANITIZE_THREAD__ /* which hands signals on when it likes */
	signals_before = signals - 1;
#endif
	if (found == mine && nobody && signals == signals_before + 1)
		return;
	printf("a child %d, of mine was %d; %d signals\n", (int)found, (int)mine,
	       (int)signals - signals_before);
	exit(4);
}

/* --- set-up ----------------------------------------------------------------------------------------- */

static CUdeviceptr map_state(void)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
	};
	const CUmemAccessDesc rw = {.location = prop.location,
				    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle h;
	CUdeviceptr p;

	must(cuMemCreate(&h, MAPPING, &prop, 0));
	must(cuMemAddressReserve(&p, MAPPING, 0, 0, 0));
	must(cuMemMap(p, MAPPING, 0, h, 0));
	must(cuMemSetAccess(p, MAPPING, &rw, 1));
	must(cuMemRelease(h));
	return p;
}

static void set_up(void)
{
	CUmodule module;

	drv_context();
	must(cuModuleLoadData(&module, drv_ptx));
	addto = drv_function(module, "addto");
	*(void **)&restart_peak = dlsym(RTLD_DEFAULT, "simcuda_restart_peak");
	for (unsigned i = 0; i < count; i++) {
		struct segment *s = &segments[i];
		char name[32];

		snprintf(s->name, sizeof(s->name), "layer%u", i);
		if (state_bytes == MAPPING)
			s->state = map_state();
		else
			must(cuMemAlloc(&s->state, STATE));
		must(cuMemAlloc(&s->gradient, OUTPUT));
		must(cuMemsetD32(s->state, i + 1, WORDS(state_bytes)));
		must(cuMemsetD32(s->gradient, 0, WORDS(OUTPUT)));
		snprintf(name, sizeof(name), "state:%s", s->name);
		replayshim_region_name(s->state, state_bytes, name);
	}
}

int main(int argc, char **argv)
{
	unsigned steps = 10, pause = 0;
	const char *hold = NULL;
	int children = 0;

	for (int i = 1; i < argc; i++) {
		if (sscanf(argv[i], "--steps=%u", &steps) == 1 ||
		    sscanf(argv[i], "--segments=%u", &count) == 1 ||
		    sscanf(argv[i], "--pause=%u", &pause) == 1)
			continue;
		if (!strncmp(argv[i], "--hold=", 7))
			hold = argv[i] + 7;
		else if (!strcmp(argv[i], "--children"))
			children = 1;
		else if (!strcmp(argv[i], "--keep"))
			keep_all = 1;
		else if (!strcmp(argv[i], "--drift"))
			drift = 1;
		else if (!strcmp(argv[i], "--mapped"))
			state_bytes = MAPPING;
		else if (!strcmp(argv[i], "--deaf"))
			deaf = 1;
		else
			return 2;
	}
	if (count > MOST)
		return 2;
	if (children)
		signal(SIGCHLD, on_child);
	set_up();
	for (unsigned n = 1; n <= steps || (hold && !access(hold, F_OK)); n++) {
		int before = signals;
		pid_t mine = children ? child() : 0;

		one_step(n);
		if (children)
			look_for(mine, before);
		usleep(pause);
	}
	return 0;
}
