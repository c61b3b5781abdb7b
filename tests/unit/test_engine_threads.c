/* SPDX-License-Identifier: MIT */
/*
 * The engine under threads: allocations, calls, windows and steps at once, on memory that each thread
 * owns, so that every replay has one right answer; and, operation by operation, threads that come to the same memory while
 * another one's operations are planned and not enqueued yet. For TSan and ASan; the device runs in place.
 */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "tests/tap.h"
#include "tracker/digest.h"
#include "tracker/engine.h"

#define THREADS 4
#define ROUNDS	150

static pthread_mutex_t device =
	PTHREAD_MUTEX_INITIALIZER; /* orders the threads as a device would */

static int d_alloc(void *o, struct rs_queue q, uint64_t n, uint64_t *ret)
{
	void *p = malloc(n);

	(void)o, (void)q;
	*ret = (uint64_t)p;
	return p ? 0 : -ENOMEM;
}

static void d_free(void *o, struct rs_queue q, uint64_t a)
{
	(void)o, (void)q;
	free((void *)a);
}

/* So many copies from now, one takes until go_on. */
static _Atomic int stop_at, stopped, go_on;

static int d_copy(void *o, struct rs_queue q, uint64_t dst, uint64_t src, uint64_t n)
{
	(void)o, (void)q;
	if (stop_at && !--stop_at) {
		stopped = 1;
		while (!go_on)
			usleep(100);
	}
	pthread_mutex_lock(&device);
	memcpy((void *)dst, (void *)src, n);
	pthread_mutex_unlock(&device);
	return 0;
}

static int d_digest(void *o, struct rs_queue q, uint64_t a, uint64_t n, uint64_t *out)
{
	(void)o, (void)q;
	pthread_mutex_lock(&device);
	rs_digest_range((void *)a, n, out);
	pthread_mutex_unlock(&device);
	return 0;
}

static uint64_t *slabs[256];
static _Atomic unsigned nslabs;

static int d_result_alloc(void *o, struct rs_queue q, uint64_t words, uint64_t **ret)
{
	(void)o, (void)q;
	*ret = calloc(words, 8);
	slabs[nslabs++ % 256] = *ret;
	return *ret ? 0 : -ENOMEM;
}

static void d_result_free(void *o, uint64_t *w)
{
	(void)o, (void)w;
}

static int d_record(void *o, struct rs_queue q, uint64_t *ret)
{
	(void)o, (void)q;
	*ret = 1;
	return 0;
}

/* The device is not done while slow, and the question takes until it is no longer held. */
static _Atomic int slow, hold, asking;

static int d_event(void *o, uint64_t e)
{
	(void)o, (void)e;
	asking = 1;
	while (hold)
		usleep(100);
	return !slow;
}

static int d_sync(void *o, uint64_t e)
{
	(void)o, (void)e;
	return 0;
}

static int d_wait(void *o, struct rs_queue q, uint64_t e)
{
	(void)o, (void)q, (void)e;
	return 0;
}

static void d_event_free(void *o, uint64_t e)
{
	(void)o, (void)e;
}

static const struct rs_devops ops = {
	.alloc = d_alloc,
	.free = d_free,
	.copy = d_copy,
	.digest = d_digest,
	.result_alloc = d_result_alloc,
	.result_free = d_result_free,
	.event_record = d_record,
	.event_wait = d_wait,
	.event_done = d_event,
	.event_sync = d_sync,
	.event_free = d_event_free,
};

static struct rs_engine *eng;

struct worker {
	unsigned id, wrong;
};

/* y = 10 * s ; s = s + 1 */
static void call(struct rs_thread *t, unsigned stream, uint32_t *y, uint32_t *s)
{
	struct rs_access x[2] = {
		{.addr = (uint64_t)y,
		 .bytes = 4,
		 .dir = RS_WRITE,
		 .how = RS_HOW_PTX,
		 .dense = 1,
		 .slot = 0},
		{.addr = (uint64_t)s,
		 .bytes = 4,
		 .dir = RS_READ | RS_WRITE,
		 .how = RS_HOW_PTX,
		 .dense = 1,
		 .slot = 1},
	};
	struct rs_call c = {.name = "k",
			    .ident = 1,
			    .kind = RS_CALL_KERNEL,
			    .q = {.ctx = 1, .stream = stream},
			    .access = x,
			    .naccess = 2};

	rs_engine_before(eng, t, &c);
	pthread_mutex_lock(&device);
	*y = 10 * *s;
	*s += 1;
	pthread_mutex_unlock(&device);
	rs_engine_after(eng, t, &c, 1);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct rs_thread *t = rs_thread_create(eng);
	char fwd[32], rep[32];

	snprintf(fwd, sizeof(fwd), "forward:t%u#7", w->id);
	snprintf(rep, sizeof(rep), "replay:t%u#7", w->id);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t *y = aligned_alloc(256, 256), *s = aligned_alloc(256, 256);

		*y = 0, *s = 3;
		rs_engine_alloc(eng, t, (struct rs_queue){.ctx = 1}, (uint64_t)y, 256,
				RS_ALLOC_DEVICE);
		rs_engine_alloc(eng, t, (struct rs_queue){.ctx = 1}, (uint64_t)s, 256,
				RS_ALLOC_DEVICE);
		rs_engine_push(eng, t, fwd);
		call(t, w->id, y, s);
		rs_engine_pop(eng, t);
		for (unsigned k = 0; k < 2; k++) {
			*y = 0;
			rs_engine_push(eng, t, rep);
			call(t, w->id, y, s);
			rs_engine_pop(eng, t);
			w->wrong += *y != 30 || *s != 4;
		}
		rs_engine_free(eng, t, (struct rs_queue){.ctx = 1}, (uint64_t)y);
		rs_engine_free(eng, t, (struct rs_queue){.ctx = 1}, (uint64_t)s);
		free(y);
		free(s);
	}
	rs_thread_destroy(t);
	return NULL;
}

static void *poll(void *arg)
{
	rs_engine_poll(eng);
	return arg;
}

static void *finish(void *arg)
{
	rs_engine_finish(eng);
	*(_Atomic int *)arg = 1;
	return NULL;
}

/* Whoever waits for all records waits also for the one that another thread is just asking about. */
static void finish_beside_poll(void)
{
	struct rs_engine_config config = {.mode = RS_MODE_PRESERVE, .verify = 1};
	struct rs_thread *t;
	struct rs_engine_stats st;
	pthread_t asker, finisher;
	uint32_t *y = aligned_alloc(256, 256), *s = aligned_alloc(256, 256);
	_Atomic int finished = 0;

	*y = 0, *s = 3;
	eng = rs_engine_create(&config, &ops, NULL);
	t = rs_thread_create(eng);
	rs_engine_alloc(eng, t, (struct rs_queue){.ctx = 1}, (uint64_t)y, 256, RS_ALLOC_DEVICE);
	rs_engine_alloc(eng, t, (struct rs_queue){.ctx = 1}, (uint64_t)s, 256, RS_ALLOC_DEVICE);
	slow = 1;
	rs_engine_push(eng, t, "forward:f");
	call(t, 1, y, s);
	rs_engine_pop(eng, t);
	rs_engine_push(eng, t, "replay:f");
	call(t, 1, y, s);
	rs_engine_pop(eng, t);
	asking = 0;
	hold = 1;
	pthread_create(&asker, NULL, poll, NULL);
	while (!asking)
		usleep(100);
	pthread_create(&finisher, NULL, finish, &finished);
	usleep(20000);
	ok(!finished, "the end of the run waits for a record that another thread asks about");
	hold = 0;
	pthread_join(asker, NULL);
	pthread_join(finisher, NULL);
	rs_engine_stats(eng, &st);
	is_u64(st.outcome[0], 1, "and does not lose it");
	slow = 0;
	rs_thread_destroy(t);
	rs_engine_destroy(eng);
	free(y);
	free(s);
}

/* A thread and its segment, which makes y of the state that all share. */
struct actor {
	struct rs_thread *t;
	const char *name;
	unsigned stream;
	uint32_t *y;
	_Atomic int done;
};

static uint32_t *state;

#define ANYTHING 8 /* written by a call that may write anything */

/* 1: stop between the description of a call and the call, until go_on. */
static _Atomic int describe_only;

static void act_call(struct actor *a, uint32_t *to, uint32_t value)
{
	struct rs_access x[2] = {{.addr = (uint64_t)to, .dir = RS_WRITE, .slot = 0},
				 {.addr = (uint64_t)state, .dir = RS_READ, .slot = 1}};
	struct rs_call c = {.name = "k",
			    .ident = 1 + value,
			    .kind = RS_CALL_KERNEL,
			    .q = {.ctx = 1, .stream = a->stream},
			    .access = x,
			    .naccess = value == ANYTHING ? 0
				       : value		 ? 1
							 : 2,
			    .everything = value == ANYTHING};

	for (unsigned i = 0; i < 2; i++) {
		x[i].bytes = 4;
		x[i].how = RS_HOW_PTX;
		x[i].dense = 1;
	}
	rs_engine_before(eng, a->t, &c);
	if (describe_only) {
		describe_only = 0;
		stopped = 1;
		while (!go_on)
			usleep(100);
	}
	pthread_mutex_lock(&device);
	*to = value ? value : 10 * *state;
	pthread_mutex_unlock(&device);
	rs_engine_after(eng, a->t, &c, 1);
}

static void act_push(struct actor *a, const char *what)
{
	char text[32];

	snprintf(text, sizeof(text), "%s:%s", what, a->name);
	rs_engine_push(eng, a->t, text);
}

static void *overwrite(void *arg)
{
	act_call(arg, state, 9);
	return NULL;
}

static void *begin_replay(void *arg)
{
	struct actor *a = arg;

	act_push(a, "replay");
	act_call(a, a->y, 0);
	return NULL;
}

static void *end_replay(void *arg)
{
	rs_engine_pop(eng, ((struct actor *)arg)->t);
	return NULL;
}

static void *make(void *arg)
{
	struct actor *a = arg;

	act_call(a, a->y, 0);
	a->done = 1;
	return NULL;
}

/* One that may do anything, or only this, overwrites the state, too. */
static void *overwrite_again(void *arg)
{
	struct actor *a = arg;

	act_call(a, state, 7);
	a->done = 1;
	return NULL;
}

static void *write_anything(void *arg)
{
	struct actor *a = arg;

	act_call(a, state, ANYTHING);
	a->done = 1;
	return NULL;
}

static void *end(void *arg)
{
	struct actor *a = arg;

	end_replay(a);
	a->done = 1;
	return NULL;
}

static void start_actor(struct actor *a, struct rs_thread *t, const char *name, unsigned stream)
{
	a->t = t;
	a->name = name;
	a->stream = stream;
	a->y = aligned_alloc(256, 256);
	*a->y = 0;
	a->done = 0;
	rs_engine_alloc(eng, t, (struct rs_queue){.ctx = 1}, (uint64_t)a->y, 256, RS_ALLOC_DEVICE);
	act_push(a, "forward");
	act_call(a, a->y, 0);
	rs_engine_pop(eng, t);
	*a->y = 0;
}

/* What the first thread does, at the copy of which it is stopped; whether the other one is in its replay, or outside of any. */
static const struct meeting {
	const char *what;
	void *(*first)(void *);
	int copy, replays;
	unsigned stream; /* of the other one; that of the first is 1 */
	uint32_t wanted;
} meetings[] = {
	{"a state's keep", overwrite, 1, 1, 2, 30},
	{"what a replay is shown, beside another replay", begin_replay, 2, 1, 2, 30},
	{"what a replay is shown, beside another call", begin_replay, 2, 0, 2, 90},
	{"what a replay is shown, on the same stream", begin_replay, 2, 0, 1, 90},
	{"the bytes of the program, beside another replay", end_replay, 1, 1, 2, 30},
	{"the bytes of the program, beside another call", end_replay, 1, 0, 2, 90},
	{"the bytes of the program, on the same stream", end_replay, 1, 0, 1, 90},
};

/* The other one comes to the state meanwhile: it waits, and finds what it should. */
static void meet(const struct meeting *m)
{
	struct rs_engine_config config = {.mode = RS_MODE_PRESERVE, .verify = 1};
	struct actor a, b;
	struct rs_engine_stats st;
	pthread_t first, other;
	unsigned replays = (unsigned)m->replays + (m->first != overwrite);

	eng = rs_engine_create(&config, &ops, NULL);
	state = aligned_alloc(256, 256);
	*state = 3;
	rs_engine_alloc(eng, NULL, (struct rs_queue){.ctx = 1}, (uint64_t)state, 256,
			RS_ALLOC_DEVICE);
	start_actor(&a, rs_thread_create(eng), "a", 1);
	start_actor(&b, rs_thread_create(eng), "b", m->stream);
	if (m->first != overwrite)
		overwrite(&a);
	if (m->first == end_replay)
		begin_replay(&a);
	if (m->replays)
		act_push(&b, "replay");
	stopped = go_on = 0;
	stop_at = m->copy;
	pthread_create(&first, NULL, m->first, &a);
	while (!stopped)
		usleep(100);
	pthread_create(&other, NULL, make, &b);
	usleep(20000);
	ok(!b.done, "who comes to %s waits until that is enqueued", m->what);
	go_on = 1;
	pthread_join(first, NULL);
	pthread_join(other, NULL);
	if (m->first == begin_replay)
		end_replay(&a);
	if (m->replays)
		end_replay(&b);
	ok(*b.y == m->wanted && (m->first == overwrite || *a.y == 30),
	   "and finds its own bytes there (%u, %u)", *a.y, *b.y);
	is_u64(*state, 9, "the state is what the program made it");
	rs_engine_finish(eng);
	rs_engine_stats(eng, &st);
	is_u64(st.outcome[0], replays, "each replay is a match");
	rs_thread_destroy(a.t);
	rs_thread_destroy(b.t);
	rs_engine_destroy(eng);
	free(a.y);
	free(b.y);
	free(state);
}

/* --- other meetings ----------------------------------------------------------------------------- */

static void scene(struct actor *a, struct actor *b)
{
	struct rs_engine_config config = {.mode = RS_MODE_PRESERVE, .verify = 1};

	eng = rs_engine_create(&config, &ops, NULL);
	state = aligned_alloc(256, 256);
	*state = 3;
	rs_engine_alloc(eng, NULL, (struct rs_queue){.ctx = 1}, (uint64_t)state, 256,
			RS_ALLOC_DEVICE);
	start_actor(a, rs_thread_create(eng), "a", 1);
	start_actor(b, rs_thread_create(eng), "b", 2);
	stopped = go_on = 0;
}

/* value 0: nobody knows */
static void scene_ends(struct actor *a, struct actor *b, uint32_t value, unsigned replays)
{
	struct rs_engine_stats st;

	if (value)
		is_u64(*state, value, "the state is what the program made it");
	rs_engine_finish(eng);
	rs_engine_stats(eng, &st);
	is_u64(st.outcome[0], replays, "so many replays are a match");
	rs_thread_destroy(a->t);
	rs_thread_destroy(b->t);
	rs_engine_destroy(eng);
	free(a->y);
	free(b->y);
	free(state);
}

/* first is stopped where it is told to, and goes on when the other one has had the time to come, or has been. */
static void come(void *(*first)(void *), struct actor *a, void *(*then)(void *), struct actor *b,
		 int waits)
{
	pthread_t one, two;

	pthread_create(&one, NULL, first, a);
	while (!stopped)
		usleep(100);
	pthread_create(&two, NULL, then, b);
	if (waits) {
		usleep(20000);
		ok(!b->done, "the other one waits");
	} else {
		pthread_join(two, NULL);
	}
	go_on = 1;
	pthread_join(one, NULL);
	if (waits)
		pthread_join(two, NULL);
}

static void replay(struct actor *a)
{
	*a->y = 0;
	begin_replay(a);
	end_replay(a);
	is_u64(*a->y, 30, "the replay sees what it saw");
}

/* Bytes that a replay needs are being kept; nobody replays yet. */
static void written_twice(void *(*again)(void *), uint32_t value)
{
	struct actor a, b;

	scene(&a, &b);
	stop_at = 1;
	come(overwrite, &a, again, &b, 1);
	replay(&a);
	replay(&b);
	scene_ends(&a, &b, value, 2);
}

/* A call is described, but not made, when another thread's replay comes to the bytes. b_replays: that call is a replay's, too. */
static void under_way(int b_replays, int overwritten)
{
	struct actor a, b;

	scene(&a, &b);
	if (overwritten)
		overwrite(&a);
	act_push(&a, "replay");
	if (b_replays)
		act_push(&b, "replay");
	describe_only = 1;
	come(make, &b, make, &a, overwritten);
	end_replay(&a);
	if (b_replays)
		end_replay(&b);
	is_u64(*a.y, 30, "the replay sees what it saw");
	is_u64(*b.y, b_replays || !overwritten ? 30 : 90, "the call, too");
	scene_ends(&a, &b, overwritten ? 9 : 3, 1 + (unsigned)b_replays);
}

/* What a replay is shown makes room for another thread's call when the replay ends. */
static void end_beside(void)
{
	struct actor a, b;

	scene(&a, &b);
	overwrite(&a);
	begin_replay(&a);
	stop_at = 1;
	come(make, &b, end, &a, 1);
	is_u64(*a.y, 30, "the replay has seen what it saw");
	is_u64(*b.y, 90, "the call the program's bytes");
	scene_ends(&a, &b, 9, 1);
}

static void *touch_anything(void *arg)
{
	struct actor *a = arg;

	act_call(a, a->y, ANYTHING);
	a->done = 1;
	return NULL;
}

/* A replay's call that may do anything brings back what the replay has: not while another thread's read is to be made. */
static void anything_comes_back(void)
{
	struct actor a, b;

	scene(&a, &b);
	overwrite(&a);
	begin_replay(&a);
	describe_only = 1;
	come(make, &b, touch_anything, &a, 1);
	end_replay(&a);
	is_u64(*b.y, 90, "the call finds the program's bytes");
	scene_ends(&a, &b, 9, 0);
}

/* A call that may do anything is described, and overwrites the state when another thread's replay has come to it. */
static void anything_under_way(void)
{
	struct actor a, b;

	scene(&a, &b);
	overwrite(&a);
	act_push(&a, "replay");
	describe_only = 1;
	come(write_anything, &b, make, &a, 1);
	end_replay(&a);
	is_u64(*a.y, 30, "the replay sees what it saw");
	scene_ends(&a, &b, ANYTHING, 1);
}

/* Nobody is waited for without an end, but then nobody vouches for what comes of it. */
static void in_vain(void)
{
	struct actor a, b;

	scene(&a, &b);
	overwrite(&a);
	begin_replay(&a);
	act_push(&b, "replay");
	stop_at = 1;
	come(end_replay, &a, make, &b, 0);
	end_replay(&b);
	scene_ends(&a, &b, 0, 1);
}

/*
 * A write has begun, and is waited for in vain by a replay, which reads the state, and may write to it. The replay is no match,
 * but the program's write stays.
 */
static void in_vain_under_a_write(int steps)
{
	struct actor a, b;
	pthread_t one;

	scene(&a, &b);
	stop_at = 1;
	pthread_create(&one, NULL, overwrite, &a);
	while (!stopped)
		usleep(100);
	act_push(&b, "replay");
	if (steps)
		call(b.t, b.stream, b.y, state);
	else
		act_call(&b, b.y, 0);
	go_on = 1;
	pthread_join(one, NULL);
	end_replay(&b);
	scene_ends(&a, &b, 9, 0);
}

int main(void)
{
	struct rs_engine_config config = {.mode = RS_MODE_PRESERVE, .verify = 1};
	struct rs_engine_stats st;
	struct worker w[THREADS];
	pthread_t th[THREADS];
	unsigned wrong = 0;

	eng = rs_engine_create(&config, &ops, NULL);
	for (unsigned i = 0; i < THREADS; i++) {
		w[i] = (struct worker){.id = i};
		pthread_create(&th[i], NULL, work, &w[i]);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(th[i], NULL);
		wrong += w[i].wrong;
	}
	rs_engine_finish(eng);
	rs_engine_stats(eng, &st);
	is_u64(wrong, 0, "every replay of every thread saw P0 and left P2");
	is_u64(st.outcome[0], THREADS * ROUNDS * 2, "and was recorded as a match");
	is_u64(st.live_allocs, 0, "nothing is left in the map");
	is_u64(st.snapshot_bytes, 0, "nothing is left preserved");
	rs_engine_destroy(eng);
	finish_beside_poll();
	for (unsigned i = 0; i < sizeof(meetings) / sizeof(*meetings); i++)
		meet(&meetings[i]);
	written_twice(overwrite_again, 7);
	written_twice(write_anything, ANYTHING);
	under_way(0, 1);
	under_way(1, 1);
	under_way(0, 0);
	anything_comes_back();
	anything_under_way();
	end_beside();
	in_vain();
	in_vain_under_a_write(0);
	in_vain_under_a_write(1);
	for (unsigned i = 0; i < 256; i++)
		free(slabs[i]);
	return tap_done();
}
