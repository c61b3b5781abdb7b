/* SPDX-License-Identifier: MIT */
/*
 * Lists of partial plans, none better than another: merge, join, hull. See solve_priv.h.
 *
 * Invariant: p strictly ascending, c strictly descending. Losses are not stored: at one place of the
 * timeline a loss is a function of (p, c), and grows with both, so what a dropped label would have
 * dominated is dropped as well.
 */
#include "planner/solve_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define THIN_LENGTH 1024

static int grow(struct rs_list *list, uint32_t room)
{
	struct rs_label *v = realloc(list->v, (size_t)room * sizeof(*v));

	if (!v)
		return -ENOMEM;
	list->v = v;
	list->room = room;
	return 0;
}

int rs_list_push(struct rs_list *list, int64_t p, int64_t c, uint32_t node)
{
	if (list->n == list->room && grow(list, list->room ? list->room * 2 : 64))
		return -ENOMEM;
	list->v[list->n++] = (struct rs_label){p, c, node};
	return 0;
}

int rs_list_copy(struct rs_list *to, const struct rs_list *from)
{
	if (to->room < from->n && grow(to, from->n))
		return -ENOMEM;
	if (from->n)
		memcpy(to->v, from->v, from->n * sizeof(*to->v));
	to->n = from->n;
	return 0;
}

void rs_list_free(struct rs_list *list)
{
	free(list->v);
	memset(list, 0, sizeof(*list));
}

/* Whether the head has a label, extended into p and c. */
static inline int load(struct rs_head *h, const struct rs_filter *f)
{
	if (h->v == h->end)
		return 0;
	if (!f->back && h->v->p > h->lim)
		return 0;
	h->p = h->v->p + h->m;
	if (f->back && h->p < -h->lim)
		h->p = -h->lim;
	h->c = h->v->c + h->t;
	return h->p <= f->pmax;
}

static inline int before(const struct rs_head *a, const struct rs_head *b)
{
	if (a->p != b->p)
		return a->p < b->p;
	if (a->c != b->c)
		return a->c < b->c;
	return a->code < b->code;
}

static void sift(struct rs_head *h, uint32_t n, uint32_t i)
{
	struct rs_head moving = h[i];

	for (;;) {
		uint32_t k = 2 * i + 1;

		if (k >= n)
			break;
		if (k + 1 < n && before(&h[k + 1], &h[k]))
			k++;
		if (!before(&h[k], &moving))
			break;
		h[i] = h[k];
		i = k;
	}
	h[i] = moving;
}

static inline int passes(const struct rs_filter *f, int64_t p, int64_t c)
{
	int64_t q = p > f->pmin ? p : f->pmin;
	rs_wide loss = (rs_wide)c * f->scale + (rs_wide)f->price * q + f->konst;

	return loss <= (rs_wide)f->g;
}

static uint32_t keep_within(struct rs_list *list, const struct rs_filter *f)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < list->n; i++)
		if (passes(f, list->v[i].p, list->v[i].c))
			list->v[n++] = list->v[i];
	return n;
}

/* The labels of least loss, and if those are too many as well, some of them at even distances. */
static void thin(struct rs_search *s, struct rs_list *list, const struct rs_filter *filter)
{
	struct rs_filter f = *filter;
	uint32_t n, stride;

	s->thinned = 1;
	if (s->list_max > THIN_LENGTH)
		s->list_max = THIN_LENGTH;
	for (int round = 0; round < 6 && list->n > s->list_max; round++) {
		struct rs_label first = list->v[0];

		f.g /= 2;
		n = keep_within(list, &f);
		if (!n)
			list->v[n++] = first;
		list->n = n;
	}
	stride = list->n / s->list_max + 1;
	n = 0;
	for (uint32_t i = 0; i < list->n; i += stride)
		list->v[n++] = list->v[i];
	list->n = n;
}

static int node_room(struct rs_search *s)
{
	uint32_t room = s->node_room ? s->node_room : 4096;
	struct rs_node *v;

	if (s->nnode < s->node_room)
		return 0;
	if (s->nnode >= s->node_max)
		return -E2BIG;
	if (s->node_room)
		room = room > s->node_max / 2 ? s->node_max : room * 2;
	v = realloc(s->node, (size_t)room * sizeof(*v));
	if (!v)
		return -ENOMEM;
	s->node = v;
	s->node_room = room;
	return 0;
}

static int put(struct rs_search *s, struct rs_list *out, const struct rs_head *h)
{
	struct rs_label *last = out->n ? &out->v[out->n - 1] : NULL;
	int r;

	if (last && last->p == h->p) {
		/* Its node was made for it and is the newest. */
		last->c = h->c;
		s->node[last->node] = (struct rs_node){h->v->node, h->code};
		return 0;
	}
	r = node_room(s);
	if (r)
		return r;
	s->node[s->nnode] = (struct rs_node){h->v->node, h->code};
	return rs_list_push(out, h->p, h->c, s->nnode++);
}

int rs_list_expand(struct rs_search *s, struct rs_list *out, struct rs_head *head, uint32_t n,
		   const struct rs_filter *filter)
{
	struct rs_filter copy = *filter;
	const struct rs_filter *f = &copy;
	uint32_t live = 0;
	int64_t best = INT64_MAX;
	int r = 0;

	if (s->thinned && s->room > copy.g)
		copy.g = s->room;
	out->n = 0;
	for (uint32_t i = 0; i < n; i++)
		if (load(&head[i], f))
			head[live++] = head[i];
	for (uint32_t i = live / 2; i-- > 0;)
		sift(head, live, i);
	while (live && !r) {
		struct rs_head *h = head;

		if (h->c < best && passes(f, h->p, h->c)) {
			best = h->c;
			r = put(s, out, h);
		}
		h->v++;
		if (!load(h, f))
			*h = head[--live];
		if (live > 1)
			sift(head, live, 0);
	}
	s->labels += out->n;
	if (!r && s->list_max && out->n > s->list_max)
		thin(s, out, f);
	return r;
}

void rs_list_join(const struct rs_list *a, const struct rs_list *b, int64_t off,
		  struct rs_found *found)
{
	uint32_t j = b->n;

	for (uint32_t i = 0; i < a->n; i++) {
		while (j && a->v[i].p + b->v[j - 1].p + off > 0)
			j--;
		if (!j)
			return;
		if (a->v[i].c + b->v[j - 1].c < found->c) {
			found->c = a->v[i].c + b->v[j - 1].c;
			found->front = a->v[i].node;
			found->back = b->v[j - 1].node;
		}
	}
}

int rs_list_hull(struct rs_list *hull, const struct rs_list *list)
{
	hull->n = 0;
	for (uint32_t i = 0; i < list->n; i++) {
		const struct rs_label *x = &list->v[i];

		while (hull->n >= 2) {
			const struct rs_label *a = &hull->v[hull->n - 2], *b = a + 1;

			/* b lies on or above the line from a to x. */
			if ((rs_wide)(a->c - b->c) * (x->p - a->p) >
			    (rs_wide)(a->c - x->c) * (b->p - a->p))
				break;
			hull->n--;
		}
		if (rs_list_push(hull, x->p, x->c, x->node))
			return -ENOMEM;
	}
	return 0;
}
