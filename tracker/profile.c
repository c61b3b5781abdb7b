/* SPDX-License-Identifier: MIT */
/*
 * What a run shows of its segments, summed over their invocations: the calls of their forwards, what they read
 * and what of that is overwritten before the replay, what they produce and draw. A contract is learned from these
 * lines (events.jsonl, "segment" and "state"), which are written once, when the run ends.
 *
 * Memory is named so that another run of the program finds it: by its region, or as argument `slot` of the
 * forward's n-th call. Offsets count from there.
 *
 * What is captured counts once for each capture, however often its graph is launched.
 *
 * Callers: access.c, preserve.c, window.c, generator.c under engine.lock; rs_engine_finish.
 */
#include <stdlib.h>
#include <string.h>

#include "tracker/callstate.h"

#define MOST_RANGES  65536u
#define MOST_WINDOWS 4096u
#define MOST_CALLS   8u
#define PER_LINE     48u /* windows */

struct key {
	const char *region; /* interned, or NULL */
	uint64_t off, len;
	uint32_t call;
	uint16_t slot, piece;
};

struct piece {
	uint64_t off, len;
};

struct rs_profile_range {
	struct key key;
	uint8_t cls;
	const struct rs_profile *of;
	uint64_t reads, overwrites;
	const char *reader, *writer;  /* names of calls, immortal */
	RS_VEC(struct piece) windows; /* sorted, disjoint, not adjacent */
	UT_hash_handle hh;
};

struct rs_profile {
	const char *name; /* interned; key: the pointer */
	uint64_t forwards, invocations, calls[MOST_CALLS];
	uint32_t ncalls;
	uint64_t longest; /* calls of a forward */
	uint64_t replays; /* most of a forward */
	uint64_t products, product_bytes, draws, draw_bytes, state_bytes;
	uint64_t host_ns;
	uint32_t flags;
	uint8_t cut; /* there was more than is told */
	struct rs_profile_range *ranges;
	struct rs_alias_set aliases;
	UT_hash_handle hh;
};

/* What is captured belongs to the run, too: then the program's engine is locked as well. */
static struct rs_engine *run_of(struct rs_engine *e)
{
	return e->outer ? e->outer : e;
}

struct rs_profile *rs_profile_of(struct rs_engine *inside, const char *name)
{
	struct rs_engine *e = run_of(inside);
	struct rs_profile *p;

	if (!inside->config.profile)
		return NULL;
	HASH_FIND(hh, e->profiles, &name, sizeof(name), p);
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->name = name;
	HASH_ADD(hh, e->profiles, name, sizeof(p->name), p);
	if (!p->hh.tbl) {
		free(p);
		return NULL;
	}
	return p;
}

/* The window claims [off, off + len) of a range, which its forward's present call reads. */
struct rs_profile_range *rs_profile_read(struct rs_profile *p, const struct rs_spot *spot,
					 uint64_t off, uint64_t len, enum rs_class cls,
					 const char *reader)
{
	const struct rs_range *r = spot->range;
	const struct rs_region *region;
	struct rs_profile_range *found;
	struct key key;
	uint64_t until;

	region = rs_region_at(r->a, off, &until);
	memset(&key, 0, sizeof(key)); /* it is hashed, padding included */
	key.len = len;
	if (region) {
		key.region = region->name;
		key.off = off - region->off;
	} else {
		key.call = spot->call;
		key.slot = spot->slot;
		key.piece = r->piece;
		key.off = off - r->off;
	}
	HASH_FIND(hh, p->ranges, &key, sizeof(key), found);
	if (!found && HASH_COUNT(p->ranges) < MOST_RANGES) {
		found = calloc(1, sizeof(*found));
		if (found) {
			found->key = key;
			found->cls = (uint8_t)cls;
			found->of = p;
			HASH_ADD(hh, p->ranges, key, sizeof(found->key), found);
			if (!found->hh.tbl) {
				free(found);
				found = NULL;
			}
		}
	}
	if (!found) {
		p->cut = 1;
		return NULL;
	}
	found->reads++;
	found->reader = reader;
	if (cls > found->cls)
		found->cls = (uint8_t)cls;
	return found;
}

/* Merge [off, off + len) in. */
static void add_window(struct rs_profile *p, struct rs_profile_range *r, uint64_t off, uint64_t len)
{
	struct piece add = {off, len}, *at;
	uint32_t i, j;

	for (i = 0; i < r->windows.n && r->windows.v[i].off + r->windows.v[i].len < off; i++)
		;
	for (j = i; j < r->windows.n && r->windows.v[j].off <= add.off + add.len; j++) {
		uint64_t end = r->windows.v[j].off + r->windows.v[j].len;
		uint64_t mine = add.off + add.len;

		if (r->windows.v[j].off < add.off)
			add.off = r->windows.v[j].off;
		add.len = (end > mine ? end : mine) - add.off;
	}
	if (i < j) {
		r->windows.v[i] = add;
		memmove(&r->windows.v[i + 1], &r->windows.v[j],
			(r->windows.n - j) * sizeof(*r->windows.v));
		r->windows.n -= j - i - 1;
		return;
	}
	at = r->windows.n < MOST_WINDOWS ? RS_PUSH(r->windows) : NULL;
	if (!at) { /* the last one stretches: too much is preserved, never too little */
		p->cut = 1;
		if (r->windows.n) {
			struct piece *last = &r->windows.v[r->windows.n - 1];
			uint64_t end = last->off + last->len;

			i = i < r->windows.n ? i : r->windows.n - 1;
			if (r->windows.v[i].off > off)
				r->windows.v[i].off = off;
			r->windows.n = i + 1;
			r->windows.v[i].len =
				(end > off + len ? end : off + len) - r->windows.v[i].off;
		}
		return;
	}
	memmove(&r->windows.v[i + 1], &r->windows.v[i],
		(r->windows.n - 1 - i) * sizeof(*r->windows.v));
	r->windows.v[i] = add;
}

/*
 * Bytes that some segment claims are about to be overwritten. Whether that matters to a replay is known when the segment
 * retires: after the last one it does not.
 */
void rs_profile_overwritten(struct rs_engine *e, const struct rs_alloc *a, const struct rs_ext *x,
			    const struct rs_writer *writer)
{
	struct rs_segment *s;
	uint32_t i;

	for (s = run_of(e)->profiles ? e->pending : NULL; s; s = s->next) {
		struct rs_profile *p = rs_profile_of(e, s->name);
		struct rs_overwrite *at;
		struct rs_touch *t = p ? rs_touch_of(s->touches, a) : NULL;

		for (i = t ? rs_claim_at(t, x->off) : 0; t && i < t->claims.n; i++) {
			const struct rs_claim *c = &t->claims.v[i];
			uint64_t from = c->off > x->off ? c->off : x->off;
			uint64_t end = c->off + c->len < x->off + x->len ? c->off + c->len
									 : x->off + x->len;

			if (from >= end)
				break;
			if (!c->range || c->ver != x->ver)
				continue;
			at = RS_PUSH(s->overwrites);
			if (at)
				*at = (struct rs_overwrite){.range = c->range,
							    .off = c->range->key.off +
								   (from - c->range_at),
							    .len = end - from,
							    .writer = writer->name,
							    .replays = s->replays};
			else
				p->cut = 1;
		}
	}
}

void rs_profile_retire(struct rs_engine *e, struct rs_segment *s)
{
	struct rs_profile *p = run_of(e)->profiles ? rs_profile_of(e, s->name) : NULL;
	uint32_t i;

	if (p && s->replays > p->replays)
		p->replays = s->replays;
	for (i = 0; p && i < s->overwrites.n; i++) {
		const struct rs_overwrite *o = &s->overwrites.v[i];

		if (o->replays >= s->replays)
			continue;
		o->range->overwrites++;
		o->range->writer = o->writer;
		add_window(p, o->range, o->off, o->len);
	}
	s->overwrites.n = 0;
}

int rs_profile_knows(const struct rs_profile_range *r)
{
	return r->of->replays > 0;
}

int rs_profile_expects(const struct rs_profile_range *r, uint64_t range_at, uint64_t off,
		       uint64_t *until)
{
	uint32_t i;

	for (i = 0; r && i < r->windows.n; i++) {
		uint64_t from = r->windows.v[i].off - r->key.off + range_at;
		uint64_t end = from + r->windows.v[i].len;

		if (off >= end)
			continue;
		*until = rs_min64(*until, off < from ? from : end);
		return off >= from;
	}
	return 0;
}

void rs_profile_expected(const struct rs_claim *c, uint64_t *bytes, uint64_t *pieces)
{
	uint64_t off = c->off, end = c->off + c->len, until;

	for (; c->range && off < end; off = until) {
		until = end;
		if (!rs_profile_expects(c->range, c->range_at, off, &until))
			continue;
		*bytes += until - off;
		++*pieces;
	}
}

struct rs_alias_set *rs_profile_aliases(struct rs_engine *e, const char *name)
{
	struct rs_profile *p = rs_profile_of(e, name);

	return p ? &p->aliases : NULL;
}

/* A forward is over. */
void rs_profile_forward(struct rs_engine *e, const struct rs_segment *s)
{
	struct rs_profile *p = rs_profile_of(e, s->name);
	uint64_t calls = rs_terms_calls(s), bytes = 0, products = 0, state = 0, drawn = 0;
	struct rs_touch *t, *tmp;
	uint32_t i;

	if (!p)
		return;
	p->forwards++;
	p->host_ns += rs_now_ns() - s->begin_ns;
	p->flags |= s->flags;
	if (s->invocation >= p->invocations)
		p->invocations = s->invocation + 1;
	if (s->log.n > p->longest)
		p->longest = s->log.n;
	for (i = 0; i < p->ncalls && p->calls[i] != calls; i++)
		;
	if (s->flags & RS_F_CAPTURE) /* its calls were not seen */
		p->cut = 1;
	else if (i == p->ncalls && p->ncalls < MOST_CALLS)
		p->calls[p->ncalls++] = calls;
	else if (i == p->ncalls)
		p->cut = 1;
	for (t = s->touches; t; t = tmp) {
		tmp = t->hh.next;
		for (i = 0; i < t->spans.n; i++)
			if (t->spans.v[i].cls == RS_CLASS_PRODUCT) {
				products++;
				bytes += t->spans.v[i].len;
			}
		for (i = 0; i < t->claims.n; i++)
			if (t->claims.v[i].cls == RS_CLASS_STATE)
				state += t->claims.v[i].len;
	}
	for (i = 0; i < s->draws.n; i++)
		drawn += s->draws.v[i].bytes;
#define MOST(field, value) p->field = p->field > (value) ? p->field : (value)
	MOST(products, products);
	MOST(product_bytes, bytes);
	MOST(state_bytes, state);
	MOST(draws, s->draws.n);
	MOST(draw_bytes, drawn);
#undef MOST
}

/* --- the lines -------------------------------------------------------------------------------- */

static void write_head(struct rs_engine *e, const struct rs_profile *p)
{
	struct rs_json j;
	uint32_t i;

	rs_json_begin(&j);
	rs_json_str(&j, "t", "segment");
	rs_json_str(&j, "segment", p->name);
	rs_json_u64(&j, "forwards", p->forwards);
	rs_json_u64(&j, "invocations", p->invocations);
	rs_json_u64(&j, "longest", p->longest);
	rs_json_u64(&j, "replays", p->replays);
	rs_json_open(&j, "calls", '[');
	for (i = 0; i < p->ncalls; i++)
		rs_json_hex(&j, NULL, p->calls[i]);
	rs_json_close(&j, ']');
	rs_json_u64(&j, "state_bytes", p->state_bytes);
	rs_json_u64(&j, "products", p->products);
	rs_json_u64(&j, "product_bytes", p->product_bytes);
	rs_json_u64(&j, "draws", p->draws);
	rs_json_u64(&j, "draw_bytes", p->draw_bytes);
	rs_json_u64(&j, "host_ns", p->host_ns);
	rs_json_bool(&j, "host_effect", !!(p->flags & RS_F_HOST_EFFECT));
	rs_json_bool(&j, "captured", !!(p->flags & RS_F_CAPTURE));
	rs_json_bool(&j, "unknown_writer", !!(p->flags & RS_F_UNKNOWN_WRITER));
	rs_json_bool(&j, "untracked", !!(p->flags & RS_F_UNTRACKED));
	rs_json_bool(&j, "cut", p->cut);
	rs_json_bool(&j, "aliases_cut", p->aliases.cut);
	rs_records_write(e->records, RS_RECORD_EVENTS, &j);
}

/* Windows [from, from + PER_LINE) of a range. */
static void write_range(struct rs_engine *e, const struct rs_profile *p,
			const struct rs_profile_range *r, uint32_t from)
{
	struct rs_json j;
	uint32_t i;

	rs_json_begin(&j);
	rs_json_str(&j, "t", "state");
	rs_json_str(&j, "segment", p->name);
	if (r->key.region) {
		rs_json_str(&j, "region", r->key.region);
	} else {
		rs_json_u64(&j, "call", r->key.call);
		rs_json_u64(&j, "slot", r->key.slot);
		rs_json_u64(&j, "piece", r->key.piece);
	}
	rs_json_u64(&j, "offset", r->key.off);
	rs_json_u64(&j, "bytes", r->key.len);
	rs_json_str(&j, "role", r->cls == RS_CLASS_STATE ? "state" : "unknown");
	rs_json_u64(&j, "reads", r->reads);
	rs_json_str(&j, "reader", r->reader ? r->reader : "");
	rs_json_u64(&j, "overwrites", r->overwrites);
	rs_json_str(&j, "writer", r->writer ? r->writer : "");
	rs_json_open(&j, "windows", '[');
	for (i = from; i < r->windows.n && i < from + PER_LINE; i++) {
		rs_json_open(&j, NULL, '[');
		rs_json_u64(&j, NULL, r->windows.v[i].off);
		rs_json_u64(&j, NULL, r->windows.v[i].len);
		rs_json_close(&j, ']');
	}
	rs_json_close(&j, ']');
	rs_records_write(e->records, RS_RECORD_EVENTS, &j);
}

/* Once, at the end of the run. engine.lock held. */
void rs_profile_write(struct rs_engine *e)
{
	const struct rs_profile_range *r;
	const struct rs_profile *p;
	uint32_t from;

	for (p = e->records ? e->profiles : NULL; p; p = p->hh.next) {
		write_head(e, p);
		rs_places_write(e, p->name, &p->aliases);
		for (r = p->ranges; r; r = r->hh.next)
			for (from = 0; !from || from < r->windows.n; from += PER_LINE)
				write_range(e, p, r, from);
	}
}

void rs_profile_fini(struct rs_engine *e)
{
	struct rs_profile_range *r;
	struct rs_profile *p;

	while ((p = e->profiles)) {
		while ((r = p->ranges)) {
			HASH_DEL(p->ranges, r);
			free(r->windows.v);
			free(r);
		}
		HASH_DEL(e->profiles, p);
		rs_places_free(&p->aliases);
		free(p);
	}
}
