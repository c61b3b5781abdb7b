/* SPDX-License-Identifier: MIT */
/*
 * Happens-before on the fake device: operations that touch the same bytes, one of them writing, must be ordered by streams,
 * events, or because the host has seen the earlier one's end before it asked for the later one. So a missing order shows at
 * once, not only where the device happens to choose badly. Several addresses of the same memory are recognised where the test
 * says so (order_alias); what is remapped is not.
 */
#ifndef RS_TESTS_FAKE_ORDER_H
#define RS_TESTS_FAKE_ORDER_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ORDER_QUEUES 8u

struct order_touch {
	uint64_t at, bytes, tick;
	unsigned q;
	int write;
};

static struct {
	uint64_t clock[ORDER_QUEUES]
		      [ORDER_QUEUES]; /* of each queue: what comes before its next operation */
	uint64_t host[ORDER_QUEUES];
	uint64_t (*event)[ORDER_QUEUES];
	unsigned events; /* there is room for */
	struct order_touch *touch;
	unsigned n, cap;
	unsigned missing; /* pairs without order */
	struct {
		uint64_t at, bytes, is;
	} alias[32];
	unsigned naliases;
} fake_order;

static void order_join(uint64_t *to, const uint64_t *with)
{
	for (unsigned i = 0; i < ORDER_QUEUES; i++)
		if (with[i] > to[i])
			to[i] = with[i];
}

/* An operation is enqueued. */
static inline void order_next(unsigned q)
{
	order_join(fake_order.clock[q], fake_order.host);
	fake_order.clock[q][q]++;
}

static inline void order_record(unsigned q, uint64_t event)
{
	order_next(q);
	if (event >= fake_order.events) {
		fake_order.events = (unsigned)event * 2 + 256;
		fake_order.event =
			realloc(fake_order.event, fake_order.events * sizeof(*fake_order.event));
	}
	memcpy(fake_order.event[event], fake_order.clock[q], sizeof(fake_order.clock[q]));
}

static inline void order_wait(unsigned q, uint64_t event)
{
	order_next(q);
	order_join(fake_order.clock[q], fake_order.event[event]);
}

/* The host has seen that the event has passed. */
static inline void order_seen(uint64_t event)
{
	order_join(fake_order.host, fake_order.event[event]);
}

/* The host has waited for everything. */
static inline void order_all_seen(void)
{
	for (unsigned q = 0; q < ORDER_QUEUES; q++)
		order_join(fake_order.host, fake_order.clock[q]);
}

/* The bytes at `at` are those at `is`. */
static inline void order_alias(uint64_t at, uint64_t bytes, uint64_t is)
{
	if (fake_order.naliases == 32)
		abort();
	fake_order.alias[fake_order.naliases].at = at;
	fake_order.alias[fake_order.naliases].bytes = bytes;
	fake_order.alias[fake_order.naliases++].is = is;
}

static uint64_t order_place(uint64_t at)
{
	for (unsigned i = 0; i < fake_order.naliases; i++)
		if (at - fake_order.alias[i].at < fake_order.alias[i].bytes)
			return at - fake_order.alias[i].at + fake_order.alias[i].is;
	return at;
}

/* The queue's last operation touches these bytes. */
static inline void order_touch(unsigned q, uint64_t at, uint64_t bytes, int write)
{
	unsigned i = 0;

	at = order_place(at);
	while (at && bytes && i < fake_order.n) {
		struct order_touch *t = &fake_order.touch[i];
		int before = fake_order.clock[q][t->q] >= t->tick;

		if (at < t->at + t->bytes && t->at < at + bytes && (write || t->write))
			fake_order.missing += !before;
		/* who is ordered after this one is ordered after those, or nobody has to be any more */
		if (fake_order.host[t->q] >= t->tick ||
		    (write && before && at <= t->at && t->at + t->bytes <= at + bytes))
			*t = fake_order.touch[--fake_order.n];
		else
			i++;
	}
	if (fake_order.n == fake_order.cap) {
		fake_order.cap = fake_order.cap ? fake_order.cap * 2 : 1024;
		fake_order.touch =
			realloc(fake_order.touch, fake_order.cap * sizeof(*fake_order.touch));
	}
	if (at && bytes)
		fake_order.touch[fake_order.n++] =
			(struct order_touch){at, bytes, fake_order.clock[q][q], q, write};
}

static inline void order_reset(void)
{
	free(fake_order.event);
	free(fake_order.touch);
	memset(&fake_order, 0, sizeof(fake_order));
}

#endif
