/* SPDX-License-Identifier: MIT */
/*
 * See busy.h, and cupti/rs_cupti.h for what is done.
 *
 * A window counts as long as it is the thread's innermost one; the engine's own work within it does not (rs_busy_hide).
 * The program's profiler goes first: the functions of libcupti by which a user begins are exported here, too, and handed out by
 * the doors; the first call by anybody but us makes cupti/ withdraw before the call is passed on.
 * Callers: any thread. No locks here. `inside` marks the thread's calls of cupti/: what libcupti calls meanwhile is ours.
 */
#include "shim/busy.h"
#include "cupti/rs_cupti.h"
#include "shim/guard.h"
#include "shim/log.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static __thread int inside __attribute__((tls_model("initial-exec")));

#define CUPTI(stmt)                                                                                \
	do {                                                                                       \
		int saved_errno_ = errno;                                                          \
		inside++;                                                                          \
		stmt;                                                                              \
		inside--;                                                                          \
		errno = saved_errno_;                                                              \
	} while (0)

/* --- what is told ------------------------------------------------------------------------------- */

static void busy(void *arg, uint64_t window, uint64_t ns)
{
	rs_engine_cost_busy(arg, window, ns);
}

static void lost(void *arg, const char *why)
{
	char text[256];
	struct rs_json j;

	(void)arg;
	__atomic_store_n(&rs_state.busy, 0, __ATOMIC_RELAXED);
	snprintf(text, sizeof(text), "REPLAYSHIM_CUPTI=on: no busy times: %s", why);
	rs_log(RS_LOG_WARN, "%s", text);
	if (!rs_state.records)
		return;
	rs_json_begin(&j);
	rs_json_str(&j, "t", "finding");
	rs_json_str(&j, "code", "RS091");
	rs_json_str(&j, "sev", "note");
	rs_json_str(&j, "segment", "");
	rs_json_u64(&j, "step", rs_report_last_step());
	rs_json_str(&j, "text", text);
	rs_records_write(rs_state.records, RS_RECORD_EVENTS, &j);
}

static void report(void)
{
	struct rs_cupti_stats s;
	struct rs_json j;

	if (!rs_state.records)
		return;
	rs_cupti_stats(&s);
	rs_json_begin(&j);
	rs_json_str(&j, "t", "cupti");
	rs_json_u64(&j, "records", s.records);
	rs_json_u64(&j, "buffers", s.buffers);
	rs_json_u64(&j, "dropped", s.dropped);
	rs_json_u64(&j, "broken", s.broken);
	rs_json_u64(&j, "windows", s.windows);
	rs_json_u64(&j, "missing", s.missing);
	rs_json_u64(&j, "empty", s.empty);
	rs_json_u64(&j, "unmatched", s.unmatched);
	rs_json_u64(&j, "forgotten", s.forgotten);
	rs_records_write(rs_state.records, RS_RECORD_EVENTS, &j);
}

/* --- start, windows, end ------------------------------------------------------------------------ */

void rs_busy_start(void)
{
	struct rs_cupti_host host = {rs_state.engine, rs_doors_dlsym, busy, lost};
	const char *tool = rs_options_env(environ, "CUDA_INJECTION64_PATH");
	int driver = 0;

	if (!rs_state.opt.cupti)
		return;
	if (tool && *tool) {
		lost(NULL, "a tool is injected (CUDA_INJECTION64_PATH)");
		return;
	}
	if (rs_real.cuDriverGetVersion(&driver) != CUDA_SUCCESS)
		driver = 0;
	CUPTI(rs_cupti_start(&host, driver));
	__atomic_store_n(&rs_state.busy, rs_cupti_running(), __ATOMIC_RELAXED);
}

/* Also after the end of it, so that what was pushed is popped. */
void rs_busy_window(struct rs_tls *t)
{
	uint64_t now = rs_busy_on() ? rs_engine_window(t->thread) : 0;

	if (now != t->window)
		CUPTI(t->window = rs_cupti_switch(t->window, now));
}

void rs_busy_step(void)
{
	if (rs_busy_on())
		CUPTI(rs_cupti_step());
}

void rs_busy_thread_ends(const struct rs_tls *t)
{
	if (t->window)
		CUPTI(rs_cupti_left(t->window));
}

void rs_busy_forked(void)
{
	__atomic_store_n(&rs_state.busy, 0, __ATOMIC_RELAXED);
	rs_cupti_forked();
}

int rs_busy_hide(void)
{
	int hidden = 0;

	if (rs_tls && rs_tls->window)
		CUPTI(hidden = rs_cupti_hide());
	return hidden;
}

void rs_busy_show(void)
{
	CUPTI(rs_cupti_show());
}

void rs_busy_finish(void)
{
	if (!rs_state.opt.cupti)
		return;
	CUPTI(rs_cupti_finish());
	__atomic_store_n(&rs_state.busy, 0, __ATOMIC_RELAXED);
	report();
}

/* --- other users -------------------------------------------------------------------------------- */

/* By these a user of CUPTI begins, or ends it for everybody. At most four words of arguments each. */
#define USERS(X)                                                                                   \
	X(cuptiSubscribe)                                                                          \
	X(cuptiSubscribe_v2)                                                                       \
	X(cuptiActivityRegisterCallbacks)                                                          \
	X(cuptiActivityEnable)                                                                     \
	X(cuptiActivityEnableContext)                                                              \
	X(cuptiActivityEnableAndDump)                                                              \
	X(cuptiProfilerInitialize)                                                                 \
	X(cuptiFinalize)

#define NOT_INITIALIZED 15 /* CUptiResult */

enum user {
#define X(name) USER_##name,
	USERS(X)
#undef X
};

typedef int user_fn(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d);

static user_fn *real[] = {
#define X(name) [USER_##name] = NULL,
	USERS(X)
#undef X
};

/* Linked against: the next in load order, or the library that was loaded for its caller only; else as if it were. */
static user_fn *find_real(enum user i, const char *name)
{
	static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
	const unsigned n = sizeof(names) / sizeof(*names);
	user_fn *f = __atomic_load_n(&real[i], __ATOMIC_ACQUIRE);

	if (!f)
		f = (user_fn *)rs_doors_dlsym(RTLD_NEXT, name);
	for (unsigned k = 0; k < 2 * n && !f; k++) {
		void *h = dlopen(names[k % n], RTLD_LAZY | (k < n ? RTLD_NOLOAD : 0));

		if (h)
			f = (user_fn *)rs_doors_dlsym(h, name);
	}
	__atomic_store_n(&real[i], f, __ATOMIC_RELEASE);
	return f;
}

static void user_shows(const char *name)
{
	struct rs_tls *t = NULL;
	int on = __atomic_load_n(&rs_on, __ATOMIC_ACQUIRE);

	if (inside)
		return;
	if (on)
		t = rs_tls_get();
	if (t && t->depth)
		return; /* the driver, on our behalf */
	if (t)
		t->depth = 1;
	CUPTI(rs_cupti_withdraw(name));
	if (t)
		t->depth = 0;
}

static int pass(enum user i, const char *name, const uintptr_t v[4])
{
	user_fn *f;

	RS_ENGINE(user_shows(name); f = find_real(i, name));
	return f ? f(v[0], v[1], v[2], v[3]) : NOT_INITIALIZED;
}

#define X(name)                                                                                    \
	RS_EXPORT int name(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d);                    \
	int name(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d)                               \
	{                                                                                          \
		const uintptr_t v[4] = {a, b, c, d};                                               \
                                                                                                   \
		return pass(USER_##name, #name, v);                                                \
	}
USERS(X)
#undef X

void *rs_busy_exchange(const char *name, void *addr)
{
	static const struct {
		const char *name;
		void *door;
	} doors[] = {
#define X(name) {#name, (void *)name},
		USERS(X)
#undef X
	};
	user_fn *none = NULL;

	for (unsigned i = 0; i < sizeof(doors) / sizeof(*doors); i++) {
		if (strcmp(doors[i].name, name))
			continue;
		__atomic_compare_exchange_n(&real[i], &none, (user_fn *)addr, 0, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED);
		return real[i] == (user_fn *)addr ? doors[i].door : NULL;
	}
	return NULL;
}
