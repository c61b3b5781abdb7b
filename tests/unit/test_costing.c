/* SPDX-License-Identifier: MIT */
/*
 * The cost model piece by piece: what is refused, when it is enough, options and their prices, sharing, several processes as
 * one, the tie rule, and the published sparse-write experiment.
 */
#include "tests/unit/costing_rig.h"
#include <errno.h>

#include "tests/tap.h"

#define GIB (1024.0 * 1024 * 1024)

static struct rs_wish wish_of(double budget)
{
	return (struct rs_wish){
		.budget = (uint64_t)budget, .guard = 0, .tie = -1, .allow = RS_ALLOW_ALL};
}

static struct rs_cost segment(uint32_t order)
{
	struct rs_cost s = {.order = order,
			    .steps = 2,
			    .flags = RS_COST_REPLAYED | RS_COST_RETAINS,
			    .replay = {.median_ns = 1000, .n = 4},
			    .live_forward = 1000,
			    .peak_forward = 1500,
			    .live_replay = 1000,
			    .end_replay = 1400,
			    .peak_backward = 1600,
			    .replays = 1};

	snprintf(s.segment, sizeof(s.segment), "layer");
	s.invocation = order;
	return s;
}

static void put_usage(struct rs_costs *c)
{
	c->usage.steps = 2;
	c->rate[RS_RATE_COPY] = (struct rs_cost_rate){.n = 1, .each_ns = 1, .gib_ns = 1u << 30};
}

/* --- the store ------------------------------------------------------------------------------------ */

static void refused(void)
{
	struct rs_costs c = {0};
	struct rs_cost s = segment(0);
	struct rs_cost_share share = {.bytes = 1, .pieces = 1, .n = 2, .order = {1, 2}};
	struct rs_cost_rate rate = {.kind = RS_RATES};
	int bad = 0;

	s.segment[0] = 0;
	bad += rs_costs_put(&c, &s) == -EINVAL;
	s = segment(0);
	memset(s.segment, 'x', sizeof(s.segment));
	bad += rs_costs_put(&c, &s) == -EINVAL;
	s = segment(0);
	s.invocation = 1ull << 32;
	bad += rs_costs_put(&c, &s) == -EINVAL;
	s = segment(RS_PROBLEM_SEGMENTS);
	bad += rs_costs_put(&c, &s) == -EINVAL;
	s = segment(0);
	s.kept_bytes = UINT64_MAX;
	bad += rs_costs_put(&c, &s) == -EINVAL;
	s = segment(0);
	s.replay.median_ns = 1ull << 63;
	bad += rs_costs_put(&c, &s) == -EINVAL;
	s = segment(0);
	s.region_pieces = 1ull << 40;
	bad += rs_costs_put(&c, &s) == -EINVAL;
	is_u64((uint64_t)bad, 7, "seven kinds of segment are refused");
	share.order[1] = 1;
	bad = rs_costs_put_share(&c, &share) == -EINVAL;
	share.order[1] = 2;
	share.n = RS_COST_SHARERS + 1;
	bad += rs_costs_put_share(&c, &share) == -EINVAL;
	share.n = 1;
	bad += rs_costs_put_share(&c, &share) == -EINVAL;
	bad += rs_costs_put_rate(&c, &rate) == -EINVAL;
	rate = (struct rs_cost_rate){.each_ns = UINT64_MAX};
	bad += rs_costs_put_rate(&c, &rate) == -EINVAL;
	is_u64((uint64_t)bad, 5, "so are shares and rates that make no sense");
	ok(!c.n && !c.nshares && !c.rate[0].n, "and leave nothing behind");
}

static const char *why(const struct rs_costs *c)
{
	const char *text = "";

	return rs_costs_ready(c, &text) ? "ready" : text;
}

static void readiness(void)
{
	struct rs_costs c = {0};
	struct rs_wish wish = wish_of(1e6);
	struct rs_planned plan;
	struct rs_cost s = segment(1);

	ok(strstr(why(&c), "no segment"), "nothing is not ready");
	is_u64((uint64_t)-rs_plan_make(&c, &wish, &plan), EAGAIN, "and makes no plan");
	rs_costs_put(&c, &s);
	ok(strstr(why(&c), "gaps"), "a gap is not ready: %s", why(&c));
	s = segment(0);
	s.steps = 0;
	rs_costs_put(&c, &s);
	ok(strstr(why(&c), "whole step"), "nor what was in no step: %s", why(&c));
	s.steps = 1;
	s.replay.n = 0;
	rs_costs_put(&c, &s);
	ok(strstr(why(&c), "timed"), "nor what was not timed: %s", why(&c));
	s.replay.n = 1;
	s.kept_bytes = 10;
	rs_costs_put(&c, &s);
	ok(strstr(why(&c), "no step"), "nor without a step: %s", why(&c));
	c.usage.steps = 1;
	ok(strstr(why(&c), "copy"), "nor where bytes must be copied and no copy was timed: %s",
	   why(&c));
	s.kept_bytes = 0;
	rs_costs_put(&c, &s);
	is_str(why(&c), "ready", "ready");
	is_u64(c.n, 2, "what was told again has replaced what was told before");
	s = segment(1);
	s.invocation = 0;
	rs_costs_put(&c, &s);
	ok(c.n == 2 && c.segment[0].order == 1 && c.segment[1].order == 1,
	   "a segment that has moved is there once");
	rs_costs_free(&c);
}

/* --- options -------------------------------------------------------------------------------------- */

static unsigned options_of(const struct rs_cost *s, struct rs_priced *ret)
{
	struct rs_costs c = {0};
	unsigned n;

	rs_costs_put(&c, s);
	put_usage(&c);
	n = rs_costs_price(&c, 0, ret);
	rs_costs_free(&c);
	return n;
}

static int has(const struct rs_priced *v, unsigned n, uint8_t option, uint8_t restore)
{
	for (unsigned i = 0; i < n; i++)
		if (v[i].option == option && v[i].restore == restore)
			return 1;
	return 0;
}

/* Half of what is overwritten is a mapping of its own. */
static void remapped(void)
{
	struct rs_cost_rate rate = {
		.kind = RS_RATE_REMAP, .n = 4, .each_ns = 100, .gib_ns = 1u << 30};
	struct rs_priced v[RS_OPTIONS * RS_RESTORES];
	struct rs_cost s = segment(0);
	struct rs_costs c = {0};
	unsigned n;

	s.kept_bytes = s.own_bytes = 2048;
	s.kept_pieces = s.own_pieces = 2;
	s.remap_bytes = 1024;
	s.remap_pieces = 1;
	rs_costs_put(&c, &s);
	put_usage(&c);
	n = rs_costs_price(&c, 0, v);
	ok(!has(v, n, RS_OPTION_UNDO, RS_RESTORE_REMAP),
	   "remapping that was never timed is not offered");
	rs_costs_put_rate(&c, &rate);
	n = rs_costs_price(&c, 0, v);
	ok(v[3].restore == RS_RESTORE_REMAP && v[3].transient == 600 + 1280,
	   "timed, it needs room for the present bytes of the rest: %" PRId64, v[3].transient);
	/*
	 * The replay; both kept, with digests; there and back, two digests; the other one as by copy: three copies, two
	 * digests.
	 */
	is_u64((uint64_t)v[3].time,
	       1000 + 2 * (2048 + 2) + 2 * (100 + 1024) + 2 * 1025 + 5 * (1024 + 1), "its price");
	ok(has(v, n, RS_OPTION_WHOLE, RS_RESTORE_REMAP) &&
		   !has(v, n, RS_OPTION_REGIONS, RS_RESTORE_REMAP),
	   "whole snapshots of what is overwritten as a whole can be, too");
	c.segment[0].region_bytes = 4096;
	c.segment[0].region_pieces = 2;
	n = rs_costs_price(&c, 0, v);
	for (unsigned i = 0; i < n; i++)
		if (v[i].option == RS_OPTION_REGIONS && v[i].restore == RS_RESTORE_REMAP)
			is_u64((uint64_t)v[i].time,
			       1000 + 2 * (4096 + 2) + 2 * (100 + 1024) + 2 * 1025 + 5 * (1024 + 1),
			       "regions: more is kept, the same is shown");
	ok(has(v, n, RS_OPTION_REGIONS, RS_RESTORE_REMAP), "and so can regions");
	c.segment[0].whole_bytes = 8192;
	n = rs_costs_price(&c, 0, v);
	ok(has(v, n, RS_OPTION_WHOLE, RS_RESTORE_COPY) &&
		   !has(v, n, RS_OPTION_WHOLE, RS_RESTORE_REMAP),
	   "not where parts are overwritten");
	rs_costs_free(&c);
	s.remap_bytes = UINT64_MAX;
	is_u64((uint64_t)-rs_costs_put(&c, &s), EINVAL, "more bytes than exist are refused");
	rs_costs_free(&c);
}

static void option_sets(void)
{
	struct rs_priced v[RS_OPTIONS * RS_RESTORES];
	struct rs_cost s = segment(0);
	unsigned n = options_of(&s, v);

	ok(n == 2 && v[0].option == RS_OPTION_RETAIN && v[1].option == RS_OPTION_FREE,
	   "nothing overwritten: retain or free");
	ok(v[0].held == 400 && v[0].transient == 200 && !v[0].time,
	   "retain: what a replay leaves is held; scratch");
	ok(!v[1].held && v[1].transient == 600 && v[1].time == 1000,
	   "free: all of it is transient, and takes a replay");
	s.draw_bytes = 300;
	n = options_of(&s, v);
	ok(n == 2 && v[1].option == RS_OPTION_UNDO && v[1].held == 512 && v[1].time == 1000 + 602,
	   "draws are kept, and served: %" PRId64, v[1].time);
	s.draw_bytes = 0;
	s.kept_bytes = 1000;
	s.kept_pieces = s.own_pieces = 3;
	s.own_bytes = 1000;
	n = options_of(&s, v);
	ok(n == 5 && has(v, n, RS_OPTION_UNDO, RS_RESTORE_SWAP) &&
		   has(v, n, RS_OPTION_WHOLE, RS_RESTORE_COPY) && !has(v, n, RS_OPTION_FREE, 0),
	   "overwritten: not free any more");
	ok(v[1].held == 1536 && v[1].transient == 600 + 1536,
	   "three pieces may need a block each more; present bytes are saved");
	/* keep, save, show, put back, and three digests: each 1000 bytes at 1 ns, and 3 operations at 1 ns */
	is_u64((uint64_t)v[1].time, 1000 + 7 * 1003, "undo by copies: four copies, three digests");
	ok(v[2].restore == RS_RESTORE_SWAP && v[2].transient == 600 && v[2].held == 1536,
	   "swapped: nothing is saved");
	/* keep and its digest; swap; copy back; digests of both */
	is_u64((uint64_t)v[2].time, 1000 + 5 * 1003 + 3 * 1003,
	       "a swap that was never timed is three copies");
	s.replays = 2;
	n = options_of(&s, v);
	is_u64((uint64_t)v[1].time, 2006 + 2 * (1000 + 5 * 1003),
	       "two replays: kept once, shown twice");
	s.replays = 1;
	s.whole_bytes = 9000;
	s.whole_pieces = 1;
	s.region_bytes = 1200;
	s.region_pieces = 3;
	n = options_of(&s, v);
	ok(n == 6 && has(v, n, RS_OPTION_REGIONS, RS_RESTORE_SWAP) &&
		   !has(v, n, RS_OPTION_WHOLE, RS_RESTORE_SWAP) && !has(v, n, RS_OPTION_PAGES, 0),
	   "regions, where they are known; no swap of a part of what is kept");
	ok(v[5].option == RS_OPTION_WHOLE && v[5].held == 9216 && v[5].transient == 600 + 1536 &&
		   v[5].time == 1000 + 2 * 9001 + 4 * 1003,
	   "whole: all is kept, what was overwritten is shown: %" PRId64, v[5].time);
	s.product_bytes = 5000;
	s.compared_bytes = 6000;
	s.compared_pieces = 2;
	n = options_of(&s, v);
	ok(v[0].held == 5000 && v[1].transient == 600 + 1536,
	   "a pool hides activations: retain holds what the forward makes");
	is_u64((uint64_t)v[1].time, 1000 + 2 * 6002 + 7 * 1003,
	       "which is digested in forward and replay");
}

/* Copies of 4 KiB at 10.24 us, digests at 1 ns a byte: what a copy of 4 KiB took beyond 2 ns a byte is what each takes. */
static void one_size(void)
{
	struct rs_priced small[RS_OPTIONS * RS_RESTORES], large[RS_OPTIONS * RS_RESTORES];
	struct rs_costs c = {0};
	struct rs_cost s = segment(0);

	s.flags = RS_COST_REPLAYED;
	s.draw_bytes = 4096;
	rs_costs_put(&c, &s);
	put_usage(&c);
	c.rate[RS_RATE_COPY] = (struct rs_cost_rate){
		.n = 10, .bytes = 40960, .gib_ns = (UINT64_C(10240) << 30) / 4096};
	c.rate[RS_RATE_DIGEST] = (struct rs_cost_rate){.n = 1, .bytes = 1, .gib_ns = 1u << 30};
	rs_costs_price(&c, 0, small);
	s.draw_bytes = 409600;
	rs_costs_put(&c, &s);
	rs_costs_price(&c, 0, large);
	is_u64((uint64_t)small[0].time, 1000 + 2 * 10240,
	       "copies of one size: for that, what they took");
	is_u64((uint64_t)large[0].time, 1000 + 2 * (2048 + 819200),
	       "for larger ones, not as much per byte");
	rs_costs_free(&c);
}

/* Many pieces in one move, their digests in one launch, but those that an undo log keeps one write after the other. */
static void moves(void)
{
	const int64_t one_by_one = 4 * 100 + 4096, together = 150 + 2 * 4096, digest = 100 + 4096;
	struct rs_priced v[RS_OPTIONS * RS_RESTORES];
	struct rs_costs c = {0};
	struct rs_cost s = segment(0);

	s.flags = RS_COST_REPLAYED;
	s.kept_bytes = s.own_bytes = s.region_bytes = 4096;
	s.kept_pieces = s.own_pieces = s.region_pieces = 4;
	rs_costs_put(&c, &s);
	put_usage(&c);
	c.rate[RS_RATE_COPY].each_ns = 100;
	c.rate[RS_RATE_MOVE] =
		(struct rs_cost_rate){.n = 1, .each_ns = 150, .gib_ns = UINT64_C(2) << 30};
	rs_costs_price(&c, 0, v);
	ok(v[0].option == RS_OPTION_UNDO &&
		   v[0].time == 1000 + 2 * one_by_one + 3 * together + 2 * digest,
	   "an undo log keeps and digests piece by piece, and restores together: %" PRId64,
	   v[0].time);
	ok(v[2].option == RS_OPTION_REGIONS && v[2].time == 1000 + 4 * together + 3 * digest,
	   "regions are kept and digested together, too: %" PRId64, v[2].time);
	rs_costs_free(&c);
}

static void forced(void)
{
	struct rs_priced v[RS_OPTIONS * RS_RESTORES];
	struct rs_cost s = segment(0);
	unsigned n;

	s.kept_bytes = s.own_bytes = 100;
	s.kept_pieces = s.own_pieces = 1;
	s.flags |= RS_COST_UNSAFE;
	n = options_of(&s, v);
	ok(n == 1 && v[0].option == RS_OPTION_RETAIN, "unsafe: retain only");
	s.flags = RS_COST_REPLAYED | RS_COST_UNSAFE;
	n = options_of(&s, v);
	ok(n == 1 && v[0].option == RS_OPTION_UNDO && v[0].time > 1000,
	   "unsafe and not asking: it replays all the same");
	s.flags = RS_COST_REPLAYED;
	n = options_of(&s, v);
	ok(n == 4 && !has(v, n, RS_OPTION_RETAIN, 0), "not asking: never retained");
	s.flags = 0;
	n = options_of(&s, v);
	ok(n == 1 && !v[0].held && !v[0].time && v[0].transient == 500,
	   "never replayed: its forward is all there is of it");
}

/* --- sharing -------------------------------------------------------------------------------------- */

/* n segments that only replay, any two neighbours share `bytes`. */
static void chain(struct rs_costs *c, uint32_t n, uint64_t bytes)
{
	for (uint32_t i = 0; i < n; i++) {
		struct rs_cost s = segment(i);
		struct rs_cost_share share = {
			.bytes = bytes, .pieces = 1, .n = 2, .order = {i, i + 1}};

		s.flags = RS_COST_REPLAYED;
		s.kept_pieces = i && i + 1 < n ? 2 : 1;
		s.kept_bytes = bytes * s.kept_pieces;
		rs_costs_put(c, &s);
		if (i + 1 < n)
			rs_costs_put_share(c, &share);
	}
	put_usage(c);
	c->usage.turn_bytes = 1000;
}

static void sharing(void)
{
	struct rs_costs c = {0};
	struct rs_wish wish = wish_of(1e9);
	struct rs_planned plan, alone;
	struct rs_problem p;

	chain(&c, 40, 1 << 20);
	wish.allow = RS_ALLOW(RS_OPTION_UNDO, RS_RESTORE_COPY);
	ok(!rs_plan_make(&c, &wish, &plan) && plan.status == RS_SOLVE_OPTIMAL, "a chain of shares");
	is_u64(plan.head.arena, ((39 + 2) << 20) + 65536,
	       "each is kept once: bits serve one share after the other");
	ok(!rs_costs_problem(&c, &wish, &p) && p.modes == 4, "two bits do");
	rs_problem_free(&p);
	wish.unshared = 1;
	ok(!rs_plan_make(&c, &wish, &alone) && alone.head.arena == ((78 + 2) << 20) + 65536 &&
		   alone.head.time > plan.head.time,
	   "each by everybody, if that is wished");
	rs_planned_free(&alone);
	rs_planned_free(&plan);
	rs_costs_free(&c);
}

/* More sets of sharers than bits: what has none is paid by each, never by nobody. */
static void many_shares(void)
{
	struct rs_costs c = {0};
	struct rs_wish wish = wish_of(1e12);
	struct rs_planned plan;
	uint64_t truth = 0;
	uint64_t kept[8] = {0};

	for (uint32_t k = 0; k < 28; k++) {
		struct rs_cost_share s = {.bytes = 4096 * (k + 1), .pieces = 1, .n = 2};
		uint32_t a = k % 7, b = a + 1 + k / 7 % (7 - a);

		s.order[0] = a;
		s.order[1] = b;
		for (uint32_t i = 0; i < c.nshares; i++)
			if (!memcmp(c.share[i].order, s.order, sizeof(s.order)))
				s.bytes = 0;
		if (!s.bytes)
			continue;
		truth += s.bytes;
		kept[a] += s.bytes;
		kept[b] += s.bytes;
		rs_costs_put_share(&c, &s);
	}
	for (uint32_t i = 0; i < 8; i++) {
		struct rs_cost s = segment(i);

		s.flags = RS_COST_REPLAYED;
		s.kept_bytes = kept[i];
		s.kept_pieces = 7;
		rs_costs_put(&c, &s);
	}
	put_usage(&c);
	wish.allow = RS_ALLOW(RS_OPTION_UNDO, RS_RESTORE_COPY);
	ok(!rs_plan_make(&c, &wish, &plan) && plan.head.arena >= truth &&
		   plan.head.arena < 3 * truth,
	   "%u shares: the arena has room for all", c.nshares);
	rs_planned_free(&plan);
	rs_costs_free(&c);
}

/* --- several processes ---------------------------------------------------------------------------- */

static uint64_t predicted(const struct rs_costs *c, const struct rs_wish *wish, int64_t *ret_time)
{
	struct rs_planned plan;
	uint64_t peak = 0;

	if (!rs_plan_make(c, wish, &plan) && plan.head.n) {
		peak = plan.head.peak;
		*ret_time = plan.head.time;
	}
	rs_planned_free(&plan);
	return peak;
}

/* One option alone, so that the same is done by all. */
static int merges(struct rig_random *r)
{
	const uint32_t allow[] = {RS_ALLOW(RS_OPTION_UNDO, 0) | RS_ALLOW(RS_OPTION_FREE, 0),
				  RS_ALLOW(RS_OPTION_RETAIN, 0),
				  RS_ALLOW(RS_OPTION_WHOLE, 0) | RS_ALLOW(RS_OPTION_FREE, 0)};
	struct rig_program p[2];
	struct rs_costs c[2], both;
	struct rs_wish wish = wish_of(1e11);
	int good = 1;

	for (int k = 0; k < 2; k++) {
		rig_make(r, &p[k], 4);
		for (uint32_t i = 0; i < 4; i++)
			p[k].s[i].retains = 1;
		good &= !rig_costs(&p[k], &c[k]);
	}
	good &= !rig_costs(&p[0], &both) && !rs_costs_merge(&both, &c[1]);
	good &= rs_costs_fingerprint(&both) == rs_costs_fingerprint(&c[0]);
	for (int a = 0; good && a < 3; a++)
		for (int k = 0; k < 2; k++) {
			int64_t time = 0, all = 0;
			uint64_t one;

			wish.allow = allow[a];
			one = predicted(&c[k], &wish, &time);
			/* what is free for one of them may not be for both */
			if (one)
				good &= (a != 1 && !predicted(&both, &wish, &all)) ||
					(predicted(&both, &wish, &all) >= one && all >= time);
		}
	for (int k = 0; k < 2; k++)
		rs_costs_free(&c[k]);
	rs_costs_free(&both);
	return good;
}

static void merging(void)
{
	struct rs_costs a = {0}, b = {0};
	struct rs_cost s = segment(0);
	struct rig_random r = {77};
	int good = 1;

	for (int i = 0; good && i < 400; i++)
		good = merges(&r);
	ok(good, "two processes as one take no less than either");
	rs_costs_put(&a, &s);
	s.flags = RS_COST_REPLAYED | RS_COST_UNSAFE;
	rs_costs_put(&b, &s);
	ok(!rs_costs_merge(&a, &b) && a.segment[0].flags == (RS_COST_REPLAYED | RS_COST_UNSAFE),
	   "what one cannot keep, and one cannot replay, both cannot");
	s.invocation = 5;
	rs_costs_free(&b);
	rs_costs_put(&b, &s);
	is_u64((uint64_t)-rs_costs_merge(&a, &b), EINVAL, "other segments are not merged");
	rs_costs_free(&a);
	rs_costs_free(&b);
}

/* --- the tie rule, the guard, refusals ------------------------------------------------------------ */

static void wishes(void)
{
	struct rs_wish wish = {.budget = 48ull << 30, .guard = UINT64_MAX, .tie = -1};
	struct rs_costs c = {0};
	struct rs_planned fast, small, none;
	struct rs_cost s;

	for (uint32_t i = 0; i < 10; i++) {
		s = segment(i);
		s.live_replay = s.live_forward = 1u << 30;
		s.end_replay = s.live_replay + (1u << 30);
		s.peak_backward = s.end_replay;
		s.peak_forward = s.live_forward;
		s.replay.median_ns = 1000000 + i;
		rs_costs_put(&c, &s);
	}
	put_usage(&c);
	rs_plan_make(&c, &wish, &none);
	ok(none.status == RS_SOLVE_INFEASIBLE && strstr(none.why, "allowed"), "nothing allowed: %s",
	   none.why);
	wish.allow = RS_ALLOW_ALL;
	wish.budget = 6ull << 30;
	ok(!rs_plan_make(&c, &wish, &fast) && fast.status == RS_SOLVE_OPTIMAL, "a budget");
	ok(fast.head.peak <= wish.budget - (64u << 20) && fast.head.peak > 4ull << 30,
	   "a guard of 1%% or more is left alone");
	wish.tie = 1.0;
	rs_plan_make(&c, &wish, &small);
	ok(small.head.time <= 2 * fast.head.time && small.head.peak < fast.head.peak &&
		   small.head.bound == fast.head.bound,
	   "among ties the one that takes least: %" PRIu64 " for %" PRIu64, small.head.peak,
	   fast.head.peak);
	wish.budget = 1ull << 30;
	rs_plan_make(&c, &wish, &none);
	ok(none.status == RS_SOLVE_INFEASIBLE && none.missing && strstr(none.why, "layer#0"),
	   "too little: %s", none.why);
	c.usage.outside_bytes = 2ull << 30;
	rs_plan_make(&c, &wish, &none);
	ok(strstr(none.why, "outside") && none.missing,
	   "too little for the rest of the program: %s", none.why);
	rs_planned_free(&fast);
	rs_planned_free(&small);
	rs_costs_free(&c);
}

/* --- the published experiment --------------------------------------------------------------------- */

/*
 * Ten segments, each with a bank of 1.79 GiB of which 2% are overwritten in rows of 1 KiB. dense: nobody knows which rows, so
 * all of it is taken for overwritten, saved, shown and put back. Digests are counted there two times a byte, and three
 * times here: their rate is set so that they take the same.
 */
static void put_h100(struct rs_costs *c, int dense)
{
	const double a = 4.086, b = 1.792, in = 0.1, other = 2.68, f = 14.88e6;
	const double copy = 2 * GIB / (0.9 * 3350), gather = 2 * GIB / (0.6 * 3350);
	const uint64_t rows = (uint64_t)(0.02 * b * GIB / 1024);

	memset(c, 0, sizeof(*c));
	for (uint32_t i = 0; i < 10; i++) {
		double live = other + 10 * b + i * in;
		struct rs_cost s = segment(i);

		s.live_forward = (uint64_t)(live * GIB);
		s.peak_forward = (uint64_t)((live + a) * GIB);
		s.live_replay = (uint64_t)((live + in) * GIB);
		s.end_replay = (uint64_t)((live + a) * GIB);
		s.peak_backward = (uint64_t)((live + a + 2 * in) * GIB);
		s.replay.median_ns = (uint64_t)f;
		s.whole_bytes = (uint64_t)(b * GIB);
		s.whole_pieces = 1;
		s.kept_bytes = s.own_bytes = dense ? s.whole_bytes : rows * 1040;
		s.kept_pieces = s.own_pieces = dense ? 1 : rows;
		s.region_bytes = dense ? 0 : rows * 1040;
		s.region_pieces = dense ? 0 : rows;
		rs_costs_put(c, &s);
	}
	c->usage = (struct rs_cost_usage){.steps = 9,
					  .turn_bytes = (uint64_t)((other + 10 * (b + in)) * GIB)};
	c->rate[RS_RATE_COPY] =
		(struct rs_cost_rate){.n = 9, .each_ns = 6000, .gib_ns = (uint64_t)copy};
	c->rate[RS_RATE_MOVE] = (struct rs_cost_rate){
		.kind = RS_RATE_MOVE, .n = 9, .each_ns = 6000, .gib_ns = (uint64_t)gather};
	c->rate[RS_RATE_DIGEST] = (struct rs_cost_rate){
		.kind = RS_RATE_DIGEST, .n = 9, .gib_ns = (uint64_t)(copy / 3)};
}

static double step_ms(int dense, double budget, uint32_t allow, struct rs_planned *plan)
{
	struct rs_wish wish = wish_of(budget * GIB);
	struct rs_costs c;
	double ms = -1;

	put_h100(&c, dense);
	wish.allow = allow;
	if (!rs_plan_make(&c, &wish, plan) && plan->head.n)
		ms = (10 * 3 * 14.88e6 + 1.22e6 + (double)plan->head.time) / 1e6;
	rs_planned_free(plan);
	rs_costs_free(&c);
	return ms;
}

static int near(double x, double y, double by)
{
	return x > y - by && x < y + by;
}

static void experiment(void)
{
	const uint32_t keep = RS_ALLOW(RS_OPTION_RETAIN, 0), whole = RS_ALLOW(RS_OPTION_WHOLE, 0),
		       regions = RS_ALLOW(RS_OPTION_REGIONS, 0);
	struct rs_planned plan;
	double joint, ratio;

	joint = step_ms(0, 44, RS_ALLOW_ALL, &plan);
	ok(near((double)plan.head.peak / GIB, 41.81, 0.35), "44 GiB: joint takes %.2f GiB",
	   (double)plan.head.peak / GIB);
	ratio = joint / step_ms(1, 44, keep | whole, &plan);
	ok(near(ratio, 0.8184, 5e-4), "44 GiB: joint / (eager, whole buffers shown) is %.4f",
	   ratio);
	ratio = joint / step_ms(0, 44, keep | whole, &plan);
	ok(near(ratio, 0.8744, 1e-3),
	   "44 GiB: joint / (eager, whole kept and only what changed shown) is %.4f", ratio);
	ok(step_ms(1, 32, keep | whole, &plan) < 0 && step_ms(0, 32, keep | whole, &plan) < 0,
	   "32 GiB: eager/whole is infeasible: %s", plan.why);
	joint = step_ms(0, 32, RS_ALLOW_ALL, &plan);
	ok(near((double)plan.head.peak / GIB, 29.96, 0.35), "32 GiB: joint takes %.2f GiB",
	   (double)plan.head.peak / GIB);
	ratio = joint / step_ms(0, 32, regions, &plan);
	ok(near(ratio, 0.9496, 5e-4), "32 GiB: joint / fixed regions is %.4f", ratio);
	ok(near((double)plan.head.peak / GIB, 26.18, 0.35), "32 GiB: fixed regions take %.2f GiB",
	   (double)plan.head.peak / GIB);
}

int main(void)
{
	refused();
	readiness();
	option_sets();
	remapped();
	one_size();
	moves();
	forced();
	sharing();
	many_shares();
	merging();
	wishes();
	experiment();
	return tap_done();
}
