/* SPDX-License-Identifier: MIT */
/* The grammar of markers, and what is said of texts that only begin like one: tracker/mark.c. */
#include "tracker/mark.h"

#include <inttypes.h>
#include <string.h>

#include "tests/tap.h"

#define NUMBER "what follows # is no number"
#define STEP   "after step: there is no number"
#define NAME   "there is no name"

static const struct {
	const char *text, *name;
	int kind;
	int64_t number;
	const char *wrong;
} cases[] = {
	{"step:0", "", RS_MARK_STEP, 0, NULL},
	{"step:12", "", RS_MARK_STEP, 12, NULL},
	{"step:922337203685477580", "", RS_MARK_STEP, 922337203685477580, NULL},
	{"step:92233720368547758070", "", RS_MARK_OTHER, -1, STEP},
	{"step:18446744073709551621", "", RS_MARK_OTHER, -1, STEP}, /* 5, in 64 bits */
	{"step:", "", RS_MARK_OTHER, -1, STEP},
	{"step: 1", "", RS_MARK_OTHER, -1, STEP},
	{"step:-1", "", RS_MARK_OTHER, -1, STEP},
	{"forward:a", "a", RS_MARK_FORWARD, -1, NULL},
	{"forward:a#0", "a", RS_MARK_FORWARD, 0, NULL},
	{"forward:a#b#7", "a#b", RS_MARK_FORWARD, 7, NULL},
	{"replay:a b:c", "a b:c", RS_MARK_REPLAY, -1, NULL},
	{"replay:a#31", "a", RS_MARK_REPLAY, 31, NULL},
	{"forward:a#b", "", RS_MARK_OTHER, -1, NUMBER},
	{"forward:a#", "", RS_MARK_OTHER, -1, NUMBER},
	{"replay:a#1 ", "", RS_MARK_OTHER, -1, NUMBER},
	{"replay:a#92233720368547758070", "", RS_MARK_OTHER, -1, NUMBER},
	{"forward:", "", RS_MARK_OTHER, -1, NAME},
	{"forward:#1", "", RS_MARK_OTHER, -1, NAME},
	{"replay:#x", "", RS_MARK_OTHER, -1, NAME},
	{"forward", "", RS_MARK_OTHER, -1, NULL},
	{"Forward:a", "", RS_MARK_OTHER, -1, NULL},
	{"steps:1", "", RS_MARK_OTHER, -1, NULL},
	{"state:a", "", RS_MARK_OTHER, -1, NULL},
	{"", "", RS_MARK_OTHER, -1, NULL},
	{NULL, "", RS_MARK_OTHER, -1, NULL},
};

int main(void)
{
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rs_mark m = rs_mark_parse(cases[i].text);
		const char *text = cases[i].text ? cases[i].text : "no text";

		ok((int)m.kind == cases[i].kind && !strcmp(m.name, cases[i].name), "%s", text);
		if (cases[i].kind != RS_MARK_OTHER)
			ok(m.number == cases[i].number, "%s: %" PRId64, text, m.number);
		ok(!m.wrong == !cases[i].wrong && (!m.wrong || !strcmp(m.wrong, cases[i].wrong)),
		   "%s: %s", text, m.wrong ? m.wrong : "nothing is wrong");
	}
	return tap_done();
}
