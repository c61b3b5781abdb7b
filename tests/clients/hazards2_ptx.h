/* SPDX-License-Identifier: MIT */
/*
 * The further kernels of hazards2.c and hazards3.c, which use those of hazards_ptx.h, too. By hand: one thread a
 * word, unsigned 32-bit arithmetic, each one thing. Constant data.
 */
#ifndef TESTS_CLIENTS_HAZARDS2_PTX_H
#define TESTS_CLIENTS_HAZARDS2_PTX_H

/* clang-format off */

/* %r0: number of the thread in its block. */
#define BODY                                      \
	"{\n"                                     \
	"    .reg .pred %p<4>;\n"                 \
	"    .reg .b32 %r<12>;\n"                 \
	"    .reg .b64 %rd<8>;\n"                 \
	"    .reg .f32 %f<8>;\n"                  \
	"    mov.u32 %r0, %tid.x;\n"

/* reg: address of the thread's word of a parameter. */
#define WORD(reg, param)                                        \
	"    ld.param.u64 " reg ", [" param "];\n"              \
	"    cvta.to.global.u64 " reg ", " reg ";\n"            \
	"    mad.wide.u32 " reg ", %r0, 4, " reg ";\n"

/*
 * %r4 = H(%r1, %r3), where H(seed, i): h = seed * 2654435761 + i * 40503 + 12345; h ^= h >> 16;
 * h *= 2246822519; h ^= h >> 13
 */
#define HASH                                      \
	"    mul.lo.u32 %r4, %r1, 2654435761;\n"  \
	"    mad.lo.u32 %r4, %r3, 40503, %r4;\n"  \
	"    add.u32 %r4, %r4, 12345;\n"          \
	"    shr.u32 %r5, %r4, 16;\n"             \
	"    xor.b32 %r4, %r4, %r5;\n"            \
	"    mul.lo.u32 %r4, %r4, 2246822519;\n"  \
	"    shr.u32 %r5, %r4, 13;\n"             \
	"    xor.b32 %r4, %r4, %r5;\n"

#define END                                       \
	"    ret;\n"                              \
	"}\n"

static const char hazards2_ptx[] =
	".version 7.0\n"
	".target sm_75\n"
	".address_size 64\n"
	".visible .global .align 4 .u32 Z;\n"

	/* A = max(A * 3 / 4, a) */
	".visible .entry decay(.param .u64 A, .param .u64 a)\n"
	BODY WORD("%rd1", "A") WORD("%rd2", "a")
	"    ld.global.u32 %r1, [%rd1];\n"
	"    ld.global.u32 %r2, [%rd2];\n"
	"    mul.lo.u32 %r1, %r1, 3;\n"
	"    shr.u32 %r1, %r1, 2;\n"
	"    max.u32 %r1, %r1, %r2;\n"
	"    st.global.u32 [%rd1], %r1;\n"
	END

	/* B = max(B, a) */
	".visible .entry atleast(.param .u64 B, .param .u64 a)\n"
	BODY WORD("%rd1", "B") WORD("%rd2", "a")
	"    ld.global.u32 %r1, [%rd1];\n"
	"    ld.global.u32 %r2, [%rd2];\n"
	"    max.u32 %r1, %r1, %r2;\n"
	"    st.global.u32 [%rd1], %r1;\n"
	END

	/* s += x */
	".visible .entry count(.param .u64 s, .param .u64 x)\n"
	BODY WORD("%rd1", "s") WORD("%rd2", "x")
	"    ld.global.u32 %r1, [%rd1];\n"
	"    ld.global.u32 %r2, [%rd2];\n"
	"    add.u32 %r1, %r1, %r2;\n"
	"    st.global.u32 [%rd1], %r1;\n"
	END

	/* generator g = {seed, offset}: m[i] = H(seed, offset + i) & 1; offset += advance */
	".visible .entry draw(.param .u64 g, .param .u64 m, .param .u32 advance)\n"
	BODY WORD("%rd1", "m")
	"    ld.param.u64 %rd2, [g];\n"
	"    ld.global.u32 %r1, [%rd2];\n"
	"    ld.global.u32 %r2, [%rd2+4];\n"
	"    add.u32 %r3, %r2, %r0;\n"
	HASH
	"    and.b32 %r4, %r4, 1;\n"
	"    st.global.u32 [%rd1], %r4;\n"
	"    bar.sync 0;\n"
	"    setp.ne.u32 %p1, %r0, 0;\n"
	"    @%p1 bra done;\n"
	"    ld.param.u32 %r6, [advance];\n"
	"    add.u32 %r2, %r2, %r6;\n"
	"    st.global.u32 [%rd2+4], %r2;\n"
	"done:\n"
	END

	/* a library's own state: m[i] = D[i] & 1; D[i] = H(D[i], i) */
	".visible .entry libdrop(.param .u64 D, .param .u64 m)\n"
	BODY WORD("%rd1", "D") WORD("%rd2", "m")
	"    ld.global.u32 %r1, [%rd1];\n"
	"    and.b32 %r2, %r1, 1;\n"
	"    st.global.u32 [%rd2], %r2;\n"
	"    mov.u32 %r3, %r0;\n"
	HASH
	"    st.global.u32 [%rd1], %r4;\n"
	END

	/* shards of `per` words each: m[i] = H(key, 1000 * (i / per) + i mod per) & 1 */
	".visible .entry shards(.param .u64 m, .param .u32 key, .param .u32 per)\n"
	BODY
	"    mov.u32 %r1, %ctaid.x;\n"
	"    mov.u32 %r2, %ntid.x;\n"
	"    mad.lo.u32 %r0, %r1, %r2, %r0;\n"
	WORD("%rd1", "m")
	"    ld.param.u32 %r1, [key];\n"
	"    ld.param.u32 %r2, [per];\n"
	"    div.u32 %r3, %r0, %r2;\n"
	"    mul.lo.u32 %r3, %r3, 1000;\n"
	"    rem.u32 %r5, %r0, %r2;\n"
	"    add.u32 %r3, %r3, %r5;\n"
	HASH
	"    and.b32 %r4, %r4, 1;\n"
	"    st.global.u32 [%rd1], %r4;\n"
	END

	/* y = v[0] + v[1] + v[2] + v[3] in floating point: from the left, or in pairs */
	".visible .entry sum4(.param .u64 y, .param .u64 v, .param .u32 pairs)\n"
	BODY
	"    ld.param.u64 %rd1, [y];\n"
	"    ld.param.u64 %rd2, [v];\n"
	"    ld.param.u32 %r1, [pairs];\n"
	"    ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%rd2];\n"
	"    setp.ne.u32 %p1, %r1, 0;\n"
	"    add.rn.f32 %f0, %f0, %f1;\n"
	"    @%p1 bra pairwise;\n"
	"    add.rn.f32 %f0, %f0, %f2;\n"
	"    bra last;\n"
	"pairwise:\n"
	"    add.rn.f32 %f3, %f2, %f3;\n"
	"last:\n"
	"    add.rn.f32 %f0, %f0, %f3;\n"
	"    st.global.f32 [%rd1], %f0;\n"
	END

	".visible .entry sum4_pairwise(.param .u64 y, .param .u64 v)\n"
	BODY
	"    ld.param.u64 %rd1, [y];\n"
	"    ld.param.u64 %rd2, [v];\n"
	"    ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%rd2];\n"
	"    add.rn.f32 %f0, %f0, %f1;\n"
	"    add.rn.f32 %f2, %f2, %f3;\n"
	"    add.rn.f32 %f0, %f0, %f2;\n"
	"    st.global.f32 [%rd1], %f0;\n"
	END

	/* rows = sum > 0.5 */
	".visible .entry route(.param .u64 rows, .param .u64 sum)\n"
	BODY
	"    ld.param.u64 %rd1, [rows];\n"
	"    ld.param.u64 %rd2, [sum];\n"
	"    ld.global.f32 %f0, [%rd2];\n"
	"    setp.gt.f32 %p1, %f0, 0f3f000000;\n"
	"    selp.u32 %r1, 1, 0, %p1;\n"
	"    st.global.u32 [%rd1], %r1;\n"
	END

	/* y = x + Z, where Z is no argument */
	".visible .entry plus_global(.param .u64 y, .param .u64 x)\n"
	BODY WORD("%rd1", "y") WORD("%rd2", "x")
	"    ld.global.u32 %r1, [%rd2];\n"
	"    ld.global.u32 %r2, [Z];\n"
	"    add.u32 %r1, %r1, %r2;\n"
	"    st.global.u32 [%rd1], %r1;\n"
	END

	/* Z = k */
	".visible .entry set_global(.param .u32 k)\n"
	BODY
	"    ld.param.u32 %r1, [k];\n"
	"    st.global.u32 [Z], %r1;\n"
	END

	/* y = x + *table[0]: what is read is not to be seen in the arguments */
	".visible .entry plus_pointed(.param .u64 y, .param .u64 x, .param .u64 table)\n"
	BODY WORD("%rd1", "y") WORD("%rd2", "x")
	"    ld.param.u64 %rd3, [table];\n"
	"    ld.global.u64 %rd4, [%rd3];\n"
	"    ld.global.u32 %r1, [%rd2];\n"
	"    ld.global.u32 %r2, [%rd4];\n"
	"    add.u32 %r1, %r1, %r2;\n"
	"    st.global.u32 [%rd1], %r1;\n"
	END

	/* rows = n + (L & 1); L += 1 */
	".visible .entry dispatch(.param .u64 L, .param .u64 n, .param .u64 rows)\n"
	BODY WORD("%rd1", "L") WORD("%rd2", "n") WORD("%rd3", "rows")
	"    ld.global.u32 %r1, [%rd1];\n"
	"    ld.global.u32 %r2, [%rd2];\n"
	"    and.b32 %r3, %r1, 1;\n"
	"    add.u32 %r2, %r2, %r3;\n"
	"    st.global.u32 [%rd3], %r2;\n"
	"    add.u32 %r1, %r1, 1;\n"
	"    st.global.u32 [%rd1], %r1;\n"
	END

	/* c = w / 2 */
	".visible .entry halve(.param .u64 c, .param .u64 w)\n"
	BODY WORD("%rd1", "c") WORD("%rd2", "w")
	"    ld.global.u32 %r1, [%rd2];\n"
	"    shr.u32 %r1, %r1, 1;\n"
	"    st.global.u32 [%rd1], %r1;\n"
	END;

#undef BODY
#undef WORD
#undef HASH
#undef END
/* clang-format on */

#endif
