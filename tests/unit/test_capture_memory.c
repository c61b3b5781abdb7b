/* SPDX-License-Identifier: MIT */
/*
 * Memory that a captured graph allocates itself: products and state in it, what is freed and comes again at the same address,
 * what is left allocated, and that nothing of the tool's touches it where it is not there.
 */
#include "tests/unit/capture_dev.h"

#define N 8u

static uint32_t *s, *y, *again, *delta;

/* to = 3 from */
static void triple(struct rig_arg *a)
{
	for (unsigned i = 0; i < a[0].n; i++)
		a[1].p[i] = 3 * a[0].p[i];
}

static void copy(struct rig_arg *a)
{
	memcpy(a[1].p, a[0].p, a[0].n * 4);
}

/* s += delta */
static void add(struct rig_arg *a)
{
	for (unsigned i = 0; i < a[0].n; i++)
		a[0].p[i] += *a[1].p;
}

static void set_up(enum rs_mode mode)
{
	start(mode);
	s = words(N);
	y = words(N);
	again = words(N);
	delta = words(1);
	rs_engine_region(eng, (uint64_t)s, N * 4, "state:s");
	for (unsigned i = 0; i < N; i++)
		s[i] = 10 + i;
	*delta = 1;
}

static unsigned wrong(const uint32_t *p, unsigned factor, unsigned first)
{
	unsigned bad = 0;

	for (unsigned i = 0; i < N; i++)
		bad += p[i] != factor * (first + i);
	return bad;
}

/* --- memory nodes --------------------------------------------------------------------------------- */

/* Where a node allocates or frees: what is there is lost. */
static void garbage(struct rig_arg *a)
{
	memset(a[0].p, 0xdb, a[0].n * 4);
}

static uint32_t *graph_words(void)
{
	return aligned_alloc(256, 256);
}

static void memory_node(uint32_t *p)
{
	struct rig_body *b = calloc(1, sizeof(*b));

	*b = (struct rig_body){garbage, {RW_(p, N)}};
	cap.queue[cap.n] = ORIGIN;
	cap.node[cap.n++] = (struct fake_op){.kind = FAKE_CALL, .fn = rig_run, .arg = b};
}

static void captured_alloc(uint32_t *p)
{
	rs_engine_capture_unseen(eng, RIG_Q(ORIGIN), 1);
	memory_node(p);
	rs_engine_capture_allocated(eng, thr, RIG_Q(ORIGIN), (uint64_t)p, N * 4);
}

static void captured_free(uint32_t *p)
{
	rs_engine_capture_frees(eng, thr, RIG_Q(ORIGIN), (uint64_t)p);
	memory_node(p);
	rs_engine_capture_freed(eng, thr, RIG_Q(ORIGIN), (uint64_t)p, 1);
}

static int is_memory_node(const struct fake_op *op, const uint32_t *p)
{
	const struct rig_body *b = op->kind == FAKE_CALL ? op->arg : NULL;

	return b && b->fn == garbage && b->a[0].p == p;
}

/* The tool's operations on p where it is not there: before it is allocated, or freed. */
static unsigned astray(const uint32_t *p, int is_there)
{
	uint64_t lo = (uint64_t)p, hi = lo + N * 4;
	unsigned i, n = 0;

	for (i = 0; i < cap.n; i++) {
		const struct fake_op *op = &cap.node[i];

		if (is_memory_node(op, p))
			is_there = !is_there;
		else if (op->kind != FAKE_CALL && !is_there)
			n += (op->src >= lo && op->src < hi) || (op->dst >= lo && op->dst < hi);
	}
	return n;
}

static int is_known(const uint32_t *p)
{
	uint64_t base, bytes;

	return rs_engine_lookup(eng, (uint64_t)p, &base, &bytes) != NULL;
}

static uint64_t live_bytes(void)
{
	struct rs_engine_stats st;

	rs_engine_stats(eng, &st);
	return st.live_bytes;
}

/* --- inside --------------------------------------------------------------------------------------- */

/* to = 3 s, by way of what the graph allocates and frees */
static void by_way_of(uint32_t *t, uint32_t *to)
{
	captured_alloc(t);
	CAPTURED(triple, R_(s, N), W_(t, N));
	CAPTURED(copy, R_(t, N), W_(to, N));
	captured_free(t);
}

/* A product, in the forward and in the replay: at the same address, or at another. */
static void test_product(enum rs_mode mode, int same)
{
	uint32_t *t = graph_words(), *u = same ? t : graph_words();
	uint64_t before;
	struct rs_capture *c;

	set_up(mode);
	before = live_bytes();
	begin_capture();
	PUSH("forward:f");
	by_way_of(t, y);
	POP();
	ok(!is_known(t), "what is freed is gone");
	CAPTURED(add, RW_(s, N), R_(delta, 1));
	PUSH("replay:f");
	by_way_of(u, again);
	POP();
	c = end_capture(1);
	is_u64(astray(t, 0) + (same ? 0 : astray(u, 0)), 0,
	       "nothing is touched where it is not there");
	is_u64(live_bytes(), before, "a graph's memory is not the program's");
	launch(c, 3, 1);
	launch(c, 3, 1);
	fake_drain();
	if (mode == RS_MODE_PRESERVE) {
		ok(!wrong(y, 3, 11) && !wrong(again, 3, 11) && !wrong(s, 1, 12),
		   "state is preserved beside it");
		outcomes(2, 0, 0, "a product of the graph's own memory");
	} else {
		ok(!wrong(again, 3, 12) && !wrong(s, 1, 12), "an audit changes nothing");
		outcomes(0, 0, 2, "audited");
	}
	ok(!strstr(rig_read("records.jsonl"), "RS060"), "it is known");
	rs_capture_unref(c);
	rig_stop();
	if (u != t)
		free(u);
	free(t);
}

/* State: made in the graph, read by the forward, overwritten before the replay, by it, or not at all. */
static void test_state(int by_replay)
{
	uint32_t *g = graph_words();
	struct rs_capture *c;

	set_up(RS_MODE_PRESERVE);
	begin_capture();
	captured_alloc(g);
	CAPTURED(copy, R_(s, N), W_(g, N));
	PUSH("forward:f");
	CAPTURED(triple, R_(g, N), W_(y, N));
	if (by_replay)
		CAPTURED(add, RW_(g, N), R_(delta, 1));
	POP();
	if (!by_replay)
		CAPTURED(add, RW_(g, N), R_(delta, 1));
	PUSH("replay:f");
	CAPTURED(triple, R_(g, N), W_(again, N));
	if (by_replay)
		CAPTURED(add, RW_(g, N), R_(delta, 1));
	POP();
	CAPTURED(copy, R_(g, N), W_(s, N));
	captured_free(g);
	c = end_capture(1);
	is_u64(astray(g, 0), 0, "nothing is touched where it is not there");
	launch(c, 3, 1);
	launch(c, 4, 1);
	fake_drain();
	ok(!wrong(y, 3, 11) && !wrong(again, 3, 11) && !wrong(s, 1, 12),
	   "state in the graph's own memory is preserved, and put back");
	outcomes(2, 0, 0, "state in the graph's own memory");
	rs_capture_unref(c);
	rig_stop();
	free(g);
}

/* State that is freed before the replay, and other memory at its address then: nobody takes one for the other. */
static void test_freed(void)
{
	uint32_t *g = graph_words();
	struct rs_capture *c;

	set_up(RS_MODE_PRESERVE);
	begin_capture();
	captured_alloc(g);
	CAPTURED(copy, R_(s, N), W_(g, N));
	PUSH("forward:f");
	CAPTURED(triple, R_(g, N), W_(y, N));
	POP();
	captured_free(g);
	CAPTURED(add, RW_(s, N), R_(delta, 1));
	captured_alloc(g);
	CAPTURED(copy, R_(s, N), W_(g, N));
	PUSH("replay:f");
	CAPTURED(triple, R_(g, N), W_(again, N));
	POP();
	captured_free(g);
	c = end_capture(1);
	is_u64(astray(g, 0), 0, "nothing is touched where it is not there");
	launch(c, 3, 1);
	fake_drain();
	ok(!wrong(again, 3, 11), "what is there now is left as it is");
	is_u64(count(rig_read("records.jsonl"), "\"outcome\":\"match\""), 0, "that is no match");
	ok(strstr(rig_read("events.jsonl"), "RS012") != NULL, "state was freed before its replay");
	rs_capture_unref(c);
	rig_stop();
	free(g);
}

/* --- left allocated ------------------------------------------------------------------------------- */

/* A graph leaves memory; another one, captured before any launch, has its segment's state in it and frees it. */
static void test_left(void)
{
	uint32_t *g = graph_words();
	struct fake_op first[8];
	struct rs_capture *c, *d;
	unsigned n, i;

	set_up(RS_MODE_PRESERVE);
	begin_capture();
	captured_alloc(g);
	CAPTURED(copy, R_(s, N), W_(g, N));
	n = cap.n;
	memcpy(first, cap.node, n * sizeof(*first));
	cap.n = 0; /* its nodes are ours */
	c = end_capture(1);
	ok(c && is_known(g), "what a graph leaves is promised");
	begin_capture();
	PUSH("forward:f");
	CAPTURED(triple, R_(g, N), W_(y, N));
	POP();
	CAPTURED(add, RW_(g, N), R_(delta, 1));
	PUSH("replay:f");
	CAPTURED(triple, R_(g, N), W_(again, N));
	POP();
	captured_free(g);
	d = end_capture(1);
	ok(is_known(g), "what another graph frees is there until that is launched");
	is_u64(astray(g, 1), 0, "nothing is touched where it is not there");
	for (i = 0; i < n; i++)
		fake_enqueue(RIG_Q(3), first[i]);
	/* as the shim tells a launch that allocates */
	rs_engine_free(eng, thr, RIG_Q(3), (uint64_t)g);
	rs_engine_alloc(eng, thr, RIG_Q(3), (uint64_t)g, N * 4, RS_ALLOC_DEVICE);
	launch(d, 3, 1);
	fake_drain();
	ok(!wrong(y, 3, 10) && !wrong(again, 3, 10),
	   "state in another graph's memory is preserved");
	outcomes(1, 0, 0, "state in another graph's memory");
	rs_capture_unref(c);
	ok(is_known(g), "what has become real is nobody's promise");
	rs_capture_unref(d);
	rig_stop();
	free(g);
}

/* Nothing comes of it: no graph, or it goes before anybody has launched it. */
static void test_broken_promises(void)
{
	uint32_t *g = graph_words();
	uint64_t before;
	struct rs_capture *c;

	set_up(RS_MODE_PRESERVE);
	before = live_bytes();
	begin_capture();
	captured_alloc(g);
	ok(is_known(g), "known while it is captured");
	ok(!end_capture(0) && !is_known(g), "and not when no graph has come of it");
	begin_capture();
	captured_alloc(g);
	c = end_capture(1);
	rs_capture_ref(c);
	rs_capture_unref(c);
	ok(is_known(g), "it is known as long as somebody has the graph");
	rs_capture_unref(c);
	ok(!is_known(g), "and no longer");
	begin_capture();
	rs_engine_capture_unseen(eng, RIG_Q(ORIGIN), 1);
	rs_engine_capture_allocated(eng, thr, RIG_Q(ORIGIN), 0, N * 4);
	captured_alloc(g);
	rs_engine_capture_frees(eng, thr, RIG_Q(ORIGIN), (uint64_t)g);
	rs_engine_capture_freed(eng, thr, RIG_Q(ORIGIN), (uint64_t)g, 0);
	ok(is_known(g), "calls that the driver refuses have done nothing");
	c = end_capture(1);
	/* the address is somebody else's now */
	rs_engine_alloc(eng, thr, RIG_Q(3), (uint64_t)g, N * 4, RS_ALLOC_DEVICE);
	rs_capture_unref(c);
	ok(is_known(g), "and a broken promise takes nothing from others");
	is_u64(live_bytes(), before + N * 4, "which counts as theirs");
	rig_stop();
	free(g);
}

/* The program's own memory, freed by a node: the segment's state is gone, but outside of the graph it is still there. */
static void test_frees_other(void)
{
	struct rs_capture *c;

	set_up(RS_MODE_PRESERVE);
	begin_capture();
	PUSH("forward:f");
	CAPTURED(triple, R_(s, N), W_(y, N));
	POP();
	captured_free(s);
	PUSH("replay:f");
	CAPTURED(copy, R_(y, N), W_(again, N));
	POP();
	ok(is_known(s), "it is there until the graph is launched");
	c = end_capture(1);
	launch(c, 3, 1);
	fake_drain();
	ok(strstr(rig_read("events.jsonl"), "RS012") != NULL, "state was freed before its replay");
	rs_capture_unref(c);
	rig_stop();
}

/* Other allocations than the forward's are a note, as elsewhere. */
static void test_residency(void)
{
	uint32_t *t = graph_words();
	struct rs_capture *c;

	set_up(RS_MODE_PRESERVE);
	begin_capture();
	PUSH("forward:f");
	by_way_of(t, y);
	POP();
	PUSH("replay:f");
	captured_alloc(t);
	CAPTURED(triple, R_(s, N), W_(t, N));
	CAPTURED(copy, R_(t, N), W_(again, N));
	POP();
	captured_free(t);
	c = end_capture(1);
	launch(c, 3, 1);
	fake_drain();
	outcomes(1, 0, 0, "other frees");
	ok(strstr(rig_read("records.jsonl"), "RS021") != NULL, "are told");
	rs_capture_unref(c);
	rig_stop();
	free(t);
}

/* State of the program's that lies in a mapping: its bytes are where that is. */
static void test_mapped(void)
{
	struct rs_capture *c;
	uint32_t *m;

	set_up(RS_MODE_PRESERVE);
	m = fake_map(4096);
	rs_engine_backing(eng, 7, 4096, RS_ALLOC_DEVICE);
	rs_engine_map(eng, (uint64_t)m, 4096, 7, 0);
	memcpy(m, s, N * 4);
	begin_capture();
	PUSH("forward:f");
	CAPTURED(triple, R_(m, N), W_(y, N));
	POP();
	CAPTURED(add, RW_(m, N), R_(delta, 1));
	PUSH("replay:f");
	CAPTURED(triple, R_(m, N), W_(again, N));
	POP();
	c = end_capture(1);
	launch(c, 3, 1);
	fake_drain();
	ok(!wrong(y, 3, 10) && !wrong(again, 3, 10) && !wrong(m, 1, 11),
	   "state in a mapping is preserved, and put back");
	outcomes(1, 0, 0, "state in a mapping");
	rs_capture_unref(c);
	rig_stop();
}

int main(void)
{
	test_mapped();
	test_product(RS_MODE_PRESERVE, 1);
	test_product(RS_MODE_PRESERVE, 0);
	test_product(RS_MODE_AUDIT, 1);
	test_state(0);
	test_state(1);
	test_freed();
	test_left();
	test_broken_promises();
	test_frees_other();
	test_residency();
	drop_nodes();
	return tap_done();
}
