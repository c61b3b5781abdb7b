/* SPDX-License-Identifier: MIT */
/*
 * The kernels of hazards.c, by hand: one block, one thread a word, unsigned 32-bit arithmetic. Each does one
 * thing, so that a finding can name which of them wrote.
 */
#ifndef TESTS_CLIENTS_HAZARDS_PTX_H
#define TESTS_CLIENTS_HAZARDS_PTX_H

/* %rd1.. = the 64-bit parameters advanced to this thread's word. */
#define INDEX(param, reg)                                                                          \
	"	ld.param.u64 " reg ", [" param "];\n"                                              \
	"	cvta.to.global.u64 " reg ", " reg ";\n"                                            \
	"	mad.wide.u32 " reg ", %r0, 4, " reg ";\n"
#define BEGIN                                                                                      \
	"{\n"                                                                                      \
	"	.reg .pred %p<4>;\n"                                                                     \
	"	.reg .b32 %r<12>;\n"                                                                     \
	"	.reg .b64 %rd<8>;\n"                                                                     \
	"	mov.u32 %r0, %tid.x;\n"
#define END                                                                                        \
	"	ret;\n"                                                                                  \
	"}\n"

static const char hazards_ptx[] =
	".version 7.0\n"
	".target sm_75\n"
	".address_size 64\n"

	/* y = x * k */
	".visible .entry scale(.param .u64 y, .param .u64 x, .param .u32 k)\n" BEGIN INDEX("y",
											   "%rd1")
		INDEX("x",
		      "%rd2") "	ld.param.u32 %r1, [k];\n"
			      "	ld.global.u32 %r2, [%rd2];\n"
			      "	mul.lo.u32 %r2, %r2, %r1;\n"
			      "	st.global.u32 [%rd1], %r2;\n" END

			      /* s = 2 s + x */
			      ".visible .entry stat(.param .u64 s, .param .u64 x)\n" BEGIN INDEX(
				      "s", "%rd1")
				      INDEX("x",
					    "%rd2") "	ld.global.u32 %r1, [%rd1];\n"
						    "	ld.global.u32 %r2, [%rd2];\n"
						    "	mad.lo.u32 %r1, %r1, 2, %r2;\n"
						    "	st.global.u32 [%rd1], %r1;\n" END

						    /* y = x * s */
						    ".visible .entry mul(.param .u64 y, .param .u64 x, .param .u64 s)\n" BEGIN
							    INDEX("y", "%rd1") INDEX("x", "%rd2") INDEX(
								    "s",
								    "%rd3") "	ld.global.u32 %r1, [%rd2];\n"
									    "	ld.global.u32 %r2, [%rd3];\n"
									    "	mul.lo.u32 %r1, %r1, %r2;\n"
									    "	st.global.u32 [%rd1], %r1;\n" END

									    /* p += k */
									    ".visible .entry add(.param .u64 p, .param .u32 k)\n" BEGIN
										    INDEX(
											    "p", "%rd1") "	ld.param.u32 %r1, [k];\n"
													 "	ld.global.u32 %r2, [%rd1];\n"
													 "	add.u32 %r2, %r2, %r1;\n"
													 "	st.global.u32 [%rd1], %r2;\n" END

													 /* u = u w mod 97 */
													 ".visible .entry power(.param .u64 u, .param .u64 w)\n" BEGIN
														 INDEX(
															 "u", "%rd1") INDEX("w", "%rd2") "	ld.global.u32 %r1, [%rd1];\n"
																			 "	ld.global.u32 %r2, [%rd2];\n"
																			 "	mul.lo.u32 %r1, %r1, %r2;\n"
																			 "	rem.u32 %r1, %r1, 97;\n"
																			 "	st.global.u32 [%rd1], %r1;\n" END

																			 /* K[cur + i] = x[i]; cur += n */
																			 ".visible .entry append(.param .u64 K, .param .u64 cur, .param .u64 x, .param .u32 n)\n" BEGIN INDEX("K", "%rd1") INDEX("x", "%rd2") "	ld.param.u64 %rd3, [cur];\n"
																																			      "	cvta.to.global.u64 %rd3, %rd3;\n"
																																			      "	ld.param.u32 %r1, [n];\n"
																																			      "	ld.global.u32 %r2, [%rd3];\n"
																																			      "	ld.global.u32 %r3, [%rd2];\n"
																																			      "	mad.wide.u32 %rd1, %r2, 4, %rd1;\n"
																																			      "	st.global.u32 [%rd1], %r3;\n"
																																			      "	bar.sync 0;\n"
																																			      "	setp.ne.u32 %p1, %r0, 0;\n"
																																			      "	@%p1 bra done;\n"
																																			      "	add.u32 %r2, %r2, %r1;\n"
																																			      "	st.global.u32 [%rd3], %r2;\n"
																																			      "done:\n" END

																																			      /* y = sum K[0..cur) */
																																			      ".visible .entry sum(.param .u64 y, .param .u64 K, .param .u64 cur)\n" BEGIN INDEX("y", "%rd1") "	ld.param.u64 %rd2, [K];\n"
																																															      "	ld.param.u64 %rd3, [cur];\n"
																																															      "	ld.global.u32 %r1, [%rd3];\n"
																																															      "	mov.u32 %r2, 0;\n"
																																															      "	mov.u32 %r3, 0;\n"
																																															      "more:\n"
																																															      "	setp.ge.u32 %p1, %r3, %r1;\n"
																																															      "	@%p1 bra done;\n"
																																															      "	mad.wide.u32 %rd4, %r3, 4, %rd2;\n"
																																															      "	ld.global.u32 %r4, [%rd4];\n"
																																															      "	add.u32 %r2, %r2, %r4;\n"
																																															      "	add.u32 %r3, %r3, 1;\n"
																																															      "	bra more;\n"
																																															      "done:\n"
																																															      "	st.global.u32 [%rd1], %r2;\n" END

																																															      /* P[i] += 1 + sum P[0..i), with i + 1 threads: nothing beyond P[i] is touched, and that can be proved */
																																															      ".visible .entry slot(.param .u64 P, .param .u32 i)\n" BEGIN INDEX("P",
																																																								 "%rd1") "	ld.param.u64 %rd2, [P];\n"
																																																									 "	ld.param.u32 %r1, [i];\n"
																																																									 "	mad.wide.u32 %rd2, %r1, 4, %rd2;\n"
																																																									 "	mov.u32 %r2, 1;\n"
																																																									 "	setp.ge.u32 %p1, %r0, %r1;\n"
																																																									 "	@%p1 bra own;\n"
																																																									 "	ld.global.u32 %r2, [%rd1];\n"
																																																									 "own:\n"
																																																									 "	atom.global.add.u32 %r3, [%rd2], %r2;\n" END

																																																									 /* the same by a loop of one thread */
																																																									 ".visible .entry slot_loop(.param .u64 P, .param .u32 i)\n" BEGIN
																																																									 "	ld.param.u64 %rd1, [P];\n"
																																																									 "	ld.param.u32 %r1, [i];\n"
																																																									 "	mov.u32 %r2, 1;\n"
																																																									 "	mov.u32 %r3, 0;\n"
																																																									 "more:\n"
																																																									 "	mad.wide.u32 %rd2, %r3, 4, %rd1;\n"
																																																									 "	setp.ge.u32 %p1, %r3, %r1;\n"
																																																									 "	@%p1 bra done;\n"
																																																									 "	ld.global.u32 %r4, [%rd2];\n"
																																																									 "	add.u32 %r2, %r2, %r4;\n"
																																																									 "	add.u32 %r3, %r3, 1;\n"
																																																									 "	bra more;\n"
																																																									 "done:\n"
																																																									 "	st.global.u32 [%rd2], %r2;\n" END

																																																									 /*
	 * generator g = {seed, offset}: m[i] = H(seed, offset + i) & 1, offset += threads, where
	 * h = seed * 2654435761 + i * 40503 + 12345; h ^= h >> 16; h *= 2246822519; h ^= h >> 13
	 */
																																																									 ".visible .entry mask(.param .u64 g, .param .u64 m)\n" BEGIN
																																																										 INDEX("m", "%rd1") "	ld.param.u64 %rd2, [g];\n"
																																																												    "	ld.global.u32 %r1, [%rd2];\n"
																																																												    "	ld.global.u32 %r2, [%rd2+4];\n"
																																																												    "	add.u32 %r3, %r2, %r0;\n"
																																																												    "	mul.lo.u32 %r4, %r1, 2654435761;\n"
																																																												    "	mad.lo.u32 %r4, %r3, 40503, %r4;\n"
																																																												    "	add.u32 %r4, %r4, 12345;\n"
																																																												    "	shr.u32 %r5, %r4, 16;\n"
																																																												    "	xor.b32 %r4, %r4, %r5;\n"
																																																												    "	mul.lo.u32 %r4, %r4, 2246822519;\n"
																																																												    "	shr.u32 %r5, %r4, 13;\n"
																																																												    "	xor.b32 %r4, %r4, %r5;\n"
																																																												    "	and.b32 %r4, %r4, 1;\n"
																																																												    "	st.global.u32 [%rd1], %r4;\n"
																																																												    "	bar.sync 0;\n"
																																																												    "	setp.ne.u32 %p1, %r0, 0;\n"
																																																												    "	@%p1 bra done;\n"
																																																												    "	mov.u32 %r6, %ntid.x;\n"
																																																												    "	add.u32 %r2, %r2, %r6;\n"
																																																												    "	st.global.u32 [%rd2+4], %r2;\n"
																																																												    "done:\n" END;

#undef INDEX
#undef BEGIN
#undef END

#endif
