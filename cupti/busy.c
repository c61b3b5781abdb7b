/* SPDX-License-Identifier: MIT */
/*
 * See busy.h.
 *
 * A window is complete when the thread is out of it, nothing of it has come for SETTLED flushes, every buffer that CUPTI had
 * asked for by then has come back, and each of its calls has a record of work. A call that failed or had nothing to do never
 * gets one, and a buffer may stay out for ever: so after PATIENCE flushes without a change it is taken as complete, too.
 */
#include "cupti/busy.h"
#include "cupti/table.h"

#include <string.h>

#define SETTLED	     2u /* flushes */
#define PATIENCE     4u
#define ABANDONED    256u
#define MOST_WINDOWS 16384u
#define MOST_CALLS   (1u << 18)
#define MOST_PENDING (1u << 17)
#define MOST_SPANS   8192u
#define ANSWERED     (1ull << 63) /* in the value of a call: a record of its work has come */

struct span {
	uint64_t start, end;
};

struct window {
	uint64_t id;
	uint64_t left_seq, changed; /* buffers and flushes at the last change */
	uint32_t inside;	    /* threads */
	uint32_t calls, answered;
	uint8_t used, spoilt;
	uint32_t nspans, capspans;
	struct span *spans;
	uint64_t ns, until; /* of spans that were summed up: all of them end by then */
};

/* Work whose call is not known yet. */
struct pending {
	uint32_t correlation;
	uint8_t untimed;
	uint64_t flush;
	struct span span;
};

struct rs_cupti_busy {
	struct rs_cupti_table calls;   /* correlation + 1 -> window, ANSWERED */
	struct rs_cupti_table windows; /* number -> index */
	struct window *window;
	uint32_t nwindows, capwindows;
	struct pending *pending;
	uint32_t npending, cappending;
	uint64_t flush;
	struct rs_cupti_counts counts;
};

struct rs_cupti_busy *rs_cupti_busy_create(void)
{
	return calloc(1, sizeof(struct rs_cupti_busy));
}

static void drop_window(struct window *w)
{
	free(w->spans);
	w->spans = NULL;
	w->used = 0;
}

static void forget(struct rs_cupti_busy *b)
{
	struct rs_cupti_counts counts = b->counts;
	uint64_t flush = b->flush;

	for (uint32_t i = 0; i < b->nwindows; i++) {
		counts.missing += b->window[i].used;
		drop_window(&b->window[i]);
	}
	free(b->window);
	free(b->pending);
	free(b->calls.slot);
	free(b->windows.slot);
	counts.forgotten++;
	*b = (struct rs_cupti_busy){.flush = flush, .counts = counts};
}

void rs_cupti_busy_destroy(struct rs_cupti_busy *b)
{
	if (b)
		forget(b);
	free(b);
}

/* Room for one more of n elements of `size` bytes; 0 or -ENOMEM. */
static int grow(void **array, uint32_t n, uint32_t *cap, size_t size, uint32_t most)
{
	uint32_t more = *cap ? 2 * *cap : 16;
	void *p;

	if (n < *cap)
		return 0;
	if (n >= most)
		return -ENOSPC;
	p = realloc(*array, more * size);
	if (!p)
		return -ENOMEM;
	*array = p;
	*cap = more;
	return 0;
}

/* --- the union ---------------------------------------------------------------------------------- */

static int by_start(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Sorted, and no two touch. */
static void merge(struct window *w)
{
	uint32_t n = 0;

	if (!w->nspans)
		return;
	qsort(w->spans, w->nspans, sizeof(*w->spans), by_start);
	for (uint32_t i = 0; i < w->nspans; i++) {
		struct span s = w->spans[i];

		if (n && s.start <= w->spans[n - 1].end) {
			if (s.end > w->spans[n - 1].end)
				w->spans[n - 1].end = s.end;
		} else {
			w->spans[n++] = s;
		}
	}
	w->nspans = n;
}

/* Sum up the earlier half. Whatever comes later for that time does not count a second time. */
static void fold(struct window *w, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		w->ns += w->spans[i].end - w->spans[i].start;
		w->until = w->spans[i].end;
	}
	w->nspans -= n;
	if (w->nspans)
		memmove(w->spans, w->spans + n, w->nspans * sizeof(*w->spans));
}

static int add_span(struct window *w, struct span s)
{
	struct span *last = w->nspans ? &w->spans[w->nspans - 1] : NULL;

	if (s.start < w->until)
		s.start = w->until;
	if (s.end <= s.start)
		return 0;
	if (last && s.start >= last->start && s.start <= last->end) {
		if (s.end > last->end)
			last->end = s.end;
		return 0;
	}
	if (w->nspans == MOST_SPANS) {
		merge(w);
		if (w->nspans > MOST_SPANS / 2)
			fold(w, w->nspans / 2);
	}
	if (grow((void **)&w->spans, w->nspans, &w->capspans, sizeof(s), MOST_SPANS))
		return -ENOMEM;
	if (s.start < w->until)
		s.start = w->until < s.end ? w->until : s.end;
	w->spans[w->nspans++] = s;
	return 0;
}

static uint64_t total(struct window *w)
{
	merge(w);
	fold(w, w->nspans);
	return w->ns;
}

/* --- windows and calls -------------------------------------------------------------------------- */

static struct window *find_window(struct rs_cupti_busy *b, uint64_t id)
{
	const struct rs_cupti_slot *s = rs_cupti_table_find(&b->windows, id);

	return s && b->window[s->value].used ? &b->window[s->value] : NULL;
}

static struct window *window_of(struct rs_cupti_busy *b, uint64_t id)
{
	struct window *w = find_window(b, id);

	if (w || !id)
		return w;
	if (grow((void **)&b->window, b->nwindows, &b->capwindows, sizeof(*w), MOST_WINDOWS) ||
	    rs_cupti_table_put(&b->windows, id, b->nwindows, MOST_WINDOWS)) {
		forget(b);
		return NULL;
	}
	w = &b->window[b->nwindows++];
	*w = (struct window){.id = id, .used = 1, .changed = b->flush};
	return w;
}

void rs_cupti_busy_enter(struct rs_cupti_busy *b, uint64_t window)
{
	struct window *w = window_of(b, window);

	if (!w)
		return;
	w->inside++;
	w->changed = b->flush;
}

void rs_cupti_busy_leave(struct rs_cupti_busy *b, uint64_t window, uint64_t seq)
{
	struct window *w = find_window(b, window);

	if (!w)
		return;
	w->inside -= w->inside > 0;
	w->left_seq = seq;
	w->changed = b->flush;
}

/* A call's number is used again after 2^32 of them: by then the old one is forgotten. */
static void add_call(struct rs_cupti_busy *b, const struct rs_cupti_item *item)
{
	struct window *w = find_window(b, item->window);

	if (!w)
		return; /* ours, hidden from the program's times; or told already */
	if (rs_cupti_table_put(&b->calls, item->correlation + 1ull, item->window & ~ANSWERED,
			       MOST_CALLS)) {
		forget(b);
		return;
	}
	w->calls++;
	w->changed = b->flush;
}

/* 0: nobody knows the call (yet). */
static int add_work(struct rs_cupti_busy *b, uint32_t correlation, int untimed, struct span span)
{
	struct rs_cupti_slot *call = rs_cupti_table_find(&b->calls, correlation + 1ull);
	struct window *w = call ? find_window(b, call->value & ~ANSWERED) : NULL;

	if (!w)
		return 0;
	if (!(call->value & ANSWERED))
		w->answered++;
	call->value |= ANSWERED;
	w->changed = b->flush;
	if (untimed || add_span(w, span))
		w->spoilt = 1;
	return 1;
}

void rs_cupti_busy_item(struct rs_cupti_busy *b, const struct rs_cupti_item *item)
{
	struct span span = {item->start, item->end};
	int untimed = item->what == RS_CUPTI_UNTIMED;

	if (item->what == RS_CUPTI_CALL) {
		add_call(b, item);
		return;
	}
	if (add_work(b, item->correlation, untimed, span))
		return;
	if (grow((void **)&b->pending, b->npending, &b->cappending, sizeof(*b->pending),
		 MOST_PENDING)) {
		forget(b);
		return;
	}
	b->pending[b->npending++] = (struct pending){
		.correlation = item->correlation,
		.untimed = (uint8_t)untimed,
		.flush = b->flush,
		.span = span,
	};
}

void rs_cupti_busy_spoil(struct rs_cupti_busy *b)
{
	for (uint32_t i = 0; i < b->nwindows; i++)
		b->window[i].spoilt = 1;
}

/* --- telling ------------------------------------------------------------------------------------ */

static void match_pending(struct rs_cupti_busy *b)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->npending; i++) {
		struct pending p = b->pending[i];

		if (add_work(b, p.correlation, p.untimed, p.span))
			continue;
		if (b->flush - p.flush < PATIENCE)
			b->pending[n++] = p;
		else
			b->counts.unmatched++;
	}
	b->npending = n;
}

static int call_is_wanted(void *arg, const struct rs_cupti_slot *s)
{
	struct rs_cupti_busy *b = arg;

	return find_window(b, s->value & ~ANSWERED) != NULL;
}

/* What was told or dropped leaves the arrays. */
static void sweep(struct rs_cupti_busy *b)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->nwindows; i++)
		if (b->window[i].used)
			b->window[n++] = b->window[i];
	if (n == b->nwindows)
		return;
	b->nwindows = n;
	memset(b->windows.slot, 0, b->windows.cap * sizeof(*b->windows.slot));
	b->windows.n = n;
	for (uint32_t i = 0; i < n; i++)
		rs_cupti_table_store(b->windows.slot, b->windows.cap, b->window[i].id, i);
	rs_cupti_table_sweep(&b->calls, call_is_wanted, b);
}

void rs_cupti_busy_flushed(struct rs_cupti_busy *b)
{
	b->flush++;
	match_pending(b);
	sweep(b);
}

static int complete(const struct rs_cupti_busy *b, const struct window *w, uint64_t oldest)
{
	uint64_t quiet = b->flush - w->changed;

	if (w->inside)
		return quiet >= ABANDONED;
	if (quiet >= PATIENCE)
		return 1;
	return quiet >= SETTLED && oldest > w->left_seq && w->calls && w->answered == w->calls;
}

unsigned rs_cupti_busy_tell(struct rs_cupti_busy *b, uint64_t oldest, struct rs_cupti_told *ret,
			    unsigned n)
{
	unsigned told = 0;

	for (uint32_t i = 0; i < b->nwindows && told < n; i++) {
		struct window *w = &b->window[i];

		if (!w->used || !complete(b, w, oldest))
			continue;
		if (w->spoilt || w->inside)
			b->counts.missing++;
		else if (!w->answered)
			b->counts.empty++;
		else
			ret[told++] = (struct rs_cupti_told){w->id, total(w)};
		drop_window(w);
	}
	b->counts.told += told;
	return told;
}

void rs_cupti_busy_counts(const struct rs_cupti_busy *b, struct rs_cupti_counts *ret)
{
	*ret = b->counts;
}
