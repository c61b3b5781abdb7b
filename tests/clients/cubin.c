/* SPDX-License-Identifier: MIT */
/*
 * Kernels whose PTX the tool must not believe, as in NVIDIA's libraries: the module is a fat binary of machine code
 * for this device (tests/cubin_build.h: tables, no instructions) and of PTX for an older one. A real device runs the
 * machine code; the simulated one cannot, and runs the PTX, which does what the machine code would.
 *
 *	cubin CASE [VARIANT...] [--streams] [--steps=N | --seeds=N]	see hazards_rig.h
 *
 * Variants of the image: `static`, one more variable, which the driver does not find; `malloc`, device code that calls
 * out; `nameless`, variables without symbols; `alone`, no variables; `unread`, no tables at all. `declared`: the
 * program names its state. What is right is in tests/t/cubin.t.
 */
#include "tests/cubin_build.h"

static char fatbin[32768];
static int unread;

#define HAZARD_MODULES fatbin
#include "tests/clients/hazards_rig.h"

#define ENTRY(name, params, body)                                                                  \
	".visible .entry " name "(" params ")\n{\n"                                                \
	"\t.reg .b64 %rd<5>;\n\t.reg .b32 %r<5>;\n" body "\tret;\n}\n"
#define Y_X    ".param .u64 y, .param .u64 x"
#define LOAD_Y "\tld.param.u64 %rd1, [y];\n\tcvta.to.global.u64 %rd1, %rd1;\n"
#define LOAD_X                                                                                     \
	"\tld.param.u64 %rd2, [x];\n\tcvta.to.global.u64 %rd2, %rd2;\n"                            \
	"\tld.global.u32 %r2, [%rd2];\n\tadd.u32 %r2, %r2, %r2;\n"
#define COUNT                                                                                      \
	"\tld.global.u32 %r1, [counter];\n\tadd.u32 %r3, %r1, 1;\n\tst.global.u32 [counter], %r3;\n"

/* take: y = counter++. tick: y = 2 x, counter++. twice: y = 2 x. peek: y = counter. reset: counter = 0. */
static const char ptx[] =
	".version 6.0\n.target sm_70\n.address_size 64\n.visible .global .align 4 .u32 counter;\n" ENTRY(
		"take", ".param .u64 y", LOAD_Y COUNT "\tst.global.u32 [%rd1], %r1;\n")
		ENTRY("tick", Y_X, LOAD_Y LOAD_X COUNT "\tst.global.u32 [%rd1], %r2;\n")
			ENTRY("twice", Y_X, LOAD_Y LOAD_X "\tst.global.u32 [%rd1], %r2;\n") ENTRY(
				"peek", ".param .u64 y",
				LOAD_Y
				"\tld.global.u32 %r1, [counter];\n\tst.global.u32 [%rd1], %r1;\n")
				ENTRY("reset", "",
				      "\tmov.u32 %r1, 0;\n\tst.global.u32 [counter], %r1;\n");

/* --- the image ------------------------------------------------------------------------------ */

struct __attribute__((packed)) entry {
	uint16_t kind, one;
	uint32_t header_size;
	uint64_t padded;
	uint32_t compressed, options;
	uint16_t minor, major;
	uint32_t sm, name_offset, name_len;
	uint64_t flags, reserved, raw;
};

static void kernel(struct cubin_build *b, struct cubin_info *info, const char *name,
		   unsigned nparams)
{
	char section[64];

	snprintf(section, sizeof(section), ".nv.info.%s", name);
	cubin_half(info, 3, 0x1b, 255);
	for (unsigned i = nparams; i--;)
		cubin_param(info, (uint16_t)i, (uint16_t)(8 * i), 8);
	if (nparams)
		cubin_param_size(info, (uint16_t)(8 * nparams));
	cubin_section(b, section, CUBIN_INFO, 0, info->data, info->n);
}

static uint8_t *machine_code(size_t *ret_size)
{
	static struct cubin_info info[5];
	struct cubin_build b;
	uint16_t data;

	memset(info, 0, sizeof(info));
	cubin_begin(&b);
	kernel(&b, &info[0], "take", 1);
	kernel(&b, &info[1], "tick", 2);
	kernel(&b, &info[2], "twice", 2);
	kernel(&b, &info[3], "peek", 1);
	kernel(&b, &info[4], "reset", 0);
	if (!option("alone")) {
		data = cubin_section(&b, ".nv.global", SHT_NOBITS, CUBIN_DATA, NULL, 8);
		if (!option("nameless"))
			cubin_symbol(&b, "counter", STB_LOCAL, STT_OBJECT, data, 0, 4);
		if (option("static"))
			cubin_symbol(&b, "hidden", STB_LOCAL, STT_OBJECT, data, 4, 4);
	}
	if (option("malloc"))
		cubin_symbol(&b, "malloc", STB_GLOBAL, STT_FUNC, SHN_UNDEF, 0, 0);
	if (unread || option("unread"))
		b.h.e_machine = EM_X86_64;
	return cubin_end(&b, ret_size);
}

static size_t add_entry(size_t at, uint16_t kind, uint32_t sm, const void *data, size_t size)
{
	struct entry e = {.kind = kind,
			  .one = 0x101,
			  .header_size = sizeof(e),
			  .padded = (size + 7) & ~7ull,
			  .sm = sm,
			  .flags = 0x11};

	if (at + sizeof(e) + e.padded > sizeof(fatbin))
		abort();
	memcpy(fatbin + at, &e, sizeof(e));
	memcpy(fatbin + at + sizeof(e), data, size);
	return at + sizeof(e) + e.padded;
}

static void build(void)
{
	struct {
		uint32_t magic;
		uint16_t version, header_size;
		uint64_t size;
	} h = {0xba55ed50, 1, 16, 0};
	size_t size, at = sizeof(h);
	uint8_t *code = machine_code(&size);

	at = add_entry(at, 2, 75, code, size);
	at = add_entry(at, 1, 70, ptx, sizeof(ptx));
	h.size = at - sizeof(h);
	memcpy(fatbin, &h, sizeof(h));
	free(code);
}

/* --- cases ---------------------------------------------------------------------------------- */

static dev take_segment(void *inputs)
{
	dev y = alloc(1);

	(void)inputs;
	LAUNCH("take", 1, &y);
	return y;
}

static dev tick_segment(void *inputs)
{
	dev y = alloc(1);

	LAUNCH("tick", 1, &y, inputs);
	return y;
}

static dev twice_segment(void *inputs)
{
	dev y = alloc(1);

	LAUNCH("twice", 1, &y, inputs);
	return y;
}

static void run(segment_fn segment)
{
	dev x = STATE("state:x", 1, 21), seen = alloc(1), counter;

	if (option("declared")) {
		MUST(cuModuleGetGlobal(&counter, NULL, modules[0], "counter"));
		replayshim_region_name(counter, 4, "state:counter");
	}
	launch("reset", 1, 1, NULL);
	run_forward("layer", -1, segment, &x);
	run_replay("layer", -1, segment, &x, "y", 1);
	LAUNCH("peek", 1, &seen);
	probe("counter", seen, 1);
}

static void take(void)
{
	run(take_segment);
}

static void tick(void)
{
	run(tick_segment);
}

static void twice(void)
{
	run(twice_segment);
}

static dev peek_library(CUkernel kernel)
{
	dev y;
	void *params[] = {&y};

	MUST(cuMemAlloc(&y, 4));
	MUST(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	return y;
}

/* A forward and its replay of a library's kernel in the context that is current. */
static void peek_twice(CUkernel kernel, const char *name)
{
	unsigned word;
	dev y[2];

	replayshim_forward_begin(name, 0);
	y[0] = peek_library(kernel);
	replayshim_forward_end();
	replayshim_replay_begin(name, 0);
	y[1] = peek_library(kernel);
	replayshim_replay_end();
	MUST(cuCtxSynchronize());
	MUST(cuMemcpyDtoH(&word, y[1], 4));
	tell(name, word);
	MUST(cuMemFree(y[0]));
	MUST(cuMemFree(y[1]));
}

/* One library in three contexts, with variables of its own in each; the third may get the second one's handle. */
static void contexts(void)
{
	static const char *const names[] = {"second", "third"};
	CUlibrary library;
	CUcontext first, other;
	CUkernel kernel;

	MUST(cuCtxGetCurrent(&first));
	MUST(cuLibraryLoadData(&library, fatbin, NULL, NULL, 0, NULL, NULL, 0));
	MUST(cuLibraryGetKernel(&kernel, library, "peek"));
	peek_twice(kernel, "first");
	for (unsigned i = 0; i < 2; i++) {
		MUST(cuCtxCreate(&other, NULL, 0, 0));
		peek_twice(kernel, names[i]);
		MUST(cuCtxDestroy(other));
		MUST(cuCtxSetCurrent(first));
	}
	MUST(cuLibraryUnload(library));
}

static void take_of(CUmodule module, dev y)
{
	void *params[] = {&y};
	CUfunction f;

	MUST(cuModuleGetFunction(&f, module, "take"));
	MUST(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
}

/*
 * A module that cannot be read is unloaded; the next one, which gets its handle sooner or later, has variables that have
 * names. Nothing is allocated between them, which would void all that is known of addresses.
 */
static void reload(void)
{
	static char readable[sizeof(fatbin)];
	dev x = STATE("state:x", 1, 21), y = alloc(1);
	CUmodule module[64], old = NULL;
	unsigned word, n = 0;

	run_forward("other", -1, twice_segment, &x);
	memcpy(readable, fatbin, sizeof(fatbin));
	unread = 1;
	build();
	while (n < 64 && (n < 2 || module[n - 1] != old)) {
		MUST(cuModuleLoadData(&old, fatbin));
		for (unsigned i = 0; i < 3; i++)
			take_of(old, y);
		MUST(cuModuleUnload(old));
		MUST(cuModuleLoadData(&module[n++], readable));
	}
	replayshim_forward_begin("layer", 0);
	take_of(module[n - 1], y);
	replayshim_forward_end();
	take_of(module[n - 1], y);
	replayshim_replay_begin("layer", 0);
	take_of(module[n - 1], y);
	replayshim_replay_end();
	MUST(cuMemcpyDtoH(&word, y, 4));
	tell("y", word);
	while (n--)
		MUST(cuModuleUnload(module[n]));
	unread = 0;
	build();
}

int main(int argc, char **argv)
{
	static const struct hazard_case cases[] = {
		{"take", take},		{"tick", tick},	    {"twice", twice},
		{"contexts", contexts}, {"reload", reload},
	};

	nargs = argc;
	args = argv;
	build();
	return hazard_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
