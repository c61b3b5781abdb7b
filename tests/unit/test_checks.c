/* SPDX-License-Identifier: MIT */
/* The comparisons of a replay, looked up by what they compare, next to a table of all there can be: tracker/compare.c. */
#include "tests/tap.h"
#include "tracker/model.h"

#include <stdlib.h>

#define ALLOCS 3u
#define OFFS   3000u
#define KINDS  3u

static uint8_t there[KINDS][ALLOCS][OFFS];

int main(void)
{
	static const enum rs_check_kind kind[KINDS] = {RS_CHECK_ENTRY, RS_CHECK_SAMPLE,
						       RS_CHECK_RACE};
	struct rs_alloc *a = calloc(ALLOCS, sizeof(*a));
	struct rs_replay r = {0};
	unsigned wrong = 0, twice = 0;
	uint64_t seed = 7;

	for (unsigned i = 0; i < ALLOCS; i++)
		a[i].serial = i + 1;
	for (unsigned i = 0; i < 20000; i++) {
		unsigned k, n, off;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		k = (unsigned)(seed >> 33) % KINDS;
		n = (unsigned)(seed >> 36) % ALLOCS;
		off = (unsigned)(seed >> 40) % (i < 100 ? 20 : OFFS);
		wrong += rs_check_has(&r, kind[k], &a[n], off) != there[k][n][off];
		twice += there[k][n][off];
		if (there[k][n][off])
			continue;
		there[k][n][off] = 1;
		rs_check_add(&r, kind[k], &a[n], off, 1, NULL, NULL);
	}
	is_u64(wrong, 0, "what has been compared is known, and nothing else");
	ok(twice > 1000 && r.checks.n > 10000, "of %u comparisons, asked again for %u", r.checks.n,
	   twice);
	free(r.slots);
	free(r.checks.v);
	free(a);
	return tap_done();
}
