/* SPDX-License-Identifier: MIT */
/*
 * The shim's operations for the engine (shim/devops.h) on the simulated driver, called as the engine calls them:
 * bytes, captures into graphs, drivers that refuse kernels.
 *
 * Their sources are part of this program, with a table of the driver's own functions and nothing of the wrappers.
 */
#include "tests/shim/devops_rig.h"
#include "tests/simcuda/simcuda.h"
#include "tests/tap.h"
#include "tracker/digest.c"

#define SPACE (4u << 20)
#define ROWS  3000
#define ops   rs_devops_ops

static CUcontext ctx;
static CUstream stream[2];
static struct rs_queue queue[2];
static uint64_t arena[2];
static unsigned char *model[2], *got;
static uint64_t seed = 88172645463325252ull;

#define is_int(got_, want_, what)                                                                  \
	do {                                                                                       \
		int g_ = (int)(got_);                                                              \
		if (!ok(g_ == (want_), "%s", what))                                                \
			tap_diag("  got %d, want %d", g_, (int)(want_));                           \
	} while (0)

/* Not a test: the program cannot go on without it. */
#define must(call)                                                                                 \
	do {                                                                                       \
		int r_ = (int)(call);                                                              \
		if (r_) {                                                                          \
			printf("Bail out! line %d: %s: %d\n", __LINE__, #call, r_);                \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static uint32_t below(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)((seed >> 32) % n);
}

static void scramble(void)
{
	for (int i = 0; i < 2; i++) {
		for (unsigned k = 0; k < SPACE; k++)
			model[i][k] = (unsigned char)below(256);
		must(cuMemcpyHtoD_v2(arena[i], model[i], SPACE));
	}
}

static int same_arenas(void)
{
	int same = 1;

	must(cuCtxSynchronize());
	for (int i = 0; i < 2; i++) {
		must(cuMemcpyDtoH_v2(got, arena[i], SPACE));
		same &= !memcmp(got, model[i], SPACE);
	}
	return same;
}

/* n moves from arena 0 to arena 1: empty ones, neighbours that continue each other, gaps. The model moves too. */
static void make_moves(struct rs_move *list, uint64_t n)
{
	uint32_t at = below(64), src = below(64);

	for (uint64_t i = 0; i < n; i++) {
		uint32_t bytes = below(8) ? 1 + below(SPACE / 2 / ROWS) : 0;

		if (below(3)) {
			at += below(50);
			src = below(SPACE - 2000);
		}
		if (src + bytes > SPACE)
			src = 0;
		list[i] = (struct rs_move){arena[1] + at, arena[0] + src, bytes};
		memcpy(model[1] + at, model[0] + src, bytes);
		at += bytes;
		src += bytes;
	}
}

static unsigned move_once(uint64_t n, const struct rs_queue *q)
{
	struct rs_move *list = malloc((n + 1) * sizeof(*list));
	int r;

	make_moves(list, n);
	r = ops.move(NULL, *q, list, n);
	memset(list, 0xee, (n + 1) * sizeof(*list)); /* ours again */
	free(list);
	return r || !same_arenas();
}

static void test_moves(const char *what)
{
	static const uint64_t counts[] = {0, 1, 2, 3, 50, 127, 128, 160, 1022, 1400, 2900};
	unsigned bad = 0;

	for (unsigned i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		if (move_once(counts[i], &queue[i % 2])) {
			tap_diag("%u moves", (unsigned)counts[i]);
			bad++;
		}
	ok(!bad, "lists of 0 to 2900 moves, %s", what);
}

static void test_bytes(void)
{
	uint64_t bytes = 200001, a = arena[0] + 5, b = arena[1] + 21, *words, event;

	must(ops.result_alloc(NULL, queue[0], 128, &words));
	memset(words, 0x55, 64 * 8);
	must(ops.copy(NULL, queue[0], b, a, bytes));
	must(ops.diff(NULL, queue[0], a, b, bytes, words));
	must(ops.copy(NULL, queue[0], b + RS_PAGE, a, 100));
	must(ops.diff(NULL, queue[0], a, b, bytes, words + 8));
	must(ops.swap(NULL, queue[0], a, b, bytes));
	must(ops.digest(NULL, queue[0], b, bytes, words + 16));
	must(ops.event_record(NULL, queue[0], &event));
	is_int(ops.event_sync(NULL, event), 0, "an event is waited for");
	is_int(ops.event_done(NULL, event), 1, "and has passed");
	ok(!(words[0] | words[1] | words[2] | words[3]) && words[4] == 0x5555555555555555ull,
	   "diff of equal ranges: a zero for each page");
	ok(!words[8] && words[9] == 1 && !words[10] && !words[11],
	   "and a one for a page that differs");
	memcpy(model[1] + 21, model[0] + 5, bytes);
	memcpy(model[1] + 21 + RS_PAGE, model[0] + 5, 100);
	for (uint64_t i = 0; i < bytes; i++) {
		unsigned char x = model[0][5 + i];

		model[0][5 + i] = model[1][21 + i];
		model[1][21 + i] = x;
	}
	ok(same_arenas(), "copy and swap to the byte");
	ok(words[16] == rs_digest_chunk(model[1] + 21, RS_DIGEST_CHUNK), "digest");
	is_int(ops.swap(NULL, queue[0], a, b, 0), 0, "nothing to swap");
	is_int(ops.diff(NULL, queue[0], a, b, 0, words), 0, "nothing to compare");
	ops.event_free(NULL, event);
	ops.result_free(NULL, words);
}

/* --- many digests -------------------------------------------------------------------------------- */

#define PIECES 5000
#define WORDS  (PIECES * 2 + 64)
#define UNSET  0x5555555555555555ull

/* Pieces of arena 0 that may overlap: some empty, some of whole chunks, some longer; words apart by one that stays. */
static uint64_t make_pieces(struct rs_piece *list, uint64_t n, uint64_t *out)
{
	uint64_t at = 0;

	for (uint64_t i = 0; i < n; i++) {
		uint32_t kind = below(n > 200 ? 100 : 10), addr = below(SPACE - 20000), bytes;

		bytes = kind == 0   ? 0
			: kind == 1 ? RS_DIGEST_CHUNK
			: kind == 2 ? 1 + below(3 * RS_DIGEST_CHUNK)
			: kind == 3 ? 2 * RS_DIGEST_CHUNK
				    : 1 + below(300);
		if (kind < 4 && below(2))
			addr &= ~15u;
		list[i] = (struct rs_piece){arena[0] + addr, bytes, out + at};
		at += rs_digest_count(bytes) + 1;
	}
	return at;
}

/* Every word against the host's; list and model are as they were. */
static unsigned wrong_digests(const struct rs_piece *list, uint64_t n)
{
	static uint64_t want[16];
	unsigned bad = 0;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t count = rs_digest_count(list[i].bytes);

		rs_digest_range(model[0] + (list[i].addr - arena[0]), list[i].bytes, want);
		bad += memcmp(list[i].out, want, count * 8) != 0;
		bad += list[i].out[count] != UNSET;
	}
	return bad;
}

static unsigned digest_once(uint64_t n, const struct rs_queue *q, uint64_t *words)
{
	struct rs_piece *list = malloc((n + 1) * sizeof(*list)), *sent;
	uint64_t used = make_pieces(list, n, words);
	unsigned bad = used > WORDS;

	for (uint64_t i = 0; i < WORDS; i++)
		words[i] = UNSET;
	sent = malloc((n + 1) * sizeof(*list));
	memcpy(sent, list, n * sizeof(*list));
	if (!bad)
		bad = ops.digest_many(NULL, *q, sent, n) != 0;
	memset(sent, 0xee, (n + 1) * sizeof(*list)); /* ours again */
	must(cuCtxSynchronize());
	bad += wrong_digests(list, n);
	free(list);
	free(sent);
	return bad;
}

static void test_digests(const char *what)
{
	static const uint64_t counts[] = {0, 1, 2, 3, 127, 128, 300, 1022, 1023, 2500, PIECES};
	uint64_t *words;
	unsigned bad = 0;

	must(ops.result_alloc(NULL, queue[0], WORDS, &words));
	for (unsigned i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		if (digest_once(counts[i], &queue[i % 2], words)) {
			tap_diag("%u digests", (unsigned)counts[i]);
			bad++;
		}
	ok(!bad, "lists of 0 to %u digests, %s", PIECES, what);
	ops.result_free(NULL, words);
}

/* Pairs of ranges of both arenas that are equal but for some bytes; each page by the model, other words as they were. */
static unsigned diff_once(uint64_t n, const struct rs_queue *q, uint64_t *words)
{
	static struct rs_versus list[260];
	uint64_t at = 0;
	unsigned bad = 0;

	for (uint64_t i = 0; i < WORDS; i++)
		words[i] = UNSET;
	for (uint64_t i = 0; i < n; i++) {
		uint32_t a = below(SPACE - 200000),
			 bytes = below(9) ? 1 + below(3000) : below(200000);

		list[i] = (struct rs_versus){arena[0] + a, arena[1] + (below(3) ? a : a ^ 1u),
					     bytes, words + at};
		at += rs_page_count(bytes) + 1;
	}
	bad += ops.diff_many(NULL, *q, list, n) != 0;
	must(cuCtxSynchronize());
	for (uint64_t i = 0; i < n; i++) {
		const unsigned char *a = model[0] + (list[i].a - arena[0]);
		const unsigned char *b = model[1] + (list[i].b - arena[1]);
		uint64_t pages = rs_page_count(list[i].bytes);

		for (uint64_t k = 0; k < pages; k++) {
			uint64_t left = list[i].bytes - k * RS_PAGE;

			bad += list[i].out[k] != !!memcmp(a + k * RS_PAGE, b + k * RS_PAGE,
							  left < RS_PAGE ? left : RS_PAGE);
		}
		bad += list[i].out[pages] != UNSET;
	}
	return bad;
}

static void test_diffs(const char *what)
{
	static const uint64_t counts[] = {0, 1, 2, 3, 102, 103, 260};
	unsigned bad = 0;
	uint64_t *words;

	must(ops.result_alloc(NULL, queue[0], WORDS, &words));
	memcpy(model[1], model[0], SPACE);
	for (int i = 0; i < 40; i++)
		model[1][below(SPACE)] ^= 1;
	must(cuMemcpyHtoD_v2(arena[1], model[1], SPACE));
	for (unsigned i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		if (diff_once(counts[i], &queue[i % 2], words)) {
			tap_diag("%u comparisons", (unsigned)counts[i]);
			bad++;
		}
	ok(!bad, "lists of 0 to 260 comparisons, %s", what);
	ops.result_free(NULL, words);
	scramble();
}

/* An array is its rows, one after the other, under a made-up address. */
static void test_arrays(void)
{
	const CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 37,
					   .Height = 9,
					   .Depth = 5,
					   .Format = CU_AD_FORMAT_HALF,
					   .NumChannels = 2};
	uint64_t bytes = 37 * 9 * 5 * 4, *words, *differ;
	struct rs_array a;
	CUarray handle;

	must(cuArray3DCreate_v2(&handle, &d));
	must(rs_arrays_add(handle, 0, (uintptr_t)ctx, &a));
	is_u64(a.bytes, bytes, "an array's bytes");
	must(ops.result_alloc(NULL, queue[0], 8, &words));
	must(ops.result_alloc(NULL, queue[0], 8, &differ));
	must(ops.copy(NULL, queue[0], a.base, arena[0], bytes));
	must(ops.digest(NULL, queue[0], a.base, bytes, words));
	must(ops.diff(NULL, queue[0], arena[0], a.base, bytes, differ));
	must(ops.diff(NULL, queue[0], a.base, arena[1], bytes, differ + 1));
	must(ops.swap(NULL, queue[0], arena[1], a.base, bytes));
	must(ops.move(NULL, queue[0], &(struct rs_move){arena[0], a.base, bytes}, 1));
	must(cuCtxSynchronize());
	ok(words[0] == rs_digest_chunk(model[0], RS_DIGEST_CHUNK),
	   "its digest is that of its rows");
	ok(!differ[0] && differ[1] == 1, "it is compared with memory, on either side");
	memcpy(got, model[0], bytes);
	memcpy(model[0], model[1], bytes);
	memcpy(model[1], got, bytes);
	ok(same_arenas(), "copied to and fro, and swapped");
	words[1] = words[2] = 0;
	must(ops.digest_many(NULL, queue[0],
			     (struct rs_piece[]){{a.base, bytes, words + 1},
						 {arena[0], bytes, words + 3},
						 {arena[1], 100, words + 5}},
			     3));
	must(cuCtxSynchronize());
	ok(words[1] == words[3] && words[2] == words[4] &&
		   words[5] == rs_digest_chunk(model[1], 100),
	   "one of many digests may be an array's");
	is_int(ops.copy(NULL, queue[0], arena[0], a.base, bytes - 1), -EINVAL, "only as a whole");
	rs_arrays_remove(handle);
	is_int(ops.copy(NULL, queue[0], arena[0], a.base, bytes), -EINVAL, "one that has gone");
	must(cuArrayDestroy(handle));
	ops.result_free(NULL, words);
	ops.result_free(NULL, differ);
}

/* --- captures ------------------------------------------------------------------------------------ */

static void begin(CUstream s)
{
	must(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	rs_state.captures++; /* as the wrapper does */
}

static CUgraph end(CUstream s)
{
	CUgraph g = NULL;

	is_int(cuStreamEndCapture(s, &g), 0, "the program's capture ends well");
	rs_state.captures--;
	return g;
}

static void run_graph(CUgraph g, unsigned times)
{
	CUgraphExec exec;

	must(cuGraphInstantiateWithFlags(&exec, g, 0));
	while (times--)
		must(cuGraphLaunch(exec, stream[0]));
	must(cuCtxSynchronize());
	must(cuGraphExecDestroy(exec));
	must(cuGraphDestroy(g));
}

static unsigned count_nodes(CUgraph g, CUgraphNodeType type)
{
	CUgraphNode node[64];
	size_t n = 64;
	unsigned count = 0;

	must(cuGraphGetNodes(g, node, &n));
	for (size_t i = 0; i < n; i++) {
		CUgraphNodeType t;

		must(cuGraphNodeGetType(node[i], &t));
		count += t == type;
	}
	return count;
}

/* Kernels not loaded yet are loaded within the capture. */
static void test_capture(void)
{
	static struct rs_move list[300];
	uint64_t bytes = 70000, *words;
	CUgraph g;

	must(ops.result_alloc(NULL, queue[0], 2, &words));
	begin(stream[0]);
	make_moves(list, 300);
	must(ops.move(NULL, queue[0], list, 300));
	memset(list, 0xee, sizeof(list));
	must(ops.copy(NULL, queue[0], arena[1] + SPACE - bytes, arena[0] + 7, bytes));
	must(ops.swap(NULL, queue[0], arena[0] + 7, arena[0] + SPACE / 2, bytes));
	must(ops.diff(NULL, queue[0], arena[1] + SPACE - bytes, arena[0] + SPACE / 2, bytes,
		      words));
	g = end(stream[0]);
	ok(!same_arenas(), "nothing has run yet");
	is_u64(count_nodes(g, CU_GRAPH_NODE_TYPE_KERNEL), 3,
	       "move, swap and diff are kernel nodes");
	is_u64(count_nodes(g, CU_GRAPH_NODE_TYPE_MEMCPY), 1, "a copy is a copy node");
	memcpy(model[1] + SPACE - bytes, model[0] + 7, bytes);
	for (uint64_t i = 0; i < bytes; i++) {
		unsigned char x = model[0][7 + i];

		model[0][7 + i] = model[0][SPACE / 2 + i];
		model[0][SPACE / 2 + i] = x;
	}
	words[0] = words[1] = 7;
	run_graph(g, 1);
	ok(same_arenas(), "the graph does it");
	ok(!words[0] && !words[1], "and compares");
	ops.result_free(NULL, words);
}

/* The list is the graph's: it digests what is there when it runs, each time. */
static void test_capture_digests(void)
{
	struct rs_piece *list = malloc(300 * sizeof(*list)), *sent = malloc(300 * sizeof(*list));
	uint64_t *words;
	CUgraphExec exec;
	CUgraph g;

	must(ops.result_alloc(NULL, queue[0], WORDS, &words));
	make_pieces(list, 300, words);
	memcpy(sent, list, 300 * sizeof(*list));
	begin(stream[0]);
	must(ops.digest_many(NULL, queue[0], sent, 300));
	memset(sent, 0xee, 300 * sizeof(*list));
	free(sent);
	g = end(stream[0]);
	is_u64(count_nodes(g, CU_GRAPH_NODE_TYPE_KERNEL), 1, "many digests are one kernel node");
	must(cuGraphInstantiateWithFlags(&exec, g, 0));
	must(cuGraphDestroy(g));
	for (int i = 0; i < 2; i++) {
		for (uint64_t k = 0; k < WORDS; k++)
			words[k] = UNSET;
		scramble();
		must(cuGraphLaunch(exec, stream[0]));
		must(cuCtxSynchronize());
		is_u64(wrong_digests(list, 300), 0, "launched, it digests what is there");
	}
	must(cuGraphExecDestroy(exec));
	ops.result_free(NULL, words);
	free(list);
}

static void test_capture_order(void)
{
	uint64_t outside, inside, after, *words;
	CUgraph g;

	must(ops.event_record(NULL, queue[1], &outside));
	begin(stream[0]);
	must(ops.copy(NULL, queue[0], arena[1], arena[0], 64));
	must(ops.event_record(NULL, queue[0], &inside));
	is_int(ops.event_wait(NULL, queue[0], inside), 0,
	       "an event of the capture orders within it");
	is_int(ops.event_wait(NULL, queue[0], outside), -EXDEV, "one from outside is refused");
	is_int(ops.event_wait(NULL, queue[1], inside), -EXDEV,
	       "one from inside is refused outside");
	is_int(ops.event_done(NULL, inside), -EXDEV, "it cannot be asked for");
	is_int(ops.event_sync(NULL, inside), -EXDEV, "nor waited for");
	is_int(ops.event_sync(NULL, outside), 0, "others can");
	must(ops.result_alloc(NULL, queue[1], 16, &words));
	is_int(ops.digest(NULL, queue[1], arena[0], 65536, words), 0, "other streams go on");
	must(ops.event_record(NULL, queue[1], &after));
	is_int(ops.event_sync(NULL, after), 0, "and are waited for");
	ops.event_free(NULL, after);
	ops.result_free(NULL, words);
	g = end(stream[0]);
	is_u64(count_nodes(g, CU_GRAPH_NODE_TYPE_MEMCPY), 1,
	       "what was refused left nothing behind");
	is_int(ops.event_wait(NULL, queue[1], inside), -EXDEV, "nor after the capture's end");
	must(cuGraphDestroy(g));
	ops.event_free(NULL, inside);
	must(ops.event_record(NULL, queue[1], &inside));
	is_int(ops.event_sync(NULL, inside), 0, "an event that was captured is as good as new");
	ops.event_free(NULL, inside);
	ops.event_free(NULL, outside);
}

/* A capture of a stream that the legacy stream waits for makes that one unusable. */
static void test_capture_legacy(void)
{
	struct rs_queue legacy = {.ctx = (uintptr_t)ctx};
	uint64_t event, *words;
	CUstream blocking;
	CUgraph g;

	must(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	must(ops.result_alloc(NULL, legacy, 1, &words));
	begin(blocking);
	is_int(ops.copy(NULL, legacy, arena[1], arena[0], 64), -EXDEV, "legacy stream: no copy");
	is_int(ops.diff(NULL, legacy, arena[1], arena[0], 64, words), -EXDEV, "no kernel");
	is_int(ops.digest_many(NULL, legacy,
			       (struct rs_piece[]){{arena[0], 64, words}, {arena[1], 64, words}},
			       2),
	       -EXDEV, "no digests");
	is_int(ops.move(NULL, legacy, &(struct rs_move){arena[1], arena[0], 64}, 1), -EXDEV,
	       "no move");
	is_int(ops.event_record(NULL, legacy, &event), -EXDEV, "no event");
	must(ops.copy(NULL, (struct rs_queue){(uintptr_t)ctx, (uintptr_t)blocking}, arena[1],
		      arena[0], 64));
	g = end(blocking);
	must(cuGraphDestroy(g));
	is_int(ops.copy(NULL, legacy, arena[1], arena[0], 64), 0, "usable again");
	memcpy(model[1], model[0], 64);
	ok(same_arenas(), "and used");
	must(cuStreamDestroy_v2(blocking));
	ops.result_free(NULL, words);
}

/* --- the clock ----------------------------------------------------------------------------------- */

static uint64_t between(uint64_t from, uint64_t to)
{
	uint64_t ns = ~0ull;
	int r = ops.elapsed(NULL, from, to, &ns);

	if (r)
		tap_diag("elapsed: %d", r);
	return r ? ~0ull : ns;
}

/* Marks between copies, all on queue 0, add up; the clock is the simulated one, so the sum is exact. */
static void test_clock(void)
{
	uint64_t mark[6], one, sum = 0, bytes = SPACE / 2;
	unsigned back = 0;

	must(ops.mark(NULL, queue[0], &mark[0]));
	for (int i = 1; i < 6; i++) {
		must(ops.copy(NULL, queue[0], arena[1], arena[0], bytes));
		must(ops.mark(NULL, queue[0], &mark[i]));
	}
	must(cuCtxSynchronize());
	memcpy(model[1], model[0], bytes);
	one = between(mark[0], mark[1]);
	for (int i = 1; i < 6; i++) {
		sum += between(mark[i - 1], mark[i]);
		back += between(mark[i - 1], mark[i]) != one;
	}
	ok(one > 100 && !back, "a copy takes the same time each time");
	/* A float's precision, at that many nanoseconds. */
	ok(between(mark[0], mark[5]) - sum + 5 <= 10, "times add up");
	is_u64(between(mark[2], mark[2]), 0, "nothing from a mark to itself");
	is_int(ops.elapsed(NULL, mark[3], mark[1], &one), -ERANGE, "time does not run backwards");
	for (int i = 0; i < 6; i++)
		ops.mark_free(NULL, mark[i]);
}

static void test_clock_queues(void)
{
	uint64_t m[4], event, ns = 7, alone;

	must(simcuda_set_schedule("lazy"));
	must(ops.mark(NULL, queue[0], &m[0]));
	must(ops.copy(NULL, queue[0], arena[1], arena[0], SPACE));
	must(ops.mark(NULL, queue[0], &m[1]));
	must(ops.event_record(NULL, queue[0], &event));
	must(ops.event_wait(NULL, queue[1], event));
	must(ops.copy(NULL, queue[1], arena[0], arena[1], SPACE / 2));
	must(ops.mark(NULL, queue[1], &m[2]));
	is_int(ops.elapsed(NULL, m[0], m[2], &ns), -EAGAIN, "a mark that has not passed");
	is_u64(ns, 7, "leaves the result alone");
	must(cuCtxSynchronize());
	memcpy(model[1], model[0], SPACE);
	alone = between(m[0], m[1]);
	ok(between(m[0], m[2]) > alone && between(m[1], m[2]) < alone,
	   "marks of two streams: the second follows the first");
	ok(same_arenas(), "marks change no byte");
	must(ops.mark(NULL, queue[1], &m[3]));
	must(cuCtxSynchronize());
	is_int(ops.elapsed(NULL, m[3], m[0], &ns), -ERANGE, "nor backwards from queue to queue");
	ops.event_free(NULL, event);
	for (int i = 0; i < 4; i++)
		ops.mark_free(NULL, m[i]);
}

static void test_clock_spare(void)
{
	static const char one_more[] = "cuEventCreate:1=2";
	uint64_t m[3], n[3];
	unsigned again = 0;

	for (int i = 0; i < 3; i++)
		must(ops.mark(NULL, queue[i & 1], &m[i]));
	for (int i = 0; i < 3; i++)
		ops.mark_free(NULL, m[i]);
	must(simcuda_set_fail(one_more));
	for (int i = 0; i < 3; i++) {
		is_int(ops.mark(NULL, queue[0], &n[i]), 0, "a spare mark");
		for (int k = 0; k < 3; k++)
			again += n[i] == m[k];
	}
	is_u64(again, 3, "each is one that was given back");
	for (int i = 0; i < 3; i++)
		ops.mark_free(NULL, n[i]);
	must(simcuda_set_fail(""));
}

static void test_clock_capture(void)
{
	struct rs_queue other = {.ctx = (uintptr_t)ctx, .stream = 1ull << 63 | 77};
	struct rs_queue legacy = {.ctx = (uintptr_t)ctx};
	uint64_t m = 7, before, after;
	CUstream blocking;
	CUgraph g;

	is_int(ops.mark(NULL, other, &m), -EINVAL, "another thread's own stream has no mark");
	must(ops.mark(NULL, queue[0], &before));
	must(cuCtxSynchronize());
	begin(stream[0]);
	is_int(ops.mark(NULL, queue[0], &m), -EXDEV, "no mark in a capture");
	must(ops.copy(NULL, queue[0], arena[1], arena[0], 64));
	must(ops.mark(NULL, queue[1], &after));
	is_int(ops.elapsed(NULL, before, before, &m), 0, "marks from outside are still told");
	g = end(stream[0]);
	is_u64(count_nodes(g, CU_GRAPH_NODE_TYPE_MEMCPY), 1, "with what the program put into it");
	is_u64(count_nodes(g, CU_GRAPH_NODE_TYPE_EVENT_RECORD), 0, "and nothing else");
	must(cuGraphDestroy(g));
	must(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	begin(blocking);
	is_int(ops.mark(NULL, legacy, &m), -EXDEV, "nor one that would break a capture");
	must(ops.copy(NULL, (struct rs_queue){(uintptr_t)ctx, (uintptr_t)blocking}, arena[1],
		      arena[0], 64));
	must(cuGraphDestroy(end(blocking)));
	must(cuStreamDestroy_v2(blocking));
	is_int(ops.mark(NULL, legacy, &m), 0, "the legacy stream has marks");
	ops.mark_free(NULL, m);
	ops.mark_free(NULL, before);
	ops.mark_free(NULL, after);
}

/* --- contexts ------------------------------------------------------------------------------------ */

static void open_context(const char *fail)
{
	CUdevice dev;

	must(cuDeviceGet(&dev, 0));
	must(cuCtxCreate_v2(&ctx, 0, dev));
	must(simcuda_set_fail(fail));
	for (int i = 0; i < 2; i++) {
		must(cuStreamCreate(&stream[i], CU_STREAM_NON_BLOCKING));
		queue[i] = (struct rs_queue){(uintptr_t)ctx, (uintptr_t)stream[i]};
		must(ops.alloc(NULL, queue[i], SPACE, (uint64_t *)&arena[i]));
	}
	scramble();
	rig_logged = 0;
}

static void close_context(void)
{
	uint64_t event, mark, ns = 7;

	must(ops.event_record(NULL, queue[0], &event));
	must(ops.mark(NULL, queue[0], &mark));
	ops.free(NULL, queue[0], arena[0]);
	ops.free(NULL, queue[1], arena[1]);
	rs_devops_ctx_destroy((uintptr_t)ctx); /* as the wrapper does */
	must(cuCtxDestroy_v2(ctx));
	is_int(ops.event_done(NULL, event), 1, "an event outlives its context as passed");
	is_int(ops.elapsed(NULL, mark, mark, &ns), -ENODEV,
	       "a mark as one that nothing is known of");
	ops.mark_free(NULL, mark);
	must(simcuda_set_fail(""));
	ops.event_free(NULL, event);
}

static void test_refused(void)
{
	uint64_t *words;

	open_context("cuModuleLoadData:2=222");
	test_moves("where the driver does not take the wide kernel");
	is_int((int)rig_logged, 0, "which is no error");
	close_context();
	open_context("cuModuleLoadData:3=222"); /* the first one is that of a single digest */
	test_digests("where the driver does not take the wide kernel");
	is_int((int)rig_logged, 0, "which is no error");
	close_context();
	open_context("cuModuleLoadData:2=209,cuModuleLoadData:3=209");
	test_digests("where the driver takes none of many");
	is_int((int)rig_logged, 1, "which is said, once");
	close_context();
	open_context("cuModuleLoadData:2=209"); /* of a single comparison the first */
	test_diffs("where the driver takes no such kernel");
	close_context();
	open_context("cuModuleLoadData:1=209,cuModuleLoadData:2=209,cuModuleLoadData:3=209");
	test_moves("where the driver takes no kernel");
	is_int((int)rig_logged, 1, "which is said, once");
	is_int(ops.swap(NULL, queue[0], arena[0], arena[1], 64), -EIO, "a swap fails");
	must(ops.result_alloc(NULL, queue[0], 1, &words));
	is_int(ops.diff(NULL, queue[0], arena[0], arena[1], 64, words), 0,
	       "a later kernel is tried");
	ok(same_arenas(), "and nothing has changed");
	ops.result_free(NULL, words);
	close_context();
	open_context("cuModuleLoadData:1=2");
	is_int(ops.swap(NULL, queue[0], arena[0], arena[0] + 64, 64), -ENOMEM, "no memory to load");
	is_int(ops.swap(NULL, queue[0], arena[0], arena[0] + 64, 64), 0, "is tried again");
	close_context();
}

int main(void)
{
#define X(sym) rs_real.sym = sym;
	RIG_DRIVER(X)
#undef X
	must(cuInit(0));
	model[0] = malloc(SPACE);
	model[1] = malloc(SPACE);
	got = malloc(SPACE);
	open_context("");
	test_capture();
	test_capture_digests();
	for (unsigned i = 0; i < 5; i++) {
		char spec[32];

		snprintf(spec, sizeof(spec), "random:%u", i);
		must(simcuda_set_schedule(spec));
		test_moves(spec);
		test_digests(spec);
	}
	test_diffs("by one kernel");
	test_bytes();
	test_arrays();
	test_capture_order();
	test_capture_legacy();
	test_clock();
	test_clock_queues();
	test_clock_spare();
	test_clock_capture();
	close_context();
	test_refused();
	return tap_done();
}
