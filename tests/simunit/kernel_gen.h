/* SPDX-License-Identifier: MIT */
/*
 * Random PTX kernels for the access analyser: structured control flow, affine and less affine
 * indices, pointers that move, join and hide. The same seed gives the same text.
 *
 * Parameters of every kernel `k`: four pointers (0, 8, 16, 24; 24 inside a struct of two words at
 * 24..40), then u32 n (40), m (44), and u64 len (48).
 * Only tests/simunit/test_access_sound.c uses this. No locks.
 */
#ifndef RS_TESTS_KERNEL_GEN_H
#define RS_TESTS_KERNEL_GEN_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define GEN_PARAM_BYTES 56
#define GEN_POINTERS	5

struct gen {
	uint64_t rng;
	char text[1 << 16];
	size_t len;
	unsigned nr, nrd, np, nl; /* names used so far */
	unsigned r[256], rd[64];  /* live integers, live pointers */
	unsigned nlive, nptr;
	unsigned mutable[4], nmutable;
	unsigned depth, accesses, loops;
};

static uint32_t gen_rand(struct gen *g, uint32_t below)
{
	g->rng ^= g->rng << 13;
	g->rng ^= g->rng >> 7;
	g->rng ^= g->rng << 17;
	return (uint32_t)((g->rng >> 20) % below);
}

__attribute__((format(printf, 2, 3))) static void gen_put(struct gen *g, const char *fmt, ...)
{
	va_list ap;

	if (g->len > sizeof(g->text) - 400)
		return;
	va_start(ap, fmt);
	g->len += (size_t)vsnprintf(g->text + g->len, sizeof(g->text) - g->len, fmt, ap);
	va_end(ap);
}

static unsigned gen_live(struct gen *g)
{
	return g->r[gen_rand(g, g->nlive)];
}

static unsigned gen_keep(struct gen *g, unsigned reg)
{
	if (g->nlive < 256)
		g->r[g->nlive++] = reg;
	return reg;
}

static unsigned gen_pointer(struct gen *g)
{
	return g->rd[gen_rand(g, g->nptr)];
}

/* A new integer from live ones. */
static unsigned gen_value(struct gen *g)
{
	static const int masks[] = {1, 3, 7, 15, 31, -4, 12, 255, 5};
	static const int divisors[] = {2, 3, 4, 5, 7, 8, 10};
	unsigned a = gen_live(g), b = gen_live(g), d = ++g->nr, c = gen_rand(g, 9) + 1;

	switch (gen_rand(g, 22)) {
	case 0:
		gen_put(g, "mad.lo.s32 %%r%u, %%r%u, %u, %%r%u;\n", d, a, c, b);
		break;
	case 1:
		gen_put(g, "sub.s32 %%r%u, %%r%u, %%r%u;\n", d, a, b);
		break;
	case 2:
		gen_put(g, "shl.b32 %%r%u, %%r%u, %u;\n", d, a, c % 4);
		break;
	case 3:
		gen_put(g, "shr.%c32 %%r%u, %%r%u, %u;\n", c & 1 ? 's' : 'u', d, a, c % 5);
		break;
	case 4:
		gen_put(g, "and.b32 %%r%u, %%r%u, %d;\n", d, a, masks[gen_rand(g, 9)]);
		break;
	case 5:
		gen_put(g, "div.%c32 %%r%u, %%r%u, %d;\n", c & 1 ? 's' : 'u', d, a,
			divisors[gen_rand(g, 7)]);
		break;
	case 6:
		gen_put(g, "rem.%c32 %%r%u, %%r%u, %d;\n", c & 1 ? 's' : 'u', d, a,
			divisors[gen_rand(g, 7)]);
		break;
	case 7:
		gen_put(g, "%s.%c32 %%r%u, %%r%u, %%r%u;\n", c & 1 ? "min" : "max",
			c & 2 ? 's' : 'u', d, a, b);
		break;
	case 8:
		g->np++;
		gen_put(g,
			"setp.lt.s32 %%p%u, %%r%u, %%r%u;\nselp.b32 %%r%u, %%r%u, %%r%u, %%p%u;\n",
			g->np, a, b, d, a, b, g->np);
		break;
	case 9: /* x / 3 by a reciprocal, as nvcc and tinygrad write it; the last only for x < 32 */
		if (c % 3 == 0)
			gen_put(g,
				"mul.hi.u32 %%r%u, %%r%u, -1431655765;\nshr.u32 %%r%u, %%r%u, 1;\n",
				d, a, d, d);
		else
			gen_put(g, "mul.lo.s32 %%r%u, %%r%u, %u;\nshr.s32 %%r%u, %%r%u, %u;\n", d,
				a, c % 3 == 1 ? 43691 : 11, d, d, c % 3 == 1 ? 17 : 5);
		if (c & 4) { /* and the remainder */
			gen_keep(g, d);
			d = ++g->nr;
			gen_put(g, "mad.lo.s32 %%r%u, %%r%u, -3, %%r%u;\n", d, d - 1, a);
		}
		break;
	case 10:
		gen_put(g, "shl.b32 %%r%u, %%r%u, 5;\nand.b32 %%r%u, %%r%u, 31;\n", d, a, d + 1, b);
		gen_put(g, "or.b32 %%r%u, %%r%u, %%r%u;\n", d + 2, d, d + 1);
		d = g->nr += 2;
		break;
	case 11:
		gen_put(g, "xor.b32 %%r%u, %%r%u, %u;\n", d, a, c);
		break;
	case 12:
		gen_put(g, "bfe.u32 %%r%u, %%r%u, %u, %u;\n", d, a, c % 4, c % 6 + 1);
		break;
	case 13:
		gen_put(g, "mul.lo.s32 %%r%u, %%r%u, %%r%u;\n", d, a, b);
		break;
	case 14:
		gen_put(g, "neg.s32 %%r%u, %%r%u;\n", d, a);
		break;
	case 15: /* an index out of memory */
		gen_put(g, "ld.global.u32 %%r%u, [%%rd%u+%u];\nand.b32 %%r%u, %%r%u, 63;\n", d,
			g->rd[gen_rand(g, 3)], 4 * c, d, d);
		break;
	case 16:
		gen_put(g, "abs.s32 %%r%u, %%r%u;\n", d, a);
		break;
	case 17:
		gen_put(g, "not.b32 %%r%u, %%r%u;\nadd.s32 %%r%u, %%r%u, 1;\n", d, a, d, d);
		break;
	default:
		gen_put(g, "add.s32 %%r%u, %%r%u, %d;\n", d, a, (int)c - 3);
		break;
	}
	return gen_keep(g, d);
}

/* A byte offset register from an index, in one of the ways compilers do it. */
static unsigned gen_address(struct gen *g, unsigned ptr, unsigned index, unsigned bytes)
{
	unsigned off = ++g->nrd, d = ++g->nrd;

	switch (gen_rand(g, 4)) {
	case 0:
		gen_put(g, "cvt.s64.s32 %%rd%u, %%r%u;\nmad.lo.s64 %%rd%u, %%rd%u, %u, %%rd%u;\n",
			off, index, d, off, bytes, ptr);
		return d;
	case 1:
		gen_put(g, "mul.wide.s32 %%rd%u, %%r%u, %u;\n", off, index, bytes);
		break;
	case 2:
		gen_put(g, "mul.wide.u32 %%rd%u, %%r%u, %u;\n", off, index, bytes);
		break;
	default:
		gen_put(g, "cvt.s64.s32 %%rd%u, %%r%u;\nshl.b64 %%rd%u, %%rd%u, %u;\n", off, index,
			off, off,
			bytes == 4    ? 2
			: bytes == 8  ? 3
			: bytes == 16 ? 4
			: bytes == 2  ? 1
				      : 0);
		break;
	}
	gen_put(g, "add.s64 %%rd%u, %%rd%u, %%rd%u;\n", d, ptr, off);
	return d;
}

static void gen_guard(struct gen *g, char *text, size_t size)
{
	text[0] = 0;
	if (gen_rand(g, 6))
		return;
	gen_put(g, "setp.lt.s32 %%p%u, %%r%u, %%r%u;\n", ++g->np, gen_live(g), gen_live(g));
	snprintf(text, size, "@%s%%p%u ", gen_rand(g, 2) ? "!" : "", g->np);
}

static void gen_access(struct gen *g)
{
	unsigned index = gen_live(g), bytes = 1u << gen_rand(g, 5), ptr, at;
	int imm = gen_rand(g, 3) ? 0 : (int)(gen_rand(g, 8) * bytes);
	char guard[24];

	if (g->accesses++ > 12)
		return;
	ptr = gen_pointer(g);
	at = gen_address(g, ptr, index, bytes);
	gen_guard(g, guard, sizeof(guard));
	switch (gen_rand(g, 8)) {
	case 0:
	case 1:
	case 2:
		if (bytes == 16)
			gen_put(g,
				"%sld.global.v4.u32 {%%r%u, %%r%u, %%r%u, %%r%u}, [%%rd%u+%d];\n",
				guard, g->nr + 1, g->nr + 2, g->nr + 3, g->nr + 4, at, imm);
		else
			gen_put(g, "%sld.global.u%u %%%s, [%%rd%u+%d];\n", guard, bytes * 8,
				bytes == 8 ? "rdx" : "rx", at, imm);
		g->nr += 4;
		break;
	case 3:
		if (bytes < 4)
			at = gen_address(g, ptr, index, bytes = 4);
		gen_put(g, "%satom.global.add.u32 %%rx, [%%rd%u+%u], 1;\n", guard, at,
			4 * gen_rand(g, 4));
		break;
	default:
		if (bytes == 16)
			gen_put(g,
				"%sst.global.v4.u32 [%%rd%u+%d], {%%r%u, %%r%u, %%r%u, %%r%u};\n",
				guard, at, imm, index, index, index, index);
		else
			gen_put(g, "%sst.global.u%u [%%rd%u+%d], %%%s;\n", guard, bytes * 8, at,
				imm, bytes == 8 ? "rdx" : "rx");
		break;
	}
}

static void gen_body(struct gen *g);

static void gen_condition(struct gen *g, const char *skip, unsigned label)
{
	static const char *const cmps[] = {"lt", "le", "gt", "ge", "eq", "ne"};
	char bound[24];

	if (gen_rand(g, 2))
		snprintf(bound, sizeof(bound), "%%r%u", gen_live(g));
	else
		snprintf(bound, sizeof(bound), "%d", (int)gen_rand(g, 70) - 4);
	if (!gen_rand(g, 4)) { /* compared as 64 bits */
		char how = gen_rand(g, 2) ? 's' : 'u';

		g->nrd += 2;
		gen_put(g, "cvt.%c64.%c32 %%rd%u, %%r%u;\ncvt.%c64.%c32 %%rd%u, %%r%u;\n", how, how,
			g->nrd - 1, gen_live(g), how, how, g->nrd, gen_live(g));
		gen_put(g, "setp.%s.%c64 %%p%u, %%rd%u, %%rd%u;\n", cmps[gen_rand(g, 4)], how,
			++g->np, g->nrd - 1, g->nrd);
	} else {
		gen_put(g, "setp.%s.%c32 %%p%u, %%r%u, %s;\n",
			cmps[gen_rand(g, gen_rand(g, 3) ? 4 : 6)], gen_rand(g, 3) ? 's' : 'u',
			++g->np, gen_live(g), bound);
	}
	if (!gen_rand(g, 3)) {
		unsigned a = g->np;

		gen_put(g, "setp.ge.s32 %%p%u, %%r%u, %%r%u;\n", ++g->np, gen_live(g), gen_live(g));
		gen_put(g, "%s.pred %%p%u, %%p%u, %%p%u;\n", gen_rand(g, 3) ? "or" : "and",
			g->np + 1, a, g->np);
		g->np++;
	}
	gen_put(g, "@%s%%p%u bra %s%u;\n", gen_rand(g, 3) ? "" : "!", g->np, skip, label);
}

static void gen_if(struct gen *g)
{
	unsigned label = ++g->nl, live = g->nlive, ptrs = g->nptr;

	gen_condition(g, "ELSE", label);
	gen_body(g);
	if (g->nmutable && gen_rand(g, 2))
		gen_put(g, "mov.b32 %%r%u, %%r%u;\n", g->mutable[0], gen_live(g));
	g->nlive = live;
	g->nptr = ptrs;
	if (gen_rand(g, 2)) {
		gen_put(g, "bra JOIN%u;\nELSE%u:\n", label, label);
		gen_body(g);
		g->nlive = live;
		g->nptr = ptrs;
		gen_put(g, "JOIN%u:\n", label);
	} else {
		gen_put(g, "ELSE%u:\n", label);
	}
}

/* A loop in one of the shapes of tinygrad and nvcc; bound in a register or constant. */
static void gen_loop(struct gen *g)
{
	unsigned label = ++g->nl, live = g->nlive, ptrs = g->nptr, i = ++g->nr, step, shape,
		 moving = 0;
	char bound[24], init[24];

	if (g->loops++ > 3)
		return;
	step = gen_rand(g, 3) ? 1 : gen_rand(g, 4) + 1;
	shape = gen_rand(g, 5);
	snprintf(bound, sizeof(bound), gen_rand(g, 3) ? "%u" : "%%r%u",
		 gen_rand(g, 3) ? gen_rand(g, 7) + 1 : 4);
	snprintf(init, sizeof(init), gen_rand(g, 3) ? "%u" : "%%r%u", gen_rand(g, 3));
	if (strchr(init, '%'))
		snprintf(init, sizeof(init), "%%r%u", gen_live(g));
	if (strchr(bound, '%'))
		snprintf(bound, sizeof(bound), "%%r%u", gen_rand(g, 2) ? 4 : gen_live(g));
	if (!gen_rand(g, 3)) {
		moving = ++g->nrd;
		gen_put(g, "mov.u64 %%rd%u, %%rd%u;\n", moving, gen_pointer(g));
		g->rd[g->nptr++] = moving;
	}
	gen_keep(g, i);
	switch (shape) {
	case 0:
		gen_put(g, "mov.u32 %%r%u, -1;\nbra END%u;\nLOOP%u:\n", i, label, label);
		gen_body(g);
		if (moving)
			gen_put(g, "add.s64 %%rd%u, %%rd%u, %u;\n", moving, moving, 4 * step);
		gen_put(g, "END%u:\nadd.s32 %%r%u, %%r%u, 1;\nsetp.lt.s32 %%p%u, %%r%u, %s;\n",
			label, i, i, ++g->np, i, bound);
		gen_put(g, "@%%p%u bra LOOP%u;\n", g->np, label);
		break;
	case 1:
		gen_put(g,
			"mov.u32 %%r%u, %s;\nLOOP%u:\nsetp.ge.s32 %%p%u, %%r%u, %s;\n@%%p%u bra OUT%u;\n",
			i, init, label, g->np + 1, i, bound, g->np + 1, label);
		g->np++;
		gen_body(g);
		if (!gen_rand(g, 5))
			gen_condition(g, "OUT", label);
		if (moving)
			gen_put(g, "add.s64 %%rd%u, %%rd%u, %u;\n", moving, moving, 8 * step);
		gen_put(g, "add.s32 %%r%u, %%r%u, %u;\nbra LOOP%u;\nOUT%u:\n", i, i, step, label,
			label);
		break;
	case 2:
		gen_put(g,
			"mov.u32 %%r%u, %s;\nsetp.ge.s32 %%p%u, %%r%u, %s;\n@%%p%u bra OUT%u;\nLOOP%u:\n",
			i, init, g->np + 1, i, bound, g->np + 1, label, label);
		g->np++;
		gen_body(g);
		if (moving)
			gen_put(g, "add.s64 %%rd%u, %%rd%u, -%u;\n", moving, moving, 4 * step);
		gen_put(g, "add.s32 %%r%u, %%r%u, %u;\nsetp.lt.%c32 %%p%u, %%r%u, %s;\n", i, i,
			step, gen_rand(g, 3) ? 's' : 'u', g->np + 1, i, bound);
		gen_put(g, "@%%p%u bra LOOP%u;\nOUT%u:\n", g->np + 1, label, label);
		g->np++;
		break;
	case 3:
		gen_put(g, "mov.u32 %%r%u, %u;\nLOOP%u:\n", i, step * (gen_rand(g, 5) + 1), label);
		gen_body(g);
		gen_put(g, "add.s32 %%r%u, %%r%u, -%u;\nsetp.%s.s32 %%p%u, %%r%u, 0;\n", i, i, step,
			gen_rand(g, 2) ? "ne" : "gt", g->np + 1, i);
		gen_put(g, "@%%p%u bra LOOP%u;\n", g->np + 1, label);
		g->np++;
		break;
	default: /* grid stride: r3 is the linear thread, r4 is n, r6 the number of threads */
		gen_put(g, "mov.u32 %%r%u, %%r3;\nLOOP%u:\nsetp.ge.s32 %%p%u, %%r%u, %%r4;\n", i,
			label, g->np + 1, i);
		gen_put(g, "@%%p%u bra OUT%u;\n", g->np + 1, label);
		g->np++;
		gen_body(g);
		gen_put(g, "add.s32 %%r%u, %%r%u, %%r6;\nbra LOOP%u;\nOUT%u:\n", i, i, label,
			label);
		break;
	}
	g->nlive = live;
	g->nptr = ptrs;
}

/* Pointers by other ways than plain arithmetic. */
static void gen_pointer_trick(struct gen *g)
{
	unsigned a = gen_pointer(g), b = gen_pointer(g), d = ++g->nrd;

	switch (gen_rand(g, 7)) {
	case 0:
		g->np++;
		gen_put(g,
			"setp.lt.s32 %%p%u, %%r%u, %%r%u;\nselp.b64 %%rd%u, %%rd%u, %%rd%u, %%p%u;\n",
			g->np, gen_live(g), gen_live(g), d, a, b, g->np);
		break;
	case 1:
		gen_put(g, "st.local.u64 [depot+8], %%rd%u;\nld.local.u64 %%rd%u, [depot+8];\n", a,
			d);
		break;
	case 2:
		gen_put(g, "mov.b64 {%%ra, %%rb}, %%rd%u;\nmov.b64 %%rd%u, {%%ra, %%rb};\n", a, d);
		break;
	case 3:
		gen_put(g, "add.s64 %%rd%u, %%rd%u, %u;\n", d, a, 16 * gen_rand(g, 9));
		break;
	case 4:
		gen_put(g,
			"{\n.param .b64 pa;\n.param .b32 pi;\n.param .b64 pr;\nst.param.b64 [pa], %%rd%u;\n"
			"st.param.b32 [pi], %%r%u;\ncall.uni (pr), shift, (pa, pi);\n"
			"ld.param.b64 %%rd%u, [pr];\n}\n",
			a, gen_live(g), d);
		break;
	case 5:
		gen_put(g, "min.u64 %%rd%u, %%rd%u, %%rd%u;\n", d, a, b);
		break;
	default:
		gen_put(g, "sub.s64 %%rd%u, %%rd%u, %%rd%u;\nadd.s64 %%rd%u, %%rd%u, %%rd%u;\n", d,
			a, b, d + 1, d, b);
		d = ++g->nrd;
		break;
	}
	if (g->nptr < 60)
		g->rd[g->nptr++] = d;
}

static void gen_body(struct gen *g)
{
	unsigned n = gen_rand(g, 4) + 1;

	g->depth++;
	for (unsigned i = 0; i < n; i++)
		gen_value(g);
	if (g->depth < 4 && !gen_rand(g, 3))
		gen_pointer_trick(g);
	if (g->depth < 4 && gen_rand(g, 2))
		gen_loop(g);
	if (g->depth < 4 && gen_rand(g, 2))
		gen_if(g);
	gen_access(g);
	if (g->nmutable && !gen_rand(g, 3))
		gen_put(g, "add.s32 %%r%u, %%r%u, %u;\n", g->mutable[1], g -> mutable[1],
			gen_rand(g, 5));
	g->depth--;
}

static void gen_head(struct gen *g)
{
	gen_put(g, ".version 7.5\n.target sm_75\n.address_size 64\n");
	gen_put(g,
		".func (.param .b64 ret) shift(.param .b64 p, .param .b32 i)\n{\n.reg .b64 %%q<4>;\n"
		".reg .b32 %%i;\nld.param.u64 %%q1, [p];\nld.param.u32 %%i, [i];\n"
		"and.b32 %%i, %%i, 7;\nmul.wide.u32 %%q2, %%i, 16;\nadd.s64 %%q3, %%q1, %%q2;\n"
		"st.param.b64 [ret], %%q3;\nret;\n}\n");
	gen_put(g, ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c,\n"
		   ".param .align 8 .b8 s[16], .param .u32 n, .param .u32 m, .param .u64 len)\n{\n"
		   ".local .align 8 .b8 depot[16];\n.reg .b32 %%r<2000>;\n.reg .b64 %%rd<1000>;\n"
		   ".reg .pred %%p<600>;\n.reg .b32 %%rx, %%ra, %%rb;\n.reg .b64 %%rdx;\n"
		   "mov.u32 %%rx, 1;\nmov.u64 %%rdx, 1;\n");
	gen_put(g, "ld.param.u64 %%rd1, [a];\nld.param.u64 %%rd2, [b];\nld.param.u64 %%rd3, [c];\n"
		   "ld.param.v2.u64 {%%rd4, %%rd5}, [s];\ncvta.to.global.u64 %%rd1, %%rd1;\n"
		   "ld.param.u32 %%r4, [n];\nld.param.u32 %%r5, [m];\nmov.u32 %%r1, %%tid.x;\n"
		   "mov.u32 %%r2, %%ctaid.x;\nmov.u32 %%r7, %%ntid.x;\nmov.u32 %%r8, %%nctaid.x;\n"
		   "mad.lo.s32 %%r3, %%r2, %%r7, %%r1;\nmul.lo.s32 %%r6, %%r7, %%r8;\n"
		   "mov.u32 %%r9, %%ctaid.y;\nmov.u32 %%r10, %%tid.y;\nmov.u32 %%r11, 2;\n"
		   "mov.u32 %%r12, 5;\n");
	g->nr = 12;
	g->nrd = 5;
	for (unsigned i = 1; i <= 12; i++)
		if (i != 6)
			gen_keep(g, i);
	for (unsigned i = 1; i <= 5; i++)
		g->rd[g->nptr++] = i;
	g->mutable[0] = 11;
	g->mutable[1] = 12;
	g->nmutable = 2;
}

/* Wild programs: whatever comes. */
static void gen_wild(struct gen *g)
{
	gen_head(g);
	for (unsigned i = 0; i < 3; i++)
		gen_body(g);
	gen_put(g, "ret;\n}\n");
}

/*
 * Dense or nearly dense stores: an index made of thread, block and loop indices by mixed radix,
 * with the odd stride or count, stored in one or more pieces, under one or two guards.
 */
static void gen_tame(struct gen *g)
{
	unsigned vec = 1u << gen_rand(g, 3), pieces = 1u << gen_rand(g, 3),
		 count = gen_rand(g, 5) + 1;
	unsigned wrong = gen_rand(g, 4), label = ++g->nl, spread = gen_rand(g, 2);
	unsigned per = vec * pieces, base;

	gen_head(g);
	gen_put(g, "mov.u32 %%r20, 0;\n");
	if (!gen_rand(g, 4)) /* some threads may leave early, on a path of their own */
		gen_put(g,
			"setp.lt.s32 %%p20, %%r5, %u;\n@%%p20 bra SIDE;\nsetp.eq.s32 %%p21, %%r1, %u;\n"
			"@%%p21 ret;\nSIDE:\n",
			gen_rand(g, 10), gen_rand(g, 40));
	switch (gen_rand(g, 5)) {
	case 0: /* i < n, one piece a thread */
		gen_put(g, "setp.ge.%c32 %%p1, %%r3, %%r4;\n@%%p1 bra OUT%u;\n",
			gen_rand(g, 2) ? 's' : 'u', label);
		gen_put(g, "mov.u32 %%r21, %%r3;\n");
		count = 1;
		break;
	case 1: /* a loop of `count` inside the thread's part */
		gen_put(g, "LOOP%u:\nmad.lo.s32 %%r21, %%r3, %u, %%r20;\n", label,
			count + (wrong == 1));
		break;
	case 2: /* block times threads as a constant, loop outermost */
		gen_put(g, "LOOP%u:\nmad.lo.s32 %%r21, %%r20, %%r6, %%r3;\n", label);
		break;
	case 3: /* rows and columns by division, put together again otherwise */
		gen_put(g, "div.s32 %%r22, %%r3, 4;\nrem.s32 %%r23, %%r3, 4;\n"
			   "mul.lo.s32 %%r24, %%r6, %%r23;\nshr.s32 %%r24, %%r24, 2;\n");
		gen_put(g,
			"shr.s32 %%r25, %%r6, 2;\nmad.lo.s32 %%r21, %%r23, %%r25, %%r22;\nLOOP%u:\n",
			label);
		count = 1;
		break;
	default: /* two dimensions with two guards */
		gen_put(g,
			"setp.ge.s32 %%p1, %%r3, %%r4;\nmad.lo.s32 %%r26, %%r9, 2, %%r10;\n"
			"setp.ge.s32 %%p2, %%r26, %%r5;\nor.pred %%p3, %%p1, %%p2;\n@%%p3 bra OUT%u;\n",
			label);
		gen_put(g, "mad.lo.s32 %%r21, %%r26, %%r4, %%r3;\n");
		count = 1;
		break;
	}
	gen_put(g, "mul.lo.s32 %%r27, %%r21, %u;\n", spread ? vec : per + (wrong == 2));
	base = gen_address(g, 2, 27, 4);
	for (unsigned i = 0; i < pieces; i++) {
		unsigned at = base;

		if (wrong == 3 && i == 1 && gen_rand(g, 2))
			continue;
		if (spread) { /* pieces apart by the number of threads */
			gen_put(g, "mul.lo.s32 %%r28, %%r6, %u;\nadd.s32 %%r28, %%r28, %%r27;\n",
				i * vec * count);
			at = gen_address(g, 2, 28, 4);
		}
		gen_put(g, "st.global%s [%%rd%u+%u], %s;\n",
			vec == 4   ? ".v4.u32"
			: vec == 2 ? ".v2.u32"
				   : ".u32",
			at, spread ? 0 : 4 * vec * i,
			vec == 4   ? "{%rx, %rx, %rx, %rx}"
			: vec == 2 ? "{%rx, %rx}"
				   : "%rx");
	}
	if (count > 1)
		gen_put(g,
			"add.s32 %%r20, %%r20, 1;\nsetp.lt.s32 %%p9, %%r20, %u;\n@%%p9 bra LOOP%u;\n",
			count, label);
	gen_put(g, "OUT%u:\nret;\n}\n", label);
}

#endif
