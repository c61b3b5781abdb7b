/* SPDX-License-Identifier: MIT */
/*
 * What an allocator of the program's own has given out of memory that the driver sees as one allocation: PyTorch's caching
 * allocator, pools. It stands for two things that the driver's allocations stand for elsewhere: how far a pointer reaches of
 * which nothing else is known, and that what is given out inside of a window is not state.
 *
 * An address map of its own, by address since mapped memory may be given out, too. Its values are no objects but births: the
 * engine's clock when the bytes were given out. What is given out again, or goes with the memory below it, is
 * forgotten here by itself, so what is taken back need not be told. What is given out must be: else a pointer into it may
 * count as one into a smaller block that was there before.
 *
 * Callers: the engine, with its lock held; rs_suballoc_of by locate.c and steady.c, also of an engine inside of a capture,
 * whose memory is that of the outer one.
 */
#include <errno.h>

#include "tracker/callstate.h"

struct rs_suballoc rs_suballoc_of(const struct rs_engine *outer, const struct rs_call *call,
				  const struct rs_access *x)
{
	const struct rs_addrmap *m = __atomic_load_n(&outer->suballocs, __ATOMIC_ACQUIRE);
	struct rs_suballoc s = {0, 0, 0, 0};

	if (!m || call->deferred)
		return s;
	s.given = (uintptr_t)rs_addrmap_find(m, x->addr, &s.base, &s.bytes);
	s.holds_all = s.given && (x->whole || x->bytes <= s.bytes - (x->addr - s.base));
	return s;
}

void rs_suballocs_forget(struct rs_engine *e, uint64_t addr, uint64_t bytes)
{
	struct rs_addrmap *m = e->suballocs;
	uint64_t base, size;

	if (!m || !rs_addrmap_count(m))
		return;
	if (!rs_addrmap_find(m, addr, &base, &size) && !rs_addrmap_next(m, addr, &base, &size))
		return;
	while (base < addr + bytes) {
		uint64_t end = base + size;

		rs_addrmap_remove(m, base);
		if (!rs_addrmap_next(m, end, &base, &size))
			return;
	}
}

/* Is all of it memory of the program's, in one allocation or one reservation? */
static int is_known(struct rs_engine *e, uint64_t addr, uint64_t bytes)
{
	uint64_t base, size;

	return rs_engine_lookup(e, addr, &base, &size) && bytes <= size - (addr - base);
}

static int add(struct rs_engine *e, uint64_t addr, uint64_t bytes)
{
	if (!bytes)
		return -EINVAL;
	if (!is_known(e, addr, bytes))
		return -ENOENT;
	if (!e->suballocs) {
		struct rs_addrmap *m = rs_addrmap_create();

		if (!m)
			return -ENOMEM;
		__atomic_store_n(&e->suballocs, m, __ATOMIC_RELEASE);
	}
	rs_suballocs_forget(e, addr, bytes);
	return rs_addrmap_insert(e->suballocs, addr, bytes, (void *)(uintptr_t)++e->clock);
}

int rs_engine_suballoc(struct rs_engine *e, uint64_t addr, uint64_t bytes)
{
	int r;

	pthread_mutex_lock(&e->lock);
	r = add(e, addr, bytes);
	pthread_mutex_unlock(&e->lock);
	return r;
}

int rs_engine_subfree(struct rs_engine *e, uint64_t addr)
{
	int found;

	pthread_mutex_lock(&e->lock);
	found = e->suballocs && rs_addrmap_remove(e->suballocs, addr);
	pthread_mutex_unlock(&e->lock);
	return found ? 0 : -ENOENT;
}
