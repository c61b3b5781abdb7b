/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: the reader of contracts. What is refused has a place and a reason; what is accepted can be told to an engine;
 * the JSON reader below it never goes past the text, and without changing it sees the same tokens.
 * Seeds: tests/fuzz/corpus/fuzz_contract. No state between inputs.
 */
#include "tracker/contract.h"
#include "tracker/json.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int good)
{
	if (!good)
		abort();
}

static void both_ways(const uint8_t *data, char *text, size_t size)
{
	char *same = malloc(size + 1);
	struct rs_jread a, b;
	enum rs_jtok t;

	memcpy(same, data, size);
	rs_jread_begin(&a, text, size);
	rs_jread_begin(&b, same, size);
	b.keep = 1;
	do {
		t = rs_jread_next(&a);
		require(t == rs_jread_next(&b) && a.line == b.line && a.column == b.column);
		require(t == RS_J_ERROR ? !!a.error : a.depth <= RS_JREAD_DEPTH);
		if (t == RS_J_KEY || t == RS_J_STRING)
			require(strlen(a.str) == a.str_len && a.str_len <= b.str_len);
	} while (t != RS_J_ERROR && t != RS_J_END);
	require(!memcmp(same, data, size));
	free(same);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct rs_devops ops;
	const struct rs_engine_config config = {.mode = RS_MODE_PRESERVE};
	struct rs_jdoc_error error;
	struct rs_contract *c = NULL;
	struct rs_engine *e;
	char *text = malloc(size + 1);

	memcpy(text, data, size);
	both_ways(data, text, size);
	memcpy(text, data, size);
	if (rs_contract_parse(text, size, &c, &error)) {
		require(error.line && error.column && error.text[0] && !c);
	} else {
		e = rs_engine_create(&config, &ops, NULL);
		require(e && !rs_contract_apply(c, e));
		rs_contract_free(c);
		rs_engine_destroy(e);
	}
	free(text);
	return 0;
}
