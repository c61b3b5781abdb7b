/* SPDX-License-Identifier: MIT */
/*
 * Memory behind several addresses: backings, their handles, reservations, mappings, multicast objects.
 *
 * A backing is an rs_alloc without a base; every mapping of it is a tagged value of the address map, so an
 * access through any address meets the same extents, claims and keeps (locate.c). What is known of the
 * bytes lives as long as the backing: while it is mapped, bound or its handle is held.
 * The shim's own copies reach its bytes through a mapping that shows all of them (rs_alloc_addr).
 *
 * Callers: the shim, any thread; engine.lock is taken here.
 */
#include <errno.h>
#include <stdlib.h>

#include "tracker/model.h"

/* A driver's handle. The driver counts: it may give the same value out several times. */
struct rs_handle {
	uint64_t value; /* key */
	uint32_t count;
	struct rs_alloc *backing;
	UT_hash_handle hh;
};

/* Reservations are only ever looked up by address: the map's value says nothing. */
static int a_reservation;

static struct rs_handle *find_handle(struct rs_engine *e, uint64_t value)
{
	struct rs_handle *h;

	HASH_FIND(hh, e->handles, &value, sizeof(value), h);
	return h;
}

/* Nobody can reach the backing any more. */
static void drop_unreachable(struct rs_engine *e, struct rs_alloc *a)
{
	uint32_t i;

	if (a->dead || a->handles || a->mappings)
		return;
	for (i = 0; i < a->binds.n; i++) {
		struct rs_alloc *bound = a->binds.v[i].alloc;

		bound->handles--;
		drop_unreachable(e, bound);
	}
	a->binds.n = 0;
	rs_alloc_drop(e, a);
}

/* engine.lock held. NULL: nobody knows the handle. */
struct rs_alloc *rs_alias_backing(struct rs_engine *e, uint64_t handle)
{
	struct rs_handle *h = find_handle(e, handle);

	return h ? h->backing : NULL;
}

static int add_handle(struct rs_engine *e, uint64_t value, struct rs_alloc *backing)
{
	struct rs_handle *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->value = value;
	h->count = 1;
	h->backing = backing;
	HASH_ADD(hh, e->handles, value, sizeof(h->value), h);
	if (!h->hh.tbl) {
		free(h);
		return -ENOMEM;
	}
	backing->handles++;
	return 0;
}

static void drop_handle(struct rs_engine *e, struct rs_handle *h)
{
	struct rs_alloc *a = h->backing;

	HASH_DEL(e->handles, h);
	free(h);
	a->handles--;
	drop_unreachable(e, a);
}

int rs_engine_backing(struct rs_engine *e, uint64_t handle, uint64_t bytes, enum rs_alloc_kind kind)
{
	struct rs_handle *h;
	struct rs_alloc *a;
	int err = -ENOMEM;

	if (!bytes)
		return -EINVAL;
	pthread_mutex_lock(&e->lock);
	h = find_handle(e, handle);
	if (h) /* its release went unseen */
		drop_handle(e, h);
	a = rs_alloc_new(e, bytes, kind);
	if (a) {
		err = add_handle(e, handle, a);
		if (err)
			rs_alloc_drop(e, a);
	}
	pthread_mutex_unlock(&e->lock);
	return err;
}

int rs_engine_backing_retain(struct rs_engine *e, uint64_t handle, uint64_t addr)
{
	uint64_t base, bytes;
	struct rs_mapping *m;
	struct rs_handle *h;
	int err = -ENOENT;

	pthread_mutex_lock(&e->lock);
	m = rs_mapping_of(rs_addrmap_find(e->map, addr, &base, &bytes));
	h = find_handle(e, handle);
	if (h && m && h->backing == m->alloc) {
		h->count++;
		err = 0;
	} else if (m) {
		if (h)
			drop_handle(e, h);
		err = add_handle(e, handle, m->alloc);
	}
	pthread_mutex_unlock(&e->lock);
	return err;
}

void rs_engine_backing_release(struct rs_engine *e, uint64_t handle)
{
	struct rs_handle *h;

	pthread_mutex_lock(&e->lock);
	h = find_handle(e, handle);
	if (h && !--h->count)
		drop_handle(e, h);
	pthread_mutex_unlock(&e->lock);
}

int rs_engine_reserve(struct rs_engine *e, uint64_t addr, uint64_t bytes)
{
	int err = -ENOMEM;

	pthread_mutex_lock(&e->lock);
	if (!e->reserved)
		e->reserved = rs_addrmap_create();
	if (e->reserved)
		err = rs_addrmap_insert(e->reserved, addr, bytes, &a_reservation);
	pthread_mutex_unlock(&e->lock);
	return err;
}

void rs_engine_unreserve(struct rs_engine *e, uint64_t addr)
{
	pthread_mutex_lock(&e->lock);
	if (e->reserved)
		rs_addrmap_remove(e->reserved, addr);
	pthread_mutex_unlock(&e->lock);
}

static struct rs_mapping *new_mapping(struct rs_engine *e, uint64_t addr, uint64_t bytes)
{
	struct rs_mapping *m = e->spare_mappings;
	uint64_t base = addr, size = bytes;

	if (m)
		e->spare_mappings = m->next;
	else
		m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	if (!e->reserved || !rs_addrmap_find(e->reserved, addr, &base, &size)) {
		base = addr;
		size = bytes;
	}
	m->base = addr;
	m->bytes = bytes;
	__atomic_store_n(&m->res_base, base, __ATOMIC_RELAXED);
	__atomic_store_n(&m->res_bytes, size, __ATOMIC_RELAXED);
	return m;
}

static void spare(struct rs_engine *e, struct rs_mapping *m)
{
	m->next = e->spare_mappings;
	e->spare_mappings = m;
}

int rs_engine_map(struct rs_engine *e, uint64_t addr, uint64_t bytes, uint64_t handle,
		  uint64_t offset)
{
	struct rs_mapping *m = NULL;
	struct rs_handle *h;
	int err = -ENOENT;

	pthread_mutex_lock(&e->lock);
	h = find_handle(e, handle);
	if (h && (offset > h->backing->size || bytes > h->backing->size - offset))
		err = -EINVAL;
	else if (h)
		m = new_mapping(e, addr, bytes);
	if (m) {
		m->alloc = h->backing;
		m->off = offset;
		err = rs_addrmap_insert(e->map, addr, bytes, (void *)((uintptr_t)m + 1));
		if (err) {
			spare(e, m);
		} else {
			m->next = h->backing->mappings;
			h->backing->mappings = m;
			rs_map_changed(e);
			if (rs_remap_fits(e, h->backing))
				__atomic_store_n(&e->remapping.seen, 1, __ATOMIC_RELAXED);
		}
	}
	if (err && err != -ENOENT)
		e->stats.internal_errors++;
	pthread_mutex_unlock(&e->lock);
	return err;
}

static void unmap(struct rs_engine *e, struct rs_mapping *m)
{
	struct rs_alloc *a = m->alloc;
	struct rs_mapping **at;

	rs_addrmap_remove(e->map, m->base);
	rs_suballocs_forget(e, m->base, m->bytes);
	rs_map_changed(e);
	for (at = &a->mappings; *at != m; at = &(*at)->next)
		;
	*at = m->next;
	spare(e, m);
	drop_unreachable(e, a);
}

void rs_engine_unmap(struct rs_engine *e, uint64_t addr, uint64_t bytes)
{
	uint64_t base, size, at = addr;
	void *v;

	pthread_mutex_lock(&e->lock);
	while ((v = rs_addrmap_next(e->map, at, &base, &size)) && base - addr < bytes) {
		struct rs_mapping *m = rs_mapping_of(v);

		if (m && base - addr + size <= bytes)
			unmap(e, m);
		at = base + size;
	}
	pthread_mutex_unlock(&e->lock);
}

/*
 * An address of all the bytes [off, off + len), or 0: a backing may be unmapped, or be mapped in pieces
 * that are not neighbours. engine.lock held.
 */
uint64_t rs_alloc_addr(const struct rs_alloc *a, uint64_t off, uint64_t len)
{
	const struct rs_mapping *m, *next;
	uint64_t end;

	if (a->base)
		return a->base + off;
	if (rs_remap_is_lost(a))
		return 0;
	for (m = a->mappings; m; m = m->next) {
		if (off < m->off || off - m->off >= m->bytes)
			continue;
		/* mapped piece by piece, side by side */
		for (end = m->bytes; off - m->off + len > end; end += next->bytes) {
			for (next = a->mappings; next; next = next->next)
				if (next->base == m->base + end && next->off == m->off + end)
					break;
			if (!next)
				break;
		}
		if (off - m->off + len <= end)
			return m->base + (off - m->off);
	}
	return 0;
}

/* What of it others reach through a multicast object. */
static void share_bound(struct rs_alloc *multicast)
{
	uint32_t i;

	multicast->shared = 1;
	for (i = 0; i < multicast->binds.n; i++)
		multicast->binds.v[i].alloc->shared = 1;
}

void rs_engine_share(struct rs_engine *e, uint64_t addr)
{
	uint64_t base, bytes;
	struct rs_mapping *m;
	void *v;

	pthread_mutex_lock(&e->lock);
	v = rs_addrmap_find(e->map, addr, &base, &bytes);
	m = rs_mapping_of(v);
	if (v)
		share_bound(m ? m->alloc : v);
	pthread_mutex_unlock(&e->lock);
}

void rs_engine_share_handle(struct rs_engine *e, uint64_t handle)
{
	struct rs_handle *h;

	pthread_mutex_lock(&e->lock);
	h = find_handle(e, handle);
	if (h)
		share_bound(h->backing);
	pthread_mutex_unlock(&e->lock);
}

void rs_engine_peer_access(struct rs_engine *e)
{
	pthread_mutex_lock(&e->lock);
	e->peers = 1;
	pthread_mutex_unlock(&e->lock);
}

/* --- multicast -------------------------------------------------------------------------------- */

/* What is bound: by handle, or by the address of something mapped. NULL: unknown. */
static struct rs_alloc *bound_memory(struct rs_engine *e, uint64_t mem, uint64_t *offset)
{
	struct rs_handle *h = mem ? find_handle(e, mem) : NULL;
	struct rs_mapping *m;
	uint64_t base, bytes;

	if (mem)
		return h ? h->backing : NULL;
	m = rs_mapping_of(rs_addrmap_find(e->map, *offset, &base, &bytes));
	if (!m)
		return NULL;
	*offset = m->off + (*offset - base);
	return m->alloc;
}

int rs_engine_multicast_bind(struct rs_engine *e, uint64_t multicast, uint64_t at, uint64_t mem,
			     uint64_t offset, uint64_t bytes)
{
	struct rs_handle *h;
	struct rs_alloc *a;
	struct rs_bind *b;
	int err = -ENOENT;

	pthread_mutex_lock(&e->lock);
	h = find_handle(e, multicast);
	a = h ? bound_memory(e, mem, &offset) : NULL;
	if (a && !a->multicast && (offset > a->size || bytes > a->size - offset))
		err = -EINVAL;
	else if (a && !a->multicast) {
		b = RS_PUSH(h->backing->binds);
		err = b ? 0 : -ENOMEM;
		h->backing->multicast = 1;
		if (b) {
			*b = (struct rs_bind){.at = at, .len = bytes, .off = offset, .alloc = a};
			a->handles++;
			a->fixed = 1;
			a->shared |= rs_alloc_is_volatile(h->backing);
			rs_map_changed(e);
		}
	}
	if (err == -ENOMEM)
		e->stats.internal_errors++;
	pthread_mutex_unlock(&e->lock);
	return err;
}

void rs_engine_multicast_unbind(struct rs_engine *e, uint64_t multicast, uint64_t at,
				uint64_t bytes)
{
	struct rs_handle *h;
	uint32_t i, kept = 0;

	pthread_mutex_lock(&e->lock);
	h = find_handle(e, multicast);
	for (i = 0; h && i < h->backing->binds.n; i++) {
		struct rs_bind b = h->backing->binds.v[i];

		if (b.at < at || b.at - at >= bytes) {
			h->backing->binds.v[kept++] = b;
			continue;
		}
		b.alloc->handles--;
		drop_unreachable(e, b.alloc);
	}
	if (h) {
		h->backing->binds.n = kept;
		rs_map_changed(e);
	}
	pthread_mutex_unlock(&e->lock);
}

/* engine.lock held, no pending segments. */
void rs_alias_fini(struct rs_engine *e)
{
	uint64_t base, bytes, at = 0;
	struct rs_mapping *m;
	struct rs_handle *h;
	void *v;

	while ((v = rs_addrmap_next(e->map, at, &base, &bytes))) {
		m = rs_mapping_of(v);
		if (m)
			unmap(e, m);
		at = base + bytes;
	}
	while ((h = e->handles))
		drop_handle(e, h);
	while ((m = e->spare_mappings)) {
		e->spare_mappings = m->next;
		free(m);
	}
	if (e->reserved)
		rs_addrmap_destroy(e->reserved);
}
