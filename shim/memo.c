/* SPDX-License-Identifier: MIT */
/*
 * See memo.h.
 */
#include "shim/memo.h"
#include "shim/guard.h"
#include "tracker/digest.h"

#include <stdlib.h>

uint64_t rs_memo_voided;

void rs_memo_void(void)
{
	__atomic_fetch_add(&rs_memo_voided, 1, __ATOMIC_RELEASE);
}

static uint64_t load64(const uint8_t *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof(word));
	return word;
}

static uint32_t load32(const uint8_t *p)
{
	uint32_t word;

	memcpy(&word, p, sizeof(word));
	return word;
}

/* Lanes, so that one word's multiplication does not wait for the one before. The upper bits are the good ones. */
static uint64_t hash(const struct rs_kernel *k, const struct rs_launch *l, struct rs_params p)
{
	uint64_t a = (uintptr_t)k->code, b = (uint64_t)l->grid[0] << 32 | l->grid[1];
	uint64_t c = (uint64_t)l->block[0] << 32 | l->grid[2], d = l->shared, at = 0;

	for (; at + 32 <= p.n; at += 32) {
		a = (a ^ load64(p.data + at)) * RS_DIGEST_K;
		b = (b ^ load64(p.data + at + 8)) * RS_DIGEST_K;
		c = (c ^ load64(p.data + at + 16)) * RS_DIGEST_K;
		d = (d ^ load64(p.data + at + 24)) * RS_DIGEST_K;
	}
	for (; at + 8 <= p.n; at += 8)
		a = (a ^ load64(p.data + at)) * RS_DIGEST_K;
	for (; at < p.n; at++)
		a = (a ^ p.data[at]) * RS_DIGEST_K;
	a = (a ^ a >> 32 ^ b) * RS_DIGEST_K;
	a = (a ^ a >> 32 ^ c) * RS_DIGEST_K;
	return (a ^ a >> 32 ^ d) * RS_DIGEST_K;
}

/* Of a few of the words: enough to tell most launches that are new. The upper bits are the good ones. */
static inline uint64_t glance(const struct rs_kernel *k, const struct rs_launch *l, uint64_t first,
			      uint64_t middle, uint64_t last)
{
	uint64_t h = ((uintptr_t)k->code ^ l->grid[0]) * RS_DIGEST_K;

	h ^= first * 0x9fb21c651e98df25ull;
	h ^= middle * 0xd6e8feb86659fd93ull;
	return (h ^ last * 0xff51afd7ed558ccdull) | 1;
}

static uint64_t glance_at(const struct rs_kernel *k, const struct rs_launch *l, struct rs_params p)
{
	if (p.n < 8)
		return glance(k, l, 0, 0, 0);
	return glance(k, l, load64(p.data), load64(p.data + p.n / 16 * 8),
		      load64(p.data + p.n - 8));
}

/* Is there a launch that it may be equal to? There is from now on. */
static inline int was_glanced(struct rs_tls *t, uint64_t h)
{
	uint64_t *was = &t->memos_glanced[h >> 40 & (RS_MEMO_GLANCED - 1)];

	if (*was == h)
		return 1;
	*was = h;
	return 0;
}

int rs_memo_is_new(struct rs_tls *t, const struct rs_kernel *k, const struct rs_launch *l)
{
	const struct rs_code *code = k->code;
	const void *first, *middle, *last;

	if (code->ptx || l->extra || !l->params || rs_unlikely(!t->memos_seen) ||
	    __atomic_load_n(&code->layout, __ATOMIC_ACQUIRE) != RS_LAYOUT_KNOWN || !code->words)
		return 0;
	first = l->params[0];
	middle = l->params[code->nparams / 2];
	last = l->params[code->nparams - 1];
	if (rs_unlikely(!first || !middle || !last))
		return 0;
	return !was_glanced(t, glance(k, l, load64(first), load64(middle), load64(last)));
}

/* Of all but the parameters. The upper bits are the good ones. */
static uint64_t shape_hash(const struct rs_kernel *k, const struct rs_launch *l)
{
	uint64_t a = (uintptr_t)k->code ^ (uint64_t)l->grid[0] << 40 ^ (uint64_t)l->grid[1] << 20;

	return (a ^ l->block[0] ^ (uint64_t)l->block[1] << 12) * RS_DIGEST_K;
}

/*
 * Piece by piece, here and below: launch and parameters were stored a moment ago in such pieces, and a processor is
 * slow to hand on several stores to one wider load, as memcmp makes them.
 */
static int same_shape(const struct rs_memo *m, const struct rs_kernel *k, const struct rs_launch *l,
		      uint64_t ctx)
{
	return m->code == k->code && m->owner == k->owner && m->ctx == ctx &&
	       m->grid[0] == l->grid[0] && m->grid[1] == l->grid[1] && m->grid[2] == l->grid[2] &&
	       m->block[0] == l->block[0] && m->block[1] == l->block[1] &&
	       m->block[2] == l->block[2] && m->shared == l->shared;
}

static int same_block(const struct rs_memo *m, struct rs_params p)
{
	uint64_t differ = 0, at = 0;

	if (m->bytes != p.n)
		return 0;
	for (; at + 8 <= p.n; at += 8)
		differ |= load64(m->params + at) ^ load64(p.data + at);
	for (; at < p.n; at++)
		differ |= m->params[at] ^ p.data[at];
	return !differ;
}

static inline int same_words(const struct rs_memo *m, void **arg, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!arg[i] || load64(m->params + 8 * (size_t)i) != load64(arg[i]))
			return 0;
	return 1;
}

/* Arguments where the program has them, without gathering them first. */
static int same_arguments(const struct rs_memo *m, const struct rs_code *code, void **arg)
{
	const struct rs_code_param *p = code->params;
	uint32_t n = code->nparams;
	uint64_t differ = 0;

	if (m->bytes != code->param_bytes || !arg)
		return !m->bytes && !n;
	if (code->words)
		return same_words(m, arg, n);
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *had = m->params + p[i].offset, *have = arg[i];

		if (!have)
			return 0;
		if (p[i].size == 8)
			differ |= load64(had) ^ load64(have);
		else if (p[i].size == 4)
			differ |= load32(had) ^ load32(have);
		else
			differ |= memcmp(had, have, p[i].size) != 0;
		if (differ)
			return 0;
	}
	return 1;
}

struct rs_memo *rs_memo_next(struct rs_tls *t, const struct rs_kernel *k, const struct rs_launch *l)
{
	struct rs_memo *m = t->memo_last ? t->memo_last->next : NULL;

	if (!m || m->passing || l->extra || !same_shape(m, k, l, rs_ctx_current(t)) ||
	    !same_arguments(m, k->code, l->params))
		return NULL;
	t->memo_last = m;
	return m;
}

/* The entry was another launch's. With the same bounds, where only pointers differ. */
__attribute__((noinline)) static struct rs_memo *take_over(struct rs_memo *m,
							   const struct rs_kernel *k,
							   const struct rs_launch *l,
							   struct rs_params p, uint64_t ctx)
{
	if (!same_shape(m, k, l, ctx))
		m->bounded = 0;
	m->bounded &= m->bytes == p.n && k->code->ptx &&
		      rs_ptx_access_same(k->code->ptx, m->params, p.data, p.n);
	m->code = NULL;
	m->generation = m->calm = 0;
	if (p.n > m->params_cap) {
		uint8_t *more;

		RS_ENGINE(more = realloc(m->params, p.n));
		if (!more)
			return NULL;
		m->params = more;
		m->params_cap = (uint32_t)p.n;
	}
	if (p.n)
		memcpy(m->params, p.data, p.n);
	m->owner = k->owner;
	m->ctx = ctx;
	memcpy(m->grid, l->grid, sizeof(m->grid));
	memcpy(m->block, l->block, sizeof(m->block));
	m->shared = l->shared;
	m->bytes = (uint32_t)p.n;
	m->code = k->code;
	return m;
}

static int make_tables(struct rs_tls *t)
{
	if (!t->memos)
		RS_ENGINE(t->memos = calloc(RS_MEMOS, sizeof(*t->memos)));
	if (!t->memos_new)
		RS_ENGINE(t->memos_new = calloc(RS_MEMO_NEW, sizeof(*t->memos_new)));
	if (!t->memos_glanced)
		RS_ENGINE(t->memos_glanced = calloc(RS_MEMO_GLANCED, sizeof(*t->memos_glanced)));
	if (!t->memos_seen)
		RS_ENGINE(t->memos_seen = calloc(RS_MEMOS, sizeof(*t->memos_seen)));
	for (unsigned i = 0; t->memos_new && i < RS_MEMO_NEW; i++)
		t->memos_new[i].passing = 1;
	return t->memos && t->memos_new && t->memos_glanced && t->memos_seen;
}

/* The launch's entry, if it is about to get one. */
static struct rs_memo *own_entry(struct rs_tls *t, const struct rs_kernel *k,
				 const struct rs_launch *l, struct rs_params p)
{
	uint64_t h, *was;

	if (!was_glanced(t, glance_at(k, l, p)))
		return NULL;
	h = hash(k, l, p);
	was = &t->memos_seen[h >> 40 & (RS_MEMOS - 1)];
	if (*was != h) {
		*was = h;
		return NULL;
	}
	return &t->memos[h >> 40 & (RS_MEMOS - 1)];
}

struct rs_memo *rs_memo_get(struct rs_tls *t, const struct rs_kernel *k, const struct rs_launch *l,
			    struct rs_params p)
{
	uint64_t ctx = rs_ctx_current(t);
	struct rs_memo *m;

	if (rs_unlikely(p.n > RS_MEMO_MOST) || (rs_unlikely(!t->memos_seen) && !make_tables(t)))
		return NULL;
	m = own_entry(t, k, l, p);
	if (!m && !k->code->ptx)
		return NULL;
	if (!m)
		m = &t->memos_new[shape_hash(k, l) >> 40 & (RS_MEMO_NEW - 1)];
	if (t->memo_last)
		t->memo_last->next = m;
	t->memo_last = m;
	return same_shape(m, k, l, ctx) && same_block(m, p) ? m : take_over(m, k, l, p, ctx);
}

struct rs_ptx_extent *rs_memo_room(struct rs_memo *m, uint32_t n)
{
	struct rs_ptx_extent *more;

	if (n <= m->extents_cap)
		return m->extents;
	_Static_assert(_Alignof(struct rs_reach) <= _Alignof(struct rs_ptx_extent),
		       "one behind the other");
	RS_ENGINE(more = realloc(m->extents, n * (sizeof(*more) + sizeof(*m->reach))));
	if (!more)
		return NULL;
	m->extents = more;
	m->extents_cap = n;
	m->reach = (struct rs_reach *)(more + n);
	return more;
}

void rs_memo_keep(struct rs_memo *m, const struct rs_call *call, uint64_t generation)
{
	m->generation = m->calm = 0;
	if (m->passing)
		return;
	if (call->naccess > m->access_cap) {
		struct rs_access *more;

		RS_ENGINE(more = realloc(m->access, call->naccess * sizeof(*more)));
		if (!more)
			return;
		m->access = more;
		m->access_cap = call->naccess;
	}
	if (call->naccess)
		memcpy(m->access, call->access, call->naccess * sizeof(*m->access));
	m->naccess = call->naccess;
	m->everything = call->everything;
	m->untracked = call->untracked;
	m->ident = call->ident;
	m->generation = generation;
}

static void drop(struct rs_memo *memos, unsigned n)
{
	for (unsigned i = 0; memos && i < n; i++) {
		free(memos[i].params);
		free(memos[i].extents);
		free(memos[i].access);
	}
	free(memos);
}

void rs_memo_drop(struct rs_tls *t)
{
	drop(t->memos, RS_MEMOS);
	drop(t->memos_new, RS_MEMO_NEW);
	free(t->memos_glanced);
	free(t->memos_seen);
}
