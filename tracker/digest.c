/* SPDX-License-Identifier: MIT */
/* Host reference of the chunk digest; see digest.h. No state, any thread. */
#include "tracker/digest.h"

#include <string.h>

#include "tracker/devops.h"

uint64_t rs_digest_chunk(const void *data, uint64_t bytes)
{
	const uint8_t *p = data;
	uint64_t sum = rs_digest_mix(bytes);
	uint64_t i, w;

	for (i = 0; i * 8 < bytes; i++) {
		uint64_t n = bytes - i * 8 < 8 ? bytes - i * 8 : 8;

		w = 0;
		memcpy(&w, p + i * 8, n);
		sum += rs_digest_mix(w + (i + 1) * RS_DIGEST_K);
	}
	return sum;
}

void rs_digest_range(const void *data, uint64_t bytes, uint64_t *out)
{
	uint64_t at;

	for (at = 0; at < bytes; at += RS_DIGEST_CHUNK)
		*out++ = rs_digest_chunk((const uint8_t *)data + at, bytes - at < RS_DIGEST_CHUNK
									     ? bytes - at
									     : RS_DIGEST_CHUNK);
}
