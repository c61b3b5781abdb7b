/* SPDX-License-Identifier: MIT */
/*
 * Restoring by remapping: when it is done, that the bytes are right and the program's mapping is its own again, and what
 * happens where it cannot be done, or fails. Random programs: test_engine_random.c.
 */
#include <pthread.h>

#include "tests/unit/engine_rig.h"

#define N     65536u /* words */
#define BYTES (N * 4ull)
#define H     77u /* the handle of x's backing */

static uint32_t *x, *y;

static struct rs_engine_stats now(void)
{
	struct rs_engine_stats s;

	fake_drain();
	rs_engine_poll(eng);
	rs_engine_finish(eng);
	rs_engine_stats(eng, &s);
	return s;
}

/* y = first, middle and last word of x */
static void three(struct rig_arg *a)
{
	const uint32_t *p = a[1].p;

	a[0].p[0] = p[0] + 10 * p[N / 2] + 100 * p[N - 1];
}

static void set_all(struct rig_arg *a)
{
	for (unsigned i = 0; i < N; i++)
		a[0].p[i] = 9;
}

/* the same as `three`, and x is counted up */
static void count_up(struct rig_arg *a)
{
	three(a);
	for (unsigned i = 0; i < N; i++)
		a[1].p[i]++;
}

/* A preserving engine that remaps; x is mapped once, as a whole. */
static void start(enum rs_option option)
{
	rig_start(RS_MODE_PRESERVE);
	fake.eager = 0;
	ok(!rs_engine_policy(eng, NULL, (struct rs_policy){(uint8_t)option, RS_RESTORE_REMAP}),
	   "policy %d, by remapping", option);
	x = fake_map(BYTES);
	y = words(1);
	rs_engine_backing(eng, H, BYTES, RS_ALLOC_DEVICE);
	rs_engine_map(eng, (uint64_t)x, BYTES, H, 0);
	x[0] = 1, x[N / 2] = 2, x[N - 1] = 3;
}

static void stop(void)
{
	rig_stop();
	is_u64(fake.live_frames, 0, "no frame is left");
	fake_unmap(x);
}

static void forward(const char *name)
{
	PUSH(name);
	KERNEL(three, W_(y, 1), R_(x, N));
	POP();
}

#define OVERWRITE() KERNEL(set_all, W_(x, N))

static void begin_replay_of(const char *name, uint32_t *to, uint32_t *from)
{
	PUSH(name);
	KERNEL(three, W_(to, 1), R_(from, N));
}

static void begin_replay(const char *name)
{
	begin_replay_of(name, y, x);
}

static void present_is_back(uint32_t word, const char *what)
{
	fake_drain();
	ok(x[0] == word && x[N / 2] == word && x[N - 1] == word, "%s: the present bytes are back",
	   what);
}

/* Is x's own memory, and no frame, at its address? What is seen through the backing tells. */
static int is_home(void)
{
	uint32_t *view = fake_view_of(NULL, BYTES, fake_mapped((uint64_t)x)->fd);
	int same;

	view[1] ^= 0x5a5a;
	same = view[1] == x[1];
	view[1] ^= 0x5a5a;
	munmap(view, BYTES);
	return same;
}

/* k replays: each is shown the forward's bytes without a copy of the present ones. */
static void replays(enum rs_option option, unsigned k)
{
	start(option);
	forward("forward:f");
	OVERWRITE();
	for (unsigned i = 0; i < k; i++) {
		uint64_t before = fake.copies + fake.moves;

		begin_replay("replay:f#0");
		fake_drain();
		is_u64(y[0], 321, "the replay sees the bytes of the forward");
		POP();
		present_is_back(9, "after it");
		is_u64(fake.copies + fake.moves, before, "and nothing was copied");
	}
	is_u64(now().outcome[0], k, "matches");
	is_u64(fake.remaps, 2 * k, "remapped there and back");
	is_u64(now().remaps, k, "as the engine counts it");
	is_u64(now().remap_failures, 0, "without a failure");
	is_u64(now().snapshot_bytes_peak, BYTES, "and preserved once");
	ok(is_home(), "the program's memory is its own again");
	rs_engine_mark(eng, thr, "step:2");
	is_u64(now().snapshot_bytes, 0, "a step ends it");
	ok(rs_engine_trim(eng) >= BYTES, "and the frame can be given back");
	stop();
}

/* The replay writes what it is shown: that must reach neither the present bytes nor a later replay. */
static void writing(unsigned k)
{
	start(RS_OPTION_UNDO);
	rs_engine_region(eng, (uint64_t)x, BYTES, "state:x");
	PUSH("forward:f");
	KERNEL(count_up, W_(y, 1), RW_(x, N));
	POP();
	OVERWRITE();
	for (unsigned i = 0; i < k; i++) {
		PUSH("replay:f#0");
		KERNEL(count_up, W_(y, 1), RW_(x, N));
		POP();
		fake_drain();
		ok(y[0] == 321, "replay %u of %u that writes sees the bytes of the forward", i + 1,
		   k);
		present_is_back(9, "after it");
	}
	is_u64(now().outcome[0], k, "matches");
	ok(fake.remaps >= 2 * (k > 0), "by remapping (%" PRIu64 ")", fake.remaps);
	ok(is_home(), "the program's memory is its own again");
	stop();
}

/* --- where it does not apply ----------------------------------------------------------------------- */

static void not_twice_mapped(void)
{
	uint32_t *alias;

	start(RS_OPTION_UNDO);
	alias = fake_view_of(NULL, BYTES, fake_mapped((uint64_t)x)->fd);
	rs_engine_map(eng, (uint64_t)alias, BYTES, H, 0);
	forward("forward:f");
	OVERWRITE();
	begin_replay("replay:f#0");
	POP();
	fake_drain();
	is_u64(y[0], 321, "memory with an alias is shown by copy");
	present_is_back(9, "after it");
	is_u64(now().outcome[0], 1, "a match");
	is_u64(fake.remaps, 0, "and nothing was remapped");
	stop();
	munmap(alias, BYTES);
}

static void set_middle(struct rig_arg *a)
{
	a[0].p[a[0].first] = 7;
}

static void not_a_part(void)
{
	start(RS_OPTION_UNDO);
	forward("forward:f");
	KERNEL(set_middle, {x, N / 2, 1, RS_WRITE, 0, 0});
	begin_replay("replay:f#0");
	POP();
	fake_drain();
	is_u64(y[0], 321, "a part of a mapping is shown by copy");
	is_u64(x[N / 2], 7, "and the present bytes come back");
	is_u64(now().outcome[0], 1, "a match");
	is_u64(fake.remaps, 0, "and nothing was remapped");
	stop();
}

static void not_where_others_look(int how)
{
	static const char *const what[] = {"exported", "bound to a multicast object", "fixed"};

	start(RS_OPTION_UNDO);
	if (how == 1) {
		rs_engine_backing(eng, 99, BYTES, RS_ALLOC_DEVICE);
		rs_engine_multicast_bind(eng, 99, 0, H, 0, BYTES);
	} else if (how == 2) {
		rs_engine_remap_pause_handle(eng, H, 1);
		rs_engine_remap_go_on(eng);
	}
	forward("forward:f");
	OVERWRITE();
	if (!how)
		rs_engine_share_handle(eng, H);
	begin_replay("replay:f#0");
	POP();
	present_is_back(9, what[how]);
	ok(!fake.remaps, "memory that is %s is not remapped", what[how]);
	stop();
}

/* --- failures --------------------------------------------------------------------------------------- */

/* No frame, or no second address of the program's memory: by copy, or by a swap. */
static void no_frame(int which)
{
	start(RS_OPTION_UNDO);
	forward("forward:f");
	fake.fail_frame = which ? 0 : 1;
	OVERWRITE();
	fake.fail_frame = which ? 1 : 0;
	begin_replay("replay:f#0");
	POP();
	fake_drain();
	ok(y[0] == 321, "without %s the replay sees its bytes", which ? "a view" : "a frame");
	present_is_back(9, "after it");
	is_u64(fake.remaps, 0, "not by remapping");
	begin_replay("replay:f#0");
	POP();
	present_is_back(9, "after the next one");
	is_u64(now().outcome[0], 2, "matches");
	is_u64(fake.remaps, which ? 2u : 0u, "and then it is tried again, where there is a frame");
	stop();
}

/* The mapping fails on the way in or back; it may leave nothing mapped, which is mended. */
static void no_mapping(int back, int unmaps)
{
	start(RS_OPTION_UNDO);
	forward("forward:f");
	OVERWRITE();
	fake.unmaps = unmaps;
	fake.fail_remap = back ? 0 : 1;
	begin_replay("replay:f#0");
	fake_drain();
	ok(y[0] == 321, "failing %s, %d times with nothing mapped: the replay sees its bytes",
	   back ? "back" : "in", unmaps);
	fake.fail_remap = back ? 1 : 0;
	POP();
	fake.fail_remap = 0;
	present_is_back(9, "after it");
	x[1] = 5; /* wherever that is now */
	begin_replay("replay:f#0");
	POP();
	fake_drain();
	is_u64(y[0], 321, "and so does the next one");
	ok(x[0] == 9 && x[1] == 5, "and the present bytes come back");
	is_u64(now().outcome[0], 2, "matches");
	is_u64(now().internal_errors, 0, "no internal error");
	ok(now().remap_failures > 0, "a failure was counted");
	rs_engine_remap_pause(eng, (uint64_t)x, 1);
	ok(is_home() && x[0] == 9 && x[1] == 5,
	   "before the program's own calls its memory is its own");
	rs_engine_remap_go_on(eng);
	stop();
}

/* Nothing can be mapped there any more: that is said, and no operation touches it. */
static void lost_mapping(void)
{
	start(RS_OPTION_UNDO);
	forward("forward:f");
	OVERWRITE();
	fake.unmaps = 100;
	fake.fail_remap = -1;
	fake_drain();
	fake.lazy = 31;
	begin_replay("replay:f#0");
	fake.head[0] = fake.tail[0]; /* the kernel that would fault */
	POP();
	fake.fail_remap = 0;
	is_u64(now().outcome[0], 0, "memory that is gone: no match");
	ok(now().internal_errors > 0, "that is said");
	fake_view_of(x, BYTES, fake_mapped((uint64_t)x)->fd);
	stop();
}

/* Work that the device does not get done: the host does not wait for ever, and then not again. */
static void stuck(int back)
{
	uint64_t ev;

	start(RS_OPTION_UNDO);
	forward("forward:f");
	OVERWRITE();
	fake_drain();
	fake_event_record(NULL, RIG_Q(5), &ev);
	fake_drain();
	fake.event[ev - 1].passed = !back ? 0 : 1;
	if (!back)
		fake_event_wait(NULL, RIG_Q(0), ev);
	begin_replay("replay:f#0");
	if (back) {
		fake_drain();
		fake.event[ev - 1].passed = 0;
		fake_event_wait(NULL, RIG_Q(0), ev);
	}
	POP();
	fake.event[ev - 1].passed = 1;
	fake_drain();
	ok(y[0] == 321, "stuck %s: the replay sees its bytes", back ? "at its end" : "at first");
	present_is_back(9, "after it");
	is_u64(fake.remaps, back ? 1u : 0u, "it was given up");
	begin_replay("replay:f#0");
	POP();
	present_is_back(9, "after the next one");
	is_u64(fake.remaps, back ? 1u : 0u, "and not tried again");
	is_u64(now().outcome[0], 2, "matches");
	rs_engine_remap_pause(eng, (uint64_t)x, 1);
	ok(is_home() && x[0] == 9, "before the program's own calls its memory is its own");
	rs_engine_remap_go_on(eng);
	stop();
}

/* What might wait for this thread is not waited for. */
static void not_while(int what)
{
	struct rs_call host = {.name = "host", .kind = RS_CALL_HOST, .q = RIG_Q(3)};
	uint64_t met;

	start(RS_OPTION_UNDO);
	forward("forward:f");
	OVERWRITE();
	met = rs_engine_stalls(eng);
	if (what) {
		rs_engine_before(eng, thr, &host);
		rs_engine_after(eng, thr, &host, 1);
	} else {
		rs_engine_queue_stalls(eng, thr, RIG_Q(3));
	}
	begin_replay("replay:f#0");
	POP();
	fake_drain();
	ok(y[0] == 321, "beside a %s: the replay sees its bytes",
	   what ? "host function" : "queue that stalls");
	is_u64(fake.remaps, 0, "by copy");
	/* A wait that had begun before has not waited for it. */
	rs_engine_queues_go_on_since(eng, 1, NULL, met);
	begin_replay("replay:f#0");
	POP();
	fake_drain();
	is_u64(fake.remaps, 0, "and beside a wait that began before, too");
	rs_engine_queues_go_on(eng, 1, NULL);
	begin_replay("replay:f#0");
	POP();
	present_is_back(9, "once that is over");
	is_u64(fake.remaps, 2, "it is remapped");
	is_u64(now().outcome[0], 3, "matches");
	stop();
}

/* --- in the middle of a replay ------------------------------------------------------------------------ */

/* The program asks what is mapped, or changes it, or the context goes. */
static void settled(int how)
{
	start(RS_OPTION_UNDO);
	forward("forward:f");
	OVERWRITE();
	begin_replay("replay:f#0");
	is_u64(fake.remaps, 1, "a replay is shown a frame");
	if (how == 0)
		rs_engine_remap_pause(eng, (uint64_t)x + 8, 1);
	else if (how == 1)
		rs_engine_remap_pause_handle(eng, H, 0);
	else
		rs_engine_ctx_leaves(eng, 1);
	ok(is_home(), "the program finds its own memory there");
	is_u64(x[0], 1, "with the bytes that the replay is to see");
	if (how < 2)
		rs_engine_remap_go_on(eng);
	KERNEL(three, W_(y, 1), R_(x, N));
	POP();
	fake_drain();
	is_u64(y[0], 321, "the replay goes on");
	present_is_back(9, "after it");
	begin_replay("replay:f#0");
	POP();
	fake_drain();
	is_u64(y[0], 321, "the next one finds its bytes, too");
	present_is_back(9, "after it");
	is_u64(now().outcome[0], 2, "matches");
	stop();
}

/* The bytes cannot change places when it must be settled: the program's own are not lost, the replay's are. */
static void settled_badly(void)
{
	start(RS_OPTION_UNDO);
	forward("forward:f");
	OVERWRITE();
	begin_replay("replay:f#0");
	fake.fail_copy = 1;
	rs_engine_remap_pause(eng, (uint64_t)x, 1);
	ok(is_home(), "a failing exchange: the program finds its own memory");
	is_u64(x[0], 9, "with its own bytes");
	rs_engine_remap_go_on(eng);
	POP();
	present_is_back(9, "after it");
	is_u64(now().outcome[0], 0, "and that replay is no match");
	stop();
}

/* Unmapped in the middle of it: its keeps survive, and no device memory is kept longer than the program's. */
static void unmapped_inside(void)
{
	start(RS_OPTION_UNDO);
	forward("forward:f");
	OVERWRITE();
	begin_replay("replay:f#0");
	rs_engine_remap_pause(eng, (uint64_t)x, BYTES);
	rs_engine_unmap(eng, (uint64_t)x, BYTES);
	rs_engine_backing_release(eng, H);
	rs_engine_remap_go_on(eng);
	POP();
	now();
	rs_engine_mark(eng, thr, "step:1");
	rs_engine_remap_pause(eng, 0, 0);
	rs_engine_remap_go_on(eng);
	is_u64(fake.live_frames, 0, "memory that is unmapped holds no frame");
	stop();
}

/* A replay inside of another one, of an older version of the same memory. */
static void nested(void)
{
	start(RS_OPTION_UNDO);
	forward("forward:f");
	OVERWRITE();
	forward("forward:g");
	KERNEL(count_up, W_(y, 1), RW_(x, N));
	begin_replay("replay:f#0");
	fake_drain();
	is_u64(y[0], 321, "the outer replay sees its bytes");
	begin_replay("replay:g#0");
	fake_drain();
	is_u64(y[0], 999, "the inner one its own");
	POP();
	KERNEL(three, W_(y, 1), R_(x, N));
	fake_drain();
	is_u64(y[0], 321, "and the outer one its own again");
	POP();
	present_is_back(10, "after both");
	is_u64(now().outcome[0], 2, "matches");
	ok(is_home(), "the program's memory is its own again");
	stop();
}

/* The end never comes: a step does. */
static void aborted(void)
{
	start(RS_OPTION_UNDO);
	forward("forward:f");
	OVERWRITE();
	begin_replay("replay:f#0");
	rs_engine_mark(eng, thr, "step:2");
	present_is_back(9, "aborted");
	ok(is_home(), "the program's memory is its own again");
	stop();
}

static pthread_barrier_t step;

/* A call of another thread, which takes its time between before and after. */
static void *slow_call(void *arg)
{
	struct rs_access a = {.addr = (uint64_t)x, .bytes = BYTES, .dir = RS_READ};
	struct rs_call call = {
		.name = "other", .kind = RS_CALL_KERNEL, .q = RIG_Q(4), .access = &a, .naccess = 1};
	struct rs_thread *t = rs_thread_create(eng);

	(void)arg;
	rs_engine_before(eng, t, &call);
	pthread_barrier_wait(&step);
	pthread_barrier_wait(&step);
	rs_engine_after(eng, t, &call, 1);
	rs_thread_destroy(t);
	return NULL;
}

/* What may not have been enqueued yet cannot be waited for: it rules remapping out. */
static void other_thread(void)
{
	pthread_t other;

	start(RS_OPTION_UNDO);
	forward("forward:f");
	OVERWRITE();
	pthread_barrier_init(&step, NULL, 2);
	if (pthread_create(&other, NULL, slow_call, NULL))
		exit(2);
	pthread_barrier_wait(&step);
	begin_replay("replay:f#0");
	pthread_barrier_wait(&step);
	pthread_join(other, NULL);
	POP();
	fake_drain();
	is_u64(y[0], 321, "with a call in flight the replay sees its bytes");
	is_u64(fake.remaps, 0, "but not by remapping");
	present_is_back(9, "after it");
	is_u64(now().outcome[0], 1, "a match");
	pthread_barrier_destroy(&step);
	stop();
}

static uint32_t *t, *seen;
static pthread_t reader_thread;
static struct rs_thread *reader, *replayer;
static struct rs_call reading;
static _Atomic int reader_goes;

/* A call on t that may reach anything. It is enqueued later. */
static void *read_t(void *arg)
{
	static struct rs_access a;

	a = (struct rs_access){.addr = (uint64_t)t,
			       .bytes = BYTES,
			       .dir = RS_READ,
			       .how = RS_HOW_REACHABLE,
			       .whole = 1};
	reading = (struct rs_call){.name = "reader",
				   .kind = RS_CALL_KERNEL,
				   .q = RIG_Q(4),
				   .access = &a,
				   .naccess = 1};
	rs_engine_before(eng, reader, &reading);
	reader_goes = 1;
	return arg;
}

/* While x is closed: the reader comes, and waits; then a replay is shown its own bytes of t. */
static void others_come(void)
{
	struct rs_thread *own = thr;

	pthread_create(&reader_thread, NULL, read_t, NULL);
	usleep(20000);
	ok(!reader_goes, "who may reach what is being remapped waits");
	thr = replayer;
	begin_replay_of("replay:g#0", seen, t);
	thr = own;
}

/* Who has waited until memory was open finds the program's bytes, whatever another replay was shown in the meantime. */
static void shown_meanwhile(void)
{
	rig_verify = 0;
	start(RS_OPTION_UNDO);
	t = words(N);
	seen = words(1);
	reader = rs_thread_create(eng);
	replayer = rs_thread_create(eng);
	t[0] = 1, t[N / 2] = 2, t[N - 1] = 3;
	forward("forward:f");
	begin_replay_of("forward:g", seen, t);
	POP();
	OVERWRITE();
	KERNEL(set_all, W_(t, N));
	fake_drain();
	reader_goes = 0;
	fake.meanwhile = others_come;
	begin_replay("replay:f#0");
	ok(!fake.meanwhile, "x is remapped");
	pthread_join(reader_thread, NULL);
	fake_drain();
	is_u64(seen[0], 321, "another replay is shown its own meanwhile");
	is_u64(t[0], 9, "who waited until memory was open finds the program's bytes");
	rs_engine_after(eng, reader, &reading, 1);
	POP();
	rs_engine_pop(eng, replayer);
	fake_drain();
	is_u64(t[0], 9, "which stay");
	present_is_back(9, "after both");
	rs_thread_destroy(reader);
	rs_thread_destroy(replayer);
	stop();
	rig_verify = 1;
}

int main(void)
{
	replays(RS_OPTION_UNDO, 0);
	replays(RS_OPTION_UNDO, 1);
	replays(RS_OPTION_UNDO, 3);
	replays(RS_OPTION_WHOLE, 3);
	writing(0);
	writing(1);
	writing(3);
	not_twice_mapped();
	not_a_part();
	for (int how = 0; how < 3; how++)
		not_where_others_look(how);
	no_frame(0);
	no_frame(1);
	for (int back = 0; back < 2; back++)
		for (int unmaps = 0; unmaps < 3; unmaps++)
			no_mapping(back, unmaps);
	lost_mapping();
	stuck(0);
	stuck(1);
	not_while(0);
	not_while(1);
	for (int how = 0; how < 3; how++)
		settled(how);
	settled_badly();
	unmapped_inside();
	nested();
	aborted();
	other_thread();
	shown_meanwhile();
	return tap_done();
}
