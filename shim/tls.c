/* SPDX-License-Identifier: MIT */
/*
 * A thread's state: made at its first intercepted call or marker, dropped at its end.
 *
 * Invariants: `list` holds the states of living threads; what an ended thread counted is in `ended`.
 * Locks: one mutex around both, a leaf; never held while calling out.
 */
#include "shim/busy.h"
#include "shim/memo.h"
#include "shim/ranges.h"
#include "shim/shim.h"

#include <pthread.h>
#include <stdlib.h>

__thread struct rs_tls *rs_tls __attribute__((tls_model("initial-exec")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int key_ok;
static struct rs_tls *list;
static uint64_t ended[RS_EP_COUNT], serials;

static void drop(void *arg)
{
	struct rs_tls *t = arg;

	rs_tls = NULL;
	/* After fork the engine and the list belong to nobody; with observing off, to the exit. */
	if (!__atomic_load_n(&rs_on, __ATOMIC_RELAXED))
		return;
	t->depth = 1;
	rs_tls = t;
	rs_busy_thread_ends(t);
	rs_thread_destroy(t->thread);
	rs_tls = NULL;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < RS_EP_COUNT; i++)
		ended[i] += t->count[i];
	*t->link = t->next;
	if (t->next)
		t->next->link = t->link;
	pthread_mutex_unlock(&lock);
	free(t->access);
	free(t->params);
	rs_memo_drop(t);
	rs_ranges_drop(t);
	free(t);
}

static void make_key(void)
{
	key_ok = !pthread_key_create(&key, drop);
}

struct rs_tls *rs_tls_get(void)
{
	struct rs_tls *t = rs_tls;
	int saved = errno;

	if (t)
		return t;
	pthread_once(&once, make_key);
	t = calloc(1, sizeof(*t));
	if (t)
		t->thread = rs_thread_create(rs_state.engine);
	if (!t || !t->thread || !key_ok || pthread_setspecific(key, t)) {
		if (t && t->thread)
			rs_thread_destroy(t->thread);
		free(t);
		rs_count(lost_threads);
		errno = saved;
		return NULL;
	}
	t->ctx_gen = UINT32_MAX;
	pthread_mutex_lock(&lock);
	t->own_stream = 1ull << 63 | ++serials << 8 | (uintptr_t)CU_STREAM_PER_THREAD;
	t->next = list;
	t->link = &list;
	if (list)
		list->link = &t->next;
	list = t;
	pthread_mutex_unlock(&lock);
	rs_tls = t;
	errno = saved;
	return t;
}

void rs_tls_counts(uint64_t ret_count[RS_EP_COUNT])
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < RS_EP_COUNT; i++)
		ret_count[i] = ended[i];
	for (const struct rs_tls *t = list; t; t = t->next)
		for (unsigned i = 0; i < RS_EP_COUNT; i++)
			ret_count[i] += __atomic_load_n(&t->count[i], __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
}
