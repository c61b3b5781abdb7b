/* SPDX-License-Identifier: MIT */
/* Names that are too long: tracker/name.c. */
#include "tracker/name.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"
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
	return tap_done();
}
