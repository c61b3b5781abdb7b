/* SPDX-License-Identifier: MIT */
/*
 * Who may take how much of a device.
 *
 * A device's limit is what was set for all (`replayctl set all budget=`, `planner --budget`), and never more than the device
 * has. A program asks for what `replayctl set PID` gave it, else for REPLAYSHIM_BUDGET, else for the limit. If all fit, each
 * gets what it asks for. Otherwise everybody is filled up to its need, the least budget for which it has a plan; the rest
 * goes, in proportion, towards what the fastest plan would take; what then is left, towards what was asked for. If not even
 * the needs fit, they are cut in proportion, and the plans will say that there are none. A program without a budget is not
 * governed: what it takes is taken off first. Shares are rounded down, so their sum is never above the limit.
 *
 * Somebody's share becomes larger only when all whose share became smaller obey a plan for it, or have had 10 seconds.
 * Callers: the planner's loop. State: in the clients.
 */
#include "planner/serve_priv.h"

#define PATIENCE (10 * RS_SERVE_SECOND)
#define BISECT	 12
#define STEPS	 64

/* As much as rs_plan_make() believes. */
#define MOST (UINT64_C(1) << 43)

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t more(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static int same_device(const struct rs_serve_client *a, const struct rs_serve_client *b)
{
	const uint64_t *x = a->view.device, *y = b->view.device;

	return a == b || ((x[0] || x[1]) && x[0] == y[0] && x[1] == y[1]);
}

static uint64_t asks(const struct rs_serve_client *c, uint64_t limit)
{
	uint64_t ask = c->has_set ? c->set : c->view.wanted ? c->view.wanted : limit;

	/* It says who it is, and on which device, before its first heartbeat. */
	return c->view.heartbeat_ns ? least(ask, MOST) : 0;
}

/* --- needs and claims -------------------------------------------------------------------------------- */

static int fits(const struct rs_costs *costs, uint64_t budget, uint64_t *ret_peak)
{
	struct rs_wish wish = rs_serve_wish(budget);
	struct rs_planned p;
	int yes;

	/* Whether there is a plan, not which is best. */
	wish.gap = ret_peak ? wish.gap : 1;
	wish.tie = ret_peak ? 0 : -1;
	wish.limit_ns = RS_SERVE_SECOND / 100;
	if (rs_plan_make(costs, &wish, &p))
		return 0;
	yes = p.status != RS_SOLVE_INFEASIBLE;
	if (yes && ret_peak)
		*ret_peak = p.head.peak;
	rs_planned_free(&p);
	return yes;
}

/* The least budget with a plan, to a part in 2^BISECT of the one asked for; and what the fastest plan would claim. */
static void learn_needs(struct rs_serve_client *c)
{
	uint64_t low = 0, high = c->ask, mid, peak = 0;
	struct rs_wish wish;

	if (!c->ready_ns) {
		/* Nothing is known, so what it takes it needs. */
		c->need = least(c->ask, c->view.peak_bytes + c->view.arena_bytes);
		c->claim = c->ask;
		c->needs_known = 0;
		return;
	}
	if (c->needs_known && c->needs_ask == c->ask)
		return;
	c->needs_known = 1;
	c->needs_ask = c->ask;
	if (!fits(&c->costs, c->ask, &peak)) {
		c->need = c->claim = c->ask;
		return;
	}
	for (unsigned i = 0; i < BISECT && high - low > 1; i++) {
		mid = low + (high - low) / 2;
		if (fits(&c->costs, mid, NULL))
			high = mid;
		else
			low = mid;
	}
	c->need = high;
	wish = rs_serve_wish(c->ask);
	c->claim = least(c->ask, peak + rs_wish_guard(&wish));
	if (c->claim < c->need)
		c->claim = c->need;
}

/* --- shares ------------------------------------------------------------------------------------------- */

struct party {
	struct rs_serve_client *c[RS_SERVE_CLIENTS];
	uint64_t share[RS_SERVE_CLIENTS];
	unsigned n;
	uint64_t room, asked;
};

static uint64_t part_of(uint64_t room, uint64_t mine, uint64_t all)
{
	return all ? (uint64_t)((unsigned __int128)room * mine / all) : 0;
}

static uint64_t level(const struct rs_serve_client *c, unsigned k)
{
	return k == 0 ? c->need : k == 1 ? c->claim : c->ask;
}

/* Everybody up to the next level, or the room in proportion to what is missing there. */
static void fill(struct party *p)
{
	uint64_t room = p->room, missing, given;

	for (unsigned k = 0; k < 3; k++) {
		missing = given = 0;
		for (unsigned i = 0; i < p->n; i++)
			missing += more(level(p->c[i], k), p->share[i]);
		for (unsigned i = 0; i < p->n; i++) {
			uint64_t mine = more(level(p->c[i], k), p->share[i]);

			if (missing > room)
				mine = part_of(room, mine, missing);
			p->share[i] += mine;
			given += mine;
		}
		room -= given;
	}
}

/* The programs of c's device, and how much there is for those with a budget. */
static void gather(struct rs_serve *s, struct rs_serve_client *c, struct party *p)
{
	uint64_t limit = s->budget ? least(s->budget, MOST) : MOST, taken = 0;
	int bounded = s->budget != 0;

	p->n = 0;
	p->asked = 0;
	for (unsigned i = 0; i < s->clients; i++) {
		struct rs_serve_client *o = s->client[i];

		if (same_device(c, o) && o->view.device_bytes) {
			limit = least(limit, o->view.device_bytes);
			bounded = 1;
		}
	}
	for (unsigned i = 0; i < s->clients; i++) {
		struct rs_serve_client *o = s->client[i];

		if (!same_device(c, o))
			continue;
		o->ask = asks(o, s->budget ? limit : 0);
		if (!o->ask) {
			o->budget = 0;
			taken += least(o->view.peak_bytes, MOST) + least(o->view.arena_bytes, MOST);
			continue;
		}
		if (bounded)
			o->ask = least(o->ask, limit);
		p->asked += o->ask;
		p->c[p->n++] = o;
	}
	/* In steps: what they have in use is another number in each round, and should not be another budget. */
	taken = (taken + limit / STEPS) / (limit / STEPS + 1) * (limit / STEPS + 1);
	p->room = more(limit, taken);
}

static void split(struct party *p)
{
	for (unsigned i = 0; i < p->n; i++)
		p->share[i] = p->asked <= p->room ? p->c[i]->ask : 0;
	if (p->asked <= p->room)
		return;
	for (unsigned i = 0; i < p->n; i++)
		learn_needs(p->c[i]);
	fill(p);
}

/* --- telling -------------------------------------------------------------------------------------------- */

/* Has its share become smaller, and does it still obey a plan for the larger one? */
static int is_shrinking(struct rs_serve_client *c, uint64_t now)
{
	const struct rs_serve_view *v = &c->view;

	if (!c->shrunk_ns)
		return 0;
	if (now - c->shrunk_ns > PATIENCE ||
	    (c->made.budget <= c->budget && v->plan_generation == c->made.generation &&
	     v->plan_state != RS_PLAN_WAITING))
		c->shrunk_ns = 0;
	return c->shrunk_ns != 0;
}

static void tell(struct party *p, uint64_t now)
{
	int waiting = 0;

	for (unsigned i = 0; i < p->n; i++) {
		struct rs_serve_client *c = p->c[i];

		if (p->share[i] < c->budget) {
			c->budget = p->share[i];
			c->shrunk_ns = c->made.generation && !c->made.infeasible ? now : 0;
		}
		waiting |= is_shrinking(c, now);
	}
	for (unsigned i = 0; i < p->n; i++)
		/* A part in 64 more is not worth a plan, unless it is all that was asked for. */
		if (!waiting && (p->share[i] - p->c[i]->budget > p->c[i]->budget / 64 ||
				 p->share[i] == p->c[i]->ask))
			p->c[i]->budget = p->share[i];
}

void rs_serve_budgets(struct rs_serve *s, uint64_t now)
{
	static struct party p; /* large; the process has one thread */
	unsigned char done[RS_SERVE_CLIENTS] = {0};

	for (unsigned i = 0; i < s->clients; i++) {
		if (done[i])
			continue;
		gather(s, s->client[i], &p);
		split(&p);
		tell(&p, now);
		for (unsigned k = i; k < s->clients; k++)
			done[k] |= same_device(s->client[i], s->client[k]);
	}
	/* Smaller ones first: whoever adds up what is published never finds more than there is. */
	for (unsigned larger = 0; larger < 2; larger++)
		for (unsigned i = 0; i < s->clients; i++) {
			struct rs_serve_client *c = s->client[i];

			if (larger || c->budget < atomic_load(&c->w->budget))
				atomic_store(&c->w->budget, c->budget);
		}
}
