/* SPDX-License-Identifier: MIT */
/* See extent.h. Plain arrays: an allocation seldom has more than a handful of extents. */
#include "tracker/extent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void rs_extmap_init(struct rs_extmap *m, uint64_t size, uint64_t ver)
{
	memset(m, 0, sizeof(*m));
	m->one = (struct rs_ext){.off = 0, .len = size, .ver = ver};
	m->ext = &m->one;
	m->n = 1;
	m->cap = 1;
}

void rs_extmap_fini(struct rs_extmap *m)
{
	if (m->ext != &m->one)
		free(m->ext);
	m->ext = NULL;
	m->n = 0;
}

uint32_t rs_extmap_at(const struct rs_extmap *m, uint64_t off)
{
	uint32_t lo = 0, hi = m->n;

	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (m->ext[mid].off <= off)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

static int reserve(struct rs_extmap *m, uint32_t n)
{
	struct rs_ext *ext;
	uint32_t cap = m->cap;

	if (n <= cap)
		return 0;
	while (cap < n)
		cap = cap < 8 ? 8 : cap * 2;
	ext = malloc(cap * sizeof(*ext));
	if (!ext)
		return -ENOMEM;
	memcpy(ext, m->ext, m->n * sizeof(*ext));
	if (m->ext != &m->one)
		free(m->ext);
	m->ext = ext;
	m->cap = cap;
	return 0;
}

/* Room for one more extent was reserved by the caller. */
static void cut(struct rs_extmap *m, uint64_t off)
{
	uint32_t i = rs_extmap_at(m, off);
	struct rs_ext *e = &m->ext[i];

	if (e->off == off || off >= e->off + e->len)
		return;
	memmove(e + 2, e + 1, (m->n - i - 1) * sizeof(*e));
	e[1] = *e;
	e[1].off = off;
	e[1].len = e->off + e->len - off;
	e->len = off - e->off;
	m->n++;
}

static int is_boundary(const struct rs_extmap *m, uint64_t off)
{
	const struct rs_ext *e = &m->ext[rs_extmap_at(m, off)];

	return e->off == off || off >= e->off + e->len;
}

int rs_extmap_split(struct rs_extmap *m, uint64_t off, uint64_t len)
{
	int err;

	if (is_boundary(m, off) && is_boundary(m, off + len))
		return 0;
	err = reserve(m, m->n + 2);
	if (err)
		return err;
	cut(m, off);
	cut(m, off + len);
	return 0;
}

int rs_extmap_set(struct rs_extmap *m, uint64_t off, uint64_t len, uint64_t ver, int claimed)
{
	uint32_t first, last;
	int err;

	if (!len)
		return 0;
	err = rs_extmap_split(m, off, len);
	if (err)
		return err;
	first = rs_extmap_at(m, off);
	last = rs_extmap_at(m, off + len - 1);
	m->ext[first] =
		(struct rs_ext){.off = off, .len = len, .ver = ver, .claimed = (uint8_t)claimed};
	memmove(&m->ext[first + 1], &m->ext[last + 1], (m->n - last - 1) * sizeof(m->ext[0]));
	m->n -= last - first;
	return 0;
}
