/* SPDX-License-Identifier: MIT */
/*
 * Keeping bytes before they are overwritten: keeps, who needs them, how long they stay. See model.h for the life
 * of a byte, restore.c for what replays do with keeps.
 *
 * All functions run under engine.lock and only plan operations; rs_oplist_run enqueues them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/costing.h"
#include "tracker/model.h"

/* Index of the first keep that begins behind off. */
static uint32_t keeps_behind(const struct rs_alloc *a, uint64_t off)
{
	uint32_t lo = 0, hi = a->keeps.n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (a->keeps.v[mid]->off <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct rs_keep *rs_keep_find(struct rs_alloc *a, uint64_t off, uint64_t ver)
{
	struct rs_keep *planned = NULL;
	uint32_t i;

	for (i = keeps_behind(a, off); i > 0; i--) {
		struct rs_keep *k = a->keeps.v[i - 1];

		if (off - k->off >= a->longest_keep)
			break;
		if (k->ver != ver || off >= k->off + k->len)
			continue;
		if (k->state == RS_KEEP_READY)
			return k;
		if (k->state == RS_KEEP_PLANNED)
			planned = k;
	}
	return planned;
}

/* 0 or -ENOMEM. */
int rs_keep_add(struct rs_alloc *a, struct rs_keep *k)
{
	uint32_t i = keeps_behind(a, k->off);
	struct rs_keep **added = RS_PUSH(a->keeps);

	if (!added)
		return -ENOMEM;
	memmove(&a->keeps.v[i + 1], &a->keeps.v[i], (a->keeps.n - 1 - i) * sizeof(a->keeps.v[0]));
	a->keeps.v[i] = k;
	a->longest_keep = rs_max64(a->longest_keep, k->len);
	return 0;
}

uint32_t rs_claim_at(const struct rs_touch *t, uint64_t off)
{
	uint32_t lo = 0, hi = t->claims.n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (t->claims.v[mid].off + t->claims.v[mid].len <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* A new claim, empty, at its place; NULL: no memory. */
struct rs_claim *rs_claim_add(struct rs_touch *t, uint64_t off)
{
	uint32_t i = rs_claim_at(t, off);
	struct rs_claim *added = RS_PUSH(t->claims);

	if (!added)
		return NULL;
	memmove(&t->claims.v[i + 1], &t->claims.v[i],
		(t->claims.n - 1 - i) * sizeof(t->claims.v[0]));
	memset(&t->claims.v[i], 0, sizeof(t->claims.v[i]));
	return &t->claims.v[i];
}

/*
 * The piece is about to be claimed. While nobody claimed any of the allocation it may have been written without a new
 * version: then a keep of its version has other bytes, that are only still here because an operation has it in hand.
 */
void rs_keeps_outdate(struct rs_engine *e, struct rs_alloc *a, const struct rs_ext *x)
{
	uint32_t i;

	for (i = keeps_behind(a, x->off + x->len - 1); i > 0; i--) {
		struct rs_keep *k = a->keeps.v[i - 1];

		if (k->off < x->off && x->off - k->off >= a->longest_keep)
			break;
		if (k->ver == x->ver && !k->holds && x->off < k->off + k->len &&
		    !rs_claimed(e, a, k->off, k->len, k->ver))
			k->ver = rs_version_next(e);
	}
}

static int segment_claims(const struct rs_segment *s, const struct rs_alloc *a, uint64_t off,
			  uint64_t len, uint64_t ver)
{
	struct rs_touch *t = rs_touch_of(s->touches, a);
	uint32_t i;

	for (i = t ? rs_claim_at(t, off) : 0; t && i < t->claims.n; i++) {
		const struct rs_claim *c = &t->claims.v[i];

		if (c->off >= off + len)
			break;
		/* write-only bytes that F never read matter only while F may still read them */
		if (c->ver == ver && (c->cls != RS_CLASS_MAYBE || s->open))
			return 1;
	}
	return 0;
}

/* Does a pending segment need this version of any of these bytes? */
int rs_claimed(struct rs_engine *e, const struct rs_alloc *a, uint64_t off, uint64_t len,
	       uint64_t ver)
{
	struct rs_segment *s;

	for (s = e->pending; s; s = s->next)
		if (segment_claims(s, a, off, len, ver))
			return 1;
	return 0;
}

/*
 * The same for bytes that are about to be overwritten. A segment that has been shown them in its last replay, and now
 * overwrites them itself, needs them no more.
 */
static int claimed_still(struct rs_engine *e, const struct rs_alloc *a, const struct rs_ext *x)
{
	struct rs_segment *s;

	for (s = e->pending; s; s = s->next)
		if (s != e->ending && segment_claims(s, a, x->off, x->len, x->ver))
			return 1;
	return 0;
}

void rs_op_bind(struct rs_op *op, struct rs_alloc *a, uint64_t off, uint64_t len)
{
	op->alloc = a;
	a->refs++;
	rs_view_plans(a);
	if (!a->base)
		rs_remap_bind(op, a);
	op->addr = rs_alloc_addr(a, off, len);
	op->off = off;
	op->len = len;
}

/* The operation's failure is the record's business: it must not be finished before. */
void rs_op_concerns(struct rs_op *op, struct rs_replay *rec)
{
	op->rec = rec;
	rec->pins++;
}

/* Plan a digest of live bytes. One reference for the caller; NULL: no memory. */
struct rs_words *rs_plan_digest(struct rs_oplist *l, uint32_t q, struct rs_alloc *a, uint64_t off,
				uint64_t len)
{
	struct rs_words *w = rs_words_new(len);
	struct rs_op *op = w ? rs_oplist_add(l, RS_OP_DIGEST, q) : NULL;

	if (!op) {
		free(w);
		return NULL;
	}
	rs_op_bind(op, a, off, len);
	op->words = w;
	w->refs++;
	return w;
}

/* Is a replay to be shown these bytes by remapping? */
static int wants_frame(const struct rs_engine *e, const struct rs_alloc *a, const struct rs_ext *x)
{
	const struct rs_segment *s;

	if (!__atomic_load_n(&e->remapping.wanted, __ATOMIC_RELAXED) || x->len != a->size ||
	    !rs_remap_fits(e, a))
		return 0;
	for (s = e->pending; s; s = s->next)
		if (s->policy.restore == RS_RESTORE_REMAP &&
		    segment_claims(s, a, x->off, x->len, x->ver))
			return 1;
	return 0;
}

/*
 * Make sure that the bytes of a live piece survive in a keep. The keep that already holds them is
 * shared; exact: only if it holds no others. NULL: no memory (whoever claims the version finds nothing and rejects).
 */
struct rs_keep *rs_keep_take(struct rs_engine *e, struct rs_oplist *l, uint32_t q,
			     struct rs_alloc *a, const struct rs_ext *piece,
			     const struct rs_writer *killer, int exact)
{
	struct rs_keep *k = rs_keep_find(a, piece->off, piece->ver);
	struct rs_op *op;

	if (k && (exact ? piece->off == k->off && piece->len == k->len
			: piece->off + piece->len <= k->off + k->len))
		return k;
	k = calloc(1, sizeof(*k));
	op = k ? rs_oplist_add(l, RS_OP_KEEP, q) : NULL;
	if (op) {
		k->off = piece->off;
		k->len = piece->len;
		k->ver = piece->ver;
	}
	if (!op || rs_keep_add(a, k)) {
		l->n -= op != NULL;
		free(k);
		e->stats.internal_errors++;
		return NULL;
	}
	k->killer = *killer;
	k->pins = 1;
	k->framed = (uint8_t)wants_frame(e, a, piece);
	if (e->config.verify || e->config.mode == RS_MODE_AUDIT)
		k->digest = rs_words_new(k->len);
	if (k->digest) {
		k->digest->refs++;
		op->words = k->digest;
	}
	rs_op_bind(op, a, k->off, k->len);
	op->keep = k;
	return k;
}

/* Every live byte carries the version: the live bytes are the better copy. */
int rs_range_is_live(const struct rs_alloc *a, uint64_t off, uint64_t len, uint64_t ver)
{
	uint32_t i;

	for (i = rs_extmap_at(&a->ext, off); i < a->ext.n; i++) {
		if (a->ext.ext[i].off >= off + len)
			break;
		if (a->ext.ext[i].ver != ver)
			return 0;
	}
	return !rs_alloc_is_volatile(a);
}

/*
 * What is live needs no copy; but bytes that are live because a replay is shown them will be overwritten at its end, and
 * then the copy would have to be made again.
 */
static int is_needed(struct rs_engine *e, const struct rs_alloc *a, const struct rs_keep *k)
{
	return !a->dead && k->state != RS_KEEP_FAILED &&
	       (k->eager || e->replays || !rs_range_is_live(a, k->off, k->len, k->ver)) &&
	       rs_claimed(e, a, k->off, k->len, k->ver);
}

static int may_go(struct rs_engine *e, const struct rs_alloc *a, const struct rs_keep *k)
{
	return !k->pins && !k->holds && (k->replaced || !is_needed(e, a, k));
}

static void free_keep(struct rs_engine *e, struct rs_keep *k)
{
	/* also where its last exchange was a copy: an earlier one may be mapped still */
	if (k->framed)
		rs_remap_keep_gone(e, k);
	if (k->block) {
		e->stats.snapshot_bytes -= k->block->bytes;
		rs_block_put(e, k->block);
	}
	rs_words_put(e, k->digest);
	rs_words_put(e, k->other_digest);
	free(k);
}

/* Drop the keeps that nobody needs any more. */
void rs_keeps_collect(struct rs_engine *e, struct rs_alloc *a)
{
	uint32_t i, left = 0;

	for (i = 0; i < a->keeps.n; i++) {
		struct rs_keep *k = a->keeps.v[i];

		if (may_go(e, a, k))
			free_keep(e, k);
		else
			a->keeps.v[left++] = k;
	}
	a->keeps.n = left;
	if (!left)
		a->longest_keep = 0;
}

/* The same for one of them: whatever needed it may have been done with it. */
void rs_keep_collect(struct rs_engine *e, struct rs_alloc *a, struct rs_keep *k)
{
	uint32_t i;

	if (!may_go(e, a, k))
		return;
	for (i = keeps_behind(a, k->off); a->keeps.v[i - 1] != k; i--)
		;
	memmove(&a->keeps.v[i - 1], &a->keeps.v[i], (a->keeps.n - i) * sizeof(a->keeps.v[0]));
	a->keeps.n--;
	if (!a->keeps.n)
		a->longest_keep = 0;
	free_keep(e, k);
}

/* Has everybody who claims these bytes read them before the writer comes? */
static void check_readers(struct rs_engine *e, struct rs_alloc *a, const struct rs_ext *x,
			  const struct rs_writer *writer)
{
	struct rs_segment *s;
	uint32_t i;

	for (s = e->pending; s; s = s->next) {
		struct rs_touch *t = s->race.alloc ? NULL : rs_touch_of(s->touches, a);

		for (i = t ? rs_claim_at(t, x->off) : 0; t && i < t->claims.n; i++) {
			const struct rs_claim *c = &t->claims.v[i];

			if (c->off >= x->off + x->len)
				break;
			if (c->ver != x->ver || rs_readers_done(e, c, x->off, x->len, writer->q))
				continue;
			rs_readers_race(e, s, a, x->off, x->len, writer);
			break;
		}
	}
}

/*
 * The memory is about to be freed. Who has still to read it? With who->tick the free is part of a stream, and whoever
 * reads on another one must have come first.
 */
void rs_memory_leaves(struct rs_engine *e, struct rs_alloc *a, const struct rs_writer *who)
{
	struct rs_segment *s;
	uint32_t i;

	for (s = e->pending; s; s = s->next) {
		struct rs_touch *t = rs_touch_find(s->touches, a->serial);

		for (i = 0; t && i < t->claims.n; i++) {
			const struct rs_claim *c = &t->claims.v[i];

			if (who->tick && !rs_readers_done(e, c, 0, a->size, who->q))
				rs_readers_race(e, s, a, c->off, c->len, who);
			if (c->cls == RS_CLASS_STATE)
				rs_segment_note(e, s, RS_CHECK_FREED, a, c->off, c->len, who);
		}
	}
}

/* The driver has refused to free it. */
void rs_memory_stays(struct rs_engine *e, struct rs_alloc *a)
{
	struct rs_segment *s;

	for (s = e->pending; s; s = s->next)
		if (s->freed.alloc == a) {
			s->freed.alloc = NULL;
			rs_alloc_unref(e, a);
		}
}

/*
 * A contract said that nothing of these bytes would be overwritten, by the program: where a forward within a replay has
 * read what the replay was shown, and that goes, the contract is not contradicted.
 */
static void check_free(struct rs_engine *e, struct rs_alloc *a, const struct rs_ext *x,
		       const struct rs_writer *writer)
{
	struct rs_segment *s;

	for (s = writer->call ? e->pending : NULL; s; s = s->next)
		if (s->policy.option == RS_OPTION_FREE && !s->broken.alloc &&
		    segment_claims(s, a, x->off, x->len, x->ver))
			rs_segment_note(e, s, RS_CHECK_BROKEN, a, x->off, x->len, writer);
}

static int wants_pages(const struct rs_engine *e, const struct rs_alloc *a, const struct rs_ext *x)
{
	const struct rs_segment *s;

	/* a graph cannot ask the host which pages have changed */
	for (s = e->outer ? NULL : e->pending; s; s = s->next)
		if (s->policy.option == RS_OPTION_PAGES &&
		    segment_claims(s, a, x->off, x->len, x->ver))
			return 1;
	return 0;
}

static void keep_for_writer(struct rs_engine *e, struct rs_oplist *l, uint32_t q,
			    struct rs_alloc *a, const struct rs_ext *x,
			    const struct rs_writer *writer)
{
	struct rs_keep *k = rs_keep_take(e, l, q, a, x, writer, 0);

	if (k && writer->call && writer->kind != RS_CALL_COPY && writer->kind != RS_CALL_FILL &&
	    wants_pages(e, a, x))
		rs_thin_note(e, a, k, writer);
	if (k && k->eager) { /* now it has a writer */
		k->eager = 0;
		k->killer = *writer;
	}
	if (k && writer->call && k->killer.call == writer->call)
		rs_where_want(e);
}

/* Not so where the same bytes were overwritten before, and are back for a replay. */
static int is_first_write(struct rs_alloc *a, const struct rs_ext *x)
{
	const struct rs_keep *k = rs_keep_find(a, x->off, x->ver);

	return !k || k->eager;
}

/* With versions of whole buffers: has a pending segment read any of it, so that this write is one to all of it? */
static int counts_as_all(const struct rs_engine *e, const struct rs_alloc *a)
{
	const struct rs_segment *s;

	for (s = e->config.buffers ? e->pending : NULL; s; s = s->next) {
		const struct rs_touch *t = rs_touch_of(s->touches, a);

		if (t && t->claims.n)
			return 1;
	}
	return 0;
}

/* The bytes have a new version, which is the last one that was given. */
static void written(struct rs_engine *e, struct rs_alloc *a, struct rs_ext *x,
		    const struct rs_writer *writer)
{
	if (e->thins)
		rs_thin_written(e, a, writer->call, e->version);
	if (!writer->tick)
		return;
	x->q = writer->q;
	x->tick = writer->tick;
	x->by = writer->name;
}

/* [off, off + len) is about to be overwritten on queue q: keep what is needed, bump the version. */
void rs_write_piecewise(struct rs_engine *e, struct rs_oplist *l, uint32_t q, struct rs_alloc *a,
			uint64_t off, uint64_t len, const struct rs_writer *writer)
{
	struct rs_ext *x = &a->ext.ext[rs_extmap_at(&a->ext, off)];
	uint32_t i;

	/* mostly: what nobody claims, and was written as a whole before */
	if (x->off == off && x->len == len && !x->claimed && !e->config.buffers) {
		*x = (struct rs_ext){.off = off, .len = len, .ver = rs_version_next(e)};
		written(e, a, x, writer);
		return;
	}
	if (counts_as_all(e, a)) {
		off = 0;
		len = a->size;
	}
	if (rs_extmap_split(&a->ext, off, len)) {
		/* no memory for a boundary: treat the allocation as one piece */
		e->stats.internal_errors++;
		off = 0;
		len = a->size;
	}
	for (i = rs_extmap_at(&a->ext, off); i < a->ext.n && a->ext.ext[i].off < off + len; i++) {
		x = &a->ext.ext[i];
		if (!x->claimed)
			continue;
		if (!claimed_still(e, a, x)) {
			x->claimed = 0;
			continue;
		}
		if (writer->tick)
			check_readers(e, a, x, writer);
		check_free(e, a, x, writer);
		rs_profile_overwritten(e, a, x, writer);
		if (e->costing && is_first_write(a, x))
			rs_costs_overwritten(e, a, x);
		keep_for_writer(e, l, q, a, x, writer);
	}
	if (rs_extmap_set(&a->ext, off, len, rs_version_next(e), 0))
		return;
	written(e, a, &a->ext.ext[rs_extmap_at(&a->ext, off)], writer);
}

/*
 * The shim itself has written live bytes on q, or reads them after the program's calls there, for a replay: who comes on
 * another queue waits. fence_queues has the queues of all fences that may still matter.
 */
void rs_fence(struct rs_engine *e, struct rs_alloc *a, uint32_t q, struct rs_replay *rec)
{
	if (!rec->fenced)
		rec->refusals = e->refusals;
	if (!(rec->fenced & RS_QBIT(q))) {
		rec->fenced |= RS_QBIT(q);
		e->fences[q < 63 ? q : 63]++;
	}
	__atomic_fetch_or(&e->fence_queues, RS_QBIT(q), __ATOMIC_RELAXED);
	__atomic_store_n(&a->fence_ordered, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&a->fence, q + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&a->touched, RS_QBIT(q), __ATOMIC_RELAXED);
	rs_moment_next(e);
}

/*
 * The record's event has passed. It came after all that its replay had enqueued (covered), so nobody has to be ordered
 * after that any more: a queue whose fences are all of such records has none.
 */
void rs_fences_over(struct rs_engine *e, struct rs_replay *rec)
{
	uint64_t over = 0;
	unsigned i;

	for (i = 0; rec->covered && i < 64; i++)
		if (rec->fenced & 1ull << i && !--e->fences[i])
			over |= 1ull << i;
	if (over)
		__atomic_fetch_and(&e->fence_queues, ~over, __ATOMIC_RELAXED);
}
