/* SPDX-License-Identifier: MIT */
/*
 * Calls that nobody has a use for: found without a lock, and followed by marks at the allocations that they touch.
 *
 * Callers: the shim, any thread (rs_engine_idle_slow, rs_engine_again); follow.c. No locks are taken, nothing is
 * allocated.
 */
#include "tracker/callstate.h"

/*
 * Without windows, pending forwards and work of the shim's own on another stream, a call costs no lock. What
 * ran before the earliest pending forward needs no order with a replay beyond the program's own: whoever
 * changes a byte after that forward is ordered after it by the program.
 */
int rs_engine_idle_slow(struct rs_engine *e, const struct rs_thread *t, struct rs_queue q)
{
	uint64_t fences = __atomic_load_n(&e->fence_queues, __ATOMIC_RELAXED);
	const struct rs_known *known;

	if (rs_window_next(t->top) || __atomic_load_n(&e->interested, __ATOMIC_RELAXED))
		return 0;
	if (!fences)
		return 1;
	known = rs_known_queue(e, t, q);
	return known && known->id < 63 && fences == RS_QBIT(known->id);
}

/* The allocation (or tagged mapping) of an access; the caller's look-up holds while no address changed. */
static struct rs_alloc *loosely(const struct rs_engine *e, const struct rs_access *x, int looked_up)
{
	uint64_t base, bytes;

	if (looked_up && x->memory)
		return (struct rs_alloc *)(uintptr_t)x->memory;
	return rs_addrmap_find(e->map, x->addr, &base, &bytes);
}

/* What such a look rests on: read before anything else is. */
struct look {
	struct rs_engine *e;
	uint64_t moment, loose;
	uint64_t generation; /* of addresses */
	uint64_t calm;	     /* this moment and this queue, as in struct rs_lately */
	uint32_t epoch, q;
	uint8_t unmarked; /* a mark is missing */
};

/* Is a replay shown bytes that are not those of the program? Then it makes a difference who calls. */
static inline int may_show(const struct rs_engine *e)
{
	return __atomic_load_n(&e->replays, __ATOMIC_RELAXED) && e->config.mode != RS_MODE_AUDIT;
}

__attribute__((always_inline)) static inline int
begin(struct look *k, struct rs_engine *e, const struct rs_thread *t, struct rs_queue queue)
{
	const struct rs_known *known;

	if (rs_window_next(t->top))
		return 0;
	k->e = e;
	k->moment = __atomic_load_n(&e->moment, __ATOMIC_ACQUIRE);
	k->generation = rs_engine_generation(e);
	k->loose = __atomic_load_n(&e->version, __ATOMIC_RELAXED) + 1;
	k->epoch = __atomic_load_n(&e->claim_epoch, __ATOMIC_RELAXED);
	k->unmarked = 0;
	known = rs_known_queue(e, t, queue);
	if (__atomic_load_n(&e->process, __ATOMIC_RELAXED) || may_show(e) || !known ||
	    known->id >= 63)
		return 0;
	k->q = known->id;
	k->calm = k->moment << 7 | (uint64_t)k->q << 1;
	return 1;
}

/* Nothing of it is claimed by anybody, if it is written, and no work of the shim's own comes first, or is about to. */
static inline int is_free(struct look *k, struct rs_alloc *a, int write)
{
	if (rs_mapping_of(a) ||
	    (__atomic_load_n(&a->fence, __ATOMIC_RELAXED) &&
	     (__atomic_load_n(&a->planned, __ATOMIC_RELAXED) || rs_must_wait(k->e, a, k->q))))
		return 0;
	k->unmarked |= !(__atomic_load_n(&a->touched, __ATOMIC_RELAXED) & RS_QBIT(k->q));
	if (!write)
		return 1;
	k->unmarked |= __atomic_load_n(&a->loose, __ATOMIC_RELAXED) != k->loose;
	return __atomic_load_n(&a->claimed, __ATOMIC_RELAXED) != k->epoch;
}

/* What is there already is not stored again: threads share these lines. */
static void leave_marks(const struct look *k, struct rs_alloc *a, int write)
{
	if (!(__atomic_load_n(&a->touched, __ATOMIC_RELAXED) & RS_QBIT(k->q)))
		__atomic_fetch_or(&a->touched, RS_QBIT(k->q), __ATOMIC_RELAXED);
	if (write && __atomic_load_n(&a->loose, __ATOMIC_RELAXED) != k->loose)
		__atomic_store_n(&a->loose, k->loose, __ATOMIC_RELAXED);
}

static inline uint64_t end(const struct look *k, struct rs_queue queue)
{
	rs_note_use(k->e, k->q);
	if (k->e->config.order && !queue.stream &&
	    !__atomic_load_n(&k->e->legacy_unseen, __ATOMIC_RELAXED))
		__atomic_store_n(&k->e->legacy_unseen, 1, __ATOMIC_RELAXED);
	return k->moment;
}

/*
 * A call of no window that writes to nothing claimed: all that is to be remembered is who touched the
 * allocations, and that they changed. No lock, so that threads do not wait for each other. Mapped memory, a
 * stream seen first and the like take the long way.
 *
 * Then the same is true of every other call on these allocations until the moment changes: each word that is looked
 * at here changes only together with the moment (rs_moment_next), or is a mark that this call has left and nothing but
 * such a change takes away. The moment is read first: if anything changes while the call is looked at, what is
 * handed out is an old moment, which never comes again.
 */
uint64_t rs_engine_again(struct rs_engine *e, struct rs_thread *t, struct rs_queue queue,
			 const struct rs_access *x, unsigned n, uint64_t generation)
{
	struct look k;
	int looked_up;
	unsigned i;

	if (!begin(&k, e, t, queue))
		return 0;
	looked_up = generation == rs_engine_generation(e);
	for (i = 0; i < n; i++) {
		struct rs_alloc *a = loosely(e, &x[i], looked_up);

		if (a && !is_free(&k, a, x[i].dir & RS_WRITE))
			return 0;
	}
	for (i = 0; k.unmarked && i < n; i++) {
		struct rs_alloc *a = loosely(e, &x[i], looked_up);

		if (a && !rs_mapping_of(a))
			leave_marks(&k, a, x[i].dir & RS_WRITE);
	}
	return end(&k, queue);
}

/* --- by address alone ------------------------------------------------------------------------- */

/*
 * What was found out of one allocation is remembered by address, as the answer for a whole call is by the shim: it holds for
 * the same queue as long as the moment does, and for reading if it does for writing. Which allocation it is holds as long as
 * no address has changed its memory. So a call with addresses that no call had before costs a look at this table where
 * the thread has met their memory lately.
 */
static inline struct rs_lately *small_at(struct rs_thread *t, uint64_t addr)
{
	return &t->lately[(addr ^ addr >> 10) >> 12 & (RS_LATELY_SMALL - 1)];
}

static inline struct rs_lately *large_at(struct rs_thread *t, uint64_t addr)
{
	return &t->lately[RS_LATELY_SMALL + (addr >> 21 ^ addr >> 29) % RS_LATELY_LARGE];
}

static inline int covers(const struct rs_lately *l, uint64_t addr)
{
	return addr - l->base < l->bytes;
}

/* It is the memory of the address, and needs nothing. calm: that of the look, for writing. */
static inline int answers(const struct rs_lately *l, uint64_t calm, uint64_t addr, int write)
{
	return covers(l, addr) && (l->calm | !write) == calm;
}

static inline struct rs_lately *known_at(struct rs_thread *t, uint64_t generation, uint64_t addr)
{
	struct rs_lately *l = small_at(t, addr);

	if (!covers(l, addr))
		l = large_at(t, addr);
	return covers(l, addr) && t->lately_generation[l - t->lately] == generation ? l : NULL;
}

/*
 * NULL: there is none. The entry of a mapping has no allocation: it never needs nothing. generation: of addresses, before
 * anything is looked up.
 */
static inline struct rs_lately *meet(const struct rs_engine *e, struct rs_thread *t,
				     uint64_t generation, uint64_t addr)
{
	struct rs_lately *l = known_at(t, generation, addr);
	uint64_t base, bytes;
	void *v;

	if (l)
		return l;
	v = rs_addrmap_find(e->map, addr, &base, &bytes);
	if (!v)
		return NULL;
	l = bytes >> 21 ? large_at(t, addr) : small_at(t, addr);
	*l = (struct rs_lately){.base = base, .bytes = bytes, .alloc = rs_mapping_of(v) ? NULL : v};
	t->lately_generation[l - t->lately] = generation;
	return l;
}

const void *rs_engine_lookup_lately(struct rs_engine *e, struct rs_thread *t, uint64_t generation,
				    uint64_t addr, uint64_t *ret_base, uint64_t *ret_bytes)
{
	const struct rs_lately *l = meet(e, t, generation, addr);

	if (!l)
		return NULL;
	if (!l->alloc)
		return rs_engine_lookup(e, addr, ret_base, ret_bytes);
	*ret_base = l->base;
	*ret_bytes = l->bytes;
	return l->alloc;
}

/* Marks are left at once: if another address keeps the call from passing, this memory was written to all the same. */
static int pass(struct rs_lately *l, struct look *k, int write)
{
	k->unmarked = 0;
	if (!l->alloc || !is_free(k, l->alloc, write))
		return 0;
	if (k->unmarked)
		leave_marks(k, l->alloc, write);
	l->calm = k->calm | !!write;
	return 1;
}

/*
 * Of addresses that no answer is known for, before they are looked at one by one: what is read then lies anywhere in memory, and is
 * fetched at once.
 */
__attribute__((noinline)) static void fetch(struct rs_thread *t, const struct look *k,
					    const uint64_t *addr, unsigned n)
{
	unsigned i;

	rs_addrmap_fetch(k->e->map, addr, n);
	for (i = 0; i < n; i++) {
		const struct rs_lately *l = meet(k->e, t, k->generation, addr[i]);

		if (l)
			__builtin_prefetch(l->alloc);
	}
}

/* Words without an answer. */
static int ask(struct rs_thread *t, struct look *k, const uint64_t *word, unsigned n)
{
	unsigned i;

	if (n > 1)
		fetch(t, k, word, n);
	for (i = 0; i < n; i++) {
		struct rs_lately *l = meet(k->e, t, k->generation, word[i]);

		if (l && !pass(l, k, 1))
			return 0;
	}
	return 1;
}

/* The next word, if it is there. */
static inline int word_of(const uint8_t *at, int scattered, uint64_t *ret)
{
	const void *place = at;

	if (scattered)
		memcpy(&place, at, sizeof(place));
	if (__builtin_expect(!place, 0))
		return 0;
	memcpy(ret, place, sizeof(*ret));
	return 1;
}

static inline int needs_asking(struct rs_thread *t, uint64_t calm, uint64_t word)
{
	if (__builtin_expect(answers(small_at(t, word), calm, word, 1), 1))
		return 0;
	return word >= RS_ADDR_LEAST && !answers(large_at(t, word), calm, word, 1);
}

/* From the first word without an answer on. */
__attribute__((noinline)) static int ask_words(struct rs_thread *t, struct look *k,
					       const uint8_t *at, const uint8_t *last,
					       int scattered)
{
	uint64_t open[RS_ADDRMAP_FETCH];
	unsigned nopen = 0;

	for (; at < last; at += 8) {
		uint64_t word;

		if (!word_of(at, scattered, &word))
			return 0;
		if (!needs_asking(t, k->calm | 1, word))
			continue;
		open[nopen++] = word;
		if (nopen < RS_ADDRMAP_FETCH)
			continue;
		if (!ask(t, k, open, nopen))
			return 0;
		nopen = 0;
	}
	return !nopen || ask(t, k, open, nopen);
}

static inline int words_pass(struct rs_thread *t, struct look *k, const void *words, unsigned n,
			     int scattered)
{
	const uint8_t *at = words, *const last = at + 8 * (size_t)n;
	const uint64_t calm = k->calm | 1;
	uint64_t word;

	for (; at < last; at += 8) {
		/* nearly always this is all, and a loop of its own is what a compiler makes short */
		while (word_of(at, scattered, &word) && answers(small_at(t, word), calm, word, 1)) {
			at += 8;
			if (at == last)
				return 1;
		}
		if (!word_of(at, scattered, &word))
			return 0;
		if (needs_asking(t, calm, word))
			return ask_words(t, k, at, last, scattered);
	}
	return 1;
}

uint64_t rs_engine_again_words(struct rs_engine *e, struct rs_thread *t, struct rs_queue queue,
			       const void *words, unsigned n)
{
	struct look k;

	return begin(&k, e, t, queue) && words_pass(t, &k, words, n, 0) ? end(&k, queue) : 0;
}

uint64_t rs_engine_again_scattered(struct rs_engine *e, struct rs_thread *t, struct rs_queue queue,
				   void *const *words, unsigned n)
{
	struct look k;

	_Static_assert(sizeof(*words) == 8, "a pointer is as large as a word");
	return begin(&k, e, t, queue) && words_pass(t, &k, words, n, 1) ? end(&k, queue) : 0;
}

static inline uint64_t address_of(const uint8_t *block, const struct rs_reach *r)
{
	uint64_t addr;

	memcpy(&addr, block + r->at, sizeof(addr));
	return addr;
}

/* The memory of the address: is it the one that is reached? */
static inline int is_within(const struct rs_lately *l, uint64_t addr, const struct rs_reach *r)
{
	if (r->lo <= 0 && r->hi > 0)
		return 1;
	return rs_max64(addr + (uint64_t)r->lo, l->base) <
	       rs_min64(addr + (uint64_t)r->hi, l->base + l->bytes);
}

static inline int is_answered(struct rs_thread *t, uint64_t calm, uint64_t addr,
			      const struct rs_reach *r)
{
	const struct rs_lately *l = small_at(t, addr);
	int write = r->dir & RS_WRITE ? 1 : 0;

	if (answers(l, calm, addr, write) && is_within(l, addr, r))
		return 1;
	l = large_at(t, addr);
	return answers(l, calm, addr, write) && is_within(l, addr, r);
}

/* Leaves no marks yet. */
static int may_pass(struct rs_thread *t, struct look *k, uint64_t addr, const struct rs_reach *r)
{
	const struct rs_lately *l = meet(k->e, t, k->generation, addr);

	if (!l) /* nor is there anything at the first byte, if that is the same */
		return r->lo == 0;
	return l->alloc && is_within(l, addr, r) && is_free(k, l->alloc, r->dir & RS_WRITE);
}

static int pass_all(struct rs_thread *t, struct look *k, const uint8_t *block,
		    const struct rs_reach *r, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		uint64_t addr = address_of(block, &r[i]);
		struct rs_lately *l = NULL;

		if (addr && !is_answered(t, k->calm | 1, addr, &r[i]))
			l = meet(k->e, t, k->generation, addr);
		if (l && !pass(l, k, r[i].dir & RS_WRITE))
			return 0;
	}
	return 1;
}

/* There are some without an answer. */
__attribute__((noinline)) static int ask_reach(struct rs_thread *t, struct look *k,
					       const uint8_t *block, const struct rs_reach *r,
					       unsigned n)
{
	uint64_t open[RS_ADDRMAP_FETCH];
	unsigned i, nopen = 0;

	for (i = 0; i < n && nopen < RS_ADDRMAP_FETCH; i++) {
		open[nopen] = address_of(block, &r[i]);
		nopen += open[nopen] && !is_answered(t, k->calm | 1, open[nopen], &r[i]);
	}
	if (nopen > 1)
		fetch(t, k, open, nopen);
	for (i = 0; i < n; i++) {
		uint64_t addr = address_of(block, &r[i]);

		if (addr && !is_answered(t, k->calm | 1, addr, &r[i]) &&
		    !may_pass(t, k, addr, &r[i]))
			return 0;
	}
	return pass_all(t, k, block, r, n);
}

uint64_t rs_engine_again_reach(struct rs_engine *e, struct rs_thread *t, struct rs_queue queue,
			       const void *block, const struct rs_reach *r, unsigned n)
{
	struct look k;
	unsigned i;

	if (!begin(&k, e, t, queue))
		return 0;
	for (i = 0; i < n; i++) {
		uint64_t addr = address_of(block, &r[i]);

		if (addr && !is_answered(t, k.calm | 1, addr, &r[i])) {
			if (!ask_reach(t, &k, block, r, n))
				return 0;
			break;
		}
	}
	return end(&k, queue);
}

uint64_t rs_engine_again_copy(struct rs_engine *e, struct rs_thread *t, struct rs_queue queue,
			      uint64_t dst, uint64_t src)
{
	static const struct rs_reach reach[2] = {{0, 1, 0, RS_WRITE}, {0, 1, 8, RS_READ}};
	struct look k;

	if (!begin(&k, e, t, queue))
		return 0;
	if (answers(small_at(t, dst), k.calm | 1, dst, 1) &&
	    (!src || answers(small_at(t, src), k.calm | 1, src, 0)))
		return end(&k, queue);
	return rs_engine_again_reach(e, t, queue, (const uint64_t[]){dst, src}, reach, 2);
}

int rs_follow_loosely(struct rs_engine *e, struct rs_thread *t, struct rs_call *call)
{
	uint64_t moment = call->capturing || call->everything
				  ? 0
				  : rs_engine_again(e, t, call->q, call->access, call->naccess,
						    call->generation);

	if (!call->synchronous)
		call->calm = moment;
	return !!moment;
}
