/* SPDX-License-Identifier: MIT */
/*
 * The fake device (fake_dev.h) with stream captures: queues ORIGIN and OTHER can be in one, whose operations are kept as a
 * list, in an order that a graph allows, and are enqueued when it is launched. Single threaded, as the rig.
 */
#ifndef CAPTURE_DEV_H
#define CAPTURE_DEV_H

#include "tests/unit/engine_rig.h"
#include "tracker/capture.h"

#define ORIGIN 1u
#define OTHER  2u
#define NODES  512u

/* Queues ORIGIN and OTHER are in the capture `id`, 0: none. Its operations are kept in their order, which a graph allows. */
static struct {
	uint64_t id, ids;
	struct fake_op node[NODES];
	unsigned queue[NODES], n;
	int fail_after;		/* so many operations until they fail; 0: never */
	unsigned waits;		/* for events of the capture */
	int fail_wait, fail_of; /* these, and questions for the capture, fail */
	void (*meanwhile)(
		void); /* once, before the next operation is added: what another thread does */
	enum rs_captures how; /* RS_CAPTURES_OFF: FOLLOW */
	int learns;
} cap;

static int in_capture(struct rs_queue q)
{
	return cap.id != 0 && (q.stream == ORIGIN || q.stream == OTHER);
}

static int add_node(struct rs_queue q, struct fake_op op)
{
	void (*meanwhile)(void) = cap.meanwhile;

	cap.meanwhile = NULL;
	if (meanwhile)
		meanwhile();
	if (cap.fail_after && !--cap.fail_after) {
		cap.fail_after = 1;
		return -EIO;
	}
	if (cap.n == NODES)
		return -ENOMEM;
	cap.queue[cap.n] = (unsigned)q.stream;
	cap.node[cap.n++] = op;
	return 0;
}

static int cap_of(void *o, struct rs_queue q, uint64_t *ret, uint64_t *ret_graph)
{
	(void)o;
	if (cap.fail_of)
		return -EIO;
	*ret = in_capture(q) ? cap.id : 0;
	if (ret_graph)
		*ret_graph = cap.id;
	return 0;
}

static uint64_t cap_nodes(void *o, struct rs_queue q, uint64_t graph)
{
	(void)o;
	(void)q;
	return graph == cap.id ? cap.n : UINT64_MAX;
}

static int cap_copy(void *o, struct rs_queue q, uint64_t dst, uint64_t src, uint64_t bytes)
{
	if (!in_capture(q))
		return fake_copy(o, q, dst, src, bytes);
	return add_node(
		q, (struct fake_op){.kind = FAKE_COPY, .dst = dst, .src = src, .bytes = bytes});
}

static int cap_digest(void *o, struct rs_queue q, uint64_t addr, uint64_t bytes, uint64_t *out)
{
	if (!in_capture(q))
		return fake_digest(o, q, addr, bytes, out);
	return add_node(
		q, (struct fake_op){.kind = FAKE_DIGEST, .src = addr, .bytes = bytes, .out = out});
}

static int cap_move(void *o, struct rs_queue q, const struct rs_move *list, uint64_t n)
{
	int err = 0;

	if (!in_capture(q))
		return fake_move(o, q, list, n);
	for (uint64_t i = 0; i < n && !err; i++)
		err = cap_copy(o, q, list[i].dst, list[i].src, list[i].bytes);
	return err;
}

static int cap_swap(void *o, struct rs_queue q, uint64_t a, uint64_t b, uint64_t bytes)
{
	if (!in_capture(q))
		return fake_swap(o, q, a, b, bytes);
	return add_node(q, (struct fake_op){.kind = FAKE_SWAP, .dst = a, .src = b, .bytes = bytes});
}

/* Within the capture the list is the order. */
#define CAPTURED_EVENT (1ull << 40)

static int cap_record(void *o, struct rs_queue q, uint64_t *ret)
{
	if (!in_capture(q))
		return fake_event_record(o, q, ret);
	*ret = CAPTURED_EVENT;
	return 0;
}

static int cap_wait(void *o, struct rs_queue q, uint64_t event)
{
	if (in_capture(q) != (event == CAPTURED_EVENT))
		return -EXDEV;
	if (in_capture(q) && cap.fail_wait)
		return -EIO;
	cap.waits += (unsigned)in_capture(q);
	return in_capture(q) ? 0 : fake_event_wait(o, q, event);
}

static int cap_done(void *o, uint64_t event)
{
	return event == CAPTURED_EVENT ? -EXDEV : fake_event_done(o, event);
}

static int cap_sync(void *o, uint64_t event)
{
	return event == CAPTURED_EVENT ? -EXDEV : fake_event_sync(o, event);
}

static void cap_free(void *o, uint64_t event)
{
	if (event != CAPTURED_EVENT)
		fake_event_free(o, event);
}

static struct rs_devops cap_ops;

/* The engine with captures; the rig's own is thrown away. */
static void start(enum rs_mode mode)
{
	struct rs_engine_config config = {.mode = mode,
					  .verify = rig_verify,
					  .snapshot_max = rig_snapshot_max,
					  .capture = cap.how ? cap.how : RS_CAPTURES_FOLLOW,
					  .profile = (uint8_t)cap.learns,
					  .order = 1};

	rig_start(mode);
	rs_thread_destroy(thr);
	rs_engine_destroy(eng);
	cap_ops = fake_ops;
	cap_ops.capture_of = cap_of;
	cap_ops.capture_nodes = cap_nodes;
	cap_ops.copy = cap_copy;
	cap_ops.digest = cap_digest;
	cap_ops.move = cap_move;
	cap_ops.swap = cap_swap;
	cap_ops.event_record = cap_record;
	cap_ops.event_wait = cap_wait;
	cap_ops.event_done = cap_done;
	cap_ops.event_sync = cap_sync;
	cap_ops.event_free = cap_free;
	eng = rs_engine_create(&config, &cap_ops, rec);
	thr = rs_thread_create(eng);
}

static void drop_nodes(void)
{
	for (unsigned i = 0; i < cap.n; i++)
		if (cap.node[i].kind == FAKE_CALL)
			free(cap.node[i].arg);
	cap.n = 0;
}

static void begin_capture(void)
{
	drop_nodes();
	cap.id = ++cap.ids;
	rs_engine_capture_begin(eng, RIG_Q(ORIGIN));
}

static struct rs_capture *end_capture(int graph)
{
	rs_engine_capture_ends(eng, RIG_Q(ORIGIN));
	cap.id = 0;
	return rs_engine_capture_end(eng, RIG_Q(ORIGIN), graph);
}

/* From one queue of the capture to another. */
static inline void hand_over(unsigned from, unsigned to, uint64_t event)
{
	rs_engine_capture_recorded(eng, thr, RIG_Q(from), event);
	rs_engine_capture_waited(eng, thr, RIG_Q(to), event);
}

/* Everything in the graph, once. */
static void run_nodes(unsigned q)
{
	for (unsigned i = 0; i < cap.n; i++) {
		struct fake_op op = cap.node[i];

		if (op.kind == FAKE_CALL) {
			op.arg = malloc(sizeof(struct rig_body));
			memcpy(op.arg, cap.node[i].arg, sizeof(struct rig_body));
		}
		fake_enqueue(RIG_Q(q), op);
	}
}

static inline void launch(struct rs_capture *c, unsigned q, int vouched)
{
	if (c)
		rs_capture_launches(c, RIG_Q(q));
	run_nodes(q);
	if (c)
		rs_capture_launched(c, RIG_Q(q), vouched, 1);
}

/* A kernel that is being captured. */
static inline void captured_q(unsigned q, const char *name, void (*fn)(struct rig_arg *),
			      unsigned n, const struct rig_arg *a, int everything)
{
	struct rs_access x[4];
	struct rs_call call = {.name = name,
			       .ident = (uint64_t)(uintptr_t)fn,
			       .kind = RS_CALL_KERNEL,
			       .q = RIG_Q(q),
			       .access = x,
			       .naccess = n,
			       .everything = (uint8_t)everything,
			       .capturing = 1,
			       .capture = cap.id % 2 ? cap.id : 0}; /* told, or asked */
	struct rig_body *b = malloc(sizeof(*b));

	b->fn = fn;
	memcpy(b->a, a, n * sizeof(*a));
	for (unsigned i = 0; i < n; i++)
		x[i] = (struct rs_access){.addr = (uint64_t)(a[i].p + a[i].first),
					  .bytes = a[i].n * 4,
					  .dir = (uint8_t)a[i].dir,
					  .how = RS_HOW_PTX,
					  .dense = !a[i].partial,
					  .slot = (uint16_t)i};
	rs_engine_before(eng, thr, &call);
	cap.queue[cap.n] = q;
	cap.node[cap.n++] = (struct fake_op){.kind = FAKE_CALL, .fn = rig_run, .arg = b};
	rs_engine_after(eng, thr, &call, 1);
}

#define CAPTURED_Q(q, fn, ...)                                                                     \
	captured_q(q, #fn, fn, sizeof((struct rig_arg[]){__VA_ARGS__}) / sizeof(struct rig_arg),   \
		   (struct rig_arg[]){__VA_ARGS__}, 0)
#define CAPTURED(fn, ...) CAPTURED_Q(ORIGIN, fn, __VA_ARGS__)

static inline void outcomes(unsigned match, unsigned rejection, unsigned divergence,
			    const char *what)
{
	const char *text = rig_read("records.jsonl");

	ok(count(text, "\"outcome\":\"match\"") == match, "%s: matches", what);
	ok(count(text, "\"outcome\":\"rejection\"") == rejection, "%s: rejections", what);
	ok(count(text, "\"outcome\":\"divergence\"") == divergence, "%s: divergences", what);
}

#endif
