/* SPDX-License-Identifier: MIT */
/*
 * State that is a mapping of its own, read and overwritten as a whole, so that a replay can be shown it by remapping. Driver
 * API only; a contract says how it is restored (tests/t/remap.t, which knows what is right).
 *
 *	remap CASE [VARIANT...] [--streams] [--steps=N | --seeds=N]	see hazards_rig.h
 *
 * The state's first word is s, all the others are its fill; y is the first word of a copy of all of it, plus its last one.
 */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/clients/hazards_ptx.h"

#define HAZARD_MODULES hazards_ptx
#include "tests/clients/hazards_rig.h"

#define G     ((size_t)2 << 20) /* the granularity */
#define WORDS ((unsigned)(G / 4))

static CUmemGenericAllocationHandle handle;
static dev s, out;

static const CUmemAccessDesc rw = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
				   .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

static void map_at(dev at, CUmemGenericAllocationHandle h)
{
	MUST(cuMemMap(at, G, 0, h, 0));
	MUST(cuMemSetAccess(at, G, &rw, 1));
}

static dev reserve(void)
{
	dev at;

	MUST(cuMemAddressReserve(&at, G, 0, 0, 0));
	return at;
}

static void make(void)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
	};

	MUST(cuMemCreate(&handle, G, &prop, 0));
	s = reserve();
	map_at(s, handle);
	MUST(cuMemsetD32(s, 2, WORDS));
	MUST(cuCtxSynchronize());
	replayshim_region_name(s, G, "state:s");
	out = alloc(WORDS);
}

static void unmake(void)
{
	MUST(cuCtxSynchronize());
	MUST(cuMemUnmap(s, G));
	MUST(cuMemRelease(handle));
	MUST(cuMemAddressFree(s, G));
}

static void overwrite(unsigned value)
{
	fill(s, value, WORDS);
}

static void add_one(dev p)
{
	unsigned one = 1;

	LAUNCH("add", 1, &p, &one);
}

/* All of the state into `out`, and the sum of its two ends into y. inside: the state's first word is counted up. */
static dev segment(void *inputs)
{
	dev y = alloc(2);

	(void)inputs;
	copy(out, s, WORDS);
	copy(y, out, 1);
	copy(y + 4, out + G - 4, 1);
	if (option("inside"))
		add_one(s);
	if (option("all"))
		fill(s, 70, WORDS);
	return y;
}

static void ends(void)
{
	probe("s", s, 1);
	probe("end", s + G - 4, 1);
	unmake();
}

/* replays=N: none, one, three. */
static void basic(void)
{
	unsigned n = option("never") ? 0 : option("thrice") ? 3 : 1;

	make();
	run_forward("block", 0, segment, NULL);
	overwrite(9);
	for (unsigned i = 0; i < n; i++) {
		static const char *const name[] = {"y", "z", "w"};

		run_replay("block", 0, segment, NULL, name[i], 2);
	}
	ends();
}

/* A replay of an older version inside of a replay, or after it. */
static void two(void)
{
	dev y;

	make();
	run_forward("block", 0, segment, NULL);
	overwrite(9);
	run_forward("block", 1, segment, NULL);
	overwrite(20);
	if (option("nested")) {
		replay("block", 0);
		y = segment(NULL);
		replayshim_replay_begin("block", 1);
		probe("z", segment(NULL), 2);
		replayshim_replay_end();
		probe("x", segment(NULL), 2);
		replay_end();
		probe("y", y, 2);
	} else {
		run_replay("block", 1, segment, NULL, "z", 2);
		run_replay("block", 0, segment, NULL, "y", 2);
	}
	ends();
}

/* The end of a replay does not come; the next step does. */
static void aborted(void)
{
	make();
	run_forward("block", 0, segment, NULL);
	overwrite(9);
	replay("block", 0);
	probe("y", segment(NULL), 2);
	replayshim_step(1u << 20);
	hand_over(replays, outside);
	on = outside;
	ends();
}

/* --- the program's own calls in the middle of a replay --------------------------------------------------- */

/* 1: the same memory is at `a` as behind h; told by writing through another address. */
static int is_mapped(dev a, CUmemGenericAllocationHandle h)
{
	unsigned before, word = 0;
	dev alias = reserve();

	MUST(cuCtxSynchronize());
	map_at(alias, h);
	MUST(cuMemcpyDtoH(&before, alias + 64, 4));
	MUST(cuMemsetD32(alias + 64, 0x1234567, 1));
	MUST(cuMemcpyDtoH(&word, a + 64, 4));
	MUST(cuMemsetD32(alias + 64, before, 1));
	MUST(cuCtxSynchronize());
	MUST(cuMemUnmap(alias, G));
	MUST(cuMemAddressFree(alias, G));
	return word == 0x1234567;
}

static void ask_view(void)
{
	const CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
	CUmemGenericAllocationHandle h;
	unsigned long long flags = 0;
	int fd = -1;

	if (option("access")) {
		MUST(cuMemGetAccess(&flags, &here, s));
		tell("access", (unsigned)flags);
	} else if (option("set")) {
		MUST(cuMemSetAccess(s, G, &rw, 1));
	} else if (option("retain")) {
		MUST(cuMemRetainAllocationHandle(&h, (void *)(uintptr_t)s));
		tell("same", (unsigned)is_mapped(s, h));
		MUST(cuMemRelease(h));
	} else if (option("alias")) {
		tell("same", (unsigned)is_mapped(s, handle));
	} else if (option("export")) {
		MUST(cuMemExportToShareableHandle(&fd, handle,
						  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	} else if (option("unmap")) {
		MUST(cuCtxSynchronize());
		MUST(cuMemUnmap(s, G));
		map_at(s, handle);
	} else if (option("fork")) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		tell("child", (unsigned)(waitpid(child, &fd, 0) == child && !fd));
	}
}

static void asked(void)
{
	dev y;

	make();
	run_forward("block", 0, segment, NULL);
	overwrite(9);
	replay("block", 0);
	y = segment(NULL);
	ask_view();
	probe("x", s, 1); /* what the replay sees now */
	replay_end();
	probe("y", y, 2);
	run_replay("block", 0, segment, NULL, "z", 2);
	ends();
}

/* --- other threads ------------------------------------------------------------------------------------ */

static struct {
	CUcontext ctx;
	CUstream stream;
	dev word;
	int stop;
	unsigned reads, wrong;
} reader;

/* The present bytes, again and again, from outside of all windows and beside all replays. */
static void *read_on(void *arg)
{
	unsigned word;

	(void)arg;
	MUST(cuCtxSetCurrent(reader.ctx));
	while (!__atomic_load_n(&reader.stop, __ATOMIC_ACQUIRE) && reader.reads < 200) {
		MUST(cuMemcpyDtoDAsync(reader.word, s + 8, 4, reader.stream));
		MUST(cuMemcpyDtoHAsync(&word, reader.word, 4, reader.stream));
		MUST(cuStreamSynchronize(reader.stream));
		reader.reads++;
		usleep(100);
	}
	return NULL;
}

static void *replay_there(void *arg)
{
	(void)arg;
	MUST(cuCtxSetCurrent(reader.ctx));
	run_replay("block", 0, segment, NULL, "y", 2);
	run_replay("block", 0, segment, NULL, "z", 2);
	return NULL;
}

/* Replays on a thread of their own, as a framework's backward; and another one that only reads. */
static void threads(void)
{
	pthread_t one, other;

	make();
	MUST(cuCtxGetCurrent(&reader.ctx));
	MUST(cuStreamCreate(&reader.stream, CU_STREAM_NON_BLOCKING));
	reader.word = alloc(1);
	reader.stop = 0;
	reader.reads = 0;
	run_forward("block", 0, segment, NULL);
	overwrite(9);
	MUST(cuCtxSynchronize());
	if (option("readers") && pthread_create(&other, NULL, read_on, NULL))
		exit(2);
	if (pthread_create(&one, NULL, replay_there, NULL))
		exit(2);
	pthread_join(one, NULL);
	__atomic_store_n(&reader.stop, 1, __ATOMIC_RELEASE);
	if (option("readers"))
		pthread_join(other, NULL);
	MUST(cuStreamDestroy(reader.stream));
	ends();
}

/* --- what rules it out -------------------------------------------------------------------------------- */

static int go;

static void wait_for_host(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE))
		usleep(100);
}

/* Host code that runs in a stream waits for what this thread does after the replay. */
static void host_waits(void)
{
	make();
	go = 0;
	run_forward("block", 0, segment, NULL);
	overwrite(9);
	MUST(cuLaunchHostFunc(outside, wait_for_host, NULL));
	run_replay("block", 0, segment, NULL, "y", 2);
	__atomic_store_n(&go, 1, __ATOMIC_RELEASE);
	ends();
}

/* A stream waits for a value that the host writes after the replay. */
static void value_waits(void)
{
	CUstream other;
	dev word = STATE(NULL, 1, 0);

	make();
	MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	run_forward("block", 0, segment, NULL);
	overwrite(9);
	MUST(cuStreamWaitValue32(other, word, 1, CU_STREAM_WAIT_VALUE_GEQ));
	run_replay("block", 0, segment, NULL, "y", 2);
	MUST(cuStreamWriteValue32(outside, word, 1, 0));
	MUST(cuCtxSynchronize());
	MUST(cuStreamDestroy(other));
	ends();
}

static void captured(void)
{
	CUstream other;
	CUgraph graph;
	dev word = alloc(1);

	make();
	MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	run_forward("block", 0, segment, NULL);
	overwrite(9);
	MUST(cuStreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_RELAXED));
	MUST(cuMemsetD32Async(word, 1, 1, other));
	run_replay("block", 0, segment, NULL, "y", 2);
	MUST(cuStreamEndCapture(other, &graph));
	MUST(cuGraphDestroy(graph));
	MUST(cuStreamDestroy(other));
	ends();
}

static const struct hazard_case cases[] = {{"basic", basic},
					   {"two", two},
					   {"aborted", aborted},
					   {"asked", asked},
					   {"threads", threads},
					   {"host_waits", host_waits},
					   {"value_waits", value_waits},
					   {"captured", captured}};

HAZARD_MAIN(cases)
