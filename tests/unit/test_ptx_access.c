/* SPDX-License-Identifier: MIT */
/*
 * What the PTX access analyser says about kernels in the idioms of tinygrad and nvcc: directions,
 * byte bounds, density, and the reasons for giving up.
 */
#include "tests/tap.h"
#include "tracker/ptx_access.h"

#define HEAD ".version 7.5\n.target sm_75\n.address_size 64\n"
#define REGS                                                                                       \
	".reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .pred %p<20>; .reg .f32 %f<20>;\n"              \
	".reg .b16 %h<8>;\n"

/* Three pointers, two integers. */
#define ENTRY                                                                                      \
	HEAD ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n,"       \
	     " .param .u32 m)\n{\n" REGS                                                           \
	     "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c];\n"           \
	     "ld.param.u32 %r1, [n]; ld.param.u32 %r2, [m];\n"                                     \
	     "mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x;\n"                 \
	     "mad.lo.s32 %r6, %r3, %r4, %r5;\n"
#define OUT "DONE: ret;\n}\n"

enum { A = 0, B = 8, C = 16 };

static struct rs_ptx *ptx;
static struct rs_ptx_module *module;
static const struct rs_ptx_kernel *kernel;
static uint8_t params[128];
static struct rs_ptx_launch launch;

static void put_u64(unsigned offset, uint64_t v)
{
	memcpy(params + offset, &v, 8);
}

static void put_u32(unsigned offset, uint32_t v)
{
	memcpy(params + offset, &v, 4);
}

static void drop(void)
{
	rs_ptx_module_free(module);
	if (ptx)
		rs_ptx_free(ptx);
	module = NULL;
	ptx = NULL;
	kernel = NULL;
}

/* Analyse; grid of 4 blocks of 32 threads, n = 100, m = 10, pointers far apart. */
static int take(const char *text)
{
	struct rs_ptx_error err = {0};

	drop();
	if (rs_ptx_parse(text, strlen(text), &ptx, &err)) {
		tap_diag("line %u: %s", err.line, err.text);
		ptx = NULL;
		return ok(0, "the text parses");
	}
	if (rs_ptx_analyse(ptx, &module))
		return ok(0, "the analysis succeeds");
	kernel = rs_ptx_module_find(module, "k");
	memset(params, 0, sizeof(params));
	put_u64(A, 0x7f0000000000);
	put_u64(B, 0x7f1000000000);
	put_u64(C, 0x7f2000000000);
	put_u32(24, 100);
	put_u32(28, 10);
	launch = (struct rs_ptx_launch){.grid = {4, 1, 1},
					.block = {32, 1, 1},
					.params = params,
					.nparams_bytes = sizeof(params)};
	return kernel != NULL;
}

static int word_at(unsigned offset)
{
	for (uint32_t i = 0; kernel && i < kernel->nwords; i++)
		if (kernel->words[i].offset == offset)
			return (int)i;
	return -1;
}

static unsigned dir_of(unsigned offset)
{
	int w = word_at(offset);

	return w < 0 ? 99 : kernel->words[w].dir;
}

static struct rs_ptx_extent eval(unsigned offset, enum rs_ptx_dir dir)
{
	struct rs_ptx_extent e = {0};
	int w = word_at(offset);

	if (w >= 0)
		rs_ptx_access_eval(kernel, (uint32_t)w, dir, &launch, &e);
	return e;
}

static void expect(unsigned offset, enum rs_ptx_dir dir, int known, int dense, int64_t lo,
		   int64_t hi, const char *what)
{
	struct rs_ptx_extent e = eval(offset, dir);

	if (!ok(e.known == known && e.dense == dense && e.lo == lo && e.hi == hi, "%s", what))
		tap_diag("got known %d dense %d [%" PRId64 ", %" PRId64 ")", e.known, e.dense, e.lo,
			 e.hi);
}

static void expect_opaque(const char *text, const char *why, const char *what)
{
	if (!take(text))
		return;
	ok(kernel->opaque && kernel->why && strstr(kernel->why, why), "%s", what);
	if (kernel->opaque && kernel->why && !strstr(kernel->why, why))
		tap_diag("because of %s", kernel->why);
}

#define INDEX4 "mul.wide.s32 %rd4, %r6, 4; add.s64 %rd5, %rd1, %rd4; add.s64 %rd6, %rd2, %rd4;\n"

static void test_directions(void)
{
	take(ENTRY INDEX4 "ld.global.f32 %f1, [%rd5]; st.global.f32 [%rd6], %f1;\n" OUT);
	is_u64(dir_of(A), RS_PTX_READS, "a loaded parameter is read");
	is_u64(dir_of(B), RS_PTX_WRITES, "a stored parameter is written");
	is_u64(dir_of(C), 0, "a parameter that is only loaded from the block is neither");
	is_u64(dir_of(24), 99, "an integer parameter is no word");
	ok(!kernel->opaque && !kernel->reads_globals && !kernel->writes_globals, "nothing else");
	is_u64(kernel->param_bytes, 32, "the block's size");
	take(ENTRY INDEX4
	     "atom.global.add.u32 %r9, [%rd5], 1; red.global.add.f32 [%rd6], %f1;\n" OUT);
	is_u64(dir_of(A), 3, "an atomic reads and writes");
	is_u64(dir_of(B), 3, "a reduction reads and writes");
	expect(A, RS_PTX_WRITES, 1, 0, 0, 512, "an atomic is never called dense");
	take(ENTRY INDEX4 "ld.global.f32 %f1, [%rd5]; st.global.f32 [%rd5], %f1;\n" OUT);
	is_u64(dir_of(A), 3, "in place: both");
	take(ENTRY "cp.async.ca.shared.global [%r9], [%rd1+32], 16;\ncp.async.commit_group;\n"
		   "cp.async.wait_group 0;\n" OUT);
	is_u64(dir_of(A), RS_PTX_READS, "cp.async reads global memory");
	expect(A, RS_PTX_READS, 1, 0, 32, 48, "of its size");
	take(ENTRY "prefetch.global.L2 [%rd1];\n" OUT);
	is_u64(dir_of(A), 0, "a prefetch does nothing");
}

static void test_nvcc(void)
{
	take(ENTRY "setp.ge.s32 %p1, %r6, %r1; @%p1 bra DONE;\n" INDEX4
		   "ld.global.f32 %f1, [%rd5]; st.global.f32 [%rd6], %f1;\n" OUT);
	expect(A, RS_PTX_READS, 1, 0, 0, 400, "if (i < n) bounds the reads");
	expect(B, RS_PTX_WRITES, 1, 1, 0, 400, "and the writes, densely");
	put_u32(24, 1000);
	expect(B, RS_PTX_WRITES, 1, 1, 0, 512, "a grid smaller than n: all of its threads");
	put_u32(24, 0);
	expect(B, RS_PTX_WRITES, 1, 0, 0, 0, "n = 0: nothing is written");
	put_u32(24, 100);
	launch.block[0] = 1024;
	launch.grid[0] = 1 << 22;
	expect(B, RS_PTX_WRITES, 0, 0, 0, 0, "an index that may wrap gives no bound");
	/* The same with unsigned comparison, return instead of a branch, an offset. */
	take(ENTRY "setp.ge.u32 %p1, %r6, %r1; @%p1 ret;\n" INDEX4
		   "st.global.f32 [%rd6+16], %f1;\n" OUT);
	expect(B, RS_PTX_WRITES, 1, 1, 16, 416, "unsigned guard by ret");
	/* Two dimensions, two guards. */
	take(ENTRY "mov.u32 %r7, %ctaid.y; mov.u32 %r8, %ntid.y; mov.u32 %r9, %tid.y;\n"
		   "mad.lo.s32 %r10, %r7, %r8, %r9; setp.ge.s32 %p1, %r6, %r1;\n"
		   "setp.ge.s32 %p2, %r10, %r2; or.pred %p3, %p1, %p2; @%p3 bra DONE;\n"
		   "mad.lo.s32 %r11, %r10, %r1, %r6; mul.wide.s32 %rd4, %r11, 4;\n"
		   "add.s64 %rd5, %rd1, %rd4; st.global.f32 [%rd5], %f1;\n" OUT);
	launch.grid[1] = 3;
	launch.block[1] = 4;
	expect(A, RS_PTX_WRITES, 1, 1, 0, 4000, "rows and columns under two guards");
	launch.grid[1] = 2;
	expect(A, RS_PTX_WRITES, 1, 1, 0, 3200, "fewer rows than m");
	launch.grid[0] = 3;
	expect(A, RS_PTX_WRITES, 1, 0, 0, 3184, "fewer columns than n leave gaps");
	/* Grid-stride loop. */
	take(ENTRY "mov.u32 %r7, %nctaid.x; mul.lo.s32 %r8, %r4, %r7; setp.ge.s32 %p1, %r6, %r1;\n"
		   "@%p1 bra DONE;\nLOOP: mul.wide.s32 %rd4, %r6, 4; add.s64 %rd5, %rd1, %rd4;\n"
		   "st.global.f32 [%rd5], %f1; add.s32 %r6, %r6, %r8; setp.lt.s32 %p2, %r6, %r1;\n"
		   "@%p2 bra LOOP;\n" OUT);
	put_u32(24, 1000);
	expect(A, RS_PTX_WRITES, 1, 1, 0, 4000, "a grid-stride loop covers 0..n");
	put_u32(24, 77);
	expect(A, RS_PTX_WRITES, 1, 1, 0, 308, "also when the grid is larger");
	/* One thread of each block. */
	take(ENTRY "setp.ne.s32 %p1, %r5, 0; @%p1 bra DONE; mul.wide.u32 %rd4, %r3, 4;\n"
		   "add.s64 %rd5, %rd1, %rd4; st.global.f32 [%rd5], %f1;\n" OUT);
	expect(A, RS_PTX_WRITES, 1, 1, 0, 16, "thread 0 of each block");
}

static void test_tinygrad(void)
{
	take(ENTRY "mov.u32 %r7, -1; bra END;\nLOOP: mad.lo.s32 %r8, %r6, 12, %r7;\n"
		   "cvt.s64.s32 %rd4, %r8; mad.lo.s64 %rd4, %rd4, 4, %rd1;\n"
		   "ld.global.f32 %f1, [%rd4+0];\nEND: add.s32 %r7, %r7, 1;\n"
		   "setp.lt.s32 %p1, %r7, 12; @%p1 bra LOOP;\n"
		   "cvt.s64.s32 %rd5, %r6; mad.lo.s64 %rd5, %rd5, 4, %rd2;\n"
		   "st.global.f32 [%rd5+0], %f1;\n" OUT);
	expect(A, RS_PTX_READS, 1, 0, 0, 128 * 48, "a reduction loop");
	expect(B, RS_PTX_WRITES, 1, 1, 0, 512, "and its result");
	/* Unrolled with strides: thread t writes t + 32 j for j = 0..3. */
	take(ENTRY "mul.lo.s32 %r7, %r3, 128; add.s32 %r7, %r7, %r5; cvt.s64.s32 %rd4, %r7;\n"
		   "mad.lo.s64 %rd4, %rd4, 4, %rd1; st.global.f32 [%rd4], %f1;\n"
		   "st.global.f32 [%rd4+128], %f1; st.global.f32 [%rd4+256], %f1;\n"
		   "st.global.f32 [%rd4+384], %f1;\n" OUT);
	expect(A, RS_PTX_WRITES, 1, 1, 0, 2048, "pieces between threads");
	launch.block[0] = 31;
	expect(A, RS_PTX_WRITES, 1, 0, 0, 2044, "one thread fewer leaves holes");
	/* Vector stores; and a quotient and a remainder. */
	take(ENTRY "div.s32 %r7, %r6, 8; rem.s32 %r8, %r6, 8; mul.lo.s32 %r9, %r8, 16;\n"
		   "add.s32 %r9, %r9, %r7; mul.wide.s32 %rd4, %r9, 16; add.s64 %rd5, %rd1, %rd4;\n"
		   "st.global.v4.f32 [%rd5], {%f1, %f1, %f1, %f1};\n" OUT);
	expect(A, RS_PTX_WRITES, 1, 1, 0, 2048, "a transposition by div and rem");
	launch.grid[0] = 5;
	expect(A, RS_PTX_WRITES, 1, 1, 0, 2112, "of another size, still without a hole by overlap");
	launch.block[0] = 3;
	launch.grid[0] = 5;
	ok(!eval(A, RS_PTX_WRITES).dense, "15 threads do not divide by 8");
	/* A reciprocal that is only good for small numbers is not taken for a division. */
	take(ENTRY
	     "mul.lo.s32 %r7, %r6, 11; shr.s32 %r7, %r7, 5; mad.lo.s32 %r8, %r7, -3, %r6;\n"
	     "mul.wide.s32 %rd4, %r8, 4; add.s64 %rd5, %rd1, %rd4; ld.global.f32 %f1, [%rd5];\n" OUT);
	ok(eval(A, RS_PTX_READS).lo <= -8, "x - x * 11 / 32 * 3 may be negative");
	launch.grid[0] = 1;
	expect(A, RS_PTX_READS, 1, 0, 0, 12, "but not below 32");
	/* A gated load in a padded convolution: the gate keeps the index inside. */
	take(ENTRY
	     "add.s32 %r7, %r6, -3; setp.lt.s32 %p1, %r7, 100; setp.lt.s32 %p2, -1, %r7;\n"
	     "and.pred %p3, %p1, %p2; cvt.s64.s32 %rd4, %r7; mad.lo.s64 %rd4, %rd4, 4, %rd1;\n"
	     "@%p3 ld.global.f32 %f1, [%rd4]; @!%p3 mov.b32 %f1, 0f00000000;\n" OUT);
	expect(A, RS_PTX_READS, 1, 0, 0, 400, "a gated load stays inside its gate");
	/* A store under a gate that is not the index's own. */
	take(ENTRY INDEX4 "setp.lt.s32 %p1, %r5, 7; @%p1 st.global.f32 [%rd5], %f1;\n" OUT);
	expect(A, RS_PTX_WRITES, 1, 0, 0, 412, "a predicated store is bounded but not dense");
	take(ENTRY INDEX4 "ld.global.f32 %f1, [%rd6]; setp.lt.f32 %p1, %f1, 0f00000000;\n"
			  "@%p1 st.global.f32 [%rd5], %f1;\n" OUT);
	expect(A, RS_PTX_WRITES, 1, 0, 0, 512, "nor one that depends on data");
}

static void test_loops(void)
{
	/* Counting down, the pointer moving. */
	take(ENTRY "mov.u32 %r7, 40; mov.u64 %rd4, %rd1;\nLOOP: ld.global.u8 %h1, [%rd4];\n"
		   "add.s64 %rd4, %rd4, 3; add.s32 %r7, %r7, -4; setp.ne.s32 %p1, %r7, 0;\n"
		   "@%p1 bra LOOP;\n" OUT);
	expect(A, RS_PTX_READS, 1, 0, 0, 28, "ten rounds of a moving pointer");
	take(ENTRY "mov.u32 %r7, 41; mov.u64 %rd4, %rd1;\nLOOP: ld.global.u8 %h1, [%rd4];\n"
		   "add.s64 %rd4, %rd4, 3; add.s32 %r7, %r7, -4; setp.ne.s32 %p1, %r7, 0;\n"
		   "@%p1 bra LOOP;\n" OUT);
	expect(A, RS_PTX_READS, 0, 0, 0, 0, "a test that is stepped over bounds nothing");
	take(ENTRY "mov.u64 %rd4, %rd1;\nLOOP: ld.global.u32 %r9, [%rd4]; add.s64 %rd4, %rd4, 4;\n"
		   "setp.ne.s32 %p1, %r9, 0; @%p1 bra LOOP;\n" OUT);
	expect(A, RS_PTX_READS, 0, 0, 0, 0, "a loop until a value is found has no bound");
	is_u64(dir_of(A), RS_PTX_READS, "but still only reads");
	/* A loop with a way out writes not surely all. */
	take(ENTRY
	     "mov.u32 %r7, 0;\nLOOP: mul.wide.s32 %rd4, %r7, 4; add.s64 %rd5, %rd1, %rd4;\n"
	     "st.global.f32 [%rd5], %f1; ld.global.u32 %r9, [%rd2]; setp.eq.s32 %p2, %r9, 0;\n"
	     "@%p2 bra DONE; add.s32 %r7, %r7, 1; setp.lt.s32 %p1, %r7, %r1; @%p1 bra LOOP;\n" OUT);
	expect(A, RS_PTX_WRITES, 1, 0, 0, 400, "break: bounded, not dense");
	/* Nested loops over a tile. */
	take(ENTRY
	     "mov.u32 %r7, 0;\nROW: mov.u32 %r8, 0;\nCOL: mad.lo.s32 %r9, %r7, %r2, %r8;\n"
	     "mul.wide.s32 %rd4, %r9, 2; add.s64 %rd5, %rd1, %rd4; st.global.u16 [%rd5], %h1;\n"
	     "add.s32 %r8, %r8, 1; setp.lt.s32 %p1, %r8, %r2; @%p1 bra COL;\n"
	     "add.s32 %r7, %r7, 1; setp.lt.s32 %p2, %r7, 6; @%p2 bra ROW;\n" OUT);
	expect(A, RS_PTX_WRITES, 1, 1, 0, 120, "nested loops, the width a parameter");
	/* Only the last value survives a loop. */
	take(ENTRY
	     "mov.u32 %r7, 0;\nLOOP: add.s32 %r7, %r7, 1; setp.lt.s32 %p1, %r7, 9; @%p1 bra LOOP;\n"
	     "mul.wide.s32 %rd4, %r7, 4; add.s64 %rd5, %rd1, %rd4; st.global.f32 [%rd5], %f1;\n" OUT);
	expect(A, RS_PTX_WRITES, 1, 1, 36, 40, "a counter after its loop has its last value");
}

static void test_exits(void)
{
	take(ENTRY
	     "setp.lt.s32 %p1, %r2, 5; @%p1 bra ON; setp.eq.s32 %p2, %r5, 3; @%p2 ret;\nON:\n" INDEX4
	     "st.global.f32 [%rd5], %f1;\n" OUT);
	expect(A, RS_PTX_WRITES, 1, 0, 0, 512, "a thread may have left on another path");
	take(ENTRY "setp.lt.s32 %p1, %r2, 5; @%p1 bra ON; mov.u32 %r9, 1;\nON:\n" INDEX4
		   "st.global.f32 [%rd5], %f1;\n" OUT);
	expect(A, RS_PTX_WRITES, 1, 1, 0, 512, "paths that join again do not matter");
	/* Comparisons of widened values count only if the widening is what it seems. */
	take(ENTRY "add.s32 %r7, %r6, -8; cvt.u64.u32 %rd4, %r7; cvt.u64.u32 %rd5, %r1;\n"
		   "setp.ge.u64 %p1, %rd4, %rd5; @%p1 bra DONE; mul.wide.s32 %rd6, %r6, 4;\n"
		   "add.s64 %rd7, %rd1, %rd6; st.global.f32 [%rd7], %f1;\n" OUT);
	ok(eval(A, RS_PTX_WRITES).hi >= 432 && !eval(A, RS_PTX_WRITES).dense,
	   "a comparison of a wrapped widening proves nothing");
}

static void test_pointers(void)
{
	take(ENTRY "setp.lt.s32 %p1, %r5, 3; selp.b64 %rd4, %rd1, %rd2, %p1;\n"
		   "st.global.f32 [%rd4+8], %f1;\n" OUT);
	ok(dir_of(A) == RS_PTX_WRITES && dir_of(B) == RS_PTX_WRITES, "selp of two pointers: both");
	expect(B, RS_PTX_WRITES, 1, 0, 8, 12, "each with its own bounds, not dense");
	take(ENTRY
	     "setp.lt.s32 %p1, %r5, 3; mov.u64 %rd4, %rd1; @%p1 bra ON; add.s64 %rd4, %rd3, 64;\n"
	     "ON: st.global.f32 [%rd4], %f1;\n" OUT);
	ok(dir_of(A) == RS_PTX_WRITES && dir_of(C) == RS_PTX_WRITES && !dir_of(B),
	   "joined by branches");
	expect(C, RS_PTX_WRITES, 1, 0, 64, 68, "with their offsets");
	take(ENTRY "min.u64 %rd4, %rd1, %rd2; st.global.f32 [%rd4], %f1;\n" OUT);
	ok(dir_of(A) == RS_PTX_WRITES && dir_of(B) == RS_PTX_WRITES,
	   "the lower of two pointers: both");
	take(ENTRY
	     "sub.s64 %rd4, %rd1, %rd2; add.s64 %rd5, %rd4, %rd2; st.global.f32 [%rd5+4], %f1;\n" OUT);
	ok(dir_of(A) == RS_PTX_WRITES && !dir_of(B), "a difference added back");
	expect(A, RS_PTX_WRITES, 1, 1, 4, 8, "is the pointer again");
	take(ENTRY "and.b64 %rd4, %rd1, -16; st.global.f32 [%rd4], %f1;\n" OUT);
	put_u64(A, 0x7f0000000008);
	expect(A, RS_PTX_WRITES, 1, 0, -8, -4, "an aligned pointer may lie before its word");
	take(ENTRY "cvta.to.global.u64 %rd4, %rd1; st.f32 [%rd4], %f1;\n" OUT);
	ok(!kernel->opaque && dir_of(A) == RS_PTX_WRITES, "a generic store");
	/* Through local memory. */
	take(HEAD
	     ".visible .entry k(.param .u64 a)\n{\n.local .align 8 .b8 d[32];\n" REGS
	     "ld.param.u64 %rd1, [a]; mov.u64 %rd2, d; cvta.local.u64 %rd3, %rd2;\n"
	     "st.u64 [%rd3+8], %rd1; ld.local.u64 %rd4, [%rd2+8]; st.global.f32 [%rd4], %f1;\n" OUT);
	ok(!kernel->opaque && dir_of(A) == RS_PTX_WRITES,
	   "a pointer put into local memory and back");
	expect(A, RS_PTX_WRITES, 0, 0, 0, 0, "without bounds");
	/* Through a function. */
	take(HEAD
	     ".func (.param .b64 r) f(.param .b64 p, .param .b32 i)\n{\n" REGS
	     "ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [i]; mul.wide.s32 %rd2, %r1, 4;\n"
	     "add.s64 %rd3, %rd1, %rd2; st.global.f32 [%rd3], %f1; st.param.b64 [r+0], %rd3; ret;\n}\n"
	     ".visible .entry k(.param .u64 a, .param .u64 b)\n{\n" REGS
	     "ld.param.u64 %rd1, [b]; mov.u32 %r1, %tid.x;\n{ .param .b64 x; .param .b32 y; .param .b64 z;\n"
	     "st.param.b64 [x+0], %rd1; st.param.b32 [y+0], %r1;\ncall.uni (z), f, (x, y);\n"
	     "ld.param.b64 %rd5, [z+0]; }\nld.global.f32 %f1, [%rd5+4];\n" OUT);
	ok(!kernel->opaque, "a call with a body is followed");
	expect(B, RS_PTX_WRITES, 1, 1, 0, 128, "its stores through a pointer argument");
	expect(B, RS_PTX_READS, 1, 0, 4, 132, "and the pointer that it returns");
}

static void test_words(void)
{
	take(HEAD
	     ".visible .entry k(.param .align 8 .b8 s[40])\n{\n" REGS
	     "ld.param.v2.u64 {%rd1, %rd2}, [s+8]; ld.param.u32 %r1, [s+32];\n"
	     "mul.wide.s32 %rd3, %r1, 4; add.s64 %rd4, %rd2, %rd3; ld.global.f32 %f1, [%rd1];\n"
	     "st.global.f32 [%rd4], %f1;\n" OUT);
	ok(dir_of(8) == RS_PTX_READS && dir_of(16) == RS_PTX_WRITES, "words of a structure");
	put_u32(32, 5);
	expect(16, RS_PTX_WRITES, 1, 1, 20, 24, "an offset from the same structure");
	/* A table of pointers indexed by the block. */
	take(HEAD
	     ".visible .entry k(.param .align 8 .b8 s[32])\n{\n" REGS
	     "mov.b64 %rd1, s; mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd2, %r1, 8;\n"
	     "add.s64 %rd3, %rd1, %rd2; ld.param.u64 %rd4, [%rd3]; st.global.f32 [%rd4], %f1;\n" OUT);
	ok(!kernel->opaque && kernel->nwords == 4 && dir_of(24) == RS_PTX_WRITES,
	   "an indexed table of pointers: every word, and no more");
	expect(8, RS_PTX_WRITES, 0, 0, 0, 0, "without bounds");
	/* Halves. */
	take(HEAD ".visible .entry k(.param .align 8 .b8 s[16])\n{\n" REGS
		  "ld.param.u32 %r1, [s+8]; ld.param.u32 %r2, [s+12]; mov.b64 %rd1, {%r1, %r2};\n"
		  "st.global.f32 [%rd1], %f1;\n" OUT);
	ok(!kernel->opaque && dir_of(8) == RS_PTX_WRITES, "a pointer loaded in halves");
	take(HEAD ".global .align 4 .b8 g[64];\n.const .align 4 .b8 c[64];\n"
		  ".visible .entry k(.param .u64 a)\n{\n" REGS
		  "ld.const.f32 %f1, [c+4]; mov.u64 %rd1, g; st.global.f32 [%rd1+8], %f1;\n" OUT);
	ok(kernel->writes_globals && kernel->reads_globals && !kernel->opaque, "module variables");
	take(HEAD ".extern .shared .align 4 .b8 s[];\n.visible .entry k(.param .u64 a)\n{\n" REGS
		  "mov.u32 %r1, s; st.shared.f32 [%r1], %f1; ld.shared.f32 %f2, [%r1];\n"
		  "ld.param.u64 %rd1, [a]; st.global.f32 [%rd1], %f2;\n" OUT);
	ok(!kernel->opaque && !kernel->writes_globals && dir_of(A) == RS_PTX_WRITES,
	   "shared memory is private");
}

static void test_gather(void)
{
	take(ENTRY INDEX4
	     "ld.global.u32 %r7, [%rd5]; mul.wide.s32 %rd7, %r7, 4; add.s64 %rd8, %rd2, %rd7;\n"
	     "st.global.f32 [%rd8], %f1;\n" OUT);
	ok(!kernel->opaque, "an index from memory is no pointer from memory");
	expect(B, RS_PTX_WRITES, 0, 0, 0, 0, "its bounds are unknown");
	take(ENTRY INDEX4
	     "ld.global.u32 %r7, [%rd5]; setp.ge.u32 %p1, %r7, %r1; @%p1 bra DONE;\n"
	     "mul.wide.u32 %rd7, %r7, 4; add.s64 %rd8, %rd2, %rd7; st.global.f32 [%rd8], %f1;\n" OUT);
	ok(eval(B, RS_PTX_WRITES).dense == 0, "a checked index is not dense");
	take(ENTRY INDEX4
	     "ld.global.u8 %r7, [%rd5]; mul.wide.u32 %rd7, %r7, 4; add.s64 %rd8, %rd2, %rd7;\n"
	     "ld.global.f32 %f1, [%rd8];\n" OUT);
	expect(B, RS_PTX_READS, 1, 0, 0, 1024, "an index of one byte reaches 256 elements");
	take(ENTRY "and.b32 %r7, %r6, 15; min.s32 %r8, %r7, 11; mul.wide.s32 %rd7, %r8, 4;\n"
		   "add.s64 %rd8, %rd2, %rd7; ld.global.f32 %f1, [%rd8];\n" OUT);
	expect(B, RS_PTX_READS, 1, 0, 0, 48, "masks and minima bound");
}

static void test_opaque(void)
{
	expect_opaque(ENTRY "ld.global.u64 %rd4, [%rd1]; st.global.f32 [%rd4], %f1;\n" OUT,
		      "loaded from memory", "a pointer from memory");
	expect_opaque(ENTRY "mov.u64 %rd4, 4096; st.global.f32 [%rd4], %f1;\n" OUT,
		      "without a base", "an absolute address");
	expect_opaque(ENTRY "cp.async.bulk.commit_group;\n" OUT, "bulk", "bulk copies");
	expect_opaque(ENTRY "sust.b.1d.b32.trap [%rd1, {%r1}], {%r2};\n" OUT, "sust",
		      "surface stores");
	expect_opaque(ENTRY "suld.b.1d.b32.trap {%r2}, [%rd1, {%r1}];\n" OUT, "suld",
		      "surface loads");
	expect_opaque(ENTRY "tex.1d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [%rd1, {%r5}];\n" OUT,
		      "tex.1d", "textures: perhaps of linear memory that no parameter names");
	expect_opaque(ENTRY "frobnicate.b32 %r1, %r2;\n" OUT, "frobnicate",
		      "an unknown instruction");
	expect_opaque(
		HEAD
		".extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 a, .param .b64 b);\n"
		".visible .entry k(.param .u64 a)\n{\n" REGS
		"{ .param .b64 x; .param .b64 y; .param .b32 z;\nst.param.b64 [x+0], %rd1;\n"
		"st.param.b64 [y+0], %rd2; call.uni (z), cudaLaunchDeviceV2, (x, y);\n"
		"ld.param.b32 %r1, [z+0]; }\n" OUT,
		"cudaLaunchDeviceV2", "a device-side launch");
	expect_opaque(HEAD
		      ".func f(.param .b64 p)\n{\n" REGS
		      "{ .param .b64 x; st.param.b64 [x+0], %rd1; call.uni f, (x); }\nret;\n}\n"
		      ".visible .entry k(.param .u64 a)\n{\n" REGS
		      "{ .param .b64 x; st.param.b64 [x+0], %rd1; call.uni f, (x); }\n" OUT,
		      "a call of f", "recursion");
	take(ENTRY "st.global.f32 [%rd4], %f1;\n" OUT);
	ok(kernel->opaque, "an address that was never computed");
	ok(kernel->why_line > 0, "with the line");
	take(HEAD
	     ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
	     ".visible .entry k(.param .u64 a)\n{\n" REGS
	     "{ .param .b64 x; .param .b64 y; .param .b32 z;\nst.param.b64 [x+0], %rd1;\n"
	     "st.param.b64 [y+0], %rd2; call.uni (z), vprintf, (x, y); ld.param.b32 %r1, [z+0]; }\n" OUT);
	ok(!kernel->opaque && kernel->reads_globals, "printf only reads");
}

static void test_borders(void)
{
	struct rs_ptx_extent e;

	take(ENTRY INDEX4 "st.global.f32 [%rd5], %f1;\n" OUT);
	launch.grid[1] = 0;
	expect(A, RS_PTX_WRITES, 1, 0, 0, 0, "an empty grid does nothing");
	launch.grid[1] = 1;
	rs_ptx_access_eval(kernel, 99, RS_PTX_WRITES, &launch, &e);
	ok(!e.known, "a word that does not exist is unknown");
	launch.nparams_bytes = 4;
	ok(!eval(A, RS_PTX_WRITES).known || eval(A, RS_PTX_WRITES).lo == 0,
	   "a short block is survived");
	take(HEAD);
	ok(module && module->nkernels == 0, "a module without kernels");
	is_u64((uint64_t)(rs_ptx_module_find(module, "k") != NULL), 0, "has no kernel k");
}

int main(void)
{
	test_directions();
	test_nvcc();
	test_tinygrad();
	test_loops();
	test_exits();
	test_pointers();
	test_words();
	test_gather();
	test_opaque();
	test_borders();
	drop();
	return tap_done();
}
