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
	return (a ^ a >> 32 ^ d) * RS_DIGEST_K >> 40;
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

/* Arguments where the program has them, without gathering them first. */
static int same_arguments(const struct rs_memo *m, const struct rs_code *code, void **arg)
{
	const struct rs_code_param *p = code->params;
	uint32_t n = code->nparams;
	uint64_t differ = 0;

	if (m->bytes != code->param_bytes || !arg)
		return !m->bytes && !n;
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
	}
	return !differ;
}

struct rs_memo *rs_memo_next(struct rs_tls *t, const struct rs_kernel *k, const struct rs_launch *l)
{
	struct rs_memo *m = t->memo_last ? t->memo_last->next : NULL;

	if (!m || l->extra || !same_shape(m, k, l, rs_ctx_current(t)) ||
	    !same_arguments(m, k->code, l->params))
		return NULL;
	t->memo_last = m;
	return m;
}

/* The entry was another launch's. */
__attribute__((noinline)) static struct rs_memo *take_over(struct rs_memo *m,
							   const struct rs_kernel *k,
							   const struct rs_launch *l,
							   struct rs_params p, uint64_t ctx)
{
	m->code = NULL;
	m->generation = m->calm = 0;
	m->bounded = 0;
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

struct rs_memo *rs_memo_get(struct rs_tls *t, const struct rs_kernel *k, const struct rs_launch *l,
			    struct rs_params p)
{
	uint64_t ctx = rs_ctx_current(t);
	struct rs_memo *m;

	if (rs_unlikely(p.n > RS_MEMO_MOST))
		return NULL;
	if (rs_unlikely(!t->memos)) {
		RS_ENGINE(t->memos = calloc(RS_MEMOS, sizeof(*t->memos)));
		if (!t->memos)
			return NULL;
	}
	m = &t->memos[hash(k, l, p) % RS_MEMOS];
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
	RS_ENGINE(more = realloc(m->extents, n * sizeof(*more)));
	if (!more)
		return NULL;
	m->extents = more;
	m->extents_cap = n;
	return more;
}

void rs_memo_keep(struct rs_memo *m, const struct rs_call *call, uint64_t generation)
{
	m->generation = m->calm = 0;
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

void rs_memo_drop(struct rs_tls *t)
{
	for (unsigned i = 0; t->memos && i < RS_MEMOS; i++) {
		free(t->memos[i].params);
		free(t->memos[i].extents);
		free(t->memos[i].access);
	}
	free(t->memos);
}
