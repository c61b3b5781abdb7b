/* SPDX-License-Identifier: MIT */
/*
 * How often each range was there, and what took it: for replayctl markers. Texts that differ in their digits only are one
 * entry, with the first of them as its example.
 *
 * A line is written when an entry is met for the first time, so that a run that is killed leaves the list, and once more
 * with the count at the end. Locks: pattern.c's around new entries; counting takes none.
 */
#include "shim/pattern.h"

#include <stdio.h>
#include <string.h>

#define TALLIES 512

struct rs_tally {
	const struct rs_domain *domain;
	uint64_t shape, count;
	int16_t rule;
	uint8_t kind;
	char text[240];
};

static struct rs_tally tallies[TALLIES];
static unsigned used;
static uint64_t left_out;

/* Of the text with one 0 for each run of digits. */
static uint64_t shape_of(const char *text, size_t len)
{
	uint64_t h = 0xcbf29ce484222325ull;
	int digits = 0;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c >= '0' && c <= '9') {
			if (digits)
				continue;
			c = '0';
		}
		digits = c == '0';
		h = (h ^ c) * 0x100000001b3ull;
	}
	return h;
}

struct rs_tally *rs_tally_get(const struct rs_domain *d, const struct rs_choice *c,
			      const char *text, size_t len)
{
	uint64_t shape = shape_of(text, len);
	struct rs_tally *t;
	unsigned i;

	for (i = 0; i < used; i++) {
		t = &tallies[i];
		if (t->shape == shape && t->rule == c->rule && t->domain == d && t->kind == c->kind)
			return t;
	}
	if (i == TALLIES) {
		__atomic_fetch_add(&left_out, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	t = &tallies[i];
	t->domain = d;
	t->shape = shape;
	t->rule = c->rule;
	t->kind = c->kind;
	snprintf(t->text, sizeof(t->text), "%.*s", (int)(len < 1024 ? len : 1024), text);
	__atomic_store_n(&used, used + 1, __ATOMIC_RELEASE);
	return t;
}

static void write_one(const struct rs_tally *t, const struct rs_patterns *p, uint64_t count)
{
	char rule[600] = "";
	struct rs_json j;

	if (!rs_state.records)
		return;
	if (t->rule == RS_RULE_PLAIN)
		snprintf(rule, sizeof(rule), "marker");
	else if (t->rule >= 0 && rs_patterns_rule(p, (unsigned)t->rule)->builtin)
		snprintf(rule, sizeof(rule), "built in");
	else if (t->rule >= 0)
		snprintf(rule, sizeof(rule), "%.500s:%u",
			 rs_pattern_file(p, rs_patterns_rule(p, (unsigned)t->rule)),
			 rs_patterns_rule(p, (unsigned)t->rule)->line);
	rs_json_begin(&j);
	rs_json_str(&j, "t", "range");
	rs_json_str(&j, "domain", t->domain->name);
	rs_json_str(&j, "text", t->text);
	rs_json_str(&j, "kind", rs_pattern_kind_name((enum rs_pattern_kind)t->kind));
	rs_json_str(&j, "rule", rule);
	rs_json_u64(&j, "count", count);
	rs_records_write(rs_state.records, RS_RECORD_EVENTS, &j);
}

void rs_tally_count(struct rs_tally *t, const struct rs_patterns *p)
{
	if (!__atomic_fetch_add(&t->count, 1, __ATOMIC_RELAXED))
		write_one(t, p, 1);
}

void rs_tally_write(const struct rs_patterns *p)
{
	unsigned n = __atomic_load_n(&used, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < n; i++) {
		uint64_t count = __atomic_load_n(&tallies[i].count, __ATOMIC_RELAXED);

		if (count > 1)
			write_one(&tallies[i], p, count);
	}
}

uint64_t rs_tally_left_out(void)
{
	return __atomic_load_n(&left_out, __ATOMIC_RELAXED);
}
