/* SPDX-License-Identifier: MIT */
/*
 * What the PTX parser refuses: the line, the reason, and that hostile texts cost little.
 */
#include "tests/tap.h"
#include "tracker/ptx.h"

#include <errno.h>
#include <time.h>

#define HEAD ".version 9.0\n.target sm_90\n"

static void refuse_text(const char *text, uint32_t line, const char *reason)
{
	size_t len = strlen(text);
	char *exact = malloc(len + 1); /* of just that size, for the address sanitizer */
	struct rs_ptx_error err = {0, ""};
	struct rs_ptx *ptx = NULL;
	int rc;

	memcpy(exact, text, len);
	errno = 77;
	rc = rs_ptx_parse(exact, len, &ptx, &err);
	ok(rc == -EINVAL && !ptx && err.line == line && strstr(err.text, reason) && errno == 77,
	   "refused: %s", reason);
	if (rc != -EINVAL || err.line != line || !strstr(err.text, reason))
		tap_diag("  rc %d, line %u: %s", rc, err.line, err.text);
	rs_ptx_free(ptx);
	free(exact);
}

static void refuse_module(const char *text, uint32_t line, const char *reason)
{
	char buf[2048];

	snprintf(buf, sizeof(buf), HEAD "%s", text);
	refuse_text(buf, line + 2, reason);
}

/* In a body whose first line is 1. */
static void refuse_body(const char *text, uint32_t line, const char *reason)
{
	char buf[2048];

	snprintf(buf, sizeof(buf),
		 ".global .u32 tab[4]; .entry k() { .reg .b32 %%r<9>; .reg .pred %%p;\n%s\n}",
		 text);
	refuse_module(buf, line + 1, reason);
}

static void test_module(void)
{
	refuse_text("", 1, ".version");
	refuse_text(".target sm_90", 1, ".version");
	refuse_text("\n.version 9\n", 2, "version such as");
	refuse_text(".version 9.0\n.target sm_90x1\n", 2, "sm_90");
	refuse_module("/* never\n\n ends", 1, "unterminated comment");
	refuse_module(".pragma \"x\n;", 1, "unterminated string");
	refuse_module(".alias a, b;", 1, ".alias is not supported");
	refuse_module("\nfoo", 2, "'foo'");
	refuse_module(".entry a() {}\n.entry a() {}", 2, "duplicate definition of 'a'");
	refuse_module(".func a();\n.entry a() {}", 2, "duplicate");
	refuse_module(".entry a(.param .u32 x, .param .u32 x) {}", 1,
		      "duplicate definition of 'x'");
	refuse_module(".entry a(.param .pred x) {}", 1, ".pred");
	refuse_module(".extern .func a() {}", 1, "';' after an .extern");
	refuse_module(".entry a() .foo 3 {}", 1, "'.foo'");
	refuse_module(".entry a() .maxntid 1,2,3,4 {}", 1, "three dimensions");
	refuse_module(".entry a() .maxntid 0 {}", 1, "number of threads is 0");
	refuse_module("\x01", 1, "unexpected character");
	refuse_module(".section .debug { 1, 2", 1, "'}'");
}

static void test_variables(void)
{
	refuse_module(".global .u32 x[2] = {1, 2, 3};", 1, "too many initialisers for 'x'");
	refuse_module(".global .u32 x = {1};", 1, "a constant");
	refuse_module(".global .u32 x[2][2] = {{1,2,3}};", 1, "too many");
	refuse_module(".global .u32 x[2] = {nothing, 2};", 1, "unknown symbol 'nothing'");
	refuse_module(".global .u16 y; .global .u16 x = y;", 1, "does not fit");
	refuse_module(".global .b8 y, x = 0xFF00(y);", 1, "follow the byte below");
	refuse_module(".global .b8 y, x = 0xFF0(y);", 1, "select one byte");
	refuse_module(".global .u32 x = 1.5;", 1, "number of the variable's type");
	refuse_module(".global .u32 x = 1 / 0;", 1, "division by zero");
	refuse_module(".global .u32 x;\n.global .u32 x;", 2, "duplicate");
	refuse_module(".extern .global .u32 x;\n.const .u32 x = 1;", 2, "state space");
	refuse_module(".global .align 3 .u32 x;", 1, "power of two");
	refuse_module(".global .u32 .f32 x;", 1, "one type");
	refuse_module(".global x;", 1, "a type");
	refuse_module(".shared .u32 x = 1;", 1, "no initialiser");
	refuse_module(".global .u32 x = 99999999999999999999;", 1, "malformed number");
	refuse_module(".global .f32 x = 0f3F8;", 1, "malformed number");
	refuse_module(".global .b8 x[1][2][3][4][5][6][7][8];", 1, "dimensions");
}

static void test_bodies(void)
{
	refuse_body("add.u32 %r1, %r2, foo;", 1, "unknown symbol 'foo'");
	refuse_body("\nbra nowhere;", 2, "undefined label 'nowhere'");
	refuse_body("bra L; { L: }", 1, "undefined label 'L'");
	refuse_body("L: ret;\nL: ret;", 2, "duplicate definition of 'L'");
	refuse_body("brx.idx %r1, L; L:", 1, "not a .branchtargets");
	refuse_body("add.u32 %r1, %r2, %r3", 2, "';'");
	refuse_body("@%q ret;", 1, "a predicate register");
	refuse_body("@%p .reg .u32 x;", 1, "an instruction");
	refuse_body("ld.u32 %r1, [%tid.x];", 1, "neither register nor variable");
	refuse_body("ld.u32 %r1, [%r1;", 1, "']'");
	refuse_body("ld.u32 %r1, tab[%r1];", 1, "a constant index");
	refuse_body("mov.u32 %r1, {%r1, {%r2}};", 1, "an element");
	refuse_body("mov.u32 %r1, {%r1,};", 1, "an element");
	refuse_body("mov.u32 %r1, -tab;", 1, "only a register");
	refuse_body("mov.u32 %r1, %r1.x;", 1, "selects nothing");
	refuse_body("mov.u32 %r1, tab.x;", 1, "no components");
	refuse_body("call tab;", 1, "a function");
	refuse_body("f 1,2,3,4,5,6,7,8,9;", 1, "more than 8 operands");
	refuse_body("a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q %r1;", 1, "more than 16 parts");
	refuse_body(".reg .b32 %r1<2>, %r1<2>;", 1, "duplicate");
	refuse_body(".maxntid 3;", 1, "'.maxntid'");
	refuse_body("{ ret;", 2, "the text ends");
	refuse_body("mov.u32 %r1, ((((1);", 1, "')'");
}

static void test_bombs(void)
{
	refuse_body(".reg .b32 %q<4000000000>;", 1, "register count is 4000000000");
	refuse_body(".reg .b32 %q<1000000>;\n.reg .b32 %s<1000000>;", 2, "registers in a function");
	refuse_module(".global .b64 x[0x7fffffffffffffff];", 1, "array size");
	refuse_module(".global .b64 x[1000000000][1000000000];", 1, "larger than");
	refuse_module(".global .b64 x[][1000000000][1000000000];", 1, "larger than");
	refuse_module(".global .b8 x[4000000000] = {1};", 1, "initialisers exceed");
	refuse_module(".global .b8 x[][1000000000] = {1};", 1, "initialisers exceed");
	refuse_module(".entry a(.param .b8 x[1048576], .param .u32 y) {}", 1,
		      "parameters are larger");
	refuse_body(".local .b8 x[1048577];", 1, "larger than 1048576 bytes");
}

/* head, `unit` n times, tail */
static void refuse_repeated(const char *start, const char *unit, size_t n, const char *reason)
{
	size_t head_len = strlen(start), len = strlen(unit), i;
	char *text = malloc(head_len + len * n + 1);
	struct rs_ptx_error err = {0, ""};
	struct rs_ptx *ptx = NULL;
	int rc;

	memcpy(text, start, head_len);
	for (i = 0; i < n; i++)
		memcpy(text + head_len + i * len, unit, len);
	rc = rs_ptx_parse(text, head_len + len * n, &ptx, &err);
	ok(rc == -EINVAL && strstr(err.text, reason), "%zu times '%s': %s", n, unit, reason);
	if (rc != -EINVAL || !strstr(err.text, reason))
		tap_diag("  rc %d, line %u: %s", rc, err.line, err.text);
	rs_ptx_free(ptx);
	free(text);
}

static void test_depth(void)
{
	clock_t start = clock();

	refuse_repeated(HEAD ".entry k() {", "{", 1 << 20, "scopes nest deeper");
	refuse_repeated(HEAD ".global .u32 x = ", "(", 1 << 20, "expression nests deeper");
	refuse_repeated(HEAD ".global .u32 x = ", "-", 1 << 20, "expression nests deeper");
	refuse_repeated(HEAD ".global .u32 x = ", "1?", 1 << 20, "expression nests deeper");
	refuse_repeated(HEAD ".global .u32 x[2] = ", "{", 1 << 20, "a number");
	refuse_repeated(HEAD ".entry k() { ld ", "[1,", 1 << 20, "operands nest deeper");
	refuse_repeated(HEAD ".entry k() { call f, ", "(", 1 << 20, "expression nests deeper");
	refuse_repeated(HEAD ".entry k() { ld ", "{1,", 1 << 20, "an element");
	refuse_repeated(HEAD ".entry k() { ret", ".a", 1 << 20, "parts");
	refuse_repeated(HEAD ".entry k() {", "bra L;", 1 << 16, "the text ends");
	ok(clock() - start < 5 * CLOCKS_PER_SEC, "none of it took long");
}

/* Every prefix of a good text is refused or accepted, and read within its bounds. */
static void test_prefixes(void)
{
	static const char text[] =
		HEAD ".global .align 4 .b8 y, x[4] = {1, 0x2, 3U, 0xFF(generic(y)+4)};\n"
		     ".global .f32 z[] = {0f3F800000, -1.5e1};\n"
		     ".entry k(.param .u64 .ptr .align 1 p) { .reg .v2 .b32 v; .reg .b32 %r<3>;\n"
		     ".reg .pred q; @!q bra L; L: ld.shared::cta.v2.u32 {v.x, _}, [%r1+4];\n"
		     "ts: .branchtargets L; brx.idx %r1, ts;\n"
		     ".loc 1 2 3, function_name f + 4, inlined_at 1 2 3\n/* c */ // d\n"
		     "call (v), f, (%r1, -1); .pragma \"a\\\"b\"; }\n";
	int wrong = 0, rc = 0;
	size_t len;

	for (len = 0; len < sizeof(text); len++) {
		char *exact = malloc(len ? len : 1);
		struct rs_ptx_error err = {0, ""};
		struct rs_ptx *ptx = NULL;

		memcpy(exact, text, len);
		rc = rs_ptx_parse(exact, len, &ptx, &err);
		wrong += rc ? rc != -EINVAL || !err.text[0] || ptx : !ptx;
		if (len == sizeof(text) - 1 && rc)
			tap_diag("line %u: %s", err.line, err.text);
		rs_ptx_free(ptx);
		free(exact);
	}
	ok(!rc, "the whole text is good");
	ok(!wrong, "%zu prefixes", sizeof(text));
}

int main(void)
{
	test_module();
	test_variables();
	test_bodies();
	test_bombs();
	test_depth();
	test_prefixes();
	return tap_done();
}
