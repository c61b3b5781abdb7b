/* SPDX-License-Identifier: MIT */
/* What the kernels of random programs (random_program.h) compute, and the numbers that programs are made of. */
#ifndef TESTS_RANDOM_WORK_H
#define TESTS_RANDOM_WORK_H

#include "tests/unit/fake_dev.h"

static uint64_t rnd(uint32_t n)
{
	return fake_random(n);
}

static uint64_t hash(uint64_t h, const uint8_t *p, uint64_t n)
{
	while (n--)
		h = (h ^ *p++) * 0x100000001b3ull;
	return h ^ h >> 29;
}

static void expand(uint8_t *p, uint64_t n, uint64_t h, int add)
{
	for (uint64_t i = 0; i < n; i++) {
		h = h * 6364136223846793005ull + 1442695040888963407ull;
		p[i] = (uint8_t)((add ? p[i] : 0) + (h >> 56));
	}
}

/* What a kernel computes, on whichever memory: dst gets a function of src (and of itself: add). */
struct work {
	uint8_t *dst, *src, *src2;
	uint64_t bytes, src_bytes, src2_bytes, salt;
	int add;
};

static void compute(void *arg)
{
	const struct work *w = arg;
	uint64_t h = hash(w->salt, w->src, w->src_bytes);

	if (w->src2)
		h = hash(h, w->src2, w->src2_bytes);
	expand(w->dst, w->bytes, h, w->add);
}

#endif
