/* SPDX-License-Identifier: MIT */
/*
 * The engine's operations on the real driver (tracker/devops.h): those that take a list.
 *
 * The list goes into a table that is the kernel's parameter, by value (shim/kernels/tiles.h): a captured launch keeps
 * it, and nothing on the device is allocated for it. What does not fit goes into further launches. Where the driver
 * takes no such kernel, or some of the list is an array, each of them is done by itself.
 * Callers and locks as in devops.c.
 */
#include "shim/arrays.h"
#include "shim/devops.h"
#include "shim/kernels/tiles.h"

#include <stdlib.h>

_Static_assert(sizeof(struct rs_move_table) <= 4096, "any driver's limit of parameters");
_Static_assert(sizeof(struct rs_diff_table) <= 4096, "any driver's limit of parameters");
_Static_assert(sizeof(struct rs_move_wide_table) <= 32764, "limit of parameters since 12.1");

/* --- tables ------------------------------------------------------------------------------------- */

/* The parameter of a kernel that takes many rows: small, or wide, which is too large for a stack. */
struct table {
	CUfunction f;	       /* NULL: the driver takes none */
	unsigned long long *n; /* rows and tiles of the one in use */
	struct rs_move_row *row;
	unsigned room;
	struct rs_move_wide_table *wide; /* or NULL */
	struct rs_move_table small;
};

/* As large as `rows` and the driver want; either kernel. In the context. The caller frees wide. */
static void choose(struct table *t, struct rs_dev_context *c, uint64_t rows, enum rs_dev_kernel k,
		   enum rs_dev_kernel wide)
{
	t->wide = NULL;
	if (rows > RS_MOVE_ROWS && rs_dev_load(c, wide, &t->f) == CUDA_SUCCESS &&
	    (t->wide = malloc(sizeof(*t->wide)))) {
		t->n = &t->wide->rows;
		t->row = t->wide->row;
		t->room = RS_MOVE_WIDE_ROWS;
		return;
	}
	if (rs_dev_load(c, k, &t->f) != CUDA_SUCCESS)
		t->f = NULL;
	t->n = &t->small.rows;
	t->row = t->small.row;
	t->room = RS_MOVE_ROWS;
}

static CUresult launch_table(struct table *t, struct rs_queue q, uint64_t rows, uint64_t tiles)
{
	t->n[0] = rows;
	t->n[1] = tiles;
	return rs_dev_launch(t->f, q, RS_TILE_BLOCKS(tiles), RS_TILE_THREADS, (void *[]){t->n});
}

/* --- many copies -------------------------------------------------------------------------------- */

/* What is left of a list, and the table that takes the next part of it. */
struct moves {
	const struct rs_move *list, *end;
	struct table t;
};

/* The next move, with those that continue it on both sides. 0: none is left. */
static int next_move(struct moves *m, struct rs_move *ret)
{
	while (m->list < m->end && !m->list->bytes)
		m->list++;
	if (m->list == m->end)
		return 0;
	*ret = *m->list++;
	for (; m->list < m->end && m->list->dst == ret->dst + ret->bytes &&
	       m->list->src == ret->src + ret->bytes;
	     m->list++)
		ret->bytes += m->list->bytes;
	return 1;
}

static CUresult move_plain(struct moves *m, struct rs_queue q)
{
	CUresult r = CUDA_SUCCESS;
	struct rs_move x;

	while (r == CUDA_SUCCESS && next_move(m, &x))
		r = rs_real.cuMemcpyDtoDAsync_v2(x.dst, x.src, x.bytes, rs_dev_stream(q));
	return r;
}

static CUresult move_part(struct moves *m, struct rs_queue q)
{
	uint64_t rows = 0, tiles = 0;
	struct rs_move x;

	while (rows < m->t.room && next_move(m, &x)) {
		m->t.row[rows++] = (struct rs_move_row){.dst = (void *)(uintptr_t)x.dst,
							.src = (void *)(uintptr_t)x.src,
							.bytes = x.bytes,
							.first = tiles};
		tiles += RS_TILE_COUNT(x.dst, x.bytes);
	}
	if (!rows)
		return CUDA_SUCCESS;
	if (rows == 1) /* the driver's copy has the better choice of engines */
		return rs_real.cuMemcpyDtoDAsync_v2(x.dst, x.src, x.bytes, rs_dev_stream(q));
	return launch_table(&m->t, q, rows, tiles);
}

static int has_array(const struct rs_move *list, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (rs_arrays_range(list[i].dst) || rs_arrays_range(list[i].src))
			return 1;
	return 0;
}

int rs_dev_move(void *opaque, struct rs_queue q, const struct rs_move *list, uint64_t n)
{
	struct rs_dev_context *c = rs_dev_context_of(q.ctx);
	CUresult result = CUDA_SUCCESS;
	struct rs_dev_frame f;
	struct moves m;
	int r;

	(void)opaque;
	if (!c)
		return -ENOMEM;
	if (rs_unlikely(has_array(list, n)))
		return rs_dev_array_move(q, list, n);
	r = rs_dev_enter_queue(&f, q);
	if (r)
		return r;
	m.list = list;
	m.end = list + n;
	m.t.f = NULL;
	m.t.wide = NULL;
	if (n > 1)
		choose(&m.t, c, n, RS_DEV_move, RS_DEV_move_wide);
	if (!m.t.f)
		result = move_plain(&m, q);
	while (m.list < m.end && result == CUDA_SUCCESS)
		result = move_part(&m, q);
	free(m.t.wide);
	return rs_dev_leave(&f, result);
}

/* --- many digests ------------------------------------------------------------------------------- */

/* How many pieces of the list, from its beginning, went into the launch; 0: it has failed. */
static uint64_t digest_part(struct table *t, struct rs_queue q, const struct rs_piece *list,
			    uint64_t n, CUresult *ret)
{
	uint64_t rows = 0, chunks = 0, i;

	for (i = 0; i < n && rows < t->room; i++) {
		if (!list[i].bytes)
			continue;
		t->row[rows++] = (struct rs_move_row){.dst = list[i].out,
						      .src = (void *)(uintptr_t)list[i].addr,
						      .bytes = list[i].bytes,
						      .first = chunks};
		chunks += rs_digest_count(list[i].bytes);
	}
	*ret = rows ? launch_table(t, q, rows, chunks) : CUDA_SUCCESS;
	return *ret == CUDA_SUCCESS ? i : 0;
}

static int digest_each(struct rs_queue q, const struct rs_piece *list, uint64_t n)
{
	int r = 0;

	for (uint64_t i = 0; !r && i < n; i++)
		r = rs_dev_digest(NULL, q, list[i].addr, list[i].bytes, list[i].out);
	return r;
}

int rs_dev_digest_many(void *opaque, struct rs_queue q, const struct rs_piece *list, uint64_t n)
{
	struct rs_dev_context *c = rs_dev_context_of(q.ctx);
	CUresult result = CUDA_SUCCESS;
	uint64_t i, plain = 0, done;
	struct rs_dev_frame f;
	struct table t;
	int r;

	(void)opaque;
	if (!c)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		plain += !rs_arrays_range(list[i].addr);
	if (n < 2 || rs_unlikely(plain < n))
		return digest_each(q, list, n);
	r = rs_dev_enter_queue(&f, q);
	if (r)
		return r;
	choose(&t, c, n, RS_DEV_digest_many, RS_DEV_digest_many_wide);
	for (i = 0; t.f && i < n && result == CUDA_SUCCESS; i += done)
		done = digest_part(&t, q, list + i, n - i, &result);
	free(t.wide);
	r = rs_dev_leave(&f, result);
	return t.f ? r : digest_each(q, list, n);
}

/* --- many comparisons ---------------------------------------------------------------------------- */

/* As digest_part. */
static uint64_t diff_part(struct rs_diff_table *t, CUfunction f, struct rs_queue q,
			  const struct rs_versus *list, uint64_t n, CUresult *ret)
{
	uint64_t i;

	t->rows = t->pages = 0;
	for (i = 0; i < n && t->rows < RS_DIFF_ROWS; i++) {
		if (!list[i].bytes)
			continue;
		t->row[t->rows++] = (struct rs_diff_row){.a = (void *)(uintptr_t)list[i].a,
							 .b = (void *)(uintptr_t)list[i].b,
							 .out = list[i].out,
							 .bytes = list[i].bytes,
							 .first = t->pages};
		t->pages += rs_page_count(list[i].bytes);
	}
	*ret = t->rows ? rs_dev_launch(f, q, t->pages, RS_DIFF_THREADS, (void *[]){t})
		       : CUDA_SUCCESS;
	return *ret == CUDA_SUCCESS ? i : 0;
}

static int diff_each(struct rs_queue q, const struct rs_versus *list, uint64_t n)
{
	int r = 0;

	for (uint64_t i = 0; !r && i < n; i++)
		r = rs_dev_diff(NULL, q, list[i].a, list[i].b, list[i].bytes, list[i].out);
	return r;
}

int rs_dev_diff_many(void *opaque, struct rs_queue q, const struct rs_versus *list, uint64_t n)
{
	struct rs_dev_context *c = rs_dev_context_of(q.ctx);
	CUresult result = CUDA_SUCCESS;
	uint64_t i, plain = 0, done;
	struct rs_diff_table t;
	struct rs_dev_frame frame;
	CUfunction f = NULL;
	int r;

	(void)opaque;
	if (!c)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		plain += !rs_arrays_range(list[i].a) && !rs_arrays_range(list[i].b);
	if (n < 2 || rs_unlikely(plain < n))
		return diff_each(q, list, n);
	r = rs_dev_enter_queue(&frame, q);
	if (r)
		return r;
	if (rs_dev_load(c, RS_DEV_diff_many, &f) != CUDA_SUCCESS)
		f = NULL;
	for (i = 0; f && i < n && result == CUDA_SUCCESS; i += done)
		done = diff_part(&t, f, q, list + i, n - i, &result);
	r = rs_dev_leave(&frame, result);
	return f ? r : diff_each(q, list, n);
}
