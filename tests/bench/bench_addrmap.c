/* SPDX-License-Identifier: MIT */
/*
 * Address map: nanoseconds a find, an insert and its remove, and bytes a live range, against the
 * number of live ranges, in processor time. Finds are of random ranges at random offsets, drawn beforehand.
 */
#include "tracker/addrmap.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define FINDS 1000000u
#define RUNS  7

struct range {
	uint64_t base, bytes;
};

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static uint64_t rng(void)
{
	static uint64_t x = 88172645463325252ull;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

/* Sizes as a training step has them: mostly small, some of many megabytes, 512-byte aligned. */
static void layout(struct range *r, unsigned n)
{
	uint64_t at = 0x7f0000000000;
	unsigned i;

	for (i = 0; i < n; i++) {
		unsigned k = rng() % 10;

		r[i].bytes = k < 6 ? 512 + rng() % 8192 : k < 9 ? rng() % 1000000 + 1 : 8u << 20;
		r[i].base = at;
		at += (r[i].bytes + 511) & ~511ull;
	}
}

/*
 * repeat: the same 64 addresses in the same order, as the arguments of a loop of launches are, among n
 * live ranges. Else every find is of another random range, which shows the caches' limits.
 */
static double bench_find(struct rs_addrmap *m, const struct range *r, unsigned n, int repeat)
{
	uint64_t *addr = malloc(FINDS * sizeof(*addr));
	double best = 1e30;
	uintptr_t sum = 0;
	unsigned i, run;

	for (i = 0; i < FINDS; i++) {
		const struct range *x = &r[rng() % n];

		addr[i] = repeat && i >= 64 ? addr[i - 64] : x->base + rng() % x->bytes;
	}
	for (run = 0; run < RUNS; run++) {
		double t = now_ns();

		for (i = 0; i < FINDS; i++) {
			uint64_t base, bytes;

			sum += (uintptr_t)rs_addrmap_find(m, addr[i], &base, &bytes) + base;
		}
		t = (now_ns() - t) / FINDS;
		best = t < best ? t : best;
	}
	__asm__ volatile("" : : "r"(sum));
	free(addr);
	return best;
}

/* repeat: as with finds, the same 64 ranges in turn. */
static double bench_pair(struct rs_addrmap *m, const struct range *r, unsigned n, int repeat)
{
	enum { PAIRS = 200000 };
	unsigned *pick = malloc(PAIRS * sizeof(*pick));
	double best = 1e30;
	unsigned i, run;

	for (i = 0; i < PAIRS; i++)
		pick[i] = repeat && i >= 64 ? pick[i - 64] : rng() % n;
	for (run = 0; run < RUNS; run++) {
		double t = now_ns();

		for (i = 0; i < PAIRS; i++) {
			const struct range *x = &r[pick[i]];
			void *v = rs_addrmap_remove(m, x->base);

			if (!v || rs_addrmap_insert(m, x->base, x->bytes, v))
				abort();
		}
		t = (now_ns() - t) / PAIRS;
		best = t < best ? t : best;
	}
	free(pick);
	return best;
}

int main(void)
{
	static const unsigned counts[] = {10, 1000, 100000};
	unsigned c, i;

	puts("            find ns         insert+remove ns     bytes a range");
	puts("   live     loop   random      loop   random      node   leaves");
	for (c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
		unsigned n = counts[c];
		struct range *r = malloc(n * sizeof(*r));
		struct rs_addrmap *m = rs_addrmap_create();
		uint64_t root = rs_addrmap_table_bytes(m), tables;
		struct mallinfo2 a = mallinfo2(), b;
		double used;

		layout(r, n);
		for (i = 0; i < n; i++)
			if (rs_addrmap_insert(m, r[i].base, r[i].bytes, (char *)0x1000 + i))
				abort();
		b = mallinfo2();
		used = (double)(b.uordblks + b.hblkhd) - (double)(a.uordblks + a.hblkhd);
		tables = (r[n - 1].base >> 39) - (r[0].base >> 39) + 1;
		tables = rs_addrmap_table_bytes(m) - root - tables * root;
		printf("%7u %8.2f %8.2f %9.1f %8.1f %9.1f %8.1f\n", n, bench_find(m, r, n, 1),
		       bench_find(m, r, n, 0), bench_pair(m, r, n, 1), bench_pair(m, r, n, 0),
		       (used - tables) / n, (double)tables / n);
		rs_addrmap_destroy(m);
		free(r);
	}
	return 0;
}
