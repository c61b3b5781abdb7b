/* SPDX-License-Identifier: MIT */
/*
 * Many small copies of an operation list as one operation of the device, and many digests as another one: rows that are
 * kept, shown to a replay, or put back, pages of a keep that stay, and the digests of all of them.
 *
 * Operations of one queue that follow each other are carried out in four turns: all keeps, then the digests of what a
 * restore is about to overwrite, then all restores, then all other digests. That is the order of the list, where no keep
 * reads what an earlier restore writes, no digest lies between two restores of its bytes, and no two restores write the
 * same bytes; a list for which that is not so is cut, or goes one by one.
 *
 * A move that fails may have been made in part. Keeps are copied to memory of their own and restores from there, so
 * nothing is lost by that: each is then copied alone, and what fails once more is settled as any failed copy is. The
 * same holds for digests, which change nothing.
 *
 * Called by oplist.c without engine.lock; what the operations refer to is pinned.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/ops.h"

/*
 * On the virtual clock of the simulated device two copies take longer than a move of two rows (tests/bench/devops.sh).
 * The move may have 80% of a copy's bandwidth: in large rows that costs more than another launch.
 */
#define FEWEST	2u
#define LARGEST (1ull << 20)

struct gather {
	struct rs_engine *e;
	struct rs_op *op;
	uint32_t n;
	struct rs_queue q;
	uint32_t *restore; /* those among op, by allocation and offset */
	uint32_t nrestore;
	uint8_t *early; /* the digest of op[i] comes before the restores */
	union {		/* one turn's, for op[of[i]] */
		struct rs_move *move;
		struct rs_piece *piece;
	};
	uint32_t *of, nof;
};

static int is_keep(const struct rs_op *op)
{
	return op->kind == RS_OP_KEEP || op->kind == RS_OP_MOVE;
}

/* A kernel that reaches the bytes from the queue's context will do as well as the driver's copy. */
static int is_small(const struct gather *g, const struct rs_op *op)
{
	const struct rs_alloc *a = op->alloc;

	if (op->len > LARGEST)
		return 0;
	return op->kind == RS_OP_MOVE ||
	       (a->ctx == g->q.ctx && a->ctx && !rs_alloc_is_volatile(a) &&
		(a->kind == RS_ALLOC_DEVICE || a->kind == RS_ALLOC_GLOBAL));
}

/* How many operations from the first on may belong together. */
static uint32_t length(const struct rs_engine *e, const struct rs_op *op, uint32_t n)
{
	uint32_t i, keeps = 0, restores = 0, digests = 0;

	for (i = 0; i < n && op[i].to == op->to && op[i].addr; i++) {
		if (op[i].alloc && rs_remap_is_lost(op[i].alloc))
			break;
		if (!is_keep(&op[i]) && op[i].kind != RS_OP_RESTORE && op[i].kind != RS_OP_DIGEST)
			break;
		if (op[i].len > LARGEST)
			continue;
		keeps += is_keep(&op[i]);
		restores += op[i].kind == RS_OP_RESTORE;
		digests += op[i].words != NULL;
	}
	if (e->config.mode != RS_MODE_PRESERVE)
		keeps = 0;
	if (!e->ops->digest_many)
		digests = 0;
	/* of one row that is held and shown, one digest comes before the restore and one after it */
	return keeps >= FEWEST || restores >= FEWEST || digests >= FEWEST + restores ? i : 0;
}

/* --- do they? ----------------------------------------------------------------------------------- */

static int by_place(const void *x, const void *y, void *ops)
{
	const struct rs_op *a = (const struct rs_op *)ops + *(const uint32_t *)x;
	const struct rs_op *b = (const struct rs_op *)ops + *(const uint32_t *)y;

	if (a->alloc != b->alloc)
		return (uintptr_t)a->alloc < (uintptr_t)b->alloc ? -1 : 1;
	return a->off < b->off ? -1 : a->off > b->off;
}

/* Index of the first of the sorted restores that ends behind the beginning of op. */
static uint32_t first_restore(const struct gather *g, const struct rs_op *op)
{
	uint32_t lo = 0, hi = g->nrestore;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct rs_op *r = &g->op[g->restore[mid]];

		if (r->alloc == op->alloc ? r->off + r->len <= op->off
					  : (uintptr_t)r->alloc < (uintptr_t)op->alloc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int overlap(const struct rs_op *a, const struct rs_op *b)
{
	return a->alloc == b->alloc && a->off < b->off + b->len && b->off < a->off + a->len;
}

/* Do the first n do something else in turns? If not, g->early is known. */
static int conflict(struct gather *g, uint32_t n)
{
	uint32_t i, j;

	g->nrestore = 0;
	for (i = 0; i < n; i++)
		if (g->op[i].kind == RS_OP_RESTORE)
			g->restore[g->nrestore++] = i;
	qsort_r(g->restore, g->nrestore, sizeof(*g->restore), by_place, g->op);
	for (i = 1; i < g->nrestore; i++)
		if (overlap(&g->op[g->restore[i - 1]], &g->op[g->restore[i]]))
			return 1;
	for (i = 0; i < n; i++) {
		const struct rs_op *op = &g->op[i];
		int before = 0, after = 0; /* restores of its bytes */

		if (op->kind != RS_OP_KEEP && op->kind != RS_OP_DIGEST)
			continue;
		for (j = first_restore(g, op);
		     j < g->nrestore && overlap(op, &g->op[g->restore[j]]); j++) {
			before |= g->restore[j] < i;
			after |= g->restore[j] > i;
		}
		if (before && (after || op->kind == RS_OP_KEEP))
			return 1;
		g->early[i] = (uint8_t)after;
	}
	return 0;
}

/* --- the turns ---------------------------------------------------------------------------------- */

/* Where the copy of op goes, and from where. */
static struct rs_move ends(const struct rs_op *op)
{
	if (op->kind == RS_OP_RESTORE)
		return (struct rs_move){op->addr, rs_op_source(op), op->len};
	return (struct rs_move){op->keep->addr, op->addr, op->len};
}

/* What has to be so before the copy. */
static int prepare(struct gather *g, struct rs_op *op)
{
	const struct rs_keep *from = op->kind == RS_OP_RESTORE ? op->keep : op->guard;
	int err = op->kind == RS_OP_RESTORE ? rs_op_may_restore(op) : rs_op_room(g->e, op);

	if (err || op->kind == RS_OP_KEEP)
		return err;
	err = rs_order_now(g->e, rs_block_users(g->e, from->block), op->to);
	if (!err)
		rs_block_used(g->e, from->block, op->to);
	return err;
}

static void copy_alone(struct gather *g, struct rs_op *op)
{
	struct rs_move m = ends(op);

	op->failed = rs_op_copy(g->e, op, m.dst, m.src) != 0;
}

/* Keeps and moves of keeps, or restores. */
static void copies(struct gather *g, int restores)
{
	uint32_t i;

	g->nof = 0;
	for (i = 0; i < g->n; i++) {
		struct rs_op *op = &g->op[i];

		if (restores ? op->kind != RS_OP_RESTORE : !is_keep(op))
			continue;
		op->failed = prepare(g, op) != 0;
		if (op->failed)
			continue;
		if (!is_small(g, op)) {
			copy_alone(g, op);
			continue;
		}
		g->of[g->nof] = i;
		g->move[g->nof++] = ends(op);
	}
	if (g->nof >= FEWEST && !g->e->ops->move(g->e->ops->opaque, g->q, g->move, g->nof))
		return;
	for (i = 0; i < g->nof; i++)
		copy_alone(g, &g->op[g->of[i]]);
}

static void digest_alone(struct gather *g, struct rs_op *op)
{
	if (op->kind == RS_OP_DIGEST)
		op->failed = rs_op_digest(g->e, op) != 0;
	else
		op->failed = rs_op_digest_keep(g->e, op) != 0;
}

/* Those of g->of in one operation. 0 or -errno. */
static int digest_all(struct gather *g)
{
	const struct rs_devops *ops = g->e->ops;
	struct rs_words *list = NULL;
	uint32_t i;
	int err;

	if (g->nof < FEWEST || !ops->digest_many)
		return -ENOTSUP;
	for (i = g->nof; i-- > 0;) {
		struct rs_words *w = g->op[g->of[i]].words;

		w->next = list;
		list = w;
	}
	err = rs_words_fill_all(g->e, g->op->to, list, g->nof);
	for (i = 0; !err && i < g->nof; i++) {
		const struct rs_op *op = &g->op[g->of[i]];

		g->piece[i] = (struct rs_piece){op->addr, op->len, op->words->w};
	}
	return err ? err : ops->digest_many(ops->opaque, g->q, g->piece, g->nof);
}

static void digests(struct gather *g, int early)
{
	uint32_t i;

	g->nof = 0;
	for (i = 0; i < g->n; i++) {
		struct rs_op *op = &g->op[i];

		if (!op->words || op->failed || op->kind == RS_OP_RESTORE || g->early[i] != early)
			continue;
		if (op->len > LARGEST || op->alloc->kind == RS_ALLOC_ARRAY)
			digest_alone(g, op);
		else
			g->of[g->nof++] = i;
	}
	if (!digest_all(g))
		return;
	for (i = 0; i < g->nof; i++)
		digest_alone(g, &g->op[g->of[i]]);
}

static void kept(struct gather *g)
{
	for (uint32_t i = 0; i < g->n; i++)
		if (is_keep(&g->op[i]))
			rs_op_kept(g->e, &g->op[i], g->op[i].failed ? -EIO : 0);
}

static void run(struct gather *g)
{
	if (g->e->config.mode != RS_MODE_PRESERVE) { /* a keep is its digest */
		digests(g, 0);
		kept(g);
		return;
	}
	copies(g, 0);
	kept(g);
	digests(g, 1);
	copies(g, 1);
	digests(g, 0);
}

/* Memory for n operations; 0 or -ENOMEM. All of it goes with g->move. */
static int make_room(struct gather *g, uint32_t n)
{
	size_t each = sizeof(*g->restore) + sizeof(*g->of) + sizeof(*g->early);

	_Static_assert(sizeof(*g->move) == sizeof(*g->piece), "they share the room");
	g->move = malloc(n * (sizeof(*g->move) + each));
	if (!g->move)
		return -ENOMEM;
	g->restore = (uint32_t *)(g->move + n);
	g->of = g->restore + n;
	g->early = memset(g->of + n, 0, n);
	return 0;
}

uint32_t rs_gather_run(struct rs_engine *e, struct rs_oplist *l, uint32_t i)
{
	struct gather g = {.e = e, .op = &l->v[i]};

	if (g.op->kind == RS_OP_DIFF)
		return rs_thin_diffs(e, g.op, l->n - i);
	g.n = l->unordered ? 0 : length(e, g.op, l->n - i); /* then each is looked at by itself */
	if (!g.n || make_room(&g, g.n))
		return 0;
	g.q = rs_queue_of(e, g.op->to);
	while (g.n >= FEWEST && conflict(&g, g.n))
		g.n /= 2;
	if (g.n >= FEWEST)
		run(&g);
	else
		g.n = 0;
	free(g.move);
	return g.n;
}
