/* SPDX-License-Identifier: MIT */
/*
 * A soak of the engine alone: four threads make mixed calls (allocations, mappings, regions, reads, writes, writes of
 * unknown extent, forwards in forwards, replays, queues, frees that the driver refuses), each on address arenas of its
 * own and on a shared one, next to a brute-force model (soak_model.h). In the end, and at intervals, the engine must
 * equal the model: what every address belongs to, how much is live, and of every claim of a pending forward whether its
 * version is still there, which is the case exactly if nobody has written since.
 *
 * RS_SOAK=N makes N engine calls in all (make soak: ten million); half of them in audit, half preserving. The device
 * operations do nothing: all addresses are made up.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/tap.h"
#include "tests/unit/calm.h"
#include "tests/unit/soak_dev.h"
#include "tests/unit/soak_model.h"
#include "tracker/model.h"

#define THREADS	 4u
#define ARENAS	 4u /* the last one is shared */
#define ROUNDS	 10u
#define QUEUES	 6u
#define PER_TEST 600000u

/* --- threads ------------------------------------------------------------------------------------ */

static struct rs_engine *eng;
static int preserving;
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static struct arena shared;
static pthread_barrier_t barrier;

struct worker {
	unsigned id;
	uint64_t rng, calls, goal, last_serial;
	struct rs_thread *t;
	struct arena arena[ARENAS - 1];
	struct window pending[SEGMENTS]; /* closed forwards, by invocation */
	struct window open[DEPTH];
	unsigned key[DEPTH], depth;
	struct window replay;
	uint64_t stream[QUEUES], next_stream;
	uint64_t wrong[5];
	struct calm calm;
	char first[160]; /* what was wrong first */
};

enum { LOOKUP, SERIAL, CLAIM, STRAY, LIVE };
static struct worker workers[THREADS];

static unsigned pick(struct worker *w, unsigned n)
{
	w->rng ^= w->rng << 13;
	w->rng ^= w->rng >> 7;
	w->rng ^= w->rng << 17;
	return (unsigned)((w->rng >> 11) % n);
}

__attribute__((format(printf, 3, 4))) static void wrong(struct worker *w, int what, const char *fmt,
							...)
{
	va_list ap;

	if (!w->wrong[what]++ && !w->first[0]) {
		va_start(ap, fmt);
		vsnprintf(w->first, sizeof(w->first), fmt, ap);
		va_end(ap);
	}
}

static struct rs_queue queue(struct worker *w)
{
	return (struct rs_queue){.ctx = w->id + 1, .stream = w->stream[pick(w, QUEUES)]};
}

static uint64_t address(const struct arena *ar, unsigned g)
{
	return ar->base + g * ar->unit;
}

/* The shared arena's objects belong to whoever has the lock. */
static struct arena *enter(struct worker *w)
{
	unsigned i = pick(w, ARENAS * 2);

	if (i >= ARENAS)
		i %= ARENAS - 1; /* mostly its own */
	if (i < ARENAS - 1)
		return &w->arena[i];
	pthread_mutex_lock(&shared_lock);
	return &shared;
}

static void leave(const struct arena *ar)
{
	if (ar == &shared)
		pthread_mutex_unlock(&shared_lock);
}

/* --- the engine against the model --------------------------------------------------------------- */

static struct rs_alloc *engine_alloc(uint64_t addr)
{
	uint64_t base, bytes;
	void *v = rs_addrmap_find(eng->map, addr, &base, &bytes);
	struct rs_mapping *m = rs_mapping_of(v);

	return m ? m->alloc : v;
}

static void check_address(struct worker *w, const struct arena *ar, unsigned g)
{
	uint64_t base = 0, bytes = 0, want_base, want_bytes;
	const struct granule *at = &ar->g[g];
	int known = rs_engine_lookup(eng, address(ar, g) + pick(w, (unsigned)ar->unit), &base,
				     &bytes) != NULL;

	if (known != (at->o != NULL)) {
		wrong(w, LOOKUP, "address %#llx: known %d", (unsigned long long)address(ar, g),
		      known);
		return;
	}
	if (!known)
		return;
	want_base = address(ar, ar->is_vmm ? g / VMM_RESERVED * VMM_RESERVED : at->first);
	want_bytes = (ar->is_vmm ? VMM_RESERVED : at->count) * ar->unit;
	if (base != want_base || bytes != want_bytes)
		wrong(w, LOOKUP, "address %#llx: [%#llx, %#llx)",
		      (unsigned long long)address(ar, g), (unsigned long long)base,
		      (unsigned long long)bytes);
	if (engine_alloc(address(ar, g))->serial != at->o->serial)
		wrong(w, SERIAL, "address %#llx: another serial",
		      (unsigned long long)address(ar, g));
}

static void check_arena(struct worker *w, const struct arena *ar, uint64_t live[2])
{
	for (unsigned g = 0; g < ar->n; g++)
		check_address(w, ar, g);
	for (unsigned i = 0; i < MAX_ARENA; i++)
		if (ar->objects[i].uid) {
			live[0]++;
			live[1] += ar->objects[i].n * ar->unit;
		}
}

static const struct arena *arena_of(const struct worker *w, const struct object *o)
{
	for (unsigned i = 0; i < ARENAS - 1; i++)
		if (o >= w->arena[i].objects && o < w->arena[i].objects + MAX_ARENA)
			return &w->arena[i];
	return &shared;
}

static const struct rs_claim *claim_at(const struct rs_touch *t, uint64_t off)
{
	for (uint32_t i = 0; t && i < t->claims.n; i++)
		if (off >= t->claims.v[i].off && off < t->claims.v[i].off + t->claims.v[i].len)
			return &t->claims.v[i];
	return NULL;
}

/* One granule of one object of a pending forward. */
static void check_claim(struct worker *w, const struct touched *t, struct rs_touch *et, unsigned g)
{
	uint64_t off = g * arena_of(w, t->o)->unit;
	const struct rs_claim *c = claim_at(et, off);
	int now, want = t->claim[g] == t->o->content[g];

	if (!c != !t->claimed[g]) {
		wrong(w, STRAY, "granule %u: claimed %d in the engine, %d in the model", g,
		      c != NULL, t->claimed[g]);
		return;
	}
	if (!c)
		return;
	now = et->alloc->ext.ext[rs_extmap_at(&et->alloc->ext, off)].ver == c->ver;
	if (now != want)
		wrong(w, CLAIM, "granule %u of %#llx: version live %d, contents unchanged %d", g,
		      (unsigned long long)et->alloc->base, now, want);
	/* a range that was written together is ambiguous together */
	if (c->cls != t->cls[g] && !(c->cls == RS_CLASS_AMBIGUOUS && t->cls[g] == MAYBE))
		wrong(w, CLAIM, "granule %u: class %u, not %u", g, c->cls, t->cls[g]);
}

static void check_segment(struct worker *w, unsigned key)
{
	const struct window *p = &w->pending[key];
	struct rs_segment *s;
	char label[32];

	snprintf(label, sizeof(label), "forward:t%u#%u", w->id, key);
	for (s = eng->pending; s && strcmp(s->label, label); s = s->next)
		;
	if (!s != !p->used)
		wrong(w, STRAY, "%s is pending: %d in the engine", label, s != NULL);
	if (!s || !p->used || p->overflow)
		return;
	for (unsigned i = 0; i < p->nt; i++) {
		const struct touched *t = &p->t[i];
		struct rs_touch *et =
			alive(t->o, t->uid) ? rs_touch_find(s->touches, t->o->serial) : NULL;

		for (unsigned g = 0; alive(t->o, t->uid) && g < t->o->n; g++)
			check_claim(w, t, et, g);
	}
}

/* Every thread waits; one compares everything. Nothing is open. */
static void check_all(void)
{
	uint64_t live[2] = {0, 0};
	struct rs_engine_stats st;

	for (unsigned i = 0; i < THREADS; i++) {
		for (unsigned k = 0; k < ARENAS - 1; k++)
			check_arena(&workers[i], &workers[i].arena[k], live);
		for (unsigned k = 0; k < SEGMENTS; k++)
			check_segment(&workers[i], k);
	}
	check_arena(&workers[0], &shared, live);
	rs_engine_stats(eng, &st);
	if (st.live_allocs != live[0] || st.live_bytes != live[1])
		wrong(&workers[0], LIVE, "live: %llu and %llu bytes, not %llu and %llu",
		      (unsigned long long)st.live_allocs, (unsigned long long)st.live_bytes,
		      (unsigned long long)live[0], (unsigned long long)live[1]);
}

/* --- memory ------------------------------------------------------------------------------------- */

static struct object *new_object(struct worker *w, struct arena *ar, unsigned n)
{
	struct object *o;

	for (unsigned i = 0; i < MAX_ARENA; i++) {
		o = &ar->objects[i];
		if (o->uid)
			continue;
		*o = (struct object){.uid = tick(), .n = n, .ctx = w->id + 1};
		for (unsigned k = 0; k < n; k++)
			o->content[k] = tick();
		return o;
	}
	return NULL;
}

/* n free granules (of one reservation) that begin at g? */
static int is_free(const struct arena *ar, unsigned g, unsigned n)
{
	if (g + n > ar->n || (ar->is_vmm && g / VMM_RESERVED != (g + n - 1) / VMM_RESERVED))
		return 0;
	for (unsigned k = g; k < g + n; k++)
		if (ar->g[k].o)
			return 0;
	return 1;
}

static void place(struct arena *ar, unsigned g, struct object *o, unsigned at, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		ar->g[g + k] = (struct granule){.o = o, .at = at + k, .first = g, .count = n};
}

static void allocate(struct worker *w, struct arena *ar)
{
	unsigned n = 1 + pick(w, MAX_OBJECT), g = pick(w, ar->n);
	struct object *o;

	if (!is_free(ar, g, n) || !(o = new_object(w, ar, n)))
		return;
	rs_engine_alloc(eng, w->t, queue(w), address(ar, g), n * ar->unit, RS_ALLOC_DEVICE);
	w->calls++;
	place(ar, g, o, 0, n);
	o->serial = engine_alloc(address(ar, g))->serial;
	if (o->serial <= w->last_serial)
		wrong(w, SERIAL, "serial %llu was given before", (unsigned long long)o->serial);
	w->last_serial = o->serial;
}

static void release(struct worker *w, struct arena *ar)
{
	unsigned g = pick(w, ar->n);
	struct object *o = ar->g[g].o;
	struct rs_alloc *a;

	if (!o)
		return;
	g = ar->g[g].first;
	w->calls += 2;
	a = rs_engine_free_begin(eng, w->t, queue(w), address(ar, g));
	if (!pick(w, 4)) { /* the driver refuses */
		rs_engine_free_end(eng, a, 0);
		return;
	}
	rs_engine_free_end(eng, a, 1);
	o->uid = 0;
	place(ar, g, NULL, 0, o->n);
}

static void create(struct worker *w, struct arena *ar)
{
	struct object *o = new_object(w, ar, 1 + pick(w, MAX_OBJECT));

	if (!o)
		return;
	o->is_backing = 1;
	o->handle = (uint64_t)(w->id + 1) << 32 | o->uid;
	o->ctx = 0;
	rs_engine_backing(eng, o->handle, o->n * ar->unit, RS_ALLOC_DEVICE);
	o->serial = 0; /* seen when it is mapped */
	w->calls++;
}

static void drop_if_unreachable(struct object *o)
{
	if (!o->handle && !o->mappings)
		o->uid = 0;
}

static void map(struct worker *w, struct arena *ar)
{
	struct object *o = &ar->objects[pick(w, 24)];
	unsigned at, n, g = pick(w, ar->n);

	if (!o->uid || !o->handle)
		return;
	at = pick(w, o->n);
	n = 1 + pick(w, o->n - at);
	if (!is_free(ar, g, n))
		return;
	rs_engine_map(eng, address(ar, g), n * ar->unit, o->handle, at * ar->unit);
	w->calls++;
	place(ar, g, o, at, n);
	o->mappings++;
	if (!o->serial)
		o->serial = engine_alloc(address(ar, g))->serial;
}

/* One mapping, or all of a reservation. */
static void unmap(struct worker *w, struct arena *ar)
{
	unsigned g = pick(w, ar->n), from, to;

	if (!ar->g[g].o)
		return;
	from = ar->g[g].first;
	to = from + ar->g[g].count;
	if (!pick(w, 4)) {
		from = g / VMM_RESERVED * VMM_RESERVED;
		to = from + VMM_RESERVED;
	}
	rs_engine_unmap(eng, address(ar, from), (to - from) * ar->unit);
	w->calls++;
	for (g = from; g < to; g++) {
		struct object *o = ar->g[g].o;

		if (!o)
			continue;
		if (ar->g[g].first == g)
			o->mappings--;
		ar->g[g].o = NULL;
		drop_if_unreachable(o);
	}
}

static void release_handle(struct worker *w, struct arena *ar)
{
	struct object *o = &ar->objects[pick(w, MAX_ARENA)];

	if (!o->uid || !o->handle)
		return;
	rs_engine_backing_release(eng, o->handle);
	w->calls++;
	o->handle = 0;
	drop_if_unreachable(o);
}

static int is_touched(const struct worker *w, const struct object *o)
{
	for (unsigned i = 0; i < SEGMENTS; i++)
		for (unsigned k = 0; w->pending[i].used && k < w->pending[i].nt; k++)
			if (w->pending[i].t[k].o == o)
				return 1;
	for (unsigned i = 0; i < w->depth; i++)
		for (unsigned k = 0; k < w->open[i].nt; k++)
			if (w->open[i].t[k].o == o)
				return 1;
	return 0;
}

/* Names come before use: a pending forward has decided already. */
static void name(struct worker *w, struct arena *ar)
{
	unsigned g = pick(w, ar->n), n;
	const struct granule *at = &ar->g[g];
	int how = (int)pick(w, 3);

	if (!at->o || ar == &shared || is_touched(w, at->o))
		return;
	n = 1 + pick(w, at->first + at->count - g);
	w->calls++;
	if (how == 2)
		rs_engine_region_drop(eng, address(ar, g), n * ar->unit);
	else
		rs_engine_region(eng, address(ar, g), n * ar->unit, how ? "output:o" : "state:s");
	name_region(at->o, at->at, n, (uint8_t) "so"[how]);
}

/* --- calls -------------------------------------------------------------------------------------- */

/* 0: there is nothing at the place that was picked. */
static int describe(struct worker *w, struct arena *ar, struct access *a)
{
	unsigned g = pick(w, ar->n), n;

	if (!ar->g[g].o)
		return 0;
	n = 1 + pick(w, ar->g[g].first + ar->g[g].count - g);
	*a = (struct access){.addr = address(ar, g), .bytes = n * ar->unit};
	a->whole = !pick(w, 8);
	a->dir = 1 + pick(w, 3);
	a->dense = !a->whole && pick(w, 3);
	if (a->whole)
		a->dir = READ | WRITE;
	locate(ar, a, g, n);
	return a->nranges < MAX_RANGES;
}

static void engine_call(struct worker *w, const struct call *c)
{
	struct rs_access x[2] = {{0}, {0}};
	struct rs_call call = {.name = "k",
			       .ident = c->ident,
			       .kind = RS_CALL_KERNEL,
			       .q = queue(w),
			       .access = x,
			       .naccess = c->n};

	for (unsigned i = 0; i < c->n; i++)
		x[i] = (struct rs_access){.addr = c->a[i].addr,
					  .bytes = c->a[i].bytes,
					  .dir = (uint8_t)c->a[i].dir,
					  .how = c->a[i].whole ? RS_HOW_REACHABLE : RS_HOW_PTX,
					  .whole = (uint8_t)c->a[i].whole,
					  .dense = (uint8_t)c->a[i].dense,
					  .slot = (uint16_t)i};
	calm_before(&w->calm, eng, w->t, &call);
	calm_after(&w->calm, eng, w->t, &call);
	w->calls += 2;
}

static void call_in_windows(struct worker *w, struct arena *ar)
{
	struct call c = {.ident = tick()};

	c.n = 1 + pick(w, 2);
	for (unsigned i = 0; i < c.n; i++)
		if (!describe(w, ar, &c.a[i]))
			return;
	/* outside of windows again: it is like the call before, if that one needed nothing */
	for (unsigned n = w->depth ? 1 : 1 + pick(w, 3); n; n--)
		engine_call(w, &c);
	for (unsigned i = 0; i < w->depth; i++) {
		struct window *f = &w->open[i];

		visit_all(f, NULL, &c);
		f->shared |= ar == &shared;
		if (f->ncalls < MAX_CALLS)
			f->calls[f->ncalls++] = c;
		else
			f->overflow = 1;
	}
	write_all(&c);
}

/* --- windows ------------------------------------------------------------------------------------ */

static void open_forward(struct worker *w)
{
	unsigned key = pick(w, SEGMENTS);
	struct window *f = &w->open[w->depth];
	char text[32];

	if (w->depth == DEPTH || (w->depth && w->key[0] == key))
		return;
	snprintf(text, sizeof(text), "forward:t%u#%u", w->id, key);
	/* memory that others allocate is older or younger than the window */
	pthread_mutex_lock(&shared_lock);
	rs_engine_push(eng, w->t, text);
	f->birth = tick();
	pthread_mutex_unlock(&shared_lock);
	w->calls++;
	f->used = 1;
	f->overflow = f->shared = f->is_replay = f->nt = f->ncalls = 0;
	w->pending[key].used = 0; /* the later one is meant from now on */
	w->key[w->depth++] = key;
}

static void close_forward(struct worker *w)
{
	if (!w->depth)
		return;
	rs_engine_pop(eng, w->t);
	w->calls++;
	w->depth--;
	w->pending[w->key[w->depth]] = w->open[w->depth];
}

/* Is everything that the forward's calls reached still where it was? */
static int is_there(struct worker *w, const struct window *f)
{
	for (unsigned i = 0; i < f->ncalls; i++)
		for (unsigned k = 0; k < f->calls[i].n; k++) {
			const struct access *a = &f->calls[i].a[k];
			struct arena *ar = &w->arena[0];
			struct access now = *a;

			while (a->addr < ar->base || a->addr >= address(ar, ar->n))
				if (++ar == &w->arena[ARENAS - 1])
					return 0;
			locate(ar, &now, (unsigned)((a->addr - ar->base) / ar->unit),
			       (unsigned)(a->bytes / ar->unit));
			if (now.nranges != a->nranges ||
			    memcmp(now.range, a->range, a->nranges * sizeof(a->range[0])))
				return 0;
		}
	return 1;
}

/* The same calls again. In preserve mode they see what the forward saw, and leave nothing behind. */
static void replay(struct worker *w)
{
	unsigned key = pick(w, SEGMENTS);
	const struct window *f = &w->pending[key];
	struct window *r = &w->replay;
	char text[32];

	if (w->depth || !f->used || f->overflow || f->shared || !is_there(w, f))
		return;
	snprintf(text, sizeof(text), "replay:t%u#%u", w->id, key);
	rs_engine_push(eng, w->t, text);
	r->birth = tick();
	r->is_replay = 1;
	r->overflow = r->nt = 0;
	for (unsigned i = 0; i < f->ncalls; i++) {
		engine_call(w, &f->calls[i]);
		visit_all(r, preserving ? f : NULL, &f->calls[i]);
		write_all(&f->calls[i]);
	}
	rs_engine_pop(eng, w->t);
	if (preserving)
		put_back(r);
	w->calls += 2;
}

/* --- order -------------------------------------------------------------------------------------- */

static void order(struct worker *w)
{
	unsigned i = pick(w, QUEUES);
	struct rs_queue q = {.ctx = w->id + 1, .stream = w->stream[i]};
	uint64_t event = (uint64_t)(w->id + 1) << 8 | pick(w, 4);

	w->calls++;
	switch (pick(w, 7)) {
	case 0:
		rs_engine_event_record(eng, w->t, q, event);
		return;
	case 1:
		rs_engine_event_wait(eng, w->t, q, event);
		return;
	case 2:
		rs_engine_event_destroy(eng, event);
		return;
	case 3:
		rs_engine_synced_queue(eng, w->t, q);
		return;
	case 4:
		rs_engine_synced_event(eng, event);
		return;
	case 5:
		rs_engine_poll(eng);
		return;
	default:
		if (!i)
			return; /* the legacy stream stays */
		rs_engine_queue_destroy(eng, q);
		w->stream[i] = w->next_stream++ % 64 + 1 + w->id * 64;
		q.stream = w->stream[i];
		rs_engine_queue_create(eng, w->t, q, pick(w, 2) != 0);
	}
}

static void one_call(struct worker *w)
{
	unsigned what = pick(w, 100);
	struct arena *ar;

	if (what < 6) {
		if (what < 3)
			open_forward(w);
		else
			close_forward(w);
		return;
	}
	if (what < 8) {
		replay(w);
		return;
	}
	if (what < 14) {
		order(w);
		return;
	}
	ar = enter(w);
	if (what < 22)
		ar->is_vmm ? map(w, ar) : allocate(w, ar);
	else if (what < 26)
		ar->is_vmm ? unmap(w, ar) : release(w, ar);
	else if (what < 28 && ar->is_vmm)
		what == 26 ? create(w, ar) : release_handle(w, ar);
	else if (what < 30)
		name(w, ar);
	else
		call_in_windows(w, ar);
	if (!pick(w, 8))
		check_address(w, ar, pick(w, ar->n));
	leave(ar);
}

/* A kernel that may write anything: all of the thread's context, and everybody's backings. */
static void write_everything(struct worker *w)
{
	struct rs_call call = {.name = "unknown",
			       .ident = tick(),
			       .kind = RS_CALL_KERNEL,
			       .q = queue(w),
			       .everything = 1};

	calm_before(&w->calm, eng, w->t, &call);
	calm_after(&w->calm, eng, w->t, &call);
	for (unsigned i = 0; i <= THREADS * (ARENAS - 1); i++) {
		struct arena *ar =
			i ? &workers[(i - 1) % THREADS].arena[(i - 1) / THREADS] : &shared;

		for (unsigned k = 0; k < MAX_ARENA; k++)
			for (unsigned g = 0; g < ar->objects[k].n; g++)
				if (!ar->objects[k].ctx || ar->objects[k].ctx == w->id + 1)
					ar->objects[k].content[g] = tick();
	}
}

static void new_step(struct worker *w, unsigned round)
{
	char text[32];

	snprintf(text, sizeof(text), "step:%u", round);
	rs_engine_mark(eng, w->t, text);
	for (unsigned i = 0; i < THREADS; i++)
		for (unsigned k = 0; k < SEGMENTS; k++)
			workers[i].pending[k].used = 0;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (unsigned round = 1; round <= ROUNDS; round++) {
		while (w->calls < w->goal * round / ROUNDS)
			one_call(w);
		while (w->depth)
			close_forward(w);
		if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
			check_all();
			write_everything(w);
			check_all();
			if (round % 2)
				new_step(w, round);
		}
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

/* --- main --------------------------------------------------------------------------------------- */

static void set_up(struct worker *w, unsigned id, uint64_t calls)
{
	*w = (struct worker){.id = id, .rng = 0x9e3779b97f4a7c15ull * (id + 1), .goal = calls};
	w->t = rs_thread_create(eng);
	for (unsigned i = 0; i < ARENAS - 1; i++) {
		struct arena *ar = &w->arena[i];

		ar->base = (uint64_t)(id * ARENAS + i + 1) << 40;
		ar->unit = i == 1 ? 1u << 20 : 256;
		ar->n = i == 1 ? 96 : MAX_ARENA;
		ar->is_vmm = i == 2;
		for (unsigned g = 0; ar->is_vmm && g < ar->n; g += VMM_RESERVED)
			rs_engine_reserve(eng, address(ar, g), VMM_RESERVED * ar->unit);
	}
	for (unsigned i = 1; i < QUEUES; i++) {
		w->stream[i] = w->next_stream++ % 64 + 1 + id * 64;
		rs_engine_queue_create(eng, w->t,
				       (struct rs_queue){.ctx = id + 1, .stream = w->stream[i]}, 0);
	}
}

static void soak(enum rs_mode mode, uint64_t calls)
{
	struct rs_engine_config config = {.mode = mode, .verify = 1, .order = 1, .sample = 16};
	uint64_t bad[5] = {0}, made = 0, calm = 0;
	const char *label = mode == RS_MODE_AUDIT ? "audit" : "preserve";
	struct rs_engine_stats st;
	pthread_t th[THREADS];
	struct slab *s;

	preserving = mode == RS_MODE_PRESERVE;
	eng = rs_engine_create(&config, &ops, NULL);
	memset(&shared, 0, sizeof(shared));
	shared.base = 1ull << 48;
	shared.unit = 256;
	shared.n = MAX_ARENA;
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (unsigned i = 0; i < THREADS; i++)
		set_up(&workers[i], i, calls / THREADS);
	new_step(&workers[0], 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&th[i], NULL, work, &workers[i]);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(th[i], NULL);
		made += workers[i].calls;
		calm += workers[i].calm.taken;
		for (unsigned k = 0; k < 5; k++)
			bad[k] += workers[i].wrong[k];
		if (workers[i].first[0])
			tap_diag("thread %u: %s", i, workers[i].first);
		rs_thread_destroy(workers[i].t);
	}
	rs_engine_finish(eng);
	rs_engine_stats(eng, &st);
	tap_diag("%s: %llu calls, %llu not described, %llu forwards, %llu replays, %llu snapshots",
		 label, (unsigned long long)made, (unsigned long long)calm,
		 (unsigned long long)st.forwards, (unsigned long long)st.replays,
		 (unsigned long long)st.snapshots);
	ok(made >= calls && st.forwards && st.replays, "%s: all calls were made", label);
	ok(!bad[LOOKUP], "%s: every address belongs to what the model says", label);
	ok(!bad[SERIAL], "%s: and has the serial that it was given, and no other had", label);
	ok(!bad[STRAY], "%s: what is pending is claimed, and nothing else", label);
	ok(!bad[CLAIM], "%s: a claimed version is there exactly if nobody wrote since", label);
	ok(!bad[LIVE], "%s: live memory is counted", label);
	is_u64(st.internal_errors, 0, "no internal error");
	rs_engine_destroy(eng);
	is_u64(blocks_freed, blocks_made, "snapshot memory is given back");
	while ((s = slabs)) {
		slabs = s->next;
		free(s);
	}
	pthread_barrier_destroy(&barrier);
}

int main(void)
{
	const char *all = getenv("RS_SOAK"), *scale = getenv("RS_TEST_SCALE");
	uint64_t calls = all ? strtoull(all, NULL, 0) : PER_TEST;

	if (!all && scale && atoi(scale) > 0)
		calls /= (uint64_t)atoi(scale);
	soak(RS_MODE_AUDIT, calls / 2);
	soak(RS_MODE_PRESERVE, calls / 2);
	return tap_done();
}
