/* SPDX-License-Identifier: MIT */
/*
 * Measured costs as they are collected: from lines of a run, a contract, or shared memory, all of which may say anything.
 * What is not sane is refused here, so that sums made of the rest cannot overflow. See costing.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "planner/costing_priv.h"

void rs_costs_free(struct rs_costs *c)
{
	free(c->segment);
	free(c->share);
	memset(c, 0, sizeof(*c));
}

/* --- what is believed --------------------------------------------------------------------------- */

static int time_is_sane(const struct rs_cost_time *t)
{
	return t->median_ns <= RS_MOST_NS && t->error_ns <= RS_MOST_NS;
}

static int cost_is_sane(const struct rs_cost *s)
{
	const uint64_t bytes[] = {s->live_forward,   s->peak_forward,  s->live_replay,
				  s->end_replay,     s->peak_backward, s->product_bytes,
				  s->state_bytes,    s->whole_bytes,   s->kept_bytes,
				  s->own_bytes,	     s->draw_bytes,    s->region_bytes,
				  s->compared_bytes, s->remap_bytes};
	const uint64_t pieces[] = {s->whole_pieces,  s->kept_pieces,	 s->own_pieces,
				   s->region_pieces, s->compared_pieces, s->remap_pieces};
	size_t name = strnlen(s->segment, sizeof(s->segment));

	if (!name || name == sizeof(s->segment) || s->invocation > UINT32_MAX ||
	    s->order >= RS_PROBLEM_SEGMENTS || s->replays > UINT32_MAX)
		return 0;
	for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++)
		if (bytes[i] > RS_MOST_BYTES)
			return 0;
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
		if (pieces[i] > RS_MOST_PIECES)
			return 0;
	return time_is_sane(&s->forward) && time_is_sane(&s->replay) &&
	       time_is_sane(&s->forward_busy) && time_is_sane(&s->replay_busy);
}

/* --- putting in --------------------------------------------------------------------------------- */

static int grow(void **v, uint32_t n, uint32_t *cap, size_t size)
{
	uint32_t want = n < 16 ? 16 : n * 2;
	void *grown;

	if (n < *cap)
		return 0;
	grown = realloc(*v, want * size);
	if (!grown)
		return -ENOMEM;
	*v = grown;
	*cap = want;
	return 0;
}

static int is_same(const struct rs_cost *a, const struct rs_cost *b)
{
	return a->invocation == b->invocation && !strcmp(a->segment, b->segment);
}

/* Where it is, or belongs: the first place whose order is not smaller. */
static uint32_t place_of(const struct rs_costs *c, uint64_t order)
{
	uint32_t low = 0, high = c->n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (c->segment[mid].order < order)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Usually it is where it was. */
static uint32_t find(const struct rs_costs *c, const struct rs_cost *cost)
{
	uint32_t at = place_of(c, cost->order), i;

	if (at < c->n && is_same(&c->segment[at], cost))
		return at;
	for (i = 0; i < c->n && !is_same(&c->segment[i], cost); i++)
		;
	return i;
}

int rs_costs_put(struct rs_costs *c, const struct rs_cost *cost)
{
	uint32_t at;

	if (!cost_is_sane(cost))
		return -EINVAL;
	at = find(c, cost);
	if (at < c->n && c->segment[at].order == cost->order) {
		c->segment[at] = *cost;
		return 0;
	}
	if (at < c->n) {
		c->n--;
		memmove(&c->segment[at], &c->segment[at + 1], (c->n - at) * sizeof(*c->segment));
	} else if (c->n == RS_PROBLEM_SEGMENTS) {
		return -EINVAL;
	} else if (grow((void **)&c->segment, c->n, &c->cap, sizeof(*c->segment))) {
		return -ENOMEM;
	}
	at = place_of(c, cost->order);
	memmove(&c->segment[at + 1], &c->segment[at], (c->n - at) * sizeof(*c->segment));
	c->segment[at] = *cost;
	c->n++;
	return 0;
}

static int is_same_share(const struct rs_cost_share *a, const struct rs_cost_share *b)
{
	return a->n == b->n && !memcmp(a->order, b->order, a->n * sizeof(a->order[0]));
}

int rs_costs_put_share(struct rs_costs *c, const struct rs_cost_share *share)
{
	if (share->n < 2 || share->n > RS_COST_SHARERS || share->bytes > RS_MOST_BYTES ||
	    share->pieces > RS_MOST_PIECES)
		return -EINVAL;
	for (uint32_t i = 0; i < share->n; i++)
		if (share->order[i] >= RS_PROBLEM_SEGMENTS ||
		    (i && share->order[i] <= share->order[i - 1]))
			return -EINVAL;
	for (uint32_t i = 0; i < c->nshares; i++)
		if (is_same_share(&c->share[i], share)) {
			c->share[i] = *share;
			return 0;
		}
	if (c->nshares == RS_PROBLEM_SEGMENTS)
		return -EINVAL;
	if (grow((void **)&c->share, c->nshares, &c->shares_cap, sizeof(*c->share)))
		return -ENOMEM;
	c->share[c->nshares++] = *share;
	return 0;
}

int rs_costs_put_rate(struct rs_costs *c, const struct rs_cost_rate *rate)
{
	if (rate->kind >= RS_RATES || rate->each_ns > RS_MOST_NS || rate->gib_ns > RS_MOST_NS)
		return -EINVAL;
	c->rate[rate->kind] = *rate;
	return 0;
}

/* --- is it enough ------------------------------------------------------------------------------- */

static const char *lacking(const struct rs_costs *c, uint32_t i)
{
	const struct rs_cost *s = &c->segment[i];

	if (s->order != i)
		return "the segments' places have gaps: not all of them have been seen in one step";
	if (!s->steps)
		return "a segment has not been measured in a whole step yet";
	if (s->flags & RS_COST_REPLAYED && !s->replay.n && !s->forward.n)
		return "a segment that is replayed has not been timed yet";
	return NULL;
}

int rs_costs_ready(const struct rs_costs *c, const char **ret_why)
{
	const char *why = NULL;
	int moves = 0;

	for (uint32_t i = 0; !why && i < c->n; i++) {
		const struct rs_cost *s = &c->segment[i];

		why = lacking(c, i);
		moves |= s->kept_bytes || s->own_bytes || s->draw_bytes;
	}
	if (!c->n)
		why = "no segment has been measured";
	else if (c->n > RS_PLAN_MAX)
		why = "there are more segments than a plan can have";
	else if (!why && !c->usage.steps)
		why = "no step has been measured";
	else if (!why &&
		 (c->usage.turn_bytes > RS_MOST_BYTES || c->usage.outside_bytes > RS_MOST_BYTES))
		why = "what is said to be in use between segments is more than can be";
	else if (!why && moves && !c->rate[RS_RATE_COPY].n)
		why = "no copy of preserved bytes has been timed: it takes steps in which state is preserved";
	if (why)
		*ret_why = why;
	return !why;
}

uint64_t rs_costs_fingerprint(const struct rs_costs *c)
{
	uint64_t print = 0;

	for (uint32_t i = 0; i < c->n; i++)
		print = rs_plan_print(print, rs_plan_name(c->segment[i].segment),
				      (uint32_t)c->segment[i].invocation);
	return print;
}
