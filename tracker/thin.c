/* SPDX-License-Identifier: MIT */
/*
 * Thinning (RS_OPTION_PAGES): a kernel that may have written a whole buffer has often written a few rows. Its
 * pre-image is compared with the buffer right after it, page by page, on its own stream; once the device has
 * answered, only the pages that differ stay preserved.
 *
 * A page that did not change still has the bytes of the old version, so it is given that version again: its
 * next overwriting is met as any other, and nothing is lost. Pages that somebody claimed in the new version, or
 * that were overwritten since, stay preserved.
 *
 *   NEW     the keep is planned, the write is about to be made
 *   FLYING  compared on the device; event says when the answer is there
 *
 * Callers: preserve.c, access.c under engine.lock; markers and synchronisation (rs_thin_ready), without.
 */
#include <stdlib.h>

#include "tracker/ops.h"

struct rs_thin {
	struct rs_thin *next;
	struct rs_alloc *alloc;
	struct rs_keep *keep;
	uint64_t call;	    /* the write's number */
	uint64_t after_ver; /* what the write made of it */
	struct rs_words *words;
	uint64_t event; /* 0: NEW, or the comparison failed */
	uint32_t q;
	uint8_t flying;
};

static struct rs_words *words_for_pages(uint64_t bytes)
{
	return rs_words_new(rs_page_count(bytes) * RS_DIGEST_CHUNK);
}

static void drop(struct rs_engine *e, struct rs_thin *t)
{
	t->keep->pins--;
	rs_words_put(e, t->words);
	rs_keep_collect(e, t->alloc, t->keep);
	rs_alloc_unref(e, t->alloc);
	free(t);
}

/* A kernel is about to write the bytes of k. */
void rs_thin_note(struct rs_engine *e, struct rs_alloc *a, struct rs_keep *k,
		  const struct rs_writer *writer)
{
	struct rs_thin *t;

	if (e->config.mode != RS_MODE_PRESERVE || k->len <= RS_PAGE ||
	    k->state != RS_KEEP_PLANNED || rs_alloc_is_volatile(a) || a->kind == RS_ALLOC_ARRAY)
		return;
	t = calloc(1, sizeof(*t));
	if (t)
		t->words = words_for_pages(k->len);
	if (!t || !t->words) { /* then all of it stays preserved */
		free(t);
		return;
	}
	t->alloc = a;
	a->refs++;
	t->keep = k;
	k->pins++;
	t->call = writer->call;
	t->q = writer->q;
	t->next = e->thins;
	e->thins = t;
	__atomic_store_n(&e->thins_new, e->thins_new + 1, __ATOMIC_RELAXED);
}

/* The version that the write gave. */
void rs_thin_written(struct rs_engine *e, const struct rs_alloc *a, uint64_t call, uint64_t ver)
{
	struct rs_thin *t;

	for (t = e->thins; t && !t->flying && t->call == call; t = t->next)
		if (t->alloc == a && !t->after_ver)
			t->after_ver = ver;
}

/* The write has been made: plan the comparisons. engine.lock held. */
void rs_thin_compare(struct rs_engine *e, struct rs_oplist *l, uint64_t call, int made)
{
	struct rs_thin **at = &e->thins, *t;

	while ((t = *at)) {
		struct rs_op *op = NULL;

		if (t->flying || t->call != call) {
			at = &t->next;
			continue;
		}
		__atomic_store_n(&e->thins_new, e->thins_new - 1, __ATOMIC_RELAXED);
		if (made && t->keep->state == RS_KEEP_READY)
			op = rs_oplist_add(l, RS_OP_DIFF, t->q);
		if (!op) {
			*at = t->next;
			drop(e, t);
			continue;
		}
		t->flying = 1;
		rs_op_bind(op, t->alloc, t->keep->off, t->keep->len);
		op->keep = t->keep;
		t->keep->pins++;
		op->thin = t;
		at = &t->next;
	}
}

/* The comparison has been enqueued, or err says why not. */
static int answer_comes(struct rs_engine *e, struct rs_op *op, struct rs_queue q, int err)
{
	struct rs_thin *t = op->thin;
	uint64_t event;

	if (!err)
		err = e->ops->event_record(e->ops->opaque, q, &event);
	if (err)
		t->words->failed = 1;
	__atomic_store_n(&t->event, err ? UINT64_MAX : event, __ATOMIC_RELEASE);
	return err;
}

/* Without engine.lock; the entry stays while its operation is in flight, because its event is not set. */
int rs_thin_diff(struct rs_engine *e, struct rs_op *op)
{
	struct rs_thin *t = op->thin;
	struct rs_queue q = rs_queue_of(e, op->to);
	int err = rs_words_fill(e, op->to, t->words);

	if (!err)
		err = rs_order_now(e, rs_block_users(e, t->keep->block), op->to);
	if (!err) {
		rs_block_used(e, t->keep->block, op->to);
		err = e->ops->diff(e->ops->opaque, q, op->addr, t->keep->addr, op->len,
				   t->words->w);
	}
	return answer_comes(e, op, q, err);
}

/* The n comparisons as one operation; 0 or -errno, and then each may be made by itself. */
static int diff_all(struct rs_engine *e, struct rs_op *op, uint32_t n, struct rs_versus *list)
{
	struct rs_queue q = rs_queue_of(e, op->to);
	struct rs_words *words = NULL;
	uint64_t users = 0;
	uint32_t i;
	int err;

	for (i = n; i-- > 0;) {
		op[i].thin->words->next = words;
		words = op[i].thin->words;
		users |= rs_block_users(e, op[i].keep->block);
	}
	err = rs_words_fill_all(e, op->to, words, n);
	if (!err)
		err = rs_order_now(e, users, op->to);
	if (err)
		return err;
	for (i = 0; i < n; i++) {
		list[i] = (struct rs_versus){op[i].addr, op[i].keep->addr, op[i].len,
					     op[i].thin->words->w};
		rs_block_used(e, op[i].keep->block, op->to);
	}
	err = e->ops->diff_many(e->ops->opaque, q, list, n);
	for (i = 0; !err && i < n; i++)
		op[i].failed = answer_comes(e, &op[i], q, 0) != 0;
	return err;
}

/* Comparisons that follow each other: how many of the n have been made together, 0: the first has to go alone. */
uint32_t rs_thin_diffs(struct rs_engine *e, struct rs_op *op, uint32_t n)
{
	struct rs_versus *list;
	uint32_t i;
	int err;

	for (i = 0; i < n && op[i].kind == RS_OP_DIFF && op[i].to == op->to && op[i].addr; i++)
		;
	if (i < 2 || !e->ops->diff_many)
		return 0;
	list = malloc(i * sizeof(*list));
	if (!list)
		return 0;
	err = diff_all(e, op, i, list);
	free(list);
	return err ? 0 : i;
}

/* Has the page the old bytes, and does nobody need it as what it is now? Then it is the old version again. */
static int returns(struct rs_engine *e, const struct rs_thin *t, uint64_t off, uint64_t len)
{
	struct rs_alloc *a = t->alloc;
	uint32_t i;

	for (i = rs_extmap_at(&a->ext, off); i < a->ext.n && a->ext.ext[i].off < off + len; i++)
		if (a->ext.ext[i].ver != t->after_ver)
			return 0;
	return !rs_claimed(e, a, off, len, t->after_ver) &&
	       !rs_extmap_set(&a->ext, off, len, t->keep->ver, 1);
}

/* Bytes [off, off + len) of the keep live on in one of their own. */
static int plan_move(struct rs_oplist *l, const struct rs_thin *t, uint64_t off, uint64_t len)
{
	struct rs_keep *from = t->keep, *k = calloc(1, sizeof(*k));
	struct rs_op *op = k ? rs_oplist_add(l, RS_OP_MOVE, t->q) : NULL;

	if (op) {
		k->off = off;
		k->len = len;
		k->ver = from->ver;
	}
	if (!op || rs_keep_add(t->alloc, k)) {
		l->n -= op != NULL;
		free(k);
		return -1;
	}
	k->killer = from->killer;
	k->pins = 1;
	rs_op_bind(op, t->alloc, off, len);
	op->addr = from->addr + (off - from->off);
	op->keep = k;
	op->guard = from;
	from->pins++;
	return 0;
}

/* The answer is there. engine.lock held; pins: the entry's own. */
static void thin_out(struct rs_engine *e, struct rs_oplist *l, struct rs_thin *t)
{
	struct rs_keep *k = t->keep;
	uint64_t n = rs_page_count(k->len), stay = 0, page, start = 0, run = 0;
	uint8_t *keep_page;

	if (t->words->failed || t->alloc->dead || k->holds || k->pins != 1 || k->other_ver ||
	    !rs_claimed(e, t->alloc, k->off, k->len, k->ver))
		return;
	for (page = 0; page < n; page++)
		stay += t->words->w[page];
	if (stay > n - n / 4)
		return; /* not worth a copy */
	keep_page = calloc(n + 1, 1);
	for (page = 0; keep_page && page < n; page++) {
		uint64_t off = k->off + page * RS_PAGE;
		uint64_t len = k->off + k->len - off < RS_PAGE ? k->off + k->len - off : RS_PAGE;

		keep_page[page] = t->words->w[page] || !returns(e, t, off, len);
	}
	for (page = 0; keep_page && page <= n; page++) {
		uint64_t end;

		if (page < n && keep_page[page]) {
			start = run ? start : page;
			run = 1;
			continue;
		}
		end = page < n ? k->off + page * RS_PAGE : k->off + k->len;
		if (run &&
		    plan_move(l, t, k->off + start * RS_PAGE, end - (k->off + start * RS_PAGE)))
			break; /* the whole keep stays */
		run = 0;
	}
	if (keep_page && page > n) {
		k->replaced = 1;
		e->stats.thinned_bytes += k->len;
	}
	free(keep_page);
}

/* Parts of a keep are copied to blocks of their own. Without engine.lock. */
int rs_thin_move(struct rs_engine *e, struct rs_op *op)
{
	int err;

	err = rs_op_room(e, op);
	if (!err)
		err = rs_order_now(e, rs_block_users(e, op->guard->block), op->to);
	if (!err) {
		rs_block_used(e, op->guard->block, op->to);
		err = rs_op_copy(e, op, op->keep->addr, op->addr);
	}
	return rs_op_kept(e, op, err);
}

/* Answers that have come: thin out what they are about. */
void rs_thin_ready(struct rs_engine *e)
{
	struct rs_thin *t, **at, *ready;
	struct rs_oplist list;
	uint64_t event;
	int done;

	while (__atomic_load_n(&e->thins, __ATOMIC_RELAXED)) {
		ready = NULL;
		event = 0;
		pthread_mutex_lock(&e->lock);
		for (t = e->thins; t && !ready;
		     t = t->next) { /* newest first: the last is the oldest */
			event = __atomic_load_n(&t->event, __ATOMIC_ACQUIRE);
			if (t->flying && event && !t->next)
				ready = t;
		}
		pthread_mutex_unlock(&e->lock);
		done = !ready		     ? 0
		       : event == UINT64_MAX ? -1
					     : e->ops->event_done(e->ops->opaque, event);
		if (!done)
			return;
		rs_oplist_init(&list);
		pthread_mutex_lock(&e->lock);
		for (at = &e->thins; *at && *at != ready; at = &(*at)->next)
			;
		if (!*at || (*at)->event != event) { /* another thread was faster */
			pthread_mutex_unlock(&e->lock);
			continue;
		}
		*at = ready->next;
		if (done < 0)
			ready->words->failed = 1;
		thin_out(e, &list, ready);
		drop(e, ready);
		pthread_mutex_unlock(&e->lock);
		rs_oplist_run(e, &list);
		if (event != UINT64_MAX)
			e->ops->event_free(e->ops->opaque, event);
	}
}

/* No pending segments, no work in flight. engine.lock held. */
void rs_thin_fini(struct rs_engine *e)
{
	struct rs_thin *t;

	while ((t = e->thins)) {
		e->thins = t->next;
		drop(e, t);
	}
}
