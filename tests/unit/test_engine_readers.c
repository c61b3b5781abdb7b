/* SPDX-License-Identifier: MIT */
/*
 * Several readers of one claim on several streams: whoever overwrites it must come after all of them (RS031). Random programs
 * of reads, events, waits and one write are held against a graph in which happens-before is searched edge by edge.
 */
#include "tests/unit/engine_rig.h"
#include "tracker/model.h"

#define QUEUES	   5u
#define EVENTS	   4u
#define WORDS	   8u
#define MOST_NODES 256u

static uint64_t seed;

static unsigned below(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}

/* --- the model: what is enqueued, and what comes before it --- */

static struct node {
	int before[3]; /* on its queue, what it waits for, what the host had waited for; -1: none */
	unsigned first, n; /* words that it reads */
	int reads;
} nodes[MOST_NODES];
static int nnodes, last[QUEUES + 1], recorded[EVENTS], host;
static int claimed[WORDS];

static void model_start(void)
{
	nnodes = 0;
	host = -1;
	memset(last, -1, sizeof(last));
	memset(recorded, -1, sizeof(recorded));
	memset(claimed, 0, sizeof(claimed));
}

static int node(unsigned q, int waits)
{
	nodes[nnodes] = (struct node){.before = {last[q], waits, host}};
	return last[q] = nnodes++;
}

static int comes_before(int a, int b)
{
	if (b < 0 || a > b)
		return 0;
	if (a == b)
		return 1;
	for (unsigned i = 0; i < 3; i++)
		if (comes_before(a, nodes[b].before[i]))
			return 1;
	return 0;
}

/* --- programs --- */

static void copy_first(struct rig_arg *a)
{
	a[0].p[0] = a[1].p[a[1].first];
}

static void clear(struct rig_arg *a)
{
	for (unsigned i = 0; i < a[0].n; i++)
		a[0].p[a[0].first + i] = 0;
}

static uint32_t *x, *y[QUEUES + 1];

static void start(void)
{
	const struct rs_engine_config config = {.mode = RS_MODE_AUDIT, .verify = 1, .order = 1};

	rig_start(RS_MODE_AUDIT);
	rs_thread_destroy(thr);
	rs_engine_destroy(eng);
	eng = rs_engine_create(&config, &fake_ops, rec);
	memset(&rig_calm, 0, sizeof(rig_calm));
	thr = rs_thread_create(eng);
	x = words(WORDS);
	for (unsigned q = 1; q <= QUEUES; q++) {
		rs_engine_queue_create(eng, thr, RIG_Q(q), 0);
		y[q] = words(1);
	}
	model_start();
}

static void read_words(unsigned q, unsigned first, unsigned n)
{
	const struct rig_arg a[] = {W_(y[q], 1), {x, first, n, RS_READ, 0, 0}};
	int at = node(q, -1);

	nodes[at].reads = 1;
	nodes[at].first = first;
	nodes[at].n = n;
	kernel_q(q, "copy_first", copy_first, 2, a);
}

static void some_read(int forward)
{
	unsigned first = below(WORDS), n = 1 + below(WORDS - first);

	read_words(1 + below(QUEUES), first, n);
	for (unsigned i = first; forward && i < first + n; i++)
		claimed[i] = 1;
}

static void some_order(void)
{
	unsigned q = 1 + below(QUEUES), ev = below(EVENTS);

	switch (below(6)) {
	case 0:
	case 1:
		rs_engine_event_record(eng, thr, RIG_Q(q), 100 + ev);
		recorded[ev] = node(q, -1);
		break;
	case 2:
	case 3:
	case 4:
		if (recorded[ev] < 0)
			break;
		rs_engine_event_wait(eng, thr, RIG_Q(q), 100 + ev);
		node(q, recorded[ev]);
		break;
	case 5:
		if (below(8))
			break;
		rs_engine_synced_queue(eng, thr, RIG_Q(q));
		/* a node of the host's own, after what it knew and the queue's last */
		nodes[nnodes] = (struct node){.before = {host, last[q], -1}};
		host = nnodes++;
		break;
	}
}

static int writes(unsigned q, unsigned first, unsigned n)
{
	const struct rig_arg a[] = {{x, first, n, RS_WRITE, 0, 0}};
	int at = node(q, -1), race = 0;

	for (int i = 0; i < at; i++)
		for (unsigned k = first; nodes[i].reads && k < first + n; k++)
			race |= claimed[k] && k >= nodes[i].first &&
				k < nodes[i].first + nodes[i].n && !comes_before(i, at);
	kernel_q(q, "clear", clear, 1, a);
	return race;
}

static int program(uint64_t number, unsigned *races)
{
	unsigned first, q;
	int want, got;

	seed = number * 0x9e3779b97f4a7c15u + 1;
	start();
	PUSH("forward:f");
	for (unsigned i = 0; i < 3 + below(10); i++)
		below(2) ? some_read(1) : some_order();
	some_read(1);
	POP();
	if (below(2)) {
		PUSH("replay:f#0");
		for (unsigned i = 0; i < 1 + below(6); i++)
			below(2) ? some_read(0) : some_order();
		POP();
	}
	for (unsigned i = 0; i < below(20); i++)
		some_order();
	first = below(WORDS);
	q = 1 + below(QUEUES);
	want = writes(q, first, 1 + below(WORDS - first));
	rs_engine_synced_ctx(eng, 1);
	fake_drain();
	PUSH("replay:f#0");
	POP();
	got = count(rig_read("records.jsonl"), "RS031") > 0;
	*races += (unsigned)want;
	rig_stop();
	if (want != got)
		printf("# program %llu: %s, the engine says %s\n", (unsigned long long)number,
		       want ? "a race" : "no race", got ? "one" : "none");
	return want == got;
}

/* A reader on a stream that the writer waits for hides no other one. */
static void second_reader(int waits_for_both)
{
	start();
	PUSH("forward:f");
	read_words(1, 0, 4);
	read_words(2, 0, 4);
	POP();
	for (unsigned q = 1; q < 2u + (unsigned)waits_for_both; q++) {
		rs_engine_event_record(eng, thr, RIG_Q(q), 7);
		rs_engine_event_wait(eng, thr, RIG_Q(3), 7);
	}
	kernel_q(3, "clear", clear, 1, (struct rig_arg[]){W_(x, 4)});
	rs_engine_synced_ctx(eng, 1);
	PUSH("replay:f#0");
	POP();
	fake_drain();
	ok(count(rig_read("records.jsonl"), "RS031") == (unsigned)!waits_for_both,
	   "a writer that waits for %s", waits_for_both ? "both readers" : "the first reader");
	rig_stop();
}

/* The replay has ended, its record has not been written yet: a writer that does not wait for it concerns it. */
static void replay_reads(int waits)
{
	start();
	fake_reset(1, 0);
	PUSH("forward:f");
	read_words(1, 0, 4);
	POP();
	rs_engine_synced_ctx(eng, 1);
	PUSH("replay:f#0");
	read_words(2, 0, 4);
	POP();
	if (waits) {
		rs_engine_event_record(eng, thr, RIG_Q(2), 7);
		rs_engine_event_wait(eng, thr, RIG_Q(3), 7);
	}
	kernel_q(3, "clear", clear, 1, (struct rig_arg[]){W_(x, 4)});
	fake_drain();
	ok(count(rig_read("records.jsonl"), "RS031") == (unsigned)!waits,
	   "a writer after the replay that %s", waits ? "waits" : "does not wait");
	rig_stop();
}

/* Sets of readers that are the same, of claims of one allocation. */
static unsigned same_sets(unsigned claims)
{
	const struct rs_touch *t = eng->pending->touches;
	unsigned same = 0;

	while (t && t->claims.n != claims)
		t = t->hh.next;
	for (unsigned i = 0; t && i < claims; i++)
		same += t->claims.v[i].others &&
			t->claims.v[i].others == t->claims.v[claims - 1].others;
	return same;
}

/* One call reads many claims that another stream has read: one set of readers for all of them. */
static void shared(void)
{
	start();
	PUSH("forward:f");
	for (unsigned i = 0; i < WORDS; i++)
		read_words(1, i, 1);
	is_u64(same_sets(WORDS), 0, "one reader needs no set");
	read_words(2, 0, WORDS);
	is_u64(same_sets(WORDS), 1, "of different readers each claim has its own");
	read_words(1, 0, WORDS);
	is_u64(same_sets(WORDS), WORDS, "of the same readers all have one");
	rs_engine_event_record(eng, thr, RIG_Q(1), 7);
	rs_engine_event_wait(eng, thr, RIG_Q(2), 7);
	read_words(2, 0, WORDS);
	is_u64(same_sets(WORDS), 0, "a reader after all others stands for them");
	POP();
	rig_stop();
}

int main(int argc, char **argv)
{
	unsigned programs = argc > 1 ? (unsigned)atoi(argv[1]) : 600, good = 0, races = 0;

	second_reader(0);
	second_reader(1);
	replay_reads(0);
	replay_reads(1);
	shared();
	for (unsigned i = 0; i < programs; i++)
		good += (unsigned)program(i, &races);
	is_u64(good, programs, "random programs: the engine and the model agree");
	ok(races > programs / 8 && races < programs - programs / 8, "%u of them have a race",
	   races);
	return tap_done();
}
