/* SPDX-License-Identifier: MIT */
/*
 * A small network trained by reverse mode, in double precision: embedding (its gradient updates the rows it met at
 * once, within the backward), 3 x 3 convolution, batch norm with running statistics, dropout whose Philox counter
 * is in device memory, linear, attention over a cache that it appends to, and a contrastive loss against a queue that
 * it enqueues into. Each layer's forward is a segment; the embedding has two invocations. Driver API only; of
 * replayshim it knows the marker header.
 *
 *	derivatives keep|replay [--only=SEGMENT] [--streams | --mapped] [--steps=N] [--seeds=N]
 *
 * keep: backward uses what forward kept. replay: of each segment only the inputs are kept; what it kept inside is
 * overwritten by NaN after forward, and backward runs the segment again before its gradient. --only: just segments
 * of that name. --streams: replays, the queue's enqueue and a reader of the table run on streams of their own, ordered
 * by events, and by no more of them than the program itself needs. --seeds: the whole training N times, each under a
 * schedule of its own of the simulated device. --mapped: each tensor of state, and the table, is a mapping of its own, and each
 * window begins with a copy of each as a whole, so that a replay can be shown it by remapping.
 *
 * Prints, for every step, "SEED STEP WHEN NAME TYPE HEX": WHEN is before or after (parameters, inputs and state),
 * grad or loss; TYPE is d, i or Q as in Python's struct; HEX are the bytes, host order. What they must be is in
 * tests/t/derivatives.t, which has the same network as formulas. One thread; kernels in tests/kernels/train.cu.
 */
#include "tests/clients/kernels.h"

#include <dlfcn.h>

#include "shim/include/replayshim.h"

enum {
	BATCH = 2,
	SIDE = 3,
	PIXELS = SIDE * SIDE,
	VOCABULARY = 6,
	WIDTH = 2, /* of an embedding; channels of the image */
	OUT = 3,   /* channels that the convolution makes */
	FEATURES = 4,
	KEY_TOKENS = FEATURES / WIDTH,
	CACHE = 16,
	QUEUE = 5,
	IMAGE = BATCH * WIDTH * PIXELS,
	MAPS = BATCH * OUT * PIXELS,
	ROWS = BATCH * FEATURES,
};

static const double rate = 0.05, decay = 0.1, keep = 0.7, eps = 1e-3, momentum = 0.1,
		    temperature = 0.5;

/* --- tensors -------------------------------------------------------------------------------- */

/* PARAM: updated at the end of a step. ROWWISE: within backward. INPUT: new values for each step. */
enum kind { PARAM, ROWWISE, INPUT, STATE };

/* X(name, type, count, kind, centre, spread) */
/* clang-format off */
#define TENSORS(X) \
	X(table,	d, VOCABULARY * WIDTH,		ROWWISE,	0,	0.8) \
	X(conv_w,	d, OUT * WIDTH * 9,		PARAM,		0,	0.5) \
	X(conv_b,	d, OUT,				PARAM,		0,	0.2) \
	X(bn_gain,	d, OUT,				PARAM,		1,	0.3) \
	X(bn_shift,	d, OUT,				PARAM,		0,	0.3) \
	X(linear_w,	d, OUT * PIXELS * FEATURES,	PARAM,		0,	0.4) \
	X(linear_b,	d, FEATURES,			PARAM,		0,	0.2) \
	X(wq,		d, FEATURES * FEATURES,		PARAM,		0,	0.8) \
	X(wk,		d, FEATURES * FEATURES,		PARAM,		0,	0.8) \
	X(wv,		d, FEATURES * FEATURES,		PARAM,		0,	0.8) \
	X(image,	d, IMAGE,			INPUT,		0,	0.5) \
	X(key_image,	d, BATCH * FEATURES,		INPUT,		0,	0.5) \
	X(token,	i, BATCH * PIXELS,		INPUT,		0,	0) \
	X(key_token,	i, BATCH * KEY_TOKENS,		INPUT,		0,	0) \
	X(running_mean,	d, OUT,				STATE,		0,	0.1) \
	X(running_var,	d, OUT,				STATE,		1,	0.1) \
	X(counter,	Q, 2,				STATE,		0,	0) \
	X(keys,		d, CACHE * FEATURES,		STATE,		0,	0) \
	X(values,	d, CACHE * FEATURES,		STATE,		0,	0) \
	X(cursor,	i, 1,				STATE,		0,	0) \
	X(queue,	d, QUEUE * FEATURES,		STATE,		0,	0.7) \
	X(head,		i, 1,				STATE,		0,	0) \
	X(watched,	d, 2 * VOCABULARY * WIDTH,	STATE,		0,	0)
/* clang-format on */

enum {
#define X(name, ...) T_##name,
	TENSORS(X)
#undef X
		NTENSORS
};

static const struct tensor {
	const char *name;
	char type;
	int count;
	enum kind kind;
	float centre, spread;
} tensors[NTENSORS] = {
#define X(name, type, count, kind, centre, spread) {#name, #type[0], count, kind, centre, spread},
	TENSORS(X)
#undef X
};

static CUdeviceptr data[NTENSORS], grad[NTENSORS];
#define T(name) (&data[T_##name])
#define G(name) (&grad[T_##name])

static size_t tensor_bytes(const struct tensor *t)
{
	return (size_t)t->count * (t->type == 'i' ? 4 : 8);
}

/* The embedding has a gradient for each of its invocations. */
static size_t grad_bytes(const struct tensor *t)
{
	return t->kind == STATE || t->type != 'd' ? 0
						  : tensor_bytes(t) * (t->kind == ROWWISE ? 2 : 1);
}

static void set_tensor(int k)
{
	const struct tensor *t = &tensors[k];
	union {
		double d[256];
		int i[256];
		uint64_t q[256];
	} v = {{0}};
	int i;

	for (i = 0; i < t->count; i++)
		if (t->type == 'd')
			v.d[i] = t->centre + (t->spread > 0 ? k_float(t->spread) : 0);
		else if (t->type == 'i')
			v.i[i] = t->kind == INPUT ? (int)(k_random() % VOCABULARY) : 0;
		else
			v.q[i] = i ? 0 : 0x123456789abcdefull; /* key, offset */
	if (data[k])
		MUST(cuMemcpyHtoD(data[k], &v, tensor_bytes(t)));
	else
		data[k] = k_in(&v, tensor_bytes(t));
}

static void print_bytes(CUdeviceptr p, size_t bytes)
{
	static unsigned char host[4096];
	size_t i;

	k_get(host, p, bytes);
	for (i = 0; i < bytes; i++)
		printf("%02x", host[i]);
	putchar('\n');
}

static void print_tensors(int seed, int step, const char *when)
{
	int k, grads = !strcmp(when, "grad");

	for (k = 0; k < NTENSORS; k++) {
		if (grads && !grad[k])
			continue;
		printf("%d %d %s %s %c ", seed, step, when, tensors[k].name, tensors[k].type);
		print_bytes(grads ? grad[k] : data[k],
			    grads ? grad_bytes(&tensors[k]) : tensor_bytes(&tensors[k]));
	}
}

/* --- work ----------------------------------------------------------------------------------- */

static CUstream outside, replays, side, reader, on; /* `on`: where work goes now */
static CUevent handover;
static int replaying;	 /* the mode */
static const char *only; /* the name of the segments that are replayed; NULL: all */

static CUdeviceptr owned[256], inner[16];
static int nowned, ninner;
static size_t inner_bytes[16];

/* --- state that is mapped ------------------------------------------------------------------- */

#define MAPPING ((size_t)2 << 20)
static int mapped;
static CUdeviceptr landing;

static int is_mapped(int k)
{
	return mapped && (tensors[k].kind == STATE || tensors[k].kind == ROWWISE);
}

/* The tensor moves to a mapping of its own. */
static void map_tensor(int k)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
	};
	const CUmemAccessDesc rw = {.location = prop.location,
				    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle h;
	CUdeviceptr p;

	MUST(cuMemCreate(&h, MAPPING, &prop, 0));
	MUST(cuMemAddressReserve(&p, MAPPING, 0, 0, 0));
	MUST(cuMemMap(p, MAPPING, 0, h, 0));
	MUST(cuMemSetAccess(p, MAPPING, &rw, 1));
	MUST(cuMemRelease(h));
	MUST(cuMemsetD8(p, 0, MAPPING));
	MUST(cuMemcpyDtoD(p, data[k], tensor_bytes(&tensors[k])));
	MUST(cuMemFree(data[k]));
	data[k] = p;
}

static void free_tensor(int k)
{
	if (is_mapped(k)) {
		MUST(cuMemUnmap(data[k], MAPPING));
		MUST(cuMemAddressFree(data[k], MAPPING));
	} else {
		MUST(cuMemFree(data[k]));
	}
	data[k] = 0;
}

static void read_mapped(void)
{
	for (int k = 0; k < NTENSORS; k++)
		if (is_mapped(k))
			MUST(cuMemcpyDtoDAsync(landing, data[k], MAPPING, on));
}

static CUdeviceptr alloc(int doubles)
{
	CUdeviceptr p;

	MUST(cuMemAlloc(&p, (size_t)doubles * 8));
	owned[nowned++] = p;
	return p;
}

/* What a segment makes for its own backward only: without activations kept, it is gone after forward. */
static CUdeviceptr alloc_inner(int doubles)
{
	CUdeviceptr p = alloc(doubles);

	inner[ninner] = p;
	inner_bytes[ninner++] = (size_t)doubles * 8;
	return p;
}

static int is_replayed(const char *segment)
{
	return replaying && (!only || !strcmp(only, segment));
}

static void lose_inner(const char *segment)
{
	while (ninner) {
		ninner--;
		if (is_replayed(segment))
			MUST(cuMemsetD8Async(inner[ninner], 0xff, inner_bytes[ninner], on));
	}
}

#define I(value)       (&(int){value})
#define D(value)       (&(double){value})
#define RUN(name, ...) run(name, (void *[]){__VA_ARGS__}, 1)
/* With the count of threads as the first argument. */
#define EACH(name, n, ...)    run(name, (void *[]){I(n), __VA_ARGS__}, n)
#define ROWS_OF(name, n, ...) run(name, (void *[]){__VA_ARGS__}, n)

static void run(const char *name, void **params, int threads)
{
	CUfunction f;

	MUST(cuModuleGetFunction(&f, k_module, name));
	MUST(cuLaunchKernel(f, (threads + 31) / 32, 1, 1, 32, 1, 1, 0, on, params, NULL));
}

static void hand_over(CUstream from, CUstream to)
{
	on = to;
	if (from == to)
		return;
	MUST(cuEventRecord(handover, from));
	MUST(cuStreamWaitEvent(to, handover, 0));
}

/* --- layers --------------------------------------------------------------------------------- */

/* Outputs, and what lies between: written by forward, and anew by replays. */
static CUdeviceptr embedded, key, maps, stat, xhat, normed, mask, dropped, hidden, q, p, used,
	attended, negative, chance, loss;

/*
 * The inputs of each segment, as a checkpoint keeps them: outputs of others at the time of forward. A replay reads
 * these and makes new outputs.
 */
static CUdeviceptr in_bn, in_conv, in_dropout, in_linear, in_kv, in_z, in_key;

static CUdeviceptr flow, key_flow; /* the loss's derivative by what is handed on */

static void embed_forward(CUdeviceptr *token, CUdeviceptr *image, int pixels, CUdeviceptr *h)
{
	int n = BATCH * WIDTH * pixels;

	*h = alloc(n);
	EACH("embed", n, I(WIDTH), I(pixels), token, T(table), image, h);
}

static void embed_backward(CUdeviceptr *token, CUdeviceptr *dimage, int pixels, CUdeviceptr *h,
			   CUdeviceptr *dh, int invocation)
{
	int n = BATCH * WIDTH * pixels;
	CUdeviceptr g = *G(table) + invocation * tensor_bytes(&tensors[T_table]);

	EACH("tanh_back", n, h, dh, dimage);
	ROWS_OF("embed_back", VOCABULARY * WIDTH, I(VOCABULARY), I(WIDTH), I(BATCH), I(pixels),
		token, dimage, &g);
	ROWS_OF("sparse_update", VOCABULARY, I(BATCH * pixels), I(VOCABULARY), I(WIDTH), D(rate),
		D(decay), token, &g, T(table));
}

static void image_forward(void)
{
	embed_forward(T(token), T(image), PIXELS, &embedded);
}

static void image_backward(void)
{
	embed_backward(T(token), G(image), PIXELS, &embedded, &flow, 0);
}

static void key_forward(void)
{
	embed_forward(T(key_token), T(key_image), KEY_TOKENS, &key);
}

static void key_backward(void)
{
	embed_backward(T(key_token), G(key_image), KEY_TOKENS, &key, &key_flow, 1);
}

static void conv_forward(void)
{
	maps = alloc(MAPS);
	EACH("conv", MAPS, I(WIDTH), I(OUT), I(SIDE), I(SIDE), &in_conv, T(conv_w), T(conv_b),
	     &maps);
}

static void conv_backward(void)
{
	CUdeviceptr d = alloc(MAPS), dx = alloc(IMAGE);

	EACH("tanh_back", MAPS, &maps, &flow, &d);
	ROWS_OF("conv_back_weight", OUT * WIDTH * 9, I(BATCH), I(WIDTH), I(OUT), I(SIDE), I(SIDE),
		&in_conv, &d, G(conv_w));
	ROWS_OF("conv_back_bias", OUT, I(BATCH), I(OUT), I(PIXELS), &d, G(conv_b));
	EACH("conv_back_input", IMAGE, I(WIDTH), I(OUT), I(SIDE), I(SIDE), T(conv_w), &d, &dx);
	flow = dx;
}

static void bn_forward(void)
{
	stat = alloc_inner(2 * OUT);
	xhat = alloc_inner(MAPS);
	normed = alloc(MAPS);
	ROWS_OF("bn_stats", OUT, I(BATCH), I(OUT), I(PIXELS), D(momentum), &in_bn, &stat,
		T(running_mean), T(running_var));
	EACH("bn_apply", MAPS, I(OUT), I(PIXELS), D(eps), &in_bn, &stat, T(bn_gain), T(bn_shift),
	     &xhat, &normed);
}

static void bn_backward(void)
{
	CUdeviceptr dx = alloc(MAPS);

	ROWS_OF("bn_back_sums", OUT, I(BATCH), I(OUT), I(PIXELS), &xhat, &flow, G(bn_gain),
		G(bn_shift));
	EACH("bn_back_input", MAPS, I(OUT), I(PIXELS), I(BATCH * PIXELS), D(eps), &stat, T(bn_gain),
	     &xhat, &flow, G(bn_gain), G(bn_shift), &dx);
	flow = dx;
}

static void dropout_forward(void)
{
	mask = alloc_inner(MAPS);
	dropped = alloc(MAPS);
	EACH("dropout", MAPS, D(keep), T(counter), &in_dropout, &mask, &dropped);
	RUN("dropout_advance", T(counter));
}

static void dropout_backward(void)
{
	CUdeviceptr dx = alloc(MAPS);

	EACH("multiply", MAPS, &flow, &mask, &dx);
	flow = dx;
}

static void linear_forward(void)
{
	hidden = alloc(ROWS);
	EACH("linear", ROWS, I(OUT * PIXELS), I(FEATURES), &in_linear, T(linear_w), T(linear_b),
	     &hidden);
}

static void linear_backward(void)
{
	CUdeviceptr d = alloc(ROWS), dx = alloc(MAPS);

	EACH("tanh_back", ROWS, &hidden, &flow, &d);
	ROWS_OF("linear_back_weight", OUT * PIXELS * FEATURES, I(BATCH), I(OUT * PIXELS),
		I(FEATURES), &in_linear, &d, G(linear_w));
	ROWS_OF("linear_back_bias", FEATURES, I(BATCH), I(FEATURES), &d, G(linear_b));
	EACH("linear_back_input", MAPS, I(OUT * PIXELS), I(FEATURES), I(0), T(linear_w), &d, &dx);
	flow = dx;
}

static void kv_forward(void)
{
	used = alloc_inner(1);
	q = alloc_inner(ROWS);
	p = alloc_inner(BATCH * CACHE);
	attended = alloc(ROWS);
	EACH("kv_append", ROWS, I(FEATURES), T(cursor), &in_kv, T(wk), T(wv), T(keys), T(values));
	RUN("kv_advance", I(BATCH), T(cursor), &used);
	ROWS_OF("kv_attend", BATCH, I(BATCH), I(FEATURES), I(CACHE), &used, &in_kv, T(wq), T(keys),
		T(values), &q, &p, &attended);
}

static void kv_backward(void)
{
	CUdeviceptr ds = alloc(BATCH * CACHE), dx = alloc(ROWS), d[3];
	CUdeviceptr *const w[] = {T(wq), T(wk), T(wv)}, *const g[] = {G(wq), G(wk), G(wv)};
	int k;

	for (k = 0; k < 3; k++)
		d[k] = alloc(ROWS);
	ROWS_OF("kv_back_scores", BATCH, I(BATCH), I(FEATURES), I(CACHE), &p, T(keys), T(values),
		&flow, &ds, &d[0]);
	EACH("kv_back_rows", ROWS, I(BATCH), I(FEATURES), I(CACHE), &used, &p, &q, &ds, &flow,
	     &d[1], &d[2]);
	for (k = 0; k < 3; k++) {
		ROWS_OF("linear_back_weight", FEATURES * FEATURES, I(BATCH), I(FEATURES),
			I(FEATURES), &in_kv, &d[k], g[k]);
		EACH("linear_back_input", ROWS, I(FEATURES), I(FEATURES), I(k > 0), w[k], &d[k],
		     &dx);
	}
	flow = dx;
}

/* Nothing in the segment waits for what is enqueued; the window ends on another stream than that. */
static void contrast_forward(void)
{
	CUstream here = on;

	negative = alloc_inner(QUEUE * FEATURES);
	chance = alloc_inner(BATCH * (1 + QUEUE));
	loss = alloc(BATCH);
	MUST(cuMemcpyDtoDAsync(negative, *T(queue), QUEUE * FEATURES * 8, on));
	hand_over(here, side);
	EACH("contrast_enqueue", ROWS, I(FEATURES), I(QUEUE), T(head), &in_key, T(queue));
	RUN("contrast_advance", I(BATCH), I(QUEUE), T(head));
	on = here;
	ROWS_OF("contrast", BATCH, I(BATCH), I(FEATURES), I(QUEUE), D(temperature), &in_z, &in_key,
		&negative, &chance, &loss);
}

static void contrast_backward(void)
{
	flow = alloc(ROWS);
	key_flow = alloc(ROWS);
	EACH("contrast_back", ROWS, I(BATCH), I(FEATURES), I(QUEUE), D(temperature), &in_z, &in_key,
	     &negative, &chance, &flow, &key_flow);
}

/* --- steps ---------------------------------------------------------------------------------- */

/* In the order of forward; `from` is whose output `to` keeps as this segment's input. */
static const struct segment {
	const char *name;
	int invocation;
	void (*forward)(void), (*backward)(void);
	CUdeviceptr *from, *to, *from2, *to2;
} segments[] = {
	{"embedding", 0, image_forward, image_backward, NULL, NULL, NULL, NULL},
	{"conv", 0, conv_forward, conv_backward, &embedded, &in_conv, NULL, NULL},
	{"batchnorm", 0, bn_forward, bn_backward, &maps, &in_bn, NULL, NULL},
	{"dropout", 0, dropout_forward, dropout_backward, &normed, &in_dropout, NULL, NULL},
	{"linear", 0, linear_forward, linear_backward, &dropped, &in_linear, NULL, NULL},
	{"attention", 0, kv_forward, kv_backward, &hidden, &in_kv, NULL, NULL},
	{"embedding", 1, key_forward, key_backward, NULL, NULL, NULL, NULL},
	{"contrast", 0, contrast_forward, contrast_backward, &attended, &in_z, &key, &in_key},
};

#define NSEGMENTS ((int)(sizeof(segments) / sizeof(segments[0])))

static void run_forward(void)
{
	int k;

	for (k = 0; k < NSEGMENTS; k++) {
		const struct segment *s = &segments[k];

		if (s->to)
			*s->to = *s->from;
		if (s->to2)
			*s->to2 = *s->from2;
		replayshim_forward_begin(s->name, s->invocation);
		read_mapped();
		s->forward();
		replayshim_forward_end();
		lose_inner(s->name);
	}
}

/* Who waits for the replay's work need not wait for what comes with the end of its window. */
static void run_replay(const struct segment *s)
{
	hand_over(outside, replays);
	replayshim_replay_begin(s->name, s->invocation);
	read_mapped();
	s->forward();
	hand_over(replays, outside);
	replayshim_replay_end();
	ninner = 0;
}

/* The n-th copy of the table as it is now, which is not that of the forward: a reader beside the replay's. */
static void watch(int n)
{
	size_t bytes = tensor_bytes(&tensors[T_table]);

	MUST(cuMemcpyDtoDAsync(*T(watched) + n * bytes, *T(table), bytes, reader));
}

static void run_backward(void)
{
	int k;

	hand_over(side, outside);
	for (k = NSEGMENTS - 1; k >= 0; k--) {
		const struct segment *s = &segments[k];

		if (!k) {
			hand_over(outside, reader);
			on = outside;
			watch(0);
		}
		if (is_replayed(s->name))
			run_replay(s);
		if (!k) {
			watch(1);
			hand_over(reader, outside);
		}
		s->backward();
	}
	for (k = 0; k < NTENSORS; k++)
		if (tensors[k].kind == PARAM)
			EACH("sgd_step", tensors[k].count, D(rate), &grad[k], &data[k]);
}

static void train_step(int seed, int step)
{
	static int serial; /* steps are numbered through all trainings */
	CUdeviceptr first_loss;
	int k;

	for (k = 0; k < NTENSORS; k++)
		if (tensors[k].kind == INPUT)
			set_tensor(k);
	MUST(cuCtxSynchronize());
	print_tensors(seed, step, "before");
	replayshim_step(++serial);
	run_forward();
	first_loss = loss;
	run_backward();
	MUST(cuCtxSynchronize());
	printf("%d %d loss loss d ", seed, step);
	print_bytes(first_loss, BATCH * 8);
	print_tensors(seed, step, "grad");
	print_tensors(seed, step, "after");
	while (nowned)
		MUST(cuMemFree(owned[--nowned]));
}

static void train(int seed, int steps)
{
	int k, n;
	char name[32];

	k_seed = 0x9e3779b97f4a7c15ull;
	for (k = 0; k < NTENSORS; k++) {
		size_t bytes = tensor_bytes(&tensors[k]);

		grad[k] = grad_bytes(&tensors[k]) ? k_out(grad_bytes(&tensors[k])) : 0;
		set_tensor(k);
		if (is_mapped(k)) {
			map_tensor(k);
			bytes = MAPPING;
		}
		snprintf(name, sizeof(name), "state:%s", tensors[k].name);
		if (tensors[k].kind == STATE || tensors[k].kind == ROWWISE)
			replayshim_region_name(data[k], bytes, name);
	}
	MUST(cuCtxSynchronize());
	for (n = 1; n <= steps; n++)
		train_step(seed, n);
	for (k = 0; k < NTENSORS; k++) {
		free_tensor(k);
		if (grad[k])
			MUST(cuMemFree(grad[k]));
	}
}

/* --- main ----------------------------------------------------------------------------------- */

/* The n-th schedule of the simulated device; the program is not linked to it by that name. */
static void reschedule(int n)
{
	int (*set)(const char *);
	char text[24];

	*(void **)&set = dlsym(RTLD_DEFAULT, "simcuda_set_schedule");
	snprintf(text, sizeof(text), "random:%d", n);
	if (!set || set(text)) {
		fprintf(stderr, "derivatives: --seeds needs the simulated device\n");
		exit(3);
	}
}

int main(int argc, char **argv)
{
	int i, steps = 3, seeds = 0, streams = 0;

	if (argc < 2 || (strcmp(argv[1], "keep") && strcmp(argv[1], "replay"))) {
		fprintf(stderr,
			"usage: %s keep|replay [--only=SEGMENT] [--streams | --mapped] [--steps=N] "
			"[--seeds=N]\n",
			argv[0]);
		return 2;
	}
	replaying = !strcmp(argv[1], "replay");
	for (i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "--streams"))
			streams = 1;
		if (!strcmp(argv[i], "--mapped"))
			mapped = 1;
		if (!strncmp(argv[i], "--only=", 7))
			only = argv[i] + 7;
		sscanf(argv[i], "--steps=%d", &steps);
		sscanf(argv[i], "--seeds=%d", &seeds);
	}
	k_begin(0, NULL);
	k_load("train");
	if (mapped)
		MUST(cuMemAlloc(&landing, MAPPING));
	MUST(cuStreamCreate(&outside, CU_STREAM_NON_BLOCKING));
	replays = side = reader = on = outside;
	if (streams) {
		MUST(cuStreamCreate(&replays, CU_STREAM_NON_BLOCKING));
		MUST(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
		MUST(cuStreamCreate(&reader, CU_STREAM_NON_BLOCKING));
	}
	MUST(cuEventCreate(&handover, CU_EVENT_DISABLE_TIMING));
	for (i = 1; i <= seeds; i++) {
		reschedule(i);
		train(i, steps);
	}
	if (!seeds)
		train(0, steps);
	return 0;
}
