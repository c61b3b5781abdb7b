/* SPDX-License-Identifier: MIT */
/* The finding codes of findings.def as an enum and a table. Constant data, any thread. */
#ifndef RS_TRACKER_FINDINGS_H
#define RS_TRACKER_FINDINGS_H

enum rs_severity { RS_NOTE, RS_WARN, RS_ERROR };

enum rs_finding {
#define F(code, severity, id, title, explanation, action) RS_FINDING_##id,
#include "tracker/findings.def"
#undef F
	RS_FINDING_COUNT
};

struct rs_finding_info {
	unsigned code; /* printed as RS%03u */
	enum rs_severity severity;
	const char *title, *explanation, *action;
};

extern const struct rs_finding_info rs_findings[RS_FINDING_COUNT];

const char *rs_severity_name(enum rs_severity severity); /* "note", "warning", "error" */

#endif
