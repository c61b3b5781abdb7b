/* SPDX-License-Identifier: MIT */
/* See mark.h. */
#include "tracker/mark.h"

#include <string.h>

/* Digits to the end of the text, or -1. */
static int64_t parse_number(const char *s)
{
	uint64_t n = 0;

	if (!*s)
		return -1;
	for (; *s; s++) {
		if (*s < '0' || *s > '9' || n > (uint64_t)INT64_MAX / 10 - 1)
			return -1;
		n = n * 10 + (uint64_t)(*s - '0');
	}
	return (int64_t)n;
}

static struct rs_mark step(struct rs_mark m, const char *number)
{
	m.number = parse_number(number);
	if (m.number < 0)
		m.wrong = "after step: there is no number";
	else
		m.kind = RS_MARK_STEP;
	return m;
}

static struct rs_mark window(struct rs_mark m, int kind, const char *name)
{
	const char *hash = strrchr(name, '#');
	size_t len = hash ? (size_t)(hash - name) : strlen(name);

	if (hash)
		m.number = parse_number(hash + 1);
	if (!len)
		m.wrong = "there is no name";
	else if (hash && m.number < 0)
		m.wrong = "what follows # is no number";
	if (m.wrong)
		return m;
	rs_name_fit(m.name, name, len);
	m.kind = kind;
	return m;
}

struct rs_mark rs_mark_parse(const char *text)
{
	struct rs_mark m = {.kind = RS_MARK_OTHER, .number = -1};

	if (!text)
		return m;
	if (!strncmp(text, "step:", 5))
		return step(m, text + 5);
	if (!strncmp(text, "forward:", 8))
		return window(m, RS_MARK_FORWARD, text + 8);
	if (!strncmp(text, "replay:", 7))
		return window(m, RS_MARK_REPLAY, text + 7);
	return m;
}
