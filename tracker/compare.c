/* SPDX-License-Identifier: MIT */
/*
 * From digests to verdicts: a replay's record is written once its event has passed, in the order in
 * which replays ended.
 *
 * Three values throughout: equal, different, unknown. Unknown is never turned into equal; a replay with
 * anything unknown is a rejection, with anything different a divergence.
 * A record in flight belongs to the list until it is taken off under engine.lock; it is then private.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tracker/costing.h"

#define FINDINGS_PER_RECORD 32u
#define MOST_ALONE	    256u

#define FEW 16u /* checks that are looked through one by one */

enum verdict { V_EQUAL, V_UNKNOWN, V_DIFFERENT };
static const char *const verdict_name[] = {"equal", "unknown", "different"};
static const char *const outcome_name[] = {"match", "rejection", "divergence"};
static const char *const kind_name[] = {"copy", "fill", "kernel", "host", "other"};
static const char *const how_name[] = {"exact", "ptx", "declared", "reachable", "unknown"};

struct outcome {
	enum verdict entry, product, after;
	uint64_t codes; /* bit per enum rs_finding */
	unsigned findings;
	uint32_t where; /* of the first finding that knows it */
};

/*
 * Takes over the caller's reference to y and adds one to x. NULL words: cannot be told. Without memory
 * for the check the replay cannot be vouched for.
 */
struct rs_check *rs_check_add(struct rs_replay *r, enum rs_check_kind kind, struct rs_alloc *a,
			      uint64_t off, uint64_t len, struct rs_words *x, struct rs_words *y)
{
	struct rs_check *c = RS_PUSH(r->checks);
	const struct rs_region *region;
	uint64_t until;

	if (!c) {
		r->flags |= RS_F_INTERNAL;
		if (y)
			y->refs--; /* the operation that fills it still holds one */
		return NULL;
	}
	c->kind = (uint8_t)kind;
	c->alloc = a;
	a->refs++;
	c->off = off;
	c->len = len;
	region = rs_region_at(a, off, &until);
	if (region)
		c->region = *region;
	c->a = x;
	if (x)
		x->refs++;
	c->b = y;
	return c;
}

/* The slot of the check, or the empty one where it would be. */
static uint32_t *slot_of(const struct rs_replay *r, uint8_t kind, const struct rs_alloc *a,
			 uint64_t off)
{
	uint64_t h = rs_digest_mix(rs_digest_mix(off + RS_DIGEST_K * kind) ^ a->serial);
	uint32_t *slot;

	for (;; h++) {
		const struct rs_check *c;

		slot = &r->slots[h & (r->nslots - 1)];
		c = *slot ? &r->checks.v[*slot - 1] : NULL;
		if (!c || (c->kind == kind && c->alloc == a && c->off == off))
			return slot;
	}
}

/* Every check so far has a slot; 0: there is no memory for that. */
static int index_checks(struct rs_replay *r)
{
	uint32_t *slots;

	if (r->nslots / 2 < r->checks.n) {
		slots = calloc(4 * (size_t)r->checks.n, sizeof(*slots));
		if (!slots)
			return 0;
		free(r->slots);
		r->slots = slots;
		for (r->nslots = 1; r->nslots <= 2 * r->checks.n;)
			r->nslots *= 2;
		r->indexed = 0;
	}
	for (; r->indexed < r->checks.n; r->indexed++) {
		const struct rs_check *c = &r->checks.v[r->indexed];

		*slot_of(r, c->kind, c->alloc, c->off) = r->indexed + 1;
	}
	return 1;
}

int rs_check_has(struct rs_replay *r, enum rs_check_kind kind, const struct rs_alloc *a,
		 uint64_t off)
{
	uint32_t i;

	if (r->checks.n > FEW && index_checks(r))
		return *slot_of(r, (uint8_t)kind, a, off) != 0;
	for (i = 0; i < r->checks.n; i++)
		if (r->checks.v[i].kind == kind && r->checks.v[i].alloc == a &&
		    r->checks.v[i].off == off)
			return 1;
	return 0;
}

/* Index of the first differing chunk, -1: equal, -2: cannot be told. */
static int64_t first_difference(const struct rs_check *c)
{
	uint32_t i;

	if (!c->a || !c->b || c->a->failed || c->b->failed || !c->a->w || !c->b->w)
		return -2;
	if (c->a->n != c->b->n)
		return c->exact ? 0 : -2;
	for (i = 0; i < c->a->n; i++)
		if (c->a->w[i] != c->b->w[i])
			return i;
	return -1;
}

static void count_changed(struct rs_engine *e, const struct rs_check *c)
{
	uint64_t changed = 0;
	uint32_t i;

	for (i = 0; i < c->a->n; i++)
		changed += c->a->w[i] != c->b->w[i];
	e->stats.compared_bytes += c->len;
	changed *= RS_DIGEST_CHUNK;
	e->stats.changed_bytes += changed < c->len ? changed : c->len;
}

static void worse(enum verdict *v, enum verdict with)
{
	if (with > *v)
		*v = with;
}

static void write_state(struct rs_json *j, const struct rs_check *c, uint64_t off)
{
	uint64_t until;
	const struct rs_region *region = rs_region_at(c->alloc, off, &until);

	if (!region && off - c->region.off < c->region.len)
		region = &c->region;
	rs_json_open(j, "state", '{');
	rs_json_str(j, "name", region ? region->name : "");
	rs_json_u64(j, "serial", c->alloc->serial);
	rs_json_u64(j, "offset", region ? region->off : c->off);
	rs_json_u64(j, "bytes", region ? region->len : c->len);
	rs_json_hex(j, "addr", rs_alloc_addr(c->alloc, region ? region->off : c->off, 1));
	rs_json_close(j, '}');
}

static void write_where(struct rs_engine *e, struct rs_json *j, struct outcome *o, uint64_t call)
{
	uint32_t where = rs_where_of(e, call);

	if (!where)
		return;
	rs_json_u64(j, "stack", where);
	o->where = o->where ?: where;
}

static void write_writer(struct rs_engine *e, struct rs_json *j, struct outcome *o,
			 const struct rs_writer *w)
{
	rs_json_open(j, "writer", '{');
	rs_json_str(j, "kind", kind_name[w->kind]);
	rs_json_str(j, "name", w->name);
	rs_json_str(j, "how", how_name[w->how]);
	rs_json_u64(j, "call", w->call);
	rs_json_u64(j, "step", w->step);
	rs_json_str(j, "window", w->window);
	write_where(e, j, o, w->call);
	rs_json_close(j, '}');
	if (!w->noticed)
		return;
	rs_json_open(j, "noticed", '{');
	rs_json_u64(j, "call", w->noticed);
	write_where(e, j, o, w->noticed);
	rs_json_close(j, '}');
}

/* check NULL: a finding about the replay as a whole. */
static void report(struct rs_engine *e, const struct rs_replay *r, struct outcome *o,
		   enum rs_finding id, const struct rs_check *c, uint64_t off)
{
	const struct rs_finding_info *info = &rs_findings[id];
	struct rs_json j;
	char code[16];

	o->codes |= 1ull << id;
	if (!e->records || o->findings++ >= FINDINGS_PER_RECORD)
		return;
	snprintf(code, sizeof(code), "RS%03u", info->code);
	rs_json_begin(&j);
	rs_json_str(&j, "t", "finding");
	rs_json_u64(&j, "ts", rs_now_ns());
	rs_json_str(&j, "code", code);
	rs_json_str(&j, "sev", rs_severity_name(info->severity));
	rs_json_str(&j, "segment", r->name);
	rs_json_u64(&j, "invocation", r->invocation);
	rs_json_u64(&j, "replay", r->k);
	rs_json_u64(&j, "step", r->step);
	if (c && c->alloc)
		write_state(&j, c, off);
	if (c)
		write_writer(e, &j, o, &c->writer);
	if (id == RS_FINDING_ALIAS && r->seg)
		rs_places_tell(&j, r->seg);
	else
		rs_json_str(&j, "text", info->title);
	rs_records_write(e->records, RS_RECORD_EVENTS, &j);
}

static void judge_check(struct rs_engine *e, const struct rs_replay *r, struct outcome *o,
			const struct rs_check *c)
{
	int64_t at = first_difference(c);
	uint64_t off = at > 0 ? c->off + (uint64_t)at * RS_DIGEST_CHUNK : c->off;

	if (c->kind == RS_CHECK_ENTRY && at != -2 && c->a->n == c->b->n)
		count_changed(e, c);
	if (at == -1)
		return;
	switch ((enum rs_check_kind)c->kind) {
	case RS_CHECK_ENTRY:
		worse(&o->entry, at == -2 || !c->exact ? V_UNKNOWN : V_DIFFERENT);
		report(e, r, o,
		       at == -2	   ? c->reason
		       : !c->exact ? RS_FINDING_CANNOT_TELL
		       : c->unseen ? RS_FINDING_UNSEEN_WRITER
				   : RS_FINDING_STATE_OVERWRITTEN,
		       c, off);
		break;
	case RS_CHECK_RESTORE:
		/* restored bytes that are not the kept ones: our own fault, never a match */
		worse(&o->entry, V_UNKNOWN);
		report(e, r, o, at == -2 ? RS_FINDING_INTERNAL : RS_FINDING_SNAPSHOT_LOST, c, off);
		break;
	case RS_CHECK_SAMPLE:
		if (at == -2) /* a sample that failed says nothing */
			break;
		worse(&o->entry, V_DIFFERENT);
		report(e, r, o, RS_FINDING_UNSEEN_WRITER, c, off);
		break;
	case RS_CHECK_RACE:
		worse(&o->entry, V_UNKNOWN);
		report(e, r, o, RS_FINDING_UNORDERED, c, c->off);
		break;
	case RS_CHECK_BROKEN:
		worse(&o->entry, V_UNKNOWN);
		report(e, r, o, RS_FINDING_CONTRACT_BROKEN, c, c->off);
		break;
	case RS_CHECK_ALIAS:
		worse(&o->entry, V_UNKNOWN);
		report(e, r, o, RS_FINDING_ALIAS, c, c->off);
		break;
	case RS_CHECK_FREED:
		report(e, r, o, RS_FINDING_FREED_EARLY, c, c->off);
		break;
	case RS_CHECK_PRODUCT:
		worse(&o->product, at == -2 || !c->exact ? V_UNKNOWN : V_DIFFERENT);
		break;
	case RS_CHECK_AFTER:
		worse(&o->after, at == -2 ? V_UNKNOWN : V_DIFFERENT);
		report(e, r, o, at == -2 ? c->reason : RS_FINDING_SIDE_EFFECT, c, off);
		break;
	case RS_CHECK_AMBIGUOUS:
		worse(&o->after, V_UNKNOWN);
		report(e, r, o, RS_FINDING_CANNOT_TELL, c, off);
		break;
	}
}

/* What a flag means for the three verdicts, beside its finding. */
static const struct {
	uint32_t flag;
	uint8_t finding;
	uint8_t entry, product, after; /* enum verdict, as a minimum */
} flag_rules[] = {
	{RS_F_NO_FORWARD, RS_FINDING_NO_FORWARD, V_UNKNOWN, V_UNKNOWN, V_UNKNOWN},
	{RS_F_KEPT, RS_FINDING_KEPT, V_UNKNOWN, V_UNKNOWN, V_UNKNOWN},
	{RS_F_SPENT, RS_FINDING_SPENT, V_UNKNOWN, V_UNKNOWN, V_UNKNOWN},
	{RS_F_CAPTURE, RS_FINDING_CAPTURE, V_UNKNOWN, V_UNKNOWN, V_UNKNOWN},
	{RS_F_UNKNOWN_WRITER, RS_FINDING_UNKNOWN_WRITER, V_UNKNOWN, V_UNKNOWN, V_UNKNOWN},
	{RS_F_UNTRACKED, RS_FINDING_UNTRACKED_MEMORY, V_UNKNOWN, V_UNKNOWN, V_UNKNOWN},
	{RS_F_LOST, RS_FINDING_SNAPSHOT_LOST, V_UNKNOWN, V_EQUAL, V_UNKNOWN},
	{RS_F_INTERNAL, RS_FINDING_INTERNAL, V_UNKNOWN, V_UNKNOWN, V_UNKNOWN},
	{RS_F_RANDOM, RS_FINDING_RANDOM_STATE, V_DIFFERENT, V_EQUAL, V_DIFFERENT},
	{RS_F_OTHER_DRAWS, RS_FINDING_UNSEEN_INPUT, V_UNKNOWN, V_EQUAL, V_EQUAL},
	{RS_F_OTHER_CALLS, RS_FINDING_OTHER_PROGRAM, V_UNKNOWN, V_UNKNOWN, V_UNKNOWN},
	{RS_F_HOST_EFFECT, RS_FINDING_HOST_EFFECT, V_EQUAL, V_EQUAL, V_EQUAL},
	{RS_F_ABORTED, RS_FINDING_ABORTED, V_EQUAL, V_EQUAL, V_EQUAL},
	{RS_F_STRUCTURE, RS_FINDING_STRUCTURE, V_EQUAL, V_EQUAL, V_EQUAL},
	{RS_F_ARGUMENTS, RS_FINDING_ARGUMENTS, V_EQUAL, V_EQUAL, V_EQUAL},
	{RS_F_RESIDENCY, RS_FINDING_RESIDENCY, V_EQUAL, V_EQUAL, V_EQUAL},
};

static void judge_flags(struct rs_engine *e, const struct rs_replay *r, struct outcome *o)
{
	unsigned i;

	for (i = 0; i < sizeof(flag_rules) / sizeof(flag_rules[0]); i++) {
		struct rs_check blamed = {0};

		if (!(r->flags & flag_rules[i].flag))
			continue;
		worse(&o->entry, flag_rules[i].entry);
		worse(&o->product, flag_rules[i].product);
		worse(&o->after, flag_rules[i].after);
		/* a missing snapshot has already been reported with its place, if it has one */
		if (o->codes & 1ull << flag_rules[i].finding)
			continue;
		blamed.writer = r->causes.by[rs_where_blame(flag_rules[i].flag)];
		report(e, r, o, flag_rules[i].finding, blamed.writer.name ? &blamed : NULL, 0);
	}
}

/* Products that differ although nothing else did: the replay is not exact in itself. */
static void judge_products(struct rs_engine *e, const struct rs_replay *r, struct outcome *o)
{
	uint32_t i, products = 0, expected = 0;

	for (i = 0; i < r->checks.n; i++)
		products += r->checks.v[i].kind == RS_CHECK_PRODUCT;
	for (i = 0; r->seg && i < r->seg->accesses.n; i++)
		expected += r->seg->accesses.v[i].dir & RS_WRITE &&
			    (r->seg->accesses.v[i].cls == RS_CLASS_PRODUCT ||
			     r->seg->accesses.v[i].cls == RS_CLASS_MAYBE);
	/*
	 * Nothing was paired, or the replay made calls of its own in place of the forward's: what it
	 * produced was not compared. A replay that stops early, or adds calls, is fine.
	 */
	if ((!products && expected) || (r->extra && r->skipped))
		worse(&o->product, V_UNKNOWN);
	if (o->entry != V_EQUAL || o->product == V_EQUAL)
		return;
	for (i = 0; i < r->checks.n; i++) {
		const struct rs_check *c = &r->checks.v[i];
		int64_t at;

		if (c->kind != RS_CHECK_PRODUCT)
			continue;
		at = first_difference(c);
		if (at == -1)
			continue;
		report(e, r, o, RS_FINDING_NOT_EXACT, c,
		       at > 0 ? c->off + (uint64_t)at * RS_DIGEST_CHUNK : c->off);
		__atomic_store_n(&e->inexact, 1, __ATOMIC_RELAXED);
		return; /* the first one is the cause, the rest follow from it */
	}
}

static unsigned outcome_of(const struct outcome *o)
{
	enum verdict worst = o->entry;

	worse(&worst, o->product);
	worse(&worst, o->after);
	return worst;
}

static void write_record(struct rs_engine *e, const struct rs_replay *r, const struct outcome *o)
{
	struct rs_json j;
	char code[16];
	unsigned i;

	rs_json_begin(&j);
	rs_json_str(&j, "t", "replay");
	rs_json_u64(&j, "step", r->step);
	rs_json_str(&j, "segment", r->name);
	rs_json_u64(&j, "invocation", r->invocation);
	rs_json_u64(&j, "replay", r->k);
	rs_json_str(&j, "outcome", outcome_name[outcome_of(o)]);
	rs_json_str(&j, "entry", verdict_name[o->entry]);
	rs_json_str(&j, "product", verdict_name[o->product]);
	rs_json_str(&j, "after", verdict_name[o->after]);
	rs_json_open(&j, "codes", '[');
	for (i = 0; i < RS_FINDING_COUNT; i++) {
		if (!(o->codes & 1ull << i))
			continue;
		snprintf(code, sizeof(code), "RS%03u", rs_findings[i].code);
		rs_json_str(&j, NULL, code);
	}
	rs_json_close(&j, ']');
	rs_json_u64(&j, "ranges", r->ranges);
	rs_json_u64(&j, "bytes", r->bytes);
	rs_json_u64(&j, "ns", r->end_ns - r->begin_ns);
	if (o->where)
		rs_json_u64(&j, "stack", o->where);
	rs_records_write(e->records, RS_RECORD_REPLAYS, &j);
}

/* engine.lock held. */
static struct outcome judge(struct rs_engine *e, const struct rs_replay *r)
{
	struct outcome o = {V_EQUAL, V_EQUAL, V_EQUAL, 0, 0, 0};
	uint32_t i;

	for (i = 0; i < r->checks.n; i++)
		judge_check(e, r, &o, &r->checks.v[i]);
	judge_flags(e, r, &o);
	judge_products(e, r, &o);
	e->stats.outcome[outcome_of(&o)]++;
	if (e->records)
		write_record(e, r, &o);
	return o;
}

/* What the digests of a captured replay say now; it may be judged again. engine.lock held. */
void rs_replay_judge(struct rs_engine *e, const struct rs_replay *r)
{
	judge(e, r);
}

void rs_replay_free(struct rs_engine *e, struct rs_replay *r)
{
	uint32_t i;

	for (i = 0; i < r->checks.n; i++) {
		rs_words_put(e, r->checks.v[i].a);
		rs_words_put(e, r->checks.v[i].b);
		rs_alloc_unref(e, r->checks.v[i].alloc);
	}
	rs_segment_unref(e, r->seg);
	free(r->checks.v);
	free(r->slots);
	free(r);
}

/*
 * The segment retires, or the run ends, and nobody has replayed it: what its replays would have been told is told of the
 * forward alone. No record is written and nothing is judged: that memory was freed is a note, and none in a program that replays
 * nothing at all; that a stream overwrote or freed what another one was still reading is an error of the forward's own. A
 * program may have any number of such forwards. Of a captured one it is known before anything has run.
 */
void rs_segment_tell(struct rs_engine *inside, struct rs_segment *s)
{
	struct rs_engine *e = inside->outer ? inside->outer : inside;
	const struct rs_race *const races[] = {&s->race, &s->freed};
	const struct rs_replay r = {.name = s->name, .invocation = s->invocation, .step = s->step};
	struct outcome o = {.entry = V_EQUAL};

	for (unsigned i = 0; i < 2 && !s->replays && !s->told; i++) {
		const struct rs_check c = {.alloc = races[i]->alloc,
					   .off = races[i]->off,
					   .len = races[i]->len,
					   .writer = races[i]->writer};

		if (c.alloc && (!i || e->stats.replays) && e->told_alone++ < MOST_ALONE)
			report(e, &r, &o, i ? RS_FINDING_FREED_EARLY : RS_FINDING_UNORDERED, &c,
			       c.off);
	}
	s->told = 1;
}

/* engine.lock held. The record is consumed. */
static void finalise(struct rs_engine *e, struct rs_replay *r)
{
	struct outcome o = judge(e, r);

	rs_costs_outcome(e, r, o.codes, outcome_of(&o) == V_DIFFERENT);
	rs_replay_free(e, r);
}

/* A record that another thread asks about, or still has operations of in hand; then that is over in a moment. */
#define PATIENCE 50000u
static void pause_a_moment(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

/* Has the device come past the record? Without engine.lock: r is busy. */
static int passed(struct rs_engine *e, const struct rs_replay *r, int wait)
{
	if (!r->event)
		return 1;
	return wait ? e->ops->event_sync(e->ops->opaque, r->event) ?: 1
		    : e->ops->event_done(e->ops->opaque, r->event);
}

/* The event said that the context is lost. */
static void fail(struct rs_replay *r)
{
	uint32_t i;

	for (i = 0; i < r->checks.n; i++)
		if (r->checks.v[i].b)
			r->checks.v[i].b->failed = 1;
	r->flags |= RS_F_INTERNAL;
	r->covered = 0;
}

/*
 * Oldest first. wait: block the host for those of ctx, or of every context (0), also for one that is in another thread's
 * hands; not for ever, for at the process's end that thread may be gone. A record stays at the head, and busy, until it is
 * written: whoever finds none has missed none.
 */
static void finish(struct rs_engine *e, int wait, uint64_t ctx)
{
	unsigned patience = wait ? PATIENCE : 0;

	for (;;) {
		struct rs_replay *r;
		int held, done;

		pthread_mutex_lock(&e->lock);
		r = e->flight;
		held = r && (r->busy || r->pins);
		if (r && !held)
			r->busy = 1;
		pthread_mutex_unlock(&e->lock);
		if (held && patience--) {
			pause_a_moment();
			continue;
		}
		if (!r || held)
			return;
		done = passed(e, r, wait && (!ctx || ctx == r->ctx));
		if (done && r->event)
			e->ops->event_free(e->ops->opaque, r->event);
		pthread_mutex_lock(&e->lock);
		r->busy = 0;
		if (!done) {
			pthread_mutex_unlock(&e->lock);
			return;
		}
		if (done < 0)
			fail(r);
		__atomic_store_n(&e->flight, r->next, __ATOMIC_RELAXED);
		if (!e->flight)
			e->flight_end = &e->flight;
		if (r->event)
			rs_fences_over(e, r);
		finalise(e, r);
		pthread_mutex_unlock(&e->lock);
	}
}

/*
 * Write the records whose event has passed; wait: all of them, blocking the host. An event that fails (a lost
 * context) makes its record a rejection.
 */
void rs_replay_finish_ready(struct rs_engine *e, int wait)
{
	finish(e, wait, 0);
	rs_capture_harvest(e, wait, 0);
}

void rs_replay_finish_ctx(struct rs_engine *e, uint64_t ctx)
{
	finish(e, 1, ctx);
	rs_capture_harvest(e, 1, ctx);
}
