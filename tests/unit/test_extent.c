/* SPDX-License-Identifier: MIT */
/* Version extents against a byte-by-byte model, and the partition invariants. */
#include "tests/tap.h"
#include "tracker/extent.h"

#define SIZE 200

static uint32_t rng = 1;

static uint32_t rnd(uint32_t n)
{
	rng = rng * 1103515245u + 12345u;
	return (rng >> 8) % n;
}

static int partition_ok(const struct rs_extmap *m)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		if (m->ext[i].off != at || !m->ext[i].len)
			return 0;
		at += m->ext[i].len;
	}
	return at == SIZE;
}

int main(void)
{
	int partition = 1, versions = 1, boundaries = 1, found = 1;

	for (int round = 0; round < 300; round++) {
		uint64_t model[SIZE] = {0};
		struct rs_extmap m;

		rs_extmap_init(&m, SIZE, 0);
		for (uint64_t ver = 1; ver < 40; ver++) {
			uint64_t len = 1 + rnd(SIZE), off = rnd((uint32_t)(SIZE - len + 1));

			if (rnd(3)) {
				rs_extmap_set(&m, off, len, ver, 0);
				for (uint64_t i = off; i < off + len; i++)
					model[i] = ver;
			} else {
				rs_extmap_split(&m, off, len);
				boundaries &= m.ext[rs_extmap_at(&m, off)].off == off;
				boundaries &= off + len == SIZE ||
					      m.ext[rs_extmap_at(&m, off + len)].off == off + len;
			}
			partition &= partition_ok(&m);
			for (uint64_t i = 0; i < SIZE; i++) {
				const struct rs_ext *e = &m.ext[rs_extmap_at(&m, i)];

				found &= i >= e->off && i < e->off + e->len;
				versions &= e->ver == model[i];
			}
		}
		rs_extmap_fini(&m);
	}
	ok(partition, "extents stay a partition");
	ok(found, "at finds the extent of every byte");
	ok(versions, "every byte has the version last given");
	ok(boundaries, "split makes boundaries");
	return tap_done();
}
