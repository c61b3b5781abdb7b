/* SPDX-License-Identifier: MIT */
/*
 * Memory of one parsed PTX text: blocks in a list, strings in a chained hash table.
 *
 * Invariants and callers: ptx_arena.h. The hash is seeded per arena, because the text is not ours:
 * a fixed hash would let a module be written whose names all meet in one bucket.
 */
#include "tracker/ptx_arena.h"

#include <stdlib.h>
#include <string.h>

#define ARENA_BLOCK   (64u << 10)
#define ARENA_BUCKETS 1024u

struct rs_ptx_block {
	struct rs_ptx_block *next;
	void *mem;
};

struct rs_ptx_arena *rs_ptx_arena_new(void)
{
	struct rs_ptx_arena *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->nbuckets = ARENA_BUCKETS;
	a->buckets = calloc(a->nbuckets, sizeof(*a->buckets));
	if (!a->buckets) {
		free(a);
		return NULL;
	}
	a->seed = (uint64_t)(uintptr_t)a * 0x9e3779b97f4a7c15u ^ (uint64_t)(uintptr_t)&a;
	return a;
}

void rs_ptx_arena_free(struct rs_ptx_arena *a)
{
	struct rs_ptx_block *b, *next;

	if (!a)
		return;
	for (b = a->blocks; b; b = next) {
		next = b->next;
		free(b->mem);
		free(b);
	}
	free(a->buckets);
	free(a);
}

void *rs_ptx_arena_adopt(struct rs_ptx_arena *a, void *mem)
{
	struct rs_ptx_block *b = malloc(sizeof(*b));

	if (!b) {
		free(mem);
		return NULL;
	}
	b->mem = mem;
	b->next = a->blocks;
	a->blocks = b;
	return mem;
}

void *rs_ptx_arena_alloc(struct rs_ptx_arena *a, size_t size)
{
	void *mem;

	if (size > SIZE_MAX - 15)
		return NULL;
	size = (size + 15) & ~(size_t)15;
	if (size > ARENA_BLOCK / 4) {
		mem = calloc(1, size);
		return mem ? rs_ptx_arena_adopt(a, mem) : NULL;
	}
	if ((size_t)(a->end - a->cur) < size) {
		mem = calloc(1, ARENA_BLOCK);
		if (!mem || !rs_ptx_arena_adopt(a, mem))
			return NULL;
		a->cur = mem;
		a->end = a->cur + ARENA_BLOCK;
	}
	mem = a->cur;
	a->cur += size;
	return mem;
}

static uint32_t str_hash(const struct rs_ptx_arena *a, const char *text, size_t len)
{
	uint64_t h = a->seed ^ len, w;

	for (; len; text += sizeof(w)) {
		size_t n = len < sizeof(w) ? len : sizeof(w);
		unsigned __int128 m;

		w = 0;
		memcpy(&w, text, n);
		m = (unsigned __int128)(h ^ w) * (0xa0761d6478bd642fu ^ a->seed << 1);
		h = (uint64_t)m ^ (uint64_t)(m >> 64);
		len -= n;
	}
	return (uint32_t)(h ^ h >> 32);
}

static struct rs_ptx_str *str_find(const struct rs_ptx_arena *a, const char *text, size_t len,
				   uint32_t hash)
{
	struct rs_ptx_str *s = a->buckets[hash & (a->nbuckets - 1)];

	for (; s; s = s->next)
		if (s->hash == hash && s->len == len && !memcmp(s->text, text, len))
			return s;
	return NULL;
}

struct rs_ptx_str *rs_ptx_interned(const struct rs_ptx_arena *a, const char *text, size_t len)
{
	return str_find(a, text, len, str_hash(a, text, len));
}

/* Twice the buckets. A failure to grow only makes the chains longer. */
static void buckets_grow(struct rs_ptx_arena *a)
{
	uint32_t n = a->nbuckets * 2, i;
	struct rs_ptx_str **buckets, *s, *next;

	if (n > 1u << 24)
		return;
	buckets = calloc(n, sizeof(*buckets));
	if (!buckets)
		return;
	for (i = 0; i < a->nbuckets; i++)
		for (s = a->buckets[i]; s; s = next) {
			next = s->next;
			s->next = buckets[s->hash & (n - 1)];
			buckets[s->hash & (n - 1)] = s;
		}
	free(a->buckets);
	a->buckets = buckets;
	a->nbuckets = n;
}

struct rs_ptx_str *rs_ptx_intern(struct rs_ptx_arena *a, const char *text, size_t len)
{
	uint32_t hash = str_hash(a, text, len);
	struct rs_ptx_str *s = str_find(a, text, len, hash);

	if (s)
		return s;
	if (a->nstrs >= a->nbuckets)
		buckets_grow(a);
	s = rs_ptx_arena_alloc(a, sizeof(*s) + len + 1);
	if (!s)
		return NULL;
	memcpy(s->text, text, len);
	s->len = (uint32_t)len;
	s->hash = hash;
	s->next = a->buckets[hash & (a->nbuckets - 1)];
	a->buckets[hash & (a->nbuckets - 1)] = s;
	a->nstrs++;
	return s;
}
