/* SPDX-License-Identifier: MIT */
/*
 * Publishing and taking plans, in every order of their accesses to shared memory.
 *
 * A program never writes what the planner reads there, so what the planner stores is the same in each interleaving: its
 * stores are recorded once, also those of a planner that is killed before the k-th one and followed by another. Then a
 * program takes plans, and before each of its loads any number of the stores that are left may happen. Those that do not
 * concern the word loaded may as well happen later, so the choices at a load are "none, or up to the next, the second
 * next, ... store to this word": all of them are run. (Accesses are acquire and release, see wire.c, so there is no other
 * order than such a one.)
 *
 * Whatever the order: a plan that is taken is one of those published, whole; none is called damaged; and once the planner
 * rests, or is dead, the newest one is there.
 */
#include <setjmp.h>
#include <stdint.h>

static void step(const void *word);
#define RS_WIRE_STEP(word) step(word)
#include "tracker/wire.c"

#include "tests/tap.h"

#define STORES	256
#define CHOICES 512

static struct rs_wire area, *w = &area;

/* The planner's side: each access is counted; stores are found by comparing the word before and after. */
static struct {
	struct store {
		uint64_t *word, value, before;
	} store[STORES];
	unsigned n;
	uint64_t *last; /* accessed, and not looked at since */
	uint64_t last_value;
	int recording, left; /* accesses until it is killed; < 0: it is not */
	jmp_buf killed;
} trace;

/* The program's side: the choice at each of its loads, as an odometer. */
static struct {
	unsigned choice[CHOICES], most[CHOICES], n, used;
	unsigned done; /* stores that have happened */
	int running;
	unsigned takes; /* one after the other */
	uint64_t runs;
} reader;

static void note_store(void)
{
	struct store *s;

	if (!trace.last || *trace.last == trace.last_value) {
		trace.last = NULL;
		return;
	}
	s = &trace.store[trace.n++];
	*s = (struct store){trace.last, *trace.last, trace.last_value};
	trace.last = NULL;
}

static void writer_step(uint64_t *word)
{
	note_store();
	if (!trace.left--)
		longjmp(trace.killed, 1);
	trace.last = word;
	trace.last_value = *word;
}

static void reader_step(const uint64_t *word)
{
	unsigned most = 0, choice;

	for (unsigned i = reader.done; i < trace.n; i++)
		most += trace.store[i].word == word;
	if (!most)
		return;
	if (reader.used == reader.n) {
		reader.choice[reader.n] = 0;
		reader.most[reader.n++] = most;
	}
	choice = reader.choice[reader.used++];
	while (choice) {
		struct store *s = &trace.store[reader.done++];

		*s->word = s->value;
		choice -= s->word == word;
	}
}

static void step(const void *word)
{
	if (trace.recording)
		writer_step((uint64_t *)word);
	else if (reader.running)
		reader_step(word);
}

/* --- plans whose every word tells which it is ------------------------------------------------------- */

static unsigned entries_of(unsigned id)
{
	return id % 3 == 1;
}

static void make(unsigned id, struct rs_plan_head *head, struct rs_plan_entry *entry)
{
	uint64_t v = 1000u * (id + 1);

	*head = (struct rs_plan_head){0,     v + 1, v + 2, v + 3,	   v + 4,
				      v + 5, v + 6, v + 7, entries_of(id), v + 8};
	*entry = (struct rs_plan_entry){v + 9, v + 10, 1, 0, 1, v + 11, v + 12};
}

/* Of the plan with this content, its number; -1: it is none. */
static int which(const struct rs_plan_head *head, const struct rs_plan_entry *entry, unsigned most)
{
	struct rs_plan_entry e;
	struct rs_plan_head h;

	for (unsigned id = 0; id < most; id++) {
		make(id, &h, &e);
		h.generation = head->generation;
		if (!memcmp(head, &h, sizeof(h)) && (!h.n || !memcmp(entry, &e, sizeof(e))))
			return id;
	}
	return -1;
}

static void publish(unsigned id)
{
	struct rs_plan_entry entry;
	struct rs_plan_head head;

	make(id, &head, &entry);
	rs_wire_publish(w, &head, &entry);
}

/* Publish plan `id`, killed before its access number `kill`; < 0: not. 1 if it came to its end. */
static int record(unsigned id, int kill)
{
	volatile int whole = 0;

	trace.recording = 1;
	trace.left = kill;
	if (!setjmp(trace.killed)) {
		publish(id);
		whole = 1;
	}
	note_store();
	trace.recording = 0;
	return whole;
}

/* --- all orders -------------------------------------------------------------------------------------- */

static void rewind_to(unsigned done)
{
	while (reader.done > done) {
		struct store *s = &trace.store[--reader.done];

		*s->word = s->before;
	}
}

static int next_choice(void)
{
	while (reader.n) {
		if (reader.choice[reader.n - 1]++ < reader.most[reader.n - 1])
			return 1;
		reader.n--;
	}
	return 0;
}

struct seen {
	uint64_t taken, again, nothing;
};

/*
 * One program's takes in the order chosen, of plans 0 to most - 1. In the end it has the last one, or, if the planner may have
 * died before it was published, the one before; -1 is none.
 */
static int run(unsigned most, int died, struct seen *seen)
{
	struct rs_plan_entry entry[RS_PLAN_MAX > 1 ? 2 : 1];
	struct rs_plan_head head;
	uint64_t have = 0;
	int r, id, last = -1, good = 1;

	reader.used = 0;
	reader.running = 1;
	for (unsigned i = 0; i <= reader.takes && good; i++) {
		/* In the end the planner rests. */
		if (i == reader.takes) {
			reader.running = 0;
			for (; reader.done < trace.n; reader.done++)
				*trace.store[reader.done].word = trace.store[reader.done].value;
		}
		r = rs_wire_take(w, have, &head, entry);
		seen->taken += r == 1;
		seen->again += r == -EAGAIN;
		seen->nothing += !r;
		if (r == 1) {
			id = which(&head, entry, most);
			good = id > last && head.generation > have;
			last = id;
			have = head.generation;
		} else {
			good = !r || (r == -EAGAIN && i < reader.takes);
		}
	}
	reader.running = 0;
	reader.runs++;
	return good && (last == (int)most - 1 || (died && last == (int)most - 2));
}

/* All orders of the recorded stores and a program's loads. The area is as after all stores. */
static int explore(unsigned most, int died, struct seen *seen)
{
	int good = 1;

	reader.done = trace.n;
	reader.n = 0;
	do {
		rewind_to(0);
		good = run(most, died, seen);
	} while (good && next_choice());
	if (!good)
		tap_diag("an order of %u loads with choices goes wrong", reader.used);
	return good;
}

static void begin(unsigned before)
{
	memset(w, 0, sizeof(*w));
	trace.n = 0;
	for (unsigned i = 0; i < before; i++)
		publish(i);
}

static void test_publications(void)
{
	for (unsigned n = 1; n <= 3; n++)
		for (unsigned before = 0; before < 3; before++) {
			struct seen seen = {0};
			int good = 1;

			reader.runs = 0;
			reader.takes = n < 3 ? 3 : 1;
			begin(before);
			for (unsigned i = 0; i < n && good; i++)
				good = record(before + i, -1);
			good = good && explore(before + n, 0, &seen);
			ok(good && (n + !!before < 3 || seen.again),
			   "%u publications after %u: %" PRIu64 " orders; %" PRIu64
			   " taken, %" PRIu64 " to be looked at again, %" PRIu64 " nothing new",
			   n, before, reader.runs, seen.taken, seen.again, seen.nothing);
		}
}

/* The planner dies before any of its accesses, and nobody comes: a plan that was there still is, or the new one. */
static void test_died(void)
{
	struct seen seen = {0};
	int good = 1;

	reader.runs = 0;
	reader.takes = 2;
	for (unsigned before = 0; before < 4; before++)
		for (int k = 0, more = 1; more && good; k++) {
			begin(before);
			more = !record(before, k);
			good = explore(before + 1, more, &seen);
		}
	ok(good, "a planner killed before any access, for good: %" PRIu64 " orders", reader.runs);
}

/* The planner dies before its k-th access, the next one before its j-th, a third one publishes: of any k and j. */
static void test_killed(int twice)
{
	const char *instrumented = getenv("RS_TEST_SCALE");
	int step_k = twice && instrumented && atoi(instrumented) > 1 ? 5 : 1;
	struct seen seen = {0};
	unsigned deaths = 0;
	int good = 1;

	reader.runs = 0;
	reader.takes = twice ? 1 : 2;
	for (unsigned before = 0; before < 3; before++)
		for (int k = 0, more = 1; more && good; k += step_k)
			for (int j = 0, more2 = 1; more2 && good; j++) {
				unsigned most = before;

				begin(before);
				more = !record(most, k);
				more2 = twice && !record(most + 1, j);
				/* What was published last counts, also if its planner died right after that. */
				record(most + 2, -1);
				good = explore(most + 3, 0, &seen);
				deaths++;
			}
	ok(good && deaths > 30, "%s killed before any access: %u ways, %" PRIu64 " orders",
	   twice ? "two planners" : "a planner", deaths, reader.runs);
}

int main(void)
{
	test_publications();
	test_died();
	test_killed(0);
	test_killed(1);
	return tap_done();
}
