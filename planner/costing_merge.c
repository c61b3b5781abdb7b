/* SPDX-License-Identifier: MIT */
/*
 * The costs of two processes of one job as one, so that a plan made of them is good for both: no event of either takes more
 * than it does by the merged ones. Taking the larger of each number is not enough, because what a segment adds is a
 * difference of two. See costing.h.
 */
#include <errno.h>
#include <string.h>

#include "planner/costing_priv.h"

static uint64_t max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void most(uint64_t *to, uint64_t from)
{
	*to = max64(*to, from);
}

static void merge_time(struct rs_cost_time *to, const struct rs_cost_time *from)
{
	if (from->n && (!to->n || from->median_ns > to->median_ns))
		*to = *from;
}

static uint64_t raised(uint64_t base, uint64_t least, uint64_t value)
{
	return max64(value, base + least < RS_MOST_BYTES ? base + least : RS_MOST_BYTES);
}

static void merge_memory(struct rs_cost *to, const struct rs_cost *from)
{
	uint64_t adds = max64(rs_less(to->end_replay, to->live_replay),
			      rs_less(from->end_replay, from->live_replay));
	uint64_t backward = max64(rs_less(to->peak_backward, to->live_replay),
				  rs_less(from->peak_backward, from->live_replay));
	uint64_t forward = max64(rs_less(to->peak_forward, to->live_forward),
				 rs_less(from->peak_forward, from->live_forward));

	most(&to->live_forward, from->live_forward);
	most(&to->live_replay, from->live_replay);
	most(&to->peak_forward, from->peak_forward);
	most(&to->peak_backward, from->peak_backward);
	to->end_replay = raised(to->live_replay, adds, 0);
	to->peak_forward = raised(to->live_forward, forward, to->peak_forward);
	to->peak_backward = raised(to->live_replay, max64(backward, adds), to->peak_backward);
}

static void merge_segment(struct rs_cost *to, const struct rs_cost *from)
{
	merge_memory(to, from);
	merge_time(&to->forward, &from->forward);
	merge_time(&to->replay, &from->replay);
	merge_time(&to->forward_busy, &from->forward_busy);
	merge_time(&to->replay_busy, &from->replay_busy);
	to->flags = ((to->flags | from->flags) & ~(uint64_t)RS_COST_RETAINS) |
		    (to->flags & from->flags & RS_COST_RETAINS);
	to->steps = to->steps < from->steps ? to->steps : from->steps;
	most(&to->product_bytes, from->product_bytes);
	most(&to->state_bytes, from->state_bytes);
	most(&to->whole_bytes, from->whole_bytes);
	most(&to->whole_pieces, from->whole_pieces);
	most(&to->kept_bytes, from->kept_bytes);
	most(&to->kept_pieces, from->kept_pieces);
	most(&to->own_bytes, from->own_bytes);
	most(&to->own_pieces, from->own_pieces);
	most(&to->draw_bytes, from->draw_bytes);
	most(&to->region_bytes, from->region_bytes);
	most(&to->region_pieces, from->region_pieces);
	most(&to->replays, from->replays);
	most(&to->compared_bytes, from->compared_bytes);
	most(&to->compared_pieces, from->compared_pieces);
	/* where one cannot, the plan is not good for both */
	to->remap_bytes = to->remap_bytes < from->remap_bytes ? to->remap_bytes : from->remap_bytes;
	most(&to->remap_pieces, from->remap_pieces);
}

static void merge_rate(struct rs_cost_rate *to, const struct rs_cost_rate *from)
{
	if (!to->n)
		*to = *from;
	if (!from->n)
		return;
	most(&to->n, from->n);
	most(&to->bytes, from->bytes);
	most(&to->each_ns, from->each_ns);
	most(&to->gib_ns, from->gib_ns);
}

static void merge_usage(struct rs_cost_usage *to, const struct rs_cost_usage *from)
{
	most(&to->step, from->step);
	to->steps = to->steps < from->steps ? to->steps : from->steps;
	most(&to->step_ns, from->step_ns);
	most(&to->live_bytes, from->live_bytes);
	most(&to->peak_bytes, from->peak_bytes);
	most(&to->arena_bytes, from->arena_bytes);
	most(&to->arena_used, from->arena_used);
	most(&to->turn_bytes, from->turn_bytes);
	most(&to->outside_bytes, from->outside_bytes);
	most(&to->segments, from->segments);
}

/* --- sharing ------------------------------------------------------------------------------------ */

static const struct rs_cost_share *same_share(const struct rs_costs *c,
					      const struct rs_cost_share *share)
{
	for (uint32_t i = 0; i < c->nshares; i++)
		if (c->share[i].n == share->n &&
		    !memcmp(c->share[i].order, share->order, share->n * sizeof(share->order[0])))
			return &c->share[i];
	return NULL;
}

/* What of their bytes segments do not share in both processes is their own. */
static void own_more(struct rs_cost *segments, uint32_t n, const struct rs_costs *c,
		     const struct rs_costs *other)
{
	for (uint32_t k = 0; k < c->nshares; k++) {
		const struct rs_cost_share *s = &c->share[k];

		for (uint32_t i = 0; !same_share(other, s) && i < s->n; i++) {
			struct rs_cost *cost = s->order[i] < n ? &segments[s->order[i]] : NULL;

			if (!cost)
				continue;
			cost->own_bytes = raised(cost->own_bytes, s->bytes, 0);
			cost->own_pieces += s->pieces;
			if (cost->own_pieces > RS_MOST_PIECES)
				cost->own_pieces = RS_MOST_PIECES;
		}
	}
}

static void merge_shares(struct rs_costs *c, const struct rs_costs *other)
{
	uint32_t out = 0;

	for (uint32_t k = 0; k < c->nshares; k++) {
		const struct rs_cost_share *its = same_share(other, &c->share[k]);

		if (!its)
			continue;
		c->share[out] = c->share[k];
		most(&c->share[out].bytes, its->bytes);
		most(&c->share[out++].pieces, its->pieces);
	}
	c->nshares = out;
}

int rs_costs_merge(struct rs_costs *c, const struct rs_costs *other)
{
	struct rs_costs its = {0};
	int r = 0;

	if (c->n != other->n || rs_costs_fingerprint(c) != rs_costs_fingerprint(other))
		return -EINVAL;
	for (uint32_t i = 0; !r && i < other->n; i++)
		r = rs_costs_put(&its, &other->segment[i]);
	if (!r) {
		own_more(c->segment, c->n, c, other);
		own_more(its.segment, its.n, other, c);
		for (uint32_t i = 0; i < c->n; i++)
			merge_segment(&c->segment[i], &its.segment[i]);
		merge_shares(c, other);
		for (int i = 0; i < RS_RATES; i++)
			merge_rate(&c->rate[i], &other->rate[i]);
		merge_usage(&c->usage, &other->usage);
	}
	rs_costs_free(&its);
	return r;
}
