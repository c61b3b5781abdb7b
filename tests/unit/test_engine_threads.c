/* SPDX-License-Identifier: MIT */
/*
 * The engine under threads: allocations, calls, windows and steps at once, on memory that each thread
 * owns, so that every replay has one right answer. For TSan and ASan; the device runs in place.
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

static int d_copy(void *o, struct rs_queue q, uint64_t dst, uint64_t src, uint64_t n)
{
	(void)o, (void)q;
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
	for (unsigned i = 0; i < 256; i++)
		free(slabs[i]);
	return tap_done();
}
