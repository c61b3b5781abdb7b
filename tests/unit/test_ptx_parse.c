/* SPDX-License-Identifier: MIT */
/*
 * The PTX parser: each feature of the grammar with its checked result, then every kernel of
 * tests/kernels. Refusals are in test_ptx_refuse.c.
 */
#include "tests/tap.h"
#include "tracker/ptx.h"

#include <glob.h>

static const char head[] = ".version 9.0\n.target sm_90a, debug\n.address_size 64\n";

static struct rs_ptx *cur;

/* Parse head + text; the previous program is released. */
static const struct rs_ptx *parse(const char *text)
{
	struct rs_ptx_error err = {0, ""};
	static char buf[8192];
	int rc;

	rs_ptx_free(cur);
	cur = NULL;
	snprintf(buf, sizeof(buf), "%s%s", head, text);
	rc = rs_ptx_parse(buf, strlen(buf), &cur, &err);
	if (rc) { /* the checks that follow would read the program */
		ok(0, "a good text is refused");
		tap_diag("line %u: %s\n%s", err.line, err.text, text);
		exit(tap_done());
	}
	return cur;
}

/* The kernel `k` with this body; p is a .u64 parameter. */
static const struct rs_ptx_func *body(const char *text)
{
	static char buf[4096];

	snprintf(buf, sizeof(buf),
		 ".global .u32 tab[8];\n.visible .entry k(.param .u64 p)\n{\n"
		 ".reg .b32 %%r<20>; .reg .b64 %%rd<8>; .reg .f32 %%f<4>; .reg .pred %%p<4>;\n"
		 "%s\n}\n",
		 text);
	return rs_ptx_find(parse(buf), "k");
}

static const struct rs_ptx_operand *operand(const char *text, unsigned i)
{
	static const struct rs_ptx_operand none;
	const struct rs_ptx_func *f = body(text);

	return f->ninsns && f->insns[0].noperands > i ? &f->insns[0].op[i] : &none;
}

static const char *reg_name(int32_t reg)
{
	const struct rs_ptx_func *f = rs_ptx_find(cur, "k");

	return f && reg >= 0 && (uint32_t)reg < f->nregs ? f->regs[reg].name : "(none)";
}

static void test_module(void)
{
	const struct rs_ptx *ptx =
		parse("// comment\n/* two\nlines */ .visible .entry e { ret; }\n");
	const struct rs_ptx_func *f;

	is_u64(ptx->version, 90, "version");
	is_u64(ptx->sm, 90, "sm, with the letter dropped");
	is_u64(ptx->address_size, 64, "address size");
	f = rs_ptx_find(ptx, "e");
	ok(f && f->is_entry && f->visible && !f->nparams && !f->is_extern, "entry without ()");
	is_u64(f->line, 6, "lines are counted through comments");
	ok(!rs_ptx_find(ptx, "nothing"), "an unknown function is NULL");
	is_str(rs_ptx_type_name(RS_PTX_BF16X2), "bf16x2", "type name");
	is_u64(rs_ptx_type_bytes(RS_PTX_B128), 16, "type bytes");
}

static void test_params(void)
{
	const struct rs_ptx *ptx =
		parse(".entry e(.param .u32 a, .param .align 16 .b8 s[20],\n"
		      " .param .u64 .ptr .global .align 256 q, .param .u64 .ptr .align 1 r,\n"
		      " .param .u8 c, .param .f64 d)\n"
		      ".maxntid 128, 2\n.reqntid 64\n.minnctapersm 4 .maxnreg 32 .noreturn\n"
		      "{ ret; }\n");
	const struct rs_ptx_func *f = rs_ptx_find(ptx, "e");

	is_u64(f->nparams, 6, "six parameters");
	is_u64(f->params[1]->offset, 16, "aligned struct");
	is_u64(f->params[1]->size, 20, "struct size");
	ok(f->params[1]->is_array, "struct is an array");
	is_u64(f->params[2]->offset, 40, "pointer behind it");
	is_u64(f->params[2]->align, 8, ".ptr's alignment is the pointee's");
	is_u64(f->params[4]->offset, 56, "byte");
	is_u64(f->params[5]->offset, 64, "double");
	is_u64(f->param_bytes, 72, "parameter block");
	ok(f->maxntid[0] == 128 && f->maxntid[1] == 2 && f->maxntid[2] == 1, ".maxntid");
	ok(f->reqntid[0] == 64 && f->reqntid[1] == 1, ".reqntid");
	ok(!f->visible, "not visible");
}

static void test_variables(void)
{
	const struct rs_ptx *ptx = parse(
		".extern .shared .align 16 .b8 dyn[];\n.shared .f32 a[4][5], b;\n"
		".visible .const .u16 c[4] = {1, -1, 0x10, 3};\n.weak .global .f32 f = 0f3F800000;\n"
		".global .f64 d[2] = {1.5, 0d4000000000000000};\n.global .v4 .f32 v;\n"
		".global .s32 open[] = {1, 2, 3};\n.global .b8 m[2][3] = {{1}, {4, 5, 6}};\n"
		".global .align 32 .b8 al;\n.global .f32 h[3] = {1.5, 2, -0f3F800000};\n"
		".extern .global .u32 late[4];\n.global .u32 late[4] = {9};\n"
		".global .attribute(.managed) .u32 man;\n.global .u64 e = (1 << 40) + 3*2;\n");
	struct rs_ptx_var **v = ptx->vars;
	uint16_t u16;
	uint32_t u32;
	uint64_t u64;

	is_u64(ptx->nvars, 14, "an .extern and its definition are one");
	ok(v[0]->is_extern && !v[0]->size && v[0]->align == 16, "extern shared");
	is_u64(v[1]->size, 80, "two dimensions");
	is_str(v[2]->name, "b", "list of names");
	memcpy(&u16, v[3]->init + 2, 2);
	ok(v[3]->space == RS_PTX_SPACE_CONST && u16 == 0xffff, "const, negative");
	memcpy(&u32, v[4]->init, 4);
	is_u64(u32, 0x3f800000, "0f");
	memcpy(&u64, v[5]->init, 8);
	is_u64(u64, 0x3ff8000000000000, "decimal double");
	memcpy(&u64, v[5]->init + 8, 8);
	is_u64(u64, 0x4000000000000000, "0d");
	ok(v[6]->size == 16 && v[6]->align == 16, ".v4 variable");
	ok(v[7]->size == 12 && v[7]->init[8] == 3, "open array takes the list's size");
	ok(!memcmp(v[8]->init, "\1\0\0\4\5\6", 6), "nested lists fill their rows");
	is_u64(v[9]->align, 32, ".align");
	memcpy(&u32, v[10]->init, 4);
	is_u64(u32, 0x3fc00000, "decimal into .f32");
	memcpy(&u32, v[10]->init + 4, 4);
	is_u64(u32, 0x40000000, "integer into .f32");
	memcpy(&u32, v[10]->init + 8, 4);
	is_u64(u32, 0xbf800000, "negative 0f");
	ok(!v[11]->is_extern && v[11]->init && v[11]->init[0] == 9, "definition after .extern");
	memcpy(&u64, v[13]->init, 8);
	is_u64(u64, (1ull << 40) + 6, "constant expression");
}

static void test_addresses(void)
{
	const struct rs_ptx *ptx = parse(
		".global .u32 x[4];\n.func fn();\n.global .u64 a[3] = {generic(x), 5, x+8};\n"
		".global .u64 b = generic(x)+4;\n.global .u64 c = fn;\n"
		".global .align 1 .u8 q[9] = {1, 0XFF(generic(x)+12), 0xFF00(generic(x)+12),\n"
		" 0xFF0000(generic(x)+12), 0xFF000000(generic(x)+12), 0xFF00000000(generic(x)+12),\n"
		" 0xFF0000000000(generic(x)+12), 0xFF000000000000(generic(x)+12),\n"
		" 0xFF00000000000000(generic(x)+12)};\n");
	struct rs_ptx_var **v = ptx->vars;

	is_u64(v[1]->nrelocs, 2, "two addresses");
	is_str(v[1]->relocs[0].symbol, "x", "generic(x)");
	ok(v[1]->relocs[1].offset == 16 && v[1]->relocs[1].addend == 8, "x+8");
	is_u64(v[1]->init[8], 5, "number between");
	is_u64((uint64_t)v[2]->relocs[0].addend, 4, "generic(x)+4");
	is_str(v[3]->relocs[0].symbol, "fn", "function address");
	ok(v[4]->nrelocs == 1 && v[4]->relocs[0].offset == 1 && v[4]->relocs[0].bytes == 8 &&
		   v[4]->relocs[0].addend == 12,
	   "the bytes of a packed pointer are one address");
}

static void test_opcodes(void)
{
	const struct rs_ptx_insn *in = body("cvt.rn.f32.s64 %f1, %rd1;")->insns;

	is_u64(in->nparts, 4, "parts");
	ok(in->type == RS_PTX_S64 && in->type2 == RS_PTX_F32, "cvt types");
	ok(rs_ptx_has(in, "rn") && !rs_ptx_has(in, "cvt") && !rs_ptx_has(in, "r"), "rs_ptx_has");
	in = body("ld.global.nc.L1::no_allocate.v4.f32 {%f0,%f1,%f2,%f3}, [%rd1];")->insns;
	ok(in->space == RS_PTX_SPACE_GLOBAL && in->vec == 4 && in->type == RS_PTX_F32, "ld.v4");
	is_str(in->part[3], "L1::no_allocate", "a part with ::");
	ok(!in->type2, "one type only");
	in = body("cvta.to.global.u64 %rd1, %rd2;")->insns;
	is_u64(in->space, RS_PTX_SPACE_GLOBAL, "cvta.to.global");
	in = body("st.shared::cta.u32 [%r1], %r2;")->insns;
	is_u64(in->space, RS_PTX_SPACE_SHARED, "shared::cta");
	in = body("atom.global.add.f32 %f1, [%rd1], %f2;")->insns;
	ok(in->space == RS_PTX_SPACE_GLOBAL && in->type == RS_PTX_F32 && in->vec == 1, "atom");
	in = body("bar .sync 0;")->insns;
	is_str(in->text, "bar.sync", "blanks before a dot");
	ok(in->noperands == 1 && !in->type && !in->space && in->pred == -1, "bare");
	in = body("\n@!%p1 exit;")->insns;
	ok(in->pred >= 0 && in->pred_negate, "guard");
	is_str(reg_name(in->pred), "%p1", "guard's register");
	is_u64(in->line, 9, "line of an instruction");
	in = body("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3},{%r0,%r1},"
		  "{%r2},{%f0,%f1,%f2,%f3};")
		     ->insns;
	ok(in->noperands == 4 && in->op[1].nelems == 2 && in->type == RS_PTX_F32, "mma");
}

static void test_registers(void)
{
	const struct rs_ptx_func *f = body("mov.u32 %r7, %r3; mov.u32 %r3, %r7;");

	is_u64(f->nregs, 2, "only used registers of a range are numbered");
	ok(f->insns[0].op[0].reg == f->insns[1].op[1].reg, "same register twice");
	is_str(f->regs[0].name, "%r7", "name");
	is_u64(f->regs[0].type, RS_PTX_B32, "type");
	f = body(".reg .u32 a, %b; .reg .f32 %val_f32_<12>, %x1<3>;\n"
		 "mov.u32 a, %b; mov.f32 %val_f32_11, %x12; add.u32 a, a, %val_f32_02;");
	is_u64(f->nregs, 4, "names without %, ranges of several spellings");
	is_u64(f->insns[1].op[1].kind, RS_PTX_OP_REG, "%x1<3> holds %x12");
	is_u64(f->insns[2].op[2].kind, RS_PTX_OP_SREG, "no leading zeros in a range");
	f = body("mov.u32 %r1, 1; { .reg .b32 %r<2>; mov.u32 %r1, 2; mov.u32 %r2, 3; }\n"
		 "{ .reg .b32 %r1; mov.u32 %r1, 4; } mov.u32 %r1, 5;");
	ok(f->insns[0].op[0].reg != f->insns[1].op[0].reg, "nested scope renames");
	ok(f->insns[1].op[0].reg != f->insns[3].op[0].reg, "each scope its own");
	ok(f->insns[0].op[0].reg == f->insns[4].op[0].reg, "outer register after the scope");
	is_u64(f->nregs, 4, "four registers");
	f = body(".reg .v4 .f32 v; ld.global.v4.f32 v, [%rd1]; add.f32 v.w, v.x, v.g;");
	ok(f->insns[0].op[0].kind == RS_PTX_OP_VEC && f->insns[0].op[0].nelems == 4, "vector");
	ok(f->insns[1].op[2].reg == f->insns[1].op[1].reg + 1, "components");
	is_str(reg_name(f->insns[1].op[0].reg), "v.w", "component's name");
}

static void test_immediates(void)
{
	is_u64((uint64_t)operand("mov.u32 %r1, -5;", 1)->imm, (uint64_t)-5, "negative");
	is_u64((uint64_t)operand("mov.u32 %r1, 0xFFFFFFFFU;", 1)->imm, 0xffffffff, "hex, U");
	is_u64((uint64_t)operand("mov.u32 %r1, 017;", 1)->imm, 15, "octal");
	is_u64((uint64_t)operand("mov.u32 %r1, 0b101;", 1)->imm, 5, "binary");
	is_u64((uint64_t)operand("mov.u64 %rd1, 18446744073709551615;", 1)->imm, UINT64_MAX, "max");
	is_u64((uint64_t)operand("mov.u32 %r1, (7 + 3*4 - 1) >> 1 | 64;", 1)->imm, 73,
	       "expression");
	is_u64((uint64_t)operand("mov.u32 %r1, 1 > 2 ? 3 : ~4 & 0xff;", 1)->imm, 0xfb, "ternary");
	is_u64((uint64_t)operand("mov.u32 %r1, -7 / 2;", 1)->imm, (uint64_t)-3, "signed division");
	is_u64((uint64_t)operand("mov.u32 %r1, (.u64)-2 / 2;", 1)->imm, INT64_MAX, "cast");
	is_u64((uint64_t)operand("mov.u32 %r1, WARP_SZ;", 1)->imm, 32, "WARP_SZ");
	is_u64((uint64_t)operand("mov.f32 %f1, 0f3F800000;", 1)->imm, 0x3f800000, "0f");
	is_u64(operand("mov.f32 %f1, 0f3F800000;", 1)->fbits, 32, "0f bits");
	is_u64((uint64_t)operand("mov.f32 %f1, -0f3F800000;", 1)->imm, 0xbf800000, "negative 0f");
	is_u64((uint64_t)operand("add.f32 %f1, %f2, 1.5;", 2)->imm, 0x3fc00000, "decimal in .f32");
	is_u64((uint64_t)operand("add.f64 %rd1, %rd2, -1e1;", 2)->imm, 0xc024000000000000, "1e1");
	is_u64(operand("add.f64 %rd1, %rd2, 0d3FF0000000000000;", 2)->fbits, 64, "0d");
}

static void test_operands(void)
{
	const struct rs_ptx_operand *o = operand("ld.param.u64 %rd1, [p];", 1);

	ok(o->kind == RS_PTX_OP_ADDR && o->reg == -1 && o->var && !o->imm, "[param]");
	ok(o->var == rs_ptx_find(cur, "k")->params[0], "resolved to the parameter");
	o = operand("ld.u32 %r1, [%rd1+-8];", 1);
	ok(o->reg >= 0 && o->imm == -8 && !o->name, "[reg+-imm]");
	o = operand("ld.u32 %r1, [%rd1+4+(2*4)];", 1);
	is_u64((uint64_t)o->imm, 12, "[reg+expression]");
	o = operand("ld.global.u32 %r1, [tab+4];", 1);
	ok(o->var && o->imm == 4 && !strcmp(o->name, "tab"), "[symbol+imm]");
	o = operand("ld.u32 %r1, [16];", 1);
	ok(o->kind == RS_PTX_OP_ADDR && o->imm == 16 && o->reg == -1 && !o->name, "[imm]");
	o = operand("ld.global.u32 %r1, tab[3];", 1);
	ok(o->kind == RS_PTX_OP_ADDR && o->imm == 12, "element of an array, ld");
	o = operand("mov.u64 %rd1, tab[3];", 1);
	ok(o->kind == RS_PTX_OP_SYM && o->imm == 12 && o->var, "element's address, mov");
	o = operand("mov.u64 %rd1, tab+5;", 1);
	ok(o->kind == RS_PTX_OP_SYM && o->imm == 5, "symbol+imm as a value");
	o = operand("mov.u32 %r1, %ctaid.x;", 1);
	ok(o->kind == RS_PTX_OP_SREG, "special register");
	is_str(o->name, "%ctaid.x", "its name");
	o = operand("mov.b64 {%r1, _}, %rd1;", 0);
	ok(o->kind == RS_PTX_OP_VEC && o->nelems == 2 && o->elems[1].kind == RS_PTX_OP_SINK,
	   "{a,_}");
	o = operand("shfl.sync.down.b32 %r1|%p2, %r2, 16, 31, -1;", 0);
	is_str(reg_name(o->reg2), "%p2", "second destination");
	o = operand("elect.sync _|%p1, -1;", 0);
	ok(o->kind == RS_PTX_OP_SINK && o->reg2 >= 0, "_|%%p");
	o = operand("selp.u32 %r1, %r2, %r3, !%p1;", 3);
	ok(o->kind == RS_PTX_OP_REG && o->negate, "negated predicate");
	o = operand("tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [tab, {%f1, %f2}];", 1);
	ok(o->nelems == 1 && o->elems[0].kind == RS_PTX_OP_VEC && o->elems[0].nelems == 2,
	   "coordinates inside the bracket");
	o = operand("vadd.u32.u32.u32 %r1, %r2.b1, %r3;", 1);
	is_str(o->name, "b1", "byte selector");
}

static void test_branches(void)
{
	const struct rs_ptx_func *f = body("bra END; L: bra.uni L; ts: .branchtargets L, END, M;\n"
					   "brx.idx %r1, ts; M: @%p1 bra M; END:");

	is_u64((uint64_t)f->insns[0].op[0].target, 4, "label behind the last instruction");
	is_u64((uint64_t)f->insns[1].op[0].target, 1, "backwards");
	is_str(f->insns[1].op[0].name, "L", "label's name");
	ok(f->ntables == 1 && f->tables[0].n == 3, "branch table");
	ok(f->tables[0].target[0] == 1 && f->tables[0].target[1] == 4 &&
		   f->tables[0].target[2] == 3,
	   "its targets");
	ok(f->insns[2].op[1].kind == RS_PTX_OP_SYM && f->insns[2].op[1].target == 0, "brx.idx");
	f = body(
		"{ .reg .pred q; L: @q bra D; bra L; D: } { .reg .pred q; L: @q bra D; bra L; D: }\n"
		"{ bra D; } D: ret;");
	ok(f->insns[0].op[0].target == 2 && f->insns[2].op[0].target == 4, "labels are scoped");
	is_u64((uint64_t)f->insns[4].op[0].target, 5, "branch out of a scope");
	ok(f->insns[0].pred != f->insns[2].pred, "and so are the predicates");
	f = body("L: { { bra L; } ret; L: ret; } ret;");
	is_u64((uint64_t)f->insns[0].op[0].target, 2, "the innermost label, though it comes later");
}

static void test_skipped(void)
{
	const struct rs_ptx_func *f =
		body(".file 1 \"a.cu\", 12, 34\n.loc 1 2 3 mov.u32 %r1, 1;\n"
		     ".loc 1 5 6, function_name $L__info0, inlined_at 1 7 8 mov.u32 %r1, 2;\n"
		     ".loc 1 5 6, function_name $L__info0 + 12, inlined_at 1 7 8\n"
		     ".pragma \"nounroll\"; mov.u32 %r1, 3;");

	is_u64(f->ninsns, 3, "directives take nothing that is not theirs");
	ok(parse(".section .debug_str\n{\ninfo: .b8 1,2 .b32 info+4 .b64 .debug_abbrev\n}\n"
		 ".entry e() { ret; }") &&
		   rs_ptx_find(cur, "e"),
	   ".section");
}

static void test_calls(void)
{
	const struct rs_ptx *ptx = parse(
		".extern .func (.param .b32 ret) printf2 (.param .b64 a, .param .b64 b);\n"
		".func (.param .b32 r) add(.param .b32 _, .param .b32 _);\n"
		".func (.param .b32 r) add(.param .b32 a, .param .align 8 .b8 s[12])\n"
		"{ .reg .b32 %r<2>; ld.param.b32 %r1, [a]; st.param.b32 [r], %r1; ret; }\n"
		".func old(.reg .u32 x) { mov.u32 x, 1; }\n"
		".entry k() { .reg .b32 %r<4>; .reg .b64 %rd<4>;\n"
		"{ .param .b32 p0; .param .b32 rv; st.param.b32 [p0], %r1;\n"
		"call.uni (rv), add, (p0, 7); }\n{ .param .b32 rv;\n"
		"proto: .callprototype (.param .b32 _) _ (.param .b64 _);\n"
		"call (rv), %rd1, (%rd2), proto; call add; call add, (%r1); mov.u64 %rd3, add;\n"
		"} ret; }\n");
	const struct rs_ptx_func *f = rs_ptx_find(ptx, "k"), *add = rs_ptx_find(ptx, "add");

	is_u64(ptx->nfuncs, 4, "a declaration and its definition are one function");
	ok(rs_ptx_find(ptx, "printf2")->is_extern, "extern");
	ok(!add->is_extern && add->nparams == 2 && add->nrets == 1 && add->param_bytes == 20,
	   "func");
	ok(add->insns[1].op[0].var == add->rets[0], "return parameter");
	is_u64(rs_ptx_find(ptx, "old")->params[0]->space, RS_PTX_SPACE_REG, ".reg parameter");
	is_u64(f->nvars, 3, "call-scope parameters");
	ok(f->insns[1].noperands == 3 && f->insns[1].op[0].kind == RS_PTX_OP_LIST &&
		   f->insns[1].op[1].kind == RS_PTX_OP_FUNC && f->insns[1].op[2].nelems == 2,
	   "call (ret), f, (args)");
	ok(f->insns[1].op[2].elems[0].var == f->vars[0], "argument is the scope's variable");
	ok(f->insns[2].noperands == 4 && f->insns[2].op[1].kind == RS_PTX_OP_REG &&
		   f->insns[2].op[3].kind == RS_PTX_OP_SYM,
	   "indirect call");
	ok(f->insns[3].noperands == 1 && f->insns[3].op[0].kind == RS_PTX_OP_FUNC, "call f");
	ok(f->insns[4].noperands == 2 && f->insns[4].op[1].kind == RS_PTX_OP_LIST, "call f, (a)");
	is_u64(f->insns[5].op[1].kind, RS_PTX_OP_FUNC, "address of a function");
}

/* The kernels the tests run on; from the source directory only. */
static void test_corpus(void)
{
	glob_t g;
	size_t i;

	if (glob("tests/kernels/*.ptx", 0, NULL, &g))
		return;
	for (i = 0; i < g.gl_pathc; i++) {
		FILE *f = fopen(g.gl_pathv[i], "rb");
		struct rs_ptx_error err = {0, ""};
		struct rs_ptx *ptx = NULL;
		char *text = malloc(1 << 24);
		size_t n = f && text ? fread(text, 1, 1 << 24, f) : 0;
		int rc = rs_ptx_parse(text, n, &ptx, &err);

		ok(!rc && ptx->nfuncs, "%s", g.gl_pathv[i]);
		if (rc)
			tap_diag("line %u: %s", err.line, err.text);
		rs_ptx_free(ptx);
		free(text);
		if (f)
			fclose(f);
	}
	globfree(&g);
}

int main(void)
{
	test_module();
	test_params();
	test_variables();
	test_addresses();
	test_opcodes();
	test_registers();
	test_immediates();
	test_operands();
	test_branches();
	test_skipped();
	test_calls();
	rs_ptx_free(cur);
	test_corpus();
	return tap_done();
}
