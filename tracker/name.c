/* SPDX-License-Identifier: MIT */
/* See name.h. */
#include "tracker/name.h"

#include <stdio.h>
#include <string.h>

#include "tracker/digest.h"

#define KEPT (RS_NAME_BYTES - sizeof("~0123456789abcdef"))

void rs_name_fit(char out[RS_NAME_BYTES], const char *text, size_t len)
{
	uint64_t digest = len;
	size_t keep = KEPT;

	if (len < RS_NAME_BYTES) {
		memcpy(out, text, len);
		out[len] = '\0';
		return;
	}
	for (size_t i = 0; i < len; i++)
		digest = rs_digest_mix(digest + RS_DIGEST_K + (unsigned char)text[i]);
	/* Not in the middle of a character. */
	while (keep > KEPT - 3 && ((unsigned char)text[keep] & 0xc0) == 0x80)
		keep--;
	memcpy(out, text, keep);
	snprintf(out + keep, RS_NAME_BYTES - keep, "~%016llx", (unsigned long long)digest);
}
