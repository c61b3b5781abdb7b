/* SPDX-License-Identifier: MIT */
/*
 * Random training programs, each call on the device and on a plain sequential model. Driver API only; of replayshim it
 * knows the marker header.
 *
 *	client_random [--preserve] [--flat] [--seed=N] [--programs=N] [--drop=A,B...] [--list]
 *
 * A program has states of every kind of memory, segments that read, change and fill them and make products, and an order of forwards,
 * replays (none to three of each, in any order, nested in other windows, stopped early) and writers in between, on
 * streams of every kind. Without --preserve a replay sees and leaves what it finds, by the model as well. Prints
 *
 *	replay STEP SEGMENT INVOCATION NUMBER entry=E after=A product=P
 *
 * and `made STEP SEGMENT INVOCATION NUMBER same=S`, whether what a replay has made is what its forward made, whatever the model
 * says. In every fourth program kernels of which nobody knows how far they reach work within a pool, so that what is state cannot be told.
 * The first is printed for every replay: 1 where the state, by the model, is at its entry what the forward saw, after it what
 * it was before, and the product what the forward made; `bad STEP COUNT WHAT` for what differs from the model, and
 * `bytes DIGEST` of all that was looked at. Step numbers are 100 times the program's and the step's of three.
 * --flat: no replay within another window. --drop: without
 * these calls; --list tells all calls on stderr. tests/t/client_random.t judges.
 */
#include "tests/clients/client_random_calls.h"

#define NSEGMENT 5u
#define MAXOPS	 6u
#define NACTION	 24u
#define STEPS	 3u
#define NPENDING 256u

struct segment {
	struct op op[MAXOPS];
	unsigned n;
	int inner; /* a segment within it, after inner_at; or -1 */
	unsigned inner_at;
};

enum action_kind { A_FORWARD, A_REPLAY, A_WRITE, A_LOOK };

struct action {
	enum action_kind kind;
	unsigned step, segment, which; /* which: a replay's forward, as a number below 1000 */
	struct op op;
};

/* A forward of this step. */
struct pending {
	unsigned segment, invocation, replays;
	unsigned *p0[NSTATE], *made; /* bytes */
	const struct look *look;     /* at what it made, or NULL */
};

struct look;

static struct segment segments[NSEGMENT];
static struct action actions[STEPS * NACTION];
static unsigned nactions, step_number;
static struct pending pending[NPENDING];
static unsigned npending;
static int preserve, flat;
static unsigned char dropped[8192];
static uint64_t digest;

/* --- the program ---------------------------------------------------------------------------------- */

static struct shape random_shape(unsigned id, int rows)
{
	struct shape sh = {.cols = 1 + pick(id, 1, "shape", 10), .rows = 1, .layers = 1};

	if (rows && pick(id, 2, "shape", 2)) {
		sh.rows = 1 + pick(id, 3, "shape", 3);
		sh.layers = 1 + pick(id, 4, "shape", 2);
	} else {
		sh.cols = 1 + pick(id, 5, "shape", PRODUCT - 1);
	}
	sh.dpitch = sh.cols + pick(id, 6, "shape", 5);
	sh.spitch = sh.cols + pick(id, 7, "shape", 5);
	sh.dheight = sh.rows + pick(id, 8, "shape", 2);
	sh.sheight = sh.rows + pick(id, 9, "shape", 2);
	return sh;
}

/* Where n words can begin in a buffer. */
static unsigned random_offset(unsigned id, const char *what, unsigned buf, unsigned n)
{
	return pick(id, 0, what, state[buf].words - n + 1);
}

/* id: of the call in the program. in_segment: what is written first has to be state by its name. */
static struct op random_op(unsigned id, int in_segment)
{
	static const enum op_kind inside[] = {OP_FILL, OP_COPY, OP_UPLOAD, OP_STORE, OP_MIX, OP_MIX,
					      OP_RED,  OP_MAKE, OP_MAKE,   OP_CHAIN, OP_POKE};
	static const enum op_kind outside[] = {OP_FILL, OP_COPY, OP_UPLOAD,
					       OP_MIX,	OP_RED,	 OP_POKE};
	struct op o = {.id = id, .value = 1 + pick(id, 0, "value", 1000)};
	int kernel;

	o.kind = in_segment ? inside[pick(id, 0, "op", 11)] : outside[pick(id, 0, "op", 6)];
	o.d = pick(id, 1, "op", NSTATE);
	o.s = pick(id, 2, "op", NSTATE);
	o.t = pick(id, 3, "op", NSTATE);
	if (in_segment && o.kind <= OP_STORE && !state[o.d].declared)
		o.kind = OP_MIX;
	kernel = o.kind > OP_STORE;
	if (o.kind == OP_COPY && o.s == o.d)
		o.s = (o.s + 1) % NSTATE;
	o.shape = random_shape(id, !kernel);
	if (o.kind >= OP_MAKE)
		o.shape.cols = PRODUCT;
	o.doff = random_offset(id, "doff", o.d, span(&o.shape, o.shape.dpitch, o.shape.dheight));
	o.soff = random_offset(id, "soff", o.s, span(&o.shape, o.shape.spitch, o.shape.sheight));
	o.toff = random_offset(id, "toff", o.t, o.shape.cols);
	if (kernel && o.s == o.d) /* each thread has its own word */
		o.soff = o.doff;
	return o;
}

static void make_segments(void)
{
	for (unsigned i = 0; i < NSEGMENT; i++) {
		struct segment *s = &segments[i];

		s->n = 1 + pick(i, 0, "length", MAXOPS);
		for (unsigned j = 0; j < s->n; j++)
			s->op[j] = random_op(1000 + i * MAXOPS + j, 1);
		s->op[0].kind = OP_MAKE;
		s->op[0].shape.cols = PRODUCT;
		s->op[0].soff = pick(i, 1, "soff", state[s->op[0].s].words - PRODUCT + 1);
		s->op[0].toff = pick(i, 1, "toff", state[s->op[0].t].words - PRODUCT + 1);
		s->inner = i && !pick(i, 0, "inner", 3) ? (int)pick(i, 1, "inner", i) : -1;
		s->inner_at = pick(i, 2, "inner", s->n);
	}
}

static void make_actions(void)
{
	static const enum action_kind kinds[] = {A_FORWARD, A_WRITE, A_REPLAY, A_REPLAY, A_LOOK};
	unsigned first = pick(0, 0, "forwards", 4);

	nactions = STEPS * NACTION;
	for (unsigned i = 0; i < nactions; i++) {
		struct action *a = &actions[i];
		unsigned early = i % NACTION < NACTION / 3;

		a->step = i / NACTION;
		a->kind = kinds[early ? pick(i, 0, "action", 2)
				      : (first ? 1 : 0) + pick(i, 0, "action", first ? 4 : 5)];
		a->segment = pick(i, 1, "action", NSEGMENT);
		a->which = pick(i, 2, "action", 1000);
		a->op = random_op(2000 + i, 0);
	}
}

static int is_dropped(unsigned id)
{
	return id < sizeof(dropped) && dropped[id];
}

/* --- looking -------------------------------------------------------------------------------------- */

struct look {
	unsigned *got, *want, n;
	const char *what;
	unsigned number;
	const struct look *like; /* what the forward made, which this replay should make again */
	unsigned segment, replay;
};

static struct look looks[4096];
static unsigned nlooks;

/* The bytes of a buffer as they are at this point of the program; compared when the step is over. */
static struct look *look(struct buf *b, const char *what, unsigned number, unsigned at)
{
	const struct way w = way_of(at + 77, 8, 1);
	unsigned q = stream_for(at, &w);
	struct look *l = &looks[nlooks++];
	dev from = place(b, at, "look");

	if (nlooks == sizeof(looks) / sizeof(*looks))
		fail("looks", CUDA_ERROR_OUT_OF_MEMORY);
	*l = (struct look){.got = host_words(b->words),
			   .want = malloc(b->words * 4),
			   .n = b->words,
			   .what = what,
			   .number = number};
	memcpy(l->want, b->model, b->words * 4);
	order_read(q, b);
	if (w.now)
		MUST(w.own ? cuMemcpyDtoH_v2_ptds(l->got, from, b->words * 4)
			   : cuMemcpyDtoH(l->got, from, b->words * 4));
	else
		MUST(cuMemcpyDtoHAsync(l->got, from, b->words * 4, streams[q]));
	did_read(b, q, record(q));
	return l;
}

static void compare_looks(void)
{
	for (unsigned i = 0; i < nlooks; i++) {
		struct look *l = &looks[i];
		unsigned wrong = 0, first = 0;

		for (unsigned j = 0; j < l->n; j++) {
			if (l->got[j] != l->want[j] && !wrong++)
				first = j;
			digest = (digest ^ l->got[j]) * 0x100000001b3u;
		}
		if (wrong)
			printf("bad %u %u %s %u word %u of %u: %u not %u\n", step_number, wrong,
			       l->what, l->number, first, l->n, l->got[first], l->want[first]);
		if (l->like)
			printf("made %u p%u.seg%u %u %u same=%d\n", step_number, seed, l->segment,
			       l->number, l->replay, !memcmp(l->got, l->like->got, l->n * 4));
		free(l->want);
	}
	nlooks = 0;
}

/* --- windows -------------------------------------------------------------------------------------- */

static void save_states(unsigned **to)
{
	for (unsigned i = 0; i < NSTATE; i++) {
		to[i] = malloc(state[i].words * 4);
		memcpy(to[i], state[i].model, state[i].words * 4);
	}
}

static void load_states(unsigned *const *from)
{
	for (unsigned i = 0; i < NSTATE; i++)
		memcpy(state[i].model, from[i], state[i].words * 4);
}

static int same_states(unsigned *const *as)
{
	for (unsigned i = 0; i < NSTATE; i++)
		if (memcmp(state[i].model, as[i], state[i].words * 4))
			return 0;
	return 1;
}

static void drop_states(unsigned **s)
{
	for (unsigned i = 0; i < NSTATE; i++)
		free(s[i]);
}

static void segment_name(char name[24], unsigned segment)
{
	snprintf(name, 24, "p%u.seg%u", seed, segment);
}

static void forward(unsigned segment, unsigned id, unsigned depth);
static void replay(unsigned which, unsigned id, unsigned depth);

/* The calls of a window, the first n of them. Returns what they made last. */
static struct buf *window(const struct segment *s, unsigned n, unsigned id, unsigned depth,
			  int replays)
{
	struct buf *made = NULL, *before;

	for (unsigned i = 0; i < n; i++) {
		if (i && is_dropped(s->op[i].id))
			continue;
		before = made;
		do_op(&s->op[i], &made, id * 8 + i);
		if (before && before != made && pick(id, i, "release", 2))
			release_product(before, id * 8 + i);
		if (s->inner >= 0 && i == s->inner_at)
			forward((unsigned)s->inner, id * 8 + 6, depth + 1);
		if (replays && depth < 2 && !pick(id, i, "within", 8))
			replay(pick(id, i, "which", 1000), id * 8 + 7, depth + 1);
	}
	return made;
}

static struct look *after_window(struct buf *made, const char *what, unsigned number, unsigned id)
{
	struct look *l = NULL;

	if (pick(id, 0, "look after", 4))
		l = look(made, what, number, id);
	if (pick(id, 0, "release after", 2))
		release_product(made, id);
	return l;
}

static void forward(unsigned segment, unsigned id, unsigned depth)
{
	struct pending *p = &pending[npending];
	struct buf *made;
	char name[24];

	if (npending == NPENDING)
		return;
	npending++;
	*p = (struct pending){.segment = segment, .made = malloc(PRODUCT * 4)};
	for (struct pending *o = pending; o < p; o++)
		p->invocation += o->segment == segment;
	save_states(p->p0);
	segment_name(name, segment);
	replayshim_forward_begin(name, REPLAYSHIM_NEXT);
	TELL("forward %s#%u\n", name, p->invocation);
	depth_now++;
	made = window(&segments[segment], segments[segment].n, id, depth, 0);
	depth_now--;
	replayshim_forward_end();
	memcpy(p->made, made->model, PRODUCT * 4);
	if (!depth)
		p->look = after_window(made, "product of forward", p->invocation, id);
}

static void replay(unsigned which, unsigned id, unsigned depth)
{
	struct pending *p;
	const struct segment *s;
	unsigned *p2[NSTATE], n, number;
	struct look *l;
	struct buf *made;
	int entry, after, made_same;
	char name[24];

	if (!npending)
		return;
	p = &pending[which % npending];
	if (!p->made || p->replays == 3)
		return;
	s = &segments[p->segment];
	n = pick(id, 0, "early", 5) ? s->n : 1 + pick(id, 1, "early", s->n);
	number = ++p->replays;
	entry = same_states(p->p0);
	save_states(p2);
	if (preserve)
		load_states(p->p0);
	segment_name(name, p->segment);
	replayshim_replay_begin(name, p->invocation);
	TELL("replay %s#%u, %u of %u\n", name, p->invocation, n, s->n);
	depth_now++;
	made = window(s, n, id, depth, preserve && !flat);
	depth_now--;
	replayshim_replay_end();
	after = preserve || same_states(p2);
	made_same = !memcmp(made->model, p->made, PRODUCT * 4);
	printf("replay %u %s %u %u entry=%d after=%d product=%d whole=%d\n", step_number, name,
	       p->invocation, number, entry, after, made_same, n == s->n);
	if (preserve)
		load_states(p2);
	drop_states(p2);
	l = depth ? NULL : after_window(made, "product of replay", p->invocation, id);
	if (l && n == s->n) {
		l->like = p->look;
		l->segment = p->segment;
		l->replay = number;
	}
}

/* --- a step --------------------------------------------------------------------------------------- */

static void do_action(const struct action *a, unsigned id)
{
	struct buf *made = NULL;

	switch (a->kind) {
	case A_FORWARD:
		forward(a->segment, id, 0);
		break;
	case A_REPLAY:
		replay(a->which, id, 0);
		break;
	case A_WRITE:
		do_op(&a->op, &made, id * 8);
		break;
	case A_LOOK:
		TELL("look at s%u\n", a->op.d);
		look(&state[a->op.d], "state", a->op.d, id);
		break;
	}
}

/* A second thread, whose windows and own stream are others; only one of them goes on. */
static struct worker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	const struct action *action;
	unsigned id;
} worker = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *work(void *unused)
{
	(void)unused;
	other_thread = 1;
	MUST(cuCtxSetCurrent(context));
	pthread_mutex_lock(&worker.lock);
	for (;;) {
		while (!worker.action)
			pthread_cond_wait(&worker.changed, &worker.lock);
		do_action(worker.action, worker.id);
		worker.action = NULL;
		pthread_cond_broadcast(&worker.changed);
	}
	return NULL;
}

static void do_elsewhere(const struct action *a, unsigned id)
{
	pthread_mutex_lock(&worker.lock);
	if (!worker.thread && pthread_create(&worker.thread, NULL, work, NULL))
		fail("thread", CUDA_ERROR_OUT_OF_MEMORY);
	worker.action = a;
	worker.id = id;
	pthread_cond_broadcast(&worker.changed);
	while (worker.action)
		pthread_cond_wait(&worker.changed, &worker.lock);
	pthread_mutex_unlock(&worker.lock);
}

static void end_step(void)
{
	for (unsigned i = 0; i < nproduct; i++)
		if (product[i].in_use && pick(i, step_number, "late look", 2))
			look(&product[i], "product at the end", i, i);
	for (unsigned i = 0; i < NSTATE; i++)
		look(&state[i], "state at the end", i, i + 5000);
	MUST(cuCtxSynchronize());
	compare_looks();
	for (unsigned i = 0; i < nproduct; i++) {
		release_product(&product[i], i);
		free(product[i].model);
	}
	for (unsigned i = 0; i < npending; i++) {
		drop_states(pending[i].p0);
		free(pending[i].made);
	}
	MUST(cuCtxSynchronize());
	nproduct = npending = events_used = 0;
	host_used = 0;
	memset(source, 0, sizeof(source));
	memset(slot_order, 0, sizeof(slot_order));
	for (unsigned i = 0; i < NSTATE; i++)
		did_write(&state[i], NULL);
}

static void run_program(void)
{
	for (unsigned i = 0; i < NSTATE; i++)
		make_state(i);
	make_segments();
	make_actions();
	for (unsigned i = 0, step = STEPS; i < nactions; i++) {
		if (actions[i].step != step) {
			if (step < STEPS)
				end_step();
			step = actions[i].step;
			step_number = seed * 100 + step;
			replayshim_step(step_number);
		}
		if (is_dropped(2000 + i))
			continue;
		TELL("%u:\n", 2000 + i);
		if (pick(i, 0, "thread", 4))
			do_action(&actions[i], 10 + i);
		else
			do_elsewhere(&actions[i], 10 + i);
	}
	end_step();
	drop_graphs();
	for (unsigned i = 0; i < NSTATE; i++)
		drop_state(&state[i]);
}

/* --- main ----------------------------------------------------------------------------------------- */

static void prepare(void)
{
	static const unsigned flags[NSTREAM] = {CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING,
						CU_STREAM_DEFAULT};
	CUdevice device;

	MUST(cuInit(0));
	MUST(cuDeviceGet(&device, 0));
	MUST(cuDevicePrimaryCtxRetain(&context, device));
	MUST(cuCtxSetCurrent(context));
	MUST(cuModuleLoadData(&module, random_ptx));
	for (unsigned i = 0; i < 3; i++)
		MUST(cuStreamCreate(&streams[i], flags[i]));
	streams[Q_LEGACY] = NULL;
	streams[4] = CU_STREAM_LEGACY;
	streams[Q_OWN] = streams[Q_OTHER] = CU_STREAM_PER_THREAD;
	MUST(cuStreamCreateWithPriority(&streams[6], CU_STREAM_NON_BLOCKING, -1));
	MUST(cuMemAlloc(&zero, 4));
	MUST(cuMemsetD32(zero, 0, 1));
	MUST(cuMemAlloc(&slab, (NSLOT * PRODUCT + NSTATE * WORDS) * 4));
	MUST(cuMemsetD32(slab, 0x5eedu, NSLOT * PRODUCT + NSTATE * WORDS));
	MUST(cuMemAllocHost((void **)&host_area, HOST_WORDS * 4));
	MUST(cuCtxSynchronize());
}

static void parse_drop(const char *text)
{
	char *end;

	for (; *text; text = *end ? end + 1 : end) {
		unsigned long id = strtoul(text, &end, 10);

		if (end == text)
			break;
		if (id < sizeof(dropped))
			dropped[id] = 1;
	}
}

int main(int argc, char **argv)
{
	unsigned first = 1, programs = 1, i;

	for (i = 1; i < (unsigned)argc; i++) {
		const char *a = argv[i];

		if (!strcmp(a, "--preserve"))
			preserve = 1;
		else if (!strcmp(a, "--flat"))
			flat = 1;
		else if (!strcmp(a, "--list"))
			list = 1;
		else if (!strncmp(a, "--drop=", 7))
			parse_drop(a + 7);
		else if (sscanf(a, "--seed=%u", &first) != 1 &&
			 sscanf(a, "--programs=%u", &programs) != 1)
			return 2;
	}
	prepare();
	for (seed = first; seed < first + programs; seed++)
		run_program();
	printf("bytes %016llx\n", (unsigned long long)digest);
	return 0;
}
