/* SPDX-License-Identifier: MIT */
/*
 * For tests of the engine: load PTX, run it on host arrays, and run one instruction over a table of
 * edge values and random ones against a scalar reference.
 *
 * kit_form() builds two kernels around an instruction: all lanes execute it, and every other lane
 * does (the rest must keep what they had). Operands come from arrays of 64-bit words, results are
 * stored as 64-bit words, so the reference is a function from words to a word.
 */
#ifndef RS_TESTS_EXEC_KIT_H
#define RS_TESTS_EXEC_KIT_H

#include "tests/simcuda/exec.h"
#include "tests/tap.h"

#define KIT_N 1024

/* The value of row `row` of the test's table. */
typedef uint64_t (*kit_ref)(unsigned row, uint64_t a, uint64_t b, uint64_t c, uint64_t d);

struct kit_form {
	const char *op; /* "add.s32"; or whole instructions in braces, from %x1.. to %d */
	const char
		*sig; /* p, h, w, d integers; x half, y bfloat16, f float, g double; result first */
	const char *extra; /* further operands as text, or NULL */
};

/* Module variables are ranges of the launch too; ranges stay sorted. */
static struct sim_range kit_ranges[16];
static unsigned kit_nranges;
static void *kit_blocks[16];
static unsigned kit_nblocks;
static uint32_t kit_dynamic; /* shared memory of the next launches */
static const struct sim_view *kit_views;
static size_t kit_nviews; /* objects that they may use, by ascending handle */

static void kit_add_range(struct sim_range r)
{
	unsigned i = kit_nranges++;

	for (; i && kit_ranges[i - 1].base > r.base; i--)
		kit_ranges[i] = kit_ranges[i - 1];
	kit_ranges[i] = r;
}

__attribute__((unused)) static void *kit_alloc(void *opaque, size_t size, size_t align)
{
	size_t room = (size + 255) & ~(size_t)255;
	void *p = aligned_alloc(256, room);

	(void)opaque, (void)align;
	if (!p || kit_nblocks == 8) {
		free(p);
		return NULL;
	}
	kit_blocks[kit_nblocks++] = p;
	kit_add_range((struct sim_range){(uintptr_t)p, size, NULL, 0});
	return p;
}

/* Forget the variables of modules that have been freed. */
__attribute__((unused)) static void kit_release(void)
{
	while (kit_nblocks)
		free(kit_blocks[--kit_nblocks]);
	kit_nranges = 0;
}

/* Load, run one launch over `ranges` and free. `err` gets the load error or the fault's text. */
__attribute__((unused)) static enum sim_fault_kind
kit_run(const char *ptx, const char *kernel, uint32_t grid, uint32_t block, const void *params,
	const struct sim_range *ranges, size_t nranges, char *err, size_t errlen,
	struct sim_fault *ret_fault, struct sim_counts *ret_counts)
{
	struct sim_launch launch = {.grid = {grid, 1, 1},
				    .block = {block, 1, 1},
				    .params = params,
				    .ranges = kit_ranges,
				    .views = kit_views,
				    .nviews = kit_nviews,
				    .shared_dynamic = kit_dynamic,
				    .max_insns = 200000000};
	enum sim_fault_kind kind = (enum sim_fault_kind) - 1;
	struct sim_fault fault = {0};
	struct sim_module *m;

	kit_release();
	m = sim_module_load(ptx, strlen(ptx), kit_alloc, NULL, err, errlen);
	if (!m) {
		kit_release();
		return kind;
	}
	for (size_t i = 0; i < nranges; i++)
		kit_add_range(ranges[i]);
	launch.nranges = kit_nranges;
	launch.kernel = sim_module_kernel(m, kernel);
	if (launch.kernel)
		kind = sim_exec(&launch, &fault, ret_counts);
	if (kind != SIM_OK)
		snprintf(err, errlen, "%s", launch.kernel ? fault.text : "no such kernel");
	if (ret_fault)
		*ret_fault = fault;
	sim_module_free(m);
	kit_release();
	return kind;
}

/* ---- values ---- */

static uint64_t kit_seed = 88172645463325252ull;

__attribute__((unused)) static uint64_t kit_random(void)
{
	kit_seed ^= kit_seed << 13;
	kit_seed ^= kit_seed >> 7;
	return kit_seed ^= kit_seed << 17;
}

static const uint64_t kit_ints[] = {0,
				    1,
				    2,
				    3,
				    7,
				    8,
				    15,
				    16,
				    17,
				    31,
				    32,
				    33,
				    63,
				    64,
				    65,
				    0x7f,
				    0x80,
				    0xff,
				    0x7fff,
				    0x8000,
				    0xffff,
				    0x7fffffff,
				    0x80000000,
				    0xffffffff,
				    0x100000000,
				    0x7fffffffffffffff,
				    0x8000000000000000,
				    0x8000000080000000,
				    0x801,
				    0x803,
				    0x1000001,
				    0x1000003,
				    0x20000000000001,
				    0x20000000000003,
				    0x8000008000000000,
				    0xffffffffffffffff,
				    0xfffffffffffffffe,
				    0x123456789abcdef0};
static const uint64_t kit_floats[] = {
	0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x3f7fffff, 0x3f000000, 0x40000000,
	0xc0400000, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000,
	0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f800001,
	0x4effffff, 0x4f000000, 0xcf000000, 0xcf000001, 0x4f800000, 0x5f000000, 0x3fc00000,
	0x40200000, 0x42b17218, 0x34000000, 0x477fe000};
static const uint64_t kit_doubles[] = {
	0x0000000000000000, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000,
	0x3fefffffffffffff, 0x3fe0000000000000, 0x4000000000000000, 0xc008000000000000,
	0x0000000000000001, 0x8000000000000001, 0x000fffffffffffff, 0x0010000000000000,
	0x7fefffffffffffff, 0xffefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000,
	0x7ff8000000000000, 0xfff8000000001234, 0x7ff0000000000001, 0x41dfffffffc00000,
	0x41e0000000000000, 0x43e0000000000000, 0xc3e0000000000000, 0x43f0000000000000,
	0x3ff8000000000000, 0x4004000000000000, 0x47efffffe0000000, 0x47efffffefffffff,
	0x36a0000000000000, 0x3690000000000000, 0x369fffffffffffff, 0x40effffff0000000};
static const uint64_t kit_halves[] = {0x0000, 0x8000, 0x3c00, 0xbc00, 0x3bff, 0x3800,
				      0x4000, 0xc200, 0x0001, 0x8001, 0x03ff, 0x83ff,
				      0x0400, 0x8400, 0x7bff, 0xfbff, 0x7c00, 0xfc00,
				      0x7e00, 0xfe12, 0x7c01, 0x3e00, 0x1234, 0x5bff};
static const uint64_t kit_bfloats[] = {0x0000, 0x8000, 0x3f80, 0xbf80, 0x3f7f, 0x3f00,
				       0x4000, 0xc040, 0x0001, 0x8001, 0x007f, 0x807f,
				       0x0080, 0x8080, 0x7f7f, 0xff7f, 0x7f80, 0xff80,
				       0x7fc0, 0xffc1, 0x7f81, 0x3fc0, 0x1234, 0x4f00};

static const uint64_t *kit_pool(char letter, unsigned *ret_n)
{
#define POOL(p) (*ret_n = sizeof p / sizeof *p, p)
	switch (letter) {
	case 'f':
		return POOL(kit_floats);
	case 'g':
		return POOL(kit_doubles);
	case 'x':
		return POOL(kit_halves);
	case 'y':
		return POOL(kit_bfloats);
	default:
		return POOL(kit_ints);
	}
#undef POOL
}

/* Random numbers whose exponents are often close, so that sums and products round. */
static uint64_t kit_random_value(char letter)
{
	uint64_t r = kit_random(), e = kit_random() >> 20;

	switch (letter) {
	case 'f':
		return e & 1 ? r >> 32
			     : (r >> 32 & 0x807fffff) | (uint64_t)(118 + e / 2 % 20) << 23;
	case 'g':
		return e & 1 ? r
			     : (r & 0x800fffffffffffffull) | (uint64_t)(1000 + e / 2 % 46) << 52;
	case 'w':
	case 'd':
		return e & 1 ? r : r >> (e / 2 % 64);
	default:
		return r >> 48;
	}
}

static uint64_t kit_value(char letter, unsigned operand, unsigned i)
{
	unsigned n;
	const uint64_t *pool = kit_pool(letter, &n);
	static const unsigned skew[4] = {0, 0, 1, 2};

	if (i >= n * n || (operand > 1 && i % 3 == 0))
		return kit_random_value(letter);
	return pool[operand == 0 ? i % n : (i / n + skew[operand] * i) % n];
}

/* ---- one instruction ---- */

static const char *kit_reg_type(char letter)
{
	switch (letter) {
	case 'p':
		return "pred";
	case 'h':
	case 'x':
	case 'y':
		return "b16";
	case 'w':
		return "b32";
	case 'd':
		return "b64";
	case 'f':
		return "f32";
	default:
		return "f64";
	}
}

static uint64_t kit_mask(char letter)
{
	switch (letter) {
	case 'p':
		return 1;
	case 'h':
	case 'x':
	case 'y':
		return 0xffff;
	case 'w':
	case 'f':
		return 0xffffffff;
	default:
		return ~0ull;
	}
}

static size_t kit_load_text(char *p, size_t room, char letter, unsigned i)
{
	if (letter == 'p')
		return (size_t)snprintf(
			p, room, "ld.global.u32 %%t, [%%q%u]; setp.ne.u32 %%x%u, %%t, 0;\n", i, i);
	return (size_t)snprintf(p, room, "ld.global.%s %%x%u, [%%q%u];\n", kit_reg_type(letter), i,
				i);
}

static void kit_form_text(char *p, size_t room, const struct kit_form *f, int masked)
{
	unsigned n = (unsigned)strlen(f->sig);
	char *end = p + room;
	char d = f->sig[0];

#define ADD(...) (p += snprintf(p, (size_t)(end - p), __VA_ARGS__))
	ADD(".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 o, .param .u64 "
	    "a0, .param .u64 a1, .param .u64 a2, .param .u64 a3)\n{\n.reg .u64 %%q<5>; .reg .b32 "
	    "%%t, %%i, %%n, %%b; .reg .pred %%odd; .reg .b64 %%w; .reg .b16 %%s;\n.reg .%s %%d;\n",
	    kit_reg_type(d));
	ADD("mov.u32 %%i, %%tid.x; mov.u32 %%n, %%ntid.x; mov.u32 %%b, %%ctaid.x;\n"
	    "mad.lo.u32 %%i, %%b, %%n, %%i;\n");
	for (unsigned i = 1; i < n; i++) {
		ADD(".reg .%s %%x%u;\nld.param.u64 %%q%u, [a%u]; mad.wide.u32 %%q%u, %%i, 8, %%q%u;\n",
		    kit_reg_type(f->sig[i]), i, i, i - 1, i, i);
		p += kit_load_text(p, (size_t)(end - p), f->sig[i], i);
	}
	ADD("ld.param.u64 %%q0, [o]; mad.wide.u32 %%q0, %%i, 8, %%q0;\n");
	if (d == 'p')
		ADD("setp.eq.u32 %%d, 0, 1;\n");
	else
		ADD("mov.%s %%d, %s;\n", kit_reg_type(d),
		    d == 'f'   ? "0f00000000"
		    : d == 'g' ? "0d0000000000000000"
			       : "0");
	if (masked)
		ADD("and.b32 %%t, %%i, 1; setp.ne.u32 %%odd, %%t, 0;\n@%%odd bra SKIP;\n");
	if (f->op[0] == '{') {
		ADD("%s\nSKIP:\n", f->op);
	} else {
		ADD("%s %%d", f->op);
		for (unsigned i = 1; i < n; i++)
			ADD(", %%x%u", i);
		ADD("%s%s;\nSKIP:\n", f->extra ? ", " : "", f->extra ? f->extra : "");
	}
	if (d == 'p')
		ADD("selp.u64 %%w, 1, 0, %%d; st.global.u64 [%%q0], %%w;\n");
	else
		ADD("st.global.%s [%%q0], %%d;\n", kit_reg_type(d));
	ADD("ret;\n}\n");
#undef ADD
}

struct kit_data {
	uint64_t in[4][KIT_N], out[KIT_N];
};

static int kit_form_once(const struct kit_form *f, int masked, struct kit_data *x,
			 const uint64_t *want, char *why, size_t room)
{
	const uint64_t *params[5] = {x->out, x->in[0], x->in[1], x->in[2], x->in[3]};
	struct sim_range range = {(uintptr_t)x, sizeof *x, NULL, 0};
	char text[4096];

	memset(x->out, 0, sizeof x->out);
	kit_form_text(text, sizeof text, f, masked);
	if (kit_run(text, "k", KIT_N / 64, 64, params, &range, 1, why, room, NULL, NULL) != SIM_OK)
		return 0;
	for (unsigned i = 0; i < KIT_N; i++) {
		uint64_t w = masked && i & 1 ? 0 : want[i];

		if (x->out[i] == w)
			continue;
		snprintf(why, room,
			 "%s: a=0x%llx b=0x%llx c=0x%llx d=0x%llx: got 0x%llx, want 0x%llx",
			 masked ? "masked" : "full", (unsigned long long)x->in[0][i],
			 (unsigned long long)x->in[1][i], (unsigned long long)x->in[2][i],
			 (unsigned long long)x->in[3][i], (unsigned long long)x->out[i],
			 (unsigned long long)w);
		return 0;
	}
	return 1;
}

__attribute__((unused)) static void kit_form(const struct kit_form *f, kit_ref ref, unsigned row)
{
	static struct kit_data x;
	static uint64_t want[KIT_N];
	unsigned n = (unsigned)strlen(f->sig);
	char why[300] = "";
	int good;

	memset(x.in, 0, sizeof x.in);
	for (unsigned i = 0; i < KIT_N; i++) {
		for (unsigned o = 1; o < n; o++)
			x.in[o - 1][i] = kit_value(f->sig[o], o - 1, i) & kit_mask(f->sig[o]);
		want[i] = ref(row, x.in[0][i], x.in[1][i], x.in[2][i], x.in[3][i]) &
			  kit_mask(f->sig[0]);
	}
	good = kit_form_once(f, 0, &x, want, why, sizeof why) &&
	       kit_form_once(f, 1, &x, want, why, sizeof why);
	if (!ok(good, "%s%s%s", f->op, f->extra ? " " : "", f->extra ? f->extra : ""))
		tap_diag("%s", why);
}

#endif
