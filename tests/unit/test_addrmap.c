/* SPDX-License-Identifier: MIT */
/*
 * Address map against a sorted array, at the edges of its granules and units, without memory, and
 * with readers running beside a writer (the ThreadSanitizer build is the point of that part).
 */
#include "tracker/addrmap.h"
#include "tests/tap.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#define MIB (1ull << 20)
#define GIB (1ull << 30)

static uint64_t rng_state = 1;

static uint64_t rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return rng_state * 0x2545f4914f6cdd1dull;
}

/* --- failing allocations -------------------------------------------------------------------- */

#if !SANITIZED
static long fail_after = -1; /* allocations until one fails; -1: never */

static int fails(void)
{
	return fail_after >= 0 && fail_after-- == 0;
}

extern void *__libc_memalign(size_t align, size_t bytes);

void *aligned_alloc(size_t align, size_t bytes)
{
	return fails() ? NULL : __libc_memalign(align, bytes);
}

/* glibc's own allocator does not come here: it has its private entry. */
void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	if (fails()) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, off);
}
#endif

/* --- the reference -------------------------------------------------------------------------- */

struct range {
	uint64_t base, end;
	void *value;
};

#define MAX_LIVE 4096
static struct range live[MAX_LIVE];
static unsigned nlive;

/* First range with base > addr. */
static unsigned above(uint64_t addr)
{
	unsigned lo = 0, hi = nlive;

	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;

		if (live[mid].base > addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static struct range *ref_find(uint64_t addr)
{
	unsigned i = above(addr);

	return i && live[i - 1].end > addr ? &live[i - 1] : NULL;
}

static int ref_insert(uint64_t base, uint64_t bytes, void *value)
{
	unsigned i = above(base);

	if ((i && live[i - 1].end > base) || (i < nlive && live[i].base < base + bytes))
		return -EEXIST;
	memmove(&live[i + 1], &live[i], (nlive - i) * sizeof(live[0]));
	live[i] = (struct range){base, base + bytes, value};
	nlive++;
	return 0;
}

static void ref_remove(unsigned i)
{
	memmove(&live[i], &live[i + 1], (nlive - i - 1) * sizeof(live[0]));
	nlive--;
}

static int same_at(struct rs_addrmap *m, uint64_t addr)
{
	struct range *want = ref_find(addr);
	uint64_t base = 7, bytes = 7;
	void *got;

	rs_addrmap_fetch(m, &addr, 1); /* changes nothing, wherever it is */
	got = rs_addrmap_find(m, addr, &base, &bytes);

	if (!want)
		return !got && base == 7 && bytes == 7;
	return got == want->value && base == want->base && bytes == want->end - want->base;
}

static int same_order(struct rs_addrmap *m)
{
	uint64_t from = 0, base, bytes;
	unsigned i;

	for (i = 0; i < nlive; i++) {
		if (rs_addrmap_next(m, from, &base, &bytes) != live[i].value ||
		    base != live[i].base || bytes != live[i].end - base)
			return 0;
		from = base + (rng() & 1 ? 1 : bytes);
	}
	return !rs_addrmap_next(m, from, &base, &bytes) && rs_addrmap_count(m) == nlive;
}

static uint64_t random_base(unsigned style)
{
	/* A few neighbourhoods, so that ranges meet; the last one ends at the top of 57 bits. */
	static const uint64_t near[] = {0, 0x7f0000000000, 0x1000000, 3ull << 38,
					(1ull << 57) - (1ull << 40)};
	uint64_t where = near[rng() % 5];
	uint64_t span = 1ull << (9 + rng() % 32);

	where += rng() % span;
	switch (style % 4) {
	case 0:
		return where & ~255ull;
	case 1:
		return where & ~511ull;
	case 2:
		return where & ~(2 * MIB - 1);
	default:
		return where;
	}
}

static void test_random(unsigned rounds)
{
	struct rs_addrmap *m = rs_addrmap_create();
	unsigned bad_insert = 0, bad_remove = 0, bad_find = 0, bad_order = 0, refused = 0, r;

	nlive = 0;
	for (r = 0; r < rounds; r++) {
		if (nlive < MAX_LIVE && rng() % 100 < (r / 20000 % 2 ? 45 : 60)) {
			uint64_t base = random_base(rng() % 4);
			uint64_t bytes = 1 + rng() % (1ull << rng() % (rng() % 40 ? 26 : 37));
			void *value = (void *)(uintptr_t)(r + 1);
			int got, want;

			if (rng() % 4 == 0)
				bytes = (bytes + 2 * MIB - 1) & ~(2 * MIB - 1);
			if (rng() % 4 == 0 && nlive) /* right behind another one */
				base = live[rng() % nlive].end;
			got = rs_addrmap_insert(m, base, bytes, value);
			want = base + bytes > 1ull << 57 ? -EINVAL : ref_insert(base, bytes, value);
			bad_insert += got != want;
			refused += got == -EEXIST;
		} else if (nlive) {
			unsigned i = rng() % nlive;
			struct range gone = live[i];

			bad_remove += gone.end - gone.base > 1 &&
				      rs_addrmap_remove(m, gone.base + 1) != NULL &&
				      (i + 1 == nlive || live[i + 1].base != gone.base + 1);
			bad_remove += rs_addrmap_remove(m, gone.base) != gone.value;
			ref_remove(i);
			bad_find += !same_at(m, gone.base) + !same_at(m, gone.end - 1) +
				    !same_at(m, gone.end);
		}
		if (nlive) {
			struct range *x = &live[rng() % nlive];

			bad_find += !same_at(m, x->base) + !same_at(m, x->end - 1) +
				    !same_at(m, x->end) + !same_at(m, x->base - 1) +
				    !same_at(m, x->base + (x->end - x->base) / 2);
		}
		bad_find += !same_at(m, random_base(3)) + !same_at(m, rng());
		if (r % 4096 == 0)
			bad_order += !same_order(m);
	}
	bad_order += !same_order(m);
	is_u64(bad_insert, 0, "random inserts answer as the sorted array does");
	is_u64(bad_remove, 0, "removals return the value, by exact base only");
	is_u64(bad_find, 0, "finds agree inside, at both edges and outside");
	is_u64(bad_order, 0, "next walks all ranges in address order; count agrees");
	ok(refused > rounds / 50, "overlaps were tried (%u refused)", refused);
	while (nlive) {
		unsigned i = rng() % nlive;

		bad_remove += rs_addrmap_remove(m, live[i].base) != live[i].value;
		ref_remove(i);
	}
	ok(!bad_remove && !rs_addrmap_count(m) && !rs_addrmap_next(m, 0, NULL, NULL),
	   "empty in the end");
	rs_addrmap_destroy(m);
}

static void test_arguments(void)
{
	struct rs_addrmap *m = rs_addrmap_create();
	int v, w;

	is_u64(rs_addrmap_insert(m, 4096, 0, &v), -EINVAL, "an empty range is refused");
	is_u64(rs_addrmap_insert(m, ~0ull - 4, 16, &v), -EINVAL, "a wrapping range is refused");
	is_u64(rs_addrmap_insert(m, 4096, 1, NULL), -EINVAL, "a NULL value is refused");
	is_u64(rs_addrmap_insert(m, (1ull << 57) - 1, 1, &v), 0, "the last byte of 57 bits");
	is_u64(rs_addrmap_insert(m, (1ull << 57) - 1, 2, &v), -EINVAL, "and no byte beyond");
	ok(rs_addrmap_find(m, (1ull << 57) - 1, NULL, NULL) == &v, "found without out-parameters");
	ok(!rs_addrmap_find(m, 1ull << 57, NULL, NULL) && !rs_addrmap_find(m, ~0ull, NULL, NULL),
	   "nothing above 57 bits");
	is_u64(rs_addrmap_insert(m, 0, 64 * GIB, &w), 0, "64 GiB at 0");
	ok(rs_addrmap_find(m, 64 * GIB - 1, NULL, NULL) == &w &&
		   !rs_addrmap_find(m, 64 * GIB, NULL, NULL),
	   "with its edges");
	is_u64(rs_addrmap_insert(m, 32 * GIB + 12345, 1, &v), -EEXIST, "overlap inside");
	ok(!rs_addrmap_remove(m, 1) && !rs_addrmap_remove(m, 1ull << 57), "no range has that base");
	ok(rs_addrmap_remove(m, 0) == &w && !rs_addrmap_remove(m, 0), "removed once");
	rs_addrmap_destroy(m);
	rs_addrmap_destroy(NULL);
}

/* One unit full of one-byte ranges: the chain. */
static void test_chain(void)
{
	struct rs_addrmap *m = rs_addrmap_create();
	static char value[512];
	uint64_t base = 0x7f1234567800;
	unsigned i, bad = 0;

	for (i = 0; i < 512; i += 2)
		bad += rs_addrmap_insert(m, base + (i * 37 % 512), 1, &value[i * 37 % 512]) != 0;
	for (i = 0; i < 512; i++)
		bad += rs_addrmap_find(m, base + i, NULL, NULL) != (i % 2 ? NULL : &value[i]);
	is_u64(bad, 0, "256 ranges in one unit");
	for (i = 0; i < 512; i += 4)
		bad += rs_addrmap_remove(m, base + i) != &value[i];
	for (i = 0; i < 512; i++)
		bad += rs_addrmap_find(m, base + i, NULL, NULL) != (i % 4 == 2 ? &value[i] : NULL);
	is_u64(bad, 0, "every second one removed");
	rs_addrmap_destroy(m);
}

static void test_nomem(void)
{
#if SANITIZED
	tap_diag("allocation failures are not injected in a sanitizer build");
#else
	struct rs_addrmap *m;
	unsigned k, failures = 0, bad = 0;
	int v, w, ret;

	fail_after = 0;
	ok(!rs_addrmap_create(), "create without memory");
	fail_after = -1;
	m = rs_addrmap_create();
	rs_addrmap_insert(m, 0x10000, 4096, &v);
	for (k = 0; k < 16; k++) {
		fail_after = k % 4;
		/* From a fresh table into the next one, with a leaf at either end. */
		ret = rs_addrmap_insert(m, (k + 1) * (1ull << 40) - 12345, 3 * MIB, &w);
		fail_after = -1;
		failures += ret == -ENOMEM;
		bad += ret != 0 && ret != -ENOMEM;
		if (ret == -ENOMEM)
			bad += rs_addrmap_find(m, (k + 1) * (1ull << 40), NULL, NULL) ||
			       rs_addrmap_next(m, k * (1ull << 40) + (1ull << 30), NULL, NULL);
		else
			bad += rs_addrmap_remove(m, (k + 1) * (1ull << 40) - 12345) != &w;
		bad += rs_addrmap_count(m) != 1 || rs_addrmap_find(m, 0x10fff, NULL, NULL) != &v;
	}
	ok(failures > 4, "%u of 16 inserts met a failed allocation", failures);
	is_u64(bad, 0, "they say -ENOMEM and change nothing");
	rs_addrmap_destroy(m);
#endif
}

/* Enough ranges for several chunks of nodes and all sorts of leaves, within the promised memory. */
static void test_memory(void)
{
	const unsigned n = 100000;
	struct rs_addrmap *m = rs_addrmap_create();
	struct mallinfo2 a = mallinfo2(), b;
	uint64_t before = rs_addrmap_table_bytes(m), table, used;
	unsigned i, bad = 0;
	char *v = (char *)0x1000;

	for (i = 0; i < n; i++)
		bad += rs_addrmap_insert(m, (1ull << 45) + i * 1536ull, 1024, v + i) != 0;
	table = rs_addrmap_table_bytes(m) - before;
	b = mallinfo2();
	for (i = 0; i < n; i++)
		bad += rs_addrmap_find(m, (1ull << 45) + i * 1536ull + 1023, NULL, NULL) != v + i;
	is_u64(bad, 0, "100,000 ranges");
	used = b.uordblks + b.hblkhd - a.uordblks - a.hblkhd;
	table -= before; /* the second table, as large as the root, is mapped, not allocated */
	tap_diag("%.1f bytes a range, of them %.1f in leaves", (double)used / n, (double)table / n);
	ok(SANITIZED || used <= table + 64ull * n, "at most 64 bytes a range besides the table");
	before = rs_addrmap_table_bytes(m);
	for (i = 0; i < n; i++)
		bad += rs_addrmap_remove(m, (1ull << 45) + i * 1536ull) != v + i;
	for (i = 0; i < n; i++)
		bad += rs_addrmap_insert(m, (1ull << 46) + i * 1536ull, 1024, v + i) != 0;
	ok(!bad && rs_addrmap_table_bytes(m) <= before + 3 * MIB,
	   "other addresses reuse the leaves of removed ones");
	rs_addrmap_destroy(m);
}

/* --- readers beside a writer ---------------------------------------------------------------- */

#define STABLE 64
#define CHURN  64

struct shared {
	struct rs_addrmap *m;
	struct range stable[STABLE], churn[CHURN];
	_Atomic int stop;
	_Atomic uint64_t wrong, finds, hits;
};

static void *reader(void *arg)
{
	struct shared *s = arg;
	uint64_t x = (uintptr_t)&x | 1, base, bytes, finds = 0, hits = 0, wrong = 0;

	while (!atomic_load(&s->stop)) {
		struct range *r;
		void *got;

		x = x * 6364136223846793005ull + 1442695040888963407ull;
		r = &s->stable[(x >> 33) % STABLE];
		rs_addrmap_fetch(s->m, (const uint64_t[]){r->base, x >> 7, x >> 20}, 3);
		got = rs_addrmap_find(s->m, r->base + (x >> 40) % (r->end - r->base), &base,
				      &bytes);
		wrong += got != r->value || base != r->base || bytes != r->end - r->base;
		r = &s->churn[(x >> 45) % CHURN];
		got = rs_addrmap_find(s->m, r->base + (x >> 40) % (r->end - r->base), &base,
				      &bytes);
		/* Present or not: but what is there must be whole. */
		wrong += got && (got != r->value || base != r->base || bytes != r->end - r->base);
		hits += !!got;
		finds += 2;
	}
	atomic_fetch_add(&s->wrong, wrong);
	atomic_fetch_add(&s->finds, finds);
	atomic_fetch_add(&s->hits, hits);
	return NULL;
}

/* Neighbours that share units, subs, leaves and granules; all disjoint. */
static void layout(struct shared *s)
{
	static const uint64_t size[] = {100, 256, 511, 512, 3000, 40000, 3 * MIB, 2 * MIB};
	static char value[STABLE + CHURN];
	uint64_t at = 0x7f0000000000;
	unsigned i;

	for (i = 0; i < STABLE + CHURN; i++) {
		struct range *r = i % 2 ? &s->churn[i / 2] : &s->stable[i / 2];
		uint64_t bytes = size[i * 5 % 8];

		if (bytes == 2 * MIB)
			at = (at + 2 * MIB - 1) & ~(2 * MIB - 1);
		*r = (struct range){at, at + bytes, &value[i]};
		at += bytes;
		if (i % 2 == 0)
			rs_addrmap_insert(s->m, r->base, bytes, r->value);
	}
}

static void test_threads(void)
{
	static struct shared s;
	pthread_t readers[3];
	unsigned i, round, bad = 0;
	uint8_t in[CHURN] = {0};

	s.m = rs_addrmap_create();
	layout(&s);
	for (i = 0; i < 3; i++)
		pthread_create(&readers[i], NULL, reader, &s);
	for (round = 0; round < (SANITIZED ? 100000 : 1000000); round++) {
		struct range *r = &s.churn[i = rng() % CHURN];

		if (in[i])
			bad += rs_addrmap_remove(s.m, r->base) != r->value;
		else
			bad += rs_addrmap_insert(s.m, r->base, r->end - r->base, r->value) != 0;
		in[i] ^= 1;
	}
	atomic_store(&s.stop, 1);
	for (i = 0; i < 3; i++)
		pthread_join(readers[i], NULL);
	is_u64(bad, 0, "the writer met no refusal");
	is_u64(s.wrong, 0, "readers never missed a live range nor saw a torn one");
	ok(s.finds > 1000 && s.hits > 100, "%" PRIu64 " finds, %" PRIu64 " of moving ranges hit",
	   s.finds, s.hits);
	rs_addrmap_destroy(s.m);
}

int main(void)
{
	test_arguments();
	test_chain();
	test_random(SANITIZED ? 40000 : 200000);
	test_nomem();
	test_memory();
	test_threads();
	return tap_done();
}
