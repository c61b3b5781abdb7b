/* SPDX-License-Identifier: MIT */
/* Is it UTF-8? For the writer and the reader of JSON. No state. */
#ifndef RS_TRACKER_UTF8_H
#define RS_TRACKER_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Length of the sequence at s, of which `left` bytes are there; 0 if it is none. */
static inline size_t rs_utf8_sequence(const char *text, size_t left)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t n;
	uint32_t c;

	if (!left)
		return 0;
	c = *s;
	if (c < 0x80)
		return 1;
	n = c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
	if (!n || n > left)
		return 0;
	c &= 0x7fu >> n;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3fu);
	}
	if ((n == 3 && c < 0x800) || (n == 4 && (c < 0x10000 || c > 0x10ffff)) ||
	    (c >= 0xd800 && c < 0xe000))
		return 0;
	return n;
}

#endif
