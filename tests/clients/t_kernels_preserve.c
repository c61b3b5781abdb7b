/* SPDX-License-Identifier: MIT */
/*
 * The tool's own kernels that keep and put back bytes, against memcpy and memcmp: any alignment, any length, any
 * grid; not a byte outside of the ranges is written, nor read; in any order that streams and events allow.
 */
#include "tests/clients/kernels.h"

#include "shim/kernels/tiles.h"
#include "tests/simcuda/simcuda.h"

#define SPACE (1u << 20)

/* Two device arenas and what they must hold. */
static unsigned char *want[2], *got;
static CUdeviceptr arena[2];
static CUfunction f_move, f_move_wide, f_swap, f_diff;

static uint32_t below(uint32_t n)
{
	return (uint32_t)((k_random() >> 32) % n);
}

static void scramble(void)
{
	for (int i = 0; i < 2; i++) {
		for (unsigned k = 0; k < SPACE; k += 8) {
			uint64_t w = k_random();

			memcpy(want[i] + k, &w, 8);
		}
		MUST(cuMemcpyHtoD(arena[i], want[i], SPACE));
	}
}

/* Both arenas, to the byte. */
static int same_arenas(void)
{
	int same = 1;

	for (int i = 0; i < 2; i++) {
		k_get(got, arena[i], SPACE);
		for (unsigned k = 0; k < SPACE && same; k++)
			if (got[k] != want[i][k]) {
				tap_diag("arena %d differs from byte %u on", i, k);
				same = 0;
			}
	}
	return same;
}

/* Mostly short, at most `limit`. */
static uint32_t some_length(uint32_t limit)
{
	uint32_t top = 1u << below(20), n = 1 + below(top);

	if (!below(4))
		n = 64u << below(8);
	return n < limit ? n : limit;
}

/* Two ranges that agree modulo 16, 8, 4, 2 or not at all. */
static void some_offsets(uint32_t room, uint32_t *a, uint32_t *b)
{
	uint32_t unit = 1u << below(5);

	*a = below(room);
	*b = below(room);
	*b = *b - *b % unit + *a % unit;
	if (*b >= room)
		*b = *a;
}

static void launch(CUfunction f, unsigned blocks, unsigned threads, CUstream s, void **params)
{
	MUST(cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, 0, s, params, NULL));
}

/* --- move ---------------------------------------------------------------------------------------- */

static struct rs_move_wide_table table;

/* Rows from arena `from` into the other, one behind the other with gaps, sources anywhere. */
static void make_rows(unsigned limit, int from, uint32_t longest)
{
	uint32_t at = below(300);

	table.rows = table.tiles = 0;
	while (table.rows < limit) {
		uint32_t n = some_length(longest), src = below(SPACE - n);
		uint32_t unit = 1u << below(5);

		src = src - src % unit + at % unit;
		if (at + n > SPACE || src + n > SPACE)
			break;
		table.row[table.rows++] = (struct rs_move_row){
			.dst = (void *)(uintptr_t)(arena[!from] + at),
			.src = (void *)(uintptr_t)(arena[from] + src),
			.bytes = n,
			.first = table.tiles,
		};
		table.tiles += RS_TILE_COUNT(arena[!from] + at, n);
		memcpy(want[!from] + at, want[from] + src, n);
		at += n + (below(3) ? below(40) : 0);
	}
}

static void test_move(const char *what, CUfunction f, unsigned rows, uint32_t longest,
		      unsigned runs)
{
	unsigned bad = 0, moved = 0;

	scramble();
	for (unsigned i = 0; i < runs && !bad; i++) {
		make_rows(1 + below(rows), (int)below(2), longest);
		moved += (unsigned)table.rows;
		launch(f, 1 + below(40), RS_TILE_THREADS, NULL, (void *[]){&table});
		bad += !same_arenas();
	}
	ok(!bad, "%s: %u rows in %u launches", what, moved, runs);
}

/* Memory that ends where the row does: a read outside of it is a fault. */
static void test_edges(void)
{
	unsigned runs = 0, bad = 0;

	for (uint32_t n = 1; n < 200000; n += n < 40 ? 1 : 1 + below(n)) {
		CUdeviceptr a, b, out;
		uint32_t skip = below(n < 16 ? n : 16), bytes = n - skip, pages;
		uint64_t length = bytes, words[4];
		unsigned char *x = malloc(n), *y = malloc(n);

		for (uint32_t k = 0; k < n; k++)
			x[k] = (unsigned char)k_random();
		a = k_in(x, n);
		b = k_out(n);
		table.rows = 1;
		table.tiles = RS_TILE_COUNT(b + skip, bytes);
		table.row[0] = (struct rs_move_row){(void *)(uintptr_t)(b + skip),
						    (void *)(uintptr_t)a, bytes, 0};
		launch(f_move, 2, RS_TILE_THREADS, NULL, (void *[]){&table});
		k_get(y, b, n);
		bad += memcmp(x, y + skip, bytes) != 0;
		pages = (bytes + RS_DIFF_PAGE - 1) / RS_DIFF_PAGE;
		out = k_out(sizeof(words));
		b += skip;
		launch(f_diff, 2, RS_DIFF_THREADS, NULL, (void *[]){&a, &b, &length, &out});
		k_get(words, out, sizeof(words));
		for (uint32_t k = 0; k < 4; k++)
			bad += words[k] != (k < pages ? 0 : 0xa5a5a5a5a5a5a5a5ull);
		launch(f_swap, 2, RS_TILE_THREADS, NULL, (void *[]){&a, &b, &length});
		k_get(y, b, bytes);
		bad += memcmp(x, y, bytes) != 0;
		MUST(cuMemFree(a));
		MUST(cuMemFree(b - skip));
		MUST(cuMemFree(out));
		free(x);
		free(y);
		runs++;
	}
	ok(!bad, "%u ranges that fill their memory: no byte outside is touched", runs);
}

/* --- swap, diff ---------------------------------------------------------------------------------- */

static void exchange(unsigned char *a, unsigned char *b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		unsigned char x = a[i];

		a[i] = b[i];
		b[i] = x;
	}
}

static void test_swap(void)
{
	unsigned bad = 0, runs = 120;

	scramble();
	for (unsigned i = 0; i < runs && !bad; i++) {
		uint32_t n = some_length(300 << 10), a, b;
		uint64_t bytes = n;
		CUdeviceptr da, db;

		some_offsets(SPACE - n, &a, &b);
		da = arena[0] + a;
		db = arena[1] + b;
		launch(f_swap, 1 + below(30), RS_TILE_THREADS, NULL, (void *[]){&da, &db, &bytes});
		exchange(want[0] + a, want[1] + b, n);
		bad += !same_arenas();
	}
	ok(!bad, "swap: %u pairs of ranges", runs);
}

/* b becomes a copy of a but for some bytes; all around them the arenas differ. */
static unsigned diff_once(CUdeviceptr dout)
{
	uint32_t n = some_length(300 << 10), a, b, flips = below(4), pages, k;
	uint64_t bytes = n, words[8], expect[8];
	CUdeviceptr da, db;
	unsigned bad = 0;

	some_offsets(SPACE - n, &a, &b);
	memcpy(want[1] + b, want[0] + a, n);
	memset(words, 0xa5, sizeof(words));
	memset(expect, 0xa5, sizeof(expect));
	pages = (n + RS_DIFF_PAGE - 1) / RS_DIFF_PAGE;
	while (flips--) {
		uint32_t page = below(pages) * RS_DIFF_PAGE, left = n - page;
		uint32_t size = left < RS_DIFF_PAGE ? left : RS_DIFF_PAGE;
		uint32_t at = below(3) ? below(size) : below(2) ? 0 : size - 1;

		want[1][b + page + at] ^= (unsigned char)(1u << below(8));
	}
	for (k = 0; k < pages; k++) {
		uint32_t page = k * RS_DIFF_PAGE, left = n - page;

		expect[k] = memcmp(want[0] + a + page, want[1] + b + page,
				   left < RS_DIFF_PAGE ? left : RS_DIFF_PAGE) != 0;
	}
	MUST(cuMemcpyHtoD(arena[1] + b, want[1] + b, n));
	MUST(cuMemcpyHtoD(dout, words, sizeof(words)));
	da = arena[0] + a;
	db = arena[1] + b;
	launch(f_diff, 1 + below(8), RS_DIFF_THREADS, NULL, (void *[]){&da, &db, &bytes, &dout});
	k_get(words, dout, sizeof(words));
	for (k = 0; k < 8; k++)
		if (words[k] != expect[k]) {
			tap_diag("%u bytes at %u and %u: word %u is %" PRIu64, n, a, b, k,
				 words[k]);
			bad++;
		}
	return bad;
}

static void test_diff(void)
{
	CUdeviceptr dout = k_out(64);
	unsigned bad = 0, runs = 200;

	scramble();
	for (unsigned i = 0; i < runs && !bad; i++)
		bad += diff_once(dout);
	ok(!bad, "diff: %u pairs of ranges", runs);
	ok(same_arenas(), "and nothing is written but the answers");
}

/* --- any schedule -------------------------------------------------------------------------------- */

/* Gather on one stream, exchange on another, compare on a third, tied by events only. */
static unsigned one_schedule(const CUstream *s, CUevent e, uint64_t *words)
{
	uint64_t bytes = 3 * RS_DIFF_PAGE - below(1000);
	uint32_t a = below(100), b = below(100);
	CUdeviceptr da = arena[0] + a, db = arena[1] + b, dout = (uintptr_t)words;
	unsigned bad = 0;

	memset(words, 0xa5, 4 * sizeof(*words));
	make_rows(20, 0, 20000);
	launch(f_move, 7, RS_TILE_THREADS, s[0], (void *[]){&table});
	table.row[0].src = NULL; /* the list is ours again: the launch has its own */
	MUST(cuEventRecord(e, s[0]));
	MUST(cuStreamWaitEvent(s[1], e, 0));
	launch(f_swap, 3, RS_TILE_THREADS, s[1], (void *[]){&da, &db, &bytes});
	exchange(want[0] + a, want[1] + b, (uint32_t)bytes);
	MUST(cuEventRecord(e, s[1]));
	MUST(cuStreamWaitEvent(s[2], e, 0));
	launch(f_diff, 2, RS_DIFF_THREADS, s[2], (void *[]){&da, &db, &bytes, &dout});
	MUST(cuCtxSynchronize());
	for (unsigned k = 0; k < 3; k++)
		bad += words[k] != 1;
	return bad + !same_arenas();
}

static void test_schedules(void)
{
	unsigned bad = 0, runs = 40;
	CUstream s[3];
	CUevent e;
	void *words;

	scramble();
	for (int i = 0; i < 3; i++)
		MUST(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
	MUST(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	MUST(cuMemHostAlloc(&words, 64, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
	for (unsigned i = 0; i < runs && !bad; i++) {
		char spec[32];

		snprintf(spec, sizeof(spec), "random:%u", i);
		simcuda_set_schedule(spec);
		bad += one_schedule(s, e, words);
	}
	ok(!bad, "three streams tied by events, %u schedules", runs);
	simcuda_set_schedule("eager");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *file, *name;
		CUfunction *f;
	} kernel[] = {{"shim/kernels/move", "rs_move", &f_move},
		      {"shim/kernels/move_wide", "rs_move_wide", &f_move_wide},
		      {"shim/kernels/swap", "rs_swap", &f_swap},
		      {"shim/kernels/diff", "rs_diff", &f_diff}};

	k_begin(argc, argv);
	for (unsigned i = 0; i < sizeof(kernel) / sizeof(*kernel); i++) {
		k_load(kernel[i].file);
		MUST(cuModuleGetFunction(kernel[i].f, k_module, kernel[i].name));
	}
	got = malloc(SPACE);
	for (int i = 0; i < 2; i++) {
		want[i] = malloc(SPACE);
		arena[i] = k_out(SPACE);
	}
	test_move("move", f_move, RS_MOVE_ROWS, 300 << 10, 60);
	test_move("move, short rows", f_move, RS_MOVE_ROWS, 200, 20);
	test_move("wide move", f_move_wide, RS_MOVE_WIDE_ROWS, 2000, 10);
	test_swap();
	test_diff();
	test_edges();
	test_schedules();
	return tap_done();
}
