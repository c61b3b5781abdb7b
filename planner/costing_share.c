/* SPDX-License-Identifier: MIT */
/*
 * Sharing: overwritten bytes that several segments need in the same version are kept once. In the problem a share is a bit
 * of the mode from its first member to its last: clear until a member pays for it, so that later ones hold nothing for it.
 * The first in forward order pays, and holds it longest, so no other interval is needed.
 *
 * A bit serves shares that do not overlap one after the other; the largest come first. Those for which there is no bit are
 * paid by each member alone, which is never too little.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "planner/costing_priv.h"

#define MOST_BITS 4u /* 2^4 modes: RS_PROBLEM_MODES */
_Static_assert(1u << MOST_BITS <= RS_PROBLEM_MODES, "modes are sets of bits");

void rs_sharing_free(struct rs_sharing *s)
{
	free(s->v);
	free(s->common);
	memset(s, 0, sizeof(*s));
}

int rs_sharing_has(const struct rs_shared *s, uint32_t order)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->order[i] == order)
			return 1;
	return 0;
}

/* May it ever need what it shares? */
static int is_user(const struct rs_costs *c, uint32_t order)
{
	const struct rs_cost *s = order < c->n ? &c->segment[order] : NULL;

	return s && s->flags & RS_COST_REPLAYED &&
	       !(s->flags & RS_COST_UNSAFE && s->flags & RS_COST_RETAINS);
}

static void add_common(struct rs_sharing *s, uint32_t order, uint64_t bytes, uint64_t pieces)
{
	struct rs_common *c = &s->common[order];

	c->bytes = c->bytes + bytes < RS_MOST_BYTES ? c->bytes + bytes : RS_MOST_BYTES;
	c->pieces = c->pieces + pieces < RS_MOST_PIECES ? c->pieces + pieces : RS_MOST_PIECES;
}

static void add_loose(struct rs_sharing *s, const struct rs_shared *x)
{
	for (uint32_t i = 0; i < x->n; i++) {
		struct rs_common *c = &s->common[x->order[i]];
		uint64_t bytes = c->loose_bytes + x->bytes;
		uint64_t pieces = c->loose_pieces + x->pieces;

		c->loose_bytes = bytes < RS_MOST_BYTES ? bytes : RS_MOST_BYTES;
		c->loose_pieces = pieces < RS_MOST_PIECES ? pieces : RS_MOST_PIECES;
	}
}

static int by_members(const void *a, const void *b)
{
	const struct rs_shared *x = a, *y = b;

	if (x->n != y->n)
		return x->n < y->n ? -1 : 1;
	return memcmp(x->order, y->order, x->n * sizeof(x->order[0]));
}

static int by_bytes(const void *a, const void *b)
{
	const struct rs_shared *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return by_members(a, b);
}

/* Only members that may need it, and shares of several such; those of equal members are one. */
static void collect(const struct rs_costs *c, struct rs_sharing *s)
{
	uint32_t out = 0;

	for (uint32_t k = 0; k < c->nshares; k++) {
		const struct rs_cost_share *from = &c->share[k];
		struct rs_shared *x = &s->v[s->n];

		*x = (struct rs_shared){.bytes = from->bytes, .pieces = from->pieces};
		for (uint32_t i = 0; i < from->n; i++) {
			if (from->order[i] < c->n)
				add_common(s, from->order[i], from->bytes, from->pieces);
			if (is_user(c, from->order[i]))
				x->order[x->n++] = from->order[i];
		}
		if (x->n > 1 && x->bytes)
			s->n++;
		else
			add_loose(s, x);
	}
	qsort(s->v, s->n, sizeof(*s->v), by_members);
	for (uint32_t k = 0; k < s->n; k++) {
		if (out && !by_members(&s->v[out - 1], &s->v[k])) {
			s->v[out - 1].bytes += s->v[k].bytes;
			s->v[out - 1].pieces += s->v[k].pieces;
		} else {
			s->v[out++] = s->v[k];
		}
	}
	s->n = out;
}

static int overlaps(const struct rs_shared *a, const struct rs_shared *b)
{
	return a->order[0] <= b->order[b->n - 1] && b->order[0] <= a->order[a->n - 1];
}

/* A bit for each, as long as there are any. */
static void give_bits(struct rs_sharing *s)
{
	uint32_t out = 0;

	for (uint32_t k = 0; k < s->n; k++) {
		struct rs_shared x = s->v[k];
		uint32_t taken = 0;

		for (uint32_t j = 0; j < out; j++)
			if (overlaps(&s->v[j], &x))
				taken |= 1u << s->v[j].bit;
		for (x.bit = 0; taken & 1u << x.bit; x.bit++)
			;
		if (x.bit >= MOST_BITS || x.bytes > RS_MOST_BYTES || x.pieces > RS_MOST_PIECES) {
			add_loose(s, &x);
			continue;
		}
		if (x.bit >= s->bits)
			s->bits = x.bit + 1;
		s->v[out++] = x;
	}
	s->n = out;
}

int rs_sharing_build(const struct rs_costs *c, int unshared, struct rs_sharing *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (unshared || !c->nshares)
		return 0;
	ret->v = calloc(c->nshares, sizeof(*ret->v));
	ret->common = calloc(c->n ? c->n : 1, sizeof(*ret->common));
	if (!ret->v || !ret->common) {
		rs_sharing_free(ret);
		return -ENOMEM;
	}
	collect(c, ret);
	qsort(ret->v, ret->n, sizeof(*ret->v), by_bytes);
	give_bits(ret);
	return 0;
}
