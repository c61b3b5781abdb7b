/* SPDX-License-Identifier: MIT */
/* The table behind findings.h. Constant data. */
#include "tracker/findings.h"

const struct rs_finding_info rs_findings[RS_FINDING_COUNT] = {
#define F(code, severity, id, title, explanation, action)                                          \
	[RS_FINDING_##id] = {code, RS_##severity, title, explanation, action},
#include "tracker/findings.def"
#undef F
};

const char *rs_severity_name(enum rs_severity severity)
{
	static const char *const names[] = {"note", "warning", "error"};

	return severity <= RS_ERROR ? names[severity] : "error";
}
