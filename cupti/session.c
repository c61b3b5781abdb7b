/* SPDX-License-Identifier: MIT */
/*
 * See rs_cupti.h: buffers to and from CUPTI, what is switched on, withdrawal.
 *
 * Buffers are made at the start and used again; more are made when CUPTI asks for more. Each is a malloc of its own, and not
 * touched while CUPTI has it: should another user of CUPTI get it in our place, that one may free it.
 *
 * Which call a record belongs to is told by an external correlation record, and CUPTI writes that before the record of the
 * call itself (cupti_activity.h, cuptiActivityPushExternalCorrelationId); so the records of the calls in calls.def are
 * switched on as well, and of no others where the library can tell them apart.
 *
 * State: OFF, ON, LOST, in that order only. Locks: one leaf mutex around buffers and bookkeeping; the two callbacks, which CUPTI
 * calls on any thread and maybe under locks of its own, take it, and call nothing of CUPTI under it.
 */
#include "cupti/rs_cupti.h"
#include "cupti/busy.h"
#include "cupti/lib.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES (2u << 20) /* CUPTI advises 1 to 10 MB */
#define BUFFERS	     4u
#define MOST_BUFFERS 256u
#define SILENCE	     64u /* flushes with windows and without a record */

struct buffer {
	uint8_t *bytes;
	uint64_t seq; /* 0: spare */
};

enum { OFF, ON, LOST };
enum { NO_CALLS, SOME_CALLS, ALL_CALLS };

static struct {
	pthread_mutex_t lock;
	int state;	  /* atomic */
	const char *user; /* atomic: the program's own call that was seen first */
	struct rs_cupti_host host;
	struct rs_cupti_lib lib;
	struct rs_cupti_busy *busy;
	struct buffer buffer[MOST_BUFFERS];
	unsigned nbuffers;
	uint64_t seq;
	uint64_t entered, silent;
	int calls;   /* how calls are recorded */
	int foreign; /* a buffer of somebody else came back to us */
	struct rs_cupti_stats stats;
} s = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const int kinds[] = {
	RS_CUPTI_KIND_CONCURRENT_KERNEL, RS_CUPTI_KIND_MEMCPY,
	RS_CUPTI_KIND_MEMCPY2,		 RS_CUPTI_KIND_MEMSET,
	RS_CUPTI_KIND_EXTERNAL,
};
#define NKINDS (sizeof(kinds) / sizeof(*kinds))

static int state(void)
{
	return __atomic_load_n(&s.state, __ATOMIC_ACQUIRE);
}

int rs_cupti_running(void)
{
	return state() == ON;
}

/* --- buffers ------------------------------------------------------------------------------------ */

/* Under lock. */
static struct buffer *spare_buffer(void)
{
	struct buffer *b;
	void *bytes;

	for (unsigned i = 0; i < s.nbuffers; i++)
		if (!s.buffer[i].seq)
			return &s.buffer[i];
	bytes = s.nbuffers < MOST_BUFFERS ? malloc(BUFFER_BYTES) : NULL;
	if (!bytes)
		return NULL;
	b = &s.buffer[s.nbuffers++];
	*b = (struct buffer){.bytes = bytes};
	return b;
}

/* Without a buffer CUPTI drops records, and counts them. */
static void requested(uint8_t **buffer, size_t *size, size_t *max_records)
{
	int saved = errno;
	struct buffer *b = NULL;

	*buffer = NULL;
	*size = *max_records = 0;
	pthread_mutex_lock(&s.lock);
	if (state() == ON)
		b = spare_buffer();
	if (b) {
		b->seq = ++s.seq;
		*buffer = b->bytes;
		*size = BUFFER_BYTES;
	}
	pthread_mutex_unlock(&s.lock);
	errno = saved;
}

static void take_items(void *arg, const struct rs_cupti_item *items, unsigned n)
{
	(void)arg;
	pthread_mutex_lock(&s.lock);
	for (unsigned i = 0; i < n; i++)
		rs_cupti_busy_item(s.busy, &items[i]);
	pthread_mutex_unlock(&s.lock);
}

static int is_ours(const uint8_t *bytes)
{
	int ours = 0;

	pthread_mutex_lock(&s.lock);
	for (unsigned i = 0; i < s.nbuffers && !ours; i++)
		ours = s.buffer[i].bytes == bytes && s.buffer[i].seq;
	s.foreign |= !ours;
	pthread_mutex_unlock(&s.lock);
	return ours;
}

static void put_back(const uint8_t *bytes, uint64_t records, int broken, uint64_t dropped)
{
	pthread_mutex_lock(&s.lock);
	for (unsigned i = 0; i < s.nbuffers; i++)
		if (s.buffer[i].bytes == bytes)
			s.buffer[i].seq = 0;
	s.stats.buffers++;
	s.stats.records += records;
	s.stats.broken += (unsigned)broken;
	s.stats.dropped += dropped;
	if (records)
		s.silent = 0;
	if (broken || dropped)
		rs_cupti_busy_spoil(s.busy);
	pthread_mutex_unlock(&s.lock);
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	static const struct rs_cupti_sink sink = {.items = take_items};
	size_t dropped = 0, global = 0;
	uint64_t records = 0;
	int saved = errno, broken = 0;

	(void)size;
	if (!buffer || !is_ours(buffer)) {
		errno = saved;
		return;
	}
	if (valid > BUFFER_BYTES)
		valid = 0, broken = 1;
	if (valid)
		broken = rs_cupti_parse(s.lib.ActivityGetNextRecord, buffer, valid, &sink,
					&records) != 0;
	if (s.lib.ActivityGetNumDroppedRecords(context, stream, &dropped) != RS_CUPTI_SUCCESS)
		dropped = 0;
	if (context && s.lib.ActivityGetNumDroppedRecords(NULL, 0, &global) == RS_CUPTI_SUCCESS)
		dropped += global;
	put_back(buffer, records, broken, dropped);
	errno = saved;
}

/* --- on and off --------------------------------------------------------------------------------- */

/* Does the library take single functions? */
static int select_calls(uint8_t enable)
{
	unsigned driver = 0, runtime = 0;

	if (!s.lib.ActivityEnableDriverApi || !s.lib.ActivityEnableRuntimeApi)
		return 0;
#define COUNT_DRIVER(n)		 driver += s.lib.ActivityEnableDriverApi(n, enable) == RS_CUPTI_SUCCESS
#define COUNT_RUNTIME(n)	 runtime += s.lib.ActivityEnableRuntimeApi(n, enable) == RS_CUPTI_SUCCESS
#define CALL(kind, name, number) COUNT_##kind(number);
#include "cupti/calls.def"
#undef CALL
	return driver && runtime;
}

static int enable_calls(void)
{
	int r;

	s.calls = select_calls(1) ? SOME_CALLS : ALL_CALLS;
	if (s.calls == SOME_CALLS)
		return RS_CUPTI_SUCCESS;
	r = s.lib.ActivityEnable(RS_CUPTI_KIND_DRIVER);
	return r == RS_CUPTI_SUCCESS ? s.lib.ActivityEnable(RS_CUPTI_KIND_RUNTIME) : r;
}

static void disable(unsigned n)
{
	if (s.calls != NO_CALLS)
		select_calls(0); /* some may be on where not all could be */
	if (s.calls == ALL_CALLS) {
		s.lib.ActivityDisable(RS_CUPTI_KIND_DRIVER);
		s.lib.ActivityDisable(RS_CUPTI_KIND_RUNTIME);
	}
	s.calls = NO_CALLS;
	while (n--)
		s.lib.ActivityDisable(kinds[n]);
}

static int enable(char *why, size_t size)
{
	unsigned n;
	int r = s.lib.ActivityRegisterCallbacks(requested, completed);

	if (r != RS_CUPTI_SUCCESS) {
		snprintf(why, size, "cuptiActivityRegisterCallbacks: error %d", r);
		return -EBUSY;
	}
	for (n = 0; n < NKINDS && r == RS_CUPTI_SUCCESS; n++)
		r = s.lib.ActivityEnable(kinds[n]);
	if (r == RS_CUPTI_SUCCESS)
		r = enable_calls();
	if (r == RS_CUPTI_SUCCESS)
		return 0;
	snprintf(why, size, "cuptiActivityEnable: error %d%s", r,
		 r == RS_CUPTI_MULTIPLE_USERS ? " (another user)" : "");
	disable(n);
	return -EBUSY;
}

/* Whoever changes the state says so. */
static int lose(const char *why)
{
	int on = ON;

	if (!__atomic_compare_exchange_n(&s.state, &on, LOST, 0, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return 0;
	s.host.lost(s.host.arg, why);
	return 1;
}

static int make_buffers(void)
{
	int n = 0;

	pthread_mutex_lock(&s.lock);
	s.busy = rs_cupti_busy_create();
	while (s.busy && s.nbuffers < BUFFERS) {
		void *bytes = malloc(BUFFER_BYTES);

		if (!bytes)
			break;
		s.buffer[s.nbuffers++] = (struct buffer){.bytes = bytes};
	}
	n = s.busy && s.nbuffers == BUFFERS;
	pthread_mutex_unlock(&s.lock);
	return n ? 0 : -ENOMEM;
}

static int is_used(char *why, size_t size)
{
	const char *user = __atomic_load_n(&s.user, __ATOMIC_SEQ_CST);

	if (user)
		snprintf(why, size, "the program uses CUPTI itself (%s)", user);
	return user != NULL;
}

static int start(int driver, char *why, size_t size)
{
	int r;

	if (is_used(why, size))
		return -EBUSY;
	r = rs_cupti_lib_open(&s.lib, s.host.symbol, driver, why, size);
	if (r)
		return r;
	r = make_buffers();
	if (r) {
		snprintf(why, size, "no memory for buffers");
		return r;
	}
	/* Records may come as soon as they are switched on. */
	__atomic_store_n(&s.state, ON, __ATOMIC_SEQ_CST);
	r = enable(why, size);
	/* Whoever came meanwhile has found us not started, or switched off what we have switched on since. */
	if (!r && is_used(why, size)) {
		disable(NKINDS);
		r = -EBUSY;
	}
	return r;
}

int rs_cupti_start(const struct rs_cupti_host *host, int driver)
{
	int off = OFF, r;
	char why[160];

	if (state() != OFF)
		return -EALREADY;
	s.host = *host;
	r = start(driver, why, sizeof(why));
	if (r) {
		/* A user of CUPTI that has shown meanwhile has been told of already. */
		__atomic_compare_exchange_n(&s.state, &off, ON, 0, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED);
		lose(why);
	}
	return r;
}

void rs_cupti_withdraw(const char *who)
{
	const char *nobody = NULL;
	char why[160];

	/* The start says that it is on and looks for a user then; this is the other way round, so one of the two sees it. */
	__atomic_compare_exchange_n(&s.user, &nobody, who, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	snprintf(why, sizeof(why), "the program uses CUPTI itself (%s)", who);
	if (__atomic_load_n(&s.state, __ATOMIC_SEQ_CST) != ON)
		return;
	disable(NKINDS);
	s.lib.ActivityFlushAll(RS_CUPTI_FLUSH_FORCED);
	lose(why);
}

/* --- windows ------------------------------------------------------------------------------------ */

static void note(uint64_t from, uint64_t to)
{
	pthread_mutex_lock(&s.lock);
	if (from)
		rs_cupti_busy_leave(s.busy, from, s.seq);
	if (to) {
		rs_cupti_busy_enter(s.busy, to);
		s.entered++;
	}
	pthread_mutex_unlock(&s.lock);
}

uint64_t rs_cupti_switch(uint64_t from, uint64_t to)
{
	uint64_t last;

	if (from)
		s.lib.ActivityPopExternalCorrelationId(RS_CUPTI_EXTERNAL_OURS, &last);
	if (state() != ON)
		return 0;
	note(from, to);
	if (to)
		s.lib.ActivityPushExternalCorrelationId(RS_CUPTI_EXTERNAL_OURS, to);
	return to;
}

void rs_cupti_left(uint64_t window)
{
	if (state() == ON && window)
		note(window, 0);
}

int rs_cupti_hide(void)
{
	return state() == ON && s.lib.ActivityPushExternalCorrelationId(RS_CUPTI_EXTERNAL_OURS,
									0) == RS_CUPTI_SUCCESS;
}

void rs_cupti_show(void)
{
	uint64_t last;

	s.lib.ActivityPopExternalCorrelationId(RS_CUPTI_EXTERNAL_OURS, &last);
}

/* --- steps -------------------------------------------------------------------------------------- */

/* Under lock. */
static uint64_t oldest_out(void)
{
	uint64_t oldest = UINT64_MAX;

	for (unsigned i = 0; i < s.nbuffers; i++)
		if (s.buffer[i].seq && s.buffer[i].seq < oldest)
			oldest = s.buffer[i].seq;
	return oldest;
}

static void tell(int all)
{
	struct rs_cupti_told told[64];
	unsigned n;

	do {
		pthread_mutex_lock(&s.lock);
		n = rs_cupti_busy_tell(s.busy, all ? UINT64_MAX : oldest_out(), told, 64);
		pthread_mutex_unlock(&s.lock);
		for (unsigned i = 0; i < n; i++)
			s.host.busy(s.host.arg, told[i].window, told[i].ns);
	} while (n == 64);
}

/* After a flush: is anybody there? */
static const char *look(void)
{
	const char *why = NULL;

	pthread_mutex_lock(&s.lock);
	rs_cupti_busy_flushed(s.busy);
	s.silent += s.entered != 0;
	s.entered = 0;
	if (s.foreign)
		why = "buffers of another user of CUPTI came back";
	else if (s.silent >= SILENCE)
		why = "CUPTI writes no records";
	pthread_mutex_unlock(&s.lock);
	return why;
}

void rs_cupti_step(void)
{
	const char *why;
	char text[80];
	int r;

	if (state() != ON)
		return;
	r = s.lib.ActivityFlushAll(0);
	why = look();
	if (r != RS_CUPTI_SUCCESS) {
		snprintf(text, sizeof(text), "cuptiActivityFlushAll: error %d", r);
		why = text;
	}
	if (!why) {
		tell(0);
		return;
	}
	if (lose(why) && !s.foreign)
		disable(NKINDS);
}

void rs_cupti_finish(void)
{
	if (state() != ON)
		return;
	s.lib.ActivityFlushAll(RS_CUPTI_FLUSH_FORCED);
	/* Nothing more will come: what is complete may be told at once. */
	for (unsigned i = 0; i < 2; i++) {
		pthread_mutex_lock(&s.lock);
		rs_cupti_busy_flushed(s.busy);
		pthread_mutex_unlock(&s.lock);
	}
	tell(1);
	disable(NKINDS);
	__atomic_store_n(&s.state, LOST, __ATOMIC_RELEASE);
}

/* Somebody may have held the lock; libcupti may still call back, from an exit handler of its own. */
void rs_cupti_forked(void)
{
	s.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	if (state() == ON)
		__atomic_store_n(&s.state, LOST, __ATOMIC_RELEASE);
}

void rs_cupti_stats(struct rs_cupti_stats *ret)
{
	struct rs_cupti_counts c = {0};

	pthread_mutex_lock(&s.lock);
	if (s.busy)
		rs_cupti_busy_counts(s.busy, &c);
	*ret = s.stats;
	pthread_mutex_unlock(&s.lock);
	ret->windows = c.told;
	ret->missing = c.missing;
	ret->empty = c.empty;
	ret->unmatched = c.unmatched;
	ret->forgotten = c.forgotten;
}
