/* SPDX-License-Identifier: MIT */
/*
 * The kernels of client_random.c: three computations, each with its arguments passed in four ways. Constant data.
 *
 *	make	d[i] = s[i] * k + t[i] + i		mix	d[i] = d[i] * 3 + s[i] * k + 1
 *	red	d[i] += s[i] * k, atomically
 *
 *	NAME		pointers as parameters, of which PTX proves how far they reach
 *	NAME_struct	the same in a struct
 *	NAME_loose	each index goes through memory, so that nobody knows how far
 *	NAME_table	the pointers themselves are in memory
 */
#ifndef TESTS_CLIENTS_CLIENT_RANDOM_PTX_H
#define TESTS_CLIENTS_CLIENT_RANDOM_PTX_H

/* clang-format off */
#define HEAD(name, params) ".visible .entry " name "(" params ")\n{\n" \
	".reg .pred %p<2>;\n.reg .b32 %r<12>;\n.reg .b64 %rd<12>;\n"
#define INDEX \
	"mov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmov.u32 %r5, %tid.x;\n" \
	"mad.lo.s32 %r5, %r3, %r4, %r5;\nsetp.ge.u32 %p1, %r5, %r1;\n@%p1 bra DONE;\n"
#define PLACES \
	"mul.wide.u32 %rd4, %r6, 4;\nadd.s64 %rd5, %rd1, %rd4;\nadd.s64 %rd6, %rd2, %rd4;\nadd.s64 %rd7, %rd3, %rd4;\n"

#define PLAIN(name, body) HEAD(name, ".param .u64 d, .param .u64 s, .param .u64 t, .param .u32 n, .param .u32 k") \
	"ld.param.u64 %rd1, [d];\nld.param.u64 %rd2, [s];\nld.param.u64 %rd3, [t];\nld.param.u32 %r1, [n];\n" \
	"ld.param.u32 %r2, [k];\n" INDEX "mov.u32 %r6, %r5;\n" PLACES body "DONE:\nret;\n}\n"
#define STRUCT(name, body) HEAD(name "_struct", ".param .align 8 .b8 a[32]") \
	"ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [a+8];\nld.param.u64 %rd3, [a+16];\nld.param.u32 %r1, [a+24];\n" \
	"ld.param.u32 %r2, [a+28];\n" INDEX "mov.u32 %r6, %r5;\n" PLACES body "DONE:\nret;\n}\n"
#define LOOSE(name, body) HEAD(name "_loose", ".param .u64 d, .param .u64 s, .param .u64 t, .param .u32 n, .param .u32 k, " \
	".param .u64 zero") \
	"ld.param.u64 %rd1, [d];\nld.param.u64 %rd2, [s];\nld.param.u64 %rd3, [t];\nld.param.u32 %r1, [n];\n" \
	"ld.param.u32 %r2, [k];\nld.param.u64 %rd8, [zero];\n" INDEX \
	"ld.global.u32 %r6, [%rd8];\nadd.u32 %r6, %r6, %r5;\n" PLACES body "DONE:\nret;\n}\n"
#define TABLE(name, body) HEAD(name "_table", ".param .u64 table, .param .u32 n, .param .u32 k") \
	"ld.param.u64 %rd8, [table];\nld.param.u32 %r1, [n];\nld.param.u32 %r2, [k];\n" INDEX \
	"ld.global.u64 %rd1, [%rd8];\nld.global.u64 %rd2, [%rd8+8];\nld.global.u64 %rd3, [%rd8+16];\n" \
	"mov.u32 %r6, %r5;\n" PLACES body "DONE:\nret;\n}\n"
#define ALL(name, body) PLAIN(name, body) STRUCT(name, body) LOOSE(name, body) TABLE(name, body)

#define MAKE \
	"ld.global.u32 %r7, [%rd6];\nld.global.u32 %r8, [%rd7];\nmad.lo.u32 %r7, %r7, %r2, %r8;\n" \
	"add.u32 %r7, %r7, %r5;\nst.global.u32 [%rd5], %r7;\n"
#define MIX \
	"ld.global.u32 %r7, [%rd5];\nld.global.u32 %r8, [%rd6];\nmul.lo.u32 %r8, %r8, %r2;\n" \
	"mad.lo.u32 %r7, %r7, 3, %r8;\nadd.u32 %r7, %r7, 1;\nst.global.u32 [%rd5], %r7;\n"
#define RED \
	"ld.global.u32 %r7, [%rd6];\nmul.lo.u32 %r7, %r7, %r2;\nred.global.add.u32 [%rd5], %r7;\n"

static const char random_ptx[] =
	".version 7.0\n.target sm_75\n.address_size 64\n"
	ALL("make", MAKE) ALL("mix", MIX) ALL("red", RED);
/* clang-format on */

#endif
