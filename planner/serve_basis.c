/* SPDX-License-Identifier: MIT */
/*
 * When has a program become another one than its plan was made for?
 *
 * Memory: where any number has grown by more than a quarter of what a plan leaves alone, or all of what is held together
 * has; numbers never become smaller, they are maxima. Time: where the medians have moved, taken together, by more than
 * 5% of a step's forwards and replays and by more than their standard errors explain. So a plan is not made anew for each
 * sample. No state but the client's basis.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "planner/serve_priv.h"

#define DRIFT 0.05 /* of the times, together */
#define NOISE 3.0  /* standard errors */
#define PRICE 0.25 /* of what the tool's own operations take */

int rs_serve_based(struct rs_serve_client *c)
{
	struct rs_cost *copy = malloc(c->costs.n * sizeof(*copy) + 1);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, c->costs.segment, c->costs.n * sizeof(*copy));
	free(c->basis);
	c->basis = copy;
	c->basis_n = c->costs.n;
	c->basis_shares = c->costs.nshares;
	memcpy(c->basis_rate, c->costs.rate, sizeof(c->basis_rate));
	c->basis_turn = c->costs.usage.turn_bytes;
	c->basis_outside = c->costs.usage.outside_bytes;
	return 0;
}

static uint64_t growth(uint64_t then, uint64_t now)
{
	return now > then ? now - then : 0;
}

/* Most that one of its events has grown by; what it holds has grown by *ret_held. */
static uint64_t segment_growth(const struct rs_cost *then, const struct rs_cost *now,
			       uint64_t *ret_held)
{
	const uint64_t event[] = {growth(then->live_forward, now->live_forward),
				  growth(then->peak_forward, now->peak_forward),
				  growth(then->live_replay, now->live_replay),
				  growth(then->end_replay, now->end_replay),
				  growth(then->peak_backward, now->peak_backward)};
	uint64_t most = 0;

	for (unsigned i = 0; i < sizeof(event) / sizeof(*event); i++)
		most = event[i] > most ? event[i] : most;
	*ret_held = growth(then->product_bytes, now->product_bytes) +
		    growth(then->kept_bytes, now->kept_bytes) +
		    growth(then->own_bytes, now->own_bytes) +
		    growth(then->region_bytes, now->region_bytes);
	return most;
}

static int memory_grew(const struct rs_serve_client *c)
{
	/* A plan leaves at least 1% alone. */
	const uint64_t most = c->made.budget / 400;
	uint64_t held = 0, all = 0;

	for (uint32_t i = 0; i < c->basis_n; i++) {
		if (segment_growth(&c->basis[i], &c->costs.segment[i], &held) > most)
			return 1;
		all += held;
	}
	return all > most || growth(c->basis_turn, c->costs.usage.turn_bytes) > most ||
	       growth(c->basis_outside, c->costs.usage.outside_bytes) > most;
}

static double apart(const struct rs_cost_time *then, const struct rs_cost_time *now, double *noise)
{
	double d = (double)now->median_ns - (double)then->median_ns;

	*noise += (double)then->error_ns + (double)now->error_ns;
	return d < 0 ? -d : d;
}

static int times_moved(const struct rs_serve_client *c)
{
	double moved = 0, noise = 0, all = 0;

	for (uint32_t i = 0; i < c->basis_n; i++) {
		const struct rs_cost *then = &c->basis[i], *now = &c->costs.segment[i];

		moved += apart(&then->forward, &now->forward, &noise);
		moved += apart(&then->replay, &now->replay, &noise);
		all += (double)then->forward.median_ns + (double)then->replay.median_ns;
	}
	return moved > DRIFT * all + NOISE * noise;
}

static int moved_much(uint64_t then, uint64_t now)
{
	double a = (double)then, b = (double)now;

	return b > a * (1 + PRICE) + 1000 || a > b * (1 + PRICE) + 1000;
}

static int prices_moved(const struct rs_serve_client *c)
{
	for (unsigned k = 0; k < RS_RATES; k++) {
		const struct rs_cost_rate *then = &c->basis_rate[k], *now = &c->costs.rate[k];

		if (!then->n != !now->n || moved_much(then->each_ns, now->each_ns) ||
		    moved_much(then->gib_ns, now->gib_ns))
			return 1;
	}
	return 0;
}

static int is_other(const struct rs_cost *then, const struct rs_cost *now)
{
	const uint64_t what = RS_COST_RETAINS | RS_COST_UNSAFE | RS_COST_REPLAYED;

	return then->invocation != now->invocation || strcmp(then->segment, now->segment) ||
	       (then->flags & what) != (now->flags & what) || then->replays != now->replays ||
	       !then->replay.n != !now->replay.n;
}

int rs_serve_drifted(const struct rs_serve_client *c)
{
	if (c->costs.n != c->basis_n || c->costs.nshares != c->basis_shares)
		return 1;
	for (uint32_t i = 0; i < c->basis_n; i++)
		if (is_other(&c->basis[i], &c->costs.segment[i]))
			return 1;
	return memory_grew(c) || prices_moved(c) || times_moved(c);
}
