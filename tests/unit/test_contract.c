/* SPDX-License-Identifier: MIT */
/* The contract reader: every kind of bad input is refused with line, column and field; what is good is told to the engine. */
#include <errno.h>

#include "tests/unit/engine_rig.h"
#include "tracker/contract.h"
#include "tracker/model.h"

#define SEGMENT(fields) "{\"contract_version\":1,\"segments\":[{" fields "}]}"
#define BARE                                                                                       \
	"\"name\":\"f\",\"complete\":true,\"calls\":[\"0x1\"],\"preserve\":{\"option\":\"undo\"}"
#define STATE(fields) SEGMENT(BARE ",\"state\":[{" fields "}]")
#define SPOT	      "\"call\":0,\"slot\":1,\"piece\":0"
#define RANGE	      "\"offset\":0,\"bytes\":4,\"role\":\"state\""

static char text[65536];

static struct rs_contract *parse(const char *json, struct rs_jdoc_error *e)
{
	struct rs_contract *c = NULL;

	snprintf(text, sizeof(text), "%s", json);
	rs_contract_parse(text, strlen(text), &c, e);
	return c;
}

static void refused(const char *json, const char *want)
{
	struct rs_jdoc_error e;
	struct rs_contract *c = parse(json, &e);
	char got[512];

	snprintf(got, sizeof(got), "%u:%u %s%s%s", e.line, e.column, e.field, e.field[0] ? " " : "",
		 e.text);
	is_str(c ? "accepted" : got, want, want);
	rs_contract_free(c);
}

static void document(void)
{
	refused("", "1:1 the text ends too early");
	refused("[]", "1:1 must be an object");
	refused("{}", "1:2 contract_version is missing");
	refused("{\n \"contract_version\": 2}",
		"2:22 contract_version is newer than this library, which reads version 1: use a newer one, or "
		"learn the contract again");
	refused("{\"segments\":7,\"contract_version\":0}",
		"1:34 contract_version is older than any that exists: versions begin at 1");
	refused("{\"contract_version\":\"1\"}",
		"1:21 contract_version must be an integer, not negative");
	refused("{\"contract_version\":-1}",
		"1:21 contract_version must be an integer, not negative");
	refused("{\"contract_version\":1,\"contract_version\":1,\"segments\":[]}",
		"1:23 contract_version is given twice");
	refused("{\"contract_version\":1}", "1:22 segments is missing");
	refused("{\"contract_version\":1,\"segments\":{}}", "1:34 segments must be an array");
	refused("{\"contract_version\":1,\"segments\":[7]}", "1:35 segments[0] must be an object");
	refused("{\"contract_version\":1,\"segments\":[]} x", "1:38 more text after the end");
	refused("{\"contract_version\":1,\"program\":[],\"segments\":[]}",
		"1:33 program must be an object");
	refused("{\"contract_version\":1,\"program\":{\"fingerprint\":5},\"segments\":[]}",
		"1:48 program.fingerprint must be a string");
}

static void segments(void)
{
	refused(SEGMENT(BARE), "1:107 segments[0].state is missing");
	refused(SEGMENT("\"name\":7"), "1:43 segments[0].name must be a string");
	refused(SEGMENT("\"name\":\"\""), "1:43 segments[0].name must not be empty");
	refused(SEGMENT("\"complete\":1"), "1:47 segments[0].complete must be true or false");
	refused(SEGMENT("\"calls\":[\"12\"]"),
		"1:45 segments[0].calls[0] must be a string of 0x and up to 16 hex digits");
	refused(SEGMENT("\"calls\":[\"0x1\",\"0x12345678901234567\"]"),
		"1:51 segments[0].calls[1] must be a string of 0x and up to 16 hex digits");
	refused(SEGMENT("\"preserve\":{}"), "1:48 segments[0].preserve.option is missing");
	refused(SEGMENT("\"preserve\":{\"option\":\"all\"}"),
		"1:57 segments[0].preserve.option must be one of undo free whole regions pages retain");
	refused(SEGMENT("\"preserve\":{\"option\":\"undo\",\"restore\":\"x\"}"),
		"1:74 segments[0].preserve.restore must be one of copy swap remap");
	refused("{\"contract_version\":1,\"segments\":[{" BARE ",\"state\":[]},{" BARE
		",\"state\":[]}]}",
		"1:206 segments has two segments of one name");
	refused(SEGMENT("\"name\":\"f\",\"complete\":true,\"calls\":[],\"state\":[],\"preserve\":"
			"{\"option\":\"undo\"}"),
		"1:113 segments[0].calls must not be empty");
}

static void states(void)
{
	refused(STATE(RANGE),
		"1:153 segments[0].state[0].region must be given, or else call, slot and piece");
	refused(STATE("\"region\":\"r\"," SPOT "," RANGE),
		"1:194 segments[0].state[0].region must be given, or else call, slot and piece");
	refused(STATE("\"call\":0,\"slot\":1," RANGE),
		"1:171 segments[0].state[0].region must be given, or else call, slot and piece");
	refused(STATE("\"region\":\"\"," RANGE),
		"1:127 segments[0].state[0].region must not be empty");
	refused(STATE(SPOT), "1:145 segments[0].state[0].offset is missing");
	refused(STATE(SPOT ",\"offset\":0,\"bytes\":0,\"role\":\"state\""),
		"1:181 segments[0].state[0].bytes must not be 0, and the end must lie below 2^64");
	refused(STATE(SPOT ",\"offset\":18446744073709551615,\"bytes\":2,\"role\":\"state\""),
		"1:200 segments[0].state[0].bytes must not be 0, and the end must lie below 2^64");
	refused(STATE(SPOT ",\"offset\":1.5"),
		"1:155 segments[0].state[0].offset must be an integer, not negative");
	refused(STATE("\"slot\":65536"), "1:125 segments[0].state[0].slot is too large");
	refused(STATE("\"role\":\"mine\""),
		"1:125 segments[0].state[0].role must be one of state product unknown");
	refused(STATE("\"entry\":\"copy\""),
		"1:126 segments[0].state[0].entry must be one of digest");
	refused(STATE("\"windows\":[[0,4],[0]]"),
		"1:137 segments[0].state[0].windows[1] must be an integer, not negative");
	refused(STATE("\"windows\":[[0,4,4]]"),
		"1:134 segments[0].state[0].windows[0] must be [offset, bytes]");
	refused(STATE("\"windows\":[[1,18446744073709551615]]"),
		"1:132 segments[0].state[0].windows[0] must have bytes, and end below 2^64");
}

#define ALIASES(text) SEGMENT(BARE ",\"state\":[],\"aliases\":[" text "]")

static void aliases(void)
{
	refused(ALIASES("7"), "1:130 segments[0].aliases[0] must be an object");
	refused(ALIASES("{\"call\":0}"), "1:139 segments[0].aliases[0].slot is missing");
	refused(ALIASES("{\"slot\":65536}"), "1:138 segments[0].aliases[0].slot is too large");
	refused(ALIASES("{" SPOT "}"), "1:158 segments[0].aliases[0].other is missing");
	refused(ALIASES("{\"other\":{\"call\":0}}"),
		"1:148 segments[0].aliases[0].other.slot is missing");
	refused(ALIASES("{\"other\":{\"forwards\":1,\"other\":{}," SPOT "}," SPOT "}"),
		"1:220 segments[0].aliases[0].other must be another place");
	refused(ALIASES("[0,1,0,2,0]"),
		"1:140 segments[0].aliases[0] must be an integer, not negative");
	refused(ALIASES("[0,1,0,2,0,4,5]"), "1:143 segments[0].aliases[0] must have six numbers");
	refused(ALIASES("[0,1,0,1,0,4]"),
		"1:142 segments[0].aliases[0].other must be another place");
	refused(SEGMENT(BARE ",\"state\":[],\"aliases_complete\":1"),
		"1:138 segments[0].aliases_complete must be true or false");
}

/* y = x + 1 */
static void plus(struct rig_arg *a)
{
	a[0].p[0] = a[1].p[0] + 1;
}

/* As a forward of two such calls has them. */
static uint64_t two_calls(void)
{
	struct rs_logged_call log[2] = {{.ident = (uint64_t)(uintptr_t)plus},
					{.ident = (uint64_t)(uintptr_t)plus}};
	struct rs_segment s = {0};

	s.log.v = log;
	s.log.n = 2;
	return rs_terms_calls(&s);
}

/* Learned in two forwards: what both have shown must be there, what one has shown may be. */
static void aliases_kept(const char *all, unsigned forwards, int shares, const char *code)
{
	char json[1024];
	struct rs_jdoc_error e;
	struct rs_contract *c;
	uint32_t *x, *y;

	snprintf(
		json, sizeof(json),
		"{\"contract_version\":1,\"segments\":[{\"name\":\"g\",\"calls\":[\"0x1\"],\"complete\":true,"
		"\"preserve\":{\"option\":\"undo\"},\"state\":[],\"aliases\":[[0,1,0,2,0,4]]},"
		"{\"name\":\"f\",\"calls\":[\"0x%llx\"],\"complete\":true,\"preserve\":{\"option\":\"undo\"},"
		"\"state\":[{" SPOT
		",\"offset\":0,\"bytes\":4,\"role\":\"state\"},{\"call\":1,\"slot\":1,"
		"\"piece\":0,\"offset\":0,\"bytes\":4,\"role\":\"state\"}],\"aliases_complete\":%s,\"aliases\":[",
		(unsigned long long)two_calls(), all);
	if (forwards)
		snprintf(json + strlen(json), sizeof(json) - strlen(json),
			 "{" SPOT ",\"other\":{\"call\":1,\"slot\":1,\"piece\":0},\"forwards\":%u}",
			 forwards);
	strcat(json, "],\"forwards\":2}]}");
	c = parse(json, &e);
	rig_start(RS_MODE_PRESERVE);
	ok(c && !rs_contract_apply(c, eng), "all aliases: %s, one in %u of 2 forwards %s", all,
	   forwards, e.text);
	rs_contract_free(c);
	x = words(2), y = words(1);
	for (unsigned i = 0; i < 2; i++) {
		PUSH(i ? "replay:f#0" : "forward:f");
		KERNEL(plus, W_(y, 1), R_(x, 1));
		KERNEL(plus, W_(y, 1), {x, shares ? 0 : 1, 1, RS_READ, 0, 0});
		POP();
	}
	fake_drain();
	is_u64(count(rig_read("records.jsonl"), code ? code : "\"match\""), 1,
	       code ? "a rejection" : "a match");
	rig_stop();
}

static void aliases_applied(void)
{
	aliases_kept("true", 2, 1, NULL);
	aliases_kept("true", 2, 0, "RS084");
	aliases_kept("true", 1, 0, NULL);
	aliases_kept("true", 0, 0, NULL);
	aliases_kept("true", 0, 1, "RS084");
	aliases_kept("false", 0, 1, NULL);
}

static void accepted(void)
{
	struct rs_jdoc_error e;
	struct rs_contract *c = parse(
		"{\"later\":{\"x\":[1,2.5,null]},\"segments\":[{" BARE
		",\"state\":[{\"region\":\"a\\u0062\",\"windows\":[[0,4],[8,4]],\"density\":0.5," RANGE
		"},{" SPOT ",\"offset\":0,\"bytes\":4,\"role\":\"unknown\",\"windows\":[]}]}],"
		"\"program\":{\"fingerprint\":\"0x12\",\"argv\":[]},\"contract_version\":1}",
		&e);

	ok(c, "in any order, with fields that are not known: %s", e.text);
	if (!c)
		return;
	is_u64(rs_contract_segments(c), 1, "one segment");
	is_u64(rs_contract_terms(c), 3,
	       "a state and its windows; nothing of what nobody could tell");
	is_str(rs_contract_fingerprint(c), "0x12", "fingerprint");
	rs_contract_free(c);
}

static void file(void)
{
	struct rs_jdoc_error e;
	struct rs_contract *c = NULL;
	char path[] = "/tmp/contract-XXXXXX";
	int fd = mkstemp(path);

	ok(rs_contract_load("/nowhere/at/all", &c, &e) == -ENOENT && !e.line, "no file: %s",
	   e.text);
	ok(rs_contract_load("/tmp", &c, &e) == -ENODEV && !e.line, "a directory: %s", e.text);
	ok(rs_contract_load(path, &c, &e) == -EINVAL && e.line == 1, "an empty file: %s", e.text);
	ok(!ftruncate(fd, (off_t)RS_CONTRACT_MAX_SIZE + 1) &&
		   rs_contract_load(path, &c, &e) == -EFBIG,
	   "a file that is too large: %s", e.text);
	ok(!c, "nothing came of them");
	close(fd);
	unlink(path);
}

static void run(const char *json, const char *segment, const char *code)
{
	struct rs_jdoc_error e;
	struct rs_contract *c = parse(json, &e);
	struct rs_engine_stats s;
	uint32_t *x, *y;
	char marker[64];

	rig_start(RS_MODE_PRESERVE);
	ok(c && !rs_contract_apply(c, eng), "applied %s", e.text);
	rs_contract_free(c);
	memset(text, 0xee, sizeof(text)); /* nothing of it is needed any more */
	x = words(1), y = words(1);
	snprintf(marker, sizeof(marker), "forward:%s", segment);
	PUSH(marker);
	KERNEL(plus, W_(y, 1), R_(x, 1));
	POP();
	snprintf(marker, sizeof(marker), "replay:%s#0", segment);
	PUSH(marker);
	KERNEL(plus, W_(y, 1), R_(x, 1));
	POP();
	fake_drain();
	rs_engine_finish(eng);
	rs_engine_stats(eng, &s);
	is_u64(s.outcome[code ? 1 : 0], 1, code ? code : "a match");
	if (code)
		ok(count(rig_read("records.jsonl"), code), "with %s", code);
	rig_stop();
}

/* Everything that a contract says arrives at the segment of which it says it. */
static void handed_on(void)
{
	struct rs_jdoc_error e;
	struct rs_contract *c = parse(
		"{\"contract_version\":1,\"segments\":[{\"name\":\"g\",\"complete\":false,\"calls\":[\"0x13\"],"
		"\"preserve\":{\"option\":\"free\",\"restore\":\"swap\"},\"state\":[{\"call\":3,\"slot\":4,\"piece\":5,"
		"\"offset\":32,\"bytes\":128,\"role\":\"product\",\"windows\":[]}]},{\"name\":\"f\",\"complete\":true,"
		"\"calls\":[\"0x11\",\"0x12\"],\"preserve\":{\"option\":\"whole\",\"restore\":\"swap\"},\"state\":["
		"{\"region\":\"r\",\"windows\":[[16,8]],\"offset\":0,\"bytes\":64,\"role\":\"state\"}]}]}",
		&e);
	const struct rs_terms *f, *g, *h;
	const struct rs_term *t;

	rig_start(RS_MODE_PRESERVE);
	ok(c && !rs_contract_apply(c, eng), "two segments");
	f = rs_terms_find(eng, rs_intern(eng, "f"));
	g = rs_terms_find(eng, rs_intern(eng, "g"));
	h = rs_terms_find(eng, rs_intern(eng, "h"));
	ok(f && g && h && f != g && h != f && h->calls.n && !h->terms.n, "and all others");
	ok(f->policy.option == RS_OPTION_WHOLE && f->policy.restore == RS_RESTORE_SWAP,
	   "the policy of a complete one");
	ok(g->policy.option == RS_OPTION_UNDO && g->policy.restore == RS_RESTORE_COPY,
	   "an incomplete one is preserved with care");
	ok(f->calls.n == 2 && f->calls.v[0] == 0x11 && f->calls.v[1] == 0x12 && !g->calls.n,
	   "calls, of the complete one");
	is_u64(f->terms.n, 2, "its state and a window");
	t = f->terms.v;
	ok(t[0].region == rs_intern(eng, "r") && t[0].window && t[0].off == 16 && t[0].len == 8,
	   "a window of a region");
	ok(t[1].region == rs_intern(eng, "r") && !t[1].window && !t[1].off && t[1].len == 64 &&
		   t[1].role == RS_ROLE_STATE,
	   "state by name");
	is_u64(g->terms.n, 1, "the other one's");
	t = g->terms.v;
	ok(!t->region && t->call == 3 && t->slot == 4 && t->piece == 5 && !t->window &&
		   t->off == 32 && t->len == 128 && t->role == RS_ROLE_PRODUCT,
	   "a product by call and argument");
	rig_stop();
	rs_contract_free(c);
}

/* The same calls in another order are other calls. */
static void ordered(void)
{
	struct rs_segment a = {0}, b = {0};
	struct rs_logged_call one[2] = {{.ident = 1}, {.ident = 2}};
	struct rs_logged_call two[2] = {{.ident = 2}, {.ident = 1}};

	a.log.v = one, a.log.n = 2;
	b.log.v = two, b.log.n = 2;
	ok(rs_terms_calls(&a) != rs_terms_calls(&b), "calls in another order are other calls");
	b.log.n = 1;
	ok(rs_terms_calls(&a) != rs_terms_calls(&b), "and so are fewer");
}

static void applied(void)
{
	run(SEGMENT(BARE ",\"state\":[]"), "f", "RS081");
	run(SEGMENT(BARE ",\"state\":[]"), "f", "RS080");
	run(SEGMENT(BARE ",\"state\":[]"), "g", "RS081");
	run("{\"contract_version\":1,\"segments\":[]}", "f", "RS081");
	run(SEGMENT("\"name\":\"f\",\"complete\":false,\"calls\":[\"0x1\"],\"preserve\":{\"option\":"
		    "\"free\"},\"state\":[]"),
	    "f", NULL);
	/* a program's Latin-1, which a record has, and a contract is learned from, as UTF-8 */
	run(SEGMENT("\"name\":\"caf\\u00e9\",\"complete\":false,\"calls\":[\"0x1\"],\"preserve\":{"
		    "\"option\":\"free\"},\"state\":[]"),
	    "caf\xe9", NULL);
}

int main(void)
{
	document();
	segments();
	states();
	aliases();
	accepted();
	file();
	applied();
	handed_on();
	ordered();
	aliases_applied();
	return tap_done();
}
