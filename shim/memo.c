/* SPDX-License-Identifier: MIT */
/*
 * See memo.h.
 */
#include "shim/memo.h"
#include "shim/guard.h"

#include <stdlib.h>

static uint64_t hash(const struct rs_memo_key *key, const uint8_t *params)
{
	uint64_t h = (uintptr_t)key->kernel, word, at;

	h += (uint64_t)key->grid[0] << 32 | key->grid[1];
	h ^= (uint64_t)key->block[0] << 20 | key->grid[2];
	for (at = 0; at + 8 <= key->bytes; at += 8) {
		memcpy(&word, params + at, 8);
		h = (h ^ word) * RS_DIGEST_K;
		h ^= h >> 29;
	}
	for (; at < key->bytes; at++)
		h = (h ^ params[at]) * RS_DIGEST_K;
	return h ^ h >> 32;
}

struct rs_memo *rs_memo_find(struct rs_tls *t, const struct rs_memo_key *key, const uint8_t *params)
{
	struct rs_memo *m;

	if (rs_unlikely(!t->memos)) {
		RS_ENGINE(t->memos = calloc(RS_MEMOS, sizeof(*t->memos)));
		if (!t->memos)
			return NULL;
	}
	m = &t->memos[hash(key, params) % RS_MEMOS];
	if (m->valid &&
	    (memcmp(&m->key, key, sizeof(*key)) || memcmp(m->params, params, key->bytes)))
		m->valid = 0;
	return m;
}

struct rs_ptx_extent *rs_memo_room(struct rs_memo *m, const struct rs_memo_key *key,
				   const uint8_t *params, uint32_t n)
{
	if (!m)
		return NULL;
	if (key->bytes > m->params_cap) {
		uint8_t *more = realloc(m->params, key->bytes);

		if (!more)
			return NULL;
		m->params = more;
		m->params_cap = (uint32_t)key->bytes;
	}
	if (n > m->extents_cap) {
		struct rs_ptx_extent *more = realloc(m->extents, n * sizeof(*more));

		if (!more)
			return NULL;
		m->extents = more;
		m->extents_cap = n;
	}
	m->key = *key;
	memcpy(m->params, params, key->bytes);
	return m->extents;
}

void rs_memo_drop(struct rs_tls *t)
{
	for (unsigned i = 0; t->memos && i < RS_MEMOS; i++) {
		free(t->memos[i].params);
		free(t->memos[i].extents);
	}
	free(t->memos);
}
