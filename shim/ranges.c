/* SPDX-License-Identifier: MIT */
/* See ranges.h. */
#include "shim/ranges.h"

#include <stdlib.h>
#include <string.h>

#define FIRST 32u
#define MOST  65536u

int rs_ranges_room(struct rs_tls *t)
{
	struct rs_ranges *r = t->ranges;
	unsigned cap = r ? 2 * r->cap : FIRST;

	if (r && (r->lost || r->n < r->cap)) {
		r->lost += r->lost != 0;
		return !r->lost;
	}
	r = cap > MOST ? NULL : realloc(r, sizeof(*r) + cap * sizeof(r->v[0]));
	if (!r) {
		if (t->ranges)
			t->ranges->lost++;
		return 0;
	}
	if (!t->ranges)
		memset(r, 0, sizeof(*r));
	r->cap = cap;
	t->ranges = r;
	return 1;
}

uint32_t rs_ranges_contexts(const struct rs_ranges *r)
{
	uint32_t contexts = 0;

	for (unsigned i = 0; r && r->tagged && i < r->n; i++)
		contexts |= r->v[i].contexts;
	return contexts;
}

int rs_ranges_innermost(const struct rs_ranges *r, const struct rs_domain *d)
{
	int i = (int)r->n - 1;

	while (i >= 0 && r->v[i].domain != d)
		i--;
	return i;
}

unsigned rs_ranges_above(const struct rs_ranges *r, unsigned i)
{
	unsigned n = 0;

	while (++i < r->n)
		n += r->v[i].window;
	return n;
}

void rs_ranges_shut(struct rs_ranges *r, unsigned i)
{
	struct rs_range *x = &r->v[i];

	r->untils -= x->window && x->until >= 0;
	r->builtins -= x->window && x->builtin;
	x->window = 0;
}

void rs_ranges_remove(struct rs_ranges *r, unsigned i)
{
	rs_ranges_shut(r, i);
	rs_pattern_closed(r->v[i].contexts);
	r->tagged -= r->v[i].contexts != 0;
	r->n--;
	memmove(&r->v[i], &r->v[i + 1], (r->n - i) * sizeof(r->v[0]));
}

void rs_ranges_drop(struct rs_tls *t)
{
	while (t->ranges && t->ranges->n)
		rs_ranges_remove(t->ranges, t->ranges->n - 1);
	free(t->ranges);
	t->ranges = NULL;
}
