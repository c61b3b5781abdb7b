/* SPDX-License-Identifier: MIT */
/*
 * A device that does nothing, for test_engine_soak.c: its addresses are made up. Any thread.
 */
#ifndef SOAK_DEV_H
#define SOAK_DEV_H

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "tracker/devops.h"

static _Atomic uint64_t blocks_made, blocks_freed, next_address = 1ull << 50, events_made;

static int d_alloc(void *o, struct rs_queue q, uint64_t n, uint64_t *ret)
{
	(void)o, (void)q;
	*ret = next_address;
	next_address += (n + 511) & ~511ull;
	blocks_made++;
	return 0;
}

static void d_free(void *o, struct rs_queue q, uint64_t a)
{
	(void)o, (void)q, (void)a;
	blocks_freed++;
}

static int d_copy(void *o, struct rs_queue q, uint64_t dst, uint64_t src, uint64_t n)
{
	(void)o, (void)q, (void)dst, (void)src, (void)n;
	return 0;
}

static int d_move(void *o, struct rs_queue q, const struct rs_move *list, uint64_t n)
{
	(void)o, (void)q, (void)list, (void)n;
	return 0;
}

static int d_diff(void *o, struct rs_queue q, uint64_t a, uint64_t b, uint64_t n, uint64_t *out)
{
	(void)o, (void)q, (void)a, (void)b, (void)n, (void)out;
	return 0;
}

static int d_digest(void *o, struct rs_queue q, uint64_t a, uint64_t n, uint64_t *out)
{
	(void)o, (void)q, (void)a, (void)n, (void)out;
	return 0;
}

static int d_digest_many(void *o, struct rs_queue q, const struct rs_piece *list, uint64_t n)
{
	(void)o, (void)q;
	for (uint64_t i = 0; i < n; i++)
		list[i].out[0] = 0; /* memory that is the operation's */
	return 0;
}

static pthread_mutex_t slab_lock = PTHREAD_MUTEX_INITIALIZER;
static struct slab {
	struct slab *next;
	uint64_t words[];
} * slabs;

static int d_result_alloc(void *o, struct rs_queue q, uint64_t words, uint64_t **ret)
{
	struct slab *s = calloc(1, sizeof(*s) + words * 8);

	(void)o, (void)q;
	if (!s)
		return -ENOMEM;
	pthread_mutex_lock(&slab_lock);
	s->next = slabs;
	slabs = s;
	pthread_mutex_unlock(&slab_lock);
	*ret = s->words;
	return 0;
}

static void d_result_free(void *o, uint64_t *w)
{
	(void)o, (void)w;
}

static int d_record(void *o, struct rs_queue q, uint64_t *ret)
{
	(void)o, (void)q;
	*ret = ++events_made;
	return 0;
}

static int d_wait(void *o, struct rs_queue q, uint64_t e)
{
	(void)o, (void)q, (void)e;
	return 0;
}

static int d_done(void *o, uint64_t e)
{
	static _Atomic unsigned asked;

	(void)o, (void)e;
	return ++asked % 3 != 0; /* now and then not yet */
}

static int d_sync(void *o, uint64_t e)
{
	(void)o, (void)e;
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
	.move = d_move,
	.swap = d_copy,
	.diff = d_diff,
	.digest = d_digest,
	.digest_many = d_digest_many,
	.result_alloc = d_result_alloc,
	.result_free = d_result_free,
	.event_record = d_record,
	.event_wait = d_wait,
	.event_done = d_done,
	.event_sync = d_sync,
	.event_free = d_event_free,
};

#endif
