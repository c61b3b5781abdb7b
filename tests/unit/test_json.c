/* SPDX-License-Identifier: MIT */
/* The JSON reader: what is JSON is read as it is meant, what is not is refused where it goes wrong. */
#include "tests/tap.h"
#include "tracker/json.h"

static char text[8192];

/* All tokens as a line of words; an error as "line:column reason". */
static const char *tokens(const char *json, size_t len, int keep)
{
	static char out[16384];
	struct rs_jread r;
	size_t n = 0;

	memcpy(text, json, len);
	rs_jread_begin(&r, text, len);
	r.keep = (uint8_t)keep;
	out[0] = '\0';
	for (;;) {
		enum rs_jtok t = rs_jread_next(&r);
		char *at = out + n;
		size_t room = sizeof(out) - n;

		if (t == RS_J_END)
			return out;
		if (t == RS_J_ERROR)
			return snprintf(out, sizeof(out), "%u:%u %s", r.line, r.column, r.error),
			       out;
		if (t == RS_J_KEY || t == RS_J_STRING)
			n += (size_t)snprintf(at, room, "%s%.*s ",
					      t == RS_J_KEY ? "k:" : "s:", (int)r.str_len, r.str);
		else if (t == RS_J_INTEGER)
			n += (size_t)snprintf(at, room, "%s%llu ", r.negative ? "-" : "",
					      (unsigned long long)r.number);
		else if (t == RS_J_BOOL)
			n += (size_t)snprintf(at, room, "%s ", r.number ? "true" : "false");
		else
			n += (size_t)snprintf(at, room, "%s ",
					      t == RS_J_OBJECT	     ? "{"
					      : t == RS_J_OBJECT_END ? "}"
					      : t == RS_J_ARRAY	     ? "["
					      : t == RS_J_ARRAY_END  ? "]"
					      : t == RS_J_REAL	     ? "real"
								     : "null");
	}
}

static void is(const char *json, const char *want)
{
	is_str(tokens(json, strlen(json), 0), want, strpbrk(want, "\n\r") ? "every escape" : want);
}

static void good(void)
{
	is("{}", "{ } ");
	is(" [ ] \n", "[ ] ");
	is("7", "7 ");
	is("{\"a\":[1,{\"b\":null}],\"c\":true,\"d\":false}",
	   "{ k:a [ 1 { k:b null } ] k:c true k:d false } ");
	is("[0,-0,-1,18446744073709551615,-9223372036854775808]",
	   "[ 0 -0 -1 18446744073709551615 -9223372036854775808 ] ");
	is("[1.5,1e9,-2E-3,0.0]", "[ real real real real ] ");
	is("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]", "[ s:\"\\/\b\f\n\r\t ] ");
	is("[\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"]",
	   "[ s:A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 ] ");
	is("[\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"]",
	   "[ s:\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 ] ");
	is("{\"\":\"\"}", "{ k: s: } ");
}

static void bad(void)
{
	is("", "1:1 the text ends too early");
	is("{", "1:2 the text ends too early");
	is("[1,\n", "2:1 the text ends too early");
	is("[1,]", "1:4 not a JSON value");
	is("[1 2]", "1:4 ',' or ']' is expected here");
	is("{\"a\":1 \"b\"}", "1:8 ',' or '}' is expected here");
	is("{\"a\" 1}", "1:6 ':' is expected here");
	is("{a:1}", "1:2 a key in quotes is expected here");
	is("{\"a\":1,}", "1:8 a key in quotes is expected here");
	is("[}", "1:2 not a JSON value");
	is("{]", "1:2 a key in quotes is expected here");
	is("{} {}", "1:4 more text after the end");
	is("[01]", "1:2 a number may not begin with 0");
	is("[-]", "1:3 a number needs a digit here");
	is("[1.]", "1:4 a number needs a digit here");
	is("[1e+]", "1:5 a number needs a digit here");
	is("[18446744073709551616]", "1:2 the number does not fit into 64 bits");
	is("[-9223372036854775809]", "1:2 the number does not fit into 64 bits");
	is("[99999999999999999999999]", "1:2 the number does not fit into 64 bits");
	is("[+1]", "1:2 not a JSON value");
	is("[tru]", "1:2 not a JSON value");
	is("[NaN]", "1:2 not a JSON value");
	is("[\"a", "1:2 the string does not end");
	is("[\"a\\", "1:5 the string does not end");
	is("[\"a\nb\"]", "1:4 a control character in a string");
	is("[\"\\x\"]", "1:4 no such escape");
	is("[\"\\u12g4\"]", "1:8 \\u needs four hex digits");
	is("[\"\\ud800\"]", "1:9 half of a surrogate pair");
	is("[\"\\ud800\\u0041\"]", "1:15 half of a surrogate pair");
	is("[\"\\udc00\"]", "1:9 half of a surrogate pair");
	is("[\"\\u0000\"]", "1:9 a zero byte in a string");
	is("[\"\xc0\x80\"]", "1:3 not UTF-8");
	is("[\"\xed\xa0\x80\"]", "1:3 not UTF-8");
	is("[\"\xf4\x90\x80\x80\"]", "1:3 not UTF-8");
	is("[\"\xe2\x82\"]", "1:3 not UTF-8");
	is("[\"\xff\"]", "1:3 not UTF-8");
	is_str(tokens("[\"a\0b\"]", 7, 0), "1:4 a control character in a string", "a zero byte");
}

static void depth(void)
{
	char deep[RS_JREAD_DEPTH * 2 + 2];
	unsigned n = RS_JREAD_DEPTH;

	memset(deep, '[', n);
	memset(deep + n, ']', n);
	ok(!strstr(tokens(deep, 2 * n, 0), "nested"), "nesting up to the limit");
	memset(deep, '[', n + 1);
	is_str(tokens(deep, n + 1, 0), "1:33 nested too deeply", "and no further");
}

/* With keep the text stays as it was, so that it can be read again. */
static void keep(void)
{
	static const char json[] = "{\"a\\u0041\":[\"x\\n\",\"y\"]}";

	is_str(tokens(json, strlen(json), 1), "{ k:a\\u0041 [ s:x\\n s:y ] } ", "as written");
	ok(!memcmp(text, json, strlen(json)), "and unchanged");
}

static void skip(void)
{
	struct rs_jread r;

	strcpy(text, "{\"a\":{\"b\":[1,{\"c\":[]}]},\"d\":2}");
	rs_jread_begin(&r, text, strlen(text));
	rs_jread_next(&r);
	rs_jread_next(&r);
	rs_jread_next(&r);
	ok(!rs_jread_skip(&r) && r.tok == RS_J_OBJECT_END, "an object is skipped");
	ok(rs_jread_next(&r) == RS_J_KEY && rs_jread_is(&r, "d"), "to what follows");
	ok(rs_jread_next(&r) == RS_J_INTEGER && !rs_jread_skip(&r), "a scalar is skipped already");
	strcpy(text, "[[1,");
	rs_jread_begin(&r, text, strlen(text));
	rs_jread_next(&r);
	ok(rs_jread_skip(&r) && r.error, "what does not end cannot be");
	ok(rs_jread_next(&r) == RS_J_ERROR, "and an error stays one");
}

/* Every prefix of a document is refused. */
static void prefixes(void)
{
	static const char json[] = "{\"k\":[1,-2.5e3,\"\\u00e9\xc3\xa9\",true,null,{}]}";
	int accepted = 0;

	for (size_t n = 0; n < strlen(json); n++)
		accepted += strncmp(tokens(json, n, 0), "1:", 2) != 0;
	is_u64((uint64_t)accepted, 0, "no prefix is a document");
}

int main(void)
{
	good();
	bad();
	depth();
	keep();
	skip();
	prefixes();
	return tap_done();
}
