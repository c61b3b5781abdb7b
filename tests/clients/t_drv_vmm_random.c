/* SPDX-License-Identifier: MIT */
/*
 * Random programs of virtual memory management against a model, under several schedules.
 *
 * The model knows which granule of which handle each slot of two reservations shows, who has access to
 * it, and a word of each granule. The program maps, unmaps, remaps, writes by kernel, fill and copy,
 * asynchronously, and compares now and then.
 */
#include "tests/clients/drv.h"

#define G	(2ull << 20)
#define HANDLES 6
#define GRAINS	3 /* of a handle */
#define SLOTS	10
#define STEPS	400

/* inc of drv.h without its variable, which would count as live. */
static const char inc_ptx[] = ".version 7.5\n"
			      ".target sm_75\n"
			      ".address_size 64\n"
			      ".visible .entry inc(.param .u64 a, .param .u32 b)\n"
			      "{\n" DRV_REGS "\tld.param.u64 %rd1, [a];\n"
			      "\tld.param.u32 %r1, [b];\n" DRV_INDEX "\tadd.s64 %rd4, %rd1, %rd3;\n"
			      "\tld.global.u32 %r6, [%rd4];\n"
			      "\tadd.s32 %r7, %r6, 1;\n"
			      "\tst.global.u32 [%rd4], %r7;\n"
			      "DONE:\n"
			      "\tret;\n"
			      "}\n";

static const CUmemAllocationProp on_device = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
};
static const CUmemAccessDesc rw = {
	.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
	.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
};

static struct {
	CUmemGenericAllocationHandle h;
	unsigned word[GRAINS], mapped;
	int live, released;
} mem[HANDLES];

static struct slot {
	int handle, grain, first; /* handle -1: nothing; first: slots to the start of its mapping */
	unsigned n;		  /* slots of the mapping */
	int access;
} slot[2 * SLOTS];

static CUdeviceptr space[2];
static CUfunction f_inc;
static CUstream stream;
static uint64_t state;
static unsigned bad;

static unsigned rnd(unsigned n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(state >> 33) % n;
}

static CUdeviceptr at(unsigned i)
{
	return space[i / SLOTS] + i % SLOTS * G;
}

static void expect(CUresult got, CUresult want, const char *what)
{
	if (got == want)
		return;
	bad++;
	tap_diag("%s: got %d, want %d", what, got, want);
}

static void create(void)
{
	unsigned i = rnd(HANDLES);

	if (mem[i].live)
		return;
	expect(cuMemCreate(&mem[i].h, GRAINS * G, &on_device, 0), CUDA_SUCCESS, "create");
	mem[i].live = 1;
	mem[i].released = 0;
	for (unsigned g = 0; g < GRAINS; g++)
		mem[i].word[g] = 0x7fe5e5e5u;
}

static void release(void)
{
	unsigned i = rnd(HANDLES);

	if (!mem[i].live)
		return;
	expect(cuMemRelease(mem[i].h), mem[i].released ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS,
	       "release");
	mem[i].released = 1;
	mem[i].live = mem[i].mapped != 0;
}

static void map(void)
{
	unsigned i = rnd(2 * SLOTS), h = rnd(HANDLES), grain = rnd(GRAINS);
	unsigned n = 1 + rnd(GRAINS), free = 1;

	if (!mem[h].live)
		return;
	for (unsigned k = 0; k < n; k++)
		free &= i % SLOTS + k < SLOTS && slot[i + k].handle < 0;
	free &= grain + n <= GRAINS && !mem[h].released;
	expect(cuMemMap(at(i), n * G, grain * G, mem[h].h, 0),
	       free ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, "map");
	if (!free)
		return;
	for (unsigned k = 0; k < n; k++)
		slot[i + k] = (struct slot){(int)h, (int)(grain + k), (int)k, n, 0};
	mem[h].mapped++;
}

static void unmap(void)
{
	unsigned i = rnd(2 * SLOTS), n = 1 + rnd(GRAINS);
	int h = slot[i].handle, right = h >= 0 && !slot[i].first && slot[i].n == n;

	/* Of several mappings only the case of one is asked for here. */
	if (h >= 0 && !slot[i].first && slot[i].n < n)
		return;
	expect(cuMemUnmap(at(i), n * G), right ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, "unmap");
	if (!right)
		return;
	for (unsigned k = 0; k < n; k++)
		slot[i + k].handle = -1;
	if (!--mem[h].mapped && mem[h].released)
		mem[h].live = 0;
}

static void set_access(void)
{
	unsigned i = rnd(2 * SLOTS), first, n;

	if (slot[i].handle < 0)
		return;
	first = i - (unsigned)slot[i].first;
	n = slot[i].n;
	expect(cuMemSetAccess(at(first), n * G, &rw, 1), CUDA_SUCCESS, "access");
	for (unsigned k = 0; k < n; k++)
		slot[first + k].access = 1;
}

/* Write a slot and, with a fill, the border to its neighbour. */
static void write_word(void)
{
	unsigned i = rnd(2 * SLOTS), v = rnd(1000), one = 1;
	CUdeviceptr p = at(i);
	void *params[] = {&p, &one};
	unsigned *word;

	if (slot[i].handle < 0 || !slot[i].access)
		return;
	word = &mem[slot[i].handle].word[slot[i].grain];
	switch (rnd(3)) {
	case 0:
		expect(drv_launch(f_inc, 1, stream, params), CUDA_SUCCESS, "kernel");
		++*word;
		break;
	case 1:
		if (i % SLOTS && slot[i - 1].handle >= 0 && slot[i - 1].access)
			expect(cuMemsetD32Async(p - 64, v, 17, stream), CUDA_SUCCESS, "fill");
		else
			expect(cuMemsetD32Async(p, v, 1, stream), CUDA_SUCCESS, "fill");
		*word = v;
		break;
	default:
		expect(cuMemcpyHtoDAsync(p, &v, 4, stream), CUDA_SUCCESS, "copy");
		*word = v;
		break;
	}
}

static void compare(void)
{
	unsigned i = rnd(2 * SLOTS), v = 0;

	if (slot[i].handle < 0) {
		expect(cuMemcpyDtoH(&v, at(i), 4), CUDA_ERROR_INVALID_VALUE, "read of nothing");
		return;
	}
	if (!slot[i].access)
		return;
	expect(cuMemcpyDtoHAsync(&v, at(i), 4, stream), CUDA_SUCCESS, "read");
	if (v != mem[slot[i].handle].word[slot[i].grain]) {
		bad++;
		tap_diag("slot %u: got %u, want %u", i, v, mem[slot[i].handle].word[slot[i].grain]);
	}
}

static void run(unsigned seed)
{
	static void (*const steps[])(void) = {create,	  release,    map,	  map,	   unmap,
					      set_access, write_word, write_word, compare, compare};
	char spec[32];
	uint64_t want = 0;

	state = seed;
	snprintf(spec, sizeof(spec), "random:%u", seed);
	simcuda_set_schedule(seed % 3 ? spec : seed % 2 ? "lazy" : "eager");
	for (unsigned i = 0; i < 2 * SLOTS; i++)
		slot[i].handle = -1;
	for (unsigned n = 0; n < STEPS; n++)
		steps[rnd(sizeof(steps) / sizeof(steps[0]))]();
	for (unsigned i = 0; i < HANDLES; i++)
		want += mem[i].live ? GRAINS * G : 0;
	if (simcuda_live_bytes(0) != want) {
		bad++;
		tap_diag("seed %u: %llu bytes live, want %llu", seed,
			 (unsigned long long)simcuda_live_bytes(0), (unsigned long long)want);
	}
	for (unsigned i = 0; i < 2 * SLOTS; i++)
		if (slot[i].handle >= 0 && !slot[i].first)
			expect(cuMemUnmap(at(i), slot[i].n * G), CUDA_SUCCESS, "last unmap");
	for (unsigned i = 0; i < HANDLES; i++) {
		if (mem[i].live && !mem[i].released)
			expect(cuMemRelease(mem[i].h), CUDA_SUCCESS, "last release");
		mem[i].live = 0;
		mem[i].mapped = 0;
	}
}

int main(void)
{
	CUcontext ctx;
	CUmodule mod;

	setenv("SIMCUDA_MEMORY", "256M", 1);
	ctx = drv_context();
	must(cuModuleLoadData(&mod, inc_ptx));
	f_inc = drv_function(mod, "inc");
	must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < 2; i++)
		must(cuMemAddressReserve(&space[i], SLOTS * G, 0, 0, 0));
	for (unsigned seed = 1; seed <= 12; seed++) {
		bad = 0;
		run(seed);
		ok(!bad, "seed %u: %u steps as in the model", seed, STEPS);
	}
	is_u64(simcuda_live_bytes(0), 0, "nothing is left");
	for (unsigned i = 0; i < 2; i++)
		is_cu(cuMemAddressFree(space[i], SLOTS * G), CUDA_SUCCESS, "no mapping is left");
	must(cuCtxDestroy(ctx));
	return tap_done();
}
