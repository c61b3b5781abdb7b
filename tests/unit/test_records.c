/* SPDX-License-Identifier: MIT */
/* Record lines: escaping, cutting at a value, nesting, whole lines from many threads, lost writes. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <signal.h>
#include <unistd.h>

#include "tests/tap.h"
#include "tracker/records.h"

static char dir[64];
static struct rs_records *rec;

static const char *slurp(const char *name)
{
	static char text[1 << 20];
	char path[128];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "r");
	n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	if (f)
		fclose(f);
	text[n] = '\0';
	return text;
}

static void simple(void)
{
	struct rs_json j;

	rs_json_begin(&j);
	rs_json_str(&j, "t", "a\"b\\c\n\x01");
	rs_json_u64(&j, "n", UINT64_MAX);
	rs_json_hex(&j, "h", 0xabc);
	rs_json_open(&j, "list", '[');
	rs_json_str(&j, NULL, "x");
	rs_json_open(&j, NULL, '{');
	rs_json_bool(&j, "b", 1);
	rs_json_close(&j, '}');
	rs_json_close(&j, ']');
	rs_json_open(&j, "empty", '{');
	rs_json_close(&j, '}');
	rs_records_write(rec, RS_RECORD_EVENTS, &j);
	is_str(slurp("events.jsonl"),
	       "{\"v\":1,\"t\":\"a\\\"b\\\\c\\u000a\\u0001\",\"n\":18446744073709551615,\"h\":\"0xabc\","
	       "\"list\":[\"x\",{\"b\":true}],\"empty\":{}}\n",
	       "values, escapes and brackets");
}

/* However little room is left, brackets are closed within it. */
static void full(void)
{
	char big[900];
	struct rs_json j;
	unsigned beyond = 0;

	memset(big, 'x', sizeof(big));
	for (unsigned left = 0; left < 100; left++) {
		rs_json_begin(&j);
		for (unsigned i = 0; i < 6; i++)
			rs_json_open(&j, "o", '{');
		while (sizeof(j.text) - j.len > 1000) {
			big[899] = '\0';
			rs_json_str(&j, "k", big);
		}
		big[sizeof(j.text) - j.len - left - 8 < 899 ? sizeof(j.text) - j.len - left - 8
							    : 899] = '\0';
		rs_json_str(&j, "k", big);
		memset(big, 'x', sizeof(big));
		for (unsigned i = 0; i < 40; i++)
			rs_json_u64(&j, "n", 1);
		beyond += j.len + 6 + 13 > sizeof(j.text);
	}
	is_u64(beyond, 0, "a line that is full has room for its brackets and its end");
}

/* Whatever is put in, what comes out ends well: balanced brackets and one newline. */
static void overflow(void)
{
	char big[900];
	struct rs_json j;
	const char *text, *p;
	int depth = 0, quoted = 0, bad = 0;

	memset(big, 'q', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	rs_json_begin(&j);
	for (int i = 0; i < 10; i++) {
		rs_json_open(&j, "o", i & 1 ? '[' : '{');
		rs_json_str(&j, i & 1 ? NULL : "s", big);
		rs_json_u64(&j, i & 1 ? NULL : "u", 7);
	}
	for (int i = 9; i >= 0; i--)
		rs_json_close(&j, i & 1 ? ']' : '}');
	rs_records_write(rec, RS_RECORD_REPLAYS, &j);
	text = slurp("records.jsonl");
	for (p = text; *p && *p != '\n'; p++) {
		if (*p == '"')
			quoted = !quoted;
		if (!quoted)
			depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
		bad |= depth < 0;
	}
	ok(!bad && !depth && !quoted && *p == '\n', "a line that is too long stays balanced");
	ok(strstr(text, "\"cut\":true") != NULL, "and says that it was cut");
}

static void *writer(void *arg)
{
	struct rs_json j;

	for (int i = 0; i < 200; i++) {
		rs_json_begin(&j);
		rs_json_u64(&j, "thread", (uint64_t)(uintptr_t)arg);
		rs_json_u64(&j, "i", (uint64_t)i);
		rs_records_write(rec, RS_RECORD_EVENTS, &j);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t t[4];
	const char *line;
	unsigned lines = 0, whole = 0;

	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, writer, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	for (line = slurp("events.jsonl"); *line; line = strchr(line, '\n') + 1) {
		lines++;
		whole += !strncmp(line, "{\"v\":1,", 7);
	}
	is_u64(lines, 801, "every line of four threads");
	is_u64(whole, 801, "none torn");
}

/* The signal that comes with it has its default action, which would end the program. */
static void lost(void)
{
	struct rlimit was, full;
	const char *line, *next;
	struct rs_json j;

	signal(SIGXFSZ, SIG_DFL);
	getrlimit(RLIMIT_FSIZE, &was);
	full = was;
	full.rlim_cur = strlen(slurp("events.jsonl")) + 5;
	setrlimit(RLIMIT_FSIZE, &full);
	ok(rs_records_error(rec) == 0, "no line was lost so far");
	for (int i = 0; i < 3; i++) {
		rs_json_begin(&j);
		rs_records_write(rec, RS_RECORD_EVENTS, &j);
	}
	setrlimit(RLIMIT_FSIZE, &was);
	is_u64(rs_records_lost(rec), 3, "lines that cannot be written are counted");
	ok(rs_records_error(rec) < 0, "and there is a reason");
	for (int i = 0; i < 2; i++) {
		rs_json_begin(&j);
		rs_json_u64(&j, "after", (uint64_t)i);
		rs_records_write(rec, RS_RECORD_EVENTS, &j);
	}
	line = slurp("events.jsonl") + full.rlim_cur - 5;
	next = strchr(line, '\n');
	is_str(next ? next + 1 : "", "{\"v\":1,\"after\":0}\n{\"v\":1,\"after\":1}\n",
	       "lines after the one that was cut are whole");
	is_u64(rs_records_lost(rec), 3, "and are not counted");
}

int main(void)
{
	struct rs_records *none;
	char path[128];

	snprintf(dir, sizeof(dir), "/tmp/rs-records-XXXXXX");
	if (!mkdtemp(dir))
		return 2;
	snprintf(path, sizeof(path), "%s/deep/er", dir);
	ok(!rs_records_open(path, &none), "parents are made");
	rs_records_close(none);
	ok(rs_records_open("", &none) < 0, "an empty name is refused");
	ok(rs_records_open("/proc/none/x", &none) < 0, "a place that cannot be written is refused");
	ok(!rs_records_open(dir, &rec), "open");
	simple();
	full();
	overflow();
	threads();
	lost();
	rs_records_close(rec);
	snprintf(path, sizeof(path), "rm -rf %s", dir);
	return tap_done() | (system(path) != 0);
}
