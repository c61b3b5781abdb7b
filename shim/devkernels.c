/* SPDX-License-Identifier: MIT */
/*
 * The engine's operations on the real driver (tracker/devops.h): those that are kernels of ours.
 *
 * Each kernel is a module of its own, loaded into a context at its first launch there: who needs none pays for
 * none. A kernel's arguments, the table of a move included, travel in the launch by value. So a launch allocates
 * nothing, waits for nothing and is captured into a graph like any other.
 * A kernel that the driver refuses is asked for once a context; moves then fall back to plain copies, many digests
 * to single ones.
 * Callers and locks as in devops.c.
 */
#include "shim/arrays.h"
#include "shim/devops.h"
#include "shim/kernels/tiles.h"
#include "shim/log.h"

#include <stdlib.h>

/* A warp a chunk. */
#define DIGEST_THREADS 128
#define DIGEST_CHUNKS  (DIGEST_THREADS / 32)

/* Blocks, at most: every kernel takes its pieces in strides of all of them. */
#define GRID 65535u

_Static_assert(RS_DIFF_PAGE == RS_PAGE, "the kernel's pages are the engine's");
_Static_assert(sizeof(struct rs_move_table) <= 4096, "any driver's limit of parameters");
_Static_assert(sizeof(struct rs_move_wide_table) <= 32764, "limit of parameters since 12.1");

#define X(name)                                                                                    \
	__asm__(".pushsection .rodata\n"                                                           \
		".globl rs_ptx_" #name "\n"                                                        \
		".hidden rs_ptx_" #name "\n"                                                       \
		"rs_ptx_" #name ":\n"                                                              \
		".incbin \"shim/kernels/" #name ".ptx\"\n"                                         \
		".byte 0\n"                                                                        \
		".popsection\n");                                                                  \
	extern const char rs_ptx_##name[] __attribute__((visibility("hidden")));
RS_DEV_KERNELS(X)
#undef X

static const struct {
	const char *name, *ptx;
} kernels[] = {
#define X(name) {"rs_" #name, rs_ptx_##name},
	RS_DEV_KERNELS(X)
#undef X
};

/* Another thread may have been quicker: then its module stays and ours is dropped. */
static CUfunction publish(struct rs_dev_context *c, enum rs_dev_kernel k, CUfunction f,
			  CUmodule module)
{
	rs_dev_lock();
	if (!c->kernel[k]) {
		__atomic_store_n(&c->kernel[k], f, __ATOMIC_RELEASE);
		module = NULL;
	}
	f = c->kernel[k];
	rs_dev_unlock();
	if (module)
		rs_real.cuModuleUnload(module);
	return f;
}

/* In the context. */
static CUresult load(struct rs_dev_context *c, enum rs_dev_kernel k, CUfunction *ret)
{
	CUmodule module;
	CUfunction f;
	CUresult r;

	*ret = __atomic_load_n(&c->kernel[k], __ATOMIC_ACQUIRE);
	if (rs_likely(*ret))
		return CUDA_SUCCESS;
	if (__atomic_load_n(&c->refused, __ATOMIC_RELAXED) & 1u << k)
		return CUDA_ERROR_NOT_SUPPORTED;
	r = rs_real.cuModuleLoadData(&module, kernels[k].ptx);
	if (r == CUDA_SUCCESS) {
		r = rs_real.cuModuleGetFunction(&f, module, kernels[k].name);
		if (r == CUDA_SUCCESS)
			*ret = publish(c, k, f, module);
		else
			rs_real.cuModuleUnload(module);
	}
	if (r == CUDA_SUCCESS || r == CUDA_ERROR_OUT_OF_MEMORY)
		return r;
	__atomic_fetch_or(&c->refused, 1u << k, __ATOMIC_RELAXED);
	if (k != RS_DEV_move_wide && k != RS_DEV_digest_many_wide) /* drivers before 12.1 may */
		rs_log(RS_LOG_ERROR, "kernel %s cannot be loaded: driver error %d", kernels[k].name,
		       (int)r);
	return r;
}

int rs_dev_is_own(CUfunction f)
{
	struct rs_dev_context *c;
	int own = 0;

	rs_dev_lock();
	for (c = rs_dev_contexts(); c && !own; c = c->next)
		for (unsigned i = 0; f && i < RS_DEV_NKERNELS; i++)
			own |= __atomic_load_n(&c->kernel[i], __ATOMIC_RELAXED) == f;
	rs_dev_unlock();
	return own;
}

static CUresult launch(CUfunction f, struct rs_queue q, uint64_t blocks, unsigned threads,
		       void **params)
{
	return rs_real.cuLaunchKernel(f, (unsigned)(blocks < GRID ? blocks : GRID), 1, 1, threads,
				      1, 1, 0, rs_dev_stream(q), params, NULL);
}

/* Load and launch as one operation. */
static int run(struct rs_queue q, enum rs_dev_kernel k, uint64_t blocks, unsigned threads,
	       void **params)
{
	struct rs_dev_context *c = rs_dev_context_of(q.ctx);
	struct rs_dev_frame frame;
	CUfunction f;
	CUresult result;
	int r;

	if (!c)
		return -ENOMEM;
	if (!blocks)
		return 0;
	r = rs_dev_enter_queue(&frame, q);
	if (r)
		return r;
	result = load(c, k, &f);
	if (result == CUDA_SUCCESS)
		result = launch(f, q, blocks, threads, params);
	return rs_dev_leave(&frame, result);
}

int rs_dev_digest(void *opaque, struct rs_queue q, uint64_t addr, uint64_t bytes, uint64_t *out)
{
	uint64_t blocks = (rs_digest_count(bytes) + DIGEST_CHUNKS - 1) / DIGEST_CHUNKS;
	uint64_t target = (uintptr_t)out;
	void *params[] = {&addr, &bytes, &target};

	(void)opaque;
	if (rs_unlikely(rs_arrays_range(addr)))
		return rs_dev_array_digest(q, addr, bytes, out);
	return run(q, RS_DEV_digest, blocks, DIGEST_THREADS, params);
}

static uint64_t blocks_of(uint64_t tiles)
{
	return (tiles + RS_TILE_WARPS - 1) / RS_TILE_WARPS;
}

int rs_dev_swap(void *opaque, struct rs_queue q, uint64_t a, uint64_t b, uint64_t bytes)
{
	uint64_t tiles = bytes ? RS_TILE_COUNT(a, bytes) : 0;
	void *params[] = {&a, &b, &bytes};

	(void)opaque;
	if (rs_unlikely(rs_arrays_range(a) || rs_arrays_range(b)))
		return rs_dev_array_swap(q, a, b, bytes);
	return run(q, RS_DEV_swap, blocks_of(tiles), RS_TILE_THREADS, params);
}

int rs_dev_diff(void *opaque, struct rs_queue q, uint64_t a, uint64_t b, uint64_t bytes,
		uint64_t *out)
{
	uint64_t target = (uintptr_t)out;
	void *params[] = {&a, &b, &bytes, &target};

	(void)opaque;
	if (rs_unlikely(rs_arrays_range(a) || rs_arrays_range(b)))
		return rs_dev_array_diff(q, a, b, bytes, out);
	return run(q, RS_DEV_diff, rs_page_count(bytes), RS_DIFF_THREADS, params);
}

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
	if (rows > RS_MOVE_ROWS && load(c, wide, &t->f) == CUDA_SUCCESS &&
	    (t->wide = malloc(sizeof(*t->wide)))) {
		t->n = &t->wide->rows;
		t->row = t->wide->row;
		t->room = RS_MOVE_WIDE_ROWS;
		return;
	}
	if (load(c, k, &t->f) != CUDA_SUCCESS)
		t->f = NULL;
	t->n = &t->small.rows;
	t->row = t->small.row;
	t->room = RS_MOVE_ROWS;
}

static CUresult launch_table(struct table *t, struct rs_queue q, uint64_t rows, uint64_t tiles)
{
	t->n[0] = rows;
	t->n[1] = tiles;
	return launch(t->f, q, blocks_of(tiles), RS_TILE_THREADS, (void *[]){t->n});
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
