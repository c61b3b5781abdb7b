/* SPDX-License-Identifier: MIT */
/* The reader of plan files: every kind of bad input is refused with line, column and field; what is good is what was written. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "tests/tap.h"
#include "tracker/engine.h"
#include "tracker/planfile.h"

#define HEAD(print, more)                                                                          \
	"{\"plan_version\":1,\"fingerprint\":\"" print                                             \
	"\",\"budget\":100,\"arena\":10,\"peak\":90,\"time\":7,\"bound\":6,\"segments\":[" more    \
	"]}"
#define ENTRY(name, n, option)                                                                     \
	"{\"segment\":\"" name "\",\"invocation\":" n ",\"option\":\"" option                      \
	"\",\"restore\":\"swap\",\"forward\":11,\"backward\":12}"

static char text[1 << 20];

static int parse(const char *json, struct rs_plan_head *head, struct rs_plan_entry **entries,
		 struct rs_jdoc_error *e)
{
	snprintf(text, sizeof(text), "%s", json);
	return rs_planfile_parse(text, strlen(text), head, entries, e);
}

static void refused(const char *json, const char *want)
{
	struct rs_plan_entry *entries = NULL;
	struct rs_jdoc_error e;
	struct rs_plan_head head;
	int r = parse(json, &head, &entries, &e);
	char got[512];

	snprintf(got, sizeof(got), "%u:%u %s%s%s", e.line, e.column, e.field, e.field[0] ? " " : "",
		 e.text);
	is_str(r == -EINVAL && !entries ? got : "accepted", want, want);
	free(entries);
}

static void refusals(void)
{
	refused("", "1:1 the text ends too early");
	refused("[]", "1:1 must be an object");
	refused("{}", "1:2 plan_version is missing");
	refused("{\n\"plan_version\":2}",
		"2:16 plan_version is newer than this library, which reads "
		"version 1: use a newer one, or plan again");
	refused("{\"plan_version\":0}",
		"1:17 plan_version is older than any that exists: versions begin at 1");
	refused("{\"plan_version\":1,\"plan_version\":1}", "1:19 plan_version is given twice");
	refused("{\"plan_version\":1,\"fingerprint\":7}",
		"1:33 fingerprint must be a string of 0x and up to 16 hex digits");
	refused("{\"plan_version\":1,\"fingerprint\":\"12\"}",
		"1:33 fingerprint must be a string of 0x and up to 16 hex digits");
	refused("{\"budget\":-1}", "1:11 budget must be an integer, not negative");
	refused("{\"budget\":1.5}", "1:11 budget must be an integer, not negative");
	refused("{\"time\":9223372036854775808}", "1:9 time is too large");
	refused("{\"segments\":{}}", "1:13 segments must be an array");
	refused("{\"segments\":[7]}", "1:14 segments[0] must be an object");
	refused("{\"segments\":[{\"segment\":\"\"}]}",
		"1:25 segments[0].segment must have 1 to 127 bytes");
	refused("{\"segments\":[{\"invocation\":4294967296}]}",
		"1:28 segments[0].invocation is too large");
	refused("{\"segments\":[{\"option\":\"some\"}]}",
		"1:24 segments[0].option must be one of undo free whole regions pages retain");
	refused("{\"segments\":[{\"restore\":\"\"}]}",
		"1:25 segments[0].restore must be one of copy swap remap");
	refused("{\"segments\":[{\"segment\":\"a\"}]}", "1:28 segments[0].invocation is missing");
	refused("{\"segments\":[" ENTRY("a", "0", "undo") ",7]}",
		"1:105 segments[1] must be an object");
	refused(HEAD("0x1", ENTRY("a", "0", "undo")),
		"1:195 fingerprint is not that of the plan's segments: it was changed");
	refused(HEAD("0x0", "") " x", "1:107 more text after the end");
}

static void accepted(void)
{
	struct rs_plan_entry *v = NULL;
	struct rs_jdoc_error e;
	struct rs_plan_head head;
	uint64_t print =
		rs_plan_print(rs_plan_print(0, rs_plan_name("a"), 0), rs_plan_name("b"), 3);
	char json[1024], twice[1024];
	int r;

	snprintf(json, sizeof(json),
		 HEAD("0x%" PRIx64, ENTRY("a", "0", "undo") "," ENTRY("b", "3", "retain")), print);
	r = parse(json, &head, &v, &e);
	ok(!r && head.n == 2, "a plan: %s", e.text);
	if (r)
		return;
	ok(head.generation == 1 && !head.from_step && head.fingerprint == print &&
		   head.budget == 100 && head.arena == 10 && head.peak == 90 && head.time == 7 &&
		   head.bound == 6 && !head.flags,
	   "its head");
	ok(v[0].name == rs_plan_name("a") && v[0].option == RS_OPTION_UNDO && !v[0].order &&
		   v[1].name == rs_plan_name("b") && v[1].invocation == 3 && v[1].order == 1 &&
		   v[1].option == RS_OPTION_RETAIN && v[1].restore == RS_RESTORE_SWAP &&
		   v[1].forward == 11 && v[1].backward == 12,
	   "its segments");
	free(v);
	v = NULL;
	print = rs_plan_print(rs_plan_print(0, rs_plan_name("a"), 0), rs_plan_name("a"), 0);
	snprintf(twice, sizeof(twice),
		 HEAD("0x%" PRIx64, ENTRY("a", "0", "undo") "," ENTRY("a", "0", "free")), print);
	ok(parse(twice, &head, &v, &e) == -EINVAL && !strcmp(e.text, "has an invocation twice"),
	   "two decisions for one invocation are none");
	ok(!parse(HEAD("0x0", ""), &head, &v, &e) && !head.n, "a plan for no segments");
	free(v);
}

static void too_many(void)
{
	struct rs_plan_entry *v = NULL;
	struct rs_jdoc_error e;
	struct rs_plan_head head;
	size_t n = (size_t)snprintf(text, sizeof(text), "{\"segments\":[");

	for (unsigned i = 0; i <= RS_PLAN_MAX; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s" ENTRY("a", "%u", "undo"),
				      i ? "," : "", i);
	ok(rs_planfile_parse(text, n, &head, &v, &e) == -EINVAL && strstr(e.text, "too many"),
	   "4097 segments: %s", e.text);
}

static void files(void)
{
	struct rs_plan_entry *v = NULL;
	struct rs_jdoc_error e;
	struct rs_plan_head head;
	char path[] = "/tmp/rs-planfile.XXXXXX";
	int fd = mkstemp(path);
	const char *json = HEAD("0x0", "");

	ok(fd >= 0 && write(fd, json, strlen(json)) == (ssize_t)strlen(json), "a file");
	close(fd);
	errno = 77;
	ok(!rs_planfile_load(path, &head, &v, &e) && errno == 77, "is read");
	free(v);
	unlink(path);
	ok(rs_planfile_load(path, &head, &v, &e) == -ENOENT && e.text[0] && !e.line && errno == 77,
	   "one that is not there: %s", e.text);
	ok(rs_planfile_load("/dev/null", &head, &v, &e) == -ENODEV && e.text[0],
	   "one that is none: %s", e.text);
}

int main(void)
{
	refusals();
	accepted();
	too_many();
	files();
	return tap_done();
}
