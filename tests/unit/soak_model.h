/* SPDX-License-Identifier: MIT */
/*
 * The brute-force model of test_engine_soak.c: plain arrays that say which granule of which address range belongs to
 * which memory, what its contents are (a number that every write changes), and what pending forwards have claimed.
 *
 * Everything is per granule, nothing is merged, split or looked up cleverly. It knows from the documents how a range is
 * classified at its first access (design section 6) and what a replay puts there and back, and nothing of how the
 * engine does it. Each thread has a model of its own; the shared arena's objects are under shared_lock.
 */
#ifndef SOAK_MODEL_H
#define SOAK_MODEL_H

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#define MAX_OBJECT   16u /* granules */
#define MAX_ARENA    256u
#define MAX_TOUCHED  64u
#define MAX_CALLS    12u
#define MAX_RANGES   48u
#define SEGMENTS     4u	 /* pending ones of a thread */
#define DEPTH	     2u	 /* forwards in forwards */
#define VMM_RESERVED 32u /* granules */

/* Memory with one life: an allocation, or a backing with its mappings. */
struct object {
	uint64_t uid;	 /* 0: no object */
	uint64_t serial; /* the engine's, as first seen */
	uint64_t ctx;
	uint64_t handle; /* of a backing that the program holds */
	unsigned n, mappings, is_backing;
	uint64_t content[MAX_OBJECT];
	uint8_t region[MAX_OBJECT]; /* 0, 's', 'o' */
	uint64_t region_id[MAX_OBJECT];
};

struct granule {
	struct object *o; /* NULL: nothing is there */
	unsigned at;	  /* granule of the object */
	unsigned first;	  /* granule of the arena with which its allocation or mapping begins */
	unsigned count;	  /* of that allocation or mapping */
};

struct arena {
	uint64_t base, unit;
	unsigned n, is_vmm, is_shared;
	struct granule g[MAX_ARENA];
	struct object objects[MAX_ARENA];
};

enum class { NONE, STATE, PRODUCT, MAYBE, AMBIGUOUS };

/* What a window knows of an object. */
struct touched {
	struct object *o;
	uint64_t uid;
	uint8_t cls[MAX_OBJECT], claimed[MAX_OBJECT];
	uint64_t claim[MAX_OBJECT];
	uint8_t held[MAX_OBJECT]; /* replay: comes back */
	uint64_t before[MAX_OBJECT];
};

struct range {
	struct object *o;
	uint64_t uid;
	unsigned at, n;
};

enum { READ = 1, WRITE = 2 };

struct access {
	uint64_t addr, bytes;
	unsigned dir, dense, whole;
	struct range range[MAX_RANGES];
	unsigned nranges;
};

struct call {
	uint64_t ident;
	struct access a[2];
	unsigned n;
};

struct window {
	unsigned used, overflow,
		shared; /* overflow: too much for the model; shared: memory of others */
	unsigned is_replay;
	uint64_t birth; /* objects from this uid on are younger */
	struct touched t[MAX_TOUCHED];
	unsigned nt;
	struct call calls[MAX_CALLS];
	unsigned ncalls;
};

static _Atomic uint64_t model_clock; /* uids and contents */

static uint64_t tick(void)
{
	return ++model_clock;
}

static int alive(const struct object *o, uint64_t uid)
{
	return o->uid == uid;
}

static struct touched *touched_of(struct window *w, struct object *o)
{
	for (unsigned i = 0; i < w->nt; i++)
		if (w->t[i].o == o && w->t[i].uid == o->uid)
			return &w->t[i];
	if (w->nt == MAX_TOUCHED)
		return NULL;
	w->t[w->nt] = (struct touched){.o = o, .uid = o->uid};
	return &w->t[w->nt++];
}

static enum class classify(const struct window *w, const struct object *o, unsigned g,
			   const struct access *a, int read) {
	if (o->region[g]) return o->region[g] == 'o' ? PRODUCT : STATE;
	if (o->uid >= w->birth) return PRODUCT;
	if (a->whole) return AMBIGUOUS;
	if (read) return STATE;
	return a->dense ? PRODUCT : MAYBE;
}

/* A replay reads granule g for the first time: it is shown what the forward saw, and what was there comes back. */
static void show(const struct window *forward, struct touched *t, unsigned g)
{
	for (unsigned i = 0; i < forward->nt; i++) {
		const struct touched *f = &forward->t[i];

		if (f->o != t->o || f->uid != t->uid || !f->claimed[g] || f->cls[g] == MAYBE ||
		    f->claim[g] == t->o->content[g])
			continue;
		if (!t->held[g]) {
			t->held[g] = 1;
			t->before[g] = t->o->content[g];
		}
		t->o->content[g] = f->claim[g];
	}
}

/* One granule of a read, or of a write, in one window. forward: of a replay that may change bytes. */
static void visit(struct window *w, const struct window *forward, struct object *o, unsigned g,
		  const struct access *a, int read)
{
	struct touched *t = touched_of(w, o);
	enum class cls;

	if (!t) {
		w->overflow = 1;
		return;
	}
	if (t->cls[g]) {
		if (read && t->cls[g] == MAYBE)
			t->cls[g] = AMBIGUOUS;
		return;
	}
	cls = classify(w, o, g, a, read);
	t->cls[g] = (uint8_t)cls;
	if (cls == PRODUCT || (!read && a->dense))
		return;
	if (!w->is_replay) {
		t->claimed[g] = 1;
		t->claim[g] = o->content[g];
	} else if (cls == STATE && forward) {
		show(forward, t, g);
	}
}

/* Before a replay writes: what is state comes back. */
static void hold(struct window *w, struct object *o, unsigned g)
{
	struct touched *t = touched_of(w, o);

	if (!t || t->cls[g] != STATE || t->held[g])
		return;
	t->held[g] = 1;
	t->before[g] = o->content[g];
}

static void visit_all(struct window *w, const struct window *forward, const struct call *c)
{
	for (unsigned dir = READ; dir <= WRITE; dir++)
		for (unsigned i = 0; i < c->n; i++)
			for (unsigned r = 0; c->a[i].dir & dir && r < c->a[i].nranges; r++)
				for (unsigned k = 0; k < c->a[i].range[r].n; k++) {
					const struct range *x = &c->a[i].range[r];

					visit(w, forward, x->o, x->at + k, &c->a[i], dir == READ);
					if (dir == WRITE && w->is_replay && forward)
						hold(w, x->o, x->at + k);
				}
}

static void write_all(const struct call *c)
{
	for (unsigned i = 0; i < c->n; i++)
		for (unsigned r = 0; c->a[i].dir & WRITE && r < c->a[i].nranges; r++) {
			const struct range *x = &c->a[i].range[r];
			uint64_t now = tick();

			for (unsigned k = 0; k < x->n; k++)
				x->o->content[x->at + k] = now;
		}
}

static void put_back(struct window *w)
{
	for (unsigned i = 0; i < w->nt; i++)
		for (unsigned g = 0; alive(w->t[i].o, w->t[i].uid) && g < w->t[i].o->n; g++)
			if (w->t[i].held[g])
				w->t[i].o->content[g] = w->t[i].before[g];
}

/* A name for [at, at + n); every older name that it meets is gone as a whole. kind 0: no new one. */
static void name_region(struct object *o, unsigned at, unsigned n, uint8_t kind)
{
	uint64_t id = kind ? tick() : 0;

	for (unsigned k = at; k < at + n; k++) {
		uint64_t old = o->region_id[k];

		for (unsigned i = 0; old && i < o->n; i++)
			if (o->region_id[i] == old)
				o->region[i] = 0, o->region_id[i] = 0;
	}
	for (unsigned k = at; k < at + n; k++)
		o->region[k] = kind, o->region_id[k] = id;
}

/* What an access of [addr, addr + bytes) reaches: all of its allocation or, of mappings, its reservation if `whole`. */
static void locate(struct arena *ar, struct access *a, unsigned g, unsigned n)
{
	unsigned from = g, to = g + n, k;

	if (a->whole && ar->is_vmm) {
		from = g / VMM_RESERVED * VMM_RESERVED;
		to = from + VMM_RESERVED;
	} else if (a->whole) {
		from = ar->g[g].first;
		to = from + ar->g[g].count;
	}
	a->nranges = 0;
	for (; from < to && a->nranges < MAX_RANGES; from += k) {
		const struct granule *at = &ar->g[from];

		k = 1;
		if (!at->o)
			continue;
		while (from + k < to && ar->g[from + k].o == at->o &&
		       ar->g[from + k].at == at->at + k)
			k++;
		a->range[a->nranges++] =
			(struct range){.o = at->o, .uid = at->o->uid, .at = at->at, .n = k};
	}
}

#endif
