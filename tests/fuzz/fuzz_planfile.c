/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: the reader of plan files. What is refused has a place and a reason; what is accepted is a plan that an
 * engine takes. Seeds: tests/fuzz/corpus/fuzz_planfile. No state between inputs.
 */
#include <stdlib.h>
#include <string.h>

#include "tracker/engine.h"
#include "tracker/planfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int good)
{
	if (!good)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct rs_devops ops;
	const struct rs_engine_config config = {.mode = RS_MODE_PRESERVE, .costs = 1};
	struct rs_plan_entry *entries = NULL;
	struct rs_jdoc_error error;
	struct rs_plan_head head;
	struct rs_engine *e;
	char *text = malloc(size + 1);

	memcpy(text, data, size);
	if (rs_planfile_parse(text, size, &head, &entries, &error)) {
		require(error.line && error.column && error.text[0] && !entries);
	} else {
		e = rs_engine_create(&config, &ops, NULL);
		require(e && !rs_engine_plan(e, (struct rs_queue){0}, &head, entries));
		rs_engine_destroy(e);
		free(entries);
	}
	free(text);
	return 0;
}
