/* SPDX-License-Identifier: MIT */
/*
 * See sorted.h. Callers: maps.c, wrap_ipc.c, each under its own lock.
 */
#include "shim/sorted.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t key_at(const struct rs_sorted *s, size_t i)
{
	uint64_t key;

	memcpy(&key, s->v + i * s->size, sizeof(key));
	return key;
}

size_t rs_sorted_from(const struct rs_sorted *s, uint64_t key)
{
	size_t lo = 0, hi = s->n, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (key_at(s, mid) < key)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

void *rs_sorted_find(const struct rs_sorted *s, uint64_t key)
{
	size_t i = rs_sorted_from(s, key);

	return i < s->n && key_at(s, i) == key ? s->v + i * s->size : NULL;
}

void *rs_sorted_add(struct rs_sorted *s, uint64_t key)
{
	size_t i = rs_sorted_from(s, key), cap = s->cap ? 2 * s->cap : 16;
	int saved = errno;
	char *at;

	if (i < s->n && key_at(s, i) == key)
		return s->v + i * s->size;
	if (s->n == s->cap) {
		at = realloc(s->v, cap * s->size);
		errno = saved;
		if (!at)
			return NULL;
		s->v = at;
		s->cap = cap;
	}
	at = s->v + i * s->size;
	memmove(at + s->size, at, (s->n - i) * s->size);
	memset(at, 0, s->size);
	memcpy(at, &key, sizeof(key));
	s->n++;
	return at;
}

void rs_sorted_remove(struct rs_sorted *s, uint64_t key)
{
	char *at = rs_sorted_find(s, key);

	if (!at)
		return;
	s->n--;
	memmove(at, at + s->size, s->n * s->size - (size_t)(at - s->v));
}
