/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: the reader of run directories and all reports of what it made of them. The input is
 * lines; one that starts with '>' (which no line of the files does) goes to records.jsonl without
 * it, the others to events.jsonl. Both reports must come out, and the JSON ones must parse. What can be learned of it
 * is a contract that the library's reader accepts, equal to itself.
 */
#include <stdlib.h>
#include <string.h>

#include "planner/contract.h"
#include "planner/report.h"
#include "tracker/contract.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void feed(struct rs_run *run, const char *text, size_t size)
{
	uint64_t lineno[2] = {0};

	while (size) {
		const char *end = memchr(text, '\n', size);
		size_t len = end ? (size_t)(end - text) : size, skip = len && *text == '>';
		enum rs_run_file file = skip ? RS_RUN_RECORDS : RS_RUN_EVENTS;

		rs_run_feed(run, file, ++lineno[file], text + skip, len - skip, end != NULL, NULL,
			    NULL);
		size -= len + (end != NULL);
		text += len + (end != NULL);
	}
}

static void must_parse(char *text, size_t size)
{
	json_t *o = json_loadb(text, size, JSON_DISABLE_EOF_CHECK, NULL);

	if (!o)
		abort();
	json_decref(o);
}

static void learn(struct rs_run *run)
{
	struct rs_jdoc_error error;
	struct rs_contract_why why;
	struct rs_contract *read;
	json_t *contract, *diff;
	char *text;

	if (rs_contract_learn(&run, 1, NULL, &contract, &why))
		return;
	text = json_dumps(contract, JSON_REAL_PRECISION(6));
	if (!text || rs_contract_parse(text, strlen(text), &read, &error))
		abort();
	rs_contract_free(read);
	free(text);
	diff = rs_contract_diff(contract, contract);
	if (json_array_size(diff))
		abort();
	json_decref(diff);
	json_decref(contract);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rs_report_style style = {size & 1, size & 2};
	struct rs_run *run = rs_run_create("run");
	enum rs_report_format format;
	char *text = NULL;
	size_t n = 0;
	FILE *out;

	if (!run)
		return 0;
	feed(run, (const char *)data, size);
	rs_run_finish(run);
	learn(run);
	for (format = RS_REPORT_TEXT; format <= RS_REPORT_JSONL; format++) {
		out = open_memstream(&text, &n);
		rs_report_all(out, &run, 1, format, &style);
		fclose(out);
		if (format != RS_REPORT_TEXT)
			must_parse(text, n);
		else if (!style.color && memchr(text, '\033', n))
			abort();
		free(text);
		text = NULL;
	}
	rs_run_free(run);
	return 0;
}
