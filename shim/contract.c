/* SPDX-License-Identifier: MIT */
/*
 * See contract.h. Callers: rs_init_start, once, in one thread. No locks.
 * What was read is freed again: the engine keeps copies.
 */
#include "shim/contract.h"

#include "shim/log.h"
#include "shim/shim.h"
#include "tracker/contract.h"

#include <stdio.h>
#include <string.h>

static void describe(const char *path, const struct rs_jdoc_error *e, char *out, size_t size)
{
	if (e->line)
		snprintf(out, size, "%s:%u:%u: %s%s%s", path, e->line, e->column, e->field,
			 e->field[0] ? " " : "", e->text);
	else
		snprintf(out, size, "%s: %s", path, e->text);
}

static void record(const char *path, const struct rs_contract *c, const char *refused)
{
	struct rs_json j;

	rs_json_begin(&j);
	rs_json_str(&j, "t", "contract");
	rs_json_str(&j, "status", refused ? "refused" : "enforced");
	rs_json_str(&j, "file", path);
	if (refused) {
		rs_json_str(&j, "text", refused);
	} else {
		rs_json_str(&j, "fingerprint", rs_contract_fingerprint(c));
		rs_json_u64(&j, "segments", rs_contract_segments(c));
		rs_json_u64(&j, "terms", rs_contract_terms(c));
	}
	rs_records_write(rs_state.records, RS_RECORD_EVENTS, &j);
}

void rs_contract_start(void)
{
	const char *path = rs_state.opt.contract;
	struct rs_jdoc_error error = {0};
	struct rs_contract *c = NULL;
	char text[768];
	int err;

	if (!path[0])
		return;
	err = rs_contract_load(path, &c, &error);
	if (!err) {
		err = rs_contract_apply(c, rs_state.engine);
		if (err)
			snprintf(error.text, sizeof(error.text), "%s", strerror(-err));
	}
	if (err) {
		describe(path, &error, text, sizeof(text));
		rs_log(RS_LOG_ERROR, "%s; the run goes on without a contract", text);
	}
	if (rs_state.records)
		record(path, c, err ? text : NULL);
	rs_contract_free(c);
}
