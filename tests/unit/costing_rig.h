/* SPDX-License-Identifier: MIT */
/*
 * A made-up program for the tests of the cost model: segments that allocate and free, read state that is overwritten, and
 * share some of it. A step of it can be run under any choice of options, event by event; costs are what a step shows in
 * which nothing is kept. Nothing here is computed as the model computes it.
 */
#ifndef RS_TESTS_UNIT_COSTING_RIG_H
#define RS_TESTS_UNIT_COSTING_RIG_H

#include <stdio.h>

#include "planner/costing.h"
#include "tests/unit/plan_rig.h"

#define MOST_SEGMENTS 8
#define MOST_ATOMS    16

/* Times per byte; each operation takes EACH on top. */
#define COPY   2u
#define DIGEST 1u
#define SWAP   5u
#define EACH   7u

struct rig_segment {
	uint64_t acts, temp, out, scratch, grad;
	int frees_late; /* activations that are not kept go when the forward ends, not one after the other */
	int retains, replays;
	uint64_t replay_ns;
	uint64_t whole_more, region_more; /* bytes that those options save, and nobody overwrites */
};

/* Overwritten bytes in one piece, and who needs them. */
struct rig_atom {
	uint64_t bytes;
	uint32_t users;
};

struct rig_program {
	uint32_t n, natoms;
	struct rig_segment s[MOST_SEGMENTS];
	struct rig_atom atom[MOST_ATOMS];
	uint64_t parameters, optimizer, loss;
};

struct rig_choice {
	uint8_t option, restore;
};

/* What a step shows. */
struct rig_step {
	uint64_t live, peak;
	uint64_t live_forward[MOST_SEGMENTS], forward[MOST_SEGMENTS];
	uint64_t live_replay[MOST_SEGMENTS], end_replay[MOST_SEGMENTS], backward[MOST_SEGMENTS];
	uint64_t turn, outside;
};

static inline void rig_take(struct rig_step *t, uint64_t bytes)
{
	t->live += bytes;
	t->peak = t->live > t->peak ? t->live : t->peak;
}

/* A phase ends: the most of it. */
static inline uint64_t rig_phase(struct rig_step *t)
{
	uint64_t peak = t->peak;

	t->peak = t->live;
	return peak;
}

static inline void rig_forward(struct rig_step *t, const struct rig_segment *s, int keep)
{
	for (int part = 0; part < 4; part++) {
		rig_take(t, s->acts / 4 + s->temp);
		t->live -= s->temp;
		if (!keep && !s->frees_late)
			t->live -= s->acts / 4;
	}
	if (!keep && s->frees_late)
		t->live -= s->acts / 4 * 4;
}

/* keeps: bit i, segment i keeps its activations. */
static inline struct rig_step rig_run(const struct rig_program *p, uint32_t keeps)
{
	struct rig_step t = {0};
	uint64_t after = 0;

	rig_take(&t, p->parameters);
	t.outside = rig_phase(&t);
	for (uint32_t i = 0; i < p->n; i++) {
		t.live_forward[i] = t.live;
		rig_forward(&t, &p->s[i], keeps >> i & 1);
		rig_take(&t, p->s[i].out);
		t.forward[i] = rig_phase(&t);
	}
	rig_take(&t, p->loss);
	t.live -= p->loss;
	t.turn = rig_phase(&t);
	for (uint32_t i = p->n; i-- > 0;) {
		const struct rig_segment *s = &p->s[i];

		t.live_replay[i] = t.live;
		if (!(keeps >> i & 1))
			rig_forward(&t, s, 1);
		t.end_replay[i] = t.live;
		rig_take(&t, s->grad);
		rig_take(&t, s->scratch);
		t.live -= s->scratch + s->acts / 4 * 4 + s->out;
		t.backward[i] = rig_phase(&t);
	}
	rig_take(&t, p->optimizer);
	t.live -= p->optimizer;
	after = rig_phase(&t);
	t.outside = after > t.outside ? after : t.outside;
	return t;
}

/* --- the tool's bytes --------------------------------------------------------------------------- */

static inline int rig_saves(struct rig_choice c)
{
	return c.option != RS_OPTION_RETAIN && c.option != RS_OPTION_FREE;
}

/* Most the tool has at once, and (held, at) what it holds at each backward with what it needs there. */
static inline uint64_t rig_tool(const struct rig_program *p, const struct rig_choice *c,
				uint64_t *at)
{
	uint64_t held = 0, most = 0;
	uint32_t saved = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		uint64_t shown = 0, foreign = 0;

		for (uint32_t a = 0; rig_saves(c[i]) && a < p->natoms; a++) {
			const struct rig_atom *x = &p->atom[a];

			if (!(x->users >> i & 1))
				continue;
			shown += x->bytes;
			foreign += x->users == 1u << i ? 0 : x->bytes;
			held += saved >> a & 1 ? 0 : x->bytes;
			saved |= 1u << a;
		}
		if (c[i].option == RS_OPTION_WHOLE)
			held += p->s[i].whole_more;
		if (c[i].option == RS_OPTION_REGIONS)
			held += p->s[i].region_more;
		at[i] = held + (c[i].restore == RS_RESTORE_SWAP ? foreign : shown);
		most = at[i] > most ? at[i] : most;
	}
	return most;
}

static inline uint64_t rig_time(const struct rig_program *p, const struct rig_choice *c)
{
	uint64_t time = 0;
	uint32_t saved = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		uint64_t more = c[i].option == RS_OPTION_WHOLE	   ? p->s[i].whole_more
				: c[i].option == RS_OPTION_REGIONS ? p->s[i].region_more
								   : 0;
		int shows_all = c[i].option != RS_OPTION_WHOLE || !more;
		uint64_t shown = 0, foreign = 0, pieces = 0, saves = more, ops = 0;

		if (c[i].option == RS_OPTION_RETAIN)
			continue;
		time += p->s[i].replay_ns;
		for (uint32_t a = 0; rig_saves(c[i]) && a < p->natoms; a++) {
			const struct rig_atom *x = &p->atom[a];

			if (!(x->users >> i & 1))
				continue;
			shown += x->bytes;
			pieces++;
			foreign += x->users == 1u << i ? 0 : x->bytes;
			if (saved >> a & 1)
				continue;
			saved |= 1u << a;
			if (x->users == 1u << i) {
				saves += x->bytes;
			} else {
				time += 2 * EACH + x->bytes * (COPY + DIGEST);
			}
		}
		ops = saves > 0; /* what is not shared is in one piece */
		time += saves * (COPY + DIGEST) + 2 * EACH * ops;
		if (!shown)
			continue;
		if (c[i].restore == RS_RESTORE_COPY)
			time += 3 * (shown * COPY + EACH * pieces) +
				(shows_all ? 2 : 1) * (shown * DIGEST + EACH * pieces);
		else
			time += shown * (SWAP + COPY + 2 * DIGEST) + 4 * EACH * pieces +
				(foreign ? foreign * (COPY + DIGEST) + 2 * EACH * pieces : 0);
	}
	return time;
}

/* --- programs and their costs --------------------------------------------------------------------- */

static inline uint64_t rig_bytes(struct rig_random *r, uint64_t most)
{
	return (uint64_t)rig_int(r, 0, (int64_t)most / 256) * 256;
}

static inline void rig_make(struct rig_random *r, struct rig_program *p, uint32_t n)
{
	memset(p, 0, sizeof(*p));
	p->n = n;
	p->parameters = rig_bytes(r, 1 << 20);
	p->optimizer = rig_int(r, 0, 3) ? rig_bytes(r, 1 << 18) : rig_bytes(r, 1 << 22);
	p->loss = rig_int(r, 0, 3) ? rig_bytes(r, 1 << 16) : rig_bytes(r, 1 << 21);
	for (uint32_t i = 0; i < n; i++) {
		struct rig_segment *s = &p->s[i];

		s->acts = rig_bytes(r, 1 << 19) * 4;
		s->temp = rig_bytes(r, 1 << 18);
		s->out = rig_bytes(r, 1 << 17);
		s->scratch = rig_int(r, 0, 1) ? rig_bytes(r, 1 << 20) : 0;
		s->grad = rig_bytes(r, 1 << 17);
		s->frees_late = (int)rig_int(r, 0, 1);
		s->retains = rig_int(r, 0, 4) > 0;
		s->replay_ns = (uint64_t)rig_int(r, 1000, 2000000);
		s->whole_more = rig_int(r, 0, 2) ? rig_bytes(r, 1 << 20) : 0;
		s->region_more = rig_int(r, 0, 1) ? rig_bytes(r, 1 << 16) : 0;
		if (rig_int(r, 0, 4))
			p->atom[p->natoms++] = (struct rig_atom){
				.bytes = rig_bytes(r, 1 << 19) + 256, .users = 1u << i};
	}
	for (int k = 0; k < 3; k++) {
		uint32_t users = (uint32_t)rig_int(r, 1, (1 << n) - 1);
		int again = 0;

		for (uint32_t a = 0; a < p->natoms; a++)
			again |= p->atom[a].users == users;
		if (!again && users & (users - 1))
			p->atom[p->natoms++] = (struct rig_atom){
				.bytes = rig_bytes(r, 1 << 19) + 256, .users = users};
	}
}

static inline uint64_t rig_kept(const struct rig_program *p, uint32_t i)
{
	uint64_t bytes = 0;

	for (uint32_t a = 0; a < p->natoms; a++)
		bytes += p->atom[a].users >> i & 1 ? p->atom[a].bytes : 0;
	return bytes;
}

static inline int rig_put_segment(const struct rig_program *p, const struct rig_step *t, uint32_t i,
				  struct rs_costs *c)
{
	const struct rig_segment *s = &p->s[i];
	struct rs_cost cost = {
		.order = i,
		.invocation = i % 2,
		.steps = 3,
		.flags = RS_COST_REPLAYED | (s->retains ? RS_COST_RETAINS : 0),
		.replay = {.median_ns = s->replay_ns, .n = 9},
		.live_forward = t->live_forward[i],
		.peak_forward = t->forward[i],
		.live_replay = t->live_replay[i],
		.end_replay = t->end_replay[i],
		.peak_backward = t->backward[i],
		.replays = 1,
	};

	snprintf(cost.segment, sizeof(cost.segment), "s%u", i / 2);
	for (uint32_t a = 0; a < p->natoms; a++) {
		const struct rig_atom *x = &p->atom[a];

		if (!(x->users >> i & 1))
			continue;
		cost.kept_bytes += x->bytes;
		cost.kept_pieces++;
		if (x->users == 1u << i) {
			cost.own_bytes += x->bytes;
			cost.own_pieces++;
		}
	}
	if (cost.kept_bytes) {
		cost.whole_bytes = cost.kept_bytes + s->whole_more;
		cost.whole_pieces = cost.kept_pieces;
		cost.region_bytes = cost.kept_bytes + s->region_more;
		cost.region_pieces = cost.kept_pieces;
	}
	return rs_costs_put(c, &cost);
}

static inline int rig_costs(const struct rig_program *p, struct rs_costs *c)
{
	const uint64_t gib = 1u << 30;
	const struct rs_cost_rate rate[] = {
		{.kind = RS_RATE_COPY, .n = 5, .each_ns = EACH, .gib_ns = COPY * gib},
		{.kind = RS_RATE_DIGEST, .n = 5, .each_ns = EACH, .gib_ns = DIGEST * gib},
		{.kind = RS_RATE_SWAP, .n = 5, .each_ns = EACH, .gib_ns = SWAP * gib}};
	struct rig_step t = rig_run(p, 0);
	int r = 0;

	memset(c, 0, sizeof(*c));
	/* in any order, and some twice: as they come */
	for (uint32_t i = 0; !r && i < 2 * p->n; i++)
		r = rig_put_segment(p, &t, (i * 5 + 3) % p->n, c);
	for (uint32_t i = 0; !r && i < p->n; i++)
		r = rig_put_segment(p, &t, i, c);
	for (uint32_t a = 0; !r && a < p->natoms; a++) {
		struct rs_cost_share s = {.bytes = p->atom[a].bytes, .pieces = 1};

		for (uint32_t i = 0; i < p->n; i++)
			if (p->atom[a].users >> i & 1)
				s.order[s.n++] = i;
		if (s.n > 1)
			r = rs_costs_put_share(c, &s);
	}
	for (int k = 0; !r && k < 3; k++)
		r = rs_costs_put_rate(c, &rate[k]);
	c->usage = (struct rs_cost_usage){
		.steps = 3, .turn_bytes = t.turn, .outside_bytes = t.outside, .segments = p->n};
	return r;
}

#endif
