/* SPDX-License-Identifier: MIT */
/* Names that are too long, or no text: tracker/name.c. */
#include "tracker/name.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"
#include "tracker/json.h"
#include "tracker/records.h"
#include "tracker/utf8.h"

static int is_utf8(const char *s)
{
	size_t n;

	for (; *s; s += n) {
		n = rs_utf8_sequence(s, strlen(s));
		if (!n)
			return 0;
	}
	return 1;
}

/* A line of a record, as a contract or a plan is read; 0: it is none, or says something else. */
static int survives(const char *name, const char *fit)
{
	struct rs_jread r;
	struct rs_json j;

	rs_json_begin(&j);
	rs_json_str(&j, "segment", name);
	rs_json_close(&j, '}');
	rs_jread_begin(&r, j.text, j.len);
	while (rs_jread_next(&r) != RS_J_STRING)
		if (r.tok == RS_J_ERROR || r.tok == RS_J_END)
			return 0;
	return rs_jread_is(&r, fit);
}

/* Whatever a program calls its things: what is written of the name is the name, and so is what is written of the text. */
static void written_and_read(void)
{
	static const char *const some[] = {"caf\xe9",	   "caf\xc3\xa9",  "\xc3",
					   "\xed\xa0\x80", "\xf0\x9f\x99", "\x01\x1f\x7f\"\\",
					   "\xff\xfe",	   "\xc3\xc3\xa9"};
	char text[RS_NAME_BYTES], fit[RS_NAME_BYTES], again[RS_NAME_BYTES];
	uint64_t seed = 1;
	unsigned bad = 0;

	for (unsigned i = 0; i < 20000; i++) {
		size_t n = i % 60;

		if (i < sizeof(some) / sizeof(some[0])) {
			n = strlen(some[i]);
			memcpy(text, some[i], n);
		} else {
			for (size_t k = 0; k < n; k++) {
				seed = seed * 6364136223846793005ull + 1442695040888963407ull;
				text[k] = (char)(seed >> 33);
				if (!text[k])
					text[k] = 'a';
			}
		}
		text[n] = '\0';
		rs_name_fit(fit, text, n);
		rs_name_fit(again, fit, strlen(fit));
		if (strcmp(fit, again) || !survives(fit, fit) ||
		    (strlen(fit) < RS_NAME_BYTES - 18 && !survives(text, fit)))
			bad++;
	}
	is_u64(bad, 0, "names of any bytes are what is read of what was written of them");
}

int main(void)
{
	char text[8192], a[RS_NAME_BYTES], b[RS_NAME_BYTES];
	unsigned lengths = 0, fits = 0, cut = 0, whole = 0;

	memset(text, 'n', sizeof(text));
	for (size_t len = 0; len < sizeof(text); len += len < 300 ? 1 : 97) {
		lengths++;
		rs_name_fit(a, text, len);
		fits += len >= RS_NAME_BYTES || (strlen(a) == len && !memcmp(a, text, len));
		if (len < RS_NAME_BYTES)
			continue;
		text[len - 1] = 'x';
		rs_name_fit(b, text, len);
		text[len - 1] = 'n';
		cut += strlen(a) < RS_NAME_BYTES && !memcmp(a, text, 100) && strcmp(a, b) != 0;
		rs_name_fit(b, text, len + 1);
		whole += strcmp(a, b) != 0;
	}
	is_u64(fits, lengths, "names that fit are as they were");
	ok(cut == whole && cut == lengths - RS_NAME_BYTES,
	   "others begin as they did, and differ where these do (%u, %u)", cut, whole);
	fits = 0;
	for (size_t shift = 0; shift < 4; shift++) {
		memset(text, 'n', shift);
		for (size_t i = shift; i + 4 < sizeof(text); i += 4)
			memcpy(text + i, "\xf0\x9f\x99\x82", 4);
		rs_name_fit(a, text, 4000 + shift);
		fits += is_utf8(a) && strlen(a) < RS_NAME_BYTES;
	}
	is_u64(fits, 4, "no character is cut in two");
	memset(text, 0x80, sizeof(text));
	rs_name_fit(a, text, 5000);
	ok(strlen(a) > 100 && strlen(a) < RS_NAME_BYTES, "what is no text at all has a name, too");
	memset(text, 0xe9, 64);
	rs_name_fit(a, text, 63);
	ok(strlen(a) == 126 && is_utf8(a), "Latin-1 that fits is whole");
	rs_name_fit(a, text, 64);
	ok(strlen(a) < RS_NAME_BYTES && strchr(a, '~') && is_utf8(a),
	   "Latin-1 that does not is cut");
	written_and_read();
	return tap_done();
}
