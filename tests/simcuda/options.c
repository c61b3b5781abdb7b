/* SPDX-License-Identifier: MIT */
/*
 * SIMCUDA_* environment, read once, and injected faults.
 *
 *   SIMCUDA_DEVICES=N       SIMCUDA_MEMORY=BYTES[K|M|G]    SIMCUDA_CC=MAJOR.MINOR (75 works, too)
 *   SIMCUDA_SCHED=eager | lazy | random:<seed>            SIMCUDA_PROFILE=h100 | h200
 *   SIMCUDA_CHECK=uninit    SIMCUDA_TRACE=1               SIMCUDA_FAIL=entry:count=code[,...]
 *   SIMCUDA_HANG_MS=N       how long a wait may make no progress before it is called a deadlock
 *   SIMCUDA_MAX_INSNS=N     thread-instructions of one launch before it is stopped; 0: no limit
 *   SIMCUDA_GRANULARITY=BYTES[K|M|G]  of memory that is mapped: a power of two, 64K to 1G (2M)
 *   SIMCUDA_SCALE=N         launch and copy latencies of the profile over N, for work that is N times smaller than real
 *   SIMCUDA_CALLS=PATH      at exit: how often each entry point was called, one "entry count" a line
 *
 * A value that is not understood is reported once on stderr and the default is kept.
 */
#include "tests/simcuda/sim.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct sim_profile profiles[] = {
#define PROFILE(name, mem, pcie, rate, launch, copy, map, access)                                  \
	{#name, mem, pcie, rate, launch, copy, map, access},
#include "tests/simcuda/profile.def"
#undef PROFILE
};

struct sim_options sim_options = {
	.sched = SIM_SCHED_EAGER,
	.devices = 1,
	.memory = 8ull << 30,
	.granularity = 2ull << 20,
	.cc = 75,
	.hang_ms = 2000,
	.scale = 1,
	.profile = &profiles[0],
};

#define MAX_FAULTS 64
static struct fault {
	enum sim_api_id id;
	uint64_t count;
	CUresult code;
} faults[MAX_FAULTS];
static unsigned nfaults;
static uint64_t fault_calls[SIM_API_COUNT];
static const char *calls_path;

void sim_log(const char *fmt, ...)
{
	char buf[1024];
	va_list ap;
	int n = snprintf(buf, sizeof(buf), "simcuda: ");

	va_start(ap, fmt);
	n += vsnprintf(buf + n, sizeof(buf) - n - 1, fmt, ap);
	va_end(ap);
	if (n > (int)sizeof(buf) - 2)
		n = sizeof(buf) - 2;
	buf[n++] = '\n';
	if (write(2, buf, n) < 0)
		return;
}

static int parse_u64(const char *s, uint64_t *ret, char **ret_end)
{
	char *end;
	uint64_t v;

	if (!isdigit((unsigned char)*s))
		return -1;
	v = strtoull(s, &end, 0);
	*ret_end = end;
	*ret = v;
	return 0;
}

static int parse_bytes(const char *s, uint64_t *ret)
{
	uint64_t v;
	char *end;
	int shift = 0;

	if (parse_u64(s, &v, &end))
		return -1;
	if (*end == 'K' || *end == 'k')
		shift = 10;
	else if (*end == 'M' || *end == 'm')
		shift = 20;
	else if (*end == 'G' || *end == 'g')
		shift = 30;
	if (end[shift ? 1 : 0] || !v || v > (1ull << 40 >> shift))
		return -1;
	*ret = v << shift;
	return 0;
}

static int parse_memory(const char *s)
{
	return parse_bytes(s, &sim_options.memory);
}

static int parse_granularity(const char *s)
{
	uint64_t v;

	if (parse_bytes(s, &v) || v & (v - 1) || v < 64u << 10 || v > 1u << 30)
		return -1;
	sim_options.granularity = v;
	return 0;
}

static int parse_cc(const char *s)
{
	uint64_t major, minor;
	char *end;

	if (parse_u64(s, &major, &end))
		return -1;
	if (*end == '.') {
		if (parse_u64(end + 1, &minor, &end) || minor > 9)
			return -1;
		major = major * 10 + minor;
	}
	if (*end || major < 10 || major > 300)
		return -1;
	sim_options.cc = (int)major;
	return 0;
}

static int parse_devices(const char *s)
{
	uint64_t v;
	char *end;

	if (parse_u64(s, &v, &end) || *end || v > SIM_MAX_DEVICES)
		return -1;
	sim_options.devices = (unsigned)v;
	return 0;
}

static int parse_check(const char *s)
{
	if (*s && strcmp(s, "uninit"))
		return -1;
	sim_options.check_uninit = *s;
	return 0;
}

static int parse_trace(const char *s)
{
	sim_options.trace = *s && strcmp(s, "0");
	return 0;
}

static int parse_profile(const char *s)
{
	for (unsigned i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++)
		if (!strcmp(profiles[i].name, s)) {
			sim_options.profile = &profiles[i];
			return 0;
		}
	return -1;
}

static int parse_hang(const char *s)
{
	uint64_t v;
	char *end;

	if (parse_u64(s, &v, &end) || *end || v > 3600000)
		return -1;
	sim_options.hang_ms = (unsigned)v;
	return 0;
}

static int parse_max_insns(const char *s)
{
	char *end;

	return parse_u64(s, &sim_options.max_insns, &end) || *end ? -1 : 0;
}

static int parse_scale(const char *s)
{
	uint64_t v;
	char *end;

	if (parse_u64(s, &v, &end) || *end || !v || v > 1000000)
		return -1;
	sim_options.scale = v;
	return 0;
}

int sim_options_sched(const char *spec)
{
	uint64_t seed = 0;
	char *end = "";

	if (!strcmp(spec, "eager"))
		sim_options.sched = SIM_SCHED_EAGER;
	else if (!strcmp(spec, "lazy"))
		sim_options.sched = SIM_SCHED_LAZY;
	else if (!strncmp(spec, "random:", 7) && !parse_u64(spec + 7, &seed, &end) && !*end)
		sim_options.sched = SIM_SCHED_RANDOM;
	else
		return -1;
	sim_options.seed = seed;
	sim_sched_reset(sim_options.sched, seed);
	return 0;
}

static int api_by_name(const char *name, size_t len)
{
	for (int i = 0; i < SIM_API_COUNT; i++)
		if (strlen(sim_api_name(i)) == len && !strncmp(sim_api_name(i), name, len))
			return i;
	return -1;
}

static int parse_fault(const char *item, size_t len)
{
	const char *colon = memchr(item, ':', len);
	uint64_t count, code;
	char *end;
	int id;

	if (!colon || nfaults == MAX_FAULTS)
		return -1;
	id = api_by_name(item, colon - item);
	if (id < 0 || parse_u64(colon + 1, &count, &end) || *end != '=' || !count)
		return -1;
	if (parse_u64(end + 1, &code, &end) || end != item + len || !code || code > 999)
		return -1;
	faults[nfaults++] = (struct fault){id, count, (CUresult)code};
	return 0;
}

int sim_options_set_fail(const char *spec)
{
	int bad = 0;

	nfaults = 0;
	memset(fault_calls, 0, sizeof(fault_calls));
	while (*spec) {
		size_t n = strcspn(spec, ",");

		if (n && parse_fault(spec, n)) {
			sim_log("SIMCUDA_FAIL: \"%.*s\" is not entry:count=code of an entry point "
				"of this driver; ignored",
				(int)n, spec);
			bad = -1;
		}
		spec += n + (spec[n] == ',');
	}
	return bad;
}

CUresult sim_options_fault(enum sim_api_id id)
{
	uint64_t call;

	if (!nfaults && !calls_path)
		return CUDA_SUCCESS;
	call = ++fault_calls[id];
	for (unsigned i = 0; i < nfaults; i++)
		if (faults[i].id == id && faults[i].count == call)
			return faults[i].code;
	return CUDA_SUCCESS;
}

/* After the exit handlers, which may still make calls. */
__attribute__((destructor)) static void write_calls(void)
{
	FILE *f = calls_path ? fopen(calls_path, "w") : NULL;

	for (int i = 0; f && i < SIM_API_COUNT; i++)
		if (fault_calls[i])
			fprintf(f, "%s %llu\n", sim_api_name(i),
				(unsigned long long)fault_calls[i]);
	if (f)
		fclose(f);
}

void sim_options_load(void)
{
	static const struct {
		const char *name;
		int (*parse)(const char *);
	} vars[] = {
		{"SIMCUDA_DEVICES", parse_devices},
		{"SIMCUDA_MEMORY", parse_memory},
		{"SIMCUDA_GRANULARITY", parse_granularity},
		{"SIMCUDA_CC", parse_cc},
		{"SIMCUDA_SCHED", sim_options_sched},
		{"SIMCUDA_PROFILE", parse_profile},
		{"SIMCUDA_CHECK", parse_check},
		{"SIMCUDA_TRACE", parse_trace},
		{"SIMCUDA_HANG_MS", parse_hang},
		{"SIMCUDA_MAX_INSNS", parse_max_insns},
		{"SIMCUDA_SCALE", parse_scale},
	};

	for (unsigned i = 0; i < sizeof(vars) / sizeof(vars[0]); i++) {
		const char *v = getenv(vars[i].name);

		if (v && vars[i].parse(v))
			sim_log("%s=%s is not understood; the default is used", vars[i].name, v);
	}
	calls_path = getenv("SIMCUDA_CALLS");
	if (getenv("SIMCUDA_FAIL"))
		sim_options_set_fail(getenv("SIMCUDA_FAIL"));
}
