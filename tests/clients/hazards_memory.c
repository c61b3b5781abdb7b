/* SPDX-License-Identifier: MIT */
/*
 * Hazards whose state is not plain memory: it has two addresses, moves between addresses, lies across two
 * mappings, belongs to another process, or is an array. Driver API only, as hazards.c.
 *
 *	hazards_memory CASE [VARIANT...] [--streams] [--steps=N | --seeds=N]	see hazards_rig.h
 *
 * What is right and what goes wrong is in tests/t/hazards_memory.t.
 */
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/clients/hazards_ptx.h"

#define HAZARD_MODULES hazards_ptx
#include "tests/clients/hazards_rig.h"

extern char **environ;

/* --- memory behind addresses ------------------------------------------------------------------ */

/* The granularity. */
#define G granularity()
static size_t granularity(void)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
	};
	static size_t bytes;

	if (!bytes)
		MUST(cuMemGetAllocationGranularity(&bytes, &prop,
						   CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	return bytes;
}

static CUmemGenericAllocationHandle made[8];
static struct {
	dev at;
	size_t bytes;
} reserved[8];
static dev mapped[8];
static unsigned nmade, nreserved, nmapped;

static CUmemGenericAllocationHandle memory(void)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
	};

	MUST(cuMemCreate(&made[nmade], G, &prop, 0));
	return made[nmade++];
}

static dev reserve(size_t bytes)
{
	MUST(cuMemAddressReserve(&reserved[nreserved].at, bytes, 0, 0, 0));
	reserved[nreserved].bytes = bytes;
	return reserved[nreserved++].at;
}

static dev map(dev at, CUmemGenericAllocationHandle h)
{
	const CUmemAccessDesc rw = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
				    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

	MUST(cuMemMap(at, G, 0, h, 0));
	MUST(cuMemSetAccess(at, G, &rw, 1));
	mapped[nmapped++] = at;
	return at;
}

/* As any program must: nothing may be on its way any more. */
static CUresult try_unmap(dev at)
{
	CUresult r;
	unsigned i;

	MUST(cuCtxSynchronize());
	r = cuMemUnmap(at, G);
	for (i = 0; r == CUDA_SUCCESS && i < nmapped; i++)
		if (mapped[i] == at)
			mapped[i] = mapped[--nmapped];
	return r;
}

static void unmap(dev at)
{
	MUST(try_unmap(at));
}

static void drop_all(void)
{
	while (nmapped)
		unmap(mapped[0]);
	while (nmade)
		MUST(cuMemRelease(made[--nmade]));
	while (nreserved) {
		nreserved--;
		MUST(cuMemAddressFree(reserved[nreserved].at, reserved[nreserved].bytes));
	}
}

static void set(dev p, unsigned n, unsigned value)
{
	MUST(cuMemsetD32(p, value, n));
	MUST(cuCtxSynchronize());
}

/* --- segments --------------------------------------------------------------------------------- */

/* y = x * s; in some cases s = s + 1, perhaps through another address. */
struct inputs {
	dev s, write, x;
};

static dev product(void *inputs)
{
	struct inputs *in = inputs;
	unsigned one = 1;
	dev y = alloc(1);

	LAUNCH("mul", 1, &y, &in->x, &in->s);
	if (in->write)
		LAUNCH("add", 1, &in->write, &one);
	return y;
}

static void add_one(dev p)
{
	unsigned one = 1;

	LAUNCH("add", 1, &p, &one);
}

static struct inputs inputs_at(dev s)
{
	set(s, 1, 2);
	replayshim_region_name(s, 4, "state:s");
	return (struct inputs){.s = s, .x = STATE(NULL, 1, 7)};
}

/* --- cases: aliases --------------------------------------------------------------------------- */

static void alias(void)
{
	CUmemGenericAllocationHandle h = memory();
	dev a = map(reserve(G), h), b = map(reserve(G), h);
	struct inputs in = inputs_at(a);

	if (option("inside"))
		in.write = b;
	run_forward("block", 0, product, &in);
	if (!option("inside"))
		add_one(b);
	run_replay("block", 0, product, &in, "y", 1);
	probe("s", a, 1);
	drop_all();
}

/* The handle is released while it is mapped, and had again from the address. */
static void alias_retained(void)
{
	dev a = map(reserve(G), memory()), b;
	struct inputs in = inputs_at(a);
	CUmemGenericAllocationHandle h;

	MUST(cuMemRelease(made[--nmade]));
	MUST(cuMemRetainAllocationHandle(&h, (void *)(uintptr_t)a));
	made[nmade++] = h;
	b = map(reserve(G), h);
	run_forward("block", 0, product, &in);
	add_one(b);
	run_replay("block", 0, product, &in, "y", 1);
	probe("s", a, 1);
	drop_all();
}

/* Mappings side by side, as allocators have them that grow in place; the state lies in two of them. */
static dev stat_segment(void *inputs)
{
	struct inputs *in = inputs;
	unsigned five = 5;
	dev y = alloc(4);

	LAUNCH("scale", 4, &y, &in->x, &five);
	LAUNCH("stat", 4, &in->s, &in->x);
	return y;
}

static void adjacent(void)
{
	dev r = reserve(3 * G), s = r + G - 8;
	struct inputs in = {.s = s, .x = STATE(NULL, 4, 3, 3, 3, 3)};

	map(r, memory());
	map(r + G, memory());
	set(s, 4, 10);
	replayshim_region_name(s, 16, "state:S");
	run_forward("block", 0, stat_segment, &in);
	if (option("grow")) {
		map(r + 2 * G, memory());
		fill(r + 2 * G, 77, 4);
	}
	run_replay("block", 0, stat_segment, &in, "y", 4);
	probe("S", s, 4);
	drop_all();
}

/* --- cases: addresses that change their memory ------------------------------------------------ */

static void remap(void)
{
	CUmemGenericAllocationHandle h = memory();
	dev a = map(reserve(G), h), c = reserve(G);
	struct inputs in = inputs_at(a);

	run_forward("block", 0, product, &in);
	unmap(a);
	if (option("written") || option("moved"))
		add_one(map(c, h));
	if (option("written"))
		unmap(c);
	if (option("moved"))
		in.s = c;
	else
		map(a, h);
	run_replay("block", 0, product, &in, "y", 1);
	probe("s", in.s, 1);
	drop_all();
}

/* The same address, other memory. */
static void remap_other(void)
{
	CUmemGenericAllocationHandle h = memory(), other = memory();
	dev a = map(reserve(G), h), c = map(reserve(G), other);
	struct inputs in = inputs_at(a);

	set(c, 1, 5);
	run_forward("block", 0, product, &in);
	unmap(a);
	map(a, other);
	run_replay("block", 0, product, &in, "y", 1);
	probe("s", a, 1);
	drop_all();
}

/* A driver that refuses (the test injects that): the memory is what it was. */
static void refused(void)
{
	dev a = option("unmap") ? map(reserve(G), memory()) : alloc(1);
	struct inputs in = inputs_at(a);

	run_forward("block", 0, product, &in);
	tell("refused", (option("unmap") ? try_unmap(a) : cuMemFree(a)) != CUDA_SUCCESS);
	add_one(a);
	run_replay("block", 0, product, &in, "y", 1);
	probe("s", a, 1);
	drop_all();
}

/* --- cases: other processes ------------------------------------------------------------------- */

/* This program again, without the tool: it has a word that the parent opens, and sets it when told. */
static void peer(void)
{
	CUipcMemHandle handle;
	unsigned value;
	dev p;

	MUST(cuMemAlloc(&p, 4));
	MUST(cuIpcGetMemHandle(&handle, p));
	if (write(1, &handle, sizeof(handle)) != sizeof(handle))
		exit(4);
	while (read(0, &value, sizeof(value)) == sizeof(value)) {
		set(p, 1, value);
		if (write(1, "", 1) != 1)
			exit(4);
	}
	exit(0);
}

static int to_peer = -1, from_peer;

static CUipcMemHandle start_peer(void)
{
	static CUipcMemHandle handle;
	char name[] = "peer", *argv[] = {args[0], name, NULL}, **env;
	posix_spawn_file_actions_t files;
	int in[2], out[2];
	unsigned i, n = 0;
	pid_t pid;

	if (to_peer >= 0)
		return handle;
	for (i = 0; environ[i]; i++)
		;
	env = calloc(i + 1, sizeof(*env));
	for (i = 0; env && environ[i]; i++)
		if (strncmp(environ[i], "LD_PRELOAD=", 11))
			env[n++] = environ[i];
	if (!env || pipe(in) || pipe(out))
		fail("pipe", CUDA_ERROR_OPERATING_SYSTEM);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, in[0], 0);
	posix_spawn_file_actions_adddup2(&files, out[1], 1);
	posix_spawn_file_actions_addclose(&files, in[1]);
	if (posix_spawn(&pid, "/proc/self/exe", &files, NULL, argv, env))
		fail("spawn", CUDA_ERROR_OPERATING_SYSTEM);
	free(env);
	close(in[0]);
	close(out[1]);
	to_peer = in[1];
	from_peer = out[0];
	if (read(from_peer, &handle, sizeof(handle)) != sizeof(handle))
		fail("peer", CUDA_ERROR_OPERATING_SYSTEM);
	return handle;
}

static void peer_sets(unsigned value)
{
	char done;

	MUST(cuCtxSynchronize());
	if (write(to_peer, &value, sizeof(value)) != sizeof(value) ||
	    read(from_peer, &done, 1) != 1)
		fail("peer", CUDA_ERROR_OPERATING_SYSTEM);
}

static void imported(void)
{
	CUipcMemHandle handle = start_peer();
	struct inputs in = {.x = STATE(NULL, 1, 7)};

	peer_sets(2);
	MUST(cuIpcOpenMemHandle(&in.s, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	replayshim_region_name(in.s, 4, "state:s");
	run_forward("block", 0, product, &in);
	if (option("written"))
		peer_sets(3);
	if (option("own"))
		add_one(in.s);
	run_replay("block", 0, product, &in, "y", 1);
	probe("s", in.s, 1);
	MUST(cuCtxSynchronize());
	MUST(cuIpcCloseMemHandle(in.s));
}

/* Handed out, but nobody takes it. */
static void exported(void)
{
	struct inputs in = inputs_at(alloc(1));
	CUipcMemHandle handle;

	MUST(cuIpcGetMemHandle(&handle, in.s));
	run_forward("block", 0, product, &in);
	if (option("own"))
		add_one(in.s);
	run_replay("block", 0, product, &in, "y", 1);
	probe("s", in.s, 1);
}

/* --- cases: arrays ---------------------------------------------------------------------------- */

struct array_inputs {
	CUarray array;
	dev x, next; /* next: what the segment puts into the array afterwards, or 0 */
};

/* One word of an array of two rows, from or to linear memory. */
static void copy_word(dev linear, CUarray array, int into)
{
	CUDA_MEMCPY2D c = {.WidthInBytes = 4, .Height = 1};

	c.srcMemoryType = into ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_ARRAY;
	c.dstMemoryType = into ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_DEVICE;
	c.srcDevice = c.dstDevice = linear;
	c.srcArray = c.dstArray = array;
	c.srcY = into ? 0 : 1;
	c.dstY = into ? 1 : 0;
	MUST(cuMemcpy2DAsync(&c, on));
}

static dev array_segment(void *inputs)
{
	struct array_inputs *in = inputs;
	dev s = alloc(1), y = alloc(1);

	copy_word(s, in->array, 0);
	LAUNCH("mul", 1, &y, &in->x, &s);
	if (in->next)
		copy_word(in->next, in->array, 1);
	return y;
}

static void array_probe(const char *name, CUarray array)
{
	dev s = alloc(1);

	copy_word(s, array, 0);
	probe(name, s, 1);
}

static CUarray new_array(unsigned value)
{
	const CUDA_ARRAY_DESCRIPTOR d = {
		.Width = 4, .Height = 2, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};
	unsigned host[8];
	CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_HOST,
			   .srcHost = host,
			   .srcPitch = 16,
			   .dstMemoryType = CU_MEMORYTYPE_ARRAY,
			   .WidthInBytes = 16,
			   .Height = 2};
	CUarray array;
	unsigned i;

	for (i = 0; i < 8; i++)
		host[i] = value;
	MUST(cuArrayCreate(&array, &d));
	c.dstArray = array;
	MUST(cuMemcpy2D(&c));
	MUST(cuCtxSynchronize());
	return array;
}

static void array(void)
{
	struct array_inputs in = {.array = new_array(2), .x = STATE(NULL, 1, 7)};
	dev three = STATE(NULL, 1, 3);

	if (option("inside"))
		in.next = three;
	run_forward("block", 0, array_segment, &in);
	if (option("between"))
		copy_word(three, in.array, 1);
	run_replay("block", 0, array_segment, &in, "y", 1);
	array_probe("s", in.array);
	MUST(cuCtxSynchronize());
	MUST(cuArrayDestroy(in.array));
}

/* --- cases: strided copies ---------------------------------------------------------------------- */

/* One word of each layer of four words, or of each row of a layer: what lies between them is read. */
static dev layers_segment(void *inputs)
{
	struct inputs *in = inputs;
	CUDA_MEMCPY3D c = {.dstMemoryType = CU_MEMORYTYPE_DEVICE,
			   .dstDevice = in->s,
			   .dstPitch = option("rows")	 ? 8
				       : option("pitch") ? 16
							 : 4,
			   .dstHeight = option("rows") || option("height") ? 4 : 1,
			   .srcMemoryType = CU_MEMORYTYPE_DEVICE,
			   .srcDevice = in->x,
			   .srcPitch = 4,
			   .srcHeight = 1,
			   .WidthInBytes = 4,
			   .Height = 1,
			   .Depth = 2};
	dev y = alloc(8);

	if (option("rows")) {
		c.Height = 2;
		c.Depth = 1;
	}
	MUST(cuMemcpy3DAsync(&c, on));
	LAUNCH("mul", 8, &y, &in->x, &in->s);
	return y;
}

static void layers(void)
{
	struct inputs in = {.s = STATE("state:s", 8, 2, 2, 2, 2, 2, 2, 2, 2),
			    .x = STATE(NULL, 8, 7, 7, 7, 7, 7, 7, 7, 7)};

	run_forward("block", 0, layers_segment, &in);
	add_one(in.s + 4);
	run_replay("block", 0, layers_segment, &in, "y", 8);
	probe("s", in.s, 8);
}

/* --- cases: order ------------------------------------------------------------------------------- */

static volatile int host_ran;

static void host_function(void *data)
{
	(void)data;
	__atomic_store_n(&host_ran, 1, __ATOMIC_RELEASE);
}

/* A word in memory as a signal, one call or a batch of them. */
static void by_value(CUstream from, CUstream to, dev word)
{
	CUstreamBatchMemOpParams op = {.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32,
						      .address = word,
						      .value = 1}};

	if (option("value")) {
		MUST(cuStreamWriteValue32(from, word, 1, 0));
		MUST(cuStreamWaitValue32(to, word, 1, CU_STREAM_WAIT_VALUE_EQ));
		return;
	}
	MUST(cuStreamBatchMemOp(from, 1, &op, 0));
	op.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	op.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	MUST(cuStreamBatchMemOp(to, 1, &op, 0));
}

/* Orders `to` after `from`, in the way that the command line says; in none without one. */
static void order(CUstream from, CUstream to, dev somewhere)
{
	unsigned word;

	if (option("event")) {
		hand_over(from, to);
	} else if (option("eventsync")) {
		MUST(cuEventRecord(handover, from));
		MUST(cuEventSynchronize(handover));
	} else if (option("eventquery")) {
		MUST(cuEventRecord(handover, from));
		while (cuEventQuery(handover) != CUDA_SUCCESS)
			;
	} else if (option("sync")) {
		MUST(cuStreamSynchronize(from));
	} else if (option("query")) {
		while (cuStreamQuery(from) != CUDA_SUCCESS)
			;
	} else if (option("context")) {
		MUST(cuCtxSynchronize());
	} else if (option("value") || option("batch")) {
		by_value(from, to, somewhere);
	} else if (option("host")) {
		host_ran = 0;
		MUST(cuLaunchHostFunc(from, host_function, NULL));
		while (!__atomic_load_n(&host_ran, __ATOMIC_ACQUIRE))
			cuStreamQuery(from);
	} else if (option("free")) {
		release(somewhere);
	} else if (option("legacy")) { /* `from` is a blocking stream */
		MUST(cuMemcpyDtoH(&word, somewhere, 4));
	}
}

/* The state is written on a stream of its own, after the forward, and before the replay or so it seems. */
static void streams(void)
{
	struct inputs in = inputs_at(alloc(1));
	dev somewhere = STATE(NULL, 1, 0);
	CUstream other;

	MUST(cuStreamCreate(&other, option("legacy") ? 0 : CU_STREAM_NON_BLOCKING));
	run_forward("block", 0, product, &in);
	hand_over(outside, other);
	on = other;
	add_one(in.s);
	on = outside;
	order(other, replays, somewhere);
	run_replay("block", 0, product, &in, "y", 1);
	MUST(cuCtxSynchronize());
	probe("s", in.s, 1);
	MUST(cuStreamDestroy(other));
}

/* --- main ----------------------------------------------------------------------------------- */

static const struct hazard_case cases[] = {{"alias", alias},
					   {"alias_retained", alias_retained},
					   {"adjacent", adjacent},
					   {"remap", remap},
					   {"remap_other", remap_other},
					   {"refused", refused},
					   {"peer", peer},
					   {"imported", imported},
					   {"exported", exported},
					   {"array", array},
					   {"layers", layers},
					   {"streams", streams}};

HAZARD_MAIN(cases)
