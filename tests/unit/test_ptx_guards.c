/* SPDX-License-Identifier: MIT */
/*
 * Stores that are guarded one by one by the same condition, as compilers leave them behind a
 * reduction in shared memory: together they may leave no hole, and only together.
 */
#include "tests/tap.h"
#include "tracker/ptx_access.h"

#include <stdio.h>
#include <string.h>

#define STORE(guard, label, offset)                                                                \
	"	@!%" guard " bra " label ";\n"                                                     \
	"	st.global.f32 [%rd2+" offset "], %f1;\n" label ":\n"

/* out[tid.y * 2 + k] by the threads with tid.x == 0; 8 x 4 threads. */
static const char head[] = ".version 7.5\n.target sm_75\n.address_size 64\n"
			   ".visible .entry k(.param .u64 out)\n{\n"
			   "	.reg .pred %p<4>;\n	.reg .b32 %r<4>;\n	.reg .b64 %rd<4>;\n"
			   "	.reg .f32 %f<2>;\n"
			   "	ld.param.u64 %rd1, [out];\n"
			   "	mov.u32 %r1, %tid.x;\n	mov.u32 %r2, %tid.y;\n"
			   "	mad.wide.u32 %rd2, %r2, 8, %rd1;\n"
			   "	mov.f32 %f1, 0f3F800000;\n"
			   "	setp.eq.s32 %p1, %r1, 0;\n	setp.eq.s32 %p2, %r2, 0;\n"
			   "	setp.lt.s32 %p3, %r1, 8;\n";
static const char tail[] = "	ret;\n}\n";

static struct rs_ptx_extent writes_of(const char *body)
{
	struct rs_ptx_extent x = {0};
	uint8_t params[8] = {0};
	struct rs_ptx_launch launch = {{1, 1, 1}, {8, 4, 1}, params, sizeof(params)};
	struct rs_ptx_error err;
	struct rs_ptx_module *m;
	struct rs_ptx *ptx;
	char text[2048];

	snprintf(text, sizeof(text), "%s%s%s", head, body, tail);
	if (rs_ptx_parse(text, strlen(text), &ptx, &err))
		return x;
	if (!rs_ptx_analyse(ptx, &m)) {
		rs_ptx_access_eval(&m->kernels[0], 0, RS_PTX_WRITES, &launch, &x);
		rs_ptx_module_free(m);
	}
	rs_ptx_free(ptx);
	return x;
}

static void check(const char *body, int dense, int64_t hi, const char *what)
{
	struct rs_ptx_extent x = writes_of(body);

	ok(x.known && x.lo == 0 && x.hi == hi, "%s: bytes 0 to %d", what, (int)hi);
	ok(x.dense == dense, "%s: %s", what, dense ? "no hole" : "holes are possible");
}

int main(void)
{
	check(STORE("p1", "A", "0") STORE("p1", "B", "4"), 1, 32, "one guard, twice");
	check(STORE("p1", "A", "4") STORE("p1", "B", "0"), 1, 32, "in the other order");
	check(STORE("p1", "A", "0"), 0, 28, "half of the stores");
	check(STORE("p1", "A", "0") STORE("p2", "B", "4"), 0, 28, "two guards");
	check(STORE("p1", "A", "0") STORE("p3", "B", "4"), 0, 32, "a guard that is always true");
	check("	@%p1 st.global.f32 [%rd2], %f1;\n	@%p1 st.global.f32 [%rd2+4], %f1;\n", 1, 32,
	      "predicated stores");
	return tap_done();
}
