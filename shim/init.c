/* SPDX-License-Identifier: MIT */
/*
 * From being loaded to the last line of events.jsonl.
 *
 * The constructor reads the environment and sets two variables (NVTX's injection path, Python's path),
 * nothing else: no thread, no CUDA call, no output in a process that never initialises CUDA. Observing
 * starts after the program's first successful cuInit and ends in an exit handler registered then, which
 * therefore runs before the driver's own.
 * Locks: none; starting is claimed by one atomic word.
 */
#include "shim/busy.h"
#include "shim/bypass.h"
#include "shim/contract.h"
#include "shim/guard.h"
#include "shim/kernels.h"
#include "shim/log.h"
#include "shim/pattern.h"
#include "shim/planner.h"
#include "shim/where.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

int rs_on;
struct rs_state rs_state;

/* Values of option CAPTURE. */
enum { CAPTURE_AUTO, CAPTURE_ON, CAPTURE_OFF };

static int booted, started;
static char host[256];
static char start_dir[4096]; /* where the program was started; empty: not known */

static void boot_mode(void)
{
	if (getauxval(AT_SECURE)) {
		rs_state.mode = RS_MODE_OFF;
		return;
	}
	rs_state.mode = (enum rs_mode)rs_state.opt.mode;
}

/* Idempotent, so that racing callers do no harm; the constructor is the usual first. */
void rs_init_boot(void)
{
	if (__atomic_load_n(&booted, __ATOMIC_ACQUIRE))
		return;
	rs_options_parse(&rs_state.opt, environ, NULL, NULL);
	boot_mode();
	__atomic_store_n(&booted, 1, __ATOMIC_RELEASE);
}

/* --- constructor -------------------------------------------------------------------------------- */

static void find_self(void)
{
	Dl_info info;
	char *real;

	if (!dladdr(&rs_state, &info) || !info.dli_fname)
		return;
	real = realpath(info.dli_fname, NULL);
	if (real && strlen(real) < sizeof(rs_state.self))
		strcpy(rs_state.self, real);
	free(real);
}

/* A profiler's library that is already there is remembered and called first. */
static void set_nvtx(void)
{
	const char *now = rs_options_env(environ, "NVTX_INJECTION64_PATH");

	if (now && !strcmp(now, rs_state.self))
		return;
	if (now && *now && !rs_state.opt.nvtx_next[0]) {
		setenv("REPLAYSHIM_NVTX_NEXT", now, 1);
		rs_options_parse(&rs_state.opt, environ, NULL, NULL);
	}
	setenv("NVTX_INJECTION64_PATH", rs_state.self, 1);
}

static int hook_dir(char *dir, size_t size)
{
	static const char *const beside[] = {"replayshim/python", "python"};
	const char *slash = strrchr(rs_state.self, '/');
	struct stat st;

	if (!strcmp(rs_state.opt.python, "off"))
		return 0;
	if (strcmp(rs_state.opt.python, "auto"))
		return snprintf(dir, size, "%s", rs_state.opt.python) < (int)size;
	for (unsigned i = 0; slash && i < sizeof(beside) / sizeof(*beside); i++) {
		if (snprintf(dir, size, "%.*s/%s/sitecustomize.py", (int)(slash - rs_state.self),
			     rs_state.self, beside[i]) >= (int)size)
			continue;
		if (!stat(dir, &st)) {
			*strrchr(dir, '/') = '\0';
			return 1;
		}
	}
	return 0;
}

static void set_python(void)
{
	const char *now = rs_options_env(environ, "PYTHONPATH");
	char dir[4096], *value;
	size_t len;

	if (!hook_dir(dir, sizeof(dir)))
		return;
	len = strlen(dir);
	if (now && !strncmp(now, dir, len) && (now[len] == ':' || !now[len]))
		return;
	if (!now || !*now) {
		setenv("PYTHONPATH", dir, 1);
	} else if (asprintf(&value, "%s:%s", dir, now) >= 0) {
		setenv("PYTHONPATH", value, 1);
		free(value);
	}
}

static void say(void *arg, const char *line)
{
	(void)arg;
	rs_log_say("%s", line);
}

__attribute__((constructor)) static void construct(void)
{
	int saved = errno;

	rs_init_boot();
	rs_log_loaded();
	if (rs_state.mode == RS_MODE_AUDIT || rs_state.mode == RS_MODE_PRESERVE) {
		if (!getcwd(start_dir, sizeof(start_dir)))
			start_dir[0] = '\0';
		find_self();
		if (rs_state.self[0]) {
			set_nvtx();
			set_python();
		}
	}
	if (rs_state.opt.help && !getauxval(AT_SECURE))
		rs_options_print(&rs_state.opt, say, NULL);
	errno = saved;
}

/* --- start -------------------------------------------------------------------------------------- */

static void complain(void *arg, const char *line)
{
	(void)arg;
	rs_log(RS_LOG_WARN, "%s", line);
}

/* A name without a slash in front means the directory of the start, wherever the program has gone since. */
static int from_start(char *path, size_t size)
{
	size_t len = strlen(start_dir);
	char now[4096];

	if (path[0] == '/' || !len || (getcwd(now, sizeof(now)) && !strcmp(now, start_dir)))
		return 0;
	if (len + 1 + strlen(path) >= size)
		return -ENAMETOOLONG;
	memmove(path + len + 1, path, strlen(path) + 1);
	memcpy(path, start_dir, len);
	path[len] = '/';
	return 0;
}

static int expand(const char *text, long sequence, char *out, size_t size)
{
	struct rs_options_subst subst = {environ, getpid(), sequence, host};
	int r = rs_options_expand(text, &subst, out, size);

	return r ? r : from_start(out, size);
}

static void start_log(int rank)
{
	enum rs_log_level level = (enum rs_log_level)rs_state.opt.log;
	const char *file = rs_state.opt.log_file;
	char path[4096];
	int r = file[0] ? expand(file, 0, path, sizeof(path)) : 0;

	if (!r)
		r = rs_log_setup(file[0] ? path : NULL, level, rank);
	else
		rs_log_setup(NULL, level, rank);
	if (r)
		rs_log(RS_LOG_WARN, "REPLAYSHIM_LOG_FILE=%s: %s; using stderr", file, strerror(-r));
}

/* One process' data goes into one directory: where there is some already, another is made. */
static int open_records(void)
{
	char *tail = rs_state.dir + strlen(rs_state.dir);
	int r = rs_records_open(rs_state.dir, &rs_state.records);
	size_t room;

	while (tail > rs_state.dir + 1 && tail[-1] == '/')
		*--tail = '\0';
	room = sizeof(rs_state.dir) - (size_t)(tail - rs_state.dir);
	for (long n = 2; r == -EEXIST && n < 100000; n++) {
		if (snprintf(tail, room, ".%ld", n) >= (int)room)
			return -ENAMETOOLONG;
		r = rs_records_open(rs_state.dir, &rs_state.records);
	}
	/* With a process number in its name it is a number that was used before. */
	if (!r && *tail && !strstr(rs_state.opt.out, "%p"))
		rs_log(RS_LOG_WARN, "REPLAYSHIM_OUT=%s has data of another process; this is in %s",
		       rs_state.opt.out, rs_state.dir);
	return r;
}

/* %n counts up to a directory that is not there yet. */
static void start_records(void)
{
	struct stat st;
	long n = 0;
	int r;

	do
		r = expand(rs_state.opt.out, n, rs_state.dir, sizeof(rs_state.dir));
	while (!r && strstr(rs_state.opt.out, "%n") && !stat(rs_state.dir, &st) && ++n < 100000);
	if (!r)
		r = open_records();
	if (r)
		rs_log(RS_LOG_ERROR, "REPLAYSHIM_OUT=%s: %s; nothing will be recorded",
		       rs_state.opt.out, strerror(-r));
}

static void json_argv(struct rs_json *j)
{
	char text[2048];
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	rs_json_open(j, "argv", '[');
	for (const char *p = text; p < text + n; p += strlen(p) + 1)
		rs_json_str(j, NULL, p);
	rs_json_close(j, ']');
}

static void write_begin(int rank)
{
	char name[128] = "unknown";
	CUdevice device;
	struct rs_json j;
	int driver = 0;

	if (rs_real.cuDeviceGet(&device, 0) == CUDA_SUCCESS &&
	    rs_real.cuDeviceGetName(name, sizeof(name), device) != CUDA_SUCCESS)
		strcpy(name, "unknown");
	rs_real.cuDriverGetVersion(&driver);
	rs_json_begin(&j);
	rs_json_str(&j, "t", "begin");
	rs_json_u64(&j, "pid", (uint64_t)getpid());
	rs_json_u64(&j, "rank", (uint64_t)rank);
	rs_json_str(&j, "host", host);
	rs_json_str(&j, "tool", RS_VERSION);
	rs_json_str(&j, "mode", rs_state.opt.text[RS_OPT_ID_MODE]);
	rs_json_str(&j, "device", name);
	rs_json_u64(&j, "driver", (uint64_t)driver);
	json_argv(&j);
	rs_json_open(&j, "opts", '{');
	for (unsigned i = 0; i < RS_OPT_COUNT; i++) {
		rs_json_open(&j, rs_opt_info[i].name, '{');
		rs_json_str(&j, "value", rs_state.opt.text[i]);
		rs_json_str(&j, "from", rs_state.opt.from_env[i] ? "env" : "default");
		rs_json_close(&j, '}');
	}
	rs_json_close(&j, '}');
	rs_records_write(rs_state.records, RS_RECORD_EVENTS, &j);
}

static void finish(void);

/* Nodes of our own show in the program's graph, and an audit changes nothing that can be seen. */
static enum rs_captures captures(enum rs_mode mode)
{
	if (rs_state.opt.capture == CAPTURE_ON ||
	    (rs_state.opt.capture == CAPTURE_AUTO && mode == RS_MODE_PRESERVE))
		return RS_CAPTURES_FOLLOW;
	return rs_state.opt.capture == CAPTURE_AUTO && rs_state.opt.learn ? RS_CAPTURES_LEARN
									  : RS_CAPTURES_OFF;
}

/* Plans are made from costs, and need to know what is overwritten, too. */
static void configure_plans(struct rs_engine_config *config)
{
	const struct rs_options *o = &rs_state.opt;

	config->costs = o->costs || o->learn || o->budget || o->plan[0] || o->cupti;
	config->profile |= (o->budget || o->plan[0]) && rs_state.mode == RS_MODE_PRESERVE;
}

void rs_init_start(void)
{
	struct rs_engine_config config = {.order = 1};
	int no = 0, rank;

	if (rs_state.mode != RS_MODE_AUDIT && rs_state.mode != RS_MODE_PRESERVE)
		return;
	if (!__atomic_compare_exchange_n(&started, &no, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	if (gethostname(host, sizeof(host) - 1))
		strcpy(host, "unknown");
	rank = (int)rs_options_rank(environ);
	start_log(rank);
	rs_options_parse(&rs_state.opt, environ, complain, NULL);
	start_records();
	config.mode = rs_state.mode;
	config.snapshot_max = rs_state.opt.snapshot_max;
	config.verify = (uint8_t)rs_state.opt.verify;
	config.sample = rs_state.opt.sample;
	config.buffers = (uint8_t)rs_state.opt.versions;
	config.profile = (uint8_t)rs_state.opt.learn;
	config.capture = (uint8_t)captures(config.mode);
	configure_plans(&config);
	rs_where_start(&config);
	rs_state.engine = rs_engine_create(&config, &rs_devops_ops, rs_state.records);
	if (!rs_state.engine) {
		rs_log(RS_LOG_ERROR, "no memory; calls are passed through");
		return;
	}
	if (rs_state.records)
		write_begin(rank);
	rs_contract_start();
	rs_pattern_start();
	rs_busy_start();
	rs_fork_init();
	rs_planner_start();
	atexit(finish);
	__atomic_store_n(&rs_on, RS_ON, __ATOMIC_RELEASE);
	rs_bypass_look(0);
	if (!rs_state.opt.quiet && !rank)
		rs_log_say("replayshim " RS_VERSION " %s: %s", rs_state.opt.text[RS_OPT_ID_MODE],
			   rs_state.records ? rs_state.dir : "(no directory)");
}

RS_HOOK(cuInit, (unsigned int Flags))
{
	CUresult r = rs_real.cuInit(Flags);

	if (r == CUDA_SUCCESS) {
		rs_init_boot();
		RS_ENGINE(rs_init_start());
		rs_guard_count(RS_EP_cuInit);
	}
	return r;
}

/* --- end ---------------------------------------------------------------------------------------- */

/* Exit handlers also run in a forked child, which has nothing to say. */
static void finish(void)
{
	CUcontext ctx = NULL;
	struct rs_json j;

	if (!__atomic_exchange_n(&rs_on, 0, __ATOMIC_ACQ_REL))
		return;
	if (rs_real.cuCtxGetCurrent(&ctx) == CUDA_SUCCESS) {
		rs_engine_finish(rs_state.engine);
		rs_busy_finish();
	}
	if (!rs_state.records)
		return;
	rs_engine_end(rs_state.engine);
	if (rs_state.opt.learn)
		rs_engine_learned(rs_state.engine);
	rs_engine_costs_write(rs_state.engine);
	rs_planner_finish();
	rs_pattern_finish();
	rs_report_stats();
	rs_json_begin(&j);
	rs_json_str(&j, "t", "end");
	rs_json_u64(&j, "lost", rs_records_lost(rs_state.records));
	rs_records_write(rs_state.records, RS_RECORD_EVENTS, &j);
	rs_report_lost();
}

void rs_guard_look(void)
{
	static uint64_t seen; /* never goes back: a thread that was slow has an older count */
	struct rs_engine_stats stats;
	int on = RS_ON;
	uint64_t bad, was = __atomic_load_n(&seen, __ATOMIC_RELAXED);

	rs_engine_stats(rs_state.engine, &stats);
	bad = stats.outcome[1] + stats.outcome[2];
	while (bad > was && !__atomic_compare_exchange_n(&seen, &was, bad, 1, __ATOMIC_RELAXED,
							 __ATOMIC_RELAXED))
		;
	if (bad > was)
		__atomic_compare_exchange_n(&rs_on, &on, RS_ON | RS_STRICT_PENDING, 0,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
