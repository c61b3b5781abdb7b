/* SPDX-License-Identifier: MIT */
/*
 * What windows know of allocations (struct rs_touch of model.h, which includes this at its end). engine.lock is held.
 */
#ifndef RS_TRACKER_TOUCH_H
#define RS_TRACKER_TOUCH_H

/* A new one, if there is none; NULL: no memory. */
struct rs_touch *rs_touch_get(struct rs_engine *e, struct rs_touch **table, struct rs_alloc *a);
/* All of a window's. */
void rs_touches_free(struct rs_engine *e, struct rs_touch **table);
void rs_touches_fini(struct rs_engine *e);
/* One more span, behind the others; NULL: no memory. */
struct rs_span *rs_touch_push(struct rs_touch *t);
/* Index of the first claim that ends behind off. */
uint32_t rs_claim_at(const struct rs_touch *t, uint64_t off);
struct rs_touch *rs_touch_find(struct rs_touch *table, uint64_t serial);
/* The same by the allocation, for which the last answer is remembered: one call asks for each of its ranges several times. */
static inline struct rs_touch *rs_touch_of(struct rs_touch *table, const struct rs_alloc *a)
{
	if (!table)
		return NULL;
	if (a->touch && a->touch->hh.tbl == table->hh.tbl)
		return a->touch;
	return rs_touch_find(table, a->serial);
}
/* Index of the first of the touch's spans that ends behind off. */
static inline uint32_t rs_span_at(const struct rs_touch *t, uint64_t off)
{
	uint32_t lo = 0, hi = t->spans.n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (t->spans.v[mid].off + t->spans.v[mid].len <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

#endif
