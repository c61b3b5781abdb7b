/* SPDX-License-Identifier: MIT */
/*
 * The short cut for calls outside of windows (rs_call.calm): everything after which an equal call does need something
 * makes the answer void. Each case makes a call until it is known to need nothing, changes something, and makes it
 * again as the shim does: what the engine missed then shows as wrong bytes or as a wrong verdict.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "tests/unit/engine_rig.h"
#include "tracker/model.h"

static void read_it(struct rig_arg *a)
{
	a[0].p[0] = a[1].p[0];
}

static void bump(struct rig_arg *a)
{
	a[0].p[0] += 1;
}

#define ON(q, fn, ...)                                                                             \
	kernel_q(q, #fn, fn, sizeof((struct rig_arg[]){__VA_ARGS__}) / sizeof(struct rig_arg),     \
		 (struct rig_arg[]){__VA_ARGS__})

static uint64_t matches(void)
{
	return count(rig_read("records.jsonl"), "\"outcome\":\"match\"");
}

/* Was the last kernel not described? */
static int skipped(void)
{
	static unsigned long before;
	int is = rig_calm.taken != before;

	before = rig_calm.taken;
	return is;
}

/* A forward that nobody here is interested in, so that something is pending. */
static void something_pending(void)
{
	uint32_t *other = words(1), *product = words(1);

	PUSH("forward:other");
	KERNEL(read_it, W_(product, 1), R_(other, 1));
	POP();
}

/* x is written twice; the second time the call was not described. */
static void settle(unsigned q, uint32_t *x)
{
	ON(q, bump, RW_(x, 1)); /* a stream seen first takes the long way */
	ON(q, bump, RW_(x, 1));
	skipped();
	ON(q, bump, RW_(x, 1));
	ok(skipped(), "a third equal call is not described");
}

/* Another thread's forward reads x: the next write must save what it saw. */
static void claimed_by_another(enum rs_mode mode)
{
	struct rs_thread *first, *second;
	uint32_t *x, *y;

	rig_start(mode);
	first = thr;
	second = rs_thread_create(eng);
	x = words(1), y = words(1);
	STEP(1);
	something_pending();
	settle(0, x);
	thr = second;
	PUSH("forward:f");
	KERNEL(read_it, W_(y, 1), R_(x, 1));
	thr = first; /* while the forward is still open */
	ON(0, bump, RW_(x, 1));
	ok(!skipped(), "a call on what is claimed now is described");
	ON(0, bump, RW_(x, 1));
	ON(0, bump, RW_(x, 1));
	thr = second;
	POP();
	PUSH("replay:f");
	KERNEL(read_it, W_(y, 1), R_(x, 1));
	POP();
	if (mode == RS_MODE_PRESERVE) {
		is_u64(*y, 3, "the replay sees what its forward saw");
		is_u64(*x, 6, "and leaves what was written since");
		is_u64(matches(), 1, "a match");
	} else {
		is_u64(matches(), 0, "audit: a divergence");
		ok(count(rig_read("events.jsonl"), "\"name\":\"bump\""), "by that writer");
	}
	thr = first;
	rs_thread_destroy(second);
	rig_stop();
}

static uint32_t seen;

static void look(struct rig_arg *a)
{
	seen = a[0].p[0];
}

/* The same with a claim as the only change: the forward is open already, and writes nothing. */
static void claimed_late(void)
{
	struct rs_thread *first, *second;
	uint32_t *x;

	rig_start(RS_MODE_PRESERVE);
	first = thr;
	second = rs_thread_create(eng);
	x = words(1);
	STEP(1);
	thr = second;
	PUSH("forward:f");
	thr = first;
	settle(0, x);
	thr = second;
	KERNEL(look, R_(x, 1));
	is_u64(seen, 3, "the forward reads");
	thr = first;
	ON(0, bump, RW_(x, 1));
	ok(!skipped(), "a call on what has just been claimed is described");
	thr = second;
	POP();
	PUSH("replay:f");
	KERNEL(look, R_(x, 1));
	POP();
	is_u64(seen, 3, "the replay reads the same");
	is_u64(*x, 4, "and leaves what was written since");
	is_u64(matches(), 1, "a match");
	thr = first;
	rs_thread_destroy(second);
	rig_stop();
}

/* A replay ends, and what is digested then must come before another stream's next write. */
static void fenced_by_audit(void)
{
	struct rs_thread *first, *second;
	uint32_t *x, *y;

	rig_start(RS_MODE_AUDIT);
	first = thr;
	second = rs_thread_create(eng);
	x = words(1), y = words(1);
	STEP(1);
	thr = second;
	PUSH("forward:f");
	ON(1, bump, RW_(y, 1));
	POP();
	PUSH("replay:f");
	ON(1, bump, RW_(y, 1));
	thr = first;
	ON(2, read_it, W_(x, 1), R_(y, 1));
	ON(2, read_it, W_(x, 1), R_(y, 1));
	skipped();
	ON(2, read_it, W_(x, 1), R_(y, 1));
	ok(skipped(), "an equal read is not described");
	thr = second;
	POP();
	thr = first;
	ON(2, read_it, W_(x, 1), R_(y, 1));
	ok(!skipped(), "one after the end of a replay that wrote to it is");
	rs_thread_destroy(second);
	rig_stop();
}

/* The host waits: what comes after may be ordered by that, each time. */
static void synchronous(void)
{
	uint32_t *x;

	rig_start(RS_MODE_AUDIT);
	x = words(1);
	STEP(1);
	something_pending();
	settle(0, x);
	for (unsigned i = 0; i < 2; i++) {
		struct rs_access a = {.addr = (uint64_t)x, .bytes = 4, .dir = RS_READ};
		struct rs_call c = {.name = "c",
				    .kind = RS_CALL_COPY,
				    .q = RIG_Q(0),
				    .access = &a,
				    .naccess = 1,
				    .synchronous = i == 0};

		rs_engine_before(eng, thr, &c);
		rs_engine_after(eng, thr, &c, 1);
		ok(!c.calm == (i == 0),
		   i ? "the same without waiting" : "a synchronous call is never like another");
	}
	rig_stop();
}

/* The first forward retires: claims are of an epoch that has passed. Then it is claimed once more. */
static void claimed_again(void)
{
	uint32_t *x, *y;
	unsigned i;

	rig_start(RS_MODE_PRESERVE);
	x = words(1), y = words(1);
	STEP(1);
	for (i = 0; i < 3; i++) {
		something_pending();
		settle(0, x);
		PUSH("forward:f");
		KERNEL(read_it, W_(y, 1), R_(x, 1));
		POP();
		ON(0, bump, RW_(x, 1));
		PUSH("replay:f");
		KERNEL(read_it, W_(y, 1), R_(x, 1));
		POP();
		is_u64(*y, *x - 1, "the replay sees what its forward saw");
		STEP(2);
	}
	is_u64(matches(), 3, "matches");
	rig_stop();
}

/* Claims compare an epoch of 32 bits: one that comes round may cost a description, never a pre-image. */
static void epoch_wraps(void)
{
	uint32_t *x, *y, *epoch;

	rig_start(RS_MODE_PRESERVE);
	epoch = &eng->claim_epoch;
	*epoch = UINT32_MAX - 2;
	x = words(1), y = words(1);
	for (unsigned i = 0; i < 4; i++) {
		STEP(1);
		PUSH("forward:f");
		KERNEL(read_it, W_(y, 1), R_(x, 1));
		POP();
		ON(0, bump, RW_(x, 1));
		PUSH("replay:f");
		KERNEL(read_it, W_(y, 1), R_(x, 1));
		POP();
		is_u64(*y, i, "the replay sees what its forward saw");
	}
	ok(*epoch < 100, "the epoch came round");
	rig_stop();
}

/* Memory that is freed and given out again at the same address is other memory. */
static void same_address(void)
{
	uint32_t *x, *y, *z;
	const void *was;
	uint64_t base, bytes;

	rig_start(RS_MODE_PRESERVE);
	y = words(1), z = words(1);
	x = words(1);
	STEP(1);
	something_pending();
	ON(0, read_it, W_(z, 1), R_(x, 1));
	ON(0, read_it, W_(z, 1), R_(x, 1));
	settle(0, x);
	was = rs_engine_lookup(eng, (uint64_t)x, &base, &bytes);
	rs_engine_free(eng, thr, RIG_Q(0), (uint64_t)x);
	ON(0, bump, RW_(x, 1));
	ok(!skipped(), "a call on freed memory is described");
	rs_engine_alloc(eng, thr, RIG_Q(0), (uint64_t)x, 4, RS_ALLOC_DEVICE);
	ON(0, bump, RW_(x, 1));
	ok(!skipped(), "one on new memory at that address, too");
	ok(was, "it was known");
	PUSH("forward:f");
	KERNEL(read_it, W_(y, 1), R_(x, 1));
	POP();
	ON(0, bump, RW_(x, 1));
	PUSH("replay:f");
	KERNEL(read_it, W_(y, 1), R_(x, 1));
	POP();
	is_u64(*y, *x - 1, "the replay sees what its forward saw");
	is_u64(matches(), 1, "a match");
	rig_stop();
}

/* An address gets memory that is claimed under another address. */
static void remapped(void)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	int fd = memfd_create("backing", 0);
	uint32_t *at, *other, *y;

	if (fd < 0 || ftruncate(fd, (off_t)page))
		exit(2);
	at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	other = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	rig_start(RS_MODE_PRESERVE);
	y = words(1);
	rs_engine_alloc(eng, thr, RIG_Q(0), (uint64_t)at, page, RS_ALLOC_DEVICE);
	STEP(1);
	rs_engine_backing(eng, 77, page, RS_ALLOC_DEVICE);
	rs_engine_map(eng, (uint64_t)other, page, 77, 0);
	PUSH("forward:f");
	KERNEL(read_it, W_(y, 1), R_(other, 1));
	POP();
	settle(0, at);
	*at = 0;
	rs_engine_free(eng, thr, RIG_Q(0), (uint64_t)at);
	rs_engine_map(eng, (uint64_t)at, page, 77, 0);
	ON(0, bump, RW_(at, 1));
	ok(!skipped(), "a call on an address with other memory is described");
	PUSH("replay:f");
	KERNEL(read_it, W_(y, 1), R_(other, 1));
	POP();
	is_u64(*y, 0, "the replay sees what its forward saw");
	is_u64(*at, 1, "and leaves what was written since");
	is_u64(matches(), 1, "a match");
	rig_stop();
	munmap(at, page);
	munmap(other, page);
	close(fd);
}

/* The shim's own work on the bytes: a call of another stream that was like one before must wait for it. */
static void fenced(uint64_t seed)
{
	uint32_t *x, *y, *z;

	rig_start(RS_MODE_PRESERVE);
	x = words(1), y = words(1), z = words(1);
	STEP(1);
	something_pending();
	*x = 5;
	PUSH("forward:f");
	ON(1, read_it, W_(y, 1), R_(x, 1));
	POP();
	ON(1, bump, RW_(x, 1));
	/* reads of what is claimed need nothing */
	ON(2, read_it, W_(z, 1), R_(x, 1));
	ON(2, read_it, W_(z, 1), R_(x, 1));
	skipped();
	ON(2, read_it, W_(z, 1), R_(x, 1));
	ok(skipped(), "an equal read is not described");
	fake_drain();
	fake.eager = 0;
	fake.rng = seed;
	fake.lazy = 0;
	PUSH("replay:f");
	ON(1, read_it, W_(y, 1), R_(x, 1));
	POP();
	ON(2, read_it, W_(z, 1), R_(x, 1));
	ok(!skipped(), "one after the shim has changed the bytes is");
	fake_drain();
	is_u64(*z, 6, "it sees what the program wrote, not what the replay was shown");
	is_u64(*y, 5, "which the replay saw");
	rig_stop();
}

/* The mark of a write is one of its time: a forward that began since must not take the bytes for unchanged. */
static void marked_anew(void)
{
	uint32_t *s, *x, *y, *z;

	rig_start(RS_MODE_PRESERVE);
	s = words(1), x = words(1), y = words(1), z = words(1);
	rs_engine_region(eng, (uint64_t)x, 4, "state:x");
	STEP(1);
	something_pending();
	settle(0, x);
	PUSH("forward:f");
	KERNEL(read_it, W_(y, 1), R_(s, 1));
	POP();
	ON(0, bump, RW_(x, 1));
	ok(!skipped(), "a call after a forward has begun is described");
	PUSH("replay:f");
	KERNEL(read_it, W_(y, 1), R_(s, 1));
	KERNEL(read_it, W_(z, 1), R_(x, 1)); /* the forward would have read something else */
	POP();
	is_u64(matches(), 0, "what only the replay read has changed since the forward");
	rig_stop();
}

/* A write that is only ever skipped would leave no mark at all: the first one leaves it. */
static void marked_once(void)
{
	uint32_t *s, *x, *y, *z;

	rig_start(RS_MODE_PRESERVE);
	s = words(1), x = words(1), y = words(1), z = words(1);
	rs_engine_region(eng, (uint64_t)x, 4, "state:x");
	STEP(1);
	ON(0, read_it, W_(z, 1), R_(x, 1));
	PUSH("forward:f");
	KERNEL(read_it, W_(y, 1), R_(s, 1));
	POP();
	/* a read that needs nothing, then a write of the same memory */
	ON(0, read_it, W_(z, 1), R_(x, 1));
	ON(0, read_it, W_(z, 1), R_(x, 1));
	ON(0, read_it, W_(x, 1), R_(z, 1));
	PUSH("replay:f");
	KERNEL(read_it, W_(y, 1), R_(s, 1));
	KERNEL(read_it, W_(z, 1), R_(x, 1));
	POP();
	is_u64(matches(), 0, "a write is not like a read of the same memory");
	rig_stop();
}

/* In a window of its own, or one of the process, every call counts. */
static void own_windows(void)
{
	uint32_t *x, *y;
	uint64_t id;

	rig_start(RS_MODE_PRESERVE);
	x = words(1), y = words(1);
	STEP(1);
	something_pending();
	ON(0, read_it, W_(y, 1), R_(x, 1));
	ON(0, read_it, W_(y, 1), R_(x, 1));
	settle(0, x);
	ON(0, read_it, W_(y, 1), R_(x, 1));
	PUSH("an ordinary range");
	ON(0, bump, RW_(x, 1));
	ok(skipped(), "an ordinary range changes nothing");
	POP();
	PUSH("forward:f");
	ON(0, read_it, W_(y, 1), R_(x, 1));
	ok(!skipped(), "a call in a forward is described");
	POP();
	ON(0, bump, RW_(x, 1));
	PUSH("replay:f");
	ON(0, read_it, W_(y, 1), R_(x, 1));
	ok(!skipped(), "and in a replay");
	POP();
	is_u64(*y, *x - 1, "which sees what its forward saw");
	STEP(2);
	something_pending();
	settle(0, x);
	id = rs_engine_range_start(eng, thr, "forward:g");
	ON(0, read_it, W_(y, 1), R_(x, 1));
	ok(!skipped(), "a call in a window of the process is described");
	rs_engine_range_end(eng, thr, id);
	ON(0, bump, RW_(x, 1));
	PUSH("replay:g");
	ON(0, read_it, W_(y, 1), R_(x, 1));
	POP();
	is_u64(*y, *x - 1, "the replay sees what its forward saw");
	is_u64(matches(), 2, "matches");
	rig_stop();
}

/* A replay without a forward opens a window, too, though no version is given. */
static void lone_replay(void)
{
	uint32_t *x;

	rig_start(RS_MODE_PRESERVE);
	x = words(1);
	STEP(1);
	something_pending();
	settle(0, x);
	PUSH("replay:nobody");
	ON(0, bump, RW_(x, 1));
	ok(!skipped(), "a call in a replay without a forward is described");
	POP();
	rig_stop();
}

/* A stream's handle is given out again: it is another stream, whose order nobody knows yet. */
static void other_stream(void)
{
	uint32_t *x;

	rig_start(RS_MODE_PRESERVE);
	x = words(1);
	STEP(1);
	something_pending();
	settle(3, x);
	rs_engine_queue_destroy(eng, RIG_Q(3));
	ON(3, bump, RW_(x, 1));
	ok(!skipped(), "a call on another stream of that handle is described");
	settle(3, x);
	rig_stop();
}

/* Behind a wait for a value a call counts as one behind it: nobody may be made to wait for it. */
static void stalled(void)
{
	uint32_t *x, *y, *z;

	rig_start(RS_MODE_PRESERVE);
	x = words(1), y = words(1), z = words(1);
	*x = 5;
	STEP(1);
	something_pending();
	PUSH("forward:f");
	ON(1, read_it, W_(y, 1), R_(x, 1));
	POP();
	ON(1, bump, RW_(x, 1));
	ON(2, read_it, W_(z, 1), R_(x, 1));
	ON(2, read_it, W_(z, 1), R_(x, 1));
	skipped();
	ON(2, read_it, W_(z, 1), R_(x, 1));
	ok(skipped(), "an equal read is not described");
	rs_engine_queue_stalls(eng, thr, RIG_Q(2));
	ON(2, read_it, W_(z, 1), R_(x, 1));
	ok(!skipped(), "one behind a wait for a value is");
	PUSH("replay:f");
	ON(1, read_it, W_(y, 1), R_(x, 1));
	POP();
	is_u64(matches(), 0, "a replay that must come after it is rejected");
	rig_stop();
}

/* Calls on the legacy stream order others: when that has been taken notice of, the next one counts again. */
static void legacy_stream(void)
{
	const struct rs_engine_config config = {.mode = RS_MODE_AUDIT, .verify = 1, .order = 1};
	uint32_t *z;

	rig_start(RS_MODE_AUDIT);
	rs_thread_destroy(thr);
	rs_engine_destroy(eng);
	eng = rs_engine_create(&config, &fake_ops, rec);
	thr = rs_thread_create(eng);
	memset(&rig_calm, 0, sizeof(rig_calm));
	z = words(1);
	STEP(1);
	something_pending();
	settle(0, z);
	rs_engine_event_record(eng, thr, RIG_Q(1), 99);
	ON(0, bump, RW_(z, 1));
	ok(!skipped(), "one after that has been taken notice of is described");
	rig_stop();
}

static void idle_on(unsigned first, int want, const char *what)
{
	int wrong = 0;

	for (unsigned q = first; q < 4; q++)
		wrong += rs_engine_idle(eng, thr, RIG_Q(q)) != want;
	ok(!wrong, "%s", what);
}

/*
 * What the shim has done to live bytes is to be waited for until the device has come past it, and no longer. Replays on
 * several streams; then nothing is pending.
 */
static void fences_end(enum rs_mode mode, int lost)
{
	uint32_t *x, *y, *z;

	rig_start(mode);
	x = words(1), y = words(1), z = words(1);
	for (unsigned q = 0; q < 4; q++)
		ON(q, read_it, W_(z, 1), R_(x, 1));
	idle_on(0, 1, "at first calls need not be described");
	*x = 5;
	STEP(1);
	PUSH("forward:f");
	ON(1, bump, RW_(x, 1));
	POP();
	ON(1, bump, RW_(x, 1));
	fake_drain();
	fake.eager = 0;
	fake.lazy = 20;
	for (unsigned q = 1; q < 4; q++) {
		PUSH("replay:f");
		ON(q, bump, RW_(x, 1));
		POP();
	}
	STEP(2);
	rs_engine_poll(eng);
	idle_on(0, 0, "with replays on the device they are");
	ON(0, read_it, W_(z, 1), R_(x, 1));
	ON(2, bump, RW_(x, 1));
	fake_drain();
	fake.lost = lost;
	rs_engine_poll(eng);
	fake.lost = 0;
	if (lost) {
		idle_on(0, 0, "where the device does not answer nobody knows");
		rig_stop();
		return;
	}
	idle_on(0, 1, "and not any more when the device has come past them");
	is_u64(*z, mode == RS_MODE_PRESERVE ? 7 : 10, "who came in between saw what was put back");
	PUSH("forward:f");
	ON(1, bump, RW_(x, 1));
	POP();
	ON(3, bump, RW_(y, 1));
	fake_drain();
	skipped();
	ON(2, bump, RW_(x, 1));
	PUSH("replay:f");
	ON(3, bump, RW_(x, 1));
	POP();
	STEP(3);
	fake_drain();
	rs_engine_finish(eng);
	idle_on(0, 1, "another time, too");
	rig_stop();
}

/* A replay that has not ended holds its fence, whatever has become of others. */
static void fences_of_two(void)
{
	struct rs_thread *first, *second;
	uint32_t *x, *y;

	rig_start(RS_MODE_PRESERVE);
	first = thr;
	second = rs_thread_create(eng);
	x = words(1), y = words(1);
	STEP(1);
	PUSH("forward:f");
	ON(1, bump, RW_(x, 1));
	POP();
	PUSH("forward:g");
	ON(1, bump, RW_(y, 1));
	POP();
	ON(1, bump, RW_(x, 1));
	ON(1, bump, RW_(y, 1));
	PUSH("replay:f");
	ON(1, bump, RW_(x, 1));
	thr = second;
	PUSH("replay:g");
	ON(1, bump, RW_(y, 1));
	POP();
	rs_engine_finish(eng);
	ok(eng->fence_queues, "a fence of the open replay stays");
	thr = first;
	POP();
	rs_engine_finish(eng);
	is_u64(eng->fence_queues, 0, "until it has ended");
	is_u64(*x, 2, "P2");
	is_u64(*y, 2, "of both");
	rs_thread_destroy(second);
	rig_stop();
}

#define MANY 40000u /* words; pages are thinned out only of more than one page */

static void bump_first(struct rig_arg *a)
{
	a[0].p[0] += 1;
}

/*
 * While nothing is pending nobody follows writes, so the bytes of a version change; a keep of that version that is still
 * in an operation's hands (here the comparison of its pages) must not be taken for them.
 */
static void old_keep(void)
{
	uint32_t *x, *y;

	rig_start(RS_MODE_PRESERVE);
	x = words(MANY), y = words(1);
	rs_engine_policy(eng, NULL, (struct rs_policy){RS_OPTION_PAGES, RS_RESTORE_COPY});
	fake.eager = 0;
	fake.lazy = 20;
	STEP(1);
	PUSH("forward:f");
	ON(1, read_it, W_(y, 1), R_(x, MANY));
	POP();
	PUSH("replay:f");
	ON(1, read_it, W_(y, 1), R_(x, MANY));
	ON(1, bump_first, RW_(x, MANY)); /* held, and what its forward claims */
	POP();
	STEP(2);
	ON(1, bump_first, RW_(x, MANY)); /* not followed */
	PUSH("forward:g");
	ON(1, read_it, W_(y, 1), R_(x, MANY));
	POP();
	ON(1, bump_first, RW_(x, MANY));
	PUSH("replay:g");
	ON(1, read_it, W_(y, 1), R_(x, MANY));
	POP();
	fake_drain();
	is_u64(*y, 1, "the replay sees what its forward saw, not what was kept for an earlier one");
	is_u64(*x, 2, "and leaves what was written since");
	rig_stop();
}

/* Two threads for real: what one has claimed before it says so, the other one's next call takes account of. */
static struct {
	pthread_barrier_t turn;
	uint32_t *x;
	unsigned rounds, described;
} shared;

static void *writer(void *arg)
{
	struct rs_thread *t = rs_thread_create(eng);
	struct calm calm = {.taken = 0};

	(void)arg;
	for (unsigned i = 0; i < shared.rounds; i++) {
		pthread_barrier_wait(&shared.turn); /* claimed */
		for (unsigned k = 0; k < 4; k++) {
			struct rs_access a = {.addr = (uint64_t)shared.x,
					      .bytes = 4,
					      .dir = RS_WRITE,
					      .how = RS_HOW_PTX,
					      .dense = 1};
			struct rs_call c = {.name = "w",
					    .ident = 9,
					    .kind = RS_CALL_KERNEL,
					    .q = RIG_Q(2),
					    .access = &a,
					    .naccess = 1};

			calm_before(&calm, eng, t, &c);
			shared.described += !k && !calm.skipped;
			*shared.x += 1;
			calm_after(&calm, eng, t, &c);
		}
		pthread_barrier_wait(&shared.turn); /* written */
	}
	rs_thread_destroy(t);
	return NULL;
}

static void threads(void)
{
	pthread_t other;
	uint32_t *y;
	unsigned wrong = 0;

	rig_start(RS_MODE_PRESERVE);
	shared.x = words(1), y = words(1);
	shared.rounds = 300;
	shared.described = 0;
	pthread_barrier_init(&shared.turn, NULL, 2);
	pthread_create(&other, NULL, writer, NULL);
	STEP(1);
	something_pending();
	for (unsigned i = 0; i < shared.rounds; i++) {
		uint32_t saw = *shared.x;

		PUSH("forward:f#0");
		ON(1, read_it, W_(y, 1), R_(shared.x, 1));
		pthread_barrier_wait(&shared.turn);
		if (i % 2)
			POP();
		pthread_barrier_wait(&shared.turn);
		if (!(i % 2))
			POP();
		PUSH("replay:f#0");
		ON(1, read_it, W_(y, 1), R_(shared.x, 1));
		wrong += *y != saw;
		POP();
		wrong += *shared.x != saw + 4;
	}
	pthread_join(other, NULL);
	pthread_barrier_destroy(&shared.turn);
	is_u64(wrong, 0, "two threads: every replay sees what its forward saw");
	is_u64(shared.described, shared.rounds, "every first write after a claim was described");
	rig_stop();
}

int main(void)
{
	claimed_by_another(RS_MODE_PRESERVE);
	claimed_by_another(RS_MODE_AUDIT);
	claimed_late();
	claimed_again();
	same_address();
	remapped();
	for (uint64_t seed = 1; seed < 20; seed++)
		fenced(seed);
	fenced_by_audit();
	synchronous();
	marked_anew();
	marked_once();
	own_windows();
	lone_replay();
	other_stream();
	stalled();
	legacy_stream();
	epoch_wraps();
	fences_end(RS_MODE_PRESERVE, 0);
	fences_end(RS_MODE_AUDIT, 0);
	fences_end(RS_MODE_PRESERVE, 1);
	fences_of_two();
	old_keep();
	threads();
	return tap_done();
}
