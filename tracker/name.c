/* SPDX-License-Identifier: MIT */
/* See name.h. */
#include "tracker/name.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tracker/digest.h"
#include "tracker/utf8.h"

#define KEPT (RS_NAME_BYTES - sizeof("~0123456789abcdef"))

/* The first character of text in UTF-8: how many bytes it has in `out`, and how many it took. */
static size_t character(const char *text, size_t left, char out[4], size_t *ret_took)
{
	size_t n = rs_utf8_sequence(text, left);
	unsigned char c = (unsigned char)*text;

	*ret_took = n ? n : 1;
	if (n) {
		memcpy(out, text, n);
		return n;
	}
	out[0] = (char)(0xc0 | c >> 6);
	out[1] = (char)(0x80 | (c & 0x3f));
	return 2;
}

/* Whole characters, as many of them as fit into `room` bytes; how many bytes all of them would take. */
static size_t put(char *out, size_t room, const char *text, size_t len, size_t *ret_put)
{
	size_t all = 0, took;
	char c[4];

	*ret_put = 0;
	for (size_t i = 0; i < len; i += took) {
		size_t n = character(text + i, len - i, c, &took);

		all += n;
		if (all > room)
			continue;
		memcpy(out + *ret_put, c, n);
		*ret_put += n;
	}
	return all;
}

static uint64_t digest_of(const char *text, size_t len, uint64_t digest)
{
	size_t took;
	char c[4];

	for (size_t i = 0; i < len; i += took) {
		size_t n = character(text + i, len - i, c, &took);

		for (size_t k = 0; k < n; k++)
			digest = rs_digest_mix(digest + RS_DIGEST_K + (unsigned char)c[k]);
	}
	return digest;
}

void rs_name_fit(char out[RS_NAME_BYTES], const char *text, size_t len)
{
	size_t keep, all = put(out, RS_NAME_BYTES - 1, text, len, &keep);

	out[keep] = '\0';
	if (all < RS_NAME_BYTES)
		return;
	put(out, KEPT, text, len, &keep);
	snprintf(out + keep, RS_NAME_BYTES - keep, "~%016llx",
		 (unsigned long long)digest_of(text, len, all));
}
