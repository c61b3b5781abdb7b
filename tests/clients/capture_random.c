/* SPDX-License-Identifier: MIT */
/*
 * Random training steps, captured as a whole and launched three times, next to a plain model of guarantees 1 to 3: every
 * replay makes what its forward made in the same launch, and of what replays do to state nothing is left.
 *
 *	capture_random random [running] [--steps=N | --seeds=N]	see hazards_rig.h
 *
 * A step has segments that read, add to and fill states, in forwards and replays (none to three of each, in any
 * order behind the forward), and writers in between; each on one of three streams, ordered by events and by
 * nothing else; `running`: not captured, but run three times. The n-th step is the n-th program. Prints how many words are wrong (bad) and how many were compared.
 *
 * Some states are memory that the step allocates and frees itself (a node, where it is captured), filled from a word of its
 * own first and copied away last. Some of what a segment reads it reads by way of such memory, which it frees at once, or
 * which is freed later on another stream.
 */
#include "tests/clients/hazards_ptx.h"

#define HAZARD_MODULES hazards_ptx
#include "tests/clients/hazards_rig.h"

#define STATES	 5u
#define WORDS	 4u
#define SEGMENTS 4u
#define OPS	 4u
#define AGAIN	 3u
#define EVENTS	 48u
#define STREAMS	 3u
#define LAUNCHES 3u

/* VIA: a READ by way of memory that the window allocates. */
enum kind { READ, VIA, ADD, FILL };

struct op {
	enum kind kind;
	unsigned state, value;
};

struct segment {
	struct op op[OPS];
	unsigned n, replays;
	dev made, again[AGAIN]; /* WORDS for each op, of which a READ fills its own */
	unsigned want[OPS * WORDS];
};

enum what { FORWARD, REPLAY, WRITE };

struct event {
	enum what what;
	unsigned segment, k, stream;
	struct op op; /* WRITE */
};

static struct segment segments[SEGMENTS];
static struct event events[EVENTS];
static unsigned nevents, seed;
static dev states[STATES];
static dev homes
	[STATES]; /* of a state that the step allocates: where it comes from and goes to; else 0 */
static dev late[EVENTS]; /* to be freed */
static unsigned nlate;
static unsigned model[STATES][WORDS];
static CUstream streams[STREAMS];

static unsigned draw(unsigned below)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % below;
}

static struct op random_op(int may_read)
{
	unsigned kind = draw(may_read ? 5 : 2);

	return (struct op){kind > 3   ? VIA
			   : kind > 1 ? READ
			   : kind     ? ADD
				      : FILL,
			   draw(STATES), 1 + draw(9)};
}

/* --- the program ---------------------------------------------------------------------------------- */

static void add_event(struct event e)
{
	e.stream = draw(STREAMS);
	if (nevents < EVENTS)
		events[nevents++] = e;
}

static void make_program(void)
{
	unsigned forwards = 0, i, j;

	nevents = 0;
	for (i = 0; i < SEGMENTS; i++) {
		segments[i].n = 1 + draw(OPS);
		segments[i].replays = 0;
		for (j = 0; j < segments[i].n; j++)
			segments[i].op[j] = random_op(1);
	}
	while (nevents < EVENTS - 1) {
		unsigned which = draw(4);

		i = draw(SEGMENTS);
		if (which == 0 && forwards < SEGMENTS)
			add_event((struct event){.what = FORWARD, .segment = forwards++});
		else if (which == 1)
			add_event((struct event){.what = WRITE, .op = random_op(0)});
		else if (which == 2 && i < forwards && segments[i].replays < AGAIN)
			add_event((struct event){
				.what = REPLAY, .segment = i, .k = segments[i].replays++});
		else if (forwards == SEGMENTS && !draw(4))
			break;
	}
}

/* Its bytes are its own from here on, to where it is freed. */
static dev node_alloc(void)
{
	dev p;

	MUST(cuMemAllocAsync(&p, WORDS * 4, on));
	return p;
}

/* The value decides when what is allocated is freed. */
static void do_via(dev made, dev state, unsigned value)
{
	unsigned one = 1;
	dev t = node_alloc();

	LAUNCH("scale", WORDS, &t, &state, &value);
	LAUNCH("scale", WORDS, &made, &t, &one);
	if (value % 2 && nlate < EVENTS)
		late[nlate++] = t;
	else
		MUST(cuMemFreeAsync(t, on));
}

static void free_late(void)
{
	while (nlate)
		MUST(cuMemFreeAsync(late[--nlate], on));
}

static void do_op(const struct op *o, dev made)
{
	unsigned value = o->value;
	dev state = states[o->state];

	switch (o->kind) {
	case READ:
		LAUNCH("scale", WORDS, &made, &state, &value);
		break;
	case VIA:
		do_via(made, state, value);
		break;
	case ADD:
		LAUNCH("add", WORDS, &state, &value);
		break;
	case FILL:
		fill(state, value, WORDS);
		break;
	}
}

static void do_segment(const struct segment *s, dev made)
{
	unsigned i;

	for (i = 0; i < s->n; i++)
		do_op(&s->op[i], made + i * WORDS * 4);
}

static void do_event(const struct event *e)
{
	const struct segment *s = &segments[e->segment];

	switch (e->what) {
	case FORWARD:
		replayshim_forward_begin("random", e->segment);
		do_segment(s, s->made);
		replayshim_forward_end();
		break;
	case REPLAY:
		replayshim_replay_begin("random", e->segment);
		do_segment(s, s->again[e->k]);
		replayshim_replay_end();
		break;
	case WRITE:
		do_op(&e->op, 0);
		break;
	}
}

/* Else what a segment fills first would be a product of it. */
static void name_state(unsigned i)
{
	char name[16];

	snprintf(name, sizeof(name), "state:s%u", i);
	replayshim_region_name(states[i], WORDS * 4, name);
}

static void states_come(void)
{
	unsigned i;

	for (i = 0; i < STATES; i++)
		if (homes[i]) {
			states[i] = node_alloc();
			name_state(i);
			copy(states[i], homes[i], WORDS);
		}
}

static void states_go(void)
{
	unsigned i;

	for (i = 0; i < STATES; i++)
		if (homes[i]) {
			copy(homes[i], states[i], WORDS);
			MUST(cuMemFreeAsync(states[i], on));
		}
}

/* Every event on its own stream, after the one before. */
static void do_events(void)
{
	CUstream last = outside;
	unsigned i;

	states_come();
	for (i = 0; i < nevents; i++) {
		on = streams[events[i].stream];
		hand_over(last, on);
		if (events[i].what == WRITE)
			free_late();
		do_event(&events[i]);
		last = on;
	}
	free_late();
	states_go();
	hand_over(last, outside);
	on = outside;
}

static CUgraphExec capture(void)
{
	CUgraphExec exec;
	CUgraph g;

	MUST(cuStreamBeginCapture(outside, CU_STREAM_CAPTURE_MODE_RELAXED));
	do_events();
	MUST(cuStreamEndCapture(outside, &g));
	MUST(cuGraphInstantiate(&exec, g, 0));
	MUST(cuGraphDestroy(g));
	return exec;
}

/* --- the model ------------------------------------------------------------------------------------ */

static void model_op(const struct op *o, unsigned *made)
{
	unsigned *s = model[o->state], i;

	for (i = 0; i < WORDS; i++)
		switch (o->kind) {
		case READ:
		case VIA:
			made[i] = s[i] * o->value;
			break;
		case ADD:
			s[i] += o->value;
			break;
		case FILL:
			s[i] = o->value;
			break;
		}
}

static void model_launch(void)
{
	unsigned i, j;

	for (i = 0; i < nevents; i++) {
		struct segment *s = &segments[events[i].segment];

		if (events[i].what == WRITE)
			model_op(&events[i].op, NULL);
		for (j = 0; events[i].what == FORWARD && j < s->n; j++)
			model_op(&s->op[j], s->want + j * WORDS);
	}
}

static unsigned compare(dev p, const unsigned *want, unsigned n)
{
	unsigned got[OPS * WORDS], i, bad = 0;

	MUST(cuMemcpyDtoH(got, p, n * 4));
	for (i = 0; i < n; i++)
		bad += got[i] != want[i];
	return bad;
}

static unsigned compare_launch(unsigned *compared)
{
	unsigned bad = 0, i, j, k;

	for (i = 0; i < STATES; i++)
		bad += compare(homes[i] ? homes[i] : states[i], model[i], WORDS);
	*compared += STATES * WORDS;
	for (i = 0; i < SEGMENTS; i++) {
		const struct segment *s = &segments[i];

		for (j = 0; j < s->n; j++) {
			if (s->op[j].kind > VIA)
				continue;
			bad += compare(s->made + j * WORDS * 4, s->want + j * WORDS, WORDS);
			for (k = 0; k < s->replays; k++, *compared += WORDS)
				bad += compare(s->again[k] + j * WORDS * 4, s->want + j * WORDS,
					       WORDS);
		}
	}
	return bad;
}

static void make_memory(void)
{
	unsigned own = draw(1 << STATES), i, k;

	for (i = 0; i < STREAMS; i++)
		if (!streams[i])
			MUST(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
	for (i = 0; i < STATES; i++) {
		states[i] = alloc(WORDS);
		homes[i] = own >> i & 1 ? states[i] : 0;
		if (!homes[i])
			name_state(i);
	}
	for (i = 0; i < SEGMENTS; i++) {
		segments[i].made = alloc(OPS * WORDS);
		for (k = 0; k < AGAIN; k++)
			segments[i].again[k] = alloc(OPS * WORDS);
	}
}

static void random_program(void)
{
	static unsigned program;
	unsigned n, i, j, bad = 0, compared = 0, replays_made = 0;
	CUgraphExec exec = NULL;

	seed = ++program * 7919;
	make_memory();
	make_program();
	if (!option("running"))
		exec = capture();
	for (n = 0; n < LAUNCHES; n++) {
		for (i = 0; i < STATES; i++) {
			unsigned value = draw(1000);

			fill(homes[i] ? homes[i] : states[i], value, WORDS);
			for (j = 0; j < WORDS; j++)
				model[i][j] = value;
		}
		if (exec)
			MUST(cuGraphLaunch(exec, outside));
		else
			do_events();
		MUST(cuStreamSynchronize(outside));
		model_launch();
		bad += compare_launch(&compared);
	}
	if (exec)
		MUST(cuGraphExecDestroy(exec));
	for (i = 0; i < SEGMENTS; i++)
		replays_made += segments[i].replays;
	tell("bad", bad);
	tell("compared", compared);
	tell("replays", replays_made);
}

static const struct hazard_case cases[] = {{"random", random_program}};

HAZARD_MAIN(cases)
