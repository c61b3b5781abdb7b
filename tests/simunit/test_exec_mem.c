/* SPDX-License-Identifier: MIT */
/*
 * Memory of the engine: every type and vector width through every state space, atomics against a
 * sequential reference, variables and their initialisers, parameters, checks and their messages.
 */
#include "tests/simunit/exec_kit.h"

#define HEAD ".version 8.5\n.target sm_90\n.address_size 64\n"
#define N    64

#define BYTES 8192

/* With gaps, so that what lies beside an array belongs to nobody. */
static uint8_t memory[2 * BYTES + 3 * 1024] __attribute__((aligned(256)));
static uint8_t *const in = memory + 1024, *const out = memory + BYTES + 2048;
static char err[300];

static const struct sim_range *ranges(void)
{
	static struct sim_range r[2];

	r[0] = (struct sim_range){(uintptr_t)in, BYTES, NULL, 0};
	r[1] = (struct sim_range){(uintptr_t)out, BYTES, NULL, 0};
	return r;
}

static enum sim_fault_kind run(const char *ptx, uint32_t grid, uint32_t block, struct sim_fault *f,
			       struct sim_counts *c)
{
	void *params[2] = {in, out};

	err[0] = 0;
	return kit_run(ptx, "k", grid, block, params, ranges(), 2, err, sizeof err, f, c);
}

static void fill(void)
{
	for (unsigned i = 0; i < BYTES; i++)
		in[i] = (uint8_t)kit_random();
	memset(out, 0, BYTES);
}

/* ---- each type and width, through a space and back ---- */

struct route {
	const char *name, *decl,
		*base;	   /* base: instructions that leave the thread's address in %p */
	const char *space; /* of ld and st; "" is generic */
	const char *addr;  /* register that holds the address */
};

static const struct route routes[] = {
	{"global", "", "mov.u64 %p, %o;", ".global", "%p"},
	{"generic to global", "", "mov.u64 %p, %o;", "", "%p"},
	{"shared, 32-bit address", ".shared .align 16 .b8 s[4096];",
	 "mov.u32 %q, s; mad.lo.u32 %q, %i, 32, %q;", ".shared", "%q"},
	{"shared, 64-bit address", ".shared .align 16 .b8 s[4096];",
	 "mov.u64 %p, s; mad.wide.u32 %p, %i, 32, %p;", ".shared", "%p"},
	{"generic to shared", ".shared .align 16 .b8 s[4096];",
	 "mov.u64 %p, s; cvta.shared.u64 %p, %p; mad.wide.u32 %p, %i, 32, %p;", "", "%p"},
	{"local", ".local .align 16 .b8 s[64];", "mov.u64 %p, s;", ".local", "%p"},
	{"local, 32-bit address", ".local .align 16 .b8 s[64];", "mov.u32 %q, s;", ".local", "%q"},
	{"generic to local", ".local .align 16 .b8 s[64];", "mov.u64 %p, s; cvta.local.u64 %p, %p;",
	 "", "%p"},
};

static void list(char *p, unsigned vec)
{
	p += sprintf(p, vec > 1 ? "{" : "");
	for (unsigned e = 0; e < vec; e++)
		p += sprintf(p, "%s%%v%u", e ? ", " : "", e);
	sprintf(p, vec > 1 ? "}" : "");
}

static void test_route(const struct route *r, const char *type, unsigned bytes, unsigned vec,
		       int masked)
{
	char ptx[4096], regs[64], v[8] = "";
	unsigned size = bytes * vec;
	int good = 1;

	if (vec > 1)
		sprintf(v, ".v%u", vec);
	list(regs, vec);
	snprintf(
		ptx, sizeof ptx,
		HEAD
		".visible .entry k(.param .u64 a, .param .u64 b)\n{\n.reg .b64 %%a, %%p, %%o; .reg .b32 "
		"%%i, %%q, %%t; .reg .pred %%c; .reg .%s %%v<4>; %s\n"
		"mov.u32 %%i, %%tid.x; ld.param.u64 %%a, [a]; mad.wide.u32 %%a, %%i, 32, %%a;\n"
		"ld.param.u64 %%o, [b]; mad.wide.u32 %%o, %%i, 32, %%o; %s\n"
		"and.b32 %%t, %%i, %d; setp.ne.u32 %%c, %%t, 0; @%%c bra END;\n"
		"ld.global%s.%s %s, [%%a];\nst%s%s.%s [%s], %s;\nbar.warp.sync 0xffffffff;\n"
		"ld%s%s.%s %s, [%s];\nst.global%s.%s [%%o], %s;\nEND: ret;\n}\n",
		bytes == 8   ? (type[0] == 'f' ? "f64" : "b64")
		: bytes == 4 ? (type[0] == 'f' ? "f32" : "b32")
			     : "b16",
		r->decl, r->base, masked, v, type, regs, r->space, v, type, r->addr, regs, r->space,
		v, type, regs, r->addr, v, type, regs);
	if (masked) /* no meeting point for lanes that have left */
		memcpy(strstr(ptx, "bar.warp.sync"), "membar.cta ;             ", 25);
	fill();
	if (run(ptx, 1, N, NULL, NULL) != SIM_OK)
		good = 0;
	for (unsigned i = 0; good && i < N; i++)
		good = masked && i & 1
			       ? !out[32 * i]
			       : !memcmp(in + 32 * i, out + 32 * i, size) && !out[32 * i + size];
	if (!ok(good, "%s%s.%s%s", r->name, v, type, masked ? ", every other lane" : ""))
		tap_diag("%s", err);
}

static void test_routes(void)
{
	static const struct {
		const char *name;
		unsigned bytes;
	} types[] = {{"u8", 1},	 {"s8", 1},  {"b8", 1},	 {"u16", 2}, {"s16", 2},
		     {"b16", 2}, {"u32", 4}, {"s32", 4}, {"b32", 4}, {"f32", 4},
		     {"u64", 8}, {"s64", 8}, {"b64", 8}, {"f64", 8}};

	for (unsigned r = 0; r < sizeof routes / sizeof *routes; r++)
		for (unsigned t = 0; t < sizeof types / sizeof *types; t++)
			for (unsigned vec = 1; vec <= 4 && vec * types[t].bytes <= 16; vec *= 2)
				test_route(&routes[r], types[t].name, types[t].bytes, vec, t & 1);
}

/* ---- small programs: a body between fixed ends, whose words in out are compared ---- */

#define DECL                                                                                         \
	".reg .b64 %a, %b, %o, %x<8>; .reg .b32 %i, %r<8>; .reg .b16 %h<4>; .reg .pred %p<4>; .reg " \
	".f32 %f<4>; .reg .f64 %g<4>;\n"
#define BEGIN                                                                                      \
	"mov.u32 %i, %tid.x; ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; mad.wide.u32 %o, %i, 8, %b;\n"
/* the same for printf */
#define DECL_F ".reg .b64 %%a, %%b, %%o, %%x<8>; .reg .b32 %%i, %%r<8>; .reg .pred %%p<4>;\n"
#define BEGIN_F                                                                                       \
	"mov.u32 %%i, %%tid.x; ld.param.u64 %%a, [a]; ld.param.u64 %%b, [b]; mad.wide.u32 %%o, %%i, " \
	"8, %%b;\n"
#define PROGRAM(module, decl, ...)                                                                 \
	HEAD module "\n.visible .entry k(.param .u64 a, .param .u64 b)\n{\n" DECL decl BEGIN       \
		__VA_ARGS__ "\nret;\n}\n"

static void expect(const char *ptx, uint32_t threads, const uint64_t *want, const char *what)
{
	uint64_t got;
	int good = run(ptx, 1, threads, NULL, NULL) == SIM_OK;

	for (unsigned i = 0; good && i < threads; i++) {
		memcpy(&got, out + 8 * i, 8);
		if (got == want[i])
			continue;
		snprintf(err, sizeof err, "thread %u: got 0x%llx, want 0x%llx", i,
			 (unsigned long long)got, (unsigned long long)want[i]);
		good = 0;
	}
	if (!ok(good, "%s", what))
		tap_diag("%s", err);
}

#define IS(at, reg)                                                                                \
	"isspacep.global %p0, " reg "; isspacep.shared %p1, " reg "; isspacep.local %p2, " reg     \
	"; isspacep.param %p3, " reg ";\nselp.u32 %r0, 1, 0, %p0; selp.u32 %r1, 2, 0, %p1; "       \
	"selp.u32 %r2, 4, 0, %p2; selp.u32 %r3, 8, 0, %p3;\nor.b32 %r0, %r0, %r1; or.b32 %r0, "    \
	"%r0, %r2; or.b32 %r0, %r0, %r3; shl.b32 %r0, %r0, " at "; add.u32 %r4, %r4, %r0;\n"

static void test_programs(void)
{
	uint64_t w[N];

	fill();
	for (unsigned i = 0; i < N; i++)
		w[i] = (uint64_t)(int8_t)in[i] + in[i] +
		       (uint64_t)(int16_t)(in[2 * i] | in[2 * i + 1] << 8) +
		       (uint32_t)(int8_t)in[i];
	expect(PROGRAM("", "",
		       "mad.wide.u32 %x0, %i, 1, %a; ld.global.s8 %x1, [%x0]; ld.global.u8 %x2, [%x0];\n"
		       "ld.global.s8 %r0, [%x0]; cvt.u64.u32 %x4, %r0; mad.wide.u32 %x0, %i, 2, %a;\n"
		       "ld.global.s16 %x3, [%x0]; add.s64 %x1, %x1, %x2; add.s64 %x1, %x1, %x3;\n"
		       "add.s64 %x1, %x1, %x4; st.global.u64 [%o], %x1;"),
	       N, w, "narrow loads extend to the register");
	for (unsigned i = 0; i < N; i++)
		w[i] = 1 | 2 << 4 | 4 << 8 | 8 << 12;
	expect(PROGRAM("", ".shared .b32 s; .local .b32 t;\n",
		       "mov.u64 %x1, s; cvta.shared.u64 %x1, %x1; mov.u64 %x2, t; cvta.local.u64 %x2, %x2;\n"
		       "mov.u64 %x3, a; cvta.param.u64 %x3, %x3; mov.u32 %r4, 0;\n" IS(
			       "0", "%a") IS("4", "%x1") IS("8", "%x2")
			       IS("12", "%x3") "cvt.u64.u32 %x1, %r4; st.global.u64 [%o], %x1;"),
	       N, w, "isspacep tells the windows apart");
	for (unsigned i = 0; i < N; i++) {
		w[i] = 0;
		for (unsigned j = 0; j < 8; j++)
			w[i] = (uint32_t)(w[i] * 3 + i * 8 + (7 - j));
	}
	expect(PROGRAM("", ".local .align 4 .b8 t[32];\n",
		       "mov.u32 %r0, 0; mov.u64 %x1, t;\nW: mad.wide.u32 %x2, %r0, 4, %x1; mad.lo.u32 %r1, %i, "
		       "8, %r0;\nst.local.u32 [%x2], %r1; add.u32 %r0, %r0, 1; setp.lt.u32 %p0, %r0, 8; @%p0 bra "
		       "W;\nmov.u32 %r2, 0;\nR: sub.u32 %r0, %r0, 1; mad.wide.u32 %x2, %r0, 4, %x1; ld.local.u32 "
		       "%r1, [%x2];\nmad.lo.u32 %r2, %r2, 3, %r1; setp.ne.u32 %p0, %r0, 0; @%p0 bra R;\n"
		       "cvt.u64.u32 %x1, %r2; st.global.u64 [%o], %x1;"),
	       N, w, "local arrays belong to their thread");
	for (unsigned i = 0; i < N; i++)
		w[i] = (uint64_t[]){10, 20, 0xffffffff, 40}[i & 3] + 100;
	expect(PROGRAM(".const .align 4 .u32 tab[4] = {10, 20, 0xffffffff, 40};\n.global .u64 ptr = tab;\n"
		       ".global .align 4 .u32 g = 100;",
		       "",
		       "ld.global.u64 %x0, [ptr]; and.b32 %r0, %i, 3; mad.wide.u32 %x0, %r0, 4, %x0;\n"
		       "ld.const.u32 %x1, [%x0]; ld.global.u32 %x2, [g]; add.u64 %x1, %x1, %x2; st.global.u64 [%o], %x1;"),
	       1, w, "initialised variables, one holds another's address");
	for (unsigned i = 0; i < N; i++)
		w[i] = (uintptr_t)out;
	expect(PROGRAM("", "",
		       "mov.u64 %x0, a; ld.param.u64 %x1, [%x0+8]; st.global.u64 [%o], %x1;"),
	       N, w, "parameters through a register");
	expect(PROGRAM("", "",
		       "mov.u64 %x0, a; cvta.param.u64 %x0, %x0; ld.u64 %x1, [%x0+8]; st.u64 [%o], %x1;"),
	       N, w, "parameters through a generic address");
	for (unsigned i = 0; i < N; i++)
		w[i] = (uint64_t)(in[16 * i] | in[16 * i + 1] << 8) + in[16 * i + 4] + 5;
	expect(PROGRAM("", ".local .align 4 .b8 t[8]; .shared .align 4 .b32 s[64];\n",
		       "mad.wide.u32 %x0, %i, 16, %a; ld.global.nc.u32 %r0, [%x0]; and.b32 %r0, %r0, 0xffff;\n"
		       "ld.global.nc.L1::no_allocate.L2::128B.u8 %r1, [%x0+4]; mov.u64 %x1, t; cvta.local.u64 %x1, "
		       "%x1; cvta.to.local.u64 %x2, %x1;\nst.local.u32 [%x2], %r0; membar.gl; fence.acq_rel.gpu; "
		       "fence.sc.sys; ld.relaxed.gpu.u32 %r2, [%x1]; prefetch.global.L2 [%x0];\nmov.u64 %x3, s; "
		       "cvta.shared.u64 %x4, %x3; cvta.to.shared.u64 %x4, %x4; sub.u64 %x4, %x4, %x3; mad.wide.u32 "
		       "%x3, %i, 4, %x3;\nst.volatile.shared.u32 [%x3], %r1; ld.volatile.shared.u32 %r1, [%x3]; "
		       "add.u32 %r2, %r2, %r1; cvt.u64.u32 %x5, %r2; add.u64 %x5, %x5, %x4; nanosleep.u32 20;\n"
		       "add.u64 %x5, %x5, 5; st.release.gpu.global.u64 [%o], %x5;"),
	       N, w, "qualifiers, fences, windows there and back");
	for (unsigned i = 0; i < N; i++)
		w[i] = i < 50 ? 3 : 4;
	expect(PROGRAM(".const .f32 limit = 50.0;\n.func (.param .f32 r) f(.param .f32 x, .param .align 4 .b8 v[4])\n"
		       "{ .reg .f32 %y, %l; .reg .b16 %c<4>; .reg .pred %q; ld.param.f32 %y, [x]; ld.const.f32 %l, [limit];\n"
		       "setp.lt.f32 %q, %y, %l; ld.param.v4.u8 {%c0, %c1, %c2, %c3}, [v]; selp.b16 %c0, %c2, %c3, %q;\n"
		       "cvt.rn.f32.u16 %y, %c0; st.param.f32 [r], %y; ret; }",
		       "",
		       "{ .param .f32 x; .param .align 4 .b8 v[4]; .param .f32 r; cvt.rn.f32.u32 %f0, %i; st.param.f32 [x], "
		       "%f0; st.param.b32 [v], 0x04030201;\ncall.uni (r), f, (x, v); ld.param.f32 %f1, [r]; }\n"
		       "cvt.rzi.u64.f32 %x0, %f1; st.global.u64 [%o], %x0;"),
	       N, w, "parameters of calls: floats, bytes of a struct; a float constant");
	for (unsigned i = 0; i < N; i++)
		w[i] = (N - 1 - i) * 7 + 16;
	kit_dynamic = 4 * N;
	expect(PROGRAM(".extern .shared .align 8 .b8 dyn[];", ".shared .b64 one;\n",
		       "mov.u64 %x0, dyn; mov.u64 %x1, one; sub.u64 %x2, %x0, %x1; mul.lo.u32 %r0, %i, 7;\n"
		       "mad.wide.u32 %x3, %i, 4, %x0; st.shared.u32 [%x3], %r0; bar.sync 0; sub.u32 %r1, 63, %i;\n"
		       "mad.wide.u32 %x3, %r1, 4, %x0; ld.shared.u32 %r1, [%x3]; mov.u32 %r2, %dynamic_smem_size;\n"
		       "setp.ne.u32 %p0, %r2, 256; @%p0 trap; cvt.u64.u32 %x4, %r1; add.u64 %x4, %x4, %x2;\n"
		       "st.global.u64 [%o], %x4;"),
	       N, w, "dynamic shared memory follows the static part");
	kit_dynamic = 0;
}

/* ---- atomics ---- */

static uint64_t f32_add(uint64_t old, uint64_t b, int flush)
{
	uint32_t u = (uint32_t)old, v = (uint32_t)b;
	float x, y;

	if (flush) {
		u = u & 0x7f800000 ? u : u & 0x80000000;
		v = v & 0x7f800000 ? v : v & 0x80000000;
	}
	memcpy(&x, &u, 4);
	memcpy(&y, &v, 4);
	x += y;
	memcpy(&u, &x, 4);
	if (x != x)
		u = 0x7fffffff;
	if (flush && !(u & 0x7f800000))
		u &= 0x80000000;
	return u;
}

static uint64_t f64_add(uint64_t old, uint64_t b)
{
	double x, y;

	memcpy(&x, &old, 8);
	memcpy(&y, &b, 8);
	x += y;
	memcpy(&old, &x, 8);
	return x == x ? old : 0x7fffffffffffffff;
}

/* clang-format off */
#define ATOMICS(X) \
	X("add.u32", 4, 0, old + b) X("add.s32", 4, 0, old + b) X("add.u64", 8, 0, old + b) \
	X("add.f32", 4, 0, f32_add(old, b, !in_shared)) X("add.f64", 8, 0, f64_add(old, b)) \
	X("min.u32", 4, 0, (uint32_t)old < (uint32_t)b ? old : b) X("max.u32", 4, 0, (uint32_t)old > (uint32_t)b ? old : b) \
	X("min.s32", 4, 0, (int32_t)old < (int32_t)b ? old : b) X("max.s32", 4, 0, (int32_t)old > (int32_t)b ? old : b) \
	X("min.u64", 8, 0, old < b ? old : b) X("max.u64", 8, 0, old > b ? old : b) \
	X("min.s64", 8, 0, (int64_t)old < (int64_t)b ? old : b) X("max.s64", 8, 0, (int64_t)old > (int64_t)b ? old : b) \
	X("inc.u32", 4, 0, (uint32_t)old >= (uint32_t)b ? 0 : old + 1) X("dec.u32", 4, 0, !(uint32_t)old || (uint32_t)old > (uint32_t)b ? b : old - 1) \
	X("and.b32", 4, 0, old & b) X("or.b32", 4, 0, old | b) X("xor.b32", 4, 0, old ^ b) \
	X("and.b64", 8, 0, old & b) X("or.b64", 8, 0, old | b) X("xor.b64", 8, 0, old ^ b) \
	X("exch.b32", 4, 0, b) X("exch.b64", 8, 0, b) \
	X("cas.b32", 4, 1, (uint32_t)old == (uint32_t)b ? c : old) X("cas.b64", 8, 1, old == b ? c : old)
/* clang-format on */

enum { FIRST_ATOMIC = __COUNTER__ + 1 };

static uint64_t atomic_value(unsigned row, uint64_t old, uint64_t b, uint64_t c, int in_shared)
{
	switch (row) {
#define X(name, bytes, three, ...)                                                                 \
	case __COUNTER__ - FIRST_ATOMIC:                                                           \
		return __VA_ARGS__;
		ATOMICS(X)
#undef X
	default:
		return c + (uint64_t)in_shared;
	}
}

/*
 * 64 threads work on 4 cells; in holds the operands at 16 i and 16 i + 8, out gets what each thread
 * saw and, from 1024 on, the cells.
 */
static void test_atomic(unsigned row, const char *name, unsigned bytes, int three, int in_shared,
			int is_red)
{
	const char *type = strchr(name, '.') + 1, *reg = type[0] == 'f' ? type
							 : bytes == 8	? "b64"
									: "b32";
	char ptx[3000], operands[64];
	uint64_t cell[4] = {0}, a, b, seen;
	int good = 1;

	snprintf(operands, sizeof operands, "%s", three ? "[%x1], %v1, %v2" : "[%x1], %v1");
	snprintf(
		ptx, sizeof ptx,
		HEAD
		".visible .entry k(.param .u64 a, .param .u64 b)\n{\n" DECL_F
		".reg .%s %%v<4>; .shared .align 8 "
		".b64 s[4];\n" BEGIN_F "mad.wide.u32 %%x0, %%i, 16, %%a; and.b32 %%r0, %%i, 3;\n"
		"%s mad.wide.u32 %%x1, %%r0, 8, %%x1;\n"
		"ld.global.%s %%v1, [%%x0]; ld.global.%s %%v2, [%%x0+8]; mov.%s %%v0, %s;\n"
		"%s%s.%s %s%s;\nst.global.%s [%%o], %%v0; bar.sync 0;\n"
		"setp.lt.u32 %%p0, %%i, 4; @%%p0 ld%s.b64 %%x3, [%%x1]; @%%p0 st.global.b64 [%%o+1024], %%x3;\n"
		"ret;\n}\n",
		reg, in_shared ? "mov.u64 %x1, s;" : "add.u64 %x1, %b, 2048;", reg, reg, reg,
		reg[0] == 'f' ? (bytes == 8 ? "0d0000000000000000" : "0f00000000") : "0",
		is_red ? "red" : "atom", in_shared ? ".shared" : ".global", name,
		is_red ? "" : "%v0, ", operands, reg, in_shared ? ".shared" : ".global");
	fill();
	/* small operands now and then, so that cas hits and inc wraps */
	for (unsigned i = 0; i < 128; i += 2)
		memset(in + 8 * i + (i % 3 ? 1 : 0), 0, i % 3 ? 7 : 8);
	if (run(ptx, 1, N, NULL, NULL) != SIM_OK)
		good = 0;
	for (unsigned i = 0; good && i < N; i++) {
		a = b = seen = 0;
		memcpy(&a, in + 16 * i, bytes);
		memcpy(&b, in + 16 * i + 8, bytes);
		memcpy(&seen, out + 8 * i, bytes);
		good = is_red || seen == cell[i & 3];
		cell[i & 3] = atomic_value(row, cell[i & 3], a, b, in_shared);
		if (bytes == 4)
			cell[i & 3] &= 0xffffffff;
	}
	good = good && !memcmp(cell, out + 1024, sizeof cell);
	if (!ok(good, "%s.%s.%s", is_red ? "red" : "atom", in_shared ? "shared" : "global", name))
		tap_diag("%s", err);
}

static void test_atomics(void)
{
	static const struct {
		const char *name;
		unsigned bytes;
		int three;
	} rows[] = {
#define X(name, bytes, three, ...) {name, bytes, three},
		ATOMICS(X)
#undef X
	};

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
		for (int in_shared = 0; in_shared < 2; in_shared++) {
			test_atomic(i, rows[i].name, rows[i].bytes, rows[i].three, in_shared, 0);
			if (!rows[i].three && strncmp(rows[i].name, "exch", 4))
				test_atomic(i, rows[i].name, rows[i].bytes, 0, in_shared, 1);
		}
}

/* ---- what is wrong is found, and said ---- */

static void fault(const char *ptx, enum sim_fault_kind kind, uint32_t line, uint64_t addr,
		  uint32_t bytes, int is_write, uint32_t tid, const char *text)
{
	struct sim_fault f = {0};
	enum sim_fault_kind got = run(ptx, 1, 40, &f, NULL);
	int good = got == kind && f.kind == kind && f.line == line && f.bytes == bytes &&
		   f.is_write == is_write && f.tid[0] == tid && strstr(f.text, text) &&
		   (addr == f.addr || !addr);

	if (!ok(good, "fault: %s", text))
		tap_diag("kind %d line %u addr 0x%llx bytes %u write %d tid %u: %s", (int)got,
			 f.line, (unsigned long long)f.addr, f.bytes, f.is_write, f.tid[0], err);
}

/* The access stands on line 11 of the text. */
#define FAULTY(decl, access) PROGRAM("", decl "\n", "\n" access)

static void test_faults(void)
{
	const enum sim_fault_kind OOB = SIM_FAULT_OUT_OF_BOUNDS, MIS = SIM_FAULT_MISALIGNED;

	fill();
	fault(FAULTY("", "mad.wide.u32 %x0, %i, 512, %a; ld.global.u32 %r0, [%x0];"), OOB, 11,
	      (uintptr_t)in + BYTES, 4, 0, BYTES / 512, "ld.global.u32: read of 4 bytes");
	fault(FAULTY("", "ld.global.u32 %r0, [%a+8190];"), OOB, 11, (uintptr_t)in + 8190, 4, 0, 0,
	      "out of bounds");
	fault(FAULTY("", "st.global.u8 [%a+-1], 0;"), OOB, 11, (uintptr_t)in - 1, 1, 1, 0,
	      "write of 1 bytes");
	fault(FAULTY("", "mad.wide.u32 %x0, %i, 6, %a; ld.global.u32 %r0, [%x0];"), MIS, 11,
	      (uintptr_t)in + 6, 4, 0, 1, "misaligned");
	fault(FAULTY("", "ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%a+8];"), MIS, 11,
	      (uintptr_t)in + 8, 16, 0, 0, "misaligned");
	fault(FAULTY("", "mov.u64 %x0, 0; ld.u32 %r0, [%x0];"), OOB, 11, 0, 4, 0, 0, "at 0x0");
	fault(FAULTY("", "ld.global.u32 %r0, [0x1234];"), OOB, 11, 0x1234, 4, 0, 0, "at 0x1234");
	fault(FAULTY(".shared .b32 s[4];",
		     "mov.u32 %r1, s; mad.lo.u32 %r1, %i, 4, %r1; ld.shared.u32 %r0, [%r1+4];"),
	      OOB, 11, 16, 4, 0, 3, "ld.shared.u32");
	fault(FAULTY(".shared .b32 s[4];", "mov.u64 %x0, 0x100000000; ld.shared.u32 %r0, [%x0];"),
	      OOB, 11, 0x100000000, 4, 0, 0, "ld.shared.u32");
	fault(FAULTY(".shared .b32 s[4];",
		     "mov.u64 %x0, s; cvta.shared.u64 %x0, %x0; ld.global.u32 %r0, [%x0];"),
	      OOB, 11, 0, 4, 0, 0, "ld.global.u32");
	fault(FAULTY(".local .b32 s[4];", "mov.u64 %x0, s; st.local.u32 [%x0+16], 1;"), OOB, 11, 16,
	      4, 1, 0, "st.local");
	fault(FAULTY(".local .b32 s[4];",
		     "mov.u64 %x0, s; cvta.local.u64 %x0, %x0; st.u16 [%x0+3], 1;"),
	      MIS, 11, 0, 2, 1, 0, "misaligned");
	fault(FAULTY("", "mov.u64 %x0, a; cvta.param.u64 %x0, %x0; st.u32 [%x0], 1;"), OOB, 11, 0,
	      4, 1, 0, "st.u32");
	fault(FAULTY("", "mov.u64 %x0, a; ld.param.u64 %x0, [%x0+16];"), OOB, 11, 0, 8, 0, 0,
	      "ld.param.u64");
	fault(FAULTY("", "atom.global.add.u32 %r0, [%a+2], 1;"), MIS, 11, (uintptr_t)in + 2, 4, 0,
	      0, "atom.global");
	fault(FAULTY("", "setp.eq.u32 %p0, %i, 33; @%p0 st.global.u32 [0], 1;"), OOB, 11, 0, 4, 1,
	      33, "block 0,0,0 thread 33,0,0");
}

static void test_uninitialised(void)
{
	static uint8_t init[BYTES];
	struct sim_range r[2] = {{(uintptr_t)in, BYTES, init, 0}, {(uintptr_t)out, BYTES, NULL, 0}};
	void *params[2] = {in, out};
	const char *ptx = FAULTY(
		"",
		"mad.wide.u32 %x0, %i, 4, %a; st.global.u32 [%x0], %i; ld.global.u32 %r0, [%x0];\n"
		"ld.global.u32 %r0, [%x0+32];");
	struct sim_fault f;

	memset(init, 0, sizeof init);
	is_u64(kit_run(ptx, "k", 1, 16, params, r, 2, err, sizeof err, &f, NULL),
	       SIM_FAULT_UNINITIALISED, "a word that nobody wrote");
	ok(f.line == 12 && f.tid[0] == 8 && f.addr == (uintptr_t)in + 64,
	   "its line, thread and address");
	ok(init[0] && init[63] && !init[64], "stores mark their bytes");
	memset(init, 1, sizeof init);
	is_u64(kit_run(ptx, "k", 1, 16, params, r, 2, err, sizeof err, &f, NULL), SIM_OK,
	       "all written: no fault");
}

/* ---- observers and counts ---- */

struct seen {
	unsigned reads, writes, bytes;
	uint64_t sum;
};

static void observe(void *opaque, uint64_t addr, unsigned bytes, int is_write)
{
	struct seen *s = opaque;

	s->reads += !is_write;
	s->writes += is_write;
	s->bytes += bytes;
	s->sum += addr - (is_write ? (uintptr_t)out : (uintptr_t)in);
}

static void test_observer(void)
{
	const char *ptx = PROGRAM(
		"", ".shared .b64 s;\n",
		"mad.wide.u32 %x0, %i, 4, %a; ld.global.u32 %r0, [%x0]; st.shared.u32 [s], %r0;\n"
		"setp.lt.u32 %p0, %i, 5; @%p0 st.global.u64 [%o], %x0;");
	struct sim_module *m = sim_module_load(ptx, strlen(ptx), kit_alloc, NULL, err, sizeof err);
	void *params[2] = {in, out};
	struct seen s = {0};
	struct sim_launch l = {.grid = {1, 1, 1},
			       .block = {32, 1, 1},
			       .params = params,
			       .ranges = ranges(),
			       .nranges = 2,
			       .on_access = observe,
			       .opaque = &s};
	struct sim_counts c = {0};

	if (!ok(m != NULL, "loads"))
		return;
	l.kernel = sim_module_kernel(m, "k");
	is_u64(sim_exec(&l, NULL, &c), SIM_OK, "runs under an observer");
	is_u64(s.reads, 32, "reads seen");
	is_u64(s.writes, 5, "writes seen, shared memory not");
	is_u64(s.bytes, 32 * 4 + 5 * 8, "bytes seen");
	is_u64(s.sum, 4 * 31 * 16 + 8 * 10, "addresses seen");
	is_u64(c.load_bytes, 128, "bytes loaded");
	is_u64(c.store_bytes, 40, "bytes stored");
	/* ten instructions, one of them for 5 threads only */
	is_u64(c.thread_insns, 32 * 9 + 5, "instructions counted by thread");
	sim_module_free(m);
}

static void test_module(void)
{
	const char *ptx = HEAD
		".global .align 16 .b8 g[100];\n.const .f32 c = 0f3F800000;\n"
		".visible .entry one(.param .u32 a, .param .align 8 .b8 s[20], .param .u8 z)\n.maxntid 64, 2\n"
		"{ .shared .b32 t[10]; .local .b32 u; .reg .b32 %r; ld.shared.u32 %r, [t]; st.local.u32 [u], %r; ret; }\n"
		".visible .entry two()\n{ ret; }\n";
	struct sim_module *m = sim_module_load(ptx, strlen(ptx), kit_alloc, NULL, err, sizeof err);
	const struct sim_kernel *k;
	uint64_t addr;
	size_t offset, size;
	float one = 0;

	if (!ok(m != NULL, "loads"))
		return;
	k = sim_module_kernel(m, "one");
	is_u64(sim_kernel_nparams(k), 3, "parameters");
	ok(!sim_kernel_param(k, 1, &offset, &size) && offset == 8 && size == 20,
	   "offset and size of a struct");
	ok(!sim_kernel_param(k, 2, &offset, &size) && offset == 28 && size == 1,
	   "and of what follows");
	ok(sim_kernel_param(k, 3, &offset, &size) < 0, "past the end");
	is_u64(sim_kernel_param_bytes(k), 29, "parameter bytes");
	is_u64(sim_kernel_max_threads(k), 128, ".maxntid");
	ok(sim_kernel_shared_bytes(k) >= 40 && sim_kernel_local_bytes(k) >= 4,
	   "shared and local bytes");
	is_str(sim_kernel_name(sim_module_kernel_at(m, 1)), "two", "kernels in order");
	ok(!sim_module_kernel_at(m, 2) && !sim_module_kernel(m, "three"), "no more kernels");
	ok(!sim_module_global(m, "g", &addr, &size) && size == 100 && addr % 16 == 0,
	   "a global's address");
	ok(!sim_module_global(m, "c", &addr, &size) && size == 4, "a constant's address");
	memcpy(&one, (void *)(uintptr_t)addr, 4);
	ok(one == 1.0f, "and value");
	ok(sim_module_global(m, "x", &addr, &size) < 0, "an unknown name");
	sim_module_free(m);
	kit_release();
}

int main(void)
{
	test_routes();
	test_programs();
	test_atomics();
	test_faults();
	test_uninitialised();
	test_observer();
	test_module();
	return tap_done();
}
