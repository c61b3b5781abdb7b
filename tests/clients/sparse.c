/* SPDX-License-Identifier: MIT */
/*
 * A training whose segments make large activations and write few rows of a large bank of their own: the workload of
 * tests/bench/sparse.py. Driver API only; of replayshim it knows the header.
 *
 *	sparse [--eager | --replay] [--OPTION=VALUE ...]         options: OPTIONS below; bytes take K, M or G
 *
 * A segment's forward allocates its activation, copies its bank there (it reads all of it), makes new rows out of the
 * old ones and its input, and writes them into the bank: `clusters` runs of adjacent rows, `density` of all rows, by a
 * copy each (--writes=copy) or by one kernel with an array of row numbers (--writes=kernel). A replay that sees the
 * new rows as old ones makes other activations, hence other gradients, and writes other rows. --shared: all segments read
 * one bank (a queue), of which their activations hold a part only, and it is written after the last forward.
 *
 * --eager keeps all activations. --replay (default) keeps those for which replayshim_retain() says so, and of the others
 * the input, the checkpoint; backward then runs the forward again. One stream, nothing asynchronous in memory.
 *
 * Time that a real layer would calculate is spent by a kernel that sleeps (--forward-us and its like). Prints
 * one JSON object: a digest of all that training has left (banks, parameters, gradients handed on), step times by event
 * pairs, and on the simulated device the most memory that was ever in use, of whose that was: the activations', the
 * rest of the program's, the tool's.
 */
#include "tests/clients/kernels.h"

#include <dlfcn.h>
#include <time.h>

#include "shim/include/replayshim.h"
#include "tests/simcuda/simcuda.h"

/* Sizes by default: 1/1024 of the workload that tests/bench/sparse.py stands for. */
/* clang-format off */
#define OPTIONS(X) \
	X(segments,    SIZE,   "4",    "segments") \
	X(activation,  SIZE,   "4M",   "bytes that a segment keeps for its backward, its input among them") \
	X(bank,        SIZE,   "1792K", "bytes of state, each segment's own") \
	X(checkpoint,  SIZE,   "100K", "bytes handed from one segment to the next") \
	X(scratch,     SIZE,   "100K", "bytes that a backward needs") \
	X(base,        SIZE,   "2720K", "bytes of parameters and their optimizer") \
	X(row,         SIZE,   "1K",   "bytes") \
	X(clusters,    SIZE,   "8",    "runs of adjacent rows that a segment writes") \
	X(clean,       SIZE,   "0",    "first segments, which only read theirs") \
	X(drift,       SIZE,   "0",    "rows by which these move from step to step") \
	X(steps,       SIZE,   "6",    "") \
	X(warmup,      SIZE,   "2",    "first steps whose times do not count") \
	X(seed,        SIZE,   "1",    "") \
	X(density,     REAL,   "0.02", "of all rows, how many are written in a step") \
	X(forward_us,  REAL,   "10",   "that a forward sleeps") \
	X(backward_us, REAL,   "20",   "that a backward sleeps") \
	X(optimizer_us, REAL,  "1",    "that the optimizer sleeps") \
	X(writes,      TEXT,   "copy", "copy or kernel") \
	X(eager,       FLAG,   NULL,   "keep everything") \
	X(replay,      FLAG,   NULL,   "keep what replayshim_retain() says") \
	X(shared,      FLAG,   NULL,   "one bank, written after the last forward")
/* clang-format on */

#define SIZE uint64_t
#define REAL double
#define TEXT const char *
#define FLAG int
static struct {
#define X(name, type, value, help) type name;
	OPTIONS(X)
#undef X
} opt;
#undef SIZE
#undef REAL
#undef TEXT
#undef FLAG

#define MAX_SEGMENTS 64
#define MAX_STEPS    1000

static struct segment {
	char name[24];
	CUdeviceptr bank, rows; /* rows: their numbers, in order */
	CUdeviceptr activation, input;
	uint32_t *start; /* of each cluster, in this step */
} segments[MAX_SEGMENTS];

static CUdeviceptr parameters, flow, hidden; /* hidden: what the last forward has handed on */
static CUstream stream;
static uint64_t cluster_rows, written, activation_bytes;
static uint64_t seen_bytes, fresh_bytes; /* of the activation: the bank as it was; new rows */
static uint64_t worked; /* words of a checkpoint that are calculated with; the rest is handed on */

/* --- memory, counted by owner ------------------------------------------------------------------- */

enum owner { ACTIVATION, PROGRAM, OWNERS };
static uint64_t live[OWNERS], at_peak[OWNERS], peak;
static uint64_t (*device_peak)(int);

/* The device's most is seen before and after each change of ours: in between only others' memory changes. */
static void look_at_peak(void)
{
	uint64_t now = device_peak ? device_peak(0) : 0;

	if (now == peak)
		return;
	peak = now;
	memcpy(at_peak, live, sizeof(live));
}

static CUdeviceptr take(enum owner owner, uint64_t bytes)
{
	CUdeviceptr p;

	look_at_peak();
	MUST(cuMemAlloc(&p, bytes));
	live[owner] += bytes;
	look_at_peak();
	return p;
}

static void give(enum owner owner, CUdeviceptr *p, uint64_t bytes)
{
	look_at_peak();
	MUST(cuMemFree(*p));
	live[owner] -= bytes;
	*p = 0;
}

/* --- work --------------------------------------------------------------------------------------- */

#define U(value)	  (&(unsigned){(unsigned)(value)})
#define RUN(name, n, ...) run(name, n, (void *[]){__VA_ARGS__})
#define LOWER(a, b)	  ((a) < (b) ? (a) : (b))

static uint64_t in_words(uint64_t bytes)
{
	return bytes / 4;
}

static void run(const char *name, uint64_t n, void **params)
{
	CUfunction f;

	MUST(cuModuleGetFunction(&f, k_module, name));
	MUST(cuLaunchKernel(f, (unsigned)(n + 255) / 256, 1, 1, n < 256 ? (unsigned)n : 256, 1, 1,
			    0, stream, params, NULL));
}

static void spend(double us)
{
	if (us > 0)
		RUN("work", 1, U(us * 1000));
}

static CUdeviceptr fresh_of(const struct segment *s)
{
	return s->activation + seen_bytes;
}

/* Rows of the bank become the new ones; the activation keeps a copy of them. */
static void write_rows(struct segment *s)
{
	uint64_t bytes = cluster_rows * opt.row, j;
	unsigned row = (unsigned)in_words(opt.row), input = (unsigned)in_words(opt.checkpoint);
	CUdeviceptr fresh = fresh_of(s), old, to;

	if (!strcmp(opt.writes, "kernel")) {
		RUN("update", in_words(written), &s->bank, &s->rows, &row, &s->input, &input,
		    &fresh, U(in_words(written)));
		return;
	}
	for (j = 0; j < opt.clusters; j++) {
		old = s->activation + s->start[j] * opt.row;
		to = fresh + j * bytes;
		RUN("mix", in_words(bytes), &to, &old, &s->input, &input, U(in_words(bytes)));
	}
	for (j = 0; j < opt.clusters; j++)
		MUST(cuMemcpyDtoDAsync(s->bank + s->start[j] * opt.row, fresh + j * bytes, bytes,
				       stream));
}

/* What a segment is: from its input and its bank to its activation, the new rows and its output. */
static CUdeviceptr compute(struct segment *s)
{
	CUdeviceptr fresh, out, *seen = opt.shared ? &s->bank : &s->activation;
	uint64_t words = in_words(opt.shared ? opt.bank : seen_bytes);

	s->activation = take(ACTIVATION, activation_bytes);
	fresh = fresh_of(s);
	MUST(cuMemcpyDtoDAsync(s->activation, s->bank, seen_bytes, stream));
	MUST(cuMemsetD32Async(fresh, 0x5eed, in_words(activation_bytes - seen_bytes), stream));
	if (!opt.shared && s >= &segments[opt.clean])
		write_rows(s);
	out = take(ACTIVATION, opt.checkpoint);
	MUST(cuMemcpyDtoDAsync(out, s->input, opt.checkpoint, stream));
	RUN("produce", worked, &out, &s->input, seen, U(words), &fresh, U(in_words(fresh_bytes)),
	    U(worked));
	spend(opt.forward_us);
	return out;
}

static void forward(struct segment *s, int *retained)
{
	int keep = opt.eager || replayshim_retain(s->name, 0) == 1;

	s->input = hidden;
	replayshim_forward_begin(s->name, 0);
	hidden = compute(s);
	replayshim_forward_end();
	*retained += keep;
	if (!keep)
		give(ACTIVATION, &s->activation, activation_bytes);
}

static void replay(struct segment *s)
{
	CUdeviceptr again;

	replayshim_replay_begin(s->name, 0);
	again = compute(s);
	replayshim_replay_end();
	give(ACTIVATION, &again, opt.checkpoint);
}

static void backward(struct segment *s, uint64_t k)
{
	CUdeviceptr gradient = take(ACTIVATION, opt.scratch), fresh = fresh_of(s);
	CUdeviceptr mine = parameters + k * opt.checkpoint;

	RUN("back", worked, &flow, &gradient, &s->input, &s->activation, U(in_words(seen_bytes)),
	    &fresh, U(in_words(fresh_bytes)), U(worked));
	RUN("descend", worked, &mine, &gradient, U(worked));
	spend(opt.backward_us);
	give(ACTIVATION, &gradient, opt.scratch);
	give(ACTIVATION, &s->activation, activation_bytes);
	give(ACTIVATION, &s->input, opt.checkpoint);
}

/* --- steps -------------------------------------------------------------------------------------- */

/* Somewhere in a part of the bank, whatever the seed: contracts and plans hold for other data, too. */
static uint64_t anywhere(const struct segment *s, uint64_t part)
{
	uint64_t h = ((uint64_t)(s - segments) * 1000003 + part + 1) * 0x9e3779b97f4a7c15ull;

	return h ^ h >> 31;
}

/* A cluster in each of as many equal parts of the bank. */
static void place_rows(struct segment *s, uint64_t step)
{
	uint64_t part = opt.bank / opt.row / opt.clusters, j, i;
	uint32_t *number = malloc(opt.clusters * cluster_rows * sizeof(*number));

	for (j = 0; j < opt.clusters; j++) {
		uint64_t room = part - cluster_rows + 1;

		if (!step)
			s->start[j] = (uint32_t)(anywhere(s, j) % room + j * part);
		else if (opt.drift)
			s->start[j] =
				(uint32_t)((s->start[j] - j * part + opt.drift) % room + j * part);
		for (i = 0; number && i < cluster_rows; i++)
			number[j * cluster_rows + i] = s->start[j] + (uint32_t)i;
	}
	if (number && !strcmp(opt.writes, "kernel") && (!step || opt.drift))
		MUST(cuMemcpyHtoD(s->rows, number, opt.clusters * cluster_rows * sizeof(*number)));
	free(number);
}

/* The shared bank's: in place, from what the last forward has handed on. */
static void enqueue(struct segment *s)
{
	uint64_t bytes = cluster_rows * opt.row, j;
	unsigned input = (unsigned)in_words(opt.checkpoint);
	CUdeviceptr at;

	for (j = 0; j < opt.clusters; j++) {
		at = s->bank + s->start[j] * opt.row;
		RUN("mix", in_words(bytes), &at, &at, &hidden, &input, U(in_words(bytes)));
	}
}

static void train_step(uint64_t step, int *retained)
{
	uint64_t k;

	*retained = 0;
	hidden = take(ACTIVATION, opt.checkpoint);
	MUST(cuMemsetD32Async(hidden, (unsigned)(step * 7919 + opt.seed), in_words(opt.checkpoint),
			      stream));
	for (k = 0; k < opt.segments; k++)
		forward(&segments[k], retained);
	if (opt.shared)
		enqueue(&segments[0]);
	MUST(cuMemcpyDtoDAsync(flow, hidden, opt.checkpoint, stream));
	give(ACTIVATION, &hidden, opt.checkpoint);
	for (k = opt.segments; k-- > 0;) {
		if (!segments[k].activation)
			replay(&segments[k]);
		backward(&segments[k], k);
	}
	spend(opt.optimizer_us);
}

static double timed_step(uint64_t step, CUevent from, CUevent to, int *retained)
{
	float ms;
	uint64_t k;

	for (k = 0; k < (opt.shared ? 1 : opt.segments); k++)
		place_rows(&segments[k], step);
	MUST(cuEventRecord(from, stream));
	replayshim_step((long)step + 1);
	train_step(step, retained);
	MUST(cuEventRecord(to, stream));
	MUST(cuEventSynchronize(to));
	MUST(cuEventElapsedTime(&ms, from, to));
	return ms * 1e6;
}

/* --- what is there before and after -------------------------------------------------------------- */

static void fill_bank(CUdeviceptr bank, const char *name)
{
	uint64_t *host = malloc(opt.bank), i;

	if (!host)
		exit(1);
	for (i = 0; i < opt.bank / 8; i++)
		host[i] = k_random();
	MUST(cuMemcpyHtoD(bank, host, opt.bank));
	free(host);
	replayshim_region_name(bank, opt.bank, name);
}

static void set_up(void)
{
	char name[48];
	uint64_t k;

	k_seed = 0x9e3779b97f4a7c15ull + opt.seed;
	parameters = take(PROGRAM, opt.base - opt.checkpoint);
	flow = take(PROGRAM, opt.checkpoint);
	MUST(cuMemsetD32(parameters, 1, in_words(opt.base - opt.checkpoint)));
	MUST(cuMemsetD32(flow, 0, in_words(opt.checkpoint)));
	for (k = 0; k < opt.segments; k++) {
		struct segment *s = &segments[k];

		snprintf(s->name, sizeof(s->name), "block%u", (unsigned)k);
		if (k && opt.shared) {
			s->bank = segments[0].bank;
			continue;
		}
		s->start = calloc(opt.clusters, sizeof(*s->start));
		if (!s->start)
			exit(1);
		s->bank = take(PROGRAM, opt.bank);
		if (!strcmp(opt.writes, "kernel"))
			s->rows = take(PROGRAM, opt.clusters * cluster_rows * 4);
		snprintf(name, sizeof(name), "state:bank%u", (unsigned)k);
		fill_bank(s->bank, name);
	}
}

static uint64_t digest(uint64_t h, CUdeviceptr p, uint64_t bytes)
{
	uint64_t *host = calloc(1, bytes + 8), i;

	if (!host)
		exit(1);
	k_get(host, p, bytes);
	for (i = 0; i < (bytes + 7) / 8; i++)
		h = (h ^ host[i]) * 0x9e3779b97f4a7c15ull, h ^= h >> 29;
	free(host);
	return h;
}

static uint64_t digest_all(void)
{
	uint64_t h = digest(digest(1, parameters, opt.base - opt.checkpoint), flow, opt.checkpoint),
		 k;

	for (k = 0; k < (opt.shared ? 1 : opt.segments); k++)
		h = digest(h, segments[k].bank, opt.bank);
	return h;
}

/* --- main --------------------------------------------------------------------------------------- */

static int get_SIZE(uint64_t *v, const char *text)
{
	char *end;

	*v = text ? strtoull(text, &end, 0) : 0;
	if (!text || end == text)
		return -1;
	for (const char *unit = "KMG", *u = strchr(unit, *end); *end && u && u >= unit; u--)
		*v <<= 10;
	return *end && (!strchr("KMG", *end) || end[1]) ? -1 : 0;
}

static int get_REAL(double *v, const char *text)
{
	char *end = "x";

	*v = text ? strtod(text, &end) : 0;
	return *end || *v < 0 ? -1 : 0;
}

static int get_TEXT(const char **v, const char *text)
{
	*v = text;
	return text ? 0 : -1;
}

static int get_FLAG(int *v, const char *text)
{
	*v = !text;
	return text ? -1 : 0;
}

static int set_option(const char *arg)
{
	const char *value = strchr(arg, '='), *at;
	size_t n = value ? (size_t)(value - arg) : strlen(arg), i;
	char name[32];

	if (strncmp(arg, "--", 2) || n - 2 >= sizeof(name))
		return -1;
	for (i = 0, at = arg + 2; i < n - 2; i++)
		name[i] = at[i] == '-' ? '_' : at[i];
	name[i] = 0;
#define X(option, type, preset, help)                                                              \
	if (!strcmp(name, #option))                                                                \
		return get_##type(&opt.option, value ? value + 1 : NULL);
	OPTIONS(X)
#undef X
	return -1;
}

static void usage(const char *bad)
{
	fprintf(stderr, "sparse: what is %s?\n", bad);
#define X(option, type, preset, help) fprintf(stderr, "  --%-14s %s\n", #option, help);
	OPTIONS(X)
#undef X
	exit(2);
}

/* Sizes that follow from others, and what does not go together. */
static const char *work_out(void)
{
	uint64_t rows = opt.row ? opt.bank / opt.row : 0;

	if (!opt.segments || opt.segments > MAX_SEGMENTS || !opt.steps || opt.steps > MAX_STEPS ||
	    opt.warmup >= opt.steps)
		return "at most 64 segments, 1000 steps, more steps than warm-up";
	if (opt.row % 4 || opt.bank % 8 || opt.checkpoint % 4 || opt.scratch % 4 || !rows ||
	    !opt.clusters || opt.clusters > rows || opt.density > 1)
		return "sizes are of words, at least a row a cluster, a density of at most 1";
	if (opt.clean > opt.segments)
		return "at most all segments are clean";
	if (strcmp(opt.writes, "copy") && strcmp(opt.writes, "kernel"))
		return "--writes=copy or kernel";
	cluster_rows = (uint64_t)((double)rows * opt.density / (double)opt.clusters + 0.5);
	cluster_rows += !cluster_rows;
	if (cluster_rows > rows / opt.clusters)
		cluster_rows = rows / opt.clusters;
	written = cluster_rows * opt.clusters * opt.row;
	worked = in_words(LOWER(LOWER(opt.checkpoint, opt.scratch), 256 << 10));
	activation_bytes = opt.activation - opt.checkpoint;
	seen_bytes = opt.shared ? LOWER(activation_bytes / 8 * 4, opt.bank) : opt.bank;
	fresh_bytes = opt.shared ? activation_bytes - seen_bytes : written;
	if (opt.activation <= opt.checkpoint || activation_bytes % 4 || !seen_bytes ||
	    activation_bytes < seen_bytes + fresh_bytes)
		return "the activation must hold a checkpoint, the bank and its new rows";
	if (opt.checkpoint * (opt.segments + 1) > opt.base)
		return "the base must hold a checkpoint's size for each segment, and one";
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void report(double *ns, int retained, double host_s)
{
	uint64_t n = opt.steps - opt.warmup, i;

	look_at_peak();
	printf("{\"digest\": \"%016" PRIx64 "\", \"steps_ns\": [", digest_all());
	for (i = 0; i < opt.steps; i++)
		printf("%s%.0f", i ? ", " : "", ns[i]);
	qsort(ns + opt.warmup, n, sizeof(*ns), by_value);
	printf("], \"step_ns\": %.0f, \"retained\": %d, \"host_s\": %.2f",
	       (ns[opt.warmup + n / 2] + ns[opt.warmup + (n - 1) / 2]) / 2, retained, host_s);
	if (device_peak)
		printf(", \"peak\": %" PRIu64 ", \"activation\": %" PRIu64 ", \"program\": %" PRIu64
		       ", \"other\": %" PRId64,
		       peak, at_peak[ACTIVATION], at_peak[PROGRAM],
		       (int64_t)(peak - at_peak[ACTIVATION] - at_peak[PROGRAM]));
	printf(", \"written\": %" PRIu64 "}\n", written);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	static double ns[MAX_STEPS];
	CUevent from, to;
	const char *bad, *text;
	int retained = 0;
	double began;
	uint64_t i;

#define X(option, type, preset, help)                                                              \
	text = preset;                                                                             \
	if (text)                                                                                  \
		get_##type(&opt.option, text);
	OPTIONS(X)
#undef X
	for (int k = 1; k < argc; k++)
		if (set_option(argv[k]))
			usage(argv[k]);
	bad = work_out();
	if (bad) {
		fprintf(stderr, "sparse: %s\n", bad);
		return 2;
	}
	k_begin(0, NULL);
	k_load("sparse");
	*(void **)&device_peak = dlsym(RTLD_DEFAULT, "simcuda_peak_bytes");
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cuEventCreate(&from, CU_EVENT_DEFAULT));
	MUST(cuEventCreate(&to, CU_EVENT_DEFAULT));
	set_up();
	began = now_s();
	for (i = 0; i < opt.steps; i++)
		ns[i] = timed_step(i, from, to, &retained);
	report(ns, retained, now_s() - began);
	return 0;
}
