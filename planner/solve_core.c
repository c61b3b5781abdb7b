/* SPDX-License-Identifier: MIT */
/*
 * Passes for one mode where no limit before the tail binds: a plan is then a choice from classes in
 * any order. Segments with the same options are one class with a multiplicity, and only what may
 * differ from the cheapest priced plan within the pass's loss is looked at: the core.
 *
 * Limits before the tail are not looked at here; the caller checks the plan that comes out. What is
 * listed contains every plan of the pass's loss, so the least time found is a bound even then.
 * See solve_priv.h.
 */
#include "planner/solve_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GROUP_DEEP 16	  /* most options of a class that is taken as a whole */
#define GROUP_MOST 200000 /* most ways to choose from one */
#define COMPOSITE  UINT32_C(0x80000000)

/* An option against the cheapest priced one of its class. */
struct choice {
	int64_t m, t;
	uint64_t loss;
	uint32_t rank; /* place among the options of its segment that no other betters in m and t */
};

struct class
{
	uint32_t begin, end; /* of choice */
	uint32_t member;     /* first of its segments; the others follow by `sibling` */
	uint32_t copies;
	uint32_t base;	  /* rank of the cheapest */
	uint64_t nearest; /* least loss of a choice */
};

/*
 * What a part can add. `counts` is the number of a choice where one copy chooses, else the place in
 * `count` where it says how many take which choice, in the part's order.
 */
struct composite {
	int64_t m, t;
	uint32_t part, counts;
};

/* A class, or some copies of one, in a pass. */
struct part {
	uint32_t class, copies, skip; /* skip: copies that other parts took before */
	uint32_t begin, end;	      /* of core, its choices by falling loss */
	int64_t low, high;	      /* bytes by which it can differ */
};

struct rs_core {
	const struct rs_prep *prep;
	const struct rs_dual *dual;
	const struct rs_tail *tail;
	struct choice *choice;
	struct class *class;
	uint32_t nclass, nchoice;
	uint32_t *sibling;
	struct rs_histogram losses;
	int64_t base_m, base_t;
	/* of the pass */
	struct part *part;
	uint32_t npart, part_room;
	uint32_t *core; /* numbers of choices */
	uint32_t ncore, core_room;
	struct composite *composite;
	uint32_t ncomposite, composite_room;
	uint32_t *count;
	uint32_t ncount, count_room;
	struct rs_head *head;
	uint32_t head_room;
	struct rs_list front, back, next;
};

static int reserve(void *array, uint32_t *room, uint32_t need, size_t size)
{
	uint32_t n = *room ? *room : 64;
	void *v;

	if (need <= *room)
		return 0;
	while (n < need)
		n *= 2;
	v = realloc(*(void **)array, n * size);
	if (!v)
		return -ENOMEM;
	*(void **)array = v;
	*room = n;
	return 0;
}

void rs_core_free(struct rs_core *core)
{
	if (!core)
		return;
	free(core->choice);
	free(core->class);
	free(core->sibling);
	free(core->part);
	free(core->core);
	free(core->composite);
	free(core->count);
	free(core->head);
	rs_list_free(&core->front);
	rs_list_free(&core->back);
	rs_list_free(&core->next);
	free(core);
}

/* The steps of a segment that no other betters in m and t, in ascending m: `rank` of each. */
static uint32_t front_of(const struct rs_prep *prep, uint32_t segment, uint32_t *ret)
{
	uint32_t n = 0;
	int64_t t = INT64_MAX;

	for (uint32_t k = prep->first[segment]; k < prep->first[segment + 1]; k++)
		if (prep->step[k].t < t) {
			t = prep->step[k].t;
			ret[n++] = k;
		}
	return n;
}

static void make_class(struct rs_core *core, uint32_t segment, const uint32_t *rank, uint32_t n)
{
	const struct rs_step *step = core->prep->step, *base;
	struct class *c = &core->class[core->nclass++];
	uint64_t least = RS_LOSS;

	*c = (struct class){
		.begin = core->nchoice, .member = segment, .copies = 1, .nearest = RS_LOSS};
	for (uint32_t k = 0; k < n; k++) {
		uint64_t loss = rs_dual_loss(core->dual, core->prep, &step[rank[k]]);

		if (loss < least) {
			least = loss;
			c->base = k;
		}
		core->choice[c->begin + k].loss = loss;
	}
	base = &step[rank[c->base]];
	for (uint32_t k = 0; k < n; k++) {
		struct choice *x = &core->choice[c->begin + k];

		x->m = step[rank[k]].m - base->m;
		x->t = step[rank[k]].t - base->t;
		x->rank = k;
		if (k != c->base && x->loss < c->nearest)
			c->nearest = x->loss;
	}
	core->nchoice += n;
	c->end = core->nchoice;
	core->base_m += base->m;
	core->base_t += base->t;
}

static uint64_t hash_of(const struct rs_step *step, const uint32_t *rank, uint32_t n)
{
	uint64_t h = n;

	for (uint32_t k = 0; k < n; k++) {
		h = (h ^ (uint64_t)step[rank[k]].m) * UINT64_C(0x9e3779b97f4a7c15);
		h = (h ^ (h >> 29) ^ (uint64_t)step[rank[k]].t) * UINT64_C(0xbf58476d1ce4e5b9);
	}
	return h ^ (h >> 32);
}

static int same(const struct rs_core *core, const struct class *c, const uint32_t *rank, uint32_t n)
{
	const struct rs_step *step = core->prep->step, *base;
	uint32_t other[RS_PROBLEM_ARCS];

	if (c->end - c->begin != n)
		return 0;
	base = step + rank[c->base];
	front_of(core->prep, c->member, other);
	if (base->m != step[other[c->base]].m || base->t != step[other[c->base]].t)
		return 0;
	for (uint32_t k = 0; k < n; k++) {
		const struct choice *x = &core->choice[c->begin + k];

		if (step[rank[k]].m - base->m != x->m || step[rank[k]].t - base->t != x->t)
			return 0;
	}
	return 1;
}

/* Segments to classes, by a table of hashes. */
static int make_classes(struct rs_core *core, int unmerged)
{
	uint32_t segments = core->tail->at, size = 64, rank[RS_PROBLEM_ARCS];
	uint32_t *table, *last = malloc(((size_t)segments + 1) * sizeof(*last));

	while (size < 2 * segments)
		size *= 2;
	table = malloc(size * sizeof(*table));
	if (!table || !last) {
		free(table);
		free(last);
		return -ENOMEM;
	}
	memset(table, 0xff, size * sizeof(*table));
	for (uint32_t i = 0; i < segments; i++) {
		uint32_t n = front_of(core->prep, i, rank);
		uint32_t at = hash_of(core->prep->step, rank, n) & (size - 1);
		struct class *c = NULL;

		core->sibling[i] = RS_NONE;
		for (; !unmerged && table[at] != RS_NONE; at = (at + 1) & (size - 1)) {
			c = &core->class[table[at]];
			if (same(core, c, rank, n))
				break;
			c = NULL;
		}
		if (c) {
			const struct rs_step *base = &core->prep->step[rank[c->base]];

			core->sibling[last[table[at]]] = i;
			c->copies++;
			core->base_m += base->m;
			core->base_t += base->t;
		} else {
			table[at] = core->nclass;
			make_class(core, i, rank, n);
		}
		last[table[at]] = i;
	}
	free(table);
	free(last);
	return 0;
}

int rs_core_create(struct rs_core **ret, const struct rs_prep *prep, const struct rs_dual *d,
		   const struct rs_tail *tail, int unmerged)
{
	struct rs_core *core = calloc(1, sizeof(*core));

	if (!core)
		return -ENOMEM;
	core->prep = prep;
	core->dual = d;
	core->tail = tail;
	core->choice = malloc((prep->first[tail->at] + 1) * sizeof(*core->choice));
	core->class = malloc(((size_t)tail->at + 1) * sizeof(*core->class));
	core->sibling = malloc(((size_t)tail->at + 1) * sizeof(*core->sibling));
	if (!core->choice || !core->class || !core->sibling || make_classes(core, unmerged)) {
		rs_core_free(core);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < core->nclass; i++)
		for (uint32_t k = core->class[i].begin; k < core->class[i].end; k++)
			rs_histogram_add(&core->losses, core->choice[k].loss,
					 core->class[i].copies);
	*ret = core;
	return 0;
}

uint64_t rs_core_kth(const struct rs_core *core, uint32_t k)
{
	return rs_histogram_kth(&core->losses, k);
}

/* ---- parts of a pass ---- */

/* Bytes that `copies` choices can add up to at a loss of g, on the side of `sign`; never too few. */
static int64_t reach(const struct rs_core *core, const struct part *p, uint64_t g, int sign)
{
	rs_wide sum = 0, largest = 0;

	for (uint32_t k = p->begin; k < p->end; k++) {
		const struct choice *x = &core->choice[core->core[k]];
		rs_wide m = (rs_wide)x->m * sign, all = m * p->copies;

		if (m <= 0)
			continue;
		largest = m > largest ? m : largest;
		if (x->loss && g / x->loss < p->copies)
			all = m * (rs_wide)(g / x->loss);
		sum += all;
	}
	largest *= p->copies;
	return (int64_t)(sum < largest ? sum : largest) * sign;
}

static int add_part(struct rs_core *core, uint32_t class, uint32_t copies, uint32_t skip,
		    uint64_t g)
{
	const struct class *c = &core->class[class];
	struct part *p;

	if (reserve(&core->part, &core->part_room, core->npart + 1, sizeof(*core->part)) ||
	    reserve(&core->core, &core->core_room, core->ncore + (c->end - c->begin),
		    sizeof(*core->core)))
		return -ENOMEM;
	p = &core->part[core->npart++];
	*p = (struct part){.class = class, .copies = copies, .skip = skip, .begin = core->ncore};
	for (uint32_t k = c->begin; k < c->end; k++) {
		uint32_t at = core->ncore;

		if (k - c->begin == c->base || core->choice[k].loss > g)
			continue;
		for (;
		     at > p->begin && core->choice[core->core[at - 1]].loss < core->choice[k].loss;
		     at--)
			core->core[at] = core->core[at - 1];
		core->core[at] = k;
		core->ncore++;
	}
	p->end = core->ncore;
	p->low = reach(core, p, g, -1);
	p->high = reach(core, p, g, 1);
	return 0;
}

static int wider(const void *x, const void *y)
{
	const struct part *a = x, *b = y;
	int64_t wa = a->high - a->low, wb = b->high - b->low;

	if (wa != wb)
		return wa > wb ? -1 : 1;
	if (a->class != b->class)
		return a->class < b->class ? -1 : 1;
	return a->skip < b->skip ? -1 : a->skip > b->skip;
}

/* ---- ways to choose from one part ---- */

struct ways {
	struct rs_core *core;
	uint32_t part, begin; /* begin: the first of this part's composites */
	uint32_t depth, *choice;
	uint32_t count[GROUP_DEEP];
	int64_t low, high; /* window of bytes */
	uint64_t g;
};

static int add_way(struct ways *w, int64_t m, int64_t t)
{
	struct rs_core *core = w->core;

	if (core->ncomposite - w->begin >= GROUP_MOST)
		return -E2BIG;
	if (reserve(&core->composite, &core->composite_room, core->ncomposite + 1,
		    sizeof(*core->composite)) ||
	    reserve(&core->count, &core->count_room, core->ncount + w->depth, sizeof(*core->count)))
		return -ENOMEM;
	core->composite[core->ncomposite++] = (struct composite){m, t, w->part, core->ncount};
	memcpy(&core->count[core->ncount], w->count, w->depth * sizeof(*w->count));
	core->ncount += w->depth;
	return 0;
}

/* The last option, that of least loss: only the counts that can end in the window. */
static int last_option(struct ways *w, uint32_t left, int64_t m, int64_t t, uint64_t loss)
{
	const struct choice *x = &w->core->choice[w->choice[w->depth - 1]];
	int64_t low = 0, high = left;
	int r = 0;

	if (x->loss && (w->g - loss) / x->loss < (uint64_t)high)
		high = (int64_t)((w->g - loss) / x->loss);
	if (x->m) {
		/* One more on both sides is harmless: the list is filtered again. */
		int64_t a = (w->low - m) / x->m, b = (w->high - m) / x->m;

		low = (a < b ? a : b) - 1;
		high = (a > b ? a : b) + 1 < high ? (a > b ? a : b) + 1 : high;
		low = low < 0 ? 0 : low;
	}
	for (int64_t k = low; !r && k <= high; k++) {
		w->count[w->depth - 1] = (uint32_t)k;
		r = add_way(w, m + k * x->m, t + k * x->t);
	}
	return r;
}

static int all_options(struct ways *w, uint32_t level, uint32_t left, int64_t m, int64_t t,
		       uint64_t loss)
{
	const struct choice *x = &w->core->choice[w->choice[level]];
	int r = 0;

	if (level + 1 == w->depth)
		return last_option(w, left, m, t, loss);
	for (uint32_t k = 0; !r && k <= left && loss <= w->g; k++) {
		w->count[level] = k;
		r = all_options(w, level + 1, left - k, m, t, loss);
		m += x->m;
		t += x->t;
		loss += x->loss;
	}
	return r;
}

static int by_bytes(const void *x, const void *y)
{
	const struct composite *a = x, *b = y;

	if (a->m != b->m)
		return a->m < b->m ? -1 : 1;
	if (a->t != b->t)
		return a->t < b->t ? -1 : 1;
	return a->counts < b->counts ? -1 : a->counts > b->counts;
}

/* 0, -ENOMEM, or -E2BIG: too many, the part must be split. */
static int list_ways(struct rs_core *core, uint32_t part, uint64_t g, int64_t low, int64_t high)
{
	const struct part *p = &core->part[part];
	uint32_t begin = core->ncomposite, out = begin;
	struct ways w = {.core = core,
			 .part = part,
			 .begin = begin,
			 .depth = p->end - p->begin,
			 .choice = &core->core[p->begin],
			 .low = low,
			 .high = high,
			 .g = g};
	int64_t t = INT64_MAX;
	int r;

	if (w.depth > GROUP_DEEP)
		return -E2BIG;
	r = all_options(&w, 0, p->copies, 0, 0, 0);
	if (r || core->ncomposite == begin)
		return r;
	qsort(core->composite + begin, core->ncomposite - begin, sizeof(*core->composite),
	      by_bytes);
	for (uint32_t k = begin; k < core->ncomposite; k++)
		if (core->composite[k].t < t) {
			t = core->composite[k].t;
			core->composite[out++] = core->composite[k];
		}
	core->ncomposite = out;
	return 0;
}

/* ---- the pass ---- */

struct window {
	int64_t low, high; /* what parts not yet taken can add */
};

static struct rs_filter filter_for(const struct rs_core *core, const struct window *rest,
				   const struct rs_list *other, uint64_t g, int back)
{
	int64_t base = core->base_m, price = core->dual->price[0];
	struct rs_filter f = {.g = g, .price = price, .scale = core->prep->scale};

	f.konst = back ? -core->dual->value[core->tail->at] : 0;
	/* With everything still to come on this side of it, the sum must reach 0 but not pass it. */
	f.pmax = -(base + rest->low + other->v[0].p);
	f.pmin = -(base + rest->high + other->v[other->n - 1].p);
	return f;
}

static int add_single(struct rs_core *core, uint32_t part, uint32_t choice)
{
	if (reserve(&core->composite, &core->composite_room, core->ncomposite + 1,
		    sizeof(*core->composite)))
		return -ENOMEM;
	core->composite[core->ncomposite++] =
		(struct composite){core->choice[choice].m, core->choice[choice].t, part, choice};
	return 0;
}

/* The options of a single segment. */
static int list_single(struct rs_core *core, uint32_t part)
{
	const struct part *p = &core->part[part];
	int r = add_single(core, part, core->class[p->class].begin + core->class[p->class].base);

	for (uint32_t k = p->begin; !r && k < p->end; k++)
		r = add_single(core, part, core->core[k]);
	return r;
}

/* `list` with each of the composites from `begin` on. */
static int extend(struct rs_core *core, struct rs_search *s, uint32_t begin,
		  const struct rs_list *list, const struct rs_filter *f)
{
	uint32_t n = 0;

	if (reserve(&core->head, &core->head_room, core->ncomposite - begin + 1,
		    sizeof(*core->head)))
		return -ENOMEM;
	for (uint32_t k = begin; k < core->ncomposite; k++)
		core->head[n++] = (struct rs_head){.v = list->v,
						   .end = rs_list_end(list),
						   .m = core->composite[k].m,
						   .t = core->composite[k].t,
						   .lim = RS_LOTS,
						   .code = k | COMPOSITE};
	return rs_list_expand(s, &core->next, core->head, n, f);
}

/* Too many ways to choose: the two halves of its copies are parts of their own. */
static int split(struct rs_core *core, uint32_t part, uint64_t g)
{
	struct part p = core->part[part];
	uint32_t half = p.copies / 2;
	int r = add_part(core, p.class, half, p.skip, g);

	return r ? r : add_part(core, p.class, p.copies - half, p.skip + half, g);
}

/* Take one part onto the shorter list. */
static int take_part(struct rs_core *core, struct rs_search *s, uint32_t part, uint64_t g,
		     const struct window *rest)
{
	int back = core->back.n < core->front.n, r;
	struct rs_list *list = back ? &core->back : &core->front, swap;
	const struct rs_list *other = back ? &core->front : &core->back;
	struct rs_filter f = filter_for(core, rest, other, g, back);
	const struct part *p = &core->part[part];

	uint32_t begin = core->ncomposite;

	if (p->copies == 1) {
		r = list_single(core, part);
	} else {
		rs_wide unused = f.price ? (rs_wide)g / f.price : RS_LOTS;

		if (unused > RS_LOTS / 2)
			unused = RS_LOTS / 2;
		r = list_ways(core, part, g, f.pmin - (int64_t)unused - list->v[list->n - 1].p,
			      f.pmax - list->v[0].p);
		if (r == -E2BIG) {
			core->ncomposite = begin;
			return split(core, part, g);
		}
	}
	if (!r)
		r = extend(core, s, begin, list, &f);
	if (r)
		return r;
	swap = *list;
	*list = core->next;
	core->next = swap;
	return 0;
}

/* The parts that can differ from the cheapest plan, and the lists at their ends. */
static int begin_pass(struct rs_core *core, uint64_t g)
{
	core->npart = core->ncore = core->ncomposite = core->ncount = 0;
	core->front.n = core->back.n = 0;
	for (uint32_t i = 0; i < core->nclass; i++)
		if (core->class[i].nearest <= g && add_part(core, i, core->class[i].copies, 0, g))
			return -ENOMEM;
	if (core->npart)
		qsort(core->part, core->npart, sizeof(*core->part), wider);
	if (rs_list_push(&core->front, 0, 0, RS_NONE))
		return -ENOMEM;
	for (uint32_t k = 0; k < core->tail->list[0].n; k++) {
		const struct rs_label *v = &core->tail->list[0].v[k];
		rs_wide loss = (rs_wide)v->c * core->prep->scale +
			       (rs_wide)v->p * core->dual->price[0] -
			       core->dual->value[core->tail->at];

		if (loss <= (rs_wide)g && rs_list_push(&core->back, v->p, v->c, v->node))
			return -ENOMEM;
	}
	return 0;
}

int rs_core_pass(struct rs_core *core, struct rs_search *s, uint64_t g, struct rs_found *found)
{
	struct window rest = {0, 0};
	int r = begin_pass(core, g);

	*found = (struct rs_found){.c = INT64_MAX};
	for (uint32_t i = 0; i < core->npart; i++) {
		rest.low += core->part[i].low;
		rest.high += core->part[i].high;
	}
	for (uint32_t i = 0; !r && i < core->npart && core->front.n && core->back.n; i++) {
		uint32_t before = core->npart;

		if (rs_search_over(s)) {
			found->cut = 1;
			return 0;
		}
		rest.low -= core->part[i].low;
		rest.high -= core->part[i].high;
		r = take_part(core, s, i, g, &rest);
		for (; !r && before < core->npart; before++) {
			rest.low += core->part[before].low;
			rest.high += core->part[before].high;
		}
	}
	if (r == -E2BIG)
		found->cut = 1;
	else if (!r)
		rs_list_join(&core->front, &core->back, core->base_m, found);
	if (found->c != INT64_MAX)
		found->c += core->base_t;
	return r == -E2BIG ? 0 : r;
}

/* ---- the plan that was found ---- */

/* Which of its options each segment takes; fewer bytes first, so that prefixes are least. */
static void set_copies(const struct rs_core *core, const struct composite *x, uint32_t *step)
{
	const struct part *p = &core->part[x->part];
	const struct class *c = &core->class[p->class];
	uint32_t segment = c->member, left = p->copies, rank[RS_PROBLEM_ARCS];

	for (uint32_t i = 0; i < p->skip; i++)
		segment = core->sibling[segment];
	for (uint32_t k = p->begin; k < p->end; k++)
		left -= core->count[x->counts + k - p->begin];
	for (uint32_t r = 0; r < c->end - c->begin; r++) {
		uint32_t n = r == c->base ? left : 0;

		for (uint32_t k = p->begin; k < p->end; k++)
			if (core->core[k] - c->begin == r)
				n = core->count[x->counts + k - p->begin];
		for (; n; n--) {
			front_of(core->prep, segment, rank);
			step[segment] = rank[r];
			segment = core->sibling[segment];
		}
	}
}

static void set_base(const struct rs_core *core, uint32_t *step)
{
	uint32_t rank[RS_PROBLEM_ARCS];

	for (uint32_t i = 0; i < core->nclass; i++)
		for (uint32_t k = core->class[i].member; k != RS_NONE; k = core->sibling[k]) {
			front_of(core->prep, k, rank);
			step[k] = rank[core->class[i].base];
		}
}

static void set_single(const struct rs_core *core, const struct composite *x, uint32_t *step)
{
	const struct part *p = &core->part[x->part];
	uint32_t rank[RS_PROBLEM_ARCS], segment = core->class[p->class].member;

	for (uint32_t i = 0; i < p->skip; i++)
		segment = core->sibling[segment];
	front_of(core->prep, segment, rank);
	step[segment] = rank[core->choice[x->counts].rank];
}

void rs_core_plan(const struct rs_core *core, const struct rs_search *s,
		  const struct rs_found *found, uint32_t *step)
{
	set_base(core, step);
	for (int side = 0; side < 2; side++)
		for (uint32_t k = side ? found->back : found->front; k != RS_NONE;
		     k = s->node[k].up) {
			uint32_t code = s->node[k].code;
			const struct composite *x;

			if (!(code & COMPOSITE)) {
				step[core->prep->step[code].segment] = code;
				continue;
			}
			x = &core->composite[code & ~COMPOSITE];
			if (core->part[x->part].copies == 1)
				set_single(core, x, step);
			else
				set_copies(core, x, step);
		}
}
