/* SPDX-License-Identifier: MIT */
/*
 * The engine's frame: creation, allocations, regions, queues, strings, numbers. See engine.h and
 * model.h.
 */
#include "tracker/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tracker/costing.h"
#include "tracker/model.h"
#include "tracker/name.h"

/* Interned text: names in the model are pointers, equal texts equal pointers, kept for ever. */
struct rs_strings {
	UT_hash_handle hh;
	char text[];
};

int rs_vec_grow(void **v, uint32_t n, uint32_t *cap, size_t size)
{
	uint32_t want = *cap ? *cap * 2 : 4;
	void *grown;

	while (want < n + 1 && want > *cap)
		want *= 2;
	grown = want > *cap ? realloc(*v, want * size) : NULL;
	if (!grown)
		return -ENOMEM;
	*v = grown;
	*cap = want;
	return 0;
}

uint64_t rs_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

const char *rs_intern(struct rs_engine *e, const char *text)
{
	size_t len = strlen(text);
	struct rs_strings *s;

	if (e->outer)
		return rs_intern(e->outer, text);
	HASH_FIND(hh, e->strings, text, len, s);
	if (s)
		return s->text;
	s = malloc(sizeof(*s) + len + 1);
	if (!s)
		return NULL;
	memcpy(s->text, text, len + 1);
	HASH_ADD_KEYPTR(hh, e->strings, s->text, len, s);
	if (!s->hh.tbl) {
		free(s);
		return NULL;
	}
	return s->text;
}

struct rs_engine *rs_engine_create(const struct rs_engine_config *config,
				   const struct rs_devops *ops, struct rs_records *records)
{
	struct rs_engine *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->map = rs_addrmap_create();
	/* room for the first queue: rs_queue_id falls back on it when memory runs out */
	if (!e->map ||
	    rs_vec_grow((void **)&e->queues.v, 0, &e->queues.cap, sizeof(*e->queues.v))) {
		rs_addrmap_destroy(e->map);
		free(e);
		return NULL;
	}
	e->config = *config;
	e->ops = ops;
	e->records = records;
	e->flight_end = &e->flight;
	e->launches_end = &e->launches;
	e->claim_epoch = 1;
	e->moment = 1;
	pthread_mutex_init(&e->lock, NULL);
	pthread_mutex_init(&e->memory_lock, NULL);
	rs_where_init(e);
	if (config->costs && rs_costs_init(e)) {
		rs_engine_destroy(e);
		return NULL;
	}
	return e;
}

void rs_engine_finish(struct rs_engine *e)
{
	rs_replay_finish_ready(e, 1);
	rs_words_reap(e);
	if (e->costing)
		rs_timing_poll(e);
}

void rs_engine_end(struct rs_engine *e)
{
	struct rs_segment *s;

	pthread_mutex_lock(&e->lock);
	for (s = e->pending; s; s = s->next)
		rs_segment_tell(e, s);
	pthread_mutex_unlock(&e->lock);
}

void rs_engine_learned(struct rs_engine *e)
{
	struct rs_segment *s;

	pthread_mutex_lock(&e->lock);
	for (s = e->pending; s; s = s->next)
		rs_profile_retire(e, s);
	rs_profile_write(e);
	pthread_mutex_unlock(&e->lock);
}

void rs_engine_poll(struct rs_engine *e)
{
	if (e->costing)
		rs_timing_poll(e);
	if (__atomic_load_n(&e->flight, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&e->launches, __ATOMIC_RELAXED))
		rs_replay_finish_ready(e, 0);
	rs_thin_ready(e);
}

/* Device memory that an allocation takes; drivers hand it out in multiples of 512 bytes. */
static uint64_t on_device(const struct rs_alloc *a)
{
	if (a->kind == RS_ALLOC_HOST || a->kind == RS_ALLOC_EXTERNAL ||
	    a->kind == RS_ALLOC_GLOBAL || a->promised)
		return 0;
	return (a->size + 511) & ~(uint64_t)511;
}

static struct rs_alloc *make_alloc(struct rs_engine *e, uint64_t bytes, enum rs_alloc_kind kind,
				   int promised)
{
	struct rs_alloc *a = e->spare_allocs;

	if (a)
		e->spare_allocs = a->next;
	else
		a = aligned_alloc(_Alignof(struct rs_alloc), sizeof(*a));
	if (!a) {
		e->stats.internal_errors++;
		return NULL;
	}
	*a = (struct rs_alloc){.size = bytes,
			       .serial = ++e->serial,
			       .kind = (uint8_t)kind,
			       .promised = (uint8_t)promised,
			       .birth = ++e->clock,
			       .refs = 1};
	rs_extmap_init(&a->ext, bytes, rs_version_next(e));
	e->stats.live_allocs += !promised;
	e->stats.live_bytes += promised ? 0 : bytes;
	e->device_bytes += on_device(a);
	e->device_peak = rs_max64(e->device_peak, e->device_bytes);
	return a;
}

/* One reference, the map's or the handle's. NULL: no memory. engine.lock held. */
struct rs_alloc *rs_alloc_new(struct rs_engine *e, uint64_t bytes, enum rs_alloc_kind kind)
{
	return make_alloc(e, bytes, kind, 0);
}

static void free_alloc(struct rs_engine *e, struct rs_alloc *a)
{
	rs_extmap_fini(&a->ext);
	if (!a->base)
		rs_remap_alloc_gone(e, a);
	free(a->regions.v);
	free(a->keeps.v);
	a->keeps.v = NULL;
	free(a->binds.v);
	a->regions.v = NULL;
	a->binds.v = NULL;
	a->next = e->spare_allocs;
	e->spare_allocs = a;
}

void rs_alloc_unref(struct rs_engine *e, struct rs_alloc *a)
{
	if (--a->refs)
		return;
	rs_keeps_collect(e, a);
	free_alloc(e, a);
}

/* The memory is gone: what pending segments claimed of it can never be read again. engine.lock held. */
void rs_alloc_drop(struct rs_engine *e, struct rs_alloc *a)
{
	a->dead = 1;
	e->stats.live_allocs -= !a->promised;
	e->stats.live_bytes -= a->promised ? 0 : a->size;
	e->device_bytes -= on_device(a);
	rs_costs_freed(e);
	rs_keeps_collect(e, a);
	if (!a->base)
		rs_frames_forget(e, a);
	rs_alloc_unref(e, a);
}

static void remove_alloc(struct rs_engine *e, struct rs_alloc *a)
{
	rs_addrmap_remove(e->map, a->base);
	rs_suballocs_forget(e, a->base, a->size);
	rs_map_changed(e);
	rs_alloc_drop(e, a);
}

/*
 * New memory cannot overlap live memory: what is still known there was given back unseen, or is about to be forgotten.
 * Views of memory that is there already may.
 */
static int enter_range(struct rs_engine *e, struct rs_alloc *a)
{
	int fresh = a->kind == RS_ALLOC_DEVICE || a->kind == RS_ALLOC_MANAGED;
	int err = rs_addrmap_insert(e->map, a->base, a->size, a);
	uint64_t base, bytes;
	void *v;

	while (err == -EEXIST && fresh) {
		v = rs_addrmap_find(e->map, a->base, &base, &bytes);
		if (!v)
			v = rs_addrmap_next(e->map, a->base, &base, &bytes);
		if (!v || rs_mapping_of(v) || base >= a->base + a->size)
			return err;
		remove_alloc(e, v);
		err = rs_addrmap_insert(e->map, a->base, a->size, a);
	}
	return err;
}

void rs_engine_alloc(struct rs_engine *e, struct rs_thread *t, struct rs_queue q, uint64_t addr,
		     uint64_t bytes, enum rs_alloc_kind kind)
{
	struct rs_alloc *a;

	if (!addr || !bytes)
		return;
	pthread_mutex_lock(&e->lock);
	a = rs_alloc_new(e, bytes, kind);
	if (a) {
		if (kind != RS_ALLOC_GLOBAL)
			rs_windows_balance(e, t, (int64_t)bytes);
		a->base = addr;
		a->ctx = q.ctx;
		if (enter_range(e, a)) {
			e->stats.internal_errors++;
			rs_alloc_drop(e, a);
		}
		rs_map_changed(e);
	}
	pthread_mutex_unlock(&e->lock);
}

struct rs_alloc *rs_alloc_at(struct rs_engine *e, uint64_t addr)
{
	uint64_t base, bytes;
	void *v = rs_addrmap_find(e->map, addr, &base, &bytes);

	return v && !rs_mapping_of(v) && base == addr ? v : NULL;
}

struct rs_alloc *rs_alloc_promise(struct rs_engine *e, uint64_t ctx, uint64_t addr, uint64_t bytes)
{
	struct rs_alloc *a = make_alloc(e, bytes, RS_ALLOC_DEVICE, 1);

	if (!a)
		return NULL;
	a->base = addr;
	a->ctx = ctx;
	if (enter_range(e, a)) {
		e->stats.internal_errors++;
		rs_alloc_drop(e, a);
		return NULL;
	}
	rs_map_changed(e);
	return a;
}

void rs_alloc_forget(struct rs_engine *e, struct rs_alloc *a)
{
	remove_alloc(e, a);
}

/* engine.lock held. */
static void tell_readers(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
			 struct rs_alloc *a, uint64_t call)
{
	struct rs_writer who = {
		.name = "free", .kind = RS_CALL_OTHER, .call = call, .step = e->step, .window = ""};
	const struct rs_window *w;

	for (w = t ? t->top : NULL; w && !*who.window; w = w->up)
		who.window = w->label;
	/* a free that is not part of a stream waits for the device's work */
	if (q.stream && e->config.order) {
		who.q = rs_queue_id(e, t, q);
		who.tick = rs_order_tick(e, who.q);
	}
	rs_memory_leaves(e, a, &who);
}

struct rs_alloc *rs_engine_free_begin(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
				      uint64_t addr)
{
	uint64_t call = 0, place;
	struct rs_oplist list;
	struct rs_alloc *a;

	rs_oplist_init(&list);
	pthread_mutex_lock(&e->lock);
	e->where.wanted = 0;
	a = rs_alloc_at(e, addr);
	if (a) {
		/* a stream-ordered free must follow the shim's own work on the range */
		if (a->fence) {
			uint32_t id = rs_queue_id(e, t, q);

			rs_oplist_fence(&list, RS_QBIT(a->fence - 1) & e->fence_queues, a, id);
		}
		if (a->kind != RS_ALLOC_GLOBAL && !a->promised)
			rs_windows_balance(e, t, -(int64_t)a->size);
		if (e->pending)
			tell_readers(e, t, q, a, call = ++e->clock);
		rs_addrmap_remove(e->map, a->base);
		rs_suballocs_forget(e, a->base, a->size);
		rs_map_changed(e);
		a->dead = 1; /* no work on it is planned any more */
	}
	place = rs_where_reserve(e, call);
	pthread_mutex_unlock(&e->lock);
	rs_oplist_run(e, &list);
	rs_where_take(e, call, place);
	return a;
}

void rs_engine_free_end(struct rs_engine *e, struct rs_alloc *a, int ok)
{
	if (!a)
		return;
	pthread_mutex_lock(&e->lock);
	if (!ok) {
		a->dead = 0;
		rs_memory_stays(e, a);
		ok = rs_addrmap_insert(e->map, a->base, a->size, a) != 0;
		rs_map_changed(e);
		e->stats.internal_errors += (uint64_t)ok;
	}
	if (ok)
		rs_alloc_drop(e, a);
	pthread_mutex_unlock(&e->lock);
}

void rs_engine_free(struct rs_engine *e, struct rs_thread *t, struct rs_queue q, uint64_t addr)
{
	rs_engine_free_end(e, rs_engine_free_begin(e, t, q, addr), 1);
}

void rs_engine_ctx_leaves(struct rs_engine *e, uint64_t ctx)
{
	rs_remap_ctx_leaves(e, ctx);
	if (__atomic_load_n(&e->flight, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&e->launches, __ATOMIC_RELAXED))
		rs_replay_finish_ctx(e, ctx);
}

void rs_engine_ctx_destroy(struct rs_engine *e, uint64_t ctx)
{
	uint64_t base = 0, bytes, from = 0;
	struct rs_alloc *a;
	uint32_t i;
	void *v;

	pthread_mutex_lock(&e->lock);
	while ((v = rs_addrmap_next(e->map, from, &base, &bytes))) {
		from = base + 1;
		a = v;
		if (!rs_mapping_of(v) && a->ctx == ctx)
			remove_alloc(e, a);
	}
	for (i = 0; i < e->queues.n; i++)
		if (e->queues.v[i].q.ctx == ctx)
			e->queues.v[i].dead = e->queues.v[i].idle = 1;
	rs_words_ctx_gone(e, ctx);
	rs_queues_changed(e);
	rs_capture_ctx_gone(e, ctx);
	pthread_mutex_unlock(&e->lock);
	rs_arena_ctx_gone(e, ctx);
}

/*
 * A destroyed queue whose last event has passed needs no order any more: its event goes back, its id may
 * be given out again. What still names the id (masks, fences, blocks) then waits for too much, or for
 * something that is over; a queue that is "already ordered" after a fence has waited for it before its
 * last event, so that fence is over, too.
 */
static void reclaim_queues(struct rs_engine *e)
{
	struct {
		uint32_t id;
		uint64_t event;
	} some[16];
	uint64_t generation;
	uint32_t i, n = 0;

	pthread_mutex_lock(&e->lock);
	generation = e->generation;
	for (i = 0; i < e->queues.n && n < 16; i++)
		if (e->queues.v[i].dead && e->queues.v[i].final_event) {
			some[n].id = i;
			some[n++].event = e->queues.v[i].final_event;
		}
	pthread_mutex_unlock(&e->lock);
	for (i = 0; i < n; i++) {
		struct rs_qstate *s;

		if (e->ops->event_done(e->ops->opaque, some[i].event) != 1)
			continue;
		pthread_mutex_lock(&e->lock);
		s = &e->queues.v[some[i].id];
		/* With a queue destroyed meanwhile it may be another one's event. */
		if (e->generation == generation && s->final_event == some[i].event) {
			s->final_event = 0;
			s->idle = 1;
		} else {
			some[i].event = 0;
		}
		pthread_mutex_unlock(&e->lock);
		if (some[i].event)
			e->ops->event_free(e->ops->opaque, some[i].event);
	}
}

void rs_engine_queue_destroy(struct rs_engine *e, struct rs_queue q)
{
	uint64_t event = 0;
	uint32_t i;

	reclaim_queues(e);
	rs_engine_queues_go_on(e, q.ctx, &q); /* its last event stands for it */
	if (e->ops->event_record(e->ops->opaque, q, &event))
		event = 0;
	pthread_mutex_lock(&e->lock);
	for (i = 0; i < e->queues.n; i++) {
		struct rs_qstate *s = &e->queues.v[i];

		if (!s->dead && s->q.ctx == q.ctx && s->q.stream == q.stream) {
			s->dead = 1;
			s->final_event = event;
			event = 0;
			rs_queues_changed(e);
		}
	}
	pthread_mutex_unlock(&e->lock);
	if (event)
		e->ops->event_free(e->ops->opaque, event);
}

void rs_engine_queue_stalls(struct rs_engine *e, struct rs_thread *t, struct rs_queue q)
{
	uint64_t event = 0;
	uint32_t id;
	int known;

	pthread_mutex_lock(&e->lock);
	id = rs_queue_id(e, t, q);
	known = !!(e->stalling & RS_QBIT(id));
	__atomic_fetch_add(&e->stalls, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&e->lock);
	if (known)
		return;
	if (e->ops->event_record(e->ops->opaque, q, &event))
		event = 0;
	pthread_mutex_lock(&e->lock);
	__atomic_fetch_and(&e->used_since, ~RS_QBIT(id), __ATOMIC_RELAXED);
	__atomic_fetch_or(&e->stalling, RS_QBIT(id), __ATOMIC_RELAXED);
	rs_moment_next(e);
	if (!e->queues.v[id].safe_event) {
		e->queues.v[id].safe_event = event;
		event = 0;
	}
	pthread_mutex_unlock(&e->lock);
	if (event)
		e->ops->event_free(e->ops->opaque, event);
}

uint64_t rs_engine_stalls(struct rs_engine *e)
{
	return __atomic_load_n(&e->stalls, __ATOMIC_SEQ_CST);
}

void rs_engine_queues_go_on(struct rs_engine *e, uint64_t ctx, const struct rs_queue *q)
{
	rs_engine_queues_go_on_since(e, ctx, q, rs_engine_stalls(e));
}

void rs_engine_queues_go_on_since(struct rs_engine *e, uint64_t ctx, const struct rs_queue *q,
				  uint64_t met)
{
	uint64_t event;
	uint32_t i;

	if (!q)
		rs_remap_synced(e, ctx, met);
	for (i = 0; __atomic_load_n(&e->stalling, __ATOMIC_RELAXED); i++) {
		event = 0;
		pthread_mutex_lock(&e->lock);
		if (i >= e->queues.n || rs_engine_stalls(e) != met) {
			pthread_mutex_unlock(&e->lock);
			return;
		}
		if (e->stalling & RS_QBIT(i) && e->queues.v[i].q.ctx == ctx &&
		    (!q || e->queues.v[i].q.stream == q->stream)) {
			event = e->queues.v[i].safe_event;
			e->queues.v[i].safe_event = 0;
			if (i < 63) /* more than one queue may have the last bit */
				__atomic_fetch_and(&e->stalling, ~RS_QBIT(i), __ATOMIC_RELAXED);
		}
		pthread_mutex_unlock(&e->lock);
		if (event)
			e->ops->event_free(e->ops->opaque, event);
	}
}

/* It is the one that it was, unless it has been met as a new one since. */
void rs_engine_queue_stays(struct rs_engine *e, struct rs_queue q)
{
	struct rs_qstate *s = NULL;
	uint64_t event = 0;
	uint32_t i;

	pthread_mutex_lock(&e->lock);
	for (i = e->queues.n; i > 0 && !s; i--)
		if (e->queues.v[i - 1].q.ctx == q.ctx && e->queues.v[i - 1].q.stream == q.stream)
			s = &e->queues.v[i - 1];
	if (s && s->dead) {
		event = s->final_event;
		s->final_event = 0;
		s->dead = s->idle = 0;
		rs_queues_changed(e);
	}
	pthread_mutex_unlock(&e->lock);
	if (event)
		e->ops->event_free(e->ops->opaque, event);
}

static struct rs_qstate *new_queue(struct rs_engine *e)
{
	uint32_t i;

	for (i = 0; i < e->queues.n; i++)
		if (e->queues.v[i].idle && !e->queues.v[i].safe_event) {
			rs_order_reuse(e, i);
			memset(&e->queues.v[i], 0, sizeof(e->queues.v[i]));
			return &e->queues.v[i];
		}
	return RS_PUSH(e->queues);
}

/* The id of a live queue; a new one for a handle seen first. Without memory: queue 0, over-ordered. */
uint32_t rs_queue_id(struct rs_engine *e, struct rs_thread *t, struct rs_queue q)
{
	const struct rs_known *known = rs_known_queue(e, t, q);
	struct rs_qstate *s;
	uint32_t i;

	if (known)
		return known->id;
	for (i = e->queues.n; i > 0; i--) {
		s = &e->queues.v[i - 1];
		if (!s->dead && s->q.ctx == q.ctx && s->q.stream == q.stream)
			break;
	}
	if (!i) {
		s = new_queue(e);
		if (!s) {
			e->stats.internal_errors++;
			return 0;
		}
		s->q = q;
		i = (uint32_t)(s - e->queues.v) + 1;
		if (i <= RS_CLOCKS) {
			__atomic_store_n(&e->handle[i - 1].ctx, q.ctx, __ATOMIC_RELAXED);
			__atomic_store_n(&e->handle[i - 1].stream, q.stream, __ATOMIC_RELAXED);
		}
	}
	*rs_known_at(t, q) =
		(struct rs_known){.q = q, .generation = e->generation + 1, .id = i - 1};
	return i - 1;
}

const void *rs_engine_lookup(struct rs_engine *e, uint64_t addr, uint64_t *ret_base,
			     uint64_t *ret_bytes)
{
	void *v = rs_addrmap_find(e->map, addr, ret_base, ret_bytes);
	const struct rs_mapping *m = rs_mapping_of(v);

	if (m) {
		*ret_base = __atomic_load_n(&m->res_base, __ATOMIC_RELAXED);
		*ret_bytes = __atomic_load_n(&m->res_bytes, __ATOMIC_RELAXED);
	}
	return v;
}

/* The region that contains off, or NULL; *ret_until: where that answer changes next. */
const struct rs_region *rs_region_at(const struct rs_alloc *a, uint64_t off, uint64_t *ret_until)
{
	uint32_t i;

	for (i = 0; i < a->regions.n; i++) {
		const struct rs_region *r = &a->regions.v[i];

		if (off < r->off) {
			*ret_until = r->off;
			return NULL;
		}
		if (off < r->off + r->len) {
			*ret_until = r->off + r->len;
			return r;
		}
	}
	*ret_until = a->size;
	return NULL;
}

/* Forget what overlaps [off, off + len): a new name, or a resized region, wins. */
static void drop_regions(struct rs_alloc *a, uint64_t off, uint64_t len)
{
	uint32_t i, kept = 0;

	for (i = 0; i < a->regions.n; i++) {
		struct rs_region r = a->regions.v[i];

		if (r.off < off + len && off < r.off + r.len)
			continue;
		a->regions.v[kept++] = r;
	}
	a->regions.n = kept;
}

static int add_region(struct rs_engine *e, struct rs_alloc *a, uint64_t off, uint64_t len,
		      const char *name)
{
	struct rs_region r = {.off = off, .len = len};
	struct rs_region *added;
	uint32_t i;

	if (!strncmp(name, "output:", 7)) {
		r.product = 1;
		name += 7;
	} else if (!strncmp(name, "state:", 6)) {
		name += 6;
	}
	r.name = rs_intern(e, name);
	if (!r.name)
		return -ENOMEM;
	drop_regions(a, off, len);
	added = RS_PUSH(a->regions);
	if (!added)
		return -ENOMEM;
	for (i = a->regions.n - 1; i > 0 && a->regions.v[i - 1].off > off; i--)
		a->regions.v[i] = a->regions.v[i - 1];
	a->regions.v[i] = r;
	return 0;
}

/*
 * The bytes from addr on that lie in one allocation or mapping: *ret, at most max of them. 0: none.
 * engine.lock held.
 */
static int piece_at(struct rs_engine *e, uint64_t addr, uint64_t max, struct rs_range *ret)
{
	uint64_t base, bytes;
	void *v = rs_addrmap_find(e->map, addr, &base, &bytes);
	const struct rs_mapping *m = rs_mapping_of(v);

	if (!v)
		return 0;
	ret->a = m ? m->alloc : v;
	ret->off = addr - base + (m ? m->off : 0);
	ret->len = bytes - (addr - base) < max ? bytes - (addr - base) : max;
	return m || ret->len == max; /* one allocation does not continue in the next */
}

int rs_engine_region(struct rs_engine *e, uint64_t addr, uint64_t bytes, const char *name)
{
	char fit[RS_NAME_BYTES];
	struct rs_range r;
	uint64_t done;
	int err = 0;

	if (!name || !bytes)
		return -EINVAL;
	rs_name_fit(fit, name, strlen(name));
	pthread_mutex_lock(&e->lock);
	for (done = 0; !err && done < bytes; done += r.len)
		if (!piece_at(e, addr + done, bytes - done, &r))
			err = -ENOENT;
	for (done = 0; !err && done < bytes; done += r.len) {
		piece_at(e, addr + done, bytes - done, &r);
		err = add_region(e, r.a, r.off, r.len, fit);
	}
	pthread_mutex_unlock(&e->lock);
	return err;
}

void rs_engine_region_drop(struct rs_engine *e, uint64_t addr, uint64_t bytes)
{
	struct rs_range r;
	uint64_t done;

	pthread_mutex_lock(&e->lock);
	for (done = 0; done < bytes && piece_at(e, addr + done, bytes - done, &r); done += r.len)
		drop_regions(r.a, r.off, r.len);
	pthread_mutex_unlock(&e->lock);
}

void rs_engine_stats(struct rs_engine *e, struct rs_engine_stats *ret)
{
	pthread_mutex_lock(&e->lock);
	*ret = e->stats;
	ret->unknown_writers += __atomic_load_n(&e->idle_unknown_writers, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&e->lock);
}

void rs_engine_destroy(struct rs_engine *e)
{
	uint64_t base, bytes, event;
	struct rs_strings *s, *tmp;
	struct rs_alloc *a;
	uint32_t i;

	rs_engine_finish(e);
	rs_remap_fini(e);
	pthread_mutex_lock(&e->lock);
	while (e->pending)
		rs_segment_retire(e, e->pending);
	rs_thin_fini(e);
	rs_alias_fini(e);
	rs_order_fini(e);
	rs_terms_fini(e);
	rs_profile_fini(e);
	while ((a = rs_addrmap_next(e->map, 0, &base, &bytes)))
		remove_alloc(e, a);
	pthread_mutex_unlock(&e->lock);
	rs_frames_fini(e);
	rs_costs_fini(e);
	rs_where_fini(e);
	rs_arena_fini(e);
	rs_memory_fini(e);
	rs_logs_fini(e);
	rs_touches_fini(e);
	for (i = 0; i < e->queues.n; i++) {
		event = e->queues.v[i].final_event;
		if (event)
			e->ops->event_free(e->ops->opaque, event);
		event = e->queues.v[i].safe_event;
		if (event)
			e->ops->event_free(e->ops->opaque, event);
	}
	HASH_ITER (hh, e->strings, s, tmp) {
		HASH_DEL(e->strings, s);
		free(s);
	}
	while ((a = e->spare_allocs)) {
		e->spare_allocs = a->next;
		free(a);
	}
	free(e->queues.v);
	rs_addrmap_destroy(e->map);
	if (e->suballocs)
		rs_addrmap_destroy(e->suballocs);
	free(e);
}
