/* SPDX-License-Identifier: MIT */
/*
 * The laws by which generators move; see rngpos.h.
 * Callers: the shim's cuRAND wrappers. No locks.
 */
#include "tracker/rngpos.h"

#include <string.h>

#include "tracker/digest.h"

/* clang-format off */
enum {
	PSEUDO_DEFAULT = 100,
	XORWOW         = 101,
	MRG32K3A       = 121,
	MTGP32         = 141,
	MT19937        = 142,
	PHILOX         = 161,
	QUASI_DEFAULT  = 200, /* from here on Sobol */
};

enum {
	ORDER_BEST    = 100,
	ORDER_DEFAULT = 101,
};

/* What a call does to a generator's history, where it is not a draw. */
enum {
	EVENT_SEED = 0x10,
	EVENT_ORDER,
	EVENT_SEEDS,
};
/* clang-format on */

static uint64_t mix(uint64_t h, uint64_t value)
{
	return rs_digest_mix(h + (value + 1) * RS_DIGEST_K);
}

void rs_rngpos_init(struct rs_rngpos *p, int type)
{
	*p = (struct rs_rngpos){
		.type = type == PSEUDO_DEFAULT ? XORWOW : type, .order = ORDER_DEFAULT, .dims = 1};
}

static int sobol(const struct rs_rngpos *p)
{
	return p->type >= QUASI_DEFAULT;
}

/* No offset can be set: the state is that of the seed plus everything since. */
static int without_offset(const struct rs_rngpos *p)
{
	return p->type == MTGP32 || p->type == MT19937;
}

/* Turns until every lane has had the same number of them; 0: not known. */
static uint64_t period(const struct rs_rngpos *p)
{
	if (p->order != ORDER_DEFAULT && p->order != ORDER_BEST)
		return 0;
	return p->type == XORWOW     ? 4096
	       : p->type == MRG32K3A ? 81920
	       : p->type == PHILOX   ? 65536 * 4
				     : 0;
}

/* What one turn takes, in what an offset counts. 0: there is no law. */
static unsigned cost_of(const struct rs_rngpos *p, enum rs_rngpos_draw draw)
{
	int wide = draw == RS_RNGPOS_UNIFORM_DOUBLE || draw == RS_RNGPOS_NORMAL_DOUBLE;
	int normal = draw == RS_RNGPOS_NORMAL || draw == RS_RNGPOS_NORMAL_DOUBLE;

	if (draw == RS_RNGPOS_POISSON)
		return 0;
	if (sobol(p))
		return 1;
	if (!period(p))
		return 0;
	if (p->type == XORWOW)
		return (wide ? 2 : 1) * (normal ? 2 : 1);
	if (p->type == MRG32K3A)
		return normal ? 2 : 1;
	return wide ? 2 : 1;
}

static void close_run(struct rs_rngpos *p)
{
	if (!p->turns)
		return;
	p->past = mix(mix(p->past, p->cost), p->turns);
	p->turns = 0;
}

static void event(struct rs_rngpos *p, unsigned what, uint64_t value)
{
	close_run(p);
	p->past = mix(mix(p->past, what), value);
}

/* Draws of which the same calls alone lead to the same place. */
static void draw_lawless(struct rs_rngpos *p, enum rs_rngpos_draw draw, uint64_t n, double shape)
{
	uint64_t bits;

	memcpy(&bits, &shape, sizeof(bits));
	event(p, draw, n);
	if (draw == RS_RNGPOS_POISSON)
		p->past = mix(p->past, bits);
	p->lawless = 1;
}

static uint64_t turns_of(const struct rs_rngpos *p, enum rs_rngpos_draw draw, uint64_t n)
{
	int pairs = draw == RS_RNGPOS_NORMAL || draw == RS_RNGPOS_NORMAL_DOUBLE;

	if (sobol(p))
		return n / p->dims;
	return pairs && p->type != PHILOX ? n / 2 : n;
}

void rs_rngpos_draw(struct rs_rngpos *p, enum rs_rngpos_draw draw, uint64_t n, double shape)
{
	unsigned cost = cost_of(p, draw);
	uint64_t turns = turns_of(p, draw, n);

	if (!n)
		return;
	if (!cost) {
		draw_lawless(p, draw, n, shape);
		return;
	}
	p->at += turns;
	if (cost == 1 && !p->past && !p->turns) {
		p->offset += turns;
		return;
	}
	if (cost != p->cost)
		close_run(p);
	p->cost = cost;
	p->turns += turns;
	if (!p->past && period(p) && !(p->turns % period(p))) {
		p->offset += p->turns * p->cost;
		p->turns = 0;
	}
}

void rs_rngpos_offset(struct rs_rngpos *p, uint64_t offset)
{
	p->offset = p->start = p->at = offset;
	p->turns = p->past = 0;
	p->lawless = 0;
}

/* The next draw starts anew. Philox counts whole blocks then, by a rule that is not relied on. */
static void restart(struct rs_rngpos *p, unsigned what, uint64_t old)
{
	if (p->at == p->start && !p->past)
		return;
	if (period(p) && !p->lawless && (p->type == XORWOW || p->type == MRG32K3A))
		rs_rngpos_offset(p, p->at);
	else
		event(p, what, old);
}

/* The seed that it has already is nothing, except to those that are rewound by it. */
void rs_rngpos_seed(struct rs_rngpos *p, uint64_t seed)
{
	if (seed == p->seed && !without_offset(p))
		return;
	restart(p, EVENT_SEED, p->seed);
	p->seed = seed;
}

void rs_rngpos_order(struct rs_rngpos *p, int order)
{
	if (order == p->order)
		return;
	restart(p, EVENT_ORDER, (uint64_t)p->order);
	p->order = order;
}

/* Sobol's offset is the same in all dimensions: nothing else changes. */
void rs_rngpos_dims(struct rs_rngpos *p, uint32_t dims)
{
	p->dims = dims ? dims : 1;
}

/* Without offsets this is how a generator is rewound: it stands where the seed says. */
void rs_rngpos_seeds(struct rs_rngpos *p)
{
	if (without_offset(p))
		rs_rngpos_offset(p, 0);
	else if (!sobol(p))
		restart(p, EVENT_SEEDS, 0);
}

uint64_t rs_rngpos_value(const struct rs_rngpos *p)
{
	uint64_t h = mix((uint64_t)p->type, p->seed);

	h = mix(mix(mix(h, (uint64_t)p->order), p->dims), p->offset);
	return mix(mix(h, p->turns ? p->cost : 0), p->turns) ^ p->past;
}
