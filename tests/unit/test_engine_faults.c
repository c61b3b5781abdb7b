/* SPDX-License-Identifier: MIT */
/*
 * Guarantee 7 as a property: random programs (random_program.h) on a device whose operations fail for the engine, and
 * with memory that others change unseen. Whatever fails, the program's own results are right up to its replays, a
 * replay that is recorded as a match has made what its forward made and left what it found, and once operations no longer
 * fail, and a new step has begun, replays are right again.
 *
 * Each program has one kind of operation that fails (or all of them), once, now and then, or from some moment on. The
 * program's own operations never fail. After a replay that is no match the model takes over what is on the device.
 *
 * Usage: test_engine_faults [programs] [first seed]
 */
#include "tests/unit/random_program.h"

/* clang-format off */
#define OPERATIONS(X)                                                                              \
	X(ALLOC) X(COPY) X(MOVE) X(SWAP) X(DIFF) X(DIGEST) X(RESULT_ALLOC) X(EVENT_RECORD)         \
	X(EVENT_WAIT) X(EVENT_DONE) X(EVENT_SYNC) X(MARK) X(ELAPSED) X(FRAME_ALLOC) X(FRAME_VIEW)  \
	X(REMAP) X(EVENT_WITHIN)
/* clang-format on */

enum operation {
#define X(name) OP_##name,
	OPERATIONS(X)
#undef X
		OPERATIONS_N
};

static const char *const operation_name[] = {
#define X(name) #name,
	OPERATIONS(X)
#undef X
		"any operation",
};

/* Which operation fails, and when. */
static struct {
	enum operation op;   /* OPERATIONS_N: each of them */
	unsigned after;	     /* as many are made before the first one fails */
	unsigned one_in;     /* then one in so many fails; 0: none but that one */
	unsigned long count; /* have failed */
	int armed;
} fault;

static unsigned long faults[OPERATIONS_N];

static int fails(enum operation op)
{
	if (!fault.armed || (fault.op != op && fault.op != OPERATIONS_N))
		return 0;
	if (fault.after) {
		fault.after--;
		return 0;
	}
	if (fault.count && (!fault.one_in || rnd(fault.one_in)))
		return 0;
	fault.count++;
	faults[op]++;
	return 1;
}

static int faulty_alloc(void *o, struct rs_queue q, uint64_t bytes, uint64_t *ret_addr)
{
	return fails(OP_ALLOC) ? -ENOMEM : fake_alloc(o, q, bytes, ret_addr);
}

static int faulty_copy(void *o, struct rs_queue q, uint64_t dst, uint64_t src, uint64_t bytes)
{
	return fails(OP_COPY) ? -EIO : fake_copy(o, q, dst, src, bytes);
}

/* One that fails has been made by half. */
static int faulty_move(void *o, struct rs_queue q, const struct rs_move *list, uint64_t n)
{
	int failed = fails(OP_MOVE);
	int err = fake_move(o, q, list, failed ? n / 2 : n);

	return failed ? -EIO : err;
}

static int faulty_swap(void *o, struct rs_queue q, uint64_t a, uint64_t b, uint64_t bytes)
{
	return fails(OP_SWAP) ? -EIO : fake_swap(o, q, a, b, bytes);
}

static int faulty_diff(void *o, struct rs_queue q, uint64_t a, uint64_t b, uint64_t bytes,
		       uint64_t *out)
{
	return fails(OP_DIFF) ? -EIO : fake_diff(o, q, a, b, bytes, out);
}

static int faulty_digest(void *o, struct rs_queue q, uint64_t addr, uint64_t bytes, uint64_t *out)
{
	return fails(OP_DIGEST) ? -EIO : fake_digest(o, q, addr, bytes, out);
}

/* Of many that fail half have been made. */
static int faulty_digest_many(void *o, struct rs_queue q, const struct rs_piece *list, uint64_t n)
{
	int failed = fails(OP_DIGEST);
	int err = fake_digest_many(o, q, list, failed ? n / 2 : n);

	return failed ? -EIO : err;
}

static int faulty_result_alloc(void *o, struct rs_queue q, uint64_t words, uint64_t **ret)
{
	return fails(OP_RESULT_ALLOC) ? -ENOMEM : fake_result_alloc(o, q, words, ret);
}

static int faulty_event_record(void *o, struct rs_queue q, uint64_t *ret)
{
	return fails(OP_EVENT_RECORD) ? -EIO : fake_event_record(o, q, ret);
}

static int faulty_event_wait(void *o, struct rs_queue q, uint64_t event)
{
	return fails(OP_EVENT_WAIT) ? -EIO : fake_event_wait(o, q, event);
}

static int faulty_event_done(void *o, uint64_t event)
{
	return fails(OP_EVENT_DONE) ? -EIO : fake_event_done(o, event);
}

static int faulty_event_sync(void *o, uint64_t event)
{
	return fails(OP_EVENT_SYNC) ? -EIO : fake_event_sync(o, event);
}

static int faulty_mark(void *o, struct rs_queue q, uint64_t *ret)
{
	return fails(OP_MARK) ? -EXDEV : fake_mark(o, q, ret);
}

static int faulty_elapsed(void *o, uint64_t from, uint64_t to, uint64_t *ret_ns)
{
	return fails(OP_ELAPSED) ? -EIO : fake_elapsed(o, from, to, ret_ns);
}

static int faulty_frame_alloc(void *o, struct rs_queue q, uint64_t addr, uint64_t bytes,
			      uint64_t *ret_frame, uint64_t *ret_addr)
{
	return fails(OP_FRAME_ALLOC) ? -ENOMEM
				     : fake_frame_alloc(o, q, addr, bytes, ret_frame, ret_addr);
}

static int faulty_frame_view(void *o, struct rs_queue q, uint64_t addr, uint64_t bytes,
			     uint64_t *ret_frame, uint64_t *ret_addr)
{
	return fails(OP_FRAME_VIEW) ? -ENOMEM
				    : fake_frame_view(o, q, addr, bytes, ret_frame, ret_addr);
}

/* Also so that nothing is mapped any more; not for ever. */
static int faulty_remap(void *o, uint64_t addr, uint64_t bytes, uint64_t home, uint64_t from,
			uint64_t to)
{
	if (from && fails(OP_REMAP))
		return rnd(2) ? -EIO : -EFAULT;
	return fake_remap(o, addr, bytes, home, from, to);
}

static int faulty_event_within(void *o, uint64_t event, uint64_t ns)
{
	return fails(OP_EVENT_WITHIN) ? -EIO : fake_event_within(o, event, ns);
}

static const struct rs_devops faulty_ops = {
	.alloc = faulty_alloc,
	.free = fake_free,
	.copy = faulty_copy,
	.move = faulty_move,
	.swap = faulty_swap,
	.diff = faulty_diff,
	.digest = faulty_digest,
	.digest_many = faulty_digest_many,
	.result_alloc = faulty_result_alloc,
	.result_free = fake_result_free,
	.event_record = faulty_event_record,
	.event_wait = faulty_event_wait,
	.event_done = faulty_event_done,
	.event_sync = faulty_event_sync,
	.event_free = fake_event_free,
	.mark = faulty_mark,
	.elapsed = faulty_elapsed,
	.mark_free = fake_mark_free,
	.frame_alloc = faulty_frame_alloc,
	.frame_view = faulty_frame_view,
	.frame_free = fake_frame_free,
	.remap = faulty_remap,
	.event_within = faulty_event_within,
};

/* large: with buffers of more than a page, which some options compare. remaps: with memory that is remapped. */
static void choose_fault(int large, int remaps)
{
	static const unsigned one_in[] = {0, 1, 2, 5};

	memset(&fault, 0, sizeof(fault));
	fault.op = large && !rnd(3) ? OP_DIFF : (enum operation)rnd(OPERATIONS_N + 1);
	if (remaps && rnd(4))
		fault.op = (enum operation)(OP_FRAME_ALLOC + rnd(OPERATIONS_N - OP_FRAME_ALLOC));
	fault.after = (unsigned)rnd(
		1u << rnd(fault.op >= OP_FRAME_ALLOC && fault.op < OPERATIONS_N ? 2 : 6));
	fault.one_in = one_in[rnd(4)];
}

static const char *wrong;
static unsigned faulty_step; /* 0 or 1 of 3: afterwards nothing fails any more */
static unsigned long matches, refusals, matches_with_faults;

static unsigned refused(void)
{
	struct rs_engine_stats st;

	rs_engine_finish(eng);
	rs_engine_stats(eng, &st);
	return (unsigned)(st.outcome[1] + st.outcome[2]);
}

/* Is the device what the model says? */
static int as_modelled(void)
{
	for (unsigned i = 0; i < NSTATE; i++)
		if (memcmp(buf[i].dev, buf[i].model, buf[i].bytes))
			return 0;
	return !memcmp(model_drawn, library_drawn, sizeof(model_drawn));
}

static void take_over(void)
{
	for (unsigned i = 0; i < NBUF; i++)
		memcpy(buf[i].model, buf[i].dev, buf[i].bytes);
	memcpy(model_drawn, library_drawn, sizeof(model_drawn));
}

/* Nobody but the program has changed anything. */
static void check_program(const char *what)
{
	if (!fake_drain())
		wrong = "a queue waits for ever";
	if (!wrong && (!as_modelled() || bad_bytes))
		wrong = what;
	bad_bytes = 0;
}

/*
 * The program looks at everything, ordered after the replay as it must be, and before anybody has waited for that. must:
 * it has to be a match, too.
 */
static void preserved_replay(unsigned which, int must)
{
	unsigned before = refused(), known = npend, i, no_match;

	check_program("bytes changed before a replay");
	replay(which, 0);
	for (i = 0; i < NSTATE; i++)
		look(&buf[i]);
	no_match = refused() - before;
	if (!fake_drain())
		wrong = "a queue waits for ever";
	if (!wrong && !no_match && (bad_bytes || !as_modelled()))
		wrong = "a match that is none";
	if (!wrong && no_match && must)
		wrong = "no match although nothing fails";
	bad_bytes = 0;
	refusals += no_match;
	matches += !no_match;
	matches_with_faults += !no_match && fault.count;
	if (!no_match)
		return;
	take_over();
	for (i = known; i < npend; i++)
		pend[i].lost = 1;
}

/* Under audit the model makes what the device makes; faults only take verdicts away. */
static void watched_replay(unsigned which)
{
	unsigned before = missed;

	audited_replay(which);
	check_program("an audit changed bytes");
	if (!wrong && missed != before)
		wrong = "an audit missed a difference";
}

/* Somebody whom nobody sees. */
static void others_write(void)
{
	struct buf *b = &buf[NSTATE - 1];
	uint64_t off = rnd((uint32_t)b->bytes);

	check_program("bytes changed");
	b->model[off]++;
	b->dev[off]++;
}

static void between(void)
{
	if (!rnd(3))
		foreign_write();
	if (kind_of_last != RS_ALLOC_DEVICE && !rnd(3))
		others_write();
}

static void one_step(const struct seg *segs, unsigned step)
{
	int faulty = step == faulty_step;
	unsigned i, n = 1 + (unsigned)rnd(5);
	char text[32];

	if (planned)
		give_plan(step);
	snprintf(text, sizeof(text), "step:%u", step);
	rs_engine_mark(eng, thr, text);
	fault.armed = faulty;
	npend = 0;
	for (i = 0; i < n; i++) {
		choose_thread();
		forward(&segs[rnd(MAXSEG)], 0);
		between();
	}
	check_program("a forward changed more than its own bytes");
	n = (unsigned)rnd(6);
	for (i = 0; i < n && !wrong; i++) {
		choose_thread();
		if (audit)
			watched_replay((unsigned)rnd(npend));
		else
			preserved_replay((unsigned)rnd(npend),
					 !faulty && kind_of_last == RS_ALLOC_DEVICE);
		between();
	}
	fault.armed = 0;
	check_program("bytes changed after a replay");
	for (i = 0; i < npend; i++)
		drop_state(&pend[i].p0);
}

static const char *run_program(uint64_t seed)
{
	static const uint8_t kinds[] = {RS_ALLOC_DEVICE, RS_ALLOC_DEVICE, RS_ALLOC_EXTERNAL,
					RS_ALLOC_MANAGED, RS_ALLOC_HOST};
	struct seg segs[MAXSEG];
	unsigned i, step;

	fake_reset(seed, 0);
	bad_bytes = 0;
	wrong = NULL;
	kind_of_last = seed & 1 ? RS_ALLOC_DEVICE : kinds[rnd(5)]; /* odd seeds map memory */
	setup(seed);
	choose_fault(seed % 5 == 0, seed % 8 == 7);
	faulty_step = (unsigned)rnd(2);
	for (i = 0; i < MAXSEG; i++)
		make_segment(segs, &segs[i], i);
	for (step = 0; step < 3 && !wrong; step++) {
		planned = seed % 3 == 0 && step && !audit;
		one_step(segs, step);
	}
	rs_engine_finish(eng);
	rs_engine_mark(eng, thr, "step:9");
	for (i = 0; i < NTHREAD; i++)
		rs_thread_destroy(thread[i]);
	rs_engine_destroy(eng);
	if ((fake.live_blocks || fake.live_frames) && !wrong)
		wrong = "snapshot memory leaked";
	for (i = 0; i < NBUF; i++)
		free_buffer(&buf[i]);
	return wrong;
}

static unsigned run_programs(uint64_t first, uint64_t n)
{
	unsigned failed = 0;

	for (uint64_t s = first; s < first + n; s++)
		if (run_program(s) && failed++ < 60)
			tap_diag("seed %" PRIu64
				 ", %s fails after %u, one in %u (%lu did), memory %d: %s",
				 s, operation_name[fault.op], fault.after, fault.one_in,
				 fault.count, kind_of_last, wrong);
	return failed;
}

/* Neither what a forward made nor what its replay made, which is something else, could be digested. */
static void without_digests(void)
{
	struct buf *product = &buf[NSTATE];
	struct rs_engine_stats st;

	fake_reset(2, 0);
	kind_of_last = RS_ALLOC_DEVICE;
	setup(2);
	memset(&fault, 0, sizeof(fault));
	fault.op = OP_DIGEST;
	fault.one_in = fault.armed = 1;
	for (noise = 0; noise < 2; noise++) {
		rs_engine_push(eng, thr, noise ? "replay:x#0" : "forward:x#0");
		launch(7, product, 0, product->bytes, &buf[0], 0, buf[0].bytes, NULL, 0);
		rs_engine_pop(eng, thr);
	}
	noise = 0;
	rs_engine_finish(eng);
	rs_engine_stats(eng, &st);
	ok(fault.count > 1 && !st.outcome[0] && st.outcome[1] == 1,
	   "products that could not be compared are not equal");
	for (unsigned i = 0; i < NTHREAD; i++)
		rs_thread_destroy(thread[i]);
	rs_engine_destroy(eng);
	for (unsigned i = 0; i < NBUF; i++)
		free_buffer(&buf[i]);
}

int main(int argc, char **argv)
{
	uint64_t n = programs(argc, argv, 300);
	uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;

	device_ops = &faulty_ops;
	ok(!run_programs(first, n),
	   "%" PRIu64 " programs preserved while operations fail: no match that is none", n);
	ok(matches > n / 2 && refusals > n / 20 && matches_with_faults > n / 20,
	   "%lu replays matched, %lu of them with failures around, and %lu did not", matches,
	   matches_with_faults, refusals);
	audit = 1;
	ok(!run_programs(first, n),
	   "%" PRIu64 " programs audited while operations fail: none missed", n);
	without_digests();
	for (unsigned i = 0; i < OPERATIONS_N; i++)
		ok(faults[i] || n < 250, "%s failed %lu times", operation_name[i], faults[i]);
	return tap_done();
}
