/* SPDX-License-Identifier: MIT */
/*
 * A window's time where it works on several queues.
 *
 * On each of them it has a mark before its first call and one after its last: an interval. Its time is the length of their
 * union: what runs side by side counts once, and what one queue does long before the others are ready (a prefetch) leaves no
 * gap to be counted. The tool's own operations make the interval of their queue shorter. Queues beyond RS_LANES + 1 of a
 * window are not looked at, nor are those of other contexts, whose times cannot be compared.
 *
 * Callers: timing.c, access.c. Locks: as each function's declaration says.
 */
#include <errno.h>
#include <stdlib.h>

#include "tracker/costing.h"

void rs_lanes_begin(struct rs_engine *e, struct rs_oplist *l, struct rs_window *w, uint32_t q)
{
	struct rs_timing *t = w->timing;
	struct rs_op *op;

	if (!t || t->nlanes == RS_LANES)
		return;
	op = rs_oplist_add(l, RS_OP_MARK, q);
	pthread_mutex_lock(&e->costing->lock);
	if (op) {
		t->lane[t->nlanes].q = q;
		t->lane[t->nlanes++].queue = e->queues.v[q].q;
		t->refs++;
		op->timing = t;
		op->off = t->nlanes;
	} else {
		t->bad = 1;
	}
	pthread_mutex_unlock(&e->costing->lock);
}

void rs_lanes_end(struct rs_engine *e, struct rs_oplist *l, struct rs_timing *t)
{
	struct rs_op *op;

	for (uint32_t i = 0; i < t->nlanes; i++) {
		op = rs_oplist_add(l, RS_OP_MARK, t->lane[i].q);
		pthread_mutex_lock(&e->costing->lock);
		if (op) {
			t->refs++;
			op->timing = t;
			op->back = 1;
			op->off = i + 1;
		} else {
			t->bad = 1;
		}
		pthread_mutex_unlock(&e->costing->lock);
	}
}

uint64_t *rs_lanes_place(struct rs_timing *t, const struct rs_op *op)
{
	if (t->ended)
		return NULL;
	if (!op->off)
		return op->back ? &t->to : &t->from;
	return op->back ? &t->lane[op->off - 1].to : &t->lane[op->off - 1].from;
}

static void take(uint64_t *mark, uint64_t *ret, unsigned *n)
{
	if (*mark)
		ret[(*n)++] = *mark;
	*mark = 0;
}

unsigned rs_lanes_take(struct rs_timing *t, uint64_t ret[2 * RS_LANES + 2])
{
	unsigned n = 0;

	take(&t->from, ret, &n);
	take(&t->to, ret, &n);
	for (uint32_t i = 0; i < t->nlanes; i++) {
		take(&t->lane[i].from, ret, &n);
		take(&t->lane[i].to, ret, &n);
	}
	return n;
}

/* --- the union -------------------------------------------------------------------------------------- */

struct span {
	int64_t from, to;
};

/* When `mark` was, seen from `zero`. */
static int moment(const struct rs_devops *real, uint64_t zero, uint64_t mark, int64_t *ret)
{
	uint64_t ns = 0;
	int r = real->elapsed(real->opaque, zero, mark, &ns);

	if (r != -ERANGE) {
		*ret = (int64_t)ns;
		return r;
	}
	r = real->elapsed(real->opaque, mark, zero, &ns);
	*ret = -(int64_t)ns;
	return r;
}

static int by_start(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

static uint64_t length(struct span *v, unsigned n)
{
	uint64_t sum = 0;
	int64_t until = INT64_MIN, from;

	qsort(v, n, sizeof(*v), by_start);
	for (unsigned i = 0; i < n; i++) {
		from = v[i].from > until ? v[i].from : until;
		if (v[i].to <= from)
			continue;
		sum += (uint64_t)(v[i].to - from);
		until = v[i].to;
	}
	return sum;
}

void rs_lanes_inner(struct rs_timing *t, struct rs_queue queue, uint64_t ns)
{
	for (uint32_t i = 0; i < t->nlanes; i++)
		if (t->lane[i].queue.ctx == queue.ctx && t->lane[i].queue.stream == queue.stream) {
			t->lane[i].inner_ns += ns;
			return;
		}
	t->inner_ns += ns;
}

static void without(struct span *s, uint64_t ns)
{
	s->to -= (int64_t)ns;
	if (s->to < s->from)
		s->to = s->from;
}

int rs_lanes_elapsed(const struct rs_devops *real, const struct rs_timing *t, uint64_t *ret_ns)
{
	struct span v[RS_LANES + 1] = {{0}};
	unsigned n = 1;
	uint64_t ns = 0;
	int r = real->elapsed(real->opaque, t->from, t->to, &ns);

	v[0] = (struct span){0, (int64_t)ns};
	without(&v[0], t->inner_ns);
	for (uint32_t i = 0; !r && !t->bad && i < t->nlanes; i++) {
		r = moment(real, t->from, t->lane[i].from, &v[n].from);
		if (!r)
			r = moment(real, t->from, t->lane[i].to, &v[n].to);
		without(&v[n], t->lane[i].inner_ns);
		n += !r;
		r = r == -EINVAL ? 0 : r;
	}
	if (!r)
		*ret_ns = length(v, n);
	return r;
}
