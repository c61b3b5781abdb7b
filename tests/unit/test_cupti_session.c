/* SPDX-License-Identifier: MIT */
/*
 * cupti/session.c with a library of our own in the place of libcupti: threads that enter windows and launch, buffers that come
 * back on a thread of the library, steps on any thread, somebody who asks for the records in the middle of it.
 */
#include "cupti/busy.c"
#include "cupti/parse.c"
#include "cupti/session.c"
#include "tests/tap.h"

#define THREADS 4
#define ROUNDS	200
#define WINDOWS (THREADS * ROUNDS + 1)

/* --- the library ---------------------------------------------------------------------------------- */

static pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
static rs_cupti_requested_fn *fake_requested;
static rs_cupti_completed_fn *fake_completed;
static uint8_t *fake_buffer;
static size_t fake_size, fake_filled, fake_dropped;
static uint32_t fake_call;
static uint64_t fake_clock = 1000;
static uint64_t fake_on; /* kinds */
static __thread uint64_t fake_stack[8];
static __thread unsigned fake_depth;

/* The program itself begins to use CUPTI at that moment of our start. */
enum { NEVER, AT_OPEN, AT_REGISTER, AT_ENABLE };
static int comes;

static void may_come(int at)
{
	if (comes != at)
		return;
	comes = NEVER;
	rs_cupti_withdraw("cuptiSubscribe");
}

static int fake_version(uint32_t *v)
{
	*v = 130000;
	return 0;
}

static int fake_register(rs_cupti_requested_fn *req, rs_cupti_completed_fn *comp)
{
	may_come(AT_REGISTER);
	fake_requested = req;
	fake_completed = comp;
	return 0;
}

static int fake_enable(int kind)
{
	if (fake_on)
		may_come(AT_ENABLE);
	pthread_mutex_lock(&fake_lock);
	fake_on |= UINT64_C(1) << kind;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

static int fake_disable(int kind)
{
	pthread_mutex_lock(&fake_lock);
	fake_on &= ~(UINT64_C(1) << kind);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

/* As the real one may: the user is called under the library's lock. */
static void fake_return(void)
{
	uint8_t *b = fake_buffer;

	fake_buffer = NULL;
	if (b)
		fake_completed(NULL, 0, b, fake_size, fake_filled);
}

static int fake_flush(uint32_t flag)
{
	(void)flag;
	pthread_mutex_lock(&fake_lock);
	fake_return();
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

static int fake_next(uint8_t *buffer, size_t valid, void **record)
{
	uint8_t *p = *record;
	uint32_t kind = 0;

	if (p)
		memcpy(&kind, p, 4);
	p = !p ? buffer : p + (kind == RS_CUPTI_KIND_EXTERNAL ? 24 : 216);
	if ((size_t)(p - buffer) >= valid)
		return RS_CUPTI_MAX_LIMIT_REACHED;
	*record = p;
	return 0;
}

static int fake_num_dropped(void *context, uint32_t stream, size_t *dropped)
{
	(void)context, (void)stream;
	*dropped = fake_dropped;
	fake_dropped = 0;
	return 0;
}

static int fake_push(int kind, uint64_t id)
{
	(void)kind;
	fake_stack[fake_depth++] = id;
	return 0;
}

static int fake_pop(int kind, uint64_t *last)
{
	(void)kind;
	if (!fake_depth)
		return 18;
	*last = fake_stack[--fake_depth];
	return 0;
}

static void fake_put(const void *record, size_t size)
{
	size_t most;

	if (fake_buffer && fake_filled + size > 4096) /* small ones, so that many come and go */
		fake_return();
	if (!fake_buffer) {
		fake_filled = 0;
		fake_requested(&fake_buffer, &fake_size, &most);
	}
	if (!fake_buffer) {
		fake_dropped++;
		return;
	}
	memcpy(fake_buffer + fake_filled, record, size);
	fake_filled += size;
}

/* A kernel of the calling thread; how long it takes. */
static uint64_t launch(void)
{
	uint8_t kernel[216] = {RS_CUPTI_KIND_CONCURRENT_KERNEL};
	uint64_t ns, end;

	pthread_mutex_lock(&fake_lock);
	ns = 10 + fake_call % 7;
	end = fake_clock + ns;
	if (fake_on && fake_depth) {
		struct rs_cupti_external e = {RS_CUPTI_KIND_EXTERNAL, RS_CUPTI_EXTERNAL_OURS,
					      fake_stack[fake_depth - 1], fake_call, 0};

		fake_put(&e, sizeof(e));
	}
	memcpy(kernel + 16, &fake_clock, 8);
	memcpy(kernel + 24, &end, 8);
	memcpy(kernel + 92, &fake_call, 4);
	if (fake_on)
		fake_put(kernel, sizeof(kernel));
	fake_clock = end + 5;
	fake_call++;
	pthread_mutex_unlock(&fake_lock);
	return ns;
}

static int open_result;

int rs_cupti_lib_open(struct rs_cupti_lib *ret, void *(*symbol)(void *library, const char *name),
		      int driver, char *why, size_t size)
{
	(void)symbol, (void)driver;
	may_come(AT_OPEN);
	if (open_result) {
		snprintf(why, size, "not there");
		return open_result;
	}
	*ret = (struct rs_cupti_lib){
		.GetVersion = fake_version,
		.ActivityRegisterCallbacks = fake_register,
		.ActivityEnable = fake_enable,
		.ActivityDisable = fake_disable,
		.ActivityFlushAll = fake_flush,
		.ActivityGetNextRecord = fake_next,
		.ActivityGetNumDroppedRecords = fake_num_dropped,
		.ActivityPushExternalCorrelationId = fake_push,
		.ActivityPopExternalCorrelationId = fake_pop,
	};
	return 0;
}

/* --- its user ------------------------------------------------------------------------------------- */

static uint64_t want[WINDOWS], have[WINDOWS];
static unsigned times[WINDOWS], losses;
static char reason[200];
static int withdraw_at = -1;

static void busy(void *arg, uint64_t window, uint64_t ns)
{
	(void)arg;
	__atomic_fetch_add(&times[window], 1, __ATOMIC_RELAXED);
	__atomic_store_n(&have[window], ns, __ATOMIC_RELAXED);
}

static void lost(void *arg, const char *why)
{
	(void)arg;
	losses++;
	snprintf(reason, sizeof(reason), "%s", why);
}

static void *work(void *arg)
{
	unsigned self = *(unsigned *)arg;

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t w = 1 + self * ROUNDS + i, now = rs_cupti_switch(0, w);

		for (unsigned k = 0; k < 1 + i % 5; k++) {
			want[w] += launch();
			if (rs_cupti_hide()) {
				launch(); /* ours */
				rs_cupti_show();
			}
		}
		rs_cupti_switch(now, 0);
		launch(); /* of no window */
		if (i % 8 == self)
			rs_cupti_step();
		if (self == 1 && (int)i == withdraw_at)
			rs_cupti_withdraw("cuptiSubscribe");
	}
	if (fake_depth)
		losses += 100;
	return NULL;
}

static void reset(void)
{
	for (unsigned i = 0; i < s.nbuffers; i++)
		free(s.buffer[i].bytes);
	rs_cupti_busy_destroy(s.busy);
	memset(&s, 0, sizeof(s));
	memset(times, 0, sizeof(times));
	memset(want, 0, sizeof(want));
	memset(have, 0, sizeof(have));
	losses = 0;
	reason[0] = 0;
}

static void run_threads(void)
{
	static const struct rs_cupti_host host = {.busy = busy, .lost = lost};
	pthread_t thread[THREADS];
	unsigned self[THREADS];

	is_u64((uint64_t)rs_cupti_start(&host, 13000), 0, "started");
	for (unsigned i = 0; i < THREADS; i++) {
		self[i] = i;
		if (pthread_create(&thread[i], NULL, work, &self[i]))
			exit(3);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	rs_cupti_finish();
}

/* Windows that were told: how many, and were they right? */
static unsigned told(unsigned *ret_wrong)
{
	unsigned n = 0;

	*ret_wrong = 0;
	for (unsigned w = 1; w < WINDOWS; w++) {
		n += times[w];
		*ret_wrong += times[w] > 1 || (times[w] && have[w] != want[w]);
	}
	return n;
}

static unsigned held(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s.nbuffers; i++)
		n += s.buffer[i].seq != 0;
	return n;
}

static void test_threads(void)
{
	struct rs_cupti_stats stats;
	unsigned n, wrong;

	run_threads();
	n = told(&wrong);
	ok(n == WINDOWS - 1 && !wrong, "%u windows of %u threads, each with its own time", n,
	   THREADS);
	rs_cupti_stats(&stats);
	ok(!stats.dropped && !stats.broken && !stats.missing && stats.unmatched && !losses,
	   "nothing was lost");
	ok(!held() && !fake_on && s.nbuffers <= 2 * BUFFERS, "all is given back");
	reset();
}

static void test_withdrawal(void)
{
	unsigned n, wrong;

	for (withdraw_at = 0; withdraw_at < ROUNDS; withdraw_at += 67) {
		run_threads();
		n = told(&wrong);
		ok(n < WINDOWS - 1 && !wrong, "withdrawn after a while: %u windows, none wrong", n);
		ok(losses == 1 && strstr(reason, "(cuptiSubscribe)"), "which is said once");
		ok(!held() && !fake_on, "all is given back");
		reset();
	}
	withdraw_at = -1;
}

static void test_refusals(void)
{
	static const struct rs_cupti_host host = {.busy = busy, .lost = lost};

	open_result = -ENOENT;
	ok(rs_cupti_start(&host, 12000) == -ENOENT && losses == 1 && !strcmp(reason, "not there"),
	   "no library");
	ok(rs_cupti_start(&host, 12000) == -EALREADY, "it starts once");
	ok(!rs_cupti_switch(0, 5) && !rs_cupti_hide(), "and does nothing then");
	rs_cupti_step();
	rs_cupti_withdraw("cuptiSubscribe");
	rs_cupti_left(5);
	rs_cupti_finish();
	is_u64(losses, 1, "nor says more");
	reset();
	open_result = 0;
	rs_cupti_withdraw("cuptiActivityEnable");
	ok(rs_cupti_start(&host, 12000) == -EBUSY && losses == 1 &&
		   strstr(reason, "(cuptiActivityEnable)"),
	   "a program that was first");
	ok(!fake_on, "nothing is switched on");
	reset();
	for (int at = AT_OPEN; at <= AT_ENABLE; at++) {
		comes = at;
		ok(rs_cupti_start(&host, 12000) && losses == 1 &&
			   strstr(reason, "(cuptiSubscribe)") && !rs_cupti_running(),
		   "one that comes while it starts (%d)", at);
		ok(!fake_on, "nothing stays switched on");
		reset();
	}
}

int main(void)
{
	test_threads();
	test_withdrawal();
	test_refusals();
	return tap_done();
}
