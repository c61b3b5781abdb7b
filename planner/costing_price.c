/* SPDX-License-Identifier: MIT */
/*
 * What each option of a segment takes, in bytes and ns; planner/README.md has the table. The operations are counted as
 * preserve.c, restore.c and oplist.c of the tracker make them. Pure functions.
 */
#include "planner/costing_priv.h"

/* --- time --------------------------------------------------------------------------------------- */

/*
 * Copies of one size only tell nothing about others: what they took beyond reading and writing their bytes, as fast as the
 * digest reads, is then taken for what each of them costs.
 */
static struct rs_cost_rate split(const struct rs_costs *c, struct rs_cost_rate r)
{
	uint64_t gib_ns = 2 * c->rate[RS_RATE_DIGEST].gib_ns;
	unsigned __int128 rest;

	if (r.each_ns || !r.n || !gib_ns || r.gib_ns <= gib_ns)
		return r;
	rest = (unsigned __int128)(r.bytes / r.n) * (r.gib_ns - gib_ns) >> 30;
	r.each_ns = rest < RS_MOST_NS ? (uint64_t)rest : RS_MOST_NS;
	r.gib_ns = gib_ns;
	return r;
}

/*
 * An operation that was never timed is taken for a copy of as many bytes (digest, diff: they only read), of twice as many
 * (move), or for three of them (swap): so it is not preferred for its time. Remapping that was never timed is not offered.
 */
static struct rs_cost_rate rate_of(const struct rs_costs *c, enum rs_rate_kind kind)
{
	struct rs_cost_rate r = c->rate[kind];

	if (r.n)
		return kind == RS_RATE_COPY || kind == RS_RATE_MOVE ? split(c, r) : r;
	r = split(c, c->rate[RS_RATE_COPY]);
	if (kind == RS_RATE_SWAP)
		r.each_ns *= 3;
	if (kind == RS_RATE_SWAP || kind == RS_RATE_MOVE)
		r.gib_ns *= kind == RS_RATE_SWAP ? 3 : 2;
	return r;
}

static uint64_t capped(unsigned __int128 ns)
{
	return ns < RS_MOST_PRICE ? (uint64_t)ns : RS_MOST_PRICE;
}

/* `ops` of that kind, which take these bytes together. */
static uint64_t op_ns(const struct rs_costs *c, enum rs_rate_kind kind, uint64_t bytes,
		      uint64_t ops)
{
	struct rs_cost_rate r = rate_of(c, kind);
	unsigned __int128 moved = (unsigned __int128)bytes * r.gib_ns;

	if (!bytes)
		return 0;
	return capped((unsigned __int128)r.each_ns * ops + ((moved + (1u << 30) - 1) >> 30));
}

/*
 * Pieces that are copied or digested for one call of the program: together if there are two or more, none of them large
 * (tracker/gather.c), where the engine has been seen to make moves.
 */
#define LARGEST (UINT64_C(1) << 20)
static int go_together(const struct rs_costs *c, uint64_t bytes, uint64_t pieces)
{
	return pieces >= 2 && bytes / pieces <= LARGEST && c->rate[RS_RATE_MOVE].n;
}

static uint64_t copy_ns(const struct rs_costs *c, uint64_t bytes, uint64_t pieces)
{
	return go_together(c, bytes, pieces) ? op_ns(c, RS_RATE_MOVE, bytes, 1)
					     : op_ns(c, RS_RATE_COPY, bytes, pieces);
}

static uint64_t digest_ns(const struct rs_costs *c, uint64_t bytes, uint64_t pieces)
{
	return op_ns(c, RS_RATE_DIGEST, bytes, go_together(c, bytes, pieces) ? 1 : pieces);
}

uint64_t rs_costs_saving(const struct rs_costs *c, enum rs_option option, uint64_t bytes,
			 uint64_t pieces)
{
	/* an undo log is written when each write comes, the others when the forward reads all of it */
	if (option == RS_OPTION_UNDO)
		return capped((unsigned __int128)op_ns(c, RS_RATE_COPY, bytes, pieces) +
			      op_ns(c, RS_RATE_DIGEST, bytes, pieces));
	return capped((unsigned __int128)copy_ns(c, bytes, pieces) + digest_ns(c, bytes, pieces));
}

/* --- memory ------------------------------------------------------------------------------------- */

static uint64_t min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/*
 * Activations are what is in use after a replay and was not before it. A program with a pool of its own shows none of
 * them: if that is less than a quarter of what the forward makes, what it makes is taken instead.
 */
static uint64_t activations(const struct rs_cost *s)
{
	uint64_t shown = rs_less(s->end_replay, s->live_replay);

	return shown < s->product_bytes / 4 ? s->product_bytes : shown;
}

void rs_costs_events(const struct rs_costs *c, uint32_t i, struct rs_events *ret)
{
	const struct rs_cost *s = &c->segment[i];
	uint64_t shown = rs_less(s->end_replay, s->live_replay), peak, scratch, after;

	ret->forward = max64(s->peak_forward, s->live_forward);
	ret->backward_seen = !!(s->flags & RS_COST_REPLAYED);
	ret->activations = activations(s);
	ret->retained_forward = ret->forward;
	if (!ret->backward_seen) {
		ret->base = s->live_forward;
		ret->replayed = ret->retained_backward = 0;
		return;
	}
	peak = max64(max64(s->peak_backward, s->end_replay), s->live_replay);
	scratch = peak - s->live_replay - shown;
	ret->base = s->live_replay;
	ret->replayed = peak;
	ret->retained_backward = s->live_replay + scratch;
	/*
	 * A forward that keeps its activations makes the replay's allocations and leaves what any forward leaves, so it
	 * takes no more than both; nor more than what it took without, and the activations.
	 */
	after = i + 1 < c->n ? s[1].live_forward : c->usage.turn_bytes;
	ret->retained_forward = min64(ret->forward, max64(s->live_forward, after) + scratch);
}

/* --- options ------------------------------------------------------------------------------------ */

/* Bytes in pieces: `own` are saved by this segment in any case. */
struct need {
	uint64_t bytes, pieces; /* overwritten, all of them */
	uint64_t own_bytes, own_pieces;
	uint64_t foreign; /* of the first: others need them, too */
};

/* own: pieces that are this segment's alone. */
static struct need need_of(const struct rs_cost *s, const struct rs_common *common, uint64_t kept,
			   uint64_t pieces, uint64_t own)
{
	struct need n = {.bytes = max64(kept, s->own_bytes), .pieces = max64(pieces, own)};

	n.pieces = max64(n.pieces, n.bytes > 0);
	n.own_bytes = n.bytes;
	n.own_pieces = n.pieces;
	n.foreign = rs_less(n.bytes, s->own_bytes);
	if (!common)
		return n;
	n.own_bytes = max64(s->own_bytes, rs_less(n.bytes, common->bytes)) + common->loose_bytes;
	n.own_pieces = max64(own, rs_less(n.pieces, common->pieces)) + common->loose_pieces;
	n.own_pieces = max64(n.own_pieces, n.own_bytes > 0);
	return n;
}

static uint64_t once_ns(const struct rs_cost *s)
{
	return s->replay.n ? s->replay.median_ns : s->forward.median_ns;
}

static uint64_t times(const struct rs_cost *s)
{
	return s->replays ? s->replays : 1;
}

/*
 * The replays themselves, the digests of what they make and of what the forward made (of one that is retained, none is
 * taken), draws that are kept and served.
 */
static unsigned __int128 replay_ns(const struct rs_costs *c, const struct rs_cost *s)
{
	uint64_t compare = op_ns(c, RS_RATE_DIGEST, s->compared_bytes, s->compared_pieces);
	uint64_t draw = copy_ns(c, s->draw_bytes, 1);
	unsigned __int128 once = once_ns(s);

	return (once + compare + draw) * times(s) + compare + draw;
}

/*
 * By remapping: what can be, there and back, with digests of the present bytes and of those shown; what a replay that is not
 * the last may write to is saved again. The rest is copied.
 */
static unsigned __int128 remap_ns(const struct rs_costs *c, const struct rs_cost *s,
				  const struct need *n)
{
	uint64_t bytes = min64(s->remap_bytes, n->bytes);
	uint64_t pieces = min64(max64(s->remap_pieces, 1), n->pieces);
	uint64_t rest = n->bytes - bytes, parts = max64(n->pieces - pieces, 1);
	unsigned __int128 ns = (unsigned __int128)2 * op_ns(c, RS_RATE_REMAP, bytes, pieces) +
			       (unsigned __int128)2 * digest_ns(c, bytes, pieces);

	if (times(s) > 1)
		ns += rs_costs_saving(c, RS_OPTION_UNDO, bytes, pieces);
	return ns + (unsigned __int128)3 * copy_ns(c, rest, parts) +
	       (unsigned __int128)2 * digest_ns(c, rest, parts);
}

/*
 * To show a replay what was overwritten, and to put back what it found. By copy: the present bytes are saved, the kept
 * ones shown, the present ones put back. By swap: shown, and copied back; what others still need is saved once more.
 */
static unsigned __int128 restore_ns(const struct rs_costs *c, const struct rs_cost *s,
				    const struct need *n, int is_exact, enum rs_restore restore)
{
	uint64_t copy = copy_ns(c, n->bytes, n->pieces);
	uint64_t digest = digest_ns(c, n->bytes, n->pieces);

	if (restore == RS_RESTORE_REMAP)
		return remap_ns(c, s, n);
	if (restore == RS_RESTORE_SWAP) /* and a digest before and after each exchange */
		return (unsigned __int128)op_ns(c, RS_RATE_SWAP, n->bytes, n->pieces) + copy +
		       (unsigned __int128)2 * op_ns(c, RS_RATE_DIGEST, n->bytes, n->pieces) +
		       (n->foreign ? rs_costs_saving(c, RS_OPTION_UNDO, n->foreign, n->pieces) : 0);
	/* shown bytes are compared with the digest of the keep that they are all of */
	return (unsigned __int128)3 * copy + digest + (is_exact ? digest : 0);
}

/*
 * For the present bytes while a replay is shown others; of what is exchanged, by a swap or by what is mapped, only for what
 * others need.
 */
static uint64_t scratch_of(const struct rs_cost *s, const struct need *shown,
			   enum rs_restore restore)
{
	uint64_t bytes = restore == RS_RESTORE_COPY ? shown->bytes : shown->foreign;

	if (restore == RS_RESTORE_REMAP)
		bytes = min64(shown->bytes, bytes + rs_less(shown->bytes, s->remap_bytes));
	return rs_blocks(bytes, shown->pieces);
}

static struct rs_price preserve(const struct rs_costs *c, uint32_t i, enum rs_option option,
				enum rs_restore restore, const struct need *saved,
				const struct need *shown)
{
	const struct rs_cost *s = &c->segment[i];
	int is_exact = option != RS_OPTION_WHOLE || saved->bytes == shown->bytes;
	struct rs_price p = {.option = (uint8_t)option, .restore = (uint8_t)restore};
	struct rs_events e;
	unsigned __int128 ns;

	rs_costs_events(c, i, &e);
	p.forward = e.forward;
	p.backward = e.replayed;
	p.tool = rs_blocks(saved->own_bytes, saved->own_pieces) + rs_blocks(s->draw_bytes, 1);
	p.scratch = scratch_of(s, shown, restore);
	ns = replay_ns(c, s) + rs_costs_saving(c, option, saved->own_bytes, saved->own_pieces) +
	     restore_ns(c, s, shown, is_exact, restore) * times(s);
	p.time = capped(ns);
	return p;
}

int rs_price_preserves(const struct rs_price *p)
{
	return p->option != RS_OPTION_RETAIN && p->option != RS_OPTION_FREE;
}

int rs_costs_is_forced(const struct rs_cost *s)
{
	return !(s->flags & RS_COST_REPLAYED) || s->flags & RS_COST_UNSAFE;
}

static struct rs_price retain(const struct rs_costs *c, uint32_t i)
{
	struct rs_price p = {.option = RS_OPTION_RETAIN};
	struct rs_events e;

	rs_costs_events(c, i, &e);
	p.forward = e.retained_forward;
	p.backward = e.retained_backward;
	p.program = e.activations;
	return p;
}

/* It has a forward, and nothing else: whatever the plan says of it makes no difference. */
static struct rs_price never_replayed(const struct rs_costs *c, uint32_t i)
{
	const struct rs_cost *s = &c->segment[i];
	struct rs_price p = {.option = s->flags & RS_COST_RETAINS ? RS_OPTION_RETAIN
								  : RS_OPTION_UNDO};
	struct rs_events e;

	rs_costs_events(c, i, &e);
	p.forward = e.forward;
	return p;
}

/*
 * The option with each restore that is possible. Only bytes that were overwritten as a whole can change places with what was kept
 * of them (exact).
 */
static unsigned restores(const struct rs_costs *c, uint32_t i, enum rs_option option,
			 const struct need *saved, const struct need *shown, int exact,
			 struct rs_price *ret)
{
	unsigned n = 0;

	ret[n++] = preserve(c, i, option, RS_RESTORE_COPY, saved, shown);
	if (!exact)
		return n;
	ret[n++] = preserve(c, i, option, RS_RESTORE_SWAP, saved, shown);
	if (c->segment[i].remap_bytes && c->rate[RS_RATE_REMAP].n)
		ret[n++] = preserve(c, i, option, RS_RESTORE_REMAP, saved, shown);
	return n;
}

unsigned rs_costs_prices(const struct rs_costs *c, uint32_t i, const struct rs_common *common,
			 struct rs_price *ret)
{
	const struct rs_cost *s = &c->segment[i];
	uint64_t own = s->own_pieces;
	struct need kept = need_of(s, common, s->kept_bytes, s->kept_pieces, own);
	struct need regions = need_of(s, common, max64(s->region_bytes, kept.bytes),
				      max64(s->region_pieces, kept.pieces), own);
	struct need whole = s->whole_bytes > kept.bytes
				    ? need_of(s, common, s->whole_bytes, s->whole_pieces, 0)
				    : kept;
	unsigned n = 0;

	if (!(s->flags & RS_COST_REPLAYED)) {
		ret[n++] = never_replayed(c, i);
		return n;
	}
	if (s->flags & RS_COST_RETAINS)
		ret[n++] = retain(c, i);
	if (n && s->flags & RS_COST_UNSAFE)
		return n;
	if (!kept.bytes && !s->draw_bytes) {
		ret[n++] = preserve(c, i, RS_OPTION_FREE, RS_RESTORE_COPY, &kept, &kept);
		return n;
	}
	if (s->flags & RS_COST_UNSAFE || !kept.bytes) {
		ret[n++] = preserve(c, i, RS_OPTION_UNDO, RS_RESTORE_COPY, &kept, &kept);
		return n;
	}
	n += restores(c, i, RS_OPTION_UNDO, &kept, &kept, 1, ret + n);
	if (s->region_bytes)
		n += restores(c, i, RS_OPTION_REGIONS, &regions, &kept, 1, ret + n);
	return n +
	       restores(c, i, RS_OPTION_WHOLE, &whole, &kept, whole.bytes == kept.bytes, ret + n);
}
