/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: files of marker rules, and what they make of texts. The input's first part, up to a line "--", is a file of
 * rules, each line after it a text. A line is a rule, is empty, or has an error with its place; what a rule makes of a
 * text is a marker of its kind that fits.
 * Seeds: tests/fuzz/corpus/fuzz_pattern. No state between inputs, no locks.
 */
#include "tracker/pattern.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rs_ere_scratch scratch;

static void require(int good)
{
	if (!good)
		abort();
}

static void complaint(void *arg, const char *line)
{
	++*(unsigned *)arg;
	require(!strncmp(line, "f:", 2) && strlen(line) < 700);
}

static void ask(const struct rs_patterns *p, const char *domain, const char *text)
{
	size_t len = strlen(text);
	struct rs_pattern_bits all = rs_patterns_domain(p, domain), fit;
	char marker[RS_PATTERN_MARKER];

	fit = rs_patterns_match(p, all, &scratch, text, len);
	require(!(fit.rules & ~all.rules) && !(fit.contexts & ~all.contexts));
	for (unsigned i = 0; i < rs_patterns_count(p); i++) {
		const struct rs_pattern_rule *r = rs_patterns_rule(p, i);
		int made = !rs_pattern_marker(r, &scratch, text, len, marker);

		if (!made)
			continue;
		require(!(all.rules >> i & 1) || fit.rules >> i & 1);
		require(strlen(marker) < sizeof(marker));
		if (r->kind == RS_PATTERN_IGNORE)
			require(!marker[0]);
		else
			require(rs_pattern_plain(marker) == r->kind);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rs_patterns *p = rs_patterns_create();
	char *text = malloc(size + 1), *cut, *line;
	unsigned said = 0;
	size_t len = size;

	memcpy(text, data, size);
	text[size] = '\0';
	cut = memmem(text, size, "\n--\n", 4);
	if (cut)
		len = (size_t)(cut - text) + 1;
	if (cut)
		cut[1] = '\0';
	require(rs_patterns_read(p, "f", text, len, complaint, &said) == said);
	rs_patterns_builtin(p);
	for (line = cut ? strtok(cut + 4, "\n") : NULL; line; line = strtok(NULL, "\n")) {
		ask(p, "", line);
		ask(p, "d", line);
	}
	rs_patterns_free(p);
	free(text);
	return 0;
}
