/* SPDX-License-Identifier: MIT */
/*
 * What the tests of the simulated driver share: kernels as PTX text, checks of result codes.
 *
 * The test hooks of tests/simcuda/simcuda.h are exported by the library that these programs link.
 */
#ifndef TESTS_CLIENTS_DRV_H
#define TESTS_CLIENTS_DRV_H

#include <cuda.h>

#include "tests/simcuda/simcuda.h"
#include "tests/tap.h"

/*
 * inc(p, n): p[i]++; addto(d, s, n): d[i] += s[i]; store(p, n, v): p[i] = v; all u32, i the thread's global index,
 * threads from n on do nothing. The variable `counter` is 64 zero bytes.
 */
#define DRV_INDEX                                                                                  \
	"\tmov.u32 %r2, %ctaid.x;\n"                                                               \
	"\tmov.u32 %r3, %ntid.x;\n"                                                                \
	"\tmov.u32 %r4, %tid.x;\n"                                                                 \
	"\tmad.lo.s32 %r5, %r2, %r3, %r4;\n"                                                       \
	"\tsetp.ge.u32 %p1, %r5, %r1;\n"                                                           \
	"\t@%p1 bra DONE;\n"                                                                       \
	"\tmul.wide.u32 %rd3, %r5, 4;\n"
#define DRV_REGS                                                                                   \
	"\t.reg .pred %p<2>;\n"                                                                    \
	"\t.reg .b32 %r<9>;\n"                                                                     \
	"\t.reg .b64 %rd<6>;\n"

__attribute__((unused)) static const char drv_ptx[] =
	".version 7.5\n"
	".target sm_75\n"
	".address_size 64\n"
	".visible .global .align 4 .b8 counter[64];\n"
	".visible .entry inc(.param .u64 inc_0, .param .u32 inc_1)\n"
	"{\n" DRV_REGS "\tld.param.u64 %rd1, [inc_0];\n"
	"\tld.param.u32 %r1, [inc_1];\n" DRV_INDEX "\tadd.s64 %rd4, %rd1, %rd3;\n"
	"\tld.global.u32 %r6, [%rd4];\n"
	"\tadd.s32 %r7, %r6, 1;\n"
	"\tst.global.u32 [%rd4], %r7;\n"
	"DONE:\n"
	"\tret;\n"
	"}\n"
	".visible .entry addto(.param .u64 addto_0, .param .u64 addto_1, .param .u32 addto_2)\n"
	"{\n" DRV_REGS "\tld.param.u64 %rd1, [addto_0];\n"
	"\tld.param.u64 %rd2, [addto_1];\n"
	"\tld.param.u32 %r1, [addto_2];\n" DRV_INDEX "\tadd.s64 %rd4, %rd1, %rd3;\n"
	"\tadd.s64 %rd5, %rd2, %rd3;\n"
	"\tld.global.u32 %r6, [%rd4];\n"
	"\tld.global.u32 %r7, [%rd5];\n"
	"\tadd.s32 %r8, %r6, %r7;\n"
	"\tst.global.u32 [%rd4], %r8;\n"
	"DONE:\n"
	"\tret;\n"
	"}\n"
	".visible .entry store(.param .u64 store_0, .param .u32 store_1, .param .u32 store_2)\n"
	"{\n" DRV_REGS "\tld.param.u64 %rd1, [store_0];\n"
	"\tld.param.u32 %r1, [store_1];\n"
	"\tld.param.u32 %r6, [store_2];\n" DRV_INDEX "\tadd.s64 %rd4, %rd1, %rd3;\n"
	"\tst.global.u32 [%rd4], %r6;\n"
	"DONE:\n"
	"\tret;\n"
	"}\n";

/* One test: the call gives this result. */
#define is_cu(got, want, what) drv_is(got, want, __FILE__, __LINE__, what)

__attribute__((unused)) static int drv_is(CUresult got, CUresult want, const char *file, int line,
					  const char *what)
{
	const char *g = "?", *w = "?";

	cuGetErrorName(got, &g);
	cuGetErrorName(want, &w);
	if (!tap_ok(got == want, file, line, "%s", what))
		tap_diag("  got %s (%d), want %s (%d)", g, got, w, want);
	return got == want;
}

/* Not a test: the program cannot go on without it. */
#define must(call) drv_must(call, __FILE__, __LINE__)

__attribute__((unused)) static void drv_must(CUresult r, const char *file, int line)
{
	const char *name = "?";

	if (r == CUDA_SUCCESS)
		return;
	cuGetErrorName(r, &name);
	printf("Bail out! %s:%d: %s (%d)\n", file, line, name, r);
	exit(1);
}

__attribute__((unused)) static CUcontext drv_context(void)
{
	CUcontext ctx;

	must(cuInit(0));
	must(cuCtxCreate(&ctx, NULL, 0, 0));
	return ctx;
}

__attribute__((unused)) static CUfunction drv_function(CUmodule mod, const char *name)
{
	CUfunction f;

	must(cuModuleGetFunction(&f, mod, name));
	return f;
}

/* Launch over n elements in blocks of 64. */
__attribute__((unused)) static CUresult drv_launch(CUfunction f, unsigned n, CUstream s,
						   void **params)
{
	return cuLaunchKernel(f, (n + 63) / 64, 1, 1, 64, 1, 1, 0, s, params, NULL);
}

#endif
