/* SPDX-License-Identifier: MIT */
/*
 * What segments take in memory, and what is overwritten of what they read: see costing.h.
 *
 * A step counts for planning only if it was seen whole and the program kept no activations in it: what it had in use
 * then is what a plan adds to. Bytes that are overwritten when no further replay comes (an optimizer's) need no keeping:
 * so what is overwritten is noted by how many replays came before it, and settled when the segment retires.
 *
 * Callers: engine.c, window.c, access.c, preserve.c under engine.lock; rs_engine_costs from any thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/costing.h"
#include "tracker/costs_json.h"

#define MOST_ENTRIES 65536u
#define MOST_SHARES  4096u

int rs_costs_init(struct rs_engine *e)
{
	struct rs_costing *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	c->running_end = &c->running;
	c->step_ns = rs_now_ns();
	c->partial = 1;
	e->costing = c;
	rs_timing_init(e);
	return 0;
}

void rs_costs_fini(struct rs_engine *e)
{
	struct rs_costing *c = e->costing;
	struct rs_cost_entry *entry, *next;
	struct rs_share_entry *share, *after;

	if (!c)
		return;
	rs_timing_fini(e);
	rs_planned_fini(e);
	HASH_ITER (hh, c->entries, entry, next) {
		HASH_DEL(c->entries, entry);
		free(entry);
	}
	HASH_ITER (hh, c->shares, share, after) {
		HASH_DEL(c->shares, share);
		free(share);
	}
	pthread_mutex_destroy(&c->lock);
	free(c);
	e->costing = NULL;
}

/* NULL: no memory, or too many. */
struct rs_cost_entry *rs_costs_entry(struct rs_engine *e, const char *name, uint64_t invocation)
{
	struct rs_costing *c = e->costing;
	struct rs_cost_entry *entry;
	struct rs_cost_key key;

	if (!c)
		return NULL;
	memset(&key, 0, sizeof(key));
	key.name = name;
	key.invocation = invocation;
	HASH_FIND(hh, c->entries, &key, sizeof(key), entry);
	if (entry || HASH_COUNT(c->entries) >= MOST_ENTRIES)
		return entry;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->key = key;
	strncpy(entry->cost.segment, name, sizeof(entry->cost.segment) - 1);
	entry->cost.invocation = invocation;
	HASH_ADD(hh, c->entries, key, sizeof(entry->key), entry);
	if (!entry->hh.tbl) {
		free(entry);
		entry = NULL;
	}
	return entry;
}

/* --- memory by phases --------------------------------------------------------------------------- */

static void most(uint64_t *value, uint64_t seen)
{
	*value = rs_max64(*value, seen);
}

/* A phase has ended with that peak. */
static void phase_ended(struct rs_costing *c, uint64_t peak)
{
	struct rs_cost_entry *entry = c->phase_of;

	most(&c->now.peak_bytes, peak);
	if (c->phase == RS_PHASE_FORWARD && entry)
		most(&entry->now.peak_forward, peak);
	else if (c->phase == RS_PHASE_REPLAY && entry)
		most(&entry->now.peak_backward, peak);
	else if (c->phase == RS_PHASE_TURN)
		most(&c->now.turn_bytes, peak);
	else
		most(&c->now.outside_bytes, peak);
}

void rs_costs_phase(struct rs_engine *e, enum rs_phase phase, struct rs_cost_entry *entry)
{
	struct rs_costing *c = e->costing;

	phase_ended(c, e->device_peak);
	rs_planned_phase_ends(e, c->phase, c->phase_of, phase, entry, e->device_peak);
	most(&c->now.arena_used, e->stats.snapshot_bytes);
	e->device_peak = c->phase_least = e->device_bytes;
	c->phase = phase;
	c->phase_of = entry;
}

/*
 * Memory was given back. A program that replays drops a forward's activations right after it: until then it is still the
 * forward that takes them, and the turn is what comes after the phase's lowest point.
 */
void rs_costs_freed(struct rs_engine *e)
{
	struct rs_costing *c = e->costing;

	if (!c || c->phase != RS_PHASE_TURN || e->device_bytes >= c->phase_least)
		return;
	most(&c->now.peak_bytes, e->device_peak);
	if (c->phase_of)
		most(&c->phase_of->now.peak_forward, e->device_peak);
	e->device_peak = c->phase_least = e->device_bytes;
}

static void settle_entry(struct rs_costing *c, struct rs_cost_entry *entry)
{
	const struct rs_cost_now *now = &entry->now;
	struct rs_cost *cost = &entry->cost;

	if (!now->forward && !now->replay)
		return;
	if (!c->partial && !c->retained && now->forward) {
		cost->steps++;
		most(&cost->live_forward, now->live_forward);
		most(&cost->peak_forward, now->peak_forward);
		most(&cost->live_replay, now->live_replay);
		most(&cost->end_replay, now->end_replay);
		most(&cost->peak_backward, now->peak_backward);
	}
	memset(&entry->now, 0, sizeof(entry->now));
}

/* A step has ended, and the next one begins. */
void rs_costs_step(struct rs_engine *e)
{
	struct rs_costing *c = e->costing;
	struct rs_cost_entry *entry;
	struct rs_share_entry *share;
	uint64_t now = rs_now_ns();
	int whole = !c->partial && !c->retained;

	rs_costs_phase(e, RS_PHASE_OUTSIDE, NULL);
	for (entry = c->entries; entry; entry = entry->hh.next)
		settle_entry(c, entry);
	for (share = c->shares; share; share = share->hh.next) {
		most(&share->bytes, share->now_bytes);
		most(&share->pieces, share->now_pieces);
		share->now_bytes = share->now_pieces = 0;
	}
	if (whole) {
		most(&c->usage.turn_bytes, c->now.turn_bytes);
		most(&c->usage.outside_bytes, c->now.outside_bytes);
	}
	c->usage.step = e->step;
	c->usage.step_ns = now - c->step_ns;
	c->usage.peak_bytes = c->now.peak_bytes;
	c->usage.arena_used = c->now.arena_used;
	c->usage.steps = ++c->steps;
	memset(&c->now, 0, sizeof(c->now));
	c->step_ns = now;
	c->order = 0;
	c->retained = c->partial = c->replayed = 0;
}

/* --- segments ----------------------------------------------------------------------------------- */

void rs_costs_forward_begin(struct rs_engine *e, struct rs_segment *s)
{
	struct rs_costing *c = e->costing;
	struct rs_cost_entry *entry = rs_costs_entry(e, s->name, s->invocation);

	s->cost = entry;
	rs_costs_phase(e, RS_PHASE_FORWARD, entry);
	c->replayed = 0;
	if (!entry) {
		c->order++;
		return;
	}
	entry->cost.order = c->order++;
	entry->now.forward = 1;
	most(&entry->now.live_forward, e->device_bytes);
}

/* What REGIONS would have kept: what a write was seen to, of what the forward has read. */
static void count_regions(struct rs_cost *cost, const struct rs_segment *s)
{
	uint64_t bytes = 0, pieces = 0;
	const struct rs_touch *t;
	uint32_t i;

	for (t = s->touches; t; t = t->hh.next)
		for (i = 0; i < t->claims.n; i++)
			rs_profile_expected(&t->claims.v[i], &bytes, &pieces);
	most(&cost->region_bytes, bytes);
	most(&cost->region_pieces, pieces);
}

void rs_costs_forward_end(struct rs_engine *e, struct rs_segment *s)
{
	uint64_t products = 0, state = 0, drawn = 0, compared = 0, pieces = 0;
	const struct rs_touch *t;
	uint32_t i;

	rs_costs_phase(e, RS_PHASE_TURN, s->cost);
	if (!s->cost)
		return;
	for (t = s->touches; t; t = t->hh.next) {
		for (i = 0; i < t->spans.n; i++)
			if (t->spans.v[i].cls == RS_CLASS_PRODUCT)
				products += t->spans.v[i].len;
		for (i = 0; i < t->claims.n; i++)
			if (t->claims.v[i].cls == RS_CLASS_STATE)
				state += t->claims.v[i].len;
	}
	for (i = 0; i < s->draws.n; i++)
		drawn += s->draws.v[i].bytes;
	for (i = 0; i < s->accesses.n; i++)
		if (s->accesses.v[i].digest) {
			compared += s->accesses.v[i].len;
			pieces++;
		}
	most(&s->cost->cost.product_bytes, products);
	most(&s->cost->cost.compared_bytes, compared);
	most(&s->cost->cost.compared_pieces, pieces);
	most(&s->cost->cost.state_bytes, state);
	most(&s->cost->cost.draw_bytes, drawn);
	count_regions(&s->cost->cost, s);
}

void rs_costs_replay_begin(struct rs_engine *e, struct rs_segment *s)
{
	struct rs_cost_entry *entry = s ? s->cost : NULL;

	rs_costs_phase(e, RS_PHASE_REPLAY, entry);
	e->costing->replayed = 1;
	if (!entry)
		return;
	entry->now.replay = 1;
	entry->cost.flags |= RS_COST_REPLAYED;
	most(&entry->now.live_replay, e->device_bytes);
	most(&entry->cost.replays, s->replays);
}

void rs_costs_replay_end(struct rs_engine *e, struct rs_segment *s)
{
	if (s->cost)
		most(&s->cost->now.end_replay, e->device_bytes);
}

/* How often a forward has been replayed at most, where a whole step was seen; else 0. */
uint64_t rs_costs_replays(const struct rs_segment *s)
{
	return s->cost && s->cost->cost.steps ? s->cost->cost.replays : 0;
}

/* The record of a replay is finished; codes: bits of enum rs_finding. */
void rs_costs_outcome(struct rs_engine *e, const struct rs_replay *r, uint64_t codes, int diverged)
{
	const uint64_t unsafe = 1ull << RS_FINDING_NOT_EXACT | 1ull << RS_FINDING_STATE_FREED |
				1ull << RS_FINDING_UNORDERED | 1ull << RS_FINDING_UNSEEN_WRITER |
				1ull << RS_FINDING_CANNOT_TELL | 1ull << RS_FINDING_UNSEEN_INPUT |
				1ull << RS_FINDING_CAPTURE | 1ull << RS_FINDING_UNTRACKED_MEMORY;

	if (!e->costing || !r->seg || !r->seg->cost)
		return;
	if (codes & unsafe || (diverged && e->config.mode == RS_MODE_PRESERVE))
		r->seg->cost->cost.flags |= RS_COST_UNSAFE;
}

/* --- what is overwritten ------------------------------------------------------------------------ */

static uint64_t overlap(const struct rs_claim *c, const struct rs_ext *x)
{
	uint64_t from = rs_max64(c->off, x->off), end = rs_min64(c->off + c->len, x->off + x->len);

	return c->ver == x->ver && from < end ? end - from : 0;
}

/* Bytes of x that s claims, noted in s. */
static uint64_t overwritten_of(const struct rs_engine *e, struct rs_segment *s,
			       const struct rs_alloc *a, const struct rs_ext *x)
{
	uint32_t n = s->replays < RS_COST_KEPT - 1 ? s->replays : RS_COST_KEPT - 1;
	struct rs_touch *t = rs_touch_of(s->touches, a);
	uint64_t bytes = 0;
	uint32_t i;

	for (i = t ? rs_claim_at(t, x->off) : 0;
	     t && i < t->claims.n && t->claims.v[i].off < x->off + x->len; i++)
		bytes += overlap(&t->claims.v[i], x);
	if (!bytes)
		return 0;
	bytes = rs_min64(bytes, x->len);
	s->kept_bytes[n] += bytes;
	s->kept_pieces[n]++;
	if (bytes == a->size && rs_remap_fits(e, a)) {
		s->remap_bytes[n] += bytes;
		s->remap_pieces[n]++;
	}
	if (!t->overwritten || n < t->overwritten - 1u)
		t->overwritten = (uint8_t)(n + 1);
	return bytes;
}

static struct rs_share_entry *share_of(struct rs_costing *c, const struct rs_cost_share *share)
{
	struct rs_share_entry *found;

	HASH_FIND(hh, c->shares, share, sizeof(*share), found);
	if (found || HASH_COUNT(c->shares) >= MOST_SHARES)
		return found;
	found = calloc(1, sizeof(*found));
	if (!found)
		return NULL;
	found->share = *share;
	HASH_ADD(hh, c->shares, share, sizeof(found->share), found);
	if (!found->hh.tbl) {
		free(found);
		found = NULL;
	}
	return found;
}

static void add_member(struct rs_cost_share *share, uint64_t order)
{
	uint32_t i = share->n, at = (uint32_t)order;

	if (share->n == RS_COST_SHARERS)
		return;
	for (; i && share->order[i - 1] > at; i--)
		share->order[i] = share->order[i - 1];
	share->order[i] = at;
	share->n++;
}

/* Bytes that pending segments claim are about to be overwritten. */
void rs_costs_overwritten(struct rs_engine *e, const struct rs_alloc *a, const struct rs_ext *x)
{
	struct rs_costing *c = e->costing;
	struct rs_segment *s, *only = NULL;
	struct rs_share_entry *entry;
	struct rs_cost_share share;
	unsigned claimers = 0;
	uint64_t bytes = 0, n;

	if (!c)
		return;
	memset(&share, 0, sizeof(share));
	for (s = e->pending; s; s = s->next) {
		n = overwritten_of(e, s, a, x);
		if (!n || !s->cost || (s->replays && s->replays >= s->cost->cost.replays))
			continue;
		bytes = rs_max64(bytes, n);
		claimers++;
		only = s;
		add_member(&share, s->cost->cost.order);
	}
	if (claimers == 1) {
		only->own_bytes += bytes;
		only->own_pieces++;
	} else if (claimers) {
		entry = share_of(c, &share);
		if (entry) {
			entry->now_bytes += bytes;
			entry->now_pieces++;
		}
	}
}

/* What s needed is known now. */
void rs_costs_retire(struct rs_segment *s)
{
	uint64_t bytes = 0, pieces = 0, whole = 0, whole_pieces = 0, remap = 0, remap_pieces = 0;
	struct rs_cost *cost = s->cost ? &s->cost->cost : NULL;
	const struct rs_touch *t;
	uint32_t i;

	if (!cost || !s->replays)
		return;
	for (i = 0; i < RS_COST_KEPT && i < s->replays; i++) {
		bytes += s->kept_bytes[i];
		pieces += s->kept_pieces[i];
		remap += s->remap_bytes[i];
		remap_pieces += s->remap_pieces[i];
	}
	for (t = s->touches; t; t = t->hh.next)
		for (i = 0; t->overwritten && t->overwritten <= s->replays && i < t->claims.n;
		     i++) {
			whole += t->claims.v[i].len;
			whole_pieces++;
		}
	most(&cost->kept_bytes, bytes);
	most(&cost->kept_pieces, pieces);
	most(&cost->remap_bytes, remap);
	most(&cost->remap_pieces, remap_pieces);
	most(&cost->own_bytes, s->own_bytes);
	most(&cost->own_pieces, s->own_pieces);
	most(&cost->whole_bytes, whole);
	most(&cost->whole_pieces, whole_pieces);
}

/* --- busy times, measured by somebody else ------------------------------------------------------ */

void rs_costs_window_closed(struct rs_engine *e, const struct rs_window *w, int is_replay,
			    struct rs_cost_entry *entry)
{
	struct rs_costing *c = e->costing;

	pthread_mutex_lock(&c->lock);
	c->busy[c->busy_at].window = w->begin;
	c->busy[c->busy_at].entry = entry;
	c->busy[c->busy_at].is_replay = (uint8_t)is_replay;
	c->busy_at = (c->busy_at + 1) % RS_BUSY_WINDOWS;
	pthread_mutex_unlock(&c->lock);
}

uint64_t rs_engine_window(const struct rs_thread *t)
{
	const struct rs_window *w;

	for (w = t->top; w; w = w->up)
		if (!w->closed && w->kind != RS_WINDOW_OTHER)
			return w->begin;
	return 0;
}

void rs_engine_cost_busy(struct rs_engine *e, uint64_t window, uint64_t ns)
{
	struct rs_costing *c = e->costing;
	uint32_t i;

	if (!c || !window)
		return;
	pthread_mutex_lock(&c->lock);
	for (i = 0; i < RS_BUSY_WINDOWS; i++)
		if (c->busy[i].window == window && c->busy[i].entry) {
			rs_samples_add(c->busy[i].is_replay ? &c->busy[i].entry->replay_busy
							    : &c->busy[i].entry->forward_busy,
				       ns);
			c->busy[i].window = 0;
			break;
		}
	pthread_mutex_unlock(&c->lock);
}

/* --- told --------------------------------------------------------------------------------------- */

struct told {
	RS_VEC(struct rs_cost) costs;
	RS_VEC(struct rs_cost_share) shares;
	struct rs_cost_rate rates[RS_RATES];
	struct rs_cost_usage usage;
};

static int by_order(const void *a, const void *b)
{
	const struct rs_cost *x = a, *y = b;

	return x->order < y->order ? -1 : x->order > y->order;
}

/* What somebody will see: a look at the usage alone, at each step, is cheap. engine.lock held. */
static int collect(struct rs_engine *e, const struct rs_cost_visitor *for_whom, struct told *told)
{
	struct rs_costing *c = e->costing;
	struct rs_cost_share *share;
	struct rs_share_entry *s;
	struct rs_cost_entry *n;
	struct rs_cost *cost;
	int err = 0;

	pthread_mutex_lock(&c->lock);
	for (n = for_whom->segment ? c->entries : NULL; n && !err; n = n->hh.next) {
		cost = RS_PUSH(told->costs);
		err = cost ? 0 : -ENOMEM;
		if (err)
			break;
		*cost = n->cost;
		rs_samples_sum(&n->forward, &cost->forward);
		rs_samples_sum(&n->replay, &cost->replay);
		rs_samples_sum(&n->forward_busy, &cost->forward_busy);
		rs_samples_sum(&n->replay_busy, &cost->replay_busy);
	}
	for (s = for_whom->share ? c->shares : NULL; s && !err; s = s->hh.next) {
		if (!s->bytes)
			continue;
		share = RS_PUSH(told->shares);
		err = share ? 0 : -ENOMEM;
		if (err)
			break;
		*share = s->share;
		share->bytes = s->bytes;
		share->pieces = s->pieces;
	}
	for (unsigned i = 0; for_whom->rate && i < RS_RATES; i++)
		rs_rate_fit(&c->rate[i], (enum rs_rate_kind)i, &told->rates[i]);
	pthread_mutex_unlock(&c->lock);
	told->usage = c->usage;
	told->usage.live_bytes = e->device_bytes;
	told->usage.arena_bytes = __atomic_load_n(&e->block_bytes, __ATOMIC_RELAXED);
	told->usage.segments = HASH_COUNT(c->entries);
	return err;
}

int rs_engine_costs(struct rs_engine *e, const struct rs_cost_visitor *visitor)
{
	struct told told = {.rates = {{0}}};
	uint32_t i;
	int err;

	if (!e->costing)
		return 0;
	rs_timing_poll(e);
	pthread_mutex_lock(&e->lock);
	err = collect(e, visitor, &told);
	pthread_mutex_unlock(&e->lock);
	if (!err && told.costs.n)
		qsort(told.costs.v, told.costs.n, sizeof(*told.costs.v), by_order);
	for (i = 0; !err && visitor->segment && i < told.costs.n; i++)
		visitor->segment(visitor->arg, &told.costs.v[i]);
	for (i = 0; !err && visitor->share && i < told.shares.n; i++)
		visitor->share(visitor->arg, &told.shares.v[i]);
	for (i = 0; !err && visitor->rate && i < RS_RATES; i++)
		if (told.rates[i].n)
			visitor->rate(visitor->arg, &told.rates[i]);
	if (!err && visitor->usage)
		visitor->usage(visitor->arg, &told.usage);
	free(told.costs.v);
	free(told.shares.v);
	return err;
}

#define LINE(name, type, fill)                                                                     \
	static void name(void *arg, const type *value)                                             \
	{                                                                                          \
		struct rs_json j;                                                                  \
                                                                                                   \
		fill(&j, value);                                                                   \
		rs_records_write(arg, RS_RECORD_EVENTS, &j);                                       \
	}
LINE(write_cost, struct rs_cost, rs_cost_json)
LINE(write_share, struct rs_cost_share, rs_cost_share_json)
LINE(write_rate, struct rs_cost_rate, rs_cost_rate_json)
LINE(write_usage, struct rs_cost_usage, rs_cost_usage_json)

void rs_engine_costs_write(struct rs_engine *e)
{
	const struct rs_cost_visitor lines = {.arg = e->records,
					      .segment = write_cost,
					      .share = write_share,
					      .rate = write_rate,
					      .usage = write_usage};

	struct rs_segment *s;

	if (!e->costing || !e->records)
		return;
	pthread_mutex_lock(&e->lock);
	for (s = e->pending; s; s = s->next)
		rs_costs_retire(s);
	if (e->costing->order) /* the end of the run is that of its last step */
		rs_costs_step(e);
	pthread_mutex_unlock(&e->lock);
	rs_engine_costs(e, &lines);
}
