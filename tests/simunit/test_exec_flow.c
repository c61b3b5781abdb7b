/* SPDX-License-Identifier: MIT */
/*
 * Control flow of the engine: divergence, calls, barriers, warp operations, packing, what ends a
 * kernel early, and what a module is refused for.
 */
#include "tests/simunit/exec_kit.h"

#define HEAD  ".version 8.5\n.target sm_90\n.address_size 64\n"
#define MAX_N 2048

static uint64_t in[MAX_N], out[MAX_N];
static char err[300];

#define DECL                                                                                       \
	".reg .b64 %a, %b, %o, %x<8>; .reg .b32 %i, %t, %r<12>; .reg .pred %p<4>;\n"               \
	"ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; mov.u32 %t, %tid.x; mov.u32 %r0, %ctaid.x; "  \
	"mov.u32 %r1, %ntid.x;\nmad.lo.u32 %i, %r0, %r1, %t; mad.wide.u32 %o, %i, 8, %b;\n"
#define KERNEL(module, ...)                                                                        \
	HEAD module "\n.visible .entry k(.param .u64 a, .param .u64 b)\n{\n" DECL __VA_ARGS__      \
		    "\n}\n"
/* most programs end with a 32-bit result in %r2 */
#define STORE "\ncvt.u64.u32 %x0, %r2; st.global.u64 [%o], %x0; ret;\n"

static enum sim_fault_kind run(const char *ptx, uint32_t grid, uint32_t block, struct sim_fault *f)
{
	struct sim_range r[2] = {{(uintptr_t)in, sizeof in, NULL, 0},
				 {(uintptr_t)out, sizeof out, NULL, 0}};
	void *params[2] = {in, out};

	memset(out, 0, sizeof out);
	err[0] = 0;
	return kit_run(ptx, "k", grid, block, params, r, 2, err, sizeof err, f, NULL);
}

static void expect(const char *ptx, uint32_t grid, uint32_t block, const uint32_t *want,
		   const char *what)
{
	int good = run(ptx, grid, block, NULL) == SIM_OK;

	for (unsigned i = 0; good && i < grid * block; i++) {
		if (out[i] == want[i])
			continue;
		snprintf(err, sizeof err, "thread %u: got 0x%llx, want 0x%x", i,
			 (unsigned long long)out[i], want[i]);
		good = 0;
	}
	if (good && out[grid * block]) {
		snprintf(err, sizeof err, "a thread outside the grid has run");
		good = 0;
	}
	if (!ok(good, "%s", what))
		tap_diag("%s", err);
}

/* ---- divergence ---- */

static uint32_t collatz(uint32_t n)
{
	uint32_t steps = 0;

	for (; n > 1; steps++)
		n = n & 1 ? 3 * n + 1 : n / 2;
	return steps;
}

static void test_divergence(void)
{
	uint32_t w[MAX_N];

	for (unsigned i = 0; i < 200; i++)
		w[i] = collatz(i);
	expect(KERNEL("",
		      "mov.u32 %r2, 0; mov.u32 %r3, %i;\nL: setp.le.u32 %p0, %r3, 1; @%p0 bra E;\n"
		      "and.b32 %r4, %r3, 1; setp.eq.u32 %p1, %r4, 1; @%p1 bra ODD; shr.u32 %r3, %r3, 1; bra.uni N;\n"
		      "ODD: mad.lo.u32 %r3, %r3, 3, 1;\nN: add.u32 %r2, %r2, 1; bra L;\nE:" STORE),
	       2, 100, w, "a loop that every thread leaves at its own time");
	for (unsigned i = 0; i < 70; i++) {
		w[i] = 0;
		for (unsigned x = 0; x < i % 7; x++)
			for (unsigned y = x; y < i % 5; y++)
				w[i] += x * y + 1;
	}
	expect(KERNEL("",
		      "mov.u32 %r2, 0; rem.u32 %r3, %i, 7; rem.u32 %r4, %i, 5; mov.u32 %r5, 0;\n"
		      "X: setp.ge.u32 %p0, %r5, %r3; @%p0 bra E; mov.u32 %r6, %r5;\n"
		      "Y: setp.ge.u32 %p1, %r6, %r4; @%p1 bra D; mad.lo.u32 %r7, %r5, %r6, 1; add.u32 %r2, %r2, %r7;\n"
		      "add.u32 %r6, %r6, 1; bra Y;\nD: add.u32 %r5, %r5, 1; bra X;\nE:" STORE),
	       1, 70, w, "nested loops with different bounds");
	for (unsigned i = 0; i < 64; i++)
		w[i] = (uint32_t[]){100, 201, 302, 403, 7}[i % 5];
	expect(KERNEL("",
		      "rem.u32 %r3, %i, 5; setp.eq.u32 %p0, %r3, 4; @%p0 bra DEF;\nT: .branchtargets A, B, C, D;\n"
		      "brx.idx %r3, T;\nA: mov.u32 %r2, 100; bra E;\nB: mov.u32 %r2, 201; bra E;\nC: mov.u32 %r2, 302; "
		      "bra E;\nD: mov.u32 %r2, 403; bra E;\nDEF: mov.u32 %r2, 7;\nE:" STORE),
	       1, 64, w, "a branch through a table");
	for (unsigned i = 0; i < 64; i++)
		w[i] = i & 1 ? 0 : i & 2 ? 5 : 9;
	expect(KERNEL("",
		      "and.b32 %r3, %i, 1; setp.eq.u32 %p0, %r3, 1; @%p0 ret; and.b32 %r3, %i, 2; setp.ne.u32 %p1, %r3, 0;\n"
		      "mov.u32 %r2, 9; @%p1 mov.u32 %r2, 5; cvt.u64.u32 %x0, %r2; @!%p1 st.global.u64 [%o], %x0; @!%p1 exit;\n"
		      "st.global.u64 [%o], %x0; ret;"),
	       1, 64, w, "guarded ret, exit, mov and st");
	for (unsigned i = 0; i < 64; i++)
		w[i] = i + 100 + 100 + (7 + 9 + 11) * (0 + 1 + 2);
	expect(KERNEL("",
		      "mov.u32 %r5, %i; mov.u32 %r2, 0; mov.u32 %r3, 0;\n"
		      "L: setp.eq.u32 %p0, %r3, 1; @%p0 mov.u32 %r5, 100; add.u32 %r2, %r2, %r5;\n"
		      "mul.lo.u32 %r6, %r3, 7; mul.lo.u32 %r7, %r3, 9; mul.lo.u32 %r8, %r3, 11; add.u32 %r2, %r2, %r6;\n"
		      "add.u32 %r2, %r2, %r7; add.u32 %r2, %r2, %r8; add.u32 %r3, %r3, 1;\n"
		      "setp.lt.u32 %p1, %r3, 3; @%p1 bra L;" STORE),
	       1, 64, w, "a guarded write keeps the old value for the next turn");
}

/* ---- calls ---- */

#define SQUARE                                                                                               \
	".func (.param .b32 r) square(.param .b32 x)\n{ .reg .b32 %v<3>; ld.param.b32 %v0, [x]; mul.lo.u32 " \
	"%v1, %v0, %v0; st.param.b32 [r], %v1; ret; }\n"
#define CALL(ret, f, arg)                                                                          \
	"{ .param .b32 p0; .param .b32 q0; st.param.b32 [p0], " arg "; call.uni (q0), " f          \
	", (p0); "                                                                                 \
	"ld.param.b32 " ret ", [q0]; }\n"

static void test_calls(void)
{
	uint32_t w[MAX_N];

	for (unsigned i = 0; i < 64; i++)
		w[i] = i * i * i * i + (i * i + 1);
	expect(KERNEL(SQUARE
		      ".func (.param .b32 r) fourth(.param .b32 x)\n{ .reg .b32 %v<3>; ld.param.b32 %v0, [x];\n" CALL(
			      "%v1", "square", "%v0")
			      CALL("%v2", "square", "%v1") "st.param.b32 [r], %v2; ret; }\n",
		      CALL("%r2", "fourth", "%i")
			      CALL("%r3", "square",
				   "%i") "add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, 1;" STORE),
	       1, 64, w, "functions that call functions, twice");
	for (unsigned i = 0; i < 64; i++)
		w[i] = i % 3 == 0 ? i * i : i % 3 == 1 ? 1000 + i : 7;
	expect(KERNEL(".func (.param .b32 r) pick(.param .b32 x)\n{ .reg .b32 %v<4>; .reg .pred %q<2>; ld.param.b32 %v0, [x];\n"
		      "rem.u32 %v1, %v0, 3; setp.eq.u32 %q0, %v1, 0; @%q0 bra SQ; add.u32 %v2, %v0, 1000; st.param.b32 [r], %v2;\n"
		      "ret;\nSQ: mul.lo.u32 %v3, %v0, %v0; st.param.b32 [r], %v3; ret; }\n",
		      "rem.u32 %r3, %i, 3; setp.ne.u32 %p0, %r3, 2; mov.u32 %r2, 7;\n{ .param .b32 p0; .param .b32 q0; st.param.b32 "
		      "[p0], %i; @%p0 call (q0), pick, (p0); @%p0 ld.param.b32 %r2, [q0]; }" STORE),
	       1, 64, w, "a guarded call with several returns");
	for (unsigned i = 0; i < 64; i++)
		w[i] = 3 * i + 10;
	expect(KERNEL(".func (.reg .u32 %out) old(.reg .u32 %x, .reg .u32 %y)\n{ mad.lo.u32 %out, %x, 3, %y; ret; }\n",
		      "mov.u32 %r4, 10; call (%r2), old, (%i, %r4);" STORE),
	       1, 64, w, "parameters in registers");
	for (unsigned i = 0; i < 64; i++)
		w[i] = 6 + i;
	expect(KERNEL(".func (.param .b32 r) total(.param .align 4 .b8 s[16])\n{ .reg .b32 %v<5>; .reg .b64 %q; mov.b64 %q, s;\n"
		      "ld.param.b32 %v0, [%q]; ld.param.b32 %v1, [%q+4]; ld.param.v2.b32 {%v2, %v3}, [s+8]; add.u32 %v0, %v0, %v1;\n"
		      "add.u32 %v0, %v0, %v2; add.u32 %v0, %v0, %v3; st.param.b32 [r], %v0; ret; }\n",
		      "{ .param .align 4 .b8 p[16]; .param .b32 q; mov.u32 %r3, 1; mov.u32 %r4, 2; mov.u32 %r5, 3;\n"
		      "st.param.b32 [p], %r3; st.param.v2.b32 [p+8], {%r4, %r5}; st.param.b32 [p+4], %i; call (q), total, (p); "
		      "ld.param.b32 %r2, [q]; }" STORE),
	       1, 64, w, "a struct by value, addressed in the callee");
	for (unsigned i = 0; i < 64; i++)
		w[i] = 0;
	expect(KERNEL(".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n.global .b8 fmt[3] = {37, 100, 0};\n",
		      "{ .param .b64 f; .param .b64 v; .param .b32 q; mov.u64 %x1, fmt; st.param.b64 [f], %x1; st.param.b64 [v], 0;\n"
		      "call.uni (q), vprintf, (f, v); ld.param.b32 %r2, [q]; }" STORE),
	       1, 64, w, "printf is accepted and returns 0");
}

/* ---- barriers ---- */

static void test_barriers(void)
{
	struct sim_fault f;
	uint32_t w[MAX_N];

	for (unsigned i = 0; i < 256; i++)
		w[i] = 128 * 127 / 2 + (i / 128 ? 128 * 128 : 0);
	expect(KERNEL("",
		      ".shared .b32 s[128]; mov.u32 %r3, s; mad.lo.u32 %r4, %t, 4, %r3; st.shared.u32 [%r4], %i; bar.sync 0;\n"
		      "mov.u32 %r5, 64;\nL: setp.ge.u32 %p0, %t, %r5; @%p0 bra S; mad.lo.u32 %r6, %r5, 4, %r4;\n"
		      "ld.shared.u32 %r7, [%r6]; ld.shared.u32 %r8, [%r4]; add.u32 %r8, %r8, %r7; st.shared.u32 [%r4], %r8;\n"
		      "S: bar.sync 0; shr.u32 %r5, %r5, 1; setp.ne.u32 %p0, %r5, 0; @%p0 bra L; ld.shared.u32 %r2, [%r3];" STORE),
	       2, 128, w, "a tree reduction over four warps");
	for (unsigned i = 0; i < 128; i++)
		w[i] = i < 50 ? 0 : 127;
	expect(KERNEL("",
		      ".shared .b32 s; setp.lt.u32 %p0, %t, 50; @%p0 ret; setp.eq.u32 %p0, %t, 127; @%p0 st.shared.u32 [s], %t;\n"
		      "bar.sync 3; ld.shared.u32 %r2, [s];" STORE),
	       1, 128, w, "threads that have left are not waited for");
	for (unsigned i = 0; i < 100; i++)
		w[i] = 33 + (1 << 16) + (0 << 17);
	expect(KERNEL("",
		      "rem.u32 %r3, %t, 3; setp.eq.u32 %p0, %r3, 1; bar.red.popc.u32 %r2, 0, %p0; bar.red.or.pred %p1, 0, %p0;\n"
		      "bar.red.and.pred %p2, 0, !%p0; selp.u32 %r4, 65536, 0, %p1; selp.u32 %r5, 131072, 0, %p2;\n"
		      "add.u32 %r2, %r2, %r4; add.u32 %r2, %r2, %r5;" STORE),
	       1, 100, w, "bar.red: popc, or, and");
	for (unsigned i = 0; i < 64; i++)
		w[i] = i < 32 ? 1 : 42 + i;
	expect(KERNEL("",
		      ".shared .b32 s[64]; mov.u32 %r3, s; mad.lo.u32 %r3, %t, 4, %r3; setp.ge.u32 %p0, %t, 32; @%p0 bra CONS;\n"
		      "add.u32 %r4, %t, 74; st.shared.u32 [%r3+128], %r4; bar.arrive 1, 64; mov.u32 %r2, 1; bra E;\n"
		      "CONS: bar.sync 1, 64; ld.shared.u32 %r2, [%r3];\nE:" STORE),
	       1, 64, w, "producer arrives, consumer waits");
	is_u64(run(KERNEL("",
			  "setp.lt.u32 %p0, %t, 32; @%p0 bra A; bar.sync 1;\nret;\nA: bar.sync 2; ret;"),
		   1, 64, &f),
	       SIM_FAULT_DEADLOCK, "two barriers, each waits for the other's threads");
	if (!ok(f.line == 12 && strstr(f.text, "bar.sync"), "the deadlock names its line"))
		tap_diag("%s", f.text);
	for (unsigned i = 0; i < 64; i++)
		w[i] = 5;
	expect(KERNEL("",
		      ".shared .b32 s; setp.ne.u32 %p0, %t, 63; @%p0 bra A; st.shared.u32 [s], 5;\nA: bar.sync 0; ld.shared.u32 "
		      "%r2, [s];" STORE),
	       1, 64, w, "a barrier after divergence");
	/* thread 40 in warp 1 sets the flag that warp 0 spins on; lanes of one warp hand a lock round */
	expect(KERNEL("",
		      ".shared .b32 s; setp.ge.u32 %p0, %t, 32; @%p0 bra SET;\nW: ld.volatile.shared.u32 %r2, [s]; setp.eq.u32 %p1, %r2, 0;\n"
		      "@%p1 bra W; bra E;\nSET: st.volatile.shared.u32 [s], 5; mov.u32 %r2, 5;\nE:" STORE),
	       1, 64, w, "a warp spins on what another one writes");
	for (unsigned i = 0; i < 32; i++)
		w[i] = 32;
	expect(KERNEL("",
		      ".shared .b32 lock, n; \nTRY: atom.shared.cas.b32 %r3, [lock], 0, 1; setp.ne.u32 %p0, %r3, 0; @%p0 bra TRY;\n"
		      "ld.shared.u32 %r4, [n]; add.u32 %r4, %r4, 1; st.shared.u32 [n], %r4; atom.shared.exch.b32 %r3, [lock], 0;\n"
		      "bar.sync 0; ld.shared.u32 %r2, [n];" STORE),
	       1, 32, w, "a spin lock among the lanes of a warp");
}

/* ---- warp operations ---- */

static uint32_t ref_shfl(const char *mode, unsigned lane, unsigned b, unsigned c, int *ok_)
{
	unsigned seg = c >> 8 & 31, clamp = c & 31, lo = lane & seg, hi = lo | (clamp & ~seg);
	int j = !strcmp(mode, "up")	? (int)lane - (int)(b & 31)
		: !strcmp(mode, "down") ? (int)lane + (int)(b & 31)
		: !strcmp(mode, "bfly") ? (int)(lane ^ (b & 31))
					: (int)(lo | (b & 31 & ~seg));

	*ok_ = strcmp(mode, "up") ? j <= (int)hi : j >= (int)hi;
	return *ok_ ? (uint32_t)j : lane;
}

static void test_shfl(void)
{
	static const char *const modes[] = {"up", "down", "bfly", "idx"};
	static const unsigned bs[] = {0, 1, 2, 7, 16, 31, 33},
			      cs[] = {31, 0, 0x1f1f, 0x1800, 0x181f, 0x1c1f, 0x100f};
	static const char start[] = HEAD ".visible .entry k(.param .u64 a, .param .u64 b)\n{\n" DECL
					 "mul.lo.u32 %r3, %i, 3; ";
	static const char end[] = "selp.u32 %r2, 1000, 0, %p0; add.u32 %r2, %r2, %r3;" STORE "}\n";
	uint32_t w[32];
	char ptx[2048], name[80];
	int inside;

	for (unsigned m = 0; m < 4; m++)
		for (unsigned b = 0; b < 7; b++)
			for (unsigned c = 0; c < 7; c++) {
				snprintf(ptx, sizeof ptx,
					 "%sshfl.sync.%s.b32 %%r3|%%p0, %%r3, %u, %u, -1;%s", start,
					 modes[m], bs[b], cs[c], end);
				for (unsigned i = 0; i < 32; i++) {
					w[i] = 3 * ref_shfl(modes[m], i, bs[b], cs[c], &inside);
					w[i] += inside ? 1000 : 0;
				}
				snprintf(name, sizeof name, "shfl.sync.%s b=%u c=0x%x", modes[m],
					 bs[b], cs[c]);
				expect(ptx, 1, 32, w, name);
			}
}

static void test_warp(void)
{
	uint32_t w[MAX_N];

	test_shfl();
	for (unsigned i = 0; i < 32; i++)
		w[i] = i < 16 ? (i ^ 1) + 100 : (i ^ 2) + 200;
	expect(KERNEL("",
		      "setp.lt.u32 %p0, %t, 16; @%p0 bra A; shfl.sync.bfly.b32 %r2, %t, 2, 31, 0xffff0000; add.u32 %r2, %r2, 200; bra E;\n"
		      "A: shfl.sync.bfly.b32 %r2, %t, 1, 31, 0xffff; add.u32 %r2, %r2, 100;\nE:" STORE),
	       1, 32, w, "shuffles of half warps in different branches");
	for (unsigned i = 0; i < 64; i++)
		w[i] = 0x49249249;
	expect(KERNEL("",
		      "rem.u32 %r3, %t, 32; rem.u32 %r3, %r3, 3; setp.eq.u32 %p0, %r3, 0; vote.sync.ballot.b32 %r2, %p0, -1;" STORE),
	       1, 64, w, "ballot");
	for (unsigned i = 0; i < 32; i++)
		w[i] = 0 + 2 + 0 + (i < 8 ? 8 : 0);
	expect(KERNEL("",
		      "setp.gt.u32 %p0, %t, 20; vote.sync.all.pred %p1, %p0, -1; selp.u32 %r2, 1, 0, %p1; vote.sync.any.pred %p1, %p0, -1;\n"
		      "selp.u32 %r3, 2, 0, %p1; add.u32 %r2, %r2, %r3; vote.sync.uni.pred %p1, %p0, -1; selp.u32 %r3, 4, 0, %p1;\n"
		      "add.u32 %r2, %r2, %r3; setp.ge.u32 %p2, %t, 8; @%p2 bra E; vote.sync.all.pred %p1, !%p0, 0xff; selp.u32 %r3, 8, 0, %p1;\n"
		      "add.u32 %r2, %r2, %r3;\nE:" STORE),
	       1, 32, w, "all, any, uni; a negated source; part of a warp");
	for (unsigned i = 0; i < 32; i++)
		w[i] = i & 1 ? 0xaaaaaaaa : 0x55555555;
	expect(KERNEL("",
		      "and.b32 %r3, %t, 1; setp.eq.u32 %p0, %r3, 1; @%p0 bra A; activemask.b32 %r2; bra E;\nA: activemask.b32 %r2;\nE:" STORE),
	       1, 32, w, "activemask in two branches");
	for (unsigned i = 0; i < 32; i++)
		w[i] = (i % 4 == 3 ? 0x88888888 : 0x11111111u << i % 4);
	expect(KERNEL("", "rem.u32 %r3, %t, 4; match.any.sync.b32 %r2, %r3, -1;" STORE), 1, 32, w,
	       "match.any");
	for (unsigned i = 0; i < 32; i++)
		w[i] = 0xffffffffu ^ 1;
	expect(KERNEL("",
		      "mov.u64 %x1, 7; cvt.u64.u32 %x2, %t; match.all.sync.b64 %r3|%p0, %x1, -1; selp.u32 %r4, 1, 0, %p0;\n"
		      "match.all.sync.b64 %r5|%p0, %x2, -1; selp.u32 %r6, 4, 0, %p0; xor.b32 %r2, %r3, %r4; xor.b32 %r2, %r2, %r5; xor.b32 %r2, %r2, %r6;" STORE),
	       1, 32, w, "match.all");
	for (unsigned i = 0; i < 32; i++)
		w[i] = 32 * 31 / 2 * 3 - 32 * 10 + (uint32_t)-10 + 83 + 0x1f;
	expect(KERNEL("",
		      "mul.lo.u32 %r3, %t, 3; sub.u32 %r3, %r3, 10; redux.sync.add.s32 %r2, %r3, -1; redux.sync.min.s32 %r4, %r3, -1;\n"
		      "redux.sync.max.s32 %r5, %r3, -1; redux.sync.or.b32 %r6, %t, -1; add.u32 %r2, %r2, %r4; add.u32 %r2, %r2, %r5; add.u32 %r2, %r2, %r6;" STORE),
	       1, 32, w, "redux");
	for (unsigned i = 0; i < 32; i++)
		w[i] = i & 1 ? 0xfffffffeu : 77;
	/* odd lanes meet even ones at another bar.warp.sync */
	expect(KERNEL("",
		      ".shared .b32 s; and.b32 %r3, %t, 1; setp.eq.u32 %p0, %r3, 1; @%p0 bra A; bar.warp.sync -1; ld.shared.u32 %r2, [s]; bra E;\n"
		      "A: st.shared.u32 [s], 77; bar.warp.sync -1; mov.u32 %r2, -2;\nE:" STORE),
	       1, 32, w, "bar.warp.sync in two branches");
	for (unsigned i = 0; i < 64; i++)
		w[i] = (i & 31) + 32 * (1u << (i & 31)) + ((1u << (i & 31)) - 1) + i / 32 + 2;
	expect(KERNEL("",
		      "mov.u32 %r2, %laneid; mov.u32 %r3, %lanemask_eq; mad.lo.u32 %r2, %r3, 32, %r2; mov.u32 %r3, %lanemask_lt; add.u32 %r2, %r2, %r3;\n"
		      "mov.u32 %r3, %warpid; add.u32 %r2, %r2, %r3; mov.u32 %r3, %nwarpid; add.u32 %r2, %r2, %r3;" STORE),
	       1, 64, w, "special registers of a warp");
}

/* ---- many small CTAs in one vector ---- */

static void test_packing(void)
{
	uint32_t w[MAX_N];

	/* 1, 7, 13, ...: packed or not, the last vector partly filled */
	for (unsigned block = 1; block <= 33; block += 6) {
		unsigned grid = 23;

		in[0] = 0;
		for (unsigned i = 0; i < grid * block; i++)
			w[i] = i / block * 1000 + i % block + collatz(i) * 100000;
		expect(KERNEL("",
			      "mov.u32 %r5, 0; mov.u32 %r3, %i;\nL: setp.le.u32 %p0, %r3, 1; @%p0 bra E; and.b32 %r4, %r3, 1;\n"
			      "setp.eq.u32 %p1, %r4, 1; shr.u32 %r6, %r3, 1; mad.lo.u32 %r7, %r3, 3, 1; selp.u32 %r3, %r7, %r6, %p1;\n"
			      "add.u32 %r5, %r5, 1; bra L;\nE: mad.lo.u32 %r2, %r0, 1000, %t; mad.lo.u32 %r2, %r5, 100000, %r2; "
			      "atom.global.add.u32 %r8, [%a], 1;" STORE),
		       grid, block, w, "CTAs of few threads");
		is_u64(in[0], grid * block, "each thread ran once");
	}
}

static void test_grid(void)
{
	static const char ptx[] = HEAD
		".visible .entry k(.param .u64 a, .param .u64 b)\n{ .reg .b32 %r<24>; .reg .b64 %o;\n"
		"mov.u32 %r0, %tid.x; mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.z; mov.u32 %r3, %ntid.x; mov.u32 %r4, %ntid.y; mov.u32 %r5, %ntid.z;\n"
		"mov.u32 %r6, %ctaid.x; mov.u32 %r7, %ctaid.y; mov.u32 %r8, %ctaid.z; mov.u32 %r9, %nctaid.x; mov.u32 %r10, %nctaid.y; mov.u32 %r11, %nctaid.z;\n"
		"mad.lo.u32 %r12, %r2, %r4, %r1; mad.lo.u32 %r12, %r12, %r3, %r0; mad.lo.u32 %r13, %r8, %r10, %r7; mad.lo.u32 %r13, %r13, %r9, %r6;\n"
		"mul.lo.u32 %r14, %r3, %r4; mul.lo.u32 %r14, %r14, %r5; mad.lo.u32 %r15, %r13, %r14, %r12; mul.lo.u32 %r16, %r11, 100; add.u32 %r16, %r16, %r15;\n"
		"ld.param.u64 %o, [b]; mad.wide.u32 %o, %r15, 8, %o; cvt.u64.u32 %o, %r16; ret; }\n";
	static const char store[] = "cvt.u64.u32 %o, %r16; ret;";
	char text[sizeof ptx + 80];
	struct sim_range r = {(uintptr_t)out, sizeof out, NULL, 0};
	void *params[2] = {in, out};
	const uint32_t blocks[2][3] = {{3, 2, 2}, {4, 5, 3}};

	memcpy(text, ptx, sizeof ptx);
	strcpy(strstr(text, store), "st.global.u32 [%o], %r16; ret; }\n");
	for (int b = 0; b < 2; b++) {
		struct sim_module *m =
			sim_module_load(text, strlen(text), kit_alloc, NULL, err, sizeof err);
		struct sim_launch l = {.grid = {4, 3, 2},
				       .block = {blocks[b][0], blocks[b][1], blocks[b][2]},
				       .params = params,
				       .ranges = &r,
				       .nranges = 1};
		unsigned n = 24 * blocks[b][0] * blocks[b][1] * blocks[b][2], bad = 0;

		if (!ok(m != NULL, "loads"))
			return;
		l.kernel = sim_module_kernel(m, "k");
		memset(out, 0xff, sizeof out);
		is_u64(sim_exec(&l, NULL, NULL), SIM_OK, "a grid of three dimensions");
		for (unsigned i = 0; i < n; i++)
			bad += (uint32_t)out[i] != 200 + i;
		is_u64(bad, 0, "every thread has its own indices");
		sim_module_free(m);
	}
}

/* ---- ends ---- */

static void test_ends(void)
{
	struct sim_fault f;
	const char *spin = KERNEL("", "L: bra L; ret;");
	struct sim_module *m;
	struct sim_launch l = {
		.grid = {1, 1, 1}, .block = {32, 1, 1}, .params = in, .max_insns = 100000};
	struct sim_counts c;

	is_u64(run(KERNEL("", "\nsetp.eq.u32 %p0, %i, 37; @%p0 trap;\nret;"), 2, 32, &f),
	       SIM_FAULT_TRAP, "trap");
	ok(f.line == 11 && f.ctaid[0] == 1 && f.tid[0] == 5 && strstr(f.text, "trap"),
	   "its line, block and thread");
	is_u64(run(KERNEL("", "brkpt; ret;"), 1, 1, &f), SIM_FAULT_TRAP, "brkpt");
	is_u64(run(KERNEL("",
			  "T: .branchtargets T1, T1; mov.u32 %r3, 2; brx.idx %r3, T;\nT1: ret;"),
		   1, 1, &f),
	       SIM_FAULT_TRAP, "an index outside its table");
	m = sim_module_load(spin, strlen(spin), kit_alloc, NULL, err, sizeof err);
	l.kernel = m ? sim_module_kernel(m, "k") : NULL;
	if (ok(m != NULL, "loads")) {
		is_u64(sim_exec(&l, &f, &c), SIM_FAULT_TIMEOUT, "a loop without end");
		ok(f.line == 10 && c.thread_insns > 100000 && c.thread_insns < 300000,
		   "is stopped near its limit");
	}
	sim_module_free(m);
}

static void refused(const char *ptx, const char *a, const char *b)
{
	struct sim_module *m;
	char why[300] = "";

	m = sim_module_load(ptx, strlen(ptx), kit_alloc, NULL, why, sizeof why);
	if (!ok(!m && strstr(why, a) && strstr(why, b), "refused: %s", b))
		tap_diag("%s", m ? "loaded" : why);
	sim_module_free(m);
	kit_release();
}

static void test_refusals(void)
{
	static const char *const unknown[] = {
		"lop9.b32 %r2, %r3, %r4",
		"add.u33 %r2, %r3, %r4",
		"add.rn.u32 %r2, %r3, %r4",
		"add.sat.u32 %r2, %r3, %r4",
		"mul.u32 %r2, %r3, %r4",
		"shl.u32 %r2, %r3, %r4",
		"mul.hi.f32 %r2, %r3, %r4",
		"ld.global.f16x9 %r2, [%a]",
		"ld.global.foo.u32 %r2, [%a]",
		"st.shared.v3.u32 [%r2], %r3",
		"atom.global.add.u16 %r2, [%a], 1",
		"atom.global.mul.u32 %r2, [%a], 1",
		"red.global.exch.b32 [%a], 1",
		"shfl.sync.left.b32 %r2, %r3, 1, 31, -1",
		"cvt.rni.u32.u32 %r2, %r3",
		"cvt.f32.s32 %r2, %r3",
		"cvt.u32.f32 %r2, %r3",
		"cvt.rn.f32.f32 %r2, %r3",
		"setp.foo.u32 %p0, %r2, %r3",
		"setp.lt.b32 %p0, %r2, %r3",
		"setp.ltu.s32 %p0, %r2, %r3",
		"bar.wait 0",
		"tex.2d.v4.f32.s32 {%r2, %r3, %r4, %r5}, [%a]",
		"cp.async.ca.shared.global [%r2], [%a], 16",
		"mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%r2}, {%r2}, {%r2}, {%r2}",
		"membar.foo",
		"sin.f32 %r2, %r3",
		"vote.sync.some.pred %p0, %p1, -1",
		"mov.b128 %x1, %x2"};
	static const char *const wrong[][2] = {
		{"add.u32 %r2, %r3", "wrong operands"},
		{"add.u32 %r2, %r3, %x1", "too wide"},
		{"add.u64 %x2, %x3, %r1", "too narrow"},
		{"add.u32 %r2, %p0, %r1", "is a predicate"},
		{"setp.eq.u32 %r2, %r3, %r4", "not a predicate"},
		{"add.u32 %r2, %r3, 0f3F800000", "wrong"},
		{"add.f32 %r2, %r3, 1", "constant"},
		{"ld.global.u32 %r2, [%r3]", "cannot hold"},
		{"ld.global.v2.u32 %r2, [%a]", "wrong operands"},
		{"mov.u32 %r2, %tidy.x", "unknown special register"},
		{"mov.u64 %x1, %tid.x", "32 bits"},
		{"ld.shared.u32 %r2, [a]", "state space"},
		{"st.param.u64 [a], %x1", "read-only"},
		{"ld.param.u64 %x1, [a+64]", "outside"},
		{"call (%r2), f, (%r3)", "arguments do not match"},
		{"{ .param .b32 p; .param .b32 q; call (q), rec, (p); } ret", "recursive"},
		{"mov.u64 %x1, f", "f"},
		{"lop3.b32 %r2, %r3, %r4, %r5, %r6", "wrong operands"}};
	char ptx[3000], want[60];

	for (unsigned i = 0; i < sizeof unknown / sizeof *unknown; i++) {
		snprintf(ptx, sizeof ptx, "%s\n%s;\nret; }\n",
			 HEAD ".visible .entry k(.param .u64 a, .param .u64 b)\n{\n" DECL,
			 unknown[i]);
		snprintf(want, sizeof want, "%.*s", (int)strcspn(unknown[i], " "), unknown[i]);
		refused(ptx, "line 10: ", want);
	}
	for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		snprintf(
			ptx, sizeof ptx, "%s\n%s;\nret; }\n",
			HEAD
			".func f(.param .b32 x, .param .b32 y) { ret; } .func (.param .b32 r) rec(.param .b32 x) { .param .b32 p; .param .b32 q; call "
			"(q), rec, (p); ret; } .visible .entry k(.param .u64 a, .param .u64 b)\n{\n" DECL,
			wrong[i][0]);
		/* the recursion is found in the function itself, on line 4 */
		refused(ptx, "line ", i == 15 ? "recursive" : "line");
	}
	refused(HEAD
		".func f() { .reg .b32 %r;\nfoo.b32 %r, %r; ret; }\n.visible .entry k() { ret; }\n",
		"line 5", "foo.b32");
	refused("this is no PTX", "line 1", "line");
}

/* ---- mma ---- */

/* Small integers: every order of summation gives the same. */
static void test_mma(void)
{
	static const struct {
		const char *name, *type, *regs_a, *regs_b;
		unsigned k, na, nb;
	} shapes[] = {{"m16n8k16.row.col.f32.f16.f16.f32", "f16", "{%r4, %r5, %r6, %r7}",
		       "{%r8, %r9}", 16, 4, 2},
		      {"m16n8k8.row.col.f32.f16.f16.f32", "f16", "{%r4, %r5}", "{%r8}", 8, 2, 1},
		      {"m16n8k8.row.col.f32.tf32.tf32.f32", "tf32", "{%r4, %r5, %r6, %r7}",
		       "{%r8, %r9}", 8, 4, 2},
		      {"m16n8k16.row.col.f32.bf16.bf16.f32", "bf16", "{%r4, %r5, %r6, %r7}",
		       "{%r8, %r9}", 16, 4, 2}};
	char ptx[3000];

	for (unsigned s = 0; s < sizeof shapes / sizeof *shapes; s++) {
		unsigned half = strcmp(shapes[s].type, "tf32") != 0, per = half ? 2 : 1, bad = 0;
		int a[16][16], b[16][8];
		uint32_t *words = (uint32_t *)in;

		for (unsigned i = 0; i < 16 * 16; i++)
			a[i / 16][i % 16] = (int)(kit_random() >> 40) % 17 - 8;
		for (unsigned i = 0; i < 16 * 8; i++)
			b[i / 8][i % 8] = (int)(kit_random() >> 40) % 17 - 8;
		memset(in, 0, sizeof in);
		/* register r of lane l at word 8 l + r: a from 0, b from 4 */
		for (unsigned lane = 0; lane < 32; lane++)
			for (unsigned r = 0; r < shapes[s].na + shapes[s].nb; r++)
				for (unsigned e = 0; e < per; e++) {
					unsigned is_b = r >= shapes[s].na,
						 q = is_b ? r - shapes[s].na : r;
					unsigned k =
						lane % 4 * per + e + (is_b ? q : q / 2) * 4 * per;
					float v = (float)(is_b ? b[k][lane / 4]
							       : a[lane / 4 + q % 2 * 8][k]);
					uint32_t bits, *to = &words[8 * lane + (is_b ? 4 + q : q)];

					memcpy(&bits, &v, 4);
					if (!half)
						*to = bits | 0x123; /* below tf32's precision */
					else if (shapes[s].type[0] == 'b')
						*to |= bits >> 16 << 16 * e;
					else /* a small integer: rebias the exponent by hand */
						*to |= (bits ? (bits >> 16 & 0x8000) |
									((bits >> 23 & 255) - 112)
										<< 10 |
									(bits >> 13 & 0x3ff)
							     : 0)
						       << 16 * e;
				}
		snprintf(
			ptx, sizeof ptx,
			HEAD
			".visible .entry k(.param .u64 a, .param .u64 b)\n{ .reg .b64 %%a, %%b; .reg .b32 %%i, %%r<10>; .reg .f32 %%c<4>, "
			"%%d<4>; .reg .f32 %%f;\nld.param.u64 %%a, [a]; ld.param.u64 %%b, [b]; mov.u32 %%i, %%tid.x;\n"
			"mad.wide.u32 %%a, %%i, 32, %%a; mad.wide.u32 %%b, %%i, 16, %%b; ld.global.v4.u32 {%%r4, %%r5, %%r6, %%r7}, [%%a];\n"
			"ld.global.v2.u32 {%%r8, %%r9}, [%%a+16]; cvt.rn.f32.u32 %%f, %%i; mov.f32 %%c0, %%f; mov.f32 %%c1, %%f;\n"
			"mov.f32 %%c2, 0f3F800000; mov.f32 %%c3, 0f40000000;\nmma.sync.aligned.%s {%%d0, %%d1, %%d2, %%d3}, %s, %s, {%%c0, %%c1, "
			"%%c2, %%c3};\nst.global.v4.f32 [%%b], {%%d0, %%d1, %%d2, %%d3}; ret; }\n",
			shapes[s].name, shapes[s].regs_a, shapes[s].regs_b);
		if (run(ptx, 1, 32, NULL) != SIM_OK)
			bad = 1000;
		for (unsigned lane = 0; lane < 32 && bad < 1000; lane++)
			for (unsigned i = 0; i < 4; i++) {
				unsigned row = lane / 4 + i / 2 * 8, col = lane % 4 * 2 + i % 2;
				float got, want = i < 2 ? (float)lane : (float)(i - 1);

				for (unsigned k = 0; k < shapes[s].k; k++)
					want += (float)(a[row][k] * b[k][col]);
				memcpy(&got, (float *)out + 4 * lane + i, 4);
				bad += got != want;
			}
		if (!ok(!bad, "mma.sync.aligned.%s", shapes[s].name))
			tap_diag("%u wrong; %s", bad, err);
	}
}

int main(void)
{
	test_divergence();
	test_calls();
	test_barriers();
	test_warp();
	test_packing();
	test_grid();
	test_ends();
	test_refusals();
	test_mma();
	return tap_done();
}
